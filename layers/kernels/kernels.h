/* The vector kernels: one table of functions per instruction set, selected once at run time.
 *
 * Invariants: 1. the arithmetic of an element is the same at every place of a call, in the vector
 * body and in the remainder, so results do not depend on how work is divided into calls; 2. fused
 * multiply-adds are written explicitly, and are used only if the instruction set has them; 3. NaN
 * propagates, overflow gives infinity; 4. no kernel allocates memory or handles rectangles. */
#ifndef RFX_LAYERS_KERNELS_KERNELS_H
#define RFX_LAYERS_KERNELS_KERNELS_H

#include <stdint.h>

#include "layers/graph/graph.h"

/* The operations after a convolution's sums, per pixel and channel: act(x + bias[c] + residual). */
struct rfx_epilogue {
    const float *bias;  /* c elements or NULL */
    const float *slope; /* c elements; PRELU only */
    const struct rfx_act *act;
    int64_t c;
};

/* Arguments for a run of output pixels of n_rows rows of a depthwise convolution. For tap (ky, kx),
 * output pixel i of row j reads the input pixel at rows[j * row_step + ky] + column * in_c, column
 * = i * sw + kx * dw. A tap is outside the map and is skipped if its row is NULL or its column is
 * outside [col0, col1). Packed weights: [kh][kw][c]. */
struct rfx_depthwise_args {
    const float *const *rows; /* kh + (n_rows - 1) * row_step pointers to column 0 of input rows */
    const float *weights;
    const float *bias; /* c elements, never NULL */
    float *out;
    int64_t pixels, c, in_c, out_c;    /* in_c, out_c: floats from pixel to pixel */
    int64_t n_rows, row_step, out_row; /* out_row: floats from output row to output row */
    int64_t kh, kw, sw, dw;            /* dw may be negative */
    int64_t col0, col1;
    float lo, hi; /* the sum is clamped to [lo, hi] */
    bool far;     /* pixels come from memory rather than from a cache; does not change values */
};

/* Arguments of a matrix product that adds to y: y[r][j] += (0 + x[r][0] * w[0][j] + x[r][1] *
 * w[1][j] + ...) for r < rows, j < m. The sum in the bracket is one chain of multiply-adds in this
 * order, the same for every element; they are fused if the instruction set can. */
struct rfx_dense_args {
    const float *x, *w;
    float *y;
    int64_t x_stride, w_stride, y_stride; /* floats from row to row; x rows may overlap */
    int64_t rows, k, m;
};

/* Arguments for a run of output pixels of one row of a dense convolution (one group), for `m`
 * output channels. For tap (ky, kx), output pixel i reads the ic floats from rows[ky] + i *
 * x_stride + kx * tap_stride. Taps whose row is NULL, and taps kx outside [kx0, kx1), are skipped
 * for all pixels.
 *
 * Packed weights: [panel][ky][kx][ic][RFX_CONV_PANEL]. A panel is RFX_CONV_PANEL output channels.
 * The last panel is only as wide as its channels rounded up to RFX_CONV_LANES; the added channels
 * have weights of zero.
 *
 * Every element is one chain of fused multiply-adds: bias, then ky, kx, ic ascending. Long sums are
 * divided into the parts of struct rfx_conv_parts: each part is a chain from 0, and the parts are
 * added to the bias in this order. Then the residual is added, and the value is clamped.
 *
 * The taps, counted row by row, may be divided among several calls. Between the calls, `out`
 * contains the sums without residual and clamp. This is possible only for sums in parts of one tap
 * each (rfx_conv_parts) and for whole panels; the residual must then not be `out`. */
struct rfx_conv_args {
    const float *const *rows; /* kh pointers to column kx = 0 of the first output pixel */
    const float *weights;
    const float *bias;     /* m floats, never NULL; rfx_conv_filled(m) floats must be readable */
    const float *residual; /* NULL: none; may be `out` itself */
    float *out;
    int64_t pixels, m, ic, kh, kw, kx0, kx1;
    int64_t x_stride, tap_stride, out_stride, residual_stride; /* floats */
    int64_t taps_before, taps_after; /* taps that other calls compute; 0: none */
    float lo, hi;
};

#define RFX_CONV_PANEL 32  /* output channels that are computed together */
#define RFX_CONV_LANES 16  /* floats of the widest vector of any instruction set */
#define RFX_LINE_FLOATS 16 /* floats of a cache line */

