/* Conversion of what finds, reads and writes elements by their numbers: which nodes it becomes, and
 * what is refused in which words. Values: ONNX's node tests. */
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
#include "tests/support/run/run_whole.h"

static struct maker graph, node;

static void begin(void) {
    static const int64_t image[] = {1, 3, 4, 5};
    graph.size = 0;
    maker_value(&graph, MAKER_INPUT, "image", image, 4);
}

static void add_ints(const char *name, int64_t value) {
    maker_ints(&graph, name, &value, 1);
}

/* The places along the last axis, and what lies there; k is an attribute in old files. */
static void top_k(void **state) {
    (void)state;
    static const struct {
        int64_t opset, axis;
        const char *out;
        enum rfx_op ops[3];
        int n;
    } cases[] = {
        {17, -1, "y", {RFX_OP_TO_PLAIN, RFX_OP_TOP_K, RFX_OP_PICK}, 3},
        {17, 2, "_ y", {RFX_OP_TO_PLAIN, RFX_OP_TOP_K}, 2},
        {9, 3, "y", {RFX_OP_TO_PLAIN, RFX_OP_TOP_K, RFX_OP_PICK}, 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool old = cases[i].opset < 10;
        begin();
        add_ints("two", 2);
        maker_node(&node, "TopK", old ? "image" : "image two", cases[i].out);
        maker_attr_int(&node, "axis", cases[i].axis);
        maker_attr_int(&node, "largest", 0);
        if (old) maker_attr_int(&node, "k", 2);
        maker_message(&graph, MAKER_NODE, &node);
        struct rfx_graph *net = onnx_net_loaded(&graph, cases[i].opset);
        assert_int_equal(net->nodes[2].attr.top_k.k, 2);
        assert_int_equal(net->nodes[2].attr.top_k.axis, cases[i].axis < 0 ? 3 : cases[i].axis);
        assert_false(net->nodes[2].attr.top_k.largest);
        onnx_net_has(net, cases[i].n, cases[i].ops);
    }
}

/* A quotient of integers is cut towards zero, and a cast of it to integers changes nothing. */
static void quotients(void **state) {
    (void)state;
    static const char *const in[] = {"at at", "at three", "three at"};
    for (int kind = 0; kind < 3; kind++) {
        begin();
        add_ints("three", 3);
        maker_add(&graph, "TopK", "image three", "_ at");
        maker_add(&graph, "Div", in[kind], "q");
        maker_add_int(&graph, "Cast", "q", "y", "to", 7);
        struct rfx_graph *net = onnx_net_unfused(&graph, 17);
        const struct rfx_node *sum = &net->nodes[net->outputs[0].node];
        assert_int_equal(sum->attr.binary.kind, RFX_BINARY_ADD);
        assert_int_equal(net->nodes[sum->in[0]].act.kind, RFX_ACT_CEIL);
        assert_int_equal(net->nodes[sum->in[1]].act.kind, RFX_ACT_FLOOR);
        onnx_net_discard(net);
    }
}

/* A remainder, moved and picked, is whole: casts to integers change nothing. Floats are cut. */
static void casts(void **state) {
    (void)state;
    begin();
    add_ints("three", 3);
    maker_add(&graph, "TopK", "image three", "v at");
    maker_add(&graph, "Mod", "at three", "rest");
    maker_add(&graph, "Where", "at rest three", "either");
    maker_add(&graph, "GatherElements", "either at", "picked");
    maker_add(&graph, "Transpose", "picked", "moved");
    maker_add_int(&graph, "Cast", "moved", "y", "to", 6);
    onnx_net_discard(onnx_net_loaded(&graph, 17));
    begin();
    add_ints("three", 3);
    maker_add(&graph, "TopK", "image three", "v at");
    maker_add_int(&graph, "Cast", "v", "y", "to", 6);
    struct rfx_graph *net = onnx_net_unfused(&graph, 17);
    const struct rfx_node *sum = &net->nodes[net->outputs[0].node];
    assert_int_equal(sum->attr.binary.kind, RFX_BINARY_ADD); /* of what is below and above 0 */
    onnx_net_discard(net);
    begin();
    add_ints("three", 3);
    maker_add(&graph, "TopK", "image three", "v at");
    maker_add_int(&graph, "Cast", "v", "y", "to", 12);
    onnx_net_refused(&graph, 17, RFX_STATUS_UNSUPPORTED, "cast of a computed tensor to type 12");
}

/* The image of a batch of one, and a batch of one image, are the map itself. */
static void only_images(void **state) {
    static const enum rfx_op wanted[] = {RFX_OP_ACTIVATION};
    const int64_t zero = 0;
    (void)state;
    begin();
    add_ints("none", 0);
    maker_int_tensor(&graph, "first", NULL, 0, &zero);
    maker_add_int(&graph, "Gather", "image first", "one", "axis", 0);
    maker_add(&graph, "Unsqueeze", "one none", "batch");
    maker_add_int(&graph, "Concat", "batch", "images", "axis", 0);
    maker_add(&graph, "Abs", "images", "y");
    onnx_net_has(onnx_net_loaded(&graph, 17), 1, wanted);
}

/* Constant indices are numbers within their axis; computed ones are taken as they come. */
static void indices(void **state) {
    (void)state;
    static const struct {
        const char *op, *in;
        int64_t index;
        const char *why; /* NULL: loaded, as a node of this kind */
        enum rfx_op made;
    } cases[] = {
        {"GatherElements", "image cell", -1, NULL, RFX_OP_PICK},
        {"GatherElements", "image cell", 1, "index 1 of 1", 0},
        {"GatherElements", "image cell", -2, "index -2 of 1", 0},
        {"GatherND", "image place", 2, "index 2 of 1", 0},
        {"GatherND", "image place", -1, NULL, RFX_OP_PICK},
        {"ScatterElements", "image cell cell", 0, NULL, RFX_OP_SCATTER},
        {"ScatterElements", "image cell cell", 9, "index 9 of 1", 0},
        {"ScatterND", "image place six", 0, "updates of another shape", 0},
        {"ScatterND", "image place one", 0, NULL, RFX_OP_SCATTER},
        {"ScatterND", "image place huge", 0, "16777217 in input 2, which float32 cannot count", 0},
        {"Gather", "image at", 0, NULL, RFX_OP_PICK},
        {"Gather", "six at", 0, NULL, RFX_OP_PICK},
    };
    static const int64_t ones[] = {1, 1, 1, 1}, two[] = {1, 4};
    static const int64_t sixes[] = {6, 6, 6, 6, 6, 6};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int64_t place[4] = {cases[i].index, 0, 0, 0};
        begin();
        maker_int_tensor(&graph, "cell", ones, 4, &cases[i].index);
        maker_int_tensor(&graph, "place", two, 2, place);
        maker_ints(&graph, "six", sixes, 6);
        add_ints("one", 1);
        add_ints("huge", ((int64_t)1 << 24) + 1);
        maker_add(&graph, "TopK", "image one", "_ at");
        maker_add(&graph, cases[i].op, cases[i].in, "y");
        if (cases[i].why != NULL) {
            bool broken = strstr(cases[i].why, "index") != NULL;
            onnx_net_refused(&graph, 17, broken ? RFX_STATUS_MALFORMED : RFX_STATUS_UNSUPPORTED,
                             cases[i].why);
            continue;
        }
        struct rfx_graph *net = onnx_net_loaded(&graph, 17);
        if (net->nodes[net->outputs[0].node].op != cases[i].made)
            fail_msg("case %zu: %s became something else", i, cases[i].op);
        onnx_net_discard(net);
    }
}

