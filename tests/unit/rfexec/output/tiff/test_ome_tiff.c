/* OME-TIFF: planes and what lies below them, the OME-XML, names of channels. Held against the
 * schema and Bio-Formats in tests/oracle/viewers.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tiffio.h>

#include <cmocka.h>

#include "rfexec/output/name_list.h"
#include "rfexec/output/ome/ome_xml.h"
#include "rfexec/output/output_format.h"
#include "tests/support/test_util.h"

#define FILE_NAME "test_ome_tiff.tmp.ome.tif"
#define NAMES "test_ome_tiff.tmp.txt"
enum { H = 37, W = 70, TILE = 32, LEVELS = 2 };

/* Sample of a pixel; every 2^k-th is that of level k. */
static uint16_t sample(int64_t y, int64_t x, int64_t c) {
    return (uint16_t)(y * 1000 + x * 10 + c);
}

static enum rfx_status write_all(struct rfx_memory *mem, const struct rfx_output_format *format,
                                 const struct rfx_tensor *map, struct rfx_error *err) {
    const struct rfx_output_kind *kind = &rfx_output_ome_tiff;
    void *writer = NULL;
    unsigned char row[W * 4 * sizeof(uint16_t)];
    enum rfx_status status = kind->open(mem, FILE_NAME, format, map, &writer, err);
    if (status != RFX_OK) return status;
    for (int64_t y = 0; y < map->h && status == RFX_OK; y++) {
        for (int64_t i = 0; i < map->w * map->c; i++) {
            uint16_t value = sample(y, i / map->c, i % map->c);
            if (format->bits == 16) memcpy(row + 2 * i, &value, 2);
            if (format->bits == 8) row[i] = (unsigned char)value;
        }
        status = kind->write_row(writer, row, err);
    }
    if (status == RFX_OK) status = kind->commit(writer, err);
    kind->free(writer);
    return status;
}

/* The directory that is open: level k of channels [c0, c0 + n). */
static void check_level(TIFF *tiff, int k, int64_t c0, int n, int bits) {
    uint32_t h = 0, w = 0, kind = 9;
    uint16_t count = 0;
    unsigned char tile[TILE * TILE * 3 * 2];
    assert_int_equal(TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &h), 1);
    assert_int_equal(TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &w), 1);
    assert_int_equal(TIFFGetFieldDefaulted(tiff, TIFFTAG_SUBFILETYPE, &kind), 1);
    assert_int_equal(TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLESPERPIXEL, &count), 1);
    assert_int_equal(h, ((H - 1) >> k) + 1);
    assert_int_equal(w, ((W - 1) >> k) + 1);
    assert_int_equal(kind, k > 0 ? FILETYPE_REDUCEDIMAGE : 0);
    assert_int_equal(count, n);
    for (uint32_t y = 0; y < h; y++)
        for (uint32_t x = 0; x < w; x++)
            for (int c = 0; c < n; c++) {
                size_t at = ((y % TILE) * TILE + x % TILE) * (size_t)n + (size_t)c;
                uint16_t got, wanted = sample((int64_t)y << k, (int64_t)x << k, c0 + c);
                if (x % TILE == 0 && c == 0) assert_true(TIFFReadTile(tiff, tile, x, y, 0, 0) > 0);
                memcpy(&got, tile + 2 * at, 2);
                if (bits == 8) got = tile[at];
                if (got != (bits == 8 ? (unsigned char)wanted : wanted))
                    fail_msg("level %d, channel %d, row %u, column %u: %u", k, c, y, x, got);
            }
}

