/* Places and regions of a stage, by reverse sweeps over the nodes; and the regions of all tiles of
 * an axis, with equal tiles computed once.
 *
 * Away from borders, the region of a node moves on evenly from tile to tile. This is proven, not
 * guessed. If no region of two tiles is clipped at a border, none is between them. Then a region's
 * first position is the minimum of some lines (one per path from the target to the node), and its
 * last position the maximum of some lines. A minimum of lines that has three points on one line,
 * two of them adjacent, is that line between them; the same holds for a maximum.
 *
 * Where maps are upsampled or read in blocks, a region moves on evenly from a tile to the tile one
 * period later: after a period every node's map has moved by whole positions. The tiles of a period
 * are computed one by one.
 *
 * In deep networks most tiles reach a border, and all of those are computed: regions come from
 * lines (flow.h) where there are any. */
#include "tiler/plan/stage.h"

#include "layers/conv/conv_backend.h"
#include "layers/core/checked.h"
#include "layers/graph/group.h"
#include "layers/graph/op.h"
#include "rf_analysis/flow.h"
#include "tiler/plan/mode.h"

/* Returns which field of a specification its mode does not support, or NULL. */
static const char *find_unknown(const struct rfx_stage_spec *spec) {
    unsigned knows = spec->mode->knows;
    if (spec->band_rows != 0 && !(knows & RFX_KNOWS_BANDS)) return "has no bands";
    if (spec->staging && !(knows & RFX_KNOWS_STAGING)) return "cannot be tight";
    if (spec->row_by_row && !(knows & RFX_KNOWS_ROW_BY_ROW)) return "cannot run row by row";
    if (spec->tiles_y != 1 && !(knows & RFX_KNOWS_TILES_Y)) return "has no rows of tiles";
    if (spec->tiles_x != 1 && !(knows & RFX_KNOWS_TILES_X)) return "has no tiles";
    return NULL;
}

enum rfx_status rfx_stage_check(const struct rfx_stage_spec *spec, struct rfx_error *err) {
    if (spec->mode == NULL)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "a stage without a mode");
    const char *why = NULL;
    enum rfx_status status = spec->mode->check != NULL ? spec->mode->check(spec, err) : RFX_OK;
    if (status != RFX_OK) return status;
    if (spec->tiles_y < 1 || spec->tiles_x < 1)
        why = "tiles are 1 or more";
    else
        why = find_unknown(spec);
    if (why == NULL) return RFX_OK;
    bool ours = spec->tiles_y >= 1 && spec->tiles_x >= 1;
    return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "%s%s%s (band_rows %lld, tiles [%lld, %lld])",
                    ours ? spec->mode->a_mode : "", ours ? " " : "", why,
                    (long long)spec->band_rows, (long long)spec->tiles_y, (long long)spec->tiles_x);
}

/* Returns whether no node reads this output. */
static bool is_only_output(const struct rfx_graph *graph, int node) {
    int outputs = rfx_graph_count_outputs(graph, node);
    return outputs > 0 && graph->n_consumers[node] == outputs;
}

static bool is_spilled(const struct rfx_stage_spec *spec, int t) {
    return spec->spilled != NULL && spec->spilled[t];
}

/* Returns why target `t` cannot be spilled, or NULL. */
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

/* Removes the nodes that the stage forgets from the stored nodes. */
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
    int pending = spec->n_targets; /* computed nodes that have not been visited yet */
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

/* Returns the most positions of a stage's targets along one axis. */
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

void rfx_stage_limit_tiles(const struct rfx_graph *graph, struct rfx_stage_spec *spec) {
    spec->tiles_y = rfx_min_i64(spec->tiles_y, target_extent(graph, spec, RFX_AXIS_ROWS));
    spec->tiles_x = rfx_min_i64(spec->tiles_x, target_extent(graph, spec, RFX_AXIS_COLS));
}

bool rfx_stage_cuts_cols(const struct rfx_stage_spec *spec) {
    return spec->tiles_x > 1 || spec->mode->trims;
}

