/* ONNX forms of activations, as nodes of their own or after the node that they are fused into. */
#include "rfexec/onnx/export/onnx_export.h"

typedef struct rfx_onnx_node onnx_node;

static void export_prelu(struct rfx_exporter *x, const struct rfx_node *node, const char *name,
                         const char *output, const char *in) {
    int64_t n = x->graph->weights[node->act.slope].elems;
    struct rfx_shape shape = {node->out.layout == RFX_LAYOUT_NHWC ? 3 : 1, {n, 1, 1}};
    const char *slope = rfx_onnx_weight(
        &x->writer, rfx_onnx_text(&x->writer, "%s.slope", node->name), node->act.slope, shape);
    (void)rfx_export_emit2(x, "PRelu", name, output, in, slope);
}

static void export_clip(struct rfx_exporter *x, const struct rfx_node *node, const char *name,
                        const char *output, const char *in) {
    const char *inputs[3] = {in, rfx_export_scalar(x, name, "min", node->act.alpha),
                             rfx_export_scalar(x, name, "max", node->act.beta)};
    (void)rfx_onnx_node(&x->writer, "Clip", name, output, inputs, 3);
}

static void export_silu(struct rfx_exporter *x, const struct rfx_node *node, const char *name,
                        const char *output, const char *in) {
    (void)node;
    const char *gate = rfx_onnx_text(&x->writer, "%s#gate", name);
    (void)rfx_export_emit1(x, "Sigmoid", gate, gate, in);
    (void)rfx_export_emit2(x, "Mul", name, output, in, gate);
}

static void export_pow(struct rfx_exporter *x, const struct rfx_node *node, const char *name,
                       const char *output, const char *in) {
    const char *exponent = rfx_export_scalar(x, name, "exponent", node->act.alpha);
    (void)rfx_export_emit2(x, "Pow", name, output, in, exponent);
}

/* Two numbers that are not called alpha and beta. */
static void export_named(struct rfx_exporter *x, const struct rfx_node *node, const char *name,
                         const char *output, const char *in) {
    bool selu = node->act.kind == RFX_ACT_SELU;
    onnx_node *act = rfx_export_emit1(x, rfx_act_def(node->act.kind)->onnx, name, output, in);
    rfx_onnx_float(act, selu ? "alpha" : "lambd", node->act.alpha);
    rfx_onnx_float(act, selu ? "gamma" : "bias", node->act.beta);
}

static void export_not(struct rfx_exporter *x, const struct rfx_node *node, const char *name,
                       const char *output, const char *in) {
    (void)node;
    const char *negated = rfx_onnx_text(&x->writer, "%s#not", name);
    (void)rfx_export_emit1(x, "Not", negated, negated, rfx_export_as_bool(x, name, "x", in));
    rfx_export_to_float(x, name, output, negated);
}

typedef void (*export_form)(struct rfx_exporter *x, const struct rfx_node *node, const char *name,
                            const char *output, const char *in);

/* Of the kinds that have a form of their own. */
static const export_form own_forms[RFX_ACT_COUNT] = {
    [RFX_ACT_CLIP] = export_clip, [RFX_ACT_PRELU] = export_prelu, [RFX_ACT_SILU] = export_silu,
    [RFX_ACT_POW] = export_pow,   [RFX_ACT_SELU] = export_named,  [RFX_ACT_SHRINK] = export_named,
    [RFX_ACT_NOT] = export_not,
};

void rfx_export_act(struct rfx_exporter *x, const struct rfx_node *node, const char *name,
                    const char *output, const char *in) {
    const struct rfx_act_def *def = rfx_act_def(node->act.kind);
    if ((def->traits & RFX_ACT_HAS_OWN_FORM) != 0) {
        own_forms[node->act.kind](x, node, name, output, in);
        return;
    }
    onnx_node *act = rfx_export_emit1(x, def->onnx, name, output, in);
    if ((def->traits & RFX_ACT_HAS_ALPHA) != 0) rfx_onnx_float(act, "alpha", node->act.alpha);
    if ((def->traits & RFX_ACT_HAS_BETA) != 0) rfx_onnx_float(act, "beta", node->act.beta);
}

void rfx_export_activation(struct rfx_exporter *x, const struct rfx_node *node,
                           const char *output) {
    rfx_export_act(x, node, node->name, output, rfx_export_in(x, node, 0));
}
