/* Suppression of boxes with an angle against a loop over all pairs; similarities against results of
 * Ultralytics 8.4.190 and PyTorch that are written out here; corners by hand, ties, values that are
 * not finite, order of adding, full lists, failing allocations. */
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

#include "rfexec/answers/oriented_boxes.h"
#include "tests/support/test_util.h"

enum { MOST = 1500 };

static int by_score(const void *left, const void *right) {
    const struct rfx_oriented_box *a = left, *b = right;
    if (a->score != b->score) return a->score > b->score ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

/* A box is dropped by any box before it, also by one that is dropped itself. */
static int64_t suppress_naively(struct rfx_oriented_box *list, int64_t n, float threshold,
                                bool by_label) {
    bool *dropped = calloc((size_t)n + 1, sizeof *dropped);
    assert_non_null(dropped);
    int64_t left = 0;
    qsort(list, (size_t)n, sizeof *list, by_score);
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < j && !dropped[j]; i++)
            dropped[j] = (!by_label || list[i].label == list[j].label) &&
                         rfx_oriented_similarity(&list[i], &list[j]) > threshold;
    for (int64_t i = 0; i < n; i++)
        if (!dropped[i]) list[left++] = list[i];
    free(dropped);
    return left;
}

static struct rfx_oriented_boxes *make(struct rfx_memory *mem, int64_t most) {
    struct rfx_oriented_boxes *boxes = NULL;
    struct rfx_error err = {{0}};
    if (rfx_oriented_boxes_create(mem, most, &boxes, &err) != RFX_OK) fail_msg("%s", err.text);
    return boxes;
}

static void expect(const struct rfx_oriented_box *list, int64_t n, float threshold, bool by_label,
                   const struct rfx_oriented_box *want, int64_t n_want, const char *what) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_oriented_boxes *boxes = make(mem, n);
    struct rfx_error err = {{0}};
    int64_t count = -1;
    for (int64_t i = 0; i < n; i++)
        if (rfx_oriented_boxes_add(boxes, &list[i], &err) != RFX_OK) fail_msg("%s", err.text);
    rfx_oriented_boxes_suppress(boxes, threshold, by_label);
    const struct rfx_oriented_box *got = rfx_oriented_boxes_list(boxes, &count);
    for (int64_t i = 0; i < count && i < n_want; i++)
        if (memcmp(&got[i], &want[i], sizeof want[i]) != 0)
            fail_msg("%s: box %lld of %lld is index %lld, wanted %lld", what, (long long)i,
                     (long long)count, (long long)got[i].index, (long long)want[i].index);
    if (count != n_want)
        fail_msg("%s: %lld boxes, wanted %lld", what, (long long)count, (long long)n_want);
    rfx_oriented_boxes_free(boxes);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

/* ---- random lists ---- */

enum kind { MIXED, DENSE, LARGE, ALIGNED, BORDER, THIN, LONG, TINY, SPECIAL, EQUAL, KINDS };

