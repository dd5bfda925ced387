/* Conversion of norms and softmax over channels, and of whole tensors into arithmetic. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "rfexec/onnx/import/onnx_import.h"

/* Optional constant input k as a weight of c elements or one. */
static enum rfx_status channel_weight(struct rfx_onnx_import *ctx, size_t k, int64_t c, int *out) {
    struct rfx_onnx_const *constant;
    *out = -1;
    if (!rfx_onnx_has(ctx, k)) return RFX_OK;
    enum rfx_status status = rfx_onnx_in_const(ctx, k, &constant);
    if (status != RFX_OK) return status;
    if (constant->elems != c && constant->elems != 1)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "input %zu has %lld of %lld values", k,
                               (long long)constant->elems, (long long)c);
    return rfx_onnx_const_weight(ctx, constant, out);
}

/* A map normalised over its channels. `weights`: inputs 1 and 2 are scale and shift. `last`: the
 * result is wanted as (1, h, w, c). */
static enum rfx_status channel_norm(struct rfx_onnx_import *ctx, enum rfx_channel_norm kind,
                                    float eps, bool weights, int map, bool last) {
    struct rfx_node node = {.op = RFX_OP_CHANNEL_NORM};
    node.attr.channel_norm.kind = kind;
    node.attr.channel_norm.eps = eps;
    node.attr.channel_norm.scale = node.attr.channel_norm.shift = -1;
    int64_t c = rfx_onnx_tensor_of(ctx, map)->c;
    enum rfx_status status = RFX_OK;
    int out = -1;
    if (weights) status = channel_weight(ctx, 1, c, &node.attr.channel_norm.scale);
    if (status == RFX_OK && weights)
        status = channel_weight(ctx, 2, c, &node.attr.channel_norm.shift);
    if (status == RFX_OK) status = rfx_onnx_emit(ctx, &node, "", &map, 1, &out);
    if (status == RFX_OK && last) status = rfx_onnx_channels_last(ctx, out, &out);
    return status == RFX_OK ? rfx_onnx_set_node(ctx, out) : status;
}

/* The map of which axis `axis` of tensor `in` holds the channels, or -1; *last: as its last. */
static int map_of_channels(struct rfx_onnx_import *ctx, int in, int axis, bool *last) {
    int behind = rfx_onnx_tokens_behind(ctx, in);
    *last = behind >= 0;
    if (*last) return axis == rfx_onnx_tensor_of(ctx, in)->shape.rank - 1 ? behind : -1;
    return rfx_onnx_tensor_of(ctx, in)->layout == RFX_LAYOUT_NHWC && axis == 1 ? in : -1;
}

static enum rfx_status plain_reduce(struct rfx_onnx_import *ctx, const char *suffix,
                                    enum rfx_reduce_kind kind, int from, int to, int in, int *out) {
    struct rfx_node node = {.op = RFX_OP_REDUCE};
    node.attr.reduce.kind = kind;
    node.attr.reduce.keep_dims = true;
    for (int i = from; i < to; i++) node.attr.reduce.axes[i] = true;
    return rfx_onnx_emit(ctx, &node, suffix, &in, 1, out);
}

static enum rfx_status plain_binary(struct rfx_onnx_import *ctx, const char *suffix,
                                    enum rfx_binary_kind kind, int a, int b, int *out) {
    struct rfx_node node = {.op = RFX_OP_PLAIN_BINARY, .attr.binary = {kind}};
    int in[2] = {a, b};
    return rfx_onnx_emit(ctx, &node, suffix, in, 2, out);
}

/* Input k, if there is one, as the second operand. */
static enum rfx_status plain_input(struct rfx_onnx_import *ctx, const char *suffix,
                                   enum rfx_binary_kind kind, size_t k, int *in) {
    int operand;
    if (!rfx_onnx_has(ctx, k)) return RFX_OK;
    enum rfx_status status = rfx_onnx_plain(ctx, rfx_onnx_in(ctx, k), &operand);
    return status == RFX_OK ? plain_binary(ctx, suffix, kind, *in, operand, in) : status;
}

