/* The iterator over a plan's steps. Every stage first loads its packed constants (when they go by
 * stage) and begins its pools, then goes through its body, then finishes its pools. The body of a
 * streamed stage goes by streaming.h, strip by strip; of a tiled one tile by tile, rows of tiles
 * outermost, and inside a tile node by node; of a whole one node by node, or rows of a node after
 * each other. */
#include "tiler/schedule.h"

#include "layers/checked.h"
#include "layers/op.h"
#include "tiler/stage.h"
#include "tiler/streaming.h"

enum phase { PHASE_LOAD, PHASE_REDUCE_BEGIN, PHASE_BODY, PHASE_REDUCE_FINISH };

struct rfx_schedule {
    const struct rfx_plan *plan;
    struct rfx_axis_region *rows, *cols; /* of the current tile or strip, per node */
    int stage;
    enum phase phase;
    int node;               /* next node to look at */
    int64_t tile_y, tile_x; /* tile_x: also the strip */
    bool tile_ready;        /* rows and cols describe the tile or strip */
    bool restart;           /* no image row of this stage or strip has been asked for */
    bool loaded;            /* whole stages: this node's constants are */
    int64_t row_step;       /* whole stages, row by row: the next step of this node */
    int64_t unit, n_units;
    int64_t stage_unit; /* units before this stage */
    struct rfx_stream stream;
    int64_t *done;       /* of the stream, per node */
    int64_t *fresh_from; /* per node: rows from here on lie in its fresh buffer */
    int n_fresh;         /* nodes whose rows of this step have not been copied yet */
    int *fresh;          /* which */
    int copied;          /* node of the copy just handed out; -1: none */
    bool held;           /* a step of the stream waits for copies */
    int held_node;
    struct rfx_range held_rows;
    int64_t held_step;
    struct rfx_rect emit; /* part of the node last computed that is to be handed out */
    int emit_node;        /* -1: none */
    int viewed_stage;     /* of the last step */
};

static int64_t image_rows(const struct rfx_graph *graph) {
    return graph->input < 0 ? 1 : graph->nodes[graph->input].out.h;
}

static int64_t count_stage_units(const struct rfx_plan *plan, const struct rfx_stage *stage) {
    if (stage->mode == RFX_STAGE_TILED) return stage->tiles_y * stage->tiles_x;
    if (stage->mode == RFX_STAGE_STREAMED) return stage->tiles_x * image_rows(plan->graph);
    return stage->last - stage->first + 1;
}

static const struct rfx_stage *stage_of(const struct rfx_schedule *schedule) {
    return &schedule->plan->stages[schedule->stage];
}

static bool is_computed(const struct rfx_stage *stage, int node) {
    return rfx_place_is_computed(stage->places[node]);
}

static void enter_stage(struct rfx_schedule *schedule, int stage) {
    schedule->stage = stage;
    schedule->phase = PHASE_LOAD;
    schedule->tile_y = schedule->tile_x = 0;
    schedule->tile_ready = false;
    schedule->restart = true;
    schedule->loaded = false;
    schedule->row_step = 0;
    schedule->emit_node = -1;
    if (stage < schedule->plan->n_stages) schedule->node = schedule->plan->stages[stage].first;
    if (stage > 0)
        schedule->stage_unit +=
            count_stage_units(schedule->plan, &schedule->plan->stages[stage - 1]);
    schedule->unit = schedule->stage_unit;
}

void rfx_schedule_rewind(struct rfx_schedule *schedule) {
    schedule->stage_unit = 0;
    enter_stage(schedule, 0);
    schedule->viewed_stage = 0;
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
    schedule->fresh_from = rfx_memory_calloc(mem, n, sizeof *schedule->fresh_from);
    schedule->fresh = rfx_memory_calloc(mem, n, sizeof *schedule->fresh);
    if (schedule->rows == NULL || schedule->cols == NULL || schedule->done == NULL ||
        schedule->fresh_from == NULL || schedule->fresh == NULL) {
        rfx_schedule_free(schedule);
        return rfx_memory_fail(mem, "schedule regions", n * sizeof *schedule->rows, err);
    }
    for (int s = 0; s < plan->n_stages; s++)
        schedule->n_units += count_stage_units(plan, &plan->stages[s]);
    rfx_schedule_rewind(schedule);
    *out = schedule;
    return RFX_OK;
}

void rfx_schedule_free(struct rfx_schedule *schedule) {
    if (schedule == NULL) return;
    rfx_memory_release(schedule->plan->mem, schedule->rows);
    rfx_memory_release(schedule->plan->mem, schedule->cols);
    rfx_memory_release(schedule->plan->mem, schedule->done);
    rfx_memory_release(schedule->plan->mem, schedule->fresh_from);
    rfx_memory_release(schedule->plan->mem, schedule->fresh);
    rfx_memory_release(schedule->plan->mem, schedule);
}

