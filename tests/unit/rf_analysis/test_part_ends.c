/* What outputs are made of for parts: maps of built-in networks, and tensors that only move a map's
 * elements, or do something else with them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "layers/graph/op.h"
#include "rf_analysis/part_graph.h"
#include "rfexec/run/model.h"
#include "tests/support/test_util.h"

/* Shares of one output: those of its ends alone, in their order; what is only moved behind maps is
 * made of them. */
static void test_shares_of_one(void **state) {
    static const struct {
        const char *model;
        int k, ends;
        const char *last; /* map */
        struct rfx_spread at;
    } cases[] = {{"posenet", 2, 1, NULL, {0, 9, 1, 81}},
                 {"yolov8n", 0, 3, NULL, {320, 4, 1, 336}},
                 {"blazeface", 1, 2, "regressors_16", {8192, 768, 96, 1}}};
    struct rfx_memory *mem = rfx_memory_create(0);
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rfx_load_options load = {.h = 128, .w = 128};
        struct rfx_graph *graph, *part;
        struct rfx_part_rounds rounds;
        int k = cases[i].k, n = cases[i].ends;
        assert_int_equal(rfx_model_load(mem, cases[i].model, &load, &graph, NULL), RFX_OK);
        assert_int_equal(rfx_part_ends(graph, k), n);
        int before = 0; /* of all outputs together those of each follow each other */
        for (int j = 0; j < k; j++) before += rfx_part_ends(graph, j);
        assert_true(rfx_part_ends(graph, RFX_PART_ALL) >= before + n);
        for (int j = 0; j < n; j++) {
            struct rfx_end one = rfx_part_end(graph, k, j);
            struct rfx_end of_all = rfx_part_end(graph, RFX_PART_ALL, before + j);
            assert_true(one.node == of_all.node && of_all.output == k);
            assert_int_equal(one.at.first, of_all.at.first);
        }
        struct rfx_end last = rfx_part_end(graph, k, n - 1);
        if (cases[i].last != NULL) assert_string_equal(graph->nodes[last.node].name, cases[i].last);
        if (n > 1) assert_memory_equal(&last.at, &cases[i].at, sizeof last.at);
        assert_int_equal(rfx_part_graph_rounds(graph, k, NULL, 0, &rounds, NULL), RFX_OK);
        assert_true(rounds.rounds == 0 && rounds.blocking == -1 && rounds.reads_image);
        for (int64_t index = 0; index < 7; index++) { /* the smallest map has 4 rows */
            int made = 0;
            assert_int_equal(rfx_part_graph_share(graph, k, NULL, 0, index, 7, &part, NULL),
                             RFX_OK);
            for (int j = 0; j < n; j++) {
                struct rfx_end end = rfx_part_end(graph, k, j), same;
                struct rfx_rect rows = rfx_part_end_rows(graph, &end, index, 7);
                if (rfx_rect_is_empty(rows)) continue;
                same = rfx_part_share_end(graph, k, index, 7, made);
                assert_int_equal(same.node, end.node);
                assert_int_equal(same.at.first, end.at.first);
                assert_true(rfx_rect_equal(part->outputs[made].part, rows));
                assert_int_equal(part->outputs[made++].node, end.node);
            }
            assert_int_equal(part->n_outputs, made);
            rfx_graph_free(part);
        }
        rfx_graph_free(graph);
    }
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

static int add(struct rfx_graph *graph, struct rfx_node node, const int *in, int n_in) {
    static const char *const names[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
    int index;
    node.name = names[graph->n_nodes];
    node.in = in;
    node.n_in = n_in;
    assert_int_equal(rfx_graph_add(graph, &node, &index, NULL), RFX_OK);
    return index;
}

static int reshape(struct rfx_graph *graph, int in, int64_t a, int64_t b) {
    struct rfx_node node = {.op = RFX_OP_RESHAPE};
    node.attr.reshape.shape = (struct rfx_shape){2, {a, b}};
    return add(graph, node, &in, 1);
}

static int concat(struct rfx_graph *graph, int a, int b, int axis) {
    struct rfx_node node = {.op = RFX_OP_PLAIN_CONCAT};
    int in[2] = {a, b};
    node.attr.concat.axis = axis;
    return add(graph, node, in, 2);
}

/* A map of 2 x 5 x 4 behind a global pool, channel by channel and pixel by pixel; twice in a row;
 * and what is no row of maps: channels of two maps in turn. */
static void test_moved_maps(void **state) {
    static const int ends[] = {1, 1, 2, 1, 2};
    static const struct rfx_spread at[] = {{0, 4, 1, 20}, {0, 8, 2, 1}, {40, 8, 2, 1}};
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph;
    (void)state;
    assert_int_equal(rfx_graph_create(mem, "moved", &graph, NULL), RFX_OK);
    struct rfx_node image = {.op = RFX_OP_INPUT};
    image.attr.input.c = 2;
    image.attr.input.h = 5;
    image.attr.input.w = 4;
    int in = add(graph, image, NULL, 0);
    struct rfx_node scaled = {.op = RFX_OP_BINARY, .attr.binary.kind = RFX_BINARY_MUL};
    int both[2] = {in, add(graph, (struct rfx_node){.op = RFX_OP_GLOBAL_POOL}, &in, 1)};
    int map = add(graph, scaled, both, 2);
    int planes = add(graph, (struct rfx_node){.op = RFX_OP_TO_PLAIN}, &map, 1);
    int pixels = add(graph, (struct rfx_node){.op = RFX_OP_NHWC_AS_PLAIN}, &map, 1);
    int out[5];
    out[0] = reshape(graph, planes, 2, 20);
    int row = reshape(graph, pixels, 1, 40);
    out[1] = row;
    out[2] = concat(graph, row, row, 1);
    out[3] = concat(graph, out[0], out[0], 1);
    out[4] = concat(graph, row, row, 0);
    static const char *const names[] = {"planes", "pixels", "twice", "in turn", "rows"};
    for (int k = 0; k < 5; k++)
        assert_int_equal(rfx_graph_add_output(graph, out[k], names[k], NULL), RFX_OK);
    assert_int_equal(rfx_graph_finish(graph, NULL, NULL), RFX_OK);
    for (int k = 0; k < 5; k++) {
        int n = rfx_part_ends(graph, k);
        bool made_of_maps = k < 3 || k == 4;
        struct rfx_end end = rfx_part_end(graph, k, n - 1);
        struct rfx_part_rounds rounds;
        assert_int_equal(rfx_part_graph_rounds(graph, k, NULL, 0, &rounds, NULL), RFX_OK);
        assert_true((rounds.blocking < 0) == made_of_maps);
        assert_int_equal(rounds.rounds, made_of_maps ? 1 : 2);
        assert_true((graph->nodes[end.node].out.layout == RFX_LAYOUT_NHWC) == made_of_maps);
        assert_int_equal(n, ends[k]);
        if (k < 3) assert_memory_equal(&end.at, &at[k], sizeof end.at);
    }
    float mean[2] = {1.0f, 2.0f};
    struct rfx_part_known known = {both[1], mean};
    struct rfx_graph *part;
    assert_int_equal(rfx_part_graph_share(graph, 2, &known, 1, 1, 2, &part, NULL), RFX_OK);
    assert_int_equal(part->n_outputs, 2);
    assert_true(rfx_rect_equal(rfx_part_graph_image(part), rfx_rect_make(3, 5, 0, 4)));
    rfx_graph_free(part);
    rfx_graph_free(graph);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shares_of_one),
                                       cmocka_unit_test(test_moved_maps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
