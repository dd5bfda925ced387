/* Walks backwards, node by node, from the map that is written to the map that is read; see
 * stream_slides.h. */
#include "tiler/modes/stream_slides.h"

#include "layers/core/checked.h"
#include "layers/graph/op.h"
#include "rf_analysis/regions.h"

bool rfx_stream_reads_for(const struct rfx_graph *graph, const struct rfx_stage_shape *shape,
                          int before, int after, int64_t *marks) {
    bool read = false;
    for (int i = before; i < shape->end; i++) marks[i] = 0;
    marks[after] = 1;
    for (int i = shape->end - 1; i > before; i--) {
        if (!rfx_place_is_computed(shape->places[i])) continue;
        for (int k = 0; k < rfx_place_inputs(shape->places[i], &graph->nodes[i]); k++) {
            int in = graph->nodes[i].in[k];
            if (in == before && marks[i] == 0) return false;
            read |= in == before;
            if (in > before && marks[i] != 0) marks[in] = 1;
        }
    }
    return read;
}

/* Returns the rows of input k, inside its map, that rows [lo, hi) of a node read; an empty range if
 * lo >= hi. */
static struct rfx_range rows_read(const struct rfx_graph *graph, int node, int k, int64_t lo,
                                  int64_t hi) {
    const struct rfx_node *in = &graph->nodes[graph->nodes[node].in[k]];
    struct rfx_range out = {lo, hi}, all = rfx_rect_row_range(in->wanted);
    if (lo >= hi) return (struct rfx_range){all.hi, all.lo};
    struct rfx_range rows = rfx_input_range(graph, &graph->nodes[node], k, RFX_AXIS_ROWS, out);
    return (struct rfx_range){rfx_max_i64(rows.lo, all.lo),
                              rfx_max_i64(all.lo, rfx_min_i64(rows.hi, all.hi))};
}

/* The nodes on the paths from `before` to `after`, last node first. */
struct path {
    int64_t *done;  /* n_nodes: rows that a node must have computed */
    int64_t *nodes; /* [n] */
    int n;
};

static void list_path(const struct rfx_graph *graph, int before, int after, struct path *path) {
    path->n = 0;
    path->done[before] = 1; /* marks as reached, for now */
    for (int i = before + 1; i <= after; i++) {
        const struct rfx_node *node = &graph->nodes[i];
        path->done[i] = 0;
        if (!rfx_node_is_local(node)) continue;
        for (int k = 0; k < node->n_in; k++)
            if (node->in[k] >= before && path->done[node->in[k]] != 0) path->done[i] = 1;
    }
    for (int i = after; i > before; i--)
        if (path->done[i] != 0) path->nodes[path->n++] = i;
}

/* Returns the first row of `before` that is still read after `after` has computed its rows up to
 * `row`. A node has computed at least the rows that its readers were computed from. Some of its
 * readers may not belong to the stage, so the smallest of these row counts is used. */
static int64_t first_read(const struct rfx_graph *graph, int before, int after, int64_t row,
                          const struct path *path) {
    int64_t first = rfx_rect_row_range(graph->nodes[before].wanted).hi;
    int64_t *done = path->done;
    for (int p = 0; p < path->n; p++) done[path->nodes[p]] = INT64_MAX; /* not reached yet */
    done[after] = row;
    for (int p = 0; p < path->n; p++) {
        int i = (int)path->nodes[p];
        const struct rfx_node *node = &graph->nodes[i];
        if (done[i] == INT64_MAX) continue;
        struct rfx_range all = rfx_rect_row_range(node->wanted);
        for (int k = 0; k < node->n_in; k++) {
            int in = node->in[k];
            if (in < before) continue;
            struct rfx_range made = rows_read(graph, i, k, all.lo, done[i]);
            struct rfx_range ahead = rows_read(graph, i, k, done[i], all.hi);
            if (in == before && ahead.lo < ahead.hi) first = rfx_min_i64(first, ahead.lo);
            done[in] = rfx_min_i64(done[in], made.hi);
        }
    }
    return first;
}

static int64_t row_bytes(const struct rfx_node *node) {
    return (int64_t)rfx_tensor_pixel_bytes(&node->out, rfx_rect_cols(node->wanted));
}

