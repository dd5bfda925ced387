/* Counts of a plan's steps, node by node, without walking all steps.
 *
 * A stage computes of each node the product of some row ranges and the columns of its tiles across;
 * its mode passes equal row ranges together (sweep_rows). The same holds inside of groups: a step
 * computes rows times columns of each map, and only the cutting of rows depends on the columns,
 * through the number of strips they are cut into. */
#ifndef RFX_TILER_SEARCH_PLAN_COUNTS_H
#define RFX_TILER_SEARCH_PLAN_COUNTS_H

#include "tiler/plan/plan.h"

struct rfx_node_counts {
    uint64_t macs;
    int64_t steps;  /* steps that run the node */
    int64_t pieces; /* of a group, in all steps: the pieces that threads share; otherwise equal to
                       steps */
};

/* Fills counts[n_nodes]. O(different steps of a tile + different tiles across), or O(steps) when a
 * mode cannot pass its rows. OUT_OF_MEMORY; CANCELLED. */
RFX_NODISCARD enum rfx_status rfx_plan_count_nodes(const struct rfx_plan *plan,
                                                   struct rfx_node_counts *counts,
                                                   struct rfx_error *err);

/* The same, computed by walking every step. */
RFX_NODISCARD enum rfx_status rfx_plan_count_by_steps(const struct rfx_plan *plan,
                                                      struct rfx_node_counts *counts,
                                                      struct rfx_error *err);

/* Fills macs[n_stages] with the MACs of each stage. */
RFX_NODISCARD enum rfx_status rfx_plan_count_stage_macs(const struct rfx_plan *plan, uint64_t *macs,
                                                        struct rfx_error *err);

/* Returns the MACs of all steps. Where the MACs of a node depend on how its map is cut (groups),
 * this is what a run computes. */
RFX_NODISCARD enum rfx_status rfx_plan_count_step_macs(const struct rfx_plan *plan, uint64_t *macs,
                                                       struct rfx_error *err);

struct rfx_plan_group {
    const struct rfx_group_attr *attr; /* borrowed from the plan */
    size_t ring_bytes;                 /* of the maps inside of the group, per thread */
    int64_t steps;                     /* steps of the schedule */
    int64_t items;                     /* pieces of all steps, which threads share */
};

/* Number of nodes that the plan's graph computes, alone or in groups, and of those in groups. */
struct rfx_plan_group_counts {
    int layers, grouped, groups;
    int64_t most_cols, most_rows; /* most columns of a strip, most rows of a step */
};
struct rfx_plan_group_counts rfx_plan_count_groups(const struct rfx_plan *plan);

/* Lists the groups by rising nodes, as many as rfx_plan_count_groups counts. Cost as
 * rfx_plan_count_nodes. */
RFX_NODISCARD enum rfx_status rfx_plan_list_groups(const struct rfx_plan *plan,
                                                   struct rfx_plan_group *groups,
                                                   struct rfx_error *err);
#endif
