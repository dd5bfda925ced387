/* Regions as lines: what is asked of a node, told from what is asked of one far behind it.
 *
 * Most nodes of most networks have a line: where the region of its anchor is [a, b) and not empty,
 * that of the node is [a * scale + first, (b - 1) * scale + end), cut off at the borders of its own
 * map. That the maps between are cut off, too, makes no difference: what lies at their borders asks
 * for what lies at the next map's, or beyond. So regions of many parts take no walk from map to
 * map. Pinned by test_stage_sweep.c, which holds them equal to such walks. */
#ifndef RFX_RF_ANALYSIS_FLOW_LINE_H
#define RFX_RF_ANALYSIS_FLOW_LINE_H

#include "rf_analysis/flow.h"

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
