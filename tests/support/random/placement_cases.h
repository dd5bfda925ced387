/* What the placement tests share: the group's allocator, problems, random items. */
#ifndef RFX_TESTS_SUPPORT_RANDOM_PLACEMENT_CASES_H
#define RFX_TESTS_SUPPORT_RANDOM_PLACEMENT_CASES_H

#include "tests/support/test_util.h"
#include "tiler/strategies/placement_problem.h"

/* The allocator of a group of tests, between its set-up and its tear-down, which fails when blocks
 * are left. */
extern struct rfx_memory *placement_mem;
int placement_set_up(void **state);
int placement_tear_down(void **state);

/* A problem that must be valid, from placement_mem. */
struct rfx_place_problem *placement_problem(const struct rfx_place_item *items, int n);

struct placement_ranges {
    int items, lifetime, size; /* at most; at least 1 */
    int alignment_bits;        /* alignments are 1, 2, ... up to 2^alignment_bits */
};

/* Fills items with 1 .. ranges->items items that begin in [-15, 15); returns their number. */
int placement_random(struct test_rng *rng, const struct placement_ranges *ranges,
                     struct rfx_place_item *items);
#endif
