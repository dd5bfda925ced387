/* Writing a graph as an ONNX model of opset 17.
 *
 * A node of the graph becomes a few ONNX nodes: one for its operation (several when the opset has
 * no such operator), then one each for a fused scale, residual and activation. The last ONNX node
 * computes the tensor of the graph's node. The rows and columns of input and output are symbolic
 * dimensions, so that the model accepts images of other sizes, unless an ONNX node contains numbers
 * that depend on the size. A node that this opset cannot express is refused with its name. */
#include "rfexec/onnx/export/onnx_export.h"

#include <string.h>

#include "layers/core/checked.h"
#include "layers/graph/op.h"
#include "rfexec/onnx/export/onnx_writer.h"
#include "rfexec/onnx/export/quantisation.h"
#include "rfexec/run/model.h"

typedef struct rfx_onnx_node onnx_node;

struct exporter {
    struct rfx_onnx_writer writer;
    const struct rfx_graph *graph;
    const char **values;                         /* per node: name of its tensor in the file */
    const struct rfx_quantisation *quantisation; /* NULL: the network is written in float32 */
    bool *follows_size; /* per node: its shape depends on the image's size */
    bool size_is_fixed; /* some ONNX node is valid only for the image size of this graph */
};

/* Axis orders for Transpose: from (n, c, h, w) to (n, h, w, c), and back. */
static const int64_t to_last[4] = {0, 2, 3, 1}, to_first[4] = {0, 3, 1, 2};

/* Returns the name in the file of input k of a node. */
static const char *input(const struct exporter *x, const struct rfx_node *node, int k) {
    return x->values[node->in[k]];
}

/* Returns "name#part", the name of a tensor or ONNX node inside one operation. */
static const char *part(struct exporter *x, const struct rfx_node *node, const char *name) {
    return rfx_onnx_text(&x->writer, "%s#%s", node->name, name);
}

/* Adds integers as the constant "name#part" and returns its name. */
static const char *ints(struct exporter *x, const struct rfx_node *node, const char *name,
                        const int64_t *values, int64_t count) {
    return rfx_onnx_int64(&x->writer, part(x, node, name), values, count);
}

/* Adds weight `index` as the constant "name.part" and returns its name. */
static const char *weight(struct exporter *x, const struct rfx_node *node, const char *name,
                          int index, struct rfx_shape shape) {
    return rfx_onnx_weight(&x->writer, rfx_onnx_text(&x->writer, "%s.%s", node->name, name), index,
                           shape);
}

/* Adds an ONNX node with the name and the inputs of the graph's node. */
static onnx_node *own(struct exporter *x, const struct rfx_node *node, const char *op,
                      const char *output) {
    const char *in[RFX_ONNX_MAX_INPUTS] = {NULL};
    int n = node->n_in < RFX_ONNX_MAX_INPUTS ? node->n_in : RFX_ONNX_MAX_INPUTS;
    for (int k = 0; k < n; k++) in[k] = input(x, node, k);
    return rfx_onnx_node(&x->writer, op, node->name, output, in, n);
}

static void refuse(struct exporter *x, const struct rfx_node *node, const char *why) {
    if (x->writer.status != RFX_OK) return;
    x->writer.status = rfx_fail(x->writer.err, RFX_STATUS_UNSUPPORTED, "ONNX export: %s '%s': %s",
                                rfx_op_def(node->op)->name, node->name, why);
}

static void fail_memory(struct exporter *x, const struct rfx_node *node, size_t bytes) {
    if (x->writer.status != RFX_OK) return;
    (void)rfx_memory_fail(x->graph->mem, "ONNX export", bytes, x->writer.err);
    x->writer.status = rfx_fail_within(x->writer.err, RFX_STATUS_OUT_OF_MEMORY, "'%s'", node->name);
}

static onnx_node *emit1(struct exporter *x, const char *op, const char *name, const char *output,
                        const char *in) {
    return rfx_onnx_node(&x->writer, op, name, output, &in, 1);
}

static onnx_node *emit2(struct exporter *x, const char *op, const char *name, const char *output,
                        const char *left, const char *right) {
    const char *in[2] = {left, right};
    return rfx_onnx_node(&x->writer, op, name, output, in, 2);
}

static const char *scalar(struct exporter *x, const char *node, const char *part, float value) {
    const char *name = rfx_onnx_text(&x->writer, "%s#%s", node, part);
    return rfx_onnx_fill(&x->writer, name, (struct rfx_shape){0, {0}}, value);
}

/* --- tensors and weights as integers --- */

/* Returns what the quantisation says of a node. */
static const struct rfx_node_quantisation *quantisation_of(const struct exporter *x,
                                                           const struct rfx_node *node) {
    static const struct rfx_node_quantisation none = {.bytes = false};
    return x->quantisation == NULL ? &none : &x->quantisation->nodes[node - x->graph->nodes];
}

/* Returns whether the node only changes the layout in memory. ONNX has no such operation. */
static bool is_layout_only(const struct rfx_node *node) {
    return node->op == RFX_OP_TO_PLAIN || node->op == RFX_OP_TO_NHWC;
}

/* Adds a DequantizeLinear of `in` (scale; zero: a name, or NULL for none) and returns its name. */
static const char *dequantise(struct exporter *x, const char *name, const char *in,
                              const char *scale, const char *zero, int axis) {
    const char *inputs[3] = {in, scale, zero};
    onnx_node *n = rfx_onnx_node(&x->writer, "DequantizeLinear", name, name, inputs, 3);
    if (axis >= 0) rfx_onnx_int(n, "axis", axis);
    return name;
}

/* Writes the weights of a node as int8 with one scale per output channel, followed by a
 * DequantizeLinear along `axis`. Returns the name of its result. */
static const char *byte_weights(struct exporter *x, const struct rfx_node *node, int index,
                                struct rfx_shape shape, struct rfx_onnx_rounding *rounding,
                                int axis) {
    struct rfx_onnx_writer *w = &x->writer;
    const struct rfx_node_quantisation *q = quantisation_of(x, node);
    struct rfx_shape channels = {1, {rounding->channels}};
    int8_t *zeros = rfx_memory_calloc(x->graph->mem, (size_t)rounding->channels, sizeof *zeros);
    if (zeros == NULL) {
        fail_memory(x, node, (size_t)rounding->channels);
        return "";
    }
    rounding->factors = q->factors;
    rounding->scales = q->weight_scales;
    const char *bytes =
        rfx_onnx_rounded(w, rfx_onnx_text(w, "%s.weight", node->name), index, shape, rounding);
    const char *scale = rfx_onnx_values(w, part(x, node, "weight_scale"), RFX_TYPE_FLOAT32,
                                        channels, q->weight_scales);
    const char *zero =
        rfx_onnx_values(w, part(x, node, "weight_zero"), RFX_TYPE_INT8, channels, zeros);
    rfx_memory_release(x->graph->mem, zeros);
    return dequantise(x, part(x, node, "weight"), bytes, scale, zero, axis);
}

/* Writes the bias of a node as int32, in units of the input's scale times the weights' scales, as
 * integer convolutions add it. Returns its name after DequantizeLinear; NULL: there is no bias. */
static const char *int_bias(struct exporter *x, const struct rfx_node *node, int index,
                            int64_t count) {
    struct rfx_onnx_writer *w = &x->writer;
    const struct rfx_graph *graph = x->graph;
    const float *weight_scales = quantisation_of(x, node)->weight_scales;
    float in_scale = quantisation_of(x, &graph->nodes[node->in[0]])->scale;
    const char *made = NULL;
    if (index < 0 || w->status != RFX_OK) return NULL;
    float *bias = rfx_memory_calloc(graph->mem, (size_t)count, sizeof *bias);
    float *scales = rfx_memory_calloc(graph->mem, (size_t)count, sizeof *scales);
    int32_t *integers = rfx_memory_calloc(graph->mem, (size_t)count, sizeof *integers);
    if (bias == NULL || scales == NULL || integers == NULL)
        fail_memory(x, node, (size_t)count * sizeof *bias);
    else
        w->status = rfx_weight_read(&graph->weights[index], 0, count, bias, w->err);
    if (w->status == RFX_OK) {
        struct rfx_shape shape = {1, {count}};
        for (int64_t i = 0; i < count; i++) {
            scales[i] = in_scale * weight_scales[i];
            bias[i] /= scales[i];
        }
        rfx_type_round(RFX_TYPE_INT32, bias, count, integers);
        const char *name = rfx_onnx_text(w, "%s.bias", node->name);
        (void)rfx_onnx_values(w, name, RFX_TYPE_INT32, shape, integers);
        const char *scale =
            rfx_onnx_values(w, part(x, node, "bias_scale"), RFX_TYPE_FLOAT32, shape, scales);
        made = dequantise(x, part(x, node, "bias"), name, scale, NULL, 0);
    }
    rfx_memory_release(graph->mem, integers);
    rfx_memory_release(graph->mem, scales);
    rfx_memory_release(graph->mem, bias);
    return made;
}

/* Writes QuantizeLinear and DequantizeLinear behind the tensor `in` of a node. */
static void as_bytes(struct exporter *x, const struct rfx_node *node, const char *in,
                     const char *output) {
    struct rfx_onnx_writer *w = &x->writer;
    const struct rfx_node_quantisation *q = quantisation_of(x, node);
    const uint8_t byte = (uint8_t)q->zero_point;
    const struct rfx_shape one = {0, {0}};
    const char *bytes = part(x, node, "bytes"), *made = part(x, node, "dequantised");
    const char *scale = scalar(x, node->name, "scale", q->scale);
    const char *inputs[3] = {
        in, scale,
        rfx_onnx_values(w, part(x, node, "zero_point"), x->quantisation->type, one, &byte)};
    (void)rfx_onnx_node(w, "QuantizeLinear", bytes, bytes, inputs, 3);
    inputs[0] = bytes;
    (void)rfx_onnx_node(w, "DequantizeLinear", made, output, inputs, 3);
}

/* --- binary operations --- */

enum { TYPE_FLOAT = 1, TYPE_BOOL = 9 }; /* values of TensorProto.DataType */

static const char *as_bool(struct exporter *x, const char *node, const char *part, const char *in) {
    const char *name = rfx_onnx_text(&x->writer, "%s#%s_bool", node, part);
    rfx_onnx_int(emit1(x, "Cast", name, name, in), "to", TYPE_BOOL);
    return name;
}

static void to_float(struct exporter *x, const char *name, const char *output, const char *in) {
    rfx_onnx_int(emit1(x, "Cast", name, output, in), "to", TYPE_FLOAT);
}

enum form {
    FORM_NUMBERS,  /* operands and result are numbers */
    FORM_COMPARES, /* operands are numbers, the result is boolean */
    FORM_LOGIC,    /* operands and result are booleans */
    FORM_CHOOSES,  /* a Where between an operand and -0 */
};

static const struct {
    const char *op;
    enum form form;
} binary_rows[] = {
    [RFX_BINARY_ADD] = {"Add", FORM_NUMBERS},
    [RFX_BINARY_SUB] = {"Sub", FORM_NUMBERS},
    [RFX_BINARY_MUL] = {"Mul", FORM_NUMBERS},
    [RFX_BINARY_DIV] = {"Div", FORM_NUMBERS},
    [RFX_BINARY_MAX] = {"Max", FORM_NUMBERS},
    [RFX_BINARY_MIN] = {"Min", FORM_NUMBERS},
    [RFX_BINARY_POW] = {"Pow", FORM_NUMBERS},
    [RFX_BINARY_MOD] = {"Mod", FORM_NUMBERS},
    [RFX_BINARY_GREATER] = {"Greater", FORM_COMPARES},
    [RFX_BINARY_GREATER_OR_EQUAL] = {"GreaterOrEqual", FORM_COMPARES},
    [RFX_BINARY_LESS] = {"Less", FORM_COMPARES},
    [RFX_BINARY_LESS_OR_EQUAL] = {"LessOrEqual", FORM_COMPARES},
    [RFX_BINARY_EQUAL] = {"Equal", FORM_COMPARES},
    [RFX_BINARY_AND] = {"And", FORM_LOGIC},
    [RFX_BINARY_OR] = {"Or", FORM_LOGIC},
    [RFX_BINARY_XOR] = {"Xor", FORM_LOGIC},
    [RFX_BINARY_IF] = {"Where", FORM_CHOOSES},
    [RFX_BINARY_UNLESS] = {"Where", FORM_CHOOSES},
};

