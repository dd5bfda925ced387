/* Pages that are channels are bands, pages that are not are refused, and a grey page beside others
 * is never three channels unless it is asked for. Values against those that libtiff wrote. */
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

#include "rfexec/image/image_source.h"
#include "rfexec/image/tiff/tiff_stack.h"
#include "tests/support/makers/tiff_maker.h"
#include "tests/support/run/image_reads.h"
#include "tests/support/test_util.h"

#define FILE_NAME "test_page_bands.tmp.tif"
enum { PAGES = 3, H = 21, W = 33 };

#define OME(c, z, order, rest)                                                            \
    "<?xml version=\"1.0\"?><!-- a remark --><OME xmlns=\"x\"><Image><Pixels ID=\"P:0\" " \
    "SizeX=\"33\" "                                                                       \
    "SizeY=\"21\" SizeC=\"" c "\" SizeZ=\"" z "\" SizeT=\"1\" DimensionOrder=\"" order    \
    "\"><Channel ID=\"C:0\" Name=\"DAPI &amp; more\"/><Channel Name='CD3' />" rest        \
    "</Pixels></Image></OME>"
#define IMAGEJ(lines) "ImageJ=1.54f\nimages=3\n" lines "min=0.0\n"

static void make_pages(struct tiff_maker pages[PAGES], int bits, int compression,
                       const char *description) {
    for (int i = 0; i < PAGES; i++)
        pages[i] = (struct tiff_maker){.h = H,
                                       .w = W,
                                       .bits = bits,
                                       .samples = 1,
                                       .photometric = PHOTOMETRIC_MINISBLACK,
                                       .compression = compression,
                                       .rows = 8,
                                       .seed = (uint32_t)(bits + i)};
    pages[0].description = description;
    assert_true(tiff_maker_write_pages(pages, PAGES, FILE_NAME));
}

static struct rfx_image *opened(struct rfx_memory *mem, const struct rfx_image_options *options,
                                struct rfx_error *err) {
    struct rfx_image *image = NULL;
    enum rfx_status status = rfx_image_open(mem, FILE_NAME, options, &image, err);
    assert_true(status == RFX_OK || status == RFX_STATUS_UNSUPPORTED);
    return image;
}

/* Holds channel k against page of[k], and the bytes against what was said. */
static void check_channels(const struct tiff_maker *pages, const struct rfx_image_options *options,
                           const int *of, int n) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_error err = {{0}};
    struct rfx_image *image = opened(mem, options, &err);
    if (image == NULL) fail_msg("%s", err.text);
    struct rfx_source_traits t = rfx_image_traits(image);
    assert_int_equal(t.c, n);
    assert_int_equal(rfx_image_set_window(image, 3, &err), RFX_OK);
    for (int pass = 0; pass < 2; pass++) {
        for (int y = 0; y < H; y++) {
            float row[W * 8];
            struct rfx_view view = rfx_view_dense(row, rfx_rect_make(y, y + 1, 0, W), n);
            if (rfx_image_read(image, view.rect, &view, &err) != RFX_OK) fail_msg("%s", err.text);
            for (int i = 0; i < W * n; i++)
                assert_float_equal(row[i], tiff_maker_sample(&pages[of[i % n]], y, i / n, 0), 0);
        }
        assert_int_equal(rfx_image_rewind(image, &err), RFX_OK);
    }
    assert_true(rfx_memory_high_water_bytes(mem) <= t.fixed_bytes + 3 * t.window_row_bytes);
    rfx_image_free(image);
    rfx_memory_free(mem);
}

static const int all[] = {0, 1, 2};

static void channels_are_bands(void **state) {
    (void)state;
    static const char *const descriptions[] = {OME("3", "1", "XYCZT", ""),
                                               OME("3", "1", "XYZCT", ""),
                                               IMAGEJ("channels=3\nhyperstack=true\n"),
                                               "{\"shape\": [3, 21, 33], \"axes\": \"CYX\"}",
                                               "{\"shape\": [3, 21, 33]}",
                                               NULL};
    static const int codecs[] = {COMPRESSION_NONE, COMPRESSION_LZW}, kinds[] = {8, 16, 32};
    static const struct rfx_image_bands chosen = {4, {3, 1, 3, 2}};
    static const int pages_chosen[] = {2, 0, 2, 1};
    struct tiff_maker pages[PAGES];
    for (int d = 0; d < 6; d++)
        for (int i = 0; i < 6; i++) {
            struct rfx_image_options options = image_reads_plain;
            make_pages(pages, kinds[i % 3], codecs[i / 3], descriptions[d]);
            check_channels(pages, &options, all, 3);
            options.channels = 3;
            check_channels(pages, &options, all, 3);
            options.channels = 4;
            options.bands = &chosen;
            check_channels(pages, &options, pages_chosen, 4);
        }
}

