/* TIFF files that break off, have bits flipped or are of a kind that is not read: refused in words
 * that name file and row, never a crash, nothing printed, no more memory than allowed. */
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

#include "tests/support/makers/tiff_maker.h"
#include "tests/support/run/image_reads.h"
#include "tests/support/test_util.h"

#define FILE_NAME "test_image_tiff_damage.tmp.tif"
#define STDERR_NAME "test_image_tiff_damage.tmp.stderr"
#ifndef FLIP_CASES
#define FLIP_CASES 300
#endif
enum { MOST = 4096 }; /* rows and columns read: a flipped bit may promise millions of either */

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
    struct tiff_maker m = tiff_maker_of(damaged[i].colour, damaged[i].compression);
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
            enum rfx_status status = image_reads_all(FILE_NAME, MOST, -1, 0, &err);
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
            enum rfx_status status = image_reads_all(FILE_NAME, MOST, -1, (size_t)32 << 20, &err);
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
    assert_int_equal(image_reads_all(FILE_NAME, MOST, -1, 0, &err), RFX_OK);
    test_bytes_store(FILE_NAME, b.data, 134 + 64 * 70 + 5);
    assert_int_equal(image_reads_all(FILE_NAME, MOST, -1, 0, &err), RFX_STATUS_MALFORMED);
    assert_non_null(strstr(err.text, FILE_NAME ": row 70 of 100: "));
    struct tiff_maker m = tiff_maker_of(2, COMPRESSION_ADOBE_DEFLATE);
    m.rows = 10;
    assert_true(tiff_maker_write(&m, FILE_NAME));
    test_bytes_load(&b, FILE_NAME);
    memset(b.data + b.count / 2, 0x55, 20); /* about row 18 */
    test_bytes_store(FILE_NAME, b.data, b.count);
    assert_int_equal(image_reads_all(FILE_NAME, MOST, -1, 0, &err), RFX_STATUS_MALFORMED);
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
        {1, PHOTOMETRIC_MINISBLACK, 64, 1, 2, "64-bit signed"},
        {1, PHOTOMETRIC_MINISBLACK, 24, 1, 3, "24-bit floating"},
        {1, PHOTOMETRIC_MINISBLACK, 64, 1, 1, "64-bit unsigned"},
        {1, PHOTOMETRIC_MINISBLACK, 64, 1, 6, "64-bit complex"},
        {1, PHOTOMETRIC_MINISBLACK, 12, 1, 1, "12-bit unsigned"},
        {1, PHOTOMETRIC_MINISBLACK, 4, 3, 1, "4-bit unsigned samples, 3 per pixel"},
        {1, PHOTOMETRIC_MINISBLACK, 8, 513, 1, "513 samples per pixel"},
        {1, PHOTOMETRIC_RGB, 8, 2, 1, "2 samples per pixel"},
        {1, PHOTOMETRIC_MINISWHITE, 32, 1, 3, "0 is white"},
        {1, PHOTOMETRIC_MINISWHITE, 8, 1, 2, "0 is white"},
        {COMPRESSION_OJPEG, PHOTOMETRIC_MINISBLACK, 8, 1, 1, "old JPEG"},
        {COMPRESSION_JP2000, PHOTOMETRIC_MINISBLACK, 8, 1, 1, "method 34712"},
    };
    static struct test_bytes b;
    struct rfx_error err;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        build(&b, cases[i].compression, cases[i].photometric, cases[i].bits, cases[i].samples,
              cases[i].format);
        test_bytes_store(FILE_NAME, b.data, b.count);
        enum rfx_status status = image_reads_all(FILE_NAME, MOST, -1, 0, &err);
        if (status != RFX_STATUS_UNSUPPORTED || strstr(err.text, cases[i].words) == NULL)
            fail_msg("'%s': status %d: %s", cases[i].words, status, err.text);
    }
}

static void survives_failing_allocations(void **state) {
    (void)state;
    for (int cols = 0; cols <= 32; cols += 32) {
        struct tiff_maker m = tiff_maker_of(2, COMPRESSION_LZW);
        m.rows = 16;
        m.cols = cols;
        assert_true(tiff_maker_write(&m, FILE_NAME));
        assert_true(image_reads_failing(FILE_NAME) >= 5);
    }
    (void)unlink(FILE_NAME);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_files_that_break_off),  cmocka_unit_test(survives_flipped_bits),
        cmocka_unit_test(names_the_row_where_it_breaks), cmocka_unit_test(refuses_in_words),
        cmocka_unit_test(survives_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
