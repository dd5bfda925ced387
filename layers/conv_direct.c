/* Convolutions that are computed pixel by pixel with own kernels: depthwise ones, and first layers
 * of few channels. Every element is a chain of multiply-adds over the taps inside the map, in
 * (ky, kx, ic) order (of first layers: one chain per kernel row); nothing depends on the rectangle,
 * the cut, or the place in a row. */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "layers/checked.h"
#include "layers/conv.h"

struct rfx_range rfx_conv_interior(const struct rfx_conv_axis *x, int64_t lo, int64_t hi) {
    struct rfx_range r = {rfx_max_i64(lo, rfx_ceil_div(x->pad, x->s)),
                          rfx_floor_div(x->in - 1 - x->d * (x->k - 1) + x->pad, x->s) + 1};
    r.lo = rfx_min_i64(r.lo, hi);
    r.hi = rfx_max_i64(rfx_min_i64(r.hi, hi), r.lo);
    return r;
}

struct rfx_conv_units rfx_conv_cut(struct rfx_rect rect, int threads) {
    int64_t h = rfx_rect_rows(rect), w = rfx_rect_cols(rect);
    struct rfx_conv_units u = {.rows = rfx_max_i64(1, rfx_min_i64(8, h / (4 * threads)))};
    u.down = rfx_ceil_div(h, u.rows);
    int64_t want = rfx_ceil_div((int64_t)4 * threads, u.down); /* pieces of a row */
    u.cols = threads == 1 ? w : rfx_max_i64(rfx_min_i64(32, w), rfx_ceil_div(w, want));
    u.across = rfx_ceil_div(w, u.cols);
    return u;
}

struct rfx_rect rfx_conv_unit(const struct rfx_conv_units *u, struct rfx_rect rect, int64_t index) {
    int64_t y = rect.y0 + index / u->across * u->rows, x = rect.x0 + index % u->across * u->cols;
    return rfx_rect_intersect(rect, rfx_rect_make(y, y + u->rows, x, x + u->cols));
}

void rfx_conv_finish(const struct rfx_conv_job *job, int64_t y, int64_t x0, int64_t x1, float *data,
                     int64_t stride) {
    const struct rfx_view *residual = job->args->node->residual ? &job->args->in[1] : NULL;
    job->kernels->epilogue(&job->epilogue, data, stride,
                           residual == NULL ? NULL : rfx_view_at(residual, y, x0),
                           residual == NULL ? 0 : residual->c, x1 - x0);
}

size_t rfx_conv_depthwise_scratch(const struct rfx_node *node, int threads) {
    return (size_t)threads * rfx_align_up((size_t)node->attr.conv.kh * sizeof(float *));
}

/* Activations that are a clamp happen in registers; the rest, and residuals, afterwards. */
static bool clamp_of(const struct rfx_node *node, float *lo, float *hi) {
    *lo = -INFINITY;
    *hi = INFINITY;
    if (node->residual) return false;
    if (node->act.kind == RFX_ACT_RELU) *lo = 0.0f;
    if (node->act.kind == RFX_ACT_CLIP) {
        *lo = node->act.alpha;
        *hi = node->act.beta;
    }
    return node->act.kind == RFX_ACT_NONE || node->act.kind == RFX_ACT_RELU ||
           node->act.kind == RFX_ACT_CLIP;
}

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

