/* The softmax of values that follow each other. */
#ifndef RFX_LAYERS_OPS_SOFTMAX_H
#define RFX_LAYERS_OPS_SOFTMAX_H

#include <stdbool.h>
#include <stdint.h>

/* out[i] = exp(x[i] - max) / sum, the sum in double from the first to the last; with `logarithm`
 * x[i] - max - log(sum). A NaN makes all of them NaN. Without `logarithm` out may be x. */
void rfx_softmax_values(const float *x, float *out, int64_t n, bool logarithm);

/* The same of `rows` rows of n values that follow each other, in place: some side by side, each
 * with the bits that it has alone. */
void rfx_softmax_rows(float *x, int64_t rows, int64_t n);

#endif
