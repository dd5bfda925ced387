/* Listing and measuring candidates; see planner_search.h. */
#include "tiler/planner_search.h"

#include <string.h>

#include "layers/checked.h"
#include "layers/reduction.h"
#include "tiler/splits.h"

#define KNOWN_BYTES ((size_t)1 << 20) /* most that is kept of measured rings */
#define LAST_CUTS 3   /* the last legal splits: streaming costs no MACs, so later is smaller */
#define SPREAD_CUTS 4 /* and some spread over the others */
#define MAX_CUTS (LAST_CUTS + SPREAD_CUTS)
#define BANDS 7
#define STRIP_COUNTS 11

static const int64_t band_choices[BANDS] = {128, 64, 32, 16, 8, 4, 2}; /* image rows a step */
/* Predicted time per MAC in percent of an untiled run's: short bands fill the matrix products of
 * deep layers badly (docs/benchmarks.md). */
static const uint64_t band_costs[BANDS] = {100, 102, 108, 118, 135, 160, 200};
static const int64_t strip_choices[STRIP_COUNTS] = {2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 48};
static const int64_t one_strip = 1;
#define ROWS_COST 3            /* percent, for whole stages that run row by row */
#define TIGHT_COST 10          /* percent, for copying rows to their rings */
#define LOAD_MACS_PER_BYTE 100 /* packing constants again, in the time of MACs */

/* Asks for less than one tile per position. */
static int64_t at_most_extent(const struct rfx_search *search, const struct rfx_stage_spec *spec,
                              enum rfx_axis axis, int64_t tiles) {
    const struct rfx_graph *graph = search->context.graph;
    int64_t extent = 1;
    for (int t = 0; t < spec->n_targets; t++) {
        int node = spec->targets[t];
        if (rfx_node_reduction(&graph->nodes[node]) != NULL) node = graph->nodes[node].in[0];
        extent = rfx_max_i64(extent, rfx_node_extent(&graph->nodes[node], axis));
    }
    return rfx_max_i64(1, rfx_min_i64(tiles, extent));
}

static struct rfx_known_rings *find_rings(const struct rfx_search *search, int s,
                                          int64_t band_rows) {
    for (int i = 0; search->skeleton != NULL && i < search->n_known; i++) {
        struct rfx_known_rings *known = &search->known[i];
        const struct rfx_skeleton *a = &known->skeleton;
        const struct rfx_skeleton *b = search->skeleton;
        if (known->stage == s && known->band_rows == band_rows && a->kind == b->kind &&
            a->cut == b->cut && a->second == b->second && a->passes == b->passes)
            return known;
    }
    return NULL;
}

/* Keeps rings for the next time, as long as that takes little memory. */
static void keep_rings(struct rfx_search *search, int s, const struct rfx_stream_ring *rings) {
    size_t bytes = (size_t)search->context.graph->n_nodes * sizeof *rings;
    size_t kept = (size_t)search->n_known * bytes;
    if (search->skeleton == NULL || search->n_known == RFX_SEARCH_MAX_KNOWN) return;
    if (kept + bytes > KNOWN_BYTES) return;
    struct rfx_known_rings known = {*search->skeleton, s, search->specs[s].band_rows, NULL};
    known.rings = rfx_memory_alloc(search->context.graph->mem, bytes);
    if (known.rings == NULL) return; /* measured again then */
    memcpy(known.rings, rings, bytes);
    search->known[search->n_known++] = known;
}

static void measure_rings(struct rfx_search *search, int s, const enum rfx_node_place *places,
                          struct rfx_stream_ring *rings) {
    const struct rfx_graph *graph = search->context.graph;
    int64_t band_rows = search->specs[s].band_rows;
    const struct rfx_known_rings *known = find_rings(search, s, band_rows);
    if (known != NULL) {
        memcpy(rings, known->rings, (size_t)graph->n_nodes * sizeof *rings);
        return;
    }
    rfx_stream_measure(graph, places, band_rows, search->done, rings);
    keep_rings(search, s, rings);
}

