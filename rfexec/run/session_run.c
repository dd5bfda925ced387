/* The steps of a run. Views are made from the plan's buffers and the schedule's current rectangles.
 * A step is one call of an operator's run function, or one read from the image. */
#include <stdatomic.h>
#include <string.h>

#include "layers/core/checked.h"
#include "layers/core/clock.h"
#include "layers/graph/pack.h"
#include "layers/graph/units.h"
#include "rfexec/run/session_state.h"

static unsigned char *packed_of(const struct rfx_session *session, int stage, int i) {
    if (!rfx_session_loads_by_stage(session, i)) return rfx_packed_weights_of(session->weights, i);
    return session->arena + session->plan->stages[stage].nodes[i].packed.offset;
}

#define READ_ROWS 4 /* rows that a thread reads at a time if several threads may read */

/* A rectangle of the image that several threads read. */
struct shared_read {
    struct rfx_image *image;
    const struct rfx_view *view;
    struct rfx_rect rect;
    struct rfx_error *err;
    atomic_int failed; /* only the first failing thread sets status and text */
    enum rfx_status status;
};

static void read_rows(void *user, int64_t index, int thread) {
    struct shared_read *read = user;
    struct rfx_rect rows = read->rect;
    struct rfx_error why;
    (void)thread;
    rows.y0 += index * READ_ROWS;
    rows.y1 = rfx_min_i64(rows.y0 + READ_ROWS, rows.y1);
    enum rfx_status status = rfx_image_read(read->image, rows, read->view, &why);
    if (status == RFX_OK || atomic_exchange(&read->failed, 1) != 0) return;
    read->status = status;
    if (read->err != NULL) *read->err = why;
}

static enum rfx_status share_reading(struct rfx_image *image, struct rfx_team *team,
                                     const struct rfx_view *view, struct rfx_rect rect,
                                     struct rfx_error *err) {
    struct shared_read read = {.image = image, .view = view, .rect = rect, .err = err};
    rfx_team_for(team, rfx_ceil_div(rfx_rect_rows(rect), READ_ROWS), read_rows, &read);
    return read.status;
}

/* Reads a rectangle of the image in bands of RFX_READ_BAND_ROWS rows, so that a row source never
 * holds more than one band. */
static enum rfx_status read_image(const struct rfx_session *session, struct rfx_image *image,
                                  struct rfx_team *team, struct rfx_rect rect,
                                  struct rfx_error *err) {
    struct rfx_view view = rfx_session_view(session, session->graph->input);
    if (rfx_image_is_concurrent(image)) return share_reading(image, team, &view, rect, err);
    for (int64_t y = rect.y0; y < rect.y1 && !rfx_team_must_stop(team); y += RFX_READ_BAND_ROWS) {
        struct rfx_rect band = rect;
        band.y0 = y;
        band.y1 = rfx_min_i64(y + RFX_READ_BAND_ROWS, rect.y1);
        enum rfx_status status = rfx_image_read(image, band, &view, err);
        if (status != RFX_OK) return status;
    }
    return RFX_OK;
}

static void run_node(struct rfx_session *session, struct rfx_team *team,
                     const struct rfx_step *step) {
    const struct rfx_node *node = &session->graph->nodes[step->node];
    for (int k = 0; k < node->n_in; k++)
        session->inputs[k] = rfx_session_view(session, node->in[k]);
    struct rfx_run_args args = {
        .graph = session->graph,
        .node = node,
        .in = session->inputs,
        .out = rfx_session_view(session, step->node),
        .rect = step->rect,
        .packed = packed_of(session, step->stage, step->node),
        .scratch = session->scratch,
        .threads = rfx_team_threads(team),
        .team = team,
    };
    rfx_op_def(node->op)->run(&args);
}

/* Begins a reduction, adds a part of its input map to it, or finishes it. */
static void run_reduction(struct rfx_session *session, struct rfx_team *team,
                          const struct rfx_step *step) {
    const struct rfx_node *node = &session->graph->nodes[step->node];
    const struct rfx_reduction *reduction = rfx_node_reduction(node);
    const struct rfx_tensor *in = &session->graph->nodes[node->in[0]].out;
    size_t offset = session->plan->stages[step->stage].nodes[step->node].buffer.offset;
    void *state = session->arena + offset;
    if (step->kind == RFX_STEP_REDUCE_BEGIN) {
        reduction->begin(node, state);
    } else if (step->kind == RFX_STEP_REDUCE_ADD) {
        struct rfx_view part = rfx_session_view(session, node->in[0]);
        rfx_reduction_add(node, state, &part, step->rect, team, session->scratch);
    } else {
        const struct rfx_state_sink *sink = session->states;
        struct rfx_view out = rfx_session_view(session, step->node);
        if (sink != NULL) sink->take(sink->user, step->node, state, reduction->state_bytes(node));
        reduction->finish(node, state, in->h, in->w, &out);
    }
}

/* Least bytes of a part: copying less is not worth waking a thread. */
#define KEEP_BYTES ((size_t)64 << 10)

