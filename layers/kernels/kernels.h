/* The vector kernels: one table of functions per instruction set, picked once at run time.
 *
 * Invariants: 1. the arithmetic of an element is the same at every place of a call, in the vector
 * body and in the remainder, so results do not depend on how work is cut into calls; 2. fused
 * multiply-adds are asked for by name, and only where the instruction set has them; 3. NaN
 * propagates, overflow gives infinity; 4. no kernel allocates or knows about rectangles. */
#ifndef RFX_LAYERS_KERNELS_KERNELS_H
#define RFX_LAYERS_KERNELS_KERNELS_H

#include <stdint.h>

#include "layers/graph/graph.h"

/* What follows the sums of a convolution, per pixel and channel: act(x + bias[c] + residual). */
struct rfx_epilogue {
    const float *bias;  /* c elements or NULL */
    const float *slope; /* c elements; PRELU only */
    const struct rfx_act *act;
    int64_t c;
};

/* A run of output pixels of n_rows rows of a depthwise convolution. Input pixel of tap (ky, kx) of
 * output pixel i of row j: rows[j * row_step + ky] + column * in_c, column = i * sw + kx * dw. Taps
 * whose row is NULL, and those whose column is outside [col0, col1), are outside the map and are
 * skipped. Packed weights: [kh][kw][c]. */
struct rfx_depthwise_args {
    const float *const *rows; /* kh + (n_rows - 1) * row_step pointers, to column 0 */
    const float *weights;
    const float *bias; /* c elements, never NULL */
    float *out;
    int64_t pixels, c, in_c, out_c;    /* in_c, out_c: floats from pixel to pixel */
    int64_t n_rows, row_step, out_row; /* out_row: floats from output row to output row */
    int64_t kh, kw, sw, dw;            /* dw may be negative */
    int64_t col0, col1;
    float lo, hi; /* the sum is clamped to [lo, hi] */
    bool far;     /* pixels come from memory rather than from a cache; no value hangs on it */
};

/* Sums of products: y[r][j] += (0 + x[r][0] * w[0][j] + x[r][1] * w[1][j] + ...) for r < rows,
 * j < m; the bracket is one chain of multiply-adds (fused where there is such) in this order, for
 * every element alike. */
struct rfx_dense_args {
    const float *x, *w;
    float *y;
    int64_t x_stride, w_stride, y_stride; /* floats from row to row; x rows may overlap */
    int64_t rows, k, m;
};

/* A run of output pixels of one row of a dense convolution (one group), for `m` output channels.
 * Input of tap (ky, kx) of output pixel i: the ic floats from rows[ky] + i * x_stride + kx *
 * tap_stride. Taps whose row is NULL, and columns outside [kx0, kx1), are skipped for all pixels.
 * Packed weights: [panel][ky][kx][ic][RFX_CONV_PANEL], a panel being RFX_CONV_PANEL output
 * channels; the last one is as narrow as its channels rounded up to RFX_CONV_LANES, and filled up
 * with zeros. Every element is one chain of fused multiply-adds: bias, then ky, kx, ic ascending;
 * where they are many, the parts of struct rfx_conv_parts, each a chain from 0, are added to the
 * bias in this order. Then the residual is added; then the value is clamped.
 *
 * Taps, counted row by row, may be made in several calls: what is between them is in `out`, without
 * residual and clamp. Only of sums in parts of one tap each (rfx_conv_parts), for whole panels; and
 * the residual is not `out` then. */
struct rfx_conv_args {
    const float *const *rows; /* kh pointers, to column kx = 0 of the first output pixel */
    const float *weights;
    const float *bias;     /* m floats, never NULL; as many as rfx_conv_filled can be read */
    const float *residual; /* NULL: none; may be `out` itself */
    float *out;
    int64_t pixels, m, ic, kh, kw, kx0, kx1;
    int64_t x_stride, tap_stride, out_stride, residual_stride; /* floats */
    int64_t taps_before, taps_after;                           /* that other calls make; 0: none */
    float lo, hi;
};

#define RFX_CONV_PANEL 32  /* output channels that are computed together */
#define RFX_CONV_LANES 16  /* the widest vector of any instruction set */
#define RFX_LINE_FLOATS 16 /* of a cache line */

/* m output channels with those that fill up the last panel. */
static inline int64_t rfx_conv_filled(int64_t m) {
    return (m + RFX_CONV_LANES - 1) / RFX_CONV_LANES * RFX_CONV_LANES;
}

