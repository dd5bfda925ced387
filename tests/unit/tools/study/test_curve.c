/* Curves: a small network by hand, the figures known of real networks, properties of the front. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "layers/graph/op.h"
#include "rf_analysis/regions.h"
#include "rfexec/run/model.h"
#include "tests/support/random/small_nets.h"
#include "tiler/plan/splits.h"
#include "tiler/plan/tiling.h"
#include "tools/study/curve.h"

static struct rfx_curve *curve_or_fail(const struct rfx_graph *graph, enum rfx_baseline baseline,
                                       int64_t tiles_y, int64_t tiles_x, bool pareto) {
    struct rfx_curve_request request = {baseline, tiles_y, tiles_x, pareto};
    struct rfx_curve *curve = NULL;
    struct rfx_error err = {{0}};
    if (rfx_curve_create(graph, &request, &curve, &err) != RFX_OK) fail_msg("%s", err.text);
    return curve;
}

static void assert_near(double value, double expected, double tolerance) {
    double off = value > expected ? value - expected : expected - value;
    if (off > tolerance) fail_msg("%.6f is not %.6f +- %.6f", value, expected, tolerance);
}

/* 12x12, two tiles of 6 rows over "sum" (node 3). A tile needs 6 rows of b, 7 of a (one halo row
 * is padding) and 8 of the image. Elements: image 8*12*2 = 192, a 7*12*4 = 336, b 6*12*4 = 288,
 * stitched sum 576. Head: image + a; a + b; a + b while sum is written into the stitched map: 624,
 * + 576 = 1200. Tail: sum + c = 576 + 108. Weights 324 elements. */
static void by_hand(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = small_net_residual(mem, 12, 12);
    struct rfx_curve *curve = curve_or_fail(graph, RFX_BASELINE_FUSED, 2, 1, false);
    assert_int_equal(curve->n_points, 3); /* a, sum, c: at b two tensors are alive */
    assert_int_equal(curve->untiled.peak_bytes, 4 * (3 * 576 + 324));
    assert_int_equal(curve->untiled.macs, 144 * 72 + 144 * 144 + 36 * 108);
    const struct rfx_curve_point *p = &curve->points[1];
    assert_int_equal(p->split, 3);
    assert_int_equal(p->head_bytes, 4 * (1200 + 324));
    assert_int_equal(p->tail_bytes, 4 * (684 + 324));
    assert_int_equal(p->peak_bytes, p->head_bytes);
    assert_int_equal(p->peak_node, 2);
    assert_int_equal(p->macs, 2 * 7 * 12 * 72 + 144 * 144 + 36 * 108);
    size_t live[6];
    struct rfx_error err;
    assert_int_equal(rfx_curve_footprint(curve, p, live, &err), RFX_OK);
    static const size_t expected[] = {192, 528, 624, 624, 684, 111};
    for (int i = 0; i < 6; i++)
        assert_int_equal(live[i], 4 * (expected[i] + 324 + (i <= 3 ? 576 : 0)));
    assert_int_equal(rfx_curve_footprint(curve, NULL, live, &err), RFX_OK);
    assert_int_equal(live[3], 4 * (3 * 576 + 324));
    rfx_curve_free(curve);
    rfx_graph_free(graph);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

struct known {
    const char *model;
    enum rfx_baseline baseline;
    const char *split; /* NULL: any */
    double memory_ratio, memory_tolerance, macs_ratio;
    double untiled_mb, tiled_mb; /* 10^6 bytes; 0: not known */
};

/* Calculated apart from this library for 4x4 tiles at 1024x1024 (fused, weights counted). */
static const struct known known[] = {
    {"mobilenet_v2", RFX_BASELINE_FUSED, "features.6", 4.06, 0.02, 1.087, 139.8, 34.4},
    {"resnet50", RFX_BASELINE_FUSED, "layer3.0", 1.99, 0.02, 1.151, 303.4, 152.5},
    {"resnet18", RFX_BASELINE_FUSED, "layer3.0", 2.09, 0.02, 1.331, 130.6, 62.6},
};

static void check_known(const struct known *k) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_fuse_options fuse = rfx_baseline_fuse(k->baseline);
    struct rfx_load_options load = {.h = 1024, .w = 1024, .fuse = &fuse};
    struct rfx_graph *graph = NULL;
    struct rfx_error err = {{0}};
    if (rfx_model_load(mem, k->model, &load, &graph, &err) != RFX_OK) fail_msg("%s", err.text);
    struct rfx_curve *curve = curve_or_fail(graph, k->baseline, 4, 4, false);
    const struct rfx_curve_point *best = &curve->points[curve->best];
    assert_string_equal(rfx_split_label(graph, best->split), k->split);
    assert_near(rfx_curve_memory_ratio(curve, best), k->memory_ratio, k->memory_tolerance);
    assert_near(rfx_curve_macs_ratio(curve, best), k->macs_ratio, 0.003);
    assert_near((double)curve->untiled.peak_bytes * 1e-6, k->untiled_mb, 0.06);
    assert_near((double)best->peak_bytes * 1e-6, k->tiled_mb, 0.06);
    rfx_curve_free(curve);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

static void known_networks(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) check_known(&known[i]);
}

