/* Splits (aggregation points): nodes at which a network can be cut into a tiled head and a whole
 * tail.
 *
 * A node is a legal split when its tensor is the only one alive after it and everything before it
 * is local in space (paper 003, section 2.3; for a DAG: the node dominates the rest). */
#ifndef RFX_TILER_PLAN_SPLITS_H
#define RFX_TILER_PLAN_SPLITS_H

#include "layers/graph/graph.h"

/* Writes the legal splits, in graph order, into splits[n_nodes] and returns their number. */
int rfx_splits_list(const struct rfx_graph *graph, int *splits);

/* Finds the legal split with a name: a node's name or alias, or a module path such as "features.6"
 * (then the last node below it). INVALID_ARGUMENT names the nearest legal splits. */
RFX_NODISCARD enum rfx_status rfx_split_find(const struct rfx_graph *graph, const char *name,
                                             int *out, struct rfx_error *err);

/* Returns whether `candidate` (may be NULL) is `name` or lies below the module `name`: "a.b" below
 * "a". */
bool rfx_name_is_below(const char *candidate, const char *name);

/* Returns the name under which a split is shown: its alias where it has one. */
const char *rfx_split_label(const struct rfx_graph *graph, int split);
#endif
