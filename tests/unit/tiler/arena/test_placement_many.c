/* The best of several strip packings: what it reaches, that threads do not change it, and what it
 * does when it is to stop or memory is short. */
#include "tiler/arena/greedy_packers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/random/packing_cases.h"
#include "tests/support/random/placement_cases.h"
#include "tiler/arena/greedy_packers.h"

enum { MANY = 40000, FEW = 3000 };

static size_t place(const struct rfx_place_problem *problem, struct rfx_strip_request request,
                    size_t *offsets) {
    size_t arena = 0;
    assert_int_equal(rfx_strip_place_best(problem, &request, offsets, &arena, NULL), RFX_OK);
    assert_true(rfx_place_answer_is_valid(problem->items, problem->n, offsets, arena));
    assert_int_equal(arena, rfx_place_arena_bytes(problem->items, problem->n, offsets));
    return arena;
}

static size_t place_measured(const struct rfx_place_problem *problem, int measure,
                             size_t *offsets) {
    assert_int_equal(rfx_strip_place(problem, measure, NULL, offsets, NULL), RFX_OK);
    return rfx_place_arena_bytes(problem->items, problem->n, offsets);
}

/* How far the arena is above the bound; measured by length it is clearly farther. */
static void check_family(const char *name, double most) {
    struct packing_case made = packing_make(packing_find(name), 1, MANY, MANY);
    struct rfx_place_problem *problem = placement_problem(made.items, made.n);
    size_t *offsets = calloc(MANY, sizeof *offsets);
    assert_non_null(offsets);
    struct rfx_strip_request request = {.threads = 2};
    double bound = (double)problem->lower_bound;
    double above = (double)place(problem, request, offsets) / bound - 1;
    double plain = (double)place_measured(problem, 0, offsets) / bound - 1;
    print_message("%s: %.4f above the bound, measured by length %.4f\n", name, above, plain);
    assert_true(above <= most);
    assert_true(above <= 0.7 * plain);
    rfx_place_problem_free(problem);
    free(offsets);
    free(made.items);
}

static void many_random_items_come_near_the_bound(void **state) {
    (void)state;
    check_family("random", 0.035);
    check_family("random-long", 0.035);
}

/* One item is longer than that of the fullest moments, where it lives but little. */
static void items_of_full_moments_go_first(void **state) {
    (void)state;
    enum { FULL, LONG, UNDER };
    const struct rfx_place_item items[] = {{0, 12, 100, 1}, {11, 40, 20, 1}, {0, 10, 50, 1}};
    struct rfx_place_problem *problem = placement_problem(items, 3);
    for (int measure = 0; measure < RFX_STRIP_MEASURES; measure++) {
        size_t offsets[3];
        (void)place_measured(problem, measure, offsets);
        assert_true(rfx_place_answer_is_valid(items, 3, offsets, 170));
        assert_int_equal(offsets[FULL], measure == 0 ? 50 : 0);
        assert_int_equal(offsets[LONG], measure == 0 ? 0 : 100);
    }
    rfx_place_problem_free(problem);
}

/* Nor do they when an arena that is larger than the best is small enough. */
static void threads_change_nothing(void **state) {
    (void)state;
    struct packing_case made = packing_make(packing_find("random"), 5, FEW, FEW);
    struct rfx_place_problem *problem = placement_problem(made.items, made.n);
    size_t offsets[FEW], others[FEW];
    size_t largest = 0;
    size_t best = place(problem, (struct rfx_strip_request){.threads = 1}, offsets);
    for (int threads = 2; threads <= 5; threads++) {
        struct rfx_strip_request request = {.threads = threads};
        assert_int_equal(place(problem, request, others), best);
        assert_memory_equal(offsets, others, sizeof offsets);
    }
    for (int measure = 0; measure < RFX_STRIP_MEASURES; measure++) {
        size_t arena = place_measured(problem, measure, others);
        assert_true(best <= arena);
        if (arena > largest) largest = arena;
    }
    assert_true(best < largest);
    struct rfx_strip_request generous = {.threads = 1, .target_bytes = largest};
    size_t first = place(problem, generous, offsets);
    assert_int_equal(first, place_measured(problem, 1, others));
    assert_memory_equal(offsets, others, sizeof offsets);
    generous.threads = 4;
    assert_int_equal(place(problem, generous, others), first);
    assert_memory_equal(offsets, others, sizeof offsets);
    rfx_place_problem_free(problem);
    free(made.items);
}

/* Who has stopped already gets the first packing. */
static void there_is_an_answer_after_a_stop(void **state) {
    (void)state;
    struct packing_case made = packing_make(packing_find("random-long"), 2, FEW, FEW);
    struct rfx_place_problem *problem = placement_problem(made.items, made.n);
    size_t offsets[FEW], first[FEW];
    atomic_bool stopped = true;
    struct rfx_place_stop stop = {.stopped = &stopped};
    struct rfx_strip_request request = {.threads = 2, .stop = &stop};
    assert_int_equal(place(problem, request, offsets), place_measured(problem, 1, first));
    assert_memory_equal(offsets, first, sizeof offsets);
    assert_int_equal(rfx_strip_place(problem, 1, &stop, offsets, NULL), RFX_STATUS_CANCELLED);
    rfx_place_problem_free(problem);
    free(made.items);
}

/* With any memory there is an answer or an error; with what one packing takes an answer. */
static void memory_may_be_short(void **state) {
    (void)state;
    static size_t offsets[FEW];
    struct packing_case made = packing_make(packing_find("random-long"), 3, FEW, FEW);
    int failed = 0, placed = 0;
    for (size_t bytes = 1; bytes < (size_t)8 << 20; bytes *= 2) {
        struct rfx_memory *mem = rfx_memory_create(bytes);
        struct rfx_place_problem *problem = NULL;
        struct rfx_error err = {{0}};
        struct rfx_strip_request request = {.threads = 4};
        size_t arena = 0;
        assert_non_null(mem);
        enum rfx_status status = rfx_place_problem_create(mem, made.items, made.n, &problem, &err);
        if (status == RFX_OK)
            status = rfx_strip_place_best(problem, &request, offsets, &arena, &err);
        if (status == RFX_OK) {
            assert_true(rfx_place_answer_is_valid(made.items, made.n, offsets, arena));
            placed++;
        } else {
            assert_int_equal(status, RFX_STATUS_OUT_OF_MEMORY);
            assert_true(err.text[0] != '\0');
            assert_int_equal(placed, 0); /* more memory is no worse */
            failed++;
        }
        rfx_place_problem_free(problem);
        assert_int_equal(rfx_memory_current_bytes(mem), 0);
        rfx_memory_free(mem);
    }
    print_message("%d without, %d with an answer\n", failed, placed);
    assert_true(failed > 5 && placed > 1);
    free(made.items);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_random_items_come_near_the_bound),
        cmocka_unit_test(items_of_full_moments_go_first),
        cmocka_unit_test(threads_change_nothing),
        cmocka_unit_test(there_is_an_answer_after_a_stop),
        cmocka_unit_test(memory_may_be_short),
    };
    return cmocka_run_group_tests(tests, placement_set_up, placement_tear_down);
}
