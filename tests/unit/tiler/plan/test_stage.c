/* Targets that stages cannot have, in words; those that they must have instead. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/test_util.h"
#include "tiler/modes/modes.h"
#include "tiler/plan/plan.h"
#include "tiler/plan/plan_check.h"

/* A join of maps is no target; the maps are, and all of them have to be. */
static void joined_outputs_are_made_by_their_maps(void **state) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = test_builtin(mem, "yolov8n", 96, 64, 1, NULL);
    int join = graph->outputs[0].node, maps[3];
    struct rfx_stage_spec spec = {.mode = &rfx_mode_whole, .parts_y = 1, .parts_x = 1};
    struct rfx_plan_request request = {
        .stages = &spec, .n_stages = 1, .threads = 1, .emit_outputs = true};
    struct rfx_plan *plan = NULL;
    struct rfx_error err = {""};
    char why[300];
    (void)state;
    request.source = (struct rfx_source_traits){.h = 96, .w = 64, .c = 3, .random_access = true};
    spec.targets = &join;
    spec.n_targets = 1;
    assert_int_equal(rfx_plan_create(graph, &request, &plan, &err), RFX_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "'model.22' is joined of maps, which are targets instead"));
    assert_int_equal(graph->n_ends, 3);
    for (int e = 0; e < 3; e++) maps[e] = graph->ends[e].node;
    spec.targets = maps;
    spec.n_targets = 2;
    assert_int_equal(rfx_plan_create(graph, &request, &plan, &err), RFX_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "is no target of any stage"));
    spec.n_targets = 3;
    for (int streamed = 0; streamed < 2; streamed++) {
        spec.mode = streamed ? &rfx_mode_streamed : &rfx_mode_whole;
        spec.band_rows = streamed ? 32 : 0;
        if (rfx_plan_create(graph, &request, &plan, &err) != RFX_OK) fail_msg("%s", err.text);
        assert_true(rfx_plan_check(plan, why, sizeof why));
        for (int e = 0; e < 3; e++)
            assert_int_equal(plan->stages[0].places[maps[e]],
                             streamed ? RFX_PLACE_EMITTED : RFX_PLACE_STORED);
        assert_int_equal(plan->stages[0].places[join], RFX_PLACE_NONE);
        assert_int_equal(plan->stored[join].bytes, 0);
        rfx_plan_free(plan);
    }
    rfx_graph_free(graph);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(joined_outputs_are_made_by_their_maps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
