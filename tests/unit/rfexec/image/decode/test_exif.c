/* EXIF data by hand: the orientation where it stands, and 1 for everything that makes no sense. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "rfexec/image/decode/orientation.h"
#include "tests/support/makers/jpeg_maker.h"
#include "tests/support/test_util.h"

#define FILE_NAME "test_exif.tmp.jpg"

static int orientation_of(const unsigned char *bytes, size_t count) {
    static struct rfx_image_file file;
    test_bytes_store(FILE_NAME, bytes, count);
    assert_int_equal(rfx_image_file_open(&file, FILE_NAME, NULL), RFX_OK);
    int orientation = rfx_exif_orientation(&file);
    assert_in_range(orientation, 1, 8);
    unsigned char first[2]; /* the reading position is where it was */
    assert_int_equal(rfx_image_file_read(&file, first, 2), count < 2 ? count : 2);
    if (count >= 2) assert_memory_equal(first, bytes, 2);
    rfx_image_file_close(&file);
    return orientation;
}

/* Offsets in `whole`: segment 2, TIFF 12, directory 20, its entry 22. */
static const unsigned char whole[] = {
    0xff, 0xd8, 0xff, 0xe1, 0, 34, 'E', 'x', 'i', 'f', 0, 0, 'I', 'I', 42, 0, 8, 0,    0,    0, 1,
    0,    18,   1,    3,    0, 1,  0,   0,   0,   7,   0, 0, 0,   0,   0,  0, 0, 0xff, 0xd9, 0, 0};

static void finds_it(void **state) {
    (void)state;
    unsigned char bytes[sizeof whole + 20];
    assert_int_equal(orientation_of(whole, sizeof whole), 7);
    /* behind another segment, and bytes that fill the space between */
    static const unsigned char other[] = {0xff, 0xd8, 0xff, 0xe0, 0, 4, 1, 2, 0xff, 0xff};
    memcpy(bytes, other, sizeof other);
    memcpy(bytes + sizeof other, whole + 2, sizeof whole - 2);
    assert_int_equal(orientation_of(bytes, sizeof other + sizeof whole - 2), 7);
    struct jpeg_maker m = {.h = 9, .w = 8, .components = 3, .h_sampling = 1, .v_sampling = 1};
    static struct test_bytes b;
    m.quality = 50;
    for (int i = 0; i < 2; i++)
        for (m.orientation = 0; m.orientation <= 8; m.orientation++) {
            m.exif_big_endian = i == 1;
            assert_true(jpeg_maker_write(&m, FILE_NAME));
            test_bytes_load(&b, FILE_NAME);
            assert_int_equal(orientation_of(b.data, b.count),
                             m.orientation > 0 ? m.orientation : 1);
        }
}

static void nonsense_is_one(void **state) {
    (void)state;
    static const struct {
        size_t at;
        int value;
    } cases[] = {
        {2, 0},    /* no marker */
        {3, 0xda}, /* the scan comes first */
        {3, 0xe2}, /* another segment */
        {5, 7},    /* too short for the name */
        {5, 25},   /* ends in the entry */
        {6, 'e'},  /* another name */
        {12, 'M'}, /* neither byte order */
        {14, 43},  /* no TIFF */
        {16, 200}, /* a directory behind the end */
        {19, 255}, /* far behind it */
        {20, 0},   /* no entries */
        {22, 19},  /* another tag */
        {24, 4},   /* another type */
        {26, 2},   /* two values */
        {30, 0},   /* no orientation */
        {30, 9},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        unsigned char bytes[sizeof whole];
        memcpy(bytes, whole, sizeof whole);
        bytes[cases[i].at] = (unsigned char)cases[i].value;
        if (orientation_of(bytes, sizeof bytes) != 1) fail_msg("case %d", (int)i);
    }
    for (size_t count = 0; count < 32; count++) assert_int_equal(orientation_of(whole, count), 1);
    assert_int_equal(orientation_of(whole, 32), 7); /* the value is there */
    (void)unlink(FILE_NAME);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_it),
        cmocka_unit_test(nonsense_is_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
