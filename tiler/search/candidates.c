/* Measures candidates: computes the geometry of their stages, their lower bound of memory and their
 * predicted cost, decides whether they are of interest, and makes the plan of a chosen one.
 *
 * A candidate is dropped as soon as a lower bound of its memory or time rules it out. The exact
 * cost and bound are computed last, because they take longest. Lower bounds never exceed the exact
 * values, so the same candidates remain as if all values had been computed for all candidates. */
#include "tiler/search/candidates.h"

#include <string.h>

#include "layers/core/checked.h"
#include "tiler/plan/mode.h"
#include "tiler/plan/splits.h"

static bool is_same_partition(const struct rfx_partition *a, const struct rfx_partition *b) {
    return a->kind == b->kind && a->cut == b->cut && a->second == b->second &&
           a->passes == b->passes && a->spill_from == b->spill_from && a->more == b->more &&
           a->store_to == b->store_to && a->late_to == b->late_to && a->late == b->late &&
           a->waist == b->waist && a->until == b->until;
}

/* Returns whether the measurement of a stage's rows should be cached. For rows in bands it always
 * pays, because a walk through a stream takes long. */
static bool is_worth_keeping(const struct rfx_search *search, const struct rfx_stage_spec *spec) {
    if (search->partition == NULL && !search->by_rows)
        return false; /* stages given by the request come once */
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
    void *cache =
        search->partition == NULL ? NULL : rfx_measurements_of_mode(search->cache, mode, graph);
    if (cache != NULL && mode->measure_cached(cache, &measure, rows, &shape->overlap_rows)) return;
    if (rfx_measurements_find(search->cache, shape, rows, &shape->overlap_rows)) return;
    shape->spec.mode->measure(&measure, rows, &shape->overlap_rows);
    if (is_worth_keeping(search, &shape->spec)) rfx_measurements_add(search->cache, shape);
}

enum rfx_status rfx_search_set_rows(struct rfx_search *search, int s, int64_t rows,
                                    struct rfx_error *err) {
    search->specs[s].band_rows = rows;
    search->shapes[s].spec.band_rows = rows;
    measure_rows(search, s);
    return rfx_memory_check_stop(search->context.graph->mem, err);
}

/* Computes the columns of a stage for its number of tiles across. The columns before a single cut
 * are cached, because grids need them again for every number of rows. */
static void measure_cols(struct rfx_search *search, int s) {
    const struct rfx_graph *graph = search->context.graph;
    size_t n = (size_t)graph->n_nodes;
    struct rfx_stage_shape *shape = &search->shapes[s];
    struct rfx_cached_cols *cached = &search->cached_cols;
    struct rfx_tile_extent *cols = search->cols + (size_t)s * n;
    int64_t parts = shape->spec.tiles_x;
    shape->cols = NULL;
    if (!rfx_stage_cuts_cols(&shape->spec)) return;
    for (int i = 0; s == 0 && i < cached->n; i++)
        if (cached->counts[i] == parts) shape->cols = cached->extents + (size_t)i * n;
    if (shape->cols != NULL) return;
    if (s == 0 && search->partition != NULL && cached->n < RFX_TILING_MAX_COUNTS) {
        cols = cached->extents + (size_t)cached->n * n;
        cached->counts[cached->n++] = parts;
    }
    shape->cols = cols;
    if (search->partition != NULL && rfx_measurements_find_cols(search->cache, shape, cols)) return;
    rfx_stage_extents(graph, shape->places, RFX_AXIS_COLS, parts, search->regions, cols);
    if (search->partition != NULL) rfx_measurements_add_cols(search->cache, shape);
}

static void find_span(const struct rfx_graph *graph, struct rfx_stage_shape *shape) {
    shape->end = graph->n_nodes;
    while (shape->end > 0 && !rfx_place_is_computed(shape->places[shape->end - 1])) shape->end--;
    while (shape->first < shape->end && !rfx_place_is_computed(shape->places[shape->first]))
        shape->first++;
}

