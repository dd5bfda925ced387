/* The picture of run --overlay with --boxes, --regions, --points, --text and --cam, pixel by pixel:
 * the program's files against outlines, labels and colours that are calculated here, from the files
 * of boxes, points and text and from the output's values. The pictures do not depend on plan and
 * threads and stay in the budget.
 */
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
#include "rfexec/answers/boxes.h"
#include "rfexec/answers/oriented_boxes.h"
#include "rfexec/image/image_source.h"
#include "tests/support/makers/conv_maker.h"
#include "tests/support/makers/detector_maker.h"
#include "tests/support/makers/onnx_maker.h"
#include "tests/support/makers/png_maker.h"
#include "tests/support/test_util.h"
#include "tools/report/bitmap_font.h"
#include "tools/report/box_drawing.h"
#include "tools/report/mark_layer.h"
#include "tools/report/overlay_drawing.h"

/* What a file holds: samples of pictures, from 0 to 255, values of .npy files. [h, w, c] */
struct values {
    int64_t h, w, c;
    float *at;
};

static struct values read_values(const char *path) {
    struct rfx_image_options options = {.scale = 1.0f, .raw = true};
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_image *image = NULL;
    struct rfx_error err = {{0}};
    if (rfx_image_open(mem, path, &options, &image, &err) != RFX_OK) fail_msg("%s", err.text);
    struct rfx_source_traits traits = rfx_image_traits(image);
    struct values v = {traits.h, traits.w, traits.c, NULL};
    v.at = test_floats(v.h * v.w * v.c);
    struct rfx_rect all = rfx_rect_full(v.h, v.w);
    struct rfx_view view = rfx_view_dense(v.at, all, v.c);
    assert_int_equal(rfx_image_set_window(image, v.h, &err), RFX_OK);
    if (rfx_image_read(image, all, &view, &err) != RFX_OK) fail_msg("%s", err.text);
    rfx_image_free(image);
    rfx_memory_free(mem);
    return v;
}

static void has(const char *words) {
    if (strstr(out_text, words) == NULL) fail_msg("no \"%s\" in\n%s", words, out_text);
}

static void same_files(const char *a, const char *b) {
    char command[300];
    (void)snprintf(command, sizeof command, "cmp '%s' '%s'", a, b);
    if (system(command) != 0) fail_msg("%s and %s differ", a, b);
}

/* Reads the small overlay of a page. */
static struct values read_small(const char *path) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    FILE *file = fopen("small.png", "wb");
    unsigned held = 0;
    int bits = 0;
    assert_non_null(file);
    read_text(path, out_text);
    const char *p = strstr(out_text, "class=\"overlay\"");
    assert_non_null(p);
    for (p = strstr(p, "base64,") + strlen("base64,"); *p != '"' && *p != '='; p++) {
        held = held << 6 | (unsigned)(strchr(digits, *p) - digits);
        bits += 6;
        if (bits < 8) continue;
        bits -= 8;
        assert_int_not_equal(fputc((int)(held >> bits & 0xFFu), file), EOF);
    }
    assert_int_equal(fclose(file), 0);
    return read_values("small.png");
}

/* The picture of the pixels that a small one of h x w shows. */
static struct values sample(const struct values *v, int64_t h, int64_t w) {
    struct values small = {h, w, v->c, test_floats(h * w * v->c)};
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++)
            memcpy(small.at + (y * w + x) * v->c,
                   v->at + (y * v->h / h * v->w + x * v->w / w) * v->c,
                   (size_t)v->c * sizeof(float));
    return small;
}

static void same_pictures(const struct values *got, const struct values *want, double apart) {
    assert_true(got->h == want->h && got->w == want->w && got->c == 3 && want->c == 3);
    for (int64_t i = 0; i < got->h * got->w * 3; i++) {
        if (fabs((double)got->at[i] - (double)want->at[i]) <= apart) continue;
        fail_msg("pixel (%lld, %lld), colour %d: %g instead of %g", (long long)(i / 3 / got->w),
                 (long long)(i / 3 % got->w), (int)(i % 3), (double)got->at[i],
                 (double)want->at[i]);
    }
}

/* Sets a pixel, where there is one. */
static void put(struct values *v, int64_t y, int64_t x, const unsigned char rgb[3]) {
    if (y < 0 || y >= v->h || x < 0 || x >= v->w) return;
    for (int k = 0; k < 3; k++) v->at[(y * v->w + x) * 3 + k] = (float)rgb[k];
}

/* ---- boxes ---- */

struct frame { /* [y0, y1) x [x0, x1) */
    int64_t x0, y0, x1, y1;
};

static int64_t clamp(double v, int64_t hi) {
    return v < 0.0 ? 0 : v > (double)hi ? hi : (int64_t)v;
}

/* The pixels of a box of the file in a picture, which shows h x w pixels, at least one by one;
 * false: they lie outside of the picture. */
static bool frame_of(json_t *box, const struct values *v, int64_t h, int64_t w,
                     struct frame *frame) {
    json_t *corners = json_object_get(box, "box");
    double edges[4];
    for (size_t i = 0; i < 4; i++) {
        double share = i % 2 == 0 ? (double)v->w / (double)w : (double)v->h / (double)h;
        edges[i] = floor(json_number_value(json_array_get(corners, i)) * share + 0.5);
    }
    for (int i = 0; i < 2; i++) edges[2 + i] = fmax(edges[2 + i], edges[i] + 1.0);
    *frame = (struct frame){clamp(edges[0], v->w), clamp(edges[1], v->h), clamp(edges[2], v->w),
                            clamp(edges[3], v->h)};
    return frame->x0 < frame->x1 && frame->y0 < frame->y1;
}

static void colour_of(json_t *box, unsigned char rgb[3]) {
    rfx_label_colour(json_integer_value(json_object_get(box, "label")) + 1, rgb);
}

static void draw_outline(struct values *v, json_t *box, int64_t h, int64_t w, int line) {
    struct frame f;
    unsigned char rgb[3];
    if (!frame_of(box, v, h, w, &f)) return;
    colour_of(box, rgb);
    for (int64_t y = f.y0; y < f.y1; y++)
        for (int64_t x = f.x0; x < f.x1; x++) {
            bool inner = y >= f.y0 + line && y < f.y1 - line && x >= f.x0 + line && x < f.x1 - line;
            if (!inner) put(v, y, x, rgb);
        }
}