/* Geometry of stage s of the candidate at hand, from its specification. */
static enum rfx_status measure_stage(struct rfx_search *search, int s, struct rfx_error *err) {
    const struct rfx_graph *graph = search->context.graph;
    size_t at = (size_t)s * (size_t)graph->n_nodes;
    struct rfx_stage_choice *choice = &search->choices[s];
    struct rfx_stage_spec *spec = &search->specs[s];
    struct rfx_tile_overlap overlap = {0};
    const struct rfx_plan_request *request = search->context.request;
    bool emit = request->emit_outputs && !request->outputs_by_caller;
    enum rfx_status status =
        rfx_stage_places(graph, spec, emit, search->stored, search->places + at, err);
    if (status != RFX_OK) return status;
    spec->tiles_x = at_most_extent(search, spec, RFX_AXIS_COLS, spec->tiles_x);
    spec->tiles_y = at_most_extent(search, spec, RFX_AXIS_ROWS, spec->tiles_y);
    *choice = (struct rfx_stage_choice){.spec = *spec, .places = search->places + at};
    if (spec->mode == RFX_STAGE_TILED) {
        rfx_stage_extents(graph, choice->places, RFX_AXIS_ROWS, spec->tiles_y, search->regions,
                          search->rows + at, &overlap);
        choice->rows = search->rows + at;
        choice->overlap_rows = overlap.max_overlap;
    }
    if (spec->mode == RFX_STAGE_TILED || spec->tiles_x > 1) {
        rfx_stage_extents(graph, choice->places, RFX_AXIS_COLS, spec->tiles_x, search->regions,
                          search->cols + at, &overlap);
        choice->cols = search->cols + at;
    }
    if (spec->mode == RFX_STAGE_STREAMED) {
        measure_rings(search, s, choice->places, search->rings + at);
        choice->rings = search->rings + at;
    }
    return RFX_OK;
}

static struct rfx_plan_candidate as_candidate(const struct rfx_search *search, int n_stages,
                                              const struct rfx_candidate *c) {
    struct rfx_plan_candidate made = {search->choices, n_stages, c->weights_by_stage};
    return made;
}

/* Before the first stage nothing is stored but what the caller has. */
static void begin_stages(struct rfx_search *search) {
    const struct rfx_graph *graph = search->context.graph;
    memset(search->stored, 0, (size_t)graph->n_nodes * sizeof *search->stored);
    if (graph->input >= 0) search->stored[graph->input] = search->context.by_caller[graph->input];
}

/* Fills the stages of a candidate and their geometry. */
static enum rfx_status lay_out(struct rfx_search *search, const struct rfx_candidate *c,
                               int *n_stages, struct rfx_error *err) {
    int n = rfx_skeleton_stages(&search->levels, &c->skeleton, search->specs, search->targets);
    begin_stages(search);
    search->skeleton = &c->skeleton;
    for (int s = 0; s < n; s++) {
        struct rfx_stage_spec *spec = &search->specs[s];
        if (spec->mode == RFX_STAGE_STREAMED) {
            spec->band_rows = c->band_rows;
            spec->tiles_x = c->strips;
            spec->tight = c->tight;
        }
        if (spec->mode == RFX_STAGE_TILED) {
            spec->tiles_y = c->tiles_y;
            spec->tiles_x = c->tiles_x;
        }
        spec->row_by_row = spec->mode == RFX_STAGE_WHOLE && c->row_by_row;
        enum rfx_status status = measure_stage(search, s, err);
        if (status != RFX_OK) return status;
    }
    *n_stages = n;
    return RFX_OK;
}

static uint64_t predicted_cost(const struct rfx_search *search, const struct rfx_candidate *c) {
    uint64_t percent = 100;
    for (int b = 0; b < BANDS && c->band_rows > 0; b++)
        if (c->band_rows <= band_choices[b]) percent = band_costs[b];
    if (c->row_by_row) percent += ROWS_COST;
    if (c->tight) percent += TIGHT_COST;
    uint64_t cost = c->macs / 100 * percent;
    if (c->weights_by_stage) cost += (uint64_t)search->context.weights_bytes * LOAD_MACS_PER_BYTE;
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
    bool streamed = c->band_rows != 0;
    bool coarse = c->skeleton.kind == RFX_SKELETON_TILES || c->strips > 1;
    if (way->tight && !streamed) return false;
    bool more = (way->tight && !request->tight) || (way->row_by_row && !request->row_by_row) ||
                (way->weights_by_stage && !request->weights_by_stage);
    bool less = (streamed && request->tight && !way->tight) ||
                (request->row_by_row && !way->row_by_row) ||
                (request->weights_by_stage && !way->weights_by_stage);
    if (less || (more && request->memory_bytes == 0)) return false;
    return !more || !coarse || way->coarse;
}

