/* Listing and measuring candidates; see planner_search.h. */
#include "tiler/planner_search.h"

#include <string.h>

#include "layers/checked.h"
#include "tiler/modes/modes.h"
#include "tiler/splits.h"

#define KNOWN_BYTES ((size_t)1 << 20) /* most that is kept of measured rings */
#define LAST_CUTS 3   /* the last legal splits: streaming costs no MACs, so later is smaller */
#define SPREAD_CUTS 4 /* and some spread over the others */
#define MAX_CUTS (LAST_CUTS + SPREAD_CUTS)
/* Packing constants again, in the time of MACs (docs/tradeoff_notes.md). */
#define LOAD_MACS_PER_BYTE 100

static bool is_same_skeleton(const struct rfx_skeleton *a, const struct rfx_skeleton *b) {
    return a->kind == b->kind && a->cut == b->cut && a->second == b->second &&
           a->passes == b->passes;
}

static const struct rfx_known_rows *find_rows(const struct rfx_search *search, int s) {
    const struct rfx_stage_spec *spec = &search->specs[s];
    for (int i = 0; search->skeleton != NULL && i < search->n_known; i++) {
        const struct rfx_known_rows *known = &search->known[i];
        if (known->stage == s && known->mode == spec->mode && known->band_rows == spec->band_rows &&
            known->parts_y == spec->parts_y && is_same_skeleton(&known->skeleton, search->skeleton))
            return known;
    }
    return NULL;
}

/* Keeps measured rows for the next time, as long as that takes little memory. Only rows in bands
 * are worth it: a walk through a stream takes long. */
