/* Groups of nodes that are computed depth first. A rectangle of the output is cut into pieces:
 * column strips, or runs of rows of a strip. Within a piece, a few rows at a time go through all
 * nodes of the group while they are in a core's cache. The maps between the nodes are never stored
 * as a whole.
 *
 * A group is itself a node (RFX_OP_GROUP, ops/group.c), so all code that runs, places, counts or
 * checks nodes handles groups too. The graph with groups has the nodes of its base graph under the
 * same indices. The last node of a group becomes the group; the nodes before it become INNER, which
 * have no inputs and no reader.
 *
 * Invariants: 1. a group is a run of consecutive nodes of the graph, all local in space; 2. only
 * its last node is read from outside or is an output; 3. the base graph and its nodes outlive the
 * group; 4. a group yields the same bits as its nodes run one by one. */
#ifndef RFX_LAYERS_GRAPH_GROUP_H
#define RFX_LAYERS_GRAPH_GROUP_H

#include "layers/core/rect.h"
#include "layers/graph/graph.h"

#define RFX_GROUP_MAX_NODES 12
#define RFX_GROUP_MAX_INPUTS 8 /* inputs of a group, and of each of its nodes */

/* Returns the reason, in words, why nodes first .. last cannot be a group; NULL if they can. */
const char *rfx_group_refusal(const struct rfx_graph *base, int first, int last);

/* Makes a copy of graph `base` in which each of these groups is one node (RFX_OP_GROUP). The groups
 * are in ascending order and do not overlap. Each must be a valid group (rfx_group_refusal); its
 * member `base` need not be set. The caller frees *out with rfx_graph_free, before `base`. */
RFX_NODISCARD enum rfx_status rfx_graph_group(const struct rfx_graph *base,
                                              const struct rfx_group_attr *groups, int n_groups,
                                              struct rfx_graph **out, struct rfx_error *err);

/* Computes the range of each node's map that is needed, along one axis (0 rows, 1 columns), for
 * range `out` of the last node's map. Ranges are clipped to the maps. need[last - first + 1]. */
void rfx_group_needs(const struct rfx_group_attr *group, int axis, struct rfx_range out,
                     struct rfx_range *need);

/* Returns the range of input k, along one axis, that is read for range `out` of the last node's
 * map: the union of the ranges that the nodes of the group read. */
struct rfx_range rfx_group_in_range(const struct rfx_node *node, int k, int axis,
                                    struct rfx_range out);

/* As rfx_group_in_range, but computed node by node; for tests that compare the two. */
struct rfx_range rfx_group_in_range_by_nodes(const struct rfx_node *node, int k, int axis,
                                             struct rfx_range out);

/* Returns whether computing range `out` of the last node's map needs no position beyond the border
 * of a map between the nodes of the group. If so, the same holds for every part of `out`. As long
 * as it holds, the needed ranges keep their sizes when `out` moves. */
bool rfx_group_is_inside(const struct rfx_group_attr *group, int axis, struct rfx_range out);

/* Computes, for each node, how many positions of its map are computed along one axis if range `out`
 * of the last node is divided into `parts` pieces. A position that two pieces need counts twice.
 * made[last - first + 1]. */
void rfx_group_made(const struct rfx_group_attr *group, int axis, struct rfx_range out,
                    int64_t parts, int64_t *made);

/* Computes the largest number of positions of each node's map that `size` positions of the last
 * node need. extents[last - first + 1]. */
void rfx_group_extents(const struct rfx_group_attr *group, int axis, int64_t size,
                       int64_t *extents);

/* Returns the number of column strips for a rectangle of `cols` output columns. Each thread gets
 * the same number of strips, unless the strips would become too narrow. */
int64_t rfx_group_strips(const struct rfx_group_attr *group, int64_t cols);

/* Returns the number of runs of rows that each strip is cut into, so that there are enough pieces
 * for all threads. The number is small because each run computes some rows of inner maps again. */
int64_t rfx_group_row_parts(const struct rfx_group_attr *group, int64_t rows, int64_t strips);

/* Returns how many bytes of the maps between the nodes of a group one thread holds. */
size_t rfx_group_ring_bytes(const struct rfx_group_attr *group);
#endif
