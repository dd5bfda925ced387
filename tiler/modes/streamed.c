/* Streamed mode: bands of image rows pass through all nodes. Rows that later rows still need wait
 * in ring buffers.
 *
 * streaming.h decides which rows are computed. With several column strips, the stream runs once per
 * strip, each time from the image's first row. Staging: the new rows of a step lie in a staging
 * buffer that all nodes share, some over the rows of another node. Rows that outlive the step are
 * copied to the node's ring buffer before the node's next turn. */
#include <stdio.h>

#include "layers/core/checked.h"
#include "tiler/modes/candidate_template.h"
#include "tiler/modes/modes.h"
#include "tiler/modes/stream_cache.h"
#include "tiler/modes/stream_slides.h"
#include "tiler/modes/streaming.h"
#include "tiler/plan/stage.h"

#define N_BANDS 8
#define N_STRIPS 11
static const int64_t bands[N_BANDS] = {256, 128, 64, 32, 16, 8, 4, 2}; /* image rows per step */
/* Band heights for two streams. Three are enough, because there are many pairs of cuts. */
static const int64_t pair_bands[] = {64, 16, 4};
/* Strip counts for spilled maps. Few strips are enough: few rows are read twice, and each row is
 * long. */
static const int64_t spill_strips[] = {1, 2, 4, 8, 16};
static const int64_t strips[N_STRIPS] = {2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 48};

struct state {
    int64_t strip;
    bool ready; /* the strip has begun */
    struct rfx_stream stream;
    struct rfx_axis_region *cols; /* columns of the strip, n_nodes */
    int64_t *done;                /* of the stream, n_nodes */
    int64_t *staged_from;         /* n_nodes: rows from here on lie in the staging buffer */
    int64_t *shift; /* n_nodes: a row's place in the staging buffer, minus its number */
    int64_t *taken; /* n_nodes: step of the last turn */
    int *uncopied;  /* nodes whose new rows of this step must still be copied */
    int n_uncopied;
    int copied;           /* node of the copy just handed out; -1: none */
    int emit_node;        /* node whose new rows are to be handed out or spilled; -1: none */
    struct rfx_rect emit; /* its rectangle */
};

static int64_t image_rows(const struct rfx_graph *graph) {
    return graph->input < 0 ? 1 : rfx_max_i64(1, rfx_rect_rows(graph->nodes[graph->input].wanted));
}

static enum rfx_status check(const struct rfx_stage_spec *spec, struct rfx_error *err) {
    if (spec->band_rows >= 1) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                    "a streamed stage needs 'band_rows', 1 or more");
}

static void measure(const struct rfx_mode_measure *m, struct rfx_node_rows *rows,
                    int64_t *overlap_rows) {
    rfx_stream_measure(m->graph, m->places, m->spec->band_rows, m->done, rows);
    *overlap_rows = 0;
}

static bool measure_cached(void *cache, const struct rfx_mode_measure *m,
                           struct rfx_node_rows *rows, int64_t *overlap_rows) {
    *overlap_rows = 0;
    return rfx_stream_cache_rows(cache, m, rows);
}

static void sweep_rows(const struct rfx_mode_sweep *sweep, rfx_rows_adder *add, void *user) {
    rfx_stream_sweep(sweep->graph, sweep->stage->places, sweep->stage->spec.band_rows, sweep->done,
                     add, user);
}

/* Returns whether the map of `after` may be written over the map of `before`, and at which
 * distance, *down. Nodes between the two maps have read everything that they need for a step's rows
 * before those rows are written. But if `after` reads `before` itself, it reads while it writes,
 * from its first new row on. With several strips a map is read again from its first row, so its
 * memory cannot be overwritten. */
static bool slide(const struct rfx_graph *graph, const struct rfx_stage_shape *shape, int before,
                  int after, int64_t *scratch, int64_t *lag, size_t *down) {
    const struct rfx_node *node = &graph->nodes[after];
    if (!shape->spec.row_by_row || shape->spec.tiles_x > 1) return false;
    if (!rfx_stream_reads_for(graph, shape, before, after, scratch)) return false;
    if (*lag == INT64_MAX) *lag = rfx_stream_lag(graph, before, after, scratch);
    int64_t rows = rfx_stream_reads(graph, before, after) ? shape->rows[after].per_step : 0;
    int64_t new_px = rows * rfx_rect_cols(node->wanted);
    int64_t least = *lag + (int64_t)rfx_tensor_pixel_bytes(&node->out, new_px);
    *down = rfx_align_up((size_t)rfx_max_i64(0, least)) + RFX_RED_ZONE_BYTES;
    return *down < rfx_node_roi_bytes(node); /* else the two maps would share no bytes */
}

