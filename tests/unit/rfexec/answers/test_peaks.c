/* Peaks of maps against the definition, pixel by pixel: random maps with ties and NaN, all
 * distances; plateaus by hand; order; time at large distances; failing allocations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "rfexec/answers/peaks.h"
#include "tests/support/test_util.h"

struct list {
    struct rfx_peak *peaks;
    int64_t n, room;
    int64_t stop_at; /* `keep` fails at this peak; -1: never */
};

static enum rfx_status keep(void *user, const struct rfx_peak *peak, struct rfx_error *err) {
    struct list *list = user;
    if (list->n == list->stop_at) return rfx_fail(err, RFX_STATUS_IO, "no space");
    if (list->n == list->room) {
        list->room = list->room > 0 ? 2 * list->room : 16;
        list->peaks = realloc(list->peaks, (size_t)list->room * sizeof *list->peaks);
        if (list->peaks == NULL) abort();
    }
    list->peaks[list->n++] = *peak;
    return RFX_OK;
}

static bool exceeds(const float *map, const struct rfx_peaks_options *o, int64_t y, int64_t x,
                    int64_t k, int64_t v, int64_t u) {
    float own = map[(y * o->width + x) * o->channels + k];
    float other = map[(v * o->width + u) * o->channels + k];
    bool before = v < y || (v == y && u < x);
    return other > own || (before && other == own);
}

static bool is_peak(const float *map, const struct rfx_peaks_options *o, int64_t y, int64_t x,
                    int64_t k) {
    int64_t d = o->distance;
    if (!(map[(y * o->width + x) * o->channels + k] > o->thresholds[k])) return false;
    for (int64_t v = y > d ? y - d : 0; v <= y + d && v < o->height; v++)
        for (int64_t u = x > d ? x - d : 0; u <= x + d && u < o->width; u++)
            if ((v != y || u != x) && exceeds(map, o, y, x, k, v, u)) return false;
    return true;
}

/* By the definition, in the order rows, columns, channels. */
static void find_all(const float *map, const struct rfx_peaks_options *o, struct list *want) {
    for (int64_t y = 0; y < o->height; y++)
        for (int64_t x = 0; x < o->width; x++)
            for (int64_t k = 0; k < o->channels; k++) {
                const struct rfx_peak peak = {x, y, (int32_t)k,
                                              map[(y * o->width + x) * o->channels + k]};
                if (is_peak(map, o, y, x, k)) assert_int_equal(keep(want, &peak, NULL), RFX_OK);
            }
}

static enum rfx_status run_map(struct rfx_memory *mem, const float *map,
                               const struct rfx_peaks_options *o, struct list *got,
                               struct rfx_error *err) {
    struct rfx_peaks *peaks = NULL;
    enum rfx_status status = rfx_peaks_create(mem, o, keep, got, &peaks, err);
    for (int64_t y = 0; y < o->height && status == RFX_OK; y++)
        status = rfx_peaks_row(peaks, map + y * o->width * o->channels, err);
    if (status == RFX_OK) status = rfx_peaks_end(peaks, err);
    rfx_peaks_free(peaks);
    return status;
}

static bool same(const struct rfx_peak *a, const struct rfx_peak *b) {
    return a->x == b->x && a->y == b->y && a->channel == b->channel &&
           memcmp(&a->value, &b->value, sizeof a->value) == 0;
}

static void print_map(const float *map, const struct rfx_peaks_options *o) {
    fprintf(stderr, "{%" PRId64 ", %" PRId64 ", %" PRId64 ", distance %" PRId64 "} {", o->height,
            o->width, o->channels, o->distance);
    for (int64_t i = 0; i < o->height * o->width * o->channels && i < 2000; i++)
        fprintf(stderr, "%s%g,", i % (o->width * o->channels) == 0 ? "\n  " : " ", (double)map[i]);
    fprintf(stderr, "}\n");
}