/* The paper's abstract has 5.3 for MobileNetV2 at 1024 with unfused, out-of-place layers. */
static void eager_mobilenet(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_fuse_options fuse = rfx_baseline_fuse(RFX_BASELINE_EAGER);
    struct rfx_load_options load = {.h = 1024, .w = 1024, .fuse = &fuse};
    struct rfx_graph *graph = NULL;
    struct rfx_error err = {{0}};
    assert_int_equal(rfx_model_load(mem, "mobilenet_v2", &load, &graph, &err), RFX_OK);
    struct rfx_curve *curve = curve_or_fail(graph, RFX_BASELINE_EAGER, 4, 4, false);
    /* two maps of 512 x 512 x 96 floats: a batch norm's input and output */
    assert_int_equal(curve->untiled.peak_bytes, 2 * 512 * 512 * 96 * 4 + 3504872 * 4);
    assert_true(rfx_curve_memory_ratio(curve, &curve->points[curve->best]) >= 5.3);
    rfx_curve_free(curve);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

/* One tile after the other, each with its own regions: the largest need of any of them and the MACs
 * of all. */
static void walk_tiles(const struct rfx_curve *curve, const struct rfx_curve_point *p,
                       size_t *head_bytes, uint64_t *macs) {
    const struct rfx_graph *graph = curve->graph;
    struct rfx_memory *mem = graph->mem;
    size_t n = (size_t)graph->n_nodes;
    struct rfx_axis_region *rows = rfx_memory_calloc(mem, n, sizeof *rows);
    struct rfx_axis_region *cols = rfx_memory_calloc(mem, n, sizeof *cols);
    size_t *bytes = rfx_memory_calloc(mem, n, sizeof *bytes);
    struct rfx_liveness *liveness = NULL;
    struct rfx_error err;
    assert_int_equal(rfx_liveness_create(graph, curve->baseline, &liveness, &err), RFX_OK);
    const struct rfx_tensor *map = &graph->nodes[p->split].out;
    size_t largest = 0;
    *macs = 0;
    for (int64_t t = 0; t < p->tiles_y * p->tiles_x; t++) {
        struct rfx_range y = rfx_tile_range(map->h, p->tiles_y, t / p->tiles_x);
        struct rfx_range x = rfx_tile_range(map->w, p->tiles_x, t % p->tiles_x);
        rfx_regions_backprop(graph, p->split, RFX_AXIS_ROWS, y, rows);
        rfx_regions_backprop(graph, p->split, RFX_AXIS_COLS, x, cols);
        for (int i = 0; i <= p->split; i++) {
            struct rfx_rect r = rfx_rect_from_ranges(rows[i].clamped, cols[i].clamped);
            bytes[i] = (size_t)(rfx_rect_area(r) * graph->nodes[i].out.c) * sizeof(float);
            *macs += rfx_op_macs(graph, &graph->nodes[i], r);
        }
        bytes[p->split] = 0;
        size_t need = rfx_liveness_peak(liveness, 0, p->split + 1, bytes, NULL, NULL);
        if (need > largest) largest = need;
    }
    for (int i = p->split + 1; i < graph->n_nodes; i++)
        *macs += rfx_op_macs(graph, &graph->nodes[i], rfx_node_full_rect(&graph->nodes[i]));
    *head_bytes = largest + rfx_node_out_bytes(&graph->nodes[p->split]) + curve->weights_bytes;
    rfx_liveness_free(liveness);
    rfx_memory_release(mem, bytes);
    rfx_memory_release(mem, cols);
    rfx_memory_release(mem, rows);
}

/* The curve takes the largest part of each tensor over the tiles. No single tile needs more, and
 * the largest tile hardly less (in odd sizes the largest parts are not all of one tile). */
static void tile_by_tile(void **state) {
    static const int64_t sizes[][4] = {{512, 512, 4, 4}, {301, 427, 3, 5}, {224, 161, 1, 7}};
    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_fuse_options fuse = rfx_baseline_fuse(RFX_BASELINE_FUSED);
        struct rfx_load_options load = {.h = sizes[s][0], .w = sizes[s][1], .fuse = &fuse};
        struct rfx_graph *graph = NULL;
        struct rfx_error err = {{0}};
        assert_int_equal(rfx_model_load(mem, "resnet18", &load, &graph, &err), RFX_OK);
        struct rfx_curve *curve =
            curve_or_fail(graph, RFX_BASELINE_FUSED, sizes[s][2], sizes[s][3], false);
        for (int i = 0; i < curve->n_points; i++) {
            size_t head = 0;
            uint64_t macs = 0;
            walk_tiles(curve, &curve->points[i], &head, &macs);
            assert_int_equal(macs, curve->points[i].macs);
            assert_true(head <= curve->points[i].head_bytes);
            assert_true((double)curve->points[i].head_bytes <= 1.01 * (double)head);
            if (s == 0) assert_int_equal(head, curve->points[i].head_bytes);
        }
        rfx_curve_free(curve);
        rfx_graph_free(graph);
        rfx_memory_free(mem);
    }
}

