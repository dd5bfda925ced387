/* Landmarks are found by their candidate, in whatever order they were added. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rfexec/answers/box_points.h"

enum { N = 1000 };

static void found_by_candidate(void **state) {
    (void)state;
    for (int64_t n = 0; n <= N; n = n < 9 ? n + 1 : n * 3) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_box_points *store = NULL;
        assert_int_equal(rfx_box_points_create(mem, n, &store, NULL), RFX_OK);
        assert_int_equal(rfx_memory_current_bytes(mem) <= rfx_box_points_bytes(n) + 256, true);
        for (int64_t i = 0; i < n; i++) {
            int64_t index = (i * 7919 % n) * 3 + ((int64_t)1 << 40); /* 7919 is prime */
            float points[2 * RFX_BOX_POINTS] = {(float)(index % 4096)};
            points[9] = -points[0];
            rfx_box_points_add(store, index, points);
        }
        rfx_box_points_sort(store);
        for (int64_t i = 0; i < 3 * n; i++) {
            int64_t index = i + ((int64_t)1 << 40);
            const float *points = rfx_box_points_find(store, index);
            if (i % 3 != 0) {
                assert_null(points);
                continue;
            }
            assert_non_null(points);
            assert_true(points[0] == (float)(index % 4096) && points[9] == -points[0]);
        }
        assert_null(rfx_box_points_find(store, 0));
        assert_null(rfx_box_points_find(store, INT64_MAX));
        rfx_box_points_free(store);
        assert_int_equal(rfx_memory_current_bytes(mem), 0);
        rfx_memory_free(mem);
    }
}

static void sizes_and_failures(void **state) {
    (void)state;
    struct rfx_box_points *store = NULL;
    struct rfx_memory *mem = rfx_memory_create(0);
    assert_int_equal(rfx_box_points_bytes(-1), SIZE_MAX);
    assert_int_equal(rfx_box_points_bytes((int64_t)1 << 31), SIZE_MAX);
    assert_true(rfx_box_points_bytes(100) >= 100 * (sizeof(int64_t) + 10 * sizeof(float)));
    assert_int_equal(rfx_box_points_create(mem, -1, &store, NULL), RFX_STATUS_INVALID_ARGUMENT);
    for (int k = 0; k < 2; k++) {
        rfx_memory_fail_after(mem, k);
        assert_int_equal(rfx_box_points_create(mem, 5, &store, NULL), RFX_STATUS_OUT_OF_MEMORY);
        assert_null(store);
        assert_int_equal(rfx_memory_current_bytes(mem), 0);
    }
    rfx_memory_free(mem);
    rfx_box_points_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(found_by_candidate),
                                       cmocka_unit_test(sizes_and_failures)};
    return cmocka_run_group_tests_name("box points", tests, NULL, NULL);
}