/* Returns m output channels rounded up to RFX_CONV_LANES. */
static inline int64_t rfx_conv_filled(int64_t m) {
    return (m + RFX_CONV_LANES - 1) / RFX_CONV_LANES * RFX_CONV_LANES;
}

/* Returns the width of a panel, in channels including filling, when `left` channels are left from
 * its first one on. */
static inline int64_t rfx_conv_panel_width(int64_t left) {
    return left >= RFX_CONV_PANEL ? RFX_CONV_PANEL : rfx_conv_filled(left);
}

#define RFX_PEAK_SUMS 384 /* largest number of sums in `peak` and `peak_int` of any set */

/* Arguments for a run of output pixels of one row of a dense convolution with few output channels.
 * The input rows are planes: for each channel a run of pixels, the channels one after the other.
 * For tap (ky, kx), output pixel i reads channel c at rows[ky][shift[kx] + c * plane + i]. Taps
 * whose row is NULL are skipped. Tap kx is used only for the pixels in inside[kx]. Up to
 * RFX_PIXELS_AHEAD floats after a plane's last used pixel are read and not used. Packed weights:
 * [part][ky][kx][ic][output], where a part is RFX_PIXELS_PART outputs or the rest. Sums are
 * computed as in struct rfx_conv_args, but the parts of long sums are whole taps, and a tap without
 * products counts as 0. */
struct rfx_pixels_args {
    const float *const *rows; /* kh pointers */
    const int64_t *shift;     /* kw; may be negative */
    /* The kw ranges of the run's pixels; a range may reach beyond the run. */
    const struct rfx_range *inside;
    const float *weights, *bias; /* bias: m floats, never NULL */
    const float *residual;       /* NULL: none; may be `out` itself */
    float *out;
    int64_t pixels, m, ic, kh, kw;
    int64_t plane, out_stride, residual_stride; /* floats */
    float lo, hi;
};

#define RFX_PIXELS_PART 4   /* output channels that are computed together */
#define RFX_PIXELS_AHEAD 15 /* the widest vector less one float */

/* The interpolation points of F(4x4, 3x3) are 0, infinity, these two and their negatives. They are
 * exact floats, and so are all their products that the transforms need. */
#define RFX_WINOGRAD_A 0.6875f
#define RFX_WINOGRAD_B 1.4375f

/* Returns the rows (and columns) of a tile's window and of its products. 2 or 4 output pixels are
 * neighbours (stride 1); 3 output pixels have one pixel between them (stride 2). */
static inline int64_t rfx_winograd_window(int64_t outputs) {
    return outputs == 3 ? 7 : outputs + 2;
}

/* Returns the rows (and columns) of a filter's transformed weights. With stride 2, pixels in odd
 * rows or columns of the window, counted from 0, meet only the middle tap. So their products, the
 * last 3, share one transformed weight. */
static inline int64_t rfx_winograd_factors(int64_t outputs) {
    return outputs == 3 ? 5 : outputs + 2;
}

/* Arguments: transforms the window of one tile of outputs x outputs pixels (2 to 4) into the
 * factors of its products. */
struct rfx_winograd_in {
    const float *const *pixels; /* the rfx_winograd_window squared pixels of the window, row by row,
                                   c floats each */
    float *out; /* factor i of channel 0 goes to out[i * step]; whole vectors are written, so c is
                   rounded up to RFX_CONV_LANES */
    int64_t c, step, outputs;
    int64_t ahead; /* distance in floats from a pixel to the pixel that will be needed soon: a
                      prefetch hint */
};

/* Arguments: transforms 3x3 filters into transformed weights. The division that interpolation for
 * 4x4 tiles needs is done by struct rfx_winograd_out. */
struct rfx_winograd_filters {
    const float *taps; /* [c][9][width] */
    float *out;        /* weight n of channel i, filter j goes to out[n * step + i * width + j] */
    int64_t c, width, step, outputs; /* width: RFX_CONV_LANES or RFX_CONV_PANEL */
};

/* Arguments: transforms the sums of products of one tile to output pixels, then adds the bias, then
 * the residual, then clamps. */
