/* The library and the program on the same networks and pictures: the same fingerprints, the same
 * predictions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tiff.h>

#include <cmocka.h>

#include "cli_program.h"
#include "rfexec/output/fingerprint.h"
#include "rfexec/rfexec.h"
#include "tests/support/makers/tiff_maker.h"

enum { MOST_OUTPUTS = 8 };

/* The plan's peak and the outputs' hashes in the program's document hold for this run. */
static void compare(struct rfx_network *net, const char *picture,
                    const struct rfx_run_options *given, json_t *doc) {
    struct rfx_run_options options = *given;
    struct rfx_forecast forecast = {.size = sizeof forecast};
    struct rfx_why why;
    float *values[MOST_OUTPUTS];
    int n = rfx_network_output_count(net);
    options.threads = 1;
    assert_in_range(n, 1, MOST_OUTPUTS);
    for (int k = 0; k < n; k++)
        values[k] = malloc((size_t)rfx_network_output_elements(net, k) * sizeof(float));
    if (rfx_network_predict(net, picture, &options, &forecast, &why) != RFX_CODE_OK ||
        rfx_network_run_file(net, picture, values, n, &options, &why) != RFX_CODE_OK)
        fail_msg("%s", why.text);
    assert_int_equal(forecast.peak_bytes, integer_at(doc, "plan.peak_bytes"));
    assert_int_equal(forecast.macs, integer_at(doc, "plan.macs"));
    assert_string_equal(forecast.plan, json_string_value(at(doc, "plan.text")));
    json_t *outputs = at(doc, "outputs");
    assert_int_equal(json_array_size(outputs), n);
    for (int k = 0; k < n; k++) {
        struct rfx_fingerprint fp = {0};
        char hash[RFX_FINGERPRINT_CHARS];
        json_t *output = json_array_get(outputs, (size_t)k);
        rfx_fingerprint_add(&fp, RFX_TYPE_FLOAT32, 0, values[k],
                            rfx_network_output_elements(net, k));
        rfx_fingerprint_hex(&fp, hash);
        assert_string_equal(hash, json_string_value(json_object_get(output, "hash")));
        assert_string_equal(rfx_network_output_name(net, k),
                            json_string_value(json_object_get(output, "name")));
        free(values[k]);
    }
}

static void test_same_as_program(void **state) {
    static const char *const memories[] = {"", " --memory 12MiB"};
    static const size_t bytes[] = {0, 12 << 20};
    static const struct {
        const char *model, *picture;
    } cases[] = {{"fsrcnn", "synthetic:61x47:3"}, {"posenet", "synthetic:97x113"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (size_t m = 0; m < sizeof bytes / sizeof bytes[0]; m++) {
            struct rfx_open_options open;
            struct rfx_network *net = NULL;
            struct rfx_why why;
            char args[200];
            (void)snprintf(args, sizeof args, "run %s %s --threads 1 --json%s", cases[i].model,
                           cases[i].picture, memories[m]);
            expect(0, args);
            json_t *doc = document("run");
            rfx_open_options_init(&open, sizeof open);
            if (rfx_picture_size(cases[i].picture, &open.rows, &open.columns, NULL, &why) != 0 ||
                rfx_network_open(cases[i].model, &open, &net, &why) != RFX_CODE_OK)
                fail_msg("%s", why.text);
            struct rfx_run_options options;
            rfx_run_options_init(&options, sizeof options);
            options.memory_bytes = bytes[m];
            compare(net, cases[i].picture, &options, doc);
            rfx_network_free(net);
            json_decref(doc);
        }
}

/* Runs the program with arguments and the library with options that should say the same. */
static void compare_choice(const char *picture, const char *args,
                           const struct rfx_run_options *options, int64_t rows, int64_t columns) {
    struct rfx_open_options open;
    struct rfx_network *net = NULL;
    struct rfx_why why;
    char command[200];
    int64_t channels;
    (void)snprintf(command, sizeof command, "run fsrcnn %s %s --threads 1 --json", picture, args);
    expect(0, command);
    json_t *doc = document("run");
    rfx_open_options_init(&open, sizeof open);
    if (rfx_picture_size_with(picture, options, &open.rows, &open.columns, &channels, &why) != 0 ||
        rfx_network_open("fsrcnn", &open, &net, &why) != RFX_CODE_OK)
        fail_msg("%s", why.text);
    assert_true(open.rows == rows && open.columns == columns && channels == 3);
    compare(net, picture, options, doc);
    rfx_network_free(net);
    json_decref(doc);
}

/* Pages, bands and orientation. */
static void test_choices(void **state) {
    static const int bands[] = {4, 2, 2};
    struct tiff_maker pages[2] = {tiff_maker_of(3, COMPRESSION_NONE), /* RGBA */
                                  tiff_maker_of(3, COMPRESSION_NONE)};
    struct rfx_run_options options;
    struct rfx_why why;
    int64_t rows, columns;
    (void)state;
    pages[1].h = 24;
    pages[1].w = 31;
    pages[1].orientation = 6; /* on its side */
    pages[0].rows = pages[1].rows = 8;
    assert_true(tiff_maker_write_pages(pages, 2, "choices.tif"));
    rfx_run_options_init(&options, sizeof options);
    compare_choice("choices.tif", "", &options, pages[0].h, pages[0].w);
    options.page = 1;
    compare_choice("choices.tif", "--page 1", &options, 31, 24);
    options.as_stored = 1;
    compare_choice("choices.tif", "--page 1 --no-orient", &options, 24, 31);
    options.channels = bands;
    options.n_channels = 3;
    compare_choice("choices.tif", "--page 1 --no-orient --channels 4,2,2", &options, 24, 31);
    options.page = 2;
    assert_int_equal(rfx_picture_size_with("choices.tif", &options, &rows, &columns, NULL, &why),
                     RFX_CODE_REFUSED);
    assert_non_null(strstr(why.text, "choices.tif"));
    options.page = -1;
    assert_int_equal(rfx_picture_size_with("choices.tif", &options, &rows, &columns, NULL, &why),
                     RFX_CODE_USAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_as_program),
                                       cmocka_unit_test(test_choices)};
    return cmocka_run_group_tests_name("embedding", tests, NULL, NULL);
}