enum rfx_status rfx_search_measure(struct rfx_search *search, int s, struct rfx_error *err) {
    const struct rfx_graph *graph = search->context.graph;
    const struct rfx_plan_request *request = search->context.request;
    enum rfx_node_place *places = search->places + (size_t)s * (size_t)graph->n_nodes;
    struct rfx_stage_spec *spec = &search->specs[s];
    bool emit = request->emit_outputs;
    enum rfx_status status =
        rfx_stage_places(graph, spec, emit, search->stored, search->in_file, places, err);
    if (status != RFX_OK) return status;
    rfx_stage_limit_tiles(graph, spec);
    search->shapes[s] = (struct rfx_stage_shape){.spec = *spec, .places = places};
    find_span(graph, &search->shapes[s]);
    measure_rows(search, s);
    measure_cols(search, s);
    return rfx_memory_check_stop(graph->mem, err); /* a stop ends measuring early */
}

void rfx_search_begin(struct rfx_search *search, const struct rfx_candidate *c) {
    const struct rfx_graph *graph = search->context.graph;
    struct rfx_cached_cols *cols = &search->cached_cols;
    memset(search->stored, 0, (size_t)graph->n_nodes * sizeof *search->stored);
    memset(search->in_file, 0, (size_t)graph->n_nodes * sizeof *search->in_file);
    search->partition = c != NULL ? &c->partition : NULL;
    if (c == NULL || cols->mode != c->spec.mode ||
        !is_same_partition(&cols->partition, &c->partition))
        cols->n = 0; /* the cached columns belong to another stage */
    if (c == NULL) return;
    cols->mode = c->spec.mode;
    cols->partition = c->partition;
}

void rfx_search_set_flags(struct rfx_stage_spec *spec, const struct rfx_stage_spec *flags) {
    spec->staging = flags->staging && (spec->mode->knows & RFX_KNOWS_STAGING) != 0;
    spec->row_by_row = flags->row_by_row && (spec->mode->knows & RFX_KNOWS_ROW_BY_ROW) != 0;
    spec->weights_by_stage = flags->weights_by_stage;
}

static const struct rfx_levels *levels_of(const struct rfx_search *search,
                                          const struct rfx_partition *partition) {
    if (partition->waist > 0) return &search->waists[partition->waist - 1].levels;
    for (int k = 0; k < RFX_SEARCH_MORE; k++)
        if (partition->more == rfx_search_more(k)) return &search->more[k];
    return &search->levels;
}

enum rfx_status rfx_search_lay_out(struct rfx_search *search, const struct rfx_candidate *c,
                                   int *n_stages, struct rfx_error *err) {
    const struct rfx_stage_spec *wanted = &c->spec;
    int n = rfx_partition_stages(levels_of(search, &c->partition), &c->partition, search->rest,
                                 search->specs, search->targets, search->spilled);
    rfx_search_begin(search, c);
    for (int s = 0; s < n; s++) {
        struct rfx_stage_spec *spec = &search->specs[s];
        if (spec->mode == NULL) {
            spec->mode = wanted->mode;
            spec->tiles_y = wanted->tiles_y;
            spec->tiles_x = wanted->tiles_x;
            spec->band_rows = wanted->band_rows;
        }
        rfx_search_set_flags(spec, wanted);
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
        spec->tiles_x = parts;
        rfx_stage_limit_tiles(search->context.graph, spec);
        measure_cols(search, s);
    }
}

bool rfx_search_wants_all(const struct rfx_search *search) {
    size_t budget = search->context.request->memory_bytes;
    return budget == 0 || budget == SIZE_MAX;
}

static bool is_out(const struct rfx_search *search, enum rfx_plan_kind kind, size_t bound,
                   uint64_t cost) {
    const struct rfx_search_rivals *rivals = search->rivals;
    bool fits = bound <= search->context.request->memory_bytes;
    if (!fits && bound > search->bound_limit) return true;
    if (rivals == NULL) return cost > search->cost_limit;
    if (fits) {
        int n = rivals->n[kind];
        return n == RFX_SEARCH_RIVAL_TRIES && cost > rivals->costs[kind][n - 1];
    }
    if (bound == rivals->least_bound[kind]) return cost > rivals->least_cost[kind];
    return bound > rivals->least_bound[kind];
}

/* Returns a lower bound of the cost; 0 if no limit applies. A small margin allows for another order
 * of summation. */
