/* Makes a plan from a candidate's stages: allocates it, counts spilled bytes and MACs, sizes the
 * window of image rows, adds up the breakdown of the peak, places the buffers and writes the plan's
 * text. */
#include <stdio.h>
#include <string.h>

#include "layers/core/checked.h"
#include "layers/core/printable.h"
#include "layers/graph/op.h"
#include "tiler/arena/placement.h"
#include "tiler/arena/placement_slides.h"
#include "tiler/plan/mode.h"
#include "tiler/plan/plan.h"
#include "tiler/plan/plan_build.h"
#include "tiler/plan/splits.h"

void rfx_plan_free(struct rfx_plan *plan) {
    if (plan == NULL) return;
    for (int s = 0; plan->stages != NULL && s < plan->n_stages; s++) {
        rfx_memory_release(plan->mem, plan->stages[s].places);
        rfx_memory_release(plan->mem, plan->stages[s].nodes);
        rfx_memory_release(plan->mem, plan->stages[s].targets);
        rfx_memory_release(plan->mem, plan->stages[s].spilled);
        rfx_memory_release(plan->mem, plan->stages[s].forgotten);
    }
    rfx_memory_release(plan->mem, plan->stages);
    rfx_memory_release(plan->mem, plan->stored);
    rfx_memory_release(plan->mem, plan->resident);
    rfx_graph_free(plan->grouped);
    rfx_memory_release(plan->mem, plan);
}

static bool allocate_stage(struct rfx_memory *mem, size_t n, const struct rfx_stage_spec *spec,
                           struct rfx_stage *stage) {
    stage->places = rfx_memory_calloc(mem, n, sizeof *stage->places);
    stage->nodes = rfx_memory_calloc(mem, n, sizeof *stage->nodes);
    stage->targets = rfx_memory_calloc(mem, (size_t)spec->n_targets, sizeof *stage->targets);
    stage->spilled = rfx_memory_calloc(mem, (size_t)spec->n_targets, sizeof *stage->spilled);
    if (spec->n_forgotten > 0) {
        size_t n_forgotten = (size_t)spec->n_forgotten;
        stage->forgotten = rfx_memory_calloc(mem, n_forgotten, sizeof *stage->forgotten);
        if (stage->forgotten == NULL) return false;
        memcpy(stage->forgotten, spec->forgotten, n_forgotten * sizeof *stage->forgotten);
    }
    return stage->places != NULL && stage->nodes != NULL && stage->targets != NULL &&
           stage->spilled != NULL;
}

static enum rfx_status allocate_plan(const struct rfx_plan_context *context,
                                     const struct rfx_stage_shape *shapes, int n_stages,
                                     struct rfx_plan **out, struct rfx_error *err) {
    struct rfx_memory *mem = context->graph->mem;
    size_t n = (size_t)context->graph->n_nodes;
    struct rfx_plan *plan = rfx_memory_calloc(mem, 1, sizeof *plan);
    if (plan == NULL) return rfx_memory_fail(mem, "plan", sizeof *plan, err);
    plan->mem = mem;
    plan->graph = context->graph;
    plan->threads = context->request->threads;
    plan->n_stages = n_stages;
    plan->stored = rfx_memory_calloc(mem, n, sizeof *plan->stored);
    plan->stages = rfx_memory_calloc(mem, (size_t)n_stages, sizeof *plan->stages);
    plan->resident = rfx_memory_calloc(mem, n, sizeof *plan->resident);
    bool all = plan->stored != NULL && plan->stages != NULL && plan->resident != NULL;
    for (int s = 0; all && s < n_stages; s++)
        all = allocate_stage(mem, n, &shapes[s].spec, &plan->stages[s]);
    if (!all) {
        rfx_plan_free(plan);
        return rfx_memory_fail(mem, "plan", n * sizeof *plan->stages->nodes, err);
    }
    *out = plan;
    return RFX_OK;
}

/* Returns the bytes of a node that a stage reads from its file. Bytes in overlapping tiles count
 * each time they are read. */
