/* ONNX forms of activations, as nodes of their own or after the node that they are fused into. */
#include "rfexec/onnx_export.h"

typedef struct rfx_onnx_node onnx_node;

static void export_prelu(struct rfx_exporter *x, const struct rfx_node *node, const char *name,
                         const char *output, const char *in) {
    int64_t n = x->graph->weights[node->act.slope].elems;
    struct rfx_shape shape = {node->out.layout == RFX_LAYOUT_NHWC ? 3 : 1, {n, 1, 1}};
    const char *slope = rfx_onnx_weight(
        &x->writer, rfx_onnx_text(&x->writer, "%s.slope", node->name), node->act.slope, shape);
    (void)rfx_export_emit2(x, "PRelu", name, output, in, slope);
}

void rfx_export_act(struct rfx_exporter *x, const struct rfx_node *node, const char *name,
                    const char *output, const char *in) {
    static const char *const ops[] = {[RFX_ACT_NONE] = "Identity",
                                      [RFX_ACT_RELU] = "Relu",
                                      [RFX_ACT_CLIP] = "Clip",
                                      [RFX_ACT_LEAKY_RELU] = "LeakyRelu",
                                      [RFX_ACT_PRELU] = "PRelu",
                                      [RFX_ACT_SIGMOID] = "Sigmoid",
                                      [RFX_ACT_HARD_SIGMOID] = "HardSigmoid",
                                      [RFX_ACT_HARD_SWISH] = "HardSwish",
                                      [RFX_ACT_SILU] = "Mul",
                                      [RFX_ACT_TANH] = "Tanh",
                                      [RFX_ACT_EXP] = "Exp",
                                      [RFX_ACT_LOG] = "Log",
                                      [RFX_ACT_SQRT] = "Sqrt",
                                      [RFX_ACT_NEG] = "Neg",
                                      [RFX_ACT_ABS] = "Abs",
                                      [RFX_ACT_ELU] = "Elu",
                                      [RFX_ACT_SOFTPLUS] = "Softplus",
                                      [RFX_ACT_ERF] = "Erf",
                                      [RFX_ACT_FLOOR] = "Floor",
                                      [RFX_ACT_CEIL] = "Ceil",
                                      [RFX_ACT_RECIPROCAL] = "Reciprocal",
                                      [RFX_ACT_POW] = "Pow"};
    _Static_assert(sizeof ops / sizeof ops[0] == RFX_ACT_COUNT, "one ONNX op per activation");
    enum rfx_act_kind kind = node->act.kind;
    if (kind == RFX_ACT_CLIP) {
        const char *inputs[3] = {in, rfx_export_scalar(x, name, "min", node->act.alpha),
                                 rfx_export_scalar(x, name, "max", node->act.beta)};
        (void)rfx_onnx_node(&x->writer, "Clip", name, output, inputs, 3);
    } else if (kind == RFX_ACT_PRELU) {
        export_prelu(x, node, name, output, in);
    } else if (kind == RFX_ACT_SILU) {
        const char *gate = rfx_onnx_text(&x->writer, "%s#gate", name);
        (void)rfx_export_emit1(x, "Sigmoid", gate, gate, in);
        (void)rfx_export_emit2(x, "Mul", name, output, in, gate);
    } else if (kind == RFX_ACT_POW) {
        (void)rfx_export_emit2(x, "Pow", name, output, in,
                               rfx_export_scalar(x, name, "exponent", node->act.alpha));
    } else {
        onnx_node *act = rfx_export_emit1(x, ops[kind], name, output, in);
        bool alpha = kind == RFX_ACT_LEAKY_RELU || kind == RFX_ACT_ELU;
        if (alpha || kind == RFX_ACT_HARD_SIGMOID) rfx_onnx_float(act, "alpha", node->act.alpha);
        if (kind == RFX_ACT_HARD_SIGMOID) rfx_onnx_float(act, "beta", node->act.beta);
    }
}

void rfx_export_activation(struct rfx_exporter *x, const struct rfx_node *node,
                           const char *output) {
    rfx_export_act(x, node, node->name, output, rfx_export_in(x, node, 0));
}
