/* Cuts of a stream, against counting by hand what is read over each; and waists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "layers/graph/op.h"
#include "rf_analysis/part_graph.h"
#include "rf_analysis/regions.h"
#include "tests/support/random/random_graph.h"
#include "tests/support/test_net.h"
#include "tests/support/test_util.h"
#include "tiler/modes/modes.h"
#include "tiler/search/partition.h"

#define NO_CUT INT64_MAX

static bool is_map(const struct rfx_graph *graph, int i) {
    const struct rfx_node *node = &graph->nodes[i];
    if (rfx_graph_count_outputs(graph, i) > 0) return false;
    return rfx_node_is_local(node) && !rfx_node_is_input(node) &&
           node->out.layout == RFX_LAYOUT_NHWC;
}

/* Bytes of the maps up to index `at` that a node behind it reads. */
static int64_t read_over(const struct rfx_graph *graph, int at) {
    int64_t bytes = 0;
    for (int i = 0; i <= at; i++) {
        bool over = false, only_maps = true;
        if (rfx_node_is_constant(&graph->nodes[i])) continue;
        for (int r = i + 1; r < graph->n_nodes; r++)
            for (int k = 0; k < graph->nodes[r].n_in; k++)
                if (graph->nodes[r].in[k] == i) {
                    over = over || r > at;
                    only_maps = only_maps && rfx_node_is_local(&graph->nodes[r]);
                }
        if (over && (!is_map(graph, i) || !only_maps)) return NO_CUT;
        if (over) bytes += (int64_t)rfx_tensor_bytes(&graph->nodes[i].out);
    }
    return bytes;
}

static int64_t row_bytes(const struct rfx_graph *graph, int at) {
    int64_t bytes = 0;
    for (int i = 0; i <= at; i++) {
        const struct rfx_node *node = &graph->nodes[i];
        if (rfx_node_is_local(node) && !rfx_node_is_constant(node))
            bytes += (int64_t)rfx_tensor_pixel_bytes(&node->out, node->out.w);
    }
    return bytes;
}

/* The least read over a cut behind `from` whose rows are within a third of a share of it. */
static int64_t least_over(const struct rfx_graph *graph, int from, int64_t share, int k) {
    int64_t least = NO_CUT;
    for (int at = from; at < graph->n_nodes - 1; at++) {
        int64_t off = row_bytes(graph, at) - share * (k + 1);
        int64_t over = read_over(graph, at);
        if (off <= share / 3 && -off <= share / 3 && over < least) least = over;
    }
    return least;
}

static int check(const struct rfx_graph *graph, int more) {
    int cuts[RFX_PARTITION_MAX_MORE], from = 0;
    bool found;
    assert_int_equal(rfx_partition_find_cuts(graph, more, cuts, &found, NULL), RFX_OK);
    int64_t share = row_bytes(graph, graph->n_nodes - 1) / (more + 1);
    for (int k = 0; found && k < more; k++) {
        int64_t least = least_over(graph, from, share, k);
        assert_true(cuts[k] >= from && cuts[k] < graph->n_nodes - 1);
        assert_true(least != NO_CUT);
        assert_int_equal(read_over(graph, cuts[k]), least);
        from = cuts[k] + 1;
    }
    if (!found && more == 1) assert_true(least_over(graph, 0, share, 0) == NO_CUT);
    return found;
}

/* Calls a check for random networks, of which so many in a hundred surely have a norm or attention.
 * What it returns must come to more than one in so many networks. */
static void check_random(int (*check_one)(const struct rfx_graph *graph), int modern, int one_in,
                         const char *what) {
    struct random_graph_options options = random_graph_defaults();
    options.modern = modern;
    options.quantised = 25;
    int64_t seed = test_env_int("RFX_SEED", 1), found = 0;
    int64_t cases = test_env_int("RFX_CASES", 300);
    for (int64_t i = 0; i < cases; i++) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_graph *graph = random_graph_make(mem, (uint64_t)(seed + i), &options);
        found += check_one(graph);
        rfx_graph_free(graph);
        rfx_memory_free(mem);
    }
    print_message("%d %s in %d networks\n", (int)found, what, (int)cases);
    assert_true(found > cases / one_in);
}

static int check_cuts(const struct rfx_graph *graph) {
    int found = 0;
    for (int more = 1; more <= 3; more++) found += check(graph, more);
    return found;
}

static void least_is_read_over_a_cut(void **state) {
    (void)state;
    check_random(check_cuts, 0, 8, "times all cuts were found");
}

