/* Placing buffers with known lifetimes in one arena (paper 000, section 5).
 *
 * Invariants: 1. two records whose lifetimes overlap never share a byte; 2. offsets are multiples
 * of RFX_ALIGNMENT_BYTES; 3. the result is a function of the records alone. */
#ifndef RFX_TILER_PLACEMENT_H
#define RFX_TILER_PLACEMENT_H

#include <stdbool.h>
#include <stddef.h>

/* A tensor usage record: bytes (aligned), alive in the closed range of steps [first, last]. */
struct rfx_record {
    int id;
    int first, last;
    size_t bytes, offset;
};

/* Whether two records are alive at the same time. */
bool rfx_records_overlap(const struct rfx_record *a, const struct rfx_record *b);

/* Greedy by size with best fit (paper 000, algorithm 3): fills the offsets, reorders the records
 * (by offset), returns the arena's size. O(n^2). */
size_t rfx_place_by_size(struct rfx_record *records, int n);

/* Lower bound: the largest sum of live bytes over the steps 0 .. n_steps - 1. `live` is scratch of
 * n_steps + 1 elements. O(n + n_steps). */
size_t rfx_place_lower_bound(const struct rfx_record *records, int n, int n_steps, size_t *live);

/* Whether the offsets keep invariants 1 and 2 within arena_bytes; knows nothing of any packer. */
bool rfx_place_is_valid(const struct rfx_record *records, int n, size_t arena_bytes);
#endif
