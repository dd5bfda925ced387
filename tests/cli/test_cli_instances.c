/* rfexec run --boxes of heads with masks or key points: a small network of the form of YOLOv8's.
 * The masks are those of a plain reading of the formula (rfexec/answers/box_masks.h) on the
 * network's own outputs, in all forms of files, whatever the plan; what cannot be is refused. */
#include <math.h>
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
#include "tests/support/makers/detector_maker.h"
#include "tests/support/run/network_run.h"

#define IMAGE " synthetic:176x208 "
#define SEG "run seg.onnx" IMAGE "--head yolov8-seg --class-count 2 --iou 0.9 "
#define POSE "run pose.onnx" IMAGE "--head yolov8-pose --class-count 2 "
enum {
    H = 176,
    W = 208,
    CELLS = H / 16 * (W / 16),
    CLASSES = 2,
    PROTOTYPES = 5,
    FINE_H = H / 4,
    FINE_W = W / 4,
    POINTS = 3
};

static int set_up(void **state) {
    (void)state;
    assert_int_equal(system("rm -rf *.csv *.npy *.json *.geojson *.onnx out"), 0);
    detector_maker_save_more("seg.onnx", H, W, 20.0f, CLASSES, PROTOTYPES, true);
    detector_maker_save_more("pose.onnx", H, W, 20.0f, CLASSES, 3 * POINTS, false);
    detector_maker_save_more("none.onnx", H, W, 20.0f, CLASSES, PROTOTYPES, false);
    expect(0, SEG "--boxes all.json -o all.npy");
    return 0;
}

static float cells[4 + CLASSES + PROTOTYPES][CELLS], prototypes[PROTOTYPES][FINE_H][FINE_W];
static bool mask[H][W];

static float value_at(int index, int r, int c) {
    float sum = cells[4 + CLASSES][index] * prototypes[0][r][c];
    for (int k = 1; k < PROTOTYPES; ++k) sum += cells[4 + CLASSES + k][index] * prototypes[k][r][c];
    return sum;
}

static float number_in(const json_t *array, size_t i) {
    return (float)json_number_value(json_array_get(array, i));
}

/* Sets `mask` to the mask of a box and returns how many pixels it has. */
static int make_mask(json_t *box) {
    const json_t *corners = at(box, "box");
    int index = (int)integer_at(box, "index"), n = 0;
    for (int y = 0; y < H; ++y)
        for (int x = 0; x < W; ++x) {
            float sy = fmaxf(((float)y + 0.5f) / 4 - 0.5f, 0),
                  sx = fmaxf(((float)x + 0.5f) / 4 - 0.5f, 0);
            int r = (int)sy, c = (int)sx, below = r + (r + 1 < FINE_H),
                right = c + (c + 1 < FINE_W);
            float u = sy - (float)r, v = sx - (float)c;
            float pixel =
                (1 - u) * ((1 - v) * value_at(index, r, c) + v * value_at(index, r, right)) +
                u * ((1 - v) * value_at(index, below, c) + v * value_at(index, below, right));
            float fx = (float)x, fy = (float)y;
            mask[y][x] = pixel > 0 && fx >= number_in(corners, 0) && fy >= number_in(corners, 1) &&
                         fx < number_in(corners, 2) && fy < number_in(corners, 3);
            n += mask[y][x];
        }
    return n;
}

enum { MOST_RUNS = H * W + 1 };

/* Sets `runs` to the run lengths of `mask`, column by column. */
static int make_runs(long long runs[MOST_RUNS]) {
    int n = 1;
    bool inside = false;
    runs[0] = 0;
    for (int x = 0; x < W; ++x)
        for (int y = 0; y < H; ++y) {
            if (mask[y][x] != inside) runs[n++] = 0;
            inside = mask[y][x];
            runs[n - 1]++;
        }
    return n;
}

