/* Outputs that come through the sink, without a session: file, hash, and parts that are missing or
 * too many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/random/small_nets.h"
#include "tests/support/test_util.h"
#include "tools/cli/command.h"
#include "tools/cli/outputs.h"

enum { C = 3, H = 7, W = 5, N = C * H * W };

static char message[512];

void rfx_cli_message(const char *format, ...) {
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
}

int rfx_cli_fail(enum rfx_status status, const struct rfx_error *err) {
    (void)snprintf(message, sizeof message, "%s", err->text);
    return status == RFX_STATUS_INVALID_ARGUMENT ? RFX_EXIT_USAGE : RFX_EXIT_SYSTEM;
}

struct fixture {
    struct rfx_memory *mem;
    struct rfx_graph *graph;
    struct rfx_cli_run_options options;
    struct rfx_cli_outputs outputs;
    float nchw[N], nhwc[N];
    struct rfx_view view;
};

static void set_up(struct fixture *f, const char *path) {
    *f = (struct fixture){.mem = rfx_memory_create(0)};
    f->graph = small_net_two_convs(f->mem, 2 * H, 2 * W); /* its output is 3 x 7 x 5 */
    f->options.output.file = path;
    struct test_rng rng = test_rng_make(9);
    test_rng_fill(&rng, f->nchw, N, -1.0f, 1.0f);
    test_nchw_to_nhwc(f->nchw, f->nhwc, C, H, W);
    f->view = rfx_view_dense(f->nhwc, rfx_rect_full(H, W), C);
    assert_int_equal(rfx_cli_outputs_check(f->graph, &f->options), RFX_EXIT_DONE);
    assert_int_equal(rfx_cli_outputs_open(f->mem, f->graph, &f->options, NULL, &f->outputs, NULL),
                     RFX_OK);
    assert_int_equal(f->outputs.count, 1);
}

static void tear_down(struct fixture *f) {
    rfx_cli_outputs_free(&f->outputs);
    rfx_cli_outputs_free(&f->outputs); /* zeroed by now */
    rfx_graph_free(f->graph);
    rfx_memory_free(f->mem);
}

static enum rfx_status give(struct fixture *f, struct rfx_rect rect, struct rfx_error *err) {
    const struct rfx_output_sink sink = rfx_cli_outputs_sink(&f->outputs);
    const struct rfx_tensor *t = f->outputs.items[0].tensor;
    const struct rfx_end end = {.channels = t->c, .at = {0, t->w, 1, t->h * t->w}};
    return sink.write(sink.user, &end, rect, &f->view, err);
}

static const struct rfx_rect left = {0, H, 0, 2}, right = {0, H, 2, W};

static void strips_become_file_and_hash(void **state) {
    (void)state;
    struct fixture f;
    set_up(&f, "outputs_tmp.npy");
    assert_int_equal(give(&f, right, NULL), RFX_OK);
    assert_int_equal(give(&f, left, NULL), RFX_OK);
    assert_int_equal(access("outputs_tmp.npy", F_OK), -1);
    assert_int_equal(rfx_cli_outputs_finish(&f.outputs, NULL), RFX_OK);
    struct rfx_fingerprint whole = {0};
    char hex[RFX_FINGERPRINT_CHARS];
    rfx_fingerprint_add(&whole, RFX_TYPE_FLOAT32, 0, f.nchw, N);
    rfx_fingerprint_hex(&whole, hex);
    assert_string_equal(f.outputs.items[0].hash, hex);
    tear_down(&f);
    float got[N + 1];
    FILE *file = fopen("outputs_tmp.npy", "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 128, SEEK_SET), 0);
    assert_int_equal(fread(got, sizeof *got, N + 1, file), N);
    (void)fclose(file);
    assert_memory_equal(got, f.nchw, sizeof f.nchw);
    assert_int_equal(unlink("outputs_tmp.npy"), 0);
}

static void missing_parts_leave_no_file(void **state) {
    (void)state;
    struct fixture f;
    struct rfx_error err = {""};
    set_up(&f, "outputs_tmp.tif");
    assert_int_equal(give(&f, left, NULL), RFX_OK);
    assert_int_equal(rfx_cli_outputs_finish(&f.outputs, &err), RFX_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "42 of 105 elements"));
    tear_down(&f);
    assert_int_equal(access("outputs_tmp.tif", F_OK), -1);
}

static void parts_that_come_twice_are_refused(void **state) {
    (void)state;
    struct fixture f;
    struct rfx_error err = {""};
    set_up(&f, NULL);
    assert_int_equal(give(&f, left, NULL), RFX_OK);
    assert_int_equal(give(&f, right, NULL), RFX_OK);
    assert_int_equal(give(&f, left, &err), RFX_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "42 elements after 105 of 105"));
    tear_down(&f);
}

static void what_does_not_suit_is_said(void **state) {
    (void)state;
    struct fixture f;
    set_up(&f, NULL);
    f.options.output.file = "map.bmp";
    assert_int_equal(rfx_cli_outputs_check(f.graph, &f.options), RFX_EXIT_USAGE);
    assert_non_null(strstr(
        message,
        ".npy, .tif, .ome.tif, .png, .zarr, .ome.zarr, .pfm, .geojson, .csv, .json, .coco.json, "));
    f.options.output.file = "map.png";
    f.options.output.bits = 32;
    assert_int_equal(rfx_cli_outputs_check(f.graph, &f.options), RFX_EXIT_USAGE);
    assert_non_null(strstr(message, "output 'b'"));
    f.options.output.bits = 16;
    assert_int_equal(rfx_cli_outputs_check(f.graph, &f.options), RFX_EXIT_DONE);
    f.options.report.labels = "labels.txt";
    assert_int_equal(rfx_cli_outputs_check(f.graph, &f.options), RFX_EXIT_USAGE);
    assert_non_null(strstr(message, "1x3x7x5"));
    tear_down(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strips_become_file_and_hash),
        cmocka_unit_test(missing_parts_leave_no_file),
        cmocka_unit_test(parts_that_come_twice_are_refused),
        cmocka_unit_test(what_does_not_suit_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
