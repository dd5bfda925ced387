/* Heads that stream: whole tensors behind the last maps of a network, taken apart into maps. */
#ifndef RFX_LAYERS_FUSE_HEADS_H
#define RFX_LAYERS_FUSE_HEADS_H

#include "layers/graph/graph.h"

/* Makes outputs of (1, channels, cells) or (1, cells, channels) JOIN_MAPS of the maps that they are
 * made of, where all operators behind those are understood (head_ops.c) and nobody else needs what
 * is between as a whole. What the outputs were made of before stays in the graph, unread. The bits
 * of an output do not change. */
RFX_NODISCARD enum rfx_status rfx_split_heads(struct rfx_graph *graph, struct rfx_error *err);

/* Gives back what the graph's own weights take that no node reads any more: tables of coordinates
 * of every cell, say. */
void rfx_drop_unread_weights(struct rfx_graph *graph);
#endif
