/* Sums of what lives in a step, less what slides save; expected values by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tiler/arena/placement.h"

/* Three maps in a chain: in step 1 the first dies while the second is made. */
static const struct rfx_record records[] = {{RFX_RECORD_STORED, 0, 0, 0, 1, 640, 0},
                                            {RFX_RECORD_STORED, 0, 1, 1, 2, 512, 0},
                                            {RFX_RECORD_STORED, 0, 2, 2, 3, 256, 0}};

static size_t bound_of(const struct rfx_slide *slides, int n_slides, int rest_first, size_t *rest) {
    const struct rfx_place_job job = {records, slides, 3, n_slides, 4, NULL, 0};
    size_t live[5];
    return rfx_place_slides_bound(&job, rest_first, live, rest);
}

static void without_slides_all_that_lives_counts(void **state) {
    (void)state;
    size_t rest;
    assert_int_equal(bound_of(NULL, 0, 0, &rest), 640 + 512);
    assert_int_equal(rest, 640 + 512);
    (void)bound_of(NULL, 0, 2, &rest);
    assert_int_equal(rest, 512 + 256);
}

/* Down: the map shares what of it lies from 64 on, 448. Up: what of the first lies from 448 on. */
static void slides_save_the_better_direction(void **state) {
    (void)state;
    const struct rfx_slide down = {.before = 0, .after = 1, .node = 1, .down = 64, .up = 448};
    const struct rfx_slide up = {.before = 0, .after = 1, .node = 1, .down = 512, .up = 320};
    size_t rest;
    assert_int_equal(bound_of(&down, 1, 2, &rest), 512 + 256); /* 1152 - 448 is less */
    assert_int_equal(bound_of(&up, 1, 2, &rest), 1152 - 320);
    assert_int_equal(rest, 512 + 256);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_slides_all_that_lives_counts),
        cmocka_unit_test(slides_save_the_better_direction),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
