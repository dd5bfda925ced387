/* INT_ADD and INT_MEAN against the naive reference, byte for byte: maps and PLAIN tensors, in
 * rectangles and in place, any number of threads; states merged in any order. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "layers/graph/reduction.h"
#include "tests/support/run/op_cases.h"
#include "tests/support/test_net.h"

static const enum rfx_type types[2] = {RFX_TYPE_UINT8, RFX_TYPE_INT8};

static struct rfx_tensor typed(struct rfx_tensor t, enum rfx_type type) {
    t.type = type;
    return t;
}

static struct rfx_node sum_of(enum rfx_type to, float a_scale, float b_scale, float shift) {
    return (struct rfx_node){.op = RFX_OP_INT_ADD, .attr.int_add = {to, a_scale, b_scale, shift}};
}

static void check_add(const struct rfx_tensor *map, struct rfx_node node, uint64_t seed, int rects,
                      const char *what) {
    const struct rfx_tensor both[2] = {*map, *map};
    struct op_case c;
    op_case_begin(&c, 2, both, seed);
    node.attr.int_add.to = map->type;
    if (op_case_add(&c, &node) != RFX_OK) fail_msg("%s: %s", what, c.err.text);
    assert_int_equal(c.graph->nodes[c.index].out.type, map->type);
    for (int k = 0; k < 2; k++)
        assert_true(rfx_op_def(RFX_OP_INT_ADD)->in_place(c.graph, &c.graph->nodes[c.index], k));
    op_case_check(&c, 0.0, rects, what);
    op_case_end(&c);
}

/* Scales of any size, and halves (scales of 0.5) and saturated sums among them. */
static void sums_of_maps(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 120; seed++) {
        struct test_rng r = test_rng_make(seed);
        int64_t c = test_rng_int(&r, 1, 40), h = test_rng_int(&r, 1, 9);
        struct rfx_tensor map =
            typed(rfx_tensor_nhwc(c, h, test_rng_int(&r, 1, 14)), types[seed % 2]);
        struct rfx_node node =
            sum_of(map.type, test_rng_float(&r, 0.001f, 2.0f), test_rng_float(&r, 0.001f, 2.0f),
                   test_rng_float(&r, -300.0f, 300.0f));
        char what[64];
        (void)snprintf(what, sizeof what, "sum of seed %d", (int)seed);
        if (seed % 3 == 0) node.attr.int_add.a_scale = node.attr.int_add.b_scale = 0.5f;
        if (seed % 3 == 0) node.attr.int_add.shift = (float)test_rng_int(&r, -200, 200) * 0.5f;
        check_add(&map, node, seed, 4, what);
    }
}

static int32_t draw_zero(struct test_rng *r, enum rfx_type type) {
    int32_t lo = type == RFX_TYPE_UINT8 ? 0 : -128;
    if (test_rng_chance(r, 40)) return test_rng_chance(r, 50) ? lo : lo + 255;
    return lo + (int32_t)test_rng_int(r, 0, 255);
}

/* Sums and products with an operand that is broadcast along channels, rows or columns. */
static void broadcast(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct test_rng r = test_rng_make(seed);
        enum rfx_type type = types[seed % 2];
        int64_t c = test_rng_int(&r, 1, 300), h = test_rng_int(&r, 1, 6),
                w = test_rng_int(&r, 1, 9);
        const struct rfx_tensor both[2] = {
            typed(rfx_tensor_nhwc(c, h, w), type),
            typed(rfx_tensor_nhwc(test_rng_chance(&r, 30) ? 1 : c, test_rng_chance(&r, 60) ? 1 : h,
                                  test_rng_chance(&r, 60) ? 1 : w),
                  type)};
        struct rfx_node node = sum_of(type, 0.75f, 0.5f, (float)test_rng_int(&r, -99, 99) * 0.5f);
        if (seed % 4 < 2)
            node = (struct rfx_node){
                .op = RFX_OP_INT_MUL,
                .attr.int_mul = {type, test_rng_chance(&r, 50) ? 0x1p-7f : 0.013f,
                                 draw_zero(&r, type), draw_zero(&r, type), draw_zero(&r, type)}};
        struct op_case cases;
        op_case_begin(&cases, 2, both, seed);
        if (op_case_add(&cases, &node) != RFX_OK) fail_msg("%s", cases.err.text);
        op_case_check(&cases, 0.0, 4, "broadcast");
        op_case_end(&cases);
    }
}

/* More elements than two work items have. */
static void sums_of_plain_tensors(void **state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        const struct rfx_tensor lines[2] = {
            typed(op_case_plain((struct rfx_shape){2, {3, 13001}}), types[k]),
            typed(op_case_plain((struct rfx_shape){1, {1}}), types[k])};
        for (int i = 0; i < 2; i++)
            check_add(&lines[i], sum_of(types[k], 0.5f, 0.75f, -3.25f), (uint64_t)k, 3, "line");
    }
}

