/* The walk over JPEG markers: frame kind and components, padding, and impossible Huffman tables
 * before the frame, after a scan, and cut off by the end of the file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "rfexec/image_jpeg.h"

#define FILE_NAME "test_image_jpeg.tmp"

struct builder {
    unsigned char bytes[2048];
    size_t count;
};

static void put(struct builder *b, const char *bytes, size_t count) {
    memcpy(b->bytes + b->count, bytes, count);
    b->count += count;
}

/* A Huffman segment with one table of `codes` codes (at most 255 of each length). */
static void put_table(struct builder *b, int codes) {
    int length = 2 + 17 + codes;
    const char head[5] = {(char)0xff, (char)0xc4, (char)(length >> 8), (char)(length & 255), 0};
    put(b, head, 5);
    for (int i = 0, left = codes; i < 16; i++) {
        int here = left < 255 ? left : 255;
        b->bytes[b->count++] = (unsigned char)here;
        left -= here;
    }
    for (int i = 0; i < codes; i++) b->bytes[b->count++] = (unsigned char)i;
}

static bool walk(const struct builder *b, bool to_end, struct rfx_jpeg_walk *out) {
    FILE *to = fopen(FILE_NAME, "wb");
    assert_non_null(to);
    assert_int_equal(fwrite(b->bytes, 1, b->count, to), b->count);
    assert_int_equal(fclose(to), 0);
    struct rfx_image_file file;
    assert_int_equal(rfx_image_file_open(&file, FILE_NAME, NULL), RFX_OK);
    bool ok = rfx_jpeg_walk(&file, to_end, out);
    rfx_image_file_close(&file);
    (void)unlink(FILE_NAME);
    return ok;
}

#define SOI "\xff\xd8"
#define SOF0_GREY "\xff\xc0\x00\x0b\x08\x00\x08\x00\x08\x01\x01\x11\x00"
#define SOF2_RGB "\xff\xc2\x00\x11\x08\x00\x08\x00\x08\x03\x01\x11\x00\x02\x11\x00\x03\x11\x00"
#define SOS_GREY "\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00"
#define DATA "\x12\xff\x00\x34\xff\xd0\x56\xff\xff"
#define PUT(b, text) put(b, text, sizeof(text) - 1)

static void finds_the_frame(void **state) {
    (void)state;
    struct rfx_jpeg_walk found;
    struct builder b = {.count = 0};
    PUT(&b, SOI "\xff\xe1\x00\x06\xff\xc4\xff\xff"); /* the bytes of a table inside APP1 are none */
    put_table(&b, 256);
    PUT(&b, "padding\xff\xff" SOF0_GREY);
    assert_true(walk(&b, false, &found));
    assert_int_equal(found.components, 1);
    assert_false(found.progressive);
    b.count = 0;
    PUT(&b, SOI SOF2_RGB);
    assert_true(walk(&b, true, &found));
    assert_int_equal(found.components, 3);
    assert_true(found.progressive);
    b.count = 2; /* nothing: the worst */
    assert_true(walk(&b, true, &found));
    assert_int_equal(found.components, 4);
    assert_true(found.progressive);
}

static void refuses_impossible_tables(void **state) {
    (void)state;
    struct rfx_jpeg_walk found;
    for (int codes = 255; codes <= 300; codes++) {
        struct builder b = {.count = 0};
        PUT(&b, SOI);
        put_table(&b, codes);
        assert_int_equal(walk(&b, false, &found), codes <= 256);
        b.count = 0;
        PUT(&b, SOI SOF0_GREY SOS_GREY DATA);
        b.count--; /* the fill byte and the marker's own */
        put_table(&b, codes);
        assert_true(walk(&b, false, &found));
        assert_int_equal(walk(&b, true, &found), codes <= 256);
        b.count -= (size_t)codes + 5; /* ends inside the counts: the rest counts as zeros */
        assert_int_equal(walk(&b, true, &found), codes <= 256);
        b.count = 0;
        PUT(&b, SOI SOF0_GREY SOS_GREY DATA);
        b.count--;
        PUT(&b, "\xff\xd9"); /* what follows the end is not read */
        put_table(&b, codes);
        assert_true(walk(&b, true, &found));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_frame),
        cmocka_unit_test(refuses_impossible_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
