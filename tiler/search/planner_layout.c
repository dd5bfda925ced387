/* The geometry of a candidate's stages; see planner_search.h. */
#include <string.h>

#include "layers/core/checked.h"
#include "tiler/search/planner_search.h"

/* Most that is kept of measured rows: the planner itself counts against the budget. */
#define KNOWN_BYTES ((size_t)1 << 20)

static bool is_same_skeleton(const struct rfx_skeleton *a, const struct rfx_skeleton *b) {
    return a->kind == b->kind && a->cut == b->cut && a->second == b->second &&
           a->passes == b->passes && a->spill_from == b->spill_from;
}

static int only_target(const struct rfx_stage_spec *spec, int s) {
    return s == 0 && spec->n_targets == 1 ? spec->targets[0] : -1;
}

static const struct rfx_known_rows *find_rows(const struct rfx_search *search, int s) {
    const struct rfx_stage_spec *spec = &search->specs[s];
    int target = only_target(spec, s);
    for (int i = 0; search->skeleton != NULL && i < search->n_known; i++) {
        const struct rfx_known_rows *known = &search->known[i];
        bool same = target >= 0
                        ? known->target == target
                        : known->stage == s && is_same_skeleton(&known->skeleton, search->skeleton);
        if (same && known->mode == spec->mode && known->band_rows == spec->band_rows &&
            known->parts_y == spec->parts_y)
            return known;
    }
    return NULL;
}

/* Keeps measured rows for the next time, as long as that takes little memory. Rows in bands are
 * always worth it: a walk through a stream takes long. */
static void keep_rows(struct rfx_search *search, int s, const struct rfx_node_rows *rows,
                      int64_t overlap_rows) {
    const struct rfx_stage_spec *spec = &search->specs[s];
    size_t bytes = (size_t)search->context.graph->n_nodes * sizeof *rows;
    size_t kept = (size_t)search->n_known * bytes;
    if (search->skeleton == NULL || search->n_known == RFX_SEARCH_MAX_KNOWN) return;
    bool again = spec->band_rows != 0 || (search->placing && spec->mode->local);
    if (!again || kept + bytes > KNOWN_BYTES) return;
    struct rfx_known_rows known = {
        .skeleton = *search->skeleton,
        .mode = spec->mode,
        .stage = s,
        .target = only_target(spec, s),
        .band_rows = spec->band_rows,
        .parts_y = spec->parts_y,
        .overlap_rows = overlap_rows,
        .rows = rfx_memory_alloc(search->context.graph->mem, bytes),
    };
    if (known.rows == NULL) return; /* measured again then */
    memcpy(known.rows, rows, bytes);
    search->known[search->n_known++] = known;
}

static void measure_rows(struct rfx_search *search, int s) {
    const struct rfx_graph *graph = search->context.graph;
    size_t at = (size_t)s * (size_t)graph->n_nodes;
    struct rfx_stage_shape *shape = &search->shapes[s];
    const struct rfx_known_rows *known = find_rows(search, s);
    shape->rows = search->rows + at;
    if (known != NULL) {
        memcpy(search->rows + at, known->rows, (size_t)graph->n_nodes * sizeof *known->rows);
        shape->overlap_rows = known->overlap_rows;
        return;
    }
    struct rfx_mode_measure measure = {graph, shape->places, &search->specs[s], search->done,
                                       search->regions};
    shape->spec.mode->measure(&measure, search->rows + at, &shape->overlap_rows);
    keep_rows(search, s, shape->rows, shape->overlap_rows);
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
    rfx_stage_extents(graph, shape->places, RFX_AXIS_COLS, parts, search->regions, cols);
    shape->cols = cols;
}

/* Geometry of stage s of the candidate at hand, from its specification. */
enum rfx_status rfx_search_measure(struct rfx_search *search, int s, struct rfx_error *err) {
    const struct rfx_graph *graph = search->context.graph;
    const struct rfx_plan_request *request = search->context.request;
    enum rfx_node_place *places = search->places + (size_t)s * (size_t)graph->n_nodes;
    struct rfx_stage_spec *spec = &search->specs[s];
    bool emit = request->emit_outputs && !request->outputs_by_caller;
    enum rfx_status status =
        rfx_stage_places(graph, spec, emit, search->stored, search->in_file, places, err);
    if (status != RFX_OK) return status;
    rfx_stage_limit_parts(graph, spec);
    search->shapes[s] = (struct rfx_stage_shape){.spec = *spec, .places = places};
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
    if (graph->input >= 0) search->stored[graph->input] = search->context.by_caller[graph->input];
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

/* Fills the stages of a candidate and their geometry. */
enum rfx_status rfx_search_lay_out(struct rfx_search *search, const struct rfx_candidate *c,
                                   int *n_stages, struct rfx_error *err) {
    const struct rfx_stage_spec *way = &c->way;
    int n = rfx_skeleton_stages(&search->levels, &c->skeleton, search->rest, search->specs,
                                search->targets, search->spilled);
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
