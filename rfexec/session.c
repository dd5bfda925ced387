/* The executor. Views are made from the plan's buffers and the schedule's current rectangles; a
 * step is one call of an op's run, or a read from the image. */
#include "rfexec/session.h"

#include <assert.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "layers/checked.h"
#include "layers/global_pool.h"
#include "layers/op.h"
#include "tiler/schedule.h"

#define READ_BAND_ROWS 16 /* rows asked of a source at a time; tiler/plan_build.c plans for it */
#define HUGE_PAGE_BYTES ((size_t)2 << 20)

struct rfx_session {
    const struct rfx_graph *graph;
    const struct rfx_plan *plan;
    struct rfx_memory *mem;
    struct rfx_schedule *schedule;
    unsigned char *arena, *scratch, *weights;
    size_t *packed_offset;   /* per node, into weights */
    struct rfx_view *inputs; /* of the current step; as many as any node has */
};

void rfx_session_free(struct rfx_session *session) {
    if (session == NULL) return;
    struct rfx_memory *mem = session->mem;
    rfx_schedule_free(session->schedule);
    rfx_memory_release(mem, session->arena);
    rfx_memory_release(mem, session->scratch);
    rfx_memory_release(mem, session->weights);
    rfx_memory_release(mem, session->packed_offset);
    rfx_memory_release(mem, session->inputs);
    rfx_memory_release(mem, session);
}

/* Asks for huge pages inside a large block: fewer faults, and never more than the block resident.
 */
static void prefer_huge_pages(void *block, size_t bytes) {
    uintptr_t lo = ((uintptr_t)block + HUGE_PAGE_BYTES - 1) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    uintptr_t hi = ((uintptr_t)block + bytes) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    if (hi > lo) (void)madvise((void *)lo, hi - lo, MADV_HUGEPAGE);
}

