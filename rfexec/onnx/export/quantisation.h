/* How a float32 network is written as a network on bytes: with QuantizeLinear and DequantizeLinear
 * behind every tensor that is stored as bytes (QDQ form), to a file or in memory. */
#ifndef RFX_RFEXEC_ONNX_EXPORT_QUANTISATION_H
#define RFX_RFEXEC_ONNX_EXPORT_QUANTISATION_H

#include "layers/graph/graph.h"

struct rfx_node_quantisation {
    bool bytes;   /* the node's tensor is written as bytes */
    bool weights; /* CONV, GEMM: the weights are written as int8, the bias as int32 */
    bool folded;  /* ACTIVATION: not written, because the bytes of its result saturate at the same
                     values */
    float scale;  /* bytes: a real number is (byte - zero_point) * scale */
    int32_t zero_point;
    const float *weight_scales; /* weights: one scale for each output channel */
    const float *factors; /* weights: the factor of each output channel that a fused batch norm
                             multiplies the weights by; NULL: none */
};

struct rfx_quantisation {
    enum rfx_type type;                        /* of the bytes: UINT8 or INT8 */
    const struct rfx_node_quantisation *nodes; /* one for each node of the graph */
};

/* Like rfx_onnx_export, with the tensors and weights that `quantisation` names as integers. */
RFX_NODISCARD enum rfx_status rfx_onnx_export_quantised(const struct rfx_graph *graph,
                                                        const struct rfx_quantisation *quantisation,
                                                        const char *path, struct rfx_error *err);

/* The bytes of a model file that is not written: its structure is in memory, and the values of
 * weights are computed when they are read. */
struct rfx_onnx_made;

/* Makes the file that rfx_onnx_export_quantised would write. `graph` and the tables of
 * `quantisation` must outlive it. */
RFX_NODISCARD enum rfx_status rfx_onnx_make_quantised(const struct rfx_graph *graph,
                                                      const struct rfx_quantisation *quantisation,
                                                      struct rfx_onnx_made **out,
                                                      struct rfx_error *err);

/* Returns the file of a maker (weight.h), without a path. */
struct rfx_weight_file rfx_onnx_made_file(const struct rfx_onnx_made *made);

/* NULL is allowed. */
void rfx_onnx_made_free(struct rfx_onnx_made *made);
#endif
