/* Branches and functions in the place of nodes: which nodes they become, and what is refused in
 * which words. Values: tests/oracle/inlined_models.py. The encodings are written by hand from
 * onnx.proto. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "rfexec/run/model.h"
#include "tests/support/makers/onnx_maker.h"

enum {                /* fields of AttributeProto, FunctionProto, ModelProto */
       ATTRIBUTE = 5, /* of NodeProto */
       DOMAIN = 7,
       ATTR_NAME = 1,
       ATTR_GRAPH = 6,
       ATTR_TYPE = 20,
       ATTR_REF = 21,
       TYPE_INT = 2,
       TYPE_GRAPH = 5,
       FN_NAME = 1,
       FN_IN = 4,
       FN_OUT = 5,
       FN_NODE = 7,
       FN_OPSETS = 9,
       FN_DOMAIN = 10,
       FN_DEFAULT = 11,
       FUNCTIONS = 25,
       OPSET_VERSION = 2,
};

#define MODEL_PATH "test_onnx_inline.onnx"

static struct maker graph, node, model, branch, attr, function, other;

static void begin(void) {
    static const int64_t image[] = {1, 3, 4, 5};
    graph.size = function.size = other.size = 0;
    maker_value(&graph, MAKER_INPUT, "image", image, 4);
    maker_value(&graph, MAKER_OUTPUT, "y", NULL, 0);
}

static void add(struct maker *to, int field, const char *op, const char *in, const char *out) {
    maker_node(&node, op, in, out);
    maker_message(to, field, &node);
}

/* Into the node: a branch of one operator on the image. */
static void add_branch(const char *name, const char *op, const char *in) {
    branch.size = attr.size = 0;
    static struct maker inner;
    maker_node(&inner, op, in, "b");
    maker_message(&branch, MAKER_NODE, &inner);
    maker_value(&branch, MAKER_OUTPUT, "b", NULL, 0);
    maker_text(&attr, ATTR_NAME, name);
    maker_message(&attr, ATTR_GRAPH, &branch);
    maker_int(&attr, ATTR_TYPE, TYPE_GRAPH);
    maker_message(&node, ATTRIBUTE, &attr);
}

static void begin_function(struct maker *f, const char *name) {
    f->size = 0;
    maker_text(f, FN_NAME, name);
    maker_text(f, FN_DOMAIN, "own");
    maker_text(f, FN_IN, "x");
    maker_text(f, FN_OUT, "z");
}

static void add_call(struct maker *to, int field, const char *name, const char *in,
                     const char *out) {
    maker_node(&node, name, in, out);
    maker_text(&node, DOMAIN, "own");
    maker_message(to, field, &node);
}

static void save(int64_t opset) {
    maker_model(&graph, opset, &model);
    if (function.size != 0) maker_message(&model, FUNCTIONS, &function);
    if (other.size != 0) maker_message(&model, FUNCTIONS, &other);
    maker_save(&model, MODEL_PATH);
}

static void expect(int64_t opset, int n, const enum rfx_op *ops) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_load_options options = {0};
    struct rfx_graph *net = NULL;
    struct rfx_error err = {""};
    save(opset);
    if (rfx_onnx_load(mem, MODEL_PATH, &options, &net, &err) != RFX_OK) fail_msg("%s", err.text);
    for (int i = 1; i < net->n_nodes && i <= n; i++) assert_int_equal(net->nodes[i].op, ops[i - 1]);
    assert_int_equal(net->n_nodes, n + 1);
    rfx_graph_free(net);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
    (void)unlink(MODEL_PATH);
}

static void refused(enum rfx_status status, const char *words) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_load_options options = {0};
    struct rfx_graph *net = NULL;
    struct rfx_error err = {""};
    save(17);
    assert_int_equal(rfx_onnx_load(mem, MODEL_PATH, &options, &net, &err), status);
    if (strstr(err.text, words) == NULL) fail_msg("'%s' is not in: %s", words, err.text);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
    (void)unlink(MODEL_PATH);
}

