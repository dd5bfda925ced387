/* Decoding of described heads: boxes and scores worked out by hand. The values are such that every
 * result is exact: sigmoid(0) = 0.5, exp(0) = 1. tests/acceptance/anchor_heads.py compares with
 * torchvision. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "rfexec/answers/detector_boxes.h"

enum { MOST = 16 };

/* What was handed over. */
struct taken {
    int n;
    struct rfx_box boxes[MOST];
    float points[MOST][2 * RFX_BOX_POINTS];
    bool has_points;
};

static enum rfx_status take(void *context, const struct rfx_box *box, const float *points,
                            struct rfx_error *err) {
    struct taken *taken = context;
    (void)err;
    assert_true(taken->n < MOST);
    taken->has_points = points != NULL;
    if (points != NULL) memcpy(taken->points[taken->n], points, sizeof taken->points[0]);
    taken->boxes[taken->n++] = *box;
    return RFX_OK;
}

static struct taken taken_of(const struct rfx_detector *d, int64_t cell, const float *values,
                             float threshold) {
    struct taken taken = {.n = 0};
    assert_int_equal(rfx_detector_cell(d, cell, values, threshold, rfx_detector_least(d, threshold),
                                       take, &taken, NULL),
                     RFX_OK);
    return taken;
}

/* A head of one output: box, then `classes` scores, then as many of the others as there are. Two
 * levels of 3 x 4 and 2 x 2 cells, of an image of 48 rows and 64 columns. */
static struct rfx_detector head_of(enum rfx_detector_decode decode, int64_t classes) {
    return (struct rfx_detector){
        .n_outputs = 1,
        .n_levels = 2,
        .outputs = {{.axes = "yxa v", .channels = 4 + classes}},
        .levels = {{.stride = 16, .anchors = 1, .anchor = {{20, 10}}, .h = 3, .w = 4},
                   {.stride = 32, .anchors = 1, .anchor = {{40, 8}}, .h = 2, .w = 2}},
        .decode = decode,
        .background = -1,
        .offset = 0.5F,
        .weights = {1, 1, 1, 1},
        .limit = INFINITY,
        .image_h = 48,
        .image_w = 64,
        .channels = 4 + classes,
        .places = {[RFX_DETECTOR_BOX] = {0, 0, 4},
                   [RFX_DETECTOR_OBJECTNESS] = {.output = -1},
                   [RFX_DETECTOR_SCORES] = {0, 4, classes},
                   [RFX_DETECTOR_POINTS] = {.output = -1}},
        .most_anchors = 1};
}

static void assert_box(const struct rfx_box *box, const float corner[4], float score, int label,
                       int index) {
    for (int i = 0; i < 4; i++)
        if (!(box->corner[i] == corner[i]))
            fail_msg("corner %d is %.9g, not %.9g", i, (double)box->corner[i], (double)corner[i]);
    assert_true(box->score == score);
    assert_int_equal(box->label, label);
    assert_int_equal(box->index, index);
}

