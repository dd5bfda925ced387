/* JPEG by rows: every kind that libjpeg writes, against a whole decode by libjpeg (exactly) and the
 * samples that went in (nearly); windows, rewinding, exact memory, failing allocations, files that
 * break off or are damaged, kinds that are refused. */
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
#include "tests/support/makers/jpeg_maker.h"
#include "tests/support/run/image_reads.h"
#include "tests/support/test_util.h"

#define FILE_NAME "test_image_jpeg.tmp.jpg"
#ifndef FLIP_CASES
#define FLIP_CASES 400
#endif

/* Sizes are filled in by the tests. */
static const struct jpeg_maker kinds[] = {
    {.components = 1, .h_sampling = 1, .v_sampling = 1},
    {.components = 3, .h_sampling = 1, .v_sampling = 1},
    {.components = 3, .h_sampling = 2, .v_sampling = 1},
    {.components = 3, .h_sampling = 2, .v_sampling = 2, .restart_interval = 3},
    {.components = 3, .h_sampling = 1, .v_sampling = 2},
    {.components = 3, .h_sampling = 4, .v_sampling = 2},
    {.components = 3, .h_sampling = 1, .v_sampling = 1, .rgb = true},
    {.components = 3, .h_sampling = 2, .v_sampling = 2, .arithmetic = true},
    {.components = 1, .h_sampling = 1, .v_sampling = 1, .progressive = true},
    {.components = 3, .h_sampling = 1, .v_sampling = 1, .progressive = true},
    {.components = 3, .h_sampling = 2, .v_sampling = 2, .progressive = true},
    {.components = 3, .h_sampling = 4, .v_sampling = 1, .progressive = true, .arithmetic = true},
    {.components = 3, .h_sampling = 2, .v_sampling = 2, .separate_scans = true},
};
#define KINDS (int)(sizeof kinds / sizeof kinds[0])
#define FIRST_WITH_SCANS 8 /* from here on the coefficients of all scans are kept */

static void make(int kind, int h, int w) {
    struct jpeg_maker m = kinds[kind];
    m.h = h;
    m.w = w;
    m.quality = 95;
    assert_true(jpeg_maker_write(&m, FILE_NAME));
}

static void check_rect(struct rfx_image *image, const unsigned char *want, struct rfx_rect rect) {
    struct rfx_source_traits t = rfx_image_traits(image);
    float *data = malloc((size_t)(rfx_rect_area(rect) * t.c) * sizeof *data);
    struct rfx_view view = rfx_view_dense(data, rect, t.c);
    struct rfx_error err;
    if (rfx_image_read(image, rect, &view, &err) != RFX_OK) fail_msg("%s", err.text);
    for (int64_t y = rect.y0; y < rect.y1; y++)
        for (int64_t x = rect.x0; x < rect.x1; x++)
            for (int64_t c = 0; c < t.c; c++) {
                float got = rfx_view_f32_at(&view, y, x)[c];
                if (got != (float)want[(y * t.w + x) * t.c + c])
                    fail_msg("(%d, %d, %d): %g, libjpeg whole gives %d", (int)y, (int)x, (int)c,
                             (double)got, want[(y * t.w + x) * t.c + c]);
            }
    free(data);
}

static void read_in_bands(struct rfx_image *image, const unsigned char *want, int64_t window) {
    struct rfx_source_traits t = rfx_image_traits(image);
    for (int64_t y0 = 0, y1; y0 < t.h; y0 = y1 < t.h ? y1 - window / 2 : y1) {
        y1 = y0 + window < t.h ? y0 + window : t.h;
        check_rect(image, want, rfx_rect_make(y0, y1, t.w / 3, t.w));
        check_rect(image, want, rfx_rect_make(y1 - 1, y1, 0, t.w / 3 + 1));
    }
}

static size_t fixed_bytes_of(const char *path) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_image *image = NULL;
    assert_int_equal(rfx_image_open(mem, path, &image_reads_plain, &image, NULL), RFX_OK);
    size_t bytes = rfx_image_traits(image).fixed_bytes;
    rfx_image_free(image);
    rfx_memory_free(mem);
    return bytes;
}

