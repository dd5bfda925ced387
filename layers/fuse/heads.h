/* Makes the heads of a network computable by rows: tensors after the last maps are rewritten as
 * maps. */
#ifndef RFX_LAYERS_FUSE_HEADS_H
#define RFX_LAYERS_FUSE_HEADS_H

#include "layers/graph/graph.h"

/* Replaces outputs of shape (1, channels, cells) or (1, cells, channels) by JOIN_MAPS nodes of the
 * maps that they are made of; in the latter form, a pixel of a map may be several cells. This is
 * done if head_ops.c supports all operators after these maps and no other node needs a whole tensor
 * between them. The nodes that computed the outputs before stay in the graph, unread. The bits of
 * an output do not change. */
RFX_NODISCARD enum rfx_status rfx_split_heads(struct rfx_graph *graph, struct rfx_error *err);

/* Frees the graph's own weights that no node reads any more, such as tables of the coordinates of
 * every cell. */
void rfx_drop_unread_weights(struct rfx_graph *graph);
#endif
