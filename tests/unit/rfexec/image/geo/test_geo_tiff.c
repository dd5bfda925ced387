/* Georeferences written and read again, tags that are none, allocations failing. */
#include <math.h>
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

#include "rfexec/image/geo/geo_tiff.h"
#include "rfexec/output/tiff_write.h"
#include "tests/support/test_util.h"

#define FILE_NAME "test_geo_tiff.tmp.tif"

static double points[] = {0, 0, 0, 500000, 4000000, 7, 10, 20, 0, 500100, 3999800, 7};
static uint16_t keys[] = {1, 1, 0, 1, 1025, 0, 1, 1};
static char texts[] = "WGS 84|", no_data[] = "nan",
            metadata[] = "<GDALMetadata><Item name=\"A\">a</Item></GDALMetadata>";

static void write_file(const struct rfx_georeference *geo) {
    const struct rfx_tiff_picture picture = {.h = 2, .w = 1, .channels = 1, .bits = 8, .geo = geo};
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_tiff_writer *writer;
    assert_int_equal(rfx_tiff_write_open(mem, FILE_NAME, &picture, &writer, NULL), RFX_OK);
    for (int y = 0; y < 2; y++) assert_int_equal(rfx_tiff_write_row(writer, "x", NULL), RFX_OK);
    assert_int_equal(rfx_tiff_write_commit(writer, NULL), RFX_OK);
    rfx_tiff_write_free(writer);
    rfx_memory_free(mem);
}

static bool same_text(const char *a, const char *b) {
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* Both ways of placing, alone and with everything. */
static void comes_back(void **state) {
    (void)state;
    struct rfx_georeference all = {.has_scale = true,
                                   .scale = {10, 5, 0},
                                   .n_points = 6,
                                   .points = points,
                                   .n_keys = 8,
                                   .keys = keys,
                                   .n_params = 12,
                                   .params = points,
                                   .texts = texts,
                                   .no_data = no_data,
                                   .metadata = metadata};
    struct rfx_georeference cases[] = {all,
                                       {.n_points = 12, .points = points},
                                       {.has_matrix = true},
                                       {.no_data = no_data},
                                       {.mem = NULL}};
    for (int i = 0; i < 16; i++) cases[2].matrix[i] = (double)i / 3.0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct rfx_georeference *geo = &cases[i];
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_geo_source got;
        write_file(geo);
        assert_int_equal(rfx_geo_tiff_read(mem, FILE_NAME, 0, &got, NULL), RFX_OK);
        assert_null(got.dropped);
        assert_int_equal(got.orientation, 1);
        assert_true(got.h == 2 && got.w == 1);
        assert_int_equal(rfx_georeference_bytes(&got.geo), rfx_georeference_bytes(geo));
        assert_memory_equal(got.geo.scale, geo->scale, sizeof geo->scale);
        assert_memory_equal(got.geo.matrix, geo->matrix, sizeof geo->matrix);
        for (int k = 0; k < geo->n_points; k++) assert_true(got.geo.points[k] == points[k]);
        for (int k = 0; k < geo->n_params; k++) assert_true(got.geo.params[k] == points[k]);
        for (int k = 0; k < geo->n_keys; k++) assert_int_equal(got.geo.keys[k], keys[k]);
        assert_true(same_text(got.geo.texts, geo->texts));
        assert_true(same_text(got.geo.no_data, geo->no_data));
        assert_true(same_text(got.geo.metadata, geo->metadata));
        rfx_georeference_release(&got.geo);
        assert_int_equal(rfx_memory_current_bytes(mem), 0);
        rfx_memory_free(mem);
    }
}

/* What is written as it is, and said to be none. */
static void drops_what_is_none(void **state) {
    (void)state;
    double odd[] = {1, NAN, 0, 4, 5, 6};
    char *longest = malloc(RFX_GEO_MOST_BYTES + 2);
    uint16_t short_keys[] = {1, 1, 0, 9};
    memset(longest, 'a', RFX_GEO_MOST_BYTES + 1);
    longest[RFX_GEO_MOST_BYTES + 1] = '\0';
    struct rfx_georeference cases[] = {{.n_points = 6, .points = odd},
                                       {.n_points = 5, .points = points},
                                       {.metadata = longest},
                                       {.n_keys = 4, .keys = short_keys}};
    static const char *const words[] = {"ModelTiepoint", "ModelTiepoint", "GDAL_METADATA",
                                        "GeoKeyDirectory"};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_geo_source got;
        write_file(&cases[i]);
        assert_int_equal(rfx_geo_tiff_read(mem, FILE_NAME, 0, &got, NULL), RFX_OK);
        assert_true(rfx_georeference_is_empty(&got.geo));
        assert_string_equal(got.dropped, words[i]);
        assert_int_equal(rfx_geo_tiff_read(mem, FILE_NAME, 3, &got, NULL), RFX_OK); /* no page 3 */
        assert_null(got.dropped);
        rfx_memory_free(mem);
    }
    free(longest);
}

