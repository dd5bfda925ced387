/* Smaller copies against a reference that has the whole level above in memory. */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "rfexec/output/overviews/overviews.h"
#include "tests/support/test_folder.h"
#include "tests/support/test_util.h"

#define DIRECTORY "test_overviews.tmp.d"

static void levels_are_counted(void **state) {
    (void)state;
    static const struct {
        int64_t h, w, side;
        int count;
    } cases[] = {{16, 16, 16, 0}, {17, 1, 16, 1},    {32, 33, 16, 2},
                 {1, 65, 16, 3},  {256, 255, 16, 4}, {INT32_MAX, 1, 1, 31}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rfx_overview_map map = {.h = cases[i].h,
                                       .w = cases[i].w,
                                       .channels = 1,
                                       .bits = 8,
                                       .side = cases[i].side,
                                       .kind = RFX_OVERVIEW_MEAN};
        assert_int_equal(rfx_overviews_count(&map), cases[i].count);
        map.kind = RFX_OVERVIEW_NONE;
        assert_int_equal(rfx_overviews_count(&map), 0);
    }
    assert_int_equal(rfx_overviews_length(1, 5), 1);
    assert_int_equal(rfx_overviews_length(33, 1), 17);
    assert_int_equal(rfx_overviews_length(33, 2), 9);
    assert_int_equal(rfx_overviews_length(32, 5), 1);
}

static double get(const struct rfx_overview_map *map, const unsigned char *rows, int64_t i) {
    uint16_t wide = 0;
    float value = 0;
    if (map->bits == 8) return rows[i];
    if (map->bits == 16) memcpy(&wide, rows + 2 * i, 2);
    if (map->bits == 32) memcpy(&value, rows + 4 * i, 4);
    return map->bits == 16 ? wide : (double)value;
}

static void set(const struct rfx_overview_map *map, unsigned char *rows, int64_t i, double v) {
    uint16_t wide = map->bits == 16 ? (uint16_t)v : 0;
    float value = (float)v;
    if (map->bits == 8) rows[i] = (unsigned char)v;
    if (map->bits == 16) memcpy(rows + 2 * i, &wide, 2);
    if (map->bits == 32) memcpy(rows + 4 * i, &value, 4);
}

/* The sample of the next level at (y, x), from all of h x w samples of this one. */
static double wanted(const struct rfx_overview_map *map, const unsigned char *rows, int64_t h,
                     int64_t w, int64_t y, int64_t x, int64_t c) {
    double first = get(map, rows, (2 * y * w + 2 * x) * map->channels + c), sum = 0;
    int n = 0;
    if (map->kind == RFX_OVERVIEW_NEAREST) return first;
    for (int64_t i = 2 * y; i < h && i < 2 * y + 2; i++)
        for (int64_t j = 2 * x; j < w && j < 2 * x + 2; j++) {
            double v = get(map, rows, (i * w + j) * map->channels + c);
            if (isnan(v) || (map->has_no_data && v == map->no_data)) continue;
            sum += v;
            n++;
        }
    if (n == 0) return first;
    return map->bits == 32 ? sum / n : floor(sum / n + 0.5);
}

static enum rfx_status put_all(struct rfx_overviews *o, const struct rfx_overview_map *map,
                               const unsigned char *rows, struct rfx_error *err) {
    size_t row = (size_t)(map->w * map->channels * map->bits / 8);
    enum rfx_status status = RFX_OK;
    for (int64_t y = 0; y < map->h && status == RFX_OK; y++)
        status = rfx_overviews_put(o, rows + (size_t)y * row, err);
    return status;
}

static unsigned char *random_rows(const struct rfx_overview_map *map) {
    int64_t n = map->h * map->w * map->channels;
    unsigned char *rows = malloc((size_t)(n * map->bits / 8));
    struct test_rng rng = test_rng_make((uint64_t)(map->h * 100 + map->w + map->bits));
    for (int64_t i = 0; i < n; i++) {
        uint64_t bits = test_rng_next(&rng);
        double v = (double)(bits >> 40); /* 24 bits: floats have them all */
        if (map->bits < 32) v = (double)(bits >> (64 - map->bits));
        if (bits % 3 == 0) v = 7; /* the no-data number */
        if (bits % 5 == 0 && map->bits == 32) v = NAN;
        set(map, rows, i, v);
    }
    return rows;
}

