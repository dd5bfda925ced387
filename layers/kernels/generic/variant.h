/* Names, vector width and vector operations of the instruction set that a file is compiled for. */
#ifndef RFX_LAYERS_KERNELS_GENERIC_VARIANT_H
#define RFX_LAYERS_KERNELS_GENERIC_VARIANT_H

#include "layers/kernels/kernels.h"

#ifndef RFX_KERNEL_VARIANT
#define RFX_KERNEL_VARIANT base
#endif
/* The name of the kernel set, if only some kernels differ from those of the variant. */
#ifndef RFX_KERNEL_SET
#define RFX_KERNEL_SET RFX_KERNEL_VARIANT
#endif
#define VARIANT_JOIN(name, variant) rfx_kernel_##name##_##variant
#define VARIANT_EXPAND(name, variant) VARIANT_JOIN(name, variant)
#define VARIANT_NAME(name) VARIANT_EXPAND(name, RFX_KERNEL_VARIANT)
#define SET_NAME(name) VARIANT_EXPAND(name, RFX_KERNEL_SET)

/* VECTOR_MAX and VECTOR_MIN return x if x is NaN, and if x and the bound are both zeros, as the
 * scalar clamp does. VECTOR_QUADS loads four floats from each of the addresses at, at + step, ...
 */
#if defined(__AVX512F__)
#include <immintrin.h>
#define VECTOR_FLOATS 16
#define VARIANT_HAS_FMA 1
#define VECTOR_FMA(a, b, c) ((vector)_mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c)))
#define VECTOR_MAX(bound, x) ((vector)_mm512_max_ps((__m512)(bound), (__m512)(x)))
#define VECTOR_MIN(bound, x) ((vector)_mm512_min_ps((__m512)(bound), (__m512)(x)))
#define VECTOR_QUADS(at, step)                                                          \
    ((vector)_mm512_insertf32x4(                                                        \
        _mm512_insertf32x4(_mm512_insertf32x4(_mm512_castps128_ps512(_mm_loadu_ps(at)), \
                                              _mm_loadu_ps((at) + (step)), 1),          \
                           _mm_loadu_ps((at) + 2 * (step)), 2),                         \
        _mm_loadu_ps((at) + 3 * (step)), 3))
#elif defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#define VECTOR_FLOATS 8
#define VARIANT_HAS_FMA 1
#define VECTOR_FMA(a, b, c) ((vector)_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c)))
#define VECTOR_MAX(bound, x) ((vector)_mm256_max_ps((__m256)(bound), (__m256)(x)))
#define VECTOR_MIN(bound, x) ((vector)_mm256_min_ps((__m256)(bound), (__m256)(x)))
#define VECTOR_QUADS(at, step)                                              \
    ((vector)_mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(at)), \
                                  _mm_loadu_ps((at) + (step)), 1))
#elif defined(__aarch64__)
#include <arm_neon.h>
/* Not vmaxq_f32 and vminq_f32: for two zeros these return +0, and if the bound is NaN they return
 * NaN. */
#define VECTOR_FLOATS 4
#define VARIANT_HAS_FMA 1
#define VECTOR_FMA(a, b, c) \
    ((vector)vfmaq_f32((float32x4_t)(c), (float32x4_t)(a), (float32x4_t)(b)))
#define VECTOR_MAX(bound, x) vector_select((x) < (bound), bound, x)
#define VECTOR_MIN(bound, x) vector_select((x) > (bound), bound, x)
#define VECTOR_QUADS(at, step) ((void)(step), VECTOR_LOAD(at))
#else
#define VECTOR_FLOATS 4
#define VECTOR_FMA(a, b, c) ((a) * (b) + (c))
#define VECTOR_MAX(bound, x) vector_select((x) < (bound), bound, x)
#define VECTOR_MIN(bound, x) vector_select((x) > (bound), bound, x)
#define VECTOR_QUADS(at, step) ((void)(step), VECTOR_LOAD(at))
#endif

/* Dot products of four uint8 and four int8 that are added to int32 (VNNI). */
#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
#define VARIANT_INT_BYTES 1
#endif

typedef float vector __attribute__((vector_size(VECTOR_FLOATS * 4)));
typedef int32_t vector_mask __attribute__((vector_size(VECTOR_FLOATS * 4)));
typedef float vector_unaligned
    __attribute__((vector_size(VECTOR_FLOATS * 4), aligned(4), may_alias));