static uint64_t fetched_bytes(const struct rfx_graph *graph, const struct rfx_stage_shape *shape,
                              int node) {
    const struct rfx_tensor *out = &graph->nodes[node].out;
    int64_t cols =
        shape->cols != NULL ? shape->cols[node].sum : rfx_rect_cols(graph->nodes[node].wanted);
    return rfx_tensor_pixel_bytes(out, shape->rows[node].computed * cols);
}

static bool is_fetched_after(const struct rfx_stage_shape *shapes, int n_stages, int stage,
                             int node) {
    for (int s = stage + 1; s < n_stages; s++)
        if (shapes[s].places[node] == RFX_PLACE_FETCHED) return true;
    return false;
}

static struct rfx_plan_spill count_spill(const struct rfx_graph *graph,
                                         const struct rfx_stage_shape *shapes, int n_stages) {
    struct rfx_plan_spill spill = {0};
    uint64_t held = 0;
    for (int s = 0; s < n_stages; s++) {
        uint64_t over = 0; /* bytes that no later stage needs */
        for (int i = 0; i < graph->n_nodes; i++) {
            enum rfx_node_place place = shapes[s].places[i];
            if (place != RFX_PLACE_SPILLED && place != RFX_PLACE_FETCHED) continue;
            uint64_t bytes = rfx_node_roi_bytes(&graph->nodes[i]);
            if (place == RFX_PLACE_SPILLED) {
                spill.written += bytes;
                held += bytes;
            }
            if (place == RFX_PLACE_FETCHED) spill.read += fetched_bytes(graph, &shapes[s], i);
            if (!is_fetched_after(shapes, n_stages, s, i)) over += bytes;
        }
        if (held > spill.most) spill.most = held;
        held -= over;
    }
    return spill;
}

int rfx_plan_spill_last(const struct rfx_plan *plan, int node) {
    int last = -1;
    for (int s = 0; s < plan->n_stages; s++) {
        enum rfx_node_place place = plan->stages[s].places[node];
        if (place == RFX_PLACE_SPILLED || place == RFX_PLACE_FETCHED) last = s;
    }
    return last;
}

static enum rfx_status allocate_tables(struct rfx_plan_context *c, struct rfx_error *err) {
    struct rfx_memory *mem = c->graph->mem;
    size_t n = (size_t)c->graph->n_nodes;
    size_t stages = (size_t)c->max_stages;
    size_t inputs = 1;
    for (int i = 0; i < c->graph->n_nodes; i++) inputs += (size_t)c->graph->nodes[i].n_in;
    /* a stage has at most three records per node, and a record ends once, in one slide */
    size_t records = 3 * n * stages;
    size_t slides = inputs * stages < records ? inputs * stages : records;
    c->packed_bytes = rfx_memory_calloc(mem, n, sizeof *c->packed_bytes);
    c->records = rfx_memory_calloc(mem, records, sizeof *c->records);
    c->slides = rfx_memory_calloc(mem, slides, sizeof *c->slides);
    c->upwards = rfx_memory_calloc(mem, slides, sizeof *c->upwards);
    c->measured = rfx_memory_calloc(mem, n, RFX_PLAN_MEASURED * sizeof *c->measured);
    c->resident = rfx_memory_calloc(mem, n, sizeof *c->resident);
    c->own_memo = rfx_memory_calloc(mem, RFX_PLACE_MEMO_ENTRIES, sizeof *c->memo);
    c->memo = c->own_memo;
    bool can_keep = rfx_place_saved_init(&c->kept, mem, (int)records) &&
                    rfx_plan_sliding_init(&c->sliding, c->graph);
    c->spans = rfx_memory_calloc(mem, 2 * stages, sizeof *c->spans);
    c->live = rfx_memory_calloc(mem, (n + 1) * stages + 1, sizeof *c->live);
    c->stored_record = rfx_memory_calloc(mem, (4 + stages) * n, sizeof *c->stored_record);
    c->staging = rfx_memory_calloc(mem, stages * n, sizeof *c->staging);
    if (c->packed_bytes == NULL || c->records == NULL || c->slides == NULL || c->upwards == NULL ||
        c->memo == NULL || !can_keep || c->spans == NULL || c->measured == NULL ||
        c->resident == NULL || c->live == NULL || c->stored_record == NULL || c->staging == NULL)
        return rfx_memory_fail(mem, "planner tables", records * sizeof *c->records, err);
    c->stored_last = c->stored_record + n;
    c->last_reader = c->stored_last + n;
    c->n_readers = c->last_reader + n;
    c->local_records = c->n_readers + n;
    return RFX_OK;
}

