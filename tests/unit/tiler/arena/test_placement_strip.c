/* Strip packing in O(n log n) against the same written down as it is described, and the check of
 * large answers against the check of pairs. */
#include "tiler/arena/greedy_packers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/support/random/packing_cases.h"
#include "tests/support/random/placement_cases.h"

enum { MAX_ITEMS = 300, MANY = 5000 };

/* The item of longest lifetime (then largest, then first) within the sections [lo, hi). -1: none.
 */
static int longest_within(const struct rfx_place_problem *problem, const bool *taken, int lo,
                          int hi) {
    int best = -1;
    for (int i = 0; i < problem->n; i++) {
        if (taken[i] || problem->first[i] < lo || problem->last[i] > hi) continue;
        const struct rfx_place_item *item = &problem->items[i];
        const struct rfx_place_item *other = &problem->items[best < 0 ? i : best];
        int64_t longer = (item->hi - item->lo) - (other->hi - other->lo);
        if (best < 0 || longer > 0 || (longer == 0 && item->size > other->size)) best = i;
    }
    return best;
}

/* The skyline as a height per section. */
static void place_naively(const struct rfx_place_problem *problem, size_t *offsets) {
    static size_t height[2 * MAX_ITEMS];
    static bool taken[MAX_ITEMS];
    int n_sections = problem->n_sections;
    for (int s = 0; s < n_sections; s++) height[s] = 0;
    for (int i = 0; i < problem->n; i++) taken[i] = false;
    for (int left = problem->n; left > 0;) {
        int lo = 0;
        for (int s = 1; s < n_sections; s++)
            if (height[s] < height[lo]) lo = s;
        int hi = lo;
        while (hi < n_sections && height[hi] == height[lo]) hi++;
        int i = longest_within(problem, taken, lo, hi);
        if (i >= 0) {
            taken[i] = true;
            offsets[i] = rfx_place_align(height[lo], problem->items[i].alignment);
            for (int s = problem->first[i]; s < problem->last[i]; s++)
                height[s] = offsets[i] + problem->items[i].size;
            left--;
            continue;
        }
        size_t rise = SIZE_MAX;
        if (lo > 0) rise = height[lo - 1];
        if (hi < n_sections && height[hi] < rise) rise = height[hi];
        for (int s = lo; s < hi; s++) height[s] = rise;
    }
}

static void is_strip_packing(void **state) {
    (void)state;
    const struct placement_ranges ranges[] = {
        {12, 9, 5, 0}, {60, 30, 40, 3}, {MAX_ITEMS, 12, 4, 1}};
    int cases = (int)test_env_int("RFX_CASES", 600);
    for (int k = 0; k < cases; k++) {
        struct test_rng rng = test_rng_make((uint64_t)k);
        struct rfx_place_item items[MAX_ITEMS];
        size_t offsets[MAX_ITEMS], expected[MAX_ITEMS];
        int n = placement_random(&rng, &ranges[k % 3], items);
        struct rfx_place_problem *problem = placement_problem(items, n);
        assert_int_equal(rfx_strip_place(problem, 0, NULL, offsets, NULL), RFX_OK);
        place_naively(problem, expected);
        for (int i = 0; i < n; i++)
            if (offsets[i] != expected[i])
                fail_msg("case %d: item %d of %d at %zu, expected %zu", k, i, n, offsets[i],
                         expected[i]);
        rfx_place_problem_free(problem);
    }
}

/* Where the long item of two layers of a small step lies among so many items alive at other times.
 */
static size_t place_of_long(int n) {
    enum { LEFT, RIGHT, LONG, SHORT, FIXED };
    struct rfx_place_item *items = calloc((size_t)n, sizeof *items);
    size_t *offsets = calloc((size_t)n, sizeof *offsets);
    assert_true(items != NULL && offsets != NULL);
    items[LEFT] = (struct rfx_place_item){0, 50, 1000, 1};
    items[RIGHT] = (struct rfx_place_item){50, 100, 1001, 1};
    items[LONG] = (struct rfx_place_item){30, 70, 1000, 1};
    items[SHORT] = (struct rfx_place_item){5, 40, 2000, 1};
    for (int i = FIXED; i < n; i++)
        items[i] = (struct rfx_place_item){200 + 2 * i, 201 + 2 * i, 1000, 1};
    struct rfx_place_problem *problem = placement_problem(items, n);
    assert_int_equal(rfx_strip_place(problem, 0, NULL, offsets, NULL), RFX_OK);
    size_t place = offsets[LONG];
    assert_true(rfx_place_answer_is_valid(items, n, offsets, problem->sum_bytes));
    rfx_place_problem_free(problem);
    free(offsets);
    free(items);
    return place;
}

