/* Tiles without halos: one tile is the whole image and must give its bits, several must not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "layers/core/memory.h"
#include "layers/graph/graph.h"
#include "rfexec/image/image_source.h"
#include "rfexec/run/model.h"
#include "rfexec/run/session.h"
#include "tests/support/run/catch_outputs.h"
#include "tiler/modes/modes.h"
#include "tiler/plan/plan.h"
#include "tools/commands/naive_tiles.h"

static const char model[] = "mobilenet_v2:0.25";

struct setting {
    struct rfx_memory *mem;
    struct rfx_image *image;
    struct rfx_graph *graph;
    struct rfx_plan *plan;
    struct rfx_error err;
};

static void check(enum rfx_status status, const struct rfx_error *err) {
    if (status != RFX_OK) fail_msg("%s", err->text);
}

static void setting_open(struct setting *s, const char *spec, int64_t h, int64_t w,
                         struct rfx_plan_request request) {
    struct rfx_image_options options = rfx_image_default_options();
    struct rfx_load_options load = {.h = h, .w = w};
    *s = (struct setting){.mem = rfx_memory_create(0)};
    assert_non_null(s->mem);
    check(rfx_image_open(s->mem, spec, &options, &s->image, &s->err), &s->err);
    check(rfx_model_load(s->mem, model, &load, &s->graph, &s->err), &s->err);
    request.source = rfx_image_traits(s->image);
    request.threads = 1;
    check(rfx_plan_create(s->graph, &request, &s->plan, &s->err), &s->err);
}

static void setting_close(struct setting *s) {
    rfx_plan_free(s->plan);
    rfx_graph_free(s->graph);
    rfx_image_free(s->image);
    rfx_memory_free(s->mem);
}

/* Elements of the class vector that differ from the session's run of the same plan. */
static int count_wrong(struct setting *s, const struct rfx_naive_tiles *naive) {
    struct rfx_session *session = NULL;
    struct caught_outputs caught;
    int wrong = 0;
    check(rfx_session_create(s->plan, NULL, s->graph->mem, &session, &s->err), &s->err);
    catch_outputs(&caught, s->graph);
    rfx_session_set_sink(session, &caught.sink);
    check(rfx_session_run(session, s->image, NULL, NULL, NULL, &s->err), &s->err);
    assert_int_equal(caught.received[0], 1000);
    const float *truth = caught.values[0];
    for (int i = 0; i < 1000; ++i)
        wrong += memcmp(&truth[i], &naive->outputs[0][i], sizeof truth[i]) != 0;
    caught_outputs_free(&caught);
    rfx_session_free(session);
    return wrong;
}

static void run_case(int64_t h, int64_t w, const char *spec, int64_t rows, int64_t cols,
                     bool identical) {
    struct setting s;
    struct rfx_naive_tiles *naive = NULL;
    struct rfx_load_options load = {0};
    setting_open(
        &s, spec, h, w,
        (struct rfx_plan_request){.asked = rfx_ask_tiles(rows, cols), .split = "features.6"});
    check(rfx_naive_tiles_run(s.plan, model, &load, s.image, &naive, &s.err), &s.err);
    assert_int_equal(naive->tiles, rows * cols);
    assert_int_equal(naive->n_outputs, 1);
    int wrong = count_wrong(&s, naive);
    if (identical)
        assert_int_equal(wrong, 0);
    else
        assert_true(wrong > 500);
    rfx_naive_tiles_free(naive);
    setting_close(&s);
}

static void test_one_tile_has_no_seams(void **state) {
    (void)state;
    run_case(64, 96, "synthetic:64x96", 1, 1, true);
    run_case(77, 61, "synthetic:77x61:5", 1, 1, true);
}

static void test_several_tiles_have_seams(void **state) {
    (void)state;
    run_case(128, 96, "synthetic:128x96", 2, 1, false);
    run_case(101, 131, "synthetic:101x131", 3, 4, false);
}

static void test_untiled_plan_is_refused(void **state) {
    struct setting s;
    struct rfx_naive_tiles *naive = NULL;
    struct rfx_load_options load = {0};
    (void)state;
    setting_open(&s, "synthetic:64x64", 64, 64,
                 (struct rfx_plan_request){.asked = rfx_ask_whole()});
    assert_int_equal(rfx_naive_tiles_run(s.plan, model, &load, s.image, &naive, &s.err),
                     RFX_STATUS_INVALID_ARGUMENT);
    assert_null(naive);
    setting_close(&s);
}

/* Each failing allocation gives OUT_OF_MEMORY and leaks nothing (rfx_memory_free asserts it). */
static void test_out_of_memory(void **state) {
    struct setting s;
    struct rfx_load_options load = {0};
    (void)state;
    setting_open(&s, "synthetic:64x64", 64, 64,
                 (struct rfx_plan_request){.asked = rfx_ask_tiles(2, 2), .split = "features.6"});
    enum rfx_status status = RFX_STATUS_OUT_OF_MEMORY;
    for (int64_t k = 0; status != RFX_OK; k += 1 + k / 8) {
        struct rfx_naive_tiles *naive = NULL;
        size_t before = rfx_memory_current_bytes(s.mem);
        rfx_memory_fail_after(s.mem, k);
        status = rfx_naive_tiles_run(s.plan, model, &load, s.image, &naive, &s.err);
        rfx_memory_fail_after(s.mem, -1);
        rfx_naive_tiles_free(naive);
        if (status != RFX_OK) assert_int_equal(status, RFX_STATUS_OUT_OF_MEMORY);
        assert_true(rfx_memory_current_bytes(s.mem) <= before + 4096); /* the image's window */
        assert_true(k < 100000);
    }
    setting_close(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_tile_has_no_seams),
        cmocka_unit_test(test_several_tiles_have_seams),
        cmocka_unit_test(test_untiled_plan_is_refused),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests_name("naive_tiles", tests, NULL, NULL);
}
