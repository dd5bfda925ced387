/* External data files: the good forms, and every way in which a location or a range can be wrong.
 */
#include "rfexec/onnx/file/onnx_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "rfexec/run/model.h"
#include "tests/support/makers/onnx_maker.h"
#include "tests/support/test_util.h"

#define FOLDER "test_onnx_file_folder"
#define MODEL_PATH FOLDER "/model.onnx"

enum { DIMS = 1, DATA_TYPE = 2, NAME = 8, EXTERNAL_DATA = 13, DATA_LOCATION = 14 };

static struct maker tensor;

static void entry(const char *key, const char *value) {
    static struct maker pair;
    pair.size = 0;
    maker_text(&pair, 1, key);
    maker_text(&pair, 2, value);
    maker_message(&tensor, EXTERNAL_DATA, &pair);
}

/* Four float weights of a convolution in an external file; NULL: without that entry. */
static void describe(const char *location, const char *offset, const char *length) {
    tensor.size = 0;
    maker_int(&tensor, DIMS, 4);
    for (int i = 0; i < 3; i++) maker_int(&tensor, DIMS, 1);
    maker_int(&tensor, DATA_TYPE, 1);
    maker_text(&tensor, NAME, "k");
    if (location != NULL) entry("location", location);
    if (offset != NULL) entry("offset", offset);
    if (length != NULL) entry("length", length);
    maker_int(&tensor, DATA_LOCATION, 1);
}

static struct maker model; /* as it was saved last */

static enum rfx_status load(struct rfx_memory *mem, struct rfx_graph **out, struct rfx_error *err) {
    struct rfx_load_options options = {0};
    maker_conv_model(&tensor, &model);
    maker_save(&model, MODEL_PATH);
    return rfx_onnx_load(mem, MODEL_PATH, &options, out, err);
}

/* The weights are `first`, first + 1, ... */
static void expect(float first) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = NULL;
    struct rfx_error err = {""};
    float got[4];
    if (load(mem, &graph, &err) != RFX_OK) fail_msg("%s", err.text);
    const struct rfx_node *conv = &graph->nodes[graph->outputs[0].node];
    const struct rfx_weight *weight = &graph->weights[conv->attr.conv.weight];
    assert_int_equal(weight->source, RFX_WEIGHT_FILE);
    test_read_weight(weight, 0, 4, got);
    for (int i = 0; i < 4; i++) assert_true(got[i] == first + (float)i);
    rfx_graph_free(graph);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

static void expect_refusal(enum rfx_status want, const char *text) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = NULL;
    struct rfx_error err = {""};
    assert_int_equal(load(mem, &graph, &err), want);
    if (strstr(err.text, text) == NULL || strstr(err.text, "'k'") == NULL)
        fail_msg("'%s' lacks '%s' or the tensor", err.text, text);
    assert_null(graph);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

/* The same model in memory has no folder. */
static void models_in_memory(void **state) {
    (void)state;
    describe("w.data", "16", "16");
    expect(4.0f);
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = NULL;
    struct rfx_error err = {""};
    enum rfx_status status = rfx_onnx_load_bytes(mem, model.bytes, model.size, NULL, &graph, &err);
    assert_int_equal(status, RFX_STATUS_UNSUPPORTED);
    assert_non_null(strstr(err.text, "'k'"));
    assert_non_null(strstr(err.text, "'w.data'"));
    assert_null(graph);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

static void good_forms(void **state) {
    (void)state;
    describe("w.data", "16", "16");
    expect(4.0f);
    describe("w.data", NULL, "16"); /* from the start */
    expect(0.0f);
    describe("w.data", "12", NULL); /* as long as the shape says */
    expect(3.0f);
    describe("sub/w.data", NULL, NULL);
    expect(0.0f);
    describe("./w.data", "0", "16");
    expect(0.0f);
    describe("..w.data", "4", "16"); /* a name that only begins with two dots */
    expect(1.0f);
}

static void places_outside_of_the_folder(void **state) {
    (void)state;
    describe("../w.data", NULL, NULL); /* this file is there */
    expect_refusal(RFX_STATUS_MALFORMED, "outside of the model's folder");
    describe("sub/../../w.data", NULL, NULL);
    expect_refusal(RFX_STATUS_MALFORMED, "outside of the model's folder");
    describe("sub/..", NULL, NULL);
    expect_refusal(RFX_STATUS_MALFORMED, "outside of the model's folder");
    describe("/dev/zero", NULL, NULL);
    expect_refusal(RFX_STATUS_MALFORMED, "outside of the model's folder");
    describe(NULL, "0", "16");
    expect_refusal(RFX_STATUS_MALFORMED, "without a location");
}

static void links_out_of_the_folder(void **state) {
    (void)state;
    assert_int_equal(symlink("../w.data", FOLDER "/out.data"), 0);
    assert_int_equal(symlink("..", FOLDER "/up"), 0);
    assert_int_equal(symlink("/", FOLDER "/root"), 0);
    assert_int_equal(symlink("nothing", FOLDER "/lost.data"), 0);
    assert_int_equal(symlink("out.data", FOLDER "/chain.data"), 0);
    assert_int_equal(symlink("../" FOLDER "_too", FOLDER "/too"), 0);
    static const char *const outside[] = {"out.data", "chain.data", "up/w.data", "root/etc/passwd",
                                          "too/w.data"};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        describe(outside[i], "0", "16");
        expect_refusal(RFX_STATUS_MALFORMED, "outside of the model's folder");
    }
    describe("lost.data", "0", "16");
    expect_refusal(RFX_STATUS_IO, "No such file");
    /* and links that stay in it */
    assert_int_equal(symlink("sub/w.data", FOLDER "/in.data"), 0);
    assert_int_equal(symlink("sub", FOLDER "/other"), 0);
    assert_int_equal(symlink("../" FOLDER, FOLDER "/back"), 0);
    static const char *const inside[] = {"in.data", "other/w.data", "back/w.data"};
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
        describe(inside[i], "4", "16");
        expect(1.0f);
    }
}

