/* Tile ranges and their per-node extents, by back-propagating every tile of an axis. */
#include "tiler/plan/tiling.h"

#include "layers/core/checked.h"

void rfx_tile_overlap_add(const struct rfx_axis_region *regions, int input,
                          struct rfx_tile_overlap *overlap) {
    if (input < 0 || rfx_range_size(regions[input].clamped) == 0) return;
    struct rfx_range image = regions[input].clamped;
    overlap->max_overlap = rfx_max_i64(overlap->max_overlap, overlap->passed - image.lo);
    overlap->passed = rfx_max_i64(overlap->passed, image.hi);
}

void rfx_tiling_axis(const struct rfx_graph *graph, int split, enum rfx_axis axis, int64_t n,
                     struct rfx_axis_region *regions, struct rfx_tile_extent *extents) {
    int64_t extent = rfx_node_extent(&graph->nodes[split], axis);
    for (int i = 0; i <= split; i++) extents[i].max = extents[i].sum = 0;
    for (int64_t t = 0; t < n; t++) {
        struct rfx_range tile = rfx_tile_range(extent, n, t);
        if (tile.lo >= tile.hi) continue;
        rfx_regions_backprop(graph, split, axis, tile, regions);
        for (int i = 0; i <= split; i++) {
            int64_t size = rfx_range_size(regions[i].clamped);
            extents[i].max = rfx_max_i64(extents[i].max, size);
            extents[i].sum += size;
        }
    }
}

int rfx_tiling_counts(int64_t extent, int64_t *counts) {
    int n = 0;
    for (int64_t c = 1; c < extent && n < RFX_TILING_MAX_COUNTS - 1; c += c < 8 ? 1 : c / 4)
        counts[n++] = c;
    counts[n++] = extent;
    return n;
}
