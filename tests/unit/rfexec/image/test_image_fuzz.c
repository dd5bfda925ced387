/* Broken picture files: every kind cut at many places and with flipped bytes. Whatever is in the
 * file, the answer is OK or a status for bad input with a text, within a memory limit, and nothing
 * is left allocated. A cut file is never accepted. */
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
#include "tests/support/makers/png_maker.h"

#define FILE_NAME "test_image_fuzz.tmp"
#define LIMIT_BYTES ((size_t)48 << 20)
#define WINDOW 8
#ifndef FLIP_FACTOR
#define FLIP_FACTOR 1 /* more for a longer search */
#endif

struct bytes {
    unsigned char *data;
    size_t count;
};

static struct bytes read_file(void) {
    FILE *file = fopen(FILE_NAME, "rb");
    assert_non_null(file);
    struct bytes b = {malloc(1 << 20), 0};
    b.count = fread(b.data, 1, 1 << 20, file);
    assert_int_equal(fclose(file), 0);
    return b;
}

static void write_file(const unsigned char *data, size_t count) {
    FILE *file = fopen(FILE_NAME, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

/* Reads the picture in bands of at most WINDOW rows and 64 columns of each. */
static enum rfx_status read_bands(struct rfx_image *image, struct rfx_error *err) {
    struct rfx_source_traits t = rfx_image_traits(image);
    int64_t cols = t.w < 64 ? t.w : 64, c = t.c < 16 ? t.c : 16;
    if (t.c > c) return RFX_OK; /* a large npy: its header is what is tested */
    float *data = malloc((size_t)(WINDOW * cols * c) * sizeof *data);
    enum rfx_status status = RFX_OK;
    int64_t rows = t.h < 4096 ? t.h : 4096; /* a header that lies needs no more */
    for (int64_t y = 0; y < rows && status == RFX_OK; y += WINDOW) {
        struct rfx_rect rect = rfx_rect_make(y, y + WINDOW < t.h ? y + WINDOW : t.h, 0, cols);
        struct rfx_view view = rfx_view_dense(data, rect, c);
        status = rfx_image_read(image, rect, &view, err);
    }
    free(data);
    return status;
}

static enum rfx_status run(const char *what, size_t place) {
    struct rfx_memory *mem = rfx_memory_create(LIMIT_BYTES);
    struct rfx_image *image = NULL;
    struct rfx_error err = {""};
    enum rfx_status status = rfx_image_open(mem, FILE_NAME, NULL, &image, &err);
    if (status == RFX_OK) status = rfx_image_set_window(image, WINDOW, &err);
    if (status == RFX_OK) status = read_bands(image, &err);
    bool known = status == RFX_OK || status == RFX_STATUS_MALFORMED ||
                 status == RFX_STATUS_UNSUPPORTED || status == RFX_STATUS_OUT_OF_MEMORY;
    if (!known || (status != RFX_OK && strstr(err.text, FILE_NAME) == NULL))
        fail_msg("%s at %zu: status %d: %s", what, place, status, err.text);
    rfx_image_free(image);
    rfx_memory_free(mem);
    return status;
}

/* The whole file is read, and no beginning of it. */
static void cut(const char *what, struct bytes b, size_t step) {
    write_file(b.data, b.count);
    assert_int_equal(run(what, b.count), RFX_OK);
    for (size_t count = 0; count < b.count; count += step) {
        write_file(b.data, count);
        enum rfx_status status = run(what, count);
        if (status == RFX_OK) fail_msg("%s cut at %zu was accepted", what, count);
    }
}

static uint32_t next_random(uint32_t *seed) {
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* Cases of 1 to 4 changed bytes, half of them in the first 64. */
static void flip(const char *what, struct bytes b, uint32_t seed, int cases) {
    unsigned char *copy = malloc(b.count);
    for (int i = 0; i < cases * FLIP_FACTOR; i++) {
        uint32_t start = seed;
        memcpy(copy, b.data, b.count);
        uint32_t flips = 1 + next_random(&seed) % 4;
        for (uint32_t k = 0; k < flips; k++) {
            size_t reach = next_random(&seed) % 2 == 0 && b.count > 64 ? 64 : b.count;
            size_t at = next_random(&seed) % reach;
            copy[at] = (unsigned char)(copy[at] ^ (1u << (next_random(&seed) % 8)));
            if (next_random(&seed) % 8 == 0) copy[at] = (unsigned char)next_random(&seed);
        }
        write_file(copy, b.count);
        (void)run(what, start);
    }
    free(copy);
}

static void broken_png(void **state) {
    (void)state;
    static const struct png_maker makers[] = {
        {.h = 40, .w = 30, .bit_depth = 8, .color_type = 2, .seed = 1},
        {.h = 21, .w = 33, .bit_depth = 16, .color_type = 6, .interlaced = true, .seed = 2},
        {.h = 50, .w = 60, .bit_depth = 4, .color_type = 3, .transparent = true, .seed = 3},
        {.h = 60, .w = 90, .bit_depth = 1, .color_type = 0, .interlaced = true, .seed = 4},
    };
    for (int i = 0; i < 4; i++) {
        assert_true(png_maker_write(&makers[i], FILE_NAME));
        struct bytes b = read_file();
        cut("png", b, b.count / 150 + 1);
        flip("png", b, (uint32_t)i + 1000, 400);
        free(b.data);
    }
}

static void put_chunk_length(struct bytes b, uint32_t length) {
    for (int i = 0; i < 4; i++) b.data[33 + i] = (unsigned char)(length >> (24 - 8 * i));
}

static void hostile_png(void **state) {
    (void)state;
    struct png_maker m = {.h = 40, .w = 30, .bit_depth = 8, .color_type = 2, .seed = 5};
    static const uint32_t lengths[] = {0, 1, 0x7fffffff, 0x80000000u, 0xffffffffu};
    for (int i = 0; i < 5; i++) {
        assert_true(png_maker_write(&m, FILE_NAME));
        struct bytes b = read_file();
        put_chunk_length(b, lengths[i]);
        write_file(b.data, b.count);
        assert_int_not_equal(run("png chunk length", (size_t)i), RFX_OK);
        free(b.data);
    }
}

static void broken_npy(void **state) {
    (void)state;
    unsigned char all[128 + 4 * 240];
    memset(all, ' ', 128);
    memcpy(all, "\x93NUMPY\x01\x00\x76\x00", 10);
    static const char dict[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3, 8, 10), }";
    memcpy(all + 10, dict, sizeof dict - 1);
    all[127] = '\n';
    memset(all + 128, 0x3f, 4 * 240);
    struct bytes b = {all, sizeof all};
    write_file(b.data, b.count);
    assert_int_equal(run("npy", 0), RFX_OK);
    cut("npy", b, 3);
    flip("npy", b, 77, 1500);
}

static void broken_others(void **state) {
    (void)state;
    unsigned char bmp[54 + 16 * 48] = {'B', 'M', 70, 0,  0, 0, 0, 0,  0, 0, 54, 0, 0, 0, 40,
                                       0,   0,   0,  16, 0, 0, 0, 16, 0, 0, 0,  1, 0, 24};
    for (size_t i = 54; i < sizeof bmp; i++) bmp[i] = (unsigned char)(i * 7);
    struct bytes b = {bmp, sizeof bmp};
    write_file(b.data, b.count);
    assert_int_equal(run("bmp", 0), RFX_OK);
    cut("bmp", b, 1);
    flip("bmp", b, 5, 300);
    unsigned char pgm[11 + 64] = "P5\n8 8\n255\n";
    for (size_t i = 11; i < sizeof pgm; i++) pgm[i] = (unsigned char)i;
    b = (struct bytes){pgm, sizeof pgm};
    cut("pgm", b, 1);
    flip("pgm", b, 6, 300);
    unsigned char ppm[13 + 6 * 40] = "P6\n8 5\n65535\n"; /* longer than stb_image's buffer */
    b = (struct bytes){ppm, sizeof ppm};
    cut("ppm", b, 1);
    unsigned char tga[18 + 40 * 3 * 4] = {0, 0, 2, 0,  0, 0, 0, 0,  0,
                                          0, 0, 0, 40, 0, 4, 0, 24, 0x20};
    b = (struct bytes){tga, sizeof tga};
    cut("tga", b, 1);
    flip("tga", b, 8, 300);
    static const unsigned char gif[] = {
        'G', 'I',  'F', '8', '9', 'a', 2, 0, 2, 0, 0x80, 0, 0, 0,    0,    0,    255, 255,
        255, 0x2c, 0,   0,   0,   0,   2, 0, 2, 0, 0,    2, 3, 0x44, 0x02, 0x05, 0,   0x3b};
    unsigned char gif_copy[sizeof gif];
    memcpy(gif_copy, gif, sizeof gif);
    b = (struct bytes){gif_copy, sizeof gif};
    cut("gif", b, 1);
    flip("gif", b, 7, 300);
    (void)unlink(FILE_NAME);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broken_png),
        cmocka_unit_test(hostile_png),
        cmocka_unit_test(broken_npy),
        cmocka_unit_test(broken_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