static void draw_shape(struct test_rng *rng, enum kind kind, struct rfx_oriented_box *box) {
    float most = kind == DENSE                   ? 150
                 : kind == LARGE || kind == LONG ? 3e5F
                 : kind == TINY                  ? 20
                                                 : 2000;
    for (int i = 0; i < 2; i++) box->centre[i] = test_rng_float(rng, -20, most);
    box->side[0] = exp2f(test_rng_float(rng, 0, kind == LARGE ? 16 : 8));
    box->side[1] = box->side[0] * test_rng_float(rng, 0.3F, 3);
    box->angle = test_rng_float(rng, -0.8F, 2.4F);
    if (kind == ALIGNED) { /* one behind the other: similar as far away as possible */
        box->centre[1] = box->angle = 0;
        box->side[0] = 120;
        box->side[1] = 2;
    }
    if (kind == LONG) { /* parallel, so that determinants are only rounding */
        box->angle = 0.3F * (float)test_rng_int(rng, 0, 3);
        box->side[0] = test_rng_float(rng, 2e4F, 6e4F);
        box->side[1] = test_rng_float(rng, 0.5F, 2);
    }
    if (kind == TINY) /* similar to all others, by the 1e-7 of the formula */
        for (int i = 0; i < 2; i++) box->side[i] = test_rng_float(rng, 0.001F, 0.02F);
    if (kind == BORDER) /* as thin as ordinary boxes may be, and a little thinner */
        box->side[1] = box->side[0] * (test_rng_chance(rng, 50) ? 60 : 65);
    if (kind == THIN) {
        box->side[0] = test_rng_float(rng, 0, 900);
        box->side[1] = test_rng_float(rng, 0, 0.6F);
    }
    if (kind == EQUAL) {
        box->centre[0] = box->centre[1] = 5;
        box->side[0] = box->side[1] = (float)test_rng_int(rng, 0, 1) * 7;
    }
    if (kind == SPECIAL && test_rng_chance(rng, 40)) {
        static const float values[] = {NAN,   INFINITY, -INFINITY, 0,   -30,
                                       1e30F, 1e-30F,   70000,     2e7F};
        float *numbers[] = {&box->centre[0], &box->centre[1], &box->side[0], &box->side[1],
                            &box->angle};
        *numbers[test_rng_int(rng, 0, 4)] = values[test_rng_int(rng, 0, 8)];
    }
}

static void draw_list(struct test_rng *rng, enum kind kind, struct rfx_oriented_box *list,
                      int64_t n) {
    memset(list, 0, (size_t)n * sizeof *list); /* bytes between the members too */
    for (int64_t i = 0; i < n; i++) {
        draw_shape(rng, kind, &list[i]);
        list[i].score = (float)test_rng_int(rng, 0, 200) / 200; /* many are equal */
        list[i].label = (int32_t)test_rng_int(rng, 0, 2);
        list[i].index = i;
    }
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t j = test_rng_int(rng, 0, i);
        struct rfx_oriented_box moved = list[i];
        list[i] = list[j];
        list[j] = moved;
    }
}

static void random_lists_as_all_pairs(void **state) {
    (void)state;
    static const float thresholds[] = {0, 0.001F, 0.1F, 0.45F, 0.7F, 0.95F, 0.9995F, 1};
    static struct rfx_oriented_box list[MOST], want[MOST];
    for (int kind = 0; kind < KINDS; kind++)
        for (int i = 0; i < 16; i++) {
            struct test_rng rng = test_rng_make((uint64_t)(kind * 100 + i));
            int64_t n = i < 4 ? test_rng_int(&rng, 0, 40) : test_rng_int(&rng, 100, 700);
            float threshold = thresholds[i % 8];
            char what[64];
            (void)snprintf(what, sizeof what, "kind %d, case %d, %lld boxes, above %g", kind, i,
                           (long long)n, (double)threshold);
            draw_list(&rng, (enum kind)kind, list, n);
            memcpy(want, list, sizeof list);
            int64_t left = suppress_naively(want, n, threshold, i % 3 != 0);
            expect(list, n, threshold, i % 3 != 0, want, left, what);
        }
}

/* ---- by hand ---- */

