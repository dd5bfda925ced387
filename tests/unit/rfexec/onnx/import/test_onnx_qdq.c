/* Which groups of DequantizeLinear, operator, QuantizeLinear become operators on bytes, and which
 * stay as they are written. tests/oracle/quantised_models.py compares the values. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/makers/onnx_net.h"
#include "tests/support/test_util.h"

enum { INT8 = 3 };

static struct maker graph;

/* The image "x" and constants: scales s and t, weights k_q and their floats k, a zero point of
 * int8. */
static void begin(void) {
    static const int64_t image[] = {1, 2, 6, 5}, filters[] = {3, 2, 1, 1}, one = 1;
    static const float weights[6] = {0.5f, -0.25f, 1.0f, 0.75f, -1.0f, 0.1f}, s = 0.05f, t = 0.07f,
                       none = 0.0f;
    graph.size = 0;
    maker_value(&graph, MAKER_INPUT, "x", image, 4);
    maker_floats(&graph, "s", &one, 1, &s);
    maker_floats(&graph, "t", &one, 1, &t);
    maker_floats(&graph, "none", &one, 1, &none);
    maker_floats(&graph, "weights", filters, 4, weights);
    maker_add_int(&graph, "Cast", "none", "zero_8", "to", INT8);
    maker_add(&graph, "QuantizeLinear", "weights s zero_8", "k_q");
    maker_add(&graph, "DequantizeLinear", "k_q s zero_8", "k");
    maker_add(&graph, "QuantizeLinear", "x s", "x_q");
    maker_add(&graph, "DequantizeLinear", "x_q s", "x_f");
}

/* Ends the graph with QuantizeLinear by `in` (a tensor, a scale and perhaps a zero point). */
static void end(const char *in) {
    maker_add(&graph, "QuantizeLinear", in, "y");
}

static void has(int n, const enum rfx_op *ops) {
    onnx_net_has(onnx_net_loaded(&graph, 17), n, ops);
}

static int has_op(const struct rfx_graph *net, enum rfx_op op) {
    int n = 0;
    for (int i = 0; i < net->n_nodes; i++) n += net->nodes[i].op == op;
    return n;
}

static void conv_is_joined(void **state) {
    (void)state;
    static const enum rfx_op joined[] = {RFX_OP_CONVERT, RFX_OP_INT_CONV, RFX_OP_CONVERT};
    static const char *const clamps[] = {NULL, "Relu"};
    for (int i = 0; i < 2; i++) {
        begin();
        maker_add(&graph, "Conv", "x_f k", "c");
        if (clamps[i] != NULL) maker_add(&graph, clamps[i], "c", "d");
        end(clamps[i] != NULL ? "d t" : "c t");
        has(3, joined);
    }
}

/* A Clip is dropped if its bounds are quantised to the ends of the type: with a scale of 0.07, a
 * lower bound of up to 0.035 and an upper one above 17.815. Converters write bounds a little inside
 * the range, such as 6 with a scale of 0.02353. */
static void idle_clips(void **state) {
    (void)state;
    static const struct {
        float lo, hi;
        bool idle;
    } clips[] = {
        {0.0f, 17.86f, true}, {0.03f, 17.82f, true}, {0.0f, 17.81f, false}, {0.04f, 17.86f, false}};
    for (int i = 0; i < 4; i++) {
        begin();
        maker_floats(&graph, "lo", NULL, 0, &clips[i].lo);
        maker_floats(&graph, "hi", NULL, 0, &clips[i].hi);
        maker_add(&graph, "Conv", "x_f k", "c");
        maker_add(&graph, "Clip", "c lo hi", "d");
        end("d t");
        struct rfx_graph *net = onnx_net_loaded(&graph, 17);
        assert_int_equal(has_op(net, RFX_OP_INT_CONV), clips[i].idle);
        onnx_net_discard(net);
    }
}

/* A Clip that cuts numbers which the QuantizeLinear can express; results of another type; a result
 * that is read elsewhere too. */
