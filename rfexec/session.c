/* The executor. Views are made from the plan's buffers and the schedule's current rectangles; a
 * step is one call of an op's run, or a read from the image. */
#include "rfexec/session.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "layers/blas.h"
#include "layers/checked.h"
#include "layers/op.h"
#include "tiler/schedule.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

#define MAX_TRIAL_THREADS 64
#define HUGE_PAGE_BYTES ((size_t)2 << 20)

struct rfx_session {
    const struct rfx_graph *graph;
    const struct rfx_plan *plan;
    struct rfx_memory *mem;
    struct rfx_schedule *schedule;
    unsigned char *arena, *scratch, *weights;
    unsigned char *pack_temp;           /* behind the scratch; only with weights by stage */
    size_t *packed_offset;              /* per node, into weights */
    struct rfx_view *inputs;            /* of the current step; as many as any node has */
    const struct rfx_output_sink *sink; /* borrowed; NULL: none */
    float **by_caller; /* per node: its full map in memory of the caller's, or NULL */
};

/* In builds with AddressSanitizer a step may touch the buffers that it names and nothing else of
 * the arena. A failed run leaves the arena guarded; the next one begins anew. */
#ifdef __SANITIZE_ADDRESS__
static void guard_all(const struct rfx_session *session) {
    __asan_poison_memory_region(session->arena, session->plan->bytes.arena);
}

static void guard_nothing(const struct rfx_session *session) {
    __asan_unpoison_memory_region(session->arena, session->plan->bytes.arena);
}

static void unguard(const struct rfx_session *session, const struct rfx_buffer *buffer) {
    __asan_unpoison_memory_region(session->arena + buffer->offset, buffer->bytes);
}

static void unguard_node(const struct rfx_session *session, int stage, int i) {
    if (rfx_node_is_constant(&session->graph->nodes[i])) return;
    unguard(session, rfx_plan_buffer(session->plan, stage, i));
    unguard(session, &session->plan->stages[stage].nodes[i].fresh);
}

static void guard_step(const struct rfx_session *session, const struct rfx_step *step) {
    const struct rfx_node *node = &session->graph->nodes[step->node];
    const struct rfx_stage_node *how = &session->plan->stages[step->stage].nodes[step->node];
    guard_all(session);
    unguard(session, &how->packed);
    unguard(session, &how->buffer);
    unguard_node(session, step->stage, step->node);
    if (step->kind == RFX_STEP_LOAD || step->kind == RFX_STEP_KEEP) return;
    for (int k = 0; k < node->n_in; k++) unguard_node(session, step->stage, node->in[k]);
}
#else
static void guard_all(const struct rfx_session *session) {
    (void)session;
}

static void guard_nothing(const struct rfx_session *session) {
    (void)session;
}

static void guard_step(const struct rfx_session *session, const struct rfx_step *step) {
    (void)session;
    (void)step;
}
#endif

void rfx_session_free(struct rfx_session *session) {
    if (session == NULL) return;
    struct rfx_memory *mem = session->mem;
    if (session->arena != NULL) guard_nothing(session);
    rfx_schedule_free(session->schedule);
    rfx_memory_release(mem, session->arena);
    rfx_memory_release(mem, session->scratch);
    rfx_memory_release(mem, session->weights);
    rfx_memory_release(mem, session->packed_offset);
    rfx_memory_release(mem, session->inputs);
    rfx_memory_release(mem, session->by_caller);
    rfx_memory_release(mem, session);
}

/* Asks for huge pages inside a large block: fewer faults, and never more than the block resident.
 */
static void prefer_huge_pages(void *block, size_t bytes) {
    uintptr_t lo = ((uintptr_t)block + HUGE_PAGE_BYTES - 1) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    uintptr_t hi = ((uintptr_t)block + bytes) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    if (hi > lo) (void)madvise((void *)lo, hi - lo, MADV_HUGEPAGE);
}

/* Whether a node's packed constants are loaded by stage, into the arena. */
static bool is_loaded_by_stage(const struct rfx_session *session, int node) {
    return !session->plan->resident[node];
}

