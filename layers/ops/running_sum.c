/* RUNNING_SUM (ONNX CumSum): every output element is the sum of the input elements before it along
 * one axis (with `reverse`: after it), plus its own input element unless `exclusive`. The axis of a
 * map may be its channels or its columns; the axis of a PLAIN tensor may be any.
 *
 * Sums begin at the axis's first element (with `reverse`: the last), whatever rectangle is
 * requested. They run in double, in this order; each result is rounded once. Along columns, a pixel
 * needs its row up to itself. */
#include "layers/core/checked.h"
#include "layers/graph/infer.h"

#define THREADING_ELEMS 4096 /* below this much work one thread is faster */
#define CHANNEL_BLOCK 128
enum { CHANNELS = 1, COLUMNS = 3 }; /* axes of a map */

static enum rfx_status sum_infer(const struct rfx_graph *graph, struct rfx_node *node,
                                 struct rfx_error *err) {
    if (node->n_in != 1)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "RunningSum '%s': has %d inputs, needs 1",
                        node->name, node->n_in);
    const struct rfx_tensor *in = rfx_infer_in(graph, node, 0);
    int axis = node->attr.running.axis;
    bool map = in->layout == RFX_LAYOUT_NHWC;
    if (map ? axis != CHANNELS && axis != COLUMNS : axis < 0 || axis >= in->shape.rank)
        return rfx_infer_refuse(node, err, "axis %d of %s of rank %d", axis,
                                map ? "a map" : "a tensor", in->shape.rank);
    node->out = *in;
    return RFX_OK;
}

static bool along_columns(const struct rfx_node *node, int axis) {
    return axis == 1 && node->attr.running.axis == COLUMNS && node->out.layout == RFX_LAYOUT_NHWC;
}

static struct rfx_axis_map sum_axis_map(const struct rfx_graph *graph, const struct rfx_node *node,
                                        int k, int axis) {
    struct rfx_axis_map map = rfx_axis_map_identity();
    (void)graph;
    (void)k;
    if (along_columns(node, axis)) map.rule = RFX_AXIS_SIZED;
    return map;
}

/* Returns the input range. Along columns, these are the elements that the outputs of the range sum;
 * there may be none. */
static struct rfx_range sum_in_range(const struct rfx_graph *graph, const struct rfx_node *node,
                                     int k, int axis, struct rfx_range out) {
    (void)graph;
    (void)k;
    if (!along_columns(node, axis) || out.lo >= out.hi) return out;
    int64_t own = node->attr.running.exclusive ? 0 : 1, w = node->out.w;
    return node->attr.running.reverse ? (struct rfx_range){rfx_min_i64(out.lo + 1 - own, w), w}
                                      : (struct rfx_range){0, out.hi - 1 + own};
}

/* Computes the running sums of n elements that lie `step` apart. */
static void sum_line(const struct rfx_node *node, const float *in, float *out, int64_t n,
                     int64_t step) {
    bool exclusive = node->attr.running.exclusive;
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = (node->attr.running.reverse ? n - 1 - i : i) * step;
        double before = sum;
        sum += (double)in[at];
        out[at] = (float)(exclusive ? before : sum);
    }
}

static void channels_row(const struct rfx_run_args *args, int64_t y) {
    for (int64_t x = args->rect.x0; x < args->rect.x1; x++)
        sum_line(args->node, rfx_view_f32_at(&args->in[0], y, x), rfx_view_f32_at(&args->out, y, x),
                 args->node->out.c, 1);
}

/* Computes n channels of one row, from the row's first column (with `reverse`: last) to the far
 * side of the rectangle. */
static void columns_block(const struct rfx_run_args *args, int64_t y, int64_t first, int64_t n) {
    double sum[CHANNEL_BLOCK] = {0.0};
    bool reverse = args->node->attr.running.reverse, exclusive = args->node->attr.running.exclusive;
    int64_t w = args->node->out.w, x0 = args->rect.x0, x1 = args->rect.x1;
    for (int64_t i = 0, count = reverse ? w - x0 : x1; i < count; i++) {
        int64_t x = reverse ? w - 1 - i : i;
        bool wanted = x >= x0 && x < x1;
        float *out = wanted ? rfx_view_f32_at(&args->out, y, x) + first : NULL;
        for (int64_t k = 0; wanted && exclusive && k < n; k++) out[k] = (float)sum[k];
        if (exclusive && i == count - 1) return; /* the last element is part of no requested sum */
        const float *in = rfx_view_f32_at(&args->in[0], y, x) + first;
        for (int64_t k = 0; k < n; k++) sum[k] += (double)in[k];
        for (int64_t k = 0; wanted && !exclusive && k < n; k++) out[k] = (float)sum[k];
    }
}

/* Computes a whole row. A part of a row would add all columns before it again. */
static void columns_row(const struct rfx_run_args *args, int64_t index) {
    int64_t c = args->node->out.c, y = args->rect.y0 + index;
    for (int64_t first = 0; first < c; first += CHANNEL_BLOCK)
        columns_block(args, y, first, rfx_min_i64(CHANNEL_BLOCK, c - first));
}

static void plain_line(const struct rfx_run_args *args, int64_t line) {
    const struct rfx_shape *shape = &args->node->out.shape;
    int axis = args->node->attr.running.axis;
    int64_t n = shape->dims[axis], inner = 1;
    for (int i = axis + 1; i < shape->rank; i++) inner *= shape->dims[i];
    int64_t first = line / inner * n * inner + line % inner;
    sum_line(args->node, rfx_view_f32(&args->in[0]) + first, rfx_view_f32(&args->out) + first, n,
             inner);
}

static void sum_run(const struct rfx_run_args *args) {
    const struct rfx_tensor *out = &args->node->out;
    int axis = args->node->attr.running.axis;
    bool share = rfx_rect_area(args->rect) * out->c > THREADING_ELEMS;
    struct rfx_run_args shared = *args;
    if (!share) shared.team = NULL;
    if (out->layout == RFX_LAYOUT_PLAIN)
        rfx_op_share(args, out->elems / out->shape.dims[axis], plain_line);
    else if (axis == CHANNELS)
        rfx_op_share_rows(args, share, channels_row);
    else
        rfx_op_share(&shared, rfx_rect_rows(args->rect), columns_row);
}

const struct rfx_op_def rfx_op_running_sum = {
    .name = "RunningSum",
    .spatial = true,
    .kind = RFX_CLASS_ELEMENTWISE,
    .infer = sum_infer,
    .axis_map = sum_axis_map,
    .in_range = sum_in_range,
    .run = sum_run,
};