static void export_choice(struct exporter *x, enum rfx_binary_kind kind, const char *name,
                          const char *output, const char *condition, const char *value) {
    const char *none = scalar(x, name, "none", -0.0f);
    bool is_if = kind == RFX_BINARY_IF;
    const char *in[3] = {condition, is_if ? value : none, is_if ? none : value};
    (void)rfx_onnx_node(&x->writer, "Where", name, output, in, 3);
}

static void export_join(struct exporter *x, enum rfx_binary_kind kind, const char *name,
                        const char *output, const char *a, const char *b) {
    enum form form = binary_rows[kind].form;
    if (form == FORM_LOGIC || form == FORM_CHOOSES) a = as_bool(x, name, "a", a);
    if (form == FORM_LOGIC) b = as_bool(x, name, "b", b);
    if (form == FORM_CHOOSES) {
        export_choice(x, kind, name, output, a, b);
        return;
    }
    bool gives_bool = form == FORM_COMPARES || form == FORM_LOGIC;
    const char *made = gives_bool ? rfx_onnx_text(&x->writer, "%s#bool", name) : output;
    onnx_node *n = emit2(x, binary_rows[kind].op, gives_bool ? made : name, made, a, b);
    if (kind == RFX_BINARY_MOD) rfx_onnx_int(n, "fmod", 1);
    if (gives_bool) to_float(x, name, output, made);
}

static void export_binary(struct exporter *x, const struct rfx_node *node, const char *output) {
    export_join(x, node->attr.binary.kind, node->name, output, input(x, node, 0),
                input(x, node, 1));
}

/* --- activations --- */

static void export_prelu(struct exporter *x, const struct rfx_node *node, const char *name,
                         const char *output, const char *in) {
    int64_t n = x->graph->weights[node->act.slope].elems;
    struct rfx_shape shape = {node->out.layout == RFX_LAYOUT_NHWC ? 3 : 1, {n, 1, 1}};
    const char *slope = weight(x, node, "slope", node->act.slope, shape);
    (void)emit2(x, "PRelu", name, output, in, slope);
}

static void export_clip(struct exporter *x, const struct rfx_node *node, const char *name,
                        const char *output, const char *in) {
    const char *inputs[3] = {in, scalar(x, name, "min", node->act.alpha),
                             scalar(x, name, "max", node->act.beta)};
    (void)rfx_onnx_node(&x->writer, "Clip", name, output, inputs, 3);
}

static void export_silu(struct exporter *x, const struct rfx_node *node, const char *name,
                        const char *output, const char *in) {
    (void)node;
    const char *gate = rfx_onnx_text(&x->writer, "%s#gate", name);
    (void)emit1(x, "Sigmoid", gate, gate, in);
    (void)emit2(x, "Mul", name, output, in, gate);
}

static void export_pow(struct exporter *x, const struct rfx_node *node, const char *name,
                       const char *output, const char *in) {
    const char *exponent = scalar(x, name, "exponent", node->act.alpha);
    (void)emit2(x, "Pow", name, output, in, exponent);
}

/* Writes an activation whose two ONNX attributes are not named alpha and beta. */
static void export_named(struct exporter *x, const struct rfx_node *node, const char *name,
                         const char *output, const char *in) {
    bool selu = node->act.kind == RFX_ACT_SELU;
    onnx_node *act = emit1(x, rfx_act_def(node->act.kind)->onnx, name, output, in);
    rfx_onnx_float(act, selu ? "alpha" : "lambd", node->act.alpha);
    rfx_onnx_float(act, selu ? "gamma" : "bias", node->act.beta);
}

static void export_not(struct exporter *x, const struct rfx_node *node, const char *name,
                       const char *output, const char *in) {
    (void)node;
    const char *negated = rfx_onnx_text(&x->writer, "%s#not", name);
    (void)emit1(x, "Not", negated, negated, as_bool(x, name, "x", in));
    to_float(x, name, output, negated);
}

typedef void (*export_form)(struct exporter *x, const struct rfx_node *node, const char *name,
                            const char *output, const char *in);

/* Functions for the activations that are not a single ONNX operator with the attributes alpha and
 * beta. */
static const export_form own_forms[RFX_ACT_COUNT] = {
    [RFX_ACT_CLIP] = export_clip, [RFX_ACT_PRELU] = export_prelu, [RFX_ACT_SILU] = export_silu,
    [RFX_ACT_POW] = export_pow,   [RFX_ACT_SELU] = export_named,  [RFX_ACT_SHRINK] = export_named,
    [RFX_ACT_NOT] = export_not,
};

static void export_act(struct exporter *x, const struct rfx_node *node, const char *name,
                       const char *output, const char *in) {
    const struct rfx_act_def *def = rfx_act_def(node->act.kind);
    if ((def->traits & RFX_ACT_HAS_OWN_FORM) != 0) {
        own_forms[node->act.kind](x, node, name, output, in);
        return;
    }
    onnx_node *act = emit1(x, def->onnx, name, output, in);
    if ((def->traits & RFX_ACT_HAS_ALPHA) != 0) rfx_onnx_float(act, "alpha", node->act.alpha);
    if ((def->traits & RFX_ACT_HAS_BETA) != 0) rfx_onnx_float(act, "beta", node->act.beta);
}

static void export_activation(struct exporter *x, const struct rfx_node *node, const char *output) {
    export_act(x, node, node->name, output, input(x, node, 0));
}

/* --- norms and reductions --- */

/* Adds weight `index` as the constant "name.part". Its shape is the number of elements followed by
 * `after` dimensions of 1. */
static const char *channel_weight(struct exporter *x, const struct rfx_node *node, const char *part,
                                  int index, int after) {
    struct rfx_shape shape = {1 + after, {x->graph->weights[index].elems, 1, 1}};
    return rfx_onnx_weight(&x->writer, rfx_onnx_text(&x->writer, "%s.%s", node->name, part), index,
                           shape);
}

/* Writes in * scale + shift to `output`. scale, shift: indices of weights; -1: none. The last ONNX
 * node has the name of the graph's node. */
static void export_scale_shift(struct exporter *x, const struct rfx_node *node, int scale,
                               int shift, const char *in, const char *output) {
    bool affine = node->op == RFX_OP_AFFINE;
    if (scale >= 0) {
        const char *to = shift >= 0 ? part(x, node, "scaled") : output;
        const char *name = shift >= 0 ? to : node->name;
        (void)emit2(x, "Mul", name, to, in,
                    channel_weight(x, node, affine ? "scale" : "weight", scale, 2));
        in = to;
    }
    if (shift >= 0)
        (void)emit2(x, "Add", node->name, output, in,
                    channel_weight(x, node, affine ? "shift" : "bias", shift, 2));
}

/* Returns the name for the result of the norm itself: `output` when neither scale nor shift
 * follows.
 */
static const char *norm_output(struct exporter *x, const struct rfx_node *node, int scale,
                               int shift, const char *output) {
    return scale < 0 && shift < 0 ? output : part(x, node, "normalised");
}

/* Writes a norm over channels. LayerNormalization works on the last axes, so channels are moved to
 * the last axis and back. */
static void export_layer(struct exporter *x, const struct rfx_node *node, const char *output) {
    int scale = node->attr.channel_norm.scale, shift = node->attr.channel_norm.shift;
    int64_t c = node->out.c;
    struct rfx_onnx_writer *w = &x->writer;
    bool inside = scale >= 0 && x->graph->weights[scale].elems == c &&
                  (shift < 0 || x->graph->weights[shift].elems == c);
    const char *last = part(x, node, "last"), *norm = part(x, node, "norm");
    onnx_node *n = emit1(x, "Transpose", last, last, input(x, node, 0));
    rfx_onnx_ints(n, "perm", to_last, 4);
    struct rfx_shape channels = {1, {c}};
    const char *in[3] = {last,
                         inside ? channel_weight(x, node, "weight", scale, 0)
                                : rfx_onnx_fill(w, part(x, node, "ones"), channels, 1.0f),
                         inside && shift >= 0 ? channel_weight(x, node, "bias", shift, 0) : NULL};
    n = rfx_onnx_node(w, "LayerNormalization", norm, norm, in, 3);
    rfx_onnx_int(n, "axis", -1);
    rfx_onnx_float(n, "epsilon", node->attr.channel_norm.eps);
    if (inside) scale = shift = -1;
    const char *to = norm_output(x, node, scale, shift, output);
    n = emit1(x, "Transpose", to == output ? node->name : to, to, norm);
    rfx_onnx_ints(n, "perm", to_first, 4);
    export_scale_shift(x, node, scale, shift, to, output);
}

static void export_rms(struct exporter *x, const struct rfx_node *node, const char *output) {
    static const int64_t channels[1] = {1};
    int scale = node->attr.channel_norm.scale, shift = node->attr.channel_norm.shift;
    const char *in = input(x, node, 0), *squares = part(x, node, "squares");
    const char *mean = part(x, node, "mean"), *sum = part(x, node, "sum");
    const char *root = part(x, node, "root");
    (void)emit2(x, "Mul", squares, squares, in, in);
    rfx_onnx_ints(emit1(x, "ReduceMean", mean, mean, squares), "axes", channels, 1);
    (void)emit2(x, "Add", sum, sum, mean,
                scalar(x, node->name, "eps", node->attr.channel_norm.eps));
    (void)emit1(x, "Sqrt", root, root, sum);
    const char *to = norm_output(x, node, scale, shift, output);
    (void)emit2(x, "Div", to == output ? node->name : to, to, in, root);
    export_scale_shift(x, node, scale, shift, to, output);
}

static void export_channel_norm(struct exporter *x, const struct rfx_node *node,
                                const char *output) {
    int scale = node->attr.channel_norm.scale, shift = node->attr.channel_norm.shift;
    enum rfx_channel_norm kind = node->attr.channel_norm.kind;
    if (kind == RFX_NORM_LAYER || kind == RFX_NORM_RMS) {
        (kind == RFX_NORM_LAYER ? export_layer : export_rms)(x, node, output);
        return;
    }
    const char *to = norm_output(x, node, scale, shift, output);
    onnx_node *norm =
        emit1(x, "LpNormalization", to == output ? node->name : to, to, input(x, node, 0));
    rfx_onnx_int(norm, "axis", 1);
    rfx_onnx_int(norm, "p", kind == RFX_NORM_L1 ? 1 : 2);
    export_scale_shift(x, node, scale, shift, to, output);
}

/* Writes an ArgMax or ArgMin along one axis, with its integer result cast to float. */
static void export_arg(struct exporter *x, const struct rfx_node *node, const char *op,
                       const int64_t *axes, int count, bool keep, const char *output) {
    enum rfx_reduce_kind kind = node->attr.reduce.kind;
    const char *where = part(x, node, "where");
    if (count != 1) refuse(x, node, "ONNX has ArgMax and ArgMin of one axis only");
    onnx_node *arg = emit1(x, op, where, where, input(x, node, 0));
    rfx_onnx_int(arg, "axis", count == 1 ? axes[0] : 0);
    rfx_onnx_int(arg, "keepdims", keep ? 1 : 0);
    bool last = kind == RFX_REDUCE_ARG_MAX_LAST || kind == RFX_REDUCE_ARG_MIN_LAST;
    rfx_onnx_int(arg, "select_last_index", last ? 1 : 0);
    to_float(x, node->name, output, where);
}

