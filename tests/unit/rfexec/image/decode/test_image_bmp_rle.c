/* Run-length encoded BMP by hand: runs, indices as they are, moves and ends; broken runs; memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "rfexec/image/image_source.h"
#include "tests/support/run/image_reads.h"
#include "tests/support/test_util.h"

#define FILE_NAME "test_image_bmp_rle.tmp.bmp"
enum { W = 6, H = 3, COLOURS = 16, DATA = 54 + 4 * COLOURS };

/* Colour i is red i, green 100 + i, blue 200 + i. */
static void write_bmp(int bits, const unsigned char *rows, size_t count) {
    unsigned char file[DATA + 256] = {'B', 'M'};
    file[10] = DATA;
    file[14] = 40;
    file[18] = W;
    file[22] = H;
    file[26] = 1;
    file[28] = (unsigned char)bits;
    file[30] = bits == 8 ? 1 : 2;
    file[46] = COLOURS;
    for (int i = 0; i < COLOURS; i++) {
        file[54 + 4 * i] = (unsigned char)(200 + i);
        file[55 + 4 * i] = (unsigned char)(100 + i);
        file[56 + 4 * i] = (unsigned char)i;
    }
    memcpy(file + DATA, rows, count);
    test_bytes_store(FILE_NAME, file, DATA + count);
}

static const unsigned char rows8[] = {2, 7, 0, 3, 1, 2, 3, 0, 1, 9, 0, 0, /* the last row */
                                      0, 2, 2, 1, 4, 5, 0, 1};
static const unsigned char rows4[] = {2, 0x77, 0, 3, 0x12, 0x30, 1,    0x90, 0,
                                      0, 0,    2, 2, 1,    4,    0x55, 0,    1};
static const int indices[H][W] = {{0, 0, 5, 5, 5, 5}, {0, 0, 0, 0, 0, 0}, {7, 7, 1, 2, 3, 9}};

static void reads_runs(void **state) {
    (void)state;
    for (int bits = 4; bits <= 8; bits += 4) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_image *image = NULL;
        struct rfx_error err;
        write_bmp(bits, bits == 8 ? rows8 : rows4, bits == 8 ? sizeof rows8 : sizeof rows4);
        if (rfx_image_open(mem, FILE_NAME, &image_reads_plain, &image, &err) != RFX_OK)
            fail_msg("%s", err.text);
        struct rfx_source_traits t = rfx_image_traits(image);
        assert_true(t.h == H && t.w == W && t.c == 3 && t.random_access);
        float data[H * W * 3];
        struct rfx_view view = rfx_view_dense(data, rfx_rect_full(H, W), 3);
        if (rfx_image_read(image, view.rect, &view, &err) != RFX_OK) fail_msg("%s", err.text);
        for (int i = 0; i < H * W * 3; i++)
            assert_float_equal(data[i], (float)(indices[i / 3 / W][i / 3 % W] + i % 3 * 100), 0);
        assert_int_equal(rfx_memory_high_water_bytes(mem), t.fixed_bytes);
        rfx_image_free(image);
        rfx_memory_free(mem);
    }
}

static void refuses_in_words(void **state) {
    (void)state;
    static const struct {
        unsigned char rows[8];
        size_t count;
        const char *words;
    } cases[] = {
        {{W + 1, 1, 0, 1}, 4, "row 0 of 3 from the last: a run leaves the picture"},
        {{0, 7, 1, 1, 1, 1, 0, 1}, 8, "a run leaves the picture, or the file ends"},
        {{0, 2, 7, 0, 0, 1}, 6, "a run leaves"},
        {{0, 2, 0, 4, 0, 1}, 6, "a run leaves"},
        {{0, 0, 0, 0, 0, 0, 0, 0}, 8, "row 4 of 3 from the last"},
        {{2, 1}, 2, "the file ends here"},
        {{2}, 1, "the file ends here"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rfx_error err;
        write_bmp(8, cases[i].rows, cases[i].count);
        assert_int_equal(image_reads_all(FILE_NAME, INT32_MAX, -1, 0, &err), RFX_STATUS_MALFORMED);
        if (strstr(err.text, cases[i].words) == NULL) fail_msg("%s", err.text);
    }
}

static void survives_failing_allocations(void **state) {
    (void)state;
    write_bmp(4, rows4, sizeof rows4);
    assert_true(image_reads_failing(FILE_NAME) >= 5);
    (void)unlink(FILE_NAME);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_runs),
        cmocka_unit_test(refuses_in_words),
        cmocka_unit_test(survives_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
