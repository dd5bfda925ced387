/* What is common to all kinds of pictures: options, preprocessing, channels, errors at open. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "rfexec/image/image_source.h"
#include "tests/support/makers/png_maker.h"

#define FILE_NAME "test_image_source.tmp"

static void write_file(const void *bytes, size_t count) {
    FILE *file = fopen(FILE_NAME, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

/* A PNM text with its pixels after it: one pixel. */
static void write_pixel(const char *header, const void *pixel, size_t bytes) {
    unsigned char all[64];
    size_t head = strlen(header);
    memcpy(all, header, head);
    memcpy(all + head, pixel, bytes);
    write_file(all, head + bytes);
}

/* Reads the only pixel of FILE_NAME; returns the channels. */
static int64_t read_pixel(const struct rfx_image_options *options, float out[3]) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_image *image = NULL;
    struct rfx_error err = {""};
    if (rfx_image_open(mem, FILE_NAME, options, &image, &err) != RFX_OK) fail_msg("%s", err.text);
    int64_t c = rfx_image_traits(image).c;
    struct rfx_view view = rfx_view_dense(out, rfx_rect_full(1, 1), c);
    if (rfx_image_set_window(image, 1, &err) != RFX_OK) fail_msg("%s", err.text);
    if (rfx_image_read(image, view.rect, &view, &err) != RFX_OK) fail_msg("%s", err.text);
    rfx_image_free(image);
    rfx_memory_free(mem);
    return c;
}

static void defaults_are_imagenets(void **state) {
    (void)state;
    const unsigned char rgb[3] = {255, 0, 128};
    float v[3];
    write_pixel("P6\n1 1\n255\n", rgb, 3);
    assert_int_equal(read_pixel(NULL, v), 3);
    assert_true(fabs((double)v[0] - (1.0 - 0.485) / 0.229) < 1e-6);
    assert_true(fabs((double)v[1] - (0.0 - 0.456) / 0.224) < 1e-6);
    assert_true(fabs((double)v[2] - (128.0 / 255.0 - 0.406) / 0.225) < 1e-6);
    struct rfx_image_options o = rfx_image_default_options();
    assert_int_equal(o.channels, 3);
    assert_false(o.bgr);
}

static void bgr_swaps_samples_not_means(void **state) {
    (void)state;
    const unsigned char rgb[3] = {10, 20, 30};
    const float means[3] = {1, 2, 4};
    struct rfx_image_options o = {.scale = 2.0f,
                                  .mean = means,
                                  .n_mean = 3,
                                  .std = means,
                                  .n_std = 3,
                                  .bgr = true,
                                  .channels = 3};
    float v[3];
    write_pixel("P6\n1 1\n255\n", rgb, 3);
    assert_int_equal(read_pixel(&o, v), 3);
    assert_true(v[0] == 59.0f); /* (30 * 2 - 1) / 1 */
    assert_true(v[1] == 19.0f); /* (20 * 2 - 2) / 2 */
    assert_true(v[2] == 4.0f);  /* (10 * 2 - 4) / 4 */
}

static void grey_and_colour_meet_the_network(void **state) {
    (void)state;
    const unsigned char rgb[3] = {200, 100, 50}, grey = 77;
    const float zero[1] = {0}, stds[3] = {1, 2, 4};
    struct rfx_image_options o = {.scale = 1.0f,
                                  .mean = zero,
                                  .n_mean = 1,
                                  .std = stds,
                                  .n_std = 1,
                                  .bgr = false,
                                  .channels = 1};
    float v[3];
    write_pixel("P6\n1 1\n255\n", rgb, 3);
    assert_int_equal(read_pixel(&o, v), 1);
    assert_true(v[0] == 124.0f); /* (59800 + 58700 + 5700 + 500) / 1000 = 124.7 */
    o.bgr = true;                /* luma does not depend on the order asked for */
    assert_int_equal(read_pixel(&o, v), 1);
    assert_true(v[0] == 124.0f);
    o.channels = 0;
    assert_int_equal(read_pixel(&o, v), 3);
    write_pixel("P5\n1 1\n255\n", &grey, 1);
    assert_int_equal(read_pixel(&o, v), 1);
    assert_true(v[0] == 77.0f);
    o.channels = 3;
    o.n_std = 3;
    assert_int_equal(read_pixel(&o, v), 3);
    assert_true(v[0] == 77.0f && v[1] == 38.5f && v[2] == 19.25f);
}

