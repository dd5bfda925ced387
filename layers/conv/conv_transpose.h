/* The algorithms for transposed convolutions, and the decomposition into phases that they share.
 *
 * Output position o of an axis reads input i through tap k where o + pad = i * s + k * d. The phase
 * of an output is (o + pad) mod s. All outputs of one phase have the same taps: first, first +
 * every, first + 2 * every, ... From one output of a phase to the next, the input moves by one. So
 * a phase is a convolution of stride 1 with those taps, read backwards: tap number j reads input i
 * - j * step. Every tap belongs to exactly one phase. */
#ifndef RFX_LAYERS_CONV_CONV_TRANSPOSE_H
#define RFX_LAYERS_CONV_CONV_TRANSPOSE_H

#include "layers/conv/conv.h"

struct rfx_transpose_axis {
    int64_t k, s, d, pad, in; /* kernel, stride, dilation, pixels cut off before, input extent */
    int64_t every, step; /* neighbouring taps of a phase are `every` apart, their inputs `step` */
};

struct rfx_transpose_axis rfx_transpose_rows(const struct rfx_conv_attr *a, int64_t in_h);
struct rfx_transpose_axis rfx_transpose_cols(const struct rfx_conv_attr *a, int64_t in_w);

/* The taps of one phase. */
struct rfx_transpose_taps {
    int64_t first, count; /* count may be 0 */
    int64_t before;       /* number of taps of all the phases before this one */
};
struct rfx_transpose_taps rfx_transpose_phase(const struct rfx_transpose_axis *x, int64_t phase);

/* Returns the largest number of taps that any phase has. */
int64_t rfx_transpose_most_taps(const struct rfx_transpose_axis *x);

/* The outputs o, o + s, o + 2 * s, ... of one phase in a range of an axis. Tap 0 of the first
 * output reads `input`. Tap j of output number q reads input + q - j * step. */
struct rfx_transpose_outputs {
    int64_t o, count, input;
    struct rfx_transpose_taps taps;
};
struct rfx_transpose_outputs rfx_transpose_outputs(const struct rfx_transpose_axis *x, int64_t lo,
                                                   int64_t hi, int64_t phase);

/* Returns the taps of output number q whose inputs lie inside the map. */
struct rfx_range rfx_transpose_inside(const struct rfx_transpose_axis *x,
                                      const struct rfx_transpose_outputs *outputs, int64_t q);

/* The layout of packed weights: [group][part][phase][tap of the phase][input channel of the
 * group][output channel of the part]. Phases and taps are in row-major order. The output channels
 * of a group are divided into parts of `part` output channels. The last part may be padded with
 * zeros. Depthwise filters are packed as one group with one input channel. */
struct rfx_transpose_layout {
    int64_t groups, icg, ocg, part, fill; /* the last part is filled to a multiple of `fill` */
};

int64_t rfx_transpose_packed_elems(const struct rfx_conv_attr *a,
                                   const struct rfx_transpose_layout *layout);

/* Returns the offset, in floats, of the packed weights of one part: the part of group g whose first
 * output channel is o. *width receives the number of output channels of that part, zero padding
 * included. */
int64_t rfx_transpose_part_at(const struct rfx_conv_attr *a,
                              const struct rfx_transpose_layout *layout, int64_t g, int64_t o,
                              int64_t *width);

/* Returns the number of taps that are packed before the taps of a phase. */
int64_t rfx_transpose_taps_before(const struct rfx_conv_attr *a,
                                  const struct rfx_transpose_taps *rows,
                                  const struct rfx_transpose_taps *cols);

/* Returns the offset, in floats, of the weights of one phase of such a part. *width is set as by
 * rfx_transpose_part_at. */
int64_t rfx_transpose_weights_at(const struct rfx_conv_attr *a,
                                 const struct rfx_transpose_layout *layout, int64_t g, int64_t o,
                                 const struct rfx_transpose_taps *rows,
                                 const struct rfx_transpose_taps *cols, int64_t *width);

/* An algorithm that computes a layer: its weight layout, its scratch bytes per thread, its run. */
struct rfx_transpose_way {
    struct rfx_transpose_layout (*layout)(const struct rfx_conv_attr *a);
    size_t (*scratch_bytes)(const struct rfx_graph *graph, const struct rfx_node *node);
    void (*run)(const struct rfx_conv_job *job);
};

/* One call of the dense kernel per tap; the call adds to the output. For processors without fused
 * multiply-add. */
extern const struct rfx_transpose_way rfx_transpose_dense;

/* Algorithms that work phase by phase, with the summation order that kernels.h guarantees; long
 * sums are divided into parts within each phase. `panels`: output channels in vectors (struct
 * rfx_conv_args). `depthwise`: one filter per channel, one chain of multiply-adds. `few`: few
 * output channels, pixels in vectors (struct rfx_pixels_args). */
extern const struct rfx_transpose_way rfx_transpose_panels, rfx_transpose_depthwise,
    rfx_transpose_few;
#endif
