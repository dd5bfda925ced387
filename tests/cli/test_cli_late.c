/* rfexec run on whole detectors: the boxes are those of a plain suppression of the cut tensors,
 * every plan gives the same files, and what cannot be is refused. The operators of the late nodes
 * are tested in tests/unit/rfexec/late. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli_program.h"
#include "tests/support/makers/late_maker.h"
#include "tests/support/run/network_run.h"

#define RUN "run some.onnx synthetic:32x48 "
enum { H = 32, W = 48, CELLS = H / LATE_MAKER_STRIDE * (W / LATE_MAKER_STRIDE) };

static int set_up(void **state) {
    (void)state;
    assert_int_equal(system("rm -rf *.geojson *.csv *.npy *.json *.onnx out list.txt"), 0);
    late_maker_save("some.onnx", H, W, 0.5F);
    late_maker_save("none.onnx", H, W, 2.0F);
    late_maker_save("all.onnx", H, W, -1.0F);
    expect(0, RUN "--boxes some.json -o some.npy --score 0");
    return 0;
}

/* --- a plain suppression --- */

struct found {
    float corner[4], score;
    int label;
};

static float boxes[CELLS][4], scores[CELLS][LATE_MAKER_CLASSES];

/* Candidates class by class, as the network lists them. */
static int list_candidates(float threshold, struct found *out) {
    int n = 0;
    for (int k = 0; k < LATE_MAKER_CLASSES; k++)
        for (int i = 0; i < CELLS; i++) {
            if (!(scores[i][k] > threshold)) continue;
            out[n] = (struct found){.score = scores[i][k], .label = k};
            memcpy(out[n++].corner, boxes[i], sizeof boxes[i]);
        }
    return n;
}

static float larger(float a, float b) {
    return a > b ? a : b;
}
static float smaller(float a, float b) {
    return a < b ? a : b;
}

/* In coordinates of boxes that are moved apart by their labels, as the network compares them. */
static bool overlap(const struct found *a, const struct found *b) {
    float side[2], area_a = 1, area_b = 1;
    for (int axis = 0; axis < 2; axis++) {
        float move_a = (float)a->label * LATE_MAKER_APART;
        float move_b = (float)b->label * LATE_MAKER_APART;
        float a0 = a->corner[axis] + move_a, a1 = a->corner[2 + axis] + move_a;
        float b0 = b->corner[axis] + move_b, b1 = b->corner[2 + axis] + move_b;
        float low_a = smaller(a0, a1), low_b = smaller(b0, b1);
        float high_a = larger(a0, a1), high_b = larger(b0, b1);
        side[axis] = smaller(high_a, high_b) - larger(low_a, low_b);
        area_a *= high_a - low_a;
        area_b *= high_b - low_b;
        if (side[axis] <= 0) return false;
    }
    float both = side[0] * side[1];
    return both / (area_a + area_b - both) > 0.5F;
}

/* The candidates by falling score, without those that a kept one overlaps. Equal scores keep their
 * order. */
static int suppress(struct found *list, int n) {
    int kept = 0;
    for (int i = 1; i < n; i++)
        for (int k = i; k > 0 && list[k].score > list[k - 1].score; k--) {
            struct found other = list[k];
            list[k] = list[k - 1];
            list[k - 1] = other;
        }
    for (int i = 0; i < n; i++) {
        bool dropped = false;
        for (int k = 0; k < kept && !dropped; k++) dropped = overlap(&list[i], &list[k]);
        if (!dropped) list[kept++] = list[i];
    }
    return kept;
}

static void assert_boxes(const char *path, const struct found *wanted, int n) {
    json_t *doc = json_load_file(path, 0, NULL);
    assert_non_null(doc);
    const json_t *list = json_object_get(doc, "boxes");
    assert_int_equal(json_array_size(list), n);
    for (int i = 0; i < n; i++) {
        json_t *box = json_array_get(list, (size_t)i);
        assert_int_equal(integer_at(box, "label"), wanted[i].label);
        assert_true((float)json_number_value(at(box, "score")) == wanted[i].score);
        for (int k = 0; k < 4; k++)
            assert_true((float)json_number_value(json_array_get(at(box, "box"), (size_t)k)) ==
                        wanted[i].corner[k]);
    }
    json_decref(doc);
}

