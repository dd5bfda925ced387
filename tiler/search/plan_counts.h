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
#endif