/* Pages of `n` channels, `planes` of them, each with its levels below. */
static void check_file(int planes, int n, int bits, int levels) {
    uint64_t *below = NULL, places[LEVELS];
    uint16_t count = 0;
    const char *words = NULL;
    TIFF *tiff = TIFFOpen(FILE_NAME, "r");
    assert_non_null(tiff);
    assert_int_equal(TIFFNumberOfDirectories(tiff), planes);
    for (int c = 0; c < planes; c++) {
        assert_int_equal(TIFFSetDirectory(tiff, (tdir_t)c), 1);
        assert_int_equal(TIFFGetField(tiff, TIFFTAG_IMAGEDESCRIPTION, &words), c == 0);
        check_level(tiff, 0, c, n, bits);
        count = 0;
        assert_int_equal(TIFFGetField(tiff, TIFFTAG_SUBIFD, &count, &below), levels > 0);
        assert_int_equal(count, levels);
        if (levels > 0) memcpy(places, below, sizeof places);
        for (int k = 0; k < levels; k++) {
            assert_int_equal(TIFFSetSubDirectory(tiff, places[k]), 1);
            check_level(tiff, k + 1, c, n, bits);
        }
    }
    TIFFClose(tiff);
    assert_int_equal(unlink(FILE_NAME), 0);
}