/* What whole and tiled stages need in any way, given the bound of the plain one: sliding saves at
 * most the smaller of what dies and what is made, so at most half of what is alive. */
static size_t least_of_ways(const struct rfx_search *search, const struct rfx_candidate *plain,
                            const struct rfx_plan_candidate *candidate) {
    size_t fixed = rfx_plan_fixed_bytes(&search->context, candidate);
    return fixed - search->context.weights_bytes + (plain->bound - fixed) / 2;
}

static bool is_of_interest(const struct rfx_search *search, size_t bound) {
    return bound <= search->context.request->memory_bytes || bound <= search->bound_limit;
}

/* Adds the candidate whose stages are laid out, in every way that is open. */
static enum rfx_status add_laid_out(struct rfx_search *search, struct rfx_candidate c, int n_stages,
                                    struct rfx_error *err) {
    struct rfx_plan_candidate candidate = as_candidate(search, n_stages, &c);
    c.macs = rfx_plan_count_macs(&search->context, &candidate);
    size_t least = 0;
    if (c.macs >= search->macs_limit) return RFX_OK;
    for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
        if (!is_open_way(search->context.request, &c, &ways[w])) continue;
        if (!is_of_interest(search, least)) break;
        c.tight = ways[w].tight;
        c.row_by_row = ways[w].row_by_row;
        c.weights_by_stage = ways[w].weights_by_stage;
        for (int s = 0; s < n_stages; s++) {
            struct rfx_stage_spec *spec = &search->choices[s].spec;
            spec->row_by_row = spec->mode == RFX_STAGE_WHOLE && c.row_by_row;
            spec->tight = spec->mode == RFX_STAGE_STREAMED && c.tight;
        }
        candidate.weights_by_stage = c.weights_by_stage;
        c.cost = predicted_cost(search, &c);
        c.bound = rfx_plan_bound(&search->context, &candidate);
        bool plain = !c.row_by_row && !c.weights_by_stage && c.band_rows == 0;
        if (plain) least = least_of_ways(search, &c, &candidate);
        if (!is_of_interest(search, c.bound)) continue;
        enum rfx_status status = push(search, &c, err);
        if (status != RFX_OK) return status;
    }
    return RFX_OK;
}

static enum rfx_status add(struct rfx_search *search, struct rfx_candidate c,
                           struct rfx_error *err) {
    int n_stages;
    enum rfx_status status = lay_out(search, &c, &n_stages, err);
    return status == RFX_OK ? add_laid_out(search, c, n_stages, err) : status;
}

/* The candidate laid out, again in another number of strips: rings do not depend on it. */
static enum rfx_status add_in_strips(struct rfx_search *search, struct rfx_candidate c,
                                     int64_t strips, int n_stages, struct rfx_error *err) {
    const struct rfx_graph *graph = search->context.graph;
    struct rfx_tile_overlap overlap;
    c.strips = strips;
    for (int s = 0; s < n_stages; s++) {
        struct rfx_stage_choice *choice = &search->choices[s];
        if (choice->spec.mode != RFX_STAGE_STREAMED) continue;
        struct rfx_tile_extent *cols = search->cols + (size_t)s * (size_t)graph->n_nodes;
        choice->spec.tiles_x = at_most_extent(search, &choice->spec, RFX_AXIS_COLS, strips);
        choice->cols = NULL;
        if (choice->spec.tiles_x == 1) continue;
        rfx_stage_extents(graph, choice->places, RFX_AXIS_COLS, choice->spec.tiles_x,
                          search->regions, cols, &overlap);
        choice->cols = cols;
    }
    return add_laid_out(search, c, n_stages, err);
}

