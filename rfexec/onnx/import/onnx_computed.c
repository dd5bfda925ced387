/* Constants that operators compute from other constants.
 *
 * A node whose operands are all constants is converted as if its first operand came from an image,
 * but into a second graph, the graph of constants. Its outputs become constants that hold the index
 * of a node of that graph and no numbers. When the numbers of such a constant are read for the
 * first time, all nodes that it depends on are run (rfexec/run/evaluate.h). Intermediate results
 * are freed as soon as possible. A constant whose numbers are never read is never computed. A
 * computed constant is afterwards a constant like any other.
 *
 * A tensor that is larger than all constants from which it is computed is not stored. An example is
 * a table of positions that is resized to the image. The nodes of such a tensor are copied to the
 * model's graph, where plans compute it in parts. */
#include <string.h>

#include "layers/graph/op.h"
#include "rfexec/onnx/import/onnx_import.h"
#include "rfexec/run/evaluate.h"

/* Computed tensors of up to this many floats (256 KiB) are always stored, even when their inputs
 * are smaller: biases of attention within windows are gathered from small tables. */
enum { STORED_ELEMS = 1 << 16 };

/* Returns the import that builds the graph of constants, set to the current node and status. */
static struct rfx_onnx_import *constants_of(struct rfx_onnx_import *ctx) {
    if (ctx->is_of_constants) return ctx;
    ctx->constants->status = ctx->status;
    ctx->constants->node = ctx->node;
    ctx->constants->node_name = ctx->node_name;
    return ctx->constants;
}

/* Copies the status of the import of constants. Both imports write the same error text. */
static void take_over(struct rfx_onnx_import *ctx, const struct rfx_onnx_import *of) {
    if (!rfx_onnx_failed(ctx)) ctx->status = of->status;
}

static void begin_constants(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_import *of = rfx_onnx_alloc(ctx, 1, sizeof *of);
    if (of == NULL) return;
    *of = (struct rfx_onnx_import){.mem = ctx->mem,
                                   .arena = ctx->arena,
                                   .values = ctx->values,
                                   .used = rfx_onnx_names_create(ctx->arena, NULL),
                                   .opset = ctx->opset,
                                   .err = ctx->err,
                                   .order = -1,
                                   .is_of_constants = true,
                                   .first = -1};
    if (of->used == NULL) {
        (void)rfx_onnx_out_of_memory(ctx);
        return;
    }
    ctx->status = rfx_graph_create(ctx->mem, "constants", &of->graph, ctx->err);
    if (!rfx_onnx_failed(ctx)) ctx->constants = of;
}

void rfx_onnx_computed_free(struct rfx_onnx_import *ctx) {
    if (ctx->constants == NULL) return;
    rfx_onnx_const_forget(ctx->constants);
    rfx_graph_free(ctx->constants->graph);
    ctx->constants = NULL;
}

/* Sets of->first to the node of input 0: a map if its shape is (1, c, h, w), else a PLAIN tensor.
 */
static void make_first(struct rfx_onnx_import *of) {
    of->first = -1;
    struct rfx_onnx_operand x = rfx_onnx_in(of, 0);
    if (x.constant == NULL) return;
    const struct rfx_shape *shape = &x.constant->shape;
    bool map = shape->rank == 4 && shape->dims[0] == 1;
    of->first = map ? rfx_onnx_map(of, x) : rfx_onnx_plain(of, x);
}

/* Returns the element type of output k. In the graph of constants every type is computed as
 * float32.
 */
static int32_t type_of_output(const struct rfx_onnx_import *ctx, size_t k) {
    const struct rfx_onnx_const *scale = rfx_onnx_in_as_named(ctx, 1).constant;
    if (rfx_onnx_op_is(ctx, "DequantizeLinear"))
        return scale != NULL ? scale->type : RFX_ONNX_FLOAT;
    return rfx_onnx_result_type(ctx, k);
}

