/* Packs the constants of nodes with a team of threads. Threads share the nodes, and the shards of
 * large nodes. */
#ifndef RFX_LAYERS_GRAPH_PACK_H
#define RFX_LAYERS_GRAPH_PACK_H

#include "layers/core/team.h"
#include "layers/graph/op.h"

/* Number of threads that pack at the same time, at most; temp is divided into as many pieces. */
#define RFX_PACK_MAX_THREADS 8

struct rfx_pack_nodes {
    const struct rfx_graph *graph;
    int first, last; /* nodes [first, last) */
    /* Returns the destination of a node's packed constants; NULL: do not pack the node. Called by
     * several threads at the same time. */
    void *(*at)(void *user, int node);
    void *user;
    void *temp; /* RFX_PACK_TEMP_BYTES, aligned, uninitialised; for all threads together */
};

/* Packs the nodes with the team. The packed bytes do not depend on the number of threads, nor does
 * the error that is returned if there are several: it is the first in the order of nodes. Returns
 * IO if a model file cannot be read any more; the destination then contains garbage. */
RFX_NODISCARD enum rfx_status rfx_pack_share(struct rfx_team *team,
                                             const struct rfx_pack_nodes *nodes,
                                             struct rfx_error *err);
#endif
