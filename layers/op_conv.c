/* Convolution: shape, region map, packing, and the choice of how it is run (conv.h). */
#include <limits.h>
#include <string.h>

#include "layers/conv.h"
#include "layers/infer.h"
#include "layers/packing.h"

enum rfx_conv_way rfx_conv_way(const struct rfx_conv_attr *a) {
    if (a->groups > 1 && a->groups == a->ic && a->oc == a->ic) return RFX_CONV_DEPTHWISE;
    if (a->groups == 1 && a->ic <= RFX_CONV_DIRECT_IC && a->kw <= RFX_CONV_DIRECT_KW && a->dw == 1)
        return RFX_CONV_DIRECT;
    return RFX_CONV_PANEL;
}

/* Output extent of one axis, or a refusal with the numbers. */
static enum rfx_status axis_extent(const struct rfx_node *node, int64_t in, int64_t before,
                                   int64_t after, int64_t k, int64_t s, int64_t d, int64_t *out,
                                   struct rfx_error *err) {
    int64_t padded, reach;
    if (k < 1 || s < 1 || d < 1 || before < 0 || after < 0)
        return rfx_infer_refuse(
            node, err,
            "kernel %lld, stride %lld, dilation %lld, pads %lld and %lld are not allowed",
            (long long)k, (long long)s, (long long)d, (long long)before, (long long)after);
    if (!rfx_checked_mul_i64(d, k - 1, &reach) || !rfx_checked_add_i64(reach, 1, &reach) ||
        !rfx_checked_add_i64(in, before, &padded) || !rfx_checked_add_i64(padded, after, &padded))
        return rfx_infer_refuse(node, err, "the padded size overflows");
    if (reach > padded)
        return rfx_infer_refuse(node, err,
                                "kernel of %lld (dilated: %lld) exceeds padded input %lld",
                                (long long)k, (long long)reach, (long long)padded);
    *out = (padded - reach) / s + 1;
    return RFX_OK;
}

/* Weight, bias and scale must have the sizes that the attributes say. */
static enum rfx_status check_weights(const struct rfx_graph *graph, const struct rfx_node *node,
                                     struct rfx_error *err) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    if (a->groups < 1 || a->oc < 1 || a->ic % a->groups != 0 || a->oc % a->groups != 0)
        return rfx_infer_refuse(node, err,
                                "%lld groups do not divide %lld input and %lld output "
                                "channels",
                                (long long)a->groups, (long long)a->ic, (long long)a->oc);
    const struct rfx_weight *w = &graph->weights[a->weight];
    int64_t want[4] = {a->oc, a->ic / a->groups, a->kh, a->kw};
    const int64_t *dims = w->shape.dims;
    if (w->shape.rank != 4 || memcmp(dims, want, sizeof want) != 0)
        return rfx_infer_refuse(
            node, err, "weight of rank %d, %lldx%lldx%lldx%lld, is not %lldx%lldx%lldx%lld",
            w->shape.rank, (long long)dims[0], (long long)dims[1], (long long)dims[2],
            (long long)dims[3], (long long)want[0], (long long)want[1], (long long)want[2],
            (long long)want[3]);
    int extra[2] = {a->bias, a->scale};
    for (int i = 0; i < 2; i++)
        if (extra[i] >= 0 && graph->weights[extra[i]].elems != a->oc)
            return rfx_infer_refuse(node, err, "%s has %lld elements for %lld output channels",
                                    i == 0 ? "bias" : "scale",
                                    (long long)graph->weights[extra[i]].elems, (long long)a->oc);
    int64_t k;
    if (!rfx_checked_mul_i64(want[1], a->kh, &k) || !rfx_checked_mul_i64(k, a->kw, &k) ||
        k > INT_MAX / 4 || a->oc > INT_MAX / 4 || a->ic > INT_MAX / 4)
        return rfx_infer_refuse(node, err, "a filter of %lldx%lldx%lld is too large",
                                (long long)want[1], (long long)a->kh, (long long)a->kw);
    return RFX_OK;
}

