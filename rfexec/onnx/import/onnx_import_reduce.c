/* Conversion of reductions: over all of space, over channels, over both: parts of maps as they
 * come; over other axes: whole tensors. */
#include <float.h>
#include <string.h>

#include "rfexec/onnx/import/onnx_import.h"

#define MAX_POWER 64 /* beyond it powers of float32 are all but 0 or infinite */

/* Which axes to reduce: attribute or input 1; none given: all, or none. */
static enum rfx_status reduced_axes(struct rfx_onnx_import *ctx, int rank, bool *axes, bool *none) {
    const int64_t *given = NULL;
    int64_t count = 0;
    bool found;
    enum rfx_status status = rfx_onnx_list_ints(ctx, "axes", 1, &given, &count, &found);
    if (status != RFX_OK) return status;
    *none = rfx_onnx_attr_flag(ctx, "noop_with_empty_axes", false) && count == 0;
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
    } kinds[] = {{"ReduceMax", RFX_REDUCE_MAX},  {"ReduceMin", RFX_REDUCE_MIN},
                 {"ReduceSum", RFX_REDUCE_SUM},  {"ReduceL1", RFX_REDUCE_L1},
                 {"ReduceL2", RFX_REDUCE_L2},    {"ReduceSumSquare", RFX_REDUCE_SUM_SQUARE},
                 {"ReduceProd", RFX_REDUCE_PROD}};
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

/* Gives a reduced map the shape that a reduction has. `last`: the input was (1, h, w, c). */
static enum rfx_status finish_map(struct rfx_onnx_import *ctx, const struct rfx_shape *in,
                                  const bool *axes, bool keep, bool last, int *map) {
    struct rfx_onnx_operand made = {*map, NULL};
    struct rfx_shape kept = {0, {0}};
    if (keep) return last ? rfx_onnx_channels_last(ctx, *map, map) : RFX_OK;
    if (last) { /* its shape is that of a map; of its bytes none moves */
        enum rfx_status status = rfx_onnx_channels_last(ctx, *map, &made.node);
        if (status != RFX_OK) return status;
    }
    for (int i = 0; i < in->rank; i++)
        if (!axes[i]) kept.dims[kept.rank++] = in->dims[i];
    enum rfx_status status = rfx_onnx_plain(ctx, made, &made.node);
    return status == RFX_OK ? rfx_onnx_reshape(ctx, made.node, &kept, map) : status;
}

struct reduction {
    enum rfx_reduce_kind kind;
    bool axes[RFX_MAX_RANK], keep, none; /* none: no axis, nothing is done */
};

/* Over the channels of a map's tokens, which are their last axis. */
static enum rfx_status reduce_tokens(struct rfx_onnx_import *ctx, const struct reduction *r, int in,
                                     int *out, bool *done) {
    const struct rfx_shape shape = rfx_onnx_tensor_of(ctx, in)->shape;
    int map = rfx_onnx_tokens_behind(ctx, in);
    for (int i = 0; i < shape.rank; i++)
        if (map < 0 || r->axes[i] != (i == shape.rank - 1)) return RFX_OK;
    *done = true;
    enum rfx_status status = over_channels(ctx, "", r->kind, map, out);
    return status == RFX_OK ? finish_map(ctx, &shape, r->axes, r->keep, true, out) : status;
}

/* Over channels, over space, or both of a map, where that has a form; *done says so. */
static enum rfx_status reduce_map(struct rfx_onnx_import *ctx, const struct reduction *r, int in,
                                  int *out, bool *done) {
    const struct rfx_tensor t = *rfx_onnx_tensor_of(ctx, in);
    int behind = rfx_onnx_map_behind(ctx, in);
    bool last = behind >= 0;
    if (!last && t.layout != RFX_LAYOUT_NHWC) return reduce_tokens(ctx, r, in, out, done);
    int channel = last ? 3 : 1, row = last ? 1 : 2, map = last ? behind : in;
    bool channels = r->axes[channel], space = r->axes[row] && r->axes[row + 1];
    bool partly = r->axes[row] != r->axes[row + 1];
    bool in_order = r->kind == RFX_REDUCE_PROD || rfx_reduce_is_arg(r->kind);
    if (partly || !(space || channels) || (space && in_order)) return RFX_OK;
    if (rfx_reduce_is_arg(r->kind) && r->axes[0]) return RFX_OK;
    *done = true;
    enum rfx_status status = space ? over_space(ctx, r->kind, channels, map, out)
                                   : over_channels(ctx, "", r->kind, map, out);
    return status == RFX_OK ? finish_map(ctx, &t.shape, r->axes, r->keep, last, out) : status;
}

