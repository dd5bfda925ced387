/* The vector kernels of every instruction set this processor has: accuracy of the elementary
 * functions against libm in double, special values, and the same bits for a value at any place. */
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
// clang-format on

#include "layers/kernels/kernels.h"
#include "tests/support/test_util.h"

static const char *const variants[] = {"base", "avx2", "avx512", "neon"};

#define FOR_EACH_VARIANT(k)                                              \
    for (size_t v_ = 0; v_ < sizeof variants / sizeof variants[0]; v_++) \
        for (const struct rfx_kernels *k = rfx_kernels_find(variants[v_]); k != NULL; k = NULL)

static double sigmoid(double x) {
    return 1.0 / (1.0 + exp(-x));
}
static double silu(double x) {
    return x * sigmoid(x);
}
static double softplus(double x) {
    return x > 0.0 ? x + log1p(exp(-x)) : log1p(exp(x));
}
static double elu(double x) {
    return x < 0.0 ? expm1(x) : x;
}

static double sign(double x) {
    return (double)(x > 0.0) - (double)(x < 0.0);
}

struct function {
    enum rfx_act_kind kind;
    double (*exact)(double);
    float lo, hi;
    double ulps; /* allowed */
};

static const struct function functions[] = {
    {RFX_ACT_EXP, exp, -87.0f, 88.7f, 2.0},
    {RFX_ACT_SIGMOID, sigmoid, -80.0f, 80.0f, 4.0},
    {RFX_ACT_SILU, silu, -60.0f, 60.0f, 5.0},
    {RFX_ACT_TANH, tanh, -12.0f, 12.0f, 4.0},
    {RFX_ACT_LOG, log, 1e-30f, 5.0f, 3.0},
    {RFX_ACT_LOG, log, 5.0f, 1e30f, 3.0},
    {RFX_ACT_ELU, elu, -20.0f, 3.0f, 4.0},
    {RFX_ACT_SOFTPLUS, softplus, -30.0f, 30.0f, 4.0},
    {RFX_ACT_ERF, erf, -6.0f, 6.0f, 4.0},
    {RFX_ACT_SQRT, sqrt, 0.0f, 1e6f, 0.5},
    {RFX_ACT_TANH, tanh, -0.01f, 0.01f, 2.0},
    {RFX_ACT_ERF, erf, -1e-3f, 1e-3f, 2.0},
    {RFX_ACT_SIN, sin, -10.0f, 10.0f, 0.51},
    {RFX_ACT_SIN, sin, -1e-3f, 1e-3f, 0.51},
    {RFX_ACT_COS, cos, -10.0f, 10.0f, 0.51},
    {RFX_ACT_ROUND, nearbyint, -50.0f, 50.0f, 0.0},
    {RFX_ACT_SIGN, sign, -2.0f, 2.0f, 0.0},
    {RFX_ACT_EXP, exp, -1e-3f, 1e-3f, 1.5},
    {RFX_ACT_ELU, elu, -1e-3f, 0.0f, 2.0},
    {RFX_ACT_TAN, tan, -10.0f, 10.0f, 0.51},
    {RFX_ACT_TAN, tan, 1.5707f, 1.5709f, 0.51},
    {RFX_ACT_SINH, sinh, -88.0f, 88.0f, 0.51},
    {RFX_ACT_SINH, sinh, -1.5f, 1.5f, 0.51},
    {RFX_ACT_COSH, cosh, -88.0f, 88.0f, 0.51},
    {RFX_ACT_ASIN, asin, -1.0f, 1.0f, 0.51},
    {RFX_ACT_ASIN, asin, -1e-3f, 1e-3f, 0.51},
    {RFX_ACT_ACOS, acos, -1.0f, 1.0f, 0.51},
    {RFX_ACT_ACOS, acos, 0.999f, 1.0f, 0.51},
    {RFX_ACT_ATAN, atan, -10.0f, 10.0f, 0.51},
    {RFX_ACT_ATAN, atan, -1e5f, 1e5f, 0.51},
    {RFX_ACT_ATAN, atan, -1e-3f, 1e-3f, 0.51},
    {RFX_ACT_ASINH, asinh, -10.0f, 10.0f, 0.51},
    {RFX_ACT_ASINH, asinh, -2e-3f, 2e-3f, 0.51},
    {RFX_ACT_ASINH, asinh, 0.0f, 1e30f, 0.51},
    {RFX_ACT_ACOSH, acosh, 1.0f, 3.0f, 0.51},
    {RFX_ACT_ACOSH, acosh, 1.0f, 1.0001f, 0.51},
    {RFX_ACT_ACOSH, acosh, 1.0f, 1e30f, 0.51},
    {RFX_ACT_ATANH, atanh, -0.9999999f, 0.9999999f, 0.51},
    {RFX_ACT_ATANH, atanh, -2e-3f, 2e-3f, 0.51},
};