static enum rfx_status conv_infer(const struct rfx_graph *graph, struct rfx_node *node,
                                  struct rfx_error *err) {
    enum rfx_status status =
        rfx_infer_inputs(graph, node, node->residual ? 2 : 1, RFX_LAYOUT_NHWC, err);
    if (status != RFX_OK) return status;
    const struct rfx_tensor *in = rfx_infer_in(graph, node, 0);
    struct rfx_conv_attr *a = &node->attr.conv;
    a->ic = in->c;
    int64_t oh = 0, ow = 0;
    status = axis_extent(node, in->h, a->pads.top, a->pads.bottom, a->kh, a->sh, a->dh, &oh, err);
    if (status != RFX_OK) return status;
    status = axis_extent(node, in->w, a->pads.left, a->pads.right, a->kw, a->sw, a->dw, &ow, err);
    if (status != RFX_OK) return status;
    status = check_weights(graph, node, err);
    if (status != RFX_OK) return status;
    status = rfx_infer_set_map(node, a->oc, oh, ow, err);
    if (status != RFX_OK || !node->residual) return status;
    const struct rfx_tensor *r = rfx_infer_in(graph, node, 1);
    if (r->c != a->oc || r->h != oh || r->w != ow)
        return rfx_infer_refuse(node, err,
                                "residual %lldx%lldx%lld is not the output's %lldx%lldx%lld",
                                (long long)r->c, (long long)r->h, (long long)r->w, (long long)a->oc,
                                (long long)oh, (long long)ow);
    return RFX_OK;
}

static void conv_window(const struct rfx_node *node, struct rfx_window *window) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    *window = (struct rfx_window){{a->kh, a->kw}, {a->sh, a->sw}, {a->dh, a->dw}, a->pads};
}

/* The residual is read one to one. */
static struct rfx_axis_map conv_axis_map(const struct rfx_graph *graph, const struct rfx_node *node,
                                         int k, int axis) {
    (void)graph;
    const struct rfx_conv_attr *a = &node->attr.conv;
    if (k != 0) return rfx_axis_map_identity();
    return axis == 0 ? rfx_axis_map_window(a->kh, a->dh, a->sh, a->pads.top)
                     : rfx_axis_map_window(a->kw, a->dw, a->sw, a->pads.left);
}

/* Over the residual; panels are computed beside it and added pixel by pixel. */
static bool conv_in_place(const struct rfx_graph *graph, const struct rfx_node *node, int k) {
    (void)graph;
    return k == 1 && node->residual && rfx_conv_way(&node->attr.conv) == RFX_CONV_PANEL;
}

static uint64_t conv_macs(const struct rfx_graph *graph, const struct rfx_node *node,
                          uint64_t area) {
    (void)graph;
    const struct rfx_conv_attr *a = &node->attr.conv;
    return area * (uint64_t)a->oc * (uint64_t)(a->ic / a->groups) * (uint64_t)a->kh *
           (uint64_t)a->kw;
}

static size_t conv_packed_bytes(const struct rfx_graph *graph, const struct rfx_node *node) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    size_t weights = (size_t)graph->weights[a->weight].elems * sizeof(float);
    return rfx_packing_parts(&node->act, a->oc).weights_bytes_at + rfx_align_up(weights);
}

#define PACK_FILTERS 16 /* filters transposed together: a cache line of stores */
#define PACK_ELEMS (RFX_PACKING_CHUNK_ELEMS / 2) /* of temporary; the scales lie behind */

/* Filters o0 .. o0 + n of one group: source [o][i][tap] -> dst [tap][i][o], m filters wide. */
static void pack_filters(struct rfx_packing_reader *reader, int64_t o0, int64_t n, int64_t icg,
                         int64_t taps, const float *scale, float *temp, float *dst, int64_t m) {
    int64_t len = icg * taps, piece = PACK_ELEMS / PACK_FILTERS;
    for (int64_t e0 = 0; e0 < len; e0 += piece) {
        int64_t count = rfx_min_i64(piece, len - e0);
        for (int64_t j = 0; j < n; j++)
            rfx_packing_read(reader, (o0 + j) * len + e0, count, temp + j * piece);
        for (int64_t e = 0; e < count; e++) {
            int64_t i = (e0 + e) / taps, tap = (e0 + e) % taps;
            float *to = dst + (tap * icg + i) * m;
            for (int64_t j = 0; j < n; j++)
                to[j] = scale == NULL ? temp[j * piece + e] : temp[j * piece + e] * scale[o0 + j];
        }
    }
}

