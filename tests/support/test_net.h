/* Networks that tests build node by node. */
#ifndef RFX_TESTS_SUPPORT_TEST_NET_H
#define RFX_TESTS_SUPPORT_TEST_NET_H

#include "layers/graph/graph.h"

struct test_net {
    struct rfx_memory *mem;
    struct rfx_graph *graph;
};

/* Returns a network that has only its image, node 0. */
struct test_net test_net_begin(int64_t c, int64_t h, int64_t w);

/* Add a node and return its index. Its name is "n" and the index. The test fails when the graph
 * refuses the node. test_net_put takes up to two inputs; -1 means that there is none. */
int test_net_add(struct rfx_graph *graph, struct rfx_node node, const int *in, int n_in);
int test_net_put(const struct test_net *net, struct rfx_node node, int a, int b);

/* As test_net_put, but returns the status of rfx_graph_add, with the index in *index. */
enum rfx_status test_net_try(const struct test_net *net, struct rfx_node node, int a, int b,
                             int *index, struct rfx_error *err);

/* Adds a constant PLAIN tensor of n zeros and returns its index. */
int test_net_line(const struct test_net *net, int64_t n);

/* Frees graph and allocator; fails if a block is still allocated. */
void test_net_end(struct test_net *net);
#endif
