/* TIFF by rows: what is written is read back by libtiff's reader; tags; strips; failures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tiffio.h>

#include <cmocka.h>

#include "rfexec/output/tiff_write.h"
#include "tests/support/test_util.h"

#define FILE_NAME "test_tiff_write.tmp.tif"

static enum rfx_status open_plain(struct rfx_memory *mem, const char *path, int64_t h, int64_t w,
                                  int64_t channels, int bits, struct rfx_tiff_writer **writer,
                                  struct rfx_error *err) {
    const struct rfx_tiff_picture picture = {.h = h, .w = w, .channels = channels, .bits = bits};
    return rfx_tiff_write_open(mem, path, &picture, writer, err);
}

static bool is_big(int64_t h, int64_t w) {
    const struct rfx_tiff_picture picture = {.h = h, .w = w, .channels = 1, .bits = 8};
    return rfx_tiff_write_is_big(&picture);
}

static unsigned field(TIFF *tiff, uint32_t tag) {
    uint16_t value = 0;
    assert_int_equal(TIFFGetFieldDefaulted(tiff, tag, &value), 1);
    return value;
}

static void check_tags(TIFF *tiff, uint32_t h, uint32_t w, unsigned channels, unsigned bits) {
    uint32_t got_h = 0, got_w = 0;
    uint16_t extra = 0, *kinds = NULL;
    assert_int_equal(TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &got_h), 1);
    assert_int_equal(TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &got_w), 1);
    assert_int_equal(got_h, h);
    assert_int_equal(got_w, w);
    assert_int_equal(field(tiff, TIFFTAG_SAMPLESPERPIXEL), channels);
    assert_int_equal(field(tiff, TIFFTAG_BITSPERSAMPLE), bits);
    assert_int_equal(field(tiff, TIFFTAG_SAMPLEFORMAT),
                     bits == 32 ? SAMPLEFORMAT_IEEEFP : SAMPLEFORMAT_UINT);
    assert_int_equal(field(tiff, TIFFTAG_PLANARCONFIG), PLANARCONFIG_CONTIG);
    assert_int_equal(field(tiff, TIFFTAG_PHOTOMETRIC),
                     channels == 3 ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISBLACK);
    assert_int_equal(TIFFGetFieldDefaulted(tiff, TIFFTAG_EXTRASAMPLES, &extra, &kinds), 1);
    assert_int_equal(extra, channels == 3 ? 0 : channels - 1);
}

/* Writes and reads one picture. */
static void round_trip(int64_t h, int64_t w, int64_t channels, int bits, unsigned strips) {
    size_t row_bytes = (size_t)(w * channels * bits / 8);
    unsigned char *rows = malloc(row_bytes * (size_t)h), *got = malloc(row_bytes);
    struct test_rng rng = test_rng_make((uint64_t)(h * 31 + w * 7 + channels + bits));
    for (size_t i = 0; i < row_bytes * (size_t)h; i++) rows[i] = (unsigned char)test_rng_next(&rng);
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_tiff_writer *writer = NULL;
    struct rfx_error err = {""};
    assert_int_equal(open_plain(mem, FILE_NAME, h, w, channels, bits, &writer, &err), RFX_OK);
    for (int64_t y = 0; y < h; y++) {
        assert_int_equal(rfx_tiff_write_commit(writer, &err), RFX_STATUS_INVALID_ARGUMENT);
        assert_int_equal(rfx_tiff_write_row(writer, rows + (size_t)y * row_bytes, &err), RFX_OK);
    }
    assert_int_equal(rfx_tiff_write_row(writer, rows, &err), RFX_STATUS_INVALID_ARGUMENT);
    assert_int_equal(access(FILE_NAME, F_OK), -1);
    if (rfx_tiff_write_commit(writer, &err) != RFX_OK) fail_msg("%s", err.text);
    rfx_tiff_write_free(writer);
    rfx_memory_free(mem);
    TIFF *tiff = TIFFOpen(FILE_NAME, "rc"); /* c: as many strips as there are */
    assert_non_null(tiff);
    check_tags(tiff, (uint32_t)h, (uint32_t)w, (unsigned)channels, (unsigned)bits);
    assert_int_equal(TIFFNumberOfStrips(tiff), strips);
    for (int64_t y = 0; y < h; y++) {
        assert_int_equal(TIFFReadScanline(tiff, got, (uint32_t)y, 0), 1);
        assert_memory_equal(got, rows + (size_t)y * row_bytes, row_bytes);
    }
    assert_int_equal(TIFFLastDirectory(tiff), 1);
    TIFFClose(tiff);
    assert_int_equal(unlink(FILE_NAME), 0);
    free(rows);
    free(got);
}

