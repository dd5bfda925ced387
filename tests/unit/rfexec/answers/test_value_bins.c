/* Bins of values: ends and edges by hand, and each bin against a comparison with all edges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <string.h>

#include <cmocka.h>

#include "rfexec/answers/value_bins.h"
#include "tests/support/test_util.h"

enum { MOST = 300 };

static void ends_and_edges_by_hand(void **state) {
    (void)state;
    const struct rfx_answer_bins bins = {4, -1, 1};
    static const float values[] = {-INFINITY, -1.5F, -1, -0.5F, -0.25F, -0.0F,
                                   0.5F,      0.75F, 1,  1.5F,  NAN,    INFINITY};
    static const int64_t want[6] = {2, 1, 2, 1, 3, 2};
    int64_t counts[6] = {0};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        rfx_value_count(&bins, values[i], counts);
    assert_memory_equal(counts, want, sizeof want);
    assert_int_equal(rfx_value_counts(&bins), 6);
    assert_true(rfx_value_edge(&bins, 0) == -1 && rfx_value_edge(&bins, 3) == 0.5 &&
                rfx_value_edge(&bins, 4) == 1);
    const struct rfx_answer_bins none = {0};
    assert_int_equal(rfx_value_counts(&none), 0);
    /* 0.3 as a float is above the edge 0.3 of doubles; 0.7 below. */
    const struct rfx_answer_bins tenths = {10, 0, 1};
    int64_t tens[12] = {0};
    rfx_value_count(&tenths, 0.3F, tens);
    rfx_value_count(&tenths, 0.7F, tens);
    assert_true(tens[4] == 1 && tens[7] == 1);
    /* 1 / 49 * 49 is less than 1 in double, and -1e-17 + 1 is 1. */
    const struct rfx_answer_bins prime = {49, 0, 49}, halves = {2, -1, 1};
    int64_t of_prime[51] = {0}, of_halves[4] = {0};
    rfx_value_count(&prime, 1, of_prime);
    rfx_value_count(&halves, -1e-17F, of_halves);
    assert_true(of_prime[2] == 1 && of_halves[1] == 1);
}

/* Values on edges and beside them, where a division alone may miss the bin. */
static void each_value_lies_between_its_edges(void **state) {
    (void)state;
    struct test_rng rng = test_rng_make(30);
    for (int turn = 0; turn < 2000; turn++) {
        int64_t counts[MOST + 2] = {0}, found = -1, want = 0;
        struct rfx_answer_bins bins = {test_rng_int(&rng, 1, MOST),
                                       (double)test_rng_float(&rng, -9, 9), 0};
        bins.high = bins.low + exp((double)test_rng_float(&rng, -12, 12));
        float value = (float)rfx_value_edge(&bins, test_rng_int(&rng, 0, bins.n));
        if (test_rng_chance(&rng, 50))
            value = nextafterf(value, test_rng_chance(&rng, 50) ? 1e9F : -1e9F);
        rfx_value_count(&bins, value, counts);
        while (want <= bins.n && (double)value >= rfx_value_edge(&bins, want)) want++;
        if ((double)value == bins.high) want = bins.n;
        for (int64_t k = 0; k < bins.n + 2; k++) {
            assert_true(counts[k] == 0 || (counts[k] == 1 && found < 0));
            if (counts[k] == 1) found = k;
        }
        if (found != want)
            fail_msg("turn %d: %.9g is in %lld of %lld, not %lld", turn, (double)value,
                     (long long)found, (long long)bins.n, (long long)want);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_and_edges_by_hand),
        cmocka_unit_test(each_value_lies_between_its_edges),
    };
    return cmocka_run_group_tests_name("value bins", tests, NULL, NULL);
}
