/* Convolutions with few input channels (first layers), with this library's own kernels. The lanes
 * of a vector are output channels. Every element is a sum over the kernel rows; each kernel row is
 * one chain of multiply-adds over the taps inside the map, in (kx, ic) order. It does not depend on
 * the rectangle, the division into units, or the position in a row. Packed weights:
 * [ky][kx][ic][oc]. */
#include <string.h>

#include "layers/conv/conv_backend.h"
#include "layers/core/checked.h"
#include "layers/core/floats.h"

#define MAX_CHANNELS 4     /* with more, matrix products are faster */
#define MAX_KERNEL_COLS 32 /* taps that fit the window on the stack */
#define PIECE_ELEMS 4096   /* outputs computed together: 16 KiB fit the first-level cache */
#define KERNEL_ROWS 6      /* pixels that the dense kernel computes at a time */

/* Adds taps [t.lo, t.hi) of kernel row ky to pixels [x0, x1) of output row y. */
static void add_taps(const struct rfx_conv_job *job, int64_t y, int64_t ky, int64_t x0, int64_t x1,
                     struct rfx_range t) {
    const struct rfx_conv_attr *a = job->a;
    const struct rfx_view *in = &job->args->in[0];
    if (x0 >= x1 || t.lo >= t.hi) return;
    int64_t iy = y * a->sh - a->pads.top + ky * a->dh;
    int64_t ix = x0 * a->sw - a->pads.left + t.lo;
    struct rfx_dense_args run = {
        .x = rfx_view_f32_at(in, iy, ix),
        .w = job->weights + (ky * a->kw + t.lo) * a->ic * a->oc,
        .y = rfx_view_f32_at(&job->args->out, y, x0),
        .x_stride = a->sw * in->c,
        .w_stride = a->oc,
        .y_stride = job->args->out.c,
        .rows = x1 - x0,
        .k = (t.hi - t.lo) * a->ic,
        .m = a->oc,
    };
    if (in->c == a->ic) { /* the taps of a kernel row are contiguous */
        job->kernels->dense(&run);
        return;
    }
    float window[MAX_KERNEL_COLS * MAX_CHANNELS];
    run.rows = 1;
    for (int64_t x = x0; x < x1; x++, run.y += run.y_stride, ix += a->sw) {
        for (int64_t kx = 0; kx < t.hi - t.lo; kx++)
            memcpy(window + kx * a->ic, rfx_view_f32_at(in, iy, ix + kx), rfx_floats_bytes(a->ic));
        run.x = window;
        job->kernels->dense(&run);
    }
}

static void make_piece(const struct rfx_conv_job *job, int64_t y, int64_t x0, int64_t x1) {
    const struct rfx_conv_attr *a = job->a;
    const struct rfx_view *out = &job->args->out;
    for (int64_t x = x0; x < x1; x++)
        memset(rfx_view_f32_at(out, y, x), 0, rfx_floats_bytes(a->oc));
    struct rfx_range ty = rfx_conv_taps(&job->rows, y);
    struct rfx_range inner = rfx_conv_interior(&job->cols, x0, x1);
    const struct rfx_range all = {0, a->kw};
    for (int64_t ky = ty.lo; ky < ty.hi; ky++) {
        for (int64_t x = x0; x < inner.lo; x++)
            add_taps(job, y, ky, x, x + 1, rfx_conv_taps(&job->cols, x));
        add_taps(job, y, ky, inner.lo, inner.hi, all);
        for (int64_t x = inner.hi; x < x1; x++)
            add_taps(job, y, ky, x, x + 1, rfx_conv_taps(&job->cols, x));
    }
    rfx_conv_finish(job, y, x0, x1, rfx_view_f32_at(out, y, x0), out->c);
}

static bool few_channels_accepts(const struct rfx_graph *graph, const struct rfx_node *node,
                                 char *why, size_t size) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    (void)graph;
    if (a->groups != 1)
        return rfx_conv_refuse(why, size, "%lld groups, not 1", (long long)a->groups);
    if (a->ic > MAX_CHANNELS)
        return rfx_conv_refuse(why, size, "%lld input channels, more than %d", (long long)a->ic,
                               MAX_CHANNELS);
    if (a->kw > MAX_KERNEL_COLS)
        return rfx_conv_refuse(why, size, "%lld taps in a kernel row, more than %d",
                               (long long)a->kw, MAX_KERNEL_COLS);
    if (a->dw != 1)
        return rfx_conv_refuse(why, size, "dilation %lld between columns, not 1", (long long)a->dw);
    return true;
}

static enum rfx_status few_channels_pack(const struct rfx_conv_pack_job *job,
                                         struct rfx_error *err) {
    return rfx_conv_taps_pack(job, 1, err);
}

static void few_channels_unit(const void *user, struct rfx_rect unit, void *scratch) {
    const struct rfx_conv_job *job = user;
    int64_t fit = PIECE_ELEMS / job->a->oc / KERNEL_ROWS * KERNEL_ROWS;
    int64_t step = rfx_max_i64(KERNEL_ROWS, fit);
    (void)scratch;
    for (int64_t y = unit.y0; y < unit.y1; y++)
        for (int64_t x = unit.x0; x < unit.x1; x += step)
            make_piece(job, y, x, rfx_min_i64(x + step, unit.x1));
}

static void few_channels_run(const struct rfx_conv_job *job) {
    rfx_units_share(job->args, rfx_units_of_rows(job->args), 0, few_channels_unit, job);
}

const struct rfx_conv_backend rfx_conv_few_channels = {
    .name = "few-channels",
    .accepts = few_channels_accepts,
    .packed_bytes = rfx_conv_taps_packed_bytes,
    .pack = few_channels_pack,
    .run = few_channels_run,
};