static void add_if(const char *condition, const char *then_in) {
    maker_node(&node, "If", condition, "y");
    add_branch("then_branch", "GlobalAveragePool", then_in);
    add_branch("else_branch", "MaxPool", "image"); /* without a kernel: it would be refused */
    maker_message(&graph, MAKER_NODE, &node);
}

/* The branch that is taken sees what is around it; the other one is not even looked at. */
static void taken(void **state) {
    (void)state;
    static const int64_t four = 4;
    static const enum rfx_op ops[] = {RFX_OP_ACTIVATION, RFX_OP_GLOBAL_POOL};
    begin();
    maker_ints(&graph, "four", &four, 1);
    add(&graph, MAKER_NODE, "Shape", "image", "shape");
    add(&graph, MAKER_NODE, "Size", "shape", "rank");
    add(&graph, MAKER_NODE, "Equal", "rank four", "is_map");
    add(&graph, MAKER_NODE, "Sin", "image", "around"); /* nobody else reads it */
    add_if("is_map", "around");
    expect(17, 2, ops);
}

/* The branch reads the MaxPool that stands between DequantizeLinear and QuantizeLinear. */
static void reads_within_a_quantised_group(void **state) {
    (void)state;
    static const int64_t four = 4, one = 1;
    static const float step = 0.1f;
    static const enum rfx_op ops[] = {RFX_OP_CONVERT, RFX_OP_CONVERT, RFX_OP_POOL_MAX,
                                      RFX_OP_CONVERT};
    begin();
    maker_ints(&graph, "four", &four, 1);
    maker_floats(&graph, "step", &one, 1, &step);
    add(&graph, MAKER_NODE, "Shape", "image", "shape");
    add(&graph, MAKER_NODE, "Size", "shape", "rank");
    add(&graph, MAKER_NODE, "Equal", "rank four", "is_map");
    add(&graph, MAKER_NODE, "QuantizeLinear", "image step", "bytes");
    add(&graph, MAKER_NODE, "DequantizeLinear", "bytes step", "floats");
    maker_add_ints(&graph, "MaxPool", "floats", "pooled", "kernel_shape", (const int64_t[]){2, 2},
                   2);
    add(&graph, MAKER_NODE, "QuantizeLinear", "pooled step", "pooled_bytes");
    add_if("is_map", "pooled");
    maker_value(&graph, MAKER_OUTPUT, "pooled_bytes", NULL, 0);
    save(17);
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_load_options options = {0};
    struct rfx_graph *net = NULL;
    struct rfx_error err = {""};
    if (rfx_onnx_load(mem, MODEL_PATH, &options, &net, &err) != RFX_OK) fail_msg("%s", err.text);
    for (int i = 0; i < 4; i++) assert_int_equal(net->nodes[i + 1].op, ops[i]);
    rfx_graph_free(net);
    rfx_memory_free(mem);
    (void)unlink(MODEL_PATH);
}

static void not_known_before_a_run(void **state) {
    (void)state;
    begin();
    add(&graph, MAKER_NODE, "ReduceMax", "image", "most");
    add_if("most", "image");
    refused(RFX_STATUS_UNSUPPORTED, "condition 'most' is computed from the image");
}

static void broken_branches(void **state) {
    (void)state;
    static const float none = 0.0f;
    static const int64_t one = 1;
    begin();
    maker_floats(&graph, "yes", &one, 1, &none);
    maker_node(&node, "If", "yes", "y");
    add_branch("then_branch", "Relu", "image");
    maker_message(&graph, MAKER_NODE, &node);
    refused(RFX_STATUS_MALFORMED, "no else_branch");
    begin();
    maker_floats(&graph, "no", &one, 1, &none);
    maker_node(&node, "If", "no", "y");
    add_branch("then_branch", "Relu", "image");
    add_branch("else_branch", "Relu", "nothing");
    maker_message(&graph, MAKER_NODE, &node);
    refused(RFX_STATUS_MALFORMED, "'nothing') is made by no node");
}

