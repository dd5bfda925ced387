/* Writing a graph as an ONNX model of opset 17.
 *
 * A node of the graph becomes one to four ONNX nodes: fused scales a BatchNormalization, fused
 * residuals an Add, fused activations their own node; the last of them makes the tensor, which is
 * called by the node's alias. Height and width stay symbolic unless a node fixes them. What ONNX
 * cannot say in this opset is refused with the node's name. */
#include "rfexec/onnx_export.h"

#include <string.h>

#include "layers/op.h"
#include "rfexec/model.h"

typedef struct rfx_onnx_node onnx_node;

void rfx_export_refuse(struct rfx_exporter *x, const struct rfx_node *node, const char *why) {
    if (x->writer.status != RFX_OK) return;
    x->writer.status = rfx_fail(x->writer.err, RFX_STATUS_UNSUPPORTED, "ONNX export: %s '%s': %s",
                                rfx_op_def(node->op)->name, node->name, why);
}

static onnx_node *emit1(struct rfx_exporter *x, const char *op, const char *name,
                        const char *output, const char *in) {
    return rfx_onnx_node(&x->writer, op, name, output, &in, 1);
}

static onnx_node *emit2(struct rfx_exporter *x, const char *op, const char *name,
                        const char *output, const char *left, const char *right) {
    const char *in[2] = {left, right};
    return rfx_onnx_node(&x->writer, op, name, output, in, 2);
}

/* A float constant of no dimensions. */
static const char *scalar(struct rfx_exporter *x, const char *node, const char *part, float value) {
    const char *name = rfx_onnx_text(&x->writer, "%s#%s", node, part);
    return rfx_onnx_fill(&x->writer, name, (struct rfx_shape){0, {0}}, value);
}

static void export_prelu(struct rfx_exporter *x, const struct rfx_node *node, const char *name,
                         const char *output, const char *in) {
    int64_t n = x->graph->weights[node->act.slope].elems;
    struct rfx_shape shape = {node->out.layout == RFX_LAYOUT_NHWC ? 3 : 1, {n, 1, 1}};
    const char *slope = rfx_onnx_weight(
        &x->writer, rfx_onnx_text(&x->writer, "%s.slope", node->name), node->act.slope, shape);
    (void)emit2(x, "PRelu", name, output, in, slope);
}

static void export_act(struct rfx_exporter *x, const struct rfx_node *node, const char *name,
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
        const char *inputs[3] = {in, scalar(x, name, "min", node->act.alpha),
                                 scalar(x, name, "max", node->act.beta)};
        (void)rfx_onnx_node(&x->writer, "Clip", name, output, inputs, 3);
    } else if (kind == RFX_ACT_PRELU) {
        export_prelu(x, node, name, output, in);
    } else if (kind == RFX_ACT_SILU) {
        const char *gate = rfx_onnx_text(&x->writer, "%s#gate", name);
        (void)emit1(x, "Sigmoid", gate, gate, in);
        (void)emit2(x, "Mul", name, output, in, gate);
    } else if (kind == RFX_ACT_POW) {
        (void)emit2(x, "Pow", name, output, in, scalar(x, name, "exponent", node->act.alpha));
    } else {
        onnx_node *act = emit1(x, ops[kind], name, output, in);
        bool alpha = kind == RFX_ACT_LEAKY_RELU || kind == RFX_ACT_ELU;
        if (alpha || kind == RFX_ACT_HARD_SIGMOID) rfx_onnx_float(act, "alpha", node->act.alpha);
        if (kind == RFX_ACT_HARD_SIGMOID) rfx_onnx_float(act, "beta", node->act.beta);
    }
}

/* in * scale + shift per channel (weights of c elements, or -1) as a BatchNormalization of mean 0
 * and variance 1. */