static void test_boxes_are_those_of_a_plain_suppression(void **state) {
    static const struct {
        const char *model;
        float threshold;
        int least, most;
    } cases[] = {{"some", 0.5F, 5, 150}, {"all", -1.0F, 50, 192}, {"none", 2.0F, 0, 0}};
    static struct found list[CELLS * LATE_MAKER_CLASSES];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char command[300];
        (void)snprintf(command, sizeof command,
                       "run %s.onnx synthetic:32x48 --score -1 --boxes one.json --dump "
                       "all_boxes=b.npy --dump all_scores=s.npy",
                       cases[i].model);
        expect(0, command);
        read_floats("b.npy", &boxes[0][0], sizeof boxes / sizeof(float));
        read_floats("s.npy", &scores[0][0], sizeof scores / sizeof(float));
        int n = suppress(list, list_candidates(cases[i].threshold, list));
        assert_true(n >= cases[i].least && n <= cases[i].most);
        assert_boxes("one.json", list, n);
    }
}

/* The outputs are the same boxes. */
static void test_outputs_are_written_with_their_sizes(void **state) {
    (void)state;
    json_t *doc = json_load_file("some.json", 0, NULL);
    const size_t n = json_array_size(json_object_get(doc, "boxes"));
    float *values = malloc(n * 4 * sizeof *values);
    assert_non_null(values);
    assert_true(n > 0);
    read_floats("some.scores.npy", values, n);
    for (size_t i = 0; i < n; i++) {
        json_t *box = json_array_get(json_object_get(doc, "boxes"), i);
        assert_true((float)json_number_value(at(box, "score")) == values[i]);
    }
    free(values);
    json_decref(doc);
    expect(0, RUN "-o two.npy --json");
    json_t *run = document("run");
    const json_t *outputs = json_object_get(run, "outputs");
    assert_int_equal(json_array_size(outputs), 3);
    json_t *labels = json_array_get(outputs, 2);
    assert_string_equal(json_string_value(at(labels, "name")), "labels");
    assert_string_equal(json_string_value(at(labels, "type")), "int64");
    assert_int_equal(json_integer_value(json_array_get(at(labels, "shape"), 0)), n);
    assert_int_equal(json_array_size(at(run, "plan.late.cut_tensors")), 2);
    json_decref(run);
    assert_same_files("some.labels.npy", "two.labels.npy");
    assert_same_files("some.boxes.npy", "two.boxes.npy");
    expect(0, "run none.onnx synthetic:32x48 -o none.npy");
    read_text("none.boxes.npy", out_text);
    assert_non_null(strstr(out_text + 10, "(0, 4)")); /* behind magic and version */
}

static void test_files_are_the_same_for_every_plan(void **state) {
    static const char *const plans[] = {"--bands 8 --threads 1", "--bands 8 --strips 2",
                                        "--untiled --threads 3", "--tiles 2x3", "--memory 32MiB"};
    (void)state;
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) {
        char command[300];
        (void)snprintf(command, sizeof command, RUN "--boxes one.json -o one.npy --score 0 %s",
                       plans[i]);
        expect(0, command);
        assert_same_files("some.json", "one.json");
        assert_same_files("some.boxes.npy", "one.boxes.npy");
        assert_same_files("some.labels.npy", "one.labels.npy");
    }
    expect(0, RUN "--boxes few.csv --score 0.7");
    expect(0, RUN "--boxes few.coco.json --score 0.7");
    expect(0, RUN "-o few.json --score 0");
    assert_same_files("some.json", "few.json");
    expect(0, "verify some.onnx synthetic:32x48 --tiles 2x2");
}

/* Makes all of n parts of a model and writes their names, each behind a space. */
static void make_parts(const char *model, int n, char names[200]) {
    char command[200];
    int used = 0;
    for (int k = 1; k <= n; k++) {
        (void)snprintf(command, sizeof command,
                       "run %s.onnx synthetic:32x48 --part %d/%d -o %s%dof%d.npy", model, k, n,
                       model, k, n);
        expect(0, command);
        used += snprintf(names + used, 200 - (size_t)used, " %s%dof%d.npy", model, k, n);
    }
}

