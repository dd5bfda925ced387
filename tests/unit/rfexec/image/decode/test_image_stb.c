/* Formats that stb_image reads: BMP, TGA, PNM of 8 and 16 bits made by hand; memory. */
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

#define FILE_NAME "test_image_stb.tmp"

static const struct rfx_image_options plain = {.scale = 1.0f,
                                               .mean = (const float[]){0},
                                               .n_mean = 1,
                                               .std = (const float[]){1},
                                               .n_std = 1,
                                               .bgr = false,
                                               .channels = 0};

static void write_file(const void *bytes, size_t count) {
    FILE *file = fopen(FILE_NAME, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

/* Reads all of FILE_NAME; the caller frees. Holds the memory to what the traits say. */
static float *read_all(int64_t h, int64_t w, int64_t c) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_image *image = NULL;
    struct rfx_error err = {""};
    if (rfx_image_open(mem, FILE_NAME, &plain, &image, &err) != RFX_OK) fail_msg("%s", err.text);
    struct rfx_source_traits t = rfx_image_traits(image);
    assert_int_equal(t.h, h);
    assert_int_equal(t.w, w);
    assert_int_equal(t.c, c);
    assert_true(t.random_access);
    float *data = malloc((size_t)(h * w * c) * sizeof *data);
    struct rfx_view view = rfx_view_dense(data, rfx_rect_full(h, w), c);
    if (rfx_image_set_window(image, 1, &err) != RFX_OK) fail_msg("%s", err.text);
    uint64_t allocations = rfx_memory_allocation_count(mem);
    if (rfx_image_read(image, view.rect, &view, &err) != RFX_OK) fail_msg("%s", err.text);
    assert_int_equal(rfx_memory_allocation_count(mem), allocations);
    assert_true(rfx_memory_high_water_bytes(mem) <= t.fixed_bytes);
    rfx_image_free(image);
    rfx_memory_free(mem);
    return data;
}

static void reads_bmp(void **state) {
    (void)state;
    /* 2 x 2, 24 bit, bottom row first, blue green red, rows padded to 8 bytes */
    unsigned char bmp[54 + 16] = {'B', 'M', 70, 0, 0, 0, 0, 0, 0, 0, 54, 0, 0, 0, 40,
                                  0,   0,   0,  2, 0, 0, 0, 2, 0, 0, 0,  1, 0, 24};
    static const unsigned char pixels[16] = {1, 2, 3, 4, 5, 6, 0, 0, 7, 8, 9, 10, 11, 12, 0, 0};
    memcpy(bmp + 54, pixels, 16);
    write_file(bmp, sizeof bmp);
    float *v = read_all(2, 2, 3);
    static const float wanted[12] = {9, 8, 7, 12, 11, 10, 3, 2, 1, 6, 5, 4};
    assert_memory_equal(v, wanted, sizeof wanted);
    free(v);
}

static void reads_tga_and_drops_alpha(void **state) {
    (void)state;
    /* 2 x 1, 32 bit, top row first, blue green red alpha */
    static const unsigned char tga[18 + 8] = {0, 0, 2, 0,  0,    0, 0, 0, 0, 0, 0, 0, 2,
                                              0, 1, 0, 32, 0x28, 1, 2, 3, 0, 4, 5, 6, 255};
    write_file(tga, sizeof tga);
    float *v = read_all(1, 2, 3);
    static const float wanted[6] = {3, 2, 1, 6, 5, 4};
    assert_memory_equal(v, wanted, sizeof wanted);
    free(v);
}

static void reads_pnm(void **state) {
    (void)state;
    write_file("P5\n# a comment\n3 2\n255\n\x01\x02\x03\xfd\xfe\xff", 30);
    float *v = read_all(2, 3, 1);
    static const float grey[6] = {1, 2, 3, 253, 254, 255};
    assert_memory_equal(v, grey, sizeof grey);
    free(v);
    write_file("P6 1 1 65535\n\x01\x01\xff\xff\x12\x34", 19);
    v = read_all(1, 1, 3);
    assert_true(v[0] == 1.0f && v[1] == 255.0f && v[2] == 4660.0f / 257.0f);
    free(v);
}

/* Opens, decodes, frees; the text in err. */
static enum rfx_status run_once(int64_t fail_after, size_t limit, struct rfx_error *err) {
    struct rfx_memory *mem = rfx_memory_create(limit);
    rfx_memory_fail_after(mem, fail_after);
    struct rfx_image *image = NULL;
    enum rfx_status status = rfx_image_open(mem, FILE_NAME, &plain, &image, err);
    if (status == RFX_OK) status = rfx_image_set_window(image, 1, err);
    rfx_image_free(image);
    rfx_memory_free(mem);
    return status;
}

static void survives_failing_allocations(void **state) {
    (void)state;
    write_file("P6 2 2 255\n0123456789ab", 23);
    int64_t k = 0;
    for (;; k++) {
        struct rfx_error err = {""};
        enum rfx_status status = run_once(k, 0, &err);
        if (status == RFX_OK) break;
        if (status != RFX_STATUS_OUT_OF_MEMORY) fail_msg("%d: %s", (int)k, err.text);
        assert_true(err.text[0] != '\0');
        assert_true(k < 100);
    }
    assert_true(k >= 4); /* image, name, kind, pixels */
    /* 20,000 x 20,000 pixels: the header alone says what it takes */
    struct rfx_error err = {""};
    write_file("P6 20000 20000 255\n....", 23);
    assert_int_equal(run_once(-1, 1000000, &err), RFX_STATUS_OUT_OF_MEMORY);
    assert_non_null(strstr(err.text, "20000 x 20000"));
    write_file("P6 30000 30000 255\n....", 23);
    assert_int_equal(run_once(-1, 0, &err), RFX_STATUS_UNSUPPORTED);
    assert_non_null(strstr(err.text, "30000 x 30000"));
    (void)unlink(FILE_NAME);
}

/* The text says how many bytes are missing where the header tells. */
static void says_what_a_cut_file_lacks(void **state) {
    (void)state;
    struct rfx_error err = {""};
    unsigned char bmp[54 + 16] = {'B', 'M', 70, 0, 0, 0, 0, 0, 0, 0, 54, 0, 0, 0, 40,
                                  0,   0,   0,  2, 0, 0, 0, 2, 0, 0, 0,  1, 0, 24};
    write_file(bmp, sizeof bmp - 5);
    assert_int_equal(run_once(-1, 0, &err), RFX_STATUS_MALFORMED);
    assert_string_equal(err.text, FILE_NAME ": the file breaks off after 65 bytes; 5 are missing");
    write_file("P5\n4 3\n255\n0123456789", 21);
    assert_int_equal(run_once(-1, 0, &err), RFX_STATUS_MALFORMED);
    assert_string_equal(err.text, FILE_NAME ": the file breaks off after 21 bytes; 2 are missing");
    static const unsigned char gif[] = {'G', 'I', 'F', '8', '9', 'a', 2,   0,    2,    0,   0x80, 0,
                                        0,   0,   0,   0,   255, 255, 255, 0x2c, 0,    0,   0,    0,
                                        2,   0,   2,   0,   0,   2,   3,   0x44, 0x02, 0x05};
    write_file(gif, sizeof gif);
    assert_int_equal(run_once(-1, 0, &err), RFX_STATUS_MALFORMED);
    assert_string_equal(err.text, FILE_NAME ": the file breaks off after 34 bytes");
    (void)unlink(FILE_NAME);
}

/* Palettes of fewer colours than pixels name, or of less than none. */
static void colours_that_are_not_there(void **state) {
    (void)state;
    struct rfx_error err = {""};
    /* 2 x 1, 8 bits, a palette of one colour; the second pixel is of colour 200 */
    unsigned char bmp[54 + 4 + 4] = {'B', 'M', 62, 0, 0, 0, 0, 0, 0, 0, 58, 0, 0, 0, 40,
                                     0,   0,   0,  2, 0, 0, 0, 1, 0, 0, 0,  1, 0, 8};
    static const unsigned char rest[8] = {7, 8, 9, 0, 0, 200, 0, 0};
    memcpy(bmp + 54, rest, 8);
    write_file(bmp, sizeof bmp);
    float *v = read_all(1, 2, 3);
    static const float wanted[6] = {9, 8, 7, 0, 0, 0};
    assert_memory_equal(v, wanted, sizeof wanted);
    free(v);
    bmp[10] = 53;
    write_file(bmp, sizeof bmp);
    assert_int_equal(run_once(-1, 0, &err), RFX_STATUS_MALFORMED);
    assert_string_equal(err.text, FILE_NAME ": its pixels begin inside its header");
    (void)unlink(FILE_NAME);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_bmp),
        cmocka_unit_test(colours_that_are_not_there),
        cmocka_unit_test(reads_tga_and_drops_alpha),
        cmocka_unit_test(reads_pnm),
        cmocka_unit_test(survives_failing_allocations),
        cmocka_unit_test(says_what_a_cut_file_lacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
