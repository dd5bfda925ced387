/* Convert: float32 to integers and back, against libm's rounding; maps in any rectangle and in ring
 * buffers, and PLAIN tensors of several pieces, for any number of threads. With a scale:
 * QuantizeLinear and DequantizeLinear. */
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
    return (struct rfx_node){.op = RFX_OP_CONVERT, .attr.convert = {.to = to}};
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

static const float scales[] = {1.0f, 0.5f, 0.1f, 0.0123f, 3.0f, 0x1p-140f, 0x1p120f};

/* The value of element i for a scale: halves of a step, values out of range, infinities, NaN. */
static float scaled(int64_t i, float scale) {
    return value(i) * scale;
}

static double quantised(float x, float scale, int32_t zero, int kind) {
    double v = (double)(x / scale);
    return isnan(v) ? zero : fmin(fmax(rint(v) + zero, kinds[kind].lo), kinds[kind].hi);
}

static struct rfx_node convert_by(enum rfx_type to, float scale, int32_t zero) {
    return (struct rfx_node){.op = RFX_OP_CONVERT,
                             .attr.convert = {.to = to, .scale = scale, .zero_point = zero}};
}

/* QuantizeLinear and back, of a PLAIN tensor, and of a rectangle of a map in wide pixels. */
static void check_scale(float scale, int32_t zero, int kind, int threads) {
    enum { WIDE = C + 2 };
    static float values[LONG], back[LONG];
    static unsigned char out[LONG], wide[H * W * WIDE];
    const struct rfx_rect one = rfx_rect_full(1, 1), full = rfx_rect_full(H, W);
    struct test_net net = test_net_begin(C, H, W);
    int line = test_net_line(&net, LONG), made[2], again[2], in[2] = {line, 0};
    for (int k = 0; k < 2; k++) {
        made[k] = test_net_put(&net, convert_by(kinds[kind].type, scale, zero), in[k], -1);
        again[k] = test_net_put(&net, convert_by(RFX_TYPE_FLOAT32, scale, zero), made[k], -1);
    }
    for (int64_t i = 0; i < LONG; i++) values[i] = scaled(i, scale);
    const struct rfx_view to = rfx_view_of(&net.graph->nodes[made[0]].out, out, one),
                          from = rfx_view_of(&net.graph->nodes[line].out, values, one);
    run(&net, made[0], &from, to, one, threads);
    run(&net, again[0], &to, rfx_view_of(&net.graph->nodes[again[0]].out, back, one), one, threads);
    for (int64_t i = 0; i < LONG; i++) {
        double q = quantised(values[i], scale, zero, kind);
        if (element(to.type, out, i) != q)
            fail_msg("%a / %a + %d of %s", (double)values[i], (double)scale, (int)zero,
                     rfx_type_name(to.type));
        assert_true(back[i] == (float)(q - zero) * scale);
    }
    const struct rfx_view map = rfx_view_dense(values, full, C);
    struct rfx_view pixels = rfx_view_of(&net.graph->nodes[made[1]].out, wide, full);
    const struct rfx_rect rect = rfx_rect_make(1, 6, 2, 9);
    pixels.c = WIDE;
    pixels.row_stride = W * WIDE;
    memset(wide, 77, sizeof wide);
    run(&net, made[1], &map, pixels, rect, threads);
    for (int64_t i = 0; i < H * W * WIDE; i++) {
        int64_t y = i / WIDE / W, x = i / WIDE % W, c = i % WIDE;
        bool inside = y >= 1 && y < 6 && x >= 2 && x < 9 && c < C;
        if (inside)
            assert_true(element(pixels.type, wide, i) ==
                        quantised(values[(y * W + x) * C + c], scale, zero, kind));
        else
            assert_int_equal(wide[i], 77);
    }
    for (int64_t i = 0; i < H * W * C; i++) back[i] = 55.0f;
    run(&net, again[1], &pixels, rfx_view_dense(back, full, C), rect, threads);
    for (int64_t i = 0; i < H * W * C; i++) {
        int64_t y = i / C / W, x = i / C % W;
        bool inside = y >= 1 && y < 6 && x >= 2 && x < 9;
        double q = quantised(values[i], scale, zero, kind);
        assert_true(back[i] == (inside ? (float)(q - zero) * scale : 55.0f));
    }
    test_net_end(&net);
}

