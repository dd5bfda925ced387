/* The measurement cache: row counts of stages that have been measured before. The key of an entry
 * is what the stage computes. Entries are used again because stages of different candidates often
 * compute the same nodes in the same bands, because a candidate is measured again when it is
 * placed, and because a graph is planned again for other budgets or numbers of threads. */
#ifndef RFX_TILER_SEARCH_MEASUREMENT_CACHE_H
#define RFX_TILER_SEARCH_MEASUREMENT_CACHE_H

#include "tiler/plan/plan.h"
#include "tiler/plan/plan_build.h"

struct rfx_cache_chunk;
struct rfx_cached_rows;

/* Measurements of one graph, or of graphs with the same groups of the same base and the same ROI.
 */
struct rfx_measurement_cache {
    struct rfx_memory *mem;
    int n_nodes;
    size_t cols_bytes;             /* bytes used for columns */
    size_t bytes, limit;           /* of all tables; planning counts against the budget too */
    struct rfx_cached_rows **rows; /* lists by hash */
    struct rfx_cache_chunk *chunks;
    const struct rfx_mode *block_mode; /* the mode that owns mode_block */
    void *mode_block;
};

void rfx_measurements_release(struct rfx_measurement_cache *cache);

/* Finds a measurement with the same places, mode, bands and tiles, and fills the rows of the
 * computed nodes. Returns false if there is none. */
bool rfx_measurements_find(const struct rfx_measurement_cache *cache,
                           const struct rfx_stage_shape *shape, struct rfx_node_rows *rows,
                           int64_t *overlap_rows);

/* Adds the shape's measurement if the cache has free memory. */
void rfx_measurements_add(struct rfx_measurement_cache *cache, const struct rfx_stage_shape *shape);

/* The same for columns of tiles: cols[n_nodes]. Columns may take only a share of the cache's
 * memory. */
bool rfx_measurements_find_cols(const struct rfx_measurement_cache *cache,
                                const struct rfx_stage_shape *shape, struct rfx_tile_extent *cols);
void rfx_measurements_add_cols(struct rfx_measurement_cache *cache,
                               const struct rfx_stage_shape *shape);

/* Returns the block in which a mode caches data that its stages have in common. NULL: the mode has
 * no such block, or memory is short. */
void *rfx_measurements_of_mode(struct rfx_measurement_cache *cache, const struct rfx_mode *mode,
                               const struct rfx_graph *graph);

/* Returns the cache of arenas that have been placed before, by their tensor usage records. NULL:
 * `plans` is NULL, or memory is short. */
struct rfx_place_memo *rfx_plan_cache_arenas(struct rfx_plan_cache *plans);

/* Returns the measurement cache that `plans` has for a graph, a new one if necessary. If `plans` is
 * NULL or memory is short, returns `own`, emptied. */
struct rfx_measurement_cache *rfx_plan_cache_of(struct rfx_plan_cache *plans,
                                                const struct rfx_graph *graph, size_t limit,
                                                struct rfx_measurement_cache *own);
#endif