/* rleFrString of cocoapi's maskApi.c. */
static int decode_runs(const char *text, long long runs[MOST_RUNS]) {
    int n = 0;
    while (*text != '\0') {
        long long x = 0;
        int k = 0;
        bool more = true;
        for (; more; ++text, ++k) {
            int c = *text - 48;
            x |= (long long)(c & 0x1f) << 5 * k;
            more = (c & 0x20) != 0;
            if (!more && (c & 0x10) != 0) x |= -1LL * (1LL << 5 * (k + 1));
        }
        if (n > 2) x += runs[n - 2];
        runs[n++] = x;
    }
    return n;
}

/* Whether the middle of a pixel lies in the polygons: rings cross the ray to its left oddly. */
static bool in_polygons(const json_t *polygons, double x, double y) {
    bool in = false;
    for (size_t p = 0; p < json_array_size(polygons); ++p) {
        const json_t *rings = json_array_get(polygons, p);
        for (size_t r = 0; r < json_array_size(rings); ++r) {
            const json_t *ring = json_array_get(rings, r);
            for (size_t i = 0; i + 1 < json_array_size(ring); ++i) {
                const json_t *a = json_array_get(ring, i), *b = json_array_get(ring, i + 1);
                double ay = (double)number_in(a, 1), by = (double)number_in(b, 1);
                if ((ay > y) != (by > y) && (double)number_in(a, 0) < x) in = !in;
            }
        }
    }
    return in;
}

static void assert_mask(json_t *box, json_t *coco, json_t *feature, int pixels) {
    static long long wanted[MOST_RUNS], decoded[MOST_RUNS];
    json_t *counts = at(box, "mask.counts"), *polygons = at(feature, "geometry.coordinates");
    int n = make_runs(wanted);
    assert_int_equal(json_array_size(counts), n);
    for (int i = 0; i < n; ++i)
        assert_int_equal(json_integer_value(json_array_get(counts, (size_t)i)), wanted[i]);
    assert_int_equal(decode_runs(json_string_value(at(coco, "segmentation.counts")), decoded), n);
    assert_memory_equal(decoded, wanted, (size_t)n * sizeof *wanted);
    for (size_t i = 0; i < 2; ++i) {
        assert_int_equal(json_integer_value(json_array_get(at(box, "mask.size"), i)),
                         i == 0 ? H : W);
        assert_int_equal(json_integer_value(json_array_get(at(coco, "segmentation.size"), i)),
                         i == 0 ? H : W);
    }
    assert_string_equal(json_string_value(at(feature, "geometry.type")), "MultiPolygon");
    assert_int_equal(json_array_size(polygons) == 0, pixels == 0);
    for (int y = 0; y < H; ++y)
        for (int x = 0; x < W; ++x)
            if (in_polygons(polygons, x + 0.5, y + 0.5) != mask[y][x])
                fail_msg("pixel %d, %d of the polygons", y, x);
}

static void test_masks_are_those_of_the_outputs(void **state) {
    (void)state;
    read_floats("all.boxes.npy", cells[0], sizeof cells / sizeof(float));
    read_floats("all.prototypes.npy", prototypes[0][0], sizeof prototypes / sizeof(float));
    expect(0, SEG "--boxes all.coco.json");
    expect(0, SEG "--boxes all.geojson");
    assert_non_null(strstr(out_text, "YOLOv8 head, 2 classes, masks of 5 prototypes"));
    json_t *doc = json_load_file("all.json", 0, NULL),
           *coco = json_load_file("all.coco.json", 0, NULL),
           *features = json_load_file("all.geojson", 0, NULL);
    const json_t *boxes = json_object_get(doc, "boxes"),
                 *list = json_object_get(features, "features");
    size_t n = json_array_size(boxes);
    int some = 0;
    assert_true(n > 20);
    assert_int_equal(json_array_size(coco), n);
    assert_int_equal(json_array_size(list), n);
    for (size_t i = 0; i < n; ++i) {
        json_t *box = json_array_get(boxes, i);
        int pixels = make_mask(box);
        some += pixels > 100;
        assert_mask(box, json_array_get(coco, i), json_array_get(list, i), pixels);
    }
    assert_true(some > 10);
    json_decref(features);
    json_decref(coco);
    json_decref(doc);
}