/* Two roundings of the formula that differ from one product and one sum at a time. */
static void sums_are_fused(void **state) {
    (void)state;
    const float scale = 0x1.000002p-1f; /* 127 * scale is no float32 */
    struct test_rng r = test_rng_make(5);
    int differs = 0;
    for (int i = 0; i < 2000; i++) {
        float a = (float)test_rng_int(&r, 0, 255), b = (float)test_rng_int(&r, 0, 255),
              shift = (float)test_rng_int(&r, -100, 100) + 0.5f;
        volatile float left = a * scale, right = b * scale, sum = right + shift;
        sum = left + sum;
        differs += rintf(sum) != rintf(fmaf(a, scale, fmaf(b, scale, shift)));
    }
    assert_true(differs > 10);
    struct rfx_tensor map = typed(rfx_tensor_nhwc(33, 20, 30), RFX_TYPE_UINT8);
    for (uint64_t seed = 0; seed < 20; seed++)
        check_add(&map, sum_of(map.type, scale, scale, (float)seed - 9.5f), seed, 0, "fused");
}

static struct rfx_node mean_of(enum rfx_type to, int32_t in_zero, int32_t out_zero, float in_scale,
                               float out_scale) {
    return (struct rfx_node){.op = RFX_OP_INT_MEAN,
                             .attr.int_mean = {to, in_scale, out_scale, in_zero, out_zero}};
}

static void means(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 120; seed++) {
        struct test_rng r = test_rng_make(seed);
        int64_t c = test_rng_int(&r, 1, 40), h = test_rng_int(&r, 1, 60);
        struct rfx_tensor map =
            typed(rfx_tensor_nhwc(c, h, test_rng_int(&r, 1, 70)), types[seed % 2]);
        enum rfx_type to = types[seed / 2 % 2];
        struct rfx_node node = mean_of(to, draw_zero(&r, map.type), draw_zero(&r, to),
                                       test_rng_float(&r, 0.01f, 4.0f), 1.0f);
        char what[64];
        (void)snprintf(what, sizeof what, "mean of seed %d", (int)seed);
        if (seed % 4 == 0) { /* exact halves: means of 2 or 4 pixels */
            map = typed(rfx_tensor_nhwc(c, 2, seed % 8 == 0 ? 1 : 2), map.type);
            node.attr.int_mean.in_scale = 1.0f;
        }
        struct op_case k;
        op_case_begin(&k, 1, &map, seed);
        if (op_case_add(&k, &node) != RFX_OK) fail_msg("%s", k.err.text);
        assert_int_equal(k.graph->nodes[k.index].out.type, to);
        op_case_check(&k, 0.0, 3, what);
        op_case_end(&k);
    }
}

/* Rectangles of a map that cover each pixel once, added to states that are merged in random order,
 * some of them after other merges. */
static void states_in_any_order(void **state) {
    (void)state;
    enum { C = 5, H = 24, W = 31, STATES = 7 };
    struct test_net net = test_net_begin(C, H, W);
    struct rfx_node to_bytes = {.op = RFX_OP_CONVERT, .attr.convert.to = RFX_TYPE_INT8};
    int bytes = test_net_put(&net, to_bytes, 0, -1);
    const struct rfx_node *node =
        &net.graph
             ->nodes[test_net_put(&net, mean_of(RFX_TYPE_UINT8, -100, 3, 1.0f, 0.9f), bytes, -1)];
    const struct rfx_reduction *reduction = rfx_node_reduction(node);
    size_t size = reduction->state_bytes(node);
    int8_t map[H * W * C];
    unsigned char *states = malloc(STATES * size);
    uint8_t want[C], got[C];
    struct test_rng r = test_rng_make(3);
    const struct rfx_view in = rfx_view_of(&net.graph->nodes[bytes].out, map, rfx_rect_full(H, W));
    assert_non_null(states);
    assert_int_equal(size % RFX_ALIGNMENT_BYTES, 0);
    for (int i = 0; i < H * W * C; i++)
        map[i] = (int8_t)test_rng_int(&r, i % C == 0 ? 127 : -128, 127);
    for (int64_t i = 0; i < C; i++) { /* the formula of quantised.c */
        int64_t sum = 0;
        for (int64_t p = 0; p < H * W; p++) sum += map[p * C + i] + 100;
        float mean = (float)sum * (1.0f / (0.9f * (float)(H * W)));
        want[i] = (uint8_t)fminf(rintf(mean) + 3.0f, 255.0f);
    }
    for (int trial = 0; trial < 40; trial++) {
        int64_t y = 0;
        memset(states, 0xff, STATES * size);
        for (int s = 0; s < STATES; s++) reduction->begin(node, states + (size_t)s * size);
        while (y < H) {
            int64_t end = test_rng_int(&r, y + 1, H), x = test_rng_int(&r, 0, W);
            struct rfx_rect left = rfx_rect_make(y, end, 0, x), right = rfx_rect_make(y, end, x, W);
            size_t a = (size_t)test_rng_int(&r, 0, STATES - 1),
                   b = (size_t)test_rng_int(&r, 0, STATES - 1);
            reduction->add(node, states + a * size, &in, left);
            reduction->add(node, states + b * size, &in, right);
            y = end;
        }
        int order[STATES];
        for (int s = 0; s < STATES; s++) order[s] = s;
        for (int left = STATES; left > 1; left--) { /* one state into another one that is left */
            int i = (int)test_rng_int(&r, 0, left - 1), j = (int)test_rng_int(&r, 0, left - 2);
            int from = order[i];
            order[i] = order[left - 1];
            assert_true(reduction->is_sound(node, states + (size_t)from * size));
            reduction->merge(node, states + (size_t)order[j] * size, states + (size_t)from * size);
        }
        const struct rfx_view out = rfx_view_of(&node->out, got, rfx_rect_full(1, 1));
        reduction->finish(node, states + (size_t)order[0] * size, H, W, &out);
        assert_memory_equal(got, want, C);
    }
    free(states);
    test_net_end(&net);
}

