/* Smallest rectangles of regions against every edge of every pair of pixels, and by hand: random
 * shapes with holes and parts that touch at corners, discs, turned stripes, lines, equal areas. */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rfexec/answers/region_rectangle.h"
#include "tests/support/test_util.h"

enum { SIDE = 40, INSIDE = 1 };

struct found { /* of the last region */
    struct rfx_region_hull *hull;
    struct rfx_rectangle rectangle;
    bool has;
    int regions;
};

static enum rfx_status take(void *user, const struct rfx_region *region, struct rfx_error *err) {
    struct found *found = user;
    (void)err;
    found->has = rfx_region_rectangle(found->hull, region, &found->rectangle);
    found->regions++;
    return RFX_OK;
}

/* Finds the rectangle of a map's only region. */
static struct found find(int64_t labels[SIDE][SIDE]) {
    const struct rfx_regions_options options = {
        .width = SIDE, .connectivity = 8, .has_background = true};
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_regions *regions = NULL;
    struct found found = {.regions = 0};
    struct rfx_error err = {{0}};
    assert_int_equal(rfx_region_hull_create(mem, SIDE, &found.hull, &err), RFX_OK);
    assert_true(rfx_memory_current_bytes(mem) <= rfx_region_hull_bytes(SIDE));
    assert_int_equal(rfx_regions_create(mem, &options, take, &found, &regions, &err), RFX_OK);
    for (int y = 0; y < SIDE; y++)
        assert_int_equal(rfx_regions_row(regions, labels[y], NULL, &err), RFX_OK);
    assert_int_equal(rfx_regions_end(regions, &err), RFX_OK);
    rfx_regions_free(regions);
    rfx_region_hull_free(found.hull);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
    return found;
}

/* Returns the smallest area by trying each pair of pixels with all others on one side of the line
 * through them; -1: all lie on a line. */
static double least_area(int64_t labels[SIDE][SIDE]) {
    static int x[SIDE * SIDE], y[SIDE * SIDE];
    int n = 0;
    double least = -1;
    for (int i = 0; i < SIDE * SIDE; i++)
        if (labels[i / SIDE][i % SIDE] == INSIDE) {
            x[n] = i % SIDE;
            y[n++] = i / SIDE;
        }
    for (int a = 0; a < n; a++)
        for (int b = 0; b < n; b++) {
            int ex = x[b] - x[a], ey = y[b] - y[a], most = 0, lo = 0, hi = 0;
            bool edge = a != b;
            for (int k = 0; k < n && edge; k++) {
                int across = ex * (y[k] - y[a]) - ey * (x[k] - x[a]);
                int along = ex * (x[k] - x[a]) + ey * (y[k] - y[a]);
                edge = across >= 0;
                most = across > most ? across : most;
                lo = along < lo ? along : lo;
                hi = along > hi ? along : hi;
            }
            double area = (double)most * (double)(hi - lo) / (double)(ex * ex + ey * ey);
            if (edge && most > 0 && (least < 0 || area < least)) least = area;
        }
    return least;
}

/* Whether all pixels lie inside the rectangle, but for rounding. */
static void assert_holds(int64_t labels[SIDE][SIDE], const struct rfx_rectangle *r) {
    double length = sqrt((double)(r->edge[0] * r->edge[0] + r->edge[1] * r->edge[1]));
    double ux = (double)r->edge[0] / length, uy = (double)r->edge[1] / length;
    for (int i = 0; i < SIDE * SIDE; i++) {
        if (labels[i / SIDE][i % SIDE] != INSIDE) continue;
        double x = i % SIDE + 0.5 - r->centre[0], y = i / SIDE + 0.5 - r->centre[1];
        assert_true(fabs(x * ux + y * uy) <= r->side[0] / 2 + 1e-9);
        assert_true(fabs(y * ux - x * uy) <= r->side[1] / 2 + 1e-9);
    }
}

static int64_t labels[SIDE][SIDE];

