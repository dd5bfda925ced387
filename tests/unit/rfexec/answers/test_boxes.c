/* Non-maximum suppression against a loop over all pairs in torchvision's order of operations, and
 * against results of torchvision 0.29.1 that are written out here: random lists of all kinds, ties,
 * boxes without area, NaN and infinite values, order of adding, full lists, failing allocations. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "layers/core/real_math.h"
#include "rfexec/answers/boxes.h"
#include "tests/support/test_util.h"

enum { MOST = 3000 };

/* ---- the naive reference ---- */

/* Positions in the order in which candidates are visited: score, NaN first, then index, label. */
static int by_score(const void *left, const void *right) {
    const struct rfx_box *a = left, *b = right;
    double x = isnan(a->score) ? INFINITY : a->score, y = isnan(b->score) ? INFINITY : b->score;
    if (isnan(a->score) && !isnan(b->score)) return -1;
    if (isnan(b->score) && !isnan(a->score)) return 1;
    if (x != y) return x > y ? -1 : 1;
    if (a->index != b->index) return a->index < b->index ? -1 : 1;
    return a->label < b->label ? -1 : a->label > b->label;
}

static float pair_overlap(const float *a, const float *b) {
    volatile float a_w = a[2] - a[0], a_h = a[3] - a[1], b_w = b[2] - b[0], b_h = b[3] - b[1];
    volatile float a_area = a_w * a_h, b_area = b_w * b_h;
    float left = a[0] < b[0] ? b[0] : a[0], top = a[1] < b[1] ? b[1] : a[1];
    float right = b[2] < a[2] ? b[2] : a[2], bottom = b[3] < a[3] ? b[3] : a[3];
    volatile float w = right - left, h = bottom - top;
    if (0 < w) {
    } else
        w = 0;
    if (0 < h) {
    } else
        h = 0;
    volatile float inter = w * h;
    volatile float sum = a_area + b_area;
    volatile float both = sum - inter;
    return inter / both;
}

static int64_t suppress_naively(struct rfx_box *list, int64_t n, double threshold, bool by_label) {
    bool *dropped = calloc((size_t)n + 1, sizeof *dropped);
    assert_non_null(dropped);
    qsort(list, (size_t)n, sizeof *list, by_score);
    int64_t left = 0;
    for (int64_t i = 0; i < n; i++) {
        if (dropped[i]) continue;
        for (int64_t j = i + 1; j < n; j++)
            if (!dropped[j] && (!by_label || list[i].label == list[j].label))
                dropped[j] = (double)pair_overlap(list[i].corner, list[j].corner) > threshold;
    }
    for (int64_t i = 0; i < n; i++)
        if (!dropped[i]) list[left++] = list[i];
    free(dropped);
    return left;
}

/* ---- helpers ---- */

static struct rfx_boxes *make(struct rfx_memory *mem, int64_t most) {
    struct rfx_boxes *boxes = NULL;
    struct rfx_error err = {{0}};
    if (rfx_boxes_create(mem, most, &boxes, &err) != RFX_OK) fail_msg("%s", err.text);
    return boxes;
}

static void add_all(struct rfx_boxes *boxes, const struct rfx_box *list, int64_t n) {
    struct rfx_error err = {{0}};
    for (int64_t i = 0; i < n; i++)
        if (rfx_boxes_add(boxes, &list[i], &err) != RFX_OK) fail_msg("%s", err.text);
}

static void shuffle(struct test_rng *rng, struct rfx_box *list, int64_t n) {
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t j = test_rng_int(rng, 0, i);
        struct rfx_box moved = list[i];
        list[i] = list[j];
        list[j] = moved;
    }
}