/* Error in units of the last place of the exact value. */
static double ulps_off(float got, double exact) {
    float nearest = (float)exact;
    double unit = (double)nextafterf(fabsf(nearest), INFINITY) - (double)fabsf(nearest);
    return fabs((double)got - exact) / unit;
}

static void test_accuracy(void **state) {
    (void)state;
    enum { COUNT = 20001 };
    float *x = test_floats(COUNT), *y = test_floats(COUNT);
    FOR_EACH_VARIANT(k) {
        for (size_t f = 0; f < sizeof functions / sizeof functions[0]; f++) {
            const struct function *fn = &functions[f];
            const struct rfx_act act = {fn->kind, 1.0f, 0.0f, -1};
            for (int i = 0; i < COUNT; i++)
                x[i] = fn->lo + (fn->hi - fn->lo) * (float)i / (float)(COUNT - 1);
            k->act(&act, NULL, x, y, 1, COUNT);
            for (int i = 0; i < COUNT; i++) {
                double off = ulps_off(y[i], fn->exact((double)x[i]));
                if (!(off <= fn->ulps))
                    fail_msg("%s: kind %d at %.9g: %.9g is %g ulp off", k->name, (int)fn->kind,
                             (double)x[i], (double)y[i], off);
            }
        }
    }
    free(x);
    free(y);
}

static void test_special_values(void **state) {
    (void)state;
    const float x[4] = {-INFINITY, INFINITY, NAN, -0.0f};
    static const struct {
        enum rfx_act_kind kind;
        float at_minus_inf, at_inf;
    } cases[] = {
        {RFX_ACT_EXP, 0.0f, INFINITY},
        {RFX_ACT_SIGMOID, 0.0f, 1.0f},
        {RFX_ACT_TANH, -1.0f, 1.0f},
        {RFX_ACT_ERF, -1.0f, 1.0f},
        {RFX_ACT_RELU, 0.0f, INFINITY},
        {RFX_ACT_CLIP, -2.0f, 3.0f},
        {RFX_ACT_SOFTPLUS, 0.0f, INFINITY},
        {RFX_ACT_HARD_SIGMOID, 0.0f, 1.0f},
        {RFX_ACT_SIN, NAN, NAN},
        {RFX_ACT_COS, NAN, NAN},
        {RFX_ACT_TAN, NAN, NAN},
        {RFX_ACT_SINH, -INFINITY, INFINITY},
        {RFX_ACT_COSH, INFINITY, INFINITY},
        {RFX_ACT_ASIN, NAN, NAN},
        {RFX_ACT_ACOS, NAN, NAN},
        {RFX_ACT_ATAN, -1.57079637f, 1.57079637f},
        {RFX_ACT_ASINH, -INFINITY, INFINITY},
        {RFX_ACT_ACOSH, NAN, INFINITY},
        {RFX_ACT_ATANH, NAN, NAN},
        {RFX_ACT_ROUND, -INFINITY, INFINITY},
        {RFX_ACT_SIGN, -1.0f, 1.0f},
        {RFX_ACT_LOG, NAN, INFINITY},
        {RFX_ACT_ELU, 2.0f, INFINITY},
    };
    FOR_EACH_VARIANT(k) {
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            const struct rfx_act act = {
                cases[i].kind, cases[i].kind == RFX_ACT_HARD_SIGMOID ? 0.2f : -2.0f, 3.0f, -1};
            float y[4];
            k->act(&act, NULL, x, y, 1, 4);
            if (isnan(cases[i].at_minus_inf)) {
                assert_true(isnan(y[0]));
            } else {
                assert_true(y[0] == cases[i].at_minus_inf);
            }
            assert_true(y[1] == cases[i].at_inf || (isnan(y[1]) && isnan(cases[i].at_inf)));
            assert_true(isnan(y[2]));
        }
        const float edges[4] = {89.0f, -104.5f, 0x1p-149f, 0.0f};
        const struct rfx_act to_exp = {RFX_ACT_EXP, 0, 0, -1}, to_log = {RFX_ACT_LOG, 0, 0, -1};
        float y[4];
        k->act(&to_exp, NULL, edges, y, 1, 4);
        assert_true(y[0] == INFINITY && y[1] == 0.0f && y[3] == 1.0f);
        k->act(&to_log, NULL, edges, y, 1, 4);
        assert_true(fabsf(y[2] + 103.278930f) < 1e-4f && y[3] == -INFINITY);
    }
}