/* What is left of a reduction over no axis: what is done to each element before the sum. */
static enum rfx_status of_each(struct rfx_onnx_import *ctx, const char *suffix,
                               enum rfx_reduce_kind kind, int in, int *out) {
    struct rfx_onnx_operand x = {in, NULL};
    *out = in;
    if (kind == RFX_REDUCE_L1 || kind == RFX_REDUCE_L2)
        return rfx_onnx_act(ctx, suffix, in, RFX_ACT_ABS, 0.0f, 0.0f, out);
    if (kind == RFX_REDUCE_SUM_SQUARE)
        return rfx_onnx_combine(ctx, RFX_BINARY_MUL, suffix, x, x, out);
    return RFX_OK;
}

static enum rfx_status emit_reduction(struct rfx_onnx_import *ctx, const char *suffix,
                                      const struct reduction *r, int in, int *out) {
    struct rfx_onnx_operand x = {in, NULL};
    struct rfx_node node = {.op = RFX_OP_REDUCE};
    bool done = false;
    *out = in;
    if (r->none) return of_each(ctx, suffix, r->kind, in, out);
    enum rfx_status status = reduce_map(ctx, r, in, out, &done);
    if (status != RFX_OK || done) return status;
    node.attr.reduce.kind = r->kind;
    node.attr.reduce.keep_dims = r->keep;
    memcpy(node.attr.reduce.axes, r->axes, sizeof r->axes);
    status = rfx_onnx_plain(ctx, x, &in);
    return status == RFX_OK ? rfx_onnx_emit(ctx, &node, suffix, &in, 1, out) : status;
}

enum rfx_status rfx_onnx_sum_over(struct rfx_onnx_import *ctx, const char *suffix, const bool *axes,
                                  int in, int *out) {
    struct reduction r = {.kind = RFX_REDUCE_SUM};
    memcpy(r.axes, axes, sizeof r.axes);
    return emit_reduction(ctx, suffix, &r, in, out);
}

/* Operand 0, axes and keepdims of the current node. */
static enum rfx_status read_reduction(struct rfx_onnx_import *ctx, struct reduction *r, int *in) {
    enum rfx_status status = rfx_onnx_any(ctx, rfx_onnx_in(ctx, 0), in);
    if (status != RFX_OK) return status;
    r->keep = rfx_onnx_attr_flag(ctx, "keepdims", true);
    return reduced_axes(ctx, rfx_onnx_tensor_of(ctx, *in)->shape.rank, r->axes, &r->none);
}

enum rfx_status rfx_onnx_reduce(struct rfx_onnx_import *ctx) {
    struct reduction r = {.kind = reduce_kind(ctx)};
    int in, out;
    enum rfx_status status = read_reduction(ctx, &r, &in);
    if (status == RFX_OK) status = emit_reduction(ctx, "", &r, in, &out);
    return status == RFX_OK ? rfx_onnx_set_node(ctx, out) : status;
}

/* The sum of |x|^p over all of space, and its root: every power is rounded once, sums are exact. */
static enum rfx_status of_powers(struct rfx_onnx_import *ctx, float p, int in, int *out) {
    enum rfx_status status = rfx_onnx_act(ctx, "/magnitudes", in, RFX_ACT_ABS, 0.0f, 0.0f, &in);
    if (status == RFX_OK) status = rfx_onnx_act(ctx, "/powers", in, RFX_ACT_POW, p, 0.0f, &in);
    struct rfx_node sum = {.op = RFX_OP_GLOBAL_POOL, .attr.global_pool = {RFX_REDUCE_SUM}};
    if (status == RFX_OK) status = rfx_onnx_emit(ctx, &sum, "/space", &in, 1, out);
    return status == RFX_OK ? rfx_onnx_act(ctx, "", *out, RFX_ACT_POW, 1.0f / p, 0.0f, out)
                            : status;
}

