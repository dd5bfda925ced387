/* CHANNEL_REDUCE and CHANNEL_NORM: reductions and norms over all channels of a pixel, for every
 * pixel separately. Sums are in double, channels ascending. A norm (struct rfx_channel_norm_args)
 * rounds every value to float once, at the end. A few pixels are summed at the same time, which
 * hides the latency of additions and does not change their order. */
#include <math.h>

#include "layers/graph/infer.h"
#include "layers/graph/units.h"
#include "layers/kernels/packing.h"

#define INLINE static inline __attribute__((always_inline))
#define SIDE_BY_SIDE 8 /* pixels that are summed at the same time */
#define TOGETHER 64    /* pixels per kernel call */

/* Up to SIDE_BY_SIDE pixels of one row. */
struct pixels {
    const float *x;
    int64_t stride, n, c;
};

INLINE double term(enum rfx_reduce_kind kind, double x) {
    if (kind == RFX_REDUCE_L1) return fabs(x);
    return kind == RFX_REDUCE_L2 || kind == RFX_REDUCE_SUM_SQUARE ? x * x : x;
}

/* Combines out[p] with all channels of pixel p by `kind`. For maximum and minimum, a NaN wins over
 * all numbers. */
INLINE void gather(const struct pixels *in, int64_t n, enum rfx_reduce_kind kind, double *out) {
    for (int64_t i = 0; i < in->c; i++)
        for (int64_t p = 0; p < n; p++) {
            double x = (double)in->x[p * in->stride + i];
            if (kind == RFX_REDUCE_MAX)
                out[p] = ((x > out[p]) | (x != x)) ? x : out[p];
            else if (kind == RFX_REDUCE_MIN)
                out[p] = ((x < out[p]) | (x != x)) ? x : out[p];
            else if (kind == RFX_REDUCE_PROD)
                out[p] *= x;
            else
                out[p] += term(kind, x);
        }
}

/* Sets out[p] to the channel in which pixel p is largest or smallest. A NaN wins over all
 * numbers. */
static void find(const struct pixels *in, enum rfx_reduce_kind kind, double *out) {
    bool largest = kind == RFX_REDUCE_ARG_MAX || kind == RFX_REDUCE_ARG_MAX_LAST;
    bool last = kind == RFX_REDUCE_ARG_MAX_LAST || kind == RFX_REDUCE_ARG_MIN_LAST;
    for (int64_t p = 0; p < in->n; p++) {
        const float *x = in->x + p * in->stride;
        int64_t at = 0;
        for (int64_t i = 1; i < in->c; i++) {
            bool nan = x[i] != x[i], had_nan = x[at] != x[at];
            bool better = largest ? x[i] > x[at] : x[i] < x[at];
            bool equal = had_nan ? nan : x[i] == x[at];
            if ((better || nan) && !had_nan) at = i;
            if (equal && last) at = i;
        }
        out[p] = (double)at;
    }
}

INLINE void reduce_pixels(const struct pixels *in, enum rfx_reduce_kind kind, double *out) {
    bool sum = kind != RFX_REDUCE_MAX && kind != RFX_REDUCE_MIN;
    double first = kind == RFX_REDUCE_PROD ? 1.0 : 0.0;
    for (int64_t p = 0; p < in->n; p++) out[p] = sum ? first : (double)in->x[p * in->stride];
    if (in->n == SIDE_BY_SIDE)
        gather(in, SIDE_BY_SIDE, kind, out);
    else
        gather(in, in->n, kind, out);
}

/* Reduces the channels of each pixel into `out`. Each kind has its own copy of the loop, so that
 * the loop itself does not test the kind. */
static void reduce(const struct pixels *in, enum rfx_reduce_kind kind, double *out) {
    switch (kind) {
        case RFX_REDUCE_MEAN:
        case RFX_REDUCE_SUM:
            reduce_pixels(in, RFX_REDUCE_SUM, out);
            break;
        case RFX_REDUCE_MAX:
            reduce_pixels(in, RFX_REDUCE_MAX, out);
            break;
        case RFX_REDUCE_MIN:
            reduce_pixels(in, RFX_REDUCE_MIN, out);
            break;
        case RFX_REDUCE_L1:
            reduce_pixels(in, RFX_REDUCE_L1, out);
            break;
        case RFX_REDUCE_PROD:
            reduce_pixels(in, RFX_REDUCE_PROD, out);
            break;
        case RFX_REDUCE_L2:
        case RFX_REDUCE_SUM_SQUARE:
            reduce_pixels(in, RFX_REDUCE_SUM_SQUARE, out);
            break;
        case RFX_REDUCE_ARG_MAX:
        case RFX_REDUCE_ARG_MAX_LAST:
        case RFX_REDUCE_ARG_MIN:
        case RFX_REDUCE_ARG_MIN_LAST:
        case RFX_REDUCE_COUNT:
            find(in, kind, out);
            break;
    }
    for (int64_t p = 0; p < in->n; p++) {
        if (kind == RFX_REDUCE_MEAN) out[p] /= (double)in->c;
        if (kind == RFX_REDUCE_L2) out[p] = sqrt(out[p]);
    }
}

/* Returns up to SIDE_BY_SIDE input pixels from (y, x) on, before column x1. */
static struct pixels pixels_at(const struct rfx_run_args *args, int64_t y, int64_t x, int64_t x1) {
    return (struct pixels){.x = rfx_view_f32_at(&args->in[0], y, x),
                           .stride = args->in[0].c,
                           .n = rfx_min_i64(SIDE_BY_SIDE, x1 - x),
                           .c = rfx_infer_in(args->graph, args->node, 0)->c};
}