static void rows_come_back(void **state) {
    (void)state;
    static const int bits[] = {8, 16, 32};
    static const int64_t channels[] = {1, 2, 3, 4, 21};
    for (int b = 0; b < 3; b++)
        for (int c = 0; c < 5; c++) round_trip(7, 13, channels[c], bits[b], 1);
    round_trip(1, 1, 1, 8, 1);      /* an odd number of bytes before the directory */
    round_trip(301, 500, 3, 32, 7); /* 43 rows of 6000 bytes in 256 KiB */
    round_trip(3, 70000, 1, 32, 3); /* a row is more than a strip */
    round_trip(2, 1, 65535, 8, 1);  /* as many channels as there may be */
}

/* Holds every tile of a directory against the rows; 0 beyond the picture. Of level k every 2^k-th
 * row and column is there. */
static void check_tiles(TIFF *tiff, const struct rfx_tiff_picture *p, const unsigned char *rows,
                        int k) {
    size_t pixel = (size_t)(p->channels * p->bits / 8), row = (size_t)p->w * pixel;
    size_t side = (size_t)p->tile, tile_row = side * pixel;
    int64_t h = (p->h + (1 << k) - 1) >> k, w = (p->w + (1 << k) - 1) >> k;
    unsigned char *tile = malloc(side * tile_row);
    uint32_t kind = 0;
    uint16_t predictor = PREDICTOR_NONE;
    check_tags(tiff, (uint32_t)h, (uint32_t)w, (unsigned)p->channels, (unsigned)p->bits);
    assert_int_equal(TIFFGetFieldDefaulted(tiff, TIFFTAG_SUBFILETYPE, &kind), 1);
    assert_int_equal(kind, k > 0 ? FILETYPE_REDUCEDIMAGE : 0);
    (void)TIFFGetField(tiff, TIFFTAG_PREDICTOR, &predictor);
    assert_int_equal(predictor, p->packing == RFX_TIFF_PLAIN ? PREDICTOR_NONE
                                : p->bits == 32              ? PREDICTOR_FLOATINGPOINT
                                                             : PREDICTOR_HORIZONTAL);
    assert_true(TIFFIsTiled(tiff));
    int64_t across = (w + p->tile - 1) / p->tile, down = (h + p->tile - 1) / p->tile;
    assert_int_equal(TIFFNumberOfTiles(tiff), across * down);
    for (unsigned t = 0; t < across * down; t++) {
        int64_t y0 = t / across * p->tile, x0 = t % across * p->tile;
        assert_int_equal(TIFFReadEncodedTile(tiff, t, tile, (tmsize_t)(side * tile_row)),
                         side * tile_row);
        for (size_t i = 0; i < side * tile_row; i++) {
            int64_t y = y0 + (int64_t)(i / tile_row), x = x0 + (int64_t)(i % tile_row / pixel);
            size_t at = ((size_t)y << k) * row + ((size_t)x << k) * pixel + i % pixel;
            unsigned char wanted = y < h && x < w ? rows[at] : 0;
            if (tile[i] != wanted)
                fail_msg("level %d, tile %u, byte %zu: %u, not %u", k, t, i, tile[i], wanted);
        }
    }
    free(tile);
}