/* Channels, with filling, of the panel from which on there are `left` channels. */
static inline int64_t rfx_conv_panel_width(int64_t left) {
    return left >= RFX_CONV_PANEL ? RFX_CONV_PANEL : rfx_conv_filled(left);
}

#define RFX_PEAK_SUMS 384 /* the most sums of any instruction set's `peak` */

/* A run of output pixels of one row of a dense convolution of few output channels, from planes:
 * input rows whose channels lie one after the other, a run of pixels each. Input of tap (ky, kx) of
 * output pixel i, channel c: rows[ky][shift[kx] + c * plane + i]. Taps whose row is NULL are
 * skipped, and tap kx for all pixels but `inside`[kx]. Up to RFX_PIXELS_AHEAD floats behind the
 * last pixel's are read, of a plane, and not used. Packed weights: [part][ky][kx][ic][output], a
 * part being RFX_PIXELS_PART outputs or what is left. Sums as in struct rfx_conv_args, but
 * the parts of long ones are whole taps, and those without products count as 0. */
struct rfx_pixels_args {
    const float *const *rows;       /* kh pointers */
    const int64_t *shift;           /* kw; may be negative */
    const struct rfx_range *inside; /* kw ranges of the run's pixels; may reach beyond it */
    const float *weights, *bias;    /* bias: m floats, never NULL */
    const float *residual;          /* NULL: none; may be `out` itself */
    float *out;
    int64_t pixels, m, ic, kh, kw;
    int64_t plane, out_stride, residual_stride; /* floats */
    float lo, hi;
};

#define RFX_PIXELS_PART 4   /* output channels that are computed together */
#define RFX_PIXELS_AHEAD 15 /* a vector less one */

/* The points at which F(4x4, 3x3) interpolates, beside 0 and infinity: these two and their
 * negatives. Exact, and so are all products of them that the transforms need. */
#define RFX_WINOGRAD_A 0.6875f
#define RFX_WINOGRAD_B 1.4375f

/* Rows and columns of a tile's window, and of its products: 2 or 4 output pixels lie side by side
 * (stride 1), 3 have a pixel between them (stride 2). */
static inline int64_t rfx_winograd_window(int64_t outputs) {
    return outputs == 3 ? 7 : outputs + 2;
}

/* Rows and columns of a filter's factors. With stride 2 pixels of odd rows and columns, the window
 * counted from 0, meet one tap only, the middle one: their products, the last 3, have one factor.
 */
static inline int64_t rfx_winograd_factors(int64_t outputs) {
    return outputs == 3 ? 5 : outputs + 2;
}

/* The window of one tile of outputs x outputs pixels (2 to 4), transformed: factors of products. */
struct rfx_winograd_in {
    const float *const *pixels; /* rfx_winograd_window squared, of c floats each, row by row */
    float *out; /* factor i of channel 0: out[i * step]; written to whole vectors: c rounded up to
                   RFX_CONV_LANES */
    int64_t c, step, outputs;
    int64_t ahead; /* floats from a pixel to one that will soon be wanted: a hint to the cache */
};

/* Filters of 3x3, transformed: factors of products. What the interpolation of tiles of 4x4 divides
 * by is left to struct rfx_winograd_out. */
struct rfx_winograd_filters {
    const float *taps; /* [c][9][width] */
    float *out;        /* factor n of channel i, filter j: out[n * step + i * width + j] */
    int64_t c, width, step, outputs; /* width: RFX_CONV_LANES or RFX_CONV_PANEL */
};

/* The sums of products of one tile, transformed back; then bias is added, then the residual, then
 * the value is clamped. */
struct rfx_winograd_out {
    const float *sums; /* sum i of channel `first`: sums[i * step]; read to whole vectors */
    const float *bias; /* of channel 0 */
    const float *const *residual; /* outputs^2 pixels, or NULL: none; may be `out` */
    float *const *out;            /* outputs^2 pixels, row by row; NULL: not wanted */
    int64_t first, c, step, outputs;
    int64_t ahead; /* floats from a pixel to the next tile's: a hint to the cache */
    float lo, hi;
};

/* A window of a pool: of each of c channels the largest value, minus infinity where there is none
 * and NaN where there is one, or the sum over rows, then columns, divided by `count`. */
struct rfx_pool_args {
    const float *const *rows;         /* of the window, at its first column */
    int64_t n_rows, n_cols, col_step; /* col_step: floats */
    float *out;                       /* not among the rows */
    int64_t c;
    bool maximum;
    bool begun, goes_on; /* from what earlier calls left in `out`; later ones follow */
    float count;
};

