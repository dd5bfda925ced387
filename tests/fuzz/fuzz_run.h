/* Running a graph by a plan, for targets that hold plans to the same bits. */
#ifndef RFX_TESTS_FUZZ_FUZZ_RUN_H
#define RFX_TESTS_FUZZ_FUZZ_RUN_H

#include "tiler/plan/plan.h"

/* The picture that fuzz_run runs on, as the planner sees it. */
struct rfx_source_traits fuzz_traits(const struct rfx_graph *graph);

/* Whether the graph may be run: its picture and its predicted time are small. */
bool fuzz_is_cheap(const struct rfx_graph *graph, const struct rfx_plan *plan);

/* Checks the plan and runs it on the same values as ever; *sum tells the bits of all outputs. */
RFX_NODISCARD enum rfx_status fuzz_run(const struct rfx_graph *graph, const struct rfx_plan *plan,
                                       uint64_t *sum, struct rfx_error *err);
#endif