#define FEWEST_TILES 12  /* least number of tiles for which skipping pays */
#define MOST_FLOWS 16384 /* at most 1.5 MiB */

struct sweep {
    const struct rfx_graph *graph;
    const enum rfx_node_place *places;
    enum rfx_axis axis;
    int64_t n;
    int64_t
        extent; /* positions of the targets, if all have the same number and regions move evenly */
    int64_t
        scale; /* number of positions after which every map has moved by whole positions; 0: none */
    struct rfx_flow
        *flows; /* [n_flows], from the last node to the first: the node's line (k: LINE), from node
                   `in`; what a target needs (k: OWN); what the node needs of inputs without a line.
                   NULL: the nodes' own rules are asked */
    struct rfx_line *lines; /* [n_nodes], in the same block */
    int n_flows;
    int first, end; /* nodes of flows lie in [first, end) */
};

enum { OWN = -1, LINE = -2 };

/* Returns whether the regions of the node's inputs move evenly from tile to tile. */
static bool moves_evenly(const struct sweep *s, int i) {
    const struct rfx_node *node = &s->graph->nodes[i];
    if (s->places[i] == RFX_PLACE_FETCHED) return true;
    if (node->op == RFX_OP_GROUP) return true; /* its nodes move evenly: group.c refuses others */
    struct rfx_conv_block block = rfx_conv_block_of(s->graph, node);
    if ((s->axis == RFX_AXIS_ROWS ? block.h : block.w) > 1)
        return false; /* computed in whole blocks */
    for (int k = 0; k < node->n_in; k++) {
        struct rfx_axis_map map = rfx_op_axis_map(s->graph, node, k, (int)s->axis);
        if (!rfx_axis_map_shifts(map.rule) || map.down < 1) return false;
    }
    return true;
}

static int64_t common_multiple(int64_t a, int64_t b) {
    return a / rfx_gcd_i64(a, b) * b;
}

#define MOST_SCALE \
    64 /* powers of two in most networks, whose decoders return to the image's size */

/* Returns the number of positions of a target after which every map has moved by whole positions;
 * 0: too many. scales[n_nodes]: scratch, the same number per map. */
static int64_t find_scale(const struct sweep *s, int64_t *scales) {
    const struct rfx_graph *graph = s->graph;
    int64_t all = 1;
    for (int i = 0; i < graph->n_nodes; i++) scales[i] = 1;
    for (int i = graph->n_nodes - 1; i >= 0; i--) {
        const struct rfx_node *node = &graph->nodes[i];
        bool whole = s->places[i] == RFX_PLACE_FETCHED || s->places[i] == RFX_PLACE_REDUCED;
        if (!rfx_place_is_computed(s->places[i]) || whole) continue;
        for (int k = 0; k < node->n_in; k++) {
            struct rfx_axis_map map = rfx_axis_map_identity();
            if (node->op !=
                RFX_OP_GROUP) /* group.c refuses upsampling and blocks inside of groups */
                map = rfx_op_axis_map(graph, node, k, (int)s->axis);
            int64_t block = map.rule == RFX_AXIS_BLOCKS ? map.taps : 1;
            if (map.up > MOST_SCALE || block > MOST_SCALE) return 0;
            int64_t *in = &scales[node->in[k]];
            *in = common_multiple(*in, scales[i] * map.up);
            all = common_multiple(all, common_multiple(*in, scales[i] * block));
            if (all > MOST_SCALE) return 0;
        }
    }
    return all;
}

/* Returns the positions of the targets, if all have the same number and every region moves evenly;
 * otherwise 0. */
static int64_t even_extent(const struct sweep *s) {
    const struct rfx_graph *graph = s->graph;
    int64_t extent = 0;
    for (int i = 0; i < graph->n_nodes; i++) {
        enum rfx_node_place place = s->places[i];
        if (!rfx_place_is_computed(place)) continue;
        if (place != RFX_PLACE_REDUCED && !moves_evenly(s, i)) return 0;
        if (place <= RFX_PLACE_LOCAL) continue;
        int64_t own = rfx_range_size(
            rfx_node_stage_range(&graph->nodes[i], place == RFX_PLACE_REDUCED, s->axis));
        if (extent != 0 && own != extent) return 0;
        extent = own;
    }
    return extent;
}

