/* The portfolio and each of its searches: optima against the exact packer on small problems, a
 * planted packing of every family that is solved in moments, targets, stopping, running out of
 * memory. The long form is tests/acceptance/packing.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/random/packing_cases.h"
#include "tests/support/random/placement_cases.h"
#include "tiler/packer/packer_groups.h"
#include "tiler/packer/packer_skyline.h"
#include "tiler/packer/packer_tight.h"
#include "tiler/portfolio/packer_portfolio.h"
#include "tiler/portfolio/portfolio_slack.h"

enum { MAX_RECORDS = 512, SECOND_MS = 1000, MAX_SMALL = 12 };

static const int64_t ms = 1000000;

#ifdef RFX_SANITIZE_THREAD
#define SEARCHES_ARE_SLOW true /* ten times: what takes seconds is beyond them */
#else
#define SEARCHES_ARE_SLOW false
#endif

/* Everything that holds of any answer, as well. */
static struct rfx_packer_result solve(const struct rfx_place_item *items, int n,
                                      const struct rfx_portfolio_limits *limits) {
    size_t offsets[MAX_RECORDS];
    struct rfx_packer_result result = {0};
    struct rfx_place_problem *problem = placement_problem(items, n);
    assert_int_equal(rfx_portfolio_solve(problem, limits, offsets, &result, NULL), RFX_OK);
    assert_true(rfx_place_answer_is_valid(items, n, offsets, result.arena_bytes));
    assert_true(result.lower_bound_bytes <= result.arena_bytes);
    assert_int_equal(result.optimal, result.lower_bound_bytes == result.arena_bytes);
    rfx_place_problem_free(problem);
    return result;
}

/* All searches together, and each tree search alone, end at the optimum that the packer proves. */
static void small_problems_are_solved(void **state) {
    (void)state;
    static const unsigned parties[] = {0, 1u << RFX_MEMBER_SECTIONS, 1u << RFX_MEMBER_CANONICAL};
    const struct placement_ranges ranges = {MAX_SMALL, 12, 9, 2};
    int cases = (int)test_env_int("RFX_CASES", 300);
    int above = 0;
    for (int k = 0; k < cases; k++) {
        struct test_rng rng = test_rng_make((uint64_t)k);
        struct rfx_place_item items[MAX_SMALL];
        size_t offsets[MAX_SMALL];
        int n = placement_random(&rng, &ranges, items);
        struct rfx_place_problem *problem = placement_problem(items, n);
        struct rfx_packer_limits unlimited = {0};
        struct rfx_packer_result exact;
        assert_int_equal(rfx_packer_solve(problem, &unlimited, offsets, &exact, NULL), RFX_OK);
        above += exact.arena_bytes > problem->lower_bound;
        rfx_place_problem_free(problem);
        struct rfx_portfolio_limits limits = {.threads = 1 + k % 2, .only = parties[(size_t)k % 3]};
        struct rfx_packer_result result = solve(items, n, &limits);
        if (result.arena_bytes != exact.arena_bytes || !result.optimal)
            fail_msg("case %d: portfolio %zu, exact %zu", k, result.arena_bytes, exact.arena_bytes);
    }
    if (cases >= 100) assert_true(above > 0);
}

/* Families and seeds that take some tenths of a second of one processor; a minute is for machines
 * that are busy with other things. */
static void planted_packings_are_found(void **state) {
    (void)state;
    static const struct {
        const char *family;
        uint64_t seed;
    } cases[] = {{"cuts", 2},
                 {"spirals", 4},
                 {"cuts-few-sizes", 1},
                 {"spirals-few-sizes", 1},
                 {"windows", 1},
                 {"windows-gone", 1},
                 {"chains", 2},
                 {"spirals-gone", 1},
                 {"chains-slack-1", 2},
                 {"spirals-slack-1", 1},
                 {"cuts-slack-5", 2},
                 {"cuts-slack-5", 5},
                 {"spirals-slack-5", 5},
                 {"spirals-slack-10", 1},
                 {"spirals-few-sizes", 2}, /* by clauses, in seconds: */
                 {"spirals-gone", 10},
                 {"chains-gone", 5}};
    const size_t count = sizeof cases / sizeof *cases - (SEARCHES_ARE_SLOW ? 3 : 0);
    for (size_t k = 0; k < count; k++) {
        struct packing_case made =
            packing_make(packing_find(cases[k].family), cases[k].seed, 150, 450);
        struct rfx_portfolio_limits limits = {
            .time_ns = 60 * SECOND_MS * ms, .target_bytes = made.capacity, .threads = 2};
        struct rfx_packer_result result = solve(made.items, made.n, &limits);
        print_message("%s, %d records: %s\n", cases[k].family, made.n, result.method);
        assert_int_equal(result.arena_bytes, made.capacity); /* the rectangle is full somewhere */
        assert_true(result.optimal);
        free(made.items);
    }
}

