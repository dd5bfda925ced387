/* Networks whose model is in memory: the bits of the file's, the bytes counted, refusals, and every
 * allocation failing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rfexec/api/network.h"
#include "rfexec/run/model.h"
#include "tests/support/run/network_run.h"

enum { ROWS = 64, COLUMNS = 80 };
static const char model_path[] = RFX_SOURCE_DIR "/data/defect_net.onnx";

/* The file in a block of its very size, so that a sanitizer sees a read behind it. */
static unsigned char *read_model(size_t *size) {
    FILE *file = fopen(model_path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *size = (size_t)ftell(file);
    rewind(file);
    unsigned char *bytes = malloc(*size);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    (void)fclose(file);
    return bytes;
}

static struct rfx_open_options sized(void) {
    struct rfx_open_options options;
    rfx_open_options_init(&options, sizeof options);
    options.rows = ROWS;
    options.columns = COLUMNS;
    return options;
}

static size_t reserve_of(struct rfx_network *net) {
    const struct rfx_run_options options = network_run_options(0, 1);
    struct rfx_forecast forecast = {.size = sizeof forecast};
    struct rfx_why why;
    network_check(rfx_network_predict(net, NULL, &options, &forecast, &why), &why);
    return forecast.reserve_bytes;
}

static void test_runs_as_the_file(void **state) {
    const struct rfx_open_options open = sized();
    struct rfx_network *net = NULL, *file = network_open_sized(model_path, ROWS, COLUMNS);
    struct rfx_why why;
    size_t size;
    unsigned char *bytes = read_model(&size);
    float *values = network_random_image(3, ROWS, COLUMNS);
    struct network_outputs want = network_outputs_for(file), got = network_outputs_for(file);
    (void)state;
    network_check(rfx_network_open_memory(bytes, size, &open, &net, &why), &why);
    network_check(rfx_network_run_values(file, values, want.values, want.n, NULL, &why), &why);
    network_check(rfx_network_run_values(net, values, got.values, got.n, NULL, &why), &why);
    network_assert_same(&got, &want);
    assert_string_equal(rfx_network_output_name(net, 0), rfx_network_output_name(file, 0));
    assert_int_equal(reserve_of(net), reserve_of(file) + size);
    /* The smallest budget holds for both, and is larger by the bytes. */
    size_t least = network_least_bytes(net, NULL, 2);
    assert_int_equal(least, network_least_bytes(file, NULL, 2) + size);
    struct rfx_run_options options = network_run_options(least, 2);
    memset(got.values[0], 0xff, (size_t)got.elems[0] * sizeof(float));
    network_check(rfx_network_run_values(net, values, got.values, got.n, &options, &why), &why);
    network_assert_same(&got, &want);
    network_outputs_free(&want);
    network_outputs_free(&got);
    free(values);
    rfx_network_free(net);
    rfx_network_free(file);
    free(bytes);
}

static void test_refusals(void **state) {
    const struct rfx_open_options open = sized();
    struct rfx_network *net = NULL;
    struct rfx_why why;
    (void)state;
    assert_int_equal(rfx_network_open_memory(NULL, 3, NULL, &net, &why), RFX_CODE_USAGE);
    assert_int_equal(rfx_network_open_memory("", 0, &open, &net, &why), RFX_CODE_REFUSED);
    assert_non_null(strstr(why.text, "empty"));
    assert_int_equal(rfx_network_open_memory("\x89PNG\r\n\x1a\n", 8, &open, &net, &why),
                     RFX_CODE_REFUSED);
    assert_non_null(strstr(why.text, "model in memory"));
    assert_null(net);
}

/* A model that breaks off anywhere is refused, or, where only what is not needed is missing, runs.
 */
static void test_beginnings(void **state) {
    enum { PLACES = 150 };
    const struct rfx_open_options open = sized();
    size_t size;
    unsigned char *bytes = read_model(&size);
    int refused = 0;
    (void)state;
    for (int i = 0; i < PLACES; i++) {
        size_t n = i < PLACES / 3 ? (size_t)i + 1 : size * (size_t)i / PLACES;
        unsigned char *begun = malloc(n);
        struct rfx_network *net = NULL;
        struct rfx_why why;
        assert_non_null(begun);
        memcpy(begun, bytes, n);
        enum rfx_code code = rfx_network_open_memory(begun, n, &open, &net, &why);
        assert_true(code == RFX_CODE_OK || code == RFX_CODE_REFUSED);
        refused += code == RFX_CODE_REFUSED;
        rfx_network_free(net);
        free(begun);
    }
    assert_in_range(refused, PLACES - 5, PLACES);
    free(bytes);
}

static void test_no_memory(void **state) {
    const struct rfx_load_options options = {.h = ROWS, .w = COLUMNS};
    size_t size;
    unsigned char *bytes = read_model(&size);
    int failures = 0;
    (void)state;
    for (int64_t k = 0;; k++) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_graph *graph = NULL;
        struct rfx_error err = {{0}};
        rfx_memory_fail_after(mem, k);
        enum rfx_status status = rfx_onnx_load_bytes(mem, bytes, size, &options, &graph, &err);
        rfx_graph_free(graph);
        rfx_memory_free(mem); /* asserts that nothing is left */
        if (status == RFX_OK) break;
        assert_int_equal(status, RFX_STATUS_OUT_OF_MEMORY);
        failures++;
    }
    assert_true(failures > 20);
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs_as_the_file),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_beginnings),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests_name("network in memory", tests, NULL, NULL);
}
