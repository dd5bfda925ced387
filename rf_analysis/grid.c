/* Propagates grids forward through the graph, each axis by itself. */
#include "rf_analysis/grid.h"

#include <math.h>

#include "layers/graph/op.h"

/* Returns the grid of a node along the path through its input k, from the input's grid. */
static struct rfx_grid through(const struct rfx_graph *graph, const struct rfx_node *node, int k,
                               const struct rfx_grid *in) {
    struct rfx_grid out = {.known = in->known};
    for (int axis = 0; axis < 2 && out.known; axis++) {
        struct rfx_axis_place place = rfx_op_axis_place(graph, node, k, axis);
        struct rfx_axis_map map = rfx_op_axis_map(graph, node, k, axis);
        const struct rfx_grid_axis *from = &in->axis[axis];
        out.known = place.known;
        out.axis[axis] = (struct rfx_grid_axis){
            .step = from->step * place.step,
            .shift = from->shift + from->step * place.shift,
            .size_px = from->size_px +
                       fabs(from->step) * (double)((map.taps - 1) * map.dilation) / (double)map.up,
            .spread_px = from->spread_px};
    }
    return out;
}

/* Returns the largest distance between the two places that two branches give to one of n pixels. */
static double apart(const struct rfx_grid_axis *a, const struct rfx_grid_axis *b, int64_t n) {
    double first = a->shift - b->shift, last = first + (a->step - b->step) * (double)(n - 1);
    return fmax(fabs(first), fabs(last));
}

/* Adds the grid of another branch of a join to the grid of the branches before it. */
static void join(struct rfx_grid *to, const struct rfx_grid *other, const struct rfx_node *node) {
    if (!other->known) return;
    if (!to->known) {
        *to = *other;
        return;
    }
    for (int axis = 0; axis < 2; axis++) {
        struct rfx_grid_axis *a = &to->axis[axis];
        const struct rfx_grid_axis *b = &other->axis[axis];
        double spread = apart(a, b, axis == 0 ? node->out.h : node->out.w);
        spread = fmax(spread, fmax(a->spread_px, b->spread_px));
        if (b->size_px < a->size_px) *a = *b;
        a->spread_px = spread;
    }
}

enum rfx_status rfx_grid_find(const struct rfx_graph *graph, int node, struct rfx_grid *out,
                              struct rfx_error *err) {
    static const struct rfx_grid_axis image = {1.0, 0.0, 1.0, 0.0};
    size_t n = (size_t)node + 1;
    struct rfx_grid *grids = rfx_memory_calloc(graph->mem, n, sizeof *grids);
    if (grids == NULL) return rfx_memory_fail(graph->mem, "grids", n * sizeof *grids, err);
    for (int i = 0; i <= node; i++) {
        const struct rfx_node *at = &graph->nodes[i];
        if (i == graph->input) grids[i] = (struct rfx_grid){true, {image, image}};
        for (int k = 0; k < at->n_in; k++) {
            struct rfx_grid branch = through(graph, at, k, &grids[at->in[k]]);
            join(&grids[i], &branch, at);
        }
    }
    *out = grids[node];
    rfx_memory_release(graph->mem, grids);
    return RFX_OK;
}
