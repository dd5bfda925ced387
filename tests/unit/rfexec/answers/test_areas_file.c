/* Areas from GeoJSON: forms and orders of members, names, coordinates of maps; each fault is named
 * with its line, feature and member; memory; failing allocations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "rfexec/answers/areas_file.h"
#include "tests/support/test_folder.h"
#include "tests/support/test_util.h"

#define FOLDER "test_areas_file.tmp"
#define PATH FOLDER "/areas.geojson"
#define SQUARE "{\"type\":\"Polygon\",\"coordinates\":[[[0,0],[2,0],[2,2],[0,2],[0,0]]]}"
#define FEATURE(members) "{\"type\":\"Feature\",\"geometry\":" SQUARE members "}"
#define ALL(features) "{\"type\":\"FeatureCollection\",\"features\":[" features "]}"
#define RINGS(rings) "{\"type\":\"Polygon\",\"coordinates\":[" rings "]}"

static const struct rfx_answer_text pixels = {.affine = {.x = {1, 0, 0}, .y = {0, 1, 0}}};

/* Reads the text for a map of 4 rows of 6 pixels. */
static enum rfx_status read_text(struct rfx_area_list *list, struct rfx_memory *mem,
                                 const char *text, size_t most, const struct rfx_answer_text *where,
                                 struct rfx_error *err) {
    const struct rfx_answer_options options = {.within = PATH, .most_bytes = most};
    const struct rfx_tensor map = rfx_tensor_nhwc(1, 4, 6);
    size_t areas;
    test_bytes_store(PATH, text, strlen(text));
    enum rfx_status status = rfx_area_list_read(list, mem, &options, where, &map, err);
    assert_true(rfx_memory_high_water_bytes(mem) <= rfx_area_list_bytes(PATH, &areas));
    if (status == RFX_OK) assert_true(rfx_areas_count(list->areas) <= (int64_t)areas);
    if (status == RFX_OK) assert_true(rfx_memory_current_bytes(mem) <= list->bytes);
    assert_int_equal(remove(PATH), 0);
    return status;
}

static void expect_fault(const char *text, enum rfx_status want, const char *words) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_area_list list;
    struct rfx_error err = {{0}};
    if (read_text(&list, mem, text, 0, &pixels, &err) != want) fail_msg("%s: %s", text, err.text);
    if (strstr(err.text, words) == NULL || strstr(err.text, "areas '" PATH "'") == NULL)
        fail_msg("%s: %s", text, err.text);
    rfx_area_list_release(&list);
    rfx_memory_free(mem);
}

/* Expects the pixels of all areas, as "number:name:pixels ", with the sum of the pixels' places:
 * row * 10 + column of the first. */
static void expect_areas(const char *text, const struct rfx_answer_text *where, const char *want) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_area_list list;
    struct rfx_error err = {{0}};
    int64_t count[8] = {0}, first[8];
    char got[400] = "";
    if (read_text(&list, mem, text, 0, where, &err) != RFX_OK) fail_msg("%s", err.text);
    int64_t n = rfx_areas_count(list.areas);
    assert_true(n <= 8);
    for (int y = 0; y < 4; y++) {
        int64_t spans;
        const struct rfx_area_span *span = rfx_areas_row(list.areas, &spans);
        for (int64_t i = 0; i < spans; i++, span++) {
            if (count[span->area] == 0) first[span->area] = 10 * y + span->x0;
            count[span->area] += span->x1 - span->x0;
        }
    }
    for (int64_t k = 0; k < n; k++) {
        const char *name = rfx_area_name(&list, k);
        (void)snprintf(got + strlen(got), sizeof got - strlen(got), "%lld:%s:%lld@%02lld ",
                       (long long)list.titles[k].number, name != NULL ? name : "",
                       (long long)count[k], count[k] > 0 ? (long long)first[k] : 0LL);
    }
    assert_string_equal(got, want);
    rfx_area_list_release(&list);
    rfx_memory_free(mem);
}

static void forms_of_files_are_read(void **state) {
    (void)state;
    expect_areas(SQUARE, &pixels, "1::4@00 ");
    expect_areas(FEATURE(""), &pixels, "1::4@00 ");
    expect_areas(ALL(FEATURE(",\"properties\":null") "," FEATURE(",\"id\":7")), &pixels,
                 "1::4@00 2:7:4@00 ");
    /* Members in other orders, altitudes, spaces, members that nobody knows. */
    expect_areas(
        " { \"bbox\" : [ 1 , { \"type\" : [ [ ] , null ] } ] ,\r\n\t\"features\":[{\"geometry\":"
        "{\"coordinates\":[[[[1,1,-7.5,3],[1,3,0],[4.0e0,3,1],[4,1,2],[1,1,-7.5]],"
        "[[2,1],[3,1],[3,2],[2,2],[2,1]]],[[[5,0],[6,0],[6,1],[5,1],[5,0]]]],"
        "\"type\":\"MultiPolygon\"},\"id\":\"x\",\"type\":\"Feature\"}],"
        "\"type\":\"FeatureCollection\"} \n",
        &pixels, "1:x:6@05 ");
    expect_areas(RINGS("[[10,0],[12,0],[12,2],[10,0]]"), &pixels, "1::0@00 ");
}