/* A state's sums, which a file may contain: sound up to 2^46 in magnitude. */
static void soundness(void **state) {
    (void)state;
    struct test_net net = test_net_begin(3, 2, 2);
    struct rfx_node to_bytes = {.op = RFX_OP_CONVERT, .attr.convert.to = RFX_TYPE_UINT8};
    int bytes = test_net_put(&net, to_bytes, 0, -1);
    const struct rfx_node *node =
        &net.graph->nodes[test_net_put(&net, mean_of(RFX_TYPE_INT8, 0, 0, 1, 1), bytes, -1)];
    const struct rfx_reduction *reduction = rfx_node_reduction(node);
    int64_t *sums = malloc(reduction->state_bytes(node));
    assert_non_null(sums);
    for (int i = 0; i < 3; i++)
        for (int sign = -1; sign < 2; sign += 2) {
            reduction->begin(node, sums);
            assert_true(reduction->is_sound(node, sums));
            sums[i] = sign * (INT64_C(1) << 46);
            assert_true(reduction->is_sound(node, sums));
            sums[i] += sign;
            assert_false(reduction->is_sound(node, sums));
            sums[i] = sign < 0 ? INT64_MIN : INT64_MAX;
            assert_false(reduction->is_sound(node, sums));
        }
    free(sums);
    test_net_end(&net);
}

static void refusals(void **state) {
    (void)state;
    struct rfx_tensor map = typed(rfx_tensor_nhwc(2, 3, 4), RFX_TYPE_UINT8),
                      other = typed(rfx_tensor_nhwc(2, 4, 3), RFX_TYPE_UINT8),
                      line = typed(op_case_plain((struct rfx_shape){1, {24}}), RFX_TYPE_UINT8);
    const struct rfx_tensor same[2] = {map, map}, differ[2] = {map, other}, mixed[2] = {map, line};
    struct rfx_node node = sum_of(RFX_TYPE_UINT8, 1, 1, 0);
    op_case_refused(&node, 2, differ, "cannot be broadcast to input 0");
    node.attr.int_add.to = RFX_TYPE_INT8;
    op_case_refused(&node, 2, same, "cannot be broadcast to input 0");
    struct op_case c;
    node.attr.int_add.to = RFX_TYPE_UINT8;
    op_case_begin(&c, 2, mixed, 1);
    assert_int_equal(op_case_add(&c, &node), RFX_STATUS_MALFORMED);
    assert_non_null(strstr(c.err.text, "input 1 is not a feature map"));
    for (int n = 0; n < 2; n++) {
        c.n_in = n;
        assert_int_equal(op_case_add(&c, &node), RFX_STATUS_MALFORMED);
        assert_non_null(strstr(c.err.text, "needs 2"));
    }
    c.n_in = 2;
    op_case_end(&c);
    static const struct {
        enum rfx_type to;
        int32_t in_zero, out_zero;
        const char *words;
    } wrong[] = {{RFX_TYPE_FLOAT32, 0, 0, "to float32"},
                 {RFX_TYPE_INT32, 0, 0, "to int32"},
                 {RFX_TYPE_INT8, 256, 0, "zero point 256 of uint8"},
                 {RFX_TYPE_INT8, -1, 0, "zero point -1 of uint8"},
                 {RFX_TYPE_INT8, 0, 128, "zero point 128 of int8"},
                 {RFX_TYPE_INT8, 0, -129, "zero point -129 of int8"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        node = mean_of(wrong[i].to, wrong[i].in_zero, wrong[i].out_zero, 1, 1);
        op_case_refused(&node, 1, &map, wrong[i].words);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums_of_maps),
                                       cmocka_unit_test(broadcast),
                                       cmocka_unit_test(sums_of_plain_tensors),
                                       cmocka_unit_test(sums_are_fused),
                                       cmocka_unit_test(means),
                                       cmocka_unit_test(states_in_any_order),
                                       cmocka_unit_test(soundness),
                                       cmocka_unit_test(refusals)};
    if (test_skip()) return TEST_SKIPPED;
    return cmocka_run_group_tests_name("quantised", tests, NULL, NULL);
}