static uint64_t least_cost_of(const struct rfx_search *search, enum rfx_plan_kind kind,
                              int n_stages) {
    const struct rfx_search_rivals *rivals = search->rivals;
    double least = 0.0;
    bool limited = search->cost_limit != UINT64_MAX;
    if (rivals != NULL) limited = rivals->least_bound[kind] != SIZE_MAX;
    if (!limited) return 0; /* no limit: no plan is known that a candidate must beat */
    for (int s = 0; s < n_stages; s++) least += rfx_cost_least(&search->cost, &search->shapes[s]);
    least = least * (1.0 - 2e-9) - 2.0;
    return least < 0.0 ? 0 : (uint64_t)least;
}

static void note_behind(struct rfx_search *search, int mode, int n_stages) {
    struct rfx_search_behind *behind = &search->behind[mode];
    struct rfx_plan_context *c = &search->context;
    if (n_stages < 2 || search->shapes[n_stages - 1].spec.mode != search->rest) return;
    size_t window = c->request->source.window_row_bytes *
                    (size_t)rfx_plan_window_rows(c, search->shapes, n_stages);
    behind->arena = c->rest_bytes;
    behind->fixed = rfx_plan_fixed_bytes(c, search->shapes, n_stages) - window;
}

static size_t least_bound_of(const struct rfx_search *search, int mode) {
    const struct rfx_search_behind *behind = &search->behind[mode];
    const struct rfx_search_behind *plain = &search->behind[0];
    if (behind->fixed != 0) return behind->arena + behind->fixed;
    if (plain->fixed == 0) return 0;
    return plain->arena / 2 + plain->fixed - search->context.weights_bytes;
}

/* The memory modes: the combinations of memory-saving flags, from the fastest to the one that needs
 * the least memory. */
struct memory_mode {
    bool staging, row_by_row, weights_by_stage;
    bool coarse; /* also tried for grids and strips, although there are many */
};
static const struct memory_mode memory_modes[RFX_MEMORY_MODES] = {
    {false, false, false, true}, {true, false, false, true},  {false, true, false, false},
    {true, true, false, false},  {false, false, true, false}, {true, false, true, false},
    {false, true, true, true},   {true, true, true, true},
};

static bool is_open(const struct rfx_search *search, const struct rfx_candidate *c, int w) {
    const struct rfx_plan_request *request = search->context.request;
    const struct memory_mode *mode = &memory_modes[w];
    const struct rfx_stage_spec *asked = &request->asked;
    bool can_stage = c->spec.mode != NULL && (c->spec.mode->knows & RFX_KNOWS_STAGING) != 0;
    bool coarse = c->spec.tiles_x > 1 || c->partition.kind == RFX_PARTITION_MAP;
    if (mode->staging && !can_stage) return false;
    bool more = (mode->staging && !asked->staging) || (mode->row_by_row && !asked->row_by_row) ||
                (mode->weights_by_stage && !asked->weights_by_stage);
    bool less = (can_stage && asked->staging && !mode->staging) ||
                (asked->row_by_row && !mode->row_by_row) ||
                (asked->weights_by_stage && !mode->weights_by_stage);
    if (less || (more && request->memory_bytes == 0)) return false;
    return !more || !coarse || mode->coarse;
}

bool rfx_search_is_hopeless(const struct rfx_search *search, const struct rfx_candidate *c) {
    for (int w = 0; w < RFX_MEMORY_MODES; w++)
        if (is_open(search, c, w) && !is_out(search, c->kind, least_bound_of(search, w), 0))
            return false;
    return true;
}

static void note_rival(struct rfx_search *search, const struct rfx_candidate *c) {
    struct rfx_search_rivals *rivals = search->rivals;
    if (rivals == NULL) return;
    if (c->bound < rivals->least_bound[c->kind]) {
        rivals->least_bound[c->kind] = c->bound;
        rivals->least_cost[c->kind] = c->cost;
    } else if (c->bound == rivals->least_bound[c->kind] && c->cost < rivals->least_cost[c->kind]) {
        rivals->least_cost[c->kind] = c->cost;
    }
    if (c->bound > search->context.request->memory_bytes) return;
    uint64_t *costs = rivals->costs[c->kind];
    int *n = &rivals->n[c->kind];
    int at = *n < RFX_SEARCH_RIVAL_TRIES ? (*n)++ : RFX_SEARCH_RIVAL_TRIES - 1;
    for (; at > 0 && costs[at - 1] > c->cost; at--) costs[at] = costs[at - 1];
    costs[at] = c->cost;
}

