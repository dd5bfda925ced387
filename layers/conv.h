/* Parts of the convolution shared by its files: geometry, packed constants, the three ways to run.
 *
 * Which way a layer runs is a function of the layer alone:
 * depthwise: one filter per channel; own kernel, channels in vectors.
 * direct: few input channels (the first layer); own kernel, output channels in vectors.
 * panel: everything else; OpenBLAS on canonical panels, see conv_panel.c. */
#ifndef RFX_LAYERS_CONV_H
#define RFX_LAYERS_CONV_H

#include "layers/kernels.h"
#include "layers/op.h"

enum rfx_conv_way { RFX_CONV_DEPTHWISE, RFX_CONV_DIRECT, RFX_CONV_PANEL };

#define RFX_CONV_DIRECT_IC 4  /* most input channels of the direct way */
#define RFX_CONV_DIRECT_KW 32 /* and most taps of a kernel row */

enum rfx_conv_way rfx_conv_way(const struct rfx_conv_attr *a);

/* The canonical block of output pixels that is computed as one: bh x bw, anchored at multiples of
 * bh and bw in the full map; 1 x 1 where pixels are computed alone. A function of the layer and
 * the map's size. Schedules that cut rows at multiples of bh waste nothing. */
void rfx_conv_panel_shape(const struct rfx_graph *graph, const struct rfx_node *node, int64_t *bh,
                          int64_t *bw);

/* Positions of one axis. */
struct rfx_conv_axis {
    int64_t k, s, d, pad; /* kernel, stride, dilation, padding before */
    int64_t in, out;      /* extents of the full maps */
};

struct rfx_conv_job {
    const struct rfx_run_args *args;
    const struct rfx_conv_attr *a;
    struct rfx_conv_axis rows, cols;
    const struct rfx_kernels *kernels;
    const float *weights;
    struct rfx_epilogue epilogue;
};

/* Which taps [lo, hi) of output position o lie inside the input map. O(1). */
static inline struct rfx_range rfx_conv_taps(const struct rfx_conv_axis *x, int64_t o) {
    int64_t first = o * x->s - x->pad;
    int64_t lo = first >= 0 ? 0 : (-first + x->d - 1) / x->d;
    int64_t hi = first >= x->in ? 0 : (x->in - 1 - first) / x->d + 1;
    struct rfx_range r = {lo < x->k ? lo : x->k, hi < x->k ? hi : x->k};
    if (r.hi < r.lo) r.hi = r.lo;
    return r;
}

/* The output positions of [lo, hi) all of whose taps lie inside the map; the positions before and
 * after need rfx_conv_taps one by one. */
struct rfx_range rfx_conv_interior(const struct rfx_conv_axis *x, int64_t lo, int64_t hi);

/* How a rectangle is cut for threads: units of rows x cols. Bits do not depend on it. */
struct rfx_conv_units {
    int64_t rows, cols, down, across;
};
struct rfx_conv_units rfx_conv_cut(struct rfx_rect rect, int threads);
struct rfx_rect rfx_conv_unit(const struct rfx_conv_units *u, struct rfx_rect rect, int64_t index);

/* Bias, residual and activation on pixels [x0, x1) of output row y, in place at `data`, `stride`
 * floats apart. */
void rfx_conv_finish(const struct rfx_conv_job *job, int64_t y, int64_t x0, int64_t x1, float *data,
                     int64_t stride);

size_t rfx_conv_depthwise_scratch(const struct rfx_node *node, int threads);
void rfx_conv_depthwise_run(const struct rfx_conv_job *job);
void rfx_conv_direct_run(const struct rfx_conv_job *job);
size_t rfx_conv_panel_scratch(const struct rfx_graph *graph, const struct rfx_node *node,
                              int threads);
void rfx_conv_panel_run(const struct rfx_conv_job *job);
#endif
