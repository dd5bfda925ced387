/* Rectangles of pictures against the whole: rows of a PNG, tiles of a TIFF, a turned photograph,
 * planes of floats, whatever is computed; requests one after the other and again from the top. */
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
#include "tests/support/makers/jpeg_maker.h"
#include "tests/support/makers/png_maker.h"
#include "tests/support/makers/tiff_maker.h"
#include "tests/support/run/image_reads.h"

#define FILE_NAME "test_cropped.tmp"

static float *read_all(struct rfx_image *image, int64_t window) {
    struct rfx_source_traits t = rfx_image_traits(image);
    float *values = malloc((size_t)(t.h * t.w * t.c) * sizeof *values);
    struct rfx_error err;
    if (rfx_image_set_window(image, window, &err) != RFX_OK) fail_msg("%s", err.text);
    for (int again = 0; again < 2; again++) {
        for (int64_t y = 0; y < t.h; y += window) {
            struct rfx_rect rect = rfx_rect_make(y, y + window < t.h ? y + window : t.h, 0, t.w);
            struct rfx_view view = rfx_view_dense(values + y * t.w * t.c, rect, t.c);
            if (rfx_image_read(image, rect, &view, &err) != RFX_OK) fail_msg("%s", err.text);
        }
        assert_int_equal(rfx_image_rewind(image, NULL), RFX_OK);
    }
    return values;
}

static void check(const char *spec) {
    static const struct rfx_rect regions[] = {{3, 30, 5, 17}, {0, 1, 0, 1}, {20, 37, 16, 33}};
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_image *image = NULL;
    struct rfx_error err;
    struct rfx_image_options options = image_reads_plain;
    if (rfx_image_open(mem, spec, &options, &image, &err) != RFX_OK) fail_msg("%s", err.text);
    struct rfx_source_traits whole = rfx_image_traits(image);
    assert_int_equal(whole.h, 37);
    assert_int_equal(whole.w, 33);
    float *want = read_all(image, 37);
    rfx_image_free(image);
    for (int i = 0; i < 3; i++) {
        struct rfx_rect r = options.region = regions[i];
        if (rfx_image_open(mem, spec, &options, &image, &err) != RFX_OK) fail_msg("%s", err.text);
        struct rfx_source_traits t = rfx_image_traits(image);
        assert_int_equal(t.h, rfx_rect_rows(r));
        assert_int_equal(t.w, rfx_rect_cols(r));
        float *got = read_all(image, 4);
        size_t row = (size_t)(t.w * t.c) * sizeof *got;
        for (int64_t y = 0; y < t.h; y++)
            assert_memory_equal(got + y * t.w * t.c, want + ((y + r.y0) * whole.w + r.x0) * whole.c,
                                row);
        free(got);
        rfx_image_free(image);
    }
    static const struct rfx_rect outside[] = {
        {0, 38, 0, 5}, {0, 5, 0, 34}, {5, 5, 0, 4}, {-1, 5, 0, 5}, {0, 5, -1, 5}};
    for (int i = 0; i < 5; i++) {
        options.region = outside[i];
        assert_int_equal(rfx_image_open(mem, spec, &options, &image, &err), RFX_STATUS_UNSUPPORTED);
        assert_non_null(strstr(err.text, "is no rectangle of 37 x 33 pixels"));
    }
    free(want);
    rfx_memory_free(mem);
    (void)unlink(FILE_NAME);
}

