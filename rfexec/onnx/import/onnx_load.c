/* rfx_onnx_load: opens the file, reads its structure, and converts node after node for one size.
 *
 * Shapes that the file states for inner tensors are ignored; they follow from the image's size.
 * Nodes must be sorted topologically, as the format demands, so one pass suffices. */
#include <stdio.h>
#include <string.h>

#include "layers/graph/graph.h"
#include "layers/graph/op.h"
#include "rfexec/onnx/import/fold/onnx_repeat.h"
#include "rfexec/onnx/import/onnx_import.h"
#include "rfexec/session/model.h"

#define OPSET_MIN 1
#define MOST_IMAGES (1 << 20) /* of a batch that a model is fixed to */

static enum rfx_status no_memory(struct rfx_onnx_import *ctx) {
    return rfx_fail(ctx->err, RFX_STATUS_OUT_OF_MEMORY, "onnx: no memory for the conversion");
}

static bool is_half(int32_t type) {
    return type == RFX_ONNX_FLOAT16 || type == RFX_ONNX_BFLOAT16;
}

enum rfx_status rfx_onnx_add_initialisers(struct rfx_onnx_import *ctx,
                                          struct rfx_onnx_tensor *tensors, size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct rfx_onnx_tensor *t = &tensors[i];
        enum rfx_status status = RFX_OK;
        ctx->graph->halves = ctx->graph->halves || is_half(t->type);
        if (t->external) status = rfx_onnx_files_attach(ctx->files, t, ctx->err);
        if (status != RFX_OK) return status;
        if (rfx_onnx_names_find(ctx->values, t->name) != NULL)
            return rfx_fail(ctx->err, RFX_STATUS_MALFORMED, "onnx: initialiser '%s' is there twice",
                            t->name);
        struct rfx_onnx_operand value = {-1, rfx_onnx_const_of(ctx, t)};
        if (value.constant == NULL || !rfx_onnx_names_put(ctx->values, t->name, value))
            return no_memory(ctx);
    }
    return RFX_OK;
}

/* The one graph input that is not an initialiser. */
static enum rfx_status find_image(struct rfx_onnx_import *ctx, const struct rfx_onnx_model *model,
                                  const struct rfx_onnx_value **out) {
    *out = NULL;
    for (size_t i = 0; i < model->n_inputs; i++) {
        const struct rfx_onnx_value *v = &model->inputs[i];
        if (rfx_onnx_names_find(ctx->values, v->name) != NULL) continue;
        if (*out != NULL)
            return rfx_fail(ctx->err, RFX_STATUS_UNSUPPORTED,
                            "onnx: two inputs, '%s' and '%s'; one image is supported", (*out)->name,
                            v->name);
        *out = v;
    }
    if (*out != NULL) return RFX_OK;
    return rfx_fail(ctx->err, RFX_STATUS_UNSUPPORTED, "onnx: the model has no image input");
}

static bool is_one_of(const char *op, const char *const *ops, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(op, ops[i]) == 0) return true;
    return false;
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

/* Whether the image is (1, h, w, c): a Transpose moves its channels to where ONNX's operators want
 * them, at once or after arithmetic on pixel values. So converters from other formats write it. */
static bool has_channels_last(const struct rfx_onnx_model *model, const struct rfx_onnx_value *v) {
    static const char *const values[] = {"Cast", "Identity", "Add", "Sub", "Mul", "Div"};
    const char *name = v->name;
    for (size_t i = 0; v->rank == 4 && i < model->n_nodes; i++) {
        const struct rfx_onnx_node *node = &model->nodes[i];
        if (node->n_in == 0 || node->n_out == 0 || strcmp(node->in[0], name) != 0) continue;
        if (strcmp(node->op, "Transpose") == 0) return moves_channels_first(node);
        if (is_one_of(node->op, values, sizeof values / sizeof *values)) name = node->out[0];
    }
    return false;
}

/* The first input that is no initialiser. */
static const struct rfx_onnx_value *image_of(const struct rfx_onnx_model *model) {
    for (size_t i = 0; i < model->n_inputs; i++) {
        bool constant = false;
        for (size_t k = 0; k < model->n_tensors; k++)
            constant = constant || strcmp(model->tensors[k].name, model->inputs[i].name) == 0;
        if (!constant) return &model->inputs[i];
    }
    return NULL;
}