static void draw_label(struct values *v, json_t *box, int letter) {
    static const unsigned char black[3] = {0, 0, 0}, white[3] = {255, 255, 255};
    struct frame f;
    unsigned char rgb[3];
    char text[100], number[20];
    const char *name = json_string_value(json_object_get(box, "name"));
    if (!frame_of(box, v, v->h, v->w, &f)) return;
    colour_of(box, rgb);
    (void)snprintf(number, sizeof number, "%d",
                   (int)json_integer_value(json_object_get(box, "label")));
    (void)snprintf(text, sizeof text, "%.40s %.2f", name != NULL ? name : number,
                   json_number_value(json_object_get(box, "score")));
    int64_t n = (int64_t)strlen(text), w = (6 * n + 1) * letter, h = 9 * letter;
    int64_t left = f.x0 + w > v->w ? v->w - w : f.x0, top = f.y0 - h < 0 ? f.y0 : f.y0 - h;
    if (left < 0) left = 0;
    double light = 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2];
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++) put(v, top + y, left + x, rgb);
    for (int64_t i = 0; i < n; i++)
        for (int y = 0; y < 7 * letter; y++)
            for (int x = 0; x < 5 * letter; x++)
                if (rfx_font_has_ink(text[i], x / letter, y / letter))
                    put(v, top + letter + y, left + (1 + 6 * i) * letter + x,
                        light > 128.0 ? black : white);
}

/* Draws the boxes of a file over a picture, which shows h x w pixels: the first has the highest
 * score and lies over the others. letter 0: without labels. */
static void draw_boxes(struct values *v, int64_t h, int64_t w, int line, int letter) {
    json_t *doc = json_load_file("det.json", 0, NULL);
    assert_non_null(doc);
    json_t *boxes = json_object_get(doc, "boxes");
    assert_true(json_array_size(boxes) >= 5);
    for (size_t i = json_array_size(boxes); i-- > 0;)
        draw_outline(v, json_array_get(boxes, i), h, w, line);
    for (size_t i = json_array_size(boxes); i-- > 0 && letter > 0;)
        draw_label(v, json_array_get(boxes, i), letter);
    json_decref(doc);
}

static void make_picture(const char *path, int h, int w) {
    const struct png_maker picture = {
        .h = h, .w = w, .bit_depth = 8, .color_type = 2, .seed = (uint32_t)(h + w)};
    assert_true(png_maker_write(&picture, path));
}

#define DETECT "run det.onnx in.png --head yolov8 --iou 1 --boxes det.json "

static void check_boxes(int h, int w, int line, int letter, const char *more) {
    char command[300];
    make_picture("in.png", h, w);
    detector_maker_save("det.onnx", h, w, (float)h / 12.0f, 10);
    (void)snprintf(command, sizeof command, DETECT "--overlay det.png %s", more);
    expect(0, command);
    struct values got = read_values("det.png"), want = read_values("in.png");
    draw_boxes(&want, h, w, line, letter);
    same_pictures(&got, &want, 0.0);
    free(got.at);
    free(want.at);
}

/* Small, middle and large pictures, with lines and letters of their sizes. */
static void test_boxes(void **state) {
    (void)state;
    check_boxes(96, 130, 1, 1, "--score 0.3");
    has(" boxes of 'boxes'\n");
    check_boxes(320, 641, 1, 2, "--score 1");
    check_boxes(100, 1001, 2, 2, "--score 0.9");
    check_boxes(90, 2600, 3, 3, "--score 0.9");
    check_boxes(3400, 70, 3, 3, "--score 0.9"); /* labels wider than the picture */
    assert_int_equal(rfx_overlay_line(20000, 30), 20);
}

#define LONG "a name of many letters, of which forty are drawn"

/* Names of classes; what is not ASCII becomes a question mark. */
static void test_names(void **state) {
    (void)state;
    write_file("names.txt", "dog\nsp?t\nroad\n" LONG "\ntree\na\nb\nc\nd\ne\n");
    check_boxes(200, 300, 1, 1, "--score 0.3 --agnostic --classes names.txt");
    (void)rename("det.png", "ascii.png");
    write_file("names.txt", "dog\nsp\xc3\xa4t\nroad\n" LONG "\ntree\na\nb\nc\nd\ne\n");
    expect(0, DETECT "--overlay det.png --score 0.3 --agnostic --classes names.txt");
    same_files("det.png", "ascii.png");
}

/* Over the values of another output as over the picture, and beside an overlay as today. */
static void test_boxes_over_a_map(void **state) {
    (void)state;
    make_picture("in.png", 120, 200);
    detector_maker_save("det.onnx", 120, 200, 10.0f, 3);
    expect(0, "run det.onnx in.png --keep cells --overlay map.png --overlay-of 2");
    has("channel 2 of 'cells'");
    expect(0, DETECT "--keep cells --overlay det.png --overlay-of 2 --score 0.5 --json");
    json_t *doc = document("run");
    const char *shows = json_string_value(at(doc, "overlay.shows"));
    assert_non_null(strstr(shows, "channel 2 of 'cells'"));
    assert_non_null(strstr(shows, " boxes of 'boxes'"));
    json_decref(doc);
    struct values got = read_values("det.png"), want = read_values("map.png");
    draw_boxes(&want, 120, 200, 1, 1);
    same_pictures(&got, &want, 0.0);
    free(got.at);
    free(want.at);
}

static void test_boxes_are_the_same_for_every_plan(void **state) {
    static const char *const plans[] = {"--bands 3 --threads 1", "--bands 8 --strips 3 --threads 3",
                                        "--tiles 3x2", "--memory 64MiB", "--report boxes.html"};
    (void)state;
    make_picture("in.png", 500, 700);
    detector_maker_save("det.onnx", 500, 700, 20.0f, 7);
    expect(0, DETECT "--score 0.7 --overlay all.png --untiled");
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) {
        char command[300];
        (void)snprintf(command, sizeof command, DETECT "--score 0.7 --overlay one.png %s",
                       plans[i]);
        expect(0, command);
        same_files("all.png", "one.png");
    }
}

/* On a page: labels where the picture is shown whole, else lines of the small picture's own. */
static void test_boxes_on_a_page(void **state) {
    (void)state;
    check_boxes(200, 300, 1, 1, "--score 0.5 --report page.html");
    struct values got = read_small("page.html"), whole = read_values("det.png");
    same_pictures(&got, &whole, 0.0);
    free(got.at);
    free(whole.at);
    make_picture("in.png", 600, 1000);
    detector_maker_save("det.onnx", 600, 1000, 20.0f, 7);
    expect(0, DETECT "--score 0.9 --report page.html");
    got = read_small("page.html");
    whole = read_values("in.png");
    struct values want = sample(&whole, 240, 400);
    draw_boxes(&want, 600, 1000, 1, 0);
    same_pictures(&got, &want, 0.0);
    read_text("page.html", out_text);
    has(" boxes of &#39;boxes&#39;");
    free(got.at);
    free(whole.at);
    free(want.at);
}

