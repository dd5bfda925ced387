/* Simplified rings against exact ones: cases by hand; random maps in a frame, where each line must
 * be there in both directions, once from each side, cross no other one, and be near. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rfexec/answers/label_regions.h"
#include "rfexec/answers/region_simplify.h"
#include "tests/support/test_util.h"

enum {
    MOST_SIDE = 24,
    MOST_LINES = 8 * MOST_SIDE * MOST_SIDE,
    MOST_REGIONS = MOST_SIDE * MOST_SIDE
};

struct line {
    int32_t from[2], to[2]; /* in halves of pixels */
    int region, ring;
};

struct kept {
    struct line lines[MOST_LINES];
    int n, n_regions, rings[MOST_REGIONS];
    int64_t areas[MOST_REGIONS];
};

static enum rfx_status keep(void *user, const struct rfx_region *region, struct rfx_error *err) {
    struct kept *kept = user;
    int scale = (int)(region->unit * 2);
    (void)err;
    for (int64_t r = 0; r < region->n_rings; r++) {
        const struct rfx_region_ring *ring = &region->rings[r];
        for (int64_t i = 0; i < ring->n; i++) {
            struct line *line = &kept->lines[kept->n++];
            for (int axis = 0; axis < 2; axis++) {
                line->from[axis] = scale * ring->points[i][axis];
                line->to[axis] = scale * ring->points[i + 1 < ring->n ? i + 1 : 0][axis];
            }
            line->region = kept->n_regions;
            line->ring = (int)r;
        }
    }
    kept->areas[kept->n_regions] = region->area;
    kept->rings[kept->n_regions++] = (int)region->n_rings;
    return RFX_OK;
}

static enum rfx_status run(struct rfx_memory *mem, const int64_t *labels, int64_t h, int64_t w,
                           const struct rfx_regions_options *given, struct kept *kept,
                           struct rfx_error *err) {
    struct rfx_regions_options options = *given;
    struct rfx_regions *regions = NULL;
    options.width = w;
    kept->n = kept->n_regions = 0;
    enum rfx_status status = rfx_regions_create(mem, &options, keep, kept, &regions, err);
    for (int64_t y = 0; y < h && status == RFX_OK; y++)
        status = rfx_regions_row(regions, labels + y * w, NULL, err);
    if (status == RFX_OK) status = rfx_regions_end(regions, err);
    rfx_regions_free(regions);
    return status;
}

static void run_well(const int64_t *labels, int64_t h, int64_t w,
                     const struct rfx_regions_options *options, struct kept *kept) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_error err = {{0}};
    if (run(mem, labels, h, w, options, kept, &err) != RFX_OK) fail_msg("%s", err.text);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

static void assert_points(const struct kept *kept, int first, const double (*wanted)[2], int n) {
    for (int i = 0; i < n; i++)
        for (int axis = 0; axis < 2; axis++)
            if (kept->lines[first + i].from[axis] != (int32_t)(2 * wanted[i][axis]))
                fail_msg("point %d is (%g, %g), not (%g, %g)", i,
                         kept->lines[first + i].from[0] / 2.0, kept->lines[first + i].from[1] / 2.0,
                         wanted[i][0], wanted[i][1]);
}

/* A triangle: the middles of the staircase's steps are on one line. At (1, 0) and (6, 5) the
 * staircase meets the map's border, and corners of long edges stay. */
static void staircase(void **state) {
    static const int64_t labels[] = {
        1, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0,
        1, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1,
    };
    static const double exact[][2] = {{0, 0}, {1, 0}, {1, 1}, {2, 1}, {2, 2}, {3, 2}, {3, 3},
                                      {4, 3}, {4, 4}, {5, 4}, {5, 5}, {6, 5}, {6, 6}, {0, 6}};
    static const double simple[][2] = {{1, 0}, {1.5, 1}, {5, 4.5}, {6, 5}, {6, 6}, {0, 6}, {0, 0}};
    static struct kept kept;
    struct rfx_regions_options options = {.connectivity = 4, .has_background = true};
    (void)state;
    run_well(labels, 6, 6, &options, &kept);
    assert_int_equal(kept.n, 14);
    assert_points(&kept, 0, exact, 14);
    options.tolerance = 0.5;
    run_well(labels, 6, 6, &options, &kept);
    assert_int_equal(kept.n, 7);
    assert_points(&kept, 0, simple, 7);
}

