/* CONCAT: maps of equal height and width, concatenated along channels. */
#include <string.h>

#include "layers/core/checked.h"
#include "layers/graph/infer.h"

static enum rfx_status infer(const struct rfx_graph *graph, struct rfx_node *node,
                             struct rfx_error *err) {
    if (node->n_in < 1)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "Concat '%s': has no input", node->name);
    enum rfx_status status = rfx_infer_inputs(graph, node, node->n_in, RFX_LAYOUT_NHWC, err);
    if (status != RFX_OK) return status;
    const struct rfx_tensor *first = rfx_infer_in(graph, node, 0);
    int64_t c = 0;
    for (int k = 0; k < node->n_in; k++) {
        const struct rfx_tensor *in = rfx_infer_in(graph, node, k);
        if (in->h != first->h || in->w != first->w)
            return rfx_infer_refuse(node, err, "input %d is %lldx%lld, input 0 is %lldx%lld", k,
                                    (long long)in->h, (long long)in->w, (long long)first->h,
                                    (long long)first->w);
        if (!rfx_checked_add_i64(c, in->c, &c))
            return rfx_infer_refuse(node, err, "too many channels");
    }
    return rfx_infer_set_map(node, c, first->h, first->w, err);
}

static void copy_channels(const unsigned char *from, size_t bytes, unsigned char *to, size_t stride,
                          int64_t n) {
    for (int64_t i = 0; i < n; i++)
        memcpy(to + (size_t)i * stride, from + (size_t)i * bytes, bytes);
}

static void concat_row(const struct rfx_run_args *args, int64_t y) {
    struct rfx_rect r = args->rect;
    size_t stride = rfx_tensor_pixel_bytes(&args->node->out, 1);
    unsigned char *to = rfx_view_at(&args->out, y, r.x0);
    for (int k = 0; k < args->node->n_in; k++) {
        size_t bytes = rfx_tensor_pixel_bytes(&args->graph->nodes[args->node->in[k]].out, 1);
        copy_channels(rfx_view_at(&args->in[k], y, r.x0), bytes, to, stride, rfx_rect_cols(r));
        to += bytes;
    }
}

static void run(const struct rfx_run_args *args) {
    rfx_op_share_rows(args, rfx_rect_area(args->rect) * args->node->out.c > 65536, concat_row);
}

const struct rfx_op_def rfx_op_concat = {
    .name = "Concat",
    .spatial = true,
    .kind = RFX_CLASS_JOIN,
    .types = ~0U, /* any type: only bytes are copied */
    .keeps_type = true,
    .infer = infer,
    .axis_map = rfx_op_map_identity,
    .run = run,
};