static enum rfx_status pack_weights(struct rfx_session *session, struct rfx_error *err) {
    const struct rfx_graph *graph = session->graph;
    size_t offset = 0;
    for (int i = 0; i < graph->n_nodes; i++) {
        session->packed_offset[i] = offset;
        if (is_loaded_by_stage(session, i)) continue;
        enum rfx_status status =
            rfx_op_pack(graph, &graph->nodes[i], session->weights + offset, NULL, err);
        if (status != RFX_OK) return status;
        offset += rfx_align_up(rfx_op_packed_bytes(graph, &graph->nodes[i]));
    }
    assert(offset == session->plan->bytes.weights);
    return RFX_OK;
}

static enum rfx_status allocate(struct rfx_session *session, struct rfx_error *err) {
    const struct rfx_plan *plan = session->plan;
    struct rfx_memory *mem = session->mem;
    int n = session->graph->n_nodes;
    size_t max_in = 1;
    for (int i = 0; i < n; i++)
        if ((size_t)session->graph->nodes[i].n_in > max_in)
            max_in = (size_t)session->graph->nodes[i].n_in;
    session->packed_offset = rfx_memory_calloc(mem, (size_t)n, sizeof *session->packed_offset);
    session->inputs = rfx_memory_calloc(mem, max_in, sizeof *session->inputs);
    session->by_caller = rfx_memory_calloc(mem, (size_t)n, sizeof *session->by_caller);
    if (session->packed_offset == NULL || session->inputs == NULL || session->by_caller == NULL)
        return rfx_memory_fail(mem, "session tables", max_in * sizeof *session->inputs, err);
    session->arena = rfx_memory_alloc(mem, plan->bytes.arena);
    if (session->arena == NULL) return rfx_memory_fail(mem, "arena", plan->bytes.arena, err);
    session->scratch = rfx_memory_alloc(mem, plan->bytes.scratch);
    if (session->scratch == NULL) return rfx_memory_fail(mem, "scratch", plan->bytes.scratch, err);
    session->weights = rfx_memory_alloc(mem, plan->bytes.weights + 1); /* may be none */
    if (session->weights == NULL)
        return rfx_memory_fail(mem, "packed weights", plan->bytes.weights, err);
    prefer_huge_pages(session->arena, plan->bytes.arena);
    prefer_huge_pages(session->weights, plan->bytes.weights);
    return RFX_OK;
}

static void *do_nothing(void *argument) {
    return argument;
}

/* The OpenMP runtime ends the process when it cannot start its threads: better to find out here. */
static enum rfx_status check_threads(int threads, struct rfx_error *err) {
    pthread_t started[MAX_TRIAL_THREADS];
    int wanted = (int)rfx_min_i64(threads - 1, MAX_TRIAL_THREADS);
    int n = 0;
    while (n < wanted && pthread_create(&started[n], NULL, do_nothing, NULL) == 0) n++;
    for (int i = 0; i < n; i++) (void)pthread_join(started[i], NULL);
    if (n == wanted) return RFX_OK;
    return rfx_fail(err, RFX_STATUS_OUT_OF_MEMORY, "only %d of %d threads can be started", n + 1,
                    threads);
}

enum rfx_status rfx_session_create(const struct rfx_graph *graph, const struct rfx_plan *plan,
                                   struct rfx_session **out, struct rfx_error *err) {
    struct rfx_memory *mem = graph->mem;
    struct rfx_session *session = rfx_memory_calloc(mem, 1, sizeof *session);
    if (session == NULL) return rfx_memory_fail(mem, "session", sizeof *session, err);
    session->graph = graph;
    session->plan = plan;
    session->mem = mem;
    enum rfx_status status = allocate(session, err);
    if (status == RFX_OK) status = check_threads(plan->threads, err);
    if (status == RFX_OK) status = rfx_blas_reserve(plan->threads, err);
    if (status == RFX_OK) status = rfx_schedule_create(plan, &session->schedule, err);
    if (status == RFX_OK) status = pack_weights(session, err);
    if (status != RFX_OK) {
        rfx_session_free(session);
        return status;
    }
    *out = session;
    return RFX_OK;
}

