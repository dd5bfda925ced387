/* Boxes of text and boxes with an angle as files, against lines by hand: a bar in every form,
 * turned bars, what is left out, coordinates of other scales, names, memory, what is refused;
 * failing allocations. Random maps: tests/oracle/text_cases.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rfexec/answers/oriented_text.h"
#include "rfexec/answers/text_file.h"
#include "tests/support/test_folder.h"
#include "tests/support/test_util.h"

#define FOLDER "test_text_file.tmp"
#define PATH FOLDER "/out"
#define NAMES FOLDER "/names.txt"

enum { H = 48, W = 64 };

static float map[H][W];
static struct rfx_output_format usual(void) {
    return (struct rfx_output_format){
        .kind = &rfx_output_text_json,
        .answer = {.text_score = RFX_ANSWER_TEXT_SCORE, .growth = RFX_ANSWER_GROWTH}};
}

/* Writes the boxes of the map; the memory is what was said. Returns the status. */
static enum rfx_status find(const struct rfx_output_format *format, enum rfx_answer_form form,
                            int64_t *count, struct rfx_error *err) {
    const struct rfx_tensor tensor = rfx_tensor_nhwc(1, H, W);
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_text_file *file = NULL;
    enum rfx_status status = rfx_text_file_check(format, &tensor, PATH, err);
    if (status == RFX_OK) status = rfx_text_file_open(mem, PATH, format, &tensor, form, &file, err);
    for (int y = 0; y < H && status == RFX_OK; y++) status = rfx_text_file_row(file, map[y], err);
    if (status == RFX_OK) status = rfx_text_file_commit(file, err);
    if (status == RFX_OK) *count = rfx_text_file_found(file).count;
    rfx_text_file_free(file);
    assert_true(rfx_memory_high_water_bytes(mem) <= rfx_text_file_bytes(format, &tensor));
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
    return status;
}

static int64_t count_of(const struct rfx_output_format *format) {
    struct rfx_error err = {{0}};
    int64_t count = -1;
    if (find(format, RFX_ANSWER_CSV, &count, &err) != RFX_OK) fail_msg("%s", err.text);
    assert_int_equal(remove(PATH), 0);
    return count;
}

static void expect_text(const struct rfx_output_format *format, enum rfx_answer_form form,
                        const char *want) {
    struct rfx_error err = {{0}};
    int64_t count = -1;
    if (find(format, form, &count, &err) != RFX_OK) fail_msg("%s", err.text);
    assert_string_equal(test_take_text(PATH), want);
}

static void draw(int y0, int y1, int x0, int x1, float value) {
    for (int y = y0; y < y1; y++)
        for (int x = x0; x < x1; x++) map[y][x] = value;
}

/* 40 x 10 pixels, whose centres span 39 x 9: they grow by 39 * 9 * 1.5 / 96 = 5.484375. */
static void draw_bar(void) {
    memset(map, 0, sizeof map);
    draw(20, 30, 12, 52, 0.75F);
}

#define HEAD "label,name,score,x1,y1,x2,y2,x3,y3,x4,y4,centre_x,centre_y,width,height,angle\n"

static void a_bar_in_every_form(void **state) {
    struct rfx_output_format format = usual();
    (void)state;
    draw_bar();
    expect_text(&format, RFX_ANSWER_CSV,
                HEAD
                "0,,0.75,7.015625,15.015625,56.984375,15.015625,56.984375,34.984375,7.015625,"
                "34.984375,32,25,49.96875,19.96875,0\n");
    expect_text(&format, RFX_ANSWER_JSON,
                "{\"head\":\"DB text map\",\"boxes\":[\n"
                "{\"corners\":[[7.015625,15.015625],[56.984375,15.015625],[56.984375,34.984375],"
                "[7.015625,34.984375]],\"centre\":[32,25],\"size\":[49.96875,19.96875],\"angle\":0,"
                "\"score\":0.75,\"label\":0,\"index\":0}\n]}\n");
    expect_text(&format, RFX_ANSWER_GEOJSON,
                "{\"type\":\"FeatureCollection\",\"features\":[\n"
                "{\"type\":\"Feature\",\"geometry\":{\"type\":\"Polygon\",\"coordinates\":[["
                "[7.015625,15.015625],[56.984375,15.015625],[56.984375,34.984375],"
                "[7.015625,34.984375],[7.015625,15.015625]]]},\"properties\":{"
                "\"objectType\":\"detection\",\"label\":0,\"score\":0.75,"
                "\"size\":[49.96875,19.96875],\"angle\":0}}\n]}\n");
    memset(map, 0, sizeof map);
    expect_text(&format, RFX_ANSWER_JSON, "{\"head\":\"DB text map\",\"boxes\":[\n]}\n");
    expect_text(&format, RFX_ANSWER_CSV, HEAD);
}

