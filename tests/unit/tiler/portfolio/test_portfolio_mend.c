/* Beams that get nowhere, and what becomes of their last states: parts of packings that are valid,
 * packings that the beam alone does not find, the same every time, running out of memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/support/random/packing_cases.h"
#include "tests/support/random/placement_cases.h"
#include "tiler/overlaps/overlaps.h"
#include "tiler/portfolio/portfolio_mend.h"
#include "tiler/strategies/placement_offsets.h"

enum { MAX_RECORDS = 512, MAX_PARTS = 8 };

/* Beams of this width and variant find nothing. */
static const struct {
    const char *family;
    uint64_t seed;
    int variant;
} cases[] = {{"spirals-slack-10", 4, 0}, {"spirals-slack-10", 4, 2}};
enum { WIDTH = 64 };

static struct rfx_fronts_request request_of(const struct packing_case *made, int variant) {
    return (struct rfx_fronts_request){
        .capacity_bytes = made->capacity, .width = WIDTH, .variant = variant, .nodes = UINT64_MAX};
}

/* No two items of a part that are alive together share a byte. */
static void check_part(const struct packing_case *made, const size_t *part) {
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
    assert_in_range(placed, 1, made->n - 1);
}

static void parts_are_valid(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct packing_case made =
            packing_make(packing_find(cases[k].family), cases[k].seed, 150, 450);
        struct rfx_place_problem *problem = placement_problem(made.items, made.n);
        struct rfx_fronts_request request = request_of(&made, cases[k].variant);
        struct rfx_fronts_parts parts = {
            .most = MAX_PARTS, .offsets = calloc((size_t)made.n * MAX_PARTS, sizeof(size_t))};
        size_t offsets[MAX_RECORDS];
        size_t arena = 0;
        uint64_t nodes = 0;
        bool complete = true;
        assert_non_null(parts.offsets);
        request.parts = &parts;
        assert_int_equal(
            rfx_fronts_place(problem, &request, offsets, &arena, &complete, &nodes, NULL), RFX_OK);
        assert_int_equal(arena, SIZE_MAX);
        assert_false(complete);
        assert_in_range(parts.n, 1, MAX_PARTS);
        for (int p = 0; p < parts.n; p++) check_part(&made, &parts.offsets[p * made.n]);
        free(parts.offsets);
        rfx_place_problem_free(problem);
        free(made.items);
    }
}

static void parts_are_completed(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct packing_case made =
            packing_make(packing_find(cases[k].family), cases[k].seed, 150, 450);
        struct rfx_place_problem *problem = placement_problem(made.items, made.n);
        struct rfx_fronts_request request = request_of(&made, cases[k].variant);
        size_t offsets[2][MAX_RECORDS];
        uint64_t nodes[2] = {0, 0};
        for (int again = 0; again < 2; again++) {
            size_t arena = 0;
            bool complete = true;
            assert_int_equal(rfx_mended_fronts_place(problem, &request, offsets[again], &arena,
                                                     &complete, &nodes[again], NULL),
                             RFX_OK);
            assert_int_equal(arena, made.capacity);
            assert_true(
                rfx_place_answer_is_valid(made.items, made.n, offsets[again], made.capacity));
        }
        assert_int_equal(nodes[0], nodes[1]);
        assert_memory_equal(offsets[0], offsets[1], (size_t)made.n * sizeof(size_t));
        rfx_place_problem_free(problem);
        free(made.items);
    }
}

/* A few items taken out of a packing find their places again, with and without alignments. */
static void what_is_missing_is_put_in(void **state) {
    (void)state;
    for (size_t alignment = 1; alignment <= 64; alignment *= 64) {
        struct packing_case made = packing_make(packing_find("chains"), 1, 200, 200);
        for (int i = 0; i < made.n; i++) made.items[i].alignment = alignment;
        struct rfx_place_problem *problem = placement_problem(made.items, made.n);
        struct rfx_overlaps_request request = {.moves = 0};
        size_t offsets[MAX_RECORDS];
        size_t again = 0;
        uint64_t nodes = 0;
        assert_int_equal(rfx_offsets_place(problem, RFX_OFFSETS_STRIP_PACKING, offsets,
                                           &request.capacity_bytes, NULL),
                         RFX_OK);
        for (int i = 7; i < made.n; i += 90) offsets[i] = SIZE_MAX;
        request.start = offsets;
        assert_int_equal(rfx_overlaps_place(problem, &request, offsets, &again, &nodes, NULL),
                         RFX_OK);
        assert_true(again <= request.capacity_bytes);
        assert_int_equal(nodes, 0);
        assert_true(rfx_place_answer_is_valid(made.items, made.n, offsets, again));
        rfx_place_problem_free(problem);
        free(made.items);
    }
}

static enum rfx_status build(struct rfx_memory *mem, void *context, struct rfx_error *err) {
    const struct packing_case *made = context;
    struct rfx_place_problem *problem = NULL;
    struct rfx_fronts_request request = {
        .capacity_bytes = made->capacity, .width = 1, .nodes = UINT64_MAX};
    size_t offsets[MAX_RECORDS];
    size_t arena = 0;
    bool complete = false;
    uint64_t nodes = 0;
    enum rfx_status status = rfx_place_problem_create(mem, made->items, made->n, &problem, err);
    if (status == RFX_OK)
        status = rfx_mended_fronts_place(problem, &request, offsets, &arena, &complete, &nodes, err);
    rfx_place_problem_free(problem);
    return status;
}

static void allocations_can_fail(void **state) {
    (void)state;
    struct packing_case made = packing_make(packing_find("chains-slack-10"), 7, 60, 60);
    assert_true(test_fail_each_allocation(build, &made) > 30);
    free(made.items);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_valid),
        cmocka_unit_test(parts_are_completed),
        cmocka_unit_test(what_is_missing_is_put_in),
        cmocka_unit_test(allocations_can_fail),
    };
    return cmocka_run_group_tests(tests, placement_set_up, placement_tear_down);
}
