/* Conversion of norms by statistics over space: instance, group and layer norms, and mean-variance
 * normalisation. Each becomes MOMENTS of a map and NORMALISE by them. */
#include <string.h>

#include "rfexec/onnx/import/onnx_import.h"

/* As many groups as share statistics; scale and shift: weight indices or -1. */
struct space_norm {
    int64_t groups;
    float eps;
    int scale, shift;
};

static enum rfx_status emit_norm(struct rfx_onnx_import *ctx, const struct space_norm *norm,
                                 int map, int *out) {
    struct rfx_node moments = {.op = RFX_OP_MOMENTS};
    struct rfx_node normalise = {.op = RFX_OP_NORMALISE};
    int in[2] = {map, -1};
    moments.attr.moments.groups = norm->groups;
    moments.attr.moments.eps = norm->eps;
    normalise.attr.affine.scale = norm->scale;
    normalise.attr.affine.shift = norm->shift;
    enum rfx_status status = rfx_onnx_emit(ctx, &moments, "/moments", &map, 1, &in[1]);
    return status == RFX_OK ? rfx_onnx_emit(ctx, &normalise, "", in, 2, out) : status;
}

/* Optional constant input k of one value per channel or group as a weight of c elements; values
 * that are all `neutral` are left out. */
static enum rfx_status group_weight(struct rfx_onnx_import *ctx, size_t k, int64_t c,
                                    int64_t groups, double neutral, int *out) {
    struct rfx_onnx_const *constant;
    const double *v;
    bool all_neutral = true;
    *out = -1;
    if (!rfx_onnx_has(ctx, k)) return RFX_OK;
    enum rfx_status status = rfx_onnx_in_const(ctx, k, &constant);
    if (status != RFX_OK) return status;
    int64_t n = constant->elems;
    if (n != c && n != groups)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED,
                               "input %zu has %lld values for %lld channels in %lld groups", k,
                               (long long)n, (long long)c, (long long)groups);
    status = rfx_onnx_const_reals(ctx, constant, &v);
    for (int64_t i = 0; status == RFX_OK && i < n; i++)
        all_neutral = all_neutral && v[i] == neutral;
    if (status != RFX_OK || all_neutral) return status;
    status = rfx_onnx_own_weight(ctx, NULL, c, out);
    if (status != RFX_OK) return status;
    float *values = rfx_graph_owned_weight(ctx->graph, *out);
    for (int64_t i = 0; i < c; i++) values[i] = (float)v[i / (c / n)];
    return RFX_OK;
}

/* Inputs 1 and 2 as scale and shift. */
static enum rfx_status group_weights(struct rfx_onnx_import *ctx, int64_t c,
                                     struct space_norm *norm) {
    if (norm->groups < 1 || c % norm->groups != 0)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "%lld channels in %lld groups",
                               (long long)c, (long long)norm->groups);
    enum rfx_status status = group_weight(ctx, 1, c, norm->groups, 1.0, &norm->scale);
    return status == RFX_OK ? group_weight(ctx, 2, c, norm->groups, 0.0, &norm->shift) : status;
}

/* A map of c channels of which `shape`, of rank 3 and up, is (1, groups, the rest): how exporters
 * write group norms. -1: the tensor is no reshaped map. */
static int grouped_map(const struct rfx_onnx_import *ctx, int node) {
    const struct rfx_node *reshape = &ctx->graph->nodes[node];
    if (reshape->op != RFX_OP_RESHAPE) return -1;
    int map = ctx->map_of[reshape->in[0]];
    if (map < 0 || reshape->out.shape.dims[0] != 1) return -1;
    return ctx->graph->nodes[map].out.c % reshape->out.shape.dims[1] == 0 ? map : -1;
}

/* The tensor as a map whose channels, in `groups` runs, are what is normalised together. */
static enum rfx_status map_of_groups(struct rfx_onnx_import *ctx, struct rfx_onnx_operand x,
                                     int64_t *groups, int *map) {
    struct rfx_shape shape = *rfx_onnx_shape(ctx, x);
    if (shape.rank < 3)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "an operand of rank %d", shape.rank);
    *groups = shape.dims[1];
    if (shape.rank == 4) return rfx_onnx_map(ctx, x, map);
    *map = grouped_map(ctx, x.node);
    if (*map >= 0) return RFX_OK;
    struct rfx_shape four = {
        4, {shape.dims[0], shape.dims[1], 1, rfx_onnx_product(&shape, 2, shape.rank)}};
    enum rfx_status status = rfx_onnx_plain(ctx, x, &x.node);
    if (status == RFX_OK) status = rfx_onnx_reshape(ctx, x.node, &four, &x.node);
    return status == RFX_OK ? rfx_onnx_map(ctx, x, map) : status;
}

/* Binds output 0 to a map under the shape of input 0. */
static enum rfx_status finish_as_input(struct rfx_onnx_import *ctx, const struct rfx_shape *shape,
                                       int map) {
    struct rfx_onnx_operand made = {map, NULL};
    if (shape->rank == 4) return rfx_onnx_set(ctx, 0, made);
    enum rfx_status status = rfx_onnx_plain(ctx, made, &made.node);
    if (status == RFX_OK) status = rfx_onnx_reshape(ctx, made.node, shape, &made.node);
    return status == RFX_OK ? rfx_onnx_set(ctx, 0, made) : status;
}

static enum rfx_status need_computed(struct rfx_onnx_import *ctx) {
    return rfx_onnx_in(ctx, 0).node >= 0
               ? RFX_OK
               : rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "a constant input");
}