/* ReduceSum has its axes as an attribute up to opset 12: the function says 11, the model 17. */
static void opset_of_a_function(void **state) {
    (void)state;
    static const int64_t axes[] = {1};
    static const enum rfx_op ops[] = {RFX_OP_CHANNEL_REDUCE, RFX_OP_CHANNEL_REDUCE};
    begin();
    begin_function(&function, "Sum");
    maker_node(&node, "ReduceSum", "x", "z");
    maker_attr_ints(&node, "axes", axes, 1);
    maker_message(&function, FN_NODE, &node);
    attr.size = 0;
    maker_int(&attr, OPSET_VERSION, 11);
    maker_message(&function, FN_OPSETS, &attr);
    add_call(&graph, MAKER_NODE, "Sum", "image", "s");
    add_call(&graph, MAKER_NODE, "Sum", "s", "y"); /* the same names again */
    expect(17, 2, ops);
}

/* Attributes that are the function's: the call's value, else the function's own, else none. */
static void attributes(void **state) {
    (void)state;
    static const enum rfx_op flat[] = {RFX_OP_TO_PLAIN, RFX_OP_RESHAPE};
    for (int way = 0; way < 3; way++) {
        begin();
        begin_function(&function, "Flat");
        maker_node(&node, "Flatten", "x", "z");
        attr.size = 0;
        maker_text(&attr, ATTR_NAME, "axis");
        maker_text(&attr, ATTR_REF, "from");
        maker_int(&attr, ATTR_TYPE, TYPE_INT);
        maker_message(&node, ATTRIBUTE, &attr);
        maker_message(&function, FN_NODE, &node);
        if (way > 0) { /* a default: the attribute as a node has it */
            static struct maker made;
            made.size = 0;
            maker_text(&made, ATTR_NAME, "from");
            maker_int(&made, 3, 2);
            maker_int(&made, ATTR_TYPE, TYPE_INT);
            maker_message(&function, FN_DEFAULT, &made);
        }
        maker_node(&node, "Flat", "image", "y");
        maker_text(&node, DOMAIN, "own");
        if (way > 1) maker_attr_int(&node, "from", 3);
        maker_message(&graph, MAKER_NODE, &node);
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_load_options options = {0};
        struct rfx_graph *net = NULL;
        struct rfx_error err = {""};
        save(17);
        if (rfx_onnx_load(mem, MODEL_PATH, &options, &net, &err) != RFX_OK)
            fail_msg("%s", err.text);
        static const int64_t rows[] = {1, 3, 12}; /* before axis 1, 2, 3 of (1, 3, 4, 5) */
        assert_int_equal(net->nodes[net->outputs[0].node].out.shape.dims[0], rows[way]);
        rfx_graph_free(net);
        rfx_memory_free(mem);
        expect(17, 2, flat);
    }
}

static void refused_functions(void **state) {
    (void)state;
    begin(); /* one that calls itself */
    begin_function(&function, "F");
    add_call(&function, FN_NODE, "F", "x", "z");
    add_call(&graph, MAKER_NODE, "F", "image", "y");
    refused(RFX_STATUS_UNSUPPORTED, "more than 24 deep");
    begin(); /* two of one name */
    begin_function(&function, "F");
    add(&function, FN_NODE, "Relu", "x", "z");
    other = function;
    add_call(&graph, MAKER_NODE, "F", "image", "y");
    refused(RFX_STATUS_UNSUPPORTED, "several functions of this name");
    begin(); /* an output that it does not make */
    begin_function(&function, "F");
    add(&function, FN_NODE, "Relu", "x", "q");
    add_call(&graph, MAKER_NODE, "F", "image", "y");
    refused(RFX_STATUS_MALFORMED, "output 'z' is made by no node");
    begin(); /* a function does not see what is around its call */
    begin_function(&function, "F");
    add(&function, FN_NODE, "Relu", "image", "z");
    add_call(&graph, MAKER_NODE, "F", "image", "y");
    refused(RFX_STATUS_MALFORMED, "'image') is made by no node");
    begin(); /* an operator that is not supported is named */
    begin_function(&function, "F");
    add(&function, FN_NODE, "Fancy", "x", "z");
    add_call(&graph, MAKER_NODE, "F", "image", "y");
    refused(RFX_STATUS_UNSUPPORTED, "Fancy");
}

