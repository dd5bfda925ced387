/* Placement of a plan's tensor usage records in one arena, its lower bound and its validator, and a
 * memory of placements found before.
 *
 * Invariants: 1. two records whose lifetimes overlap never share a byte, except where one is
 * overwritten row by row while the other is made (struct rfx_slide); 2. offsets are multiples of
 * RFX_ALIGNMENT_BYTES; 3. the result is a function of the records alone.
 *
 * A planner places the same records several times, for example for 2 x 3 and 3 x 2 tiles of a
 * square map. So the sizes of arenas are remembered under a 128-bit hash of lifetimes, sizes and
 * slides. In practice no two problems of a search have the same hash. The table is bounded; a new
 * entry may replace an old one. */
#ifndef RFX_TILER_ARENA_PLACEMENT_H
#define RFX_TILER_ARENA_PLACEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layers/core/memory.h"
#include "layers/core/status.h"

enum rfx_record_kind {
    RFX_RECORD_STORED,  /* full map of a node */
    RFX_RECORD_LOCAL,   /* resident region of a node in a stage; the state of a reduction */
    RFX_RECORD_STAGING, /* staging rows of a node */
    RFX_RECORD_PACKED,  /* packed weights of a node in a stage */
};

/* A tensor usage record: aligned bytes, live in the closed range of steps [first, last]. */
struct rfx_record {
    enum rfx_record_kind kind;
    int stage, node;
    int first, last;
    size_t bytes, offset;
};

/* A slide: record `before` is overwritten row by row by record `after` while node `node` is
 * computed. The two may overlap when `after` lies at least `down` bytes below (rows are made from
 * first to last), or at least `up` bytes above (from last to first). All slides of a node go in one
 * direction. */
struct rfx_slide {
    int before, after; /* indices of records */
    int stage, node;
    size_t down, up;
};

/* Returns whether two records are alive at the same time. */
bool rfx_records_overlap(const struct rfx_record *a, const struct rfx_record *b);

/* Places records with the packer (packer.h), within a fixed number of search nodes (few when
 * quick). Fills the offsets, the arena's size and the name of the method that found the placement.
 * OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_place_records(struct rfx_memory *mem, struct rfx_record *records,
                                                int n, bool quick, size_t *arena_bytes,
                                                const char **strategy, struct rfx_error *err);

/* Returns whether the offsets keep invariants 1 and 2 within arena_bytes, where records in a slide
 * are apart or lie as the slide allows; upwards[k] is the direction of slide k. Independent of
 * every packer. */
bool rfx_place_is_valid(const struct rfx_record *records, int n, const struct rfx_slide *slides,
                        int n_slides, const bool *upwards, size_t arena_bytes);

/* Steps [begin, end). */
struct rfx_place_span {
    int begin, end;
};

/* What is placed: records, and slides by rising steps, with the slides of a node next to each
 * other. */
struct rfx_place_job {
    const struct rfx_record *records;
    const struct rfx_slide *slides;
    int n, n_slides;
    int n_steps;
    const struct rfx_place_span
        *spans; /* rising; no record begins or has ended at any other step. NULL: all steps */
    int n_spans;
};

/* Returns the largest sum of live bytes less the most that slides can save; *rest: the same over
 * the steps from rest_first on. `live`: scratch of n_steps + 1 elements. O(n + n_slides + steps of
 * the spans). */
size_t rfx_place_slides_bound(const struct rfx_place_job *job, int rest_first, size_t *live,
                              size_t *rest);

enum { RFX_PLACE_MEMO_ENTRIES = 4096 };

struct rfx_place_key {
    uint64_t low, high;
};

struct rfx_place_memo {
    struct rfx_place_key key;
    size_t arena; /* 0: no entry */
};

/* One placement, saved as a whole. */
struct rfx_place_saved {
    struct rfx_place_key key;
    size_t arena;    /* 0: empty */
    size_t peak;     /* peak of the process with this placement */
    size_t *offsets; /* of the records, room for capacity entries */
    bool *upwards;   /* of the slides, room for capacity entries */
    const char *strategy;
    int capacity;
};

/* Allocates room for placements of `capacity` records and slides; returns false when there is no
 * memory. */
bool rfx_place_saved_init(struct rfx_place_saved *saved, struct rfx_memory *mem, int capacity);
void rfx_place_saved_release(struct rfx_place_saved *saved, struct rfx_memory *mem);

/* Saves a placement if its peak is smaller than that of the saved one. */
void rfx_place_saved_offer(struct rfx_place_saved *saved, struct rfx_place_key key,
                           const struct rfx_place_job *job, const bool *upwards, size_t arena,
                           const char *strategy, size_t peak);

/* Copies the saved placement into the records if it has this key; returns whether it has. */
bool rfx_place_saved_find(const struct rfx_place_saved *saved, struct rfx_place_key key,
                          const struct rfx_place_job *job, struct rfx_record *records,
                          bool *upwards);

/* Returns the hash of a placement problem and of the effort with which it is placed. */
struct rfx_place_key rfx_place_key_of(const struct rfx_place_job *job, bool quick);

/* Returns the arena remembered under the key in memo[RFX_PLACE_MEMO_ENTRIES]; 0: none. */
size_t rfx_place_memo_find(const struct rfx_place_memo *memo, struct rfx_place_key key);

/* Remembers the arena under the key; may replace another entry. */
void rfx_place_memo_add(struct rfx_place_memo *memo, struct rfx_place_key key, size_t arena);
#endif
