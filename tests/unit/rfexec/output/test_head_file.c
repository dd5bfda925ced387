/* Head files: what each member sets, and that anything else is refused with its place. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "rfexec/output/head_file.h"

static enum rfx_status parse(const char *text, struct rfx_detector *head, struct rfx_error *err) {
    struct rfx_memory *mem = rfx_memory_create(0);
    enum rfx_status status =
        rfx_head_file_parse(mem, text, strlen(text), "folder/head.json", head, err);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
    return status;
}

static struct rfx_detector parsed(const char *text) {
    struct rfx_detector head = {.n_outputs = 0};
    struct rfx_error err = {{0}};
    if (parse(text, &head, &err) != RFX_OK) fail_msg("%s", err.text);
    return head;
}

/* The description as JSON is read as the same description. */
static void assert_comes_back(const struct rfx_detector *head) {
    struct rfx_detector again = {.n_outputs = 0};
    struct rfx_error err = {{0}};
    json_t *json = rfx_head_file_json(head);
    assert_non_null(json);
    if (rfx_head_file_take(json, "folder/head.json", &again, &err) != RFX_OK)
        fail_msg("%s", err.text);
    assert_memory_equal(head, &again, sizeof again);
    json_t *second = rfx_head_file_json(&again);
    assert_true(json_equal(json, second));
    json_decref(json);
    json_decref(second);
}

static void members_that_are_left_out(void **state) {
    (void)state;
    const struct rfx_detector head = parsed(
        "{\"outputs\": [{\"names\": [\"out\"], \"axes\": \"v n\", \"values\": [\"box\", "
        "\"scores\"]}], \"decode\": \"centre\"}");
    assert_string_equal(head.name, "head.json");
    assert_int_equal(head.n_outputs, 1);
    assert_int_equal(head.n_levels, 1);
    assert_int_equal(head.levels[0].anchors, 1);
    assert_true(head.levels[0].stride == 0);
    assert_string_equal(head.outputs[0].axes, "v n");
    assert_int_equal(head.outputs[0].n_values, 2);
    assert_int_equal(head.outputs[0].values[1], RFX_DETECTOR_SCORES);
    assert_int_equal(head.decode, RFX_DETECTOR_CENTRE);
    assert_int_equal(head.activation, RFX_DETECTOR_NONE);
    assert_int_equal(head.background, -1);
    assert_false(head.shares || head.root || head.every_class || head.clip || head.has_anchors);
    assert_true(head.offset == 0.5F && head.weights[3] == 1 && isinf(head.limit));
    assert_comes_back(&head);
}

static void all_members(void **state) {
    (void)state;
    const struct rfx_detector head = parsed(
        "{\"outputs\": [{\"names\": [\"b1\", \"b2\"], \"axes\": \"va y x\", \"values\": [\"box\"]},"
        "{\"names\": [\"s\"], \"axes\": \"yxa v\", \"values\": [\"scores\", \"objectness\"]}],"
        "\"levels\": [{\"stride\": 8, \"anchors\": [[10, 13.5], [16, 30]]},"
        "{\"anchors\": {\"sizes\": [32, 40], \"ratios\": [4], \"round\": true}}],"
        "\"decode\": \"deltas\", \"activation\": \"softmax\", \"shares\": true, \"root\": true, "
        "\"background\": 0, \"every_class\": true, \"clip\": true, \"offset\": 0, \"weights\": "
        "[10, 10, 5, 5], \"limit\": 4.135}");
    assert_int_equal(head.n_levels, 2);
    assert_int_equal(head.outputs[0].n_names, 2);
    assert_string_equal(head.outputs[0].names[1], "b2");
    assert_true(head.outputs[0].values_first && !head.outputs[1].values_first);
    assert_true(head.has_anchors && head.levels[0].stride == 8 && head.levels[1].stride == 0);
    assert_int_equal(head.levels[0].anchors, 2);
    assert_true(head.levels[0].anchor[0][1] == 13.5F && head.levels[0].anchor[1][0] == 16);
    assert_int_equal(head.levels[1].anchors, 2);
    assert_true(head.levels[1].anchor[0][0] == 16 && head.levels[1].anchor[0][1] == 64);
    assert_int_equal(head.activation, RFX_DETECTOR_SOFTMAX);
    assert_int_equal(head.background, 0);
    assert_true(head.shares && head.root && head.every_class && head.clip && head.offset == 0);
    assert_true(head.weights[1] == 10 && head.weights[2] == 5 && head.limit == 4.135F);
    assert_comes_back(&head);
}

