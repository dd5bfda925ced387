/* Describes tensors after the last maps of a network by the maps that they are made of. These are
 * maps of one or several levels (of a detector), whose pixels follow each other along one axis.
 *
 * A pixel is one cell or, on an axis of cells, several cells that follow each other: the anchors of
 * its level.
 *
 * Invariants: 1. All maps of a value have the same number of channels for each anchor. 2. Element
 * (channel e, anchor a of pixel p) of a value is channel a * rfx_head_step + from[e] of pixel p of
 * its level's map. Here e counts the axes of channels in row-major order, and p counts the pixels
 * of all levels: level by level, row by row. 3. Axes of pixels are longer than 1. Operations that
 * only reorder channels change only `from`. The reordered maps are computed only when another
 * operation needs them (rfx_head_settle). */
#ifndef RFX_LAYERS_FUSE_HEAD_VALUE_H
#define RFX_LAYERS_FUSE_HEAD_VALUE_H

#include "layers/graph/op.h"

#define RFX_HEAD_MAX_LEVELS 32
#define RFX_HEAD_MAX_CHANNELS 65536

enum rfx_head_axis {
    RFX_HEAD_CHANNELS,
    RFX_HEAD_ROWS,    /* rows of the map, if there is only one */
    RFX_HEAD_COLUMNS, /* columns of the map, if there is only one */
    RFX_HEAD_CELLS,   /* cells of all levels' maps */
};

struct rfx_head_value {
    bool known;
    struct rfx_shape shape; /* shape of the node's tensor; (1, c, h, w) for a map */
    enum rfx_head_axis kind[RFX_MAX_RANK];
    int n_levels, map[RFX_HEAD_MAX_LEVELS]; /* nodes */
    int64_t anchors[RFX_HEAD_MAX_LEVELS];   /* cells of a pixel of each level */
    int64_t n; /* number of channels: the product of the extents of the channel axes */
    int64_t *from;
};

/* State of a pass over a graph. The pass appends nodes; the graph had `n_nodes` nodes before. */
struct rfx_heads {
    struct rfx_graph *graph;
    struct rfx_error *err;
    int n_nodes;
    struct rfx_head_value *values; /* per node */
    const char *name;              /* prefix of the names of added nodes */
};

/* The functions below return RFX_OK, OUT_OF_MEMORY, CANCELLED, or IO if a weight cannot be read.
 * With RFX_OK, out->known is true if the result can be described as a value. */

/* Whether `status` means that an operator refused a new node. The tensor then stays whole. */
bool rfx_head_is_refusal(enum rfx_status status);

/* Makes a value with the levels of `like` and n channels; its channel e is channel e of the maps.
 */
RFX_NODISCARD enum rfx_status rfx_head_make(struct rfx_heads *h, const struct rfx_head_value *like,
                                            const struct rfx_shape *shape, int64_t n,
                                            struct rfx_head_value *out);
void rfx_head_release(struct rfx_heads *h, struct rfx_head_value *value);

/* Returns how many channels of a level's map each anchor has. */
int64_t rfx_head_step(const struct rfx_heads *h, const struct rfx_head_value *value, int level);

/* Whether a pixel of some level is more than one cell. */
bool rfx_head_has_anchors(const struct rfx_head_value *value);

/* Reshapes a value. Channels and pixels must stay on separate axes, with two exceptions: channels
 * (anchors) may be merged with all pixels into an axis of cells. In front of the pixels of a single
 * map, each of these channels becomes a level; behind the pixels, they become anchors. */
RFX_NODISCARD enum rfx_status rfx_head_reshape(struct rfx_heads *h, const struct rfx_head_value *in,
                                               const struct rfx_shape *shape,
                                               struct rfx_head_value *out);

/* Makes an axis of channels one of cells: the anchors of a value that is a map of one pixel. Sets
 * value->known to false if the value is another one, and the axis has channels. */
RFX_NODISCARD enum rfx_status rfx_head_as_cells(struct rfx_heads *h, struct rfx_head_value *value,
                                                int axis);

/* Permutes the axes: axis i of *out is axis perm[i] of `in`. */
RFX_NODISCARD enum rfx_status rfx_head_transpose(struct rfx_heads *h,
                                                 const struct rfx_head_value *in, const int *perm,
                                                 struct rfx_head_value *out);

/* Computes the value that a PLAIN_SLICE or PLAIN_GATHER node selects from `in`. The selection must
 * keep all pixels of the levels of which it keeps any. */
RFX_NODISCARD enum rfx_status rfx_head_take(struct rfx_heads *h, const struct rfx_head_value *in,
                                            const struct rfx_node *node,
                                            struct rfx_head_value *out);

/* Broadcasts `in` to a shape with as many axes or more; the pixels must stay those of `in`. */
RFX_NODISCARD enum rfx_status rfx_head_expand(struct rfx_heads *h, const struct rfx_head_value *in,
                                              const struct rfx_shape *shape,
                                              struct rfx_head_value *out);

/* Whether two values have the same pixels along the same axes, counted from the last. */
bool rfx_head_same_pixels(const struct rfx_heads *h, const struct rfx_head_value *a,
                          const struct rfx_head_value *b);

/* rfx_head_unravel sets at[] to the index of channel `e` along each axis, 0 for axes of pixels.
 * rfx_head_ravel is the inverse. */
void rfx_head_unravel(const struct rfx_head_value *value, int64_t e, int64_t *at);
int64_t rfx_head_ravel(const struct rfx_head_value *value, const int64_t *at);

/* Adds a node for level `level`, named after h->name and `what`, and sets *out to its index. *added
 * is false if the operator refused the node; this is not an error of the pass. */
RFX_NODISCARD enum rfx_status rfx_head_add(struct rfx_heads *h, struct rfx_node *node,
                                           const int *in, int n_in, const char *what, int level,
                                           int *out, bool *added);

/* Makes maps whose channel e, for each anchor, is channel order[e] (NULL: e) of the value, and
 * changes the value to use these maps. Sets value->known to false if this is impossible. */
RFX_NODISCARD enum rfx_status rfx_head_settle(struct rfx_heads *h, struct rfx_head_value *value,
                                              const int64_t *order);
#endif
