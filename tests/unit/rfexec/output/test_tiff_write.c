/* TIFF by rows: what is written is read back by libtiff's reader; tags; strips; failures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tiffio.h>

#include <cmocka.h>

#include "rfexec/output/tiff_write.h"
#include "tests/support/test_util.h"

#define FILE_NAME "test_tiff_write.tmp.tif"

static unsigned field(TIFF *tiff, uint32_t tag) {
    uint16_t value = 0;
    assert_int_equal(TIFFGetFieldDefaulted(tiff, tag, &value), 1);
    return value;
}

static void check_tags(TIFF *tiff, uint32_t h, uint32_t w, unsigned channels, unsigned bits) {
    uint32_t got_h = 0, got_w = 0;
    uint16_t extra = 0, *kinds = NULL;
    assert_int_equal(TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &got_h), 1);
    assert_int_equal(TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &got_w), 1);
    assert_int_equal(got_h, h);
    assert_int_equal(got_w, w);
    assert_int_equal(field(tiff, TIFFTAG_SAMPLESPERPIXEL), channels);
    assert_int_equal(field(tiff, TIFFTAG_BITSPERSAMPLE), bits);
    assert_int_equal(field(tiff, TIFFTAG_SAMPLEFORMAT),
                     bits == 32 ? SAMPLEFORMAT_IEEEFP : SAMPLEFORMAT_UINT);
    assert_int_equal(field(tiff, TIFFTAG_PLANARCONFIG), PLANARCONFIG_CONTIG);
    assert_int_equal(field(tiff, TIFFTAG_PHOTOMETRIC),
                     channels == 3 ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISBLACK);
    assert_int_equal(TIFFGetFieldDefaulted(tiff, TIFFTAG_EXTRASAMPLES, &extra, &kinds), 1);
    assert_int_equal(extra, channels == 3 ? 0 : channels - 1);
}

/* Writes and reads one picture. */
static void round_trip(int64_t h, int64_t w, int64_t channels, int bits, unsigned strips) {
    size_t row_bytes = (size_t)(w * channels * bits / 8);
    unsigned char *rows = malloc(row_bytes * (size_t)h), *got = malloc(row_bytes);
    struct test_rng rng = test_rng_make((uint64_t)(h * 31 + w * 7 + channels + bits));
    for (size_t i = 0; i < row_bytes * (size_t)h; i++) rows[i] = (unsigned char)test_rng_next(&rng);
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_tiff_writer *writer = NULL;
    struct rfx_error err = {""};
    assert_int_equal(rfx_tiff_write_open(mem, FILE_NAME, h, w, channels, bits, &writer, &err),
                     RFX_OK);
    for (int64_t y = 0; y < h; y++) {
        assert_int_equal(rfx_tiff_write_commit(writer, &err), RFX_STATUS_INVALID_ARGUMENT);
        assert_int_equal(rfx_tiff_write_row(writer, rows + (size_t)y * row_bytes, &err), RFX_OK);
    }
    assert_int_equal(rfx_tiff_write_row(writer, rows, &err), RFX_STATUS_INVALID_ARGUMENT);
    assert_int_equal(access(FILE_NAME, F_OK), -1);
    if (rfx_tiff_write_commit(writer, &err) != RFX_OK) fail_msg("%s", err.text);
    rfx_tiff_write_free(writer);
    rfx_memory_free(mem);
    TIFF *tiff = TIFFOpen(FILE_NAME, "rc"); /* c: as many strips as there are */
    assert_non_null(tiff);
    check_tags(tiff, (uint32_t)h, (uint32_t)w, (unsigned)channels, (unsigned)bits);
    assert_int_equal(TIFFNumberOfStrips(tiff), strips);
    for (int64_t y = 0; y < h; y++) {
        assert_int_equal(TIFFReadScanline(tiff, got, (uint32_t)y, 0), 1);
        assert_memory_equal(got, rows + (size_t)y * row_bytes, row_bytes);
    }
    assert_int_equal(TIFFLastDirectory(tiff), 1);
    TIFFClose(tiff);
    assert_int_equal(unlink(FILE_NAME), 0);
    free(rows);
    free(got);
}