/* A pixel and a rectangle stay; an edge that three regions end at has the junction as a point. */
static void small_rings(void **state) {
    static const int64_t labels[] = {0, 0, 0, 0, 0, 0, 1, 0, 2, 2, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0};
    static const double pixel[][2] = {{1, 1}, {2, 1}, {2, 2}, {1, 2}};
    static const double upper[][2] = {{5, 1}, {5, 2}, {3, 2}, {3, 1}};
    static struct kept kept;
    struct rfx_regions_options options = {
        .connectivity = 4, .has_background = true, .tolerance = 0.7};
    (void)state;
    run_well(labels, 4, 5, &options, &kept);
    assert_int_equal(kept.n_regions, 3);
    assert_points(&kept, 0, pixel, 4);
    assert_points(&kept, 4, upper, 4);
    assert_int_equal(kept.n, 12);
}

static int64_t turn(const int32_t a[2], const int32_t b[2], const int32_t c[2]) {
    return ((int64_t)b[0] - a[0]) * (c[1] - a[1]) - ((int64_t)b[1] - a[1]) * (c[0] - a[0]);
}

static int sign(int64_t value) {
    return (value > 0) - (value < 0);
}

static bool same_point(const int32_t a[2], const int32_t b[2]) {
    return a[0] == b[0] && a[1] == b[1];
}

static bool is_on(const struct line *line, const int32_t p[2]) {
    if (turn(line->from, line->to, p) != 0) return false;
    for (int axis = 0; axis < 2; axis++)
        if ((p[axis] < line->from[axis] && p[axis] < line->to[axis]) ||
            (p[axis] > line->from[axis] && p[axis] > line->to[axis]))
            return false;
    return true;
}

static bool is_inside(const struct line *line, const int32_t p[2]) {
    return is_on(line, p) && !same_point(line->from, p) && !same_point(line->to, p);
}

/* Whether two lines have more in common than ends, unless they are one line. */
static bool cross(const struct line *a, const struct line *b) {
    if (is_inside(a, b->from) || is_inside(a, b->to) || is_inside(b, a->from) ||
        is_inside(b, a->to))
        return true;
    return sign(turn(a->from, a->to, b->from)) * sign(turn(a->from, a->to, b->to)) < 0 &&
           sign(turn(b->from, b->to, a->from)) * sign(turn(b->from, b->to, a->to)) < 0;
}

/* Distance of a point from a line, in pixels. */
static double distance(const struct line *line, const int32_t p[2]) {
    double d[2], v[2], square = 0, along = 0;
    for (int axis = 0; axis < 2; axis++) {
        d[axis] = line->to[axis] - line->from[axis];
        v[axis] = p[axis] - line->from[axis];
        square += d[axis] * d[axis];
        along += d[axis] * v[axis];
    }
    double share = fmin(fmax(along / square, 0), 1);
    return hypot(v[0] - share * d[0], v[1] - share * d[1]) / 2;
}

/* Distance of a point of one ring from the same ring of another run. */
static double distance_to_ring(const struct kept *kept, const struct line *of, const int32_t p[2]) {
    double least = INFINITY;
    for (int i = 0; i < kept->n; i++)
        if (kept->lines[i].region == of->region && kept->lines[i].ring == of->ring)
            least = fmin(least, distance(&kept->lines[i], p));
    return least;
}

static bool has_reverse(const struct kept *kept, const struct line *line) {
    for (int i = 0; i < kept->n; i++)
        if (same_point(kept->lines[i].from, line->to) && same_point(kept->lines[i].to, line->from))
            return true;
    return false;
}

