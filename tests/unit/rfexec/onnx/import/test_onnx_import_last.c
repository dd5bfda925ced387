/* Conversion of networks that hold their channels last, in whole or in part: Transposes there and
 * back are gone, and what stands between them works on maps, so that it streams. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "layers/graph/op.h"
#include "tests/support/makers/onnx_net.h"
#include "tests/support/test_util.h"

static struct maker graph, node;

static void begin(const int64_t *image) {
    static const int64_t three[] = {3}, row[] = {1, 1, 1, 3}, one[] = {1}, matrix[] = {3, 2};
    static const float values[6] = {1, 2, 3, 4, 5, 6};
    graph.size = 0;
    maker_value(&graph, MAKER_INPUT, "x", image, 4);
    maker_floats(&graph, "three", three, 1, values);
    maker_floats(&graph, "row", row, 4, values);
    maker_floats(&graph, "one", one, 1, values);
    maker_floats(&graph, "matrix", matrix, 2, values);
}

static void plain(const char *name, const char *in, const char *out) {
    maker_node(&node, name, in, out);
    maker_message(&graph, MAKER_NODE, &node);
}
static void transpose(const char *in, const char *out, bool to_last) {
    static const int64_t last[4] = {0, 2, 3, 1}, first[4] = {0, 3, 1, 2};
    maker_node(&node, "Transpose", in, out);
    maker_attr_ints(&node, "perm", to_last ? last : first, 4);
    maker_message(&graph, MAKER_NODE, &node);
}

static const int64_t first_image[] = {1, 3, 4, 5};

/* The block of ConvNeXt: a norm, two products with Gelu between them, scaled. */
static void block(void **state) {
    (void)state;
    static const int64_t back[] = {2, 3};
    static const float values[6] = {1, 2, 3, 4, 5, 6};
    static const enum rfx_op ops[] = {
        RFX_OP_CHANNEL_NORM, RFX_OP_CONV,   RFX_OP_AFFINE, RFX_OP_AFFINE, RFX_OP_ACTIVATION,
        RFX_OP_AFFINE,       RFX_OP_BINARY, RFX_OP_CONV,   RFX_OP_AFFINE, RFX_OP_BINARY};
    begin(first_image);
    maker_floats(&graph, "back", back, 2, values);
    transpose("x", "a", true);
    plain("LayerNormalization", "a three three", "b");
    plain("MatMul", "b matrix", "c");
    plain("Add", "one c", "d");
    plain("Gelu", "d", "e");
    plain("MatMul", "e back", "f");
    plain("Mul", "three f", "g");
    transpose("g", "h", false);
    plain("Add", "x h", "y");
    struct rfx_graph *out = onnx_net_unfused(&graph, 20);
    assert_int_equal(out->nodes[2].attr.conv.oc, 2);
    onnx_net_has(out, 10, ops);
}

/* The filters of a product are the columns of its matrix. */
static void filters(void **state) {
    (void)state;
    static const float columns[6] = {1, 3, 5, 2, 4, 6};
    static const enum rfx_op ops[] = {RFX_OP_CONV};
    float got[6];
    begin(first_image);
    transpose("x", "a", true);
    plain("MatMul", "a matrix", "b");
    transpose("b", "y", false);
    struct rfx_graph *out = onnx_net_unfused(&graph, 20);
    const struct rfx_weight *w = &out->weights[out->nodes[1].attr.conv.weight];
    test_read_weight(w, 0, 6, got);
    assert_memory_equal(got, columns, sizeof got);
    assert_int_equal(w->shape.dims[0], 2);
    onnx_net_has(out, 1, ops);
}

/* Constants of a value per channel are one, whatever their rank; others are no matter of channels:
 * as many values as channels, but along another axis. */
static void constants(void **state) {
    (void)state;
    static const int64_t square[] = {1, 3, 3, 3}, column[] = {3, 1};
    static const float values[3] = {1, 2, 3};
    static const enum rfx_op maps[] = {RFX_OP_AFFINE, RFX_OP_AFFINE, RFX_OP_BINARY},
                             whole[] = {RFX_OP_NHWC_AS_PLAIN, RFX_OP_CONST_PLAIN,
                                        RFX_OP_PLAIN_BINARY, RFX_OP_PLAIN_AS_NHWC};
    begin(square);
    transpose("x", "a", true);
    plain("Add", "a row", "b");
    plain("Mul", "three b", "c");
    plain("Sub", "a c", "d");
    transpose("d", "y", false);
    onnx_net_has(onnx_net_unfused(&graph, 20), 3, maps);
    begin(square);
    maker_floats(&graph, "column", column, 2, values);
    transpose("x", "a", true);
    plain("Add", "a column", "b");
    transpose("b", "y", false);
    onnx_net_has(onnx_net_unfused(&graph, 20), 4, whole);
}

