/* Means of coordinates, rounded once. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rfexec/answers/region_totals.h"
#include "tests/support/test_util.h"

typedef rfx_region_wide wide;

static void adds_rectangles(void **state) {
    (void)state;
    struct rfx_region_totals totals = {.area = 0};
    rfx_region_totals_add(&totals,
                          rfx_rect_make(2, 4, 10, 13)); /* middles 2.5, 3.5; 10.5 to 12.5 */
    rfx_region_totals_add(&totals, rfx_rect_make(4, 5, 7, 8));
    assert_int_equal(totals.area, 7);
    assert_true(totals.twice_x == 2 * 69 + 15 && totals.twice_y == 2 * 18 + 9);
    assert_true(rfx_rect_equal(totals.box, rfx_rect_make(2, 5, 7, 13)));
    /* The largest map: sums of 94 bits. */
    totals = (struct rfx_region_totals){.area = 0};
    rfx_region_totals_add(&totals, rfx_rect_make(0, INT32_MAX, 0, INT32_MAX));
    assert_true(rfx_region_mean(totals.twice_x, totals.area) == (double)INT32_MAX / 2);
    assert_true(rfx_region_mean(totals.twice_y, totals.area) == (double)INT32_MAX / 2);
}

/* Quotients 1 + k 2^-53 for odd k, exact and with a rest below 2^-62 more or less. */
static void ties_are_decided_by_all_bits(void **state) {
    (void)state;
    const int64_t area = (int64_t)1023 << 52;
    for (int k = 1; k < 9; k += 2) {
        wide tie = (wide)1023 * (((wide)1 << 53) + (wide)k);
        double below = 1.0 + (k - 1) * 0x1p-53, above = 1.0 + (k + 1) * 0x1p-53;
        assert_true(rfx_region_mean(tie, area) == (k % 4 == 1 ? below : above));
        assert_true(rfx_region_mean(tie - 1, area) == below);
        assert_true(rfx_region_mean(tie + 1, area) == above);
    }
    assert_true(rfx_region_mean(((wide)1 << 53) + 1, (int64_t)1 << 52) == 1.0);
    assert_true(rfx_region_mean(((wide)1 << 53) + 3, (int64_t)1 << 52) == 1.0 + 0x1p-51);
}

/* A mean n 2^(e - 53) is off by at most half of 2^(e - 53), and if by half, n is even. Both sides
 * of the comparison are multiplied by 2 area 2^(53 - e), which makes them integers below 2^100. */
static void means_are_rounded_to_nearest(void **state) {
    (void)state;
    struct test_rng rng = test_rng_make(17);
    for (int k = 0; k < 200000; k++) {
        int64_t area = test_rng_int(&rng, 1, (int64_t)1 << test_rng_int(&rng, 0, 36));
        int64_t most = (int64_t)1 << test_rng_int(&rng, 1, 30); /* twice the mean */
        wide twice_sum = (wide)area * (uint64_t)test_rng_int(&rng, 1, most);
        twice_sum += (uint64_t)test_rng_int(&rng, 0, area);
        double mean = rfx_region_mean(twice_sum, area);
        int exponent;
        (void)frexp(mean, &exponent);
        wide n = (wide)(uint64_t)ldexp(mean, 53 - exponent);
        wide got = n * 2 * (uint64_t)area, want = twice_sum << (53 - exponent);
        wide error = got > want ? got - want : want - got;
        assert_true(error < (uint64_t)area || (error == (uint64_t)area && n % 2 == 0));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adds_rectangles),
        cmocka_unit_test(ties_are_decided_by_all_bits),
        cmocka_unit_test(means_are_rounded_to_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