static void export_reduction(struct exporter *x, enum rfx_reduce_kind kind,
                             const struct rfx_node *node, const int64_t *axes, int count, bool keep,
                             const char *output) {
    static const char *const ops[] = {"ReduceMean", "ReduceMax", "ReduceSum",       "ReduceMin",
                                      "ReduceL1",   "ReduceL2",  "ReduceSumSquare", "ReduceProd",
                                      "ArgMax",     "ArgMax",    "ArgMin",          "ArgMin"};
    _Static_assert(sizeof ops / sizeof ops[0] == RFX_REDUCE_COUNT, "an operator per kind");
    struct rfx_onnx_writer *w = &x->writer;
    const char *in[2] = {input(x, node, 0), NULL};
    if (rfx_reduce_is_arg(kind)) {
        export_arg(x, node, ops[kind], axes, count, keep, output);
        return;
    }
    bool as_input = kind == RFX_REDUCE_SUM; /* since opset 13 */
    if (as_input) in[1] = ints(x, node, "axes", axes, count);
    onnx_node *reduce = rfx_onnx_node(w, ops[kind], node->name, output, in, as_input ? 2 : 1);
    if (!as_input) rfx_onnx_ints(reduce, "axes", axes, count);
    rfx_onnx_int(reduce, "keepdims", keep ? 1 : 0);
}

static void export_channel_reduce(struct exporter *x, const struct rfx_node *node,
                                  const char *output) {
    static const int64_t channels[1] = {1};
    export_reduction(x, node->attr.reduce.kind, node, channels, 1, true, output);
}

/* Writes nothing, because the norms of ONNX compute the moments themselves. Refuses moments that
 * are read by anything but a norm of the same map. */
static void export_moments(struct exporter *x, const struct rfx_node *node, const char *output) {
    const struct rfx_graph *graph = x->graph;
    int self = (int)(node - graph->nodes), norms = 0;
    (void)output;
    for (int i = self + 1; i < graph->n_nodes; i++) {
        const struct rfx_node *norm = &graph->nodes[i];
        norms += norm->op == RFX_OP_NORMALISE && norm->in[1] == self && norm->in[0] == node->in[0];
    }
    if (norms != graph->n_consumers[self])
        refuse(x, node, "statistics that not only the norm of their map reads");
}

/* Returns the name of a weight with one element for each of the c channels. When weight `index` is
 * -1 or has another number of elements, adds a constant of c elements equal to `otherwise`. */
static const char *norm_weight(struct exporter *x, const struct rfx_node *node, const char *name,
                               int index, float otherwise) {
    int64_t c = node->out.c;
    if (index >= 0 && x->graph->weights[index].elems == c)
        return channel_weight(x, node, name, index, 0);
    return rfx_onnx_fill(&x->writer, part(x, node, name), (struct rfx_shape){1, {c}}, otherwise);
}

/* Returns whether a weight is absent or has one element per channel. */
static bool is_whole(const struct exporter *x, const struct rfx_node *node, int index) {
    return index < 0 || x->graph->weights[index].elems == node->out.c;
}

static void export_instance(struct exporter *x, const struct rfx_node *node, float eps,
                            const char *output) {
    int scale = node->attr.affine.scale, shift = node->attr.affine.shift;
    bool inside = is_whole(x, node, scale) && is_whole(x, node, shift);
    const char *in[3] = {input(x, node, 0),
                         norm_weight(x, node, "weight", inside ? scale : -1, 1.0f),
                         norm_weight(x, node, "bias", inside ? shift : -1, 0.0f)};
    if (inside) scale = shift = -1;
    const char *to = norm_output(x, node, scale, shift, output);
    rfx_onnx_float(rfx_onnx_node(&x->writer, "InstanceNormalization",
                                 to == output ? node->name : to, to, in, 3),
                   "epsilon", eps);
    export_scale_shift(x, node, scale, shift, to, output);
}

/* Writes a group norm, which this opset lacks. The map is reshaped so that each group is one
 * channel of an InstanceNormalization. */
static void export_groups(struct exporter *x, const struct rfx_node *node, int64_t groups,
                          float eps, const char *output) {
    int scale = node->attr.affine.scale, shift = node->attr.affine.shift;
    struct rfx_onnx_writer *w = &x->writer;
    const int64_t shape[3] = {0, groups, -1};
    const char *map = input(x, node, 0), *grouped = part(x, node, "grouped");
    const char *size = part(x, node, "size"), *norm = part(x, node, "norm");
    struct rfx_shape one_each = {1, {groups}};
    (void)emit2(x, "Reshape", grouped, grouped, map, ints(x, node, "groups", shape, 3));
    const char *in[3] = {grouped, rfx_onnx_fill(w, part(x, node, "ones"), one_each, 1.0f),
                         rfx_onnx_fill(w, part(x, node, "zeros"), one_each, 0.0f)};
    rfx_onnx_float(rfx_onnx_node(w, "InstanceNormalization", norm, norm, in, 3), "epsilon", eps);
    (void)emit1(x, "Shape", size, size, map);
    const char *to = norm_output(x, node, scale, shift, output);
    (void)emit2(x, "Reshape", to == output ? node->name : to, to, norm, size);
    export_scale_shift(x, node, scale, shift, to, output);
}

static void export_normalise(struct exporter *x, const struct rfx_node *node, const char *output) {
    const struct rfx_node *moments = &x->graph->nodes[node->in[1]];
    if (moments->op != RFX_OP_MOMENTS || moments->in[0] != node->in[0]) {
        refuse(x, node, "statistics of another map");
        return;
    }
    int64_t groups = moments->attr.moments.groups;
    if (groups == node->out.c)
        export_instance(x, node, moments->attr.moments.eps, output);
    else
        export_groups(x, node, groups, moments->attr.moments.eps, output);
}

/* --- maps --- */

#define MOST_PIECES 16 /* most slices of one axis in padding of mode "wrap" */

/* Writes the map `in` with its channels last to the tensor `name`. */
static void channels_last(struct exporter *x, const char *name, const char *in) {
    rfx_onnx_ints(emit1(x, "Transpose", name, name, in), "perm", to_last, 4);
}

/* Writes a Slice of positions `piece` of an axis of n positions and returns its name; for the whole
 * axis returns `in`. Where possible, counts the limits from the end of the axis, so that they also
 * hold for maps of other sizes. */
static const char *wrap_piece(struct exporter *x, const char *in, int64_t axis, int64_t n,
                              struct rfx_range piece, bool before, const char *name) {
    struct rfx_onnx_writer *w = &x->writer;
    if (piece.lo == 0 && piece.hi == n) return in;
    int64_t start = before && piece.hi == n ? piece.lo - n : piece.lo;
    int64_t end = piece.hi == n ? INT64_MAX : piece.hi;
    const char *limits[4] = {in, rfx_onnx_int64(w, rfx_onnx_text(w, "%s#start", name), &start, 1),
                             rfx_onnx_int64(w, rfx_onnx_text(w, "%s#end", name), &end, 1),
                             rfx_onnx_int64(w, rfx_onnx_text(w, "%s#axis", name), &axis, 1)};
    (void)rfx_onnx_node(w, "Slice", name, name, limits, 4);
    return name;
}

/* Writes padding of mode "wrap" along one axis, as a Concat of slices of the axis. */
static const char *wrap_axis(struct exporter *x, const struct rfx_node *node, const char *in,
                             int64_t axis, const char *output) {
    struct rfx_onnx_writer *w = &x->writer;
    const struct rfx_tensor *t = &x->graph->nodes[node->in[0]].out;
    int64_t n = axis == 2 ? t->h : t->w;
    int64_t at = axis == 2 ? -node->attr.pad.pads.top : -node->attr.pad.pads.left;
    int64_t end = at + (axis == 2 ? node->out.h : node->out.w);
    const char *pieces[MOST_PIECES];
    size_t count = 0;
    for (int64_t turn; at < end; at = rfx_min_i64(turn + n, end)) {
        turn = rfx_floor_div(at, n) * n;
        if (count == MOST_PIECES) {
            refuse(x, node, "a map that is wrapped around more than 14 times");
            return in;
        }
        struct rfx_range piece = {at - turn, rfx_min_i64(n, end - turn)};
        const char *name = rfx_onnx_text(w, "%s#%c%zu", node->name, axis == 2 ? 'r' : 'c', count);
        pieces[count++] = wrap_piece(x, in, axis, n, piece, turn < 0, name);
    }
    rfx_onnx_int(rfx_onnx_node(w, "Concat", output, output, pieces, (int)count), "axis", axis);
    return output;
}

/* Writes padding of mode "wrap" by Slice and Concat, because Pad does not have this mode before
 * opset 19. */
static void export_wrap(struct exporter *x, const struct rfx_node *node, const char *output) {
    const char *rows = part(x, node, "rows");
    (void)wrap_axis(x, node, wrap_axis(x, node, input(x, node, 0), 2, rows), 3, output);
}

static void export_pad(struct exporter *x, const struct rfx_node *node, const char *output) {
    static const char *const modes[] = {"constant", "reflect", "edge", "wrap"};
    const struct rfx_pads p = node->attr.pad.pads;
    if (node->attr.pad.mode == RFX_PAD_WRAP) {
        export_wrap(x, node, output);
        return;
    }
    const int64_t pads[8] = {0, 0, p.top, p.left, 0, 0, p.bottom, p.right};
    struct rfx_onnx_writer *w = &x->writer;
    const char *in[3] = {input(x, node, 0), ints(x, node, "pads", pads, 8), NULL};
    if (node->attr.pad.mode == RFX_PAD_CONSTANT)
        in[2] = scalar(x, node->name, "value", node->attr.pad.value);
    rfx_onnx_string(rfx_onnx_node(w, "Pad", node->name, output, in, 3), "mode",
                    modes[node->attr.pad.mode]);
}

/* Writes a selection of channels as a Gather, or as a Pad if it only adds zeros before and after
 * all channels. */
static void export_select(struct exporter *x, const struct rfx_node *node, const char *output) {
    struct rfx_onnx_writer *w = &x->writer;
    const int64_t *map = node->attr.select.map, count = node->attr.select.count;
    int64_t c = x->graph->nodes[node->in[0]].out.c, before = 0, zeros = 0;
    for (int64_t i = 0; i < count; i++) zeros += map[i] < 0;
    if (zeros == 0) {
        const char *chosen = ints(x, node, "channels", map, count);
        onnx_node *gather = emit2(x, "Gather", node->name, output, input(x, node, 0), chosen);
        rfx_onnx_int(gather, "axis", 1);
        return;
    }
    while (before < count && map[before] < 0) before++;
    bool pads = count - zeros == c && before + c <= count;
    for (int64_t i = 0; i < c && pads; i++) pads = map[before + i] == i;
    if (!pads) {
        refuse(x, node, "zeros among picked channels have no ONNX form");
        return;
    }
    const int64_t sides[8] = {0, before, 0, 0, 0, count - c - before, 0, 0};
    const char *in[3] = {input(x, node, 0), ints(x, node, "pads", sides, 8),
                         scalar(x, node->name, "value", 0.0f)};
    rfx_onnx_string(rfx_onnx_node(w, "Pad", node->name, output, in, 3), "mode", "constant");
}