/* The smallest budget that a run of a network with these options needs. */
static long long smallest_of(const char *options) {
    char command[400];
    (void)snprintf(command, sizeof command, "run %s --memory 1MiB --json", options);
    expect(4, command);
    json_t *doc = json_loads(out_text, 0, NULL);
    assert_non_null(doc);
    long long least = integer_at(doc, "smallest_bytes");
    json_decref(doc);
    return least;
}

/* What drawing a million boxes more takes is in the budget, once for the file and once for a page.
 */
static void test_boxes_are_counted(void **state) {
    static const char *const pictures[] = {"", "--overlay b.png",
                                           "--overlay b.png --report b.html"};
    long long more[3];
    (void)state;
    make_picture("in.png", 320, 320);
    detector_maker_save("det.onnx", 320, 320, 20.0f, 7);
    for (int i = 0; i < 3; i++) {
        char few[200], many[200];
        (void)snprintf(few, sizeof few,
                       "det.onnx in.png --head yolov8 --boxes b.json --max-boxes 10 %s",
                       pictures[i]);
        (void)snprintf(many, sizeof many,
                       "det.onnx in.png --head yolov8 --boxes b.json --max-boxes 1000010 %s",
                       pictures[i]);
        more[i] = smallest_of(many) - smallest_of(few);
    }
    assert_in_range(more[1] - more[0], 4125000, 5000000);
    assert_in_range(more[2] - more[1], 4125000, 5000000);
}

/* Draws b.png within the smallest budget that is said to be enough for these options: the picture
 * is that of an untiled run, and the number at `counted` in the report is `many` or more. */
static void check_least(const char *options, const char *counted, long long many) {
    char command[400];
    long long least = smallest_of(options);
    (void)snprintf(command, sizeof command, "run %s --memory %lld --json", options, least);
    expect(0, command);
    json_t *doc = document("run");
    long long count = integer_at(doc, counted);
    if (count < many) fail_msg("%s is %lld: few", counted, count);
#ifndef RFX_SANITIZE /* whose own memory is in no budget */
    assert_in_range(integer_at(doc, "measured.peak_rss_bytes"), 1, least);
#endif
    json_decref(doc);
    (void)rename("b.png", "whole.png");
    (void)snprintf(command, sizeof command, "run %s --untiled", options);
    expect(0, command);
    same_files("b.png", "whole.png");
}

/* Thousands of boxes on a large picture. */
static void test_budget(void **state) {
    (void)state;
    detector_maker_save("det.onnx", 3000, 4000, 40.0f, 5);
    check_least(
        "det.onnx synthetic:3000x4000 --head yolov8 --iou 0.9 --score 0.2 --boxes b.json "
        "--overlay b.png",
        "boxes.count", 2000);
}

/* ---- regions ---- */

static void make_net(const char *path, int64_t stride, int64_t c, bool argmax) {
    const struct conv_maker net = {.kernel = 3,
                                   .stride = stride,
                                   .pad = 1,
                                   .channels = c,
                                   .seed = 5,
                                   .largest = 0.5f,
                                   .argmax = argmax,
                                   .integers = argmax};
    conv_maker_save(path, &net);
}

/* How classes come from scores. */
struct rule {
    const char *options;
    float thresholds[4]; /* NaN: the largest channel is the class */
    bool argmax, all_labels;
};

/* The number of a pixel's colour, 0: none. The value of cell i is seen from pixel stride * i. */
static int64_t number_at(const struct values *scores, const struct rule *rule, int64_t stride,
                         int64_t y, int64_t x) {
    int64_t row = (y + stride / 2) / stride, col = (x + stride / 2) / stride, best = -1;
    row = row < scores->h ? row : scores->h - 1;
    col = col < scores->w ? col : scores->w - 1;
    const float *pixel = scores->at + (row * scores->w + col) * scores->c;
    for (int64_t k = 0; k < scores->c; k++)
        if (isnan(rule->thresholds[k]) || pixel[k] > rule->thresholds[k])
            if (best < 0 || pixel[k] > pixel[best]) best = k;
    bool shifted = rule->all_labels || !isnan(rule->thresholds[0]);
    return shifted ? best + 1 : best;
}

/* Draws the regions of scores over a picture, which shows h x w pixels. */
static void draw_regions(struct values *v, const struct values *scores, const struct rule *rule,
                         int64_t stride, int64_t h, int64_t w, int line) {
    int64_t opaque = 0, tinted = 0, clear = 0;
    int64_t *numbers = malloc((size_t)(v->h * v->w) * sizeof *numbers);
    assert_non_null(numbers);
    for (int64_t i = 0; i < v->h * v->w; i++)
        numbers[i] = number_at(scores, rule, stride, i / v->w * h / v->h, i % v->w * w / v->w);
    for (int64_t y = 0; y < v->h; y++)
        for (int64_t x = 0; x < v->w; x++) {
            const int64_t *at = &numbers[y * v->w + x], n = *at;
            bool edge = (y < line ? 0 : at[-line * v->w]) != n ||
                        (y + line >= v->h ? 0 : at[line * v->w]) != n ||
                        (x < line ? 0 : at[-line]) != n || (x + line >= v->w ? 0 : at[line]) != n;
            double cover = n == 0 ? 0.0 : edge ? 1.0 : 0.5;
            unsigned char rgb[3] = {0};
            if (n > 0) rfx_label_colour(n, rgb);
            for (int k = 0; k < 3; k++) {
                float *colour = &v->at[(y * v->w + x) * 3 + k];
                *colour = (float)((double)*colour * (1.0 - cover) + cover * (double)rgb[k]);
            }
            opaque += cover == 1.0;
            tinted += cover == 0.5;
            clear += cover == 0.0;
        }
    assert_true(opaque > 0 && (stride == 1 || tinted > 0) && (rule->all_labels || clear > 0));
    free(numbers);
}

static void check_regions(const struct rule *rule, int h, int w, int64_t stride, int line) {
    char command[300];
    make_picture("in.png", h, w);
    make_net("scores.onnx", stride, 4, false);
    expect(0, "run scores.onnx in.png -o scores.npy");
    make_net("net.onnx", stride, 4, rule->argmax);
    (void)snprintf(command, sizeof command,
                   "run net.onnx in.png --regions r.geojson --overlay r.png --report r.html %s",
                   rule->options);
    expect(0, command);
    has("regions of 'y'");
    has("with outlines");
    struct values scores = read_values("scores.npy"), got = read_values("r.png");
    struct values in = read_values("in.png"), small = read_small("r.html");
    struct values few = sample(&in, small.h, small.w);
    draw_regions(&in, &scores, rule, stride, h, w, line);
    same_pictures(&got, &in, 0.51);
    draw_regions(&few, &scores, rule, stride, h, w, 1);
    same_pictures(&small, &few, 0.51);
    free(scores.at);
    free(got.at);
    free(in.at);
    free(small.at);
    free(few.at);
}