/* Pixels of 4 x 4 and, with y upward, a quarter turn of the sheet: x is 100 + 4 row, y is 4 column.
 */
static void coordinates_of_other_scales(void **state) {
    struct rfx_output_format format = usual();
    (void)state;
    draw_bar();
    test_bytes_store(NAMES, "a \"line\"\n", strlen("a \"line\"\n"));
    format.answer.names = NAMES;
    format.place = (struct rfx_answer_place){
        .known = true, .cell = {.x = {4.0, 0.0, 100.0}, .y = {0.0, 4.0, 0.0}}};
    expect_text(&format, RFX_ANSWER_CSV,
                HEAD
                "0,\"a \"\"line\"\"\",0.75,128.0625,60.0625,327.9375,60.0625,327.9375,"
                "139.9375,128.0625,139.9375,228,100,199.875,79.875,0\n");
    format.place.cell =
        (struct rfx_geo_affine){.x = {0.0, 4.0, 100.0}, .y = {4.0, 0.0, 0.0}}; /* mirrored */
    expect_text(&format, RFX_ANSWER_GEOJSON,
                "{\"type\":\"FeatureCollection\",\"features\":[\n"
                "{\"type\":\"Feature\",\"geometry\":{\"type\":\"Polygon\",\"coordinates\":[["
                "[160.0625,28.0625],[239.9375,28.0625],[239.9375,227.9375],[160.0625,227.9375],"
                "[160.0625,28.0625]]]},\"properties\":{\"objectType\":\"detection\",\"label\":0,"
                "\"classification\":{\"name\":\"a \\\"line\\\"\"},\"score\":0.75,"
                "\"size\":[199.875,79.875],\"angle\":1.5707963267948966}}\n]}\n");
    assert_int_equal(remove(NAMES), 0);
}

/* The upper left corner, and that the box lies where the pixels are. */
static void turned_bars(void **state) {
    const struct rfx_output_format format = usual();
    static const double angles[] = {-1.4, -0.8, -0.3, 0.0, 0.5, 0.75, 1.2, 1.5};
    (void)state;
    for (size_t i = 0; i < sizeof angles / sizeof *angles; i++) {
        double cosine = cos(angles[i]), sine = sin(angles[i]), box[5], corner[8], score;
        for (int k = 0; k < H * W; k++) {
            double x = k % W - 31.5, y = k / W - 23.5;
            bool inside = fabs(x * cosine + y * sine) < 20 && fabs(y * cosine - x * sine) < 4;
            map[k / W][k % W] = inside ? 0.875F : 0.25F;
        }
        struct rfx_error err;
        int64_t count = 0;
        assert_int_equal(find(&format, RFX_ANSWER_CSV, &count, &err), RFX_OK);
        assert_int_equal(count, 1);
        const char *line = strchr(test_take_text(PATH), '\n') + 1;
        int n = sscanf(line, "0,,%lf,%lf,%lf,%lf,%lf,%lf,%lf,%lf,%lf,%lf,%lf,%lf,%lf,%lf", &score,
                       &corner[0], &corner[1], &corner[2], &corner[3], &corner[4], &corner[5],
                       &corner[6], &corner[7], &box[0], &box[1], &box[2], &box[3], &box[4]);
        assert_int_equal(n, 14);
        assert_true(score == 0.875);
        bool upright = box[3] > box[2]; /* the short side reaches farther along x */
        double angle = upright ? box[4] + (box[4] < 0 ? 1 : -1) * 1.5707963 : box[4];
        assert_int_equal(upright, fabs(angles[i]) > 1.3);
        assert_true(fabs(box[0] - 32) < 1 && fabs(box[1] - 24) < 1 &&
                    fabs(angle - angles[i]) < 0.1);
        assert_true(box[upright ? 3 : 2] > 42 && box[upright ? 3 : 2] < 54);
        assert_true(box[upright ? 2 : 3] > 12 && box[upright ? 2 : 3] < 20);
        for (int k = 2; k < 8; k += 2)
            if (k != 6) assert_true(corner[0] <= corner[k]);
        assert_true(corner[1] <= corner[7]);
    }
}

