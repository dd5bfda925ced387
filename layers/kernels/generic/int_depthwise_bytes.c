/* Depthwise integer convolution with dot products of four uint8 and four int8 (VNNI). The four taps
 * of a product are in one column of the kernel: bytes of up to four rows are interleaved, which
 * serves all pixels that use the column. Sums are exact, so their order does not matter, and every
 * instruction set gives the same bytes.
 *
 * Vectors have 32 bytes, with AVX-512 too, but for 3x3 kernels (int_depthwise_columns.h).
 *
 * Vector i of four holds channels 4 i to 4 i + 3 of each half of 16 channels. That is how the
 * instructions interleave, and packing the results restores the order of channels. */
#include "layers/kernels/generic/blocks.h"
#include "layers/kernels/generic/int_vectors.h"
#include "layers/kernels/generic/variant.h"

#define CHANNELS (2 * RFX_INT_LANES) /* of a block */
#define MOST_QUADS 2                 /* of kernel rows, in kernels that are unrolled */
#define MOST_COLUMNS 5
#ifdef __AVX512F__
#define PIXELS 8 /* 16 sums, 2 vectors of values, 2 of rows and some weights in 32 registers */
#define SOME 4   /* pixels of any kernel: 16 sums, 4 vectors of values, 4 of weights */
#else
#define PIXELS 4 /* 8 sums, 2 vectors of values, 2 of rows and some weights in 16 registers */
#define SOME 2   /* pixels of any kernel: 8 sums, 4 vectors of values, 4 of weights */
#endif
#define FEW 4 /* pixels of a block in short runs */

/* In assembly: with the intrinsic, gcc copies sums from register to register. */
INLINE __m256i add_products(__m256i sum, __m256i x, __m256i w) {
#ifdef __AVX512F__
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(x), "vm"(w));
#else
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(x), "xm"(w));
#endif
    return sum;
}

/* Reads the bytes of a block; `wide`: it has 32 channels, not 16. */
INLINE __m256i bytes_at(const void *at, bool wide) {
    if (wide) return _mm256_loadu_si256((const __m256i *)at);
    return _mm256_inserti128_si256(_mm256_setzero_si256(), _mm_loadu_si128((const __m128i *)at), 0);
}

/* Interleaves the bytes of four taps: half `half` of the four vectors. */
INLINE void interleave_half(const __m256i taps[4], int half, __m256i out[2]) {
    const __m256i first =
        half == 0 ? _mm256_unpacklo_epi8(taps[0], taps[1]) : _mm256_unpackhi_epi8(taps[0], taps[1]);
    const __m256i second =
        half == 0 ? _mm256_unpacklo_epi8(taps[2], taps[3]) : _mm256_unpackhi_epi8(taps[2], taps[3]);
    out[0] = _mm256_unpacklo_epi16(first, second);
    out[1] = _mm256_unpackhi_epi16(first, second);
}

/* Reads four numbers of each half of a block from vector i on. */
INLINE __m256i numbers_at(const void *numbers, int i, bool wide) {
    const __m128i *at = (const __m128i *)numbers + i;
    const __m128i low = _mm_loadu_si128(at);
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low),
                                   wide ? _mm_loadu_si128(at + 4) : _mm_setzero_si128(), 1);
}

/* A block of channels: where its sums begin, and what turns them into elements. */
struct block {
    __m256i bias[4];
    __m256 scales[4];
    struct ends ends;
};

INLINE struct block block_of(const struct rfx_requantise *to, int64_t c, bool wide) {
    struct block b = {.ends = ends_of(to)};
    UNROLL for (int i = 0; i < 4; i++) {
        b.bias[i] = numbers_at(to->bias + c, i, wide);
        b.scales[i] = _mm256_castsi256_ps(numbers_at(to->scales + c, i, wide));
    }
    return b;
}

/* Scales and rounds half of a pixel's sums. */
INLINE __m256i round_half(const struct block *b, const __m256i sum[2], int half) {
    return round_two(&b->ends, sum[0], sum[1], b->scales[2 * half], b->scales[2 * half + 1]);
}

/* The kernel rows of a run, four by four, and the interleaved weights of a block. */
struct rows {
    const uint8_t *x[4 * MOST_QUADS];
    __m256i weights[MOST_QUADS][MOST_COLUMNS][4];
};