/* Writes a picture in tiles and looks at all of them, its `levels` overviews' too. */
static void tiles_of(const struct rfx_tiff_picture *p, int levels) {
    size_t row = (size_t)(p->w * p->channels * p->bits / 8);
    unsigned char *rows = malloc(row * (size_t)p->h);
    struct test_rng rng = test_rng_make((uint64_t)(p->h * 31 + p->w * 7 + p->bits));
    for (size_t i = 0; i < row * (size_t)p->h; i++) rows[i] = (unsigned char)test_rng_next(&rng);
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_tiff_writer *writer = NULL;
    struct rfx_error err = {""};
    if (rfx_tiff_write_open(mem, FILE_NAME, p, &writer, &err) != RFX_OK) fail_msg("%s", err.text);
    for (int64_t y = 0; y < p->h; y++)
        assert_int_equal(rfx_tiff_write_row(writer, rows + (size_t)y * row, &err), RFX_OK);
    assert_int_equal(rfx_tiff_write_row(writer, rows, &err), RFX_STATUS_INVALID_ARGUMENT);
    if (rfx_tiff_write_commit(writer, &err) != RFX_OK) fail_msg("%s", err.text);
    assert_true(rfx_memory_high_water_bytes(mem) < rfx_tiff_write_bytes(p));
    rfx_tiff_write_free(writer);
    rfx_memory_free(mem);
    TIFF *tiff = TIFFOpen(FILE_NAME, "r");
    assert_non_null(tiff);
    assert_int_equal(TIFFNumberOfDirectories(tiff), 1 + levels);
    for (int k = 0; k <= levels; k++) {
        assert_int_equal(TIFFSetDirectory(tiff, (tdir_t)k), 1);
        check_tiles(tiff, p, rows, k);
    }
    TIFFClose(tiff);
    assert_int_equal(unlink(FILE_NAME), 0);
    free(rows);
}

static void tiles_come_back(void **state) {
    (void)state;
    static const int bits[] = {8, 16, 32};
    for (int packing = 0; packing < RFX_TIFF_PACKING_COUNT; packing++)
        for (int b = 0; b < 3; b++) {
            struct rfx_tiff_picture p = {.h = 37,
                                         .w = 70,
                                         .channels = 1 + b,
                                         .bits = bits[b],
                                         .tile = 32,
                                         .packing = (enum rfx_tiff_packing)packing};
            if (packing == RFX_TIFF_ZSTD && !TIFFIsCODECConfigured(COMPRESSION_ZSTD)) continue;
            tiles_of(&p, 0);
            p.overviews = RFX_OVERVIEW_NEAREST;
            tiles_of(&p, 2);
            p.h = p.w = p.tile = 16;
            tiles_of(&p, 0);
            p.h = 33;
            p.w = 1;
            tiles_of(&p, 2);
        }
}

/* The no-data number of the georeference has no part in a mean; a text that is none says nothing.
 */
static void means_leave_no_data_out(void **state) {
    (void)state;
    static const struct {
        char no_data[4];
        unsigned char row[32], wanted[16];
    } cases[] = {{"7", {7, 3, 7, 7, 1, 2, 200, 100}, {3, 7, 2, 150}},
                 {"no", {7, 3, 7, 7, 0, 2, 200, 0}, {5, 7, 1, 100}}};
    for (int i = 0; i < 2; i++) {
        char no_data[4];
        memcpy(no_data, cases[i].no_data, sizeof no_data);
        const struct rfx_georeference geo = {.no_data = no_data};
        const struct rfx_tiff_picture p = {.h = 1,
                                           .w = 32,
                                           .channels = 1,
                                           .bits = 8,
                                           .tile = 16,
                                           .geo = &geo,
                                           .overviews = RFX_OVERVIEW_MEAN};
        unsigned char tile[16 * 16];
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_tiff_writer *writer = NULL;
        assert_int_equal(rfx_tiff_write_open(mem, FILE_NAME, &p, &writer, NULL), RFX_OK);
        assert_int_equal(rfx_tiff_write_row(writer, cases[i].row, NULL), RFX_OK);
        assert_int_equal(rfx_tiff_write_commit(writer, NULL), RFX_OK);
        rfx_tiff_write_free(writer);
        rfx_memory_free(mem);
        TIFF *tiff = TIFFOpen(FILE_NAME, "r");
        assert_non_null(tiff);
        assert_int_equal(TIFFSetDirectory(tiff, 1), 1);
        assert_int_equal(TIFFReadEncodedTile(tiff, 0, tile, sizeof tile), sizeof tile);
        assert_memory_equal(tile, cases[i].wanted, sizeof cases[i].wanted);
        TIFFClose(tiff);
        assert_int_equal(unlink(FILE_NAME), 0);
    }
}

