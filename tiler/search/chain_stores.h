/* Chooses which maps a chain of stages stores for later stages, one map at a time. The map that
 * saves the most time per byte, and per stage for which it is stored, comes first, as long as it
 * fits in memory.
 *
 * The choice is computed from the graph alone. The time of a stage is that of the whole maps of all
 * nodes that its targets need and that no earlier stage stores. A new map may overwrite a map whose
 * last reader is the same stage. The caller adds the bytes of ring buffers and bands for each
 * level. Private to tiler/search. */
#ifndef RFX_TILER_SEARCH_CHAIN_STORES_H
#define RFX_TILER_SEARCH_CHAIN_STORES_H

#include "tiler/search/partition.h"

/* Time and memory of a choice. */
struct rfx_chain_count {
    double time;  /* of all stages, in the unit of `times` */
    size_t bytes; /* most bytes at any level: stored maps, and the bytes that the caller adds */
};

struct rfx_chain_stores;

/* Creates the object. times[n_nodes]: the time to compute each whole map. OUT_OF_MEMORY. `levels`
 * and `times` must outlive the object. Free it with rfx_chain_stores_free. */
RFX_NODISCARD enum rfx_status rfx_chain_stores_create(const struct rfx_levels *levels,
                                                      const double *times,
                                                      struct rfx_chain_stores **out,
                                                      struct rfx_error *err);
void rfx_chain_stores_free(struct rfx_chain_stores *stores);

/* Returns a table with one entry per level: the bytes that are required in addition to the stored
 * maps. All entries start at zero; the caller may change them. */
size_t *rfx_chain_stores_beside(struct rfx_chain_stores *stores);

/* Returns an upper bound of the number of nodes that one choice visits, which is a measure of its
 * time. */
int64_t rfx_chain_stores_looks(const struct rfx_chain_stores *stores);

/* Preferences while maps are chosen. */
struct rfx_chain_preference {
    bool by_span; /* divide the gain by the number of stages for which the map is stored */
    bool forgets; /* a map may be stored for only some of the stages that read it */
};

/* Chooses maps to store and fills until[n_nodes] (struct rfx_partition). The stored maps and the
 * additional bytes take at most `room` bytes. If the maps that must be stored already take more,
 * only those are stored. */
void rfx_chain_stores_choose(struct rfx_chain_stores *stores, size_t room,
                             struct rfx_chain_preference preference, int *until,
                             struct rfx_chain_count *count);

/* Computes time and memory of a choice. O(stages * edges). */
void rfx_chain_stores_count(struct rfx_chain_stores *stores, const int *until,
                            struct rfx_chain_count *count);
#endif
