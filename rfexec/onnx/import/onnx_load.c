/* rfx_onnx_load: opens the file, reads its structure, and converts its nodes for one image size.
 *
 * Shapes that the file states for inner tensors are ignored: they follow from the image's size.
 * One pass suffices, because the format demands that nodes are sorted topologically. */
#include <stdio.h>
#include <string.h>

#include "layers/graph/graph.h"
#include "layers/graph/op.h"
#include "rfexec/late/late_ops.h"
#include "rfexec/onnx/import/onnx_import.h"
#include "rfexec/onnx/import/onnx_repeat.h"
#include "rfexec/run/model.h"

#define OPSET_MIN 1
#define MOST_IMAGES (1 << 20) /* of a batch that a model is fixed to */

/* Records an error of the model as a whole. */
#define FAIL(ctx, code, ...) ((ctx)->status = rfx_fail((ctx)->err, code, __VA_ARGS__))

static bool is_half(int32_t type) {
    return type == RFX_ONNX_FLOAT16 || type == RFX_ONNX_BFLOAT16;
}

void rfx_onnx_add_initialisers(struct rfx_onnx_import *ctx, struct rfx_onnx_tensor *tensors,
                               size_t count) {
    for (size_t i = 0; !rfx_onnx_failed(ctx) && i < count; i++) {
        struct rfx_onnx_tensor *t = &tensors[i];
        ctx->graph->halves = ctx->graph->halves || is_half(t->type);
        if (t->external) ctx->status = rfx_onnx_files_attach(ctx->files, t, ctx->err);
        if (rfx_onnx_failed(ctx)) return;
        if (rfx_onnx_names_find(ctx->values, t->name) != NULL) {
            FAIL(ctx, RFX_STATUS_MALFORMED, "onnx: initialiser '%s' is there twice", t->name);
            return;
        }
        struct rfx_onnx_operand value = rfx_onnx_of_const(rfx_onnx_const_of(ctx, t));
        if (value.constant != NULL && !rfx_onnx_names_put(ctx->values, t->name, value))
            (void)rfx_onnx_out_of_memory(ctx);
    }
}

/* Returns the only graph input that is not an initialiser. UNSUPPORTED, and NULL is returned: there
 * are several such inputs, or none. */
static const struct rfx_onnx_value *find_image(struct rfx_onnx_import *ctx,
                                               const struct rfx_onnx_model *model) {
    const struct rfx_onnx_value *image = NULL;
    if (rfx_onnx_failed(ctx)) return NULL;
    for (size_t i = 0; i < model->n_inputs; i++) {
        const struct rfx_onnx_value *v = &model->inputs[i];
        if (rfx_onnx_names_find(ctx->values, v->name) != NULL) continue;
        if (image != NULL) {
            FAIL(ctx, RFX_STATUS_UNSUPPORTED,
                 "onnx: two inputs, '%s' and '%s'; one image is supported", image->name, v->name);
            return NULL;
        }
        image = v;
    }
    if (image == NULL) FAIL(ctx, RFX_STATUS_UNSUPPORTED, "onnx: the model has no image input");
    return image;
}

static bool moves_channels_first(const struct rfx_onnx_node *node) {
    static const int64_t to_first[4] = {0, 3, 1, 2};
    for (size_t i = 0; i < node->n_attrs; i++) {
        const struct rfx_onnx_attr *a = &node->attrs[i];
        if (strcmp(a->name, "perm") == 0)
            return a->kind == RFX_ONNX_ATTR_INTS && a->count == 4 &&
                   memcmp(a->ints, to_first, sizeof to_first) == 0;
    }
    return false;
}

/* Returns whether the image is (1, h, w, c): whether a Transpose moves its channels to axis 1,
 * directly or after arithmetic or conversions of pixel values. Converters from other formats write
 * such models. */
static bool has_channels_last(const struct rfx_onnx_model *model, const struct rfx_onnx_value *v) {
    static const char *const values[] = {
        "Cast", "Identity", "Add", "Sub", "Mul", "Div", "QuantizeLinear", "DequantizeLinear"};
    const char *name = v->name;
    for (size_t i = 0; v->rank == 4 && i < model->n_nodes; i++) {
        const struct rfx_onnx_node *node = &model->nodes[i];
        if (node->n_in == 0 || node->n_out == 0 || strcmp(node->in[0], name) != 0) continue;
        if (strcmp(node->op, "Transpose") == 0) return moves_channels_first(node);
        if (rfx_onnx_index_of(node->op, values, 8) >= 0) name = node->out[0];
    }
    return false;
}