static void export_batch_norm(struct rfx_exporter *x, const struct rfx_node *node, int scale,
                              int shift, const char *name, const char *output, const char *in) {
    struct rfx_onnx_writer *w = &x->writer;
    struct rfx_shape shape = {1, {node->out.c}};
    long long c = (long long)node->out.c;
    const char *zeros = rfx_onnx_fill(w, rfx_onnx_text(w, "#zeros_%lld", c), shape, 0.0f);
    const char *ones = rfx_onnx_fill(w, rfx_onnx_text(w, "#ones_%lld", c), shape, 1.0f);
    const char *inputs[5] = {in, ones, zeros, zeros, ones};
    if (scale >= 0)
        inputs[1] = rfx_onnx_weight(w, rfx_onnx_text(w, "%s.scale", node->name), scale, shape);
    if (shift >= 0)
        inputs[2] = rfx_onnx_weight(w, rfx_onnx_text(w, "%s.shift", node->name), shift, shape);
    rfx_onnx_float(rfx_onnx_node(w, "BatchNormalization", name, output, inputs, 5), "epsilon",
                   0.0f);
}

static bool is_vector(const struct rfx_exporter *x, int weight, int64_t c) {
    return weight < 0 || x->graph->weights[weight].elems == c;
}

static void export_affine(struct rfx_exporter *x, const struct rfx_node *node, const char *name,
                          const char *output) {
    int scale = node->attr.affine.scale, shift = node->attr.affine.shift;
    const char *in = rfx_export_in(x, node, 0);
    if (is_vector(x, scale, node->out.c) && is_vector(x, shift, node->out.c)) {
        export_batch_norm(x, node, scale, shift, name, output, in);
        return;
    }
    struct rfx_onnx_writer *w = &x->writer;
    const char *scaled = shift >= 0 ? rfx_onnx_text(w, "%s#scaled", name) : output;
    if (scale >= 0) {
        struct rfx_shape shape = {3, {x->graph->weights[scale].elems, 1, 1}};
        (void)emit2(x, "Mul", scaled, scaled, in,
                    rfx_onnx_weight(w, rfx_onnx_text(w, "%s.scale", node->name), scale, shape));
    }
    if (shift >= 0) {
        struct rfx_shape shape = {3, {x->graph->weights[shift].elems, 1, 1}};
        (void)emit2(x, "Add", name, output, scale >= 0 ? scaled : in,
                    rfx_onnx_weight(w, rfx_onnx_text(w, "%s.shift", node->name), shift, shape));
    }
}

static void window_attrs(onnx_node *n, const int64_t kernel[2], const int64_t strides[2],
                         struct rfx_pads p) {
    int64_t pads[4] = {p.top, p.left, p.bottom, p.right};
    rfx_onnx_ints(n, "kernel_shape", kernel, 2);
    rfx_onnx_ints(n, "strides", strides, 2);
    rfx_onnx_ints(n, "pads", pads, 4);
}

/* Conv or ConvTranspose, then what is fused into it; the first ONNX node has the node's name. */
static void export_conv(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    struct rfx_onnx_writer *w = &x->writer;
    const struct rfx_conv_attr *a = &node->attr.conv;
    bool transposed = node->op == RFX_OP_CONV_TRANSPOSE;
    struct rfx_shape shape = {
        4, {transposed ? a->ic : a->oc, (transposed ? a->oc : a->ic) / a->groups, a->kh, a->kw}};
    const char *in[3] = {
        rfx_export_in(x, node, 0),
        rfx_onnx_weight(w, rfx_onnx_text(w, "%s.weight", node->name), a->weight, shape), NULL};
    if (a->bias >= 0 && a->scale < 0)
        in[2] = rfx_onnx_weight(w, rfx_onnx_text(w, "%s.bias", node->name), a->bias,
                                (struct rfx_shape){1, {a->oc}});
    const char *made =
        a->scale >= 0 || node->residual ? rfx_onnx_text(w, "%s#conv", node->name) : output;
    onnx_node *conv =
        rfx_onnx_node(w, transposed ? "ConvTranspose" : "Conv", node->name, made, in, 3);
    window_attrs(conv, (int64_t[2]){a->kh, a->kw}, (int64_t[2]){a->sh, a->sw}, a->pads);
    rfx_onnx_ints(conv, "dilations", (int64_t[2]){a->dh, a->dw}, 2);
    rfx_onnx_int(conv, "group", a->groups);
    if (transposed)
        rfx_onnx_ints(conv, "output_padding", (int64_t[2]){a->out_pad_h, a->out_pad_w}, 2);
    if (a->scale >= 0) {
        const char *normed = node->residual ? rfx_onnx_text(w, "%s#bn", node->name) : output;
        export_batch_norm(x, node, a->scale, a->bias, rfx_onnx_text(w, "%s#bn", node->name), normed,
                          made);
        made = normed;
    }
    if (node->residual)
        (void)emit2(x, "Add", rfx_onnx_text(w, "%s#add", node->name), output, made,
                    rfx_export_in(x, node, 1));
}

