/* PNG by rows: every bit depth, colour type and interlacing against samples written by libpng;
 * windows, rewinding, exact memory, failing allocations, broken files. */
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
#include "rfexec/output/image_write.h"
#include "tests/support/makers/png_maker.h"

#define FILE_NAME "test_image_png.tmp.png"

static const struct rfx_image_options plain = {.scale = 1.0f,
                                               .mean = (const float[]){0},
                                               .n_mean = 1,
                                               .std = (const float[]){1},
                                               .n_std = 1,
                                               .bgr = false,
                                               .channels = 0};

static const struct {
    int depth, type;
} kinds[] = {{1, 0}, {2, 0}, {4, 0}, {8, 0}, {16, 0}, {8, 2}, {16, 2}, {1, 3},
             {2, 3}, {4, 3}, {8, 3}, {8, 4}, {16, 4}, {8, 6}, {16, 6}};
#define KINDS (int)(sizeof kinds / sizeof kinds[0])

static struct png_maker maker_of(int i, int h, int w) {
    /* i counts kinds x interlaced x transparent */
    struct png_maker m = {.h = h,
                          .w = w,
                          .bit_depth = kinds[i % KINDS].depth,
                          .color_type = kinds[i % KINDS].type,
                          .interlaced = i / KINDS % 2 == 1,
                          .transparent = i / KINDS / 2 == 1,
                          .seed = (uint32_t)i + 100};
    return m;
}

static float expected(const struct png_maker *m, int64_t y, int64_t x, int64_t c) {
    float v = (float)png_maker_sample(m, (int)y, (int)x, (int)c);
    return m->bit_depth == 16 ? v / 257.0f : v;
}

static void check_rect(struct rfx_image *image, const struct png_maker *m, struct rfx_rect rect) {
    int64_t c = png_maker_channels(m);
    float *data = malloc((size_t)(rfx_rect_area(rect) * c) * sizeof *data);
    struct rfx_view view = rfx_view_dense(data, rect, c);
    struct rfx_error err;
    enum rfx_status status = rfx_image_read(image, rect, &view, &err);
    if (status != RFX_OK) fail_msg("%s", err.text);
    for (int64_t y = rect.y0; y < rect.y1; y++)
        for (int64_t x = rect.x0; x < rect.x1; x++)
            for (int64_t k = 0; k < c; k++)
                if (rfx_view_f32_at(&view, y, x)[k] != expected(m, y, x, k))
                    fail_msg("depth %d type %d interlaced %d at (%d, %d, %d): %g, expected %g",
                             m->bit_depth, m->color_type, m->interlaced, (int)y, (int)x, (int)k,
                             (double)rfx_view_f32_at(&view, y, x)[k], (double)expected(m, y, x, k));
    free(data);
}

static struct rfx_image *open_made(struct rfx_memory *mem, const struct png_maker *m) {
    assert_true(png_maker_write(m, FILE_NAME));
    struct rfx_image *image = NULL;
    struct rfx_error err;
    if (rfx_image_open(mem, FILE_NAME, &plain, &image, &err) != RFX_OK) fail_msg("%s", err.text);
    return image;
}

static void every_kind_in_bands(void **state) {
    (void)state;
    static const int sizes[][2] = {{1, 1}, {9, 7}, {23, 33}};
    for (int i = 0; i < KINDS * 4; i++)
        for (int k = 0; k < 3; k++) {
            struct png_maker m = maker_of(i, sizes[k][0], sizes[k][1]);
            struct rfx_memory *mem = rfx_memory_create(0);
            struct rfx_image *image = open_made(mem, &m);
            struct rfx_source_traits t = rfx_image_traits(image);
            assert_int_equal(t.h, m.h);
            assert_int_equal(t.w, m.w);
            assert_int_equal(t.c, png_maker_channels(&m));
            assert_int_equal(t.random_access, m.interlaced);
            int window = 1 + i % 6;
            assert_int_equal(rfx_image_set_window(image, window, NULL), RFX_OK);
            uint64_t allocations = rfx_memory_allocation_count(mem);
            for (int pass = 0; pass < 2; pass++) {
                /* bands that overlap by what the window keeps */
                for (int64_t y0 = 0, y1; y0 < m.h; y0 = y1 < m.h ? y1 - window / 2 : y1) {
                    y1 = y0 + window < m.h ? y0 + window : m.h;
                    check_rect(image, &m, rfx_rect_make(y0, y1, m.w / 3, m.w));
                    check_rect(image, &m, rfx_rect_make(y1 - 1, y1, 0, m.w / 3 + 1));
                }
                assert_int_equal(rfx_image_rewind(image, NULL), RFX_OK);
            }
            assert_int_equal(rfx_memory_allocation_count(mem), allocations);
            size_t rows = (size_t)(window < m.h ? window : m.h);
            assert_int_equal(rfx_memory_high_water_bytes(mem),
                             t.fixed_bytes + rows * t.window_row_bytes);
            rfx_image_free(image);
            rfx_memory_free(mem);
        }
    (void)unlink(FILE_NAME);
}

