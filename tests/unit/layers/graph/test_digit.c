/* Digits of mixed radix beside a list of the places of all their positions. */
#include "layers/graph/digit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/support/test_util.h"

enum { MOST = 64, CASES = 4000 };

/* A digit of up to MOST positions: one that repeats, one that counts, or one with cuts. */
static struct rfx_digit random_digit(struct test_rng *rng, int64_t size) {
    struct rfx_digit d = {.size = size};
    int64_t kind = test_rng_int(rng, 0, 2);
    if (kind > 0 && size > 1) d.stride = test_rng_int(rng, 1, 9) - 10 * (kind == 2);
    for (int64_t i = test_rng_int(rng, 0, RFX_DIGIT_CUTS); kind > 0 && i > 0; i--)
        assert_true(rfx_digit_add_cut(&d, test_rng_int(rng, 1, size)));
    return d;
}

/* The place of a position, counted from cut to cut. */
static int64_t place(const struct rfx_digit *d, int64_t at) {
    int64_t sum = 0;
    for (int64_t i = 1; i <= at; i++) {
        bool cut = d->n_cuts == 0;
        for (int64_t k = 0; k < d->n_cuts; k++) cut = cut || d->cuts[k] == i;
        sum += cut ? d->stride : 0;
    }
    return sum;
}

static void check_invariants(const struct rfx_digit *d) {
    assert_true(d->n_cuts >= 0 && d->n_cuts <= RFX_DIGIT_CUTS);
    for (int64_t k = 0; k < d->n_cuts; k++) {
        assert_true(d->cuts[k] >= 1 && d->cuts[k] < d->size);
        assert_true(k == 0 || d->cuts[k - 1] < d->cuts[k]);
    }
    if (d->stride == 0) assert_int_equal(d->n_cuts, 0);
}

static void moves(void **state) {
    (void)state;
    struct test_rng rng = test_rng_make(1);
    for (int i = 0; i < CASES; i++) {
        struct rfx_digit d = random_digit(&rng, test_rng_int(&rng, 1, MOST));
        int64_t classes = rfx_digit_classes(&d), k = 0;
        check_invariants(&d);
        for (int64_t at = 0; at < d.size; at++) {
            assert_int_equal(rfx_digit_moves(&d, at), place(&d, at));
            if (k + 1 < classes && rfx_digit_class_begins(&d, k + 1) == at) k++;
            assert_int_equal(place(&d, at), place(&d, rfx_digit_class_begins(&d, k)));
        }
        assert_int_equal(k, classes - 1);
    }
}

static void numbers(void **state) {
    (void)state;
    const struct rfx_digit digits[3] = {
        {3, 10, 1, {2}}, {4, 0, 0, {0}}, {5, 1, 0, {0}}}; /* 3 x 4 x 5 */
    assert_int_equal(rfx_digits_move(digits, 3, 0), 0);
    assert_int_equal(rfx_digits_move(digits, 3, 19), 4);
    assert_int_equal(rfx_digits_move(digits, 3, 39), 4);
    assert_int_equal(rfx_digits_move(digits, 3, 40), 10);
    assert_int_equal(rfx_digits_move(digits, 3, 58), 13);
}

static void slices(void **state) {
    (void)state;
    struct test_rng rng = test_rng_make(2);
    int refused = 0;
    for (int i = 0; i < CASES; i++) {
        struct rfx_digit d = random_digit(&rng, test_rng_int(&rng, 1, MOST)), out;
        int64_t start = test_rng_int(&rng, 0, d.size - 1), step = test_rng_int(&rng, -3, 3);
        if (step == 0) step = 1;
        int64_t most = (step > 0 ? d.size - 1 - start : start) / (step > 0 ? step : -step) + 1;
        int64_t size = test_rng_int(&rng, 1, most);
        if (!rfx_digit_slice(&d, start, step, size, &out)) {
            assert_true(d.n_cuts > 1 && step != 1 && step != -1);
            refused++;
            continue;
        }
        check_invariants(&out);
        for (int64_t at = 0; at < size; at++)
            assert_int_equal(place(&d, start) + rfx_digit_moves(&out, at),
                             place(&d, start + at * step));
    }
    assert_true(refused > 0 && refused < CASES / 8);
}

/* What two digits tell apart, their join does. */
static void joins(void **state) {
    (void)state;
    struct test_rng rng = test_rng_make(3);
    for (int i = 0; i < CASES; i++) {
        int64_t size = test_rng_int(&rng, 1, MOST);
        struct rfx_digit a = random_digit(&rng, size), b = random_digit(&rng, size);
        struct rfx_digit both = rfx_digit_join(&a, &b);
        check_invariants(&both);
        assert_int_equal(both.size, size);
        for (int64_t at = 1; at < size; at++)
            if (place(&both, at) == place(&both, at - 1)) {
                assert_int_equal(place(&a, at), place(&a, at - 1));
                assert_int_equal(place(&b, at), place(&b, at - 1));
            }
        if (a.stride == 0 && b.stride == 0) assert_int_equal(both.stride, 0);
    }
}

/* Positions of one class in both digits are at one place. */
static void splits(void **state) {
    (void)state;
    struct test_rng rng = test_rng_make(4);
    int refused = 0;
    for (int i = 0; i < CASES; i++) {
        int64_t rows = test_rng_int(&rng, 1, 8), cols = test_rng_int(&rng, 1, 8);
        struct rfx_digit d = random_digit(&rng, rows * cols), outer, inner;
        if (!rfx_digit_split(&d, cols, &outer, &inner)) {
            assert_true(d.n_cuts > 1);
            refused++;
            continue;
        }
        check_invariants(&outer);
        check_invariants(&inner);
        for (int64_t a = 0; a < rfx_digit_classes(&outer); a++)
            for (int64_t b = 0; b < rfx_digit_classes(&inner); b++) {
                int64_t y = rfx_digit_class_begins(&outer, a),
                        x = rfx_digit_class_begins(&inner, b);
                for (int64_t at = 0; at < d.size; at++)
                    if (place(&outer, at / cols) == place(&outer, y) &&
                        place(&inner, at % cols) == place(&inner, x))
                        assert_int_equal(place(&d, at), place(&d, y * cols + x));
            }
    }
    assert_true(refused > 0 && refused < CASES / 2);
}

static void too_many_cuts(void **state) {
    (void)state;
    struct rfx_digit d = {.size = 20, .stride = 1};
    for (int64_t at = RFX_DIGIT_CUTS; at >= 1; at--) assert_true(rfx_digit_add_cut(&d, at));
    assert_true(rfx_digit_add_cut(&d, 2));  /* there */
    assert_true(rfx_digit_add_cut(&d, 0));  /* none */
    assert_true(rfx_digit_add_cut(&d, 20)); /* none */
    assert_false(rfx_digit_add_cut(&d, 19));
    assert_int_equal(d.n_cuts, RFX_DIGIT_CUTS);
    check_invariants(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(moves),  cmocka_unit_test(numbers),
                                       cmocka_unit_test(slices), cmocka_unit_test(joins),
                                       cmocka_unit_test(splits), cmocka_unit_test(too_many_cuts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
