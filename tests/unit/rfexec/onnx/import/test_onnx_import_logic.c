/* Conversion of comparisons, logic, choices and repeats: which nodes they become, and what is
 * refused in which words. Values: ONNX's node tests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "tests/support/makers/onnx_net.h"
#include "tests/support/run/run_whole.h"

static struct maker graph, node;

static void begin(void) {
    static const int64_t image[] = {1, 3, 4, 5};
    graph.size = 0;
    maker_value(&graph, MAKER_INPUT, "image", image, 4);
}

static void add(void) {
    maker_message(&graph, MAKER_NODE, &node);
}

static const struct rfx_node *last(const struct rfx_graph *out) {
    return &out->nodes[out->outputs[0].node];
}

static const struct rfx_node *input_of(const struct rfx_graph *out, const struct rfx_node *n,
                                       int k) {
    return &out->nodes[n->in[k]];
}

/* Broadcast against a row of constants; operands stay in their order. */
static void comparisons(void **state) {
    (void)state;
    static const struct {
        const char *op;
        enum rfx_binary_kind kind;
    } cases[] = {
        {"Greater", RFX_BINARY_GREATER}, {"GreaterOrEqual", RFX_BINARY_GREATER_OR_EQUAL},
        {"Less", RFX_BINARY_LESS},       {"LessOrEqual", RFX_BINARY_LESS_OR_EQUAL},
        {"Equal", RFX_BINARY_EQUAL},     {"And", RFX_BINARY_AND},
        {"Or", RFX_BINARY_OR},           {"Xor", RFX_BINARY_XOR},
    };
    static const int64_t five = 5;
    static const float row[5] = {1, 2, 3, 4, 5};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin();
        maker_floats(&graph, "row", &five, 1, row);
        maker_node(&node, cases[i].op, "row image", "y");
        add();
        struct rfx_graph *out = onnx_net_loaded(&graph, 17);
        assert_int_equal(last(out)->op, RFX_OP_BINARY);
        assert_int_equal(last(out)->attr.binary.kind, cases[i].kind);
        assert_int_equal(input_of(out, last(out), 0)->op, RFX_OP_CONST_MAP);
        assert_int_equal(input_of(out, last(out), 1)->op, RFX_OP_INPUT);
        onnx_net_discard(out);
    }
}

static void where_adds_two_choices(void **state) {
    (void)state;
    static const float zero = 0.0f;
    begin();
    maker_floats(&graph, "zero", NULL, 0, &zero);
    maker_node(&node, "Greater", "image zero", "c");
    add();
    maker_node(&node, "Where", "c image zero", "y");
    add();
    struct rfx_graph *out = onnx_net_loaded(&graph, 17);
    const struct rfx_node *sum = last(out);
    assert_int_equal(sum->attr.binary.kind, RFX_BINARY_ADD);
    assert_int_equal(input_of(out, sum, 0)->attr.binary.kind, RFX_BINARY_IF);
    assert_int_equal(input_of(out, sum, 1)->attr.binary.kind, RFX_BINARY_UNLESS);
    onnx_net_discard(out);
}

/* To bool: nothing after a comparison, else not(not(x)); integers are refused. */
static void casts(void **state) {
    (void)state;
    begin();
    maker_node(&node, "Equal", "image image", "c");
    add();
    maker_node(&node, "Cast", "c", "y");
    maker_attr_int(&node, "to", 9);
    add();
    struct rfx_graph *out = onnx_net_loaded(&graph, 17);
    assert_int_equal(out->n_nodes, 2);
    onnx_net_discard(out);
    begin();
    maker_node(&node, "Cast", "image", "y");
    maker_attr_int(&node, "to", 9);
    add();
    out = onnx_net_loaded(&graph, 17);
    assert_int_equal(last(out)->act.kind, RFX_ACT_NOT);
    assert_int_equal(input_of(out, last(out), 0)->act.kind, RFX_ACT_NOT);
    onnx_net_discard(out);
    begin();
    maker_node(&node, "Cast", "image", "y");
    maker_attr_int(&node, "to", 2); /* held to 0 ... 255, and cut towards 0 on either side of it */
    add();
    out = onnx_net_unfused(&graph, 17);
    assert_int_equal(last(out)->attr.binary.kind, RFX_BINARY_ADD);
    assert_int_equal(out->nodes[1].act.kind, RFX_ACT_CLIP);
    assert_true(out->nodes[1].act.beta == 255.0f);
    onnx_net_discard(out);
    begin();
    maker_node(&node, "Cast", "image", "y");
    maker_attr_int(&node, "to", 13);
    add();
    onnx_net_refused(&graph, 17, RFX_STATUS_UNSUPPORTED, "integers but uint32 and uint64");
}

