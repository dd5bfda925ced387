/* A thread's ring of input rows as planes (channels one after the other, pixels in runs), for the
 * `pixels` kernel, and its tables of taps: each row is transposed once and serves all the taps that
 * read it.
 *
 * Where outputs are `stride` columns apart in the input, a channel's plane has `stride` parts: part
 * f holds every stride-th column from column base + f on, so that the inputs of neighbouring
 * outputs are neighbours. Columns outside the map are never written, nor used. */
#ifndef RFX_LAYERS_CONV_CONV_PLANES_H
#define RFX_LAYERS_CONV_CONV_PLANES_H

#include "layers/conv/conv.h"

/* Sizes, of any unit of a layer. */
struct rfx_conv_planes_shape {
    int64_t channels, rows;    /* rows that are held at a time */
    int64_t cols;              /* outputs of a unit's row, at most */
    int64_t stride, reach;     /* input columns of `n` outputs: (n - 1) * stride + reach */
    int64_t parts, part_elems; /* of a plane */
    int64_t plane_elems, row_elems;
};

/* For units of about `bytes` bytes of planes, but not less than 64 columns, nor more than `most`.
 */
struct rfx_conv_planes_shape rfx_conv_planes_shape(int64_t channels, int64_t rows, int64_t stride,
                                                   int64_t reach, int64_t most, size_t bytes);

/* Bytes of the ring, with what it remembers of its rows. */
size_t rfx_conv_planes_bytes(const struct rfx_conv_planes_shape *shape);

/* Scratch of the ring and of a layer's tables. */
size_t rfx_conv_planes_scratch(const struct rfx_conv_planes_shape *shape,
                               const struct rfx_conv_attr *a);

struct rfx_conv_planes {
    const struct rfx_conv_planes_shape *shape;
    const struct rfx_kernels *kernels;
    const struct rfx_view *in;
    int64_t base, lo, hi; /* input columns: of part 0, element 0; that are held */
    float *data;
    int64_t *held; /* per row of the ring: the input row, or -1 */

    /* Of struct rfx_pixels_args, kh and kw of them: the caller's to fill. */
    const float **rows;
    int64_t *shift;
    struct rfx_range *inside;
};

/* Begins with columns [base, base + reach of n outputs) of the input, as far as its view has them;
 * `scratch`: rfx_conv_planes_scratch, aligned. */
void rfx_conv_planes_begin(struct rfx_conv_planes *planes, const struct rfx_conv_job *job,
                           const struct rfx_conv_planes_shape *shape, int64_t base, int64_t n,
                           void *scratch);

/* The planes of input row iy, from column `base` on. At most `rows` rows that follow each other can
 * be in use at a time. */
const float *rfx_conv_planes_row(struct rfx_conv_planes *planes, int64_t iy);

/* Where in a plane the input of output 0 lies for the tap `column` columns behind `base`. */
static inline int64_t rfx_conv_planes_at(const struct rfx_conv_planes_shape *s, int64_t column) {
    return column % s->stride * s->part_elems + column / s->stride;
}
#endif
