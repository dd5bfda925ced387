/* Transposed convolutions: by hand, against the naive reference, in rectangles; minimal regions. */
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

static struct rfx_node transpose_node(struct op_case *c, struct rfx_conv_attr a, int64_t ic) {
    const int64_t dims[4] = {ic, a.oc / a.groups, a.kh, a.kw};
    struct rfx_node node = {.op = RFX_OP_CONV_TRANSPOSE, .act = {.slope = -1}, .attr.conv = a};
    node.attr.conv.weight = op_case_weight(c, 4, dims, -0.5f, 0.5f);
    node.attr.conv.bias = node.attr.conv.scale = -1;
    return node;
}

/* Pixels 10 and 100, weights 1 2 / 3 4: columns overlap, rows do not. */
static void test_by_hand(void **state) {
    (void)state;
    const struct rfx_tensor input = rfx_tensor_nhwc(1, 1, 2);
    struct op_case c;
    op_case_begin(&c, 1, &input, 1);
    struct rfx_conv_attr a = {
        .kh = 2, .kw = 2, .sh = 2, .sw = 1, .dh = 1, .dw = 1, .groups = 1, .oc = 1};
    struct rfx_node node = transpose_node(&c, a, 1);
    float *w = rfx_graph_owned_weight(c.graph, node.attr.conv.weight);
    for (int i = 0; i < 4; i++) w[i] = (float)(i + 1);
    c.values[0][0] = 10.0f;
    c.values[0][1] = 100.0f;
    assert_int_equal(op_case_add(&c, &node), RFX_OK);
    float *out = op_case_whole(&c);
    const float expected[6] = {10, 120, 200, 30, 340, 400};
    assert_memory_equal(out, expected, sizeof expected);
    free(out);
    op_case_end(&c);
}

static struct rfx_conv_attr random_attr(struct test_rng *r, int64_t *ic) {
    struct rfx_conv_attr a = {.groups = test_rng_chance(r, 30) ? 3 : 1};
    *ic = a.groups * test_rng_int(r, 1, 20);
    a.oc = a.groups * test_rng_int(r, 1, 40);
    a.kh = test_rng_int(r, 1, 4);
    a.kw = test_rng_int(r, 1, 5);
    a.sh = test_rng_int(r, 1, 3);
    a.sw = test_rng_int(r, 1, 4);
    a.dh = test_rng_int(r, 1, 3);
    a.dw = test_rng_int(r, 1, 2);
    a.pads.top = test_rng_int(r, 0, a.kh - 1);
    a.pads.left = test_rng_int(r, 0, a.kw - 1);
    a.pads.bottom = test_rng_int(r, 0, 1);
    a.pads.right = test_rng_int(r, 0, 2);
    a.out_pad_h = test_rng_int(r, 0, a.sh - 1);
    a.out_pad_w = test_rng_int(r, 0, a.sw - 1);
    return a;
}

static void test_random_shapes(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 150; seed++) {
        struct test_rng r = test_rng_make(seed);
        int64_t ic, h = test_rng_int(&r, 4, 15), w = test_rng_int(&r, 5, 30);
        struct rfx_conv_attr a = random_attr(&r, &ic);
        const struct rfx_tensor input = rfx_tensor_nhwc(ic, h, w);
        struct op_case c;
        op_case_begin(&c, 1, &input, seed);
        struct rfx_node node = transpose_node(&c, a, ic);
        if (test_rng_chance(&r, 60)) node.attr.conv.bias = op_case_weight(&c, 1, &a.oc, -1, 1);
        if (test_rng_chance(&r, 40)) node.attr.conv.scale = op_case_weight(&c, 1, &a.oc, -1, 1);
        if (test_rng_chance(&r, 40)) node.act.kind = RFX_ACT_RELU;
        char what[64];
        (void)snprintf(what, sizeof what, "seed %llu", (unsigned long long)seed);
        if (op_case_add(&c, &node) != RFX_OK) fail_msg("%s: %s", what, c.err.text);
        op_case_check(&c, 2e-5, 10, what);
        op_case_end(&c);
    }
}

/* The region of every output range is the hull of what it touches, by trying all taps. */
static void test_regions_are_minimal(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct test_rng r = test_rng_make(seed);
        int64_t ic;
        struct rfx_conv_attr a = random_attr(&r, &ic);
        const struct rfx_tensor input = rfx_tensor_nhwc(ic, 20, 20);
        struct op_case c;
        op_case_begin(&c, 1, &input, seed);
        struct rfx_node node = transpose_node(&c, a, ic);
        assert_int_equal(op_case_add(&c, &node), RFX_OK);
        int64_t lo = test_rng_int(&r, 0, 8), hi = test_rng_int(&r, lo + 1, 14);
        struct rfx_rect got =
            rfx_op_in_rect(c.graph, &c.graph->nodes[c.index], 0, rfx_rect_make(lo, hi, 0, 1));
        int64_t first = INT64_MAX, last = INT64_MIN;
        for (int64_t i = -60; i < 60; i++)
            for (int64_t k = 0; k < a.kh; k++) {
                int64_t o = i * a.sh + k * a.dh - a.pads.top;
                if (o < lo || o >= hi) continue;
                if (i < first) first = i;
                if (i > last) last = i;
            }
        if (first > last) {
            assert_int_equal(rfx_rect_rows(got), 0);
        } else {
            assert_int_equal(got.y0, first);
            assert_int_equal(got.y1, last + 1);
        }
        op_case_end(&c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_random_shapes),
        cmocka_unit_test(test_regions_are_minimal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