/* As caches keep them: names in one folder, all of a model's files in another. */
static void models_that_are_links(void **state) {
    (void)state;
    static const char link[] = "test_onnx_file_names/model.onnx";
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_load_options options = {0};
    struct rfx_graph *graph = NULL;
    struct rfx_error err = {""};
    describe("w.data", "4", "16");
    expect(1.0f); /* makes the model */
    (void)mkdir("test_onnx_file_names", 0777);
    assert_int_equal(symlink("../" MODEL_PATH, link), 0);
    assert_int_equal(symlink("../" FOLDER "/w.data", "test_onnx_file_names/w.data"), 0);
    if (rfx_onnx_load(mem, link, &options, &graph, &err) != RFX_OK) fail_msg("%s", err.text);
    rfx_graph_free(graph);
    assert_int_equal(unlink("test_onnx_file_names/w.data"), 0);
    assert_int_equal(symlink("../w.data", "test_onnx_file_names/w.data"), 0);
    assert_int_equal(rfx_onnx_load(mem, link, &options, &graph, &err), RFX_STATUS_MALFORMED);
    assert_int_equal(unlink("test_onnx_file_names/w.data"), 0);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(rmdir("test_onnx_file_names"), 0);
    rfx_memory_free(mem);
}

static void ranges_outside_of_the_file(void **state) {
    (void)state;
    describe("w.data", "20", "16"); /* 36 of 32 bytes */
    expect_refusal(RFX_STATUS_MALFORMED, "16 bytes at 20");
    describe("w.data", "33", NULL);
    expect_refusal(RFX_STATUS_MALFORMED, "which has 32 bytes");
    describe("w.data", "9223372036854775807", "16");
    expect_refusal(RFX_STATUS_MALFORMED, "which has 32 bytes");
    describe("w.data", "0", "12"); /* shorter than the shape */
    expect_refusal(RFX_STATUS_MALFORMED, "length 12");
    describe("w.data", "0", "32");
    expect_refusal(RFX_STATUS_MALFORMED, "length 32");
    describe("w.data", "99999999999999999999", "16");
    expect_refusal(RFX_STATUS_MALFORMED, "is not a number");
    describe("w.data", "-4", "16");
    expect_refusal(RFX_STATUS_MALFORMED, "is not a number");
    describe("w.data", "0", "");
    expect_refusal(RFX_STATUS_MALFORMED, "is not a number");
}

static void files_that_cannot_be_read(void **state) {
    (void)state;
    describe("missing.data", NULL, NULL);
    expect_refusal(RFX_STATUS_IO, "cannot open");
    describe("sub", NULL, NULL);
    expect_refusal(RFX_STATUS_IO, "not a regular file");
    describe("pipe", NULL, NULL); /* nobody writes: must not wait */
    expect_refusal(RFX_STATUS_IO, "not a regular file");
    describe("empty.data", NULL, NULL);
    expect_refusal(RFX_STATUS_MALFORMED, "is empty");
}

static const char *const files[] = {FOLDER "/w.data", FOLDER "/sub/w.data", FOLDER "/..w.data",
                                    FOLDER "_too/w.data", "w.data"};
static const char *const links[] = {"out.data", "up",      "root",  "lost.data", "chain.data",
                                    "too",      "in.data", "other", "back"};

static void save(const char *path, size_t count) {
    static const float values[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    FILE *file = fopen(path, "wb");
    if (file == NULL) fail_msg("cannot write %s", path);
    assert_int_equal(fwrite(values, sizeof *values, count, file), count);
    assert_int_equal(fclose(file), 0);
}

static int remove_files(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) (void)unlink(files[i]);
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        char path[128];
        (void)snprintf(path, sizeof path, FOLDER "/%s", links[i]);
        (void)unlink(path);
    }
    (void)unlink(FOLDER "/empty.data");
    (void)unlink(FOLDER "/pipe");
    (void)unlink(MODEL_PATH);
    (void)rmdir(FOLDER "/sub");
    (void)rmdir(FOLDER);
    (void)rmdir(FOLDER "_too");
    (void)unlink("test_onnx_file_names/model.onnx");
    (void)unlink("test_onnx_file_names/w.data");
    (void)rmdir("test_onnx_file_names");
    return 0;
}

static int make_files(void **state) {
    (void)remove_files(state);
    if (mkdir(FOLDER, 0700) != 0 || mkdir(FOLDER "/sub", 0700) != 0 ||
        mkdir(FOLDER "_too", 0700) != 0)
        return 1;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) save(files[i], 8);
    save(FOLDER "/empty.data", 0);
    return mkfifo(FOLDER "/pipe", 0600);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_in_memory),
        cmocka_unit_test(good_forms),
        cmocka_unit_test(places_outside_of_the_folder),
        cmocka_unit_test(links_out_of_the_folder),
        cmocka_unit_test(models_that_are_links),
        cmocka_unit_test(ranges_outside_of_the_file),
        cmocka_unit_test(files_that_cannot_be_read),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