/* Two maps, and the lag of the later one (stream_slides.h). */
struct pair {
    const struct rfx_graph *graph;
    int before, after;
    struct path path;
    struct rfx_range read, made;
    int64_t read_bytes, made_bytes; /* of a row */
    int64_t lag;                    /* so far */
};

enum { LOOKS = 64, BLOCK = 8, MOST_BLOCKS = 24 };

/* Updates the lag for rows [row, last] of the later map. Uses the rows of `before` that are still
 * needed from `row` on. Returns how many rows of `before` are no longer needed. */
static int64_t look(struct pair *p, int64_t row, int64_t last) {
    int64_t dead = first_read(p->graph, p->before, p->after, row, &p->path) - p->read.lo;
    int64_t lag = (last - p->made.lo) * p->made_bytes - dead * p->read_bytes;
    p->lag = rfx_max_i64(p->lag, lag);
    return dead;
}

/* Looks at blocks of BLOCK rows of the later map, from a border inwards, until three blocks in
 * succession free the same number of rows of `before`, row for row. All blocks further in then free
 * that number too. Sets *moved to the number, and returns the rows looked at; -1: no such blocks
 * among the first MOST_BLOCKS. */
static int64_t look_from(struct pair *p, bool at_end, int64_t *moved) {
    int64_t rows = rfx_range_size(p->made), before[BLOCK] = {0};
    int alike = 0;
    *moved = INT64_MIN;
    for (int64_t block = 0; block < MOST_BLOCKS; block++) {
        if ((block + 1) * BLOCK > rows) return -1;
        int64_t first = at_end ? p->made.hi - (block + 1) * BLOCK : p->made.lo + block * BLOCK;
        bool even = block > 0;
        int64_t by = INT64_MIN;
        for (int i = 0; i < BLOCK; i++) {
            int64_t dead = look(p, first + i, first + i);
            int64_t on = at_end ? before[i] - dead : dead - before[i];
            before[i] = dead;
            even = even && (i == 0 || on == by);
            by = on;
        }
        alike = even && by == *moved ? alike + 1 : 0;
        *moved = even ? by : INT64_MIN;
        if (alike == 2) return (block + 1) * BLOCK;
    }
    return -1;
}

bool rfx_stream_reads(const struct rfx_graph *graph, int before, int after) {
    const struct rfx_node *node = &graph->nodes[after];
    for (int k = 0; k < node->n_in; k++)
        if (node->in[k] == before) return true;
    return false;
}

int64_t rfx_stream_lag(const struct rfx_graph *graph, int before, int after, int64_t *scratch) {
    const struct rfx_node *from = &graph->nodes[before], *to = &graph->nodes[after];
    struct pair p = {.graph = graph,
                     .before = before,
                     .after = after,
                     .path = {.done = scratch, .nodes = scratch + graph->n_nodes},
                     .read = rfx_rect_row_range(from->wanted),
                     .made = rfx_rect_row_range(to->wanted),
                     .read_bytes = row_bytes(from),
                     .made_bytes = row_bytes(to)};
    p.lag = -rfx_range_size(p.read) * p.read_bytes;
    list_path(graph, before, after, &p.path);
    if (!rfx_stream_reads(graph, before, after)) (void)look(&p, p.made.hi, p.made.hi);
    bool shifts = true;
    for (int n = 0; n < p.path.n; n++)
        shifts = shifts && rfx_op_shifts(graph, &graph->nodes[p.path.nodes[n]]);
    int64_t moved, moved_at_end;
    if (shifts && look_from(&p, false, &moved) >= 0 && look_from(&p, true, &moved_at_end) >= 0 &&
        moved == moved_at_end)
        return p.lag;
    int64_t step = rfx_ceil_div(rfx_range_size(p.made), LOOKS);
    for (int64_t row = p.made.lo; row < p.made.hi; row += step)
        (void)look(&p, row,
                   rfx_min_i64(row + step, p.made.hi) - 1); /* later rows never read earlier ones */
    return p.lag;
}

bool rfx_stream_ends_with(const struct rfx_graph *graph, int before, int after, int64_t *scratch) {
    struct path path = {.done = scratch, .nodes = scratch + graph->n_nodes};
    int64_t end = rfx_rect_row_range(graph->nodes[before].wanted).hi;
    list_path(graph, before, after, &path);
    int64_t made = rfx_rect_row_range(graph->nodes[after].wanted).hi;
    return first_read(graph, before, after, made, &path) >= end;
}
