/* Simulates which rows of all maps exist at certain moments of a stream; see conv_tile_rows.h. */
#include "layers/conv/winograd/conv_tile_rows.h"

#include "layers/conv/conv_backend.h"
#include "layers/core/checked.h"
#include "layers/graph/op.h"

enum {
    MOMENTS = 32,     /* number of moments that are simulated */
    IMAGE_ROWS = 8,   /* image rows that arrive from moment to moment */
    COMMON_ROWS = 64, /* the simulation begins at a multiple of so many image rows, where the
                         strides of most networks align */
    LEAST_ROWS = 64,  /* smaller maps: one more row of tiles costs too much */
    LEAST_LAYERS = 2, /* a map must be kept while at least so many layers with tiles of TILE_ROWS
                         run; with fewer, the gain is small */
    TILE_ROWS = 4     /* height of the tiles whose start is chosen */
};

struct flow {
    struct rfx_graph *graph;
    int64_t *rows;  /* [node][moment]: rows that exist */
    int *last_read; /* per node: the last node that reads it */
    int *layers;    /* per node: number of layers up to it with tiles of TILE_ROWS */
};

static int64_t *rows_of(const struct flow *flow, int node) {
    return flow->rows + (size_t)node * MOMENTS;
}

static int64_t tile_rows(const struct flow *flow, int node) {
    return rfx_conv_rows_together(flow->graph, &flow->graph->nodes[node]).h;
}

static void find_readers(const struct flow *flow) {
    const struct rfx_graph *graph = flow->graph;
    for (int i = 0; i < graph->n_nodes; i++) {
        for (int k = 0; k < graph->nodes[i].n_in; k++) flow->last_read[graph->nodes[i].in[k]] = i;
        flow->layers[i] = (i > 0 ? flow->layers[i - 1] : 0) + (tile_rows(flow, i) == TILE_ROWS);
    }
}

/* Returns the last reader of a map if the map must be kept while at least LEAST_LAYERS layers with
 * tiles of TILE_ROWS run; -1 otherwise. */
static int waits_until(const struct flow *flow, int node) {
    int last = flow->last_read[node];
    bool waits = last > node && flow->layers[last] - flow->layers[node] >= LEAST_LAYERS;
    return waits ? last : -1;
}

/* Returns whether rows [0, hi) of a map can be computed at a moment: whether the input rows in the
 * window of row hi - 1 exist. Does not require the input of the row's whole tile. */
static bool can_reach(const struct flow *flow, int node, int64_t hi, int moment) {
    const struct rfx_node *n = &flow->graph->nodes[node];
    for (int k = 0; k < n->n_in; k++) {
        int64_t there = rows_of(flow, n->in[k])[moment];
        struct rfx_axis_map map = rfx_op_axis_map(flow->graph, n, k, 0);
        if (there >= flow->graph->nodes[n->in[k]].out.h) continue;
        if (rfx_axis_map_range(&map, (struct rfx_range){hi - 1, hi}).hi > there) return false;
    }
    return true;
}

static void find_rows(const struct flow *flow, int node) {
    int64_t *rows = rows_of(flow, node);
    for (int t = 0; t < MOMENTS; t++) {
        int64_t lo = t == 0 ? 0 : rows[t - 1], hi = flow->graph->nodes[node].out.h;
        while (lo < hi) {
            int64_t middle = lo + (hi - lo + 1) / 2;
            if (can_reach(flow, node, middle, t))
                lo = middle;
            else
                hi = middle - 1;
        }
        rows[t] = lo;
    }
}

static int64_t whole_tiles(int64_t rows, int64_t edge, int64_t from, int64_t h) {
    return rows >= h ? h : rfx_max_i64(0, rfx_floor_div(rows - from, edge) * edge + from);
}

/* Returns how many rows, summed over all moments, wait for the rest of their tiles. */
static int64_t waiting(const int64_t *rows, int64_t from, int64_t h) {
    int64_t sum = 0;
    for (int t = 0; t < MOMENTS; t++) sum += rows[t] - whole_tiles(rows[t], TILE_ROWS, from, h);
    return sum;
}

static void place_tiles(const struct flow *flow, int node, bool passed) {
    struct rfx_node *n = &flow->graph->nodes[node];
    int64_t *rows = rows_of(flow, node), h = n->out.h, edge = tile_rows(flow, node), best = 0;
    for (int64_t from = 1; passed && edge == TILE_ROWS && h >= LEAST_ROWS && from < edge; from++)
        if (waiting(rows, from, h) < waiting(rows, best, h)) best = from;
    n->attr.conv.tiles_from = best;
    for (int t = 0; t < MOMENTS; t++) rows[t] = whole_tiles(rows[t], edge, best, h);
}

static void follow(const struct flow *flow) {
    const struct rfx_graph *graph = flow->graph;
    int64_t middle = graph->nodes[graph->input].out.h / 2 / COMMON_ROWS * COMMON_ROWS;
    int passed_until = -1;
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct rfx_node *n = &graph->nodes[i];
        bool flows = rfx_node_is_local(n) && n->n_in > 0 && n->out.layout == RFX_LAYOUT_NHWC;
        for (int t = 0; t < MOMENTS && !flows; t++)
            rows_of(flow, i)[t] =
                rfx_node_is_input(n) ? rfx_min_i64(n->out.h, middle + t * IMAGE_ROWS) : n->out.h;
        if (flows) find_rows(flow, i);
        if (flows && n->op == RFX_OP_CONV) place_tiles(flow, i, passed_until >= i);
        if (waits_until(flow, i) > passed_until) passed_until = waits_until(flow, i);
    }
}

enum rfx_status rfx_conv_set_tile_rows(struct rfx_graph *graph, struct rfx_error *err) {
    if (graph->conv != RFX_CONV_WINOGRAD || graph->input < 0) return RFX_OK;
    size_t n = (size_t)graph->n_nodes;
    struct flow flow = {.graph = graph};
    flow.rows = rfx_memory_calloc(graph->mem, n * MOMENTS, sizeof *flow.rows);
    flow.last_read = rfx_memory_calloc(graph->mem, n, sizeof *flow.last_read);
    flow.layers = rfx_memory_calloc(graph->mem, n, sizeof *flow.layers);
    enum rfx_status status = RFX_OK;
    if (flow.rows == NULL || flow.last_read == NULL || flow.layers == NULL) {
        status = rfx_memory_fail(graph->mem, "tile rows", n * MOMENTS * sizeof *flow.rows, err);
    } else {
        find_readers(&flow);
        follow(&flow);
    }
    rfx_memory_release(graph->mem, flow.layers);
    rfx_memory_release(graph->mem, flow.last_read);
    rfx_memory_release(graph->mem, flow.rows);
    return status;
}
