/* Conversion of Attention, and of the products around a softmax that exporters write instead: as
 * MATMUL, PLAIN_BINARY, PLAIN_SOFTMAX and MATMUL, which finishing the graph makes one node of;
 * within windows of a map as WINDOW_ATTENTION. And maps in the orders that those want. */
#include <math.h>
#include <string.h>

#include "rfexec/onnx/import/onnx_import.h"
#include "rfexec/onnx/pixels/onnx_windows.h"

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

static enum rfx_status refuse_windows(struct rfx_onnx_import *ctx) {
    static const char *const sides[] = {"left_window_size", "right_window_size"};
    for (size_t k = 0; k < 2; k++)
        if (rfx_onnx_attr_int(ctx, sides[k], -1) != -1)
            return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "%s = %lld", sides[k],
                                   (long long)rfx_onnx_attr_int(ctx, sides[k], -1));
    return RFX_OK;
}

/* What this operator can ask for and is not done. */
static enum rfx_status refuse_options(struct rfx_onnx_import *ctx) {
    enum rfx_status status = refuse_windows(ctx);
    if (status != RFX_OK) return status;
    static const char *const inputs[] = {"past_key", "past_value", "nonpad_kv_seqlen"};
    for (size_t k = 0; k < 3; k++)
        if (rfx_onnx_has(ctx, 4 + k))
            return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "input %s", inputs[k]);
    if (rfx_onnx_attr_flag(ctx, "is_causal", false))
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
    if (shape.rank == 4 && (heads == 0 || heads == shape.dims[1])) return RFX_OK;
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

/* Position i of an axis becomes what was at i + shift, around. */
static enum rfx_status emit_roll(struct rfx_onnx_import *ctx, int axis, int64_t shift,
                                 int *tensor) {
    struct rfx_node join = {.op = RFX_OP_PLAIN_CONCAT, .attr.concat.axis = axis};
    struct rfx_slice_attr all = {.shape = rfx_onnx_tensor_of(ctx, *tensor)->shape};
    int64_t extent = all.shape.dims[axis];
    int halves[2], in = *tensor;
    for (int i = 0; i < all.shape.rank; i++) all.steps[i] = 1;
    for (int k = 0; k < 2; k++) {
        struct rfx_node half = {.op = RFX_OP_PLAIN_SLICE, .attr.slice = all};
        half.attr.slice.starts[axis] = k == 0 ? shift : 0;
        half.attr.slice.shape.dims[axis] = k == 0 ? extent - shift : shift;
        enum rfx_status status = rfx_onnx_emit(ctx, &half, "/half", &in, 1, &halves[k]);
        if (status != RFX_OK) return status;
    }
    return rfx_onnx_emit(ctx, &join, "/rolled", halves, 2, tensor);
}

/* Factors as they lie in a map: rows, columns, channels, each from the outermost in. Fills `perm`
 * so that sorted[perm[i]] is in[i]. */
static struct rfx_shape sort_factors(const struct rfx_pixels_factor *in, int n, int *perm) {
    struct rfx_shape shape = {.rank = n};
    for (int i = 0; i < n; i++) {
        perm[i] = 0;
        for (int k = 0; k < n; k++)
            if (in[k].axis < in[i].axis ||
                (in[k].axis == in[i].axis && in[k].stride > in[i].stride))
                perm[i]++;
        shape.dims[perm[i]] = in[i].size;
    }
    return shape;
}