static bool are_equal(struct rfx_range a, struct rfx_range b) {
    return a.lo == b.lo && a.hi == b.hi;
}

/* Returns whether no region is clipped at a border, also not inside of a group. */
static bool is_free(const struct sweep *s, const struct rfx_axis_region *regions) {
    const struct rfx_graph *graph = s->graph;
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct rfx_node *node = &graph->nodes[i];
        struct rfx_range need = regions[i].clamped;
        if (!are_equal(regions[i].unclamped, need)) return false;
        if (s->places[i] == RFX_PLACE_FETCHED) continue;
        if (node->op == RFX_OP_GROUP) { /* its maps inside; its inputs have regions of their own */
            if (!rfx_group_is_inside(&node->attr.group, (int)s->axis, need)) return false;
            continue;
        }
        bool own_rule = rfx_op_def(node->op)->in_range != NULL;
        if (need.lo >= need.hi || !own_rule || s->places[i] == RFX_PLACE_REDUCED) continue;
        for (int k = 0; k < node->n_in; k++) {
            if (!rfx_place_is_computed(s->places[node->in[k]])) continue;
            if (!are_equal(rfx_op_in_range(graph, node, k, (int)s->axis, need),
                           rfx_op_endless_range(graph, node, k, (int)s->axis, need)))
                return false;
        }
    }
    return true;
}

static int count_flows(const struct sweep *s) {
    int64_t n = 0;
    for (int i = 0; i < s->graph->n_nodes; i++)
        if (rfx_place_is_computed(s->places[i])) n += 2 + s->graph->nodes[i].n_in;
    return n > MOST_FLOWS ? 0 : (int)n;
}

/* Adds the flows of a computed node, after those of the nodes behind it. */
static void add_flows(struct sweep *s, int i) {
    const struct rfx_node *node = &s->graph->nodes[i];
    bool reduced = s->places[i] == RFX_PLACE_REDUCED;
    int n_in = reduced ? 0 : rfx_place_inputs(s->places[i], node);
    bool grouped = node->op == RFX_OP_GROUP && n_in > 0;
    if (s->places[i] > RFX_PLACE_LOCAL) {
        int to = reduced ? node->in[0] : i;
        int64_t room = rfx_node_extent(&s->graph->nodes[to], s->axis);
        s->lines[to].anchor = to;
        if (rfx_place_is_computed(s->places[to]))
            s->flows[s->n_flows++] = (struct rfx_flow){.node = i, .in = to, .k = OWN, .room = room};
    }
    if (rfx_line_settle(s->lines, i))
        s->flows[s->n_flows++] = (struct rfx_flow){
            .node = i, .in = s->lines[i].anchor, .k = LINE, .room = rfx_node_extent(node, s->axis)};
    if (grouped) rfx_line_pass_group(s->lines, s->graph, i, s->axis);
    for (int k = 0; k < n_in; k++) {
        if (!rfx_place_is_computed(s->places[node->in[k]])) continue;
        struct rfx_flow *flow = &s->flows[s->n_flows++];
        *flow = rfx_flow_of(s->graph, i, k, s->axis);
        if (!grouped) rfx_line_pass(s->lines, flow);
    }
}

/* Drops the flows to nodes that have a line. */
static void drop_flows(struct sweep *s) {
    int kept = 0;
    for (int f = 0; f < s->n_flows; f++) {
        const struct rfx_flow *flow = &s->flows[f];
        if (flow->k == LINE || s->lines[flow->in].anchor == flow->in) s->flows[kept++] = *flow;
    }
    s->n_flows = kept;
}