/* Whether the node's statistics are outputs of their own. */
static bool gives_statistics(const struct rfx_onnx_import *ctx) {
    for (size_t k = 1; k < ctx->node->n_out; k++)
        if (ctx->node->out[k][0] != '\0') return true;
    return false;
}

/* Output 2: the inverse of the deviation. */
static enum rfx_status give_inverse(struct rfx_onnx_import *ctx, int deviation) {
    struct rfx_onnx_operand inverse = {-1, NULL};
    enum rfx_status status =
        rfx_onnx_act(ctx, "/inverse", deviation, RFX_ACT_RECIPROCAL, 0.0f, 0.0f, &inverse.node);
    return status == RFX_OK ? rfx_onnx_set(ctx, 2, inverse) : status;
}

/* A whole tensor over all axes from `axis` on: x less its mean (unless `centred` is false), by the
 * root of its mean square, times input 1, plus input 2. Outputs 1 and 2 are the mean and the
 * inverse of the root. */
static enum rfx_status plain_norm(struct rfx_onnx_import *ctx, int axis, bool centred, float eps) {
    struct rfx_onnx_operand mean = {-1, NULL};
    int in, square, out;
    enum rfx_status status = rfx_onnx_plain(ctx, rfx_onnx_in(ctx, 0), &in);
    if (status != RFX_OK) return status;
    int rank = rfx_onnx_tensor_of(ctx, in)->shape.rank;
    out = in;
    if (centred) {
        status = plain_reduce(ctx, "/mean", RFX_REDUCE_MEAN, axis, rank, in, &mean.node);
        if (status == RFX_OK)
            status = plain_binary(ctx, "/centred", RFX_BINARY_SUB, in, mean.node, &out);
        if (status == RFX_OK) status = rfx_onnx_set(ctx, 1, mean);
    }
    if (status == RFX_OK) status = plain_binary(ctx, "/squares", RFX_BINARY_MUL, out, out, &square);
    if (status == RFX_OK)
        status = plain_reduce(ctx, "/mean_square", RFX_REDUCE_MEAN, axis, rank, square, &square);
    if (status == RFX_OK)
        status = rfx_onnx_scale_shift(ctx, "/variance", square, 1.0f, eps, &square);
    if (status == RFX_OK)
        status = rfx_onnx_act(ctx, "/deviation", square, RFX_ACT_SQRT, 0.0f, 0.0f, &square);
    if (status == RFX_OK && gives_statistics(ctx)) status = give_inverse(ctx, square);
    if (status == RFX_OK)
        status = plain_binary(ctx, "/normalised", RFX_BINARY_DIV, out, square, &out);
    if (status == RFX_OK) status = plain_input(ctx, "/scaled", RFX_BINARY_MUL, 1, &out);
    if (status == RFX_OK) status = plain_input(ctx, "/shifted", RFX_BINARY_ADD, 2, &out);
    return status == RFX_OK ? rfx_onnx_set_node(ctx, out) : status;
}

static enum rfx_status norm_from_axis(struct rfx_onnx_import *ctx, enum rfx_channel_norm kind) {
    int in, axis;
    bool last;
    float eps = rfx_onnx_attr_float(ctx, "epsilon", 1e-5f);
    enum rfx_status status = rfx_onnx_any(ctx, rfx_onnx_in(ctx, 0), &in);
    if (status != RFX_OK) return status;
    int rank = rfx_onnx_tensor_of(ctx, in)->shape.rank;
    status = rfx_onnx_axis(ctx, rfx_onnx_attr_int(ctx, "axis", -1), rank, &axis);
    if (status != RFX_OK) return status;
    if (gives_statistics(ctx)) return plain_norm(ctx, axis, kind == RFX_NORM_LAYER, eps);
    int map = map_of_channels(ctx, in, axis, &last);
    if (map >= 0 && last) return channel_norm(ctx, kind, eps, true, map, last);
    bool is_map = rfx_onnx_tensor_of(ctx, in)->layout == RFX_LAYOUT_NHWC;
    if (is_map && axis == 1 && kind == RFX_NORM_LAYER)
        return rfx_onnx_layer_norm_of_map(ctx, in, eps);
    return plain_norm(ctx, axis, kind == RFX_NORM_LAYER, eps);
}

