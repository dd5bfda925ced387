/* Pixels of areas by hand, and against the rule for each pixel and edge alone: random rings,
 * corners on centres of pixels, far corners; borders that areas share; failing allocations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <inttypes.h>
#include <string.h>

#include <cmocka.h>

#include "rfexec/answers/areas.h"
#include "tests/support/test_util.h"

__extension__ typedef __int128 wide;

#define ONE (INT64_C(1) << RFX_AREA_BITS)
enum { H = 12, W = 16, CORNERS = 12, AREAS = 24 };

/* Corners of a ring; the last one is joined to the first. */
struct ring {
    int n;
    int64_t at[CORNERS][2];
};

struct shape {
    int n; /* rings */
    struct ring rings[3];
};

static void add_shape(struct rfx_areas *areas, const struct shape *shape) {
    rfx_areas_begin(areas);
    for (int i = 0; i < shape->n; i++) {
        const struct ring *ring = &shape->rings[i];
        for (int k = 0; k < ring->n; k++)
            rfx_areas_edge(areas, ring->at[k], ring->at[(k + 1) % ring->n]);
    }
}

/* Counts for each pixel of the next rows in how many spans of each area it lies. */
static void sweep(struct rfx_areas *areas, int n, int rows, uint8_t marks[AREAS][H][W]) {
    memset(marks, 0, sizeof(uint8_t[AREAS][H][W]));
    for (int y = 0; y < rows; y++) {
        int64_t spans;
        const struct rfx_area_span *span = rfx_areas_row(areas, &spans);
        for (int64_t i = 0; i < spans; i++, span++) {
            assert_true(span->area >= 0 && span->area < n);
            assert_true(0 <= span->x0 && span->x0 < span->x1 && span->x1 <= W);
            assert_true(i == 0 || span[-1].area != span->area || span[-1].x1 <= span->x0);
            for (int x = span->x0; x < span->x1; x++) marks[span->area][y][x]++;
        }
    }
}

/* marks[k] has the pixels of area k, which are the same after two rewinds, the second one from row
 * n of H. */
static void find_pixels(const struct shape *shapes, int n, uint8_t marks[AREAS][H][W],
                        int64_t *most_at_once) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_areas *areas = NULL;
    static uint8_t first[AREAS][H][W];
    size_t edges = 0;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < shapes[i].n; k++) edges += (size_t)shapes[i].rings[k].n;
    assert_int_equal(rfx_areas_create(mem, H, W, (size_t)n, edges, &areas, NULL), RFX_OK);
    for (int i = 0; i < n; i++) add_shape(areas, &shapes[i]);
    assert_int_equal(rfx_areas_end(areas, NULL), RFX_OK);
    assert_int_equal(rfx_areas_count(areas), n);
    *most_at_once = rfx_areas_most_at_once(areas);
    sweep(areas, n, H, first);
    rfx_areas_rewind(areas);
    sweep(areas, n, n % H, marks);
    rfx_areas_rewind(areas);
    sweep(areas, n, H, marks);
    assert_memory_equal(first, marks, sizeof first);
    for (int i = 0; i < n; i++) assert_true(rfx_areas_is_over(areas, i));
    assert_true(rfx_memory_high_water_bytes(mem) <= rfx_areas_bytes((size_t)n, edges));
    rfx_areas_free(areas);
    rfx_memory_free(mem);
}

static void expect_pixels(const struct shape *shape, const char *const want[H]) {
    static uint8_t marks[AREAS][H][W];
    int64_t most;
    find_pixels(shape, 1, marks, &most);
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++) {
            bool inside = want[y] != NULL && x < (int)strlen(want[y]) && want[y][x] == '#';
            if (marks[0][y][x] != inside) fail_msg("pixel %d, %d: %d", y, x, marks[0][y][x]);
        }
}

/* A ring of corners in halves of pixels. */
static struct ring halves(int n, const int (*at)[2]) {
    struct ring ring = {.n = n};
    for (int i = 0; i < n; i++)
        for (int axis = 0; axis < 2; axis++) ring.at[i][axis] = at[i][axis] * (ONE / 2);
    return ring;
}

