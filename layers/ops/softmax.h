/* The softmax of contiguous values. */
#ifndef RFX_LAYERS_OPS_SOFTMAX_H
#define RFX_LAYERS_OPS_SOFTMAX_H

#include <stdbool.h>
#include <stdint.h>

#include "layers/graph/attr.h"

/* Computes out[i] = exp(x[i] - max) / sum; the sum runs in double from the first value to the last.
 * With `logarithm`, computes x[i] - max - log(sum) instead. A NaN makes all results NaN. Without
 * `logarithm`, out may be x. */
void rfx_softmax_values(const float *x, float *out, int64_t n, bool logarithm);

/* Computes the softmax of `rows` contiguous rows of n values each, in place. Computes several rows
 * at a time; each row has the same bits as if computed alone. */
void rfx_softmax_rows(float *x, int64_t rows, int64_t n);

/* A softmax of bytes as ONNX Runtime's QLinearSoftmax computes it. The n values are float32,
 * multiples of in_scale that are at most 255 steps apart. Value x has the exponential
 * e[255 - (largest value - x) / in_scale], where e[k] = exp((k - 255) * in_scale + shift). The
 * shift leaves room for the sum in float32, which runs from the first value to the last. The result
 * is round(exponential * floor(1 / out_scale) / sum) * out_scale. QuantizeLinear by out_scale then
 * gives ONNX Runtime's bytes. */
struct rfx_softmax_table {
    struct rfx_softmax_steps steps;
    int64_t n;
    float e[256];
};

/* Makes a table in *room and returns it; NULL if `steps` are none. */
const struct rfx_softmax_table *rfx_softmax_table_of(struct rfx_softmax_table *room,
                                                     struct rfx_softmax_steps steps, int64_t n);

/* Computes the softmax of table->n values that lie `step` apart in x and in out; out may be x. */
void rfx_softmax_by_table(const struct rfx_softmax_table *table, const float *x, float *out,
                          int64_t step);

/* Returns how many of `rows` rows of n scores a thread of an attention holds at a time. */
int64_t rfx_softmax_rows_at_a_time(int64_t rows, int64_t n);

#endif
