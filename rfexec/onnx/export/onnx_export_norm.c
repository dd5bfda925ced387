/* ONNX forms of norms and of reductions over channels. What this opset has no operator for is
 * written as arithmetic. */
#include "rfexec/onnx/export/onnx_export.h"

typedef struct rfx_onnx_node onnx_node;

/* "name#part": of a tensor or node between two of one operation. */
static const char *part_name(struct rfx_exporter *x, const struct rfx_node *node,
                             const char *part) {
    return rfx_onnx_text(&x->writer, "%s#%s", node->name, part);
}

/* Weight `index` as constant "name.part" with `after` dimensions of 1 behind its elements. */
static const char *channel_weight(struct rfx_exporter *x, const struct rfx_node *node,
                                  const char *part, int index, int after) {
    struct rfx_shape shape = {1 + after, {x->graph->weights[index].elems, 1, 1}};
    return rfx_onnx_weight(&x->writer, rfx_onnx_text(&x->writer, "%s.%s", node->name, part), index,
                           shape);
}

/* The value `in` times scale plus shift (-1: none) as `output`; the last node has the name. */
static void export_scale_shift(struct rfx_exporter *x, const struct rfx_node *node, int scale,
                               int shift, const char *in, const char *output) {
    if (scale >= 0) {
        const char *to = shift >= 0 ? part_name(x, node, "scaled") : output;
        const char *name = shift >= 0 ? to : node->name;
        (void)rfx_export_emit2(x, "Mul", name, to, in, channel_weight(x, node, "weight", scale, 2));
        in = to;
    }
    if (shift >= 0)
        (void)rfx_export_emit2(x, "Add", node->name, output, in,
                               channel_weight(x, node, "bias", shift, 2));
}

/* Where the norm itself goes: to the output when neither scale nor shift follow. */
static const char *norm_output(struct rfx_exporter *x, const struct rfx_node *node, int scale,
                               int shift, const char *output) {
    return scale < 0 && shift < 0 ? output : part_name(x, node, "normalised");
}

/* LayerNormalization takes the last axes, so channels go there and back. */
static void export_layer(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    static const int64_t to_last[4] = {0, 2, 3, 1}, to_first[4] = {0, 3, 1, 2};
    int scale = node->attr.channel_norm.scale, shift = node->attr.channel_norm.shift;
    int64_t c = node->out.c;
    struct rfx_onnx_writer *w = &x->writer;
    bool inside = scale >= 0 && x->graph->weights[scale].elems == c &&
                  (shift < 0 || x->graph->weights[shift].elems == c);
    const char *last = part_name(x, node, "last"), *norm = part_name(x, node, "norm");
    onnx_node *n = rfx_export_emit1(x, "Transpose", last, last, rfx_export_in(x, node, 0));
    rfx_onnx_ints(n, "perm", to_last, 4);
    struct rfx_shape channels = {1, {c}};
    const char *in[3] = {last,
                         inside ? channel_weight(x, node, "weight", scale, 0)
                                : rfx_onnx_fill(w, part_name(x, node, "ones"), channels, 1.0f),
                         inside && shift >= 0 ? channel_weight(x, node, "bias", shift, 0) : NULL};
    n = rfx_onnx_node(w, "LayerNormalization", norm, norm, in, 3);
    rfx_onnx_int(n, "axis", -1);
    rfx_onnx_float(n, "epsilon", node->attr.channel_norm.eps);
    if (inside) scale = shift = -1;
    const char *to = norm_output(x, node, scale, shift, output);
    n = rfx_export_emit1(x, "Transpose", to == output ? node->name : to, to, norm);
    rfx_onnx_ints(n, "perm", to_first, 4);
    export_scale_shift(x, node, scale, shift, to, output);
}

