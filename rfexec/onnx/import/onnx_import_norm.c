/* Converters of norms and softmax.
 *
 * A norm over channels becomes one node on a map. A norm by statistics over space (instance, group
 * and layer norms, mean-variance normalisation) becomes two nodes: MOMENTS computes the statistics
 * of a map, NORMALISE applies them. A norm of a whole tensor becomes arithmetic on tensors. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "rfexec/onnx/import/onnx_import.h"

/* --- batch norms --- */

/* Sets weights scale = gamma / sqrt(var + eps) and shift = beta - mean * scale, of `channels` each,
 * for the operand `in`. Each is rounded to float32 once. For an operand that was one-byte integers,
 * each operation is rounded, in the order of ONNX Runtime: a QuantizeLinear behind the norm then
 * gives its bytes. */
static void norm_weights(struct rfx_onnx_import *ctx, int in, int64_t channels, int *scale_at,
                         int *shift_at) {
    const double *v[4] = {NULL, NULL, NULL, NULL};
    for (size_t k = 0; k < 4; k++) {
        struct rfx_onnx_const *c = rfx_onnx_in_const(ctx, k + 1);
        if (c != NULL && c->elems != channels)
            (void)rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "input %zu has %lld of %lld values",
                                  k + 1, (long long)c->elems, (long long)channels);
        if (c != NULL) v[k] = rfx_onnx_const_reals(ctx, c);
    }
    *scale_at = rfx_onnx_own_weight(ctx, NULL, channels);
    *shift_at = rfx_onnx_own_weight(ctx, NULL, channels);
    if (rfx_onnx_failed(ctx)) return;
    float *scale = rfx_graph_owned_weight(ctx->graph, *scale_at);
    float *shift = rfx_graph_owned_weight(ctx->graph, *shift_at);
    double eps = (double)rfx_onnx_attr_float(ctx, "epsilon", 1e-5f);
    bool stepwise = rfx_onnx_is_of_bytes(ctx, in);
    for (int64_t i = 0; i < channels; i++) {
        double s = v[0][i] / sqrt(v[3][i] + eps);
        scale[i] = (float)s;
        shift[i] = (float)(v[1][i] - v[2][i] * s);
        if (!stepwise) continue;
        float inverse = 1.0f / sqrtf((float)v[3][i] + (float)eps);
        scale[i] = inverse * (float)v[0][i];
        float moved = (float)v[2][i] * scale[i];
        shift[i] = (float)v[1][i] - moved;
    }
}

/* Returns the batch norm of a tensor that is not a map: each index of axis 1 has a scale and a
 * shift. */
static int norm_tensor(struct rfx_onnx_import *ctx, struct rfx_onnx_operand x) {
    static const enum rfx_binary_kind kinds[2] = {RFX_BINARY_MUL, RFX_BINARY_ADD};
    int weights[2] = {-1, -1}, in = rfx_onnx_plain(ctx, x);
    struct rfx_shape shape = rfx_onnx_tensor_of(ctx, in)->shape;
    norm_weights(ctx, in, shape.dims[1], &weights[0], &weights[1]);
    for (int i = 0; i < shape.rank; i++)
        if (i != 1) shape.dims[i] = 1;
    for (int k = 0; k < 2; k++) {
        struct rfx_node constant = {.op = RFX_OP_CONST_PLAIN};
        constant.attr.constant.weight = weights[k];
        constant.attr.constant.shape = shape;
        int by = rfx_onnx_emit(ctx, &constant, "/weights", NULL, 0);
        in = rfx_onnx_binary_of(ctx, kinds[k], k == 0 ? "/scaled" : "", in, by);
    }
    return in;
}

/* BatchNormalization becomes an AFFINE node, which may be fused. It works on a map, or on the map
 * whose channels are axis 1 of the tensor, in any order of pixels.
 *
 * In training mode the statistics are those of the operand, not inputs 3 and 4. For one image, or a
 * constant, that is an instance norm. Exporters write standardised weights like this. */
