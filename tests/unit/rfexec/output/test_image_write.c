/* PNG by rows: what is written is read back by libpng's reader; failures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <png.h>

#include <cmocka.h>

#include "rfexec/output/image_write.h"

#define FILE_NAME "test_image_write.tmp.png"

static unsigned char *read_back(uint32_t *h, uint32_t *w, int channels) {
    png_image image;
    memset(&image, 0, sizeof image);
    image.version = PNG_IMAGE_VERSION;
    assert_true(png_image_begin_read_from_file(&image, FILE_NAME));
    assert_int_equal((image.format & PNG_FORMAT_FLAG_COLOR) != 0, channels >= 3);
    assert_int_equal((image.format & PNG_FORMAT_FLAG_ALPHA) != 0, channels == 4);
    image.format = channels == 4   ? PNG_FORMAT_RGBA
                   : channels == 3 ? PNG_FORMAT_RGB
                                   : PNG_FORMAT_GRAY;
    unsigned char *pixels = malloc(PNG_IMAGE_SIZE(image));
    assert_true(png_image_finish_read(&image, NULL, pixels, 0, NULL));
    *h = image.height;
    *w = image.width;
    return pixels;
}

static void rows_come_back(void **state) {
    (void)state;
    for (int channels = 1; channels <= 4; channels += channels == 1 ? 2 : 1) {
        const int h = 37, w = 53;
        unsigned char rows[37 * 53 * 4];
        for (int i = 0; i < h * w * channels; i++) rows[i] = (unsigned char)((i * i / 7) & 255);
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_png_writer *writer = NULL;
        struct rfx_error err = {""};
        assert_int_equal(rfx_png_write_open(mem, FILE_NAME, h, w, channels, 8, &writer, &err),
                         RFX_OK);
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
        unsigned char *pixels = read_back(&got_h, &got_w, channels);
        assert_int_equal(got_h, h);
        assert_int_equal(got_w, w);
        assert_memory_equal(pixels, rows, (size_t)(h * w * channels));
        free(pixels);
        (void)unlink(FILE_NAME);
    }
}

static void samples_of_16_bits_come_back(void **state) {
    (void)state;
    enum { H = 5, W = 7 };
    for (int channels = 1; channels <= 3; channels += 2) {
        uint16_t rows[H * W * 3];
        for (int i = 0; i < H * W * channels; i++) rows[i] = (uint16_t)(i * 2711 + 5);
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_png_writer *writer = NULL;
        assert_int_equal(rfx_png_write_open(mem, FILE_NAME, H, W, channels, 16, &writer, NULL),
                         RFX_OK);
        for (int y = 0; y < H; y++)
            assert_int_equal(rfx_png_write_row(writer, rows + y * W * channels, NULL), RFX_OK);
        assert_int_equal(rfx_png_write_commit(writer, NULL), RFX_OK);
        rfx_png_write_free(writer);
        rfx_memory_free(mem);
        /* the file's own bytes, big-endian */
        FILE *file = fopen(FILE_NAME, "rb");
        assert_non_null(file);
        png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
        png_infop info = png_create_info_struct(png);
        png_init_io(png, file);
        png_read_png(png, info, PNG_TRANSFORM_IDENTITY, NULL);
        assert_int_equal(png_get_bit_depth(png, info), 16);
        assert_int_equal(png_get_channels(png, info), channels);
        png_bytepp got = png_get_rows(png, info);
        for (int i = 0; i < H * W * channels; i++) {
            const unsigned char *b = got[i / (W * channels)] + 2 * (i % (W * channels));
            assert_int_equal(b[0] << 8 | b[1], rows[i]);
        }
        png_destroy_read_struct(&png, &info, NULL);
        (void)fclose(file);
        (void)unlink(FILE_NAME);
    }
}

static void refuses_and_reports(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_png_writer *writer = NULL;
    struct rfx_error err = {""};
    assert_int_equal(rfx_png_write_open(mem, FILE_NAME, 1, 8, 2, 8, &writer, &err),
                     RFX_STATUS_INVALID_ARGUMENT);
    assert_int_equal(rfx_png_write_open(mem, FILE_NAME, 0, 8, 1, 8, &writer, &err),
                     RFX_STATUS_INVALID_ARGUMENT);
    assert_int_equal(rfx_png_write_open(mem, FILE_NAME, 1, 1000001, 1, 8, &writer, &err),
                     RFX_STATUS_INVALID_ARGUMENT);
    assert_int_equal(rfx_png_write_open(mem, FILE_NAME, 1, 8, 1, 4, &writer, &err),
                     RFX_STATUS_INVALID_ARGUMENT);
    assert_int_equal(rfx_png_write_open(mem, "no/such/dir.png", 1, 8, 1, 8, &writer, &err),
                     RFX_STATUS_IO);
    assert_non_null(strstr(err.text, "no/such/dir.png"));
    if (access("/dev/full", W_OK) == 0) {
        assert_int_equal(rfx_png_write_open(mem, "/dev/full", 1, 1, 1, 8, &writer, &err), RFX_OK);
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
    enum rfx_status status = rfx_png_write_open(mem, FILE_NAME, 1, 3, 3, 8, &writer, err);
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
        cmocka_unit_test(samples_of_16_bits_come_back),
        cmocka_unit_test(refuses_and_reports),
        cmocka_unit_test(survives_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
