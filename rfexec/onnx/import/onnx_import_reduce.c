/* Converters of reductions. A reduction of a map over all of space, over channels or over both
 * reads the map row by row. A reduction over other axes needs the whole tensor. */
#include <float.h>
#include <string.h>

#include "rfexec/onnx/import/onnx_import.h"

#define MAX_POWER 64 /* higher powers of float32 are almost always 0 or infinite */

struct reduction {
    enum rfx_reduce_kind kind;
    bool axes[RFX_MAX_RANK], keep; /* keep: reduced axes stay as axes of 1 */
    bool none;                     /* no axis is reduced */
};

static enum rfx_reduce_kind reduce_kind(const struct rfx_onnx_import *ctx) {
    static const char *const ops[] = {
        [RFX_REDUCE_MEAN] = "ReduceMean", [RFX_REDUCE_MAX] = "ReduceMax",
        [RFX_REDUCE_MIN] = "ReduceMin",   [RFX_REDUCE_SUM] = "ReduceSum",
        [RFX_REDUCE_L1] = "ReduceL1",     [RFX_REDUCE_L2] = "ReduceL2",
        [RFX_REDUCE_PROD] = "ReduceProd", [RFX_REDUCE_SUM_SQUARE] = "ReduceSumSquare"};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (ops[i] != NULL && rfx_onnx_op_is(ctx, ops[i])) return (enum rfx_reduce_kind)i;
    return RFX_REDUCE_MEAN;
}

static int over_channels(struct rfx_onnx_import *ctx, const char *suffix, enum rfx_reduce_kind kind,
                         int in) {
    struct rfx_node node = {.op = RFX_OP_CHANNEL_REDUCE, .attr.reduce.kind = kind};
    return rfx_onnx_emit1(ctx, &node, suffix, in);
}

/* Returns the reduction of a map over all pixels and, if `channels`, over all channels. Up to four
 * nodes do it: a function of every element, the reduction over pixels, the reduction over channels,
 * and a function of the result. */
static int over_space(struct rfx_onnx_import *ctx, enum rfx_reduce_kind kind, bool channels,
                      int in) {
    bool l1 = kind == RFX_REDUCE_L1, l2 = kind == RFX_REDUCE_L2;
    bool sums = l1 || l2 || kind == RFX_REDUCE_SUM_SQUARE;
    struct rfx_node pool = {.op = RFX_OP_GLOBAL_POOL, .attr.global_pool = {kind}};
    if (l1) in = rfx_onnx_apply(ctx, "/magnitudes", in, RFX_ACT_ABS);
    if (l1) pool.attr.global_pool.kind = RFX_REDUCE_SUM;
    if (l2) pool.attr.global_pool.kind = RFX_REDUCE_SUM_SQUARE;
    int out = rfx_onnx_emit1(ctx, &pool, l2 ? "/squares" : channels ? "/space" : "", in);
    if (channels)
        out = over_channels(ctx, l2 ? "/channels" : "", sums ? RFX_REDUCE_SUM : kind, out);
    return l2 ? rfx_onnx_apply(ctx, "", out, RFX_ACT_SQRT) : out;
}

/* Returns a reduced map in the shape of the reduction's result. `last`: the operand had the
 * channels in its last axis. */
static int finish_map(struct rfx_onnx_import *ctx, const struct rfx_shape *in,
                      const struct reduction *r, bool last, int map) {
    struct rfx_shape kept = {0, {0}};
    map = rfx_onnx_ordered(ctx, map, last); /* moves no bytes */
    if (r->keep) return map;
    for (int i = 0; i < in->rank; i++)
        if (!r->axes[i]) kept.dims[kept.rank++] = in->dims[i];
    return rfx_onnx_plain_as(ctx, map, &kept);
}

/* Returns a reduction of a map over channels, space or both, or of a map's tokens over their last
 * axis. Returns -1 for any other reduction. */
static int reduce_map(struct rfx_onnx_import *ctx, const struct reduction *r, int in) {
    const struct rfx_tensor t = *rfx_onnx_tensor_of(ctx, in);
    int behind = rfx_onnx_map_behind(ctx, in), rank = t.shape.rank;
    bool last = behind >= 0, in_order = r->kind == RFX_REDUCE_PROD || rfx_reduce_is_arg(r->kind);
    if (!last && t.layout != RFX_LAYOUT_NHWC) {
        int map = rfx_onnx_tokens_behind(ctx, in);
        for (int i = 0; i < rank; i++)
            if (map < 0 || r->axes[i] != (i == rank - 1)) return -1;
        return map < 0 ? -1
                       : finish_map(ctx, &t.shape, r, true, over_channels(ctx, "", r->kind, map));
    }
    int channel = last ? 3 : 1, row = last ? 1 : 2, map = last ? behind : in;
    bool channels = r->axes[channel], space = r->axes[row] && r->axes[row + 1];
    bool partly = r->axes[row] != r->axes[row + 1];
    if (partly || !(space || channels) || (space && in_order)) return -1;
    if (rfx_reduce_is_arg(r->kind) && r->axes[0]) return -1;
    int out =
        space ? over_space(ctx, r->kind, channels, map) : over_channels(ctx, "", r->kind, map);
    return finish_map(ctx, &t.shape, r, last, out);
}