#define RFX_CONV_LONG 192 /* products: more are summed in parts, which keeps roundings small */
#define RFX_CONV_PART 128 /* products of a part, about */

/* How the products of an element are summed: a part is up to `taps` neighbouring taps of a kernel
 * row (the first at a multiple of `taps`) and up to `channels` input channels (likewise). */
struct rfx_conv_parts {
    bool split; /* else: one chain */
    int64_t taps, channels;
};

static inline struct rfx_conv_parts rfx_conv_parts(int64_t ic, int64_t kh, int64_t kw) {
    struct rfx_conv_parts parts = {ic * kh * kw > RFX_CONV_LONG, RFX_CONV_PART / ic, RFX_CONV_PART};
    if (parts.taps < 1) parts.taps = 1;
    if (parts.taps > kw) parts.taps = kw;
    return parts;
}

/* A run of output pixels of one row, for up to RFX_CONV_LANES output channels, lanes, each of which
 * has inputs of its own: expanded rows, RFX_CONV_LANES floats per pixel. Input i of tap (ky, kx) of
 * output pixel p, lane j: rows[ky][i * plane + column * RFX_CONV_LANES + j], column = p * sw + kx *
 * dw. Taps whose row is NULL, and those whose column is outside [col0, col1), are skipped. Packed
 * weights: [ky][kx][ic][RFX_CONV_LANES]. Sums as in struct rfx_conv_args, but always of one chain.
 */
struct rfx_lanes_args {
    const float *const *rows;
    const float *weights;
    const float *bias;     /* m floats; RFX_CONV_LANES can be read */
    const float *residual; /* NULL: none; may be `out` itself */
    float *out;
    int64_t pixels, m, ic, kh, kw, sw, dw, col0, col1;
    int64_t plane, out_stride, residual_stride; /* floats */
    float lo, hi;
};

/* Adds pixels of c floats each, or their squares, to the channels' sums, exactly. What is below
 * 2^13 in magnitude is added to `sums`, in units of 2^-38, what it is more or less than whole units
 * to `rests`, in units of 2^-86: less than 2^51 and 2^48 units each. Where it is more, not a
 * number, or no multiple of 2^-86, the value of x is handed to misfit instead. */
struct rfx_exact_args {
    const float *x;
    int64_t pixels, c;
    bool squares;
    int64_t *sums, *rests;
    void (*misfit)(void *user, int64_t channel, float value);
    void *user;
};

/* y = (x - mean[c]) * (inverse[c] * scale[c]) + shift[c], each step one rounding; densely packed; y
 * == x is fine. */
struct rfx_normalise_args {
    const float *x;
    float *y;
    const float *mean, *inverse, *scale, *shift;
    int64_t pixels, c;
};

/* Pixels by the statistics of their c channels, each by itself. With sums of all channels,
 * ascending, everything in double and rounded once at the end:
 *
 *     y = ((x - mean) * factor) * scale[i] + shift[i]
 *
 * LAYER: mean = sum(x) / c, factor = 1 / sqrt(sum((x - mean)^2) / c + eps). Of the others mean is
 * 0; RMS: factor = 1 / sqrt(sum(x^2) / c + eps); L2 and L1: 1 / sqrt(sum(x^2)) and 1 / sum(|x|),
 * or 0 where that sum is. Strides are floats from pixel to pixel; y == x is fine. */
struct rfx_channel_norm_args {
    const float *x;
    float *y;
    const float *scale, *shift; /* c elements */
    int64_t pixels, c, x_stride, y_stride;
    enum rfx_channel_norm kind;
    double eps;
};

/* A row of a pool's window, of uint8 or int8: out[i] becomes the largest of itself and of the row's
 * n_cols pixels, col_step elements apart, for each of c channels; not `begun`: of the type's
 * smallest number instead of itself. */
struct rfx_byte_pool_args {
    const void *row; /* its first pixel; not looked at where n_cols is 0 */
    void *out;       /* not in the row */
    int64_t n_cols, col_step, c;
    bool begun;
};

/* The kernels of a type of one byte. */
struct rfx_byte_kernels {
    void (*pool_max)(const struct rfx_byte_pool_args *run);
};

struct rfx_kernels {
    const char *name; /* "base", "avx2", "avx512", "neon" */

    /* The kernels of other types than float32. */
    struct rfx_byte_kernels u8, i8;

    /* The kernels of float32. */

    /* y = act(x) for `pixels` pixels of c channels, densely packed; y == x is fine. slope: c
     * elements, PRELU only, else NULL. */
    void (*act)(const struct rfx_act *act, const float *slope, const float *x, float *y,
                int64_t pixels, int64_t c);

