/* Tests rfx_view_rows_end against the addresses of single rows, and rfx_views_meet. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "layers/graph/view_rows.h"

/* Returns the end of the rows from y on whose addresses are row_stride apart. */
static int64_t end_by_address(const struct rfx_view *v, int64_t y, int64_t last) {
    int64_t end = y + 1;
    while (end < last && rfx_view_f32_at(v, end, v->rect.x0) ==
                             rfx_view_f32_at(v, end - 1, v->rect.x0) + v->row_stride)
        end++;
    return end;
}

/* Linear views, ring buffers of all heights, and views with staging rows. */
static void runs_end_where_addresses_jump(void **state) {
    static float data[64], staging[64];
    struct rfx_rect rect = {.y0 = 3, .y1 = 12, .x0 = 1, .x1 = 3};
    (void)state;
    for (int64_t ring = 0; ring <= 10; ring++)
        for (int64_t staging_y0 = 2; staging_y0 <= 12; staging_y0++) {
            struct rfx_view view = rfx_view_dense(data, rect, 2);
            view.ring_rows = ring;
            view.staging = staging_y0 > 2 ? staging : NULL;
            view.staging_y0 = staging_y0;
            for (int64_t last = 4; last <= 12; last++)
                for (int64_t y = 3; y < last; y++)
                    assert_int_equal(rfx_view_rows_end(&view, y, last),
                                     end_by_address(&view, y, last));
        }
}

/* A map is written over the staging rows of its input and lags the input by two rows. So rows 4 and
 * 5 of the input are read from a ring buffer, and from row 6 on both views have the same addresses.
 */
static void rows_meet_but_those_of_a_ring(void **state) {
    static float ring[64], staging[64], other[64];
    struct rfx_rect rect = {.y0 = 4, .y1 = 12, .x0 = 0, .x1 = 2};
    struct rfx_view read = rfx_view_dense(ring, rect, 2), made = rfx_view_dense(ring, rect, 2);
    (void)state;
    read.ring_rows = 2;
    read.staging = staging + 2 * read.row_stride;
    read.staging_y0 = 6;
    made.staging = staging;
    made.staging_y0 = 4;
    assert_true(rfx_views_meet(&read, &made, rfx_rect_make(4, 10, 0, 2)));
    assert_true(rfx_views_meet(&read, &made, rfx_rect_make(6, 8, 0, 2)));
    assert_false(rfx_views_meet(&read, &made, rfx_rect_make(4, 6, 0, 2)));
    made.staging = other;
    assert_false(rfx_views_meet(&read, &made, rfx_rect_make(4, 10, 0, 2)));
    assert_true(rfx_views_meet(&read, &read, rect));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_end_where_addresses_jump),
        cmocka_unit_test(rows_meet_but_those_of_a_ring),
    };
    return cmocka_run_group_tests_name("view_rows", tests, NULL, NULL);
}