/* A streamed skeleton with all bands, in each of the numbers of strips. */
static enum rfx_status add_bands(struct rfx_search *search, struct rfx_skeleton skeleton,
                                 const int64_t *strips, int n_strips, struct rfx_error *err) {
    int64_t asked = search->context.request->band_rows;
    for (int b = 0; b < (asked > 0 ? 1 : BANDS); b++) {
        struct rfx_candidate c = {.skeleton = skeleton, .strips = 1};
        c.band_rows = asked > 0 ? asked : band_choices[b];
        int n_stages;
        enum rfx_status status = lay_out(search, &c, &n_stages, err);
        for (int i = 0; status == RFX_OK && i < n_strips; i++)
            status = add_in_strips(search, c, strips[i], n_stages, err);
        if (status != RFX_OK) return status;
    }
    return RFX_OK;
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

/* Streams in one part: the chain over all levels without second passes, and single cuts. */
static enum rfx_status add_streams(struct rfx_search *search, const int64_t *strips, int n_strips,
                                   struct rfx_error *err) {
    const struct rfx_plan_request *request = search->context.request;
    enum rfx_status status = RFX_OK;
    int cuts[MAX_CUTS];
    int n = list_cuts(search, cuts);
    struct rfx_skeleton chain = {.kind = RFX_SKELETON_CHAIN};
    if (search->levels.n > 0 && request->split == NULL)
        status = add_bands(search, chain, strips, n_strips, err);
    for (int i = 0; status == RFX_OK && i < n; i++) {
        struct rfx_skeleton cut = {.kind = RFX_SKELETON_CUT, .cut = cuts[i]};
        status = add_bands(search, cut, strips, n_strips, err);
    }
    return status;
}

/* Two streams in a row, of all pairs of cuts; tall, middle and short bands. */
static enum rfx_status add_two_parts(struct rfx_search *search, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    int cuts[MAX_CUTS];
    int n = list_cuts(search, cuts);
    for (int i = 0; i < n; i++)
        for (int j = i + 1; j < n; j++)
            for (int b = 1; status == RFX_OK && b < BANDS; b += 2) {
                struct rfx_candidate c = {
                    .skeleton = {RFX_SKELETON_CUTS, cuts[i], cuts[j], 0},
                    .strips = 1,
                    .band_rows = band_choices[b],
                };
                status = add(search, c, err);
            }
    return status;
}

static enum rfx_status add_strips(struct rfx_search *search, struct rfx_error *err) {
    int64_t asked = search->context.request->tiles_x;
    if (asked > 0) return add_streams(search, &asked, 1, err);
    return add_streams(search, strip_choices, STRIP_COUNTS, err);
}

/* Second passes after global operations. */
static enum rfx_status add_passes(struct rfx_search *search, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int p = 1; status == RFX_OK && p < search->levels.n; p++) {
        struct rfx_skeleton chain = {.kind = RFX_SKELETON_CHAIN, .passes = p};
        status = add_bands(search, chain, &one_strip, 1, err);
    }
    return status;
}

/* The tile count that was asked for, or all counts of a search. */
static int list_counts(int64_t extent, int64_t fixed, int64_t *counts) {
    if (fixed > 0) {
        counts[0] = rfx_min_i64(fixed, extent);
        return 1;
    }
    return rfx_tiling_counts(extent, counts);
}

/* Rows and columns are independent: each axis is measured once per split and count. */
static void fill_axes(struct rfx_search *search, int split) {
    struct rfx_axis_table *axes = &search->axes;
    const struct rfx_graph *graph = search->context.graph;
    const struct rfx_plan_request *request = search->context.request;
    size_t n = (size_t)graph->n_nodes;
    for (int axis = 0; axis < 2; axis++) {
        int64_t extent = rfx_node_extent(&graph->nodes[split], (enum rfx_axis)axis);
        int64_t fixed = axis == RFX_AXIS_ROWS ? request->tiles_y : request->tiles_x;
        axes->n[axis] = list_counts(extent, fixed, axes->counts[axis]);
        for (int i = 0; i < axes->n[axis]; i++)
            rfx_stage_extents(
                graph, search->places, (enum rfx_axis)axis, axes->counts[axis][i], search->regions,
                axes->extents + ((size_t)axis * RFX_TILING_MAX_COUNTS + (size_t)i) * n,
                &axes->overlap[axis][i]);
    }
}

static enum rfx_status add_tiles_of(struct rfx_search *search, int split, struct rfx_error *err) {
    struct rfx_candidate c = {
        .skeleton = {.kind = RFX_SKELETON_TILES, .cut = split}, .tiles_y = 1, .tiles_x = 1};
    struct rfx_axis_table *axes = &search->axes;
    size_t n = (size_t)search->context.graph->n_nodes;
    int n_stages;
    enum rfx_status status = lay_out(search, &c, &n_stages, err);
    if (status != RFX_OK) return status;
    fill_axes(search, split);
    struct rfx_stage_choice *head = &search->choices[0];
    for (int y = 0; y < axes->n[0]; y++)
        for (int x = 0; status == RFX_OK && x < axes->n[1]; x++) {
            head->spec.tiles_y = c.tiles_y = axes->counts[0][y];
            head->spec.tiles_x = c.tiles_x = axes->counts[1][x];
            head->rows = axes->extents + (size_t)y * n;
            head->cols = axes->extents + (RFX_TILING_MAX_COUNTS + (size_t)x) * n;
            head->overlap_rows = axes->overlap[0][y].max_overlap;
            status = add_laid_out(search, c, n_stages, err);
        }
    return status;
}

