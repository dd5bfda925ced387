/* AFFINE: y = act(x * scale[c] + shift[c]). A batch norm that could not be fused into a
 * convolution. */
#include "layers/graph/infer.h"
#include "layers/graph/units.h"
#include "layers/kernels/packing.h"

static enum rfx_status affine_infer(const struct rfx_graph *graph, struct rfx_node *node,
                                    struct rfx_error *err) {
    enum rfx_status status = rfx_infer_inputs(graph, node, 1, RFX_LAYOUT_NHWC, err);
    if (status != RFX_OK) return status;
    const struct rfx_tensor *in = rfx_infer_in(graph, node, 0);
    status = rfx_infer_scale_shift(graph, node, node->attr.affine.scale, node->attr.affine.shift,
                                   in->c, err);
    if (status != RFX_OK) return status;
    return rfx_infer_set_map(node, in->c, in->h, in->w, err);
}

static size_t affine_packed_bytes(const struct rfx_graph *graph, const struct rfx_node *node) {
    (void)graph;
    return rfx_packing_scale_shift_bytes(&node->act, node->out.c);
}

static enum rfx_status affine_pack(const struct rfx_graph *graph, const struct rfx_node *node,
                                   void *packed, const struct rfx_pack_part *part,
                                   struct rfx_error *err) {
    return rfx_packing_scale_shift(graph, node, node->attr.affine.scale, node->attr.affine.shift,
                                   packed, part, err);
}

static void affine_unit(const void *user, struct rfx_rect u, void *scratch) {
    const struct rfx_run_args *args = user;
    const struct rfx_node *node = args->node;
    const struct rfx_view *in = &args->in[0], *out = &args->out;
    const struct rfx_kernels *kernels = rfx_kernels();
    int64_t c = node->out.c, pixels = in->c == c && out->c == c ? 64 : 1;
    const float *slope = rfx_packed_slope(&node->act, c, args->packed);
    const float *scale = rfx_packed_weights(&node->act, c, args->packed);
    (void)scratch;
    for (int64_t y = u.y0; y < u.y1; y++) {
        for (int64_t x = u.x0; x < u.x1; x += pixels) {
            int64_t n = rfx_min_i64(pixels, u.x1 - x);
            float *to = rfx_view_f32_at(out, y, x);
            kernels->affine(rfx_view_f32_at(in, y, x), scale, args->packed, to, n, c);
            kernels->act(&node->act, slope, to, to, n, c);
        }
    }
}

static void affine_run(const struct rfx_run_args *args) {
    rfx_units_share(args, rfx_units_of_rows(args), 0, affine_unit, args);
}

static const struct rfx_weight_slot weights[] = {
    {"scale", RFX_WEIGHT_FACTOR, offsetof(struct rfx_node, attr.affine.scale)},
    {"shift", RFX_WEIGHT_BIAS, offsetof(struct rfx_node, attr.affine.shift)},
    {NULL, RFX_WEIGHT_FACTOR, 0},
};

const struct rfx_op_def rfx_op_affine = {
    .name = "Affine",
    .spatial = true,
    .kind = RFX_CLASS_ELEMENTWISE,
    .fuses_as = RFX_FUSE_BATCH_NORM,
    .takes_in = RFX_FUSE_ACTIVATION,
    .weights = weights,
    .infer = affine_infer,
    .axis_map = rfx_op_map_identity,
    .in_place = rfx_op_in_place_elementwise,
    .packed_bytes = affine_packed_bytes,
    .pack = affine_pack,
    .run = affine_run,
};