static void export_pool(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    const struct rfx_pool_attr *a = &node->attr.pool;
    bool average = node->op == RFX_OP_POOL_AVG;
    if (average && (a->dh != 1 || a->dw != 1)) {
        rfx_export_refuse(x, node, "AveragePool has no dilations before opset 19");
        return;
    }
    onnx_node *pool = emit1(x, average ? "AveragePool" : "MaxPool", node->name, output,
                            rfx_export_in(x, node, 0));
    window_attrs(pool, (int64_t[2]){a->kh, a->kw}, (int64_t[2]){a->sh, a->sw}, a->pads);
    rfx_onnx_int(pool, "ceil_mode", a->ceil_mode ? 1 : 0);
    if (average) rfx_onnx_int(pool, "count_include_pad", a->count_include_pad ? 1 : 0);
    if (!average) rfx_onnx_ints(pool, "dilations", (int64_t[2]){a->dh, a->dw}, 2);
}

static void export_adaptive(struct rfx_exporter *x, const struct rfx_node *node,
                            const char *output) {
    const struct rfx_tensor *in = &x->graph->nodes[node->in[0]].out;
    int64_t oh = node->attr.adaptive.oh, ow = node->attr.adaptive.ow;
    const char *value = rfx_export_in(x, node, 0);
    if (oh == 1 && ow == 1) {
        (void)emit1(x, "GlobalAveragePool", node->name, output, value);
    } else if (oh == in->h && ow == in->w) {
        (void)emit1(x, "Identity", node->name, output, value);
    } else if (in->h % oh == 0 && in->w % ow == 0) {
        int64_t window[2] = {in->h / oh, in->w / ow};
        onnx_node *pool = emit1(x, "AveragePool", node->name, output, value);
        window_attrs(pool, window, window, (struct rfx_pads){0, 0, 0, 0});
    } else {
        rfx_export_refuse(x, node, "ONNX has adaptive pools only where the output divides the map");
    }
}

static void export_global(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    static const int64_t space[2] = {2, 3};
    const char *in = rfx_export_in(x, node, 0);
    if (node->attr.global_pool.kind == RFX_REDUCE_SUM) {
        const char *axes = rfx_onnx_int64(&x->writer, "#space", space, 2);
        (void)emit2(x, "ReduceSum", node->name, output, in, axes);
        return;
    }
    static const char *const ops[] = {"GlobalAveragePool", "GlobalMaxPool", "", "ReduceMin"};
    onnx_node *pool = emit1(x, ops[node->attr.global_pool.kind], node->name, output, in);
    if (node->attr.global_pool.kind == RFX_REDUCE_MIN) rfx_onnx_ints(pool, "axes", space, 2);
}

static void export_pad(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    static const char *const modes[] = {"constant", "reflect", "edge"};
    const struct rfx_pads p = node->attr.pad.pads;
    const int64_t pads[8] = {0, 0, p.top, p.left, 0, 0, p.bottom, p.right};
    struct rfx_onnx_writer *w = &x->writer;
    const char *in[3] = {rfx_export_in(x, node, 0),
                         rfx_onnx_int64(w, rfx_onnx_text(w, "%s#pads", node->name), pads, 8), NULL};
    if (node->attr.pad.mode == RFX_PAD_CONSTANT)
        in[2] = scalar(x, node->name, "value", node->attr.pad.value);
    rfx_onnx_string(rfx_onnx_node(w, "Pad", node->name, output, in, 3), "mode",
                    modes[node->attr.pad.mode]);
}