enum rfx_status rfx_plan_context_init(struct rfx_plan_context *context,
                                      const struct rfx_graph *graph,
                                      const struct rfx_plan_request *request, int max_stages,
                                      struct rfx_error *err) {
    struct rfx_plan_context c = {.graph = graph, .request = request, .max_stages = max_stages};
    enum rfx_status status = allocate_tables(&c, err);
    if (status != RFX_OK) {
        rfx_plan_context_release(&c);
        return status;
    }
    const struct rfx_graph *whole = graph; /* without groups, and not of a shard */
    while (whole->base != NULL) whole = whole->base;
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct rfx_node *node = &graph->nodes[i];
        c.macs_untiled += rfx_op_macs(whole, &whole->nodes[i], rfx_node_full_rect(node));
        c.packed_bytes[i] = rfx_align_up(rfx_op_packed_bytes(graph, node));
        c.weights_bytes += c.packed_bytes[i];
        size_t scratch = rfx_align_up(rfx_op_scratch_bytes(graph, node, request->threads));
        if (scratch > c.scratch_bytes) c.scratch_bytes = scratch;
    }
    c.process_bytes = rfx_plan_process_bytes(graph, request);
    *context = c;
    return RFX_OK;
}

void rfx_plan_context_release(struct rfx_plan_context *context) {
    struct rfx_memory *mem = context->graph->mem;
    rfx_memory_release(mem, context->packed_bytes);
    rfx_memory_release(mem, context->records);
    rfx_memory_release(mem, context->slides);
    rfx_memory_release(mem, context->upwards);
    rfx_memory_release(mem, context->measured);
    rfx_memory_release(mem, context->resident);
    rfx_memory_release(mem, context->own_memo);
    rfx_place_saved_release(&context->kept, mem);
    rfx_plan_sliding_release(&context->sliding, mem);
    rfx_memory_release(mem, context->spans);
    rfx_memory_release(mem, context->live);
    rfx_memory_release(mem, context->stored_record);
    rfx_memory_release(mem, context->staging);
}

/* Returns rows x columns of a node that a stage computes in total. */
static struct rfx_rect computed_area(const struct rfx_graph *graph,
                                     const struct rfx_stage_shape *shape, int i) {
    int64_t cols = shape->cols != NULL ? shape->cols[i].sum : rfx_rect_cols(graph->nodes[i].wanted);
    return rfx_rect_full(shape->rows[i].computed, cols);
}

/* Returns the MACs of a node in a stage. Where MACs depend on how an area is cut, equal tiles are
 * assumed; the final plan is counted by its steps. */
static uint64_t node_macs(const struct rfx_graph *graph, const struct rfx_stage_shape *shape,
                          int i) {
    const struct rfx_node *node = &graph->nodes[i];
    struct rfx_rect area = computed_area(graph, shape, i);
    if (rfx_op_def(node->op)->rect_macs == NULL || rfx_rect_is_empty(area))
        return rfx_op_macs(graph, node, area);
    int64_t down = rfx_ceil_div(area.y1, rfx_max_i64(1, shape->rows[i].per_step));
    int64_t across = shape->spec.tiles_x;
    struct rfx_rect part =
        rfx_rect_full(rfx_ceil_div(area.y1, down), rfx_ceil_div(area.x1, across));
    return (uint64_t)(down * across) * rfx_op_macs(graph, node, part);
}

