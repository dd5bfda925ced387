/* Arenas are found again under the same records, and under no others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tiler/arena/placement.h"

static struct rfx_record records[3];
static struct rfx_slide slides[1];
static struct rfx_place_memo memo[RFX_PLACE_MEMO_ENTRIES];

static struct rfx_place_job some_job(void) {
    static const struct rfx_record some[] = {{RFX_RECORD_STORED, 0, 0, 0, 1, 640, 0},
                                             {RFX_RECORD_LOCAL, 0, 1, 1, 2, 128, 0},
                                             {RFX_RECORD_LOCAL, 1, 2, 2, 4, 320, 0}};
    static const struct rfx_slide slide = {
        .before = 0, .after = 1, .stage = 0, .node = 1, .down = 64, .up = 192};
    memcpy(records, some, sizeof records);
    slides[0] = slide;
    return (struct rfx_place_job){records, slides, 3, 1, 5, NULL, 0};
}

static void what_was_placed_is_found(void **state) {
    (void)state;
    struct rfx_place_job job = some_job();
    struct rfx_place_key key = rfx_place_key_of(&job, true);
    assert_int_equal(rfx_place_memo_find(memo, key), 0);
    rfx_place_memo_add(memo, key, 768);
    records[0].offset = 64; /* the answer and names are no part of the question */
    records[1].kind = RFX_RECORD_STAGING;
    records[2].node = 7;
    assert_int_equal(rfx_place_memo_find(memo, rfx_place_key_of(&job, true)), 768);
    rfx_place_memo_add(memo, key, 832);
    assert_int_equal(rfx_place_memo_find(memo, key), 832);
}

/* Everything that a placement follows from, changed by itself. */
static void other_records_are_not_found(void **state) {
    (void)state;
    size_t *bytes[] = {&records[0].bytes, &records[2].bytes, &slides[0].down, &slides[0].up};
    int *numbers[] = {&records[0].first, &records[1].last, &slides[0].before,
                      &slides[0].after,  &slides[0].stage, &slides[0].node};
    struct rfx_place_job job = some_job();
    struct rfx_place_key key = rfx_place_key_of(&job, true);
    rfx_place_memo_add(memo, key, 768);
    for (size_t i = 0; i < sizeof bytes / sizeof bytes[0]; i++) {
        job = some_job();
        *bytes[i] += 64;
        assert_int_equal(rfx_place_memo_find(memo, rfx_place_key_of(&job, true)), 0);
    }
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        job = some_job();
        *numbers[i] += 1;
        assert_int_equal(rfx_place_memo_find(memo, rfx_place_key_of(&job, true)), 0);
    }
    job = some_job();
    assert_int_equal(rfx_place_memo_find(memo, rfx_place_key_of(&job, false)), 0);
    job.n_slides = 0;
    assert_int_equal(rfx_place_memo_find(memo, rfx_place_key_of(&job, true)), 0);
}

/* The one of the least peak is laid again as it was, and nothing under another key. */
static void the_least_is_laid_again(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_place_job job = some_job();
    struct rfx_place_key key = rfx_place_key_of(&job, true), other = rfx_place_key_of(&job, false);
    struct rfx_place_saved kept;
    bool up = true;
    assert_true(rfx_place_saved_init(&kept, mem, 3));
    assert_false(rfx_place_saved_find(&kept, key, &job, records, &up));
    records[1].offset = 64;
    records[2].offset = 192;
    rfx_place_saved_offer(&kept, key, &job, &up, 768, "some", 2000);
    rfx_place_saved_offer(&kept, other, &job, &up, 704, "another", 2064);
    job = some_job();
    up = false;
    assert_false(rfx_place_saved_find(&kept, other, &job, records, &up));
    assert_false(up);
    assert_true(rfx_place_saved_find(&kept, key, &job, records, &up));
    assert_true(up && records[0].offset == 0 && records[1].offset == 64);
    assert_int_equal(records[2].offset, 192);
    assert_int_equal(kept.arena, 768);
    assert_string_equal(kept.strategy, "some");
    rfx_place_saved_release(&kept, mem);
    assert_true(rfx_place_saved_init(&kept, mem, 2)); /* too few for the records */
    rfx_place_saved_offer(&kept, key, &job, &up, 768, "some", 2000);
    assert_false(rfx_place_saved_find(&kept, key, &job, records, &up));
    rfx_place_saved_release(&kept, mem);
    rfx_memory_free(mem);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_placed_is_found),
        cmocka_unit_test(other_records_are_not_found),
        cmocka_unit_test(the_least_is_laid_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
