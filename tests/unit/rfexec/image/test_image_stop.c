/* Pictures of which many rows are decoded before the first one is there, or the one that is asked
 * for: the decoding ends when the work is to stop (rfx_memory_set_stop), and not much later. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <tiff.h>
#include <unistd.h>

#include <cmocka.h>

#include "rfexec/image/image_source.h"
#include "tests/support/makers/jpeg_maker.h"
#include "tests/support/makers/png_maker.h"
#include "tests/support/makers/tiff_maker.h"
#include "tests/support/run/image_reads.h"
#include "tests/support/test_util.h"

#define FILE_NAME "test_image_stop.tmp"
enum { ROWS = 640, COLUMNS = 48, LEAST_QUESTIONS = ROWS / 40 };

/* True from the `left`-th question on. */
struct asker {
    int asked, left;
};

static bool is_wanted(void *user) {
    struct asker *asker = user;
    asker->asked++;
    return asker->asked > asker->left;
}

/* Opens the file and reads its last row, with one row in memory; the questions asked after the
 * opening. */
static int read_last_row(int left, enum rfx_status *status, struct rfx_error *err) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_image *image = NULL;
    struct asker asker = {.left = left};
    if (rfx_image_open(mem, FILE_NAME, &image_reads_plain, &image, err) != RFX_OK)
        fail_msg("%s", err->text);
    struct rfx_source_traits t = rfx_image_traits(image);
    float row[ROWS * 3];
    assert_true(t.w * t.c <= (int64_t)(sizeof row / sizeof *row));
    struct rfx_rect rect = rfx_rect_make(t.h - 1, t.h, 0, t.w);
    struct rfx_view view = rfx_view_dense(row, rect, t.c);
    rfx_memory_set_stop(mem, is_wanted, &asker);
    *status = rfx_image_set_window(image, 1, err);
    if (*status == RFX_OK) *status = rfx_image_read(image, rect, &view, err);
    rfx_memory_set_stop(mem, NULL, NULL);
    rfx_image_free(image);
    rfx_memory_free(mem);
    return asker.asked;
}

static void check_stops(const char *kind) {
    enum rfx_status status;
    struct rfx_error err = {""};
    int questions = read_last_row(INT32_MAX, &status, &err);
    if (status != RFX_OK) fail_msg("%s: %s", kind, err.text);
    if (questions < LEAST_QUESTIONS)
        fail_msg("%s: asked %d times in %d rows", kind, questions, ROWS);
    for (int left = 0; left < questions; left += 1 + questions / 16) {
        int asked = read_last_row(left, &status, &err);
        if (status != RFX_STATUS_CANCELLED || err.text[0] == '\0')
            fail_msg("%s: stopped at question %d of %d: %s, '%s'", kind, left, questions,
                     rfx_status_name(status), err.text);
        if (asked > left + 4) /* allocations that follow each other ask too */
            fail_msg("%s: asked %d times more", kind, asked - left);
    }
}

static void jpeg(void **state) {
    (void)state;
    static const struct {
        const char *kind;
        struct jpeg_maker maker;
    } cases[] = {
        {"rows", {.components = 3}},
        {"turned", {.components = 1, .orientation = 6}},
        {"upside down", {.components = 3, .orientation = 3}},
        {"scans", {.components = 3, .progressive = true}},
        {"components by themselves", {.components = 3, .separate_scans = true}},
        {"scans, turned", {.components = 1, .progressive = true, .orientation = 8}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct jpeg_maker m = cases[i].maker;
        m.h = ROWS;
        m.w = COLUMNS;
        m.h_sampling = m.v_sampling = 1;
        m.quality = 90;
        assert_true(jpeg_maker_write(&m, FILE_NAME));
        check_stops(cases[i].kind);
    }
}

static void png(void **state) {
    (void)state;
    for (int interlaced = 0; interlaced < 2; interlaced++) {
        struct png_maker m = {.h = ROWS,
                              .w = COLUMNS,
                              .bit_depth = 8,
                              .color_type = 2, /* RGB */
                              .interlaced = interlaced == 1,
                              .seed = 1};
        assert_true(png_maker_write(&m, FILE_NAME));
        check_stops(interlaced == 1 ? "interlaced" : "rows");
    }
}

static void tiff(void **state) {
    (void)state;
    static const struct {
        const char *kind;
        int compression, columns, orientation;
    } cases[] = {{"rows", COMPRESSION_LZW, 0, 0},
                 {"rows, turned", COMPRESSION_LZW, 0, 5},
                 {"tiles, turned", COMPRESSION_LZW, 32, 7},
                 {"plain, mirrored", COMPRESSION_NONE, 0, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tiff_maker m = {.h = ROWS,
                               .w = COLUMNS,
                               .bits = 8,
                               .samples = 3,
                               .photometric = PHOTOMETRIC_RGB,
                               .compression = cases[i].compression,
                               .rows = 16,
                               .cols = cases[i].columns,
                               .orientation = cases[i].orientation,
                               .seed = 1};
        assert_true(tiff_maker_write(&m, FILE_NAME));
        check_stops(cases[i].kind);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jpeg),
        cmocka_unit_test(png),
        cmocka_unit_test(tiff),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)unlink(FILE_NAME);
    return failed;
}
