/* Late nodes (rfexec/late/late.h): nodes whose sizes depend on data, and all nodes behind them.
 *
 * The import adds them to a program instead of the graph. Their operands become values of the
 * program: constants are copied, and results of the graph are cut tensors, which become outputs of
 * the graph when all nodes are converted. */
#include <string.h>

#include "rfexec/late/late_ops.h"
#include "rfexec/onnx/import/onnx_import.h"

struct cut {
    int node, value;
    int32_t type;
    const char *name;
};

struct rfx_onnx_late {
    struct rfx_late *late;
    struct rfx_late_block *block; /* to which nodes are added now */
    struct cut *cuts;             /* in the arena */
    size_t n_cuts, cut_capacity;
};

void rfx_onnx_late_begin(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_late *l = rfx_onnx_alloc(ctx, 1, sizeof *l);
    if (l == NULL) return;
    ctx->late = l;
    l->late = rfx_late_create(ctx->mem);
    if (l->late == NULL) (void)rfx_onnx_out_of_memory(ctx);
    if (l->late != NULL) l->block = &l->late->block;
}

void rfx_onnx_late_free(struct rfx_onnx_import *ctx) {
    if (ctx->late != NULL) rfx_late_free(ctx->late->late);
}

size_t rfx_onnx_late_count(const struct rfx_onnx_import *ctx) {
    return ctx->late != NULL && ctx->late->late != NULL ? ctx->late->late->n_nodes : 0;
}

bool rfx_onnx_is_late(const struct rfx_onnx_import *ctx, bool constant) {
    const char *op = ctx->node->op;
    if (ctx->late == NULL || rfx_onnx_failed(ctx)) return false;
    for (size_t k = 0; k < ctx->node->n_in; k++)
        if (rfx_onnx_in(ctx, k).late > 0) return true;
    return !constant && rfx_onnx_op_is_sized_by_values(op) && rfx_late_op_find(op) != NULL;
}

/* Returns the type in which late nodes compute with elements of an ONNX type. */
static enum rfx_type late_type(struct rfx_onnx_import *ctx, int32_t type, const char *name) {
    if (rfx_onnx_type_is_real(type)) return RFX_TYPE_FLOAT32;
    enum rfx_type own = rfx_type_of_onnx(type);
    if (rfx_late_has_type(own)) return own;
    (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                          "operand '%.80s' has element type %d; nodes whose sizes depend on data "
                          "take floats, int32, int64 and bool",
                          name, (int)type);
    return RFX_TYPE_FLOAT32;
}

/* Copies numbers to elements of a type. */
static void put_numbers(enum rfx_type type, const double *reals, const int64_t *ints, int64_t n,
                        void *to) {
    for (int64_t i = 0; i < n; i++) {
        if (type == RFX_TYPE_FLOAT32)
            ((float *)to)[i] = reals != NULL ? (float)reals[i] : (float)ints[i];
        else if (type == RFX_TYPE_INT64)
            ((int64_t *)to)[i] = ints[i];
        else if (type == RFX_TYPE_INT32)
            ((int32_t *)to)[i] = (int32_t)ints[i];
        else
            ((unsigned char *)to)[i] = ints[i] != 0;
    }
}

/* Returns the value of a constant; -1: an error was recorded. */
static int constant_value(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c, const char *name) {
    const double *reals;
    const int64_t *ints;
    void *data = NULL;
    if (c->late > 0) return c->late - 1;
    enum rfx_type type = late_type(ctx, c->type, name);
    rfx_onnx_numbers(ctx, c, &reals, &ints);
    if (rfx_onnx_failed(ctx)) return -1;
    if ((type == RFX_TYPE_FLOAT32 ? reals == NULL && ints == NULL : ints == NULL) && c->elems > 0)
        return rfx_onnx_out_of_memory(ctx);
    int value = rfx_late_add_constant(ctx->late->late, type, &c->shape, &data);
    if (value < 0) return rfx_onnx_out_of_memory(ctx);
    put_numbers(type, reals, ints, c->elems, data);
    c->late = value + 1;
    return value;
}

/* Returns the value of a tensor of the graph, which becomes a cut tensor; -1: an error was
 * recorded. */
