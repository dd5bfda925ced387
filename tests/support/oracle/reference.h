/* The naive evaluator: every op in nested loops over NCHW data with double accumulation, written
 * from the ONNX definitions and nothing else. It calls no op function; of the graph it uses nodes,
 * attributes, weights and the inferred shapes, which it holds against its own formulas. */
#ifndef RFX_TESTS_SUPPORT_ORACLE_REFERENCE_H
#define RFX_TESTS_SUPPORT_ORACLE_REFERENCE_H

#include <stdbool.h>

#include "layers/graph/graph.h"

/* Evaluates all nodes. outs: n_nodes pointers, each set to a malloc'ed array of out.elems floats in
 * ONNX order (maps NCHW, plain row-major), to be freed with rfx_ref_free. input_nchw: c x h x w.
 * Returns false, with a message on stderr, when an inferred shape is not what ONNX says. */
bool rfx_ref_eval(const struct rfx_graph *graph, const float *input_nchw, float **outs);

/* Frees the n_nodes arrays of rfx_ref_eval. */
void rfx_ref_free(const struct rfx_graph *graph, float **outs);

/* One node from its inputs in ONNX order; out: node->out.elems floats. */
bool rfx_ref_node(const struct rfx_graph *graph, const struct rfx_node *node, float *const *in,
                  float *out);

/* Ops on whole tensors (reference_plain.c); false: not one of them or a wrong shape. */
bool rfx_ref_plain(const struct rfx_graph *graph, const struct rfx_node *node, float *const *in,
                   float *out);

/* The activation of one value of channel c, and the operator of BINARY, in double. */
double rfx_ref_act(const struct rfx_graph *graph, const struct rfx_act *act, double x, int64_t c);
double rfx_ref_binary(enum rfx_binary_kind kind, double a, double b);

/* Element i of a weight; `missing` when index < 0; a weight of one element is repeated. */
double rfx_ref_weight(const struct rfx_graph *graph, int index, int64_t i, double missing);
#endif
