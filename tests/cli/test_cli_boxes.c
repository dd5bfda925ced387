/* rfexec run --boxes: the boxes are those of a plain suppression of the whole output, and the file
 * does not depend on plan, threads and lists; what cannot be is refused. The suppression itself is
 * tested in tests/unit/rfexec/answers and, beside torchvision, in tests/oracle/box_cases.py. */
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

#define RUN "run yolov8n synthetic:320x352 "
enum { CELLS = 2310, CHANNELS = 84 }; /* 40 x 44 + 20 x 22 + 10 x 11 cells */

static int set_up(void **state) {
    (void)state;
    assert_int_equal(system("rm -rf *.geojson *.csv *.npy *.json out"), 0);
    expect(0, RUN "--boxes all.json -o all.npy");
    return 0;
}

static void test_file_is_the_same_for_every_plan(void **state) {
    static const char *const plans[] = {"--bands 32 --threads 1", "--bands 64 --strips 2",
                                        "--untiled --threads 3", "--tiles 2x3", "--memory 32MiB"};
    (void)state;
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; ++i) {
        char command[300];
        (void)unlink("one.json");
        (void)snprintf(command, sizeof command, RUN "--boxes one.json %s", plans[i]);
        expect(0, command);
        assert_same_files("all.json", "one.json");
    }
    expect(0, RUN "-o out.json");
    assert_same_files("all.json", "out.json");
    assert_int_equal(system("echo synthetic:320x352 >list.txt"), 0);
    expect(0, "run yolov8n --list list.txt --out-dir out --as json");
    assert_same_files("all.json", "out/synthetic:320x352.json");
}

static void test_parts_give_the_same_file(void **state) {
    static const int counts[] = {1, 2, 3, 5};
    char command[300], merge[300];
    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; ++i) {
        int n = counts[i], used = snprintf(merge, sizeof merge, "merge -o merged.json");
        for (int k = 1; k <= n; ++k) {
            (void)snprintf(command, sizeof command, RUN "--part %d/%d -o part%dof%d.npy", k, n, k,
                           n);
            expect(0, command);
            used += snprintf(merge + used, sizeof merge - (size_t)used, " part%dof%d.npy", k, n);
        }
        expect(0, merge);
        assert_same_files("all.json", "merged.json");
    }
    expect(0, RUN "--boxes few.csv --score 0.6 --iou 0.3");
    expect(0, "merge part1of2.npy part2of2.npy -o merged.csv --score 0.6 --iou 0.3");
    assert_same_files("few.csv", "merged.csv");
    expect_says(4, "merge part1of2.npy part2of2.npy -o no.json --max-boxes 9", "more than 9");
    expect_says(2,
                "merge part1of2.npy part2of2.npy -o no.geojson --threshold 0.5 --coordinates map",
                "coordinate system");
}

static float cells[CHANNELS][CELLS];

struct found {
    int index, label;
    float score, corner[4];
};

static int by_score(const void *a, const void *b) {
    const struct found *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return x->index - y->index;
}

static int find_candidates(struct found *out, float least, int classes) {
    int n = 0;
    for (int i = 0; i < CELLS; ++i) {
        int best = 0;
        for (int c = 0; c < classes; ++c)
            if (cells[4 + c][i] > cells[4 + best][i]) best = c;
        if (!(cells[4 + best][i] > least)) continue;
        float x = cells[0][i], y = cells[1][i], w = cells[2][i] / 2, h = cells[3][i] / 2;
        out[n++] = (struct found){i, best, cells[4 + best][i], {x - w, y - h, x + w, y + h}};
    }
    qsort(out, (size_t)n, sizeof *out, by_score);
    return n;
}

static bool overlaps(const struct found *a, const struct found *b, double most) {
    float x0 = a->corner[0] > b->corner[0] ? a->corner[0] : b->corner[0];
    float y0 = a->corner[1] > b->corner[1] ? a->corner[1] : b->corner[1];
    float x1 = a->corner[2] < b->corner[2] ? a->corner[2] : b->corner[2];
    float y1 = a->corner[3] < b->corner[3] ? a->corner[3] : b->corner[3];
    float w = x1 - x0 > 0 ? x1 - x0 : 0, h = y1 - y0 > 0 ? y1 - y0 : 0, both = w * h;
    float mine = (a->corner[2] - a->corner[0]) * (a->corner[3] - a->corner[1]);
    float other = (b->corner[2] - b->corner[0]) * (b->corner[3] - b->corner[1]);
    return (double)(both / (mine + other - both)) > most;
}

