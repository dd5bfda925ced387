/* The library and the program on the same networks and pictures: the same fingerprints, the same
 * predictions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli_program.h"
#include "rfexec/output/fingerprint.h"
#include "rfexec/rfexec.h"

enum { MOST_OUTPUTS = 8 };

/* The plan's peak and the outputs' hashes in the program's document hold for this run. */
static void compare(struct rfx_network *net, const char *picture, size_t memory_bytes,
                    json_t *doc) {
    struct rfx_run_options options;
    struct rfx_forecast forecast = {.size = sizeof forecast};
    struct rfx_why why;
    float *values[MOST_OUTPUTS];
    int n = rfx_network_output_count(net);
    rfx_run_options_init(&options, sizeof options);
    options.memory_bytes = memory_bytes;
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
        struct rfx_fingerprint fp = {0, 0};
        char hash[RFX_FINGERPRINT_CHARS];
        json_t *output = json_array_get(outputs, (size_t)k);
        rfx_fingerprint_add(&fp, 0, values[k], rfx_network_output_elements(net, k));
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
            compare(net, cases[i].picture, bytes[m], doc);
            rfx_network_free(net);
            json_decref(doc);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_as_program)};
    return cmocka_run_group_tests_name("embedding", tests, NULL, NULL);
}