bool rfx_onnx_first_image(const struct rfx_onnx_model *model, const struct rfx_onnx_value **image) {
    struct rfx_onnx_names *names = rfx_onnx_names_create(model->arena, NULL);
    bool room = names != NULL;
    *image = NULL;
    for (size_t i = 0; room && i < model->n_tensors; i++)
        room = rfx_onnx_names_put(names, model->tensors[i].name, rfx_onnx_of(-1));
    for (size_t i = 0; room && i < model->n_inputs && *image == NULL; i++)
        if (rfx_onnx_names_find(names, model->inputs[i].name) == NULL) *image = &model->inputs[i];
    return room;
}

int64_t rfx_onnx_channels_last_of(struct rfx_memory *mem, const char *path) {
    struct rfx_onnx_files *files = NULL;
    struct rfx_onnx_model model = {0};
    struct rfx_error err;
    int64_t channels = 0;
    if (rfx_onnx_files_open(mem, path, &files, &err) != RFX_OK) return 0;
    struct rfx_onnx_bytes file = rfx_onnx_files_model(files);
    if (rfx_onnx_model_read(mem, file.file, file.size, false, &model, &err) == RFX_OK) {
        const struct rfx_onnx_value *v;
        if (rfx_onnx_first_image(&model, &v) && v != NULL && has_channels_last(&model, v))
            channels = v->dims[3];
    }
    rfx_onnx_model_free(&model);
    rfx_onnx_files_free(files);
    return channels > 0 ? channels : 0;
}

static void check_image(struct rfx_onnx_import *ctx, const struct rfx_onnx_value *v, bool last) {
    static const int32_t types[] = {0,
                                    RFX_ONNX_FLOAT,
                                    RFX_ONNX_FLOAT16,
                                    RFX_ONNX_BFLOAT16,
                                    RFX_ONNX_DOUBLE,
                                    RFX_ONNX_UINT8,
                                    RFX_ONNX_INT8,
                                    RFX_ONNX_UINT16,
                                    RFX_ONNX_INT16};
    bool known = false;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) known = known || v->type == types[i];
    if (!known)
        FAIL(ctx, RFX_STATUS_UNSUPPORTED,
             "onnx: input '%s' has element type %d; only floats (1, 10, 11, 16), as float32, "
             "uint8 (2), int8 (3), uint16 (4) and int16 (5) are supported",
             v->name, (int)v->type);
    else if (v->rank != 4 && v->rank != 3)
        FAIL(
            ctx, RFX_STATUS_UNSUPPORTED,
            "onnx: input '%s' has rank %d; only images (1, c, h, w) and (c, h, w), or (1, h, w, c) "
            "with a Transpose behind them, are supported",
            v->name, v->rank);
    else if (v->rank == 4 && v->dims[0] > MOST_IMAGES)
        FAIL(ctx, RFX_STATUS_UNSUPPORTED,
             "onnx: input '%s' has a batch of %lld; at most %d are supported", v->name,
             (long long)v->dims[0], MOST_IMAGES);
    else if (v->dims[last ? 3 : v->rank - 3] < 1)
        FAIL(ctx, RFX_STATUS_UNSUPPORTED, "onnx: input '%s' has a symbolic number of channels",
             v->name);
}