static void what_is_left_out(void **state) {
    struct rfx_output_format format = usual();
    (void)state;
    draw_bar();
    draw(20, 30, 12, 52, 0.6F); /* as large as the least score */
    assert_int_equal(count_of(&format), 1);
    map[25][30] = 0.55F; /* the mean is lower now */
    assert_int_equal(count_of(&format), 0);
    draw(20, 30, 12, 52, 0.3F); /* not above the threshold */
    assert_int_equal(count_of(&format), 0);
    format.answer.text_score = 0.25F;
    draw(20, 30, 12, 52, 0x1.333336p-2F);
    assert_int_equal(count_of(&format), 1);
    const float threshold = 0.5F;
    format.answer.thresholds = &threshold;
    format.answer.n_thresholds = 1;
    assert_int_equal(count_of(&format), 0);
    format = usual();
    memset(map, 0, sizeof map);
    draw(5, 8, 5, 60, 1); /* three rows: centres 2 apart */
    draw(20, 24, 5, 60, 1);
    draw(40, 44, 30, 32, 1); /* two columns */
    draw(40, 41, 5, 25, 1);  /* a line */
    map[46][3] = 1;
    assert_int_equal(count_of(&format), 1);
    format.answer.growth = 0.5; /* 3 + 2 * 54 * 3 * 0.5 / 114 = 4.42 */
    assert_int_equal(count_of(&format), 0);
    format.answer.growth = 3; /* does not make up for short sides before */
    assert_int_equal(count_of(&format), 1);
    /* NaN is not above the threshold; corners connect. */
    format = usual();
    memset(map, 0, sizeof map);
    draw(10, 20, 10, 20, 1);
    draw(20, 30, 20, 30, 1);
    assert_int_equal(count_of(&format), 1);
    map[20][20] = NAN;
    assert_int_equal(count_of(&format), 2);
}

static void what_cannot_be_is_refused(void **state) {
    struct rfx_output_format format = usual();
    struct rfx_tensor tensor = rfx_tensor_nhwc(3, H, W);
    static const float thresholds[2] = {0, 1};
    struct rfx_error err;
    int64_t count;
    (void)state;
    assert_int_equal(rfx_text_file_check(&format, &tensor, PATH, &err),
                     RFX_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "this one has 3 channels of floats"));
    tensor = rfx_tensor_nhwc(1, H, W);
    format.stored = (struct rfx_stored){.type = RFX_TYPE_UINT8};
    assert_int_equal(rfx_text_file_check(&format, &tensor, PATH, &err),
                     RFX_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "1 channel of integers"));
    format = usual();
    format.answer.growth = -1;
    assert_int_equal(find(&format, RFX_ANSWER_CSV, &count, &err), RFX_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "--unclip), not -1"));
    format.answer.growth = 1;
    format.answer.thresholds = thresholds;
    format.answer.n_thresholds = 2;
    assert_int_equal(find(&format, RFX_ANSWER_CSV, &count, &err), RFX_STATUS_INVALID_ARGUMENT);
    format = usual();
    format.answer.most_bytes = 5000;
    for (int i = 0; i < H * W; i++) map[i / W][i % W] = (float)(i % 2);
    assert_int_equal(find(&format, RFX_ANSWER_CSV, &count, &err), RFX_STATUS_BUDGET_IMPOSSIBLE);
    assert_non_null(strstr(err.text, "--answer-memory 5000: regions: "));
}

