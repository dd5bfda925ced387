/* What is free: told apart by families of packings, and by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/support/random/packing_cases.h"
#include "tests/support/random/placement_cases.h"
#include "tiler/portfolio/portfolio_slack.h"
#include "tiler/portfolio/portfolio_turns.h"

static void families_are_told_apart(void **state) {
    (void)state;
    for (int f = 0; f < packing_n_families; f++) {
        const struct packing_family *family = &packing_families[f];
        if (family->nowhere_full) continue;
        for (uint64_t seed = 1; seed <= 20; seed++) {
            struct packing_case made = packing_make(family, seed, 150, 450);
            struct rfx_place_problem *problem = placement_problem(made.items, made.n);
            bool none = family->percent == 0 && family->gone_in_hundred == 0;
            assert_int_equal(rfx_slack_is_none(problem, made.capacity), none);
            assert_false(rfx_slack_is_none(problem, made.capacity + 1));
            if (none) assert_int_equal(rfx_slack_tolerance(problem, made.capacity), 0);
            if (family->gone_in_hundred < 30) /* with as many gone, few boundaries are as before */
                assert_int_equal(rfx_slack_kind(problem, made.capacity),
                                 family->percent > 0 ? RFX_SLACK_EVERYWHERE : RFX_SLACK_LITTLE);
            rfx_place_problem_free(problem);
            free(made.items);
        }
    }
}

static void one_boundary_in_ten_may_be_even(void **state) {
    (void)state;
    struct rfx_place_item items[11];
    for (int i = 0; i < 11; i++) items[i] = (struct rfx_place_item){i, i + 1, (size_t)i + 1, 1};
    struct rfx_place_problem *problem = placement_problem(items, 11);
    assert_int_equal(rfx_slack_kind(problem, 11), RFX_SLACK_EVERYWHERE);
    rfx_place_problem_free(problem);
    items[5].size = items[4].size;
    problem = placement_problem(items, 11);
    assert_int_equal(rfx_slack_kind(problem, 11), RFX_SLACK_EVERYWHERE);
    rfx_place_problem_free(problem);
    items[9].size = items[8].size;
    problem = placement_problem(items, 11);
    assert_int_equal(rfx_slack_kind(problem, 11), RFX_SLACK_MUCH);
    rfx_place_problem_free(problem);
}

static void a_sixth_is_little(void **state) {
    (void)state;
    struct rfx_place_item items[6];
    for (int i = 0; i < 6; i++) items[i] = (struct rfx_place_item){i, i + 1, 6, 1};
    items[3].size = 1; /* one boundary in three is not even */
    struct rfx_place_problem *problem = placement_problem(items, 6);
    assert_int_equal(rfx_slack_kind(problem, 6), RFX_SLACK_LITTLE); /* 5 of 36 bytes */
    rfx_place_problem_free(problem);
    items[2].size = 4; /* 7 of 36 */
    problem = placement_problem(items, 6);
    assert_int_equal(rfx_slack_kind(problem, 6), RFX_SLACK_MUCH);
    rfx_place_problem_free(problem);
}

/* rounds: 'x' for each from 0 on in which a member is of use. */
static void check_rounds(const struct rfx_place_problem *problem, size_t goal,
                         enum rfx_packer_member member, const char *rounds) {
    for (int round = 0; round < 5; round++)
        assert_int_equal(rfx_turn_is_of_use(problem, goal, member, round), rounds[round] == 'x');
}

static void searches_come_where_they_find_something(void **state) {
    (void)state;
    static const struct {
        const char *family, *fronts, *skyline, *overlaps, *clauses, *trees;
    } cases[] = {{"chains", ".....", "xx...", ".....", "..xxx", "xxxxx"},
                 {"chains-gone", ".....", "xx...", "xx...", "..xxx", "xxxxx"},
                 {"chains-gone-30", ".....", "xxxxx", "xxxxx", "....x", "xxxxx"},
                 {"chains-slack-10", "xxxxx", "x....", "xxxxx", "....x", "xx..x"}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct packing_case made = packing_make(packing_find(cases[k].family), 1, 150, 450);
        struct rfx_place_problem *problem = placement_problem(made.items, made.n);
        check_rounds(problem, made.capacity, RFX_MEMBER_FRONTS, cases[k].fronts);
        check_rounds(problem, made.capacity, RFX_MEMBER_SKYLINE, cases[k].skyline);
        check_rounds(problem, made.capacity, RFX_MEMBER_OVERLAPS, cases[k].overlaps);
        check_rounds(problem, made.capacity, RFX_MEMBER_CLAUSES, cases[k].clauses);
        check_rounds(problem, made.capacity, RFX_MEMBER_SECTIONS, cases[k].trees);
        check_rounds(problem, made.capacity, RFX_MEMBER_CANONICAL, cases[k].trees);
        check_rounds(problem, made.capacity, RFX_MEMBER_TIGHT, "xxxxx");
        rfx_place_problem_free(problem);
        free(made.items);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(families_are_told_apart),
                                       cmocka_unit_test(one_boundary_in_ten_may_be_even),
                                       cmocka_unit_test(a_sixth_is_little),
                                       cmocka_unit_test(searches_come_where_they_find_something)};
    return cmocka_run_group_tests(tests, placement_set_up, placement_tear_down);
}
