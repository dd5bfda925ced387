/* Transposed convolution, gathered per output pixel with the dense kernel.
 *
 * Output row y takes part of input row iy through tap ky where y + pad_top = iy * sh + ky * dh, and
 * columns likewise. For one tap the output pixels of a row that it reaches are sw apart and their
 * input pixels are neighbours: one dense call. An element is the sum, in (ky, kx)
 * order, of one chain per tap inside the map, whatever the rectangle. Packed weights:
 * [group][ky][kx][ic][oc]. */
#include <limits.h>
#include <string.h>

#include "layers/conv.h"
#include "layers/infer.h"
#include "layers/packing.h"

struct axis {
    int64_t k, s, d, pad;
};

static struct axis axis_of(const struct rfx_conv_attr *a, int axis) {
    struct axis rows = {a->kh, a->sh, a->dh, a->pads.top};
    struct axis cols = {a->kw, a->sw, a->dw, a->pads.left};
    return axis == 0 ? rows : cols;
}

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
    if (a->groups < 1 || a->oc < 1 || a->ic % a->groups != 0 || a->oc % a->groups != 0)
        return rfx_infer_refuse(node, err,
                                "%lld groups do not divide %lld input and %lld output channels",
                                (long long)a->groups, (long long)a->ic, (long long)a->oc);
    if (a->pads.top < 0 || a->pads.left < 0 || a->pads.bottom < 0 || a->pads.right < 0)
        return rfx_infer_refuse(node, err, "negative pads are not supported");
    const struct rfx_weight *w = &graph->weights[a->weight];
    int64_t want[4] = {a->ic, a->oc / a->groups, a->kh, a->kw};
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
    return RFX_OK;
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

/* Whether input position i reaches an output position of `out`. O(k). */
static bool reaches(const struct axis *x, int64_t i, struct rfx_range out) {
    for (int64_t k = 0; k < x->k; k++) {
        int64_t o = i * x->s + k * x->d - x->pad;
        if (o >= out.lo && o < out.hi) return true;
    }
    return false;
}

static struct rfx_range transpose_in_range(const struct rfx_graph *graph,
                                           const struct rfx_node *node, int k, int axis,
                                           struct rfx_range out) {
    (void)graph;
    (void)k;
    struct axis x = axis_of(&node->attr.conv, axis);
    struct rfx_range in = {rfx_ceil_div(out.lo + x.pad - x.d * (x.k - 1), x.s),
                           rfx_floor_div(out.hi - 1 + x.pad, x.s) + 1};
    if (out.lo >= out.hi) in.hi = in.lo;
    while (in.lo < in.hi && !reaches(&x, in.lo, out)) in.lo++; /* gaps of strides, dilations */
    while (in.lo < in.hi && !reaches(&x, in.hi - 1, out)) in.hi--;
    if (in.hi < in.lo) in.hi = in.lo;
    return in;
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
    size_t weights = (size_t)graph->weights[a->weight].elems * sizeof(float);
    return rfx_packing_parts(&node->act, a->oc).weights_bytes_at + rfx_align_up(weights);
}

#define PACK_ELEMS (RFX_PACKING_CHUNK_ELEMS / 2)

static enum rfx_status transpose_pack(const struct rfx_graph *graph, const struct rfx_node *node,
                                      void *packed, void *temp, struct rfx_error *err) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    float *part = temp;
    float *weights, *own;
    const float *scale;
    enum rfx_status status =
        rfx_packing_begin(graph, &node->act, a->oc, a->bias, packed, &weights, err);
    if (status == RFX_OK)
        status = rfx_packing_scale(graph, a->scale, a->oc, part, &own, &scale, err);
    if (status != RFX_OK) return status;
    int64_t ocg = a->oc / a->groups, icg = a->ic / a->groups, taps = a->kh * a->kw;
    struct rfx_packing_reader reader = {.weight = &graph->weights[a->weight], .err = err};
    for (int64_t e0 = 0; e0 < a->ic * ocg * taps; e0 += PACK_ELEMS) {
        int64_t count = rfx_min_i64(PACK_ELEMS, a->ic * ocg * taps - e0);
        status = rfx_packing_read(&reader, e0, count, part);
        if (status != RFX_OK) break;
        for (int64_t e = 0; e < count; e++) { /* source [ic][ocg][tap] */
            int64_t tap = (e0 + e) % taps, o = (e0 + e) / taps % ocg, i = (e0 + e) / taps / ocg;
            int64_t g = i / icg;
            weights[((g * taps + tap) * icg + i % icg) * ocg + o] =
                scale == NULL ? part[e] : part[e] * scale[g * ocg + o];
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
    for (int64_t x = x0; x < x1; x++)
        memset(rfx_view_at(out, y, x), 0, (size_t)a->oc * sizeof(float));
    for (int64_t ky = 0; ky < a->kh; ky++) {
        int64_t from = y + a->pads.top - ky * a->dh;
        int64_t iy = rfx_floor_div(from, a->sh);
        if (iy * a->sh != from || iy < 0 || iy >= job->rows.in) continue;
        for (int64_t kx = 0; kx < a->kw; kx++) add_tap(job, y, iy, x0, x1, ky * a->kw + kx);
    }
    job->kernels->epilogue(&job->epilogue, rfx_view_at(out, y, x0), out->c, NULL, 0, x1 - x0);
}

static void transpose_run(const struct rfx_run_args *args) {
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
    struct rfx_conv_units units = rfx_conv_cut(args->rect, args->threads);
    int64_t count = units.down * units.across;
#pragma omp parallel for schedule(dynamic) num_threads(args->threads) if (args->threads > 1)
    for (int64_t i = 0; i < count; i++) {
        struct rfx_rect unit = rfx_conv_unit(&units, args->rect, i);
        for (int64_t y = unit.y0; y < unit.y1; y++) make_row(&job, y, unit.x0, unit.x1);
    }
}

const struct rfx_op_def rfx_op_conv_transpose = {
    .name = "ConvTranspose",
    .spatial = true,
    .infer = transpose_infer,
    .in_range = transpose_in_range,
    .macs = transpose_macs,
    .packed_bytes = transpose_packed_bytes,
    .pack = transpose_pack,
    .run = transpose_run,
};
