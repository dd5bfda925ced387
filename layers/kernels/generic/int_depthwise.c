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
#define PIXELS 4    /* pixels that share registers */
#define MOST_ROWS 8 /* kernel rows whose interleaved weights are kept */
#define MOST_COLUMNS 5

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
        w[t->rows] = a->weights + ky * k * filled + c;
        t->x[t->rows++] = a->rows[ky] + c;
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

INLINE void add_all(ints sum[IN_BLOCK], const ints x[IN_BLOCK], const ints w[IN_BLOCK]) {
    UNROLL for (int v = 0; v < IN_BLOCK; v++) sum[v] = add_factors(sum[v], x, w, v);
}

/* Adds the products of two kernel rows to the sums of n pixels. */
INLINE void add_two_rows(ints sum[PIXELS][IN_BLOCK], const int16_t *x0, const int16_t *x1,
                         int64_t step, const ints w[MOST_COLUMNS][IN_BLOCK], int k, int s, int n) {
    UNROLL for (int column = 0; column < (n - 1) * s + k; column++) {
        ints x[IN_BLOCK];
        factors_of_taps(x0 + column * step, x1 + column * step, x);
        UNROLL for (int p = 0; p < n; p++) {
            int kx = column - p * s;
            if (kx >= 0 && kx < k) add_all(sum[p], x, w[kx]);
        }
    }
}

/* Adds the products of one kernel row. The weight of the column after a pixel's last tap is 0. */
INLINE void add_row(ints sum[PIXELS][IN_BLOCK], const int16_t *x, int64_t step,
                    const ints w[MOST_COLUMNS][IN_BLOCK], int k, int s, int n) {
    const int columns = (n - 1) * s + k;
    UNROLL for (int column = 0; column < columns; column++) {
        ints two[IN_BLOCK];
        factors_of_taps(x + column * step, column + 1 < columns ? x + (column + 1) * step : zeros,
                        two);
        UNROLL for (int p = 0; p < n; p++) {
            int kx = column - p * s;
            if (kx >= 0 && kx < k && kx % 2 == 0) add_all(sum[p], two, w[kx / 2]);
        }
    }
}

/* Stores n pixels. A block that is not full is stored beside `out` first. */
INLINE void store_pixels(const struct rfx_int_conv_args *a, const struct target *to,
                         ints sum[PIXELS][IN_BLOCK], int64_t p0, int64_t c, int n) {
    uint8_t made[PIXELS * RFX_INT_LANES], *out = a->out + p0 * a->out_stride + c;
    const bool full = a->m - c >= RFX_INT_LANES;
    const int64_t step = full ? a->out_stride : RFX_INT_LANES;
    uint8_t *at = full ? out : made;
    UNROLL for (int p = 0; p < n; p++, at += step) store_elements(to, sum[p], true, at);
    if (!full) copy_elements(made, step, n, a->m - c, out, a->out_stride);
}

/* Computes n pixels from pixel p0 on. k, s and n are constants in all calls. */
INLINE void fixed_block(const struct rfx_int_conv_args *a, const struct taps *t,
                        const struct target *to, const ints bias[IN_BLOCK], int64_t p0, int64_t c,
                        int k, int s, int n) {
    ints sum[PIXELS][IN_BLOCK];
    UNROLL for (int p = 0; p < n; p++) UNROLL for (int v = 0; v < IN_BLOCK; v++) sum[p][v] =
        bias[v];
    const int64_t at = p0 * a->x_stride;
    int64_t row = 0;
    for (; row + 1 < t->rows; row += 2)
        add_two_rows(sum, t->x[row] + at, t->x[row + 1] + at, a->tap_stride, t->weights[row / 2], k,
                     s, n);
    if (row < t->rows) add_row(sum, t->x[row] + at, a->tap_stride, t->weights[row / 2], k, s, n);
    store_pixels(a, to, sum, p0, c, n);
}

