/* Finds what the class-activation map of a classifier is made of (Zhou et al., "Learning Deep
 * Features for Discriminative Localization", 2016): the map that a global average pooling takes,
 * and the weights of the fully connected layer behind the pooling. The value of a class at a pixel
 * of the map is the sum over channels of weight * value; its mean over the map is the class's score
 * without bias. */
#ifndef RFX_RFEXEC_RUN_CLASS_MAP_H
#define RFX_RFEXEC_RUN_CLASS_MAP_H

#include "layers/graph/graph.h"

struct rfx_class_map {
    int map;          /* node whose tensor is pooled */
    int layer;        /* the fully connected layer, a node of RFX_OP_GEMM */
    int64_t channels; /* of the map */
    int64_t classes;
    int output; /* output that is the map or a copy of it; -1: none */
    bool added; /* the output is a copy that rfx_class_map_keep has added */
};

/* Finds the map of the network's first output. UNSUPPORTED, with the name of the node that does not
 * fit: it is not pooling, fully connected layer and, perhaps, softmax or sigmoid. */
RFX_NODISCARD enum rfx_status rfx_class_map_find(const struct rfx_graph *graph,
                                                 struct rfx_class_map *out, struct rfx_error *err);

/* Makes the map an output, under the name of its node, unless it is one already. Call it before
 * rfx_graph_finish. Statuses of rfx_class_map_find and rfx_graph_keep. */
RFX_NODISCARD enum rfx_status rfx_class_map_keep(struct rfx_graph *graph, struct rfx_error *err);

/* Reads the weights of a class, counted from 0: out [channels]. Statuses of rfx_weight_read. */
RFX_NODISCARD enum rfx_status rfx_class_map_weights(const struct rfx_graph *graph,
                                                    const struct rfx_class_map *map, int64_t label,
                                                    float *out, struct rfx_error *err);
#endif
