/* rfexec run --boxes of a CenterNet: the boxes are those of a plain decoding of the network's own
 * three maps, every bit, for images of any size, with neighbours of equal scores and with NaN. The
 * file does not depend on the plan and the parts. */
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

#define IMAGE " synthetic:97x161 "
#define NET "run net.onnx" IMAGE
#define SCORE "--score 0.5 "
enum { CLASSES = 3, MOST = 41 * 41, STRIDE = 4 };

static int set_up(void **state) {
    static struct maker graph;
    (void)state;
    assert_int_equal(system("rm -rf *.csv *.npy *.json *.geojson *.onnx"), 0);
    maker_centernet(&graph, "hm", true);
    maker_save_heads(&graph, "net.onnx");
    maker_centernet(&graph, "hm", false);
    maker_save_heads(&graph, "logits.onnx");
    maker_centernet(&graph, "warm", true);
    maker_save_heads(&graph, "other.onnx");
    expect(0, NET SCORE "--boxes all.json");
    return 0;
}

struct found {
    int index, label;
    float score, corner[4];
};

/* The three maps of a run, and its boxes. */
struct maps {
    int h, w;
    float heat[CLASSES * MOST], sides[2 * MOST], offset[2 * MOST];
    struct found boxes[CLASSES * MOST];
    int n, equal; /* boxes, and those of them with a neighbour of the same score */
};

/* Whether no neighbour is larger or NaN; *equal: whether one is equal. */
static bool is_peak(const struct maps *m, int label, int y, int x, bool *equal) {
    const float *heat = m->heat + label * m->h * m->w;
    float value = heat[y * m->w + x];
    *equal = false;
    for (int v = y - 1; v <= y + 1; ++v)
        for (int u = x - 1; u <= x + 1; ++u) {
            if (v < 0 || u < 0 || v >= m->h || u >= m->w || (v == y && u == x)) continue;
            if (!(heat[v * m->w + u] <= value)) return false;
            *equal |= heat[v * m->w + u] == value;
        }
    return true;
}

static int by_score(const void *a, const void *b) {
    const struct found *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return x->index != y->index ? x->index - y->index : x->label - y->label;
}

static void decode(struct maps *m, float least) {
    int cells = m->h * m->w;
    m->n = m->equal = 0;
    for (int label = 0; label < CLASSES; ++label)
        for (int i = 0; i < cells; ++i) {
            bool equal;
            struct found one = {i, label, m->heat[label * cells + i], {0}};
            if (!(one.score > least) || !is_peak(m, label, i / m->w, i % m->w, &equal)) continue;
            for (int k = 0; k < 2; ++k) {
                float at = (float)(k == 0 ? i % m->w : i / m->w) + m->offset[k * cells + i];
                float half = m->sides[k * cells + i] / 2;
                one.corner[k] = (at - half) * STRIDE;
                one.corner[2 + k] = (at + half) * STRIDE;
            }
            m->equal += equal;
            m->boxes[m->n++] = one;
        }
    qsort(m->boxes, (size_t)m->n, sizeof m->boxes[0], by_score);
}

/* Files have null for what is not finite. */
static void assert_number(const json_t *found, float wanted) {
    if (isfinite(wanted))
        assert_true((float)json_number_value(found) == wanted);
    else
        assert_true(json_is_null(found));
}

static void assert_boxes(const char *path, const struct maps *m) {
    json_t *doc = json_load_file(path, 0, NULL);
    assert_non_null(doc);
    const json_t *boxes = json_object_get(doc, "boxes");
    assert_int_equal(json_array_size(boxes), m->n);
    for (int i = 0; i < m->n; ++i) {
        json_t *box = json_array_get(boxes, (size_t)i);
        assert_int_equal(integer_at(box, "index"), m->boxes[i].index);
        assert_int_equal(integer_at(box, "label"), m->boxes[i].label);
        assert_true((float)json_number_value(at(box, "score")) == m->boxes[i].score);
        for (size_t k = 0; k < 4; ++k)
            assert_number(json_array_get(at(box, "box"), k), m->boxes[i].corner[k]);
    }
    json_decref(doc);
}