static int suppress(struct found *list, int n, double most, bool by_label) {
    int kept = 0;
    for (int i = 0; i < n; ++i) {
        bool dropped = false;
        for (int k = 0; k < kept && !dropped; ++k)
            dropped =
                (!by_label || list[k].label == list[i].label) && overlaps(&list[k], &list[i], most);
        if (!dropped) list[kept++] = list[i];
    }
    return kept;
}

static void assert_boxes(const char *path, const struct found *wanted, int n) {
    json_t *doc = json_load_file(path, 0, NULL);
    assert_non_null(doc);
    const json_t *boxes = json_object_get(doc, "boxes");
    assert_int_equal(json_array_size(boxes), n);
    for (int i = 0; i < n; ++i) {
        json_t *box = json_array_get(boxes, (size_t)i);
        assert_int_equal(integer_at(box, "index"), wanted[i].index);
        assert_int_equal(integer_at(box, "label"), wanted[i].label);
        assert_true((float)json_number_value(at(box, "score")) == wanted[i].score);
        for (int k = 0; k < 4; ++k) {
            const json_t *corner = json_array_get(at(box, "box"), (size_t)k);
            assert_true((float)json_number_value(corner) == wanted[i].corner[k]);
        }
    }
    json_decref(doc);
}

static void test_boxes_are_those_of_the_whole_output(void **state) {
    static struct found list[CELLS];
    (void)state;
    read_floats("all.npy", &cells[0][0], sizeof cells / sizeof(float));
    int n = find_candidates(list, 0.25F, CHANNELS - 4);
    int kept = suppress(list, n, 0.45, true);
    assert_true(kept > 50 && kept < n);
    assert_boxes("all.json", list, kept);
    expect(0, RUN "--boxes some.json --score 0.6 --iou 0.2 --agnostic");
    n = find_candidates(list, 0.6F, CHANNELS - 4);
    assert_boxes("some.json", list, suppress(list, n, (double)0.2F, false));
    expect(0, RUN "--boxes first.json --class-count 20"); /* as if masks were behind them */
    n = find_candidates(list, 0.25F, 20);
    assert_boxes("first.json", list, suppress(list, n, 0.45, true));
    expect(0, RUN "--boxes none.json --score 1");
    assert_boxes("none.json", list, 0);
}

static int lines_of(const char *path) {
    int n = 0;
    read_text(path, out_text);
    for (const char *p = out_text; *p != '\0'; ++p) n += *p == '\n';
    return n;
}

static void test_every_form_has_every_box(void **state) {
    (void)state;
    json_t *doc = json_load_file("all.json", 0, NULL);
    int n = (int)json_array_size(json_object_get(doc, "boxes"));
    json_decref(doc);
    write_file("names.txt", "zero\none\n");
    expect(0, RUN "--boxes all.csv --classes names.txt");
    assert_int_equal(lines_of("all.csv"), n + 1);
    expect(0, RUN "--boxes all.geojson");
    doc = json_load_file("all.geojson", 0, NULL);
    assert_int_equal(json_array_size(json_object_get(doc, "features")), n);
    json_decref(doc);
    expect(0, RUN "--boxes all.coco.json -o two.csv --json");
    doc = document("run");
    assert_int_equal(integer_at(doc, "boxes.count"), n);
    assert_int_equal(integer_at(doc, "output.boxes.count"), n); /* of -o */
    json_decref(doc);
    doc = json_load_file("all.coco.json", 0, NULL);
    assert_int_equal(json_array_size(doc), n);
    json_decref(doc);
    expect(0, RUN "--boxes -");
    read_text("all.json", err_text);
    assert_string_equal(out_text, err_text);
}

/* The network pads 65 x 97 to 96 x 128 itself; --pad-to 64 makes that 128 x 128. */
static void test_levels_of_padded_images(void **state) {
    static const char *const pads[] = {"", " --pad-to 64"};
    (void)state;
    for (int i = 0; i < 2; ++i) {
        char command[200];
        (void)snprintf(command, sizeof command, "run yolov8n synthetic:65x97 --boxes padded.json%s",
                       pads[i]);
        expect(0, command);
        assert_non_null(strstr(out_text, "YOLOv8 head, 80 classes, 3 levels"));
    }
}

#define HEAD_FILE                                                                         \
    "{\"outputs\": [{\"names\": [\"output0\"], \"axes\": \"v n\", \"values\": [\"box\", " \
    "\"scores\"]}], "                                                                     \
    "\"decode\": \"centre\"}"