static void test_file_is_the_same_for_every_plan(void **state) {
    static const char *const plans[] = {"--bands 16 --threads 1", "--bands 48 --threads 2",
                                        "--untiled --threads 3", "--tiles 2x3", "--memory 40MiB"};
    static const char *const files[] = {"all.json", "all.coco.json", "all.geojson"};
    (void)state;
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; ++i)
        for (size_t k = 0; k < sizeof files / sizeof files[0]; ++k) {
            char command[300], path[64];
            (void)snprintf(path, sizeof path, "one.%s", files[k] + 4);
            (void)unlink(path);
            (void)snprintf(command, sizeof command, SEG "--boxes %s %s", path, plans[i]);
            expect(0, command);
            assert_same_files(files[k], path);
        }
    expect(0, SEG "-o out.json");
    assert_same_files("all.json", "out.json");
    expect(0, SEG "--boxes -");
    read_text("all.json", err_text);
    assert_string_equal(out_text, err_text);
    assert_int_equal(system("echo synthetic:176x208 >list.txt"), 0);
    expect(0,
           "run seg.onnx --list list.txt --out-dir out --as json --head yolov8-seg "
           "--class-count 2 --iou 0.9");
    assert_same_files("all.json", "out/synthetic:176x208.json");
}

/* Boxes of a .csv have no masks and need no prototypes, so parts of the boxes alone will do. */
static void test_boxes_without_masks(void **state) {
    (void)state;
    expect(0, SEG "--boxes with.csv");
    expect(0, "run seg.onnx" IMAGE "--head yolov8 --class-count 2 --iou 0.9 --boxes known.csv");
    assert_same_files("known.csv", "with.csv");
    expect(0, "run none.onnx" IMAGE "--head yolov8-seg --class-count 2 --iou 0.9 --boxes none.csv");
    assert_same_files("known.csv", "none.csv");
}

/* A padded image has masks of its own pixels alone. */
static void test_masks_of_padded_images(void **state) {
    (void)state;
    expect(0,
           "run seg.onnx synthetic:161x193 --pad-to 32 --head yolov8-seg --class-count 2 "
           "--boxes padded.json");
    json_t *doc = json_load_file("padded.json", 0, NULL);
    json_t *boxes = at(doc, "boxes");
    assert_true(json_array_size(boxes) > 0);
    for (size_t i = 0; i < json_array_size(boxes); ++i) {
        json_t *box = json_array_get(boxes, i), *counts = at(box, "mask.counts");
        long long sum = 0;
        assert_int_equal(json_integer_value(json_array_get(at(box, "mask.size"), 0)), 161);
        assert_int_equal(json_integer_value(json_array_get(at(box, "mask.size"), 1)), 193);
        for (size_t k = 0; k < json_array_size(counts); ++k)
            sum += json_integer_value(json_array_get(counts, k));
        assert_int_equal(sum, 161 * 193);
    }
    json_decref(doc);
}

static void test_key_points_are_those_of_the_output(void **state) {
    static float all[4 + CLASSES + 3 * POINTS][CELLS];
    (void)state;
    expect(0, POSE "--boxes points.json -o points.npy");
    assert_non_null(strstr(out_text, "YOLOv8 head, 2 classes, 3 points with scores"));
    read_floats("points.npy", all[0], sizeof all / sizeof(float));
    expect(0, POSE "--boxes points.coco.json");
    json_t *doc = json_load_file("points.json", 0, NULL),
           *coco = json_load_file("points.coco.json", 0, NULL), *boxes = at(doc, "boxes");
    size_t n = json_array_size(boxes);
    assert_true(n > 5);
    for (size_t i = 0; i < n; ++i) {
        json_t *box = json_array_get(boxes, i), *points = at(box, "points"),
               *list = at(json_array_get(coco, i), "keypoints");
        int index = (int)integer_at(box, "index");
        assert_int_equal(json_array_size(points), POINTS);
        assert_int_equal(json_array_size(list), 3 * POINTS);
        for (size_t k = 0; k < 3 * POINTS; ++k) {
            float want = all[4 + CLASSES + k][index];
            assert_true(number_in(json_array_get(points, k / 3), k % 3) == want);
            assert_true(number_in(list, k) == want);
        }
    }
    json_decref(coco);
    json_decref(doc);
    expect(0, POSE "--boxes points.csv --bands 16");
    read_text("points.csv", err_text);
    const char *header =
        "label,name,score,left,top,right,bottom,x1,y1,score1,x2,y2,score2,x3,y3,score3\n";
    assert_int_equal(strncmp(err_text, header, strlen(header)), 0);
}