static enum rfx_status pack_weights(struct rfx_session *session, struct rfx_error *err) {
    const struct rfx_graph *graph = session->graph;
    size_t offset = 0;
    for (int i = 0; i < graph->n_nodes; i++) {
        session->packed_offset[i] = offset;
        enum rfx_status status =
            rfx_op_pack(graph, &graph->nodes[i], session->weights + offset, err);
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
    if (session->packed_offset == NULL || session->inputs == NULL)
        return rfx_memory_fail(mem, "session tables", max_in * sizeof *session->inputs, err);
    session->arena = rfx_memory_alloc(mem, plan->bytes.arena);
    if (session->arena == NULL) return rfx_memory_fail(mem, "arena", plan->bytes.arena, err);
    session->scratch = rfx_memory_alloc(mem, plan->bytes.scratch);
    if (session->scratch == NULL) return rfx_memory_fail(mem, "scratch", plan->bytes.scratch, err);
    session->weights = rfx_memory_alloc(mem, plan->bytes.weights);
    if (session->weights == NULL)
        return rfx_memory_fail(mem, "packed weights", plan->bytes.weights, err);
    prefer_huge_pages(session->arena, plan->bytes.arena);
    prefer_huge_pages(session->weights, plan->bytes.weights);
    return RFX_OK;
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
    unsigned char *base = rfx_node_is_constant(node)
                              ? session->weights + session->packed_offset[i]
                              : session->arena + session->plan->buffers[i].offset;
    struct rfx_view view = rfx_view_dense(
        (float *)(void *)base, rfx_schedule_view_rect(session->schedule, i), node->out.c);
    view.ring_rows = session->plan->buffers[i].ring_rows;
    return view;
}

/* Reads a rectangle of the image in bands, so that a row source never keeps more than a band. */
static enum rfx_status read_image(const struct rfx_session *session, struct rfx_image *image,
                                  struct rfx_rect rect, struct rfx_error *err) {
    struct rfx_view view = node_view(session, session->graph->input);
    for (int64_t y = rect.y0; y < rect.y1; y += READ_BAND_ROWS) {
        struct rfx_rect band = rect;
        band.y0 = y;
        band.y1 = rfx_min_i64(y + READ_BAND_ROWS, rect.y1);
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
        .packed = session->weights + session->packed_offset[step->node],
        .scratch = session->scratch,
        .threads = session->plan->threads,
    };
    rfx_op_def(node->op)->run(&args);
}

/* Feeds or finishes a global pool whose input is streamed. */
static void run_pool(struct rfx_session *session, const struct rfx_step *step) {
    const struct rfx_node *node = &session->graph->nodes[step->node];
    const struct rfx_tensor *in = &session->graph->nodes[node->in[0]].out;
    void *state = session->arena + session->plan->pool_states[step->node].offset;
    if (step->kind == RFX_STEP_POOL_ROWS) {
        struct rfx_view rows = node_view(session, node->in[0]);
        if (step->rect.y0 == 0) rfx_global_pool_begin(node, state);
        rfx_global_pool_add(node, state, &rows, step->rect);
        return;
    }
    struct rfx_view out = node_view(session, step->node);
    rfx_global_pool_finish(node, state, in->h, in->w, rfx_view_at(&out, 0, 0));
}

static double now_seconds(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void count_step(const struct rfx_session *session, const struct rfx_step *step,
                       struct rfx_run_report *report) {
    const struct rfx_node *node = &session->graph->nodes[step->node];
    const struct rfx_buffer *buffer = &session->plan->buffers[step->node];
    struct rfx_rect view = rfx_schedule_view_rect(session->schedule, step->node);
    size_t bytes = (size_t)(rfx_rect_area(view) * node->out.c) * sizeof(float);
    if (step->kind == RFX_STEP_POOL_ROWS) {
        buffer = &session->plan->pool_states[step->node];
        bytes = buffer->bytes;
    }
    size_t end = buffer->offset + rfx_align_up(bytes);
    if (end > report->arena_high_water_bytes) report->arena_high_water_bytes = end;
    if (step->kind == RFX_STEP_RUN) report->macs += rfx_op_macs(session->graph, node, step->rect);
}

static enum rfx_status prepare_source(const struct rfx_session *session, struct rfx_image *image,
                                      struct rfx_error *err) {
    const struct rfx_tensor *input = &session->graph->nodes[session->graph->input].out;
    struct rfx_source_traits traits = rfx_image_traits(image);
    if (traits.h != input->h || traits.w != input->w || traits.c != input->c)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "the image is %lldx%lld with %lld channels, the plan was made for "
                        "%lldx%lld with %lld",
                        (long long)traits.h, (long long)traits.w, (long long)traits.c,
                        (long long)input->h, (long long)input->w, (long long)input->c);
    int64_t rows = rfx_max_i64(session->plan->window_rows, 1);
    enum rfx_status status = rfx_image_set_window(image, rows, err);
    return status == RFX_OK ? rfx_image_rewind(image, err) : status;
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
        if (step.kind != RFX_STEP_RUN) {
            run_pool(session, &step);
        } else if (step.node == session->graph->input) {
            status = read_image(session, image, step.rect, err);
            if (status != RFX_OK) return status;
        } else {
            run_node(session, &step);
        }
    }
    if (progress != NULL) (void)progress(user, 1, 1);
    r.seconds = now_seconds() - start;
    if (report != NULL) *report = r;
    return RFX_OK;
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

/* Sign and payload of a NaN depend on which operand an instruction met first, and so on where in a
 * vector an element lay. That an element is NaN does not; so all NaN leave as the same one. */
static float one_nan(float x) {
    return x != x ? NAN : x;
}

void rfx_session_output_read(const struct rfx_session *session, int k, int64_t first, int64_t count,
                             float *out) {
    int i = session->graph->outputs[k].node;
    const struct rfx_tensor *t = &session->graph->nodes[i].out;
    assert(first >= 0 && count >= 0 && count <= t->elems - first);
    struct rfx_view view = node_view(session, i);
    if (t->layout == RFX_LAYOUT_PLAIN) {
        for (int64_t e = 0; e < count; e++) out[e] = one_nan(view.data[first + e]);
        return;
    }
    int64_t plane = t->h * t->w;
    for (int64_t e = first; e < first + count; e++)
        out[e - first] = one_nan(view.data[(e % plane) * t->c + e / plane]);
}
