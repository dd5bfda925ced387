/* Places and regions of a stage: reverse sweeps over the nodes. */
#include "tiler/stage.h"

#include "layers/checked.h"
#include "layers/op.h"

/* Whether nothing but the user reads the node. */
static bool is_only_output(const struct rfx_graph *graph, int node) {
    int outputs = 0;
    for (int k = 0; k < graph->n_outputs; k++) outputs += graph->outputs[k].node == node;
    return outputs > 0 && graph->n_consumers[node] == outputs;
}

/* Checks one target and gives it its place. */
static enum rfx_status place_target(const struct rfx_graph *graph,
                                    const struct rfx_stage_spec *spec, bool emit,
                                    const bool *stored, int target, enum rfx_node_place *places,
                                    struct rfx_error *err) {
    if (target < 0 || target >= graph->n_nodes)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "node %d of %d is no target", target,
                        graph->n_nodes);
    const struct rfx_node *node = &graph->nodes[target];
    if (rfx_node_is_constant(node))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "target '%s' is a constant", node->name);
    if (stored[target] || places[target] != RFX_PLACE_NONE)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "target '%s' is stored twice",
                        node->name);
    bool parts = spec->mode != RFX_STAGE_WHOLE;
    if (parts && node->op == RFX_OP_GLOBAL_POOL)
        places[target] = RFX_PLACE_POOLED;
    else if (emit && spec->mode == RFX_STAGE_STREAMED && is_only_output(graph, target))
        places[target] = RFX_PLACE_EMITTED;
    else
        places[target] = RFX_PLACE_STORED;
    return RFX_OK;
}

static enum rfx_status check_local(const struct rfx_graph *graph, const struct rfx_stage_spec *spec,
                                   int i, enum rfx_node_place place, struct rfx_error *err) {
    const struct rfx_node *node = &graph->nodes[i];
    bool local = node->op == RFX_OP_INPUT || place == RFX_PLACE_POOLED ||
                 (rfx_op_def(node->op)->spatial && node->out.layout == RFX_LAYOUT_NHWC);
    if (spec->mode == RFX_STAGE_WHOLE || local) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                    "'%s' is not local in space: a tiled or streamed stage cannot compute it",
                    node->name);
}

enum rfx_status rfx_stage_places(const struct rfx_graph *graph, const struct rfx_stage_spec *spec,
                                 bool emit, bool *stored, enum rfx_node_place *places,
                                 struct rfx_error *err) {
    for (int i = 0; i < graph->n_nodes; i++) places[i] = RFX_PLACE_NONE;
    if (spec->n_targets < 1)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "a stage without targets");
    for (int t = 0; t < spec->n_targets; t++) {
        enum rfx_status status =
            place_target(graph, spec, emit, stored, spec->targets[t], places, err);
        if (status != RFX_OK) return status;
    }
    for (int i = graph->n_nodes - 1; i >= 0; i--) {
        if (!rfx_place_is_computed(places[i])) continue;
        enum rfx_status status = check_local(graph, spec, i, places[i], err);
        if (status != RFX_OK) return status;
        for (int k = 0; k < graph->nodes[i].n_in; k++) {
            int in = graph->nodes[i].in[k];
            if (places[in] == RFX_PLACE_POOLED)
                return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                                "'%s' needs the global pool '%s', which its stage has only at its "
                                "end: a later stage has to compute it",
                                graph->nodes[i].name, graph->nodes[in].name);
            if (places[in] != RFX_PLACE_NONE || rfx_node_is_constant(&graph->nodes[in])) continue;
            places[in] = stored[in] ? RFX_PLACE_READ : RFX_PLACE_LOCAL;
        }
    }
    for (int t = 0; t < spec->n_targets; t++)
        if (places[spec->targets[t]] != RFX_PLACE_EMITTED) stored[spec->targets[t]] = true;
    return RFX_OK;
}

struct rfx_range rfx_stage_target_range(const struct rfx_graph *graph, int node,
                                        enum rfx_node_place place, enum rfx_axis axis, int64_t n,
                                        int64_t tile) {
    struct rfx_range none = {0, 0};
    if (place == RFX_PLACE_POOLED) node = graph->nodes[node].in[0];
    if (place != RFX_PLACE_STORED && place != RFX_PLACE_EMITTED && place != RFX_PLACE_POOLED)
        return none;
    return rfx_tile_range(rfx_node_extent(&graph->nodes[node], axis), n, tile);
}

static struct rfx_range hull(struct rfx_range a, struct rfx_range b) {
    if (a.lo >= a.hi) return b;
    if (b.lo >= b.hi) return a;
    struct rfx_range r = {rfx_min_i64(a.lo, b.lo), rfx_max_i64(a.hi, b.hi)};
    return r;
}

static void add_region(const struct rfx_graph *graph, int node, enum rfx_axis axis,
                       struct rfx_range range, struct rfx_axis_region *region) {
    int64_t extent = rfx_node_extent(&graph->nodes[node], axis);
    struct rfx_range inside = {rfx_max_i64(range.lo, 0), rfx_min_i64(range.hi, extent)};
    region->unclamped = hull(region->unclamped, range);
    region->clamped = hull(region->clamped, inside);
}

void rfx_stage_regions(const struct rfx_graph *graph, const enum rfx_node_place *places,
                       enum rfx_axis axis, int64_t n, int64_t tile,
                       struct rfx_axis_region *regions) {
    static const struct rfx_axis_region nothing = {{0, 0}, {0, 0}};
    for (int i = 0; i < graph->n_nodes; i++) regions[i] = nothing;
    for (int i = graph->n_nodes - 1; i >= 0; i--) {
        if (!rfx_place_is_computed(places[i])) continue;
        const struct rfx_node *node = &graph->nodes[i];
        struct rfx_range own = rfx_stage_target_range(graph, i, places[i], axis, n, tile);
        int input = places[i] == RFX_PLACE_POOLED ? node->in[0] : -1;
        if (input >= 0) {
            if (rfx_place_is_computed(places[input]))
                add_region(graph, input, axis, own, &regions[input]);
            continue;
        }
        add_region(graph, i, axis, own, &regions[i]);
        struct rfx_range need = regions[i].clamped;
        if (need.lo >= need.hi) continue;
        for (int k = 0; k < node->n_in; k++)
            if (rfx_place_is_computed(places[node->in[k]]))
                add_region(graph, node->in[k], axis, rfx_input_range(graph, node, k, axis, need),
                           &regions[node->in[k]]);
    }
}

void rfx_stage_extents(const struct rfx_graph *graph, const enum rfx_node_place *places,
                       enum rfx_axis axis, int64_t n, struct rfx_axis_region *regions,
                       struct rfx_tile_extent *extents, struct rfx_tile_overlap *overlap) {
    for (int i = 0; i < graph->n_nodes; i++) extents[i].max = extents[i].sum = 0;
    int64_t passed = 0;
    overlap->max_overlap = 0;
    for (int64_t t = 0; t < n; t++) {
        rfx_stage_regions(graph, places, axis, n, t, regions);
        for (int i = 0; i < graph->n_nodes; i++) {
            int64_t size = regions[i].clamped.hi - regions[i].clamped.lo;
            extents[i].max = rfx_max_i64(extents[i].max, size);
            extents[i].sum += size;
        }
        if (graph->input < 0) continue;
        struct rfx_range image = regions[graph->input].clamped;
        if (image.lo >= image.hi) continue;
        overlap->max_overlap = rfx_max_i64(overlap->max_overlap, passed - image.lo);
        passed = rfx_max_i64(passed, image.hi);
    }
}
