/* Runs of rows of a view against the addresses of its rows, one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "layers/graph/view_rows.h"

/* Rows from y on that lie behind each other, by their addresses. */
static int64_t end_by_address(const struct rfx_view *v, int64_t y, int64_t last) {
    int64_t end = y + 1;
    while (end < last && rfx_view_f32_at(v, end, v->rect.x0) ==
                             rfx_view_f32_at(v, end - 1, v->rect.x0) + v->row_stride)
        end++;
    return end;
}

/* Linear, in rings of all heights, and with rows that were made elsewhere. */
static void runs_end_where_addresses_jump(void **state) {
    static float data[64], fresh[64];
    struct rfx_rect rect = {.y0 = 3, .y1 = 12, .x0 = 1, .x1 = 3};
    (void)state;
    for (int64_t ring = 0; ring <= 10; ring++)
        for (int64_t fresh_y0 = 2; fresh_y0 <= 12; fresh_y0++) {
            struct rfx_view view = rfx_view_dense(data, rect, 2);
            view.ring_rows = ring;
            view.fresh = fresh_y0 > 2 ? fresh : NULL;
            view.fresh_y0 = fresh_y0;
            for (int64_t last = 4; last <= 12; last++)
                for (int64_t y = 3; y < last; y++)
                    assert_int_equal(rfx_view_rows_end(&view, y, last),
                                     end_by_address(&view, y, last));
        }
}

/* A map that lags two rows behind the one over whose rows of a step it is written: the two rows are
 * read from a ring. */
static void rows_meet_but_those_of_a_ring(void **state) {
    static float ring[64], fresh[64], other[64];
    struct rfx_rect rect = {.y0 = 4, .y1 = 12, .x0 = 0, .x1 = 2};
    struct rfx_view read = rfx_view_dense(ring, rect, 2), made = rfx_view_dense(ring, rect, 2);
    (void)state;
    read.ring_rows = 2;
    read.fresh = fresh + 2 * read.row_stride;
    read.fresh_y0 = 6;
    made.fresh = fresh;
    made.fresh_y0 = 4;
    assert_true(rfx_views_meet(&read, &made, rfx_rect_make(4, 10, 0, 2)));
    assert_true(rfx_views_meet(&read, &made, rfx_rect_make(6, 8, 0, 2)));
    assert_false(rfx_views_meet(&read, &made, rfx_rect_make(4, 6, 0, 2)));
    made.fresh = other;
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
