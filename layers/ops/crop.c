/* CROP (ONNX Slice over space): output row i is input row y0 + i sy, output column j input column
 * x0 + j sx. */
#include <string.h>

#include "layers/core/checked.h"
#include "layers/graph/infer.h"

static bool fits(int64_t start, int64_t step, int64_t count, int64_t n) {
    int64_t last;
    if (step == 0 || count < 1 || start < 0 || start >= n) return false;
    if (!rfx_checked_mul_i64(count - 1, step, &last)) return false;
    return rfx_checked_add_i64(last, start, &last) && last >= 0 && last < n;
}

static enum rfx_status infer(const struct rfx_graph *graph, struct rfx_node *node,
                             struct rfx_error *err) {
    enum rfx_status status = rfx_infer_inputs(graph, node, 1, RFX_LAYOUT_NHWC, err);
    if (status != RFX_OK) return status;
    const struct rfx_tensor *in = rfx_infer_in(graph, node, 0);
    if (!fits(node->attr.crop.y0, node->attr.crop.sy, node->attr.crop.oh, in->h) ||
        !fits(node->attr.crop.x0, node->attr.crop.sx, node->attr.crop.ow, in->w))
        return rfx_infer_refuse(node, err,
                                "start %lld,%lld step %lld,%lld size %lldx%lld leaves the input "
                                "of %lldx%lld",
                                (long long)node->attr.crop.y0, (long long)node->attr.crop.x0,
                                (long long)node->attr.crop.sy, (long long)node->attr.crop.sx,
                                (long long)node->attr.crop.oh, (long long)node->attr.crop.ow,
                                (long long)in->h, (long long)in->w);
    return rfx_infer_set_map(node, in->c, node->attr.crop.oh, node->attr.crop.ow, err);
}

static struct rfx_axis_map axis_map(const struct rfx_graph *graph, const struct rfx_node *node,
                                    int k, int axis) {
    (void)graph;
    (void)k;
    return axis == 0 ? rfx_axis_map_window(1, 1, node->attr.crop.sy, -node->attr.crop.y0)
                     : rfx_axis_map_window(1, 1, node->attr.crop.sx, -node->attr.crop.x0);
}

static void run(const struct rfx_run_args *args) {
    struct rfx_rect r = args->rect;
    int64_t sx = args->node->attr.crop.sx;
    for (int64_t y = r.y0; y < r.y1; y++) {
        int64_t sy = args->node->attr.crop.y0 + y * args->node->attr.crop.sy;
        int64_t run_px = sx == 1 ? rfx_rect_cols(r) : 1;
        for (int64_t x = r.x0; x < r.x1; x += run_px)
            memcpy(rfx_view_at(&args->out, y, x),
                   rfx_view_at(&args->in[0], sy, args->node->attr.crop.x0 + x * sx),
                   rfx_tensor_pixel_bytes(&args->node->out, run_px));
    }
}

const struct rfx_op_def rfx_op_crop = {
    .name = "Crop",
    .spatial = true,
    .types = ~0U, /* any type: only bytes are copied */
    .keeps_type = true,
    .infer = infer,
    .axis_map = axis_map,
    .run = run,
};
