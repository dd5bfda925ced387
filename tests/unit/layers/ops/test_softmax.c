/* Softmaxes of rows side by side are those of each row alone, bit by bit. */
#include "layers/ops/softmax.h"

#include <float.h>
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

/* Bytes a step of log 2 apart: weights 4, 2 and 1 of 7, in 254ths, since floor(1 / (1 / 255)) is
 * 254 in float32, and in 256ths. */
static void bytes_by_hand(void **state) {
    static const float scale[2] = {1.0f / 255, 1.0f / 256},
                       want[2][3] = {{145, 73, 36}, {146, 73, 37}};
    const float step = logf(2.0f);
    (void)state;
    for (int apart = 1; apart < 4; apart += 2)
        for (int k = 0; k < 2; k++) {
            float x[9] = {0.0f}, out[9] = {0.0f};
            struct rfx_softmax_table room;
            for (int i = 0; i < 3; i++) x[i * apart] = (float)(100 - i) * step;
            rfx_softmax_by_table(
                rfx_softmax_table_of(&room, (struct rfx_softmax_steps){step, scale[k]}, 3), x, out,
                apart);
            assert_float_equal(room.e[255] / (FLT_MAX / 3), expf(-5.0f), 1e-6f);
            for (int i = 0; i < 3; i++) assert_true(out[i * apart] == want[k][i] * scale[k]);
            for (int i = 0; apart == 3 && i < 9; i++) assert_true(i % 3 == 0 || out[i] == 0.0f);
        }
}

/* Values far apart, and such as no bytes give, have no weight, but are no error. */
static void strange_bytes(void **state) {
    static const float odd[] = {NAN, -INFINITY, -1e30f, -300.0f};
    (void)state;
    for (size_t k = 0; k < sizeof odd / sizeof *odd; k++) {
        float x[3] = {1.0f, odd[k], 1.0f};
        struct rfx_softmax_table room;
        rfx_softmax_by_table(
            rfx_softmax_table_of(&room, (struct rfx_softmax_steps){1.0f, 1.0f / 256}, 3), x, x, 1);
        assert_true(x[0] == 0.5f && x[1] == 0.0f && x[2] == 0.5f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_are_single_ones),
                                       cmocka_unit_test(bytes_by_hand),
                                       cmocka_unit_test(strange_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
