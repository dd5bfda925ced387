/* Where the largest and smallest elements are: the order is one for NaN, zeros and equal elements,
 * along any axis, for any number of threads. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/run/op_cases.h"
#include "tests/support/test_net.h"

static struct rfx_tensor plain(int64_t a, int64_t b, int64_t c) {
    return op_case_plain((struct rfx_shape){3, {a, b, c}});
}

static struct rfx_node top(int axis, int64_t k, bool largest) {
    struct rfx_node node = {.op = RFX_OP_TOP_K, .act = {.slope = -1}};
    node.attr.top_k.axis = axis;
    node.attr.top_k.k = k;
    node.attr.top_k.largest = largest;
    return node;
}

/* As ONNX Runtime orders them: a NaN is above all numbers, zeros are equal, the first comes first.
 */
static void test_order(void **state) {
    (void)state;
    static const float line[8] = {1, NAN, 3, 2, NAN, INFINITY, -0.0f, 0};
    static const float places[2][8] = {{6, 7, 0, 3, 2, 5, 1, 4}, {1, 4, 5, 2, 3, 0, 6, 7}};
    for (int64_t k = 1; k <= 8; k++) {
        for (int largest = 0; largest < 2; largest++) {
            struct rfx_tensor in = plain(1, 8, 1);
            struct rfx_node node = top(1, k, largest != 0);
            struct op_case c;
            op_case_begin(&c, 1, &in, 1);
            op_case_set(&c, 0, line);
            assert_int_equal(op_case_add(&c, &node), RFX_OK);
            float *got = op_case_whole(&c);
            for (int64_t i = 0; i < k; i++)
                if (got[i] != places[largest][i])
                    fail_msg("k = %d: place %d is %g", (int)k, (int)i, (double)got[i]);
            free(got);
            op_case_end(&c);
        }
    }
}

/* Few values, so that many are equal, and some NaN. */
static void draw(struct op_case *c, float *values, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        values[i] = test_rng_chance(&c->rng, 3) ? NAN : (float)test_rng_int(&c->rng, -20, 20);
}

static void test_lines(void **state) {
    (void)state;
    static const int64_t sizes[][3] = {{3, 7, 5}, {1, 1, 1}, {2, 700, 3}, {9, 1, 30}};
    for (int i = 0; i < 4 * 6; i++) {
        const int64_t *s = sizes[i / 6];
        struct rfx_tensor in = plain(s[0], s[1], s[2]);
        struct op_case c;
        char what[64];
        int axis = i % 3;
        op_case_begin(&c, 1, &in, (uint64_t)i);
        float *values = test_floats(in.elems);
        draw(&c, values, in.elems);
        op_case_set(&c, 0, values);
        int64_t k = test_rng_int(&c.rng, 1, s[axis]);
        struct rfx_node node = top(axis, k, i % 6 < 3);
        if (op_case_add(&c, &node) != RFX_OK) fail_msg("%s", c.err.text);
        (void)snprintf(what, sizeof what, "case %d, k = %d", i, (int)k);
        op_case_check(&c, 0.0, 3, what);
        free(values);
        op_case_end(&c);
    }
}

static void test_refusals(void **state) {
    (void)state;
    static const struct {
        int axis;
        int64_t k;
        const char *why;
    } cases[] = {{1, 0, "k = 0 of 5 elements"},
                 {1, 6, "k = 6 of 5 elements"},
                 {3, 1, "axis 3 of rank 3"},
                 {-1, 1, "axis -1 of rank 3"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rfx_tensor in = plain(2, 5, 3);
        struct rfx_node node = top(cases[i].axis, cases[i].k, true);
        op_case_refused(&node, 1, &in, cases[i].why);
    }
}

/* A tensor with more elements along the axis than float32 can number is refused. */
static void test_too_long(void **state) {
    (void)state;
    for (int64_t more = 0; more < 2; more++) {
        struct test_net net = test_net_begin(1, 1, 1);
        int line = test_net_line(&net, ((int64_t)1 << 24) + more), index;
        struct rfx_error err = {{0}};
        enum rfx_status status = test_net_try(&net, top(0, 1, true), line, -1, &index, &err);
        assert_int_equal(status, more == 0 ? RFX_OK : RFX_STATUS_UNSUPPORTED);
        if (more == 1) assert_non_null(strstr(err.text, "16777217 elements, more than float32"));
        test_net_end(&net);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_too_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
