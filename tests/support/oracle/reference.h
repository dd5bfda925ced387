/* The naive evaluator: every op in nested loops over NCHW data with double accumulation, written
 * from the ONNX definitions and nothing else. It calls no op function. It reads the graph's nodes,
 * attributes, weights and inferred shapes, and compares the shapes with its own formulas. */
#ifndef RFX_TESTS_SUPPORT_ORACLE_REFERENCE_H
#define RFX_TESTS_SUPPORT_ORACLE_REFERENCE_H

#include <stdbool.h>

#include "layers/graph/graph.h"

/* Evaluates all nodes. outs: n_nodes pointers, each set to a malloc'ed array of out.elems floats in
 * ONNX order (maps NCHW, PLAIN tensors row-major), to be freed with rfx_ref_free. input_nchw: c x h
 * x w. Returns false, with a message on stderr, if an inferred shape differs from ONNX's. */
bool rfx_ref_eval(const struct rfx_graph *graph, const float *input_nchw, float **outs);

/* Frees the n_nodes arrays of rfx_ref_eval. */
void rfx_ref_free(const struct rfx_graph *graph, float **outs);

/* Evaluates one node from its inputs in ONNX order; out: node->out.elems floats. */
bool rfx_ref_node(const struct rfx_graph *graph, const struct rfx_node *node, float *const *in,
                  float *out);

/* Evaluates an op on whole tensors (reference_tensor.c). Returns false if the op is none of them or
 * if the inferred shape is wrong. */
bool rfx_ref_tensor(const struct rfx_graph *graph, const struct rfx_node *node, float *const *in,
                    float *out);

/* Return the activation of a value of channel c, and the result of a BINARY operator, in double. */
double rfx_ref_act(const struct rfx_graph *graph, const struct rfx_act *act, double x, int64_t c);
double rfx_ref_binary(enum rfx_binary_kind kind, double a, double b);

/* Returns element i of a weight, or `missing` if index < 0. A weight of one element is repeated. */
double rfx_ref_weight(const struct rfx_graph *graph, int index, int64_t i, double missing);
#endif
