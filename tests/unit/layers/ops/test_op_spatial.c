/* Every spatial op of one input: values by hand on small maps, and random rectangles against the
 * whole run, bit by bit. */
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
// clang-format on

#include "tests/support/run/op_partition.h"

static const float ramp[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

static struct rfx_node pool(enum rfx_op op, int64_t k, int64_t s, int64_t d, int64_t pad,
                            bool ceil_mode, bool count_pad) {
    struct rfx_node n = {.op = op,
                         .attr.pool = {.kh = k,
                                       .kw = k,
                                       .sh = s,
                                       .sw = s,
                                       .dh = d,
                                       .dw = d,
                                       .pads = {pad, pad, pad, pad},
                                       .ceil_mode = ceil_mode,
                                       .count_include_pad = count_pad,
                                       .p = 2}};
    return n;
}

static struct rfx_node resize(enum rfx_resize_mode mode, enum rfx_resize_coord coord,
                              enum rfx_resize_nearest nearest, float scale, int64_t oh,
                              int64_t ow) {
    struct rfx_node n = {.op = RFX_OP_RESIZE,
                         .attr.resize = {.mode = mode,
                                         .coord = coord,
                                         .nearest = nearest,
                                         .scale_h = scale,
                                         .scale_w = scale,
                                         .oh = oh,
                                         .ow = ow}};
    return n;
}

static struct rfx_node pad(enum rfx_pad_mode mode, int64_t t, int64_t l, int64_t b, int64_t r) {
    struct rfx_node n = {.op = RFX_OP_PAD, .attr.pad = {{t, l, b, r}, mode, -9.0f}};
    return n;
}

static void test_pools_by_hand(void **state) {
    (void)state;
    struct rfx_node n = pool(RFX_OP_POOL_MAX, 3, 2, 1, 1, false, false);
    op_partition_expect(&n, 1, 4, 4, ramp, (const float[]){5, 7, 13, 15}, 4);
    n = pool(RFX_OP_POOL_MAX, 2, 1, 2, 0, false, false); /* taps two apart */
    op_partition_expect(&n, 1, 4, 4, ramp, (const float[]){10, 11, 14, 15}, 4);
    n = pool(RFX_OP_POOL_MAX, 3, 2, 1, 0, true, false);
    op_partition_expect(&n, 1, 4, 4, ramp, (const float[]){10, 11, 14, 15}, 4);
    /* a third window would start in the lower padding: dropped */
    n = pool(RFX_OP_POOL_MAX, 2, 2, 1, 1, true, false);
    op_partition_expect(&n, 1, 3, 3, ramp, (const float[]){0, 2, 6, 8}, 4);
    n = pool(RFX_OP_POOL_AVG, 3, 2, 1, 1, false, false);
    op_partition_expect(&n, 1, 4, 4, ramp, (const float[]){2.5f, 4, 8.5f, 10}, 4);
    n = pool(RFX_OP_POOL_AVG, 2, 2, 1, 1, false, true);
    op_partition_expect(&n, 1, 2, 2, ramp, (const float[]){0, 0.25f, 0.5f, 0.75f}, 4);
    /* kernel 3, stride 2, ceil: the last window has 2 x 2 positions inside */
    n = pool(RFX_OP_POOL_AVG, 3, 2, 1, 0, true, true);
    op_partition_expect(&n, 1, 4, 4, ramp, (const float[]){5, 6.5f, 11, 12.5f}, 4);
    const float three_four[4] = {3, -4, 0, 0}, ones[4] = {-1, 1, 1, -1};
    n = pool(RFX_OP_POOL_LP, 2, 1, 1, 0, false, false);
    op_partition_expect(&n, 1, 2, 2, three_four, (const float[]){5}, 1);
    n.attr.pool.p = 1;
    op_partition_expect(&n, 1, 2, 2, three_four, (const float[]){7}, 1);
    n = pool(RFX_OP_POOL_LP, 2, 1, 1, 1, false, false); /* padding is zero */
    op_partition_expect(&n, 1, 1, 2, three_four, (const float[]){3, 5, 4, 3, 5, 4}, 6);
    n.attr.pool.p = 4;
    op_partition_expect(&n, 1, 1, 1, ones, (const float[]){1, 1, 1, 1}, 4);
    n = pool(RFX_OP_POOL_LP, 4, 1, 1, 0, false, false);
    n.attr.pool.p = 4; /* fourth root of 16 */
    const float sixteen[16] = {1, -1, 1, 1, 1, 1, -1, 1, 1, 1, 1, -1, 1, 1, 1, 1};
    op_partition_expect(&n, 1, 4, 4, sixteen, (const float[]){2}, 1);
    n = pool(RFX_OP_POOL_LP, 2, 1, 1, 0, false, false);
    n.attr.pool.p = 3; /* 27 + 64 + 125 = 6^3; no power is too large, nor a NaN lost */
    op_partition_expect(&n, 1, 2, 2, (const float[]){3, -4, 5, 0}, (const float[]){6}, 1);
    op_partition_expect(&n, 1, 2, 2, (const float[]){0, 0, 0, 0}, (const float[]){0}, 1);
    n.attr.pool.p = 1000;
    op_partition_expect(&n, 1, 2, 2, (const float[]){3e38f, 1, 0, -2}, (const float[]){3e38f}, 1);
    op_partition_expect(&n, 1, 2, 2, (const float[]){1, -INFINITY, 2, 0}, (const float[]){INFINITY},
                        1);
    struct rfx_tensor shape;
    float *nans =
        op_partition_run(&n, 1, 2, 3, (const float[]){1, 2, INFINITY, 0, NAN, 1}, 20, 7, &shape);
    assert_true(isnan(nans[0]) && isnan(nans[1]));
    free(nans);
    struct rfx_node a = {.op = RFX_OP_POOL_ADAPTIVE_AVG, .attr.adaptive = {2, 2}};
    op_partition_expect(&a, 1, 3, 3, ramp, (const float[]){2, 3, 5, 6}, 4);
}

static void test_resize_by_hand(void **state) {
    (void)state;
    struct rfx_node n =
        resize(RFX_RESIZE_NEAREST, RFX_COORD_ASYMMETRIC, RFX_NEAREST_FLOOR, 2, 2, 4);
    op_partition_expect(&n, 1, 1, 2, ramp + 1, (const float[]){1, 1, 2, 2, 1, 1, 2, 2}, 8);
    n = resize(RFX_RESIZE_LINEAR, RFX_COORD_HALF_PIXEL, RFX_NEAREST_FLOOR, 2, 2, 4);
    op_partition_expect(&n, 1, 1, 2, ramp, (const float[]){0, .25f, .75f, 1, 0, .25f, .75f, 1}, 8);
    n = resize(RFX_RESIZE_LINEAR, RFX_COORD_ALIGN_CORNERS, RFX_NEAREST_FLOOR, 1.5f, 3, 3);
    op_partition_expect(&n, 1, 2, 2, ramp, (const float[]){0, .5f, 1, 1, 1.5f, 2, 2, 2.5f, 3}, 9);
    n = resize(RFX_RESIZE_NEAREST, RFX_COORD_HALF_PIXEL, RFX_NEAREST_ROUND_PREFER_FLOOR, .5f, 2, 2);
    op_partition_expect(&n, 1, 4, 4, ramp, (const float[]){0, 2, 8, 10}, 4);
    n = resize(RFX_RESIZE_NEAREST, RFX_COORD_HALF_PIXEL, RFX_NEAREST_ROUND_PREFER_CEIL, .5f, 2, 2);
    op_partition_expect(&n, 1, 4, 4, ramp, (const float[]){5, 7, 13, 15}, 4);
}

static void test_pads_and_crops_by_hand(void **state) {
    (void)state;
    struct rfx_node n = pad(RFX_PAD_CONSTANT, 1, 1, 0, 0);
    op_partition_expect(&n, 1, 2, 2, ramp, (const float[]){-9, -9, -9, -9, 0, 1, -9, 2, 3}, 9);
    n = pad(RFX_PAD_REFLECT, 0, 2, 0, 1);
    op_partition_expect(&n, 1, 1, 3, ramp, (const float[]){2, 1, 0, 1, 2, 1}, 6);
    n = pad(RFX_PAD_EDGE, 1, 1, 0, -1);
    op_partition_expect(&n, 1, 2, 2, ramp, (const float[]){0, 0, 0, 0, 2, 2}, 6);
    n = pad(RFX_PAD_WRAP, 1, 1, 0, 2); /* rows 1 0 1, columns 2 0 1 2 0 1 */
    op_partition_expect(&n, 1, 2, 3, ramp,
                        (const float[]){5, 3, 4, 5, 3, 4, 2, 0, 1, 2, 0, 1, 5, 3, 4, 5, 3, 4}, 18);
    n = pad(RFX_PAD_WRAP, -1, -2, 1, 2); /* a roll by one row and two columns */
    op_partition_expect(&n, 1, 2, 3, ramp, (const float[]){5, 3, 4, 2, 0, 1}, 6);
    n = pad(RFX_PAD_WRAP, 0, 0, 0, 7); /* around three times */
    op_partition_expect(&n, 1, 1, 2, ramp, (const float[]){0, 1, 0, 1, 0, 1, 0, 1, 0}, 9);
    struct rfx_node crop = {.op = RFX_OP_CROP, .attr.crop = {3, 1, -2, 2, 2, 2}};
    op_partition_expect(&crop, 1, 4, 4, ramp, (const float[]){13, 15, 5, 7}, 4);
}

static void test_channels_by_hand(void **state) {
    (void)state;
    struct rfx_node d = {.op = RFX_OP_DEPTH_TO_SPACE, .attr.depth = {2, false}};
    op_partition_expect(&d, 8, 1, 1, ramp, ramp, 8);
    d.attr.depth.column_major = true;
    op_partition_expect(&d, 8, 1, 1, ramp, (const float[]){0, 4, 1, 5, 2, 6, 3, 7}, 8);
    struct rfx_node s = {.op = RFX_OP_SPACE_TO_DEPTH, .attr.depth = {2, false}};
    op_partition_expect(&s, 1, 2, 4, ramp, (const float[]){0, 1, 4, 5, 2, 3, 6, 7}, 8);
    int64_t map[3] = {1, 0, 1};
    struct rfx_node c = {.op = RFX_OP_CHANNEL_SELECT, .attr.select = {3, map}};
    op_partition_expect(&c, 2, 1, 2, ramp, (const float[]){1, 0, 1, 3, 2, 3}, 6);
    map[1] = -1; /* a channel of zeros */
    op_partition_expect(&c, 2, 1, 2, ramp, (const float[]){1, 0, 1, 3, 0, 3}, 6);
    int64_t runs[8] = {4, 5, 6, 7, -1, -1, -1, -1}; /* channels that follow each other */
    c.attr.select.map = runs;
    c.attr.select.count = 8;
    op_partition_expect(&c, 8, 1, 2, ramp,
                        (const float[]){4, 5, 6, 7, 0, 0, 0, 0, 12, 13, 14, 15, 0, 0, 0, 0}, 16);
    struct rfx_node l = {.op = RFX_OP_LRN, .attr.lrn = {3, 3.0f, 0.5f, 0.0f}};
    op_partition_expect(&l, 2, 1, 1, (const float[]){3, 4}, (const float[]){.6f, .8f}, 2);
}

static void test_global_pools_by_hand(void **state) {
    (void)state;
    const float x[6] = {1e30f, -1, 1, -3, -1e30f, -8};
    struct rfx_node g = {.op = RFX_OP_GLOBAL_POOL, .attr.global_pool = {RFX_REDUCE_SUM}};
    op_partition_expect(&g, 2, 3, 1, x, (const float[]){1, -12}, 2);
    g.attr.global_pool.kind = RFX_REDUCE_MEAN;
    op_partition_expect(&g, 2, 3, 1, x, (const float[]){1.0f / 3.0f, -4}, 2);
    g.attr.global_pool.kind = RFX_REDUCE_MAX;
    op_partition_expect(&g, 2, 3, 1, x, (const float[]){1e30f, -1}, 2);
    g.attr.global_pool.kind = RFX_REDUCE_MIN;
    op_partition_expect(&g, 2, 3, 1, x, (const float[]){-1e30f, -8}, 2);
}

static void partition(const struct rfx_node *node, int64_t c, int64_t h, int64_t w, unsigned seed) {
    float *x = malloc((size_t)(c * h * w) * sizeof *x);
    struct rfx_tensor shape;
    op_partition_fill(x, c * h * w, seed);
    free(op_partition_run(node, c, h, w, x, 60, seed, &shape));
    free(x);
}

static void test_rectangles(void **state) {
    (void)state;
    for (unsigned i = 0; i < 24; i++) {
        int64_t h = 7 + i % 5 * 6, w = 9 + i % 7 * 5, c = 1 + i % 3 * 17;
        struct rfx_node n = pool(i % 2 ? RFX_OP_POOL_MAX : RFX_OP_POOL_AVG, 2 + i % 2, 1 + i % 3,
                                 1 + i % 4 / 3, i % 2, i % 3 == 0, i % 5 < 2);
        partition(&n, c, h, w, i);
        struct rfx_node a = {.op = RFX_OP_POOL_ADAPTIVE_AVG, .attr.adaptive = {5, 4}};
        partition(&a, c, h, w, i);
        n = pad((enum rfx_pad_mode)(i % 3), (int64_t)(i % 5) - 1, 2, 3, (int64_t)(i % 4) - 2);
        partition(&n, c, h, w, i);
        float scale = 0.4f + 0.3f * (float)(i % 9);
        n = resize((enum rfx_resize_mode)(i % 2), (enum rfx_resize_coord)(i / 2 % 4),
                   (enum rfx_resize_nearest)(i / 3 % 4), scale, (int64_t)((float)h * scale),
                   (int64_t)((float)w * scale));
        partition(&n, c, h, w, i);
        struct rfx_node g = {.op = RFX_OP_GLOBAL_POOL,
                             .attr.global_pool = {(enum rfx_reduce_kind)(i % 4)}};
        partition(&g, c, h * 4, w * 4, i);
        struct rfx_node d = {.op = i % 2 ? RFX_OP_DEPTH_TO_SPACE : RFX_OP_SPACE_TO_DEPTH,
                             .attr.depth = {3, i % 4 < 2}};
        partition(&d, 9, h / 3 * 3, w / 3 * 3, i);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pools_by_hand),          cmocka_unit_test(test_resize_by_hand),
        cmocka_unit_test(test_pads_and_crops_by_hand), cmocka_unit_test(test_channels_by_hand),
        cmocka_unit_test(test_global_pools_by_hand),   cmocka_unit_test(test_rectangles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
