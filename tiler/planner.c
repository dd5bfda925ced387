/* The planner: among all legal aggregation points, grids and streams, the fewest MACs within the
 * budget.
 *
 * Rows and columns of a tiling are independent, so each axis is back-propagated once per split and
 * tile count, and a grid is a pair of axes. Candidates are ordered by MACs and tried from the best:
 * first against the lower bound of their arena, then by placing their buffers. */
#include <stdlib.h>
#include <string.h>

#include "layers/checked.h"
#include "tiler/plan.h"
#include "tiler/plan_build.h"
#include "tiler/splits.h"

#define MIB ((size_t)1 << 20)
#define MAX_AXIS_COUNTS RFX_TILING_MAX_COUNTS
#define DEFAULT_TILES 4
#define STREAM_SPLITS 3 /* the last legal ones: streaming costs no MACs, so later is smaller */
#define STREAM_BANDS 7

static const int64_t stream_bands[STREAM_BANDS] = {128, 64, 32, 16, 8, 4, 2}; /* image rows a step */

struct candidate {
    int split; /* -1: untiled */
    int row_choice, col_choice;
    int stream; /* index into search.streams, or -1: tiles */
    int rank;   /* among equal MACs the faster kind first: untiled, tall bands, short bands */
    uint64_t macs;
    size_t bound; /* lower bound of the process peak */
};

/* The tile counts tried along the two axes of one split. */
struct axis_table {
    int n[2];
    struct rfx_axis_tiling choices[2][MAX_AXIS_COUNTS];
    struct rfx_tile_extent *extents; /* storage of all choices */
    int split;                       /* that the table is filled for; -2: none yet */
};

struct search {
    struct rfx_plan_context context;
    struct axis_table axes;
    int *splits;
    int n_splits;
    struct rfx_stream_choice streams[STREAM_SPLITS * STREAM_BANDS];
    int n_streams;
    struct rfx_stream_ring *rings; /* storage of all streams */
    int64_t *done;                 /* scratch of a stream */
    struct candidate *candidates;
    size_t n_candidates;
};

size_t rfx_plan_reserve_bytes(int threads) {
    return 10 * MIB + (size_t)threads * 2 * MIB;
}

/* The tile count that was asked for (more tiles than positions would be empty), or all counts of a
 * search. */
static int list_counts(int64_t extent, int64_t fixed, int64_t *counts) {
    if (fixed > 0) {
        counts[0] = rfx_min_i64(fixed, extent);
        return 1;
    }
    return rfx_tiling_counts(extent, counts);
}

static void fill_axes(struct search *search, int split) {
    struct axis_table *axes = &search->axes;
    const struct rfx_graph *graph = search->context.graph;
    const struct rfx_plan_request *request = search->context.request;
    if (axes->split == split) return;
    for (int axis = 0; axis < 2; axis++) {
        int64_t counts[MAX_AXIS_COUNTS];
        int64_t extent = rfx_node_extent(&graph->nodes[split], (enum rfx_axis)axis);
        int64_t fixed = axis == RFX_AXIS_ROWS ? request->tiles_y : request->tiles_x;
        axes->n[axis] = list_counts(extent, fixed, counts);
        for (int i = 0; i < axes->n[axis]; i++) {
            struct rfx_axis_tiling *tiling = &axes->choices[axis][i];
            tiling->n = counts[i];
            tiling->extents =
                axes->extents + (size_t)(axis * MAX_AXIS_COUNTS + i) * (size_t)graph->n_nodes;
            rfx_tiling_axis(graph, split, (enum rfx_axis)axis, counts[i], search->context.regions,
                            tiling->extents, &tiling->overlap);
        }
    }
    axes->split = split;
}

static const struct rfx_axis_tiling untiled_axis = {.n = 1};

static void candidate_axes(struct search *search, const struct candidate *c,
                           const struct rfx_axis_tiling **rows,
                           const struct rfx_axis_tiling **cols) {
    *rows = *cols = &untiled_axis;
    search->context.stream = c->stream < 0 ? NULL : &search->streams[c->stream];
    if (c->split < 0 || c->stream >= 0) return;
    fill_axes(search, c->split);
    *rows = &search->axes.choices[RFX_AXIS_ROWS][c->row_choice];
    *cols = &search->axes.choices[RFX_AXIS_COLS][c->col_choice];
}

