/* Numbers of candidates are found by their candidate, in whatever order they were added. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rfexec/answers/box_extras.h"

enum { N = 1000, NUMBERS = 10 };

static void found_by_candidate(void **state) {
    (void)state;
    for (int64_t n = 0; n <= N; n = n < 9 ? n + 1 : n * 3) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_box_extras *store = NULL;
        assert_int_equal(rfx_box_extras_create(mem, n, NUMBERS, &store, NULL), RFX_OK);
        assert_true(rfx_memory_current_bytes(mem) <= rfx_box_extras_bytes(n, NUMBERS) + 256);
        for (int64_t i = 0; i < n; i++) {
            int64_t index = (i * 7919 % n) * 3 + ((int64_t)1 << 40); /* 7919 is prime */
            float numbers[NUMBERS] = {(float)(index % 4096)};
            numbers[NUMBERS - 1] = -numbers[0];
            rfx_box_extras_add(store, index, numbers);
        }
        rfx_box_extras_sort(store);
        for (int64_t i = 0; i < 3 * n; i++) {
            int64_t index = i + ((int64_t)1 << 40);
            const float *numbers = rfx_box_extras_find(store, index);
            if (i % 3 != 0) {
                assert_null(numbers);
                continue;
            }
            assert_non_null(numbers);
            assert_true(numbers[0] == (float)(index % 4096));
            assert_true(numbers[NUMBERS - 1] == -numbers[0]);
        }
        assert_null(rfx_box_extras_find(store, 0));
        assert_null(rfx_box_extras_find(store, INT64_MAX));
        rfx_box_extras_free(store);
        assert_int_equal(rfx_memory_current_bytes(mem), 0);
        rfx_memory_free(mem);
    }
}

static void sizes_and_failures(void **state) {
    (void)state;
    struct rfx_box_extras *store = NULL;
    struct rfx_memory *mem = rfx_memory_create(0);
    assert_int_equal(rfx_box_extras_bytes(-1, 1), SIZE_MAX);
    assert_int_equal(rfx_box_extras_bytes((int64_t)1 << 31, 1), SIZE_MAX);
    assert_int_equal(rfx_box_extras_bytes(RFX_BOXES_MOST, INT32_MAX), SIZE_MAX);
    assert_int_equal(rfx_box_extras_bytes(1, 0), SIZE_MAX);
    assert_true(rfx_box_extras_bytes(100, 51) >= 100 * (sizeof(int64_t) + 51 * sizeof(float)));
    assert_int_equal(rfx_box_extras_create(mem, -1, 1, &store, NULL), RFX_STATUS_INVALID_ARGUMENT);
    assert_int_equal(rfx_box_extras_create(mem, 1, 0, &store, NULL), RFX_STATUS_INVALID_ARGUMENT);
    for (int k = 0; k < 3; k++) {
        rfx_memory_fail_after(mem, k);
        assert_int_equal(rfx_box_extras_create(mem, 5, 3, &store, NULL), RFX_STATUS_OUT_OF_MEMORY);
        assert_null(store);
        assert_int_equal(rfx_memory_current_bytes(mem), 0);
    }
    rfx_memory_free(mem);
    rfx_box_extras_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(found_by_candidate),
                                       cmocka_unit_test(sizes_and_failures)};
    return cmocka_run_group_tests_name("box extras", tests, NULL, NULL);
}