static int cut_value(struct rfx_onnx_import *ctx, int node, int32_t type, const char *name) {
    struct rfx_onnx_late *l = ctx->late;
    for (size_t i = 0; i < l->n_cuts; i++)
        if (l->cuts[i].node == node && l->cuts[i].type == type) return l->cuts[i].value;
    (void)late_type(ctx, type, name);
    if (l->n_cuts == l->cut_capacity && !rfx_onnx_failed(ctx)) {
        size_t capacity = l->cut_capacity == 0 ? 16 : 2 * l->cut_capacity;
        struct cut *cuts = rfx_onnx_alloc(ctx, capacity, sizeof *cuts);
        if (cuts == NULL) return -1;
        if (l->n_cuts > 0) memcpy(cuts, l->cuts, l->n_cuts * sizeof *cuts);
        l->cuts = cuts;
        l->cut_capacity = capacity;
    }
    if (rfx_onnx_failed(ctx)) return -1;
    int value = rfx_late_add_value(l->late, (int)l->n_cuts);
    if (value < 0) return rfx_onnx_out_of_memory(ctx);
    l->cuts[l->n_cuts++] = (struct cut){node, value, type, name};
    return value;
}

/* Returns the value of an operand; -1: there was an error. */
static int value_of(struct rfx_onnx_import *ctx, struct rfx_onnx_operand x, int32_t type,
                    const char *name) {
    if (rfx_onnx_failed(ctx)) return -1;
    if (x.late > 0) return x.late - 1;
    return x.constant != NULL ? constant_value(ctx, x.constant, name)
                              : cut_value(ctx, x.node, type, name);
}

/* Sets n_out results of a node to new values, bound to the outputs of the current ONNX node. */
static void bind_results(struct rfx_onnx_import *ctx, struct rfx_late_node *node) {
    for (int k = 0; k < node->n_out && !rfx_onnx_failed(ctx); k++) {
        struct rfx_onnx_operand result = {.node = -1};
        if (!rfx_onnx_gives(ctx, (size_t)k)) continue;
        node->out[k] = rfx_late_add_value(ctx->late->late, -1);
        result.late = node->out[k] + 1;
        if (node->out[k] < 0)
            (void)rfx_onnx_out_of_memory(ctx);
        else
            (void)rfx_onnx_bind_as(ctx, (size_t)k, result, RFX_ONNX_FLOAT);
    }
}

static void read_more(struct rfx_onnx_import *ctx, struct rfx_late_node *node) {
    const struct rfx_late_attributes *more = node->op->more;
    (void)rfx_onnx_attr_choice(ctx, more->text, more->only, &more->only, 1);
    for (int i = 0; i < RFX_LATE_REALS && more->reals[i] != NULL && !rfx_onnx_failed(ctx); i++) {
        const struct rfx_onnx_attr *real = rfx_onnx_attr_find(ctx, more->reals[i]);
        if (real != NULL && real->kind == RFX_ONNX_ATTR_FLOAT)
            node->reals[i] = real->f;
        else
            (void)rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "attribute %s %s", more->reals[i],
                                  real == NULL ? "is missing" : "is no float");
    }
}

/* Sets the attributes of a node from those of the current ONNX node. */
static void read_attributes(struct rfx_onnx_import *ctx, struct rfx_late_node *node) {
    const struct rfx_late_op *op = node->op;
    char why[RFX_LATE_WHY] = "";
    for (int i = 0; i < RFX_LATE_INTS && op->ints[i].name != NULL; i++)
        node->ints[i] = rfx_onnx_attr_int(ctx, op->ints[i].name, op->ints[i].otherwise);
    if (op->more != NULL) read_more(ctx, node);
    if (op->check != NULL && !rfx_onnx_failed(ctx)) {
        op->check(node, why);
        if (why[0] != '\0') (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "%s", why);
    }
    const struct rfx_onnx_attr *list =
        op->list != NULL && !rfx_onnx_failed(ctx) ? rfx_onnx_attr_find(ctx, op->list) : NULL;
    if (list == NULL) return;
    if (list->kind != RFX_ONNX_ATTR_INTS || list->count > INT32_MAX) {
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "attribute %s is no list of integers",
                              op->list);
        return;
    }
    node->n_list = (int)list->count;
    node->list = rfx_memory_calloc(ctx->mem, list->count + 1, sizeof *node->list);
    if (node->list == NULL)
        (void)rfx_onnx_out_of_memory(ctx);
    else if (list->count > 0)
        memcpy(node->list, list->ints, list->count * sizeof *node->list);
}

