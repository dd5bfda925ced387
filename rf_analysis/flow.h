/* Flows: the range of an input that a node needs along one axis, as a linear rule in numbers,
 * because planners compute such ranges many times. If a node's rule is not linear, or a group's
 * inner maps are clipped at a border, the node's own rule is called. test_flow.c compares both.
 *
 * Lines: the region of a node, computed directly from the region of a later node, its anchor. Most
 * nodes of most networks have a line. If the anchor's region is [a, b) and not empty, the node's
 * region is [a * scale + first, (b - 1) * scale + end), clipped at the borders of the node's map.
 * Clipping of the maps in between does not matter, because positions at their borders need
 * positions at the next map's border or beyond it. So the regions of many tiles take no walk from
 * map to map. test_stage_sweep.c compares lines with such walks. */
#ifndef RFX_RF_ANALYSIS_FLOW_H
#define RFX_RF_ANALYSIS_FLOW_H

#include "rf_analysis/regions.h"

/* The rule of one input of a node. Output positions [a, b) need the input positions [a * scale +
 * first, (b - 1) * scale + end). If a < lo, the input range begins at `low` instead; if b > hi, it
 * ends at `high`. The rule holds for ranges that reach into [lo, hi), and beyond it only up to a
 * border of the map. lo = hi: the rule is not linear. */
struct rfx_flow {
    int64_t scale, first, end;
    int64_t lo, hi, low, high;
    int64_t extent; /* positions of the node's map */
    int64_t room;   /* positions of the input's map */
    int node, in, k;
};

/* Returns the flow to input k of a node. O(1); for some inputs of groups O(edges of the group). */
struct rfx_flow rfx_flow_of(const struct rfx_graph *graph, int node, int k, enum rfx_axis axis);

/* Returns rfx_input_range for a range that is not empty. */
static inline struct rfx_range rfx_flow_range(const struct rfx_flow *flow,
                                              const struct rfx_graph *graph, enum rfx_axis axis,
                                              struct rfx_range out) {
    bool known = rfx_max_i64(out.lo, flow->lo) < rfx_min_i64(out.hi, flow->hi) &&
                 (out.lo >= flow->lo || out.lo == 0) &&
                 (out.hi <= flow->hi || out.hi == flow->extent);
    if (!known) return rfx_input_range(graph, &graph->nodes[flow->node], flow->k, axis, out);
    struct rfx_range in = {out.lo < flow->lo ? flow->low : out.lo * flow->scale + flow->first,
                           out.hi > flow->hi ? flow->high : (out.hi - 1) * flow->scale + flow->end};
    return in;
}

/* In place of an anchor: no reader of the node has been passed yet. */
enum { RFX_LINE_UNKNOWN = -1 };

struct rfx_line {
    int anchor; /* a later node, or RFX_LINE_UNKNOWN; the node itself: it has no line */
    int64_t scale, first, end;
};

/* Settles the line of a node after all its readers; nodes are settled from the last to the first.
 * Returns whether the node has a line; otherwise it is an anchor. */
bool rfx_line_settle(struct rfx_line *lines, int node);

/* Extends the line of a flow's node to the input that the flow reads. */
void rfx_line_pass(struct rfx_line *lines, const struct rfx_flow *flow);

/* Extends the line of a group to all its inputs, by the flows of the nodes inside. */
void rfx_line_pass_group(struct rfx_line *lines, const struct rfx_graph *graph, int node,
                         enum rfx_axis axis);

/* Returns the region of a node whose map has `extent` positions. `unclamped` is exact where no map
 * between is clipped. */
static inline struct rfx_axis_region rfx_line_region(const struct rfx_line *line, int64_t extent,
                                                     struct rfx_range anchor) {
    struct rfx_axis_region region;
    region.unclamped = (struct rfx_range){anchor.lo * line->scale + line->first,
                                          (anchor.hi - 1) * line->scale + line->end};
    region.clamped = (struct rfx_range){rfx_max_i64(region.unclamped.lo, 0),
                                        rfx_min_i64(region.unclamped.hi, extent)};
    return region;
}
#endif