/* A copy of rows from the place where a step computed them. */
struct keeping {
    struct rfx_view from, to;
    struct rfx_rect rect;
    struct rfx_units parts;
};

static void keep_part(void *user, int64_t index, int thread) {
    const struct keeping *k = user;
    struct rfx_rect part = rfx_units_part(k->rect, k->parts, index);
    size_t bytes = (size_t)(rfx_rect_cols(part) * k->from.c) * rfx_type_bytes(k->from.type);
    (void)thread;
    for (int64_t y = part.y0; y < part.y1; y++)
        memcpy(rfx_view_at(&k->to, y, part.x0), rfx_view_at(&k->from, y, part.x0), bytes);
}

/* Copies rows that later steps need from the place where a step computed them to the node's ring
 * buffer. */
static void keep_rows(const struct rfx_session *session, struct rfx_team *team,
                      const struct rfx_step *step) {
    struct keeping k = {.from = rfx_session_view(session, step->node), .rect = step->rect};
    k.to = k.from;
    k.to.staging = NULL;
    k.rect.x0 = k.from.rect.x0;
    k.rect.x1 = k.from.rect.x1;
    size_t bytes = (size_t)rfx_rect_rows(k.rect) * rfx_view_row_bytes(&k.from);
    k.parts = rfx_units_into(k.rect, bytes < 2 * KEEP_BYTES ? 1 : rfx_team_threads(team));
    rfx_team_for(team, k.parts.down * k.parts.across, keep_part, &k);
}

/* Passes a part of an output to the sink. */
static enum rfx_status emit(const struct rfx_session *session, const struct rfx_step *step,
                            struct rfx_error *err) {
    const struct rfx_graph *graph = session->graph;
    struct rfx_view view = rfx_session_view(session, step->node);
    if (session->sink == NULL)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "the plan hands out '%s' while it runs, but the session has no sink",
                        graph->nodes[step->node].name);
    for (int e = 0; e < graph->n_ends; e++) {
        if (graph->ends[e].node != step->node) continue;
        enum rfx_status status =
            session->sink->write(session->sink->user, &graph->ends[e], step->rect, &view, err);
        if (status != RFX_OK) return status;
    }
    return RFX_OK;
}

/* Passes a map or tensor that the plan stores to the sink. It is passed some rows at a time, so
 * that the run can be stopped in between. */
static enum rfx_status give_stored(const struct rfx_session *session, const struct rfx_end *end,
                                   struct rfx_error *err) {
    enum { BAND_BYTES = 256 << 10 };
    const struct rfx_output_sink *sink = session->sink;
    struct rfx_view view = rfx_session_view(session, end->node);
    struct rfx_rect all = rfx_end_part(session->graph, end);
    int64_t row_bytes = rfx_rect_cols(all) * view.c * (int64_t)rfx_type_bytes(view.type);
    int64_t step = rfx_max_i64(1, BAND_BYTES / rfx_max_i64(1, row_bytes));
    enum rfx_status status = RFX_OK;
    rfx_sink_look(sink, end, all, &view);
    for (int64_t y = all.y0; y < all.y1 && status == RFX_OK; y += step) {
        struct rfx_rect rows = rfx_rect_make(y, rfx_min_i64(y + step, all.y1), all.x0, all.x1);
        status = rfx_memory_check_stop(session->mem, err);
        if (status == RFX_OK) status = sink->write(sink->user, end, rows, &view, err);
    }
    return status;
}

/* Passes all stored outputs to the sink. */
static enum rfx_status give_all_stored(const struct rfx_session *session, struct rfx_error *err) {
    const struct rfx_graph *graph = session->graph;
    enum rfx_status status = RFX_OK;
    for (int e = 0; e < graph->n_ends && session->sink != NULL && status == RFX_OK; e++)
        if (rfx_session_stores(session, graph->ends[e].node))
            status = give_stored(session, &graph->ends[e], err);
    return status;
}

/* Writes a part of a map to its file, or reads it from there. */
static enum rfx_status move_rows(const struct rfx_session *session, struct rfx_team *team,
                                 const struct rfx_step *step, struct rfx_error *err) {
    struct rfx_view view = rfx_session_view(session, step->node);
    if (step->kind == RFX_STEP_SPILL)
        return rfx_spill_write(session->spill, team, step->node, step->rect, &view, err);
    return rfx_spill_fetch(session->spill, team, step->node, step->rect, &view, err);
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
    int64_t rows = rfx_max_i64(session->plan->window_rows, 1);
    enum rfx_status status = rfx_spill_begin(session->spill, err);
    if (status == RFX_OK) status = rfx_image_set_window(image, rows, err);
    return status == RFX_OK ? rfx_image_rewind(image, err) : status;
}

struct load {
    const struct rfx_session *session;
    int stage;
};

static void *place_of_load(void *user, int node) {
    const struct load *load = user;
    return packed_of(load->session, load->stage, node);
}