static void centres_decide(void **state) {
    (void)state;
    /* From 0.5 to 2.5: the centres at 0.5 belong to it, those at 2.5 do not. */
    static const int square[4][2] = {{1, 1}, {5, 1}, {5, 5}, {1, 5}};
    const struct shape low = {1, {halves(4, square)}};
    expect_pixels(&low, (const char *const[H]){"##", "##"});
    static const int large[4][2] = {{0, 0}, {12, 0}, {12, 10}, {0, 10}};
    static const int hole[4][2] = {{4, 4}, {4, 8}, {8, 8}, {8, 4}};
    const struct shape ring = {2, {halves(4, large), halves(4, hole)}};
    expect_pixels(&ring, (const char *const[H]){"######", "######", "##  ##", "##  ##", "######"});
    static const int diamond[4][2] = {{5, 0}, {10, 5}, {5, 10}, {0, 5}};
    const struct shape tilted = {1, {halves(4, diamond)}};
    /* At 2.5 +- 0.5, 1.5, 2.5, ... : the left side belongs to the diamond, the right one does not.
     */
    expect_pixels(&tilted, (const char *const[H]){"  # ", " ###", "#####", " ###", "  #"});
    static const int bow[4][2] = {{0, 0}, {8, 8}, {8, 0}, {0, 8}};
    /* On row 0 from 0 to 0.5 and from 3.5 to 4: the centre at 0.5 is out, the one at 3.5 is in. */
    const struct shape crossed = {1, {halves(4, bow)}};
    expect_pixels(&crossed, (const char *const[H]){"   #", "# ##", "# ##", "   #"});
}

/* An edge that moves to the right by a third of the smallest unit in each row, and is at the centre
 * of pixel 0 on row 3. */
static void edges_are_exact_between_units(void **state) {
    (void)state;
    const int64_t top = ONE / 2, low = top + H * ONE;
    const struct shape steep = {
        1, {{4, {{ONE / 2 - 1, top}, {2 * ONE, top}, {2 * ONE, low}, {ONE / 2 + 3, low}}}}};
    expect_pixels(&steep, (const char *const[H]){"##", "##", "##", "##", " #", " #", " #", " #",
                                                 " #", " #", " #", " #"});
}

static void what_is_outside_is_cut(void **state) {
    (void)state;
    const int64_t far = INT64_C(1) << (RFX_AREA_BITS + RFX_AREA_REACH_BITS);
    const struct shape all = {1, {{4, {{-far, -far}, {far, -far}, {far, far}, {-far, far}}}}};
    static const char full[] = "################";
    expect_pixels(&all, (const char *const[H]){full, full, full, full, full, full, full, full, full,
                                               full, full, full});
    /* The diagonal of pixels, and what lies at its right. */
    const struct shape half = {1, {{3, {{-far, -far}, {far, -far}, {far, far}}}}};
    static uint8_t marks[AREAS][H][W];
    int64_t most;
    find_pixels(&half, 1, marks, &most);
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++) assert_int_equal(marks[0][y][x], x >= y);
    const struct shape none[3] = {{1, {{3, {{0, -2 * ONE}, {far, -far}, {far, -ONE}}}}},
                                  {1, {{3, {{-far, 0}, {-ONE, 4 * ONE}, {-far, far}}}}},
                                  {1, {{3, {{0, 5 * ONE}, {far, 5 * ONE}, {ONE, 5 * ONE}}}}}};
    find_pixels(none, 3, marks, &most);
    for (int k = 0; k < 3; k++)
        for (int y = 0; y < H; y++)
            for (int x = 0; x < W; x++) assert_int_equal(marks[k][y][x], 0);
}

/* Whether an odd number of edges is at or left of the centre. */
static bool is_inside(const struct shape *shape, int y, int x) {
    const int64_t cx = x * ONE + ONE / 2, cy = y * ONE + ONE / 2;
    bool inside = false;
    for (int i = 0; i < shape->n; i++)
        for (int k = 0; k < shape->rings[i].n; k++) {
            const int64_t *a = shape->rings[i].at[k];
            const int64_t *b = shape->rings[i].at[(k + 1) % shape->rings[i].n];
            const int64_t *top = a[1] < b[1] ? a : b, *low = a[1] < b[1] ? b : a;
            if (cy < top[1] || cy >= low[1]) continue;
            inside ^=
                (wide)(cx - top[0]) * (low[1] - top[1]) >= (wide)(cy - top[1]) * (low[0] - top[0]);
        }
    return inside;
}

static struct shape random_shape(struct test_rng *rng) {
    struct shape shape = {.n = (int)test_rng_int(rng, 1, 3)};
    static const int64_t units[] = {1, ONE / 8, ONE / 2, ONE};
    int64_t unit = units[test_rng_int(rng, 0, 3)], out = test_rng_chance(rng, 20) ? 1 << 20 : 4;
    for (int i = 0; i < shape.n; i++) {
        shape.rings[i].n = (int)test_rng_int(rng, 3, CORNERS);
        for (int k = 0; k < shape.rings[i].n; k++) {
            shape.rings[i].at[k][0] = test_rng_int(rng, -out * ONE, (W + out) * ONE) / unit * unit;
            shape.rings[i].at[k][1] = test_rng_int(rng, -out * ONE, (H + out) * ONE) / unit * unit;
        }
    }
    return shape;
}