int64_t rfx_onnx_channels_last_of(struct rfx_memory *mem, const char *path) {
    struct rfx_onnx_files *files = NULL;
    struct rfx_onnx_model model = {0};
    struct rfx_error err;
    int64_t channels = 0;
    if (rfx_onnx_files_open(mem, path, &files, &err) != RFX_OK) return 0;
    struct rfx_onnx_bytes file = rfx_onnx_files_model(files);
    if (rfx_onnx_model_read(mem, file.file, file.size, false, &model, &err) == RFX_OK) {
        const struct rfx_onnx_value *v = image_of(&model);
        if (v != NULL && has_channels_last(&model, v)) channels = v->dims[3];
    }
    rfx_onnx_model_free(&model);
    rfx_onnx_files_free(files);
    return channels > 0 ? channels : 0;
}

static enum rfx_status check_image(struct rfx_onnx_import *ctx, const struct rfx_onnx_value *v,
                                   bool last) {
    static const int32_t types[] = {0,
                                    RFX_ONNX_FLOAT,
                                    RFX_ONNX_FLOAT16,
                                    RFX_ONNX_BFLOAT16,
                                    RFX_ONNX_DOUBLE,
                                    RFX_ONNX_UINT8,
                                    RFX_ONNX_UINT16};
    bool known = false;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) known = known || v->type == types[i];
    if (!known)
        return rfx_fail(ctx->err, RFX_STATUS_UNSUPPORTED,
                        "onnx: input '%s' has element type %d; only floats (1, 10, 11, 16), as "
                        "float32, uint8 (2) and uint16 (4) are supported",
                        v->name, (int)v->type);
    if (v->rank != 4)
        return rfx_fail(
            ctx->err, RFX_STATUS_UNSUPPORTED,
            "onnx: input '%s' has rank %d; only images (1, c, h, w), or (1, h, w, c) with a "
            "Transpose behind them, are supported",
            v->name, v->rank);
    if (v->dims[0] > MOST_IMAGES)
        return rfx_fail(ctx->err, RFX_STATUS_UNSUPPORTED,
                        "onnx: input '%s' has a batch of %lld; at most %d are supported", v->name,
                        (long long)v->dims[0], MOST_IMAGES);
    if (v->dims[last ? 3 : 1] < 1)
        return rfx_fail(ctx->err, RFX_STATUS_UNSUPPORTED,
                        "onnx: input '%s' has a symbolic number of channels", v->name);
    return RFX_OK;
}

static enum rfx_status add_image(struct rfx_onnx_import *ctx, const struct rfx_onnx_model *model,
                                 const struct rfx_load_options *options) {
    const struct rfx_onnx_value *v;
    enum rfx_status status = find_image(ctx, model, &v);
    bool last = status == RFX_OK && has_channels_last(model, v);
    if (status == RFX_OK) status = check_image(ctx, v, last);
    if (status != RFX_OK) return status;
    struct rfx_node node = {.op = RFX_OP_INPUT};
    ctx->batch = ctx->graph->batch = v->dims[0] > 1 ? v->dims[0] : 0;
    ctx->graph->halves = ctx->graph->halves || is_half(v->type);
    const int64_t *size = last ? v->dims + 1 : v->dims + 2;
    node.attr.input.c = v->dims[last ? 3 : 1];
    node.attr.input.h = options->h > 0 ? options->h : size[0];
    node.attr.input.w = options->w > 0 ? options->w : size[1];
    if (node.attr.input.h < 1 || node.attr.input.w < 1)
        return rfx_fail(
            ctx->err, RFX_STATUS_UNSUPPORTED,
            "onnx: input '%s' has a symbolic height or width: give the size (--size HxW)", v->name);
    bool other = node.attr.input.h != size[0] || node.attr.input.w != size[1];
    for (int axis = 0; axis < 2 && other && size[0] > 0 && size[1] > 0; axis++)
        ctx->graph->declared[axis] = size[axis];
    static const struct rfx_onnx_node source = {.op = "Input"};
    int image;
    ctx->node = &source;
    ctx->node_name = v->name;
    status = rfx_onnx_emit(ctx, &node, "", NULL, 0, &image);
    struct rfx_node pad;
    if (status == RFX_OK && rfx_fit_pad(&options->fit, node.attr.input.h, node.attr.input.w, &pad))
        status = rfx_onnx_emit(ctx, &pad, "/padded", &image, 1, &image);
    if (status == RFX_OK && last) status = rfx_onnx_channels_last(ctx, image, &image);
    if (status != RFX_OK) return status;
    struct rfx_onnx_operand value = {image, NULL};
    if (!rfx_onnx_names_put(ctx->values, v->name, value)) return no_memory(ctx);
    rfx_onnx_names_set_type(ctx->values, v->name, v->type);
    return RFX_OK;
}

