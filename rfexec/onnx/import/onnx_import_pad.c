/* Conversion of Pad: maps by rows; tensors whose channels are padded with zeros as maps; others as
 * whole tensors, joined with constants or picked by index. */
#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/onnx/import/onnx_import.h"

struct pad {
    enum rfx_pad_mode mode;
    double value;
    int64_t before[RFX_MAX_RANK], after[RFX_MAX_RANK];
};

static enum rfx_status finish(struct rfx_onnx_import *ctx, enum rfx_status status, int out) {
    return status == RFX_OK ? rfx_onnx_set_node(ctx, out) : status;
}

static enum rfx_status no_memory(struct rfx_onnx_import *ctx) {
    return rfx_onnx_refuse(ctx, RFX_STATUS_OUT_OF_MEMORY, "no memory for a pad");
}

/* Pads per axis: attribute up to opset 10, inputs from 11 on, with axes from 18 on. */
static enum rfx_status read_pads(struct rfx_onnx_import *ctx, int rank, int64_t *before,
                                 int64_t *after) {
    const int64_t *pads = NULL, *axes = NULL;
    int64_t n_pads, n_axes = 0;
    bool found, has_axes = false;
    enum rfx_status status = rfx_onnx_list_ints(ctx, "pads", 1, &pads, &n_pads, &found);
    if (status == RFX_OK && ctx->opset >= 18)
        status = rfx_onnx_list_ints(ctx, "", 3, &axes, &n_axes, &has_axes);
    if (status != RFX_OK) return status;
    if (!found || n_pads != 2 * (has_axes ? n_axes : rank) || n_axes > rank)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "%lld pads for rank %d",
                               (long long)n_pads, rank);
    for (int i = 0; i < rank; i++) before[i] = after[i] = 0;
    for (int64_t i = 0; i < n_pads / 2; i++) {
        int axis = 0;
        status = rfx_onnx_axis(ctx, has_axes ? axes[i] : i, rank, &axis);
        if (status != RFX_OK) return status;
        before[axis] = pads[i];
        after[axis] = pads[i + n_pads / 2];
        if (pads[i] < -(1 << 24) || pads[i] > 1 << 24 || after[axis] < -(1 << 24) ||
            after[axis] > 1 << 24)
            return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "a pad of %lld, %lld",
                                   (long long)pads[i], (long long)after[axis]);
    }
    return RFX_OK;
}

/* Zeros before and after the channels of map *in; negative pads drop channels. */
static enum rfx_status pad_channels(struct rfx_onnx_import *ctx, int64_t before, int64_t after,
                                    int *in) {
    int64_t c = ctx->graph->nodes[*in].out.c, count;
    if (!rfx_checked_add_i64(c, before + after, &count) || count < 1)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "channel pads of %lld, %lld",
                               (long long)before, (long long)after);
    int64_t *map = rfx_arena_alloc(ctx->arena, (size_t)count, sizeof *map);
    if (map == NULL) return no_memory(ctx);
    for (int64_t i = 0; i < count; i++) map[i] = i >= before && i - before < c ? i - before : -1;
    struct rfx_node node = {.op = RFX_OP_CHANNEL_SELECT};
    node.attr.select.count = count;
    node.attr.select.map = map;
    int source = *in;
    return rfx_onnx_emit(ctx, &node, "", &source, 1, in);
}

/* What is cut off by negative pads goes first: the rest is padded. */
static enum rfx_status cut_map(struct rfx_onnx_import *ctx, struct rfx_pads *p, int *in) {
    const struct rfx_tensor *t = rfx_onnx_tensor_of(ctx, *in);
    struct rfx_node crop = {.op = RFX_OP_CROP};
    int64_t top = rfx_max_i64(-p->top, 0), left = rfx_max_i64(-p->left, 0);
    int64_t h = t->h - top + rfx_min_i64(p->bottom, 0), w = t->w - left + rfx_min_i64(p->right, 0);
    if (h == t->h && w == t->w) return RFX_OK;
    if (h < 1 || w < 1)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "negative pads remove all of %lldx%lld",
                               (long long)t->h, (long long)t->w);
    crop.attr.crop.y0 = top;
    crop.attr.crop.x0 = left;
    crop.attr.crop.sy = crop.attr.crop.sx = 1;
    crop.attr.crop.oh = h;
    crop.attr.crop.ow = w;
    *p = (struct rfx_pads){rfx_max_i64(p->top, 0), rfx_max_i64(p->left, 0),
                           rfx_max_i64(p->bottom, 0), rfx_max_i64(p->right, 0)};
    int source = *in;
    return rfx_onnx_emit(ctx, &crop, "/cut", &source, 1, in);
}

