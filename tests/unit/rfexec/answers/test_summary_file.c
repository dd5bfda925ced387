/* Summaries and points as text, against lines by hand: classes of labels, channels and thresholds,
 * NaN and infinities, names, areas, memory; failing allocations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "rfexec/answers/points_file.h"
#include "rfexec/answers/summary_file.h"
#include "tests/support/test_folder.h"
#include "tests/support/test_util.h"

#define FOLDER "test_summary_file.tmp"
#define PATH FOLDER "/out"
#define NAMES FOLDER "/names.txt"
#define AREAS FOLDER "/areas.geojson"

/* Writes a summary of the map's rows; the memory is what was said. */
static enum rfx_status summarise(const struct rfx_output_format *format,
                                 const struct rfx_tensor *map, enum rfx_answer_form form,
                                 const void *samples, struct rfx_error *err) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_summary_file *file = NULL;
    size_t row = (size_t)(map->w * map->c) * rfx_type_bytes(rfx_output_sample(format));
    enum rfx_status status = rfx_summary_file_check(format, map, PATH, err);
    if (status == RFX_OK) status = rfx_summary_file_open(mem, PATH, format, map, form, &file, err);
    for (int64_t y = 0; y < map->h && status == RFX_OK; y++)
        status = rfx_summary_file_row(file, (const char *)samples + (size_t)y * row, err);
    if (status == RFX_OK) status = rfx_summary_file_commit(file, err);
    if (status == RFX_OK) assert_string_equal(rfx_summary_file_found(file).what, "summary");
    rfx_summary_file_free(file);
    assert_true(rfx_memory_high_water_bytes(mem) <= rfx_summary_file_bytes(format, map));
    rfx_memory_free(mem);
    return status;
}

static void expect_summary(const struct rfx_output_format *format, const struct rfx_tensor *map,
                           enum rfx_answer_form form, const void *samples, const char *want) {
    struct rfx_error err = {{0}};
    if (summarise(format, map, form, samples, &err) != RFX_OK) fail_msg("%s", err.text);
    assert_string_equal(test_take_text(PATH), want);
}

#define HEAD "label,name,pixels,area,share,smallest,largest,mean,nan\n"

static void labels_are_counted(void **state) {
    (void)state;
    static const int32_t labels[2][4] = {{7, 0, 0, -3}, {2147483647, 7, 7, 0}};
    struct rfx_output_format format = {.kind = &rfx_output_csv};
    const struct rfx_tensor map = rfx_tensor_nhwc(1, 2, 4);
    format.stored = (struct rfx_stored){.type = RFX_TYPE_INT64};
    expect_summary(&format, &map, RFX_ANSWER_CSV, labels,
                   HEAD
                   "-3,,1,1,0.125,,,,\n"
                   "0,,3,3,0.375,,,,\n"
                   "7,,3,3,0.375,,,,\n"
                   "2147483647,,1,1,0.125,,,,\n");
    static const uint8_t bytes[8] = {1, 1, 0, 0, 2, 2, 2, 2};
    format.stored = (struct rfx_stored){.type = RFX_TYPE_UINT8};
    format.answer.names = NAMES;
    format.place = (struct rfx_answer_place){.known = true,
                                             .cell = {.x = {4.0, 0.0, 0.0}, .y = {0.0, 2.0, 0.0}}};
    test_bytes_store(NAMES, "sky\na \"b\"\n", strlen("sky\na \"b\"\n"));
    expect_summary(&format, &map, RFX_ANSWER_JSON, bytes,
                   "{\"pixels\":8,\"area\":64,\"classes\":[\n"
                   "{\"label\":0,\"name\":\"sky\",\"pixels\":2,\"area\":16,\"share\":0.25},\n"
                   "{\"label\":1,\"name\":\"a \\\"b\\\"\",\"pixels\":2,\"area\":16,\"share\":0.25},"
                   "\n{\"label\":2,\"pixels\":4,\"area\":32,\"share\":0.5}\n]}\n");
    assert_int_equal(remove(NAMES), 0);
}

/* 2^24 + 1 - 2^24 is 1 if sums are exact, and 0 if they are rounded to float in any order. */
static const float three[4][3] = {
    {16777216.0F, 5, NAN}, {0.5F, 5, 2}, {1, NAN, NAN}, {-16777216.0F, 5, INFINITY}};

