/* Operands, results and layouts of the node that is being converted, and the table of named values.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "rfexec/onnx/import/onnx_import.h"
#include "rfexec/onnx/import/onnx_repeat.h"

int rfx_onnx_refuse(struct rfx_onnx_import *ctx, enum rfx_status status, const char *format, ...) {
    char text[400];
    va_list args;
    if (rfx_onnx_failed(ctx)) return -1;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    ctx->status = rfx_fail(ctx->err, status, "%.60s '%.80s' (opset %lld): %s", ctx->node->op,
                           ctx->node_name, (long long)ctx->opset, text);
    return -1;
}

int rfx_onnx_out_of_memory(struct rfx_onnx_import *ctx) {
    if (ctx->node != NULL)
        return rfx_onnx_refuse(ctx, RFX_STATUS_OUT_OF_MEMORY, "no memory for the conversion");
    if (!rfx_onnx_failed(ctx))
        ctx->status =
            rfx_fail(ctx->err, RFX_STATUS_OUT_OF_MEMORY, "onnx: no memory for the conversion");
    return -1;
}

void *rfx_onnx_alloc(struct rfx_onnx_import *ctx, size_t count, size_t size) {
    if (rfx_onnx_failed(ctx)) return NULL;
    void *block = rfx_arena_alloc(ctx->arena, count, size);
    if (block == NULL) (void)rfx_onnx_out_of_memory(ctx);
    return block;
}

bool rfx_onnx_op_is(const struct rfx_onnx_import *ctx, const char *op) {
    return strcmp(ctx->node->op, op) == 0;
}

bool rfx_onnx_op_is_one_of(const struct rfx_onnx_import *ctx, const char *const *ops) {
    for (; *ops != NULL; ops++)
        if (rfx_onnx_op_is(ctx, *ops)) return true;
    return false;
}

int rfx_onnx_index_of(const char *text, const char *const *texts, int count) {
    for (int i = 0; i < count; i++)
        if (strcmp(text, texts[i]) == 0) return i;
    return -1;
}

/* --- operands --- */

struct rfx_onnx_operand rfx_onnx_in_as_named(const struct rfx_onnx_import *ctx, size_t k) {
    if (!rfx_onnx_has(ctx, k)) return rfx_onnx_of(-1);
    const struct rfx_onnx_operand *found = rfx_onnx_names_find(ctx->values, ctx->node->in[k]);
    return found == NULL ? rfx_onnx_of(-1) : *found;
}

struct rfx_onnx_operand rfx_onnx_in(const struct rfx_onnx_import *ctx, size_t k) {
    struct rfx_onnx_operand x = rfx_onnx_in_as_named(ctx, k);
    if (!ctx->is_of_constants || x.constant == NULL) return x;
    if (k == 0 && ctx->first >= 0) return rfx_onnx_of(ctx->first);
    return x.constant->computed_by >= 0 ? rfx_onnx_of(x.constant->computed_by) : x;
}

struct rfx_onnx_operand rfx_onnx_need(struct rfx_onnx_import *ctx, size_t k) {
    struct rfx_onnx_operand x = rfx_onnx_in(ctx, k);
    if (!rfx_onnx_is_there(x))
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "input %zu is missing", k);
    return x;
}

struct rfx_onnx_operand rfx_onnx_need_computed(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_operand x = rfx_onnx_need(ctx, 0);
    if (x.node < 0) (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "a constant input");
    return x;
}

bool rfx_onnx_has(const struct rfx_onnx_import *ctx, size_t k) {
    return k < ctx->node->n_in && ctx->node->in[k][0] != '\0';
}

bool rfx_onnx_gives(const struct rfx_onnx_import *ctx, size_t k) {
    return k < ctx->node->n_out && ctx->node->out[k][0] != '\0';
}

