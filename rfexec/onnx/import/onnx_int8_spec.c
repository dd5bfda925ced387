/* The contract `spec` of 8-bit networks: operators of bytes as DequantizeLinear, the float32
 * operator and QuantizeLinear, each converted by itself.
 *
 * A node such as QLinearConv is replaced by ONNX nodes that are written here: one DequantizeLinear
 * for every operand, the operator, one QuantizeLinear. The last one makes the node's output.
 * Operators whose integer arithmetic is the standard's own (ConvInteger, MatMulInteger,
 * DynamicQuantizeLinear) are not replaced.
 *
 * Also dequantises outputs of bytes, for the option `dequantize`. */
#include <stdio.h>
#include <string.h>

#include "rfexec/onnx/import/onnx_import.h"

/* The inputs of an operator of bytes. Each operand is three inputs: tensor, scale, zero point. */
struct form {
    const char *op, *floats; /* its name, and that of the float32 operator */
    size_t first, operands;  /* input of the first operand, and their number; 0: all inputs behind
                                the first are operands */
    size_t to, bias;         /* inputs: the scale of the result, and the bias; bias 0: none */
    int64_t axis;            /* of operand 1: along which it may have several scales */
    bool keeps_type;         /* without a zero point, the result has the type of operand 0 */
};

static const struct form forms[] = {
    {"QLinearConv", "Conv", 0, 2, 6, 8, 0, false},
    {"QLinearMatMul", "MatMul", 0, 2, 6, 0, 1, false},
    {"QGemm", "Gemm", 0, 2, 7, 6, 1, false},
    {"QLinearAdd", "Add", 0, 2, 6, 0, 1, true},
    {"QLinearMul", "Mul", 0, 2, 6, 0, 1, true},
    {"QLinearConcat", "Concat", 2, 0, 0, 0, 1, false},
    {"QLinearSigmoid", "Sigmoid", 0, 1, 3, 0, 1, true},
    {"QLinearLeakyRelu", "LeakyRelu", 0, 1, 3, 0, 1, true},
    {"QLinearSoftmax", "Softmax", 0, 1, 3, 0, 1, true},
    {"QLinearAveragePool", "AveragePool", 0, 1, 3, 0, 1, true},
    {"QLinearGlobalAveragePool", "GlobalAveragePool", 0, 1, 3, 0, 1, true},
};

static const struct form *form_of(const struct rfx_onnx_node *node) {
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (strcmp(node->op, forms[i].op) == 0) return &forms[i];
    return NULL;
}

/* Returns "NAME/SUFFIX", with a number behind it if a tensor has that name. */
static const char *new_name(struct rfx_onnx_import *ctx, const char *name, const char *suffix) {
    size_t room = strlen(name) + strlen(suffix) + 24;
    char *made = rfx_onnx_alloc(ctx, room, 1);
    if (made == NULL) return "";
    (void)snprintf(made, room, "%s/%s", name, suffix);
    for (unsigned i = 1; rfx_onnx_names_find(ctx->values, made) != NULL; i++)
        (void)snprintf(made, room, "%s/%s#%u", name, suffix, i);
    return made;
}

/* Returns a new node "NAME/SUFFIX" of inputs in[0..n_in), with room for `n_attrs` attributes. Its
 * output has that name too. */
static struct rfx_onnx_node *new_node(struct rfx_onnx_import *ctx, const struct rfx_onnx_node *of,
                                      const char *suffix, const char *op, const char *const *in,
                                      size_t n_in, size_t n_attrs) {
    struct rfx_onnx_node *node = rfx_onnx_alloc(ctx, 1, sizeof *node);
    const char **names = rfx_onnx_alloc(ctx, n_in + 1, sizeof *names);
    struct rfx_onnx_attr *attrs = rfx_onnx_alloc(ctx, n_attrs + 1, sizeof *attrs);
    if (node == NULL || names == NULL || attrs == NULL) return NULL;
    const char *name = of->name[0] != '\0' ? of->name : of->out[0];
    for (size_t k = 0; k < n_in; k++) names[k] = in[k];
    while (n_in > 0 && names[n_in - 1][0] == '\0') n_in--;
    names[n_in] = new_name(ctx, name, suffix);
    *node = (struct rfx_onnx_node){.name = names[n_in],
                                   .op = op,
                                   .domain = "",
                                   .in = names,
                                   .out = names + n_in,
                                   .n_in = n_in,
                                   .n_out = 1,
                                   .attrs = attrs};
    return rfx_onnx_failed(ctx) ? NULL : node;
}

