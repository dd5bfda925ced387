/* Lists records and slides, and finds when each row of each map is computed and last read. */
#include "tools/study/row_run.h"

#include <string.h>

#include "layers/conv/conv_backend.h"
#include "layers/core/checked.h"
#include "layers/graph/op.h"
#include "rf_analysis/analysis.h"
#include "rf_analysis/regions.h"
#include "tiler/arena/placement_slides.h"

/* The tiles of all maps, and scratch for the lifetimes of one map's rows. */
struct row_tiles {
    const struct rfx_row_run *run;
    const bool *node_upwards;
    struct rfx_tiled_tensor *tensors;
    struct rfx_tile *tiles;
    int64_t *made, *read; /* per row: the time when it is computed and the time when it is last
                             read; a row that is never read has read = made */
};

static bool has_rows(const struct rfx_node *node) {
    return node->out.layout == RFX_LAYOUT_NHWC;
}

static int64_t row_count(const struct rfx_node *node) {
    return has_rows(node) ? node->out.h : 1;
}

/* Returns the steps of node i in an untiled stage that runs row by row: one step for the whole map
 * if the node does not run by rows. */
static struct rfx_row_steps steps_of(const struct rfx_graph *graph, int i) {
    const struct rfx_node *node = &graph->nodes[i];
    int64_t h = row_count(node);
    struct rfx_row_steps whole = {{0, h}, h, 0};
    return rfx_node_runs_by_rows(node) ? rfx_row_steps_of(graph, i, rfx_row_step_rows(graph, i))
                                       : whole;
}

static int64_t step_count(const struct rfx_graph *graph, int i) {
    struct rfx_row_steps steps = steps_of(graph, i);
    return rfx_row_step_count(&steps);
}

/* Fills the records of the maps, and the time at which each node begins. */
static void list_records(struct rfx_row_run *run, const int *last_use) {
    const struct rfx_graph *graph = run->graph;
    for (int i = 0; i < graph->n_nodes; i++) {
        run->map[i] = -1;
        run->begin[i + 1] = run->begin[i] + step_count(graph, i);
    }
    for (int m = 0; m < run->n; m++) {
        int i = run->nodes[m];
        int last = last_use[i] > i ? last_use[i] : i;
        run->map[i] = m;
        run->records[m] = (struct rfx_record){
            RFX_RECORD_STORED,
            0,
            i,
            i,
            last,
            rfx_align_up(rfx_node_out_bytes(&graph->nodes[i])) + RFX_RED_ZONE_BYTES,
            0};
    }
}

/* Lists the slides: the pairs of maps of which the second may overwrite rows of the first. */
static void list_slides(struct rfx_row_run *run) {
    const struct rfx_graph *graph = run->graph;
    for (int m = 0; m < run->n; m++) {
        int i = run->nodes[m];
        const struct rfx_node *node = &graph->nodes[i];
        if (!rfx_node_is_local(node)) continue;
        for (int k = 0; k < node->n_in; k++) {
            int before = run->map[node->in[k]];
            if (before < 0 || run->records[before].last != i) continue;
            if (!has_rows(&graph->nodes[node->in[k]])) continue;
            struct rfx_slide slide = {.before = before, .after = m, .node = i};
            rfx_slide_measure(graph, i, k, &slide);
            rfx_slide_add(run->slides, &run->n_slides, &slide);
        }
    }
}

enum rfx_status rfx_row_run_create(struct rfx_memory *mem, const struct rfx_graph *graph,
                                   const int *nodes, int n, struct rfx_row_run **out,
                                   struct rfx_error *err) {
    size_t n_nodes = (size_t)graph->n_nodes;
    size_t count = (size_t)n;
    size_t inputs = 1;
    for (int m = 0; m < n; m++) inputs += (size_t)graph->nodes[nodes[m]].n_in;
    int *last_use = rfx_memory_calloc(mem, n_nodes, sizeof *last_use);
    struct rfx_row_run *run = rfx_memory_calloc(mem, 1, sizeof *run);
    if (run != NULL) run->mem = mem;
    if (last_use == NULL || run == NULL) goto fail;
    run->graph = graph;
    run->n = n;
    run->map = rfx_memory_calloc(mem, n_nodes, sizeof *run->map);
    run->nodes = rfx_memory_calloc(mem, count, sizeof *run->nodes);
    run->records = rfx_memory_calloc(mem, count, sizeof *run->records);
    run->slides = rfx_memory_calloc(mem, inputs, sizeof *run->slides);
    run->begin = rfx_memory_calloc(mem, n_nodes + 1, sizeof *run->begin);
    if (run->map == NULL || run->nodes == NULL || run->records == NULL || run->slides == NULL ||
        run->begin == NULL)
        goto fail;
    if (n > 0) memcpy(run->nodes, nodes, count * sizeof *nodes);
    rfx_last_uses(graph, last_use);
    list_records(run, last_use);
    list_slides(run);
    rfx_memory_release(mem, last_use);
    *out = run;
    return RFX_OK;
fail:
    rfx_row_run_free(run);
    rfx_memory_release(mem, last_use);
    return rfx_memory_fail(mem, "row by row records", count * sizeof *run->records, err);
}

