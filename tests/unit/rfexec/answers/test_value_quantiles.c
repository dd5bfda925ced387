/* Quantiles of the channels of maps and of rectangles in them, against values that are sorted;
 * failing allocations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rfexec/answers/value_quantiles.h"
#include "tests/support/test_util.h"

#define PATH "test_value_quantiles.out"

static int compare(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* The quantile of n values, which are sorted here. */
static double reference(float *values, int64_t n, double q) {
    qsort(values, (size_t)n, sizeof *values, compare);
    double at = q * (double)(n - 1), share = at - floor(at);
    int64_t low = (int64_t)floor(at), high = low + 1 < n ? low + 1 : low;
    double a = (double)values[low], b = (double)values[high];
    if (a == b || share == 0) return a;
    return share >= 0.5 ? b - (b - a) * (1 - share) : a + (b - a) * share;
}

static float draw(struct test_rng *rng) {
    static const float special[] = {0,         -0.0F,      INFINITY, -INFINITY,
                                    0x1p-149F, -0x1p-149F, 0x1p127F, 1};
    if (test_rng_chance(rng, 10)) return special[test_rng_int(rng, 0, 7)];
    if (test_rng_chance(rng, 10)) return NAN;
    if (test_rng_chance(rng, 50)) return (float)test_rng_int(rng, -3, 3);
    return test_rng_float(rng, -1, 1) * ldexpf(1, (int)test_rng_int(rng, -60, 60));
}

/* found may not be -0. */
static bool same(double found, double want) {
    if (found == 0 && signbit(found)) return false;
    return found == want || (isnan(found) && isnan(want));
}

enum { MOST_AREAS = 12 };

/* Pixels from row y0 and column x0 to before y1 and x1. */
struct box {
    int64_t y0, x0, y1, x1;
};

static struct box random_box(struct test_rng *rng, const struct rfx_tensor *map) {
    struct box box = {test_rng_int(rng, 0, map->h), test_rng_int(rng, 0, map->w), 0, 0};
    box.y1 = test_rng_int(rng, box.y0, map->h);
    box.x1 = test_rng_int(rng, box.x0, map->w);
    return box;
}

/* NULL: there are no boxes. */
static struct rfx_areas *areas_of(struct rfx_memory *mem, const struct rfx_tensor *map,
                                  const struct box *boxes, int n) {
    struct rfx_areas *areas = NULL;
    if (n == 0) return NULL;
    assert_int_equal(rfx_areas_create(mem, map->h, map->w, (size_t)n, 4 * (size_t)n, &areas, NULL),
                     RFX_OK);
    for (int k = 0; k < n; k++) {
        const struct box *b = &boxes[k];
        const int64_t corners[4][2] = {
            {b->x0, b->y0}, {b->x1, b->y0}, {b->x1, b->y1}, {b->x0, b->y1}};
        rfx_areas_begin(areas);
        for (int i = 0; i < 4; i++) {
            int64_t ends[2][2];
            for (int j = 0; j < 4; j++)
                ends[j / 2][j % 2] =
                    corners[(i + j / 2) % 4][j % 2] * (INT64_C(1) << RFX_AREA_BITS);
            rfx_areas_edge(areas, ends[0], ends[1]);
        }
    }
    assert_int_equal(rfx_areas_end(areas, NULL), RFX_OK);
    return areas;
}

/* Compares the quantiles of the pixels of a box with those of their sorted values. area: -1: the
 * map. */
static void check_box(const struct rfx_value_quantiles *quantiles,
                      const struct rfx_answer_quantiles *list, const struct rfx_tensor *map,
                      const float *values, const struct box *box, int area) {
    float *one = test_floats(map->h * map->w);
    for (int64_t c = 0; c < map->c; c++) {
        int64_t n = 0;
        for (int64_t y = box->y0; y < box->y1; y++)
            for (int64_t x = box->x0; x < box->x1; x++) {
                float value = values[(y * map->w + x) * map->c + c];
                if (!isnan(value)) one[n++] = value;
            }
        for (int k = 0; k < list->n; k++) {
            double want = n > 0 ? reference(one, n, list->at[k]) : NAN;
            double found = rfx_value_quantile(quantiles, area, c, k);
            if (!same(found, want))
                fail_msg("area %d: quantile %g of %d values: %g, not %g", area, list->at[k], (int)n,
                         found, want);
        }
    }
    free(one);
}

static void add_rows(struct rfx_value_quantiles *quantiles, struct rfx_areas *areas,
                     const struct rfx_tensor *map, const float *values) {
    for (int64_t y = 0; y < map->h; y++) {
        int64_t n = 0;
        const struct rfx_area_span *spans = areas != NULL ? rfx_areas_row(areas, &n) : NULL;
        assert_int_equal(
            rfx_value_quantiles_row(quantiles, values + y * map->w * map->c, spans, n, NULL),
            RFX_OK);
    }
}

