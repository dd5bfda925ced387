/* Depthwise convolutions, one filter per channel, with this library's own kernels. The lanes of a
 * vector are channels. Every element is one chain of multiply-adds over the taps inside the map, in
 * (ky, kx) order. It does not depend on the rectangle, the division into units, or the position in
 * a row. Packed weights: [ky][kx][channel]. */
#include <math.h>

#include "layers/conv/conv_backend.h"
#include "layers/core/checked.h"

/* Bytes of input and output together above which caches do not keep them until the next layer. */
#define FAR_BYTES (24 << 20)

static bool is_far(const struct rfx_conv_job *job) {
    const struct rfx_run_args *args = job->args;
    struct rfx_rect in = rfx_op_in_rect(args->graph, args->node, 0, args->rect);
    int64_t pixels = rfx_rect_area(in) + rfx_rect_area(args->rect);
    return rfx_floats_bytes(pixels * job->a->oc) >= FAR_BYTES;
}

/* Computes output rows y .. y + n of columns [x0, x1). */
static void depthwise_rows(const struct rfx_conv_job *job, struct rfx_depthwise_args *run,
                           const float **rows, int64_t y, int64_t n, int64_t x0, int64_t x1) {
    const struct rfx_view *in = &job->args->in[0], *out = &job->args->out;
    int64_t ix = x0 * job->cols.s - job->cols.pad;
    for (int64_t i = 0; i < run->kh + (n - 1) * run->row_step; i++) {
        int64_t iy = y * job->rows.s - job->rows.pad + i * job->rows.d;
        rows[i] = iy >= 0 && iy < job->rows.in ? rfx_view_f32_at(in, iy, ix) : NULL;
    }
    run->out = rfx_view_f32_at(out, y, x0);
    run->out_row = n == 1 ? 0 : rfx_view_f32_at(out, y + 1, x0) - run->out;
    run->n_rows = n;
    run->pixels = x1 - x0;
    run->col0 = -ix;
    run->col1 = job->cols.in - ix;
    job->kernels->depthwise(run);
}

/* Completes pixels [x0, x1) of output row y: adds the residual and applies the activation, unless
 * the kernel's clamp already did. */
static void depthwise_finish(const struct rfx_conv_job *job, int64_t y, int64_t x0, int64_t x1) {
    const struct rfx_run_args *args = job->args;
    const struct rfx_view *out = &args->out, *residual = &args->in[1];
    if (args->node->residual) {
        bool dense = out->c == job->a->oc && residual->c == job->a->oc;
        int64_t step = dense ? x1 - x0 : 1;
        for (int64_t x = x0; x < x1; x += step) {
            float *data = rfx_view_f32_at(out, y, x);
            job->kernels->binary(RFX_BINARY_ADD, data, 1, rfx_view_f32_at(residual, y, x), 1, data,
                                 step * job->a->oc);
        }
    }
    rfx_conv_activate(job, rfx_rect_make(y, y + 1, x0, x1), 0, job->a->oc);
}

static void make_unit(const void *user, struct rfx_rect unit, void *scratch) {
    const struct rfx_conv_job *job = user;
    const float **rows = scratch;
    const struct rfx_conv_attr *a = job->a;
    struct rfx_depthwise_args run = {
        .rows = rows,
        .weights = job->weights,
        .bias = job->epilogue.bias,
        .c = a->oc,
        .in_c = job->args->in[0].c,
        .out_c = job->args->out.c,
        .row_step = a->sh,
        .kh = a->kh,
        .kw = a->kw,
        .sw = a->sw,
        .dw = a->dw,
        .lo = job->lo,
        .hi = job->hi,
        .far = is_far(job),
    };
    for (int64_t y = unit.y0; y < unit.y1;) { /* two rows can share their input rows */
        int64_t n = a->dh == 1 ? rfx_min_i64(2, unit.y1 - y) : 1;
        depthwise_rows(job, &run, rows, y, n, unit.x0, unit.x1);
        for (int64_t end = y + n; y < end; y++) depthwise_finish(job, y, unit.x0, unit.x1);
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

/* Packs the channels as the filters of one group with one input channel: [tap][channel]. */
static enum rfx_status depthwise_pack(const struct rfx_conv_pack_job *job, struct rfx_error *err) {
    return rfx_conv_taps_pack(job, 1, err);
}

/* Returns the bytes of the pointers to the input rows of two output rows. */
static size_t depthwise_scratch(const struct rfx_graph *graph, const struct rfx_node *node) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    (void)graph;
    return rfx_align_up((size_t)(a->kh + a->sh) * sizeof(const float *));
}

static void depthwise_run(const struct rfx_conv_job *job) {
    struct rfx_conv_job own = *job;
    if (job->args->node->residual) { /* the residual must be added before the clamp */
        own.clamps = false;
        own.lo = -INFINITY;
        own.hi = INFINITY;
    }
    rfx_units_share(job->args, rfx_units_of_rows(job->args), job->scratch_bytes, make_unit, &own);
}

const struct rfx_conv_backend rfx_conv_depthwise = {
    .name = "depthwise",
    .accepts = depthwise_accepts,
    .packed_bytes = rfx_conv_taps_packed_bytes,
    .pack = depthwise_pack,
    .scratch_bytes = depthwise_scratch,
    .run = depthwise_run,
};
