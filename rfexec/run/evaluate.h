/* Computing a tensor that depends on constants alone, whole, without a plan: what a model file asks
 * for when it is loaded.
 *
 * Operators run as in a session, with a team of one thread, so the bits are those of a run. A
 * tensor is freed when the last node that needs it has been computed. */
#ifndef RFX_RFEXEC_RUN_EVALUATE_H
#define RFX_RFEXEC_RUN_EVALUATE_H

#include "layers/graph/graph.h"

/* Computes the tensor of `node` into out: its elements, of its type, in its layout. The
 * graph need not be finished; the node must depend on no image (asserted). O(nodes before it)
 * beside their arithmetic. OUT_OF_MEMORY, CANCELLED; IO: a model file cannot be read any more.
 * Pinned by tests/unit/rfexec/run/test_evaluate.c. */
RFX_NODISCARD enum rfx_status rfx_graph_evaluate(const struct rfx_graph *graph, int node, void *out,
                                                 struct rfx_error *err);

/* Sets needed[i], of node + 1 flags that are false, for `node` and all nodes that it depends on.
 * Returns how many elements the constants among them have. */
int64_t rfx_graph_mark_needed(const struct rfx_graph *graph, int node, bool *needed);
#endif
