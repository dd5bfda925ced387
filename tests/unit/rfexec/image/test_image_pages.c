/* Files of several pages: all of them are told, and each is read by its number, as if it were alone
 * in its file. */
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

#include "rfexec/image/image_pages.h"
#include "tests/support/makers/tiff_maker.h"
#include "tests/support/run/image_reads.h"
#include "tests/support/test_util.h"

#define FILE_NAME "test_image_pages.tmp.tif"
enum { PAGES = 6 };

/* In the file's order: page 0 with two SubIFDs, 1 with one, 2; and the number of each. */
static void make_file(struct tiff_maker pages[PAGES], bool big) {
    for (int i = 0; i < PAGES; i++) {
        pages[i] = tiff_maker_of(2 + i, i % 2 == 0 ? COMPRESSION_LZW : COMPRESSION_NONE);
        pages[i].h = 40 - 5 * i;
        pages[i].w = 60 - 7 * i;
        pages[i].rows = 16;
        pages[i].cols = i % 3 == 0 ? 32 : 0;
        pages[i].separate = i == 2;
        pages[i].big_tiff = big;
        pages[i].big_endian = big;
        pages[i].seed = (uint32_t)i;
    }
    pages[0].subs = 2;
    pages[1].reduced = true;
    pages[3].subs = 1;
    assert_true(tiff_maker_write_pages(pages, PAGES, FILE_NAME));
}
static const int number_of[PAGES] = {0, 3, 4, 1, 5, 2};
static const int parent_of[PAGES] = {-1, 0, 0, -1, 1, -1};

static void check_page(const struct tiff_maker *m, int number) {
    struct rfx_image_options options = image_reads_plain;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_image *image = NULL;
    struct rfx_error err = {{0}};
    options.page = number;
    if (rfx_image_open(mem, FILE_NAME, &options, &image, &err) != RFX_OK) fail_msg("%s", err.text);
    struct rfx_source_traits t = rfx_image_traits(image);
    assert_int_equal(t.h, m->h);
    assert_int_equal(t.w, m->w);
    assert_int_equal(rfx_image_set_window(image, 2, &err), RFX_OK);
    for (int pass = 0; pass < 2; pass++) {
        for (int y = 0; y < m->h; y++) {
            float row[64 * 4];
            struct rfx_view view = rfx_view_dense(row, rfx_rect_make(y, y + 1, 0, t.w), t.c);
            if (rfx_image_read(image, view.rect, &view, &err) != RFX_OK) fail_msg("%s", err.text);
            for (int i = 0; i < m->w * t.c; i++)
                assert_float_equal(row[i], tiff_maker_sample(m, y, i / (int)t.c, i % (int)t.c), 0);
        }
        assert_int_equal(rfx_image_rewind(image, &err), RFX_OK);
    }
    assert_true(rfx_memory_high_water_bytes(mem) <= t.fixed_bytes + 2 * t.window_row_bytes);
    rfx_image_free(image);
    rfx_memory_free(mem);
}

static void each_page_is_read(void **state) {
    (void)state;
    struct tiff_maker pages[PAGES];
    for (int big = 0; big < 2; big++) {
        make_file(pages, big == 1);
        for (int i = 0; i < PAGES; i++) check_page(&pages[i], number_of[i]);
    }
}

struct told {
    int n;
    struct rfx_image_page pages[10];
};

static void note(void *user, const struct rfx_image_page *page) {
    struct told *told = user;
    assert_in_range(told->n, 0, 9);
    told->pages[told->n++] = *page;
}

static void each_page_is_told(void **state) {
    (void)state;
    struct tiff_maker pages[PAGES];
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_error err = {{0}};
    static struct told told;
    make_file(pages, false);
    told.n = 0;
    assert_int_equal(rfx_image_pages(mem, FILE_NAME, note, &told, &err), RFX_OK);
    assert_int_equal(told.n, PAGES);
    for (int i = 0; i < PAGES; i++) {
        const struct rfx_image_page *page = &told.pages[number_of[i]];
        assert_int_equal(page->number, number_of[i]);
        assert_int_equal(page->parent, parent_of[i]);
        assert_int_equal(page->h, pages[i].h);
        assert_int_equal(page->w, pages[i].w);
        assert_int_equal(page->bands, pages[i].samples);
        assert_int_equal(page->n_alpha, pages[i].samples % 2 == 0);
        assert_int_equal(page->bits, pages[i].bits);
        assert_int_equal(page->tile_w, pages[i].cols);
        assert_int_equal(page->tile_h, i == 5 ? 15 : 16); /* no more than the page */
        assert_int_equal(page->reduced, i == 1);
        assert_string_equal(page->type, pages[i].bits == 32 ? "float" : "unsigned");
        assert_string_equal(page->compression, i % 2 == 0 ? "LZW" : "None");
        assert_string_equal(page->refusal.text, "");
    }
    rfx_memory_free(mem);
}

