/* Softmaxes of rows side by side are those of each row alone, bit by bit. */
#include "layers/ops/softmax.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/test_util.h"

static void rows_are_single_ones(void **state) {
    static const float odd[] = {NAN, INFINITY, -INFINITY, -0.0f, 0.0f, 200.0f};
    struct test_rng rng = test_rng_make(1);
    (void)state;
    for (int64_t rows = 1; rows < 20; rows++)
        for (int64_t n = 1; n < 40; n += 3) {
            float *x = test_floats(rows * n), *want = test_floats(rows * n);
            test_rng_fill(&rng, x, rows * n, -9.0f, 9.0f);
            for (int k = 0; k < 3; k++) /* also first in a row, where the search begins */
                x[test_rng_int(&rng, 0, rows - 1) * n +
                  (k == 0 ? 0 : test_rng_int(&rng, 0, n - 1))] = odd[test_rng_int(&rng, 0, 5)];
            for (int64_t r = 0; r < rows; r++)
                rfx_softmax_values(x + r * n, want + r * n, n, false);
            rfx_softmax_rows(x, rows, n);
            for (int64_t e = 0; e < rows * n; e++) /* of NaN only that it is none */
                if (isnan(x[e]) != isnan(want[e]) ||
                    (!isnan(x[e]) && memcmp(&x[e], &want[e], sizeof *x) != 0))
                    fail_msg("row %lld of %lld, element %lld of %lld", (long long)(e / n),
                             (long long)rows, (long long)(e % n), (long long)n);
            free(x);
            free(want);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_are_single_ones)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
