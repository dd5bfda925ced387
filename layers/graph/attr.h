/* What nodes are told beside their inputs: sizes, kinds and weights, one struct per operator. */
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
    struct rfx_pads pads;         /* transposed: what is cut from each side */
    int64_t out_pad_h, out_pad_w; /* transposed only */
    int64_t groups;
    int64_t ic, oc;          /* oc is set by the caller; ic by inference */
    int weight, bias, scale; /* weight indices; bias and scale of oc elements or -1 */
};

struct rfx_pool_attr {
    int64_t kh, kw, sh, sw, dh, dw;
    struct rfx_pads pads;
    bool ceil_mode;
    bool count_include_pad; /* average only */
    int64_t p;              /* LP only: 1, 2 or 4 */
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
    RFX_REDUCE_ARG_MAX, /* where it is, counted from 0; the first of equal ones. A NaN wins */
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
    RFX_NORM_L1,    /* x / sum of magnitudes; 0 where that is 0 */
    RFX_NORM_L2,    /* x / root of the sum of squares; 0 where that is 0 */
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
    RFX_BINARY_MOD, /* a - b * trunc(a / b), exact; the sign of a */
    /* booleans are numbers: 0 is false, all others are true, and results are 1 or 0 */
    RFX_BINARY_GREATER,
    RFX_BINARY_GREATER_OR_EQUAL,
    RFX_BINARY_LESS,
    RFX_BINARY_LESS_OR_EQUAL,
    RFX_BINARY_EQUAL,
    RFX_BINARY_AND,
    RFX_BINARY_OR,
    RFX_BINARY_XOR,
    RFX_BINARY_IF,     /* b where a is true, else -0, which adds nothing, not even to -0 */
    RFX_BINARY_UNLESS, /* b where a is false, else -0 */
};

enum rfx_pad_mode { RFX_PAD_CONSTANT, RFX_PAD_REFLECT, RFX_PAD_EDGE };
enum rfx_grid_padding { RFX_GRID_ZEROS, RFX_GRID_BORDER, RFX_GRID_REFLECTION };

enum rfx_resize_mode { RFX_RESIZE_NEAREST, RFX_RESIZE_LINEAR, RFX_RESIZE_CUBIC };
enum rfx_resize_coord {
    RFX_COORD_HALF_PIXEL,
    RFX_COORD_PYTORCH_HALF_PIXEL,
    RFX_COORD_ALIGN_CORNERS,
    RFX_COORD_ASYMMETRIC,
    RFX_COORD_HALF_PIXEL_SYMMETRIC, /* half pixels around the middle of both maps */
};
enum rfx_resize_nearest {
    RFX_NEAREST_ROUND_PREFER_FLOOR,
    RFX_NEAREST_ROUND_PREFER_CEIL,
    RFX_NEAREST_FLOOR,
    RFX_NEAREST_CEIL,
};

/* Output oh x ow; scale_h = output rows per input row as the model states it (it need not be
 * oh / ih exactly), used by the coordinate transform as in ONNX Resize. */
struct rfx_resize_attr {
    enum rfx_resize_mode mode;
    enum rfx_resize_coord coord;
    enum rfx_resize_nearest nearest;
    float scale_h, scale_w;
    int64_t oh, ow;
    float cubic_a;        /* CUBIC: the slope of the kernel at 1; -0.75 is ONNX's default */
    bool exclude_outside; /* taps outside the map have no weight, instead of the border's value */
    bool antialias;       /* not NEAREST: where the map shrinks the kernel is as much wider */
};

struct rfx_slice_attr { /* per axis, steps not 0 (negative allowed), out extents in `shape` */
    int64_t starts[RFX_MAX_RANK];
    int64_t steps[RFX_MAX_RANK];
    struct rfx_shape shape;
};

struct rfx_graph;

/* What is done to the scores in[0] x in[1] before their softmax, in this order: step s joins them
 * with in[3 + s], which is broadcast to their shape. */
#define RFX_ATTENTION_MAX_STEPS 4
struct rfx_attention_attr {
    int n_steps;
    struct {
        enum rfx_binary_kind kind;
        bool scores_right; /* in[3 + s] is the left operand */
    } steps[RFX_ATTENTION_MAX_STEPS];
};

/* Nodes first .. last of `base`; the last one's tensor is the group's. */
struct rfx_group_attr {
    const struct rfx_graph *base;
    int first, last;
    int64_t strip_cols; /* output columns computed together, at most */
    int64_t strips;     /* that a rectangle is cut into, at least, where it is wide enough */
    int64_t step_rows;  /* output rows per step */
};

union rfx_attr {
    struct {
        int64_t c, h, w;
    } input;
    struct {
        int weight;
        struct rfx_shape shape;
    } constant; /* MAP: (1, c, h, w), values NCHW */
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
        int64_t groups; /* of as many channels each, that share their statistics */
        float eps;      /* added to the variance */
    } moments;
    struct {
        enum rfx_binary_kind kind;
    } binary;
    struct {
        int axis;
    } concat; /* PLAIN_CONCAT */
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
    } softmax; /* axis: PLAIN_SOFTMAX */
    struct {
        enum rfx_channel_norm kind;
        float eps;
        int scale, shift; /* weight indices of c or 1 elements, or -1 */
    } channel_norm;
    struct {
        struct rfx_shape shape;
    } reshape; /* RESHAPE: fully resolved */
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
        enum rfx_reduce_kind kind;
        bool axes[RFX_MAX_RANK];
        bool keep_dims;
    } reduce; /* CHANNEL_REDUCE: kind alone */
    struct {
        int64_t k, m;
        int weight, bias;  /* bias of m elements or -1 */
        bool weight_is_mk; /* weight stored [m][k] (Gemm transB = 1) instead of [k][m] */
        float alpha, beta; /* out = alpha * in x weight + beta * bias */
    } gemm;
    struct rfx_attention_attr attention;
    struct rfx_group_attr group;
};
#endif
