/* The iterator over a plan's steps. A streamed stage goes by streaming.h, feeding the global pools
 * after it row by row. A tiled stage goes tile by tile, rows of tiles outermost; inside a tile,
 * node by node; then the whole stage node by node. */
#include "tiler/schedule.h"

#include "layers/checked.h"
#include "layers/op.h"
#include "rf_analysis/regions.h"
#include "tiler/streaming.h"
#include "tiler/tiling.h"

struct rfx_schedule {
    const struct rfx_plan *plan;
    struct rfx_axis_region *rows, *cols; /* of the current tile, per node */
    int stage;
    int64_t tile_y, tile_x;
    int node; /* next node to look at */
    int64_t unit, n_units;
    bool tile_ready; /* rows and cols describe (tile_y, tile_x) */
    struct rfx_stream stream;
    int64_t *done;        /* of the stream, per node */
    int pool;             /* next consumer of the streamed split to feed; 0: none waiting */
    struct rfx_range fed; /* rows of the split that the pools get */
};

static int64_t count_units(const struct rfx_plan *plan) {
    int64_t units = 0;
    for (int s = 0; s < plan->n_stages; s++) {
        const struct rfx_stage *stage = &plan->stages[s];
        if (stage->mode == RFX_STAGE_TILED)
            units += stage->tiles_y * stage->tiles_x;
        else if (stage->mode == RFX_STAGE_STREAMED)
            units += plan->graph->nodes[plan->graph->input].out.h;
        else
            units += stage->last - stage->first;
    }
    return units;
}

void rfx_schedule_rewind(struct rfx_schedule *schedule) {
    schedule->stage = 0;
    schedule->tile_y = schedule->tile_x = 0;
    schedule->node = schedule->plan->stages[0].first;
    schedule->unit = 0;
    schedule->tile_ready = false;
    schedule->pool = 0;
    const struct rfx_stage *head = &schedule->plan->stages[0];
    rfx_stream_begin(&schedule->stream, schedule->plan->graph, head->last - 1, head->band_rows,
                     schedule->done);
}

enum rfx_status rfx_schedule_create(const struct rfx_plan *plan, struct rfx_schedule **out,
                                    struct rfx_error *err) {
    struct rfx_memory *mem = plan->mem;
    size_t n = (size_t)plan->graph->n_nodes;
    struct rfx_schedule *schedule = rfx_memory_calloc(mem, 1, sizeof *schedule);
    if (schedule == NULL) return rfx_memory_fail(mem, "schedule", sizeof *schedule, err);
    schedule->plan = plan;
    schedule->rows = rfx_memory_calloc(mem, n, sizeof *schedule->rows);
    schedule->cols = rfx_memory_calloc(mem, n, sizeof *schedule->cols);
    schedule->done = rfx_memory_calloc(mem, n, sizeof *schedule->done);
    if (schedule->rows == NULL || schedule->cols == NULL || schedule->done == NULL) {
        rfx_schedule_free(schedule);
        return rfx_memory_fail(mem, "schedule regions", n * sizeof *schedule->rows, err);
    }
    schedule->n_units = count_units(plan);
    rfx_schedule_rewind(schedule);
    *out = schedule;
    return RFX_OK;
}

void rfx_schedule_free(struct rfx_schedule *schedule) {
    if (schedule == NULL) return;
    rfx_memory_release(schedule->plan->mem, schedule->rows);
    rfx_memory_release(schedule->plan->mem, schedule->cols);
    rfx_memory_release(schedule->plan->mem, schedule->done);
    rfx_memory_release(schedule->plan->mem, schedule);
}

static void enter_tile(struct rfx_schedule *schedule, const struct rfx_stage *stage) {
    const struct rfx_graph *graph = schedule->plan->graph;
    int split = stage->last - 1;
    const struct rfx_node *node = &graph->nodes[split];
    rfx_regions_backprop(graph, stage->first, split, RFX_AXIS_ROWS,
                         rfx_tile_range(node->out.h, stage->tiles_y, schedule->tile_y),
                         schedule->rows);
    rfx_regions_backprop(graph, stage->first, split, RFX_AXIS_COLS,
                         rfx_tile_range(node->out.w, stage->tiles_x, schedule->tile_x),
                         schedule->cols);
    schedule->tile_ready = true;
}

/* Moves on to the next tile, or to the next stage after the last one. */
static void leave_tile(struct rfx_schedule *schedule, const struct rfx_stage *stage) {
    schedule->tile_ready = false;
    schedule->unit++;
    schedule->node = stage->first;
    if (++schedule->tile_x < stage->tiles_x) return;
    schedule->tile_x = 0;
    if (++schedule->tile_y < stage->tiles_y) return;
    schedule->tile_y = 0;
    schedule->stage++;
    schedule->node = stage->last;
}