static void channels_have_classes_and_values(void **state) {
    (void)state;
    const struct rfx_tensor map = rfx_tensor_nhwc(3, 2, 2);
    struct rfx_output_format format = {.kind = &rfx_output_csv};
    /* Pixels 0 and 2 have NaN; 5 is the largest of pixel 1; infinity of pixel 3. */
    expect_summary(&format, &map, RFX_ANSWER_CSV, three,
                   HEAD
                   "0,,0,0,0,-16777216,16777216,0.375,0\n"
                   "1,,1,1,0.25,5,5,5,1\n"
                   "2,,1,1,0.25,2,null,null,2\n");
    static const float thresholds[3] = {0.5F, 4, 2};
    format.answer.thresholds = thresholds;
    format.answer.n_thresholds = 3;
    expect_summary(&format, &map, RFX_ANSWER_CSV, three,
                   HEAD
                   "0,,2,2,0.5,-16777216,16777216,0.375,0\n"
                   "1,,3,3,0.75,5,5,5,1\n"
                   "2,,1,1,0.25,2,null,null,2\n");
    struct rfx_error err = {{0}};
    format.answer.n_thresholds = 2;
    assert_int_equal(summarise(&format, &map, RFX_ANSWER_CSV, three, &err),
                     RFX_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "2 thresholds for a map of 3 channels"));
}

static void one_channel_of_floats_has_values_only(void **state) {
    (void)state;
    static const float values[4] = {NAN, -0.25F, 1.5F, NAN}, nan[2] = {NAN, NAN};
    const struct rfx_tensor map = rfx_tensor_nhwc(1, 1, 4), small = rfx_tensor_nhwc(1, 2, 1);
    struct rfx_output_format format = {.kind = &rfx_output_csv};
    expect_summary(&format, &map, RFX_ANSWER_CSV, values, HEAD "0,,,,,-0.25,1.5,0.625,2\n");
    expect_summary(&format, &map, RFX_ANSWER_JSON, values,
                   "{\"pixels\":4,\"area\":4,\"classes\":[\n{\"label\":0,\"smallest\":-0.25,"
                   "\"largest\":1.5,\"mean\":0.625,\"nan\":2}\n]}\n");
    expect_summary(&format, &small, RFX_ANSWER_CSV, nan, HEAD "0,,,,,null,null,null,2\n");
    static const float zero = 0;
    format.answer.thresholds = &zero;
    format.answer.n_thresholds = 1;
    expect_summary(&format, &map, RFX_ANSWER_CSV, values, HEAD "0,,1,1,0.25,-0.25,1.5,0.625,2\n");
}

#define RECTANGLE(x0, y0, x1, y1)                                                               \
    "{\"type\":\"Polygon\",\"coordinates\":[[[" #x0 "," #y0 "],[" #x1 "," #y0 "],[" #x1 "," #y1 \
    "],[" #x0 "," #y1 "],[" #x0 "," #y0 "]]]}"
#define AREA(members, x0, y0, x1, y1) \
    "{\"type\":\"Feature\"," members "\"geometry\":" RECTANGLE(x0, y0, x1, y1) "}"

static void store_areas(const char *features) {
    char all[2048];
    (void)snprintf(all, sizeof all, "{\"type\":\"FeatureCollection\",\"features\":[%s]}", features);
    test_bytes_store(AREAS, all, strlen(all));
}

