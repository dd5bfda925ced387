/* The observer of a session's steps: told of exactly the schedule's, in order. Weights that threads
 * pack together, when a session is made and within a run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "layers/graph/op.h"
#include "rfexec/run/session.h"
#include "tests/support/random/small_nets.h"
#include "tests/support/run/catch_outputs.h"
#include "tests/support/run/run_whole.h"
#include "tests/support/test_util.h"
#include "tiler/modes/modes.h"
#include "tiler/plan/schedule.h"

enum { SIZE = 24 };

struct witness {
    const struct rfx_graph *graph;
    struct rfx_schedule *schedule; /* walked beside the session's */
    int64_t steps;
    uint64_t macs;
    double seconds;
};

static void see_step(void *user, const struct rfx_step *step, double seconds) {
    struct witness *w = user;
    struct rfx_step want;
    assert_true(rfx_schedule_next(w->schedule, &want));
    assert_int_equal(step->kind, want.kind);
    assert_int_equal(step->stage, want.stage);
    assert_int_equal(step->node, want.node);
    assert_true(rfx_rect_equal(step->rect, want.rect));
    assert_true(seconds >= 0);
    if (step->kind == RFX_STEP_RUN)
        w->macs += rfx_op_macs(w->graph, &w->graph->nodes[step->node], step->rect);
    w->seconds += seconds;
    ++w->steps;
}

static struct rfx_image *open_image(struct rfx_memory *mem, const struct rfx_graph *graph,
                                    float **values) {
    const struct rfx_tensor *in = &graph->nodes[graph->input].out;
    struct test_rng rng = test_rng_make(1);
    struct rfx_image *image = NULL;
    *values = test_floats(in->elems);
    test_rng_fill(&rng, *values, in->elems, -1.0f, 1.0f);
    assert_int_equal(rfx_image_from_array(mem, *values, in->c, in->h, in->w, &image, NULL), RFX_OK);
    return image;
}

static void sees_every_step(const struct rfx_stage_spec *asked) {
    struct small_plan_case c = small_plan_case_begin(SIZE, SIZE);
    struct rfx_plan *plan = NULL;
    struct rfx_session *session = NULL;
    struct rfx_error err = {{0}};
    struct rfx_run_report report;
    struct witness w = {.graph = c.graph};
    const struct rfx_step_observer observer = {.step = see_step, .user = &w};
    float *values;
    c.request.asked = *asked;
    if (rfx_plan_create(c.graph, &c.request, &plan, &err) != RFX_OK) fail_msg("%s", err.text);
    struct rfx_image *image = open_image(c.mem, c.graph, &values);
    assert_int_equal(rfx_session_create(plan, NULL, c.graph->mem, &session, NULL), RFX_OK);
    assert_int_equal(rfx_schedule_create(plan, &w.schedule, NULL), RFX_OK);
    for (int run = 0; run < 2; run++) {
        struct rfx_step more;
        w.macs = 0;
        w.seconds = 0;
        rfx_schedule_rewind(w.schedule);
        rfx_session_set_observer(session, &observer);
        assert_int_equal(rfx_session_run(session, image, NULL, NULL, &report, NULL), RFX_OK);
        assert_false(rfx_schedule_next(w.schedule, &more));
        assert_int_equal(w.macs, plan->macs);
        assert_true(w.seconds > 0 && w.seconds <= report.seconds);
    }
    int64_t steps = w.steps;
    assert_true(steps > 2);
    rfx_session_set_observer(session, NULL);
    assert_int_equal(rfx_session_run(session, image, NULL, NULL, &report, NULL), RFX_OK);
    assert_int_equal(w.steps, steps);
    rfx_schedule_free(w.schedule);
    rfx_session_free(session);
    rfx_image_free(image);
    free(values);
    rfx_plan_free(plan);
    small_plan_case_end(&c);
}

static void of_a_whole_run(void **state) {
    const struct rfx_stage_spec asked = rfx_ask_whole();
    (void)state;
    sees_every_step(&asked);
}

static void of_tiles(void **state) {
    const struct rfx_stage_spec asked = rfx_ask_tiles(3, 2);
    (void)state;
    sees_every_step(&asked);
}

static void of_a_stream(void **state) {
    struct rfx_stage_spec asked = rfx_ask_bands(4, 0);
    (void)state;
    sees_every_step(&asked);
    asked.staging = true;
    asked.weights_by_stage = true;
    sees_every_step(&asked);
}

/* Outputs are handed out by steps too, and the one that fails is not reported as done. */
static enum rfx_status refuse(void *user, const struct rfx_end *end, struct rfx_rect rect,
                              const struct rfx_view *view, struct rfx_error *err) {
    (void)end, (void)rect, (void)view;
    *(int *)user += 1;
    return rfx_fail(err, RFX_STATUS_IO, "full");
}