/* Suppresses the list in the order given and compares with `want`. */
static void expect(const struct rfx_box *list, int64_t n, double threshold, bool by_label,
                   const struct rfx_box *want, int64_t n_want, const char *what) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_boxes *boxes = make(mem, n);
    int64_t count = -1;
    add_all(boxes, list, n);
    uint64_t before = rfx_memory_allocation_count(mem);
    rfx_boxes_suppress(boxes, threshold, by_label);
    assert_int_equal(rfx_memory_allocation_count(mem), before);
    const struct rfx_box *got = rfx_boxes_list(boxes, &count);
    for (int64_t i = 0; i < count && i < n_want; i++)
        if (memcmp(&got[i], &want[i], sizeof want[i]) != 0)
            fail_msg("%s: box %lld of %lld is index %lld label %d, wanted index %lld label %d",
                     what, (long long)i, (long long)count, (long long)got[i].index,
                     (int)got[i].label, (long long)want[i].index, (int)want[i].label);
    if (count != n_want)
        fail_msg("%s: %lld boxes, wanted %lld", what, (long long)count, (long long)n_want);
    rfx_boxes_free(boxes);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

/* ---- random lists ---- */

enum kind { MIXED, PILES, GRID, STRIPES, SPECIAL, EQUAL, KINDS };

static void draw_corners(struct test_rng *rng, enum kind kind, float corner[4]) {
    float x = test_rng_float(rng, 0, 2000), y = test_rng_float(rng, 0, 2000);
    float w = exp2f(test_rng_float(rng, 0, 10)), h = w * test_rng_float(rng, 0.5f, 2);
    if (kind == PILES) { /* shifted copies of forty boxes */
        int64_t pile = test_rng_int(rng, 0, 39);
        x = (float)(pile % 8 * 100) + test_rng_float(rng, 0, 15);
        y = (float)(pile / 8 * 100) + test_rng_float(rng, 0, 15);
        w = h = 60;
    } else if (kind == GRID) { /* few coordinates: equal corners, borders that touch, no area */
        x = (float)test_rng_int(rng, 0, 12);
        y = (float)test_rng_int(rng, 0, 12);
        w = (float)test_rng_int(rng, -1, 4);
        h = (float)test_rng_int(rng, -1, 4);
    } else if (kind == STRIPES) { /* long and thin */
        w = test_rng_chance(rng, 50) ? test_rng_float(rng, 0, 1900) : test_rng_float(rng, 0, 3);
        h = test_rng_chance(rng, 50) ? test_rng_float(rng, 0, 1900) : test_rng_float(rng, 0, 3);
    } else if (kind == EQUAL) {
        x = y = 5;
        w = h = 7;
    }
    corner[0] = x;
    corner[1] = y;
    corner[2] = x + w;
    corner[3] = y + h;
}

static void draw_list(struct test_rng *rng, enum kind kind, struct rfx_box *list, int64_t n) {
    int64_t levels = test_rng_chance(rng, 50) ? 10 : 1 << 20; /* of scores: many ties, or few */
    memset(list, 0, (size_t)n * sizeof *list);
    for (int64_t i = 0; i < n; i++) {
        draw_corners(rng, kind, list[i].corner);
        list[i].score = (float)test_rng_int(rng, 0, levels) / (float)levels;
        list[i].label = (int32_t)test_rng_int(rng, 0, 4);
        list[i].index = i / 2; /* two labels of an index */
        if (i % 2 == 1) list[i].label = (list[i - 1].label + 1) % 5;
        if (kind == SPECIAL) {
            for (int k = 0; k < 4; k++) test_rng_specials(rng, &list[i].corner[k], 1);
            test_rng_specials(rng, &list[i].score, 1);
        }
    }
}