static void test_regions(void **state) {
    static const struct rule rules[] = {
        {"--threshold 0.3", {0.3f, 0.3f, 0.3f, 0.3f}, false, false},
        {"--threshold 0.4,-0.1,0.2,9", {0.4f, -0.1f, 0.2f, 9.0f}, false, false},
        {"", {NAN, NAN, NAN, NAN}, false, false},
        {"--all-labels", {NAN, NAN, NAN, NAN}, false, true},
        {"", {NAN, NAN, NAN, NAN}, true, false},
        {"--all-labels", {NAN, NAN, NAN, NAN}, true, true}};
    (void)state;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        check_regions(&rules[i], 37, 53, 4, 1);
        check_regions(&rules[i], 23, 31, 1, 1);
    }
    check_regions(&rules[0], 30, 1500, 8, 2);
    check_regions(&rules[2], 2700, 24, 8, 3);
    check_regions(&rules[1], 2700, 24, 2, 3); /* lines are wider than the map's pixels */
}

/* A map of the image's size lies on the image's pixels, though this network sees 1.5 pixels to the
 * side: one region of all pixels has its outline all along the edge of the picture. */
static void test_maps_of_the_images_size(void **state) {
    (void)state;
    make_picture("in.png", 64, 96);
    expect(0, "run ppocr_det in.png --threshold 0 --regions all.geojson --overlay all.png");
    struct values v = read_values("all.png");
    for (int64_t x = 0; x < v.w; x++)
        for (int64_t y = 0; y < v.h; y += v.h - 1)
            assert_memory_equal(&v.at[(y * v.w + x) * 3], v.at, 3 * sizeof *v.at);
    for (int64_t y = 0; y < v.h; y++)
        for (int64_t x = 0; x < v.w; x += v.w - 1)
            assert_memory_equal(&v.at[(y * v.w + x) * 3], v.at, 3 * sizeof *v.at);
    free(v.at);
}

/* Values that are NaN are red, with an outline too, and belong to no class; of a pixel with a
 * channel above its threshold, that channel is shown. */
static void test_values_that_are_missing(void **state) {
    enum { SIDE = 16, HEAD = 128, Y = 5, X = 6 };
    static float values[3 * SIDE * SIDE];
    static unsigned char bytes[HEAD + sizeof values];
    (void)state;
    values[Y * SIDE + X] = NAN;
    values[2 * SIDE * SIDE + 1] = 255.0f; /* black and white */
    memset(bytes, ' ', HEAD);
    memcpy(bytes, "\x93NUMPY\x01\x00\x76\x00", 10);
    static const char header[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 16, 16), }";
    memcpy(bytes + 10, header, strlen(header));
    bytes[HEAD - 1] = '\n';
    memcpy(bytes + HEAD, values, sizeof values);
    test_bytes_store("nan.npy", bytes, sizeof bytes);
    make_net("net.onnx", 1, 3, false);
    for (int all = 0; all < 2; all++) {
        expect(0, all == 0 ? "run net.onnx nan.npy --regions r.csv --overlay r.png --threshold 1e9"
                           : "run net.onnx nan.npy --regions r.csv --overlay r.png");
        struct values got = read_values("r.png");
        assert_true(got.h == SIDE && got.w == SIDE);
        for (int y = 3; y < SIDE; y++) /* above, there is white */
            for (int x = 0; x < SIDE; x++) {
                bool nan = abs(y - Y) <= 1 && abs(x - X) <= 1, inner = y == Y && x == X;
                for (int k = 0; k < 3; k++) {
                    double red = (double)rfx_no_value_colour[k];
                    double want = nan ? (inner ? 0.75 * red : red) : 0.0;
                    double have = (double)got.at[(y * SIDE + x) * 3 + k];
                    if (fabs(have - want) > 0.51)
                        fail_msg("pixel (%d, %d): %g instead of %g", y, x, have, want);
                }
            }
        free(got.at);
    }
}

static void test_regions_are_the_same_for_every_plan(void **state) {
    static const char *const plans[] = {"--bands 3 --threads 1", "--bands 8 --strips 3 --threads 3",
                                        "--tiles 3x2", "--memory 24MiB", "--report regions.html"};
    (void)state;
    expect(0, "run " RFX_DEFECTS
              " synthetic:600x800 --threshold 0.02 --regions r.csv "
              "--overlay all.png --untiled");
    has("overlay    regions of 'defects' with outlines, the largest of 3 channels above 0.02\n");
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) {
        char command[300];
        (void)snprintf(command, sizeof command,
                       "run " RFX_DEFECTS
                       " synthetic:600x800 --threshold 0.02 --regions r.csv "
                       "--overlay one.png %s",
                       plans[i]);
        expect(0, command);
        same_files("all.png", "one.png");
    }
    expect(0, "run " RFX_DEFECTS " synthetic:600x800 --overlay heat.png --overlay-of 1");
    expect(0, "run " RFX_DEFECTS
              " synthetic:600x800 --threshold 0.02 --regions r.csv "
              "--overlay one.png --overlay-of 1"); /* which shows what it always did */
    has("channel 1 of 'defects'");
    same_files("heat.png", "one.png");
}

/* ---- points and text ---- */

#define POINTS "run " RFX_DEFECTS " synthetic:600x800 --threshold 0.02,0.01,0.5 --points p.csv "

/* Draws the points of p.csv over a picture, which shows h x w pixels, in the order of the file.
 * Returns their number. */
static int draw_points(struct values *v, int64_t h, int64_t w) {
    int n = 0, label;
    double x, y;
    read_text("p.csv", out_text);
    for (const char *line = strchr(out_text, '\n') + 1; *line != '\0'; n++) {
        unsigned char rgb[3];
        assert_int_equal(sscanf(line, "%d,,%*f,%lf,%lf", &label, &x, &y), 3);
        int64_t col = (int64_t)floor(x * (double)v->w / (double)w);
        int64_t row = (int64_t)floor(y * (double)v->h / (double)h);
        rfx_label_colour(label + 1, rgb);
        for (int dy = -4; dy <= 4; dy++)
            for (int dx = -4; dx <= 4; dx++) {
                int far = abs(dx) + abs(dy);
                if (far == 4 || far == 5) put(v, row + dy, col + dx, rgb);
            }
        line = strchr(line, '\n') + 1;
    }
    return n;
}

