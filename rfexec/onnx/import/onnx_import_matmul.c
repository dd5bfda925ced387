/* Converters of matrix products: Gemm, MatMul and Attention. Also creates tensors that are maps in
 * the order of tokens or windows, which these operators need.
 *
 * A product with constant weights becomes a GEMM, or a 1x1 convolution of a map. Attention, and the
 * products around a softmax that exporters write instead, become MATMUL, PLAIN_BINARY,
 * PLAIN_SOFTMAX and MATMUL. Finishing the graph fuses these into one node. Attention within windows
 * of a map becomes WINDOW_ATTENTION. */
#include <math.h>
#include <string.h>

#include "rfexec/onnx/import/onnx_import.h"
#include "rfexec/onnx/import/onnx_windows.h"

static struct rfx_node matmul_node(void) {
    return (struct rfx_node){.op = RFX_OP_MATMUL};
}

/* --- constant weights --- */

/* Refuses a matrix that does not fit the tensor. A linear layer fixes its number of inputs and
 * thereby, after a convolutional network, the size of the image. */
static int fixed_by_weights(struct rfx_onnx_import *ctx, int64_t wants, int64_t given) {
    if (ctx->is_of_constants)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "a matrix of %lld rows by %lld columns",
                               (long long)wants, (long long)given);
    const struct rfx_tensor *image = rfx_onnx_tensor_of(ctx, ctx->graph->input);
    return rfx_onnx_refuse(
        ctx, RFX_STATUS_UNSUPPORTED,
        "the network is fixed to another image size by its weights (%lld inputs, "
        "%lld given at %lldx%lld)",
        (long long)wants, (long long)given, (long long)image->h, (long long)image->w);
}

/* Returns Gemm's C as a weight of m elements, or -1 when C must be added by a node of its own. */
static int gemm_bias(struct rfx_onnx_import *ctx, int64_t m) {
    struct rfx_onnx_const *c = rfx_onnx_in(ctx, 2).constant;
    if (c == NULL || (c->elems != m && c->elems != 1)) return -1;
    if (c->elems == m && (c->shape.rank == 0 || c->shape.dims[c->shape.rank - 1] == m))
        return rfx_onnx_const_weight(ctx, c);
    if (c->elems != 1) return -1;
    const double *value = rfx_onnx_const_reals(ctx, c);
    int bias = rfx_onnx_own_weight(ctx, NULL, m);
    if (bias < 0) return -1;
    float *values = rfx_graph_owned_weight(ctx->graph, bias);
    for (int64_t i = 0; i < m; i++) values[i] = (float)value[0];
    return bias;
}

int rfx_onnx_gemm(struct rfx_onnx_import *ctx) {
    struct rfx_node node = {.op = RFX_OP_GEMM};
    int in = rfx_onnx_plain(ctx, rfx_onnx_in(ctx, 0));
    struct rfx_onnx_const *b = rfx_onnx_in_const(ctx, 1);
    if (b == NULL) return -1;
    const struct rfx_shape a = rfx_onnx_tensor_of(ctx, in)->shape;
    bool trans_b = rfx_onnx_attr_flag(ctx, "transB", false), has_c = rfx_onnx_has(ctx, 2);
    if (rfx_onnx_attr_flag(ctx, "transA", false))
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "transA = 1");
    if (a.rank != 2 || b->shape.rank != 2)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "operands of rank %d and %d, not 2",
                               a.rank, b->shape.rank);
    node.attr.gemm.k = b->shape.dims[trans_b ? 1 : 0];
    node.attr.gemm.m = b->shape.dims[trans_b ? 0 : 1];
    node.attr.gemm.weight_is_mk = trans_b;
    node.attr.gemm.alpha = rfx_onnx_attr_float(ctx, "alpha", 1.0f);
    node.attr.gemm.beta = rfx_onnx_attr_float(ctx, "beta", 1.0f);
    if (a.dims[1] != node.attr.gemm.k) return fixed_by_weights(ctx, node.attr.gemm.k, a.dims[1]);
    node.attr.gemm.weight = rfx_onnx_const_weight(ctx, b);
    node.attr.gemm.bias = has_c ? gemm_bias(ctx, node.attr.gemm.m) : -1;
    bool later = has_c && node.attr.gemm.bias < 0;
    if (later && node.attr.gemm.beta != 1.0f)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "beta %g with a computed C",
                               (double)node.attr.gemm.beta);
    int out = rfx_onnx_emit1(ctx, &node, later ? "/product" : "", in);
    if (!later) return out;
    return rfx_onnx_binary_of(ctx, RFX_BINARY_ADD, "", out,
                              rfx_onnx_plain(ctx, rfx_onnx_in(ctx, 2)));
}