static bool frees(const struct rfx_graph *graph, const struct rfx_stage_shape *shape, int before,
                  int after, int64_t *scratch, int64_t *lag) {
    if (!rfx_stream_reads_for(graph, shape, before, after, scratch)) return false;
    if (*lag == INT64_MAX) *lag = rfx_stream_lag(graph, before, after, scratch);
    return *lag <= 0 && rfx_stream_ends_with(graph, before, after, scratch);
}

static int64_t units(const struct rfx_plan *plan, const struct rfx_stage *stage) {
    return stage->spec.tiles_x * image_rows(plan->graph);
}

static size_t walk_bytes(const struct rfx_graph *graph) {
    size_t per_node = sizeof(struct rfx_axis_region) + 4 * sizeof(int64_t) + sizeof(int);
    return sizeof(struct state) + (size_t)graph->n_nodes * per_node;
}

static void enter(struct rfx_walk *walk) {
    struct state *s = walk->state;
    int n = walk->plan->graph->n_nodes;
    *s = (struct state){.copied = -1, .emit_node = -1};
    s->cols = (struct rfx_axis_region *)(void *)(s + 1);
    s->done = (int64_t *)(void *)(s->cols + n);
    s->staged_from = s->done + n;
    s->shift = s->staged_from + n;
    s->taken = s->shift + n;
    s->uncopied = (int *)(void *)(s->taken + n);
}

static void enter_strip(struct rfx_walk *walk) {
    struct state *s = walk->state;
    const struct rfx_graph *graph = walk->plan->graph;
    const struct rfx_stage *stage = walk->stage;
    rfx_stage_regions(graph, stage->places, RFX_AXIS_COLS, stage->spec.tiles_x, s->strip, s->cols);
    rfx_stream_begin(&s->stream, graph, stage->places, stage->spec.band_rows, s->done);
    for (int i = 0; i < graph->n_nodes; i++) s->staged_from[i] = s->shift[i] = s->taken[i] = 0;
    s->n_uncopied = 0;
    s->copied = -1;
    s->ready = true;
}

/* Returns the columns of a node in this strip; a single strip computes full rows. */
static struct rfx_range strip_cols(const struct rfx_walk *walk, int node) {
    const struct state *s = walk->state;
    struct rfx_range all = rfx_rect_col_range(walk->plan->graph->nodes[node].wanted);
    return walk->stage->spec.tiles_x == 1 ? all : s->cols[node].clamped;
}

/* Ends a copy: afterwards all rows of the node lie in its ring buffer. */
static void end_copy(struct state *s) {
    if (s->copied >= 0) s->staged_from[s->copied] = s->done[s->copied];
    s->copied = -1;
}

/* Fills the step that copies rows which outlive their step. Takes a node whose last reader has had
 * its turn before `turn`, the stream's next turn. Returns false if there is no such node. */
static bool next_copy(struct rfx_walk *walk, const struct rfx_stream_turn *turn,
                      struct rfx_step *step) {
    struct state *s = walk->state;
    for (int f = 0; f < s->n_uncopied; f++) {
        int node = s->uncopied[f];
        bool same_step = turn->step == s->stream.step;
        int last_reader = walk->stage->nodes[node].last_reader;
        if (same_step && last_reader >= turn->node) continue;
        s->uncopied[f] = s->uncopied[--s->n_uncopied];
        struct rfx_range rows = {
            rfx_max_i64(rfx_stream_keep_from(&s->stream, node, last_reader), s->staged_from[node]),
            s->done[node]};
        step->kind = RFX_STEP_KEEP;
        step->node = node;
        step->rect = rfx_rect_from_ranges(rows, strip_cols(walk, node));
        s->copied = node;
        if (!rfx_rect_is_empty(step->rect)) return true;
        end_copy(s);
        f = -1; /* the list has changed: start again */
    }
    return false;
}

