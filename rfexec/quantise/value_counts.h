/* How often a tensor's values occur: its smallest and largest value, and counts in bins.
 *
 * A bin holds the float32 numbers that share sign, exponent and the first RFX_BIN_MANTISSA bits of
 * the mantissa: its width is at most 1/64 of its values. So the bins need no range that is known
 * beforehand, every value has its bin on every machine, and counts of parts of a job add up
 * exactly, in any order. */
#ifndef RFX_RFEXEC_QUANTISE_VALUE_COUNTS_H
#define RFX_RFEXEC_QUANTISE_VALUE_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "layers/core/type.h"

enum { RFX_BIN_MANTISSA = 6, RFX_VALUE_BINS = 1 << (9 + RFX_BIN_MANTISSA) };

struct rfx_value_counts {
    uint64_t n;     /* values counted; 0: lo and hi are not set */
    float lo, hi;   /* smallest and largest value */
    uint64_t *bins; /* RFX_VALUE_BINS counts, by rising value */
};

/* Counts n values. Returns false, and counts none, if one of them is not finite. */
bool rfx_value_counts_add(struct rfx_value_counts *counts, const float *values, int64_t n);

/* Returns the smallest value of a bin, and the largest. */
float rfx_value_bin_lo(int bin);
float rfx_value_bin_hi(int bin);

/* How a tensor's range is taken from its values. */
enum rfx_range_method {
    RFX_RANGE_MINMAX,     /* from the smallest to the largest value */
    RFX_RANGE_PERCENTILE, /* leaves out an equal share of the values at both ends */
    RFX_RANGE_ENTROPY,    /* the range whose 256 integers describe the values with the least loss of
                             information (Kullback-Leibler divergence) */
};

struct rfx_range_request {
    enum rfx_range_method method;
    double percentile;  /* PERCENTILE: share of the values that the range holds, in percent */
    enum rfx_type type; /* UINT8 or INT8 */
    bool symmetric;     /* the range is as wide below 0 as above */
};

/* Scale and zero point of a tensor's integers. */
struct rfx_value_range {
    float lo, hi; /* contains 0 */
    float scale;
    int32_t zero_point;
};

/* Returns the range of a tensor with these counts, with at least one value. A tensor of zeros gets
 * scale 1. */
struct rfx_value_range rfx_range_of(const struct rfx_value_counts *counts,
                                    const struct rfx_range_request *request);

/* Sums of squares. */
struct rfx_noise {
    double signal, noise; /* of the values, and of what rounding adds to them */
};

/* Returns the noise of rounding the counted values to a range's integers of `type`, to the width of
 * a bin. */
struct rfx_noise rfx_range_noise(const struct rfx_value_counts *counts,
                                 const struct rfx_value_range *range, enum rfx_type type);

/* Returns the signal to noise ratio in dB; infinite without noise. */
double rfx_noise_db(const struct rfx_noise *noise);
#endif
