/* The convolution operator: shape inference and region map. A backend packs its weights and
 * computes it (conv_backend.h). */
#include <limits.h>

#include "layers/conv/conv_backend.h"
#include "layers/graph/infer.h"
#include "layers/kernels/packing.h"

/* Computes the output extent of one axis into *out. UNSUPPORTED, with the numbers, if the
 * attributes are invalid, the padded size overflows, or the kernel exceeds the padded input. */
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

/* Checks groups and weights, and that filter sizes fit in the ints of OpenBLAS's matrix
 * products. */
static enum rfx_status check_weights(const struct rfx_graph *graph, const struct rfx_node *node,
                                     struct rfx_error *err) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    enum rfx_status status = rfx_conv_check_groups(node, err);
    if (status != RFX_OK) return status;
    const int64_t want[4] = {a->oc, a->ic / a->groups, a->kh, a->kw};
    status = rfx_conv_check_weights(graph, node, want, err);
    if (status != RFX_OK) return status;
    int64_t k;
    if (!rfx_checked_mul_i64(want[1], a->kh, &k) || !rfx_checked_mul_i64(k, a->kw, &k) ||
        k > INT_MAX / 4 || a->oc > INT_MAX / 4 || a->ic > INT_MAX / 4)
        return rfx_infer_refuse(node, err, "a filter of %lldx%lldx%lld is too large",
                                (long long)want[1], (long long)a->kh, (long long)a->kw);
    return RFX_OK;
}

enum rfx_status rfx_conv_infer(const struct rfx_graph *graph, struct rfx_node *node, int n_in,
                               struct rfx_error *err) {
    enum rfx_status status = rfx_infer_inputs(graph, node, n_in, RFX_LAYOUT_NHWC, err);
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

static enum rfx_status conv_infer(const struct rfx_graph *graph, struct rfx_node *node,
                                  struct rfx_error *err) {
    return rfx_conv_infer(graph, node, node->residual ? 2 : 1, err);
}

void rfx_conv_window(const struct rfx_node *node, struct rfx_window *window) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    *window = (struct rfx_window){{a->kh, a->kw}, {a->sh, a->sw}, {a->dh, a->dw}, a->pads};
}

/* Input 0 is read through the window; the residual, input 1, pixel by pixel. */
static struct rfx_axis_map conv_axis_map(const struct rfx_graph *graph, const struct rfx_node *node,
                                         int k, int axis) {
    (void)graph;
    const struct rfx_conv_attr *a = &node->attr.conv;
    if (k != 0) return rfx_axis_map_identity();
    return axis == 0 ? rfx_axis_map_window(a->kh, a->dh, a->sh, a->pads.top)
                     : rfx_axis_map_window(a->kw, a->dw, a->sw, a->pads.left);
}

static struct rfx_range conv_in_range(const struct rfx_graph *graph, const struct rfx_node *node,
                                      int k, int axis, struct rfx_range out) {
    struct rfx_axis_map map = conv_axis_map(graph, node, k, axis);
    return rfx_axis_map_range(&map, k == 0 ? rfx_conv_widen(graph, node, axis, out) : out);
}

/* Returns whether the output may overwrite input k: only the residual, if the backend allows it. */
static bool conv_in_place(const struct rfx_graph *graph, const struct rfx_node *node, int k) {
    return k == 1 && node->residual && rfx_conv_backend_of(graph, node)->in_place;
}

uint64_t rfx_conv_macs(const struct rfx_graph *graph, const struct rfx_node *node, uint64_t area) {
    (void)graph;
    const struct rfx_conv_attr *a = &node->attr.conv;
    return area * (uint64_t)a->oc * (uint64_t)(a->ic / a->groups) * (uint64_t)a->kh *
           (uint64_t)a->kw;
}

static size_t conv_packed_bytes(const struct rfx_graph *graph, const struct rfx_node *node) {
    return rfx_packing_parts(&node->act, node->attr.conv.oc).weights_bytes_at +
           rfx_align_up(rfx_conv_backend_of(graph, node)->packed_bytes(graph, node));
}

static enum rfx_status conv_pack(const struct rfx_graph *graph, const struct rfx_node *node,
                                 void *packed, const struct rfx_pack_part *part,
                                 struct rfx_error *err) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    struct rfx_conv_pack_job job = {.graph = graph,
                                    .node = node,
                                    .part = part,
                                    .temp = part->temp,
                                    .temp_elems = rfx_packing_half(part)};
    float *own;
    enum rfx_status status =
        rfx_packing_begin(graph, &node->act, a->oc, a->bias, packed, part, &job.weights, err);
    if (status == RFX_OK)
        status = rfx_packing_scale(graph, a->scale, a->oc, part, &own, &job.scale, err);
    if (status != RFX_OK) return status;
    status = rfx_conv_backend_of(graph, node)->pack(&job, err);
    rfx_memory_release(graph->mem, own);
    return status;
}

static size_t thread_scratch(const struct rfx_graph *graph, const struct rfx_node *node) {
    const struct rfx_conv_backend *backend = rfx_conv_backend_of(graph, node);
    return backend->scratch_bytes == NULL ? 0 : rfx_align_up(backend->scratch_bytes(graph, node));
}

static size_t conv_scratch_bytes(const struct rfx_graph *graph, const struct rfx_node *node,
                                 int threads) {
    return (size_t)threads * thread_scratch(graph, node);
}

static bool conv_calls_blas(const struct rfx_graph *graph, const struct rfx_node *node) {
    return rfx_conv_backend_of(graph, node)->calls_blas;
}

static void conv_run(const struct rfx_run_args *args) {
    struct rfx_conv_job job = rfx_conv_job_make(args);
    job.scratch_bytes = thread_scratch(args->graph, args->node);
    rfx_conv_backend_of(args->graph, args->node)->run(&job);
}

static const char *conv_backend(const struct rfx_graph *graph, const struct rfx_node *node) {
    return rfx_conv_backend_of(graph, node)->name;
}

const struct rfx_op_def rfx_op_conv = {
    .name = "Conv",
    .spatial = true,
    .kind = RFX_CLASS_CONVOLUTION,
    .takes_in = RFX_FUSE_BATCH_NORM | RFX_FUSE_ACTIVATION | RFX_FUSE_SUM,
    .weights = rfx_conv_weight_slots,
    .infer = conv_infer,
    .window = rfx_conv_window,
    .axis_map = conv_axis_map,
    .in_range = conv_in_range,
    .in_place = conv_in_place,
    .macs = rfx_conv_macs,
    .scratch_bytes = conv_scratch_bytes,
    .calls_blas = conv_calls_blas,
    .packed_bytes = conv_packed_bytes,
    .pack = conv_pack,
    .run = conv_run,
    .backend = conv_backend,
};
