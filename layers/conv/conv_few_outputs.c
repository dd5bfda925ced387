/* Dense convolutions with few output channels, as in the last layers of networks. The lanes of a
 * vector are pixels; vectors of channels would be mostly padding. Each input row is transposed once
 * into planes (conv_planes.h), which serve all taps. The sum of every element has the order of the
 * `direct` backend; long sums are split into parts (struct rfx_conv_parts) of whole taps. Packed
 * weights: [part of RFX_PIXELS_PART outputs][ky][kx][ic][output of the part]. */
#include "layers/conv/conv_backend.h"
#include "layers/conv/conv_planes.h"
#include "layers/core/checked.h"
#include "layers/core/floats.h"

#define MOST_OUTPUTS 8              /* with more, vectors of channels are full enough */
#define PLANES_BYTES (192 << 10)    /* input planes of a unit: fit a core's second-level cache */
#define MOST_PLANES_BYTES (1 << 20) /* most for any layer: a large dilation needs many rows */

struct few {
    const struct rfx_conv_job *job;
    struct rfx_conv_planes_shape shape;
};

static struct rfx_conv_planes_shape shape_of(const struct rfx_conv_attr *a, int64_t out_w) {
    return rfx_conv_planes_shape(a->ic, a->dh * (a->kh - 1) + 1, a->sw, a->dw * (a->kw - 1) + 1,
                                 out_w, PLANES_BYTES);
}

/* Prepares the tables of taps for outputs [x0, x1) and the planes of the columns that they read. */
static void begin_unit(const struct few *f, struct rfx_conv_planes *planes, int64_t x0, int64_t x1,
                       void *scratch) {
    const struct rfx_conv_attr *a = f->job->a;
    int64_t base = x0 * a->sw - a->pads.left, iw = f->job->cols.in;
    rfx_conv_planes_begin(planes, f->job, &f->shape, base, x1 - x0, scratch);
    for (int64_t kx = 0; kx < a->kw; kx++) {
        int64_t column = base + kx * a->dw; /* the column that output x0 reads */
        planes->shift[kx] = rfx_conv_planes_at(&f->shape, kx * a->dw);
        planes->inside[kx] = (struct rfx_range){rfx_ceil_div(-column, a->sw),
                                                rfx_floor_div(iw - 1 - column, a->sw) + 1};
    }
}

static void make_row(const struct few *f, struct rfx_conv_planes *planes, int64_t y, int64_t x0,
                     int64_t x1) {
    const struct rfx_conv_job *job = f->job;
    const struct rfx_conv_attr *a = job->a;
    const struct rfx_view *out = &job->args->out, *residual = &job->args->in[1];
    struct rfx_range ty = rfx_conv_taps(&job->rows, y);
    int64_t iy = y * a->sh - a->pads.top;
    for (int64_t ky = 0; ky < a->kh; ky++)
        planes->rows[ky] =
            ky >= ty.lo && ky < ty.hi ? rfx_conv_planes_row(planes, iy + ky * a->dh) : NULL;
    struct rfx_pixels_args run = {
        .rows = planes->rows,
        .shift = planes->shift,
        .inside = planes->inside,
        .weights = job->weights,
        .bias = job->epilogue.bias,
        .out = rfx_view_f32_at(out, y, x0),
        .pixels = x1 - x0,
        .m = a->oc,
        .ic = a->ic,
        .kh = a->kh,
        .kw = a->kw,
        .plane = f->shape.plane_elems,
        .out_stride = out->c,
        .lo = job->lo,
        .hi = job->hi,
    };
    if (job->args->node->residual) {
        run.residual = rfx_view_f32_at(residual, y, x0);
        run.residual_stride = residual->c;
    }
    job->kernels->pixels(&run);
    rfx_conv_activate(job, rfx_rect_make(y, y + 1, x0, x1), 0, a->oc);
}

static void make_unit(const void *user, struct rfx_rect unit, void *scratch) {
    const struct few *f = user;
    struct rfx_conv_planes planes;
    begin_unit(f, &planes, unit.x0, unit.x1, scratch);
    for (int64_t y = unit.y0; y < unit.y1; y++) make_row(f, &planes, y, unit.x0, unit.x1);
}

static bool few_outputs_accepts(const struct rfx_graph *graph, const struct rfx_node *node,
                                char *why, size_t size) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    if (!rfx_conv_own_kernels(graph, why, size)) return false;
    if (a->groups != 1)
        return rfx_conv_refuse(why, size, "%lld groups, not 1", (long long)a->groups);
    if (a->oc > MOST_OUTPUTS)
        return rfx_conv_refuse(why, size, "%lld output channels, more than %d", (long long)a->oc,
                               MOST_OUTPUTS);
    struct rfx_conv_planes_shape shape = shape_of(a, node->out.w);
    if (rfx_conv_planes_bytes(&shape) > MOST_PLANES_BYTES)
        return rfx_conv_refuse(why, size,
                               "%lld rows of %lld channels at a time, more than %d bytes",
                               (long long)shape.rows, (long long)a->ic, MOST_PLANES_BYTES);
    return true;
}

static enum rfx_status few_outputs_pack(const struct rfx_conv_pack_job *job,
                                        struct rfx_error *err) {
    return rfx_conv_parts_pack(job, RFX_PIXELS_PART, err);
}

static size_t few_outputs_scratch(const struct rfx_graph *graph, const struct rfx_node *node) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    (void)graph;
    struct rfx_conv_planes_shape shape = shape_of(a, node->out.w);
    return rfx_conv_planes_scratch(&shape, a);
}

static void few_outputs_run(const struct rfx_conv_job *job) {
    const struct rfx_run_args *args = job->args;
    struct few f = {.job = job, .shape = shape_of(job->a, args->node->out.w)};
    int64_t across = rfx_ceil_div(rfx_rect_cols(args->rect), f.shape.cols);
    rfx_units_share(args, rfx_units_at_least(args, 1, across), job->scratch_bytes, make_unit, &f);
}

const struct rfx_conv_backend rfx_conv_few_outputs = {
    .name = "few-outputs",
    .accepts = few_outputs_accepts,
    .packed_bytes = rfx_conv_taps_packed_bytes,
    .pack = few_outputs_pack,
    .scratch_bytes = few_outputs_scratch,
    .in_place = true, /* a residual pixel is read just before its sum is written */
    .run = few_outputs_run,
};
