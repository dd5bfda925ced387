/* A file for each band: PNG by rows beside TIFF by rectangles, in any order, within the bytes said;
 * files that do not fit are refused with both names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tiff.h>
#include <unistd.h>

#include <cmocka.h>

#include "rfexec/image/image_source.h"
#include "tests/support/makers/png_maker.h"
#include "tests/support/makers/tiff_maker.h"
#include "tests/support/run/image_reads.h"

#define GREY "test_file_bands.tmp.tif"
#define COLOUR "test_file_bands.tmp.png"
#define BOTH "bands:" GREY "," COLOUR
enum { H = 23, W = 70 };

static struct tiff_maker grey;
static struct png_maker colour;

static void make_files(int compression) {
    grey = (struct tiff_maker){.h = H,
                               .w = W,
                               .bits = 8,
                               .samples = 1,
                               .photometric = PHOTOMETRIC_MINISBLACK,
                               .compression = compression,
                               .rows = 8,
                               .seed = 7};
    colour = (struct png_maker){.h = H, .w = W, .bit_depth = 8, .color_type = 2, .seed = 8};
    assert_true(tiff_maker_write(&grey, GREY) && png_maker_write(&colour, COLOUR));
}

static float sample_of(int band, int y, int x) {
    return band == 0 ? tiff_maker_sample(&grey, y, x, 0)
                     : (float)png_maker_sample(&colour, y, x, band - 1);
}

static void check_bands(const struct rfx_image_bands *chosen) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_image_options options = image_reads_plain;
    struct rfx_image *image = NULL;
    struct rfx_error err = {{0}};
    options.bands = chosen;
    if (rfx_image_open(mem, BOTH, &options, &image, &err) != RFX_OK) fail_msg("%s", err.text);
    struct rfx_source_traits t = rfx_image_traits(image);
    const int n = chosen != NULL ? chosen->n : 4;
    assert_int_equal(t.c, n);
    assert_int_equal(rfx_image_set_window(image, 4, &err), RFX_OK);
    for (int pass = 0; pass < 2; pass++) {
        for (int y = 0; y < H; y++) {
            float row[W * 8];
            struct rfx_view view = rfx_view_dense(row, rfx_rect_make(y, y + 1, 0, W), n);
            if (rfx_image_read(image, view.rect, &view, &err) != RFX_OK) fail_msg("%s", err.text);
            for (int i = 0; i < W * n; i++) {
                int band = chosen != NULL ? chosen->numbers[i % n] - 1 : i % n;
                assert_float_equal(row[i], sample_of(band, y, i / n), 0);
            }
        }
        assert_int_equal(rfx_image_rewind(image, &err), RFX_OK);
    }
    assert_true(rfx_memory_high_water_bytes(mem) <= t.fixed_bytes + 4 * t.window_row_bytes);
    rfx_image_free(image);
    rfx_memory_free(mem);
}

static void files_are_bands(void **state) {
    (void)state;
    static const struct rfx_image_bands mixed = {5, {4, 1, 2, 1, 3}}, last = {1, {4}};
    for (int packed = 0; packed < 2; packed++) {
        make_files(packed ? COMPRESSION_LZW : COMPRESSION_NONE);
        check_bands(NULL);
        check_bands(&mixed);
        check_bands(&last);
    }
}

static void refuses(const char *spec, enum rfx_status status, const char *words) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_image *image = NULL;
    struct rfx_error err = {{0}};
    assert_int_equal(rfx_image_open(mem, spec, &image_reads_plain, &image, &err), status);
    if (strstr(err.text, words) == NULL) fail_msg("'%s' does not say '%s'", err.text, words);
    rfx_memory_free(mem);
}

static void files_that_do_not_fit_are_refused(void **state) {
    (void)state;
    make_files(COMPRESSION_NONE);
    colour.h = 5;
    assert_true(png_maker_write(&colour, COLOUR));
    refuses(BOTH, RFX_STATUS_UNSUPPORTED,
            GREY " is 23 x 70 pixels, " COLOUR " is 5 x 70: bands must have the same size");
    colour.h = H;
    colour.bit_depth = 16;
    assert_true(png_maker_write(&colour, COLOUR));
    refuses(BOTH, RFX_STATUS_UNSUPPORTED, "has samples of 8 bits, " COLOUR " of 16");
    colour.bit_depth = 8;
    colour.orientation = 6;
    assert_true(png_maker_write(&colour, COLOUR));
    refuses(BOTH, RFX_STATUS_UNSUPPORTED, "has orientation");
    refuses("bands:" GREY ",", RFX_STATUS_INVALID_ARGUMENT, "has no name");
    refuses("bands:", RFX_STATUS_INVALID_ARGUMENT, "has no name");
    refuses("bands:bands:" GREY, RFX_STATUS_INVALID_ARGUMENT, "bands of bands");
    refuses("bands:" GREY ",nowhere.tif", RFX_STATUS_IO, "nowhere.tif");
}

static void names_are_told_apart(void **state) {
    (void)state;
    char room[8];
    assert_string_equal(rfx_image_file_of("bands:a,bc", 1, room, sizeof room), "bc");
    assert_string_equal(rfx_image_file_of("bands:a,bc", 0, room, sizeof room), "a");
    assert_null(rfx_image_file_of("bands:a,bc", 2, room, sizeof room));
    assert_null(rfx_image_file_of("bands:12345678", 0, room, sizeof room));
    assert_string_equal(rfx_image_file_of("a,b", 0, room, sizeof room), "a,b");
    assert_null(rfx_image_file_of("a,b", 1, room, sizeof room));
}

static void out_of_memory_is_said(void **state) {
    (void)state;
    make_files(COMPRESSION_LZW);
    assert_true(image_reads_failing(BOTH) > 5);
    (void)unlink(GREY);
    (void)unlink(COLOUR);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_bands),
        cmocka_unit_test(files_that_do_not_fit_are_refused),
        cmocka_unit_test(names_are_told_apart),
        cmocka_unit_test(out_of_memory_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
