/* Bins of equal width between two numbers, for histograms of values.
 *
 * Bin k of n, counted from 0, has the values from edge k to below edge k + 1; the last bin has the
 * upper end too. Edges are computed in double, low + (high - low) k / n, and values are compared
 * with the edges themselves, so counts are exact. Test: test_value_bins.c. */
#ifndef RFX_RFEXEC_ANSWERS_VALUE_BINS_H
#define RFX_RFEXEC_ANSWERS_VALUE_BINS_H

#include "rfexec/output/answer_options.h"

/* Returns edge k, from 0 to n. */
static inline double rfx_value_edge(const struct rfx_answer_bins *bins, int64_t k) {
    if (k == bins->n) return bins->high;
    return bins->low + (bins->high - bins->low) * (double)k / (double)bins->n;
}

/* Returns the number of counts: the values below the low end, the bins, the values above the high
 * end. */
static inline int64_t rfx_value_counts(const struct rfx_answer_bins *bins) {
    return bins->n > 0 ? bins->n + 2 : 0;
}

/* Counts a value in counts[n + 2], unless it is NaN. */
static inline void rfx_value_count(const struct rfx_answer_bins *bins, float value,
                                   int64_t *counts) {
    double v = (double)value, share = (v - bins->low) / (bins->high - bins->low);
    if (v < bins->low) counts[0]++;
    if (v > bins->high) counts[bins->n + 1]++;
    if (!(v >= bins->low && v <= bins->high)) return;
    int64_t k = (int64_t)(share * (double)bins->n); /* at most a few bins off */
    if (k > bins->n - 1) k = bins->n - 1;
    while (k > 0 && v < rfx_value_edge(bins, k)) k--;
    while (k < bins->n - 1 && v >= rfx_value_edge(bins, k + 1)) k++;
    counts[k + 1]++;
}
#endif
