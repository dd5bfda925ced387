/* Computes a tensor that depends on constants only, as a whole and without a plan. Used while a
 * model file is loaded.
 *
 * Operators run as in a session with one thread, so the bits are those of a run. A tensor is freed
 * as soon as its last reader has been computed. */
#ifndef RFX_RFEXEC_RUN_EVALUATE_H
#define RFX_RFEXEC_RUN_EVALUATE_H

#include "layers/graph/graph.h"

/* Computes the tensor of `node` into `out`, which receives all elements in the tensor's type and
 * layout. The graph need not be finished. The node must not depend on an image (asserted). Cost:
 * O(nodes before it) and their arithmetic. OUT_OF_MEMORY; CANCELLED; IO: a model file can no longer
 * be read. Pinned by tests/unit/rfexec/run/test_evaluate.c. */
RFX_NODISCARD enum rfx_status rfx_graph_evaluate(const struct rfx_graph *graph, int node, void *out,
                                                 struct rfx_error *err);

/* Sets needed[i] for `node` and all nodes on which it depends. `needed` has node + 1 elements, all
 * false before. Returns the number of elements of all needed constants. */
int64_t rfx_graph_mark_needed(const struct rfx_graph *graph, int node, bool *needed);
#endif