static void peaks_of_maps(void **state) {
    (void)state;
    const struct rfx_detector head = parsed(
        "{\"outputs\": [{\"names\": [\"h\"], \"axes\": \"v y x\", \"values\": [\"scores\"]},"
        "{\"names\": [\"b\"], \"axes\": \"v y x\", \"values\": [\"sides\", \"centre\"]}],"
        "\"levels\": [{\"stride\": 4}], \"decode\": \"centernet\", \"activation\": \"sigmoid\"}");
    assert_int_equal(head.decode, RFX_DETECTOR_CENTERNET);
    assert_int_equal(head.outputs[1].values[0], RFX_DETECTOR_BOX_SIDES);
    assert_int_equal(head.outputs[1].values[1], RFX_DETECTOR_BOX_CENTRE);
    assert_true(head.every_class && head.levels[0].stride == 4);
    assert_comes_back(&head);
}

/* torchvision 0.29: AnchorGenerator.generate_anchors((32, 40, 50), (0.5, 1, 2)) prints halves of
 * [-23, -11, 23, 11], [-28, -14, ...], [-35, -18, ...], [-16, -16], [-20, -20], [-25, -25],
 * [-11, -23], [-14, -28], [-18, -35]. */
static void anchors_of_sizes_and_ratios(void **state) {
    static const int halves[9][2] = {{23, 11}, {28, 14}, {35, 18}, {16, 16}, {20, 20},
                                     {25, 25}, {11, 23}, {14, 28}, {18, 35}};
    (void)state;
    const struct rfx_detector head = parsed(
        "{\"outputs\": [{\"names\": [\"o\"], \"axes\": \"yxa v\", \"values\": [\"box\", "
        "\"scores\"]}], \"decode\": \"deltas\", \"levels\": [{\"anchors\": {\"sizes\": [32, 40, "
        "50], \"ratios\": [0.5, 1, 2], \"round\": true}}]}");
    assert_int_equal(head.levels[0].anchors, 9);
    for (int k = 0; k < 9; k++)
        for (int i = 0; i < 2; i++)
            assert_true(head.levels[0].anchor[k][i] == (float)(2 * halves[k][i]));
}

#define OUT "{\"names\": [\"o\"], \"axes\": \"yxa v\", \"values\": [\"box\", \"scores\"]}"
#define OUTS "\"outputs\": [" OUT "]"
#define ONE(names, axes, values) \
    "{\"outputs\": [{\"names\": " names ", \"axes\": " axes ", \"values\": " values "}]"
#define BOTH "[\"box\", \"scores\"]"
#define CELLS ", \"decode\": \"cells\"}"
#define PEAKS(axes, values)                                                       \
    "{\"outputs\": [{\"names\": [\"o\"], \"axes\": " axes ", \"values\": " values \
    "}, "                                                                         \
    "{\"names\": [\"p\"], \"axes\": \"v y x\", \"values\": [\"centre\", "         \
    "\"sides\"]}], \"decode\": \"centernet\""