/* Input k is no value: a node before makes it, but not here (a mask of Dropout), or none does. */
static enum rfx_status refuse_input(struct rfx_onnx_import *ctx, size_t k) {
    const char *name = ctx->node->in[k];
    for (const struct rfx_onnx_node *n = ctx->nodes; n < ctx->nodes + ctx->n_before; n++)
        for (size_t i = 0; i < n->n_out; i++)
            if (strcmp(n->out[i], name) == 0)
                return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                                       "input %zu ('%.80s') is output %zu of a %.40s, which is not "
                                       "supported",
                                       k, name, i, n->op);
    return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED,
                           "input %zu ('%.80s') is made by no node before it (nodes must be "
                           "sorted, without cycles)",
                           k, name);
}

/* Of ONNX's own operators none but If may hold graphs. */
static enum rfx_status check_operator(struct rfx_onnx_import *ctx) {
    const struct rfx_onnx_node *node = ctx->node;
    bool others = node->domain[0] != '\0' && strcmp(node->domain, "ai.onnx") != 0;
    if (others && !rfx_onnx_op_is_of(node->op, node->domain))
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "an operator of domain '%.80s'",
                               node->domain);
    for (size_t i = 0; i < node->n_attrs; i++) {
        const struct rfx_onnx_attr *a = &node->attrs[i];
        if (a->kind == RFX_ONNX_ATTR_GRAPH)
            return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "attribute '%.60s' is a sub-graph",
                                   a->name);
        if (a->ref != NULL)
            return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED,
                                   "attribute '%.60s' is one of a function, but outside of any",
                                   a->name);
    }
    return RFX_OK;
}

/* Inputs must be known. *constant: all operands are. */
static enum rfx_status check_inputs(struct rfx_onnx_import *ctx, bool *constant) {
    const struct rfx_onnx_node *node = ctx->node;
    *constant = true;
    for (size_t k = 0; k < node->n_in; k++) {
        if (node->in[k][0] == '\0') continue;
        const struct rfx_onnx_indices *indices = rfx_onnx_indices_of(ctx, node->in[k]);
        if (indices != NULL && strcmp(node->op, "MaxUnpool") == 0) {
            *constant = false;
            continue;
        }
        if (indices != NULL) {
            enum rfx_status status = rfx_onnx_make_indices(ctx, indices);
            if (status != RFX_OK) return status;
        }
        const struct rfx_onnx_operand *value = rfx_onnx_names_find(ctx->values, node->in[k]);
        if (value == NULL) return refuse_input(ctx, k);
        *constant = *constant && value->constant != NULL;
    }
    return RFX_OK;
}

enum { UNKNOWN_SHOWN = 8, UNKNOWN_TEXT = 300 };

/* Writes the operators that are not in the table, each once with the number of its nodes: "Einsum
 * (2), Det". Who exports the model again wants to know all. */
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

static enum rfx_status refuse_unknown(struct rfx_onnx_import *ctx) {
    char all[UNKNOWN_TEXT];
    list_unknown(ctx->model, all);
    if (all[0] == '\0') (void)snprintf(all, sizeof all, "%.24s", ctx->node->op); /* in a function */
    const struct rfx_onnx_node *node = ctx->node;
    if (rfx_onnx_op_is_sized_by_values(node->op) && node->n_in > 0) {
        bool boxes = strcmp(node->op, "NonMaxSuppression") == 0 && node->n_in > 1;
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                               "only a run could say how large its result is: cut the file before "
                               "it, at '%.40s'%s%.40s%s (onnx.utils.extract_model does); all that "
                               "is not supported in this model: %s",
                               node->in[0], boxes ? " and '" : "", boxes ? node->in[1] : "",
                               boxes ? "'" : "", all);
    }
    return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                           "this operator is not supported; all such in this model: %s", all);
}

/* The end of a node: numbers that it asked for go. */
static enum rfx_status settle(struct rfx_onnx_import *ctx, enum rfx_status status) {
    if (status != RFX_OK || rfx_onnx_const_settle(ctx)) return status;
    return no_memory(ctx);
}

/* Whether the current node, of constants, is folded: it makes sizes or moves no numbers. Others are
 * computed as in a run. */
