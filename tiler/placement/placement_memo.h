/* Arenas that were found before: a planner places the same records under several names, as tiles of
 * 2 x 3 and of 3 x 2 of a square map, or a plan that does not fit and may still be the smallest.
 *
 * A placement is a function of lifetimes, sizes and slides alone (placement.h), so those are what
 * an arena is kept under: as a hash of 128 bits, which two problems of one search do not share in
 * practice. Bounded in size; a new entry may take an old one's place. */
#ifndef RFX_TILER_PLACEMENT_PLACEMENT_MEMO_H
#define RFX_TILER_PLACEMENT_PLACEMENT_MEMO_H

#include <stdint.h>

#include "tiler/placement/placement_bound.h"

enum { RFX_PLACE_MEMO_ENTRIES = 4096 };

struct rfx_place_key {
    uint64_t low, high;
};

struct rfx_place_memo {
    struct rfx_place_key key;
    size_t arena; /* 0: no entry */
};

struct rfx_place_key rfx_place_key_of(const struct rfx_place_job *job, bool quick);

/* The arena that was kept under the key in memo[RFX_PLACE_MEMO_ENTRIES]; 0: none. */
size_t rfx_place_recall(const struct rfx_place_memo *memo, struct rfx_place_key key);
void rfx_place_remember(struct rfx_place_memo *memo, struct rfx_place_key key, size_t arena);
#endif