static void check_map(struct test_rng *rng) {
    const struct rfx_tensor map = rfx_tensor_nhwc(test_rng_int(rng, 1, 4), test_rng_int(rng, 1, 30),
                                                  test_rng_int(rng, 1, 30));
    struct rfx_answer_quantiles list = {.n = (int)test_rng_int(rng, 1, RFX_ANSWER_MOST_QUANTILES)};
    for (int k = 0; k < list.n; k++)
        list.at[k] = test_rng_chance(rng, 20) ? (double)test_rng_int(rng, 0, 2) / 2
                                              : (double)test_rng_float(rng, 0, 1);
    int n = test_rng_chance(rng, 50) ? 0 : (int)test_rng_int(rng, 1, MOST_AREAS);
    struct box boxes[MOST_AREAS];
    for (int k = 0; k < n; k++) boxes[k] = random_box(rng, &map);
    float *values = test_floats(map.h * map.w * map.c);
    for (int64_t i = 0; i < map.h * map.w * map.c; i++) values[i] = draw(rng);
    struct rfx_memory *mem = rfx_memory_create(0), *other = rfx_memory_create(0);
    struct rfx_areas *areas = areas_of(other, &map, boxes, n);
    struct rfx_value_quantiles *quantiles = NULL;
    struct rfx_error err = {{0}};
    assert_int_equal(rfx_value_quantiles_create(mem, PATH, &list, &map, areas, &quantiles, &err),
                     RFX_OK);
    size_t bytes = rfx_value_quantiles_bytes(&list, &map);
    if (areas != NULL)
        bytes += rfx_value_quantiles_area_bytes(&list, &map, n, rfx_areas_most_at_once(areas));
    assert_true(rfx_memory_high_water_bytes(mem) <= bytes);
    add_rows(quantiles, areas, &map, values);
    assert_int_equal(rfx_value_quantiles_find(quantiles, &err), RFX_OK);
    check_box(quantiles, &list, &map, values, &(struct box){0, 0, map.h, map.w}, -1);
    for (int k = 0; k < n; k++) check_box(quantiles, &list, &map, values, &boxes[k], k);
    rfx_value_quantiles_free(quantiles);
    rfx_areas_free(areas);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
    rfx_memory_free(other);
    free(values);
}

static void random_maps_as_sorted(void **state) {
    struct test_rng rng = test_rng_make(50);
    (void)state;
    for (int64_t i = 0; i < test_env_int("RFX_CASES", 1000); i++) check_map(&rng);
}

/* A thousand areas of one row each, below one another: memory is that of one that is open. */
static void memory_follows_open_areas(void **state) {
    (void)state;
    enum { ROWS = 1000 };
    const struct rfx_tensor map = rfx_tensor_nhwc(1, ROWS, 2);
    const struct rfx_answer_quantiles list = {2, {0.25, 0.5}};
    static struct box boxes[ROWS];
    static float values[ROWS * 2];
    for (int k = 0; k < ROWS; k++) {
        boxes[k] = (struct box){k, 0, k + 1, 2};
        values[2 * k] = (float)k;
        values[2 * k + 1] = (float)-k;
    }
    struct rfx_memory *mem = rfx_memory_create(0), *other = rfx_memory_create(0);
    struct rfx_areas *areas = areas_of(other, &map, boxes, ROWS);
    struct rfx_value_quantiles *quantiles = NULL;
    assert_int_equal(rfx_value_quantiles_create(mem, PATH, &list, &map, areas, &quantiles, NULL),
                     RFX_OK);
    assert_true(rfx_memory_high_water_bytes(mem) < 150000);
    add_rows(quantiles, areas, &map, values);
    assert_int_equal(rfx_value_quantiles_find(quantiles, NULL), RFX_OK);
    for (int k = 0; k < ROWS; k++) {
        assert_true(rfx_value_quantile(quantiles, k, 0, 0) == -k / 2.0);
        assert_true(rfx_value_quantile(quantiles, k, 0, 1) == 0);
    }
    rfx_value_quantiles_free(quantiles);
    rfx_areas_free(areas);
    rfx_memory_free(mem);
    rfx_memory_free(other);
}

/* context: areas, or NULL. */
static enum rfx_status build(struct rfx_memory *mem, void *context, struct rfx_error *err) {
    const struct rfx_answer_quantiles list = {1, {0.5}};
    const struct rfx_tensor map = rfx_tensor_nhwc(2, 3, 4);
    struct rfx_value_quantiles *quantiles = NULL;
    enum rfx_status status =
        rfx_value_quantiles_create(mem, PATH, &list, &map, context, &quantiles, err);
    rfx_value_quantiles_free(quantiles);
    return status;
}

static void every_failing_allocation_is_reported(void **state) {
    static const struct box box = {0, 0, 2, 2};
    const struct rfx_tensor map = rfx_tensor_nhwc(2, 3, 4);
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_areas *areas = areas_of(mem, &map, &box, 1);
    (void)state;
    assert_true(test_fail_each_allocation(build, NULL) >= 7);
    assert_true(test_fail_each_allocation(build, areas) >= 11);
    rfx_areas_free(areas);
    rfx_memory_free(mem);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_maps_as_sorted),
        cmocka_unit_test(memory_follows_open_areas),
        cmocka_unit_test(every_failing_allocation_is_reported),
    };
    return cmocka_run_group_tests_name("value quantiles", tests, NULL, NULL);
}
