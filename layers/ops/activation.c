/* ACTIVATION: an activation as a separate layer, on a map or a PLAIN tensor. It is elementwise, so
 * any division of the work gives the same bits. */
#include "layers/graph/infer.h"
#include "layers/graph/units.h"
#include "layers/kernels/packing.h"

#define PIECE_ELEMS 16384 /* elements of a PLAIN tensor per work item */

/* Returns the number of channels that PRelu slopes refer to: 1 for a PLAIN tensor. */
static int64_t slope_channels(const struct rfx_node *node) {
    return node->out.layout == RFX_LAYOUT_NHWC ? node->out.c : 1;
}

static enum rfx_status activation_infer(const struct rfx_graph *graph, struct rfx_node *node,
                                        struct rfx_error *err) {
    if (node->n_in != 1)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "Activation '%s': has %d inputs, needs 1",
                        node->name, node->n_in);
    node->out = *rfx_infer_in(graph, node, 0);
    if (node->act.kind != RFX_ACT_PRELU) return RFX_OK;
    int64_t slopes = graph->weights[node->act.slope].elems, c = slope_channels(node);
    if (slopes != 1 && slopes != c)
        return rfx_infer_refuse(node, err, "%lld slopes for %lld channels", (long long)slopes,
                                (long long)c);
    return RFX_OK;
}

static size_t activation_packed_bytes(const struct rfx_graph *graph, const struct rfx_node *node) {
    (void)graph;
    return rfx_act_packed_bytes(&node->act, slope_channels(node));
}

static enum rfx_status activation_pack(const struct rfx_graph *graph, const struct rfx_node *node,
                                       void *packed, const struct rfx_pack_part *part,
                                       struct rfx_error *err) {
    if (part->index > 0) return RFX_OK;
    return rfx_act_pack(graph, &node->act, slope_channels(node), packed, err);
}

static void plain_piece(const struct rfx_run_args *args, int64_t index) {
    const struct rfx_node *node = args->node;
    const float *slope = node->act.kind == RFX_ACT_PRELU ? args->packed : NULL;
    int64_t first = index * PIECE_ELEMS, n = rfx_min_i64(PIECE_ELEMS, node->out.elems - first);
    rfx_act_apply(&node->act, slope, rfx_view_f32(&args->in[0]) + first,
                  rfx_view_f32(&args->out) + first, n, 1);
}

static void activation_unit(const void *user, struct rfx_rect u, void *scratch) {
    const struct rfx_run_args *args = user;
    const struct rfx_node *node = args->node;
    const float *slope = node->act.kind == RFX_ACT_PRELU ? args->packed : NULL;
    const struct rfx_view *in = &args->in[0], *out = &args->out;
    int64_t c = node->out.c, step = in->c == c && out->c == c ? rfx_rect_cols(u) : 1;
    (void)scratch;
    for (int64_t y = u.y0; y < u.y1; y++)
        for (int64_t x = u.x0; x < u.x1; x += step)
            rfx_act_apply(&node->act, slope, rfx_view_f32_at(in, y, x), rfx_view_f32_at(out, y, x),
                          step, c);
}

static void activation_run(const struct rfx_run_args *args) {
    const struct rfx_tensor *out = &args->node->out;
    if (out->layout == RFX_LAYOUT_PLAIN)
        rfx_op_share(args, rfx_ceil_div(out->elems, PIECE_ELEMS), plain_piece);
    else
        rfx_units_share(args, rfx_units_of_rows(args), 0, activation_unit, args);
}

const struct rfx_op_def rfx_op_activation = {
    .name = "Activation",
    .spatial = true,
    .kind = RFX_CLASS_ELEMENTWISE,
    .fuses_as = RFX_FUSE_ACTIVATION,
    .infer = activation_infer,
    .axis_map = rfx_op_map_identity,
    .in_place = rfx_op_in_place_elementwise,
    .packed_bytes = activation_packed_bytes,
    .pack = activation_pack,
    .run = activation_run,
};
