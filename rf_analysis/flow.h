/* What one input of a node has to provide along one axis, as numbers: for the many ranges that
 * planners ask for. Where a node's rule is not even, or groups are read over borders inside, the
 * node itself is asked. Pinned by test_flow.c, which holds both equal. */
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
#endif