static void names_are_found(void **state) {
    (void)state;
    expect_areas(
        ALL(FEATURE(",\"id\":\"i\",\"properties\":{\"classification\":{\"name\":\"c\",\"color\":"
                    "[1,2,3]},\"name\":\"a \\\"b\\\" \\u00e9\"}") ","  //
            FEATURE(
                ",\"properties\":{\"name\":null,\"classification\":{\"name\":\"c\"}},\"id\":9") ","  //
            FEATURE(",\"id\":-12,\"properties\":{\"name\":\"\",\"classification\":\"d\"}") ","  //
            FEATURE(",\"id\":1.5,\"properties\":{\"names\":\"e\"}")),
        &pixels, "1:a \"b\" \xc3\xa9:4@00 2:c:4@00 3:-12:4@00 4::4@00 ");
}

static void coordinates_are_those_of_the_map(void **state) {
    (void)state;
    /* Pixels of 2 x 0.5, y upward, as of a GeoTIFF; columns 1 and 2 of rows 1 to 3. */
    const struct rfx_answer_text geo = {
        .affine = {.x = {2, 0, 500000}, .y = {0, -0.5, 5300000}}, .mapped = true, .epsg = 25832};
#define FIELD                                                                             \
    RINGS(                                                                                \
        "[[500002,5299998],[500006,5299998],[500006,5299999.5],[500002,5299999.5],[50000" \
        "2,5299998]]")
#define CRS(name) "\"crs\":{\"type\":\"name\",\"properties\":{\"name\":\"" name "\"}},"
#define IN(name) \
    "{\"type\":\"FeatureCollection\"," CRS(name) "\"features\":[{\"type\":\"Feature\",\"geometry" \
                                                 "\":" FIELD "}]}"
    expect_areas(FIELD, &geo, "1::6@11 ");
    expect_areas(IN("urn:ogc:def:crs:EPSG::25832"), &geo, "1::6@11 ");
    expect_areas(IN("EPSG:25832"), &geo, "1::6@11 ");
    expect_areas(IN("local"), &geo, "1::6@11 ");
    expect_fault(IN("EPSG:25832"), RFX_STATUS_INVALID_ARGUMENT,
                 "line 1: crs: the areas are in EPSG:25832, and coordinates are pixels");
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_area_list list;
    struct rfx_error err = {{0}};
    assert_int_equal(read_text(&list, mem, IN("urn:ogc:def:crs:OGC:1.3:CRS84"), 0, &geo, &err),
                     RFX_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "in EPSG:4326, and the picture is in EPSG:25832"));
    rfx_area_list_release(&list);
    rfx_memory_free(mem);
}