/* Lists the flows; without memory for them, the nodes' own rules are asked. */
static void list_flows(struct sweep *s, struct rfx_axis_region *regions) {
    static const struct rfx_axis_region nothing = {{0, 0}, {0, 0}};
    int n = s->graph->n_nodes, most = s->n < FEWEST_TILES ? 0 : count_flows(s);
    if (most == 0) return;
    s->flows = rfx_memory_alloc(s->graph->mem,
                                (size_t)most * sizeof *s->flows + (size_t)n * sizeof *s->lines);
    if (s->flows == NULL) return;
    s->lines = (struct rfx_line *)(void *)(s->flows + most);
    for (int i = 0; i < n; i++) s->lines[i].anchor = RFX_LINE_UNKNOWN;
    for (int i = 0; i < RFX_SWEEP_REGIONS * n; i++) regions[i] = nothing;
    s->first = n;
    for (int i = n - 1; i >= 0; i--) {
        if (!rfx_place_is_computed(s->places[i])) continue;
        s->first = i;
        if (s->end == 0) s->end = i + 1;
        add_flows(s, i);
    }
    drop_flows(s);
}

/* Computes the regions of a tile, as rfx_stage_regions does, from the flows if there are any. */
static void find_regions(const struct sweep *s, int64_t tile, struct rfx_axis_region *regions) {
    static const struct rfx_axis_region nothing = {{0, 0}, {0, 0}};
    if (s->flows == NULL) {
        rfx_stage_regions(s->graph, s->places, s->axis, s->n, tile, regions);
        return;
    }
    for (int i = s->first; i < s->end; i++) regions[i] = nothing;
    for (int f = 0; f < s->n_flows; f++) {
        const struct rfx_flow *flow = &s->flows[f];
        struct rfx_range need = regions[flow->k == LINE ? flow->in : flow->node].clamped;
        if (flow->k == LINE) {
            if (need.lo < need.hi)
                regions[flow->node] = rfx_line_region(&s->lines[flow->node], flow->room, need);
        } else if (flow->k == OWN) {
            need = rfx_stage_target_range(s->graph, flow->node, s->places[flow->node], s->axis,
                                          s->n, tile);
            rfx_region_widen(&regions[flow->in], flow->room, need);
        } else if (need.lo < need.hi) {
            need = rfx_flow_range(flow, s->graph, s->axis, need);
            rfx_region_widen(&regions[flow->in], flow->room, need);
        }
    }
}

/* Computes the regions of a tile; returns whether none of them is clipped. */
static bool look_at(const struct sweep *s, int64_t tile, struct rfx_axis_region *regions) {
    find_regions(s, tile, regions);
    return is_free(s, regions);
}

/* Returns whether the regions of three tiles lie on one line each: the second tile is next to the
 * first, the third `steps` further. */
static bool are_in_line(int n_nodes, const struct rfx_axis_region *first,
                        const struct rfx_axis_region *second, const struct rfx_axis_region *third,
                        int64_t steps) {
    for (int i = 0; i < n_nodes; i++) {
        struct rfx_range a = first[i].clamped, b = second[i].clamped, c = third[i].clamped;
        if (c.lo - a.lo != steps * (b.lo - a.lo) || c.hi - a.hi != steps * (b.hi - a.hi))
            return false;
        if (rfx_range_size(a) != rfx_range_size(b)) return false;
    }
    return true;
}

/* Returns whether the regions of tile `first`, of the tile one period later, and of the last tile
 * of this series up to `lo` lie on one line each. Uses three tables of regions. */
static bool is_line(const struct sweep *s, int64_t first, int64_t period, int64_t lo,
                    struct rfx_axis_region *regions) {
    int n = s->graph->n_nodes;
    int64_t steps = (lo - first) / period;
    for (int i = 0; i < 3; i++) {
        int64_t tile = first + (i < 2 ? i : steps) * period;
        find_regions(s, tile, regions + (size_t)i * (size_t)n);
    }
    return are_in_line(n, regions, regions + n, regions + 2 * (size_t)n, steps);
}