int rfx_onnx_batch_norm(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_operand x = rfx_onnx_need_computed(ctx);
    struct rfx_node node = {.op = RFX_OP_AFFINE};
    struct rfx_pixels p;
    bool trains = ctx->opset < 7 && !rfx_onnx_attr_flag(ctx, "is_test", false);
    const struct rfx_shape shape = *rfx_onnx_shape(ctx, x);
    trains = trains || rfx_onnx_attr_flag(ctx, "training_mode", false);
    if (trains && (ctx->opset < 14 || ctx->batch > 1))
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                               "training mode%s: export the model for inference",
                               ctx->batch > 1 ? ", over all images of a batch" : "");
    if (trains) return rfx_onnx_instance_norm(ctx);
    if (shape.rank < 2) return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "rank %d", shape.rank);
    if (rfx_onnx_failed(ctx)) return -1;
    bool map = shape.rank == 4 && shape.dims[0] == 1;
    bool pixels =
        !map && rfx_pixels_of(ctx->graph, x.node, &p) && rfx_pixels_axis_is_channels(&p, 1);
    if (!map && !pixels) return norm_tensor(ctx, x);
    int in = pixels ? p.map : rfx_onnx_map(ctx, x);
    norm_weights(ctx, in, rfx_onnx_tensor_of(ctx, in)->c, &node.attr.affine.scale,
                 &node.attr.affine.shift);
    int out = rfx_onnx_emit1(ctx, &node, "", in);
    if (!pixels || out < 0) return out;
    p = rfx_pixels_with_channels(&p, 1, out, rfx_onnx_tensor_of(ctx, out)->c);
    return rfx_onnx_emit_pixels(ctx, &p);
}

int rfx_onnx_lrn(struct rfx_onnx_import *ctx) {
    struct rfx_node node = {.op = RFX_OP_LRN};
    int in = rfx_onnx_map(ctx, rfx_onnx_in(ctx, 0));
    node.attr.lrn.size = rfx_onnx_attr_int(ctx, "size", 0);
    if (node.attr.lrn.size < 1 || node.attr.lrn.size > RFX_ONNX_MOST_GIVEN)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "size %lld",
                               (long long)node.attr.lrn.size);
    node.attr.lrn.alpha = rfx_onnx_attr_float(ctx, "alpha", 0.0001f);
    node.attr.lrn.beta = rfx_onnx_attr_float(ctx, "beta", 0.75f);
    node.attr.lrn.bias = rfx_onnx_attr_float(ctx, "bias", 1.0f);
    return rfx_onnx_emit1(ctx, &node, "", in);
}

/* --- statistics over space --- */

/* A norm over space. Each of the `groups` groups of channels has its own statistics. scale and
 * shift are weight indices, or -1. */
struct space_norm {
    int64_t groups;
    float eps;
    int scale, shift;
};

static int emit_norm(struct rfx_onnx_import *ctx, const struct space_norm *norm, int map) {
    struct rfx_node moments = {.op = RFX_OP_MOMENTS}, normalise = {.op = RFX_OP_NORMALISE};
    moments.attr.moments.groups = norm->groups;
    moments.attr.moments.eps = norm->eps;
    normalise.attr.affine.scale = norm->scale;
    normalise.attr.affine.shift = norm->shift;
    int statistics = rfx_onnx_emit1(ctx, &moments, "/moments", map);
    return rfx_onnx_emit2(ctx, &normalise, "", map, statistics);
}

/* Returns optional constant input k, with one value per channel or group, as a weight of c
 * elements. Returns -1 when the input is absent or all values are `neutral`. */
