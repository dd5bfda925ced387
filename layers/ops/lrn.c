/* LRN across channels (ONNX LRN opset 13): y[c] = x[c] / (bias + alpha / size * S)^beta. S is the
 * sum of the squares of channels c - floor((size - 1) / 2) to c + ceil((size - 1) / 2), as far as
 * these channels exist. */
#include <math.h>

#include "layers/core/checked.h"
#include "layers/graph/infer.h"
#include "layers/kernels/kernels.h"

static enum rfx_status infer(const struct rfx_graph *graph, struct rfx_node *node,
                             struct rfx_error *err) {
    enum rfx_status status = rfx_infer_inputs(graph, node, 1, RFX_LAYOUT_NHWC, err);
    if (status != RFX_OK) return status;
    if (node->attr.lrn.size < 1)
        return rfx_infer_refuse(node, err, "size %lld must be positive",
                                (long long)node->attr.lrn.size);
    const struct rfx_tensor *in = rfx_infer_in(graph, node, 0);
    return rfx_infer_set_map(node, in->c, in->h, in->w, err);
}

/* Computes base^exponent in place. For 0.75 and 0.5 it uses square roots, which are correctly
 * rounded and cheaper than powers. */
static void power(float *base, int64_t c, float exponent) {
    if (exponent == 0.75f) {
        for (int64_t i = 0; i < c; i++) {
            float root = sqrtf(base[i]);
            base[i] = root * sqrtf(root);
        }
    } else if (exponent == 0.5f) {
        for (int64_t i = 0; i < c; i++) base[i] = sqrtf(base[i]);
    } else {
        rfx_kernels()->binary(RFX_BINARY_POW, base, 1, &exponent, 0, base, c);
    }
}

static void pixel(const struct rfx_node *node, const float *x, float *out, int64_t c) {
    int64_t size = node->attr.lrn.size;
    float factor = node->attr.lrn.alpha / (float)size;
    for (int64_t i = 0; i < c; i++) {
        int64_t lo = rfx_max_i64(0, i - (size - 1) / 2);
        int64_t hi = rfx_min_i64(c - 1, i + size / 2);
        float sum = 0.0f;
        for (int64_t k = lo; k <= hi; k++) sum += x[k] * x[k];
        out[i] = node->attr.lrn.bias + factor * sum;
    }
    power(out, c, node->attr.lrn.beta);
    for (int64_t i = 0; i < c; i++) out[i] = x[i] / out[i];
}

static void lrn_row(const struct rfx_run_args *args, int64_t y) {
    for (int64_t x = args->rect.x0; x < args->rect.x1; x++)
        pixel(args->node, rfx_view_f32_at(&args->in[0], y, x), rfx_view_f32_at(&args->out, y, x),
              args->node->out.c);
}

static void run(const struct rfx_run_args *args) {
    rfx_op_share_rows(args, rfx_rect_area(args->rect) * args->node->out.c > 4096, lrn_row);
}

const struct rfx_op_def rfx_op_lrn = {
    .name = "LRN",
    .spatial = true,
    .kind = RFX_CLASS_ELEMENTWISE,
    .infer = infer,
    .axis_map = rfx_op_map_identity,
    .run = run,
};