static int emit_reduction(struct rfx_onnx_import *ctx, const char *suffix,
                          const struct reduction *r, int in) {
    struct rfx_node node = {.op = RFX_OP_REDUCE};
    struct rfx_onnx_operand x = rfx_onnx_of(in);
    if (in < 0) return -1;
    if (r->none) { /* only the function of every element remains */
        if (r->kind == RFX_REDUCE_L1 || r->kind == RFX_REDUCE_L2)
            return rfx_onnx_apply(ctx, suffix, in, RFX_ACT_ABS);
        return r->kind == RFX_REDUCE_SUM_SQUARE
                   ? rfx_onnx_combine(ctx, RFX_BINARY_MUL, suffix, x, x)
                   : in;
    }
    int out = reduce_map(ctx, r, in);
    if (out >= 0 || rfx_onnx_failed(ctx)) return out;
    node.attr.reduce.kind = r->kind;
    node.attr.reduce.keep_dims = r->keep;
    memcpy(node.attr.reduce.axes, r->axes, sizeof r->axes);
    return rfx_onnx_emit1(ctx, &node, suffix, rfx_onnx_plain(ctx, x));
}

int rfx_onnx_sum_over(struct rfx_onnx_import *ctx, const char *suffix, const bool *axes, int in) {
    struct reduction r = {.kind = RFX_REDUCE_SUM};
    memcpy(r.axes, axes, sizeof r.axes);
    return emit_reduction(ctx, suffix, &r, in);
}

int rfx_onnx_reduce_all(struct rfx_onnx_import *ctx, const char *suffix, enum rfx_reduce_kind kind,
                        int in) {
    struct rfx_node pool = {.op = RFX_OP_GLOBAL_POOL, .attr.global_pool = {kind}};
    struct rfx_node whole = {.op = RFX_OP_REDUCE, .attr.reduce = {.kind = kind, .keep_dims = true}};
    int rank = rfx_onnx_tensor_of(ctx, in)->shape.rank;
    if (rfx_onnx_is_map(ctx, in))
        return over_channels(ctx, suffix, kind, rfx_onnx_emit1(ctx, &pool, suffix, in));
    for (int i = 0; i < rank; i++) whole.attr.reduce.axes[i] = true;
    return rfx_onnx_emit1(ctx, &whole, suffix, in);
}

/* Reads keepdims and the axes (attribute or input 1), and returns operand 0. Without axes, all axes
 * are reduced or, with noop_with_empty_axes, none. */
static int read_reduction(struct rfx_onnx_import *ctx, struct reduction *r) {
    const int64_t *given;
    int64_t count;
    int in = rfx_onnx_any(ctx, rfx_onnx_in(ctx, 0)), rank = rfx_onnx_tensor_of(ctx, in)->shape.rank;
    r->keep = rfx_onnx_attr_flag(ctx, "keepdims", true);
    (void)rfx_onnx_list_ints(ctx, "axes", 1, &given, &count);
    r->none = rfx_onnx_attr_flag(ctx, "noop_with_empty_axes", false) && count == 0;
    for (int i = 0; i < rank; i++) r->axes[i] = count == 0 && !r->none;
    for (int64_t i = 0; i < count; i++) r->axes[rfx_onnx_axis(ctx, given[i], rank)] = true;
    return in;
}

int rfx_onnx_reduce(struct rfx_onnx_import *ctx) {
    struct reduction r = {.kind = reduce_kind(ctx)};
    int in = read_reduction(ctx, &r);
    return emit_reduction(ctx, "", &r, in);
}

int64_t rfx_onnx_power(struct rfx_onnx_import *ctx) {
    const struct rfx_onnx_attr *a = rfx_onnx_attr_find(ctx, "p");
    if (a == NULL || a->kind != RFX_ONNX_ATTR_FLOAT) return rfx_onnx_attr_int(ctx, "p", 2);
    if (a->f >= 1.0f && a->f <= (float)MAX_POWER && a->f == (float)(int64_t)a->f)
        return (int64_t)a->f;
    return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                           "p = %g: only whole numbers from 1 to %d are supported", (double)a->f,
                           MAX_POWER);
}

/* GlobalLpPool. For p = 1 and 2 it is ReduceL1 and ReduceL2 over space. For other p it is the p-th
 * root of the sum of |x|^p over space: each power is rounded once, and the sum is exact. */
int rfx_onnx_global_lp_pool(struct rfx_onnx_import *ctx) {
    struct rfx_node sum = {.op = RFX_OP_GLOBAL_POOL, .attr.global_pool = {RFX_REDUCE_SUM}};
    int64_t p = rfx_onnx_power(ctx);
    if (p < 1 || p > MAX_POWER)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "p = %lld: only 1 to %d are supported",
                               (long long)p, MAX_POWER);
    int x = rfx_onnx_map(ctx, rfx_onnx_in(ctx, 0));
    if (p <= 2) return over_space(ctx, p == 1 ? RFX_REDUCE_L1 : RFX_REDUCE_L2, false, x);
    x = rfx_onnx_apply(ctx, "/magnitudes", x, RFX_ACT_ABS);
    x = rfx_onnx_act(ctx, "/powers", x, RFX_ACT_POW, (float)p, 0.0f);
    x = rfx_onnx_emit1(ctx, &sum, "/space", x);
    return rfx_onnx_act(ctx, "", x, RFX_ACT_POW, 1.0f / (float)p, 0.0f);
}

