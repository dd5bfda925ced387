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

/* The graph with the plan's groups and, as far as `room` bytes go, with factors that are kept: of
 * large maps first, for which they would be made most often. *out stays as it is where none fit.
 * OUT_OF_MEMORY. Freed before the graph. */
RFX_NODISCARD enum rfx_status rfx_factors_keep(const struct rfx_graph *graph,
                                               const struct rfx_plan *plan, size_t room,
                                               struct rfx_graph **out, struct rfx_error *err);

/* Lets the nodes that a request names keep their factors; *made is the graph with the request's
 * groups, or NULL: without, and is made if need be. INVALID_ARGUMENT: one is no convolution. */
RFX_NODISCARD enum rfx_status rfx_factors_apply(const struct rfx_graph *graph,
                                                const struct rfx_plan_request *request,
                                                struct rfx_graph **made, struct rfx_error *err);

/* How many convolutions of a plan keep factors that they would make otherwise. */
int rfx_factors_count(const struct rfx_plan *plan);
#endif
