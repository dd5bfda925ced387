/* A placement problem: items that need bytes for a time are to be placed in one arena.
 *
 * Invariants: 1. a problem is a constant value, an answer is an array of offsets beside it;
 * 2. lifetimes are half-open and never empty, sizes are positive, alignments are powers of two;
 * 3. the sum of all sizes and alignments fits int64_t, so that no packer can overflow; 4. time is
 * cut into sections, the longest ranges in which no item begins or ends. The set of live items is
 * constant within a section, so sections play the role of the operators of paper 000.
 * Also here: when a search for a placement has to stop (struct rfx_place_stop). */
#ifndef RFX_TILER_STRATEGIES_ARENA_PROBLEM_H
#define RFX_TILER_STRATEGIES_ARENA_PROBLEM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

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

/* When a search is to stop without an answer, beside what stops all work (rfx_memory_set_stop). */
struct rfx_place_stop {
    int64_t deadline_ns;  /* of CLOCK_MONOTONIC; 0: none */
    atomic_bool *stopped; /* set by whoever wants all to stop; NULL: nobody does */

    /* Asked every so often, by one thread at a time; true: stop. NULL: nobody is asked. */
    bool (*ask)(void *user);
    void *user;
    atomic_flag *asking;          /* with `ask`: held by the thread that asks */
    _Atomic int64_t *asked_at_ns; /* with `ask`: when it was asked last */
};

/* How often `ask` is called at most: ten times as often as anybody could notice. */
#define RFX_PLACE_ASK_EVERY_NS ((int64_t)20 * 1000 * 1000)

/* Of CLOCK_MONOTONIC; 0 when there is none. */
static inline int64_t rfx_place_now_ns(void) {
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC, &now) != 0) return 0;
    return (int64_t)now.tv_sec * 1000 * 1000 * 1000 + now.tv_nsec;
}

/* Whether the work on what lies in `mem` is to stop; stop NULL: for no other reason than all work.
 * Looks at the clock only where there is a use for it. */
bool rfx_place_must_stop(const struct rfx_memory *mem, const struct rfx_place_stop *stop);

/* A well mixed function of its argument: splitmix64 (Steele, Lea and Flood 2014), whose constants
 * these are. Shuffled orders and the states that are held for equal hang on it. */
static inline uint64_t rfx_place_mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}
#endif