static void put_int(struct rfx_onnx_node *node, const char *name, int64_t value) {
    node->attrs[node->n_attrs++] =
        (struct rfx_onnx_attr){.name = name, .kind = RFX_ONNX_ATTR_INT, .i = value};
}

/* Returns input k of a node, or "". */
static const char *input(const struct rfx_onnx_node *node, size_t k) {
    return k < node->n_in ? node->in[k] : "";
}

/* Converts a new node and returns the name of its output. */
static const char *convert(struct rfx_onnx_import *ctx, const struct rfx_onnx_node *node) {
    if (node == NULL) return "";
    rfx_onnx_convert_node(ctx, node);
    return node->out[0];
}

/* Returns whether the tensor is a constant of several elements. */
static bool has_several(const struct rfx_onnx_import *ctx, const char *name) {
    const struct rfx_onnx_operand *value = rfx_onnx_names_find(ctx->values, name);
    return value != NULL && value->constant != NULL && value->constant->elems > 1;
}

/* Dequantises a tensor by its scale and zero point ("": none); along `axis` if there are several
 * scales. */
static const char *dequantise(struct rfx_onnx_import *ctx, const struct rfx_onnx_node *of,
                              const char *const in[3], int64_t axis) {
    struct rfx_onnx_node *node = new_node(ctx, of, "float32", "DequantizeLinear", in, 3, 1);
    if (node != NULL && has_several(ctx, in[1])) put_int(node, "axis", axis);
    return convert(ctx, node);
}

static const char *product(struct rfx_onnx_import *ctx, const struct rfx_onnx_node *of,
                           const char *a, const char *b) {
    const char *in[2] = {a, b};
    return convert(ctx, new_node(ctx, of, "unit", "Mul", in, 2, 0));
}

/* Dequantises a bias, whose scale is the product of the operands' and of alpha. */
static const char *dequantise_bias(struct rfx_onnx_import *ctx, const struct rfx_onnx_node *of,
                                   const char *bias, float alpha) {
    if (bias[0] == '\0') return "";
    const char *unit = product(ctx, of, input(of, 1), input(of, 4));
    if (alpha != 1.0f) {
        const char *name = new_name(ctx, of->out[0], "alpha");
        struct rfx_onnx_const *number = rfx_onnx_const_number(ctx, (double)alpha);
        if (rfx_onnx_failed(ctx)) return "";
        if (!rfx_onnx_names_put(ctx->values, name, rfx_onnx_of_const(number)))
            (void)rfx_onnx_out_of_memory(ctx);
        unit = product(ctx, of, unit, name);
    }
    const char *in[3] = {bias, unit, ""};
    return dequantise(ctx, of, in, 0);
}

/* Copies the attributes of an operator of bytes that the float32 operator has too. */
static void copy_attributes(struct rfx_onnx_import *ctx, const struct rfx_onnx_node *from,
                            struct rfx_onnx_node *to) {
    for (size_t i = 0; i < from->n_attrs; i++) {
        const struct rfx_onnx_attr *a = &from->attrs[i];
        bool channels_last = strcmp(a->name, "channels_last") == 0;
        if (channels_last && a->i != 0)
            (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "channels_last 1");
        if (!channels_last && strcmp(a->name, "opset") != 0) to->attrs[to->n_attrs++] = *a;
    }
}

/* Quantises tensor `made` to the node's output. */
static void quantise(struct rfx_onnx_import *ctx, const struct rfx_onnx_node *of,
                     const struct form *form, const char *made, int32_t type) {
    const char *in[3] = {made, input(of, form->to), input(of, form->to + 1)};
    struct rfx_onnx_node *node = new_node(ctx, of, "bytes", "QuantizeLinear", in, 3, 1);
    if (node == NULL) return;
    node->name = of->name;
    node->out = of->out;
    node->n_out = of->n_out;
    if (form->keeps_type && in[2][0] == '\0') put_int(node, "output_dtype", type);
    rfx_onnx_convert_node(ctx, node);
}

