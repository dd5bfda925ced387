/* Pictures of placements: the rectangles that gnuplot is told to draw against the answer they show,
 * by hand and on random problems; where labels, names and the legend go. The script is read back as
 * text, gnuplot is not started. */
#include "tools/study/placement_chart.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/test_util.h"
#include "tiler/arena/greedy_packers.h"
#include "tools/study/chart.h"

enum { MIB = 1 << 20, MAX_BOXES = 256 };

struct box {
    double x, y, x_end, y_end;
};

static struct rfx_memory *mem;

/* The script of a picture; free it. */
static char *make_script(const struct rfx_placement_drawing *picture) {
    struct rfx_placement_chart *chart = NULL;
    struct rfx_error err = {{0}};
    if (rfx_placement_chart_create(mem, picture, &chart, &err) != RFX_OK) fail_msg("%s", err.text);
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    rfx_chart_script(rfx_placement_chart_get(chart), 1, false, stream);
    assert_int_equal(fclose(stream), 0);
    rfx_placement_chart_free(chart);
    return text;
}

/* Reads data block $s<k>; its number of rows of four, -1: there is no such block. */
static int read_block(const char *script, int k, struct box *boxes) {
    char head[40];
    int n = 0, used;
    (void)snprintf(head, sizeof head, "$s%d << END_OF_DATA\n", k);
    const char *at = strstr(script, head);
    if (at == NULL) return -1;
    at += strlen(head);
    while (strncmp(at, "END_OF_DATA", 11) != 0) {
        struct box *box = &boxes[n];
        assert_true(n < MAX_BOXES);
        if (sscanf(at, "%lf %lf %lf %lf\n%n", &box->x, &box->y, &box->x_end, &box->y_end, &used) !=
            4)
            fail_msg("row %d of %s: %.40s", n, head, at);
        at += used;
        ++n;
    }
    return n;
}

static void expect_boxes(const char *script, int k, const struct box *want, int n) {
    struct box got[MAX_BOXES];
    assert_int_equal(read_block(script, k, got), n);
    for (int i = 0; i < n; ++i)
        if (got[i].x != want[i].x || got[i].y != want[i].y || got[i].x_end != want[i].x_end ||
            got[i].y_end != want[i].y_end)
            fail_msg("block %d row %d: %g %g %g %g", k, i, got[i].x, got[i].y, got[i].x_end,
                     got[i].y_end);
}

static void expect_text(const char *script, const char *text) {
    if (strstr(script, text) == NULL) fail_msg("no \"%s\" in\n%s", text, script);
}

static void expect_no_text(const char *script, const char *text) {
    if (strstr(script, text) != NULL) fail_msg("\"%s\" in\n%s", text, script);
}

/* Four operators. The second needs a and b, 5 MiB; c lies where a was. */
static const struct rfx_place_item small_items[] = {
    {0, 2, 4 * MIB, 64}, {1, 3, MIB, 64}, {2, 4, 2 * MIB, 64}};
static const size_t small_offsets[] = {0, 4 * MIB, 0};
static const char *const small_names[] = {"stem.conv", "block.0.conv", "block.1.conv"};
static const char *const small_steps[] = {"stem.conv", "block.0.conv", "block.1.conv", "head"};
static const int small_kinds[] = {0, 2, 0};
static const struct rfx_placement_kind kinds[] = {{"wide", 1}, {"nobody", 2}, {"deep", 3}};

static struct rfx_placement_drawing small_picture(const struct rfx_place_problem *problem,
                                                  const struct rfx_packer_result *result) {
    return (struct rfx_placement_drawing){.subject = "net",
                                          .items = "tensors",
                                          .problem = problem,
                                          .offsets = small_offsets,
                                          .result = result,
                                          .names = small_names,
                                          .kinds = small_kinds,
                                          .kind = kinds,
                                          .n_kinds = 3,
                                          .steps = small_steps,
                                          .n_steps = 4};
}