/* Returns the node of a map's tokens times a constant [k, m], or [m, k] if `turned`. It is a 1x1
 * convolution of the map. */
static int matmul_of_map(struct rfx_onnx_import *ctx, int map, struct rfx_onnx_const *b,
                         bool turned) {
    struct rfx_node node = {.op = RFX_OP_CONV};
    const struct rfx_shape filters = {4, {b->shape.dims[0], b->shape.dims[1], 1, 1}};
    node.attr.conv = rfx_conv_pointwise(b->shape.dims[turned ? 0 : 1]);
    node.attr.conv.weight = turned
                                ? rfx_onnx_const_weight(ctx, rfx_onnx_const_view(ctx, b, &filters))
                                : rfx_onnx_const_weight_transposed(ctx, b);
    return rfx_onnx_channels_last(ctx, rfx_onnx_emit1(ctx, &node, "", map));
}

/* Returns the node of x [..., k] times a constant [k, m], or [m, k] if `turned`: a GEMM over all
 * rows of x. */
static int matmul_const(struct rfx_onnx_import *ctx, int in, struct rfx_onnx_const *b,
                        bool turned) {
    struct rfx_shape shape = rfx_onnx_tensor_of(ctx, in)->shape;
    int64_t k = shape.dims[shape.rank - 1];
    struct rfx_shape rows = {2, {rfx_shape_product(&shape, 0, shape.rank - 1), k}};
    struct rfx_node node = {.op = RFX_OP_GEMM,
                            .attr.gemm = {.k = k,
                                          .m = b->shape.dims[turned ? 0 : 1],
                                          .weight_is_mk = turned,
                                          .alpha = 1.0f,
                                          .beta = 1.0f,
                                          .bias = -1,
                                          .weight = rfx_onnx_const_weight(ctx, b)}};
    int out = rfx_onnx_emit1(ctx, &node, "", rfx_onnx_reshape(ctx, in, &rows));
    shape.dims[shape.rank - 1] = node.attr.gemm.m;
    return rfx_onnx_reshape(ctx, out, &shape);
}

int rfx_onnx_by_matrix(struct rfx_onnx_import *ctx, struct rfx_onnx_operand x,
                       struct rfx_onnx_const *b, bool turned) {
    int map = rfx_onnx_tokens_behind(ctx, x.node);
    int in = map < 0 ? rfx_onnx_plain(ctx, x) : map;
    if (in < 0) return -1;
    const struct rfx_tensor *t = rfx_onnx_tensor_of(ctx, in);
    int64_t k = map < 0 ? t->shape.dims[t->shape.rank - 1] : t->c;
    int64_t wants = b->shape.dims[turned ? 1 : 0];
    if (k != wants) return fixed_by_weights(ctx, wants, k);
    return map < 0 ? matmul_const(ctx, in, b, turned) : matmul_of_map(ctx, map, b, turned);
}

/* --- attention --- */

/* Returns the node of a tensor with its last two axes exchanged. */
static int turn(struct rfx_onnx_import *ctx, const char *suffix, int in) {
    struct rfx_node node = {.op = RFX_OP_TRANSPOSE};
    int rank = rfx_onnx_tensor_of(ctx, in)->shape.rank;
    for (int i = 0; i < rank; i++) node.attr.transpose.perm[i] = i;
    node.attr.transpose.perm[rank - 2] = rank - 1;
    node.attr.transpose.perm[rank - 1] = rank - 2;
    return rfx_onnx_emit1(ctx, &node, suffix, in);
}