static bool count_questions(void *user) {
    ++*(int *)user;
    return false;
}

/* Of a wide picture a row of tiles is most of what is held; work on the overviews can be stopped at
 * each of their rows. */
static void wide_tiles_are_counted(void **state) {
    (void)state;
    const struct rfx_tiff_picture p = {.h = 64,
                                       .w = 20000,
                                       .channels = 3,
                                       .bits = 32,
                                       .tile = 64,
                                       .overviews = RFX_OVERVIEW_NEAREST};
    float *row = test_floats(p.w * p.channels);
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_tiff_writer *writer = NULL;
    int questions = 0;
    assert_int_equal(rfx_tiff_write_open(mem, FILE_NAME, &p, &writer, NULL), RFX_OK);
    for (int y = 0; y < 64; y++) assert_int_equal(rfx_tiff_write_row(writer, row, NULL), RFX_OK);
    rfx_memory_set_stop(mem, count_questions, &questions);
    assert_int_equal(rfx_tiff_write_commit(writer, NULL), RFX_OK);
    assert_true(questions > 32 + 16 + 8 + 4 + 2 + 1);
    assert_true(rfx_memory_high_water_bytes(mem) > (size_t)(64 * p.w * p.channels * 4));
    assert_true(rfx_memory_high_water_bytes(mem) < rfx_tiff_write_bytes(&p));
    rfx_tiff_write_free(writer);
    rfx_memory_free(mem);
    assert_int_equal(unlink(FILE_NAME), 0);
    free(row);
}

static void big_files_become_bigtiff(void **state) {
    (void)state;
    assert_false(is_big(65535, 65000));
    assert_false(is_big(4095, 1 << 20));
    assert_true(is_big(4096, 1 << 20)); /* 4 GiB of pixels */
    assert_true(is_big(INT32_MAX, 2));  /* with the strips' places */
    struct rfx_tiff_picture most = {.h = INT32_MAX, .w = INT32_MAX, .channels = 65535, .bits = 32};
    assert_true(rfx_tiff_write_is_big(&most)); /* more than 2^63 */
    most.tile = 16;
    most.planes = true; /* and so have the tables of tiles */
    most.bits = 8;
    assert_true(rfx_tiff_write_is_big(&most));
    struct rfx_tiff_picture edge = {.h = 65000, .w = 65000, .channels = 1, .bits = 8, .tile = 512};
    assert_false(rfx_tiff_write_is_big(&edge));
    edge.overviews = RFX_OVERVIEW_MEAN; /* a third more */
    assert_true(rfx_tiff_write_is_big(&edge));
    edge.overviews = RFX_OVERVIEW_NONE;
    edge.h = 65536;
    assert_false(rfx_tiff_write_is_big(&edge));
    edge.packing = RFX_TIFF_DEFLATE; /* noise grows by it */
    assert_true(rfx_tiff_write_is_big(&edge));
    edge.packing = RFX_TIFF_PLAIN;
    edge.h = 65000;
    edge.tile = 4096; /* what tiles have beyond the picture is in the file */
    assert_true(rfx_tiff_write_is_big(&edge));
}

