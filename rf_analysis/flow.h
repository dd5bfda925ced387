/* What one input of a node has to provide along one axis, as numbers: for the many ranges that
 * planners ask for. Where a node's rule is not linear, or a group is read across borders inside,
 * the node's own rule is asked. test_flow.c compares both.
 *
 * Regions as lines: what is needed of a node, computed from what is needed of a node far behind it
 * (its anchor). Most nodes of most networks have a line: where the region of the anchor is [a, b)
 * and not empty, that of the node is [a * scale + first, (b - 1) * scale + end), clipped at the
 * borders of its own map. Clipping of the maps between does not matter, because positions at their
 * borders need positions at the next map's border or beyond. So the regions of many tiles need no
 * walk from map to map. test_stage_sweep.c compares lines with such walks. */
#ifndef RFX_RF_ANALYSIS_FLOW_H
#define RFX_RF_ANALYSIS_FLOW_H

#include "rf_analysis/regions.h"

/* For output positions [a, b) that reach into [lo, hi), and beyond it only up to a border of the
 * map: input positions [a * scale + first, (b - 1) * scale + end); from `low` on where a < lo, up
 * to `high` where b > hi. lo = hi: the rule is not linear. */
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

/* The anchor of a node that no reader has reached yet. */

enum { RFX_LINE_UNKNOWN = -1 };

struct rfx_line {
    int anchor; /* UNKNOWN: no reader so far; the node itself: it has no line */
    int64_t scale, first, end;
};

/* Settles the line of a node after all its readers; nodes are settled from the last to the first.
 * Returns whether the node has a line; otherwise it is an anchor. */
bool rfx_line_settle(struct rfx_line *lines, int node);

/* Extends the line of a flow's node to the input that the flow reads. */
void rfx_line_pass(struct rfx_line *lines, const struct rfx_flow *flow);

/* The same for all inputs of a group, by the flows of the nodes inside. */
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
