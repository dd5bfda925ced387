/* Dense convolution of few output channels over a run of output pixels: pixels in vectors, weights
 * broadcast. See struct rfx_pixels_args. An element's sum does not depend on how many pixels or
 * outputs share registers. */
#include <string.h>

#include "layers/kernels/generic/blocks.h"
#include "layers/kernels/generic/variant.h"
#include "layers/kernels/generic/vector_math.h"

#ifdef VARIANT_HAS_FMA

#define INLINE static inline __attribute__((always_inline))
#define MOST_VECTORS 8
#if VECTOR_FLOATS == 8
/* Sums that fit 16 registers. */
#define VECTORS_OF(m) ((m) == 1 ? 8 : (m) == 2 ? 5 : (m) == 3 ? 3 : 2)
#else
/* Sums that fit 32 registers. */
#define VECTORS_OF(m) ((m) == 1 ? 8 : (m) == 2 ? 8 : (m) == 3 ? 6 : 5)
#endif
_Static_assert(RFX_PIXELS_AHEAD >= VECTOR_FLOATS - 1, "a run's last vector may be read");

typedef vector sums[MOST_VECTORS][RFX_PIXELS_PART];

/* A block: n vectors of pixels from pixel p0 on, for one part of the outputs. */
struct block {
    int64_t p0;
    const float *weights, *bias, *residual;
    float *out;
};

/* Adds one tap of all input channels; if `some`, only in lanes for which the tests hold. */
INLINE void add_tap(sums sum, const float *x, int64_t plane, const float *w, int64_t ic, int n,
                    int m, bool some, const vector_test *tests) {
    for (int64_t i = 0; i < ic; i++, x += plane, w += m) {
        for (int v = 0; v < n; v++) {
            vector xv = VECTOR_LOAD(x + v * VECTOR_FLOATS);
            if (m > 1 && VECTOR_FLOATS == 16) VECTOR_KEEP(xv);
            for (int o = 0; o < m; o++) {
                vector wv = VECTOR_ALL(w[o]);
                sum[v][o] = some ? VECTOR_FMA_WHERE(tests[v], xv, wv, sum[v][o])
                                 : VECTOR_FMA(xv, wv, sum[v][o]);
            }
        }
    }
}

/* Ends a part of a long sum: adds it to `total`; the next part starts from 0. */
INLINE void end_part(sums total, sums sum, int n, int m) {
    for (int v = 0; v < n; v++)
        for (int o = 0; o < m; o++) {
            total[v][o] = total[v][o] + sum[v][o];
            sum[v][o] = VECTOR_ALL(0.0f);
        }
}

/* Adds one kernel row; w: weights of its first tap. A part ends at the same tap for every pixel,
 * also for pixels that skip some of its taps. */
INLINE void add_row(const struct rfx_pixels_args *r, const struct block *b, int64_t ky,
                    const float *w, sums sum, sums total, int64_t part_taps, int n, int m) {
    int64_t p1 = b->p0 + n * VECTOR_FLOATS < r->pixels ? b->p0 + n * VECTOR_FLOATS : r->pixels;
    for (int64_t kx = 0; kx < r->kw; kx++, w += r->ic * m) {
        struct rfx_range in = r->inside[kx];
        const float *x = r->rows[ky] + r->shift[kx] + b->p0;
        if (in.lo <= b->p0 && in.hi >= p1) {
            add_tap(sum, x, r->plane, w, r->ic, n, m, false, NULL);
        } else if (in.hi > b->p0 && in.lo < p1) {
            vector_test tests[MOST_VECTORS];
            for (int v = 0; v < n; v++) {
                int64_t p = b->p0 + v * VECTOR_FLOATS;
                tests[v] = vector_test_range(in.lo - p, in.hi - p);
            }
            add_tap(sum, x, r->plane, w, r->ic, n, m, true, tests);
        }
        if (total != NULL && ((kx + 1) % part_taps == 0 || kx + 1 == r->kw))
            end_part(total, sum, n, m);
    }
}

/* Adds all taps; total: for long sums, else NULL. */
INLINE void add_taps(const struct rfx_pixels_args *r, const struct block *b, sums sum, sums total,
                     int n, int m) {
    const int64_t part_taps = rfx_conv_parts(r->ic, r->kh, r->kw).taps;
    const float *w = b->weights;
    for (int64_t ky = 0; ky < r->kh; ky++, w += r->kw * r->ic * m)
        if (r->rows[ky] != NULL) add_row(r, b, ky, w, sum, total, part_taps, n, m);
}

/* Stores `count` values of output o to pixels that are not contiguous, or that are fewer than a
 * vector. */
