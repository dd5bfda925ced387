/* Row streams worked out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/support/random/random_graph.h"
#include "tests/support/random/small_nets.h"
#include "tests/support/test_util.h"
#include "tiler/modes/modes.h"
#include "tiler/modes/streaming.h"
#include "tiler/plan/stage.h"

/* The places of a stage that streams up to `target` and stores its map. */
static void stream_to(const struct rfx_graph *graph, int target, enum rfx_node_place *places) {
    struct rfx_stage_spec spec = {.mode = &rfx_mode_streamed,
                                  .tiles_y = 1,
                                  .tiles_x = 1,
                                  .band_rows = 1,
                                  .n_targets = 1,
                                  .targets = &target};
    bool stored[8] = {false};
    struct rfx_error err;
    assert_true(graph->n_nodes <= 8);
    assert_int_equal(rfx_stage_places(graph, &spec, false, stored, NULL, places, &err), RFX_OK);
}

/* a: 3x3 stride 2, row r reads image rows 2r - 1 .. 2r + 1; b: 3x3, row r reads a's r - 1 .. r + 1.
 * Two image rows a step: a is a row behind, b another and ends alone. */
static void two_convs_step_by_step(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = small_net_two_convs(mem, 16, 16);
    static const struct {
        int node;
        int64_t lo, hi;
    } expected[] = {{0, 0, 2}, {1, 0, 1}, {0, 2, 4}, {1, 1, 2},
                    {2, 0, 1}, {0, 4, 6}, {1, 2, 3}, {2, 1, 2}};
    int64_t done[3];
    enum rfx_node_place places[3];
    struct rfx_stream stream;
    stream_to(graph, 2, places);
    rfx_stream_begin(&stream, graph, places, 2, done);
    struct rfx_stream_turn turn = {.node = -1};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        int64_t before = done[expected[i].node];
        assert_true(rfx_stream_peek(&stream, &turn));
        assert_true(rfx_stream_peek(&stream, &turn)); /* looking moves nothing */
        assert_int_equal(turn.node, expected[i].node);
        assert_int_equal(turn.rows.lo, expected[i].lo);
        assert_int_equal(turn.rows.hi, expected[i].hi);
        assert_int_equal(done[turn.node], before);
        rfx_stream_commit(&stream, &turn);
        assert_int_equal(done[turn.node], turn.rows.hi);
    }
    while (rfx_stream_peek(&stream, &turn)) rfx_stream_commit(&stream, &turn);
    assert_int_equal(turn.node, 2);
    assert_int_equal(turn.rows.lo, 7);
    assert_int_equal(turn.rows.hi, 8);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

/* Image: while rows 2, 3 come, row 1 is still wanted: 3. a: b holds on to two rows before: 3. b
 * goes nowhere: the row at hand. */
static void two_convs_rings(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = small_net_two_convs(mem, 16, 16);
    struct rfx_node_rows rings[3];
    int64_t done[3 * RFX_MODE_SCRATCH];
    enum rfx_node_place places[3];
    stream_to(graph, 2, places);
    rfx_stream_measure(graph, places, 2, done, rings);
    static const int64_t rows[] = {3, 3, 1};
    static const int64_t computed[] = {16, 8, 8};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(rings[i].most, rows[i]);
        assert_int_equal(rings[i].computed, computed[i]);
    }
    assert_true(rings[0].lasting);
    assert_true(rings[1].lasting);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

