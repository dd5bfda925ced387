/* Packings from the fullest time on: planted packings of smaller items that are found, the same
 * every time, answers that are valid, stopping, running out of memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/random/packing_cases.h"
#include "tests/support/random/placement_cases.h"
#include "tiler/fronts/fronts.h"

enum { MAX_RECORDS = 512 };

struct answer {
    size_t offsets[MAX_RECORDS], arena;
    uint64_t nodes;
    bool complete;
};

static struct answer solve(const struct packing_case *made,
                           const struct rfx_fronts_request *request) {
    struct answer answer = {.nodes = 0};
    struct rfx_place_problem *problem = placement_problem(made->items, made->n);
    assert_int_equal(rfx_fronts_place(problem, request, answer.offsets, &answer.arena,
                                      &answer.complete, &answer.nodes, NULL),
                     RFX_OK);
    if (answer.arena != SIZE_MAX) {
        assert_true(answer.arena >= problem->lower_bound);
        assert_true(rfx_place_answer_is_valid(made->items, made->n, answer.offsets, answer.arena));
        assert_int_equal(answer.arena, rfx_place_arena_bytes(made->items, made->n, answer.offsets));
        assert_false(answer.complete);
    }
    rfx_place_problem_free(problem);
    return answer;
}

static void planted_packings_are_found(void **state) {
    (void)state;
    static const struct {
        const char *family;
        uint64_t seed;
        int variant, width;
    } cases[] = {{"cuts", 2, 0, 16},
                 {"chains-slack-1", 6, 0, 32},
                 {"spirals-slack-1", 1, 2, 16},
                 {"spirals-slack-1", 7, 1, 32},
                 {"cuts-slack-5", 5, 2, 32},
                 {"spirals-slack-5", 5, 0, 64},
                 {"spirals-slack-5", 13, 1, 32},
                 {"spirals-slack-10", 9, 1, 256},
                 {"spirals-slack-10", 13, 2, 64}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct packing_case made =
            packing_make(packing_find(cases[k].family), cases[k].seed, 150, 450);
        struct rfx_fronts_request request = {.capacity_bytes = made.capacity,
                                             .width = cases[k].width,
                                             .variant = cases[k].variant,
                                             .nodes = UINT64_MAX};
        struct answer first = solve(&made, &request);
        struct answer again = solve(&made, &request);
        print_message("%s, %d records: %zu of %zu bytes, %llu groups\n", cases[k].family, made.n,
                      first.arena, made.capacity, (unsigned long long)first.nodes);
        assert_int_equal(first.arena, made.capacity);
        assert_int_equal(first.nodes, again.nodes);
        assert_memory_equal(first.offsets, again.offsets, (size_t)made.n * sizeof(size_t));
        free(made.items);
    }
}

/* Of small problems nearly all, by each way of weighing, with and without chance. */
static void small_problems_are_solved(void **state) {
    (void)state;
    static const char *const families[] = {"chains-slack-10", "spirals-slack-10", "cuts-slack-5"};
    int solved = 0;
    for (int k = 0; k < 120; k++) {
        struct packing_case made = packing_make(packing_find(families[k % 3]), (uint64_t)k, 20, 40);
        struct rfx_fronts_request request = {.capacity_bytes = made.capacity,
                                             .width = 64,
                                             .variant = k / 3 % RFX_FRONTS_VARIANTS,
                                             .seed = (uint64_t)(k % 5),
                                             .nodes = UINT64_MAX};
        solved += solve(&made, &request).arena == made.capacity;
        free(made.items);
    }
    print_message("%d of 120 are solved\n", solved);
    assert_true(solved > 110);
}

/* What begins where nothing ends, or the other way round, is not for this search. */
static void says_that_it_cannot(void **state) {
    (void)state;
    struct rfx_place_item items[] = {{0, 4, 3, 1}, {1, 3, 2, 1}};
    struct packing_case made = {.items = items, .n = 2, .capacity = 5};
    struct rfx_fronts_request request = {.capacity_bytes = 5, .width = 8, .nodes = UINT64_MAX};
    struct answer answer = solve(&made, &request);
    assert_true(answer.complete);
    assert_int_equal(answer.arena, SIZE_MAX);
}

static void stops_when_told_to(void **state) {
    (void)state;
    struct packing_case made = packing_make(packing_find("chains-slack-10"), 2, 300, 300);
    atomic_bool stopped;
    atomic_init(&stopped, true);
    struct rfx_place_stop stop = {.stopped = &stopped};
    struct rfx_fronts_request request = {
        .capacity_bytes = made.capacity, .width = 512, .nodes = UINT64_MAX, .stop = &stop};
    assert_int_equal(solve(&made, &request).nodes, 0);
    request.stop = NULL;
    request.nodes = 1000;
    struct answer answer = solve(&made, &request);
    assert_true(answer.nodes >= 1000 && answer.nodes < 5000);
    assert_false(answer.complete);
    free(made.items);
}

/* What a search found, and what its last states had placed. */
struct in_team {
    struct rfx_place_problem *problem;
    struct rfx_fronts_request request;
    struct rfx_fronts_parts parts;
    struct answer answer;
};

static void solve_in_team(struct rfx_team *team, void *user) {
    struct in_team *t = user;
    t->request.team = team;
    t->request.parts = &t->parts;
    assert_int_equal(rfx_fronts_place(t->problem, &t->request, t->answer.offsets, &t->answer.arena,
                                      &t->answer.complete, &t->answer.nodes, NULL),
                     RFX_OK);
}

