/* The order of a COG: directories, then tiles from the smallest level to the picture, with nothing
 * between. Held against rio-cogeo and GDAL in tests/oracle/pictures.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tiffio.h>

#include <cmocka.h>

#include "rfexec/output/output_format.h"
#include "tests/support/test_util.h"

#define FILE_NAME "test_cog_layout.tmp.tif"
enum { H = 100, W = 70, TILE = 16, LEVELS = 3 };

static char no_data[] = "a text that does not fit into an entry";
static const struct rfx_georeference geo = {.no_data = no_data};

static unsigned char sample(int64_t y, int64_t x) {
    return (unsigned char)(y * 7 + x * 3);
}

static enum rfx_status write_all(struct rfx_memory *mem, const struct rfx_tiff_picture *p,
                                 struct rfx_error *err) {
    struct rfx_tiff_writer *writer = NULL;
    unsigned char row[W];
    enum rfx_status status = rfx_tiff_write_open(mem, FILE_NAME, p, &writer, err);
    if (status != RFX_OK) return status;
    for (int64_t y = 0; y < p->h && status == RFX_OK; y++) {
        for (int64_t x = 0; x < p->w; x++) row[x] = sample(y, x);
        status = rfx_tiff_write_row(writer, row, err);
    }
    if (status == RFX_OK) status = rfx_tiff_write_commit(writer, err);
    rfx_tiff_write_free(writer);
    return status;
}

static struct rfx_tiff_picture picture(int64_t h, int64_t w, enum rfx_tiff_packing packing) {
    return (struct rfx_tiff_picture){.h = h,
                                     .w = w,
                                     .channels = 1,
                                     .bits = 8,
                                     .tile = TILE,
                                     .packing = packing,
                                     .geo = &geo,
                                     .overviews = RFX_OVERVIEW_NEAREST,
                                     .cog = true};
}

/* Level k, whose tiles begin at *at of the file; sets that to their end. */
static void check_level(TIFF *tiff, int k, uint64_t *at) {
    uint32_t h = 0, w = 0;
    unsigned char tile[TILE * TILE];
    assert_int_equal(TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &h), 1);
    assert_int_equal(TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &w), 1);
    for (uint32_t i = 0; i < TIFFNumberOfTiles(tiff); i++) {
        assert_int_equal(TIFFGetStrileOffset(tiff, i), *at);
        *at += TIFFGetStrileByteCount(tiff, i);
    }
    for (uint32_t y = 0; y < h; y++)
        for (uint32_t x = 0; x < w; x++) {
            if (x % TILE == 0) assert_true(TIFFReadTile(tiff, tile, x, y, 0, 0) > 0);
            assert_int_equal(tile[y % TILE * TILE + x % TILE],
                             sample((int64_t)y << k, (int64_t)x << k));
        }
}

static void check_order(int levels) {
    struct stat file;
    TIFF *tiff = TIFFOpen(FILE_NAME, "r");
    assert_non_null(tiff);
    assert_int_equal(stat(FILE_NAME, &file), 0);
    assert_int_equal(TIFFNumberOfDirectories(tiff), 1 + levels);
    uint64_t before = 0, at = 0;
    for (int k = 0; k <= levels; k++) {
        assert_int_equal(TIFFSetDirectory(tiff, (tdir_t)k), 1);
        assert_true(TIFFCurrentDirOffset(tiff) > before);
        before = TIFFCurrentDirOffset(tiff);
        at = TIFFGetStrileOffset(tiff, 0);
    }
    assert_true(at > before);
    for (int k = levels; k >= 0; k--) {
        assert_int_equal(TIFFSetDirectory(tiff, (tdir_t)k), 1);
        check_level(tiff, k, &at);
    }
    assert_int_equal(at, file.st_size);
    TIFFClose(tiff);
    assert_int_equal(unlink(FILE_NAME), 0);
}

static void tables_come_first(void **state) {
    (void)state;
    static const struct {
        int64_t h, w;
        int levels;
    } cases[] = {{H, W, LEVELS}, {16, 16, 0}, {1, 17, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int packing = 0; packing <= RFX_TIFF_DEFLATE; packing++) {
            struct rfx_memory *mem = rfx_memory_create(0);
            struct rfx_error err = {""};
            const struct rfx_tiff_picture p =
                picture(cases[i].h, cases[i].w, (enum rfx_tiff_packing)packing);
            if (write_all(mem, &p, &err) != RFX_OK) fail_msg("%s", err.text);
            assert_true(rfx_memory_high_water_bytes(mem) < rfx_tiff_write_bytes(&p));
            rfx_memory_free(mem);
            check_order(cases[i].levels);
        }
}

static enum rfx_status attempt(struct rfx_memory *mem, void *context, struct rfx_error *err) {
    return write_all(mem, context, err);
}

static void refuses_and_reports(void **state) {
    (void)state;
    struct rfx_tiff_picture p = picture(H, W, RFX_TIFF_PLAIN);
    struct rfx_tiff_writer *writer = NULL;
    struct rfx_error err = {""};
    assert_true(test_fail_each_allocation(attempt, &p) >= 18);
    assert_int_equal(unlink(FILE_NAME), 0);
    struct rfx_memory *mem = rfx_memory_create(0);
    assert_int_equal(rfx_tiff_write_open(mem, "/dev/stdout", &p, &writer, &err),
                     RFX_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "no pipe or device"));
    p.ome = true;
    assert_int_equal(rfx_tiff_write_open(mem, FILE_NAME, &p, &writer, &err),
                     RFX_STATUS_INVALID_ARGUMENT);
    p = picture(H, W, RFX_TIFF_PLAIN);
    p.tile = 0;
    p.overviews = RFX_OVERVIEW_NONE;
    assert_int_equal(rfx_tiff_write_open(mem, FILE_NAME, &p, &writer, &err),
                     RFX_STATUS_INVALID_ARGUMENT);
    rfx_memory_free(mem);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(tables_come_first),
                                       cmocka_unit_test(refuses_and_reports)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