static inline __attribute__((always_inline, unused)) vector vector_select(vector_mask m, vector a,
                                                                          vector b) {
    return (vector)((m & (vector_mask)a) | (~m & (vector_mask)b));
}
#define VECTOR_LOAD(p) ((vector) * (const vector_unaligned *)(p))
#define VECTOR_STORE(p, v) (*(vector_unaligned *)(p) = (v))
#define VECTOR_ALL(s) ((s) - (vector){0})

/* Returns x if it is larger or NaN, else so_far, the largest value so far. */
#if defined(__AVX512F__)
#define VECTOR_LARGER(x, so_far)                                                    \
    ((vector)_mm512_mask_mov_ps(                                                    \
        (__m512)(so_far),                                                           \
        (__mmask16)(_mm512_cmp_ps_mask((__m512)(x), (__m512)(so_far), _CMP_GT_OQ) | \
                    _mm512_cmp_ps_mask((__m512)(x), (__m512)(x), _CMP_UNORD_Q)),    \
        (__m512)(x)))
#else
#define VECTOR_LARGER(x, so_far) vector_select(((x) > (so_far)) | ((x) != (x)), x, so_far)
#endif

/* Keeps a loaded vector in a register. Otherwise a compiler would read memory again for every use,
 * and each read of a vector that crosses a cache line costs two. */
#if defined(__AVX512F__)
#define VECTOR_KEEP(x) __asm__("" : "+v"(x))
#elif defined(__SSE2__)
#define VECTOR_KEEP(x) __asm__("" : "+x"(x))
#elif defined(__aarch64__)
#define VECTOR_KEEP(x) __asm__("" : "+w"(x))
#else
#define VECTOR_KEEP(x) ((void)0)
#endif

/* To be written before loops over arrays of vectors that must stay in registers. A compiler that
 * unrolls such a loop late has already decided to keep the array in memory. */
#define UNROLL _Pragma("GCC unroll 24")

/* Operations on selected lanes. vector_test_range(lo, hi) selects lanes [lo, hi). VECTOR_FMA_WHERE
 * leaves c unchanged in all other lanes. VECTOR_LOAD_WHERE and VECTOR_STORE_WHERE do not access the
 * memory of other lanes. */
#if VECTOR_FLOATS == 16
#define VECTOR_LOAD_WHERE(test, at) ((vector)_mm512_maskz_loadu_ps((test), (at)))
#define VECTOR_STORE_WHERE(test, at, v) _mm512_mask_storeu_ps((at), (test), (__m512)(v))
typedef uint16_t vector_test;
static inline __attribute__((always_inline, unused)) vector_test vector_test_range(int64_t lo,
                                                                                   int64_t hi) {
    lo = lo < 0 ? 0 : lo > 16 ? 16 : lo;
    hi = hi < lo ? lo : hi > 16 ? 16 : hi;
    return (vector_test)((1u << hi) - (1u << lo));
}
#define VECTOR_FMA_WHERE(test, a, b, c) \
    ((vector)_mm512_mask3_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c), (test)))
#else
#if VECTOR_FLOATS == 8
#define VECTOR_LOAD_WHERE(test, at) ((vector)_mm256_maskload_ps((at), (__m256i)(test)))
#define VECTOR_STORE_WHERE(test, at, v) _mm256_maskstore_ps((at), (__m256i)(test), (__m256)(v))
#else
#define VECTOR_LOAD_WHERE(test, at) vector_load_where((test), (at))
#define VECTOR_STORE_WHERE(test, at, v) vector_store_where((test), (at), (v))
#endif
typedef vector_mask vector_test;
static inline __attribute__((always_inline, unused)) vector vector_load_where(vector_test test,
                                                                              const float *at) {
    vector v = {0};
    for (int i = 0; i < VECTOR_FLOATS; i++)
        if (test[i]) v[i] = at[i];
    return v;
}
static inline __attribute__((always_inline, unused)) void vector_store_where(vector_test test,
                                                                             float *at, vector v) {
    for (int i = 0; i < VECTOR_FLOATS; i++)
        if (test[i]) at[i] = v[i];
}
static inline __attribute__((always_inline, unused)) vector_test vector_test_range(int64_t lo,
                                                                                   int64_t hi) {
#if VECTOR_FLOATS == 8
    const vector_mask lane = {0, 1, 2, 3, 4, 5, 6, 7};
#else
    const vector_mask lane = {0, 1, 2, 3};
#endif
    lo = lo < 0 ? 0 : lo > VECTOR_FLOATS ? VECTOR_FLOATS : lo;
    hi = hi < 0 ? 0 : hi > VECTOR_FLOATS ? VECTOR_FLOATS : hi;
    return (lane >= (int32_t)lo) & (lane < (int32_t)hi);
}
#define VECTOR_FMA_WHERE(test, a, b, c) vector_select((test), VECTOR_FMA(a, b, c), c)
#endif

