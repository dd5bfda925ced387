/* The pool kernel of every instruction set this processor has, bit by bit: the largest value or the
 * mean of windows of any shape and number of channels, in one call and in several, with NaN and
 * both zeros among the values. */
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
// clang-format on

#include "layers/kernels/kernels.h"
#include "tests/support/test_util.h"

enum { MOST_ROWS = 9, MOST_CHANNELS = 150 };

static const char *const variants[] = {"base", "avx2", "avx512", "neon"};

/* The rule in scalars: rows, then columns. */
static float value_of(const struct rfx_pool_args *r, int64_t c) {
    float value = r->maximum ? -INFINITY : 0.0f;
    for (int64_t y = 0; y < r->n_rows; y++)
        for (int64_t i = 0; i < r->n_cols; i++) {
            float x = r->rows[y][i * r->col_step + c];
            if (!r->maximum)
                value = value + x;
            else if (x > value || x != x)
                value = x;
        }
    return r->maximum ? value : value / r->count;
}

static void fill(struct test_rng *rng, float *x, int64_t n) {
    static const float odd[] = {NAN, -0.0f, 0.0f, -INFINITY, INFINITY};
    for (int64_t i = 0; i < n; i++) {
        x[i] = (float)test_rng_int(rng, -50, 50) / 7.0f;
        if (test_rng_chance(rng, 5)) x[i] = odd[test_rng_int(rng, 0, 4)];
    }
}

static void expect_same(const struct rfx_kernels *k, const struct rfx_pool_args *r, uint64_t seed) {
    for (int64_t c = 0; c < r->c; c++) {
        float want = value_of(r, c);
        bool both_nan = isnan(want) && isnan(r->out[c]); /* of sums the processor picks which */
        if (memcmp(&want, &r->out[c], sizeof want) != 0 && (r->maximum || !both_nan))
            fail_msg("%s, seed %llu: channel %lld of %lld is %g, not %g", k->name,
                     (unsigned long long)seed, (long long)c, (long long)r->c, (double)r->out[c],
                     (double)want);
    }
    assert_true(r->out[r->c] == 1234.0f);
}

/* The rows [0, cut) in one call, the others in a second one. */
static void run_in_two(const struct rfx_kernels *k, struct rfx_pool_args r, int64_t cut) {
    int64_t rows = r.n_rows;
    r.n_rows = cut;
    r.goes_on = true;
    k->pool(&r);
    r.rows += cut;
    r.n_rows = rows - cut;
    r.begun = true;
    r.goes_on = false;
    k->pool(&r);
}

static void check(const struct rfx_kernels *k, uint64_t seed) {
    struct test_rng rng = test_rng_make(seed);
    const float *rows[MOST_ROWS];
    float out[MOST_CHANNELS + 1];
    struct rfx_pool_args r = {
        .rows = rows,
        .n_rows = test_rng_int(&rng, 0, MOST_ROWS),
        .n_cols = test_rng_int(&rng, 1, 6),
        .out = out,
        .c = test_rng_int(&rng, 1, MOST_CHANNELS),
        .maximum = test_rng_chance(&rng, 50),
        .count = (float)test_rng_int(&rng, 1, 30),
    };
    r.col_step = r.c + test_rng_int(&rng, 0, 5);
    int64_t row = r.n_cols * r.col_step;
    float *x = test_floats(MOST_ROWS * row);
    fill(&rng, x, MOST_ROWS * row);
    for (int64_t y = 0; y < MOST_ROWS; y++) rows[y] = x + (y * 4 % MOST_ROWS) * row;
    out[r.c] = 1234.0f;
    k->pool(&r);
    expect_same(k, &r, seed);
    for (int64_t c = 0; c < r.c; c++) out[c] = 99.0f;
    run_in_two(k, r, test_rng_int(&rng, 0, r.n_rows));
    expect_same(k, &r, seed);
    free(x);
}

static void test_windows(void **state) {
    (void)state;
    for (size_t v = 0; v < sizeof variants / sizeof *variants; v++) {
        const struct rfx_kernels *k = rfx_kernels_find(variants[v]);
        for (uint64_t seed = 0; k != NULL && seed < 400; seed++) check(k, seed);
    }
}

/* A row of the windows of some pixels of bytes, taken in whole or in two calls. */
static void check_bytes(const struct rfx_byte_kernels *k, bool is_signed, uint64_t seed) {
    enum { MOST_PIXELS = 5, ROW = (6 + 3 * MOST_PIXELS) * (MOST_CHANNELS + 40) };
    struct test_rng rng = test_rng_make(seed);
    unsigned char x[ROW], out[MOST_PIXELS * (MOST_CHANNELS + 9) + 1];
    struct rfx_byte_pool_args r = {.row = x,
                                   .out = out,
                                   .n_cols = test_rng_int(&rng, 0, 6),
                                   .c = test_rng_int(&rng, 1, MOST_CHANNELS),
                                   .pixels = test_rng_int(&rng, 1, MOST_PIXELS)};
    r.col_step = r.c + test_rng_int(&rng, 0, 40);
    r.x_step = r.col_step * test_rng_int(&rng, 1, 3);
    r.out_step = r.c + test_rng_int(&rng, 0, 9);
    for (size_t i = 0; i < sizeof x; i++) x[i] = (unsigned char)test_rng_int(&rng, 0, 255);
    memset(out, 77, sizeof out);
    int64_t cols = r.n_cols, cut = test_rng_int(&rng, 0, cols);
    r.n_cols = cut;
    k->pool_max(&r);
    r.row = x + cut * r.col_step;
    r.n_cols = cols - cut;
    r.begun = true;
    k->pool_max(&r);
    for (int64_t at = 0; at < (int64_t)sizeof out; at++) {
        int64_t p = at / r.out_step, c = at % r.out_step;
        int want = is_signed ? INT8_MIN : 0;
        for (int64_t i = 0; i < cols && p < r.pixels && c < r.c; i++) {
            unsigned char byte = x[p * r.x_step + i * r.col_step + c];
            int value = is_signed ? (int8_t)byte : byte;
            if (value > want) want = value;
        }
        if (p >= r.pixels || c >= r.c) want = 77;
        assert_int_equal(is_signed ? (int8_t)out[at] : out[at], want);
    }
}

static void test_bytes(void **state) {
    (void)state;
    for (size_t v = 0; v < sizeof variants / sizeof *variants; v++) {
        const struct rfx_kernels *k = rfx_kernels_find(variants[v]);
        for (uint64_t seed = 0; k != NULL && seed < 400; seed++)
            check_bytes(seed % 2 == 0 ? &k->u8 : &k->i8, seed % 2 != 0, seed);
    }
    assert_ptr_equal(rfx_kernels_of_bytes(RFX_TYPE_UINT8), &rfx_kernels()->u8);
    assert_ptr_equal(rfx_kernels_of_bytes(RFX_TYPE_INT8), &rfx_kernels()->i8);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_windows),
                                       cmocka_unit_test(test_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