/* Alpha is a band: dropped and counted, or read where all bands are asked for or taken. */
static void alpha_is_a_band(void **state) {
    (void)state;
    static const struct rfx_image_bands last = {3, {4, 1, 4}};
    for (int kind = 0; kind < 4; kind++) {
        struct png_maker m = {.h = 9, .w = 7, .bit_depth = kind % 2 == 0 ? 8 : 16, .color_type = 6};
        struct rfx_image *image = NULL;
        struct rfx_error err;
        int bands = 0;
        m.interlaced = kind / 2 == 1;
        assert_true(png_maker_write(&m, FILE_NAME));
        for (int way = 0; way < 3; way++) {
            struct rfx_memory *mem = rfx_memory_create(0);
            struct rfx_image_options options = plain;
            options.channels = way == 1 ? 4 : 3;
            if (way == 2) options.bands = &last;
            if (rfx_image_open(mem, FILE_NAME, &options, &image, &err) != RFX_OK)
                fail_msg("%s", err.text);
            const int c = way == 1 ? 4 : 3;
            struct rfx_source_traits t = rfx_image_traits(image);
            assert_int_equal(t.c, c);
            assert_int_equal(rfx_image_alpha(image, &bands), way == 0);
            assert_int_equal(bands, 4);
            assert_int_equal(rfx_image_set_window(image, 2, &err), RFX_OK);
            for (int y = 0; y < m.h; y++) {
                float row[7 * 4];
                struct rfx_view view = rfx_view_dense(row, rfx_rect_make(y, y + 1, 0, m.w), c);
                if (rfx_image_read(image, view.rect, &view, &err) != RFX_OK)
                    fail_msg("%s", err.text);
                for (int i = 0; i < m.w * c; i++)
                    assert_float_equal(
                        row[i], expected(&m, y, i / c, way == 2 ? last.numbers[i % c] - 1 : i % c),
                        0);
            }
            assert_true(rfx_memory_high_water_bytes(mem) <= t.fixed_bytes + 2 * t.window_row_bytes);
            rfx_image_free(image);
            rfx_memory_free(mem);
        }
    }
    (void)unlink(FILE_NAME);
}

static void interlaced_without_window(void **state) {
    (void)state;
    struct png_maker m = maker_of(KINDS + 5, 20, 30);
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_image *image = open_made(mem, &m);
    check_rect(image, &m, rfx_rect_make(15, 20, 3, 9));
    check_rect(image, &m, rfx_rect_make(0, 20, 0, 30));
    assert_true(rfx_image_traits(image).fixed_bytes < 128 * 1024);
    rfx_image_free(image);
    rfx_memory_free(mem);
    (void)unlink(FILE_NAME);
}