/* Writes CONVERT as Round, Clip and Cast. Cast alone truncates, and its result for numbers outside
 * of the integer range is undefined. */
static void export_convert(struct exporter *x, const struct rfx_node *node, const char *output) {
    enum rfx_type to = node->attr.convert.to;
    const char *in = input(x, node, 0);
    if (node->attr.convert.scale != 0.0f)
        refuse(x, node, "QuantizeLinear and DequantizeLinear are read, but not written");
    if (to != RFX_TYPE_FLOAT32) {
        const char *whole = part(x, node, "whole"), *held = part(x, node, "held");
        float lo, hi;
        rfx_type_limits(to, &lo, &hi);
        if (to == RFX_TYPE_INT32) hi = 0x1.fffffep30f; /* the largest float that is an int32 */
        (void)emit1(x, "Round", whole, whole, in);
        const char *bounds[3] = {whole, scalar(x, node->name, "lo", lo),
                                 scalar(x, node->name, "hi", hi)};
        (void)rfx_onnx_node(&x->writer, "Clip", held, held, bounds, 3);
        in = held;
    }
    rfx_onnx_int(emit1(x, "Cast", node->name, output, in), "to", rfx_type_onnx(to));
}

static void export_bytes(struct exporter *x, const struct rfx_node *node, const char *output) {
    (void)output;
    refuse(x, node, "operators on one-byte integers are read from ONNX files, but not written");
}

static void export_crop(struct exporter *x, const struct rfx_node *node, const char *output) {
    static const int64_t axes[2] = {2, 3};
    int64_t starts[2] = {node->attr.crop.y0, node->attr.crop.x0};
    int64_t steps[2] = {node->attr.crop.sy, node->attr.crop.sx};
    int64_t sizes[2] = {node->attr.crop.oh, node->attr.crop.ow}, ends[2];
    for (int i = 0; i < 2; i++) {
        int64_t last = starts[i] + (sizes[i] - 1) * steps[i];
        ends[i] = steps[i] > 0 ? last + 1 : last > 0 ? last - 1 : INT64_MIN + 1;
    }
    struct rfx_onnx_writer *w = &x->writer;
    const char *in[5] = {input(x, node, 0), ints(x, node, "starts", starts, 2),
                         ints(x, node, "ends", ends, 2), rfx_onnx_int64(w, "#space", axes, 2),
                         ints(x, node, "steps", steps, 2)};
    (void)rfx_onnx_node(w, "Slice", node->name, output, in, 5);
}

/* Writes GridSample. The grid is a map of two channels here; ONNX wants these channels last. */
static void export_grid_sample(struct exporter *x, const struct rfx_node *node,
                               const char *output) {
    static const char *const modes[] = {"nearest", "bilinear", "bicubic"};
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    const char *grid = part(x, node, "grid");
    channels_last(x, grid, input(x, node, 1));
    onnx_node *sample = emit2(x, "GridSample", node->name, output, input(x, node, 0), grid);
    rfx_onnx_string(sample, "mode", modes[node->attr.grid.mode]);
    rfx_onnx_string(sample, "padding_mode", paddings[node->attr.grid.padding]);
    rfx_onnx_int(sample, "align_corners", node->attr.grid.align_corners ? 1 : 0);
}

static void export_resize(struct exporter *x, const struct rfx_node *node, const char *output) {
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    static const char *const coords[] = {"half_pixel", "pytorch_half_pixel", "align_corners",
                                         "asymmetric", "half_pixel_symmetric"};
    static const char *const nearest[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                          "ceil"};
    const struct rfx_resize_attr *a = &node->attr.resize;
    const struct rfx_tensor *map = &x->graph->nodes[node->in[0]].out;
    struct rfx_onnx_writer *w = &x->writer;
    const char *in[4] = {input(x, node, 0), "", "", NULL};
    int64_t sizes[4] = {1, map->c, a->oh, a->ow};
    in[3] = ints(x, node, "sizes", sizes, 4);
    onnx_node *resize = rfx_onnx_node(w, "Resize", node->name, output, in, 4);
    rfx_onnx_string(resize, "mode", modes[a->mode]);
    rfx_onnx_string(resize, "coordinate_transformation_mode", coords[a->coord]);
    if (a->mode == RFX_RESIZE_NEAREST) rfx_onnx_string(resize, "nearest_mode", nearest[a->nearest]);
    if (a->mode == RFX_RESIZE_CUBIC) {
        rfx_onnx_float(resize, "cubic_coeff_a", a->cubic_a);
        rfx_onnx_int(resize, "exclude_outside", a->exclude_outside ? 1 : 0);
    } /* linear without antialias needs no more attributes: samples outside of the map have the
         border's value */
    if (a->antialias || a->coord == RFX_COORD_HALF_PIXEL_SYMMETRIC)
        refuse(x, node,
               "Resize has no antialias before opset 18 and no symmetric half "
               "pixels before opset 19");
    /* Sizes imply the scale out / in, which must be the one that the graph uses. */
    if (a->coord != RFX_COORD_ALIGN_CORNERS &&
        (a->scale_h != (float)a->oh / (float)map->h || a->scale_w != (float)a->ow / (float)map->w))
        refuse(x, node, "its scale is not the ratio of its output and input sizes");
}

static void export_depth(struct exporter *x, const struct rfx_node *node, const char *output) {
    bool to_space = node->op == RFX_OP_DEPTH_TO_SPACE, columns = node->attr.depth.column_major;
    if (!to_space && columns) {
        refuse(x, node, "SpaceToDepth has only the depth-first order");
        return;
    }
    onnx_node *n = own(x, node, to_space ? "DepthToSpace" : "SpaceToDepth", output);
    rfx_onnx_int(n, "blocksize", node->attr.depth.block);
    if (to_space) rfx_onnx_string(n, "mode", columns ? "CRD" : "DCR");
}

static void export_lrn(struct exporter *x, const struct rfx_node *node, const char *output) {
    onnx_node *lrn = own(x, node, "LRN", output);
    rfx_onnx_int(lrn, "size", node->attr.lrn.size);
    rfx_onnx_float(lrn, "alpha", node->attr.lrn.alpha);
    rfx_onnx_float(lrn, "beta", node->attr.lrn.beta);
    rfx_onnx_float(lrn, "bias", node->attr.lrn.bias);
}

static void export_concat(struct exporter *x, const struct rfx_node *node, const char *output) {
    int64_t axis = node->op == RFX_OP_CONCAT ? 1 : node->attr.concat.axis;
    const char **in = rfx_memory_calloc(x->graph->mem, (size_t)node->n_in + 1, sizeof *in);
    if (in == NULL) {
        fail_memory(x, node, (size_t)node->n_in * sizeof *in);
        return;
    }
    for (int k = 0; k < node->n_in; k++) in[k] = input(x, node, k);
    rfx_onnx_int(rfx_onnx_node(&x->writer, "Concat", node->name, output, in, node->n_in), "axis",
                 axis);
    rfx_memory_release(x->graph->mem, in);
}

static const char *reshaped(struct exporter *x, const char *in, const char *name,
                            const char *output, const int64_t *dims, int rank) {
    const char *shape = rfx_onnx_text(&x->writer, "%s#shape", name);
    const char *both[2] = {in, rfx_onnx_int64(&x->writer, shape, dims, rank)};
    (void)rfx_onnx_node(&x->writer, "Reshape", name, output, both, 2);
    return output;
}

/* Writes a softmax. Groups of channels are reshaped to a separate axis for the operator. */
static void export_softmax(struct exporter *x, const struct rfx_node *node, const char *output) {
    const char *op = node->attr.softmax.logarithm ? "LogSoftmax" : "Softmax";
    bool plain = node->op == RFX_OP_PLAIN_SOFTMAX;
    const struct rfx_tensor *t = &node->out;
    int64_t k = plain ? 0 : node->attr.softmax.group;
    if (k == 0 || k == t->c) {
        rfx_onnx_int(own(x, node, op, output), "axis", plain ? node->attr.softmax.axis : 1);
        return;
    }
    int64_t apart[5] = {1, t->c / k, k, t->h, t->w};
    const char *groups = part(x, node, "groups"), *made = part(x, node, "softmax");
    (void)reshaped(x, input(x, node, 0), groups, groups, apart, 5);
    rfx_onnx_int(emit1(x, op, made, made, groups), "axis", 2);
    (void)reshaped(x, made, node->name, output, t->shape.dims, 4);
}

static void export_join_maps(struct exporter *x, const struct rfx_node *node, const char *output) {
    const char *flat[RFX_ONNX_MAX_INPUTS];
    bool last = node->attr.concat.axis == 1;
    if (node->n_in > RFX_ONNX_MAX_INPUTS) {
        refuse(x, node, "too many levels");
        return;
    }
    for (int i = 0; i < node->n_in; i++) {
        const struct rfx_tensor *t = &x->graph->nodes[node->in[i]].out;
        int64_t c = last ? node->out.shape.dims[2] : t->c, cells = t->elems / c;
        int64_t dims[3] = {1, last ? cells : c, last ? c : cells};
        const char *in = input(x, node, i);
        const char *turned = rfx_onnx_text(&x->writer, "%s#turned%d", node->name, i);
        const char *name = rfx_onnx_text(&x->writer, "%s#flat%d", node->name, i);
        if (last) channels_last(x, turned, in);
        flat[i] = reshaped(x, last ? turned : in, name, name, dims, 3);
    }
    rfx_onnx_int(rfx_onnx_node(&x->writer, "Concat", node->name, output, flat, node->n_in), "axis",
                 node->attr.concat.axis);
}

static void export_constant(struct exporter *x, const struct rfx_node *node, const char *output) {
    (void)rfx_onnx_weight(&x->writer, output, node->attr.constant.weight,
                          node->attr.constant.shape);
}

/* Writes a weight of shape (1, c, 1, w), repeated in all rows, or (1, c, h, 1), repeated in all
 * columns, as a map. Returns its name; NULL: the node has no such weight. */
static const char *expanded(struct exporter *x, const struct rfx_node *node, int axis) {
    struct rfx_onnx_writer *w = &x->writer;
    int64_t dims[4] = {1, 1, node->attr.repeat.h, node->attr.repeat.w};
    int weight = axis == 2 ? node->attr.repeat.down : node->attr.repeat.across;
    const char *lines = rfx_onnx_text(w, "%s#%s", node->name, axis == 2 ? "down" : "across");
    const char *maps = rfx_onnx_text(w, "%s#expanded", lines);
    if (weight < 0) return NULL;
    dims[1] = x->graph->weights[weight].elems / dims[axis];
    struct rfx_shape shape = {4, {1, dims[1], axis == 2 ? dims[2] : 1, axis == 3 ? dims[3] : 1}};
    const char *in[2] = {rfx_onnx_weight(w, lines, weight, shape),
                         rfx_onnx_int64(w, rfx_onnx_text(w, "%s#shape", lines), dims, 4)};
    (void)rfx_onnx_node(w, "Expand", maps, maps, in, 2);
    return maps;
}

static void export_repeat(struct exporter *x, const struct rfx_node *node, const char *output) {
    const char *across = expanded(x, node, 3), *down = expanded(x, node, 2), *all = across;
    if (across != NULL && down != NULL) {
        all = part(x, node, "joined");
        rfx_onnx_int(emit2(x, "Concat", all, all, across, down), "axis", 1);
    } else if (down != NULL) {
        all = down;
    }
    const char *map = ints(x, node, "map", node->attr.repeat.map, node->attr.repeat.count);
    rfx_onnx_int(emit2(x, "Gather", node->name, output, all, map), "axis", 1);
}

/* --- convolutions, pools, batch norms --- */

