/* Pictures in all eight orientations, in files of every way of reading: each sample as it is seen,
 * wherever it is asked for, inside the memory that the traits say; what is said when there is no
 * room for the file. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <tiff.h>
#include <unistd.h>

#include <cmocka.h>

#include "rfexec/image/image_source.h"
#include "tests/support/makers/jpeg_maker.h"
#include "tests/support/makers/png_maker.h"
#include "tests/support/makers/tiff_maker.h"
#include "tests/support/run/image_reads.h"
#include "tests/support/test_util.h"

#define FILE_NAME "test_turned.tmp"

/* TIFF 6.0: which side of what is seen the first row and the first column are. */
enum side { TOP, LEFT, BOTTOM, RIGHT };
static const enum side first_row[9] = {0, TOP, TOP, BOTTOM, BOTTOM, LEFT, RIGHT, RIGHT, LEFT};
static const enum side first_column[9] = {0, LEFT, RIGHT, RIGHT, LEFT, TOP, TOP, BOTTOM, BOTTOM};

static int64_t distance(enum side side, int64_t y, int64_t x, int64_t h, int64_t w) {
    const int64_t distances[] = {[TOP] = y, [LEFT] = x, [BOTTOM] = h - 1 - y, [RIGHT] = w - 1 - x};
    return distances[side];
}

/* A stored sample of channel k. */
typedef float sample_fn(const void *picture, int y, int x, int k);

struct stored {
    const void *picture;
    sample_fn *sample;
    int orientation;
};

static void check_rect(struct rfx_image *image, const struct stored *s, struct rfx_rect rect) {
    struct rfx_source_traits t = rfx_image_traits(image);
    struct rfx_error err;
    float *data = malloc((size_t)(rfx_rect_area(rect) * t.c) * sizeof *data);
    struct rfx_view view = rfx_view_dense(data, rect, t.c);
    if (rfx_image_read(image, rect, &view, &err) != RFX_OK) fail_msg("%s", err.text);
    for (int64_t y = rect.y0; y < rect.y1; y++)
        for (int64_t x = rect.x0; x < rect.x1; x++)
            for (int k = 0; k < t.c; k++) {
                int row = (int)distance(first_row[s->orientation], y, x, t.h, t.w);
                int column = (int)distance(first_column[s->orientation], y, x, t.h, t.w);
                float want = s->sample(s->picture, row, column, k);
                float got = rfx_view_f32_at(&view, y, x)[k];
                if (got != want)
                    fail_msg("orientation %d, %dx%d: (%d, %d, %d) is %g, not %g", s->orientation,
                             (int)t.h, (int)t.w, (int)y, (int)x, k, (double)got, (double)want);
            }
    free(data);
}

/* h, w: as stored. */
static void check_picture(const struct stored *s, int h, int w) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_image *image = NULL;
    struct rfx_error err;
    if (rfx_image_open(mem, FILE_NAME, &image_reads_plain, &image, &err) != RFX_OK)
        fail_msg("%s", err.text);
    struct rfx_source_traits t = rfx_image_traits(image);
    assert_int_equal(t.h, s->orientation < 5 ? h : w);
    assert_int_equal(t.w, s->orientation < 5 ? w : h);
    assert_true(t.random_access || s->orientation == 1);
    assert_int_equal(rfx_image_set_window(image, t.h, NULL), RFX_OK);
    uint64_t allocations = rfx_memory_allocation_count(mem);
    check_rect(image, s, rfx_rect_full(t.h, t.w));
    struct test_rng rng = test_rng_make((uint64_t)(h * 1000 + w * 10 + s->orientation));
    for (int i = 0; i < 12 && t.random_access; i++) {
        int64_t y0 = test_rng_int(&rng, 0, t.h - 1), x0 = test_rng_int(&rng, 0, t.w - 1);
        check_rect(image, s,
                   rfx_rect_make(y0, test_rng_int(&rng, y0 + 1, t.h), x0,
                                 test_rng_int(&rng, x0 + 1, t.w)));
    }
    assert_int_equal(rfx_image_rewind(image, NULL), RFX_OK);
    check_rect(image, s, rfx_rect_make(0, 1, 0, t.w));
    assert_int_equal(rfx_memory_allocation_count(mem), allocations);
    assert_true(rfx_memory_high_water_bytes(mem) <=
                t.fixed_bytes + (size_t)t.h * t.window_row_bytes);
    rfx_image_free(image);
    rfx_memory_free(mem);
}

static float tiff_sample(const void *picture, int y, int x, int k) {
    return tiff_maker_sample(picture, y, x, k);
}

static void tiff_in_all_orientations(void **state) {
    (void)state;
    static const int codecs[] = {COMPRESSION_NONE, COMPRESSION_LZW};
    static const int sizes[][2] = {{37, 53}, {100, 70}, {64, 32}, {1, 90}, {90, 1}, {33, 65}};
    static const int colours[] = {2, 5, 9, 10};
    for (int o = 1; o <= 8; o++)
        for (int size = 0; size < 6; size++)
            for (int form = 0; form < 8; form++) {
                struct tiff_maker m = tiff_maker_of(colours[(form + size) % 4], codecs[form % 2]);
                m.h = sizes[size][0];
                m.w = sizes[size][1];
                m.cols = form / 2 % 2 == 0 ? 0 : 32;
                m.rows = 16;
                m.separate = form / 4 == 1 && m.samples > 1;
                m.orientation = o;
                assert_true(tiff_maker_write(&m, FILE_NAME));
                const struct stored s = {&m, tiff_sample, o};
                check_picture(&s, m.h, m.w);
            }
}

struct decoded {
    unsigned char *samples;
    int w, c;
};

