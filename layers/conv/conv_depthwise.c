/* Depthwise convolutions: one filter per channel, channels in vectors, with own kernels. Every
 * element is one chain of multiply-adds over the taps inside the map, in (ky, kx) order; nothing
 * depends on the rectangle, the cut, or the place in a row. Packed weights: [ky][kx][channel]. */
#include <math.h>

#include "layers/conv/conv_backend.h"
#include "layers/core/checked.h"

static void depthwise_pixels(const struct rfx_conv_job *job, struct rfx_depthwise_run *run,
                             const float **rows, int64_t y, int64_t x0, int64_t x1,
                             struct rfx_range taps) {
    const struct rfx_view *in = &job->args->in[0];
    struct rfx_range ty = rfx_conv_taps(&job->rows, y);
    int64_t iy = y * job->rows.s - job->rows.pad, ix = x0 * job->cols.s - job->cols.pad;
    for (int64_t ky = 0; ky < run->kh; ky++)
        rows[ky] = ky >= ty.lo && ky < ty.hi ? rfx_view_at(in, iy + ky * job->rows.d, ix) : NULL;
    run->out = rfx_view_at(&job->args->out, y, x0);
    run->pixels = x1 - x0;
    run->kx0 = taps.lo;
    run->kx1 = taps.hi;
    job->kernels->depthwise(run);
}

/* What the clamp in registers left to do, on the pixels just made. */
static void depthwise_finish(const struct rfx_conv_job *job, int64_t y, int64_t x0, int64_t x1) {
    const struct rfx_run_args *args = job->args;
    const struct rfx_view *out = &args->out;
    for (int64_t x = x0; x < x1; x++) {
        float *data = rfx_view_at(out, y, x);
        if (args->node->residual)
            job->kernels->binary(RFX_BINARY_ADD, data, 1, rfx_view_at(&args->in[1], y, x), 1, data,
                                 job->a->oc);
        job->kernels->act(&args->node->act, job->epilogue.slope, data, data, 1, job->a->oc);
    }
}

static void make_unit(const struct rfx_conv_job *job, struct rfx_rect unit, const float **rows) {
    const struct rfx_conv_attr *a = job->a;
    struct rfx_depthwise_run run = {
        .rows = rows,
        .weights = job->weights,
        .bias = job->epilogue.bias,
        .c = a->oc,
        .in_c = job->args->in[0].c,
        .out_c = job->args->out.c,
        .kh = a->kh,
        .kw = a->kw,
        .sw = a->sw,
        .dw = a->dw,
    };
    bool finished = rfx_conv_clamp(&job->args->node->act, &run.lo, &run.hi);
    if (job->args->node->residual) { /* is added before the clamp */
        finished = false;
        run.lo = -INFINITY;
        run.hi = INFINITY;
    }
    struct rfx_range inner = rfx_conv_interior(&job->cols, unit.x0, unit.x1);
    const struct rfx_range all = {0, a->kw};
    for (int64_t y = unit.y0; y < unit.y1; y++) {
        for (int64_t x = unit.x0; x < inner.lo; x++)
            depthwise_pixels(job, &run, rows, y, x, x + 1, rfx_conv_taps(&job->cols, x));
        if (inner.lo < inner.hi) depthwise_pixels(job, &run, rows, y, inner.lo, inner.hi, all);
        for (int64_t x = inner.hi; x < unit.x1; x++)
            depthwise_pixels(job, &run, rows, y, x, x + 1, rfx_conv_taps(&job->cols, x));
        if (!finished) depthwise_finish(job, y, unit.x0, unit.x1);
    }
}

static bool depthwise_accepts(const struct rfx_graph *graph, const struct rfx_node *node, char *why,
                              size_t size) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    (void)graph;
    if (a->groups > 1 && a->groups == a->ic && a->oc == a->ic) return true;
    return rfx_conv_refuse(why, size,
                           "%lld groups of %lld input and %lld output channels are not one filter "
                           "per channel",
                           (long long)a->groups, (long long)a->ic, (long long)a->oc);
}

/* The channels are packed as the filters of one group with one input channel: [tap][channel]. */
static enum rfx_status depthwise_pack(const struct rfx_conv_pack_job *job, struct rfx_error *err) {
    return rfx_conv_taps_pack(job, 1, err);
}

/* Pointers to the input rows of a kernel. */
static size_t depthwise_scratch(const struct rfx_graph *graph, const struct rfx_node *node) {
    (void)graph;
    return rfx_align_up((size_t)node->attr.conv.kh * sizeof(const float *));
}

static void depthwise_unit(const void *user, struct rfx_rect unit, int thread) {
    const struct rfx_conv_job *job = user;
    make_unit(job, unit, (const float **)rfx_conv_thread_scratch(job, thread));
}

static void depthwise_run(const struct rfx_conv_job *job) {
    rfx_conv_share_units(job->args, depthwise_unit, job);
}

const struct rfx_conv_backend rfx_conv_depthwise = {
    .name = "depthwise",
    .accepts = depthwise_accepts,
    .packed_bytes = rfx_conv_taps_packed_bytes,
    .pack = depthwise_pack,
    .scratch_bytes = depthwise_scratch,
    .run = depthwise_run,
};