static void check_list(uint64_t seed, enum kind kind, int64_t n) {
    static const double thresholds[] = {0, 0x1p-30, 0.1, 0.45, 0.5, 0.7, 1};
    struct test_rng rng = test_rng_make(seed);
    struct rfx_box *list = malloc((size_t)n * sizeof *list);
    struct rfx_box *want = malloc((size_t)n * sizeof *want);
    assert_true(list != NULL && want != NULL);
    draw_list(&rng, kind, list, n);
    for (size_t t = 0; t < sizeof thresholds / sizeof *thresholds; t++)
        for (int by_label = 0; by_label < 2; by_label++) {
            char what[96];
            (void)snprintf(what, sizeof what, "{%llu, %d, %lld} threshold %g by label %d",
                           (unsigned long long)seed, (int)kind, (long long)n, thresholds[t],
                           by_label);
            memcpy(want, list, (size_t)n * sizeof *want);
            int64_t left = suppress_naively(want, n, thresholds[t], by_label);
            shuffle(&rng, list, n);
            expect(list, n, thresholds[t], by_label, want, left, what);
        }
    free(list);
    free(want);
}

static void random_lists_as_the_naive_loop(void **state) {
    (void)state;
    uint64_t first = (uint64_t)test_env_int("RFX_SEED", 1);
    int64_t cases = test_env_int("RFX_CASES", 20);
    for (uint64_t seed = first; seed < first + (uint64_t)cases; seed++)
        for (int kind = 0; kind < KINDS; kind++) {
            struct test_rng rng = test_rng_make(seed * KINDS + (uint64_t)kind);
            int64_t most = test_rng_chance(&rng, 20) ? 600 : 60;
            check_list(seed, (enum kind)kind, test_rng_int(&rng, 1, most));
        }
    for (int kind = 0; kind < KINDS; kind++) check_list(first, (enum kind)kind, MOST);
    for (int64_t n = 1; n < 70; n++) check_list(first, MIXED, n); /* all shapes of small trees */
}

/* ---- scores that decay ---- */

static bool has_area_naively(const float *c) {
    volatile float w = c[2] - c[0], h = c[3] - c[1];
    volatile float area = w * h;
    return area > 0 && area < INFINITY;
}

static int64_t decay_naively(struct rfx_box *list, int64_t n, float score, bool by_label) {
    int64_t left = 0;
    for (int64_t i = 0; i < n; i++) { /* boxes without area first: they stay */
        if (has_area_naively(list[i].corner)) continue;
        struct rfx_box moved = list[left];
        list[left++] = list[i];
        list[i] = moved;
    }
    for (; left < n; left++) {
        int64_t best = left;
        for (int64_t i = left + 1; i < n; i++)
            if (by_score(&list[i], &list[best]) < 0) best = i;
        if (list[best].score <= score) break;
        struct rfx_box chosen = list[best];
        list[best] = list[left];
        list[left] = chosen;
        for (int64_t i = left + 1; i < n; i++) {
            if (by_label && list[i].label != chosen.label) continue;
            double share = (double)pair_overlap(chosen.corner, list[i].corner);
            if (share > 0)
                list[i].score = (float)((double)list[i].score * rfx_exp(-(share * share) / 0.5));
        }
    }
    qsort(list, (size_t)left, sizeof *list, by_score);
    return left;
}

static void scores_decay_as_in_the_naive_loop(void **state) {
    (void)state;
    static struct rfx_box list[MOST], want[MOST];
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_boxes *boxes = make(mem, MOST);
    bool lowered = false, dropped = false;
    for (uint64_t seed = 1; seed <= 120; seed++) {
        struct test_rng rng = test_rng_make(seed);
        int64_t n = test_rng_int(&rng, 1, seed % 10 == 0 ? 1000 : 70), count;
        float least = test_rng_float(&rng, 0, 0.6f);
        bool by_label = seed % 2 == 0;
        draw_list(&rng, (enum kind)(seed % KINDS), list, n);
        memcpy(want, list, (size_t)n * sizeof *want);
        shuffle(&rng, list, n);
        add_all(boxes, list, n);
        rfx_boxes_decay(boxes, least, by_label);
        int64_t left = decay_naively(want, n, least, by_label);
        const struct rfx_box *got = rfx_boxes_list(boxes, &count);
        if (count != left)
            fail_msg("seed %d: %d boxes, wanted %d", (int)seed, (int)count, (int)left);
        for (int64_t i = 0; i < count; i++)
            if (memcmp(&got[i], &want[i], sizeof want[i]) != 0)
                fail_msg("seed %d, box %d: index %d, score %a, wanted %d, %a", (int)seed, (int)i,
                         (int)got[i].index, (double)got[i].score, (int)want[i].index,
                         (double)want[i].score);
        dropped |= count < n;
        for (int64_t i = 0; i < n && !lowered; i++)
            lowered = count > 0 && list[i].index == got[count - 1].index &&
                      list[i].label == got[count - 1].label && list[i].score > got[count - 1].score;
        rfx_boxes_free(boxes);
        boxes = make(mem, MOST);
    }
    assert_true(lowered && dropped);
    rfx_boxes_free(boxes);
    rfx_memory_free(mem);
}