/* Adds the image to the graph and binds the input's name to it. */
static void add_image(struct rfx_onnx_import *ctx, const struct rfx_onnx_model *model,
                      const struct rfx_load_options *options) {
    static const struct rfx_onnx_node source = {.op = "Input"};
    const struct rfx_onnx_value *v = find_image(ctx, model);
    if (v == NULL) return;
    bool last = has_channels_last(model, v);
    check_image(ctx, v, last);
    if (rfx_onnx_failed(ctx)) return;
    struct rfx_node node = {.op = RFX_OP_INPUT}, pad;
    ctx->batch = ctx->graph->batch = v->rank == 4 && v->dims[0] > 1 ? v->dims[0] : 0;
    ctx->graph->halves = ctx->graph->halves || is_half(v->type);
    const int64_t *size = last ? v->dims + 1 : v->dims + v->rank - 2;
    node.attr.input.c = v->dims[last ? 3 : v->rank - 3];
    node.attr.input.h = options->h > 0 ? options->h : size[0];
    node.attr.input.w = options->w > 0 ? options->w : size[1];
    if (node.attr.input.h < 1 || node.attr.input.w < 1) {
        FAIL(ctx, RFX_STATUS_UNSUPPORTED,
             "onnx: input '%s' has a symbolic height or width: give the size (--size HxW)",
             v->name);
        return;
    }
    bool other = node.attr.input.h != size[0] || node.attr.input.w != size[1];
    for (int axis = 0; axis < 2 && other && size[0] > 0 && size[1] > 0; axis++)
        ctx->graph->declared[axis] = size[axis];
    ctx->node = &source;
    ctx->node_name = v->name;
    int image = rfx_onnx_emit(ctx, &node, "", NULL, 0);
    if (rfx_fit_pad(&options->fit, node.attr.input.h, node.attr.input.w, &pad)) {
        rfx_fit_note(&pad, node.attr.input.h, node.attr.input.w, ctx->graph);
        image = rfx_onnx_emit1(ctx, &pad, "/padded", image);
    }
    image = rfx_onnx_ordered(ctx, image, last);
    if (rfx_onnx_failed(ctx)) return;
    if (v->rank == 3) { /* (c, h, w): the map without its first axis */
        const int64_t *dims = rfx_onnx_tensor_of(ctx, image)->shape.dims;
        const struct rfx_shape shape = {3, {dims[1], dims[2], dims[3]}};
        image = rfx_onnx_plain_as(ctx, image, &shape);
    }
    if (rfx_onnx_failed(ctx)) return;
    if (!rfx_onnx_names_put(ctx->values, v->name, rfx_onnx_of(image)))
        (void)rfx_onnx_out_of_memory(ctx);
    rfx_onnx_names_set_type(ctx->values, v->name, v->type);
}

/* Refuses input k, which is bound to no value. Either it is an output of an earlier node that is
 * not supported (such as the mask of Dropout), or no earlier node has it as output. */
static void refuse_input(struct rfx_onnx_import *ctx, size_t k) {
    const char *name = ctx->node->in[k];
    for (const struct rfx_onnx_node *n = ctx->nodes; n < ctx->nodes + ctx->n_before; n++)
        for (size_t i = 0; i < n->n_out; i++)
            if (strcmp(n->out[i], name) == 0)
                (void)rfx_onnx_refuse(
                    ctx, RFX_STATUS_UNSUPPORTED,
                    "input %zu ('%.80s') is output %zu of a %.40s, which is not supported", k, name,
                    i, n->op);
    (void)rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED,
                          "input %zu ('%.80s') is made by no node before it (nodes must be "
                          "sorted, without cycles)",
                          k, name);
}

/* Refuses operators of other domains, and sub-graphs: of ONNX's own operators only If may hold
 * graphs. */
static void check_operator(struct rfx_onnx_import *ctx) {
    const struct rfx_onnx_node *node = ctx->node;
    if (!rfx_onnx_is_own_domain(node->domain) && !rfx_onnx_op_is_of(node->op, node->domain))
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "an operator of domain '%.80s'",
                              node->domain);
    for (size_t i = 0; i < node->n_attrs; i++) {
        const struct rfx_onnx_attr *a = &node->attrs[i];
        if (a->kind == RFX_ONNX_ATTR_GRAPH)
            (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "attribute '%.60s' is a sub-graph",
                                  a->name);
        if (a->ref != NULL)
            (void)rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED,
                                  "attribute '%.60s' refers to a function, but is outside of any",
                                  a->name);
    }
}

/* Checks that inputs are bound. Returns whether all operands are constants. */
static bool check_inputs(struct rfx_onnx_import *ctx) {
    const struct rfx_onnx_node *node = ctx->node;
    bool constant = true;
    for (size_t k = 0; !rfx_onnx_failed(ctx) && k < node->n_in; k++) {
        if (!rfx_onnx_has(ctx, k)) continue;
        const struct rfx_onnx_indices *indices = rfx_onnx_indices_of(ctx, node->in[k]);
        if (indices != NULL && rfx_onnx_op_is(ctx, "MaxUnpool")) {
            constant = false;
            continue;
        }
        if (indices != NULL) rfx_onnx_make_indices(ctx, indices);
        const struct rfx_onnx_operand *value = rfx_onnx_names_find(ctx->values, node->in[k]);
        if (value == NULL) refuse_input(ctx, k);
        constant = constant && value != NULL && value->constant != NULL;
    }
    return constant;
}

