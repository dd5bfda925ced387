/* Constants that operators compute from other constants.
 *
 * A node all of whose operands are constants is converted as if its first operand came from an
 * image, but into a graph of its own, the graph of constants. Its outputs are constants that hold
 * the index of a node there, and no numbers. Chains of such nodes grow in that graph, which costs
 * nothing. Somebody who needs the numbers has them computed, all that they are made of at once
 * (rfexec/session/evaluate.h): what lies between is freed at once, and what nobody asks for is
 * never computed. What has been computed is a constant like any other.
 *
 * A tensor that is larger than all that it is made of, such as a table of positions that is resized
 * to the image, is not stored: its nodes are copied to the model's graph, where plans compute it by
 * parts. */
#include <string.h>

#include "layers/graph/op.h"
#include "rfexec/onnx/import/fold/onnx_fold.h"
#include "rfexec/session/evaluate.h"

/* Floats that are stored however small the tensors are that they are made of: 256 KiB, as the
 * biases of attention within windows, which are picked from small tables. */
enum { STORED_ELEMS = 1 << 16 };

static enum rfx_status no_memory(struct rfx_onnx_import *ctx) {
    return rfx_onnx_refuse(ctx, RFX_STATUS_OUT_OF_MEMORY, "no memory for a computed constant");
}

/* The import that builds the graph of constants: this one, or the one that it has. */
static struct rfx_onnx_import *constants_of(struct rfx_onnx_import *ctx) {
    return ctx->is_of_constants ? ctx : ctx->constants;
}

static enum rfx_status begin_constants(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_import *of = rfx_arena_alloc(ctx->arena, 1, sizeof *of);
    if (of == NULL) return no_memory(ctx);
    *of = (struct rfx_onnx_import){.mem = ctx->mem,
                                   .arena = ctx->arena,
                                   .values = ctx->values,
                                   .used = rfx_onnx_names_create(ctx->arena),
                                   .opset = ctx->opset,
                                   .err = ctx->err,
                                   .order = -1,
                                   .is_of_constants = true,
                                   .first = -1};
    if (of->used == NULL) return no_memory(ctx);
    enum rfx_status status = rfx_graph_create(ctx->mem, "constants", &of->graph, ctx->err);
    if (status == RFX_OK) ctx->constants = of;
    return status;
}

void rfx_onnx_computed_free(struct rfx_onnx_import *ctx) {
    if (ctx->constants == NULL) return;
    rfx_onnx_const_forget(ctx->constants);
    rfx_graph_free(ctx->constants->graph);
    ctx->constants = NULL;
}

/* Input 0 as a node of the graph of constants: a map where its shape is that of one. */
static enum rfx_status make_first(struct rfx_onnx_import *of) {
    of->first = -1;
    struct rfx_onnx_operand x = rfx_onnx_in(of, 0);
    if (x.constant == NULL) return RFX_OK;
    const struct rfx_shape *shape = &x.constant->shape;
    bool map = shape->rank == 4 && shape->dims[0] == 1;
    return map ? rfx_onnx_map(of, x, &of->first) : rfx_onnx_plain(of, x, &of->first);
}

static int32_t type_of_input(const struct rfx_onnx_import *ctx, size_t k) {
    const struct rfx_onnx_const *c = rfx_onnx_in_as_named(ctx, k).constant;
    return c != NULL ? c->type : RFX_ONNX_FLOAT;
}

/* The element type of output k, which float32 stands for in the graph of constants. */
static int32_t type_of_output(const struct rfx_onnx_import *ctx, size_t k) {
    static const struct {
        const char *op;
        size_t output;
        int32_t type; /* or 0: that of input `like` */
        size_t like;
    } rows[] = {{"ArgMax", 0, RFX_ONNX_INT64, 0},
                {"ArgMin", 0, RFX_ONNX_INT64, 0},
                {"TopK", 1, RFX_ONNX_INT64, 0},
                {"MaxPool", 1, RFX_ONNX_INT64, 0},
                {"IsNaN", 0, RFX_ONNX_BOOL, 0},
                {"IsInf", 0, RFX_ONNX_BOOL, 0},
                {"Where", 0, 0, 1},
                {"OneHot", 0, 0, 2},
                {"CastLike", 0, 0, 1},
                {"DequantizeLinear", 0, 0, 1}};
    if (rfx_onnx_gives_bool(ctx)) return RFX_ONNX_BOOL;
    if (rfx_onnx_op_is(ctx, "Cast"))
        return (int32_t)rfx_onnx_attr_int(ctx, "to", type_of_input(ctx, 0));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rfx_onnx_op_is(ctx, rows[i].op) && rows[i].output == k)
            return rows[i].type != 0 ? rows[i].type : type_of_input(ctx, rows[i].like);
    return type_of_input(ctx, 0);
}