enum rfx_status rfx_onnx_emit_pixels(struct rfx_onnx_import *ctx, const struct rfx_pixels *p,
                                     int *out) {
    struct rfx_node view = {.op = RFX_OP_NHWC_AS_PLAIN}, turn = {.op = RFX_OP_TRANSPOSE};
    struct rfx_pixels_factor merged[RFX_PIXELS_FACTORS];
    struct rfx_shape shape = rfx_pixels_shape(p);
    int n = rfx_pixels_merge(p->factors, p->count, merged);
    if (n > RFX_MAX_RANK) return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "a rank of %d", n);
    enum rfx_status status = rfx_onnx_emit(ctx, &view, "/channels_last", &p->map, 1, out);
    for (int axis = 0; status == RFX_OK && axis < 2; axis++)
        if (p->roll[axis] != 0) status = emit_roll(ctx, axis + 1, p->roll[axis], out);
    struct rfx_shape sorted = sort_factors(merged, n, turn.attr.transpose.perm);
    bool in_order = true;
    for (int i = 0; i < n; i++) in_order = in_order && turn.attr.transpose.perm[i] == i;
    if (status == RFX_OK && !in_order) status = rfx_onnx_reshape(ctx, *out, &sorted, out);
    if (status == RFX_OK && !in_order) {
        int in = *out;
        status = rfx_onnx_emit(ctx, &turn, "/turned", &in, 1, out);
    }
    return status == RFX_OK ? rfx_onnx_reshape(ctx, *out, &shape, out) : status;
}

/* Each of three maps of c channels side by side; one that is that already is taken as it is. */
static enum rfx_status join_parts(struct rfx_onnx_import *ctx,
                                  const struct rfx_found_windows *found, int *out) {
    int64_t c = found->channels;
    const struct rfx_pixels *parts = found->parts;
    int in[3];
    bool joined = parts[0].extent[RFX_PIXELS_CHANNEL] == 3 * c;
    for (int i = 0; i < 3; i++)
        joined = joined && parts[i].map == parts[0].map && parts[i].first == i * c;
    *out = parts[0].map;
    if (joined) return RFX_OK;
    for (int i = 0; i < 3; i++) {
        struct rfx_node pick = {.op = RFX_OP_CHANNEL_SELECT};
        in[i] = parts[i].map;
        if (parts[i].first == 0 && parts[i].extent[RFX_PIXELS_CHANNEL] == c) continue;
        int64_t *map = rfx_arena_alloc(ctx->arena, (size_t)c, sizeof *map);
        if (map == NULL) return rfx_onnx_refuse(ctx, RFX_STATUS_OUT_OF_MEMORY, "no memory");
        for (int64_t k = 0; k < c; k++) map[k] = parts[i].first + k;
        pick.attr.select.count = c;
        pick.attr.select.map = map;
        enum rfx_status status = rfx_onnx_emit(ctx, &pick, "/part", &parts[i].map, 1, &in[i]);
        if (status != RFX_OK) return status;
    }
    struct rfx_node concat = {.op = RFX_OP_CONCAT, .attr.concat.axis = 1};
    return rfx_onnx_emit(ctx, &concat, "/parts", in, 3, out);
}

enum rfx_status rfx_onnx_window_attention(struct rfx_onnx_import *ctx, int softmax, int values,
                                          int *out) {
    const struct rfx_node *weights = &ctx->graph->nodes[softmax];
    struct rfx_shape shape = weights->out.shape;
    struct rfx_found_windows found;
    *out = -1;
    if (shape.rank < 3 || weights->attr.softmax.logarithm ||
        weights->attr.softmax.axis != shape.rank - 1)
        return RFX_OK;
    const struct rfx_shape *v = &rfx_onnx_tensor_of(ctx, values)->shape;
    shape.dims[shape.rank - 1] = v->dims[v->rank - 1];
    enum rfx_status status =
        rfx_find_windows(ctx->graph, softmax, values, &shape, &found, ctx->err);
    if (status != RFX_OK || !found.found) return status;
    struct rfx_node node = {.op = RFX_OP_WINDOW_ATTENTION, .attr.window_attention = found.attr};
    status = join_parts(ctx, &found, &found.out.map);
    if (status == RFX_OK) status = rfx_onnx_emit(ctx, &node, "", &found.out.map, 1, out);
    if (status != RFX_OK) return status;
    found.out.map = *out;
    return rfx_onnx_emit_pixels(ctx, &found.out, out);
}