enum rfx_status rfx_onnx_power(struct rfx_onnx_import *ctx, int64_t *p) {
    const struct rfx_onnx_attr *a = rfx_onnx_attr_find(ctx, "p");
    bool whole = a == NULL || a->kind != RFX_ONNX_ATTR_FLOAT ||
                 (a->f >= 1.0f && a->f <= (float)MAX_POWER && a->f == (float)(int64_t)a->f);
    if (!whole)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                               "p = %g: only whole numbers from 1 to %d are supported",
                               (double)a->f, MAX_POWER);
    *p = a != NULL && a->kind == RFX_ONNX_ATTR_FLOAT ? (int64_t)a->f
                                                     : rfx_onnx_attr_int(ctx, "p", 2);
    return RFX_OK;
}

/* GlobalLpPool: ReduceL1 or ReduceL2 over space, or the same of other powers. */
enum rfx_status rfx_onnx_global_lp_pool(struct rfx_onnx_import *ctx) {
    int64_t p = 2;
    int in, out;
    enum rfx_status status = rfx_onnx_power(ctx, &p);
    if (status == RFX_OK && (p < 1 || p > MAX_POWER))
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "p = %lld: only 1 to %d are supported",
                               (long long)p, MAX_POWER);
    if (status == RFX_OK) status = rfx_onnx_map(ctx, rfx_onnx_in(ctx, 0), &in);
    if (status != RFX_OK) return status;
    if (p > 2)
        status = of_powers(ctx, (float)p, in, &out);
    else
        status = over_space(ctx, p == 1 ? RFX_REDUCE_L1 : RFX_REDUCE_L2, false, in, &out);
    return status == RFX_OK ? rfx_onnx_set_node(ctx, out) : status;
}

/* ArgMax and ArgMin: where along one axis, as a number. */
enum rfx_status rfx_onnx_arg(struct rfx_onnx_import *ctx) {
    bool last = rfx_onnx_attr_flag(ctx, "select_last_index", false);
    struct reduction r = {.keep = rfx_onnx_attr_flag(ctx, "keepdims", true)};
    int in, out, axis;
    if (strcmp(ctx->node->op, "ArgMax") == 0)
        r.kind = last ? RFX_REDUCE_ARG_MAX_LAST : RFX_REDUCE_ARG_MAX;
    else
        r.kind = last ? RFX_REDUCE_ARG_MIN_LAST : RFX_REDUCE_ARG_MIN;
    enum rfx_status status = rfx_onnx_any(ctx, rfx_onnx_in(ctx, 0), &in);
    if (status != RFX_OK) return status;
    status = rfx_onnx_axis(ctx, rfx_onnx_attr_int(ctx, "axis", 0),
                           rfx_onnx_tensor_of(ctx, in)->shape.rank, &axis);
    if (status != RFX_OK) return status;
    r.axes[axis] = true;
    status = emit_reduction(ctx, "", &r, in, &out);
    return status == RFX_OK ? rfx_onnx_set_node(ctx, out) : status;
}

/* 0, 1, 2 ... along an axis of a tensor of that rank, and one elsewhere; NULL: no memory. */
static struct rfx_onnx_const *places_along(struct rfx_onnx_import *ctx, int rank, int axis,
                                           int64_t count) {
    struct rfx_shape shape = {.rank = rank};
    for (int i = 0; i < rank; i++) shape.dims[i] = i == axis ? count : 1;
    struct rfx_onnx_const *c = rfx_onnx_const_new(ctx, RFX_ONNX_INT64, &shape);
    for (int64_t i = 0; c != NULL && i < count; i++) rfx_onnx_const_ints_rw(c)[i] = i;
    return c;
}

/* 1 where along an axis the largest element is, the first of equal ones, and 0 elsewhere. Before
 * opset 13 everything from `axis` on is one vector. */
