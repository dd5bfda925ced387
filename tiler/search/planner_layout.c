/* The geometry of a candidate's stages; see planner_search.h. */
#include <string.h>

#include "layers/core/checked.h"
#include "tiler/search/planner_search.h"

static bool is_same_skeleton(const struct rfx_skeleton *a, const struct rfx_skeleton *b) {
    return a->kind == b->kind && a->cut == b->cut && a->second == b->second &&
           a->passes == b->passes && a->spill_from == b->spill_from && a->more == b->more &&
           a->store_to == b->store_to && a->late_to == b->late_to && a->late == b->late &&
           a->waist == b->waist && a->until == b->until;
}

/* Rows in bands are always worth keeping: a walk through a stream takes long. */
static bool is_worth_keeping(const struct rfx_search *search, const struct rfx_stage_spec *spec) {
    if (search->skeleton == NULL && !search->by_rows) return false; /* by hand: come once */
    return spec->band_rows != 0 || (search->placing && spec->mode->local);
}

static void measure_rows(struct rfx_search *search, int s) {
    const struct rfx_graph *graph = search->context.graph;
    struct rfx_stage_shape *shape = &search->shapes[s];
    struct rfx_node_rows *rows = search->rows + (size_t)s * (size_t)graph->n_nodes;
    shape->rows = rows;
    struct rfx_mode_measure measure = {graph, shape->places, &search->specs[s], search->done,
                                       search->regions};
    const struct rfx_mode *mode = shape->spec.mode;
    void *notes = search->skeleton == NULL ? NULL : rfx_known_notes(search->known, mode, graph);
    if (notes != NULL && mode->recall(notes, &measure, rows, &shape->overlap_rows)) return;
    if (rfx_known_find(search->known, shape, rows, &shape->overlap_rows)) return;
    shape->spec.mode->measure(&measure, rows, &shape->overlap_rows);
    if (is_worth_keeping(search, &shape->spec)) rfx_known_keep(search->known, shape);
}

enum rfx_status rfx_search_set_rows(struct rfx_search *search, int s, int64_t rows,
                                    struct rfx_error *err) {
    search->specs[s].band_rows = rows;
    search->shapes[s].spec.band_rows = rows;
    measure_rows(search, s);
    return rfx_memory_check_stop(search->context.graph->mem, err);
}

/* Columns of a stage whose number of parts across is settled. Before a single cut they are kept:
 * grids come back to them for every number of rows. */
static void measure_cols(struct rfx_search *search, int s) {
    const struct rfx_graph *graph = search->context.graph;
    size_t n = (size_t)graph->n_nodes;
    struct rfx_stage_shape *shape = &search->shapes[s];
    struct rfx_known_cols *known = &search->known_cols;
    struct rfx_tile_extent *cols = search->cols + (size_t)s * n;
    int64_t parts = shape->spec.parts_x;
    shape->cols = NULL;
    if (!rfx_stage_cuts_cols(&shape->spec)) return;
    for (int i = 0; s == 0 && i < known->n; i++)
        if (known->counts[i] == parts) shape->cols = known->extents + (size_t)i * n;
    if (shape->cols != NULL) return;
    if (s == 0 && search->skeleton != NULL && known->n < RFX_TILING_MAX_COUNTS) {
        cols = known->extents + (size_t)known->n * n;
        known->counts[known->n++] = parts;
    }
    shape->cols = cols;
    if (search->skeleton != NULL && rfx_known_find_cols(search->known, shape, cols)) return;
    rfx_stage_extents(graph, shape->places, RFX_AXIS_COLS, parts, search->regions, cols);
    if (search->skeleton != NULL) rfx_known_keep_cols(search->known, shape);
}

static void find_span(const struct rfx_graph *graph, struct rfx_stage_shape *shape) {
    shape->end = graph->n_nodes;
    while (shape->end > 0 && !rfx_place_is_computed(shape->places[shape->end - 1])) shape->end--;
    while (shape->first < shape->end && !rfx_place_is_computed(shape->places[shape->first]))
        shape->first++;
}