/* The part of a node's tensor that is in memory now. */
static struct rfx_view node_view(const struct rfx_session *session, int i) {
    const struct rfx_node *node = &session->graph->nodes[i];
    struct rfx_part part = rfx_schedule_part(session->schedule, i);
    if (part.by_caller) return rfx_view_dense(session->by_caller[i], part.rect, node->out.c);
    unsigned char *base = rfx_node_is_constant(node) ? session->weights + session->packed_offset[i]
                                                     : session->arena + part.offset;
    struct rfx_view view = rfx_view_dense((float *)(void *)base, part.rect, node->out.c);
    view.ring_rows = part.ring_rows;
    if (part.has_fresh) {
        view.fresh = (float *)(void *)(session->arena + part.fresh_offset);
        view.fresh_y0 = part.fresh_y0;
    }
    return view;
}

static unsigned char *packed_of(const struct rfx_session *session, int stage, int i) {
    if (!is_loaded_by_stage(session, i)) return session->weights + session->packed_offset[i];
    return session->arena + session->plan->stages[stage].nodes[i].packed.offset;
}

/* Reads a rectangle of the image in bands, so that a row source never keeps more than a band. */
static enum rfx_status read_image(const struct rfx_session *session, struct rfx_image *image,
                                  struct rfx_rect rect, struct rfx_error *err) {
    struct rfx_view view = node_view(session, session->graph->input);
    for (int64_t y = rect.y0; y < rect.y1; y += RFX_READ_BAND_ROWS) {
        struct rfx_rect band = rect;
        band.y0 = y;
        band.y1 = rfx_min_i64(y + RFX_READ_BAND_ROWS, rect.y1);
        enum rfx_status status = rfx_image_read(image, band, &view, err);
        if (status != RFX_OK) return status;
    }
    return RFX_OK;
}

static void run_node(struct rfx_session *session, const struct rfx_step *step) {
    const struct rfx_node *node = &session->graph->nodes[step->node];
    for (int k = 0; k < node->n_in; k++) session->inputs[k] = node_view(session, node->in[k]);
    struct rfx_run_args args = {
        .graph = session->graph,
        .node = node,
        .in = session->inputs,
        .out = node_view(session, step->node),
        .rect = step->rect,
        .packed = packed_of(session, step->stage, step->node),
        .scratch = session->scratch,
        .threads = session->plan->threads,
    };
    rfx_op_def(node->op)->run(&args);
}

/* Begins, feeds or finishes a reduction that gets its map in parts. */
static void run_reduction(struct rfx_session *session, const struct rfx_step *step) {
    const struct rfx_node *node = &session->graph->nodes[step->node];
    const struct rfx_reduction *reduction = rfx_node_reduction(node);
    const struct rfx_tensor *in = &session->graph->nodes[node->in[0]].out;
    size_t offset = session->plan->stages[step->stage].nodes[step->node].buffer.offset;
    void *state = session->arena + offset;
    if (step->kind == RFX_STEP_REDUCE_BEGIN) {
        reduction->begin(node, state);
    } else if (step->kind == RFX_STEP_REDUCE_ADD) {
        struct rfx_view part = node_view(session, node->in[0]);
        reduction->add(node, state, &part, step->rect);
    } else {
        struct rfx_view out = node_view(session, step->node);
        reduction->finish(node, state, in->h, in->w, &out);
    }
}

/* Copies rows that outlive their step from where the step made them to the node's ring. */
static void keep_rows(const struct rfx_session *session, const struct rfx_step *step) {
    struct rfx_view from = node_view(session, step->node);
    struct rfx_view to = from;
    to.fresh = NULL;
    size_t bytes = (size_t)from.row_stride * sizeof(float);
    int64_t x0 = from.rect.x0;
    for (int64_t y = step->rect.y0; y < step->rect.y1; y++)
        memcpy(rfx_view_at(&to, y, x0), rfx_view_at(&from, y, x0), bytes);
}

/* Gives a part of an output to the sink. */
static enum rfx_status emit(const struct rfx_session *session, const struct rfx_step *step,
                            struct rfx_error *err) {
    const struct rfx_graph *graph = session->graph;
    struct rfx_view view = node_view(session, step->node);
    if (session->sink == NULL)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "the plan hands out '%s' while it runs, but the session has no sink",
                        graph->nodes[step->node].name);
    for (int k = 0; k < graph->n_outputs; k++) {
        if (graph->outputs[k].node != step->node) continue;
        enum rfx_status status =
            session->sink->write(session->sink->user, k, step->rect, &view, err);
        if (status != RFX_OK) return status;
    }
    return RFX_OK;
}