static void no_memory_is_an_error(void **state) {
    (void)state;
    struct random_graph_options options = random_graph_defaults();
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = random_graph_make(mem, 3, &options);
    int cuts[1];
    bool found;
    rfx_memory_fail_after(mem, 0);
    assert_int_equal(rfx_partition_find_cuts(graph, 1, cuts, &found, NULL),
                     RFX_STATUS_OUT_OF_MEMORY);
    rfx_memory_fail_after(mem, -1);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

/* Pixels of a node that a stream makes as a map; 0: it makes none. */
static int64_t pixels_of(const struct rfx_graph *graph, int i) {
    const struct rfx_node *node = &graph->nodes[i];
    bool map = rfx_node_is_local(node) && !rfx_node_is_constant(node) && !rfx_node_is_input(node) &&
               node->out.layout == RFX_LAYOUT_NHWC;
    return map ? node->out.h * node->out.w : 0;
}

static bool is_larger_on(const struct rfx_graph *graph, int from, int to, int64_t pixels) {
    for (int i = from; i < to; i++)
        if (pixels_of(graph, i) > pixels) return true;
    return false;
}

/* Every node of few pixels lies within the cuts, which have few themselves; larger maps are on both
 * sides of what is a waist. */
static int check_waists(const struct rfx_graph *graph) {
    struct rfx_waist waist = {.pixels = INT64_MAX};
    int waists = 0;
    for (int64_t last = INT64_MAX; rfx_partition_find_waist(graph, last, &waist);
         last = waist.pixels) {
        const int *cuts = waist.cuts;
        assert_true(waist.pixels > 0 && waist.pixels < last);
        for (int i = 0; i < graph->n_nodes; i++) {
            int64_t pixels = pixels_of(graph, i);
            assert_true(pixels <= waist.pixels || pixels >= last); /* none between two */
            if (pixels > 0 && pixels <= waist.pixels) assert_in_range(i, cuts[0], cuts[1]);
        }
        assert_in_range(pixels_of(graph, cuts[0]), 1, waist.pixels);
        assert_in_range(pixels_of(graph, cuts[1]), 1, waist.pixels);
        bool is_one = cuts[0] < cuts[1] && is_larger_on(graph, 0, cuts[0], waist.pixels) &&
                      is_larger_on(graph, cuts[1] + 1, graph->n_nodes, waist.pixels);
        assert_int_equal(waist.is_one, is_one);
        if (is_one) assert_true(waist.cut_bytes > 0);
        waists += is_one;
    }
    return waists > 0;
}

static void waists_have_larger_maps_around(void **state) {
    (void)state;
    check_random(check_waists, 0, 50, "have a waist,");
}

/* Attention in windows of h x w pixels of a map of 132 x 64, twice; its two channels are joined to
 * six between. `shard`: of the first rows of this network, whose last node belongs to another
 * output. Returns the number of cuts; -1: there was no memory. */
static int window_cuts(int64_t h, int64_t w, bool shard, int *cuts, bool memory) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = NULL, *part = NULL;
    struct rfx_node image = {.op = RFX_OP_INPUT, .attr.input = {6, 132, 64}};
    struct rfx_node attention = {.op = RFX_OP_WINDOW_ATTENTION}, join = {.op = RFX_OP_CONCAT};
    attention.attr.window_attention =
        (struct rfx_window_attention_attr){.h = h, .w = w, .heads = 1, .scale = 1.0f, .bias = -1};
    join.attr.concat.axis = 1;
    assert_int_equal(rfx_graph_create(mem, "g", &graph, NULL), RFX_OK);
    int last = test_net_add(graph, image, NULL, 0);
    for (int k = 0; k < 2; k++) {
        last = test_net_add(graph, attention, &last, 1);
        last = test_net_add(graph, join, (const int[]){last, last, last}, 3);
    }
    assert_int_equal(rfx_graph_add_output(graph, last, "y", NULL), RFX_OK);
    if (shard) {
        struct rfx_node relu = {.op = RFX_OP_ACTIVATION, .act = {.kind = RFX_ACT_RELU}};
        last = test_net_add(graph, relu, &last, 1);
        assert_int_equal(rfx_graph_add_output(graph, last, "z", NULL), RFX_OK);
    }
    assert_int_equal(rfx_graph_finish(graph, NULL, NULL), RFX_OK);
    const struct rfx_rect first = {0, 10, 0, 64};
    if (shard) assert_int_equal(rfx_part_graph_create(graph, 0, first, &part, NULL), RFX_OK);
    if (!memory) rfx_memory_fail_after(mem, 0);
    int found = -1;
    enum rfx_status status = rfx_partition_window_cuts(shard ? part : graph, cuts, &found, NULL);
    if (status == RFX_STATUS_OUT_OF_MEMORY) found = -1;
    rfx_memory_fail_after(mem, -1);
    rfx_graph_free(part);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
    return found;
}

static void cuts_lie_behind_large_windows(void **state) {
    (void)state;
    static const struct {
        int64_t h, w;
        bool shard;
        int found;
    } cases[] = {{66, 64, false, 2}, {44, 64, false, 0}, {132, 8, false, 2}, {66, 64, true, 2}};
    int cuts[RFX_PARTITION_MAX_WINDOWS];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(window_cuts(cases[i].h, cases[i].w, cases[i].shard, cuts, true),
                         cases[i].found);
        if (cases[i].found == 0) continue;
        assert_int_equal(cuts[0], 1); /* two channels cross it, six one node later */
        assert_int_equal(cuts[1], 3);
    }
    assert_int_equal(window_cuts(66, 64, false, cuts, false), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts_lie_behind_large_windows),
        cmocka_unit_test(least_is_read_over_a_cut),
        cmocka_unit_test(no_memory_is_an_error),
        cmocka_unit_test(waists_have_larger_maps_around),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
