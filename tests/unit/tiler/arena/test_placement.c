/* Placement: hand-made problems, the bound, and a validator that must say no. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tiler/arena/placement.h"

#define LINE 64

static size_t place(struct rfx_record *records, int n) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_error err;
    size_t arena = 0;
    const char *strategy = NULL;
    assert_int_equal(rfx_place_records(mem, records, n, false, &arena, &strategy, &err), RFX_OK);
    assert_non_null(strategy);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
    return arena;
}

/* The largest sum of live bytes, step by step. */
static size_t bound_of(const struct rfx_record *records, int n, int n_steps) {
    size_t bound = 0;
    for (int t = 0; t < n_steps; t++) {
        size_t live = 0;
        for (int i = 0; i < n; i++)
            if (records[i].first <= t && t <= records[i].last) live += records[i].bytes;
        if (live > bound) bound = live;
    }
    return bound;
}

static void lifetimes_are_closed(void **state) {
    (void)state;
    struct rfx_record a = {RFX_RECORD_STORED, 0, 0, 2, 4, LINE, 0};
    struct rfx_record same = {RFX_RECORD_STORED, 0, 1, 2, 4, LINE, 0};
    struct rfx_record touching = {RFX_RECORD_STORED, 0, 2, 4, 6, LINE, 0};
    struct rfx_record later = {RFX_RECORD_STORED, 0, 3, 5, 6, LINE, 0};
    assert_true(rfx_records_overlap(&a, &same));
    assert_true(rfx_records_overlap(&a, &touching));
    assert_true(rfx_records_overlap(&touching, &a));
    assert_false(rfx_records_overlap(&a, &later));
}

/* Four buffers: 0 and 2 never meet, 1 spans both; 3 lies beside 1 only at the end. */
static void chain_reuses_memory(void **state) {
    (void)state;
    struct rfx_record records[] = {{RFX_RECORD_STORED, 0, 0, 0, 1, 4 * LINE, 0},
                                   {RFX_RECORD_STORED, 0, 1, 1, 2, 2 * LINE, 0},
                                   {RFX_RECORD_STORED, 0, 2, 2, 3, 3 * LINE, 0},
                                   {RFX_RECORD_STORED, 0, 3, 3, 4, LINE, 0}};
    assert_int_equal(bound_of(records, 4, 5), 6 * LINE);
    assert_int_equal(place(records, 4), 6 * LINE);
    assert_true(rfx_place_is_valid(records, 4, NULL, 0, NULL, 6 * LINE));
    assert_false(rfx_place_is_valid(records, 4, NULL, 0, NULL, 5 * LINE));
}

static void validator_refuses(void **state) {
    (void)state;
    struct rfx_record records[] = {{RFX_RECORD_STORED, 0, 0, 0, 2, 2 * LINE, 0},
                                   {RFX_RECORD_STORED, 0, 1, 2, 3, LINE, LINE}};
    assert_false(
        rfx_place_is_valid(records, 2, NULL, 0, NULL, 4 * LINE)); /* share bytes at step 2 */
    records[1].first = 3;
    assert_true(rfx_place_is_valid(records, 2, NULL, 0, NULL, 4 * LINE));
    records[1].offset = LINE / 2;
    assert_false(rfx_place_is_valid(records, 2, NULL, 0, NULL, 4 * LINE)); /* unaligned */
    records[1].offset = 4 * LINE;
    assert_false(rfx_place_is_valid(records, 2, NULL, 0, NULL, 4 * LINE)); /* outside */
}

/* Random problems: valid, never below the bound, never above the naive sum. */
static void random_problems(void **state) {
    (void)state;
    unsigned seed = 20240;
    for (int problem = 0; problem < 500; problem++) {
        struct rfx_record records[30];
        int n = 1 + rand_r(&seed) % 30;
        size_t sum = 0;
        for (int i = 0; i < n; i++) {
            int first = rand_r(&seed) % 40;
            int last = first + rand_r(&seed) % (40 - first);
            size_t bytes = (size_t)LINE * (size_t)(1 + rand_r(&seed) % 20);
            struct rfx_record r = {RFX_RECORD_STORED, 0, i, first, last, bytes, 0};
            records[i] = r;
            sum += bytes;
        }
        size_t bound = bound_of(records, n, 40);
        size_t arena = place(records, n);
        assert_true(rfx_place_is_valid(records, n, NULL, 0, NULL, arena));
        assert_true(arena >= bound && arena <= sum);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lifetimes_are_closed),
        cmocka_unit_test(chain_reuses_memory),
        cmocka_unit_test(validator_refuses),
        cmocka_unit_test(random_problems),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
