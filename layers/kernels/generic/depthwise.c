/* Depthwise convolution over a run of pixels, vectorised over channels. The chain of an element is
 * always: bias, then the taps inside the map in (ky, kx) order, then the clamp.
 *
 * Square kernels of 3, 5 and 7 with strides 1 and 2 are unrolled. A block of pixels (of two rows
 * for 3 x 3) stays in registers, and an input vector is read once for all taps of the block that
 * use it. Other kernels read an input vector once per tap. */
#include "layers/kernels/generic/variant.h"
#include "layers/kernels/generic/vector_math.h"

#define INLINE static inline __attribute__((always_inline))
#define PIXELS 8
#if VECTOR_FLOATS == 8
#define PIXELS_OF_TWO_ROWS 4 /* 8 sums, 6 weights and an input in 16 registers */
#else
#define PIXELS_OF_TWO_ROWS 8 /* 16 sums, 9 weights and an input in 32 registers */
#endif
#define MOST_KERNEL 7

/* A place in a run: pixels from p0 on, channels from ch on. */
struct place {
    int64_t p0, ch;
};

INLINE vector clamp(const struct rfx_depthwise_args *r, vector sum) {
    return VECTOR_MIN(VECTOR_ALL(r->hi), VECTOR_MAX(VECTOR_ALL(r->lo), sum));
}

/* Prefetches the new rows' pixels that the next block reads, and the pixels that it writes. They
 * are too far apart for the hardware prefetcher. */
INLINE void expect_next(const struct rfx_depthwise_args *r, struct place at, int k, int s, int n,
                        int rows) {
    for (int i = k - s; i < k + (rows - 1) * s; i++) {
        if (r->rows[i] == NULL) continue;
        const float *x = r->rows[i] + ((at.p0 + n - 1) * s + k) * r->in_c + at.ch;
        for (int p = 0; p < n * s; p++, x += r->in_c) __builtin_prefetch(x);
    }
    for (int j = 0; j < rows; j++) {
        const float *out = r->out + j * r->out_row + (at.p0 + n) * r->out_c + at.ch;
        for (int p = 0; p < n; p++, out += r->out_c) __builtin_prefetch(out, 1);
    }
}

/* Computes n pixels of `rows` rows for a square kernel of k and stride s. `edge`: some input
 * columns are outside the map. All arguments except r and at are constants in all calls. */
INLINE void fixed_block(const struct rfx_depthwise_args *r, struct place at, int k, int s, int n,
                        int rows, bool edge) {
    vector sum[2][PIXELS];
    vector bias = VECTOR_LOAD(r->bias + at.ch);
    int64_t first = at.p0 * s;
    UNROLL for (int j = 0; j < rows; j++) UNROLL for (int p = 0; p < n; p++) sum[j][p] = bias;
    if (r->far && !edge) expect_next(r, at, k, s, n, rows);
    UNROLL for (int i = 0; i < k + (rows - 1) * s; i++) {
        if (r->rows[i] == NULL) continue;
        const float *x = r->rows[i] + first * r->in_c + at.ch;
        const float *weights = r->weights + at.ch;
        vector w[2][MOST_KERNEL];
        UNROLL for (int j = 0; j < rows; j++) {
            if (i - j * s < 0 || i - j * s >= k) continue;
            UNROLL for (int kx = 0; kx < k; kx++) w[j][kx] =
                VECTOR_LOAD(weights + ((i - j * s) * k + kx) * r->c);
        }
        UNROLL for (int column = 0; column < (n - 1) * s + k; column++) {
            if (edge && (first + column < r->col0 || first + column >= r->col1)) continue;
            vector xv = VECTOR_LOAD(x + column * r->in_c);
            VECTOR_KEEP(xv);
            UNROLL for (int j = 0; j < rows; j++) {
                if (i - j * s < 0 || i - j * s >= k) continue;
                UNROLL for (int p = 0; p < n; p++) {
                    int kx = column - p * s;
                    if (kx >= 0 && kx < k) sum[j][p] = VECTOR_FMA(xv, w[j][kx], sum[j][p]);
                }
            }
        }
    }
    UNROLL for (int j = 0; j < rows; j++) UNROLL for (int p = 0; p < n; p++)
        VECTOR_STORE(r->out + j * r->out_row + (at.p0 + p) * r->out_c + at.ch, clamp(r, sum[j][p]));
}