/* Channels picked by Gather, or zeros before and after all channels by Pad. */
static void export_select(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    struct rfx_onnx_writer *w = &x->writer;
    const int64_t *map = node->attr.select.map, count = node->attr.select.count;
    int64_t c = x->graph->nodes[node->in[0]].out.c, before = 0, zeros = 0;
    for (int64_t i = 0; i < count; i++) zeros += map[i] < 0;
    if (zeros == 0) {
        const char *chosen =
            rfx_onnx_int64(w, rfx_onnx_text(w, "%s#channels", node->name), map, count);
        onnx_node *gather =
            emit2(x, "Gather", node->name, output, rfx_export_in(x, node, 0), chosen);
        rfx_onnx_int(gather, "axis", 1);
        return;
    }
    while (before < count && map[before] < 0) before++;
    bool pads = count - zeros == c && before + c <= count;
    for (int64_t i = 0; i < c && pads; i++) pads = map[before + i] == i;
    if (!pads) {
        rfx_export_refuse(x, node, "zeros among picked channels have no ONNX form");
        return;
    }
    const int64_t sides[8] = {0, before, 0, 0, 0, count - c - before, 0, 0};
    const char *in[3] = {rfx_export_in(x, node, 0),
                         rfx_onnx_int64(w, rfx_onnx_text(w, "%s#pads", node->name), sides, 8),
                         scalar(x, node->name, "value", 0.0f)};
    rfx_onnx_string(rfx_onnx_node(w, "Pad", node->name, output, in, 3), "mode", "constant");
}

static void export_crop(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    static const int64_t axes[2] = {2, 3};
    int64_t starts[2] = {node->attr.crop.y0, node->attr.crop.x0};
    int64_t steps[2] = {node->attr.crop.sy, node->attr.crop.sx};
    int64_t sizes[2] = {node->attr.crop.oh, node->attr.crop.ow}, ends[2];
    for (int i = 0; i < 2; i++) {
        int64_t last = starts[i] + (sizes[i] - 1) * steps[i];
        ends[i] = steps[i] > 0 ? last + 1 : last > 0 ? last - 1 : INT64_MIN + 1;
    }
    struct rfx_onnx_writer *w = &x->writer;
    const char *in[5] = {rfx_export_in(x, node, 0),
                         rfx_onnx_int64(w, rfx_onnx_text(w, "%s#starts", node->name), starts, 2),
                         rfx_onnx_int64(w, rfx_onnx_text(w, "%s#ends", node->name), ends, 2),
                         rfx_onnx_int64(w, "#space", axes, 2),
                         rfx_onnx_int64(w, rfx_onnx_text(w, "%s#steps", node->name), steps, 2)};
    (void)rfx_onnx_node(w, "Slice", node->name, output, in, 5);
}

static void export_resize(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    static const char *const coords[] = {"half_pixel", "pytorch_half_pixel", "align_corners",
                                         "asymmetric"};
    static const char *const nearest[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                          "ceil"};
    const struct rfx_resize_attr *a = &node->attr.resize;
    const struct rfx_tensor *map = &x->graph->nodes[node->in[0]].out;
    struct rfx_onnx_writer *w = &x->writer;
    const char *in[4] = {rfx_export_in(x, node, 0), "", "", NULL};
    int64_t sizes[4] = {1, map->c, a->oh, a->ow};
    in[3] = rfx_onnx_int64(w, rfx_onnx_text(w, "%s#sizes", node->name), sizes, 4);
    onnx_node *resize = rfx_onnx_node(w, "Resize", node->name, output, in, 4);
    rfx_onnx_string(resize, "mode", a->mode == RFX_RESIZE_NEAREST ? "nearest" : "linear");
    rfx_onnx_string(resize, "coordinate_transformation_mode", coords[a->coord]);
    if (a->mode == RFX_RESIZE_NEAREST) rfx_onnx_string(resize, "nearest_mode", nearest[a->nearest]);
    /* Sizes imply the scale out / in, which must be the one that the graph uses. */
    if (a->coord != RFX_COORD_ALIGN_CORNERS &&
        (a->scale_h != (float)a->oh / (float)map->h || a->scale_w != (float)a->ow / (float)map->w))
        rfx_export_refuse(x, node, "its scale is not the ratio of its output and input sizes");
}

static void export_depth(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    bool to_space = node->op == RFX_OP_DEPTH_TO_SPACE;
    if (!to_space && node->attr.depth.column_major) {
        rfx_export_refuse(x, node, "SpaceToDepth has only the depth-first order");
        return;
    }
    onnx_node *n = emit1(x, to_space ? "DepthToSpace" : "SpaceToDepth", node->name, output,
                         rfx_export_in(x, node, 0));
    rfx_onnx_int(n, "blocksize", node->attr.depth.block);
    if (to_space) rfx_onnx_string(n, "mode", node->attr.depth.column_major ? "CRD" : "DCR");
}