/* Two boxes of overlap 0.5: 0.8 exp(-0.25 / 0.5) = 0.485224...; the third one overlaps none. */
static void a_score_by_hand(void **state) {
    (void)state;
    const struct rfx_box list[3] = {
        {{0, 0, 2, 1}, 0.8f, 0, 1}, {{0, 0, 1, 1}, 0.9f, 0, 2}, {{5, 5, 6, 6}, 0.5f, 0, 3}};
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_boxes *boxes = make(mem, 3);
    int64_t count;
    add_all(boxes, list, 3);
    rfx_boxes_decay(boxes, 0.1f, true);
    const struct rfx_box *got = rfx_boxes_list(boxes, &count);
    assert_int_equal(count, 3);
    assert_int_equal(got[0].index, 2);
    assert_int_equal(got[1].index, 3);
    assert_int_equal(got[2].index, 1);
    assert_true(fabs((double)got[2].score - 0.4852245277701067) < 4e-8);
    rfx_boxes_free(boxes);
    rfx_memory_free(mem);
}

/* A pair is left at the threshold that equals its overlap, and not at the next smaller one: every
 * bit of the overlap counts. */
static void overlaps_of_pairs_to_the_bit(void **state) {
    (void)state;
    struct test_rng rng = test_rng_make(3);
    for (int64_t i = 0; i < 5000; i++) {
        struct rfx_box list[2] = {{.score = 1}, {.index = 1}}, one;
        for (int c = 0; c < 4; c++)
            list[0].corner[c] = list[1].corner[c] = test_rng_float(&rng, 0, 10) + (c < 2 ? 0 : 300);
        for (int c = 0; c < 4; c++) list[1].corner[c] += test_rng_float(&rng, -20, 20);
        one = list[0];
        float at = pair_overlap(list[0].corner, list[1].corner);
        assert_true(at > 0);
        expect(list, 2, at, false, list, 2, "at the overlap");
        expect(list, 2, nextafterf(at, 0), false, &one, 1, "below the overlap");
    }
}

/* ---- by hand ---- */

struct hand_case {
    const char *what;
    int n;
    struct rfx_box list[4];
    double threshold;
    bool by_label;
    int n_want, want[4]; /* positions in the list */
};

#define BIG 3e38f