/* A constant that a node of the graph of constants computes; NULL: no memory. */
static struct rfx_onnx_const *computed_by(struct rfx_onnx_import *of, int node, int32_t type) {
    const struct rfx_tensor *t = rfx_onnx_tensor_of(of, node);
    struct rfx_onnx_const *c = rfx_onnx_const_bare(of, type, &t->shape, t->elems);
    if (c != NULL) c->computed_by = node;
    return c;
}

/* Binds output k, which is a node of the graph of constants, to a constant. */
static enum rfx_status bind_output(struct rfx_onnx_import *of, size_t k) {
    const char *name = of->node->out[k];
    const struct rfx_onnx_indices *indices = rfx_onnx_indices_of(of, name);
    enum rfx_status status = indices != NULL ? rfx_onnx_make_indices(of, indices) : RFX_OK;
    if (status != RFX_OK) return status;
    struct rfx_onnx_operand *value = rfx_onnx_names_find(of->values, name);
    if (value == NULL || value->constant != NULL) return RFX_OK;
    value->constant = computed_by(of, value->node, type_of_output(of, k));
    value->node = -1;
    return value->constant != NULL ? RFX_OK : no_memory(of);
}

enum rfx_status rfx_onnx_compute(struct rfx_onnx_import *ctx, rfx_onnx_convert convert) {
    enum rfx_status status = ctx->constants == NULL ? begin_constants(ctx) : RFX_OK;
    if (status != RFX_OK) return status;
    struct rfx_onnx_import *of = ctx->constants;
    of->node = ctx->node;
    of->node_name = ctx->node_name;
    of->values = ctx->values;
    of->opset = ctx->opset;
    of->attrs_read = ctx->attrs_read;
    status = make_first(of);
    if (status == RFX_OK) status = convert(of);
    for (size_t k = 0; status == RFX_OK && k < of->node->n_out; k++) status = bind_output(of, k);
    if (status == RFX_OK && !rfx_onnx_const_settle(of)) status = no_memory(ctx);
    return status;
}

/* Computes a constant into out, row-major. */
static enum rfx_status compute(struct rfx_onnx_import *ctx, const struct rfx_onnx_const *c,
                               float *out) {
    struct rfx_onnx_import *of = constants_of(ctx);
    struct rfx_onnx_operand x = {c->computed_by, NULL};
    int plain;
    of->node = ctx->node;
    of->node_name = ctx->node_name;
    enum rfx_status status = rfx_onnx_plain(of, x, &plain);
    return status == RFX_OK ? rfx_graph_evaluate(of->graph, plain, out, ctx->err) : status;
}

enum rfx_status rfx_onnx_computed_numbers(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c) {
    float *numbers = rfx_arena_alloc(ctx->arena, (size_t)c->elems, sizeof *numbers);
    if (numbers == NULL) return no_memory(ctx);
    enum rfx_status status = compute(ctx, c, numbers);
    if (status != RFX_OK) return status;
    c->floats = numbers;
    c->computed_by = -1;
    return RFX_OK;
}

enum rfx_status rfx_onnx_computed_weight(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c) {
    struct rfx_weight w = {
        .source = RFX_WEIGHT_OWNED, .type = RFX_TYPE_FLOAT32, .shape = c->shape, .elems = c->elems};
    int *weight = &rfx_onnx_const_place(ctx, c)->weight;
    enum rfx_status status = rfx_graph_add_weight(ctx->graph, &w, weight, ctx->err);
    if (status != RFX_OK) return status;
    float *numbers = rfx_graph_owned_weight(ctx->graph, *weight);
    status = compute(ctx, c, numbers);
    if (status != RFX_OK) return status;
    c->floats = numbers; /* the graph keeps them where they are */
    c->computed_by = -1;
    return RFX_OK;
}

struct rfx_onnx_const *rfx_onnx_computed_view(struct rfx_onnx_import *ctx,
                                              const struct rfx_onnx_const *c,
                                              const struct rfx_shape *shape) {
    struct rfx_onnx_import *of = constants_of(ctx);
    struct rfx_onnx_operand x = {c->computed_by, NULL};
    int view;
    of->node = ctx->node;
    of->node_name = ctx->node_name;
    enum rfx_status status = rfx_onnx_plain(of, x, &view);
    if (status == RFX_OK) status = rfx_onnx_reshape(of, view, shape, &view);
    return status == RFX_OK ? computed_by(of, view, c->type) : NULL;
}

