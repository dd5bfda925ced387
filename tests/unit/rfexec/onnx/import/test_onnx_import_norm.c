/* Conversion of norms: each form that exporters write becomes operators on maps, none of which
 * needs a whole tensor; what has no form is refused in words. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "layers/graph/op.h"
#include "tests/support/makers/onnx_net.h"

static struct maker graph, node;

static void begin(void) {
    static const int64_t image[] = {1, 6, 4, 5}, six[] = {6}, each[] = {6, 1, 1}, two[] = {2};
    static const float values[6] = {1, 2, 3, 4, 5, 6}, ones[2] = {1, 1}, zeros[2] = {0, 0};
    static const int64_t groups[] = {0, 2, -1};
    graph.size = 0;
    maker_value(&graph, MAKER_INPUT, "x", image, 4);
    maker_floats(&graph, "scale", six, 1, values);
    maker_floats(&graph, "each", each, 3, values);
    maker_floats(&graph, "ones", two, 1, ones);
    maker_floats(&graph, "zeros", two, 1, zeros);
    maker_ints(&graph, "groups", groups, 3);
}

/* Adds a node that waits for its attributes; `add` finishes it. */
static void op(const char *name, const char *in, const char *out) {
    maker_node(&node, name, in, out);
}
static void add(void) {
    maker_message(&graph, MAKER_NODE, &node);
}
static void plain(const char *name, const char *in, const char *out) {
    op(name, in, out);
    add();
}
static void transpose(const char *in, const char *out, bool to_last) {
    static const int64_t last[4] = {0, 2, 3, 1}, first[4] = {0, 3, 1, 2};
    op("Transpose", in, out);
    maker_attr_ints(&node, "perm", to_last ? last : first, 4);
    add();
}

static void expect_norm(struct rfx_graph *out, enum rfx_channel_norm kind) {
    static const enum rfx_op ops[] = {RFX_OP_CHANNEL_NORM};
    assert_int_equal(out->nodes[1].attr.channel_norm.kind, kind);
    onnx_net_has(out, 1, ops);
}

static void over_channels(void **state) {
    (void)state;
    static const char *const names[] = {"LayerNormalization", "RMSNormalization"};
    for (int i = 0; i < 2; i++) {
        begin();
        transpose("x", "a", true);
        plain(names[i], i == 0 ? "a scale scale" : "a scale", "b");
        transpose("b", "y", false);
        expect_norm(onnx_net_loaded(&graph, 23), i == 0 ? RFX_NORM_LAYER : RFX_NORM_RMS);
    }
    for (int p = 1; p <= 2; p++) {
        begin();
        op("LpNormalization", "x", "y");
        maker_attr_int(&node, "axis", 1);
        maker_attr_int(&node, "p", p);
        add();
        expect_norm(onnx_net_loaded(&graph, 17), p == 1 ? RFX_NORM_L1 : RFX_NORM_L2);
    }
}

/* ReduceMean, Sub, Mul, ReduceMean, Sqrt, Div over channels: nothing leaves the map's layout. */
static void written_out(void **state) {
    (void)state;
    static const int64_t channels[] = {1};
    static const enum rfx_op ops[] = {RFX_OP_CHANNEL_REDUCE, RFX_OP_BINARY,     RFX_OP_BINARY,
                                      RFX_OP_CHANNEL_REDUCE, RFX_OP_ACTIVATION, RFX_OP_BINARY};
    begin();
    op("ReduceMean", "x", "mean");
    maker_attr_ints(&node, "axes", channels, 1);
    add();
    plain("Sub", "x mean", "centred");
    plain("Mul", "centred centred", "squares");
    op("ReduceMean", "squares", "variance");
    maker_attr_ints(&node, "axes", channels, 1);
    add();
    plain("Sqrt", "variance", "deviation");
    plain("Div", "centred deviation", "y");
    onnx_net_has(onnx_net_loaded(&graph, 17), 6, ops);
}

