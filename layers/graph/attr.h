/* Attributes of nodes: sizes, kinds and weights, one struct per operator. */
#ifndef RFX_LAYERS_GRAPH_ATTR_H
#define RFX_LAYERS_GRAPH_ATTR_H

#include <stdbool.h>
#include <stdint.h>

#include "layers/graph/tensor.h"

struct rfx_pads { /* rows and columns added around the map */
    int64_t top, left, bottom, right;
};

/* Convolution: weight OIHW [oc][ic/groups][kh][kw]; transposed: IOHW [ic][oc/groups][kh][kw].
 * Effective weight = weight * scale[oc] (scale -1: none), then + bias[oc] (bias -1: none). */
struct rfx_conv_attr {
    int64_t kh, kw, sh, sw, dh, dw;
    struct rfx_pads pads; /* transposed: rows and columns cut from each side of the output */
    int64_t out_pad_h, out_pad_w; /* transposed only */
    int64_t groups;
    int64_t ic, oc;          /* oc is set by the caller; ic by inference */
    int weight, bias, scale; /* weight indices; bias and scale of oc elements or -1 */
    int64_t tiles_from; /* Winograd: a row at which a tile begins, less than the rows of a tile. The
                           same in all runs of a network (conv_tile_rows.h) */
    bool keeps_factors; /* Winograd: the transformed weights are packed before the run, however
                           large they are. Chosen by the planner; does not change bits */
};

/* Returns a 1x1 convolution to oc channels without weights. The caller sets weight, bias and scale
 * if the convolution has them. */
static inline struct rfx_conv_attr rfx_conv_pointwise(int64_t oc) {
    struct rfx_conv_attr conv = {.kh = 1,
                                 .kw = 1,
                                 .sh = 1,
                                 .sw = 1,
                                 .dh = 1,
                                 .dw = 1,
                                 .groups = 1,
                                 .oc = oc,
                                 .weight = -1,
                                 .bias = -1,
                                 .scale = -1};
    return conv;
}

/* Integer convolution (ONNX QLinearConv, ConvInteger): sums of (element - in_zero) * (weight - its
 * zero point), plus the bias, times the factor of the output channel (input scale * weight scale /
 * output scale), rounded to the nearest integer, plus out_zero, saturated. */
struct rfx_int_conv_attr {
    struct rfx_conv_attr conv; /* `weight` has whole numbers in [-255, 255]; no bias, no scale */
    int32_t in_zero, out_zero; /* in_zero is not read if the node has a second input */
    enum rfx_type to;  /* UINT8 or INT8; INT32: the sums and biases themselves, out_zero 0 */
    int copies;        /* set by infer: numbers of 8 bits that a weight minus zero point takes */
    bool small_scales; /* set by infer: see struct rfx_requantise */
    int64_t *channels; /* [oc][3]: bias, zero point of the weights, bits of the float32 factor;
                          rfx_graph_add copies it */
};

struct rfx_pool_attr {
    int64_t kh, kw, sh, sw, dh, dw;
    struct rfx_pads pads;
    bool ceil_mode;
    bool count_include_pad; /* average only */
    bool column_major;      /* POOL_PLACE only: elements are numbered column by column */
    int64_t p;              /* POOL_LP only: the exponent, >= 1 */
};

enum rfx_reduce_kind {
    RFX_REDUCE_MEAN,
    RFX_REDUCE_MAX,
    RFX_REDUCE_SUM,
    RFX_REDUCE_MIN,
    RFX_REDUCE_L1,         /* sum of magnitudes */
    RFX_REDUCE_L2,         /* root of the sum of squares */
    RFX_REDUCE_SUM_SQUARE, /* sum of squares */
    RFX_REDUCE_PROD,
    RFX_REDUCE_ARG_MAX, /* index of the extreme value, counted from 0; the first one of equal
                           values. A NaN counts as the extreme value */
    RFX_REDUCE_ARG_MAX_LAST,
    RFX_REDUCE_ARG_MIN,
    RFX_REDUCE_ARG_MIN_LAST,
    RFX_REDUCE_COUNT
};
static inline bool rfx_reduce_is_arg(enum rfx_reduce_kind kind) {
    return kind >= RFX_REDUCE_ARG_MAX && kind <= RFX_REDUCE_ARG_MIN_LAST;
}