/* Of two threads and more all work on one wide beam: with narrower ones this is not found. */
static void wide_beams_are_shared(void **state) {
    (void)state;
    struct packing_case made = packing_make(packing_find("chains-slack-1"), 8, 150, 450);
    for (int threads = 2; threads <= (SEARCHES_ARE_SLOW ? 2 : 3); threads++) {
        struct rfx_portfolio_limits limits = {.time_ns = 600 * SECOND_MS * ms,
                                              .target_bytes = made.capacity,
                                              .threads = threads,
                                              .only = 1U << RFX_MEMBER_FRONTS};
        struct rfx_packer_result result = solve(made.items, made.n, &limits);
        assert_int_equal(result.arena_bytes, made.capacity);
        assert_true(result.nodes < 5500000); /* else they were left out, and chance found it */
    }
    free(made.items);
}

/* What fits nowhere is proven, what fits easily ends at once. */
static void targets_end_the_search(void **state) {
    (void)state;
    struct packing_case made = packing_make(packing_find("spirals-slack-5"), 1, 300, 300);
    struct rfx_portfolio_limits small = {.target_bytes = made.capacity - 1, .threads = 2};
    assert_true(solve(made.items, made.n, &small).lower_bound_bytes >= made.capacity);
    struct rfx_portfolio_limits large = {.target_bytes = 2 * made.capacity, .threads = 2};
    assert_true(solve(made.items, made.n, &large).arena_bytes <= 2 * made.capacity);
    free(made.items);
}

/* A search that fails a target still improves what it could not make small enough. */
static void a_missed_target_leaves_the_best(void **state) {
    (void)state;
    if (SEARCHES_ARE_SLOW) skip();
    struct packing_case made = packing_make(packing_find("chains-gone"), 1, 300, 300);
    struct rfx_portfolio_limits limits = {
        .time_ns = 6 * SECOND_MS * ms, .target_bytes = made.capacity, .threads = 2};
    struct rfx_packer_limits greedy = {.nodes = 1, .target_bytes = made.capacity};
    struct rfx_place_problem *problem = placement_problem(made.items, made.n);
    struct rfx_packer_result first;
    size_t offsets[MAX_RECORDS];
    assert_int_equal(rfx_packer_solve(problem, &greedy, offsets, &first, NULL), RFX_OK);
    rfx_place_problem_free(problem);
    struct rfx_packer_result result = solve(made.items, made.n, &limits);
    print_message("greedy %zu, after 6 s %zu of %zu\n", first.arena_bytes, result.arena_bytes,
                  made.capacity);
    assert_true(result.arena_bytes < first.arena_bytes);
    free(made.items);
}

static bool stop_after(void *user, int64_t done_ns) {
    int64_t *asked_at = user;
    *asked_at = done_ns;
    return done_ns >= 300 * ms;
}

/* Without a limit of time the one who is asked ends it, soon after saying so. */
static void stops_when_told_to(void **state) {
    (void)state;
    for (int member = 0; member <= RFX_MEMBER_COUNT; member++) {
        struct packing_case made = packing_make(packing_find("chains-gone"), 2, 450, 450);
        int64_t asked_at = 0;
        struct rfx_portfolio_limits limits = {
            .target_bytes = made.capacity, .threads = 2, .stop = stop_after, .user = &asked_at};
        if (member < RFX_MEMBER_COUNT) limits.only = 1u << member;
        int64_t begun = rfx_place_now_ns();
        (void)solve(made.items, made.n, &limits);
        int64_t took = rfx_place_now_ns() - begun;
        free(made.items);
        if (asked_at < 300 * ms) continue; /* nothing was left to try before */
        print_message("member %d: %lld ms\n", member, (long long)(took / ms));
        assert_true(took - asked_at <
                    2 * SECOND_MS * ms); /* a busy machine; 0.25 s is test_alloc_limits' */
    }
}

