/* The best of several strip packings, for problems that are too large for anything else.
 *
 * Items alive where the load is near the bound go first in most of them (placement_strip.h), and
 * which of them comes out best is left to chance: a few items that fit nowhere decide. */
#ifndef RFX_TILER_STRATEGIES_PLACEMENT_MANY_H
#define RFX_TILER_STRATEGIES_PLACEMENT_MANY_H

#include "tiler/strategies/placement_problem.h"
#include "tiler/strategies/placement_stop.h"

struct rfx_many_request {
    int threads;                       /* at least 1 */
    size_t target_bytes;               /* an arena that is small enough; 0: the bound */
    const struct rfx_place_stop *stop; /* NULL: none. The first packing is made in any case */
};

/* Fills offsets[n] and the arena's size; the answer is not checked. Of several that reach the
 * target it is the first, however many threads there are; but with more than 262,144 items a second
 * thread makes a second packing. RFX_STATUS_OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_many_place(const struct rfx_place_problem *problem,
                                             const struct rfx_many_request *request,
                                             size_t *offsets, size_t *arena_bytes,
                                             struct rfx_error *err);
#endif
