/* TIFF and BigTIFF: codecs, strips and tiles, planes, bit depths, colours and byte orders against
 * samples written by libtiff; windows and rectangles, memory truly held, refusals in words, damage.
 */
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

#include "rfexec/image_source.h"
#include "tests/support/test_util.h"
#include "tests/support/tiff_maker.h"

#define FILE_NAME "test_image_tiff.tmp.tif"
#define STDERR_NAME "test_image_tiff.tmp.stderr"
#ifndef FLIP_CASES
#define FLIP_CASES 300
#endif

static const struct rfx_image_options plain = {
    .scale = 1.0f, .mean = {0, 0, 0}, .std = {1, 1, 1}, .bgr = false, .channels = 0};

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
                float got = rfx_view_at(&view, y, x)[k];
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
    if (rfx_image_open(mem, FILE_NAME, &plain, &image, &err) != RFX_OK) fail_kind(m, err.text);
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

static const struct {
    int bits, samples, photometric;
} colours[] = {
    {8, 1, PHOTOMETRIC_MINISBLACK},  {8, 2, PHOTOMETRIC_MINISBLACK},
    {8, 3, PHOTOMETRIC_RGB},         {8, 4, PHOTOMETRIC_RGB},
    {16, 1, PHOTOMETRIC_MINISBLACK}, {16, 3, PHOTOMETRIC_RGB},
    {16, 4, PHOTOMETRIC_RGB},        {32, 1, PHOTOMETRIC_MINISBLACK},
    {32, 3, PHOTOMETRIC_RGB},        {32, 4, PHOTOMETRIC_RGB},
    {8, 1, PHOTOMETRIC_MINISWHITE},  {16, 2, PHOTOMETRIC_MINISWHITE},
    {8, 1, PHOTOMETRIC_PALETTE},     {4, 1, PHOTOMETRIC_PALETTE},
    {1, 1, PHOTOMETRIC_PALETTE},     {1, 1, PHOTOMETRIC_MINISBLACK},
    {2, 1, PHOTOMETRIC_MINISBLACK},  {4, 1, PHOTOMETRIC_MINISBLACK},
    {1, 1, PHOTOMETRIC_MINISWHITE},
};
#define COLOURS (int)(sizeof colours / sizeof colours[0])

static struct tiff_maker maker_of(int colour, int compression) {
    struct tiff_maker m = {.h = 37, .w = 53, .compression = compression};
    m.bits = colours[colour].bits;
    m.samples = colours[colour].samples;
    m.photometric = colours[colour].photometric;
    m.seed = (uint32_t)(colour * 100 + compression);
    return m;
}

static void every_codec_and_colour(void **state) {
    (void)state;
    static const int codecs[] = {COMPRESSION_NONE,    COMPRESSION_LZW,  COMPRESSION_ADOBE_DEFLATE,
                                 COMPRESSION_DEFLATE, COMPRESSION_LZMA, COMPRESSION_ZSTD,
                                 COMPRESSION_PACKBITS};
    for (int codec = 0; codec < 7; codec++)
        for (int colour = 0; colour < COLOURS; colour++) {
            /* its writer sets 90 MiB up for every strip */
            if (codecs[codec] == COMPRESSION_LZMA && colour != 2 && colour != 5) continue;
            struct tiff_maker m = maker_of(colour, codecs[codec]);
            int forms = m.samples > 1 ? 4 : 2;
            assert_int_equal(check_forms(m), forms);
        }
    struct tiff_maker webp = maker_of(2, COMPRESSION_WEBP); /* knows no separate planes */
    for (webp.cols = 0; webp.cols <= 32; webp.cols += 32) {
        webp.rows = 16;
        assert_true(check_kind(&webp, 3));
    }
    assert_int_equal(check_forms(maker_of(7, COMPRESSION_LERC)), 2);
    assert_true(check_forms(maker_of(2, COMPRESSION_LERC)) >= 2);
    assert_int_equal(check_forms(maker_of(15, COMPRESSION_CCITTFAX3)), 2);
    assert_int_equal(check_forms(maker_of(18, COMPRESSION_CCITTFAX4)), 2);
    (void)unlink(FILE_NAME);
}

