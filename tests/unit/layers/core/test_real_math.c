/* Own elementary functions in double against libm in long double: the errors that the header
 * states, special values, and powers that must be exact. */
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <float.h>
#include <math.h>
#include <string.h>
#include <cmocka.h>
// clang-format on

#include "layers/core/real_math.h"
#include "tests/support/test_util.h"

enum { COUNT = 60000 };

static double uniform(struct test_rng *rng, double lo, double hi) {
    return lo + (hi - lo) * ((double)(test_rng_next(rng) >> 11) * 0x1p-53);
}

static double ulps_off(double got, long double exact) {
    double nearest = fabs((double)exact);
    double unit = nearest < DBL_MIN ? 0x1p-1074 : nextafter(nearest, (double)INFINITY) - nearest;
    return (double)(fabsl((long double)got - exact) / (long double)unit);
}

static void check(const char *name, double x, double got, long double exact, double allowed) {
    double off = ulps_off(got, exact);
    if (!(off <= allowed)) fail_msg("%s(%.17g): %.17g is %g units off", name, x, got, off);
}

static void test_accuracy(void **state) {
    (void)state;
    struct test_rng rng = test_rng_make(3);
    for (int i = 0; i < COUNT; i++) {
        double x = uniform(&rng, -708.0, 709.7), small = uniform(&rng, -1.0, 1.0);
        double positive = rfx_exp(x);
        check("exp", x, positive, expl((long double)x), 1.5);
        check("exp", small, rfx_exp(small), expl((long double)small), 1.5);
        check("log", positive, rfx_log(positive), logl((long double)positive), 1.5);
        check("log", 1.0 + 0.5 * small, rfx_log(1.0 + 0.5 * small),
              logl((long double)(1.0 + 0.5 * small)), 1.5);
        check("tanh", 3.0 * small, rfx_tanh(3.0 * small), tanhl((long double)(3.0 * small)), 5.0);
        check("tanh", 1e-3 * small, rfx_tanh(1e-3 * small), tanhl((long double)(1e-3 * small)),
              5.0);
        check("tanh", 0.03 * x, rfx_tanh(0.03 * x), tanhl((long double)(0.03 * x)), 5.0);
        double below = uniform(&rng, -745.0, -708.0);
        check("exp", below, rfx_exp(below), expl((long double)below), 2.0);
        check("log", rfx_exp(below), rfx_log(rfx_exp(below)), logl((long double)rfx_exp(below)),
              1.5);
    }
}

static void test_special_values(void **state) {
    (void)state;
    const double inf = (double)INFINITY;
    assert_true(rfx_exp(inf) == inf && rfx_exp(-inf) == 0.0 && rfx_exp(0.0) == 1.0);
    assert_true(rfx_exp(709.8) == inf && rfx_exp(-745.2) == 0.0 && rfx_exp(-745.1) == 0x1p-1074);
    assert_true(isnan(rfx_exp((double)NAN)) && isnan(rfx_log((double)NAN)));
    assert_true(rfx_log(0.0) == -inf && rfx_log(-0.0) == -inf && rfx_log(inf) == inf);
    assert_true(isnan(rfx_log(-1.0)) && rfx_log(1.0) == 0.0);
    assert_true(rfx_tanh(inf) == 1.0 && rfx_tanh(-inf) == -1.0 && isnan(rfx_tanh((double)NAN)));
    assert_true(signbit(rfx_tanh(-0.0)) && !signbit(rfx_tanh(0.0)));
}

static void test_pow_exact(void **state) {
    (void)state;
    assert_true(rfx_pow(10.0, 15.0) == 1e15 && rfx_pow(2.0, -10.0) == 0x1p-10);
    assert_true(rfx_pow(-3.0, 3.0) == -27.0 && rfx_pow(-3.0, 4.0) == 81.0);
    assert_true(rfx_pow(2.0, 0.5) == sqrt(2.0) && rfx_pow(7.0, 2.0) == 49.0);
}

static void test_pow_accuracy(void **state) {
    (void)state;
    struct test_rng rng = test_rng_make(4);
    for (int i = 0; i < COUNT; i++) {
        double x = rfx_exp(uniform(&rng, -5.0, 8.0)), y = uniform(&rng, -40.0, 40.0);
        double allowed = 1.5 + 3.0 * fabs(y * log(x));
        check("pow", x, rfx_pow(x, y), powl((long double)x, (long double)y), allowed);
        double whole = (double)test_rng_int(&rng, -64, 64);
        check("pow", x, rfx_pow(x, whole), powl((long double)x, (long double)whole), 130.0);
    }
}

/* Bit by bit as libm where Annex F leaves no choice: all pairs of special values. */
static void test_pow_special_values(void **state) {
    (void)state;
    const double values[] = {0.0,   1.0,    0.5,    2.0,     3.0,    -0.0,     -1.0,
                             -0.5,  -2.0,   -3.0,   2.5,     -2.5,   0x1p53,   0x1p54,
                             1e300, -1e300, 1e-310, -0x1p60, 1e-300, INFINITY, -INFINITY};
    enum { N = sizeof values / sizeof values[0] };
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < N; k++) {
            double x = values[i], y = values[k], want = pow(x, y), got = rfx_pow(x, y);
            if (isnan(want) ? !isnan(got)
                            : (signbit(want) != 0) != (signbit(got) != 0) ||
                                  !(got == want || fabs(got - want) < 1e-12 * fabs(want)))
                fail_msg("pow(%g, %g): %g, not %g", x, y, got, want);
        }
        assert_true(isnan(rfx_pow(values[i], (double)NAN)) == (values[i] != 1.0));
        assert_true(isnan(rfx_pow((double)NAN, values[i])) == (values[i] != 0.0));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accuracy),           cmocka_unit_test(test_special_values),
        cmocka_unit_test(test_pow_exact),          cmocka_unit_test(test_pow_accuracy),
        cmocka_unit_test(test_pow_special_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
