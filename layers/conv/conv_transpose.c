/* The transposed convolution operator: shape inference, region map, packing, and the choice of the
 * algorithm (conv_transpose.h). The choice depends on layer and processor alone. */
#include <limits.h>
#include <string.h>

#include "layers/conv/conv_transpose.h"
#include "layers/core/checked.h"
#include "layers/core/floats.h"
#include "layers/graph/infer.h"
#include "layers/kernels/packing.h"

static enum rfx_status axis_extent(const struct rfx_node *node, int64_t in, int64_t k, int64_t s,
                                   int64_t d, int64_t cut, int64_t extra, int64_t *out,
                                   struct rfx_error *err) {
    int64_t reach, size;
    if (k < 1 || s < 1 || d < 1 || extra < 0)
        return rfx_infer_refuse(
            node, err, "kernel %lld, stride %lld, dilation %lld, output padding %lld not allowed",
            (long long)k, (long long)s, (long long)d, (long long)extra);
    if (!rfx_checked_mul_i64(d, k - 1, &reach) || !rfx_checked_mul_i64(in - 1, s, &size) ||
        !rfx_checked_add_i64(size, reach, &size) || !rfx_checked_add_i64(size, extra + 1, &size) ||
        !rfx_checked_add_i64(size, -cut, &size))
        return rfx_infer_refuse(node, err, "the output's size overflows");
    *out = size;
    return RFX_OK;
}

static enum rfx_status check_weights(const struct rfx_graph *graph, const struct rfx_node *node,
                                     struct rfx_error *err) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    enum rfx_status status = rfx_conv_check_groups(node, err);
    if (status != RFX_OK) return status;
    if (a->pads.top < 0 || a->pads.left < 0 || a->pads.bottom < 0 || a->pads.right < 0)
        return rfx_infer_refuse(node, err, "negative pads are not supported");
    const int64_t want[4] = {a->ic, a->oc / a->groups, a->kh, a->kw};
    return rfx_conv_check_weights(graph, node, want, err);
}

static enum rfx_status transpose_infer(const struct rfx_graph *graph, struct rfx_node *node,
                                       struct rfx_error *err) {
    enum rfx_status status = rfx_infer_inputs(graph, node, 1, RFX_LAYOUT_NHWC, err);
    if (status != RFX_OK) return status;
    const struct rfx_tensor *in = rfx_infer_in(graph, node, 0);
    struct rfx_conv_attr *a = &node->attr.conv;
    a->ic = in->c;
    status = check_weights(graph, node, err);
    if (status != RFX_OK) return status;
    int64_t oh = 0, ow = 0;
    status = axis_extent(node, in->h, a->kh, a->sh, a->dh, a->pads.top + a->pads.bottom,
                         a->out_pad_h, &oh, err);
    if (status != RFX_OK) return status;
    status = axis_extent(node, in->w, a->kw, a->sw, a->dw, a->pads.left + a->pads.right,
                         a->out_pad_w, &ow, err);
    if (status != RFX_OK) return status;
    return rfx_infer_set_map(node, a->oc, oh, ow, err);
}

static void transpose_window(const struct rfx_node *node, struct rfx_window *window) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    *window = (struct rfx_window){{a->kh, a->kw}, {a->sh, a->sw}, {a->dh, a->dw}, a->pads};
}

/* Returns the MACs of `area` output pixels, as an average over the output pixels: every input pixel
 * takes part in oc / groups * kh * kw MACs per input channel. */
static uint64_t transpose_macs(const struct rfx_graph *graph, const struct rfx_node *node,
                               uint64_t area) {
    (void)graph;
    const struct rfx_conv_attr *a = &node->attr.conv;
    /* largest number of taps that reach one output pixel: a whole number, so that the MACs of tiles
     * sum to those of the map */
    uint64_t taps = (uint64_t)(rfx_ceil_div(a->kh, a->sh) * rfx_ceil_div(a->kw, a->sw));
    return area * taps * (uint64_t)(a->ic / a->groups) * (uint64_t)a->oc;
}

#define MOST_OUTPUTS 8 /* with more, vectors of channels are full enough */
#define MOST_SCRATCH_BYTES (1 << 20)

static const struct rfx_transpose_way *way_of(const struct rfx_graph *graph,
                                              const struct rfx_node *node) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    if (rfx_kernels()->conv == NULL) return &rfx_transpose_dense;
    if (a->groups > 1 && a->groups == a->ic && a->groups == a->oc) return &rfx_transpose_depthwise;
    if (a->groups == 1 && a->oc <= MOST_OUTPUTS &&
        rfx_transpose_few.scratch_bytes(graph, node) <= MOST_SCRATCH_BYTES)
        return &rfx_transpose_few;
    return &rfx_transpose_panels;
}

static size_t transpose_packed_bytes(const struct rfx_graph *graph, const struct rfx_node *node) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    struct rfx_transpose_layout layout = way_of(graph, node)->layout(a);
    return rfx_packing_parts(&node->act, a->oc).weights_bytes_at +
           rfx_align_up(rfx_floats_bytes(rfx_transpose_packed_elems(a, &layout)));
}

