/* Counts a plan's steps, node by node, without walking all steps.
 *
 * For each node, a stage computes the product of some row ranges with the columns of its tiles
 * across. The stage's mode passes equal row ranges together (sweep_rows). The same holds inside a
 * group: a step computes rows times columns of each map. The columns affect the rows only through
 * the number of strips, which decides into how many pieces the rows are cut. */
#ifndef RFX_TILER_SEARCH_PLAN_COUNTS_H
#define RFX_TILER_SEARCH_PLAN_COUNTS_H

#include "tiler/plan/plan.h"

struct rfx_node_counts {
    uint64_t macs;
    int64_t steps;  /* steps that run the node */
    int64_t pieces; /* of a group, in all steps: the pieces that threads share; of other nodes equal
                       to steps */
};

/* Fills counts[n_nodes]. O(different steps of a tile + different tiles across), or O(steps) if a
 * mode has no sweep_rows. OUT_OF_MEMORY; CANCELLED. */
RFX_NODISCARD enum rfx_status rfx_plan_count_nodes(const struct rfx_plan *plan,
                                                   struct rfx_node_counts *counts,
                                                   struct rfx_error *err);

/* Fills counts[n_nodes] by walking every step. */
RFX_NODISCARD enum rfx_status rfx_plan_count_by_steps(const struct rfx_plan *plan,
                                                      struct rfx_node_counts *counts,
                                                      struct rfx_error *err);

/* Counts the MACs that a run computes: *all of all steps, stages[n_stages] of each stage. Either
 * may be NULL. The MACs of a group depend on how the steps cut its maps, so they are counted step
 * by step. Cost and statuses as rfx_plan_count_nodes. */
RFX_NODISCARD enum rfx_status rfx_plan_count_step_macs(const struct rfx_plan *plan, uint64_t *all,
                                                       uint64_t *stages, struct rfx_error *err);

struct rfx_plan_group {
    const struct rfx_group_attr *attr; /* borrowed from the plan */
    size_t ring_bytes;                 /* ring buffers of the maps inside the group, per thread */
    int64_t steps;                     /* steps of the schedule */
    int64_t items;                     /* pieces of all steps, which threads share */
};

/* layers: nodes that the plan's graph computes, in groups or not. grouped: nodes in groups. */
struct rfx_plan_group_counts {
    int layers, grouped, groups;
    int64_t most_cols, most_rows; /* most columns of a strip, most rows of a step */
};
struct rfx_plan_group_counts rfx_plan_count_groups(const struct rfx_plan *plan);

/* Lists the groups in the order of their nodes; rfx_plan_count_groups gives their number. Cost as
 * rfx_plan_count_nodes. */
RFX_NODISCARD enum rfx_status rfx_plan_list_groups(const struct rfx_plan *plan,
                                                   struct rfx_plan_group *groups,
                                                   struct rfx_error *err);
#endif
