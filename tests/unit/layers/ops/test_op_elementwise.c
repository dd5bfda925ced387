/* Element by element ops: every activation, affine maps and broadcast operands, against the naive
 * reference and in rectangles. */
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
// clang-format on

#include "tests/support/run/op_cases.h"

static void check(struct op_case *c, const struct rfx_node *node, double tolerance, const char *op,
                  int number) {
    char what[64];
    (void)snprintf(what, sizeof what, "%s %d", op, number);
    if (op_case_add(c, node) != RFX_OK) fail_msg("%s: %s", what, c->err.text);
    op_case_check(c, tolerance, 15, what);
    op_case_end(c);
}

/* Values must be where LOG, SQRT and POW are defined, so their inputs are |x| or x + 2. */
static void make_positive(struct op_case *c) {
    int64_t n = c->graph->nodes[c->in[0]].out.elems;
    for (int64_t i = 0; i < n; i++) {
        c->values[0][i] += 2.0f;
        c->onnx_order[0][i] += 2.0f;
    }
}

/* A few values only, so that operands are equal and zero here and there. */
static void make_coarse(struct op_case *c) {
    for (int k = 0; k < c->n_in; k++) {
        int64_t n = c->graph->nodes[c->in[k]].out.elems;
        for (int64_t i = 0; i < n; i++) {
            c->values[k][i] = (float)(int)(c->values[k][i] * 2.9f);
            c->onnx_order[k][i] = (float)(int)(c->onnx_order[k][i] * 2.9f);
        }
    }
}

/* Of functions that are not defined everywhere: values where they are. */
static void make_defined(struct op_case *c, enum rfx_act_kind kind) {
    bool inside = kind == RFX_ACT_ASIN || kind == RFX_ACT_ACOS || kind == RFX_ACT_ATANH;
    int64_t n = c->graph->nodes[c->in[0]].out.elems;
    if (!inside && kind != RFX_ACT_ACOSH) return;
    for (int64_t i = 0; i < n; i++) {
        float *at[2] = {&c->values[0][i], &c->onnx_order[0][i]};
        for (int k = 0; k < 2; k++) *at[k] = inside ? 0.3f * *at[k] : 1.0f + fabsf(*at[k]);
    }
}

static void test_activations(void **state) {
    (void)state;
    for (int kind = 0; kind < RFX_ACT_COUNT; kind++) {
        for (int64_t channels = 3; channels < 40; channels += 15) {
            const struct rfx_tensor input = rfx_tensor_nhwc(channels, 13, 21);
            struct op_case c;
            op_case_begin(&c, 1, &input, (uint64_t)kind);
            struct rfx_node node = {.op = RFX_OP_ACTIVATION,
                                    .act = {(enum rfx_act_kind)kind, 0.3f, 0.6f, -1}};
            if (kind == RFX_ACT_PRELU) node.act.slope = op_case_weight(&c, 1, &channels, -1, 1);
            if (kind == RFX_ACT_LOG || kind == RFX_ACT_SQRT || kind == RFX_ACT_POW ||
                kind == RFX_ACT_RECIPROCAL)
                make_positive(&c);
            make_defined(&c, (enum rfx_act_kind)kind);
            check(&c, &node, 1e-6, "activation", kind);
        }
    }
}

static void test_plain_activations(void **state) {
    (void)state;
    for (int kind = 0; kind < RFX_ACT_COUNT; kind++) {
        const struct rfx_shape shape = {2, {7, 6001}};
        const struct rfx_tensor input = rfx_tensor_plain(&shape, 42007);
        const int64_t one = 1;
        struct op_case c;
        op_case_begin(&c, 1, &input, (uint64_t)kind);
        struct rfx_node node = {.op = RFX_OP_ACTIVATION,
                                .act = {(enum rfx_act_kind)kind, 0.3f, 0.6f, -1}};
        if (kind == RFX_ACT_PRELU) node.act.slope = op_case_weight(&c, 1, &one, -1, 1);
        make_positive(&c);
        make_defined(&c, (enum rfx_act_kind)kind);
        check(&c, &node, 1e-6, "plain activation", kind);
    }
}