static void similarities_of_ultralytics(void **state) {
    (void)state;
    static const struct {
        struct rfx_oriented_box a, b;
        float want;
    } cases[] = {
        {{{10, 20}, {30, 40}, 0.3F, 0, 0, 0}, {{12, 21}, {28, 44}, 0.5F, 0, 0, 0}, 0.8782586F},
        {{{0, 0}, {100, 10}, 0.785398163F, 0, 0, 0},
         {{5, 5}, {90, 12}, 0.9F, 0, 0, 0},
         0.65665966F},
        {{{0, 0}, {10, 10}, 0, 0, 0, 0}, {{10, 0}, {10, 10}, 0, 0, 0, 0}, 0.118597746F},
        {{{5, 5}, {0, 0}, 0, 0, 0, 0}, {{5, 5}, {0, 0}, 1, 0, 0, 0}, 0.9995318F},
        {{{5, 5}, {7, 7}, 0, 0, 0, 0}, {{5, 5}, {7, 7}, 0, 0, 0, 0}, 0.9995318F},
        {{{0, 0}, {64, 1}, 1, 0, 0, 0}, {{3, 1}, {1, 50}, 1, 0, 0, 0}, 0.017666698F},
        {{{1000, 2000}, {-40, 60}, 2, 0, 0, 0},
         {{1010, 1990}, {60, -40}, 0.5F, 0, 0, 0},
         0.5969026F},
        {{{0, 0}, {4, 4}, 0, 0, 0, 0}, {{500, 0}, {4, 4}, 0, 0, 0, 0}, 0},
        {{{100000, 100000}, {300, 20}, -0.7F, 0, 0, 0},
         {{100030, 99975}, {280, 22}, -0.75F, 0, 0, 0},
         0.7069863F},
        /* rounding makes the first determinant negative */
        {{{0, 0}, {0.25F, 1e-5F}, 1.11F, 0, 0, 0},
         {{0.02F, 0.01F}, {0.11F, 0.1F}, 0.25F, 0, 0, 0},
         0.0645026F},
        {{{0, 0}, {0.25F, 1e-5F}, 0.36F, 0, 0, 0},
         {{0.02F, 0.01F}, {0.19F, 0.1F}, 0.25F, 0, 0, 0},
         0.06063634F},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float got = rfx_oriented_similarity(&cases[i].a, &cases[i].b);
        if (!(fabsf(got - cases[i].want) <= 2e-6F))
            fail_msg("case %zu: %.9g, wanted %.9g", i, (double)got, (double)cases[i].want);
        assert_true(got == rfx_oriented_similarity(&cases[i].b, &cases[i].a));
    }
}

static void corners_by_hand(void **state) {
    (void)state;
    static const float upright[4][2] = {{7, 18}, {13, 18}, {13, 22}, {7, 22}};
    struct rfx_oriented_box box = {.centre = {10, 20}, .side = {6, 4}};
    float corner[4][2];
    rfx_oriented_corners(&box, corner);
    assert_memory_equal(corner, upright, sizeof corner);
    box.angle =
        1.57079637F; /* a quarter turn clockwise: the first corner goes to the upper right */
    static const float turned[4][2] = {{12, 17}, {12, 23}, {8, 23}, {8, 17}};
    rfx_oriented_corners(&box, corner);
    for (int i = 0; i < 8; i++)
        assert_true(fabsf(corner[i / 2][i % 2] - turned[i / 2][i % 2]) < 1e-5F);
}

/* Three boxes in a row: the second is similar to both others, which are not to each other. */
static void dropped_boxes_drop_others(void **state) {
    (void)state;
    struct rfx_oriented_box list[3];
    memset(list, 0, sizeof list);
    for (int i = 0; i < 3; i++) {
        list[i].centre[0] = (float)(4 * i);
        list[i].side[0] = list[i].side[1] = 12;
        list[i].score = 0.9F - (float)i / 10;
        list[i].index = i;
    }
    assert_true(rfx_oriented_similarity(&list[0], &list[1]) > 0.6F);
    assert_true(rfx_oriented_similarity(&list[1], &list[2]) > 0.6F);
    assert_true(rfx_oriented_similarity(&list[0], &list[2]) < 0.6F);
    expect(list, 3, 0.6F, true, list, 1, "a chain");
    list[1].label = 1;
    const struct rfx_oriented_box all[3] = {list[0], list[1], list[2]};
    expect(list, 3, 0.6F, true, all, 3, "the second has another label");
    expect(list, 3, 0.6F, false, list, 1, "labels do not count");
}

