/* GeoTIFF in, GeoTIFF out: tags of outputs, of merged ones too, on the grids of their pixels. What
 * GDAL makes of them: tests/oracle/pictures.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tiffio.h>

#include <cmocka.h>

#include "cli_program.h"

#define NET "real_esrgan_compact" /* four times as many rows and columns */
enum {
    H = 40,
    W = 52,
    SCALE = 33550,
    POINTS = 33922,
    MATRIX = 34264,
    KEYS = 34735,
    PARAMS = 34736
};
enum { TEXTS = 34737, METADATA = 42112, NO_DATA = 42113 };

static const double scale[] = {0.5, 0.25, 0}, points[] = {0, 0, 0, 450000.125, 5300000.5, 0};
static const uint16_t keys[] = {1, 1, 0, 2, 1025, 0, 1, 1, 3072, 0, 1, 32633};
static const double params[] = {6378137, 298.257223563};

static void know_tags(TIFF *tif) {
    static char name[] = "geo";
    static const TIFFFieldInfo fields[] = {{SCALE, -1, -1, TIFF_DOUBLE, FIELD_CUSTOM, 1, 1, name},
                                           {POINTS, -1, -1, TIFF_DOUBLE, FIELD_CUSTOM, 1, 1, name},
                                           {MATRIX, -1, -1, TIFF_DOUBLE, FIELD_CUSTOM, 1, 1, name},
                                           {KEYS, -1, -1, TIFF_SHORT, FIELD_CUSTOM, 1, 1, name},
                                           {PARAMS, -1, -1, TIFF_DOUBLE, FIELD_CUSTOM, 1, 1, name},
                                           {TEXTS, -1, -1, TIFF_ASCII, FIELD_CUSTOM, 1, 0, name},
                                           {METADATA, -1, -1, TIFF_ASCII, FIELD_CUSTOM, 1, 0, name},
                                           {NO_DATA, -1, -1, TIFF_ASCII, FIELD_CUSTOM, 1, 0, name}};
    assert_int_equal(TIFFMergeFieldInfo(tif, fields, sizeof fields / sizeof fields[0]), 0);
}