/* Returns how many of kh kernel rows are in quad q. */
INLINE int rows_of_quad(int kh, int q) {
    return kh - 4 * q < 4 ? kh - 4 * q : 4;
}

/* Reads what is at `at[0]` to `at[n - 1]`, and zeros for the rest of four. */
INLINE void read_rows(const uint8_t *const *at, int64_t from, int n, __m256i taps[4]) {
    UNROLL for (int i = 0; i < 4; i++) taps[i] =
        i < n ? bytes_at(at[i] + from, true) : _mm256_setzero_si256();
}

INLINE void find_rows(const struct rfx_int_conv_args *a, int64_t c, int kh, int kw,
                      struct rows *r) {
    const int64_t filled = rfx_int_conv_filled(a->m);
    const uint8_t *w[4 * MOST_QUADS];
    for (int ky = 0; ky < kh; ky++) {
        r->x[ky] = (const uint8_t *)a->rows[ky] + c;
        w[ky] = (const uint8_t *)a->weights + ky * kw * filled + c;
    }
    for (int q = 0; 4 * q < kh; q++)
        for (int kx = 0; kx < kw; kx++) {
            __m256i taps[4];
            read_rows(w + 4 * q, kx * filled, rows_of_quad(kh, q), taps);
            interleave_half(taps, 0, &r->weights[q][kx][0]);
            interleave_half(taps, 1, &r->weights[q][kx][2]);
        }
}

/* Adds the products of one quad of rows to half of the sums of n pixels. */
INLINE void add_quad(__m256i sum[PIXELS][2], const struct rows *r, int64_t at, int64_t step, int q,
                     int rows, int k, int s, int n, int half) {
    const uint8_t *from[4];
    UNROLL for (int i = 0; i < rows; i++) {
        from[i] = r->x[4 * q + i] + at;
        __asm__ volatile("" : "+r"(from[i]));
    }
    UNROLL for (int column = 0; column < (n - 1) * s + k; column++) {
        __m256i taps[4], x[2];
        read_rows(from, column * step, rows, taps);
        interleave_half(taps, half, x);
        UNROLL for (int p = 0; p < n; p++) {
            const int kx = column - p * s;
            if (kx < 0 || kx >= k) continue;
            UNROLL for (int i = 0; i < 2; i++) sum[p][i] =
                add_products(sum[p][i], x[i], r->weights[q][kx][2 * half + i]);
        }
    }
}

/* Stores the elements of a pixel's block. One that is not full is stored beside `out` first. */
INLINE void store_pixel(__m256i bytes, int64_t channels, uint8_t *out) {
    uint8_t made[CHANNELS];
    if (channels >= CHANNELS) {
        _mm256_storeu_si256((__m256i *)(void *)out, bytes);
        return;
    }
    _mm256_storeu_si256((__m256i *)(void *)made, bytes);
    copy_elements(made, CHANNELS, 1, channels, out, 0);
}

/* Computes n pixels from pixel p0 on, of the block from channel c on. k (rows and columns of the
 * kernel), s (stride) and n are constants in all calls. */
INLINE void fixed_block(const struct rfx_int_conv_args *a, const struct rows *r,
                        const struct block *b, int64_t p0, int64_t c, int k, int s, int n) {
    __m256i halves[PIXELS][2];
    UNROLL for (int half = 0; half < 2; half++) {
        __m256i sum[PIXELS][2];
        UNROLL for (int p = 0; p < n; p++) UNROLL for (int i = 0; i < 2; i++) sum[p][i] =
            b->bias[2 * half + i];
        UNROLL for (int q = 0; 4 * q < k; q++)
            add_quad(sum, r, p0 * a->x_stride, a->tap_stride, q, rows_of_quad(k, q), k, s, n, half);
        UNROLL for (int p = 0; p < n; p++) halves[p][half] = round_half(b, sum[p], half);
    }
    uint8_t *out = a->out + p0 * a->out_stride + c;
    UNROLL for (int p = 0; p < n; p++, out += a->out_stride)
        store_pixel(elements_of_words(&b->ends, halves[p][0], halves[p][1]), a->m - c, out);
}