static enum rfx_status add_tiles(struct rfx_search *search, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int i = 0; status == RFX_OK && i < search->n_splits; i++)
        status = add_tiles_of(search, search->splits[i], err);
    return status;
}

/* Which plans the request leaves open in a phase. */
enum rfx_status rfx_search_list(struct rfx_search *search, int phase, struct rfx_error *err) {
    const struct rfx_plan_request *request = search->context.request;
    bool bands_given = request->band_rows > 0;
    bool tiles_given =
        !bands_given && (request->tiles_y > 0 || request->tiles_x > 0 || request->split != NULL);
    bool budget = request->memory_bytes != 0;
    bool whole = request->untiled || (!tiles_given && !bands_given);
    bool grid = request->tiles_y > 0;
    bool streams = !request->untiled && (bands_given || (budget && !grid));
    bool strips = bands_given && request->tiles_x > 1;
    bool recompute = !request->untiled && !bands_given && (tiles_given || budget);
    enum rfx_status status = RFX_OK;
    search->first = search->n_candidates;
    if (phase == RFX_PHASE_EXACT) {
        struct rfx_candidate untiled = {.skeleton = {.kind = RFX_SKELETON_WHOLE}};
        if (whole) status = add(search, untiled, err);
        if (status == RFX_OK && streams && !strips)
            status = add_streams(search, &one_strip, 1, err);
        if (status == RFX_OK && strips) status = add_strips(search, err);
    } else if (phase == RFX_PHASE_TWO_PARTS) {
        if (streams && budget && !bands_given && request->split == NULL)
            status = add_two_parts(search, err);
    } else if (phase == RFX_PHASE_RECOMPUTE) {
        if (recompute && streams) status = add_strips(search, err);
        if (status == RFX_OK && recompute && streams && request->split == NULL)
            status = add_passes(search, err);
    } else if (recompute) {
        status = add_tiles(search, err);
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
    struct rfx_plan_candidate candidate = as_candidate(search, n_stages, c);
    status = rfx_plan_build(&search->context, &candidate, out, err);
    if (status == RFX_OK) (*out)->cost = c->cost;
    return status;
}

static enum rfx_status list_splits(struct rfx_search *search, struct rfx_error *err) {
    const struct rfx_graph *graph = search->context.graph;
    const struct rfx_plan_request *request = search->context.request;
    if (request->split != NULL) {
        search->n_splits = 1;
        return rfx_split_find(graph, request->split, &search->splits[0], err);
    }
    search->n_splits = rfx_splits_list(graph, search->splits);
    bool none = request->tiles_y > 0 ? search->n_splits == 0 : search->levels.n == 0;
    if (none && (request->tiles_y > 0 || request->band_rows > 0))
        return rfx_fail(
            err, RFX_STATUS_UNSUPPORTED,
            "this network cannot be tiled or streamed: it has no point where a single tensor "
            "that is local in space is alive");
    return RFX_OK;
}

static enum rfx_status allocate_tables(struct rfx_search *search, struct rfx_error *err) {
    struct rfx_memory *mem = search->context.graph->mem;
    size_t n = (size_t)search->context.graph->n_nodes;
    size_t stages = (size_t)search->max_stages;
    size_t axes = 2 * (size_t)RFX_TILING_MAX_COUNTS;
    search->splits = rfx_memory_calloc(mem, n, sizeof *search->splits);
    search->choices = rfx_memory_calloc(mem, stages, sizeof *search->choices);
    search->specs = rfx_memory_calloc(mem, stages, sizeof *search->specs);
    search->targets = rfx_memory_calloc(mem, stages * n, sizeof *search->targets);
    search->places = rfx_memory_calloc(mem, stages * n, sizeof *search->places);
    search->rings = rfx_memory_calloc(mem, stages * n, sizeof *search->rings);
    search->rows = rfx_memory_calloc(mem, stages * n, sizeof *search->rows);
    search->cols = rfx_memory_calloc(mem, stages * n, sizeof *search->cols);
    search->stored = rfx_memory_calloc(mem, n, sizeof *search->stored);
    search->done = rfx_memory_calloc(mem, 3 * n, sizeof *search->done);
    search->known = rfx_memory_calloc(mem, RFX_SEARCH_MAX_KNOWN, sizeof *search->known);
    search->regions = rfx_memory_calloc(mem, n, sizeof *search->regions);
    search->axes.extents = rfx_memory_calloc(mem, axes * n, sizeof *search->axes.extents);
    if (search->splits == NULL || search->choices == NULL || search->specs == NULL ||
        search->targets == NULL || search->places == NULL || search->rings == NULL ||
        search->rows == NULL || search->cols == NULL || search->stored == NULL ||
        search->done == NULL || search->regions == NULL || search->known == NULL ||
        search->axes.extents == NULL)
        return rfx_memory_fail(mem, "planner tables", stages * n * sizeof *search->rings, err);
    return RFX_OK;
}

enum rfx_status rfx_search_init(struct rfx_search *search, const struct rfx_graph *graph,
                                const struct rfx_plan_request *request, struct rfx_error *err) {
    memset(search, 0, sizeof *search);
    search->macs_limit = UINT64_MAX;
    search->bound_limit = SIZE_MAX;
    enum rfx_status status = rfx_levels_init(&search->levels, graph, err);
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
    rfx_memory_release(mem, search->choices);
    rfx_memory_release(mem, search->specs);
    rfx_memory_release(mem, search->targets);
    rfx_memory_release(mem, search->places);
    rfx_memory_release(mem, search->rings);
    rfx_memory_release(mem, search->rows);
    rfx_memory_release(mem, search->cols);
    rfx_memory_release(mem, search->stored);
    rfx_memory_release(mem, search->done);
    for (int i = 0; i < search->n_known; i++) rfx_memory_release(mem, search->known[i].rings);
    rfx_memory_release(mem, search->known);
    rfx_memory_release(mem, search->regions);
    rfx_memory_release(mem, search->axes.extents);
    rfx_memory_release(mem, search->candidates);
    rfx_plan_context_release(&search->context);
}

/* The plan that was written out by hand. */
enum rfx_status rfx_search_build_given(struct rfx_search *search, struct rfx_plan **out,
                                       struct rfx_error *err) {
    const struct rfx_plan_request *request = search->context.request;
    const struct rfx_graph *graph = search->context.graph;
    search->skeleton = NULL;
    begin_stages(search);
    for (int s = 0; s < request->n_stages; s++) {
        search->specs[s] = request->stages[s];
        enum rfx_status status = measure_stage(search, s, err);
        if (status != RFX_OK) return rfx_fail_within(err, status, "stages[%d]", s);
    }
    for (int k = 0; k < graph->n_outputs; k++) {
        const struct rfx_node *node = &graph->nodes[graph->outputs[k].node];
        bool made = rfx_node_is_constant(node) || search->stored[graph->outputs[k].node];
        for (int s = 0; s < request->n_stages; s++)
            made |= search->choices[s].places[graph->outputs[k].node] == RFX_PLACE_EMITTED;
        if (!made)
            return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                            "output '%s' ('%s') is no target of any stage", graph->outputs[k].name,
                            node->name);
    }
    struct rfx_candidate c = {.weights_by_stage = request->weights_by_stage};
    for (int s = 0; s < request->n_stages; s++) {
        const struct rfx_stage_spec *spec = &search->specs[s];
        bool streamed = spec->mode == RFX_STAGE_STREAMED;
        bool shorter = c.band_rows == 0 || spec->band_rows < c.band_rows;
        if (streamed && shorter) c.band_rows = spec->band_rows;
        c.tight |= streamed && spec->tight;
        c.row_by_row |= spec->row_by_row;
    }
    struct rfx_plan_candidate candidate = as_candidate(search, request->n_stages, &c);
    c.macs = rfx_plan_count_macs(&search->context, &candidate);
    enum rfx_status status = rfx_plan_build(&search->context, &candidate, out, err);
    if (status == RFX_OK) (*out)->cost = predicted_cost(search, &c);
    return status;
}