/* Depthwise filters [c][tap] are one "group" of c filters with one input channel here. */
static enum rfx_status conv_pack(const struct rfx_graph *graph, const struct rfx_node *node,
                                 void *packed, void *temp, struct rfx_error *err) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    float *weights = rfx_packing_begin(graph, &node->act, a->oc, a->bias, packed);
    float *own;
    const float *scale;
    enum rfx_status status = rfx_packing_scale(graph, a->scale, a->oc, temp, &own, &scale, err);
    if (status != RFX_OK) return status;
    bool depthwise = rfx_conv_way(a) == RFX_CONV_DEPTHWISE;
    int64_t groups = depthwise ? 1 : a->groups, m = a->oc / groups;
    int64_t icg = a->ic / a->groups, taps = a->kh * a->kw;
    struct rfx_packing_reader reader = {.weight = &graph->weights[a->weight]};
    for (int64_t g = 0; g < groups; g++)
        for (int64_t o = 0; o < m; o += PACK_FILTERS)
            pack_filters(&reader, g * m + o, rfx_min_i64(PACK_FILTERS, m - o), icg, taps, scale,
                         temp, weights + g * m * icg * taps + o, m);
    rfx_weight_drop_pages(reader.weight);
    rfx_memory_release(graph->mem, own);
    return RFX_OK;
}

static size_t conv_scratch_bytes(const struct rfx_graph *graph, const struct rfx_node *node,
                                 int threads) {
    switch (rfx_conv_way(&node->attr.conv)) {
        case RFX_CONV_DEPTHWISE:
            return rfx_conv_depthwise_scratch(node, threads);
        case RFX_CONV_DIRECT:
            return 0;
        case RFX_CONV_PANEL:
            break;
    }
    return rfx_conv_panel_scratch(graph, node, threads);
}

static void conv_run(const struct rfx_run_args *args) {
    const struct rfx_node *node = args->node;
    const struct rfx_conv_attr *a = &node->attr.conv;
    const struct rfx_tensor *in = &args->graph->nodes[node->in[0]].out;
    struct rfx_conv_job job = {
        .args = args,
        .a = a,
        .rows = {a->kh, a->sh, a->dh, a->pads.top, in->h, node->out.h},
        .cols = {a->kw, a->sw, a->dw, a->pads.left, in->w, node->out.w},
        .kernels = rfx_kernels(),
        .weights = rfx_packed_weights(&node->act, a->oc, args->packed),
        .epilogue = {args->packed, rfx_packed_slope(&node->act, a->oc, args->packed), &node->act,
                     a->oc},
    };
    switch (rfx_conv_way(a)) {
        case RFX_CONV_DEPTHWISE:
            rfx_conv_depthwise_run(&job);
            break;
        case RFX_CONV_DIRECT:
            rfx_conv_direct_run(&job);
            break;
        case RFX_CONV_PANEL:
            rfx_conv_panel_run(&job);
            break;
    }
}

static const struct rfx_weight_slot weights[] = {
    {"weight", RFX_WEIGHT_FACTOR, offsetof(struct rfx_node, attr.conv.weight)},
    {"bias", RFX_WEIGHT_BIAS, offsetof(struct rfx_node, attr.conv.bias)},
    {"scale", RFX_WEIGHT_SCALE, offsetof(struct rfx_node, attr.conv.scale)},
    {NULL, RFX_WEIGHT_FACTOR, 0},
};

const struct rfx_op_def rfx_op_conv = {
    .name = "Conv",
    .spatial = true,
    .kind = RFX_CLASS_CONVOLUTION,
    .takes_in = RFX_FUSE_BATCH_NORM | RFX_FUSE_ACTIVATION | RFX_FUSE_SUM,
    .weights = weights,
    .infer = conv_infer,
    .window = conv_window,
    .axis_map = conv_axis_map,
    .in_place = conv_in_place,
    .macs = conv_macs,
    .scratch_bytes = conv_scratch_bytes,
    .packed_bytes = conv_packed_bytes,
    .pack = conv_pack,
    .run = conv_run,
};