static void assert_shape(const struct rfx_graph *net, int rank, const int64_t *dims) {
    const struct rfx_shape shape = rfx_output_shape(net, 0);
    assert_int_equal(shape.rank, rank);
    for (int i = 0; i < rank; i++) assert_int_equal(shape.dims[i], dims[i]);
}

/* Outputs of every shape that a map has without its axis of channels or of images, and what works
 * element by element behind those: all on the map. */
static void outputs(void **state) {
    (void)state;
    static const int64_t rows_columns[] = {4, 5}, planes[] = {3, 4, 5}, one[] = {1, 4, 5};
    begin(first_image);
    maker_node(&node, "ArgMax", "x", "a");
    maker_attr_int(&node, "axis", 1);
    maker_attr_int(&node, "keepdims", 0);
    maker_message(&graph, MAKER_NODE, &node);
    plain("Sqrt", "a", "b");
    plain("Greater", "b one", "y");
    struct rfx_graph *out = onnx_net_unfused(&graph, 20);
    assert_shape(out, 3, one);
    assert_int_equal(out->nodes[out->outputs[0].node].out.layout, RFX_LAYOUT_NHWC);
    onnx_net_discard(out);
    begin(first_image);
    plain("Relu", "x", "r");
    maker_node(&node, "Squeeze", "r zero", "a");
    maker_message(&graph, MAKER_NODE, &node);
    maker_ints(&graph, "zero", (const int64_t[]){0}, 1);
    plain("Neg", "a", "b");
    plain("Mul", "a b", "y");
    out = onnx_net_unfused(&graph, 20);
    assert_shape(out, 3, planes);
    onnx_net_discard(out);
    begin(first_image);
    maker_node(&node, "ReduceMax", "x", "a");
    maker_attr_ints(&node, "axes", (const int64_t[]){0, 1}, 2);
    maker_attr_int(&node, "keepdims", 0);
    maker_message(&graph, MAKER_NODE, &node);
    plain("Abs", "a", "y");
    out = onnx_net_unfused(&graph, 13);
    assert_shape(out, 2, rows_columns);
    onnx_net_discard(out);
}

/* An image (1, h, w, c): its size is read as that, also behind arithmetic on its values or their
 * conversions, and what
 * leaves with its channels last is a map that is stored so. */
static void image(void **state) {
    (void)state;
    static const int64_t last[] = {1, 4, 5, 3};
    static const enum rfx_op ops[] = {RFX_OP_AFFINE, RFX_OP_ACTIVATION, RFX_OP_SOFTMAX};
    begin(last);
    plain("Sub", "x three", "a");
    transpose("a", "b", false);
    plain("Relu", "b", "c");
    transpose("c", "d", true);
    plain("Softmax", "d", "y");
    struct rfx_graph *out = onnx_net_unfused(&graph, 20);
    const struct rfx_tensor *t = &out->nodes[out->input].out;
    assert_int_equal(t->c, 3);
    assert_int_equal(t->h, 4);
    assert_int_equal(t->w, 5);
    assert_true(out->outputs[0].stored.last);
    assert_shape(out, 4, last);
    onnx_net_has(out, 3, ops);
    begin(last);
    plain("QuantizeLinear", "x one", "a");
    plain("DequantizeLinear", "a one", "b");
    transpose("b", "y", false);
    out = onnx_net_unfused(&graph, 20);
    assert_int_equal(out->nodes[out->input].out.c, 3);
    onnx_net_discard(out);
    begin(first_image);
    plain("Relu", "x", "a");
    transpose("a", "y", false); /* moves rows, not channels: no sign of an image with those last */
    out = onnx_net_unfused(&graph, 20);
    assert_int_equal(out->nodes[out->input].out.c, 3);
    onnx_net_discard(out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(block), cmocka_unit_test(filters), cmocka_unit_test(constants),
        cmocka_unit_test(image), cmocka_unit_test(outputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