/* The next node of the stage for which `wanted` holds, from schedule->node on; -1 at its end. */
static int next_node(struct rfx_schedule *schedule,
                     bool (*wanted)(const struct rfx_stage *stage, int node)) {
    const struct rfx_stage *stage = stage_of(schedule);
    while (schedule->node <= stage->last) {
        int node = schedule->node++;
        if (wanted(stage, node)) return node;
    }
    schedule->node = stage->first;
    return -1;
}

static bool has_packed(const struct rfx_stage *stage, int node) {
    return is_computed(stage, node) && stage->nodes[node].packed.bytes != 0;
}

static bool is_reduced(const struct rfx_stage *stage, int node) {
    return stage->places[node] == RFX_PLACE_REDUCED;
}

/* One step for each wanted node, then the next phase. */
static bool next_in_phase(struct rfx_schedule *schedule, enum rfx_step_kind kind,
                          bool (*wanted)(const struct rfx_stage *stage, int node),
                          struct rfx_step *step) {
    int node = next_node(schedule, wanted);
    if (node >= 0) {
        step->kind = kind;
        step->node = node;
        step->rect = rfx_rect_full(1, 1);
        return true;
    }
    schedule->phase++;
    return false;
}

/* Turns a rectangle into the step for a node: a pool takes it from its input. */
static bool make_step(struct rfx_schedule *schedule, int node, struct rfx_rect rect,
                      struct rfx_step *step) {
    const struct rfx_plan *plan = schedule->plan;
    step->node = node;
    step->rect = rect;
    step->kind = is_reduced(stage_of(schedule), node) ? RFX_STEP_REDUCE_ADD : RFX_STEP_RUN;
    if (rfx_rect_is_empty(rect)) return false;
    if (node == plan->graph->input) {
        step->restart = schedule->restart;
        schedule->restart = false;
    }
    return true;
}

static void begin_stream(struct rfx_schedule *schedule, const struct rfx_stage *stage) {
    const struct rfx_graph *graph = schedule->plan->graph;
    rfx_stream_begin(&schedule->stream, graph, stage->places, stage->band_rows, schedule->done);
    for (int i = 0; i < graph->n_nodes; i++) schedule->fresh_from[i] = 0;
    schedule->n_fresh = 0;
    schedule->copied = -1;
    schedule->held = false;
}

static void enter_tile(struct rfx_schedule *schedule, const struct rfx_stage *stage) {
    const struct rfx_graph *graph = schedule->plan->graph;
    rfx_stage_regions(graph, stage->places, RFX_AXIS_COLS, stage->tiles_x, schedule->tile_x,
                      schedule->cols);
    if (stage->mode == RFX_STAGE_TILED)
        rfx_stage_regions(graph, stage->places, RFX_AXIS_ROWS, stage->tiles_y, schedule->tile_y,
                          schedule->rows);
    else
        begin_stream(schedule, stage);
    schedule->tile_ready = true;
}

/* The part of a target that the current tile or strip stands for. */
static struct rfx_rect own_rect(const struct rfx_schedule *schedule, int node) {
    const struct rfx_graph *graph = schedule->plan->graph;
    const struct rfx_stage *stage = stage_of(schedule);
    enum rfx_node_place place = stage->places[node];
    return rfx_rect_from_ranges(
        rfx_stage_target_range(graph, node, place, RFX_AXIS_ROWS, stage->tiles_y, schedule->tile_y),
        rfx_stage_target_range(graph, node, place, RFX_AXIS_COLS, stage->tiles_x,
                               schedule->tile_x));
}

/* Moves on to the next tile; false after the last one. */
static bool leave_tile(struct rfx_schedule *schedule, const struct rfx_stage *stage) {
    schedule->tile_ready = false;
    schedule->unit++;
    schedule->node = stage->first;
    if (++schedule->tile_x < stage->tiles_x) return true;
    schedule->tile_x = 0;
    if (++schedule->tile_y < stage->tiles_y) return true;
    schedule->tile_y = 0;
    return false;
}

static bool next_tiled(struct rfx_schedule *schedule, const struct rfx_stage *stage,
                       struct rfx_step *step) {
    if (!schedule->tile_ready) enter_tile(schedule, stage);
    if (schedule->node > stage->last) {
        if (!leave_tile(schedule, stage)) schedule->phase++;
        return false;
    }
    int node = schedule->node++;
    if (!is_computed(stage, node)) return false;
    if (is_reduced(stage, node)) return make_step(schedule, node, own_rect(schedule, node), step);
    return make_step(
        schedule, node,
        rfx_rect_from_ranges(schedule->rows[node].clamped, schedule->cols[node].clamped), step);
}

