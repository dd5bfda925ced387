/* Convolution in which each output channel has its own inputs: groups of few channels, with the
 * channels of several groups in one vector. See struct rfx_lanes_args. An element's sum does not
 * depend on how many pixels share registers. */
#include "layers/kernels/generic/blocks.h"
#include "layers/kernels/generic/conv_finish.h"
#include "layers/kernels/generic/variant.h"
#include "layers/kernels/generic/vector_math.h"

#ifdef VARIANT_HAS_FMA

#define INLINE static inline __attribute__((always_inline))
#define PIXELS 12 /* sums in registers; inputs are read from memory by the multiply-add */

/* Adds one tap: all inputs of the group. If `some`, pixels outside [lo, hi) are skipped. */
INLINE void add_tap(vector sum[PIXELS], const struct rfx_lanes_args *r, const float *x,
                    const float *w, int n, int64_t sw, bool some, int64_t lo, int64_t hi) {
    for (int64_t i = 0; i < r->ic; i++, x += r->plane, w += RFX_CONV_LANES) {
        vector wv = VECTOR_LOAD(w);
        for (int p = 0; p < n; p++) {
            if (some && (p < lo || p >= hi)) continue;
            sum[p] = VECTOR_FMA(VECTOR_LOAD(x + p * sw * RFX_CONV_LANES), wv, sum[p]);
        }
    }
}

/* Computes n pixels from p0 on, for the vector of lanes from `lane` on. n and sw are constants in
 * the calls that take most of the time. */
INLINE void make_block(const struct rfx_lanes_args *r, int64_t p0, int64_t lane, int n,
                       int64_t sw) {
    vector sum[PIXELS];
    vector bias = VECTOR_LOAD(r->bias + lane);
    for (int p = 0; p < n; p++) sum[p] = bias;
    for (int64_t ky = 0; ky < r->kh; ky++) {
        if (r->rows[ky] == NULL) continue;
        const float *w = r->weights + ky * r->kw * r->ic * RFX_CONV_LANES + lane;
        for (int64_t kx = 0; kx < r->kw; kx++, w += r->ic * RFX_CONV_LANES) {
            int64_t column = p0 * sw + kx * r->dw;
            const float *x = r->rows[ky] + column * RFX_CONV_LANES + lane;
            if (column >= r->col0 && column + (n - 1) * sw < r->col1) {
                add_tap(sum, r, x, w, n, sw, false, 0, 0);
                continue;
            }
            int64_t lo = (r->col0 - column + sw - 1) / sw, hi = (r->col1 - column + sw - 1) / sw;
            add_tap(sum, r, x, w, n, sw, true, column >= r->col0 ? 0 : lo,
                    column >= r->col1 ? 0 : hi);
        }
    }
    for (int p = 0; p < n; p++)
        conv_finish(sum[p], r->lo, r->hi,
                    r->residual == NULL ? NULL : r->residual + (p0 + p) * r->residual_stride + lane,
                    r->out + (p0 + p) * r->out_stride + lane, r->m - lane);
}

#define CASE(n, sw)                       \
    case n:                               \
        make_block(r, p0, lane, (n), sw); \
        return;

/* Works on a copy of the arguments: otherwise a compiler would read them again after every store,
 * which might have changed them. */
INLINE void make_pixels(const struct rfx_lanes_args *run, int64_t p0, int64_t lane, int n,
                        int64_t sw) {
    const struct rfx_lanes_args own = *run, *r = &own;
    switch (n) {
        CASES(PIXELS, CASE, sw)
        default:
            return;
    }
}

static void pixels_1(const struct rfx_lanes_args *r, int64_t p0, int64_t lane, int n) {
    make_pixels(r, p0, lane, n, 1);
}
static void pixels_2(const struct rfx_lanes_args *r, int64_t p0, int64_t lane, int n) {
    make_pixels(r, p0, lane, n, 2);
}