/* Over a map as over the picture alone, at the edges too; small on a page. Nothing else changes. */
static void test_points(void **state) {
    char words[60];
    (void)state;
    expect(0, POINTS "--distance 2 --overlay got.png --overlay-of 2 --report got.html --json");
    json_t *doc = document("run");
    const char *shows = json_string_value(at(doc, "overlay.shows"));
    assert_non_null(shows);
    assert_non_null(strstr(shows, "channel 2 of 'defects'"));
    (void)snprintf(words, sizeof words, "; %lld points of 'defects'",
                   integer_at(doc, "points.count"));
    assert_non_null(strstr(shows, words));
    json_decref(doc);
    expect(0, POINTS "--distance 2 --overlay-of 2 --report got.html");
    expect(0, "run " RFX_DEFECTS
              " synthetic:600x800 --overlay plain.png --overlay-of 2 --report plain.html");
    struct values got = read_values("got.png"), want = read_values("plain.png");
    assert_true(draw_points(&want, 600, 800) > 150);
    same_pictures(&got, &want, 0.0);
    free(got.at);
    free(want.at);
    got = read_small("got.html");
    want = read_small("plain.html");
    assert_true(got.h == 300 && got.w == 400);
    (void)draw_points(&want, 600, 800);
    same_pictures(&got, &want, 0.0);
    free(got.at);
    free(want.at);
}

/* A map of `stride` pixels a value, with bars that are brighter than 0.3. */
static void make_text(int h, int w, int64_t stride) {
    static const float one = 1;
    static const int64_t image[4] = {1, 1, 0, 0}, kernel[4] = {1, 1, 1, 1};
    const int64_t strides[] = {stride, stride};
    static struct maker graph, node, model;
    float *values = test_floats((int64_t)h * w);
    char shape[60];
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++) {
            double turn = 0.3 * (x / 100) + 0.7 * (y / 90), u = x % 100 - 50, v = y % 90 - 45;
            double along = u * cos(turn) + v * sin(turn), across = v * cos(turn) - u * sin(turn);
            bool inside = fabs(along) < 40 && fabs(across) < 12;
            values[y * w + x] = inside ? 0.9F : 0.1F;
        }
    (void)snprintf(shape, sizeof shape, "(1, 1, %d, %d)", h, w);
    write_floats("text.npy", shape, values, (size_t)h * (size_t)w);
    free(values);
    graph.size = model.size = node.size = 0;
    maker_value(&graph, MAKER_INPUT, "image", image, 4);
    maker_floats(&graph, "k", kernel, 4, &one);
    maker_node(&node, "Conv", "image k", "probability");
    maker_attr_ints(&node, "strides", strides, 2);
    maker_message(&graph, MAKER_NODE, &node);
    maker_value(&graph, MAKER_OUTPUT, "probability", NULL, 0);
    maker_model(&graph, 13, &model);
    maker_save(&model, "text.onnx");
}

/* A box of text: its corners, and the pixels of its upright rectangle. */
struct quad {
    double corner[4][2], lo[2], hi[2];
};

static struct quad quad_of(json_t *box) {
    struct quad quad = {.lo = {1e9, 1e9}, .hi = {-1e9, -1e9}};
    json_t *corners = json_object_get(box, "corners");
    for (size_t i = 0; i < 8; i++) {
        double at = json_number_value(json_array_get(json_array_get(corners, i / 2), i % 2));
        quad.corner[i / 2][i % 2] = at;
        quad.lo[i % 2] = fmin(quad.lo[i % 2], floor(at + 0.5));
        quad.hi[i % 2] = fmax(quad.hi[i % 2], floor(at + 0.5));
    }
    return quad;
}

/* The least distance of a pixel's centre from the sides of a box, negative outside. */
static double distance_inside(const struct quad *quad, double y, double x) {
    double least = INFINITY;
    for (int k = 0; k < 4; k++) {
        const double *p = quad->corner[k], *q = quad->corner[(k + 1) % 4];
        double ex = q[0] - p[0], ey = q[1] - p[1];
        least = fmin(least, (ex * (y - p[1]) - ey * (x - p[0])) / sqrt(ex * ex + ey * ey));
    }
    return least;
}

/* 1: an outline has the pixel, 0: none has it; -1: its centre is too near to an edge of one. */
static int ink_of(const struct quad *quads, size_t n, int64_t y, int64_t x, int line) {
    int ink = 0;
    for (size_t i = 0; i < n; i++) {
        const struct quad *q = &quads[i];
        if ((double)x < q->lo[0] || (double)x >= q->hi[0] || (double)y < q->lo[1] ||
            (double)y >= q->hi[1])
            continue;
        double inside = distance_inside(q, (double)y + 0.5, (double)x + 0.5);
        if (fabs(inside + 0.5) < 1e-6 || fabs(inside - line) < 1e-6) return -1;
        if (inside >= -0.5 && inside < line) ink = 1;
    }
    return ink;
}

/* Compares a picture with the one without boxes of text. */
static void check_text(int h, int w, int64_t stride, int line) {
    int64_t drawn = 0, same = 0;
    struct quad quads[100];
    unsigned char rgb[3];
    make_text(h, w, stride);
    expect(0, "run text.onnx text.npy --text t.json --overlay got.png --overlay-range 0,2");
    has(" boxes of text of 'probability'");
    expect(0, "run text.onnx text.npy --overlay plain.png --overlay-range 0,2");
    struct values got = read_values("got.png"), want = read_values("plain.png");
    json_t *doc = json_load_file("t.json", 0, NULL);
    json_t *boxes = json_object_get(doc, "boxes");
    size_t n = json_array_size(boxes);
    assert_in_range(n, 12, 100);
    for (size_t i = 0; i < n; i++) quads[i] = quad_of(json_array_get(boxes, i));
    rfx_label_colour(1, rgb);
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++) {
            int ink = ink_of(quads, n, y, x, line);
            const float *a = got.at + (y * w + x) * 3, *b = want.at + (y * w + x) * 3;
            for (int k = 0; k < 3 && ink >= 0; k++)
                if (a[k] != (ink != 0 ? (float)rgb[k] : b[k]))
                    fail_msg("pixel (%lld, %lld), colour %d: %g", (long long)y, (long long)x, k,
                             (double)a[k]);
            drawn += ink > 0;
            same += ink == 0;
        }
    assert_true(drawn > 1000 && same > 4 * drawn);
    json_decref(doc);
    free(got.at);
    free(want.at);
}