static void with_scales(void **state) {
    (void)state;
    for (int kind = 0; kind < 2; kind++)
        for (size_t s = 0; s < sizeof scales / sizeof *scales; s++) {
            int32_t lo = (int32_t)kinds[kind].lo;
            const int32_t zeros[] = {lo, lo + 255, lo + 128, lo + 27};
            for (int z = 0; z < 4; z++) check_scale(scales[s], zeros[z], kind, 1 + z % 3);
        }
}

/* The same numbers by hand: halves go to the even integer before the zero point is added. */
static void halves_by_hand(void **state) {
    (void)state;
    static const struct {
        float x, scale;
        int32_t zero;
        uint8_t want;
    } cases[] = {{0.5f, 1.0f, 1, 1},       {1.5f, 1.0f, 1, 3},         {2.5f, 1.0f, 1, 3},
                 {-0.5f, 1.0f, 1, 1},      {-1.5f, 1.0f, 7, 5},        {-2.5f, 1.0f, 7, 5},
                 {1.25f, 0.5f, 0, 2},      {254.5f, 1.0f, 0, 254},     {255.5f, 1.0f, 0, 255},
                 {INFINITY, 2.0f, 9, 255}, {-INFINITY, 2.0f, 9, 0},    {NAN, 2.0f, 9, 9},
                 {0.3f, 0.1f, 0, 3},       {1e30f, 1e-30f, 0, 255},    {-1e30f, 1e-30f, 255, 0},
                 {-0.0f, 1.0f, 255, 255},  {0x1p-149f, 1.0f, 128, 128}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct test_net net = test_net_begin(1, 1, 1);
        float x = cases[i].x;
        uint8_t got = 0;
        const struct rfx_rect one = rfx_rect_full(1, 1);
        int made =
            test_net_put(&net, convert_by(RFX_TYPE_UINT8, cases[i].scale, cases[i].zero), 0, -1);
        const struct rfx_view in = rfx_view_dense(&x, one, 1);
        run(&net, made, &in, rfx_view_of(&net.graph->nodes[made].out, &got, one), one, 1);
        if (got != cases[i].want) fail_msg("case %d: %d", (int)i, got);
        test_net_end(&net);
    }
}

static void refused_scales(void **state) {
    (void)state;
    struct test_net net = test_net_begin(C, H, W);
    struct rfx_error err = {{0}};
    int index, bytes = test_net_put(&net, convert_to(RFX_TYPE_INT8), 0, -1);
    const struct {
        enum rfx_type to;
        float scale;
        int32_t zero;
        int from;
        const char *why;
    } cases[] = {{RFX_TYPE_UINT8, -1.0f, 0, 0, "scale -1 and zero point 0 of uint8"},
                 {RFX_TYPE_UINT8, NAN, 0, 0, "scale nan"},
                 {RFX_TYPE_UINT8, 1.0f, 256, 0, "zero point 256 of uint8"},
                 {RFX_TYPE_UINT8, 1.0f, -1, 0, "zero point -1 of uint8"},
                 {RFX_TYPE_INT8, 1.0f, 128, 0, "zero point 128 of int8"},
                 {RFX_TYPE_FLOAT32, 1.0f, -129, bytes, "zero point -129 of int8"},
                 {RFX_TYPE_INT8, 0.0f, 1, 0, "scale 0 and zero point 1 of int8"},
                 {RFX_TYPE_INT32, 0.5f, 0, 0, "scale 0.5 and zero point 0 of int32"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(test_net_try(&net, convert_by(cases[i].to, cases[i].scale, cases[i].zero),
                                      cases[i].from, -1, &index, &err),
                         RFX_STATUS_UNSUPPORTED);
        if (strstr(err.text, cases[i].why) == NULL) fail_msg("%s", err.text);
    }
    test_net_end(&net);
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maps_in_rectangles), cmocka_unit_test(plain_tensors),
        cmocka_unit_test(with_scales),        cmocka_unit_test(halves_by_hand),
        cmocka_unit_test(refused_scales),     cmocka_unit_test(refusals)};
    if (test_skip()) return TEST_SKIPPED;
    return cmocka_run_group_tests_name("convert", tests, NULL, NULL);
}