/* What is scattered into a constant is one: here the shape (3, 20) made of (1, 2). */
static void scattered_constants(void **state) {
    (void)state;
    static const struct {
        int64_t where[2], n;
        const char *why;
    } cases[] = {{{1, -2}, 2, NULL}, {{1, 2}, 2, "update 1 lies outside"}, {{1, 0}, 1, "not fit"}};
    static const int64_t from[2] = {1, 2}, to[2] = {20, 3};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int64_t dims[2] = {cases[i].n, 1};
        begin();
        maker_ints(&graph, "from", from, 2);
        maker_ints(&graph, "to", to, 2);
        maker_int_tensor(&graph, "where", dims, 2, cases[i].where);
        maker_add(&graph, "ScatterND", "from where to", "shape");
        maker_add(&graph, "Reshape", "image shape", "y");
        if (cases[i].why != NULL) {
            onnx_net_refused(&graph, 17, RFX_STATUS_MALFORMED, cases[i].why);
            continue;
        }
        struct rfx_graph *net = onnx_net_loaded(&graph, 17);
        const struct rfx_shape *shape = &net->nodes[net->outputs[0].node].out.shape;
        assert_int_equal(shape->rank, 2);
        assert_int_equal(shape->dims[0], 3);
        assert_int_equal(shape->dims[1], 20);
        onnx_net_discard(net);
    }
}

