/* ONNX forms of the operations on whole tensors: layout changes, shapes, slices, matrices. */
#include "rfexec/onnx/export/onnx_export.h"

typedef struct rfx_onnx_node onnx_node;

static onnx_node *emit(struct rfx_exporter *x, const struct rfx_node *node, const char *op,
                       const char *output) {
    const char *in[RFX_ONNX_MAX_INPUTS] = {NULL};
    int n = node->n_in < RFX_ONNX_MAX_INPUTS ? node->n_in : RFX_ONNX_MAX_INPUTS;
    for (int k = 0; k < n; k++) in[k] = rfx_export_in(x, node, k);
    return rfx_onnx_node(&x->writer, op, node->name, output, in, n);
}

static void export_transpose(struct rfx_exporter *x, const struct rfx_node *node,
                             const int64_t *perm, int rank, const char *output) {
    rfx_onnx_ints(emit(x, node, "Transpose", output), "perm", perm, rank);
}

void rfx_export_reshape(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    const char *name = node->name;
    const struct rfx_shape *shape = &node->attr.reshape.shape;
    if (shape->rank == 2 && shape->dims[0] == 1) {
        rfx_onnx_int(emit(x, node, "Flatten", output), "axis",
                     x->graph->nodes[node->in[0]].out.shape.dims[0] == 1 ? 1 : 0);
        return;
    }
    const char *in[2] = {rfx_export_in(x, node, 0),
                         rfx_onnx_int64(&x->writer, rfx_onnx_text(&x->writer, "%s#shape", name),
                                        shape->dims, shape->rank)};
    (void)rfx_onnx_node(&x->writer, "Reshape", name, output, in, 2);
}

void rfx_export_slice(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    const char *name = node->name;
    const struct rfx_slice_attr *slice = &node->attr.slice;
    int64_t ends[RFX_MAX_RANK], axes[RFX_MAX_RANK];
    int rank = slice->shape.rank;
    for (int i = 0; i < rank; i++) {
        int64_t last = slice->starts[i] + (slice->shape.dims[i] - 1) * slice->steps[i];
        /* Going down past element 0 cannot be written as an end of -1, which means the last. */
        ends[i] = slice->steps[i] > 0 ? last + 1 : last > 0 ? last - 1 : INT64_MIN + 1;
        axes[i] = i;
    }
    struct rfx_onnx_writer *w = &x->writer;
    const char *in[5] = {
        rfx_export_in(x, node, 0),
        rfx_onnx_int64(w, rfx_onnx_text(w, "%s#starts", name), slice->starts, rank),
        rfx_onnx_int64(w, rfx_onnx_text(w, "%s#ends", name), ends, rank),
        rfx_onnx_int64(w, rfx_onnx_text(w, "%s#axes", name), axes, rank),
        rfx_onnx_int64(w, rfx_onnx_text(w, "%s#steps", name), slice->steps, rank)};
    (void)rfx_onnx_node(w, "Slice", name, output, in, 5);
}

void rfx_export_reduce(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    int64_t axes[RFX_MAX_RANK];
    int count = 0;
    for (int i = 0; i < x->graph->nodes[node->in[0]].out.shape.rank; i++)
        if (node->attr.reduce.axes[i]) axes[count++] = i;
    rfx_export_reduction(x, node->attr.reduce.kind, node, axes, count, node->attr.reduce.keep_dims,
                         output);
}

void rfx_export_gemm(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    const char *name = node->name;
    if (x->graph->nodes[node->in[0]].out.shape.rank != 2) {
        rfx_export_refuse(x, node, "only matrices (rank 2) are written as Gemm");
        return;
    }
    struct rfx_onnx_writer *w = &x->writer;
    int64_t k = node->attr.gemm.k, m = node->attr.gemm.m;
    bool mk = node->attr.gemm.weight_is_mk;
    struct rfx_shape shape = {2, {mk ? m : k, mk ? k : m}};
    const char *in[3] = {rfx_export_in(x, node, 0),
                         rfx_onnx_weight(w, rfx_onnx_text(w, "%s.weight", node->name),
                                         node->attr.gemm.weight, shape),
                         NULL};
    if (node->attr.gemm.bias >= 0)
        in[2] = rfx_onnx_weight(w, rfx_onnx_text(w, "%s.bias", node->name), node->attr.gemm.bias,
                                (struct rfx_shape){1, {m}});
    onnx_node *gemm = rfx_onnx_node(w, "Gemm", name, output, in, 3);
    rfx_onnx_float(gemm, "alpha", node->attr.gemm.alpha);
    rfx_onnx_float(gemm, "beta", node->attr.gemm.beta);
    rfx_onnx_int(gemm, "transB", mk ? 1 : 0);
}

void rfx_export_same(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    (void)emit(x, node, "Identity", output);
}

void rfx_export_matmul(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    (void)emit(x, node, "MatMul", output);
}

void rfx_export_attention(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    const struct rfx_attention_attr *attr = &node->attr.attention;
    const char *scores = rfx_onnx_text(&x->writer, "%s#scores", node->name);
    (void)rfx_export_emit2(x, "MatMul", scores, scores, rfx_export_in(x, node, 0),
                           rfx_export_in(x, node, 1));
    for (int s = 0; s < attr->n_steps; s++) {
        const char *made = rfx_onnx_text(&x->writer, "%s#step%d", node->name, s);
        const char *other = rfx_export_in(x, node, 3 + s);
        bool right = attr->steps[s].scores_right;
        rfx_export_join(x, attr->steps[s].kind, made, made, right ? other : scores,
                        right ? scores : other);
        scores = made;
    }
    const char *weights = rfx_onnx_text(&x->writer, "%s#softmax", node->name);
    rfx_onnx_int(rfx_export_emit1(x, "Softmax", weights, weights, scores), "axis", -1);
    (void)rfx_export_emit2(x, "MatMul", node->name, output, weights, rfx_export_in(x, node, 2));
}