/* Returns whether a node exchanges the last two axes. */
static bool is_turn(const struct rfx_node *node) {
    int rank = node->out.shape.rank;
    if (node->op != RFX_OP_TRANSPOSE || rank < 2) return false;
    for (int i = 0; i < rank - 2; i++)
        if (node->attr.transpose.perm[i] != i) return false;
    return node->attr.transpose.perm[rank - 2] == rank - 1;
}

/* The weights of attention. */
struct attention_weights {
    int softmax;                  /* -1: the tensor is none of weights */
    bool turned;                  /* the last two axes of the softmax are exchanged */
    struct rfx_rounding rounding; /* of the softmax to bytes; may be none */
};

/* If *node exchanges the last two axes, replaces it by its operand and sets *turned. */
static void take_turn(const struct rfx_node *nodes, int *node, bool *turned) {
    if (*turned || !is_turn(&nodes[*node])) return;
    *turned = true;
    *node = nodes[*node].in[0];
}

/* Follows a tensor back to a softmax. The axes may be exchanged at any place. */
static struct attention_weights weights_of(const struct rfx_onnx_import *ctx, int in) {
    struct attention_weights w = {.softmax = in};
    const struct rfx_node *nodes = ctx->graph->nodes;
    take_turn(nodes, &w.softmax, &w.turned);
    if (nodes[w.softmax].op == RFX_OP_CONVERT) {
        int floats = w.softmax, bytes = nodes[floats].in[0];
        take_turn(nodes, &bytes, &w.turned);
        w.softmax = rfx_find_rounding(ctx->graph, bytes, floats, &w.rounding);
        if (w.softmax >= 0) take_turn(nodes, &w.softmax, &w.turned);
    }
    if (w.softmax >= 0 && nodes[w.softmax].op != RFX_OP_PLAIN_SOFTMAX) w.softmax = -1;
    return w;
}

/* Returns the channels of parts [from, end), which are of one map, as a map in which the heads
 * follow each other. If the map already has these channels in this order, returns the map. */
static int select_heads(struct rfx_onnx_import *ctx, const struct rfx_found_windows *found,
                        int from, int end) {
    int64_t count = 0, heads = found->attr.heads;
    for (int i = from; i < end; i++) count += heads * found->size[i];
    int64_t *map = rfx_onnx_alloc(ctx, (size_t)count, sizeof *map);
    int64_t *next = map;
    bool same = found->parts[from].extent[RFX_PIXELS_CHANNEL] == count;
    for (int i = from; map != NULL && i < end; i++)
        for (int64_t k = 0; k < heads * found->size[i]; k++, next++) {
            *next =
                found->parts[i].first + k / found->size[i] * found->stride[i] + k % found->size[i];
            same = same && *next == next - map;
        }
    if (same || map == NULL) return map == NULL ? -1 : found->parts[from].map;
    return rfx_onnx_select(ctx, "/part", found->parts[from].map, map, count);
}

/* Returns a map of the queries, keys and values of all heads. */
static int join_parts(struct rfx_onnx_import *ctx, const struct rfx_found_windows *found) {
    const struct rfx_pixels *parts = found->parts;
    struct rfx_node concat = {.op = RFX_OP_CONCAT, .attr.concat.axis = 1};
    int in[3];
    if (parts[1].map == parts[0].map && parts[2].map == parts[0].map)
        return select_heads(ctx, found, 0, 3);
    for (int i = 0; i < 3; i++) in[i] = select_heads(ctx, found, i, i + 1);
    return rfx_onnx_emit(ctx, &concat, "/parts", in, 3);
}

/* Returns softmax(scores) x values as attention within windows of a map, or -1 when it is something
 * else. */
