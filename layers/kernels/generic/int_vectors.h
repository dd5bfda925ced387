/* Vectors of int32 sums of products of int16, for instruction sets that have such products.
 * INT_VECTORS is defined if this one has. Included by the integer convolutions.
 *
 * A block of RFX_INT_LANES channels is IN_BLOCK vectors of sums. Its factors are as many vectors:
 * two int16 for every sum, which come from input channels or taps that are multiplied together. */
#ifndef RFX_LAYERS_KERNELS_GENERIC_INT_VECTORS_H
#define RFX_LAYERS_KERNELS_GENERIC_INT_VECTORS_H

#include "layers/kernels/generic/variant.h"

/* Returns the smallest and the largest element. */
static inline int32_t least_of(const struct rfx_requantise *to) {
    return to->is_signed ? INT8_MIN : 0;
}

static inline int32_t most_of(const struct rfx_requantise *to) {
    return to->is_signed ? INT8_MAX : UINT8_MAX;
}

#if defined(__SSE2__) || defined(__aarch64__)
#define INT_VECTORS
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define INLINE static inline __attribute__((always_inline))
#define IN_BLOCK (RFX_INT_LANES / VECTOR_FLOATS)

typedef int32_t ints __attribute__((vector_size(VECTOR_FLOATS * 4)));
typedef int32_t ints_unaligned
    __attribute__((vector_size(VECTOR_FLOATS * 4), aligned(2), may_alias));
typedef uint8_t elements __attribute__((vector_size(RFX_INT_LANES)));
typedef uint8_t elements_unaligned
    __attribute__((vector_size(RFX_INT_LANES), aligned(1), may_alias));
#define INTS_LOAD(p) ((ints) * (const ints_unaligned *)(const void *)(p))
#define INTS_ALL(s) ((ints){0} + (s))

/* The operations of an instruction set:
 * - floats_of: converts to float32.
 * - rounded: at most `hi`, rounded to integers; too small a value becomes an integer that is
 * smaller than any `lo`.
 * - widened: converts RFX_INT_LANES elements.
 * - elements_of: sums to elements. `crossed`: the order of channels is that of factors_of_taps.
 * - factors_of_block: reads the weights of a block for a pair of input channels.
 * - factors_of_taps: combines the values of two taps for a block of channels.
 * - cross: changes the order of channels to that of factors_of_taps, or back.
 * - add_pair: adds to vector v of sums the products of a block's factors with one pair of values.
 * - add_factors: adds to vector v of sums the products of two blocks' factors. */
#if VECTOR_FLOATS == 16
#define LIMIT_ALL(s) INTS_ALL(s)

INLINE vector floats_of(ints v) {
    return (vector)_mm512_cvtepi32_ps((__m512i)v);
}

INLINE ints rounded(vector v, vector hi) {
    return (ints)_mm512_cvtps_epi32((__m512)VECTOR_MIN(hi, v));
}

INLINE void widened(const void *at, bool is_signed, ints v[IN_BLOCK]) {
    __m128i bytes = _mm_loadu_si128(at);
    v[0] = (ints)(is_signed ? _mm512_cvtepi8_epi32(bytes) : _mm512_cvtepu8_epi32(bytes));
}

INLINE elements elements_of(const ints whole[IN_BLOCK], ints lo, ints zero_point, bool crossed) {
    (void)crossed;
    __m512i least = _mm512_max_epi32((__m512i)whole[0], (__m512i)lo);
    return (elements)_mm512_cvtepi32_epi8(_mm512_add_epi32(least, (__m512i)zero_point));
}

INLINE void factors_of_block(const int8_t *w, ints factors[IN_BLOCK]) {
    factors[0] = (ints)_mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)w));
}

INLINE void factors_of_taps(const int16_t *a, const int16_t *b, ints factors[IN_BLOCK]) {
    const __m512i order =
        _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                         21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    __m512i left = _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)(const void *)a));
    __m512i both =
        _mm512_inserti64x4(left, _mm256_loadu_si256((const __m256i *)(const void *)b), 1);
    factors[0] = (ints)_mm512_permutexvar_epi16(order, both);
}