/* Writes in * scale + shift for each channel as a BatchNormalization with mean 0 and variance 1.
 * scale, shift: indices of weights of c elements; -1: none. */
static void export_batch_norm(struct exporter *x, const struct rfx_node *node, int scale, int shift,
                              const char *name, const char *output, const char *in) {
    struct rfx_onnx_writer *w = &x->writer;
    struct rfx_shape shape = {1, {node->out.c}};
    long long c = (long long)node->out.c;
    const char *zeros = rfx_onnx_fill(w, rfx_onnx_text(w, "#zeros_%lld", c), shape, 0.0f);
    const char *ones = rfx_onnx_fill(w, rfx_onnx_text(w, "#ones_%lld", c), shape, 1.0f);
    const char *inputs[5] = {in, ones, zeros, zeros, ones};
    if (scale >= 0) inputs[1] = weight(x, node, "scale", scale, shape);
    if (shift >= 0) inputs[2] = weight(x, node, "shift", shift, shape);
    rfx_onnx_float(rfx_onnx_node(w, "BatchNormalization", name, output, inputs, 5), "epsilon",
                   0.0f);
}

static void export_affine(struct exporter *x, const struct rfx_node *node, const char *output) {
    int scale = node->attr.affine.scale, shift = node->attr.affine.shift;
    if (is_whole(x, node, scale) && is_whole(x, node, shift))
        export_batch_norm(x, node, scale, shift, node->name, output, input(x, node, 0));
    else
        export_scale_shift(x, node, scale, shift, input(x, node, 0), output);
}

static void window_attrs(onnx_node *n, int64_t kh, int64_t kw, int64_t sh, int64_t sw,
                         struct rfx_pads p) {
    int64_t pads[4] = {p.top, p.left, p.bottom, p.right};
    rfx_onnx_ints(n, "kernel_shape", (int64_t[2]){kh, kw}, 2);
    rfx_onnx_ints(n, "strides", (int64_t[2]){sh, sw}, 2);
    rfx_onnx_ints(n, "pads", pads, 4);
}

/* Writes the attributes of a Conv or ConvTranspose. */
static void conv_attrs(onnx_node *conv, const struct rfx_node *node) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    window_attrs(conv, a->kh, a->kw, a->sh, a->sw, a->pads);
    rfx_onnx_ints(conv, "dilations", (int64_t[2]){a->dh, a->dw}, 2);
    rfx_onnx_int(conv, "group", a->groups);
    if (node->op == RFX_OP_CONV_TRANSPOSE)
        rfx_onnx_ints(conv, "output_padding", (int64_t[2]){a->out_pad_h, a->out_pad_w}, 2);
}

static const char *conv_name(const struct rfx_node *node) {
    return node->op == RFX_OP_CONV_TRANSPOSE ? "ConvTranspose" : "Conv";
}

/* Writes a Conv or ConvTranspose whose weights are integers. A fused batch norm is part of weights
 * and bias. Output channels are axis 1 of transposed weights. */
static void export_byte_conv(struct exporter *x, const struct rfx_node *node,
                             struct rfx_shape shape, const char *output) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    bool transposed = node->op == RFX_OP_CONV_TRANSPOSE;
    struct rfx_onnx_rounding rounding = {(transposed ? 1 : shape.dims[1]) * a->kh * a->kw, a->oc,
                                         NULL, NULL};
    const char *in[3] = {input(x, node, 0),
                         byte_weights(x, node, a->weight, shape, &rounding, transposed ? 1 : 0),
                         int_bias(x, node, a->bias, a->oc)};
    conv_attrs(rfx_onnx_node(&x->writer, conv_name(node), node->name, output, in, 3), node);
}

/* Writes a Conv or ConvTranspose, then the batch norm and the residual addition that are fused into
 * it. The first ONNX node has the name of the graph's node. */
static void export_conv(struct exporter *x, const struct rfx_node *node, const char *output) {
    bool transposed = node->op == RFX_OP_CONV_TRANSPOSE;
    const struct rfx_conv_attr *a = &node->attr.conv;
    struct rfx_shape shape = {
        4, {transposed ? a->ic : a->oc, (transposed ? a->oc : a->ic) / a->groups, a->kh, a->kw}};
    if (quantisation_of(x, node)->weights) {
        export_byte_conv(x, node, shape, output);
        return;
    }
    const char *in[3] = {input(x, node, 0), weight(x, node, "weight", a->weight, shape), NULL};
    if (a->bias >= 0 && a->scale < 0)
        in[2] = weight(x, node, "bias", a->bias, (struct rfx_shape){1, {a->oc}});
    const char *made = a->scale >= 0 || node->residual ? part(x, node, "conv") : output;
    conv_attrs(rfx_onnx_node(&x->writer, conv_name(node), node->name, made, in, 3), node);
    if (a->scale >= 0) {
        const char *normed = node->residual ? part(x, node, "bn") : output;
        export_batch_norm(x, node, a->scale, a->bias, part(x, node, "bn"), normed, made);
        made = normed;
    }
    if (node->residual)
        (void)emit2(x, "Add", part(x, node, "add"), output, made, input(x, node, 1));
}

static void export_pool(struct exporter *x, const struct rfx_node *node, const char *output) {
    bool average = node->op == RFX_OP_POOL_AVG;
    const struct rfx_pool_attr *a = &node->attr.pool;
    if (average && (a->dh != 1 || a->dw != 1)) {
        refuse(x, node, "AveragePool has no dilations before opset 19");
        return;
    }
    onnx_node *pool = own(x, node, average ? "AveragePool" : "MaxPool", output);
    window_attrs(pool, a->kh, a->kw, a->sh, a->sw, a->pads);
    rfx_onnx_int(pool, "ceil_mode", a->ceil_mode ? 1 : 0);
    if (average) rfx_onnx_int(pool, "count_include_pad", a->count_include_pad ? 1 : 0);
    if (!average) rfx_onnx_ints(pool, "dilations", (int64_t[2]){a->dh, a->dw}, 2);
}

/* Writes the indices of a MaxPool, cast to float. The maxima are not read. */
static void export_pool_place(struct exporter *x, const struct rfx_node *node, const char *output) {
    const struct rfx_pool_attr *a = &node->attr.pool;
    const char *where = part(x, node, "where");
    onnx_node *pool = emit1(x, "MaxPool", where, where, input(x, node, 0));
    pool->unused = part(x, node, "values");
    window_attrs(pool, a->kh, a->kw, a->sh, a->sw, a->pads);
    rfx_onnx_int(pool, "ceil_mode", a->ceil_mode ? 1 : 0);
    rfx_onnx_ints(pool, "dilations", (int64_t[2]){a->dh, a->dw}, 2);
    rfx_onnx_int(pool, "storage_order", a->column_major ? 1 : 0);
    to_float(x, node->name, output, where);
}

static void export_pool_lp(struct exporter *x, const struct rfx_node *node, const char *output) {
    const struct rfx_pool_attr *a = &node->attr.pool;
    if (a->dh != 1 || a->dw != 1 || a->ceil_mode) {
        refuse(x, node, "LpPool has no dilations and no ceil_mode before opset 18");
        return;
    }
    onnx_node *pool = own(x, node, "LpPool", output);
    window_attrs(pool, a->kh, a->kw, a->sh, a->sw, a->pads);
    rfx_onnx_int(pool, "p", a->p);
}

static void export_adaptive(struct exporter *x, const struct rfx_node *node, const char *output) {
    const struct rfx_tensor *in = &x->graph->nodes[node->in[0]].out;
    int64_t oh = node->attr.adaptive.oh, ow = node->attr.adaptive.ow;
    const char *value = input(x, node, 0);
    if (oh == 1 && ow == 1) {
        (void)emit1(x, "GlobalAveragePool", node->name, output, value);
    } else if (oh == in->h && ow == in->w) {
        (void)emit1(x, "Identity", node->name, output, value);
    } else if (in->h % oh == 0 && in->w % ow == 0) {
        int64_t h = in->h / oh, w = in->w / ow;
        onnx_node *pool = emit1(x, "AveragePool", node->name, output, value);
        window_attrs(pool, h, w, h, w, (struct rfx_pads){0, 0, 0, 0});
    } else {
        refuse(x, node, "ONNX has adaptive pools only where the output divides the map");
    }
}

static void export_global(struct exporter *x, const struct rfx_node *node, const char *output) {
    static const int64_t space[2] = {2, 3};
    enum rfx_reduce_kind kind = node->attr.global_pool.kind;
    if (kind != RFX_REDUCE_MEAN && kind != RFX_REDUCE_MAX) {
        export_reduction(x, kind, node, space, 2, true, output);
        return;
    }
    (void)emit1(x, kind == RFX_REDUCE_MEAN ? "GlobalAveragePool" : "GlobalMaxPool", node->name,
                output, input(x, node, 0));
}

/* --- whole tensors --- */

static void export_reshape(struct exporter *x, const struct rfx_node *node, const char *output) {
    const struct rfx_shape *shape = &node->attr.reshape.shape;
    if (shape->rank == 2 && shape->dims[0] == 1) {
        rfx_onnx_int(own(x, node, "Flatten", output), "axis",
                     x->graph->nodes[node->in[0]].out.shape.dims[0] == 1 ? 1 : 0);
        return;
    }
    const char *in[2] = {input(x, node, 0), ints(x, node, "shape", shape->dims, shape->rank)};
    (void)rfx_onnx_node(&x->writer, "Reshape", node->name, output, in, 2);
}

static void export_slice(struct exporter *x, const struct rfx_node *node, const char *output) {
    const struct rfx_slice_attr *slice = &node->attr.slice;
    int64_t ends[RFX_MAX_RANK], axes[RFX_MAX_RANK];
    int rank = slice->shape.rank;
    for (int i = 0; i < rank; i++) {
        int64_t last = slice->starts[i] + (slice->shape.dims[i] - 1) * slice->steps[i];
        /* A slice that runs backwards to element 0 cannot have the end -1: in ONNX, -1 is the last
         * element. */
        ends[i] = slice->steps[i] > 0 ? last + 1 : last > 0 ? last - 1 : INT64_MIN + 1;
        axes[i] = i;
    }
    struct rfx_onnx_writer *w = &x->writer;
    const char *in[5] = {input(x, node, 0), ints(x, node, "starts", slice->starts, rank),
                         ints(x, node, "ends", ends, rank), ints(x, node, "axes", axes, rank),
                         ints(x, node, "steps", slice->steps, rank)};
    (void)rfx_onnx_node(w, "Slice", node->name, output, in, 5);
}

static void export_reduce(struct exporter *x, const struct rfx_node *node, const char *output) {
    int64_t axes[RFX_MAX_RANK];
    int count = 0;
    for (int i = 0; i < x->graph->nodes[node->in[0]].out.shape.rank; i++)
        if (node->attr.reduce.axes[i]) axes[count++] = i;
    export_reduction(x, node->attr.reduce.kind, node, axes, count, node->attr.reduce.keep_dims,
                     output);
}