static void what_is_refused(void **state) {
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"", "head.json: line 1"},
        {"[]", "[] is no head"},
        {"{" OUTS "}", "no \"decode\""},
        {"{" OUTS ", \"decode\": \"ssd\"}", "decode: \"ssd\" is none of \"corners\""},
        {"{" OUTS ", \"decode\": 1}", "decode: 1 is none of"},
        {"{" OUTS ", \"decod\": \"cells\"}", "unknown key 'decod': did you mean 'decode'?"},
        {"{" OUTS ", \"decode\": \"cells\", \"decode\": \"cells\"}", "duplicate"},
        {"{\"decode\": \"cells\"}", "outputs: nothing is not a list of 1 to 8 items"},
        {"{\"outputs\": []" CELLS, "outputs: [] is not a list"},
        {"{\"outputs\": [3]" CELLS, "outputs[0]: 3 is no object"},
        {"{\"outputs\": [{\"name\": []}]" CELLS, "outputs[0]: unknown key 'name'"},
        {ONE("[]", "\"yx v\"", BOTH) CELLS, "outputs[0].names: [] is not a list of 1 to 8"},
        {ONE("[7]", "\"yx v\"", BOTH) CELLS, "outputs[0].names[0]: 7 is not the name"},
        {ONE("[\"\"]", "\"yx v\"", BOTH) CELLS, "outputs[0].names[0]: \"\" is not the name"},
        {ONE("[\"o\"]", "\"yy v\"", BOTH) CELLS, "outputs[0].axes: \"yy v\" is not such as"},
        {ONE("[\"o\"]", "\"yxy v\"", BOTH) CELLS, "outputs[0].axes: \"yxy v\""},
        {ONE("[\"o\"]", "\"yx\"", BOTH) CELLS, "outputs[0].axes: \"yx\""},
        {ONE("[\"o\"]", "\"y v\"", BOTH) CELLS, "outputs[0].axes: \"y v\""},
        {ONE("[\"o\"]", "\"yxn v\"", BOTH) CELLS, "outputs[0].axes: \"yxn v\""},
        {ONE("[\"o\"]", "\"na v\"", BOTH) CELLS, "outputs[0].axes: \"na v\""},
        {ONE("[\"o\"]", "\"yx  v\"", BOTH) CELLS, "outputs[0].axes: \"yx  v\""},
        {ONE("[\"o\"]", "\"yx v \"", BOTH) CELLS, "outputs[0].axes: \"yx v \""},
        {ONE("[\"o\"]", "\"y x a v \"", BOTH) CELLS, "outputs[0].axes"},
        {ONE("[\"o\"]", "5", BOTH) CELLS, "outputs[0].axes: 5"},
        {ONE("[\"o\"]", "\"yx v\"", "[\"box\", \"class\"]") CELLS,
         "outputs[0].values[1]: \"class\" is none of \"box\", \"objectness\""},
        {ONE("[\"o\"]", "\"yx v\"", "[\"box\", \"box\"]") CELLS,
         "outputs[0]: there is \"box\" twice"},
        {ONE("[\"o\"]", "\"yx v\"", "[\"box\"]") CELLS, "outputs: no output has \"scores\""},
        {ONE("[\"o\"]", "\"yx v\"", "[\"scores\"]") CELLS, "outputs: no output has \"box\""},
        {ONE("[\"o\"]", "\"n v\"", BOTH) CELLS,
         "outputs[0]: \"cells\" decodes by rows and columns"},
        {ONE("[\"o\", \"p\"]", "\"yx v\"", BOTH) ", \"levels\": [{}]" CELLS,
         "outputs[0]: 2 names for 1 levels"},
        {ONE("[\"o\"]", "\"v y x\"", BOTH) ", \"levels\": [{}, {}]" CELLS,
         "outputs[0]: several levels in one output follow each other along one axis"},
        {"{" OUTS ", \"levels\": {}" CELLS, "levels: {} is not a list"},
        {"{" OUTS ", \"levels\": [{\"strides\": 8}]" CELLS, "levels[0]: unknown key 'strides'"},
        {"{" OUTS ", \"levels\": [{\"stride\": 0}]" CELLS, "levels[0].stride: 0 is not a number"},
        {"{" OUTS ", \"levels\": [{\"stride\": \"8\"}]" CELLS, "levels[0].stride: \"8\" is not"},
        {"{" OUTS ", \"levels\": [{\"stride\": 1e300}]" CELLS, "from 1 to 1e+06"},
        {"{" OUTS ", \"levels\": [{\"anchors\": [[8, 8]]}]" CELLS,
         "levels: \"cells\" decodes without anchors"},
        {"{" OUTS ", \"levels\": [{\"anchors\": [[8, 8]]}, {}], \"decode\": \"deltas\"}",
         "levels[1]: all levels have anchors, or none"},
        {"{" OUTS ", \"decode\": \"deltas\"}", "levels: \"deltas\" decodes by anchors"},
        {"{" OUTS ", \"decode\": \"deltas\", \"levels\": [{\"anchors\": [[8]]}]}",
         "levels[0].anchors[0]: [8] is not a list of 2 to 2 items"},
        {"{" OUTS ", \"decode\": \"deltas\", \"levels\": [{\"anchors\": [[8, -1]]}]}",
         "levels[0].anchors[0][1]: -1 is not a number"},
        {"{" OUTS ", \"decode\": \"deltas\", \"levels\": [{\"anchors\": {\"sizes\": [1]}}]}",
         "levels[0].anchors.ratios: nothing is not a list"},
        {"{" OUTS ", \"decode\": \"deltas\", \"levels\": [{\"anchors\": {\"sizes\": "
         "[1,2,3,4,5,6,7], \"ratios\": [1,2,3,4,5]}}]}",
         "levels[0].anchors: 7 sizes and 5 ratios are more than 32 anchors"},
        {ONE("[\"o\"]", "\"yx v\"", BOTH) ", \"levels\": [{\"anchors\": [[8, 8], [9, 9]]}], "
                                          "\"decode\": \"deltas\"}",
         "outputs[0]: levels[0] has 2 anchors: an axis a"},
        {ONE("[\"o\"]", "\"yx v\"",
             "[\"box\", \"scores\", \"points\"]") ", \"levels\": "
                                                  "[{\"anchors\": [[8, 8]]}], \"decode\": "
                                                  "\"yolov5\"}",
         "outputs: \"yolov5\" decodes no points"},
        {ONE("[\"o\"]", "\"yx v\"", "[\"centre\", \"scores\"]") CELLS,
         "outputs: a box is \"box\", or \"centre\" and \"sides\""},
        {ONE("[\"o\"]", "\"yx v\"", "[\"box\", \"centre\", \"sides\", \"scores\"]") CELLS,
         "outputs: a box is \"box\", or \"centre\" and \"sides\""},
        {ONE("[\"o\"]", "\"yx v\"", "[\"centre\", \"sides\", \"scores\"]") ", \"decode\": "
                                                                           "\"distances\"}",
         "outputs: \"distances\" has no \"centre\" and \"sides\""},
        {PEAKS("\"yx v\"", "[\"scores\"]") "}", "outputs[0]: \"centernet\" finds peaks in maps"},
        {PEAKS("\"y v x\"", "[\"scores\"]") "}", "outputs[0]: \"centernet\" finds peaks in maps"},
        {PEAKS("\"v y x\"", "[\"scores\", \"objectness\"]") "}",
         "outputs: \"centernet\" has no objectness"},
        {PEAKS("\"v y x\"", "[\"scores\", \"points\"]") "}",
         "outputs[0]: \"centernet\" finds peaks in maps that have \"scores\" alone"},
        {PEAKS("\"v y x\"", "[\"scores\"]") ", \"activation\": \"softmax\"}",
         "activation: \"centernet\" has none or \"sigmoid\""},
        {PEAKS("\"v y x\"", "[\"scores\"]") ", \"levels\": [{}, {}]}",
         "outputs[0]: several levels in one output"},
        {"{" OUTS ", \"root\": true" CELLS, "root: there is no objectness"},
        {"{" OUTS ", \"clip\": 1" CELLS, "'clip': 1 is not true or false"},
        {"{" OUTS ", \"background\": -1" CELLS, "background: -1 is not a whole number"},
        {"{" OUTS ", \"weights\": [1, 1, 1]" CELLS, "weights: [1,1,1] is not a list of 4 to 4"},
        {"{" OUTS ", \"weights\": [1, 1, 1, 0]" CELLS, "weights[3]: 0 is not a number"},
        {"{" OUTS ", \"activation\": \"tanh\"" CELLS, "activation: \"tanh\" is none of"},
        {"{" OUTS ", \"limit\": \"none\"" CELLS, "limit: \"none\" is not a number"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rfx_detector head = {.n_levels = 77};
        struct rfx_error err = {{0}};
        assert_int_equal(parse(cases[i].text, &head, &err), RFX_STATUS_MALFORMED);
        if (strstr(err.text, cases[i].words) == NULL || strstr(err.text, "head.json") == NULL)
            fail_msg("%s\ngives '%s',\nnot '%s'", cases[i].text, err.text, cases[i].words);
        assert_int_equal(head.n_levels, 77); /* written on success only */
    }
}

