/* Private: reports each step of the executor to the caller's observer (rfx_run_options.observe).
 * All reported values come from the step, the plan and the allocator. */
#ifndef RFX_RFEXEC_API_STEP_TELLER_H
#define RFX_RFEXEC_API_STEP_TELLER_H

#include "layers/graph/graph.h"
#include "rfexec/rfexec.h"
#include "rfexec/run/session.h"
#include "tiler/plan/plan.h"

struct rfx_step_teller {
    struct rfx_step_observer observer; /* passed to the session if the options have an observer */
    const struct rfx_run_options *options; /* borrowed, as graph and plan */
    const struct rfx_graph *graph;
    const struct rfx_plan *plan;
    const struct rfx_memory *mem; /* memory of the run; borrowed */
    int64_t steps;                /* number of steps done */
    double begin;                 /* time of the start, in seconds of the clock */
    bool ends;                    /* the observer asked to end the run */
    bool no_outputs; /* the graph's outputs are not the network's: reductions in a round of states,
                        or tensors before late nodes */
};

/* Initialises the teller. Reads the clock only if the options have an observer. */
void rfx_step_teller_begin(struct rfx_step_teller *teller, const struct rfx_run_options *options,
                           const struct rfx_graph *graph, const struct rfx_plan *plan,
                           const struct rfx_memory *mem);
#endif