const struct rfx_tensor *rfx_onnx_tensor_of(const struct rfx_onnx_import *ctx, int node) {
    static const struct rfx_tensor one = {.layout = RFX_LAYOUT_PLAIN,
                                          .shape = {4, {1, 1, 1, 1, 1, 1, 1, 1}},
                                          .elems = 1,
                                          .h = 1,
                                          .w = 1,
                                          .c = 1};
    return node < 0 ? &one : &ctx->graph->nodes[node].out;
}

bool rfx_onnx_is_of_bytes(const struct rfx_onnx_import *ctx, int node) {
    if (node < 0 || ctx->graph->nodes[node].op != RFX_OP_CONVERT) return false;
    return rfx_type_is_byte(rfx_onnx_tensor_of(ctx, ctx->graph->nodes[node].in[0])->type);
}

const struct rfx_shape *rfx_onnx_shape(const struct rfx_onnx_import *ctx,
                                       struct rfx_onnx_operand value) {
    return value.constant != NULL ? &value.constant->shape
                                  : &rfx_onnx_tensor_of(ctx, value.node)->shape;
}

bool rfx_onnx_is_map(const struct rfx_onnx_import *ctx, int node) {
    return node >= 0 && rfx_onnx_tensor_of(ctx, node)->layout == RFX_LAYOUT_NHWC;
}

bool rfx_onnx_same_shape(const struct rfx_shape *a, const struct rfx_shape *b) {
    bool same = a->rank == b->rank;
    for (int i = 0; same && i < a->rank; i++) same = a->dims[i] == b->dims[i];
    return same;
}

struct rfx_shape rfx_onnx_rank_4(const struct rfx_shape *shape) {
    struct rfx_shape four = {4, {1, 1, 1, 1}};
    for (int i = 0; i < shape->rank && i < 4; i++) four.dims[4 - shape->rank + i] = shape->dims[i];
    return four;
}

/* --- results --- */

int rfx_onnx_set(struct rfx_onnx_import *ctx, size_t k, struct rfx_onnx_operand value) {
    if (rfx_onnx_failed(ctx) || !rfx_onnx_gives(ctx, k)) return -1;
    int32_t type = value.constant != NULL ? value.constant->type : rfx_onnx_result_type(ctx, k);
    if (value.node >= 0) value.node = rfx_onnx_keep_type(ctx, type, value.node);
    return rfx_onnx_bind_as(ctx, k, value, type);
}

int rfx_onnx_bind_as(struct rfx_onnx_import *ctx, size_t k, struct rfx_onnx_operand value,
                     int32_t type) {
    if (rfx_onnx_failed(ctx) || !rfx_onnx_gives(ctx, k)) return -1;
    const char *name = ctx->node->out[k];
    if (!rfx_onnx_is_there(value)) return rfx_onnx_out_of_memory(ctx);
    if (rfx_onnx_names_find(ctx->values, name) != NULL)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "tensor '%.80s' is made twice", name);
    if (!rfx_onnx_names_put(ctx->values, name, value)) return rfx_onnx_out_of_memory(ctx);
    rfx_onnx_names_set_type(ctx->values, name, type);
    return -1;
}

int rfx_onnx_set_const(struct rfx_onnx_import *ctx, size_t k, struct rfx_onnx_const *c) {
    return rfx_onnx_set(ctx, k, rfx_onnx_of_const(c));
}

/* Returns the node's name plus suffix. If that name is in use, a number is appended. */
static const char *unique_name(struct rfx_onnx_import *ctx, const char *suffix) {
    size_t room = strlen(ctx->node_name) + strlen(suffix) + 32;
    char *name = rfx_arena_alloc(ctx->arena, room, 1);
    if (name == NULL) return NULL;
    snprintf(name, room, "%s%s", ctx->node_name, suffix);
    /* Counting begins at the node's index: earlier nodes have taken the lower numbers. */
    for (unsigned i = (unsigned)ctx->graph->n_nodes; rfx_onnx_names_find(ctx->used, name) != NULL;
         i++)
        snprintf(name, room, "%s%s#%u", ctx->node_name, suffix, i);
    return rfx_onnx_names_put(ctx->used, name, rfx_onnx_of(-1)) ? name : NULL;
}