enum rfx_status rfx_onnx_layer_norm(struct rfx_onnx_import *ctx) {
    return norm_from_axis(ctx, RFX_NORM_LAYER);
}

enum rfx_status rfx_onnx_rms_norm(struct rfx_onnx_import *ctx) {
    return norm_from_axis(ctx, RFX_NORM_RMS);
}

/* x / norm; 0 / 0 is 0. */
enum rfx_status rfx_onnx_lp_norm(struct rfx_onnx_import *ctx) {
    int64_t p = rfx_onnx_attr_int(ctx, "p", 2);
    int in, axis, norm, out;
    bool last;
    if (p != 1 && p != 2)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "p = %lld, not 1 or 2", (long long)p);
    enum rfx_status status = rfx_onnx_any(ctx, rfx_onnx_in(ctx, 0), &in);
    if (status != RFX_OK) return status;
    int rank = rfx_onnx_tensor_of(ctx, in)->shape.rank;
    status = rfx_onnx_axis(ctx, rfx_onnx_attr_int(ctx, "axis", -1), rank, &axis);
    if (status != RFX_OK) return status;
    int map = map_of_channels(ctx, in, axis, &last);
    if (map >= 0)
        return channel_norm(ctx, p == 1 ? RFX_NORM_L1 : RFX_NORM_L2, 0.0f, false, map, last);
    status = rfx_onnx_plain(ctx, rfx_onnx_in(ctx, 0), &in);
    if (status == RFX_OK)
        status = plain_reduce(ctx, "/norm", p == 1 ? RFX_REDUCE_L1 : RFX_REDUCE_L2, axis, axis + 1,
                              in, &norm);
    if (status == RFX_OK)
        status = rfx_onnx_act(ctx, "/divisor", norm, RFX_ACT_CLIP, FLT_MIN, HUGE_VALF, &norm);
    if (status == RFX_OK) status = plain_binary(ctx, "", RFX_BINARY_DIV, in, norm, &out);
    return status == RFX_OK ? rfx_onnx_set_node(ctx, out) : status;
}

/* Softmax, LogSoftmax. Before opset 13 everything from `axis` on is one vector. */
enum rfx_status rfx_onnx_softmax(struct rfx_onnx_import *ctx) {
    bool old = ctx->opset < 13;
    struct rfx_onnx_operand x = rfx_onnx_in(ctx, 0);
    int in, out = -1, axis;
    enum rfx_status status = rfx_onnx_any(ctx, x, &in);
    if (status != RFX_OK) return status;
    const struct rfx_tensor t = *rfx_onnx_tensor_of(ctx, in);
    int rank = t.shape.rank;
    bool last;
    status = rfx_onnx_axis(ctx, rfx_onnx_attr_int(ctx, "axis", old ? 1 : -1), rank, &axis);
    if (status != RFX_OK) return status;
    struct rfx_node node = {.op = RFX_OP_PLAIN_SOFTMAX};
    node.attr.softmax.logarithm = strcmp(ctx->node->op, "LogSoftmax") == 0;
    bool one_axis = !old || rfx_onnx_product(&t.shape, axis + 1, rank) == 1;
    int map = one_axis ? map_of_channels(ctx, in, axis, &last) : -1;
    if (map >= 0) {
        node.op = RFX_OP_SOFTMAX;
        status = rfx_onnx_emit(ctx, &node, "", &map, 1, &out);
        return status == RFX_OK ? rfx_onnx_set_as(ctx, out, last) : status;
    }
    status = rfx_onnx_plain(ctx, x, &in);
    node.attr.softmax.axis = axis;
    struct rfx_shape two = {
        2, {rfx_onnx_product(&t.shape, 0, axis), rfx_onnx_product(&t.shape, axis, rank)}};
    if (status == RFX_OK && !one_axis) {
        node.attr.softmax.axis = 1;
        status = rfx_onnx_reshape(ctx, in, &two, &in);
    }
    if (status == RFX_OK) status = rfx_onnx_emit(ctx, &node, "", &in, 1, &out);
    if (status == RFX_OK && !one_axis) status = rfx_onnx_reshape(ctx, out, &t.shape, &out);
    return status == RFX_OK ? rfx_onnx_set_node(ctx, out) : status;
}