void rfx_row_run_free(struct rfx_row_run *run) {
    if (run == NULL) return;
    struct rfx_memory *mem = run->mem;
    rfx_memory_release(mem, run->begin);
    rfx_memory_release(mem, run->slides);
    rfx_memory_release(mem, run->records);
    rfx_memory_release(mem, run->nodes);
    rfx_memory_release(mem, run->map);
    rfx_memory_release(mem, run);
}

enum rfx_status rfx_row_run_place(struct rfx_row_run *run, size_t *offsets, bool *upwards,
                                  size_t *arena_bytes, struct rfx_error *err) {
    enum rfx_status status = rfx_slides_place(run->mem, run->records, run->n, run->slides,
                                              run->n_slides, false, 0, upwards, arena_bytes, err);
    for (int m = 0; m < run->n && status == RFX_OK; m++) offsets[m] = run->records[m].offset;
    return status;
}

/* Returns the time at which a node computes its rows from `row` on. */
static int64_t time_of(const struct row_tiles *t, int node, int64_t row) {
    struct rfx_row_steps steps = steps_of(t->run->graph, node);
    int64_t step = (row - steps.all.lo + steps.lead) / steps.rows;
    if (t->node_upwards[node]) step = step_count(t->run->graph, node) - 1 - step;
    return t->run->begin[node] + step;
}

/* Sets t->read for the rows of input k that a reader needs. Each step of the reader needs the rows
 * of its input region, or all rows if the reader or the input has no rows. */
static void mark_reads(const struct row_tiles *t, int reader, int k, int64_t h) {
    const struct rfx_graph *graph = t->run->graph;
    const struct rfx_node *node = &graph->nodes[reader];
    struct rfx_row_steps steps = steps_of(graph, reader);
    bool rows = has_rows(node) && has_rows(&graph->nodes[node->in[k]]);
    for (int64_t s = 0; s < rfx_row_step_count(&steps); s++) {
        struct rfx_range out = rfx_row_step_at(&steps, s), in = {0, h};
        int64_t now = time_of(t, reader, out.lo);
        if (rows) in = rfx_input_range(graph, node, k, RFX_AXIS_ROWS, out);
        for (int64_t y = rfx_max_i64(in.lo, 0); y < rfx_min_i64(in.hi, h); y++)
            t->read[y] = rfx_max_i64(t->read[y], now);
    }
}

/* Fills made and read for the rows of map m. Returns the first time at which any of them is read,
 * or the end of time. */
static int64_t follow_rows(const struct row_tiles *t, int m) {
    const struct rfx_graph *graph = t->run->graph;
    int i = t->run->nodes[m];
    int64_t h = row_count(&graph->nodes[i]);
    int64_t end = t->run->begin[graph->n_nodes];
    int64_t first_read = end;
    bool to_the_end = t->run->records[m].last >= graph->n_nodes;
    for (int64_t y = 0; y < h; y++) {
        t->made[y] = time_of(t, i, y);
        t->read[y] = to_the_end ? end : t->made[y];
    }
    for (int c = i + 1; c < graph->n_nodes; c++) {
        for (int k = 0; k < graph->nodes[c].n_in; k++) {
            if (graph->nodes[c].in[k] != i) continue;
            mark_reads(t, c, k, h);
            first_read = rfx_min_i64(first_read, t->run->begin[c]);
        }
    }
    return first_read;
}

/* Lists the tiles of map m: consecutive rows with the same lifetime are one tile. Returns their
 * number. */
static int cut_map(const struct row_tiles *t, int m, struct rfx_tile *tiles) {
    int i = t->run->nodes[m];
    const struct rfx_node *node = &t->run->graph->nodes[i];
    int64_t h = row_count(node);
    size_t elements = (size_t)(node->out.elems / h);
    size_t elem_bytes = rfx_type_bytes(node->out.type), row_bytes = elements * elem_bytes;
    int64_t first_read = follow_rows(t, m);
    int n = 0;
    for (int64_t y = 0; y < h; y++) {
        if (n > 0 && tiles[n - 1].first == t->made[y] && tiles[n - 1].last == t->read[y])
            tiles[n - 1].sizes[0]++;
        else
            tiles[n++] = (struct rfx_tile){t->made[y], t->read[y],    (size_t)y * row_bytes,
                                           2,          {1, elements}, {row_bytes, elem_bytes}};
    }
    int64_t complete = t->run->begin[i + 1] - 1;
    bool needed = first_read < t->run->begin[t->run->graph->n_nodes];
    t->tensors[m] = (struct rfx_tiled_tensor){needed ? complete : 1,
                                              needed ? first_read - 1 : 0,
                                              rfx_tensor_bytes(&node->out),
                                              elem_bytes,
                                              tiles,
                                              n};
    return n;
}

static void release_tiles(struct row_tiles *t, bool *upwards) {
    struct rfx_memory *mem = t->run->mem;
    rfx_memory_release(mem, t->made);
    rfx_memory_release(mem, t->tiles);
    rfx_memory_release(mem, t->tensors);
    rfx_memory_release(mem, upwards);
}

