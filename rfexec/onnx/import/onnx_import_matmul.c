/* Conversion of matrix products: Gemm and MatMul, with constant weights as the GEMM layer. */
#include "rfexec/onnx/import/onnx_import.h"

/* A linear layer fixes how many inputs it is given, and so, behind a convolutional network, the
 * size of the image. */
static enum rfx_status fixed_by_weights(struct rfx_onnx_import *ctx, int64_t wants, int64_t given) {
    if (ctx->is_of_constants)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "a matrix of %lld rows by %lld columns",
                               (long long)wants, (long long)given);
    const struct rfx_tensor *image = &ctx->graph->nodes[ctx->graph->input].out;
    return rfx_onnx_refuse(
        ctx, RFX_STATUS_UNSUPPORTED,
        "the network is fixed to another image size by its weights (%lld inputs, "
        "%lld given at %lldx%lld)",
        (long long)wants, (long long)given, (long long)image->h, (long long)image->w);
}

/* Gemm's C as a weight of m elements; *bias stays -1 when it has to be added afterwards. */
static enum rfx_status gemm_bias(struct rfx_onnx_import *ctx, int64_t m, int *bias) {
    struct rfx_onnx_const *c = rfx_onnx_in(ctx, 2).constant;
    if (c == NULL || (c->elems != m && c->elems != 1)) return RFX_OK;
    if (c->elems == m && (c->shape.rank == 0 || c->shape.dims[c->shape.rank - 1] == m))
        return rfx_onnx_const_weight(ctx, c, bias);
    if (c->elems != 1) return RFX_OK;
    const double *value;
    enum rfx_status status = rfx_onnx_const_reals(ctx, c, &value);
    if (status == RFX_OK) status = rfx_onnx_own_weight(ctx, NULL, m, bias);
    if (status != RFX_OK) return status;
    float *values = rfx_graph_owned_weight(ctx->graph, *bias);
    for (int64_t i = 0; i < m; i++) values[i] = (float)value[0];
    return RFX_OK;
}

enum rfx_status rfx_onnx_gemm(struct rfx_onnx_import *ctx) {
    struct rfx_node node = {.op = RFX_OP_GEMM};
    struct rfx_onnx_const *b;
    int in, out;
    enum rfx_status status = rfx_onnx_plain(ctx, rfx_onnx_in(ctx, 0), &in);
    if (status == RFX_OK) status = rfx_onnx_in_const(ctx, 1, &b);
    if (status != RFX_OK) return status;
    const struct rfx_tensor *a = rfx_onnx_tensor_of(ctx, in);
    bool trans_b = rfx_onnx_attr_flag(ctx, "transB", false);
    if (rfx_onnx_attr_flag(ctx, "transA", false))
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "transA = 1");
    if (a->shape.rank != 2 || b->shape.rank != 2)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "operands of rank %d and %d, not 2",
                               a->shape.rank, b->shape.rank);
    node.attr.gemm.k = b->shape.dims[trans_b ? 1 : 0];
    node.attr.gemm.m = b->shape.dims[trans_b ? 0 : 1];
    node.attr.gemm.weight_is_mk = trans_b;
    node.attr.gemm.alpha = rfx_onnx_attr_float(ctx, "alpha", 1.0f);
    node.attr.gemm.beta = rfx_onnx_attr_float(ctx, "beta", 1.0f);
    node.attr.gemm.bias = -1;
    if (a->shape.dims[1] != node.attr.gemm.k)
        return fixed_by_weights(ctx, node.attr.gemm.k, a->shape.dims[1]);
    status = rfx_onnx_const_weight(ctx, b, &node.attr.gemm.weight);
    if (status == RFX_OK && rfx_onnx_has(ctx, 2))
        status = gemm_bias(ctx, node.attr.gemm.m, &node.attr.gemm.bias);
    if (status != RFX_OK) return status;
    bool later = rfx_onnx_has(ctx, 2) && node.attr.gemm.bias < 0;
    if (later && node.attr.gemm.beta != 1.0f)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "beta %g with a computed C",
                               (double)node.attr.gemm.beta);
    status = rfx_onnx_emit(ctx, &node, later ? "/product" : "", &in, 1, &out);
    if (status == RFX_OK && later) {
        struct rfx_node sum = {.op = RFX_OP_PLAIN_BINARY, .attr.binary = {RFX_BINARY_ADD}};
        int operands[2] = {out, -1};
        status = rfx_onnx_plain(ctx, rfx_onnx_in(ctx, 2), &operands[1]);
        if (status == RFX_OK) status = rfx_onnx_emit(ctx, &sum, "", operands, 2, &out);
    }
    return status == RFX_OK ? rfx_onnx_set_node(ctx, out) : status;
}

