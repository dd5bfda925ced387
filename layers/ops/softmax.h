/* The softmax of contiguous values. */
#ifndef RFX_LAYERS_OPS_SOFTMAX_H
#define RFX_LAYERS_OPS_SOFTMAX_H

#include <stdbool.h>
#include <stdint.h>

/* Computes out[i] = exp(x[i] - max) / sum; the sum runs in double from the first value to the last.
 * With `logarithm`, computes x[i] - max - log(sum) instead. A NaN makes all results NaN. Without
 * `logarithm`, out may be x. */
void rfx_softmax_values(const float *x, float *out, int64_t n, bool logarithm);

/* Computes the softmax of `rows` contiguous rows of n values each, in place. Computes several rows
 * at a time; each row has the same bits as if computed alone. */
void rfx_softmax_rows(float *x, int64_t rows, int64_t n);

/* Returns how many of `rows` rows of n scores a thread of an attention holds at a time. */
int64_t rfx_softmax_rows_at_a_time(int64_t rows, int64_t n);

#endif
