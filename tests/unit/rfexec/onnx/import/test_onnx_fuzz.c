/* Truncated and corrupted models: a clear status, never a crash, nothing left behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "rfexec/run/model.h"
#include "tests/support/makers/onnx_maker.h"

#define MODEL_PATH "test_onnx_fuzz.onnx"
#define CASES 600

static struct maker graph, node, model, broken;

static void add(void) {
    maker_message(&graph, MAKER_NODE, &node);
}

/* Conv, shape arithmetic, Reshape, Transpose, Softmax: enough to reach most of the reader. */
static void make_model(void) {
    static const int64_t image[] = {1, 3, 8, 8}, weight[] = {2, 3, 3, 3}, perm[] = {0, 2, 3, 1},
                         shape[] = {0, -1}, start = 0, end = 1;
    static const float values[54];
    graph.size = 0;
    maker_value(&graph, MAKER_INPUT, "image", image, 4);
    maker_floats(&graph, "k", weight, 4, values);
    maker_ints(&graph, "shape", shape, 2);
    maker_ints(&graph, "lo", &start, 1);
    maker_ints(&graph, "hi", &end, 1);
    maker_node(&node, "Conv", "image k", "c");
    maker_attr_int(&node, "group", 1);
    add();
    maker_node(&node, "MaxPool", "c", "p");
    maker_attr_ints(&node, "kernel_shape", weight + 2, 2);
    add();
    maker_node(&node, "Slice", "p lo hi hi", "s");
    add();
    maker_node(&node, "Transpose", "s", "t");
    maker_attr_ints(&node, "perm", perm, 4);
    add();
    maker_node(&node, "Reshape", "t shape", "y");
    add();
    maker_value(&graph, MAKER_OUTPUT, "y", NULL, 0);
    maker_model(&graph, 13, &model);
}

static uint32_t next_random(uint32_t *seed) {
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* Loads `broken`; true when it loaded all the same. */
static int load_broken(int number) {
    struct rfx_memory *mem = rfx_memory_create((size_t)256 << 20);
    struct rfx_graph *loaded = NULL;
    struct rfx_error err = {""};
    struct rfx_load_options options = {0};
    maker_save(&broken, MODEL_PATH);
    enum rfx_status status = rfx_onnx_load(mem, MODEL_PATH, &options, &loaded, &err);
    int fine = status == RFX_OK || status == RFX_STATUS_MALFORMED ||
               status == RFX_STATUS_UNSUPPORTED || status == RFX_STATUS_OUT_OF_MEMORY;
    if (!fine || (status != RFX_OK && err.text[0] == '\0'))
        fail_msg("case %d: status %s, text '%s'", number, rfx_status_name(status), err.text);
    rfx_graph_free(loaded);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
    return status == RFX_OK;
}

static void intact_model_loads(void **state) {
    (void)state;
    make_model();
    broken = model;
    assert_true(load_broken(-1));
}

static void truncations_are_refused(void **state) {
    (void)state;
    make_model();
    for (size_t cut = 1; cut < model.size; cut += 3) {
        broken = model;
        broken.size = cut;
        assert_false(load_broken((int)cut));
    }
}

static void mutations_never_crash(void **state) {
    (void)state;
    uint32_t seed = 20240;
    make_model();
    int loaded = 0;
    for (int i = 0; i < CASES; i++) {
        broken = model;
        uint32_t changes = 1 + next_random(&seed) % 4;
        for (uint32_t k = 0; k < changes; k++) {
            size_t at = next_random(&seed) % broken.size;
            broken.bytes[at] = (uint8_t)next_random(&seed);
        }
        loaded += load_broken(i);
    }
    assert_true(loaded < CASES);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(intact_model_loads),
        cmocka_unit_test(truncations_are_refused),
        cmocka_unit_test(mutations_never_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