/* Adds the attribute that is a constant as the last operand. */
static void read_tensor(struct rfx_onnx_import *ctx, struct rfx_late_node *node) {
    const struct rfx_onnx_attr *a = rfx_onnx_attr_find(ctx, node->op->tensor);
    if (a == NULL) return;
    if (a->kind != RFX_ONNX_ATTR_TENSOR) {
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "attribute %s is no tensor",
                              node->op->tensor);
        return;
    }
    struct rfx_onnx_const *c = rfx_onnx_const_of(ctx, a->t);
    if (c != NULL) node->in[node->n_in - 1] = constant_value(ctx, c, node->op->tensor);
}

/* Returns a new node with the operands of the current ONNX node; NULL: there was an error. */
static struct rfx_late_node *add_node(struct rfx_onnx_import *ctx, const struct rfx_late_op *op) {
    const struct rfx_onnx_node *from = ctx->node;
    const size_t given = from->n_in, more = op->tensor != NULL;
    if (given < (size_t)op->least_in || (op->most_in > 0 && given > (size_t)op->most_in) ||
        from->n_out < 1 || (op->most_out > 0 && from->n_out > (size_t)op->most_out) ||
        given + from->n_out >= INT32_MAX)
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "it has %zu inputs and %zu outputs", given,
                              from->n_out);
    int *in = rfx_onnx_alloc(ctx, given + 1, sizeof *in);
    for (size_t k = 0; in != NULL && k < given; k++)
        in[k] = rfx_onnx_has(ctx, k)
                    ? value_of(ctx, rfx_onnx_in(ctx, k), rfx_onnx_in_type(ctx, k), from->in[k])
                    : -1;
    if (rfx_onnx_failed(ctx)) return NULL;
    struct rfx_late_node *node =
        rfx_late_add_node(ctx->late->late, ctx->late->block, op, ctx->node_name,
                          (int)(given + more), (int)from->n_out);
    if (node == NULL) (void)rfx_onnx_out_of_memory(ctx);
    if (node != NULL) memcpy(node->in, in, given * sizeof *in);
    return node;
}

/* Converts a branch of the current If to a block; NULL: there was an error. */
static struct rfx_late_block *convert_branch(struct rfx_onnx_import *ctx, const char *name) {
    struct rfx_late_block *around = ctx->late->block;
    const size_t n = ctx->node->n_out;
    struct rfx_onnx_operand *out = rfx_onnx_alloc(ctx, n + 1, sizeof *out);
    int32_t *types = rfx_onnx_alloc(ctx, n + 1, sizeof *types);
    if (rfx_onnx_failed(ctx)) return NULL;
    struct rfx_late_block *block = rfx_late_add_branch(ctx->late->late, (int)n);
    if (block == NULL) {
        (void)rfx_onnx_out_of_memory(ctx);
        return NULL;
    }
    ctx->late->block = block;
    size_t made = rfx_onnx_late_branch(ctx, name, out, types, n);
    ctx->late->block = around;
    for (size_t k = 0; k < made; k++)
        block->out[k] = value_of(ctx, out[k], types[k], ctx->node->out[k]);
    if (!rfx_onnx_failed(ctx)) return block;
    rfx_late_free_branch(ctx->late->late, block);
    return NULL;
}

static void convert_if(struct rfx_onnx_import *ctx, const struct rfx_late_op *op) {
    struct rfx_late_block *yes = convert_branch(ctx, "then_branch");
    struct rfx_late_block *no = convert_branch(ctx, "else_branch");
    struct rfx_late_node *node = rfx_onnx_failed(ctx) ? NULL : add_node(ctx, op);
    if (node == NULL) {
        rfx_late_free_branch(ctx->late->late, yes);
        rfx_late_free_branch(ctx->late->late, no);
        return;
    }
    node->branches[0] = yes;
    node->branches[1] = no;
    bind_results(ctx, node);
}