/* Expects MOMENTS of so many groups and NORMALISE. */
static void expect_space(struct rfx_graph *out, int64_t groups, int64_t first_scale) {
    static const enum rfx_op ops[] = {RFX_OP_MOMENTS, RFX_OP_NORMALISE};
    assert_int_equal(out->nodes[1].attr.moments.groups, groups);
    int scale = out->nodes[2].attr.affine.scale;
    assert_int_equal(scale < 0 ? 0 : (int64_t)rfx_graph_owned_weight(out, scale)[0], first_scale);
    assert_int_equal(out->nodes[2].out.shape.rank, 4);
    onnx_net_has(out, 2, ops);
}

static void over_space(void **state) {
    (void)state;
    begin();
    plain("InstanceNormalization", "x scale scale", "y");
    expect_space(onnx_net_loaded(&graph, 17), 6, 1);
    begin();
    op("GroupNormalization", "x scale scale", "y");
    maker_attr_int(&node, "num_groups", 3);
    add();
    expect_space(onnx_net_loaded(&graph, 21), 3, 1);
    begin();
    plain("MeanVarianceNormalization", "x", "y");
    expect_space(onnx_net_loaded(&graph, 17), 6, 0);
}

/* As exporters write group norms: the reshapes there and back are gone, the scale behind it is the
 * norm's. */
static void reshaped_groups(void **state) {
    (void)state;
    begin();
    plain("Reshape", "x groups", "a");
    plain("InstanceNormalization", "a ones zeros", "b");
    plain("Shape", "x", "size");
    plain("Reshape", "b size", "c");
    plain("Mul", "c each", "d");
    plain("Add", "d each", "y");
    expect_space(onnx_net_loaded(&graph, 17), 2, 1);
}

/* Over channels and space: weights of a value per channel are the norm's own, others are not. */
static void whole_layer_norm(void **state) {
    (void)state;
    static const char *const in[] = {"x each", "x across"};
    static const int64_t row[] = {1, 1, 5};
    static const float values[5] = {1, 2, 3, 4, 5};
    static const enum rfx_op ops[] = {RFX_OP_MOMENTS, RFX_OP_NORMALISE, RFX_OP_CONST_MAP,
                                      RFX_OP_BINARY};
    for (int i = 0; i < 2; i++) {
        begin();
        maker_floats(&graph, "across", row, 3, values);
        op("LayerNormalization", in[i], "y");
        maker_attr_int(&node, "axis", 1);
        add();
        onnx_net_has(onnx_net_loaded(&graph, 17), i == 0 ? 2 : 4, ops);
    }
}

/* A batch norm as in training: the statistics are the image's. */
static void as_in_training(void **state) {
    (void)state;
    static const enum rfx_op ops[] = {RFX_OP_MOMENTS, RFX_OP_NORMALISE};
    begin();
    op("BatchNormalization", "x scale scale scale scale", "y mean var");
    maker_attr_int(&node, "training_mode", 1);
    add();
    onnx_net_has(onnx_net_loaded(&graph, 14), 2, ops);
    onnx_net_refused(&graph, 13, RFX_STATUS_UNSUPPORTED, "training mode");
}

static void refusals(void **state) {
    (void)state;
    static const struct {
        const char *op, *in, *attr;
        int64_t value;
        enum rfx_status status;
        const char *text;
    } cases[] = {
        {"GroupNormalization", "x scale scale", "num_groups", 4, RFX_STATUS_MALFORMED,
         "6 channels in 4 groups"},
        {"GroupNormalization", "x ones ones", "num_groups", 3, RFX_STATUS_MALFORMED,
         "2 values for 6 channels in 3"},
        {"LpNormalization", "x", "p", 3, RFX_STATUS_MALFORMED, "p = 3, not 1 or 2"},
        {"LayerNormalization", "x scale", "axis", 4, RFX_STATUS_MALFORMED,
         "axis 4 of a tensor of rank 4"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin();
        op(cases[i].op, cases[i].in, "y");
        maker_attr_int(&node, cases[i].attr, cases[i].value);
        add();
        onnx_net_refused(&graph, 21, cases[i].status, cases[i].text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(over_channels),    cmocka_unit_test(written_out),
        cmocka_unit_test(over_space),       cmocka_unit_test(reshaped_groups),
        cmocka_unit_test(whole_layer_norm), cmocka_unit_test(as_in_training),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