enum rfx_channel_norm {
    RFX_NORM_LAYER, /* (x - mean) / sqrt(variance + eps) */
    RFX_NORM_RMS,   /* x / sqrt(mean of squares + eps) */
    RFX_NORM_L1,    /* x / sum of magnitudes; 0 if the sum is 0 */
    RFX_NORM_L2,    /* x / root of the sum of squares; 0 if the sum is 0 */
    RFX_NORM_COUNT
};

enum rfx_binary_kind {
    RFX_BINARY_ADD,
    RFX_BINARY_SUB,
    RFX_BINARY_MUL,
    RFX_BINARY_DIV,
    RFX_BINARY_MAX,
    RFX_BINARY_MIN,
    RFX_BINARY_POW,
    RFX_BINARY_MOD, /* a - b * trunc(a / b), exact; has the sign of a */
    /* booleans are numbers: 0 is false, every other value is true; results are 1 or 0 */
    RFX_BINARY_GREATER,
    RFX_BINARY_GREATER_OR_EQUAL,
    RFX_BINARY_LESS,
    RFX_BINARY_LESS_OR_EQUAL,
    RFX_BINARY_EQUAL,
    RFX_BINARY_AND,
    RFX_BINARY_OR,
    RFX_BINARY_XOR,
    RFX_BINARY_IF,     /* b if a is true, else -0: adding -0 changes no value, not even -0 */
    RFX_BINARY_UNLESS, /* b if a is false, else -0 */
};

/* What an index of PICK and SCATTER selects in the tensor that is read or written. */
enum rfx_index_kind {
    RFX_INDEX_ELEMENTS, /* one element: the index is its place along an axis, and its other
                           coordinates are those of the index itself */
    RFX_INDEX_TUPLES,   /* an element or a slice: each row of the indices' last axis contains its
                           coordinates along axis `axis` and the axes after it */
    RFX_INDEX_SLICES,   /* PICK only: a whole slice of the tensor along an axis */
};
enum rfx_scatter_kind { /* how an update changes the element that it meets */
                        RFX_SCATTER_SET,
                        RFX_SCATTER_ADD,
                        RFX_SCATTER_MUL,
                        RFX_SCATTER_MAX,
                        RFX_SCATTER_MIN,
};

enum rfx_pad_mode { RFX_PAD_CONSTANT, RFX_PAD_REFLECT, RFX_PAD_EDGE, RFX_PAD_WRAP };
enum rfx_grid_padding { RFX_GRID_ZEROS, RFX_GRID_BORDER, RFX_GRID_REFLECTION };

enum rfx_resize_mode { RFX_RESIZE_NEAREST, RFX_RESIZE_LINEAR, RFX_RESIZE_CUBIC };
enum rfx_resize_coord {
    RFX_COORD_HALF_PIXEL,
    RFX_COORD_PYTORCH_HALF_PIXEL,
    RFX_COORD_ALIGN_CORNERS,
    RFX_COORD_ASYMMETRIC,
    RFX_COORD_HALF_PIXEL_SYMMETRIC, /* half pixels, counted from the middle of both maps */
};
enum rfx_resize_nearest {
    RFX_NEAREST_ROUND_PREFER_FLOOR,
    RFX_NEAREST_ROUND_PREFER_CEIL,
    RFX_NEAREST_FLOOR,
    RFX_NEAREST_CEIL,
};

/* Output oh x ow. scale_h is the number of output rows per input row as stated by the model,
 * scale_w the same for columns. They need not equal oh / ih and ow / iw exactly. The coordinate
 * transform uses them as ONNX Resize does. */
struct rfx_resize_attr {
    enum rfx_resize_mode mode;
    enum rfx_resize_coord coord;
    enum rfx_resize_nearest nearest;
    float scale_h, scale_w;
    int64_t oh, ow;
    float cubic_a; /* CUBIC: coefficient a of the cubic kernel, its slope at distance 1; ONNX's
                      default is -0.75 */
    bool exclude_outside; /* taps outside the map have weight 0, instead of reading the border's
                             value */
    bool antialias; /* not NEAREST: if the map shrinks, the kernel is widened by the same factor */
};

struct rfx_slice_attr { /* per axis: start and step (not 0, may be negative); `shape` contains the
                           output's extents */
    int64_t starts[RFX_MAX_RANK];
    int64_t steps[RFX_MAX_RANK];
    struct rfx_shape shape;
};