/* Chooses where the rows of a turn lie in the staging buffer. If the plan says so, they lie row by
 * row over the new rows that another node computed in this step. */
static void place_staging(struct state *s, const struct rfx_stage_node *how,
                          const struct rfx_stream_turn *turn) {
    int i = turn->node;
    bool over = how->over >= 0 && s->taken[how->over] == turn->step;
    s->shift[i] = over ? s->shift[how->over] : how->lead - turn->rows.lo;
    s->taken[i] = turn->step;
    s->staged_from[i] = turn->rows.lo;
    if (how->ring_rows > 0) s->uncopied[s->n_uncopied++] = i;
}

/* Takes the stream's next turn and fills its step. All copies before it have been made. */
static void take_turn(struct rfx_walk *walk, const struct rfx_stream_turn *turn,
                      struct rfx_step *step) {
    struct state *s = walk->state;
    const struct rfx_graph *graph = walk->plan->graph;
    const struct rfx_stage *stage = walk->stage;
    enum rfx_node_place place = stage->places[turn->node];
    struct rfx_rect rect = rfx_rect_from_ranges(turn->rows, strip_cols(walk, turn->node));
    rfx_stream_commit(&s->stream, turn);
    if (stage->nodes[turn->node].staging.bytes != 0)
        place_staging(s, &stage->nodes[turn->node], turn);
    bool emitted = place == RFX_PLACE_EMITTED || place == RFX_PLACE_SPILLED;
    if (place == RFX_PLACE_REDUCED || emitted) {
        struct rfx_range own = rfx_stage_target_range(graph, turn->node, place, RFX_AXIS_COLS,
                                                      stage->spec.tiles_x, s->strip);
        struct rfx_rect mine = rfx_rect_from_ranges(turn->rows, own);
        if (place == RFX_PLACE_REDUCED) {
            rect = mine;
        } else {
            s->emit_node = turn->node;
            s->emit = mine;
        }
    }
    if (turn->node == graph->input) {
        walk->unit += rfx_range_size(turn->rows);
    } else if (turn->node == stage->first &&
               place == RFX_PLACE_FETCHED) { /* the stage does not read the image */
        struct rfx_range all = rfx_rect_row_range(graph->nodes[turn->node].wanted);
        walk->unit = s->strip * image_rows(graph) +
                     (turn->rows.hi - all.lo) * image_rows(graph) / rfx_range_size(all);
    }
    rfx_walk_compute(walk, turn->node, rect, step);
}

static bool next(struct rfx_walk *walk, struct rfx_step *step) {
    struct state *s = walk->state;
    struct rfx_stream_turn turn;
    if (s->emit_node >= 0) {
        bool spilled = walk->stage->places[s->emit_node] == RFX_PLACE_SPILLED;
        step->kind = spilled ? RFX_STEP_SPILL : RFX_STEP_EMIT;
        step->node = s->emit_node;
        step->rect = s->emit;
        s->emit_node = -1;
        return true;
    }
    if (s->ready) end_copy(s);
    for (;;) {
        if (s->strip == walk->stage->spec.tiles_x) return false;
        if (!s->ready) enter_strip(walk);
        if (rfx_stream_peek(&s->stream, &turn)) break;
        s->ready = false;
        walk->restart = true;
        walk->unit = ++s->strip * image_rows(walk->plan->graph);
    }
    if (!next_copy(walk, &turn, step)) take_turn(walk, &turn, step);
    return true;
}

static void resident_region(const struct rfx_walk *walk, int node,
                            struct rfx_resident_region *region) {
    const struct state *s = walk->state;
    const struct rfx_stage_node *how = &walk->stage->nodes[node];
    int64_t done = s->done[node];
    region->ring_rows = how->ring_rows;
    region->has_staging = how->staging.bytes != 0;
    region->staging_y0 = region->has_staging ? s->staged_from[node] : done;
    struct rfx_range there = {rfx_max_i64(region->staging_y0 - how->ring_rows, 0), done};
    region->rect = rfx_rect_from_ranges(there, strip_cols(walk, node));
    const struct rfx_tensor *out = &walk->plan->graph->nodes[node].out;
    int64_t before =
        region->staging_y0 + s->shift[node]; /* rows of the staging buffer before the region */
    size_t row_bytes = rfx_tensor_pixel_bytes(out, rfx_rect_cols(region->rect));
    region->staging_offset = how->staging.offset + (size_t)before * row_bytes;
}

