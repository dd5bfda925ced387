/* Fully connected layers and batched products against the naive reference; packing from both
 * weight orders; the same bits for any number of threads. */
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
// clang-format on

#include "tests/support/run/op_cases.h"

static struct rfx_tensor plain(int rank, int64_t a, int64_t b, int64_t c) {
    const struct rfx_shape shape = {rank, {a, b, c}};
    return op_case_plain(shape);
}

static struct rfx_node gemm_node(struct op_case *c, int64_t k, int64_t m, bool mk, bool bias) {
    const int64_t dims[2] = {mk ? m : k, mk ? k : m};
    struct rfx_node node = {.op = RFX_OP_GEMM, .act = {.slope = -1}};
    node.attr.gemm.k = k;
    node.attr.gemm.m = m;
    node.attr.gemm.weight_is_mk = mk;
    node.attr.gemm.alpha = 0.75f;
    node.attr.gemm.beta = -2.0f;
    node.attr.gemm.weight = op_case_weight(c, 2, dims, -0.5f, 0.5f);
    node.attr.gemm.bias = bias ? op_case_weight(c, 1, &m, -1.0f, 1.0f) : -1;
    return node;
}

static void test_gemm(void **state) {
    (void)state;
    static const int64_t sizes[][3] = {{1, 1, 1},     {1, 1280, 1000}, {3, 17, 64},  {7, 33, 130},
                                       {1, 6000, 70}, {13, 5, 3},      {2, 300, 900}};
    for (size_t i = 0; i < 4 * sizeof sizes / sizeof sizes[0]; i++) {
        const int64_t *s = sizes[i / 4];
        const struct rfx_tensor input = plain(2, s[0], s[1], 1);
        struct op_case c;
        op_case_begin(&c, 1, &input, i);
        struct rfx_node node = gemm_node(&c, s[1], s[2], i % 2 == 0, i % 4 < 2);
        node.act.kind = i % 3 == 0 ? RFX_ACT_RELU : RFX_ACT_NONE;
        if (op_case_add(&c, &node) != RFX_OK) fail_msg("%s", c.err.text);
        assert_int_equal(rfx_op_macs(c.graph, &c.graph->nodes[c.index], rfx_rect_full(1, 1)),
                         s[0] * s[1] * s[2]);
        char what[64];
        (void)snprintf(what, sizeof what, "gemm %zu", i);
        op_case_check(&c, 3e-5, 4, what);
        op_case_end(&c);
    }
}

static void test_gemm_refusals(void **state) {
    (void)state;
    const struct rfx_tensor input = plain(2, 1, 9, 1);
    struct op_case c;
    op_case_begin(&c, 1, &input, 1);
    struct rfx_node node = gemm_node(&c, 8, 3, true, true);
    assert_int_not_equal(op_case_add(&c, &node), RFX_OK);
    assert_non_null(strstr(c.err.text, "last dimension is 9, the weight's 8"));
    op_case_end(&c);
}

static void test_matmul(void **state) {
    (void)state;
    const struct rfx_tensor cases[][2] = {
        {plain(2, 3, 5, 1), plain(2, 5, 7, 1)},
        {plain(3, 4, 3, 50), plain(3, 4, 50, 6)},
        {plain(3, 4, 3, 5), plain(2, 5, 6, 1)},
        {plain(3, 1, 3, 5), plain(3, 6, 5, 2)},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct op_case c;
        op_case_begin(&c, 2, cases[i], i);
        struct rfx_node node = {.op = RFX_OP_MATMUL, .act = {.slope = -1}};
        if (op_case_add(&c, &node) != RFX_OK) fail_msg("%s", c.err.text);
        op_case_check(&c, 2e-5, 4, "matmul");
        op_case_end(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gemm),
        cmocka_unit_test(test_gemm_refusals),
        cmocka_unit_test(test_matmul),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
