/* The picture of run --overlay, pixel by pixel: the program's files against places and colours
 * calculated here, from the input's samples and the output's values. */
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
#include "rf_analysis/analysis.h"
#include "rfexec/image/image_source.h"
#include "tests/support/makers/conv_maker.h"
#include "tests/support/makers/png_maker.h"
#include "tests/support/test_util.h"
#include "tools/report/image_overlay.h"
#include "tools/report/overlay_drawing.h"

enum { H = 37, W = 53, MAX_PIXELS = 64 * 64 };

static const struct png_maker picture = {
    .h = H, .w = W, .bit_depth = 8, .color_type = 2, .seed = 3};

/* What a file holds: samples of pictures, from 0 to 255, values of .npy files. */
struct values {
    int64_t h, w, c;
    float at[MAX_PIXELS * 4]; /* [h, w, c] */
};

static void read_values(const char *path, struct values *v) {
    struct rfx_image_options options = {.scale = 1.0f, .raw = true};
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_image *image = NULL;
    struct rfx_error err = {{0}};
    if (rfx_image_open(mem, path, &options, &image, &err) != RFX_OK) fail_msg("%s", err.text);
    struct rfx_source_traits traits = rfx_image_traits(image);
    *v = (struct values){traits.h, traits.w, traits.c, {0}};
    assert_true(v->h * v->w <= MAX_PIXELS && v->c <= 4);
    struct rfx_rect all = rfx_rect_full(v->h, v->w);
    struct rfx_view view = rfx_view_dense(v->at, all, v->c);
    assert_int_equal(rfx_image_set_window(image, v->h, &err), RFX_OK);
    if (rfx_image_read(image, all, &view, &err) != RFX_OK) fail_msg("%s", err.text);
    rfx_image_free(image);
    rfx_memory_free(mem);
}

static void make_net(const char *path, int64_t kernel, int64_t stride, int64_t pad, int64_t c,
                     bool argmax) {
    const struct conv_maker net = {.kernel = kernel,
                                   .stride = stride,
                                   .pad = pad,
                                   .channels = c,
                                   .seed = 11,
                                   .largest = 1.0f,
                                   .argmax = argmax};
    conv_maker_save(path, &net);
}

/* The colour over one sample, rounded. */
static void expect_pixel(const float *got, const float *sample, const unsigned char rgb[3],
                         double cover, const char *what, int64_t y, int64_t x) {
    for (int k = 0; k < 3; k++) {
        double want = (double)sample[k] * (1.0 - cover) + cover * (double)rgb[k];
        if (fabs((double)got[k] - want) <= (cover > 0.0 ? 0.51 : 0.0)) continue;
        fail_msg("%s: pixel (%lld, %lld), colour %d: %g instead of %g", what, (long long)y,
                 (long long)x, k, (double)got[k], want);
    }
}

/* The value of the map over a pixel, where value i is seen from pixel stride * i + middle: -1:
 * none, farther than a stride from the next. */
static int64_t place(int64_t pixel, int64_t stride, double middle, int64_t n) {
    int64_t best = 0;
    for (int64_t i = 0; i < n; i++) {
        double now = fabs((double)(i * stride) + middle - (double)pixel);
        if (now <= fabs((double)(best * stride) + middle - (double)pixel)) best = i;
    }
    return fabs((double)(best * stride) + middle - (double)pixel) < (double)stride ? best : -1;
}

/* The overlay of labels in `overlay` against a map of scores [h, w, c] and its geometry. */
static void check_labels(const char *overlay, const struct values *scores, int64_t stride,
                         double middle) {
    static struct values got, in;
    int64_t uncovered = 0, clear = 0;
    read_values(overlay, &got);
    read_values("overlay_in.png", &in);
    assert_true(got.h == H && got.w == W && got.c == 3);
    for (int64_t y = 0; y < H; y++)
        for (int64_t x = 0; x < W; x++) {
            int64_t row = place(y, stride, middle, scores->h), label = 0;
            int64_t col = place(x, stride, middle, scores->w);
            unsigned char rgb[3] = {0};
            bool covered = row >= 0 && col >= 0;
            const float *score = scores->at + (row * scores->w + col) * scores->c;
            for (int64_t c = 1; covered && c < scores->c; c++)
                if (score[c] > score[label]) label = c;
            if (label > 0) rfx_label_colour(label, rgb);
            expect_pixel(got.at + (y * W + x) * 3, in.at + (y * W + x) * 3, rgb,
                         label > 0 ? 0.5 : 0.0, overlay, y, x);
            uncovered += !covered;
            clear += covered && label == 0;
        }
    assert_true(clear > 0 && clear < (int64_t)H * W / 2);
    assert_true((uncovered > 0) == (stride * scores->h + stride < H));
}

