/* Rectangle algebra against membership of single points. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "layers/core/rect.h"
#include "tests/support/test_util.h"

static bool has(struct rfx_rect r, int64_t y, int64_t x) {
    return y >= r.y0 && y < r.y1 && x >= r.x0 && x < r.x1;
}

static struct rfx_rect draw(struct test_rng *rng) {
    return rfx_rect_make(test_rng_int(rng, -4, 4), test_rng_int(rng, -4, 4),
                         test_rng_int(rng, -4, 4), test_rng_int(rng, -4, 4));
}

static void test_against_points(void **state) {
    (void)state;
    struct test_rng rng = test_rng_make(11);
    for (int i = 0; i < 3000; i++) {
        struct rfx_rect a = draw(&rng), b = draw(&rng);
        struct rfx_rect both = rfx_rect_intersect(a, b), around = rfx_rect_union(a, b);
        int64_t in_a = 0, in_around = 0;
        bool contained = true;
        for (int64_t p = 0; p < 121; p++) {
            int64_t y = p / 11 - 5, x = p % 11 - 5;
            in_a += has(a, y, x);
            in_around += has(around, y, x);
            if (has(b, y, x) && !has(a, y, x)) contained = false;
            assert_int_equal(has(both, y, x), has(a, y, x) && has(b, y, x));
            if (has(a, y, x) || has(b, y, x)) assert_true(has(around, y, x));
        }
        assert_int_equal(rfx_rect_area(a), in_a);
        assert_int_equal(rfx_rect_is_empty(a), in_a == 0);
        assert_int_equal(rfx_rect_contains(a, b), contained);
        /* The smallest one: each of its sides is a side of a part that is not empty. */
        if (rfx_rect_is_empty(a) && rfx_rect_is_empty(b)) assert_int_equal(in_around, 0);
        if (rfx_rect_is_empty(a)) assert_true(rfx_rect_equal(around, b));
        if (!rfx_rect_is_empty(a) && rfx_rect_is_empty(b)) assert_true(rfx_rect_equal(around, a));
        if (!rfx_rect_is_empty(a) && !rfx_rect_is_empty(b)) {
            assert_true(around.y0 == a.y0 || around.y0 == b.y0);
            assert_true(around.x1 == a.x1 || around.x1 == b.x1);
        }
    }
}

/* Ranges are the rows of rectangles of one column. */
static void test_union_of_ranges(void **state) {
    (void)state;
    for (int i = 0; i < 9 * 9 * 9 * 9; i++) {
        struct rfx_range a = {i % 9 - 4, i / 9 % 9 - 4}, b = {i / 81 % 9 - 4, i / 729 - 4};
        struct rfx_range got = rfx_range_union(a, b);
        struct rfx_rect want =
            rfx_rect_union(rfx_rect_make(a.lo, a.hi, 0, 1), rfx_rect_make(b.lo, b.hi, 0, 1));
        assert_int_equal(got.lo, want.y0);
        assert_int_equal(got.hi, want.y1);
    }
}

/* Parts follow each other, make up the whole, and differ by one position at most. */
static void test_parts(void **state) {
    (void)state;
    for (int64_t size = 0; size <= 40; size++)
        for (int64_t n = 1; n <= 45; n++) {
            struct rfx_range whole = {-7, -7 + size};
            int64_t at = whole.lo;
            for (int64_t i = 0; i < n; i++) {
                struct rfx_range part = rfx_range_part(whole, i, n);
                assert_int_equal(part.lo, at);
                assert_in_range(part.hi - part.lo, size / n, (size + n - 1) / n);
                at = part.hi;
            }
            assert_int_equal(at, whole.hi);
        }
    /* rows cut into 3: 5 6 | 7 8 | 9 10 11; columns into 2: -2 -1 | 0 1 2 */
    struct rfx_rect r = rfx_rect_make(5, 12, -2, 3);
    assert_true(rfx_rect_equal(rfx_rect_part(r, 0, 3, 0, 2), rfx_rect_make(5, 7, -2, 0)));
    assert_true(rfx_rect_equal(rfx_rect_part(r, 1, 3, 1, 2), rfx_rect_make(7, 9, 0, 3)));
    assert_true(rfx_rect_equal(rfx_rect_part(r, 2, 3, 0, 2), rfx_rect_make(9, 12, -2, 0)));
}

static void test_by_hand(void **state) {
    (void)state;
    struct rfx_rect a = rfx_rect_full(4, 6), b = rfx_rect_make(2, 9, -3, 2);
    assert_true(rfx_rect_equal(rfx_rect_intersect(a, b), rfx_rect_make(2, 4, 0, 2)));
    assert_true(rfx_rect_equal(rfx_rect_union(a, b), rfx_rect_make(0, 9, -3, 6)));
    assert_int_equal(rfx_rect_rows(b), 7);
    assert_int_equal(rfx_rect_cols(b), 5);
    assert_int_equal(rfx_rect_rows(rfx_rect_make(3, 1, 0, 2)), 0);
    assert_true(
        rfx_rect_equal(rfx_rect_from_ranges(rfx_rect_row_range(b), rfx_rect_col_range(b)), b));
    /* Touching rectangles have nothing in common. */
    assert_true(rfx_rect_is_empty(
        rfx_rect_intersect(rfx_rect_make(0, 2, 0, 2), rfx_rect_make(2, 4, 0, 2))));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_points),
        cmocka_unit_test(test_union_of_ranges),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
