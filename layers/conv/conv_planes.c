/* Transposes input rows into planes: see conv_planes.h. */
#include "layers/conv/conv_planes.h"

#include "layers/core/checked.h"
#include "layers/core/floats.h"

#define LEAST_COLS 64

/* Returns the floats of a plane for rows of n outputs; *part receives the floats of one part. */
static int64_t plane_elems(const struct rfx_conv_planes_shape *s, int64_t n, int64_t *part) {
    int64_t len = n + (s->reach - 1) / s->stride + RFX_PIXELS_AHEAD;
    *part = rfx_ceil_div(len, RFX_CONV_LANES) * RFX_CONV_LANES;
    int64_t plane = *part * s->parts;
    /* planes a multiple of 256 bytes apart would compete for few cache sets */
    return plane % 64 == 0 ? plane + RFX_CONV_LANES : plane;
}

struct rfx_conv_planes_shape rfx_conv_planes_shape(int64_t channels, int64_t rows, int64_t stride,
                                                   int64_t reach, int64_t most, size_t bytes) {
    struct rfx_conv_planes_shape s = {
        .channels = channels, .rows = rows, .stride = stride, .reach = reach};
    s.parts = rfx_min_i64(stride, reach);
    int64_t fit = (int64_t)(bytes / rfx_floats_bytes(channels * rows * s.parts));
    s.cols = rfx_min_i64(rfx_max_i64(fit - reach / stride, LEAST_COLS), most);
    if (s.cols < most) /* pieces of equal size, in whole vectors */
        s.cols = rfx_ceil_div(rfx_ceil_div(most, rfx_ceil_div(most, s.cols)), RFX_CONV_LANES) *
                 RFX_CONV_LANES;
    s.plane_elems = plane_elems(&s, s.cols, &s.part_elems);
    s.row_elems = s.plane_elems * channels;
    return s;
}

static size_t data_bytes(const struct rfx_conv_planes_shape *s) {
    return rfx_align_up(rfx_floats_bytes(s->rows * s->row_elems));
}

size_t rfx_conv_planes_bytes(const struct rfx_conv_planes_shape *s) {
    return data_bytes(s) + rfx_align_up((size_t)s->rows * sizeof(int64_t));
}

static size_t rows_bytes(const struct rfx_conv_attr *a) {
    return rfx_align_up((size_t)a->kh * sizeof(const float *));
}
static size_t shift_bytes(const struct rfx_conv_attr *a) {
    return rfx_align_up((size_t)a->kw * sizeof(int64_t));
}
static size_t inside_bytes(const struct rfx_conv_attr *a) {
    return rfx_align_up((size_t)a->kw * sizeof(struct rfx_range));
}

size_t rfx_conv_planes_scratch(const struct rfx_conv_planes_shape *s,
                               const struct rfx_conv_attr *a) {
    return rows_bytes(a) + shift_bytes(a) + inside_bytes(a) + rfx_conv_planes_bytes(s);
}

void rfx_conv_planes_begin(struct rfx_conv_planes *planes, const struct rfx_conv_job *job,
                           const struct rfx_conv_planes_shape *shape, int64_t base, int64_t n,
                           void *scratch) {
    int64_t end = base + (n - 1) * shape->stride + shape->reach;
    const struct rfx_view *in = &job->args->in[0];
    char *shift = (char *)scratch + rows_bytes(job->a), *inside = shift + shift_bytes(job->a);
    char *data = inside + inside_bytes(job->a);
    *planes = (struct rfx_conv_planes){
        .shape = shape,
        .kernels = job->kernels,
        .in = in,
        .base = base,
        .lo = rfx_max_i64(base, in->rect.x0),
        .hi = rfx_min_i64(end, in->rect.x1),
        .data = (float *)(void *)data,
        .held = (int64_t *)(void *)(data + data_bytes(shape)),
        .rows = scratch,
        .shift = (int64_t *)(void *)shift,
        .inside = (struct rfx_range *)(void *)inside,
    };
    for (int64_t i = 0; i < shape->rows; i++) planes->held[i] = -1;
}

const float *rfx_conv_planes_row(struct rfx_conv_planes *planes, int64_t iy) {
    const struct rfx_conv_planes_shape *s = planes->shape;
    const struct rfx_view *in = planes->in;
    int64_t slot = iy % s->rows;
    float *data = planes->data + slot * s->row_elems;
    if (planes->held[slot] == iy) return data;
    planes->held[slot] = iy;
    for (int64_t part = 0; part < s->parts; part++) {
        int64_t first = planes->base + part; /* input column of element 0 of the part */
        int64_t lo = first >= planes->lo ? 0 : rfx_ceil_div(planes->lo - first, s->stride);
        int64_t hi = rfx_ceil_div(planes->hi - first, s->stride);
        if (lo >= hi) continue;
        planes->kernels->planes(rfx_view_f32_at(in, iy, first + lo * s->stride), s->stride * in->c,
                                hi - lo, s->channels, data + part * s->part_elems + lo,
                                s->plane_elems);
    }
    return data;
}