static void check_kind(int kind, int h, int w, int64_t window) {
    make(kind, h, w);
    int whole_h, whole_w, components;
    unsigned char *whole = jpeg_maker_decode(FILE_NAME, &whole_h, &whole_w, &components);
    assert_non_null(whole);
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_image *image = NULL;
    struct rfx_error err;
    if (rfx_image_open(mem, FILE_NAME, &image_reads_plain, &image, &err) != RFX_OK)
        fail_msg("%s", err.text);
    struct rfx_source_traits t = rfx_image_traits(image);
    assert_int_equal(t.h, whole_h);
    assert_int_equal(t.w, whole_w);
    assert_int_equal(t.c, components);
    assert_int_equal(t.c, kinds[kind].components);
    assert_false(t.random_access);
    assert_int_equal(rfx_image_set_window(image, window, NULL), RFX_OK);
    uint64_t allocations = rfx_memory_allocation_count(mem);
    for (int pass = 0; pass < 2; pass++) {
        read_in_bands(image, whole, window);
        assert_int_equal(rfx_image_rewind(image, NULL), RFX_OK);
    }
    assert_int_equal(rfx_memory_allocation_count(mem), allocations);
    size_t rows = (size_t)(window < h ? window : h);
    assert_int_equal(rfx_memory_high_water_bytes(mem), t.fixed_bytes + rows * t.window_row_bytes);
    rfx_image_free(image);
    rfx_memory_free(mem);
    free(whole);
}

static void every_kind_in_bands(void **state) {
    (void)state;
    static const int sizes[][2] = {{1, 1}, {9, 7}, {16, 16}, {33, 50}, {70, 129}};
    for (int kind = 0; kind < KINDS; kind++)
        for (int k = 0; k < 5; k++) check_kind(kind, sizes[k][0], sizes[k][1], 1 + (kind + k) % 7);
    for (int64_t window = 1; window <= 41; window++) {
        check_kind(3, 40, 24, window);
        check_kind(10, 40, 24, window);
    }
    (void)unlink(FILE_NAME);
}

/* Against what went into the file: within what quality 95 and coarse chroma lose. */
static void values_are_those_of_the_picture(void **state) {
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        float allowed = kinds[kind].h_sampling == 4 ? 14.0f : 8.0f;
        make(kind, 64, 96);
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_image *image = NULL;
        assert_int_equal(rfx_image_open(mem, FILE_NAME, &image_reads_plain, &image, NULL), RFX_OK);
        int64_t channels = rfx_image_traits(image).c;
        assert_int_equal(rfx_image_set_window(image, 64, NULL), RFX_OK);
        float data[64 * 96 * 3];
        struct rfx_view view = rfx_view_dense(data, rfx_rect_full(64, 96), channels);
        assert_int_equal(rfx_image_read(image, view.rect, &view, NULL), RFX_OK);
        for (int y = 0; y < 64; y++)
            for (int x = 0; x < 96; x++)
                for (int c = 0; c < (int)channels; c++) {
                    float got = rfx_view_f32_at(&view, y, x)[c];
                    float want = (float)jpeg_maker_sample(y, x, c);
                    if (fabsf(got - want) > allowed)
                        fail_msg("kind %d (%d, %d, %d): %g, the picture has %g", kind, y, x, c,
                                 (double)got, (double)want);
                }
        rfx_image_free(image);
        rfx_memory_free(mem);
    }
    (void)unlink(FILE_NAME);
}

static void refuses_files_that_break_off(void **state) {
    (void)state;
    static struct test_bytes b;
    struct rfx_error err;
    for (int kind = 0; kind < KINDS; kind++) {
        make(kind, 60, 75);
        test_bytes_load(&b, FILE_NAME);
        assert_int_equal(image_reads_all(FILE_NAME, INT32_MAX, -1, 0, &err), RFX_OK);
        for (size_t cut = 1; cut < b.count;
             cut += cut + 50 < b.count || cut + 1 == b.count ? 50 : 1) {
            test_bytes_store(FILE_NAME, b.data, cut);
            enum rfx_status status = image_reads_all(FILE_NAME, INT32_MAX, -1, 0, &err);
            if (status != RFX_STATUS_MALFORMED || strstr(err.text, FILE_NAME) == NULL)
                fail_msg("kind %d cut at %zu: %d %s", kind, cut, status, err.text);
        }
    }
}

