/* TODO */
#ifndef RFX_RF_ANALYSIS_FLOW_H
#define RFX_RF_ANALYSIS_FLOW_H

#include "rf_analysis/regions.h"

/* For output positions [a, b) that reach into [lo, hi), and beyond it only up to a border of the
 * map: input positions [a * scale + first, (b - 1) * scale + end); from `low` on where a < lo, up
 * to `high` where b > hi. Never known: lo = hi. */
struct rfx_flow {
    int64_t scale, first, end;
    int64_t lo, hi, low, high;
    int64_t extent; /* of the node's map */
    int64_t room;   /* of the input's map */
    int node, in, k;
};

/* The flow to input k of a node. O(1); of some inputs of groups, O(edges of the group). */
struct rfx_flow rfx_flow_of(const struct rfx_graph *graph, int node, int k, enum rfx_axis axis);

/* rfx_input_range for a range that is not empty. */
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

/* Regions as lines: what is asked of a node, told from what is asked of one far behind it.
 *
 * Most nodes of most networks have a line: where the region of its anchor is [a, b) and not empty,
 * that of the node is [a * scale + first, (b - 1) * scale + end), cut off at the borders of its own
 * map. That the maps between are cut off, too, makes no difference: what lies at their borders asks
 * for what lies at the next map's, or beyond. So regions of many parts take no walk from map to
 * map. Pinned by test_stage_sweep.c, which holds them equal to such walks. */

enum { RFX_LINE_UNKNOWN = -1 };

struct rfx_line {
    int anchor; /* UNKNOWN: nobody has asked yet; the node itself: it has no line */
    int64_t scale, first, end;
};

/* From the last node to the first: settles the line of a node all of whose readers were passed on.
 * Returns whether it has one; else it is an anchor. */
bool rfx_line_settle(struct rfx_line *lines, int node);

/* Passes the line of a flow's node on to what it asks for. */
void rfx_line_pass(struct rfx_line *lines, const struct rfx_flow *flow);

/* The same for all inputs of a group of which something is known: the flows of the nodes inside are
 * passed on one by one. */
void rfx_line_pass_group(struct rfx_line *lines, const struct rfx_graph *graph, int node,
                         enum rfx_axis axis);

/* The region of a node whose map has so many positions. Of `unclamped`: where no map between is cut
 * off, as it is asked for. */
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