enum { UNKNOWN_SHOWN = 8, UNKNOWN_TEXT = 300 };

/* Writes each operator of the model that is not supported, with the number of its nodes, as in
 * "Det (2), Unique (1)". A user who exports the model again needs to know all of them. */
static void list_unknown(const struct rfx_onnx_model *model, char text[UNKNOWN_TEXT]) {
    const char *names[UNKNOWN_SHOWN];
    size_t counts[UNKNOWN_SHOWN], n = 0, used = 0;
    bool more = false;
    text[0] = '\0';
    for (size_t i = 0; i < model->n_nodes; i++) {
        const char *op = model->nodes[i].op;
        size_t k = 0;
        if (rfx_onnx_op_is_known(model, &model->nodes[i])) continue;
        while (k < n && strcmp(names[k], op) != 0) k++;
        if (k == UNKNOWN_SHOWN) {
            more = true;
            continue;
        }
        if (k == n) {
            names[n] = op;
            counts[n++] = 0;
        }
        counts[k]++;
    }
    for (size_t k = 0; k < n; k++)
        used += (size_t)snprintf(text + used, UNKNOWN_TEXT - used, "%s%.24s (%zu)",
                                 k == 0 ? "" : ", ", names[k], counts[k]);
    if (more) (void)snprintf(text + used, UNKNOWN_TEXT - used, " and others");
}

static void refuse_unknown(struct rfx_onnx_import *ctx) {
    char all[UNKNOWN_TEXT];
    list_unknown(ctx->model, all);
    if (all[0] == '\0') (void)snprintf(all, sizeof all, "%.24s", ctx->node->op); /* in a function */
    const struct rfx_onnx_node *node = ctx->node;
    if (rfx_onnx_op_is_sized_by_values(node->op) && node->n_in > 0) {
        bool boxes = rfx_late_op_find(node->op) != NULL && node->n_in > 1;
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                              "the size of its result depends on the data, which only run, plan, "
                              "verify and check of one image support: cut the file before it, "
                              "at '%.40s'%s%.40s%s (onnx.utils.extract_model does that); not "
                              "supported in this model: %s",
                              node->in[0], boxes ? " and '" : "", boxes ? node->in[1] : "",
                              boxes ? "'" : "", all);
    }
    (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                          "this operator is not supported; all such operators in this model: %s",
                          all);
}

/* Returns whether the current node, whose operands are constants, is folded. It is not folded if it
 * has a fold function and reads floats from more than a few elements; such nodes are computed as in
 * a run. */
static bool is_folded(const struct rfx_onnx_import *ctx, const struct rfx_onnx_op *op) {
    if (op->fold == NULL || op->fold == op->convert || op->convert == NULL) return op->fold != NULL;
    for (size_t k = 0; k < ctx->node->n_in; k++) {
        const struct rfx_onnx_const *c = rfx_onnx_in(ctx, k).constant;
        if (c == NULL || c->filled || c->elems <= RFX_ONNX_FOLDED_ELEMS) continue;
        if (rfx_onnx_type_is_real(c->type) && c->type != RFX_ONNX_DOUBLE) return false;
    }
    return true;
}

/* Runs a converter and binds output 0 to the node that it returns. Refuses attributes that the
 * converter did not read. */
static void obey(struct rfx_onnx_import *ctx, rfx_onnx_converter *convert) {
    *ctx->attrs_read = 0;
    int node = convert(ctx);
    if (node >= 0) (void)rfx_onnx_set(ctx, 0, rfx_onnx_of(node));
    if (!rfx_onnx_failed(ctx)) rfx_onnx_attrs_are_read(ctx);
}

/* Evaluates the current node, whose operands are constants, when the model is loaded. */
static void convert_constant(struct rfx_onnx_import *ctx, const struct rfx_onnx_op *op) {
    if (is_folded(ctx, op)) {
        obey(ctx, op->fold);
        return;
    }
    *ctx->attrs_read = 0;
    (void)rfx_onnx_compute(ctx, op->convert);
    if (!rfx_onnx_failed(ctx)) {
        rfx_onnx_attrs_are_read(ctx);
    } else if (ctx->status == RFX_STATUS_UNSUPPORTED && op->fold != NULL) {
        ctx->status = RFX_OK;
        obey(ctx, op->fold);
    }
}

