/* TODO */
#ifndef RFX_TILER_SEARCH_MEASUREMENT_CACHE_H
#define RFX_TILER_SEARCH_MEASUREMENT_CACHE_H

#include "tiler/plan/plan.h"
#include "tiler/plan/plan_build.h"

struct rfx_cache_chunk;
struct rfx_cached_rows;

/* Of one graph, or of graphs with the same groups of the same base, of which the same is wanted. */
struct rfx_measurement_cache {
    struct rfx_memory *mem;
    int n_nodes;
    size_t cols_bytes;             /* of columns */
    size_t bytes, limit;           /* of all tables; the planner itself counts against the budget */
    struct rfx_cached_rows **rows; /* lists by hash */
    struct rfx_cache_chunk *chunks;
    const struct rfx_mode *block_mode; /* the mode that `notes` is of */
    void *mode_block;
};

void rfx_measurements_release(struct rfx_measurement_cache *cache);

/* Fills rows of the nodes that are computed as they were measured for these places, mode, bands and
 * rows of parts; false: not known. */
bool rfx_measurements_find(const struct rfx_measurement_cache *cache,
                           const struct rfx_stage_shape *shape, struct rfx_node_rows *rows,
                           int64_t *overlap_rows);

/* Keeps what was measured, where there is room. */
void rfx_measurements_add(struct rfx_measurement_cache *cache, const struct rfx_stage_shape *shape);

/* The same for columns of parts: cols[n_nodes]. They take a share of the room at most. */
bool rfx_measurements_find_cols(const struct rfx_measurement_cache *cache,
                                const struct rfx_stage_shape *shape, struct rfx_tile_extent *cols);
void rfx_measurements_add_cols(struct rfx_measurement_cache *cache,
                               const struct rfx_stage_shape *shape);

/* The block in which a mode notes what stages have in common; NULL: it has none, or there is no
 * room. */
void *rfx_measurements_of_mode(struct rfx_measurement_cache *cache, const struct rfx_mode *mode,
                               const struct rfx_graph *graph);

/* The arenas that notes (NULL: none) have of records placed before; NULL: there is no room. */
struct rfx_place_memo *rfx_plan_cache_arenas(struct rfx_plan_cache *plans);

/* The store that notes (NULL: none) have for a graph, or `own`, emptied. */
struct rfx_measurement_cache *rfx_plan_cache_of(struct rfx_plan_cache *plans,
                                                const struct rfx_graph *graph, size_t limit,
                                                struct rfx_measurement_cache *own);
#endif