static void test_parts_give_the_same_files(void **state) {
    char names[200], command[400];
    (void)state;
    for (int n = 1; n <= 5; n++) {
        make_parts("some", n, names);
        assert_int_equal(system("rm -f merged.*"), 0);
        (void)snprintf(command, sizeof command, "merge%s -o merged.json --score 0 --memory 64MiB",
                       names);
        expect(0, command);
        assert_same_files("some.json", "merged.json");
        (void)snprintf(command, sizeof command, "merge%s -o merged.npy", names);
        expect(0, command);
        assert_same_files("some.boxes.npy", "merged.boxes.npy");
        assert_same_files("some.scores.npy", "merged.scores.npy");
        assert_same_files("some.labels.npy", "merged.labels.npy");
        assert_int_equal(access("merged.detections.npy", F_OK), -1);
    }
    make_parts("none", 2, names);
    expect(0, "run none.onnx synthetic:32x48 --boxes none.json");
    expect(0, "merge none1of2.npy none2of2.npy -o merged.json --json");
    json_t *run = document("merge");
    assert_int_equal(json_array_size(json_object_get(run, "outputs")), 4);
    assert_int_equal(integer_at(run, "boxes.count"), 0);
    json_decref(run);
    assert_same_files("none.json", "merged.json");
    expect(0, "plan some.onnx synthetic:32x48 --parts 3");
}

/* Boxes are placed in the picture as those of a single run: here in a rectangle of a larger one. */
static void test_parts_know_the_place_in_the_picture(void **state) {
    enum { ROWS = 40, COLUMNS = 60 };
    static float image[3 * ROWS * COLUMNS];
    (void)state;
    for (int i = 0; i < 3 * ROWS * COLUMNS; i++) image[i] = (float)(i * 37 % 101) / 50.0F - 1.0F;
    network_write_npy("large.npy", image, 3, ROWS, COLUMNS);
#define LARGE "run some.onnx large.npy --region 5,7,37,55 "
    expect(0, LARGE "--boxes single.geojson");
    expect(0, LARGE "--part 1/2 -o large1.npy");
    expect(0, LARGE "--part 2/2 -o large2.npy");
    expect(0, "merge large2.npy large1.npy -o merged.geojson");
    assert_same_files("single.geojson", "merged.geojson");
}

static void test_merging_that_cannot_be_is_refused(void **state) {
    static const char *const parts = "some1of2.npy some2of2.npy";
    char names[200], command[400];
    static const struct {
        int code;
        const char *options, *words;
    } cases[] = {{2, "-o no.tif", "-o writes them as .npy only"},
                 {2, "-o no.json --head yolov8", "yolov8"},
                 {4, "-o no.json --memory 9MiB", "cut tensors 2304, late nodes and files"},
                 {4, "-o no.json --answer-memory 3000", "3000 are allowed"},
                 {5, "-o no/such/folder.json", "folder"}};
    (void)state;
    make_parts("some", 2, names);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        (void)snprintf(command, sizeof command, "merge %s %s", parts, cases[i].options);
        expect_says(cases[i].code, command, cases[i].words);
    }
    expect_says(3, "merge some1of2.npy -o no.json", "288 of 576 cells");
    expect_says(2, RUN "--part-rect 0,0,2,1 -o no.npy", "has no rectangles");
    expect(0, "run all.onnx synthetic:32x48 --part 1/1 -o all1of1.npy");
    (void)rename("all.onnx", "kept.onnx");
    expect_says(3, "merge all1of1.npy -o no.json", "which is not there");
    late_maker_save("all.onnx", H, W, 0.25F);
    expect_says(3, "merge all1of1.npy -o no.json", "are not of model 'all.onnx'");
    (void)rename("kept.onnx", "all.onnx");
    assert_int_equal(access("no.json", F_OK), -1);
}

/* --- EfficientNMS_TRT --- */

/* As overlap, of boxes where they are; the threshold itself is too much. */
static bool covers(const struct found *a, const struct found *b) {
    float side[2], area_a = 1, area_b = 1;
    if (a->label != b->label) return false;
    for (int axis = 0; axis < 2; axis++) {
        float low_a = smaller(a->corner[axis], a->corner[2 + axis]);
        float low_b = smaller(b->corner[axis], b->corner[2 + axis]);
        float high_a = larger(a->corner[axis], a->corner[2 + axis]);
        float high_b = larger(b->corner[axis], b->corner[2 + axis]);
        side[axis] = smaller(high_a, high_b) - larger(low_a, low_b);
        area_a *= high_a - low_a;
        area_b *= high_b - low_b;
        if (side[axis] <= 0) return false;
    }
    float both = side[0] * side[1];
    return both / (area_a + area_b - both) >= 0.5F;
}

