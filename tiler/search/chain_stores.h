/* Chooses which maps a chain of stages stores for later stages, one by one: the map that saves the
 * most time per byte and per stage of waiting comes first, as long as there is room.
 *
 * The choice is computed from the graph alone. A stage takes the time of the whole maps of all
 * nodes that its targets need and that no earlier stage stores. A new map may overwrite a map whose
 * last reader is the same stage. The caller adds the bytes of rings and bands, level by level.
 * Private to tiler/search. */
#ifndef RFX_TILER_SEARCH_CHAIN_STORES_H
#define RFX_TILER_SEARCH_CHAIN_STORES_H

#include "tiler/search/partition.h"

/* Time and memory of a choice. */
struct rfx_chain_count {
    double time;  /* of all stages, in the unit of the nodes' times */
    size_t bytes; /* most bytes of stored maps and of what the caller adds, at one level */
};

struct rfx_chain_stores;

/* times[n_nodes]: time of each whole map. OUT_OF_MEMORY. Levels and times must outlive the object;
 * release in any case. */
RFX_NODISCARD enum rfx_status rfx_chain_stores_create(const struct rfx_levels *levels,
                                                      const double *times,
                                                      struct rfx_chain_stores **out,
                                                      struct rfx_error *err);
void rfx_chain_stores_free(struct rfx_chain_stores *stores);

/* Returns the table of bytes per level that lie beside the stored maps. It starts as zeros; the
 * caller may change it. */
size_t *rfx_chain_stores_beside(struct rfx_chain_stores *stores);

/* Returns an upper bound of the node visits that one choice takes: a measure of time. */
int64_t rfx_chain_stores_looks(const struct rfx_chain_stores *stores);

/* Preferences while maps are chosen. */
struct rfx_chain_preference {
    bool by_span; /* bytes count once for each stage that the map waits */
    bool forgets; /* a map may be stored for only some of the stages that read it */
};

/* Fills until[n_nodes] (struct rfx_partition) for `room` bytes. Where the maps that must be stored
 * take more already, only those are stored. */
void rfx_chain_stores_choose(struct rfx_chain_stores *stores, size_t room,
                             struct rfx_chain_preference preference, int *until,
                             struct rfx_chain_count *count);

/* Computes time and memory of a choice. O(stages * edges). */
void rfx_chain_stores_count(struct rfx_chain_stores *stores, const int *until,
                            struct rfx_chain_count *count);
#endif
