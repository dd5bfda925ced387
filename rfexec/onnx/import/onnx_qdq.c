/* Joins DequantizeLinear, operator, QuantizeLinear to one operator on bytes, as ONNX Runtime does.
 *
 * Groups are found by names before the import. The operator of a group is not converted where it
 * stands, but with the QuantizeLinear behind it: then scales and zero points are known. If these do
 * not fit, operator and QuantizeLinear are converted as they are written, in float32. A
 * DequantizeLinear that is left without readers is dropped when the graph is finished. */
#include <math.h>
#include <string.h>

#include "rfexec/onnx/import/onnx_import.h"

struct rfx_onnx_joins {
    const struct rfx_onnx_names *makers; /* tensor name -> index of the node that makes it */
    int *ended; /* per node: of a QuantizeLinear that ends a group, the group's operator; else -1 */
    bool *later; /* per node: it is converted with the QuantizeLinear behind it */
};

static bool is_own(const struct rfx_onnx_node *node, const char *op) {
    return rfx_onnx_is_own_domain(node->domain) && strcmp(node->op, op) == 0;
}

/* Operators that only move bytes or choose among them: joined if the scale stays the same. */
static bool moves_bytes(const struct rfx_onnx_node *node) {
    static const char *const names[] = {"MaxPool",   "Reshape", "Flatten",
                                        "Transpose", "Squeeze", "Unsqueeze"};
    return rfx_onnx_is_own_domain(node->domain) && rfx_onnx_index_of(node->op, names, 6) >= 0 &&
           (node->n_out == 1 || node->out[1][0] == '\0');
}

static bool is_clamp(const struct rfx_onnx_node *node) {
    return (is_own(node, "Relu") || is_own(node, "Clip")) && node->n_in > 0;
}

static bool computes(const struct rfx_onnx_node *node) {
    static const char *const names[] = {"Conv",        "Add",    "Mul",  "GlobalAveragePool",
                                        "AveragePool", "Concat", "Gemm", "MatMul",
                                        "Softmax"};
    return rfx_onnx_is_own_domain(node->domain) && rfx_onnx_index_of(node->op, names, 9) >= 0;
}

/* Returns the index of the node that makes a tensor, or -1. */
static int maker_of(const struct rfx_onnx_joins *joins, const char *name) {
    if (name[0] == '\0') return -1;
    const struct rfx_onnx_operand *made = rfx_onnx_names_find(joins->makers, name);
    return made == NULL ? -1 : made->node;
}

/* Returns the DequantizeLinear that makes input k of a node, or NULL. */
static const struct rfx_onnx_node *dequantised(const struct rfx_onnx_import *ctx,
                                               const struct rfx_onnx_joins *joins,
                                               const struct rfx_onnx_node *node, size_t k) {
    int maker = k < node->n_in ? maker_of(joins, node->in[k]) : -1;
    const struct rfx_onnx_node *by = maker < 0 ? NULL : &ctx->model->nodes[maker];
    return by != NULL && is_own(by, "DequantizeLinear") && by->n_in >= 2 ? by : NULL;
}

/* Counts the readers of each node's first output; an output of the model counts as two. */
static void count_readers(const struct rfx_onnx_model *model, const struct rfx_onnx_joins *joins,
                          int *readers) {
    for (size_t i = 0; i < model->n_nodes; i++)
        for (size_t k = 0; k < model->nodes[i].n_in; k++) {
            int maker = maker_of(joins, model->nodes[i].in[k]);
            if (maker >= 0) readers[maker]++;
        }
    for (size_t i = 0; i < model->n_outputs; i++) {
        int maker = maker_of(joins, model->outputs[i].name);
        if (maker >= 0) readers[maker] += 2;
    }
}

