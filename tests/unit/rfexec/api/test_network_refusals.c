/* Networks of the public header: what they refuse, with which code and words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "rfexec/api/network.h"
#include "tests/support/run/network_run.h"

static void test_wrong_arguments(void **state) {
    struct rfx_network *net = network_open_sized("fsrcnn:2", 16, 16), *other = NULL;
    struct rfx_run_options options = network_run_options(0, 1), bad = options;
    struct rfx_forecast forecast = {.size = sizeof forecast};
    struct rfx_why why;
    float *values = network_random_image(3, 16, 16);
    struct network_outputs out = network_outputs_for(net);
    (void)state;
#define ASSERT_USAGE(call, words)                 \
    do {                                          \
        assert_int_equal(call, RFX_CODE_USAGE);   \
        assert_non_null(strstr(why.text, words)); \
    } while (0)
    ASSERT_USAGE(rfx_network_run_values(net, values, out.values, 2, &options, &why), "outputs");
    ASSERT_USAGE(rfx_network_run_values(net, values, out.values, 0, &options, &why), "outputs");
    ASSERT_USAGE(rfx_network_run_values(net, values, NULL, 1, &options, &why), "outputs");
    ASSERT_USAGE(rfx_network_run_values(net, NULL, out.values, 1, &options, &why), "values");
    ASSERT_USAGE(rfx_network_run_file(net, NULL, out.values, 1, &options, &why), "picture");
    bad.threads = -1;
    ASSERT_USAGE(rfx_network_run_values(net, values, out.values, 1, &bad, &why), "threads");
    ASSERT_USAGE(rfx_network_predict(net, NULL, &bad, &forecast, &why), "threads");
    bad = options;
    bad.std = (const float[]){1.0f, 0.0f, 1.0f};
    bad.n_std = 3;
    ASSERT_USAGE(rfx_network_run_file(net, "synthetic:16x16", out.values, 1, &bad, &why), "std");
    bad.std = NULL;
    ASSERT_USAGE(rfx_network_run_file(net, "synthetic:16x16", out.values, 1, &bad, &why), "n_std");
    bad = (struct rfx_run_options){0};
    ASSERT_USAGE(rfx_network_run_values(net, values, out.values, 1, &bad, &why), "size");
    forecast.size = 0;
    ASSERT_USAGE(rfx_network_predict(net, NULL, &options, &forecast, &why), "size");
    ASSERT_USAGE(rfx_network_open(NULL, NULL, &other, &why), "model");
    ASSERT_USAGE(rfx_network_open("fsrcnn", &(struct rfx_open_options){.rows = 4}, &other, &why),
                 "size");
    int64_t rows = -7, columns = -7;
    ASSERT_USAGE(rfx_picture_size(NULL, &rows, &columns, NULL, &why), "picture");
    assert_true(rows == -7 && columns == -7);
    assert_null(other);
    network_outputs_free(&out);
    free(values);
    rfx_network_free(net);
}

/* NULL for what a call needs: USAGE that names it, or a value that says "nothing". */
static void test_null(void **state) {
    struct rfx_network *net = network_open_sized("fsrcnn:2", 16, 16), *part = NULL;
    struct rfx_runner *runner = NULL;
    struct rfx_forecast forecast = {.size = sizeof forecast};
    const struct rfx_area area = {.rows = 4, .columns = 4};
    struct rfx_area read = {.rows = 7};
    struct rfx_layer_report layer;
    struct rfx_why why;
    float *values = network_random_image(3, 16, 16);
    const struct rfx_source source = {.size = sizeof source, .values = values};
    struct network_outputs out = network_outputs_for(net);
    int64_t dims[RFX_MAX_DIMS] = {7, 7, 7, 7}, rows = 7;
    int count = 0;
    (void)state;
    rfx_open_options_init(NULL, sizeof(struct rfx_open_options));
    rfx_run_options_init(NULL, sizeof(struct rfx_run_options));
    ASSERT_USAGE(rfx_network_open("fsrcnn:2", NULL, NULL, &why), "out");
    ASSERT_USAGE(rfx_network_open_memory(NULL, 0, NULL, &part, &why), "model");
    ASSERT_USAGE(rfx_network_open_memory(values, 64, NULL, NULL, &why), "out");
    ASSERT_USAGE(rfx_network_layers(NULL, &layer, sizeof layer, &why), "network");
    ASSERT_USAGE(rfx_network_layers(net, NULL, sizeof layer, &why), "layers");
    ASSERT_USAGE(rfx_picture_size("synthetic:4x4", NULL, &rows, NULL, &why), "rows");
    ASSERT_USAGE(rfx_picture_size("synthetic:4x4", &rows, NULL, NULL, &why), "columns");
    ASSERT_USAGE(rfx_network_predict(NULL, NULL, NULL, &forecast, &why), "network");
    ASSERT_USAGE(rfx_network_predict(net, NULL, NULL, NULL, &why), "forecast");
    ASSERT_USAGE(rfx_network_stages(NULL, NULL, NULL, NULL, 0, 0, &count, &why), "network");
    ASSERT_USAGE(rfx_network_stages(net, NULL, NULL, NULL, 0, 0, NULL, &why), "count");
    ASSERT_USAGE(rfx_network_run_values(NULL, values, out.values, 1, NULL, &why), "network");
    ASSERT_USAGE(rfx_network_run_source(net, NULL, out.values, 1, NULL, &why), "source");
    ASSERT_USAGE(rfx_network_open_part(NULL, 0, &area, &part, &why), "network");
    ASSERT_USAGE(rfx_network_open_part(net, 0, NULL, &part, &why), "part");
    ASSERT_USAGE(rfx_network_open_part(net, 0, &area, NULL, &why), "out");
    ASSERT_USAGE(rfx_runner_create(NULL, NULL, &runner, &why), "network");
    ASSERT_USAGE(rfx_runner_create(net, NULL, NULL, &why), "out");
    ASSERT_USAGE(rfx_runner_forecast(NULL, &forecast, &why), "runner");
    ASSERT_USAGE(rfx_runner_stages(NULL, NULL, 0, 0, &count, &why), "runner");
    ASSERT_USAGE(rfx_runner_run(NULL, &source, out.values, 1, NULL, &why), "runner");
    assert_true(part == NULL && runner == NULL && rows == 7);
    rfx_network_input_shape(NULL, dims);
    assert_true(dims[0] == 0 && dims[3] == 0);
    rfx_network_input_shape(net, NULL);
    rfx_network_input_area(NULL, &read);
    assert_int_equal(read.rows, 0);
    rfx_network_input_area(net, NULL);
    assert_null(rfx_network_input_name(NULL));
    assert_int_equal(rfx_network_output_count(NULL), 0);
    assert_null(rfx_network_output_name(NULL, 0));
    assert_int_equal(rfx_network_output_shape(NULL, 0, dims), -1);
    assert_int_equal(rfx_network_output_shape(net, 0, NULL), 4);
    assert_true(rfx_network_output_elements(NULL, 0) == -1);
    assert_int_equal(rfx_network_layer_count(NULL), 0);
    rfx_runner_free(NULL);
    network_outputs_free(&out);
    free(values);
    rfx_network_free(net);
}