static void scatter(const struct rfx_pixels_args *r, const struct block *b, int64_t p,
                    const float *values, int64_t count, int o) {
    float *out = b->out + p * r->out_stride + o;
    if (b->residual == NULL) {
        for (int64_t i = 0; i < count; i++)
            out[i * r->out_stride] = math_clamp(values[i], r->lo, r->hi);
        return;
    }
    const float *residual = b->residual + p * r->residual_stride + o;
    for (int64_t i = 0; i < count; i++)
        out[i * r->out_stride] =
            math_clamp(values[i] + residual[i * r->residual_stride], r->lo, r->hi);
}

INLINE void finish(const struct rfx_pixels_args *r, const struct block *b, sums sum, int n, int m) {
    const vector lo = VECTOR_ALL(r->lo), hi = VECTOR_ALL(r->hi);
    bool dense = r->out_stride == 1 && b->residual == NULL;
    for (int v = 0; v < n; v++) {
        int64_t p = b->p0 + v * VECTOR_FLOATS;
        int64_t count = r->pixels - p < VECTOR_FLOATS ? r->pixels - p : VECTOR_FLOATS;
        for (int o = 0; o < m; o++) {
            if (dense && count == VECTOR_FLOATS) {
                VECTOR_STORE(b->out + p, VECTOR_MIN(hi, VECTOR_MAX(lo, sum[v][o])));
                continue;
            }
            float values[VECTOR_FLOATS];
            VECTOR_STORE(values, sum[v][o]);
            scatter(r, b, p, values, count, o);
        }
    }
}

/* n, m and split are constants in all calls. */
INLINE void make_block(const struct rfx_pixels_args *r, const struct block *b, int n, int m,
                       bool split) {
    sums sum, total;
    for (int o = 0; o < m; o++)
        for (int v = 0; v < n; v++) {
            sum[v][o] = VECTOR_ALL(split ? 0.0f : b->bias[o]);
            if (split) total[v][o] = VECTOR_ALL(b->bias[o]);
        }
    add_taps(r, b, sum, split ? total : NULL, n, m);
    finish(r, b, split ? total : sum, n, m);
}

#define CASE(n, m)                                                   \
    case n:                                                          \
        if ((n) <= VECTORS_OF(m)) make_block(r, b, (n), (m), split); \
        return;

#define MAKE_OUTPUTS(m, name, splits)                                                       \
    static void name##_##m(const struct rfx_pixels_args *r, const struct block *b, int n) { \
        enum { split = splits };                                                            \
        switch (n) {                                                                        \
            CASES(MOST_VECTORS, CASE, m)                                                    \
            default:                                                                        \
                return;                                                                     \
        }                                                                                   \
    }
MAKE_OUTPUTS(1, chain, false)
MAKE_OUTPUTS(2, chain, false)
MAKE_OUTPUTS(3, chain, false)
MAKE_OUTPUTS(4, chain, false)
MAKE_OUTPUTS(1, parts, true)
MAKE_OUTPUTS(2, parts, true)
MAKE_OUTPUTS(3, parts, true)
MAKE_OUTPUTS(4, parts, true)

/* Computes all pixels of one part of the outputs. */
static void make_part(const struct rfx_pixels_args *r, struct block *b, int64_t m) {
    static void (*const makers[2][RFX_PIXELS_PART])(const struct rfx_pixels_args *,
                                                    const struct block *, int) = {
        {chain_1, chain_2, chain_3, chain_4}, {parts_1, parts_2, parts_3, parts_4}};
    bool split = rfx_conv_parts(r->ic, r->kh, r->kw).split;
    int64_t vectors = (r->pixels + VECTOR_FLOATS - 1) / VECTOR_FLOATS;
    const struct cut cut = cut_evenly(vectors, VECTORS_OF(m));
    b->p0 = 0;
    for (int64_t i = 0; i < cut.blocks; i++) {
        makers[split][m - 1](r, b, cut_size(&cut, i));
        b->p0 += (int64_t)cut_size(&cut, i) * VECTOR_FLOATS;
    }
}

void VARIANT_NAME(pixels)(const struct rfx_pixels_args *r) {
    for (int64_t o = 0; o < r->m; o += RFX_PIXELS_PART) {
        struct block b = {
            .weights = r->weights + o * r->kh * r->kw * r->ic,
            .bias = r->bias + o,
            .residual = r->residual == NULL ? NULL : r->residual + o,
            .out = r->out + o,
        };
        make_part(r, &b, r->m - o < RFX_PIXELS_PART ? r->m - o : RFX_PIXELS_PART);
    }
}
#endif