static void add_candidate(struct search *search, struct candidate c) {
    const struct rfx_axis_tiling *rows;
    const struct rfx_axis_tiling *cols;
    candidate_axes(search, &c, &rows, &cols);
    struct rfx_plan_context *context = &search->context;
    c.macs = rfx_plan_count_macs(context, c.split, rows, cols);
    int n = rfx_plan_list_records(context, c.split, rows, cols);
    int64_t window = rfx_plan_window_rows(context, c.split, rows, cols);
    c.bound =
        rfx_plan_fixed_bytes(context, window) +
        rfx_place_lower_bound(context->records, n, context->graph->n_nodes + 1, context->live);
    search->candidates[search->n_candidates++] = c;
}

/* Measures the rings of one stream and adds it. */
static void add_stream(struct search *search, int split, int64_t band_rows, int rank) {
    const struct rfx_graph *graph = search->context.graph;
    struct rfx_stream_choice *stream = &search->streams[search->n_streams];
    stream->band_rows = band_rows;
    stream->ends_in_pools = rfx_stream_ends_in_pools(graph, split);
    stream->rings = search->rings + (size_t)search->n_streams * (size_t)graph->n_nodes;
    rfx_stream_measure(graph, split, band_rows, search->done, stream->rings);
    struct candidate c = {.split = split, .stream = search->n_streams++, .rank = rank};
    add_candidate(search, c);
}

static void add_streams(struct search *search) {
    int64_t asked = search->context.request->band_rows;
    int first = search->n_splits > STREAM_SPLITS ? search->n_splits - STREAM_SPLITS : 0;
    for (int i = first; i < search->n_splits; i++) {
        if (asked > 0) {
            add_stream(search, search->splits[i], asked, 1);
            continue;
        }
        for (int b = 0; b < STREAM_BANDS; b++)
            add_stream(search, search->splits[i], stream_bands[b], 1 + b);
    }
}

static size_t axis_pairs(const struct search *search, int split) {
    const struct rfx_graph *graph = search->context.graph;
    const struct rfx_plan_request *request = search->context.request;
    int64_t counts[MAX_AXIS_COUNTS];
    const struct rfx_node *node = &graph->nodes[split];
    return (size_t)list_counts(node->out.h, request->tiles_y, counts) *
           (size_t)list_counts(node->out.w, request->tiles_x, counts);
}

/* Which plans the request leaves open. */
static enum rfx_status list_candidates(struct search *search, struct rfx_error *err) {
    const struct rfx_plan_request *request = search->context.request;
    struct rfx_memory *mem = search->context.graph->mem;
    bool tiles_given = request->tiles_y > 0 || request->tiles_x > 0 || request->split != NULL;
    bool bands_given = request->band_rows > 0;
    bool with_untiled = request->untiled || (!tiles_given && !bands_given);
    bool with_tiles =
        !request->untiled && !bands_given && (tiles_given || request->memory_bytes != 0);
    bool with_streams =
        bands_given || (!request->untiled && request->memory_bytes != 0 && request->tiles_y == 0);
    size_t total = 1 + STREAM_SPLITS * STREAM_BANDS;
    for (int i = 0; with_tiles && i < search->n_splits; i++)
        total += axis_pairs(search, search->splits[i]);
    search->candidates = rfx_memory_alloc(mem, total * sizeof *search->candidates);
    if (search->candidates == NULL)
        return rfx_memory_fail(mem, "planner candidates", total * sizeof *search->candidates, err);
    struct candidate untiled = {.split = -1, .stream = -1};
    if (with_untiled) add_candidate(search, untiled);
    if (with_streams) add_streams(search);
    for (int i = 0; with_tiles && i < search->n_splits; i++) {
        fill_axes(search, search->splits[i]);
        for (int r = 0; r < search->axes.n[0]; r++)
            for (int c = 0; c < search->axes.n[1]; c++) {
                struct candidate tiles = {search->splits[i], r, c, -1, 1, 0, 0};
                add_candidate(search, tiles);
            }
    }
    return RFX_OK;
}

static int compare_u64(uint64_t a, uint64_t b) {
    return (a > b) - (a < b);
}

static int compare_macs(const void *pa, const void *pb) {
    const struct candidate *a = pa;
    const struct candidate *b = pb;
    int by_macs = compare_u64(a->macs, b->macs);
    if (by_macs != 0) return by_macs;
    return a->rank != b->rank ? a->rank - b->rank : compare_u64(a->bound, b->bound);
}