/* `last`: the result is wanted with its channels last, as the tensor was whose map is padded. */
static enum rfx_status pad_map(struct rfx_onnx_import *ctx, struct rfx_onnx_operand x,
                               const struct pad *pad, bool last) {
    struct rfx_node node = {.op = RFX_OP_PAD};
    struct rfx_pads pads = {pad->before[2], pad->before[3], pad->after[2], pad->after[3]};
    int in, out = -1;
    enum rfx_status status = rfx_onnx_map(ctx, x, &in);
    ctx->order = -1;
    if (status == RFX_OK && (pad->before[1] != 0 || pad->after[1] != 0))
        status = pad_channels(ctx, pad->before[1], pad->after[1], &in);
    if (pads.top == 0 && pads.left == 0 && pads.bottom == 0 && pads.right == 0)
        return status == RFX_OK ? rfx_onnx_set_as(ctx, in, last) : status;
    if (status == RFX_OK && pad->mode == RFX_PAD_WRAP) status = cut_map(ctx, &pads, &in);
    if (status != RFX_OK) return status;
    node.attr.pad.mode = pad->mode;
    node.attr.pad.pads = pads;
    node.attr.pad.value = (float)pad->value;
    status = rfx_onnx_emit(ctx, &node, "", &in, 1, &out);
    return status == RFX_OK ? rfx_onnx_set_as(ctx, out, last) : status;
}

static struct pad channels_first(const struct pad *pad) {
    static const int from[4] = {0, 3, 1, 2};
    struct pad out = *pad;
    for (int i = 0; i < 4; i++) {
        out.before[i] = pad->before[from[i]];
        out.after[i] = pad->after[from[i]];
    }
    return out;
}

/* Whether the pads of a map are such that it stays one. */
static bool keeps_map(const struct pad *pad) {
    bool channels = pad->before[1] != 0 || pad->after[1] != 0;
    bool zeros = pad->mode == RFX_PAD_CONSTANT && pad->value == 0.0;
    return pad->before[0] == 0 && pad->after[0] == 0 && (!channels || zeros);
}

/* Zeros beside the channels of a map whose pixels a tensor holds in another order: *done. */
static enum rfx_status pad_pixels(struct rfx_onnx_import *ctx, struct rfx_onnx_operand x,
                                  const struct pad *pad, bool *done) {
    struct rfx_pixels p;
    int axis = -1, out;
    *done = false;
    if (pad->mode != RFX_PAD_CONSTANT || pad->value != 0.0 || x.node < 0 ||
        !rfx_pixels_of(ctx->graph, x.node, &p))
        return RFX_OK;
    for (int i = 0; i < p.rank; i++) {
        if (pad->before[i] == 0 && pad->after[i] == 0) continue;
        if (axis >= 0) return RFX_OK;
        axis = i;
    }
    if (axis < 0 || !rfx_pixels_axis_is_channels(&p, axis)) return RFX_OK;
    *done = true;
    out = p.map;
    enum rfx_status status = pad_channels(ctx, pad->before[axis], pad->after[axis], &out);
    if (status != RFX_OK) return status;
    p = rfx_pixels_with_channels(&p, axis, out, rfx_onnx_tensor_of(ctx, out)->c);
    status = rfx_onnx_emit_pixels(ctx, &p, &out);
    return finish(ctx, status, out);
}

/* Where the shifted index i of an axis of n comes from, i outside of it. */
static int64_t source_of(enum rfx_pad_mode mode, int64_t i, int64_t n) {
    if (mode == RFX_PAD_WRAP) return i - rfx_floor_div(i, n) * n;
    if (mode == RFX_PAD_EDGE || n == 1) return i < 0 ? 0 : n - 1;
    int64_t period = 2 * (n - 1), at = i - rfx_floor_div(i, period) * period;
    return at < n ? at : period - at;
}