/* Packs a node's constants for its stage, with the workspace as temporary buffer. */
static enum rfx_status load_weights(const struct rfx_session *session, struct rfx_team *team,
                                    const struct rfx_step *step, struct rfx_error *err) {
    struct load load = {session, step->stage};
    struct rfx_pack_nodes nodes = {.graph = session->graph,
                                   .first = step->node,
                                   .last = step->node + 1,
                                   .at = place_of_load,
                                   .user = &load,
                                   .temp = session->scratch};
    return rfx_pack_share(team, &nodes, err);
}

static enum rfx_status run_step(struct rfx_session *session, struct rfx_image *image,
                                struct rfx_team *team, const struct rfx_step *step,
                                struct rfx_error *err) {
    switch (step->kind) {
        case RFX_STEP_LOAD:
            return load_weights(session, team, step, err);
        case RFX_STEP_REDUCE_BEGIN:
        case RFX_STEP_REDUCE_ADD:
        case RFX_STEP_REDUCE_FINISH:
            run_reduction(session, team, step);
            return RFX_OK;
        case RFX_STEP_KEEP:
            keep_rows(session, team, step);
            return RFX_OK;
        case RFX_STEP_EMIT:
            return emit(session, step, err);
        case RFX_STEP_SPILL:
        case RFX_STEP_FETCH:
            return move_rows(session, team, step, err);
        case RFX_STEP_RUN:
            break;
    }
    if (step->node != session->graph->input) {
        run_node(session, team, step);
        return RFX_OK;
    }
    enum rfx_status status = step->restart ? rfx_image_rewind(image, err) : RFX_OK;
    return status == RFX_OK ? read_image(session, image, team, step->rect, err) : status;
}

static enum rfx_status fail_stopped(const struct rfx_step *step, struct rfx_error *err) {
    return rfx_fail(err, RFX_STATUS_CANCELLED, "stopped after %lld of %lld parts",
                    (long long)step->unit, (long long)step->n_units);
}

static enum rfx_status run_step_observed(struct rfx_session *session, struct rfx_image *image,
                                         struct rfx_team *team, const struct rfx_step *step,
                                         struct rfx_error *err) {
    const struct rfx_step_observer *observer = session->observer;
    double start = observer != NULL ? rfx_clock_seconds(CLOCK_MONOTONIC) : 0.0;
    enum rfx_status status = run_step(session, image, team, step, err);
    if (status == RFX_OK && rfx_team_is_stopped(team)) status = fail_stopped(step, err);
    if (status == RFX_OK && observer != NULL)
        observer->step(observer->user, step, rfx_clock_seconds(CLOCK_MONOTONIC) - start);
    return status;
}

/* The data that the steps of a run share, and the status with which they ended. */
struct run {
    struct rfx_session *session;
    struct rfx_image *image;
    rfx_progress_fn *progress;
    void *user;
    struct rfx_error *err;
    struct rfx_run_report report;
    int64_t n_units; /* total that progress receives */
    enum rfx_status status;
};

static bool is_stop_wanted(void *user) {
    const struct rfx_session *session = user;
    return rfx_memory_is_stopped(session->mem);
}

/* Runs all steps within one team, so that threads are started once per run. A step of a large map
 * takes seconds, so the team also checks within steps whether the run is to stop. */
static void run_steps(struct rfx_team *team, void *user) {
    struct run *run = user;
    struct rfx_session *session = run->session;
    struct rfx_step step;
    rfx_team_set_stop(team, is_stop_wanted, session);
    while (run->status == RFX_OK && rfx_schedule_next(session->schedule, &step)) {
        run->n_units = step.n_units;
        if (run->progress != NULL && run->progress(run->user, step.unit, step.n_units) != 0) {
            run->status = fail_stopped(&step, run->err);
            return;
        }
        rfx_session_count_step(session, &step, &run->report);
        rfx_session_guard_step(session, &step);
        rfx_spill_enter_stage(session->spill, step.stage);
        run->status = run_step_observed(session, run->image, team, &step, run->err);
        rfx_session_guard_all(session);
    }
}

enum rfx_status rfx_session_run(struct rfx_session *session, struct rfx_image *image,
                                rfx_progress_fn *progress, void *user,
                                struct rfx_run_report *report, struct rfx_error *err) {
    double start = rfx_clock_seconds(CLOCK_MONOTONIC);
    enum rfx_status status = prepare_source(session, image, err);
    if (status != RFX_OK) return status;
    rfx_schedule_rewind(session->schedule);
    struct run run = {.session = session,
                      .image = image,
                      .progress = progress,
                      .user = user,
                      .err = err,
                      .n_units = 1};
    rfx_team_run(session->plan->threads, run_steps, &run);
    rfx_spill_enter_stage(session->spill, session->plan->n_stages); /* closes all files */
    if (run.status != RFX_OK) return run.status;
    rfx_session_guard_nothing(session);
    status = give_all_stored(session, err);
    if (status != RFX_OK) return status;
    if (progress != NULL) (void)progress(user, run.n_units, run.n_units);
    run.report.seconds = rfx_clock_seconds(CLOCK_MONOTONIC) - start;
    if (report != NULL) *report = run.report;
    return RFX_OK;
}