static void export_rms(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    static const int64_t channels[1] = {1};
    int scale = node->attr.channel_norm.scale, shift = node->attr.channel_norm.shift;
    const char *in = rfx_export_in(x, node, 0), *squares = part_name(x, node, "squares");
    const char *mean = part_name(x, node, "mean"), *sum = part_name(x, node, "sum");
    const char *root = part_name(x, node, "root");
    (void)rfx_export_emit2(x, "Mul", squares, squares, in, in);
    rfx_onnx_ints(rfx_export_emit1(x, "ReduceMean", mean, mean, squares), "axes", channels, 1);
    (void)rfx_export_emit2(x, "Add", sum, sum, mean,
                           rfx_export_scalar(x, node->name, "eps", node->attr.channel_norm.eps));
    (void)rfx_export_emit1(x, "Sqrt", root, root, sum);
    const char *to = norm_output(x, node, scale, shift, output);
    (void)rfx_export_emit2(x, "Div", to == output ? node->name : to, to, in, root);
    export_scale_shift(x, node, scale, shift, to, output);
}

void rfx_export_channel_norm(struct rfx_exporter *x, const struct rfx_node *node,
                             const char *output) {
    int scale = node->attr.channel_norm.scale, shift = node->attr.channel_norm.shift;
    enum rfx_channel_norm kind = node->attr.channel_norm.kind;
    if (kind == RFX_NORM_LAYER || kind == RFX_NORM_RMS) {
        (kind == RFX_NORM_LAYER ? export_layer : export_rms)(x, node, output);
        return;
    }
    const char *to = norm_output(x, node, scale, shift, output);
    onnx_node *norm = rfx_export_emit1(x, "LpNormalization", to == output ? node->name : to, to,
                                       rfx_export_in(x, node, 0));
    rfx_onnx_int(norm, "axis", 1);
    rfx_onnx_int(norm, "p", kind == RFX_NORM_L1 ? 1 : 2);
    export_scale_shift(x, node, scale, shift, to, output);
}

/* Integers of one axis, as numbers. */
static void export_arg(struct rfx_exporter *x, const struct rfx_node *node, const char *op,
                       const int64_t *axes, int count, bool keep, const char *output) {
    enum rfx_reduce_kind kind = node->attr.reduce.kind;
    const char *where = part_name(x, node, "where");
    if (count != 1) rfx_export_refuse(x, node, "ONNX has ArgMax and ArgMin of one axis only");
    onnx_node *arg = rfx_export_emit1(x, op, where, where, rfx_export_in(x, node, 0));
    rfx_onnx_int(arg, "axis", count == 1 ? axes[0] : 0);
    rfx_onnx_int(arg, "keepdims", keep ? 1 : 0);
    bool last = kind == RFX_REDUCE_ARG_MAX_LAST || kind == RFX_REDUCE_ARG_MIN_LAST;
    rfx_onnx_int(arg, "select_last_index", last ? 1 : 0);
    rfx_export_to_float(x, node->name, output, where);
}

void rfx_export_reduction(struct rfx_exporter *x, enum rfx_reduce_kind kind,
                          const struct rfx_node *node, const int64_t *axes, int count, bool keep,
                          const char *output) {
    static const char *const ops[] = {"ReduceMean", "ReduceMax", "ReduceSum",       "ReduceMin",
                                      "ReduceL1",   "ReduceL2",  "ReduceSumSquare", "ReduceProd",
                                      "ArgMax",     "ArgMax",    "ArgMin",          "ArgMin"};
    _Static_assert(sizeof ops / sizeof ops[0] == RFX_REDUCE_COUNT, "an operator per kind");
    struct rfx_onnx_writer *w = &x->writer;
    const char *in[2] = {rfx_export_in(x, node, 0), NULL};
    if (rfx_reduce_is_arg(kind)) {
        export_arg(x, node, ops[kind], axes, count, keep, output);
        return;
    }
    bool as_input = kind == RFX_REDUCE_SUM; /* since opset 13 */
    if (as_input) in[1] = rfx_onnx_int64(w, part_name(x, node, "axes"), axes, count);
    onnx_node *reduce = rfx_onnx_node(w, ops[kind], node->name, output, in, as_input ? 2 : 1);
    if (!as_input) rfx_onnx_ints(reduce, "axes", axes, count);
    rfx_onnx_int(reduce, "keepdims", keep ? 1 : 0);
}

void rfx_export_channel_reduce(struct rfx_exporter *x, const struct rfx_node *node,
                               const char *output) {
    static const int64_t channels[1] = {1};
    rfx_export_reduction(x, node->attr.reduce.kind, node, channels, 1, true, output);
}

