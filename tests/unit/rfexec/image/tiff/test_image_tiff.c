/* TIFF and BigTIFF: codecs, strips and tiles, planes, bit depths, colours and byte orders against
 * samples written by libtiff; windows and rectangles, memory truly held. Files that are damaged or
 * refused: test_image_tiff_damage.c. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <tiff.h>
#include <unistd.h>

#include <cmocka.h>

#include "rfexec/image/image_source.h"
#include "tests/support/makers/tiff_maker.h"
#include "tests/support/run/image_reads.h"
#include "tests/support/test_util.h"

#define FILE_NAME "test_image_tiff.tmp.tif"

static void fail_kind(const struct tiff_maker *m, const char *words) {
    fail_msg(
        "compression %d predictor %d, %d x %d bits, photometric %d, %dx%d, rows %d cols %d, "
        "separate %d big %d big_endian %d lsb %d: %s",
        m->compression, m->predictor, m->samples, m->bits, m->photometric, m->h, m->w, m->rows,
        m->cols, m->separate, m->big_tiff, m->big_endian, m->lsb_first, words);
}

static void check_rect(struct rfx_image *image, const struct tiff_maker *m, struct rfx_rect rect) {
    int64_t c = tiff_maker_channels(m);
    float *data = malloc((size_t)(rfx_rect_area(rect) * c) * sizeof *data);
    struct rfx_view view = rfx_view_dense(data, rect, c);
    struct rfx_error err;
    if (rfx_image_read(image, rect, &view, &err) != RFX_OK) fail_kind(m, err.text);
    float allowed = m->smooth ? 8.0f : 0.0f;
    for (int64_t y = rect.y0; y < rect.y1; y++)
        for (int64_t x = rect.x0; x < rect.x1; x++)
            for (int64_t k = 0; k < c; k++) {
                float got = rfx_view_f32_at(&view, y, x)[k];
                float want = tiff_maker_sample(m, (int)y, (int)x, (int)k);
                if (fabsf(got - want) <= allowed) continue;
                char words[100];
                (void)snprintf(words, sizeof words, "(%d, %d, %d): %g, expected %g", (int)y, (int)x,
                               (int)k, (double)got, (double)want);
                fail_kind(m, words);
            }
    free(data);
}

static void read_everywhere(struct rfx_image *image, const struct tiff_maker *m, int window) {
    bool anywhere = rfx_image_traits(image).random_access;
    for (int y0 = 0, y1; y0 < m->h; y0 = y1 < m->h ? y1 - window / 2 : y1) {
        y1 = y0 + window < m->h ? y0 + window : m->h;
        check_rect(image, m, rfx_rect_make(y0, y1, m->w / 3, m->w));
        check_rect(image, m, rfx_rect_make(y1 - 1, y1, 0, m->w / 3 + 1));
    }
    struct test_rng rng = test_rng_make(m->seed);
    for (int i = 0; anywhere && i < 20; i++) {
        int64_t y0 = test_rng_int(&rng, 0, m->h - 1), x0 = test_rng_int(&rng, 0, m->w - 1);
        check_rect(image, m,
                   rfx_rect_make(y0, test_rng_int(&rng, y0 + 1, m->h), x0,
                                 test_rng_int(&rng, x0 + 1, m->w)));
    }
}

/* False when libtiff does not write this kind. */
static bool check_kind(const struct tiff_maker *m, int window) {
    if (!tiff_maker_write(m, FILE_NAME)) return false;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_image *image = NULL;
    struct rfx_error err;
    if (rfx_image_open(mem, FILE_NAME, &image_reads_plain, &image, &err) != RFX_OK)
        fail_kind(m, err.text);
    struct rfx_source_traits t = rfx_image_traits(image);
    assert_int_equal(t.h, m->h);
    assert_int_equal(t.w, m->w);
    assert_int_equal(t.c, tiff_maker_channels(m));
    assert_int_equal(t.random_access, m->compression == COMPRESSION_NONE || m->cols > 0);
    assert_int_equal(rfx_image_set_window(image, window, NULL), RFX_OK);
    uint64_t allocations = rfx_memory_allocation_count(mem);
    for (int pass = 0; pass < 2; pass++) {
        read_everywhere(image, m, window);
        assert_int_equal(rfx_image_rewind(image, NULL), RFX_OK);
    }
    assert_int_equal(rfx_memory_allocation_count(mem), allocations);
    size_t rows = (size_t)(window < m->h ? window : m->h);
    assert_true(rfx_memory_high_water_bytes(mem) <= t.fixed_bytes + rows * t.window_row_bytes);
    rfx_image_free(image);
    rfx_memory_free(mem);
    return true;
}