static void faults_are_named(void **state) {
    (void)state;
    static const struct {
        const char *text, *words;
    } faults[] = {
        {"", "line 1: the file is no JSON object"},
        {"[]", "the file is no JSON object"},
        {"{}", "the file has no type"},
        {"{\"type\":\"Polygon\"", "',' is missing"},
        {"{\"type\":7}", "of type 'no text'"},
        {"{\"type\":\"Topology\"}", "of type 'Topology'"},
        {"{\"type\":\"FeatureCollection\"}", "the file has no features"},
        {"{\"type\":\"FeatureCollection\",\"features\":{}}", "'[' is missing"},
        {ALL(""), "there are no features"},
        {ALL("7"), "line 1, feature 1: the feature is no JSON object"},
        {ALL(FEATURE("") ",\n" SQUARE), "line 2, feature 2: the type of the feature is 'Polygon'"},
        {ALL("{\"type\":\"Feature\"}"), "feature 1: the feature has no geometry"},
        {ALL("{\"type\":\"Feature\",\"geometry\":null}"), "the geometry is no JSON object"},
        {ALL("{\"type\":\"Feature\",\"geometry\":{\"type\":\"Point\",\"coordinates\":[1,2]}}"),
         "feature 1: the geometry is of type 'Point'; areas are of type Polygon or MultiPolygon"},
        {ALL(FEATURE(",\"geometry\":" SQUARE)), "two members 'geometry'"},
        {ALL(FEATURE("")) " x", "line 1: there is more text behind the end"},
        {ALL(FEATURE("") ","), "there is a comma too many"},
        {ALL(FEATURE(",\"id\":1}")), "',' is missing"},
        {ALL(FEATURE(",7:1")), "the name of a member is missing"},
        {ALL(FEATURE(",\"properties\":{\"a\":\"\xff\"}")), "unable to decode byte 0xff"},
        {ALL(FEATURE(",\"properties\":{\"a\":[1,2,}")), "feature 1"},
        {"{\"type\":\"Polygon\"}", "the geometry has no coordinates"},
        {"{\"type\":\"Polygon\",\"coordinates\":7}", "'[' is missing"},
        {"{\"type\":\"MultiPolygon\",\"coordinates\":[]}", "coordinates: they are empty"},
        {"{\"type\":\"MultiPolygon\",\"coordinates\":[[]]}", "coordinates: a polygon is empty"},
        {RINGS(""), "feature 1: coordinates: a polygon is empty"},
        {RINGS("[]"), "polygon 1, ring 1: it has fewer than 4 positions"},
        {RINGS("[[0,0],[1,0],[0,0]]"), "polygon 1, ring 1: it has fewer than 4 positions"},
        {RINGS("[[0,0],[1,0],[1,1],[0,0]],[[0,0],[1,0],[1,1],[0,0.5]]"),
         "polygon 1, ring 2: it is not closed"},
        {RINGS("[[0,\n0],[1],[1,1],[0,0]]"),
         "line 2, feature 1: coordinates: polygon 1, ring 1: position 2 is no list of two or more "
         "numbers"},
        {RINGS("[[0,0],[1,0],[1,\"1\"],[0,0]]"), "position 3 is no list of two or more numbers"},
        {RINGS("[0,0],[1,0],[1,1],[0,0]"), "position 1 is no list of two or more numbers"},
        {RINGS("[[0,0],[1,0],[1,NaN],[0,0]]"), "invalid token near 'NaN'"},
        {RINGS("[[0,0],[1,0],[1e999,0],[0,0]]"), "real number overflow"},
        {RINGS("[[0,0],[1,0],[1,-2e12],[0,0]]"),
         "position 3, [1, -2e+12], is more than 2^40 pixels away"},
        {RINGS("[[0,0],[1,0],[1,1],[0,0]],"), "there is a comma too many"},
        {RINGS("[[0,0],[1,0],[1,1],[0,0]]],\"coordinates\":["), "two members 'coordinates'"},
    };
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        expect_fault(faults[i].text, RFX_STATUS_MALFORMED, faults[i].words);
    char deep[400] = "{\"type\":\"Polygon\",\"a\":";
    memset(deep + strlen(deep), '[', 100);
    expect_fault(deep, RFX_STATUS_MALFORMED, "nested too deeply");
}

static void every_piece_of_a_file_is_refused(void **state) {
    (void)state;
    static const char text[] = ALL(FEATURE(",\"id\":\"a\",\"properties\":{\"b\":[{}]}") " ");
    char piece[sizeof text];
    for (size_t n = 0; n + 1 < sizeof text; n++) {
        memcpy(piece, text, n);
        piece[n] = '\0';
        expect_fault(piece, RFX_STATUS_MALFORMED, "line 1");
    }
}

static void memory_is_limited(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    const struct rfx_answer_options none = {.within = FOLDER "/none"};
    const struct rfx_tensor map = rfx_tensor_nhwc(1, 4, 6);
    struct rfx_area_list list;
    struct rfx_error err = {{0}};
    assert_int_equal(read_text(&list, mem, SQUARE, 500, &pixels, &err),
                     RFX_STATUS_BUDGET_IMPOSSIBLE);
    assert_non_null(strstr(err.text, "--answer-memory is 500"));
    rfx_area_list_release(&list);
    assert_int_equal(read_text(&list, mem, SQUARE, 2000, &pixels, &err), RFX_OK);
    rfx_area_list_release(&list);
    assert_int_equal(rfx_area_list_read(&list, mem, &none, &pixels, &map, &err), RFX_STATUS_IO);
    assert_non_null(strstr(err.text, "none"));
    rfx_area_list_release(&list);
    rfx_memory_free(mem);
}

static enum rfx_status build(struct rfx_memory *mem, void *context, struct rfx_error *err) {
    struct rfx_area_list list;
    enum rfx_status status = read_text(&list, mem, context, 0, &pixels, err);
    rfx_area_list_release(&list);
    return status;
}

static void every_failing_allocation_is_reported(void **state) {
    (void)state;
    char text[] = ALL(FEATURE(",\"id\":\"a\""));
    assert_true(test_fail_each_allocation(build, text) >= 8);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        test_in_folder(forms_of_files_are_read, FOLDER),
        test_in_folder(names_are_found, FOLDER),
        test_in_folder(coordinates_are_those_of_the_map, FOLDER),
        test_in_folder(faults_are_named, FOLDER),
        test_in_folder(every_piece_of_a_file_is_refused, FOLDER),
        test_in_folder(memory_is_limited, FOLDER),
        test_in_folder(every_failing_allocation_is_reported, FOLDER),
    };
    return cmocka_run_group_tests_name("areas file", tests, NULL, NULL);
}
