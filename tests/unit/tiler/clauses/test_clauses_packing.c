/* Planted packings that no other search finds so soon, and what cannot be packed. */
#include "tiler/clauses/clauses_packing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/support/random/packing_cases.h"
#include "tests/support/random/placement_cases.h"
#include "tiler/packer/packer.h"

enum { MAX_RECORDS = 512 };

/* In no more than `most` conflicts or hardly more. */
static enum rfx_clauses_packing_outcome place_in(const struct packing_case *made, size_t capacity,
                                                 bool backwards, bool split, uint64_t most) {
    size_t offsets[MAX_RECORDS];
    struct rfx_place_problem *problem = placement_problem(made->items, made->n);
    struct rfx_clauses_packing_request request = {
        .capacity_bytes = capacity, .backwards = backwards, .split = split};
    struct rfx_clauses_packing *packing;
    enum rfx_clauses_packing_outcome outcome;
    uint64_t conflicts = 0;
    assert_int_equal(rfx_clauses_packing_create(problem, &request, &packing, NULL), RFX_OK);
    do { /* goes on each time */
        assert_int_equal(
            rfx_clauses_packing_search(packing, 1500, NULL, offsets, &outcome, &conflicts, NULL),
            RFX_OK);
    } while (outcome == RFX_CLAUSES_PACKING_SOME_LEFT && conflicts < most);
    assert_int_equal(rfx_clauses_packing_conflicts(packing), conflicts);
    rfx_clauses_packing_free(packing);
    if (outcome == RFX_CLAUSES_PACKING_FOUND)
        assert_true(rfx_place_answer_is_valid(made->items, made->n, offsets, capacity));
    rfx_place_problem_free(problem);
    return outcome;
}

static enum rfx_clauses_packing_outcome place(const struct packing_case *made, size_t capacity,
                                              bool backwards, bool split) {
    return place_in(made, capacity, backwards, split, 20000);
}

/* Found after 2,813, 2,296, 1,320 and 1,200 conflicts. The first is not found in 8,000 without
 * targets or without heights, and takes 7,042 by quick search alone; the second takes 5,807 with
 * one guess dropped after each proof; the third is not found in 9,000 without heights; the last
 * takes 3,919 where steady search takes turns with quick search. */
static void hard_packings_are_found_soon(void **state) {
    (void)state;
    static const struct {
        const char *family;
        uint64_t seed;
        int min_records, max_records;
        bool backwards;
        uint64_t most;
    } cases[] = {{"chains-gone", 10, 200, 300, false, 4500},
                 {"chains-gone", 15, 150, 450, true, 4500},
                 {"spirals-few-sizes", 5, 150, 450, false, 3000},
                 {"spirals-few-sizes", 4, 150, 450, true, 3000}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct packing_case made = packing_make(packing_find(cases[k].family), cases[k].seed,
                                                cases[k].min_records, cases[k].max_records);
        if (place_in(&made, made.capacity, cases[k].backwards, false, cases[k].most) !=
            RFX_CLAUSES_PACKING_FOUND)
            fail_msg("%s %d", cases[k].family, (int)cases[k].seed);
        free(made.items);
    }
}

/* Without a spare byte, with few sizes, and with records that were taken away: of the last two no
 * guess of them comes out. */
static void planted_packings_are_found(void **state) {
    (void)state;
    static const struct {
        const char *family;
        uint64_t seed;
        bool backwards, split;
    } cases[] = {{"spirals-few-sizes", 4, false, false}, {"spirals-few-sizes", 18, true, false},
                 {"spirals-gone", 2, false, true},       {"spirals-gone", 10, false, false},
                 {"spirals-gone", 11, false, true},      {"chains-gone", 4, false, false},
                 {"chains-gone", 5, true, true},         {"chains-gone", 17, false, false},
                 {"chains-gone", 17, true, false}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct packing_case made =
            packing_make(packing_find(cases[k].family), cases[k].seed, 150, 450);
        if (place(&made, made.capacity, cases[k].backwards, cases[k].split) !=
            RFX_CLAUSES_PACKING_FOUND)
            fail_msg("%s %d", cases[k].family, (int)cases[k].seed);
        free(made.items);
    }
}

/* P beside Q and R beside S, as they take the places of one each, and P beside R and Q beside S, as
 * one each takes theirs: not on a line, though no sum says so. With two in the place of Q and S
 * they need not lie side by side. */
static void what_cannot_be_packed_is_not_found(void **state) {
    (void)state;
    enum { COMMON = 7 };
    struct rfx_place_item items[COMMON + 2] = {{0, 1, 3, 1}, {0, 2, 12, 1}, {1, 3, 1, 1},
                                               {1, 4, 2, 1}, {2, 3, 4, 1},  {2, 4, 8, 1},
                                               {3, 5, 5, 1}};
    const struct rfx_packer_limits unlimited = {0};
    for (int extra = 1; extra <= 2; extra++) {
        size_t offsets[COMMON + 2];
        struct rfx_packer_result exact;
        struct packing_case made = {items, COMMON + extra, 15};
        items[COMMON] = (struct rfx_place_item){4, 5, extra == 1 ? 10 : 2, 1};
        items[COMMON + 1] = (struct rfx_place_item){4, 5, 8, 1};
        struct rfx_place_problem *problem = placement_problem(items, made.n);
        assert_int_equal(problem->lower_bound, 15);
        assert_int_equal(rfx_packer_solve(problem, &unlimited, offsets, &exact, NULL), RFX_OK);
        assert_int_equal(exact.arena_bytes > 15, extra == 1);
        rfx_place_problem_free(problem);
        for (int backwards = 0; backwards < 2; backwards++)
            assert_int_equal(
                place(&made, 15, backwards != 0, backwards != 0),
                extra == 1 ? RFX_CLAUSES_PACKING_ALL_TRIED : RFX_CLAUSES_PACKING_FOUND);
    }
}

static enum rfx_status search(const struct rfx_place_problem *problem, size_t capacity,
                              size_t *offsets, struct rfx_error *err) {
    struct rfx_clauses_packing_request request = {.capacity_bytes = capacity};
    struct rfx_clauses_packing *packing = NULL;
    enum rfx_clauses_packing_outcome outcome;
    uint64_t conflicts = 0;
    enum rfx_status status = rfx_clauses_packing_create(problem, &request, &packing, err);
    if (status == RFX_OK)
        status =
            rfx_clauses_packing_search(packing, 1000, NULL, offsets, &outcome, &conflicts, err);
    rfx_clauses_packing_free(packing);
    return status;
}

static void allocations_can_fail(void **state) {
    (void)state;
    struct packing_case made = packing_make(packing_find("spirals-gone"), 3, 40, 40);
    assert_true(placement_fail_each_allocation(&made, search) > 50);
    free(made.items);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planted_packings_are_found),
        cmocka_unit_test(hard_packings_are_found_soon),
        cmocka_unit_test(what_cannot_be_packed_is_not_found),
        cmocka_unit_test(allocations_can_fail),
    };
    return cmocka_run_group_tests(tests, placement_set_up, placement_tear_down);
}