static void check(const char *what) {
    double want = least_area(labels);
    const struct found found = find(labels);
    assert_int_equal(found.regions, 1);
    if (found.has != (want > 0)) fail_msg("%s: %d, wanted area %g", what, found.has, want);
    if (!found.has) return;
    double area = found.rectangle.side[0] * found.rectangle.side[1];
    if (!(fabs(area - want) <= 1e-9 * want))
        fail_msg("%s: area %.17g, wanted %.17g", what, area, want);
    assert_holds(labels, &found.rectangle);
}

/* Grows a region by random neighbours, corners too. */
static void draw_blob(struct test_rng *rng, int steps) {
    int x = (int)test_rng_int(rng, 0, SIDE - 1), y = (int)test_rng_int(rng, 0, SIDE - 1);
    memset(labels, 0, sizeof labels);
    for (int i = 0; i < steps; i++) {
        labels[y][x] = INSIDE;
        int dx = (int)test_rng_int(rng, -1, 1), dy = (int)test_rng_int(rng, -1, 1);
        if (x + dx >= 0 && x + dx < SIDE) x += dx;
        if (y + dy >= 0 && y + dy < SIDE) y += dy;
    }
}

static void random_shapes(void **state) {
    (void)state;
    for (int i = 0; i < 400; i++) {
        struct test_rng rng = test_rng_make((uint64_t)i);
        char what[32];
        (void)snprintf(what, sizeof what, "shape %d", i);
        draw_blob(&rng, (int)test_rng_int(&rng, 1, i % 4 == 0 ? 8 : 90));
        check(what);
    }
}

static void discs_and_turned_stripes(void **state) {
    (void)state;
    for (int i = 0; i < 60; i++) {
        double angle = i * 0.1, cosine = cos(angle), sine = sin(angle);
        double w = i % 3 == 0 ? 9.3 : 14, h = i % 3 == 0 ? 9.3 : 3;
        char what[32];
        (void)snprintf(what, sizeof what, "stripe %d", i);
        for (int k = 0; k < SIDE * SIDE; k++) {
            double x = k % SIDE - 19.7, y = k / SIDE - 20.2;
            double along = (x * cosine + y * sine) / w, across = (y * cosine - x * sine) / h;
            bool inside = i % 3 == 0 ? along * along + across * across < 1
                                     : fabs(along) < 1 && fabs(across) < 1;
            labels[k / SIDE][k % SIDE] = inside ? INSIDE : 0;
        }
        check(what);
    }
}

static void shapes_by_hand(void **state) {
    (void)state;
    memset(labels, 0, sizeof labels);
    for (int i = 0; i < 24; i++) labels[3 + i / 6][5 + i % 6] = INSIDE;
    struct found found = find(labels);
    assert_true(found.has);
    const struct rfx_rectangle *r = &found.rectangle;
    assert_true(r->edge[0] == 5 && r->edge[1] == 0 && r->side[0] == 5 && r->side[1] == 3);
    assert_true(r->centre[0] == 8 && r->centre[1] == 5);
    /* A diamond of 13 pixels: all four edges have the same area; the first from the top counts. */
    memset(labels, 0, sizeof labels);
    for (int y = -2; y <= 2; y++)
        for (int x = -2; x <= 2; x++)
            if (abs(x) + abs(y) <= 2) labels[10 + y][10 + x] = INSIDE;
    found = find(labels);
    assert_true(r->edge[0] == 2 && r->edge[1] == 2 && r->centre[0] == 10.5 && r->centre[1] == 10.5);
    assert_true(fabs(r->side[0] - sqrt(8)) < 1e-12 && fabs(r->side[1] - sqrt(8)) < 1e-12);
    /* Lines have no rectangle, nor has a pixel. */
    for (int way = 0; way < 4; way++) {
        memset(labels, 0, sizeof labels);
        for (int i = 0; i < 9; i++)
            labels[way == 0 ? 20 : 10 + i][way == 1 ? 20 : way == 2 ? 30 - i : 10 + i] = INSIDE;
        found = find(labels);
        assert_false(found.has);
    }
    memset(labels, 0, sizeof labels);
    labels[SIDE - 1][SIDE - 1] = INSIDE;
    found = find(labels);
    assert_true(found.regions == 1 && !found.has);
}

