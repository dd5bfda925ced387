/* Zarr folders of every kind against samples computed one by one: types, orders, packings, axes,
 * chunks of any size, missing ones; rectangles against the whole; memory; what our own writer made;
 * levels of OME-Zarr. Packings whose library is not here are left out. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rfexec/image/image_pages.h"
#include "rfexec/output/zarr/zarr_write.h"
#include "tests/support/makers/zarr_maker.h"
#include "tests/support/run/image_reads.h"
#include "tests/support/test_util.h"

#define NAME "test_image_zarr.tmp.zarr"

static struct rfx_image *open_as(struct rfx_memory *mem, const char *name,
                                 const struct rfx_image_options *options) {
    struct rfx_image *image = NULL;
    struct rfx_error err;
    if (rfx_image_open(mem, name, options, &image, &err) != RFX_OK) fail_msg("%s", err.text);
    return image;
}

static void read_rect(struct rfx_image *image, struct rfx_rect rect, float *to) {
    struct rfx_view view = rfx_view_dense(to, rect, rfx_image_traits(image).c);
    struct rfx_error err;
    if (rfx_image_read(image, rect, &view, &err) != RFX_OK) fail_msg("%s", err.text);
}

static void check_value(const struct zarr_maker *m, float got, int64_t c, int64_t y, int64_t x) {
    float want = zarr_maker_read(m, c, y, x);
    if (memcmp(&got, &want, sizeof got) != 0)
        fail_msg("%s of format %d, %s: band %d, row %d, column %d: %.9g, not %.9g", m->type,
                 m->format, m->codec != NULL ? m->codec : "whole", (int)c, (int)y, (int)x,
                 (double)got, (double)want);
}

/* All of it, then rectangles in any order. */
static void check_reads(const struct zarr_maker *m, struct rfx_image *image, const int *bands) {
    struct rfx_source_traits t = rfx_image_traits(image);
    struct test_rng rng = test_rng_make(5);
    float *values = malloc((size_t)(t.h * t.w * t.c) * sizeof *values);
    for (int i = 0; i < 12; i++) {
        int64_t y = i == 0 ? 0 : test_rng_int(&rng, 0, t.h - 1);
        int64_t x = i == 0 ? 0 : test_rng_int(&rng, 0, t.w - 1);
        struct rfx_rect rect = rfx_rect_make(y, i == 0 ? t.h : test_rng_int(&rng, y + 1, t.h), x,
                                             i == 0 ? t.w : test_rng_int(&rng, x + 1, t.w));
        const float *at = values;
        read_rect(image, rect, values);
        for (y = rect.y0; y < rect.y1; y++)
            for (x = rect.x0; x < rect.x1; x++)
                for (int64_t c = 0; c < t.c; c++)
                    check_value(m, *at++, bands != NULL ? bands[c] : c, y, x);
    }
    free(values);
}

static void check(const struct zarr_maker *m) {
    struct rfx_memory *mem = rfx_memory_create(0);
    if (!zarr_maker_can(m->codec)) {
        print_message("%s is left out: no library\n", m->codec);
        rfx_memory_free(mem);
        return;
    }
    assert_true(zarr_maker_write(m, NAME));
    struct rfx_image *image = open_as(mem, NAME, &image_reads_plain);
    struct rfx_source_traits t = rfx_image_traits(image);
    assert_int_equal(t.h, m->shape[m->y]);
    assert_int_equal(t.w, m->shape[m->x]);
    assert_int_equal(t.c, m->c < 0 ? 1 : m->shape[m->c]);
    assert_true(t.random_access);
    assert_string_equal(rfx_image_facts(image).kind, "Zarr");
    check_reads(m, image, NULL);
    assert_true(rfx_memory_high_water_bytes(mem) <= t.fixed_bytes);
    rfx_image_free(image);
    rfx_memory_free(mem);
    zarr_maker_remove(NAME);
}

static void types_and_packings(void **state) {
    static const char *const types[] = {"uint8", "int8",   "uint16",  "int16",
                                        "int32", "uint32", "float32", "float64"};
    static const char *const codecs[] = {NULL, "zstd", "gzip", "zlib", "blosc"};
    (void)state;
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
        for (size_t c = 0; c < sizeof codecs / sizeof codecs[0]; c++)
            for (int way = 0; way < 2; way++) {
                struct zarr_maker m = zarr_maker_usual();
                m.format = ((size_t)way + t + c) % 2 == 0 ? 2 : 3;
                m.shape[0] = 2, m.shape[1] = 24, m.shape[2] = 33;
                m.type = types[t];
                m.big = way == 1;
                m.codec = codecs[c];
                m.missing = 5;
                m.seed = (uint32_t)(t * 16 + c);
                check(&m);
            }
}