static void sixteen_bits_keep_their_precision(void **state) {
    (void)state;
    struct png_maker m = {.h = 1, .w = 1, .bit_depth = 16, .color_type = 2, .seed = 9};
    const float zero[1] = {0}, one[1] = {1};
    assert_true(png_maker_write(&m, FILE_NAME));
    struct rfx_image_options o = {.scale = 1.0f,
                                  .mean = zero,
                                  .n_mean = 1,
                                  .std = one,
                                  .n_std = 1,
                                  .bgr = true,
                                  .channels = 3};
    float v[3];
    int s[3];
    for (int c = 0; c < 3; c++) s[c] = png_maker_sample(&m, 0, 0, c);
    assert_int_equal(read_pixel(&o, v), 3);
    for (int c = 0; c < 3; c++) assert_true(v[c] == (float)s[2 - c] / 257.0f);
    o.raw = true;
    assert_int_equal(read_pixel(&o, v), 3);
    for (int c = 0; c < 3; c++) assert_true(v[c] == (float)s[2 - c]);
    o.raw = false;
    o.channels = 1;
    assert_int_equal(read_pixel(&o, v), 1);
    assert_true(v[0] == (float)((299 * s[0] + 587 * s[1] + 114 * s[2] + 500) / 1000) / 257.0f);
}

static void expect_refused(const char *spec, enum rfx_status wanted, const char *word) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_image *image = NULL;
    struct rfx_error err = {""};
    enum rfx_status status = rfx_image_open(mem, spec, NULL, &image, &err);
    if (status != wanted || strstr(err.text, word) == NULL || strstr(err.text, spec) == NULL)
        fail_msg("status %d, wanted %d with '%s': %s", status, wanted, word, err.text);
    assert_null(image);
    assert_int_equal(rfx_image_open(mem, spec, NULL, &image, NULL), wanted); /* without a text */
    rfx_memory_free(mem);
}

static void refuses_in_words(void **state) {
    (void)state;
    (void)unlink(FILE_NAME);
    expect_refused(FILE_NAME, RFX_STATUS_IO, "No such file");
    expect_refused("/", RFX_STATUS_IO, "directory");
    expect_refused("/dev/null", RFX_STATUS_IO, "regular");
    write_file("", 0);
    expect_refused(FILE_NAME, RFX_STATUS_MALFORMED, "empty");
    static const char *const tiff[] = {"II*\0........", "MM\0*........", "II+\0........",
                                       "MM\0+........"};
    for (int i = 0; i < 4; i++) {
        write_file(tiff[i], 12);
        expect_refused(FILE_NAME, RFX_STATUS_MALFORMED, "TIFF");
    }
    write_file("#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 1 +X 1\n....", 50);
    expect_refused(FILE_NAME, RFX_STATUS_UNSUPPORTED, "dynamic range");
    write_file("RIFF\x1a\0\0\0WEBPVP8L....", 20);
    expect_refused(FILE_NAME, RFX_STATUS_MALFORMED, "WebP");
    write_file(
        "\0\0\0\x18"
        "ftypheic\0\0\0\0mif1",
        20);
    expect_refused(FILE_NAME, RFX_STATUS_UNSUPPORTED, "convert it to PNG");
    write_file("just some text, not a picture at all\n", 37);
    expect_refused(FILE_NAME, RFX_STATUS_MALFORMED, "not a picture");
    write_file("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16);
    expect_refused(FILE_NAME, RFX_STATUS_MALFORMED, "cut off");
    (void)unlink(FILE_NAME);
}

/* Files of some bytes whose headers promise 20000 x 20000 pixels, in formats that are decoded
 * whole: refused by the header, unless that many are allowed, and then not decoded before they are
 * needed.
 */
static void small_files_promise_large_pictures(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
    } files[] = {
        {"\0\0\x0a\0\0\0\0\0\0\0\0\0\x20\x4e\x20\x4e\x18\0\xff\0\0\0", 22}, /* TGA, run lengths */
        {"8BPS\0\1\0\0\0\0\0\0\0\3\0\0\x4e\x20\0\0\x4e\x20\0\x08\0\3"
         "\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\0",
         44}, /* PSD, run lengths */
        {"GIF89a\x20\x4e\x20\x4e\x80\0\0\0\0\0\0\0\0,\0\0\0\0\x20\x4e\x20\x4e\0\2\2\x4c\1\0;", 35},
        {"P6 20000 20000 255\n\0\0\0", 22},
        {"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\x4e\x20\0\0\x4e\x20\x08\0\0\0\1\xb1\x1c\x29\x73"
         "\0\0\0\x64IDAT",
         41},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct rfx_memory *mem = rfx_memory_create(1 << 20);
        struct rfx_image *image = NULL;
        struct rfx_error err = {""};
        struct rfx_image_options o = rfx_image_default_options();
        write_file(files[i].bytes, files[i].size);
        if (rfx_image_open(mem, FILE_NAME, &o, &image, &err) != RFX_STATUS_UNSUPPORTED)
            fail_msg("file %zu: not refused: %s", i, err.text);
        assert_non_null(strstr(err.text, "20000 x 20000"));
        assert_non_null(strstr(err.text, "--max-pixels"));
        o.max_pixels = 400000000 - 1;
        assert_int_equal(rfx_image_open(mem, FILE_NAME, &o, &image, &err), RFX_STATUS_UNSUPPORTED);
        o.max_pixels = 400000000;
        if (rfx_image_open(mem, FILE_NAME, &o, &image, &err) != RFX_OK)
            fail_msg("file %zu: %s", i, err.text);
        rfx_image_free(image);
        o.max_pixels = 0;
        assert_int_equal(rfx_image_open(mem, FILE_NAME, &o, &image, &err), RFX_OK);
        /* the last one, PNG, in a file */
        assert_int_equal(rfx_image_traits(image).fixed_bytes >= 400000000, i < 4);
        rfx_image_free(image);
        assert_true(rfx_memory_high_water_bytes(mem) < 1 << 18);
        rfx_memory_free(mem);
    }
    (void)unlink(FILE_NAME);
}