static void what_nothing_says_is_told(void **state) {
    (void)state;
    struct tiff_maker pages[PAGES];
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_error err = {{0}};
    for (int said = 0; said < 2; said++) {
        make_pages(pages, 16, COMPRESSION_NONE, said ? OME("3", "1", "XYCZT", "") : NULL);
        struct rfx_image *image = opened(mem, &image_reads_plain, &err);
        assert_non_null(image);
        assert_string_equal(rfx_image_note(image),
                            said ? "" : "3 pages of one size are read as bands (--page takes one)");
        rfx_image_free(image);
    }
    rfx_memory_free(mem);
}

/* Slices and times, other numbers of pages than are said, channels in another order. */
static void what_is_no_channel_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *description, *words;
    } cases[] = {
        {OME("1", "3", "XYZCT", ""),
         "3 pages, axes ZYX: C 1, Z 3, T 1 by OME-XML: the pages are not"},
        {IMAGEJ("slices=3\n"), "axes ZYX: C 1, Z 3, T 1 by ImageJ metadata"},
        {IMAGEJ(""), "axes ZYX: C 1, Z 3"},
        {IMAGEJ("frames=3\nhyperstack=true\n"), "axes TYX: C 1, Z 1, T 3"},
        {"{\"shape\": [3, 21, 33], \"axes\": \"TYX\"}", "T 3 by tifffile metadata"},
        {OME("2", "3", "XYCZT", ""),
         "axes ZCYX: C 2, Z 3, T 1 by OME-XML, which is another number"},
        {OME("3", "1", "XYCZT",
             "<TiffData FirstC=\"0\" IFD=\"1\"/><TiffData FirstC=\"1\" IFD=\"0\"/>"),
         "its channels have another order than its pages"},
    };
    static const struct rfx_image_bands chosen = {3, {1, 2, 3}};
    static const int third[] = {2};
    struct tiff_maker pages[PAGES];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_image_options options = image_reads_plain;
        struct rfx_error err = {{0}};
        make_pages(pages, 8, COMPRESSION_NONE, cases[i].description);
        for (options.channels = 0; options.channels < 4; options.channels++) {
            assert_null(opened(mem, &options, &err));
            if (strstr(err.text, cases[i].words) == NULL) fail_msg("%s", err.text);
            assert_non_null(strstr(err.text, "--channels 1,2,3 takes pages as channels"));
        }
        options.channels = 3;
        options.bands = &chosen;
        check_channels(pages, &options, all, 3);
        options.bands = NULL;
        options.channels = 1;
        options.page = 2;
        check_channels(pages, &options, third, 1);
        rfx_memory_free(mem);
    }
}

static void a_page_that_is_asked_for_is_repeated(void **state) {
    (void)state;
    static const int first[] = {0, 0, 0};
    struct tiff_maker pages[PAGES];
    struct rfx_image_options options = image_reads_plain;
    make_pages(pages, 8, COMPRESSION_LZW, NULL);
    options.channels = 3;
    options.only_page = true;
    check_channels(pages, &options, first, 3);
}

/* Of a page of another size: neither a band nor silently left out for three channels. */
static void other_pages_count(void **state) {
    (void)state;
    static const int first[] = {0, 0, 0};
    struct rfx_memory *mem = rfx_memory_create(0);
    struct tiff_maker pages[PAGES];
    struct rfx_image_options options = image_reads_plain;
    struct rfx_error err = {{0}};
    make_pages(pages, 8, COMPRESSION_NONE, NULL);
    pages[1].h = 11;
    pages[2].h = 5;
    assert_true(tiff_maker_write_pages(pages, PAGES, FILE_NAME));
    options.channels = 1;
    check_channels(pages, &options, first, 1);
    options.channels = 3;
    assert_null(opened(mem, &options, &err));
    assert_non_null(strstr(err.text, "there are 2 other pages: --page 0 repeats this one"));
    pages[1].reduced = pages[2].reduced = true; /* overviews */
    assert_true(tiff_maker_write_pages(pages, PAGES, FILE_NAME));
    check_channels(pages, &options, first, 3);
    rfx_memory_free(mem);
}

/* A number of `n` bytes, least or most significant first. */
static void put_number(unsigned char *to, uint32_t value, int n, bool big_endian) {
    for (int i = 0; i < n; i++) to[big_endian ? n - 1 - i : i] = (unsigned char)(value >> (8 * i));
}

static uint32_t sample_of(int plane, int y, int x, int bits) {
    return (uint32_t)(plane * 1009 + y * 41 + x) & (bits == 8 ? 0xffu : 0xffffu);
}

/* As ImageJ writes above 4 GiB: one directory, one strip that counts one plane, and the planes
 * behind one another to the end of the file. */
