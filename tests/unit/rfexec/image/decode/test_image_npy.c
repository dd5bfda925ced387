/* .npy pictures: planes to pixels, any channel count, odd rectangles, refusals. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "rfexec/image/image_source.h"

#define FILE_NAME "test_image_npy.tmp.npy"

/* Writes a version 1 file: the dictionary text, then `elems` floats of value f(i) = i / 4. */
static void write_npy(const char *dict, int64_t elems, int extra_bytes) {
    unsigned char head[128];
    memset(head, ' ', sizeof head);
    memcpy(head, "\x93NUMPY\x01\x00\x76\x00", 10);
    memcpy(head + 10, dict, strlen(dict));
    head[127] = '\n';
    FILE *file = fopen(FILE_NAME, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(head, 1, sizeof head, file), sizeof head);
    for (int64_t i = 0; i < elems; i++) {
        float v = i == 5 ? NAN : (float)i / 4.0f;
        assert_int_equal(fwrite(&v, 4, 1, file), 1);
    }
    for (int i = 0; i < extra_bytes; i++) assert_int_equal(fputc(0, file), 0);
    assert_int_equal(fclose(file), 0);
}

static void delivers_chosen_channels(void **state) {
    (void)state;
    static const struct rfx_image_bands chosen = {4, {5, 1, 5, 2}}, sixth = {2, {1, 6}};
    struct rfx_image_options options = rfx_image_default_options();
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_image *image = NULL;
    struct rfx_error err = {""};
    float data[4 * 2 * 3];
    write_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (5, 3, 4), }", 5 * 3 * 4, 0);
    options.bands = &chosen;
    assert_int_equal(rfx_image_open(mem, FILE_NAME, &options, &image, &err), RFX_OK);
    struct rfx_source_traits t = rfx_image_traits(image);
    assert_int_equal(t.c, 4);
    assert_int_equal(t.fixed_bytes, rfx_memory_high_water_bytes(mem));
    struct rfx_view view = rfx_view_dense(data, rfx_rect_make(1, 3, 1, 4), 4);
    assert_int_equal(rfx_image_read(image, view.rect, &view, &err), RFX_OK);
    for (int64_t y = 1; y < 3; y++)
        for (int64_t x = 1; x < 4; x++)
            for (int k = 0; k < 4; k++)
                assert_float_equal(rfx_view_f32_at(&view, y, x)[k],
                                   (float)(((chosen.numbers[k] - 1) * 3 + y) * 4 + x) / 4.0f, 0);
    rfx_image_free(image);
    options.bands = &sixth;
    assert_int_equal(rfx_image_open(mem, FILE_NAME, &options, &image, &err),
                     RFX_STATUS_UNSUPPORTED);
    assert_non_null(strstr(err.text, FILE_NAME ": --channels: band 6 of 5"));
    rfx_memory_free(mem);
}

static void delivers_planes_as_pixels(void **state) {
    (void)state;
    static const struct {
        const char *dict;
        int64_t channels, wide; /* of a pixel in memory */
    } cases[] = {{"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 5, 3, 9000), }", 5, 7},
                 {"{'descr': '<f4', 'fortran_order': False, 'shape': (5, 3, 9000), }", 5, 7},
                 {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 3, 9000), }", 3, 3},
                 {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 3, 9000), }", 3, 7}};
    for (int i = 0; i < 4; i++) {
        const int64_t channels = cases[i].channels, wide = cases[i].wide;
        write_npy(cases[i].dict, channels * 3 * 9000, 0);
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_image *image = NULL;
        struct rfx_error err = {""};
        /* the options ask for 3 channels and ImageNet's mean: neither touches an npy */
        if (rfx_image_open(mem, FILE_NAME, NULL, &image, &err) != RFX_OK) fail_msg("%s", err.text);
        struct rfx_source_traits t = rfx_image_traits(image);
        assert_int_equal(t.c, channels);
        assert_int_equal(t.h, 3);
        assert_int_equal(t.w, 9000);
        assert_true(t.random_access);
        assert_int_equal(rfx_image_set_window(image, 1, &err), RFX_OK);
        assert_int_equal(t.fixed_bytes, rfx_memory_high_water_bytes(mem));
        struct rfx_rect rect = rfx_rect_make(0, 3, 3, 8997);
        float *data = calloc(3 * 9000 * 7, sizeof *data);
        struct rfx_view view = rfx_view_dense(data, rfx_rect_full(3, 9000), wide);
        assert_int_equal(rfx_image_read(image, rect, &view, &err), RFX_OK);
        for (int64_t y = 0; y < 3; y++)
            for (int64_t x = 0; x < 9000; x++)
                for (int64_t c = 0; c < wide; c++) {
                    int64_t from = (c * 3 + y) * 9000 + x;
                    float wanted = x >= 3 && x < 8997 && c < channels ? (float)from / 4.0f : 0.0f;
                    float got = rfx_view_f32_at(&view, y, x)[c];
                    if (from == 5 && c < channels ? !isnan(got) : got != wanted)
                        fail_msg("(%d, %d, %d): %g", (int)y, (int)x, (int)c, (double)got);
                }
        free(data);
        rfx_image_free(image);
        rfx_memory_free(mem);
    }
    (void)unlink(FILE_NAME);
}

