/* PNG by rows: what is written is read back by libpng's simplified reader; clamping; failures. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <png.h>

#include <cmocka.h>

#include "rfexec/image_write.h"

#define FILE_NAME "test_image_write.tmp.png"

static unsigned char *read_back(uint32_t *h, uint32_t *w, bool colour) {
    png_image image;
    memset(&image, 0, sizeof image);
    image.version = PNG_IMAGE_VERSION;
    assert_true(png_image_begin_read_from_file(&image, FILE_NAME));
    assert_int_equal((image.format & PNG_FORMAT_FLAG_COLOR) != 0, colour);
    image.format = colour ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
    unsigned char *pixels = malloc(PNG_IMAGE_SIZE(image));
    assert_true(png_image_finish_read(&image, NULL, pixels, 0, NULL));
    *h = image.height;
    *w = image.width;
    return pixels;
}

static void rows_come_back(void **state) {
    (void)state;
    for (int channels = 1; channels <= 3; channels += 2) {
        const int h = 37, w = 53;
        unsigned char rows[37 * 53 * 3];
        for (int i = 0; i < h * w * channels; i++) rows[i] = (unsigned char)((i * i / 7) & 255);
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_png_writer *writer = NULL;
        struct rfx_error err = {""};
        assert_int_equal(rfx_png_write_open(mem, FILE_NAME, h, w, channels, &writer, &err), RFX_OK);
        for (int y = 0; y < h; y++) {
            assert_int_equal(rfx_png_write_commit(writer, &err), RFX_STATUS_INVALID_ARGUMENT);
            assert_int_equal(rfx_png_write_row(writer, rows + y * w * channels, &err), RFX_OK);
        }
        assert_int_equal(rfx_png_write_row(writer, rows, &err), RFX_STATUS_INVALID_ARGUMENT);
        assert_int_equal(access(FILE_NAME, F_OK), -1);
        assert_int_equal(rfx_png_write_commit(writer, &err), RFX_OK);
        rfx_png_write_free(writer);
        rfx_memory_free(mem);
        uint32_t got_h, got_w;
        unsigned char *pixels = read_back(&got_h, &got_w, channels == 3);
        assert_int_equal(got_h, h);
        assert_int_equal(got_w, w);
        assert_memory_equal(pixels, rows, (size_t)(h * w * channels));
        free(pixels);
        (void)unlink(FILE_NAME);
    }
}

static void floats_are_clamped_and_rounded(void **state) {
    (void)state;
    /* every second float is another channel */
    const float values[] = {-1.0f, 9, 0.0f,     9, 0.5f, 9, 1.0f, 9,
                            7.0f,  9, INFINITY, 9, NAN,  9, 0.1f, 9};
    static const unsigned char wanted[8] = {0, 0, 128, 255, 255, 255, 0, 26};
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_png_writer *writer = NULL;
    assert_int_equal(rfx_png_write_open(mem, FILE_NAME, 1, 8, 1, &writer, NULL), RFX_OK);
    assert_int_equal(rfx_png_write_floats(writer, values, 2, 0.0f, 1.0f, NULL), RFX_OK);
    assert_int_equal(rfx_png_write_commit(writer, NULL), RFX_OK);
    rfx_png_write_free(writer);
    rfx_memory_free(mem);
    uint32_t h, w;
    unsigned char *pixels = read_back(&h, &w, false);
    assert_memory_equal(pixels, wanted, 8);
    free(pixels);
    (void)unlink(FILE_NAME);
}

static void refuses_and_reports(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_png_writer *writer = NULL;
    struct rfx_error err = {""};
    assert_int_equal(rfx_png_write_open(mem, FILE_NAME, 1, 8, 2, &writer, &err),
                     RFX_STATUS_INVALID_ARGUMENT);
    assert_int_equal(rfx_png_write_open(mem, FILE_NAME, 0, 8, 1, &writer, &err),
                     RFX_STATUS_INVALID_ARGUMENT);
    assert_int_equal(rfx_png_write_open(mem, FILE_NAME, 1, 1000001, 1, &writer, &err),
                     RFX_STATUS_INVALID_ARGUMENT);
    assert_int_equal(rfx_png_write_open(mem, "no/such/dir.png", 1, 8, 1, &writer, &err),
                     RFX_STATUS_IO);
    assert_non_null(strstr(err.text, "no/such/dir.png"));
    if (access("/dev/full", W_OK) == 0) {
        assert_int_equal(rfx_png_write_open(mem, "/dev/full", 1, 1, 1, &writer, &err), RFX_OK);
        assert_int_equal(rfx_png_write_row(writer, (const unsigned char *)"x", &err), RFX_OK);
        assert_int_equal(rfx_png_write_commit(writer, &err), RFX_STATUS_IO);
        assert_non_null(strstr(err.text, "No space left"));
        rfx_png_write_free(writer);
    }
    rfx_png_write_free(NULL);
    rfx_memory_free(mem);
}

/* Open, one row, commit with the k-th allocation failing. */
static enum rfx_status run_once(int64_t k, struct rfx_error *err) {
    struct rfx_memory *mem = rfx_memory_create(0);
    rfx_memory_fail_after(mem, k);
    struct rfx_png_writer *writer = NULL;
    const unsigned char row[9] = {1, 2, 3};
    enum rfx_status status = rfx_png_write_open(mem, FILE_NAME, 1, 3, 3, &writer, err);
    if (status == RFX_OK) status = rfx_png_write_row(writer, row, err);
    if (status == RFX_OK) status = rfx_png_write_commit(writer, err);
    rfx_png_write_free(writer);
    rfx_memory_free(mem);
    return status;
}

static void survives_failing_allocations(void **state) {
    (void)state;
    int64_t k = 0;
    for (enum rfx_status status = RFX_STATUS_OUT_OF_MEMORY; status != RFX_OK; k++) {
        struct rfx_error err = {""};
        status = run_once(k, &err);
        if (status == RFX_OK) break;
        if (status != RFX_STATUS_OUT_OF_MEMORY || err.text[0] == '\0')
            fail_msg("allocation %d: status %d: %s", (int)k, status, err.text);
        assert_int_equal(access(FILE_NAME, F_OK), -1);
        assert_true(k < 100);
    }
    assert_true(k > 6);
    assert_int_equal(unlink(FILE_NAME), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_come_back),
        cmocka_unit_test(floats_are_clamped_and_rounded),
        cmocka_unit_test(refuses_and_reports),
        cmocka_unit_test(survives_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