static int group_weight(struct rfx_onnx_import *ctx, size_t k, int64_t c, int64_t groups,
                        double neutral) {
    struct rfx_onnx_const *constant = rfx_onnx_has(ctx, k) ? rfx_onnx_in_const(ctx, k) : NULL;
    bool all_neutral = true;
    if (constant == NULL) return -1;
    int64_t n = constant->elems;
    if (n != c && n != groups)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED,
                               "input %zu has %lld values for %lld channels in %lld groups", k,
                               (long long)n, (long long)c, (long long)groups);
    const double *v = rfx_onnx_const_reals(ctx, constant);
    for (int64_t i = 0; v != NULL && i < n; i++) all_neutral = all_neutral && v[i] == neutral;
    int weight = all_neutral ? -1 : rfx_onnx_own_weight(ctx, NULL, c);
    if (weight < 0) return -1;
    float *values = rfx_graph_owned_weight(ctx->graph, weight);
    for (int64_t i = 0; i < c; i++) values[i] = (float)v[i / (c / n)];
    return weight;
}

/* Returns the map that `node` is a reshape of, if its shape is (1, groups, ...), else -1. Exporters
 * write group norms with such a reshape. */
static int grouped_map(const struct rfx_onnx_import *ctx, int node) {
    const struct rfx_node *reshape = &ctx->graph->nodes[node];
    if (reshape->op != RFX_OP_RESHAPE) return -1;
    int map = ctx->map_of[reshape->in[0]];
    if (map < 0 || reshape->out.shape.dims[0] != 1) return -1;
    return ctx->graph->nodes[map].out.c % reshape->out.shape.dims[1] == 0 ? map : -1;
}

/* Returns operand 0 as a map whose groups of channels are normalised together. *groups is the size
 * of axis 1 of the operand. */
static int map_of_groups(struct rfx_onnx_import *ctx, struct rfx_onnx_operand x, int64_t *groups) {
    struct rfx_shape shape = *rfx_onnx_shape(ctx, x);
    *groups = shape.dims[1];
    if (shape.rank < 3)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "an operand of rank %d", shape.rank);
    if (rfx_onnx_failed(ctx)) return -1;
    if (shape.rank == 4) return rfx_onnx_map(ctx, x);
    int map = grouped_map(ctx, x.node);
    if (map >= 0) return map;
    struct rfx_shape four = {
        4, {shape.dims[0], shape.dims[1], 1, rfx_shape_product(&shape, 2, shape.rank)}};
    return rfx_onnx_map(ctx, rfx_onnx_of(rfx_onnx_plain_as(ctx, x.node, &four)));
}

/* Returns the node of an instance norm or, if `grouped`, of a group norm with attribute num_groups.
 * Inputs 1 and 2 are scale and shift. The result has the shape of input 0. */
static int norm_over_space(struct rfx_onnx_import *ctx, bool grouped) {
    struct rfx_onnx_operand x = rfx_onnx_need_computed(ctx);
    struct space_norm norm = {.eps = rfx_onnx_attr_float(ctx, "epsilon", 1e-5f)};
    const struct rfx_shape shape = *rfx_onnx_shape(ctx, x);
    int map = map_of_groups(ctx, x, &norm.groups);
    int64_t c = grouped ? norm.groups : rfx_onnx_tensor_of(ctx, map)->c;
    if (grouped) norm.groups = rfx_onnx_attr_int(ctx, "num_groups", 0);
    if (norm.groups < 1 || c % norm.groups != 0)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "%lld channels in %lld groups",
                               (long long)c, (long long)norm.groups);
    norm.scale = group_weight(ctx, 1, c, norm.groups, 1.0);
    norm.shift = group_weight(ctx, 2, c, norm.groups, 0.0);
    int out = emit_norm(ctx, &norm, map);
    return shape.rank == 4 ? out : rfx_onnx_plain_as(ctx, out, &shape);
}

int rfx_onnx_instance_norm(struct rfx_onnx_import *ctx) {
    return norm_over_space(ctx, false);
}

int rfx_onnx_group_norm(struct rfx_onnx_import *ctx) {
    return norm_over_space(ctx, true);
}

/* Returns the node of `map kind input k`. Input k is a constant that is broadcast to the map, or is
 * absent. With one value per channel the node is an AFFINE, which is fused into the norm before it.
 */
