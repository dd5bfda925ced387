/* TODO */
#ifndef RFX_RF_ANALYSIS_ANALYSIS_H
#define RFX_RF_ANALYSIS_ANALYSIS_H

#include "layers/graph/graph.h"
#include "rf_analysis/regions.h"

/* A rational of positive denominator: input pixels per output pixel ("effective stride"); negative
 * where the map is mirrored. */
struct rfx_ratio {
    int64_t num, den;
};

/* Of one node, per axis (0 rows, 1 columns). */
struct rfx_axis_field {
    int64_t size_px; /* receptive field */
    struct rfx_ratio jump;
    int64_t padding_px; /* how far the field of output 0 starts before the image */
    int64_t period;     /* fields repeat, shifted by period * jump pixels, after so many outputs: 1
                           unless something upsamples */
    double middle_px;   /* where the middle of output 0's field is, on the average of a period: of
                           output i it is i * jump from there */
};

struct rfx_layer_info {
    bool global; /* sees the whole image: the fields mean nothing */
    struct rfx_axis_field field[2];
    uint64_t macs;
    uint64_t params;
    size_t output_bytes;
    size_t live_bytes; /* all tensors alive while the layer runs untiled: inputs, output, later
                          needed ones */
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

/* Last node that reads each node's tensor (n_nodes for outputs), into last_use[n_nodes]. */
void rfx_last_uses(const struct rfx_graph *graph, int *last_use);

/* Positions of the image that position `at` of a node depends on, inside the image; operators that
 * see all of a map (global pools, norms) are not passed through, as they would make that
 * everything. Empty: no other path leads there. `scratch` has n_nodes elements. O(edges). */
struct rfx_range rfx_field_at(const struct rfx_graph *graph, int node, enum rfx_axis axis,
                              int64_t at, struct rfx_range *scratch);

#endif
