/* See test_net.h. */
#include "tests/support/test_net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "layers/core/memory.h"

struct test_net test_net_begin(int64_t c, int64_t h, int64_t w) {
    struct test_net net = {rfx_memory_create(0), NULL};
    struct rfx_error err;
    assert_int_equal(rfx_graph_create(net.mem, "net", &net.graph, &err), RFX_OK);
    struct rfx_node image = {.op = RFX_OP_INPUT};
    image.attr.input.c = c;
    image.attr.input.h = h;
    image.attr.input.w = w;
    (void)test_net_put(&net, image, -1, -1);
    return net;
}

/* Adds a node whose name is "n" and its index. */
static enum rfx_status add(struct rfx_graph *graph, struct rfx_node node, const int *in, int n_in,
                           int *index, struct rfx_error *err) {
    char name[24];
    (void)snprintf(name, sizeof name, "n%d", graph->n_nodes);
    node.name = name;
    node.in = in;
    node.n_in = n_in;
    return rfx_graph_add(graph, &node, index, err);
}

int test_net_add(struct rfx_graph *graph, struct rfx_node node, const int *in, int n_in) {
    int index = -1;
    struct rfx_error err = {{0}};
    if (add(graph, node, in, n_in, &index, &err) != RFX_OK) fail_msg("%s", err.text);
    return index;
}

enum rfx_status test_net_try(const struct test_net *net, struct rfx_node node, int a, int b,
                             int *index, struct rfx_error *err) {
    const int in[2] = {a, b};
    return add(net->graph, node, in, a < 0 ? 0 : b < 0 ? 1 : 2, index, err);
}

int test_net_put(const struct test_net *net, struct rfx_node node, int a, int b) {
    const int in[2] = {a, b};
    return test_net_add(net->graph, node, in, a < 0 ? 0 : b < 0 ? 1 : 2);
}

int test_net_line(const struct test_net *net, int64_t n) {
    const struct rfx_weight zeros = {.source = RFX_WEIGHT_FILLED, .shape = {1, {n}}, .elems = n};
    struct rfx_node line = {.op = RFX_OP_CONST_PLAIN, .attr.constant.shape = zeros.shape};
    struct rfx_error err;
    assert_int_equal(rfx_graph_add_weight(net->graph, &zeros, &line.attr.constant.weight, &err),
                     RFX_OK);
    return test_net_put(net, line, -1, -1);
}

void test_net_end(struct test_net *net) {
    rfx_graph_free(net->graph);
    assert_int_equal(rfx_memory_current_bytes(net->mem), 0);
    rfx_memory_free(net->mem);
}