/* Written with the norm that reads it. */
void rfx_export_moments(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    const struct rfx_graph *graph = x->graph;
    int self = (int)(node - graph->nodes), norms = 0;
    (void)output;
    for (int i = self + 1; i < graph->n_nodes; i++) {
        const struct rfx_node *norm = &graph->nodes[i];
        norms += norm->op == RFX_OP_NORMALISE && norm->in[1] == self && norm->in[0] == node->in[0];
    }
    if (norms != graph->n_consumers[self])
        rfx_export_refuse(x, node, "statistics that not only the norm of their map reads");
}

/* Ones or zeros where there is no weight, or one element for all. */
static const char *norm_weight(struct rfx_exporter *x, const struct rfx_node *node,
                               const char *part, int index, float otherwise) {
    int64_t c = node->out.c;
    if (index >= 0 && x->graph->weights[index].elems == c)
        return channel_weight(x, node, part, index, 0);
    return rfx_onnx_fill(&x->writer, part_name(x, node, part), (struct rfx_shape){1, {c}},
                         otherwise);
}

static bool is_whole(const struct rfx_exporter *x, const struct rfx_node *node, int index) {
    return index < 0 || x->graph->weights[index].elems == node->out.c;
}

static void export_instance(struct rfx_exporter *x, const struct rfx_node *node, float eps,
                            const char *output) {
    int scale = node->attr.affine.scale, shift = node->attr.affine.shift;
    bool inside = is_whole(x, node, scale) && is_whole(x, node, shift);
    const char *in[3] = {rfx_export_in(x, node, 0),
                         norm_weight(x, node, "weight", inside ? scale : -1, 1.0f),
                         norm_weight(x, node, "bias", inside ? shift : -1, 0.0f)};
    if (inside) scale = shift = -1;
    const char *to = norm_output(x, node, scale, shift, output);
    rfx_onnx_float(rfx_onnx_node(&x->writer, "InstanceNormalization",
                                 to == output ? node->name : to, to, in, 3),
                   "epsilon", eps);
    export_scale_shift(x, node, scale, shift, to, output);
}

/* Groups are the channels of a reshaped map: this opset has no group norm. */
static void export_groups(struct rfx_exporter *x, const struct rfx_node *node, int64_t groups,
                          float eps, const char *output) {
    int scale = node->attr.affine.scale, shift = node->attr.affine.shift;
    struct rfx_onnx_writer *w = &x->writer;
    const int64_t shape[3] = {0, groups, -1};
    const char *map = rfx_export_in(x, node, 0), *grouped = part_name(x, node, "grouped");
    const char *size = part_name(x, node, "size"), *norm = part_name(x, node, "norm");
    struct rfx_shape one_each = {1, {groups}};
    (void)rfx_export_emit2(x, "Reshape", grouped, grouped, map,
                           rfx_onnx_int64(w, part_name(x, node, "groups"), shape, 3));
    const char *in[3] = {grouped, rfx_onnx_fill(w, part_name(x, node, "ones"), one_each, 1.0f),
                         rfx_onnx_fill(w, part_name(x, node, "zeros"), one_each, 0.0f)};
    rfx_onnx_float(rfx_onnx_node(w, "InstanceNormalization", norm, norm, in, 3), "epsilon", eps);
    (void)rfx_export_emit1(x, "Shape", size, size, map);
    const char *to = norm_output(x, node, scale, shift, output);
    (void)rfx_export_emit2(x, "Reshape", to == output ? node->name : to, to, norm, size);
    export_scale_shift(x, node, scale, shift, to, output);
}

void rfx_export_normalise(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    const struct rfx_node *moments = &x->graph->nodes[node->in[1]];
    if (moments->op != RFX_OP_MOMENTS || moments->in[0] != node->in[0]) {
        rfx_export_refuse(x, node, "statistics of another map");
        return;
    }
    int64_t groups = moments->attr.moments.groups;
    if (groups == node->out.c)
        export_instance(x, node, moments->attr.moments.eps, output);
    else
        export_groups(x, node, groups, moments->attr.moments.eps, output);
}
