/* Variants of a graph: with groups of nodes that are computed depth first, and with the transformed
 * weights of Winograd convolutions stored or computed during the run.
 *
 * Inside a group, maps can stay in a core's cache. In return, the edges of strips and of the rows
 * of a step are computed twice, and weights are read again. Groups are chosen for whole maps; in a
 * plan of short steps some are given up again. Stored transformed weights save a quarter of the
 * time and take four times the bytes of the weights. Only predicted time (cost.h) decides between
 * variants; all variants give the same bits. */
#ifndef RFX_TILER_SEARCH_GRAPH_VARIANTS_H
#define RFX_TILER_SEARCH_GRAPH_VARIANTS_H

#include "layers/graph/group.h"
#include "tiler/plan/plan.h"

/* Chooses groups for a number of threads, each of which has caches->second_bytes of cache of its
 * own. Writes at most n_nodes / 2 groups, in the order of their nodes. kept: a node whose map must
 * exist, so it may only be the last node of a group; -1: none. OUT_OF_MEMORY. O(nodes). */
RFX_NODISCARD enum rfx_status rfx_groups_choose(const struct rfx_graph *graph,
                                                const struct rfx_caches *caches, int threads,
                                                int kept, struct rfx_group_attr *groups,
                                                int *n_groups, struct rfx_error *err);

/* Makes the graph with the request's groups, or with groups chosen for its caches. Leaves *out
 * unchanged if there are no groups. INVALID_ARGUMENT: the request's groups are not valid. Free the
 * result before the graph. */
RFX_NODISCARD enum rfx_status rfx_groups_apply(const struct rfx_graph *graph,
                                               const struct rfx_plan_request *request,
                                               struct rfx_graph **out, struct rfx_error *err);

/* Returns the gain up to which groups are given up so that, of a plan's MACs, at most `few` are
 * left: the least such gain of 0 or more; 0 if too many are left without any group. gains[n]: what
 * each group saves per MAC that it computes again, or a loss below 0; HUGE_VAL: no group. again[n]:
 * those MACs. O(n x groups). */
double rfx_groups_least_gain(const double *gains, const double *again, int n, double macs,
                             double few);

/* Returns the number of convolutions of a plan that store transformed weights although they could
 * compute them during the run. */
int rfx_factors_count(const struct rfx_plan *plan);
#endif