void VARIANT_NAME(lanes)(const struct rfx_lanes_args *r) {
    const struct cut cut = cut_evenly(r->pixels, PIXELS);
    for (int64_t lane = 0; lane < r->m; lane += VECTOR_FLOATS)
        for (int64_t i = 0, p0 = 0; i < cut.blocks; i++) {
            int n = cut_size(&cut, i);
            if (r->sw == 1)
                pixels_1(r, p0, lane, n);
            else if (r->sw == 2)
                pixels_2(r, p0, lane, n);
            else
                for (int p = 0; p < n; p++) make_block(r, p0 + p, lane, 1, r->sw);
            p0 += n;
        }
}

/* Pixels that are expanded together, for one input of the groups after the other. */
#define EXPANDED 16

/* Expands input i of n pixels: selects floats from[j] + i of the 16 floats at x, of which `span`
 * are read. */
#if VECTOR_FLOATS == 16
INLINE void pick(const float *x, int64_t x_stride, int64_t n, const int32_t *from, int64_t span,
                 int32_t i, float *out) {
    const vector_test all = vector_test_range(0, span);
    __m512i index = _mm512_add_epi32(_mm512_loadu_si512(from), _mm512_set1_epi32(i));
    for (int64_t p = 0; p < n; p++, x += x_stride, out += RFX_CONV_LANES)
        VECTOR_STORE(out, (vector)_mm512_permutexvar_ps(index, (__m512)VECTOR_LOAD_WHERE(all, x)));
}
#elif VECTOR_FLOATS == 8
INLINE __m256 pick_half(__m256 low, __m256 high, __m256i index) {
    __m256i second = _mm256_cmpgt_epi32(index, _mm256_set1_epi32(7));
    return _mm256_blendv_ps(_mm256_permutevar8x32_ps(low, index),
                            _mm256_permutevar8x32_ps(high, index), _mm256_castsi256_ps(second));
}

INLINE void pick(const float *x, int64_t x_stride, int64_t n, const int32_t *from, int64_t span,
                 int32_t i, float *out) {
    const vector_test first = vector_test_range(0, span), second = vector_test_range(0, span - 8);
    const __m256i *at = (const __m256i *)(const void *)from;
    __m256i a = _mm256_add_epi32(_mm256_loadu_si256(at), _mm256_set1_epi32(i));
    __m256i b = _mm256_add_epi32(_mm256_loadu_si256(at + 1), _mm256_set1_epi32(i));
    for (int64_t p = 0; p < n; p++, x += x_stride, out += RFX_CONV_LANES) {
        __m256 low = (__m256)VECTOR_LOAD_WHERE(first, x);
        __m256 high = (__m256)VECTOR_LOAD_WHERE(second, x + 8);
        _mm256_storeu_ps(out, pick_half(low, high, a));
        _mm256_storeu_ps(out + 8, pick_half(low, high, b));
    }
}
#else
INLINE void pick(const float *x, int64_t x_stride, int64_t n, const int32_t *from, int64_t span,
                 int32_t i, float *out) {
    (void)span;
    for (int64_t p = 0; p < n; p++, x += x_stride, out += RFX_CONV_LANES)
        for (int j = 0; j < RFX_CONV_LANES; j++) out[j] = x[from[j] + i];
}
#endif

void VARIANT_NAME(expand)(const float *x, int64_t x_stride, int64_t pixels, const int32_t *from,
                          int64_t span, int64_t ic, float *out, int64_t plane) {
    for (int64_t p = 0; p < pixels; p += EXPANDED) {
        int64_t n = pixels - p < EXPANDED ? pixels - p : EXPANDED;
        for (int64_t q = p + EXPANDED; q < p + 2 * EXPANDED && q < pixels; q++)
            /* Pixels are too far apart for the hardware prefetcher. */
            __builtin_prefetch(x + q * x_stride);
        for (int64_t i = 0; i < ic; i++)
            pick(x + p * x_stride, x_stride, n, from, span, (int32_t)i,
                 out + i * plane + p * RFX_CONV_LANES);
    }
}
#endif