/* Both orders of pixels, strips and tiles, both planes; how many libtiff writes. */
static int check_forms(struct tiff_maker m) {
    int written = 0;
    for (int form = 0; form < 4; form++) {
        m.cols = form % 2 == 0 ? 0 : 32;
        m.rows = form % 2 == 0 ? 5 : 16;
        m.separate = form / 2 == 1;
        m.seed += 17;
        if (m.separate && m.samples == 1) continue;
        written += check_kind(&m, 1 + (int)(m.seed % 7));
    }
    return written;
}

static void every_codec_and_colour(void **state) {
    (void)state;
    static const int codecs[] = {COMPRESSION_NONE,    COMPRESSION_LZW,  COMPRESSION_ADOBE_DEFLATE,
                                 COMPRESSION_DEFLATE, COMPRESSION_LZMA, COMPRESSION_ZSTD,
                                 COMPRESSION_PACKBITS};
    for (int codec = 0; codec < 7; codec++)
        for (int colour = 0; colour < TIFF_MAKER_COLOURS; colour++) {
            /* its writer sets 90 MiB up for every strip */
            if (codecs[codec] == COMPRESSION_LZMA && colour != 2 && colour != 5) continue;
            struct tiff_maker m = tiff_maker_of(colour, codecs[codec]);
            int forms = m.samples > 1 ? 4 : 2;
            assert_int_equal(check_forms(m), forms);
        }
    struct tiff_maker webp = tiff_maker_of(2, COMPRESSION_WEBP); /* knows no separate planes */
    for (webp.cols = 0; webp.cols <= 32; webp.cols += 32) {
        webp.rows = 16;
        assert_true(check_kind(&webp, 3));
    }
    assert_int_equal(check_forms(tiff_maker_of(7, COMPRESSION_LERC)), 2);
    assert_true(check_forms(tiff_maker_of(2, COMPRESSION_LERC)) >= 2);
    assert_int_equal(check_forms(tiff_maker_of(15, COMPRESSION_CCITTFAX3)), 2);
    assert_int_equal(check_forms(tiff_maker_of(18, COMPRESSION_CCITTFAX4)), 2);
    (void)unlink(FILE_NAME);
}

static void predictors(void **state) {
    (void)state;
    static const int codecs[] = {COMPRESSION_LZW, COMPRESSION_ADOBE_DEFLATE, COMPRESSION_ZSTD};
    static const int predicted[][2] = {{0, 2}, {2, 2}, {3, 2}, {5, 2}, {7, 3}, {8, 3}};
    for (int codec = 0; codec < 3; codec++)
        for (int i = 0; i < 6; i++) {
            struct tiff_maker m = tiff_maker_of(predicted[i][0], codecs[codec]);
            m.predictor = predicted[i][1];
            assert_int_equal(check_forms(m), m.samples > 1 ? 4 : 2);
        }
}

static void byte_orders_and_big_files(void **state) {
    (void)state;
    static const int codecs[] = {COMPRESSION_NONE, COMPRESSION_LZW};
    for (int i = 0; i < 2 * TIFF_MAKER_COLOURS; i++)
        for (int k = 1; k < 8; k++) {
            struct tiff_maker m =
                tiff_maker_of(i % TIFF_MAKER_COLOURS, codecs[i / TIFF_MAKER_COLOURS]);
            m.big_tiff = (k & 1) != 0;
            m.big_endian = (k & 2) != 0;
            m.lsb_first = (k & 4) != 0;
            assert_int_equal(check_forms(m), m.samples > 1 ? 4 : 2);
        }
}

static void wide_palettes_and_odd_sizes(void **state) {
    (void)state;
    static const int sizes[][2] = {{1, 1}, {2, 9}, {16, 32}, {17, 33}, {70, 31}};
    for (int i = 0; i < 5; i++) {
        struct tiff_maker m = tiff_maker_of(12, COMPRESSION_LZW);
        m.wide_palette = true;
        m.h = sizes[i][0];
        m.w = sizes[i][1];
        assert_int_equal(check_forms(m), 2);
        m.compression = COMPRESSION_NONE;
        assert_int_equal(check_forms(m), 2);
        m = tiff_maker_of(2, COMPRESSION_ADOBE_DEFLATE);
        m.h = sizes[i][0];
        m.w = sizes[i][1];
        assert_int_equal(check_forms(m), 4);
    }
    struct tiff_maker m = tiff_maker_of(15, COMPRESSION_NONE);
    m.w = 5000; /* more than one read per row, of bits */
    m.h = 3;
    assert_int_equal(check_forms(m), 2);
    m = tiff_maker_of(9, COMPRESSION_NONE);
    m.w = 5000;
    m.h = 3;
    assert_int_equal(check_forms(m), 4);
}

