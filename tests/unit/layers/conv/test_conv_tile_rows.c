/* Where tiles of rows begin, against rows that were counted by hand, and against streams. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "layers/conv/conv_backend.h"
#include "layers/conv/winograd/conv_tile_rows.h"
#include "tests/support/test_net.h"
#include "tiler/modes/streaming.h"

enum { CHANNELS = 16, WIDTH = 32 };

static struct test_net begin(int64_t rows) {
    struct test_net net = test_net_begin(CHANNELS, rows, WIDTH);
    net.graph->conv = RFX_CONV_WINOGRAD;
    return net;
}

/* A layer of 3x3 that keeps the map's size. */
static int conv(struct test_net *net, int in, int64_t above) {
    struct rfx_weight w = {.source = RFX_WEIGHT_GENERATED,
                           .hi = 1.0f,
                           .shape = {4, {CHANNELS, CHANNELS, 3, 3}},
                           .elems = CHANNELS * CHANNELS * 9};
    struct rfx_node node = {.op = RFX_OP_CONV, .act = {.slope = -1}};
    node.attr.conv = rfx_conv_pointwise(CHANNELS);
    node.attr.conv.kh = node.attr.conv.kw = 3;
    node.attr.conv.pads = (struct rfx_pads){above, 1, 2 - above, 1};
    assert_int_equal(rfx_graph_add_weight(net->graph, &w, &node.attr.conv.weight, NULL), RFX_OK);
    return test_net_put(net, node, in, -1);
}

static int halve(struct test_net *net, int in) {
    struct rfx_node node = {.op = RFX_OP_POOL_MAX, .act = {.slope = -1}};
    node.attr.pool = (struct rfx_pool_attr){.kh = 2, .kw = 2, .sh = 2, .sw = 2, .dh = 1, .dw = 1};
    return test_net_put(net, node, in, -1);
}

static int add(struct test_net *net, int a, int b) {
    struct rfx_node node = {.op = RFX_OP_BINARY, .act = {.slope = -1}};
    node.attr.binary.kind = RFX_BINARY_ADD;
    return test_net_put(net, node, a, b);
}

static void finish(struct test_net *net, int last) {
    struct rfx_error err = {{0}};
    assert_int_equal(rfx_graph_add_output(net->graph, last, "out", NULL), RFX_OK);
    if (rfx_conv_set_tile_rows(net->graph, &err) != RFX_OK) fail_msg("%s", err.text);
    if (rfx_graph_finish(net->graph, NULL, &err) != RFX_OK) fail_msg("%s", err.text);
}

/* Rows at which the tiles of convolutions begin, one after the other; the rest: -1. */
static void check(struct test_net *net, const int64_t *want) {
    for (int i = 0; i < net->graph->n_nodes; i++) {
        const struct rfx_node *node = &net->graph->nodes[i];
        if (node->op != RFX_OP_CONV) continue;
        assert_int_equal(node->attr.conv.tiles_from, *want++);
    }
    assert_int_equal(*want, -1);
    test_net_end(net);
}

static struct test_net chain(int64_t rows, int layers, int64_t above, bool skip) {
    struct test_net net = begin(rows);
    int last = 0;
    for (int i = 0; i < layers; i++) last = conv(&net, last, above);
    finish(&net, skip ? add(&net, last, 0) : last);
    return net;
}

/* With 8 k rows of the image there, a layer has 8 k - 1, the next one 8 k - 2: so many are whole
 * tiles of four if these begin there. */
static void test_tiles_follow_the_layer_before(void **state) {
    (void)state;
    if (rfx_kernels()->conv == NULL) skip();
    struct test_net net = chain(128, 6, 1, true);
    check(&net, (int64_t[]){3, 2, 1, 0, 3, 2, -1});
    net = chain(128, 4, 0, true); /* the row itself and two below */
    check(&net, (int64_t[]){2, 0, 2, 0, -1});
    net = chain(131, 3, 1, true);
    check(&net, (int64_t[]){3, 2, 1, -1});
}

/* What nothing waits for, what waits for one layer alone, and small maps stay as they are. */
static void test_tiles_at_row_0(void **state) {
    (void)state;
    if (rfx_kernels()->conv == NULL) skip();
    struct test_net net = chain(128, 4, 1, false);
    check(&net, (int64_t[]){0, 0, 0, 0, -1});
    net = chain(128, 1, 1, true);
    check(&net, (int64_t[]){0, -1});
    net = chain(60, 4, 1, true);
    check(&net, (int64_t[]){0, 0, 0, 0, -1});
    net = begin(128);
    int before = conv(&net, 0, 1), a = conv(&net, before, 1), b = conv(&net, a, 1);
    int sum = add(&net, b, before);
    finish(&net, conv(&net, sum, 1));
    check(&net, (int64_t[]){0, 3, 2, 0, -1});
}

/* Half as many rows: of 8 k - 1 of the larger map, 4 k - 1. */
static void test_tiles_of_smaller_maps(void **state) {
    (void)state;
    if (rfx_kernels()->conv == NULL) skip();
    struct test_net net = begin(128);
    int half = conv(&net, halve(&net, conv(&net, 0, 1)), 1);
    finish(&net, add(&net, half, halve(&net, 0)));
    check(&net, (int64_t[]){3, 2, -1});
    net = begin(126); /* whose half is small */
    half = conv(&net, halve(&net, conv(&net, 0, 1)), 1);
    finish(&net, add(&net, half, halve(&net, 0)));
    check(&net, (int64_t[]){3, 0, -1});
}

/* Rows of the image that a stream keeps, as they are added to what is made last. */
static int64_t rows_kept(const struct test_net *net) {
    enum { MOST = 16 };
    const struct rfx_graph *graph = net->graph;
    enum rfx_node_place places[MOST];
    struct rfx_node_rows rows[MOST] = {{0}};
    int64_t scratch[RFX_MODE_SCRATCH * MOST];
    assert_true(graph->n_nodes <= MOST);
    for (int i = 0; i < graph->n_nodes; i++)
        places[i] = i + 1 == graph->n_nodes ? RFX_PLACE_STORED : RFX_PLACE_LOCAL;
    rfx_stream_measure(graph, places, 8, scratch, rows);
    return rows[0].most;
}

/* Eight layers and bands of eight rows: 8 rows that come, 8 that wait, and less than a band; where
 * all tiles begin at row 0, each layer waits for three rows more. */
static void test_streams_wait_less(void **state) {
    (void)state;
    if (rfx_kernels()->conv == NULL) skip();
    struct test_net net = chain(256, 8, 1, true);
    int64_t moved = rows_kept(&net);
    for (int i = 0; i < net.graph->n_nodes; i++)
        if (net.graph->nodes[i].op == RFX_OP_CONV) net.graph->nodes[i].attr.conv.tiles_from = 0;
    int64_t at_0 = rows_kept(&net);
    assert_in_range(moved, 16, 24);
    assert_in_range(at_0, 36, 48);
    test_net_end(&net);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tiles_follow_the_layer_before),
        cmocka_unit_test(test_tiles_at_row_0),
        cmocka_unit_test(test_tiles_of_smaller_maps),
        cmocka_unit_test(test_streams_wait_less),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
