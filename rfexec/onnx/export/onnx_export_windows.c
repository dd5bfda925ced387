/* ONNX forms of convolutions, pools and batch norms. */
#include "rfexec/onnx/export/onnx_export.h"

typedef struct rfx_onnx_node onnx_node;

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

void rfx_export_affine(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    int scale = node->attr.affine.scale, shift = node->attr.affine.shift;
    const char *in = rfx_export_in(x, node, 0);
    if (is_vector(x, scale, node->out.c) && is_vector(x, shift, node->out.c)) {
        export_batch_norm(x, node, scale, shift, node->name, output, in);
        return;
    }
    struct rfx_onnx_writer *w = &x->writer;
    const char *scaled = shift >= 0 ? rfx_onnx_text(w, "%s#scaled", node->name) : output;
    if (scale >= 0) {
        struct rfx_shape shape = {3, {x->graph->weights[scale].elems, 1, 1}};
        (void)rfx_export_emit2(
            x, "Mul", scaled, scaled, in,
            rfx_onnx_weight(w, rfx_onnx_text(w, "%s.scale", node->name), scale, shape));
    }
    if (shift >= 0) {
        struct rfx_shape shape = {3, {x->graph->weights[shift].elems, 1, 1}};
        (void)rfx_export_emit2(
            x, "Add", node->name, output, scale >= 0 ? scaled : in,
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
static void export_conv(struct rfx_exporter *x, const struct rfx_node *node, const char *output,
                        bool transposed) {
    struct rfx_onnx_writer *w = &x->writer;
    const struct rfx_conv_attr *a = &node->attr.conv;
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
        (void)rfx_export_emit2(x, "Add", rfx_onnx_text(w, "%s#add", node->name), output, made,
                               rfx_export_in(x, node, 1));
}

void rfx_export_conv(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    export_conv(x, node, output, false);
}

void rfx_export_conv_transpose(struct rfx_exporter *x, const struct rfx_node *node,
                               const char *output) {
    export_conv(x, node, output, true);
}

static void export_pool(struct rfx_exporter *x, const struct rfx_node *node, const char *output,
                        bool average) {
    const struct rfx_pool_attr *a = &node->attr.pool;
    if (average && (a->dh != 1 || a->dw != 1)) {
        rfx_export_refuse(x, node, "AveragePool has no dilations before opset 19");
        return;
    }
    onnx_node *pool = rfx_export_emit1(x, average ? "AveragePool" : "MaxPool", node->name, output,
                                       rfx_export_in(x, node, 0));
    window_attrs(pool, (int64_t[2]){a->kh, a->kw}, (int64_t[2]){a->sh, a->sw}, a->pads);
    rfx_onnx_int(pool, "ceil_mode", a->ceil_mode ? 1 : 0);
    if (average) rfx_onnx_int(pool, "count_include_pad", a->count_include_pad ? 1 : 0);
    if (!average) rfx_onnx_ints(pool, "dilations", (int64_t[2]){a->dh, a->dw}, 2);
}

void rfx_export_pool_max(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    export_pool(x, node, output, false);
}

/* Indices, as numbers, of a MaxPool whose maxima nobody reads. */
void rfx_export_pool_place(struct rfx_exporter *x, const struct rfx_node *node,
                           const char *output) {
    const struct rfx_pool_attr *a = &node->attr.pool;
    const char *where = rfx_onnx_text(&x->writer, "%s#where", node->name);
    onnx_node *pool = rfx_export_emit1(x, "MaxPool", where, where, rfx_export_in(x, node, 0));
    pool->unused = rfx_onnx_text(&x->writer, "%s#values", node->name);
    window_attrs(pool, (int64_t[2]){a->kh, a->kw}, (int64_t[2]){a->sh, a->sw}, a->pads);
    rfx_onnx_int(pool, "ceil_mode", a->ceil_mode ? 1 : 0);
    rfx_onnx_ints(pool, "dilations", (int64_t[2]){a->dh, a->dw}, 2);
    rfx_onnx_int(pool, "storage_order", a->column_major ? 1 : 0);
    rfx_export_to_float(x, node->name, output, where);
}

void rfx_export_pool_avg(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    export_pool(x, node, output, true);
}

void rfx_export_pool_lp(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    const struct rfx_pool_attr *a = &node->attr.pool;
    if (a->dh != 1 || a->dw != 1 || a->ceil_mode) {
        rfx_export_refuse(x, node, "LpPool has no dilations and no ceil_mode before opset 18");
        return;
    }
    onnx_node *pool = rfx_export_emit1(x, "LpPool", node->name, output, rfx_export_in(x, node, 0));
    window_attrs(pool, (int64_t[2]){a->kh, a->kw}, (int64_t[2]){a->sh, a->sw}, a->pads);
    rfx_onnx_int(pool, "p", a->p);
}

void rfx_export_adaptive(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    const struct rfx_tensor *in = &x->graph->nodes[node->in[0]].out;
    int64_t oh = node->attr.adaptive.oh, ow = node->attr.adaptive.ow;
    const char *value = rfx_export_in(x, node, 0);
    if (oh == 1 && ow == 1) {
        (void)rfx_export_emit1(x, "GlobalAveragePool", node->name, output, value);
    } else if (oh == in->h && ow == in->w) {
        (void)rfx_export_emit1(x, "Identity", node->name, output, value);
    } else if (in->h % oh == 0 && in->w % ow == 0) {
        int64_t window[2] = {in->h / oh, in->w / ow};
        onnx_node *pool = rfx_export_emit1(x, "AveragePool", node->name, output, value);
        window_attrs(pool, window, window, (struct rfx_pads){0, 0, 0, 0});
    } else {
        rfx_export_refuse(x, node, "ONNX has adaptive pools only where the output divides the map");
    }
}

void rfx_export_global(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    static const int64_t space[2] = {2, 3};
    enum rfx_reduce_kind kind = node->attr.global_pool.kind;
    if (kind != RFX_REDUCE_MEAN && kind != RFX_REDUCE_MAX) {
        rfx_export_reduction(x, kind, node, space, 2, true, output);
        return;
    }
    (void)rfx_export_emit1(x, kind == RFX_REDUCE_MEAN ? "GlobalAveragePool" : "GlobalMaxPool",
                           node->name, output, rfx_export_in(x, node, 0));
}
