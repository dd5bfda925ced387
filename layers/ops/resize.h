/* RESIZE: what its two files share. resize.c has the operator and what reads one or two pixels per
 * axis; resize_filter.c what weighs all pixels under a kernel. */
#ifndef RFX_LAYERS_OPS_RESIZE_H
#define RFX_LAYERS_OPS_RESIZE_H

#include "layers/graph/op.h"

/* One axis: sizes of both maps and the scale, output pixels per input pixel. */
struct rfx_resize_axis {
    const struct rfx_resize_attr *attr;
    int64_t in, out;
    float scale;
};

struct rfx_resize_axis rfx_resize_axis(const struct rfx_graph *graph, const struct rfx_node *node,
                                       int axis);

/* Where output position i lies on the input's axis, in ONNX Runtime's float arithmetic. */
float rfx_resize_coordinate(const struct rfx_resize_axis *axis, int64_t i);

/* The same in double, for an endless map. */
double rfx_resize_position(const struct rfx_resize_axis *axis, int64_t i);

/* Whether the pixels under a kernel are summed: cubic, and linear with antialias. */
bool rfx_resize_is_filtered(const struct rfx_resize_attr *attr);

/* What output positions read: of the map, and of an endless one. */
struct rfx_range rfx_resize_filter_range(const struct rfx_resize_axis *axis, struct rfx_range out);
struct rfx_range rfx_resize_filter_endless(const struct rfx_resize_axis *axis,
                                           struct rfx_range out);

/* Scratch of a thread, and the run. */
size_t rfx_resize_filter_scratch_bytes(const struct rfx_graph *graph, const struct rfx_node *node);
void rfx_resize_filter_run(const struct rfx_run_args *args);
#endif