INLINE ints add_factors(ints sum, const ints x[IN_BLOCK], const ints w[IN_BLOCK], int v) {
    return (ints)_mm512_add_epi32((__m512i)sum, _mm512_madd_epi16((__m512i)x[v], (__m512i)w[v]));
}

INLINE void cross(ints v[IN_BLOCK]) {
    (void)v;
}
#elif VECTOR_FLOATS == 8
#define LIMIT_ALL(s) ((ints)_mm256_set1_epi16((int16_t)(s)))

INLINE vector floats_of(ints v) {
    return (vector)_mm256_cvtepi32_ps((__m256i)v);
}

INLINE ints rounded(vector v, vector hi) {
    return (ints)_mm256_cvtps_epi32((__m256)VECTOR_MIN(hi, v));
}

INLINE void widened(const void *at, bool is_signed, ints v[IN_BLOCK]) {
    __m128i low = _mm_loadu_si64(at), high = _mm_loadu_si64((const uint8_t *)at + 8);
    v[0] = (ints)(is_signed ? _mm256_cvtepi8_epi32(low) : _mm256_cvtepu8_epi32(low));
    v[1] = (ints)(is_signed ? _mm256_cvtepi8_epi32(high) : _mm256_cvtepu8_epi32(high));
}

INLINE elements elements_of(const ints whole[IN_BLOCK], ints lo, ints zero_point, bool crossed) {
    __m256i words = _mm256_packs_epi32((__m256i)whole[0], (__m256i)whole[1]);
    words = _mm256_add_epi16(_mm256_max_epi16(words, (__m256i)lo), (__m256i)zero_point);
    words = _mm256_and_si256(words, _mm256_set1_epi16(0xff));
    __m128i bytes =
        _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    return (elements)(crossed ? bytes : _mm_shuffle_epi32(bytes, _MM_SHUFFLE(3, 1, 2, 0)));
}

INLINE void factors_of_block(const int8_t *w, ints factors[IN_BLOCK]) {
    UNROLL for (int v = 0; v < IN_BLOCK; v++) factors[v] = (ints)_mm256_cvtepi8_epi16(
        _mm_loadu_si128((const __m128i *)(const void *)(w + RFX_INT_LANES * v)));
}

INLINE void factors_of_taps(const int16_t *a, const int16_t *b, ints factors[IN_BLOCK]) {
    __m256i left = (__m256i)INTS_LOAD(a), right = (__m256i)INTS_LOAD(b);
    factors[0] = (ints)_mm256_unpacklo_epi16(left, right);
    factors[1] = (ints)_mm256_unpackhi_epi16(left, right);
}

INLINE ints add_factors(ints sum, const ints x[IN_BLOCK], const ints w[IN_BLOCK], int v) {
    return (ints)_mm256_add_epi32((__m256i)sum, _mm256_madd_epi16((__m256i)x[v], (__m256i)w[v]));
}

/* The order of factors_of_taps is 0 to 3 and 8 to 11, then 4 to 7 and 12 to 15. */
INLINE void cross(ints v[IN_BLOCK]) {
    __m256i low = (__m256i)v[0], high = (__m256i)v[1];
    v[0] = (ints)_mm256_permute2x128_si256(low, high, 0x20);
    v[1] = (ints)_mm256_permute2x128_si256(low, high, 0x31);
}
#elif defined(__SSE2__)
#define LIMIT_ALL(s) ((ints)_mm_set1_epi16((int16_t)(s)))

INLINE vector floats_of(ints v) {
    return (vector)_mm_cvtepi32_ps((__m128i)v);
}

INLINE ints rounded(vector v, vector hi) {
    return (ints)_mm_cvtps_epi32(_mm_min_ps((__m128)hi, (__m128)v));
}