static int window_attention(struct rfx_onnx_import *ctx, const struct attention_weights *w,
                            int values) {
    const struct rfx_node *weights = &ctx->graph->nodes[w->softmax];
    struct rfx_shape shape = weights->out.shape;
    struct rfx_found_windows found;
    if (shape.rank < 3 || weights->attr.softmax.logarithm ||
        weights->attr.softmax.axis != shape.rank - 1)
        return -1;
    const struct rfx_shape *v = &rfx_onnx_tensor_of(ctx, values)->shape;
    shape.dims[shape.rank - 1] = v->dims[v->rank - 1];
    ctx->status = rfx_find_windows(ctx->graph, w->softmax, values, &shape, &found, ctx->err);
    if (rfx_onnx_failed(ctx) || !found.found) return -1;
    found.attr.round_weights = w->rounding;
    struct rfx_node node = {.op = RFX_OP_WINDOW_ATTENTION, .attr.window_attention = found.attr};
    found.out.map = rfx_onnx_emit1(ctx, &node, "", join_parts(ctx, &found));
    return rfx_onnx_emit_pixels(ctx, &found.out);
}

int rfx_shape_product_of(struct rfx_onnx_import *ctx, const char *suffix, int a, int b) {
    struct rfx_node node = matmul_node();
    if (rfx_onnx_failed(ctx)) return -1;
    struct attention_weights w = weights_of(ctx, a);
    int out = w.softmax >= 0 && !w.turned ? window_attention(ctx, &w, b) : -1;
    if (out >= 0 || rfx_onnx_failed(ctx)) return out;
    w = weights_of(ctx, b);
    if (w.softmax < 0 || !w.turned) return rfx_onnx_emit2(ctx, &node, suffix, a, b);
    /* With T for the transpose, a T(s) = T(s T(a)): the same sums in the same order. The second
     * form is the form of attention. */
    int turned = turn(ctx, "/turned", a);
    if (turned >= 0) out = window_attention(ctx, &w, turned);
    if (rfx_onnx_failed(ctx)) return -1;
    if (out < 0 && w.rounding.scale != 0.0f) return rfx_onnx_emit2(ctx, &node, suffix, a, b);
    if (out < 0) out = rfx_onnx_emit2(ctx, &node, "/product", w.softmax, turned);
    return turn(ctx, "", out);
}

int rfx_onnx_matmul(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_operand x[2] = {rfx_onnx_need(ctx, 0), rfx_onnx_need(ctx, 1)};
    int in[2];
    bool vector[2];
    if (rfx_onnx_failed(ctx)) return -1;
    if (x[1].constant != NULL && x[1].constant->shape.rank == 2 &&
        rfx_onnx_shape(ctx, x[0])->rank >= 2)
        return rfx_onnx_by_matrix(ctx, x[0], x[1].constant, false);
    for (int k = 0; k < 2; k++) in[k] = rfx_onnx_plain(ctx, x[k]);
    for (int k = 0; k < 2; k++) {
        struct rfx_shape shape = rfx_onnx_tensor_of(ctx, in[k])->shape;
        if (shape.rank == 0)
            return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "operand %d is a number", k);
        vector[k] = shape.rank == 1; /* becomes one row (k = 0) or one column */
        struct rfx_shape row = {2, {1, shape.dims[0]}}, column = {2, {shape.dims[0], 1}};
        if (vector[k]) in[k] = rfx_onnx_reshape(ctx, in[k], k == 0 ? &row : &column);
    }
    struct rfx_node node = matmul_node();
    if (!vector[0] && !vector[1]) return rfx_shape_product_of(ctx, "", in[0], in[1]);
    int out = rfx_onnx_emit(ctx, &node, "/product", in, 2);
    struct rfx_shape full = rfx_onnx_tensor_of(ctx, out)->shape, kept = full;
    kept.rank = full.rank - 2;
    if (!vector[0]) kept.dims[kept.rank++] = full.dims[full.rank - 2];
    if (!vector[1]) kept.dims[kept.rank++] = full.dims[full.rank - 1];
    return rfx_onnx_reshape(ctx, out, &kept);
}