static void export_lrn(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    onnx_node *lrn = emit1(x, "LRN", node->name, output, rfx_export_in(x, node, 0));
    rfx_onnx_int(lrn, "size", node->attr.lrn.size);
    rfx_onnx_float(lrn, "alpha", node->attr.lrn.alpha);
    rfx_onnx_float(lrn, "beta", node->attr.lrn.beta);
    rfx_onnx_float(lrn, "bias", node->attr.lrn.bias);
}

static void export_concat(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    const char **in = rfx_memory_calloc(x->graph->mem, (size_t)node->n_in + 1, sizeof *in);
    if (in == NULL) {
        rfx_export_refuse(x, node, "out of memory");
        return;
    }
    for (int k = 0; k < node->n_in; k++) in[k] = rfx_export_in(x, node, k);
    rfx_onnx_int(rfx_onnx_node(&x->writer, "Concat", node->name, output, in, node->n_in), "axis",
                 node->op == RFX_OP_CONCAT ? 1 : node->attr.concat.axis);
    rfx_memory_release(x->graph->mem, in);
}

/* The operation of a node without its fused activation; `output` is what it makes. */
static void export_map_op(struct rfx_exporter *x, int index, const char *output) {
    static const char *const binary[] = {"Add", "Sub", "Mul", "Div", "Max", "Min", "Pow"};
    const struct rfx_node *node = &x->graph->nodes[index];
    if (node->op == RFX_OP_CONV || node->op == RFX_OP_CONV_TRANSPOSE) {
        export_conv(x, node, output);
    } else if (node->op == RFX_OP_POOL_MAX || node->op == RFX_OP_POOL_AVG) {
        export_pool(x, node, output);
    } else if (node->op == RFX_OP_POOL_ADAPTIVE_AVG) {
        export_adaptive(x, node, output);
    } else if (node->op == RFX_OP_GLOBAL_POOL) {
        export_global(x, node, output);
    } else if (node->op == RFX_OP_AFFINE) {
        export_affine(x, node, node->name, output);
    } else if (node->op == RFX_OP_BINARY || node->op == RFX_OP_PLAIN_BINARY) {
        (void)emit2(x, binary[node->attr.binary.kind], node->name, output,
                    rfx_export_in(x, node, 0), rfx_export_in(x, node, 1));
    } else if (node->op == RFX_OP_CONCAT || node->op == RFX_OP_PLAIN_CONCAT) {
        export_concat(x, node, output);
    } else if (node->op == RFX_OP_CHANNEL_SELECT) {
        export_select(x, node, output);
    } else if (node->op == RFX_OP_PAD) {
        export_pad(x, node, output);
    } else if (node->op == RFX_OP_CROP) {
        export_crop(x, node, output);
    } else if (node->op == RFX_OP_RESIZE) {
        export_resize(x, node, output);
    } else if (node->op == RFX_OP_DEPTH_TO_SPACE || node->op == RFX_OP_SPACE_TO_DEPTH) {
        export_depth(x, node, output);
    } else if (node->op == RFX_OP_LRN) {
        export_lrn(x, node, output);
    } else if (node->op == RFX_OP_SOFTMAX) {
        const char *op = node->attr.softmax.logarithm ? "LogSoftmax" : "Softmax";
        rfx_onnx_int(emit1(x, op, node->name, output, rfx_export_in(x, node, 0)), "axis", 1);
    } else if (!rfx_export_plain(x, index, output, node->name)) {
        rfx_export_refuse(x, node, "it has no ONNX form");
    }
}

/* The name of a node's tensor: that of the output it is, else its alias, else its name. */
static const char *value_name(struct rfx_exporter *x, int index) {
    const struct rfx_graph *graph = x->graph;
    const struct rfx_node *node = &graph->nodes[index];
    if (node->op == RFX_OP_INPUT) return "input";
    if (node->op != RFX_OP_CONST_MAP && node->op != RFX_OP_CONST_PLAIN)
        for (int i = 0; i < graph->n_outputs; i++)
            if (graph->outputs[i].node == index) return graph->outputs[i].name;
    const char *name = node->alias != NULL && rfx_graph_find(graph, node->alias) == index
                           ? node->alias
                           : node->name;
    bool taken = strcmp(name, "input") == 0;
    for (int i = 0; i < graph->n_outputs; i++)
        taken = taken || strcmp(name, graph->outputs[i].name) == 0;
    return taken ? rfx_onnx_text(&x->writer, "%s#value", name) : name;
}

