/* Transposed convolutions with few output channels, phase by phase. The lanes of a vector are
 * pixels. The kernel reads planes of the input (conv_planes.h), which serve all phases. */
#include "layers/conv/conv_planes.h"
#include "layers/conv/conv_transpose.h"
#include "layers/core/checked.h"

#define PLANES_BYTES (192 << 10) /* input planes of a unit: fit a core's second-level cache */

struct few {
    const struct rfx_conv_job *job;
    struct rfx_transpose_layout layout;
    struct rfx_transpose_axis rows, cols;
    struct rfx_conv_planes_shape shape;
};

static struct rfx_conv_planes_shape shape_of(const struct rfx_conv_attr *a, int64_t out_w) {
    struct rfx_transpose_axis rows = rfx_transpose_rows(a, 1);
    return rfx_conv_planes_shape(a->ic, (rfx_transpose_most_taps(&rows) - 1) * rows.step + 1, 1,
                                 a->dw * (a->kw - 1) / a->sw + 4, rfx_ceil_div(out_w, a->sw),
                                 PLANES_BYTES);
}

/* Computes the outputs of one phase of the columns in row y. */
static void make_phase(const struct few *f, const struct rfx_conv_planes *planes, int64_t y,
                       const struct rfx_transpose_outputs *row,
                       const struct rfx_transpose_outputs *x) {
    const struct rfx_conv_job *job = f->job;
    const struct rfx_conv_attr *a = job->a;
    const struct rfx_view *out = &job->args->out;
    if (x->count == 0) return;
    for (int64_t j = 0; j < x->taps.count; j++) {
        int64_t input = x->input - j * f->cols.step; /* the input of output 0 */
        planes->shift[j] = input - planes->base;
        planes->inside[j] = (struct rfx_range){-input, f->cols.in - input};
    }
    struct rfx_pixels_args run = {
        .rows = planes->rows,
        .shift = planes->shift,
        .inside = planes->inside,
        .pixels = x->count,
        .ic = a->ic,
        .kh = row->taps.count,
        .kw = x->taps.count,
        .plane = f->shape.plane_elems,
        .out_stride = a->sw * out->c,
        .lo = job->lo,
        .hi = job->hi,
    };
    for (int64_t o = 0; o < a->oc; o += RFX_PIXELS_PART) {
        run.weights = job->weights +
                      rfx_transpose_weights_at(a, &f->layout, 0, o, &row->taps, &x->taps, &run.m);
        run.bias = job->epilogue.bias + o;
        run.out = rfx_view_f32_at(out, y, x->o) + o;
        job->kernels->pixels(&run);
    }
}

static void make_row(const struct few *f, struct rfx_conv_planes *planes, int64_t y, int64_t x0,
                     int64_t x1) {
    const struct rfx_conv_attr *a = f->job->a;
    struct rfx_transpose_outputs row =
        rfx_transpose_outputs(&f->rows, y, y + 1, (y + a->pads.top) % a->sh);
    struct rfx_range taps = rfx_transpose_inside(&f->rows, &row, 0);
    for (int64_t j = 0; j < row.taps.count; j++)
        planes->rows[j] = j >= taps.lo && j < taps.hi
                              ? rfx_conv_planes_row(planes, row.input - j * f->rows.step)
                              : NULL;
    for (int64_t phase = 0; phase < a->sw; phase++) {
        struct rfx_transpose_outputs x = rfx_transpose_outputs(&f->cols, x0, x1, phase);
        make_phase(f, planes, y, &row, &x);
    }
    rfx_conv_activate(f->job, rfx_rect_make(y, y + 1, x0, x1), 0, a->oc);
}

static void make_unit(const void *user, struct rfx_rect unit, void *scratch) {
    const struct few *f = user;
    const struct rfx_conv_attr *a = f->job->a;
    struct rfx_conv_planes planes;
    int64_t base = rfx_floor_div(unit.x0 + a->pads.left - a->dw * (a->kw - 1), a->sw);
    rfx_conv_planes_begin(&planes, f->job, &f->shape, base,
                          rfx_ceil_div(rfx_rect_cols(unit), a->sw), scratch);
    for (int64_t y = unit.y0; y < unit.y1; y++) make_row(f, &planes, y, unit.x0, unit.x1);
}

static struct rfx_transpose_layout few_layout(const struct rfx_conv_attr *a) {
    return (struct rfx_transpose_layout){1, a->ic, a->oc, RFX_PIXELS_PART, 1};
}

static size_t few_scratch(const struct rfx_graph *graph, const struct rfx_node *node) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    (void)graph;
    struct rfx_conv_planes_shape shape = shape_of(a, node->out.w);
    return rfx_conv_planes_scratch(&shape, a);
}

static void few_run(const struct rfx_conv_job *job) {
    const struct rfx_run_args *args = job->args;
    const struct rfx_conv_attr *a = job->a;
    struct few f = {.job = job,
                    .layout = few_layout(a),
                    .rows = rfx_transpose_rows(a, job->rows.in),
                    .cols = rfx_transpose_cols(a, job->cols.in),
                    .shape = shape_of(a, args->node->out.w)};
    int64_t across = rfx_ceil_div(rfx_rect_cols(args->rect), f.shape.cols * a->sw);
    rfx_units_share(args, rfx_units_at_least(args, 1, across), job->scratch_bytes, make_unit, &f);
}

const struct rfx_transpose_way rfx_transpose_few = {
    .layout = few_layout, .scratch_bytes = few_scratch, .run = few_run};
