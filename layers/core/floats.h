/* Bytes of the arrays of floats that numerics keep for themselves: packed weights, gathered pixels,
 * sums. A tensor's bytes are rfx_tensor_bytes and rfx_view_row_bytes (tensor.h): they follow its
 * element type, these never do. */
#ifndef RFX_LAYERS_CORE_FLOATS_H
#define RFX_LAYERS_CORE_FLOATS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Bytes of n >= 0 floats; the caller knows that they fit size_t. */
static inline size_t rfx_floats_bytes(int64_t n) {
    return (size_t)n * sizeof(float);
}

/* The sign and the payload of a NaN depend on which operand an instruction met first, and so on
 * where in a vector an element lay. That an element is NaN does not; so all NaN leave as the same
 * one. */
static inline float rfx_one_nan(float x) {
    return x != x ? NAN : x;
}

/* The float of a half-precision number's bits (IEEE 754 binary16); exact, NaN's payload kept. */
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