static void says_which_pages_there_are(void **state) {
    (void)state;
    struct tiff_maker pages[PAGES];
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_image_options options = image_reads_plain;
    struct rfx_image *image = NULL;
    struct rfx_error err = {{0}};
    make_file(pages, false);
    options.page = 6;
    assert_int_equal(rfx_image_open(mem, FILE_NAME, &options, &image, &err),
                     RFX_STATUS_UNSUPPORTED);
    const char *words = FILE_NAME
        ": --page 6 of 6 ('rfexec info' lists them): 0: 40x60; 1: 25x39; 2: 15x25; "
        "3: 35x53, reduced, SubIFD of 0; 4: 30x46, SubIFD of 0; 5: 20x32, SubIFD of 1";
    assert_string_equal(err.text, words);
    assert_int_equal(rfx_image_open(mem, "synthetic:3x4", &options, &image, &err),
                     RFX_STATUS_UNSUPPORTED);
    assert_non_null(strstr(err.text, "only TIFF files, slides and Zarr folders have more"));
    rfx_memory_free(mem);
}

/* Chains that break off, end in themselves or lead anywhere: what is there is told, and no page is
 * read from a place that is none. */
static void survives_broken_chains(void **state) {
    (void)state;
    static struct test_bytes b, copy;
    struct tiff_maker pages[PAGES];
    struct rfx_memory *mem = rfx_memory_create((size_t)8 << 20);
    static struct told told;
    make_file(pages, false);
    test_bytes_load(&b, FILE_NAME);
    struct test_rng rng = test_rng_make(5);
    for (int k = 0; k < 400; k++) {
        struct rfx_error err = {{0}};
        struct rfx_image_options options = image_reads_plain;
        struct rfx_image *image = NULL;
        copy = b;
        for (int n = 0; n < 3; n++) {
            size_t at = (size_t)test_rng_int(&rng, 4, (int64_t)b.count - 1);
            copy.data[at] = (unsigned char)test_rng_int(&rng, 0, 255);
        }
        if (k % 4 == 0) copy.count = (size_t)test_rng_int(&rng, 8, (int64_t)b.count);
        test_bytes_store(FILE_NAME, copy.data, copy.count);
        told.n = 0;
        enum rfx_status status = rfx_image_pages(mem, FILE_NAME, note, &told, &err);
        if (status != RFX_OK) assert_non_null(strstr(err.text, FILE_NAME));
        options.page = test_rng_int(&rng, 0, 7);
        status = rfx_image_open(mem, FILE_NAME, &options, &image, &err);
        if (status != RFX_OK) assert_non_null(strstr(err.text, FILE_NAME));
        rfx_image_free(image);
    }
    rfx_memory_free(mem);
}

/* A directory whose next one is itself. */
static void a_chain_may_be_a_circle(void **state) {
    (void)state;
    static struct test_bytes b;
    struct tiff_maker m = tiff_maker_of(0, COMPRESSION_NONE);
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_error err = {{0}};
    static struct told told;
    m.rows = 16;
    assert_true(tiff_maker_write(&m, FILE_NAME));
    test_bytes_load(&b, FILE_NAME);
    size_t directory = (size_t)b.data[4] | (size_t)b.data[5] << 8;
    size_t next = directory + 2 + 12 * (size_t)b.data[directory];
    memcpy(b.data + next, b.data + 4, 4);
    test_bytes_store(FILE_NAME, b.data, b.count);
    told.n = 0;
    enum rfx_status status = rfx_image_pages(mem, FILE_NAME, note, &told, &err);
    assert_true(status == RFX_OK || status == RFX_STATUS_MALFORMED);
    assert_int_equal(told.n, 1);
    rfx_memory_free(mem);
}

static void other_files_are_one_page(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_error err = {{0}};
    static struct told told;
    told.n = 0;
    assert_int_equal(rfx_image_pages(mem, "synthetic:30x40", note, &told, &err), RFX_OK);
    assert_int_equal(told.n, 1);
    assert_string_equal(told.pages[0].kind, "synthetic");
    assert_int_equal(told.pages[0].h, 30);
    assert_int_equal(told.pages[0].bands, 3);
    test_bytes_store(FILE_NAME, (const unsigned char *)"P5 3 2 255\n123456", 17);
    assert_int_equal(rfx_image_pages(mem, FILE_NAME, note, &told, &err), RFX_OK);
    assert_int_equal(told.pages[1].w, 3);
    assert_int_equal(told.pages[1].bands, 1);
    assert_int_equal(told.pages[1].bits, 8);
    assert_int_equal(rfx_image_pages(mem, "nowhere.tif", note, &told, &err), RFX_STATUS_IO);
    rfx_memory_free(mem);
    (void)unlink(FILE_NAME);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_page_is_read),          cmocka_unit_test(each_page_is_told),
        cmocka_unit_test(says_which_pages_there_are), cmocka_unit_test(survives_broken_chains),
        cmocka_unit_test(a_chain_may_be_a_circle),    cmocka_unit_test(other_files_are_one_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
