/* Triangle: both layouts, all diagonals, and what is no number beyond them. */
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

static struct rfx_node form(int64_t k, bool upper) {
    struct rfx_node node = {.op = RFX_OP_TRIANGLE};
    node.attr.triangle.k = k;
    node.attr.triangle.upper = upper;
    return node;
}

static void all_diagonals(void **state) {
    (void)state;
    const struct rfx_shape plain = {3, {2, 4, 7}};
    const struct rfx_tensor inputs[] = {rfx_tensor_nhwc(3, 5, 9), rfx_tensor_nhwc(1, 9, 4),
                                        op_case_plain(plain)};
    for (int i = 0; i < 3; i++)
        for (int64_t k = -10; k <= 10; k++)
            for (int upper = 0; upper < 2; upper++) {
                struct rfx_node node = form(k, upper != 0);
                struct op_case c;
                char what[48];
                (void)snprintf(what, sizeof what, "tensor %d, k %d, %d", i, (int)k, upper);
                op_case_begin(&c, 1, &inputs[i], 3);
                if (op_case_add(&c, &node) != RFX_OK) fail_msg("%s: %s", what, c.err.text);
                op_case_check(&c, 0.0, i < 2 ? 4 : 0, what);
                op_case_end(&c);
            }
}

/* Diagonals beyond any sum of numbers: all, or nothing. */
static void far_diagonals(void **state) {
    (void)state;
    const struct rfx_tensor input = rfx_tensor_nhwc(1, 3, 3);
    const struct {
        int64_t k;
        bool upper, keeps;
    } cases[] = {{INT64_MAX, true, false},
                 {INT64_MAX, false, true},
                 {INT64_MIN, true, true},
                 {INT64_MIN, false, false}};
    for (int i = 0; i < 4; i++) {
        struct rfx_node node = form(cases[i].k, cases[i].upper);
        struct op_case c;
        op_case_begin(&c, 1, &input, 4);
        c.values[0][4] = NAN;
        assert_int_equal(op_case_add(&c, &node), RFX_OK);
        float *got = op_case_whole(&c);
        for (int k = 0; k < 9; k++)
            if (cases[i].keeps)
                assert_memory_equal(&got[k], &c.values[0][k], sizeof *got);
            else
                assert_true(got[k] == 0.0f && !signbit(got[k]));
        free(got);
        op_case_end(&c);
    }
}

static void refuses_vectors(void **state) {
    (void)state;
    const struct rfx_shape shape = {1, {4}};
    const struct rfx_tensor vector = op_case_plain(shape);
    struct rfx_node node = form(0, true);
    op_case_refused(&node, 1, &vector, "rank 1: at least 2 is needed");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_diagonals),
        cmocka_unit_test(far_diagonals),
        cmocka_unit_test(refuses_vectors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
