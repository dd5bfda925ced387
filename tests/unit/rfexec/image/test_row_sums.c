/* Sums of rows: the same whatever rectangles they are read in, none where a column was left out,
 * others where a value is another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rfexec/image/row_sums.h"
#include "tests/support/test_util.h"

enum { H = 20, W = 433, C = 3 }; /* more than one block of values in a row */
static float values[H * W * C];

static void add(struct rfx_row_sums *sums, int64_t y0, int64_t y1, int64_t x0, int64_t x1) {
    const struct rfx_view view = rfx_view_dense(values, rfx_rect_full(H, W), C);
    rfx_row_sums_add(sums, rfx_rect_make(y0, y1, x0, x1), &view);
}

static struct rfx_row_sums *make(struct rfx_memory *mem, struct rfx_rect rect) {
    struct rfx_row_sums *sums = NULL;
    struct rfx_error err;
    assert_int_equal(rfx_row_sums_create(mem, rect, &sums, &err), RFX_OK);
    return sums;
}

static uint32_t sum_of(const struct rfx_row_sums *sums, int64_t y) {
    uint32_t sum = 0;
    assert_true(rfx_row_sums_get(sums, y, &sum));
    return sum;
}

static void test_any_rectangles(void **state) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_rect rect = rfx_rect_make(4, 16, 5, 430);
    struct rfx_row_sums *whole = make(mem, rect), *tiles = make(mem, rect),
                        *twice = make(mem, rect);
    (void)state;
    add(whole, 0, H, 0, W);
    for (int64_t x = 0; x < W; x += 10) /* strips that overlap, in rows that overlap */
        for (int64_t y = 0; y < H; y += 4)
            add(tiles, y, y + 5 < H ? y + 5 : H, x > 2 ? x - 3 : 0, x + 10 < W ? x + 10 : W);
    add(twice, 4, 16, 5, 430);
    add(twice, 4, 16, 5, 430);
    for (int64_t y = 4; y < 16; y++) {
        assert_int_equal(sum_of(whole, y), sum_of(tiles, y));
        assert_int_equal(sum_of(whole, y), sum_of(twice, y));
        if (y > 4) assert_int_not_equal(sum_of(whole, y), sum_of(whole, y - 1));
    }
    uint32_t sum;
    assert_false(rfx_row_sums_get(whole, 3, &sum));
    assert_false(rfx_row_sums_get(whole, 16, &sum));
    rfx_row_sums_free(whole);
    rfx_row_sums_free(tiles);
    rfx_row_sums_free(twice);
    rfx_memory_free(mem);
}

static void test_gaps(void **state) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_row_sums *sums = make(mem, rfx_rect_full(H, W));
    uint32_t sum;
    (void)state;
    add(sums, 0, 1, 0, W - 1); /* the last column is missing */
    add(sums, 1, 2, 0, 10);
    add(sums, 1, 2, 11, W); /* column 10 is */
    add(sums, 1, 2, 0, W);
    for (int64_t y = 0; y < 3; y++) assert_false(rfx_row_sums_get(sums, y, &sum));
    add(sums, 0, 1, W - 1, W);
    assert_true(rfx_row_sums_get(sums, 0, &sum));
    rfx_row_sums_free(sums);
    rfx_memory_free(mem);
}

/* Every single value, and two that change places. */
static void test_other_values(void **state) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_rect row = rfx_rect_make(7, 8, 0, W);
    struct rfx_row_sums *sums = make(mem, row);
    (void)state;
    add(sums, 7, 8, 0, W);
    uint32_t before = sum_of(sums, 7);
    rfx_row_sums_free(sums);
    for (int i = 0; i < W * C; i++) {
        float *value = &values[7 * W * C + i], kept = *value, next = value[1];
        for (int swap = 0; swap < 2; swap++) {
            *value = swap ? next : kept + 1.0f;
            if (swap) value[1] = kept;
            sums = make(mem, row);
            add(sums, 7, 8, 0, W);
            assert_int_not_equal(sum_of(sums, 7), before);
            rfx_row_sums_free(sums);
            *value = kept;
            value[1] = next;
        }
    }
    rfx_memory_free(mem);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_rectangles),
        cmocka_unit_test(test_gaps),
        cmocka_unit_test(test_other_values),
    };
    for (int i = 0; i < H * W * C; i++) values[i] = (float)((i * 7919) % 1000) / 8.0f;
    return cmocka_run_group_tests_name("row_sums", tests, NULL, NULL);
}
