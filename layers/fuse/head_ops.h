/* What the operators on whole tensors are for values that are made of maps (head_value.h): one
 * operator on the maps of each level. */
#ifndef RFX_LAYERS_FUSE_HEAD_OPS_H
#define RFX_LAYERS_FUSE_HEAD_OPS_H

#include "layers/fuse/head_value.h"

/* The value of node `i`, from those of its inputs, into h->values[i]; what it needs is added to the
 * graph. Where it has none, known stays false and the node is left as it is. */
RFX_NODISCARD enum rfx_status rfx_head_read(struct rfx_heads *h, int i);

/* The same for two tensors joined element by element, of which one is perhaps a constant. */
RFX_NODISCARD enum rfx_status rfx_head_binary(struct rfx_heads *h, const struct rfx_node *node,
                                              struct rfx_head_value *out);
#endif