/* Beams that look ahead with narrower ones among them: of 1,024 states and more. */
static void teams_change_nothing(void **state) {
    (void)state;
    static const struct {
        const char *family;
        uint64_t seed;
        int records, width;
    } cases[] = {{"spirals-slack-5", 5, 450, 64},
                 {"chains-slack-10", 2, 300, 40},
                 {"chains-slack-10", 5, 100, 1024},
                 {"spirals-slack-10", 12, 150, 1024}};
    enum { MOST_PARTS = 4 };
    int got_there = 0;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct packing_case made = packing_make(packing_find(cases[k].family), cases[k].seed,
                                                cases[k].records, cases[k].records);
        struct in_team runs[3];
        static const int threads[] = {1, 2, 5};
        for (size_t t = 0; t < 3; t++) {
            runs[t] = (struct in_team){
                .problem = placement_problem(made.items, made.n),
                .request = {.capacity_bytes = made.capacity,
                            .width = cases[k].width,
                            .variant = 1,
                            .seed = k == 1,
                            .nodes = UINT64_MAX},
                .parts = {.most = MOST_PARTS,
                          .offsets = calloc((size_t)made.n * MOST_PARTS, sizeof(size_t))}};
            assert_non_null(runs[t].parts.offsets);
            rfx_team_run(threads[t], solve_in_team, &runs[t]);
            rfx_place_problem_free(runs[t].problem);
            assert_int_equal(runs[t].answer.nodes, runs[0].answer.nodes);
            assert_int_equal(runs[t].answer.arena, runs[0].answer.arena);
            assert_int_equal(runs[t].answer.complete, runs[0].answer.complete);
            assert_int_equal(runs[t].parts.n, runs[0].parts.n);
            if (runs[0].answer.arena != SIZE_MAX)
                assert_memory_equal(runs[t].answer.offsets, runs[0].answer.offsets,
                                    (size_t)made.n * sizeof(size_t));
            assert_memory_equal(runs[t].parts.offsets, runs[0].parts.offsets,
                                (size_t)made.n * MOST_PARTS * sizeof(size_t));
        }
        print_message("%s, %d records, width %d: %llu groups, %zu of %zu bytes, %d parts\n",
                      cases[k].family, made.n, cases[k].width,
                      (unsigned long long)runs[0].answer.nodes, runs[0].answer.arena, made.capacity,
                      runs[0].parts.n);
        got_there += runs[0].answer.arena != SIZE_MAX;
        for (size_t t = 0; t < 3; t++) free(runs[t].parts.offsets);
        free(made.items);
    }
    assert_in_range(got_there, 1, sizeof cases / sizeof *cases - 1);
}

/* Where a narrow beam that looks ahead gets to the end the wide one need not go there: all its
 * states would be gone on from, to the last. */
static void looking_ahead_is_enough(void **state) {
    (void)state;
    static const struct {
        const char *family;
        uint64_t groups; /* that the wide beam alone tries */
        uint64_t seed;
    } cases[] = {{"spirals-slack-10", 36304, 3}, {"spirals-slack-5", 46108, 1}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct packing_case made =
            packing_make(packing_find(cases[k].family), cases[k].seed, 250, 250);
        struct rfx_fronts_request request = {
            .capacity_bytes = made.capacity, .width = 1024, .variant = 1, .nodes = UINT64_MAX};
        struct answer answer = solve(&made, &request);
        assert_int_equal(answer.arena, made.capacity);
        assert_true(answer.nodes < cases[k].groups / 3);
        free(made.items);
    }
}

static enum rfx_status place(const struct rfx_place_problem *problem, size_t capacity,
                             size_t *offsets, struct rfx_error *err) {
    struct rfx_fronts_request request = {
        .capacity_bytes = capacity, .width = 4, .nodes = UINT64_MAX};
    size_t arena = 0;
    bool complete = false;
    uint64_t nodes = 0;
    return rfx_fronts_place(problem, &request, offsets, &arena, &complete, &nodes, err);
}

/* A beam that looks ahead. */
static enum rfx_status place_ahead(const struct rfx_place_problem *problem, size_t capacity,
                                   size_t *offsets, struct rfx_error *err) {
    struct rfx_fronts_request request = {
        .capacity_bytes = capacity, .width = 1024, .variant = 1, .nodes = UINT64_MAX};
    size_t arena = 0;
    bool complete = false;
    uint64_t nodes = 0;
    return rfx_fronts_place(problem, &request, offsets, &arena, &complete, &nodes, err);
}

static void allocations_can_fail(void **state) {
    (void)state;
    struct packing_case made = packing_make(packing_find("spirals-slack-1"), 3, 36, 36);
    assert_true(placement_fail_each_allocation(&made, place) > 30);
    free(made.items);
    made = packing_make(packing_find("spirals-slack-10"), 3, 120, 120);
    assert_true(placement_fail_each_allocation(&made, place_ahead) > 100);
    free(made.items);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planted_packings_are_found), cmocka_unit_test(small_problems_are_solved),
        cmocka_unit_test(says_that_it_cannot),        cmocka_unit_test(stops_when_told_to),
        cmocka_unit_test(teams_change_nothing),       cmocka_unit_test(looking_ahead_is_enough),
        cmocka_unit_test(allocations_can_fail),
    };
    return cmocka_run_group_tests(tests, placement_set_up, placement_tear_down);
}