void rfx_export_nhwc_as_plain(struct rfx_exporter *x, const struct rfx_node *node,
                              const char *output) {
    static const int64_t to_nhwc[4] = {0, 2, 3, 1};
    export_transpose(x, node, to_nhwc, 4, output);
}

void rfx_export_plain_as_nhwc(struct rfx_exporter *x, const struct rfx_node *node,
                              const char *output) {
    static const int64_t to_nchw[4] = {0, 3, 1, 2};
    export_transpose(x, node, to_nchw, 4, output);
}

void rfx_export_transpose(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    int64_t perm[RFX_MAX_RANK];
    int rank = node->out.shape.rank;
    for (int i = 0; i < rank; i++) perm[i] = node->attr.transpose.perm[i];
    export_transpose(x, node, perm, rank, output);
}

void rfx_export_gather(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    struct rfx_onnx_writer *w = &x->writer;
    const char *in[2] = {rfx_export_in(x, node, 0),
                         rfx_onnx_int64(w, rfx_onnx_text(w, "%s#indices", node->name),
                                        node->attr.gather.map, node->attr.gather.count)};
    rfx_onnx_int(rfx_onnx_node(w, "Gather", node->name, output, in, 2), "axis",
                 node->attr.gather.axis);
}

/* An operator of input 0 and of one integer. */
static onnx_node *with_integer(struct rfx_exporter *x, const struct rfx_node *node, const char *op,
                               int64_t value, const char *output) {
    struct rfx_onnx_writer *w = &x->writer;
    const char *in[2] = {rfx_export_in(x, node, 0),
                         rfx_onnx_int64(w, rfx_onnx_text(w, "%s#where", node->name), &value, 1)};
    return rfx_onnx_node(w, op, node->name, output, in, 2);
}

void rfx_export_triangle(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    rfx_onnx_int(with_integer(x, node, "Trilu", node->attr.triangle.k, output), "upper",
                 node->attr.triangle.upper);
}

void rfx_export_running_sum(struct rfx_exporter *x, const struct rfx_node *node,
                            const char *output) {
    onnx_node *n = with_integer(x, node, "CumSum", node->attr.running.axis, output);
    rfx_onnx_int(n, "exclusive", node->attr.running.exclusive);
    rfx_onnx_int(n, "reverse", node->attr.running.reverse);
}

/* Its values are not written: what takes them says so in a node of its own. */
void rfx_export_top_k(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    struct rfx_onnx_writer *w = &x->writer;
    const char *where = rfx_onnx_text(w, "%s#where", node->name);
    const char *in[2] = {
        rfx_export_in(x, node, 0),
        rfx_onnx_int64(w, rfx_onnx_text(w, "%s#k", node->name), &node->attr.top_k.k, 1)};
    onnx_node *top = rfx_onnx_node(w, "TopK", where, where, in, 2);
    top->unused = rfx_onnx_text(w, "%s#values", node->name);
    rfx_onnx_int(top, "axis", node->attr.top_k.axis);
    rfx_onnx_int(top, "largest", node->attr.top_k.largest ? 1 : 0);
    rfx_export_to_float(x, node->name, output, where);
}

/* Input 1 as the integers that it is in a file. */
static const char *indices_of(struct rfx_exporter *x, const struct rfx_node *node) {
    enum { TYPE_INT64 = 7 };
    const char *made = rfx_onnx_text(&x->writer, "%s#integers", node->name);
    rfx_onnx_int(rfx_export_emit1(x, "Cast", made, made, rfx_export_in(x, node, 1)), "to",
                 TYPE_INT64);
    return made;
}

void rfx_export_pick(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    static const char *const ops[] = {"GatherElements", "GatherND", "Gather"};
    enum rfx_index_kind kind = node->attr.index.kind;
    rfx_onnx_int(rfx_export_emit2(x, ops[kind], node->name, output, rfx_export_in(x, node, 0),
                                  indices_of(x, node)),
                 kind == RFX_INDEX_TUPLES ? "batch_dims" : "axis", node->attr.index.axis);
}

void rfx_export_scatter(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    static const char *const kinds[] = {"none", "add", "mul", "max", "min"};
    const char *in[3] = {rfx_export_in(x, node, 0), indices_of(x, node), rfx_export_in(x, node, 2)};
    bool tuples = node->attr.index.kind == RFX_INDEX_TUPLES;
    if (node->attr.index.scatter > RFX_SCATTER_MUL)
        rfx_export_refuse(x, node, "updates are not the largest or smallest before opset 18");
    if (tuples && node->attr.index.axis != 0)
        rfx_export_refuse(x, node, "ONNX scatters no tuples behind other axes");
    onnx_node *made = rfx_onnx_node(&x->writer, tuples ? "ScatterND" : "ScatterElements",
                                    node->name, output, in, 3);
    if (!tuples) rfx_onnx_int(made, "axis", node->attr.index.axis);
    rfx_onnx_string(made, "reduction", kinds[node->attr.index.scatter]);
}
