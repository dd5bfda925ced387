/* Conversion of convolutions that are not of two dimensions but can be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "layers/graph/graph.h"
#include "rfexec/session/model.h"
#include "tests/support/makers/onnx_maker.h"

#define MODEL_PATH "test_onnx_import_conv.onnx"

static struct maker graph, node, model;

/* r: 4 channels of 6 x 10 */
static void begin(void) {
    static const int64_t image[] = {1, 4, 6, 10};
    graph.size = 0;
    maker_value(&graph, MAKER_INPUT, "image", image, 4);
    maker_node(&node, "Relu", "image", "r");
    maker_message(&graph, MAKER_NODE, &node);
}

static void add(void) {
    maker_message(&graph, MAKER_NODE, &node);
}

static enum rfx_status load(struct rfx_memory *mem, struct rfx_graph **out, struct rfx_error *err) {
    struct rfx_load_options options = {0};
    maker_value(&graph, MAKER_OUTPUT, "y", NULL, 0);
    maker_model(&graph, 17, &model);
    maker_save(&model, MODEL_PATH);
    enum rfx_status status = rfx_onnx_load(mem, MODEL_PATH, &options, out, err);
    (void)unlink(MODEL_PATH);
    return status;
}

/* A row is a map of height 1. */
static void one_dimension(void **state) {
    (void)state;
    static const int64_t row[] = {1, 4, 60}, filters[] = {3, 4, 5}, pads[] = {1, 2}, stride = 2;
    static const float values[60] = {1};
    begin();
    maker_ints(&graph, "row", row, 3);
    maker_floats(&graph, "f", filters, 3, values);
    maker_node(&node, "Reshape", "r row", "a");
    add();
    maker_node(&node, "Conv", "a f", "y");
    maker_attr_ints(&node, "pads", pads, 2);
    maker_attr_ints(&node, "strides", &stride, 1);
    add();
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *loaded = NULL;
    struct rfx_error err = {""};
    if (load(mem, &loaded, &err) != RFX_OK) fail_msg("%s", err.text);
    const struct rfx_shape *shape = &loaded->nodes[loaded->n_nodes - 1].out.shape;
    assert_int_equal(shape->rank, 3);
    assert_int_equal(shape->dims[1], 3);
    assert_int_equal(shape->dims[2], 30); /* (60 + 3 - 5) / 2 + 1 */
    rfx_graph_free(loaded);
    rfx_memory_free(mem);
}

/* Three dimensions of depth 1 are two: nothing is held whole. */
static void depth_of_one(void **state) {
    (void)state;
    static const int64_t filters[] = {4, 4, 1, 3, 3}, deep[] = {4, 4, 2, 3, 3},
                         pads[] = {0, 1, 1, 0, 1, 1}, two = 2;
    static const float values[288] = {1};
    for (int d = 1; d <= 2; d++) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_graph *loaded = NULL;
        struct rfx_error err = {""};
        begin();
        maker_ints(&graph, "two", &two, 1);
        maker_floats(&graph, "f", d == 1 ? filters : deep, 5, values);
        maker_node(&node, "Unsqueeze", "r two", "a");
        add();
        maker_node(&node, "Conv", "a f", "b");
        maker_attr_ints(&node, "pads", pads, 6);
        add();
        maker_node(&node, "Squeeze", "b two", "y");
        add();
        enum rfx_status status = load(mem, &loaded, &err);
        assert_int_equal(status, d == 1 ? RFX_OK : RFX_STATUS_UNSUPPORTED);
        if (d == 2) assert_non_null(strstr(err.text, "weights of rank 5 and depth 2"));
        for (int i = 0; d == 1 && i < loaded->n_nodes; i++)
            assert_int_equal(loaded->nodes[i].out.layout, RFX_LAYOUT_NHWC);
        rfx_graph_free(loaded);
        rfx_memory_free(mem);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_dimension),
                                       cmocka_unit_test(depth_of_one)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
