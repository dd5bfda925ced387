/* Networks of ONNX files, and of small graphs through a file beside the test. Failures fail the
 * test. */
#ifndef RFX_TESTS_SUPPORT_MAKERS_ONNX_NET_H
#define RFX_TESTS_SUPPORT_MAKERS_ONNX_NET_H

#include "layers/graph/graph.h"
#include "rfexec/run/model.h"
#include "tests/support/makers/onnx_maker.h"

/* The network of a file; for onnx_net_discard. */
struct rfx_graph *onnx_net_of_file(const char *path, const struct rfx_load_options *options);

/* Fails unless the file is refused in these words, and leaves nothing. */
void onnx_net_file_refused(const char *path, const struct rfx_load_options *options,
                           enum rfx_status status, const char *words);

/* Fails unless a load whose k-th allocation fails, for each k, says so and leaves nothing. */
void onnx_net_file_runs_out(const char *path, const struct rfx_load_options *options);

/* The network that a graph of that opset becomes, with "y" as its output; for onnx_net_discard. */
struct rfx_graph *onnx_net_loaded(const struct maker *graph, int64_t opset);

/* The same with nothing fused. */
struct rfx_graph *onnx_net_unfused(const struct maker *graph, int64_t opset);

/* From now on networks are loaded with these options of 8-bit networks. */
void onnx_net_int8(enum rfx_int8_choice choice, bool dequantize);

/* Frees it, and fails when something of it is left. */
void onnx_net_discard(struct rfx_graph *net);

/* Its nodes after the image are these, and it is freed. */
void onnx_net_has(struct rfx_graph *net, int n, const enum rfx_op *ops);

/* onnx_net_file_refused and onnx_net_file_runs_out of a graph. */
void onnx_net_refused(const struct maker *graph, int64_t opset, enum rfx_status status,
                      const char *words);
void onnx_net_runs_out(const struct maker *graph, int64_t opset);

#endif
