/* From stages to a plan: tensor usage records, MACs, the row window, the breakdown in bytes. */
#include "tiler/plan_build.h"

#include <assert.h>
#include <stdio.h>

#include "layers/checked.h"
#include "layers/global_pool.h"
#include "layers/op.h"
#include "rf_analysis/analysis.h"

/* Rows read at a time where a source is read from top to bottom only once (session.c). */
#define READ_BAND_ROWS 16

enum rfx_status rfx_plan_context_init(struct rfx_plan_context *context,
                                      const struct rfx_graph *graph,
                                      const struct rfx_plan_request *request,
                                      struct rfx_error *err) {
    struct rfx_memory *mem = graph->mem;
    size_t n = (size_t)graph->n_nodes;
    struct rfx_plan_context c = {.graph = graph, .request = request};
    c.last_use = rfx_memory_calloc(mem, n, sizeof *c.last_use);
    c.regions = rfx_memory_calloc(mem, n, sizeof *c.regions);
    c.records = rfx_memory_calloc(mem, 2 * n, sizeof *c.records); /* nodes and pool states */
    c.live = rfx_memory_calloc(mem, n + 2, sizeof *c.live);
    c.node_macs_tail = rfx_memory_calloc(mem, n + 1, sizeof *c.node_macs_tail);
    if (c.last_use == NULL || c.regions == NULL || c.records == NULL || c.live == NULL ||
        c.node_macs_tail == NULL) {
        rfx_plan_context_release(&c);
        return rfx_memory_fail(mem, "planner tables", n * sizeof *c.records, err);
    }
    rfx_last_uses(graph, c.last_use);
    for (int i = graph->n_nodes - 1; i >= 0; i--) {
        const struct rfx_node *node = &graph->nodes[i];
        c.node_macs_tail[i] =
            c.node_macs_tail[i + 1] + rfx_op_macs(graph, node, rfx_node_full_rect(node));
        c.weights_bytes += rfx_align_up(rfx_op_packed_bytes(graph, node));
        size_t scratch = rfx_align_up(rfx_op_scratch_bytes(graph, node, request->threads));
        if (scratch > c.scratch_bytes) c.scratch_bytes = scratch;
    }
    c.macs_untiled = c.node_macs_tail[0];
    *context = c;
    return RFX_OK;
}

void rfx_plan_context_release(struct rfx_plan_context *context) {
    struct rfx_memory *mem = context->graph->mem;
    rfx_memory_release(mem, context->last_use);
    rfx_memory_release(mem, context->regions);
    rfx_memory_release(mem, context->records);
    rfx_memory_release(mem, context->live);
    rfx_memory_release(mem, context->node_macs_tail);
}

uint64_t rfx_plan_count_macs(const struct rfx_plan_context *context, int split,
                             const struct rfx_axis_tiling *rows,
                             const struct rfx_axis_tiling *cols) {
    const struct rfx_graph *graph = context->graph;
    if (split < 0) return context->macs_untiled;
    const struct rfx_stream_choice *stream = context->stream;
    uint64_t macs = context->node_macs_tail[split + 1];
    for (int i = 0; i <= split; i++) {
        struct rfx_rect area = stream != NULL
                                   ? rfx_rect_full(stream->rings[i].computed, graph->nodes[i].out.w)
                                   : rfx_rect_full(rows->extents[i].sum, cols->extents[i].sum);
        macs += rfx_op_macs(graph, &graph->nodes[i], area);
    }
    return macs;
}