/* The second area overlaps the first, the third lies outside, the fourth has no name. */
static void labels_are_counted_in_areas(void **state) {
    (void)state;
    static const int32_t labels[2][4] = {{7, 0, 0, -3}, {2147483647, 7, 7, -2147483647 - 1}};
    struct rfx_output_format format = {.kind = &rfx_output_csv};
    const struct rfx_tensor map = rfx_tensor_nhwc(1, 2, 4);
    format.stored = (struct rfx_stored){.type = RFX_TYPE_INT64};
    format.answer.within = AREAS;
    store_areas(AREA("\"id\":\"a\\\"\\u202e\",", 0, 0, 3, 2) "," AREA(
        "\"id\":5,", 1, 1, 9, 9) "," AREA("\"id\":\"out\",", 4, 0, 5, 2) "," AREA("", 0, 0, 4, 1));
    expect_summary(&format, &map, RFX_ANSWER_CSV, labels,
                   "within,within_name," HEAD
                   "0,,-2147483648,,1,1,0.125,,,,\n"
                   "0,,-3,,1,1,0.125,,,,\n"
                   "0,,0,,2,2,0.25,,,,\n"
                   "0,,7,,3,3,0.375,,,,\n"
                   "0,,2147483647,,1,1,0.125,,,,\n"
                   "1,\"a\"\"\\xe2\\x80\\xae\",0,,2,2,0.3333333333333333,,,,\n"
                   "1,\"a\"\"\\xe2\\x80\\xae\",7,,3,3,0.5,,,,\n"
                   "1,\"a\"\"\\xe2\\x80\\xae\",2147483647,,1,1,0.16666666666666666,,,,\n"
                   "2,\"5\",-2147483648,,1,1,0.3333333333333333,,,,\n"
                   "2,\"5\",7,,2,2,0.6666666666666666,,,,\n"
                   "4,\"4\",-3,,1,1,0.25,,,,\n"
                   "4,\"4\",0,,2,2,0.5,,,,\n"
                   "4,\"4\",7,,1,1,0.25,,,,\n");
    store_areas(AREA("\"id\":\"out\",", 4, 0, 5, 2) "," AREA("", 3, 0, 4, 1));
    format.answer.most_bytes = 100000;
    expect_summary(
        &format, &map, RFX_ANSWER_JSON, labels,
        "{\"pixels\":8,\"area\":8,\"classes\":[\n"
        "{\"label\":-2147483648,\"pixels\":1,\"area\":1,\"share\":0.125},\n"
        "{\"label\":-3,\"pixels\":1,\"area\":1,\"share\":0.125},\n"
        "{\"label\":0,\"pixels\":2,\"area\":2,\"share\":0.25},\n"
        "{\"label\":7,\"pixels\":3,\"area\":3,\"share\":0.375},\n"
        "{\"label\":2147483647,\"pixels\":1,\"area\":1,\"share\":0.125}\n],\"within\":[\n"
        "{\"number\":1,\"name\":\"out\",\"pixels\":0,\"area\":0,\"classes\":[]},\n"
        "{\"number\":2,\"name\":\"2\",\"pixels\":1,\"area\":1,\"classes\":[\n"
        "{\"label\":-3,\"pixels\":1,\"area\":1,\"share\":1}]}\n]}\n");
    assert_int_equal(remove(AREAS), 0);
}