/* Results of torchvision.ops.nms 0.29.1; for by_label of its batched_nms. */
static const struct hand_case hand[] = {
    {"none", 0, {{{0}, 0, 0, 0}}, 0.45, false, 0, {0}},
    {"one", 1, {{{0, 0, 10, 10}, 0.5f, 0, 0}}, 0, false, 1, {0}},
    {"equal scores: the smaller index",
     3,
     {{{0, 0, 10, 10}, 0.5f, 0, 7}, {{0, 0, 10, 9}, 0.5f, 0, 3}, {{0, 0, 9, 10}, 0.5f, 0, 5}},
     0.45,
     false,
     1,
     {1}},
    {"0 and -0 are equal scores",
     2,
     {{{0, 0, 1, 1}, 0.0f, 0, 2}, {{5, 0, 6, 1}, -0.0f, 0, 1}},
     0.45,
     false,
     2,
     {1, 0}},
    {"borders that touch do not overlap",
     2,
     {{{0, 0, 10, 10}, 0.9f, 0, 0}, {{10, 0, 20, 10}, 0.8f, 0, 1}},
     0,
     false,
     2,
     {0, 1}},
    {"any overlap is above 0",
     2,
     {{{0, 0, 10, 10}, 0.9f, 0, 0}, {{9.75f, 9.75f, 20, 20}, 0.8f, 0, 1}},
     0,
     false,
     1,
     {0}},
    {"equal boxes are not above 1",
     2,
     {{{0, 0, 10, 10}, 0.9f, 0, 0}, {{0, 0, 10, 10}, 0.8f, 0, 1}},
     1,
     false,
     2,
     {0, 1}},
    {"0.45 in float32 is below 0.45 in float64",
     2,
     {{{0, 0, 10, 10}, 0.9f, 0, 0}, {{0, 0, 10, 4.5f}, 0.8f, 0, 1}},
     0.45,
     false,
     2,
     {0, 1}},
    {"and above 0.449999988079071 in float64",
     2,
     {{{0, 0, 10, 10}, 0.9f, 0, 0}, {{0, 0, 10, 4.5f}, 0.8f, 0, 1}},
     0.449999988079071,
     false,
     1,
     {0}},
    {"a dropped box drops none",
     3,
     {{{0, 0, 10, 10}, 0.9f, 0, 0}, {{3, 0, 13, 10}, 0.8f, 0, 1}, {{6, 0, 16, 10}, 0.7f, 0, 2}},
     0.45,
     false,
     2,
     {0, 2}},
    {"labels apart",
     4,
     {{{0, 0, 10, 10}, 0.9f, 1, 0},
      {{0, 0, 10, 10}, 0.8f, 2, 1},
      {{0, 0, 10, 10}, 0.7f, 1, 2},
      {{0, 0, 10, 10}, 0.6f, 2, 3}},
     0.45,
     true,
     2,
     {0, 1}},
    {"a NaN score comes first",
     3,
     {{{0, 0, 10, 10}, 0.5f, 0, 0}, {{0, 0, 10, 10}, NAN, 0, 1}, {{20, 20, 30, 30}, 0.3f, 0, 2}},
     0.45,
     false,
     2,
     {1, 2}},
    {"a NaN corner drops none and is not dropped",
     3,
     {{{0, 0, 10, 10}, 0.5f, 0, 0}, {{0, NAN, 10, 10}, 0.9f, 0, 1}, {{0, 0, 10, 10}, 0.3f, 0, 2}},
     0.45,
     false,
     2,
     {1, 0}},
    {"infinite boxes drop none and are not dropped",
     3,
     {{{0, 0, INFINITY, INFINITY}, 0.9f, 0, 0},
      {{0, 0, 10, 10}, 0.8f, 0, 1},
      {{-INFINITY, 0, INFINITY, 10}, 0.7f, 0, 2}},
     0,
     false,
     3,
     {0, 1, 2}},
    {"nor do areas that overflow",
     2,
     {{{-BIG, -BIG, BIG, BIG}, 0.9f, 0, 0}, {{-BIG, -BIG, BIG, BIG}, 0.8f, 0, 1}},
     0,
     false,
     2,
     {0, 1}},
    {"nor do boxes with corners exchanged",
     3,
     {{{10, 10, 0, 0}, 0.9f, 0, 0}, {{0, 0, 10, 10}, 0.8f, 0, 1}, {{10, 10, 0, 0}, 0.7f, 0, 2}},
     0,
     false,
     3,
     {0, 1, 2}},
    {"nor do lines and points",
     4,
     {{{0, 5, 10, 5}, 0.9f, 0, 0},
      {{0, 0, 10, 10}, 0.8f, 0, 1},
      {{0, 5, 10, 5}, 0.7f, 0, 2},
      {{5, 5, 5, 5}, 0.6f, 0, 3}},
     0,
     false,
     4,
     {0, 1, 2, 3}},
    {"nor do areas that underflow",
     2,
     {{{0, 0, 1e-30f, 1e-30f}, 0.9f, 0, 0}, {{0, 0, 1e-30f, 1e-30f}, 0.8f, 0, 1}},
     0,
     false,
     2,
     {0, 1}},
};