/* Lists the tiles of all maps. The caller frees them with release_tiles, also after a failure. */
static enum rfx_status cut_maps(struct row_tiles *t, const bool *node_upwards,
                                struct rfx_error *err) {
    struct rfx_memory *mem = t->run->mem;
    int64_t rows = 0;
    int64_t most = 1;
    for (int m = 0; m < t->run->n; m++) {
        int64_t h = row_count(&t->run->graph->nodes[t->run->nodes[m]]);
        rows += h;
        most = rfx_max_i64(most, h);
    }
    t->node_upwards = node_upwards;
    t->tensors = rfx_memory_calloc(mem, (size_t)t->run->n, sizeof *t->tensors);
    t->tiles = rfx_memory_calloc(mem, (size_t)rows, sizeof *t->tiles);
    t->made = rfx_memory_calloc(mem, 2 * (size_t)most, sizeof *t->made);
    if (t->tensors == NULL || t->tiles == NULL || t->made == NULL)
        return rfx_memory_fail(mem, "row tiles", (size_t)rows * sizeof *t->tiles, err);
    t->read = t->made + most;
    struct rfx_tile *tiles = t->tiles;
    for (int m = 0; m < t->run->n; m++) tiles += cut_map(t, m, tiles);
    return RFX_OK;
}

enum rfx_status rfx_row_run_tiles(const struct rfx_row_run *run, const bool *upwards,
                                  struct rfx_tiles_problem **out, struct rfx_error *err) {
    struct row_tiles t = {.run = run};
    size_t n_nodes = (size_t)run->graph->n_nodes;
    bool *node_upwards = rfx_memory_calloc(run->mem, n_nodes, sizeof *node_upwards);
    if (node_upwards == NULL) return rfx_memory_fail(run->mem, "directions", n_nodes, err);
    for (int k = 0; upwards != NULL && k < run->n_slides; k++)
        if (upwards[k]) node_upwards[run->slides[k].node] = true;
    enum rfx_status status = cut_maps(&t, node_upwards, err);
    if (status == RFX_OK)
        status =
            rfx_tiles_problem_create(run->mem, t.tensors, run->n, RFX_ALIGNMENT_BYTES, out, err);
    release_tiles(&t, node_upwards);
    return status;
}

/* Sets live[t] to the bytes of the rows that are live at time t. */
static void count_live(const struct row_tiles *t, size_t *live, int64_t n_times) {
    memset(live, 0, ((size_t)n_times + 1) * sizeof *live);
    for (int m = 0; m < t->run->n; m++) {
        const struct rfx_tiled_tensor *tensor = &t->tensors[m];
        for (int k = 0; k < tensor->n_tiles; k++) {
            const struct rfx_tile *tile = &tensor->tiles[k];
            size_t bytes = tile->sizes[0] * tile->strides[0];
            live[tile->first] += bytes;
            if (tile->last < n_times)
                live[tile->last + 1] -= bytes; /* may wrap around: the sums below are right again */
        }
    }
    for (int64_t i = 1; i < n_times; i++)
        live[i] += live[i - 1]; /* after wrapping, the sum is a true size again */
}

/* The direction in which a node runs changes only what is live during its own steps. So the smaller
 * peak of the two directions counts for each node, and the largest of these over all nodes. */
enum rfx_status rfx_row_run_bound(const struct rfx_row_run *run, size_t *bound_bytes,
                                  struct rfx_error *err) {
    struct rfx_memory *mem = run->mem;
    int n_nodes = run->graph->n_nodes;
    int64_t n_times = run->begin[n_nodes];
    size_t row = (size_t)n_times + 1;
    enum rfx_status status = RFX_OK;
    bool *upwards = rfx_memory_calloc(mem, (size_t)n_nodes, sizeof *upwards);
    size_t *live = rfx_memory_calloc(mem, 2 * row, sizeof *live);
    if (upwards == NULL || live == NULL)
        status = rfx_memory_fail(mem, "live bytes", 2 * row * sizeof *live, err);
    for (int direction = 0; direction < 2 && status == RFX_OK; direction++) {
        struct row_tiles t = {.run = run};
        memset(upwards, direction, (size_t)n_nodes);
        status = cut_maps(&t, upwards, err);
        if (status == RFX_OK) count_live(&t, live + (size_t)direction * row, n_times);
        release_tiles(&t, NULL);
    }
    size_t bound = 0;
    for (int i = 0; i < n_nodes && status == RFX_OK; i++) {
        size_t peak[2] = {0, 0};
        for (int direction = 0; direction < 2; direction++)
            for (int64_t now = run->begin[i]; now < run->begin[i + 1]; now++)
                if (live[(size_t)direction * row + (size_t)now] > peak[direction])
                    peak[direction] = live[(size_t)direction * row + (size_t)now];
        size_t least = peak[0] < peak[1] ? peak[0] : peak[1];
        if (least > bound) bound = least;
    }
    if (status == RFX_OK) *bound_bytes = bound;
    rfx_memory_release(mem, live);
    rfx_memory_release(mem, upwards);
    return status;
}