struct rfx_graph;

/* Steps between the scores in[0] x in[1] and their softmax, in this order. Step s combines the
 * scores with in[3 + s], which is broadcast to the scores' shape. */
#define RFX_ATTENTION_MAX_STEPS 4
struct rfx_attention_attr {
    int n_steps;
    struct {
        enum rfx_binary_kind kind;
        bool scores_right; /* in[3 + s] is the left operand */
    } steps[RFX_ATTENTION_MAX_STEPS];
};

/* Rounding to the nearest values that bytes of type `to` stand for: QuantizeLinear, then
 * DequantizeLinear. scale 0: none. */
struct rfx_rounding {
    enum rfx_type to;
    float scale;
    int32_t zero_point;
};

/* Scales of a softmax of bytes, which is computed by a table as in ONNX Runtime (softmax.h).
 * out_scale 0: the softmax is none of bytes. */
struct rfx_softmax_steps {
    float in_scale, out_scale;
};

/* Attention within windows of h x w pixels. One of the windows begins at (shift_h, shift_w), 0 <=
 * shift < size; windows at the borders are cut off. The input has the channels of all queries, then
 * as many of all keys, then those of all values, which the output has too; in each, the channels of
 * a head follow each other. The score of query i and key j of a window is (q scale) k +
 * bias[head][i][j], where i and j number the pixels of an uncut window row by row. */
#define RFX_WINDOW_MOST_BIASED 4096 /* pixels of a window with a bias */
#define RFX_WINDOW_MOST_PIXELS ((int64_t)1 << 26)
#define RFX_WINDOW_MOST_HEADS 4096
struct rfx_window_attention_attr {
    int64_t h, w, shift_h, shift_w;
    int64_t heads;
    int64_t value_size; /* channels of a head's values; 0: as many as of its keys */
    float scale;
    /* Of the scores, after the bias is added, and of the results of the softmax. */
    struct rfx_rounding round_scores, round_weights;
    struct rfx_softmax_steps steps; /* of the softmax */
    int bias;                       /* weight index, or -1 */
    bool by_table; /* true: bias is [(2 h - 1) (2 w - 1)][heads], indexed by how many rows the query
                      is below the key, from -(h - 1) on, then by how many columns it is to the
                      key's right, from -(w - 1) on. false: bias is [heads][h w][h w] */
};

/* The range that a group reads along one axis of input k for positions [a, b) of its output. It
 * holds if [a, b) has positions in [lo, hi); for outputs in [lo, hi), no map of the group is read
 * over a border. The range begins at scale * a + first, or at `low` if a < lo (then a is 0). It
 * ends at scale * (b - 1) + end, or at `high` if b > hi (then b is the output's extent). scale 0:
 * the range does not have this form. (group.c stores it because planners ask for it millions of
 * times.) */
#define RFX_GROUP_REACH_INPUTS 3
struct rfx_group_reach {
    int32_t lo, hi;
    struct {
        int32_t scale, first, end, low, high;
    } in[RFX_GROUP_REACH_INPUTS];
};

/* Nodes first .. last of `base`. The output of the group is the tensor of the last node. */
struct rfx_group_attr {
    const struct rfx_graph *base;
    int first, last;
    int64_t strip_cols; /* output columns computed together, at most */
    /* Least number of strips that a rectangle is cut into, if it is wide enough: two for each
     * thread. If there are more strips, each thread gets the same number. */
    int64_t strips;
    int64_t step_rows;               /* output rows per step */
    struct rfx_group_reach reach[2]; /* rows, columns; found by rfx_graph_group */
};

