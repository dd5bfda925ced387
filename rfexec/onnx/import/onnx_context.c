/* Operands, results and layouts of the node being converted. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "rfexec/onnx/import/fold/onnx_repeat.h"
#include "rfexec/onnx/import/onnx_import.h"

enum rfx_status rfx_onnx_refuse(struct rfx_onnx_import *ctx, enum rfx_status status,
                                const char *format, ...) {
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return rfx_fail(ctx->err, status, "%.60s '%.80s' (opset %lld): %s", ctx->node->op,
                    ctx->node_name, (long long)ctx->opset, text);
}

static enum rfx_status no_memory(struct rfx_onnx_import *ctx) {
    return rfx_onnx_refuse(ctx, RFX_STATUS_OUT_OF_MEMORY, "no memory for the conversion");
}

struct rfx_onnx_operand rfx_onnx_in_as_named(const struct rfx_onnx_import *ctx, size_t k) {
    struct rfx_onnx_operand none = {-1, NULL};
    if (k >= ctx->node->n_in || ctx->node->in[k][0] == '\0') return none;
    const struct rfx_onnx_operand *found = rfx_onnx_names_find(ctx->values, ctx->node->in[k]);
    return found == NULL ? none : *found;
}

struct rfx_onnx_operand rfx_onnx_in(const struct rfx_onnx_import *ctx, size_t k) {
    struct rfx_onnx_operand x = rfx_onnx_in_as_named(ctx, k);
    if (!ctx->is_of_constants || x.constant == NULL) return x;
    struct rfx_onnx_operand first = {ctx->first, NULL}, computed = {x.constant->computed_by, NULL};
    if (k == 0 && first.node >= 0) return first;
    return computed.node >= 0 ? computed : x;
}

bool rfx_onnx_has(const struct rfx_onnx_import *ctx, size_t k) {
    return k < ctx->node->n_in && ctx->node->in[k][0] != '\0';
}

const struct rfx_shape *rfx_onnx_shape(const struct rfx_onnx_import *ctx,
                                       struct rfx_onnx_operand value) {
    return value.constant != NULL ? &value.constant->shape
                                  : &ctx->graph->nodes[value.node].out.shape;
}

enum rfx_status rfx_onnx_set(struct rfx_onnx_import *ctx, size_t k, struct rfx_onnx_operand value) {
    if (k >= ctx->node->n_out || ctx->node->out[k][0] == '\0') return RFX_OK;
    int32_t type = value.constant != NULL ? value.constant->type : rfx_onnx_result_type(ctx, k);
    enum rfx_status status = value.node >= 0 ? rfx_onnx_keep_type(ctx, type, &value.node) : RFX_OK;
    return status == RFX_OK ? rfx_onnx_bind_as(ctx, k, value, type) : status;
}

enum rfx_status rfx_onnx_bind_as(struct rfx_onnx_import *ctx, size_t k,
                                 struct rfx_onnx_operand value, int32_t type) {
    if (k >= ctx->node->n_out || ctx->node->out[k][0] == '\0') return RFX_OK;
    const char *name = ctx->node->out[k];
    if (value.constant == NULL && value.node < 0) return no_memory(ctx);
    if (rfx_onnx_names_find(ctx->values, name) != NULL)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "tensor '%.80s' is made twice", name);
    if (!rfx_onnx_names_put(ctx->values, name, value)) return no_memory(ctx);
    rfx_onnx_names_set_type(ctx->values, name, type);
    return RFX_OK;
}

enum rfx_status rfx_onnx_set_node(struct rfx_onnx_import *ctx, int node) {
    struct rfx_onnx_operand value = {node, NULL};
    return rfx_onnx_set(ctx, 0, value);
}

/* The node's name plus suffix, with a number behind it when it is taken. */
static const char *unique_name(struct rfx_onnx_import *ctx, const char *suffix) {
    size_t room = strlen(ctx->node_name) + strlen(suffix) + 32;
    char *name = rfx_arena_alloc(ctx->arena, room, 1);
    if (name == NULL) return NULL;
    snprintf(name, room, "%s%s", ctx->node_name, suffix);
    /* Counting from the node's index finds a free name at once, whatever the file holds. */
    for (unsigned i = (unsigned)ctx->graph->n_nodes; rfx_onnx_names_find(ctx->used, name) != NULL;
         i++)
        snprintf(name, room, "%s%s#%u", ctx->node_name, suffix, i);
    struct rfx_onnx_operand none = {-1, NULL};
    return rfx_onnx_names_put(ctx->used, name, none) ? name : NULL;
}