static void conv_stays_in_float(void **state) {
    (void)state;
    static const enum rfx_op apart[] = {RFX_OP_CONVERT, RFX_OP_CONVERT, RFX_OP_CONV, RFX_OP_CONVERT,
                                        RFX_OP_CONVERT};
    begin();
    maker_add(&graph, "Conv", "x_f k", "c");
    maker_add(&graph, "Clip", "c none s", "d");
    end("d t");
    has(5, apart);
    begin();
    maker_add(&graph, "Conv", "x_f k", "c");
    end("c t zero_8");
    has(5, apart);
    begin();
    maker_add(&graph, "Conv", "x_f k", "c");
    maker_value(&graph, MAKER_OUTPUT, "c", NULL, 0);
    end("c t");
    has(5, apart);
}

static void moves_keep_their_scale(void **state) {
    (void)state;
    static const enum rfx_op joined[] = {RFX_OP_CONVERT, RFX_OP_POOL_MAX, RFX_OP_CONVERT},
                             apart[] = {RFX_OP_CONVERT, RFX_OP_CONVERT, RFX_OP_POOL_MAX,
                                        RFX_OP_CONVERT, RFX_OP_CONVERT};
    static const int64_t kernel[] = {2, 2};
    for (int other = 0; other < 2; other++) {
        begin();
        maker_add_ints(&graph, "MaxPool", "x_f", "p", "kernel_shape", kernel, 2);
        end(other ? "p t" : "p s");
        has(other ? 5 : 3, other ? apart : joined);
    }
}

/* A product of one row with a constant matrix is joined; one of several rows is float32. */
static void matmul_is_joined(void **state) {
    (void)state;
    static const int64_t matrix[2][2] = {{15, 3}, {60, 3}}, rows[2][2] = {{4, 15}, {1, 60}};
    static const float values[180] = {0.5f, -1.0f, 0.25f};
    for (int one = 0; one < 2; one++) {
        begin();
        maker_floats(&graph, "values", matrix[one], 2, values);
        maker_ints(&graph, "rows", rows[one], 2);
        maker_add(&graph, "QuantizeLinear", "values s zero_8", "m_q");
        maker_add(&graph, "DequantizeLinear", "m_q s zero_8", "m");
        maker_add(&graph, "Reshape", "x_q rows", "r_q");
        maker_add(&graph, "DequantizeLinear", "r_q s", "r");
        maker_add(&graph, "MatMul", "r m", "p");
        end("p t");
        struct rfx_graph *net = onnx_net_loaded(&graph, 17);
        assert_int_equal(has_op(net, RFX_OP_INT_CONV), one);
        assert_int_equal(has_op(net, RFX_OP_GEMM), !one);
        onnx_net_discard(net);
    }
}

/* A window of the whole map is a mean over space; a smaller one, or one with pads, is a pool. */
static void averages_of_whole_maps(void **state) {
    (void)state;
    static const int64_t kernel[3][2] = {{6, 5}, {6, 4}, {6, 5}},
                         pads[3][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}, {0, 1, 0, 1}};
    for (int i = 0; i < 3; i++) {
        struct maker node = {0};
        begin();
        maker_node(&node, "AveragePool", "x_f", "p");
        maker_attr_ints(&node, "kernel_shape", kernel[i], 2);
        maker_attr_ints(&node, "pads", pads[i], 4);
        maker_message(&graph, MAKER_NODE, &node);
        end("p t");
        struct rfx_graph *net = onnx_net_loaded(&graph, 17);
        assert_int_equal(has_op(net, RFX_OP_INT_MEAN), i == 0);
        assert_int_equal(has_op(net, RFX_OP_POOL_AVG), i != 0);
        onnx_net_discard(net);
    }
}

/* The scale and the shift of a batch norm of bytes are rounded after each operation, those of one
 * of floats once: inverse = 1 / sqrt(1.105 + 1e-5), 0.701 * inverse, -0.593 + 0.475 * scale. */