#define VARIANT_OF_BYTES(type)                                                                     \
    void VARIANT_NAME(pool_max_##type)(const struct rfx_byte_pool_args *args);                     \
    void VARIANT_NAME(widen_##type)(const void *x, int32_t zero_point, int16_t *out, int64_t n);   \
    void VARIANT_NAME(quantise_##type)(const float *x, float scale, int32_t zero_point, void *out, \
                                       int64_t n);                                                 \
    void VARIANT_NAME(quantise_shifted_##type)(const float *x, float scale, int32_t zero_point,    \
                                               void *out, int64_t n);                              \
    void VARIANT_NAME(mul_##type)(const void *a, int32_t a_zero, const void *b, int32_t b_zero,    \
                                  float factor, int32_t zero_point, void *out, int64_t n);         \
    void VARIANT_NAME(dequantise_##type)(const void *x, float scale, int32_t zero_point,           \
                                         float *out, int64_t n);                                   \
    void VARIANT_NAME(add_##type)(const void *a, float a_scale, const void *b, float b_scale,      \
                                  float shift, void *out, int64_t n);
VARIANT_OF_BYTES(u8)
VARIANT_OF_BYTES(i8)
void SET_NAME(int_conv)(const struct rfx_int_conv_args *args);
void VARIANT_NAME(int_depthwise)(const struct rfx_int_conv_args *args);
#ifdef VARIANT_INT_BYTES
void SET_NAME(int_depthwise_bytes)(const struct rfx_int_conv_args *args);
#endif
void VARIANT_NAME(act)(const struct rfx_act *act, const float *slope, const float *x, float *y,
                       int64_t pixels, int64_t c);
void VARIANT_NAME(epilogue)(const struct rfx_epilogue *e, float *x, int64_t stride,
                            const float *residual, int64_t residual_stride, int64_t pixels);
void VARIANT_NAME(binary)(enum rfx_binary_kind kind, const float *a, int64_t a_step, const float *b,
                          int64_t b_step, float *y, int64_t n);
void VARIANT_NAME(affine)(const float *x, const float *scale, const float *shift, float *y,
                          int64_t pixels, int64_t c);
void VARIANT_NAME(normalise)(const struct rfx_normalise_args *args);
void VARIANT_NAME(channel_norm)(const struct rfx_channel_norm_args *args);
void VARIANT_NAME(exp)(const float *x, float bias, float *y, int64_t n);
void VARIANT_NAME(exact)(const struct rfx_exact_args *args);
void VARIANT_NAME(depthwise)(const struct rfx_depthwise_args *args);
void VARIANT_NAME(pool)(const struct rfx_pool_args *args);
void VARIANT_NAME(dense)(const struct rfx_dense_args *args);
void VARIANT_NAME(interleave)(const float *planes, int64_t plane, int64_t c, int64_t pixels,
                              float *out);
#ifdef VARIANT_HAS_FMA
void VARIANT_NAME(conv)(const struct rfx_conv_args *args);
void VARIANT_NAME(lanes)(const struct rfx_lanes_args *args);
void VARIANT_NAME(expand)(const float *x, int64_t x_stride, int64_t pixels, const int32_t *from,
                          int64_t span, int64_t ic, float *out, int64_t plane);
void VARIANT_NAME(pixels)(const struct rfx_pixels_args *args);
void VARIANT_NAME(planes)(const float *x, int64_t x_stride, int64_t pixels, int64_t c, float *out,
                          int64_t plane);
void VARIANT_NAME(winograd_in)(const struct rfx_winograd_in *window);
void VARIANT_NAME(winograd_filters)(const struct rfx_winograd_filters *filters);
void VARIANT_NAME(winograd_out)(const struct rfx_winograd_out *tile);
#endif
int VARIANT_NAME(peak)(float factor, float term, int64_t rounds, float *sums);
int SET_NAME(peak_int)(uint8_t x, int8_t w, int64_t rounds, int32_t *sums);
extern const struct rfx_kernels SET_NAME(table);
#endif