static void channels_are_counted_in_areas(void **state) {
    (void)state;
    const struct rfx_tensor map = rfx_tensor_nhwc(3, 2, 2);
    struct rfx_output_format format = {.kind = &rfx_output_csv};
    format.answer.within = AREAS;
    /* The left column in pixels of 4 x 2, then pixel 3, then nothing. */
    format.place = (struct rfx_answer_place){
        .known = true, .cell = {.x = {4.0, 0.0, 100.0}, .y = {0.0, 2.0, 0.0}}};
    store_areas(AREA("", 100, 0, 104, 4) "," AREA("", 105, 2.5, 107, 4) "," AREA("", 0, 0, 100, 4));
    expect_summary(&format, &map, RFX_ANSWER_CSV, three,
                   "within,within_name," HEAD
                   "0,,0,,0,0,0,-16777216,16777216,0.375,0\n"
                   "0,,1,,1,8,0.25,5,5,5,1\n"
                   "0,,2,,1,8,0.25,2,null,null,2\n"
                   "1,\"1\",0,,0,0,0,1,16777216,8388608.5,0\n"
                   "1,\"1\",1,,0,0,0,5,5,5,1\n"
                   "1,\"1\",2,,0,0,0,null,null,null,2\n"
                   "2,\"2\",0,,0,0,0,-16777216,-16777216,-16777216,0\n"
                   "2,\"2\",1,,0,0,0,5,5,5,0\n"
                   "2,\"2\",2,,1,8,1,null,null,null,0\n"
                   "3,\"3\",0,,0,0,null,null,null,null,0\n"
                   "3,\"3\",1,,0,0,null,null,null,null,0\n"
                   "3,\"3\",2,,0,0,null,null,null,null,0\n");
    static const float thresholds[3] = {0.5F, 4, 2};
    format.answer.thresholds = thresholds;
    format.answer.n_thresholds = 3;
    store_areas(AREA("", 100, 0, 104, 4));
    expect_summary(&format, &map, RFX_ANSWER_CSV, three,
                   "within,within_name," HEAD
                   "0,,0,,2,16,0.5,-16777216,16777216,0.375,0\n"
                   "0,,1,,3,24,0.75,5,5,5,1\n"
                   "0,,2,,1,8,0.25,2,null,null,2\n"
                   "1,\"1\",0,,2,16,1,1,16777216,8388608.5,0\n"
                   "1,\"1\",1,,1,8,0.5,5,5,5,1\n"
                   "1,\"1\",2,,0,0,0,null,null,null,2\n");
    static const float values[4] = {NAN, -0.25F, 1.5F, NAN};
    const struct rfx_tensor flat = rfx_tensor_nhwc(1, 1, 4);
    format.answer.n_thresholds = 0;
    format.place.known = false;
    store_areas(AREA("", 0, 0, 3, 1));
    expect_summary(&format, &flat, RFX_ANSWER_CSV, values,
                   "within,within_name," HEAD
                   "0,,0,,,,,-0.25,1.5,0.625,2\n"
                   "1,\"1\",0,,,,,-0.25,1.5,0.625,1\n");
    /* Areas that are over before others begin. */
    static const float column[5] = {1, 2, 3, 4, 5};
    const struct rfx_tensor narrow = rfx_tensor_nhwc(1, 5, 1);
    store_areas(AREA("", 0, 4, 1, 5) "," AREA("", 0, 0, 1, 1) "," AREA("", 0, 3, 1, 5));
    expect_summary(&format, &narrow, RFX_ANSWER_CSV, column,
                   "within,within_name," HEAD
                   "0,,0,,,,,1,5,3,0\n"
                   "1,\"1\",0,,,,,5,5,5,0\n"
                   "2,\"2\",0,,,,,1,1,1,0\n"
                   "3,\"3\",0,,,,,4,5,4.5,0\n");
    assert_int_equal(remove(AREAS), 0);
}

static void values_are_counted_in_bins(void **state) {
    (void)state;
    static const float values[2][4] = {{NAN, -0.25F, 1.5F, 2}, {0, 1, 0.5F, INFINITY}};
    const struct rfx_tensor map = rfx_tensor_nhwc(1, 2, 4), two = rfx_tensor_nhwc(2, 2, 2);
    struct rfx_output_format format = {.kind = &rfx_output_csv};
    format.answer.bins = (struct rfx_answer_bins){2, 0, 1};
    expect_summary(&format, &two, RFX_ANSWER_CSV, values,
                   "label,name,pixels,area,share,smallest,largest,mean,nan,below_0,from_0,from_0.5,"
                   "above_1\n"
                   "0,,0,0,0,0,1.5,0.6666666666666666,1,0,1,1,1\n"
                   "1,,3,3,0.75,-0.25,null,null,0,1,0,1,2\n");
    format.answer.within = AREAS;
    store_areas(AREA("", 0, 1, 2, 2));
    expect_summary(&format, &two, RFX_ANSWER_CSV, values,
                   "within,within_name,label,name,pixels,area,share,smallest,largest,mean,nan,"
                   "below_0,from_0,from_0.5,above_1\n"
                   "0,,0,,0,0,0,0,1.5,0.6666666666666666,1,0,1,1,1\n"
                   "0,,1,,3,3,0.75,-0.25,null,null,0,1,0,1,2\n"
                   "1,\"1\",0,,0,0,0,0,0.5,0.25,0,0,1,1,0\n"
                   "1,\"1\",1,,2,2,1,1,null,null,0,0,0,1,1\n");
    store_areas(AREA("", 1, 0, 3, 2));
    expect_summary(&format, &map, RFX_ANSWER_JSON, values,
                   "{\"pixels\":8,\"area\":8,\"bins\":[0,0.5,1],\"classes\":[\n"
                   "{\"label\":0,\"smallest\":-0.25,\"largest\":null,\"mean\":null,\"nan\":1,"
                   "\"below\":1,\"bins\":[1,2],\"above\":3}\n],\"within\":[\n"
                   "{\"number\":1,\"name\":\"1\",\"pixels\":4,\"area\":4,\"classes\":[\n"
                   "{\"label\":0,\"smallest\":-0.25,\"largest\":1.5,\"mean\":0.6875,\"nan\":0,"
                   "\"below\":1,\"bins\":[0,2],\"above\":1}]}\n]}\n");
    /* 400,000 bytes for the map, and as many for the area. */
    struct rfx_error err = {{0}};
    format.answer.bins.n = 50000;
    format.answer.most_bytes = 402000;
    assert_int_equal(summarise(&format, &map, RFX_ANSWER_JSON, values, &err), RFX_OK);
    assert_int_equal(remove(PATH), 0);
    format.answer.most_bytes = 399000;
    assert_int_equal(summarise(&format, &map, RFX_ANSWER_JSON, values, &err),
                     RFX_STATUS_BUDGET_IMPOSSIBLE);
    assert_int_equal(remove(AREAS), 0);
    format.stored = (struct rfx_stored){.type = RFX_TYPE_INT64};
    assert_int_equal(rfx_summary_file_check(&format, &map, PATH, &err),
                     RFX_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "--bins"));
}