static enum rfx_status push(struct rfx_search *search, const struct rfx_candidate *c,
                            struct rfx_error *err) {
    struct rfx_memory *mem = search->context.graph->mem;
    size_t n = search->n_candidates + 1;
    struct rfx_candidate *grown =
        rfx_memory_reserve(mem, search->candidates, &search->capacity, n, sizeof *c);
    if (grown == NULL) return rfx_memory_fail(mem, "planner candidates", n * sizeof *c, err);
    search->candidates = grown;
    search->candidates[search->n_candidates] = *c;
    search->candidates[search->n_candidates++].number = search->n_listed++;
    return RFX_OK;
}

/* Returns a lower bound of the memory of stages without ring buffers, valid in every memory mode,
 * from the bound of the plain mode. Writing a map over another saves at most the smaller of the two
 * maps, so at most half of the live bytes. */
static size_t least_bound(struct rfx_search *search, size_t plain_bound, int n_stages) {
    size_t fixed = rfx_plan_fixed_bytes(&search->context, search->shapes, n_stages);
    return fixed - search->context.weights_bytes + (plain_bound - fixed) / 2;
}

/* Returns whether cost and MACs may be computed later. A candidate above the budget can only become
 * the smallest plan. Its cost and MACs then matter only among equally small candidates, when few
 * are left. */
static bool may_wait(const struct rfx_search *search, const struct rfx_candidate *c) {
    size_t budget = search->context.request->memory_bytes;
    return search->rivals == NULL && budget != 0 && c->bound > budget;
}

enum rfx_status rfx_search_complete(struct rfx_search *search, struct rfx_candidate *c,
                                    struct rfx_error *err) {
    int n_stages;
    if (c->cost != RFX_COST_UNKNOWN) return RFX_OK;
    enum rfx_status status = rfx_search_lay_out(search, c, &n_stages, err);
    if (status != RFX_OK) return status;
    c->cost = rfx_search_cost(search, n_stages);
    c->macs = rfx_plan_count_macs(&search->context, search->shapes, n_stages);
    return RFX_OK;
}

/* Adds the candidate in memory mode w, whose flags are set, unless its cost or bound rules it out.
 * If the cost alone rules it out, its bound stays 0. */
static enum rfx_status add_in_mode(struct rfx_search *search, struct rfx_candidate *c, int w,
                                   int n_stages, struct rfx_error *err) {
    bool by_cost = search->cost_limit != UINT64_MAX; /* compute what may rule it out first */
    c->bound = 0;
    if (by_cost) c->cost = rfx_search_cost(search, n_stages);
    if (is_out(search, c->kind, 0, c->cost)) return RFX_OK;
    c->bound = rfx_plan_bound(&search->context, search->shapes, n_stages);
    note_behind(search, w, n_stages);
    struct rfx_candidate whole =
        *c; /* its bound includes loading and planning, which come before the run */
    size_t before = rfx_plan_prepare_bytes(search->context.graph, search->context.request,
                                           search->context.max_stages, n_stages);
    if (whole.bound < before) whole.bound = before;
    if (is_out(search, c->kind, whole.bound, c->cost)) return RFX_OK;
    bool waits = !by_cost && may_wait(search, &whole);
    if (!by_cost) {
        c->cost = waits ? RFX_COST_UNKNOWN : rfx_search_cost(search, n_stages);
        if (is_out(search, c->kind, whole.bound, c->cost)) return RFX_OK;
    }
    whole.cost = c->cost;
    note_rival(search, &whole);
    search->some_fit |= whole.bound <= search->context.request->memory_bytes;
    if (c->macs == 0 && !waits)
        c->macs = rfx_plan_count_macs(&search->context, search->shapes, n_stages);
    whole.macs = c->macs;
    return push(search, &whole, err);
}

