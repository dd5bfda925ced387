/* A thread's ring buffer of input rows as planes: the channels lie one after the other, and the
 * pixels of one channel are contiguous. The `pixels` kernel reads them. Each input row is
 * transposed once, and the result serves all the taps that read the row. The same memory holds the
 * kernel's tables of taps.
 *
 * If neighbouring outputs read inputs `stride` columns apart, a channel's plane has up to `stride`
 * parts. Part f holds every stride-th column, beginning with column base + f, so that the inputs of
 * neighbouring outputs are contiguous. Columns outside the map are never written and never read. */
#ifndef RFX_LAYERS_CONV_CONV_PLANES_H
#define RFX_LAYERS_CONV_CONV_PLANES_H

#include "layers/conv/conv.h"

/* The sizes of the ring buffer of one layer; they fit every unit of work of that layer. */
struct rfx_conv_planes_shape {
    int64_t channels, rows;    /* rows that the ring holds at a time */
    int64_t cols;              /* most outputs of one row of a unit */
    int64_t stride, reach;     /* input columns of `n` outputs: (n - 1) * stride + reach */
    int64_t parts, part_elems; /* number of parts of a plane; floats of one part */
    int64_t plane_elems, row_elems;
};

/* Returns the sizes for units of work whose planes take about `bytes` bytes. A unit is at least 64
 * output columns wide, unless `most` is less, and at most `most` columns. */
struct rfx_conv_planes_shape rfx_conv_planes_shape(int64_t channels, int64_t rows, int64_t stride,
                                                   int64_t reach, int64_t most, size_t bytes);

/* Returns the bytes of the ring buffer and of its list of the rows that it holds. */
size_t rfx_conv_planes_bytes(const struct rfx_conv_planes_shape *shape);

/* Returns the scratch bytes of one thread: the ring buffer and the tables of taps of a layer. */
size_t rfx_conv_planes_scratch(const struct rfx_conv_planes_shape *shape,
                               const struct rfx_conv_attr *a);

struct rfx_conv_planes {
    const struct rfx_conv_planes_shape *shape;
    const struct rfx_kernels *kernels;
    const struct rfx_view *in;
    int64_t base, lo, hi; /* input columns: `base` lies at part 0, element 0; [lo, hi) are held */
    float *data;
    int64_t *held; /* per row of the ring: the input row that it holds, or -1 */

    /* Tables of struct rfx_pixels_args: kh rows, kw shifts, kw ranges. The caller fills them. */
    const float **rows;
    int64_t *shift;
    struct rfx_range *inside;
};

/* Begins a unit of n outputs that reads the input columns from `base` on; columns outside the
 * input's view are left out. `scratch` has rfx_conv_planes_scratch bytes and is aligned. */
void rfx_conv_planes_begin(struct rfx_conv_planes *planes, const struct rfx_conv_job *job,
                           const struct rfx_conv_planes_shape *shape, int64_t base, int64_t n,
                           void *scratch);

/* Returns the planes of input row iy, from column `base` on. Transposes the row if the ring does
 * not hold it yet. At most `rows` consecutive rows can be in use at a time. */
const float *rfx_conv_planes_row(struct rfx_conv_planes *planes, int64_t iy);

/* Returns the offset within a plane, in floats, of the input that output 0 reads through the tap
 * that lies `column` columns after `base`. */
static inline int64_t rfx_conv_planes_at(const struct rfx_conv_planes_shape *s, int64_t column) {
    return column % s->stride * s->part_elems + column / s->stride;
}
#endif