void rfx_onnx_convert_late(struct rfx_onnx_import *ctx) {
    const struct rfx_late_op *op = rfx_late_op_find(ctx->node->op);
    if (ctx->batch > 1)
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                              "its size depends on data, and the model is fixed to a batch of %lld",
                              (long long)ctx->batch);
    if (op == NULL || !rfx_onnx_op_is_of(op->name, ctx->node->domain)) {
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                              "it lies behind a node whose size depends on data, and this operator "
                              "is not supported there");
        return;
    }
    if (op->run == NULL) {
        convert_if(ctx, op);
        return;
    }
    *ctx->attrs_read = 0;
    struct rfx_late_node *node = add_node(ctx, op);
    if (node == NULL) return;
    read_attributes(ctx, node);
    if (op->tensor != NULL && !rfx_onnx_failed(ctx)) read_tensor(ctx, node);
    if (!rfx_onnx_failed(ctx)) rfx_onnx_attrs_are_read(ctx);
    bind_results(ctx, node);
}

/* Adds output i of the model to the program. */
static void add_output(struct rfx_onnx_import *ctx, const struct rfx_onnx_value *declared) {
    static const struct rfx_onnx_node sink = {.op = "Output"};
    const struct rfx_onnx_operand *x = rfx_onnx_names_find(ctx->values, declared->name);
    if (x == NULL) {
        ctx->status = rfx_fail(ctx->err, RFX_STATUS_MALFORMED,
                               "onnx: output '%s' is made by no node", declared->name);
        return;
    }
    ctx->node = &sink;
    ctx->node_name = declared->name;
    int32_t type =
        declared->type != 0 ? declared->type : rfx_onnx_names_type(ctx->values, declared->name);
    int value = value_of(ctx, *x, type, declared->name);
    enum rfx_type own = late_type(ctx, type, declared->name);
    if (rfx_onnx_failed(ctx)) return;
    struct rfx_late_output *output = rfx_late_add_output(ctx->late->late, declared->name, value);
    if (output == NULL) {
        (void)rfx_onnx_out_of_memory(ctx);
        return;
    }
    output->type = own;
    output->rank = declared->rank;
    for (int i = 0; i < declared->rank; i++) output->dims[i] = declared->dims[i];
}

/* --- fewer cut tensors ---
 *
 * A file may select one class after the other from a tensor of scores, and compare each with a
 * threshold. The selections and comparisons become late nodes, so that one tensor is cut in place
 * of two for each class. */

static const char *const comparisons[] = {"Equal",       "Greater", "GreaterOrEqual",
                                          "LessOrEqual", "Less",    NULL};
static const char *const selections[] = {"Gather", "Slice", NULL};

/* Makes the ONNX node of the model whose only output is the cut tensor the current one. Returns
 * false if there is none whose operator is in the list. */
static bool enter_maker(struct rfx_onnx_import *ctx, const struct cut *cut,
                        const char *const *ops) {
    for (size_t i = 0; i < ctx->model->n_nodes; i++) {
        const struct rfx_onnx_node *node = &ctx->model->nodes[i];
        if (node->n_out != 1 || strcmp(node->out[0], cut->name) != 0) continue;
        const struct rfx_onnx_operand *made = rfx_onnx_names_find(ctx->values, cut->name);
        ctx->node = node;
        ctx->node_name = node->name[0] != '\0' ? node->name : node->out[0];
        return made != NULL && made->node == cut->node && node->n_in > 0 &&
               rfx_onnx_is_own_domain(node->domain) && rfx_onnx_op_is_one_of(ctx, ops);
    }
    return false;
}

/* Whether operand k of the current node is a cut tensor already. */
static bool is_cut(const struct rfx_onnx_import *ctx, size_t k) {
    const struct rfx_onnx_late *l = ctx->late;
    for (size_t i = 0; i < l->n_cuts; i++)
        if (l->cuts[i].node == rfx_onnx_in(ctx, k).node &&
            l->cuts[i].type == rfx_onnx_in_type(ctx, k))
            return true;
    return false;
}

/* Makes the cut tensor the result of a late node that does what the current ONNX node does, and
 * that runs first. */
static void make_late(struct rfx_onnx_import *ctx, struct cut *cut) {
    struct rfx_late *late = ctx->late->late;
    struct rfx_late_node *node = add_node(ctx, rfx_late_op_find(ctx->node->op));
    if (node == NULL) return;
    read_attributes(ctx, node);
    if (rfx_onnx_failed(ctx)) return;
    node->out[0] = cut->value;
    late->values[cut->value].cut = -1;
    cut->node = -1;
    const struct rfx_late_node last = *node;
    memmove(late->block.nodes + 1, late->block.nodes, (late->block.n - 1) * sizeof last);
    late->block.nodes[0] = last;
}

