/* Tile geometry along one axis: where tiles begin and end, and what each node needs for them.
 *
 * rfx_tile_range (regions.h) cuts an extent into tiles. */
#ifndef RFX_TILER_PLAN_TILING_H
#define RFX_TILER_PLAN_TILING_H

#include "rf_analysis/regions.h"

/* Extents of one node over all tiles of an axis. */
struct rfx_tile_extent {
    int64_t max, sum; /* largest and total clamped extent */
};

/* Overlap of the image rows (or columns) of consecutive tiles along an axis; starts as zeros. */
struct rfx_tile_overlap {
    int64_t max_overlap; /* most rows that consecutive tiles share */
    int64_t passed;      /* end of the tiles added so far */
};

/* Fills extents[0 .. split] for n tiles of the split's map along `axis`. regions is scratch of
 * split + 1 elements. O(n * nodes). */
void rfx_tiling_axis(const struct rfx_graph *graph, int split, enum rfx_axis axis, int64_t n,
                     struct rfx_axis_region *regions, struct rfx_tile_extent *extents);

/* Adds one tile's regions; tiles come in order, from the first to the last. input: the image's
 * node; -1: none. */
void rfx_tile_overlap_add(const struct rfx_axis_region *regions, int input,
                          struct rfx_tile_overlap *overlap);

#define RFX_TILING_MAX_COUNTS 40

/* Fills counts[RFX_TILING_MAX_COUNTS] with the tile counts that a search tries along an axis of
 * `extent` positions, and returns their number: 1 .. 8, then steps of about 25 %, up to one
 * position per tile. */
int rfx_tiling_counts(int64_t extent, int64_t *counts);
#endif
