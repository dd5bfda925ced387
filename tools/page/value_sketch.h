/* The values of an output in a few numbers: range, mean, and a histogram that is made in one pass
 * without knowing the range before.
 *
 * A bin is as wide as a power of two and begins at a multiple of it, so bins join in pairs exactly
 * when the range grows. Invariants: 1. every finite value is counted in the bin it lies in; 2. the
 * bins follow from the least and the largest value alone, whatever the order of the values; 3. NaN
 * and infinities are counted by themselves and are in no bin, range or mean. */
#ifndef RFX_TOOLS_PAGE_VALUE_SKETCH_H
#define RFX_TOOLS_PAGE_VALUE_SKETCH_H

#include <stdint.h>

enum { RFX_SKETCH_BINS = 64 };

struct rfx_value_sketch { /* all zero: no values */
    int64_t finite, nan, plus_inf, minus_inf;
    double sum;
    float min, max; /* of the finite values, if there are some */
    int exponent;   /* a bin is 2^exponent wide */
    int64_t first;  /* bins[i] begins at (first + i) * 2^exponent */
    uint64_t
        bins[RFX_SKETCH_BINS]; /* those from the least to the largest value's are not 0 alone */
};

void rfx_value_sketch_add(struct rfx_value_sketch *sketch, const float *values, int64_t n);

/* Where bin i begins; i may be the number of bins that are used: where the last one ends. */
double rfx_value_sketch_edge(const struct rfx_value_sketch *sketch, int i);

/* Bins from the least value's to the largest one's; 0: there are no finite values. */
int rfx_value_sketch_used(const struct rfx_value_sketch *sketch);
#endif