/* The front falls in memory as it rises in MACs, starts untiled, and no point of a given grid is
 * better than all of it. */
static void front(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = small_net_residual(mem, 40, 33);
    struct rfx_curve *curve = curve_or_fail(graph, RFX_BASELINE_COALESCED, 3, 2, true);
    assert_true(curve->n_pareto > 2);
    assert_int_equal(curve->pareto[0].macs, curve->untiled.macs);
    for (int i = 1; i < curve->n_pareto; i++) {
        assert_true(curve->pareto[i].macs > curve->pareto[i - 1].macs);
        assert_true(curve->pareto[i].peak_bytes < curve->pareto[i - 1].peak_bytes);
    }
    for (int s = 0; s < curve->n_points; s++) {
        bool reached = false; /* the grid 3x2 is one of the grids searched */
        for (int i = 0; i < curve->n_pareto; i++)
            reached |= curve->pareto[i].macs <= curve->points[s].macs &&
                       curve->pareto[i].peak_bytes <= curve->points[s].peak_bytes;
        assert_true(reached);
    }
    rfx_curve_free(curve);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

static void square_grids(void **state) {
    static const int64_t cases[][3] = {{1, 1, 1}, {2, 1, 2},  {7, 1, 7},  {8, 2, 4},
                                       {9, 3, 3}, {12, 3, 4}, {16, 4, 4}, {30, 5, 6}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t y = 0, x = 0;
        rfx_curve_square_grid(cases[i][0], &y, &x);
        assert_int_equal(y, cases[i][1]);
        assert_int_equal(x, cases[i][2]);
    }
}

static void failures(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = small_net_residual(mem, 12, 12);
    struct rfx_curve_request request = {RFX_BASELINE_FUSED, 0, 4, false};
    struct rfx_curve *curve = NULL;
    struct rfx_error err = {{0}};
    assert_int_equal(rfx_curve_create(graph, &request, &curve, &err), RFX_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "0x4"));
    request = (struct rfx_curve_request){RFX_BASELINE_FUSED, 2, 2, true};
    enum rfx_status status = RFX_STATUS_OUT_OF_MEMORY;
    for (int64_t k = 0; status != RFX_OK; k++) {
        size_t before = rfx_memory_current_bytes(mem);
        curve = NULL;
        rfx_memory_fail_after(mem, k);
        status = rfx_curve_create(graph, &request, &curve, &err);
        rfx_memory_fail_after(mem, -1);
        rfx_curve_free(curve);
        assert_int_equal(rfx_memory_current_bytes(mem), before);
        assert_true(status == RFX_OK || status == RFX_STATUS_OUT_OF_MEMORY);
        assert_true(k < 40);
    }
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_hand),         cmocka_unit_test(known_networks),
        cmocka_unit_test(eager_mobilenet), cmocka_unit_test(tile_by_tile),
        cmocka_unit_test(front),           cmocka_unit_test(square_grids),
        cmocka_unit_test(failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