/* Makes room for graph node `node` in plain_of and map_of. Returns false without memory. */
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

int rfx_onnx_emit(struct rfx_onnx_import *ctx, struct rfx_node *node, const char *suffix,
                  const int *in, int n_in) {
    int made = -1;
    if (rfx_onnx_failed(ctx)) return -1;
    node->name = unique_name(ctx, suffix);
    if (node->name == NULL || !reserve_forms(ctx, (size_t)ctx->graph->n_nodes))
        return rfx_onnx_out_of_memory(ctx);
    node->in = in;
    node->n_in = n_in;
    ctx->status = rfx_graph_add(ctx->graph, node, &made, ctx->err);
    if (ctx->status == RFX_OK) return made;
    ctx->status = rfx_fail_within(ctx->err, ctx->status, "%.60s '%.80s' (opset %lld)",
                                  ctx->node->op, ctx->node_name, (long long)ctx->opset);
    return -1;
}

int rfx_onnx_emit1(struct rfx_onnx_import *ctx, struct rfx_node *node, const char *suffix, int in) {
    return rfx_onnx_emit(ctx, node, suffix, &in, 1);
}

int rfx_onnx_emit2(struct rfx_onnx_import *ctx, struct rfx_node *node, const char *suffix, int a,
                   int b) {
    const int in[2] = {a, b};
    return rfx_onnx_emit(ctx, node, suffix, in, 2);
}

/* --- layouts --- */

static int const_node(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c, bool map) {
    struct rfx_onnx_const_place *place = rfx_onnx_const_place(ctx, c);
    int *cached = map ? &place->map_node : &place->plain_node;
    if (*cached < 0 && c->repeat != NULL) { /* each reader gets a node of its own */
        int made = map ? rfx_onnx_repeat_map(ctx, c, NULL) : rfx_onnx_repeat_plain(ctx, c);
        if (made >= 0) return made;
    }
    if (*cached < 0 && c->computed_by >= 0) *cached = rfx_onnx_computed_node(ctx, c, map);
    if (*cached < 0) {
        struct rfx_node node = {.op = map ? RFX_OP_CONST_MAP : RFX_OP_CONST_PLAIN};
        node.attr.constant.weight = rfx_onnx_const_weight(ctx, c);
        node.attr.constant.shape = c->shape;
        *cached = rfx_onnx_emit(ctx, &node, "/constant", NULL, 0);
    }
    return *cached;
}

/* Describes the tensor of a node. Returns false when it has no description; also for node -1. */
static bool describe(const struct rfx_onnx_import *ctx, int node, struct rfx_pixels *p) {
    return node >= 0 && rfx_pixels_of(ctx->graph, node, p);
}

int rfx_onnx_map_itself(const struct rfx_onnx_import *ctx, int node) {
    struct rfx_pixels p;
    return describe(ctx, node, &p) && rfx_pixels_is_nchw(&p) ? p.map : node;
}

/* If attention reads a selection of a map that has these channels side by side, replaces the map by
 * that selection: its rows are kept for the whole window anyway. */
static int kept_selection(const struct rfx_onnx_import *ctx, int map, int64_t *channels,
                          int64_t count) {
    for (int i = ctx->graph->n_nodes - 2; i > map; i--) {
        const struct rfx_node *node = &ctx->graph->nodes[i], *reader = node + 1;
        const int64_t *kept = node->attr.select.map;
        if (node->op != RFX_OP_CHANNEL_SELECT || node->in[0] != map ||
            reader->op != RFX_OP_WINDOW_ATTENTION || reader->in[0] != i)
            continue;
        for (int64_t first = 0; first + count <= node->attr.select.count; first++) {
            if (memcmp(kept + first, channels, (size_t)count * sizeof *channels) != 0) continue;
            for (int64_t k = 0; k < count; k++) channels[k] = first + k;
            return i;
        }
    }
    return map;
}