static struct rfx_rect tile_rect(const struct rfx_schedule *schedule, int node) {
    return rfx_rect_from_ranges(schedule->rows[node].clamped, schedule->cols[node].clamped);
}

static bool next_tiled(struct rfx_schedule *schedule, const struct rfx_stage *stage,
                       struct rfx_step *step) {
    if (schedule->node == stage->last) {
        leave_tile(schedule, stage);
        return false;
    }
    if (!schedule->tile_ready) enter_tile(schedule, stage);
    int node = schedule->node++;
    step->node = node;
    step->rect = tile_rect(schedule, node);
    return !rfx_node_is_constant(&schedule->plan->graph->nodes[node]) &&
           !rfx_rect_is_empty(step->rect);
}

static bool next_whole(struct rfx_schedule *schedule, const struct rfx_stage *stage,
                       struct rfx_step *step) {
    if (schedule->node == stage->last) {
        schedule->stage++;
        return false;
    }
    int node = schedule->node++;
    schedule->unit++;
    step->node = node;
    step->rect = rfx_node_full_rect(&schedule->plan->graph->nodes[node]);
    if (schedule->plan->pool_states[node].bytes != 0) step->kind = RFX_STEP_POOL_FINISH;
    return !rfx_node_is_constant(&schedule->plan->graph->nodes[node]);
}

/* Feeds the rows just made of the split to the pools after it, one pool at a time. */
static bool next_pool(struct rfx_schedule *schedule, struct rfx_step *step) {
    const struct rfx_plan *plan = schedule->plan;
    int64_t w = plan->graph->nodes[plan->split].out.w;
    while (schedule->pool != 0) {
        int node = schedule->pool++;
        if (schedule->pool == plan->graph->n_nodes) schedule->pool = 0;
        if (plan->pool_states[node].bytes == 0) continue;
        step->node = node;
        step->kind = RFX_STEP_POOL_ROWS;
        step->rect = rfx_rect_make(schedule->fed.lo, schedule->fed.hi, 0, w);
        return true;
    }
    return false;
}

static bool next_streamed(struct rfx_schedule *schedule, const struct rfx_stage *stage,
                          struct rfx_step *step) {
    const struct rfx_graph *graph = schedule->plan->graph;
    if (next_pool(schedule, step)) return true;
    struct rfx_range rows;
    if (!rfx_stream_next(&schedule->stream, &step->node, &rows)) {
        schedule->stage++;
        schedule->node = stage->last;
        schedule->unit = graph->nodes[graph->input].out.h;
        return false;
    }
    if (step->node == graph->input) schedule->unit = rows.lo;
    step->rect = rfx_rect_make(rows.lo, rows.hi, 0, graph->nodes[step->node].out.w);
    if (step->node == stage->last - 1 && stage->last < graph->n_nodes) {
        schedule->fed = rows;
        schedule->pool = stage->last;
    }
    return true;
}

bool rfx_schedule_next(struct rfx_schedule *schedule, struct rfx_step *step) {
    while (schedule->stage < schedule->plan->n_stages) {
        const struct rfx_stage *stage = &schedule->plan->stages[schedule->stage];
        step->kind = RFX_STEP_RUN;
        bool found = stage->mode == RFX_STAGE_TILED      ? next_tiled(schedule, stage, step)
                     : stage->mode == RFX_STAGE_STREAMED ? next_streamed(schedule, stage, step)
                                                         : next_whole(schedule, stage, step);
        if (!found) continue;
        step->unit = schedule->unit;
        step->n_units = schedule->n_units;
        return true;
    }
    return false;
}

struct rfx_rect rfx_schedule_view_rect(const struct rfx_schedule *schedule, int node) {
    const struct rfx_plan *plan = schedule->plan;
    const struct rfx_node *n = &plan->graph->nodes[node];
    const struct rfx_stage *stage = &plan->stages[0];
    int64_t ring_rows = plan->buffers[node].ring_rows;
    if (ring_rows != 0) {
        int64_t done = schedule->done[node];
        return rfx_rect_make(rfx_max_i64(done - ring_rows, 0), done, 0, n->out.w);
    }
    bool in_tile = stage->mode == RFX_STAGE_TILED && node < stage->last - 1;
    if (!in_tile || rfx_node_is_constant(n)) return rfx_node_full_rect(n);
    return tile_rect(schedule, node);
}
