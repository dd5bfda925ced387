/* Conversion of Attention, and of the products around a softmax that exporters write instead: as
 * MATMUL, PLAIN_BINARY, PLAIN_SOFTMAX and MATMUL, which finishing the graph makes one node of. */
#include <math.h>
#include <string.h>

#include "rfexec/onnx/import/onnx_import.h"

/* The last two axes of a tensor exchanged. */
static enum rfx_status turn(struct rfx_onnx_import *ctx, const char *suffix, int in, int *out) {
    struct rfx_node node = {.op = RFX_OP_TRANSPOSE};
    int rank = rfx_onnx_tensor_of(ctx, in)->shape.rank;
    for (int i = 0; i < rank; i++) node.attr.transpose.perm[i] = i;
    node.attr.transpose.perm[rank - 2] = rank - 1;
    node.attr.transpose.perm[rank - 1] = rank - 2;
    return rfx_onnx_emit(ctx, &node, suffix, &in, 1, out);
}

static bool turns(const struct rfx_node *node) {
    int rank = node->out.shape.rank;
    if (node->op != RFX_OP_TRANSPOSE || rank < 2) return false;
    for (int i = 0; i < rank - 2; i++)
        if (node->attr.transpose.perm[i] != i) return false;
    return node->attr.transpose.perm[rank - 2] == rank - 1;
}

bool rfx_onnx_is_turned_softmax(const struct rfx_onnx_import *ctx, int in) {
    const struct rfx_node *node = &ctx->graph->nodes[in];
    return turns(node) && ctx->graph->nodes[node->in[0]].op == RFX_OP_PLAIN_SOFTMAX;
}

/* a turn(s) = turn(s turn(a)): the same products in the same order, and attention is found in it.
 */
enum rfx_status rfx_onnx_by_turned_softmax(struct rfx_onnx_import *ctx, const int *in, int *out) {
    struct rfx_node node = {.op = RFX_OP_MATMUL};
    int operands[2] = {ctx->graph->nodes[in[1]].in[0], -1}, product;
    enum rfx_status status = turn(ctx, "/turned", in[0], &operands[1]);
    if (status == RFX_OK) status = rfx_onnx_emit(ctx, &node, "/product", operands, 2, &product);
    return status == RFX_OK ? turn(ctx, "", product, out) : status;
}

static enum rfx_status refuse_attributes(struct rfx_onnx_import *ctx) {
    static const char *const known[] = {"scale",
                                        "q_num_heads",
                                        "kv_num_heads",
                                        "is_causal",
                                        "softcap",
                                        "qk_matmul_output_mode", /* of an output that is refused */
                                        "softmax_precision",     /* float32, or none */
                                        "left_window_size",
                                        "right_window_size"};
    for (size_t a = 0; a < ctx->node->n_attrs; a++) {
        bool found = false;
        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            found = found || strcmp(ctx->node->attrs[a].name, known[k]) == 0;
        if (!found)
            return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "attribute %s",
                                   ctx->node->attrs[a].name);
    }
    for (size_t k = 7; k < 9; k++)
        if (rfx_onnx_attr_int(ctx, known[k], -1) != -1)
            return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "%s = %lld", known[k],
                                   (long long)rfx_onnx_attr_int(ctx, known[k], -1));
    return RFX_OK;
}

/* What this operator can ask for and is not done. */
static enum rfx_status refuse_options(struct rfx_onnx_import *ctx) {
    enum rfx_status status = refuse_attributes(ctx);
    if (status != RFX_OK) return status;
    static const char *const inputs[] = {"past_key", "past_value", "nonpad_kv_seqlen"};
    for (size_t k = 0; k < 3; k++)
        if (rfx_onnx_has(ctx, 4 + k))
            return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "input %s", inputs[k]);
    if (rfx_onnx_attr_int(ctx, "is_causal", 0) != 0)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "is_causal = 1");
    if (rfx_onnx_attr_float(ctx, "softcap", 0.0f) != 0.0f)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "softcap %g",
                               (double)rfx_onnx_attr_float(ctx, "softcap", 0.0f));
    for (size_t k = 1; k < ctx->node->n_out; k++)
        if (ctx->node->out[k][0] != '\0')
            return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "output %zu, '%s'", k,
                                   ctx->node->out[k]);
    return RFX_OK;
}

/* Operand k as (1, heads, tokens, size): of rank 3 its last axis holds the heads one by one. */
static enum rfx_status by_heads(struct rfx_onnx_import *ctx, size_t k, const char *attribute,
                                const char *suffix, int *out) {
    struct rfx_node node = {.op = RFX_OP_TRANSPOSE, .attr.transpose.perm = {0, 2, 1, 3}};
    enum rfx_status status = rfx_onnx_plain(ctx, rfx_onnx_in(ctx, k), out);
    if (status != RFX_OK) return status;
    struct rfx_shape shape = rfx_onnx_tensor_of(ctx, *out)->shape;
    int64_t heads = rfx_onnx_attr_int(ctx, attribute, 0);
    if (shape.rank == 4) return RFX_OK;
    if (shape.rank != 3 || heads < 1 || shape.dims[2] % heads != 0)
        return rfx_onnx_refuse(
            ctx, RFX_STATUS_MALFORMED,
            "input %zu has rank %d and its last axis %lld elements for %s = %lld", k, shape.rank,
            (long long)shape.dims[shape.rank - 1], attribute, (long long)heads);
    struct rfx_shape split = {4, {shape.dims[0], shape.dims[1], heads, shape.dims[2] / heads}};
    int apart;
    status = rfx_onnx_reshape(ctx, *out, &split, &apart);
    return status == RFX_OK ? rfx_onnx_emit(ctx, &node, suffix, &apart, 1, out) : status;
}

