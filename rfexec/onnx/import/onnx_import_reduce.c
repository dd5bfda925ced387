/* Conversion of reductions: over all of space, over channels, over both: parts of maps as they
 * come; over other axes: whole tensors. */
#include <string.h>

#include "rfexec/onnx/import/onnx_import.h"

/* Which axes to reduce: attribute or input 1; none given: all, or none. */
static enum rfx_status reduced_axes(struct rfx_onnx_import *ctx, int rank, bool *axes, bool *none) {
    const int64_t *given = NULL;
    int64_t count = 0;
    bool found;
    enum rfx_status status = rfx_onnx_list_ints(ctx, "axes", 1, &given, &count, &found);
    if (status != RFX_OK) return status;
    *none = count == 0 && rfx_onnx_attr_int(ctx, "noop_with_empty_axes", 0) != 0;
    for (int i = 0; i < rank; i++) axes[i] = count == 0 && !*none;
    for (int64_t i = 0; i < count; i++) {
        int axis;
        status = rfx_onnx_axis(ctx, given[i], rank, &axis);
        if (status != RFX_OK) return status;
        axes[axis] = true;
    }
    return RFX_OK;
}

static enum rfx_reduce_kind reduce_kind(const struct rfx_onnx_import *ctx) {
    static const struct {
        const char *op;
        enum rfx_reduce_kind kind;
    } kinds[] = {{"ReduceMax", RFX_REDUCE_MAX}, {"ReduceMin", RFX_REDUCE_MIN},
                 {"ReduceSum", RFX_REDUCE_SUM}, {"ReduceL1", RFX_REDUCE_L1},
                 {"ReduceL2", RFX_REDUCE_L2},   {"ReduceSumSquare", RFX_REDUCE_SUM_SQUARE}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(ctx->node->op, kinds[i].op) == 0) return kinds[i].kind;
    return RFX_REDUCE_MEAN;
}

static enum rfx_status over_channels(struct rfx_onnx_import *ctx, const char *suffix,
                                     enum rfx_reduce_kind kind, int in, int *out) {
    struct rfx_node node = {.op = RFX_OP_CHANNEL_REDUCE, .attr.reduce.kind = kind};
    return rfx_onnx_emit(ctx, &node, suffix, &in, 1, out);
}

/* What a map's reduction over all pixels, and over all channels if `channels`, is made of: a
 * function of every value, one of the pixels' sums, the sum over channels, one of its result. */
static enum rfx_status over_space(struct rfx_onnx_import *ctx, enum rfx_reduce_kind kind,
                                  bool channels, int in, int *out) {
    bool l1 = kind == RFX_REDUCE_L1, l2 = kind == RFX_REDUCE_L2;
    struct rfx_node pool = {.op = RFX_OP_GLOBAL_POOL, .attr.global_pool = {kind}};
    enum rfx_status status = RFX_OK;
    if (l1) status = rfx_onnx_act(ctx, "/magnitudes", in, RFX_ACT_ABS, 0.0f, 0.0f, &in);
    if (l1) pool.attr.global_pool.kind = RFX_REDUCE_SUM;
    if (l2) pool.attr.global_pool.kind = RFX_REDUCE_SUM_SQUARE;
    const char *suffix = l2 ? "/squares" : channels ? "/space" : "";
    if (status == RFX_OK) status = rfx_onnx_emit(ctx, &pool, suffix, &in, 1, out);
    bool sums = l1 || l2 || kind == RFX_REDUCE_SUM_SQUARE;
    if (status == RFX_OK && channels)
        status = over_channels(ctx, l2 ? "/channels" : "", sums ? RFX_REDUCE_SUM : kind, *out, out);
    if (status == RFX_OK && l2) status = rfx_onnx_act(ctx, "", *out, RFX_ACT_SQRT, 0.0f, 0.0f, out);
    return status;
}

/* Gives a reduced map the shape that the node's output has. `last`: the input was (1, h, w, c). */
static enum rfx_status finish_map(struct rfx_onnx_import *ctx, const struct rfx_shape *in,
                                  const bool *axes, bool keep, bool last, int map) {
    struct rfx_onnx_operand made = {map, NULL};
    struct rfx_shape kept = {0, {0}};
    if (keep && last) {
        enum rfx_status status = rfx_onnx_channels_last(ctx, map, &made.node);
        if (status != RFX_OK) return status;
    }
    if (keep) return rfx_onnx_set(ctx, 0, made);
    for (int i = 0; i < in->rank; i++)
        if (!axes[i]) kept.dims[kept.rank++] = in->dims[i];
    enum rfx_status status = rfx_onnx_plain(ctx, made, &made.node);
    if (status == RFX_OK) status = rfx_onnx_reshape(ctx, made.node, &kept, &made.node);
    return status == RFX_OK ? rfx_onnx_set(ctx, 0, made) : status;
}

enum rfx_status rfx_onnx_reduce(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_operand x = rfx_onnx_in(ctx, 0);
    struct rfx_node node = {.op = RFX_OP_REDUCE};
    bool none = false, keep = rfx_onnx_attr_int(ctx, "keepdims", 1) != 0;
    int in, out;
    enum rfx_status status = rfx_onnx_any(ctx, x, &in);
    if (status != RFX_OK) return status;
    const struct rfx_tensor t = *rfx_onnx_tensor_of(ctx, in);
    bool *axes = node.attr.reduce.axes;
    status = reduced_axes(ctx, t.shape.rank, axes, &none);
    if (status != RFX_OK) return status;
    if (none) return rfx_onnx_set_node(ctx, in);
    enum rfx_reduce_kind kind = reduce_kind(ctx);
    int behind = rfx_onnx_map_behind(ctx, in);
    bool last = behind >= 0, is_map = last || t.layout == RFX_LAYOUT_NHWC;
    if (is_map) {
        int channel = last ? 3 : 1, row = last ? 1 : 2, map = last ? behind : in;
        bool channels = axes[channel], space = axes[row] && axes[row + 1];
        bool partly = axes[row] != axes[row + 1];
        if (!partly && (space || channels)) {
            status = space ? over_space(ctx, kind, channels, map, &out)
                           : over_channels(ctx, "", kind, map, &out);
            return status == RFX_OK ? finish_map(ctx, &t.shape, axes, keep, last, out) : status;
        }
    }
    node.attr.reduce.kind = kind;
    node.attr.reduce.keep_dims = keep;
    status = rfx_onnx_plain(ctx, x, &in);
    if (status == RFX_OK) status = rfx_onnx_emit(ctx, &node, "", &in, 1, &out);
    return status == RFX_OK ? rfx_onnx_set_node(ctx, out) : status;
}
