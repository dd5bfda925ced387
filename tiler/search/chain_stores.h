/* Which maps a chain stores for later stages, chosen one by one: those that save most time for the
 * bytes and the stages that they wait, as long as there is room.
 *
 * Counted from the graph alone: a stage takes the time of whole maps of all that its targets need
 * and no earlier stage stores, and what is made of a map that dies there may lie in its bytes. What
 * rows and bands add, level by level, is told by the caller. Private to tiler/search. */
#ifndef RFX_TILER_SEARCH_CHAIN_STORES_H
#define RFX_TILER_SEARCH_CHAIN_STORES_H

#include "tiler/search/partition.h"

/* What a choice comes to. */
struct rfx_chain_count {
    double time;  /* of all stages, in the unit of the nodes' times */
    size_t bytes; /* of stored maps and what is beside them, where that is most */
};

struct rfx_chain_stores;

/* times[n_nodes]: of each whole map. OUT_OF_MEMORY. Levels and times must outlive it; to be
 * released in any case. */
RFX_NODISCARD enum rfx_status rfx_chain_stores_create(const struct rfx_levels *levels,
                                                      const double *times,
                                                      struct rfx_chain_stores **out,
                                                      struct rfx_error *err);
void rfx_chain_stores_free(struct rfx_chain_stores *stores);

/* Bytes that the stage of each level has beside stored maps: 0 at first, the caller's to change. */
size_t *rfx_chain_stores_beside(struct rfx_chain_stores *stores);

/* Looks at stages and nodes that counting a choice takes at most: how long choosing takes. */
int64_t rfx_chain_stores_looks(const struct rfx_chain_stores *stores);

/* What is preferred while maps are chosen one by one. */
struct rfx_chain_preference {
    bool by_span; /* bytes count once per stage that they wait */
    bool forgets; /* maps may be stored for some of the stages that read them */
};

/* Fills until[n_nodes] (struct rfx_partition) for so many bytes; where even what has to be stored
 * takes more, that alone. */
void rfx_chain_stores_choose(struct rfx_chain_stores *stores, size_t room,
                             struct rfx_chain_preference preference, int *until,
                             struct rfx_chain_count *count);

/* What a choice comes to. O(stages * edges). */
void rfx_chain_stores_count(struct rfx_chain_stores *stores, const int *until,
                            struct rfx_chain_count *count);
#endif