/* Dropout is refused where it would drop something. */
static void dropout(void **state) {
    (void)state;
    static const char *const in[] = {"image half yes", "image _ yes", "image none yes",
                                     "image half no", "image half"};
    static const float numbers[3] = {0.5f, 0.0f, 1.0f};
    for (int i = 0; i < 5; i++) {
        begin();
        maker_floats(&graph, "half", NULL, 0, &numbers[0]);
        maker_floats(&graph, "none", NULL, 0, &numbers[1]);
        maker_floats(&graph, "no", NULL, 0, &numbers[1]);
        maker_floats(&graph, "yes", NULL, 0, &numbers[2]);
        maker_node(&node, "Dropout", in[i], "a");
        add();
        maker_node(&node, "Relu", "a", "y");
        add();
        if (i < 2) /* the ratio is 0.5 unless said */
            onnx_net_refused(&graph, 17, RFX_STATUS_UNSUPPORTED,
                             "training_mode with a ratio of 0.5");
        else
            onnx_net_has(onnx_net_loaded(&graph, 17), 1, (const enum rfx_op[]){RFX_OP_ACTIVATION});
    }
}

static void infinities(void **state) {
    (void)state;
    for (int signs = 0; signs < 4; signs++) { /* bits: negative, positive */
        begin();
        maker_node(&node, "IsInf", "image", "y");
        maker_attr_int(&node, "detect_negative", signs & 1);
        maker_attr_int(&node, "detect_positive", signs >> 1);
        add();
        struct rfx_graph *out = onnx_net_loaded(&graph, 17);
        const struct rfx_node *n = last(out);
        assert_int_equal(n->attr.binary.kind, signs == 0 ? RFX_BINARY_LESS : RFX_BINARY_EQUAL);
        assert_true((input_of(out, n, 0)->act.kind == RFX_ACT_ABS) == (signs == 3));
        onnx_net_discard(out);
    }
}

static void remainders(void **state) {
    (void)state;
    for (int fmod = 0; fmod < 2; fmod++) {
        begin();
        maker_node(&node, "Mod", "image image", "y");
        maker_attr_int(&node, "fmod", fmod);
        add();
        struct rfx_graph *out = onnx_net_loaded(&graph, 17);
        /* with the divisor's sign: the remainder and, where signs differ, the divisor */
        assert_int_equal(last(out)->attr.binary.kind, fmod == 0 ? RFX_BINARY_ADD : RFX_BINARY_MOD);
        if (fmod == 0) {
            assert_int_equal(input_of(out, last(out), 0)->attr.binary.kind, RFX_BINARY_MOD);
            assert_int_equal(input_of(out, last(out), 1)->attr.binary.kind, RFX_BINARY_IF);
        }
        onnx_net_discard(out);
    }
}

/* What Dropout would have dropped is no value; the refusal does not say that nobody makes it. */
static void masks(void **state) {
    (void)state;
    begin();
    maker_node(&node, "Dropout", "image", "a mask");
    add();
    maker_node(&node, "Not", "mask", "y");
    add();
    onnx_net_refused(&graph, 17, RFX_STATUS_UNSUPPORTED,
                     "input 0 ('mask') is output 1 of a Dropout, which is not supported");
}

/* Channels stay a map; rows and columns do not. */
static void tiles(void **state) {
    (void)state;
    static const struct {
        int64_t repeats[4];
        int count;
        enum rfx_op made;
        const char *why;
        enum rfx_status status;
    } cases[] = {
        {{1, 2, 1, 1}, 4, RFX_OP_CHANNEL_SELECT, NULL, RFX_OK},
        {{1, 1, 3, 2}, 4, RFX_OP_PLAIN_GATHER, NULL, RFX_OK},
        {{1, 1, 1, 2}, 4, RFX_OP_PLAIN_GATHER, NULL, RFX_OK},
        {{1, 1, 0, 1}, 4, 0, "0 repeats of axis 2", RFX_STATUS_UNSUPPORTED},
        {{1, 1, 1, (1 << 24) / 5 + 1},
         4,
         0,
         "3355444 repeats of 5 elements: more than 16777216 are not supported",
         RFX_STATUS_UNSUPPORTED},
        {{1, 1, (int64_t)1 << 62, 1},
         4,
         0,
         "4611686018427387904 repeats of 4",
         RFX_STATUS_UNSUPPORTED},
        {{1, 1, 2}, 3, 0, "3 repeats for rank 4", RFX_STATUS_MALFORMED},
    };
    static const int64_t image[4] = {1, 3, 4, 5};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin();
        maker_ints(&graph, "repeats", cases[i].repeats, cases[i].count);
        maker_node(&node, "Tile", "image repeats", "y");
        add();
        if (cases[i].why != NULL) {
            onnx_net_refused(&graph, 17, cases[i].status, cases[i].why);
            continue;
        }
        struct rfx_graph *out = onnx_net_loaded(&graph, 17);
        const struct rfx_node *n = last(out);
        assert_int_equal(n->op, cases[i].made);
        for (int k = 0; k < 4; k++)
            assert_int_equal(n->out.shape.dims[k], image[k] * cases[i].repeats[k]);
        if (i == 0) assert_int_equal(n->attr.select.map[4], 1);
        if (i != 0) assert_int_equal(n->attr.gather.map[7], 2);
        onnx_net_discard(out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comparisons), cmocka_unit_test(where_adds_two_choices),
        cmocka_unit_test(casts),       cmocka_unit_test(infinities),
        cmocka_unit_test(dropout),     cmocka_unit_test(remainders),
        cmocka_unit_test(masks),       cmocka_unit_test(tiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
