/* Variants of a graph: with groups of nodes that are computed depth first, and with transformed
 * weights of Winograd convolutions stored or computed during use.
 *
 * Inside a group, maps need not leave a core's cache; in return, edges of strips are computed twice
 * and weights are read again. Stored transformed weights save a quarter of the time and take four
 * times the bytes of the weights. Only predicted time (cost.h) decides between variants; the bits
 * are the same in all of them. */
#ifndef RFX_TILER_SEARCH_GRAPH_VARIANTS_H
#define RFX_TILER_SEARCH_GRAPH_VARIANTS_H

#include "layers/graph/group.h"
#include "tiler/plan/plan.h"

/* Chooses groups for a number of threads, each with caches->second_bytes of its own. Writes at most
 * n_nodes / 2 groups, by rising nodes. kept: a node whose map must exist, so that it may only be
 * the last node of a group; -1: none. OUT_OF_MEMORY. O(nodes). */
RFX_NODISCARD enum rfx_status rfx_groups_choose(const struct rfx_graph *graph,
                                                const struct rfx_caches *caches, int threads,
                                                int kept, struct rfx_group_attr *groups,
                                                int *n_groups, struct rfx_error *err);

/* Makes the graph with the groups of the request, or with those chosen for its caches. Leaves *out
 * unchanged where there are no groups. INVALID_ARGUMENT: the request's groups are not valid. Free
 * the result before the graph. */
RFX_NODISCARD enum rfx_status rfx_groups_apply(const struct rfx_graph *graph,
                                               const struct rfx_plan_request *request,
                                               struct rfx_graph **out, struct rfx_error *err);

/* Returns the number of convolutions of a plan that store transformed weights which they would
 * otherwise compute during use. */
int rfx_factors_count(const struct rfx_plan *plan);
#endif