static void keep_rows(struct rfx_search *search, int s, const struct rfx_node_rows *rows,
                      int64_t overlap_rows) {
    const struct rfx_stage_spec *spec = &search->specs[s];
    size_t bytes = (size_t)search->context.graph->n_nodes * sizeof *rows;
    size_t kept = (size_t)search->n_known * bytes;
    if (search->skeleton == NULL || search->n_known == RFX_SEARCH_MAX_KNOWN) return;
    if (spec->band_rows == 0 || kept + bytes > KNOWN_BYTES) return;
    struct rfx_known_rows known = {
        .skeleton = *search->skeleton,
        .mode = spec->mode,
        .stage = s,
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
static enum rfx_status measure_stage(struct rfx_search *search, int s, struct rfx_error *err) {
    const struct rfx_graph *graph = search->context.graph;
    const struct rfx_plan_request *request = search->context.request;
    enum rfx_node_place *places = search->places + (size_t)s * (size_t)graph->n_nodes;
    struct rfx_stage_spec *spec = &search->specs[s];
    bool emit = request->emit_outputs && !request->outputs_by_caller;
    enum rfx_status status = rfx_stage_places(graph, spec, emit, search->stored, places, err);
    if (status != RFX_OK) return status;
    rfx_stage_limit_parts(graph, spec);
    search->shapes[s] = (struct rfx_stage_shape){.spec = *spec, .places = places};
    measure_rows(search, s);
    measure_cols(search, s);
    return RFX_OK;
}

/* Before the first stage nothing is stored but what the caller has. */
static void begin_stages(struct rfx_search *search, const struct rfx_candidate *c) {
    const struct rfx_graph *graph = search->context.graph;
    struct rfx_known_cols *cols = &search->known_cols;
    memset(search->stored, 0, (size_t)graph->n_nodes * sizeof *search->stored);
    if (graph->input >= 0) search->stored[graph->input] = search->context.by_caller[graph->input];
    search->skeleton = c != NULL ? &c->skeleton : NULL;
    if (c == NULL || cols->mode != c->way.mode || !is_same_skeleton(&cols->skeleton, &c->skeleton))
        cols->n = 0; /* they are another stage's */
    if (c == NULL) return;
    cols->mode = c->way.mode;
    cols->skeleton = c->skeleton;
}

/* Gives a stage the numbers and flags of a way that its mode knows. */
static void set_flags(struct rfx_stage_spec *spec, const struct rfx_stage_spec *way) {
    spec->tight = way->tight && (spec->mode->knows & RFX_KNOWS_TIGHT) != 0;
    spec->row_by_row = way->row_by_row && (spec->mode->knows & RFX_KNOWS_ROW_BY_ROW) != 0;
    spec->weights_by_stage = way->weights_by_stage;
}

/* Fills the stages of a candidate and their geometry. */
static enum rfx_status lay_out(struct rfx_search *search, const struct rfx_candidate *c,
                               int *n_stages, struct rfx_error *err) {
    const struct rfx_stage_spec *way = &c->way;
    int n = rfx_skeleton_stages(&search->levels, &c->skeleton, search->rest, search->specs,
                                search->targets);
    begin_stages(search, c);
    for (int s = 0; s < n; s++) {
        struct rfx_stage_spec *spec = &search->specs[s];
        if (spec->mode == NULL) {
            spec->mode = way->mode;
            spec->parts_y = way->parts_y;
            spec->parts_x = way->parts_x;
            spec->band_rows = way->band_rows;
        }
        set_flags(spec, way);
        enum rfx_status status = measure_stage(search, s, err);
        if (status != RFX_OK) return status;
    }
    *n_stages = n;
    return RFX_OK;
}

/* The modes' own percents, the most of each mode's stages, on all MACs; and loading constants. */
static uint64_t predicted_cost(const struct rfx_search *search, int n_stages, uint64_t macs) {
    uint64_t percent = 100;
    bool loads = false;
    for (int s = 0; s < n_stages; s++) {
        const struct rfx_mode *mode = search->shapes[s].spec.mode;
        int most = 0;
        bool first = true; /* of its mode */
        for (int t = 0; t < n_stages && mode->extra_percent != NULL; t++) {
            if (search->shapes[t].spec.mode != mode) continue;
            int extra = mode->extra_percent(&search->shapes[t].spec);
            first = first && t >= s;
            if (extra > most) most = extra;
        }
        if (first) percent += (uint64_t)most;
        loads = loads || search->shapes[s].spec.weights_by_stage;
    }
    uint64_t cost = macs / 100 * percent;
    if (loads) cost += (uint64_t)search->context.weights_bytes * LOAD_MACS_PER_BYTE;
    return cost;
}

static enum rfx_status push(struct rfx_search *search, const struct rfx_candidate *c,
                            struct rfx_error *err) {
    if (search->n_candidates == search->capacity) {
        size_t capacity = search->capacity == 0 ? 256 : 2 * search->capacity;
        size_t bytes = capacity * sizeof *c;
        struct rfx_memory *mem = search->context.graph->mem;
        struct rfx_candidate *grown = rfx_memory_alloc(mem, bytes);
        if (grown == NULL) return rfx_memory_fail(mem, "planner candidates", bytes, err);
        if (search->n_candidates > 0)
            memcpy(grown, search->candidates, search->n_candidates * sizeof *c);
        rfx_memory_release(mem, search->candidates);
        search->candidates = grown;
        search->capacity = capacity;
    }
    search->candidates[search->n_candidates++] = *c;
    return RFX_OK;
}

/* Ways of squeezing a plan, from the fastest to the smallest. */
struct way {
    bool tight, row_by_row, weights_by_stage;
    bool coarse; /* tried for grids and strips too, of which there are many */
};
static const struct way ways[] = {
    {false, false, false, true}, {true, false, false, true},  {false, true, false, false},
    {true, true, false, false},  {false, false, true, false}, {true, false, true, false},
    {false, true, true, true},   {true, true, true, true},
};

/* Whether a way is what was asked for, or more where a budget may need it. */
static bool is_open_way(const struct rfx_plan_request *request, const struct rfx_candidate *c,
                        const struct way *way) {
    const struct rfx_stage_spec *asked = &request->asked;
    bool tight = c->way.mode != NULL && (c->way.mode->knows & RFX_KNOWS_TIGHT) != 0;
    bool coarse = c->way.parts_x > 1 || c->skeleton.kind == RFX_SKELETON_MAP;
    if (way->tight && !tight) return false;
    bool more = (way->tight && !asked->tight) || (way->row_by_row && !asked->row_by_row) ||
                (way->weights_by_stage && !asked->weights_by_stage);
    bool less = (tight && asked->tight && !way->tight) || (asked->row_by_row && !way->row_by_row) ||
                (asked->weights_by_stage && !way->weights_by_stage);
    if (less || (more && request->memory_bytes == 0)) return false;
    return !more || !coarse || way->coarse;
}

/* What stages without rings need in any way, given the bound of the plain one: sliding saves at
 * most the smaller of what dies and what is made, so at most half of what is alive. */
static size_t least_of_ways(struct rfx_search *search, size_t plain_bound, int n_stages) {
    size_t fixed = rfx_plan_fixed_bytes(&search->context, search->shapes, n_stages);
    return fixed - search->context.weights_bytes + (plain_bound - fixed) / 2;
}

static bool is_of_interest(const struct rfx_search *search, size_t bound) {
    return bound <= search->context.request->memory_bytes || bound <= search->bound_limit;
}

/* Adds the candidate whose stages are laid out, in every way that is open. */
static enum rfx_status add_laid_out(struct rfx_search *search, struct rfx_candidate c, int n_stages,
                                    struct rfx_error *err) {
    c.macs = rfx_plan_count_macs(&search->context, search->shapes, n_stages);
    size_t least = 0;
    if (c.macs >= search->macs_limit) return RFX_OK;
    for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
        if (!is_open_way(search->context.request, &c, &ways[w])) continue;
        if (!is_of_interest(search, least)) break;
        c.way.tight = ways[w].tight;
        c.way.row_by_row = ways[w].row_by_row;
        c.way.weights_by_stage = ways[w].weights_by_stage;
        for (int s = 0; s < n_stages; s++) set_flags(&search->shapes[s].spec, &c.way);
        c.cost = predicted_cost(search, n_stages, c.macs);
        c.bound = rfx_plan_bound(&search->context, search->shapes, n_stages);
        bool plain = !c.way.row_by_row && !c.way.weights_by_stage && c.way.band_rows == 0;
        if (plain) least = least_of_ways(search, c.bound, n_stages);
        if (!is_of_interest(search, c.bound)) continue;
        enum rfx_status status = push(search, &c, err);
        if (status != RFX_OK) return status;
    }
    return RFX_OK;
}

/* The candidate laid out, again in another number of parts across: rows do not depend on it. */
static enum rfx_status add_across(struct rfx_search *search, struct rfx_candidate c, int64_t parts,
                                  int n_stages, struct rfx_error *err) {
    c.way.parts_x = parts;
    for (int s = 0; s < n_stages; s++) {
        struct rfx_stage_spec *spec = &search->shapes[s].spec;
        if (spec->mode != c.way.mode || !spec->mode->local) continue;
        spec->parts_x = parts;
        rfx_stage_limit_parts(search->context.graph, spec);
        measure_cols(search, s);
    }
    return add_laid_out(search, c, n_stages, err);
}

/* The splits at which streams may end: the last ones, and some spread over the others. */
static int list_cuts(const struct rfx_search *search, int *cuts) {
    int n = 0;
    int early = search->n_splits > LAST_CUTS ? search->n_splits - LAST_CUTS : 0;
    int spread = early < SPREAD_CUTS ? early : SPREAD_CUTS;
    for (int i = 0; i < spread; i++)
        cuts[n++] = search->splits[(int64_t)(2 * i + 1) * early / (2 * spread)];
    for (int i = early; i < search->n_splits; i++) cuts[n++] = search->splits[i];
    return n;
}

/* The numbers of parts along an axis that a trial looks at, or the one that was asked for. */
static int list_parts(const struct rfx_search *search, const struct rfx_trial *trial,
                      const struct rfx_skeleton *skeleton, enum rfx_axis axis, int64_t *counts) {
    const struct rfx_stage_spec *asked = &search->context.request->asked;
    int64_t given = axis == RFX_AXIS_ROWS ? asked->parts_y : asked->parts_x;
    bool grid = trial->parts == RFX_PARTS_GRID;
    bool listed = trial->parts == RFX_PARTS_ACROSS && axis == RFX_AXIS_COLS;
    if (asked->mode != NULL || !(grid || listed)) {
        counts[0] = rfx_max_i64(given, 1);
        return 1;
    }
    if (grid) {
        const struct rfx_node *cut = &search->context.graph->nodes[skeleton->cut];
        return rfx_tiling_counts(rfx_node_extent(cut, axis), counts);
    }
    memcpy(counts, trial->across, (size_t)trial->n_across * sizeof *counts);
    return trial->n_across;
}

/* A skeleton in every number of bands and parts of the trial. */
static enum rfx_status add_skeleton(struct rfx_search *search, const struct rfx_mode *mode,
                                    const struct rfx_trial *trial, struct rfx_skeleton skeleton,
                                    struct rfx_error *err) {
    const struct rfx_stage_spec *asked = &search->context.request->asked;
    int64_t down[RFX_TILING_MAX_COUNTS], across[RFX_TILING_MAX_COUNTS];
    int n_down = list_parts(search, trial, &skeleton, RFX_AXIS_ROWS, down);
    int n_across = list_parts(search, trial, &skeleton, RFX_AXIS_COLS, across);
    bool given = asked->mode != NULL && asked->band_rows > 0;
    int n_bands = given || trial->n_bands == 0 ? 1 : trial->n_bands;
    enum rfx_status status = RFX_OK;
    for (int b = 0; b < n_bands; b++)
        for (int y = 0; status == RFX_OK && y < n_down; y++) {
            struct rfx_candidate c = {.skeleton = skeleton};
            int n_stages;
            c.way = (struct rfx_stage_spec){.mode = mode, .parts_y = down[y], .parts_x = across[0]};
            if (trial->n_bands > 0) c.way.band_rows = given ? asked->band_rows : trial->bands[b];
            status = lay_out(search, &c, &n_stages, err);
            for (int x = 0; status == RFX_OK && x < n_across; x++) {
                bool cut = down[y] > 1 || across[x] > 1;
                c.kind = cut ? trial->kind_in_parts : trial->kind;
                status = add_across(search, c, across[x], n_stages, err);
            }
        }
    return status;
}

/* All pairs of a few cuts. */
static enum rfx_status add_pairs(struct rfx_search *search, const struct rfx_mode *mode,
                                 const struct rfx_trial *trial, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    int cuts[MAX_CUTS];
    int n = list_cuts(search, cuts);
    for (int i = 0; i < n; i++)
        for (int j = i + 1; status == RFX_OK && j < n; j++) {
            struct rfx_skeleton pair = {RFX_SKELETON_CUTS, cuts[i], cuts[j], 0};
            status = add_skeleton(search, mode, trial, pair, err);
        }
    return status;
}

/* One cut, of a few or wherever there may be one. */
static enum rfx_status add_cuts(struct rfx_search *search, const struct rfx_mode *mode,
                                const struct rfx_trial *trial, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    bool few = trial->cuts == RFX_CUTS_FEW;
    int some[MAX_CUTS];
    const int *cuts = few ? some : search->splits;
    int n = few ? list_cuts(search, some) : search->n_splits;
    for (int i = 0; status == RFX_OK && i < n; i++) {
        struct rfx_skeleton cut = {.kind = few ? RFX_SKELETON_CUT : RFX_SKELETON_MAP,
                                   .cut = cuts[i]};
        status = add_skeleton(search, mode, trial, cut, err);
    }
    return status;
}

static enum rfx_status add_trial(struct rfx_search *search, const struct rfx_mode *mode,
                                 const struct rfx_trial *trial, struct rfx_error *err) {
    struct rfx_skeleton chain = {.kind = RFX_SKELETON_CHAIN};
    enum rfx_status status = RFX_OK;
    switch (trial->cuts) {
        case RFX_CUTS_NONE:
            chain.kind = RFX_SKELETON_REST;
            return add_skeleton(search, mode, trial, chain, err);
        case RFX_CUTS_CHAIN:
            return search->levels.n > 0 ? add_skeleton(search, mode, trial, chain, err) : RFX_OK;
        case RFX_CUTS_PASSES:
            for (int p = 1; status == RFX_OK && p < search->levels.n; p++) {
                chain.passes = p;
                status = add_skeleton(search, mode, trial, chain, err);
            }
            return status;
        case RFX_CUTS_PAIRS:
            return add_pairs(search, mode, trial, err);
        case RFX_CUTS_FEW:
        case RFX_CUTS_EVERY:
            break;
    }
    return add_cuts(search, mode, trial, err);
}

/* Whether the request leaves a trial open. */
static bool is_open_trial(const struct rfx_plan_request *request, const struct rfx_mode *mode,
                          const struct rfx_trial *trial) {
    bool at_cut = trial->cuts == RFX_CUTS_FEW || trial->cuts == RFX_CUTS_EVERY;
    if (request->split != NULL && !at_cut) return false;
    if (request->asked.mode != NULL) return request->asked.mode == mode && trial->when_asked;
    return request->memory_bytes != 0 || trial->always;
}

enum rfx_status rfx_search_list(struct rfx_search *search, int phase, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    search->first = search->n_candidates;
    for (int m = 0; m < search->n_modes; m++) {
        const struct rfx_mode *mode = search->modes[m];
        for (int t = 0; status == RFX_OK && t < mode->n_trials; t++)
            if ((int)mode->trials[t].phase == phase &&
                is_open_trial(search->context.request, mode, &mode->trials[t]))
                status = add_trial(search, mode, &mode->trials[t], err);
    }
    return status;
}

static int compare_u64(uint64_t a, uint64_t b) {
    return (a > b) - (a < b);
}

int rfx_candidate_compare_macs(const void *pa, const void *pb) {
    const struct rfx_candidate *a = pa;
    const struct rfx_candidate *b = pb;
    int by_macs = compare_u64(a->macs, b->macs);
    if (by_macs != 0) return by_macs;
    int by_cost = compare_u64(a->cost, b->cost);
    return by_cost != 0 ? by_cost : compare_u64(a->bound, b->bound);
}

int rfx_candidate_compare_bound(const void *pa, const void *pb) {
    const struct rfx_candidate *a = pa;
    const struct rfx_candidate *b = pb;
    int by_bound = compare_u64(a->bound, b->bound);
    return by_bound != 0 ? by_bound : rfx_candidate_compare_macs(pa, pb);
}

enum rfx_status rfx_search_build(struct rfx_search *search, const struct rfx_candidate *c,
                                 struct rfx_plan **out, struct rfx_error *err) {
    int n_stages;
    enum rfx_status status = lay_out(search, c, &n_stages, err);
    if (status != RFX_OK) return status;
    return rfx_plan_build(&search->context, search->shapes, n_stages, c->cost, out, err);
}

static enum rfx_status list_splits(struct rfx_search *search, struct rfx_error *err) {
    const struct rfx_graph *graph = search->context.graph;
    const struct rfx_plan_request *request = search->context.request;
    const struct rfx_mode *asked = request->asked.mode;
    if (request->split != NULL) {
        search->n_splits = 1;
        return rfx_split_find(graph, request->split, &search->splits[0], err);
    }
    search->n_splits = rfx_splits_list(graph, search->splits);
    if (asked == NULL || !asked->local) return RFX_OK;
    bool grid = (asked->knows & RFX_KNOWS_PARTS_Y) != 0; /* is never tried on chains */
    if (grid ? search->n_splits > 0 : search->levels.n > 0) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                    "this network cannot be tiled or streamed: it has no point where a single "
                    "tensor that is local in space is alive");
}

