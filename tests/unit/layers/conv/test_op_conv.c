/* Convolutions of every kind: against the naive reference, and any rectangle against the whole run
 * bit by bit; refusals with the numbers in them. */
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

#include "layers/conv/conv_backend.h"
#include "tests/support/run/op_cases.h"

struct shape {
    int64_t ic, oc, groups, h, w, kh, kw, sh, sw, dh, dw;
    struct rfx_pads pads;
    bool residual, bias, scale;
    enum rfx_act_kind act;
};

static struct rfx_node conv_node(struct op_case *c, const struct shape *s) {
    const int64_t dims[4] = {s->oc, s->ic / s->groups, s->kh, s->kw};
    struct rfx_node node = {
        .op = RFX_OP_CONV,
        .act = {s->act, 0.1f, 0.9f, -1},
        .residual = s->residual,
        .attr.conv = {s->kh, s->kw, s->sh, s->sw, s->dh, s->dw, s->pads, 0, 0, s->groups, 0, s->oc,
                      -1, -1, -1},
    };
    node.attr.conv.weight = op_case_weight(c, 4, dims, -0.5f, 0.5f);
    if (s->bias) node.attr.conv.bias = op_case_weight(c, 1, &s->oc, -1.0f, 1.0f);
    if (s->scale) node.attr.conv.scale = op_case_weight(c, 1, &s->oc, 0.5f, 2.0f);
    if (s->act == RFX_ACT_PRELU) node.act.slope = op_case_weight(c, 1, &s->oc, -1.0f, 1.0f);
    return node;
}

static void check(const struct shape *s, uint64_t seed, int rects) {
    char what[256];
    (void)snprintf(what, sizeof what,
                   "seed %llu: {%lld, %lld, %lld, %lld, %lld, %lld, %lld, %lld, %lld, %lld, %lld, "
                   "{%lld, %lld, %lld, %lld}, %d, %d, %d, %d}",
                   (unsigned long long)seed, (long long)s->ic, (long long)s->oc,
                   (long long)s->groups, (long long)s->h, (long long)s->w, (long long)s->kh,
                   (long long)s->kw, (long long)s->sh, (long long)s->sw, (long long)s->dh,
                   (long long)s->dw, (long long)s->pads.top, (long long)s->pads.left,
                   (long long)s->pads.bottom, (long long)s->pads.right, s->residual, s->bias,
                   s->scale, (int)s->act);
    int64_t oh = (s->h + s->pads.top + s->pads.bottom - s->dh * (s->kh - 1) - 1) / s->sh + 1;
    int64_t ow = (s->w + s->pads.left + s->pads.right - s->dw * (s->kw - 1) - 1) / s->sw + 1;
    const struct rfx_tensor inputs[2] = {rfx_tensor_nhwc(s->ic, s->h, s->w),
                                         rfx_tensor_nhwc(s->oc, oh, ow)};
    struct op_case c;
    op_case_begin(&c, s->residual ? 2 : 1, inputs, seed);
    struct rfx_node node = conv_node(&c, s);
    if (op_case_add(&c, &node) != RFX_OK) fail_msg("%s: %s", what, c.err.text);
    const struct rfx_tensor *out = &c.graph->nodes[c.index].out;
    assert_int_equal(out->h, oh);
    assert_int_equal(out->w, ow);
    op_case_check(&c, 2e-5, rects, what);
    op_case_end(&c);
}