/* Elements of a node's buffer and how long it lives, for tiles and whole maps. */
static int64_t size_record(const struct rfx_plan_context *context, int split,
                           const struct rfx_axis_tiling *rows, const struct rfx_axis_tiling *cols,
                           struct rfx_record *record) {
    const struct rfx_node *node = &context->graph->nodes[record->id];
    const struct rfx_stream_choice *stream = context->stream;
    record->first = record->id == split ? 0 : record->id;
    record->last = context->last_use[record->id];
    if (record->id > split) return node->out.elems;
    if (stream != NULL) {
        const struct rfx_stream_ring *ring = &stream->rings[record->id];
        bool stored = record->id == split && !stream->ends_in_pools;
        if (stored) return node->out.elems;
        record->first = ring->transient ? record->id : 0;
        record->last = ring->transient ? context->last_use[record->id] : split;
        return ring->rows * node->out.w * node->out.c;
    }
    if (record->id == split) return node->out.elems;
    return rows->extents[record->id].max * cols->extents[record->id].max * node->out.c;
}

/* Adds the sums of the global pools that the stream feeds: alive from the first row on. */
static int list_pool_states(struct rfx_plan_context *context, int split, int n) {
    const struct rfx_graph *graph = context->graph;
    if (context->stream == NULL || !context->stream->ends_in_pools) return n;
    for (int i = split + 1; i < graph->n_nodes; i++) {
        if (graph->nodes[i].n_in != 1 || graph->nodes[i].in[0] != split) continue;
        struct rfx_record *record = &context->records[n++];
        record->id = graph->n_nodes + i;
        record->first = 0;
        record->last = i;
        record->bytes = rfx_align_up(rfx_global_pool_state_bytes(&graph->nodes[i]));
        record->offset = 0;
    }
    return n;
}

int rfx_plan_list_records(struct rfx_plan_context *context, int split,
                          const struct rfx_axis_tiling *rows, const struct rfx_axis_tiling *cols) {
    const struct rfx_graph *graph = context->graph;
    int n = 0;
    for (int i = 0; i < graph->n_nodes; i++) {
        if (rfx_node_is_constant(&graph->nodes[i])) continue;
        struct rfx_record *record = &context->records[n++];
        record->id = i;
        int64_t elems = size_record(context, split, rows, cols, record);
        record->bytes = rfx_align_up((size_t)elems * sizeof(float));
        record->offset = 0;
    }
    return list_pool_states(context, split, n);
}

int64_t rfx_plan_window_rows(const struct rfx_plan_context *context, int split,
                             const struct rfx_axis_tiling *rows,
                             const struct rfx_axis_tiling *cols) {
    if (context->request->source.random_access) return 0;
    int64_t h = context->request->source.h;
    if (split < 0 || context->stream != NULL) return rfx_min_i64(READ_BAND_ROWS, h);
    int input = context->graph->input;
    int64_t need = cols->n > 1 ? rows->extents[input].max
                               : rfx_max_i64(rows->overlap.max_overlap, READ_BAND_ROWS);
    return rfx_min_i64(need, h);
}

size_t rfx_plan_fixed_bytes(const struct rfx_plan_context *context, int64_t window_rows) {
    const struct rfx_source_traits *source = &context->request->source;
    return context->weights_bytes + context->scratch_bytes + source->fixed_bytes +
           source->window_row_bytes * (size_t)window_rows +
           rfx_plan_reserve_bytes(context->request->threads);
}

static void set_stages(struct rfx_plan *plan, int split, int64_t tiles_y, int64_t tiles_x,
                       const struct rfx_stream_choice *stream) {
    int n = plan->graph->n_nodes;
    struct rfx_stage head = {RFX_STAGE_TILED, 0, split + 1, tiles_y, tiles_x, 0};
    struct rfx_stage tail = {RFX_STAGE_WHOLE, split + 1, n, 1, 1, 0};
    if (stream != NULL) {
        head.mode = RFX_STAGE_STREAMED;
        head.tiles_y = head.tiles_x = 1;
        head.band_rows = stream->band_rows;
    }
    plan->split = split;
    plan->n_stages = 0;
    if (split >= 0) plan->stages[plan->n_stages++] = head;
    if (split + 1 < n) plan->stages[plan->n_stages++] = tail;
}

