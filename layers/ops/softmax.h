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

/* The softmax of n multiples of in_scale as the QLinearSoftmax of ONNX Runtime computes it of
 * bytes: e[k] = exp(k * in_scale + shift), k from -255 to 0, is a table, whose shift leaves room
 * for the sum in float32; out[i] = round(e[k[i]] * floor(1 / out_scale) / sum) * out_scale, where
 * k[i] is how many steps x[i] is above the largest value, and the sum runs from the first value to
 * the last. QuantizeLinear by out_scale then gives ONNX Runtime's bytes. */
struct rfx_softmax_table {
    struct rfx_softmax_steps steps;
    int64_t n;
    float e[256];
};
void rfx_softmax_table_fill(struct rfx_softmax_table *table, struct rfx_softmax_steps steps,
                            int64_t n);

/* For values that lie `step` apart, in x and in out, which may be x. */
void rfx_softmax_by_table(const struct rfx_softmax_table *table, const float *x, float *out,
                          int64_t step);

/* Returns how many of `rows` rows of n scores a thread of an attention holds at a time. */
int64_t rfx_softmax_rows_at_a_time(int64_t rows, int64_t n);

#endif