static void test_named_shapes(void **state) {
    (void)state;
    static const struct shape shapes[] = {
        /* ic oc g  h  w  kh kw sh sw dh dw  pads          res    bias   scale  act */
        {3, 32, 1, 37, 41, 3, 3, 2, 2, 1, 1, {1, 1, 1, 1}, false, true, true, RFX_ACT_CLIP},
        {3, 64, 1, 35, 29, 7, 7, 2, 2, 1, 1, {3, 3, 3, 3}, false, true, false, RFX_ACT_RELU},
        {1, 5, 1, 9, 8, 3, 2, 1, 1, 2, 1, {0, 1, 2, 0}, true, true, true, RFX_ACT_PRELU},
        {32, 16, 1, 21, 70, 1, 1, 1, 1, 1, 1, {0, 0, 0, 0}, false, true, true, RFX_ACT_NONE},
        {24, 24, 1, 13, 7, 1, 1, 1, 1, 1, 1, {0, 0, 0, 0}, true, true, true, RFX_ACT_RELU},
        {16, 48, 1, 12, 130, 1, 1, 2, 2, 1, 1, {0, 0, 0, 0}, false, false, true, RFX_ACT_SILU},
        {64, 64, 1, 18, 35, 3, 3, 1, 1, 1, 1, {1, 1, 1, 1}, true, true, true, RFX_ACT_RELU},
        {20, 30, 1, 17, 19, 3, 5, 2, 1, 1, 2, {0, 3, 2, 1}, false, true, false, RFX_ACT_SIGMOID},
        {32, 64, 4, 15, 33, 3, 3, 1, 2, 2, 1, {2, 1, 2, 1}, true, true, true, RFX_ACT_NONE},
        {96, 96, 96, 19, 23, 3, 3, 1, 1, 1, 1, {1, 1, 1, 1}, false, true, true, RFX_ACT_CLIP},
        {40, 40, 40, 22, 17, 5, 5, 2, 2, 1, 1, {2, 2, 2, 2}, true, true, true, RFX_ACT_HARD_SWISH},
        {7, 7, 7, 14, 16, 3, 3, 1, 2, 3, 2, {3, 2, 3, 2}, false, false, false, RFX_ACT_PRELU},
        {12, 24, 12, 11, 13, 3, 3, 1, 1, 1, 1, {1, 1, 1, 1}, false, true, true, RFX_ACT_NONE},
        {512, 300, 1, 7, 7, 3, 3, 1, 1, 1, 1, {1, 1, 1, 1}, false, true, true, RFX_ACT_RELU},
        {8, 8, 1, 1, 1, 3, 3, 1, 1, 1, 1, {1, 1, 1, 1}, false, true, true, RFX_ACT_NONE},
        {5, 6, 1, 4, 300, 4, 1, 1, 7, 1, 1, {0, 0, 0, 0}, false, true, true, RFX_ACT_NONE},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) check(&shapes[i], i, 40);
}

static void test_random_shapes(void **state) {
    (void)state;
    static const int64_t channels[] = {1, 2, 3, 4, 6, 8, 12, 17, 24, 33, 64};
    for (uint64_t seed = 0; seed < 150; seed++) {
        struct test_rng r = test_rng_make(seed + 1000);
        struct shape s = {.groups = 1};
        s.ic = channels[test_rng_int(&r, 0, 10)];
        s.oc = channels[test_rng_int(&r, 0, 10)];
        if (test_rng_chance(&r, 30)) s.oc = s.groups = s.ic;
        if (test_rng_chance(&r, 15) && s.ic % 2 == 0 && s.oc % 2 == 0) s.groups = 2;
        s.kh = test_rng_int(&r, 1, 5);
        s.kw = test_rng_int(&r, 1, 5);
        s.sh = test_rng_int(&r, 1, 3);
        s.sw = test_rng_int(&r, 1, 3);
        s.dh = test_rng_int(&r, 1, 3);
        s.dw = test_rng_int(&r, 1, 3);
        struct rfx_pads pads = {test_rng_int(&r, 0, 6), test_rng_int(&r, 0, 6),
                                test_rng_int(&r, 0, 6), test_rng_int(&r, 0, 6)};
        s.pads = pads;
        s.h = test_rng_int(&r, s.dh * (s.kh - 1) + 1, 40);
        s.w = test_rng_int(&r, s.dw * (s.kw - 1) + 1, 90);
        s.residual = test_rng_chance(&r, 30);
        s.bias = test_rng_chance(&r, 70);
        s.scale = test_rng_chance(&r, 50);
        s.act = (enum rfx_act_kind)test_rng_int(&r, 0, RFX_ACT_TANH);
        check(&s, seed, 12);
    }
}