union rfx_attr {
    struct {
        int64_t c, h, w;
    } input;
    struct {
        int weight;
        struct rfx_shape shape;
    } constant; /* CONST_MAP: shape (1, c, h, w), values in NCHW order */
    struct {
        int across, down; /* weights of shape (channels, w) and (channels, h), or -1 */
        int64_t h, w;     /* of the map */
        int64_t count; /* number of the map's channels; channel i is weight channel map[i], counting
                          the channels of `across` first, then those of `down` */
        int64_t *map;
    } repeat; /* rfx_graph_add copies `map` */
    struct rfx_conv_attr conv;
    struct rfx_pool_attr pool;
    struct {
        int64_t oh, ow;
    } adaptive;
    struct {
        enum rfx_reduce_kind kind;
    } global_pool;
    struct {
        int scale, shift;
    } affine; /* also NORMALISE; weight indices of c or 1 elements, or -1 */
    struct {
        int64_t groups; /* groups of equal numbers of channels; the channels of a group share their
                           statistics */
        float eps;      /* added to the variance */
    } moments;
    struct {
        enum rfx_binary_kind kind;
    } binary;
    struct {
        enum rfx_type to;   /* FLOAT32; from FLOAT32 also UINT8, INT8 or INT32 */
        float scale;        /* positive: ONNX QuantizeLinear to UINT8 or INT8, or DequantizeLinear
                               from them; 0: elements stand for themselves */
        int32_t zero_point; /* 0 if scale is 0 */
        bool shifted;       /* to bytes: the zero point is added before rounding */
    } convert;
    struct rfx_int_conv_attr int_conv; /* its first member overlays `conv` */
    struct {
        enum rfx_type to;              /* UINT8 or INT8 */
        float a_scale, b_scale, shift; /* see rfx_byte_kernels */
    } int_add;
    struct {
        enum rfx_type to; /* UINT8 or INT8 */
        float factor;     /* scale of input 0 * scale of input 1 / scale of the output */
        int32_t a_zero, b_zero, out_zero;
    } int_mul;
    struct {
        enum rfx_type to; /* UINT8 or INT8 */
        float in_scale, out_scale;
        int32_t in_zero, out_zero;
    } int_mean;
    struct {
        int axis;
        int64_t channels; /* JOIN_MAPS: of a cell; 0: those of its maps */
    } concat;             /* PLAIN_CONCAT, JOIN_MAPS */
    struct {
        int64_t count;
        int64_t *map;
    } select; /* rfx_graph_add copies `map` */
    struct {
        struct rfx_pads pads;
        enum rfx_pad_mode mode;
        float value;
    } pad;
    struct {
        int64_t y0, x0, sy, sx, oh, ow;
    } crop;
    struct rfx_resize_attr resize;
    struct {
        enum rfx_resize_mode mode;
        enum rfx_grid_padding padding;
        bool align_corners;
    } grid;
    struct {
        int64_t k;
        bool upper;
    } triangle;
    struct {
        int axis; /* for a map 1 (channels) or 3 (columns) */
        bool exclusive, reverse;
    } running; /* RUNNING_SUM */
    struct {
        int64_t block;
        bool column_major;
    } depth; /* column_major: CRD */
    struct {
        int64_t size;
        float alpha, beta, bias;
    } lrn;
    struct {
        int axis;
        bool logarithm;
        int64_t group; /* SOFTMAX: taken over each group of this many neighbouring channels; 0: over
                          all channels */
        struct rfx_softmax_steps steps;
    } softmax; /* `axis` is read for PLAIN_SOFTMAX only */
    struct {
        enum rfx_channel_norm kind;
        float eps;
        int scale, shift; /* weight indices of c or 1 elements, or -1 */
    } channel_norm;
    struct {
        struct rfx_shape shape;
    } reshape; /* RESHAPE: the output's shape, without -1 or 0 */
    struct {
        int perm[RFX_MAX_RANK];
    } transpose;
    struct rfx_slice_attr slice;
    struct {
        int axis;
        int64_t count;
        int64_t *map;
    } gather; /* rfx_graph_add copies `map` */
    struct {
        int axis;
        int64_t k;
        bool largest; /* true: the largest first; false: the smallest first */
    } top_k;
    struct {
        enum rfx_index_kind kind;
        int axis; /* for TUPLES, the axes before it are common to the tensor and the indices */
        enum rfx_scatter_kind scatter; /* SCATTER only */
    } index;
    struct {
        enum rfx_reduce_kind kind;
        bool axes[RFX_MAX_RANK];
        bool keep_dims;
    } reduce; /* CHANNEL_REDUCE reads `kind` only */
    struct {
        int64_t k, m;
        int weight, bias;  /* bias of m elements or -1 */
        bool weight_is_mk; /* weight stored [m][k] (Gemm transB = 1) instead of [k][m] */
        float alpha, beta; /* out = alpha * in x weight + beta * bias */
    } gemm;
    struct rfx_attention_attr attention;
    struct rfx_window_attention_attr window_attention;
    struct rfx_group_attr group;
};
#endif