/* A directory and a pipe are no model and no picture, and nobody waits for a pipe's writer. */
static void test_no_files(void **state) {
    static const char *const paths[] = {"test_refusals_folder", "test_refusals_pipe"};
    (void)state;
    assert_int_equal(mkdir(paths[0], 0700), 0);
    assert_int_equal(mkfifo(paths[1], 0600), 0);
    for (int i = 0; i < 2; i++) {
        struct rfx_network *net = NULL;
        struct rfx_why why;
        int64_t rows, columns;
        char model[80];
        (void)snprintf(model, sizeof model, "./%s", paths[i]);
        assert_int_equal(rfx_network_open(model, NULL, &net, &why), RFX_CODE_REFUSED);
        assert_non_null(strstr(why.text, paths[i]));
        assert_int_equal(rfx_picture_size(model, &rows, &columns, NULL, &why), RFX_CODE_REFUSED);
        assert_non_null(strstr(why.text, paths[i]));
    }
    assert_int_equal(rmdir(paths[0]), 0);
    assert_int_equal(unlink(paths[1]), 0);
}

static void test_refused_models(void **state) {
    static const struct {
        const char *model, *words;
    } cases[] = {
        {"no_such_network", "no_such_network"},
        {"squeezenet1_2", "squeezenet1_1"}, /* the nearest name */
        {"/no/such/folder/net.onnx", "No such file"},
        {RFX_SOURCE_DIR "/README.md", "README.md"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rfx_network *net = NULL;
        struct rfx_why why;
        enum rfx_code code = rfx_network_open(cases[i].model, NULL, &net, &why);
        if (code != RFX_CODE_REFUSED || strstr(why.text, cases[i].words) == NULL)
            fail_msg("%s: code %d: %s", cases[i].model, (int)code, why.text);
        assert_null(net);
        assert_int_equal(rfx_network_open(cases[i].model, NULL, &net, NULL), RFX_CODE_REFUSED);
    }
}

static void test_refused_pictures(void **state) {
    static const struct {
        const char *picture, *words;
    } cases[] = {
        {"/no/such/picture.png", "/no/such/picture.png"},
        {RFX_SOURCE_DIR "/README.md", "README.md"},
        {"synthetic:17x16", "17"}, /* another size than the network's */
    };
    struct rfx_network *net = network_open_sized("fsrcnn:2", 16, 16);
    struct network_outputs out = network_outputs_for(net);
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rfx_forecast forecast = {.size = sizeof forecast};
        struct rfx_why why;
        assert_int_equal(rfx_network_run_file(net, cases[i].picture, out.values, 1, NULL, &why),
                         RFX_CODE_REFUSED);
        assert_non_null(strstr(why.text, cases[i].words));
        assert_int_equal(rfx_network_predict(net, cases[i].picture, NULL, &forecast, &why),
                         RFX_CODE_REFUSED);
        assert_int_equal(forecast.peak_bytes, 0);
    }
    network_outputs_free(&out);
    rfx_network_free(net);
}

static void test_picture_size(void **state) {
    static const char file[] = "test_network_size.npy";
    int64_t rows = 0, columns = 0, channels = 0;
    struct rfx_why why;
    float *values = network_random_image(5, 7, 11);
    (void)state;
    network_write_npy(file, values, 5, 7, 11);
    network_check(rfx_picture_size(file, &rows, &columns, &channels, &why), &why);
    assert_true(rows == 7 && columns == 11 && channels == 5);
    network_check(rfx_picture_size("synthetic:33x21", &rows, &columns, NULL, &why), &why);
    assert_true(rows == 33 && columns == 21);
    assert_int_equal(rfx_picture_size("/no/such.png", &rows, &columns, NULL, &why),
                     RFX_CODE_REFUSED);
    assert_true(rows == 33 && columns == 21);
    (void)unlink(file);
    free(values);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_null),
        cmocka_unit_test(test_no_files),
        cmocka_unit_test(test_wrong_arguments),
        cmocka_unit_test(test_refused_models),
        cmocka_unit_test(test_refused_pictures),
        cmocka_unit_test(test_picture_size),
    };
    return cmocka_run_group_tests_name("network_refusals", tests, NULL, NULL);
}