/* Computes a run in portions of PIXELS pixels, then 4, then 1. */
INLINE void fixed_run(const struct rfx_int_conv_args *a, const struct block *b, int64_t c, int k,
                      int s) {
    struct rows rows;
    find_rows(a, c, k, k, &rows);
    for (int64_t p = 0; p < a->pixels;) {
        const struct portion portion = portion_at(p, a->pixels, PIXELS, FEW);
        if (portion.size == PIXELS)
            fixed_block(a, &rows, b, portion.first, c, k, s, PIXELS);
        else if (portion.size == FEW)
            fixed_block(a, &rows, b, portion.first, c, k, s, FEW);
        else
            fixed_block(a, &rows, b, portion.first, c, k, s, 1);
        p = portion.first + portion.size;
    }
}

#ifdef __AVX512F__
#define COLUMNS_BITS 256
#include "layers/kernels/generic/int_depthwise_columns.h"
#define COLUMNS_BITS 512
#include "layers/kernels/generic/int_depthwise_columns.h"
#endif

/* Adds the products of up to four taps of any kernel to the sums of n pixels. x and w: addresses
 * of the first pixel's values and of the weights. */
INLINE void add_taps(__m256i sum[SOME][4], const uint8_t *const x[4], const uint8_t *const w[4],
                     int found, int64_t x_stride, int n, bool wide) {
    __m256i taps[4], weights[4];
    for (int i = 0; i < 4; i++) taps[i] = i < found ? bytes_at(w[i], wide) : _mm256_setzero_si256();
    interleave_half(taps, 0, weights);
    interleave_half(taps, 1, weights + 2);
    UNROLL for (int p = 0; p < n; p++) {
        __m256i values[4];
        UNROLL for (int i = 0; i < 4; i++) taps[i] = bytes_at(x[i] + p * x_stride, wide);
        interleave_half(taps, 0, values);
        interleave_half(taps, 1, values + 2);
        UNROLL for (int i = 0; i < 4; i++) sum[p][i] =
            add_products(sum[p][i], values[i], weights[i]);
    }
}

/* Adds the products of all taps. Of a last quad that is not full, the missing taps have the values
 * of another and weights of 0. */
INLINE void add_kernel(const struct rfx_int_conv_args *a, int64_t p0, int64_t c, int n, bool wide,
                       __m256i sum[SOME][4]) {
    const int64_t filled = rfx_int_conv_filled(a->m);
    const uint8_t *x[4], *w[4];
    int found = 0;
    for (int64_t ky = 0; ky < a->kh; ky++) {
        if (a->rows[ky] == NULL) continue;
        for (int64_t kx = 0; kx < a->kw; kx++) {
            x[found] = (const uint8_t *)a->rows[ky] + p0 * a->x_stride + kx * a->tap_stride + c;
            w[found] = (const uint8_t *)a->weights + (ky * a->kw + kx) * filled + c;
            if (++found < 4) continue;
            add_taps(sum, x, w, 4, a->x_stride, n, wide);
            found = 0;
        }
    }
    if (found == 0) return;
    for (int i = found; i < 4; i++) x[i] = x[0];
    add_taps(sum, x, w, found, a->x_stride, n, wide);
}

/* Computes n pixels with any kernel. `large`: scaled sums may be too large for integers. */
INLINE void any_block(const struct rfx_int_conv_args *a, const struct block *b, int64_t p0,
                      int64_t c, int n, bool wide, bool large) {
    __m256i sum[SOME][4];
    UNROLL for (int p = 0; p < n; p++) UNROLL for (int i = 0; i < 4; i++) sum[p][i] = b->bias[i];
    add_kernel(a, p0, c, n, wide, sum);
    for (int p = 0; p < n; p++) {
        if (a->sums == NULL && !large) {
            __m256i halves[2] = {round_half(b, sum[p], 0), round_half(b, sum[p] + 2, 1)};
            store_pixel(elements_of_words(&b->ends, halves[0], halves[1]), a->m - c,
                        a->out + (p0 + p) * a->out_stride + c);
            continue;
        }
        int32_t kept[CHANNELS];
        for (int i = 0; i < 4; i++) {
            const __m128i low = _mm256_castsi256_si128(sum[p][i]),
                          high = _mm256_extracti128_si256(sum[p][i], 1);
            _mm_storeu_si128((__m128i *)(void *)(kept + 4 * i), low);
            _mm_storeu_si128((__m128i *)(void *)(kept + RFX_INT_LANES + 4 * i), high);
        }
        finish_sums(a, p0 + p, c, kept);
        if (wide) finish_sums(a, p0 + p, c + RFX_INT_LANES, kept + RFX_INT_LANES);
    }
}