static void test_text(void **state) {
    (void)state;
    check_text(300, 400, 1, 1);
    check_text(301, 403, 2, 1);
    check_text(180, 2600, 1, 3);
}

static void test_points_and_text_are_the_same_for_every_plan(void **state) {
    static const char *const plans[] = {"--bands 3 --threads 1", "--bands 8 --strips 3 --threads 3",
                                        "--tiles 3x2 --threads 2", "--memory 24MiB",
                                        "--report found.html"};
    (void)state;
    make_text(700, 900, 1);
    expect(0,
           "run text.onnx text.npy --text t.json --points p.csv --threshold 0.5 --distance 3 "
           "--overlay all.png --untiled");
    has(" boxes of text of 'probability'; ");
    has(" points of 'probability'\n");
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) {
        char command[300];
        (void)snprintf(command, sizeof command,
                       "run text.onnx text.npy --text t.json --points p.csv --threshold 0.5 "
                       "--distance 3 --overlay one.png %s",
                       plans[i]);
        expect(0, command);
        same_files("all.png", "one.png");
    }
}

static long long source_of(const char *options) {
    char command[300];
    (void)snprintf(command, sizeof command,
                   "run text.onnx synthetic:40x20000 --threshold 0.5 %s --json", options);
    expect(0, command);
    json_t *doc = document("run");
    long long bytes = integer_at(doc, "plan.breakdown.source");
    json_decref(doc);
    return bytes;
}

/* What drawing points and text takes is in the budget, whatever their number. */
static void test_marks_are_counted(void **state) {
    (void)state;
    make_text(40, 40, 1);
    long long drawn = source_of("--points p.csv --text t.csv --overlay b.png") -
                      source_of("--points p.csv --text t.csv");
    long long alone = source_of("--regions r.csv --overlay b.png") - source_of("--regions r.csv");
    assert_int_equal(drawn, alone - 2 * 20000 * 4 + 2 * (long long)rfx_mark_layer_bytes(20000));
    check_least(RFX_DEFECTS
                " synthetic:1600x2400 --threshold 0 --points p.csv --overlay b.png "
                "--overlay-of 1 --report b.html",
                "points.count", 5000);
}

/* ---- class-activation maps ---- */

enum { CHANNELS = 4, CLASSES = 3 };

/* conv of 3 x 3 with stride 4, pooling, Flatten, Gemm, Softmax. weights: [CLASSES, CHANNELS],
 * stored so or with the classes last. */
static void make_classifier(const char *path, const float *weights, bool classes_first) {
    static struct maker graph, node, model;
    float kernel[CHANNELS * 27], stored[CLASSES * CHANNELS];
    const int64_t image[] = {1, 3, 0, 0}, shape[] = {CHANNELS, 3, 3, 3}, kernels[] = {3, 3};
    const int64_t strides[] = {4, 4}, pads[] = {1, 1, 1, 1};
    const int64_t first[] = {CLASSES, CHANNELS}, last[] = {CHANNELS, CLASSES};
    struct test_rng rng = test_rng_make(7);
    test_rng_fill(&rng, kernel, CHANNELS * 27, -0.5f, 0.5f);
    for (int k = 0; k < CLASSES; k++)
        for (int c = 0; c < CHANNELS; c++)
            stored[classes_first ? k * CHANNELS + c : c * CLASSES + k] = weights[k * CHANNELS + c];
    graph.size = 0;
    maker_value(&graph, MAKER_INPUT, "image", image, 4);
    maker_floats(&graph, "k", shape, 4, kernel);
    maker_floats(&graph, "w", classes_first ? first : last, 2, stored);
    maker_node(&node, "Conv", "image k", "conv");
    maker_attr_ints(&node, "kernel_shape", kernels, 2);
    maker_attr_ints(&node, "strides", strides, 2);
    maker_attr_ints(&node, "pads", pads, 4);
    maker_message(&graph, MAKER_NODE, &node);
    maker_add(&graph, "Relu", "conv", "seen");
    maker_add(&graph, "GlobalAveragePool", "seen", "mean");
    maker_add(&graph, "Flatten", "mean", "flat");
    maker_add_int(&graph, "Gemm", "flat w", "scores", "transB", classes_first);
    maker_add_int(&graph, "Softmax", "scores", "y", "axis", 1);
    maker_value(&graph, MAKER_OUTPUT, "y", NULL, 0);
    maker_model(&graph, 13, &model);
    maker_save(&model, path);
}

static void test_class_activation(void **state) {
    static const float weights[CLASSES * CHANNELS] = {1,     -2,    0.5f, 3,  0.25f, 1,
                                                      -1.5f, 0.75f, -1,   -1, 2,     0.125f};
    static const char *const plans[] = {"--bands 1 --threads 1", "--untiled", "--memory 32MiB",
                                        "--report cam.html"};
    double values[20 * 20], lo = INFINITY, hi = -INFINITY;
    (void)state;
    make_picture("in.png", 37, 53);
    make_classifier("first.onnx", weights, true);
    make_classifier("last.onnx", weights, false);
    expect(0, "run first.onnx in.png --keep seen -o cam.npy");
    struct values seen = read_values("cam.seen.npy");
    assert_true(seen.h == 10 && seen.w == 14 && seen.c == CHANNELS);
    for (int64_t i = 0; i < seen.h * seen.w; i++) {
        values[i] = 0.0;
        for (int c = 0; c < CHANNELS; c++)
            values[i] += (double)weights[CHANNELS + c] * (double)seen.at[i * CHANNELS + c];
        values[i] = (double)(float)values[i];
        lo = fmin(lo, values[i]);
        hi = fmax(hi, values[i]);
    }
    struct values want = read_values("in.png");
    for (int64_t y = 0; y < want.h; y++)
        for (int64_t x = 0; x < want.w; x++) {
            int64_t row = (y + 2) / 4 < seen.h ? (y + 2) / 4 : seen.h - 1;
            int64_t col = (x + 2) / 4 < seen.w ? (x + 2) / 4 : seen.w - 1;
            double share = (values[row * seen.w + col] - lo) / (hi - lo), cover = 0.75 * share;
            unsigned char rgb[3];
            rfx_heat_colour(share, rgb);
            for (int k = 0; k < 3; k++) {
                float *colour = &want.at[(y * want.w + x) * 3 + k];
                *colour = (float)((double)*colour * (1.0 - cover) + cover * (double)rgb[k]);
            }
        }
    (void)unlink("one.npy");
    (void)unlink("one.seen.npy");
    (void)unlink("two.seen.npy");
    expect(0, "run first.onnx in.png --overlay cam.png --cam 1 -o one.npy");
    has("class 1, from 'seen' and the weights of 'scores'");
    assert_int_equal(access("one.npy", F_OK), 0); /* its name has no part for the map */
    assert_int_not_equal(access("one.seen.npy", F_OK), 0);
    struct values got = read_values("cam.png");
    same_pictures(&got, &want, 0.51);
    expect(0, "run last.onnx in.png --overlay other.png --cam 1 --keep seen -o two.npy");
    same_files("cam.png", "other.png");
    assert_int_equal(access("two.seen.npy", F_OK), 0);
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) {
        char command[300];
        (void)snprintf(command, sizeof command,
                       "run first.onnx in.png --overlay other.png --cam 1 %s", plans[i]);
        expect(0, command);
        same_files("cam.png", "other.png");
    }
    expect(0, "run first.onnx in.png --cam 2 --report cam.html");
    expect(0, "run first.onnx in.png --cam 2 --overlay other.png -o -"); /* has one output only */
    free(seen.at);
    free(want.at);
    free(got.at);
    expect_says(2, "run first.onnx in.png --overlay no.png --cam 3", "0 to 2");
    expect_says(2, "run first.onnx in.png --overlay no.png --cam dog", "0 to 2");
    expect_says(2, "run first.onnx in.png --cam 1", "--cam needs --overlay, --report or --viewer");
    expect_says(2, "run first.onnx in.png --overlay no.png --cam 1 --overlay-of 1", "--overlay-of");
    expect_says(3, "run squeezenet1_1 synthetic:64x64 --overlay no.png --cam 1",
                "its map 'classifier.2', which 'classifier.3' pools");
    expect_says(3, "run fsrcnn synthetic:64x64 --overlay no.png --cam 1",
                "is not the fully connected layer");
    assert_int_not_equal(access("no.png", F_OK), 0);
}