/* Each byte becomes the highest of an int32, which is then shifted to the right. */
INLINE void widened(const void *at, bool is_signed, ints v[IN_BLOCK]) {
    const __m128i zero = _mm_setzero_si128(), bytes = _mm_loadu_si128(at);
    __m128i words[2] = {_mm_unpacklo_epi8(zero, bytes), _mm_unpackhi_epi8(zero, bytes)};
    UNROLL for (int i = 0; i < IN_BLOCK; i++) {
        __m128i wide = i % 2 == 0 ? _mm_unpacklo_epi16(zero, words[i / 2])
                                  : _mm_unpackhi_epi16(zero, words[i / 2]);
        v[i] = (ints)(is_signed ? _mm_srai_epi32(wide, 24) : _mm_srli_epi32(wide, 24));
    }
}

INLINE elements elements_of(const ints whole[IN_BLOCK], ints lo, ints zero_point, bool crossed) {
    (void)crossed;
    __m128i words[2];
    for (int i = 0; i < 2; i++) {
        words[i] = _mm_packs_epi32((__m128i)whole[2 * i], (__m128i)whole[2 * i + 1]);
        words[i] = _mm_add_epi16(_mm_max_epi16(words[i], (__m128i)lo), (__m128i)zero_point);
        words[i] = _mm_and_si128(words[i], _mm_set1_epi16(0xff));
    }
    return (elements)_mm_packus_epi16(words[0], words[1]);
}

/* Each byte becomes the higher one of an int16, which is then shifted to the right. */
INLINE void factors_of_block(const int8_t *w, ints factors[IN_BLOCK]) {
    const __m128i zero = _mm_setzero_si128();
    UNROLL for (int i = 0; i < 2; i++) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(w + 16 * i));
        factors[2 * i] = (ints)_mm_srai_epi16(_mm_unpacklo_epi8(zero, bytes), 8);
        factors[2 * i + 1] = (ints)_mm_srai_epi16(_mm_unpackhi_epi8(zero, bytes), 8);
    }
}

INLINE void factors_of_taps(const int16_t *a, const int16_t *b, ints factors[IN_BLOCK]) {
    UNROLL for (int i = 0; i < 2; i++) {
        __m128i left = (__m128i)INTS_LOAD(a + 8 * i), right = (__m128i)INTS_LOAD(b + 8 * i);
        factors[2 * i] = (ints)_mm_unpacklo_epi16(left, right);
        factors[2 * i + 1] = (ints)_mm_unpackhi_epi16(left, right);
    }
}

INLINE ints add_factors(ints sum, const ints x[IN_BLOCK], const ints w[IN_BLOCK], int v) {
    return (ints)_mm_add_epi32((__m128i)sum, _mm_madd_epi16((__m128i)x[v], (__m128i)w[v]));
}

INLINE void cross(ints v[IN_BLOCK]) {
    (void)v;
}
#else /* AArch64. Vectors 2 * i and 2 * i + 1 of factors are the first and the second values of \
       * channels 8 * i to 8 * i + 7. */
#define LIMIT_ALL(s) ((ints)vdupq_n_s16((int16_t)(s)))

INLINE vector floats_of(ints v) {
    return (vector)vcvtq_f32_s32((int32x4_t)v);
}

INLINE ints rounded(vector v, vector hi) {
    return (ints)vcvtnq_s32_f32((float32x4_t)VECTOR_MIN(hi, v));
}

INLINE void widened(const void *at, bool is_signed, ints v[IN_BLOCK]) {
    uint8x16_t bytes = vld1q_u8(at);
    int16x8_t words[2];
    words[0] = is_signed ? vmovl_s8(vget_low_s8(vreinterpretq_s8_u8(bytes)))
                         : vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(bytes)));
    words[1] = is_signed ? vmovl_high_s8(vreinterpretq_s8_u8(bytes))
                         : vreinterpretq_s16_u16(vmovl_high_u8(bytes));
    UNROLL for (int i = 0; i < IN_BLOCK; i++) v[i] =
        (ints)(i % 2 == 0 ? vmovl_s16(vget_low_s16(words[i / 2])) : vmovl_high_s16(words[i / 2]));
}

