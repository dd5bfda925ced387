/* Tensors behind the last maps of a network, taken as what they are made of: maps of one or several
 * levels (a detector's), whose pixels stand in a row along one axis.
 *
 * Invariants: 1. all maps of a value have as many channels; 2. element (channel e, pixel p) of a
 * value is channel from[e] of pixel p of its level's map, where e counts the axes of channels in
 * row-major order and p the pixels of all levels, level by level, row by row; 3. axes of pixels are
 * longer than 1. Moving channels about changes `from` alone; nothing is computed for it until
 * somebody needs the maps themselves. */
#ifndef RFX_LAYERS_FUSE_HEAD_VALUE_H
#define RFX_LAYERS_FUSE_HEAD_VALUE_H

#include "layers/graph/op.h"

#define RFX_HEAD_MAX_LEVELS 32
#define RFX_HEAD_MAX_CHANNELS 65536

enum rfx_head_axis {
    RFX_HEAD_CHANNELS,
    RFX_HEAD_ROWS,    /* of the one map that there is */
    RFX_HEAD_COLUMNS, /* likewise */
    RFX_HEAD_CELLS,   /* pixels of all levels */
};

struct rfx_head_value {
    bool known;
    struct rfx_shape shape; /* as its node's; of a map (1, c, h, w) */
    enum rfx_head_axis kind[RFX_MAX_RANK];
    int n_levels, map[RFX_HEAD_MAX_LEVELS]; /* nodes */
    int64_t n;                              /* product of the axes of channels */
    int64_t *from;
};

/* A pass over a graph, at whose end nodes are added; those that it came with are `n_nodes`. */
struct rfx_heads {
    struct rfx_graph *graph;
    struct rfx_error *err;
    int n_nodes;
    struct rfx_head_value *values; /* per node */
    const char *name;              /* what is added is called after */
};

/* All return RFX_OK, OUT_OF_MEMORY or CANCELLED (or IO: a weight cannot be read); with RFX_OK
 * out->known says whether there is such a value. */

/* Whether a node was not added because of what it is: then the tensor stays whole. */
bool rfx_head_is_refusal(enum rfx_status status);

/* A value of `like`'s levels with n channels 0, 1, 2 and so on of the maps. */
RFX_NODISCARD enum rfx_status rfx_head_make(struct rfx_heads *h, const struct rfx_head_value *like,
                                            const struct rfx_shape *shape, int64_t n,
                                            struct rfx_head_value *out);
void rfx_head_release(struct rfx_heads *h, struct rfx_head_value *value);

/* Under another shape, where channels and pixels stay apart; but channels in front of all pixels of
 * one map may become cells with them (anchors): each of those is a level then. */
RFX_NODISCARD enum rfx_status rfx_head_reshape(struct rfx_heads *h, const struct rfx_head_value *in,
                                               const struct rfx_shape *shape,
                                               struct rfx_head_value *out);

/* Axis i is axis perm[i] of `in`. */
RFX_NODISCARD enum rfx_status rfx_head_transpose(struct rfx_heads *h,
                                                 const struct rfx_head_value *in, const int *perm,
                                                 struct rfx_head_value *out);

/* What a PLAIN_SLICE or PLAIN_GATHER takes out, all of it in axes of pixels. */
RFX_NODISCARD enum rfx_status rfx_head_take(struct rfx_heads *h, const struct rfx_head_value *in,
                                            const struct rfx_node *node,
                                            struct rfx_head_value *out);

/* Broadcast to a shape of as many axes or more, whose pixels are those of `in`. */
RFX_NODISCARD enum rfx_status rfx_head_expand(struct rfx_heads *h, const struct rfx_head_value *in,
                                              const struct rfx_shape *shape,
                                              struct rfx_head_value *out);

/* Whether two values have the same pixels along the same axes, counted from the last. */
bool rfx_head_same_pixels(const struct rfx_heads *h, const struct rfx_head_value *a,
                          const struct rfx_head_value *b);

/* Channel `e` along each axis; 0 along those of pixels. */
void rfx_head_unravel(const struct rfx_head_value *value, int64_t e, int64_t *at);
int64_t rfx_head_ravel(const struct rfx_head_value *value, const int64_t *at);

/* Adds a node for level `level`, called after h->name and `what`. *added: whether it could be; a
 * refusal of the operator is none of the pass. */
RFX_NODISCARD enum rfx_status rfx_head_add(struct rfx_heads *h, struct rfx_node *node,
                                           const int *in, int n_in, const char *what, int level,
                                           int *out, bool *added);

/* Makes maps whose channel e is what channel order[e] (NULL: e) of the value is; the value then
 * says so. known is false afterwards where that cannot be. */
RFX_NODISCARD enum rfx_status rfx_head_settle(struct rfx_heads *h, struct rfx_head_value *value,
                                              const int64_t *order);
#endif
