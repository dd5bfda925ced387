/* Outputs in the element type that a model declares (rfx_run_options.typed_outputs) beside the same
 * outputs as floats, on whole maps, under the smallest budget, and by a runner. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "rfexec/rfexec.h"
#include "tests/support/makers/onnx_maker.h"

enum { C = 3, H = 40, W = 31, N = C * H * W, ONNX_UINT8 = 2, N_OUTPUTS = 4 };

static const char *const types[N_OUTPUTS] = {"int64", "bool", "uint8", "float32"};

static struct rfx_network *network(void) {
    static struct maker graph, model;
    static const int64_t image[] = {1, C, H, W}, single[] = {1};
    static const float bound[] = {100.0f};
    static const char *const names[N_OUTPUTS] = {"labels", "above", "bytes", "y"};
    struct rfx_network *net = NULL;
    struct rfx_why why;
    memset(&graph, 0, sizeof graph);
    memset(&model, 0, sizeof model);
    maker_value(&graph, 11, "x", image, 4);
    maker_floats(&graph, "bound", single, 1, bound);
    maker_add_int(&graph, "ArgMax", "x", "labels", "axis", 1);
    maker_add(&graph, "Greater", "x bound", "above");
    maker_add_int(&graph, "Cast", "x", "bytes", "to", ONNX_UINT8);
    maker_add(&graph, "Relu", "x", "y");
    for (int k = 0; k < N_OUTPUTS; k++) { /* without a type: that of the tensor */
        static struct maker value;
        value.size = 0;
        maker_text(&value, 1, names[k]);
        maker_message(&graph, MAKER_OUTPUT, &value);
    }
    maker_model(&graph, 17, &model);
    if (rfx_network_open_memory(model.bytes, model.size, NULL, &net, &why) != RFX_CODE_OK)
        fail_msg("%s", why.text);
    for (int k = 0; k < N_OUTPUTS; k++)
        assert_string_equal(rfx_network_output_type(net, k), types[k]);
    return net;
}

struct typed {
    int64_t labels[H * W + 1];
    uint8_t above[N + 1], bytes[N + 1];
    float values[N + 1];
};

/* The same numbers, and nothing behind the last one. */
static void check(const struct typed *got, float *const *want) {
    int64_t seen[3] = {0};
    for (int i = 0; i < H * W; i++) {
        assert_int_equal(got->labels[i], (int64_t)want[0][i]);
        seen[got->labels[i]]++;
    }
    assert_true(seen[0] > 0 && seen[1] > 0 && seen[2] > 0);
    for (int i = 0; i < N; i++) {
        assert_int_equal(got->above[i], want[1][i] != 0.0f);
        assert_int_equal(got->bytes[i], (int)want[2][i]);
    }
    assert_memory_equal(got->values, want[3], N * sizeof(float));
    assert_int_equal(got->labels[H * W], -7);
    assert_int_equal(got->above[N], 77);
    assert_int_equal(got->bytes[N], 77);
}

static void as_declared(void **state) {
    (void)state;
    static float values[N], labels[H * W], above[N], bytes[N], relu[N];
    static struct typed got;
    float *const want[N_OUTPUTS] = {labels, above, bytes, relu};
    float *const typed[N_OUTPUTS] = {(float *)(void *)got.labels, (float *)(void *)got.above,
                                     (float *)(void *)got.bytes, got.values};
    struct rfx_network *net = network();
    struct rfx_runner *runner = NULL;
    struct rfx_run_options options;
    struct rfx_why why;
    for (int i = 0; i < N; i++) values[i] = (float)(i * 37 % 251);
    assert_int_equal(rfx_network_run_values(net, values, want, N_OUTPUTS, NULL, &why), 0);
    rfx_run_options_init(&options, sizeof options);
    assert_int_equal(options.typed_outputs, 0);
    options.typed_outputs = 1;
    for (int way = 0; way < 3; way++) {
        const struct rfx_source source = {.size = sizeof source, .values = values};
        memset(&got, 0, sizeof got);
        got.labels[H * W] = -7;
        got.above[N] = got.bytes[N] = 77;
        if (way == 2) {
            assert_int_equal(rfx_runner_create(net, NULL, &runner, &why), 0);
            assert_int_equal(rfx_runner_run(runner, &source, typed, N_OUTPUTS, &options, &why), 0);
            rfx_runner_free(runner);
        } else {
            options.memory_bytes = way == 1 ? (size_t)64 << 20 : 0;
            options.threads = way + 1;
            assert_int_equal(rfx_network_run_values(net, values, typed, N_OUTPUTS, &options, &why),
                             0);
        }
        check(&got, want);
    }
    rfx_network_free(net);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_declared)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
