/* Region back-propagation: one reverse sweep over the nodes, ranges of one axis. */
#include "rf_analysis/regions.h"

#include "layers/core/checked.h"
#include "layers/graph/op.h"

static bool range_is_empty(struct rfx_range r) {
    return r.lo >= r.hi;
}

static struct rfx_range range_clamp(struct rfx_range r, int64_t extent) {
    struct rfx_range c = {rfx_max_i64(r.lo, 0), rfx_min_i64(r.hi, extent)};
    if (c.lo >= c.hi) c.lo = c.hi = 0;
    return c;
}

struct rfx_range rfx_tile_range(int64_t extent, int64_t n, int64_t t) {
    int64_t base = extent / n;
    int64_t longer = extent % n; /* the first `longer` tiles have one position more */
    int64_t lo = base * t + rfx_min_i64(t, longer);
    return (struct rfx_range){lo, lo + base + (t < longer ? 1 : 0)};
}

struct rfx_range rfx_input_range(const struct rfx_graph *graph, const struct rfx_node *node, int k,
                                 enum rfx_axis axis, struct rfx_range out) {
    return rfx_op_in_range(graph, node, k, (int)axis, out);
}

void rfx_regions_backprop(const struct rfx_graph *graph, int target, enum rfx_axis axis,
                          struct rfx_range out, struct rfx_axis_region *regions) {
    static const struct rfx_axis_region nothing = {{0, 0}, {0, 0}};
    for (int i = 0; i < target; i++) regions[i] = nothing;
    regions[target].unclamped = out;
    regions[target].clamped = range_clamp(out, rfx_node_extent(&graph->nodes[target], axis));
    for (int i = target; i >= 0; i--) {
        const struct rfx_node *node = &graph->nodes[i];
        struct rfx_range need = regions[i].clamped;
        if (range_is_empty(need)) continue;
        for (int k = 0; k < node->n_in; k++) {
            int in = node->in[k];
            rfx_region_add(&graph->nodes[in], axis, rfx_input_range(graph, node, k, axis, need),
                           &regions[in]);
        }
    }
}
