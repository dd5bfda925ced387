/* Element types of computed tensors.
 *
 * Values are float32 numbers whatever the type; the type says how casts round and wrap, and what
 * outputs are written as. Integers of 8 and 16 bits stay what ONNX makes of them: operators whose
 * results could leave the type's range wrap around, or are refused. Those of 32 and 64 bits are
 * exact up to 2^24. */
#include <string.h>

#include "rfexec/onnx/import/onnx_import.h"

static bool is_one_of(const char *op, const char *const *ops) {
    for (; *ops != NULL; ops++)
        if (strcmp(op, *ops) == 0) return true;
    return false;
}

bool rfx_onnx_type_is_integer(int32_t type) {
    enum rfx_type known = rfx_type_of_onnx(type);
    return known != RFX_TYPE_COUNT && rfx_type_is_integer(known);
}

static bool is_narrow(int32_t type) {
    return type >= RFX_ONNX_UINT8 && type <= RFX_ONNX_INT16;
}

int32_t rfx_onnx_in_type(const struct rfx_onnx_import *ctx, size_t k) {
    struct rfx_onnx_operand x = rfx_onnx_in_as_named(ctx, k);
    if (x.constant != NULL) return x.constant->type;
    return x.node >= 0 ? rfx_onnx_names_type(ctx->values, ctx->node->in[k]) : RFX_ONNX_FLOAT;
}

int32_t rfx_onnx_result_type(const struct rfx_onnx_import *ctx, size_t k) {
    static const char *const truths[] = {
        "Greater", "Less", "GreaterOrEqual", "Equal", "LessOrEqual", "And", "Or",
        "Xor",     "Not",  "IsNaN",          "IsInf", NULL};
    static const char *const indices[] = {"ArgMax", "ArgMin", "Shape", "Size", "NonZero", NULL};
    const char *op = ctx->node->op;
    if (is_one_of(op, truths)) return RFX_ONNX_BOOL;
    if (is_one_of(op, indices)) return RFX_ONNX_INT64;
    if (k == 1 && (strcmp(op, "TopK") == 0 || strcmp(op, "MaxPool") == 0)) return RFX_ONNX_INT64;
    if (strcmp(op, "Cast") == 0) return (int32_t)rfx_onnx_attr_int(ctx, "to", RFX_ONNX_FLOAT);
    if (strcmp(op, "CastLike") == 0 || strcmp(op, "Where") == 0) return rfx_onnx_in_type(ctx, 1);
    if (strcmp(op, "OneHot") == 0) return rfx_onnx_in_type(ctx, 2);
    if (strcmp(op, "DequantizeLinear") == 0) return RFX_ONNX_FLOAT;
    return rfx_onnx_in_type(ctx, 0);
}

/* x - 2^bits * floor((x - lo) / 2^bits): exact for whole numbers up to 2^24. */
enum rfx_status rfx_onnx_wrap(struct rfx_onnx_import *ctx, int32_t type, int in, int *out) {
    bool wide = type == RFX_ONNX_UINT16 || type == RFX_ONNX_INT16;
    bool is_signed = type == RFX_ONNX_INT8 || type == RFX_ONNX_INT16;
    float count = wide ? 65536.0f : 256.0f;
    int map = rfx_onnx_elements_behind(ctx, in), order = ctx->order;
    struct rfx_onnx_operand x = {map >= 0 ? map : in, NULL}, turns = {-1, NULL};
    enum rfx_status status = rfx_onnx_scale_shift(ctx, "/turns", x.node, 1.0f / count,
                                                  is_signed ? 0.5f : 0.0f, &turns.node);
    if (status == RFX_OK)
        status =
            rfx_onnx_act(ctx, "/whole_turns", turns.node, RFX_ACT_FLOOR, 0.0f, 0.0f, &turns.node);
    if (status == RFX_OK)
        status = rfx_onnx_scale_shift(ctx, "/back", turns.node, -count, 0.0f, &turns.node);
    if (status == RFX_OK) status = rfx_onnx_combine(ctx, RFX_BINARY_ADD, "/wrapped", x, turns, out);
    ctx->order = order;
    return status == RFX_OK && map >= 0 ? rfx_onnx_channels_last(ctx, *out, out) : status;
}

enum rfx_status rfx_onnx_keep_type(struct rfx_onnx_import *ctx, int32_t type, int *node) {
    static const char *const keep[] = {
        "Cast",           "CastLike",  "Clip",     "Compress",     "Concat",
        "DepthToSpace",   "Dropout",   "Expand",   "Flatten",      "Gather",
        "GatherElements", "GatherND",  "Identity", "Max",          "MaxPool",
        "MaxUnpool",      "Min",       "Mod",      "OneHot",       "Pad",
        "ReduceMax",      "ReduceMin", "Relu",     "Reshape",      "ScatterElements",
        "ScatterND",      "Sign",      "Slice",    "SpaceToDepth", "Split",
        "Squeeze",        "Tile",      "TopK",     "Transpose",    "Trilu",
        "Unsqueeze",      "Where",     NULL};
    static const char *const leave[] = {"Add", "Sub", "Neg", "Abs", "Div", NULL};
    const char *op = ctx->node->op;
    bool resized = strcmp(op, "Resize") == 0 || strcmp(op, "Upsample") == 0;
    bool nearest = strcmp(rfx_onnx_attr_string(ctx, "mode", "nearest"), "nearest") == 0;
    bool bytes = type == RFX_ONNX_UINT8 || type == RFX_ONNX_INT8;
    if (!is_narrow(type) || ctx->is_of_constants || is_one_of(op, keep) || (resized && nearest))
        return RFX_OK;
    if (is_one_of(op, leave) || (bytes && strcmp(op, "Mul") == 0))
        return rfx_onnx_wrap(ctx, type, *node, node);
    return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                           "on computed integers of %d bits; cast them to float or int32 before it",
                           bytes ? 8 : 16);
}

enum rfx_type rfx_onnx_stored_type(int32_t type) {
    enum rfx_type known = rfx_type_of_onnx(type);
    return rfx_type_is_stored(known) ? known : RFX_TYPE_FLOAT32;
}

int64_t rfx_onnx_most_index(const struct rfx_onnx_import *ctx, int node) {
    const struct rfx_node *n = &ctx->graph->nodes[node];
    if (n->op != RFX_OP_CHANNEL_REDUCE || !rfx_reduce_is_arg(n->attr.reduce.kind) ||
        n->act.kind != RFX_ACT_NONE)
        return 0;
    int64_t c = ctx->graph->nodes[n->in[0]].out.c;
    return c > 1 ? c - 1 : 1;
}