/* Every magnitude, the neighbours of multiples of pi / 2, and the float that is nearest to one of
 * them for its size (Kahan): against libm in double, and the same bits in every variant. */
static void test_angles(void **state) {
    (void)state;
    enum { COUNT = 300000, TURNS = 100000 };
    static const struct function angles[] = {{RFX_ACT_TAN, tan, 0.0f, 0.0f, 0.51},
                                             {RFX_ACT_SIN, sin, 0.0f, 0.0f, 0.51},
                                             {RFX_ACT_COS, cos, 0.0f, 0.0f, 0.51}};
    float *x = test_floats(COUNT), *y = test_floats(COUNT), *first = test_floats(COUNT);
    struct test_rng rng = test_rng_make(5);
    for (int i = 0; i < COUNT; i++) {
        uint32_t bits = (uint32_t)test_rng_int(&rng, 0, 0x7f7fffff);
        float near = (float)(1.5707963267948966 * (double)(i / 3));
        memcpy(&x[i], &bits, sizeof bits);
        if (i < TURNS) x[i] = nextafterf(near, i % 3 == 0 ? 0.0f : i % 3 == 1 ? near : INFINITY);
        if (i % 2 == 1) x[i] = -x[i];
    }
    x[0] = 16367173.0f * 0x1p72f;
    x[1] = 0x1p-149f;
    x[2] = -FLT_MAX;
    for (size_t f = 0; f < sizeof angles / sizeof angles[0]; f++) {
        const struct rfx_act act = {angles[f].kind, 0, 0, -1};
        bool is_first = true;
        FOR_EACH_VARIANT(k) {
            k->act(&act, NULL, x, y, 1, COUNT);
            for (int i = 0; i < COUNT; i++) {
                double off = ulps_off(y[i], angles[f].exact((double)x[i]));
                if (!(off <= angles[f].ulps))
                    fail_msg("%s: kind %d at %.9g: %.9g is %g ulp off", k->name, (int)act.kind,
                             (double)x[i], (double)y[i], off);
            }
            if (is_first) memcpy(first, y, COUNT * sizeof *y);
            assert_memory_equal(first, y, COUNT * sizeof *y);
            is_first = false;
        }
    }
    free(first);
    free(y);
    free(x);
}

/* By hand: halves go to the even neighbour, large values and zeros stay as they are. */
static void test_round_half_to_even(void **state) {
    (void)state;
    enum { COUNT = 12 };
    const float x[COUNT] = {0.5f,  1.5f, 2.5f,        -0.5f,      -1.5f,      -2.5f,
                            0.49f, -0.f, 0.49999997f, 8388607.5f, 16777217.f, -3e30f};
    const float want[COUNT] = {0.f, 2.f,  2.f, -0.f,      -2.f,       -2.f,
                               0.f, -0.f, 0.f, 8388608.f, 16777216.f, -3e30f};
    const struct rfx_act act = {RFX_ACT_ROUND, 0, 0, -1};
    FOR_EACH_VARIANT(k) {
        float y[COUNT];
        k->act(&act, NULL, x, y, 1, COUNT);
        assert_memory_equal(y, want, sizeof y);
        for (int i = 0; i < COUNT; i++) {
            k->act(&act, NULL, x + i, y + i, 1, 1);
            assert_memory_equal(y + i, want + i, sizeof *y);
        }
    }
}

/* One long call against calls of every short length: vector body and remainder must agree. */
static void test_place_does_not_matter(void **state) {
    (void)state;
    enum { COUNT = 67 };
    float x[COUNT], slope[COUNT], whole[COUNT], part[COUNT];
    struct test_rng rng = test_rng_make(11);
    test_rng_fill(&rng, x, COUNT, -4.0f, 4.0f);
    test_rng_fill(&rng, slope, COUNT, -1.0f, 1.0f);
    FOR_EACH_VARIANT(k) {
        for (int kind = 0; kind < RFX_ACT_COUNT; kind++) {
            const struct rfx_act act = {(enum rfx_act_kind)kind, 0.3f, 0.7f, 0};
            k->act(&act, slope, x, whole, 1, COUNT);
            for (int n = 1; n < 20; n++) {
                for (int i = 0; i < COUNT; i += n) {
                    int m = COUNT - i < n ? COUNT - i : n;
                    k->act(&act, slope + i, x + i, part + i, 1, m);
                }
                assert_memory_equal(part, whole, sizeof whole);
            }
            memcpy(part, x, sizeof part); /* in place */
            k->act(&act, slope, part, part, 1, COUNT);
            assert_memory_equal(part, whole, sizeof whole);
        }
    }
}