/* Comparisons of cut tensors with constants or each other. */
static void move_comparisons(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_late *l = ctx->late;
    for (size_t i = 0; i < l->n_cuts && !rfx_onnx_failed(ctx); i++) {
        bool known = enter_maker(ctx, &l->cuts[i], comparisons);
        for (size_t k = 0; known && k < ctx->node->n_in; k++)
            known = rfx_onnx_in(ctx, k).constant != NULL || is_cut(ctx, k);
        if (known) make_late(ctx, &l->cuts[i]);
    }
}

/* Returns the node from which the cut tensor is selected by constant operands; -1: it is not. */
static int selected_from(struct rfx_onnx_import *ctx, const struct cut *cut) {
    bool known = enter_maker(ctx, cut, selections);
    for (size_t k = 1; known && k < ctx->node->n_in; k++)
        known = !rfx_onnx_has(ctx, k) || rfx_onnx_in(ctx, k).constant != NULL;
    return known ? rfx_onnx_in(ctx, 0).node : -1;
}

/* Selections that together are at least half of a tensor. */
static void move_selections(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_late *l = ctx->late;
    const size_t n = l->n_cuts;
    int *from = rfx_onnx_alloc(ctx, n + 1, sizeof *from);
    for (size_t i = 0; from != NULL && i < n; i++) from[i] = selected_from(ctx, &l->cuts[i]);
    for (size_t i = 0; i < n && !rfx_onnx_failed(ctx); i++) {
        int64_t sum = 0, count = 0;
        if (from[i] < 0) continue;
        for (size_t j = 0; j < n; j++) {
            if (from[j] != from[i]) continue;
            sum += rfx_onnx_tensor_of(ctx, l->cuts[j].node)->elems;
            count++;
        }
        const int of = from[i];
        const bool moved = count > 1 && sum >= rfx_onnx_tensor_of(ctx, of)->elems / 2;
        for (size_t j = i; j < n && !rfx_onnx_failed(ctx); j++) {
            if (from[j] != of) continue;
            from[j] = -1;
            if (moved && enter_maker(ctx, &l->cuts[j], selections)) make_late(ctx, &l->cuts[j]);
        }
    }
}

/* Numbers the cut tensors that are left. */
static void close_ranks(struct rfx_onnx_late *l) {
    size_t n = 0;
    for (size_t i = 0; i < l->n_cuts; i++) {
        if (l->cuts[i].node < 0) continue;
        l->late->values[l->cuts[i].value].cut = (int)n;
        l->cuts[n++] = l->cuts[i];
    }
    l->n_cuts = n;
}

void rfx_onnx_late_outputs(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_late *l = ctx->late;
    if (!rfx_onnx_failed(ctx) && ctx->dequantizes)
        ctx->status =
            rfx_fail(ctx->err, RFX_STATUS_UNSUPPORTED,
                     "onnx: the sizes of outputs depend on data: they are not dequantized");
    for (size_t i = 0; i < ctx->model->n_outputs && !rfx_onnx_failed(ctx); i++)
        add_output(ctx, &ctx->model->outputs[i]);
    if (!rfx_onnx_failed(ctx)) move_comparisons(ctx);
    if (!rfx_onnx_failed(ctx)) move_selections(ctx);
    if (!rfx_onnx_failed(ctx)) close_ranks(l);
    for (size_t i = 0; i < l->n_cuts && !rfx_onnx_failed(ctx); i++)
        rfx_onnx_add_output(ctx, rfx_onnx_of(l->cuts[i].node), l->cuts[i].name, l->cuts[i].type);
    if (rfx_onnx_failed(ctx)) return;
    if (l->n_cuts == 0) {
        ctx->status =
            rfx_fail(ctx->err, RFX_STATUS_UNSUPPORTED, "onnx: no output depends on the image");
        return;
    }
    l->late->n_cuts = (int)l->n_cuts;
    ctx->graph->late = l->late;
    ctx->graph->late_free = rfx_late_free;
    l->late = NULL;
}