uint64_t rfx_plan_count_macs(const struct rfx_plan_context *context,
                             const struct rfx_stage_shape *shapes, int n_stages) {
    const struct rfx_graph *graph = context->graph;
    uint64_t macs = 0;
    for (int s = 0; s < n_stages; s++) {
        const enum rfx_node_place *places = shapes[s].places;
        for (int i = shapes[s].first; i < shapes[s].end; i++)
            if (places[i] >= RFX_PLACE_LOCAL && places[i] != RFX_PLACE_REDUCED)
                macs += node_macs(graph, &shapes[s], i);
    }
    return macs;
}

static struct rfx_place_job job_of(const struct rfx_plan_context *c, int n_stages) {
    int n_steps = rfx_plan_count_steps(c->graph, n_stages);
    return (struct rfx_place_job){c->records, c->slides, c->n_records, c->n_slides,
                                  n_steps,    c->spans,  c->n_spans};
}

size_t rfx_plan_bound(struct rfx_plan_context *context, const struct rfx_stage_shape *shapes,
                      int n_stages) {
    rfx_plan_list_records(context, shapes, n_stages);
    struct rfx_place_job job = job_of(context, n_stages);
    int last = rfx_plan_count_steps(context->graph, n_stages - 1);
    return rfx_plan_fixed_bytes(context, shapes, n_stages) +
           rfx_place_slides_bound(&job, last, context->live, &context->rest_bytes);
}

void rfx_plan_list_beside(struct rfx_plan_context *context, const struct rfx_stage_shape *shapes,
                          int n_stages, size_t *beside) {
    int n_steps = rfx_plan_count_steps(context->graph, n_stages);
    size_t live = 0, *change = context->live; /* sums modulo 2^64; each prefix is a true size */
    rfx_plan_list_records(context, shapes, n_stages);
    memset(change, 0, ((size_t)n_steps + 1) * sizeof *change);
    for (int r = 0; r < context->n_records; r++) {
        const struct rfx_record *record = &context->records[r];
        if (record->kind == RFX_RECORD_STORED) continue;
        change[record->first] += record->bytes;
        change[record->last + 1] -= record->bytes;
    }
    for (int s = 0; s < n_stages; s++) {
        beside[s] = 0;
        for (int t = rfx_plan_count_steps(context->graph, s);
             t < rfx_plan_count_steps(context->graph, s + 1); t++) {
            live += change[t];
            if (live > beside[s]) beside[s] = live;
        }
    }
}

int64_t rfx_plan_window_rows(const struct rfx_plan_context *context,
                             const struct rfx_stage_shape *shapes, int n_stages) {
    int input = context->graph->input;
    if (context->request->source.random_access || input < 0) return 0;
    int64_t need = RFX_READ_BAND_ROWS;
    for (int s = 0; s < n_stages; s++) {
        const struct rfx_mode *mode = shapes[s].spec.mode;
        if (mode->window_rows != NULL && rfx_place_is_computed(shapes[s].places[input]))
            need = rfx_max_i64(need, mode->window_rows(&shapes[s], input));
    }
    return rfx_min_i64(need, context->request->source.h);
}

static bool loads_by_stage(const struct rfx_stage_shape *shapes, int n_stages) {
    for (int s = 0; s < n_stages; s++)
        if (shapes[s].spec.weights_by_stage) return true;
    return false;
}

static size_t weights_bytes(struct rfx_plan_context *context, const struct rfx_stage_shape *shapes,
                            int n_stages) {
    size_t bytes = 0;
    if (!loads_by_stage(shapes, n_stages)) return context->weights_bytes;
    rfx_plan_find_resident(context, shapes, n_stages);
    for (int i = 0; i < context->graph->n_nodes; i++)
        if (context->resident[i]) bytes += context->packed_bytes[i];
    return bytes;
}

static size_t scratch_bytes(const struct rfx_plan_context *context,
                            const struct rfx_stage_shape *shapes, int n_stages) {
    bool packs = loads_by_stage(shapes, n_stages) && context->scratch_bytes < RFX_PACK_TEMP_BYTES;
    return packs ? RFX_PACK_TEMP_BYTES
                 : context->scratch_bytes; /* the two are never used at the same time */
}

