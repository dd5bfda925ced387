/* Trade-off curves: what each aggregation point costs in MACs and buys in memory.
 *
 * Invariants: 1. a tiled run counts the tile's part of every live tensor, halo included and clamped
 * at the border, and the whole stitched map from the first tile on; the largest part of each tensor
 * over the tiles counts, as the executor's buffers are of fixed size; 2. untiled, the whole image
 * is a live tensor; 3. peak, head and tail bytes include all parameters; 4. points are in the order
 * of the graph, the Pareto front in the order of MACs. Source: paper 003, sections 3.1-3.3 and
 * figure 9. */
#ifndef RFX_TOOLS_STUDY_CURVE_H
#define RFX_TOOLS_STUDY_CURVE_H

#include "tools/study/baseline.h"

struct rfx_curve_point {
    int split; /* node; -1: untiled */
    int64_t tiles_y, tiles_x;
    int64_t tile_h_px, tile_w_px; /* of the image: the largest tile, halo included */
    uint64_t macs;
    size_t peak_bytes; /* the larger of the next two */
    size_t head_bytes; /* while tiles run */
    size_t tail_bytes; /* while the tail runs */
    int peak_node;     /* the layer that reaches peak_bytes */
};

struct rfx_curve_request {
    enum rfx_baseline baseline; /* the graph is loaded with rfx_baseline_fuse(baseline) */
    int64_t tiles_y, tiles_x;   /* >= 1; where the map has fewer positions, one per position */
    bool pareto;                /* also search all grids */
};

struct rfx_curve {
    struct rfx_memory *mem;
    const struct rfx_graph *graph; /* borrowed */
    enum rfx_baseline baseline;
    size_t weights_bytes;
    struct rfx_curve_point untiled; /* split -1, grid 1 x 1 */
    int n_points, n_pareto;
    struct rfx_curve_point *points; /* one per legal aggregation point */
    struct rfx_curve_point *pareto; /* no other split and grid has fewer MACs and fewer bytes */
    int best;                       /* smallest peak, then fewest MACs; -1: no points */
};

/* Calculates the curve of one network. O(splits * nodes), with pareto times the number of grids.
 * INVALID_ARGUMENT: a grid below 1 x 1. Free with rfx_curve_free; the graph must outlive it.
 * Pinned by tests/unit/tools/study/test_curve.c. */
RFX_NODISCARD enum rfx_status rfx_curve_create(const struct rfx_graph *graph,
                                               const struct rfx_curve_request *request,
                                               struct rfx_curve **out, struct rfx_error *err);

void rfx_curve_free(struct rfx_curve *curve);

/* MACs over untiled MACs (1 for a network without MACs). */
double rfx_curve_macs_ratio(const struct rfx_curve *curve, const struct rfx_curve_point *point);

/* Untiled peak over the point's peak: larger is better. */
double rfx_curve_memory_ratio(const struct rfx_curve *curve, const struct rfx_curve_point *point);

/* Memory over the layers, with parameters: bytes[i] while node i runs. point NULL: untiled. */
RFX_NODISCARD enum rfx_status rfx_curve_footprint(const struct rfx_curve *curve,
                                                  const struct rfx_curve_point *point,
                                                  size_t *bytes, struct rfx_error *err);

/* The most square grid of `tiles` tiles, rows <= columns: 16 -> 4 x 4, 8 -> 2 x 4, 7 -> 1 x 7. */
void rfx_curve_square_grid(int64_t tiles, int64_t *tiles_y, int64_t *tiles_x);
#endif