static int combine_map(struct rfx_onnx_import *ctx, const char *suffix, size_t k,
                       enum rfx_binary_kind kind, int map) {
    struct rfx_onnx_const *c = rfx_onnx_in(ctx, k).constant;
    struct rfx_node affine = {.op = RFX_OP_AFFINE, .attr.affine = {-1, -1}};
    if (!rfx_onnx_has(ctx, k)) return map;
    if (c == NULL || c->shape.rank > 4)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "a computed scale or shift");
    struct rfx_shape four = rfx_onnx_rank_4(&c->shape);
    if (four.dims[1] == c->elems && four.dims[1] == rfx_onnx_tensor_of(ctx, map)->c) {
        int weight = rfx_onnx_const_weight(ctx, c);
        *(kind == RFX_BINARY_MUL ? &affine.attr.affine.scale : &affine.attr.affine.shift) = weight;
        return rfx_onnx_emit1(ctx, &affine, suffix, map);
    }
    c = rfx_onnx_const_view(ctx, c, &four);
    return rfx_onnx_binary_of(ctx, kind, suffix, map, rfx_onnx_map(ctx, rfx_onnx_of_const(c)));
}

/* LayerNormalization of a map over channels and space. */
static int layer_norm_of_map(struct rfx_onnx_import *ctx, int map, float eps) {
    struct space_norm norm = {.groups = 1, .eps = eps, .scale = -1, .shift = -1};
    int out = emit_norm(ctx, &norm, map);
    out = combine_map(ctx, "/scaled", 1, RFX_BINARY_MUL, out);
    return combine_map(ctx, "/shifted", 2, RFX_BINARY_ADD, out);
}

/* MeanVarianceNormalization: (x - mean) / (deviation + 1e-9). The 1e-9 matters only for a deviation
 * of 0. */
int rfx_onnx_mean_variance(struct rfx_onnx_import *ctx) {
    static const int64_t usual[3] = {0, 2, 3};
    const struct rfx_onnx_attr *given = rfx_onnx_attr_find(ctx, "axes");
    bool given_ints = given != NULL && given->kind == RFX_ONNX_ATTR_INTS;
    const int64_t *axes = given_ints ? given->ints : usual;
    size_t count = given_ints ? given->count : 3;
    bool over[4] = {false};
    int map = rfx_onnx_map(ctx, rfx_onnx_in(ctx, 0));
    for (size_t i = 0; i < count; i++) over[rfx_onnx_axis(ctx, axes[i], 4)] = true;
    if (!over[2] || !over[3])
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "axes that are not all of space");
    int64_t c = rfx_onnx_tensor_of(ctx, map)->c;
    struct space_norm norm = {.groups = over[1] ? 1 : c, .eps = 1e-18f, .scale = -1, .shift = -1};
    return emit_norm(ctx, &norm, map);
}

/* --- norms over channels, and of whole tensors --- */

/* Returns optional constant input k as a weight of one or c elements, or -1 when it is absent. */
static int channel_weight(struct rfx_onnx_import *ctx, size_t k, int64_t c) {
    struct rfx_onnx_const *constant = rfx_onnx_has(ctx, k) ? rfx_onnx_in_const(ctx, k) : NULL;
    if (constant == NULL) return -1;
    if (constant->elems != c && constant->elems != 1)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "input %zu has %lld of %lld values", k,
                               (long long)constant->elems, (long long)c);
    return rfx_onnx_const_weight(ctx, constant);
}

/* Returns the node of a map normalised over its channels. If `weights`, inputs 1 and 2 are scale
 * and shift. If `last`, the result has the order of ctx->order (rfx_onnx_ordered). */
