/* Depthwise integer convolution. Taps are multiplied two at a time: the values of two taps are
 * interleaved, and so are their weights. Sums are exact, so their order does not matter, and every
 * instruction set gives the same bytes.
 *
 * Kernels of 3 and 5 columns with strides 1 and 2 are unrolled. There, the two taps belong to two
 * kernel rows, so that interleaved values serve all pixels of a block that use the column. */
#include "layers/kernels/generic/blocks.h"
#include "layers/kernels/generic/int_vectors.h"
#include "layers/kernels/generic/variant.h"

#ifdef INT_VECTORS
#if VECTOR_FLOATS == 4
#define PIXELS 4 /* pixels that share registers */
#else
#define PIXELS 8
#endif
#define FEW 4       /* as many, for short runs and for kernels that are not unrolled */
#define MOST_ROWS 8 /* kernel rows whose interleaved weights are kept */
#define MOST_COLUMNS 5
#define SAME_SETS 1024

static const int16_t zeros[RFX_INT_LANES];

/* The kernel rows that are not NULL, two by two, for a block of channels. */
struct taps {
    const int16_t *x[MOST_ROWS];
    int64_t rows;
    /* The weights of column kx of rows 2 * i and 2 * i + 1. The last of an odd number of rows: the
     * weights of columns 2 * kx and 2 * kx + 1, or of a column and 0. */
    ints weights[(MOST_ROWS + 1) / 2][MOST_COLUMNS][IN_BLOCK];
};

/* Finds the rows, at channel c, and interleaves their weights. k: a->kw, a constant. */
INLINE void find_taps(const struct rfx_int_conv_args *a, int64_t c, int k, struct taps *t) {
    const int64_t filled = rfx_int_conv_filled(a->m);
    const int16_t *w[MOST_ROWS];
    t->rows = 0;
    for (int64_t ky = 0; ky < a->kh; ky++) {
        if (a->rows[ky] == NULL) continue;
        w[t->rows] = (const int16_t *)a->weights + ky * k * filled + c;
        t->x[t->rows++] = (const int16_t *)a->rows[ky] + c;
    }
    int64_t row = 0;
    for (; row + 1 < t->rows; row += 2)
        for (int kx = 0; kx < k; kx++)
            factors_of_taps(w[row] + kx * filled, w[row + 1] + kx * filled,
                            t->weights[row / 2][kx]);
    for (int kx = 0; row < t->rows && kx < k; kx += 2)
        factors_of_taps(w[row] + kx * filled, kx + 1 < k ? w[row] + (kx + 1) * filled : zeros,
                        t->weights[row / 2][kx / 2]);
}

/* Adds the products of two taps to vector v of a pixel's sums. VECTOR_KEEP: otherwise a compiler
 * would change the order of additions and run out of registers. */
#define ADD_TAPS(sum, x, w)              \
    do {                                 \
        sum = add_factors(sum, x, w, v); \
        VECTOR_KEEP(sum);                \
    } while (0)

/* Adds the products of two kernel rows to vector v of the sums of n pixels. */
INLINE void add_two_rows(ints sum[PIXELS], const int16_t *x0, const int16_t *x1, int64_t step,
                         ints w[MOST_COLUMNS][IN_BLOCK], int k, int s, int n, int v) {
    UNROLL for (int column = 0; column < (n - 1) * s + k; column++) {
        ints x[IN_BLOCK];
        factors_of_taps(x0 + column * step, x1 + column * step, x);
        UNROLL for (int p = 0; p < n; p++) {
            int kx = column - p * s;
            if (kx >= 0 && kx < k) ADD_TAPS(sum[p], x, w[kx]);
        }
    }
}

/* Adds the products of one kernel row. The weight of the column after a pixel's last tap is 0. */
INLINE void add_row(ints sum[PIXELS], const int16_t *x, int64_t step,
                    ints w[MOST_COLUMNS][IN_BLOCK], int k, int s, int n, int v) {
    const int columns = (n - 1) * s + k;
    UNROLL for (int column = 0; column < columns; column++) {
        ints two[IN_BLOCK];
        factors_of_taps(x + column * step, column + 1 < columns ? x + (column + 1) * step : zeros,
                        two);
        UNROLL for (int p = 0; p < n; p++) {
            int kx = column - p * s;
            if (kx >= 0 && kx < k && kx % 2 == 0) ADD_TAPS(sum[p], two, w[kx / 2]);
        }
    }
}

