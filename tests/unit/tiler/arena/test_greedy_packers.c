/* The greedy packers on problems worked out by hand, and what holds of all on random ones. */
#include "tiler/arena/greedy_packers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/random/placement_cases.h"

static void expect(const struct rfx_place_item *items, int n, enum rfx_greedy_packer packer,
                   const size_t *expected) {
    struct rfx_place_problem *problem = placement_problem(items, n);
    size_t offsets[16], arena = 0;
    assert_int_equal(rfx_greedy_place(problem, packer, NULL, offsets, &arena, NULL), RFX_OK);
    for (int i = 0; i < n; i++)
        if (offsets[i] != expected[i])
            fail_msg("%s: item %d at %zu, expected %zu", rfx_greedy_name(packer), i, offsets[i],
                     expected[i]);
    assert_int_equal(arena, rfx_place_arena_bytes(items, n, expected));
    rfx_place_problem_free(problem);
}

/* Two small items end and leave gaps of 5 (at 0) and 3 (at 6) under and between longer ones; the
 * last item, of 3 bytes, takes the lower gap with first-fit, the tighter one with best-fit. */
static void gaps(void **state) {
    (void)state;
    const struct rfx_place_item items[] = {
        {0, 1, 5, 1}, {0, 9, 1, 1}, {0, 1, 3, 1}, {0, 9, 1, 1}, {2, 3, 3, 1}};
    const size_t first[] = {0, 5, 6, 9, 0};
    const size_t best[] = {0, 5, 6, 9, 6};
    expect(items, 5, RFX_GREEDY_FIRST_FIT, first);
    expect(items, 5, RFX_GREEDY_BEST_FIT, best);
    /* By size: 5 at 0; 3 (item 2) at 5; 3 (item 4) meets neither: 0; then 1 at 8, 1 at 9. */
    const size_t size[] = {0, 8, 5, 9, 0};
    expect(items, 5, RFX_GREEDY_BY_SIZE, size);
    expect(items, 5, RFX_GREEDY_BIGGER_FIRST, size);
    /* Longer first: 1 at 0, 1 at 1, then in order of position: 5 at 2, 3 at 7, 3 at 2. */
    const size_t longer[] = {2, 0, 7, 1, 2};
    expect(items, 5, RFX_GREEDY_LONGER_FIRST, longer);
    /* Strip: the lowest line is the whole time: items 1 and 3; then the left part takes 0 and 2
     * (larger first), the right one 4. */
    expect(items, 5, RFX_GREEDY_STRIP_PACKING, longer);
}

/* Breadths 6, 7, 4: section 1 goes first with 4 before 3, then section 0 (2 more), 2 (1 more). */
static void breadth_first(void **state) {
    (void)state;
    const struct rfx_place_item items[] = {{0, 1, 2, 1}, {0, 2, 4, 1}, {1, 3, 3, 1}, {2, 3, 1, 1}};
    const size_t expected[] = {4, 0, 4, 0};
    expect(items, 4, RFX_GREEDY_BY_BREADTH, expected);
}

static void alignment(void **state) {
    (void)state;
    const struct rfx_place_item items[] = {{0, 2, 5, 1}, {0, 2, 4, 8}, {1, 2, 3, 2}};
    const size_t expected[] = {0, 8, 12};
    expect(items, 3, RFX_GREEDY_BY_SIZE, expected);
    /* a gap of 3 between 5 and 8 takes 3 bytes only where the alignment lets them start at 5 */
    const struct rfx_place_item unaligned[] = {{0, 2, 5, 1}, {0, 2, 4, 8}, {1, 2, 3, 1}};
    const size_t in_gap[] = {0, 8, 5};
    expect(unaligned, 3, RFX_GREEDY_BY_SIZE, in_gap);
}

static void refusals(void **state) {
    (void)state;
    struct rfx_place_problem *problem = NULL;
    const struct rfx_place_item bad[] = {
        {3, 3, 1, 1}, {0, 1, 0, 1}, {0, 1, 1, 0}, {0, 1, 1, 3}, {0, 1, SIZE_MAX, 1}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(rfx_place_problem_create(placement_mem, &bad[i], 1, &problem, NULL),
                         RFX_STATUS_INVALID_ARGUMENT);
    const struct rfx_place_item huge[] = {{0, 1, INT64_MAX / 2, 1}, {5, 6, INT64_MAX / 2, 1}};
    assert_int_equal(rfx_place_problem_create(placement_mem, huge, 2, &problem, NULL),
                     RFX_STATUS_INVALID_ARGUMENT);
    assert_null(problem);
}

static void validator(void **state) {
    (void)state;
    const struct rfx_place_item items[] = {{0, 2, 8, 1}, {1, 3, 4, 4}};
    const size_t shared[] = {0, 4}, apart[] = {0, 8}, unaligned[] = {0, 9};
    assert_false(rfx_place_answer_is_valid(items, 2, shared, 100));
    assert_true(rfx_place_answer_is_valid(items, 2, apart, 12));
    assert_false(rfx_place_answer_is_valid(items, 2, apart, 11));
    assert_false(rfx_place_answer_is_valid(items, 2, unaligned, 100));
    const struct rfx_place_item same[] = {{0, 2, 8, 1}, {0, 2, 8, 1}};
    const size_t twice[] = {0, 0};
    assert_false(rfx_place_answer_is_valid(same, 2, twice, 100));
}

static void random_problems(void **state) {
    (void)state;
    static const struct placement_ranges ranges = {30, 12, 50, 3};
    struct test_rng rng = test_rng_make(11);
    for (int k = 0; k < 300; k++) {
        struct rfx_place_item items[30];
        size_t offsets[30];
        int n = placement_random(&rng, &ranges, items);
        struct rfx_place_problem *problem = placement_problem(items, n);
        for (int s = 0; s < RFX_GREEDY_COUNT; s++) {
            size_t arena = 0;
            assert_int_equal(
                rfx_greedy_place(problem, (enum rfx_greedy_packer)s, NULL, offsets, &arena, NULL),
                RFX_OK);
            assert_true(rfx_place_answer_is_valid(items, n, offsets, arena));
            assert_false(rfx_place_answer_is_valid(items, n, offsets, arena - 1));
            assert_true(arena >= problem->lower_bound);
        }
        rfx_place_problem_free(problem);
    }
}

/* What a packer returns when its own answer is wrong: tests/acceptance/mutations.py breaks one. */
static void failed_checks_are_internal_errors(void **state) {
    (void)state;
    struct rfx_error err = {""};
    assert_int_equal(rfx_place_fail_check("by-size", 12, &err), RFX_STATUS_INTERNAL);
    assert_string_equal(err.text,
                        "internal error: 'by-size' placed 12 buffers so that two in use at once "
                        "share bytes, or one lies outside or is not aligned; please report this");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gaps),
        cmocka_unit_test(breadth_first),
        cmocka_unit_test(alignment),
        cmocka_unit_test(refusals),
        cmocka_unit_test(validator),
        cmocka_unit_test(random_problems),
        cmocka_unit_test(failed_checks_are_internal_errors),
    };
    return cmocka_run_group_tests(tests, placement_set_up, placement_tear_down);
}
