/* Global pools fed row by row: what op_global_pool.c does for a whole map, in pieces.
 *
 * The state is a caller-owned block without pointers; the bits of the result do not depend on how
 * the rows were divided (exact_sum.h). */
#ifndef RFX_LAYERS_GLOBAL_POOL_H
#define RFX_LAYERS_GLOBAL_POOL_H

#include "layers/graph.h"
#include "layers/tensor.h"

/* Bytes of the state of a GLOBAL_POOL node, a multiple of RFX_ALIGNMENT_BYTES. */
size_t rfx_global_pool_state_bytes(const struct rfx_node *node);

/* Makes `state` (garbage) the state of no rows. */
void rfx_global_pool_begin(const struct rfx_node *node, void *state);

/* Adds the whole rows of `rect`, which the view holds. */
void rfx_global_pool_add(const struct rfx_node *node, void *state, const struct rfx_view *in,
                         struct rfx_rect rect);

/* Writes the pooled pixel of an h x w map whose rows have all been added. */
void rfx_global_pool_finish(const struct rfx_node *node, void *state, int64_t h, int64_t w,
                            float *out);
#endif