/* Marks the group that a QuantizeLinear ends, if there is one. */
static void mark_group(const struct rfx_onnx_import *ctx, struct rfx_onnx_joins *joins, size_t q,
                       const int *readers) {
    const struct rfx_onnx_node *nodes = ctx->model->nodes;
    int at = nodes[q].n_in >= 2 ? maker_of(joins, nodes[q].in[0]) : -1, clamp = -1;
    if (at >= 0 && is_clamp(&nodes[at]) && readers[at] == 1) {
        clamp = at;
        at = maker_of(joins, nodes[at].in[0]);
    }
    if (at < 0 || readers[at] != 1 || nodes[at].n_in == 0) return;
    if (!computes(&nodes[at]) && !(clamp < 0 && moves_bytes(&nodes[at]))) return;
    if (dequantised(ctx, joins, &nodes[at], 0) == NULL) return;
    joins->ended[q] = at;
    joins->later[at] = true;
    if (clamp >= 0) joins->later[clamp] = true;
}

struct rfx_onnx_joins *rfx_onnx_joins_find(struct rfx_onnx_import *ctx) {
    const struct rfx_onnx_model *model = ctx->model;
    struct rfx_onnx_joins *joins = rfx_onnx_alloc(ctx, 1, sizeof *joins);
    struct rfx_onnx_names *makers = rfx_onnx_names_create(ctx->arena, NULL);
    int *readers = rfx_onnx_alloc(ctx, model->n_nodes + 1, sizeof *readers);
    if (joins == NULL || readers == NULL) return NULL;
    *joins = (struct rfx_onnx_joins){
        .makers = makers,
        .ended = rfx_onnx_alloc(ctx, model->n_nodes + 1, sizeof *joins->ended),
        .later = rfx_onnx_alloc(ctx, model->n_nodes + 1, sizeof *joins->later)};
    bool room = makers != NULL && joins->ended != NULL && joins->later != NULL, branches = false;
    for (size_t i = 0; room && i < model->n_nodes; i++) {
        branches = branches || rfx_onnx_is_branching(&model->nodes[i]);
        joins->ended[i] = -1;
        if (model->nodes[i].n_out > 0)
            room = rfx_onnx_names_put(makers, model->nodes[i].out[0], rfx_onnx_of((int)i));
    }
    if (!room) {
        (void)rfx_onnx_out_of_memory(ctx);
        return NULL;
    }
    count_readers(model, joins, readers);
    if (ctx->int8 == RFX_INT8_SPEC) return joins;
    for (size_t i = 0; i < model->n_nodes && !branches; i++) /* a branch may read any tensor */
        if (is_own(&model->nodes[i], "QuantizeLinear")) mark_group(ctx, joins, i, readers);
    return joins;
}

bool rfx_onnx_joins_is_later(const struct rfx_onnx_joins *joins, size_t node) {
    return joins->later[node];
}

/* Returns the constant with this name, or NULL. */
static struct rfx_onnx_const *constant(const struct rfx_onnx_import *ctx, const char *name) {
    const struct rfx_onnx_operand *value = rfx_onnx_names_find(ctx->values, name);
    return value == NULL ? NULL : value->constant;
}

/* Returns input k of a node, or "". */
static const char *input(const struct rfx_onnx_node *node, size_t k) {
    return k < node->n_in ? node->in[k] : "";
}

/* Reads a constant of one element. Returns false if there is none, or it has more elements. */
static bool number(struct rfx_onnx_import *ctx, const char *name, double *out) {
    struct rfx_onnx_const *c = constant(ctx, name);
    if (c == NULL || c->elems != 1) return false;
    const double *reals = rfx_onnx_const_reals(ctx, c);
    *out = reals == NULL ? 0.0 : reals[0];
    return reals != NULL;
}

/* The scale, the zero point and the element type of one QuantizeLinear or DequantizeLinear. */
struct step {
    double scale, zero;
    int32_t type;
};

/* Returns the element type of a tensor. */
static int32_t type_of(const struct rfx_onnx_import *ctx, const char *name) {
    const struct rfx_onnx_const *c = constant(ctx, name);
    return c != NULL ? c->type : rfx_onnx_names_type(ctx->values, name);
}

/* Reads them. Without a zero point, the type is that of the tensor that a DequantizeLinear reads,
 * and uint8 for a QuantizeLinear. Returns false if there is more than one scale, or the type is not
 * of one byte. */