static void files(void **state) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_detector head = {.n_levels = 0};
    struct rfx_error err = {{0}};
    (void)state;
    assert_true(rfx_head_is_file("a.json") && rfx_head_is_file("folder/a.JSON"));
    assert_false(rfx_head_is_file("yolov8") || rfx_head_is_file(".json") || rfx_head_is_file(""));
    (void)unlink("head_file.json");
    assert_int_equal(rfx_head_file_read(mem, "head_file.json", &head, &err), RFX_STATUS_MALFORMED);
    assert_non_null(strstr(err.text, "head 'head_file.json': cannot be opened"));
    FILE *file = fopen("head_file.json", "w");
    assert_non_null(file);
    assert_true(fputs("{" OUTS CELLS, file) >= 0 && fclose(file) == 0);
    assert_int_equal(rfx_head_file_read(mem, "head_file.json", &head, &err), RFX_OK);
    assert_int_equal(head.n_levels, 1);
    rfx_memory_fail_after(mem, 0);
    assert_int_equal(rfx_head_file_read(mem, "head_file.json", &head, &err),
                     RFX_STATUS_OUT_OF_MEMORY);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
    (void)unlink("head_file.json");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_that_are_left_out),
        cmocka_unit_test(all_members),
        cmocka_unit_test(peaks_of_maps),
        cmocka_unit_test(anchors_of_sizes_and_ratios),
        cmocka_unit_test(what_is_refused),
        cmocka_unit_test(files),
    };
    return cmocka_run_group_tests_name("head file", tests, NULL, NULL);
}
