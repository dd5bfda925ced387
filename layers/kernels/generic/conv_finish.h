/* Ends a convolution's sums: adds the residual, clamps, stores. */
#ifndef RFX_LAYERS_KERNELS_GENERIC_CONV_FINISH_H
#define RFX_LAYERS_KERNELS_GENERIC_CONV_FINISH_H

#include "layers/kernels/generic/variant.h"

/* Ends one vector of sums. Only `channels` lanes are stored if the vector has more; as many are
 * read of the residual (NULL: none). */
static inline __attribute__((always_inline, unused)) void conv_finish(
    vector sum, float lo, float hi, const float *residual, float *out, int64_t channels) {
    const vector low = VECTOR_ALL(lo), high = VECTOR_ALL(hi);
    if (channels >= VECTOR_FLOATS) {
        if (residual != NULL) sum = sum + VECTOR_LOAD(residual);
        VECTOR_STORE(out, VECTOR_MIN(high, VECTOR_MAX(low, sum)));
        return;
    }
    vector_test lanes = vector_test_range(0, channels);
    if (residual != NULL) sum = sum + VECTOR_LOAD_WHERE(lanes, residual);
    VECTOR_STORE_WHERE(lanes, out, VECTOR_MIN(high, VECTOR_MAX(low, sum)));
}
#endif
