/* Shared objects on problems worked out by hand, and what holds of all strategies on random ones.
 */
#include "tools/study/shared_objects.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/support/random/placement_cases.h"

static void expect(const struct rfx_place_item *items, int n, enum rfx_object_strategy strategy,
                   const int *expected, size_t expected_bytes) {
    struct rfx_place_problem *problem = placement_problem(items, n);
    int objects[16];
    size_t total = 0;
    assert_int_equal(rfx_objects_place(problem, strategy, objects, &total, NULL), RFX_OK);
    for (int i = 0; i < n; i++)
        if (objects[i] != expected[i])
            fail_msg("%s: item %d in object %d, expected %d", rfx_object_strategy_name(strategy), i,
                     objects[i], expected[i]);
    assert_int_equal(total, expected_bytes);
    rfx_place_problem_free(problem);
}

static size_t bound(const struct rfx_place_item *items, int n) {
    struct rfx_place_problem *problem = placement_problem(items, n);
    size_t bytes = 0;
    assert_int_equal(rfx_objects_lower_bound(problem, &bytes, NULL), RFX_OK);
    rfx_place_problem_free(problem);
    return bytes;
}

/* A chain: the tensors alternate between two objects. Profiles {4,2}, {3,2}, {3,1}: 4 + 2. */
static void chain(void **state) {
    (void)state;
    const struct rfx_place_item items[] = {{0, 2, 4, 1}, {1, 3, 2, 1}, {2, 4, 3, 1}, {3, 5, 1, 1}};
    const int expected[] = {0, 1, 0, 1};
    assert_int_equal(bound(items, 4), 6);
    for (int s = 0; s < RFX_OBJECTS_COUNT; s++)
        expect(items, 4, (enum rfx_object_strategy)s, expected, 6);
}

/* The last item, of 9 bytes, follows the one of 5 in its object: in order of time the object grows,
 * by size it is there first. */
static void order_matters(void **state) {
    (void)state;
    const struct rfx_place_item items[] = {{0, 1, 5, 1}, {0, 1, 2, 1}, {1, 2, 4, 1}, {2, 3, 9, 1}};
    const int in_order[] = {0, 1, 0, 0};
    expect(items, 4, RFX_OBJECTS_IN_ORDER, in_order, 11);
    const int by_size[] = {0, 1, 0, 0};
    expect(items, 4, RFX_OBJECTS_BY_SIZE, by_size, 11);
    assert_int_equal(bound(items, 4), 11);
}

/* Lee's rule: 6 is nearer to 5 than to 9; the rule of 000 takes the 9, which is large enough. */
static void nearest_or_large_enough(void **state) {
    (void)state;
    const struct rfx_place_item items[] = {{0, 1, 9, 1}, {0, 1, 5, 1}, {1, 2, 6, 1}};
    const int nearest[] = {0, 1, 1};
    expect(items, 3, RFX_OBJECTS_IN_ORDER, nearest, 15);
    const int enough[] = {0, 1, 0};
    expect(items, 3, RFX_OBJECTS_BY_BREADTH, enough, 14);
}

/* 4 fits into the 5; the oldest free object is the 9. */
static void smallest_or_oldest(void **state) {
    (void)state;
    const struct rfx_place_item items[] = {{0, 1, 9, 1}, {0, 1, 5, 1}, {1, 2, 4, 1}};
    const int smallest[] = {0, 1, 1};
    expect(items, 3, RFX_OBJECTS_BY_SIZE, smallest, 14);
    const int oldest[] = {0, 1, 0};
    expect(items, 3, RFX_OBJECTS_BY_SIZE_OLDEST, oldest, 14);
}

/* Section 4.4: of the equal items 2 (at 2) and 3 (at 8) the one next in time to the first takes its
 * object: here both fit into either, and the improved rule leaves the least idle time. */
static void least_idle_time(void **state) {
    (void)state;
    const struct rfx_place_item items[] = {{0, 2, 8, 1}, {0, 7, 8, 1}, {8, 9, 8, 1}, {2, 3, 8, 1}};
    /* new: 0 -> 0; then item 3 follows 0 at once (idle 0); 2 waits 5 after item 3 in object 0;
     * 1 meets 0 and 3: a new object; 2 is idle 5 from object 0 before 1 is placed. */
    const int expected[] = {0, 1, 0, 0};
    expect(items, 4, RFX_OBJECTS_BY_SIZE_IMPROVED, expected, 16);
}

static void random_problems(void **state) {
    (void)state;
    static const struct placement_ranges ranges = {25, 8, 20, 0};
    struct test_rng rng = test_rng_make(21);
    for (int k = 0; k < 300; k++) {
        struct rfx_place_item items[25];
        int objects[25];
        size_t sum = 0;
        int n = placement_random(&rng, &ranges, items);
        for (int i = 0; i < n; i++) sum += items[i].size;
        struct rfx_place_problem *problem = placement_problem(items, n);
        size_t lower = bound(items, n), total = 0, counted = 0;
        assert_true(lower >= problem->lower_bound);
        for (int s = 0; s < RFX_OBJECTS_COUNT; s++) {
            assert_int_equal(
                rfx_objects_place(problem, (enum rfx_object_strategy)s, objects, &total, NULL),
                RFX_OK);
            assert_true(rfx_objects_are_valid(items, n, objects, &counted));
            assert_int_equal(counted, total);
            assert_true(total >= lower && total <= sum);
        }
        rfx_place_problem_free(problem);
    }
}