/* Rows of the current step of a node that is made row by row; false when there are none left. */
static bool step_rows(struct rfx_schedule *schedule, const struct rfx_stage_node *how, int64_t h,
                      struct rfx_range *rows) {
    int64_t steps = rfx_ceil_div(h, how->step_rows);
    int64_t index = how->upwards ? steps - 1 - schedule->row_step : schedule->row_step;
    rows->lo = index * how->step_rows;
    rows->hi = rfx_min_i64(rows->lo + how->step_rows, h);
    return ++schedule->row_step < steps;
}

static bool next_whole(struct rfx_schedule *schedule, const struct rfx_stage *stage,
                       struct rfx_step *step) {
    if (schedule->node > stage->last) {
        schedule->node = stage->first;
        schedule->phase++;
        return false;
    }
    int node = schedule->node;
    const struct rfx_stage_node *how = &stage->nodes[node];
    if (!schedule->loaded && has_packed(stage, node)) {
        schedule->loaded = true;
        step->kind = RFX_STEP_LOAD;
        step->node = node;
        step->rect = rfx_rect_full(1, 1);
        return true;
    }
    const struct rfx_tensor *out = &schedule->plan->graph->nodes[node].out;
    struct rfx_range rows = {0, out->h};
    bool more =
        is_computed(stage, node) && how->step_rows > 0 && step_rows(schedule, how, out->h, &rows);
    if (!more) {
        schedule->node++;
        schedule->unit++;
        schedule->row_step = 0;
        schedule->loaded = false;
    }
    if (!is_computed(stage, node)) return false;
    return make_step(schedule, node, rfx_rect_make(rows.lo, rows.hi, 0, out->w), step);
}

/* The columns of a node in this strip. One strip computes whole rows. */
static struct rfx_range strip_cols(const struct rfx_schedule *schedule,
                                   const struct rfx_stage *stage, int node) {
    struct rfx_range full = {0, schedule->plan->graph->nodes[node].out.w};
    return stage->tiles_x == 1 ? full : schedule->cols[node].clamped;
}

/* After a copy all rows of the node lie in its ring. */
static void end_copy(struct rfx_schedule *schedule) {
    if (schedule->copied >= 0)
        schedule->fresh_from[schedule->copied] = schedule->done[schedule->copied];
    schedule->copied = -1;
}

/* Copies of rows that outlive their step, for nodes whose last reader has had its turn before the
 * held step. */
static bool next_copy(struct rfx_schedule *schedule, const struct rfx_stage *stage,
                      struct rfx_step *step) {
    for (int f = 0; f < schedule->n_fresh; f++) {
        int node = schedule->fresh[f];
        bool same_step = schedule->stream.step == schedule->held_step;
        if (same_step && stage->nodes[node].last_reader >= schedule->held_node) continue;
        schedule->fresh[f] = schedule->fresh[--schedule->n_fresh];
        int64_t from = rfx_stream_keep_from(&schedule->stream, node);
        from = rfx_max_i64(from, schedule->fresh_from[node]);
        step->kind = RFX_STEP_KEEP;
        step->node = node;
        step->rect = rfx_rect_from_ranges((struct rfx_range){from, schedule->done[node]},
                                          strip_cols(schedule, stage, node));
        schedule->copied = node;
        if (!rfx_rect_is_empty(step->rect)) return true;
        end_copy(schedule);
        f = -1; /* the list has changed */
    }
    return false;
}

/* The next step of the stream, once the copies before it are made. */
static bool next_of_stream(struct rfx_schedule *schedule, const struct rfx_stage *stage,
                           struct rfx_step *step) {
    const struct rfx_graph *graph = schedule->plan->graph;
    int node = schedule->held_node;
    struct rfx_range rows = schedule->held_rows;
    schedule->held = false;
    if (stage->nodes[node].fresh.bytes != 0) {
        schedule->fresh_from[node] = rows.lo;
        schedule->fresh[schedule->n_fresh++] = node;
    }
    if (is_reduced(stage, node) || stage->places[node] == RFX_PLACE_EMITTED) {
        struct rfx_range own = rfx_stage_target_range(
            graph, node, stage->places[node], RFX_AXIS_COLS, stage->tiles_x, schedule->tile_x);
        struct rfx_rect rect = rfx_rect_from_ranges(rows, own);
        if (is_reduced(stage, node)) return make_step(schedule, node, rect, step);
        schedule->emit_node = node;
        schedule->emit = rect;
    }
    if (node == graph->input) schedule->unit += rfx_range_size(rows);
    return make_step(schedule, node, rfx_rect_from_ranges(rows, strip_cols(schedule, stage, node)),
                     step);
}