static int compare_bound(const void *pa, const void *pb) {
    const struct candidate *a = pa;
    const struct candidate *b = pb;
    int by_bound = compare_u64(a->bound, b->bound);
    return by_bound != 0 ? by_bound : compare_u64(a->macs, b->macs);
}

static enum rfx_status build(struct search *search, const struct candidate *c,
                             struct rfx_plan **out, struct rfx_error *err) {
    const struct rfx_axis_tiling *rows;
    const struct rfx_axis_tiling *cols;
    candidate_axes(search, c, &rows, &cols);
    return rfx_plan_build(&search->context, c->split, rows, cols, out, err);
}

/* First candidate by MACs whose placed peak fits; *out stays NULL when there is none. */
static enum rfx_status find_cheapest(struct search *search, struct rfx_plan **out,
                                     struct rfx_error *err) {
    size_t budget = search->context.request->memory_bytes;
    qsort(search->candidates, search->n_candidates, sizeof *search->candidates, compare_macs);
    for (size_t i = 0; i < search->n_candidates; i++) {
        const struct candidate *c = &search->candidates[i];
        if (budget != 0 && c->bound > budget) continue;
        struct rfx_plan *plan = NULL;
        enum rfx_status status = build(search, c, &plan, err);
        if (status != RFX_OK) return status;
        if (budget == 0 || plan->peak_bytes <= budget) {
            *out = plan;
            return RFX_OK;
        }
        rfx_plan_free(plan);
    }
    return RFX_OK;
}

/* The candidate with the smallest placed peak (fewest MACs among equals). */
static enum rfx_status find_smallest(struct search *search, struct rfx_plan **out,
                                     struct rfx_error *err) {
    struct rfx_plan *best = NULL;
    qsort(search->candidates, search->n_candidates, sizeof *search->candidates, compare_bound);
    for (size_t i = 0; i < search->n_candidates; i++) {
        const struct candidate *c = &search->candidates[i];
        if (best != NULL && c->bound > best->peak_bytes) break;
        struct rfx_plan *plan = NULL;
        enum rfx_status status = build(search, c, &plan, err);
        if (status != RFX_OK) {
            rfx_plan_free(best);
            return status;
        }
        bool better = best == NULL || plan->peak_bytes < best->peak_bytes ||
                      (plan->peak_bytes == best->peak_bytes && plan->macs < best->macs);
        rfx_plan_free(better ? best : plan);
        if (better) best = plan;
    }
    *out = best;
    return RFX_OK;
}

static enum rfx_status fail_budget(const struct rfx_plan_request *request,
                                   const struct rfx_plan *smallest, struct rfx_error *err) {
    const struct rfx_plan_bytes *b = &smallest->bytes;
    double mib = (double)MIB;
    size_t kib = (smallest->peak_bytes + 1023) / 1024;
    return rfx_fail(err, RFX_STATUS_BUDGET_IMPOSSIBLE,
                    "needs at least %zu bytes (%.1f MiB, --memory %zuKiB), the budget is %.1f MiB: "
                    "activations %.1f, weights %.1f, scratch %.1f, image %.1f, process %.1f MiB",
                    kib * 1024, (double)(kib * 1024) / mib, kib,
                    (double)request->memory_bytes / mib, (double)b->arena / mib,
                    (double)b->weights / mib, (double)b->scratch / mib, (double)b->source / mib,
                    (double)b->reserve / mib);
}

static enum rfx_status check_request(const struct rfx_graph *graph,
                                     const struct rfx_plan_request *request,
                                     struct rfx_error *err) {
    if (request->threads < 1)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "threads is %d, at least 1 is needed",
                        request->threads);
    bool tiles = request->tiles_y != 0 || request->tiles_x != 0;
    if (tiles && (request->tiles_y < 1 || request->tiles_x < 1))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "tiles %lldx%lld: both must be positive",
                        (long long)request->tiles_y, (long long)request->tiles_x);
    if (request->untiled && (tiles || request->split != NULL || request->band_rows != 0))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "untiled contradicts a grid of tiles, bands of rows or a split");
    if (request->band_rows < 0 || (request->band_rows > 0 && tiles))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "bands of %lld rows: a positive number, and not beside tiles",
                        (long long)request->band_rows);
    const struct rfx_tensor *input = &graph->nodes[graph->input].out;
    const struct rfx_source_traits *s = &request->source;
    if (s->h != input->h || s->w != input->w || s->c != input->c)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "the image is %lldx%lld with %lld channels, the network's input "
                        "%lldx%lld with %lld",
                        (long long)s->h, (long long)s->w, (long long)s->c, (long long)input->h,
                        (long long)input->w, (long long)input->c);
    return RFX_OK;
}