static void export_gemm(struct exporter *x, const struct rfx_node *node, const char *output) {
    if (x->graph->nodes[node->in[0]].out.shape.rank != 2) {
        refuse(x, node, "only matrices (rank 2) are written as Gemm");
        return;
    }
    struct rfx_onnx_writer *w = &x->writer;
    int64_t k = node->attr.gemm.k, m = node->attr.gemm.m;
    int from = node->attr.gemm.weight, bias = node->attr.gemm.bias;
    bool mk = node->attr.gemm.weight_is_mk;
    struct rfx_shape shape = {2, {mk ? m : k, mk ? k : m}};
    const char *in[3] = {input(x, node, 0), NULL, NULL};
    if (quantisation_of(x, node)->weights) {
        struct rfx_onnx_rounding rounding = {mk ? k : 1, m, NULL, NULL};
        in[1] = byte_weights(x, node, from, shape, &rounding, mk ? 0 : 1);
        in[2] = int_bias(x, node, bias, m);
    } else {
        in[1] = weight(x, node, "weight", from, shape);
        if (bias >= 0) in[2] = weight(x, node, "bias", bias, (struct rfx_shape){1, {m}});
    }
    onnx_node *gemm = rfx_onnx_node(w, "Gemm", node->name, output, in, 3);
    rfx_onnx_float(gemm, "alpha", node->attr.gemm.alpha);
    rfx_onnx_float(gemm, "beta", node->attr.gemm.beta);
    rfx_onnx_int(gemm, "transB", mk ? 1 : 0);
}

/* Writes a MatMul, or an Identity for a node that only converts between layouts (ONNX has one). */
static void export_plain(struct exporter *x, const struct rfx_node *node, const char *output) {
    (void)own(x, node, node->op == RFX_OP_MATMUL ? "MatMul" : "Identity", output);
}

static void export_attention(struct exporter *x, const struct rfx_node *node, const char *output) {
    const struct rfx_attention_attr *attr = &node->attr.attention;
    const char *scores = part(x, node, "scores");
    (void)emit2(x, "MatMul", scores, scores, input(x, node, 0), input(x, node, 1));
    for (int s = 0; s < attr->n_steps; s++) {
        const char *made = rfx_onnx_text(&x->writer, "%s#step%d", node->name, s);
        const char *other = input(x, node, 3 + s);
        bool right = attr->steps[s].scores_right;
        export_join(x, attr->steps[s].kind, made, made, right ? other : scores,
                    right ? scores : other);
        scores = made;
    }
    const char *weights = part(x, node, "softmax");
    rfx_onnx_int(emit1(x, "Softmax", weights, weights, scores), "axis", -1);
    (void)emit2(x, "MatMul", node->name, output, weights, input(x, node, 2));
}

/* Writes a Transpose. The conversions between maps (channels last) and PLAIN tensors (ONNX order)
 * are transposes too. */
static void export_transpose(struct exporter *x, const struct rfx_node *node, const char *output) {
    int64_t perm[RFX_MAX_RANK];
    int rank = node->out.shape.rank;
    for (int i = 0; i < rank; i++) perm[i] = node->attr.transpose.perm[i];
    if (node->op == RFX_OP_NHWC_AS_PLAIN || node->op == RFX_OP_PLAIN_AS_NHWC) {
        rank = 4;
        memcpy(perm, node->op == RFX_OP_NHWC_AS_PLAIN ? to_last : to_first, sizeof to_last);
    }
    rfx_onnx_ints(own(x, node, "Transpose", output), "perm", perm, rank);
}

static void export_gather(struct exporter *x, const struct rfx_node *node, const char *output) {
    struct rfx_onnx_writer *w = &x->writer;
    const char *in[2] = {input(x, node, 0),
                         ints(x, node, "indices", node->attr.gather.map, node->attr.gather.count)};
    rfx_onnx_int(rfx_onnx_node(w, "Gather", node->name, output, in, 2), "axis",
                 node->attr.gather.axis);
}

/* Adds an ONNX node whose operands are input 0 and one integer. */
static onnx_node *with_integer(struct exporter *x, const struct rfx_node *node, const char *op,
                               int64_t value, const char *output) {
    struct rfx_onnx_writer *w = &x->writer;
    const char *in[2] = {input(x, node, 0), ints(x, node, "where", &value, 1)};
    return rfx_onnx_node(w, op, node->name, output, in, 2);
}

static void export_triangle(struct exporter *x, const struct rfx_node *node, const char *output) {
    rfx_onnx_int(with_integer(x, node, "Trilu", node->attr.triangle.k, output), "upper",
                 node->attr.triangle.upper);
}

static void export_running_sum(struct exporter *x, const struct rfx_node *node,
                               const char *output) {
    onnx_node *n = with_integer(x, node, "CumSum", node->attr.running.axis, output);
    rfx_onnx_int(n, "exclusive", node->attr.running.exclusive);
    rfx_onnx_int(n, "reverse", node->attr.running.reverse);
}

/* Writes the indices of a TopK. Its values are not written, as the graph has a separate node that
 * gathers them. */
static void export_top_k(struct exporter *x, const struct rfx_node *node, const char *output) {
    struct rfx_onnx_writer *w = &x->writer;
    const char *where = part(x, node, "where");
    const char *in[2] = {input(x, node, 0), ints(x, node, "k", &node->attr.top_k.k, 1)};
    onnx_node *top = rfx_onnx_node(w, "TopK", where, where, in, 2);
    top->unused = part(x, node, "values");
    rfx_onnx_int(top, "axis", node->attr.top_k.axis);
    rfx_onnx_int(top, "largest", node->attr.top_k.largest ? 1 : 0);
    to_float(x, node->name, output, where);
}

/* Returns input 1, which is float in the graph, cast to integers as ONNX requires. */
static const char *indices_of(struct exporter *x, const struct rfx_node *node) {
    enum { TYPE_INT64 = 7 };
    const char *made = part(x, node, "integers");
    rfx_onnx_int(emit1(x, "Cast", made, made, input(x, node, 1)), "to", TYPE_INT64);
    return made;
}

static void export_pick(struct exporter *x, const struct rfx_node *node, const char *output) {
    static const char *const ops[] = {"GatherElements", "GatherND", "Gather"};
    enum rfx_index_kind kind = node->attr.index.kind;
    rfx_onnx_int(emit2(x, ops[kind], node->name, output, input(x, node, 0), indices_of(x, node)),
                 kind == RFX_INDEX_TUPLES ? "batch_dims" : "axis", node->attr.index.axis);
}

static void export_scatter(struct exporter *x, const struct rfx_node *node, const char *output) {
    static const char *const kinds[] = {"none", "add", "mul", "max", "min"};
    const char *in[3] = {input(x, node, 0), indices_of(x, node), input(x, node, 2)};
    bool tuples = node->attr.index.kind == RFX_INDEX_TUPLES;
    if (node->attr.index.scatter > RFX_SCATTER_MUL)
        refuse(x, node, "updates are not the largest or smallest before opset 18");
    if (tuples && node->attr.index.axis != 0)
        refuse(x, node, "ONNX scatters no tuples behind other axes");
    onnx_node *made = rfx_onnx_node(&x->writer, tuples ? "ScatterND" : "ScatterElements",
                                    node->name, output, in, 3);
    if (!tuples) rfx_onnx_int(made, "axis", node->attr.index.axis);
    rfx_onnx_string(made, "reduction", kinds[node->attr.index.scatter]);
}

/* --- attention in windows --- */

/* The window attention node that is being written, with its sizes. */
struct windows {
    struct exporter *x;
    const struct rfx_node *node;
    const struct rfx_window_attention_attr *attr;
    int64_t down, across; /* number of windows from top to bottom, and from left to right */
    int64_t pixels;       /* of a window */
    int64_t keys, values; /* channels of a head's keys, and of its values */
};

static const char *text(const struct windows *w, const char *part) {
    return rfx_onnx_text(&w->x->writer, "%s#%s", w->node->name, part);
}

static const char *make(const struct windows *w, const char *op, const char *part, const char *a,
                        const char *b) {
    const char *name = text(w, part);
    (void)emit2(w->x, op, name, name, a, b);
    return name;
}

static const char *transpose(const struct windows *w, const char *part, const char *in,
                             const int64_t *perm, int rank) {
    const char *name = text(w, part);
    rfx_onnx_ints(emit1(w->x, "Transpose", name, name, in), "perm", perm, rank);
    return name;
}

/* Writes a Reshape to `output` (NULL: to a tensor named after `part`) and returns the name. */
static const char *reshape(const struct windows *w, const char *part, const char *in,
                           const int64_t *dims, int rank, const char *output) {
    struct rfx_onnx_writer *writer = &w->x->writer;
    const char *shape = rfx_onnx_int64(
        writer, rfx_onnx_text(writer, "%s#%s.shape", w->node->name, part), dims, rank);
    const char *name = text(w, part);
    if (output == NULL) output = name;
    (void)emit2(w->x, "Reshape", output == name ? name : w->node->name, output, in, shape);
    return output;
}

/* Writes a Slice of the positions [lo, hi) of an axis and returns its name. */
static const char *slice(const struct windows *w, const char *part, const char *in, int64_t axis,
                         int64_t lo, int64_t hi) {
    struct rfx_onnx_writer *writer = &w->x->writer;
    const char *name = text(w, part);
    const char *inputs[4] = {
        in, rfx_onnx_int64(writer, rfx_onnx_text(writer, "%s.from", name), &lo, 1),
        rfx_onnx_int64(writer, rfx_onnx_text(writer, "%s.to", name), &hi, 1),
        rfx_onnx_int64(writer, rfx_onnx_text(writer, "%s.axis", name), &axis, 1)};
    (void)rfx_onnx_node(writer, "Slice", name, name, inputs, 4);
    return name;
}

/* Writes a roll along an axis to `output` (NULL: to a tensor named after `part`): position i of the
 * result is position (i + shift) mod extent of `in`. Returns the name. A roll by 0 writes nothing
 * and returns `in`. */
static const char *roll(const struct windows *w, const char *part, const char *in, int64_t axis,
                        int64_t shift, int64_t extent, const char *output) {
    struct rfx_onnx_writer *writer = &w->x->writer;
    if (shift == 0) return in;
    const char *name = text(w, part);
    const char *both[2] = {
        slice(w, rfx_onnx_text(writer, "%s.first", part), in, axis, shift, extent),
        slice(w, rfx_onnx_text(writer, "%s.rest", part), in, axis, 0, shift)};
    onnx_node *concat =
        rfx_onnx_node(writer, "Concat", name, output == NULL ? name : output, both, 2);
    rfx_onnx_int(concat, "axis", axis);
    return output == NULL ? name : output;
}

/* Writes heads of `size` channels, from channel `first` of a map on, divided into windows, as a
 * tensor (down, across, heads, pixels, size) or, if `turned`, (down, across, heads, size, pixels).
 * Returns its name. */
static const char *part_of(const struct windows *w, const char *part, const char *map,
                           int64_t first, int64_t size, bool turned) {
    static const int64_t straight[6] = {2, 4, 0, 3, 5, 1}, keys[6] = {2, 4, 0, 1, 3, 5};
    const struct rfx_window_attention_attr *a = w->attr;
    struct rfx_onnx_writer *writer = &w->x->writer;
    const int64_t apart[6] = {a->heads, size, w->down, a->h, w->across, a->w};
    const int64_t joined[5] = {w->down, w->across, a->heads, turned ? size : w->pixels,
                               turned ? w->pixels : size};
    const char *in = slice(w, rfx_onnx_text(writer, "%s.channels", part), map, 1, first,
                           first + a->heads * size);
    in = reshape(w, rfx_onnx_text(writer, "%s.apart", part), in, apart, 6, NULL);
    in = transpose(w, rfx_onnx_text(writer, "%s.windows", part), in, turned ? keys : straight, 6);
    return reshape(w, part, in, joined, 5, NULL);
}

/* Writes the biases as (heads, pixels, pixels) and returns their name. For each pair of pixels of a
 * window, gathers the row of the position table for their distance. */
