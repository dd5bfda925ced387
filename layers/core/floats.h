/* Sizes and conversions of arrays that are float32 whatever a tensor's element type is: packed
 * weights, gathered pixels, sums. The bytes of a tensor depend on its element type: see
 * rfx_tensor_bytes and rfx_view_row_bytes (tensor.h). */
#ifndef RFX_LAYERS_CORE_FLOATS_H
#define RFX_LAYERS_CORE_FLOATS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Returns the bytes of n >= 0 floats. The caller makes sure that they fit size_t. */
static inline size_t rfx_floats_bytes(int64_t n) {
    return (size_t)n * sizeof(float);
}

/* Returns x, or the NaN of <math.h> if x is any NaN. The sign and payload of a computed NaN depend
 * on the order of an instruction's operands, and so on the element's place in a vector. Replacing
 * every NaN by the same one keeps results independent of the place. */
static inline float rfx_one_nan(float x) {
    return x != x ? NAN : x;
}

/* Returns the float of a half-precision number given by its bits (IEEE 754 binary16). The
 * conversion is exact; the payload of a NaN is kept. */
static inline float rfx_float_of_half(uint16_t half) {
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16, exponent = half >> 10 & 31u;
    const uint32_t fraction = half & 0x3ffu;
    uint32_t bits = sign | (exponent + 112) << 23 | fraction << 13;
    float value;
    if (exponent == 0) { /* multiples of 2^-24 */
        value = (float)fraction * 0x1p-24f;
        return sign != 0 ? -value : value;
    }
    if (exponent == 31) bits = sign | 0x7f800000u | fraction << 13;
    memcpy(&value, &bits, sizeof value);
    return value;
}
#endif