enum rfx_status rfx_onnx_instance_norm(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_operand x = rfx_onnx_in(ctx, 0);
    struct space_norm norm = {.eps = rfx_onnx_attr_float(ctx, "epsilon", 1e-5f)};
    int map = -1, out = -1;
    enum rfx_status status = need_computed(ctx);
    if (status != RFX_OK) return status;
    struct rfx_shape shape = *rfx_onnx_shape(ctx, x);
    status = map_of_groups(ctx, x, &norm.groups, &map);
    if (status == RFX_OK) status = group_weights(ctx, rfx_onnx_tensor_of(ctx, map)->c, &norm);
    if (status == RFX_OK) status = emit_norm(ctx, &norm, map, &out);
    return status == RFX_OK ? finish_as_input(ctx, &shape, out) : status;
}

enum rfx_status rfx_onnx_group_norm(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_operand x = rfx_onnx_in(ctx, 0);
    struct space_norm norm = {.eps = rfx_onnx_attr_float(ctx, "epsilon", 1e-5f)};
    int64_t channels;
    int map = -1, out = -1;
    enum rfx_status status = need_computed(ctx);
    if (status != RFX_OK) return status;
    struct rfx_shape shape = *rfx_onnx_shape(ctx, x);
    status = map_of_groups(ctx, x, &channels, &map);
    norm.groups = rfx_onnx_attr_int(ctx, "num_groups", 0);
    if (status == RFX_OK) status = group_weights(ctx, channels, &norm);
    if (status == RFX_OK) status = emit_norm(ctx, &norm, map, &out);
    return status == RFX_OK ? finish_as_input(ctx, &shape, out) : status;
}

/* One value per channel: an AFFINE, which the norm before it takes in. */
static enum rfx_status combine_channels(struct rfx_onnx_import *ctx, const char *suffix,
                                        struct rfx_onnx_const *constant, enum rfx_binary_kind kind,
                                        int *map) {
    struct rfx_node node = {.op = RFX_OP_AFFINE, .attr.affine = {-1, -1}};
    int *weight = kind == RFX_BINARY_MUL ? &node.attr.affine.scale : &node.attr.affine.shift;
    enum rfx_status status = rfx_onnx_const_weight(ctx, constant, weight);
    int in = *map;
    return status == RFX_OK ? rfx_onnx_emit(ctx, &node, suffix, &in, 1, map) : status;
}

/* Constant input k, of the map's shape or broadcast to it, as the second operand. */
static enum rfx_status combine_map(struct rfx_onnx_import *ctx, const char *suffix, size_t k,
                                   enum rfx_binary_kind kind, int *map) {
    struct rfx_onnx_operand operand = rfx_onnx_in(ctx, k);
    struct rfx_node node = {.op = RFX_OP_BINARY, .attr.binary = {kind}};
    struct rfx_shape four = {4, {1, 1, 1, 1}};
    int in[2] = {*map, -1};
    if (!rfx_onnx_has(ctx, k)) return RFX_OK;
    if (operand.constant == NULL || operand.constant->shape.rank > 4)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "a computed scale or shift");
    struct rfx_shape own = operand.constant->shape;
    for (int i = 0; i < own.rank; i++) four.dims[4 - own.rank + i] = own.dims[i];
    if (four.dims[1] == operand.constant->elems && four.dims[1] == rfx_onnx_tensor_of(ctx, *map)->c)
        return combine_channels(ctx, suffix, operand.constant, kind, map);
    operand.constant = rfx_onnx_const_view(ctx, operand.constant, &four);
    if (operand.constant == NULL)
        return rfx_onnx_refuse(ctx, RFX_STATUS_OUT_OF_MEMORY, "no memory for a constant");
    enum rfx_status status = rfx_onnx_map(ctx, operand, &in[1]);
    return status == RFX_OK ? rfx_onnx_emit(ctx, &node, suffix, in, 2, map) : status;
}

enum rfx_status rfx_onnx_layer_norm_of_map(struct rfx_onnx_import *ctx, int map, float eps) {
    struct space_norm norm = {.groups = 1, .eps = eps, .scale = -1, .shift = -1};
    int out = -1;
    enum rfx_status status = emit_norm(ctx, &norm, map, &out);
    if (status == RFX_OK) status = combine_map(ctx, "/scaled", 1, RFX_BINARY_MUL, &out);
    if (status == RFX_OK) status = combine_map(ctx, "/shifted", 2, RFX_BINARY_ADD, &out);
    return status == RFX_OK ? rfx_onnx_set_node(ctx, out) : status;
}

/* (x - mean) / (deviation + 1e-9), of which the addition matters where the deviation is 0. */
enum rfx_status rfx_onnx_mean_variance(struct rfx_onnx_import *ctx) {
    static const int64_t usual[3] = {0, 2, 3};
    const struct rfx_onnx_attr *given = rfx_onnx_attr_find(ctx, "axes");
    bool given_ints = given != NULL && given->kind == RFX_ONNX_ATTR_INTS;
    const int64_t *axes = given_ints ? given->ints : usual;
    size_t count = given_ints ? given->count : 3;
    bool over[4] = {false};
    int map, out = -1;
    enum rfx_status status = rfx_onnx_map(ctx, rfx_onnx_in(ctx, 0), &map);
    for (size_t i = 0; status == RFX_OK && i < count; i++) {
        int axis = 0;
        status = rfx_onnx_axis(ctx, axes[i], 4, &axis);
        if (status == RFX_OK) over[axis] = true;
    }
    if (status != RFX_OK) return status;
    if (!over[2] || !over[3])
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "axes that are not all of space");
    int64_t c = rfx_onnx_tensor_of(ctx, map)->c;
    struct space_norm norm = {.groups = over[1] ? 1 : c, .eps = 1e-18f, .scale = -1, .shift = -1};
    status = emit_norm(ctx, &norm, map, &out);
    return status == RFX_OK ? rfx_onnx_set_node(ctx, out) : status;
}
