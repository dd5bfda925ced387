/* Finds attention in a graph that is being fused: two matrix products with a softmax between them.
 */
#ifndef RFX_LAYERS_FUSE_FUSE_ATTENTION_H
#define RFX_LAYERS_FUSE_FUSE_ATTENTION_H

#include "layers/graph/graph.h"

struct rfx_found_attention {
    struct rfx_attention_attr attr;
    int n_in, in[3 + RFX_ATTENTION_MAX_STEPS]; /* inputs of the ATTENTION node */
    /* Nodes that are removed: all but the last product. */
    int n_parts, parts[2 + RFX_ATTENTION_MAX_STEPS];
};

/* Whether node `product` is the last node of a chain MATMUL - element-wise operations with other
 * tensors - PLAIN_SOFTMAX over the last axis - MATMUL, and no other node reads the tensors between
 * them. If so, fills *found. consumers: per node, the number of its readers; outputs count as
 * readers. */
bool rfx_find_attention(const struct rfx_graph *graph, const int *consumers, int product,
                        struct rfx_found_attention *found);

#endif
