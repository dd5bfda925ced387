/* Transposed convolution with the dense kernel, tap by tap, for processors without fused
 * multiply-add. In a row, the output pixels that one tap reaches lie sw apart, and their input
 * pixels are neighbours. So one call of the dense kernel, which adds, computes them. An element is
 * the sum, in (ky, kx) order, of one chain per tap inside the map, then the bias. It does not
 * depend on the rectangle. */
#include <string.h>

#include "layers/conv/conv_transpose.h"
#include "layers/core/checked.h"
#include "layers/core/floats.h"

struct dense {
    const struct rfx_conv_job *job;
    struct rfx_transpose_layout layout;
    struct rfx_transpose_axis rows, cols;
};

/* Adds the products of tap number jy of the row's phase and tap number jx of the columns' phase,
 * with input row iy, to the pixels of output row y. */
static void add_tap(const struct dense *d, int64_t y, int64_t iy,
                    const struct rfx_transpose_outputs *x, int64_t jx,
                    const struct rfx_transpose_taps *taps, int64_t jy) {
    const struct rfx_conv_job *job = d->job;
    const struct rfx_view *in = &job->args->in[0], *out = &job->args->out;
    int64_t shift = x->input - jx * d->cols.step; /* the input of output 0 */
    int64_t first = rfx_max_i64(0, -shift), last = rfx_min_i64(x->count, d->cols.in - shift);
    if (first >= last) return;
    int64_t ocg = d->layout.ocg, icg = d->layout.icg, width;
    struct rfx_dense_args run = {
        .x_stride = in->c,
        .w_stride = ocg,
        .y_stride = job->a->sw * out->c,
        .rows = last - first,
        .k = icg,
        .m = ocg,
    };
    for (int64_t g = 0; g < d->layout.groups; g++) {
        run.x = rfx_view_f32_at(in, iy, shift + first) + g * icg;
        run.y = rfx_view_f32_at(out, y, x->o + first * job->a->sw) + g * ocg;
        run.w = job->weights +
                rfx_transpose_weights_at(job->a, &d->layout, g, 0, taps, &x->taps, &width) +
                (jy * x->taps.count + jx) * icg * ocg;
        job->kernels->dense(&run);
    }
}

static void make_row(const struct dense *d, int64_t y, int64_t x0, int64_t x1) {
    const struct rfx_conv_job *job = d->job;
    const struct rfx_conv_attr *a = job->a;
    const struct rfx_view *out = &job->args->out;
    for (int64_t x = x0; x < x1; x++)
        memset(rfx_view_f32_at(out, y, x), 0, rfx_floats_bytes(a->oc));
    struct rfx_transpose_outputs row =
        rfx_transpose_outputs(&d->rows, y, y + 1, (y + a->pads.top) % a->sh);
    struct rfx_range ty = rfx_transpose_inside(&d->rows, &row, 0);
    for (int64_t phase = 0; phase < a->sw; phase++) {
        struct rfx_transpose_outputs x = rfx_transpose_outputs(&d->cols, x0, x1, phase);
        for (int64_t jy = ty.lo; jy < ty.hi; jy++)
            for (int64_t jx = 0; jx < x.taps.count; jx++)
                add_tap(d, y, row.input - jy * d->rows.step, &x, jx, &row.taps, jy);
    }
    job->kernels->epilogue(&job->epilogue, rfx_view_f32_at(out, y, x0), out->c, NULL, 0, x1 - x0);
}

static struct rfx_transpose_layout dense_layout(const struct rfx_conv_attr *a) {
    int64_t ocg = a->oc / a->groups;
    return (struct rfx_transpose_layout){a->groups, a->ic / a->groups, ocg, ocg, 1};
}

static void make_unit(const void *user, struct rfx_rect unit, void *scratch) {
    (void)scratch;
    for (int64_t y = unit.y0; y < unit.y1; y++) make_row(user, y, unit.x0, unit.x1);
}

static void dense_run(const struct rfx_conv_job *job) {
    const struct rfx_run_args *args = job->args;
    const struct dense d = {job, dense_layout(job->a), rfx_transpose_rows(job->a, job->rows.in),
                            rfx_transpose_cols(job->a, job->cols.in)};
    rfx_units_share(args, rfx_units_of_rows(args), 0, make_unit, &d);
}

const struct rfx_transpose_way rfx_transpose_dense = {
    .layout = dense_layout,
    .run = dense_run,
};