enum rfx_status rfx_onnx_const_weight_transposed(struct rfx_onnx_import *ctx,
                                                 struct rfx_onnx_const *constant, int *out) {
    int stored;
    enum rfx_status status = rfx_onnx_const_weight(ctx, constant, &stored);
    if (status != RFX_OK) return status;
    int64_t k = constant->shape.dims[0], m = constant->shape.dims[1];
    struct rfx_weight weight = ctx->graph->weights[stored];
    weight.transposed = k;
    weight.shape = (struct rfx_shape){4, {m, k, 1, 1}};
    return rfx_graph_add_weight(ctx->graph, &weight, out, ctx->err);
}

/* A map's tokens times a constant [k, m], or [m, k] if `turned`: a convolution of 1 x 1, which
 * needs no more of the map than its pixel. */
static enum rfx_status matmul_of_map(struct rfx_onnx_import *ctx, int map, struct rfx_onnx_const *b,
                                     bool turned, int *out) {
    struct rfx_node node = {.op = RFX_OP_CONV};
    struct rfx_conv_attr *conv = &node.attr.conv;
    const struct rfx_shape filters = {4, {b->shape.dims[0], b->shape.dims[1], 1, 1}};
    *conv = rfx_conv_pointwise(b->shape.dims[turned ? 0 : 1]);
    if (turned) b = rfx_onnx_const_view(ctx, b, &filters);
    if (b == NULL)
        return rfx_onnx_refuse(ctx, RFX_STATUS_OUT_OF_MEMORY, "no memory for a constant");
    enum rfx_status status = turned ? rfx_onnx_const_weight(ctx, b, &conv->weight)
                                    : rfx_onnx_const_weight_transposed(ctx, b, &conv->weight);
    if (status == RFX_OK) status = rfx_onnx_emit(ctx, &node, "", &map, 1, out);
    return status == RFX_OK ? rfx_onnx_channels_last(ctx, *out, out) : status;
}

/* x [..., k] times the same as GEMM over all rows. */
static enum rfx_status matmul_const(struct rfx_onnx_import *ctx, int in, struct rfx_onnx_const *b,
                                    bool turned, int *out) {
    struct rfx_shape shape = rfx_onnx_tensor_of(ctx, in)->shape;
    struct rfx_node node = {.op = RFX_OP_GEMM};
    int64_t k = shape.dims[shape.rank - 1];
    struct rfx_shape rows = {2, {rfx_onnx_product(&shape, 0, shape.rank - 1), k}};
    node.attr.gemm.k = k;
    node.attr.gemm.m = b->shape.dims[turned ? 0 : 1];
    node.attr.gemm.weight_is_mk = turned;
    node.attr.gemm.alpha = node.attr.gemm.beta = 1.0f;
    node.attr.gemm.bias = -1;
    enum rfx_status status = rfx_onnx_const_weight(ctx, b, &node.attr.gemm.weight);
    if (status == RFX_OK) status = rfx_onnx_reshape(ctx, in, &rows, &in);
    if (status == RFX_OK) status = rfx_onnx_emit(ctx, &node, "", &in, 1, out);
    shape.dims[shape.rank - 1] = node.attr.gemm.m;
    return status == RFX_OK ? rfx_onnx_reshape(ctx, *out, &shape, out) : status;
}