/* dense: whole against single rows and single outputs, and against a sum in double. */
static void test_dense(void **state) {
    (void)state;
    enum { ROWS = 15, K = 21, M = 151 };
    static float x[ROWS * K], w[K * M], whole[ROWS * M], one[1];
    struct test_rng rng = test_rng_make(5);
    test_rng_fill(&rng, x, ROWS * K, -1.0f, 1.0f);
    test_rng_fill(&rng, w, K * M, -1.0f, 1.0f);
    FOR_EACH_VARIANT(k) {
        memset(whole, 0, sizeof whole);
        struct rfx_dense_args run = {x, w, whole, K, M, M, ROWS, K, M};
        k->dense(&run);
        for (int r = 0; r < ROWS; r++) {
            for (int j = 0; j < M; j++) {
                double sum = 0.0;
                for (int i = 0; i < K; i++) sum += (double)x[r * K + i] * (double)w[i * M + j];
                assert_true(fabs(sum - (double)whole[r * M + j]) < 1e-5);
                one[0] = 0.0f;
                struct rfx_dense_args single = {x + r * K, w + j, one, K, M, M, 1, K, 1};
                k->dense(&single);
                assert_memory_equal(one, &whole[r * M + j], sizeof one);
            }
        }
    }
}

static void test_binary_nan(void **state) {
    (void)state;
    const float a[4] = {NAN, 1.0f, 2.0f, -INFINITY}, b[4] = {1.0f, NAN, 1.0f, 0.0f};
    FOR_EACH_VARIANT(k) {
        float y[4];
        k->binary(RFX_BINARY_MAX, a, 1, b, 1, y, 4);
        assert_true(isnan(y[0]) && isnan(y[1]) && y[2] == 2.0f && y[3] == 0.0f);
        k->binary(RFX_BINARY_MIN, a, 1, b, 1, y, 4);
        assert_true(isnan(y[0]) && isnan(y[1]) && y[2] == 1.0f && y[3] == -INFINITY);
        k->binary(RFX_BINARY_SUB, a + 2, 0, b + 2, 1, y, 2);
        assert_true(y[0] == 1.0f && y[1] == 2.0f);
        k->binary(RFX_BINARY_DIV, a + 1, 1, b + 2, 0, y, 2);
        assert_true(y[0] == 1.0f && y[1] == 2.0f);
    }
}

/* Channels whose taps are all outside the map are their bias, clamped in registers to 0 .. 6: which
 * leaves these alone. */
static void check_clamped_sums(const struct rfx_kernels *k, const float *bias, int n) {
    const float *const outside[1] = {NULL};
    const float weight[80] = {0};
    float y[80];
    const struct rfx_depthwise_args depthwise = {.rows = outside,
                                                 .weights = weight,
                                                 .bias = bias,
                                                 .out = y,
                                                 .pixels = 1,
                                                 .c = n,
                                                 .in_c = n,
                                                 .out_c = n,
                                                 .n_rows = 1,
                                                 .kh = 1,
                                                 .kw = 1,
                                                 .sw = 1,
                                                 .dw = 1,
                                                 .col1 = 1,
                                                 .hi = 6.0f};
    const struct rfx_conv_args conv = {.rows = outside,
                                       .weights = weight,
                                       .bias = bias,
                                       .out = y,
                                       .pixels = 1,
                                       .m = n,
                                       .ic = 1,
                                       .kh = 1,
                                       .kw = 1,
                                       .kx1 = 1,
                                       .hi = 6.0f};
    assert_in_range(n, 1, 80);
    memset(y, 1, sizeof y);
    k->depthwise(&depthwise);
    assert_memory_equal(y, bias, (size_t)n * sizeof *y);
    if (k->conv == NULL) return;
    memset(y, 1, sizeof y);
    k->conv(&conv);
    assert_memory_equal(y, bias, (size_t)n * sizeof *y);
}

/* The rule for zeros and NaN: a bound replaces only what is less or greater, so that -0 passes a
 * bound of +0 and NaN passes all; of two equal operands of max and min the first stays. Everywhere
 * in a vector, in the remainder, and where sums are clamped in registers. */
