/* Groups of nodes that are computed depth first: a rectangle is cut into pieces, column strips or
 * runs of their rows, and of a piece a few rows at a time go through all nodes while they are in a
 * core's cache. The maps between the nodes are never stored.
 *
 * A group is a node like any other (RFX_OP_GROUP, ops/group.c), so whatever runs, places, counts or
 * checks nodes does so for groups. The graph with groups has the nodes of its base under the same
 * indices: the last node of a group becomes the group, those before it become INNER, which has no
 * inputs and no reader.
 *
 * Invariants: 1. a group is a run of nodes that follow each other in the graph, all local in space;
 * 2. only its last node is read by others or is an output; 3. its nodes and the base outlive it;
 * 4. a group gives the bits that its nodes give one by one. */
#ifndef RFX_LAYERS_GRAPH_GROUP_H
#define RFX_LAYERS_GRAPH_GROUP_H

#include "layers/core/rect.h"
#include "layers/graph/graph.h"

#define RFX_GROUP_MAX_NODES 12
#define RFX_GROUP_MAX_INPUTS 8 /* of the group, and of each of its nodes */

/* Why nodes first .. last may not be a group, in words; NULL: they may. */
const char *rfx_group_refusal(const struct rfx_graph *base, int first, int last);

/* The base with these groups, by rising nodes, none overlapping; their `base` is set here. Every
 * one may be a group. Freed with rfx_graph_free before the base. */
RFX_NODISCARD enum rfx_status rfx_graph_group(const struct rfx_graph *base,
                                              const struct rfx_group_attr *groups, int n_groups,
                                              struct rfx_graph **out, struct rfx_error *err);

/* What is needed of each node's map along one axis (0 rows, 1 columns), inside it, for `out` of the
 * last one: need[last - first + 1]. */
void rfx_group_needs(const struct rfx_group_attr *group, int axis, struct rfx_range out,
                     struct rfx_range *need);

/* What the nodes that read input k of a group's node need of it together, for `out` of the last
 * one. */
struct rfx_range rfx_group_in_range(const struct rfx_node *node, int k, int axis,
                                    struct rfx_range out);

/* The same, asked node by node; for tests that hold the two equal. */
struct rfx_range rfx_group_in_range_by_nodes(const struct rfx_node *node, int k, int axis,
                                             struct rfx_range out);

/* Whether no map inside is read over its border for `out` of the last one: what is needed of each
 * then moves with `out`, and so do the needs of any part of it. */
bool rfx_group_is_inside(const struct rfx_group_attr *group, int axis, struct rfx_range out);

/* Positions of each node's map that are made along one axis for `out` of the last one, cut into so
 * many parts: what two of them need counts twice. made[last - first + 1]. */
void rfx_group_made(const struct rfx_group_attr *group, int axis, struct rfx_range out,
                    int64_t parts, int64_t *made);

/* The most positions of each node's map that `size` positions of the last one need. */
void rfx_group_extents(const struct rfx_group_attr *group, int axis, int64_t size,
                       int64_t *extents);

/* Into how many column strips a rectangle of so many output columns is cut: as many for each
 * thread, where they do not become too narrow by it. */
int64_t rfx_group_strips(const struct rfx_group_attr *group, int64_t cols);

/* Into how many runs of rows each of these strips is cut, so that threads share out pieces enough:
 * few, for each makes some rows of inner maps again. */
int64_t rfx_group_row_parts(const struct rfx_group_attr *group, int64_t rows, int64_t strips);

/* Bytes of the maps between a group's nodes that one thread holds. */
size_t rfx_group_ring_bytes(const struct rfx_group_attr *group);
#endif