static void norms_of_bytes(void **state) {
    (void)state;
    static const int64_t two = 2;
    static const float given[4][2] = {
        {0.701f, 0.701f}, {-0.593f, -0.593f}, {-0.475f, -0.475f}, {1.105f, 1.105f}};
    static const char *const names[] = {"gamma", "beta", "mean", "var"};
    static const float wanted[2][2] = {{0x1.556eb8p-1f, -0x1.1adf02p-2f},
                                       {0x1.556ebap-1f, -0x1.1adf00p-2f}};
    for (int bytes = 0; bytes < 2; bytes++) {
        begin();
        for (int i = 0; i < 4; i++) maker_floats(&graph, names[i], &two, 1, given[i]);
        maker_add(&graph, "BatchNormalization",
                  bytes ? "x_f gamma beta mean var" : "x gamma beta mean var", "n");
        end("n t");
        struct rfx_graph *net = onnx_net_loaded(&graph, 17);
        int at = 0;
        while (at < net->n_nodes && net->nodes[at].op != RFX_OP_AFFINE) at++;
        assert_true(at < net->n_nodes);
        const union rfx_attr *a = &net->nodes[at].attr;
        assert_float_equal(rfx_graph_owned_weight(net, a->affine.scale)[1], wanted[bytes][0], 0);
        assert_float_equal(rfx_graph_owned_weight(net, a->affine.shift)[1], wanted[bytes][1], 0);
        onnx_net_discard(net);
    }
}

/* The bias of a transposed convolution of bytes is added by a node of its own, behind all products;
 * that of floats is the start of the sums. */
static void bias_of_transposed_is_last(void **state) {
    (void)state;
    static const int64_t filters[] = {2, 3, 1, 1}, three = 3;
    static const float values[6] = {0.5f, 0.25f}, bias[3] = {1.0f, 2.0f, 3.0f};
    for (int bytes = 0; bytes < 2; bytes++) {
        begin();
        maker_floats(&graph, "w", filters, 4, values);
        maker_floats(&graph, "b", &three, 1, bias);
        maker_add(&graph, "ConvTranspose", bytes ? "x_f w b" : "x w b", "c");
        end("c t");
        struct rfx_graph *net = onnx_net_loaded(&graph, 17);
        int at = 0;
        while (at < net->n_nodes && net->nodes[at].op != RFX_OP_CONV_TRANSPOSE) at++;
        assert_true(at < net->n_nodes);
        assert_int_equal(net->nodes[at].attr.conv.bias < 0, bytes);
        assert_int_equal(has_op(net, RFX_OP_BINARY), bytes);
        onnx_net_discard(net);
    }
}

/* More inputs than a joined operator can have. */
static void many_inputs(void **state) {
    (void)state;
    enum { MANY = 1000 };
    static char in[4 + 4 * MANY];
    (void)strcpy(in, "x_f");
    for (int i = 0; i < MANY; i++) (void)strcpy(in + 3 + 2 * i, " s");
    begin();
    maker_add(&graph, "Reshape", in, "p");
    end("p s");
    onnx_net_refused(&graph, 17, RFX_STATUS_MALFORMED, "Reshape");
}

/* A Reshape may make a batch of one image; convolutions of bytes take one image. */
static void batch_is_refused(void **state) {
    (void)state;
    static const int64_t images[] = {2, 1, 6, 5}, filters[] = {6, 1, 1, 1};
    begin();
    maker_ints(&graph, "images", images, 4);
    maker_ints(&graph, "filters", filters, 4);
    maker_add(&graph, "Reshape", "x_q images", "a");
    maker_add(&graph, "Reshape", "k_q filters", "f");
    maker_add(&graph, "QLinearConv", "a s _ f s zero_8 t", "y");
    onnx_net_refused(&graph, 17, RFX_STATUS_UNSUPPORTED,
                     "an operand with a batch of 2; only 1 is supported");
}

/* A zero point of int8 for a tensor of uint8, of the input and of the weights. */
static void other_zero_points(void **state) {
    (void)state;
    static const char *const in[] = {"x_q s zero_8 k_q s zero_8 t", "x_q s _ k_q s zero_u t",
                                     "x_q s _ k_q s zero_8 t"};
    for (int i = 0; i < 3; i++) {
        begin();
        maker_add_int(&graph, "Cast", "none", "zero_u", "to", 2);
        maker_add(&graph, "QLinearConv", in[i], "y");
        if (i < 2)
            onnx_net_refused(&graph, 17, RFX_STATUS_MALFORMED,
                             i == 0 ? "a zero point of int8 for a tensor of uint8"
                                    : "a zero point of uint8 for a tensor of int8");
        else
            onnx_net_discard(onnx_net_loaded(&graph, 17));
    }
}