/* Refuses attributes, inputs and outputs of Attention that are not supported. */
static void refuse_options(struct rfx_onnx_import *ctx) {
    static const char *const sides[] = {"left_window_size", "right_window_size"};
    static const char *const inputs[] = {"past_key", "past_value", "nonpad_kv_seqlen"};
    for (size_t k = 0; k < 2; k++)
        if (rfx_onnx_attr_int(ctx, sides[k], -1) != -1)
            (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "%s = %lld", sides[k],
                                  (long long)rfx_onnx_attr_int(ctx, sides[k], -1));
    for (size_t k = 0; k < 3; k++)
        if (rfx_onnx_has(ctx, 4 + k))
            (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "input %s", inputs[k]);
    if (rfx_onnx_attr_flag(ctx, "is_causal", false))
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "is_causal = 1");
    if (rfx_onnx_attr_float(ctx, "softcap", 0.0f) != 0.0f)
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "softcap %g",
                              (double)rfx_onnx_attr_float(ctx, "softcap", 0.0f));
    for (size_t k = 1; k < ctx->node->n_out; k++)
        if (rfx_onnx_gives(ctx, k))
            (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "output %zu, '%s'", k,
                                  ctx->node->out[k]);
}

/* Exchanges axes 1 and 2 of a tensor of rank 4: tokens and heads. */
static int swap_heads(struct rfx_onnx_import *ctx, const char *suffix, int in) {
    struct rfx_node node = {.op = RFX_OP_TRANSPOSE, .attr.transpose.perm = {0, 2, 1, 3}};
    return rfx_onnx_emit1(ctx, &node, suffix, in);
}

/* Returns operand k as (1, heads, tokens, size). An operand of rank 3 has the heads in its last
 * axis.
 */
static int by_heads(struct rfx_onnx_import *ctx, size_t k, const char *attribute,
                    const char *suffix) {
    int in = rfx_onnx_plain(ctx, rfx_onnx_in(ctx, k));
    const struct rfx_shape shape = rfx_onnx_tensor_of(ctx, in)->shape;
    int64_t heads = rfx_onnx_attr_int(ctx, attribute, 0);
    if (shape.rank == 4 && (heads == 0 || heads == shape.dims[1])) return in;
    if (shape.rank != 3 || heads < 1 || shape.dims[2] % heads != 0)
        return rfx_onnx_refuse(
            ctx, RFX_STATUS_MALFORMED,
            "input %zu has rank %d and its last axis %lld elements for %s = %lld", k, shape.rank,
            (long long)shape.dims[shape.rank - 1], attribute, (long long)heads);
    struct rfx_shape split = {4, {shape.dims[0], shape.dims[1], heads, shape.dims[2] / heads}};
    return swap_heads(ctx, suffix, rfx_onnx_reshape(ctx, in, &split));
}

