/* Kernels of uint8 and int8: loops over channels that the compiler vectorises. */
#include <string.h>

#include "layers/kernels/generic/int_vectors.h"
#include "layers/kernels/generic/variant.h"

#define POOLED 32 /* channels whose maxima are found together */

/* For n channels of a pixel. Compilers make a few vectors of the loops if n is a constant. */
#define POOL_MAX_SOME(name, element, least)                                                   \
    static inline __attribute__((always_inline)) void some_##name(                            \
        const struct rfx_byte_pool_args *r, const element *x, element *restrict out, int n) { \
        element most[POOLED];                                                                 \
        for (int i = 0; i < n; i++) most[i] = r->begun ? out[i] : (element)(least);           \
        for (int64_t col = 0; col < r->n_cols; col++, x += r->col_step)                       \
            for (int i = 0; i < n; i++) most[i] = x[i] > most[i] ? x[i] : most[i];            \
        for (int i = 0; i < n; i++) out[i] = most[i];                                         \
    }

#define POOL_MAX(name, element, least)                                                          \
    POOL_MAX_SOME(name, element, least)                                                         \
    void VARIANT_NAME(name)(const struct rfx_byte_pool_args *r) {                               \
        const struct rfx_byte_pool_args own = *r;                                               \
        for (int64_t p = 0; p < own.pixels; p++) {                                              \
            const element *x = (const element *)own.row + p * own.x_step;                       \
            element *out = (element *)own.out + p * own.out_step;                               \
            int64_t i = 0;                                                                      \
            for (; i + POOLED <= own.c; i += POOLED) some_##name(&own, x + i, out + i, POOLED); \
            if (i < own.c) some_##name(&own, x + i, out + i, (int)(own.c - i));                 \
        }                                                                                       \
    }

POOL_MAX(pool_max_u8, uint8_t, 0)
POOL_MAX(pool_max_i8, int8_t, INT8_MIN)

/* Returns v, of magnitude up to 2^22, rounded to the nearest integer, halves to the even one:
 * floats as large as v + magic have no fraction bits. */
static inline float round_even(float v) {
    const float magic = 12582912.0f; /* 1.5 * 2^23 */
    return (v + magic) - magic;
}

/* Clamps v to [lo, hi]; NaN becomes 0 first. */
static inline float clamp(float v, float lo, float hi) {
    v = v == v ? v : 0.0f;
    v = v < lo ? lo : v;
    return v > hi ? hi : v;
}

#if defined(INT_VECTORS) && defined(VARIANT_HAS_FMA)
/* Adds RFX_INT_LANES elements. All are read before one is written: `out` may be an operand. */
INLINE void add_block(const uint8_t *a, float a_scale, const uint8_t *b, float b_scale, float shift,
                      uint8_t *out, bool is_signed, int least, int most) {
    ints left[IN_BLOCK], right[IN_BLOCK], whole[IN_BLOCK];
    widened(a, is_signed, left);
    widened(b, is_signed, right);
    UNROLL for (int v = 0; v < IN_BLOCK; v++) {
        vector more = VECTOR_FMA(floats_of(right[v]), VECTOR_ALL(b_scale), VECTOR_ALL(shift));
        vector sum = VECTOR_FMA(floats_of(left[v]), VECTOR_ALL(a_scale), more);
        sum = vector_select(sum == sum, sum, VECTOR_ALL(0.0f));
        whole[v] = rounded(sum, VECTOR_ALL((float)most));
    }
    *(elements_unaligned *)(void *)out = elements_of(whole, LIMIT_ALL(least), LIMIT_ALL(0), false);
}

INLINE void add_all(const uint8_t *a, float a_scale, const uint8_t *b, float b_scale, float shift,
                    uint8_t *out, int64_t n, bool is_signed, int least, int most) {
    int64_t i = 0;
    for (; i + RFX_INT_LANES <= n; i += RFX_INT_LANES)
        add_block(a + i, a_scale, b + i, b_scale, shift, out + i, is_signed, least, most);
    if (i == n) return;
    uint8_t left[RFX_INT_LANES] = {0}, right[RFX_INT_LANES] = {0};
    memcpy(left, a + i, (size_t)(n - i));
    memcpy(right, b + i, (size_t)(n - i));
    add_block(left, a_scale, right, b_scale, shift, left, is_signed, least, most);
    memcpy(out + i, left, (size_t)(n - i));
}

#define ADD(suffix, element, least, most)                                                       \
    void VARIANT_NAME(add_##suffix)(const void *a, float a_scale, const void *b, float b_scale, \
                                    float shift, void *out, int64_t n) {                        \
        add_all(a, a_scale, b, b_scale, shift, out, n, (least) < 0, (least), (most));           \
    }

