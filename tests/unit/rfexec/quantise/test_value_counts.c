/* Counts of values against counting by hand, and ranges of known distributions. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rfexec/quantise/value_counts.h"
#include "tests/support/test_util.h"

static uint64_t bins[RFX_VALUE_BINS];

static struct rfx_value_counts none(void) {
    memset(bins, 0, sizeof bins);
    return (struct rfx_value_counts){.bins = bins};
}

static const struct rfx_range_request minmax = {.method = RFX_RANGE_MINMAX, .type = RFX_TYPE_UINT8};

static void test_every_value_lies_in_its_bin(void **state) {
    static const float values[] = {0.0f,      -0.0f,      1.0f,    -1.0f,  1.015f,    1.0157f,
                                   0x1p-149f, -0x1p-140f, 3.0e38f, -3e38f, 0x1p-126f, 255.5f};
    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        struct rfx_value_counts counts = none();
        assert_true(rfx_value_counts_add(&counts, &values[i], 1));
        int filled = 0;
        for (int b = 0; b < RFX_VALUE_BINS; b++) {
            if (bins[b] == 0) continue;
            filled++;
            assert_true(rfx_value_bin_lo(b) <= values[i] && values[i] <= rfx_value_bin_hi(b));
        }
        assert_int_equal(filled, 1);
        assert_true(counts.lo == values[i] && counts.hi == values[i]);
        assert_int_equal(counts.n, 1);
    }
}

static void test_bins_follow_each_other(void **state) {
    (void)state;
    for (int b = 1; b < RFX_VALUE_BINS; b++) {
        float before = rfx_value_bin_hi(b - 1), lo = rfx_value_bin_lo(b), hi = rfx_value_bin_hi(b);
        if (!isfinite(before) || !isfinite(lo) || !isfinite(hi)) continue;
        assert_true(before <= lo && lo < hi);
        if (lo != 0.0f) assert_true(nextafterf(before, INFINITY) == lo || before == -lo);
        if (lo >= 0x1p-120f) assert_true(hi / lo <= 1.0f + 1.0f / 64.0f);
    }
}

static void test_numbers_that_are_not_finite_are_refused_and_not_counted(void **state) {
    static const float bad[] = {INFINITY, -INFINITY, NAN};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct rfx_value_counts counts = none();
        float values[3] = {1.0f, bad[i], 2.0f};
        assert_false(rfx_value_counts_add(&counts, values, 3));
        assert_int_equal(counts.n, 0);
        for (int b = 0; b < RFX_VALUE_BINS; b++) assert_int_equal(bins[b], 0);
    }
}

/* Scale and zero point of every kind of range, from the definition of QuantizeLinear. */
static void test_scale_and_zero_point(void **state) {
    static const struct {
        float lo, hi;
        enum rfx_type type;
        bool symmetric;
        float scale;
        int32_t zero;
    } rows[] = {
        {0.0f, 6.0f, RFX_TYPE_UINT8, false, 6.0f / 255.0f, 0},
        {2.0f, 6.0f, RFX_TYPE_UINT8, false, 6.0f / 255.0f, 0},
        {-1.0f, 1.0f, RFX_TYPE_UINT8, false, 2.0f / 255.0f, 128},
        {-6.0f, -2.0f, RFX_TYPE_UINT8, false, 6.0f / 255.0f, 255},
        {0.0f, 6.0f, RFX_TYPE_INT8, false, 6.0f / 255.0f, -128},
        {-3.0f, 1.0f, RFX_TYPE_INT8, false, 4.0f / 255.0f, 63},
        {-3.0f, 1.0f, RFX_TYPE_INT8, true, 3.0f / 127.0f, 0},
        {0.0f, 2.54f, RFX_TYPE_UINT8, true, 0.02f, 128},
        {0.0f, 0.0f, RFX_TYPE_UINT8, false, 1.0f, 0},
        {0.0f, 0.0f, RFX_TYPE_INT8, false, 1.0f, -128},
        {-3.0e38f, 3.0e38f, RFX_TYPE_UINT8, false, 3.0e38f / 255.0f * 2.0f, 128},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rfx_value_counts counts = none();
        const struct rfx_range_request request = {
            .method = RFX_RANGE_MINMAX, .type = rows[i].type, .symmetric = rows[i].symmetric};
        const float values[2] = {rows[i].lo, rows[i].hi};
        assert_true(rfx_value_counts_add(&counts, values, 2));
        struct rfx_value_range r = rfx_range_of(&counts, &request);
        assert_true(fabsf(r.scale - rows[i].scale) <= 1e-6f * rows[i].scale);
        assert_int_equal(r.zero_point, rows[i].zero);
    }
}

static float gaussian(uint64_t *seed) {
    float sum = -6.0f;
    for (int i = 0; i < 12; i++) {
        *seed = *seed * 6364136223846793005u + 1442695040888963407u;
        sum += (float)(*seed >> 40) * 0x1p-24f;
    }
    return sum;
}

static void test_percentile_leaves_out_both_ends(void **state) {
    enum { N = 100000 };
    struct rfx_value_counts counts = none();
    struct rfx_range_request request = minmax;
    (void)state;
    for (int i = 0; i < N; i++) { /* -1 ... 1, evenly */
        float value = -1.0f + 2.0f * (float)i / (float)(N - 1);
        assert_true(rfx_value_counts_add(&counts, &value, 1));
    }
    request.method = RFX_RANGE_PERCENTILE;
    for (double percentile = 60.0; percentile < 100.0; percentile += 7.0) {
        request.percentile = percentile;
        struct rfx_value_range r = rfx_range_of(&counts, &request);
        double wanted = percentile / 100.0; /* to the width of a bin */
        assert_true(fabs((double)r.hi - wanted) < 0.02 && fabs((double)r.lo + wanted) < 0.02);
        assert_true((double)r.hi >= wanted - 1e-4 && (double)r.lo <= -wanted + 1e-4);
    }
    request.percentile = 100.0;
    struct rfx_value_range all = rfx_range_of(&counts, &request);
    assert_true(all.lo == -1.0f && all.hi == 1.0f);
}

