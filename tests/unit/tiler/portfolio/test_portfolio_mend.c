/* Beams that get nowhere, and what becomes of their last states: parts of packings that are valid,
 * packings that the beam alone does not find, the same every time, running out of memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/support/random/placement_cases.h"
#include "tiler/portfolio/portfolio_mend.h"

enum { MAX_RECORDS = 512, MAX_PARTS = 8 };

/* A problem of which beams of 64 find nothing, ... */
struct hard {
    struct packing_case made;
    struct rfx_place_problem *problem;
    struct rfx_fronts_request request;
    size_t offsets[MAX_RECORDS];
    uint64_t nodes;
};

/* ... of two variants: k = 0, 1. */
static struct hard make_hard(int k) {
    struct hard h = {.made = packing_make(packing_find("spirals-slack-10"), 4, 150, 450)};
    h.problem = placement_problem(h.made.items, h.made.n);
    h.request = (struct rfx_fronts_request){
        .capacity_bytes = h.made.capacity, .width = 64, .variant = 2 * k, .nodes = UINT64_MAX};
    return h;
}

static void free_hard(struct hard *h) {
    rfx_place_problem_free(h->problem);
    free(h->made.items);
}

/* No two items of a part that are alive together share a byte. */
static void check_part(const struct packing_case *made, const size_t *part, int least_placed) {
    int placed = 0;
    for (int i = 0; i < made->n; i++) {
        if (part[i] == SIZE_MAX) continue;
        placed++;
        for (int j = 0; j < i; j++) {
            if (part[j] == SIZE_MAX || !rfx_place_items_overlap(&made->items[i], &made->items[j]))
                continue;
            assert_true(part[i] >= part[j] + made->items[j].size ||
                        part[j] >= part[i] + made->items[i].size);
        }
    }
    assert_in_range(placed, least_placed, made->n - 1);
}

/* Searches, finds nothing, and checks the parts; their number. */
static int find_parts(struct hard *h, int least_placed) {
    struct rfx_fronts_parts parts = {
        .most = MAX_PARTS, .offsets = calloc((size_t)h->made.n * MAX_PARTS, sizeof(size_t))};
    size_t arena = 0;
    uint64_t nodes = 0;
    bool complete = true;
    assert_non_null(parts.offsets);
    h->request.parts = &parts;
    assert_int_equal(
        rfx_fronts_place(h->problem, &h->request, h->offsets, &arena, &complete, &nodes, NULL),
        RFX_OK);
    assert_int_equal(arena, SIZE_MAX);
    assert_false(complete);
    for (int p = 0; p < parts.n; p++)
        check_part(&h->made, &parts.offsets[p * h->made.n], least_placed);
    free(parts.offsets);
    return parts.n;
}

static void parts_are_valid(void **state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        struct hard h = make_hard(k);
        assert_in_range(find_parts(&h, h.made.n / 2), 1, MAX_PARTS);
        free_hard(&h);
    }
}

/* Where the search may try no more groups, those of the states that were gone on from, be it before
 * the first one of a bucket or after some of it. */
static void parts_are_valid_at_any_limit(void **state) {
    (void)state;
    struct hard h = make_hard(0);
    int with = 0;
    for (uint64_t groups = 1; groups < 3000; groups += groups < 300 ? 1 : 37) {
        h.request.nodes = groups;
        with += find_parts(&h, 0) > 0;
    }
    assert_true(with > 100);
    free_hard(&h);
}

static void complete_in_team(struct rfx_team *team, void *user) {
    struct hard *h = user;
    size_t arena = 0;
    bool complete = true;
    h->request.team = team;
    h->nodes = 0;
    assert_int_equal(rfx_mended_fronts_place(h->problem, &h->request, h->offsets, &arena, &complete,
                                             &h->nodes, NULL),
                     RFX_OK);
    assert_int_equal(arena, h->made.capacity);
    assert_true(rfx_place_answer_is_valid(h->made.items, h->made.n, h->offsets, arena));
}

/* The same every time, and by several threads, which may make moves for nothing. */
static void parts_are_completed(void **state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        struct hard h = make_hard(k);
        complete_in_team(NULL, &h);
        struct hard first = h;
        complete_in_team(NULL, &h);
        assert_int_equal(h.nodes, first.nodes);
        for (int threads = 1; threads <= 4; threads++) {
            assert_memory_equal(h.offsets, first.offsets, (size_t)h.made.n * sizeof(size_t));
            assert_true(h.nodes >= first.nodes);
            rfx_team_run(threads, complete_in_team, &h);
        }
        free_hard(&h);
    }
}

/* A beam of one state, which ends early here. */
static enum rfx_status place(const struct rfx_place_problem *problem, size_t capacity,
                             size_t *offsets, struct rfx_error *err) {
    struct rfx_fronts_request request = {
        .capacity_bytes = capacity, .width = 1, .nodes = UINT64_MAX};
    size_t arena = 0;
    bool complete = false;
    uint64_t nodes = 0;
    enum rfx_status status =
        rfx_mended_fronts_place(problem, &request, offsets, &arena, &complete, &nodes, err);
    if (status == RFX_OK) assert_true(nodes > 1000); /* moves, of which the beam makes none */
    return status;
}

static void allocations_can_fail(void **state) {
    (void)state;
    struct packing_case made = packing_make(packing_find("chains-slack-10"), 9, 60, 60);
    assert_true(placement_fail_each_allocation(&made, place) > 40);
    free(made.items);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_valid),
        cmocka_unit_test(parts_are_valid_at_any_limit),
        cmocka_unit_test(parts_are_completed),
        cmocka_unit_test(allocations_can_fail),
    };
    return cmocka_run_group_tests(tests, placement_set_up, placement_tear_down);
}
