/* Conversion of Tile with constant repeats: channels of a map are picked again, other axes are
 * gathered from the whole tensor. */
#include "layers/core/checked.h"
#include "rfexec/onnx/import/onnx_import.h"

/* 0 .. n - 1, `repeats` times over. */
static enum rfx_status repeated(struct rfx_onnx_import *ctx, int64_t n, int64_t repeats,
                                int64_t **out, int64_t *count) {
    if (!rfx_checked_mul_i64(n, repeats, count) || *count > INT32_MAX)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "%lld repeats of %lld elements",
                               (long long)repeats, (long long)n);
    *out = rfx_arena_alloc(ctx->arena, (size_t)*count, sizeof **out);
    if (*out == NULL)
        return rfx_onnx_refuse(ctx, RFX_STATUS_OUT_OF_MEMORY, "no memory for %lld indices",
                               (long long)*count);
    for (int64_t i = 0; i < *count; i++) (*out)[i] = i % n;
    return RFX_OK;
}

static enum rfx_status repeat_axis(struct rfx_onnx_import *ctx, int *at, int axis,
                                   int64_t repeats) {
    const struct rfx_tensor t = *rfx_onnx_tensor_of(ctx, *at);
    bool map = t.layout == RFX_LAYOUT_NHWC;
    struct rfx_node node = {.op = map ? RFX_OP_CHANNEL_SELECT : RFX_OP_PLAIN_GATHER};
    int64_t *indices = NULL, count = 0;
    enum rfx_status status = repeated(ctx, t.shape.dims[axis], repeats, &indices, &count);
    if (status != RFX_OK) return status;
    if (map) {
        node.attr.select.count = count;
        node.attr.select.map = indices;
    } else {
        node.attr.gather.axis = axis;
        node.attr.gather.count = count;
        node.attr.gather.map = indices;
    }
    return rfx_onnx_emit(ctx, &node, "/tiled", at, 1, at);
}

enum rfx_status rfx_onnx_tile(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_const *c;
    const int64_t *repeats;
    int at;
    bool channels_only = true;
    enum rfx_status status = rfx_onnx_any(ctx, rfx_onnx_in(ctx, 0), &at);
    if (status == RFX_OK) status = rfx_onnx_in_const(ctx, 1, &c);
    if (status == RFX_OK) status = rfx_onnx_const_ints(ctx, c, &repeats);
    if (status != RFX_OK) return status;
    int rank = rfx_onnx_tensor_of(ctx, at)->shape.rank;
    if (c->elems != rank)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "%lld repeats for rank %d",
                               (long long)c->elems, rank);
    for (int axis = 0; axis < rank; axis++) {
        if (repeats[axis] < 1)
            return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "%lld repeats of axis %d",
                                   (long long)repeats[axis], axis);
        channels_only = channels_only && (axis == 1 || repeats[axis] == 1);
    }
    struct rfx_onnx_operand x = {at, NULL};
    if (!channels_only) status = rfx_onnx_plain(ctx, x, &at);
    for (int axis = 0; status == RFX_OK && axis < rank; axis++)
        if (repeats[axis] > 1) status = repeat_axis(ctx, &at, axis, repeats[axis]);
    return status == RFX_OK ? rfx_onnx_set_node(ctx, at) : status;
}