static enum rfx_status list_splits(struct search *search, struct rfx_error *err) {
    const struct rfx_graph *graph = search->context.graph;
    const struct rfx_plan_request *request = search->context.request;
    if (request->split != NULL) {
        search->n_splits = 1;
        return rfx_split_find(graph, request->split, &search->splits[0], err);
    }
    search->n_splits = rfx_splits_list(graph, search->splits);
    if (search->n_splits == 0 && (request->tiles_y > 0 || request->band_rows > 0))
        return rfx_fail(
            err, RFX_STATUS_UNSUPPORTED,
            "this network cannot be tiled or streamed: it has no point where a single tensor "
            "that is local in space is alive");
    return RFX_OK;
}

static enum rfx_status search_init(struct search *search, const struct rfx_graph *graph,
                                   const struct rfx_plan_request *request, struct rfx_error *err) {
    struct rfx_memory *mem = graph->mem;
    memset(search, 0, sizeof *search);
    search->axes.split = -2;
    enum rfx_status status = rfx_plan_context_init(&search->context, graph, request, err);
    if (status != RFX_OK) return status;
    size_t n = (size_t)graph->n_nodes;
    search->splits = rfx_memory_calloc(mem, n, sizeof *search->splits);
    search->axes.extents =
        rfx_memory_calloc(mem, 2 * MAX_AXIS_COUNTS * n, sizeof *search->axes.extents);
    search->rings = rfx_memory_calloc(mem, STREAM_SPLITS * STREAM_BANDS * n, sizeof *search->rings);
    search->done = rfx_memory_calloc(mem, n, sizeof *search->done);
    if (search->splits == NULL || search->axes.extents == NULL || search->rings == NULL ||
        search->done == NULL)
        return rfx_memory_fail(mem, "planner tables",
                               2 * MAX_AXIS_COUNTS * n * sizeof *search->axes.extents, err);
    status = list_splits(search, err);
    return status == RFX_OK ? list_candidates(search, err) : status;
}

static void search_release(struct search *search) {
    if (search->context.graph == NULL) return;
    struct rfx_memory *mem = search->context.graph->mem;
    rfx_memory_release(mem, search->splits);
    rfx_memory_release(mem, search->axes.extents);
    rfx_memory_release(mem, search->rings);
    rfx_memory_release(mem, search->done);
    rfx_memory_release(mem, search->candidates);
    rfx_plan_context_release(&search->context);
}

/* The request with a default grid where a split was named without tiles or budget. */
static struct rfx_plan_request complete_request(const struct rfx_plan_request *request) {
    struct rfx_plan_request r = *request;
    if (r.split != NULL && r.tiles_y == 0 && r.tiles_x == 0 && r.memory_bytes == 0 &&
        r.band_rows == 0)
        r.tiles_y = r.tiles_x = DEFAULT_TILES;
    return r;
}

enum rfx_status rfx_plan_create_or_smallest(const struct rfx_graph *graph,
                                            const struct rfx_plan_request *asked,
                                            struct rfx_plan **out, struct rfx_plan **smallest,
                                            struct rfx_error *err) {
    struct rfx_plan_request request = complete_request(asked);
    struct search search;
    struct rfx_plan *plan = NULL;
    enum rfx_status status = check_request(graph, &request, err);
    if (status != RFX_OK) return status;
    status = search_init(&search, graph, &request, err);
    if (status != RFX_OK) goto done;
    bool by_size = request.memory_bytes == 0 && request.split == NULL &&
                   (request.tiles_y > 0 || request.band_rows > 0);
    status = by_size ? find_smallest(&search, &plan, err) : find_cheapest(&search, &plan, err);
    if (status != RFX_OK) goto done;
    if (plan != NULL) {
        *out = plan;
        goto done;
    }
    status = find_smallest(&search, &plan, err);
    if (status != RFX_OK) goto done;
    status = fail_budget(&request, plan, err);
    *smallest = plan;
done:
    search_release(&search);
    return status;
}

enum rfx_status rfx_plan_create(const struct rfx_graph *graph,
                                const struct rfx_plan_request *request, struct rfx_plan **out,
                                struct rfx_error *err) {
    struct rfx_plan *smallest = NULL;
    enum rfx_status status = rfx_plan_create_or_smallest(graph, request, out, &smallest, err);
    rfx_plan_free(smallest);
    return status;
}
