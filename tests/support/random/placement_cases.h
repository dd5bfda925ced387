/* What the placement tests share: the group's allocator, problems, random items. */
#ifndef RFX_TESTS_SUPPORT_RANDOM_PLACEMENT_CASES_H
#define RFX_TESTS_SUPPORT_RANDOM_PLACEMENT_CASES_H

#include "tests/support/random/packing_cases.h"
#include "tests/support/test_util.h"
#include "tiler/arena/arena_problem.h"

/* The allocator of a group of tests, between its set-up and its tear-down, which fails when blocks
 * are left. */
extern struct rfx_memory *placement_mem;
int placement_set_up(void **state);
int placement_tear_down(void **state);

/* A problem that must be valid, from placement_mem. */
struct rfx_place_problem *placement_problem(const struct rfx_place_item *items, int n);

/* As test_fail_each_allocation, of making a problem and placing its items; `place` may fill an
 * offset per item, and frees all it made. */
typedef enum rfx_status placement_placer(const struct rfx_place_problem *problem, size_t capacity,
                                         size_t *offsets, struct rfx_error *err);
int64_t placement_fail_each_allocation(const struct packing_case *made, placement_placer *place);

struct placement_ranges {
    int items, lifetime, size; /* at most; at least 1 */
    int alignment_bits;        /* alignments are 1, 2, ... up to 2^alignment_bits */
};

/* Fills items with 1 .. ranges->items items that begin in [-15, 15); returns their number. */
int placement_random(struct test_rng *rng, const struct placement_ranges *ranges,
                     struct rfx_place_item *items);
#endif