INLINE elements elements_of(const ints whole[IN_BLOCK], ints lo, ints zero_point, bool crossed) {
    (void)crossed;
    int8x8_t bytes[2];
    for (int i = 0; i < 2; i++) {
        int16x8_t words = vcombine_s16(vqmovn_s32((int32x4_t)whole[2 * i]),
                                       vqmovn_s32((int32x4_t)whole[2 * i + 1]));
        words = vaddq_s16(vmaxq_s16(words, (int16x8_t)lo), (int16x8_t)zero_point);
        bytes[i] = vmovn_s16(words);
    }
    return (elements)vcombine_s8(bytes[0], bytes[1]);
}

INLINE void factors_of_block(const int8_t *w, ints factors[IN_BLOCK]) {
    int8x16x2_t pairs = vld2q_s8(w);
    UNROLL for (int i = 0; i < 2; i++) {
        factors[i] = (ints)vmovl_s8(vget_low_s8(pairs.val[i]));
        factors[2 + i] = (ints)vmovl_high_s8(pairs.val[i]);
    }
}

INLINE void factors_of_taps(const int16_t *a, const int16_t *b, ints factors[IN_BLOCK]) {
    UNROLL for (int i = 0; i < 2; i++) {
        factors[2 * i] = INTS_LOAD(a + 8 * i);
        factors[2 * i + 1] = INTS_LOAD(b + 8 * i);
    }
}

INLINE ints add_factors(ints sum, const ints x[IN_BLOCK], const ints w[IN_BLOCK], int v) {
    int32x4_t s = (int32x4_t)sum;
    for (int i = v / 2 * 2; i < v / 2 * 2 + 2; i++) {
        int16x8_t left = (int16x8_t)x[i], right = (int16x8_t)w[i];
        s = v % 2 == 0 ? vmlal_s16(s, vget_low_s16(left), vget_low_s16(right))
                       : vmlal_high_s16(s, left, right);
    }
    return (ints)s;
}

INLINE void cross(ints v[IN_BLOCK]) {
    (void)v;
}
#endif

#if defined(__aarch64__)
INLINE ints add_pair(ints sum, ints pair, const ints w[IN_BLOCK], int v) {
    int16x8_t first = (int16x8_t)w[v / 2 * 2], second = (int16x8_t)w[v / 2 * 2 + 1];
    int16x4_t x = vget_low_s16((int16x8_t)pair);
    int32x4_t s = (int32x4_t)sum;
    if (v % 2 == 0) {
        s = vmlal_lane_s16(s, vget_low_s16(first), x, 0);
        return (ints)vmlal_lane_s16(s, vget_low_s16(second), x, 1);
    }
    s = vmlal_high_lane_s16(s, first, x, 0);
    return (ints)vmlal_high_lane_s16(s, second, x, 1);
}
#else
INLINE ints add_pair(ints sum, ints pair, const ints w[IN_BLOCK], int v) {
    ints x[IN_BLOCK];
    x[v] = pair;
    return add_factors(sum, x, w, v);
}
#endif

/* Adds to vector v of sums the products of a block's weights with what a step of a dense
 * convolution takes from a pixel: four bytes or a pair of int16. */
#ifdef VARIANT_INT_BYTES
/* In assembly: with the intrinsic, gcc copies sums from register to register and to memory. */
INLINE ints add_step(ints sum, ints x, const ints w[IN_BLOCK], int v) {
#if VECTOR_FLOATS == 16
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(w[v]));
#else
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(x), "x"(w[v]));
#endif
    return sum;
}

#if VECTOR_FLOATS == 16
/* As add_step; the second half of the vector is not computed. */
INLINE ints add_half_step(ints sum, ints x, ints w) {
    __asm__("vpdpbusd %t2, %t1, %t0" : "+v"(sum) : "v"(x), "v"(w));
    return sum;
}
#endif
#else
#define add_step add_pair
#if VECTOR_FLOATS == 16
INLINE ints add_half_step(ints sum, ints x, ints w) {
    return add_pair(sum, x, &w, 0);
}
#endif
#endif

