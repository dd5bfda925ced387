/* Places and regions of a stage: reverse sweeps over the nodes. */
#include "tiler/plan/stage.h"

#include "layers/core/checked.h"
#include "layers/graph/op.h"
#include "tiler/plan/mode.h"

/* Why a number or flag of a spec is none that its mode knows, or NULL. */
static const char *find_unknown(const struct rfx_stage_spec *spec) {
    unsigned knows = spec->mode->knows;
    if (spec->band_rows != 0 && !(knows & RFX_KNOWS_BANDS)) return "has no bands";
    if (spec->tight && !(knows & RFX_KNOWS_TIGHT)) return "cannot be tight";
    if (spec->row_by_row && !(knows & RFX_KNOWS_ROW_BY_ROW)) return "cannot run row by row";
    if (spec->parts_y != 1 && !(knows & RFX_KNOWS_PARTS_Y)) return "has no rows of tiles";
    if (spec->parts_x != 1 && !(knows & RFX_KNOWS_PARTS_X)) return "has no tiles";
    return NULL;
}

enum rfx_status rfx_stage_check(const struct rfx_stage_spec *spec, struct rfx_error *err) {
    if (spec->mode == NULL)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "a stage without a mode");
    const char *why = NULL;
    enum rfx_status status = spec->mode->check != NULL ? spec->mode->check(spec, err) : RFX_OK;
    if (status != RFX_OK) return status;
    if (spec->parts_y < 1 || spec->parts_x < 1)
        why = "tiles are 1 or more";
    else
        why = find_unknown(spec);
    if (why == NULL) return RFX_OK;
    bool ours = spec->parts_y >= 1 && spec->parts_x >= 1;
    return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "%s%s%s (band_rows %lld, tiles [%lld, %lld])",
                    ours ? spec->mode->a_mode : "", ours ? " " : "", why,
                    (long long)spec->band_rows, (long long)spec->parts_y, (long long)spec->parts_x);
}

/* Whether nothing but the user reads the node. */
static bool is_only_output(const struct rfx_graph *graph, int node) {
    int outputs = rfx_graph_count_outputs(graph, node);
    return outputs > 0 && graph->n_consumers[node] == outputs;
}

static bool is_spilled(const struct rfx_stage_spec *spec, int t) {
    return spec->spilled != NULL && spec->spilled[t];
}

/* Why target `t` cannot be spilled, or NULL. */
static const char *find_why_not_spilled(const struct rfx_graph *graph,
                                        const struct rfx_stage_spec *spec, int t) {
    int target = spec->targets[t];
    if (!spec->mode->emits) return "only streamed stages write maps to files";
    if (rfx_node_reduction(&graph->nodes[target]) != NULL) return "it is the result of a reduction";
    if (rfx_graph_count_outputs(graph, target) > 0) return "it is an output of the network";
    return NULL;
}

/* Checks one target and gives it its place. */
static enum rfx_status place_target(const struct rfx_graph *graph,
                                    const struct rfx_stage_spec *spec, bool emit,
                                    const bool *stored, int t, enum rfx_node_place *places,
                                    struct rfx_error *err) {
    int target = spec->targets[t];
    if (target < 0 || target >= graph->n_nodes)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "node %d of %d is no target", target,
                        graph->n_nodes);
    const struct rfx_node *node = &graph->nodes[target];
    if (rfx_node_is_constant(node))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "target '%s' is a constant", node->name);
    if (node->op == RFX_OP_INNER)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "target '%s' lies inside a group of layers, which is never stored",
                        node->name);
    if (rfx_node_is_joined(node))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "target '%s' is joined of maps, which are targets instead: '%s' and others",
                        node->name, graph->nodes[node->in[0]].name);
    if (stored[target] || places[target] != RFX_PLACE_NONE)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "target '%s' is stored twice",
                        node->name);
    const char *why = is_spilled(spec, t) ? find_why_not_spilled(graph, spec, t) : NULL;
    if (why != NULL)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "target '%s' cannot be spilled: %s",
                        node->name, why);
    if (is_spilled(spec, t))
        places[target] = RFX_PLACE_SPILLED;
    else if (spec->mode->local && rfx_node_reduction(node) != NULL)
        places[target] = RFX_PLACE_REDUCED;
    else if (emit && spec->mode->emits && is_only_output(graph, target))
        places[target] = RFX_PLACE_EMITTED;
    else
        places[target] = RFX_PLACE_STORED;
    return RFX_OK;
}

static enum rfx_status check_local(const struct rfx_graph *graph, const struct rfx_stage_spec *spec,
                                   int i, enum rfx_node_place place, struct rfx_error *err) {
    const struct rfx_node *node = &graph->nodes[i];
    bool local = place == RFX_PLACE_REDUCED || rfx_node_is_local(node);
    bool reduction = !spec->mode->local && rfx_node_reduction(node) != NULL;
    if (reduction && !rfx_rect_is_empty(node->taken) &&
        !rfx_rect_equal(node->taken, rfx_node_full_rect(&graph->nodes[node->in[0]])))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "'%s' takes a part of its input alone: %s cannot feed it", node->name,
                        spec->mode->a_mode);
    if (!spec->mode->local || local) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                    "'%s' is not local in space: %s cannot compute it", node->name,
                    spec->mode->a_mode);
}