/* Area 2 has a value that is NaN beside two others, area 3 only NaN, area 4 no pixel. */
static void areas_have_quantiles(void **state) {
    (void)state;
    static const float values[2][4] = {{NAN, 1, 2, 4}, {-0.0F, 8, NAN, -INFINITY}};
    const struct rfx_tensor map = rfx_tensor_nhwc(1, 2, 4);
    struct rfx_output_format format = {.kind = &rfx_output_csv};
    format.answer.quantiles = (struct rfx_answer_quantiles){2, {0.25, 1}};
    format.answer.within = AREAS;
    store_areas(AREA("", 1, 0, 4, 1) "," AREA("", 0, 1, 3, 2) "," AREA("", 0, 0, 1, 1) "," AREA(
        "", 4, 0, 5, 2));
    expect_summary(&format, &map, RFX_ANSWER_CSV, values,
                   "within,within_name,label,name,pixels,area,share,smallest,largest,mean,nan,"
                   "quantile_0.25,quantile_1\n"
                   "0,,0,,,,,null,8,null,2,0.25,8\n"
                   "1,\"1\",0,,,,,1,4,2.3333333333333335,0,1.5,4\n"
                   "2,\"2\",0,,,,,0,8,4,1,2,8\n"
                   "3,\"3\",0,,,,,null,null,null,1,null,null\n"
                   "4,\"4\",0,,,,,null,null,null,0,null,null\n");
    store_areas(AREA("", 3, 0, 4, 2));
    expect_summary(&format, &map, RFX_ANSWER_JSON, values,
                   "{\"pixels\":8,\"area\":8,\"quantiles\":[0.25,1],\"classes\":[\n"
                   "{\"label\":0,\"smallest\":null,\"largest\":8,\"mean\":null,\"nan\":2,"
                   "\"quantiles\":[0.25,8]}\n],\"within\":[\n"
                   "{\"number\":1,\"name\":\"1\",\"pixels\":2,\"area\":2,\"classes\":[\n"
                   "{\"label\":0,\"smallest\":null,\"largest\":4,\"mean\":null,\"nan\":0,"
                   "\"quantiles\":[null,4]}]}\n]}\n");
    /* Two tables of 4 KiB for each area that is open at a row. */
    struct rfx_error err = {{0}};
    format.answer.most_bytes = 12000;
    assert_int_equal(summarise(&format, &map, RFX_ANSWER_JSON, values, &err), RFX_OK);
    store_areas(AREA("", 3, 0, 4, 1) "," AREA("", 3, 1, 4, 2));
    assert_int_equal(summarise(&format, &map, RFX_ANSWER_JSON, values, &err), RFX_OK);
    assert_int_equal(remove(PATH), 0);
    store_areas(AREA("", 3, 0, 4, 2) "," AREA("", 3, 1, 4, 2));
    assert_int_equal(summarise(&format, &map, RFX_ANSWER_JSON, values, &err),
                     RFX_STATUS_BUDGET_IMPOSSIBLE);
    assert_non_null(strstr(err.text,
                           "2 quantiles of 1 channels in 2 areas, up to 2 of them on a "
                           "row, take "));
    assert_non_null(strstr(err.text, "--answer-memory is 12000"));
    assert_int_equal(access(PATH, F_OK), -1);
    assert_int_equal(remove(AREAS), 0);
}

