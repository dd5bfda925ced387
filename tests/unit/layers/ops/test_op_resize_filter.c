/* Resize by a kernel: values by hand, all coordinates and scales against the naive reference and in
 * rectangles, and what it refuses. */
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
// clang-format on

#include "tests/support/run/op_cases.h"
#include "tests/support/run/op_partition.h"

static struct rfx_node row_of(enum rfx_resize_mode mode, float scale, int64_t ow) {
    return (struct rfx_node){.op = RFX_OP_RESIZE,
                             .attr.resize = {.mode = mode,
                                             .coord = RFX_COORD_HALF_PIXEL,
                                             .scale_h = 1.0f,
                                             .scale_w = scale,
                                             .oh = 1,
                                             .ow = ow,
                                             .cubic_a = -0.5f}};
}

static void test_by_hand(void **state) {
    (void)state;
    const float step[4] = {0, 0, 16, 16}, ramp[4] = {0, 8, 16, 24};
    /* at 0.5: kernel of -1/2 at distances 1.5, 0.5, 0.5, 1.5 is -1/16, 9/16, 9/16, -1/16 */
    struct rfx_node n = row_of(RFX_RESIZE_CUBIC, 0.5f, 2);
    op_partition_expect(&n, 1, 1, 4, step, (const float[]){-1, 17}, 2);
    /* at 2.5 one tap is outside: its weight goes to the border, or nowhere and 17/16 remain */
    op_partition_expect(&n, 1, 1, 4, ramp, (const float[]){3.5f, 20.5f}, 2);
    n.attr.resize.exclude_outside = true;
    const float outside[4] = {0, 17, 0, 17};
    op_partition_expect(&n, 1, 1, 4, outside, (const float[]){9, 8}, 2);
    /* a triangle twice as wide: 1/8, 3/8, 3/8, 1/8 around 0.5 and 2.5 */
    n = row_of(RFX_RESIZE_LINEAR, 0.5f, 2);
    n.attr.resize.antialias = true;
    op_partition_expect(&n, 1, 1, 4, ramp, (const float[]){5, 19}, 2);
    /* 1/8 of each is outside of 4 columns: weights of the others are divided by 7/8 */
    n.attr.resize.exclude_outside = true;
    const float sevens[4] = {0, 7, 14, 21};
    op_partition_expect(&n, 1, 1, 4, sevens, (const float[]){5, 16}, 2);
    /* whole positions are read alone, whatever stands beside them */
    n = row_of(RFX_RESIZE_CUBIC, 1.75f, 7);
    n.attr.resize.coord = RFX_COORD_ALIGN_CORNERS;
    op_partition_expect(&n, 1, 1, 4, ramp, (const float[]){0, 3.5f, 8, 12, 16, 20.5f, 24}, 7);
    /* around the middle: 3 of the 4 columns that 8 become, the outer ones a column further in */
    n = row_of(RFX_RESIZE_LINEAR, 0.5f, 3);
    n.attr.resize.coord = RFX_COORD_HALF_PIXEL_SYMMETRIC;
    const float eight[8] = {0, 4, 8, 12, 16, 20, 24, 28};
    op_partition_expect(&n, 1, 1, 8, eight, (const float[]){6, 14, 22}, 3);
}

static void check(int number, enum rfx_resize_coord coord, float scale_h, float scale_w) {
    const struct rfx_tensor input = rfx_tensor_nhwc(1 + number % 5, 13, 18);
    struct rfx_node n = {.op = RFX_OP_RESIZE};
    struct rfx_resize_attr *a = &n.attr.resize;
    a->mode = number % 3 == 0 ? RFX_RESIZE_LINEAR : RFX_RESIZE_CUBIC;
    a->coord = coord;
    a->scale_h = scale_h;
    a->scale_w = scale_w;
    a->oh = (int64_t)(13.0f * scale_h);
    a->ow = (int64_t)(18.0f * scale_w);
    a->cubic_a = number % 2 == 0 ? -0.75f : -0.5f;
    a->antialias = number % 3 != 1;
    a->exclude_outside = number % 4 < 2;
    struct op_case c;
    char what[48];
    (void)snprintf(what, sizeof what, "filter %d", number);
    op_case_begin(&c, 1, &input, (uint64_t)number);
    if (op_case_add(&c, &n) != RFX_OK) fail_msg("%s: %s", what, c.err.text);
    /* positions up to 18 are rounded to float, 2^-20, and slopes are up to 2 per pixel */
    op_case_check(&c, 4e-6, 12, what);
    op_case_end(&c);
}

static void test_all_forms(void **state) {
    (void)state;
    static const float scales[] = {0.25f, 0.5f, 0.6f, 0.75f, 1.0f, 1.5f, 2.0f, 3.7f};
    int number = 0;
    for (int coord = 0; coord < 5; coord++)
        for (int s = 0; s < 8; s++, number++)
            check(number, (enum rfx_resize_coord)coord, scales[s], scales[(3 * s + coord) % 8]);
}

static void test_refuses_scales_of_nothing(void **state) {
    (void)state;
    const struct rfx_tensor input = rfx_tensor_nhwc(1, 13, 18);
    struct rfx_node n = row_of(RFX_RESIZE_CUBIC, 1e-9f, 1);
    op_case_refused(&n, 1, &input, "shrink 13 x 18 to nothing");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_by_hand),
                                       cmocka_unit_test(test_all_forms),
                                       cmocka_unit_test(test_refuses_scales_of_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