/* Returns a pair of int16 in all pairs of a vector. */
INLINE ints pair_at(const void *x) {
    int32_t pair;
    memcpy(&pair, x, sizeof pair);
    return INTS_ALL(pair);
}

/* Returns whether no kernel row is outside of the map. */
static inline bool has_all_rows(const struct rfx_int_conv_args *a) {
    for (int64_t ky = 0; ky < a->kh; ky++)
        if (a->rows[ky] == NULL) return false;
    return true;
}

/* A block of channels: where its sums begin, and what turns them into elements. */
struct target {
    ints bias[IN_BLOCK];
    vector scales[IN_BLOCK], hi;
    ints lo, zero_point;
};

/* Returns this of the block from channel c on. */
INLINE struct target target_of(const struct rfx_requantise *to, int64_t c, bool crossed) {
    struct target t = {.hi = VECTOR_ALL((float)(most_of(to) - to->zero_point)),
                       .lo = LIMIT_ALL(least_of(to) - to->zero_point),
                       .zero_point = LIMIT_ALL(to->zero_point)};
    ints scales[IN_BLOCK];
    UNROLL for (int v = 0; v < IN_BLOCK; v++) {
        t.bias[v] = INTS_LOAD(to->bias + c + v * VECTOR_FLOATS);
        scales[v] = INTS_LOAD(to->scales + c + v * VECTOR_FLOATS);
    }
    if (crossed) {
        cross(t.bias);
        cross(scales);
    }
    UNROLL for (int v = 0; v < IN_BLOCK; v++) t.scales[v] = (vector)scales[v];
    return t;
}

/* Scales and rounds a block's sums, in which the biases are contained. */
INLINE void round_sums(const struct target *t, const ints sum[IN_BLOCK], ints whole[IN_BLOCK]) {
    UNROLL for (int v = 0; v < IN_BLOCK; v++) whole[v] =
        rounded(floats_of(sum[v]) * t->scales[v], t->hi);
}

/* Stores the elements of RFX_INT_LANES channels. */
INLINE void store_elements(const struct target *t, const ints whole[IN_BLOCK], bool crossed,
                           uint8_t *out) {
    *(elements_unaligned *)(void *)out = elements_of(whole, t->lo, t->zero_point, crossed);
}

#if VECTOR_FLOATS >= 8
/* What turns rounded sums into elements, which are uint8 until the last step. */
struct ends {
    uint32_t zero_points; /* that of uint8, in two numbers of 16 bits */
    uint32_t flip;        /* the bits that differ between the types, in four elements */
};

INLINE struct ends ends_of(const struct rfx_requantise *to) {
    const uint32_t shift = to->is_signed ? 128 : 0;
    return (struct ends){0x00010001U * ((uint32_t)to->zero_point + shift), 0x01010101U * shift};
}
#endif

#if VECTOR_FLOATS == 16
/* Rounds four vectors of scaled sums. Returns their elements one after the other. */
INLINE __m512i elements_of_four(const struct ends *e, const vector scaled[4]) {
    const __m512i order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
    const __m512i zero_point = _mm512_set1_epi32((int32_t)e->zero_points);
    __m512i whole[4];
    UNROLL for (int i = 0; i < 4; i++) whole[i] = _mm512_cvtps_epi32((__m512)scaled[i]);
    __m512i left = _mm512_packs_epi32(whole[0], whole[1]);
    __m512i right = _mm512_packs_epi32(whole[2], whole[3]);
    if (e->zero_points != 0) { /* additions take units of the products */
        left = _mm512_adds_epi16(left, zero_point);
        right = _mm512_adds_epi16(right, zero_point);
    }
    __m512i bytes = _mm512_packus_epi16(left, right);
    bytes = _mm512_xor_si512(bytes, _mm512_set1_epi32((int32_t)e->flip));
    return _mm512_permutexvar_epi32(order, bytes);
}
#endif