/* Items of one band go, and with them what then says nothing. */
static void drops_items_of_bands(void **state) {
    static char band[] = "<Item name=\"B\" sample=\"0\">b</Item>";
    static char shell[] =
        "<GDALMetadata>\n <Item name=\"B\" sample=\"0\">b</Item>\n</GDALMetadata>";
    static char both[] = "<Item name=\"B\" sample=\"1\">b</Item><Item name=\"A\">a</Item>";
    static const struct {
        char *written;
        const char *kept;
    } cases[] = {{band, NULL}, {shell, NULL}, {both, "<Item name=\"A\">a</Item>"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rfx_georeference geo = {.metadata = cases[i].written};
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_geo_source got;
        write_file(&geo);
        assert_int_equal(rfx_geo_tiff_read(mem, FILE_NAME, 0, &got, NULL), RFX_OK);
        assert_true(same_text(got.geo.metadata, cases[i].kept));
        rfx_georeference_release(&got.geo);
        rfx_memory_free(mem);
    }
}

static enum rfx_status read_once(struct rfx_memory *mem, void *context, struct rfx_error *err) {
    struct rfx_geo_source got;
    (void)context;
    enum rfx_status status = rfx_geo_tiff_read(mem, FILE_NAME, 0, &got, err);
    if (status == RFX_OK) rfx_georeference_release(&got.geo);
    return status;
}

static void survives_failing_allocations(void **state) {
    (void)state;
    struct rfx_georeference geo = {.has_scale = true,
                                   .scale = {10, 5, 0},
                                   .n_points = 6,
                                   .points = points,
                                   .n_keys = 8,
                                   .keys = keys,
                                   .texts = texts};
    write_file(&geo);
    assert_int_equal(test_fail_each_allocation(read_once, NULL), 5);
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_geo_source got;
    struct rfx_error err;
    assert_int_equal(unlink(FILE_NAME), 0);
    assert_int_equal(rfx_geo_tiff_read(mem, FILE_NAME, 0, &got, &err), RFX_STATUS_IO);
    rfx_memory_free(mem);
}

static void write_resolution(int unit, float x, float y) {
    TIFF *tiff = TIFFOpen(FILE_NAME, "w");
    assert_non_null(tiff);
    TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, 1);
    TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, 1);
    TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, 8);
    TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
    if (unit != 0) TIFFSetField(tiff, TIFFTAG_RESOLUTIONUNIT, unit);
    if (x > 0) TIFFSetField(tiff, TIFFTAG_XRESOLUTION, (double)x);
    if (y > 0) TIFFSetField(tiff, TIFFTAG_YRESOLUTION, (double)y);
    assert_int_equal(TIFFWriteScanline(tiff, (char[]){1}, 0, 0), 1);
    TIFFClose(tiff);
}

/* Of microscopes, not of printers: 508 pixels in an inch are 50 micrometres each. */
static void pixels_have_sizes(void **state) {
    (void)state;
    static const struct {
        int unit;
        float x, y;
        double um[2];
    } cases[] = {{RESUNIT_CENTIMETER, 20000, 40000, {0.5, 0.25}},
                 {RESUNIT_INCH, 50800, 25400, {0.5, 1}},
                 {0, 50800, 50800, {0.5, 0.5}}, /* inches */
                 {RESUNIT_NONE, 20000, 20000, {0, 0}},
                 {RESUNIT_INCH, 508, 50800, {0, 0}},
                 {RESUNIT_INCH, 50800, 300, {0, 0}},
                 {RESUNIT_CENTIMETER, 20000, 0, {0, 0}}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_geo_source got;
        write_resolution(cases[i].unit, cases[i].x, cases[i].y);
        assert_int_equal(rfx_geo_tiff_read(mem, FILE_NAME, 0, &got, NULL), RFX_OK);
        for (int k = 0; k < 2; k++)
            if (got.geo.pixel_um[k] != cases[i].um[k])
                fail_msg("case %zu: %g micrometres", i, got.geo.pixel_um[k]);
        rfx_memory_free(mem);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_back), cmocka_unit_test(drops_what_is_none),
        cmocka_unit_test(drops_items_of_bands), cmocka_unit_test(pixels_have_sizes),
        cmocka_unit_test(survives_failing_allocations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