static void has(const char *words) {
    if (strstr(out_text, words) == NULL) fail_msg("no \"%s\" in\n%s", words, out_text);
}

/* Reads the map that a run wrote beside the overlay. */
static void read_scores(struct values *scores) {
    read_values("overlay_scores.npy", scores);
}

static void same_files(const char *a, const char *b) {
    static struct test_bytes first, second;
    test_bytes_load(&first, a);
    test_bytes_load(&second, b);
    assert_int_equal(first.count, second.count);
    assert_memory_equal(first.data, second.data, first.count);
}

/* Kernels about their first pixel, with a stride: as labels of ArgMax, of three dimensions, and of
 * the scores themselves, from stored maps and from streams. */
static void test_labels(void **state) {
    static struct values scores;
    (void)state;
    assert_true(png_maker_write(&picture, "overlay_in.png"));
    make_net("overlay_scores.onnx", 5, 4, 2, 4, false);
    make_net("overlay_labels.onnx", 5, 4, 2, 4, true);
    expect(0,
           "run overlay_scores.onnx overlay_in.png --untiled -o overlay_scores.npy "
           "--overlay overlay_a.png");
    has("labels of 'y', the largest of 4 channels; the first clear");
    read_scores(&scores);
    assert_true(scores.h == 10 && scores.w == 14 && scores.c == 4);
    check_labels("overlay_a.png", &scores, 4, 0.0);
    expect(0,
           "run overlay_scores.onnx overlay_in.png --bands 8 --strips 3 --overlay overlay_b.png");
    same_files("overlay_a.png", "overlay_b.png");
    expect(0, "run overlay_scores.onnx overlay_in.png --tiles 3x2 --overlay overlay_b.png");
    same_files("overlay_a.png", "overlay_b.png");
    expect(0, "run overlay_labels.onnx overlay_in.png --overlay overlay_b.png");
    has("labels of 'y', 0 clear");
    same_files("overlay_a.png", "overlay_b.png");
    expect(0, "run overlay_labels.onnx overlay_in.png --memory 64MiB --overlay overlay_b.tif");
    check_labels("overlay_b.tif", &scores, 4, 0.0);
}

/* Without padding the map ends before the picture does: nothing is drawn there. */
static void test_unpadded(void **state) {
    static struct values scores;
    (void)state;
    make_net("overlay_valid.onnx", 9, 1, 0, 3, false);
    expect(0,
           "run overlay_valid.onnx overlay_in.png -o overlay_scores.npy --overlay "
           "overlay_a.png");
    read_scores(&scores);
    assert_true(scores.h == H - 8 && scores.w == W - 8);
    check_labels("overlay_a.png", &scores, 1, 4.0);
}

/* Values of a channel: from clear to bright over its extremes, or a range; NaN is red. */
static void test_values(void **state) {
    static struct values scores, got, in;
    double lo = INFINITY, hi = -INFINITY;
    (void)state;
    expect(0,
           "run overlay_scores.onnx overlay_in.png -o overlay_scores.npy --overlay "
           "overlay_a.png --overlay-of 3 --bgr --json");
    json_t *doc = document("run");
    assert_string_equal(json_string_value(at(doc, "overlay.file")), "overlay_a.png");
    json_decref(doc);
    read_scores(&scores);
    read_values("overlay_a.png", &got);
    read_values("overlay_in.png", &in);
    for (int64_t i = 0; i < scores.h * scores.w; i++) {
        lo = fmin(lo, (double)scores.at[i * 4 + 2]);
        hi = fmax(hi, (double)scores.at[i * 4 + 2]);
    }
    for (int64_t y = 0; y < H; y++)
        for (int64_t x = 0; x < W; x++) {
            int64_t cell = place(y, 4, 0.0, scores.h) * scores.w + place(x, 4, 0.0, scores.w);
            double share = ((double)scores.at[cell * 4 + 2] - lo) / (hi - lo);
            unsigned char rgb[3];
            rfx_heat_colour(share, rgb);
            expect_pixel(got.at + (y * W + x) * 3, in.at + (y * W + x) * 3, rgb, 0.75 * share,
                         "values", y, x);
        }
    expect(0,
           "run overlay_scores.onnx overlay_in.png --overlay overlay_b.png --overlay-of 3 "
           "--overlay-range 1e9,2e9");
    read_values("overlay_b.png", &got); /* all of it is clear */
    assert_memory_equal(got.at, in.at, sizeof(float) * 3 * H * W);
}