static void one_hot(void **state) {
    (void)state;
    static const struct {
        int64_t depth, axis;
        const char *values, *why;
        enum rfx_status status;
    } cases[] = {
        {4, -1, "pair", NULL, RFX_OK},
        {4, 0, "pair", NULL, RFX_OK},
        {0, -1, "pair", "a depth of 0", RFX_STATUS_UNSUPPORTED},
        {INT64_MAX, -1, "pair", "a depth of 9.223372037e+18", RFX_STATUS_UNSUPPORTED},
        {4, 5, "pair", "axis 5 of a tensor of rank 5", RFX_STATUS_MALFORMED},
        {4, -1, "depth", "values that are not off and on", RFX_STATUS_MALFORMED},
    };
    static const int64_t two = 2;
    static const float pair[2] = {-1.0f, 2.0f};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char in[32];
        begin();
        add_ints("depth", cases[i].depth);
        add_ints("one", 1);
        maker_floats(&graph, "pair", &two, 1, pair);
        maker_add(&graph, "TopK", "image one", "_ at");
        (void)snprintf(in, sizeof in, "at depth %s", cases[i].values);
        maker_add_int(&graph, "OneHot", in, "y", "axis", cases[i].axis);
        if (cases[i].why != NULL) {
            onnx_net_refused(&graph, 17, cases[i].status, cases[i].why);
            continue;
        }
        struct rfx_graph *net = onnx_net_loaded(&graph, 17);
        const struct rfx_shape *shape = &net->nodes[net->outputs[0].node].out.shape;
        assert_int_equal(shape->rank, 5);
        assert_int_equal(shape->dims[cases[i].axis < 0 ? 4 : 0], 4);
        onnx_net_discard(net);
    }
}

/* The image's own values as indices: towards 0, from the end below it, off beyond it. */
static void one_hot_of_fractions(void **state) {
    (void)state;
    static const float values[8] = {0.9f, -0.9f, 2.5f, -3.9f, 3.0f, -4.0f, 1.0f, NAN},
                       pair[2] = {-1, 2};
    static const int on[8] = {0, 0, 2, 0, -1, -1, 1, -1};
    static const int64_t small[] = {1, 1, 1, 8}, two = 2;
    for (int64_t axis = -5; axis < 5; axis++) {
        graph.size = 0;
        maker_value(&graph, MAKER_INPUT, "x", small, 4);
        add_ints("depth", 3);
        maker_floats(&graph, "pair", &two, 1, pair);
        maker_add_int(&graph, "OneHot", "x depth pair", "y", "axis", axis);
        struct rfx_graph *net = onnx_net_loaded(&graph, 17);
        float *got = test_run_output(net, values, 0);
        bool last = axis == -1 || axis == 4; /* else the 8 places are in the last axis */
        for (int i = 0; i < 8; i++)
            for (int k = 0; k < 3; k++)
                assert_true(got[last ? i * 3 + k : k * 8 + i] == pair[on[i] == k]);
        free(got);
        onnx_net_discard(net);
    }
}