static int channel_norm(struct rfx_onnx_import *ctx, enum rfx_channel_norm kind, float eps,
                        bool weights, int map, bool last) {
    struct rfx_node node = {.op = RFX_OP_CHANNEL_NORM};
    int64_t c = rfx_onnx_tensor_of(ctx, map)->c;
    node.attr.channel_norm.kind = kind;
    node.attr.channel_norm.eps = eps;
    node.attr.channel_norm.scale = weights ? channel_weight(ctx, 1, c) : -1;
    node.attr.channel_norm.shift = weights ? channel_weight(ctx, 2, c) : -1;
    return rfx_onnx_ordered(ctx, rfx_onnx_emit1(ctx, &node, "", map), last);
}

static int plain_reduce(struct rfx_onnx_import *ctx, const char *suffix, enum rfx_reduce_kind kind,
                        int from, int to, int in) {
    struct rfx_node node = {.op = RFX_OP_REDUCE};
    node.attr.reduce.kind = kind;
    node.attr.reduce.keep_dims = true;
    for (int i = from; i < to; i++) node.attr.reduce.axes[i] = true;
    return rfx_onnx_emit1(ctx, &node, suffix, in);
}

/* Returns the node of `in kind input k`, or `in` when input k is absent. */
static int plain_input(struct rfx_onnx_import *ctx, const char *suffix, enum rfx_binary_kind kind,
                       size_t k, int in) {
    if (!rfx_onnx_has(ctx, k)) return in;
    return rfx_onnx_binary_of(ctx, kind, suffix, in, rfx_onnx_plain(ctx, rfx_onnx_in(ctx, k)));
}

/* Returns the norm of a whole tensor over all axes from `axis` on: x minus its mean (only if
 * `centred`), divided by the root of its mean square, times input 1, plus input 2. If `statistics`,
 * binds outputs 1 and 2: the mean and the inverse of the root. */
static int plain_norm(struct rfx_onnx_import *ctx, int axis, bool centred, float eps,
                      bool statistics) {
    int in = rfx_onnx_plain(ctx, rfx_onnx_in(ctx, 0)), out = in;
    int rank = rfx_onnx_tensor_of(ctx, in)->shape.rank;
    if (centred) {
        int mean = plain_reduce(ctx, "/mean", RFX_REDUCE_MEAN, axis, rank, in);
        out = rfx_onnx_binary_of(ctx, RFX_BINARY_SUB, "/centred", in, mean);
        (void)rfx_onnx_set(ctx, 1, rfx_onnx_of(mean));
    }
    int root = rfx_onnx_binary_of(ctx, RFX_BINARY_MUL, "/squares", out, out);
    root = plain_reduce(ctx, "/mean_square", RFX_REDUCE_MEAN, axis, rank, root);
    root = rfx_onnx_scale_shift(ctx, "/variance", root, 1.0f, eps);
    root = rfx_onnx_apply(ctx, "/deviation", root, RFX_ACT_SQRT);
    if (statistics)
        (void)rfx_onnx_set(ctx, 2,
                           rfx_onnx_of(rfx_onnx_apply(ctx, "/inverse", root, RFX_ACT_RECIPROCAL)));
    out = rfx_onnx_binary_of(ctx, RFX_BINARY_DIV, "/normalised", out, root);
    out = plain_input(ctx, "/scaled", RFX_BINARY_MUL, 1, out);
    return plain_input(ctx, "/shifted", RFX_BINARY_ADD, 2, out);
}

/* LayerNormalization and RMSNormalization. */
static int norm_from_axis(struct rfx_onnx_import *ctx, enum rfx_channel_norm kind) {
    bool last, layer = kind == RFX_NORM_LAYER, statistics = false;
    float eps = rfx_onnx_attr_float(ctx, "epsilon", 1e-5f);
    int in = rfx_onnx_any(ctx, rfx_onnx_in(ctx, 0));
    int axis = rfx_onnx_axis_attr(ctx, -1, rfx_onnx_tensor_of(ctx, in)->shape.rank);
    for (size_t k = 1; k < ctx->node->n_out; k++) statistics = statistics || rfx_onnx_gives(ctx, k);
    if (statistics) return plain_norm(ctx, axis, layer, eps, true);
    int map = rfx_onnx_map_of_channels(ctx, in, axis, &last);
    if (map >= 0 && last) return channel_norm(ctx, kind, eps, true, map, true);
    if (rfx_onnx_is_map(ctx, in) && axis == 1 && layer) return layer_norm_of_map(ctx, in, eps);
    return plain_norm(ctx, axis, layer, eps, false);
}