/* Writes an RGB picture with these tags; orientation 0: none. */
static void make(const char *path, int orientation, const char *metadata, bool broken) {
    TIFF *tif = TIFFOpen(path, "w");
    unsigned char row[3 * W];
    assert_non_null(tif);
    know_tags(tif);
    TIFFSetField(tif, TIFFTAG_IMAGEWIDTH, W);
    TIFFSetField(tif, TIFFTAG_IMAGELENGTH, H);
    TIFFSetField(tif, TIFFTAG_SAMPLESPERPIXEL, 3);
    TIFFSetField(tif, TIFFTAG_BITSPERSAMPLE, 8);
    TIFFSetField(tif, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_RGB);
    TIFFSetField(tif, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
    if (orientation != 0) TIFFSetField(tif, TIFFTAG_ORIENTATION, orientation);
    TIFFSetField(tif, SCALE, broken ? 2 : 3, scale);
    TIFFSetField(tif, POINTS, 6, points);
    TIFFSetField(tif, KEYS, 12, keys);
    TIFFSetField(tif, PARAMS, 2, params);
    TIFFSetField(tif, TEXTS, "WGS 84|");
    TIFFSetField(tif, NO_DATA, "-9999");
    if (metadata != NULL) TIFFSetField(tif, METADATA, metadata);
    for (int y = 0; y < H; y++) {
        for (int i = 0; i < 3 * W; i++) row[i] = (unsigned char)(y * 5 + i * 3);
        assert_int_equal(TIFFWriteScanline(tif, row, (uint32_t)y, 0), 1);
    }
    TIFFClose(tif);
}

/* Values of a tag that libtiff does not know; NULL: it is not there. */
static const void *tag_of(TIFF *tif, uint32_t tag, unsigned *n) {
    const void *values = NULL;
    uint32_t count = 0;
    if (TIFFFindField(tif, tag, TIFF_ANY) == NULL || !TIFFGetField(tif, tag, &count, &values))
        return NULL;
    *n = count;
    return values;
}

static void has_doubles(TIFF *tif, uint32_t tag, const double *wanted, unsigned n) {
    unsigned count = 0;
    const double *got = tag_of(tif, tag, &count);
    if (got == NULL) fail_msg("no tag %u", tag);
    assert_int_equal(count, n);
    for (unsigned i = 0; i < n; i++)
        if (got[i] != wanted[i]) fail_msg("tag %u: %.17g, not %.17g", tag, got[i], wanted[i]);
}

static void has_text(TIFF *tif, uint32_t tag, const char *wanted) {
    unsigned n = 0;
    const char *got = tag_of(tif, tag, &n);
    if (wanted == NULL) assert_null(got);
    if (wanted != NULL) assert_string_equal(got, wanted);
}

/* What does not hang on the grid. */
static void check_rest(TIFF *tif) {
    unsigned n = 0;
    const void *got = tag_of(tif, KEYS, &n);
    assert_int_equal(n, 12);
    assert_memory_equal(got, keys, sizeof keys);
    has_doubles(tif, PARAMS, params, 2);
    has_text(tif, TEXTS, "WGS 84|");
    assert_null(tag_of(tif, NO_DATA, &n)); /* of the picture's samples, not of the output's */
}

static TIFF *opened(const char *path) {
    TIFF *tif = TIFFOpen(path, "r");
    if (tif == NULL) fail_msg("'%s' is not there", path);
    return tif;
}

/* Pixels of a quarter, from the same corner. */
static void check_upright(const char *path) {
    TIFF *tif = opened(path);
    has_doubles(tif, SCALE, (const double[]){0.125, 0.0625, 0}, 3);
    has_doubles(tif, POINTS, points, 6);
    unsigned n;
    assert_null(tag_of(tif, MATRIX, &n));
    check_rest(tif);
    has_text(tif, METADATA,
             "<GDALMetadata>\n  <Item name=\"PLACE\">here</Item>\n</GDALMetadata>\n");
    TIFFClose(tif);
}

static void test_kept(void **state) {
    (void)state;
    make("geo.tif", 0,
         "<GDALMetadata>\n  <Item name=\"PLACE\">here</Item>\n"
         "  <Item name=\"STATISTICS_MAXIMUM\" sample=\"0\">255</Item>\n</GDALMetadata>\n",
         false);
    expect(0, "run " NET " geo.tif -o out.tif");
    assert_non_null(strstr(err_text, "its no-data value -9999 is read as data")); /* and no more */
    assert_null(strchr(strchr(err_text, '\n') + 1, '\n'));
    check_upright("out.tif");
    expect(0, "run " NET " geo.tif --bits 8 --tiles 2x2 --memory 100MiB -o out.tif");
    check_upright("out.tif");
    /* parts hand it on */
    expect(0, "run " NET " geo.tif --part 1/2 -o g1.npy");
    expect(0, "run " NET " geo.tif --part 2/2 -o g2.npy");
    expect(0, "merge g2.npy g1.npy -o merged.tif");
    check_upright("merged.tif");
    expect(0, "merge g1.npy g2.npy --memory 64MiB --bits 16 -o merged.tif");
    check_upright("merged.tif");
}

/* A rectangle of the picture begins ten rows down and seven columns to the right. */
static void test_region(void **state) {
    (void)state;
    make("region.tif", 0, NULL, false);
    expect(0, "run " NET " region.tif --region 10,7,30,40 -o out.tif");
    TIFF *tif = opened("out.tif");
    has_doubles(tif, SCALE, (const double[]){0.125, 0.0625, 0}, 3);
    has_doubles(tif, POINTS, (const double[]){0, 0, 0, 450003.625, 5299998, 0}, 6);
    check_rest(tif);
    TIFFClose(tif);
}

/* Regions that are read as areas have the pixels of the regions, in coordinates of the picture's
 * system and in pixels. */
static void test_areas(void **state) {
    static const char *const options[] = {"areas.tif", "areas.tif --region 3,5,38,39",
                                          "areas.tif --coordinates pixels"};
    (void)state;
    for (int turned = 0; turned < 2; turned++) {
        make("areas.tif", turned ? 6 : 0, NULL, false);
        for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
            char command[200];
            (void)snprintf(command, sizeof command,
                           "run " RFX_PHASE_NET " %s --all-labels --regions r.geojson", options[i]);
            expect(0, command);
            (void)snprintf(command, sizeof command,
                           "run " RFX_PHASE_NET " %s --summary w.json --within r.geojson",
                           options[i]);
            expect(0, command);
            assert_true(assert_areas_are_regions("w.json", "r.geojson") > 2);
        }
    }
    expect(0, "run " RFX_PHASE_NET " areas.tif --regions r.geojson");
    expect_says(2,
                "run " RFX_PHASE_NET
                " areas.tif --summary w.json --within r.geojson --coordinates pixels",
                "the areas are in EPSG:32633, and coordinates are pixels");
}

