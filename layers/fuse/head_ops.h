/* Rewrites operators on whole tensors as operators on feature maps, for tensors that are made of
 * maps (head_value.h): one new operator for the maps of each level. */
#ifndef RFX_LAYERS_FUSE_HEAD_OPS_H
#define RFX_LAYERS_FUSE_HEAD_OPS_H

#include "layers/fuse/head_value.h"

/* Computes the value of node `i` from the values of its inputs and stores it in h->values[i]. Nodes
 * that the value needs are added to the graph. If the node's tensor cannot be made of maps,
 * values[i].known stays false and the node is not changed. */
RFX_NODISCARD enum rfx_status rfx_head_read(struct rfx_heads *h, int i);

/* As rfx_head_read, for a node that combines two tensors element by element; one of them may be a
 * constant. The result goes to *out. */
RFX_NODISCARD enum rfx_status rfx_head_binary(struct rfx_heads *h, const struct rfx_node *node,
                                              struct rfx_head_value *out);
#endif
