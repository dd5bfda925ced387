/* The measurement cache: row counts of stages that were measured before, found by what a stage
 * computes. Stages of different candidates often compute the same nodes in the same bands; a
 * candidate is measured again when it is placed; and a graph is planned again for other budgets or
 * numbers of threads. */
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
    size_t cols_bytes;   /* bytes used for columns */
    size_t bytes, limit; /* bytes of all tables, and their limit; the planner itself counts against
                            the budget */
    struct rfx_cached_rows **rows; /* lists by hash */
    struct rfx_cache_chunk *chunks;
    const struct rfx_mode *block_mode; /* the mode that owns mode_block */
    void *mode_block;
};

void rfx_measurements_release(struct rfx_measurement_cache *cache);

/* Fills rows of the computed nodes with the measurement of the same places, mode, bands and tiles;
 * returns false when there is none. */
bool rfx_measurements_find(const struct rfx_measurement_cache *cache,
                           const struct rfx_stage_shape *shape, struct rfx_node_rows *rows,
                           int64_t *overlap_rows);

/* Adds the shape's measurement where there is room. */
void rfx_measurements_add(struct rfx_measurement_cache *cache, const struct rfx_stage_shape *shape);

/* The same for columns of tiles: cols[n_nodes]. Columns take at most a share of the room. */
bool rfx_measurements_find_cols(const struct rfx_measurement_cache *cache,
                                const struct rfx_stage_shape *shape, struct rfx_tile_extent *cols);
void rfx_measurements_add_cols(struct rfx_measurement_cache *cache,
                               const struct rfx_stage_shape *shape);

/* Returns the block in which a mode caches what stages have in common; NULL: the mode has none, or
 * there is no room. */
void *rfx_measurements_of_mode(struct rfx_measurement_cache *cache, const struct rfx_mode *mode,
                               const struct rfx_graph *graph);

/* Returns the arenas of records that were placed before (plans NULL: none); NULL: no room. */
struct rfx_place_memo *rfx_plan_cache_arenas(struct rfx_plan_cache *plans);

/* Returns the cache of `plans` (NULL: none) for a graph, or `own`, emptied. */
struct rfx_measurement_cache *rfx_plan_cache_of(struct rfx_plan_cache *plans,
                                                const struct rfx_graph *graph, size_t limit,
                                                struct rfx_measurement_cache *own);
#endif