int rfx_onnx_channels(struct rfx_onnx_import *ctx, const struct rfx_pixels *p) {
    int64_t c = rfx_pixels_channels(p);
    if (c == 0) return -1;
    int64_t *channels = rfx_onnx_alloc(ctx, (size_t)c, sizeof *channels);
    if (channels == NULL) return -1;
    for (int64_t i = 0; i < c; i++) channels[i] = rfx_pixels_channel(p, i);
    int map = kept_selection(ctx, p->map, channels, c);
    return rfx_onnx_select(ctx, "/channels", map, channels, c);
}

/* Returns the node of the same tensor in the other layout. It is created once. */
static int other_form(struct rfx_onnx_import *ctx, int from, enum rfx_op op, const char *suffix) {
    bool to_map = op == RFX_OP_TO_NHWC;
    if (rfx_onnx_failed(ctx)) return -1;
    int known = (to_map ? ctx->map_of : ctx->plain_of)[from];
    if (known >= 0) return known;
    struct rfx_node node = {.op = op};
    struct rfx_pixels p;
    int made = to_map && describe(ctx, from, &p) ? rfx_onnx_channels(ctx, &p) : -1;
    if (made < 0) made = rfx_onnx_emit1(ctx, &node, suffix, from);
    if (made < 0) return -1;
    (to_map ? ctx->map_of : ctx->plain_of)[from] = made;
    (to_map ? ctx->plain_of : ctx->map_of)[made] = from;
    return made;
}

int rfx_onnx_map(struct rfx_onnx_import *ctx, struct rfx_onnx_operand value) {
    if (!rfx_onnx_is_there(value))
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "an input is missing");
    if (rfx_onnx_is_map(ctx, value.node)) return value.node;
    const struct rfx_shape *shape = rfx_onnx_shape(ctx, value);
    if (shape->rank != 4)
        return rfx_onnx_refuse(
            ctx, RFX_STATUS_UNSUPPORTED,
            "an operand of rank %d; only feature maps (1, c, h, w) are supported", shape->rank);
    if (shape->dims[0] != 1)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                               "an operand with a batch of %lld; only 1 is supported",
                               (long long)shape->dims[0]);
    if (value.constant != NULL) return const_node(ctx, value.constant, true);
    int map = rfx_onnx_map_itself(ctx, value.node);
    return map != value.node ? map : other_form(ctx, value.node, RFX_OP_TO_NHWC, "/to_map");
}

int rfx_onnx_plain(struct rfx_onnx_import *ctx, struct rfx_onnx_operand value) {
    if (value.constant != NULL) return const_node(ctx, value.constant, false);
    if (value.node < 0) return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "an input is missing");
    return rfx_onnx_is_map(ctx, value.node)
               ? other_form(ctx, value.node, RFX_OP_TO_PLAIN, "/to_plain")
               : value.node;
}

int rfx_onnx_any(struct rfx_onnx_import *ctx, struct rfx_onnx_operand value) {
    return value.constant != NULL || value.node < 0 ? rfx_onnx_plain(ctx, value) : value.node;
}

int rfx_onnx_map_behind(struct rfx_onnx_import *ctx, int node) {
    struct rfx_pixels p;
    ctx->order = -1;
    return describe(ctx, node, &p) && rfx_pixels_is_nhwc(&p) ? p.map : -1;
}

int rfx_onnx_tokens_behind(struct rfx_onnx_import *ctx, int node) {
    struct rfx_pixels p;
    int map = rfx_onnx_map_behind(ctx, node);
    if (map >= 0 || !describe(ctx, node, &p) || !rfx_pixels_are_tokens(&p)) return map;
    ctx->order = node;
    return p.map;
}

