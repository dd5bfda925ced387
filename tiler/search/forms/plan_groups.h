/* The groups of a plan (layers/graph/group.h) as its stages run them. */
#ifndef RFX_TILER_SEARCH_FORMS_PLAN_GROUPS_H
#define RFX_TILER_SEARCH_FORMS_PLAN_GROUPS_H

#include "tiler/plan/plan.h"

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
