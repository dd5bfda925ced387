/* Counting groups of a plan; see plan_groups.h. */
#include "tiler/search/forms/plan_groups.h"

#include "layers/core/checked.h"
#include "layers/graph/group.h"
#include "tiler/search/plan_counts.h"

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

enum rfx_status rfx_plan_list_groups(const struct rfx_plan *plan, struct rfx_plan_group *groups,
                                     struct rfx_error *err) {
    size_t n_nodes = (size_t)plan->graph->n_nodes;
    struct rfx_node_counts *counts = rfx_memory_calloc(plan->mem, n_nodes, sizeof *counts);
    if (counts == NULL)
        return rfx_memory_fail(plan->mem, "groups of a plan", n_nodes * sizeof *counts, err);
    enum rfx_status status = rfx_plan_count_nodes(plan, counts, err);
    int n = 0;
    for (int i = 0; status == RFX_OK && i < plan->graph->n_nodes; i++) {
        const struct rfx_node *node = &plan->graph->nodes[i];
        if (node->op != RFX_OP_GROUP) continue;
        groups[n++] = (struct rfx_plan_group){
            .attr = &node->attr.group,
            .ring_bytes = rfx_group_ring_bytes(&node->attr.group),
            .steps = counts[i].steps,
            .items = counts[i].pieces,
        };
    }
    rfx_memory_release(plan->mem, counts);
    return status;
}
