/* Sekiyama's best fit for strips: the lowest line of the skyline takes the item of longest lifetime
 * that fits between its neighbours, or rises to the lower of them.
 *
 * It is the one strategy here that is fast for millions of items, and where many are alive at once
 * it comes close to the bound. With more than 32,768 of them a line that is lower than its
 * neighbour by little rises before it takes an item. Source: Sekiyama et al., "Profile-guided
 * memory optimization for deep neural networks" (2018), and the best fit of Burke, Kendall and
 * Whitwell (2004) from which it comes. */
#ifndef RFX_TILER_STRATEGIES_PLACEMENT_STRIP_H
#define RFX_TILER_STRATEGIES_PLACEMENT_STRIP_H

#include "tiler/strategies/placement_problem.h"
#include "tiler/strategies/placement_stop.h"

/* Ways to measure how long a lifetime is. 0: its length. Others: moments weigh the more the nearer
 * their load is to the bound. Where it is at the bound what is left below an item makes the arena
 * larger, elsewhere it does not; and the longest item that fits leaves the least. */
enum { RFX_STRIP_MEASURES = 4 };

/* Fills offsets[n]. Of items of equal lifetime the larger goes first, then the earlier in the
 * problem; of equally low lines the earlier in time. RFX_STATUS_OUT_OF_MEMORY. O(n log n) but for
 * the look for the longest item, which visits some ten nodes of a tree on problems with many short
 * items and n at worst. */
RFX_NODISCARD enum rfx_status rfx_strip_place(const struct rfx_place_problem *problem,
                                              size_t *offsets, struct rfx_error *err);

/* The same with a measure, 0 .. RFX_STRIP_MEASURES - 1. Where `stop` (NULL: none) says so it
 * returns RFX_STATUS_CANCELLED without a text. */
RFX_NODISCARD enum rfx_status rfx_strip_place_measured(const struct rfx_place_problem *problem,
                                                       int measure,
                                                       const struct rfx_place_stop *stop,
                                                       size_t *offsets, struct rfx_error *err);
#endif