/* ArgMax and ArgMin: the index along one axis, as a float32 number. */
int rfx_onnx_arg(struct rfx_onnx_import *ctx) {
    bool last = rfx_onnx_attr_flag(ctx, "select_last_index", false);
    struct reduction r = {.keep = rfx_onnx_attr_flag(ctx, "keepdims", true)};
    if (rfx_onnx_op_is(ctx, "ArgMax"))
        r.kind = last ? RFX_REDUCE_ARG_MAX_LAST : RFX_REDUCE_ARG_MAX;
    else
        r.kind = last ? RFX_REDUCE_ARG_MIN_LAST : RFX_REDUCE_ARG_MIN;
    int in = rfx_onnx_any(ctx, rfx_onnx_in(ctx, 0));
    r.axes[rfx_onnx_axis_attr(ctx, 0, rfx_onnx_tensor_of(ctx, in)->shape.rank)] = true;
    return emit_reduction(ctx, "", &r, in);
}

/* Hardmax: 1 at the first largest element along an axis, 0 elsewhere. Before opset 13 all axes from
 * `axis` on together are one vector. */
int rfx_onnx_hardmax(struct rfx_onnx_import *ctx) {
    bool old = ctx->opset < 13;
    struct reduction r = {.kind = RFX_REDUCE_ARG_MAX, .keep = true};
    int in = rfx_onnx_any(ctx, rfx_onnx_in(ctx, 0));
    const struct rfx_shape shape = rfx_onnx_tensor_of(ctx, in)->shape;
    int axis = rfx_onnx_axis_attr(ctx, old ? 1 : -1, shape.rank);
    struct rfx_shape two = {
        2, {rfx_shape_product(&shape, 0, axis), rfx_shape_product(&shape, axis, shape.rank)}};
    struct rfx_shape line = {shape.rank, {1, 1, 1, 1, 1, 1, 1, 1}};
    line.dims[axis] = shape.dims[axis];
    bool flat = old && rfx_shape_product(&shape, axis + 1, shape.rank) != 1;
    if (flat) {
        in = rfx_onnx_plain_as(ctx, in, &two);
        axis = 1;
        line = (struct rfx_shape){2, {1, two.dims[1]}};
    }
    r.axes[axis] = true;
    struct rfx_onnx_operand place = rfx_onnx_of(emit_reduction(ctx, "/place", &r, in));
    struct rfx_onnx_const *places = rfx_onnx_const_new(ctx, RFX_ONNX_INT64, &line);
    for (int64_t i = 0; places != NULL && i < places->elems; i++)
        rfx_onnx_const_ints_rw(places)[i] = i;
    int out = rfx_onnx_combine(ctx, RFX_BINARY_EQUAL, "", place, rfx_onnx_of_const(places));
    return flat ? rfx_onnx_reshape(ctx, out, &shape) : out;
}

/* ReduceLogSum is the logarithm of the sum. ReduceLogSumExp is max + log(sum of exp(x - max)). The
 * maximum is clipped to finite numbers, so that nothing overflows. */
int rfx_onnx_reduce_log(struct rfx_onnx_import *ctx) {
    bool exp = rfx_onnx_op_is(ctx, "ReduceLogSumExp");
    struct reduction r = {.kind = RFX_REDUCE_SUM};
    int in = read_reduction(ctx, &r);
    struct reduction keep = r, drop = r;
    if (!exp) return rfx_onnx_apply(ctx, "", emit_reduction(ctx, "/sum", &r, in), RFX_ACT_LOG);
    keep.keep = true;
    keep.kind = RFX_REDUCE_MAX;
    int max = emit_reduction(ctx, "/max", &keep, in);
    max = rfx_onnx_act(ctx, "/finite", max, RFX_ACT_CLIP, -FLT_MAX, FLT_MAX);
    int x = rfx_onnx_combine(ctx, RFX_BINARY_SUB, "/less", rfx_onnx_of(in), rfx_onnx_of(max));
    x = rfx_onnx_apply(ctx, "/exp", x, RFX_ACT_EXP);
    keep.kind = RFX_REDUCE_SUM;
    x = rfx_onnx_apply(ctx, "/log", emit_reduction(ctx, "/sum", &keep, x), RFX_ACT_LOG);
    x = rfx_onnx_combine(ctx, RFX_BINARY_ADD, r.keep ? "" : "/kept", rfx_onnx_of(x),
                         rfx_onnx_of(max));
    /* a sum over axes of size 1 removes these axes */
    return r.keep || r.none ? x : emit_reduction(ctx, "", &drop, x);
}
