/* Tile geometry along one axis: where tiles begin and end, and what each node needs for them.
 *
 * The n tiles of an extent E have E / n positions each, the first E mod n one more: they cover
 * exactly, never run past the map, and are empty only when n > E. */
#ifndef RFX_TILER_PLAN_TILING_H
#define RFX_TILER_PLAN_TILING_H

#include "rf_analysis/regions.h"

/* The range of tile t of n over [0, extent). */
struct rfx_range rfx_tile_range(int64_t extent, int64_t n, int64_t t);

/* Per node of a head, over all tiles of one axis. */
struct rfx_tile_extent {
    int64_t max, sum; /* largest and total clamped extent over the tiles */
};

/* Of the image rows (or columns) over all tiles of one axis; begins as zeros. */
struct rfx_tile_overlap {
    int64_t max_overlap; /* rows shared by consecutive tiles, at most */
    int64_t passed;      /* the end of the tiles added so far */
};

/* Fills extents[0 .. split] for n tiles of the split's map along `axis`. regions is scratch of
 * split + 1 elements. O(n * nodes). */
void rfx_tiling_axis(const struct rfx_graph *graph, int split, enum rfx_axis axis, int64_t n,
                     struct rfx_axis_region *regions, struct rfx_tile_extent *extents);

/* Adds one tile's regions; tiles come in order, from the first to the last. input: the image's node;
 * -1: none. */
void rfx_tile_overlap_add(const struct rfx_axis_region *regions, int input,
                          struct rfx_tile_overlap *overlap);

#define RFX_TILING_MAX_COUNTS 40

/* The tile counts that a search tries along an axis of `extent` positions: 1 .. 8, then about 25 %
 * apart, up to every position by itself. Fills counts[RFX_TILING_MAX_COUNTS], returns how many. */
int rfx_tiling_counts(int64_t extent, int64_t *counts);
#endif
