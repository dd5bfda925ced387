/* A tree of ranks up to rank 0, and from there to all. */
#include "tools/mpi/rank_states.h"

#include "layers/graph/op.h"
#include "layers/graph/reduction.h"

/* In step s ranks that are odd multiples of s give what they have to the one before. */
static enum rfx_status add_up(struct rfx_ranks *ranks, const struct rfx_node *node,
                              struct rfx_part_state *item, void *theirs, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int step = 1; step < ranks->size && status == RFX_OK; step *= 2) {
        if ((ranks->rank & step) != 0)
            return rfx_ranks_send(ranks, ranks->rank - step, item->state, item->bytes, err);
        if (ranks->rank + step >= ranks->size) continue;
        status = rfx_ranks_receive(ranks, ranks->rank + step, theirs, item->bytes, err);
        if (status == RFX_OK) rfx_node_reduction(node)->merge(node, item->state, theirs);
    }
    return status;
}

enum rfx_status rfx_rank_states_merge(struct rfx_ranks *ranks, const struct rfx_graph *graph,
                                      struct rfx_part_states *states, struct rfx_error *err) {
    size_t most = 1;
    for (int i = 0; i < states->n; i++)
        if (states->items[i].bytes > most) most = states->items[i].bytes;
    void *theirs = rfx_memory_alloc(states->mem, most);
    if (theirs == NULL) return rfx_memory_fail(states->mem, "states", most, err);
    enum rfx_status status = RFX_OK;
    for (int i = 0; i < states->n && status == RFX_OK; i++) {
        struct rfx_part_state *item = &states->items[i];
        if (item->round != states->round) continue;
        status = add_up(ranks, &graph->nodes[item->node], item, theirs, err);
        if (status == RFX_OK) status = rfx_ranks_spread(ranks, item->state, item->bytes, err);
    }
    rfx_memory_release(states->mem, theirs);
    states->index = states->count = 0; /* of all */
    return status;
}