/* Takes back what the stage forgets. */
static enum rfx_status forget(const struct rfx_graph *graph, const struct rfx_stage_spec *spec,
                              bool *stored, bool *spilled, struct rfx_error *err) {
    for (int f = 0; f < spec->n_forgotten; f++) {
        int node = spec->forgotten[f];
        if (node < 0 || node >= graph->n_nodes)
            return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "node %d of %d cannot be forgotten",
                            node, graph->n_nodes);
        const char *why = !stored[node]                            ? "it is not stored"
                          : rfx_node_is_input(&graph->nodes[node]) ? "it is the image"
                          : rfx_graph_count_outputs(graph, node) > 0
                              ? "it is an output of the network"
                              : NULL;
        if (why != NULL)
            return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "'%s' cannot be forgotten: %s",
                            graph->nodes[node].name, why);
        stored[node] = false;
        if (spilled != NULL) spilled[node] = false;
    }
    return RFX_OK;
}

enum rfx_status rfx_stage_places(const struct rfx_graph *graph, const struct rfx_stage_spec *spec,
                                 bool emit, bool *stored, bool *spilled,
                                 enum rfx_node_place *places, struct rfx_error *err) {
    enum rfx_status status = rfx_stage_check(spec, err);
    if (status != RFX_OK) return status;
    for (int i = 0; i < graph->n_nodes; i++) places[i] = RFX_PLACE_NONE;
    if (spec->n_targets < 1)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "a stage without targets");
    for (int t = 0; t < spec->n_targets; t++) {
        status = place_target(graph, spec, emit, stored, t, places, err);
        if (status != RFX_OK) return status;
    }
    int pending = spec->n_targets; /* nodes that are computed and not looked at */
    for (int i = graph->n_nodes - 1; i >= 0 && pending > 0; i--) {
        if (!rfx_place_is_computed(places[i])) continue;
        pending--;
        status = check_local(graph, spec, i, places[i], err);
        if (status != RFX_OK) return status;
        for (int k = 0; k < rfx_place_inputs(places[i], &graph->nodes[i]); k++) {
            int in = graph->nodes[i].in[k];
            if (places[in] == RFX_PLACE_REDUCED)
                return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                                "'%s' needs the whole of '%s', which its stage has only at its "
                                "end: a later stage has to compute it",
                                graph->nodes[i].name, graph->nodes[in].name);
            if (places[in] != RFX_PLACE_NONE || rfx_node_is_constant(&graph->nodes[in])) continue;
            bool in_file = spilled != NULL && spilled[in];
            places[in] = in_file      ? RFX_PLACE_FETCHED
                         : stored[in] ? RFX_PLACE_READ
                                      : RFX_PLACE_LOCAL;
            pending += rfx_place_is_computed(places[in]);
        }
    }
    for (int t = 0; t < spec->n_targets; t++) {
        if (places[spec->targets[t]] != RFX_PLACE_EMITTED) stored[spec->targets[t]] = true;
        if (is_spilled(spec, t)) spilled[spec->targets[t]] = true;
    }
    return forget(graph, spec, stored, spilled, err);
}

struct rfx_range rfx_stage_target_range(const struct rfx_graph *graph, int node,
                                        enum rfx_node_place place, enum rfx_axis axis, int64_t n,
                                        int64_t tile) {
    struct rfx_range none = {0, 0};
    if (place < RFX_PLACE_STORED) return none;
    struct rfx_range all =
        rfx_node_stage_range(&graph->nodes[node], place == RFX_PLACE_REDUCED, axis);
    struct rfx_range own = rfx_tile_range(rfx_range_size(all), n, tile);
    return (struct rfx_range){all.lo + own.lo, all.lo + own.hi};
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
        int input = places[i] == RFX_PLACE_REDUCED ? node->in[0] : -1;
        if (input >= 0) {
            if (rfx_place_is_computed(places[input]))
                rfx_region_add(&graph->nodes[input], axis, own, &regions[input]);
            continue;
        }
        rfx_region_add(&graph->nodes[i], axis, own, &regions[i]);
        struct rfx_range need = regions[i].clamped;
        if (need.lo >= need.hi) continue;
        bool same = rfx_op_needs_same(node);
        for (int k = 0; k < rfx_place_inputs(places[i], node); k++) {
            int in = node->in[k];
            if (!rfx_place_is_computed(places[in])) continue;
            struct rfx_range r = same ? need : rfx_input_range(graph, node, k, axis, need);
            rfx_region_add(&graph->nodes[in], axis, r, &regions[in]);
        }
    }
}

/* Positions of one axis that a stage's targets have, at most. */
static int64_t target_extent(const struct rfx_graph *graph, const struct rfx_stage_spec *spec,
                             enum rfx_axis axis) {
    int64_t extent = 1;
    for (int t = 0; t < spec->n_targets; t++) {
        const struct rfx_node *node = &graph->nodes[spec->targets[t]];
        bool reduced = rfx_node_reduction(node) != NULL;
        extent = rfx_max_i64(extent, rfx_range_size(rfx_node_stage_range(node, reduced, axis)));
    }
    return extent;
}

void rfx_stage_limit_parts(const struct rfx_graph *graph, struct rfx_stage_spec *spec) {
    spec->parts_y = rfx_min_i64(spec->parts_y, target_extent(graph, spec, RFX_AXIS_ROWS));
    spec->parts_x = rfx_min_i64(spec->parts_x, target_extent(graph, spec, RFX_AXIS_COLS));
}

bool rfx_stage_cuts_cols(const struct rfx_stage_spec *spec) {
    return spec->parts_x > 1 || spec->mode->trims;
}