/* Among few items the left line takes the short one, as published; among many it rises by a byte.
 */
static void many_items_lift_small_steps(void **state) {
    (void)state;
    assert_int_equal(place_of_long(10), 3000);
    assert_int_equal(place_of_long(1 << 15), 3000);
    assert_int_equal(place_of_long((1 << 15) + 1), 1001);
}

static enum rfx_status place(const struct rfx_place_problem *problem, size_t capacity,
                             size_t *offsets, struct rfx_error *err) {
    (void)capacity;
    return rfx_strip_place(problem, 0, NULL, offsets, err);
}

static void every_allocation_can_fail(void **state) {
    (void)state;
    struct packing_case made = packing_make(packing_find("spirals"), 1, 200, 200);
    assert_int_equal(placement_fail_each_allocation(&made, place), 11);
    free(made.items);
}

/* Whether all pairs are apart and everything lies in the arena. */
static bool is_valid(const struct rfx_place_item *items, int n, const size_t *offsets,
                     size_t arena) {
    for (int i = 0; i < n; i++) {
        if (offsets[i] % items[i].alignment != 0 || offsets[i] + items[i].size > arena)
            return false;
        for (int j = 0; j < i; j++)
            if (rfx_place_items_overlap(&items[i], &items[j]) &&
                offsets[i] < offsets[j] + items[j].size && offsets[j] < offsets[i] + items[i].size)
                return false;
    }
    return true;
}

/* A valid answer of many items, and the same with one item moved a little, or much. */
static void large_answers_are_checked(void **state) {
    (void)state;
    static struct rfx_place_item items[MANY];
    static size_t offsets[MANY];
    struct test_rng rng = test_rng_make(4);
    int valid = 0, invalid = 0;
    for (int i = 0; i < MANY; i++) {
        int64_t lo = test_rng_int(&rng, 0, 2 * MANY);
        items[i] = (struct rfx_place_item){lo, lo + test_rng_int(&rng, 1, 90),
                                           (size_t)test_rng_int(&rng, 1, 50), 1};
    }
    struct rfx_place_problem *problem = placement_problem(items, MANY);
    assert_int_equal(rfx_strip_place(problem, 0, NULL, offsets, NULL), RFX_OK);
    size_t arena = rfx_place_arena_bytes(items, MANY, offsets);
    assert_true(rfx_place_answer_is_valid(items, MANY, offsets, arena));
    assert_true(is_valid(items, MANY, offsets, arena));
    assert_false(rfx_place_answer_is_valid(items, MANY, offsets, arena - 1));
    for (int k = 0; k < 60; k++) {
        int i = (int)test_rng_int(&rng, 0, MANY - 1);
        size_t old = offsets[i];
        size_t far = (size_t)test_rng_int(&rng, 1, k % 2 == 0 ? 3 : 3000);
        offsets[i] = k % 4 < 2 || old < far ? old + far : old - far;
        bool expected = is_valid(items, MANY, offsets, arena + 3000);
        assert_int_equal(rfx_place_answer_is_valid(items, MANY, offsets, arena + 3000), expected);
        valid += expected;
        invalid += !expected;
        offsets[i] = old;
    }
    print_message("%d valid, %d invalid\n", valid, invalid);
    assert_true(valid > 5 && invalid > 5);
    rfx_place_problem_free(problem);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_strip_packing),
        cmocka_unit_test(many_items_lift_small_steps),
        cmocka_unit_test(every_allocation_can_fail),
        cmocka_unit_test(large_answers_are_checked),
    };
    return cmocka_run_group_tests(tests, placement_set_up, placement_tear_down);
}
