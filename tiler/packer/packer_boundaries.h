/* The boundaries between the sections of a problem: what ends and what begins at each.
 *
 * Bytes that are free at a time can be guessed to be items ("fillers", numbered after those of the
 * problem) that live from where the free bytes become more to where they become less by as much.
 * Invariants: 1. with fillers, in each section items and fillers add up to the capacity, so that at
 * each inner boundary the ends are as large as the begins; 2. const once created. */
#ifndef RFX_TILER_PACKER_PACKER_BOUNDARIES_H
#define RFX_TILER_PACKER_PACKER_BOUNDARIES_H

#include "tiler/strategies/placement_problem.h"

/* More items than this end or begin at no inner boundary: they are bits of a mask. */
#define RFX_BOUNDARY_MAX_SIDE 64

struct rfx_boundary_item {
    size_t size;
    int begin, end; /* boundaries */
    int bit;        /* its place among those that end at `end` */
};

struct rfx_boundary {
    int ends, n_ends, begins, n_begins; /* ranges of by_end, by_begin */
};

struct rfx_boundaries {
    struct rfx_memory *mem;
    int n_items, n; /* n: sections + 1 */
    int room;       /* for items */
    struct rfx_boundary_item *items;
    int *by_end, *by_begin;
    struct rfx_boundary *at;
    int max_live;  /* no more items live at once, those of a boundary counted on both sides */
    bool possible; /* RFX_BOUNDARY_MAX_SIDE is kept, and there is room for all fillers */
};

/* For a capacity >= the largest breadth of a problem of n >= 1 items; `backwards`: in time. Free
 * with rfx_boundaries_free. O(items * sections). */
RFX_NODISCARD enum rfx_status rfx_boundaries_create(const struct rfx_place_problem *problem,
                                                    size_t capacity, bool backwards,
                                                    struct rfx_boundaries **out,
                                                    struct rfx_error *err);
void rfx_boundaries_free(struct rfx_boundaries *boundaries);
#endif
