/* The per-layer table of a network: receptive field, jump, padding, MACs, parameters, live memory.
 *
 * Receptive fields are those of an endless image: borders play no part. Source: paper 003 section 2
 * and Araujo et al., "Computing Receptive Fields of Convolutional Neural Networks" (Distill 2019);
 * joins take the union of their branches. */
#ifndef RFX_RF_ANALYSIS_ANALYSIS_H
#define RFX_RF_ANALYSIS_ANALYSIS_H

#include "layers/graph/graph.h"
#include "rf_analysis/regions.h"

/* A rational with positive denominator: input pixels per output pixel (effective stride); negative
 * where the map is mirrored. */
struct rfx_ratio {
    int64_t num, den;
};

/* Receptive field of a node along one axis (0 rows, 1 columns). */
struct rfx_axis_field {
    int64_t size_px; /* receptive field */
    struct rfx_ratio jump;
    int64_t padding_px; /* how far the field of output 0 begins before the image */
    int64_t period; /* number of outputs after which fields repeat, shifted by period * jump pixels;
                       1 without upsampling */
    double middle_px; /* centre of output 0's field, averaged over a period; output i's centre is i
                       * jump further */
};

struct rfx_layer_info {
    bool global; /* depends on the whole image; the fields are not valid */
    struct rfx_axis_field field[2];
    uint64_t macs;
    uint64_t params;
    size_t output_bytes;
    size_t live_bytes; /* tensors live while the layer runs untiled: inputs, output, and tensors
                          needed later */
};

struct rfx_analysis {
    struct rfx_memory *mem;
    int n_layers; /* = graph->n_nodes */
    struct rfx_layer_info *layers;
    uint64_t macs, params;
    size_t peak_live_bytes;
    int peak_layer;
};

/* Analyses a finished graph. O(nodes^2). Free with rfx_analysis_free. */
RFX_NODISCARD enum rfx_status rfx_analysis_create(const struct rfx_graph *graph,
                                                  struct rfx_analysis **out, struct rfx_error *err);

void rfx_analysis_free(struct rfx_analysis *analysis);

/* Fills last_use[n_nodes] with the last node that reads each node's tensor (n_nodes for outputs).
 */
void rfx_last_uses(const struct rfx_graph *graph, int *last_use);

/* Returns the positions of the image, inside its borders, on which position `at` of a node depends.
 * Does not follow operators that see a whole map (global pools, norms), because through them every
 * position depends on the whole image. Empty: no other path leads to the image. `scratch` has
 * n_nodes elements. O(edges). */
struct rfx_range rfx_field_at(const struct rfx_graph *graph, int node, enum rfx_axis axis,
                              int64_t at, struct rfx_range *scratch);

#endif