/* Geometry of stage s of the candidate at hand, from its specification. */
enum rfx_status rfx_search_measure(struct rfx_search *search, int s, struct rfx_error *err) {
    const struct rfx_graph *graph = search->context.graph;
    const struct rfx_plan_request *request = search->context.request;
    enum rfx_node_place *places = search->places + (size_t)s * (size_t)graph->n_nodes;
    struct rfx_stage_spec *spec = &search->specs[s];
    bool emit = request->emit_outputs;
    enum rfx_status status =
        rfx_stage_places(graph, spec, emit, search->stored, search->in_file, places, err);
    if (status != RFX_OK) return status;
    rfx_stage_limit_parts(graph, spec);
    search->shapes[s] = (struct rfx_stage_shape){.spec = *spec, .places = places};
    find_span(graph, &search->shapes[s]);
    measure_rows(search, s);
    measure_cols(search, s);
    return rfx_memory_check_stop(graph->mem, err); /* measuring breaks off then */
}

/* Before the first stage nothing is stored but what the caller has. */
void rfx_search_begin(struct rfx_search *search, const struct rfx_candidate *c) {
    const struct rfx_graph *graph = search->context.graph;
    struct rfx_known_cols *cols = &search->known_cols;
    memset(search->stored, 0, (size_t)graph->n_nodes * sizeof *search->stored);
    memset(search->in_file, 0, (size_t)graph->n_nodes * sizeof *search->in_file);
    search->skeleton = c != NULL ? &c->skeleton : NULL;
    if (c == NULL || cols->mode != c->way.mode || !is_same_skeleton(&cols->skeleton, &c->skeleton))
        cols->n = 0; /* they are another stage's */
    if (c == NULL) return;
    cols->mode = c->way.mode;
    cols->skeleton = c->skeleton;
}

/* Gives a stage the numbers and flags of a way that its mode knows. */
void rfx_search_set_flags(struct rfx_stage_spec *spec, const struct rfx_stage_spec *way) {
    spec->tight = way->tight && (spec->mode->knows & RFX_KNOWS_TIGHT) != 0;
    spec->row_by_row = way->row_by_row && (spec->mode->knows & RFX_KNOWS_ROW_BY_ROW) != 0;
    spec->weights_by_stage = way->weights_by_stage;
}

static const struct rfx_levels *levels_of(const struct rfx_search *search,
                                          const struct rfx_skeleton *skeleton) {
    if (skeleton->waist > 0) return &search->waists[skeleton->waist - 1].levels;
    for (int k = 0; k < RFX_SEARCH_MORE; k++)
        if (skeleton->more == rfx_search_more(k)) return &search->more[k];
    return &search->levels;
}

/* Fills the stages of a candidate and their geometry. */
enum rfx_status rfx_search_lay_out(struct rfx_search *search, const struct rfx_candidate *c,
                                   int *n_stages, struct rfx_error *err) {
    const struct rfx_stage_spec *way = &c->way;
    int n = rfx_skeleton_stages(levels_of(search, &c->skeleton), &c->skeleton, search->rest,
                                search->specs, search->targets, search->spilled);
    rfx_search_begin(search, c);
    for (int s = 0; s < n; s++) {
        struct rfx_stage_spec *spec = &search->specs[s];
        if (spec->mode == NULL) {
            spec->mode = way->mode;
            spec->parts_y = way->parts_y;
            spec->parts_x = way->parts_x;
            spec->band_rows = way->band_rows;
        }
        rfx_search_set_flags(spec, way);
        enum rfx_status status = rfx_search_measure(search, s, err);
        if (status != RFX_OK) return status;
    }
    *n_stages = n;
    return RFX_OK;
}

uint64_t rfx_search_cost(const struct rfx_search *search, int n_stages) {
    struct rfx_cost_counts counts = {{0}};
    for (int s = 0; s < n_stages; s++)
        rfx_cost_count(&search->cost, &search->shapes[s], -1, &counts);
    return rfx_cost_picoseconds(&search->cost, &counts);
}

void rfx_search_lay_across(struct rfx_search *search, const struct rfx_mode *mode, int64_t parts,
                           int n_stages) {
    for (int s = 0; s < n_stages; s++) {
        struct rfx_stage_spec *spec = &search->shapes[s].spec;
        if (spec->mode != mode || !spec->mode->local) continue;
        spec->parts_x = parts;
        rfx_stage_limit_parts(search->context.graph, spec);
        measure_cols(search, s);
    }
}