static bool read_step(struct rfx_onnx_import *ctx, const struct rfx_onnx_node *node,
                      struct step *s) {
    const struct rfx_onnx_const *zero = constant(ctx, input(node, 2));
    *s = (struct step){.type = RFX_ONNX_UINT8};
    if (zero != NULL)
        s->type = zero->type;
    else if (is_own(node, "DequantizeLinear"))
        s->type = type_of(ctx, node->in[0]);
    bool read = number(ctx, input(node, 1), &s->scale);
    if (zero != NULL) read = number(ctx, input(node, 2), &s->zero) && read;
    for (size_t i = 0; i < node->n_attrs; i++)
        read = read && strcmp(node->attrs[i].name, "axis") == 0;
    return read && (zero != NULL) == (input(node, 2)[0] != '\0') &&
           rfx_type_is_byte(rfx_type_of_onnx(s->type));
}

static int64_t int_attr(const struct rfx_onnx_node *node, const char *name, int64_t otherwise) {
    for (size_t i = 0; i < node->n_attrs; i++)
        if (strcmp(node->attrs[i].name, name) == 0) return node->attrs[i].i;
    return otherwise;
}

static bool is_float_attr(const struct rfx_onnx_node *node, const char *name, float value) {
    for (size_t i = 0; i < node->n_attrs; i++)
        if (strcmp(node->attrs[i].name, name) == 0) return node->attrs[i].f == value;
    return true;
}

/* Returns whether `by` dequantises constant weights of one byte, with one scale, or one per output
 * channel along `axis`. */
static bool weights_fit(const struct rfx_onnx_import *ctx, const struct rfx_onnx_node *by,
                        int64_t axis) {
    const struct rfx_onnx_const *w = by == NULL ? NULL : constant(ctx, by->in[0]);
    const struct rfx_onnx_const *scale = by == NULL ? NULL : constant(ctx, by->in[1]);
    if (w == NULL || scale == NULL || !rfx_type_is_byte(rfx_type_of_onnx(w->type))) return false;
    if (input(by, 2)[0] != '\0' && constant(ctx, input(by, 2)) == NULL) return false;
    if (int_attr(by, "block_size", 0) != 0) return false;
    int64_t along = int_attr(by, "axis", 1);
    return scale->elems == 1 || (along < 0 ? along + w->shape.rank : along) == axis;
}

/* Returns whether a clamp between the operator and the QuantizeLinear changes nothing: its bounds
 * are quantised to the ends of the type, so all numbers beyond them are too. */
static bool is_idle(struct rfx_onnx_import *ctx, const struct rfx_onnx_node *clamp,
                    const struct step *to) {
    double low = to->type == RFX_ONNX_INT8 ? -128.0 : 0.0, min = -INFINITY, max = INFINITY;
    float scale = (float)to->scale;
    bool given = true;
    if (is_own(clamp, "Relu")) return to->zero <= low;
    for (size_t i = 0; i < clamp->n_attrs; i++) { /* before opset 11 */
        if (strcmp(clamp->attrs[i].name, "min") == 0) min = (double)clamp->attrs[i].f;
        if (strcmp(clamp->attrs[i].name, "max") == 0) max = (double)clamp->attrs[i].f;
    }
    if (input(clamp, 1)[0] != '\0') given = number(ctx, clamp->in[1], &min);
    if (input(clamp, 2)[0] != '\0') given = number(ctx, clamp->in[2], &max) && given;
    return given && (double)rintf((float)min / scale) + to->zero <= low &&
           (double)rintf((float)max / scale) + to->zero >= low + 255.0;
}

/* Returns whether the bias is absent, or integers with the scale of the products, or floats. */
static bool bias_fits(struct rfx_onnx_import *ctx, const struct rfx_onnx_joins *joins,
                      const struct rfx_onnx_node *node) {
    const struct rfx_onnx_node *by = dequantised(ctx, joins, node, 2);
    bool shifted = false;
    if (input(node, 2)[0] == '\0') return true;
    const struct rfx_onnx_const *floats = constant(ctx, node->in[2]);
    if (by == NULL)
        return is_own(node, "Conv") && floats != NULL && rfx_onnx_type_is_real(floats->type);
    const struct rfx_onnx_const *bias = constant(ctx, by->in[0]);
    if (bias == NULL || bias->type != RFX_ONNX_INT32) return false;
    struct rfx_onnx_const *zeros = constant(ctx, input(by, 2));
    if (zeros == NULL) return input(by, 2)[0] == '\0';
    const int64_t *all = rfx_onnx_const_ints(ctx, zeros);
    for (int64_t i = 0; all != NULL && i < zeros->elems; i++) shifted = shifted || all[i] != 0;
    return all != NULL && !shifted;
}