/* Computes all channels of n pixels. The last vector may overlap the one before. */
INLINE void fixed_pixels(const struct rfx_depthwise_args *r, int64_t p0, int k, int s, int n,
                         int rows, bool edge) {
    int64_t last = r->c - VECTOR_FLOATS;
    for (int64_t ch = 0; ch < r->c; ch += VECTOR_FLOATS) {
        struct place at = {p0, ch < last ? ch : last};
        fixed_block(r, at, k, s, n, rows, edge);
    }
}

/* Whether all taps of the n pixels from p0 on are in the map's columns. */
INLINE bool inside(const struct rfx_depthwise_args *r, int64_t p0, int64_t n) {
    int64_t a = p0 * r->sw, b = (p0 + n - 1) * r->sw, reach = (r->kw - 1) * r->dw;
    if (reach < 0)
        a += reach;
    else
        b += reach;
    return a >= r->col0 && b < r->col1;
}

/* Computes a whole run in blocks of `most` pixels, then 4, then 1. A block may overlap the block
 * before it and compute the same pixels again. The arguments are copied, here and below: otherwise
 * a compiler would read them again after every store, which might have changed them. */
INLINE void fixed_run(const struct rfx_depthwise_args *run, int k, int s, int most, int rows) {
    const struct rfx_depthwise_args own = *run, *r = &own;
    for (int64_t p = 0; p < r->pixels;) {
        int64_t left = r->pixels - p;
        if (left >= most || (left > 4 && r->pixels >= most)) {
            int64_t p0 = left >= most ? p : r->pixels - most;
            if (inside(r, p0, most))
                fixed_pixels(r, p0, k, s, most, rows, false);
            else
                fixed_pixels(r, p0, k, s, most, rows, true);
            p = p0 + most;
        } else if (r->pixels >= 4) {
            int64_t p0 = left >= 4 ? p : r->pixels - 4;
            if (inside(r, p0, 4))
                fixed_pixels(r, p0, k, s, 4, rows, false);
            else
                fixed_pixels(r, p0, k, s, 4, rows, true);
            p = p0 + 4;
        } else {
            fixed_pixels(r, p++, k, s, 1, rows, true);
        }
    }
}

#define FIXED(k, s)                                                   \
    static void fixed_##k##_##s(const struct rfx_depthwise_args *r) { \
        fixed_run(r, (k), (s), PIXELS, 1);                            \
    }
FIXED(3, 1)
FIXED(3, 2)
FIXED(5, 1)
FIXED(5, 2)
FIXED(7, 1)
FIXED(7, 2)

static void two_rows_3_1(const struct rfx_depthwise_args *r) {
    fixed_run(r, 3, 1, PIXELS_OF_TWO_ROWS, 2);
}
static void two_rows_3_2(const struct rfx_depthwise_args *r) {
    fixed_run(r, 3, 2, PIXELS_OF_TWO_ROWS, 2);
}

/* Loads a vector: all lanes, or only the first ones if a pixel has fewer channels. */
INLINE vector load(const float *at, bool some, vector_test lanes) {
    return some ? VECTOR_LOAD_WHERE(lanes, at) : VECTOR_LOAD(at);
}

/* Computes n pixels of one row with any kernel; `edge` as above. n, some and edge are constants in
 * all calls. */