/* ---- the rest ---- */

/* All letters differ, and none has ink outside of its place. */
static void test_font(void **state) {
    static const char *const seven[7] = {"#####", "....#", "...#.", "..#..",
                                         "..#..", "..#..", "..#.."};
    uint64_t seen[128] = {0};
    (void)state;
    for (int c = ' '; c <= '~'; c++) {
        for (int i = 0; i < 35; i++)
            seen[c] |= (uint64_t)rfx_font_has_ink((char)c, i % 5, i / 5) << i;
        assert_true((seen[c] == 0) == (c == ' '));
        for (int other = ' '; other < c; other++) assert_true(seen[c] != seen[other]);
    }
    for (int i = 0; i < 35; i++) {
        assert_int_equal(rfx_font_has_ink('7', i % 5, i / 5), seven[i / 5][i % 5] == '#');
        assert_int_equal(rfx_font_has_ink('\x80', i % 5, i / 5),
                         rfx_font_has_ink('?', i % 5, i / 5));
    }
}

static enum rfx_status build_drawing(struct rfx_memory *mem, void *context, struct rfx_error *err) {
    struct rfx_box_drawing *drawing = NULL;
    enum rfx_status status = rfx_box_drawing_create(mem, 1000, context, &drawing, err);
    rfx_box_drawing_free(drawing);
    return status;
}

/* Boxes that are not drawn: not a number, outside; and boxes that end at infinity. */
static void test_strange_boxes(void **state) {
    enum { SIDE = 20 };
    const struct rfx_box boxes[] = {{{-INFINITY, 12.0f, INFINITY, 1e30f}, 0.9f, 0, 0},
                                    {{NAN, 0, 9, 9}, 0.8f, 1, 1},
                                    {{-9, 2, -1, 8}, 0.7f, 2, 2},
                                    {{2, 25, 8, 29}, 0.6f, 3, 3},
                                    {{20, 2, 30, 8}, 0.5f, 4, 4},
                                    {{3.2f, 4.0f, 3.3f, 4.2f}, 0.4f, -1, 5}};
    struct rfx_box_canvas canvas = {SIDE, SIDE, SIDE, SIDE, false};
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_box_drawing *drawing;
    unsigned char rgb[3];
    (void)state;
    assert_int_equal(rfx_box_drawing_create(mem, 6, &canvas, &drawing, NULL), RFX_OK);
    assert_true(rfx_memory_current_bytes(mem) <= rfx_box_drawing_bytes(6));
    rfx_box_drawing_begin(drawing, &(struct rfx_found){.boxes = boxes, .count = 6});
    rfx_label_colour(1, rgb);
    for (int y = 0; y < SIDE; y++) {
        float colours[3 * SIDE] = {0};
        rfx_box_drawing_row(drawing, y, colours);
        for (int x = 0; x < SIDE; x++) {
            bool first = y == 12 || y == SIDE - 1 || (y > 12 && (x == 0 || x == SIDE - 1));
            bool point = y == 4 && x == 3;
            const unsigned char none[3] = {0}, *want = first   ? rgb
                                                       : point ? rfx_no_value_colour
                                                               : none;
            for (int k = 0; k < 3; k++) assert_int_equal(colours[3 * x + k], want[k]);
        }
    }
    rfx_box_drawing_free(drawing);
    rfx_memory_free(mem);
    assert_int_equal(test_fail_each_allocation(build_drawing, &canvas), 3);
}

/* A square on its corner, an upright box, a line, and boxes that are not drawn. */
static void test_boxes_with_an_angle(void **state) {
    enum { SIDE = 20 };
    static const char *const want[SIDE] = {
        "....................", ".....##.............", "....####............",
        "...##..##...........", "..##....##..........", "..##....##..........",
        "...##..##...........", "....####............", ".....##.............",
        "....................", "...........bbbbbb...", "...........b....b...",
        "...........b....b...", "...........bbbbbb...", "....................",
        "....................", "....................", "..ccccccccc.........",
        "....................", "...................."};
    const struct rfx_oriented_box boxes[] = {{{6, 5}, {5.6f, 5.6f}, 0.785398f, 0.9f, 0, 0},
                                             {{14, 12}, {6, 4}, 0, 0.8f, 1, 1},
                                             {{6.5f, 17}, {0, 9}, 1.5707964f, 0.7f, 2, 2},
                                             {{5, 5}, {NAN, 3}, 0, 0.6f, 3, 3},
                                             {{-9, -9}, {3, 3}, 1, 0.5f, 4, 4}};
    struct rfx_box_canvas canvas = {SIDE, SIDE, SIDE, SIDE, false};
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_box_drawing *drawing;
    bool wrong = false;
    (void)state;
    assert_int_equal(rfx_box_drawing_create(mem, 5, &canvas, &drawing, NULL), RFX_OK);
    rfx_box_drawing_begin(drawing, &(struct rfx_found){.oriented = boxes, .count = 5});
    for (int y = 0; y < SIDE; y++) {
        float colours[3 * SIDE] = {0};
        char row[SIDE + 1] = {0};
        rfx_box_drawing_row(drawing, y, colours);
        for (int x = 0; x < SIDE; x++) {
            row[x] = colours[3 * x] + colours[3 * x + 1] + colours[3 * x + 2] > 0 ? '?' : '.';
            for (int label = 0; label < 5; label++) {
                unsigned char rgb[3];
                rfx_label_colour(label + 1, rgb);
                bool same = true;
                for (int k = 0; k < 3; k++) same &= colours[3 * x + k] == (float)rgb[k];
                if (same) row[x] = "#bcde"[label];
            }
        }
        if (strcmp(row, want[y]) != 0) print_error("row %2d: %s, wanted %s\n", y, row, want[y]);
        wrong |= strcmp(row, want[y]) != 0;
    }
    rfx_box_drawing_free(drawing);
    rfx_memory_free(mem);
    assert_false(wrong);
}

