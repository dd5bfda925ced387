/* Receptive fields, jumps, paddings and live memory of hand-made networks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rf_analysis/analysis.h"
#include "tests/support/random/small_nets.h"

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

/* Rows in reverse order, then 3 x 1: output 0 reads rows 12 (padding), 11 and 10 of the image. */
static void mirrored(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = NULL;
    struct rfx_analysis *analysis = NULL;
    struct rfx_error err;
    int at = -1;
    assert_int_equal(rfx_graph_create(mem, "mirrored", &graph, &err), RFX_OK);
    struct rfx_node image = {.op = RFX_OP_INPUT, .name = "in", .attr.input = {2, 12, 9}};
    assert_int_equal(rfx_graph_add(graph, &image, &at, &err), RFX_OK);
    struct rfx_node crop = {.op = RFX_OP_CROP, .name = "flip", .n_in = 1, .in = &at};
    crop.attr.crop.y0 = 11;
    crop.attr.crop.sy = -1;
    crop.attr.crop.sx = 1;
    crop.attr.crop.oh = 12;
    crop.attr.crop.ow = 9;
    int flip = -1, pool = -1;
    assert_int_equal(rfx_graph_add(graph, &crop, &flip, &err), RFX_OK);
    struct rfx_node max = {.op = RFX_OP_POOL_MAX, .name = "max", .n_in = 1, .in = &flip};
    max.attr.pool =
        (struct rfx_pool_attr){.kh = 3, .kw = 1, .sh = 2, .sw = 1, .dh = 1, .dw = 1, .pads.top = 1};
    assert_int_equal(rfx_graph_add(graph, &max, &pool, &err), RFX_OK);
    assert_int_equal(rfx_graph_add_output(graph, pool, "out", &err), RFX_OK);
    assert_int_equal(rfx_graph_finish(graph, NULL, &err), RFX_OK);
    assert_int_equal(rfx_analysis_create(graph, &analysis, &err), RFX_OK);
    const struct rfx_axis_field *rows = &analysis->layers[2].field[0];
    assert_int_equal(rows->size_px, 3);
    assert_int_equal(rows->jump.num, -2);
    assert_int_equal(rows->jump.den, 1);
    assert_int_equal(rows->padding_px, -10);
    assert_int_equal(rows->period, 1);
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
        cmocka_unit_test(mirrored),
        cmocka_unit_test(failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
