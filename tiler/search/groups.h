/* Which nodes are computed depth first, as groups: where maps between them need not leave a core's
 * cache, against edges of strips that are computed twice and weights that are read again.
 *
 * The choice is a matter of predicted time (cost.h) alone: the bits are the same. */
#ifndef RFX_TILER_SEARCH_GROUPS_H
#define RFX_TILER_SEARCH_GROUPS_H

#include "layers/graph/group.h"
#include "tiler/plan/plan.h"

/* Groups of a graph for so many threads, each with cache.second_bytes of its own: writes at most
 * n_nodes / 2 of them, by rising nodes, returns how many. kept: nodes that must stay readable, or
 * NULL. OUT_OF_MEMORY. O(nodes). */
RFX_NODISCARD enum rfx_status rfx_groups_choose(const struct rfx_graph *graph,
                                                const struct rfx_caches *caches, int threads,
                                                int kept, struct rfx_group_attr *groups,
                                                int *n_groups, struct rfx_error *err);
#endif
