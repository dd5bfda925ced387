/* The packer with several threads and by the clock: optima against the packer with one thread on
 * small problems, a planted packing of every family that is solved in moments, targets, stopping,
 * running out of memory. The long form is tests/acceptance/packing.py. RFX_CASES sets how many
 * small problems (default 300). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/random/packing_cases.h"
#include "tests/support/random/placement_cases.h"
#include "tiler/arena/arena_problem.h"
#include "tiler/arena/packer.h"

enum { MAX_RECORDS = 512, SECOND_MS = 1000, MAX_SMALL = 12 };

static const int64_t ms = 1000000;

/* Everything that holds of any answer, as well. */
static struct rfx_packer_result solve(const struct rfx_place_item *items, int n,
                                      const struct rfx_packer_limits *limits) {
    size_t offsets[MAX_RECORDS];
    struct rfx_packer_result result = {0};
    struct rfx_place_problem *problem = placement_problem(items, n);
    assert_int_equal(rfx_packer_solve(problem, limits, offsets, &result, NULL), RFX_OK);
    assert_true(rfx_place_answer_is_valid(items, n, offsets, result.arena_bytes));
    assert_true(result.lower_bound_bytes <= result.arena_bytes);
    assert_int_equal(result.optimal, result.lower_bound_bytes == result.arena_bytes);
    rfx_place_problem_free(problem);
    return result;
}

/* Two and three threads end at the optimum that one proves. */
static void threads_find_the_optimum(void **state) {
    (void)state;
    const struct placement_ranges ranges = {MAX_SMALL, 12, 9, 2};
    int cases = (int)test_env_int("RFX_CASES", 300);
    int above = 0;
    for (int k = 0; k < cases; k++) {
        struct test_rng rng = test_rng_make((uint64_t)k);
        struct rfx_place_item items[MAX_SMALL];
        int n = placement_random(&rng, &ranges, items);
        struct rfx_packer_limits alone = {0}, together = {.threads = 2 + k % 2};
        struct rfx_packer_result exact = solve(items, n, &alone);
        struct rfx_packer_result result = solve(items, n, &together);
        struct rfx_place_problem *problem = placement_problem(items, n);
        above += exact.arena_bytes > problem->lower_bound;
        rfx_place_problem_free(problem);
        if (result.arena_bytes != exact.arena_bytes || !result.optimal)
            fail_msg("case %d: %d threads %zu, one %zu", k, together.threads, result.arena_bytes,
                     exact.arena_bytes);
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
    } cases[] = {
        {"cuts", 2},        {"spirals", 4},      {"cuts-few-sizes", 1}, {"spirals-few-sizes", 1},
        {"windows", 1},     {"windows-gone", 1}, {"chains", 2},         {"chains-gone-30", 1},
        {"spirals-gone", 1}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct packing_case made =
            packing_make(packing_find(cases[k].family), cases[k].seed, 150, 450);
        struct rfx_packer_limits limits = {
            .time_ns = 60 * SECOND_MS * ms, .target_bytes = made.capacity, .threads = 2};
        struct rfx_packer_result result = solve(made.items, made.n, &limits);
        print_message("%s, %d records: %s\n", cases[k].family, made.n, result.method);
        assert_int_equal(result.arena_bytes, made.capacity); /* the rectangle is full somewhere */
        assert_true(result.optimal);
        free(made.items);
    }
}

/* With a node limit no chance decides, however many threads there are. */
static void limited_nodes_give_one_answer(void **state) {
    (void)state;
    struct packing_case made = packing_make(packing_find("chains-gone"), 3, 150, 450);
    struct rfx_place_problem *problem = placement_problem(made.items, made.n);
    size_t offsets[2][MAX_RECORDS];
    for (int threads = 1; threads <= 3; threads++) {
        struct rfx_packer_limits limits = {.nodes = 3000, .threads = threads};
        struct rfx_packer_result result;
        size_t *into = offsets[threads > 1];
        assert_int_equal(rfx_packer_solve(problem, &limits, into, &result, NULL), RFX_OK);
        assert_memory_equal(into, offsets[0], (size_t)made.n * sizeof **offsets);
    }
    rfx_place_problem_free(problem);
    free(made.items);
}