enum rfx_status rfx_onnx_by_matrix(struct rfx_onnx_import *ctx, struct rfx_onnx_operand x,
                                   struct rfx_onnx_const *b, bool turned, int *out) {
    int in, map = x.node >= 0 ? rfx_onnx_tokens_behind(ctx, x.node) : -1;
    enum rfx_status status = RFX_OK;
    if (map < 0) status = rfx_onnx_plain(ctx, x, &in);
    if (status != RFX_OK) return status;
    const struct rfx_shape *shape = map < 0 ? &rfx_onnx_tensor_of(ctx, in)->shape : NULL;
    int64_t k = map < 0 ? shape->dims[shape->rank - 1] : rfx_onnx_tensor_of(ctx, map)->c;
    int64_t wants = b->shape.dims[turned ? 1 : 0];
    if (k != wants) return fixed_by_weights(ctx, wants, k);
    return map < 0 ? matmul_const(ctx, in, b, turned, out)
                   : matmul_of_map(ctx, map, b, turned, out);
}

/* A vector as the one row (k = 0) or the one column (k = 1) that MatMul takes it for. */
static enum rfx_status as_matrix(struct rfx_onnx_import *ctx, int k, int *in) {
    const struct rfx_shape *shape = &rfx_onnx_tensor_of(ctx, *in)->shape;
    if (shape->rank != 1) return RFX_OK;
    struct rfx_shape row = {2, {1, shape->dims[0]}}, column = {2, {shape->dims[0], 1}};
    return rfx_onnx_reshape(ctx, *in, k == 0 ? &row : &column, in);
}

enum rfx_status rfx_onnx_product_of(struct rfx_onnx_import *ctx, const char *suffix, const int *in,
                                    int *out) {
    struct rfx_node node = {.op = RFX_OP_MATMUL};
    enum rfx_status status = RFX_OK;
    *out = -1;
    if (ctx->graph->nodes[in[0]].op == RFX_OP_PLAIN_SOFTMAX)
        status = rfx_onnx_window_attention(ctx, in[0], in[1], out);
    if (status != RFX_OK || *out >= 0) return status;
    return rfx_onnx_is_turned_softmax(ctx, in[1]) ? rfx_onnx_by_turned_softmax(ctx, in, out)
                                                  : rfx_onnx_emit(ctx, &node, suffix, in, 2, out);
}

enum rfx_status rfx_onnx_matmul(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_operand a = rfx_onnx_in(ctx, 0), b = rfx_onnx_in(ctx, 1);
    int in[2], out;
    bool vector[2], given = a.node >= 0 || a.constant != NULL;
    if (given && b.constant != NULL && b.constant->shape.rank == 2 &&
        rfx_onnx_shape(ctx, a)->rank >= 2) {
        enum rfx_status status = rfx_onnx_by_matrix(ctx, a, b.constant, false, &out);
        return status == RFX_OK ? rfx_onnx_set_node(ctx, out) : status;
    }
    enum rfx_status status = rfx_onnx_plain(ctx, a, &in[0]);
    if (status == RFX_OK) status = rfx_onnx_plain(ctx, b, &in[1]);
    for (int k = 0; status == RFX_OK && k < 2; k++) {
        int operand_rank = rfx_onnx_tensor_of(ctx, in[k])->shape.rank;
        if (operand_rank == 0)
            return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "operand %d is a number", k);
        vector[k] = operand_rank == 1;
        status = as_matrix(ctx, k, &in[k]);
    }
    if (status != RFX_OK) return status;
    struct rfx_node node = {.op = RFX_OP_MATMUL};
    bool drops = vector[0] || vector[1];
    status = drops ? rfx_onnx_emit(ctx, &node, "/product", in, 2, &out)
                   : rfx_onnx_product_of(ctx, "", in, &out);
    if (status != RFX_OK) return status;
    if (drops) {
        struct rfx_shape full = rfx_onnx_tensor_of(ctx, out)->shape, kept = {full.rank - 2, {0}};
        for (int i = 0; i < kept.rank; i++) kept.dims[i] = full.dims[i];
        if (!vector[0]) kept.dims[kept.rank++] = full.dims[full.rank - 2];
        if (!vector[1]) kept.dims[kept.rank++] = full.dims[full.rank - 1];
        status = rfx_onnx_reshape(ctx, out, &kept, &out);
    }
    return status == RFX_OK ? rfx_onnx_set_node(ctx, out) : status;
}
