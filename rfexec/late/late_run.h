/* Runs late nodes on the cut tensors of a run (late.h).
 *
 * Memory: the cut tensors are held from the start of the run, in rfx_late_cut_bytes. All other
 * tensors come and go while the nodes run; `most_bytes` limits what they take at a time. A tensor
 * is freed when its last reader has run. Results do not depend on plans and threads: nodes run one
 * after the other, in the calling thread, in the order of the file. */
#ifndef RFX_RFEXEC_LATE_LATE_RUN_H
#define RFX_RFEXEC_LATE_LATE_RUN_H

#include "layers/graph/graph.h"
#include "rfexec/late/late.h"

struct rfx_late_run;

/* Returns the bytes of the cut tensors of a graph with late nodes. */
size_t rfx_late_cut_bytes(const struct rfx_graph *graph);

/* Allocates the cut tensors. most_bytes: for all other tensors at a time; 0: no limit. The graph,
 * whose late nodes are run, and `mem` must outlive the object. OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_late_run_create(const struct rfx_graph *graph,
                                                  struct rfx_memory *mem, size_t most_bytes,
                                                  struct rfx_late_run **out, struct rfx_error *err);

/* Takes a piece of an output of the graph (output_sink.h). Pieces of outputs that are no cut
 * tensors are passed over. */
void rfx_late_run_take(struct rfx_late_run *run, const struct rfx_end *end, struct rfx_rect rect,
                       const struct rfx_view *view);

/* Runs all nodes. Call it once, when all pieces have come. BUDGET_IMPOSSIBLE, with the numbers:
 * most_bytes are too few. MALFORMED, UNSUPPORTED: a node cannot be run on these tensors; the text
 * names it. OUT_OF_MEMORY, CANCELLED. */
RFX_NODISCARD enum rfx_status rfx_late_run_nodes(struct rfx_late_run *run, struct rfx_error *err);

/* After rfx_late_run_nodes: returns output k of the model. Its tensor lives as long as the run. */
const struct rfx_late_tensor *rfx_late_run_output(const struct rfx_late_run *run, size_t k);

/* After rfx_late_run_nodes: sets *floats to the elements of output k as floats, in new memory,
 * which the caller releases. BUDGET_IMPOSSIBLE: most_bytes are too few; OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_late_run_floats(const struct rfx_late_run *run, size_t k,
                                                  float **floats, struct rfx_error *err);

/* Returns the most bytes that were taken at a time, without the cut tensors. */
size_t rfx_late_run_high_water_bytes(const struct rfx_late_run *run);

/* NULL is fine. */
void rfx_late_run_free(struct rfx_late_run *run);
#endif