/* What fits nowhere is proven, what fits easily ends at once. */
static void targets_end_the_search(void **state) {
    (void)state;
    struct packing_case made = packing_make(packing_find("spirals-slack-5"), 1, 300, 300);
    struct rfx_packer_limits small = {.target_bytes = made.capacity - 1, .threads = 2};
    assert_true(solve(made.items, made.n, &small).lower_bound_bytes >= made.capacity);
    struct rfx_packer_limits large = {.target_bytes = 2 * made.capacity, .threads = 2};
    assert_true(solve(made.items, made.n, &large).arena_bytes <= 2 * made.capacity);
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
    for (int threads = 1; threads <= 3; threads++) {
        struct packing_case made = packing_make(packing_find("chains-gone"), 2, 450, 450);
        int64_t asked_at = 0;
        struct rfx_packer_limits limits = {.target_bytes = made.capacity,
                                           .threads = threads,
                                           .must_stop = stop_after,
                                           .user = &asked_at};
        int64_t begun = rfx_place_now_ns();
        (void)solve(made.items, made.n, &limits);
        int64_t took = rfx_place_now_ns() - begun;
        free(made.items);
        assert_true(asked_at >= 300 * ms);
        print_message("%d threads: %lld ms\n", threads, (long long)(took / ms));
        assert_true(took - asked_at <
                    2 * SECOND_MS * ms); /* a busy machine; 0.25 s is test_alloc_limits' */
    }
}

static void the_deadline_is_kept(void **state) {
    (void)state;
    struct packing_case made = packing_make(packing_find("chains-gone"), 2, 450, 450);
    struct rfx_packer_limits limits = {
        .time_ns = 300 * ms, .target_bytes = made.capacity, .threads = 2};
    int64_t begun = rfx_place_now_ns();
    struct rfx_packer_result result = solve(made.items, made.n, &limits);
    int64_t took = rfx_place_now_ns() - begun;
    free(made.items);
    assert_true(result.arena_bytes > made.capacity); /* else there was nothing to end */
    assert_true(took >= 300 * ms && took < 300 * ms + 2 * SECOND_MS * ms);
}

static enum rfx_status build_small(struct rfx_memory *mem, const struct packing_case *made,
                                   int threads, struct rfx_error *err) {
    struct rfx_packer_limits limits = {
        .time_ns = 20 * ms, .target_bytes = made->capacity, .threads = threads};
    struct rfx_place_problem *problem = NULL;
    struct rfx_packer_result result;
    size_t offsets[MAX_RECORDS];
    enum rfx_status status = rfx_place_problem_create(mem, made->items, made->n, &problem, err);
    if (status == RFX_OK) status = rfx_packer_solve(problem, &limits, offsets, &result, err);
    rfx_place_problem_free(problem);
    return status;
}

/* What runs out of memory says so, or does without. */
static void allocations_can_fail(void **state) {
    (void)state;
    struct packing_case made = packing_make(packing_find("spirals"), 3, 36, 36);
    for (int k = 0; k < 120; k++) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_error err = {{0}};
        rfx_memory_fail_after(mem, k);
        enum rfx_status status = build_small(mem, &made, 1 + k % 2, &err);
        assert_true(status == RFX_OK || status == RFX_STATUS_OUT_OF_MEMORY);
        if (status != RFX_OK) assert_true(strlen(err.text) > 0);
        assert_int_equal(rfx_memory_current_bytes(mem), 0);
        rfx_memory_free(mem);
    }
    free(made.items);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_find_the_optimum),
        cmocka_unit_test(planted_packings_are_found),
        cmocka_unit_test(limited_nodes_give_one_answer),
        cmocka_unit_test(targets_end_the_search),
        cmocka_unit_test(stops_when_told_to),
        cmocka_unit_test(the_deadline_is_kept),
        cmocka_unit_test(allocations_can_fail),
    };
    return cmocka_run_group_tests(tests, placement_set_up, placement_tear_down);
}
