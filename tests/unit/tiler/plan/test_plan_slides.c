/* Maps that a streamed stage writes over those that die in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/test_net.h"
#include "tiler/modes/modes.h"
#include "tiler/plan/plan.h"
#include "tiler/plan/plan_check.h"

enum { CHANNELS = 16, SIDE = 64, MAP_BYTES = CHANNELS * SIDE * SIDE * 4 };

static struct rfx_node element(enum rfx_act_kind kind) {
    return (struct rfx_node){.op = RFX_OP_ACTIVATION, .act = {kind, 0, 0, -1}};
}

static int sum(const struct test_net *net, int a, int b) {
    struct rfx_node node = {.op = RFX_OP_BINARY, .act = {.slope = -1}};
    node.attr.binary.kind = RFX_BINARY_ADD;
    return test_net_put(net, node, a, b);
}

/* Two maps of the image, which die where two others are made of them: each of these may lie over
 * one of those, so that two maps are there at a time, and what rows lag. */
static void two_maps_take_the_place_of_two(void **state) {
    (void)state;
    static const struct rfx_fuse_options nothing = {0};
    struct test_net net = test_net_begin(CHANNELS, SIDE, SIDE);
    int a = test_net_put(&net, element(RFX_ACT_SIGMOID), 0, -1);
    int b = test_net_put(&net, element(RFX_ACT_TANH), 0, -1);
    int c = sum(&net, a, b), d = test_net_put(&net, element(RFX_ACT_TANH), c, -1);
    int last = sum(&net, c, d);
    assert_int_equal(rfx_graph_add_output(net.graph, last, "out", NULL), RFX_OK);
    assert_int_equal(rfx_graph_finish(net.graph, &nothing, NULL), RFX_OK);
    const int targets[3][2] = {{a, b}, {c, d}, {last, -1}};
    struct rfx_stage_spec stages[3];
    for (int s = 0; s < 3; s++)
        stages[s] = (struct rfx_stage_spec){.mode = &rfx_mode_streamed,
                                            .tiles_y = 1,
                                            .tiles_x = 1,
                                            .band_rows = 2,
                                            .row_by_row = true,
                                            .n_targets = s < 2 ? 2 : 1,
                                            .targets = targets[s]};
    const struct rfx_plan_request request = {
        .stages = stages,
        .n_stages = 3,
        .threads = 1,
        .emit_outputs = true,
        .source = {.h = SIDE, .w = SIDE, .c = CHANNELS, .random_access = true}};
    struct rfx_plan *plan = NULL;
    struct rfx_error err = {""};
    char why[300];
    if (rfx_plan_create(net.graph, &request, &plan, &err) != RFX_OK) fail_msg("%s", err.text);
    if (!rfx_plan_check(plan, why, sizeof why)) fail_msg("%s", why);
    assert_in_range(plan->bytes.arena, 2 * MAP_BYTES, 2 * MAP_BYTES + MAP_BYTES / 4);
    rfx_plan_free(plan);
    test_net_end(&net);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(two_maps_take_the_place_of_two)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