static void depthwise_unit(const struct rfx_conv_job *job, struct rfx_rect unit,
                           const float **rows) {
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
    bool finished = clamp_of(job->args->node, &run.lo, &run.hi);
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

void rfx_conv_depthwise_run(const struct rfx_conv_job *job) {
    const struct rfx_run_args *args = job->args;
    struct rfx_conv_units units = rfx_conv_cut(args->rect, args->threads);
    int64_t count = units.down * units.across;
    size_t bytes = rfx_conv_depthwise_scratch(args->node, 1);
#pragma omp parallel for schedule(dynamic) num_threads(args->threads) if (args->threads > 1)
    for (int64_t i = 0; i < count; i++) {
        char *mine = (char *)args->scratch + (size_t)omp_get_thread_num() * bytes;
        depthwise_unit(job, rfx_conv_unit(&units, args->rect, i), (const float **)(void *)mine);
    }
}

/* Adds taps [t.lo, t.hi) of kernel row ky to pixels [x0, x1) of output row y. */
static void direct_taps(const struct rfx_conv_job *job, int64_t y, int64_t ky, int64_t x0,
                        int64_t x1, struct rfx_range t) {
    const struct rfx_conv_attr *a = job->a;
    const struct rfx_view *in = &job->args->in[0];
    if (x0 >= x1 || t.lo >= t.hi) return;
    int64_t iy = y * a->sh - a->pads.top + ky * a->dh;
    int64_t ix = x0 * a->sw - a->pads.left + t.lo;
    struct rfx_dense_run run = {
        .x = rfx_view_at(in, iy, ix),
        .w = job->weights + (ky * a->kw + t.lo) * a->ic * a->oc,
        .y = rfx_view_at(&job->args->out, y, x0),
        .x_stride = a->sw * in->c,
        .w_stride = a->oc,
        .y_stride = job->args->out.c,
        .rows = x1 - x0,
        .k = (t.hi - t.lo) * a->ic,
        .m = a->oc,
    };
    if (in->c == a->ic) { /* the taps of a kernel row are one run of floats */
        job->kernels->dense(&run);
        return;
    }
    float window[RFX_CONV_DIRECT_KW * RFX_CONV_DIRECT_IC];
    run.rows = 1;
    for (int64_t x = x0; x < x1; x++, run.y += run.y_stride, ix += a->sw) {
        for (int64_t kx = 0; kx < t.hi - t.lo; kx++)
            memcpy(window + kx * a->ic, rfx_view_at(in, iy, ix + kx),
                   (size_t)a->ic * sizeof(float));
        run.x = window;
        job->kernels->dense(&run);
    }
}

static void direct_piece(const struct rfx_conv_job *job, int64_t y, int64_t x0, int64_t x1) {
    const struct rfx_conv_attr *a = job->a;
    const struct rfx_view *out = &job->args->out;
    for (int64_t x = x0; x < x1; x++)
        memset(rfx_view_at(out, y, x), 0, (size_t)a->oc * sizeof(float));
    struct rfx_range ty = rfx_conv_taps(&job->rows, y);
    struct rfx_range inner = rfx_conv_interior(&job->cols, x0, x1);
    const struct rfx_range all = {0, a->kw};
    for (int64_t ky = ty.lo; ky < ty.hi; ky++) {
        for (int64_t x = x0; x < inner.lo; x++)
            direct_taps(job, y, ky, x, x + 1, rfx_conv_taps(&job->cols, x));
        direct_taps(job, y, ky, inner.lo, inner.hi, all);
        for (int64_t x = inner.hi; x < x1; x++)
            direct_taps(job, y, ky, x, x + 1, rfx_conv_taps(&job->cols, x));
    }
    rfx_conv_finish(job, y, x0, x1, rfx_view_at(out, y, x0), out->c);
}

void rfx_conv_direct_run(const struct rfx_conv_job *job) {
    const struct rfx_run_args *args = job->args;
    struct rfx_conv_units units = rfx_conv_cut(args->rect, args->threads);
    int64_t count = units.down * units.across;
    int64_t step = rfx_max_i64(6, 4096 / job->a->oc / 6 * 6); /* 16 KiB of output stay in L1 */
#pragma omp parallel for schedule(dynamic) num_threads(args->threads) if (args->threads > 1)
    for (int64_t i = 0; i < count; i++) {
        struct rfx_rect unit = rfx_conv_unit(&units, args->rect, i);
        for (int64_t y = unit.y0; y < unit.y1; y++)
            for (int64_t x = unit.x0; x < unit.x1; x += step)
                direct_piece(job, y, x, rfx_min_i64(x + step, unit.x1));
    }
}