/* Axes that data and indices share come first: of each row of the image another element. */
static void batches(void **state) {
    (void)state;
    static const int64_t dims[] = {1, 3, 1}, where[] = {0, -1, 2};
    begin();
    maker_int_tensor(&graph, "where", dims, 3, where);
    maker_add_int(&graph, "GatherND", "image where", "y", "batch_dims", 2);
    struct rfx_graph *net = onnx_net_loaded(&graph, 17);
    const struct rfx_shape *shape = &net->nodes[net->outputs[0].node].out.shape;
    float image[60];
    for (int i = 0; i < 60; i++) image[i] = (float)i;
    assert_int_equal(shape->rank, 3);
    assert_int_equal(shape->dims[1], 3);
    assert_int_equal(shape->dims[2], 5);
    float *got = test_run_output(net, image, 0);
    for (int i = 0; i < 15; i++)
        assert_true(got[i] == (float)(i / 5 * 20 + (where[i / 5] + 4) % 4 * 5 + i % 5));
    free(got);
    onnx_net_discard(net);
}

/* How large the result is, only a run could say: the refusal says where to cut. */
static void sized_by_values(void **state) {
    (void)state;
    static const char *const cases[][3] = {
        {"NonMaxSuppression", "a b", "cut the file before it, at 'a' and 'b' (onnx"},
        {"NonZero", "a", "cut the file before it, at 'a' (onnx"},
    };
    for (int i = 0; i < 2; i++) {
        begin();
        maker_add(&graph, "Relu", "image", "a");
        maker_add(&graph, "Abs", "image", "b");
        maker_add(&graph, cases[i][0], cases[i][1], "y");
        onnx_net_refused(&graph, 17, RFX_STATUS_UNSUPPORTED, cases[i][2]);
    }
}

static void refusals(void **state) {
    (void)state;
    begin();
    add_ints("many", 6);
    maker_add(&graph, "TopK", "image many", "y");
    onnx_net_refused(&graph, 17, RFX_STATUS_UNSUPPORTED, "k = 6 of 5 elements");
    begin();
    add_ints("one", 1);
    maker_add_int(&graph, "TopK", "image one", "y", "axis", 4);
    onnx_net_refused(&graph, 17, RFX_STATUS_MALFORMED, "axis 4 of a tensor of rank 4");
    begin();
    maker_int_tensor(&graph, "place", (const int64_t[]){1, 1}, 2, (const int64_t[]){0, 0});
    maker_add_int(&graph, "GatherND", "image place", "y", "batch_dims", -1);
    onnx_net_refused(&graph, 17, RFX_STATUS_MALFORMED, "batch_dims = -1");
    static const int64_t ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    begin();
    maker_int_tensor(&graph, "deep", ones, 8, ones);
    add_ints("depth", 4);
    maker_add(&graph, "OneHot", "deep depth depth", "y");
    onnx_net_refused(&graph, 17, RFX_STATUS_UNSUPPORTED, "indices of rank 8");
    begin();
    maker_add(&graph, "TopK", "image image", "y");
    onnx_net_refused(&graph, 17, RFX_STATUS_UNSUPPORTED, "input 1 ('image') is computed");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(top_k),
        cmocka_unit_test(quotients),
        cmocka_unit_test(casts),
        cmocka_unit_test(only_images),
        cmocka_unit_test(indices),
        cmocka_unit_test(one_hot_of_fractions),
        cmocka_unit_test(batches),
        cmocka_unit_test(one_hot),
        cmocka_unit_test(scattered_constants),
        cmocka_unit_test(sized_by_values),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