/* Room in the tables of layout forms for graph node `node`. */
static bool reserve_forms(struct rfx_onnx_import *ctx, size_t node) {
    if (node < ctx->form_capacity) return true;
    size_t next = ctx->form_capacity == 0 ? 256 : ctx->form_capacity * 2;
    int *plain = rfx_arena_alloc(ctx->arena, next, sizeof *plain);
    int *map = rfx_arena_alloc(ctx->arena, next, sizeof *map);
    if (plain == NULL || map == NULL) return false;
    for (size_t i = 0; i < next; i++) {
        plain[i] = i < ctx->form_capacity ? ctx->plain_of[i] : -1;
        map[i] = i < ctx->form_capacity ? ctx->map_of[i] : -1;
    }
    ctx->plain_of = plain;
    ctx->map_of = map;
    ctx->form_capacity = next;
    return true;
}

enum rfx_status rfx_onnx_emit(struct rfx_onnx_import *ctx, struct rfx_node *node,
                              const char *suffix, const int *in, int n_in, int *out) {
    node->name = unique_name(ctx, suffix);
    if (node->name == NULL || !reserve_forms(ctx, (size_t)ctx->graph->n_nodes))
        return no_memory(ctx);
    node->in = in;
    node->n_in = n_in;
    enum rfx_status status = rfx_graph_add(ctx->graph, node, out, ctx->err);
    if (status == RFX_OK) return RFX_OK;
    return rfx_fail_within(ctx->err, status, "%.60s '%.80s' (opset %lld)", ctx->node->op,
                           ctx->node_name, (long long)ctx->opset);
}

static enum rfx_status const_node(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c, bool map,
                                  int *out) {
    struct rfx_onnx_const_place *place = rfx_onnx_const_place(ctx, c);
    int *cached = map ? &place->map_node : &place->plain_node;
    if (*cached < 0 && c->repeat != NULL) { /* made anew for each reader */
        enum rfx_status status =
            map ? rfx_onnx_repeat_map(ctx, c, NULL, out) : rfx_onnx_repeat_plain(ctx, c, out);
        if (status != RFX_OK || *out >= 0) return status;
    }
    if (*cached < 0 && c->computed_by >= 0) {
        enum rfx_status status = rfx_onnx_computed_node(ctx, c, map, cached);
        if (status != RFX_OK) return status;
    }
    if (*cached < 0) {
        struct rfx_node node = {.op = map ? RFX_OP_CONST_MAP : RFX_OP_CONST_PLAIN};
        enum rfx_status status = rfx_onnx_const_weight(ctx, c, &node.attr.constant.weight);
        if (status != RFX_OK) return status;
        node.attr.constant.shape = c->shape;
        status = rfx_onnx_emit(ctx, &node, "/constant", NULL, 0, cached);
        if (status != RFX_OK) return status;
    }
    *out = *cached;
    return RFX_OK;
}

static enum rfx_status not_a_map(struct rfx_onnx_import *ctx, const struct rfx_shape *shape) {
    if (shape->rank != 4)
        return rfx_onnx_refuse(
            ctx, RFX_STATUS_UNSUPPORTED,
            "an operand of rank %d; only feature maps (1, c, h, w) are supported", shape->rank);
    return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                           "an operand with a batch of %lld; only 1 is supported",
                           (long long)shape->dims[0]);
}

int rfx_onnx_map_itself(const struct rfx_onnx_import *ctx, int node) {
    struct rfx_pixels p;
    return rfx_pixels_of(ctx->graph, node, &p) && rfx_pixels_is_nchw(&p) ? p.map : node;
}

/* A PLAIN (1, 1, h, w) tensor needs no other order than the one it has; others are converted. */
enum rfx_status rfx_onnx_map(struct rfx_onnx_import *ctx, struct rfx_onnx_operand value, int *out) {
    if (value.constant == NULL && value.node < 0)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "an input is missing");
    const struct rfx_shape *shape = rfx_onnx_shape(ctx, value);
    if (value.node >= 0 && rfx_onnx_tensor_of(ctx, value.node)->layout == RFX_LAYOUT_NHWC) {
        *out = value.node;
        return RFX_OK;
    }
    if (shape->rank != 4 || shape->dims[0] != 1) return not_a_map(ctx, shape);
    if (value.constant != NULL) return const_node(ctx, value.constant, true, out);
    *out = rfx_onnx_map_itself(ctx, value.node);
    if (*out != value.node) return RFX_OK;
    if (ctx->map_of[value.node] < 0) {
        struct rfx_node node = {.op = RFX_OP_TO_NHWC};
        int made;
        enum rfx_status status = rfx_onnx_emit(ctx, &node, "/to_map", &value.node, 1, &made);
        if (status != RFX_OK) return status;
        ctx->map_of[value.node] = made;
        ctx->plain_of[made] = value.node;
    }
    *out = ctx->map_of[value.node];
    return RFX_OK;
}