static int describe(const struct rfx_stage_spec *spec, const char *to, bool alone, char *text,
                    size_t size) {
    char in_strips[48] = "";
    (void)alone;
    if (spec->tiles_x > 1)
        (void)snprintf(in_strips, sizeof in_strips, " in %lld strips", (long long)spec->tiles_x);
    return snprintf(text, size, "to %s streamed%s, %lld image rows a step%s%s", to, in_strips,
                    (long long)spec->band_rows, spec->staging ? ", tight" : "",
                    spec->row_by_row ? ", over dead rows" : "");
}

#define ALL_BANDS .bands = bands, .n_bands = N_BANDS, .kind_in_tiles = RFX_PLAN_STRIPS
#define ALL_STRIPS .tiles = RFX_TILES_ACROSS, .across = strips, .n_across = N_STRIPS
static const struct rfx_candidate_template templates[] = {
    {.phase = RFX_PHASE_EXACT,
     .kind = RFX_PLAN_STREAMED,
     .cuts = RFX_CUTS_CHAIN,
     .tiles = RFX_TILES_ONE,
     .when_asked = true,
     ALL_BANDS},
    {.phase = RFX_PHASE_EXACT,
     .kind = RFX_PLAN_STREAMED,
     .cuts = RFX_CUTS_FEW,
     .tiles = RFX_TILES_ONE,
     .when_asked = true,
     ALL_BANDS},
    {.phase = RFX_PHASE_TWO_PARTS,
     .kind = RFX_PLAN_TWO_STREAMS,
     .kind_in_tiles = RFX_PLAN_STRIPS,
     .cuts = RFX_CUTS_PAIRS,
     .tiles = RFX_TILES_ONE,
     .bands = pair_bands,
     .n_bands = sizeof pair_bands / sizeof pair_bands[0]},
    {.phase = RFX_PHASE_TWO_PARTS,
     .kind = RFX_PLAN_SPILLED,
     .cuts = RFX_CUTS_SPILLED,
     .tiles = RFX_TILES_ACROSS,
     .when_asked = true,
     .across = spill_strips,
     .n_across = sizeof spill_strips / sizeof spill_strips[0],
     .bands = bands,
     .n_bands = N_BANDS,
     .kind_in_tiles = RFX_PLAN_SPILLED},
    {.phase = RFX_PHASE_RECOMPUTE,
     .kind = RFX_PLAN_STREAMED,
     .cuts = RFX_CUTS_CHAIN,
     ALL_STRIPS,
     ALL_BANDS},
    {.phase = RFX_PHASE_RECOMPUTE,
     .kind = RFX_PLAN_STREAMED,
     .cuts = RFX_CUTS_FEW,
     ALL_STRIPS,
     ALL_BANDS},
    {.phase = RFX_PHASE_RECOMPUTE,
     .kind = RFX_PLAN_PASSES,
     .cuts = RFX_CUTS_PASSES,
     .tiles = RFX_TILES_ONE,
     ALL_BANDS},
    {.phase = RFX_PHASE_RECOMPUTE,
     .kind = RFX_PLAN_PASSES,
     .cuts = RFX_CUTS_WAIST,
     .tiles = RFX_TILES_ONE,
     ALL_BANDS},
};

const struct rfx_mode rfx_mode_streamed = {
    .name = "streamed",
    .a_mode = "a streamed stage",
    .local = true,
    .emits = true,
    .rings = true,
    .knows = RFX_KNOWS_TILES_X | RFX_KNOWS_BANDS | RFX_KNOWS_STAGING | RFX_KNOWS_ROW_BY_ROW,
    .take_over = RFX_TAKE_NEVER,
    .templates = templates,
    .n_templates = sizeof templates / sizeof templates[0],
    .check = check,
    .measure = measure,
    .cache_bytes = rfx_stream_cache_bytes,
    .measure_cached = measure_cached,
    .sweep_rows = sweep_rows,
    .slide = slide,
    .frees = frees,
    .units = units,
    .walk_bytes = walk_bytes,
    .enter = enter,
    .next = next,
    .resident_region = resident_region,
    .describe = describe,
};
