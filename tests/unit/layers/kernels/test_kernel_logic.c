/* Activations with numbers of their own, remainders, comparisons and logic: every instruction set
 * of this processor against libm in double and against rules written down by hand. */
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

static const char *const variants[] = {"base", "avx2", "avx512", "neon"};

#define FOR_EACH_VARIANT(k)                                              \
    for (size_t v_ = 0; v_ < sizeof variants / sizeof variants[0]; v_++) \
        for (const struct rfx_kernels *k = rfx_kernels_find(variants[v_]); k != NULL; k = NULL)

static double exact(const struct rfx_act *act, double x) {
    double a = (double)act->alpha, b = (double)act->beta;
    if (act->kind == RFX_ACT_SELU) return b * (x < 0.0 ? a * expm1(x) : x);
    if (act->kind == RFX_ACT_CELU) return x < 0.0 ? a * expm1(x / a) : x;
    if (act->kind == RFX_ACT_SOFTSIGN) return x / (1.0 + fabs(x));
    if (act->kind == RFX_ACT_SHRINK) return x < -a ? x + b : x > a ? x - b : 0.0;
    return x > a ? x : 0.0; /* thresholded */
}

/* In units in the last place of the exact value. */
static void test_accuracy(void **state) {
    (void)state;
    enum { COUNT = 20001 };
    static const struct {
        struct rfx_act act;
        float lo, hi;
        double ulps;
    } cases[] = {
        {{RFX_ACT_SELU, 1.67326324f, 1.05070102f, -1}, -20.0f, 5.0f, 5.0},
        {{RFX_ACT_SELU, 1.67326324f, 1.05070102f, -1}, -1e-3f, 1e-3f, 3.0},
        {{RFX_ACT_CELU, 1.0f, 0.0f, -1}, -20.0f, 5.0f, 4.0},
        {{RFX_ACT_CELU, 2.5f, 0.0f, -1}, -20.0f, 5.0f, 5.0},
        {{RFX_ACT_CELU, 0.3f, 0.0f, -1}, -6.0f, 1.0f, 6.0},
        {{RFX_ACT_SOFTSIGN, 0.0f, 0.0f, -1}, -100.0f, 100.0f, 1.5},
        {{RFX_ACT_SOFTSIGN, 0.0f, 0.0f, -1}, -1e-3f, 1e-3f, 1.5},
        {{RFX_ACT_SHRINK, 0.75f, 0.25f, -1}, -3.0f, 3.0f, 0.5},
        {{RFX_ACT_THRESHOLDED_RELU, 0.625f, 0.0f, -1}, -3.0f, 3.0f, 0.0},
    };
    float *x = test_floats(COUNT), *y = test_floats(COUNT);
    FOR_EACH_VARIANT(k) {
        for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
            for (int i = 0; i < COUNT; i++)
                x[i] = cases[c].lo + (cases[c].hi - cases[c].lo) * (float)i / (float)(COUNT - 1);
            k->act(&cases[c].act, NULL, x, y, 1, COUNT);
            for (int i = 0; i < COUNT; i++) {
                double want = exact(&cases[c].act, (double)x[i]), off;
                float near = fabsf((float)want);
                off = fabs((double)y[i] - want) / (double)(nextafterf(near, INFINITY) - near);
                if (!(off <= cases[c].ulps))
                    fail_msg("%s: case %d at %.9g: %.9g is %g ulp off", k->name, (int)c,
                             (double)x[i], (double)y[i], off);
            }
        }
    }
    free(y);
    free(x);
}

/* By hand: ends of the number line, zeros of both signs, NaN, and thresholds themselves. */
static void test_special_values(void **state) {
    (void)state;
    static const float x[8] = {-INFINITY, INFINITY, NAN, -0.0f, 0.0f, 0.5f, -0.5f, 0x1p-140f};
    static const struct {
        struct rfx_act act;
        float want[8];
    } cases[] = {
        {{RFX_ACT_SELU, 2.0f, 3.0f, -1},
         {-6.0f, INFINITY, NAN, -0.0f, 0.0f, 1.5f, NAN, 0x1.8p-139f}},
        {{RFX_ACT_CELU, 2.0f, 0.0f, -1}, {-2.0f, INFINITY, NAN, -0.0f, 0.0f, 0.5f, NAN, 0x1p-140f}},
        {{RFX_ACT_THRESHOLDED_RELU, 0.5f, 0.0f, -1},
         {0.0f, INFINITY, NAN, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f}},
        {{RFX_ACT_THRESHOLDED_RELU, -0.5f, 0.0f, -1},
         {0.0f, INFINITY, NAN, -0.0f, 0.0f, 0.5f, 0.0f, 0x1p-140f}},
        {{RFX_ACT_SHRINK, 0.5f, 0.125f, -1},
         {-INFINITY, INFINITY, NAN, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f}},
        {{RFX_ACT_SHRINK, 0.25f, 0.125f, -1},
         {-INFINITY, INFINITY, NAN, 0.0f, 0.0f, 0.375f, -0.375f, 0.0f}},
        {{RFX_ACT_SOFTSIGN, 0.0f, 0.0f, -1},
         {NAN, NAN, NAN, -0.0f, 0.0f, 0.333333343f, -0.333333343f, 0x1p-140f}},
        {{RFX_ACT_NOT, 0.0f, 0.0f, -1}, {0.0f, 0.0f, 0.0f, 1.0f, 1.0f, 0.0f, 0.0f, 0.0f}},
    };
    FOR_EACH_VARIANT(k) {
        for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
            float y[8];
            k->act(&cases[c].act, NULL, x, y, 1, 8);
            bool exponential = c < 2; /* at -0.5: test_accuracy */
            for (int i = 0; i < 8; i++) {
                if (exponential && i == 6) continue;
                bool same = isnan(cases[c].want[i]) ? isnan(y[i])
                                                    : memcmp(&y[i], &cases[c].want[i], 4) == 0;
                if (!same)
                    fail_msg("%s: case %d at %g: %g", k->name, (int)c, (double)x[i], (double)y[i]);
            }
        }
    }
}