static const char *table_bias(const struct windows *w) {
    static const int64_t turn[2] = {1, 0};
    const struct rfx_window_attention_attr *a = w->attr;
    struct rfx_onnx_writer *writer = &w->x->writer;
    int64_t n = w->pixels, rows = (2 * a->h - 1) * (2 * a->w - 1);
    int64_t *index = rfx_memory_calloc(w->x->graph->mem, (size_t)(n * n), sizeof *index);
    const int64_t full[3] = {a->heads, n, n};
    if (index == NULL) {
        fail_memory(w->x, w->node, (size_t)(n * n) * sizeof *index);
        return "";
    }
    for (int64_t i = 0; i < n * n; i++) {
        int64_t below = i / n / a->w - i % n / a->w, right = i / n % a->w - i % n % a->w;
        index[i] = (below + a->h - 1) * (2 * a->w - 1) + right + a->w - 1;
    }
    const char *picks = rfx_onnx_int64(
        writer, rfx_onnx_text(writer, "places#%lldx%lld", (long long)a->h, (long long)a->w), index,
        n * n);
    rfx_memory_release(w->x->graph->mem, index);
    const char *table = rfx_onnx_weight(writer, text(w, "bias.table"), a->bias,
                                        (struct rfx_shape){2, {rows, a->heads}});
    const char *picked = make(w, "Gather", "bias.picked", table, picks);
    return reshape(w, "bias", transpose(w, "bias.turned", picked, turn, 2), full, 3, NULL);
}

static const char *add_bias(const struct windows *w, const char *scores) {
    const struct rfx_window_attention_attr *a = w->attr;
    if (a->bias < 0) return scores;
    struct rfx_shape full = {3, {a->heads, w->pixels, w->pixels}};
    const char *bias = a->by_table ? table_bias(w)
                                   : rfx_onnx_weight(&w->x->writer, text(w, "bias"), a->bias, full);
    return make(w, "Add", "biased", scores, bias);
}

static bool is_written(const struct rfx_onnx_writer *writer, const char *value) {
    for (int i = writer->n_nodes - 1; i >= 0; i--)
        if (strcmp(writer->nodes[i]->output, value) == 0) return true;
    return false;
}

/* Returns a constant with one number for each pixel of each window along an axis: 1 if the roll
 * moved the pixel there from the other end of the map, else 0. */
static const char *ends_of(const struct windows *w, bool rows, const char *name) {
    const struct rfx_window_attention_attr *a = w->attr;
    int64_t windows = rows ? w->down : w->across, n = w->pixels;
    int64_t *end = rfx_memory_calloc(w->x->graph->mem, (size_t)(windows * n), sizeof *end);
    if (end == NULL) {
        fail_memory(w->x, w->node, (size_t)(windows * n) * sizeof *end);
        return "";
    }
    for (int64_t i = 0; i < n; i++)
        end[(windows - 1) * n + i] =
            rows ? i / a->w >= a->h - a->shift_h : i % a->w >= a->w - a->shift_w;
    (void)rfx_onnx_int64(&w->x->writer, name, end, windows * n);
    rfx_memory_release(w->x->graph->mem, end);
    return name;
}

/* Writes a Reshape of `in` to the tensor `name` and returns the name. */
static const char *shaped(const struct windows *w, const char *name, const char *in,
                          const int64_t *dims, int rank) {
    struct rfx_onnx_writer *writer = &w->x->writer;
    const char *shape = rfx_onnx_int64(writer, rfx_onnx_text(writer, "%s.shape", name), dims, rank);
    (void)emit2(w->x, "Reshape", name, name, in, shape);
    return name;
}

/* Returns the mask of an axis. The last windows of the axis contain rows (or columns) from both
 * ends of the map. The mask is -100 between pixels of different ends, and 0 otherwise. All nodes
 * with the same windows share one mask. */
static const char *mask_of(const struct windows *w, bool rows) {
    const struct rfx_window_attention_attr *a = w->attr;
    struct rfx_onnx_writer *writer = &w->x->writer;
    int64_t windows = rows ? w->down : w->across;
    const int64_t from[5] = {rows ? windows : 1, rows ? 1 : windows, 1, w->pixels, 1};
    const int64_t to[5] = {from[0], from[1], 1, 1, w->pixels};
    const char *mask = rfx_onnx_text(
        writer, "%s#mask.%lldx%lld.%lld.%lld", rows ? "rows" : "columns", (long long)a->h,
        (long long)a->w, (long long)(rows ? a->shift_h : a->shift_w), (long long)windows);
    if (is_written(writer, mask)) return mask;
    const char *ends = ends_of(w, rows, rfx_onnx_text(writer, "%s.ends", mask));
    const char *same = rfx_onnx_text(writer, "%s.same", mask);
    (void)emit2(w->x, "Equal", same, same,
                shaped(w, rfx_onnx_text(writer, "%s.queries", mask), ends, from, 5),
                shaped(w, rfx_onnx_text(writer, "%s.keys", mask), ends, to, 5));
    const char *choice[3] = {same, scalar(w->x, mask, "none", 0.0f),
                             scalar(w->x, mask, "least", -100.0f)};
    (void)rfx_onnx_node(writer, "Where", mask, mask, choice, 3);
    return mask;
}

static const char *add_masks(const struct windows *w, const char *scores) {
    if (w->attr->shift_h != 0) scores = make(w, "Add", "masked.rows", scores, mask_of(w, true));
    if (w->attr->shift_w == 0) return scores;
    return make(w, "Add", "masked.columns", scores, mask_of(w, false));
}

/* Writes the tensor (down, across, heads, pixels, values) as a map to `output`. */
static void as_map(const struct windows *w, const char *in, const char *output) {
    static const int64_t perm[6] = {2, 5, 0, 3, 1, 4};
    const struct rfx_window_attention_attr *a = w->attr;
    const struct rfx_tensor *out = &w->node->out;
    const int64_t apart[6] = {w->down, w->across, a->heads, a->h, a->w, w->values};
    const int64_t map[4] = {1, out->c, out->h, out->w};
    bool rolled = a->shift_h != 0 || a->shift_w != 0;
    in = reshape(w, "out.apart", in, apart, 6, NULL);
    in = transpose(w, "out.turned", in, perm, 6);
    in = reshape(w, "out.map", in, map, 4, rolled ? NULL : output);
    if (!rolled) return;
    if (a->shift_h != 0)
        in = roll(w, "out.down", in, 2, out->h - a->shift_h, out->h,
                  a->shift_w == 0 ? output : NULL);
    if (a->shift_w != 0) (void)roll(w, "out.across", in, 3, out->w - a->shift_w, out->w, output);
}

static void export_window_attention(struct exporter *x, const struct rfx_node *node,
                                    const char *output) {
    const struct rfx_window_attention_attr *a = &node->attr.window_attention;
    const struct rfx_tensor *map = &node->out;
    int64_t c = x->graph->nodes[node->in[0]].out.c, keys = (c - map->c) / 2; /* of all heads */
    if (a->round_scores.scale != 0.0f || a->round_weights.scale != 0.0f)
        refuse(x, node, "attention that rounds to bytes is read, but not written");
    const struct windows w = {
        x, node, a, map->h / a->h, map->w / a->w, a->h * a->w, keys / a->heads, map->c / a->heads};
    const char *in = roll(&w, "down", input(x, node, 0), 2, a->shift_h, map->h, NULL);
    in = roll(&w, "across", in, 3, a->shift_w, map->w, NULL);
    const char *queries = part_of(&w, "queries", in, 0, w.keys, false);
    const char *turned = part_of(&w, "keys", in, keys, w.keys, true);
    const char *values = part_of(&w, "values", in, 2 * keys, w.values, false);
    queries = make(&w, "Mul", "scaled", queries, scalar(x, node->name, "scale", a->scale));
    const char *scores = add_bias(&w, make(&w, "MatMul", "scores", queries, turned));
    scores = add_masks(&w, scores);
    const char *weights = text(&w, "softmax");
    rfx_onnx_int(emit1(x, "Softmax", weights, weights, scores), "axis", -1);
    as_map(&w, make(&w, "MatMul", "mixed", weights, values), output);
}

/* --- one row per op --- */

struct op_row {
    /* Writes the ONNX nodes of a node without its fused activation; the last one makes `output`.
     * NULL: the node is the image, which is the model's input. */
    void (*write)(struct exporter *x, const struct rfx_node *node, const char *output);

    /* Returns whether the ONNX nodes contain numbers that depend on the map's rows and columns.
     * NULL: they do not. */
    bool (*fixes_size)(const struct rfx_node *node);

    bool has_own_size; /* the output's size does not follow the input's */
};

static bool always(const struct rfx_node *node) {
    (void)node;
    return true;
}

/* Returns whether an adaptive pool has more than one output pixel. One output pixel is the mean of
 * the whole map at any size. */
static bool unless_global(const struct rfx_node *node) {
    return node->attr.adaptive.oh != 1 || node->attr.adaptive.ow != 1;
}

/* Returns whether a softmax has groups. They need a Reshape that contains the map's size. */
static bool in_groups(const struct rfx_node *node) {
    return node->attr.softmax.group > 0;
}

static const struct op_row op_rows[] = {
    [RFX_OP_INPUT] = {.write = NULL},
    [RFX_OP_CONST_MAP] = {.write = export_constant},
    [RFX_OP_REPEAT] = {export_repeat, always, true},
    [RFX_OP_CONV] = {.write = export_conv},
    [RFX_OP_CONV_TRANSPOSE] = {.write = export_conv},
    [RFX_OP_POOL_MAX] = {.write = export_pool},
    [RFX_OP_POOL_PLACE] = {.write = export_pool_place},
    [RFX_OP_POOL_AVG] = {.write = export_pool},
    [RFX_OP_POOL_LP] = {.write = export_pool_lp},
    [RFX_OP_POOL_ADAPTIVE_AVG] = {export_adaptive, unless_global, true},
    [RFX_OP_GLOBAL_POOL] = {export_global, .has_own_size = true},
    [RFX_OP_MOMENTS] = {export_moments, .has_own_size = true},
    [RFX_OP_NORMALISE] = {.write = export_normalise},
    [RFX_OP_AFFINE] = {.write = export_affine},
    [RFX_OP_ACTIVATION] = {.write = export_activation},
    [RFX_OP_BINARY] = {.write = export_binary},
    [RFX_OP_CONCAT] = {.write = export_concat},
    [RFX_OP_CONVERT] = {.write = export_convert},
    [RFX_OP_INT_CONV] = {.write = export_bytes},
    [RFX_OP_INT_ADD] = {.write = export_bytes},
    [RFX_OP_INT_MUL] = {.write = export_bytes},
    [RFX_OP_INT_MEAN] = {.write = export_bytes},
    [RFX_OP_CHANNEL_SELECT] = {.write = export_select},
    [RFX_OP_PAD] = {.write = export_pad},
    [RFX_OP_CROP] = {export_crop, .fixes_size = always},
    [RFX_OP_RESIZE] = {export_resize, .fixes_size = always},
    [RFX_OP_GRID_SAMPLE] = {.write = export_grid_sample},
    [RFX_OP_DEPTH_TO_SPACE] = {.write = export_depth},
    [RFX_OP_SPACE_TO_DEPTH] = {.write = export_depth},
    [RFX_OP_LRN] = {.write = export_lrn},
    [RFX_OP_SOFTMAX] = {export_softmax, .fixes_size = in_groups},
    [RFX_OP_CHANNEL_REDUCE] = {.write = export_channel_reduce},
    [RFX_OP_CHANNEL_NORM] = {.write = export_channel_norm},
    [RFX_OP_TRIANGLE] = {.write = export_triangle},
    [RFX_OP_RUNNING_SUM] = {.write = export_running_sum},
    [RFX_OP_WINDOW_ATTENTION] = {export_window_attention, .fixes_size = always},
    [RFX_OP_CONST_PLAIN] = {.write = export_constant},
    [RFX_OP_TO_PLAIN] = {.write = export_plain},
    [RFX_OP_TO_NHWC] = {.write = export_plain},
    [RFX_OP_NHWC_AS_PLAIN] = {.write = export_transpose},
    [RFX_OP_PLAIN_AS_NHWC] = {.write = export_transpose},
    [RFX_OP_RESHAPE] = {export_reshape, .fixes_size = always},
    [RFX_OP_TRANSPOSE] = {.write = export_transpose},
    [RFX_OP_PLAIN_CONCAT] = {.write = export_concat},
    [RFX_OP_JOIN_MAPS] = {export_join_maps, .fixes_size = always},
    [RFX_OP_PLAIN_SLICE] = {export_slice, .fixes_size = always},
    [RFX_OP_PLAIN_GATHER] = {export_gather, .fixes_size = always},
    [RFX_OP_TOP_K] = {export_top_k, .has_own_size = true},
    [RFX_OP_PICK] = {.write = export_pick},
    [RFX_OP_SCATTER] = {.write = export_scatter},
    [RFX_OP_PLAIN_SOFTMAX] = {.write = export_softmax},
    [RFX_OP_PLAIN_BINARY] = {.write = export_binary},
    [RFX_OP_REDUCE] = {.write = export_reduce},
    [RFX_OP_GEMM] = {export_gemm, .fixes_size = always},
    [RFX_OP_MATMUL] = {.write = export_plain},
    [RFX_OP_ATTENTION] = {.write = export_attention},
};
_Static_assert(sizeof op_rows / sizeof op_rows[0] == RFX_OP_COUNT, "one row per op");