static size_t source_bytes(const struct rfx_plan_context *context,
                           const struct rfx_stage_shape *shapes, int n_stages) {
    const struct rfx_source_traits *source = &context->request->source;
    int64_t rows = rfx_plan_window_rows(context, shapes, n_stages);
    return source->fixed_bytes + source->window_row_bytes * (size_t)rows;
}

size_t rfx_plan_fixed_bytes(struct rfx_plan_context *context, const struct rfx_stage_shape *shapes,
                            int n_stages) {
    return weights_bytes(context, shapes, n_stages) + scratch_bytes(context, shapes, n_stages) +
           source_bytes(context, shapes, n_stages) + context->process_bytes +
           rfx_plan_table_bytes(context->graph, n_stages);
}

/* Returns the peak memory of a process whose run needs `run` bytes: the larger of that and of the
 * bytes that loading and planning need before the run. */
static size_t peak_of(const struct rfx_plan_context *context, int n_stages, size_t run) {
    size_t before =
        rfx_plan_prepare_bytes(context->graph, context->request, context->max_stages, n_stages);
    return run > before ? run : before;
}

static void fill_stage(const struct rfx_graph *graph, const struct rfx_stage_shape *shape,
                       struct rfx_stage *stage) {
    const struct rfx_stage_spec *spec = &shape->spec;
    const struct rfx_mode *mode = spec->mode;
    stage->spec = *spec;
    stage->spec.targets = stage->targets;
    stage->spec.spilled = stage->spilled;
    stage->spec.forgotten = stage->forgotten;
    for (int t = 0; t < spec->n_targets; t++)
        stage->spilled[t] = shape->places[spec->targets[t]] == RFX_PLACE_SPILLED;
    memcpy(stage->targets, spec->targets, (size_t)spec->n_targets * sizeof *stage->targets);
    stage->first = stage->last = -1;
    for (int i = 0; i < graph->n_nodes; i++) {
        stage->places[i] = shape->places[i];
        if (!rfx_place_is_computed(shape->places[i])) continue;
        if (stage->first < 0) stage->first = i;
        stage->last = i;
        if (mode->rings && rfx_place_is_local(shape->places[i]))
            stage->nodes[i].ring_rows = rfx_stage_buffer_rows(shape, i);
        stage->nodes[i].step_rows = rfx_stage_step_rows(graph, shape, i);
    }
}

static struct rfx_buffer buffer_of(const struct rfx_plan_context *context, int record) {
    if (record < 0) return (struct rfx_buffer){0, 0};
    const struct rfx_record *r = &context->records[record];
    return (struct rfx_buffer){r->offset, r->bytes - RFX_RED_ZONE_BYTES};
}

/* Fills the staging rows of a stage. */
static void fill_staging(const struct rfx_plan_context *context,
                         const struct rfx_stage_shape *shapes, int s, struct rfx_stage *stage) {
    int n = context->graph->n_nodes;
    const struct rfx_plan_staging *staging = context->staging + (size_t)s * (size_t)n;
    for (int i = n - 1; i >= 0; i--) { /* backwards: nodes that overwrite others come first */
        struct rfx_stage_node *node = &stage->nodes[i];
        node->over = -1;
        if (!rfx_stage_has_staging(&shapes[s], i)) continue;
        node->staging = buffer_of(context, staging[i].record);
        node->last_reader = staging[i].last_reader;
        node->over = staging[i].over;
        if (node->over >= 0)
            stage->nodes[node->over].lead = stage->nodes[node->over].ring_rows + node->lead;
    }
}

/* Copies the records' offsets into the plan. A node whose tensor overwrites another one has no
 * record of its own: stored_record and local_records name the record it lies in. */