#define CASE(n, s)                                              \
    case n:                                                     \
        fixed_block(a, &taps, &to, bias, p0, c, (k), (s), (n)); \
        break;

/* Computes a run in blocks of pixels. The arguments are copied: otherwise a compiler would read
 * them again after every store, which might have changed them. */
INLINE void fixed_run(const struct rfx_int_conv_args *run, int k, int s) {
    const struct rfx_int_conv_args own = *run, *a = &own;
    const struct cut cut = cut_evenly(a->pixels, PIXELS);
    for (int64_t c = 0; c < a->m; c += RFX_INT_LANES) {
        struct taps taps;
        ints bias[IN_BLOCK];
        const struct target to = target_of(&a->to, c, true, bias);
        find_taps(a, c, k, &taps);
        int64_t p0 = 0;
        for (int64_t i = 0; i < cut.blocks; i++) {
            switch (cut_size(&cut, i)) {
                CASES(PIXELS, CASE, s)
                default:
                    break;
            }
            p0 += cut_size(&cut, i);
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

/* Computes n pixels with any kernel. Two taps are neighbours of a kernel row. */
INLINE void any_block(const struct rfx_int_conv_args *a, int64_t p0, int64_t c, int n) {
    const int64_t filled = rfx_int_conv_filled(a->m);
    ints sum[PIXELS][IN_BLOCK], bias[IN_BLOCK];
    const struct target to = target_of(&a->to, c, true, bias);
    UNROLL for (int p = 0; p < n; p++) UNROLL for (int v = 0; v < IN_BLOCK; v++) sum[p][v] =
        bias[v];
    for (int64_t ky = 0; ky < a->kh; ky++) {
        if (a->rows[ky] == NULL) continue;
        const int16_t *x = a->rows[ky] + p0 * a->x_stride + c;
        const int16_t *w = a->weights + ky * a->kw * filled + c;
        for (int64_t kx = 0; kx < a->kw; kx += 2, x += 2 * a->tap_stride, w += 2 * filled) {
            const bool two = kx + 1 < a->kw;
            const int64_t step = two ? a->tap_stride : 0; /* the weight of a missing tap is 0 */
            ints weights[IN_BLOCK];
            factors_of_taps(w, two ? w + filled : zeros, weights);
            UNROLL for (int p = 0; p < n; p++) {
                ints values[IN_BLOCK];
                factors_of_taps(x + p * a->x_stride, x + p * a->x_stride + step, values);
                add_all(sum[p], values, weights);
            }
        }
    }
    store_pixels(a, &to, sum, p0, c, n);
}

static void any_run(const struct rfx_int_conv_args *run) {
    const struct rfx_int_conv_args own = *run, *a = &own;
    for (int64_t c = 0; c < a->m; c += RFX_INT_LANES) {
        int64_t p0 = 0;
        for (; p0 + PIXELS <= a->pixels; p0 += PIXELS) any_block(a, p0, c, PIXELS);
        for (; p0 < a->pixels; p0++) any_block(a, p0, c, 1);
    }
}

void VARIANT_NAME(int_depthwise)(const struct rfx_int_conv_args *a) {
    const bool one = a->x_stride == a->tap_stride, two = a->x_stride == 2 * a->tap_stride;
    if (a->kh > MOST_ROWS || (a->kw != 3 && a->kw != 5) || (!one && !two))
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
            int32_t sums[RFX_INT_LANES] = {0};
            for (int64_t ky = 0; ky < a->kh; ky++) {
                if (a->rows[ky] == NULL) continue;
                for (int64_t kx = 0; kx < a->kw; kx++) {
                    const int16_t *x = a->rows[ky] + p * a->x_stride + kx * a->tap_stride + c;
                    const int16_t *w = a->weights + (ky * a->kw + kx) * filled + c;
                    for (int i = 0; i < RFX_INT_LANES; i++) sums[i] += x[i] * w[i];
                }
            }
            requantise(&a->to, c, a->m, sums, a->out + p * a->out_stride + c);
        }
}
#endif
