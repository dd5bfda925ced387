/* TOP_K: the indices, as floats, of the k largest (or smallest) elements along an axis. On a map,
 * the axis is the channels of each pixel.
 *
 * The order of elements is always the same: by value, where a NaN is larger than all numbers (as in
 * ONNX Runtime) and the two zeros are equal. Of equal elements the one with the lower index comes
 * first. */
#include "layers/graph/infer.h"

static enum rfx_status infer(const struct rfx_graph *graph, struct rfx_node *node,
                             struct rfx_error *err) {
    bool map = node->n_in == 1 && rfx_infer_in(graph, node, 0)->layout == RFX_LAYOUT_NHWC;
    enum rfx_layout layout = map ? RFX_LAYOUT_NHWC : RFX_LAYOUT_PLAIN;
    enum rfx_status status = rfx_infer_inputs(graph, node, 1, layout, err);
    if (status != RFX_OK) return status;
    struct rfx_shape shape = rfx_infer_in(graph, node, 0)->shape;
    int axis = node->attr.top_k.axis;
    int64_t k = node->attr.top_k.k;
    if (axis < 0 || axis >= shape.rank || (map && axis != 1))
        return rfx_infer_refuse(node, err, "axis %d of rank %d", axis, shape.rank);
    if (k < 1 || k > shape.dims[axis])
        return rfx_infer_refuse(node, err, "k = %lld of %lld elements", (long long)k,
                                (long long)shape.dims[axis]);
    if (shape.dims[axis] > RFX_FLOAT_COUNT_MAX)
        return rfx_infer_refuse(node, err, "%lld elements, more than float32 can count",
                                (long long)shape.dims[axis]);
    shape.dims[axis] = k;
    if (map) return rfx_infer_set_map(node, k, shape.dims[2], shape.dims[3], err);
    return rfx_infer_set_plain(node, &shape, err);
}

/* One line of n elements, and the k indices found in it. Both lie `step` floats apart. */
struct line {
    const float *x;
    float *heap; /* indices, as a heap whose root comes last in order */
    int64_t n, k, step;
    bool largest;
};

static bool comes_before(const struct line *line, int64_t a, int64_t b) {
    float u = line->x[a * line->step], v = line->x[b * line->step];
    bool u_nan = u != u, v_nan = v != v;
    if (u_nan != v_nan) return u_nan == line->largest;
    if (u > v || u < v) return (u > v) == line->largest;
    return a < b;
}

static int64_t place(const struct line *line, int64_t i) {
    return (int64_t)line->heap[i * line->step];
}

/* Moves `value` down from position i of a heap of n elements to its place. */
static void sink(const struct line *line, int64_t i, int64_t n, int64_t value) {
    for (;;) {
        int64_t child = 2 * i + 1;
        if (child >= n) break;
        if (child + 1 < n && comes_before(line, place(line, child), place(line, child + 1)))
            child++;
        if (!comes_before(line, value, place(line, child))) break;
        line->heap[i * line->step] = line->heap[child * line->step];
        i = child;
    }
    line->heap[i * line->step] = (float)value;
}

static void sort_line(const struct line *line) {
    for (int64_t i = 0; i < line->k; i++) line->heap[i * line->step] = (float)i;
    for (int64_t i = line->k / 2 - 1; i >= 0; i--) sink(line, i, line->k, place(line, i));
    for (int64_t i = line->k; i < line->n; i++)
        if (comes_before(line, i, place(line, 0))) sink(line, 0, line->k, i);
    for (int64_t n = line->k - 1; n > 0; n--) {
        int64_t last = place(line, n);
        line->heap[n * line->step] = line->heap[0];
        sink(line, 0, n, last);
    }
}

static void one_line(void *user, int64_t index, int thread) {
    const struct rfx_run_args *args = user;
    const struct rfx_node *node = args->node;
    const struct rfx_shape *in = &args->graph->nodes[node->in[0]].out.shape;
    int axis = node->attr.top_k.axis;
    int64_t n = in->dims[axis], k = node->attr.top_k.k, step = 1;
    for (int i = axis + 1; i < in->rank; i++) step *= in->dims[i];
    int64_t block = index / step, at = index % step;
    (void)thread;
    struct line line = {rfx_view_f32(&args->in[0]) + block * n * step + at,
                        rfx_view_f32(&args->out) + block * k * step + at,
                        n,
                        k,
                        step,
                        node->attr.top_k.largest};
    sort_line(&line);
}

static void one_row(const struct rfx_run_args *args, int64_t y) {
    for (int64_t x = args->rect.x0; x < args->rect.x1; x++) {
        struct line line = {rfx_view_f32_at(&args->in[0], y, x),
                            rfx_view_f32_at(&args->out, y, x),
                            args->graph->nodes[args->node->in[0]].out.c,
                            args->node->attr.top_k.k,
                            1,
                            args->node->attr.top_k.largest};
        sort_line(&line);
    }
}

static void run(const struct rfx_run_args *args) {
    struct rfx_run_args shared = *args;
    if (args->node->out.layout == RFX_LAYOUT_NHWC) {
        rfx_op_share_rows(args, true, one_row);
        return;
    }
    const struct rfx_tensor *in = &args->graph->nodes[args->node->in[0]].out;
    int64_t lines = args->node->out.elems / args->node->attr.top_k.k;
    rfx_team_for(in->elems > 4096 ? args->team : NULL, lines, one_line, &shared);
}

const struct rfx_op_def rfx_op_top_k = {
    .name = "TopK", .spatial = true, .infer = infer, .axis_map = rfx_op_map_identity, .run = run};
