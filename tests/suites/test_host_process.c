/* The library in a program of someone else's: what may be shared between threads is, and settings
 * of the process are after a run what they were before, however it ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <cblas.h>
#include <omp.h>
#include <pthread.h>

#include "rfexec/image/image_source.h"
#include "rfexec/output/fingerprint.h"
#include "rfexec/output/output_sink.h"
#include "rfexec/run/model.h"
#include "rfexec/run/session.h"
#include "tests/support/test_util.h"
#include "tiler/modes/modes.h"

#define HOST_THREADS 3 /* what the program around the library has chosen */
#define WORKERS 2
#define RUNS 3
#define IMAGE "synthetic:96x80"

static void set_host(void) {
    omp_set_num_threads(HOST_THREADS);
    openblas_set_num_threads(HOST_THREADS);
}

static void assert_host(void) {
    assert_int_equal(omp_get_max_threads(), HOST_THREADS);
    assert_int_equal(openblas_get_num_threads(), HOST_THREADS);
}

static struct rfx_graph *load(struct rfx_memory *mem, const char *model) {
    const struct rfx_load_options options = {.h = 96, .w = 80};
    struct rfx_graph *graph = NULL;
    struct rfx_error err = {{0}};
    if (rfx_model_load(mem, model, &options, &graph, &err) != RFX_OK) fail_msg("%s", err.text);
    return graph;
}

/* One worker: a session and an image of its own, on a graph and a plan that all workers share. */
struct worker {
    const struct rfx_graph *graph;
    const struct rfx_plan *plan;
    struct rfx_plan_request request; /* that the plan was made for */
    size_t peak_bytes;               /* of a plan of the worker's own for it */
    char hex[RUNS][RFX_FINGERPRINT_CHARS];
    int host_threads;
    struct rfx_error err;
};

static enum rfx_status add_piece(void *user, const struct rfx_end *end, struct rfx_rect rect,
                                 const struct rfx_view *view, struct rfx_error *err) {
    (void)err;
    if (end->output == 0) rfx_fingerprint_add_end(user, end, rect, view);
    return RFX_OK;
}

static void *work(void *argument) {
    struct worker *w = argument;
    struct rfx_session *session = NULL;
    struct rfx_image *image = NULL;
    struct rfx_plan *again = NULL;
    omp_set_num_threads(HOST_THREADS);
    enum rfx_status status = rfx_plan_create(w->graph, &w->request, &again, &w->err);
    if (status == RFX_OK) w->peak_bytes = again->peak_bytes;
    rfx_plan_free(again);
    if (status == RFX_OK) status = rfx_image_open(w->graph->mem, IMAGE, NULL, &image, &w->err);
    if (status == RFX_OK)
        status = rfx_session_create(w->plan, NULL, w->graph->mem, &session, &w->err);
    for (int run = 0; run < RUNS && status == RFX_OK; run++) {
        struct rfx_fingerprint fp = {0};
        const struct rfx_output_sink sink = {.write = add_piece, .user = &fp};
        rfx_session_set_sink(session, &sink);
        status = rfx_session_run(session, image, NULL, NULL, NULL, &w->err);
        rfx_fingerprint_hex(&fp, w->hex[run]);
        rfx_session_set_sink(session, NULL);
    }
    w->host_threads = omp_get_max_threads();
    rfx_session_free(session);
    rfx_image_free(image);
    return NULL;
}

