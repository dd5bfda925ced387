/* Runs a finished graph node by node with full maps: the untiled oracle. It knows op definitions
 * and nothing of plans or executors. */
#ifndef RFX_TESTS_SUPPORT_RUN_RUN_WHOLE_H
#define RFX_TESTS_SUPPORT_RUN_RUN_WHOLE_H

#include <stdbool.h>

#include "layers/graph/graph.h"

/* Packed constants and scratch of all nodes, for up to `threads` threads. */
struct test_prepared {
    const struct rfx_graph *graph;
    int threads;
    void **packed, **scratch;
};

/* False, with a message on stderr, when an op has no definition or does not pack. */
bool test_prepare(const struct rfx_graph *graph, int threads, struct test_prepared *out);
void test_prepared_free(struct test_prepared *prepared);

/* Every node's whole output, NHWC or plain as the graph lays it out: outs holds n_nodes pointers,
 * each set to a malloc'ed array (free with test_run_whole_free), of elements of the node's type.
 * input_nhwc: h x w x c. */
void test_run_whole(const struct test_prepared *prepared, const float *input_nhwc, float **outs);
void test_run_whole_free(const struct rfx_graph *graph, float **outs);

/* Output `k` on one thread, both in ONNX order, to be freed; aborts where a node does not pack. */
float *test_run_output(const struct rfx_graph *graph, const float *input_nchw, int k);
#endif
