/* Transposed convolution, gathered per output pixel with the dense kernel.
 *
 * Output row y takes part of input row iy through tap ky where y + pad_top = iy * sh + ky * dh, and
 * columns likewise. For one tap the output pixels of a row that it reaches are sw apart and their
 * input pixels are neighbours: one dense call. An element is the sum, in (ky, kx)
 * order, of one chain per tap inside the map, whatever the rectangle. Packed weights:
 * [group][ky][kx][ic][oc]. */
#include <limits.h>
#include <string.h>

#include "layers/conv/conv.h"
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

/* On the average over output pixels: every input pixel makes oc / groups * kh * kw per channel. */
static uint64_t transpose_macs(const struct rfx_graph *graph, const struct rfx_node *node,
                               uint64_t area) {
    (void)graph;
    const struct rfx_conv_attr *a = &node->attr.conv;
    /* taps that reach one output pixel, at most; a whole number, so that tiles add up */
    uint64_t taps = (uint64_t)(rfx_ceil_div(a->kh, a->sh) * rfx_ceil_div(a->kw, a->sw));
    return area * taps * (uint64_t)(a->ic / a->groups) * (uint64_t)a->oc;
}

static size_t transpose_packed_bytes(const struct rfx_graph *graph, const struct rfx_node *node) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    size_t weights = rfx_floats_bytes(graph->weights[a->weight].elems);
    return rfx_packing_parts(&node->act, a->oc).weights_bytes_at + rfx_align_up(weights);
}

static enum rfx_status transpose_pack(const struct rfx_graph *graph, const struct rfx_node *node,
                                      void *packed, const struct rfx_pack_part *part,
                                      struct rfx_error *err) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    int64_t piece = rfx_packing_half(part);
    float *temp = part->temp, *weights, *own;
    const float *scale;
    if (part->index > 0) return RFX_OK;
    enum rfx_status status =
        rfx_packing_begin(graph, &node->act, a->oc, a->bias, packed, part, &weights, err);
    if (status == RFX_OK)
        status = rfx_packing_scale(graph, a->scale, a->oc, part, &own, &scale, err);
    if (status != RFX_OK) return status;
    int64_t ocg = a->oc / a->groups, icg = a->ic / a->groups, taps = a->kh * a->kw;
    struct rfx_packing_reader reader = {.weight = &graph->weights[a->weight], .err = err};
    for (int64_t e0 = 0; e0 < a->ic * ocg * taps; e0 += piece) {
        int64_t count = rfx_min_i64(piece, a->ic * ocg * taps - e0);
        status = rfx_packing_read(&reader, e0, count, temp);
        if (status != RFX_OK) break;
        for (int64_t e = 0; e < count; e++) { /* source [ic][ocg][tap] */
            int64_t tap = (e0 + e) % taps, o = (e0 + e) / taps % ocg, i = (e0 + e) / taps / ocg;
            int64_t g = i / icg;
            weights[((g * taps + tap) * icg + i % icg) * ocg + o] =
                scale == NULL ? temp[e] : temp[e] * scale[g * ocg + o];
        }
    }
    rfx_memory_release(graph->mem, own);
    return status;
}

/* Adds tap (ky, kx) from input row iy to the pixels [x0, x1) of output row y that it reaches. */
static void add_tap(const struct rfx_conv_job *job, int64_t y, int64_t iy, int64_t x0, int64_t x1,
                    int64_t tap) {
    const struct rfx_conv_attr *a = job->a;
    const struct rfx_view *in = &job->args->in[0], *out = &job->args->out;
    int64_t shift = a->pads.left - tap % a->kw * a->dw; /* ix * sw = x + shift */
    int64_t first = rfx_max_i64(0, rfx_ceil_div(x0 + shift, a->sw));
    int64_t last = rfx_min_i64(job->cols.in, rfx_floor_div(x1 - 1 + shift, a->sw) + 1);
    if (first >= last) return;
    int64_t ocg = a->oc / a->groups, icg = a->ic / a->groups;
    struct rfx_dense_run run = {
        .x_stride = in->c,
        .w_stride = ocg,
        .y_stride = a->sw * out->c,
        .rows = last - first,
        .k = icg,
        .m = ocg,
    };
    for (int64_t g = 0; g < a->groups; g++) {
        run.x = rfx_view_at(in, iy, first) + g * icg;
        run.y = rfx_view_at(out, y, first * a->sw - shift) + g * ocg;
        run.w = job->weights + (g * a->kh * a->kw + tap) * icg * ocg;
        job->kernels->dense(&run);
    }
}

static void make_row(const struct rfx_conv_job *job, int64_t y, int64_t x0, int64_t x1) {
    const struct rfx_conv_attr *a = job->a;
    const struct rfx_view *out = &job->args->out;
    for (int64_t x = x0; x < x1; x++) memset(rfx_view_at(out, y, x), 0, rfx_floats_bytes(a->oc));
    for (int64_t ky = 0; ky < a->kh; ky++) {
        int64_t from = y + a->pads.top - ky * a->dh;
        int64_t iy = rfx_floor_div(from, a->sh);
        if (iy * a->sh != from || iy < 0 || iy >= job->rows.in) continue;
        for (int64_t kx = 0; kx < a->kw; kx++) add_tap(job, y, iy, x0, x1, ky * a->kw + kx);
    }
    job->kernels->epilogue(&job->epilogue, rfx_view_at(out, y, x0), out->c, NULL, 0, x1 - x0);
}

static void transpose_unit(const void *user, struct rfx_rect unit, int thread) {
    const struct rfx_conv_job *job = user;
    (void)thread;
    for (int64_t y = unit.y0; y < unit.y1; y++) make_row(job, y, unit.x0, unit.x1);
}

static void transpose_run(const struct rfx_run_args *args) {
    struct rfx_conv_job job = rfx_conv_job_make(args);
    rfx_conv_share_units(args, transpose_unit, &job);
}

static const struct rfx_weight_slot weights[] = {
    {"weight", RFX_WEIGHT_FACTOR, offsetof(struct rfx_node, attr.conv.weight)},
    {"bias", RFX_WEIGHT_BIAS, offsetof(struct rfx_node, attr.conv.bias)},
    {"scale", RFX_WEIGHT_SCALE, offsetof(struct rfx_node, attr.conv.scale)},
    {NULL, RFX_WEIGHT_FACTOR, 0},
};

const struct rfx_op_def rfx_op_conv_transpose = {
    .name = "ConvTranspose",
    .spatial = true,
    .kind = RFX_CLASS_CONVOLUTION,
    .takes_in = RFX_FUSE_BATCH_NORM | RFX_FUSE_ACTIVATION,
    .weights = weights,
    .infer = transpose_infer,
    .window = transpose_window,
    .axis_map = rfx_op_map_transposed,
    .macs = transpose_macs,
    .packed_bytes = transpose_packed_bytes,
    .pack = transpose_pack,
    .run = transpose_run,
};
