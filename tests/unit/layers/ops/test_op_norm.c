/* Norms and reductions over channels, and norms by statistics over space: values by hand, where a
 * norm of rounded statistics would miss them, and what is refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/run/op_cases.h"
#include "tests/support/run/op_partition.h"

static struct rfx_node channel_norm(enum rfx_channel_norm kind, float eps) {
    struct rfx_node node = {.op = RFX_OP_CHANNEL_NORM};
    node.attr.channel_norm.kind = kind;
    node.attr.channel_norm.eps = eps;
    node.attr.channel_norm.scale = node.attr.channel_norm.shift = -1;
    return node;
}

/* Two pixels of two channels. */
static void channels_by_hand(void **state) {
    (void)state;
    const float x[4] = {3, -4, 6, 6};
    static const float reduced[RFX_REDUCE_COUNT][2] = {
        [RFX_REDUCE_MEAN] = {-0.5f, 6},     [RFX_REDUCE_MAX] = {3, 6},
        [RFX_REDUCE_SUM] = {-1, 12},        [RFX_REDUCE_MIN] = {-4, 6},
        [RFX_REDUCE_L1] = {7, 12},          [RFX_REDUCE_L2] = {5, 8.48528137f},
        [RFX_REDUCE_SUM_SQUARE] = {25, 72}, [RFX_REDUCE_PROD] = {-12, 36},
        [RFX_REDUCE_ARG_MAX] = {0, 0},      [RFX_REDUCE_ARG_MAX_LAST] = {0, 1},
        [RFX_REDUCE_ARG_MIN] = {1, 0},      [RFX_REDUCE_ARG_MIN_LAST] = {1, 1}};
    for (int kind = 0; kind < RFX_REDUCE_COUNT; kind++) {
        struct rfx_node reduce = {.op = RFX_OP_CHANNEL_REDUCE};
        reduce.attr.reduce.kind = (enum rfx_reduce_kind)kind;
        op_partition_expect(&reduce, 2, 1, 2, x, reduced[kind], 2);
    }
    struct rfx_node n = channel_norm(RFX_NORM_LAYER, 0.25f); /* deviations sqrt(12.25 + .25), .5 */
    op_partition_expect(&n, 2, 1, 2, x, (const float[]){0.989949494f, -0.989949494f, 0, 0}, 4);
    n = channel_norm(RFX_NORM_RMS, 0.0f);
    op_partition_expect(&n, 2, 1, 2, x, (const float[]){0.848528137f, -1.13137085f, 1, 1}, 4);
    n = channel_norm(RFX_NORM_L1, 0.0f);
    op_partition_expect(&n, 2, 1, 2, x, (const float[]){3 / 7.0f, -4 / 7.0f, 0.5f, 0.5f}, 4);
    n = channel_norm(RFX_NORM_L2, 0.0f);
    op_partition_expect(&n, 2, 1, 2, x, (const float[]){0.6f, -0.8f, 0.707106781f, 0.707106781f},
                        4);
    op_partition_expect(&n, 2, 1, 2, (const float[4]){0, 0, 0, 5}, (const float[]){0, 0, 0, 1}, 4);
}

/* A NaN is largest and smallest; the first of several, or the last. */
static void nan_is_found(void **state) {
    (void)state;
    const float x[10] = {1, 2, NAN, NAN, 0, NAN, 3, 4, 5, 3};
    static const enum rfx_reduce_kind kinds[] = {RFX_REDUCE_ARG_MAX, RFX_REDUCE_ARG_MAX_LAST,
                                                 RFX_REDUCE_ARG_MIN, RFX_REDUCE_ARG_MIN_LAST};
    static const float found[][2] = {{2, 0}, {3, 0}, {2, 0}, {3, 0}};
    for (int i = 0; i < 4; i++) {
        struct rfx_node reduce = {.op = RFX_OP_CHANNEL_REDUCE};
        reduce.attr.reduce.kind = kinds[i];
        op_partition_expect(&reduce, 5, 1, 2, x, found[i], 2);
    }
}

