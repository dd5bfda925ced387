/* Runs a finished graph node by node with whole maps: the oracle without tiles. It uses the op
 * table, and neither plans nor sessions. */
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

/* Packs all nodes. Returns false, with a message on stderr, if a node cannot be packed. */
bool test_prepare(const struct rfx_graph *graph, int threads, struct test_prepared *out);
void test_prepared_free(struct test_prepared *prepared);

/* Computes every node's whole output, in the layout and the element type of its tensor. Sets each
 * of the n_nodes pointers of outs to a malloc'ed array; free them with test_run_whole_free.
 * input_nhwc: h x w x c. */
void test_run_whole(const struct test_prepared *prepared, const float *input_nhwc, float **outs);
void test_run_whole_free(const struct rfx_graph *graph, float **outs);

/* Returns output `k`, computed on one thread; input and output are in ONNX order. The caller frees
 * it. Aborts if a node cannot be packed. */
float *test_run_output(const struct rfx_graph *graph, const float *input_nchw, int k);
#endif
