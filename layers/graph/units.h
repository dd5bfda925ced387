/* The work grid: a rectangle of an operator's output is cut into units that threads share.
 *
 * Each thread begins with a share of neighbouring units (team.h), and units are numbered down the
 * columns. So from operator to operator, and from step to step of a stream, a thread computes the
 * same columns of the maps, which are in its cache; only columns at the border of its share change.
 */
#ifndef RFX_LAYERS_GRAPH_UNITS_H
#define RFX_LAYERS_GRAPH_UNITS_H

#include "layers/graph/op.h"

/* Several, so that the threads do not wait long for one that is slow. */
#define RFX_UNITS_PER_THREAD 4

/* Grid of units: `down` x `across` units of args->rect. The bits of results do not depend on the
 * grid. */
struct rfx_units {
    int64_t down, across;
};

/* Returns the number of column ranges for `cols` columns: one per thread, or 1 if they would be too
 * narrow. */
int64_t rfx_units_beside(int64_t cols, int threads);

/* Returns the grid of `parts` parts of a rectangle: side by side, or one below the other if they
 * would be too narrow. With fewer rows than parts, some parts have no rows. */
struct rfx_units rfx_units_into(struct rfx_rect rect, int parts);

/* Returns part `index` of down * across parts of a rectangle, numbered down the columns. */
struct rfx_rect rfx_units_part(struct rfx_rect rect, struct rfx_units grid, int64_t index);

/* Returns a grid of units of a few rows each. */
struct rfx_units rfx_units_of_rows(const struct rfx_run_args *args);

/* Returns a grid of `across` units side by side and at least `down` units one below the other: more
 * if threads would have no work or units would be too high. */
struct rfx_units rfx_units_at_least(const struct rfx_run_args *args, int64_t down, int64_t across);

/* Calls make(user, unit, scratch) for all units, distributed over the team. `scratch` is the
 * thread's own `scratch_bytes` of args->scratch. */
typedef void rfx_units_make(const void *user, struct rfx_rect unit, void *scratch);
void rfx_units_share(const struct rfx_run_args *args, struct rfx_units grid, size_t scratch_bytes,
                     rfx_units_make *make, const void *user);
#endif