enum rfx_status rfx_onnx_plain(struct rfx_onnx_import *ctx, struct rfx_onnx_operand value,
                               int *out) {
    if (value.constant != NULL) return const_node(ctx, value.constant, false, out);
    if (value.node < 0) return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "an input is missing");
    if (rfx_onnx_tensor_of(ctx, value.node)->layout == RFX_LAYOUT_PLAIN) {
        *out = value.node;
        return RFX_OK;
    }
    if (ctx->plain_of[value.node] < 0) {
        struct rfx_node node = {.op = RFX_OP_TO_PLAIN};
        int made;
        enum rfx_status status = rfx_onnx_emit(ctx, &node, "/to_plain", &value.node, 1, &made);
        if (status != RFX_OK) return status;
        ctx->plain_of[value.node] = made;
        ctx->map_of[made] = value.node;
    }
    *out = ctx->plain_of[value.node];
    return RFX_OK;
}

enum rfx_status rfx_onnx_any(struct rfx_onnx_import *ctx, struct rfx_onnx_operand value, int *out) {
    if (value.constant != NULL || value.node < 0) return rfx_onnx_plain(ctx, value, out);
    *out = value.node;
    return RFX_OK;
}

int rfx_onnx_map_behind(struct rfx_onnx_import *ctx, int node) {
    struct rfx_pixels p;
    ctx->order = -1;
    return rfx_pixels_of(ctx->graph, node, &p) && rfx_pixels_is_nhwc(&p) ? p.map : -1;
}

int rfx_onnx_tokens_behind(struct rfx_onnx_import *ctx, int node) {
    struct rfx_pixels p;
    int map = rfx_onnx_map_behind(ctx, node);
    if (map >= 0 || !rfx_pixels_of(ctx->graph, node, &p) || !rfx_pixels_are_tokens(&p)) return map;
    ctx->order = node;
    return p.map;
}

int rfx_onnx_elements_behind(struct rfx_onnx_import *ctx, int node) {
    struct rfx_pixels p;
    int map = rfx_onnx_tokens_behind(ctx, node);
    if (map >= 0 || !rfx_pixels_of(ctx->graph, node, &p) || !rfx_pixels_are_in_order(&p, false))
        return map;
    const struct rfx_shape *shape = &rfx_onnx_tensor_of(ctx, node)->shape;
    if (!rfx_shape_is_of_map(shape, rfx_onnx_tensor_of(ctx, p.map), false)) return -1;
    ctx->order = node;
    return p.map;
}

bool rfx_onnx_same_order(const struct rfx_onnx_import *ctx, int a, int b) {
    struct rfx_pixels of_a, of_b;
    return rfx_pixels_of(ctx->graph, a, &of_a) && rfx_pixels_of(ctx->graph, b, &of_b) &&
           rfx_pixels_same_order(&of_a, &of_b);
}

/* A map in its own order under the shape that is described. */
static enum rfx_status emit_in_order(struct rfx_onnx_import *ctx, const struct rfx_pixels *p,
                                     int *out) {
    struct rfx_onnx_operand map = {p->map, NULL};
    struct rfx_shape shape = rfx_pixels_shape(p);
    enum rfx_status status = rfx_onnx_plain(ctx, map, out);
    return status == RFX_OK ? rfx_onnx_reshape(ctx, *out, &shape, out) : status;
}

enum rfx_status rfx_onnx_channels_last(struct rfx_onnx_import *ctx, int map, int *out) {
    struct rfx_node node = {.op = RFX_OP_NHWC_AS_PLAIN};
    struct rfx_pixels order;
    if (ctx->order < 0 || !rfx_pixels_of(ctx->graph, ctx->order, &order))
        return rfx_onnx_emit(ctx, &node, "/channels_last", &map, 1, out);
    order = rfx_pixels_of_map(&order, map, rfx_onnx_tensor_of(ctx, map)->c);
    if (rfx_pixels_are_in_order(&order, false)) return emit_in_order(ctx, &order, out);
    return rfx_onnx_emit_pixels(ctx, &order, out);
}

