/* Files from rectangles: every format from every way of cutting a map, byte by byte the file that
 * the whole map gives; values read back by the formats' own libraries. What is refused or goes
 * wrong: test_output_stream_failures.c. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <png.h>
#include <tiffio.h>

#include <cmocka.h>

#include "tests/support/run/output_maps.h"
#include "tests/support/test_folder.h"
#include "tests/support/test_util.h"

#define DIRECTORY "test_output_stream.tmp.d"

static const struct rfx_output_format npy = {.kind = &rfx_output_npy};
static const struct rfx_output_format tiff = {.kind = &rfx_output_tiff};
static const struct rfx_output_format png = {.kind = &rfx_output_png};
static const struct rfx_output_format tiff16 = {.kind = &rfx_output_tiff, .bits = 16};
static const struct rfx_output_format png16_range = {
    .kind = &rfx_output_png, .bits = 16, .has_range = true, .range = {-0.5, 0.75}};

static unsigned char *read_file(const char *path, size_t *bytes) {
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    unsigned char *data = malloc((size_t)info.st_size);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    *bytes = fread(data, 1, (size_t)info.st_size, file);
    assert_int_equal(*bytes, info.st_size);
    assert_int_equal(fclose(file), 0);
    return data;
}

static void every_cut_gives_one_file(void **state) {
    (void)state;
    static const struct {
        const struct rfx_output_format *format;
        const char *path;
        int64_t c, h, w, wide;
    } cases[] = {
        {&npy, DIRECTORY "/a.npy", 3, 41, 29, 3},
        {&npy, DIRECTORY "/a.npy", 5, 300, 31, 8},
        {&npy, DIRECTORY "/a.npy", 2, 9, 5000, 2},
        {&npy, DIRECTORY "/a.npy", 2, 3, 20000, 3},
        {&tiff, DIRECTORY "/a.tif", 5, 41, 29, 7},
        {&tiff16, DIRECTORY "/a.tif", 2, 41, 29, 2},
        {&png, DIRECTORY "/a.png", 1, 41, 29, 1},
        {&png, DIRECTORY "/a.png", 3, 41, 29, 4},
        {&png16_range, DIRECTORY "/a.png", 3, 41, 29, 3},
    };
    static const struct output_cut cuts[] = {{1, 1 << 20, false},  {7, 1 << 20, false},
                                             {1 << 20, 10, false}, {5, 9, false},
                                             {5, 9, true},         {1 << 20, 28, true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct output_map map = output_map_make(cases[i].c, cases[i].h, cases[i].w, cases[i].wide);
        size_t whole_bytes = 0, bytes = 0;
        unsigned char *whole = NULL;
        for (size_t k = 0; k <= sizeof cuts / sizeof cuts[0]; k++) {
            struct rfx_memory *mem = rfx_memory_create(0);
            struct rfx_error err = {""};
            struct output_cut cut =
                k == 0 ? (struct output_cut){1 << 20, 1 << 20, false} : cuts[k - 1];
            enum rfx_status status =
                output_map_write(mem, cases[i].path, cases[i].format, &map, cut, &err);
            if (status != RFX_OK) fail_msg("case %zu, cut %zu: %d %s", i, k, status, err.text);
            size_t allowed = rfx_output_stream_bytes(cases[i].format, &map.tensor);
            if (rfx_memory_high_water_bytes(mem) > allowed)
                fail_msg("case %zu: %zu bytes, %zu allowed", i, rfx_memory_high_water_bytes(mem),
                         allowed);
            rfx_memory_free(mem);
            unsigned char *data = read_file(cases[i].path, &bytes);
            if (k == 0) {
                whole = data;
                whole_bytes = bytes;
            } else {
                assert_int_equal(bytes, whole_bytes);
                if (memcmp(data, whole, bytes) != 0) fail_msg("case %zu, cut %zu differs", i, k);
                free(data);
            }
            assert_int_equal(unlink(cases[i].path), 0);
        }
        free(whole);
        free(map.values);
    }
}

/* The value that should be in the file. */
static float wanted(const struct output_map *map, int64_t y, int64_t x, int64_t c) {
    float v = rfx_view_f32_at(&map->view, y, x)[c];
    return isnan(v) ? NAN : v;
}

