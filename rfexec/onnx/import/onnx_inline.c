/* Branches and functions, converted in the place of a node: the branch of an If whose condition is
 * known when the model is loaded, and functions of the model.
 *
 * "Body" means the nodes of a branch or of a function. Each body has its own table of names. A
 * branch also sees the names around the If; a function sees only its inputs. Bodies within bodies
 * are converted by recursion to a fixed depth. The number of their nodes has a limit, because a few
 * functions that call each other can unfold to more nodes than any machine could hold. */
#include <string.h>

#include "rfexec/onnx/import/onnx_import.h"

static bool same_domain(const char *a, const char *b) {
    return strcmp(a, b) == 0 || (rfx_onnx_is_own_domain(a) && rfx_onnx_is_own_domain(b));
}

bool rfx_onnx_is_branching(const struct rfx_onnx_node *node) {
    return strcmp(node->op, "If") == 0 && rfx_onnx_is_own_domain(node->domain);
}

struct rfx_onnx_function *rfx_onnx_function_of(const struct rfx_onnx_model *model,
                                               const struct rfx_onnx_node *node) {
    for (size_t i = 0; i < model->n_functions; i++)
        if (strcmp(model->functions[i].name, node->op) == 0 &&
            same_domain(model->functions[i].domain, node->domain))
            return &model->functions[i];
    return NULL;
}

bool rfx_onnx_op_is_known(const struct rfx_onnx_model *model, const struct rfx_onnx_node *node) {
    return rfx_onnx_op_find(node->op) != NULL || rfx_onnx_is_branching(node) ||
           rfx_onnx_function_of(model, node) != NULL;
}

static struct rfx_onnx_attr *find_attr(struct rfx_onnx_attr *attrs, size_t count,
                                       const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(attrs[i].name, name) == 0) return &attrs[i];
    return NULL;
}

/* Replaces references in the attributes of a function's node. An attribute that refers to an
 * attribute of the function gets the call's value or, without one, the function's default. Without
 * either the attribute is removed. */
static void resolve_attrs(struct rfx_onnx_import *ctx, struct rfx_onnx_node *node) {
    const struct rfx_onnx_node *call = ctx->call;
    const struct rfx_onnx_body *body = ctx->function;
    struct rfx_onnx_attr *own = node->attrs;
    size_t n = node->n_attrs, kept = 0, refs = 0;
    for (size_t i = 0; i < n; i++) refs += own[i].ref != NULL;
    if (refs == 0) return;
    node->attrs = rfx_onnx_alloc(ctx, n, sizeof *own);
    for (size_t i = 0; node->attrs != NULL && i < n; i++) {
        const struct rfx_onnx_attr *a = &own[i];
        if (a->ref != NULL) a = find_attr(call->attrs, call->n_attrs, own[i].ref);
        if (a == NULL) a = find_attr(body->defaults, body->n_defaults, own[i].ref);
        if (a == NULL) continue;
        node->attrs[kept] = *a;
        node->attrs[kept++].name = own[i].name;
    }
    node->n_attrs = kept;
}

/* Removes inputs of a function's node that refer to inputs that the call does not have. */
static void resolve_inputs(struct rfx_onnx_import *ctx, struct rfx_onnx_node *node) {
    const char **own = node->in;
    node->in = rfx_onnx_alloc(ctx, node->n_in + 1, sizeof *own);
    for (size_t k = 0; node->in != NULL && k < node->n_in; k++) {
        const struct rfx_onnx_operand *value = rfx_onnx_names_find(ctx->values, own[k]);
        node->in[k] = value != NULL && !rfx_onnx_is_there(*value) ? "" : own[k];
    }
}