static void names_the_row_where_it_breaks(void **state) {
    (void)state;
    static struct test_bytes b;
    struct rfx_error err;
    make(3, 400, 64);
    test_bytes_load(&b, FILE_NAME);
    test_bytes_store(FILE_NAME, b.data, b.count / 2);
    assert_int_equal(image_reads_all(FILE_NAME, INT32_MAX, -1, 0, &err), RFX_STATUS_MALFORMED);
    int row = 0;
    assert_int_equal(sscanf(err.text, FILE_NAME ": row %d of 400: ", &row), 1);
    assert_in_range(row, 100, 300);
    make(10, 400, 64);
    test_bytes_load(&b, FILE_NAME);
    test_bytes_store(FILE_NAME, b.data, b.count / 2);
    assert_int_equal(image_reads_all(FILE_NAME, INT32_MAX, -1, 0, &err), RFX_STATUS_MALFORMED);
    assert_non_null(strstr(err.text, ": scan "));
}

/* Flipped bits: never a crash, within the memory limit, a text on refusal. */
static void survives_flipped_bits(void **state) {
    (void)state;
    static struct test_bytes b, copy;
    struct rfx_error err;
    for (int kind = 0; kind < KINDS; kind++) {
        make(kind, 40, 45);
        test_bytes_load(&b, FILE_NAME);
        uint32_t seed = 4321u + (uint32_t)kind;
        for (int i = 0; i < FLIP_CASES; i++) {
            uint32_t start = seed;
            copy = b;
            for (int k = 0; k < 1 + i % 3; k++) {
                seed = seed * 1664525u + 1013904223u;
                size_t reach = i % 2 == 0 && b.count > 700 ? 700 : b.count;
                unsigned char *at = copy.data + (seed >> 8) % reach;
                *at = (unsigned char)(*at ^ (1u << (seed >> 29)));
            }
            test_bytes_store(FILE_NAME, copy.data, copy.count);
            enum rfx_status status =
                image_reads_all(FILE_NAME, INT32_MAX, -1, (size_t)32 << 20, &err);
            bool known = status == RFX_OK || status == RFX_STATUS_MALFORMED ||
                         status == RFX_STATUS_UNSUPPORTED || status == RFX_STATUS_OUT_OF_MEMORY;
            if (!known || (status != RFX_OK && strstr(err.text, FILE_NAME) == NULL))
                fail_msg("kind %d, seed %u: status %d: %s", kind, start, status, err.text);
        }
    }
}

static void survives_failing_allocations(void **state) {
    (void)state;
    for (int kind = FIRST_WITH_SCANS - 1; kind <= FIRST_WITH_SCANS; kind++) {
        make(kind, 20, 30);
        assert_true(image_reads_failing(FILE_NAME) >=
                    6); /* image, name, kind, small pool, pool, window */
    }
}

/* The byte after marker 0xff `code`, found before the first scan. */
static unsigned char *segment(struct test_bytes *b, unsigned char code) {
    for (size_t i = 2; i + 4 < b->count;) {
        assert_int_equal(b->data[i], 0xff);
        if (b->data[i + 1] == code) return b->data + i + 1;
        i += 2 + (size_t)(b->data[i + 2] << 8 | b->data[i + 3]);
    }
    fail_msg("no segment %02x", code);
    return NULL;
}

/* Stored inks are 255 - ink; what is left of white is what neither ink nor black takes. */
static void inks_become_colours(void **state) {
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        struct jpeg_maker m = {.h = 33, .w = 47, .components = 4, .quality = 90};
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_image *image = NULL;
        struct rfx_error err;
        int h, w, c;
        m.h_sampling = m.v_sampling = 1 + kind % 2;
        m.progressive = kind == 2;
        assert_true(jpeg_maker_write(&m, FILE_NAME));
        unsigned char *inks = jpeg_maker_decode(FILE_NAME, &h, &w, &c);
        assert_true(inks != NULL && c == 4);
        if (rfx_image_open(mem, FILE_NAME, &image_reads_plain, &image, &err) != RFX_OK)
            fail_msg("%s", err.text);
        struct rfx_source_traits t = rfx_image_traits(image);
        assert_int_equal(t.c, 3);
        assert_non_null(strstr(rfx_image_note(image), "CMYK is converted"));
        assert_int_equal(rfx_image_set_window(image, 1, &err), RFX_OK);
        for (int y = 0; y < h; y++) {
            float row[47 * 3];
            struct rfx_view view = rfx_view_dense(row, rfx_rect_make(y, y + 1, 0, w), 3);
            if (rfx_image_read(image, view.rect, &view, &err) != RFX_OK) fail_msg("%s", err.text);
            for (int i = 0; i < w * 3; i++) {
                const unsigned char *p = inks + (y * w + i / 3) * 4;
                assert_float_equal(row[i], (float)((p[i % 3] * p[3] * 2 + 255) / 510), 0);
            }
        }
        assert_int_equal(rfx_memory_high_water_bytes(mem), t.fixed_bytes + t.window_row_bytes);
        free(inks);
        rfx_image_free(image);
        rfx_memory_free(mem);
    }
}

