/* What the steps of a plan come to, node by node, without going through them all.
 *
 * A stage computes of a node the product of some ranges of rows, which its mode gives alike ones
 * together (sweep_rows), and the columns of its parts across. So do groups inside: what a step
 * makes of each of their maps is rows times columns, and only how rows are cut depends on the
 * columns, by the number of strips that these are cut into. */
#ifndef RFX_TILER_SEARCH_PLAN_COUNTS_H
#define RFX_TILER_SEARCH_PLAN_COUNTS_H

#include "tiler/plan/plan.h"

struct rfx_node_counts {
    uint64_t macs;
    int64_t steps;  /* that run the node */
    int64_t pieces; /* of a group, in all steps: what threads share out; else as many as steps */
};

/* Fills counts[n_nodes]. O(steps of a part that are unlike + parts across that are unlike);
 * O(steps) when a mode cannot give its rows. OUT_OF_MEMORY; CANCELLED. */
RFX_NODISCARD enum rfx_status rfx_plan_count_nodes(const struct rfx_plan *plan,
                                                   struct rfx_node_counts *counts,
                                                   struct rfx_error *err);

/* The same, every step walked. */
RFX_NODISCARD enum rfx_status rfx_plan_count_by_steps(const struct rfx_plan *plan,
                                                      struct rfx_node_counts *counts,
                                                      struct rfx_error *err);

/* MACs of each stage into macs[n_stages]. */
RFX_NODISCARD enum rfx_status rfx_plan_count_stage_macs(const struct rfx_plan *plan, uint64_t *macs,
                                                        struct rfx_error *err);

/* MACs of all steps: where nodes cost by how their maps are cut (groups), this is what a run makes.
 */
RFX_NODISCARD enum rfx_status rfx_plan_count_step_macs(const struct rfx_plan *plan, uint64_t *macs,
                                                       struct rfx_error *err);

struct rfx_plan_group {
    const struct rfx_group_attr *attr; /* the plan's */
    size_t ring_bytes;                 /* of the maps inside, per thread */
    int64_t steps;                     /* of the schedule */
    int64_t items;                     /* pieces of all steps: what threads share out */
};

/* Nodes that the plan's graph computes, one by one or in groups, and those in groups. */
struct rfx_plan_group_counts {
    int layers, grouped, groups;
    int64_t most_cols, most_rows; /* of a strip, of a step */
};
struct rfx_plan_group_counts rfx_plan_count_groups(const struct rfx_plan *plan);

/* The groups by rising nodes, as many as rfx_plan_count_groups says, into groups. Cost as
 * rfx_plan_count_nodes. */
RFX_NODISCARD enum rfx_status rfx_plan_list_groups(const struct rfx_plan *plan,
                                                   struct rfx_plan_group *groups,
                                                   struct rfx_error *err);
#endif