/* Puts a map and compares all its levels. */
static void compare(const struct rfx_overview_map *map) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_overviews *o = NULL;
    struct rfx_error err = {""};
    size_t sample = (size_t)map->bits / 8;
    unsigned char *above = random_rows(map);
    assert_int_equal(rfx_overviews_open(mem, DIRECTORY "/a", map, &o, &err), RFX_OK);
    assert_true(rfx_memory_high_water_bytes(mem) <= rfx_overviews_bytes(map));
    assert_int_equal(put_all(o, map, above, &err), RFX_OK);
    for (int k = 1; k <= rfx_overviews_count(map); k++) {
        int64_t h_above = rfx_overviews_length(map->h, k - 1), h = rfx_overviews_length(map->h, k);
        int64_t w_above = rfx_overviews_length(map->w, k - 1), w = rfx_overviews_length(map->w, k);
        size_t row = (size_t)(w * map->channels) * sample;
        unsigned char *level = malloc(row * (size_t)h), *got = malloc(row);
        for (int64_t y = 0; y < h; y++) {
            for (int64_t i = 0; i < w * map->channels; i++)
                set(map, level, y * w * map->channels + i,
                    wanted(map, above, h_above, w_above, y, i / map->channels, i % map->channels));
            assert_int_equal(rfx_overviews_read(o, k, y, got, &err), RFX_OK);
            if (memcmp(got, level + (size_t)y * row, row) != 0)
                fail_msg("%lld x %lld, %d bits, kind %d: level %d, row %lld", (long long)map->h,
                         (long long)map->w, map->bits, (int)map->kind, k, (long long)y);
        }
        free(got);
        free(above);
        above = level;
    }
    free(above);
    rfx_overviews_free(o);
    rfx_memory_free(mem);
}

static void levels_are_those_of_whole_maps(void **state) {
    (void)state;
    static const int64_t sizes[][2] = {{37, 70}, {64, 1}, {1, 33}, {32, 32}, {5, 3}};
    static const int bits[] = {8, 16, 32};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int k = 0; k < 12; k++)
            compare(
                &(struct rfx_overview_map){.h = sizes[i][0],
                                           .w = sizes[i][1],
                                           .channels = 1 + k % 2,
                                           .bits = bits[k % 3],
                                           .side = 1,
                                           .kind = k < 6 ? RFX_OVERVIEW_MEAN : RFX_OVERVIEW_NEAREST,
                                           .has_no_data = k / 3 % 2 == 0,
                                           .no_data = 7});
}

static void infinities_are_means_too(void **state) {
    (void)state;
    const struct rfx_overview_map map = {
        .h = 1, .w = 4, .channels = 1, .bits = 32, .side = 2, .kind = RFX_OVERVIEW_MEAN};
    const float row[4] = {INFINITY, -INFINITY, INFINITY, 1};
    float got[2];
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_overviews *o = NULL;
    assert_int_equal(rfx_overviews_open(mem, DIRECTORY "/a", &map, &o, NULL), RFX_OK);
    assert_int_equal(rfx_overviews_put(o, row, NULL), RFX_OK);
    assert_int_equal(rfx_overviews_read(o, 1, 0, got, NULL), RFX_OK);
    const float nan = NAN; /* the one that files have */
    assert_memory_equal(&got[0], &nan, 4);
    assert_true(isinf(got[1]));
    rfx_overviews_free(o);
    rfx_overviews_free(NULL);
    rfx_memory_free(mem);
}

static enum rfx_status attempt(struct rfx_memory *mem, void *context, struct rfx_error *err) {
    const struct rfx_overview_map map = {
        .h = 40, .w = 40, .channels = 2, .bits = 16, .side = 16, .kind = RFX_OVERVIEW_MEAN};
    struct rfx_overviews *o = NULL;
    (void)context;
    unsigned char *rows = random_rows(&map);
    enum rfx_status status = rfx_overviews_open(mem, DIRECTORY "/a", &map, &o, err);
    if (status == RFX_OK) status = put_all(o, &map, rows, err);
    rfx_overviews_free(o);
    free(rows);
    return status;
}

static void failures_are_told(void **state) {
    (void)state;
    struct rlimit before, small;
    struct rfx_error err = {""};
    assert_true(test_fail_each_allocation(attempt, NULL) >= 6);
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 1000; /* 2000 are needed */
    struct rfx_memory *mem = rfx_memory_create(0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    enum rfx_status status = attempt(mem, NULL, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(status, RFX_STATUS_IO);
    assert_non_null(strstr(err.text, DIRECTORY "/a: "));
    assert_non_null(strstr(err.text, "the overviews kept beside it: File too large"));
    rfx_memory_free(mem);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_are_counted),
        test_in_folder(levels_are_those_of_whole_maps, DIRECTORY),
        test_in_folder(infinities_are_means_too, DIRECTORY),
        test_in_folder(failures_are_told, DIRECTORY),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