static void cases_by_hand(void **state) {
    (void)state;
    for (size_t c = 0; c < sizeof hand / sizeof *hand; c++) {
        const struct hand_case *one = &hand[c];
        struct rfx_box want[4];
        for (int i = 0; i < one->n_want; i++) want[i] = one->list[one->want[i]];
        expect(one->list, one->n, one->threshold, one->by_label, want, one->n_want, one->what);
    }
}

/* 25,000 places of 16,000 x 16,000 pixels with four candidates each, of which one is left. */
static void many_boxes(void **state) {
    (void)state;
    enum { PLACES = 25000, N = 4 * PLACES };
    struct test_rng rng = test_rng_make(5);
    struct rfx_box *list = calloc(N, sizeof *list), *want = calloc(PLACES, sizeof *want);
    assert_true(list != NULL && want != NULL);
    for (int64_t i = 0; i < N; i++) {
        int64_t place = i % PLACES, turn = i / PLACES;
        float x = (float)(place % 158 * 100), y = (float)(place / 158 * 100);
        list[i] = (struct rfx_box){.corner = {x + (float)turn, y, x + 40, y + 80},
                                   .score = 1 - (float)i / N,
                                   .label = (int32_t)turn,
                                   .index = i};
        if (turn == 0) want[i] = list[i];
    }
    shuffle(&rng, list, N);
    expect(list, N, 0.45, false, want, PLACES, "many boxes");
    free(list);
    free(want);
}

/* Processor seconds of suppressing n boxes of mixed sizes; their number per area is the same for
 * all n. The best of three. */
static double seconds_of(int64_t n) {
    struct rfx_box *list = calloc((size_t)n, sizeof *list);
    assert_non_null(list);
    double best = INFINITY;
    for (int turn = 0; turn < 3; turn++) {
        struct test_rng rng = test_rng_make(8);
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_boxes *boxes = make(mem, n);
        float side = 50 * sqrtf((float)n);
        for (int64_t i = 0; i < n; i++) {
            float x = test_rng_float(&rng, 0, side), y = test_rng_float(&rng, 0, side);
            float w = exp2f(test_rng_float(&rng, 3, 9)), score = test_rng_float(&rng, 0, 1);
            list[i] = (struct rfx_box){{x, y, x + w, y + w}, score, 0, i};
        }
        add_all(boxes, list, n);
        clock_t begin = clock();
        rfx_boxes_suppress(boxes, 0.45, false);
        best = fmin(best, (double)(clock() - begin) / CLOCKS_PER_SEC);
        rfx_boxes_free(boxes);
        rfx_memory_free(mem);
    }
    free(list);
    return best;
}

/* Four times as many boxes take about five times as long; 16 times would be all pairs. */
static void time_grows_with_the_number(void **state) {
    (void)state;
    double few = seconds_of(15000), many = seconds_of(60000);
    if (many > 10 * few) fail_msg("15,000 boxes: %.3f s, 60,000: %.3f s", few, many);
}

static void sorting_keeps_all(void **state) {
    (void)state;
    struct test_rng rng = test_rng_make(9);
    static struct rfx_box list[MOST];
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_boxes *boxes = make(mem, MOST);
    int64_t count = 0;
    draw_list(&rng, SPECIAL, list, MOST);
    shuffle(&rng, list, MOST);
    add_all(boxes, list, MOST);
    rfx_boxes_sort(boxes);
    qsort(list, MOST, sizeof *list, by_score);
    assert_memory_equal(rfx_boxes_list(boxes, &count), list, sizeof list);
    assert_int_equal(count, MOST);
    rfx_boxes_free(boxes);
    rfx_memory_free(mem);
}