static void predictors(void **state) {
    (void)state;
    static const int codecs[] = {COMPRESSION_LZW, COMPRESSION_ADOBE_DEFLATE, COMPRESSION_ZSTD};
    static const int predicted[][2] = {{0, 2}, {2, 2}, {3, 2}, {5, 2}, {7, 3}, {8, 3}};
    for (int codec = 0; codec < 3; codec++)
        for (int i = 0; i < 6; i++) {
            struct tiff_maker m = maker_of(predicted[i][0], codecs[codec]);
            m.predictor = predicted[i][1];
            assert_int_equal(check_forms(m), m.samples > 1 ? 4 : 2);
        }
}

static void byte_orders_and_big_files(void **state) {
    (void)state;
    static const int codecs[] = {COMPRESSION_NONE, COMPRESSION_LZW};
    for (int i = 0; i < 2 * COLOURS; i++)
        for (int k = 1; k < 8; k++) {
            struct tiff_maker m = maker_of(i % COLOURS, codecs[i / COLOURS]);
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
        struct tiff_maker m = maker_of(12, COMPRESSION_LZW);
        m.wide_palette = true;
        m.h = sizes[i][0];
        m.w = sizes[i][1];
        assert_int_equal(check_forms(m), 2);
        m.compression = COMPRESSION_NONE;
        assert_int_equal(check_forms(m), 2);
        m = maker_of(2, COMPRESSION_ADOBE_DEFLATE);
        m.h = sizes[i][0];
        m.w = sizes[i][1];
        assert_int_equal(check_forms(m), 4);
    }
    struct tiff_maker m = maker_of(15, COMPRESSION_NONE);
    m.w = 5000; /* more than one read per row, of bits */
    m.h = 3;
    assert_int_equal(check_forms(m), 2);
    m = maker_of(9, COMPRESSION_NONE);
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

/* Opens, reads all rows, frees. */
static enum rfx_status run_once(int64_t fail_after, size_t limit, struct rfx_error *err) {
    struct rfx_memory *mem = rfx_memory_create(limit);
    rfx_memory_fail_after(mem, fail_after);
    struct rfx_image *image = NULL;
    err->text[0] = '\0';
    enum rfx_status status = rfx_image_open(mem, FILE_NAME, &plain, &image, err);
    if (status == RFX_OK) status = rfx_image_set_window(image, 3, err);
    struct rfx_source_traits t = {0};
    if (status == RFX_OK) t = rfx_image_traits(image);
    int64_t cols = t.w < 4096 ? t.w : 4096, rows = t.h < 4096 ? t.h : 4096;
    float *row = malloc((size_t)(cols * t.c + 1) * sizeof *row);
    for (int64_t y = 0; y < rows && status == RFX_OK; y++) {
        struct rfx_view view = rfx_view_dense(row, rfx_rect_make(y, y + 1, 0, cols), t.c);
        status = rfx_image_read(image, view.rect, &view, err);
    }
    free(row);
    rfx_image_free(image);
    rfx_memory_free(mem);
    return status;
}

static const struct {
    int colour, compression, cols;
} damaged[] = {
    {2, COMPRESSION_NONE, 0},          {2, COMPRESSION_NONE, 32},
    {2, COMPRESSION_LZW, 0},           {5, COMPRESSION_LZW, 32},
    {2, COMPRESSION_ADOBE_DEFLATE, 0}, {8, COMPRESSION_ADOBE_DEFLATE, 32},
    {2, COMPRESSION_ZSTD, 32},         {3, COMPRESSION_LZMA, 0},
    {2, COMPRESSION_WEBP, 32},         {7, COMPRESSION_LERC, 32},
    {15, COMPRESSION_CCITTFAX4, 0},    {2, COMPRESSION_JPEG, 32},
    {2, COMPRESSION_JPEG, 0},          {12, COMPRESSION_PACKBITS, 0},
};
#define DAMAGED (int)(sizeof damaged / sizeof damaged[0])

static void make_damaged(int i, struct test_bytes *b) {
    struct tiff_maker m = maker_of(damaged[i].colour, damaged[i].compression);
    m.cols = damaged[i].cols;
    m.rows = 16;
    m.smooth = m.compression == COMPRESSION_JPEG;
    m.big_tiff = i % 2 == 1;
    assert_true(tiff_maker_write(&m, FILE_NAME));
    test_bytes_load(b, FILE_NAME);
}

/* libtiff's own words must go into the error text, not to the terminal. */
static int catch_stderr(void) {
    (void)fflush(stderr);
    int saved = dup(STDERR_FILENO);
    FILE *file = freopen(STDERR_NAME, "w", stderr);
    assert_non_null(file);
    return saved;
}

static long end_catch(int saved) {
    (void)fflush(stderr);
    long printed = (long)lseek(STDERR_FILENO, 0, SEEK_END);
    assert_true(dup2(saved, STDERR_FILENO) >= 0);
    (void)close(saved);
    (void)unlink(STDERR_NAME);
    return printed;
}

static void refuses_files_that_break_off(void **state) {
    (void)state;
    static struct test_bytes b;
    struct rfx_error err;
    int saved = catch_stderr();
    int bad = 0;
    for (int i = 0; i < DAMAGED && bad == 0; i++) {
        make_damaged(i, &b);
        for (size_t cut = 0; cut < b.count && bad == 0; cut += 50) {
            test_bytes_store(FILE_NAME, b.data, cut);
            enum rfx_status status = run_once(-1, 0, &err);
            if (status != RFX_STATUS_MALFORMED || strstr(err.text, FILE_NAME) == NULL) bad = i + 1;
        }
    }
    assert_int_equal(end_catch(saved), 0);
    if (bad != 0) fail_msg("kind %d: %s", bad - 1, err.text);
}

static void survives_flipped_bits(void **state) {
    (void)state;
    static struct test_bytes b, copy;
    struct rfx_error err;
    int saved = catch_stderr();
    for (int i = 0; i < DAMAGED; i++) {
        make_damaged(i, &b);
        uint32_t seed = 99u + (uint32_t)i;
        for (int k = 0; k < FLIP_CASES; k++) {
            copy = b;
            for (int n = 0; n < 1 + k % 3; n++) {
                seed = seed * 1664525u + 1013904223u;
                /* half of them in the directory, which libtiff writes last */
                size_t reach = k % 2 == 0 && b.count > 300 ? 300 : b.count;
                unsigned char *at = copy.data + b.count - 1 - (seed >> 8) % reach;
                *at = (unsigned char)(*at ^ (1u << (seed >> 29)));
            }
            test_bytes_store(FILE_NAME, copy.data, copy.count);
            enum rfx_status status = run_once(-1, (size_t)32 << 20, &err);
            bool known = status == RFX_OK || status == RFX_STATUS_MALFORMED ||
                         status == RFX_STATUS_UNSUPPORTED || status == RFX_STATUS_OUT_OF_MEMORY;
            assert_true(known && (status == RFX_OK || strstr(err.text, FILE_NAME) != NULL));
        }
    }
    assert_int_equal(end_catch(saved), 0);
}

static void put(struct test_bytes *b, uint32_t value, int bytes) {
    for (int i = 0; i < bytes; i++) b->data[b->count++] = (unsigned char)(value >> (8 * i));
}

static void put_entry(struct test_bytes *b, uint32_t tag, uint32_t type, uint32_t value) {
    put(b, tag, 2);
    put(b, type, 2);
    put(b, 1, 4);
    put(b, value, 4);
}

/* A little-endian grey picture of 100 x 64 in one strip behind its directory, by hand. */
static void build(struct test_bytes *b, uint32_t compression, uint32_t photometric, uint32_t bits,
                  uint32_t samples, uint32_t format) {
    b->count = 0;
    put(b, 'I' | 'I' << 8 | 42u << 16, 4);
    put(b, 8, 4);
    put(b, 10, 2);
    put_entry(b, TIFFTAG_IMAGEWIDTH, 4, 64);
    put_entry(b, TIFFTAG_IMAGELENGTH, 4, 100);
    put_entry(b, TIFFTAG_BITSPERSAMPLE, 3, bits);
    put_entry(b, TIFFTAG_COMPRESSION, 3, compression);
    put_entry(b, TIFFTAG_PHOTOMETRIC, 3, photometric);
    put_entry(b, TIFFTAG_STRIPOFFSETS, 4, 134);
    put_entry(b, TIFFTAG_SAMPLESPERPIXEL, 3, samples);
    put_entry(b, TIFFTAG_ROWSPERSTRIP, 4, 100);
    put_entry(b, TIFFTAG_STRIPBYTECOUNTS, 4, 6400);
    put_entry(b, TIFFTAG_SAMPLEFORMAT, 3, format);
    put(b, 0, 4);
    assert_int_equal(b->count, 134);
    for (uint32_t i = 0; i < 6400; i++) b->data[b->count++] = (unsigned char)(i * 7);
}

static void names_the_row_where_it_breaks(void **state) {
    (void)state;
    static struct test_bytes b;
    struct rfx_error err;
    build(&b, COMPRESSION_NONE, PHOTOMETRIC_MINISBLACK, 8, 1, SAMPLEFORMAT_UINT);
    test_bytes_store(FILE_NAME, b.data, b.count);
    assert_int_equal(run_once(-1, 0, &err), RFX_OK);
    test_bytes_store(FILE_NAME, b.data, 134 + 64 * 70 + 5);
    assert_int_equal(run_once(-1, 0, &err), RFX_STATUS_MALFORMED);
    assert_non_null(strstr(err.text, FILE_NAME ": row 70 of 100: "));
    struct tiff_maker m = maker_of(2, COMPRESSION_ADOBE_DEFLATE);
    m.rows = 10;
    assert_true(tiff_maker_write(&m, FILE_NAME));
    test_bytes_load(&b, FILE_NAME);
    memset(b.data + b.count / 2, 0x55, 20); /* about row 18 */
    test_bytes_store(FILE_NAME, b.data, b.count);
    assert_int_equal(run_once(-1, 0, &err), RFX_STATUS_MALFORMED);
    int row = -1;
    assert_int_equal(sscanf(err.text, FILE_NAME ": row %d of 37: ", &row), 1);
    assert_in_range(row, 10, 29);
}

static void refuses_in_words(void **state) {
    (void)state;
    static const struct {
        uint32_t compression, photometric, bits, samples, format;
        const char *words;
    } cases[] = {
        {1, PHOTOMETRIC_SEPARATED, 8, 4, 1, "inks"},
        {1, PHOTOMETRIC_YCBCR, 8, 3, 1, "YCbCr without JPEG"},
        {1, PHOTOMETRIC_CIELAB, 8, 3, 1, "L*a*b*"},
        {1, PHOTOMETRIC_MINISBLACK, 8, 1, 2, "8-bit signed"},
        {1, PHOTOMETRIC_MINISBLACK, 16, 1, 3, "16-bit floating"},
        {1, PHOTOMETRIC_MINISBLACK, 64, 1, 3, "64-bit floating"},
        {1, PHOTOMETRIC_MINISBLACK, 12, 1, 1, "12-bit unsigned"},
        {1, PHOTOMETRIC_MINISBLACK, 8, 5, 1, "5 samples per pixel"},
        {1, PHOTOMETRIC_MINISWHITE, 32, 1, 3, "0 is white"},
        {COMPRESSION_OJPEG, PHOTOMETRIC_MINISBLACK, 8, 1, 1, "old JPEG"},
        {COMPRESSION_JP2000, PHOTOMETRIC_MINISBLACK, 8, 1, 1, "method 34712"},
    };
    static struct test_bytes b;
    struct rfx_error err;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        build(&b, cases[i].compression, cases[i].photometric, cases[i].bits, cases[i].samples,
              cases[i].format);
        test_bytes_store(FILE_NAME, b.data, b.count);
        enum rfx_status status = run_once(-1, 0, &err);
        if (status != RFX_STATUS_UNSUPPORTED || strstr(err.text, cases[i].words) == NULL)
            fail_msg("'%s': status %d: %s", cases[i].words, status, err.text);
    }
}

static void survives_failing_allocations(void **state) {
    (void)state;
    for (int cols = 0; cols <= 32; cols += 32) {
        struct tiff_maker m = maker_of(2, COMPRESSION_LZW);
        m.rows = 16;
        m.cols = cols;
        assert_true(tiff_maker_write(&m, FILE_NAME));
        int64_t k = 0;
        struct rfx_error err;
        for (;; k++) {
            enum rfx_status status = run_once(k, 0, &err);
            if (status == RFX_OK) break;
            assert_int_equal(status, RFX_STATUS_OUT_OF_MEMORY);
            assert_true(err.text[0] != '\0');
            assert_true(k < 50);
        }
        assert_true(k >= 5);
    }
    (void)unlink(FILE_NAME);
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
    if (rfx_image_open(mem, FILE_NAME, &plain, &image, NULL) != RFX_OK) _exit(2);
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
        struct tiff_maker m = maker_of(cases[i].colour, cases[i].compression);
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
        cmocka_unit_test(refuses_files_that_break_off),
        cmocka_unit_test(survives_flipped_bits),
        cmocka_unit_test(names_the_row_where_it_breaks),
        cmocka_unit_test(refuses_in_words),
        cmocka_unit_test(survives_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
