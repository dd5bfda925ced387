/* Conversion of convolutions that are not of two dimensions but can be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "layers/graph/graph.h"
#include "tests/support/makers/onnx_net.h"

static struct maker graph, node;

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
    struct rfx_graph *loaded = onnx_net_loaded(&graph, 17);
    const struct rfx_shape *shape = &loaded->nodes[loaded->n_nodes - 1].out.shape;
    assert_int_equal(shape->rank, 3);
    assert_int_equal(shape->dims[1], 3);
    assert_int_equal(shape->dims[2], 30); /* (60 + 3 - 5) / 2 + 1 */
    onnx_net_discard(loaded);
}

/* Three dimensions of depth 1 are two: nothing is held whole. */
static void depth_of_one(void **state) {
    (void)state;
    static const int64_t filters[] = {4, 4, 1, 3, 3}, deep[] = {4, 4, 2, 3, 3},
                         pads[] = {0, 1, 1, 0, 1, 1}, two = 2;
    static const float values[288] = {1};
    for (int d = 1; d <= 2; d++) {
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
        if (d == 2) {
            onnx_net_refused(&graph, 17, RFX_STATUS_UNSUPPORTED, "depth, rows and columns");
            continue;
        }
        struct rfx_graph *loaded = onnx_net_loaded(&graph, 17);
        for (int i = 0; i < loaded->n_nodes; i++)
            assert_int_equal(loaded->nodes[i].out.layout, RFX_LAYOUT_NHWC);
        onnx_net_discard(loaded);
    }
}

/* A batch that a Reshape makes: FusedConv gives one result per image. */
static void fused_batch(void **state) {
    (void)state;
    static const int64_t images[] = {2, 2, 6, 10}, filters[] = {3, 2, 3, 3};
    static const float values[54] = {1};
    begin();
    maker_ints(&graph, "images", images, 4);
    maker_floats(&graph, "f", filters, 4, values);
    maker_node(&node, "Reshape", "r images", "a");
    add();
    maker_node(&node, "FusedConv", "a f", "y");
    maker_text(&node, 7, "com.microsoft"); /* domain */
    maker_attr_text(&node, "activation", "Relu");
    add();
    struct rfx_graph *loaded = onnx_net_loaded(&graph, 17);
    const struct rfx_shape shape = rfx_output_shape(loaded, 0), want = {4, {2, 3, 4, 8}};
    assert_int_equal(shape.rank, 4);
    assert_memory_equal(shape.dims, want.dims, 4 * sizeof *want.dims);
    onnx_net_discard(loaded);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_dimension),
                                       cmocka_unit_test(fused_batch),
                                       cmocka_unit_test(depth_of_one)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