static double now_seconds(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Raises the high water to the end of what lies in the arena at `offset`. */
static void count_bytes(size_t offset, size_t bytes, struct rfx_run_report *report) {
    size_t end = offset + rfx_align_up(bytes) + RFX_RED_ZONE_BYTES;
    if (end > report->arena_high_water_bytes) report->arena_high_water_bytes = end;
}

/* Raises it to the end of the rows of a node that a step writes. */
static void count_rows(const struct rfx_session *session, const struct rfx_step *step,
                       struct rfx_run_report *report) {
    struct rfx_part part = rfx_schedule_part(session->schedule, step->node);
    if (part.by_caller) return;
    const struct rfx_tensor *out = &session->graph->nodes[step->node].out;
    size_t row_bytes = (size_t)(rfx_rect_cols(part.rect) * out->c) * sizeof(float);
    bool fresh = part.has_fresh && step->kind != RFX_STEP_KEEP;
    for (int64_t y = step->rect.y1 - 1; y >= step->rect.y0; y--) {
        int64_t slot = fresh                 ? y - part.fresh_y0
                       : part.ring_rows != 0 ? y % part.ring_rows
                                             : y - part.rect.y0;
        count_bytes(fresh ? part.fresh_offset : part.offset, (size_t)(slot + 1) * row_bytes,
                    report);
        if (fresh || part.ring_rows == 0) return; /* the last row ends highest */
    }
}

static void count_step(const struct rfx_session *session, const struct rfx_step *step,
                       struct rfx_run_report *report) {
    const struct rfx_node *node = &session->graph->nodes[step->node];
    const struct rfx_stage_node *how = &session->plan->stages[step->stage].nodes[step->node];
    switch (step->kind) {
        case RFX_STEP_LOAD:
            count_bytes(how->packed.offset, how->packed.bytes, report);
            return;
        case RFX_STEP_REDUCE_BEGIN:
        case RFX_STEP_REDUCE_ADD:
            count_bytes(how->buffer.offset, how->buffer.bytes, report);
            return;
        case RFX_STEP_RUN:
            report->macs += rfx_op_macs(session->graph, node, step->rect);
            break;
        case RFX_STEP_KEEP:
        case RFX_STEP_REDUCE_FINISH:
            break;
        case RFX_STEP_EMIT:
            return;
    }
    count_rows(session, step, report);
}

/* Every map that the plan leaves to the caller must have been given. */
static enum rfx_status find_callers_memory(struct rfx_session *session, struct rfx_image *image,
                                           struct rfx_error *err) {
    const struct rfx_graph *graph = session->graph;
    if (graph->input >= 0) session->by_caller[graph->input] = rfx_image_pixels(image);
    for (int i = 0; i < graph->n_nodes; i++)
        if (session->plan->by_caller[i] && session->by_caller[i] == NULL)
            return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                            "the plan leaves the memory of '%s' to the caller, who gave none",
                            graph->nodes[i].name);
    return RFX_OK;
}

static enum rfx_status prepare_source(struct rfx_session *session, struct rfx_image *image,
                                      struct rfx_error *err) {
    const struct rfx_tensor *input = &session->graph->nodes[session->graph->input].out;
    struct rfx_source_traits traits = rfx_image_traits(image);
    if (traits.h != input->h || traits.w != input->w || traits.c != input->c)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "the image is %lldx%lld with %lld channels, the plan was made for "
                        "%lldx%lld with %lld",
                        (long long)traits.h, (long long)traits.w, (long long)traits.c,
                        (long long)input->h, (long long)input->w, (long long)input->c);
    enum rfx_status status = find_callers_memory(session, image, err);
    if (status != RFX_OK) return status;
    int64_t rows = rfx_max_i64(session->plan->window_rows, 1);
    status = rfx_image_set_window(image, rows, err);
    return status == RFX_OK ? rfx_image_rewind(image, err) : status;
}

