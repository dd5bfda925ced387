/* Convert: float32 to integers and back, against libm's rounding; maps in any rectangle and in ring
 * buffers, and PLAIN tensors of several pieces, for any number of threads. */
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

enum { C = 5, H = 7, W = 11, LONG = 40001 };

static const struct {
    enum rfx_type type;
    double lo, hi;
} kinds[] = {{RFX_TYPE_UINT8, 0, 255},
             {RFX_TYPE_INT8, -128, 127},
             {RFX_TYPE_INT32, -2147483648.0, 2147483647.0}};

/* Element i of the input: halves, values outside the range of bytes, infinities and NaN. */
static float value(int64_t i) {
    if (i % 97 == 13) return i % 2 == 0 ? INFINITY : NAN;
    return (float)(i % 1201 - 600) * 0.5f;
}

static double integer(int64_t i, int kind) {
    double v = rint((double)value(i));
    return isnan(v) ? 0.0 : fmin(fmax(v, kinds[kind].lo), kinds[kind].hi);
}

static double element(enum rfx_type type, const void *at, int64_t i) {
    switch ((int)type) {
        case RFX_TYPE_UINT8:
            return ((const uint8_t *)at)[i];
        case RFX_TYPE_INT8:
            return ((const int8_t *)at)[i];
        case RFX_TYPE_INT32:
            return ((const int32_t *)at)[i];
        default:
            return (double)((const float *)at)[i];
    }
}

static struct rfx_node convert_to(enum rfx_type to) {
    return (struct rfx_node){.op = RFX_OP_CONVERT, .attr.convert = {to}};
}

static void run(const struct test_net *net, int node, const struct rfx_view *in,
                struct rfx_view out, struct rfx_rect rect, int threads) {
    const struct rfx_run_args args = {.graph = net->graph,
                                      .node = &net->graph->nodes[node],
                                      .in = in,
                                      .out = out,
                                      .rect = rect,
                                      .threads = threads};
    rfx_op_run(&args);
}

/* A rectangle of a map whose pixels are wider than its channels; all else must stay unchanged. */
static void maps_in_rectangles(void **state) {
    (void)state;
    enum { WIDE = C + 3, RING = 4 };
    float values[H * W * C], back[H * W * C];
    unsigned char out[H * W * WIDE * 4];
    for (int64_t i = 0; i < H * W * C; i++) values[i] = value(i);
    for (int kind = 0; kind < 3; kind++)
        for (int threads = 1; threads <= 3; threads++) {
            struct test_net net = test_net_begin(C, H, W);
            int there = test_net_put(&net, convert_to(kinds[kind].type), 0, -1);
            int again = test_net_put(&net, convert_to(RFX_TYPE_FLOAT32), there, -1);
            const struct rfx_rect full = rfx_rect_full(H, W), rect = rfx_rect_make(2, 6, 3, 10);
            const struct rfx_view in = rfx_view_dense(values, full, C);
            struct rfx_view to = rfx_view_of(&net.graph->nodes[there].out, out, full);
            int64_t seen = 0;
            to.c = WIDE;
            to.row_stride = W * WIDE;
            to.ring_rows = RING;
            memset(out, 77, sizeof out);
            run(&net, there, &in, to, rect, threads);
            for (int64_t i = 0; i < H * W * C; i++) {
                int64_t y = i / C / W, x = i / C % W;
                bool inside = y >= 2 && y < 6 && x >= 3 && x < 10;
                if (inside)
                    assert_true(element(to.type, rfx_view_at(&to, y, x), i % C) ==
                                integer(i, kind));
            }
            for (size_t i = 0; i < sizeof out; i++) seen += out[i] != 77;
            assert_in_range(seen, 1, 4 * 7 * C * (int64_t)rfx_type_bytes(to.type));
            run(&net, again, &to, rfx_view_dense(back, full, C), rect, threads);
            assert_true(back[(2 * W + 3) * C] == (float)integer((2 * W + 3) * C, kind));
            assert_true(back[(5 * W + 9) * C + 4] == (float)integer((5 * W + 9) * C + 4, kind));
            test_net_end(&net);
        }
}

/* More elements than two work items have. */
static void plain_tensors(void **state) {
    (void)state;
    float *values = malloc(LONG * sizeof *values), *back = malloc(LONG * sizeof *back);
    unsigned char *out = malloc(LONG * 4);
    const struct rfx_rect one = rfx_rect_full(1, 1);
    for (int64_t i = 0; i < LONG; i++) values[i] = value(i);
    for (int kind = 0; kind < 3; kind++)
        for (int threads = 1; threads <= 3; threads += 2) {
            struct test_net net = test_net_begin(1, 1, 1);
            int line = test_net_line(&net, LONG);
            int there = test_net_put(&net, convert_to(kinds[kind].type), line, -1);
            int again = test_net_put(&net, convert_to(RFX_TYPE_FLOAT32), there, -1);
            const struct rfx_view in = rfx_view_of(&net.graph->nodes[line].out, values, one);
            const struct rfx_view to = rfx_view_of(&net.graph->nodes[there].out, out, one);
            run(&net, there, &in, to, one, threads);
            run(&net, again, &to, rfx_view_of(&net.graph->nodes[again].out, back, one), one,
                threads);
            for (int64_t i = 0; i < LONG; i++) {
                assert_true(element(to.type, out, i) == integer(i, kind));
                assert_true(back[i] == (float)integer(i, kind));
            }
            test_net_end(&net);
        }
    free(values);
    free(back);
    free(out);
}

static void refusals(void **state) {
    (void)state;
    struct test_net net = test_net_begin(C, H, W);
    struct rfx_error err = {{0}};
    int index, bytes = test_net_put(&net, convert_to(RFX_TYPE_UINT8), 0, -1);
    const struct {
        enum rfx_type to;
        int from;
        const char *why;
    } cases[] = {{RFX_TYPE_FLOAT32, 0, "from float32 to float32 is no conversion"},
                 {RFX_TYPE_INT64, 0, "from float32 to int64 is no conversion"},
                 {RFX_TYPE_INT8, bytes, "from uint8 to int8 is no conversion"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(
            test_net_try(&net, convert_to(cases[i].to), cases[i].from, -1, &index, &err),
            RFX_STATUS_UNSUPPORTED);
        if (strstr(err.text, cases[i].why) == NULL) fail_msg("%s", err.text);
    }
    assert_int_equal(test_net_try(&net, convert_to(RFX_TYPE_INT8), 0, 0, &index, &err),
                     RFX_STATUS_MALFORMED);
    assert_non_null(strstr(err.text, "has 2 inputs, needs 1"));
    test_net_end(&net);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(maps_in_rectangles),
                                       cmocka_unit_test(plain_tensors), cmocka_unit_test(refusals)};
    return cmocka_run_group_tests_name("convert", tests, NULL, NULL);
}