static void npy_holds_planes(void **state) {
    (void)state;
    static const char path[] = DIRECTORY "/a.npy";
    struct output_map map = output_map_make(3, 17, 23, 4);
    struct rfx_memory *mem = rfx_memory_create(0);
    size_t bytes;
    assert_int_equal(
        output_map_write(mem, path, &npy, &map, (struct output_cut){4, 100, false}, NULL), RFX_OK);
    unsigned char *data = read_file(path, &bytes);
    assert_int_equal(bytes, 128 + 3 * 17 * 23 * 4);
    assert_non_null(strstr((const char *)data + 10, "(1, 3, 17, 23)"));
    for (int64_t i = 0; i < 3 * 17 * 23; i++) {
        float want = wanted(&map, i / 23 % 17, i % 23, i / (17 * 23));
        assert_memory_equal(data + 128 + 4 * i, &want, 4);
    }
    free(data);
    /* vectors, a few elements at a time */
    struct rfx_output_stream *stream = NULL;
    struct rfx_tensor vector = {
        .layout = RFX_LAYOUT_PLAIN, .shape = {2, {1, 5}}, .c = 5, .h = 1, .w = 1, .elems = 5};
    float values[5] = {1, 2, 3, 4, 5};
    const struct output_run run = output_run_make(values, 0, 2),
                            rest = output_run_make(values, 2, 3);
    assert_int_equal(rfx_output_stream_open(mem, path, &npy, &vector, &stream, NULL), RFX_OK);
    assert_int_equal(rfx_output_stream_write_end(stream, &run.end, run.rect, &run.view, NULL),
                     RFX_OK);
    assert_int_equal(rfx_output_stream_commit(stream, NULL, NULL, NULL),
                     RFX_STATUS_INVALID_ARGUMENT);
    assert_int_equal(rfx_output_stream_write_end(stream, &rest.end, rest.rect, &rest.view, NULL),
                     RFX_OK);
    assert_int_equal(rfx_output_stream_commit(stream, NULL, NULL, NULL), RFX_OK);
    rfx_output_stream_free(stream);
    data = read_file(path, &bytes);
    assert_int_equal(bytes, 128 + 20);
    assert_memory_equal(data + 128, values, 20);
    free(data);
    free(map.values);
    rfx_memory_free(mem);
    assert_int_equal(unlink(path), 0);
}

static void tiff_holds_the_floats(void **state) {
    (void)state;
    static const char path[] = DIRECTORY "/a.tiff";
    struct output_map map = output_map_make(4, 17, 23, 5);
    struct rfx_memory *mem = rfx_memory_create(0);
    assert_int_equal(
        output_map_write(mem, path, &tiff, &map, (struct output_cut){100, 6, false}, NULL), RFX_OK);
    rfx_memory_free(mem);
    TIFF *file = TIFFOpen(path, "r");
    assert_non_null(file);
    float row[23 * 4];
    for (int64_t y = 0; y < 17; y++) {
        assert_int_equal(TIFFReadScanline(file, row, (uint32_t)y, 0), 1);
        for (int64_t i = 0; i < 23 * 4; i++) {
            float want = wanted(&map, y, i / 4, i % 4);
            assert_memory_equal(&row[i], &want, 4);
        }
    }
    TIFFClose(file);
    free(map.values);
    assert_int_equal(unlink(path), 0);
}

/* Black is the smallest finite value, white the largest, whatever the cut. */
static void png_spans_the_map(void **state) {
    (void)state;
    static const char path[] = DIRECTORY "/a.PNG";
    struct output_map map = output_map_make(1, 11, 13, 1);
    double lo = 9, hi = -9;
    for (int64_t i = 2; i < 11 * 13; i++) {
        lo = fmin(lo, (double)map.values[i]);
        hi = fmax(hi, (double)map.values[i]);
    }
    struct rfx_memory *mem = rfx_memory_create(0);
    assert_int_equal(
        output_map_write(mem, path, &png, &map, (struct output_cut){3, 100, false}, NULL), RFX_OK);
    rfx_memory_free(mem);
    png_image image;
    memset(&image, 0, sizeof image);
    image.version = PNG_IMAGE_VERSION;
    assert_true(png_image_begin_read_from_file(&image, path));
    assert_int_equal(image.width, 13);
    assert_int_equal(image.height, 11);
    image.format = PNG_FORMAT_GRAY;
    unsigned char got[11 * 13];
    assert_true(png_image_finish_read(&image, NULL, got, 0, NULL));
    assert_int_equal(got[0], 255); /* infinity */
    assert_int_equal(got[1], 0);   /* NaN */
    for (int64_t i = 2; i < 11 * 13; i++)
        assert_int_equal(got[i], floor(((double)map.values[i] - lo) / (hi - lo) * 255.0 + 0.5));
    free(map.values);
    assert_int_equal(unlink(path), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        test_in_folder(every_cut_gives_one_file, DIRECTORY),
        test_in_folder(npy_holds_planes, DIRECTORY),
        test_in_folder(tiff_holds_the_floats, DIRECTORY),
        test_in_folder(png_spans_the_map, DIRECTORY),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
