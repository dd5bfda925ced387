/* What the files of a candidate plan hold, and how long. */
#include "tiler/plan/plan_build.h"

/* Bytes of a node that a stage reads from its file: of parts that overlap, again. */
static uint64_t fetched_bytes(const struct rfx_graph *graph, const struct rfx_stage_shape *shape,
                              int node) {
    const struct rfx_tensor *out = &graph->nodes[node].out;
    int64_t cols =
        shape->cols != NULL ? shape->cols[node].sum : rfx_rect_cols(graph->nodes[node].wanted);
    return rfx_tensor_pixel_bytes(out, shape->rows[node].computed * cols);
}

static bool is_fetched_after(const struct rfx_stage_shape *shapes, int n_stages, int stage,
                             int node) {
    for (int s = stage + 1; s < n_stages; s++)
        if (shapes[s].places[node] == RFX_PLACE_FETCHED) return true;
    return false;
}

struct rfx_plan_spill rfx_plan_count_spill(const struct rfx_graph *graph,
                                           const struct rfx_stage_shape *shapes, int n_stages) {
    struct rfx_plan_spill spill = {0};
    uint64_t held = 0;
    for (int s = 0; s < n_stages; s++) {
        uint64_t over = 0; /* held no longer than this stage */
        for (int i = 0; i < graph->n_nodes; i++) {
            enum rfx_node_place place = shapes[s].places[i];
            if (place != RFX_PLACE_SPILLED && place != RFX_PLACE_FETCHED) continue;
            uint64_t bytes = rfx_node_wanted_bytes(&graph->nodes[i]);
            if (place == RFX_PLACE_SPILLED) {
                spill.written += bytes;
                held += bytes;
            }
            if (place == RFX_PLACE_FETCHED) spill.read += fetched_bytes(graph, &shapes[s], i);
            if (!is_fetched_after(shapes, n_stages, s, i)) over += bytes;
        }
        if (held > spill.most) spill.most = held;
        held -= over;
    }
    return spill;
}

int rfx_plan_spill_last(const struct rfx_plan *plan, int node) {
    int last = -1;
    for (int s = 0; s < plan->n_stages; s++) {
        enum rfx_node_place place = plan->stages[s].places[node];
        if (place == RFX_PLACE_SPILLED || place == RFX_PLACE_FETCHED) last = s;
    }
    return last;
}