static int64_t most_open(uint8_t marks[AREAS][H][W], int n) {
    int64_t most = 0;
    for (int y = 0; y < H; y++) {
        int64_t open = 0;
        for (int k = 0; k < n; k++) open += memchr(marks[k][y], 1, W) != NULL;
        most = open > most ? open : most;
    }
    return most;
}

static void random_rings_have_the_pixels_of_the_rule(void **state) {
    (void)state;
    static uint8_t marks[AREAS][H][W];
    static struct shape shapes[AREAS];
    struct test_rng rng = test_rng_make(20);
    for (int turn = 0; turn < 400; turn++) {
        int n = (int)test_rng_int(&rng, 1, AREAS);
        int64_t most;
        for (int k = 0; k < n; k++) shapes[k] = random_shape(&rng);
        find_pixels(shapes, n, marks, &most);
        for (int k = 0; k < n; k++)
            for (int y = 0; y < H; y++)
                for (int x = 0; x < W; x++)
                    if (marks[k][y][x] != is_inside(&shapes[k], y, x))
                        fail_msg("turn %d, area %d of %d: pixel %d, %d is %d", turn, k, n, y, x,
                                 marks[k][y][x]);
        assert_true(most >= most_open(marks, n) && most <= n);
    }
}

/* Triangles from a point to the corners of a rectangle around the map and to points on its sides
 * cover each pixel once, wherever the point is. */
static void areas_share_out_the_pixels_of_their_borders(void **state) {
    (void)state;
    static uint8_t marks[AREAS][H][W];
    static struct shape shapes[AREAS];
    struct test_rng rng = test_rng_make(21);
    for (int turn = 0; turn < 500; turn++) {
        static const int64_t units[] = {1, ONE / 4, ONE / 2};
        int64_t unit = units[turn % 3], most, rim[AREAS][2];
        const int64_t centre[2] = {test_rng_int(&rng, 0, W * ONE) / unit * unit,
                                   test_rng_int(&rng, 0, H * ONE) / unit * unit};
        int n = 0;
        for (int side = 0; side < 4; side++) {
            int64_t along = side % 2 == 0 ? W * ONE : H * ONE, at = 0;
            for (int i = 0; i < 5 && at < along; i++, n++) {
                rim[n][0] = side == 0 ? at : side == 1 ? W * ONE : side == 2 ? along - at : 0;
                rim[n][1] = side == 0 ? 0 : side == 1 ? at : side == 2 ? H * ONE : along - at;
                at += test_rng_int(&rng, unit, along / 3) / unit * unit;
            }
        }
        for (int k = 0; k < n; k++) {
            struct ring ring = {.n = 3};
            memcpy(ring.at[0], centre, sizeof ring.at[0]);
            memcpy(ring.at[1 + turn % 2], rim[k], sizeof ring.at[0]);
            memcpy(ring.at[2 - turn % 2], rim[(k + 1) % n], sizeof ring.at[0]);
            shapes[k] = (struct shape){1, {ring}};
        }
        find_pixels(shapes, n, marks, &most);
        for (int y = 0; y < H; y++)
            for (int x = 0; x < W; x++) {
                int sum = 0;
                for (int k = 0; k < n; k++) sum += marks[k][y][x];
                if (sum != 1)
                    fail_msg("turn %d: pixel %d, %d lies in %d of %d", turn, y, x, sum, n);
            }
    }
}

static enum rfx_status build(struct rfx_memory *mem, void *context, struct rfx_error *err) {
    struct rfx_areas *areas = NULL;
    (void)context;
    static const int square[4][2] = {{1, 1}, {5, 1}, {5, 5}, {1, 5}};
    const struct shape shape = {1, {halves(4, square)}};
    enum rfx_status status = rfx_areas_create(mem, H, W, 1, 4, &areas, err);
    if (status != RFX_OK) return status;
    add_shape(areas, &shape);
    status = rfx_areas_end(areas, err);
    rfx_areas_free(areas);
    return status;
}

static void every_failing_allocation_is_reported(void **state) {
    (void)state;
    assert_true(test_fail_each_allocation(build, NULL) >= 6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(centres_decide),
        cmocka_unit_test(edges_are_exact_between_units),
        cmocka_unit_test(what_is_outside_is_cut),
        cmocka_unit_test(random_rings_have_the_pixels_of_the_rule),
        cmocka_unit_test(areas_share_out_the_pixels_of_their_borders),
        cmocka_unit_test(every_failing_allocation_is_reported),
    };
    return cmocka_run_group_tests_name("areas", tests, NULL, NULL);
}