static void jpeg_inside(void **state) {
    (void)state;
    static const struct {
        int samples, photometric;
    } kinds[] = {{1, PHOTOMETRIC_MINISBLACK}, {3, PHOTOMETRIC_RGB}, {3, PHOTOMETRIC_YCBCR}};
    for (int i = 0; i < 3; i++)
        for (int cols = 0; cols <= 64; cols += 32) {
            struct tiff_maker m = {.h = 75,
                                   .w = 100,
                                   .bits = 8,
                                   .samples = kinds[i].samples,
                                   .photometric = kinds[i].photometric,
                                   .compression = COMPRESSION_JPEG,
                                   .rows = 16,
                                   .cols = cols,
                                   .smooth = true};
            assert_true(check_kind(&m, 7));
        }
}

#ifndef RFX_SANITIZE
static int64_t status_kib(const char *key) {
    char line[200];
    int64_t value = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, key, strlen(key)) == 0) value = strtoll(line + strlen(key), NULL, 10);
    if (file != NULL) (void)fclose(file);
    return value;
}

/* In a process of its own: reads the file; exits with 0 when the kernel's peak kept to the traits.
 */
static void measure(const char *what) {
    float *row = calloc(4096 * 4, sizeof *row);
    int64_t before = status_kib("VmRSS:");
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_image *image = NULL;
    if (rfx_image_open(mem, FILE_NAME, &image_reads_plain, &image, NULL) != RFX_OK) _exit(2);
    if (rfx_image_set_window(image, 8, NULL) != RFX_OK) _exit(3);
    struct rfx_source_traits t = rfx_image_traits(image);
    for (int64_t y = 0; y < t.h; y++) {
        struct rfx_view view = rfx_view_dense(row, rfx_rect_make(y, y + 1, 0, t.w), t.c);
        if (rfx_image_read(image, view.rect, &view, NULL) != RFX_OK) _exit(4);
    }
    int64_t held = status_kib("VmHWM:") - before;
    int64_t stated = (int64_t)(t.fixed_bytes + 8 * t.window_row_bytes) / 1024;
    if (getenv("RFX_SHOW") != NULL)
        printf("%-12s held %6lld KiB, stated %6lld KiB\n", what, (long long)held,
               (long long)stated);
    (void)fflush(stdout);
    _exit(held <= stated ? 0 : 5);
}

static void memory_is_what_the_traits_say(void **state) {
    (void)state;
    static const struct {
        const char *what;
        int colour, compression, cols;
    } cases[] = {
        {"none", 2, COMPRESSION_NONE, 0},       {"lzw", 2, COMPRESSION_LZW, 0},
        {"lzw", 2, COMPRESSION_LZW, 512},       {"deflate", 5, COMPRESSION_ADOBE_DEFLATE, 512},
        {"lzma", 2, COMPRESSION_LZMA, 0},       {"zstd", 2, COMPRESSION_ZSTD, 512},
        {"webp", 2, COMPRESSION_WEBP, 512},     {"lerc", 8, COMPRESSION_LERC, 512},
        {"jpeg", 2, COMPRESSION_JPEG, 0},       {"jpeg", 2, COMPRESSION_JPEG, 512},
        {"fax4", 15, COMPRESSION_CCITTFAX4, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tiff_maker m = tiff_maker_of(cases[i].colour, cases[i].compression);
        m.h = 900;
        m.w = 1300;
        m.cols = cases[i].cols; /* large strips and tiles: what grows with them shows */
        m.rows = m.cols == 0 ? 900 : 512;
        m.smooth = m.bits == 8;
        assert_true(tiff_maker_write(&m, FILE_NAME));
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) measure(cases[i].what);
        int result = -1;
        assert_int_equal(waitpid(child, &result, 0), child);
        if (!WIFEXITED(result) || WEXITSTATUS(result) != 0)
            fail_msg("%s, cols %d: result %x", cases[i].what, m.cols, (unsigned)result);
    }
    (void)unlink(FILE_NAME);
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
#ifndef RFX_SANITIZE /* first: later, the library and its memory are there already */
        cmocka_unit_test(memory_is_what_the_traits_say),
#endif
        cmocka_unit_test(every_codec_and_colour),
        cmocka_unit_test(predictors),
        cmocka_unit_test(byte_orders_and_big_files),
        cmocka_unit_test(wide_palettes_and_odd_sizes),
        cmocka_unit_test(jpeg_inside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
