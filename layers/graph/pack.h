/* Packing the constants of nodes with a team of threads: nodes are shared out, and the parts of
 * large ones. */
#ifndef RFX_LAYERS_GRAPH_PACK_H
#define RFX_LAYERS_GRAPH_PACK_H

#include "layers/core/team.h"
#include "layers/graph/op.h"

#define RFX_PACK_MAX_THREADS 8 /* that pack at a time: temp is cut into no more pieces */

struct rfx_pack_nodes {
    const struct rfx_graph *graph;
    int first, last;                   /* nodes [first, last) */
    void *(*at)(void *user, int node); /* where a node's packed constants go; NULL: nowhere. Called
                                          by several threads at a time */
    void *user;
    void *temp; /* RFX_PACK_TEMP_BYTES, aligned, garbage; of all threads together */
};

/* Packs the nodes with the team. The bytes, and of several errors the one that is told (the first
 * in the order of nodes), do not depend on the threads. IO: a model file cannot be read any more;
 * what has been written then is garbage. */
RFX_NODISCARD enum rfx_status rfx_pack_share(struct rfx_team *team,
                                             const struct rfx_pack_nodes *nodes,
                                             struct rfx_error *err);
#endif