static enum rfx_status build_layer(struct rfx_memory *mem, void *context, struct rfx_error *err) {
    struct rfx_mark_layer *layer = NULL;
    enum rfx_status status = rfx_mark_layer_open(mem, "marks", context, &layer, err);
    rfx_mark_layer_free(layer);
    return status;
}

/* Rings that end at edges, a box whose corners go the other way round, marks over others, and marks
 * that are not drawn: not finite, outside, around the whole image. */
static void test_strange_marks(void **state) {
    enum { ROWS = 14, COLS = 24, MARKS = 9 };
    static const struct {
        double corners[8];
        int n;
        int32_t label;
    } marks[MARKS] = {{{0.2, 0.9}, 1, 0},
                      {{COLS - 0.5, 12}, 1, 70000},
                      {{-3, 7}, 1, 3},
                      {{5, 2, 5, 10, 15, 10, 15, 2}, 4, 1},
                      {{6.5, 3.5}, 1, 2},
                      {{NAN, 3}, 1, 4},
                      {{3, INFINITY}, 1, 4},
                      {{COLS + 6, 3}, 1, 4},
                      {{-1e30, -1e30, 1e30, -1e30, 1e30, 1e30, -1e30, 1e30}, 4, 4}};
    struct rfx_box_canvas canvas = {ROWS, COLS, ROWS, COLS, false};
    struct values want = {ROWS, COLS, 3, test_floats((int64_t)ROWS * COLS * 3)}, got = want;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_mark_layer *layer = NULL;
    (void)state;
    got.at = test_floats((int64_t)ROWS * COLS * 3);
    for (int i = 0; i < ROWS * COLS * 3; i++) got.at[i] = want.at[i] = 7.0F;
    assert_int_equal(rfx_mark_layer_open(mem, "marks", &canvas, &layer, NULL), RFX_OK);
    assert_true(rfx_memory_current_bytes(mem) <= rfx_mark_layer_bytes(COLS));
    for (int i = 0; i < MARKS; i++) {
        const double *c = marks[i].corners;
        unsigned char rgb[3];
        assert_int_equal(rfx_mark_layer_add(layer, c, marks[i].n, marks[i].label, NULL), RFX_OK);
        rfx_label_colour(marks[i].label < 65535 ? marks[i].label + 1 : 65535, rgb);
        if (marks[i].n == 4 && c[0] > 0)
            for (int y = 2; y < 10; y++)
                for (int x = 5; x < 15; x++)
                    if (y == 2 || y == 9 || x == 5 || x == 14) put(&want, y, x, rgb);
        if (marks[i].n == 4 || !isfinite(c[0]) || !isfinite(c[1])) continue;
        for (int dy = -4; dy <= 4; dy++)
            for (int dx = -4; dx <= 4; dx++)
                if (abs(dx) + abs(dy) == 4 || abs(dx) + abs(dy) == 5)
                    put(&want, (int64_t)floor(c[1]) + dy, (int64_t)floor(c[0]) + dx, rgb);
    }
    for (int64_t y = 0; y < ROWS; y++)
        assert_int_equal(rfx_mark_layer_row(layer, y, got.at + y * COLS * 3, NULL), RFX_OK);
    same_pictures(&got, &want, 0.0);
    rfx_mark_layer_free(layer);
    rfx_memory_free(mem);
    free(got.at);
    free(want.at);
    assert_int_equal(test_fail_each_allocation(build_layer, &canvas), 4); /* with the file's two */
}

static void test_refusals(void **state) {
    (void)state;
    make_picture("in.png", 320, 320);
    detector_maker_save("det.onnx", 320, 320, 20.0f, 7);
    (void)unlink("no.png");
    expect_says(2, "run det.onnx in.png --overlay no.png",
                "output 'boxes' of 'det.onnx' has the boxes of a detector: add --boxes");
    expect_says(2, DETECT "--overlay no.png --overlay-range 0,1", "not labels, regions or boxes");
    expect_says(2, DETECT "--overlay no.png --overlay-of 1", "is a map over the picture");
    expect_says(2,
                "run " RFX_DEFECTS
                " synthetic:64x64 --threshold 0.5 --regions r.csv --overlay "
                "no.png --overlay-range 0,1",
                "not labels, regions or boxes");
    expect_says(2, DETECT "--overlay det.json", ".png");
    expect_says(4, DETECT "--overlay no.png --max-boxes 3 --score 0", "more than 3 candidates");
    assert_int_not_equal(access("no.png", F_OK), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_boxes),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_boxes_over_a_map),
        cmocka_unit_test(test_boxes_are_the_same_for_every_plan),
        cmocka_unit_test(test_boxes_on_a_page),
        cmocka_unit_test(test_boxes_are_counted),
        cmocka_unit_test(test_budget),
        cmocka_unit_test(test_regions),
        cmocka_unit_test(test_maps_of_the_images_size),
        cmocka_unit_test(test_values_that_are_missing),
        cmocka_unit_test(test_regions_are_the_same_for_every_plan),
        cmocka_unit_test(test_points),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_points_and_text_are_the_same_for_every_plan),
        cmocka_unit_test(test_marks_are_counted),
        cmocka_unit_test(test_class_activation),
        cmocka_unit_test(test_font),
        cmocka_unit_test(test_strange_boxes),
        cmocka_unit_test(test_boxes_with_an_angle),
        cmocka_unit_test(test_strange_marks),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