static void place(struct rfx_plan_context *context, struct rfx_plan *plan, int n_records) {
    struct rfx_record *records = context->records;
    int n_steps = context->graph->n_nodes + 1;
    plan->lower_bound_bytes = rfx_place_lower_bound(records, n_records, n_steps, context->live);
    plan->bytes.arena = rfx_place_by_size(records, n_records);
    assert(rfx_place_is_valid(records, n_records, plan->bytes.arena));
    for (int i = 0; i < n_records; i++) {
        struct rfx_buffer buffer = {records[i].offset, records[i].bytes, records[i].first,
                                    records[i].last, 0};
        int id = records[i].id;
        int n_nodes = context->graph->n_nodes;
        const struct rfx_stream_choice *stream = context->stream;
        if (stream != NULL && (id < plan->split || (id == plan->split && stream->ends_in_pools)))
            buffer.ring_rows = stream->rings[id].rows;
        if (id >= n_nodes)
            plan->pool_states[id - n_nodes] = buffer;
        else
            plan->buffers[id] = buffer;
    }
}

enum rfx_status rfx_plan_build(struct rfx_plan_context *context, int split,
                               const struct rfx_axis_tiling *rows,
                               const struct rfx_axis_tiling *cols, struct rfx_plan **out,
                               struct rfx_error *err) {
    struct rfx_memory *mem = context->graph->mem;
    size_t n = (size_t)context->graph->n_nodes;
    struct rfx_plan *plan = rfx_memory_calloc(mem, 1, sizeof *plan);
    struct rfx_buffer *buffers = rfx_memory_calloc(mem, 2 * n, sizeof *buffers);
    if (plan == NULL || buffers == NULL) {
        rfx_memory_release(mem, plan);
        rfx_memory_release(mem, buffers);
        return rfx_memory_fail(mem, "plan", n * sizeof *buffers, err);
    }
    plan->mem = mem;
    plan->graph = context->graph;
    plan->threads = context->request->threads;
    plan->buffers = buffers;
    plan->pool_states = buffers + n;
    set_stages(plan, split, rows->n, cols->n, context->stream);
    place(context, plan, rfx_plan_list_records(context, split, rows, cols));
    plan->window_rows = rfx_plan_window_rows(context, split, rows, cols);
    plan->bytes.weights = context->weights_bytes;
    plan->bytes.scratch = context->scratch_bytes;
    plan->bytes.source = context->request->source.fixed_bytes +
                         context->request->source.window_row_bytes * (size_t)plan->window_rows;
    plan->bytes.reserve = rfx_plan_reserve_bytes(plan->threads);
    plan->peak_bytes = plan->bytes.arena + rfx_plan_fixed_bytes(context, plan->window_rows);
    plan->macs = rfx_plan_count_macs(context, split, rows, cols);
    plan->macs_untiled = context->macs_untiled;
    *out = plan;
    return RFX_OK;
}

void rfx_plan_free(struct rfx_plan *plan) {
    if (plan == NULL) return;
    rfx_memory_release(plan->mem, plan->buffers);
    rfx_memory_release(plan->mem, plan);
}

void rfx_plan_describe(const struct rfx_plan *plan, char *text, size_t size) {
    if (plan->split < 0) {
        (void)snprintf(text, size, "untiled");
        return;
    }
    const struct rfx_stage *head = &plan->stages[0];
    const struct rfx_node *node = &plan->graph->nodes[plan->split];
    const char *name = node->alias != NULL ? node->alias : node->name;
    const char *tail = plan->n_stages == 2 ? ", tail whole" : "";
    if (head->mode == RFX_STAGE_STREAMED)
        (void)snprintf(text, size, "head to %s streamed, %lld image rows a step%s", name,
                       (long long)head->band_rows, tail);
    else
        (void)snprintf(text, size, "head to %s in %lldx%lld tiles%s", name,
                       (long long)head->tiles_y, (long long)head->tiles_x, tail);
}