/* The head of the network, told by a file, has the boxes of the head that rfexec knows. */
static void test_a_head_file_describes_a_known_head(void **state) {
    static const char *const plans[] = {"--untiled",   "--bands 32 --threads 1",
                                        "--tiles 2x3", "--memory 32MiB",
                                        "-o head.npy", "--plan head_plan.json"};
    (void)state;
    write_file("head.json", HEAD_FILE);
    expect(0, RUN "--boxes known.csv");
    expect_says(0,
                "plan yolov8n synthetic:320x352 --boxes b.csv --head head.json --bands 64 -o "
                "head_plan.json",
                "");
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; ++i) {
        char command[300];
        (void)unlink("told.csv");
        (void)snprintf(command, sizeof command, RUN "--boxes told.csv --head head.json %s",
                       plans[i]);
        expect(0, command);
        assert_same_files("known.csv", "told.csv");
    }
    expect(0, RUN "--boxes known.csv --score 0.6 --iou 0.2 --agnostic");
    expect(0, RUN "--boxes told.csv --score 0.6 --iou 0.2 --agnostic --head head.json");
    assert_same_files("known.csv", "told.csv");
    expect(0, RUN "-o known.coco.json");
    assert_int_equal(system("echo synthetic:320x352 >list.txt"), 0);
    expect(0, "run yolov8n --list list.txt --out-dir out --as coco.json --head head.json");
    assert_same_files("known.coco.json", "out/synthetic:320x352.coco.json");
    expect(0, RUN "--boxes told.json --head head.json");
    assert_non_null(strstr(out_text, "(head head.json, 80 classes, 1 level)"));
}

static void test_head_files_that_are_refused(void **state) {
    (void)state;
    write_file("head.json", HEAD_FILE);
    write_file("bad.json", "{\"outputs\": 3, \"decode\": \"centre\"}");
    write_file("other.json",
               "{\"outputs\": [{\"names\": [\"out\"], \"axes\": \"v n\", \"values\": "
               "[\"box\", \"scores\"]}], \"decode\": \"centre\"}");
    expect_says(3, RUN "--boxes no.json --head missing.json",
                "head 'missing.json': cannot be opened");
    expect_says(3, RUN "--boxes no.json --head bad.json", "bad.json: outputs: 3 is not a list");
    expect_says(2, RUN "--boxes no.json --head other.json", "no output 'out'");
    expect_says(2, RUN "--boxes no.json --head head.json --boxes-of output0", "names the outputs");
    expect_says(2, RUN "-o no.geojson --head head.json", "goes with --boxes");
    expect_says(4, RUN "--boxes no.json --head head.json --max-boxes 10", "more than 10");
    expect(0, RUN "--part 1/1 -o whole.npy");
    expect_says(2, "merge whole.npy -o no.json --head head.json", "which no head file has joined");
    assert_int_not_equal(access("no.json", F_OK), 0);
}

static void test_scores_that_decay(void **state) {
    (void)state;
    expect(0, RUN "--boxes all.csv --iou 1");
    expect(0, RUN "--boxes soft.csv --soft-nms");
    read_text("all.csv", out_text);
    size_t all = strlen(out_text);
    read_text("soft.csv", out_text);
    assert_true(strlen(out_text) < all && strlen(out_text) > 1000);
    expect(0, RUN "--boxes one.csv --soft-nms --bands 32 --threads 2");
    assert_same_files("soft.csv", "one.csv");
    expect(0, "merge part1of2.npy part2of2.npy -o one.csv --soft-nms");
    assert_same_files("soft.csv", "one.csv");
    expect_says(2, RUN "--boxes no.csv --soft-nms --iou 0.5", "excludes");
    expect_says(2, RUN "-o no.npy --soft-nms", "answer options are for");
}

/* The head of a network on bytes has maps too: its distances are bytes between conversions. */
static void test_parts_of_a_network_of_bytes(void **state) {
    (void)state;
    expect(0, "run yolov8n:int8 synthetic:160x192 --boxes bytes.json --untiled");
    expect(0, "run yolov8n:int8 synthetic:160x192 --boxes again.json --bands 32 --threads 2");
    assert_same_files("bytes.json", "again.json");
    expect(0, "run yolov8n:int8 synthetic:160x192 --part 1/2 -o byte1.npy");
    expect(0, "run yolov8n:int8 synthetic:160x192 --part 2/2 -o byte2.npy");
    expect(0, "merge byte1.npy byte2.npy -o merged.json");
    assert_same_files("bytes.json", "merged.json");
}

/* Runs all parts with a head and merges them. */
static void merge_parts(int n, const char *merged) {
    char command[300], merge[400];
    int used = snprintf(merge, sizeof merge, "merge %s", merged);
    for (int k = 1; k <= n; ++k) {
        (void)snprintf(command, sizeof command,
                       RUN "--part %d/%d -o told%dof%d.npy --head head.json", k, n, k, n);
        expect(0, command);
        used += snprintf(merge + used, sizeof merge - (size_t)used, " told%dof%d.npy", k, n);
    }
    expect(0, merge);
}