struct rfx_winograd_out {
    const float *sums; /* sum i of channel `first` is sums[i * step]; whole vectors are read */
    const float *bias; /* of channel 0 */
    const float *const *residual; /* outputs^2 pixels, or NULL for none; may be `out` */
    float *const *out; /* outputs^2 pixels, row by row; NULL: the pixel is not computed */
    int64_t first, c, step, outputs;
    int64_t ahead; /* distance in floats from a pixel to the next tile's: a prefetch hint */
    float lo, hi;
};

/* Arguments of one window of a pool. For each of c channels, the maximum is the largest value,
 * minus infinity for an empty window, NaN if a value is NaN. The average is the sum over rows, then
 * columns, divided by `count`. */
struct rfx_pool_args {
    const float *const *rows;         /* the window's rows, at its first column */
    int64_t n_rows, n_cols, col_step; /* col_step: floats */
    float *out;                       /* not among the rows */
    int64_t c;
    bool maximum;
    bool begun, goes_on; /* begun: continue from the result of earlier calls in `out`; goes_on:
                            later calls follow, so do not divide yet */
    float count;
};

/* Longer sums of products are divided into parts, which keeps rounding errors small. */
#define RFX_CONV_LONG 192
#define RFX_CONV_PART 128 /* number of products of a part, approximately */

/* How the sum of an output element is divided into parts (struct rfx_conv_args). A part has up to
 * `taps` neighbouring taps of a kernel row and up to `channels` input channels; its first tap is a
 * multiple of `taps`, its first channel a multiple of `channels`. */
struct rfx_conv_parts {
    bool split; /* false: the sum is one chain */
    int64_t taps, channels;
};

static inline struct rfx_conv_parts rfx_conv_parts(int64_t ic, int64_t kh, int64_t kw) {
    struct rfx_conv_parts parts = {ic * kh * kw > RFX_CONV_LONG, RFX_CONV_PART / ic, RFX_CONV_PART};
    if (parts.taps < 1) parts.taps = 1;
    if (parts.taps > kw) parts.taps = kw;
    return parts;
}

/* Arguments for a run of output pixels of one row, for up to RFX_CONV_LANES output channels
 * (lanes), each of which has its own inputs. Input rows are expanded: RFX_CONV_LANES floats per
 * pixel. For tap (ky, kx), lane j of output pixel p reads input i at rows[ky][i * plane + column *
 * RFX_CONV_LANES + j], column = p * sw + kx * dw. Taps whose row is NULL, and taps whose column is
 * outside [col0, col1), are skipped. Packed weights: [ky][kx][ic][RFX_CONV_LANES]. Sums as in
 * struct rfx_conv_args, but always in one chain. */
struct rfx_lanes_args {
    const float *const *rows;
    const float *weights;
    const float *bias;     /* m floats; RFX_CONV_LANES floats must be readable */
    const float *residual; /* NULL: none; may be `out` itself */
    float *out;
    int64_t pixels, m, ic, kh, kw, sw, dw, col0, col1;
    int64_t plane, out_stride, residual_stride; /* floats */
    float lo, hi;
};

/* Arguments: adds pixels of c floats each, or their squares, to the sums of channels, exactly. A
 * value below 2^13 in magnitude is rounded to a multiple of 2^-38. The multiple is added to `sums`
 * (units of 2^-38; less than 2^51 units per value), and the rounding difference is added to `rests`
 * (units of 2^-86; less than 2^48 units per value). If the value is larger, not a number, or not a
 * multiple of 2^-86, x is passed to `misfit` instead. */
struct rfx_exact_args {
    const float *x;
    int64_t pixels, c;
    bool squares;
    int64_t *sums, *rests;
    void (*misfit)(void *user, int64_t channel, float value);
    void *user;
};

/* Arguments: y = (x - mean[c]) * (inverse[c] * scale[c]) + shift[c], one rounding per operation.
 * Pixels are densely packed; y == x is allowed. */
struct rfx_normalise_args {
    const float *x;
    float *y;
    const float *mean, *inverse, *scale, *shift;
    int64_t pixels, c;
};

