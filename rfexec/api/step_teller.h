/* Private: tells the observer of a call's options (rfx_run_options.observe) what the executor did.
 * It knows nothing that the step, the plan and the allocator do not say. */
#ifndef RFX_RFEXEC_API_STEP_TELLER_H
#define RFX_RFEXEC_API_STEP_TELLER_H

#include "layers/graph/graph.h"
#include "rfexec/rfexec.h"
#include "rfexec/run/session.h"
#include "tiler/plan/plan.h"

struct rfx_step_teller {
    struct rfx_step_observer observer;     /* for the session, where options have one */
    const struct rfx_run_options *options; /* borrowed, as graph and plan */
    const struct rfx_graph *graph;
    const struct rfx_plan *plan;
    const struct rfx_memory *mem; /* of the run; borrowed */
    int64_t steps;                /* that were done */
    double begin;                 /* seconds of the clock */
    bool ends;                    /* the observer said so */
    bool no_outputs; /* of a round of states, where the graph's outputs are reductions */
};

/* Begins at the present time, which is looked at only for an observer. */
void rfx_step_teller_begin(struct rfx_step_teller *teller, const struct rfx_run_options *options,
                           const struct rfx_graph *graph, const struct rfx_plan *plan,
                           const struct rfx_memory *mem);
#endif
