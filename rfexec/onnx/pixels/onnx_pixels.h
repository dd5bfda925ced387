/* Whole tensors that are a map with its pixels in another order.
 *
 * Transformers write maps as tokens and windows: reshaped, transposed, rolled. Such a tensor is
 * described by factors: an index along a factor moves so many rows, columns or channels on. Axes
 * of the tensor are runs of factors, the outermost first. So forms that are written differently and
 * mean the same have one description, and what works pixel by pixel can work on the map. */
#ifndef RFX_RFEXEC_ONNX_PIXELS_ONNX_PIXELS_H
#define RFX_RFEXEC_ONNX_PIXELS_ONNX_PIXELS_H

#include "layers/graph/graph.h"

enum { RFX_PIXELS_ROW, RFX_PIXELS_COL, RFX_PIXELS_CHANNEL };

#define RFX_PIXELS_FACTORS 16

struct rfx_pixels_factor {
    int axis; /* of the map */
    int64_t size, stride;
};

/* Element (i, j, ...) is, of the map, that of row (roll[0] + sum of index * stride of row factors)
 * mod extent[0], column likewise, channel first + sum. Factors have more than one index. */
struct rfx_pixels {
    int map; /* a node whose tensor is NHWC */
    int64_t extent[3];
    int64_t roll[2]; /* [0, extent) */
    int64_t first;
    int rank, end[RFX_MAX_RANK]; /* axis i has the factors from end[i - 1] on, up to end[i] */
    int count;
    struct rfx_pixels_factor factors[RFX_PIXELS_FACTORS];
};

/* Describes the tensor of a node; false: it is no map in another order, or not to be described. It
 * follows reshapes, transposes, cuts of channels and rolls (the two parts of an axis exchanged)
 * back to where a map became a tensor. */
bool rfx_pixels_of(const struct rfx_graph *graph, int node, struct rfx_pixels *out);

/* The shape that is described. */
struct rfx_shape rfx_pixels_shape(const struct rfx_pixels *p);

/* Gives it another shape of as many elements; false: axes would end within factors. */
bool rfx_pixels_reshape(struct rfx_pixels *p, const struct rfx_shape *shape);

/* Whether the last axis holds all channels, and nothing else does: tokens of a map of more than one
 * pixel. */
bool rfx_pixels_are_tokens(const struct rfx_pixels *p);

/* The same tokens of another map of as many rows and columns, with c channels; what are no tokens
 * of a map of as many channels. */
struct rfx_pixels rfx_pixels_of_map(const struct rfx_pixels *p, int map, int64_t c);

/* Whether an axis holds all channels, and nothing else does; then the same pixels of another map of
 * as many rows and columns, with c channels in that axis. */
bool rfx_pixels_axis_is_channels(const struct rfx_pixels *p, int axis);
struct rfx_pixels rfx_pixels_with_channels(const struct rfx_pixels *p, int axis, int map,
                                           int64_t c);

/* Whether two maps' tokens are in one order, in one shape but for the channels. */
bool rfx_pixels_same_order(const struct rfx_pixels *a, const struct rfx_pixels *b);

/* Whether it is the map as it is: (1, c, h, w), or with its channels last. */
bool rfx_pixels_is_nchw(const struct rfx_pixels *p);
bool rfx_pixels_is_nhwc(const struct rfx_pixels *p);

/* Whether it is a whole map in the order (channels, rows, columns), or (rows, columns, channels)
 * for `last`, whatever its axes are. */
bool rfx_pixels_are_in_order(const struct rfx_pixels *p, bool last);

/* Factors that follow each other and are one put together; returns how many are left. */
int rfx_pixels_merge(const struct rfx_pixels_factor *in, int count, struct rfx_pixels_factor *out);

#endif