/* Sets ctx->node_name: the node's own name or, without one, the name of its first output. In a
 * function the name of the call and a slash come first. */
static void name_node(struct rfx_onnx_import *ctx) {
    const struct rfx_onnx_node *node = ctx->node;
    const char *name = node->name[0] != '\0' ? node->name : node->n_out > 0 ? node->out[0] : "?";
    ctx->node_name = name;
    if (ctx->prefix == NULL) return;
    size_t room = strlen(ctx->prefix) + strlen(name) + 2;
    char *whole = rfx_onnx_alloc(ctx, room, 1);
    if (whole == NULL) return;
    (void)snprintf(whole, room, "%s/%s", ctx->prefix, name);
    ctx->node_name = whole;
}

/* Converts the current node with the functions in its operator's row of the table. */
static void convert_operator(struct rfx_onnx_import *ctx, bool constant) {
    check_operator(ctx);
    if (rfx_onnx_is_late(ctx, constant)) {
        rfx_onnx_convert_late(ctx);
        return;
    }
    if (rfx_onnx_failed(ctx) || rfx_onnx_int8_spec(ctx)) return;
    const struct rfx_onnx_op *op = rfx_onnx_op_find(ctx->node->op);
    if (op == NULL || !rfx_onnx_op_is_of(ctx->node->op, ctx->node->domain) ||
        (rfx_onnx_op_is_sized_by_values(op->name) && (!constant || op->fold == NULL))) {
        refuse_unknown(ctx);
    } else if (constant && (op->fold != NULL || op->convert != NULL)) {
        if (!rfx_onnx_fold_repeat(ctx, op, convert_constant) && !rfx_onnx_failed(ctx))
            convert_constant(ctx, op);
    } else {
        if (ctx->batch > 1) rfx_onnx_batch_node(ctx);
        if (op->convert == NULL)
            (void)rfx_onnx_refuse(
                ctx, RFX_STATUS_UNSUPPORTED,
                "supported on constants only, not on tensors computed from the image");
        if (!rfx_onnx_failed(ctx)) obey(ctx, op->convert);
    }
    rfx_onnx_const_settle(ctx);
}

void rfx_onnx_convert_node(struct rfx_onnx_import *ctx, const struct rfx_onnx_node *node) {
    ctx->node = node;
    name_node(ctx);
    bool constant = check_inputs(ctx);
    if (rfx_onnx_failed(ctx)) return;
    struct rfx_onnx_function *function = rfx_onnx_function_of(ctx->model, node);
    if (function != NULL)
        rfx_onnx_inline_function(ctx, function);
    else if (rfx_onnx_is_branching(node) && rfx_onnx_in(ctx, 0).late > 0)
        rfx_onnx_convert_late(ctx);
    else if (rfx_onnx_is_branching(node))
        rfx_onnx_inline_branch(ctx);
    else
        convert_operator(ctx, constant);
}

/* Makes the tensor of a node an output of the graph. If the tensor is a map in another shape or
 * order, the output is the map, and the output records the shape and order in which it is stored.
 */
static void add_output(struct rfx_onnx_import *ctx, int node, const char *name) {
    struct rfx_graph *graph = ctx->graph;
    const struct rfx_shape shape = rfx_onnx_tensor_of(ctx, node)->shape;
    struct rfx_pixels p;
    if (rfx_onnx_failed(ctx)) return;
    /* a sink of the program reads float32; the file has the output's type */
    ctx->status = rfx_graph_as_numbers(graph, rfx_onnx_map_itself(ctx, node), &node, ctx->err);
    if (rfx_onnx_failed(ctx)) return;
    int k = graph->n_outputs, map = rfx_onnx_map_itself(ctx, node);
    bool described = map == node && rfx_pixels_of(graph, node, &p) &&
                     !rfx_node_is_constant(&graph->nodes[p.map]) &&
                     !rfx_node_is_input(&graph->nodes[p.map]);
    ctx->status = rfx_graph_add_output(graph, described ? p.map : map, name, ctx->err);
    if (rfx_onnx_failed(ctx) || !described) return;
    for (int last = 0; last < 2; last++)
        if (rfx_pixels_are_in_order(&p, last != 0) &&
            rfx_graph_reshape_output(graph, k, &shape, last != 0))
            return;
    graph->outputs[k].node = node;
    graph->outputs[k].part = rfx_node_full_rect(&graph->nodes[node]);
}

