/* What a stage computes: from its targets back to the image or to what earlier stages stored.
 *
 * Invariants: 1. a stage computes a node when a target needs it and no earlier stage has stored it,
 * or a stage has forgotten it since; 2. everything in a stage of a local mode is local in space,
 * except for reductions that are targets; 3. the tiles of a stage cut the maps of all its targets
 * into the same grid. The stage does not know where anything is stored. */
#ifndef RFX_TILER_PLAN_STAGE_H
#define RFX_TILER_PLAN_STAGE_H

#include "rf_analysis/regions.h"
#include "tiler/plan/plan.h"
#include "tiler/plan/tiling.h"

/* Checks that the mode supports the tiles, bands and flags of a specification. INVALID_ARGUMENT
 * says which it does not. */
RFX_NODISCARD enum rfx_status rfx_stage_check(const struct rfx_stage_spec *spec,
                                              struct rfx_error *err);

/* Fills places[n_nodes] for a stage. Adds what the stage stores to stored[n_nodes] and removes what
 * it forgets; spilled[n_nodes] (NULL: no stage spills) marks those of them that lie in files. emit:
 * outputs become EMITTED, not stored, where the mode can hand them out. INVALID_ARGUMENT names the
 * node: a target that is stored already, is a constant, cannot be spilled or is not local in space;
 * no target at all; a node to forget that is not stored or is an output. */
RFX_NODISCARD enum rfx_status rfx_stage_places(const struct rfx_graph *graph,
                                               const struct rfx_stage_spec *spec, bool emit,
                                               bool *stored, bool *spilled,
                                               enum rfx_node_place *places, struct rfx_error *err);

/* Computes the regions along one axis for tile `tile` of `n` of the targets: what has to be
 * computed of each node. Fills regions[n_nodes]; nodes that are not computed here have empty
 * regions. O(edges). */
void rfx_stage_regions(const struct rfx_graph *graph, const enum rfx_node_place *places,
                       enum rfx_axis axis, int64_t n, int64_t tile,
                       struct rfx_axis_region *regions);

/* Returns the range of a target's own map (of a reduction: of its input's map) that belongs to tile
 * `tile` of `n`. */
struct rfx_range rfx_stage_target_range(const struct rfx_graph *graph, int node,
                                        enum rfx_node_place place, enum rfx_axis axis, int64_t n,
                                        int64_t tile);

#define RFX_SWEEP_REGIONS 3 /* tables of n_nodes used as scratch by a sweep */

/* Receives the regions of the first of several consecutive tiles; the other tiles have regions of
 * the same sizes. Where `tiles` is above 1, no border clips any region, also not inside of a group.
 */
typedef void rfx_tile_adder(void *user, const struct rfx_axis_region *regions, int64_t tiles);

/* Passes the regions of all n tiles of an axis to `add`, in order. In each run of equal tiles, the
 * first and the last one are passed separately. regions: scratch of RFX_SWEEP_REGIONS * n_nodes.
 * O(tiles clipped by a border * edges). */
void rfx_stage_sweep(const struct rfx_graph *graph, const enum rfx_node_place *places,
                     enum rfx_axis axis, int64_t n, struct rfx_axis_region *regions,
                     rfx_tile_adder *add, void *user);

/* Computes the largest and total extents over all n tiles of an axis into extents[n_nodes]. regions
 * and cost as above. */
void rfx_stage_extents(const struct rfx_graph *graph, const enum rfx_node_place *places,
                       enum rfx_axis axis, int64_t n, struct rfx_axis_region *regions,
                       struct rfx_tile_extent *extents);

/* Reduces the tile counts of a specification with targets to at most one tile per position. */
void rfx_stage_limit_tiles(const struct rfx_graph *graph, struct rfx_stage_spec *spec);

/* Returns whether the stage's tiles have fewer columns than the maps. */
bool rfx_stage_cuts_cols(const struct rfx_stage_spec *spec);
#endif