/* Packs and stores n pixels. A block that is not full is stored beside `out` first. */
INLINE void store_pixels(const struct rfx_int_conv_args *a, const struct target *to,
                         ints whole[PIXELS][IN_BLOCK], int64_t p0, int64_t c, int n) {
    uint8_t made[PIXELS * RFX_INT_LANES], *out = a->out + p0 * a->out_stride + c;
    const bool full = a->m - c >= RFX_INT_LANES;
    const int64_t step = full ? a->out_stride : RFX_INT_LANES;
    uint8_t *at = full ? out : made;
    UNROLL for (int p = 0; p < n; p++, at += step) store_elements(to, whole[p], true, at);
    if (!full) copy_elements(made, step, n, a->m - c, out, a->out_stride);
}

/* Computes n pixels from pixel p0 on, one vector of sums after the other. Then the sums and the
 * weights of a row fit into the registers. k, s and n are constants in all calls. */
INLINE void fixed_block(const struct rfx_int_conv_args *a, struct taps *t, const struct target *to,
                        int64_t p0, int64_t c, int k, int s, int n) {
    ints whole[PIXELS][IN_BLOCK];
    const int64_t at = p0 * a->x_stride;
    UNROLL for (int v = 0; v < IN_BLOCK; v++) {
        ints sum[PIXELS];
        UNROLL for (int p = 0; p < n; p++) sum[p] = to->bias[v];
        int64_t row = 0;
        for (; row + 1 < t->rows; row += 2)
            add_two_rows(sum, t->x[row] + at, t->x[row + 1] + at, a->tap_stride,
                         t->weights[row / 2], k, s, n, v);
        if (row < t->rows)
            add_row(sum, t->x[row] + at, a->tap_stride, t->weights[row / 2], k, s, n, v);
        UNROLL for (int p = 0; p < n; p++) whole[p][v] =
            rounded(floats_of(sum[p]) * to->scales[v], to->hi);
    }
    store_pixels(a, to, whole, p0, c, n);
}

/* Computes a run in portions of PIXELS pixels, then 4, then 1. The arguments are copied: otherwise
 * a compiler would read them again after every store, which might have changed them. */
INLINE void fixed_run(const struct rfx_int_conv_args *run, int k, int s) {
    const struct rfx_int_conv_args own = *run, *a = &own;
    for (int64_t c = 0; c < a->m; c += RFX_INT_LANES) {
        struct taps taps;
        const struct target to = target_of(&a->to, c, true);
        find_taps(a, c, k, &taps);
        for (int64_t p = 0; p < a->pixels;) {
            const struct portion portion = portion_at(p, a->pixels, PIXELS, FEW);
            if (portion.size == PIXELS)
                fixed_block(a, &taps, &to, portion.first, c, k, s, PIXELS);
            else if (portion.size == FEW)
                fixed_block(a, &taps, &to, portion.first, c, k, s, FEW);
            else
                fixed_block(a, &taps, &to, portion.first, c, k, s, 1);
            p = portion.first + portion.size;
        }
    }
}

#define FIXED(k, s)                                                  \
    static void fixed_##k##_##s(const struct rfx_int_conv_args *a) { \
        fixed_run(a, (k), (s));                                      \
    }
FIXED(3, 1)
FIXED(3, 2)
FIXED(5, 1)
FIXED(5, 2)

/* Adds the products of two taps of any kernel to the sums of n pixels. x and w: addresses of the
 * first pixel's values and of the weights. */
INLINE void add_two_taps(ints sum[FEW][IN_BLOCK], const int16_t *const x[2],
                         const int16_t *const w[2], int64_t x_stride, int n) {
    ints weights[IN_BLOCK];
    factors_of_taps(w[0], w[1], weights);
    UNROLL for (int p = 0; p < n; p++) {
        ints values[IN_BLOCK];
        factors_of_taps(x[0] + p * x_stride, x[1] + p * x_stride, values);
        UNROLL for (int v = 0; v < IN_BLOCK; v++) ADD_TAPS(sum[p][v], values, weights);
    }
}

