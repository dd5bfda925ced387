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

/* One placement as a whole, which is asked for again. */
struct rfx_place_kept {
    struct rfx_place_key key;
    size_t arena;    /* 0: none */
    size_t peak;     /* of the process with it */
    size_t *offsets; /* of the records, room for capacity */
    bool *upwards;   /* of the slides, likewise */
    const char *strategy;
    int capacity;
};

/* Room for placements of so many records and slides; false: there is none. */
bool rfx_place_kept_init(struct rfx_place_kept *kept, struct rfx_memory *mem, int capacity);
void rfx_place_kept_release(struct rfx_place_kept *kept, struct rfx_memory *mem);

/* Takes a placement over whose peak is smaller than that of the one that is kept. */
void rfx_place_keep(struct rfx_place_kept *kept, struct rfx_place_key key,
                    const struct rfx_place_job *job, const bool *upwards, size_t arena,
                    const char *strategy, size_t peak);

/* Lays the records as it was kept under the key; false: it was not. */
bool rfx_place_lay_kept(const struct rfx_place_kept *kept, struct rfx_place_key key,
                        const struct rfx_place_job *job, struct rfx_record *records, bool *upwards);

struct rfx_place_key rfx_place_key_of(const struct rfx_place_job *job, bool quick);

/* The arena that was kept under the key in memo[RFX_PLACE_MEMO_ENTRIES]; 0: none. */
size_t rfx_place_recall(const struct rfx_place_memo *memo, struct rfx_place_key key);
void rfx_place_remember(struct rfx_place_memo *memo, struct rfx_place_key key, size_t arena);
#endif