/* Steps stand at 0, 1, 2, 3: the first ends at 0.5. A kind without items is not drawn. */
static void test_steps(void **state) {
    static const struct box wide[] = {{-0.5, 0, 1.5, 4}, {1.5, 0, 3.5, 2}};
    static const struct box deep[] = {{0.5, 4, 2.5, 5}};
    static const struct box at_peak[] = {{-0.5, 0, 1.5, 4}, {0.5, 4, 2.5, 5}};
    struct rfx_place_problem *problem;
    struct rfx_packer_result result = {5 * MIB, 5 * MIB, true, "by-hand", 0};
    (void)state;
    assert_int_equal(rfx_place_problem_create(mem, small_items, 3, &problem, NULL), RFX_OK);
    struct rfx_placement_drawing picture = small_picture(problem, &result);
    char *script = make_script(&picture);
    expect_boxes(script, 0, wide, 2);
    expect_boxes(script, 1, deep, 1);
    expect_boxes(script, 2, at_peak, 2);
    expect_text(script, "$s3 << END_OF_DATA\n-0.5 5 0\n3.5 5 0\n"); /* the bound */
    expect_text(script, "'net: 3 tensors in 5.000 MiB'");
    expect_text(script,
                "'strategy by-hand; proven: no arena can be smaller. Without sharing: 7.000 MiB'");
    expect_text(script, "'peak: 5.000 MiB alive at block.0.conv'");
    expect_text(script, "title 'wide'");
    expect_text(script, "title 'lower bound 5.000 MiB'");
    expect_text(script, "set ylabel 'address [MiB]'");
    expect_no_text(script, "nobody");
    expect_no_text(script, "title 'arena"); /* it would lie on the bound */
    free(script);
    rfx_place_problem_free(problem);
}

/* An arena above the bound has a line of its own, and times without names are numbers. */
static void test_times(void **state) {
    static const struct rfx_place_item items[] = {
        {10, 30, 400, 1}, {20, 50, 300, 1}, {40, 60, 9, 1}};
    static const size_t offsets[] = {100, 500, 0};
    static const char *const names[] = {"a", "b", "c"};
    static const struct box at_peak[] = {{10, 100, 30, 500}, {20, 500, 50, 800}};
    static const struct box others[] = {{40, 0, 60, 9}};
    struct rfx_place_problem *problem;
    struct rfx_packer_result result = {800, 700, false, "by-hand", 0};
    (void)state;
    assert_int_equal(rfx_place_problem_create(mem, items, 3, &problem, NULL), RFX_OK);
    struct rfx_placement_drawing picture = {.subject = "p.csv",
                                            .items = "items",
                                            .problem = problem,
                                            .offsets = offsets,
                                            .result = &result,
                                            .names = names};
    char *script = make_script(&picture);
    expect_boxes(script, 0, at_peak, 2);
    expect_boxes(script, 1, others, 1);
    expect_boxes(script, 2, at_peak, 2);
    expect_text(script, "$s3 << END_OF_DATA\n10 700 0\n60 700 0\n");
    expect_text(script, "$s4 << END_OF_DATA\n10 800 0\n60 800 0\n");
    expect_text(script, "set xrange [10:60]");
    expect_text(script, "set ylabel 'address [bytes]'");
    expect_text(script,
                "'strategy by-hand; proven lower bound 700 bytes. Without sharing: 709 bytes'");
    expect_text(script, "'peak: 700 bytes alive from 20 to 30'");
    expect_text(script, "title 'lower bound 700 bytes'");
    expect_text(script, "title 'arena 800 bytes'");
    free(script);
    rfx_place_problem_free(problem);
}

static bool boxes_meet(const struct box *a, const struct box *b) {
    return a->x < b->x_end && b->x < a->x_end && a->y < b->y_end && b->y < a->y_end;
}

/* Of random answers: each item is one rectangle at its offset, no two meet, and those framed add up
 * to the lower bound at one time. Sizes are whole bytes below 10 KiB, so that numbers are exact. */