/* Products of a region of 2^31 - 1 columns do not fit 64 bits: its lower rows are one pixel at the
 * right. */
static void huge_regions(void **state) {
    (void)state;
    const int32_t n = INT32_MAX;
    const int32_t points[4][2] = {{0, 0}, {n, 0}, {n, 1}, {0, 1}};
    const struct rfx_region_ring ring = {points, 4, true};
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_region region = {.box = rfx_rect_make(0, 1, 0, n), .rings = &ring, .n_rings = 1};
    struct rfx_region_hull *hull = NULL;
    struct rfx_rectangle r;
    assert_int_equal(rfx_region_hull_create(mem, 3, &hull, NULL), RFX_OK);
    assert_false(rfx_region_rectangle(hull, &region, &r)); /* one row */
    /* Three rows, the lower ones of one pixel at the right: the edge is nearly the whole width. */
    const int32_t flag[6][2] = {{0, 0}, {n, 0}, {n, 3}, {n - 1, 3}, {n - 1, 1}, {0, 1}};
    const struct rfx_region_ring bent = {flag, 6, true};
    region.rings = &bent;
    region.box = rfx_rect_make(0, 3, 0, n);
    assert_true(rfx_region_rectangle(hull, &region, &r));
    assert_true(r.side[0] > 2e9 && r.side[1] > 1.99 && r.side[1] <= 2);
    assert_true(fabs(r.centre[0] - n / 2.0) < 2 && fabs(r.centre[1] - 1.5) < 1e-6);
    rfx_region_hull_free(hull);
    rfx_region_hull_free(NULL);
    rfx_memory_free(mem);
}

/* Two squares far apart on a diagonal: numerators of areas have more than 64 bits. */
static void large_diagonals(void **state) {
    (void)state;
    enum { MOST = 200000, SQUARE = 10 };
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_region_hull *hull = NULL;
    assert_int_equal(rfx_region_hull_create(mem, MOST + SQUARE, &hull, NULL), RFX_OK);
    for (int32_t far = 1000; far <= MOST; far += 19900) {
        const int32_t points[2][4][2] = {
            {{0, 0}, {SQUARE, 0}, {SQUARE, SQUARE}, {0, SQUARE}},
            {{far, far}, {far + SQUARE, far}, {far + SQUARE, far + SQUARE}, {far, far + SQUARE}}};
        const struct rfx_region_ring rings[2] = {{points[0], 4, true}, {points[1], 4, true}};
        const struct rfx_region region = {
            .box = rfx_rect_make(0, far + SQUARE, 0, far + SQUARE), .rings = rings, .n_rings = 2};
        struct rfx_rectangle r;
        assert_true(rfx_region_rectangle(hull, &region, &r));
        assert_true(r.edge[0] == far && r.edge[1] == far);
        assert_true(fabs(r.side[0] - (far + SQUARE - 1) * sqrt(2)) < 1e-6);
        assert_true(fabs(r.side[1] - (SQUARE - 1) * sqrt(2)) < 1e-6);
    }
    rfx_region_hull_free(hull);
    rfx_memory_free(mem);
}

static enum rfx_status build(struct rfx_memory *mem, void *context, struct rfx_error *err) {
    struct rfx_region_hull *hull = NULL;
    enum rfx_status status = rfx_region_hull_create(mem, *(const int64_t *)context, &hull, err);
    rfx_region_hull_free(hull);
    return status;
}

static void failing_allocations(void **state) {
    (void)state;
    int64_t rows = 100;
    assert_int_equal(test_fail_each_allocation(build, &rows), 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_shapes),   cmocka_unit_test(discs_and_turned_stripes),
        cmocka_unit_test(shapes_by_hand),  cmocka_unit_test(huge_regions),
        cmocka_unit_test(large_diagonals), cmocka_unit_test(failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