static void make_planes_in_one(int bits, bool big, const char *description) {
    static unsigned char file[1 << 14];
    const uint32_t length = (uint32_t)strlen(description) + 1, text = 200, data = 400;
    const uint32_t bytes = (uint32_t)bits / 8;
    const uint32_t entries[][3] = {{256, 4, W},
                                   {257, 4, H},
                                   {258, 3, (uint32_t)bits},
                                   {259, 3, 1},
                                   {262, 3, 1},
                                   {270, 2, text},
                                   {273, 4, data},
                                   {277, 3, 1},
                                   {278, 4, H},
                                   {279, 4, H * W * bytes}};
    memset(file, 0, sizeof file);
    memcpy(file, big ? "MM" : "II", 2);
    put_number(file + 2, 42, 2, big);
    put_number(file + 4, 8, 4, big);
    put_number(file + 8, 10, 2, big);
    for (int i = 0; i < 10; i++) {
        unsigned char *entry = file + 10 + 12 * i;
        put_number(entry, entries[i][0], 2, big);
        put_number(entry + 2, entries[i][1], 2, big);
        put_number(entry + 4, entries[i][0] == 270 ? length : 1, 4, big);
        put_number(entry + 8, entries[i][2], entries[i][1] == 3 ? 2 : 4, big);
    }
    memcpy(file + text, description, length);
    for (int p = 0; p < PAGES; p++)
        for (int y = 0; y < H; y++)
            for (int x = 0; x < W; x++)
                put_number(file + data + (uint32_t)((p * H + y) * W + x) * bytes,
                           sample_of(p, y, x, bits), (int)bytes, big);
    test_bytes_store(FILE_NAME, file, data + PAGES * H * W * bytes);
}

static void check_plane(struct rfx_memory *mem, const struct rfx_image_options *options, int first,
                        int n, int bits) {
    struct rfx_error err = {{0}};
    struct rfx_image *image = opened(mem, options, &err);
    if (image == NULL) fail_msg("%s", err.text);
    assert_int_equal(rfx_image_traits(image).c, n);
    for (int y = H - 1; y >= 0; y--) {
        float row[W * PAGES];
        struct rfx_view view = rfx_view_dense(row, rfx_rect_make(y, y + 1, 5, W), n);
        if (rfx_image_read(image, view.rect, &view, &err) != RFX_OK) fail_msg("%s", err.text);
        for (int i = 0; i < (W - 5) * n; i++) {
            float sample = (float)sample_of(first + i % n, y, 5 + i / n, bits);
            assert_float_equal(row[i], bits == 8 ? sample : sample / 257.0f, 0);
        }
    }
    rfx_image_free(image);
}

static void planes_in_one_page(void **state) {
    (void)state;
    for (int k = 0; k < 8; k++) {
        const int bits = k % 2 == 0 ? 16 : 8;
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_error err = {{0}};
        struct rfx_image_options options = image_reads_plain;
        make_planes_in_one(bits, k / 2 % 2 == 1,
                           k < 4 ? IMAGEJ("channels=3\n") : IMAGEJ("slices=3\n"));
        if (k < 4) check_plane(mem, &options, 0, 3, bits);
        if (k >= 4) assert_null(opened(mem, &options, &err));
        options.page = 2;
        check_plane(mem, &options, 2, 1, bits);
        options.page = 3;
        assert_null(opened(mem, &options, &err));
        assert_non_null(strstr(err.text, "--page 3: the stack has planes 0 to 2"));
        rfx_memory_free(mem);
    }
}

static void names_and_axes_are_told(void **state) {
    (void)state;
    static struct rfx_tiff_stack stack;
    struct tiff_maker pages[PAGES];
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_error err = {{0}};
    make_pages(pages, 8, COMPRESSION_NONE, OME("3", "1", "XYCZT", ""));
    assert_int_equal(rfx_tiff_stack_read(mem, FILE_NAME, &stack, &err), RFX_OK);
    assert_string_equal(stack.axes, "CYX");
    assert_int_equal(stack.n_names, 2);
    assert_string_equal(stack.names[0], "DAPI & more");
    assert_string_equal(stack.names[1], "CD3");
    rfx_memory_free(mem);
}

static void out_of_memory_is_said(void **state) {
    (void)state;
    struct tiff_maker pages[PAGES];
    make_pages(pages, 16, COMPRESSION_LZW, IMAGEJ("channels=3\n"));
    assert_true(image_reads_failing(FILE_NAME) > 3);
    (void)unlink(FILE_NAME);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(channels_are_bands),
        cmocka_unit_test(what_nothing_says_is_told),
        cmocka_unit_test(what_is_no_channel_is_refused),
        cmocka_unit_test(a_page_that_is_asked_for_is_repeated),
        cmocka_unit_test(other_pages_count),
        cmocka_unit_test(planes_in_one_page),
        cmocka_unit_test(names_and_axes_are_told),
        cmocka_unit_test(out_of_memory_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