/* Converts the nodes of a body. */
static void convert_nodes(struct rfx_onnx_import *ctx, const struct rfx_onnx_body *body) {
    rfx_onnx_add_initialisers(ctx, body->tensors, body->n_tensors);
    ctx->nodes = body->nodes;
    for (size_t i = 0; !rfx_onnx_failed(ctx) && i < body->n_nodes; i++) {
        struct rfx_onnx_node *node = &body->nodes[i];
        if (ctx->call != NULL) {
            node = rfx_onnx_alloc(ctx, 1, sizeof *node);
            if (node == NULL) return;
            *node = body->nodes[i];
            resolve_attrs(ctx, node);
            resolve_inputs(ctx, node);
        }
        ctx->n_before = i;
        if (!rfx_onnx_failed(ctx)) rfx_onnx_convert_node(ctx, node);
    }
}

/* Sets out[] and types[] to the values and element types of a body's outputs. */
static void find_outputs(struct rfx_onnx_import *ctx, const struct rfx_onnx_body *body,
                         struct rfx_onnx_operand *out, int32_t *types) {
    for (size_t k = 0; !rfx_onnx_failed(ctx) && k < body->n_out; k++) {
        const struct rfx_onnx_indices *indices = rfx_onnx_indices_of(ctx, body->out[k]);
        if (indices != NULL) rfx_onnx_make_indices(ctx, indices);
        const struct rfx_onnx_operand *value = rfx_onnx_names_find(ctx->values, body->out[k]);
        if (value == NULL || !rfx_onnx_is_there(*value)) {
            (void)rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "output '%.80s' is made by no node",
                                  body->out[k]);
            return;
        }
        out[k] = *value;
        types[k] = rfx_onnx_names_type(ctx->values, body->out[k]);
    }
}

static void check_limits(struct rfx_onnx_import *ctx, const struct rfx_onnx_body *body) {
    ctx->n_inlined += (int64_t)body->n_nodes + 1;
    if (ctx->depth >= RFX_ONNX_INLINED_DEPTH)
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                              "functions and branches are nested more than %d deep",
                              RFX_ONNX_INLINED_DEPTH);
    if (ctx->n_inlined > RFX_ONNX_MOST_INLINED)
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                              "functions and branches expand to more than %d nodes",
                              RFX_ONNX_MOST_INLINED);
    if (!rfx_onnx_failed(ctx)) ctx->status = rfx_memory_check_stop(ctx->mem, ctx->err);
}

/* Restores the state of the import after the body of a node. */
static void leave(struct rfx_onnx_import *ctx, const struct rfx_onnx_import *around) {
    ctx->depth = around->depth;
    ctx->values = around->values;
    ctx->function = around->function;
    ctx->call = around->call;
    ctx->prefix = around->prefix;
    ctx->indices = around->indices;
    ctx->opset = around->opset;
    ctx->nodes = around->nodes;
    ctx->n_before = around->n_before;
    ctx->node = around->node;
    ctx->node_name = around->node_name;
}

/* Converts a body with the names `values`, and sets out[] and types[] to its outputs. */
static void convert_body(struct rfx_onnx_import *ctx, const struct rfx_onnx_body *body,
                         struct rfx_onnx_names *values, bool function, struct rfx_onnx_operand *out,
                         int32_t *types) {
    const struct rfx_onnx_import around = *ctx;
    check_limits(ctx, body);
    if (values == NULL) (void)rfx_onnx_out_of_memory(ctx);
    if (rfx_onnx_failed(ctx)) return;
    ctx->depth++;
    ctx->values = values;
    if (function) {
        ctx->function = body;
        ctx->call = around.node;
        ctx->prefix = around.node_name;
        ctx->indices = NULL;
        ctx->opset = body->opset > 0 ? body->opset : around.opset;
    }
    convert_nodes(ctx, body);
    find_outputs(ctx, body, out, types);
    leave(ctx, &around);
}

/* Converts a body and binds the current node's outputs to its outputs. */
static void inline_body(struct rfx_onnx_import *ctx, const struct rfx_onnx_body *body,
                        struct rfx_onnx_names *values, bool function) {
    struct rfx_onnx_operand *out = rfx_onnx_alloc(ctx, body->n_out + 1, sizeof *out);
    int32_t *types = rfx_onnx_alloc(ctx, body->n_out + 1, sizeof *types);
    convert_body(ctx, body, values, function, out, types);
    if (rfx_onnx_failed(ctx)) return;
    for (size_t k = 0; k < body->n_out; k++) (void)rfx_onnx_bind_as(ctx, k, out[k], types[k]);
}