static void compare(const float *map, const struct rfx_peaks_options *o) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct list got = {.stop_at = -1}, want = {.stop_at = -1};
    struct rfx_error err = {{0}};
    find_all(map, o, &want);
    enum rfx_status status = run_map(mem, map, o, &got, &err);
    int64_t worst = 0;
    while (worst < got.n && worst < want.n && same(&got.peaks[worst], &want.peaks[worst])) worst++;
    if (status != RFX_OK || worst < got.n || worst < want.n) {
        print_map(map, o);
        fail_msg("%s: %" PRId64 " peaks, not %" PRId64 "; the first other one is %" PRId64,
                 err.text, got.n, want.n, worst);
    }
    /* The estimate is what is used, but for what the allocator adds to each block. */
    size_t used = rfx_memory_high_water_bytes(mem), said = rfx_peaks_bytes(o);
    assert_true(used >= said && used <= said + 9 * 128);
    free(got.peaks);
    free(want.peaks);
    rfx_memory_free(mem);
}

static void random_maps_are_as_defined(void **state) {
    (void)state;
    int64_t cases = test_env_int("RFX_CASES", 3000);
    struct test_rng rng = test_rng_make(50);
    for (int64_t i = 0; i < cases; i++) {
        float thresholds[4];
        struct rfx_peaks_options o = {.width = test_rng_int(&rng, 1, 24),
                                      .height = test_rng_int(&rng, 1, 24),
                                      .channels = test_rng_int(&rng, 1, 4),
                                      .distance = test_rng_int(&rng, 0, 9),
                                      .thresholds = thresholds};
        if (test_rng_chance(&rng, 5)) o.distance = INT32_MAX;
        int64_t n = o.width * o.height * o.channels;
        /* From maps of two values, with plateaus everywhere, to maps without ties. */
        int64_t values = test_rng_chance(&rng, 50) ? test_rng_int(&rng, 1, 6) : 1000000;
        float *map = test_floats(n);
        for (int64_t k = 0; k < n; k++) map[k] = (float)test_rng_int(&rng, -2, values) / 4;
        if (test_rng_chance(&rng, 30)) test_rng_specials(&rng, map, n);
        for (int k = 0; k < 4; k++) thresholds[k] = (float)test_rng_int(&rng, -3, 1);
        if (test_rng_chance(&rng, 5)) thresholds[0] = -INFINITY;
        compare(map, &o);
        free(map);
    }
}

static void plateaus_have_one_peak_by_hand(void **state) {
    (void)state;
    static const float zero = 0;
    static const float map[3][7] = {
        {0, 3, 3, 0, 0, NAN, 0}, {0, 3, 3, 0, 0, 2, NAN}, {0, 0, 0, 0, 0, 0, 1}};
    struct rfx_peaks_options o = {7, 3, 1, 1, &zero};
    struct list got = {.stop_at = -1};
    struct rfx_memory *mem = rfx_memory_create(0);
    assert_int_equal(run_map(mem, map[0], &o, &got, NULL), RFX_OK);
    assert_int_equal(got.n, 2);
    assert_true(same(&got.peaks[0], &(struct rfx_peak){1, 0, 0, 3}));
    assert_true(same(&got.peaks[1], &(struct rfx_peak){5, 1, 0, 2}));
    got.n = 0;
    o.distance = 3; /* the 2 is 3 columns away from the second 3 */
    assert_int_equal(run_map(mem, map[0], &o, &got, NULL), RFX_OK);
    assert_int_equal(got.n, 1);
    got.n = 0;
    o.distance = 0; /* every pixel above the threshold */
    assert_int_equal(run_map(mem, map[0], &o, &got, NULL), RFX_OK);
    assert_int_equal(got.n, 6);
    free(got.peaks);
    rfx_memory_free(mem);
}