static void test_parts_of_a_described_head(void **state) {
    static const int counts[] = {1, 2, 3, 5};
    (void)state;
    write_file("head.json", HEAD_FILE);
    expect(0, RUN "--boxes told.json --head head.json");
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; ++i) {
        (void)unlink("merged.json");
        merge_parts(counts[i], "-o merged.json --head head.json");
        assert_same_files("told.json", "merged.json");
    }
    /* The parts know their head. */
    expect(0, "merge told2of3.npy told1of3.npy told3of3.npy -o merged.json");
    assert_same_files("told.json", "merged.json");
    /* Another file may decode them in another way, but not join them. */
    write_file("clip.json",
               "{\"outputs\": [{\"names\": [\"output0\"], \"axes\": \"v n\", \"values\": [\"box\", "
               "\"scores\"]}], \"decode\": \"centre\", \"clip\": true}");
    expect(0, RUN "--boxes told.json --head clip.json");
    expect(0, "merge told1of2.npy told2of2.npy -o merged.json --head clip.json");
    assert_same_files("told.json", "merged.json");
    write_file("other.json",
               "{\"outputs\": [{\"names\": [\"output0\"], \"axes\": \"n v\", \"values\": "
               "[\"box\", \"scores\"]}], \"decode\": \"centre\"}");
    write_file("more.json",
               "{\"outputs\": [{\"names\": [\"output0\"], \"axes\": \"v n\", \"values\": [\"box\", "
               "\"scores\"]}], \"decode\": \"centre\", \"background\": 80}");
    expect_says(2, "merge told1of1.npy -o no.json --head other.json", "other outputs, axes");
    expect_says(2, "merge told1of1.npy -o no.json --head more.json", "not those of the parts");
    expect_says(2, "merge told1of1.npy -o no.json --head yolov8", "of the head 'head.json'");
    expect_says(3, "merge told1of1.npy -o no.json --head missing.json", "cannot be opened");
    expect(0, RUN "--part 1/2 -o clip1.npy --head clip.json");
    expect_says(3, "merge clip1.npy told2of2.npy -o no.json", "their 'head' differs");
    expect(0, "plan yolov8n synthetic:320x352 --parts 2 --head head.json");
    assert_non_null(strstr(out_text, "output cells"));
    assert_int_not_equal(access("no.json", F_OK), 0);
}

static void test_what_cannot_be_is_refused(void **state) {
    (void)state;
    expect_says(2, RUN "--score 0.5", "--boxes");
    expect_says(2, RUN "--boxes no.tif", ".json, .csv or .geojson");
    expect_says(2, RUN "--boxes no.points.csv", "CSV of points");
    expect_says(2, "run " RFX_DEFECTS " synthetic:64x64 -o no.boxes.csv", "it is a map");
    expect_says(2, RUN "--boxes no.json --iou 1.5", "0 to 1");
    expect_says(2, RUN "--boxes no.json --boxes-of other", "'output0'");
    expect_says(2, RUN "--boxes no.json --head yolov99", "yolov8");
    expect_says(3, RUN "--boxes no.json --head yolov5", "1 x candidates x (5 + classes)");
    expect_says(3, "run mobilenet_v2:0.25 synthetic:64x64 --boxes no.json", "1x1000");
    expect_says(4, RUN "--boxes no.json --max-boxes 10", "more than 10");
    expect_says(4, RUN "--boxes no.json --memory 12MiB", "MiB");
    expect_says(5, RUN "--boxes no.json --classes none.txt", "none.txt");
    expect_says(5, RUN "--boxes nowhere/no.json", "nowhere");
    assert_int_not_equal(access("no.json", F_OK), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file_is_the_same_for_every_plan),
        cmocka_unit_test(test_parts_give_the_same_file),
        cmocka_unit_test(test_boxes_are_those_of_the_whole_output),
        cmocka_unit_test(test_every_form_has_every_box),
        cmocka_unit_test(test_levels_of_padded_images),
        cmocka_unit_test(test_a_head_file_describes_a_known_head),
        cmocka_unit_test(test_head_files_that_are_refused),
        cmocka_unit_test(test_parts_of_a_network_of_bytes),
        cmocka_unit_test(test_parts_of_a_described_head),
        cmocka_unit_test(test_scores_that_decay),
        cmocka_unit_test(test_what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests_name("boxes", tests, set_up, NULL);
}
