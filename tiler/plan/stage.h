/* TODO */
#ifndef RFX_TILER_PLAN_STAGE_H
#define RFX_TILER_PLAN_STAGE_H

#include "rf_analysis/regions.h"
#include "tiler/plan/plan.h"
#include "tiler/plan/tiling.h"

/* Whether parts, bands and flags are what the mode knows: INVALID_ARGUMENT in words. */
RFX_NODISCARD enum rfx_status rfx_stage_check(const struct rfx_stage_spec *spec,
                                              struct rfx_error *err);

/* Fills places[n_nodes] for a stage and marks what it stores in stored[n_nodes], less what it
 * forgets, and what of that lies in a file in spilled[n_nodes] (NULL: the stages spill nothing).
 * emit: outputs that a mode which emits makes are EMITTED and not stored. INVALID_ARGUMENT, naming
 * the node: a target that is stored already or a constant; that cannot be spilled; not local in
 * space; none at all; what is to be forgotten and is not stored, or an output. */
RFX_NODISCARD enum rfx_status rfx_stage_places(const struct rfx_graph *graph,
                                               const struct rfx_stage_spec *spec, bool emit,
                                               bool *stored, bool *spilled,
                                               enum rfx_node_place *places, struct rfx_error *err);

/* Regions of one axis for part `tile` of `n` of the targets: what of each computed node has to be
 * made. Fills regions[n_nodes]; of nodes that are not computed here it is empty. O(edges). */
void rfx_stage_regions(const struct rfx_graph *graph, const enum rfx_node_place *places,
                       enum rfx_axis axis, int64_t n, int64_t tile,
                       struct rfx_axis_region *regions);

/* The part of a target's own map (of a reduction: of its input's) that tile `tile` of `n` stands
 * for. */
struct rfx_range rfx_stage_target_range(const struct rfx_graph *graph, int node,
                                        enum rfx_node_place place, enum rfx_axis axis, int64_t n,
                                        int64_t tile);

#define RFX_SWEEP_REGIONS 3 /* tables of n_nodes that a sweep writes over */

/* Takes the regions of so many parts that follow each other: those of the first; of the others the
 * sizes are the same. Of several, no border cuts anything off, nor inside of a group. */
typedef void rfx_tile_adder(void *user, const struct rfx_axis_region *regions, int64_t tiles);

/* Gives the regions of all n parts of an axis to `add`, from the first part to the last
 * (stage_sweep.c). Of each run of alike parts, the first one and the last are given by themselves.
 * regions is scratch of RFX_SWEEP_REGIONS * n_nodes. O(parts that a border cuts off * edges). */
void rfx_stage_sweep(const struct rfx_graph *graph, const enum rfx_node_place *places,
                     enum rfx_axis axis, int64_t n, struct rfx_axis_region *regions,
                     rfx_tile_adder *add, void *user);

/* Over all n parts of an axis: extents[n_nodes]. regions and cost as above. */
void rfx_stage_extents(const struct rfx_graph *graph, const enum rfx_node_place *places,
                       enum rfx_axis axis, int64_t n, struct rfx_axis_region *regions,
                       struct rfx_tile_extent *extents);

/* Takes back parts of a spec, targets given, of which there are more than positions. */
void rfx_stage_limit_parts(const struct rfx_graph *graph, struct rfx_stage_spec *spec);

/* Whether the stage's parts have fewer columns than the maps. */
bool rfx_stage_cuts_cols(const struct rfx_stage_spec *spec);
#endif
