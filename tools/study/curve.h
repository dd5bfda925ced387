/* Trade-off curves: the additional MACs and the memory saved at each aggregation point.
 *
 * 1. A tiled run counts the tile of every live tensor, with halo and clipped at the border, and the
 *    whole stitched map from the first tile on. For each tensor the largest tile counts, because
 * the executor's buffers have a fixed size.
 * 2. An untiled run counts the whole image as a tensor.
 * 3. Peak, head and tail include all parameters.
 * 4. Points are in graph order, the Pareto front is sorted by MACs.
 *
 * Source: paper 003, sections 3.1-3.3 and figure 9. */
#ifndef RFX_TOOLS_STUDY_CURVE_H
#define RFX_TOOLS_STUDY_CURVE_H

#include "tools/study/baseline.h"

struct rfx_curve_point {
    int split; /* node; -1: untiled */
    int64_t tiles_y, tiles_x;
    int64_t tile_h_px, tile_w_px; /* size of the largest tile in the image, with halo */
    uint64_t macs;
    size_t peak_bytes; /* the larger of head_bytes and tail_bytes */
    size_t head_bytes; /* while tiles run */
    size_t tail_bytes; /* while the tail runs */
    int peak_node;     /* the layer with peak_bytes */
};

struct rfx_curve_request {
    enum rfx_baseline baseline; /* the graph is loaded with rfx_baseline_fuse(baseline) */
    int64_t tiles_y, tiles_x;   /* >= 1; at most one tile per position of the map */
    bool pareto;                /* also evaluate all grids */
};

struct rfx_curve {
    struct rfx_memory *mem;
    const struct rfx_graph *graph; /* borrowed */
    enum rfx_baseline baseline;
    size_t weights_bytes;
    struct rfx_curve_point untiled; /* split -1, grid 1 x 1 */
    int n_points, n_pareto;
    struct rfx_curve_point *points; /* one per legal aggregation point */
    struct rfx_curve_point
        *pareto; /* no other split and grid has both fewer MACs and fewer bytes */
    int best; /* the point with the smallest peak, of equal ones with the fewest MACs; -1: no points
               */
};

/* Computes the curve of a network. Takes O(splits * nodes), with `pareto` for each grid.
 * INVALID_ARGUMENT: a grid below 1 x 1. The graph must outlive the curve. Free with rfx_curve_free.
 */
RFX_NODISCARD enum rfx_status rfx_curve_create(const struct rfx_graph *graph,
                                               const struct rfx_curve_request *request,
                                               struct rfx_curve **out, struct rfx_error *err);

void rfx_curve_free(struct rfx_curve *curve);

/* Returns the MACs divided by those of the untiled run (1 for a network without MACs). */
double rfx_curve_macs_ratio(const struct rfx_curve *curve, const struct rfx_curve_point *point);

/* Returns the peak of the untiled run divided by the peak of the point: larger is better. */
double rfx_curve_memory_ratio(const struct rfx_curve *curve, const struct rfx_curve_point *point);

/* Computes the memory, with parameters, while each node i runs: bytes[i]. point NULL: untiled. */
RFX_NODISCARD enum rfx_status rfx_curve_footprint(const struct rfx_curve *curve,
                                                  const struct rfx_curve_point *point,
                                                  size_t *bytes, struct rfx_error *err);

/* Returns the grid of `tiles` tiles that is closest to a square, with rows <= columns: 16 -> 4 x 4,
 * 8 -> 2 x 4, 7 -> 1 x 7. */
void rfx_curve_square_grid(int64_t tiles, int64_t *tiles_y, int64_t *tiles_x);
#endif