int rfx_onnx_attention(struct rfx_onnx_import *ctx) {
    struct rfx_node softmax = {.op = RFX_OP_PLAIN_SOFTMAX, .attr.softmax.axis = 3};
    struct rfx_node product = matmul_node(), number = {.op = RFX_OP_CONST_PLAIN};
    refuse_options(ctx);
    int q = by_heads(ctx, 0, "q_num_heads", "/q"), k = by_heads(ctx, 1, "kv_num_heads", "/k");
    int v = by_heads(ctx, 2, "kv_num_heads", "/v");
    if (rfx_onnx_failed(ctx)) return -1;
    const struct rfx_shape of_q = rfx_onnx_tensor_of(ctx, q)->shape;
    const struct rfx_shape of_k = rfx_onnx_tensor_of(ctx, k)->shape;
    if (of_q.dims[1] != of_k.dims[1])
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "%lld heads of queries share %lld",
                               (long long)of_q.dims[1], (long long)of_k.dims[1]);
    bool tokens = rfx_onnx_shape(ctx, rfx_onnx_in(ctx, 0))->rank == 3;
    float scale = rfx_onnx_attr_float(ctx, "scale", 1.0f / sqrtf((float)of_q.dims[3]));
    int scores = rfx_onnx_emit2(ctx, &product, "/scores", q, turn(ctx, "/keys", k));
    number.attr.constant.shape = (struct rfx_shape){1, {1}};
    number.attr.constant.weight = rfx_onnx_own_weight(ctx, &scale, 1);
    int times = rfx_onnx_emit(ctx, &number, "/scale", NULL, 0);
    scores = rfx_onnx_binary_of(ctx, RFX_BINARY_MUL, "/scaled", scores, times);
    const struct rfx_onnx_const *mask = rfx_onnx_in(ctx, 3).constant;
    if (mask != NULL && !rfx_onnx_type_is_real(mask->type)) /* false would hide a score */
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "a mask of booleans");
    if (rfx_onnx_has(ctx, 3))
        scores = rfx_onnx_binary_of(ctx, RFX_BINARY_ADD, "/masked", scores,
                                    rfx_onnx_plain(ctx, rfx_onnx_in(ctx, 3)));
    int weights = rfx_onnx_emit1(ctx, &softmax, "/weights", scores);
    int out = rfx_onnx_emit2(ctx, &product, tokens ? "/product" : "", weights, v);
    if (!tokens) return out;
    const struct rfx_shape s = rfx_onnx_tensor_of(ctx, out)->shape;
    struct rfx_shape joined = {3, {s.dims[0], s.dims[2], s.dims[1] * s.dims[3]}};
    return rfx_onnx_reshape(ctx, swap_heads(ctx, "", out), &joined);
}

/* --- tensors that are maps in another order --- */

/* Returns the node of a tensor rolled along an axis: position i gets the element of position i +
 * shift, modulo the size of the axis. */
static int emit_roll(struct rfx_onnx_import *ctx, int axis, int64_t shift, int in) {
    struct rfx_node join = {.op = RFX_OP_PLAIN_CONCAT, .attr.concat.axis = axis};
    struct rfx_slice_attr all = {.shape = rfx_onnx_tensor_of(ctx, in)->shape};
    int64_t extent = all.shape.dims[axis];
    int halves[2];
    for (int i = 0; i < all.shape.rank; i++) all.steps[i] = 1;
    for (int k = 0; k < 2; k++) {
        struct rfx_node half = {.op = RFX_OP_PLAIN_SLICE, .attr.slice = all};
        half.attr.slice.starts[axis] = k == 0 ? shift : 0;
        half.attr.slice.shape.dims[axis] = k == 0 ? extent - shift : shift;
        halves[k] = rfx_onnx_emit1(ctx, &half, "/half", in);
    }
    return rfx_onnx_emit(ctx, &join, "/rolled", halves, 2);
}

/* Sorts the factors of a tensor (onnx_pixels.h) into the order of a map: rows, columns, channels,
 * the outermost factor of each first. Sets perm so that factor in[i] becomes axis perm[i]. Returns
 * the shape with these axes. */
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

int rfx_onnx_emit_pixels(struct rfx_onnx_import *ctx, const struct rfx_pixels *p) {
    struct rfx_node view = {.op = RFX_OP_NHWC_AS_PLAIN}, order = {.op = RFX_OP_TRANSPOSE};
    struct rfx_pixels_factor merged[RFX_PIXELS_FACTORS];
    const struct rfx_shape shape = rfx_pixels_shape(p);
    int n = rfx_pixels_merge(p->factors, p->count, merged);
    if (n > RFX_MAX_RANK) return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "a rank of %d", n);
    int out = rfx_onnx_emit1(ctx, &view, "/channels_last", p->map);
    for (int axis = 0; axis < 2; axis++)
        if (p->roll[axis] != 0) out = emit_roll(ctx, axis + 1, p->roll[axis], out);
    struct rfx_shape sorted = sort_factors(merged, n, order.attr.transpose.perm);
    bool in_order = true;
    for (int i = 0; i < n; i++) in_order = in_order && order.attr.transpose.perm[i] == i;
    if (!in_order)
        out = rfx_onnx_emit1(ctx, &order, "/turned", rfx_onnx_reshape(ctx, out, &sorted));
    return rfx_onnx_reshape(ctx, out, &shape);
}