static void export_node(struct rfx_exporter *x, int index) {
    const struct rfx_node *node = &x->graph->nodes[index];
    struct rfx_onnx_writer *w = &x->writer;
    const char *value = value_name(x, index);
    x->values[index] = value;
    if (node->op == RFX_OP_INPUT) return;
    if (node->op == RFX_OP_CONST_MAP || node->op == RFX_OP_CONST_PLAIN) {
        (void)rfx_onnx_weight(w, value, node->attr.constant.weight, node->attr.constant.shape);
    } else if (node->op == RFX_OP_ACTIVATION) {
        export_act(x, node, node->name, value, rfx_export_in(x, node, 0));
    } else if (node->act.kind == RFX_ACT_NONE) {
        export_map_op(x, index, value);
    } else {
        const char *before = rfx_onnx_text(w, "%s#linear", node->name);
        export_map_op(x, index, before);
        export_act(x, node, rfx_onnx_text(w, "%s#act", node->name), value, before);
    }
}

/* Ops whose attributes hold sizes of the map they are given. */
static bool fixes_size(const struct rfx_node *node) {
    bool one = node->op == RFX_OP_POOL_ADAPTIVE_AVG && node->attr.adaptive.oh == 1 &&
               node->attr.adaptive.ow == 1;
    return node->op == RFX_OP_RESHAPE || node->op == RFX_OP_CROP || node->op == RFX_OP_RESIZE ||
           node->op == RFX_OP_PLAIN_SLICE || node->op == RFX_OP_PLAIN_GATHER ||
           node->op == RFX_OP_GEMM || (node->op == RFX_OP_POOL_ADAPTIVE_AVG && !one);
}

/* A constant beside an operand that follows the size: broadcast over space, or fixing it. */
static bool meets_sized_constant(const struct rfx_exporter *x, const struct rfx_node *node) {
    for (int k = 0; k < node->n_in; k++) {
        const struct rfx_node *in = &x->graph->nodes[node->in[k]];
        bool sized = in->out.layout == RFX_LAYOUT_PLAIN || in->out.h != 1 || in->out.w != 1;
        if (!x->follows_size[node->in[k]] && in->out.elems != 1 && sized) return true;
    }
    return false;
}

static void find_fixed_sizes(struct rfx_exporter *x) {
    for (int i = 0; i < x->graph->n_nodes; i++) {
        const struct rfx_node *node = &x->graph->nodes[i];
        bool follows = node->op == RFX_OP_INPUT;
        for (int k = 0; k < node->n_in; k++) follows = follows || x->follows_size[node->in[k]];
        if (follows && (fixes_size(node) || meets_sized_constant(x, node))) x->size_is_fixed = true;
        bool one = node->op == RFX_OP_GLOBAL_POOL || node->op == RFX_OP_POOL_ADAPTIVE_AVG;
        x->follows_size[i] = follows && !one;
    }
}

static void export_values(struct rfx_exporter *x) {
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
        int node = graph->outputs[i].node;
        struct rfx_onnx_value value = {.name = graph->outputs[i].name,
                                       .shape = graph->nodes[node].out.shape};
        bool symbolic = x->follows_size[node] && !x->size_is_fixed;
        for (int d = 0; symbolic && d < value.shape.rank; d++)
            if (graph->nodes[node].out.layout == RFX_LAYOUT_PLAIN || d >= 2)
                value.dim_names[d] = rfx_onnx_text(w, "%s_dim%d", value.name, d);
        rfx_onnx_value(w, true, &value);
        if (strcmp(x->values[node], value.name) != 0)
            (void)emit1(x, "Identity", rfx_onnx_text(w, "%s#output", value.name), value.name,
                        x->values[node]);
    }
}

enum rfx_status rfx_onnx_export(const struct rfx_graph *graph, const char *path,
                                struct rfx_error *err) {
    struct rfx_exporter x = {.graph = graph};
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
    status = rfx_onnx_writer_save(&x.writer, path);
done:
    rfx_onnx_writer_free(&x.writer);
    rfx_memory_release(graph->mem, x.follows_size);
    rfx_memory_release(graph->mem, x.values);
    return status;
}