/* Rows of a narrow picture that are read together come to where a view has each: also in a ring,
 * which begins again among them. */
static void delivers_many_rows_at_a_time(void **state) {
    (void)state;
    enum { C = 5, H = 300, W = 100, RING = 128 };
    static const struct {
        int64_t y0, y1, x0, x1;
    } rects[] = {{0, 128, 0, W},   {100, 228, 0, W}, {171, 299, 0, W},
                 {250, 300, 0, W}, {100, 228, 1, W}, {100, 228, 0, W - 1}};
    write_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (5, 300, 100), }", C * H * W, 0);
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_image *image = NULL;
    struct rfx_error err = {""};
    assert_int_equal(rfx_image_open(mem, FILE_NAME, NULL, &image, &err), RFX_OK);
    float *data = calloc((size_t)RING * W * C, sizeof *data);
    for (size_t r = 0; r < sizeof rects / sizeof *rects; r++) {
        struct rfx_rect rect = rfx_rect_make(rects[r].y0, rects[r].y1, rects[r].x0, rects[r].x1);
        struct rfx_view view = rfx_view_dense(data, rect, C);
        view.ring_rows = RING;
        assert_int_equal(rfx_image_read(image, rect, &view, &err), RFX_OK);
        for (int64_t y = rect.y0; y < rect.y1; y++)
            for (int64_t x = rect.x0; x < rect.x1; x++)
                for (int64_t c = 0; c < C; c++) {
                    int64_t from = (c * H + y) * W + x;
                    float got = rfx_view_f32_at(&view, y, x)[c];
                    if (from == 5 ? !isnan(got) : got != (float)from / 4.0f)
                        fail_msg("(%d, %d, %d): %g", (int)y, (int)x, (int)c, (double)got);
                }
    }
    free(data);
    rfx_image_free(image);
    rfx_memory_free(mem);
    (void)unlink(FILE_NAME);
}

static void refuses_in_words(void **state) {
    (void)state;
    static const struct {
        const char *dict;
        int64_t elems;
        int extra;
        enum rfx_status status;
        const char *word;
    } cases[] = {
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (1, 2, 2), }", 8, 0,
         RFX_STATUS_UNSUPPORTED, "<c8"},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 1, 2, 2), }", 8, 0,
         RFX_STATUS_UNSUPPORTED, "batch"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (3000, 1, 1), }", 6000, 0,
         RFX_STATUS_UNSUPPORTED, "3000 channels"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }", 4, 0,
         RFX_STATUS_UNSUPPORTED, "(2, 2)"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1, 2, 2), }", 8, 0,
         RFX_STATUS_UNSUPPORTED, "(2, 1, 2, 2)"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 0, 2), }", 0, 0,
         RFX_STATUS_MALFORMED, "impossible"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 2), }", 0, 0,
         RFX_STATUS_MALFORMED, "impossible"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 2), }", 3, 3,
         RFX_STATUS_MALFORMED, "144 bytes, it has 143"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 2), }", 4, 1,
         RFX_STATUS_MALFORMED, "144 bytes, it has 145"},
        {"{'descr' '<f4'}", 4, 0, RFX_STATUS_MALFORMED, "':' expected at byte 19"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_npy(cases[i].dict, cases[i].elems, cases[i].extra);
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_image *image = NULL;
        struct rfx_error err = {""};
        enum rfx_status status = rfx_image_open(mem, FILE_NAME, NULL, &image, &err);
        if (status != cases[i].status || strstr(err.text, cases[i].word) == NULL ||
            strstr(err.text, FILE_NAME) == NULL)
            fail_msg("%s: status %d: %s", cases[i].dict, status, err.text);
        rfx_memory_free(mem);
    }
    (void)unlink(FILE_NAME);
}

static void notices_a_file_that_shrinks(void **state) {
    (void)state;
    write_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 4, 2), }", 8, 0);
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_image *image = NULL;
    struct rfx_error err = {""};
    assert_int_equal(rfx_image_open(mem, FILE_NAME, NULL, &image, &err), RFX_OK);
    assert_int_equal(truncate(FILE_NAME, 128 + 5 * 4), 0);
    float data[8];
    struct rfx_view view = rfx_view_dense(data, rfx_rect_full(4, 2), 1);
    assert_int_equal(rfx_image_read(image, rfx_rect_make(0, 2, 0, 2), &view, &err), RFX_OK);
    assert_int_equal(rfx_image_read(image, view.rect, &view, &err), RFX_STATUS_MALFORMED);
    assert_non_null(strstr(err.text, "row 2 of 4"));
    rfx_image_free(image);
    rfx_memory_free(mem);
    (void)unlink(FILE_NAME);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(delivers_chosen_channels),     cmocka_unit_test(delivers_planes_as_pixels),
        cmocka_unit_test(delivers_many_rows_at_a_time), cmocka_unit_test(refuses_in_words),
        cmocka_unit_test(notices_a_file_that_shrinks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
