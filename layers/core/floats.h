/* Bytes of the arrays of floats that numerics keep for themselves: packed weights, gathered pixels,
 * sums. A tensor's bytes are rfx_tensor_bytes and rfx_view_row_bytes (tensor.h): they follow its
 * element type, these never do. */
#ifndef RFX_LAYERS_CORE_FLOATS_H
#define RFX_LAYERS_CORE_FLOATS_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of n >= 0 floats; the caller knows that they fit size_t. */
static inline size_t rfx_floats_bytes(int64_t n) {
    return (size_t)n * sizeof(float);
}
#endif
