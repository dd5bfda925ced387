/* A placement problem: items that need bytes for a time, to be laid into one arena.
 *
 * Invariants: 1. a problem is a constant value, an answer is an array of offsets beside it;
 * 2. lifetimes are half-open and never empty, sizes are positive, alignments are powers of two;
 * 3. the sum of all sizes and alignments fits int64_t, so that no packer can overflow;
 * 4. time is cut into sections, the longest ranges in which nothing begins or ends; what is alive
 * in a section is constant, so sections stand for the operators of paper 000. */
#ifndef RFX_TILER_STRATEGIES_PLACEMENT_PROBLEM_H
#define RFX_TILER_STRATEGIES_PLACEMENT_PROBLEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layers/core/memory.h"
#include "layers/core/status.h"

/* A tensor usage record: `size` bytes at a multiple of `alignment`, alive in [lo, hi). */
struct rfx_place_item {
    int64_t lo, hi;
    size_t size, alignment;
};

struct rfx_place_problem {
    struct rfx_memory *mem;
    int n, n_sections;
    struct rfx_place_item *items;
    int *first, *last;  /* per item: its sections [first, last) */
    size_t *breadth;    /* per section: bytes alive (paper 000: operator breadth) */
    size_t sum_bytes;   /* of all sizes: the naive arena */
    size_t lower_bound; /* the largest breadth: no arena is smaller */
};

/* Whether two items are alive at the same time. */
static inline bool rfx_place_items_overlap(const struct rfx_place_item *a,
                                           const struct rfx_place_item *b) {
    return a->lo < b->hi && b->lo < a->hi;
}

/* An item or section that strategies sort with qsort: larger `key` first, then smaller `index`. */
struct rfx_place_ranked {
    uint64_t key;
    int index;
};
int rfx_place_compare_ranked(const void *a, const void *b);

/* `bytes` rounded up to a multiple of `alignment`, a power of two. */
static inline size_t rfx_place_align(size_t bytes, size_t alignment) {
    return (bytes + (alignment - 1)) & ~(alignment - 1);
}

/* Copies `n` >= 0 items and cuts the time into sections. RFX_STATUS_INVALID_ARGUMENT when an item
 * breaks invariant 2 or 3. Free with rfx_place_problem_free. O(n log n). */
RFX_NODISCARD enum rfx_status rfx_place_problem_create(struct rfx_memory *mem,
                                                       const struct rfx_place_item *items, int n,
                                                       struct rfx_place_problem **out,
                                                       struct rfx_error *err);

void rfx_place_problem_free(struct rfx_place_problem *problem);

/* Whether no two live items share a byte, all lie in [0, arena_bytes) and are aligned. Knows
 * nothing of sections or packers. O(n log n) with a memory of its own of some 100 bytes an item,
 * or, for few items or where there is none, O(n^2). */
bool rfx_place_answer_is_valid(const struct rfx_place_item *items, int n, const size_t *offsets,
                               size_t arena_bytes);

/* What a strategy returns whose own answer did not pass its validator: INTERNAL, with a text.
 * Answers are checked in every build, as a wrong one would give wrong values, not a crash. */
RFX_NODISCARD enum rfx_status rfx_place_fail_check(const char *strategy, int n,
                                                   struct rfx_error *err);

/* The smallest arena that holds all items at these offsets. */
size_t rfx_place_arena_bytes(const struct rfx_place_item *items, int n, const size_t *offsets);
#endif