static void any_pixels(const struct rfx_int_conv_args *a, const struct block *b, int64_t c,
                       bool wide, bool large) {
    int64_t p = 0;
    for (; p + SOME <= a->pixels; p += SOME)
        if (wide)
            any_block(a, b, p, c, SOME, true, large);
        else
            any_block(a, b, p, c, SOME, false, large);
    for (; p < a->pixels; p++)
        if (wide)
            any_block(a, b, p, c, 1, true, large);
        else
            any_block(a, b, p, c, 1, false, large);
}

#define FIXED(k, s)                                                                       \
    static void fixed_##k##_##s(const struct rfx_int_conv_args *a, const struct block *b, \
                                int64_t c) {                                              \
        fixed_run(a, b, c, (k), (s));                                                     \
    }
#ifndef __AVX512F__
FIXED(3, 1)
FIXED(3, 2)
#endif
FIXED(5, 1)
FIXED(5, 2)

typedef void fixed(const struct rfx_int_conv_args *a, const struct block *b, int64_t c);

/* Returns the stride, 1 or 2, of a run that unrolled kernels can compute; 0: they cannot. */
static int unrolled_stride(const struct rfx_int_conv_args *a) {
    const bool square = a->kh == a->kw && a->m > RFX_INT_LANES;
    if (a->sums != NULL || !a->to.small_scales || !square || !has_all_rows(a)) return 0;
    return a->x_stride == a->tap_stride ? 1 : a->x_stride == 2 * a->tap_stride ? 2 : 0;
}

/* Returns the unrolled kernel for this run, NULL if there is none. */
static fixed *find_fixed(const struct rfx_int_conv_args *a) {
    const int stride = unrolled_stride(a);
    const bool one = stride == 1;
    if (stride == 0) return NULL;
#ifndef __AVX512F__
    if (a->kw == 3) return one ? fixed_3_1 : fixed_3_2;
#endif
    if (a->kw == 5) return one ? fixed_5_1 : fixed_5_2;
    return NULL;
}

#ifdef __AVX512F__
/* Computes all channels column by column. Returns false if it cannot. A block may overlap the one
 * before it and compute the same channels again. */
static bool by_columns(const struct rfx_int_conv_args *a) {
    const int stride = unrolled_stride(a);
    const bool one = stride == 1;
    const int64_t filled = rfx_int_conv_filled(a->m);
    if (stride == 0 || a->kw != 3) return false;
    for (int64_t c = 0; c < filled;) {
        if (filled - c > 32 && filled >= 64) {
            if (c > filled - 64) c = filled - 64;
            (one ? columns_1_512 : columns_2_512)(a, c);
            c += 64;
        } else {
            if (c > filled - 32) c = filled - 32;
            (one ? columns_1_256 : columns_2_256)(a, c);
            c += 32;
        }
    }
    return true;
}
#endif

/* The last block may overlap the one before it and compute the same channels again. The arguments
 * are copied: otherwise a compiler would read them again after every store, which might have
 * changed them. */
void SET_NAME(int_depthwise_bytes)(const struct rfx_int_conv_args *run) {
    const struct rfx_int_conv_args own = *run, *a = &own;
    const int64_t filled = rfx_int_conv_filled(a->m);
    const bool wide = filled >= CHANNELS;
#ifdef __AVX512F__
    if (by_columns(a)) return;
#endif
    const bool large = !a->to.small_scales;
    fixed *const run_fixed = find_fixed(a);
    for (int64_t c = 0; c < filled; c += CHANNELS) {
        if (wide && c > filled - CHANNELS) c = filled - CHANNELS;
        const struct block block = block_of(&a->to, c, wide);
        if (run_fixed != NULL)
            run_fixed(a, &block, c);
        else
            any_pixels(a, &block, c, wide, large);
    }
}
