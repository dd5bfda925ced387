/* rfexec run --boxes of heads of several outputs: a small network of YuNet's form and one of the
 * RFB face detector's. The boxes are those of a plain decoding and suppression of the network's own
 * outputs; the file does not depend on the plan. */
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
#include "tests/support/makers/head_maker.h"
#include "tests/support/run/network_run.h"

#define IMAGE " synthetic:96x160 "
#define YUNET "run yunet.onnx" IMAGE
enum {
    ROWS = 96,
    COLUMNS = 160,
    CELLS = 12 * 20 + 6 * 10 + 3 * 5,
    RFB_CELLS = 3 * 12 * 20 + 2 * 6 * 10
};

static int set_up(void **state) {
    static struct maker graph;
    (void)state;
    assert_int_equal(system("rm -rf *.csv *.npy *.json *.geojson *.onnx"), 0);
    maker_yunet(&graph, NULL, NULL);
    maker_save_heads(&graph, "yunet.onnx");
    maker_yunet(&graph, "kps_32", NULL);
    maker_save_heads(&graph, "half.onnx");
    maker_rfb(&graph);
    maker_save_heads(&graph, "rfb.onnx");
    expect(0, YUNET "--boxes all.json -o all.npy --score 0.5 --iou 0.1");
    return 0;
}

struct found {
    int index;
    float score, corner[4], points[10];
};

static void read_level(const char *part, int stride, float *values, size_t n) {
    char path[64];
    (void)snprintf(path, sizeof path, "all.%s_%d.npy", part, stride);
    read_floats(path, values, n);
}

static float limited(float value) {
    return fminf(fmaxf(value, 0), 1);
}

/* Decodes one level as OpenCV's FaceDetectorYN. */
static int decode(int stride, int first, float least, struct found *out) {
    static float cls[CELLS], obj[CELLS], box[4 * CELLS], kps[10 * CELLS];
    int columns = COLUMNS / stride, n = ROWS / stride * columns, count = 0;
    float side = (float)stride;
    read_level("cls", stride, cls, (size_t)n);
    read_level("obj", stride, obj, (size_t)n);
    read_level("bbox", stride, box, 4 * (size_t)n);
    read_level("kps", stride, kps, 10 * (size_t)n);
    for (int i = 0; i < n; ++i) {
        const float at[2] = {(float)(i % columns), (float)(i / columns)};
        struct found one = {.index = first + i, .score = sqrtf(limited(cls[i]) * limited(obj[i]))};
        if (one.score < least) continue;
        for (int k = 0; k < 2; ++k) {
            float centre = (at[k] + box[4 * i + k]) * side;
            float half = (float)exp((double)box[4 * i + 2 + k]) * side / 2;
            one.corner[k] = centre - half;
            one.corner[2 + k] = centre + half;
        }
        for (int k = 0; k < 10; ++k) one.points[k] = (kps[10 * i + k] + at[k % 2]) * side;
        out[count++] = one;
    }
    return count;
}

static int by_score(const void *a, const void *b) {
    const struct found *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return x->index - y->index;
}

static bool overlaps(const struct found *a, const struct found *b, double most) {
    float w = fminf(a->corner[2], b->corner[2]) - fmaxf(a->corner[0], b->corner[0]);
    float h = fminf(a->corner[3], b->corner[3]) - fmaxf(a->corner[1], b->corner[1]);
    float both = fmaxf(w, 0) * fmaxf(h, 0);
    float mine = (a->corner[2] - a->corner[0]) * (a->corner[3] - a->corner[1]);
    float other = (b->corner[2] - b->corner[0]) * (b->corner[3] - b->corner[1]);
    return (double)(both / (mine + other - both)) > most;
}

static int suppress(struct found *list, int n, double most) {
    int kept = 0;
    qsort(list, (size_t)n, sizeof *list, by_score);
    for (int i = 0; i < n; ++i) {
        bool dropped = false;
        for (int k = 0; k < kept && !dropped; ++k) dropped = overlaps(&list[k], &list[i], most);
        if (!dropped) list[kept++] = list[i];
    }
    return kept;
}

