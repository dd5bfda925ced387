/* Tensor usage records of a plan, and where they are laid in one arena.
 *
 * Invariants: 1. two records whose lifetimes overlap never share a byte, but where one dies row by
 * row while the other is made (struct rfx_slide); 2. offsets are multiples of RFX_ALIGNMENT_BYTES;
 * 3. the result is a function of the records alone. */
#ifndef RFX_TILER_PLACEMENT_PLACEMENT_H
#define RFX_TILER_PLACEMENT_PLACEMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "layers/core/memory.h"
#include "layers/core/status.h"

enum rfx_record_kind {
    RFX_RECORD_STORED, /* full map of a node */
    RFX_RECORD_LOCAL,  /* what a stage has at hand of a node; the state of a reduction */
    RFX_RECORD_FRESH,  /* the rows that a step of a tight stream makes of a node */
    RFX_RECORD_PACKED, /* packed constants of a node in a stage */
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

/* Lower bound: the largest sum of live bytes over the steps 0 .. n_steps - 1. `live` is scratch of
 * n_steps + 1 elements. O(n + n_steps). */
size_t rfx_place_lower_bound(const struct rfx_record *records, int n, int n_steps, size_t *live);

/* Whether the offsets keep invariants 1 and 2 within arena_bytes, records in slides apart or as
 * their slide allows; upwards[k] is the direction of slide k. Knows nothing of any packer. */
bool rfx_place_is_valid(const struct rfx_record *records, int n, const struct rfx_slide *slides,
                        int n_slides, const bool *upwards, size_t arena_bytes);
#endif