static void refuses_in_words(void **state) {
    (void)state;
    static struct test_bytes b;
    struct rfx_error err;
    make(1, 16, 16);
    test_bytes_load(&b, FILE_NAME);
    unsigned char *frame = segment(&b, 0xc0);
    frame[3] = 12;
    test_bytes_store(FILE_NAME, b.data, b.count);
    assert_int_equal(image_reads_all(FILE_NAME, INT32_MAX, -1, 0, &err), RFX_STATUS_UNSUPPORTED);
    assert_non_null(strstr(err.text, "precision 12"));
    frame[3] = 8;
    frame[0] = 0xc3; /* lossless */
    test_bytes_store(FILE_NAME, b.data, b.count);
    assert_int_equal(image_reads_all(FILE_NAME, INT32_MAX, -1, 0, &err), RFX_STATUS_UNSUPPORTED);
    frame[0] = 0xc0;
    frame[4] = frame[5] = 0; /* no height: it would follow the first scan */
    test_bytes_store(FILE_NAME, b.data, b.count);
    assert_int_equal(image_reads_all(FILE_NAME, INT32_MAX, -1, 0, &err), RFX_STATUS_MALFORMED);
}

/* Of pictures whose coefficients are more than a strip: what they hold does not grow with their
 * rows, and values are those of the same coefficients in one scan. */
static void large_pictures_with_scans(void **state) {
    (void)state;
    static const int scanned[] = {8, 10, 11, 12}, plain[] = {0, 3, -1, 3};
    size_t fixed[2];
    for (int k = 0; k < 4; k++) {
        make(scanned[k], 1300, 520);
        fixed[1] = fixed_bytes_of(FILE_NAME);
        check_kind(scanned[k], 1000, 520, 64);
        fixed[0] = fixed_bytes_of(FILE_NAME);
        assert_true(fixed[0] < 1200 * 1024);
        assert_int_equal(fixed[0], fixed[1]);
        if (plain[k] < 0) continue;
        int h, w, components;
        make(plain[k], 1000, 520);
        unsigned char *whole = jpeg_maker_decode(FILE_NAME, &h, &w, &components);
        make(scanned[k], 1000, 520);
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_image *image = NULL;
        assert_int_equal(rfx_image_open(mem, FILE_NAME, &image_reads_plain, &image, NULL), RFX_OK);
        assert_int_equal(rfx_image_set_window(image, 1000, NULL), RFX_OK);
        check_rect(image, whole, rfx_rect_full(1000, 520));
        rfx_image_free(image);
        rfx_memory_free(mem);
        free(whole);
    }
    (void)unlink(FILE_NAME);
}

/* A file whose later scans are not there, but whose end is: libjpeg smooths what they leave out. */
static void scans_that_were_never_written(void **state) {
    (void)state;
    static struct test_bytes b;
    int h, w, components;
    make(10, 500, 400);
    test_bytes_load(&b, FILE_NAME);
    size_t cut = 0;
    for (size_t i = 2, scans = 0; i + 1 < b.count && cut == 0; i++)
        if (b.data[i] == 0xff && b.data[i + 1] == 0xda && ++scans == 4) cut = i;
    assert_true(cut > 0);
    b.data[cut + 1] = 0xd9; /* the end */
    test_bytes_store(FILE_NAME, b.data, cut + 2);
    unsigned char *want = jpeg_maker_decode(FILE_NAME, &h, &w, &components);
    assert_non_null(want);
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_image *image = NULL;
    assert_int_equal(rfx_image_open(mem, FILE_NAME, &image_reads_plain, &image, NULL), RFX_OK);
    assert_int_equal(rfx_image_set_window(image, 10, NULL), RFX_OK);
    read_in_bands(image, want, 10);
    rfx_image_free(image);
    rfx_memory_free(mem);
    free(want);
}