/* One axis of a whole tensor, picked by index. */
static enum rfx_status pick_axis(struct rfx_onnx_import *ctx, const struct pad *pad, int axis,
                                 int *in) {
    int64_t n = rfx_onnx_tensor_of(ctx, *in)->shape.dims[axis];
    int64_t before = rfx_max_i64(pad->before[axis], 0), after = rfx_max_i64(pad->after[axis], 0);
    struct rfx_node gather = {.op = RFX_OP_PLAIN_GATHER};
    int64_t *map = rfx_arena_alloc(ctx->arena, (size_t)(n + before + after), sizeof *map);
    if (map == NULL) return no_memory(ctx);
    for (int64_t i = 0; i < n + before + after; i++)
        map[i] = i >= before && i < before + n ? i - before : source_of(pad->mode, i - before, n);
    gather.attr.gather.axis = axis;
    gather.attr.gather.count = n + before + after;
    gather.attr.gather.map = map;
    int source = *in;
    return rfx_onnx_emit(ctx, &gather, "/axis", &source, 1, in);
}

/* One axis of a whole tensor between two constants. */
static enum rfx_status join_axis(struct rfx_onnx_import *ctx, const struct pad *pad, int axis,
                                 int *in) {
    struct rfx_node join = {.op = RFX_OP_PLAIN_CONCAT, .attr.concat.axis = axis};
    struct rfx_shape shape = rfx_onnx_tensor_of(ctx, *in)->shape;
    int parts[3], n = 0;
    for (int side = 0; side < 3; side++) {
        int64_t size = side == 0 ? pad->before[axis] : pad->after[axis];
        if (side == 1) parts[n++] = *in;
        if (side == 1 || size <= 0) continue;
        shape.dims[axis] = size;
        struct rfx_onnx_operand fill = {-1, rfx_onnx_const_new_filled(ctx, RFX_ONNX_FLOAT, &shape)};
        if (fill.constant == NULL) return no_memory(ctx);
        for (int64_t i = 0; i < rfx_onnx_const_stored(fill.constant); i++)
            rfx_onnx_const_reals_rw(fill.constant)[i] = pad->value;
        enum rfx_status status = rfx_onnx_plain(ctx, fill, &parts[n++]);
        if (status != RFX_OK) return status;
    }
    return rfx_onnx_emit(ctx, &join, "/axis", parts, n, in);
}

/* A tensor of any rank, axis by axis. */
static enum rfx_status pad_tensor(struct rfx_onnx_import *ctx, struct rfx_onnx_operand x,
                                  const struct pad *pad) {
    int in;
    enum rfx_status status = rfx_onnx_plain(ctx, x, &in);
    if (status != RFX_OK) return status;
    struct rfx_node cut = {.op = RFX_OP_PLAIN_SLICE};
    struct rfx_shape *shape = &cut.attr.slice.shape;
    bool cuts = false;
    *shape = rfx_onnx_tensor_of(ctx, in)->shape;
    for (int i = 0; i < shape->rank; i++) {
        cut.attr.slice.steps[i] = 1;
        cut.attr.slice.starts[i] = rfx_max_i64(-pad->before[i], 0);
        int64_t gone = cut.attr.slice.starts[i] + rfx_max_i64(-pad->after[i], 0);
        cuts = cuts || gone > 0;
        shape->dims[i] -= gone;
        int64_t most = rfx_max_i64(pad->before[i], pad->after[i]);
        if (shape->dims[i] < 1 || (pad->mode == RFX_PAD_REFLECT && most >= shape->dims[i]))
            return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "axis %d: pads %lld, %lld of %lld",
                                   i, (long long)pad->before[i], (long long)pad->after[i],
                                   (long long)(shape->dims[i] + gone));
    }
    int source = in;
    if (cuts) status = rfx_onnx_emit(ctx, &cut, "/cut", &source, 1, &in);
    for (int i = 0; status == RFX_OK && i < cut.attr.slice.shape.rank; i++)
        if (pad->before[i] > 0 || pad->after[i] > 0)
            status = pad->mode == RFX_PAD_CONSTANT ? join_axis(ctx, pad, i, &in)
                                                   : pick_axis(ctx, pad, i, &in);
    return finish(ctx, status, in);
}

