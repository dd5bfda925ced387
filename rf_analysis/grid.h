/* Where the pixels of a map lie in the image: the middles of their receptive fields.
 *
 * Steps multiply and shifts add up along a path; operators say theirs (rfx_op_axis_place). Global
 * statistics and what else is the same for all positions play no part. Where the branches of a join
 * do not agree, the one with the smallest receptive field counts, which tells places best. */
#ifndef RFX_RF_ANALYSIS_GRID_H
#define RFX_RF_ANALYSIS_GRID_H

#include "layers/graph/graph.h"

/* Of rows (0) or columns (1): the middle of pixel o is at o * step + shift of the image's, whose
 * pixels have theirs at 0, 1, 2, ... */
struct rfx_grid_axis {
    double step, shift;
    double size_px;   /* receptive field of the path */
    double spread_px; /* how far apart branches see a pixel at most */
};

struct rfx_grid {
    bool known; /* false: no path of maps leads to the image, or places depend on the data */
    struct rfx_grid_axis axis[2];
};

/* The grid of a node of a finished graph. OUT_OF_MEMORY. O(edges). Pinned by test_grid. */
RFX_NODISCARD enum rfx_status rfx_grid_find(const struct rfx_graph *graph, int node,
                                            struct rfx_grid *out, struct rfx_error *err);
#endif