/* Sums of int32 run if they are exact in float32, or cast to float. */
static void sums_are_exact(void **state) {
    (void)state;
    static const int64_t image[] = {1, 259, 3, 3}, filters[] = {1, 259, 1, 1},
                         few[] = {1, 258, 1, 1};
    static const float weights[259] = {1.0f};
    for (int i = 0; i < 3; i++) { /* 258 * 255 * 255 < 2^24 < 259 * 255 * 255 */
        const float s = 1.0f;
        const int64_t one = 1;
        graph.size = 0;
        int64_t size[4] = {1, i == 0 ? 258 : 259, image[2], image[3]};
        maker_value(&graph, MAKER_INPUT, "x", size, 4);
        maker_floats(&graph, "s", &one, 1, &s);
        maker_floats(&graph, "weights", i == 0 ? few : filters, 4, weights);
        maker_add(&graph, "QuantizeLinear", "weights s", "k");
        maker_add(&graph, "QuantizeLinear", "x s", "q");
        maker_add(&graph, "ConvInteger", "q k", i == 2 ? "i" : "y");
        if (i == 2) maker_add_int(&graph, "Cast", "i", "y", "to", 1);
        if (i == 1)
            onnx_net_refused(&graph, 17, RFX_STATUS_UNSUPPORTED,
                             "output 'y' has sums of up to 16841475; as int32");
        else
            onnx_net_discard(onnx_net_loaded(&graph, 17));
    }
}

/* With RFX_INT8_SPEC nothing is joined, and operators of bytes become float32 ones. */
static void as_the_standard(void **state) {
    (void)state;
    static const enum rfx_op conv[] = {RFX_OP_CONVERT, RFX_OP_CONVERT, RFX_OP_CONV, RFX_OP_CONVERT,
                                       RFX_OP_CONVERT},
                             add[] = {RFX_OP_CONVERT, RFX_OP_CONVERT, RFX_OP_CONVERT,
                                      RFX_OP_BINARY,  RFX_OP_CONVERT, RFX_OP_CONVERT};
    static struct maker node;
    onnx_net_int8(RFX_INT8_SPEC, false);
    begin();
    maker_add(&graph, "Conv", "x_f k", "c");
    end("c t");
    has(5, conv);
    begin();
    maker_add(&graph, "QLinearConv", "x_q s _ k_q s zero_8 t", "y");
    has(5, conv);
    begin();
    maker_node(&node, "QLinearAdd", "x_q s _ x_q s _ t", "y");
    maker_text(&node, 7, "com.microsoft");
    maker_message(&graph, MAKER_NODE, &node);
    has(6, add);
    onnx_net_int8(RFX_INT8_ORT, false);
}

/* Outputs of bytes: as they are, or dequantised if their scale is known. A Cast to bytes has no
 * scale. */
static void outputs_of_bytes(void **state) {
    (void)state;
    static const int64_t kernel[] = {2, 2};
    for (int i = 0; i < 6; i++) {
        begin();
        if (i % 3 == 0) end("x t zero_8");
        if (i % 3 == 1) maker_add_ints(&graph, "MaxPool", "x_q", "y", "kernel_shape", kernel, 2);
        if (i % 3 == 2) maker_add_int(&graph, "Cast", "x", "y", "to", INT8);
        onnx_net_int8(RFX_INT8_ORT, i >= 3);
        struct rfx_graph *net = onnx_net_loaded(&graph, 17);
        onnx_net_int8(RFX_INT8_ORT, false);
        const struct rfx_output *y = &net->outputs[0];
        const struct rfx_node *last = &net->nodes[y->node];
        bool floats = i >= 3 && i % 3 != 2;
        assert_int_equal(net->dequantized, floats);
        assert_int_equal(last->out.type, RFX_TYPE_FLOAT32);
        if (i % 3 != 2) {
            assert_int_equal(last->op, RFX_OP_CONVERT);
            float scale = !floats ? 0.0f : i == 3 ? 0.07f : 0.05f;
            assert_true(last->attr.convert.scale == scale);
        }
        onnx_net_discard(net);
    }
}

