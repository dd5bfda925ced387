/* Packings by moving items that share bytes until none do.
 *
 * All items lie in the arena from the start, on top of each other where there is no room. One by
 * one those that share bytes move to where they share the least, counted with a weight for each
 * pair that grows while the pair overlaps and sinks again when it does not, so that no arrangement
 * is left for good (guided local search, Voudouris and Tsang 1999; for packing: Faroe, Pisinger and
 * Zachariasen 2003). Items begin on the end of others, so sums that come out exactly are found too.
 *
 * After every round the items are laid anew, each as low as the order of their middles allows: what
 * overlaps by little often fits then. That nothing is found proves nothing. */
#ifndef RFX_TILER_OVERLAPS_OVERLAPS_H
#define RFX_TILER_OVERLAPS_OVERLAPS_H

#include "tiler/strategies/placement_problem.h"
#include "tiler/strategies/placement_stop.h"

/* How many different ways of weighting pairs there are. */
enum { RFX_OVERLAPS_VARIANTS = 4 };

/* With more pairs of items alive at the same time, each counted twice, nothing is looked for: one
 * takes 26 bytes. */
#define RFX_OVERLAPS_MAX_PAIRS ((size_t)1 << 22)

struct rfx_overlaps_request {
    size_t capacity_bytes; /* > 0 and no less than the largest size: where the items are to fit */
    int variant;           /* 0 .. RFX_OVERLAPS_VARIANTS - 1 */
    const size_t *start;   /* where items lie at first, pressed to the capacity if all do; SIZE_MAX:
                              not yet, but comes to where it overlaps least, the largest first; may
                              be the array that is filled; NULL: anywhere */
    uint64_t seed;         /* of where they lie then, and of the order in which they move */
    uint64_t moves;        /* of items, at most */
    const struct rfx_place_stop *stop; /* NULL: none */
};

/* Fills offsets[n] with the lowest answer of all rounds, valid whether or not it fits the capacity,
 * and *arena_bytes (SIZE_MAX: there is none); adds the moves to *nodes. RFX_STATUS_OUT_OF_MEMORY.
 * Where nothing stops it the outcome is a function of problem and request. */
RFX_NODISCARD enum rfx_status rfx_overlaps_place(const struct rfx_place_problem *problem,
                                                 const struct rfx_overlaps_request *request,
                                                 size_t *offsets, size_t *arena_bytes,
                                                 uint64_t *nodes, struct rfx_error *err);
#endif
