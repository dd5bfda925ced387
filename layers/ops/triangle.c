/* TRIANGLE (ONNX Trilu): keeps the elements on or above the diagonal x - y = k, or on or below it,
 * and sets the others to zero. It works on rows and columns of each channel of a map, or on the
 * last two axes of a PLAIN tensor. Kept values are copied unchanged. Removed elements become 0 even
 * if they are NaN. */
#include <string.h>

#include "layers/core/checked.h"
#include "layers/graph/infer.h"

#define THREADING_ELEMS 16384 /* below this much work one thread is faster */

static enum rfx_status triangle_infer(const struct rfx_graph *graph, struct rfx_node *node,
                                      struct rfx_error *err) {
    if (node->n_in != 1)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "Triangle '%s': has %d inputs, needs 1",
                        node->name, node->n_in);
    const struct rfx_tensor *in = rfx_infer_in(graph, node, 0);
    if (in->layout == RFX_LAYOUT_PLAIN && in->shape.rank < 2)
        return rfx_infer_refuse(node, err, "rank %d: at least 2 is needed", in->shape.rank);
    node->out = *in;
    return RFX_OK;
}

static int64_t within(int64_t x, int64_t lo, int64_t hi) {
    return rfx_min_i64(rfx_max_i64(x, lo), hi);
}

/* Returns the columns of row y, out of `cols`, that are kept. */
static struct rfx_range kept_columns(const struct rfx_node *node, int64_t y, int64_t cols) {
    int64_t at = y + within(node->attr.triangle.k, -y - 1, cols); /* y + k without overflow */
    bool upper = node->attr.triangle.upper;
    int64_t edge = within(upper ? at : at + 1, 0, cols);
    return upper ? (struct rfx_range){edge, cols} : (struct rfx_range){0, edge};
}

/* Computes columns [x0, x1) of a row of c channels; in and out may be the same. */
static void triangle_part(const float *in, float *out, int64_t x0, int64_t x1, int64_t c,
                          struct rfx_range kept) {
    int64_t lo = within(kept.lo, x0, x1), hi = within(kept.hi, lo, x1);
    for (int64_t i = 0; i < (lo - x0) * c; i++) out[i] = 0.0f;
    if (in != out)
        memcpy(out + (lo - x0) * c, in + (lo - x0) * c, (size_t)((hi - lo) * c) * sizeof *out);
    for (int64_t i = (hi - x0) * c; i < (x1 - x0) * c; i++) out[i] = 0.0f;
}

static void map_row(const struct rfx_run_args *args, int64_t y) {
    int64_t x0 = args->rect.x0, x1 = args->rect.x1;
    struct rfx_range kept = kept_columns(args->node, y, args->node->out.w);
    triangle_part(rfx_view_f32_at(&args->in[0], y, x0), rfx_view_f32_at(&args->out, y, x0), x0, x1,
                  args->node->out.c, kept);
}

static void plain_row(const struct rfx_run_args *args, int64_t index) {
    const struct rfx_shape *shape = &args->node->out.shape;
    int64_t rows = shape->dims[shape->rank - 2], cols = shape->dims[shape->rank - 1];
    struct rfx_range kept = kept_columns(args->node, index % rows, cols);
    triangle_part(rfx_view_f32(&args->in[0]) + index * cols,
                  rfx_view_f32(&args->out) + index * cols, 0, cols, 1, kept);
}

static void triangle_run(const struct rfx_run_args *args) {
    const struct rfx_tensor *out = &args->node->out;
    bool map = out->layout == RFX_LAYOUT_NHWC;
    int64_t work = map ? rfx_rect_area(args->rect) * out->c : 0;
    if (map)
        rfx_op_share_rows(args, work > THREADING_ELEMS, map_row);
    else
        rfx_op_share(args, out->elems / out->shape.dims[out->shape.rank - 1], plain_row);
}

const struct rfx_op_def rfx_op_triangle = {
    .name = "Triangle",
    .spatial = true,
    .kind = RFX_CLASS_ELEMENTWISE,
    .infer = triangle_infer,
    .axis_map = rfx_op_map_identity,
    .in_place = rfx_op_in_place_elementwise,
    .run = triangle_run,
};
