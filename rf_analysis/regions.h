/* Back-propagation of output rectangles through a graph, each axis by itself.
 *
 * Invariants: 1. rows and columns are independent (every operator's region map is separable), so a
 * tile's regions are the product of a row range and a column range per node; 2. `clamped` is what
 * has to be computed of a node; `unclamped` is what its readers would read if the map had no
 * border; the difference is the padding; 3. a node that the target does not need has two empty
 * ranges. Regions know neither buffers nor the order of execution. */
#ifndef RFX_RF_ANALYSIS_REGIONS_H
#define RFX_RF_ANALYSIS_REGIONS_H

#include "layers/core/checked.h"
#include "layers/core/rect.h"
#include "layers/graph/graph.h"

enum rfx_axis { RFX_AXIS_ROWS = 0, RFX_AXIS_COLS = 1 };

struct rfx_axis_region {
    struct rfx_range unclamped, clamped;
};

/* Fills regions[0 .. target] along one axis with what each node must provide so that `target` can
 * provide `out`. O(edges). */
void rfx_regions_backprop(const struct rfx_graph *graph, int target, enum rfx_axis axis,
                          struct rfx_range out, struct rfx_axis_region *regions);

/* Returns tile (or share) t of n of the positions [0, extent): each has extent / n positions, and
 * the first extent mod n tiles have one more. The tiles cover the extent exactly and never run past
 * it; a tile is empty only when n > extent. */
struct rfx_range rfx_tile_range(int64_t extent, int64_t n, int64_t t);

/* Returns the rows (axis 0) or columns (axis 1) of a node's full map. */
static inline int64_t rfx_node_extent(const struct rfx_node *node, enum rfx_axis axis) {
    return axis == RFX_AXIS_ROWS ? node->out.h : node->out.w;
}

/* Returns the rows or columns of a node's ROI. */
static inline struct rfx_range rfx_node_roi(const struct rfx_node *node, enum rfx_axis axis) {
    return axis == RFX_AXIS_ROWS ? rfx_rect_row_range(node->wanted)
                                 : rfx_rect_col_range(node->wanted);
}

/* Returns the rows or columns that a stage computes of a node in total; of a reduction that is fed
 * tile by tile, those that it takes. */
static inline struct rfx_range rfx_node_stage_range(const struct rfx_node *node, bool reduced,
                                                    enum rfx_axis axis) {
    struct rfx_rect rect = reduced ? node->taken : node->wanted;
    return axis == RFX_AXIS_ROWS ? rfx_rect_row_range(rect) : rfx_rect_col_range(rect);
}

/* Returns the bytes of a node's ROI. */
static inline size_t rfx_node_roi_bytes(const struct rfx_node *node) {
    return rfx_tensor_pixel_bytes(&node->out, rfx_rect_area(node->wanted));
}

/* Widens a region of a map with `extent` positions by `range`, which may reach outside of the map.
 * (Inline: planners call this millions of times, mostly for ranges that are covered already.) */
static inline void rfx_region_widen(struct rfx_axis_region *region, int64_t extent,
                                    struct rfx_range range) {
    struct rfx_range *in = &region->clamped;
    if (range.lo < range.hi && range.lo >= in->lo && range.hi <= in->hi) return;
    struct rfx_range inside = {rfx_max_i64(range.lo, 0), rfx_min_i64(range.hi, extent)};
    region->unclamped = rfx_range_union(region->unclamped, range);
    if (inside.lo < inside.hi) *in = rfx_range_union(*in, inside);
}

static inline void rfx_region_add(const struct rfx_node *node, enum rfx_axis axis,
                                  struct rfx_range range, struct rfx_axis_region *region) {
    rfx_region_widen(region, rfx_node_extent(node, axis), range);
}

/* Returns the unclamped range of input k along one axis for the node's output range `out`; the
 * whole input for operators that are not local in space. */
struct rfx_range rfx_input_range(const struct rfx_graph *graph, const struct rfx_node *node, int k,
                                 enum rfx_axis axis, struct rfx_range out);
#endif