bool rfx_onnx_int8_spec(struct rfx_onnx_import *ctx) {
    const struct rfx_onnx_node *of = ctx->node;
    const char *node_name = ctx->node_name;
    const struct form *form = form_of(of);
    if (ctx->int8 != RFX_INT8_SPEC || form == NULL || of->n_out == 0) return false;
    int64_t opset = ctx->opset, axis = form->axis;
    float alpha = 1.0f;
    int32_t type = rfx_onnx_in_type(ctx, form->first);
    if (form->bias == 6 && rfx_onnx_attr_flag(ctx, "transB", false)) axis = 0;
    if (form->bias == 6) alpha = rfx_onnx_attr_float(ctx, "alpha", 1.0f);
    if (strcmp(form->floats, "Softmax") == 0) opset = rfx_onnx_attr_int(ctx, "opset", 13);
    size_t n = form->operands != 0 ? form->operands : (of->n_in - (of->n_in > 1 ? 2 : 1)) / 3;
    const char **in = rfx_onnx_alloc(ctx, n + 2, sizeof *in);
    for (size_t i = 0; in != NULL && i < n; i++) {
        size_t k = form->first + 3 * i;
        const char *operand[3] = {input(of, k), input(of, k + 1), input(of, k + 2)};
        in[i] = dequantise(ctx, of, operand, i == 1 ? axis : 1);
    }
    if (in == NULL) return true;
    in[n] = form->bias == 0 ? "" : dequantise_bias(ctx, of, input(of, form->bias), alpha);
    bool floats = input(of, form->to)[0] == '\0'; /* a QGemm without a scale of the result */
    struct rfx_onnx_node *node =
        new_node(ctx, of, "operator", form->floats, in, n + 1, of->n_attrs);
    if (node == NULL) return true;
    copy_attributes(ctx, of, node);
    if (floats) node->out = of->out;
    int64_t around = ctx->opset;
    if (strcmp(form->floats, "Softmax") == 0) ctx->opset = opset;
    const char *made = convert(ctx, node);
    ctx->opset = around;
    if (!floats) quantise(ctx, of, form, made, type);
    ctx->node = of;
    ctx->node_name = node_name;
    return true;
}

/* Operators whose output has the scale and the zero point of input 0. */
static bool keeps_scale(const struct rfx_onnx_node *node) {
    static const char *const ops[] = {"MaxPool",   "Reshape",   "Flatten",       "Transpose",
                                      "Squeeze",   "Unsqueeze", "Slice",         "Split",
                                      "Identity",  "Gather",    "DepthToSpace",  "SpaceToDepth",
                                      "Pad",       "Resize",    "GlobalMaxPool", "ReduceMax",
                                      "ReduceMin", "Expand",    "Tile",          "Dropout"};
    return rfx_onnx_is_own_domain(node->domain) &&
           rfx_onnx_index_of(node->op, ops, sizeof ops / sizeof *ops) >= 0;
}

/* Returns the node of the model, before node `end`, whose first outputs contain the tensor; NULL:
 * there is none. Sets *end to its index. */
static const struct rfx_onnx_node *maker_of(const struct rfx_onnx_model *model, const char *name,
                                            size_t *end) {
    for (size_t i = *end; i-- > 0;)
        for (size_t k = 0; k < model->nodes[i].n_out; k++) {
            if (strcmp(model->nodes[i].out[k], name) != 0) continue;
            *end = i;
            return &model->nodes[i];
        }
    return NULL;
}

const char *rfx_onnx_dequantised(struct rfx_onnx_import *ctx, const char *name) {
    size_t end = ctx->model->n_nodes;
    const char *at = name;
    const struct rfx_onnx_node *by = maker_of(ctx->model, at, &end);
    while (by != NULL && keeps_scale(by) && by->n_in > 0) {
        at = by->in[0];
        by = maker_of(ctx->model, at, &end);
    }
    if (by == NULL) return name;
    const struct form *form = form_of(by);
    bool quantises = rfx_onnx_is_own_domain(by->domain) && strcmp(by->op, "QuantizeLinear") == 0;
    if ((form == NULL && !quantises) || strcmp(by->out[0], at) != 0) return name;
    size_t to = quantises ? 1 : form->to;
    const char *in[3] = {name, input(by, to), input(by, to + 1)};
    const struct rfx_onnx_operand *scale = rfx_onnx_names_find(ctx->values, in[1]);
    if (scale == NULL || scale->constant == NULL) return name;
    int64_t axis = 1;
    for (size_t i = 0; i < by->n_attrs; i++) {
        if (strcmp(by->attrs[i].name, "axis") == 0) axis = by->attrs[i].i;
        if (strcmp(by->attrs[i].name, "block_size") == 0 && by->attrs[i].i != 0) return name;
    }
    if (has_several(ctx, in[1]) && at != name) return name; /* the axis may be another one here */
    const struct rfx_onnx_node output = {.name = name, .out = &name, .n_out = 1};
    return dequantise(ctx, &output, in, axis);
}
