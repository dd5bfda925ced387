/* Counting groups of a plan; see plan_groups.h. */
#include "tiler/search/plan_groups.h"

#include "layers/core/checked.h"
#include "layers/graph/group.h"
#include "tiler/plan/schedule.h"

struct rfx_plan_group_counts rfx_plan_count_groups(const struct rfx_plan *plan) {
    struct rfx_plan_group_counts counts = {0};
    for (int i = 0; i < plan->graph->n_nodes; i++) {
        const struct rfx_node *node = &plan->graph->nodes[i];
        if (!rfx_node_is_input(node) && !rfx_node_is_constant(node)) counts.layers++;
        if (node->op != RFX_OP_GROUP) continue;
        const struct rfx_group_attr *g = &node->attr.group;
        counts.groups++;
        counts.grouped += g->last - g->first + 1;
        counts.most_cols = rfx_max_i64(counts.most_cols, g->strip_cols);
        counts.most_rows = rfx_max_i64(counts.most_rows, g->step_rows);
    }
    return counts;
}

/* The group whose last node it is, among the first n, or NULL. */
static struct rfx_plan_group *find_group(struct rfx_plan_group *groups, int n, int node) {
    int lo = 0;
    while (lo < n) {
        int mid = lo + (n - lo) / 2;
        if (groups[mid].attr->last == node) return &groups[mid];
        if (groups[mid].attr->last < node)
            lo = mid + 1;
        else
            n = mid;
    }
    return NULL;
}

enum rfx_status rfx_plan_list_groups(const struct rfx_plan *plan, struct rfx_plan_group *groups,
                                     struct rfx_error *err) {
    struct rfx_schedule *schedule;
    struct rfx_step step;
    int n = 0;
    enum rfx_status status = rfx_schedule_create(plan, &schedule, err);
    if (status != RFX_OK) return status;
    for (int i = 0; i < plan->graph->n_nodes; i++) {
        const struct rfx_node *node = &plan->graph->nodes[i];
        if (node->op != RFX_OP_GROUP) continue;
        groups[n++] = (struct rfx_plan_group){
            .attr = &node->attr.group, .ring_bytes = rfx_group_ring_bytes(&node->attr.group)};
    }
    while (rfx_schedule_next(schedule, &step)) {
        struct rfx_plan_group *group =
            step.kind == RFX_STEP_RUN ? find_group(groups, n, step.node) : NULL;
        if (group == NULL) continue;
        group->steps++;
        int64_t strips = rfx_group_strips(group->attr, rfx_rect_cols(step.rect));
        group->items +=
            strips * rfx_group_row_parts(group->attr, rfx_rect_rows(step.rect), strips);
    }
    rfx_schedule_free(schedule);
    return RFX_OK;
}
