/* rfexec run --text and --boxes --head yolov8-obb: the files do not depend on plan, threads, lists
 * and parts; what cannot be is refused. What the boxes are is tested in tests/unit/rfexec/answers
 * and, beside NumPy, SciPy and OpenCV, in tests/oracle/text_cases.py and oriented_cases.py. */
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
#include "tests/support/makers/onnx_maker.h"

#define TEXT "run text.onnx lines.npy "
#define TURNED "run yolov8n synthetic:160x192 --head yolov8-obb "
enum { H_PX = 300, W_PX = 400 };

/* Makes a network whose output is its input. */
static void make_network(const char *path) {
    static const float one = 1;
    static const int64_t image[4] = {1, 1, 0, 0}, kernel[4] = {1, 1, 1, 1};
    static struct maker graph, model;
    graph.size = model.size = 0;
    maker_value(&graph, MAKER_INPUT, "image", image, 4);
    maker_floats(&graph, "k", kernel, 4, &one);
    maker_add(&graph, "Conv", "image k", "probability");
    maker_value(&graph, MAKER_OUTPUT, "probability", NULL, 0);
    maker_model(&graph, 13, &model);
    maker_save(&model, path);
}

/* Makes a map with lines of text of many directions, each a stripe of 60 x 12 pixels. */
static void make_lines(const char *path) {
    static float values[H_PX][W_PX];
    for (int y = 0; y < H_PX; ++y)
        for (int x = 0; x < W_PX; ++x) {
            int k = y / 75 * 5 + x / 80; /* directions of Pythagorean triples */
            static const double cosines[5] = {1, 0.8, 0.6, -0.6, -0.8},
                                sines[5] = {0, 0.6, 0.8, 0.8, 0.6};
            double u = x % 80 - 40 + k % 3, v = y % 75 - 37.5;
            double along = u * cosines[k % 5] + v * sines[k % 5];
            double across = v * cosines[k % 5] - u * sines[k % 5];
            bool inside = along > -30 && along < 30 && across > -6 && across < 6;
            values[y][x] = inside ? 0.5F + 0.025F * (float)k : 0.125F;
        }
    write_floats(path, "(1, 1, 300, 400)", &values[0][0], H_PX * W_PX);
}

static int set_up(void **state) {
    (void)state;
    assert_int_equal(system("rm -rf *.geojson *.csv *.npy *.json *.onnx out"), 0);
    make_network("text.onnx");
    make_lines("lines.npy");
    expect(0, TEXT "--text all.json");
    expect(0, TURNED "--boxes turned.json");
    return 0;
}

/* Boxes 5 to 19 have scores of 0.6 and more: 0.5 + 0.025 k, from k = 4. */
static void test_boxes_are_found(void **state) {
    (void)state;
    json_t *doc = json_load_file("all.json", 0, NULL);
    assert_int_equal(json_array_size(at(doc, "boxes")), 16);
    json_decref(doc);
    expect(0, TEXT "--text some.csv --score 0.5 --threshold 0.7 --unclip 0 --json");
    doc = document("run");
    assert_int_equal(integer_at(doc, "text.count"), 11); /* 0.725 to 0.975 */
    json_decref(doc);
    read_text("some.csv", out_text);
    assert_non_null(strstr(out_text, "\n0,,0.75,"));
    expect(0, TEXT "--text - --text-of probability");
    read_text("all.json", err_text);
    assert_string_equal(out_text, err_text);
    expect(0, TURNED "--boxes - ");
    read_text("turned.json", err_text);
    assert_string_equal(out_text, err_text);
    assert_non_null(strstr(out_text, "{\"head\":\"YOLOv8 OBB head, 79 classes, 3 levels\""));
}

static void test_files_are_the_same_for_every_plan(void **state) {
    static const char *const plans[] = {
        "--bands 32 --threads 1",     "--bands 64 --strips 2", "--untiled --threads 3",
        "--tiles 2x3 --threads 2",    "--memory 48MiB",        "-o values.npy",
        "--overlay o.png --threads 1"};
    (void)state;
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; ++i) {
        char command[300];
        (void)unlink("one.json");
        (void)snprintf(command, sizeof command, TEXT "--text one.json %s", plans[i]);
        expect(0, command);
        assert_same_files("all.json", "one.json");
        (void)snprintf(command, sizeof command, TURNED "--boxes one.json %s", plans[i]);
        expect(0, command);
        assert_same_files("turned.json", "one.json");
    }
}