enum rfx_status rfx_search_add(struct rfx_search *search, const struct rfx_candidate *laid_out,
                               int n_stages, struct rfx_error *err) {
    struct rfx_candidate c = *laid_out;
    enum rfx_status status = RFX_OK;
    uint64_t least_cost = least_cost_of(search, c.kind, n_stages);
    size_t least = 0;
    c.macs = 0; /* equal in all memory modes, so counted once */
    for (int w = 0; status == RFX_OK && w < RFX_MEMORY_MODES; w++) {
        if (!is_open(search, &c, w)) continue;
        size_t bound = least_bound_of(search, w);
        if (is_out(search, c.kind, bound > least ? bound : least, least_cost)) continue;
        c.spec.staging = memory_modes[w].staging;
        c.spec.row_by_row = memory_modes[w].row_by_row;
        c.spec.weights_by_stage = memory_modes[w].weights_by_stage;
        for (int s = 0; s < n_stages; s++) rfx_search_set_flags(&search->shapes[s].spec, &c.spec);
        c.cost = least_cost;
        status = add_in_mode(search, &c, w, n_stages, err);
        bool plain = w == 0 && c.spec.band_rows == 0 && c.bound != 0;
        if (plain) least = least_bound(search, c.bound, n_stages);
    }
    return status;
}

static int compare_u64(uint64_t a, uint64_t b) {
    return (a > b) - (a < b);
}

int rfx_candidate_compare_cost(const void *pa, const void *pb) {
    const struct rfx_candidate *a = pa;
    const struct rfx_candidate *b = pb;
    int by_cost = compare_u64(a->cost, b->cost);
    if (by_cost != 0) return by_cost;
    int by_macs = compare_u64(a->macs, b->macs);
    if (by_macs != 0) return by_macs;
    int by_bound = compare_u64(a->bound, b->bound);
    return by_bound != 0 ? by_bound : compare_u64(a->number, b->number);
}

int rfx_candidate_compare_bound(const void *pa, const void *pb) {
    const struct rfx_candidate *a = pa;
    const struct rfx_candidate *b = pb;
    int by_bound = compare_u64(a->bound, b->bound);
    return by_bound != 0 ? by_bound : rfx_candidate_compare_cost(pa, pb);
}

enum rfx_status rfx_search_peak(struct rfx_search *search, struct rfx_candidate *c,
                                struct rfx_error *err) {
    int n_stages;
    if (c->peak != 0) return RFX_OK;
    search->placing = true;
    enum rfx_status status = rfx_search_lay_out(search, c, &n_stages, err);
    search->placing = false;
    if (status != RFX_OK) return status;
    search->context.quick = true;
    status = rfx_plan_peak(&search->context, search->shapes, n_stages, &c->peak, err);
    search->context.quick = false;
    return status;
}

enum rfx_status rfx_search_build(struct rfx_search *search, const struct rfx_candidate *c,
                                 struct rfx_plan **out, struct rfx_error *err) {
    int n_stages;
    enum rfx_status status = rfx_search_lay_out(search, c, &n_stages, err);
    if (status != RFX_OK) return status;
    status = rfx_plan_build(&search->context, search->shapes, n_stages, c->cost, out, err);
    if (status == RFX_OK) (*out)->cost_untiled = search->cost_untiled;
    return status;
}

/* Returns whether a requested mode can be used without a legal cut, as it tries chains. */
static bool tries_chains(const struct rfx_mode *mode) {
    for (int t = 0; t < mode->n_templates; t++)
        if (mode->templates[t].when_asked && mode->templates[t].cuts == RFX_CUTS_CHAIN) return true;
    return false;
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
    if (search->n_splits > 0 || (tries_chains(asked) && search->levels.n > 0)) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_UNSUPPORTED,
                    "this network cannot be tiled or streamed: it has no point where a single "
                    "tensor that is local in space is alive");
}

/* Returns the limit, in bytes, of a measurement cache. There is one cache for the graph with groups
 * and one for the plain graph. The limit is a share of the budget minus the bytes of the process,
 * because nothing runs during planning. A budget below the needs of any process is ignored. */
static size_t cache_limit(const struct rfx_graph *graph, const struct rfx_plan_request *request) {
    enum { SHARES = 8 }; /* two graphs; the rest is for the planner's tables */
    size_t least = (size_t)1 << 20, most = (size_t)8 << 20, budget = request->memory_bytes;
    size_t process = rfx_plan_process_bytes(graph, request);
    if (budget == 0 || budget < process || (budget - process) / SHARES > most) return most;
    return (budget - process) / SHARES < least ? least : (budget - process) / SHARES;
}