/* Numbers of a box as they are, COCO's rectangle around it, and values that are not finite. */
static void boxes_with_an_angle(void **state) {
    const struct rfx_answer_options options = {.names = NULL};
    const struct rfx_answer_place place = {.known = false};
    const struct rfx_oriented_box boxes[] = {{{10, 20}, {6, 4}, 1.57079637F, 0.5F, 3, 7},
                                             {{NAN, 20}, {INFINITY, 4}, 0, 0.25F, 1, 8}};
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_answer_text out;
    (void)state;
    assert_int_equal(rfx_answer_text_open(&out, mem, PATH, &options, &place, NULL, NULL), RFX_OK);
    rfx_oriented_begin(&out, RFX_ANSWER_COCO, "head");
    for (int i = 0; i < 2; i++) rfx_oriented_put(&out, RFX_ANSWER_COCO, &boxes[i], i);
    rfx_answer_boxes_end(&out, RFX_ANSWER_COCO);
    rfx_oriented_begin(&out, RFX_ANSWER_JSON, "head a\"b\\c.json");
    for (int i = 0; i < 2; i++) rfx_oriented_put(&out, RFX_ANSWER_JSON, &boxes[i], i);
    rfx_answer_boxes_end(&out, RFX_ANSWER_JSON);
    assert_int_equal(rfx_output_file_commit(out.file, NULL), RFX_OK);
    rfx_answer_text_close(&out);
    rfx_memory_free(mem);
    assert_string_equal(
        test_take_text(PATH),
        "[\n{\"image_id\":0,\"category_id\":3,\"bbox\":[8,17,4,6],\"segmentation\":"
        "[[12,17,12,23,8,23,8,17]],\"score\":0.5},\n"
        "{\"image_id\":0,\"category_id\":1,\"bbox\":[null,null,null,null],\"segmentation\":"
        "[[null,null,null,null,null,null,null,null]],\"score\":0.25}\n]\n"
        "{\"head\":\"head a\\\"b\\\\c.json\",\"boxes\":[\n"
        "{\"corners\":[[12,17],[12,23],[8,23],[8,17]],\"centre\":[10,20],\"size\":[6,4],"
        "\"angle\":1.5707964,\"score\":0.5,\"label\":3,\"index\":7},\n"
        "{\"corners\":[[null,null],[null,null],[null,null],[null,null]],\"centre\":[null,20],"
        "\"size\":[null,4],\"angle\":0,\"score\":0.25,\"label\":1,\"index\":8}\n]}\n");
}

static enum rfx_status build(struct rfx_memory *mem, void *context, struct rfx_error *err) {
    const struct rfx_tensor tensor = rfx_tensor_nhwc(1, H, W);
    struct rfx_text_file *file = NULL;
    enum rfx_status status =
        rfx_text_file_open(mem, PATH, context, &tensor, RFX_ANSWER_CSV, &file, err);
    for (int y = 0; y < H && status == RFX_OK; y++) status = rfx_text_file_row(file, map[y], err);
    if (status == RFX_OK) status = rfx_text_file_commit(file, err);
    rfx_text_file_free(file);
    return status;
}

static void every_failing_allocation_is_reported(void **state) {
    struct rfx_output_format format = usual();
    (void)state;
    draw_bar();
    assert_true(test_fail_each_allocation(build, &format) >= 14);
    assert_int_equal(remove(PATH), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        test_in_folder(a_bar_in_every_form, FOLDER),
        test_in_folder(coordinates_of_other_scales, FOLDER),
        test_in_folder(turned_bars, FOLDER),
        test_in_folder(what_is_left_out, FOLDER),
        test_in_folder(what_cannot_be_is_refused, FOLDER),
        test_in_folder(boxes_with_an_angle, FOLDER),
        test_in_folder(every_failing_allocation_is_reported, FOLDER),
    };
    return cmocka_run_group_tests_name("text file", tests, NULL, NULL);
}