static void parts_of_every_kind(void **state) {
    (void)state;
    struct png_maker png = {.h = 37, .w = 33, .bit_depth = 8, .color_type = 2, .seed = 4};
    for (int interlaced = 0; interlaced < 2; interlaced++) {
        png.interlaced = interlaced == 1;
        assert_true(png_maker_write(&png, FILE_NAME));
        check(FILE_NAME);
    }
    struct jpeg_maker jpeg = {.h = 33,
                              .w = 37,
                              .components = 3,
                              .h_sampling = 2,
                              .v_sampling = 2,
                              .orientation = 6,
                              .quality = 90};
    assert_true(jpeg_maker_write(&jpeg, FILE_NAME));
    check(FILE_NAME);
    struct tiff_maker tiff = tiff_maker_of(3, COMPRESSION_ADOBE_DEFLATE);
    tiff.h = 37;
    tiff.w = 33;
    tiff.rows = tiff.cols = 16;
    assert_true(tiff_maker_write(&tiff, FILE_NAME));
    check(FILE_NAME);
    check("synthetic:37x33");
}

/* What is decoded whole counts whole where there is no budget. */
static void limit_is_of_the_whole(void **state) {
    (void)state;
    FILE *file = fopen(FILE_NAME, "wb");
    assert_non_null(file);
    assert_true(fprintf(file, "P5 100 100 255\n") > 0);
    for (int i = 0; i < 10000; i++) assert_int_equal(fputc(i & 255, file), i & 255);
    assert_int_equal(fclose(file), 0);
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_image_options options = image_reads_plain;
    struct rfx_image *image = NULL;
    struct rfx_error err = {""};
    options.region = rfx_rect_make(0, 5, 0, 5);
    options.max_pixels = 9999;
    assert_int_equal(rfx_image_open(mem, FILE_NAME, &options, &image, &err),
                     RFX_STATUS_UNSUPPORTED);
    options.max_pixels = 10000;
    assert_int_equal(rfx_image_open(mem, FILE_NAME, &options, &image, &err), RFX_OK);
    rfx_image_free(image);
    rfx_memory_free(mem);
    (void)unlink(FILE_NAME);
}

/* Floats in planes, into a ring of rows. */
static void planes_into_a_ring(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_image_options options = image_reads_plain;
    struct rfx_image *image = NULL;
    struct rfx_error err;
    static float ring[8 * 4 * 2];
    static const char head[] =
        "\x93NUMPY\x01\0\x76\0{'descr': '<f4', 'fortran_order': False, 'shape': (2, 20, 10), }";
    char text[128];
    FILE *file = fopen(FILE_NAME, "wb");
    assert_non_null(file);
    memset(text, ' ', sizeof text);
    memcpy(text, head, sizeof head - 1);
    text[127] = '\n';
    assert_int_equal(fwrite(text, 1, sizeof text, file), sizeof text);
    for (int i = 0; i < 2 * 20 * 10; i++) {
        float value = (float)i;
        assert_int_equal(fwrite(&value, sizeof value, 1, file), 1);
    }
    assert_int_equal(fclose(file), 0);
    options.region = rfx_rect_make(5, 20, 3, 7);
    if (rfx_image_open(mem, FILE_NAME, &options, &image, &err) != RFX_OK) fail_msg("%s", err.text);
    assert_int_equal(rfx_image_traits(image).h, 15);
    struct rfx_view view = rfx_view_dense(ring, rfx_rect_make(0, 15, 0, 4), 2);
    view.ring_rows = 8;
    for (int64_t y = 0; y < 15; y += 5) {
        struct rfx_rect rect = rfx_rect_make(y, y + 5, 1, 4);
        if (rfx_image_read(image, rect, &view, &err) != RFX_OK) fail_msg("%s", err.text);
        for (int64_t r = y; r < y + 5; r++)
            for (int64_t x = 1; x < 4; x++)
                for (int64_t c = 0; c < 2; c++)
                    assert_true(ring[(r % 8 * 4 + x) * 2 + c] ==
                                (float)(c * 200 + (r + 5) * 10 + x + 3));
    }
    rfx_image_free(image);
    rfx_memory_free(mem);
    (void)unlink(FILE_NAME);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_of_every_kind),
        cmocka_unit_test(limit_is_of_the_whole),
        cmocka_unit_test(planes_into_a_ring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