/* The join keeps a's rows until b, a row behind, has caught up; sum is read by c in rows of 3. */
static void residual_waits_for_the_slowest(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = small_net_residual(mem, 12, 12);
    struct rfx_node_rows rings[8];
    int64_t done[8 * RFX_MODE_SCRATCH];
    enum rfx_node_place places[8];
    stream_to(graph, 4, places);
    rfx_stream_measure(graph, places, 1, done, rings);
    assert_int_equal(rings[1].most, 3); /* a: rows r - 1 .. r + 1 for b, row r for sum */
    assert_false(rings[2].lasting);     /* b: added in the step that makes it */
    assert_int_equal(rings[3].most, 3); /* sum */
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

/* Measures the rows that a stream needs, as rfx_stream_measure does, but looks at every step and at
 * all readers of each node. */
static void measure_every_step(const struct rfx_graph *graph, const enum rfx_node_place *places,
                               int64_t band_rows, int64_t *done, struct rfx_node_rows *rings) {
    int n = graph->n_nodes;
    int64_t *keep_from = done + n, step = -1;
    struct rfx_stream stream;
    struct rfx_stream_turn turn;
    rfx_stream_begin(&stream, graph, places, band_rows, done);
    for (; rfx_stream_peek(&stream, &turn); rfx_stream_commit(&stream, &turn)) {
        for (int i = 0; turn.step != step && i < n; i++) {
            keep_from[i] = rfx_stream_keep_from(&stream, i, n);
            if (!rfx_place_is_computed(places[i]) || done[i] <= keep_from[i]) continue;
            rings[i].lasting = true;
            rings[i].kept = rfx_max_i64(rings[i].kept, done[i] - keep_from[i]);
        }
        step = turn.step;
        struct rfx_node_rows *ring = &rings[turn.node];
        int64_t first = rfx_min_i64(keep_from[turn.node], turn.rows.lo);
        ring->most = rfx_max_i64(ring->most, turn.rows.hi - first);
        ring->per_step = rfx_max_i64(ring->per_step, rfx_range_size(turn.rows));
    }
    for (int i = 0; i < n; i++) {
        if (!rfx_place_is_computed(places[i])) continue;
        rings[i].computed = done[i] - rfx_stream_rows(graph, places, i).lo;
        if (places[i] != RFX_PLACE_REDUCED) continue;
        rings[i].most = rings[i].kept = 0; /* it keeps a state, no rows */
        rings[i].lasting = false;
    }
}

/* rfx_stream_measure skips the middle of a tall stream; the result is that of a full walk. */
static void jumps_change_nothing(void **state) {
    (void)state;
    int walked = 0, fetching = 0;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct test_rng rng = test_rng_make(seed);
        struct random_graph_options options = random_graph_defaults();
        options.spatial_only = true;
        options.min_size = 300;
        options.max_size = 1100;
        options.max_elems = 20000000;
        options.quantised = 25;
        struct rfx_graph *graph = random_graph_make(mem, seed, &options);
        size_t n = (size_t)graph->n_nodes;
        int64_t *done = calloc(RFX_MODE_SCRATCH * n, sizeof *done);
        struct rfx_node_rows *quick = calloc(n, sizeof *quick), *full = calloc(n, sizeof *full);
        enum rfx_node_place *places = calloc(n, sizeof *places);
        bool *stored = calloc(2 * n, sizeof *stored), *in_file = stored + n;
        assert_true(done != NULL && quick != NULL && full != NULL && places != NULL && stored);
        int target = graph->outputs[0].node;
        for (int i = 0; seed % 3 != 0 && i < target; i++) { /* some maps are there, or in files */
            stored[i] = test_rng_chance(&rng, 25);
            in_file[i] = seed % 3 == 1 && stored[i];
        }
        struct rfx_stage_spec spec = {.mode = &rfx_mode_streamed,
                                      .tiles_y = 1,
                                      .tiles_x = 1,
                                      .band_rows = test_rng_int(&rng, 1, 12),
                                      .n_targets = 1,
                                      .targets = &target};
        struct rfx_error err;
        if (rfx_stage_places(graph, &spec, false, stored, in_file, places, &err) == RFX_OK) {
            for (size_t i = 0; i < n; i++) fetching += places[i] == RFX_PLACE_FETCHED;
            rfx_stream_measure(graph, places, spec.band_rows, done, quick);
            measure_every_step(graph, places, spec.band_rows, done, full);
            assert_int_equal(full[target].computed, graph->nodes[target].out.h);
            for (size_t i = 0; i < n; i++) {
                assert_int_equal(quick[i].most, full[i].most);
                assert_int_equal(quick[i].kept, full[i].kept);
                assert_int_equal(quick[i].per_step, full[i].per_step);
                assert_int_equal(quick[i].computed, full[i].computed);
                assert_int_equal(quick[i].lasting, full[i].lasting);
            }
            walked++;
        }
        free(done);
        free(quick);
        free(full);
        free(places);
        free(stored);
        rfx_graph_free(graph);
        rfx_memory_free(mem);
    }
    assert_true(walked > 100 && fetching > 50);
}