/* Cell 6 is row 1, column 2 of the first level; cell 14 is row 1, column 0 of the second. */
static void every_decoding(void **state) {
    static const struct {
        enum rfx_detector_decode decode;
        int cell;
        bool anchors, shares, clip;
        float offset, limit, values[4], corner[4];
    } cases[] = {
        {RFX_DETECTOR_CORNERS, 6, false, false, false, 0.5F, 9, {1, 2, 3, 4}, {1, 2, 3, 4}},
        {RFX_DETECTOR_CORNERS,
         6,
         false,
         true,
         false,
         0.5F,
         9,
         {0.25F, 0.5F, 1, 2},
         {16, 24, 64, 96}},
        {RFX_DETECTOR_CORNERS, 6, false, false, true, 0.5F, 9, {-1, 49, 65, 47}, {0, 48, 64, 47}},
        {RFX_DETECTOR_CENTRE, 6, false, false, false, 0.5F, 9, {10, 20, 4, 6}, {8, 17, 12, 23}},
        {RFX_DETECTOR_CENTRE,
         6,
         false,
         true,
         false,
         0.5F,
         9,
         {0.5F, 0.5F, 0.5F, 1},
         {16, 0, 48, 48}},
        /* centre of the cell: 2.5 x 16, 1.5 x 16 */
        {RFX_DETECTOR_DISTANCES,
         6,
         false,
         false,
         false,
         0.5F,
         9,
         {1, 0.5F, 2, 1},
         {24, 16, 72, 40}},
        {RFX_DETECTOR_DISTANCES, 6, true, false, false, 0, 9, {1, 0.5F, 2, 1}, {12, 11, 72, 26}},
        /* the second level: 0.5 x 32, 1.5 x 32 */
        {RFX_DETECTOR_DISTANCES, 14, false, false, false, 0.5F, 9, {0, 0, 1, 0}, {16, 48, 48, 48}},
        /* anchor 30..50 x 19..29; moved by 0.5 of 20 and by 1 of 10 */
        {RFX_DETECTOR_DELTAS, 6, true, false, false, 0.5F, 9, {0.5F, 1, 0, 0}, {40, 29, 60, 39}},
        {RFX_DETECTOR_DELTAS, 6, true, false, false, 0.5F, 0, {0, 0, 7, 8}, {30, 19, 50, 29}},
        {RFX_DETECTOR_DELTAS, 14, true, false, false, 0, 9, {0, 0, 0, 0}, {-20, 28, 20, 36}},
        {RFX_DETECTOR_CELLS, 6, false, false, false, 0.5F, 9, {0.5F, 1, 0, 0}, {32, 24, 48, 40}},
        {RFX_DETECTOR_YOLOV3, 6, true, false, false, 0.5F, 9, {0, 0, 0, 0}, {30, 19, 50, 29}},
        /* sigmoid(0) x 2 = 1, so the centre is that of the cell and the sides are the anchor's */
        {RFX_DETECTOR_YOLOV5, 6, true, false, false, 0, 9, {0, 0, 0, 0}, {30, 19, 50, 29}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rfx_detector d = head_of(cases[i].decode, 1);
        float values[5];
        d.has_anchors = cases[i].anchors;
        d.shares = cases[i].shares;
        d.clip = cases[i].clip;
        d.offset = cases[i].offset;
        d.limit = cases[i].limit;
        memcpy(values, cases[i].values, sizeof cases[i].values);
        values[4] = 0.75F;
        const struct taken taken = taken_of(&d, cases[i].cell, values, 0.5F);
        assert_int_equal(taken.n, 1);
        assert_box(&taken.boxes[0], cases[i].corner, 0.75F, 0, cases[i].cell);
    }
}

/* Shares of the image: an anchor of a quarter of its width and half of its height. Without a stride
 * cells are the image's sides over the level's. */
static void anchors_in_shares(void **state) {
    struct rfx_detector d = head_of(RFX_DETECTOR_DELTAS, 1);
    const float values[5] = {0, 0, 0, 0, 1};
    (void)state;
    d.has_anchors = d.shares = true;
    d.levels[0].anchor[0][0] = 0.25F;
    d.levels[0].anchor[0][1] = 0.5F;
    struct taken taken = taken_of(&d, 6, values, 0.5F);
    assert_box(&taken.boxes[0], (const float[4]){32, 12, 48, 36}, 1, 0, 6);
    d.levels[0].stride = 0;
    d.image_w = 72; /* 18 columns a cell, of which (2 + 0.5) x 18 = 45 is the centre */
    taken = taken_of(&d, 6, values, 0.5F);
    assert_box(&taken.boxes[0], (const float[4]){36, 12, 54, 36}, 1, 0, 6);
    d.shares = false;
    d.image_w = 74; /* in pixels: whole ones, again 18 */
    d.levels[0].anchor[0][0] = 4;
    d.levels[0].anchor[0][1] = 2;
    taken = taken_of(&d, 6, values, 0.5F);
    assert_box(&taken.boxes[0], (const float[4]){43, 23, 47, 25}, 1, 0, 6);
}

/* Two anchors of a cell, the values of both in either order. Candidates count anchors. */
static void anchors_of_a_cell(void **state) {
    struct rfx_detector d = head_of(RFX_DETECTOR_CORNERS, 1);
    const float anchors_first[10] = {1, 2, 3, 4, 0.5F, 5, 6, 7, 8, 0.75F};
    const float values_first[10] = {1, 5, 2, 6, 3, 7, 4, 8, 0.5F, 0.75F};
    (void)state;
    for (int i = 0; i < 2; i++) {
        d.levels[0].anchors = d.levels[1].anchors = d.most_anchors = 2;
        d.outputs[0].values_first = i == 1;
        struct taken taken = taken_of(&d, 6, i == 0 ? anchors_first : values_first, 0.25F);
        assert_int_equal(taken.n, 2);
        assert_box(&taken.boxes[0], (const float[4]){1, 2, 3, 4}, 0.5F, 0, 12);
        assert_box(&taken.boxes[1], (const float[4]){5, 6, 7, 8}, 0.75F, 0, 13);
        d.levels[0].anchors = 1; /* levels may differ: 12 candidates, then 2 x 2 */
        taken = taken_of(&d, 14, i == 0 ? anchors_first : values_first, 0.5F);
        assert_int_equal(taken.n, 1);
        assert_int_equal(taken.boxes[0].index, 12 + 2 * 2 + 1);
    }
}

static void scores_and_labels(void **state) {
    static const struct {
        enum rfx_detector_activation activation;
        bool every, root;
        int64_t background;
        float objectness; /* 0: none */
        float scores[3], threshold;
        int n, label[3];
        float score[3];
    } cases[] = {
        {RFX_DETECTOR_NONE, false, false, -1, 0, {0.5F, 0.75F, 0.75F}, 0.5F, 1, {1}, {0.75F}},
        {RFX_DETECTOR_NONE, false, false, -1, 0, {0.5F, 0.25F, 0.5F}, 0.5F, 0, {0}, {0}},
        {RFX_DETECTOR_NONE, true, false, -1, 0, {0.5F, 0.75F, 1}, 0.5F, 2, {1, 2}, {0.75F, 1}},
        {RFX_DETECTOR_NONE, false, false, 1, 0, {0.5F, 1, 0.75F}, 0, 1, {2}, {0.75F}},
        {RFX_DETECTOR_NONE, true, false, 0, 0, {1, 0.5F, 0.75F}, 0, 2, {1, 2}, {0.5F, 0.75F}},
        {RFX_DETECTOR_NONE, false, false, -1, 0.5F, {0.5F, 0.75F, 1}, 0.25F, 1, {2}, {0.5F}},
        {RFX_DETECTOR_NONE, false, true, -1, 0.25F, {0, 1, 0}, 0.25F, 1, {1}, {0.5F}},
        {RFX_DETECTOR_NONE, false, false, -1, 0, {NAN, 1, 1}, 0.5F, 0, {0}, {0}},
        {RFX_DETECTOR_NONE, true, false, -1, 0, {NAN, 1, 0.75F}, 0.5F, 2, {1, 2}, {1, 0.75F}},
        {RFX_DETECTOR_NONE, false, false, -1, NAN, {1, 1, 1}, 0.5F, 0, {0}, {0}},
        {RFX_DETECTOR_SIGMOID,
         true,
         false,
         -1,
         0,
         {0, -1, 0},
         0.25F,
         3,
         {0, 1, 2},
         {0.5F, 0.26894143F, 0.5F}},
        {RFX_DETECTOR_SIGMOID, true, false, -1, 0, {0, -1, 0}, 0.5F, 0, {0}, {0}},
        {RFX_DETECTOR_SIGMOID, true, false, -1, 0, {0, -1, INFINITY}, 0.5F, 1, {2}, {1}},
        {RFX_DETECTOR_SIGMOID,
         true,
         false,
         -1,
         0,
         {-INFINITY, 0, 0},
         -1,
         3,
         {0, 1, 2},
         {0, 0.5F, 0.5F}},
        /* sigmoid(1e-38) = 0.5 */
        {RFX_DETECTOR_SIGMOID, false, true, -1, 1e-38F, {0, 0, 0}, 0.4999F, 1, {0}, {0.5F}},
        {RFX_DETECTOR_SOFTMAX,
         true,
         false,
         -1,
         0,
         {0, 0, -INFINITY},
         0.25F,
         2,
         {0, 1},
         {0.5F, 0.5F}},
        {RFX_DETECTOR_SOFTMAX, true, false, 0, 0, {100, 100, -500}, 0.25F, 1, {1}, {0.5F}},
        {RFX_DETECTOR_SOFTMAX, false, false, -1, 0, {0, NAN, 0}, 0.25F, 0, {0}, {0}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rfx_detector d = head_of(RFX_DETECTOR_CORNERS, 3);
        float values[8] = {1, 2, 3, 4};
        bool given = cases[i].objectness != 0;
        d.activation = cases[i].activation;
        d.every_class = cases[i].every;
        d.root = cases[i].root;
        d.background = cases[i].background;
        memcpy(values + 4, cases[i].scores, sizeof cases[i].scores);
        values[7] = cases[i].objectness;
        d.outputs[0].channels = d.channels = 8;
        d.places[RFX_DETECTOR_OBJECTNESS] = (struct rfx_detector_place){given ? 0 : -1, 7, 1};
        const struct taken taken = taken_of(&d, 0, values, cases[i].threshold);
        if (taken.n != cases[i].n) fail_msg("case %zu: %d boxes", i, taken.n);
        for (int k = 0; k < taken.n; k++)
            assert_box(&taken.boxes[k], values, cases[i].score[k], cases[i].label[k], 0);
    }
}

/* No score is lost by the bound that spares exact ones: scores just above a threshold are found. */
static void the_bound_loses_nothing(void **state) {
    (void)state;
    for (int root = 0; root < 2; root++)
        for (int i = 1; i < 2000; i++) {
            struct rfx_detector d = head_of(RFX_DETECTOR_CORNERS, 1);
            float values[6] = {1, 2, 3, 4, (float)(i - 1000) / 60, 40}; /* sigmoid(40) = 1 */
            d.activation = RFX_DETECTOR_SIGMOID;
            d.root = root != 0;
            d.outputs[0].channels = d.channels = 6;
            d.places[RFX_DETECTOR_OBJECTNESS] = (struct rfx_detector_place){0, 5, 1};
            struct taken taken = taken_of(&d, 0, values, -1);
            assert_int_equal(taken.n, 1);
            float score = taken.boxes[0].score;
            assert_int_equal(taken_of(&d, 0, values, nextafterf(score, -1)).n, 1);
            assert_int_equal(taken_of(&d, 0, values, score).n, 0);
        }
}

static void landmarks(void **state) {
    struct rfx_detector d = head_of(RFX_DETECTOR_DELTAS, 1);
    float values[15] = {0, 0, 0, 0, 1};
    (void)state;
    d.has_anchors = true;
    d.weights[0] = d.weights[1] = 2;
    d.outputs[0].channels = d.channels = 15;
    d.places[RFX_DETECTOR_POINTS] = (struct rfx_detector_place){0, 5, 10};
    for (int k = 0; k < 10; k++) values[5 + k] = (float)k;
    struct taken taken = taken_of(&d, 6, values, 0.5F);
    assert_true(taken.has_points);
    for (int k = 0; k < 10; k++) /* k / 2 of the anchor's side 20 or 10, from 40, 24 */
        assert_true(taken.points[0][k] ==
                    (float)k / 2 * (k % 2 == 0 ? 20 : 10) + (k % 2 == 0 ? 40 : 24));
    d.decode = RFX_DETECTOR_DISTANCES;
    d.has_anchors = false;
    taken = taken_of(&d, 6, values, 0.5F);
    assert_true(taken.points[0][2] == 40 + 2 * 16 && taken.points[0][3] == 24 + 3 * 16);
    d.decode = RFX_DETECTOR_CELLS;
    taken = taken_of(&d, 6, values, 0.5F);
    assert_true(taken.points[0][2] == (2 + 2) * 16 && taken.points[0][3] == (1 + 3) * 16);
    d.places[RFX_DETECTOR_POINTS].output = -1;
    assert_false(taken_of(&d, 6, values, 0.5F).has_points);
}

/* A head of three outputs, two levels of 3 x 4 and 2 x 2 cells: two scores, sides, centre. */
static struct rfx_detector centres(enum rfx_detector_activation activation) {
    struct rfx_detector d = head_of(RFX_DETECTOR_CENTERNET, 2);
    d.n_outputs = 3;
    d.outputs[0] = (struct rfx_detector_output){
        .axes = "v y x", .n_values = 1, .values = {RFX_DETECTOR_SCORES}, .channels = 2};
    d.outputs[1] = d.outputs[2] = d.outputs[0];
    d.outputs[1].values[0] = RFX_DETECTOR_BOX_SIDES;
    d.outputs[2].values[0] = RFX_DETECTOR_BOX_CENTRE;
    d.activation = activation;
    d.every_class = true;
    assert_int_equal(rfx_detector_settle(&d), -1);
    assert_int_equal(d.channels, 8); /* with the peaks of two scores */
    return d;
}

/* Each class gives a box where none of its neighbours, whose largest score is behind the other
 * values, is larger. Cell 6 is column 2, row 1 of stride 16, cell 14 column 0, row 1 of 32. */
static void peaks(void **state) {
    static const struct {
        float scores[2], largest[2];
        int n, label;
    } cases[] = {
        {{0.75F, 0.5F}, {0.75F, 0.75F}, 1, 0},  {{0.75F, 0.75F}, {0.8F, 0.75F}, 1, 1},
        {{0.75F, 0.75F}, {0.75F, 0.75F}, 2, 0}, {{0.5F, 0.75F}, {0.5F, NAN}, 0, 0},
        {{NAN, 0.25F}, {NAN, 0.25F}, 0, 0},     {{0.75F, INFINITY}, {1, INFINITY}, 1, 1},
    };
    const float corner[2][4] = {{32, 8, 48, 56}, {0, 0, 32, 96}};
    (void)state;
    const struct rfx_detector d = centres(RFX_DETECTOR_NONE);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int level = 0; level < 2; level++) {
            const float *s = cases[i].scores, *l = cases[i].largest;
            /* sides of 1 x 3 cells; centre half a column to the right, one row down */
            const float values[8] = {s[0], s[1], 1, 3, 0.5F, level == 0 ? 1 : 0.5F, l[0], l[1]};
            int label = cases[i].label, cell = level == 0 ? 6 : 14;
            const struct taken taken = taken_of(&d, cell, values, 0.5F);
            if (taken.n != cases[i].n) fail_msg("case %zu: %d boxes", i, taken.n);
            if (taken.n > 0) assert_box(&taken.boxes[0], corner[level], s[label], label, cell);
        }
}

/* Values whose scores round to one are equal scores, as in maps behind the sigmoid. */
static void peaks_of_equal_scores(void **state) {
    const float values[8] = {30, 0, 1, 1, 0, 0, 40, 1};
    (void)state;
    const struct rfx_detector d = centres(RFX_DETECTOR_SIGMOID);
    const struct taken taken = taken_of(&d, 0, values, 0.25F);
    assert_int_equal(taken.n, 1);
    assert_box(&taken.boxes[0], (const float[4]){-8, -8, 8, 8}, 1, 0, 0);
}

/* The halves of a box may be values of their own in any decoding that has a centre. */
static void halves_of_a_box(void **state) {
    const float values[8] = {0.75F, 0, 4, 6, 10, 20};
    struct rfx_detector d = centres(RFX_DETECTOR_NONE);
    (void)state;
    d.decode = RFX_DETECTOR_CENTRE;
    assert_int_equal(rfx_detector_settle(&d), -1);
    assert_int_equal(d.channels, 6);
    const struct taken taken = taken_of(&d, 6, values, 0.5F);
    assert_int_equal(taken.n, 1);
    assert_box(&taken.boxes[0], (const float[4]){8, 17, 12, 23}, 0.75F, 0, 6);
}

static enum rfx_status refuse_second(void *context, const struct rfx_box *box, const float *points,
                                     struct rfx_error *err) {
    (void)box, (void)points, (void)err;
    return ++*(int *)context == 2 ? RFX_STATUS_BUDGET_IMPOSSIBLE : RFX_OK;
}

static void a_refusal_ends_it(void **state) {
    struct rfx_detector d = head_of(RFX_DETECTOR_CORNERS, 3);
    const float values[7] = {1, 2, 3, 4, 1, 1, 1};
    int calls = 0;
    (void)state;
    d.every_class = true;
    assert_int_equal(rfx_detector_cell(&d, 0, values, 0.5F, -INFINITY, refuse_second, &calls, NULL),
                     RFX_STATUS_BUDGET_IMPOSSIBLE);
    assert_int_equal(calls, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_decoding),
        cmocka_unit_test(anchors_in_shares),
        cmocka_unit_test(anchors_of_a_cell),
        cmocka_unit_test(scores_and_labels),
        cmocka_unit_test(the_bound_loses_nothing),
        cmocka_unit_test(landmarks),
        cmocka_unit_test(peaks),
        cmocka_unit_test(peaks_of_equal_scores),
        cmocka_unit_test(halves_of_a_box),
        cmocka_unit_test(a_refusal_ends_it),
    };
    return cmocka_run_group_tests_name("detector boxes", tests, NULL, NULL);
}