static void what_the_taker_says_ends_the_work(void **state) {
    (void)state;
    static const float map[4] = {1, 0, 0, 1}, zero = 0;
    const struct rfx_peaks_options o = {1, 4, 1, 1, &zero};
    struct rfx_memory *mem = rfx_memory_create(0);
    for (int64_t stop = 0; stop < 2; stop++) {
        struct list got = {.stop_at = stop};
        struct rfx_error err = {{0}};
        assert_int_equal(run_map(mem, map, &o, &got, &err), RFX_STATUS_IO);
        assert_int_equal(got.n, stop);
        assert_string_equal(err.text, "no space");
        free(got.peaks);
    }
    struct list got = {.stop_at = -1};
    struct rfx_peaks *peaks = NULL;
    assert_int_equal(rfx_peaks_create(mem, &o, keep, &got, &peaks, NULL), RFX_OK);
    for (int y = 0; y < 4; y++) assert_int_equal(rfx_peaks_row(peaks, map + y, NULL), RFX_OK);
    assert_int_equal(rfx_peaks_row(peaks, map, NULL), RFX_STATUS_INVALID_ARGUMENT);
    rfx_peaks_free(peaks);
    free(got.peaks);
    rfx_memory_free(mem);
}

/* Sizes whose product is more than a size_t holds. */
static void enormous_sizes_are_out_of_memory(void **state) {
    (void)state;
    static const float zero = 0;
    const struct rfx_peaks_options o = {INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, &zero};
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_peaks *peaks = NULL;
    struct rfx_error err = {{0}};
    assert_true(rfx_peaks_bytes(&o) == SIZE_MAX / 4);
    assert_int_equal(rfx_peaks_create(mem, &o, keep, NULL, &peaks, &err), RFX_STATUS_OUT_OF_MEMORY);
    assert_null(peaks);
    rfx_memory_free(mem);
}

static enum rfx_status build(struct rfx_memory *mem, void *context, struct rfx_error *err) {
    static const float thresholds[2] = {0, 0};
    const struct rfx_peaks_options o = {9, 9, 2, 3, thresholds};
    struct rfx_peaks *peaks = NULL;
    enum rfx_status status = rfx_peaks_create(mem, &o, keep, context, &peaks, err);
    rfx_peaks_free(peaks);
    return status;
}

static void every_failing_allocation_is_reported(void **state) {
    (void)state;
    assert_true(test_fail_each_allocation(build, NULL) >= 7);
}

/* Processor seconds at a distance; the best of three. */
static double seconds_at(int64_t distance) {
    enum { SIDE = 1200 };
    static const float least = -1;
    const struct rfx_peaks_options o = {SIDE, SIDE, 1, distance, &least};
    struct test_rng rng = test_rng_make(3);
    float *map = test_floats(SIDE * SIDE);
    double best = INFINITY;
    test_rng_fill(&rng, map, SIDE * SIDE, 0, 1);
    for (int turn = 0; turn < 3; turn++) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct list got = {.stop_at = -1};
        clock_t begin = clock();
        assert_int_equal(run_map(mem, map, &o, &got, NULL), RFX_OK);
        best = fmin(best, (double)(clock() - begin) / CLOCKS_PER_SEC);
        assert_true(got.n > 0);
        free(got.peaks);
        rfx_memory_free(mem);
    }
    free(map);
    return best;
}

static void time_does_not_grow_with_the_distance(void **state) {
    (void)state;
    double near = seconds_at(2), far = seconds_at(400);
    if (far > 8 * near) fail_msg("distance 2: %.3f s, 400: %.3f s", near, far);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_maps_are_as_defined),
        cmocka_unit_test(plateaus_have_one_peak_by_hand),
        cmocka_unit_test(what_the_taker_says_ends_the_work),
        cmocka_unit_test(enormous_sizes_are_out_of_memory),
        cmocka_unit_test(every_failing_allocation_is_reported),
        cmocka_unit_test(time_does_not_grow_with_the_distance),
    };
    return cmocka_run_group_tests_name("peaks", tests, NULL, NULL);
}
