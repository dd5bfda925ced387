/* JOIN_MAPS: joins the pixels of several maps, map by map and row by row, along axis 1 or 2 of a
 * tensor of three dimensions. A pixel is one cell; along axis 1, where the channels of a cell are
 * given, it is as many cells as they go into the channels of its map: the anchors of a detector.
 *
 * Plans compute the maps and leave them where they are (rfx_graph.ends); the receiver of the output
 * knows where their elements belong. `run` defines the result. */
#include "layers/core/checked.h"
#include "layers/graph/infer.h"

static enum rfx_status infer(const struct rfx_graph *graph, struct rfx_node *node,
                             struct rfx_error *err) {
    if (node->n_in < 1)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "JoinMaps '%s': has no input", node->name);
    enum rfx_status status = rfx_infer_inputs(graph, node, node->n_in, RFX_LAYOUT_NHWC, err);
    if (status != RFX_OK) return status;
    int64_t cells = 0, own = node->attr.concat.channels, c = own;
    int axis = node->attr.concat.axis;
    if (axis != 1 && axis != 2) return rfx_infer_refuse(node, err, "axis %d is not 1 or 2", axis);
    if (c < 1) c = rfx_infer_in(graph, node, 0)->c;
    for (int k = 0; k < node->n_in; k++) {
        const struct rfx_tensor *in = rfx_infer_in(graph, node, k);
        if (in->c != c && (own < 1 || axis == 2 || in->c % c != 0))
            return rfx_infer_refuse(node, err, "input %d has %lld channels, a cell has %lld", k,
                                    (long long)in->c, (long long)c);
        if (!rfx_checked_add_i64(cells, in->elems / c, &cells))
            return rfx_infer_refuse(node, err, "the output's size overflows");
    }
    const struct rfx_shape shape = {3, {1, axis == 1 ? cells : c, axis == 1 ? c : cells}};
    return rfx_infer_set_plain(node, &shape, err);
}

static void run(const struct rfx_run_args *args) {
    for (int k = 0; k < args->node->n_in; k++) {
        const struct rfx_tensor *in = rfx_infer_in(args->graph, args->node, k);
        struct rfx_spread at = rfx_join_spread(args->graph, args->node, k);
        for (int64_t y = 0; y < in->h; y++)
            for (int64_t x = 0; x < in->w; x++) {
                const float *from = rfx_view_f32_at(&args->in[k], y, x);
                float *to =
                    rfx_view_f32(&args->out) + at.first + y * at.row_step + x * at.column_step;
                for (int64_t c = 0; c < in->c; c++) to[c * at.channel_step] = from[c];
            }
    }
}

const struct rfx_op_def rfx_op_join_maps = {
    .name = "JoinMaps",
    .spatial = false,
    .kind = RFX_CLASS_JOIN,
    .infer = infer,
    .run = run,
};
