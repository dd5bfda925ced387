/* Receptive fields, jumps, paddings and live memory of hand-made networks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rf_analysis/analysis.h"
#include "tests/support/small_nets.h"

static void check_field(const struct rfx_layer_info *layer, int64_t size, int64_t jump,
                        int64_t padding) {
    assert_false(layer->global);
    for (int axis = 0; axis < 2; axis++) {
        assert_int_equal(layer->field[axis].size_px, size);
        assert_int_equal(layer->field[axis].jump.num, jump);
        assert_int_equal(layer->field[axis].jump.den, 1);
        assert_int_equal(layer->field[axis].padding_px, padding);
    }
}

/* 3x3 stride 2, then 3x3: field 3 + 2 * 2 = 7, padding 1 + 2 * 1 = 3. */
static void chain(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = small_net_two_convs(mem, 16, 20);
    struct rfx_analysis *analysis = NULL;
    struct rfx_error err;
    assert_int_equal(rfx_analysis_create(graph, &analysis, &err), RFX_OK);
    check_field(&analysis->layers[0], 1, 1, 0);
    check_field(&analysis->layers[1], 3, 2, 1);
    check_field(&analysis->layers[2], 7, 2, 3);
    assert_int_equal(analysis->layers[1].macs, 8 * 10 * 4 * 2 * 9);
    assert_int_equal(analysis->layers[1].params, 4 * 2 * 9);
    assert_int_equal(analysis->params, 4 * 2 * 9 + 3 * 4 * 9);
    rfx_analysis_free(analysis);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

/* The join sees what its wider branch sees; after the global pool everything. */
static void join(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = small_net_residual(mem, 12, 12);
    struct rfx_analysis *analysis = NULL;
    struct rfx_error err;
    assert_int_equal(rfx_analysis_create(graph, &analysis, &err), RFX_OK);
    check_field(&analysis->layers[1], 3, 1, 1); /* a */
    check_field(&analysis->layers[2], 5, 1, 2); /* b */
    check_field(&analysis->layers[3], 5, 1, 2); /* sum */
    check_field(&analysis->layers[4], 7, 2, 3); /* c */
    assert_true(analysis->layers[5].global);
    /* while sum is made, a, b and sum are alive: three maps of 12 x 12 x 4 floats */
    assert_int_equal(analysis->layers[3].live_bytes, 3 * 12 * 12 * 4 * 4);
    assert_int_equal(analysis->peak_live_bytes, 3 * 12 * 12 * 4 * 4);
    assert_int_equal(analysis->peak_layer, 3);
    rfx_analysis_free(analysis);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

static void failing_allocations(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = small_net_residual(mem, 12, 12);
    for (int64_t k = 0;; k++) {
        struct rfx_analysis *analysis = NULL;
        struct rfx_error err;
        size_t before = rfx_memory_current_bytes(mem);
        rfx_memory_fail_after(mem, k);
        enum rfx_status status = rfx_analysis_create(graph, &analysis, &err);
        rfx_memory_fail_after(mem, -1);
        rfx_analysis_free(analysis);
        assert_int_equal(rfx_memory_current_bytes(mem), before);
        if (status == RFX_OK) break;
        assert_int_equal(status, RFX_STATUS_OUT_OF_MEMORY);
        assert_true(k < 20);
    }
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chain),
        cmocka_unit_test(join),
        cmocka_unit_test(failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