static void planes_have_their_levels_below_them(void **state) {
    (void)state;
    static const struct {
        int channels, bits, planes;
    } cases[] = {{1, 8, 1}, {1, 16, 1}, {2, 8, 2}, {3, 8, 1}, {3, 16, 3}, {4, 8, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int k = 0; k < 4; k++) {
            const struct rfx_output_format format = {
                .kind = &rfx_output_ome_tiff,
                .bits = cases[i].bits,
                .tile = TILE,
                .packing = k % 2 == 0 ? RFX_TIFF_PLAIN : RFX_TIFF_DEFLATE,
                .overviews = k < 2 ? RFX_OVERVIEW_NONE : RFX_OVERVIEW_NEAREST};
            const struct rfx_tensor map = rfx_tensor_nhwc(cases[i].channels, H, W);
            struct rfx_memory *mem = rfx_memory_create(0);
            struct rfx_error err = {""};
            if (write_all(mem, &format, &map, &err) != RFX_OK) fail_msg("%s", err.text);
            assert_true(rfx_memory_high_water_bytes(mem) < format.kind->bytes(&format, &map));
            rfx_memory_free(mem);
            check_file(cases[i].planes, cases[i].channels / cases[i].planes, cases[i].bits,
                       k < 2 ? 0 : LEVELS);
        }
}

/* Floats are packed as they are, and tiles are those that viewers are used to. */
static void floats_have_no_predictor(void **state) {
    (void)state;
    const struct rfx_output_format format = {.kind = &rfx_output_ome_tiff,
                                             .packing = RFX_TIFF_DEFLATE};
    const struct rfx_tensor map = rfx_tensor_nhwc(1, 1, 1);
    const float value = 0.5f;
    uint16_t predictor = 0;
    uint32_t side = 0;
    struct rfx_memory *mem = rfx_memory_create(0);
    const struct rfx_output_kind *kind = &rfx_output_ome_tiff;
    void *writer = NULL;
    assert_int_equal(kind->open(mem, FILE_NAME, &format, &map, &writer, NULL), RFX_OK);
    assert_int_equal(kind->write_row(writer, &value, NULL), RFX_OK);
    assert_int_equal(kind->commit(writer, NULL), RFX_OK);
    kind->free(writer);
    rfx_memory_free(mem);
    TIFF *tiff = TIFFOpen(FILE_NAME, "r");
    assert_non_null(tiff);
    assert_int_equal(TIFFGetFieldDefaulted(tiff, TIFFTAG_PREDICTOR, &predictor), 1);
    assert_int_equal(predictor, PREDICTOR_NONE);
    assert_int_equal(TIFFGetField(tiff, TIFFTAG_TILEWIDTH, &side), 1);
    assert_int_equal(side, 256);
    TIFFClose(tiff);
    assert_int_equal(unlink(FILE_NAME), 0);
}

static char *xml_of(struct rfx_memory *mem, const struct rfx_ome_image *image) {
    char *text = NULL;
    assert_int_equal(rfx_ome_xml(mem, image, &text, NULL), RFX_OK);
    assert_int_equal(strlen(text) + 1, rfx_ome_xml_bytes(image));
    return text;
}

static void words_say_what_there_is(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_ome_image image = {.h = 5,
                                  .w = 7,
                                  .channels = 2,
                                  .bits = 32,
                                  .path = "a.b/x&y.OME.tiff",
                                  .names = "<a>\0\"\001\"",
                                  .pixel_um = {0.5, 0.25}};
    char *text = xml_of(mem, &image);
    assert_non_null(strstr(text, "<Image ID=\"Image:0\" Name=\"x&amp;y\">"));
    assert_non_null(strstr(text, "Type=\"float\" SizeX=\"7\" SizeY=\"5\" SizeZ=\"1\" SizeC=\"2\""));
    assert_non_null(strstr(text, " PhysicalSizeX=\"0.5\" PhysicalSizeY=\"0.25\">"));
    assert_non_null(strstr(text, "Name=\"&lt;a&gt;\" SamplesPerPixel=\"1\"/>"));
    assert_non_null(strstr(text, "Name=\"&quot; &quot;\" SamplesPerPixel=\"1\"/>"));
    assert_non_null(strstr(text, "PlaneCount=\"2\""));
    rfx_memory_release(mem, text);
    image = (struct rfx_ome_image){.h = 1, .w = 1, .channels = 3, .bits = 8, .path = "x"};
    text = xml_of(mem, &image);
    assert_non_null(strstr(text, "Channel:0:0\" SamplesPerPixel=\"3\"/><TiffData"));
    assert_null(strstr(text, "PhysicalSize"));
    rfx_memory_release(mem, text);
    rfx_memory_free(mem);
}

static void put_names(const char *text, size_t bytes) {
    FILE *file = fopen(NAMES, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

static void names_are_lines(void **state) {
    (void)state;
    static const char *const same[] = {"a\n\nb\x01\n", "a\r\n\r\nb\x01", "a\n\nb\x01"};
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_error err = {""};
    char *names = NULL;
    for (int i = 0; i < 3; i++) {
        put_names(same[i], strlen(same[i]));
        assert_int_equal(rfx_channel_names_read(mem, NAMES, 3, &names, &err), RFX_OK);
        assert_memory_equal(names, "a\0\0b\\x01", 8);
        rfx_memory_release(mem, names);
        assert_true(rfx_memory_high_water_bytes(mem) <= rfx_channel_names_bytes(NAMES));
    }
    for (int channels = 2; channels <= 4; channels += 2) {
        assert_int_equal(rfx_channel_names_read(mem, NAMES, channels, &names, &err),
                         RFX_STATUS_INVALID_ARGUMENT);
        assert_non_null(strstr(err.text, "3 lines for "));
    }
    assert_int_equal(truncate(NAMES, (1 << 20) + 1), 0);
    assert_int_equal(rfx_channel_names_read(mem, NAMES, 1, &names, &err),
                     RFX_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "not a file of up to 1048576 bytes"));
    assert_int_equal(rfx_channel_names_read(mem, ".", 1, &names, &err),
                     RFX_STATUS_INVALID_ARGUMENT);
    assert_int_equal(rfx_channel_names_read(mem, "no such file", 1, &names, &err), RFX_STATUS_IO);
    assert_int_equal(unlink(NAMES), 0);
    rfx_memory_free(mem);
}

static enum rfx_status attempt(struct rfx_memory *mem, void *context, struct rfx_error *err) {
    const struct rfx_tensor map = rfx_tensor_nhwc(2, H, W);
    return write_all(mem, context, &map, err);
}

static void failures_leave_nothing(void **state) {
    (void)state;
    struct rfx_output_format format = {.kind = &rfx_output_ome_tiff,
                                       .bits = 16,
                                       .tile = TILE,
                                       .overviews = RFX_OVERVIEW_MEAN,
                                       .channel_names = NAMES};
    put_names("a\nb\n", 4);
    assert_true(test_fail_each_allocation(attempt, &format) >= 12);
    assert_int_equal(unlink(FILE_NAME), 0);
    put_names("a\n", 2);
    struct rfx_memory *mem = rfx_memory_create(0);
    assert_int_equal(attempt(mem, &format, NULL), RFX_STATUS_INVALID_ARGUMENT);
    rfx_memory_free(mem);
    assert_int_equal(access(FILE_NAME, F_OK), -1);
    assert_int_equal(unlink(NAMES), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planes_have_their_levels_below_them),
        cmocka_unit_test(floats_have_no_predictor),
        cmocka_unit_test(words_say_what_there_is),
        cmocka_unit_test(names_are_lines),
        cmocka_unit_test(failures_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
