/* Loads the network that shards are of, for what is computed when they are put together. */
#ifndef RFX_RFEXEC_SHARDS_SHARD_NETWORK_H
#define RFX_RFEXEC_SHARDS_SHARD_NETWORK_H

#include <jansson.h>

#include "layers/graph/graph.h"

/* What the JSON of a shard says. All pointers are borrowed. */
struct rfx_shard_network {
    const char *what;    /* "states" or "parts", for messages */
    const char *path;    /* the shard's file */
    const json_t *run;   /* its identity (shard_identity.h) */
    const json_t *about; /* its "about", whose member "model" names the model */
    size_t memory_bytes; /* budget for loading; 0: none */
};

/* Returns whether shards of this identity are of the cut tensors of a network with late nodes
 * (rfexec/run/join_cuts.h). */
bool rfx_shard_has_late_nodes(const json_t *run);

/* Loads the network as the shards have it. The model is a built-in network, the file named in the
 * JSON, or a file of the same name in the folder of the shard. The caller frees *out with
 * rfx_graph_free. MALFORMED: the model cannot be found, has another hash or takes images of another
 * size, or the JSON does not identify the run. Statuses of rfx_model_load. */
RFX_NODISCARD enum rfx_status rfx_shard_network_load(struct rfx_memory *mem,
                                                     const struct rfx_shard_network *of,
                                                     struct rfx_graph **out, struct rfx_error *err);

/* The same for shards of cut tensors: *out has the cut tensors as its outputs, and its late nodes.
 * boxes: they give boxes too (rfexec/late/late_boxes.h). */
RFX_NODISCARD enum rfx_status rfx_shard_network_load_late(struct rfx_memory *mem,
                                                          const struct rfx_shard_network *of,
                                                          bool boxes, struct rfx_graph **out,
                                                          struct rfx_error *err);
#endif