INLINE void any_block(const struct rfx_depthwise_args *r, struct place at, int n, bool some,
                      vector_test lanes, bool edge) {
    vector sum[PIXELS];
    vector bias = load(r->bias + at.ch, some, lanes);
    for (int p = 0; p < n; p++) sum[p] = bias;
    int64_t step = r->sw * r->in_c, tap_step = r->dw * r->in_c;
    for (int64_t ky = 0; ky < r->kh; ky++) {
        if (r->rows[ky] == NULL) continue;
        const float *x = r->rows[ky] + at.p0 * step + at.ch;
        const float *weights = r->weights + ky * r->kw * r->c + at.ch;
        for (int64_t kx = 0; kx < r->kw; kx++, x += tap_step, weights += r->c) {
            int64_t column = at.p0 * r->sw + kx * r->dw;
            bool all = column >= r->col0 && column + (n - 1) * r->sw < r->col1;
            vector w = load(weights, some, lanes);
            if (!edge || all) {
                UNROLL for (int p = 0; p < n; p++) sum[p] =
                    VECTOR_FMA(load(x + p * step, some, lanes), w, sum[p]);
                continue;
            }
            UNROLL for (int p = 0; p < n; p++, column += r->sw) {
                if (column < r->col0 || column >= r->col1) continue;
                sum[p] = VECTOR_FMA(load(x + p * step, some, lanes), w, sum[p]);
            }
        }
    }
    for (int p = 0; p < n; p++) {
        float *out = r->out + (at.p0 + p) * r->out_c + at.ch;
        if (some)
            VECTOR_STORE_WHERE(lanes, out, clamp(r, sum[p]));
        else
            VECTOR_STORE(out, clamp(r, sum[p]));
    }
}

INLINE void any_pixels(const struct rfx_depthwise_args *r, int64_t p0, int n, bool edge) {
    const vector_test lanes = vector_test_range(0, r->c);
    int64_t last = r->c - VECTOR_FLOATS;
    struct place at = {p0, 0};
    if (last < 0) {
        any_block(r, at, n, true, lanes, edge);
        return;
    }
    for (int64_t ch = 0; ch < r->c; ch += VECTOR_FLOATS) {
        at.ch = ch < last ? ch : last;
        any_block(r, at, n, false, lanes, edge);
    }
}

static void any_run(const struct rfx_depthwise_args *run) {
    const struct rfx_depthwise_args own = *run, *r = &own;
    for (int64_t p = 0; p < r->pixels;) {
        int64_t left = r->pixels - p;
        if (left >= PIXELS || (left > 2 && r->pixels >= PIXELS)) {
            int64_t p0 = left >= PIXELS ? p : r->pixels - PIXELS;
            if (inside(r, p0, PIXELS))
                any_pixels(r, p0, PIXELS, false);
            else
                any_pixels(r, p0, PIXELS, true);
            p = p0 + PIXELS;
        } else {
            any_pixels(r, p++, 1, true);
        }
    }
}

static void run_row(const struct rfx_depthwise_args *r) {
    static void (*const fixed[4][3])(const struct rfx_depthwise_args *) = {
        [1] = {NULL, fixed_3_1, fixed_3_2},
        [2] = {NULL, fixed_5_1, fixed_5_2},
        [3] = {NULL, fixed_7_1, fixed_7_2},
    };
    bool square = r->kh == r->kw && r->kh % 2 == 1 && r->kh >= 3 && r->kh <= MOST_KERNEL;
    if (square && r->dw == 1 && r->sw <= 2 && r->c >= VECTOR_FLOATS)
        fixed[r->kh / 2][r->sw](r);
    else
        any_run(r);
}

#if VECTOR_FLOATS == 16
void rfx_kernel_depthwise_avx2(const struct rfx_depthwise_args *r);
#endif

void VARIANT_NAME(depthwise)(const struct rfx_depthwise_args *r) {
#if VECTOR_FLOATS == 16
    if (r->c < VECTOR_FLOATS) { /* vectors of half the width leave fewer lanes idle */
        rfx_kernel_depthwise_avx2(r);
        return;
    }
#endif
    bool three = r->kh == 3 && r->kw == 3 && r->dw == 1 && r->c >= VECTOR_FLOATS;
    if (r->n_rows == 2 && three && r->row_step == r->sw && r->sw <= 2) {
        if (r->sw == 1)
            two_rows_3_1(r);
        else
            two_rows_3_2(r);
        return;
    }
    struct rfx_depthwise_args one = *r;
    for (int64_t j = 0; j < r->n_rows; j++) {
        run_row(&one);
        one.rows += r->row_step;
        one.out += r->out_row;
    }
}
