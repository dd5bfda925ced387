/* Problems for the placement tests. */
#include "tests/support/random/placement_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

struct rfx_memory *placement_mem;

int placement_set_up(void **state) {
    (void)state;
    placement_mem = rfx_memory_create(0);
    return placement_mem == NULL;
}

int placement_tear_down(void **state) {
    (void)state;
    bool leaks = rfx_memory_current_bytes(placement_mem) != 0;
    rfx_memory_free(placement_mem);
    return leaks;
}

struct rfx_place_problem *placement_problem(const struct rfx_place_item *items, int n) {
    struct rfx_place_problem *problem = NULL;
    assert_int_equal(rfx_place_problem_create(placement_mem, items, n, &problem, NULL), RFX_OK);
    return problem;
}

struct attempt {
    const struct packing_case *made;
    placement_placer *place;
    size_t *offsets;
};

static enum rfx_status make_and_place(struct rfx_memory *mem, void *context,
                                      struct rfx_error *err) {
    const struct attempt *a = context;
    struct rfx_place_problem *problem = NULL;
    enum rfx_status status =
        rfx_place_problem_create(mem, a->made->items, a->made->n, &problem, err);
    if (status == RFX_OK) status = a->place(problem, a->made->capacity, a->offsets, err);
    rfx_place_problem_free(problem);
    return status;
}

int64_t placement_fail_each_allocation(const struct packing_case *made, placement_placer *place) {
    struct attempt a = {made, place, calloc((size_t)made->n, sizeof *a.offsets)};
    assert_non_null(a.offsets);
    int64_t failed = test_fail_each_allocation(make_and_place, &a);
    free(a.offsets);
    return failed;
}

int placement_random(struct test_rng *rng, const struct placement_ranges *ranges,
                     struct rfx_place_item *items) {
    int n = (int)test_rng_int(rng, 1, ranges->items);
    for (int i = 0; i < n; i++) {
        int64_t lo = test_rng_int(rng, -15, 14);
        struct rfx_place_item item = {lo, lo + test_rng_int(rng, 1, ranges->lifetime),
                                      (size_t)test_rng_int(rng, 1, ranges->size),
                                      (size_t)1 << test_rng_int(rng, 0, ranges->alignment_bits)};
        items[i] = item;
    }
    return n;
}
