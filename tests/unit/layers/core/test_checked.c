/* Checked arithmetic at and around the limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "layers/core/checked.h"

static void test_signed(void **state) {
    (void)state;
    int64_t out = 5;
    assert_true(rfx_checked_mul_i64(3037000499, 3037000499, &out));
    assert_true(out == 9223372030926249001);
    assert_false(rfx_checked_mul_i64(3037000500, 3037000500, &out));
    assert_true(out == 9223372030926249001);
    assert_false(rfx_checked_mul_i64(INT64_MIN, -1, &out));
    assert_true(rfx_checked_add_i64(INT64_MAX, -1, &out));
    assert_true(out == INT64_MAX - 1);
    assert_false(rfx_checked_add_i64(INT64_MAX, 1, &out));
    assert_false(rfx_checked_add_i64(INT64_MIN, -1, &out));
    assert_true(out == INT64_MAX - 1);
}

static void test_sizes(void **state) {
    (void)state;
    size_t out = 5;
    assert_true(rfx_checked_mul_size(SIZE_MAX, 1, &out));
    assert_true(out == SIZE_MAX);
    out = 5;
    assert_false(rfx_checked_mul_size(SIZE_MAX / 2 + 1, 2, &out));
    assert_false(rfx_checked_add_size(SIZE_MAX, 1, &out));
    assert_true(out == 5);
    assert_true(rfx_checked_mul_size(0, SIZE_MAX, &out));
    assert_true(out == 0);
    assert_true(rfx_checked_add_size(SIZE_MAX - 1, 1, &out));
    assert_true(out == SIZE_MAX);
}

static void test_divisions(void **state) {
    (void)state;
    static const int64_t rows[][4] = {/* a, b, floor, ceil */
                                      {7, 2, 3, 4}, {-7, 2, -4, -3}, {6, 3, 2, 2}, {-6, 3, -2, -2},
                                      {0, 5, 0, 0}, {-1, 5, -1, 0},  {1, 5, 0, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(rfx_floor_div(rows[i][0], rows[i][1]), rows[i][2]);
        assert_int_equal(rfx_ceil_div(rows[i][0], rows[i][1]), rows[i][3]);
    }
    assert_int_equal(rfx_min_i64(-3, 2), -3);
    assert_int_equal(rfx_max_i64(-3, 2), 2);
}

static void test_alignment(void **state) {
    (void)state;
    static const size_t rows[][2] = {{0, 0}, {1, 64}, {63, 64}, {64, 64}, {65, 128}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(rfx_align_up(rows[i][0]), rows[i][1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_signed), cmocka_unit_test(test_sizes),
                                       cmocka_unit_test(test_divisions),
                                       cmocka_unit_test(test_alignment)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