static enum rfx_status build_small(struct rfx_memory *mem, void *context, struct rfx_error *err) {
    const struct packing_case *made = context;
    struct rfx_portfolio_limits limits = {
        .time_ns = 20 * ms, .target_bytes = made->capacity, .threads = 1};
    struct rfx_place_problem *problem = NULL;
    struct rfx_packer_result result;
    size_t offsets[MAX_RECORDS];
    enum rfx_status status = rfx_place_problem_create(mem, made->items, made->n, &problem, err);
    if (status == RFX_OK) status = rfx_portfolio_solve(problem, &limits, offsets, &result, err);
    rfx_place_problem_free(problem);
    return status;
}

/* One beam alone has a fixed number of allocations; the tree searches go on without memory for
 * their undo list, so that only what comes before the first turn is failed one by one here. */
static enum rfx_status place_skyline(const struct rfx_place_problem *problem, size_t capacity,
                                     size_t *offsets, struct rfx_error *err) {
    struct rfx_skyline_request request = {.capacity_bytes = capacity, .unit_bytes = 1, .width = 4};
    uint64_t nodes = 0;
    bool found;
    return rfx_skyline_place(problem, &request, offsets, &found, &nodes, err);
}

/* Tight with a tolerance, likewise. */
static enum rfx_status place_loose(const struct rfx_place_problem *problem, size_t capacity,
                                   size_t *offsets, struct rfx_error *err) {
    struct rfx_tight_request request = {.capacity_bytes = capacity,
                                        .width = 4,
                                        .tolerance = RFX_GROUPS_WHOLE / 50,
                                        .nodes = UINT64_MAX};
    uint64_t nodes = 0;
    enum rfx_tight_outcome outcome = RFX_TIGHT_ALL_TRIED;
    enum rfx_status status = rfx_tight_place(problem, &request, offsets, &outcome, &nodes, err);
    if (status == RFX_OK) assert_int_equal(outcome, RFX_TIGHT_FOUND);
    return status;
}

/* Of the sums that are close the closest are tried, and first. */
static void close_sums_are_found(void **state) {
    (void)state;
    struct packing_case made = packing_make(packing_find("cuts-slack-5"), 7, 150, 450);
    struct rfx_place_problem *problem = placement_problem(made.items, made.n);
    size_t offsets[MAX_RECORDS];
    enum rfx_tight_outcome outcome = RFX_TIGHT_SOME_LEFT;
    for (int width = 4; width <= 16 && outcome == RFX_TIGHT_SOME_LEFT; width *= 2) {
        struct rfx_tight_request request = {
            .capacity_bytes = made.capacity,
            .width = width,
            .tolerance = rfx_slack_tolerance(problem, made.capacity),
            .nodes = 20000};
        uint64_t nodes = 0;
        assert_int_equal(rfx_tight_place(problem, &request, offsets, &outcome, &nodes, NULL),
                         RFX_OK);
    }
    assert_int_equal(outcome, RFX_TIGHT_FOUND);
    assert_true(rfx_place_answer_is_valid(made.items, made.n, offsets, made.capacity));
    rfx_place_problem_free(problem);
    free(made.items);
}

static void allocations_can_fail(void **state) {
    (void)state;
    struct packing_case made = packing_make(packing_find("spirals"), 3, 36, 36);
    struct packing_case smaller = packing_make(packing_find("spirals-slack-1"), 3, 36, 36);
    assert_true(placement_fail_each_allocation(&made, place_skyline) > 15);
    assert_true(placement_fail_each_allocation(&smaller, place_loose) > 25);
    free(smaller.items);
    for (int k = 0; k < 40;
         k++) { /* of the whole: what runs out of memory says so, or does without */
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_error err = {{0}};
        rfx_memory_fail_after(mem, k);
        enum rfx_status status = build_small(mem, &made, &err);
        assert_true(status == RFX_OK || status == RFX_STATUS_OUT_OF_MEMORY);
        if (status != RFX_OK) assert_true(strlen(err.text) > 0);
        assert_int_equal(rfx_memory_current_bytes(mem), 0);
        rfx_memory_free(mem);
    }
    free(made.items);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_problems_are_solved),
        cmocka_unit_test(planted_packings_are_found),
        cmocka_unit_test(wide_beams_are_shared),
        cmocka_unit_test(targets_end_the_search),
        cmocka_unit_test(a_missed_target_leaves_the_best),
        cmocka_unit_test(stops_when_told_to),
        cmocka_unit_test(close_sums_are_found),
        cmocka_unit_test(allocations_can_fail),
    };
    return cmocka_run_group_tests(tests, placement_set_up, placement_tear_down);
}