static void fill_buffers(const struct rfx_plan_context *context,
                         const struct rfx_stage_shape *shapes, struct rfx_plan *plan) {
    const struct rfx_graph *graph = context->graph;
    const struct rfx_record *records = context->records;
    for (int r = 0; r < context->n_records; r++) {
        struct rfx_stage_node *node = &plan->stages[records[r].stage].nodes[records[r].node];
        if (records[r].kind == RFX_RECORD_PACKED) node->packed = buffer_of(context, r);
    }
    for (int s = 0; s < plan->n_stages; s++) {
        struct rfx_stage *stage = &plan->stages[s];
        fill_staging(context, shapes, s, stage);
        const int *local = context->local_records + (size_t)s * (size_t)graph->n_nodes;
        for (int i = 0; i < graph->n_nodes; i++) {
            enum rfx_node_place place = stage->places[i];
            if (!rfx_place_is_computed(place)) continue;
            if (place != RFX_PLACE_STORED) stage->nodes[i].buffer = buffer_of(context, local[i]);
            if (place == RFX_PLACE_STORED || place == RFX_PLACE_REDUCED)
                plan->stored[i] = buffer_of(context, context->stored_record[i]);
        }
    }
}

enum { MANY_RECORDS = 1000 };
/* Up to FEW_RECORDS records are placed with full effort, because only that may make them fit a
 * budget.
 */
enum { FEW_RECORDS = 64 };

/* Where the listed records lie. */
struct placed {
    size_t arena, bound;
    const char *strategy;
};

/* With a budget, full effort with very many records is not worth its memory: the packer's tables
 * grow with the square of the number of records. */
static bool is_quick(const struct rfx_plan_context *context) {
    bool limited = context->request->memory_bytes != 0 && context->n_records > MANY_RECORDS;
    return limited || (context->quick && context->n_records > FEW_RECORDS);
}

static enum rfx_status place(struct rfx_plan_context *c, const struct rfx_place_job *job,
                             struct rfx_place_key key, struct placed *placed,
                             struct rfx_error *err) {
    struct rfx_memory *mem = c->graph->mem;
    size_t rest;
    placed->bound = rfx_place_slides_bound(job, 0, c->live, &rest);
    if (rfx_place_saved_find(&c->kept, key, job, c->records, c->upwards)) {
        placed->arena = c->kept.arena;
        placed->strategy = c->kept.strategy;
        return RFX_OK;
    }
    if (c->n_slides == 0)
        return rfx_place_records(mem, c->records, c->n_records, is_quick(c), &placed->arena,
                                 &placed->strategy, err);
    placed->strategy = "row by row";
    return rfx_slides_place(mem, c->records, c->n_records, c->slides, c->n_slides, is_quick(c),
                            placed->bound, c->upwards, &placed->arena, err);
}

enum rfx_status rfx_plan_peak(struct rfx_plan_context *context,
                              const struct rfx_stage_shape *shapes, int n_stages,
                              size_t *peak_bytes, struct rfx_error *err) {
    rfx_plan_list_records(context, shapes, n_stages);
    struct rfx_place_job job = job_of(context, n_stages);
    struct rfx_place_key key = rfx_place_key_of(&job, is_quick(context));
    struct placed placed = {.arena = rfx_place_memo_find(context->memo, key)};
    size_t fixed = rfx_plan_fixed_bytes(context, shapes, n_stages);
    if (placed.arena == 0) {
        enum rfx_status status = place(context, &job, key, &placed, err);
        if (status != RFX_OK) return status;
        rfx_place_memo_add(context->memo, key, placed.arena);
        rfx_place_saved_offer(&context->kept, key, &job, context->upwards, placed.arena,
                              placed.strategy, placed.arena + fixed);
    }
    *peak_bytes = peak_of(context, n_stages, placed.arena + fixed);
    return RFX_OK;
}

/* Returns the node at which a tiled first stage ends; -1: there is no single one. */
static int split_of(const struct rfx_graph *graph, const struct rfx_stage_shape *head) {
    int split = -1;
    if (!head->spec.mode->local) return -1;
    for (int t = 0; t < head->spec.n_targets; t++) {
        int node = head->spec.targets[t];
        if (head->places[node] == RFX_PLACE_REDUCED) node = graph->nodes[node].in[0];
        if (t > 0 && node != split) return -1;
        split = node;
    }
    return split;
}