bool rfx_onnx_export_has(enum rfx_op op) {
    return op_rows[op].write != NULL;
}

/* --- the graph --- */

/* Returns whether an output differs in shape or type from its node's tensor. */
static bool is_declared_otherwise(const struct rfx_output *output) {
    return output->stored.reshaped || output->stored.type != RFX_TYPE_FLOAT32;
}

/* Returns the name of a node's tensor: the name of the network output that it is, or else the
 * node's alias, or else the node's name. */
static const char *value_name(struct exporter *x, int index) {
    const struct rfx_graph *graph = x->graph;
    const struct rfx_node *node = &graph->nodes[index];
    if (rfx_node_is_input(node)) return "input";
    if (!rfx_node_is_constant(node))
        for (int i = 0; i < graph->n_outputs; i++)
            if (graph->outputs[i].node == index && !is_declared_otherwise(&graph->outputs[i]))
                return graph->outputs[i].name;
    const char *name = node->alias != NULL && rfx_graph_find(graph, node->alias) == index
                           ? node->alias
                           : node->name;
    bool taken = strcmp(name, "input") == 0;
    for (int i = 0; i < graph->n_outputs; i++)
        taken = taken || strcmp(name, graph->outputs[i].name) == 0;
    return taken ? rfx_onnx_text(&x->writer, "%s#value", name) : name;
}

/* Returns whether the tensor of a node is an output of the network under this name. */
static bool is_output_name(const struct exporter *x, const char *name) {
    for (int i = 0; i < x->graph->n_outputs; i++)
        if (strcmp(x->graph->outputs[i].name, name) == 0) return true;
    return false;
}

/* Writes the operation of a node, and the activation fused into it, to `output`. */
static void export_operation(struct exporter *x, const struct rfx_node *node, const char *output) {
    const struct op_row *row = &op_rows[node->op];
    if (node->act.kind == RFX_ACT_NONE || !rfx_node_takes_in(node, RFX_FUSE_ACTIVATION)) {
        row->write(x, node, output);
    } else {
        const char *before = part(x, node, "linear");
        row->write(x, node, before);
        export_act(x, node, part(x, node, "act"), output, before);
    }
}

static void export_node(struct exporter *x, int index) {
    const struct rfx_node *node = &x->graph->nodes[index];
    const struct rfx_node_quantisation *q = quantisation_of(x, node);
    const char *value = value_name(x, index), *made = value;
    x->values[index] = value;
    if (x->quantisation != NULL && is_layout_only(node) && !is_output_name(x, value)) {
        x->values[index] = input(x, node, 0);
        return;
    }
    if (q->bytes && !rfx_node_is_input(node)) made = part(x, node, "float");
    if (q->folded)
        made = input(x, node, 0);
    else if (!rfx_node_is_input(node))
        export_operation(x, node, made);
    if (!q->bytes) return;
    if (rfx_node_is_input(node)) x->values[index] = value = part(x, node, "image");
    as_bytes(x, node, made, value);
}

/* Returns whether a node combines a constant that has rows or columns with an operand whose size
 * follows the image. Then the constant fixes the size of the image. */
static bool meets_sized_constant(const struct exporter *x, const struct rfx_node *node) {
    for (int k = 0; k < node->n_in; k++) {
        const struct rfx_node *in = &x->graph->nodes[node->in[k]];
        bool sized = in->out.layout == RFX_LAYOUT_PLAIN || in->out.h != 1 || in->out.w != 1;
        if (!x->follows_size[node->in[k]] && in->out.elems != 1 && sized) return true;
    }
    return false;
}

static void find_fixed_sizes(struct exporter *x) {
    for (int i = 0; i < x->graph->n_nodes; i++) {
        const struct rfx_node *node = &x->graph->nodes[i];
        const struct op_row *row = &op_rows[node->op];
        bool follows = rfx_node_is_input(node);
        for (int k = 0; k < node->n_in; k++) follows = follows || x->follows_size[node->in[k]];
        bool fixes = row->fixes_size != NULL && row->fixes_size(node);
        if (follows && (fixes || meets_sized_constant(x, node))) x->size_is_fixed = true;
        x->follows_size[i] = follows && !row->has_own_size;
    }
}

/* Lists the axes before the rows of a declared shape, except the channel axis. All of them have
 * size 1. Returns their number. */
static int list_ones(const struct rfx_stored *stored, const struct rfx_tensor *map, int64_t *axes) {
    int n = 0, row = stored->shape.rank - (stored->last ? 3 : 2);
    bool channels = stored->last || map->c == 1; /* found, or not before the rows */
    for (int i = 0; i < row; i++) {
        if (!channels && stored->shape.dims[i] == map->c)
            channels = true;
        else
            axes[n++] = i;
    }
    return n;
}

/* Adds an operator that removes or adds axes (Squeeze, Unsqueeze) and returns its result. */
static const char *change_axes(struct exporter *x, const char *op, const char *name, const char *in,
                               const int64_t *axes, int n) {
    const char *made = rfx_onnx_text(&x->writer, "%s#%s", name, op);
    const char *list = rfx_onnx_text(&x->writer, "%s#%s#axes", name, op);
    (void)emit2(x, op, made, made, in, rfx_onnx_int64(&x->writer, list, axes, n));
    return made;
}

/* Writes the ONNX nodes that give an output its declared shape, from the tensor (1, c, h, w).
 * Returns the name of the result. */
static const char *export_stored(struct exporter *x, const struct rfx_output *output,
                                 const char *value) {
    static const int64_t leading[2] = {0, 1};
    const struct rfx_tensor *map = &x->graph->nodes[output->node].out;
    const struct rfx_stored *stored = &output->stored;
    struct rfx_onnx_writer *w = &x->writer;
    int64_t ones[RFX_MAX_RANK];
    if (!stored->reshaped) return value;
    if (stored->last) {
        const char *turned = rfx_onnx_text(w, "%s#turned", output->name);
        channels_last(x, turned, value);
        value = turned;
    }
    int n = list_ones(stored, map, ones), dropped = stored->last || map->c > 1 ? 1 : 2;
    value = change_axes(x, "Squeeze", output->name, value, leading, dropped);
    return n == 0 ? value : change_axes(x, "Unsqueeze", output->name, value, ones, n);
}

/* Returns whether an axis of an output depends on the image's rows or columns. */
static bool is_sized_axis(const struct rfx_output *output, const struct rfx_tensor *t, int rank,
                          int axis) {
    if (t->layout == RFX_LAYOUT_PLAIN) return true;
    int row = rank - (output->stored.last ? 3 : 2);
    return axis == row || axis == row + 1;
}

static void export_values(struct exporter *x) {
    const struct rfx_graph *graph = x->graph;
    struct rfx_onnx_writer *w = &x->writer;
    if (graph->input >= 0) {
        struct rfx_onnx_value value = {.name = "input",
                                       .shape = graph->nodes[graph->input].out.shape};
        if (!x->size_is_fixed) {
            value.dim_names[2] = "height";
            value.dim_names[3] = "width";
        }
        rfx_onnx_value(w, false, &value);
    }
    for (int i = 0; i < graph->n_outputs; i++) {
        const struct rfx_output *output = &graph->outputs[i];
        const struct rfx_tensor *t = &graph->nodes[output->node].out;
        struct rfx_onnx_value value = {
            .name = output->name, .shape = rfx_output_shape(graph, i), .type = output->stored.type};
        bool symbolic = x->follows_size[output->node] && !x->size_is_fixed;
        for (int d = 0; symbolic && d < value.shape.rank; d++)
            if (is_sized_axis(output, t, value.shape.rank, d))
                value.dim_names[d] = rfx_onnx_text(w, "%s_dim%d", value.name, d);
        rfx_onnx_value(w, true, &value);
        const char *made = export_stored(x, output, x->values[output->node]);
        if (strcmp(made, value.name) == 0) continue;
        bool floats = value.type == RFX_TYPE_FLOAT32;
        onnx_node *last = emit1(x, floats ? "Identity" : "Cast",
                                rfx_onnx_text(w, "%s#output", value.name), value.name, made);
        if (!floats) rfx_onnx_int(last, "to", rfx_type_onnx(value.type));
    }
}

/* Writes the file `path`, or (NULL) makes the model. */
static enum rfx_status export_to(const struct rfx_graph *graph,
                                 const struct rfx_quantisation *quantisation, const char *path,
                                 struct rfx_onnx_made **made, struct rfx_error *err) {
    struct exporter x = {.graph = graph, .quantisation = quantisation};
    size_t n = (size_t)graph->n_nodes;
    rfx_onnx_writer_init(&x.writer, graph, err);
    x.values = rfx_memory_calloc(graph->mem, n, sizeof *x.values);
    x.follows_size = rfx_memory_calloc(graph->mem, n, sizeof *x.follows_size);
    enum rfx_status status;
    if (x.values == NULL || x.follows_size == NULL) {
        status = rfx_memory_fail(graph->mem, "ONNX export", n * sizeof *x.values, err);
        goto done;
    }
    find_fixed_sizes(&x);
    for (int i = 0; i < graph->n_nodes; i++) export_node(&x, i);
    export_values(&x);
    status = path != NULL ? rfx_onnx_writer_save(&x.writer, path)
                          : rfx_onnx_writer_make(&x.writer, made);
done:
    rfx_onnx_writer_free(&x.writer);
    rfx_memory_release(graph->mem, x.follows_size);
    rfx_memory_release(graph->mem, x.values);
    return status;
}

enum rfx_status rfx_onnx_export(const struct rfx_graph *graph, const char *path,
                                struct rfx_error *err) {
    return export_to(graph, NULL, path, NULL, err);
}

enum rfx_status rfx_onnx_export_quantised(const struct rfx_graph *graph,
                                          const struct rfx_quantisation *quantisation,
                                          const char *path, struct rfx_error *err) {
    return export_to(graph, quantisation, path, NULL, err);
}

enum rfx_status rfx_onnx_make_quantised(const struct rfx_graph *graph,
                                        const struct rfx_quantisation *quantisation,
                                        struct rfx_onnx_made **out, struct rfx_error *err) {
    return export_to(graph, quantisation, NULL, out, err);
}
