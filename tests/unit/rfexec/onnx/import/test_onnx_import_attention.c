/* Conversion of attention: each form becomes one node, whatever exporters write around it; what is
 * not done is refused in words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "layers/graph/op.h"
#include "tests/support/makers/onnx_net.h"

static struct maker graph, node;

static void op(const char *name, const char *in, const char *out) {
    maker_node(&node, name, in, out);
}
static void add(void) {
    maker_message(&graph, MAKER_NODE, &node);
}

/* An image of 8 channels and 12 pixels as tokens "t" (1, 12, 8), and by heads "h" (1, 2, 12, 4). */
static void begin(void) {
    static const int64_t image[] = {1, 8, 3, 4}, flat[] = {1, 8, 12}, split[] = {1, 12, 2, 4};
    static const int64_t to_tokens[] = {0, 2, 1}, to_heads[] = {0, 2, 1, 3};
    static const int64_t one[] = {1}, mask[] = {1, 12};
    static const float half[1] = {0.5f}, masked[12] = {0, 0, 0, -9, -9};
    graph.size = 0;
    maker_value(&graph, MAKER_INPUT, "x", image, 4);
    maker_ints(&graph, "flat", flat, 3);
    maker_ints(&graph, "split", split, 4);
    maker_floats(&graph, "half", one, 1, half);
    maker_floats(&graph, "mask", mask, 2, masked);
    op("Reshape", "x flat", "f");
    add();
    op("Transpose", "f", "t");
    maker_attr_ints(&node, "perm", to_tokens, 3);
    add();
    op("Reshape", "t split", "s");
    add();
    op("Transpose", "s", "h");
    maker_attr_ints(&node, "perm", to_heads, 4);
    add();
}

/* The one node of attention of the network "y", which is freed. */
static struct rfx_node attention_of(int64_t opset) {
    struct rfx_graph *net = onnx_net_loaded(&graph, opset);
    struct rfx_node found = {.op = RFX_OP_COUNT};
    for (int i = 0; i < net->n_nodes; i++) {
        assert_int_not_equal(net->nodes[i].op, RFX_OP_MATMUL);
        assert_int_not_equal(net->nodes[i].op, RFX_OP_PLAIN_SOFTMAX);
        if (net->nodes[i].op != RFX_OP_ATTENTION) continue;
        assert_int_equal(found.op, RFX_OP_COUNT);
        found = net->nodes[i];
    }
    assert_int_equal(found.op, RFX_OP_ATTENTION);
    onnx_net_discard(net);
    return found;
}

static void written_out(void **state) {
    (void)state;
    static const int64_t turned[] = {0, 2, 1};
    for (int values_first = 0; values_first < 2; values_first++) {
        begin();
        op("MatMul", "t f", "d");
        add();
        op("Mul", "d half", "e");
        add();
        op("Add", "mask e", "m");
        add();
        op("Softmax", "m", "p");
        maker_attr_int(&node, "axis", -1);
        add();
        op("Transpose", "p", "q");
        maker_attr_ints(&node, "perm", turned, 3);
        add();
        op("MatMul", values_first ? "f q" : "p t", "y");
        add();
        struct rfx_node found = attention_of(17);
        assert_int_equal(found.attr.attention.n_steps, 2);
        assert_int_equal(found.attr.attention.steps[0].kind, RFX_BINARY_MUL);
        assert_int_equal(found.attr.attention.steps[1].kind, RFX_BINARY_ADD);
        assert_false(found.attr.attention.steps[0].scores_right);
        assert_true(found.attr.attention.steps[1].scores_right);
        assert_int_equal(found.out.elems, 96);
    }
}

static void as_an_operator(void **state) {
    (void)state;
    for (int masked = 0; masked < 2; masked++) {
        begin();
        op("Attention", masked ? "h h h mask" : "h h h", "y");
        add();
        struct rfx_node found = attention_of(23);
        assert_int_equal(found.attr.attention.n_steps, 1 + masked);
        assert_int_equal(found.out.shape.rank, 4);
        begin();
        op("Attention", masked ? "t t t mask" : "t t t", "y");
        maker_attr_int(&node, "q_num_heads", 2);
        maker_attr_int(&node, "kv_num_heads", 2);
        add();
        found = attention_of(23);
        assert_int_equal(found.out.shape.dims[1], 2); /* heads, before they are joined */
    }
}