static void test_endings_and_lists(void **state) {
    static const char *const ends[] = {"json", "csv", "geojson"};
    (void)state;
    write_file("list.txt", "lines.npy\n");
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; ++i) {
        char command[300], first[32], second[32];
        (void)snprintf(command, sizeof command, TEXT "--text all.%s -o two.text.%s", ends[i],
                       ends[i]);
        (void)snprintf(first, sizeof first, "all.%s", ends[i]);
        (void)snprintf(second, sizeof second, "two.text.%s", ends[i]);
        expect(0, command);
        assert_same_files(first, second);
        (void)snprintf(command, sizeof command,
                       "run text.onnx --list list.txt --out-dir out --as text.%s", ends[i]);
        expect(0, command);
        (void)snprintf(second, sizeof second, "out/lines.npy.text.%s", ends[i]);
        assert_same_files(first, second);
    }
    expect(0, TURNED "--boxes turned.csv -o turned.boxes.csv");
    assert_same_files("turned.csv", "turned.boxes.csv");
    expect(0, TURNED "--boxes turned.coco.json");
    expect(0, TURNED "--boxes turned.geojson");
    expect(3, TURNED "--boxes soft.json --soft-nms");
    assert_non_null(strstr(err_text, "boxes with an angle are dropped"));
    json_t *boxes = json_load_file("turned.json", 0, NULL);
    json_t *coco = json_load_file("turned.coco.json", 0, NULL);
    json_t *geojson = json_load_file("turned.geojson", 0, NULL);
    size_t n = json_array_size(at(boxes, "boxes"));
    assert_true(n > 20);
    assert_int_equal(json_array_size(coco), n);
    assert_int_equal(json_array_size(at(geojson, "features")), n);
    json_decref(boxes);
    json_decref(coco);
    json_decref(geojson);
}

static void merge_parts(const char *run, int n, const char *options, const char *out,
                        const char *want) {
    char command[400], merge[400];
    int used = snprintf(merge, sizeof merge, "merge %s -o %s", options, out);
    assert_int_equal(system("rm -f part?.npy"), 0); /* those of another run */
    for (int k = 1; k <= n; ++k) {
        (void)snprintf(command, sizeof command, "%s --part %d/%d -o part%d.npy", run, k, n, k);
        expect(0, command);
        used += snprintf(merge + used, sizeof merge - (size_t)used, " part%d.npy", k);
    }
    expect(0, merge);
    assert_same_files(want, out);
}

static void test_parts_give_the_same_files(void **state) {
    (void)state;
    expect(0, TURNED "--boxes turned.csv");
    for (int n = 1; n <= 3; ++n) {
        merge_parts("run text.onnx lines.npy", n, "", "merged.text.json", "all.json");
        merge_parts("run yolov8n synthetic:160x192", n, "--head yolov8-obb", "merged.json",
                    "turned.json");
        merge_parts("run yolov8n synthetic:160x192", n, "--head yolov8-obb", "merged.boxes.csv",
                    "turned.csv");
    }
    expect(0, TEXT "--text few.csv --score 0.8 --threshold 0.6 --unclip 1");
    merge_parts("run text.onnx lines.npy", 2, "--score 0.8 --threshold 0.6 --unclip 1",
                "few.text.csv", "few.csv");
}

static void test_what_cannot_be_is_refused(void **state) {
    (void)state;
    expect_says(2, TEXT "--text no.tif", ".json, .csv or .geojson");
    expect_says(2, TEXT "--text no.coco.json", "JSON of COCO");
    expect_says(2, TEXT "--text no.json --text-of other", "'probability'");
    expect_says(2, TEXT "--text no.json --threshold 0.3,0.4", "2 thresholds for a map of 1");
    expect_says(2, TEXT "--text no.json --unclip -1", "--unclip");
    expect_says(2, TEXT "--regions r.csv --threshold 0.3 --unclip 2", "--unclip");
    expect_says(2, TEXT "--unclip 2", "--text");
    expect_says(2, "run " RFX_DEFECTS " synthetic:64x64 --text no.json", "3 channels of floats");
    expect_says(2, "run yolov8n synthetic:64x64 --text no.json", "no map of rows and columns");
    expect_says(2, TEXT "--text no.json --part 1/2 -o p.npy", "--text");
    expect_says(4, TEXT "--text no.json --answer-memory 2000", "--answer-memory 2000: regions");
    expect_says(5, TEXT "--text nowhere/no.json", "nowhere");
    expect_says(4, TURNED "--boxes no.json --max-boxes 10", "more than 10");
    expect_says(3, TURNED "--boxes no.json --class-count 80", "80 classes");
    expect_says(4, TURNED "--boxes no.json --memory 12MiB", "MiB");
    assert_int_not_equal(access("no.json", F_OK), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_boxes_are_found),
        cmocka_unit_test(test_files_are_the_same_for_every_plan),
        cmocka_unit_test(test_endings_and_lists),
        cmocka_unit_test(test_parts_give_the_same_files),
        cmocka_unit_test(test_what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests_name("text", tests, set_up, NULL);
}