/* Functions that call each other twelve times each unfold to more nodes than are allowed. */
static void unfolding(void **state) {
    (void)state;
    static struct maker names;
    begin();
    maker_model(&graph, 17, &model);
    begin();
    add_call(&graph, MAKER_NODE, "F0", "image", "y");
    maker_model(&graph, 17, &model);
    for (int f = 0; f < 8; f++) {
        char name[16], next[16];
        (void)snprintf(name, sizeof name, "F%d", f);
        (void)snprintf(next, sizeof next, "F%d", f + 1);
        begin_function(&names, name);
        for (int k = 0; k < 12; k++) {
            char out[16];
            (void)snprintf(out, sizeof out, "t%d", k);
            if (f == 7)
                add(&names, FN_NODE, "Identity", "x", k == 11 ? "z" : out);
            else
                add_call(&names, FN_NODE, next, "x", k == 11 ? "z" : out);
        }
        maker_message(&model, FUNCTIONS, &names);
    }
    maker_save(&model, MODEL_PATH);
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_load_options options = {0};
    struct rfx_graph *net = NULL;
    struct rfx_error err = {""};
    assert_int_equal(rfx_onnx_load(mem, MODEL_PATH, &options, &net, &err), RFX_STATUS_UNSUPPORTED);
    if (strstr(err.text, "more than 262144 nodes") == NULL) fail_msg("%s", err.text);
    rfx_memory_free(mem);
    (void)unlink(MODEL_PATH);
}

static void memory_runs_out(void **state) {
    (void)state;
    static const float yes = 1.0f;
    static const int64_t one = 1;
    begin();
    begin_function(&function, "F");
    add(&function, FN_NODE, "Sin", "x", "t");
    add_call(&function, FN_NODE, "G", "t", "z");
    begin_function(&other, "G");
    add(&other, FN_NODE, "Cos", "x", "z");
    maker_floats(&graph, "yes", &one, 1, &yes);
    add_call(&graph, MAKER_NODE, "F", "image", "f");
    add_if("yes", "f");
    save(17);
    struct rfx_memory *mem = rfx_memory_create(0);
    enum rfx_status status = RFX_STATUS_OUT_OF_MEMORY;
    for (int k = 0; status != RFX_OK && k < 1000; k++) {
        struct rfx_load_options options = {0};
        struct rfx_graph *net = NULL;
        struct rfx_error err = {""};
        rfx_memory_fail_after(mem, k);
        status = rfx_onnx_load(mem, MODEL_PATH, &options, &net, &err);
        if (status != RFX_OK && status != RFX_STATUS_OUT_OF_MEMORY) fail_msg("%s", err.text);
        rfx_graph_free(net);
        assert_int_equal(rfx_memory_current_bytes(mem), 0);
    }
    assert_int_equal(status, RFX_OK);
    rfx_memory_free(mem);
    (void)unlink(MODEL_PATH);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(taken),
        cmocka_unit_test(reads_within_a_quantised_group),
        cmocka_unit_test(not_known_before_a_run),
        cmocka_unit_test(broken_branches),
        cmocka_unit_test(opset_of_a_function),
        cmocka_unit_test(attributes),
        cmocka_unit_test(refused_functions),
        cmocka_unit_test(unfolding),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
