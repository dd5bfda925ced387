/* SOFTMAX over the channels of each pixel: exp(x - max) / sum, the sum in channel order in double;
 * with `logarithm` x - max - log(sum). A NaN among the channels makes all of them NaN. */
#include "layers/ops/softmax.h"
#include "layers/core/real_math.h"
#include "layers/graph/infer.h"
#include "layers/kernels/kernels.h"

static enum rfx_status infer(const struct rfx_graph *graph, struct rfx_node *node,
                             struct rfx_error *err) {
    enum rfx_status status = rfx_infer_inputs(graph, node, 1, RFX_LAYOUT_NHWC, err);
    if (status != RFX_OK) return status;
    const struct rfx_tensor *in = rfx_infer_in(graph, node, 0);
    return rfx_infer_set_map(node, in->c, in->h, in->w, err);
}

void rfx_softmax_values(const float *x, float *out, int64_t n, bool logarithm) {
    float max = x[0];
    for (int64_t i = 1; i < n; i++) max = x[i] > max ? x[i] : max;
    rfx_kernels()->exp(x, max, out, n);
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++) sum += (double)out[i];
    float total = (float)(logarithm ? rfx_log(sum) : sum);
    for (int64_t i = 0; i < n; i++) out[i] = logarithm ? x[i] - max - total : out[i] / total;
}

static void softmax_row(const struct rfx_run_args *args, int64_t y) {
    bool logarithm = args->node->attr.softmax.logarithm;
    for (int64_t x = args->rect.x0; x < args->rect.x1; x++)
        rfx_softmax_values(rfx_view_at(&args->in[0], y, x), rfx_view_at(&args->out, y, x),
                           args->node->out.c, logarithm);
}

static void run(const struct rfx_run_args *args) {
    rfx_op_share_rows(args, rfx_rect_area(args->rect) * args->node->out.c > 4096, softmax_row);
}

const struct rfx_op_def rfx_op_softmax = {
    .name = "Softmax",
    .spatial = true,
    .kind = RFX_CLASS_ELEMENTWISE,
    .infer = infer,
    .axis_map = rfx_op_map_identity,
    .run = run,
};