static enum rfx_status allocate_tables(struct rfx_search *search, struct rfx_error *err) {
    struct rfx_memory *mem = search->context.graph->mem;
    size_t n = (size_t)search->context.graph->n_nodes;
    size_t stages = (size_t)search->max_stages;
    struct rfx_known_cols *cols = &search->known_cols;
    search->splits = rfx_memory_calloc(mem, n, sizeof *search->splits);
    search->shapes = rfx_memory_calloc(mem, stages, sizeof *search->shapes);
    search->specs = rfx_memory_calloc(mem, stages, sizeof *search->specs);
    search->targets = rfx_memory_calloc(mem, stages * n, sizeof *search->targets);
    search->places = rfx_memory_calloc(mem, stages * n, sizeof *search->places);
    search->rows = rfx_memory_calloc(mem, stages * n, sizeof *search->rows);
    search->cols = rfx_memory_calloc(mem, stages * n, sizeof *search->cols);
    search->stored = rfx_memory_calloc(mem, n, sizeof *search->stored);
    search->done = rfx_memory_calloc(mem, RFX_MODE_SCRATCH * n, sizeof *search->done);
    search->known = rfx_memory_calloc(mem, RFX_SEARCH_MAX_KNOWN, sizeof *search->known);
    search->regions = rfx_memory_calloc(mem, n, sizeof *search->regions);
    cols->extents = rfx_memory_calloc(mem, RFX_TILING_MAX_COUNTS * n, sizeof *cols->extents);
    if (search->splits == NULL || search->shapes == NULL || search->specs == NULL ||
        search->targets == NULL || search->places == NULL || search->rows == NULL ||
        search->cols == NULL || search->stored == NULL || search->done == NULL ||
        search->regions == NULL || search->known == NULL || cols->extents == NULL)
        return rfx_memory_fail(mem, "planner tables", stages * n * sizeof *search->rows, err);
    return RFX_OK;
}