int rfx_onnx_layer_norm(struct rfx_onnx_import *ctx) {
    return norm_from_axis(ctx, RFX_NORM_LAYER);
}

int rfx_onnx_rms_norm(struct rfx_onnx_import *ctx) {
    return norm_from_axis(ctx, RFX_NORM_RMS);
}

/* LpNormalization: x / norm, where 0 / 0 is 0. */
int rfx_onnx_lp_norm(struct rfx_onnx_import *ctx) {
    int64_t p = rfx_onnx_attr_int(ctx, "p", 2);
    bool last;
    if (p != 1 && p != 2)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "p = %lld, not 1 or 2", (long long)p);
    int in = rfx_onnx_any(ctx, rfx_onnx_in(ctx, 0));
    int axis = rfx_onnx_axis_attr(ctx, -1, rfx_onnx_tensor_of(ctx, in)->shape.rank);
    int map = rfx_onnx_map_of_channels(ctx, in, axis, &last);
    if (map >= 0)
        return channel_norm(ctx, p == 1 ? RFX_NORM_L1 : RFX_NORM_L2, 0.0f, false, map, last);
    in = rfx_onnx_plain(ctx, rfx_onnx_of(in));
    int norm =
        plain_reduce(ctx, "/norm", p == 1 ? RFX_REDUCE_L1 : RFX_REDUCE_L2, axis, axis + 1, in);
    norm = rfx_onnx_act(ctx, "/divisor", norm, RFX_ACT_CLIP, FLT_MIN, HUGE_VALF);
    return rfx_onnx_binary_of(ctx, RFX_BINARY_DIV, "", in, norm);
}

int rfx_onnx_softmax(struct rfx_onnx_import *ctx) {
    const struct rfx_softmax_steps none = {0.0f, 0.0f};
    return rfx_onnx_softmax_of(ctx, "", rfx_onnx_any(ctx, rfx_onnx_in(ctx, 0)), ctx->opset < 13,
                               none);
}

int rfx_onnx_softmax_of(struct rfx_onnx_import *ctx, const char *suffix, int in, bool old,
                        struct rfx_softmax_steps steps) {
    bool last;
    const struct rfx_shape shape = rfx_onnx_tensor_of(ctx, in)->shape;
    int axis = rfx_onnx_axis_attr(ctx, old ? 1 : -1, shape.rank);
    struct rfx_node node = {.op = RFX_OP_PLAIN_SOFTMAX};
    node.attr.softmax.logarithm = rfx_onnx_op_is(ctx, "LogSoftmax");
    node.attr.softmax.steps = steps;
    bool one_axis = !old || rfx_shape_product(&shape, axis + 1, shape.rank) == 1;
    int map = one_axis ? rfx_onnx_map_of_channels(ctx, in, axis, &last) : -1;
    if (map >= 0) {
        node.op = RFX_OP_SOFTMAX;
        return rfx_onnx_ordered(ctx, rfx_onnx_emit1(ctx, &node, suffix, map), last);
    }
    in = rfx_onnx_plain(ctx, rfx_onnx_of(in));
    node.attr.softmax.axis = one_axis ? axis : 1;
    if (one_axis) return rfx_onnx_emit1(ctx, &node, suffix, in);
    struct rfx_shape two = {
        2, {rfx_shape_product(&shape, 0, axis), rfx_shape_product(&shape, axis, shape.rank)}};
    int out = rfx_onnx_emit1(ctx, &node, suffix, rfx_onnx_reshape(ctx, in, &two));
    return rfx_onnx_reshape(ctx, out, &shape);
}