/* Runs a network and compares its boxes with those of its maps. logits: scores are before the
 * sigmoid. */
static void compare(const char *net, const char *image, int h, int w, bool logits, struct maps *m) {
    char command[200];
    size_t cells = (size_t)((h + 3) / STRIDE * ((w + 3) / STRIDE));
    m->h = (h + 3) / STRIDE;
    m->w = (w + 3) / STRIDE;
    (void)snprintf(command, sizeof command, "run %s %s --boxes one.json -o one.npy " SCORE, net,
                   image);
    expect(0, command);
    read_floats("one.hm.npy", m->heat, CLASSES * cells);
    read_floats("one.wh.npy", m->sides, 2 * cells);
    read_floats("one.reg.npy", m->offset, 2 * cells);
    for (size_t i = 0; logits && i < CLASSES * cells; ++i)
        m->heat[i] = (float)(1 / (1 + exp(-(double)m->heat[i])));
    decode(m, 0.5F);
    assert_boxes("one.json", m);
}

static void test_boxes_are_those_of_the_maps(void **state) {
    static const int sizes[][2] = {{97, 161}, {96, 160}, {33, 47}, {161, 5}, {3, 50}, {1, 1}};
    static struct maps m;
    int boxes = 0, equal = 0;
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
        char image[40];
        (void)snprintf(image, sizeof image, "synthetic:%dx%d", sizes[i][0], sizes[i][1]);
        for (int logits = 0; logits < 2; ++logits) {
            compare(logits ? "logits.onnx" : "net.onnx", image, sizes[i][0], sizes[i][1],
                    logits == 1, &m);
            boxes += m.n;
            equal += m.equal;
        }
    }
    assert_true(boxes > 500 && equal > 200);
}

/* A NaN is no peak, and its neighbours are none. */
static void test_values_that_are_not_finite(void **state) {
    enum { H = 60, W = 90 };
    static float image[3][H][W];
    static struct maps m, all;
    unsigned drawn = 1;
    (void)state;
    for (int i = 0; i < 3 * H * W; ++i) {
        drawn = drawn * 1664525U + 1013904223U;
        (&image[0][0][0])[i] = (float)(drawn >> 8) * 0x1p-22F - 2;
    }
    network_write_npy("image.npy", &image[0][0][0], 3, H, W);
    compare("net.onnx", "image.npy", H, W, false, &all);
    for (int i = 0; i < 6; ++i) image[i % 3][8 * i + 4][12 * i + 4] = i < 4 ? NAN : INFINITY;
    network_write_npy("image.npy", &image[0][0][0], 3, H, W);
    compare("net.onnx", "image.npy", H, W, false, &m);
    assert_true(m.n > 20 && m.n < all.n);
}

static void test_boxes_are_the_same_for_every_plan(void **state) {
    static const char *const plans[] = {"--bands 1 --threads 1", "--bands 8 --threads 2",
                                        "--untiled --threads 3", "--tiles 2x3", "--memory 24MiB",
                                        "--tiles 4x5 --threads 3", "-o maps.npy --bands 3",
                                        /* these boxes are not suppressed */
                                        "--iou 0", "--agnostic --iou 0.1", "--soft-nms"};
    (void)state;
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; ++i) {
        char command[300];
        (void)unlink("one.json");
        (void)snprintf(command, sizeof command, NET SCORE "--boxes one.json %s", plans[i]);
        expect(0, command);
        assert_same_files("all.json", "one.json");
    }
    expect(0, NET SCORE "-o one.json --head CenterNet");
    assert_same_files("all.json", "one.json");
    json_t *doc = json_load_file("all.json", 0, NULL);
    assert_string_equal(json_string_value(at(doc, "head")), "head centernet, 3 classes, 1 level");
    json_decref(doc);
}