static bool is_folded(const struct rfx_onnx_import *ctx, const struct rfx_onnx_op *op) {
    if (op->fold == NULL || op->fold == op->convert || op->convert == NULL) return op->fold != NULL;
    for (size_t k = 0; k < ctx->node->n_in; k++) {
        const struct rfx_onnx_const *c = rfx_onnx_in(ctx, k).constant;
        if (c == NULL || c->filled || c->elems <= RFX_ONNX_FOLDED_ELEMS) continue;
        if (rfx_onnx_type_is_real(c->type) && c->type != RFX_ONNX_DOUBLE) return false;
    }
    return true;
}

/* Converts (or folds) the node; what it says that the conversion does not ask for is refused. */
static enum rfx_status obey(struct rfx_onnx_import *ctx, rfx_onnx_convert convert) {
    *ctx->attrs_read = 0;
    enum rfx_status status = convert(ctx);
    return status == RFX_OK ? rfx_onnx_attrs_are_read(ctx) : status;
}

/* Evaluates the current node, of constants, when the model is loaded. */
static enum rfx_status convert_constant(struct rfx_onnx_import *ctx, const struct rfx_onnx_op *op) {
    if (is_folded(ctx, op)) return obey(ctx, op->fold);
    *ctx->attrs_read = 0;
    enum rfx_status status = rfx_onnx_compute(ctx, op->convert);
    if (status == RFX_OK) return rfx_onnx_attrs_are_read(ctx);
    return status == RFX_STATUS_UNSUPPORTED && op->fold != NULL ? obey(ctx, op->fold) : status;
}

/* The same, of constants that may repeat: coordinates, say. */
static enum rfx_status convert_repeats(struct rfx_onnx_import *ctx, const struct rfx_onnx_op *op) {
    bool done;
    enum rfx_status status = rfx_onnx_fold_repeat(ctx, op, convert_constant, &done);
    return status != RFX_OK || done ? status : convert_constant(ctx, op);
}

/* The current node's name: its own or its first output's, in a function behind its call's. */
static bool name_node(struct rfx_onnx_import *ctx) {
    const struct rfx_onnx_node *node = ctx->node;
    const char *name = node->name[0] != '\0' ? node->name : node->n_out > 0 ? node->out[0] : "?";
    ctx->node_name = name;
    if (ctx->prefix == NULL) return true;
    size_t room = strlen(ctx->prefix) + strlen(name) + 2;
    char *whole = rfx_arena_alloc(ctx->arena, room, 1);
    if (whole == NULL) return false;
    (void)snprintf(whole, room, "%s/%s", ctx->prefix, name);
    ctx->node_name = whole;
    return true;
}

/* Converts the current node, of which an operator says how. */
static enum rfx_status convert_operator(struct rfx_onnx_import *ctx, bool constant) {
    enum rfx_status status = check_operator(ctx);
    if (status != RFX_OK) return status;
    const struct rfx_onnx_op *op = rfx_onnx_op_find(ctx->node->op);
    if (op == NULL || !rfx_onnx_op_is_of(ctx->node->op, ctx->node->domain) ||
        (!constant && rfx_onnx_op_is_sized_by_values(op->name)))
        return refuse_unknown(ctx);
    if (constant && (op->fold != NULL || op->convert != NULL))
        return settle(ctx, convert_repeats(ctx, op));
    if (ctx->batch > 1) status = rfx_onnx_batch_node(ctx);
    if (status != RFX_OK) return status;
    if (op->convert == NULL)
        return rfx_onnx_refuse(
            ctx, RFX_STATUS_UNSUPPORTED,
            "supported on constants only, not on what is computed from the image");
    return settle(ctx, obey(ctx, op->convert));
}

enum rfx_status rfx_onnx_convert_node(struct rfx_onnx_import *ctx,
                                      const struct rfx_onnx_node *node) {
    bool constant;
    ctx->node = node;
    if (!name_node(ctx)) return no_memory(ctx);
    enum rfx_status status = check_inputs(ctx, &constant);
    if (status != RFX_OK) return status;
    struct rfx_onnx_function *function = rfx_onnx_function_of(ctx->model, node);
    if (function != NULL) return rfx_onnx_inline_function(ctx, function);
    if (rfx_onnx_is_branching(node)) return rfx_onnx_inline_branch(ctx);
    return convert_operator(ctx, constant);
}

