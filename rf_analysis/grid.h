/* Where the pixels of a map lie in the image: the centres of their receptive fields.
 *
 * Steps multiply and shifts add up along a path; operators give theirs (rfx_op_axis_place). Values
 * that are the same for all positions, such as global statistics, play no part. Where the branches
 * of a join disagree, the one with the smallest receptive field counts, because it locates pixels
 * best. */
#ifndef RFX_RF_ANALYSIS_GRID_H
#define RFX_RF_ANALYSIS_GRID_H

#include "layers/graph/graph.h"

/* Along rows (0) or columns (1): the centre of pixel o lies at o * step + shift of the image, whose
 * own pixels have their centres at 0, 1, 2, ... */
struct rfx_grid_axis {
    double step, shift;
    double size_px;   /* receptive field along the path */
    double spread_px; /* largest distance between the places that branches give a pixel */
};

struct rfx_grid {
    bool known; /* false: no path of maps leads to the image, or places depend on the data */
    struct rfx_grid_axis axis[2];
};

/* Returns whether the map of a node has the image's size. A network with such a map is trained to
 * answer for each pixel of the image, so the map's pixels are the image's, wherever the centres of
 * their receptive fields lie (unless the map is turned over: its step is negative). */
static inline bool rfx_map_covers_image(const struct rfx_graph *graph, int node) {
    const struct rfx_tensor *map = &graph->nodes[node].out;
    const struct rfx_tensor *image = &graph->nodes[graph->input].out;
    return map->layout == RFX_LAYOUT_NHWC && map->h == image->h && map->w == image->w;
}

/* Computes the grid of a node of a finished graph. OUT_OF_MEMORY. O(edges). Test: test_grid. */
RFX_NODISCARD enum rfx_status rfx_grid_find(const struct rfx_graph *graph, int node,
                                            struct rfx_grid *out, struct rfx_error *err);
#endif