/* Returns the last tile of tile .. end - 1 (the first of which is unclipped) up to which all tiles
 * are unclipped. */
static int64_t last_free(const struct sweep *s, int64_t tile, int64_t end,
                         struct rfx_axis_region *regions) {
    int64_t lo = tile, hi = end - 1;
    while (lo < hi) {
        int64_t middle = lo + (hi - lo + 1) / 2;
        if (look_at(s, middle, regions))
            lo = middle;
        else
            hi = middle - 1;
    }
    return lo;
}

/* Adds the tiles behind the unclipped `tile` as far as they are equal; returns the last one added.
 * `end`: end of the tiles of the same width. */
static int64_t add_alike(const struct sweep *s, int64_t tile, int64_t end,
                         struct rfx_axis_region *regions, rfx_tile_adder *add, void *user) {
    int64_t width = rfx_tile_range(s->extent, s->n, tile).hi;
    width -= rfx_tile_range(s->extent, s->n, tile).lo;
    int64_t period = s->scale / rfx_gcd_i64(s->scale, width);
    if (end - tile < FEWEST_TILES * period || !look_at(s, tile + 1, regions)) return tile;
    int64_t lo = last_free(s, tile, end, regions);
    if (lo < tile + 4 * period) return tile;
    for (int64_t p = 0; p < period; p++)
        if (!is_line(s, tile + p, period, lo, regions)) return tile;
    for (int64_t p = 1; p < 2 * period;
         p++) { /* one period by itself, then one for all but the last */
        int64_t first = tile + p;
        find_regions(s, first, regions);
        add(user, regions, p < period ? 1 : (lo - first) / period);
    }
    for (int64_t t = lo - period + 1; t <= lo; t++) {
        find_regions(s, t, regions);
        add(user, regions, 1);
    }
    return lo;
}

void rfx_stage_sweep(const struct rfx_graph *graph, const enum rfx_node_place *places,
                     enum rfx_axis axis, int64_t n, struct rfx_axis_region *regions,
                     rfx_tile_adder *add, void *user) {
    struct sweep s = {.graph = graph, .places = places, .axis = axis, .n = n};
    if (n >= FEWEST_TILES) s.extent = even_extent(&s);
    if (s.extent >= n) s.scale = find_scale(&s, (int64_t *)(void *)regions);
    list_flows(&s, regions);
    bool even = s.scale > 0;
    int64_t longer =
        even ? s.extent % n : 0;    /* the first `longer` tiles are wider by one: rfx_tile_range */
    bool tried[2] = {!even, !even}; /* for the wider tiles, for the others */
    for (int64_t t = 0; t < n; t++) {
        int width = t < longer ? 0 : 1; /* which of the two */
        find_regions(&s, t, regions);
        add(user, regions, 1);
        if (tried[width] || !is_free(&s, regions)) continue;
        tried[width] = true;
        t = add_alike(&s, t, width == 0 ? longer : n, regions, add, user);
    }
    rfx_memory_release(graph->mem, s.flows);
}

struct extent_sums {
    int n_nodes;
    struct rfx_tile_extent *extents;
};

static void add_extents(void *user, const struct rfx_axis_region *regions, int64_t tiles) {
    const struct extent_sums *sums = user;
    for (int i = 0; i < sums->n_nodes; i++) {
        int64_t size = rfx_range_size(regions[i].clamped);
        sums->extents[i].max = rfx_max_i64(sums->extents[i].max, size);
        sums->extents[i].sum += size * tiles;
    }
}

void rfx_stage_extents(const struct rfx_graph *graph, const enum rfx_node_place *places,
                       enum rfx_axis axis, int64_t n, struct rfx_axis_region *regions,
                       struct rfx_tile_extent *extents) {
    struct extent_sums sums = {graph->n_nodes, extents};
    for (int i = 0; i < graph->n_nodes; i++) extents[i].max = extents[i].sum = 0;
    rfx_stage_sweep(graph, places, axis, n, regions, add_extents, &sums);
}