/* Candidates of a large image, whose pairs would take minutes, and candidates on one spot. */
static void many_boxes_in_time(void **state) {
    (void)state;
    enum { MANY = 100000 };
    struct rfx_memory *mem = rfx_memory_create(0);
    for (int dense = 0; dense < 2; dense++) {
        struct rfx_oriented_boxes *boxes = make(mem, MANY);
        struct test_rng rng = test_rng_make(8);
        int64_t count = 0;
        for (int64_t i = 0; i < (dense != 0 ? MANY / 5 : MANY); i++) {
            float most = dense != 0 ? 200 : 8000;
            struct rfx_oriented_box box = {
                .centre = {test_rng_float(&rng, 0, most), test_rng_float(&rng, 0, most)},
                .side = {test_rng_float(&rng, 10, 90), test_rng_float(&rng, 10, 90)},
                .angle = test_rng_float(&rng, 0, 1.5F),
                .score = test_rng_float(&rng, 0, 1),
                .index = i};
            assert_int_equal(rfx_oriented_boxes_add(boxes, &box, NULL), RFX_OK);
        }
        clock_t begin = clock();
        rfx_oriented_boxes_suppress(boxes, 0.45F, true);
        (void)rfx_oriented_boxes_list(boxes, &count);
        assert_true(count > 0 && count < MANY);
        assert_true((double)(clock() - begin) < 30.0 * CLOCKS_PER_SEC);
        rfx_oriented_boxes_free(boxes);
    }
    rfx_memory_free(mem);
}

/* ---- memory and errors ---- */

static void bytes_are_those_of_create(void **state) {
    (void)state;
    static const int64_t sizes[] = {0, 1, 16, 17, 32, 33, 1000, 65536, 65537, 1000000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_oriented_boxes *boxes = make(mem, sizes[i]);
        assert_int_equal(rfx_memory_current_bytes(mem), rfx_oriented_boxes_bytes(sizes[i]));
        assert_true(rfx_oriented_boxes_bytes(sizes[i]) <= 76 * (size_t)sizes[i] + 1024);
        rfx_oriented_boxes_free(boxes);
        rfx_memory_free(mem);
    }
    rfx_oriented_boxes_free(NULL);
}

static void impossible_sizes_and_full_lists(void **state) {
    (void)state;
    static const int64_t sizes[] = {-1, (int64_t)INT32_MAX + 1, INT64_MAX, INT64_MIN};
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_error err = {{0}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct rfx_oriented_boxes *none = NULL;
        assert_int_equal(rfx_oriented_boxes_bytes(sizes[i]), SIZE_MAX);
        assert_int_equal(rfx_oriented_boxes_create(mem, sizes[i], &none, &err),
                         RFX_STATUS_INVALID_ARGUMENT);
        assert_null(none);
    }
    struct rfx_oriented_boxes *boxes = make(mem, 1);
    const struct rfx_oriented_box box = {.side = {1, 1}};
    assert_int_equal(rfx_oriented_boxes_add(boxes, &box, &err), RFX_OK);
    assert_int_equal(rfx_oriented_boxes_add(boxes, &box, &err), RFX_STATUS_BUDGET_IMPOSSIBLE);
    assert_non_null(strstr(err.text, "more than 1 candidates"));
    rfx_oriented_boxes_free(boxes);
    rfx_memory_free(mem);
}

static enum rfx_status build(struct rfx_memory *mem, void *context, struct rfx_error *err) {
    struct rfx_oriented_boxes *boxes = NULL;
    enum rfx_status status = rfx_oriented_boxes_create(mem, *(const int64_t *)context, &boxes, err);
    rfx_oriented_boxes_free(boxes);
    return status;
}

static void failing_allocations(void **state) {
    (void)state;
    int64_t most = 1000;
    assert_int_equal(test_fail_each_allocation(build, &most), 7);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_lists_as_all_pairs),
        cmocka_unit_test(similarities_of_ultralytics),
        cmocka_unit_test(corners_by_hand),
        cmocka_unit_test(dropped_boxes_drop_others),
        cmocka_unit_test(many_boxes_in_time),
        cmocka_unit_test(bytes_are_those_of_create),
        cmocka_unit_test(impossible_sizes_and_full_lists),
        cmocka_unit_test(failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