static const float values[] = {0.0f, -0.0f, 1.0f, -1.0f, 2.5f, 1e-40f, INFINITY, -INFINITY, NAN};
enum { N = sizeof values / sizeof values[0] };

/* 1 where the numbers of a pair compare so, else 0; nothing compares with a NaN. */
static bool holds(enum rfx_binary_kind kind, float a, float b) {
    static const int rank[N] = {3, 3, 5, 1, 6, 4, 7, 0, -1}; /* of `values` on the number line */
    int ra = -1, rb = -1;
    for (int i = 0; i < N; i++) {
        if (memcmp(&values[i], &a, sizeof a) == 0) ra = rank[i];
        if (memcmp(&values[i], &b, sizeof b) == 0) rb = rank[i];
    }
    bool numbers = ra >= 0 && rb >= 0, ta = ra != 3, tb = rb != 3;
    switch ((int)kind) {
        case RFX_BINARY_GREATER:
            return numbers && ra > rb;
        case RFX_BINARY_GREATER_OR_EQUAL:
            return numbers && ra >= rb;
        case RFX_BINARY_LESS:
            return numbers && ra < rb;
        case RFX_BINARY_LESS_OR_EQUAL:
            return numbers && ra <= rb;
        case RFX_BINARY_EQUAL:
            return numbers && ra == rb;
        case RFX_BINARY_AND:
            return ta && tb;
        case RFX_BINARY_OR:
            return ta || tb;
        default:
            return ta != tb; /* XOR */
    }
}

static void test_pairs(void **state) {
    (void)state;
    float a[N * N], b[N * N], y[N * N];
    for (int i = 0; i < N * N; i++) {
        a[i] = values[i / N];
        b[i] = values[i % N];
    }
    FOR_EACH_VARIANT(k) {
        for (int kind = RFX_BINARY_GREATER; kind <= RFX_BINARY_XOR; kind++) {
            k->binary((enum rfx_binary_kind)kind, a, 1, b, 1, y, N * N);
            for (int i = 0; i < N * N; i++) {
                float want = holds((enum rfx_binary_kind)kind, a[i], b[i]) ? 1.0f : 0.0f;
                if (memcmp(&y[i], &want, sizeof want) != 0)
                    fail_msg("%s: kind %d of %g and %g: %g", k->name, kind, (double)a[i],
                             (double)b[i], (double)y[i]);
            }
        }
    }
}

/* (b where a holds) + (c where it does not) is one of the two, bit by bit; NaN holds. */
static void test_choice(void **state) {
    (void)state;
    FOR_EACH_VARIANT(k) {
        for (int i = 0; i < N * N * N; i++) {
            float a = values[i / N / N], b = values[i / N % N], c = values[i % N], y[3];
            k->binary(RFX_BINARY_IF, &a, 1, &b, 1, &y[0], 1);
            k->binary(RFX_BINARY_UNLESS, &a, 1, &c, 1, &y[1], 1);
            k->binary(RFX_BINARY_ADD, &y[0], 1, &y[1], 1, &y[2], 1);
            float want = a == 0.0f ? c : b;
            if (isnan(want) ? !isnan(y[2]) : memcmp(&y[2], &want, sizeof want) != 0)
                fail_msg("%s: %g ? %g : %g gives %g", k->name, (double)a, (double)b, (double)c,
                         (double)y[2]);
        }
    }
}

/* A remainder is exact, so that of doubles is the same number. */
static void test_remainder(void **state) {
    (void)state;
    enum { COUNT = 20000 };
    float *a = test_floats(COUNT), *b = test_floats(COUNT), *y = test_floats(COUNT);
    struct test_rng rng = test_rng_make(3);
    test_rng_fill(&rng, a, COUNT, -100.0f, 100.0f);
    test_rng_fill(&rng, b, COUNT, -3.0f, 3.0f);
    a[0] = -6.0f; /* -0 */
    b[0] = 3.0f;
    a[1] = 1e30f;
    b[2] = 0.0f;
    a[3] = INFINITY;
    b[4] = -INFINITY;
    FOR_EACH_VARIANT(k) {
        k->binary(RFX_BINARY_MOD, a, 1, b, 1, y, COUNT);
        for (int i = 0; i < COUNT; i++) {
            float want = (float)fmod((double)a[i], (double)b[i]);
            if (isnan(want) ? !isnan(y[i]) : memcmp(&y[i], &want, sizeof want) != 0)
                fail_msg("%s: %.9g mod %.9g: %.9g", k->name, (double)a[i], (double)b[i],
                         (double)y[i]);
        }
        assert_true(y[0] == 0.0f && signbit(y[0]) && isnan(y[2]) && isnan(y[3]) && y[4] == a[4]);
    }
    free(y);
    free(b);
    free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accuracy),  cmocka_unit_test(test_special_values),
        cmocka_unit_test(test_pairs),     cmocka_unit_test(test_choice),
        cmocka_unit_test(test_remainder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
