/* Describes a tensor whose elements are those of a map in another order.
 *
 * ONNX files of vision transformers reshape, transpose and roll a map into tokens or windows. The
 * description says for each element of such a tensor which row, column and channel of the map it
 * is: each axis of the tensor is cut into factors, the outermost first, and a step along a factor
 * moves a fixed number of rows, columns or channels on. Files that write the same order in
 * different ways get the same description, and an operator that works pixel by pixel can work on
 * the map. */
#ifndef RFX_RFEXEC_ONNX_IMPORT_ONNX_PIXELS_H
#define RFX_RFEXEC_ONNX_IMPORT_ONNX_PIXELS_H

#include "layers/graph/graph.h"

enum { RFX_PIXELS_ROW, RFX_PIXELS_COL, RFX_PIXELS_CHANNEL };

#define RFX_PIXELS_FACTORS 16

struct rfx_pixels_factor {
    int axis; /* of the map */
    int64_t size, stride;
};

/* The row of an element in the map is (roll[0] + the sum of index * stride over the row factors)
 * mod extent[0]. Its column is found likewise; its channel is `first` plus the sum over the channel
 * factors. Factors of size 1 are left out. */
struct rfx_pixels {
    int map; /* a node whose tensor is NHWC */
    int64_t extent[3];
    int64_t roll[2]; /* [0, extent) */
    int64_t first;
    int rank, end[RFX_MAX_RANK]; /* axis i has the factors from end[i - 1] on, up to end[i] */
    int count;
    struct rfx_pixels_factor factors[RFX_PIXELS_FACTORS];
};

/* Describes the tensor of a node. It follows reshapes, transposes, cuts of channels and rolls (the
 * two parts of an axis exchanged) back to where a map became a tensor. False: the tensor is not a
 * map in another order, or factors cannot describe it. */
bool rfx_pixels_of(const struct rfx_graph *graph, int node, struct rfx_pixels *out);

/* The shape of the described tensor. */
struct rfx_shape rfx_pixels_shape(const struct rfx_pixels *p);

/* Gives the tensor another shape with as many elements. False: an axis would end within a factor.
 */
bool rfx_pixels_reshape(struct rfx_pixels *p, const struct rfx_shape *shape);

/* Whether the tensor holds tokens: its last axis holds all channels, no other axis holds any, and
 * the map has more than one pixel. */
bool rfx_pixels_are_tokens(const struct rfx_pixels *p);

/* The same tokens, but of another map of as many rows and columns, with c channels. A tensor that
 * does not hold tokens needs a map of as many channels. */
struct rfx_pixels rfx_pixels_of_map(const struct rfx_pixels *p, int map, int64_t c);

/* Whether an axis holds all channels and no other axis holds any. For such a tensor, the same order
 * of another map of as many rows and columns, with c channels in that axis. */
bool rfx_pixels_axis_is_channels(const struct rfx_pixels *p, int axis);
struct rfx_pixels rfx_pixels_with_channels(const struct rfx_pixels *p, int axis, int map,
                                           int64_t c);

/* Whether the tokens of two maps are in the same order and, but for the channels, of one shape. */
bool rfx_pixels_same_order(const struct rfx_pixels *a, const struct rfx_pixels *b);

/* Whether the tensor is the map itself, as (1, c, h, w) or (1, h, w, c). */
bool rfx_pixels_is_nchw(const struct rfx_pixels *p);
bool rfx_pixels_is_nhwc(const struct rfx_pixels *p);

/* Whether the elements of a whole map are in the order (channels, rows, columns), or for `last`
 * (rows, columns, channels), however they are cut into axes. */
bool rfx_pixels_are_in_order(const struct rfx_pixels *p, bool last);

/* Joins neighbouring factors where the two together are one factor; returns how many are left. */
int rfx_pixels_merge(const struct rfx_pixels_factor *in, int count, struct rfx_pixels_factor *out);

#endif