static bool next_streamed(struct rfx_schedule *schedule, const struct rfx_stage *stage,
                          struct rfx_step *step) {
    if (schedule->emit_node >= 0) {
        step->node = schedule->emit_node;
        step->rect = schedule->emit;
        step->kind = RFX_STEP_EMIT;
        schedule->emit_node = -1;
        return !rfx_rect_is_empty(step->rect);
    }
    if (!schedule->tile_ready) enter_tile(schedule, stage);
    end_copy(schedule);
    if (!schedule->held) {
        schedule->held_step = schedule->stream.step;
        if (!rfx_stream_next(&schedule->stream, &schedule->held_node, &schedule->held_rows)) {
            schedule->tile_ready = false;
            schedule->restart = true;
            if (++schedule->tile_x == stage->tiles_x) schedule->phase++;
            schedule->unit =
                schedule->stage_unit + schedule->tile_x * image_rows(schedule->plan->graph);
            return false;
        }
        schedule->held = true;
        schedule->done[schedule->held_node] = schedule->held_rows.lo; /* until its turn */
    }
    if (next_copy(schedule, stage, step)) return true;
    schedule->done[schedule->held_node] = schedule->held_rows.hi;
    return next_of_stream(schedule, stage, step);
}

static bool next_in_body(struct rfx_schedule *schedule, struct rfx_step *step) {
    const struct rfx_stage *stage = stage_of(schedule);
    if (stage->mode == RFX_STAGE_TILED) return next_tiled(schedule, stage, step);
    if (stage->mode == RFX_STAGE_STREAMED) return next_streamed(schedule, stage, step);
    return next_whole(schedule, stage, step);
}

static bool next_in_stage(struct rfx_schedule *schedule, struct rfx_step *step) {
    bool whole = stage_of(schedule)->mode == RFX_STAGE_WHOLE;
    switch (schedule->phase) {
        case PHASE_LOAD: /* a whole stage loads before each node */
            if (!whole) return next_in_phase(schedule, RFX_STEP_LOAD, has_packed, step);
            schedule->phase++;
            return false;
        case PHASE_REDUCE_BEGIN:
            return next_in_phase(schedule, RFX_STEP_REDUCE_BEGIN, is_reduced, step);
        case PHASE_BODY:
            return next_in_body(schedule, step);
        case PHASE_REDUCE_FINISH:
            break;
    }
    if (next_in_phase(schedule, RFX_STEP_REDUCE_FINISH, is_reduced, step)) return true;
    enter_stage(schedule, schedule->stage + 1);
    return false;
}

bool rfx_schedule_next(struct rfx_schedule *schedule, struct rfx_step *step) {
    while (schedule->stage < schedule->plan->n_stages) {
        step->stage = schedule->stage;
        step->restart = false;
        if (!next_in_stage(schedule, step)) continue;
        schedule->viewed_stage = step->stage;
        step->unit = rfx_min_i64(schedule->unit, schedule->n_units);
        step->n_units = schedule->n_units;
        return true;
    }
    return false;
}

struct rfx_part rfx_schedule_part(const struct rfx_schedule *schedule, int node) {
    const struct rfx_plan *plan = schedule->plan;
    const struct rfx_stage *stage = &plan->stages[schedule->viewed_stage];
    const struct rfx_stage_node *how = &stage->nodes[node];
    const struct rfx_node *n = &plan->graph->nodes[node];
    enum rfx_node_place place = stage->places[node];
    bool local = rfx_place_is_local(place);
    struct rfx_part part = {
        .rect = rfx_node_full_rect(n),
        .offset = rfx_plan_buffer(plan, schedule->viewed_stage, node)->offset,
    };
    part.by_caller = !local && plan->by_caller[node];
    if (!local || stage->mode == RFX_STAGE_WHOLE) return part;
    if (stage->mode == RFX_STAGE_TILED) {
        part.rect =
            rfx_rect_from_ranges(schedule->rows[node].clamped, schedule->cols[node].clamped);
        return part;
    }
    int64_t done = schedule->done[node];
    part.ring_rows = how->ring_rows;
    part.has_fresh = how->fresh.bytes != 0;
    part.fresh_y0 = part.has_fresh ? schedule->fresh_from[node] : done;
    part.fresh_offset = how->fresh.offset;
    struct rfx_range there = {rfx_max_i64(part.fresh_y0 - how->ring_rows, 0), done};
    if (!part.has_fresh) there.lo = rfx_max_i64(done - how->ring_rows, 0);
    part.rect = rfx_rect_from_ranges(there, strip_cols(schedule, stage, node));
    return part;
}