static enum rfx_status allocate_tables(struct rfx_search *search, struct rfx_error *err) {
    struct rfx_memory *mem = search->context.graph->mem;
    size_t n = (size_t)search->context.graph->n_nodes;
    size_t stages = (size_t)search->max_stages;
    size_t choices =
        search->levels.n > 1 ? RFX_SEARCH_CHOICES : 1; /* maps are stored between levels */
    struct rfx_cached_cols *cols = &search->cached_cols;
    search->splits = rfx_memory_calloc(mem, n, sizeof *search->splits);
    search->shapes = rfx_memory_calloc(mem, stages, sizeof *search->shapes);
    search->specs = rfx_memory_calloc(mem, stages, sizeof *search->specs);
    search->targets = rfx_memory_calloc(mem, stages * n, sizeof *search->targets);
    search->places = rfx_memory_calloc(mem, stages * n, sizeof *search->places);
    search->rows = rfx_memory_calloc(mem, stages * n, sizeof *search->rows);
    search->cols = rfx_memory_calloc(mem, stages * n, sizeof *search->cols);
    search->stored = rfx_memory_calloc(mem, 2 * n, sizeof *search->stored);
    search->spilled = rfx_memory_calloc(mem, stages * n, sizeof *search->spilled);
    search->chosen = rfx_memory_calloc(mem, choices * n, sizeof *search->chosen);
    search->done = rfx_memory_calloc(mem, RFX_MODE_SCRATCH * n, sizeof *search->done);
    search->regions = rfx_memory_calloc(mem, RFX_SWEEP_REGIONS * n, sizeof *search->regions);
    cols->extents = rfx_memory_calloc(mem, RFX_TILING_MAX_COUNTS * n, sizeof *cols->extents);
    const struct rfx_plan_request *request = search->context.request;
    search->cache =
        rfx_plan_cache_of(request->cache, search->context.graph,
                          cache_limit(search->context.graph, request), &search->own_cache);
    if (search->splits == NULL || search->shapes == NULL || search->specs == NULL ||
        search->targets == NULL || search->places == NULL || search->rows == NULL ||
        search->cols == NULL || search->stored == NULL || search->spilled == NULL ||
        search->chosen == NULL || search->done == NULL || search->regions == NULL ||
        cols->extents == NULL)
        return rfx_memory_fail(mem, "planner tables", stages * n * sizeof *search->rows, err);
    search->in_file = search->stored + n;
    return RFX_OK;
}

/* Sets the list of modes that may be used. The first one that can compute any node becomes the
 * tail's mode. */
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

/* For a graph with a thousand nodes and edges this allows 16,000 candidates, more than any template
 * has. */
#define MOST_SQUARE ((int64_t)16 * 1000 * 1000 * 1000)
#define LEAST_TRIED 3

/* Returns the most candidates of one template. The time to measure a candidate is proportional to
 * the nodes and edges of the graph; the time to place its buffers grows with up to the square of
 * them. */
static int64_t most_candidates(const struct rfx_graph *graph) {
    int64_t size = graph->n_nodes;
    for (int i = 0; i < graph->n_nodes; i++) size += graph->nodes[i].n_in;
    return rfx_max_i64(LEAST_TRIED, MOST_SQUARE / size / size);
}

/* Computes the levels with additional stages, for chains whose maps may be spilled to files. */
static enum rfx_status init_more(struct rfx_search *search, const struct rfx_graph *graph,
                                 struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    int cuts[RFX_PARTITION_MAX_MORE];
    for (int k = 0; status == RFX_OK && k < RFX_SEARCH_MORE; k++) {
        int more = rfx_search_more(k);
        bool are_there = false;
        status = rfx_partition_find_cuts(graph, more, cuts, &are_there, err);
        if (status == RFX_OK && are_there)
            status = rfx_levels_init(&search->more[k], graph, cuts, more, err);
    }
    return status;
}

/* Computes the levels around a network's waists, starting with the waist whose maps have the most
 * pixels. Does so only for networks without barriers, which have few other chains. */