/* Takes the best candidate that no taken one covers, until there is none. */
static int take_best(const struct found *list, int n, struct found *taken) {
    static bool done[CELLS * LATE_MAKER_CLASSES];
    int kept = 0;
    memset(done, 0, sizeof done);
    while (kept < LATE_MAKER_MOST) {
        int best = -1;
        for (int i = 0; i < n; i++)
            if (!done[i] && (best < 0 || list[i].score > list[best].score)) best = i;
        if (best < 0) break;
        taken[kept++] = list[best];
        for (int i = 0; i < n; i++)
            if (i == best || covers(&list[i], &list[best])) done[i] = true;
    }
    return kept;
}

static void save_plugin(const char *path, float threshold) {
    static struct maker graph, model;
    late_maker_plugin_graph(&graph, H, W, threshold, "TRT");
    maker_model(&graph, 17, &model);
    maker_save(&model, path);
}

static void test_boxes_of_the_plugin_are_those_of_a_plain_suppression(void **state) {
    static const float thresholds[] = {0, 0.6F, 0.65F, 1};
    static const int counts[][2] = {{20, 20}, {20, 20}, {2, 19}, {0, 0}}; /* least, most */
    static struct found list[CELLS * LATE_MAKER_CLASSES], taken[LATE_MAKER_MOST];
    (void)state;
    for (int i = 0; i < 4; i++) {
        save_plugin("plugin.onnx", thresholds[i]);
        expect(0,
               "run plugin.onnx synthetic:32x48 --score -1 --boxes one.json --dump "
               "boxes=b.npy --dump scores=s.npy -o one.npy");
        read_floats("b.npy", &boxes[0][0], sizeof boxes / sizeof(float));
        read_floats("s.npy", &scores[0][0], sizeof scores / sizeof(float));
        int n = take_best(list, list_candidates(thresholds[i], list), taken);
        if (n < counts[i][0] || n > counts[i][1]) fail_msg("%d boxes", n);
        assert_boxes("one.json", taken, n);
        static float written[LATE_MAKER_MOST][4];
        read_floats("one.det_boxes.npy", &written[0][0], sizeof written / sizeof(float));
        for (int k = 0; k < LATE_MAKER_MOST; k++) { /* zeros behind the boxes */
            static const float zeros[4];
            assert_memory_equal(written[k], k < n ? taken[k].corner : zeros, sizeof zeros);
        }
    }
}

static void test_files_of_the_plugin_are_the_same(void **state) {
    static const char *const plans[] = {"--bands 8 --threads 1", "--untiled --threads 3",
                                        "--tiles 2x3 --threads 2", "--memory 32MiB"};
    char names[200], command[400];
    (void)state;
    save_plugin("plugin.onnx", 0.55F);
    expect(0, "run plugin.onnx synthetic:32x48 --score 0 --boxes plugin.json -o plugin.npy");
    for (size_t i = 0; i < 4; i++) {
        (void)snprintf(command, sizeof command,
                       "run plugin.onnx synthetic:32x48 --score 0 --boxes one.json -o one.npy %s",
                       plans[i]);
        expect(0, command);
        assert_same_files("plugin.json", "one.json");
        assert_same_files("plugin.num_dets.npy", "one.num_dets.npy");
        assert_same_files("plugin.det_boxes.npy", "one.det_boxes.npy");
        assert_same_files("plugin.det_classes.npy", "one.det_classes.npy");
    }
    for (int n = 1; n <= 3; n++) {
        make_parts("plugin", n, names);
        assert_int_equal(system("rm -f merged.*"), 0);
        (void)snprintf(command, sizeof command, "merge%s -o merged.json --score 0", names);
        expect(0, command);
        assert_same_files("plugin.json", "merged.json");
        (void)snprintf(command, sizeof command, "merge%s -o merged.npy", names);
        expect(0, command);
        assert_same_files("plugin.det_scores.npy", "merged.det_scores.npy");
    }
    expect(0, "run plugin.onnx synthetic:32x48 --boxes plugin.geojson");
    expect(0, "run plugin.onnx synthetic:32x48 --boxes plugin.csv");
    expect(0, "run plugin.onnx synthetic:32x48 --boxes plugin.coco.json");
    expect(0, "check plugin.onnx");
    assert_non_null(strstr(out_text, "operators  all"));
    expect_says(4, "run plugin.onnx synthetic:32x48 --boxes no.json --answer-memory 500",
                "(EfficientNMS_TRT)");
    expect_says(3, "bench plugin.onnx synthetic:32x48", "EfficientNMS_TRT");
    save_plugin("wild.onnx", -1.0F);
    expect_says(3, "run wild.onnx synthetic:32x48 --boxes no.json",
                "score_threshold is -1: 0 to 1 is needed");
    assert_int_equal(access("no.json", F_OK), -1);
}

