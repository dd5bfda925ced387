/* y = act(x * scale[c] + shift[c]): a batch norm that no convolution could take in. Packed: shift,
 * slopes, scale, each of c elements. */
#include "layers/core/floats.h"
#include "layers/graph/infer.h"
#include "layers/graph/units.h"
#include "layers/kernels/packing.h"

static enum rfx_status affine_infer(const struct rfx_graph *graph, struct rfx_node *node,
                                    struct rfx_error *err) {
    enum rfx_status status = rfx_infer_inputs(graph, node, 1, RFX_LAYOUT_NHWC, err);
    if (status != RFX_OK) return status;
    const struct rfx_tensor *in = rfx_infer_in(graph, node, 0);
    int weights[2] = {node->attr.affine.scale, node->attr.affine.shift};
    for (int i = 0; i < 2; i++) {
        if (weights[i] < 0) continue;
        int64_t elems = graph->weights[weights[i]].elems;
        if (elems != 1 && elems != in->c)
            return rfx_infer_refuse(node, err, "%s has %lld elements for %lld channels",
                                    i == 0 ? "scale" : "shift", (long long)elems, (long long)in->c);
    }
    return rfx_infer_set_map(node, in->c, in->h, in->w, err);
}

static size_t affine_packed_bytes(const struct rfx_graph *graph, const struct rfx_node *node) {
    (void)graph;
    return rfx_packing_parts(&node->act, node->out.c).weights_bytes_at +
           rfx_align_up(rfx_floats_bytes(node->out.c));
}

/* c values of a weight of c or 1 elements; `absent` where there is none. */
static enum rfx_status read_channels(const struct rfx_graph *graph, int weight, float absent,
                                     int64_t c, float *out, struct rfx_error *err) {
    int64_t n = weight < 0 ? 1 : graph->weights[weight].elems;
    enum rfx_status status = RFX_OK;
    if (weight < 0)
        out[0] = absent;
    else
        status = rfx_weight_read(&graph->weights[weight], 0, n, out, err);
    for (int64_t i = n; status == RFX_OK && i < c; i++) out[i] = out[0];
    return status;
}

static enum rfx_status affine_pack(const struct rfx_graph *graph, const struct rfx_node *node,
                                   void *packed, const struct rfx_pack_part *part,
                                   struct rfx_error *err) {
    if (part->index > 0) return RFX_OK;
    int64_t c = node->out.c;
    float *scale;
    enum rfx_status status = rfx_packing_begin(graph, &node->act, c, -1, packed, part, &scale, err);
    if (status == RFX_OK)
        status = read_channels(graph, node->attr.affine.shift, 0.0f, c, packed, err);
    if (status == RFX_OK)
        status = read_channels(graph, node->attr.affine.scale, 1.0f, c, scale, err);
    return status;
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
            float *to = rfx_view_at(out, y, x);
            kernels->affine(rfx_view_at(in, y, x), scale, args->packed, to, n, c);
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