/* Arguments: normalises each pixel by the statistics of its own c channels. Sums run over all
 * channels in ascending order. Everything is computed in double and rounded once at the end:
 *
 *     y = ((x - mean) * factor) * scale[i] + shift[i]
 *
 * LAYER: mean = sum(x) / c, factor = 1 / sqrt(sum((x - mean)^2) / c + eps). For all others mean is
 * 0. RMS: factor = 1 / sqrt(sum(x^2) / c + eps). L2 and L1: factor = 1 / sqrt(sum(x^2)) and 1 /
 * sum(|x|), or 0 if the sum is 0. Strides are floats from pixel to pixel; y == x is allowed. */
struct rfx_channel_norm_args {
    const float *x;
    float *y;
    const float *scale, *shift; /* c elements */
    int64_t pixels, c, x_stride, y_stride;
    enum rfx_channel_norm kind;
    double eps;
};

/* Arguments of one row of the windows of neighbouring output pixels of a pool, of uint8 or int8.
 * For each of c channels, out[i] becomes the maximum of out[i] and the n_cols pixels of the
 * window's row, which are col_step elements apart. If not `begun`, out[i] first becomes the type's
 * smallest number. */
struct rfx_byte_pool_args {
    const void *row; /* first pixel of the first window; not read if n_cols is 0 */
    void *out;       /* not in the row */
    int64_t n_cols, col_step, c;
    int64_t pixels, x_step, out_step; /* output pixels; elements from window to window, and from
                                         output to output */
    bool begun;
};

/* How integer kernels turn a sum into an element of one byte. For output channel i, v = float(sum +
 * bias[i]) * scales[i], computed in float32 and rounded once at each of the two operations. v is
 * rounded to the nearest integer (halves to the even one), zero_point is added, and the result is
 * clamped to the range of the element's type. */
struct rfx_requantise {
    const int32_t *bias; /* as many as rfx_int_conv_filled(channels) are readable, as of scales */
    const float *scales; /* positive and finite */
    int32_t zero_point;  /* within the range of the elements */
    bool is_signed;      /* elements are int8, not uint8 */
    bool small_scales;   /* none is above RFX_INT_SMALL_SCALE: scaled sums fit into int32 */
};

#define RFX_INT_SMALL_SCALE 0.5f /* see struct rfx_requantise */
#define RFX_INT_LANES 16         /* output channels of a block of integer convolutions */

/* Returns c channels rounded up to RFX_INT_LANES. */
static inline int64_t rfx_int_conv_filled(int64_t c) {
    return (c + RFX_INT_LANES - 1) / RFX_INT_LANES * RFX_INT_LANES;
}

/* Arguments for a run of output pixels of one row of an integer convolution (one group) with m
 * output channels. For tap (ky, kx), output pixel i reads `quads` times four neighbouring channels,
 * which begin at rows[ky] + i * x_stride + kx * tap_stride. Taps whose row is NULL are skipped.
 *
 * Weights are int8: [block][ky][kx][quad][...], with 4 * RFX_INT_LANES weights in the brackets. A
 * block is RFX_INT_LANES output channels. The weights of added channels are 0. The instruction set
 * decides about input values and the order of the weights (int_bytes in struct rfx_kernels), but
 * not about the number of weights:
 * - Input values of int16: elements minus their zero point, in [-255, 255]. Weights of a quad:
 *   [2][RFX_INT_LANES][2], by pairs of input channels.
 * - Input values of uint8. Weights of a quad: [RFX_INT_LANES][4]. If elements are int8, the caller
 *   adds 128. It also subtracts the zero point times the sum of all weights from the bias. So taps
 *   outside the map must have the zero point as value; their row is not NULL.
 *
 * The caller makes sure that no sum of a bias and products of (element - zero point) leaves the
 * range of int32, in any order. Other sums may leave it: they wrap around. */
struct rfx_int_conv_args {
    const void *const *rows; /* kh pointers to column kx = 0 of the first output pixel */
    const void *weights;     /* aligned to RFX_ALIGNMENT_BYTES */
    struct rfx_requantise to;
    uint8_t *out;  /* uint8 or int8 */
    int32_t *sums; /* not NULL: the sums with their biases are stored here instead; of `to`, only
                      `bias` counts, and `out` is not written */
    int64_t pixels, m, quads, kh, kw;
    int64_t x_stride, tap_stride, out_stride; /* elements */
};

/* As struct rfx_int_conv_args, for a depthwise convolution of m channels: output channel i reads
 * channel i. Input values and weights are int16, the weights in [-255, 255]. x_stride and
 * tap_stride are at least rfx_int_conv_filled(m), and so many input values are readable at every
 * tap. Packed weights: [ky][kx][rfx_int_conv_filled(m)]. `quads` is not read. */

