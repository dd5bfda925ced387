/* Declarations that the two files of RESIZE share. resize.c has the operator and the modes that
 * read one or two pixels per axis (nearest, linear). resize_filter.c has the modes that compute a
 * weighted sum of all pixels under a kernel. */
#ifndef RFX_LAYERS_OPS_RESIZE_H
#define RFX_LAYERS_OPS_RESIZE_H

#include "layers/graph/op.h"

/* One axis: its attributes, the sizes of both maps, and the scale in output pixels per input
 * pixel. */
struct rfx_resize_axis {
    const struct rfx_resize_attr *attr;
    int64_t in, out;
    float scale;
};

struct rfx_resize_axis rfx_resize_axis(const struct rfx_graph *graph, const struct rfx_node *node,
                                       int axis);

/* Returns the coordinate of output position i on the input's axis, in ONNX Runtime's float
 * arithmetic. */
float rfx_resize_coordinate(const struct rfx_resize_axis *axis, int64_t i);

/* Returns the same coordinate in double, for a map without borders. */
double rfx_resize_position(const struct rfx_resize_axis *axis, int64_t i);

/* Returns whether the mode sums the pixels under a kernel: cubic, and linear with antialias. */
bool rfx_resize_is_filtered(const struct rfx_resize_attr *attr);

/* Returns the input range that the output positions read: of the map, and of a map without
 * borders. */
struct rfx_range rfx_resize_filter_range(const struct rfx_resize_axis *axis, struct rfx_range out);
struct rfx_range rfx_resize_filter_endless(const struct rfx_resize_axis *axis,
                                           struct rfx_range out);

/* The scratch bytes of one thread, and the run. */
size_t rfx_resize_filter_scratch_bytes(const struct rfx_graph *graph, const struct rfx_node *node);
void rfx_resize_filter_run(const struct rfx_run_args *args);
#endif