static enum rfx_status reduce_infer(const struct rfx_graph *graph, struct rfx_node *node,
                                    struct rfx_error *err) {
    enum rfx_status status = rfx_infer_inputs(graph, node, 1, RFX_LAYOUT_NHWC, err);
    if (status != RFX_OK) return status;
    const struct rfx_tensor *in = rfx_infer_in(graph, node, 0);
    if (rfx_reduce_is_arg(node->attr.reduce.kind) && in->c > RFX_FLOAT_COUNT_MAX)
        return rfx_infer_refuse(node, err, "%lld channels, more than float32 can count",
                                (long long)in->c);
    return rfx_infer_set_map(node, 1, in->h, in->w, err);
}

static void reduce_unit(const void *user, struct rfx_rect u, void *scratch) {
    const struct rfx_run_args *args = user;
    double values[SIDE_BY_SIDE];
    (void)scratch;
    for (int64_t y = u.y0; y < u.y1; y++)
        for (int64_t x = u.x0; x < u.x1; x += SIDE_BY_SIDE) {
            struct pixels in = pixels_at(args, y, x, u.x1);
            reduce(&in, args->node->attr.reduce.kind, values);
            for (int64_t p = 0; p < in.n; p++)
                *rfx_view_f32_at(&args->out, y, x + p) = (float)values[p];
        }
}

static void reduce_run(const struct rfx_run_args *args) {
    rfx_units_share(args, rfx_units_of_rows(args), 0, reduce_unit, args);
}

static enum rfx_status norm_infer(const struct rfx_graph *graph, struct rfx_node *node,
                                  struct rfx_error *err) {
    enum rfx_status status = rfx_infer_inputs(graph, node, 1, RFX_LAYOUT_NHWC, err);
    if (status != RFX_OK) return status;
    const struct rfx_tensor *in = rfx_infer_in(graph, node, 0);
    status = rfx_infer_scale_shift(graph, node, node->attr.channel_norm.scale,
                                   node->attr.channel_norm.shift, in->c, err);
    return status == RFX_OK ? rfx_infer_set_map(node, in->c, in->h, in->w, err) : status;
}

static size_t norm_packed_bytes(const struct rfx_graph *graph, const struct rfx_node *node) {
    (void)graph;
    return rfx_packing_scale_shift_bytes(&node->act, node->out.c);
}

static enum rfx_status norm_pack(const struct rfx_graph *graph, const struct rfx_node *node,
                                 void *packed, const struct rfx_pack_part *part,
                                 struct rfx_error *err) {
    return rfx_packing_scale_shift(graph, node, node->attr.channel_norm.scale,
                                   node->attr.channel_norm.shift, packed, part, err);
}

static void norm_unit(const void *user, struct rfx_rect u, void *scratch) {
    const struct rfx_run_args *args = user;
    const struct rfx_node *node = args->node;
    const struct rfx_kernels *kernels = rfx_kernels();
    int64_t c = node->out.c;
    const float *slope = rfx_packed_slope(&node->act, c, args->packed);
    struct rfx_channel_norm_args run = {.scale = rfx_packed_weights(&node->act, c, args->packed),
                                        .shift = args->packed,
                                        .c = c,
                                        .x_stride = args->in[0].c,
                                        .y_stride = args->out.c,
                                        .kind = node->attr.channel_norm.kind,
                                        .eps = (double)node->attr.channel_norm.eps};
    (void)scratch;
    for (int64_t y = u.y0; y < u.y1; y++)
        for (int64_t x = u.x0; x < u.x1; x += TOGETHER) {
            run.x = rfx_view_f32_at(&args->in[0], y, x);
            run.y = rfx_view_f32_at(&args->out, y, x);
            run.pixels = rfx_min_i64(TOGETHER, u.x1 - x);
            kernels->channel_norm(&run);
            if (node->act.kind == RFX_ACT_NONE) continue;
            for (int64_t p = 0; p < run.pixels; p++) {
                float *at = run.y + p * run.y_stride;
                kernels->act(&node->act, slope, at, at, 1, c);
            }
        }
}

static void norm_run(const struct rfx_run_args *args) {
    rfx_units_share(args, rfx_units_of_rows(args), 0, norm_unit, args);
}

static const struct rfx_weight_slot norm_weights[] = {
    {"scale", RFX_WEIGHT_SCALE, offsetof(struct rfx_node, attr.channel_norm.scale)},
    {"shift", RFX_WEIGHT_BIAS, offsetof(struct rfx_node, attr.channel_norm.shift)},
    {NULL, RFX_WEIGHT_FACTOR, 0},
};

const struct rfx_op_def rfx_op_channel_reduce = {
    .name = "ChannelReduce",
    .spatial = true,
    .kind = RFX_CLASS_POOLING,
    .infer = reduce_infer,
    .axis_map = rfx_op_map_identity,
    .run = reduce_run,
};
const struct rfx_op_def rfx_op_channel_norm = {
    .name = "ChannelNorm",
    .spatial = true,
    .kind = RFX_CLASS_ELEMENTWISE,
    .takes_in = RFX_FUSE_BATCH_NORM | RFX_FUSE_ACTIVATION,
    .weights = norm_weights,
    .infer = norm_infer,
    .axis_map = rfx_op_map_identity,
    .in_place = rfx_op_in_place_elementwise,
    .packed_bytes = norm_packed_bytes,
    .pack = norm_pack,
    .run = norm_run,
};