static float jpeg_sample(const void *picture, int y, int x, int k) {
    const struct decoded *d = picture;
    return (float)d->samples[(y * d->w + x) * d->c + k];
}

static float png_sample(const void *picture, int y, int x, int k) {
    return (float)png_maker_sample(picture, y, x, k);
}

static void png_in_all_orientations(void **state) {
    (void)state;
    for (int o = 1; o <= 8; o++)
        for (int kind = 0; kind < 4; kind++) {
            struct png_maker m = {.h = 37, .w = 53, .bit_depth = 8, .orientation = o};
            m.color_type = kind == 3 ? 6 : 2;
            m.interlaced = kind == 1;
            m.exif_last = kind == 2;
            assert_true(png_maker_write(&m, FILE_NAME));
            const struct stored s = {&m, png_sample, o};
            check_picture(&s, m.h, m.w);
        }
}

static void jpeg_in_all_orientations(void **state) {
    (void)state;
    for (int o = 1; o <= 8; o++)
        for (int kind = 0; kind < 4; kind++) {
            struct jpeg_maker m = {
                .h = 77, .w = 45, .components = kind == 3 ? 1 : 3, .quality = 80};
            struct decoded d = {NULL, 0, 0};
            int h;
            m.h_sampling = m.v_sampling = kind == 3 ? 1 : 2;
            m.progressive = kind == 1;
            m.orientation = o;
            m.exif_big_endian = kind % 2 == 0;
            assert_true(jpeg_maker_write(&m, FILE_NAME));
            d.samples = jpeg_maker_decode(FILE_NAME, &h, &d.w, &d.c);
            assert_non_null(d.samples);
            const struct stored s = {&d, jpeg_sample, o};
            check_picture(&s, m.h, m.w);
            free(d.samples);
        }
}

/* As it is stored, and orientations that there are not. */
static void may_be_left_alone(void **state) {
    (void)state;
    struct rfx_image_options options = image_reads_plain;
    struct tiff_maker m = tiff_maker_of(2, COMPRESSION_LZW);
    for (int i = 0; i < 2; i++) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_image *image = NULL;
        m.rows = 5;
        m.orientation = i == 0 ? 6 : 9;
        options.as_stored = i == 0;
        assert_true(tiff_maker_write(&m, FILE_NAME));
        assert_int_equal(rfx_image_open(mem, FILE_NAME, &options, &image, NULL), RFX_OK);
        struct rfx_source_traits t = rfx_image_traits(image);
        assert_int_equal(t.h, m.h);
        assert_false(t.random_access);
        assert_int_equal(rfx_image_set_window(image, t.h, NULL), RFX_OK);
        const struct stored s = {&m, tiff_sample, 1};
        check_rect(image, &s, rfx_rect_full(t.h, t.w));
        rfx_image_free(image);
        rfx_memory_free(mem);
    }
}

static void says_why_there_is_no_file(void **state) {
    (void)state;
    struct rfx_image_options options = image_reads_plain;
    struct tiff_maker m = tiff_maker_of(2, COMPRESSION_LZW);
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_image *image = NULL;
    struct rfx_error err;
    m.rows = 5;
    m.h = 300;
    m.w = 200;
    m.orientation = 8;
    assert_true(tiff_maker_write(&m, FILE_NAME));
    options.folder = "no/such/folder";
    assert_int_equal(rfx_image_open(mem, FILE_NAME, &options, &image, NULL), RFX_OK);
    assert_int_equal(rfx_image_set_window(image, 1, &err), RFX_STATUS_IO);
    assert_non_null(strstr(err.text, FILE_NAME ": is stored with orientation 8"));
    assert_non_null(strstr(err.text, "cannot make it in 'no/such/folder': No such file"));
    assert_non_null(strstr(err.text, "--no-orient"));
    rfx_image_free(image);
    options.folder = ".";
    assert_int_equal(rfx_image_open(mem, FILE_NAME, &options, &image, NULL), RFX_OK);
    struct rlimit old, small = {50000, 50000};
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small.rlim_max = old.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    (void)signal(SIGXFSZ, SIG_IGN);
    enum rfx_status status = rfx_image_set_window(image, 1, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(status, RFX_STATUS_IO);
    assert_non_null(strstr(err.text, "cannot write in '.': File too large"));
    /* and then there is room */
    assert_int_equal(rfx_image_set_window(image, 1, &err), RFX_OK);
    const struct stored s = {&m, tiff_sample, 8};
    check_rect(image, &s, rfx_rect_full(200, 300));
    rfx_image_free(image);
    rfx_memory_free(mem);
}

/* The stored picture's own failures come through, and are failures again. */
static void broken_pictures_are_refused(void **state) {
    (void)state;
    static struct test_bytes b;
    struct tiff_maker m = tiff_maker_of(2, COMPRESSION_ADOBE_DEFLATE);
    struct rfx_error err;
    m.rows = 10;
    m.orientation = 3;
    assert_true(tiff_maker_write(&m, FILE_NAME));
    assert_true(image_reads_failing(FILE_NAME) >= 5);
    test_bytes_load(&b, FILE_NAME);
    memset(b.data + b.count / 2, 0x55, 20);
    test_bytes_store(FILE_NAME, b.data, b.count);
    assert_int_equal(image_reads_all(FILE_NAME, 1000, -1, 0, &err), RFX_STATUS_MALFORMED);
    assert_non_null(strstr(err.text, FILE_NAME ": row "));
    (void)unlink(FILE_NAME);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiff_in_all_orientations),  cmocka_unit_test(jpeg_in_all_orientations),
        cmocka_unit_test(png_in_all_orientations),   cmocka_unit_test(may_be_left_alone),
        cmocka_unit_test(says_why_there_is_no_file), cmocka_unit_test(broken_pictures_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