static void rows_come_back(void **state) {
    (void)state;
    static const int bits[] = {8, 16, 32};
    static const int64_t channels[] = {1, 2, 3, 4, 21};
    for (int b = 0; b < 3; b++)
        for (int c = 0; c < 5; c++) round_trip(7, 13, channels[c], bits[b], 1);
    round_trip(1, 1, 1, 8, 1);      /* an odd number of bytes before the directory */
    round_trip(301, 500, 3, 32, 7); /* 43 rows of 6000 bytes in 256 KiB */
    round_trip(3, 70000, 1, 32, 3); /* a row is more than a strip */
    round_trip(2, 1, 65535, 8, 1);  /* as many channels as there may be */
}

static void big_files_become_bigtiff(void **state) {
    (void)state;
    assert_false(rfx_tiff_write_is_big(65535, 65000));
    assert_false(rfx_tiff_write_is_big(4095, 1 << 20));
    assert_true(rfx_tiff_write_is_big(4096, 1 << 20));           /* 4 GiB of pixels */
    assert_true(rfx_tiff_write_is_big(INT32_MAX, 2));            /* with the strips' places */
    assert_true(rfx_tiff_write_is_big(INT32_MAX, SIZE_MAX / 4)); /* more than 2^63 */
}

static void refuses_and_reports(void **state) {
    (void)state;
    static const int64_t wrong[][4] = {/* h, w, channels, bits */
                                       {0, 8, 1, 8},     {8, 0, 1, 8},  {8, 8, 0, 8},
                                       {8, 8, 65536, 8}, {8, 8, 1, 12}, {1L << 31, 1, 1, 8}};
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_tiff_writer *writer = NULL;
    struct rfx_error err = {""};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(rfx_tiff_write_open(mem, FILE_NAME, wrong[i][0], wrong[i][1], wrong[i][2],
                                             (int)wrong[i][3], &writer, &err),
                         RFX_STATUS_INVALID_ARGUMENT);
    assert_int_equal(rfx_tiff_write_open(mem, "no/such/dir.tif", 1, 8, 1, 8, &writer, &err),
                     RFX_STATUS_IO);
    assert_non_null(strstr(err.text, "no/such/dir.tif"));
    if (access("/dev/full", W_OK) == 0) {
        assert_int_equal(rfx_tiff_write_open(mem, "/dev/full", 1, 1, 1, 8, &writer, &err), RFX_OK);
        assert_int_equal(rfx_tiff_write_row(writer, "x", &err), RFX_OK);
        assert_int_equal(rfx_tiff_write_commit(writer, &err), RFX_STATUS_IO);
        assert_non_null(strstr(err.text, "No space left"));
        rfx_tiff_write_free(writer);
    }
    assert_int_equal(rfx_tiff_write_open(mem, FILE_NAME, 2, 1, 1, 8, &writer, &err), RFX_OK);
    assert_int_equal(rfx_tiff_write_row(writer, "x", &err), RFX_OK);
    rfx_tiff_write_free(writer); /* with a row missing */
    assert_int_equal(access(FILE_NAME, F_OK), -1);
    rfx_tiff_write_free(NULL);
    rfx_memory_free(mem);
}

static enum rfx_status write_one(struct rfx_memory *mem, void *context, struct rfx_error *err) {
    struct rfx_tiff_writer *writer = NULL;
    (void)context;
    enum rfx_status status = rfx_tiff_write_open(mem, FILE_NAME, 1, 1, 2, 8, &writer, err);
    if (status == RFX_OK) status = rfx_tiff_write_row(writer, "ab", err);
    if (status == RFX_OK) status = rfx_tiff_write_commit(writer, err);
    rfx_tiff_write_free(writer);
    return status;
}

static void survives_failing_allocations(void **state) {
    (void)state;
    assert_int_equal(test_fail_each_allocation(write_one, NULL), 6);
    assert_int_equal(unlink(FILE_NAME), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_come_back),
        cmocka_unit_test(big_files_become_bigtiff),
        cmocka_unit_test(refuses_and_reports),
        cmocka_unit_test(survives_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
