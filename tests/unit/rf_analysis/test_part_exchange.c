/* Halos that shares would fetch from each other, for networks whose rows can be counted on paper.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "layers/graph/op.h"
#include "rf_analysis/part_exchange.h"
#include "rf_analysis/part_graph.h"
#include "rfexec/run/model.h"
#include "tests/support/random/small_nets.h"
#include "tests/support/test_util.h"

static struct rfx_part_exchange of(const struct rfx_graph *graph, int64_t index, int64_t count,
                                   struct rfx_part_halo *halos) {
    struct rfx_part_exchange out;
    assert_int_equal(rfx_part_exchange_of(graph, 0, index, count, halos, &out, NULL), RFX_OK);
    return out;
}

static void assert_exchange(struct rfx_part_exchange got, uint64_t macs, size_t bytes, int maps,
                            int messages) {
    assert_int_equal(got.macs, macs);
    assert_int_equal(got.bytes, bytes);
    assert_int_equal(got.maps, maps);
    assert_int_equal(got.messages, messages);
}

/* "a" 3x3 stride 2 of 2 channels, "b" 3x3: maps of 10 x 15 with 4 and 3 channels. */
static void test_rows(void **state) {
    enum { A_ROW = 15 * 4 * 2 * 9, B_ROW = 15 * 3 * 4 * 9, A_BYTES = 15 * 4 * 4 };
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = small_net_two_convs(mem, 20, 30);
    struct rfx_part_halo halos[8];
    int a = rfx_graph_find(graph, "a");
    (void)state;
    assert_true(graph->n_nodes <= 8);
    /* b's rows 0 to 4, 4 to 7, 7 to 10 take a's 0 to 5, 3 to 8, 6 to 10 */
    assert_exchange(of(graph, 0, 3, NULL), 4 * (A_ROW + B_ROW), A_BYTES, 1, 1);
    assert_exchange(of(graph, 1, 3, halos), 3 * (A_ROW + B_ROW), 2 * A_BYTES, 1, 2);
    for (int i = 0; i < graph->n_nodes; i++) {
        assert_int_equal(halos[i].rows, i == a ? 2 : 0); /* the image is read, not fetched */
        assert_int_equal(halos[i].bytes, i == a ? 2 * A_BYTES : 0);
        assert_int_equal(halos[i].shares, i == a ? 2 : 0);
    }
    assert_exchange(of(graph, 2, 3, NULL), 3 * (A_ROW + B_ROW), A_BYTES, 1, 1);
    assert_exchange(of(graph, 0, 1, NULL), 10 * (A_ROW + B_ROW), 0, 0, 0);
    /* more shares than rows: those that have none ask for nothing */
    assert_exchange(of(graph, 9, 16, NULL), A_ROW + B_ROW, A_BYTES, 1, 1);
    assert_exchange(of(graph, 10, 16, NULL), 0, 0, 0, 0);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

/* A window of 11 rows over shares of one: all others have some of it. */
static void test_reach(void **state) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = small_net_dilated(mem, 8, 6, 5);
    struct rfx_part_halo halos[8];
    (void)state;
    assert_true(graph->n_nodes <= 8);
    struct rfx_part_exchange got = of(graph, 3, 8, halos);
    assert_int_equal(halos[rfx_graph_find(graph, "a")].rows, 7);
    assert_int_equal(got.bytes, 7 * 6 * 4 * 4);
    assert_int_equal(got.maps, 1);
    assert_int_equal(got.messages, 7);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

/* A join, a stride, and a pool whose state is no exchange of rows. */
static void test_join(void **state) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = small_net_residual(mem, 8, 6);
    struct rfx_part_halo halos[8];
    uint64_t macs = 0, all = 0;
    (void)state;
    assert_true(graph->n_nodes <= 8);
    int a = rfx_graph_find(graph, "a"), sum = rfx_graph_find(graph, "sum");
    (void)of(graph, 0, 2, halos);
    assert_int_equal(halos[a].rows, 1);   /* b's rows 0 to 4 take 0 to 5 */
    assert_int_equal(halos[sum].rows, 0); /* c's rows 0 to 2 take 0 to 4 */
    struct rfx_part_exchange second = of(graph, 1, 2, halos);
    assert_int_equal(halos[a].rows, 1);
    assert_int_equal(halos[sum].rows, 1); /* 2 to 4 take 3 to 8 */
    assert_int_equal(second.maps, 2);
    assert_int_equal(second.messages, 2);
    assert_int_equal(halos[rfx_graph_find(graph, "c")].rows, 0);
    for (int64_t i = 0; i < 3; i++) macs += of(graph, i, 3, NULL).macs;
    for (int i = 0; i < graph->n_nodes; i++)
        all += rfx_op_macs(graph, &graph->nodes[i], rfx_node_full_rect(&graph->nodes[i]));
    assert_int_equal(macs, all); /* nothing is made twice, and nothing left out */
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

/* Of several outputs one: what the others alone need counts nothing. */
static void test_one_output(void **state) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_load_options load = {.h = 65, .w = 65};
    struct rfx_graph *graph, *alone;
    struct rfx_part_exchange share;
    uint64_t macs = 0, all = 0;
    (void)state;
    assert_int_equal(rfx_model_load(mem, "posenet", &load, &graph, NULL), RFX_OK);
    struct rfx_tensor *map = &graph->nodes[graph->outputs[1].node].out;
    assert_int_equal(rfx_part_graph_create(graph, 1, rfx_rect_full(map->h, map->w), &alone, NULL),
                     RFX_OK);
    for (int i = 0; i < alone->n_nodes; i++)
        all += rfx_op_macs(alone, &alone->nodes[i], rfx_node_full_rect(&alone->nodes[i]));
    for (int64_t i = 0; i < 3; i++) {
        assert_int_equal(rfx_part_exchange_of(graph, 1, i, 3, NULL, &share, NULL), RFX_OK);
        macs += share.macs;
    }
    assert_int_equal(macs, all);
    rfx_graph_free(alone);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

static void test_no_memory(void **state) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = small_net_two_convs(mem, 20, 30);
    struct rfx_part_exchange out;
    (void)state;
    rfx_memory_fail_after(mem, 0);
    assert_int_equal(rfx_part_exchange_of(graph, 0, 0, 2, NULL, &out, NULL),
                     RFX_STATUS_OUT_OF_MEMORY);
    rfx_memory_fail_after(mem, -1);
    rfx_graph_free(graph);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),      cmocka_unit_test(test_reach),
        cmocka_unit_test(test_join),      cmocka_unit_test(test_one_output),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