static void refuses_and_reports(void **state) {
    (void)state;
    static const int64_t wrong[][4] = {/* h, w, channels, bits */
                                       {0, 8, 1, 8},     {8, 0, 1, 8},  {8, 8, 0, 8},
                                       {8, 8, 65536, 8}, {8, 8, 1, 12}, {1L << 31, 1, 1, 8}};
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_tiff_writer *writer = NULL;
    struct rfx_error err = {""};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(open_plain(mem, FILE_NAME, wrong[i][0], wrong[i][1], wrong[i][2],
                                    (int)wrong[i][3], &writer, &err),
                         RFX_STATUS_INVALID_ARGUMENT);
    static const int tiles[][2] = {{8, 0}, {-16, 0}, {4112, 0}, {0, RFX_TIFF_DEFLATE}};
    for (size_t i = 0; i < sizeof tiles / sizeof tiles[0]; i++) {
        const struct rfx_tiff_picture p = {.h = 8,
                                           .w = 8,
                                           .channels = 1,
                                           .bits = 8,
                                           .tile = tiles[i][0],
                                           .packing = (enum rfx_tiff_packing)tiles[i][1]};
        assert_int_equal(rfx_tiff_write_open(mem, FILE_NAME, &p, &writer, &err),
                         RFX_STATUS_INVALID_ARGUMENT);
    }
    struct rfx_tiff_picture strips = {
        .h = 8, .w = 8, .channels = 1, .bits = 8, .overviews = RFX_OVERVIEW_MEAN};
    assert_int_equal(rfx_tiff_write_open(mem, FILE_NAME, &strips, &writer, &err),
                     RFX_STATUS_INVALID_ARGUMENT);
    strips.overviews = RFX_OVERVIEW_NONE;
    strips.planes = true;
    assert_int_equal(rfx_tiff_write_open(mem, FILE_NAME, &strips, &writer, &err),
                     RFX_STATUS_INVALID_ARGUMENT);
    assert_int_equal(open_plain(mem, "no/such/dir.tif", 1, 8, 1, 8, &writer, &err), RFX_STATUS_IO);
    assert_non_null(strstr(err.text, "no/such/dir.tif"));
    if (access("/dev/full", W_OK) == 0) {
        assert_int_equal(open_plain(mem, "/dev/full", 1, 1, 1, 8, &writer, &err), RFX_OK);
        assert_int_equal(rfx_tiff_write_row(writer, "x", &err), RFX_OK);
        assert_int_equal(rfx_tiff_write_commit(writer, &err), RFX_STATUS_IO);
        assert_non_null(strstr(err.text, "No space left"));
        rfx_tiff_write_free(writer);
    }
    assert_int_equal(open_plain(mem, FILE_NAME, 2, 1, 1, 8, &writer, &err), RFX_OK);
    assert_int_equal(rfx_tiff_write_row(writer, "x", &err), RFX_OK);
    rfx_tiff_write_free(writer); /* with a row missing */
    assert_int_equal(access(FILE_NAME, F_OK), -1);
    rfx_tiff_write_free(NULL);
    rfx_memory_free(mem);
}

static enum rfx_status write_one(struct rfx_memory *mem, void *context, struct rfx_error *err) {
    struct rfx_tiff_writer *writer = NULL;
    (void)context;
    enum rfx_status status = open_plain(mem, FILE_NAME, 1, 1, 2, 8, &writer, err);
    if (status == RFX_OK) status = rfx_tiff_write_row(writer, "ab", err);
    if (status == RFX_OK) status = rfx_tiff_write_commit(writer, err);
    rfx_tiff_write_free(writer);
    return status;
}

static void survives_failing_allocations(void **state) {
    (void)state;
    assert_int_equal(test_fail_each_allocation(write_one, NULL), 6);
    assert_int_equal(unlink(FILE_NAME), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_come_back),
        cmocka_unit_test(tiles_come_back),
        cmocka_unit_test(means_leave_no_data_out),
        cmocka_unit_test(wide_tiles_are_counted),
        cmocka_unit_test(big_files_become_bigtiff),
        cmocka_unit_test(refuses_and_reports),
        cmocka_unit_test(survives_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