static void test_plan_and_check_know_late_nodes(void **state) {
    (void)state;
    expect(0, "plan some.onnx --boxes x.json --memory 32MiB");
    assert_non_null(strstr(out_text,
                           "nodes whose sizes depend on data run after the plan, on 2 "
                           "tensors of 2.2 KiB"));
    expect(0, "check some.onnx");
    assert_non_null(strstr(out_text, "operators  all"));
    assert_non_null(strstr(out_text, "run after the plan"));
    expect(0, "plan some.onnx --boxes x.json --memory 32MiB --json");
    json_t *small = document("plan");
    expect(0, "plan some.onnx --boxes x.json --memory 64MiB --answer-memory 20MiB --json");
    json_t *large = document("plan");
    long long more =
        integer_at(large, "plan.breakdown.source") - integer_at(small, "plan.breakdown.source");
    /* by default 8 MiB and twice the cut tensors are allowed */
    assert_int_equal(more, (12 << 20) - 2 * integer_at(small, "plan.late.cut_bytes"));
    json_decref(small);
    json_decref(large);
}

static void test_memory_is_limited(void **state) {
    (void)state;
    write_file("kept.json", "as it was");
    expect_says(4, RUN "--boxes kept.json --answer-memory 3000",
                "bytes are needed beside the cut tensors, 3000 are allowed");
    read_text("kept.json", out_text);
    assert_string_equal(out_text, "as it was");
    expect(0, RUN "--boxes kept.json --answer-memory 100000");
}

static void test_what_cannot_be_is_refused(void **state) {
    static const char *const usage[] = {
        "-o x.tif",          "-o x.csv",        "--regions x.geojson",
        "--top 3",           "--report x.html", "--overlay x.png --boxes y.json",
        "-o x.npy --bits 8", "--boxes x.txt",   "-o nowhere/"};
    (void)state;
    for (size_t i = 0; i < sizeof usage / sizeof usage[0]; i++) {
        char command[300];
        (void)snprintf(command, sizeof command, RUN "%s", usage[i]);
        expect(2, command);
    }
    expect_says(2, RUN "-o x.tif", "-o writes them as .npy only");
    expect_says(2, RUN "-o x.npy --keep maps", "--dump NAME=FILE writes a tensor before them");
    expect_says(3, RUN "--boxes x.json --boxes-of scores", "three dimensions");
    expect_says(2, RUN "--boxes x.json --head yolov8", "yolov8");
    expect_says(5, RUN "--boxes no/such/folder.json", "folder");
    expect_says(3, "run some.onnx synthetic:30x46 --pad-to 16", "no padding of images");
    write_file("list.txt", "synthetic:32x48\n");
    expect(3, "run some.onnx --list list.txt --out-dir out");
    expect(3, "bench some.onnx synthetic:32x48");
    assert_int_equal(access("x.npy", F_OK), -1);
    assert_int_equal(access("x.json", F_OK), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_boxes_are_those_of_a_plain_suppression),
        cmocka_unit_test(test_outputs_are_written_with_their_sizes),
        cmocka_unit_test(test_files_are_the_same_for_every_plan),
        cmocka_unit_test(test_parts_give_the_same_files),
        cmocka_unit_test(test_parts_know_the_place_in_the_picture),
        cmocka_unit_test(test_merging_that_cannot_be_is_refused),
        cmocka_unit_test(test_boxes_of_the_plugin_are_those_of_a_plain_suppression),
        cmocka_unit_test(test_files_of_the_plugin_are_the_same),
        cmocka_unit_test(test_plan_and_check_know_late_nodes),
        cmocka_unit_test(test_memory_is_limited),
        cmocka_unit_test(test_what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests_name("cli_late", tests, set_up, NULL);
}