/* Heads side by side again. */
static enum rfx_status join_heads(struct rfx_onnx_import *ctx, int in, int *out) {
    struct rfx_node node = {.op = RFX_OP_TRANSPOSE, .attr.transpose.perm = {0, 2, 1, 3}};
    struct rfx_shape s = rfx_onnx_tensor_of(ctx, in)->shape;
    struct rfx_shape joined = {3, {s.dims[0], s.dims[2], s.dims[1] * s.dims[3]}};
    enum rfx_status status = rfx_onnx_emit(ctx, &node, "", &in, 1, out);
    return status == RFX_OK ? rfx_onnx_reshape(ctx, *out, &joined, out) : status;
}

static enum rfx_status scaled_scores(struct rfx_onnx_import *ctx, int q, int k, int *out) {
    int64_t size = rfx_onnx_tensor_of(ctx, q)->shape.dims[3];
    float scale = rfx_onnx_attr_float(ctx, "scale", 1.0f / sqrtf((float)size));
    struct rfx_node product = {.op = RFX_OP_MATMUL}, times = {.op = RFX_OP_PLAIN_BINARY};
    struct rfx_node number = {.op = RFX_OP_CONST_PLAIN};
    int in[2] = {q, -1}, operands[2];
    times.attr.binary.kind = RFX_BINARY_MUL;
    number.attr.constant.shape = (struct rfx_shape){1, {1}};
    enum rfx_status status = turn(ctx, "/keys", k, &in[1]);
    if (status == RFX_OK) status = rfx_onnx_emit(ctx, &product, "/scores", in, 2, &operands[0]);
    if (status == RFX_OK)
        status = rfx_onnx_own_weight(ctx, &scale, 1, &number.attr.constant.weight);
    if (status == RFX_OK) status = rfx_onnx_emit(ctx, &number, "/scale", NULL, 0, &operands[1]);
    return status == RFX_OK ? rfx_onnx_emit(ctx, &times, "/scaled", operands, 2, out) : status;
}

/* A mask of numbers is added; one of booleans would have to become -inf where it is false. */
static enum rfx_status add_mask(struct rfx_onnx_import *ctx, int *scores) {
    struct rfx_onnx_operand mask = rfx_onnx_in(ctx, 3);
    struct rfx_node sum = {.op = RFX_OP_PLAIN_BINARY};
    int operands[2] = {*scores, -1};
    if (!rfx_onnx_has(ctx, 3)) return RFX_OK;
    if (mask.constant != NULL && !rfx_onnx_type_is_real(mask.constant->type))
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "a mask of booleans");
    sum.attr.binary.kind = RFX_BINARY_ADD;
    enum rfx_status status = rfx_onnx_plain(ctx, mask, &operands[1]);
    return status == RFX_OK ? rfx_onnx_emit(ctx, &sum, "/masked", operands, 2, scores) : status;
}

enum rfx_status rfx_onnx_attention(struct rfx_onnx_import *ctx) {
    struct rfx_node softmax = {.op = RFX_OP_PLAIN_SOFTMAX, .attr.softmax.axis = 3};
    struct rfx_node product = {.op = RFX_OP_MATMUL};
    int q, k, v, scores, operands[2], out;
    enum rfx_status status = refuse_options(ctx);
    if (status == RFX_OK) status = by_heads(ctx, 0, "q_num_heads", "/q", &q);
    if (status == RFX_OK) status = by_heads(ctx, 1, "kv_num_heads", "/k", &k);
    if (status == RFX_OK) status = by_heads(ctx, 2, "kv_num_heads", "/v", &v);
    if (status != RFX_OK) return status;
    const struct rfx_shape *of_q = &rfx_onnx_tensor_of(ctx, q)->shape;
    const struct rfx_shape *of_k = &rfx_onnx_tensor_of(ctx, k)->shape;
    if (of_q->dims[1] != of_k->dims[1])
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "%lld heads of queries share %lld",
                               (long long)of_q->dims[1], (long long)of_k->dims[1]);
    bool tokens = rfx_onnx_shape(ctx, rfx_onnx_in(ctx, 0))->rank == 3;
    status = scaled_scores(ctx, q, k, &scores);
    if (status == RFX_OK) status = add_mask(ctx, &scores);
    if (status == RFX_OK) status = rfx_onnx_emit(ctx, &softmax, "/weights", &scores, 1, operands);
    operands[1] = v;
    if (status == RFX_OK)
        status = rfx_onnx_emit(ctx, &product, tokens ? "/product" : "", operands, 2, &out);
    if (status == RFX_OK && tokens) status = join_heads(ctx, out, &out);
    return status == RFX_OK ? rfx_onnx_set_node(ctx, out) : status;
}