enum rfx_status rfx_onnx_hardmax(struct rfx_onnx_import *ctx) {
    bool old = ctx->opset < 13;
    struct reduction r = {.kind = RFX_REDUCE_ARG_MAX, .keep = true};
    struct rfx_onnx_operand place = {-1, NULL}, places = {-1, NULL};
    int in, out = -1, axis;
    enum rfx_status status = rfx_onnx_any(ctx, rfx_onnx_in(ctx, 0), &in);
    if (status != RFX_OK) return status;
    const struct rfx_shape shape = rfx_onnx_tensor_of(ctx, in)->shape;
    status = rfx_onnx_axis(ctx, rfx_onnx_attr_int(ctx, "axis", old ? 1 : -1), shape.rank, &axis);
    if (status != RFX_OK) return status;
    const struct rfx_shape two = {
        2, {rfx_onnx_product(&shape, 0, axis), rfx_onnx_product(&shape, axis, shape.rank)}};
    bool flat = old && rfx_onnx_product(&shape, axis + 1, shape.rank) != 1;
    if (flat) status = rfx_onnx_plain(ctx, rfx_onnx_in(ctx, 0), &in);
    if (flat && status == RFX_OK) status = rfx_onnx_reshape(ctx, in, &two, &in);
    if (flat) axis = 1;
    r.axes[axis] = true;
    if (status == RFX_OK) status = emit_reduction(ctx, "/place", &r, in, &place.node);
    if (status != RFX_OK) return status;
    places.constant =
        places_along(ctx, flat ? 2 : shape.rank, axis, flat ? two.dims[1] : shape.dims[axis]);
    if (places.constant == NULL)
        return rfx_onnx_refuse(ctx, RFX_STATUS_OUT_OF_MEMORY, "no memory for places");
    status = rfx_onnx_combine(ctx, RFX_BINARY_EQUAL, "", place, places, &out);
    if (status == RFX_OK && flat) status = rfx_onnx_reshape(ctx, out, &shape, &out);
    return status == RFX_OK ? rfx_onnx_set_node(ctx, out) : status;
}

/* x - max and its exponential; the maximum stays where it is finite, so that nothing overflows. */
static enum rfx_status exponentials(struct rfx_onnx_import *ctx, struct reduction r, int in,
                                    struct rfx_onnx_operand *max, int *out) {
    struct rfx_onnx_operand x = {in, NULL};
    r.kind = RFX_REDUCE_MAX;
    r.keep = true;
    enum rfx_status status = emit_reduction(ctx, "/max", &r, in, &max->node);
    if (status == RFX_OK)
        status =
            rfx_onnx_act(ctx, "/finite", max->node, RFX_ACT_CLIP, -FLT_MAX, FLT_MAX, &max->node);
    if (status == RFX_OK) status = rfx_onnx_combine(ctx, RFX_BINARY_SUB, "/less", x, *max, out);
    return status == RFX_OK ? rfx_onnx_act(ctx, "/exp", *out, RFX_ACT_EXP, 0.0f, 0.0f, out)
                            : status;
}

/* ReduceLogSum: log of the sum; ReduceLogSumExp: max + log of the sum of exp(x - max). */
enum rfx_status rfx_onnx_reduce_log(struct rfx_onnx_import *ctx) {
    bool exp = strcmp(ctx->node->op, "ReduceLogSumExp") == 0;
    struct reduction r = {.kind = RFX_REDUCE_SUM}, again;
    struct rfx_onnx_operand max = {-1, NULL}, log = {-1, NULL};
    int in, out;
    enum rfx_status status = read_reduction(ctx, &r, &in);
    if (status != RFX_OK) return status;
    out = in;
    if (exp) status = exponentials(ctx, r, in, &max, &out);
    again = r;
    again.keep = exp || r.keep;
    if (status == RFX_OK) status = emit_reduction(ctx, "/sum", &again, out, &out);
    if (status == RFX_OK)
        status = rfx_onnx_act(ctx, exp ? "/log" : "", out, RFX_ACT_LOG, 0.0f, 0.0f, &out);
    log.node = out;
    if (status == RFX_OK && exp)
        status = rfx_onnx_combine(ctx, RFX_BINARY_ADD, r.keep ? "" : "/kept", log, max, &out);
    again = r;
    again.kind = RFX_REDUCE_SUM; /* of one element each: axes that are 1 already go */
    if (status == RFX_OK && exp && !r.keep && !r.none)
        status = emit_reduction(ctx, "", &again, out, &out);
    return status == RFX_OK ? rfx_onnx_set_node(ctx, out) : status;
}
