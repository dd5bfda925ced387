/* Work on a rectangle of an operator's output, cut into units that threads share out.
 *
 * Threads begin with shares of neighbouring units (team.h), and units are counted down the columns:
 * from operator to operator, and from step to step of a stream, the same columns of maps fall to
 * the same thread, in whose cache they are, but for those at its share's border. */
#ifndef RFX_LAYERS_GRAPH_UNITS_H
#define RFX_LAYERS_GRAPH_UNITS_H

#include "layers/graph/op.h"

#define RFX_UNITS_PER_THREAD 4 /* so that an unlucky thread makes the others wait little */

/* How args->rect is cut for threads: into units, `down` x `across`. Bits do not depend on it. */
struct rfx_units {
    int64_t down, across;
};

/* Parts side by side of so many columns: one for each thread, or a single one where they would be
 * narrow. */
int64_t rfx_units_beside(int64_t cols, int threads);

/* A rectangle in so many parts: side by side, or where they would be narrow one below the other, of
 * which some may have no rows. */
struct rfx_units rfx_units_into(struct rfx_rect rect, int parts);

/* Part `index` of down * across of a rectangle, counted down the columns. */
struct rfx_rect rfx_units_part(struct rfx_rect rect, struct rfx_units grid, int64_t index);

/* Units of a few rows. */
struct rfx_units rfx_units_of_rows(const struct rfx_run_args *args);

/* So many units at least; more down the rows, until there are enough for all threads. */
struct rfx_units rfx_units_at_least(const struct rfx_run_args *args, int64_t down, int64_t across);

/* Calls make(user, unit, scratch) for all units, shared out to the team; scratch: `scratch_bytes`
 * of args->scratch, the thread's own. */
typedef void rfx_units_make(const void *user, struct rfx_rect unit, void *scratch);
void rfx_units_share(const struct rfx_run_args *args, struct rfx_units grid, size_t scratch_bytes,
                     rfx_units_make *make, const void *user);
#endif