/* Scales that are no positive numbers, numbers of scales and zero points, and types that do not
 * fit, are refused in these words. */
static void odd_scales(void **state) {
    (void)state;
    static const struct {
        float scale;
        int64_t count; /* of the scales; the image has 2 channels */
        const char *op, *in, *words;
    } cases[] = {
        {0.0f, 1, "QuantizeLinear", "x u", "scale 0 and zero point 0"},
        {-1.0f, 1, "QuantizeLinear", "x u", "scale -1 and zero point 0"},
        {INFINITY, 1, "QuantizeLinear", "x u", "scale inf and zero point 0"},
        {NAN, 1, "QuantizeLinear", "x u", "scale nan and zero point 0"},
        {0.0f, 2, "QuantizeLinear", "x u", "scale 0"},
        {NAN, 2, "QuantizeLinear", "x u", "scale nan"},
        {1.0f, 3, "QuantizeLinear", "x u", "scales of rank 1 with 3 elements, axis 1"},
        {1.0f, 2, "QuantizeLinear", "x u zero_8", "input 2 has 1 elements"},
        {1.0f, 1, "QuantizeLinear", "x u none", "to float32; only to uint8"},
        {0.0f, 1, "DequantizeLinear", "x_q u", "scale 0 and zero point 0"},
        {1.0f, 3, "DequantizeLinear", "x_q u", "scales of rank 1 with 3 elements"},
        {1.0f, 1, "DequantizeLinear", "x_q u zero_8", "a zero point of int8 for a tensor of uint8"},
        {0.0f, 1, "QLinearConv", "x_q s _ k_q u zero_8 t", "a scale of 0 for the weights"},
        {-1.0f, 3, "QLinearConv", "x_q s _ k_q u zero_8 t", "a scale of -1 for the weights"},
        {1.0f, 2, "QLinearConv", "x_q s _ k_q u zero_8 t", "scales of 2 elements for 3 output"},
        {NAN, 1, "QLinearConv", "x_q u _ k_q s zero_8 t", "scale nan and zero point 0"},
        {INFINITY, 1, "QLinearConv", "x_q s _ k_q s zero_8 u", "scale inf and zero point 0"},
        {1e-45f, 1, "QLinearConv", "x_q s _ k_q s zero_8 u", "for sums and 1.4013e-45 for the"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const float scales[3] = {cases[i].scale, cases[i].scale, cases[i].scale};
        begin();
        maker_floats(&graph, "u", &cases[i].count, 1, scales);
        maker_add(&graph, cases[i].op, cases[i].in, "y");
        onnx_net_refused(
            &graph, 17,
            strstr(cases[i].words, "elements") != NULL && strstr(cases[i].words, "rank") == NULL
                ? RFX_STATUS_MALFORMED
            : strstr(cases[i].words, "a zero point of") != NULL ? RFX_STATUS_MALFORMED
                                                                : RFX_STATUS_UNSUPPORTED,
            cases[i].words);
    }
}

static void memory_runs_out(void **state) {
    (void)state;
    begin();
    maker_add(&graph, "Conv", "x_f k", "c");
    end("c t");
    onnx_net_runs_out(&graph, 17);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conv_is_joined),
        cmocka_unit_test(idle_clips),
        cmocka_unit_test(conv_stays_in_float),
        cmocka_unit_test(moves_keep_their_scale),
        cmocka_unit_test(many_inputs),
        cmocka_unit_test(matmul_is_joined),
        cmocka_unit_test(averages_of_whole_maps),
        cmocka_unit_test(norms_of_bytes),
        cmocka_unit_test(bias_of_transposed_is_last),
        cmocka_unit_test(batch_is_refused),
        cmocka_unit_test(other_zero_points),
        cmocka_unit_test(memory_runs_out),
        cmocka_unit_test(sums_are_exact),
        cmocka_unit_test(as_the_standard),
        cmocka_unit_test(outputs_of_bytes),
        cmocka_unit_test(odd_scales),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
