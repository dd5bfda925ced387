/* How far the order of a convolution's sums, and their rounding to float, may move an element from
 * the exact value. */
#ifndef RFX_TESTS_SUPPORT_ORACLE_ROUNDING_H
#define RFX_TESTS_SUPPORT_ORACLE_ROUNDING_H

#include "layers/graph/graph.h"

/* The largest absolute error of the elements of one output channel, from its weights and the inputs
 * as a whole, whatever the order of the sums; 0 for a node that is no convolution. A sum of n
 * products rounds by n + 3 half units in the last place of the sum of their magnitudes at the most,
 * and where products cancel each other that is more than of the result.
 *
 * in: the node's inputs in ONNX order or stored order. */
double test_rounding(const struct rfx_graph *graph, const struct rfx_node *node, float *const *in,
                     int64_t channel);

/* The largest finite magnitude, at least 0.001. */
double test_largest(const float *values, int64_t n);
#endif
