/* Conversion of single operators whose forms differ between opsets and exporters, and lack of
 * memory in larger models. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "rfexec/run/model.h"
#include "tests/support/makers/onnx_net.h"

#define MODEL_PATH "test_onnx_import.onnx"

static struct maker graph, node, model;

static void add(void) {
    maker_message(&graph, MAKER_NODE, &node);
}

static void begin(int64_t c, int64_t h, int64_t w) {
    const int64_t image[] = {1, c, h, w};
    graph.size = 0;
    maker_value(&graph, MAKER_INPUT, "image", image, 4);
}

static void attr_text(const char *name, const char *value) {
    static struct maker attr;
    attr.size = 0;
    maker_text(&attr, 1, name);
    maker_text(&attr, 4, value);
    maker_int(&attr, 20, 3);
    maker_message(&node, 5, &attr);
}

static const struct rfx_node *last(const struct rfx_graph *out) {
    return &out->nodes[out->outputs[0].node];
}

static void expect_shape(const struct rfx_graph *out, int rank, int64_t a, int64_t b, int64_t c,
                         int64_t d) {
    const struct rfx_shape *got = &last(out)->out.shape;
    const int64_t want[4] = {a, b, c, d};
    assert_int_equal(got->rank, rank);
    for (int i = 0; i < rank; i++) assert_int_equal(got->dims[i], want[i]);
}

static void add_depth(const char *op, const char *mode) {
    begin(4, 6, 8);
    maker_node(&node, op, "image", "y");
    maker_attr_int(&node, "blocksize", 2);
    if (mode != NULL) attr_text("mode", mode);
    add();
}

/* Opset 28 gave SpaceToDepth the mode that DepthToSpace has had since 11. */
static void depth_modes(void **state) {
    (void)state;
    static const char *const modes[] = {NULL, "DCR", "CRD"};
    for (int i = 0; i < 3; i++) {
        add_depth("SpaceToDepth", modes[i]);
        struct rfx_graph *out = onnx_net_loaded(&graph, 28);
        assert_int_equal(last(out)->op, RFX_OP_SPACE_TO_DEPTH);
        assert_int_equal(last(out)->attr.depth.column_major, i == 2);
        expect_shape(out, 4, 1, 16, 3, 4);
        onnx_net_discard(out);
    }
    add_depth("DepthToSpace", "RCD");
    onnx_net_refused(&graph, 28, RFX_STATUS_UNSUPPORTED, "DepthToSpace 'y' (opset 28): mode 'RCD'");
    onnx_net_refused(&graph, 29, RFX_STATUS_UNSUPPORTED, "opset 29");
}

/* Reshape, Transpose, Reshape: what torch writes for pixel_unshuffle, and its DCR sibling. */
static void pixel_unshuffle_is_one_node(void **state) {
    (void)state;
    static const int64_t split[] = {1, 4, 3, 2, 4, 2}, join[] = {1, 16, 3, 4};
    static const int64_t perms[3][6] = {{0, 1, 3, 5, 2, 4}, {0, 3, 5, 1, 2, 4}, {0, 1, 5, 3, 2, 4}};
    for (int i = 0; i < 3; i++) {
        begin(4, 6, 8);
        maker_ints(&graph, "split", split, 6);
        maker_ints(&graph, "join", join, 4);
        maker_node(&node, "Reshape", "image split", "a");
        add();
        maker_node(&node, "Transpose", "a", "b");
        maker_attr_ints(&node, "perm", perms[i], 6);
        add();
        maker_node(&node, "Reshape", "b join", "y");
        add();
        struct rfx_graph *out = onnx_net_loaded(&graph, 13);
        expect_shape(out, 4, 1, 16, 3, 4);
        if (i < 2) {
            assert_int_equal(out->n_nodes, 2);
            assert_int_equal(last(out)->op, RFX_OP_SPACE_TO_DEPTH);
            assert_int_equal(last(out)->attr.depth.block, 2);
            assert_int_equal(last(out)->attr.depth.column_major, i == 0);
        } else { /* columns before rows is no unshuffle */
            assert_true(last(out)->op != RFX_OP_SPACE_TO_DEPTH);
        }
        onnx_net_discard(out);
    }
}

/* 3 x 4 with stride 2 x 3 and kernel 3: natural size 7 x 12. */
static void stated_size_of_transposed_convolutions(void **state) {
    (void)state;
    static const int64_t dims[] = {1, 1, 3, 3}, strides[] = {2, 3};
    static const int64_t sizes[3][2] = {{7, 12}, {4, 10}, {9, 13}};
    static const struct rfx_pads pads[3] = {{0, 0, 0, 0}, {2, 1, 1, 1}, {0, 0, 0, 0}};
    static const int64_t more[3][2] = {{0, 0}, {0, 0}, {2, 1}};
    static const float weights[9];
    for (int i = 0; i < 3; i++) {
        begin(1, 3, 4);
        maker_floats(&graph, "k", dims, 4, weights);
        maker_node(&node, "ConvTranspose", "image k", "y");
        maker_attr_ints(&node, "strides", strides, 2);
        maker_attr_ints(&node, "output_shape", sizes[i], 2);
        add();
        struct rfx_graph *out = onnx_net_loaded(&graph, 13);
        expect_shape(out, 4, 1, 1, sizes[i][0], sizes[i][1]);
        const struct rfx_conv_attr *a = &last(out)->attr.conv;
        assert_int_equal(a->pads.top, pads[i].top);
        assert_int_equal(a->pads.left, pads[i].left);
        assert_int_equal(a->pads.bottom, pads[i].bottom);
        assert_int_equal(a->pads.right, pads[i].right);
        assert_int_equal(a->out_pad_h, more[i][0]);
        assert_int_equal(a->out_pad_w, more[i][1]);
        onnx_net_discard(out);
    }
}