/* An array: its least value is black, its largest white; what is not finite in the map is red. */
static void test_arrays(void **state) {
    enum { SIDE = 16, HEAD = 128 };
    static float values[3 * SIDE * SIDE];
    static unsigned char bytes[HEAD + sizeof values];
    static struct values got;
    (void)state;
    for (int i = 0; i < 3 * SIDE * SIDE; i++) values[i] = (float)(i % SIDE) * 2.0f - 7.0f;
    values[5 * SIDE + 6] = NAN;
    (void)snprintf((char *)bytes, HEAD, "\x93NUMPY%c%c%c%c%s", 1, 1, 1, 1,
                   "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 16, 16), }");
    memset(bytes + strlen((char *)bytes), ' ', HEAD - strlen((char *)bytes));
    bytes[7] = 0;
    bytes[8] = HEAD - 10;
    bytes[9] = 0;
    bytes[HEAD - 1] = '\n';
    memcpy(bytes + HEAD, values, sizeof values);
    test_bytes_store("overlay_in.npy", bytes, sizeof bytes);
    make_net("overlay_point.onnx", 1, 1, 0, 2, false);
    expect(0,
           "run overlay_point.onnx overlay_in.npy --overlay overlay_a.png --overlay-of 1 "
           "--overlay-range 1e9,2e9");
    read_values("overlay_a.png", &got);
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) {
            bool nan = y == 5 && x == 6;
            float grey = (float)x * 17.0f, samples[3] = {nan ? 0.0f : grey, grey, grey};
            expect_pixel(got.at + (y * SIDE + x) * 3, samples, rfx_no_value_colour,
                         nan ? 0.75 : 0.0, "floats", y, x);
        }
}

/* Where values lie that are closer than pixels, mirrored, or see all of the picture. */
static void test_places(void **state) {
    (void)state;
    struct rfx_axis_field half = {.jump = {1, 2}, .middle_px = 0.25};
    struct rfx_axis_field back = {.jump = {-2, 1}, .middle_px = 9.0};
    struct rfx_map_place p = rfx_map_place_of(&half, 20, 10);
    for (int64_t i = 0; i < 10; i++)
        assert_in_range(rfx_map_place_nearest(&p, i), 2 * i, 2 * i + 1);
    p = rfx_map_place_of(&back, 5, 10);
    for (int64_t i = 0; i < 10; i++) assert_int_equal(rfx_map_place_nearest(&p, i), 4 - i / 2);
    p = rfx_map_place_of(NULL, 5, 10);
    for (int64_t i = 0; i < 10; i++) assert_int_equal(rfx_map_place_nearest(&p, i), i / 2);
}

/* Labels that are near each other differ, and none is black. */
static void test_colours(void **state) {
    unsigned char a[3], b[3];
    (void)state;
    for (int64_t i = 1; i < 200; i++) {
        rfx_label_colour(i, a);
        assert_true(a[0] + a[1] + a[2] > 100);
        for (int64_t k = i + 1; k < i + 7; k++) {
            rfx_label_colour(k, b);
            int apart = abs(a[0] - b[0]) + abs(a[1] - b[1]) + abs(a[2] - b[2]);
            assert_true(apart >= 40);
        }
    }
}

static void test_refusals(void **state) {
    (void)state;
    expect_says(2, "run overlay_scores.onnx overlay_in.png --overlay x.jpg", "end in .png");
    expect_says(2, "run overlay_scores.onnx overlay_in.png --overlay-of 2",
                "--overlay-of needs --overlay, --report or --viewer");
    expect_says(2, "run overlay_scores.onnx overlay_in.png --overlay x.png --overlay-of 5",
                "a channel of output 'y', 1 to 4");
    expect_says(2, "run overlay_scores.onnx overlay_in.png --overlay x.png --overlay-output z",
                "the first is 'y'");
    expect_says(2, "run overlay_scores.onnx overlay_in.png --overlay x.png --overlay-range 0,1",
                "not labels");
    expect_says(2, "run overlay_scores.onnx overlay_in.png --overlay x.png -o x.png",
                "-o and --overlay would both go to 'x.png'");
    expect_says(2, "run squeezenet1_1 synthetic:64x64 --overlay x.png",
                "is a map over the picture");
    expect_says(2, "run " RFX_DEFECTS " synthetic:64x64 --overlay x.png",
                "--overlay-of says which");
    expect_says(2, "run fsrcnn synthetic:64x64 --part 1/2 -o x.npy --overlay x.png",
                "--part excludes --overlay");
    expect_says(2, "run fsrcnn --list x.txt --out-dir . --overlay x.png", "--overlay");
    expect_says(5, "run fsrcnn synthetic:64x64 --overlay no/x.png", "no/x.png");
    assert_int_not_equal(access("x.png", F_OK), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_labels),  cmocka_unit_test(test_unpadded),
        cmocka_unit_test(test_values),  cmocka_unit_test(test_arrays),
        cmocka_unit_test(test_places),  cmocka_unit_test(test_colours),
        cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
