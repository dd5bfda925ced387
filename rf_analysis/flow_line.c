/* Lines joined edge by edge; see flow_line.h. */
#include "rf_analysis/flow_line.h"

#include "layers/graph/group.h"
#include "layers/graph/op.h"

#define MOST_SCALE ((int64_t)1 << 20) /* times a position: far below what 64 bits hold */

/* Whether a flow is even up to the borders of its node's map, asks there for what is next to those
 * of the input's or beyond, and everywhere for something inside. */
static bool reaches_borders(const struct rfx_flow *flow) {
    int64_t last = (flow->extent - 1) * flow->scale;
    bool even = flow->lo <= 0 && flow->hi >= flow->extent;
    return even && flow->first <= 0 && flow->end > 0 && last + flow->first < flow->room &&
           last + flow->end >= flow->room;
}

/* Two flows into `to`, which has number `in`, must be of one anchor and scale. */
static void join(const struct rfx_line *from, const struct rfx_flow *flow, int in,
                 struct rfx_line *to) {
    struct rfx_line next = {from->anchor, from->scale * flow->scale,
                            from->first * flow->scale + flow->first,
                            (from->end - 1) * flow->scale + flow->end};
    bool joins = reaches_borders(flow) && next.scale <= MOST_SCALE;
    if (joins && to->anchor == RFX_LINE_UNKNOWN) {
        *to = next;
    } else if (joins && to->anchor == next.anchor && to->scale == next.scale) {
        to->first = rfx_min_i64(to->first, next.first);
        to->end = rfx_max_i64(to->end, next.end);
    } else {
        to->anchor = in;
    }
}

bool rfx_line_settle(struct rfx_line *lines, int node) {
    struct rfx_line *line = &lines[node];
    if (line->anchor != RFX_LINE_UNKNOWN && line->anchor != node) return true;
    *line = (struct rfx_line){node, 1, 0, 1};
    return false;
}

void rfx_line_pass(struct rfx_line *lines, const struct rfx_flow *flow) {
    join(&lines[flow->node], flow, flow->in, &lines[flow->in]);
}

/* Lines of the nodes inside; false: one of them has none. */
static bool pass_inside(const struct rfx_group_attr *group, enum rfx_axis axis,
                        struct rfx_line *inside) {
    for (int i = group->last; i > group->first; i--) {
        const struct rfx_line *from = &inside[i - group->first];
        for (int k = 0; k < group->base->nodes[i].n_in; k++) {
            int to = group->base->nodes[i].in[k] - group->first;
            if (to < 0) continue;
            struct rfx_flow flow = rfx_flow_of(group->base, i, k, axis);
            join(from, &flow, RFX_LINE_UNKNOWN, &inside[to]);
            if (inside[to].anchor == RFX_LINE_UNKNOWN) return false;
        }
    }
    return true;
}

void rfx_line_pass_group(struct rfx_line *lines, const struct rfx_graph *graph, int node,
                         enum rfx_axis axis) {
    const struct rfx_group_attr *group = &graph->nodes[node].attr.group;
    struct rfx_line inside[RFX_GROUP_MAX_NODES];
    for (int i = group->first; i < group->last; i++)
        inside[i - group->first].anchor = RFX_LINE_UNKNOWN;
    inside[group->last - group->first] = lines[node];
    if (!pass_inside(group, axis, inside)) {
        for (int k = 0; k < graph->nodes[node].n_in; k++)
            lines[graph->nodes[node].in[k]].anchor = graph->nodes[node].in[k];
        return;
    }
    for (int i = group->last; i >= group->first; i--)
        for (int k = 0; k < group->base->nodes[i].n_in; k++) {
            int in = group->base->nodes[i].in[k];
            if (in >= group->first || rfx_node_is_constant(&graph->nodes[in])) continue;
            struct rfx_flow flow = rfx_flow_of(group->base, i, k, axis);
            join(&inside[i - group->first], &flow, in, &lines[in]);
        }
}
