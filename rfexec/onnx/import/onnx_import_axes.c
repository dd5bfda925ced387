/* Conversion of what works along axes. Trilu: maps by rows. CumSum: maps along channels and columns
 * by rows, else whole tensors. */
#include "rfexec/onnx/import/fold/onnx_fold.h"

/* Input 1 as one integer. */
static enum rfx_status one_int(struct rfx_onnx_import *ctx, int64_t *out) {
    struct rfx_onnx_const *c;
    const int64_t *ints;
    enum rfx_status status = rfx_onnx_in_const(ctx, 1, &c);
    if (status == RFX_OK && c->elems != 1)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "input 1 has %lld elements, not 1",
                               (long long)c->elems);
    if (status == RFX_OK) status = rfx_onnx_const_ints(ctx, c, &ints);
    if (status == RFX_OK) *out = ints[0];
    return status;
}

enum rfx_status rfx_onnx_diagonal(struct rfx_onnx_import *ctx, int64_t *k) {
    *k = 0;
    return rfx_onnx_has(ctx, 1) ? one_int(ctx, k) : RFX_OK;
}

enum rfx_status rfx_onnx_trilu(struct rfx_onnx_import *ctx) {
    struct rfx_node node = {.op = RFX_OP_TRIANGLE};
    int in, out;
    node.attr.triangle.upper = rfx_onnx_attr_flag(ctx, "upper", true);
    enum rfx_status status = rfx_onnx_diagonal(ctx, &node.attr.triangle.k);
    if (status == RFX_OK) status = rfx_onnx_any(ctx, rfx_onnx_in(ctx, 0), &in);
    if (status == RFX_OK) status = rfx_onnx_emit(ctx, &node, "", &in, 1, &out);
    return status == RFX_OK ? rfx_onnx_set_node(ctx, out) : status;
}

enum rfx_status rfx_onnx_sum_axis(struct rfx_onnx_import *ctx, int rank, int *axis) {
    int64_t given = 0;
    enum rfx_status status = one_int(ctx, &given);
    return status == RFX_OK ? rfx_onnx_axis(ctx, given, rank, axis) : status;
}

/* Over the last axis of a map's tokens: over its channels. */
enum rfx_status rfx_onnx_cum_sum(struct rfx_onnx_import *ctx) {
    struct rfx_node node = {.op = RFX_OP_RUNNING_SUM};
    int in, out, axis;
    node.attr.running.exclusive = rfx_onnx_attr_flag(ctx, "exclusive", false);
    node.attr.running.reverse = rfx_onnx_attr_flag(ctx, "reverse", false);
    enum rfx_status status = rfx_onnx_any(ctx, rfx_onnx_in(ctx, 0), &in);
    if (status != RFX_OK) return status;
    const struct rfx_tensor t = *rfx_onnx_tensor_of(ctx, in);
    status = rfx_onnx_sum_axis(ctx, t.shape.rank, &axis);
    if (status != RFX_OK) return status;
    int map = axis == t.shape.rank - 1 ? rfx_onnx_tokens_behind(ctx, in) : -1;
    bool by_rows = t.layout == RFX_LAYOUT_NHWC && (axis == 1 || axis == 3);
    struct rfx_onnx_operand x = {in, NULL};
    if (map < 0 && !by_rows) status = rfx_onnx_plain(ctx, x, &in);
    if (map >= 0) in = map;
    node.attr.running.axis = map >= 0 ? 1 : axis;
    if (status == RFX_OK) status = rfx_onnx_emit(ctx, &node, "", &in, 1, &out);
    return status == RFX_OK ? rfx_onnx_set_as(ctx, out, map >= 0) : status;
}
