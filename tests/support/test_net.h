/* Networks that tests build node by node. */
#ifndef RFX_TESTS_SUPPORT_TEST_NET_H
#define RFX_TESTS_SUPPORT_TEST_NET_H

#include "layers/graph/graph.h"

struct test_net {
    struct rfx_memory *mem;
    struct rfx_graph *graph;
};

/* A network that so far is its image, node 0. */
struct test_net test_net_begin(int64_t c, int64_t h, int64_t w);

/* Adds a node, called n and its number, with inputs a and b (-1: there is none); fails where it is
 * refused. Returns its index. */
int test_net_put(const struct test_net *net, struct rfx_node node, int a, int b);

/* Frees both, and fails when memory is left. */
void test_net_end(struct test_net *net);
#endif