/* The modes that may be used; the first that computes any node is the rest's. */
static enum rfx_status list_modes(struct rfx_search *search, const struct rfx_plan_request *request,
                                  struct rfx_error *err) {
    search->modes = request->modes;
    search->n_modes = request->n_modes;
    if (search->modes == NULL) search->modes = rfx_modes(&search->n_modes);
    for (int m = 0; m < search->n_modes && search->rest == NULL; m++)
        if (!search->modes[m]->local) search->rest = search->modes[m];
    if (search->rest != NULL) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                    "none of %d modes can compute what is not local in space", search->n_modes);
}

enum rfx_status rfx_search_init(struct rfx_search *search, const struct rfx_graph *graph,
                                const struct rfx_plan_request *request, struct rfx_error *err) {
    memset(search, 0, sizeof *search);
    search->macs_limit = UINT64_MAX;
    search->bound_limit = SIZE_MAX;
    enum rfx_status status = list_modes(search, request, err);
    if (status == RFX_OK) status = rfx_levels_init(&search->levels, graph, err);
    if (status != RFX_OK) return status;
    search->max_stages = rfx_skeleton_max_stages(&search->levels);
    if (request->n_stages > search->max_stages) search->max_stages = request->n_stages;
    status = rfx_plan_context_init(&search->context, graph, request, search->max_stages, err);
    if (status == RFX_OK) status = allocate_tables(search, err);
    return status == RFX_OK ? list_splits(search, err) : status;
}

