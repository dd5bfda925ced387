/* Networks that tests build node by node. */
#ifndef RFX_TESTS_SUPPORT_TEST_NET_H
#define RFX_TESTS_SUPPORT_TEST_NET_H

#include "layers/graph/graph.h"

struct test_net {
    struct rfx_memory *mem;
    struct rfx_graph *graph;
};

/* Returns a network of one node, its image. */
struct test_net test_net_begin(int64_t c, int64_t h, int64_t w);

/* Add a node and return its index. The name is "n" and the index. The test fails when the graph
 * refuses the node. test_net_put takes up to two inputs; -1 means that there is none. */
int test_net_add(struct rfx_graph *graph, struct rfx_node node, const int *in, int n_in);
int test_net_put(const struct test_net *net, struct rfx_node node, int a, int b);

/* Frees both, and fails when memory is left. */
void test_net_end(struct test_net *net);
#endif