/* Computes n pixels with any kernel. If the number of taps is odd, the last one is paired with
 * weights of 0. */
INLINE void any_block(const struct rfx_int_conv_args *a, const struct target *to, int64_t p0,
                      int64_t c, int n) {
    const int64_t filled = rfx_int_conv_filled(a->m);
    ints sum[FEW][IN_BLOCK], whole[PIXELS][IN_BLOCK];
    UNROLL for (int p = 0; p < n; p++) UNROLL for (int v = 0; v < IN_BLOCK; v++) sum[p][v] =
        to->bias[v];
    const int16_t *x[2], *w[2];
    int found = 0;
    for (int64_t ky = 0; ky < a->kh; ky++) {
        if (a->rows[ky] == NULL) continue;
        for (int64_t kx = 0; kx < a->kw; kx++) {
            x[found] = (const int16_t *)a->rows[ky] + p0 * a->x_stride + kx * a->tap_stride + c;
            w[found] = (const int16_t *)a->weights + (ky * a->kw + kx) * filled + c;
            if (found == 1) add_two_taps(sum, x, w, a->x_stride, n);
            found = 1 - found;
        }
    }
    if (found == 1) {
        x[1] = x[0];
        w[1] = zeros;
        add_two_taps(sum, x, w, a->x_stride, n);
    }
    if (a->sums != NULL) {
        UNROLL for (int p = 0; p < n; p++) {
            int32_t kept[RFX_INT_LANES];
            cross(sum[p]);
            keep_sums(sum[p], kept);
            finish_sums(a, p0 + p, c, kept);
        }
        return;
    }
    UNROLL for (int p = 0; p < n; p++) round_sums(to, sum[p], whole[p]);
    store_pixels(a, to, whole, p0, c, n);
}

static void any_run(const struct rfx_int_conv_args *run) {
    const struct rfx_int_conv_args own = *run, *a = &own;
    for (int64_t c = 0; c < a->m; c += RFX_INT_LANES) {
        const struct target to = target_of(&a->to, c, true);
        int64_t p = 0;
        for (; p + FEW <= a->pixels; p += FEW) any_block(a, &to, p, c, FEW);
        for (; p < a->pixels; p++) any_block(a, &to, p, c, 1);
    }
}

/* Unrolled kernels read the values of a block of pixels once per vector. That is slow if columns
 * are a multiple of SAME_SETS values apart: all are in two sets of the cache, which cannot hold
 * them until the next vector. */
void VARIANT_NAME(int_depthwise)(const struct rfx_int_conv_args *a) {
    const bool apart = a->tap_stride % SAME_SETS != 0;
    const bool one = a->x_stride == a->tap_stride, two = a->x_stride == 2 * a->tap_stride;
    if (a->sums != NULL || a->kh > MOST_ROWS || (a->kw != 3 && a->kw != 5) || !apart ||
        (!one && !two))
        any_run(a);
    else if (a->kw == 3)
        (one ? fixed_3_1 : fixed_3_2)(a);
    else
        (one ? fixed_5_1 : fixed_5_2)(a);
}
#else
void VARIANT_NAME(int_depthwise)(const struct rfx_int_conv_args *a) {
    const int64_t filled = rfx_int_conv_filled(a->m);
    for (int64_t p = 0; p < a->pixels; p++)
        for (int64_t c = 0; c < a->m; c += RFX_INT_LANES) {
            int32_t sums[RFX_INT_LANES];
            memcpy(sums, a->to.bias + c, sizeof sums);
            for (int64_t ky = 0; ky < a->kh; ky++) {
                if (a->rows[ky] == NULL) continue;
                for (int64_t kx = 0; kx < a->kw; kx++) {
                    const int16_t *x =
                        (const int16_t *)a->rows[ky] + p * a->x_stride + kx * a->tap_stride + c;
                    const int16_t *w = (const int16_t *)a->weights + (ky * a->kw + kx) * filled + c;
                    for (int i = 0; i < RFX_INT_LANES; i++) sums[i] += x[i] * w[i];
                }
            }
            finish_sums(a, p, c, sums);
        }
}
#endif
