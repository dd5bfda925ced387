/* Networks of small ONNX graphs, through a file beside the test. Failures fail the test. */
#ifndef RFX_TESTS_SUPPORT_MAKERS_ONNX_NET_H
#define RFX_TESTS_SUPPORT_MAKERS_ONNX_NET_H

#include "layers/graph/graph.h"
#include "tests/support/makers/onnx_maker.h"

/* The network that a graph of that opset becomes, with "y" as its output; for onnx_net_discard. */
struct rfx_graph *onnx_net_loaded(const struct maker *graph, int64_t opset);

/* Frees it, and fails when something of it is left. */
void onnx_net_discard(struct rfx_graph *net);

/* Fails unless it is UNSUPPORTED or MALFORMED, with these words in the reason, and leaves nothing.
 */
void onnx_net_refused(const struct maker *graph, int64_t opset, const char *words);

#endif
