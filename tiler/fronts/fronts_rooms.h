/* How much room there is for what takes the place of items that end.
 *
 * Items are taken for those of a packing without a spare byte that were made smaller, but for those
 * of the beginning: each by a share drawn evenly from none to twice the mean. A node's height is
 * the most that ever lay there; what its parent's is higher than its children's together may be any
 * child's. */
#ifndef RFX_TILER_FRONTS_FRONTS_ROOMS_H
#define RFX_TILER_FRONTS_FRONTS_ROOMS_H

#include "tiler/fronts/fronts_forest.h"

/* What of the ends of a boundary lies together in every order. */
struct rfx_front_block {
    uint64_t mask;          /* bits by their order at the boundary */
    size_t height, highest; /* of the room: at least and at most */
    double room, variance;  /* what it should be */
};

struct rfx_front_value;

struct rfx_front_rooms {
    struct rfx_memory *mem;
    const struct rfx_place_problem *problem;
    const struct rfx_front_times *times;
    size_t capacity;
    double shrink;                  /* the mean share by which items were made smaller */
    double most;                    /* a little above the largest */
    struct rfx_front_value *values; /* per node of a side */
    int *parents;
};

/* All must outlive it. Release with rfx_front_rooms_release, after a failure too.
 * RFX_STATUS_OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_front_rooms_init(struct rfx_front_rooms *rooms,
                                                   const struct rfx_place_problem *problem,
                                                   const struct rfx_front_times *times,
                                                   size_t capacity, struct rfx_error *err);
void rfx_front_rooms_release(struct rfx_front_rooms *rooms);

/* Lifts the nodes of the tree that a change made to what their leaves take. false: they are too
 * high for the place or the capacity, or too low for what lay there before. */
RFX_NODISCARD bool rfx_front_measure(struct rfx_front_rooms *rooms, struct rfx_forest *forest,
                                     int side, const struct rfx_forest_tree *tree);

/* Lists the blocks of the items marked on a side, at most RFX_FRONT_MAX_SIDE; their number. */
int rfx_front_blocks(struct rfx_front_rooms *rooms, const struct rfx_forest *forest, int side,
                     const bool *marked, struct rfx_front_block *blocks);
#endif