static void test_affine(void **state) {
    (void)state;
    const int64_t counts[2] = {1, 20};
    for (int i = 0; i < 9; i++) { /* i % 3, i / 3: 0 none, 1 one element, 2 one per channel */
        const struct rfx_tensor input = rfx_tensor_nhwc(20, 11, 17);
        struct op_case c;
        op_case_begin(&c, 1, &input, (uint64_t)i);
        struct rfx_node node = {.op = RFX_OP_AFFINE, .act = {i % 2 ? RFX_ACT_SILU : 0, 0, 0, -1}};
        node.attr.affine.scale = i % 3 ? op_case_weight(&c, 1, &counts[i % 3 - 1], -2, 2) : -1;
        node.attr.affine.shift = i / 3 ? op_case_weight(&c, 1, &counts[i / 3 - 1], -2, 2) : -1;
        check(&c, &node, 1e-6, "affine", i);
    }
}

static void test_binary(void **state) {
    (void)state;
    static const int64_t shapes[][6] = {
        {18, 9, 14, 18, 9, 14}, {18, 9, 14, 18, 1, 1}, {1, 9, 14, 18, 9, 14}, {18, 9, 1, 1, 1, 14},
        {1, 1, 1, 18, 9, 14},   {1, 9, 14, 1, 9, 1},   {5, 1, 14, 5, 9, 14},
    };
    for (int i = 0; i < 7 * (RFX_BINARY_UNLESS + 1); i++) {
        const int64_t *s = shapes[i % 7];
        const struct rfx_tensor inputs[2] = {rfx_tensor_nhwc(s[0], s[1], s[2]),
                                             rfx_tensor_nhwc(s[3], s[4], s[5])};
        enum rfx_binary_kind kind = (enum rfx_binary_kind)(i / 7);
        struct op_case c;
        op_case_begin(&c, 2, inputs, (uint64_t)i);
        if (kind == RFX_BINARY_POW) make_positive(&c);
        bool divides = kind == RFX_BINARY_DIV || kind == RFX_BINARY_MOD;
        for (int64_t j = 0; divides && j < inputs[1].elems; j++) {
            c.values[1][j] += 2.0f;
            c.onnx_order[1][j] += 2.0f;
        }
        if (kind >= RFX_BINARY_GREATER) make_coarse(&c);
        struct rfx_node node = {.op = RFX_OP_BINARY, .attr.binary = {kind}, .act = {.slope = -1}};
        if (i % 4 == 0) node.act.kind = RFX_ACT_RELU;
        check(&c, &node, 1e-6, "binary", i);
    }
}

static void test_binary_refuses(void **state) {
    (void)state;
    const struct rfx_tensor inputs[2] = {rfx_tensor_nhwc(4, 5, 6), rfx_tensor_nhwc(4, 5, 7)};
    struct op_case c;
    op_case_begin(&c, 2, inputs, 1);
    struct rfx_node node = {.op = RFX_OP_BINARY, .act = {.slope = -1}};
    assert_int_not_equal(op_case_add(&c, &node), RFX_OK);
    assert_non_null(strstr(c.err.text, "4x5x6 and 4x5x7 do not combine"));
    op_case_end(&c);
}

/* Over groups of channels beside each other; 0: over all. */
static void test_softmax_groups(void **state) {
    (void)state;
    static const int64_t groups[] = {0, 1, 4, 6, 12, 24};
    for (int i = 0; i < 12; i++) {
        const struct rfx_tensor input = rfx_tensor_nhwc(24, 9, 14);
        struct op_case c;
        op_case_begin(&c, 1, &input, (uint64_t)i);
        struct rfx_node node = {.op = RFX_OP_SOFTMAX, .act = {.slope = -1}};
        node.attr.softmax.group = groups[i / 2];
        node.attr.softmax.logarithm = i % 2 == 1;
        check(&c, &node, 1e-6, "softmax", i);
    }
}

static void test_softmax_refuses(void **state) {
    (void)state;
    const struct rfx_tensor input = rfx_tensor_nhwc(24, 5, 6);
    struct op_case c;
    op_case_begin(&c, 1, &input, 1);
    struct rfx_node node = {.op = RFX_OP_SOFTMAX, .act = {.slope = -1}};
    node.attr.softmax.group = 5;
    assert_int_not_equal(op_case_add(&c, &node), RFX_OK);
    assert_non_null(strstr(c.err.text, "groups of 5 of 24 channels"));
    op_case_end(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_activations),     cmocka_unit_test(test_plain_activations),
        cmocka_unit_test(test_affine),          cmocka_unit_test(test_binary),
        cmocka_unit_test(test_binary_refuses),  cmocka_unit_test(test_softmax_groups),
        cmocka_unit_test(test_softmax_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
