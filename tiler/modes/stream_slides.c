/* Backwards from the map that is made, node by node, to the one that is read; see stream_slides.h.
 */
#include "tiler/modes/stream_slides.h"

#include "layers/core/checked.h"
#include "layers/graph/op.h"
#include "rf_analysis/regions.h"

enum { LOOKS = 64 };

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

/* Rows of input k that rows [lo, hi) of a node read, inside its map; none where there are none. */
static struct rfx_range rows_read(const struct rfx_graph *graph, int node, int k, int64_t lo,
                                  int64_t hi) {
    const struct rfx_node *in = &graph->nodes[graph->nodes[node].in[k]];
    struct rfx_range out = {lo, hi}, all = rfx_rect_row_range(in->wanted);
    if (lo >= hi) return (struct rfx_range){all.hi, all.lo};
    struct rfx_range rows = rfx_input_range(graph, &graph->nodes[node], k, RFX_AXIS_ROWS, out);
    return (struct rfx_range){rfx_max_i64(rows.lo, all.lo),
                              rfx_max_i64(all.lo, rfx_min_i64(rows.hi, all.hi))};
}

/* The nodes over which `before` gets into `after`, the last first. */
struct path {
    int64_t *done;  /* n_nodes: the rows that a node has made at least */
    int64_t *nodes; /* [n] */
    int n;
};

static void list_path(const struct rfx_graph *graph, int before, int after, struct path *path) {
    path->n = 0;
    path->done[before] = 1; /* for now: reached */
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

/* The first row of `before` that is read when `after` has made its rows up to `row`, or later. A
 * node has made at least what its readers have been made of: of several, some may not be part of
 * the stage, so that it is the least that counts. */
static int64_t first_read(const struct rfx_graph *graph, int before, int after, int64_t row,
                          const struct path *path) {
    int64_t first = rfx_rect_row_range(graph->nodes[before].wanted).hi;
    int64_t *done = path->done;
    for (int p = 0; p < path->n; p++) done[path->nodes[p]] = INT64_MAX; /* does not lead there */
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

int64_t rfx_stream_lag(const struct rfx_graph *graph, int before, int after, int64_t *scratch) {
    struct path path = {.done = scratch, .nodes = scratch + graph->n_nodes};
    const struct rfx_node *from = &graph->nodes[before], *to = &graph->nodes[after];
    struct rfx_range read = rfx_rect_row_range(from->wanted), made = rfx_rect_row_range(to->wanted);
    list_path(graph, before, after, &path);
    int64_t step = rfx_ceil_div(rfx_range_size(made), LOOKS);
    int64_t lag = -rfx_range_size(read) * row_bytes(from);
    for (int64_t row = made.lo; row < made.hi; row += step) {
        int64_t last = rfx_min_i64(row + step, made.hi) - 1; /* that reads no earlier ones */
        int64_t dead = first_read(graph, before, after, row, &path) - read.lo;
        lag = rfx_max_i64(lag, (last - made.lo) * row_bytes(to) - dead * row_bytes(from));
    }
    return lag;
}