/* Declares the tensor of a node an output: where it is a map in another shape or order, the map,
 * which is then stored so. */
static enum rfx_status add_output(struct rfx_onnx_import *ctx, int node, const char *name) {
    struct rfx_graph *graph = ctx->graph;
    const struct rfx_shape shape = rfx_onnx_tensor_of(ctx, node)->shape;
    struct rfx_pixels p;
    int k = graph->n_outputs, map = rfx_onnx_map_itself(ctx, node);
    bool described = map == node && rfx_pixels_of(graph, node, &p) &&
                     !rfx_node_is_constant(&graph->nodes[p.map]) &&
                     !rfx_node_is_input(&graph->nodes[p.map]);
    enum rfx_status status = rfx_graph_add_output(graph, described ? p.map : map, name, ctx->err);
    if (status != RFX_OK || !described) return status;
    for (int last = 0; last < 2; last++)
        if (rfx_pixels_are_in_order(&p, last != 0) &&
            rfx_graph_reshape_output(graph, k, &shape, last != 0))
            return RFX_OK;
    graph->outputs[k].node = node;
    graph->outputs[k].part = rfx_node_full_rect(&graph->nodes[node]);
    return RFX_OK;
}

static enum rfx_status add_outputs(struct rfx_onnx_import *ctx,
                                   const struct rfx_onnx_model *model) {
    if (model->n_outputs == 0)
        return rfx_fail(ctx->err, RFX_STATUS_MALFORMED, "onnx: the model has no outputs");
    for (size_t i = 0; i < model->n_outputs; i++) {
        const char *name = model->outputs[i].name;
        const struct rfx_onnx_indices *indices = rfx_onnx_indices_of(ctx, name);
        enum rfx_status status = indices != NULL ? rfx_onnx_make_indices(ctx, indices) : RFX_OK;
        if (status != RFX_OK) return status;
        const struct rfx_onnx_operand *value = rfx_onnx_names_find(ctx->values, name);
        if (value == NULL)
            return rfx_fail(ctx->err, RFX_STATUS_MALFORMED, "onnx: output '%s' is made by no node",
                            name);
        static const struct rfx_onnx_node sink = {.op = "Output"};
        int node;
        ctx->node = &sink;
        ctx->node_name = name;
        status = rfx_onnx_any(ctx, *value, &node);
        if (status == RFX_OK) status = add_output(ctx, node, name);
        if (status != RFX_OK) return status;
        int32_t type = model->outputs[i].type;
        if (type == 0) type = rfx_onnx_names_type(ctx->values, name);
        struct rfx_output *output = &ctx->graph->outputs[ctx->graph->n_outputs - 1];
        output->stored.type = rfx_onnx_stored_type(type);
        output->stored.most = rfx_onnx_most_index(ctx, output->node);
    }
    return RFX_OK;
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
    ctx->values = rfx_onnx_names_create(model->arena);
    ctx->used = rfx_onnx_names_create(model->arena);
    if (ctx->values == NULL || ctx->used == NULL) return no_memory(ctx);
    enum rfx_status status = rfx_onnx_add_initialisers(ctx, model->tensors, model->n_tensors);
    if (status == RFX_OK) status = add_image(ctx, model, options);
    ctx->nodes = model->nodes;
    for (size_t i = 0; status == RFX_OK && i < model->n_nodes; i++) {
        ctx->n_before = i;
        status = rfx_onnx_convert_node(ctx, &model->nodes[i]);
    }
    if (status == RFX_OK) status = add_outputs(ctx, model);
    return status == RFX_OK ? rfx_model_finish(ctx->graph, options, ctx->err) : status;
}

/* Takes the files over. */
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
                                  .attrs_read = &attrs_read};
    struct rfx_onnx_bytes file = rfx_onnx_files_model(files);
    /* What is kept by name may be what no output needs. */
    enum rfx_status status =
        rfx_onnx_model_read(mem, file.file, file.size, options->n_keep > 0, &model, err);
    if (status != RFX_OK) goto done;
    status = rfx_graph_create(mem, file.file->path, &ctx.graph, err);
    if (status != RFX_OK) goto done;
    ctx.graph->conv = options->conv;
    ctx.graph->files = files;
    ctx.graph->files_free = rfx_onnx_files_free;
    status = convert_model(&ctx, options);
    files = NULL;
    if (status == RFX_OK)
        *out = ctx.graph;
    else
        rfx_graph_free(ctx.graph);
done:
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