static void test_entropy_cuts_outliers_and_keeps_even_values(void **state) {
    enum { N = 200000 };
    struct rfx_value_counts counts = none();
    struct rfx_range_request request = minmax;
    uint64_t seed = 3;
    (void)state;
    request.method = RFX_RANGE_ENTROPY;
    for (int i = 0; i < N; i++) {
        float value = gaussian(&seed);
        assert_true(rfx_value_counts_add(&counts, &value, 1));
    }
    const float outlier = 30.0f;
    assert_true(rfx_value_counts_add(&counts, &outlier, 1));
    struct rfx_value_range r = rfx_range_of(&counts, &request);
    assert_true(r.hi > 2.5f && r.hi < 8.0f && r.lo < -2.5f);

    counts = none();
    for (int i = 0; i <= 255; i++) {
        float value = (float)i;
        assert_true(rfx_value_counts_add(&counts, &value, 1));
    }
    r = rfx_range_of(&counts, &request);
    assert_true(r.lo == 0.0f && r.hi == 255.0f && r.scale == 1.0f);
}

/* The order and the pieces in which values come do not matter. */
static void test_counts_of_pieces_are_those_of_the_whole(void **state) {
    enum { N = 5000 };
    static uint64_t whole[RFX_VALUE_BINS];
    static float values[N];
    struct rfx_value_counts counts = none();
    uint64_t seed = 11;
    (void)state;
    for (int i = 0; i < N; i++) values[i] = gaussian(&seed);
    assert_true(rfx_value_counts_add(&counts, values, N));
    const struct rfx_value_counts all = counts;
    memcpy(whole, bins, sizeof bins);
    counts = none();
    for (int at = N; at > 0;) {
        int n = at < 7 ? at : 1 + at % 7;
        at -= n;
        assert_true(rfx_value_counts_add(&counts, values + at, n));
    }
    assert_memory_equal(whole, bins, sizeof bins);
    assert_true(counts.n == all.n && counts.lo == all.lo && counts.hi == all.hi);
}

/* Signal and noise of values for which both are known. */
static void test_noise(void **state) {
    static const struct rfx_range_request wide = {.method = RFX_RANGE_MINMAX,
                                                  .type = RFX_TYPE_INT8};
    static float even[100000];
    const float small = 0.25f, large[4] = {0.0f, 10.0f, 20.0f, 20.0f}, limits[2] = {0.0f, 255.0f};
    (void)state;
    struct rfx_value_counts counts = none();
    assert_true(rfx_value_counts_add(&counts, limits, 2));
    const struct rfx_value_range bytes = rfx_range_of(&counts, &minmax); /* scale 1 */
    counts = none();
    assert_true(rfx_value_counts_add(&counts, &limits[1], 1));
    struct rfx_noise noise = rfx_range_noise(&counts, &bytes, RFX_TYPE_UINT8);
    assert_true(noise.signal == 255.0 * 255.0 && noise.noise == 0.0);
    const struct rfx_noise silent = {1.0, 0.0}, lost = {0.0, 1.0};
    assert_true(rfx_noise_db(&silent) == INFINITY && rfx_noise_db(&lost) == -INFINITY);

    /* Rounded to 0: the noise is the signal. */
    counts = none();
    assert_true(rfx_value_counts_add(&counts, &small, 1));
    noise = rfx_range_noise(&counts, &bytes, RFX_TYPE_UINT8);
    assert_true(noise.signal == 0.0625 && noise.noise == 0.0625 && rfx_noise_db(&noise) == 0.0);

    /* Even numbers: 255^2 / 3 beside a step's 1 / 12. */
    counts = none();
    for (int i = 0; i < 100000; i++) even[i] = (float)i * 0.00255f;
    assert_true(rfx_value_counts_add(&counts, even, 100000));
    noise = rfx_range_noise(&counts, &bytes, RFX_TYPE_UINT8);
    assert_true(fabs(rfx_noise_db(&noise) - 10.0 * log10(255.0 * 255.0 / 3.0 * 12.0)) < 0.1);
    const struct rfx_value_range chars = rfx_range_of(&counts, &wide); /* -128 is 0 */
    const struct rfx_noise other = rfx_range_noise(&counts, &chars, RFX_TYPE_INT8);
    assert_true(fabs(rfx_noise_db(&other) - rfx_noise_db(&noise)) < 0.1);

    /* Cut off at 10: of the squares 100, 400 and 400, the noise is 0, 100 and 100. */
    counts = none();
    assert_true(rfx_value_counts_add(&counts, large, 4));
    struct rfx_value_range cut = bytes;
    cut.scale = 10.0f / 255.0f;
    noise = rfx_range_noise(&counts, &cut, RFX_TYPE_UINT8);
    assert_true(fabs(noise.signal - 900.0) < 3.0 && fabs(noise.noise - 200.0) < 2.0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_value_lies_in_its_bin),
        cmocka_unit_test(test_bins_follow_each_other),
        cmocka_unit_test(test_numbers_that_are_not_finite_are_refused_and_not_counted),
        cmocka_unit_test(test_scale_and_zero_point),
        cmocka_unit_test(test_percentile_leaves_out_both_ends),
        cmocka_unit_test(test_entropy_cuts_outliers_and_keeps_even_values),
        cmocka_unit_test(test_counts_of_pieces_are_those_of_the_whole),
        cmocka_unit_test(test_noise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
