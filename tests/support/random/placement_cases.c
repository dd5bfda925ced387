/* Problems for the placement tests. */
#include "tests/support/random/placement_cases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

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