static void test_list(void **state) {
    FILE *list = fopen("list.txt", "w");
    (void)state;
    assert_non_null(list);
    make("b.tif", 0, NULL, false);
    make("a.tif", 0, NULL, false);
    (void)fputs("a.tif\nb.tif\n", list);
    assert_int_equal(fclose(list), 0);
    (void)mkdir("listed", 0777);
    expect(0, "run " NET " --list list.txt --out-dir listed --as tif");
    for (int i = 0; i < 2; i++) {
        TIFF *tif = opened(i == 0 ? "listed/a.tif.tif" : "listed/b.tif.tif");
        has_doubles(tif, POINTS, points, 6);
        check_rest(tif);
        TIFFClose(tif);
    }
}

/* Seen with rows as columns: from the lower left corner up, then to the right. */
static void test_turned(void **state) {
    (void)state;
    make("turned.tif", 6, NULL, false);
    expect(0, "run " NET " turned.tif -o out.tif");
    TIFF *tif = opened("out.tif");
    unsigned n;
    assert_null(tag_of(tif, SCALE, &n));
    assert_null(tag_of(tif, POINTS, &n));
    has_doubles(tif, MATRIX,
                (const double[]){0, 0.125, 0, 450000.125, 0.0625, 0, 0, 5300000.5 - 10, 0, 0, 0, 0,
                                 0, 0, 0, 1},
                16);
    check_rest(tif);
    has_text(tif, METADATA, NULL);
    TIFFClose(tif);
    expect(0, "run " NET " turned.tif --no-orient -o out.tif");
    tif = opened("out.tif");
    has_doubles(tif, POINTS, points, 6);
    TIFFClose(tif);
}

/* The pixels of a file, row by row; 16 bits a sample. */
static unsigned short *pixels(const char *path, size_t *n) {
    TIFF *tif = opened(path);
    uint32_t h = 0, w = 0, side = 0;
    TIFFGetField(tif, TIFFTAG_IMAGELENGTH, &h);
    TIFFGetField(tif, TIFFTAG_IMAGEWIDTH, &w);
    *n = (size_t)h * w * 3;
    unsigned short *all = malloc(*n * sizeof *all), *tile = NULL;
    assert_non_null(all);
    if (!TIFFIsTiled(tif))
        for (uint32_t y = 0; y < h; y++)
            assert_int_equal(TIFFReadScanline(tif, all + (size_t)y * w * 3, y, 0), 1);
    else {
        TIFFGetField(tif, TIFFTAG_TILEWIDTH, &side);
        tile = malloc((size_t)side * side * 3 * sizeof *tile);
        assert_non_null(tile);
    }
    for (uint32_t i = 0; tile != NULL && i < h * w; i++) {
        uint32_t y = i / w, x = i % w;
        if (x % side == 0) assert_true(TIFFReadTile(tif, tile, x, y, 0, 0) > 0);
        memcpy(all + (size_t)i * 3, tile + ((size_t)(y % side) * side + x % side) * 3, 6);
    }
    free(tile);
    TIFFClose(tif);
    return all;
}