static float number_in(const json_t *array, size_t i) {
    return (float)json_number_value(json_array_get(array, i));
}

static void assert_boxes(const char *path, const struct found *wanted, int n, bool points) {
    json_t *doc = json_load_file(path, 0, NULL);
    assert_non_null(doc);
    const json_t *boxes = json_object_get(doc, "boxes");
    assert_int_equal(json_array_size(boxes), n);
    for (int i = 0; i < n; ++i) {
        json_t *box = json_array_get(boxes, (size_t)i);
        assert_int_equal(integer_at(box, "index"), wanted[i].index);
        assert_int_equal(integer_at(box, "label"), 0);
        assert_true((float)json_number_value(at(box, "score")) == wanted[i].score);
        for (size_t k = 0; k < 4; ++k)
            assert_true(number_in(at(box, "box"), k) == wanted[i].corner[k]);
        const json_t *found = json_object_get(box, "points");
        assert_int_equal(json_array_size(found), points ? 5 : 0);
        for (size_t k = 0; points && k < 10; ++k)
            assert_true(number_in(json_array_get(found, k / 2), k % 2) == wanted[i].points[k]);
    }
    json_decref(doc);
}

static void test_faces_are_those_of_the_outputs(void **state) {
    static struct found list[CELLS];
    (void)state;
    int n = decode(8, 0, 0.5F, list);
    n += decode(16, 12 * 20, 0.5F, list + n);
    n += decode(32, 12 * 20 + 6 * 10, 0.5F, list + n);
    int kept = suppress(list, n, (double)0.1F);
    assert_true(kept > 20 && kept + 20 < n && n < CELLS);
    assert_boxes("all.json", list, kept, true);
}

static void test_faces_are_the_same_for_every_plan(void **state) {
    static const char *const plans[] = {"--bands 32 --threads 1", "--bands 8 --threads 2",
                                        "--untiled --threads 3", "--tiles 2x3", "--memory 24MiB"};
    (void)state;
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; ++i) {
        char command[300];
        (void)unlink("one.json");
        (void)snprintf(command, sizeof command, YUNET "--score 0.5 --iou 0.1 --boxes one.json %s",
                       plans[i]);
        expect(0, command);
        assert_same_files("all.json", "one.json");
    }
}

static void test_other_files(void **state) {
    char *line;
    int lines = 0;
    (void)state;
    expect(0, YUNET "--score 0.5 --iou 0.1 -o out.json");
    assert_same_files("all.json", "out.json");
    write_file("list.txt", "synthetic:96x160\n");
    expect(0, "run yunet.onnx --list list.txt --out-dir . --as json --score 0.5 --iou 0.1");
    assert_same_files("all.json", "synthetic:96x160.json");
    expect(0, YUNET "--score 0.5 --iou 0.1 --boxes all.csv");
    expect(0, YUNET "--score 0.5 --iou 0.1 -o out.boxes.csv");
    assert_same_files("all.csv", "out.boxes.csv");
    expect(
        0,
        "run yunet.onnx --list list.txt --out-dir . --as boxes.csv --table table.csv --score 0.5 "
        "--iou 0.1");
    assert_same_files("all.csv", "synthetic:96x160.boxes.csv");
    read_text("table.csv", out_text);
    assert_int_equal(strncmp(out_text, "image,label,name,score,left,", 28), 0);
    read_text("all.csv", out_text);
    for (line = strtok(out_text, "\n"); line != NULL; line = strtok(NULL, "\n"), ++lines) {
        int commas = 0;
        for (const char *p = line; *p != '\0'; ++p) commas += *p == ',';
        assert_int_equal(commas, 16);
        if (lines == 0)
            assert_string_equal(line,
                                "label,name,score,left,top,right,bottom,x1,y1,x2,y2,x3,y3,x4,y4,"
                                "x5,y5");
    }
    json_t *doc = json_load_file("all.json", 0, NULL);
    assert_int_equal(json_array_size(json_object_get(doc, "boxes")), lines - 1);
    assert_string_equal(json_string_value(at(doc, "head")),
                        "YuNet head, 1 class, 3 levels, 5 points");
    json_decref(doc);
    expect(0, YUNET "--score 0.5 --iou 0.1 --boxes all.geojson");
    doc = json_load_file("all.geojson", 0, NULL);
    assert_int_equal(json_array_size(json_object_get(doc, "features")), lines - 1);
    json_decref(doc);
}

