/* Burst: one session, many runs. After the first run nothing is allocated, and every run gives the
 * same bits, with pages given back between runs or not, whatever the plan. */
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
#include "tests/support/test_util.h"
#include "tiler/modes/modes.h"
#include "tiler/plan/plan.h"

#define RUNS 100
#define CLASSES 1000

static void burst(struct rfx_plan_request request) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_load_options load = {.h = 97, .w = 65, .conv = test_conv_choice()};
    struct rfx_graph *graph = NULL;
    struct rfx_plan *plan = NULL;
    struct rfx_session *session = NULL;
    struct rfx_image *image = NULL;
    struct rfx_error err = {{0}};
    struct caught_outputs caught;
    float first[CLASSES];
    assert_int_equal(rfx_model_load(mem, "mobilenet_v2:0.25", &load, &graph, &err), RFX_OK);
    assert_int_equal(rfx_image_open(mem, "synthetic:97x65", NULL, &image, &err), RFX_OK);
    request.source = rfx_image_traits(image);
    request.threads = 2;
    if (rfx_plan_create(graph, &request, &plan, &err) != RFX_OK) fail_msg("%s", err.text);
    if (rfx_session_create(plan, NULL, graph->mem, &session, &err) != RFX_OK)
        fail_msg("%s", err.text);
    catch_outputs(&caught, graph);
    rfx_session_set_sink(session, &caught.sink);
    uint64_t allocations = 0;
    for (int run = 0; run < RUNS; run++) {
        if (rfx_session_run(session, image, NULL, NULL, NULL, &err) != RFX_OK)
            fail_msg("%s", err.text);
        assert_int_equal(caught.received[0], (run + 1) * CLASSES);
        if (run == 0) memcpy(first, caught.values[0], sizeof first);
        if (run == 0) allocations = rfx_memory_allocation_count(mem);
        if (run > 0) assert_memory_equal(first, caught.values[0], sizeof first);
        if (run % 3 == 2) rfx_session_give_back(session);
    }
    assert_int_equal(rfx_memory_allocation_count(mem), allocations);
    caught_outputs_free(&caught);
    rfx_session_free(session);
    rfx_plan_free(plan);
    rfx_image_free(image);
    rfx_graph_free(graph);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

static void untiled(void **state) {
    (void)state;
    burst((struct rfx_plan_request){.asked = rfx_ask_whole()});
}

static void tiled(void **state) {
    (void)state;
    burst((struct rfx_plan_request){.asked = rfx_ask_tiles(3, 2)});
}

static void tight_strips(void **state) {
    (void)state;
    struct rfx_plan_request request = {.asked = rfx_ask_bands(4, 2)};
    request.asked.staging = request.asked.weights_by_stage = true;
    burst(request);
}

static void row_by_row(void **state) {
    (void)state;
    struct rfx_plan_request request = {.asked = rfx_ask_whole()};
    request.asked.row_by_row = request.asked.weights_by_stage = true;
    burst(request);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(untiled),
        cmocka_unit_test(tiled),
        cmocka_unit_test(tight_strips),
        cmocka_unit_test(row_by_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
