/* TODO */
#ifndef RFX_TILER_PLACEMENT_PLACEMENT_H
#define RFX_TILER_PLACEMENT_PLACEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layers/core/memory.h"
#include "layers/core/status.h"

enum rfx_record_kind {
    RFX_RECORD_STORED,  /* full map of a node */
    RFX_RECORD_LOCAL,   /* what a stage has at hand of a node; the state of a reduction */
    RFX_RECORD_STAGING, /* the rows that a step of a tight stream makes of a node */
    RFX_RECORD_PACKED,  /* packed constants of a node in a stage */
};

/* A tensor usage record: bytes (aligned), alive in the closed range of steps [first, last]. */
struct rfx_record {
    enum rfx_record_kind kind;
    int stage, node;
    int first, last;
    size_t bytes, offset;
};

/* Record `before` dies row by row at node `node` while that node makes `after`. They may overlap
 * when `after` lies at least `down` bytes below (rows made from the first to the last), or at least
 * `up` bytes above (from the last to the first). All slides of one node go in one direction. */
struct rfx_slide {
    int before, after; /* indices of records */
    int stage, node;
    size_t down, up;
};

/* Whether two records are alive at the same time. */
bool rfx_records_overlap(const struct rfx_record *a, const struct rfx_record *b);

/* Best of all packers (packer.h), within a fixed number of search nodes (few when quick): fills the
 * offsets, the arena's size and the strategy's name. OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_place_records(struct rfx_memory *mem, struct rfx_record *records,
                                                int n, bool quick, size_t *arena_bytes,
                                                const char **strategy, struct rfx_error *err);

/* Whether the offsets keep invariants 1 and 2 within arena_bytes, records in slides apart or as
 * their slide allows; upwards[k] is the direction of slide k. Knows nothing of any packer. */
bool rfx_place_is_valid(const struct rfx_record *records, int n, const struct rfx_slide *slides,
                        int n_slides, const bool *upwards, size_t arena_bytes);

/* Steps [begin, end). */
struct rfx_place_span {
    int begin, end;
};

/* What is placed: records, and slides by rising steps, those of a node next to each other. */
struct rfx_place_job {
    const struct rfx_record *records;
    const struct rfx_slide *slides;
    int n, n_slides;
    int n_steps;
    const struct rfx_place_span *spans; /* rising: no record begins, and none has ended, at any
                                           other step; NULL: all steps */
    int n_spans;
};

/* Largest sum of live bytes, or what of it no slide can save; *rest: in steps from rest_first on.
 * `live` is scratch of n_steps + 1 elements. O(n + n_slides + steps of spans). */
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

/* One placement as a whole, which is asked for again. */
struct rfx_place_saved {
    struct rfx_place_key key;
    size_t arena;    /* 0: none */
    size_t peak;     /* of the process with it */
    size_t *offsets; /* of the records, room for capacity */
    bool *upwards;   /* of the slides, likewise */
    const char *strategy;
    int capacity;
};

/* Room for placements of so many records and slides; false: there is none. */
bool rfx_place_saved_init(struct rfx_place_saved *kept, struct rfx_memory *mem, int capacity);
void rfx_place_saved_release(struct rfx_place_saved *kept, struct rfx_memory *mem);

/* Takes a placement over whose peak is smaller than that of the one that is kept. */
void rfx_place_saved_offer(struct rfx_place_saved *kept, struct rfx_place_key key,
                           const struct rfx_place_job *job, const bool *upwards, size_t arena,
                           const char *strategy, size_t peak);

/* Lays the records as it was kept under the key; false: it was not. */
bool rfx_place_saved_find(const struct rfx_place_saved *kept, struct rfx_place_key key,
                          const struct rfx_place_job *job, struct rfx_record *records,
                          bool *upwards);

struct rfx_place_key rfx_place_key_of(const struct rfx_place_job *job, bool quick);

/* The arena that was kept under the key in memo[RFX_PLACE_MEMO_ENTRIES]; 0: none. */
size_t rfx_place_memo_find(const struct rfx_place_memo *memo, struct rfx_place_key key);
void rfx_place_memo_add(struct rfx_place_memo *memo, struct rfx_place_key key, size_t arena);
#endif
