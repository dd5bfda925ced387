/* A placement problem: items that need bytes for a time are to be placed in one arena.
 *
 * Invariants: 1. a problem is a constant value, an answer is an array of offsets beside it; 2.
 * lifetimes are half-open and never empty, sizes are positive, alignments are powers of two; 3. the
 * sum of all sizes and alignments fits int64_t, so that no packer can overflow; 4. time is cut into
 * sections, the longest ranges in which no item begins or ends. The set of live items is constant
 * within a section. A section therefore plays the role of an operator in Pisarchyk and Lee 2020
 * (paper 000 in docs/dependencies.md).
 *
 * Also here: when a search for a placement has to stop (struct rfx_place_stop). */
#ifndef RFX_TILER_ARENA_ARENA_PROBLEM_H
#define RFX_TILER_ARENA_ARENA_PROBLEM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "layers/core/memory.h"
#include "layers/core/status.h"

/* A tensor usage record: `size` bytes at a multiple of `alignment`, live in [lo, hi). */
struct rfx_place_item {
    int64_t lo, hi;
    size_t size, alignment;
};

struct rfx_place_problem {
    struct rfx_memory *mem;
    int n, n_sections;
    struct rfx_place_item *items;
    int *first, *last;  /* per item: its sections [first, last) */
    size_t *breadth;    /* per section: live bytes (operator breadth of paper 000) */
    size_t sum_bytes;   /* sum of all sizes: the arena without sharing */
    size_t lower_bound; /* the largest breadth: no arena can be smaller */
};

/* Returns whether two items are live at the same time. */
static inline bool rfx_place_items_overlap(const struct rfx_place_item *a,
                                           const struct rfx_place_item *b) {
    return a->lo < b->hi && b->lo < a->hi;
}

/* An item or section for sorting with qsort: larger `key` first, then smaller `index`. */
struct rfx_place_ranked {
    uint64_t key;
    int index;
};
int rfx_place_compare_ranked(const void *a, const void *b);

/* Returns `bytes` rounded up to a multiple of `alignment`, a power of two. */
static inline size_t rfx_place_align(size_t bytes, size_t alignment) {
    return (bytes + (alignment - 1)) & ~(alignment - 1);
}

/* Copies `n` >= 0 items and cuts time into sections. INVALID_ARGUMENT when an item breaks invariant
 * 2 or 3. Free with rfx_place_problem_free. O(n log n). */
RFX_NODISCARD enum rfx_status rfx_place_problem_create(struct rfx_memory *mem,
                                                       const struct rfx_place_item *items, int n,
                                                       struct rfx_place_problem **out,
                                                       struct rfx_error *err);

void rfx_place_problem_free(struct rfx_place_problem *problem);

/* Returns whether no two live items share a byte, and all items lie in [0, arena_bytes) and are
 * aligned. Independent of sections and packers. O(n log n) with memory of its own of about 100
 * bytes per item; with few items, or without that memory, O(n^2). */
bool rfx_place_answer_is_valid(const struct rfx_place_item *items, int n, const size_t *offsets,
                               size_t arena_bytes);

/* Returns INTERNAL with a text, for a packer whose answer did not pass the validator. Answers are
 * checked in every build, because a wrong one would give wrong values, not a crash. */
RFX_NODISCARD enum rfx_status rfx_place_fail_check(const char *strategy, int n,
                                                   struct rfx_error *err);

/* Returns the smallest arena that holds all items at these offsets. */
size_t rfx_place_arena_bytes(const struct rfx_place_item *items, int n, const size_t *offsets);

/* When a search has to stop without an answer, besides what stops all work (rfx_memory_set_stop).
 */
struct rfx_place_stop {
    int64_t deadline_ns;  /* on CLOCK_MONOTONIC; 0: none */
    atomic_bool *stopped; /* set by whoever stops all threads; NULL: nobody */

    /* Called now and then, by one thread at a time; returns true to stop. NULL: not called. */
    bool (*ask)(void *user);
    void *user;
    atomic_flag *asking;          /* with `ask`: held by the calling thread */
    _Atomic int64_t *asked_at_ns; /* with `ask`: time of the last call */
};

/* Shortest time between two calls of `ask`: a tenth of what a person notices. */
#define RFX_PLACE_ASK_EVERY_NS ((int64_t)20 * 1000 * 1000)

/* Returns the time of CLOCK_MONOTONIC; 0 when there is none. */
static inline int64_t rfx_place_now_ns(void) {
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC, &now) != 0) return 0;
    return (int64_t)now.tv_sec * 1000 * 1000 * 1000 + now.tv_nsec;
}

/* Returns whether work on memory of `mem` has to stop. stop NULL: only what stops all work counts.
 * Reads the clock only where it matters. */
bool rfx_place_must_stop(const struct rfx_memory *mem, const struct rfx_place_stop *stop);

/* A hash that mixes all bits: splitmix64 (Steele, Lea and Flood 2014) with its constants. Shuffled
 * orders and the detection of equal states depend on it, and so do plans. */
static inline uint64_t rfx_place_mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}
#endif
