/* Chooses what a float32 network computes on bytes, and finds scales and zero points.
 *
 * Convolutions, Gemm, additions and products of two maps, means and Concat are computed on
 * integers; their inputs and results are stored as bytes. Everything else stays in float32, between
 * conversions; operators that only move or choose elements pass bytes on. */
#ifndef RFX_RFEXEC_QUANTISE_QUANTISER_H
#define RFX_RFEXEC_QUANTISE_QUANTISER_H

#include "rfexec/onnx/export/quantisation.h"
#include "rfexec/quantise/value_counts.h"

struct rfx_quantiser_request {
    struct rfx_range_request range;
    bool one_weight_scale;         /* one scale for all output channels of a layer */
    const char *const *left_float; /* names of layers that stay in float32 */
    int n_left_float;
};

/* The part of a layer that rounding to bytes changes most, and by how much. */
struct rfx_layer_noise {
    double db;        /* signal to noise */
    const char *part; /* "weights", "input" or "result"; NULL: not measured */
};

struct rfx_quantiser {
    const struct rfx_graph *graph; /* loaded with rfx_quantiser_fusing */
    struct rfx_node_quantisation *nodes;
    int *sources;                  /* per node: the node whose range its tensor has */
    bool *integer;                 /* per node: it is computed on integers */
    float *floats;                 /* scales and factors of weights */
    struct rfx_layer_noise *noise; /* per node, set by rfx_quantiser_leave_noisy */
    int counted;                   /* tensors whose values must be counted */
};

/* What may be fused in the network: batch norms into convolutions, nothing else. */
extern const struct rfx_fuse_options rfx_quantiser_fusing;

/* Chooses the nodes. The caller frees the quantiser, which may be all zeros, with
 * rfx_quantiser_release. INVALID_ARGUMENT: no layer has a name that is to stay in float32, or no
 * layer is left for integers; UNSUPPORTED: the network has integers already. */
RFX_NODISCARD enum rfx_status rfx_quantiser_choose(struct rfx_quantiser *q,
                                                   const struct rfx_graph *graph,
                                                   const struct rfx_quantiser_request *request,
                                                   struct rfx_error *err);

/* Returns whether the values of a node's tensor must be counted. */
bool rfx_quantiser_counts(const struct rfx_quantiser *q, int node);

/* Returns the name by which a node's tensor is kept as an output. */
const char *rfx_quantiser_name(const struct rfx_quantiser *q, int node);

/* Sets scales and zero points of all tensors from counts[node], for the nodes that are counted, and
 * the scales of weights, which are read once. Statuses as rfx_weight_read; UNSUPPORTED: a weight is
 * not finite. */
RFX_NODISCARD enum rfx_status rfx_quantiser_find_scales(struct rfx_quantiser *q,
                                                        const struct rfx_value_counts *counts,
                                                        const struct rfx_quantiser_request *request,
                                                        struct rfx_error *err);

/* Leaves the layers in float32 of which an input, the weights or the result have less than `least`
 * dB of signal to noise as bytes. The scales must have been found, and have to be found again.
 * Statuses as rfx_weight_read; INVALID_ARGUMENT: no layer is left for integers. */
RFX_NODISCARD enum rfx_status rfx_quantiser_leave_noisy(struct rfx_quantiser *q,
                                                        const struct rfx_value_counts *counts,
                                                        const struct rfx_quantiser_request *request,
                                                        double least, struct rfx_error *err);

void rfx_quantiser_release(struct rfx_quantiser *q);
#endif
