/* Ways to compute transposed convolutions, and the phases that they share.
 *
 * Output position o of an axis takes input i through tap k where o + pad = i * s + k * d. All
 * outputs with the same (o + pad) mod s, their phase, have the same taps, first, first + every,
 * ..., and step + 1 outputs further the input moves by one: a phase is a convolution of stride 1
 * with those taps, read backwards (tap j from i - j * step). Every tap belongs to one phase. */
#ifndef RFX_LAYERS_CONV_CONV_TRANSPOSE_H
#define RFX_LAYERS_CONV_CONV_TRANSPOSE_H

#include "layers/conv/conv.h"

struct rfx_transpose_axis {
    int64_t k, s, d, pad, in; /* kernel, stride, dilation, what is cut before, input extent */
    int64_t every, step;      /* taps of a phase are `every` apart, their inputs `step` */
};

struct rfx_transpose_axis rfx_transpose_rows(const struct rfx_conv_attr *a, int64_t in_h);
struct rfx_transpose_axis rfx_transpose_cols(const struct rfx_conv_attr *a, int64_t in_w);

/* The taps of one phase. */
struct rfx_transpose_taps {
    int64_t first, count; /* count may be 0 */
    int64_t before;       /* taps of the phases before */
};
struct rfx_transpose_taps rfx_transpose_phase(const struct rfx_transpose_axis *x, int64_t phase);

/* Most taps of any phase. */
int64_t rfx_transpose_most_taps(const struct rfx_transpose_axis *x);

/* The outputs of one phase in a range of an axis: o, o + s, ...; the input of tap 0 of the first is
 * `input`, of output number q at tap j input + q - j * step. */
struct rfx_transpose_outputs {
    int64_t o, count, input;
    struct rfx_transpose_taps taps;
};
struct rfx_transpose_outputs rfx_transpose_outputs(const struct rfx_transpose_axis *x, int64_t lo,
                                                   int64_t hi, int64_t phase);

/* Which taps of output number q lie inside the map. */
struct rfx_range rfx_transpose_inside(const struct rfx_transpose_axis *x,
                                      const struct rfx_transpose_outputs *outputs, int64_t q);

/* How weights are packed: [group][part][phase][tap of the phase][ic of the group][output of the
 * part], phases and taps row by row; a part's last outputs may be filled up with zeros. Depthwise
 * filters count as one group of one input channel. */
struct rfx_transpose_layout {
    int64_t groups, icg, ocg, part, fill; /* parts are filled up to a multiple of `fill` */
};

int64_t rfx_transpose_packed_elems(const struct rfx_conv_attr *a,
                                   const struct rfx_transpose_layout *layout);

/* The floats before those of the part that begins with output o of group g; *width: outputs of
 * that part, with filling. */
int64_t rfx_transpose_part_at(const struct rfx_conv_attr *a,
                              const struct rfx_transpose_layout *layout, int64_t g, int64_t o,
                              int64_t *width);

/* The taps before those of a phase. */
int64_t rfx_transpose_taps_before(const struct rfx_conv_attr *a,
                                  const struct rfx_transpose_taps *rows,
                                  const struct rfx_transpose_taps *cols);

/* The floats before those of a phase of such a part. */
int64_t rfx_transpose_weights_at(const struct rfx_conv_attr *a,
                                 const struct rfx_transpose_layout *layout, int64_t g, int64_t o,
                                 const struct rfx_transpose_taps *rows,
                                 const struct rfx_transpose_taps *cols, int64_t *width);

/* A way to compute a layer. */
struct rfx_transpose_way {
    struct rfx_transpose_layout (*layout)(const struct rfx_conv_attr *a);
    size_t (*scratch_bytes)(const struct rfx_graph *graph, const struct rfx_node *node);
    void (*run)(const struct rfx_conv_job *job);
};

/* One dense kernel call per tap, which adds: for processors without fused multiply-add. */
extern const struct rfx_transpose_way rfx_transpose_dense;

/* The promised sums by phases, parts counted within a phase: output channels in vectors (kernels.h,
 * struct rfx_conv_args); one filter per channel, one chain; few output channels, pixels in vectors
 * (struct rfx_pixels_args). */
extern const struct rfx_transpose_way rfx_transpose_panels, rfx_transpose_depthwise,
    rfx_transpose_few;
#endif