enum rfx_status rfx_onnx_elements(struct rfx_onnx_import *ctx, int *out, bool *last) {
    enum rfx_status status = rfx_onnx_any(ctx, rfx_onnx_in(ctx, 0), out);
    int behind = status == RFX_OK ? rfx_onnx_elements_behind(ctx, *out) : -1;
    *last = behind >= 0;
    if (*last) *out = behind;
    return status;
}

enum rfx_status rfx_onnx_set_as(struct rfx_onnx_import *ctx, int node, bool last) {
    enum rfx_status status = last ? rfx_onnx_channels_last(ctx, node, &node) : RFX_OK;
    return status == RFX_OK ? rfx_onnx_set_node(ctx, node) : status;
}

static bool same_shape(const struct rfx_shape *a, const struct rfx_shape *b) {
    if (a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i]) return false;
    return true;
}

enum rfx_status rfx_onnx_reshape(struct rfx_onnx_import *ctx, int plain,
                                 const struct rfx_shape *shape, int *out) {
    if (same_shape(shape, &rfx_onnx_tensor_of(ctx, plain)->shape)) {
        *out = plain;
        return RFX_OK;
    }
    struct rfx_node node = {.op = RFX_OP_RESHAPE};
    node.attr.reshape.shape = *shape;
    return rfx_onnx_emit(ctx, &node, "/reshape", &plain, 1, out);
}

enum rfx_status rfx_onnx_act(struct rfx_onnx_import *ctx, const char *suffix, int in,
                             enum rfx_act_kind kind, float alpha, float beta, int *out) {
    struct rfx_node node = {.op = RFX_OP_ACTIVATION, .act = {kind, alpha, beta, -1}};
    return rfx_onnx_emit(ctx, &node, suffix, &in, 1, out);
}

/* One step `in OP number` on a PLAIN tensor. */
static enum rfx_status plain_number(struct rfx_onnx_import *ctx, const char *suffix, int in,
                                    enum rfx_binary_kind kind, float number, int *out) {
    struct rfx_shape shape = {1, {1}};
    struct rfx_node constant = {.op = RFX_OP_CONST_PLAIN};
    constant.attr.constant.shape = shape;
    int operands[2] = {in, -1};
    enum rfx_status status = rfx_onnx_own_weight(ctx, &number, 1, &constant.attr.constant.weight);
    if (status == RFX_OK) status = rfx_onnx_emit(ctx, &constant, "/number", NULL, 0, &operands[1]);
    if (status != RFX_OK) return status;
    struct rfx_node node = {.op = RFX_OP_PLAIN_BINARY};
    node.attr.binary.kind = kind;
    return rfx_onnx_emit(ctx, &node, suffix, operands, 2, out);
}

enum rfx_status rfx_onnx_scale_shift(struct rfx_onnx_import *ctx, const char *suffix, int in,
                                     float scale, float shift, int *out) {
    enum rfx_status status = RFX_OK;
    if (rfx_onnx_tensor_of(ctx, in)->layout == RFX_LAYOUT_PLAIN) {
        int at = in;
        if (scale != 1.0f) status = plain_number(ctx, "/scaled", at, RFX_BINARY_MUL, scale, &at);
        if (status == RFX_OK && shift != 0.0f)
            status = plain_number(ctx, suffix, at, RFX_BINARY_ADD, shift, &at);
        if (status == RFX_OK) *out = at;
        return status;
    }
    struct rfx_node node = {.op = RFX_OP_AFFINE, .attr.affine = {-1, -1}};
    status = rfx_onnx_own_weight(ctx, &scale, 1, &node.attr.affine.scale);
    if (status == RFX_OK && shift != 0.0f)
        status = rfx_onnx_own_weight(ctx, &shift, 1, &node.attr.affine.shift);
    return status == RFX_OK ? rfx_onnx_emit(ctx, &node, suffix, &in, 1, out) : status;
}

enum rfx_status rfx_onnx_axis(struct rfx_onnx_import *ctx, int64_t axis, int rank, int *out) {
    if (axis < -rank || axis >= rank)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "axis %lld of a tensor of rank %d",
                               (long long)axis, rank);
    *out = (int)(axis < 0 ? axis + rank : axis);
    return RFX_OK;
}