static enum rfx_status init_waists(struct rfx_search *search, const struct rfx_graph *graph,
                                   struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    struct rfx_waist waist = {.pixels = INT64_MAX};
    if (search->levels.n != 1 || graph->n_nodes > RFX_SEARCH_WAIST_NODES) return RFX_OK;
    while (status == RFX_OK && search->n_waists < RFX_SEARCH_WAISTS &&
           rfx_partition_find_waist(graph, waist.pixels, &waist)) {
        struct rfx_search_waist *w = &search->waists[search->n_waists];
        if (!waist.is_one) continue;
        w->waist = waist;
        status = rfx_levels_init(&w->levels, graph, waist.cuts, 2, err);
        search->n_waists++;
    }
    return status;
}

static void take_levels(struct rfx_search *search, const struct rfx_levels *levels) {
    int stages = rfx_partition_max_stages(levels);
    if (stages > search->max_stages) search->max_stages = stages;
}

static enum rfx_status init_levels(struct rfx_search *search, const struct rfx_graph *graph,
                                   const struct rfx_plan_request *request, struct rfx_error *err) {
    int cuts[RFX_PARTITION_MAX_WINDOWS], n_cuts;
    enum rfx_status status = rfx_partition_window_cuts(graph, cuts, &n_cuts, err);
    if (status == RFX_OK) status = rfx_levels_init(&search->levels, graph, cuts, n_cuts, err);
    if (status == RFX_OK && request->may_spill) status = init_more(search, graph, err);
    if (status == RFX_OK && request->memory_bytes != 0) status = init_waists(search, graph, err);
    if (status != RFX_OK) return status;
    take_levels(search, &search->levels);
    for (int k = 0; k < RFX_SEARCH_MORE; k++) take_levels(search, &search->more[k]);
    for (int k = 0; k < search->n_waists; k++) take_levels(search, &search->waists[k].levels);
    return RFX_OK;
}

enum rfx_status rfx_search_init(struct rfx_search *search, const struct rfx_graph *graph,
                                const struct rfx_plan_request *request, struct rfx_error *err) {
    memset(search, 0, sizeof *search);
    search->cost_limit = UINT64_MAX;
    search->phases = RFX_PHASES;
    search->most = most_candidates(graph);
    search->bound_limit = SIZE_MAX;
    enum rfx_status status = list_modes(search, request, err);
    if (status == RFX_OK) status = init_levels(search, graph, request, err);
    if (status != RFX_OK) return status;
    if (request->n_stages > search->max_stages) search->max_stages = request->n_stages;
    status = rfx_plan_context_init(&search->context, graph, request, search->max_stages, err);
    struct rfx_place_memo *memo = rfx_plan_cache_arenas(request->cache);
    if (status == RFX_OK && memo != NULL) search->context.memo = memo;
    if (status == RFX_OK) status = allocate_tables(search, err);
    if (status == RFX_OK)
        status = rfx_cost_init(&search->cost, graph, &request->caches, request->threads, err);
    if (status == RFX_OK) {
        struct rfx_cost_counts counts = {{0}};
        rfx_cost_read(&search->cost, &request->source);
        rfx_cost_count_untiled(&search->cost, &counts);
        search->cost_untiled = rfx_cost_picoseconds(&search->cost, &counts);
    }
    return status == RFX_OK ? list_splits(search, err) : status;
}

void rfx_search_release(struct rfx_search *search) {
    rfx_levels_release(&search->levels);
    for (int k = 0; k < RFX_SEARCH_MORE; k++) rfx_levels_release(&search->more[k]);
    for (int k = 0; k < RFX_SEARCH_WAISTS; k++) rfx_levels_release(&search->waists[k].levels);
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
    rfx_memory_release(mem, search->spilled);
    rfx_memory_release(mem, search->chosen);
    rfx_memory_release(mem, search->done);
    rfx_measurements_release(&search->own_cache);
    rfx_memory_release(mem, search->cached_cols.extents);
    rfx_memory_release(mem, search->regions);
    rfx_memory_release(mem, search->candidates);
    rfx_cost_release(&search->cost);
    rfx_plan_context_release(&search->context);
}
