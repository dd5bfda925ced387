/* Quantiles of the channels of maps, against values that are sorted; failing allocations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rfexec/answers/value_quantiles.h"
#include "tests/support/test_util.h"

#define PATH "test_value_quantiles.out"

static int compare(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* The quantile of n values, which are sorted here. */
static double reference(float *values, int64_t n, double q) {
    qsort(values, (size_t)n, sizeof *values, compare);
    double at = q * (double)(n - 1), share = at - floor(at);
    int64_t low = (int64_t)floor(at), high = low + 1 < n ? low + 1 : low;
    double a = (double)values[low], b = (double)values[high];
    if (a == b || share == 0) return a;
    return share >= 0.5 ? b - (b - a) * (1 - share) : a + (b - a) * share;
}

static float draw(struct test_rng *rng) {
    static const float special[] = {0,         -0.0F,      INFINITY, -INFINITY,
                                    0x1p-149F, -0x1p-149F, 0x1p127F, 1};
    if (test_rng_chance(rng, 10)) return special[test_rng_int(rng, 0, 7)];
    if (test_rng_chance(rng, 10)) return NAN;
    if (test_rng_chance(rng, 50)) return (float)test_rng_int(rng, -3, 3);
    return test_rng_float(rng, -1, 1) * ldexpf(1, (int)test_rng_int(rng, -60, 60));
}

/* found may not be -0. */
static bool same(double found, double want) {
    if (found == 0 && signbit(found)) return false;
    return found == want || (isnan(found) && isnan(want));
}

static void check_map(struct test_rng *rng) {
    const struct rfx_tensor map = rfx_tensor_nhwc(test_rng_int(rng, 1, 4), test_rng_int(rng, 1, 30),
                                                  test_rng_int(rng, 1, 30));
    struct rfx_answer_quantiles list = {.n = (int)test_rng_int(rng, 1, RFX_ANSWER_MOST_QUANTILES)};
    for (int k = 0; k < list.n; k++)
        list.at[k] = test_rng_chance(rng, 20) ? (double)test_rng_int(rng, 0, 2) / 2
                                              : (double)test_rng_float(rng, 0, 1);
    int64_t pixels = map.h * map.w;
    float *values = test_floats(pixels * map.c), *one = test_floats(pixels);
    for (int64_t i = 0; i < pixels * map.c; i++) values[i] = draw(rng);
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_value_quantiles *quantiles = NULL;
    struct rfx_error err = {{0}};
    assert_int_equal(rfx_value_quantiles_create(mem, PATH, &list, &map, &quantiles, &err), RFX_OK);
    assert_true(rfx_memory_high_water_bytes(mem) <= rfx_value_quantiles_bytes(&list, &map));
    for (int64_t y = 0; y < map.h; y++)
        assert_int_equal(rfx_value_quantiles_row(quantiles, values + y * map.w * map.c, &err),
                         RFX_OK);
    assert_int_equal(rfx_value_quantiles_find(quantiles, &err), RFX_OK);
    for (int64_t c = 0; c < map.c; c++) {
        int64_t n = 0;
        for (int64_t i = 0; i < pixels; i++)
            if (!isnan(values[i * map.c + c])) one[n++] = values[i * map.c + c];
        for (int k = 0; k < list.n; k++) {
            double want = n > 0 ? reference(one, n, list.at[k]) : NAN;
            double found = rfx_value_quantile(quantiles, c, k);
            if (!same(found, want))
                fail_msg("quantile %g of %d values: %g, not %g", list.at[k], (int)n, found, want);
        }
    }
    rfx_value_quantiles_free(quantiles);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
    free(values);
    free(one);
}

static void random_maps_as_sorted(void **state) {
    struct test_rng rng = test_rng_make(50);
    (void)state;
    for (int64_t i = 0; i < test_env_int("RFX_CASES", 1000); i++) check_map(&rng);
}

static enum rfx_status build(struct rfx_memory *mem, void *context, struct rfx_error *err) {
    const struct rfx_tensor map = rfx_tensor_nhwc(2, 3, 4);
    struct rfx_value_quantiles *quantiles = NULL;
    enum rfx_status status = rfx_value_quantiles_create(mem, PATH, context, &map, &quantiles, err);
    rfx_value_quantiles_free(quantiles);
    return status;
}

static void every_failing_allocation_is_reported(void **state) {
    struct rfx_answer_quantiles list = {1, {0.5}};
    (void)state;
    assert_true(test_fail_each_allocation(build, &list) >= 7);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_maps_as_sorted),
        cmocka_unit_test(every_failing_allocation_is_reported),
    };
    return cmocka_run_group_tests_name("value quantiles", tests, NULL, NULL);
}