    /* In place on `pixels` pixels, `stride` floats apart; residual (NULL: none) likewise with its
     * own stride. */
    void (*epilogue)(const struct rfx_epilogue *e, float *x, int64_t stride, const float *residual,
                     int64_t residual_stride, int64_t pixels);

    /* y[i] = a[i * a_step] op b[i * b_step] for n elements; a step is 1, or 0 for one operand that
     * is the same for all. y may be a or b where that one's step is 1. */
    void (*binary)(enum rfx_binary_kind kind, const float *a, int64_t a_step, const float *b,
                   int64_t b_step, float *y, int64_t n);

    /* y = x * scale[c] + shift[c], two roundings; densely packed; y == x is fine. */
    void (*affine)(const float *x, const float *scale, const float *shift, float *y, int64_t pixels,
                   int64_t c);

    void (*normalise)(const struct rfx_normalise_args *run);
    void (*channel_norm)(const struct rfx_channel_norm_args *run);

    /* y[i] = exp(x[i] - bias) (softmax). */
    void (*exp)(const float *x, float bias, float *y, int64_t n);

    void (*exact)(const struct rfx_exact_args *run);
    void (*depthwise)(const struct rfx_depthwise_args *run);
    void (*pool)(const struct rfx_pool_args *run);
    void (*dense)(const struct rfx_dense_args *run);

    /* These are NULL where the processor has no fused multiply-add: all or none. */
    void (*conv)(const struct rfx_conv_args *run);

    /* For measuring what the multiply-adders can do at most: sums[i] = sums[i] * factor + term,
     * `rounds` times, as in dense, for the first n of RFX_PEAK_SUMS sums, which are independent
     * and stay in registers. Returns n: rounds * n multiply-adds were done. */
    int (*peak)(float factor, float term, int64_t rounds, float *sums);

    void (*lanes)(const struct rfx_lanes_args *run);
    void (*pixels)(const struct rfx_pixels_args *run);

    /* Expanded rows: out[i * plane + p * RFX_CONV_LANES + j] = x[p * x_stride + from[j] + i], for
     * i < ic and all lanes j. Of a pixel, `span` floats are read, 16 at most; from[j] + ic <= span.
     */
    void (*expand)(const float *x, int64_t x_stride, int64_t pixels, const int32_t *from,
                   int64_t span, int64_t ic, float *out, int64_t plane);

    /* Pixels of c channels, x_stride floats apart -> planes: out[i * plane + p] = x[p * x_stride +
     * i]. */
    void (*planes)(const float *x, int64_t x_stride, int64_t pixels, int64_t c, float *out,
                   int64_t plane);

    void (*winograd_in)(const struct rfx_winograd_in *window);
    void (*winograd_filters)(const struct rfx_winograd_filters *filters);
    void (*winograd_out)(const struct rfx_winograd_out *tile);
};

/* The table for this processor; the environment variable RFX_KERNELS = base, avx2, avx512, neon
 * asks for one of those that it has. Never NULL, the same on every call. */
const struct rfx_kernels *rfx_kernels(void);

/* The column of UINT8 or INT8 in that table. */
const struct rfx_byte_kernels *rfx_kernels_of_bytes(enum rfx_type type);

/* The table of that name, or NULL when it is not built in or this processor cannot run it. */
const struct rfx_kernels *rfx_kernels_find(const char *name);

/* `dense`, through the table, for long sums: chains of RFX_CONV_PART products each, k ascending,
 * are added to y one after the other. */
void rfx_dense_in_parts(struct rfx_dense_args run);

/* y = x w by rfx_dense_in_parts, for rows one behind the other: x [rows][k], w [k][m], y [rows][m].
 */
void rfx_dense_product(const float *x, const float *w, float *y, int64_t rows, int64_t k,
                       int64_t m);

/* PRELU slopes as the kernels want them: bytes and values of c floats, an element repeated where
 * the weight has one. Other kinds: 0 bytes, nothing written. Status: as rfx_weight_read. */
size_t rfx_act_packed_bytes(const struct rfx_act *act, int64_t c);
RFX_NODISCARD enum rfx_status rfx_act_pack(const struct rfx_graph *graph, const struct rfx_act *act,
                                           int64_t c, float *packed, struct rfx_error *err);

/* y = act(x), densely packed pixels, through the table; slope: what rfx_act_pack wrote. */
void rfx_act_apply(const struct rfx_act *act, const float *slope, const float *x, float *y,
                   int64_t pixels, int64_t c);
#endif
