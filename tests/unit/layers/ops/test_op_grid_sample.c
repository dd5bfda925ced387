/* GridSample: values by hand, all its forms against the reference and in rectangles, places that
 * are no numbers, and grids that are none. */
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

static struct rfx_node form(enum rfx_resize_mode mode, enum rfx_grid_padding padding,
                            bool corners) {
    struct rfx_node node = {.op = RFX_OP_GRID_SAMPLE};
    node.attr.grid.mode = mode;
    node.attr.grid.padding = padding;
    node.attr.grid.align_corners = corners;
    return node;
}

/* A map and a grid of these values in the order of their pixels. */
static void begin(struct op_case *c, const struct rfx_tensor *inputs, const float *map,
                  const float *grid) {
    op_case_begin(c, 2, inputs, 1);
    memcpy(c->values[0], map, (size_t)inputs[0].elems * sizeof *map);
    memcpy(c->values[1], grid, (size_t)inputs[1].elems * sizeof *grid);
}

static void expect(struct rfx_node node, int64_t n, const float *grid, const float *wanted) {
    static const float map[4] = {0, 4, 8, 12}; /* a row */
    const struct rfx_tensor inputs[2] = {rfx_tensor_nhwc(1, 1, 4), rfx_tensor_nhwc(2, 1, n)};
    struct op_case c;
    begin(&c, inputs, map, grid);
    if (op_case_add(&c, &node) != RFX_OK) fail_msg("%s", c.err.text);
    float *got = op_case_whole(&c);
    for (int64_t i = 0; i < n; i++) assert_float_equal(got[i], wanted[i], 1e-5);
    free(got);
    op_case_end(&c);
}

/* Outer pixels' centres are at -3/4 and 3/4, with align_corners at -1 and 1. */
static void by_hand(void **state) {
    (void)state;
    static const float inside[] = {-0.75f, 0, -0.5f, 0, 0.75f, 0, 0.25f, 0};
    static const float outer[] = {-1, 0, 1, 0, 1.5f, 0};
    const enum rfx_resize_mode linear = RFX_RESIZE_LINEAR, nearest = RFX_RESIZE_NEAREST;
    expect(form(linear, RFX_GRID_ZEROS, false), 4, inside, (const float[]){0, 2, 12, 8});
    expect(form(linear, RFX_GRID_ZEROS, false), 3, outer, (const float[]){0, 6, 0});
    expect(form(linear, RFX_GRID_BORDER, false), 3, outer, (const float[]){0, 12, 12});
    expect(form(linear, RFX_GRID_REFLECTION, false), 3, outer, (const float[]){0, 12, 10});
    expect(form(linear, RFX_GRID_ZEROS, true), 3, outer, (const float[]){0, 12, 3});
    expect(form(linear, RFX_GRID_REFLECTION, true), 3, outer, (const float[]){0, 12, 9});
    /* 0.5 and 1.5 are halves: to the even neighbour */
    expect(form(nearest, RFX_GRID_ZEROS, false), 2, (const float[]){-0.5f, 0, 0, 0},
           (const float[]){0, 8});
    /* -1/16... of a cubic kernel of -3/4 half way between two pixels: -3/32, 19/32, 19/32, -3/32 */
    expect(form(RFX_RESIZE_CUBIC, RFX_GRID_ZEROS, false), 1, (const float[]){0, 0},
           (const float[]){6});
    expect(form(RFX_RESIZE_CUBIC, RFX_GRID_ZEROS, false), 1, (const float[]){0.5f, 0},
           (const float[]){19 / 32.0f * 20 - 3 / 32.0f * 4});
    /* half a pixel beyond the last: the kernel stays there, three of its taps are the border's */
    expect(form(RFX_RESIZE_CUBIC, RFX_GRID_BORDER, false), 1, (const float[]){1, 0},
           (const float[]){12 + 4 * 3 / 32.0f});
}

/* On two axes, with places outside on all sides. */
static void check(int number, struct rfx_node node, int64_t h, int64_t w) {
    const struct rfx_tensor inputs[2] = {rfx_tensor_nhwc(1 + number % 3, h, w),
                                         rfx_tensor_nhwc(2, 9, 14)};
    struct op_case c;
    char what[48];
    (void)snprintf(what, sizeof what, "form %d, %lld x %lld", number, (long long)h, (long long)w);
    op_case_begin(&c, 2, inputs, (uint64_t)number);
    for (int64_t i = 0; i < inputs[1].elems; i++) {
        c.values[1][i] *= 2.5f;
        c.onnx_order[1][i] *= 2.5f;
    }
    if (op_case_add(&c, &node) != RFX_OK) fail_msg("%s: %s", what, c.err.text);
    op_case_check(&c, 2e-5, 12, what);
    op_case_end(&c);
}

static void all_forms(void **state) {
    (void)state;
    int number = 0;
    for (int mode = 0; mode < 3; mode++)
        for (int padding = 0; padding < 3; padding++)
            for (int corners = 0; corners < 2; corners++, number++) {
                struct rfx_node node =
                    form((enum rfx_resize_mode)mode, (enum rfx_grid_padding)padding, corners != 0);
                check(number, node, 7, 11);
                check(number, node, 1, 5);
            }
}

static void places_that_are_none(void **state) {
    (void)state;
    static const float grid[] = {NAN, 0, INFINITY, 0, -INFINITY, 0, 1e30f, NAN};
    for (int mode = 0; mode < 3; mode++)
        expect(form((enum rfx_resize_mode)mode, RFX_GRID_ZEROS, false), 4, grid,
               (const float[]){0, 0, 0, 0});
    expect(form(RFX_RESIZE_LINEAR, RFX_GRID_BORDER, false), 4, grid, (const float[]){0, 12, 0, 12});
}

static void refuses_other_grids(void **state) {
    (void)state;
    const struct rfx_tensor inputs[2] = {rfx_tensor_nhwc(1, 3, 3), rfx_tensor_nhwc(3, 2, 2)};
    struct rfx_node node = form(RFX_RESIZE_LINEAR, RFX_GRID_ZEROS, false);
    op_case_refused(&node, 2, inputs, "a grid of 3 values a pixel, not 2");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_hand),
        cmocka_unit_test(all_forms),
        cmocka_unit_test(places_that_are_none),
        cmocka_unit_test(refuses_other_grids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