static struct rfx_node moments_of(int64_t groups, float eps) {
    struct rfx_node node = {.op = RFX_OP_MOMENTS};
    node.attr.moments.groups = groups;
    node.attr.moments.eps = eps;
    return node;
}

static void moments_by_hand(void **state) {
    (void)state;
    const float x[8] = {1, 5, 3, 7, 1, 5, 3, 7}; /* channels 1 3 1 3 and 5 7 5 7 */
    struct rfx_node m = moments_of(2, 3.0f);     /* variances 1 */
    op_partition_expect(&m, 2, 2, 2, x, (const float[]){2, 6, 0.5f, 0.5f}, 4);
    m = moments_of(1, 4.0f); /* variance 5 around 4 */
    op_partition_expect(&m, 2, 2, 2, x, (const float[]){4, 4, 1 / 3.0f, 1 / 3.0f}, 4);
}

/* A channel 4096 + {0, 1/64}: squares rounded to float would say that the variance is 0 or worse.
 */
static void far_from_zero(void **state) {
    (void)state;
    const float x[4] = {4096.0f, 4096.015625f, 4096.015625f, 4096.0f};
    struct rfx_node m = moments_of(1, 0.0f);
    op_partition_expect(&m, 1, 2, 2, x, (const float[]){4096.0078125f, 128}, 2);
}

/* NORMALISE in random rectangles, scale and shift of c values, of one or none. */
static void normalise_cases(void **state) {
    (void)state;
    for (unsigned i = 0; i < 24; i++) {
        int64_t c = 1 + i % 3 * 17, one = 1;
        struct rfx_tensor inputs[2] = {rfx_tensor_nhwc(c, 5 + i % 4, 7 + i % 5),
                                       rfx_tensor_nhwc(2 * c, 1, 1)};
        struct op_case oc;
        op_case_begin(&oc, 2, inputs, i + 1);
        struct rfx_node node = {.op = RFX_OP_NORMALISE, .attr.affine = {-1, -1}};
        if (i % 4 != 0)
            node.attr.affine.scale = op_case_weight(&oc, 1, i % 4 == 1 ? &one : &c, 0.5f, 1.5f);
        if (i % 3 != 0)
            node.attr.affine.shift = op_case_weight(&oc, 1, i % 3 == 1 ? &one : &c, -1.0f, 1.0f);
        if (i % 2 != 0) node.act = (struct rfx_act){RFX_ACT_LEAKY_RELU, 0.1f, 0, -1};
        assert_int_equal(op_case_add(&oc, &node), RFX_OK);
        op_case_check(&oc, 1e-6, 8, "normalise");
        op_case_end(&oc);
    }
}

static void refusals(void **state) {
    (void)state;
    const struct rfx_tensor maps[2] = {rfx_tensor_nhwc(6, 3, 3), rfx_tensor_nhwc(6, 1, 1)};
    struct rfx_node m = moments_of(4, 0.0f);
    op_case_refused(&m, 1, maps, "6 channels in 4 groups");
    m = moments_of(0, 0.0f);
    op_case_refused(&m, 1, maps, "6 channels in 0 groups");
    struct rfx_node n = {.op = RFX_OP_NORMALISE, .attr.affine = {-1, -1}};
    op_case_refused(&n, 2, maps, "moments of 6x1x1 for 6 channels");
    struct rfx_node g = {.op = RFX_OP_GLOBAL_POOL, .attr.global_pool = {RFX_REDUCE_L2}};
    op_case_refused(&g, 1, maps, "made of sums");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(channels_by_hand), cmocka_unit_test(nan_is_found),
        cmocka_unit_test(moments_by_hand),  cmocka_unit_test(far_from_zero),
        cmocka_unit_test(normalise_cases),  cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
