/* Where a stream writes over what it reads: by hand, and against walking streams of random networks
 * turn by turn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "layers/core/checked.h"
#include "layers/graph/op.h"
#include "rf_analysis/regions.h"
#include "tests/support/random/random_graph.h"
#include "tests/support/random/small_nets.h"
#include "tests/support/test_util.h"
#include "tiler/modes/modes.h"
#include "tiler/modes/stream_slides.h"
#include "tiler/modes/streaming.h"
#include "tiler/plan/stage.h"

enum { MOST = 64 };

static int64_t row_bytes(const struct rfx_node *node) {
    return (int64_t)rfx_tensor_pixel_bytes(&node->out, node->out.w);
}

/* b's row r reads a's rows r - 1 .. r + 1: when b has made r rows, a's from r - 1 on are read. */
static void a_row_of_halo(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = small_net_two_convs(mem, 16, 16);
    int64_t scratch[2 * 3], most = 0;
    int64_t a = row_bytes(&graph->nodes[1]), b = row_bytes(&graph->nodes[2]);
    for (int64_t r = 1; r < 8; r++) most = rfx_max_i64(most, r * b - (r - 1) * a);
    assert_int_equal(rfx_stream_lag(graph, 1, 2, scratch), most);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

/* A stage that reads the stored map of `before` and stores that of `after`. */
struct stage {
    enum rfx_node_place places[MOST];
    struct rfx_stage_spec spec;
    int after;
};

static bool make_stage(const struct rfx_graph *graph, int before, int after, int64_t rows,
                       struct stage *stage) {
    bool stored[MOST] = {false};
    struct rfx_error err;
    stage->after = after;
    stage->spec = (struct rfx_stage_spec){.mode = &rfx_mode_streamed,
                                          .tiles_y = 1,
                                          .tiles_x = 1,
                                          .band_rows = rows,
                                          .n_targets = 1,
                                          .targets = &stage->after};
    stored[before] = true;
    return rfx_stage_places(graph, &stage->spec, false, stored, NULL, stage->places, &err) ==
               RFX_OK &&
           stage->places[before] == RFX_PLACE_READ;
}

/* The most bytes by which what is written of `after` by the end of a turn is more than what no node
 * reads any more of `before` when that turn begins; *per_step: rows of a turn, at most; *left:
 * whether some node would read `before` once all is written. */
static int64_t walked_lag(const struct rfx_graph *graph, const struct stage *stage, int before,
                          int64_t *per_step, bool *left) {
    int64_t done[MOST], most = INT64_MIN;
    struct rfx_stream stream;
    struct rfx_stream_turn turn;
    *per_step = 0;
    rfx_stream_begin(&stream, graph, stage->places, stage->spec.band_rows, done);
    while (rfx_stream_peek(&stream, &turn)) {
        if (turn.node == stage->after) {
            int64_t dead = rfx_stream_keep_from(&stream, before, graph->n_nodes);
            int64_t lag = turn.rows.hi * row_bytes(&graph->nodes[stage->after]) -
                          dead * row_bytes(&graph->nodes[before]);
            if (lag > most) most = lag;
            if (rfx_range_size(turn.rows) > *per_step) *per_step = rfx_range_size(turn.rows);
        }
        rfx_stream_commit(&stream, &turn);
    }
    *left = rfx_stream_keep_from(&stream, before, graph->n_nodes) < graph->nodes[before].out.h;
    return most;
}

/* Every pair of maps of random networks that may slide: what is said is never less than what a walk
 * finds, and not by much more than a look's rows and the halo. */
static void walks_need_no_more(void **state) {
    (void)state;
    int64_t cases = test_env_int("RFX_CASES", 300), seed = test_env_int("RFX_SEED", 1);
    int64_t pairs = 0, close = 0, flush = 0, unread = 0, all_left = 0;
    for (int64_t c = 0; c < cases; c++) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct test_rng rng = test_rng_make((uint64_t)(seed + c));
        struct random_graph_options options = random_graph_defaults();
        options.spatial_only = true;
        options.max_size = c % 2 == 0 ? 60 : 400;
        options.quantised = 25;
        struct rfx_graph *graph = random_graph_make(mem, (uint64_t)(seed + c), &options);
        int last = graph->outputs[0].node;
        for (int before = 1; before < last && graph->n_nodes <= MOST; before++) {
            int64_t scratch[2 * MOST], per_step;
            struct stage stage;
            int after = (int)test_rng_int(&rng, before + 1, last);
            if (graph->nodes[before].out.layout != RFX_LAYOUT_NHWC ||
                graph->nodes[after].out.layout != RFX_LAYOUT_NHWC ||
                !make_stage(graph, before, after, test_rng_int(&rng, 1, 12), &stage))
                continue;
            struct rfx_stage_shape shape = {
                .spec = stage.spec, .end = graph->n_nodes, .places = stage.places};
            assert_true(rfx_stream_reads_for(graph, &shape, before, after, scratch));
            int64_t row = row_bytes(&graph->nodes[after]);
            bool left;
            int64_t walked = walked_lag(graph, &stage, before, &per_step, &left);
            bool reads = rfx_stream_reads(graph, before, after);
            int64_t lag =
                rfx_stream_lag(graph, before, after, scratch) + (reads ? per_step * row : 0);
            assert_true(lag >= walked);
            bool ends = rfx_stream_ends_with(graph, before, after, scratch);
            assert_false(ends && left);
            unread += ends;
            all_left += left;
            pairs++;
            close += lag - walked <= 8 * row;
            flush += !reads && lag == walked;
        }
        rfx_graph_free(graph);
        rfx_memory_free(mem);
    }
    print_message(
        "%d pairs, %d close, %d as walked; at the end %d surely unread, of %d rows left\n",
        (int)pairs, (int)close, (int)flush, (int)unread, (int)all_left);
    assert_true(pairs > cases && close > pairs / 2 && flush > 0);
    assert_true(unread > pairs / 2 && all_left > 0);
}

/* Another reader than what is made of a map may be behind it: nothing is written over the map. */
static void other_readers_are_refused(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = small_net_residual(mem, 12, 12); /* sum of a and b = conv(a); c */
    int64_t scratch[2 * 8];
    int targets[2] = {2, 4};
    bool stored[8] = {false};
    enum rfx_node_place places[8];
    struct rfx_error err;
    struct rfx_stage_spec spec = {.mode = &rfx_mode_streamed,
                                  .tiles_y = 1,
                                  .tiles_x = 1,
                                  .band_rows = 1,
                                  .n_targets = 2,
                                  .targets = targets};
    stored[1] = true;
    assert_int_equal(rfx_stage_places(graph, &spec, false, stored, NULL, places, &err), RFX_OK);
    struct rfx_stage_shape shape = {.spec = spec, .end = graph->n_nodes, .places = places};
    assert_false(rfx_stream_reads_for(graph, &shape, 1, 2, scratch)); /* sum reads a too */
    assert_true(rfx_stream_reads_for(graph, &shape, 1, 4, scratch));
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_of_halo),
        cmocka_unit_test(walks_need_no_more),
        cmocka_unit_test(other_readers_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
