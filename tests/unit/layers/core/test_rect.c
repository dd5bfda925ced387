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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_points),
                                       cmocka_unit_test(test_by_hand)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