/* Returns the index of tap (ky, kx) among the taps of all phases, in packed order. */
static int64_t tap_place(const struct rfx_conv_attr *a, int64_t ky, int64_t kx) {
    struct rfx_transpose_axis rows = rfx_transpose_rows(a, 1), cols = rfx_transpose_cols(a, 1);
    struct rfx_transpose_taps ty = rfx_transpose_phase(&rows, ky * a->dh % a->sh);
    struct rfx_transpose_taps tx = rfx_transpose_phase(&cols, kx * a->dw % a->sw);
    return rfx_transpose_taps_before(a, &ty, &tx) + (ky - ty.first) / rows.every * tx.count +
           (kx - tx.first) / cols.every;
}

/* Packs all weights of one tap. They lie `taps` elements apart in a piece of `count` source
 * elements that begins with element e0. */
static void pack_tap(const struct rfx_conv_attr *a, const struct rfx_transpose_layout *l,
                     const float *scale, const float *temp, int64_t e0, int64_t count, int64_t tap,
                     float *weights) {
    int64_t ocg = a->oc / a->groups, icg = a->ic / a->groups, taps = a->kh * a->kw;
    int64_t place = tap_place(a, tap / a->kw, tap % a->kw);
    for (int64_t e = (tap - e0 % taps + taps) % taps; e < count; e += taps) {
        int64_t o = (e0 + e) / taps % ocg, i = (e0 + e) / taps / ocg, g = i / icg;
        int64_t out = g * ocg + o; /* depthwise: all channels are outputs of one group */
        int64_t at_g = l->groups == a->groups ? g : 0, at_o = l->groups == a->groups ? o : out;
        int64_t width, part = at_o / l->part * l->part;
        float *to = weights + rfx_transpose_part_at(a, l, at_g, part, &width);
        to[(place * l->icg + i % l->icg) * width + at_o - part] =
            scale == NULL ? temp[e] : temp[e] * scale[out];
    }
}

static enum rfx_status pack_taps(const struct rfx_graph *graph, const struct rfx_node *node,
                                 const float *scale, const struct rfx_pack_part *part,
                                 float *weights, struct rfx_error *err) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    struct rfx_transpose_layout layout = way_of(graph, node)->layout(a);
    int64_t elems = graph->weights[a->weight].elems; /* source: [ic][ocg][tap] */
    struct rfx_packing_reader reader = {.weight = &graph->weights[a->weight], .err = err};
    int64_t piece = rfx_packing_half(part);
    memset(weights, 0, rfx_floats_bytes(rfx_transpose_packed_elems(a, &layout)));
    for (int64_t e0 = 0; e0 < elems; e0 += piece) {
        int64_t count = rfx_min_i64(piece, elems - e0);
        enum rfx_status status = rfx_packing_read(&reader, e0, count, part->temp);
        if (status != RFX_OK) return status;
        for (int64_t tap = 0; tap < a->kh * a->kw; tap++)
            pack_tap(a, &layout, scale, part->temp, e0, count, tap, weights);
    }
    return RFX_OK;
}

static enum rfx_status transpose_pack(const struct rfx_graph *graph, const struct rfx_node *node,
                                      void *packed, const struct rfx_pack_part *part,
                                      struct rfx_error *err) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    float *weights, *own;
    const float *scale;
    if (part->index > 0) return RFX_OK;
    enum rfx_status status =
        rfx_packing_begin(graph, &node->act, a->oc, a->bias, packed, part, &weights, err);
    if (status == RFX_OK)
        status = rfx_packing_scale(graph, a->scale, a->oc, part, &own, &scale, err);
    if (status != RFX_OK) return status;
    status = pack_taps(graph, node, scale, part, weights, err);
    rfx_memory_release(graph->mem, own);
    return status;
}

static size_t thread_scratch(const struct rfx_graph *graph, const struct rfx_node *node) {
    const struct rfx_transpose_way *way = way_of(graph, node);
    return way->scratch_bytes == NULL ? 0 : rfx_align_up(way->scratch_bytes(graph, node));
}

static size_t transpose_scratch_bytes(const struct rfx_graph *graph, const struct rfx_node *node,
                                      int threads) {
    return (size_t)threads * thread_scratch(graph, node);
}

static void transpose_run(const struct rfx_run_args *args) {
    struct rfx_conv_job job = rfx_conv_job_make(args);
    job.scratch_bytes = thread_scratch(args->graph, args->node);
    way_of(args->graph, args->node)->run(&job);
}

const struct rfx_op_def rfx_op_conv_transpose = {
    .name = "ConvTranspose",
    .spatial = true,
    .kind = RFX_CLASS_CONVOLUTION,
    .takes_in = RFX_FUSE_BATCH_NORM | RFX_FUSE_ACTIVATION,
    .weights = rfx_conv_weight_slots,
    .infer = transpose_infer,
    .window = transpose_window,
    .axis_map = rfx_op_map_transposed,
    .macs = transpose_macs,
    .scratch_bytes = transpose_scratch_bytes,
    .packed_bytes = transpose_packed_bytes,
    .pack = transpose_pack,
    .run = transpose_run,
};
