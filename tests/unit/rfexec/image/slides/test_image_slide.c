/* Slides: pyramids made by libtiff, which OpenSlide reads too, against the TIFF reader's values of
 * the same pages; rectangles of levels that OpenSlide interpolates, memory, files that are broken.
 * Where there is no OpenSlide, that it says so. */
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

#include "layers/core/library.h"
#include "rfexec/image/image_kind.h"
#include "rfexec/image/image_pages.h"
#include "tests/support/makers/tiff_maker.h"
#include "tests/support/run/image_reads.h"
#include "tests/support/test_util.h"

#define SLIDE "test_image_slide.tmp.svs"
#define TIFF "test_image_slide.tmp.tif"
#define LEVELS 3

/* The file under both names. */
static void make(const int sizes[LEVELS][2], int compression) {
    struct tiff_maker pages[LEVELS];
    for (int i = 0; i < LEVELS; i++) {
        pages[i] = tiff_maker_of(3, compression);
        pages[i].samples = 3;
        pages[i].h = sizes[i][0];
        pages[i].w = sizes[i][1];
        pages[i].rows = 48;
        pages[i].cols = 64;
        pages[i].reduced = i > 0;
        pages[i].seed = (uint32_t)i;
    }
    (void)unlink(SLIDE);
    assert_true(tiff_maker_write_pages(pages, LEVELS, TIFF));
    assert_int_equal(link(TIFF, SLIDE), 0);
}

static void make_exact(void) {
    static const int sizes[LEVELS][2] = {{300, 420}, {150, 210}, {75, 105}};
    make(sizes, COMPRESSION_ADOBE_DEFLATE);
}

/* As large as test_bytes are. */
static void make_small(void) {
    static const int sizes[LEVELS][2] = {{96, 120}, {48, 60}, {24, 30}};
    make(sizes, COMPRESSION_ADOBE_DEFLATE);
}

static void take_away(void) {
    (void)unlink(SLIDE);
    (void)unlink(TIFF);
}

static bool has_library(void) {
    return rfx_library_load("libopenslide.so.1", NULL, 0, NULL, NULL) == RFX_OK ||
           rfx_library_load("libopenslide.so.0", NULL, 0, NULL, NULL) == RFX_OK;
}

static struct rfx_image *open_level(struct rfx_memory *mem, const char *name, int64_t level) {
    struct rfx_image_options options = image_reads_plain;
    struct rfx_image *image = NULL;
    struct rfx_error err;
    options.page = level;
    if (rfx_image_open(mem, name, &options, &image, &err) != RFX_OK) fail_msg("%s", err.text);
    return image;
}

static void read_rect(struct rfx_image *image, struct rfx_rect rect, float *to) {
    struct rfx_view view = rfx_view_dense(to, rect, 3);
    struct rfx_error err;
    if (rfx_image_read(image, rect, &view, &err) != RFX_OK) fail_msg("%s", err.text);
}

/* Some rectangles against the whole. */
static void check_rects(struct rfx_image *image, const float *whole, int64_t h, int64_t w) {
    uint32_t seed = 11;
    float *part = malloc((size_t)(h * w * 3) * sizeof *part);
    for (int i = 0; i < 40; i++) {
        int64_t at[4];
        for (int k = 0; k < 4; k++) {
            seed = seed * 1664525u + 1013904223u;
            at[k] = (int64_t)(seed >> 8) % (k % 2 == 0 ? h : w);
        }
        struct rfx_rect rect =
            rfx_rect_make(at[0] < at[2] ? at[0] : at[2], (at[0] < at[2] ? at[2] : at[0]) + 1,
                          at[1] < at[3] ? at[1] : at[3], (at[1] < at[3] ? at[3] : at[1]) + 1);
        read_rect(image, rect, part);
        const float *got = part;
        size_t row = (size_t)rfx_rect_cols(rect) * 3;
        for (int64_t y = rect.y0; y < rect.y1; y++, got += row)
            assert_memory_equal(got, whole + (y * w + rect.x0) * 3, row * sizeof *got);
    }
    free(part);
}

static void levels_are_the_pages(void **state) {
    (void)state;
    make_exact();
    if (!has_library()) skip();
    for (int level = 0; level < LEVELS; level++) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_image *slide = open_level(mem, SLIDE, level);
        struct rfx_image *tiff = open_level(mem, TIFF, level);
        struct rfx_source_traits t = rfx_image_traits(slide);
        assert_int_equal(t.h, 300 >> level);
        assert_int_equal(t.w, 420 >> level);
        assert_int_equal(t.c, 3);
        assert_true(t.random_access);
        assert_string_equal(rfx_image_facts(slide).kind, "slide");
        size_t count = (size_t)(t.h * t.w * 3);
        float *want = malloc(count * sizeof *want), *got = malloc(count * sizeof *got);
        read_rect(tiff, rfx_rect_full(t.h, t.w), want);
        read_rect(slide, rfx_rect_full(t.h, t.w), got);
        assert_memory_equal(got, want, count * sizeof *want);
        check_rects(slide, want, t.h, t.w);
        free(want);
        free(got);
        rfx_image_free(slide);
        rfx_image_free(tiff);
        rfx_memory_free(mem);
    }
    take_away();
}