static void test_key_points_of_parts(void **state) {
    (void)state;
    expect(0, POSE "--boxes points.json");
    expect(0, "run pose.onnx" IMAGE "--part 1/2 -o part1.npy");
    expect(0, "run pose.onnx" IMAGE "--part 2/2 -o part2.npy");
    expect(0, "merge part1.npy part2.npy -o merged.json --head yolov8-pose --class-count 2");
    assert_same_files("points.json", "merged.json");
    /* x and y alone: the scores of 2 points are the coordinates of one more */
    detector_maker_save_more("xy.onnx", H, W, 20.0f, CLASSES, 8, false);
    expect(0, "run xy.onnx" IMAGE "--head yolov8-pose-xy --class-count 2 --boxes xy.coco.json");
    assert_non_null(strstr(out_text, "2 classes, 4 points"));
    json_t *coco = json_load_file("xy.coco.json", 0, NULL);
    json_t *list = at(json_array_get(coco, 0), "keypoints");
    assert_int_equal(json_array_size(list), 12);
    for (size_t k = 2; k < 12; k += 3) assert_true(number_in(list, k) == 1);
    json_decref(coco);
}

static void test_what_cannot_be_is_refused(void **state) {
    (void)state;
    expect_says(3, "run none.onnx" IMAGE "--head yolov8-seg --class-count 2 --boxes no.json",
                "prototypes of a second output");
    expect_says(3, "run seg.onnx" IMAGE "--head yolov8-seg --class-count 3 --boxes no.json",
                "4 coefficients of masks, and output 2 has 5 prototypes");
    expect_says(3, "run seg.onnx" IMAGE "--head yolov8-seg --boxes no.json", "coefficients");
    expect_says(3, "run seg.onnx" IMAGE "--head yolov8-pose --class-count 2 --boxes no.json",
                "3 points");
    expect_says(4, SEG "--boxes no.json --max-boxes 10", "more than 10");
    expect_says(4, SEG "--boxes no.geojson --answer-memory 600",
                "--answer-memory 600, mask of candidate 11");
    expect_says(4, SEG "--boxes no.json --memory 8MiB", "MiB");
    expect_says(5, SEG "--boxes nowhere/no.json", "nowhere");
    expect(0, "run seg.onnx" IMAGE "--part 1/1 --part-output boxes -o whole.npy");
    expect_says(3, "merge whole.npy -o no.json --head yolov8-seg --class-count 2",
                "prototypes of a second output");
    expect(0, "merge whole.npy -o merged.csv --head yolov8-seg --class-count 2 --iou 0.9");
    assert_same_files("known.csv", "merged.csv");
    assert_int_equal(access("no.json", F_OK), -1);
    assert_int_equal(access("no.geojson", F_OK), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_masks_are_those_of_the_outputs),
        cmocka_unit_test(test_file_is_the_same_for_every_plan),
        cmocka_unit_test(test_boxes_without_masks),
        cmocka_unit_test(test_masks_of_padded_images),
        cmocka_unit_test(test_key_points_are_those_of_the_output),
        cmocka_unit_test(test_key_points_of_parts),
        cmocka_unit_test(test_what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests_name("instances", tests, set_up, NULL);
}