int rfx_onnx_elements_behind(struct rfx_onnx_import *ctx, int node) {
    struct rfx_pixels p;
    int map = rfx_onnx_tokens_behind(ctx, node);
    if (map >= 0 || !describe(ctx, node, &p) || !rfx_pixels_are_in_order(&p, false)) return map;
    const struct rfx_shape *shape = &rfx_onnx_tensor_of(ctx, node)->shape;
    if (!rfx_shape_is_of_map(shape, rfx_onnx_tensor_of(ctx, p.map), false)) return -1;
    ctx->order = node;
    return p.map;
}

int rfx_onnx_map_of_channels(struct rfx_onnx_import *ctx, int in, int axis, bool *last) {
    int behind = rfx_onnx_tokens_behind(ctx, in);
    *last = behind >= 0;
    if (*last) return axis == rfx_onnx_tensor_of(ctx, in)->shape.rank - 1 ? behind : -1;
    return rfx_onnx_is_map(ctx, in) && axis == 1 ? in : -1;
}

bool rfx_onnx_same_order(const struct rfx_onnx_import *ctx, int a, int b) {
    struct rfx_pixels of_a, of_b;
    return describe(ctx, a, &of_a) && describe(ctx, b, &of_b) &&
           rfx_pixels_same_order(&of_a, &of_b);
}

int rfx_onnx_channels_last(struct rfx_onnx_import *ctx, int map) {
    struct rfx_node node = {.op = RFX_OP_NHWC_AS_PLAIN};
    struct rfx_pixels order;
    if (ctx->order < 0 || !describe(ctx, ctx->order, &order))
        return rfx_onnx_emit1(ctx, &node, "/channels_last", map);
    if (map < 0) return -1;
    order = rfx_pixels_of_map(&order, map, rfx_onnx_tensor_of(ctx, map)->c);
    if (!rfx_pixels_are_in_order(&order, false)) return rfx_onnx_emit_pixels(ctx, &order);
    struct rfx_shape shape = rfx_pixels_shape(&order); /* no element moves */
    return rfx_onnx_plain_as(ctx, map, &shape);
}

int rfx_onnx_ordered(struct rfx_onnx_import *ctx, int map, bool last) {
    return last ? rfx_onnx_channels_last(ctx, map) : map;
}

int rfx_onnx_moved_map(struct rfx_onnx_import *ctx, struct rfx_onnx_operand x,
                       struct rfx_pixels *order) {
    int in = rfx_onnx_any(ctx, x);
    *order = (struct rfx_pixels){.map = -1};
    if (rfx_onnx_failed(ctx) || rfx_onnx_is_map(ctx, in)) return in;
    struct rfx_pixels p;
    bool reordered = describe(ctx, in, &p) && (p.rank > 3 || !rfx_pixels_are_in_order(&p, false) ||
                                               rfx_onnx_elements_behind(ctx, in) >= 0);
    int64_t count = reordered ? rfx_pixels_pick(&p, NULL) : 0;
    if (count == 0) return in;
    if (count < p.extent[RFX_PIXELS_CHANNEL]) {
        int64_t *channels = rfx_onnx_alloc(ctx, (size_t)count, sizeof *channels);
        if (channels == NULL) return -1;
        (void)rfx_pixels_pick(&p, channels);
        p.map = rfx_onnx_select(ctx, "/channels", p.map, channels, count);
    }
    *order = p;
    return p.map;
}

int rfx_onnx_move_back(struct rfx_onnx_import *ctx, int made, const struct rfx_pixels *order) {
    if (order->map < 0 || made < 0) return made;
    struct rfx_pixels p = *order;
    struct rfx_shape shape = rfx_pixels_shape(&p);
    p.map = made;
    return rfx_pixels_are_in_order(&p, false) ? rfx_onnx_plain_as(ctx, made, &shape)
                                              : rfx_onnx_emit_pixels(ctx, &p);
}