/* Levels whose pixels are no whole number of level 0's: a value is the same for every rectangle. */
static void values_do_not_hang_on_rectangles(void **state) {
    static const int sizes[LEVELS][2] = {{301, 419}, {150, 209}, {75, 104}};
    (void)state;
    make(sizes, COMPRESSION_NONE);
    if (!has_library()) skip();
    for (int level = 1; level < LEVELS; level++) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_image *slide = open_level(mem, SLIDE, level);
        struct rfx_source_traits t = rfx_image_traits(slide);
        float *whole = malloc((size_t)(t.h * t.w * 3) * sizeof *whole);
        read_rect(slide, rfx_rect_full(t.h, t.w), whole);
        check_rects(slide, whole, t.h, t.w);
        free(whole);
        rfx_image_free(slide);
        rfx_memory_free(mem);
    }
    take_away();
}

static void counts_what_it_holds(void **state) {
    (void)state;
    make_exact();
    if (!has_library()) skip();
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_image *slide = open_level(mem, SLIDE, 0);
    size_t fixed = rfx_image_traits(slide).fixed_bytes;
    assert_int_equal(rfx_image_set_window(slide, 1, NULL), RFX_OK);
    uint64_t allocations = rfx_memory_allocation_count(mem);
    float *all = malloc(300 * 420 * 3 * sizeof *all);
    read_rect(slide, rfx_rect_full(300, 420), all);
    free(all);
    assert_int_equal(rfx_memory_allocation_count(mem), allocations);
    /* with a row of cells and one cell, and OpenSlide's own cache of 32 MiB */
    assert_in_range(rfx_memory_high_water_bytes(mem), 48 * 420 * 3 + 48 * 64 * 4,
                    fixed - ((size_t)32 << 20));
    rfx_image_free(slide);
    rfx_memory_free(mem);
    assert_in_range(image_reads_failing(SLIDE), 6, 10);
    take_away();
}

static void refuses_in_words(void **state) {
    static struct test_bytes b;
    struct rfx_error err = {""};
    struct rfx_image_options options = image_reads_plain;
    struct rfx_image *image = NULL;
    (void)state;
    make_exact();
    struct rfx_memory *mem = rfx_memory_create(0);
    if (!has_library()) {
        assert_int_equal(rfx_image_open(mem, SLIDE, &options, &image, &err), RFX_STATUS_IO);
        assert_non_null(strstr(err.text, SLIDE ": slides are read by OpenSlide (Debian's package"));
        rfx_memory_free(mem);
        skip();
    }
    options.page = 3;
    assert_int_equal(rfx_image_open(mem, SLIDE, &options, &image, &err), RFX_STATUS_UNSUPPORTED);
    assert_string_equal(err.text, SLIDE
                        ": level 3 of 3 ('rfexec info' lists them): 0: 300x420; 1: "
                        "150x210; 2: 75x105");
    options.page = 0;
    struct rfx_image_bands bands = {.n = 1, .numbers = {1}};
    options.bands = &bands;
    assert_int_equal(rfx_image_open(mem, SLIDE, &options, &image, &err), RFX_STATUS_UNSUPPORTED);
    rfx_memory_free(mem);
    assert_int_equal(image_reads_all("nowhere.svs", 1, -1, 0, &err), RFX_STATUS_IO);
    assert_string_equal(err.text, "nowhere.svs: cannot open: No such file or directory");
    make_small();
    test_bytes_load(&b, SLIDE);
    assert_true(b.count < sizeof b.data);
    int opened = 0;
    for (size_t cut = 0; cut < b.count; cut += b.count / 16) {
        test_bytes_store(SLIDE, b.data, cut);
        enum rfx_status status = image_reads_all(SLIDE, INT32_MAX, -1, 0, &err);
        opened += status == RFX_OK;
        if (status != RFX_OK && status != RFX_STATUS_MALFORMED) fail_msg("%zu: %s", cut, err.text);
        if (status != RFX_OK) assert_non_null(strstr(err.text, SLIDE));
    }
    assert_true(opened <= 1); /* after level 0: the others are not there then */
    take_away();
}

/* Tiles whose bytes are not what they should be are not grey or black, but an error. */
static void refuses_broken_tiles(void **state) {
    static struct test_bytes b;
    struct rfx_error err = {""};
    (void)state;
    make_small();
    if (!has_library()) skip();
    test_bytes_load(&b, SLIDE);
    memset(b.data + 6000, 0x5a, 400); /* in the first tile */
    test_bytes_store(SLIDE, b.data, b.count);
    assert_int_equal(image_reads_all(SLIDE, INT32_MAX, -1, 0, &err), RFX_STATUS_MALFORMED);
    assert_non_null(strstr(err.text, SLIDE ": row 0 of 96: "));
    take_away();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_are_the_pages), cmocka_unit_test(values_do_not_hang_on_rectangles),
        cmocka_unit_test(counts_what_it_holds), cmocka_unit_test(refuses_in_words),
        cmocka_unit_test(refuses_broken_tiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
