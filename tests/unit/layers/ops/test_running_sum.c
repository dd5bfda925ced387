/* RunningSum: along every axis of tensors, along channels and columns of maps, in rectangles. */
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

static struct rfx_node form(int axis, int kind) { /* bits: exclusive, reverse */
    struct rfx_node node = {.op = RFX_OP_RUNNING_SUM};
    node.attr.running.axis = axis;
    node.attr.running.exclusive = (kind & 1) != 0;
    node.attr.running.reverse = (kind & 2) != 0;
    return node;
}

static void check(const struct rfx_tensor *input, int axis, int kind) {
    struct rfx_node node = form(axis, kind);
    struct op_case c;
    char what[48];
    (void)snprintf(what, sizeof what, "%s, axis %d, kind %d",
                   input->layout == RFX_LAYOUT_NHWC ? "map" : "tensor", axis, kind);
    op_case_begin(&c, 1, input, (uint64_t)(axis * 4 + kind));
    if (op_case_add(&c, &node) != RFX_OK) fail_msg("%s: %s", what, c.err.text);
    op_case_check(&c, 1e-6, input->layout == RFX_LAYOUT_NHWC ? 12 : 0, what);
    op_case_end(&c);
}

/* More channels than are summed side by side; one column, of which an exclusive sum reads nothing.
 */
static void all_forms(void **state) {
    (void)state;
    const struct rfx_shape plain = {3, {3, 4, 5}}, vector = {1, {6}};
    const struct rfx_tensor maps[] = {rfx_tensor_nhwc(3, 5, 9), rfx_tensor_nhwc(131, 3, 6),
                                      rfx_tensor_nhwc(2, 4, 1)};
    const struct rfx_tensor tensors[] = {op_case_plain(plain), op_case_plain(vector)};
    for (int kind = 0; kind < 4; kind++) {
        for (int i = 0; i < 3; i++)
            for (int axis = 1; axis <= 3; axis += 2) check(&maps[i], axis, kind);
        for (int axis = 0; axis < 3; axis++) check(&tensors[0], axis, kind);
        check(&tensors[1], 0, kind);
    }
}

static void by_hand(void **state) {
    (void)state;
    static const float wanted[4][4] = {{1, 3, 6, 10}, {0, 1, 3, 6}, {10, 9, 7, 4}, {9, 7, 4, 0}};
    const struct rfx_tensor row = rfx_tensor_nhwc(1, 1, 4);
    for (int kind = 0; kind < 4; kind++) {
        struct rfx_node node = form(3, kind);
        struct op_case c;
        op_case_begin(&c, 1, &row, 1);
        for (int i = 0; i < 4; i++) c.values[0][i] = (float)(i + 1);
        assert_int_equal(op_case_add(&c, &node), RFX_OK);
        float *got = op_case_whole(&c);
        assert_memory_equal(got, wanted[kind], sizeof wanted[kind]);
        free(got);
        op_case_end(&c);
    }
}

/* Sums in double: what is small is not lost beside what is large. */
static void in_double(void **state) {
    (void)state;
    static const float x[4] = {1e8f, 1, -1e8f, 1}, wanted[4] = {1e8f, 1e8f, 1, 2};
    const struct rfx_shape line = {1, {4}};
    const struct rfx_tensor inputs[] = {rfx_tensor_nhwc(1, 1, 4), rfx_tensor_nhwc(4, 1, 1),
                                        op_case_plain(line)};
    static const int axes[] = {3, 1, 0};
    for (int i = 0; i < 3; i++) {
        struct rfx_node node = form(axes[i], 0);
        struct op_case c;
        op_case_begin(&c, 1, &inputs[i], 1);
        memcpy(c.values[0], x, sizeof x);
        assert_int_equal(op_case_add(&c, &node), RFX_OK);
        float *got = op_case_whole(&c);
        assert_memory_equal(got, wanted, sizeof wanted);
        free(got);
        op_case_end(&c);
    }
}

/* Columns [2, 5) of 9 need those up to themselves, or from themselves on; the first (last) one
 * alone, exclusive, needs none. */
static void needs_no_more(void **state) {
    (void)state;
    static const struct rfx_range asked[3] = {{2, 5}, {0, 1}, {8, 9}};
    static const struct rfx_range needed[4][3] = {{{0, 5}, {0, 1}, {0, 9}},
                                                  {{0, 4}, {0, 0}, {0, 8}},
                                                  {{2, 9}, {0, 9}, {8, 9}},
                                                  {{3, 9}, {1, 9}, {9, 9}}};
    const struct rfx_tensor map = rfx_tensor_nhwc(2, 3, 9);
    for (int kind = 0; kind < 4; kind++) {
        struct rfx_node node = form(3, kind);
        struct op_case c;
        op_case_begin(&c, 1, &map, 1);
        assert_int_equal(op_case_add(&c, &node), RFX_OK);
        const struct rfx_node *made = &c.graph->nodes[c.index];
        for (int i = 0; i < 3; i++) {
            struct rfx_range in = rfx_op_def(made->op)->in_range(c.graph, made, 0, 1, asked[i]);
            assert_int_equal(in.lo, needed[kind][i].lo);
            assert_int_equal(in.hi, needed[kind][i].hi);
        }
        op_case_end(&c);
    }
}

static void refuses_other_axes(void **state) {
    (void)state;
    const struct rfx_shape shape = {2, {3, 4}};
    const struct rfx_tensor map = rfx_tensor_nhwc(2, 3, 4), tensor = op_case_plain(shape);
    struct rfx_node rows = form(2, 0);
    op_case_refused(&rows, 1, &map, "axis 2 of a map of rank 4");
    op_case_refused(&rows, 1, &tensor, "axis 2 of a tensor of rank 2");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_forms),          cmocka_unit_test(by_hand),
        cmocka_unit_test(in_double),          cmocka_unit_test(needs_no_more),
        cmocka_unit_test(refuses_other_axes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