/* OpenBLAS's panels: the blocks tile the map; no layer has a block wider than the map or of one
 * column beside it. */
static void test_panel_shapes(void **state) {
    (void)state;
    for (int64_t w = 1; w < 300; w += 7) {
        const struct rfx_tensor input = rfx_tensor_nhwc(32, 40, w);
        struct op_case c;
        op_case_begin(&c, 1, &input, 1);
        c.graph->conv = RFX_CONV_OPENBLAS;
        struct shape s = {
            .ic = 32, .oc = 64, .groups = 1, .kh = 1, .kw = 1, .sh = 1, .sw = 1, .dh = 1, .dw = 1};
        struct rfx_node node = conv_node(&c, &s);
        assert_int_equal(op_case_add(&c, &node), RFX_OK);
        struct rfx_conv_block b = rfx_conv_block_of(c.graph, &c.graph->nodes[c.index]);
        assert_in_range(b.h, 1, 40);
        assert_in_range(b.w, 1, w);
        assert_in_range(b.h * b.w, w * 40 < 16 ? 1 : 16, 200);
        if (b.h > 1) assert_int_equal(b.w, w);
        op_case_end(&c);
    }
}

static void refuse(struct shape s, int64_t ic, const char *expected) {
    const struct rfx_tensor input = rfx_tensor_nhwc(ic, s.h, s.w);
    struct op_case c;
    op_case_begin(&c, 1, &input, 1);
    struct rfx_node node = conv_node(&c, &s);
    assert_int_not_equal(op_case_add(&c, &node), RFX_OK);
    if (strstr(c.err.text, expected) == NULL) fail_msg("'%s' lacks '%s'", c.err.text, expected);
    op_case_end(&c);
}

static void test_refusals(void **state) {
    (void)state;
    struct shape s = {.ic = 4,
                      .oc = 6,
                      .groups = 1,
                      .h = 5,
                      .w = 9,
                      .kh = 7,
                      .kw = 7,
                      .sh = 1,
                      .sw = 1,
                      .dh = 1,
                      .dw = 1};
    refuse(s, 4, "kernel of 7 (dilated: 7) exceeds padded input 5");
    s.kh = s.kw = 3;
    refuse(s, 5, "6x4x3x3, is not 6x5x3x3");
    s.sw = 0;
    refuse(s, 4, "stride 0");
    s.sw = 1;
    s.pads.left = -1;
    refuse(s, 4, "pads -1 and 0");
    s.pads.left = 0;
    s.groups = 4;
    refuse(s, 4, "4 groups do not divide 4 input and 6 output channels");
}

static void test_region_and_macs(void **state) {
    (void)state;
    const struct rfx_tensor input = rfx_tensor_nhwc(8, 50, 60);
    struct op_case c;
    op_case_begin(&c, 1, &input, 1);
    struct shape s = {.ic = 8,
                      .oc = 12,
                      .groups = 4,
                      .kh = 3,
                      .kw = 5,
                      .sh = 2,
                      .sw = 3,
                      .dh = 2,
                      .dw = 1,
                      .pads = {1, 2, 3, 4}};
    struct rfx_node node = conv_node(&c, &s);
    assert_int_equal(op_case_add(&c, &node), RFX_OK);
    const struct rfx_node *n = &c.graph->nodes[c.index];
    struct rfx_rect r = rfx_op_in_rect(c.graph, n, 0, rfx_rect_make(0, 3, 2, 4));
    assert_true(rfx_rect_equal(r, rfx_rect_make(-1, 8, 4, 12)));
    assert_int_equal(rfx_op_macs(c.graph, n, rfx_rect_make(0, 3, 2, 4)), 6 * 12 * 2 * 15);
    op_case_end(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_named_shapes),    cmocka_unit_test(test_random_shapes),
        cmocka_unit_test(test_panel_shapes),    cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_region_and_macs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