/* What is read in parts may have any number of pixels. */
static void large_pictures_in_parts_have_no_limit(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_image *image = NULL;
    struct rfx_image_options o = rfx_image_default_options();
    o.max_pixels = 1;
    assert_int_equal(rfx_image_open(mem, "synthetic:30000x30000", &o, &image, NULL), RFX_OK);
    rfx_image_free(image);
    write_file(
        "\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\x4e\x20\0\0\x4e\x20\x08\0\0\0\0\xc6\x1b\x19\xe5"
        "\0\0\0\x64IDAT",
        41);
    struct rfx_error err = {""};
    if (rfx_image_open(mem, FILE_NAME, &o, &image, &err) != RFX_OK) fail_msg("%s", err.text);
    rfx_image_free(image);
    (void)unlink(FILE_NAME);
    rfx_memory_free(mem);
}

static void refuses_bad_options(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_image *image = NULL;
    struct rfx_error err = {""};
    struct rfx_image_options o = rfx_image_default_options();
    o.std = (const float[]){1, 0, 1};
    o.n_std = 3;
    assert_int_equal(rfx_image_open(mem, "synthetic:4x4", &o, &image, &err),
                     RFX_STATUS_INVALID_ARGUMENT);
    o = rfx_image_default_options();
    o.scale = NAN;
    assert_int_equal(rfx_image_open(mem, "synthetic:4x4", &o, &image, &err),
                     RFX_STATUS_INVALID_ARGUMENT);
    o = rfx_image_default_options();
    struct png_maker m = {.h = 1, .w = 1, .bit_depth = 8, .color_type = 2};
    assert_true(png_maker_write(&m, FILE_NAME));
    o.channels = 4;
    assert_int_equal(rfx_image_open(mem, FILE_NAME, &o, &image, &err), RFX_STATUS_UNSUPPORTED);
    assert_non_null(strstr(err.text, "4 channels"));
    (void)remove(FILE_NAME);
    o.channels = INT64_C(3000000000);
    assert_int_equal(rfx_image_open(mem, "synthetic:4x4", &o, &image, &err),
                     RFX_STATUS_UNSUPPORTED);
    assert_non_null(strstr(err.text, "3000000000 channels"));
    o.channels = (INT64_C(1) << 32) + 3; /* not 3 */
    assert_int_equal(rfx_image_open(mem, "synthetic:4x4", &o, &image, &err),
                     RFX_STATUS_UNSUPPORTED);
    o.channels = -1;
    assert_int_equal(rfx_image_open(mem, "synthetic:4x4", &o, &image, &err),
                     RFX_STATUS_UNSUPPORTED);
    rfx_image_free(NULL);
    rfx_memory_free(mem);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_imagenets),
        cmocka_unit_test(bgr_swaps_samples_not_means),
        cmocka_unit_test(grey_and_colour_meet_the_network),
        cmocka_unit_test(sixteen_bits_keep_their_precision),
        cmocka_unit_test(refuses_in_words),
        cmocka_unit_test(small_files_promise_large_pictures),
        cmocka_unit_test(large_pictures_in_parts_have_no_limit),
        cmocka_unit_test(refuses_bad_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