void rfx_search_release(struct rfx_search *search) {
    rfx_levels_release(&search->levels);
    if (search->context.graph == NULL) return;
    struct rfx_memory *mem = search->context.graph->mem;
    rfx_memory_release(mem, search->splits);
    rfx_memory_release(mem, search->shapes);
    rfx_memory_release(mem, search->specs);
    rfx_memory_release(mem, search->targets);
    rfx_memory_release(mem, search->places);
    rfx_memory_release(mem, search->rows);
    rfx_memory_release(mem, search->cols);
    rfx_memory_release(mem, search->stored);
    rfx_memory_release(mem, search->done);
    for (int i = 0; i < search->n_known; i++) rfx_memory_release(mem, search->known[i].rows);
    rfx_memory_release(mem, search->known);
    rfx_memory_release(mem, search->known_cols.extents);
    rfx_memory_release(mem, search->regions);
    rfx_memory_release(mem, search->candidates);
    rfx_plan_context_release(&search->context);
}

/* Every output must be made by some stage. */
static enum rfx_status check_outputs(const struct rfx_search *search, int n_stages,
                                     struct rfx_error *err) {
    const struct rfx_graph *graph = search->context.graph;
    for (int k = 0; k < graph->n_outputs; k++) {
        int i = graph->outputs[k].node;
        bool made = rfx_node_is_constant(&graph->nodes[i]) || search->stored[i];
        for (int s = 0; s < n_stages; s++) made |= search->shapes[s].places[i] == RFX_PLACE_EMITTED;
        if (!made)
            return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                            "output '%s' ('%s') is no target of any stage", graph->outputs[k].name,
                            graph->nodes[i].name);
    }
    return RFX_OK;
}

enum rfx_status rfx_search_build_given(struct rfx_search *search, struct rfx_plan **out,
                                       struct rfx_error *err) {
    const struct rfx_plan_request *request = search->context.request;
    int n = request->n_stages;
    begin_stages(search, NULL);
    for (int s = 0; s < n; s++) {
        search->specs[s] = request->stages[s];
        search->specs[s].weights_by_stage |= request->asked.weights_by_stage;
        enum rfx_status status = measure_stage(search, s, err);
        if (status != RFX_OK) return rfx_fail_within(err, status, "stages[%d]", s);
    }
    enum rfx_status status = check_outputs(search, n, err);
    if (status != RFX_OK) return status;
    uint64_t macs = rfx_plan_count_macs(&search->context, search->shapes, n);
    return rfx_plan_build(&search->context, search->shapes, n, predicted_cost(search, n, macs), out,
                          err);
}