/* Two sessions of one plan at the same time give what one gives alone. */
static void check_shared(const struct rfx_graph *graph, int threads, bool by_stage) {
    struct rfx_plan *plan = NULL;
    struct worker alone = {.graph = graph}, workers[WORKERS];
    alone.request =
        (struct rfx_plan_request){.source = {.h = 96, .w = 80, .c = 3, .random_access = true},
                                  .threads = threads,
                                  .asked = {.weights_by_stage = by_stage}};
    if (rfx_plan_create(graph, &alone.request, &plan, &alone.err) != RFX_OK)
        fail_msg("%s", alone.err.text);
    alone.plan = plan;
    pthread_t started[WORKERS];
    (void)work(&alone);
    if (alone.err.text[0] != '\0') fail_msg("%s", alone.err.text);
    set_host();
    for (int i = 0; i < WORKERS; i++) {
        workers[i] = (struct worker){.graph = graph, .plan = plan, .request = alone.request};
        assert_int_equal(pthread_create(&started[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < WORKERS; i++) assert_int_equal(pthread_join(started[i], NULL), 0);
    for (int i = 0; i < WORKERS; i++) {
        if (workers[i].err.text[0] != '\0') fail_msg("%s", workers[i].err.text);
        for (int run = 0; run < RUNS; run++) assert_string_equal(workers[i].hex[run], alone.hex[0]);
        assert_int_equal(workers[i].peak_bytes, plan->peak_bytes);
        assert_int_equal(workers[i].host_threads, HOST_THREADS);
    }
    assert_host();
    rfx_plan_free(plan);
}

static void sessions_share_graph_and_plan(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = load(mem, "resnet18");
    for (int threads = 1; threads <= 2; threads++) check_shared(graph, threads, false);
    rfx_graph_free(graph);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

/* The weights of a model file are read by both at a time, in every run anew. */
static void sessions_share_a_model_file(void **state) {
    (void)state;
    static const char path[] = "host_process.onnx";
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = load(mem, "squeezenet1_1");
    struct rfx_error err = {{0}};
    if (rfx_onnx_export(graph, path, &err) != RFX_OK) fail_msg("%s", err.text);
    rfx_graph_free(graph);
    graph = load(mem, path);
    for (int threads = 1; threads <= 2; threads++) check_shared(graph, threads, true);
    rfx_graph_free(graph);
    (void)unlink(path);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

static int stop_half_way(void *user, int64_t done, int64_t total) {
    (void)user;
    (void)total;
    return done > 0;
}

static enum rfx_status refuse_rows(void *user, const struct rfx_end *end, struct rfx_rect rect,
                                   const struct rfx_view *view, struct rfx_error *err) {
    (void)user;
    (void)end;
    (void)rect;
    (void)view;
    return rfx_fail(err, RFX_STATUS_IO, "no room for rows");
}

/* Runs in tiles that end early, and one that goes through. */
static void settings_survive_runs_that_end_early(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = load(mem, "fsrcnn");
    const struct rfx_tensor *input = &graph->nodes[graph->input].out;
    struct rfx_plan_request request = {
        .source = {.h = input->h, .w = input->w, .c = input->c, .random_access = true},
        .threads = 2,
        .asked = rfx_ask_bands(8, 1),
        .emit_outputs = true};
    float *pixels = test_floats(input->elems);
    memset(pixels, 0, (size_t)input->elems * sizeof *pixels);
    struct rfx_plan *plan = NULL;
    struct rfx_session *session = NULL;
    struct rfx_image *image = NULL;
    struct rfx_error err = {{0}};
    const struct rfx_output_sink sink = {.write = refuse_rows};
    set_host();
    if (rfx_plan_create(graph, &request, &plan, &err) != RFX_OK ||
        rfx_image_from_array(mem, pixels, input->c, input->h, input->w, &image, &err) != RFX_OK ||
        rfx_session_create(plan, NULL, graph->mem, &session, &err) != RFX_OK)
        fail_msg("%s", err.text);
    assert_host();
    assert_int_equal(rfx_session_run(session, image, stop_half_way, NULL, NULL, &err),
                     RFX_STATUS_CANCELLED);
    assert_host();
    rfx_session_set_sink(session, &sink);
    assert_int_equal(rfx_session_run(session, image, NULL, NULL, NULL, &err), RFX_STATUS_IO);
    assert_host();
    rfx_session_free(session);
    assert_host();
    rfx_image_free(image);
    rfx_plan_free(plan);
    rfx_graph_free(graph);
    free(pixels);
    rfx_memory_free(mem);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sessions_share_graph_and_plan),
        cmocka_unit_test(sessions_share_a_model_file),
        cmocka_unit_test(settings_survive_runs_that_end_early),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
