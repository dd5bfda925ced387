/* Describes a tensor whose elements are those of a map in another order.
 *
 * ONNX files of vision transformers reshape, transpose and roll a map into tokens or windows. For
 * each element of such a tensor the description gives the row, column and channel of the map. Each
 * axis of the tensor is split into factors, the outermost first. One step along a factor moves by a
 * fixed number of rows, columns or channels of the map. Files that write the same order in
 * different ways get the same description. An operator that works pixel by pixel can then work on
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
    int rank, end[RFX_MAX_RANK]; /* axis i has the factors [end[i - 1], end[i]); end[-1] is 0 */
    int count;
    struct rfx_pixels_factor factors[RFX_PIXELS_FACTORS];
};

/* Sets *out to the description of a node's tensor. The function follows reshapes, transposes,
 * slices of channels and rolls (two parts of an axis exchanged) back to the map. Returns false when
 * the tensor is not a reordered map, or when factors cannot describe the order. */
bool rfx_pixels_of(const struct rfx_graph *graph, int node, struct rfx_pixels *out);

/* Returns the shape of the described tensor. */
struct rfx_shape rfx_pixels_shape(const struct rfx_pixels *p);

/* Gives the tensor another shape with as many elements. Returns false when an axis would end inside
 * a factor. */
bool rfx_pixels_reshape(struct rfx_pixels *p, const struct rfx_shape *shape);

/* Makes axis perm[i] axis i. */
void rfx_pixels_transpose(struct rfx_pixels *p, const int *perm);

/* Changes the description as a node changes its tensor, a reshape or a transpose. Returns false for
 * other nodes, and when factors cannot describe the result. */
bool rfx_pixels_move(const struct rfx_graph *graph, int node, struct rfx_pixels *p);

/* Returns whether the tensor holds tokens: its last axis consists of all channels, no other axis
 * runs over channels, and the map has more than one pixel. */
bool rfx_pixels_are_tokens(const struct rfx_pixels *p);

/* Returns the description of a tensor in the same order, made from another map with as many rows
 * and columns and c channels. If the tensor does not hold tokens, c must be the number of channels
 * of the old map. */
struct rfx_pixels rfx_pixels_of_map(const struct rfx_pixels *p, int map, int64_t c);

/* The first function returns whether an axis consists of all channels and no other axis runs over
 * channels. For such a tensor the second function returns the description in the same order of
 * another map with as many rows and columns, with c channels in that axis. */
bool rfx_pixels_axis_is_channels(const struct rfx_pixels *p, int axis);
struct rfx_pixels rfx_pixels_with_channels(const struct rfx_pixels *p, int axis, int map,
                                           int64_t c);

/* Returns whether the tokens of two maps are in the same order and have the same shape, except for
 * the number of channels. */
bool rfx_pixels_same_order(const struct rfx_pixels *a, const struct rfx_pixels *b);

/* Returns how many channels of the map the tensor has elements of; 0 if they have no order of their
 * own. With `channels`, also stores these, rising, and changes the description to that of a map of
 * only these channels, whose node the caller sets. */
int64_t rfx_pixels_pick(struct rfx_pixels *p, int64_t *channels);

/* The first function returns the number of channels of a tensor (1, channels, h, w) that holds some
 * channels of the map, in any order; 0: it is something else. The second returns the map's channel
 * that is number `index` of them. */
int64_t rfx_pixels_channels(const struct rfx_pixels *p);
int64_t rfx_pixels_channel(const struct rfx_pixels *p, int64_t index);

/* Return whether the tensor is the map itself, as (1, c, h, w) or as (1, h, w, c). */
bool rfx_pixels_is_nchw(const struct rfx_pixels *p);
bool rfx_pixels_is_nhwc(const struct rfx_pixels *p);

/* Returns whether the tensor has all elements of the map in the order (channels, rows, columns),
 * or, if `last`, (rows, columns, channels). The number of axes does not matter. */
bool rfx_pixels_are_in_order(const struct rfx_pixels *p, bool last);

/* Joins neighbouring factors that together are one factor. Returns the number of factors in out. */
int rfx_pixels_merge(const struct rfx_pixels_factor *in, int count, struct rfx_pixels_factor *out);

#endif