/* Tiles have the same samples as strips, from a run, its parts and a list. */
static void test_tiles(void **state) {
    (void)state;
    size_t n = 0, n_tiled = 0;
    expect(0, "run " NET " geo.tif --bits 16 --range 0,1 -o strips.tif");
    unsigned short *strips = pixels("strips.tif", &n);
    expect(0, "run " NET " geo.tif --bits 16 --range 0,1 --tiff-tile 48 --memory 100MiB -o t.tif");
    expect(0, "run " NET " geo.tif --bits 16 --range 0,1 --tiff-compress deflate -o d.tif");
    expect(0,
           "merge g1.npy g2.npy --bits 16 --range 0,1 --tiff-tile 64 --tiff-compress deflate "
           "-o m.tif --memory 40MiB");
    static const char *const names[] = {"t.tif", "d.tif", "m.tif"};
    for (int i = 0; i < 3; i++) {
        unsigned short *tiled = pixels(names[i], &n_tiled);
        assert_int_equal(n_tiled, n);
        assert_memory_equal(tiled, strips, n * sizeof *tiled);
        check_upright(names[i]);
        free(tiled);
    }
    free(strips);
    expect(0, "run " NET " geo.tif --overviews mean --tiff-tile 16 -o t.tif");
    expect(0, "run " NET " geo.tif --overviews mean --tiff-tile 16 --bands 4 --strips 2 -o d.tif");
    expect(0, "merge g1.npy g2.npy --overviews mean --tiff-tile 16 -o m.tif");
    assert_int_equal(system("cmp t.tif d.tif && cmp t.tif m.tif"), 0);
    expect(0, "info t.tif");
    assert_non_null(strstr(out_text, "reduced")); /* a copy */
    expect_says(2, "run " NET " geo.tif --overviews big -o t.tif", "mean or nearest");
    expect_says(2, "run " NET " geo.tif --overviews mean -o t.png", "ends in .tif or .ome.zarr");
    expect_says(2, "run " NET " geo.tif --tiff-tile 40 -o t.tif", "16, 32, ...");
    expect_says(2, "run " NET " geo.tif --tiff-compress lzw -o t.tif", "deflate, zstd or none");
    expect_says(2, "run " NET " geo.tif --tiff-tile 64 -o t.npy", "files of -o that end in .tif");
    expect_says(2, "run " NET " geo.tif --tiff-tile 64", "for the file of -o");
    expect_says(2, "run " NET " geo.tif --part 1/2 --tiff-tile 64 -o t.npy",
                "--part excludes --tiff-tile: a part is one .npy file; 'rfexec merge' takes");
    expect_says(2, "merge g1.npy g2.npy --tiff-tile 64 -o t.png", "files of -o that end in .tif");
}

/* COGs of a run, of one in bands and of its parts are the same, with the samples of strips. */
static void test_cog(void **state) {
    (void)state;
    size_t n = 0, n_cog = 0;
    expect(0, "run " NET " geo.tif --bits 16 --range 0,1 -o strips.tif");
    unsigned short *strips = pixels("strips.tif", &n);
    expect(0, "run " NET " geo.tif --bits 16 --range 0,1 --cog -o c.tif");
    expect(0, "run " NET " geo.tif --bits 16 --range 0,1 --cog --bands 4 --strips 2 -o d.tif");
    expect(0, "merge g1.npy g2.npy --bits 16 --range 0,1 --cog --memory 40MiB -o m.tif");
    assert_int_equal(system("cmp c.tif d.tif && cmp c.tif m.tif"), 0);
    unsigned short *cog = pixels("c.tif", &n_cog);
    assert_int_equal(n_cog, n);
    assert_memory_equal(cog, strips, n * sizeof *cog);
    check_upright("c.tif");
    free(cog);
    free(strips);
    expect(0, "plan " NET " geo.tif --for-output c.tif --cog");
    expect_says(2, "run " NET " geo.tif --cog -o c.ome.tif", "not in .ome.tif");
    expect_says(2, "run " NET " geo.tif --cog -o c.zarr", "files of -o that end in .tif");
    expect_says(2, "run " NET " geo.tif --cog", "for the file of -o");
}

/* OME-TIFF of a run, of one in bands and of its parts are the same, and are named by their files.
 */
static void test_ome_tiff(void **state) {
    (void)state;
    assert_int_equal(system("rm -rf o1 o2 o3 && mkdir o1 o2 o3 && printf 'a\\nb\\nc\\n' > names"),
                     0);
    expect(0, "run " NET
              " geo.tif --overviews mean --tiff-tile 16 --channel-names names -o o1/t.ome.tif");
    expect(0, "run " NET
              " geo.tif --overviews mean --tiff-tile 16 --channel-names names --bands 4 "
              "--strips 2 -o o2/t.ome.tif");
    expect(0,
           "merge g1.npy g2.npy --overviews mean --tiff-tile 16 --channel-names names "
           "--memory 40MiB -o o3/t.ome.tif");
    assert_int_equal(system("cmp o1/t.ome.tif o2/t.ome.tif && cmp o1/t.ome.tif o3/t.ome.tif"), 0);
    check_upright("o1/t.ome.tif");
    expect(0, "plan " NET " geo.tif --for-output t.ome.tif --overviews mean --channel-names names");
    expect_says(2, "run " NET " geo.tif --channel-names names -o t.tif", "that end in .ome.tif");
    expect_says(2, "run " NET " geo.tif --channel-names names", "for the file of -o");
    expect_says(2, "run " NET " geo.tif --tiff-compress zstd -o t.ome.tif", "read by all");
    expect_says(2, "merge g1.npy g2.npy --tiff-compress zstd -o t.ome.tif", "read by all");
    assert_int_equal(system("echo a > names"), 0);
    expect_says(2, "run " NET " geo.tif --channel-names names -o t.ome.tif", "1 lines for 3");
    assert_int_equal(access("t.ome.tif", F_OK), -1);
    assert_int_equal(system("rm -r o1 o2 o3 names"), 0);
}

