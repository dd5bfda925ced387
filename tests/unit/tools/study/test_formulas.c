/* Equations 1 to 4 of paper 003 against figures worked out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tools/study/formulas.h"

/* Paper 003, table 1: 3x32x32, two 32-channel 3x3 convolutions, max pool, two with 64 channels at
 * 16x16, max pool, two with 128 channels at 8x8. */
static const struct rfx_formula_map table1_maps[3][3] = {
    {{32, 32, 3}, {32, 32, 32}, {32, 32, 32}},
    {{16, 16, 32}, {16, 16, 64}, {16, 16, 64}},
    {{8, 8, 64}, {8, 8, 128}, {8, 8, 128}},
};
static const int64_t three[3] = {3, 3, 3};
static const struct rfx_formula_block table1_blocks[3] = {{2, table1_maps[0], three, NULL},
                                                          {2, table1_maps[1], three, NULL},
                                                          {2, table1_maps[2], three, NULL}};
/* 3*32*9 + 32*32*9 + 32*64*9 + 64*64*9 + 64*128*9 + 128*128*9 */
static const struct rfx_formula_net table1 = {3, table1_blocks,
                                              864 + 9216 + 18432 + 36864 + 73728 + 147456};

/* Conv2 holds the most: two maps of 32 * 32 * 32 elements. */
static void peak_sequential(void **state) {
    (void)state;
    uint64_t elems = 0;
    assert_true(rfx_formula_peak_sequential(&table1, &elems));
    assert_int_equal(elems, 2 * 32768 + 286560);
}

/* A block of three modules, 8x8, channels 4 -> 6 -> 10 -> 4: input 256, then 384, 640, 256. While
 * module 2 runs: 256 + 384 + 640; the other moments: 256 + 384 and 256 + 640 + 256. */
static void peak_residual(void **state) {
    (void)state;
    static const struct rfx_formula_map maps[] = {{8, 8, 4}, {8, 8, 6}, {8, 8, 10}, {8, 8, 4}};
    const struct rfx_formula_block block = {3, maps, three, NULL};
    const struct rfx_formula_net net = {1, &block, 1000};
    uint64_t elems = 0;
    assert_true(rfx_formula_peak_residual(&net, &elems));
    assert_int_equal(elems, 1280 + 1000);
    assert_true(rfx_formula_peak_sequential(&net, &elems));
    assert_int_equal(elems, 1024 + 1000);
}

/* Section 3.3: with maps of one size (16 * 16 * 32) the peak does not depend on how many
 * convolutions a block has, from two on; only R does. */
static void peak_independent_of_length(void **state) {
    (void)state;
    static const struct rfx_formula_map map = {16, 16, 32};
    static const int64_t kernels[6] = {3, 3, 3, 3, 3, 3};
    const struct rfx_formula_map maps[7] = {map, map, map, map, map, map, map};
    for (int m = 2; m <= 6; m++) {
        const struct rfx_formula_block block = {m, maps, kernels, NULL};
        const struct rfx_formula_net net = {1, &block, 0};
        uint64_t elems = 0;
        assert_true(rfx_formula_peak_residual(&net, &elems));
        assert_int_equal(elems, 3 * 8192);
    }
}

/* Untiled table 1: 1024*(3*32 + 32*32)*9 + 256*(32*64 + 64*64)*9 + 64*(64*128 + 128*128)*9. */
static void macs_untiled(void **state) {
    (void)state;
    uint64_t macs = 0;
    assert_true(rfx_formula_macs(&table1, &table1, 0, 16, &macs));
    assert_int_equal(macs, 10321920 + 14155776 + 14155776);
    assert_true(rfx_formula_macs(&table1, &table1, 3, 1, &macs));
    assert_int_equal(macs, 38633472);
}

/* Four tiles of the first block: the output tile of 16x16 needs 18x18 of conv1. The equation takes
 * the sizes of each module's input: 20x20 for conv1, 18x18 for conv2:
 * 4 * 9 * (400 * 96 + 324 * 1024) + the other two blocks. */
static void macs_tiled(void **state) {
    (void)state;
    static const struct rfx_formula_map maps[] = {{20, 20, 3}, {18, 18, 32}, {16, 16, 32}};
    const struct rfx_formula_block block = {2, maps, three, NULL};
    const struct rfx_formula_net tile = {1, &block, 0};
    uint64_t macs = 0;
    assert_true(rfx_formula_macs(&table1, &tile, 1, 4, &macs));
    assert_int_equal(macs, 4 * 9 * (38400 + 331776) + 2 * 14155776);
    assert_false(rfx_formula_macs(&table1, &tile, 2, 4, &macs)); /* the tile has one block */
    assert_false(rfx_formula_macs(&table1, &tile, -1, 4, &macs));
}

/* A depthwise 3x3 over 8 channels: 10 * 10 * 8 * 9; groups must divide the channels. */
static void macs_groups(void **state) {
    (void)state;
    static const struct rfx_formula_map maps[] = {{10, 10, 8}, {10, 10, 8}};
    static const int64_t eight[] = {8};
    static const int64_t five[] = {5};
    struct rfx_formula_block block = {1, maps, three, eight};
    const struct rfx_formula_net net = {1, &block, 0};
    uint64_t macs = 0;
    assert_true(rfx_formula_macs(&net, &net, 0, 1, &macs));
    assert_int_equal(macs, 7200);
    block.groups = five;
    assert_false(rfx_formula_macs(&net, &net, 0, 1, &macs));
}

static void overflow(void **state) {
    (void)state;
    static const struct rfx_formula_map maps[] = {{1LL << 40, 1LL << 23, 1}, {1, 1, 1}};
    const struct rfx_formula_block block = {1, maps, three, NULL};
    const struct rfx_formula_net net = {1, &block, 0};
    uint64_t value = 7;
    assert_false(rfx_formula_macs(&net, &net, 0, 1, &value)); /* 2^63 * 9 */
    const struct rfx_formula_net full = {1, &block, UINT64_MAX};
    assert_false(rfx_formula_peak_sequential(&full, &value));
    assert_int_equal(value, 7);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peak_sequential),
        cmocka_unit_test(peak_residual),
        cmocka_unit_test(peak_independent_of_length),
        cmocka_unit_test(macs_untiled),
        cmocka_unit_test(macs_tiled),
        cmocka_unit_test(macs_groups),
        cmocka_unit_test(overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