#if VECTOR_FLOATS >= 8
/* Scales and rounds the sums of two vectors and adds the zero point. int_depthwise_bytes.c has such
 * vectors with AVX-512, too. */
INLINE __m256i round_two(const struct ends *e, __m256i first, __m256i second, __m256 first_scales,
                         __m256 second_scales) {
    const __m256i zero_point = _mm256_set1_epi32((int32_t)e->zero_points);
    first = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_cvtepi32_ps(first), first_scales));
    second = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_cvtepi32_ps(second), second_scales));
    return _mm256_adds_epi16(_mm256_packs_epi32(first, second), zero_point);
}

/* Returns the elements of what round_two has made, in the order of packs. */
INLINE __m256i elements_of_words(const struct ends *e, __m256i left, __m256i right) {
    return _mm256_xor_si256(_mm256_packus_epi16(left, right), _mm256_set1_epi32((int32_t)e->flip));
}
#endif

#if VECTOR_FLOATS == 8
/* Scales and rounds the sums of two pixels. Returns their elements one after the other. */
INLINE __m256i elements_of_two(const struct ends *e, const struct target *t,
                               const ints first[IN_BLOCK], const ints second[IN_BLOCK]) {
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const __m256 scales[2] = {(__m256)t->scales[0], (__m256)t->scales[1]};
    const __m256i left = round_two(e, (__m256i)first[0], (__m256i)first[1], scales[0], scales[1]);
    const __m256i right =
        round_two(e, (__m256i)second[0], (__m256i)second[1], scales[0], scales[1]);
    return _mm256_permutevar8x32_epi32(elements_of_words(e, left, right), order);
}
#endif

/* Stores the sums of a block. */
INLINE void keep_sums(const ints sum[IN_BLOCK], int32_t kept[RFX_INT_LANES]) {
    UNROLL for (int v = 0; v < IN_BLOCK; v++) *
        (ints_unaligned *)(void *)(kept + v * VECTOR_FLOATS) = sum[v];
}

/* Copies the first `channels` elements of n pixels that are `width` elements apart. */
static __attribute__((noinline, unused)) void copy_elements(const uint8_t *made, int64_t width,
                                                            int n, int64_t channels, uint8_t *out,
                                                            int64_t out_stride) {
    for (int p = 0; p < n; p++, made += width, out += out_stride)
        memcpy(out, made, (size_t)channels);
}
#endif

/* Writes the elements of up to RFX_INT_LANES channels of m, from channel c on, one by one. */
static inline void requantise(const struct rfx_requantise *to, int64_t c, int64_t m,
                              const int32_t *sums, uint8_t *out) {
    const float lo = (float)(least_of(to) - to->zero_point);
    const float hi = (float)(most_of(to) - to->zero_point);
    const float magic = 12582912.0f; /* 1.5 * 2^23: the sum has no bits for fractions */
    for (int64_t i = 0; i < RFX_INT_LANES && i < m - c; i++) {
        float v = (float)sums[i] * to->scales[c + i];
        v = v < lo ? lo : v;
        v = v > hi ? hi : v;
        out[i] = (uint8_t)((int32_t)((v + magic) - magic) + to->zero_point);
    }
}

/* Stores the sums of a block of channels of pixel p, in which the biases are contained: as they
 * are, or as elements. */
static __attribute__((noinline, unused)) void finish_sums(const struct rfx_int_conv_args *a,
                                                          int64_t p, int64_t c,
                                                          const int32_t *sums) {
    if (a->sums == NULL)
        requantise(&a->to, c, a->m, sums, a->out + p * a->out_stride + c);
    else
        for (int64_t i = 0; i < RFX_INT_LANES && i < a->m - c; i++)
            a->sums[p * a->out_stride + c + i] = sums[i];
}
#endif