/* Zarr folders of a run, of one in bands and of its parts are the same, with the TIFF's samples. */
static void test_zarr(void **state) {
    (void)state;
    enum { SIDE = 13 };
    assert_int_equal(system("rm -rf z.zarr b.zarr m.zarr t.zarr"), 0);
    unsigned short chunk[SIDE * SIDE + 1];
    size_t n = 0;
    expect(0, "run " NET " geo.tif --bits 16 --range 0,1 -o strips.tif");
    unsigned short *strips = pixels("strips.tif", &n);
    expect(0, "run " NET " geo.tif --bits 16 --range 0,1 --zarr-chunk 13 -o z.zarr");
    expect(0, "run " NET
              " geo.tif --bits 16 --range 0,1 --zarr-chunk 13 --bands 4 --strips 2 "
              "-o b.zarr");
    expect(0, "merge g1.npy g2.npy --bits 16 --range 0,1 --zarr-chunk 13 --memory 40MiB -o m.zarr");
    assert_int_equal(system("diff -r z.zarr b.zarr && diff -r z.zarr m.zarr"), 0);
    for (int c = 0; c < 3; c++) {
        char name[64];
        (void)snprintf(name, sizeof name, "z.zarr/c/0/%d/0/0", c);
        FILE *file = fopen(name, "rb");
        assert_non_null(file);
        assert_int_equal(fread(chunk, sizeof *chunk, SIDE * SIDE + 1, file), SIDE * SIDE);
        assert_int_equal(fclose(file), 0);
        for (int x = 0; x < SIDE; x++) assert_int_equal(chunk[x], strips[3 * x + c]);
    }
    free(strips);
    expect_says(2, "run " NET " geo.tif --overviews mean -o t.zarr", "ends in .tif or .ome.zarr");
    expect_says(5, "run " NET " geo.tif -o z.zarr", "z.zarr: is there already");
    expect(0, "plan " NET " geo.tif --for-output z.zarr --zarr-compress zstd");
    expect_says(2, "run " NET " geo.tif --zarr-format 1 -o t.zarr", "2 or 3");
    expect_says(2, "run " NET " geo.tif --zarr-compress lzw -o t.zarr", "zstd or none");
    expect_says(2, "run " NET " geo.tif --zarr-chunk 64 -o t.npy", "folders of -o that end in");
    expect_says(2, "merge g1.npy g2.npy --zarr-format 2 -o t.tif", "folders of -o that end in");
    expect_says(2, "run " NET " geo.tif --tiff-tile 64 -o t.zarr", "files of -o that end in .tif");
    assert_int_equal(access("t.zarr", F_OK), -1);
    assert_int_equal(system("rm -r z.zarr b.zarr m.zarr"), 0);
}

static void test_told(void **state) {
    (void)state;
    make("broken.tif", 0, NULL, true);
    expect(0, "run " NET " broken.tif -o out.tif");
    assert_non_null(strstr(err_text, "its ModelPixelScale is too long or none: it is not kept"));
    expect(0, "run " NET " geo.tif -o out.npy");
    assert_null(strstr(err_text, "georeference"));
}

/* Number `column` of the first line of a CSV file of regions, counted from 0. */
static double csv_number(const char *path, int column) {
    read_text(path, out_text);
    char *p = strchr(out_text, '\n') + 1;
    for (int i = 0; i < column; i++) p = strchr(p, ',') + 1;
    return strtod(p, NULL);
}

/* Twice the signed area of the first polygon's outer ring. */
static double ring_area(const char *text) {
    char *p = strstr(text, "\"coordinates\":[[[");
    double area = 0.0, x = 0.0, y = 0.0;
    assert_non_null(p);
    p += strlen("\"coordinates\":[[[");
    for (int n = 0;; n++) {
        double next_x = strtod(p, &p), next_y = strtod(p + 1, &p);
        if (n > 0) area += x * next_y - next_x * y;
        x = next_x;
        y = next_y;
        if (strncmp(p, "],[", 3) != 0) return area;
        p += 3;
    }
}