/* A vector on the right loses its dimension, one on the left likewise. */
static void vectors_in_matmul(void **state) {
    (void)state;
    static const int64_t eight = 8, six = 6;
    static const float values[8];
    begin(4, 6, 8);
    maker_floats(&graph, "v", &eight, 1, values);
    maker_node(&node, "MatMul", "image v", "y");
    add();
    struct rfx_graph *out = onnx_net_loaded(&graph, 13);
    expect_shape(out, 3, 1, 4, 6, 0);
    onnx_net_discard(out);
    begin(4, 6, 8);
    maker_floats(&graph, "v", &six, 1, values);
    maker_node(&node, "MatMul", "v image", "y");
    add();
    out = onnx_net_loaded(&graph, 13);
    expect_shape(out, 3, 1, 4, 8, 0);
    onnx_net_discard(out);
}

/* -7 mod 4 is 1 with floor, -3 with truncation; + 4 makes sizes of them. */
static void both_kinds_of_mod(void **state) {
    (void)state;
    static const int64_t a = -7, b = 4, five = 5, wanted[2] = {6, 2};
    for (int fmod = 0; fmod < 2; fmod++) {
        begin(1, 8, 8);
        maker_ints(&graph, "a", &a, 1);
        maker_ints(&graph, "b", &b, 1);
        maker_ints(&graph, "five", &five, 1);
        maker_ints(&graph, "zero", (const int64_t[]){0}, 1);
        maker_ints(&graph, "axis", (const int64_t[]){2}, 1);
        maker_node(&node, "Mod", "a b", "m");
        maker_attr_int(&node, "fmod", fmod);
        add();
        maker_node(&node, "Add", "m five", "end");
        add();
        maker_node(&node, "Slice", "image zero end axis", "y");
        add();
        struct rfx_graph *out = onnx_net_loaded(&graph, 13);
        expect_shape(out, 4, 1, 1, wanted[fmod], 8);
        onnx_net_discard(out);
    }
}

/* Max, Min and Sum of one constant and of three, exact: sizes of a cut. */
static void any_number_of_constants(void **state) {
    (void)state;
    static const struct {
        const char *op, *in;
        int64_t rows;
    } cases[] = {{"Max", "two", 2},          {"Max", "two six five", 6}, {"Min", "six", 6},
                 {"Min", "six two five", 2}, {"Sum", "five", 5},         {"Sum", "two two two", 6}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static const int64_t zero = 0, two = 2, five = 5, six = 6;
        begin(1, 8, 8);
        maker_ints(&graph, "zero", &zero, 1);
        maker_ints(&graph, "two", &two, 1);
        maker_ints(&graph, "five", &five, 1);
        maker_ints(&graph, "six", &six, 1);
        maker_node(&node, cases[i].op, cases[i].in, "end");
        add();
        maker_node(&node, "Slice", "image zero end two", "y");
        add();
        struct rfx_graph *out = onnx_net_loaded(&graph, 13);
        expect_shape(out, 4, 1, 1, cases[i].rows, 8);
        onnx_net_discard(out);
    }
}

