/* Strategies that give every item of a problem an offset in one arena.
 *
 * Sources: paper 000 section 5 (by size, by breadth), paper 001 section III-C (first-fit, best-fit,
 * longer-first, bigger-first), Sekiyama et al. 2018 (strip packing). All are greedy, take the items
 * one by one in an order and never move one again. Ties are broken by the items' positions in the
 * problem, so that an answer is a function of the problem alone. */
#ifndef RFX_TILER_STRATEGIES_PLACEMENT_OFFSETS_H
#define RFX_TILER_STRATEGIES_PLACEMENT_OFFSETS_H

#include "tiler/strategies/placement_problem.h"
#include "tiler/strategies/placement_stop.h"

enum rfx_offset_strategy {
    RFX_OFFSETS_BY_SIZE,       /* larger first, smallest gap that fits */
    RFX_OFFSETS_BY_BREADTH,    /* sections of larger breadth first, in each the larger item */
    RFX_OFFSETS_STRIP_PACKING, /* the lowest place takes the longest item that fits there */
    RFX_OFFSETS_FIRST_FIT,     /* in order of time, lowest gap */
    RFX_OFFSETS_BEST_FIT,      /* in order of time, smallest gap */
    RFX_OFFSETS_LONGER_FIRST,  /* longer lifetime first, lowest gap */
    RFX_OFFSETS_BIGGER_FIRST,  /* larger first, lowest gap */
    RFX_OFFSETS_COUNT
};

/* "by-size", "strip-packing"... */
const char *rfx_offset_strategy_name(enum rfx_offset_strategy strategy);

/* Fills offsets[n] and the arena's size. RFX_STATUS_OUT_OF_MEMORY. O(n^2 + n * sections). */
RFX_NODISCARD enum rfx_status rfx_offsets_place(const struct rfx_place_problem *problem,
                                                enum rfx_offset_strategy strategy, size_t *offsets,
                                                size_t *arena_bytes, struct rfx_error *err);

/* As rfx_offsets_place; where `stop` says so it returns RFX_STATUS_CANCELLED without a text. */
RFX_NODISCARD enum rfx_status rfx_offsets_place_until(const struct rfx_place_problem *problem,
                                                      enum rfx_offset_strategy strategy,
                                                      const struct rfx_place_stop *stop,
                                                      size_t *offsets, size_t *arena_bytes,
                                                      struct rfx_error *err);
#endif