enum rfx_status rfx_plan_build(struct rfx_plan_context *context,
                               const struct rfx_stage_shape *shapes, int n_stages, uint64_t cost,
                               struct rfx_plan **out, struct rfx_error *err) {
    struct rfx_plan *plan = NULL;
    enum rfx_status status = allocate_plan(context, shapes, n_stages, &plan, err);
    if (status != RFX_OK) return status;
    for (int s = 0; s < n_stages; s++) fill_stage(context->graph, &shapes[s], &plan->stages[s]);
    rfx_plan_list_records(context, shapes, n_stages);
    struct placed placed;
    struct rfx_place_job job = job_of(context, n_stages);
    status = place(context, &job, rfx_place_key_of(&job, is_quick(context)), &placed, err);
    if (status != RFX_OK) {
        rfx_plan_free(plan);
        return status;
    }
    fill_buffers(context, shapes, plan);
    rfx_plan_take_slides(context, plan);
    plan->lower_bound_bytes = placed.bound;
    plan->placement = placed.strategy;
    plan->bytes.arena = placed.arena;
    size_t n = (size_t)context->graph->n_nodes;
    memcpy(plan->resident, context->resident, n * sizeof *plan->resident);
    plan->in_place = !context->request->no_inplace;
    plan->split = split_of(context->graph, &shapes[0]);
    plan->window_rows = rfx_plan_window_rows(context, shapes, n_stages);
    plan->bytes.weights = weights_bytes(context, shapes, n_stages);
    plan->bytes.scratch = scratch_bytes(context, shapes, n_stages);
    plan->bytes.source = source_bytes(context, shapes, n_stages);
    size_t counted =
        plan->bytes.arena + plan->bytes.weights + plan->bytes.scratch + plan->bytes.source;
    plan->peak_bytes = peak_of(context, n_stages,
                               plan->bytes.arena + rfx_plan_fixed_bytes(context, shapes, n_stages));
    plan->bytes.reserve = plan->peak_bytes - counted;
    plan->macs = rfx_plan_count_macs(context, shapes, n_stages);
    plan->spill = count_spill(context->graph, shapes, n_stages);
    plan->macs_untiled = context->macs_untiled;
    plan->cost = cost;
    *out = plan;
    return RFX_OK;
}

/* Returns the node that a stage is named after: the last map that other stages read. */
static int last_target(const struct rfx_plan *plan, const struct rfx_stage *stage) {
    for (int i = stage->last; i >= stage->first; i--) {
        if (stage->places[i] == RFX_PLACE_REDUCED) return plan->graph->nodes[i].in[0];
        if (stage->places[i] > RFX_PLACE_LOCAL) return i;
    }
    return stage->last;
}

static bool spills(const struct rfx_stage *stage) {
    for (int t = 0; t < stage->spec.n_targets; t++)
        if (stage->spilled[t]) return true;
    return false;
}

void rfx_plan_describe(const struct rfx_plan *plan, char *text, size_t size) {
    size_t at = 0;
    bool alone = plan->n_stages == 1;
    for (int s = 0; s < plan->n_stages && at < size; s++) {
        const struct rfx_stage *stage = &plan->stages[s];
        const char *to = rfx_split_label(plan->graph, last_target(plan, stage));
        if (s > 0) at += (size_t)snprintf(text + at, size - at, "; ");
        if (at < size)
            at += (size_t)stage->spec.mode->describe(&stage->spec, to, alone, text + at, size - at);
        if (spills(stage) && at < size) at += (size_t)snprintf(text + at, size - at, ", spilled");
    }
    if (rfx_plan_loads_by_stage(plan) && at < size)
        (void)snprintf(text + at, size - at, "%s weights by stage",
                       alone && !plan->stages[0].spec.mode->local ? "," : ";");
    rfx_trim_cut_character(text);
}