int rfx_onnx_elements(struct rfx_onnx_import *ctx, bool *last) {
    int in = rfx_onnx_any(ctx, rfx_onnx_in(ctx, 0)), behind = rfx_onnx_elements_behind(ctx, in);
    *last = behind >= 0;
    return *last ? behind : in;
}

/* --- nodes that several converters emit --- */

int rfx_onnx_reshape(struct rfx_onnx_import *ctx, int plain, const struct rfx_shape *shape) {
    struct rfx_node node = {.op = RFX_OP_RESHAPE, .attr.reshape.shape = *shape};
    if (rfx_onnx_same_shape(shape, &rfx_onnx_tensor_of(ctx, plain)->shape)) return plain;
    return rfx_onnx_emit1(ctx, &node, "/reshape", plain);
}

int rfx_onnx_plain_as(struct rfx_onnx_import *ctx, int node, const struct rfx_shape *shape) {
    return rfx_onnx_reshape(ctx, rfx_onnx_plain(ctx, rfx_onnx_of(node)), shape);
}

int rfx_onnx_act(struct rfx_onnx_import *ctx, const char *suffix, int in, enum rfx_act_kind kind,
                 float alpha, float beta) {
    struct rfx_node node = {.op = RFX_OP_ACTIVATION, .act = {kind, alpha, beta, -1}};
    return rfx_onnx_emit1(ctx, &node, suffix, in);
}

int rfx_onnx_apply(struct rfx_onnx_import *ctx, const char *suffix, int in,
                   enum rfx_act_kind kind) {
    return rfx_onnx_act(ctx, suffix, in, kind, 0.0f, 0.0f);
}

int rfx_onnx_select(struct rfx_onnx_import *ctx, const char *suffix, int in, int64_t *map,
                    int64_t count) {
    struct rfx_node node = {.op = RFX_OP_CHANNEL_SELECT};
    node.attr.select.count = count;
    node.attr.select.map = map;
    return map == NULL ? -1 : rfx_onnx_emit1(ctx, &node, suffix, in);
}

int rfx_onnx_gather_along(struct rfx_onnx_import *ctx, const char *suffix, int in, int axis,
                          int64_t *map, int64_t count) {
    struct rfx_node node = {.op = RFX_OP_PLAIN_GATHER};
    node.attr.gather.axis = axis;
    node.attr.gather.count = count;
    node.attr.gather.map = map;
    return map == NULL ? -1 : rfx_onnx_emit1(ctx, &node, suffix, in);
}

/* Returns the node of `in kind number` for a PLAIN tensor. */
static int plain_number(struct rfx_onnx_import *ctx, const char *suffix, int in,
                        enum rfx_binary_kind kind, float number) {
    struct rfx_node constant = {.op = RFX_OP_CONST_PLAIN};
    constant.attr.constant.shape = (struct rfx_shape){1, {1}};
    constant.attr.constant.weight = rfx_onnx_own_weight(ctx, &number, 1);
    int made = rfx_onnx_emit(ctx, &constant, "/number", NULL, 0);
    return rfx_onnx_binary_of(ctx, kind, suffix, in, made);
}

int rfx_onnx_scale_shift(struct rfx_onnx_import *ctx, const char *suffix, int in, float scale,
                         float shift) {
    if (rfx_onnx_is_map(ctx, in)) {
        struct rfx_node node = {.op = RFX_OP_AFFINE, .attr.affine = {-1, -1}};
        node.attr.affine.scale = rfx_onnx_own_weight(ctx, &scale, 1);
        if (shift != 0.0f) node.attr.affine.shift = rfx_onnx_own_weight(ctx, &shift, 1);
        return rfx_onnx_emit1(ctx, &node, suffix, in);
    }
    if (scale != 1.0f) in = plain_number(ctx, "/scaled", in, RFX_BINARY_MUL, scale);
    return shift != 0.0f ? plain_number(ctx, suffix, in, RFX_BINARY_ADD, shift) : in;
}