/* What an interlaced picture holds does not grow with its rows; one that breaks off says where. */
static void interlaced_in_a_file(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_error err = {""};
    size_t fixed[2];
    for (int tall = 0; tall < 2; tall++) {
        struct png_maker m = maker_of(KINDS + 6, tall ? 900 : 300, 100);
        struct rfx_image *image = open_made(mem, &m);
        check_rect(image, &m, rfx_rect_make(0, m.h, 20, 100));
        fixed[tall] = rfx_image_traits(image).fixed_bytes;
        rfx_image_free(image);
    }
    assert_int_equal(fixed[0], fixed[1]);
    assert_int_equal(truncate(FILE_NAME, 900 * 100 * 6 / 2), 0);
    struct rfx_image *image = NULL;
    assert_int_equal(rfx_image_open(mem, FILE_NAME, &plain, &image, &err), RFX_OK);
    for (int again = 0; again < 2; again++) {
        int row = 0; /* even rows are complete but for their odd columns: pass 6 */
        assert_int_equal(rfx_image_set_window(image, 1, &err), RFX_STATUS_MALFORMED);
        assert_int_equal(sscanf(err.text, FILE_NAME ": row %d of 900: ", &row), 1);
        assert_in_range(row, 800, 899);
        assert_int_equal(row % 2, 0);
    }
    rfx_image_free(image);
    rfx_memory_free(mem);
    (void)unlink(FILE_NAME);
}

static void refuses_passed_rows(void **state) {
    (void)state;
    struct png_maker m = maker_of(5, 20, 8);
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_image *image = open_made(mem, &m);
    float data[20 * 8 * 3];
    struct rfx_error err = {""};
    struct rfx_rect all = rfx_rect_full(20, 8);
    struct rfx_view view = rfx_view_dense(data, all, 3);
    const enum rfx_status bad = RFX_STATUS_INVALID_ARGUMENT;
    assert_int_equal(rfx_image_read(image, rfx_rect_make(0, 1, 0, 8), &view, &err), bad);
    assert_int_equal(rfx_image_set_window(image, 0, &err), bad);
    assert_int_equal(rfx_image_set_window(image, 4, &err), RFX_OK);
    assert_int_equal(rfx_image_read(image, rfx_rect_make(0, 5, 0, 8), &view, &err), bad);
    assert_int_equal(rfx_image_read(image, rfx_rect_make(0, 21, 0, 8), &view, &err), bad);
    assert_int_equal(rfx_image_read(image, rfx_rect_make(0, 4, -1, 8), &view, &err), bad);
    assert_int_equal(rfx_image_read(image, rfx_rect_make(6, 10, 0, 8), &view, &err), RFX_OK);
    assert_int_equal(rfx_image_read(image, rfx_rect_make(5, 7, 0, 8), &view, &err), bad);
    assert_non_null(strstr(err.text, FILE_NAME));
    assert_int_equal(rfx_image_read(image, rfx_rect_make(6, 8, 0, 8), &view, &err), RFX_OK);
    assert_int_equal(rfx_image_rewind(image, &err), RFX_OK);
    check_rect(image, &m, rfx_rect_make(0, 4, 0, 8));
    rfx_image_free(image);
    rfx_memory_free(mem);
    (void)unlink(FILE_NAME);
}

static void names_the_row_where_it_breaks(void **state) {
    (void)state;
    struct png_maker m = maker_of(5, 100, 64); /* random bytes: nothing compresses */
    struct rfx_memory *mem = rfx_memory_create(0);
    assert_true(png_maker_write(&m, FILE_NAME));
    assert_int_equal(truncate(FILE_NAME, 100 * 64 * 3 / 2), 0);
    struct rfx_image *image = NULL;
    struct rfx_error err = {""};
    assert_int_equal(rfx_image_open(mem, FILE_NAME, &plain, &image, &err), RFX_OK);
    assert_int_equal(rfx_image_set_window(image, 100, &err), RFX_OK);
    float *data = malloc(100 * 64 * 3 * sizeof *data);
    struct rfx_view view = rfx_view_dense(data, rfx_rect_full(100, 64), 3);
    for (int again = 0; again < 2; again++) {
        enum rfx_status status = rfx_image_read(image, view.rect, &view, &err);
        assert_int_equal(status, RFX_STATUS_MALFORMED);
        int row = 0;
        assert_int_equal(sscanf(err.text, FILE_NAME ": row %d of 100: ", &row), 1);
        assert_in_range(row, 40, 50);
        assert_non_null(strstr(err.text, "the file ends here"));
    }
    free(data);
    rfx_image_free(image);
    rfx_memory_free(mem);
    (void)unlink(FILE_NAME);
}