void rfx_onnx_add_output(struct rfx_onnx_import *ctx, struct rfx_onnx_operand value,
                         const char *name, int32_t type) {
    static const struct rfx_onnx_node sink = {.op = "Output"};
    ctx->node = &sink;
    ctx->node_name = name;
    add_output(ctx, rfx_onnx_any(ctx, value), name);
    if (rfx_onnx_failed(ctx)) return;
    struct rfx_output *output = &ctx->graph->outputs[ctx->graph->n_outputs - 1];
    output->stored.type = rfx_onnx_stored_type(type);
    output->stored.most = rfx_onnx_most_index(ctx, output->node);
}

static void add_outputs(struct rfx_onnx_import *ctx, const struct rfx_onnx_model *model) {
    if (!rfx_onnx_failed(ctx) && model->n_outputs == 0)
        FAIL(ctx, RFX_STATUS_MALFORMED, "onnx: the model has no outputs");
    for (size_t i = 0; !rfx_onnx_failed(ctx) && i < model->n_outputs; i++) {
        const char *name = model->outputs[i].name;
        const struct rfx_onnx_indices *indices = rfx_onnx_indices_of(ctx, name);
        if (indices != NULL) rfx_onnx_make_indices(ctx, indices);
        if (rfx_onnx_failed(ctx)) return;
        const char *from = ctx->dequantizes ? rfx_onnx_dequantised(ctx, name) : name;
        const struct rfx_onnx_operand *value = rfx_onnx_names_find(ctx->values, from);
        if (rfx_onnx_failed(ctx)) return;
        if (value == NULL) {
            FAIL(ctx, RFX_STATUS_MALFORMED, "onnx: output '%s' is made by no node", name);
            return;
        }
        int32_t type = from == name ? model->outputs[i].type : RFX_ONNX_FLOAT;
        if (from != name) ctx->graph->dequantized = true;
        if (type == 0) type = rfx_onnx_names_type(ctx->values, name);
        rfx_onnx_add_output(ctx, *value, name, type);
    }
}

static enum rfx_status convert_model(struct rfx_onnx_import *ctx,
                                     const struct rfx_load_options *options) {
    const struct rfx_onnx_model *model = ctx->model;
    if (model->opset < OPSET_MIN || model->opset > RFX_ONNX_OPSET_MAX)
        return rfx_fail(ctx->err, RFX_STATUS_UNSUPPORTED,
                        "onnx: opset %lld; %d to %d are supported", (long long)model->opset,
                        OPSET_MIN, RFX_ONNX_OPSET_MAX);
    ctx->opset = model->opset;
    ctx->arena = model->arena;
    ctx->values = rfx_onnx_names_create(model->arena, NULL);
    ctx->used = rfx_onnx_names_create(model->arena, NULL);
    if (ctx->values == NULL || ctx->used == NULL) (void)rfx_onnx_out_of_memory(ctx);
    rfx_onnx_add_initialisers(ctx, model->tensors, model->n_tensors);
    add_image(ctx, model, options);
    ctx->nodes = model->nodes;
    if (options->late) rfx_onnx_late_begin(ctx);
    const struct rfx_onnx_joins *joins = rfx_onnx_joins_find(ctx);
    for (size_t i = 0; !rfx_onnx_failed(ctx) && i < model->n_nodes; i++) {
        ctx->n_before = i;
        if (!rfx_onnx_joins_is_later(joins, i)) rfx_onnx_joins_convert(ctx, joins, i);
    }
    if (rfx_onnx_late_count(ctx) > 0)
        rfx_onnx_late_outputs(ctx);
    else
        add_outputs(ctx, model);
    return rfx_onnx_failed(ctx) ? ctx->status : rfx_model_finish(ctx->graph, options, ctx->err);
}