static void test_random(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 200; ++seed) {
        struct test_rng rng = test_rng_make(seed);
        struct rfx_place_item items[24];
        size_t offsets[24];
        const char *names[24];
        struct box boxes[MAX_BOXES], frames[MAX_BOXES];
        struct rfx_place_problem *problem;
        struct rfx_packer_result result = {.method = "by-size"};
        int n = (int)test_rng_int(&rng, 1, 24);
        for (int i = 0; i < n; ++i) {
            int64_t lo = test_rng_int(&rng, -20, 20);
            items[i] = (struct rfx_place_item){lo, lo + test_rng_int(&rng, 1, 15),
                                               (size_t)test_rng_int(&rng, 1, 400), 1};
            names[i] = "x";
        }
        assert_int_equal(rfx_place_problem_create(mem, items, n, &problem, NULL), RFX_OK);
        assert_int_equal(
            rfx_greedy_place(problem, RFX_GREEDY_BY_SIZE, NULL, offsets, &result.arena_bytes, NULL),
            RFX_OK);
        struct rfx_placement_drawing picture = {.subject = "random",
                                                .items = "items",
                                                .problem = problem,
                                                .offsets = offsets,
                                                .result = &result,
                                                .names = names};
        char *script = make_script(&picture);
        int at_peak = read_block(script, 0, boxes), others = 0;
        if (at_peak < n) others = read_block(script, 1, boxes + at_peak);
        int framed = read_block(script, at_peak < n ? 2 : 1, frames);
        if (at_peak + others != n || framed != at_peak)
            fail_msg("seed %d: %d + %d boxes, %d frames of %d items", (int)seed, at_peak, others,
                     framed, n);
        for (int i = 0; i < n; ++i) {
            int found = 0;
            for (int k = 0; k < n; ++k)
                found += boxes[k].x == (double)items[i].lo &&
                         boxes[k].x_end == (double)items[i].hi &&
                         boxes[k].y == (double)offsets[i] &&
                         boxes[k].y_end == (double)(offsets[i] + items[i].size);
            if (found != 1) fail_msg("seed %d: item %d is drawn %d times", (int)seed, i, found);
            for (int k = 0; k < i; ++k)
                if (boxes_meet(&boxes[i], &boxes[k]))
                    fail_msg("seed %d: boxes %d and %d meet", (int)seed, i, k);
        }
        double bytes = 0.0, begin = -INFINITY, end = INFINITY;
        for (int k = 0; k < framed; ++k) {
            bytes += frames[k].y_end - frames[k].y;
            begin = fmax(begin, frames[k].x);
            end = fmin(end, frames[k].x_end);
        }
        if (bytes != (double)problem->lower_bound || begin >= end)
            fail_msg("seed %d: %g bytes framed from %g to %g, bound %zu", (int)seed, bytes, begin,
                     end, problem->lower_bound);
        free(script);
        rfx_place_problem_free(problem);
    }
}

/* Boxes on a plot of 800 x about 400 pixels, 8 x 4 units: wide, tall, too small; the first line
 * that fits is taken. */
static void test_labels(void **state) {
    static const double x[] = {0, 4, 5, 6}, x_end[] = {4, 4.5, 5.1, 7};
    static const double y[] = {0, 0, 0, 0}, y_end[] = {1, 3, 0.1, 1};
    static const char *const labels[] = {"wide box", "a tall box", "nothing",
                                         "a label that is much too long\nshort\ns"};
    struct rfx_chart_series series = {.style = RFX_CHART_BOXES,
                                      .n = 4,
                                      .x = x,
                                      .y = y,
                                      .x_end = x_end,
                                      .y_end = y_end,
                                      .labels = labels};
    struct rfx_chart chart = {.x = {.max = 8}, .y = {.max = 4}, .n_series = 1, .series = &series};
    char *text = NULL;
    size_t size = 0;
    (void)state;
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    rfx_chart_script(&chart, 1, false, stream);
    assert_int_equal(fclose(stream), 0);
    expect_text(text, "set label 'wide box' at 2,0.5 center font ',12'");
    expect_text(text, "set label 'a tall box' at 4.25,1.5 center rotate by 90 font ',12'");
    expect_text(text, "set label 'short' at 6.5,0.5 center font ',12'");
    expect_no_text(text, "nothing");
    expect_no_text(text, "much too long");
    free(text);
    /* without a range nobody knows what fits */
    chart.y.max = 0;
    stream = open_memstream(&text, &size);
    assert_non_null(stream);
    rfx_chart_script(&chart, 1, false, stream);
    assert_int_equal(fclose(stream), 0);
    expect_no_text(text, "set label");
    free(text);
}