enum { MOST = 25 };

/* Idle time between item i and the object's nearest one; -1 when it meets one of them. */
static int64_t naive_idle(const struct rfx_place_item *items, int n, const int *objects, int i,
                          int object) {
    int64_t nearest = INT64_MAX;
    for (int j = 0; j < n; j++) {
        if (objects[j] != object) continue;
        if (rfx_place_items_overlap(&items[i], &items[j])) return -1;
        int64_t gap =
            items[i].lo >= items[j].hi ? items[i].lo - items[j].hi : items[j].lo - items[i].hi;
        if (gap < nearest) nearest = gap;
    }
    return nearest;
}

/* The largest k-th largest size of any moment, or 0. */
static size_t naive_maximum(const struct rfx_place_item *items, int n, int k) {
    size_t most = 0;
    for (int t = 0; t < n; t++)
        for (int i = 0; i < n; i++) {
            int larger = 0; /* live at the begin of t, before i in the order of sizes */
            if (items[t].lo < items[i].lo || items[t].lo >= items[i].hi) continue;
            for (int j = 0; j < n; j++)
                larger +=
                    items[t].lo >= items[j].lo && items[t].lo < items[j].hi &&
                    (items[j].size > items[i].size || (items[j].size == items[i].size && j < i));
            if (larger == k && items[i].size > most) most = items[i].size;
        }
    return most;
}

/* Sizes of one stage have as many positional maximums above them, and equal one or do not. */
static int naive_stage(const struct rfx_place_item *items, int n, size_t size) {
    int above = 0;
    size_t maximum = naive_maximum(items, n, 0);
    while (maximum > size) maximum = naive_maximum(items, n, ++above);
    return 2 * above + (maximum != size);
}

/* Section 4.4 by the letter: of the first stage's items the one that leaves the least idle time in
 * any object, else the largest and a new object. */
static void place_naively(const struct rfx_place_item *items, int n, int *objects) {
    int n_objects = 0;
    for (int i = 0; i < n; i++) objects[i] = -1;
    for (int placed = 0; placed < n; placed++) {
        int best = -1, best_object = -1;
        int64_t least = INT64_MAX;
        for (int round = 0; round < 2; round++) /* the largest, then the closest of its stage */
            for (int size = 20; size > 0; size--)
                for (int i = 0; i < n; i++) {
                    if (objects[i] >= 0 || items[i].size != (size_t)size) continue;
                    if (round == 0 && best < 0) best = i;
                    if (round == 0 || naive_stage(items, n, items[i].size) !=
                                          naive_stage(items, n, items[best].size))
                        continue;
                    for (int object = 0; object < n_objects; object++) {
                        int64_t idle = naive_idle(items, n, objects, i, object);
                        if (idle < 0 || idle >= least) continue;
                        least = idle;
                        best = i;
                        best_object = object;
                    }
                }
        objects[best] = best_object >= 0 ? best_object : n_objects++;
    }
}

static void improved_is_the_rule(void **state) {
    (void)state;
    static const struct placement_ranges ranges = {MOST, 8, 20, 0};
    struct test_rng rng = test_rng_make(44);
    for (int k = 0; k < 300; k++) {
        struct rfx_place_item items[MOST];
        int objects[MOST], expected[MOST];
        size_t total = 0;
        int n = placement_random(&rng, &ranges, items);
        struct rfx_place_problem *problem = placement_problem(items, n);
        assert_int_equal(
            rfx_objects_place(problem, RFX_OBJECTS_BY_SIZE_IMPROVED, objects, &total, NULL),
            RFX_OK);
        place_naively(items, n, expected);
        for (int i = 0; i < n; i++)
            if (objects[i] != expected[i])
                fail_msg("problem %d: item %d in object %d, expected %d", k, i, objects[i],
                         expected[i]);
        rfx_place_problem_free(problem);
    }
}

static void validator(void **state) {
    (void)state;
    const struct rfx_place_item items[] = {{0, 2, 5, 1}, {1, 3, 4, 1}, {2, 4, 5, 1}};
    const int meeting[] = {0, 0, 1}, apart[] = {0, 1, 0}, missing[] = {0, 1, -1};
    size_t total = 0;
    assert_false(rfx_objects_are_valid(items, 3, meeting, &total));
    assert_false(rfx_objects_are_valid(items, 3, missing, &total));
    assert_true(rfx_objects_are_valid(items, 3, apart, &total));
    assert_int_equal(total, 9);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chain),
        cmocka_unit_test(order_matters),
        cmocka_unit_test(nearest_or_large_enough),
        cmocka_unit_test(smallest_or_oldest),
        cmocka_unit_test(least_idle_time),
        cmocka_unit_test(random_problems),
        cmocka_unit_test(improved_is_the_rule),
        cmocka_unit_test(validator),
    };
    return cmocka_run_group_tests(tests, placement_set_up, placement_tear_down);
}