/* Nowhere to put coefficients down. */
static void says_where_coefficients_cannot_lie(void **state) {
    (void)state;
    struct rfx_image_options options = image_reads_plain;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_image *image = NULL;
    struct rfx_error err = {""};
    float data[64 * 3];
    struct rfx_view view = rfx_view_dense(data, rfx_rect_make(0, 1, 0, 64), 3);
    options.folder = "nowhere";
    make(9, 600, 520);
    assert_int_equal(rfx_image_open(mem, FILE_NAME, &options, &image, &err), RFX_OK);
    assert_int_equal(rfx_image_set_window(image, 8, &err), RFX_OK);
    assert_int_equal(rfx_image_read(image, view.rect, &view, &err), RFX_STATUS_IO);
    assert_string_equal(err.text, FILE_NAME
                        ": comes in several scans, and its coefficients lie in a file of 1.8 MiB: "
                        "cannot make it in 'nowhere': No such file or directory (--spill or TMPDIR "
                        "is another folder)");
    rfx_image_free(image);
    rfx_memory_free(mem);
}

/* A hostile file whose scans repeat without end. */
static void refuses_endless_scans(void **state) {
    (void)state;
    static struct test_bytes b;
    struct rfx_error err;
    make(12, 8, 8);
    test_bytes_load(&b, FILE_NAME);
    size_t first = (size_t)(segment(&b, 0xda) - b.data) - 1, next = first + 2;
    while (!(b.data[next] == 0xff && b.data[next + 1] != 0)) next++;
    FILE *file = fopen(FILE_NAME, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(b.data, 1, first, file), first);
    for (int i = 0; i < 1100; i++)
        assert_int_equal(fwrite(b.data + first, 1, next - first, file), next - first);
    assert_int_equal(fwrite(b.data + next, 1, b.count - next, file), b.count - next);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(image_reads_all(FILE_NAME, INT32_MAX, -1, 0, &err), RFX_STATUS_MALFORMED);
    assert_non_null(strstr(err.text, "1000 scans"));
}

/* An EXIF orientation changes neither size nor values where the picture is read as it is stored. */
static void may_be_read_as_stored(void **state) {
    (void)state;
    static const unsigned char exif[] = {
        0xff, 0xe1, 0,    34,   'E', 'x', 'i', 'f', 0, 0, 'M', 'M', 0, 42, 0, 0, 0, 8,
        0,    1,    0x01, 0x12, 0,   3,   0,   0,   0, 1, 0,   6,   0, 0,  0, 0, 0, 0};
    static struct test_bytes b;
    make(3, 20, 31);
    test_bytes_load(&b, FILE_NAME);
    int h, w, components;
    unsigned char *want = jpeg_maker_decode(FILE_NAME, &h, &w, &components);
    FILE *file = fopen(FILE_NAME, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(b.data, 1, 2, file), 2);
    assert_int_equal(fwrite(exif, 1, sizeof exif, file), sizeof exif);
    assert_int_equal(fwrite(b.data + 2, 1, b.count - 2, file), b.count - 2);
    assert_int_equal(fclose(file), 0);
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_image *image = NULL;
    struct rfx_image_options options = image_reads_plain;
    options.as_stored = true;
    assert_int_equal(rfx_image_open(mem, FILE_NAME, &options, &image, NULL), RFX_OK);
    assert_int_equal(rfx_image_traits(image).h, 20);
    assert_int_equal(rfx_image_set_window(image, 20, NULL), RFX_OK);
    check_rect(image, want, rfx_rect_full(20, 31));
    rfx_image_free(image);
    rfx_memory_free(mem);
    free(want);
    (void)unlink(FILE_NAME);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_in_bands),
        cmocka_unit_test(values_are_those_of_the_picture),
        cmocka_unit_test(refuses_files_that_break_off),
        cmocka_unit_test(names_the_row_where_it_breaks),
        cmocka_unit_test(survives_flipped_bits),
        cmocka_unit_test(survives_failing_allocations),
        cmocka_unit_test(inks_become_colours),
        cmocka_unit_test(refuses_in_words),
        cmocka_unit_test(large_pictures_with_scans),
        cmocka_unit_test(scans_that_were_never_written),
        cmocka_unit_test(says_where_coefficients_cannot_lie),
        cmocka_unit_test(refuses_endless_scans),
        cmocka_unit_test(may_be_read_as_stored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