/* Copies the weight of that index to the model's graph; -1 stays -1. */
static enum rfx_status copy_weight(struct rfx_onnx_import *ctx, int *index) {
    if (*index < 0) return RFX_OK;
    const struct rfx_weight w = ctx->constants->graph->weights[*index];
    return rfx_graph_add_weight(ctx->graph, &w, index, ctx->err);
}

static enum rfx_status copy_weights(struct rfx_onnx_import *ctx, struct rfx_node *node) {
    const struct rfx_weight_slot *slot = rfx_op_def(node->op)->weights;
    enum rfx_status status = RFX_OK;
    if (rfx_node_is_constant(node)) status = copy_weight(ctx, &node->attr.constant.weight);
    if (node->op == RFX_OP_REPEAT) status = copy_weight(ctx, &node->attr.repeat.across);
    if (status == RFX_OK && node->op == RFX_OP_REPEAT)
        status = copy_weight(ctx, &node->attr.repeat.down);
    if (node->act.kind == RFX_ACT_PRELU) status = copy_weight(ctx, &node->act.slope);
    for (; status == RFX_OK && slot != NULL && slot->name != NULL; slot++)
        status = copy_weight(ctx, rfx_node_weight_rw(node, slot));
    return status;
}

/* Adds a copy of node i of the graph of constants, whose inputs are at[...], to the model's. */
static enum rfx_status copy_node(struct rfx_onnx_import *ctx, int i, int *at) {
    struct rfx_node node = ctx->constants->graph->nodes[i];
    int *in = rfx_memory_alloc(ctx->mem, (size_t)node.n_in * sizeof *in);
    if (in == NULL) return no_memory(ctx);
    for (int k = 0; k < node.n_in; k++) in[k] = at[node.in[k]];
    const char *name = ctx->node_name;
    ctx->node_name = node.name;
    enum rfx_status status = copy_weights(ctx, &node);
    if (status == RFX_OK) status = rfx_onnx_emit(ctx, &node, "", in, node.n_in, &at[i]);
    ctx->node_name = name;
    rfx_memory_release(ctx->mem, in);
    return status;
}

static enum rfx_status copy_nodes(struct rfx_onnx_import *ctx, int last, const bool *needed,
                                  int *out) {
    int *at = rfx_memory_alloc(ctx->mem, ((size_t)last + 1) * sizeof *at);
    if (at == NULL) return no_memory(ctx);
    enum rfx_status status = RFX_OK;
    for (int i = 0; status == RFX_OK && i <= last; i++)
        if (needed[i]) status = copy_node(ctx, i, at);
    if (status == RFX_OK) *out = at[last];
    rfx_memory_release(ctx->mem, at);
    return status;
}

/* Whether a tensor is stored: it is small, or no larger than the constants that it is made of.
 * Otherwise *out is its node in the model's graph. */
static enum rfx_status copy_if_large(struct rfx_onnx_import *ctx, const struct rfx_onnx_const *c,
                                     int *out) {
    const struct rfx_graph *graph = ctx->constants->graph;
    size_t n = (size_t)c->computed_by + 1;
    if (c->elems <= STORED_ELEMS) return RFX_OK;
    bool *needed = rfx_memory_calloc(ctx->mem, n, sizeof *needed);
    if (needed == NULL) return no_memory(ctx);
    enum rfx_status status = RFX_OK;
    if (c->elems > rfx_graph_mark_needed(graph, c->computed_by, needed))
        status = copy_nodes(ctx, c->computed_by, needed, out);
    rfx_memory_release(ctx->mem, needed);
    return status;
}

enum rfx_status rfx_onnx_computed_node(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c,
                                       bool map, int *out) {
    struct rfx_onnx_operand x = {c->computed_by, NULL};
    enum rfx_status status = RFX_OK;
    if (!ctx->is_of_constants) {
        x.node = -1;
        status = copy_if_large(ctx, c, &x.node);
        if (status == RFX_OK && x.node < 0) status = rfx_onnx_computed_weight(ctx, c);
    }
    if (status != RFX_OK || x.node < 0) return status;
    return map ? rfx_onnx_map(ctx, x, out) : rfx_onnx_plain(ctx, x, out);
}
