/* Quantising: rounding, clamping and special values by hand; ranges of few and strange values. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rfexec/output/samples.h"

static void floats_are_clamped_and_rounded(void **state) {
    (void)state;
    static const float values[] = {-1.0f, 0.0f, 0.5f, 1.0f, 7.0f, INFINITY, -INFINITY, NAN, 0.1f};
    static const uint8_t wanted8[9] = {0, 0, 128, 255, 255, 255, 0, 0, 26};
    static const uint16_t wanted16[9] = {0, 0, 32768, 65535, 65535, 65535, 0, 0, 6554};
    const struct rfx_value_range range = {0.0, 1.0};
    uint8_t got8[9];
    uint16_t got16[9];
    rfx_samples_of(RFX_TYPE_FLOAT32, values, 9, range, 8, got8);
    rfx_samples_of(RFX_TYPE_FLOAT32, values, 9, range, 16, got16);
    assert_memory_equal(got8, wanted8, sizeof wanted8);
    assert_memory_equal(got16, wanted16, sizeof wanted16);
}

/* Maps of classes: with the range of the samples themselves whole numbers stay what they are. */
static void labels_stay(void **state) {
    (void)state;
    const struct rfx_value_range bytes = {0.0, 255.0}, words = {0.0, 65535.0};
    for (int i = 0; i <= 65535; i++) {
        float label = (float)i;
        uint8_t byte;
        uint16_t word;
        rfx_samples_of(RFX_TYPE_FLOAT32, &label, 1, words, 16, &word);
        assert_int_equal(word, i);
        rfx_samples_of(RFX_TYPE_FLOAT32, &label, 1, bytes, 8, &byte);
        assert_int_equal(byte, i < 255 ? i : 255);
    }
}

static void the_widest_range_does_not_overflow(void **state) {
    (void)state;
    static const float values[] = {-FLT_MAX, 0.0f, FLT_MAX};
    static const uint8_t wanted[3] = {0, 128, 255};
    uint8_t got[3];
    struct rfx_value_range range = rfx_value_range_empty();
    rfx_value_range_add(&range, RFX_TYPE_FLOAT32, values, 3);
    rfx_samples_of(RFX_TYPE_FLOAT32, values, 3, rfx_value_range_settle(range), 8, got);
    assert_memory_equal(got, wanted, sizeof wanted);
}

static void ranges_are_those_of_the_finite_values(void **state) {
    (void)state;
    static const float values[] = {NAN, 3.0f, -INFINITY, -2.5f, INFINITY, 1.0f};
    struct rfx_value_range range = rfx_value_range_empty();
    rfx_value_range_add(&range, RFX_TYPE_FLOAT32, values, 3);
    assert_true(range.lo == 3.0 && range.hi == 3.0);
    rfx_value_range_add(&range, RFX_TYPE_FLOAT32, values + 3, 3);
    assert_true(range.lo == -2.5 && range.hi == 3.0);
    range = rfx_value_range_settle(range);
    assert_true(range.lo == -2.5 && range.hi == 3.0);
}

static void every_settled_range_can_be_divided_by(void **state) {
    (void)state;
    struct rfx_value_range range = rfx_value_range_settle(rfx_value_range_empty());
    assert_true(range.lo == 0.0 && range.hi == 1.0);
    const float single[] = {4.0f, -1e30f};
    range = rfx_value_range_empty();
    rfx_value_range_add(&range, RFX_TYPE_FLOAT32, single, 1);
    range = rfx_value_range_settle(range);
    assert_true(range.lo == 4.0 && range.hi == 5.0);
    range = rfx_value_range_empty();
    rfx_value_range_add(&range, RFX_TYPE_FLOAT32, single + 1, 1);
    range = rfx_value_range_settle(range);
    assert_true(range.lo == (double)single[1] && range.lo < range.hi);
    uint8_t black = 9;
    rfx_samples_of(RFX_TYPE_FLOAT32, single + 1, 1, range, 8, &black);
    assert_int_equal(black, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floats_are_clamped_and_rounded),
        cmocka_unit_test(labels_stay),
        cmocka_unit_test(the_widest_range_does_not_overflow),
        cmocka_unit_test(ranges_are_those_of_the_finite_values),
        cmocka_unit_test(every_settled_range_can_be_divided_by),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