/* What works on tokens works on the map: nothing is transposed. A number of more axes than tokens
 * have gives them another shape, so it does not. */
static void tokens_of_a_map(void **state) {
    (void)state;
    static const int64_t ones[] = {1, 1, 1, 1}, square[] = {8, 8}, vector[] = {8};
    static const float values[64] = {2.0f, 1.0f};
    static const struct {
        const char *op, *in;
        enum rfx_op on_map; /* RFX_OP_COUNT: none */
        int rank;
    } cases[] = {{"Relu", "t", RFX_OP_ACTIVATION, 3},
                 {"Mul", "half t", RFX_OP_AFFINE, 3},
                 {"Add", "t vector", RFX_OP_AFFINE, 3},
                 {"Mul", "t t", RFX_OP_BINARY, 3},
                 {"MatMul", "t square", RFX_OP_CONV, 3},
                 {"Softmax", "t", RFX_OP_SOFTMAX, 3},
                 {"LayerNormalization", "t vector vector", RFX_OP_CHANNEL_NORM, 3},
                 {"ReduceMean", "t", RFX_OP_CHANNEL_REDUCE, 3},
                 {"Mul", "t ones", RFX_OP_COUNT, 4},
                 {"Relu", "h", RFX_OP_COUNT, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin();
        maker_floats(&graph, "ones", ones, 4, values);
        maker_floats(&graph, "square", square, 2, values);
        maker_floats(&graph, "vector", vector, 1, values);
        op(cases[i].op, cases[i].in, "y");
        if (cases[i].on_map == RFX_OP_CHANNEL_REDUCE)
            maker_attr_ints(&node, "axes", (const int64_t[]){-1}, 1);
        add();
        struct rfx_graph *net = onnx_net_unfused(&graph, 17);
        bool turned = false, on_map = false;
        for (int k = 0; k < net->n_nodes; k++) {
            turned = turned || net->nodes[k].op == RFX_OP_TRANSPOSE;
            on_map = on_map || net->nodes[k].op == cases[i].on_map;
        }
        if (turned != (cases[i].on_map == RFX_OP_COUNT) || on_map == turned)
            fail_msg("%s %s", cases[i].op, cases[i].in);
        const struct rfx_shape *shape = &net->nodes[net->n_nodes - 1].out.shape;
        assert_int_equal(shape->rank, cases[i].rank);
        assert_int_equal(shape->dims[shape->rank - 2], 12);
        onnx_net_discard(net);
    }
}

static void not_done(void **state) {
    (void)state;
    static const struct {
        const char *in, *out, *attribute, *words;
        enum rfx_status status;
    } bad[] = {
        {"h h h", "y", "is_causal", "is_causal = 1", RFX_STATUS_UNSUPPORTED},
        {"h h h", "y", "left_window_size", "left_window_size = 1", RFX_STATUS_UNSUPPORTED},
        {"h h h", "y", "right_window_size", "right_window_size = 1", RFX_STATUS_UNSUPPORTED},
        {"h h h", "y", "sinks", "attribute sinks", RFX_STATUS_UNSUPPORTED},
        {"h h h _ h", "y", NULL, "input past_key", RFX_STATUS_UNSUPPORTED},
        {"h h h _ _ h", "y", NULL, "input past_value", RFX_STATUS_UNSUPPORTED},
        {"h h h", "y z", NULL, "output 1, 'z'", RFX_STATUS_UNSUPPORTED},
        {"t t t", "y", NULL, "for q_num_heads = 0", RFX_STATUS_MALFORMED},
        {"t h h", "y", "q_num_heads", "1 heads of queries share 2", RFX_STATUS_UNSUPPORTED},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        begin();
        op("Attention", bad[i].in, bad[i].out);
        if (bad[i].attribute != NULL) maker_attr_int(&node, bad[i].attribute, 1);
        add();
        onnx_net_refused(&graph, 23, bad[i].status, bad[i].words);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_out),
        cmocka_unit_test(as_an_operator),
        cmocka_unit_test(tokens_of_a_map),
        cmocka_unit_test(not_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