static void test_zeros_and_nan(void **state) {
    (void)state;
    enum { COUNT = 61 };
    static const struct rfx_act relu = {RFX_ACT_RELU, 0, 0, -1}, clip = {RFX_ACT_CLIP, 0, 6, -1};
    float x[COUNT], zero[COUNT], bias[80], y[COUNT];
    for (int i = 0; i < 80; i++) bias[i] = i % 5 == 3 ? NAN : -0.0f;
    for (int i = 0; i < COUNT; i++) zero[i] = 0.0f;
    memcpy(x, bias, sizeof x);
    const struct rfx_epilogue e = {bias, NULL, &relu, COUNT};
    FOR_EACH_VARIANT(k) {
        k->act(&relu, NULL, x, y, 1, COUNT);
        assert_memory_equal(y, x, sizeof x);
        k->act(&clip, NULL, x, y, 1, COUNT);
        assert_memory_equal(y, x, sizeof x);
        k->epilogue(&e, y, COUNT, NULL, 0, 1); /* -0 + -0 */
        assert_memory_equal(y, x, sizeof x);
        for (int n = 3; n <= COUNT; n += 29) /* fewer than a vector's, and more */
            check_clamped_sums(k, bias, n);
        k->binary(RFX_BINARY_MAX, x, 1, zero, 1, y, COUNT);
        assert_memory_equal(y, x, sizeof x);
        k->binary(RFX_BINARY_MIN, x, 1, zero, 0, y, COUNT);
        assert_memory_equal(y, x, sizeof x);
        k->binary(RFX_BINARY_MAX, zero, 0, x, 1, y, COUNT);
        for (int i = 0; i < COUNT; i++) assert_true(isnan(x[i]) ? isnan(y[i]) : !signbit(y[i]));
        k->binary(RFX_BINARY_MIN, zero, 1, x, 1, y, COUNT);
        for (int i = 0; i < COUNT; i++) assert_true(isnan(x[i]) ? isnan(y[i]) : !signbit(y[i]));
    }
}

/* x^y over all magnitudes against libm in double, and special values in all pairs: bit by bit. */
static void test_pow(void **state) {
    (void)state;
    enum { COUNT = 200000 };
    static const float values[] = {0.0f,        -0.0f,    1.0f,      -1.0f,  0.5f,       -0.5f,
                                   2.0f,        -2.0f,    3.0f,      -3.0f,  2.5f,       -2.5f,
                                   1e-40f,      -1e-40f,  1e30f,     -1e30f, 16777215.f, 16777216.f,
                                   -16777217.f, INFINITY, -INFINITY, NAN};
    enum { N = sizeof values / sizeof values[0] };
    float *x = test_floats(COUNT), *y = test_floats(COUNT), *z = test_floats(COUNT);
    struct test_rng rng = test_rng_make(9);
    for (int i = 0; i < COUNT; i++) {
        uint32_t bits = (uint32_t)test_rng_int(&rng, 1, 0x7f7fffff);
        memcpy(&x[i], &bits, sizeof bits);
        float most = 150.0f / fabsf(log2f(x[i]));
        y[i] = test_rng_float(&rng, -1.0f, 1.0f) * (most < 1e30f ? most : 1.0f);
    }
    for (int i = 0; i < N * N; i++) {
        x[i] = values[i / N];
        y[i] = values[i % N];
    }
    FOR_EACH_VARIANT(k) {
        k->binary(RFX_BINARY_POW, x, 1, y, 1, z, COUNT);
        for (int i = 0; i < COUNT; i++) {
            double exact = pow((double)x[i], (double)y[i]);
            bool same = isnan(exact) ? isnan(z[i]) : (signbit(exact) != 0) == (signbit(z[i]) != 0);
            if (isfinite((float)exact))
                same &= ulps_off(z[i], exact) <= 0.51;
            else if (!isnan(exact))
                same &= isinf(z[i]) != 0;
            if (!same)
                fail_msg("%s: pow(%.9g, %.9g): %.9g, not %.17g", k->name, (double)x[i],
                         (double)y[i], (double)z[i], exact);
        }
        const struct rfx_act cube = {RFX_ACT_POW, 3.0f, 0.0f, -1};
        const float five = -5.0f;
        k->act(&cube, NULL, &five, z, 1, 1);
        assert_true(z[0] == -125.0f);
    }
    free(z);
    free(y);
    free(x);
}

static void test_table(void **state) {
    (void)state;
    assert_true(rfx_kernels_find("base") != NULL || rfx_kernels_find("neon") != NULL);
    assert_null(rfx_kernels_find("nonesuch"));
    assert_ptr_equal(rfx_kernels(), rfx_kernels());
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accuracy),
        cmocka_unit_test(test_angles),
        cmocka_unit_test(test_round_half_to_even),
        cmocka_unit_test(test_special_values),
        cmocka_unit_test(test_dense),
        cmocka_unit_test(test_place_does_not_matter),
        cmocka_unit_test(test_binary_nan),
        cmocka_unit_test(test_zeros_and_nan),
        cmocka_unit_test(test_pow),
        cmocka_unit_test(test_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