/* The kernels of an element type of one byte. */
struct rfx_byte_kernels {
    void (*pool_max)(const struct rfx_byte_pool_args *args);

    /* out[i] = x[i] - zero_point for i < n. */
    void (*widen)(const void *x, int32_t zero_point, int16_t *out, int64_t n);

    /* ONNX QuantizeLinear: out[i] = saturate(round(x[i] / scale) + zero_point), halves rounded to
     * even; NaN becomes saturate(zero_point). DequantizeLinear: out[i] = (x[i] - zero_point) *
     * scale. scale is positive. */
    void (*quantise)(const float *x, float scale, int32_t zero_point, void *out, int64_t n);
    void (*dequantise)(const void *x, float scale, int32_t zero_point, float *out, int64_t n);

    /* out[i] = saturate(round(x[i] / scale + zero_point)): as quantise, but the zero point is added
     * before rounding, as in ONNX Runtime's QLinearAveragePool. */
    void (*quantise_shifted)(const float *x, float scale, int32_t zero_point, void *out, int64_t n);

    /* out[i] = saturate(round((a[i] - a_zero) * (b[i] - b_zero) * factor + zero_point)): the exact
     * product becomes a float32, and the two operations behind it are rounded, as in ONNX Runtime's
     * QLinearMul. `out` may be a or b. */
    void (*mul)(const void *a, int32_t a_zero, const void *b, int32_t b_zero, float factor,
                int32_t zero_point, void *out, int64_t n);

    /* out[i] = saturate(round(fma(a[i], a_scale, fma(b[i], b_scale, shift)))): two fused
     * multiply-adds of float32, as in ONNX Runtime's QLinearAdd. `out` may be a or b. */
    void (*add)(const void *a, float a_scale, const void *b, float b_scale, float shift, void *out,
                int64_t n);
};

struct rfx_kernels {
    const char *name; /* "base", "avx2", "avxvnni", "avx512", "avx512vnni", "neon" */

    /* Name of the set that has the same kernels, except int_conv, int_depthwise_bytes and peak_int.
     * The set itself if there is none. */
    const char *like;

    bool int_bytes; /* int_conv takes input values of uint8, not of int16 */

    /* Kernels of element types other than float32. */
    struct rfx_byte_kernels u8, i8;
    void (*int_conv)(const struct rfx_int_conv_args *args);
    void (*int_depthwise)(const struct rfx_int_conv_args *args);

    /* NULL if not int_bytes. As int_depthwise, but input values are uint8 and weights int8. */
    void (*int_depthwise_bytes)(const struct rfx_int_conv_args *args);

    /* Measures the peak rate of int_conv's multiply-adds. Adds k * x * w to each of the first n of
     * RFX_PEAK_SUMS sums, `rounds` times, by the instructions with which int_conv adds the products
     * of a step; k is the number of products that these add to a sum. Sums wrap around, are
     * independent and stay in registers. Returns n * k, the number of multiply-adds of a round. */
    int (*peak_int)(uint8_t x, int8_t w, int64_t rounds, int32_t *sums);

    /* Kernels of float32, from here on. */

    /* y = act(x) for `pixels` pixels of c channels, densely packed; y == x is allowed. slope: c
     * elements for PRELU, else NULL. */
    void (*act)(const struct rfx_act *act, const float *slope, const float *x, float *y,
                int64_t pixels, int64_t c);

    /* Applies `e` in place to `pixels` pixels that are `stride` floats apart. The residual's pixels
     * are residual_stride floats apart; residual NULL: none. */
    void (*epilogue)(const struct rfx_epilogue *e, float *x, int64_t stride, const float *residual,
                     int64_t residual_stride, int64_t pixels);

    /* y[i] = a[i * a_step] op b[i * b_step] for n elements. A step is 1, or 0 for an operand that
     * is the same for all elements. y may be an operand whose step is 1. */
    void (*binary)(enum rfx_binary_kind kind, const float *a, int64_t a_step, const float *b,
                   int64_t b_step, float *y, int64_t n);

    /* y = x * scale[c] + shift[c] with two roundings; pixels are densely packed; y == x is allowed.
     */
    void (*affine)(const float *x, const float *scale, const float *shift, float *y, int64_t pixels,
                   int64_t c);