/* Quantises RFX_INT_LANES numbers. */
INLINE void quantise_block(const float *x, float scale, int32_t zero_point, uint8_t *out, int least,
                           int most) {
    ints whole[IN_BLOCK];
    UNROLL for (int v = 0; v < IN_BLOCK; v++) {
        vector value = VECTOR_LOAD(x + v * VECTOR_FLOATS) / scale;
        value = vector_select(value == value, value, VECTOR_ALL(0.0f));
        whole[v] = rounded(value, VECTOR_ALL((float)(most - zero_point)));
    }
    *(elements_unaligned *)(void *)out =
        elements_of(whole, LIMIT_ALL(least - zero_point), LIMIT_ALL(zero_point), false);
}

INLINE void quantise_all(const float *x, float scale, int32_t zero_point, uint8_t *out, int64_t n,
                         int least, int most) {
    int64_t i = 0;
    for (; i + RFX_INT_LANES <= n; i += RFX_INT_LANES)
        quantise_block(x + i, scale, zero_point, out + i, least, most);
    if (i == n) return;
    float left[RFX_INT_LANES] = {0};
    uint8_t made[RFX_INT_LANES];
    memcpy(left, x + i, (size_t)(n - i) * sizeof *left);
    quantise_block(left, scale, zero_point, made, least, most);
    memcpy(out + i, made, (size_t)(n - i));
}

#define QUANTISE(suffix, element, least, most)                                            \
    void VARIANT_NAME(quantise_##suffix)(const float *x, float scale, int32_t zero_point, \
                                         void *out, int64_t n) {                          \
        quantise_all(x, scale, zero_point, out, n, (least), (most));                      \
    }
#else
#define QUANTISE(suffix, element, least, most)                                                \
    void VARIANT_NAME(quantise_##suffix)(const float *x, float scale, int32_t zero_point,     \
                                         void *out, int64_t n) {                              \
        element *restrict to = out;                                                           \
        const float lo = (float)((least)-zero_point), hi = (float)((most)-zero_point);        \
        for (int64_t i = 0; i < n; i++)                                                       \
            to[i] = (element)((int32_t)round_even(clamp(x[i] / scale, lo, hi)) + zero_point); \
    }
#define ADD(suffix, element, least, most)                                                       \
    void VARIANT_NAME(add_##suffix)(const void *a, float a_scale, const void *b, float b_scale, \
                                    float shift, void *out, int64_t n) {                        \
        const element *left = a, *right = b;                                                    \
        element *to = out;                                                                      \
        for (int64_t i = 0; i < n; i++) {                                                       \
            float sum = __builtin_fmaf((float)left[i], a_scale,                                 \
                                       __builtin_fmaf((float)right[i], b_scale, shift));        \
            to[i] = (element)(int32_t)round_even(clamp(sum, (least), (most)));                  \
        }                                                                                       \
    }
#endif

#define MUL(suffix, element, least, most)                                                         \
    void VARIANT_NAME(mul_##suffix)(const void *a, int32_t a_zero, const void *b, int32_t b_zero, \
                                    float factor, int32_t zero_point, void *out, int64_t n) {     \
        const element *left = a, *right = b;                                                      \
        element *to = out;                                                                        \
        for (int64_t i = 0; i < n; i++) {                                                         \
            float product = (float)((left[i] - a_zero) * (right[i] - b_zero));                    \
            float v = product * factor + (float)zero_point;                                       \
            to[i] = (element)(int32_t)round_even(clamp(v, (least), (most)));                      \
        }                                                                                         \
    }

#define OF_ELEMENT(suffix, element, least, most)                                                  \
    void VARIANT_NAME(widen_##suffix)(const void *x, int32_t zero_point, int16_t *restrict out,   \
                                      int64_t n) {                                                \
        const element *from = x;                                                                  \
        const int16_t zero = (int16_t)zero_point;                                                 \
        for (int64_t i = 0; i < n; i++) out[i] = (int16_t)(from[i] - zero);                       \
    }                                                                                             \
    void VARIANT_NAME(quantise_shifted_##suffix)(const float *x, float scale, int32_t zero_point, \
                                                 void *out, int64_t n) {                          \
        element *restrict to = out;                                                               \
        for (int64_t i = 0; i < n; i++)                                                           \
            to[i] = (element)(int32_t)round_even(                                                 \
                clamp(x[i] / scale + (float)zero_point, (least), (most)));                        \
    }                                                                                             \
    void VARIANT_NAME(dequantise_##suffix)(const void *x, float scale, int32_t zero_point,        \
                                           float *restrict out, int64_t n) {                      \
        const element *from = x;                                                                  \
        for (int64_t i = 0; i < n; i++) out[i] = (float)(from[i] - zero_point) * scale;           \
    }

OF_ELEMENT(u8, uint8_t, 0, UINT8_MAX)
OF_ELEMENT(i8, int8_t, INT8_MIN, INT8_MAX)
QUANTISE(u8, uint8_t, 0, UINT8_MAX)
QUANTISE(i8, int8_t, INT8_MIN, INT8_MAX)
ADD(u8, uint8_t, 0, UINT8_MAX)
ADD(i8, int8_t, INT8_MIN, INT8_MAX)
MUL(u8, uint8_t, 0, UINT8_MAX)
MUL(i8, int8_t, INT8_MIN, INT8_MAX)