/* The legend goes into the upper right corner when that is free, else below the plot. */
static void test_legend(void **state) {
    double x = 0, x_end = 4, y = 0, y_end = 4;
    struct rfx_chart_series series = {.name = "boxes",
                                      .style = RFX_CHART_BOXES,
                                      .n = 1,
                                      .x = &x,
                                      .y = &y,
                                      .x_end = &x_end,
                                      .y_end = &y_end};
    struct rfx_chart chart = {.x = {.max = 8}, .y = {.max = 4}, .n_series = 1, .series = &series};
    (void)state;
    for (int k = 0; k < 3; ++k) {
        char *text = NULL;
        size_t size = 0;
        if (k == 1) x_end = 8;
        if (k == 2) y_end = 1;
        FILE *stream = open_memstream(&text, &size);
        assert_non_null(stream);
        rfx_chart_script(&chart, 1, false, stream);
        assert_int_equal(fclose(stream), 0);
        expect_text(text, k == 1 ? "bottom center vertical" : "top right vertical");
        free(text);
    }
}

static void test_step_names(void **state) {
    static const struct {
        const char *name;
        int depth, length;
    } cases[] = {
        {"features.3.conv", 1, 8},
        {"features.3.conv", 2, 10},
        {"features.3.conv", 3, 15},
        {"features.3.conv", 9, 15},
        {"/a/b", 1, 2},
        {"", 1, 0},
    };
    static const char *const names[] = {"a.0.x", "a.0.y", "a.1.x", "b.1.x", "b.1.y", "a.1.y"};
    static const int depths[] = {0, 0, 0, 1, 2, 2}; /* runs: 3 of one part, 4 of two, 6 of three */
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i)
        assert_int_equal(rfx_step_name_length(cases[i].name, cases[i].depth), cases[i].length);
    for (int most = 0; most < 6; ++most)
        assert_int_equal(rfx_step_name_depth(names, 6, most), depths[most]);
    assert_true(rfx_step_name_depth(names, 6, 6) >= 3);
}

/* Stages of many operators keep their names where short ones beside them have no room. */
static void test_stages(void **state) {
    enum { N = 200 };
    static char text[N][16];
    const char *steps[N];
    struct rfx_place_problem *problem;
    struct rfx_packer_result result = {5 * MIB, 5 * MIB, true, "by-hand", 0};
    (void)state;
    for (int i = 0; i < N; ++i) {
        (void)snprintf(text[i], sizeof text[i], i < 2 ? "in%d.%d" : "stage%d.%d",
                       i < 2 ? i : i / 100, i);
        steps[i] = text[i];
    }
    assert_int_equal(rfx_place_problem_create(mem, small_items, 3, &problem, NULL), RFX_OK);
    struct rfx_placement_drawing picture = small_picture(problem, &result);
    picture.steps = steps;
    picture.n_steps = N;
    char *script = make_script(&picture);
    expect_text(script, "('stage0' 2, 'stage1' 100)");
    free(script);
    rfx_place_problem_free(problem);
}

static enum rfx_status build_chart(struct rfx_memory *memory, void *context,
                                   struct rfx_error *err) {
    struct rfx_placement_chart *chart = NULL;
    enum rfx_status status = rfx_placement_chart_create(memory, context, &chart, err);
    rfx_placement_chart_free(chart);
    return status;
}

static void test_failures(void **state) {
    struct rfx_place_problem *problem;
    struct rfx_packer_result result = {5 * MIB, 5 * MIB, true, "by-hand", 0};
    struct rfx_error err = {{0}};
    (void)state;
    assert_int_equal(rfx_place_problem_create(mem, small_items, 3, &problem, NULL), RFX_OK);
    struct rfx_placement_drawing picture = small_picture(problem, &result);
    assert_int_equal(test_fail_each_allocation(build_chart, &picture), 8);
    rfx_place_problem_free(problem);
    assert_int_equal(rfx_place_problem_create(mem, NULL, 0, &problem, NULL), RFX_OK);
    picture.problem = problem;
    assert_int_equal(build_chart(mem, &picture, &err), RFX_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "net: no tensors"));
    rfx_place_problem_free(problem);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps),  cmocka_unit_test(test_times),
        cmocka_unit_test(test_random), cmocka_unit_test(test_labels),
        cmocka_unit_test(test_legend), cmocka_unit_test(test_step_names),
        cmocka_unit_test(test_stages), cmocka_unit_test(test_failures),
    };
    mem = rfx_memory_create(0);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    rfx_memory_free(mem);
    return failed;
}