static void chunks_and_keys(void **state) {
    static const int64_t chunks[][3] = {{1, 12, 14}, {3, 12, 14}, {2, 7, 5},
                                        {3, 64, 64}, {1, 1, 14},  {2, 12, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof chunks / sizeof chunks[0]; i++)
        for (int way = 0; way < 6; way++) {
            struct zarr_maker m = zarr_maker_usual();
            memcpy(m.chunk, chunks[i], sizeof chunks[i]);
            m.shape[1] = 12, m.shape[2] = 14;
            m.type = way % 2 == 0 ? "uint16" : "float32";
            m.format = way < 3 ? 2 : 3;
            m.column_major = way == 1;
            m.separator = way % 3 == 0 ? '.' : '/';
            m.old_keys = way == 4;
            m.missing = 3;
            check(&m);
        }
}

static void axes_by_names_and_places(void **state) {
    static const struct {
        int rank;
        int64_t shape[5], chunk[5];
        int y, x, c;
        const char *names;
    } cases[] = {
        {2, {40, 52}, {16, 20}, 0, 1, -1, NULL},
        {2, {52, 40}, {16, 20}, 1, 0, -1, "[\"X\", \"Y\"]"},
        {3, {3, 40, 52}, {1, 16, 20}, 1, 2, 0, NULL},
        {3, {12, 40, 52}, {5, 16, 20}, 1, 2, 0, NULL},
        {3, {40, 52, 3}, {16, 20, 3}, 0, 1, 2, NULL},
        {3, {40, 52, 3}, {16, 20, 2}, 0, 1, 2, "[\"y\", \"x\", \"c\"]"},
        {3, {3, 4, 2}, {3, 4, 2}, 1, 2, 0, "[\"band\", \"row\", \"col\"]"},
        {4, {1, 5, 40, 52}, {1, 2, 16, 20}, 2, 3, 1, NULL},
        {4, {1, 5, 40, 52}, {1, 2, 16, 20}, 2, 3, 1, "[\"n\", \"c\", \"y\", \"x\"]"},
        {5, {1, 2, 1, 40, 52}, {2, 1, 3, 16, 20}, 3, 4, 1, NULL},
        {5, {1, 40, 1, 2, 52}, {1, 16, 1, 2, 20}, 1, 4, 3, "[\"t\",\"y\",\"z\",\"c\",\"x\"]"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int format = 2; format <= 3; format++) {
            struct zarr_maker m = zarr_maker_usual();
            m.format = format;
            m.rank = cases[i].rank;
            memcpy(m.shape, cases[i].shape, sizeof m.shape);
            memcpy(m.chunk, cases[i].chunk, sizeof m.chunk);
            m.y = cases[i].y;
            m.x = cases[i].x;
            m.c = cases[i].c;
            m.names = cases[i].names;
            check(&m);
        }
}

static void fill_values(void **state) {
    static const struct {
        const char *type, *fill;
        double value;
    } cases[] = {
        {"uint8", "255", 255},
        {"int8", "-128", -128},
        {"uint32", "4294967295", 4294967295.0},
        {"float32", "\"NaN\"", (double)NAN},
        {"float32", "\"-Infinity\"", -HUGE_VAL},
        {"float64", "0.1", 0.1},
        {"float32", "\"0x3fc00000\"", 1.5},
        {"float64", "\"0x3ff8000000000000\"", 1.5},
        {"uint16", "null", 0},
        {"int16", "3.0", 3},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct zarr_maker m = zarr_maker_usual();
        m.type = cases[i].type;
        m.fill = cases[i].fill;
        m.fill_value = cases[i].value;
        m.missing = 2;
        check(&m);
    }
}

static void bands_are_chosen(void **state) {
    static const int bands[] = {4, 0, 0, 3};
    struct rfx_image_bands chosen = {.n = 4, .numbers = {5, 1, 1, 4}};
    struct rfx_image_options options = image_reads_plain;
    struct zarr_maker m = zarr_maker_usual();
    struct rfx_image *image = NULL;
    struct rfx_error err;
    (void)state;
    options.bands = &chosen;
    m.shape[0] = 6;
    m.chunk[0] = 2;
    assert_true(zarr_maker_write(&m, NAME));
    struct rfx_memory *mem = rfx_memory_create(0);
    image = open_as(mem, NAME, &options);
    assert_int_equal(rfx_image_traits(image).c, 4);
    check_reads(&m, image, bands);
    assert_true(rfx_memory_high_water_bytes(mem) <= rfx_image_traits(image).fixed_bytes);
    rfx_image_free(image);
    /* chunks of bands that nobody wants may be broken */
    assert_true(zarr_maker_put(NAME, "c/1/0/0", "", 0));
    chosen = (struct rfx_image_bands){.n = 1, .numbers = {1}};
    image = open_as(mem, NAME, &options);
    check_reads(&m, image, NULL);
    rfx_image_free(image);
    chosen.numbers[0] = 7;
    assert_int_equal(rfx_image_open(mem, NAME, &options, &image, &err), RFX_STATUS_UNSUPPORTED);
    assert_string_equal(err.text, NAME ": --channels: band 7 of 6");
    options.bands = NULL;
    options.channels = 3;
    assert_int_equal(rfx_image_open(mem, NAME, &options, &image, &err), RFX_STATUS_UNSUPPORTED);
    assert_non_null(strstr(err.text, "6 of 6 bands are read, the network takes 3"));
    rfx_memory_free(mem);
    zarr_maker_remove(NAME);
}

/* A row of chunks, a chunk as it lies and unpacked, and no more whatever is read. */
static void counts_what_it_holds(void **state) {
    struct zarr_maker m = zarr_maker_usual();
    (void)state;
    m.codec = "gzip";
    m.shape[1] = m.shape[2] = 400;
    m.chunk[1] = m.chunk[2] = 100;
    assert_true(zarr_maker_write(&m, NAME));
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_image *image = open_as(mem, NAME, &image_reads_plain);
    struct rfx_source_traits t = rfx_image_traits(image);
    assert_int_equal(rfx_image_set_window(image, 1, NULL), RFX_OK);
    uint64_t allocations = rfx_memory_allocation_count(mem);
    check_reads(&m, image, NULL);
    assert_int_equal(rfx_memory_allocation_count(mem), allocations);
    size_t least = 100 * 400 * 3 + 2 * 100 * 100;
    assert_in_range(rfx_memory_high_water_bytes(mem), least, t.fixed_bytes);
    assert_in_range(t.fixed_bytes, least, least + ((size_t)128 << 10));
    rfx_image_free(image);
    rfx_memory_free(mem);
    assert_in_range(image_reads_failing(NAME), 6, 16);
    zarr_maker_remove(NAME);
}

/* Colours side by side are red, green and blue, which become luma; bands in planes do not. */
static void colours(void **state) {
    struct zarr_maker m = zarr_maker_usual();
    struct rfx_image_options options = image_reads_plain;
    struct rfx_image *image = NULL;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_error err;
    float luma;
    (void)state;
    options.channels = 1;
    assert_true(zarr_maker_write(&m, NAME));
    assert_int_equal(rfx_image_open(mem, NAME, &options, &image, &err), RFX_STATUS_UNSUPPORTED);
    zarr_maker_remove(NAME);
    m.shape[0] = 40, m.shape[1] = 52, m.shape[2] = 3;
    m.chunk[0] = 16, m.chunk[1] = 20, m.chunk[2] = 3;
    m.y = 0, m.x = 1, m.c = 2, m.names = NULL;
    assert_true(zarr_maker_write(&m, NAME));
    image = open_as(mem, NAME, &options);
    read_rect(image, rfx_rect_make(5, 6, 7, 8), &luma);
    unsigned rgb[3];
    for (int c = 0; c < 3; c++) rgb[c] = (unsigned)zarr_maker_value(&m, c, 5, 7);
    assert_true(luma == (float)((299 * rgb[0] + 587 * rgb[1] + 114 * rgb[2] + 500) / 1000));
    rfx_image_free(image);
    rfx_memory_free(mem);
    zarr_maker_remove(NAME);
}

static void check_written(const struct rfx_zarr_array *a, int level, int64_t h, int64_t w) {
    struct rfx_image_options options = image_reads_plain;
    struct rfx_memory *mem = rfx_memory_create(0);
    options.page = level;
    struct rfx_image *image = open_as(mem, NAME, &options);
    struct rfx_source_traits t = rfx_image_traits(image);
    assert_int_equal(t.h, h);
    assert_int_equal(t.w, w);
    assert_int_equal(t.c, a->channels);
    float *got = malloc((size_t)(h * w * t.c) * sizeof *got);
    read_rect(image, rfx_rect_full(h, w), got);
    for (int64_t i = 0; i < h * w * t.c; i++) {
        int64_t c = i % t.c, x = i / t.c % w << level, y = i / t.c / w << level;
        int64_t v = (y * 1009 + x * 13 + c * 7) % (a->bits == 8 ? 256 : 65521);
        float want = a->bits == 16 ? (float)v / 257.0f : a->bits == 32 ? (float)v / 3.0f : (float)v;
        if (got[i] != want) fail_msg("level %d, element %d", level, (int)i);
    }
    free(got);
    rfx_image_free(image);
    rfx_memory_free(mem);
}

static void what_the_writer_made(void **state) {
    (void)state;
    for (int way = 0; way < 24; way++) {
        struct rfx_zarr_array a = {.h = 61,
                                   .w = 83,
                                   .channels = 1 + way % 5,
                                   .bits = 8 << way % 3,
                                   .format = 2 + way % 2,
                                   .chunk_rows = 32,
                                   .chunk_cols = 20,
                                   .zstd = way / 6 % 2 == 1,
                                   .ome = way / 12 == 1};
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_zarr_writer *writer = NULL;
        struct rfx_error err;
        a.batch = !a.ome;
        a.overviews = a.ome ? RFX_OVERVIEW_NEAREST : RFX_OVERVIEW_NONE;
        if (rfx_zarr_write_open(mem, NAME, &a, &writer, &err) != RFX_OK) fail_msg("%s", err.text);
        for (int64_t y = 0; y < a.h; y++) {
            _Alignas(8) unsigned char row[83 * 5 * 4];
            for (int64_t i = 0; i < a.w * a.channels; i++) {
                int64_t v = (y * 1009 + i / a.channels * 13 + i % a.channels * 7) %
                            (a.bits == 8 ? 256 : 65521);
                float f = (float)v / 3.0f;
                memcpy(row + i * a.bits / 8, a.bits == 32 ? (void *)&f : (void *)&v,
                       (size_t)a.bits / 8);
            }
            assert_int_equal(rfx_zarr_write_row(writer, row, &err), RFX_OK);
        }
        assert_int_equal(rfx_zarr_write_commit(writer, &err), RFX_OK);
        rfx_zarr_write_free(writer);
        rfx_memory_free(mem);
        check_written(&a, 0, 61, 83);
        if (a.ome) check_written(&a, 1, 31, 42);
        zarr_maker_remove(NAME);
    }
}

static void note_page(void *user, const struct rfx_image_page *page) {
    struct rfx_image_page *pages = user;
    pages[page->number] = *page;
}

/* Groups as OME-Zarr has had them, with a level that is no picture. */
static void levels_of_groups(void **state) {
    static const char *const groups[] = {
        "{\"multiscales\": [{\"version\": \"0.4\", \"axes\": [{\"name\": \"y\"}, {\"name\": "
        "\"x\"}, "
        "{\"name\": \"c\"}], \"datasets\": [{\"path\": \"s0\"}, {\"path\": \"deep/s1\"}, "
        "{\"path\": \"s2\"}]}]}",
        "{\"multiscales\": [{\"axes\": [\"y\", \"x\", \"c\"], \"datasets\": [{\"path\": \"s0\"}, "
        "{\"path\": \"deep/s1\"}, {\"path\": \"s2\"}]}]}"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct zarr_maker m = zarr_maker_usual(), small;
        struct rfx_image_page pages[3] = {{0}};
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_image_options options = image_reads_plain;
        struct rfx_image *image = NULL;
        struct rfx_error err = {""};
        m.format = 2;
        m.y = 0, m.x = 1, m.c = 2;
        m.names = NULL;
        small = m;
        small.shape[0] = 2;
        small.type = "int16";
        assert_true(zarr_maker_write(&m, NAME "/s0") && zarr_maker_write(&small, NAME "/deep/s1"));
        assert_true(zarr_maker_put(NAME, ".zgroup", "{\"zarr_format\": 2}", 18));
        assert_true(zarr_maker_put(NAME, ".zattrs", groups[i], strlen(groups[i])));
        assert_int_equal(rfx_image_pages(mem, NAME, note_page, pages, &err), RFX_OK);
        assert_int_equal(pages[1].h, 2);
        assert_int_equal(pages[1].w, 40);
        assert_int_equal(pages[1].bands, 52);
        assert_int_equal(pages[1].tile_w, 16);
        assert_int_equal(pages[1].bits, 16);
        assert_string_equal(pages[1].type, "signed");
        assert_true(pages[1].reduced && pages[1].refusal.text[0] == '\0');
        assert_non_null(strstr(pages[2].refusal.text, "level 2 in 's2': 's2' is not there"));
        options.page = 1;
        image = open_as(mem, NAME, &options);
        check_reads(&small, image, NULL);
        rfx_image_free(image);
        options.page = 3;
        options.slide = true;
        assert_int_equal(rfx_image_open(mem, NAME, &options, &image, &err), RFX_STATUS_UNSUPPORTED);
        assert_string_equal(err.text, NAME ": level 3 of 3 ('rfexec info' lists them)");
        rfx_memory_free(mem);
        zarr_maker_remove(NAME);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_and_packings),
        cmocka_unit_test(chunks_and_keys),
        cmocka_unit_test(axes_by_names_and_places),
        cmocka_unit_test(fill_values),
        cmocka_unit_test(bands_are_chosen),
        cmocka_unit_test(counts_what_it_holds),
        cmocka_unit_test(colours),
        cmocka_unit_test(what_the_writer_made),
        cmocka_unit_test(levels_of_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
