/* Flows: the rules of operators as numbers; and lines, which join flows edge by edge. */
#include "rf_analysis/flow.h"

#include "layers/conv/conv_backend.h"
#include "layers/graph/group.h"
#include "layers/graph/op.h"

/* Outside of any map, but near enough that products with strides fit 64 bits. */
#define EVERYWHERE ((int64_t)1 << 40)

static void set_line(struct rfx_flow *flow, int64_t scale, int64_t first, int64_t end) {
    flow->scale = scale;
    flow->first = first;
    flow->end = end;
    flow->lo = -EVERYWHERE;
    flow->hi = EVERYWHERE;
}

/* Returns the one edge by which a member reads a node; -1: none, -2: several. */
static int edge_to(const struct rfx_node *member, int node) {
    int edge = -1;
    for (int k = 0; k < member->n_in; k++)
        if (member->in[k] == node) edge = edge == -1 ? k : -2;
    return edge;
}

static bool are_alike(const struct rfx_axis_map *a, const struct rfx_axis_map *b) {
    return a->rule == b->rule && a->taps == b->taps && a->dilation == b->dilation &&
           a->down == b->down && a->up == b->up && a->pad == b->pad && a->broadcast == b->broadcast;
}

/* Returns whether the same members of a group read two of its inputs in the same way. */
static bool are_read_alike(const struct rfx_node *node, int j, int k, enum rfx_axis axis) {
    const struct rfx_group_attr *group = &node->attr.group;
    for (int i = group->first; i <= group->last; i++) {
        const struct rfx_node *member = &group->base->nodes[i];
        int to_j = edge_to(member, node->in[j]), to_k = edge_to(member, node->in[k]);
        if (to_j == -1 && to_k == -1) continue;
        if (to_j < 0 || to_k < 0) return false;
        if (rfx_op_def(member->op)->in_range != NULL && member->op != RFX_OP_CONV) return false;
        if (member->op == RFX_OP_CONV && to_j != to_k) return false;
        struct rfx_axis_map map_j = rfx_op_axis_map(group->base, member, to_j, (int)axis);
        struct rfx_axis_map map_k = rfx_op_axis_map(group->base, member, to_k, (int)axis);
        if (!are_alike(&map_j, &map_k)) return false;
    }
    return true;
}

/* Sets the flow of a group's input. The group has the numbers of its first inputs; they also hold
 * for other inputs that are read in the same way. */
static void set_group(struct rfx_flow *flow, const struct rfx_node *node, enum rfx_axis axis) {
    const struct rfx_group_reach *reach = &node->attr.group.reach[axis];
    int k = flow->k;
    for (int j = 0; k >= RFX_GROUP_REACH_INPUTS && j < RFX_GROUP_REACH_INPUTS; j++)
        if (are_read_alike(node, j, k, axis)) k = j;
    if (k >= RFX_GROUP_REACH_INPUTS || reach->in[k].scale == 0) return;
    set_line(flow, reach->in[k].scale, reach->in[k].first, reach->in[k].end);
    flow->lo = reach->lo;
    flow->hi = reach->hi;
    flow->low = reach->in[k].low;
    flow->high = reach->in[k].high;
}

/* Sets the flow of windows that move by whole positions and are not mirrored. */
static void set_map(struct rfx_flow *flow, const struct rfx_axis_map *map) {
    if (map->broadcast)
        set_line(flow, 0, 0, 1);
    else if (map->rule == RFX_AXIS_EVEN && map->up == 1 && map->down > 0)
        set_line(flow, map->down, -map->pad, (map->taps - 1) * map->dilation - map->pad + 1);
}

/* Returns whether an operator's rule equals its axis map; of convolutions, only those that are not
 * computed in whole blocks. */
static bool has_map(const struct rfx_graph *graph, const struct rfx_node *node) {
    if (node->op == RFX_OP_CONV) return rfx_conv_choice_of(graph) == RFX_CONV_DIRECT;
    return rfx_op_def(node->op)->in_range == NULL;
}

struct rfx_flow rfx_flow_of(const struct rfx_graph *graph, int at, int k, enum rfx_axis axis) {
    const struct rfx_node *node = &graph->nodes[at];
    const struct rfx_node *in = &graph->nodes[node->in[k]];
    struct rfx_flow flow = {.node = at, .in = node->in[k], .k = k};
    flow.extent = rfx_node_extent(node, axis);
    flow.room = rfx_node_extent(in, axis);
    if (rfx_op_needs_same(node)) {
        set_line(&flow, 1, 0, 1);
    } else if (!rfx_op_def(node->op)->spatial || in->out.layout == RFX_LAYOUT_PLAIN) {
        set_line(&flow, 0, 0, flow.room);
    } else if (node->op == RFX_OP_GROUP) {
        set_group(&flow, node, axis);
    } else if (has_map(graph, node)) {
        struct rfx_axis_map map = rfx_op_axis_map(graph, node, k, (int)axis);
        set_map(&flow, &map);
    }
    return flow;
}

#define MOST_SCALE ((int64_t)1 << 20) /* a position times this is far below 2^63 */

/* Returns whether a flow is linear up to the borders of its node's map, reaches the input's borders
 * there (or beyond), and always needs some position inside. */
static bool reaches_borders(const struct rfx_flow *flow) {
    int64_t last = (flow->extent - 1) * flow->scale;
    bool even = flow->lo <= 0 && flow->hi >= flow->extent;
    return even && flow->first <= 0 && flow->end > 0 && last + flow->first < flow->room &&
           last + flow->end >= flow->room;
}

/* Joins a flow to node `to` with number `in`; two flows must have the same anchor and scale,
 * otherwise `to` becomes an anchor. */
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

/* Computes the lines of the nodes inside of a group; returns false when one of them has none. */
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