static void memory_of_areas_is_limited(void **state) {
    (void)state;
    const struct rfx_tensor wide = rfx_tensor_nhwc(1, 1, 5000), deep = rfx_tensor_nhwc(9, 1, 1);
    struct rfx_output_format format = {.kind = &rfx_output_csv};
    struct rfx_error err = {{0}};
    static int32_t labels[5000];
    static const float values[9];
    for (int i = 0; i < 5000; i++) labels[i] = i;
    format.answer.within = AREAS;
    format.answer.most_bytes = 100000;
    store_areas(AREA("", 0, 0, 2040, 1));
    format.stored = (struct rfx_stored){.type = RFX_TYPE_INT64};
    assert_int_equal(summarise(&format, &wide, RFX_ANSWER_CSV, labels, &err), RFX_OK);
    store_areas(AREA("", 0, 0, 1040, 1) "," AREA("", 0, 0, 1040, 1));
    assert_int_equal(summarise(&format, &wide, RFX_ANSWER_CSV, labels, &err),
                     RFX_STATUS_BUDGET_IMPOSSIBLE);
    assert_non_null(strstr(err.text, "more than 2048 different labels"));
    format.answer.most_bytes = 20000;
    assert_int_equal(summarise(&format, &wide, RFX_ANSWER_CSV, labels, &err),
                     RFX_STATUS_BUDGET_IMPOSSIBLE);
    assert_non_null(strstr(err.text, "--answer-memory is 20000"));
    format.stored = (struct rfx_stored){0};
    format.answer.most_bytes = 4000;
    assert_int_equal(summarise(&format, &deep, RFX_ANSWER_CSV, values, &err),
                     RFX_STATUS_BUDGET_IMPOSSIBLE);
    assert_non_null(strstr(err.text, "counts of areas"));
    assert_int_equal(remove(AREAS), 0);
    assert_int_equal(remove(PATH), 0);
}

static void what_cannot_be_counted_is_refused(void **state) {
    (void)state;
    const struct rfx_tensor map = rfx_tensor_nhwc(1, 1 << 20, (1 << 20) + 1);
    const struct rfx_tensor wide = rfx_tensor_nhwc(1, 1, 70000);
    struct rfx_output_format format = {.kind = &rfx_output_csv};
    struct rfx_error err = {{0}};
    assert_int_equal(rfx_summary_file_check(&format, &map, PATH, &err), RFX_STATUS_UNSUPPORTED);
    assert_non_null(strstr(err.text, "2^40"));
    int32_t *labels = calloc(70000, sizeof *labels);
    assert_non_null(labels);
    for (int i = 0; i < 70000; i++) labels[i] = i;
    format.stored = (struct rfx_stored){.type = RFX_TYPE_INT64};
    assert_int_equal(summarise(&format, &wide, RFX_ANSWER_CSV, labels, &err),
                     RFX_STATUS_UNSUPPORTED);
    assert_non_null(strstr(err.text, "65536 different labels"));
    free(labels);
}

static enum rfx_status write_points(struct rfx_memory *mem, const struct rfx_output_format *format,
                                    enum rfx_answer_form form, struct rfx_error *err) {
    const struct rfx_tensor map = rfx_tensor_nhwc(3, 2, 2);
    struct rfx_points_file *file = NULL;
    enum rfx_status status = rfx_points_file_check(format, &map, PATH, err);
    if (status == RFX_OK) status = rfx_points_file_open(mem, PATH, format, &map, form, &file, err);
    for (int y = 0; y < 2 && status == RFX_OK; y++)
        status = rfx_points_file_row(file, three[2 * y], err);
    if (status == RFX_OK) status = rfx_points_file_commit(file, err);
    rfx_points_file_free(file);
    assert_true(rfx_memory_high_water_bytes(mem) <= rfx_points_file_bytes(format, &map));
    return status;
}

