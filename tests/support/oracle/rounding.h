/* How far the order of a convolution's sums, and their rounding to float, may move an element from
 * the exact value. */
#ifndef RFX_TESTS_SUPPORT_ORACLE_ROUNDING_H
#define RFX_TESTS_SUPPORT_ORACLE_ROUNDING_H

#include "layers/graph/graph.h"

/* Absolute errors of the elements of one output channel, from its weights and the inputs as a
 * whole; both 0 for a node that is no convolution.
 *
 * most: no order of the sums does worse. A sum of n products rounds by n + 3 half units in the last
 * place of the sum of their magnitudes at the most, and where products cancel each other that is
 * more than of the result.
 *
 * likely: for inputs of random signs. The roundings of a chain are independent, each of a partial
 * sum; partial sums of i such products are about sqrt(i) products long. With the root R of the sum
 * of the products' squares, the errors then have a standard deviation of u * sqrt(n / 6) * R, u
 * being half a unit: of n evenly spread roundings of up to u * R * sqrt(i / n). Six of them. */
struct test_rounding {
    double most, likely;
};

/* in: the node's inputs in ONNX order or stored order. */
struct test_rounding test_rounding(const struct rfx_graph *graph, const struct rfx_node *node,
                                   float *const *in, int64_t channel);

/* The largest finite magnitude, at least 0.001. */
double test_largest(const float *values, int64_t n);
#endif