/* A candidate takes 32 bytes or more in the list, and 48 more with its landmarks. */
static void test_landmarks_are_counted(void **state) {
    long long bytes[2];
    (void)state;
    for (int i = 0; i < 2; ++i) {
        char command[200];
        (void)snprintf(command, sizeof command, YUNET "--boxes one.json --json --max-boxes %d",
                       i == 0 ? 1000 : 101000);
        expect(0, command);
        json_t *doc = document("run");
        bytes[i] = integer_at(doc, "plan.breakdown.source");
        json_decref(doc);
    }
    assert_true(bytes[1] - bytes[0] >= 100000 * 80LL);
}

static void test_plan_counts_the_file_of_boxes(void **state) {
    (void)state;
    expect(0, "plan yunet.onnx" IMAGE "--json --for-output x.json");
    json_t *doc = document("plan");
    long long with = integer_at(doc, "plan.breakdown.source");
    json_decref(doc);
    expect(0, "plan yunet.onnx" IMAGE "--json --for-output none");
    doc = document("plan");
    /* 100000 candidates, as long as --max-boxes is not given */
    assert_true(with >= integer_at(doc, "plan.breakdown.source") + 100000 * 80LL);
    json_decref(doc);
    expect_says(4, "plan yunet.onnx" IMAGE "--for-output x.json --memory 8MiB", "--memory");
}

static void test_shares_of_the_image(void **state) {
    static float scores[2 * RFB_CELLS], boxes[4 * RFB_CELLS];
    static struct found list[RFB_CELLS];
    int n = 0;
    (void)state;
    expect(0, "run rfb.onnx" IMAGE "--boxes rfb.json -o rfb.npy --score 0.5");
    read_floats("rfb.scores.npy", scores, 2 * RFB_CELLS);
    read_floats("rfb.boxes.npy", boxes, 4 * RFB_CELLS);
    for (int i = 0; i < RFB_CELLS; ++i) {
        if (!(scores[2 * i + 1] > 0.5F)) continue;
        list[n] = (struct found){.index = i, .score = scores[2 * i + 1]};
        for (int k = 0; k < 4; ++k)
            list[n].corner[k] = boxes[4 * i + k] * (float)(k % 2 == 0 ? COLUMNS : ROWS);
        ++n;
    }
    assert_true(n > 50 && n < RFB_CELLS);
    assert_boxes("rfb.json", list, suppress(list, n, 0.45), false);
}