/* Conv, batch norm, shape arithmetic, Slice, Concat, Split, shuffle, Resize, Gemm, Softmax. */
static void make_larger_model(void) {
    static const int64_t weight[] = {4, 3, 3, 3}, four = 4, pads[] = {1, 1, 1, 1}, one = 1,
                         minus = -1, zero = 0, two = 2, split[] = {1, 2, 2, 8, 8},
                         join[] = {1, 4, 8, 8}, perm[] = {0, 2, 1, 3, 4}, gemm[] = {256, 5};
    static const float values[1280], ones[4] = {1, 1, 1, 1}, scales[4] = {1, 1, 2, 2};
    begin(3, 8, 8);
    maker_floats(&graph, "k", weight, 4, values);
    maker_floats(&graph, "ones", &four, 1, ones);
    maker_floats(&graph, "scales", &four, 1, scales);
    maker_floats(&graph, "g", gemm, 2, values);
    maker_ints(&graph, "split", split, 5);
    maker_ints(&graph, "join", join, 4);
    maker_ints(&graph, "zero", &zero, 1);
    maker_ints(&graph, "one", &one, 1);
    maker_ints(&graph, "two", &two, 1);
    maker_ints(&graph, "minus", &minus, 1);
    maker_node(&node, "Conv", "image k", "c");
    maker_attr_ints(&node, "pads", pads, 4);
    add();
    static const char *const simple[][3] = {{"BatchNormalization", "c ones ones ones ones", "n"},
                                            {"Relu", "n", "r"},
                                            {"Reshape", "r split", "s5"}};
    for (int i = 0; i < 3; i++) {
        maker_node(&node, simple[i][0], simple[i][1], simple[i][2]);
        add();
    }
    maker_node(&node, "Transpose", "s5", "t5");
    maker_attr_ints(&node, "perm", perm, 5);
    add();
    maker_node(&node, "Reshape", "t5 join", "j");
    add();
    maker_node(&node, "Split", "j", "a b");
    maker_attr_int(&node, "axis", 1);
    add();
    maker_node(&node, "Concat", "b a", "ba");
    maker_attr_int(&node, "axis", 1);
    add();
    static const char *const rest[][3] = {
        {"Add", "ba r", "sum"},           {"Resize", "sum _ scales", "up"},
        {"Shape", "up", "shape"},         {"Gather", "shape two", "height"},
        {"Div", "height two", "half"},    {"Slice", "up zero half two", "top"},
        {"Reshape", "top minus", "flat"}, {"Unsqueeze", "flat zero", "row"}};
    for (int i = 0; i < 8; i++) {
        maker_node(&node, rest[i][0], rest[i][1], rest[i][2]);
        add();
    }
    maker_node(&node, "Slice", "row zero minus one", "cut"); /* 511 of 512 */
    add();
    maker_ints(&graph, "n256", gemm, 1);
    maker_node(&node, "Slice", "row zero n256 one", "part");
    add();
    static const char *const weights[][3] = {/* of the product, computed */
                                             {"Sin", "g", "waves"},
                                             {"ReduceL2", "waves", "length"},
                                             {"Div", "waves length", "unit"}};
    for (int i = 0; i < 3; i++) {
        maker_node(&node, weights[i][0], weights[i][1], weights[i][2]);
        add();
    }
    maker_node(&node, "Gemm", "part unit", "scores");
    add();
    maker_node(&node, "Softmax", "scores", "y");
    add();
    maker_value(&graph, MAKER_OUTPUT, "y", NULL, 0);
    maker_value(&graph, MAKER_OUTPUT, "cut", NULL, 0);
}

/* Fails allocation after allocation of loading `path`, from `first` on in steps, until one load
 * goes through. */
static void fail_every_allocation(const char *path, int step) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_load_options options = {.h = 8, .w = 8};
    enum rfx_status status = RFX_STATUS_OUT_OF_MEMORY;
    int k = 0;
    for (; status != RFX_OK && k < 100000; k += step) {
        struct rfx_graph *out = NULL;
        struct rfx_error err = {""};
        rfx_memory_fail_after(mem, k);
        status = rfx_onnx_load(mem, path, &options, &out, &err);
        if (status != RFX_OK && (status != RFX_STATUS_OUT_OF_MEMORY || err.text[0] == '\0'))
            fail_msg("allocation %d: %s, '%s'", k, rfx_status_name(status), err.text);
        rfx_graph_free(out);
        assert_int_equal(rfx_memory_current_bytes(mem), 0);
    }
    assert_int_equal(status, RFX_OK);
    assert_true(k > 50);
    rfx_memory_free(mem);
}

static void memory_runs_out_in_a_larger_model(void **state) {
    (void)state;
    make_larger_model();
    maker_model(&graph, 13, &model);
    maker_save(&model, MODEL_PATH);
    fail_every_allocation(MODEL_PATH, 1);
}

static void memory_runs_out_in_a_real_network(void **state) {
    (void)state;
    const char *path = "test_onnx_import_real.onnx";
    struct rfx_memory *mem = rfx_memory_create(0);
    static const struct rfx_fuse_options no_fusing = {0};
    struct rfx_load_options options = {.h = 32, .w = 32, .seed = 1, .fuse = &no_fusing};
    struct rfx_graph *net = NULL;
    struct rfx_error err = {""};
    if (rfx_builtin_build(mem, "mobilenet_v2:0.25", &options, &net, &err) != RFX_OK ||
        rfx_onnx_export(net, path, &err) != RFX_OK)
        fail_msg("%s", err.text);
    rfx_graph_free(net);
    rfx_memory_free(mem);
    fail_every_allocation(path, 3);
    assert_int_equal(unlink(path), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(depth_modes),
        cmocka_unit_test(pixel_unshuffle_is_one_node),
        cmocka_unit_test(stated_size_of_transposed_convolutions),
        cmocka_unit_test(vectors_in_matmul),
        cmocka_unit_test(both_kinds_of_mod),
        cmocka_unit_test(any_number_of_constants),
        cmocka_unit_test(memory_runs_out_in_a_larger_model),
        cmocka_unit_test(memory_runs_out_in_a_real_network),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