/* Regions are in the picture's coordinate system, of a part of the picture and of merged parts too.
 */
static void test_regions(void **state) {
    enum { LEFT = 7, TOP = 8, BOTTOM = 10, AREA = 3 };
    (void)state;
    make("in.tif", 0, NULL, false);
    const char *const found = "run " NET " in.tif --region 4,8,36,48 --threshold 0.1 ";
    char command[300];
    (void)snprintf(command, sizeof command, "%s--regions map.csv", found);
    expect(0, command);
    (void)snprintf(command, sizeof command, "%s--regions px.csv --coordinates pixels", found);
    expect(0, command);
    double left = csv_number("px.csv", LEFT), bottom = csv_number("px.csv", BOTTOM);
    assert_true(left >= 7.0 && bottom > csv_number("px.csv", TOP));
    assert_true(csv_number("map.csv", LEFT) == points[3] + left * scale[0]);
    assert_true(csv_number("map.csv", TOP) == points[4] - bottom * scale[1]);
    assert_true(csv_number("map.csv", AREA) == csv_number("px.csv", AREA) * scale[0] * scale[1]);
    (void)snprintf(command, sizeof command, "%s--regions map.geojson", found);
    expect(0, command);
    read_text("map.geojson", out_text);
    assert_non_null(strstr(out_text, "urn:ogc:def:crs:EPSG::32633"));
    assert_true(ring_area(out_text) > 0.0); /* counterclockwise */
    (void)snprintf(command, sizeof command, "%s--regions px.geojson --coordinates pixels", found);
    expect(0, command);
    read_text("px.geojson", out_text);
    assert_true(ring_area(out_text) > 0.0);
    assert_int_equal(system("rm -f p1.npy* p2.npy*"), 0);
    for (int i = 1; i <= 2; i++) {
        (void)snprintf(command, sizeof command,
                       "run " NET " in.tif --region 4,8,36,48 --part %d/2 -o p%d.npy", i, i);
        expect(0, command);
    }
    expect(0, "merge p1.npy p2.npy -o merged.geojson --threshold 0.1");
    read_text("merged.geojson", err_text);
    read_text("map.geojson", out_text);
    assert_string_equal(out_text, err_text);
}

/* Boxes lie in the picture that is read, of merged parts too. */
static void test_boxes(void **state) {
    (void)state;
    make("in.tif", 0, NULL, false);
    assert_int_equal(system("rm -f b1.npy* b2.npy*"), 0);
    expect(0, "run " NET " in.tif --bits 8 -o large.tif"); /* four times as many pixels a side */
    static const char run[] = "run yolov8n large.tif --region 32,16,160,208 ";
    char command[300];
    for (int i = 0; i < 2; i++) {
        const char *where = i == 0 ? "" : "--coordinates pixels ";
        (void)snprintf(command, sizeof command, "%s%s--score 0.1 -o boxes%d.csv", run, where, i);
        expect(0, command);
        for (int k = 1; k <= 2; k++) {
            (void)snprintf(command, sizeof command, "%s--part %d/2 -o b%d.npy", run, k, k);
            expect(0, command);
        }
        (void)snprintf(command, sizeof command, "merge b1.npy b2.npy %s--score 0.1 -o merged.csv",
                       where);
        expect(0, command);
        (void)snprintf(command, sizeof command, "boxes%d.csv", i);
        assert_same_files(command, "merged.csv");
    }
    enum { LEFT = 3, TOP = 4 };
    double left = csv_number("boxes1.csv", LEFT), top = csv_number("boxes1.csv", TOP);
    assert_true(csv_number("boxes0.csv", LEFT) == points[3] + left * (scale[0] / 4));
    assert_true(csv_number("boxes0.csv", TOP) == points[4] - top * (scale[1] / 4));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kept), cmocka_unit_test(test_region),   cmocka_unit_test(test_areas),
        cmocka_unit_test(test_list), cmocka_unit_test(test_turned),   cmocka_unit_test(test_tiles),
        cmocka_unit_test(test_cog),  cmocka_unit_test(test_ome_tiff), cmocka_unit_test(test_zarr),
        cmocka_unit_test(test_told), cmocka_unit_test(test_regions),  cmocka_unit_test(test_boxes)};
    TIFFSetWarningHandler(NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
