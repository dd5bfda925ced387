/* Receptive field, jump and padding of every node on an endless image: borders play no part. */
#ifndef RFX_RF_ANALYSIS_RECEPTIVE_FIELD_H
#define RFX_RF_ANALYSIS_RECEPTIVE_FIELD_H

#include "rf_analysis/analysis.h"
#include "rf_analysis/regions.h"

/* Input range of input k for output range `out` of one axis as if the map had no border. Only for
 * ops that are local in space. */
struct rfx_range rfx_unbounded_range(const struct rfx_graph *graph, const struct rfx_node *node,
                                     int k, enum rfx_axis axis, struct rfx_range out);

/* Positions of the image that position `at` of a node depends on, inside the image; operators that
 * see all of a map (global pools, norms) are not passed through, as they would make that
 * everything. Empty: no other path leads there. `scratch` has n_nodes elements. O(edges). */
struct rfx_range rfx_field_at(const struct rfx_graph *graph, int node, enum rfx_axis axis,
                              int64_t at, struct rfx_range *scratch);

/* Fills info[i].global and info[i].field for every node. `scratch` has n_nodes elements.
 * O(nodes^2), times the number of phases where the network upsamples. */
void rfx_receptive_fields(const struct rfx_graph *graph, struct rfx_layer_info *info,
                          struct rfx_range *scratch);
#endif