static void test_parts_give_the_same_file(void **state) {
    static const int counts[] = {1, 2, 3, 5};
    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; ++i) {
        char command[200], merge[300];
        int used = snprintf(merge, sizeof merge, "merge -o merged.json " SCORE);
        for (int k = 1; k <= counts[i]; ++k) {
            (void)snprintf(command, sizeof command,
                           NET "--part %d/%d --head centernet -o %dof%d.npy", k, counts[i], k,
                           counts[i]);
            expect(0, command);
            used +=
                snprintf(merge + used, sizeof merge - (size_t)used, " %dof%d.npy", k, counts[i]);
        }
        (void)unlink("merged.json");
        expect(0, merge);
        assert_same_files("all.json", "merged.json");
    }
    expect(0, "merge 2of2.npy 1of2.npy -o merged.json " SCORE "--head centernet");
    assert_same_files("all.json", "merged.json");
    expect_says(2, "merge 1of1.npy -o no.json --head yolov8", "of the head 'centernet'");
}

/* The text of a member of a document. */
static void boxes_of(const char *path, char *text, size_t size) {
    json_t *doc = json_load_file(path, 0, NULL);
    char *dumped = json_dumps(json_object_get(doc, "boxes"), 0);
    assert_non_null(dumped);
    assert_true(strlen(dumped) < size);
    memcpy(text, dumped, strlen(dumped) + 1);
    free(dumped);
    json_decref(doc);
}

static void test_other_names_in_a_head_file(void **state) {
    static char all[1 << 20], told[1 << 20];
    (void)state;
    write_file("head.json",
               "{\"outputs\": [{\"names\": [\"warm\"], \"axes\": \"v y x\", \"values\": "
               "[\"scores\"]}, {\"names\": [\"wh\"], \"axes\": \"v y x\", \"values\": "
               "[\"sides\"]}, {\"names\": [\"reg\"], \"axes\": \"v y x\", \"values\": "
               "[\"centre\"]}], \"levels\": [{\"stride\": 4}], \"decode\": \"centernet\"}");
    expect(0, "run other.onnx" IMAGE SCORE "--boxes told.json --head head.json");
    boxes_of("all.json", all, sizeof all);
    boxes_of("told.json", told, sizeof told);
    assert_string_equal(all, told);
    expect(0, "run other.onnx" IMAGE "--part 1/2 --head head.json -o told1.npy");
    expect(0, "run other.onnx" IMAGE "--part 2/2 --head head.json -o told2.npy");
    expect(0, "merge told1.npy told2.npy -o merged.json " SCORE);
    assert_same_files("told.json", "merged.json");
}

static void test_what_cannot_be_is_refused(void **state) {
    (void)state;
    expect_says(3, "run other.onnx" IMAGE "--boxes no.json --head centernet",
                "three maps with a cell for each 4 x 4 pixels: 'hm' (classes)");
    expect_says(2, "run other.onnx" IMAGE "--boxes no.json", "it is a map");
    expect_says(2, NET "--boxes no.json --head yolov8", "of a head 'centernet', not 'yolov8'");
    expect_says(3, "run yolov8n synthetic:64x64 --boxes no.json --head centernet",
                "a head 'centernet' has three maps");
    expect_says(4, NET "--boxes no.json " SCORE "--max-boxes 10", "more than 10");
    assert_int_not_equal(access("no.json", F_OK), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_boxes_are_those_of_the_maps),
        cmocka_unit_test(test_values_that_are_not_finite),
        cmocka_unit_test(test_boxes_are_the_same_for_every_plan),
        cmocka_unit_test(test_parts_give_the_same_file),
        cmocka_unit_test(test_other_names_in_a_head_file),
        cmocka_unit_test(test_what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests_name("centernet", tests, set_up, NULL);
}