/* Converts a model. Frees `files`, or makes the graph their owner. */
static enum rfx_status load(struct rfx_memory *mem, struct rfx_onnx_files *files,
                            const struct rfx_load_options *options, struct rfx_graph **out,
                            struct rfx_error *err) {
    struct rfx_onnx_model model = {0};
    uint64_t attrs_read = 0;
    struct rfx_onnx_import ctx = {.mem = mem,
                                  .model = &model,
                                  .files = files,
                                  .err = err,
                                  .order = -1,
                                  .int8 = options->int8,
                                  .dequantizes = options->dequantize,
                                  .attrs_read = &attrs_read};
    struct rfx_onnx_bytes file = rfx_onnx_files_model(files);
    /* Tensors that are kept by name may be needed by no output. */
    enum rfx_status status =
        rfx_onnx_model_read(mem, file.file, file.size, options->n_keep > 0, &model, err);
    if (status != RFX_OK) goto done;
    status = rfx_graph_create(mem, file.file->path, &ctx.graph, err);
    if (status != RFX_OK) goto done;
    ctx.graph->conv = options->conv;
    for (size_t i = 0; i < model.n_nodes; i++) /* QuantizeLinear, QLinearConv, QGemm and so on */
        if (model.nodes[i].op[0] == 'Q') ctx.graph->int8 = options->int8;
    ctx.graph->files = files;
    ctx.graph->files_free = rfx_onnx_files_free;
    status = convert_model(&ctx, options);
    files = NULL;
    if (status == RFX_OK)
        *out = ctx.graph;
    else
        rfx_graph_free(ctx.graph);
done:
    rfx_onnx_late_free(&ctx);
    rfx_onnx_computed_free(&ctx);
    rfx_onnx_const_forget(&ctx);
    rfx_onnx_model_free(&model);
    rfx_onnx_files_free(files);
    return status;
}

static enum rfx_status fail_budget(const char *path, size_t budget, size_t limit,
                                   struct rfx_error *err) {
    double mib = 1 << 20;
    return rfx_fail(err, RFX_STATUS_BUDGET_IMPOSSIBLE,
                    "loading '%.200s' takes more than the budget of %.1f MiB: its structure and "
                    "computed constants need more than %.1f MiB beside %.1f MiB of the process",
                    path != NULL ? path : "the model in memory", (double)budget / mib,
                    (double)limit / mib, (double)RFX_LOAD_PROCESS_BYTES / mib);
}

/* A file, or (path NULL) bytes in memory, or (both NULL) files that are open already. */
static enum rfx_status load_any(struct rfx_memory *mem, const char *path, const void *bytes,
                                size_t size, struct rfx_onnx_files *files,
                                const struct rfx_load_options *options, struct rfx_graph **out,
                                struct rfx_error *err) {
    static const struct rfx_load_options defaults = {0};
    if (options == NULL) options = &defaults;
    size_t before = rfx_memory_mark(mem), budget = options->memory_bytes;
    size_t limit =
        (budget < RFX_LOAD_LEAST_BYTES ? RFX_LOAD_LEAST_BYTES : budget) - RFX_LOAD_PROCESS_BYTES;
    if (budget != 0) rfx_memory_limit_taken(mem, limit);
    enum rfx_status status = RFX_OK;
    if (files != NULL)
        rfx_onnx_files_keep(files);
    else if (path != NULL)
        status = rfx_onnx_files_open(mem, path, &files, err);
    else
        status = rfx_onnx_files_open_bytes(mem, bytes, size, &files, err);
    size_t model_bytes =
        status == RFX_OK && rfx_onnx_files_are_bytes(files) ? rfx_onnx_files_model(files).size : 0;
    if (status == RFX_OK) status = load(mem, files, options, out, err);
    bool met = rfx_memory_taken_limit_was_met(mem);
    rfx_memory_limit_taken(mem, 0);
    if (status == RFX_OK) {
        (*out)->load_bytes = rfx_memory_taken_high_water_bytes(mem) - before;
        (*out)->held_bytes = rfx_memory_taken_bytes(mem) - before;
        (*out)->model_bytes = model_bytes;
    }
    return status != RFX_OK && met ? fail_budget(path, budget, limit, err) : status;
}

enum rfx_status rfx_onnx_load(struct rfx_memory *mem, const char *path,
                              const struct rfx_load_options *options, struct rfx_graph **out,
                              struct rfx_error *err) {
    return load_any(mem, path, NULL, 0, NULL, options, out, err);
}

enum rfx_status rfx_onnx_load_bytes(struct rfx_memory *mem, const void *bytes, size_t size,
                                    const struct rfx_load_options *options, struct rfx_graph **out,
                                    struct rfx_error *err) {
    return load_any(mem, NULL, bytes, size, NULL, options, out, err);
}

enum rfx_status rfx_onnx_load_files(struct rfx_memory *mem, struct rfx_onnx_files *files,
                                    const struct rfx_load_options *options, struct rfx_graph **out,
                                    struct rfx_error *err) {
    return load_any(mem, NULL, NULL, 0, files, options, out, err);
}