/* Returns a constant whose numbers a node of the graph of constants will compute. */
static struct rfx_onnx_const *computed_by(struct rfx_onnx_import *of, int node, int32_t type) {
    const struct rfx_tensor *t = rfx_onnx_tensor_of(of, node);
    struct rfx_onnx_const *c = rfx_onnx_const_bare(of, type, &t->shape, t->elems);
    if (c != NULL) c->computed_by = node;
    return c;
}

/* Binds the name of output k, which is bound to a node of the graph of constants, to a constant. */
static void bind_output(struct rfx_onnx_import *of, size_t k) {
    const char *name = of->node->out[k];
    const struct rfx_onnx_indices *indices = rfx_onnx_indices_of(of, name);
    if (indices != NULL) rfx_onnx_make_indices(of, indices);
    struct rfx_onnx_operand *value = rfx_onnx_names_find(of->values, name);
    if (rfx_onnx_failed(of) || value == NULL || value->constant != NULL) return;
    value->constant = computed_by(of, value->node, type_of_output(of, k));
    value->node = -1;
}

int rfx_onnx_compute(struct rfx_onnx_import *ctx, rfx_onnx_converter *convert) {
    if (ctx->constants == NULL) begin_constants(ctx);
    if (rfx_onnx_failed(ctx)) return -1;
    struct rfx_onnx_import *of = constants_of(ctx);
    of->values = ctx->values;
    of->opset = ctx->opset;
    of->attrs_read = ctx->attrs_read;
    make_first(of);
    int node = rfx_onnx_failed(of) ? -1 : convert(of);
    if (node >= 0) (void)rfx_onnx_set(of, 0, rfx_onnx_of(node));
    for (size_t k = 0; !rfx_onnx_failed(of) && k < of->node->n_out; k++) bind_output(of, k);
    rfx_onnx_const_settle(of);
    take_over(ctx, of);
    return -1;
}

/* Computes the constant's numbers into out, row-major. */
static void compute(struct rfx_onnx_import *ctx, const struct rfx_onnx_const *c, float *out) {
    struct rfx_onnx_import *of = constants_of(ctx);
    int plain = rfx_onnx_plain(of, rfx_onnx_of(c->computed_by));
    take_over(ctx, of);
    if (!rfx_onnx_failed(ctx)) ctx->status = rfx_graph_evaluate(of->graph, plain, out, ctx->err);
}

/* Records that a constant's numbers have been computed. The constant does not own them. */
static void has_numbers(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c,
                        const float *numbers) {
    if (rfx_onnx_failed(ctx)) return;
    c->floats = numbers;
    c->computed_by = -1;
}

void rfx_onnx_computed_numbers(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c) {
    float *numbers = rfx_onnx_alloc(ctx, (size_t)c->elems, sizeof *numbers);
    if (numbers != NULL) compute(ctx, c, numbers);
    has_numbers(ctx, c, numbers);
}

void rfx_onnx_computed_weight(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c) {
    struct rfx_weight w = {
        .source = RFX_WEIGHT_OWNED, .type = RFX_TYPE_FLOAT32, .shape = c->shape, .elems = c->elems};
    int *weight = &rfx_onnx_const_place(ctx, c)->weight;
    if (rfx_onnx_failed(ctx)) return;
    ctx->status = rfx_graph_add_weight(ctx->graph, &w, weight, ctx->err);
    if (rfx_onnx_failed(ctx)) return;
    float *numbers = rfx_graph_owned_weight(ctx->graph, *weight);
    compute(ctx, c, numbers);
    has_numbers(ctx, c, numbers); /* the graph keeps them where they are */
}

struct rfx_onnx_const *rfx_onnx_computed_view(struct rfx_onnx_import *ctx,
                                              const struct rfx_onnx_const *c,
                                              const struct rfx_shape *shape) {
    struct rfx_onnx_import *of = constants_of(ctx);
    int view = rfx_onnx_plain_as(of, c->computed_by, shape);
    struct rfx_onnx_const *made = rfx_onnx_failed(of) ? NULL : computed_by(of, view, c->type);
    take_over(ctx, of);
    return made;
}