/* The joined node: its inputs are names, "" for none. */
enum { MOST_JOINED = 64, MOST_INPUTS = 2 + 3 * MOST_JOINED };
struct joined {
    const char *op, *domain, *in[MOST_INPUTS];
    size_t n_in;
};

/* Appends inputs [from, to) of a node. */
static void put(struct joined *j, const struct rfx_onnx_node *by, size_t from, size_t to) {
    for (size_t k = from; k < to; k++) j->in[j->n_in++] = input(by, k);
}

/* Describes a Concat of up to MOST_JOINED maps. */
static bool describe_concat(struct rfx_onnx_import *ctx, const struct rfx_onnx_joins *joins,
                            const struct rfx_onnx_node *node, const struct rfx_onnx_node *q,
                            struct joined *j) {
    struct step to, from;
    int64_t axis = int_attr(node, "axis", 1);
    bool fits = read_step(ctx, q, &to) && node->n_in <= MOST_JOINED && (axis == 1 || axis == -3);
    j->op = "QLinearConcat";
    j->domain = "com.microsoft";
    put(j, q, 1, 3);
    for (size_t k = 0; k < node->n_in && fits; k++) {
        const struct rfx_onnx_node *x = dequantised(ctx, joins, node, k);
        const struct rfx_onnx_operand *value =
            x == NULL ? NULL : rfx_onnx_names_find(ctx->values, x->in[0]);
        fits = value != NULL && read_step(ctx, x, &from) && from.type == to.type &&
               rfx_onnx_shape(ctx, *value)->rank == 4;
        if (fits) put(j, x, 0, 3);
    }
    return fits;
}

/* Returns whether a tensor is one row: all its axes but the last one are 1. */
static bool is_row(const struct rfx_onnx_import *ctx, const char *name) {
    const struct rfx_onnx_operand *value = rfx_onnx_names_find(ctx->values, name);
    if (value == NULL || value->constant != NULL) return false;
    const struct rfx_shape *shape = rfx_onnx_shape(ctx, *value);
    return shape->rank > 0 && rfx_shape_product(shape, 0, shape->rank - 1) == 1;
}

/* Describes the product of one row and a constant matrix; x and y are its DequantizeLinears. */
static bool describe_matmul(const struct rfx_onnx_import *ctx, const struct rfx_onnx_node *x,
                            const struct rfx_onnx_node *y, const struct rfx_onnx_node *q,
                            struct joined *j) {
    const struct rfx_onnx_const *w = constant(ctx, y->in[0]);
    j->op = "QLinearMatMul";
    put(j, q, 1, 3);
    return weights_fit(ctx, y, 1) && w->shape.rank == 2 && is_row(ctx, x->in[0]);
}