/* Returns a table with the names of a function's inputs, bound to the inputs of the call. */
static struct rfx_onnx_names *names_of_call(struct rfx_onnx_import *ctx,
                                            const struct rfx_onnx_body *body) {
    struct rfx_onnx_names *names = rfx_onnx_names_create(ctx->arena, NULL);
    for (size_t k = 0; names != NULL && k < body->n_in; k++) {
        if (!rfx_onnx_names_put(names, body->in[k], rfx_onnx_in(ctx, k))) return NULL;
        rfx_onnx_names_set_type(names, body->in[k], rfx_onnx_in_type(ctx, k));
    }
    return names;
}

/* Returns whether the model has another function of the same name. Such functions are overloads. */
static bool is_overloaded(const struct rfx_onnx_model *model,
                          const struct rfx_onnx_function *function) {
    for (size_t i = 0; i < model->n_functions; i++) {
        const struct rfx_onnx_function *f = &model->functions[i];
        if (f != function && strcmp(f->name, function->name) == 0 &&
            same_domain(f->domain, function->domain))
            return true;
    }
    return false;
}

void rfx_onnx_inline_function(struct rfx_onnx_import *ctx, struct rfx_onnx_function *function) {
    if (is_overloaded(ctx->model, function)) {
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                              "the model has several functions of this name (overloads)");
        return;
    }
    ctx->status = rfx_onnx_read_function(ctx->model, function, ctx->err);
    if (!rfx_onnx_failed(ctx) && function->body->opset > RFX_ONNX_OPSET_MAX) {
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "its function has opset %lld",
                              (long long)function->body->opset);
        return;
    }
    if (!rfx_onnx_failed(ctx))
        inline_body(ctx, function->body, names_of_call(ctx, function->body), true);
    if (rfx_onnx_failed(ctx) && ctx->depth == 0)
        ctx->status = rfx_fail_within(ctx->err, ctx->status, "function '%.60s' in '%.80s'",
                                      function->name, ctx->node_name);
}

/* Reads the branch `name` of the current If; NULL: an error was recorded. */
static const struct rfx_onnx_body *read_branch(struct rfx_onnx_import *ctx, const char *name) {
    struct rfx_onnx_attr *branch = find_attr(ctx->node->attrs, ctx->node->n_attrs, name);
    if (branch == NULL || branch->kind != RFX_ONNX_ATTR_GRAPH)
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "it has no %s", name);
    if (rfx_onnx_failed(ctx)) return NULL;
    ctx->status = rfx_onnx_read_branch(ctx->model, branch, ctx->err);
    return rfx_onnx_failed(ctx) ? NULL : branch->body;
}

void rfx_onnx_inline_branch(struct rfx_onnx_import *ctx) {
    if (rfx_onnx_in(ctx, 0).node >= 0)
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                              "the condition '%.80s' is computed from the image: only a run could "
                              "say which branch is taken, and its plan would not fit both",
                              ctx->node->in[0]);
    const struct rfx_onnx_body *body =
        read_branch(ctx, rfx_onnx_in_number(ctx, 0) != 0.0 ? "then_branch" : "else_branch");
    if (body != NULL) inline_body(ctx, body, rfx_onnx_names_create(ctx->arena, ctx->values), false);
}

size_t rfx_onnx_late_branch(struct rfx_onnx_import *ctx, const char *name,
                            struct rfx_onnx_operand *out, int32_t *types, size_t n_out) {
    const struct rfx_onnx_body *body = read_branch(ctx, name);
    if (body != NULL && body->n_out != n_out)
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "its %s has %zu outputs, the node has %zu",
                              name, body->n_out, n_out);
    if (!rfx_onnx_failed(ctx))
        convert_body(ctx, body, rfx_onnx_names_create(ctx->arena, ctx->values), false, out, types);
    return rfx_onnx_failed(ctx) ? 0 : n_out;
}