static void points_are_middles_of_pixels(void **state) {
    (void)state;
    static const float thresholds[3] = {0, 0, 1e30F};
    struct rfx_output_format format = {.kind = &rfx_output_csv};
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_error err = {{0}};
    format.answer.thresholds = thresholds;
    assert_int_equal(write_points(mem, &format, RFX_ANSWER_CSV, &err), RFX_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "--threshold"));
    format.answer.n_thresholds = 3;
    format.place = (struct rfx_answer_place){
        .known = true, .cell = {.x = {4.0, 0.0, 100.0}, .y = {0.0, 2.0, 200.0}}};
    assert_int_equal(write_points(mem, &format, RFX_ANSWER_CSV, &err), RFX_OK);
    assert_string_equal(test_take_text(PATH),
                        "label,name,score,x,y\n"
                        "0,,16777216,102,201\n"
                        "1,,5,102,201\n"
                        "2,,null,106,203\n");
    test_bytes_store(NAMES, "a\nb\n", strlen("a\nb\n"));
    format.answer.names = NAMES;
    format.place.known = false;
    assert_int_equal(write_points(mem, &format, RFX_ANSWER_GEOJSON, &err), RFX_OK);
    assert_non_null(strstr(test_take_text(PATH),
                           "{\"type\":\"FeatureCollection\",\"features\":[\n"
                           "{\"type\":\"Feature\",\"geometry\":{\"type\":\"Point\",\"coordinates\":"
                           "[0.5,0.5]},\"properties\":{\"objectType\":\"detection\",\"label\":0,"
                           "\"classification\":{\"name\":\"a\"},\"score\":16777216}},\n"));
    assert_int_equal(remove(NAMES), 0);
    rfx_memory_free(mem);
}

static enum rfx_status build_summary(struct rfx_memory *mem, void *context, struct rfx_error *err) {
    const struct rfx_tensor map = rfx_tensor_nhwc(3, 2, 2);
    struct rfx_summary_file *file = NULL;
    enum rfx_status status =
        rfx_summary_file_open(mem, PATH, context, &map, RFX_ANSWER_CSV, &file, err);
    rfx_summary_file_free(file);
    return status;
}

static enum rfx_status build_points(struct rfx_memory *mem, void *context, struct rfx_error *err) {
    const struct rfx_tensor map = rfx_tensor_nhwc(3, 2, 2);
    struct rfx_points_file *file = NULL;
    enum rfx_status status =
        rfx_points_file_open(mem, PATH, context, &map, RFX_ANSWER_CSV, &file, err);
    rfx_points_file_free(file);
    return status;
}

static void every_failing_allocation_is_reported(void **state) {
    (void)state;
    static const float zero = 0;
    struct rfx_output_format format = {.kind = &rfx_output_csv};
    format.answer.thresholds = &zero;
    format.answer.n_thresholds = 1;
    assert_true(test_fail_each_allocation(build_summary, &format) >= 8);
    assert_true(test_fail_each_allocation(build_points, &format) >= 8);
    store_areas(AREA("", 0, 0, 4, 1));
    format.answer.within = AREAS;
    format.answer.bins = (struct rfx_answer_bins){2, 0, 1};
    assert_true(test_fail_each_allocation(build_summary, &format) >= 22);
    format.answer.quantiles = (struct rfx_answer_quantiles){1, {0.5}};
    assert_true(test_fail_each_allocation(build_summary, &format) >= 33);
    format.answer.within = NULL;
    format.answer.quantiles = (struct rfx_answer_quantiles){1, {0.5}};
    assert_true(test_fail_each_allocation(build_summary, &format) >= 16);
    assert_int_equal(remove(AREAS), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        test_in_folder(labels_are_counted, FOLDER),
        test_in_folder(channels_have_classes_and_values, FOLDER),
        test_in_folder(one_channel_of_floats_has_values_only, FOLDER),
        test_in_folder(labels_are_counted_in_areas, FOLDER),
        test_in_folder(channels_are_counted_in_areas, FOLDER),
        test_in_folder(values_are_counted_in_bins, FOLDER),
        test_in_folder(areas_have_quantiles, FOLDER),
        test_in_folder(memory_of_areas_is_limited, FOLDER),
        test_in_folder(what_cannot_be_counted_is_refused, FOLDER),
        test_in_folder(points_are_middles_of_pixels, FOLDER),
        test_in_folder(every_failing_allocation_is_reported, FOLDER),
    };
    return cmocka_run_group_tests_name("summary file", tests, NULL, NULL);
}