/* a, half as tall as the image, is there from the start. b makes a row of it in every second step
 * of an image row, as it would if a came from the image; steps in which there is nothing to do are
 * passed over. */
static void stored_rows_come_in_step(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = small_net_two_convs(mem, 16, 16);
    int64_t done[3];
    enum rfx_node_place places[3];
    struct rfx_stream stream;
    struct rfx_stream_turn turn;
    stream_to(graph, 2, places);
    places[0] = RFX_PLACE_NONE;
    places[1] = RFX_PLACE_READ;
    rfx_stream_begin(&stream, graph, places, 1, done);
    for (int64_t row = 0; row < 8; row++) {
        assert_true(rfx_stream_peek(&stream, &turn));
        assert_int_equal(turn.node, 2);
        assert_int_equal(turn.rows.lo, row);
        assert_int_equal(turn.rows.hi, row + 1);
        assert_int_equal(turn.step, 2 * row + 1);
        rfx_stream_commit(&stream, &turn);
    }
    assert_false(rfx_stream_peek(&stream, &turn));
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

/* Rows of a constant are there from the start for a reduction, which takes so many a step. */
static void a_constant_is_reduced(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = small_net_constant_mean(mem, 16, 16);
    int64_t done[4], taken = 0;
    enum rfx_node_place places[4];
    struct rfx_stream stream;
    struct rfx_stream_turn turn;
    int mean = rfx_graph_find(graph, "mean");
    stream_to(graph, mean, places);
    assert_int_equal(places[mean], RFX_PLACE_REDUCED);
    rfx_stream_begin(&stream, graph, places, 2, done);
    while (rfx_stream_peek(&stream, &turn)) {
        assert_int_equal(turn.node, mean);
        assert_int_equal(turn.rows.lo, taken);
        taken = turn.rows.hi;
        rfx_stream_commit(&stream, &turn);
    }
    assert_int_equal(taken, 4);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

/* b's rows need rows of a's file, and no image: a is fetched as an image would be read. */
static void fetched_rows_need_no_input(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = small_net_two_convs(mem, 16, 16);
    struct rfx_node_rows rings[3];
    int64_t done[3 * RFX_MODE_SCRATCH];
    enum rfx_node_place places[3];
    struct rfx_stream stream;
    struct rfx_stream_turn turn;
    stream_to(graph, 2, places);
    assert_int_equal(places[1], RFX_PLACE_LOCAL);
    places[0] = RFX_PLACE_NONE;
    places[1] = RFX_PLACE_FETCHED;
    rfx_stream_begin(&stream, graph, places, 2, done);
    assert_true(rfx_stream_peek(&stream, &turn));
    assert_int_equal(turn.node, 1);
    assert_int_equal(turn.rows.hi, 1); /* its share of two image rows */
    rfx_stream_measure(graph, places, 2, done, rings);
    assert_int_equal(rings[0].computed, 0);
    assert_int_equal(rings[1].computed, 8);
    assert_int_equal(rings[1].most, 3);
    assert_true(rings[1].lasting);
    assert_int_equal(rings[2].computed, 8);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_convs_step_by_step),
        cmocka_unit_test(two_convs_rings),
        cmocka_unit_test(residual_waits_for_the_slowest),
        cmocka_unit_test(stored_rows_come_in_step),
        cmocka_unit_test(a_constant_is_reduced),
        cmocka_unit_test(fetched_rows_need_no_input),
        cmocka_unit_test(jumps_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