int rfx_onnx_axis(struct rfx_onnx_import *ctx, int64_t axis, int rank) {
    if (axis < -rank || axis >= rank) {
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "axis %lld of a tensor of rank %d",
                              (long long)axis, rank);
        return 0;
    }
    return (int)(axis < 0 ? axis + rank : axis);
}

int rfx_onnx_axis_attr(struct rfx_onnx_import *ctx, int64_t otherwise, int rank) {
    return rfx_onnx_axis(ctx, rfx_onnx_attr_int(ctx, "axis", otherwise), rank);
}

/* --- names: open addressing --- */

struct name_row {
    const char *name; /* NULL: free */
    struct rfx_onnx_operand value;
    int32_t type; /* 0: FLOAT */
};

struct rfx_onnx_names {
    struct rfx_arena *arena;
    const struct rfx_onnx_names *outer; /* the table that is searched after this one, or NULL */
    struct name_row *rows;
    size_t count, capacity; /* capacity: a power of two */
};

static size_t hash_name(const char *name) {
    uint64_t h = 1469598103934665603u;
    for (; *name != '\0'; name++) h = (h ^ (uint8_t)*name) * 1099511628211u;
    return (size_t)(h ^ (h >> 32));
}

struct rfx_onnx_names *rfx_onnx_names_create(struct rfx_arena *arena,
                                             const struct rfx_onnx_names *outer) {
    struct rfx_onnx_names *names = rfx_arena_alloc(arena, 1, sizeof *names);
    if (names == NULL) return NULL;
    names->arena = arena;
    names->outer = outer;
    names->capacity = 64;
    names->rows = rfx_arena_alloc(arena, names->capacity, sizeof *names->rows);
    return names->rows == NULL ? NULL : names;
}

/* Returns the row of `name`, or the free row where `name` belongs. */
static struct name_row *find_row(struct name_row *rows, size_t capacity, const char *name) {
    size_t i = hash_name(name) & (capacity - 1);
    while (rows[i].name != NULL && strcmp(rows[i].name, name) != 0) i = (i + 1) & (capacity - 1);
    return &rows[i];
}

/* Returns the row of `name` in a table or its outer tables, or NULL. */
static struct name_row *find_name(const struct rfx_onnx_names *names, const char *name) {
    for (; names != NULL; names = names->outer) {
        struct name_row *row = find_row(names->rows, names->capacity, name);
        if (row->name != NULL) return row;
    }
    return NULL;
}

struct rfx_onnx_operand *rfx_onnx_names_find(const struct rfx_onnx_names *names, const char *name) {
    struct name_row *row = find_name(names, name);
    return row == NULL ? NULL : &row->value;
}

bool rfx_onnx_names_put(struct rfx_onnx_names *names, const char *name,
                        struct rfx_onnx_operand value) {
    if ((names->count + 1) * 2 > names->capacity) {
        struct name_row *rows = rfx_arena_alloc(names->arena, names->capacity * 2, sizeof *rows);
        if (rows == NULL) return false;
        for (size_t i = 0; i < names->capacity; i++)
            if (names->rows[i].name != NULL)
                *find_row(rows, names->capacity * 2, names->rows[i].name) = names->rows[i];
        names->rows = rows;
        names->capacity *= 2;
    }
    struct name_row *row = find_row(names->rows, names->capacity, name);
    if (row->name == NULL) names->count++;
    *row = (struct name_row){name, value, 0};
    return true;
}

int32_t rfx_onnx_names_type(const struct rfx_onnx_names *names, const char *name) {
    const struct name_row *row = find_name(names, name);
    return row != NULL && row->type != 0 ? row->type : RFX_ONNX_FLOAT;
}

void rfx_onnx_names_set_type(struct rfx_onnx_names *names, const char *name, int32_t type) {
    struct name_row *row = find_row(names->rows, names->capacity, name);
    if (row->name != NULL) row->type = type;
}
