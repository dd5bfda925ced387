/* Georeferences on other grids, worked out on paper. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "rfexec/image/geo/georeference.h"
#include "tests/support/test_util.h"

static double points[] = {0, 0, 0, 500000, 4000000, 7, 10, 20, 0, 500100, 3999800, 7};
static uint16_t area[] = {1, 1, 0, 1, 1025, 0, 1, 1}, point[] = {1, 1, 0, 1, 1025, 0, 1, 2};
static char texts[] = "WGS 84|";

static struct rfx_georeference place(const struct rfx_georeference *geo,
                                     struct rfx_geo_affine affine, struct rfx_memory *mem) {
    struct rfx_georeference out;
    assert_int_equal(rfx_georeference_place(geo, &affine, mem, &out, NULL), RFX_OK);
    return out;
}

static void check(const double *got, const double *wanted, int n) {
    for (int i = 0; i < n; i++)
        if (got[i] != wanted[i]) fail_msg("number %d: %.17g, not %.17g", i, got[i], wanted[i]);
}

/* 10 m by 5 m pixels, on a grid of twice and four times their size that begins half a pixel left
 * and 1.5 above; of middles the same affine moves by other halves. */
static void scaled(void **state) {
    (void)state;
    const struct rfx_geo_affine affine = {{2, 0, -0.5}, {0, 4, -1.5}};
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_georeference geo = {.has_scale = true,
                                   .scale = {10, 5, 1},
                                   .n_points = 6,
                                   .points = points,
                                   .n_keys = 8,
                                   .keys = area,
                                   .texts = texts};
    struct rfx_georeference got = place(&geo, affine, mem);
    check(got.scale, (const double[]){20, 20, 1}, 3);
    assert_int_equal(got.n_points, 6);
    check(got.points, (const double[]){0, 0, 0, 499995, 4000007.5, 7}, 6);
    assert_memory_equal(got.keys, area, sizeof area);
    assert_string_equal(got.texts, texts);
    assert_false(got.has_matrix);
    rfx_georeference_release(&got);
    geo.keys = point; /* the middle of pixel 0 is at -0.5 + 1 - 0.5 = 0 and -1.5 + 2 - 0.5 = 0 */
    got = place(&geo, affine, mem);
    check(got.points, (const double[]){0, 0, 0, 500000, 4000000, 7}, 6);
    rfx_georeference_release(&got);
    geo.keys = area;
    got = place(&geo, (struct rfx_geo_affine){{1, 0, 0}, {0, 1, 0}}, mem);
    check(got.points, points, 6);
    rfx_georeference_release(&got);
    struct rfx_error err;
    const struct rfx_geo_affine flat = {{2, 0, 0}, {4, 0, 0}};
    assert_int_equal(rfx_georeference_place(&geo, &flat, mem, &got, &err),
                     RFX_STATUS_INVALID_ARGUMENT);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

/* Corners of pixels in coordinates: of a scale with its first tie point, and of a matrix. */
static void affine(void **state) {
    (void)state;
    double twice[12] = {2, 3, 0, 500000, 4000000, 7, 9, 9, 9, 9, 9, 9};
    struct rfx_georeference geo = {.has_scale = true, .scale = {10, 5, 1}, .points = twice};
    struct rfx_geo_affine got;
    assert_false(rfx_georeference_affine(&geo, &got)); /* no tie point */
    for (geo.n_points = 6; geo.n_points <= 12; geo.n_points += 6) {
        assert_true(rfx_georeference_affine(&geo, &got));
        check(got.x, (const double[]){10, 0, 499980}, 3);
        check(got.y, (const double[]){0, -5, 4000015}, 3);
    }
    geo.keys = point;
    geo.n_keys = 8;
    assert_true(rfx_georeference_affine(&geo, &got)); /* raster positions count from middles */
    check(got.x, (const double[]){10, 0, 499975}, 3);
    check(got.y, (const double[]){0, -5, 4000017.5}, 3);
    geo = (struct rfx_georeference){.has_matrix = true, .matrix = {1, 2, 0, 3, 4, 5, 0, 6}};
    assert_true(rfx_georeference_affine(&geo, &got));
    check(got.x, (const double[]){1, 2, 3}, 3);
    check(got.y, (const double[]){4, 5, 6}, 3);
    geo = (struct rfx_georeference){.n_points = 12, .points = twice};
    assert_false(rfx_georeference_affine(&geo, &got)); /* ground control points */
}

static void codes(void **state) {
    uint16_t keys[] = {1, 1, 0, 2, 2048, 0, 1, 4326, 3072, 0, 1, 32633};
    struct rfx_georeference geo = {.n_keys = 12, .keys = keys};
    (void)state;
    assert_int_equal(rfx_georeference_epsg(&geo), 32633);
    keys[11] = 32767; /* a system of the user's own */
    assert_int_equal(rfx_georeference_epsg(&geo), 4326);
    keys[7] = 32767;
    assert_int_equal(rfx_georeference_epsg(&geo), 0);
    keys[5] = 34736; /* the value stands elsewhere */
    keys[7] = 4326;
    assert_int_equal(rfx_georeference_epsg(&geo), 0);
}

/* Only a projected system whose unit is the metre. */
static void metres(void **state) {
    uint16_t keys[] = {1, 1, 0, 2, 1024, 0, 1, 1, 3076, 0, 1, 9001};
    struct rfx_georeference geo = {.n_keys = 12, .keys = keys};
    (void)state;
    assert_true(rfx_georeference_is_metric(&geo));
    keys[11] = 9003; /* feet */
    assert_false(rfx_georeference_is_metric(&geo));
    keys[11] = 9001;
    keys[7] = 2; /* degrees */
    assert_false(rfx_georeference_is_metric(&geo));
    keys[7] = 1;
    geo.n_keys = 8; /* no unit */
    assert_false(rfx_georeference_is_metric(&geo));
}

/* Turned pictures have a matrix; points go where their pixels go. */
static void turned(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_georeference geo = {
        .has_scale = true, .scale = {10, 5, 0}, .n_points = 6, .points = points};
    /* 6: of 30 stored rows and 40 columns; as it is seen, columns are rows from below */
    struct rfx_geo_affine turn = rfx_geo_turn(6, 30, 40);
    struct rfx_georeference got = place(&geo, turn, mem);
    assert_true(got.has_matrix && !got.has_scale && got.n_points == 0);
    check(got.matrix,
          (const double[]){0, 10, 0, 500000, 5, 0, 0, 4000000 - 150, 0, 0, 0, 7, 0, 0, 0, 1}, 16);
    struct rfx_georeference again = place(&got, (struct rfx_geo_affine){{2, 0, 1}, {0, 2, 3}}, mem);
    check(again.matrix,
          (const double[]){0, 20, 0, 500030, 10, 0, 0, 4000000 - 145, 0, 0, 0, 7, 0, 0, 0, 1}, 16);
    rfx_georeference_release(&again);
    rfx_georeference_release(&got);
    geo.has_scale = false; /* control points: columns 0 and 10, rows 0 and 20 as stored */
    geo.n_points = 12;
    got = place(&geo, turn, mem);
    assert_true(got.n_points == 12 && !got.has_matrix);
    check(got.points, (const double[]){30, 0, 0, 500000, 4000000, 7, 10, 10, 0, 500100, 3999800, 7},
          12);
    rfx_georeference_release(&got);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

/* Every orientation takes the corners of what is seen to corners of what is stored, and the upper
 * left pixel to the one that the tag names. */
static void orientations(void **state) {
    (void)state;
    static const double first[][2] = {{0.5, 0.5}, {0.5, 7.5}, {3.5, 7.5}, {3.5, 0.5},
                                      {0.5, 0.5}, {3.5, 0.5}, {3.5, 7.5}, {0.5, 7.5}};
    for (int o = 1; o <= 8; o++) { /* 4 rows, 8 columns as stored */
        struct rfx_geo_affine t = rfx_geo_turn(o, 4, 8);
        double h = o >= 5 ? 8 : 4, w = o >= 5 ? 4 : 8, corners = 0;
        assert_true((t.y[0] + t.y[1]) * 0.5 + t.y[2] == first[o - 1][0]);
        assert_true((t.x[0] + t.x[1]) * 0.5 + t.x[2] == first[o - 1][1]);
        for (int k = 0; k < 4; k++) {
            double c = k % 2 * w, r = k / 2 * h;
            double x = t.x[0] * c + t.x[1] * r + t.x[2], y = t.y[0] * c + t.y[1] * r + t.y[2];
            corners += (x == 0 || x == 8) && (y == 0 || y == 4);
        }
        assert_true(corners == 4);
    }
}

static enum rfx_status place_once(struct rfx_memory *mem, void *context, struct rfx_error *err) {
    struct rfx_georeference out;
    const struct rfx_geo_affine affine = {{2, 0, 0}, {0, 2, 0}};
    enum rfx_status status = rfx_georeference_place(context, &affine, mem, &out, err);
    if (status == RFX_OK) rfx_georeference_release(&out);
    return status;
}

static void survives_failing_allocations(void **state) {
    struct rfx_georeference geo = {.n_points = 12,
                                   .points = points,
                                   .n_keys = 8,
                                   .keys = area,
                                   .n_params = 6,
                                   .params = points,
                                   .texts = texts,
                                   .no_data = texts,
                                   .metadata = texts};
    (void)state;
    assert_int_equal(test_fail_each_allocation(place_once, &geo), 6);
}

/* 0.5 by 0.25 micrometres: twice and four times as large, and turned. */
static void pixels_have_sizes(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_georeference geo = {.pixel_um = {0.5, 0.25}};
    assert_false(rfx_georeference_is_empty(&geo));
    assert_true(rfx_georeference_is_size(&geo));
    struct rfx_georeference got = place(&geo, (struct rfx_geo_affine){{2, 0, 1}, {0, 4, 3}}, mem);
    check(got.pixel_um, (const double[]){1, 1}, 2);
    got = place(&geo, rfx_geo_turn(6, 30, 40), mem);
    check(got.pixel_um, (const double[]){0.25, 0.5}, 2);
    got = place(&geo, rfx_geo_turn(1, 30, 40), mem);
    check(got.pixel_um, (const double[]){0.5, 0.25}, 2);
    geo.texts = texts;
    assert_false(rfx_georeference_is_size(&geo));
    rfx_memory_free(mem);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scaled),
        cmocka_unit_test(affine),
        cmocka_unit_test(codes),
        cmocka_unit_test(metres),
        cmocka_unit_test(turned),
        cmocka_unit_test(orientations),
        cmocka_unit_test(pixels_have_sizes),
        cmocka_unit_test(survives_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