static enum rfx_status read_mode(struct rfx_onnx_import *ctx, struct pad *pad) {
    static const char *const modes[] = {[RFX_PAD_CONSTANT] = "constant",
                                        [RFX_PAD_REFLECT] = "reflect",
                                        [RFX_PAD_EDGE] = "edge",
                                        [RFX_PAD_WRAP] = "wrap"};
    const char *mode = rfx_onnx_attr_string(ctx, "mode", "constant");
    pad->value = (double)rfx_onnx_attr_float(ctx, "value", 0.0f);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (strcmp(mode, modes[i]) != 0) continue;
        pad->mode = (enum rfx_pad_mode)i;
        bool given = ctx->opset >= 11 && rfx_onnx_has(ctx, 2) && pad->mode == RFX_PAD_CONSTANT;
        return given ? rfx_onnx_in_number(ctx, 2, &pad->value) : RFX_OK;
    }
    return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "mode %.40s", mode);
}

static enum rfx_status emit_pad(struct rfx_onnx_import *ctx, struct rfx_onnx_operand x,
                                const struct rfx_shape *shape, const struct pad *pad) {
    bool none = true, done = false;
    for (int i = 0; i < shape->rank; i++) none = none && pad->before[i] == 0 && pad->after[i] == 0;
    if (none) return rfx_onnx_set(ctx, 0, x);
    int behind = rfx_onnx_map_behind(ctx, x.node);
    const struct pad first = behind >= 0 ? channels_first(pad) : *pad;
    if (behind >= 0 && keeps_map(&first)) {
        x.node = behind;
        return pad_map(ctx, x, &first, true);
    }
    if (shape->rank == 4 && shape->dims[0] == 1 && keeps_map(pad))
        return pad_map(ctx, x, pad, false);
    enum rfx_status status = pad_pixels(ctx, x, pad, &done);
    return status != RFX_OK || done ? status : pad_tensor(ctx, x, pad);
}

enum rfx_status rfx_onnx_pad(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_operand x = rfx_onnx_in(ctx, 0);
    struct pad pad;
    if (x.node < 0) return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "a constant input");
    const struct rfx_shape shape = *rfx_onnx_shape(ctx, x);
    enum rfx_status status = read_pads(ctx, shape.rank, pad.before, pad.after);
    if (status == RFX_OK) status = read_mode(ctx, &pad);
    return status == RFX_OK ? emit_pad(ctx, x, &shape, &pad) : status;
}

/* Per axis the middle of what is too long, or zeros on both sides of what is too short; what is odd
 * goes to the end. */
enum rfx_status rfx_onnx_center_crop_pad(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_operand x = rfx_onnx_in(ctx, 0);
    const int64_t *sizes, *axes = NULL;
    struct pad pad = {.mode = RFX_PAD_CONSTANT};
    struct rfx_onnx_const *wanted;
    int64_t n_axes;
    bool some;
    if (x.node < 0) return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "a constant input");
    const struct rfx_shape shape = *rfx_onnx_shape(ctx, x);
    enum rfx_status status = rfx_onnx_in_const(ctx, 1, &wanted);
    if (status == RFX_OK) status = rfx_onnx_const_ints(ctx, wanted, &sizes);
    if (status == RFX_OK) status = rfx_onnx_list_ints(ctx, "axes", 2, &axes, &n_axes, &some);
    if (status != RFX_OK) return status;
    if (wanted->elems != (some ? n_axes : shape.rank))
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "%lld sizes for %lld axes",
                               (long long)wanted->elems, (long long)(some ? n_axes : shape.rank));
    for (int64_t i = 0; i < wanted->elems; i++) {
        int axis = 0;
        status = rfx_onnx_axis(ctx, some ? axes[i] : i, shape.rank, &axis);
        if (status != RFX_OK) return status;
        if (sizes[i] < 1 || sizes[i] > 1 << 24)
            return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "size %lld of axis %d",
                                   (long long)sizes[i], axis);
        int64_t more = sizes[i] - shape.dims[axis];
        pad.before[axis] = more / 2; /* towards 0 */
        pad.after[axis] = more - more / 2;
    }
    return emit_pad(ctx, x, &shape, &pad);
}