static void count_step(void *user, const struct rfx_step *step, double seconds) {
    (void)seconds;
    assert_int_not_equal(step->kind, RFX_STEP_EMIT);
    ++*(int *)user;
}

static void a_failed_step_is_none(void **state) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = small_net_two_convs(mem, SIZE, SIZE);
    struct rfx_plan_request request = {
        .source = {.h = SIZE, .w = SIZE, .c = 2, .random_access = true},
        .threads = 1,
        .asked = rfx_ask_bands(4, 0),
        .emit_outputs = true};
    struct rfx_plan *plan = NULL;
    struct rfx_session *session = NULL;
    int refused = 0, seen = 0;
    const struct rfx_output_sink sink = {.write = refuse, .user = &refused};
    const struct rfx_step_observer observer = {.step = count_step, .user = &seen};
    float *values;
    (void)state;
    assert_int_equal(rfx_plan_create(graph, &request, &plan, NULL), RFX_OK);
    struct rfx_image *image = open_image(mem, graph, &values);
    assert_int_equal(rfx_session_create(plan, NULL, graph->mem, &session, NULL), RFX_OK);
    rfx_session_set_sink(session, &sink);
    rfx_session_set_observer(session, &observer);
    assert_int_equal(rfx_session_run(session, image, NULL, NULL, NULL, NULL), RFX_STATUS_IO);
    assert_int_equal(refused, 1);
    assert_true(seen > 0);
    rfx_session_free(session);
    rfx_image_free(image);
    free(values);
    rfx_plan_free(plan);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

/* Makes a session although the allocator fails: once for every allocation, then without. */
static struct rfx_session *session_in_the_end(const struct rfx_graph *graph,
                                              const struct rfx_plan *plan) {
    struct rfx_session *session = NULL;
    size_t before = rfx_memory_current_bytes(graph->mem);
    for (int64_t k = 0;; k++) {
        struct rfx_error err = {{0}};
        rfx_memory_fail_after(graph->mem, k);
        enum rfx_status status = rfx_session_create(plan, NULL, graph->mem, &session, &err);
        rfx_memory_fail_after(graph->mem, -1);
        if (status == RFX_OK) return session;
        assert_int_equal(status, RFX_STATUS_OUT_OF_MEMORY);
        assert_int_equal(rfx_memory_current_bytes(graph->mem), before);
    }
}

/* SqueezeNet has layers of several parts. */
static void threads_pack_the_same_weights(void **state) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = test_builtin(mem, "squeezenet1_1", 40, 40, 3, NULL);
    struct rfx_plan_request request = {.source = {.h = 40, .w = 40, .c = 3, .random_access = true},
                                       .asked = rfx_ask_whole()};
    struct test_prepared prepared;
    float *values, *nhwc = test_floats(40 * 40 * 3);
    float **want = calloc((size_t)graph->n_nodes, sizeof *want);
    (void)state;
    assert_non_null(want);
    struct rfx_image *image = open_image(mem, graph, &values);
    test_nchw_to_nhwc(values, nhwc, 3, 40, 40);
    assert_true(test_prepare(graph, 1, &prepared));
    test_run_whole(&prepared, nhwc, want);
    for (int way = 0; way < 6; way++) {
        struct rfx_plan *plan = NULL;
        struct rfx_session *session;
        struct caught_outputs caught;
        request.threads = 1 + way / 2;
        request.asked.weights_by_stage = way % 2 == 0;
        assert_int_equal(rfx_plan_create(graph, &request, &plan, NULL), RFX_OK);
        session = session_in_the_end(graph, plan);
        catch_outputs(&caught, graph);
        rfx_session_set_sink(session, &caught.sink);
        for (int run = 0; run < 2; run++) {
            memset(caught.values[0], 0, 1000 * sizeof(float));
            assert_int_equal(rfx_session_run(session, image, NULL, NULL, NULL, NULL), RFX_OK);
            assert_int_equal(caught.received[0], (run + 1) * 1000);
            assert_memory_equal(caught.values[0], want[graph->outputs[0].node],
                                1000 * sizeof(float));
        }
        caught_outputs_free(&caught);
        rfx_session_free(session);
        rfx_plan_free(plan);
    }
    test_prepared_free(&prepared);
    test_run_whole_free(graph, want);
    free(want);
    free(nhwc);
    free(values);
    rfx_image_free(image);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_a_whole_run),
        cmocka_unit_test(of_tiles),
        cmocka_unit_test(of_a_stream),
        cmocka_unit_test(a_failed_step_is_none),
        cmocka_unit_test(threads_pack_the_same_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