    void (*normalise)(const struct rfx_normalise_args *args);
    void (*channel_norm)(const struct rfx_channel_norm_args *args);

    /* y[i] = exp(x[i] - bias) (softmax). */
    void (*exp)(const float *x, float bias, float *y, int64_t n);

    void (*exact)(const struct rfx_exact_args *args);
    void (*depthwise)(const struct rfx_depthwise_args *args);
    void (*pool)(const struct rfx_pool_args *args);
    void (*dense)(const struct rfx_dense_args *args);

    /* Transposes c planes to densely packed pixels: out[p * c + i] = planes[i * plane + p]. */
    void (*interleave)(const float *planes, int64_t plane, int64_t c, int64_t pixels, float *out);

    /* The kernels below, except peak, are NULL if the processor has no fused multiply-add: all of
     * them or none. */
    void (*conv)(const struct rfx_conv_args *args);

    /* Measures the peak rate of multiply-adds. Computes sums[i] = sums[i] * factor + term, `rounds`
     * times, with the multiply-adds of `dense`, for the first n of RFX_PEAK_SUMS sums. The sums are
     * independent and stay in registers. Returns n: rounds * n multiply-adds were done. */
    int (*peak)(float factor, float term, int64_t rounds, float *sums);

    void (*lanes)(const struct rfx_lanes_args *args);
    void (*pixels)(const struct rfx_pixels_args *args);

    /* Expands rows for `lanes`: out[i * plane + p * RFX_CONV_LANES + j] = x[p * x_stride + from[j]
     * + i] for i < ic and all lanes j. `span` floats of each pixel are read, 16 at most; from[j] +
     * ic <= span. */
    void (*expand)(const float *x, int64_t x_stride, int64_t pixels, const int32_t *from,
                   int64_t span, int64_t ic, float *out, int64_t plane);

    /* Transposes pixels of c channels, x_stride floats apart, to planes: out[i * plane + p] = x[p *
     * x_stride + i]. */
    void (*planes)(const float *x, int64_t x_stride, int64_t pixels, int64_t c, float *out,
                   int64_t plane);

    void (*winograd_in)(const struct rfx_winograd_in *window);
    void (*winograd_filters)(const struct rfx_winograd_filters *filters);
    void (*winograd_out)(const struct rfx_winograd_out *tile);
};

/* Returns the table for this processor. The environment variable RFX_KERNELS = base, avx2,
 * avxvnni, avx512, avx512vnni, neon selects one of those that the processor can run. Never NULL,
 * the same on every call. */
const struct rfx_kernels *rfx_kernels(void);

/* Returns the kernels of UINT8 or INT8 in the table of rfx_kernels. */
const struct rfx_byte_kernels *rfx_kernels_of_bytes(enum rfx_type type);

/* Returns the table of this name, or NULL if it is not built in or this processor cannot run it. */
const struct rfx_kernels *rfx_kernels_find(const char *name);

/* Computes a product with long sums by calls of the table's `dense`: each call adds the next
 * RFX_CONV_PART products of every sum to y, as one chain. */
void rfx_dense_in_parts(struct rfx_dense_args args);

/* Computes y = x w with rfx_dense_in_parts. Rows are contiguous: x [rows][k], w [k][m], y
 * [rows][m]. */
void rfx_dense_product(const float *x, const float *w, float *y, int64_t rows, int64_t k,
                       int64_t m);

/* Packed PRELU slopes for the kernels: rfx_act_packed_bytes returns the bytes of c floats,
 * rfx_act_pack writes them. If the weight has one element, it is repeated. For other kinds: 0
 * bytes, and nothing is written. Status: as rfx_weight_read. */
size_t rfx_act_packed_bytes(const struct rfx_act *act, int64_t c);
RFX_NODISCARD enum rfx_status rfx_act_pack(const struct rfx_graph *graph, const struct rfx_act *act,
                                           int64_t c, float *packed, struct rfx_error *err);

/* Computes y = act(x) for densely packed pixels with the table's kernel; slope: written by
 * rfx_act_pack. */
void rfx_act_apply(const struct rfx_act *act, const float *slope, const float *x, float *y,
                   int64_t pixels, int64_t c);
#endif