/* Returns what is wrong, or NULL. */
static const char *find_fault(const struct kept *exact, const struct kept *simple,
                              double tolerance) {
    int alone = 0;
    if (exact->n_regions != simple->n_regions) return "other regions";
    for (int k = 0; k < exact->n_regions; k++)
        if (exact->areas[k] != simple->areas[k] || exact->rings[k] != simple->rings[k])
            return "other areas or rings";
    for (int i = 0; i < exact->n; i++)
        if (distance_to_ring(simple, &exact->lines[i], exact->lines[i].from) > tolerance + 1e-9)
            return "a corner that is too far";
    for (int i = 0; i < simple->n; i++) {
        const struct line *line = &simple->lines[i];
        if (same_point(line->from, line->to)) return "a line of no length";
        if (distance_to_ring(exact, line, line->from) > 1e-9)
            return "a point beside the exact ring";
        alone += !has_reverse(simple, line);
        for (int k = 0; k < i; k++)
            if (cross(line, &simple->lines[k])) return "lines that cross";
    }
    return alone == 4 ? NULL : "lines that the neighbour does not have"; /* the frame's own four */
}

static void draw_map(struct test_rng *rng, int64_t *labels, int64_t h, int64_t w) {
    int64_t most = test_rng_int(rng, 1, 4), side = test_rng_int(rng, 1, 4);
    bool slope = test_rng_int(rng, 0, 1) == 1;
    int64_t a = test_rng_int(rng, 1, 4), b = test_rng_int(rng, -3, 3);
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++) {
            int64_t i = y * w + x, above = y % side != 0 ? i - w : i - 1;
            bool frame = y == 0 || x == 0 || y == h - 1 || x == w - 1;
            bool same = (y % side != 0 || x % side != 0) && y > 1 && x > 1;
            labels[i] = same ? labels[above] : test_rng_int(rng, 0, most);
            if (slope) labels[i] = ((y * a + x * b) / 5 + 100) % (most + 1);
            if (frame) labels[i] = 9;
        }
}

static void random_maps(void **state) {
    static const double tolerances[] = {0.1, 0.36, 0.5, 0.6, 0.7};
    static struct kept exact, simple;
    static int64_t labels[MOST_SIDE * MOST_SIDE];
    struct test_rng rng = test_rng_make(20261);
    int fewer = 0;
    (void)state;
    for (int i = 0; i < 400; i++) {
        int64_t h = test_rng_int(&rng, 3, MOST_SIDE), w = test_rng_int(&rng, 3, MOST_SIDE);
        struct rfx_regions_options options = {.connectivity = i % 2 == 0 ? 4 : 8};
        draw_map(&rng, labels, h, w);
        run_well(labels, h, w, &options, &exact);
        options.tolerance = tolerances[i % 5];
        run_well(labels, h, w, &options, &simple);
        fewer += simple.n < exact.n;
        const char *fault = find_fault(&exact, &simple, options.tolerance);
        if (fault == NULL) continue;
        for (int64_t k = 0; k < h * w; k++)
            fprintf(stderr, "%s%d", k % w == 0 ? "\n" : " ", (int)labels[k]);
        fail_msg("case %d, connectivity %d, tolerance %g: %s", i, options.connectivity,
                 options.tolerance, fault);
    }
    assert_true(fewer > 50);
}

/* Every allocation that fails is told; nothing is lost. */
static void no_memory(void **state) {
    static struct kept kept;
    static int64_t labels[MOST_SIDE * MOST_SIDE];
    struct test_rng rng = test_rng_make(7);
    struct rfx_regions_options options = {.connectivity = 8, .tolerance = 0.5};
    bool done = false;
    (void)state;
    draw_map(&rng, labels, MOST_SIDE, MOST_SIDE);
    for (int64_t k = 0; !done; k++) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_error err = {{0}};
        rfx_memory_fail_after(mem, k);
        enum rfx_status status = run(mem, labels, MOST_SIDE, MOST_SIDE, &options, &kept, &err);
        done = status == RFX_OK;
        if (!done) assert_int_equal(status, RFX_STATUS_OUT_OF_MEMORY);
        assert_int_equal(rfx_memory_current_bytes(mem), 0);
        rfx_memory_free(mem);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(staircase),
        cmocka_unit_test(small_rings),
        cmocka_unit_test(random_maps),
        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests_name("region_simplify", tests, NULL, NULL);
}
