/* The algorithms for transposed convolutions, and the decomposition into phases that they share.
 *
 * Output position o of an axis reads input position i through tap k where o + pad = i * s + k * d.
 * The phase of an output position is (o + pad) mod s. All output positions of one phase have the
 * same taps: first, first + every, first + 2 * every, ... From one output position of a phase to
 * the next, the input position of each tap moves by one. So a phase is a convolution of stride 1
 * with its taps in reverse order: where tap `first` reads input position i, tap first + j * every
 * reads i - j * step. Every tap belongs to exactly one phase. */
#ifndef RFX_LAYERS_CONV_CONV_TRANSPOSE_H
#define RFX_LAYERS_CONV_CONV_TRANSPOSE_H

#include "layers/conv/conv.h"

struct rfx_transpose_axis {
    /* kernel, stride, dilation, output pixels cut off in front, input extent */
    int64_t k, s, d, pad, in;
    /* distance between neighbouring taps of a phase, and between the inputs that they read */
    int64_t every, step;
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

/* The output positions o, o + s, o + 2 * s, ... of one phase in a range [lo, hi) of an axis. Tap
 * number j of output number q reads input position input + q - j * step. Both numbers count from
 * 0. */
struct rfx_transpose_outputs {
    int64_t o, count, input;
    struct rfx_transpose_taps taps;
};
struct rfx_transpose_outputs rfx_transpose_outputs(const struct rfx_transpose_axis *x, int64_t lo,
                                                   int64_t hi, int64_t phase);

/* Returns the numbers of those taps of output number q whose inputs lie inside the map. */
struct rfx_range rfx_transpose_inside(const struct rfx_transpose_axis *x,
                                      const struct rfx_transpose_outputs *outputs, int64_t q);

/* The layout of packed weights: [group][part][phase][tap of the phase][input channel of the
 * group][output channel of the part]. Phases and taps are in row-major order. The output channels
 * of a group are divided into parts of `part` output channels. The last part may be padded with
 * zeros. Depthwise filters are packed as one group with one input channel. */
struct rfx_transpose_layout {
    /* groups; input and output channels of a group; output channels of a part; the last part is
     * padded to a multiple of `fill` output channels */
    int64_t groups, icg, ocg, part, fill;
};

int64_t rfx_transpose_packed_elems(const struct rfx_conv_attr *a,
                                   const struct rfx_transpose_layout *layout);

/* Returns the offset, in floats, of the packed weights of one part: the part of group g whose first
 * output channel is o. *width receives the number of output channels of that part, zero padding
 * included. */
int64_t rfx_transpose_part_at(const struct rfx_conv_attr *a,
                              const struct rfx_transpose_layout *layout, int64_t g, int64_t o,
                              int64_t *width);

/* Returns the number of taps that are packed before the taps of the phase (rows, cols). */
int64_t rfx_transpose_taps_before(const struct rfx_conv_attr *a,
                                  const struct rfx_transpose_taps *rows,
                                  const struct rfx_transpose_taps *cols);

/* Returns the offset, in floats, of the weights of the phase (rows, cols) in the part that begins
 * with output channel o of group g. *width is set as by rfx_transpose_part_at. */
int64_t rfx_transpose_weights_at(const struct rfx_conv_attr *a,
                                 const struct rfx_transpose_layout *layout, int64_t g, int64_t o,
                                 const struct rfx_transpose_taps *rows,
                                 const struct rfx_transpose_taps *cols, int64_t *width);

/* An algorithm that computes a layer: its weight layout, its scratch bytes per thread, and the
 * function that runs it. */
struct rfx_transpose_way {
    struct rfx_transpose_layout (*layout)(const struct rfx_conv_attr *a);
    size_t (*scratch_bytes)(const struct rfx_graph *graph, const struct rfx_node *node);
    void (*run)(const struct rfx_conv_job *job);
};

/* Calls the dense kernel once per tap; each call adds its products to the output. For processors
 * without fused multiply-add. */
extern const struct rfx_transpose_way rfx_transpose_dense;

/* Algorithms that work phase by phase, with the summation order that kernels.h guarantees. They
 * divide long sums into parts within each phase. `panels`: a vector holds output channels (struct
 * rfx_conv_args). `depthwise`: one filter per channel, one chain of multiply-adds. `few`: for few
 * output channels; a vector holds pixels (struct rfx_pixels_args). */
extern const struct rfx_transpose_way rfx_transpose_panels, rfx_transpose_depthwise,
    rfx_transpose_few;
#endif