/* Describes the joined form of a group. Returns false if its numbers do not fit. */
static bool describe(struct rfx_onnx_import *ctx, const struct rfx_onnx_joins *joins,
                     const struct rfx_onnx_node *node, const struct rfx_onnx_node *q,
                     const struct rfx_onnx_node *clamp, struct joined *j) {
    const struct rfx_onnx_node *x = dequantised(ctx, joins, node, 0),
                               *y = dequantised(ctx, joins, node, 1);
    struct step from, to, other;
    *j = (struct joined){.domain = ""};
    if (!read_step(ctx, x, &from) || !read_step(ctx, q, &to) || from.type != to.type) return false;
    if (clamp != NULL && !is_idle(ctx, clamp, &to)) return false;
    if (moves_bytes(node)) {
        if (from.scale != to.scale || from.zero != to.zero || node->n_in > MOST_INPUTS)
            return false;
        j->op = node->op;
        put(j, x, 0, 1);
        put(j, node, 1, node->n_in);
        return true;
    }
    if (is_own(node, "Concat")) return describe_concat(ctx, joins, node, q, j);
    put(j, x, 0, 3);
    if (is_own(node, "GlobalAveragePool") || is_own(node, "AveragePool") ||
        is_own(node, "Softmax")) {
        j->op = is_own(node, "Softmax")       ? "QLinearSoftmax"
                : is_own(node, "AveragePool") ? "QLinearAveragePool"
                                              : "QLinearGlobalAveragePool";
        j->domain = "com.microsoft";
        put(j, q, 1, 3);
        return true;
    }
    if (y == NULL) return false;
    put(j, y, 0, 3);
    if (is_own(node, "Add") || is_own(node, "Mul")) {
        j->op = is_own(node, "Add") ? "QLinearAdd" : "QLinearMul";
        j->domain = "com.microsoft";
        put(j, q, 1, 3);
        return read_step(ctx, y, &other) && other.type == from.type &&
               (constant(ctx, x->in[0]) == NULL || constant(ctx, y->in[0]) == NULL);
    }
    if (is_own(node, "MatMul")) return describe_matmul(ctx, x, y, q, j);
    const struct rfx_onnx_node *bias = dequantised(ctx, joins, node, 2);
    bool gemm = is_own(node, "Gemm");
    int64_t axis = gemm && int_attr(node, "transB", 0) == 0 ? 1 : 0;
    if (!weights_fit(ctx, y, axis) || !bias_fits(ctx, joins, node)) return false;
    const char *added = bias != NULL ? bias->in[0] : input(node, 2);
    j->op = gemm ? "QGemm" : "QLinearConv";
    j->domain = gemm ? "com.microsoft" : "";
    if (gemm) j->in[j->n_in++] = added;
    put(j, q, 1, 3);
    if (!gemm) j->in[j->n_in++] = added;
    return !gemm || (int_attr(node, "transA", 0) == 0 && is_float_attr(node, "alpha", 1.0f) &&
                     is_float_attr(node, "beta", 1.0f));
}

/* Converts the joined node in the place of `node` and `q`. */
static void convert_joined(struct rfx_onnx_import *ctx, const struct rfx_onnx_node *node,
                           const struct rfx_onnx_node *q, const struct joined *j) {
    struct rfx_onnx_node *made = rfx_onnx_alloc(ctx, 1, sizeof *made);
    const char **in = rfx_onnx_alloc(ctx, j->n_in + 1, sizeof *in);
    struct rfx_onnx_attr *attrs = rfx_onnx_alloc(ctx, node->n_attrs + 1, sizeof *attrs);
    if (made == NULL || in == NULL || attrs == NULL) return;
    *made = (struct rfx_onnx_node){.name = node->name,
                                   .op = j->op,
                                   .domain = j->domain,
                                   .in = in,
                                   .out = q->out,
                                   .n_in = j->n_in,
                                   .n_out = q->n_out,
                                   .attrs = attrs};
    for (size_t k = 0; k < j->n_in; k++) in[k] = j->in[k];
    while (made->n_in > 0 && in[made->n_in - 1][0] == '\0') made->n_in--;
    for (size_t i = 0; i < node->n_attrs; i++)
        if (strcmp(j->op, "QGemm") != 0 || strcmp(node->attrs[i].name, "beta") != 0)
            attrs[made->n_attrs++] = node->attrs[i];
    rfx_onnx_convert_node(ctx, made);
}

void rfx_onnx_joins_convert(struct rfx_onnx_import *ctx, const struct rfx_onnx_joins *joins,
                            size_t node) {
    const struct rfx_onnx_node *q = &ctx->model->nodes[node];
    int at = joins->ended[node];
    struct joined j;
    if (at < 0) {
        rfx_onnx_convert_node(ctx, q);
        return;
    }
    const struct rfx_onnx_node *inner = &ctx->model->nodes[at];
    int before = maker_of(joins, q->in[0]);
    const struct rfx_onnx_node *clamp = before == at ? NULL : &ctx->model->nodes[before];
    if (describe(ctx, joins, inner, q, clamp, &j)) {
        convert_joined(ctx, inner, q, &j);
        return;
    }
    rfx_onnx_convert_node(ctx, inner);
    if (clamp != NULL) rfx_onnx_convert_node(ctx, clamp);
    rfx_onnx_convert_node(ctx, q);
}
