/* Slots of areas: shared by areas that follow one another, never by two that are open; failing
 * allocations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rfexec/answers/area_slots.h"
#include "tests/support/test_util.h"

enum { H = 8, AREAS = 5 };

/* Rows of each area, [from, to): 0 and 1 overlap, 2 follows 0, 3 has no rows. */
static const int rows[AREAS][2] = {{0, 3}, {1, 8}, {3, 5}, {4, 4}, {5, 8}};

static struct rfx_areas *make_areas(struct rfx_memory *mem) {
    struct rfx_areas *areas = NULL;
    const int64_t one = INT64_C(1) << RFX_AREA_BITS;
    assert_int_equal(rfx_areas_create(mem, H, 1, AREAS, 4 * AREAS, &areas, NULL), RFX_OK);
    for (int k = 0; k < AREAS; k++) {
        const int64_t y0 = rows[k][0] * one, y1 = rows[k][1] * one;
        const int64_t at[4][2] = {{0, y0}, {one, y0}, {one, y1}, {0, y1}};
        rfx_areas_begin(areas);
        for (int i = 0; i < 4; i++) rfx_areas_edge(areas, at[i], at[(i + 1) % 4]);
    }
    assert_int_equal(rfx_areas_end(areas, NULL), RFX_OK);
    return areas;
}

static void areas_that_are_over_leave_their_slots(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0), *other = rfx_memory_create(0);
    struct rfx_areas *areas = make_areas(other);
    struct rfx_area_slots *slots = NULL;
    assert_int_equal(rfx_areas_most_at_once(areas), 2);
    assert_int_equal(rfx_area_slots_create(mem, areas, &slots, NULL), RFX_OK);
    assert_true(rfx_memory_high_water_bytes(mem) <= rfx_area_slots_bytes(AREAS, 2));
    for (int sweep = 0; sweep < 2; sweep++) {
        int64_t slot_of[AREAS] = {-1, -1, -1, -1, -1};
        if (sweep > 0) rfx_areas_rewind(areas);
        for (int y = 0; y < H; y++) {
            int64_t n, slot = 0;
            const struct rfx_area_span *span = rfx_areas_row(areas, &n);
            for (int64_t i = 0; i < n; i++, span++) {
                bool is_new;
                int64_t taken = rfx_area_slots_take(slots, span->area, &is_new);
                assert_true(taken >= 0 && taken < 2);
                assert_int_equal(is_new, y == rows[span->area][0]);
                if (!is_new) assert_int_equal(taken, slot_of[span->area]);
                for (int k = 0; k < AREAS; k++) assert_true(k == span->area || slot_of[k] != taken);
                slot_of[span->area] = taken;
            }
            for (int32_t area; (area = rfx_area_slots_leave(slots, &slot)) >= 0;) {
                assert_int_equal(rows[area][1], y + 1);
                assert_int_equal(slot, slot_of[area]);
                slot_of[area] = -1;
            }
        }
        for (int k = 0; k < AREAS; k++) assert_int_equal(slot_of[k], -1);
    }
    rfx_area_slots_free(slots);
    rfx_areas_free(areas);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
    rfx_memory_free(other);
}

static enum rfx_status build(struct rfx_memory *mem, void *context, struct rfx_error *err) {
    struct rfx_area_slots *slots = NULL;
    enum rfx_status status = rfx_area_slots_create(mem, context, &slots, err);
    rfx_area_slots_free(slots);
    return status;
}

static void every_failing_allocation_is_reported(void **state) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_areas *areas = make_areas(mem);
    (void)state;
    assert_int_equal(test_fail_each_allocation(build, areas), 4);
    rfx_areas_free(areas);
    rfx_memory_free(mem);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(areas_that_are_over_leave_their_slots),
        cmocka_unit_test(every_failing_allocation_is_reported),
    };
    return cmocka_run_group_tests_name("area slots", tests, NULL, NULL);
}