/* ---- memory and errors ---- */

static void bytes_are_those_of_create(void **state) {
    (void)state;
    static const int64_t sizes[] = {0, 1, 16, 17, 32, 33, 1000, 65536, 65537, 1000000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_boxes *boxes = make(mem, sizes[i]);
        assert_int_equal(rfx_memory_current_bytes(mem), rfx_boxes_bytes(sizes[i]));
        assert_true(rfx_boxes_bytes(sizes[i]) <= 48 * (size_t)sizes[i] + 1024);
        rfx_boxes_free(boxes);
        assert_int_equal(rfx_memory_current_bytes(mem), 0);
        rfx_memory_free(mem);
    }
    rfx_boxes_free(NULL);
}

static void impossible_sizes(void **state) {
    (void)state;
    static const int64_t sizes[] = {-1, (int64_t)RFX_BOXES_MOST + 1, INT64_MAX, INT64_MIN};
    struct rfx_memory *mem = rfx_memory_create(0);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct rfx_boxes *boxes = NULL;
        struct rfx_error err = {{0}};
        assert_int_equal(rfx_boxes_bytes(sizes[i]), SIZE_MAX);
        assert_int_equal(rfx_boxes_create(mem, sizes[i], &boxes, &err),
                         RFX_STATUS_INVALID_ARGUMENT);
        assert_null(boxes);
        char number[32];
        (void)snprintf(number, sizeof number, "%lld", (long long)sizes[i]);
        assert_non_null(strstr(err.text, number));
    }
    rfx_memory_free(mem);
}

static void full_lists(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_boxes *boxes = make(mem, 2);
    struct rfx_error err = {{0}};
    struct rfx_box box = {.corner = {0, 0, 10, 10}, .score = 0.5f};
    int64_t count = 0;
    for (box.index = 0; box.index < 2; box.index++)
        assert_int_equal(rfx_boxes_add(boxes, &box, &err), RFX_OK);
    assert_int_equal(rfx_boxes_add(boxes, &box, &err), RFX_STATUS_BUDGET_IMPOSSIBLE);
    assert_non_null(strstr(err.text, "more than 2 candidates"));
    (void)rfx_boxes_list(boxes, &count);
    assert_int_equal(count, 2);
    /* What was dropped makes room. */
    rfx_boxes_suppress(boxes, 0.45, false);
    assert_int_equal(rfx_boxes_add(boxes, &box, &err), RFX_OK);
    (void)rfx_boxes_list(boxes, &count);
    assert_int_equal(count, 2);
    rfx_boxes_free(boxes);
    rfx_memory_free(mem);
}

static enum rfx_status build(struct rfx_memory *mem, void *context, struct rfx_error *err) {
    struct rfx_boxes *boxes = NULL;
    enum rfx_status status = rfx_boxes_create(mem, *(const int64_t *)context, &boxes, err);
    if (status != RFX_OK) assert_null(boxes);
    rfx_boxes_free(boxes);
    return status;
}

static void failing_allocations(void **state) {
    (void)state;
    int64_t most = 1000;
    assert_int_equal(test_fail_each_allocation(build, &most), 6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_lists_as_the_naive_loop),
        cmocka_unit_test(scores_decay_as_in_the_naive_loop),
        cmocka_unit_test(a_score_by_hand),
        cmocka_unit_test(overlaps_of_pairs_to_the_bit),
        cmocka_unit_test(cases_by_hand),
        cmocka_unit_test(many_boxes),
        cmocka_unit_test(time_grows_with_the_number),
        cmocka_unit_test(sorting_keeps_all),
        cmocka_unit_test(bytes_are_those_of_create),
        cmocka_unit_test(impossible_sizes),
        cmocka_unit_test(full_lists),
        cmocka_unit_test(failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