/* --- constants that are computed where the model runs --- */

/* Copies a weight to the model's graph and sets *index to its index there. -1 stays -1. */
static void copy_weight(struct rfx_onnx_import *ctx, int *index) {
    if (*index < 0 || rfx_onnx_failed(ctx)) return;
    const struct rfx_weight w = ctx->constants->graph->weights[*index];
    ctx->status = rfx_graph_add_weight(ctx->graph, &w, index, ctx->err);
}

static void copy_weights(struct rfx_onnx_import *ctx, struct rfx_node *node) {
    const struct rfx_weight_slot *slot = rfx_op_def(node->op)->weights;
    if (rfx_node_is_constant(node)) copy_weight(ctx, &node->attr.constant.weight);
    if (node->op == RFX_OP_REPEAT) copy_weight(ctx, &node->attr.repeat.across);
    if (node->op == RFX_OP_REPEAT) copy_weight(ctx, &node->attr.repeat.down);
    if (node->act.kind == RFX_ACT_PRELU) copy_weight(ctx, &node->act.slope);
    for (; slot != NULL && slot->name != NULL; slot++)
        copy_weight(ctx, rfx_node_weight_rw(node, slot));
}

/* Adds a copy of node i of the graph of constants to the model's graph. at[k] is the copy of node
 * k.
 */
static void copy_node(struct rfx_onnx_import *ctx, int i, int *at) {
    struct rfx_node node = ctx->constants->graph->nodes[i];
    int *in = rfx_memory_alloc(ctx->mem, (size_t)node.n_in * sizeof *in);
    if (in == NULL) {
        (void)rfx_onnx_out_of_memory(ctx);
        return;
    }
    for (int k = 0; k < node.n_in; k++) in[k] = at[node.in[k]];
    const char *name = ctx->node_name;
    ctx->node_name = node.name;
    copy_weights(ctx, &node);
    at[i] = rfx_onnx_emit(ctx, &node, "", in, node.n_in);
    ctx->node_name = name;
    rfx_memory_release(ctx->mem, in);
}

/* If a constant is larger than STORED_ELEMS and than the constants from which it is computed,
 * copies the nodes that it depends on to the model's graph and returns the constant's node there.
 * Else returns -1. */
static int copy_if_large(struct rfx_onnx_import *ctx, const struct rfx_onnx_const *c) {
    const struct rfx_graph *graph = ctx->constants->graph;
    int last = c->computed_by, made = -1;
    if (c->elems <= STORED_ELEMS) return -1;
    bool *needed = rfx_memory_calloc(ctx->mem, (size_t)last + 1, sizeof *needed);
    int *at = rfx_memory_alloc(ctx->mem, ((size_t)last + 1) * sizeof *at);
    if (needed == NULL || at == NULL) {
        (void)rfx_onnx_out_of_memory(ctx);
    } else if (c->elems > rfx_graph_mark_needed(graph, last, needed)) {
        for (int i = 0; !rfx_onnx_failed(ctx) && i <= last; i++)
            if (needed[i]) copy_node(ctx, i, at);
        if (!rfx_onnx_failed(ctx)) made = at[last];
    }
    rfx_memory_release(ctx->mem, at);
    rfx_memory_release(ctx->mem, needed);
    return made;
}

int rfx_onnx_computed_node(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c, bool map) {
    int node = c->computed_by;
    if (rfx_onnx_failed(ctx)) return -1;
    if (!ctx->is_of_constants) {
        node = copy_if_large(ctx, c);
        if (node < 0) rfx_onnx_computed_weight(ctx, c);
    }
    if (node < 0) return -1;
    return map ? rfx_onnx_map(ctx, rfx_onnx_of(node)) : rfx_onnx_plain(ctx, rfx_onnx_of(node));
}