/* Padded by --pad-to or by hand: corners count from the size with the padding. */
static void test_padded_images(void **state) {
    enum { H = 91, W = 150 };
    static float image[3][H][W], padded[3][ROWS][COLUMNS];
    static const char *const nets[][2] = {
        {"yunet.onnx", ""}, {"rfb.onnx", ""}, {"rfb.onnx", "--head shares.json"}};
    (void)state;
    expect(0, "run yunet.onnx synthetic:91x150 --pad-to 32 --keep image -o small.npy");
    read_floats("small.image.npy", &image[0][0][0], sizeof image / sizeof(float));
    for (int c = 0; c < 3; ++c)
        for (int y = 0; y < H; ++y) memcpy(padded[c][y], image[c][y], sizeof image[c][y]);
    network_write_npy("padded.npy", &padded[0][0][0], 3, ROWS, COLUMNS);
    write_file("shares.json",
               "{\"outputs\": [{\"names\": [\"boxes\"], \"axes\": \"n v\", \"values\": [\"box\"]}, "
               "{\"names\": [\"scores\"], \"axes\": \"n v\", \"values\": [\"scores\"]}], "
               "\"decode\": \"corners\", \"shares\": true, \"clip\": true, \"background\": 0}");
    for (int i = 0; i < 3; ++i) {
        char command[200];
        (void)snprintf(command, sizeof command, "run %s padded.npy --boxes by_hand.json %s",
                       nets[i][0], nets[i][1]);
        expect(0, command);
        (void)snprintf(command, sizeof command,
                       "run %s synthetic:91x150 --pad-to 32,zero --boxes padded.json %s",
                       nets[i][0], nets[i][1]);
        expect(0, command);
        assert_same_files("by_hand.json", "padded.json");
    }
}

/* Merges n parts of a network's faces and compares the file with that of the single run. */
static void compare_parts(const char *head, int n, const char *options, const char *single) {
    char command[200], merge[300];
    int used = snprintf(merge, sizeof merge, "merge -o merged.json %s", options);
    for (int k = 1; k <= n; ++k) {
        (void)snprintf(command, sizeof command,
                       "run %s.onnx" IMAGE "--part %d/%d --head %s -o %s%dof%d.npy", head, k, n,
                       head, head, k, n);
        expect(0, command);
        used += snprintf(merge + used, sizeof merge - (size_t)used, " %s%dof%d.npy", head, k, n);
    }
    (void)unlink("merged.json");
    expect(0, merge);
    assert_same_files(single, "merged.json");
}

static void test_parts_give_the_same_file(void **state) {
    (void)state;
    expect(0, "run rfb.onnx" IMAGE "--boxes rfb.json --score 0.5");
    for (int n = 1; n <= 5; ++n) {
        compare_parts("rfb", n, "--score 0.5", "rfb.json");
        compare_parts("yunet", n, "--score 0.5 --iou 0.1", "all.json");
    }
    expect(0, "merge yunet1of1.npy -o merged.json --score 0.5 --iou 0.1 --head yunet");
    assert_same_files("all.json", "merged.json");
    expect_says(2, "merge yunet1of1.npy -o no.json --head yolov8", "'yunet', not 'yolov8'");
    expect_says(2, YUNET "--part 1/2 -o no.npy", "--part-output says which of 12");
}

static void test_what_cannot_be_is_refused(void **state) {
    (void)state;
    expect_says(3, "run half.onnx" IMAGE "--boxes no.json", "the network lacks 'kps_32'");
    expect(0, "run half.onnx" IMAGE);
    expect_says(3, YUNET "--boxes no.json --boxes-of cls_8", "1x240x1 has no known head");
    expect_says(2, YUNET "--boxes no.json --head yolov8", "of a head 'yunet', not 'yolov8'");
    expect(0, YUNET "--boxes same.json --head YuNet --score 0.5 --iou 0.1");
    assert_same_files("all.json", "same.json");
    expect_says(4, YUNET "--boxes no.json --score 0.5 --iou 0.1 --max-boxes 10", "more than 10");
    assert_int_not_equal(access("no.json", F_OK), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_faces_are_those_of_the_outputs),
        cmocka_unit_test(test_faces_are_the_same_for_every_plan),
        cmocka_unit_test(test_other_files),
        cmocka_unit_test(test_landmarks_are_counted),
        cmocka_unit_test(test_plan_counts_the_file_of_boxes),
        cmocka_unit_test(test_shares_of_the_image),
        cmocka_unit_test(test_parts_give_the_same_file),
        cmocka_unit_test(test_padded_images),
        cmocka_unit_test(test_what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests_name("faces", tests, set_up, NULL);
}
