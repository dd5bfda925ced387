/* TODO */
#ifndef RFX_TILER_SEARCH_GRAPH_VARIANTS_H
#define RFX_TILER_SEARCH_GRAPH_VARIANTS_H

#include "layers/graph/group.h"
#include "tiler/plan/plan.h"

/* Groups of a graph for so many threads, each with caches->second_bytes of its own: writes at most
 * n_nodes / 2 of them, by rising nodes. kept: a node whose map must be there, so that it is no
 * group's but as its last, or -1. OUT_OF_MEMORY. O(nodes). */
RFX_NODISCARD enum rfx_status rfx_groups_choose(const struct rfx_graph *graph,
                                                const struct rfx_caches *caches, int threads,
                                                int kept, struct rfx_group_attr *groups,
                                                int *n_groups, struct rfx_error *err);

/* The graph with the groups that a request gives, or else with those chosen for its caches; *out
 * stays as it is where there are none. INVALID_ARGUMENT: those given are none. Freed before the
 * graph. */
RFX_NODISCARD enum rfx_status rfx_groups_apply(const struct rfx_graph *graph,
                                               const struct rfx_plan_request *request,
                                               struct rfx_graph **out, struct rfx_error *err);

/* How many convolutions of a plan keep factors that they would make otherwise. */
int rfx_factors_count(const struct rfx_plan *plan);
#endif