static enum rfx_status run_step(struct rfx_session *session, struct rfx_image *image,
                                const struct rfx_step *step, struct rfx_error *err) {
    switch (step->kind) {
        case RFX_STEP_LOAD:
            return rfx_op_pack(session->graph, &session->graph->nodes[step->node],
                               packed_of(session, step->stage, step->node), session->scratch, err);
        case RFX_STEP_REDUCE_BEGIN:
        case RFX_STEP_REDUCE_ADD:
        case RFX_STEP_REDUCE_FINISH:
            run_reduction(session, step);
            return RFX_OK;
        case RFX_STEP_KEEP:
            keep_rows(session, step);
            return RFX_OK;
        case RFX_STEP_EMIT:
            return emit(session, step, err);
        case RFX_STEP_RUN:
            break;
    }
    if (step->node != session->graph->input) {
        run_node(session, step);
        return RFX_OK;
    }
    enum rfx_status status = step->restart ? rfx_image_rewind(image, err) : RFX_OK;
    return status == RFX_OK ? read_image(session, image, step->rect, err) : status;
}

enum rfx_status rfx_session_run(struct rfx_session *session, struct rfx_image *image,
                                rfx_progress_fn *progress, void *user,
                                struct rfx_run_report *report, struct rfx_error *err) {
    double start = now_seconds();
    struct rfx_run_report r = {0};
    enum rfx_status status = prepare_source(session, image, err);
    if (status != RFX_OK) return status;
    rfx_schedule_rewind(session->schedule);
    struct rfx_step step;
    while (rfx_schedule_next(session->schedule, &step)) {
        if (progress != NULL && progress(user, step.unit, step.n_units) != 0)
            return rfx_fail(err, RFX_STATUS_CANCELLED, "stopped after %lld of %lld parts",
                            (long long)step.unit, (long long)step.n_units);
        count_step(session, &step, &r);
        guard_step(session, &step);
        status = run_step(session, image, &step, err);
        guard_all(session);
        if (status != RFX_OK) return status;
    }
    guard_nothing(session);
    if (progress != NULL) (void)progress(user, 1, 1);
    r.seconds = now_seconds() - start;
    if (report != NULL) *report = r;
    return RFX_OK;
}

void rfx_session_set_sink(struct rfx_session *session, const struct rfx_output_sink *sink) {
    session->sink = sink;
}

bool rfx_session_output_is_stored(const struct rfx_session *session, int k) {
    int node = session->graph->outputs[k].node;
    return rfx_node_is_constant(&session->graph->nodes[node]) || session->plan->by_caller[node] ||
           session->plan->stored[node].bytes != 0;
}

void rfx_session_set_output(struct rfx_session *session, int k, float *values) {
    session->by_caller[session->graph->outputs[k].node] = values;
}

void rfx_session_give_back(struct rfx_session *session) {
    unsigned char *blocks[2] = {session->arena, session->scratch};
    size_t bytes[2] = {session->plan->bytes.arena, session->plan->bytes.scratch};
    for (int b = 0; b < 2; b++) {
        uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
        uintptr_t lo = ((uintptr_t)blocks[b] + page - 1) / page * page;
        uintptr_t hi = ((uintptr_t)blocks[b] + bytes[b]) / page * page;
        if (hi > lo) (void)madvise((void *)lo, hi - lo, MADV_DONTNEED);
    }
}

int rfx_session_output_count(const struct rfx_session *session) {
    return session->graph->n_outputs;
}

const struct rfx_tensor *rfx_session_output_tensor(const struct rfx_session *session, int k) {
    return &session->graph->nodes[session->graph->outputs[k].node].out;
}

const char *rfx_session_output_name(const struct rfx_session *session, int k) {
    return session->graph->outputs[k].name;
}

void rfx_session_output_read(const struct rfx_session *session, int k, int64_t first, int64_t count,
                             float *out) {
    int i = session->graph->outputs[k].node;
    const struct rfx_tensor *t = &session->graph->nodes[i].out;
    assert(first >= 0 && count >= 0 && count <= t->elems - first);
    struct rfx_view view = node_view(session, i);
    if (t->layout == RFX_LAYOUT_PLAIN) {
        for (int64_t e = 0; e < count; e++) out[e] = rfx_one_nan(view.data[first + e]);
        return;
    }
    int64_t plane = t->h * t->w;
    for (int64_t e = first; e < first + count; e++)
        out[e - first] = rfx_one_nan(view.data[(e % plane) * t->c + e / plane]);
}