/* One run of open, window, read; with the k-th allocation failing where k >= 0. */
static enum rfx_status run_once(int64_t k, struct rfx_error *err) {
    struct rfx_memory *mem = rfx_memory_create(0);
    rfx_memory_fail_after(mem, k);
    struct rfx_image *image = NULL;
    float data[9 * 7 * 3];
    struct rfx_view view = rfx_view_dense(data, rfx_rect_full(9, 7), 3);
    enum rfx_status status = rfx_image_open(mem, FILE_NAME, &plain, &image, err);
    if (status == RFX_OK) status = rfx_image_set_window(image, 9, err);
    if (status == RFX_OK) status = rfx_image_read(image, view.rect, &view, err);
    rfx_image_free(image);
    rfx_memory_free(mem); /* asserts that nothing is left */
    return status;
}

static void survives_failing_allocations(void **state) {
    (void)state;
    for (int interlaced = 0; interlaced < 2; interlaced++) {
        struct png_maker m = maker_of(5 + interlaced * KINDS, 9, 7);
        assert_true(png_maker_write(&m, FILE_NAME));
        int64_t k = 0;
        struct rfx_error err;
        for (;; k++) {
            err.text[0] = '\0';
            enum rfx_status status = run_once(k, &err);
            if (status == RFX_OK) break;
            assert_int_equal(status, RFX_STATUS_OUT_OF_MEMORY);
            assert_true(err.text[0] != '\0');
            assert_true(k < 50);
        }
        assert_true(k >= 5); /* image, name, kind, decoder, pool, window */
    }
    (void)unlink(FILE_NAME);
}

static void large_picture_in_planned_bytes(void **state) {
    (void)state;
    const int64_t h = 5000, w = 6000, window = 64;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_png_writer *writer = NULL;
    unsigned char *row = malloc((size_t)w * 3);
    assert_int_equal(rfx_png_write_open(mem, FILE_NAME, h, w, 3, 8, &writer, NULL), RFX_OK);
    for (int64_t y = 0; y < h; y++) {
        for (int64_t i = 0; i < w * 3; i++) row[i] = (unsigned char)((i / 512 + y / 16) & 255);
        assert_int_equal(rfx_png_write_row(writer, row, NULL), RFX_OK);
    }
    assert_int_equal(rfx_png_write_commit(writer, NULL), RFX_OK);
    rfx_png_write_free(writer);
    rfx_memory_free(mem);
    free(row);

    mem = rfx_memory_create(0);
    struct rfx_image *image = NULL;
    assert_int_equal(rfx_image_open(mem, FILE_NAME, &plain, &image, NULL), RFX_OK);
    struct rfx_source_traits t = rfx_image_traits(image);
    assert_int_equal(t.window_row_bytes, w * 3);
    assert_true(t.fixed_bytes < 160 * 1024);
    assert_int_equal(rfx_image_set_window(image, window, NULL), RFX_OK);
    float *data = malloc((size_t)(window * w * 3) * sizeof *data);
    for (int64_t y = 0; y < h; y += window) {
        struct rfx_rect rect = rfx_rect_make(y, y + window < h ? y + window : h, 0, w);
        struct rfx_view view = rfx_view_dense(data, rect, 3);
        assert_int_equal(rfx_image_read(image, rect, &view, NULL), RFX_OK);
        int64_t last = rect.y1 - 1;
        for (int64_t i = 0; i < w * 3; i++)
            assert_true(rfx_view_f32_at(&view, last, 0)[i] == (float)((i / 512 + last / 16) & 255));
    }
    free(data);
    assert_int_equal(rfx_memory_high_water_bytes(mem),
                     t.fixed_bytes + (size_t)window * t.window_row_bytes);
    rfx_image_free(image);
    rfx_memory_free(mem);
    (void)unlink(FILE_NAME);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_in_bands),
        cmocka_unit_test(alpha_is_a_band),
        cmocka_unit_test(interlaced_without_window),
        cmocka_unit_test(interlaced_in_a_file),
        cmocka_unit_test(refuses_passed_rows),
        cmocka_unit_test(names_the_row_where_it_breaks),
        cmocka_unit_test(survives_failing_allocations),
        cmocka_unit_test(large_picture_in_planned_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
