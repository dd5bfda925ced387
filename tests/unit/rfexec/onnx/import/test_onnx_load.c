/* Small hand-made models through rfx_onnx_load: structure, folding, refusals, lack of memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "rfexec/run/model.h"
#include "tests/support/makers/onnx_maker.h"
#include "tests/support/test_util.h"

#define MODEL_PATH "test_onnx_load.onnx"

static struct maker graph, node, model;

static void add(void) {
    maker_message(&graph, MAKER_NODE, &node);
}

/* image (1, 2, h, w) -> Conv 3x3 pad 1, 4 channels -> Relu -> r */
static void begin_network(int64_t h, int64_t w) {
    static const int64_t weight_dims[] = {4, 2, 3, 3}, pads[] = {1, 1, 1, 1};
    static float weights[72];
    const int64_t image[] = {1, 2, h, w};
    for (int i = 0; i < 72; i++) weights[i] = (float)i;
    graph.size = 0;
    maker_value(&graph, MAKER_INPUT, "image", image, 4);
    maker_floats(&graph, "k", weight_dims, 4, weights);
    maker_node(&node, "Conv", "image k", "c");
    maker_attr_ints(&node, "pads", pads, 4);
    add();
    maker_node(&node, "Relu", "c", "r");
    add();
}

static enum rfx_status load(struct rfx_memory *mem, int64_t opset, int64_t h, int64_t w,
                            struct rfx_graph **out, struct rfx_error *err) {
    struct rfx_load_options options = {.h = h, .w = w};
    maker_model(&graph, opset, &model);
    maker_save(&model, MODEL_PATH);
    return rfx_onnx_load(mem, MODEL_PATH, &options, out, err);
}

/* Loads and expects one output of the given shape. */
static void expect_shape(int64_t opset, const struct rfx_shape *want) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *loaded = NULL;
    struct rfx_error err = {""};
    enum rfx_status status = load(mem, opset, 6, 10, &loaded, &err);
    if (status != RFX_OK) fail_msg("%s", err.text);
    const struct rfx_shape *got = &loaded->nodes[loaded->outputs[0].node].out.shape;
    assert_int_equal(got->rank, want->rank);
    for (int i = 0; i < want->rank; i++) assert_int_equal(got->dims[i], want->dims[i]);
    rfx_graph_free(loaded);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

static void expect_refusal(int64_t opset, enum rfx_status want, const char *text) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *loaded = NULL;
    struct rfx_error err = {""};
    assert_int_equal(load(mem, opset, 6, 10, &loaded, &err), want);
    if (strstr(err.text, text) == NULL) fail_msg("'%s' lacks '%s'", err.text, text);
    assert_null(loaded);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

static void weights_stay_in_the_file(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *loaded = NULL;
    struct rfx_error err = {""};
    begin_network(0, 0);
    maker_value(&graph, MAKER_OUTPUT, "r", NULL, 0);
    assert_int_equal(load(mem, 13, 6, 10, &loaded, &err), RFX_OK);
    assert_int_equal(loaded->n_outputs, 1);
    assert_string_equal(loaded->outputs[0].name, "r");
    const struct rfx_node *conv = &loaded->nodes[loaded->outputs[0].node];
    assert_int_equal(conv->op, RFX_OP_CONV);
    assert_int_equal(conv->act.kind, RFX_ACT_RELU);
    assert_int_equal(conv->out.c, 4);
    assert_int_equal(conv->out.h, 6);
    assert_int_equal(conv->out.w, 10);
    const struct rfx_weight *weight = &loaded->weights[conv->attr.conv.weight];
    assert_int_equal(weight->source, RFX_WEIGHT_FILE);
    float values[3];
    test_read_weight(weight, 69, 3, values);
    for (int i = 0; i < 3; i++) assert_true(values[i] == (float)(69 + i));
    rfx_graph_free(loaded);
    rfx_memory_free(mem);
}

/* Shape -> Gather 1 -> Concat with -1 -> Reshape: (1, 4, 6, 10) as (4, 60). */
static void shape_arithmetic_folds(void **state) {
    (void)state;
    static const int64_t one = 1, minus = -1, five = 5;
    begin_network(6, 10);
    maker_ints(&graph, "five", &five, 1);
    maker_ints(&graph, "one", &one, 1);
    maker_ints(&graph, "minus", &minus, 1);
    maker_node(&node, "Shape", "r", "s");
    add();
    maker_node(&node, "Gather", "s one", "g");
    add();
    maker_node(&node, "Clip", "g five", "clipped");
    add();
    maker_node(&node, "Concat", "clipped minus", "t");
    maker_attr_int(&node, "axis", 0);
    add();
    maker_node(&node, "Reshape", "r t", "y");
    add();
    maker_value(&graph, MAKER_OUTPUT, "y", NULL, 0);
    expect_shape(13, &(struct rfx_shape){2, {5, 48}});
}

static void channel_shuffle_is_one_select(void **state) {
    (void)state;
    static const int64_t split[] = {1, 2, 2, 6, 10}, join[] = {1, 4, 6, 10},
                         perm[] = {0, 2, 1, 3, 4}, want[] = {0, 2, 1, 3};
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *loaded = NULL;
    struct rfx_error err = {""};
    begin_network(6, 10);
    maker_ints(&graph, "split", split, 5);
    maker_ints(&graph, "join", join, 4);
    maker_node(&node, "Reshape", "r split", "a");
    add();
    maker_node(&node, "Transpose", "a", "b");
    maker_attr_ints(&node, "perm", perm, 5);
    add();
    maker_node(&node, "Reshape", "b join", "y");
    add();
    maker_value(&graph, MAKER_OUTPUT, "y", NULL, 0);
    assert_int_equal(load(mem, 13, 6, 10, &loaded, &err), RFX_OK);
    assert_int_equal(loaded->n_nodes, 3);
    assert_int_equal(loaded->nodes[2].op, RFX_OP_CHANNEL_SELECT);
    for (int i = 0; i < 4; i++) assert_int_equal(loaded->nodes[2].attr.select.map[i], want[i]);
    rfx_graph_free(loaded);
    rfx_memory_free(mem);
}

/* Zeros around the channels are a select, and the rows and columns a Pad behind it. */
static void padded_channels(void **state) {
    (void)state;
    static const int64_t pads[] = {0, 1, 0, 2, 0, 2, 0, 3}, want[] = {-1, 0, 1, 2, 3, -1, -1};
    static const float half = 0.5f;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *loaded = NULL;
    struct rfx_error err = {""};
    begin_network(6, 10);
    maker_ints(&graph, "pads", pads, 8);
    maker_node(&node, "Pad", "r pads", "y");
    add();
    maker_value(&graph, MAKER_OUTPUT, "y", NULL, 0);
    assert_int_equal(load(mem, 13, 6, 10, &loaded, &err), RFX_OK);
    const struct rfx_node *select = &loaded->nodes[2], *pad = &loaded->nodes[3];
    assert_int_equal(loaded->n_nodes, 4);
    assert_int_equal(select->op, RFX_OP_CHANNEL_SELECT);
    assert_int_equal(select->attr.select.count, 7);
    for (int i = 0; i < 7; i++) assert_int_equal(select->attr.select.map[i], want[i]);
    assert_int_equal(pad->op, RFX_OP_PAD);
    assert_int_equal(pad->out.h, 6);
    assert_int_equal(pad->out.w, 10 + 2 + 3);
    rfx_graph_free(loaded);
    begin_network(6, 10);
    maker_ints(&graph, "pads", pads, 8);
    maker_floats(&graph, "half", NULL, 0, &half);
    maker_node(&node, "Pad", "r pads half", "y");
    add();
    maker_value(&graph, MAKER_OUTPUT, "y", NULL, 0);
    assert_int_equal(load(mem, 13, 6, 10, &loaded, &err),
                     RFX_OK); /* other values: a whole tensor */
    const struct rfx_shape *shape = &loaded->nodes[loaded->n_nodes - 1].out.shape;
    assert_int_equal(shape->dims[1], 7);
    assert_int_equal(shape->dims[3], 10 + 2 + 3);
    rfx_graph_free(loaded);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

/* The attribute form of opset 9 and the input form of opset 13 cut the same rows. */
static void slice_in_both_forms(void **state) {
    (void)state;
    static const int64_t start = 1, end = INT64_MAX, axis = 2;
    const struct rfx_shape want = {4, {1, 4, 5, 10}};
    begin_network(6, 10);
    maker_node(&node, "Slice", "r", "y");
    maker_attr_ints(&node, "starts", &start, 1);
    maker_attr_ints(&node, "ends", &end, 1);
    maker_attr_ints(&node, "axes", &axis, 1);
    add();
    maker_value(&graph, MAKER_OUTPUT, "y", NULL, 0);
    expect_shape(9, &want);
    begin_network(6, 10);
    maker_ints(&graph, "from", &start, 1);
    maker_ints(&graph, "to", &end, 1);
    maker_ints(&graph, "on", &axis, 1);
    maker_node(&node, "Slice", "r from to on", "y");
    add();
    maker_value(&graph, MAKER_OUTPUT, "y", NULL, 0);
    expect_shape(13, &want);
}

static void refusals_name_the_node(void **state) {
    (void)state;
    static const int64_t dims[] = {7, 3};
    static const float zeros[21];
    begin_network(6, 10);
    maker_node(&node, "Multinomial", "r", "y");
    add();
    maker_value(&graph, MAKER_OUTPUT, "y", NULL, 0);
    expect_refusal(13, RFX_STATUS_UNSUPPORTED, "Multinomial 'y' (opset 13)");
    expect_refusal(6, RFX_STATUS_UNSUPPORTED, "opset 6");
    begin_network(6, 10);
    maker_node(&node, "Add", "r later", "y");
    add();
    maker_value(&graph, MAKER_OUTPUT, "y", NULL, 0);
    expect_refusal(13, RFX_STATUS_MALFORMED, "'later'");
    begin_network(6, 10);
    maker_floats(&graph, "w", dims, 2, zeros);
    maker_node(&node, "Flatten", "r", "f");
    add();
    maker_node(&node, "Gemm", "f w", "y");
    add();
    maker_value(&graph, MAKER_OUTPUT, "y", NULL, 0);
    expect_refusal(13, RFX_STATUS_UNSUPPORTED, "7 inputs, 240 given at 6x10");
}

/* The first one is named as the place, and all with their numbers. */
static void unknown_operators_are_all_named(void **state) {
    (void)state;
    static const char *const ops[] = {"Multinomial", "Unique", "Multinomial", "Relu", "Scan"};
    const char *from = "r";
    static const char *const to[] = {"a", "b", "c", "d", "y"};
    begin_network(6, 10);
    for (int i = 0; i < 5; i++) {
        maker_node(&node, ops[i], from, to[i]);
        add();
        from = to[i];
    }
    maker_value(&graph, MAKER_OUTPUT, "y", NULL, 0);
    expect_refusal(
        13, RFX_STATUS_UNSUPPORTED,
        "Multinomial 'a' (opset 13): this operator is not supported; all such operators in this "
        "model: Multinomial (2), Unique (1), Scan (1)");
}

/* Every allocation of a load fails once: out of memory, and nothing is left behind. */
static void memory_runs_out(void **state) {
    (void)state;
    begin_network(6, 10);
    maker_value(&graph, MAKER_OUTPUT, "r", NULL, 0);
    struct rfx_memory *mem = rfx_memory_create(0);
    enum rfx_status status = RFX_STATUS_OUT_OF_MEMORY;
    int k = 0;
    for (; status != RFX_OK && k < 1000; k++) {
        struct rfx_graph *loaded = NULL;
        rfx_memory_fail_after(mem, k);
        status = load(mem, 13, 6, 10, &loaded, NULL);
        if (status != RFX_OK) assert_int_equal(status, RFX_STATUS_OUT_OF_MEMORY);
        rfx_graph_free(loaded);
        assert_int_equal(rfx_memory_current_bytes(mem), 0);
    }
    assert_true(k > 5 && k < 1000);
    rfx_memory_free(mem);
}

/* Half precision, also of the image: values as float32, and it is told. */
static void halves(void **state) {
    (void)state;
    static const unsigned char values[2][2] = {{0x00, 0x3e}, {0xc0, 0x3f}}; /* 1.5 as either */
    static const int types[2] = {10, 16};
    for (int i = 0; i < 2; i++) {
        static struct maker tensor, value, type, form, shape, dim;
        tensor.size = value.size = type.size = form.size = shape.size = 0;
        for (int d = 0; d < 4; d++) maker_int(&tensor, 1, 1);
        maker_int(&tensor, 2, types[i]);
        maker_text(&tensor, 8, "k");
        maker_bytes(&tensor, 9, values[i], 2);
        for (int d = 0; d < 4; d++) {
            dim.size = 0;
            maker_int(&dim, 1, d < 2 ? 1 : 3);
            maker_message(&shape, 1, &dim);
        }
        maker_int(&form, 1, types[i]);
        maker_message(&form, 2, &shape);
        maker_message(&type, 1, &form);
        maker_text(&value, 1, "image");
        maker_message(&value, 2, &type);
        graph.size = 0;
        maker_message(&graph, MAKER_INPUT, &value);
        maker_message(&graph, 5, &tensor);
        maker_node(&node, "Conv", "image k", "c");
        add();
        maker_node(&node, "Cast", "c", "y");
        maker_attr_int(&node, "to", types[i]);
        add();
        maker_value(&graph, MAKER_OUTPUT, "y", NULL, 0);
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_graph *loaded = NULL;
        struct rfx_error err = {""};
        float got = 0;
        if (load(mem, 17, 0, 0, &loaded, &err) != RFX_OK) fail_msg("%s", err.text);
        assert_true(loaded->halves);
        assert_int_equal(loaded->n_nodes, 2);
        test_read_weight(&loaded->weights[loaded->nodes[1].attr.conv.weight], 0, 1, &got);
        assert_true(got == 1.5f);
        rfx_graph_free(loaded);
        rfx_memory_free(mem);
    }
}

/* Before opset 7 a vector of weights is one per channel when `axis` says so. */
static void old_broadcast(void **state) {
    (void)state;
    static const int64_t four[] = {4};
    static const float values[4] = {1, 2, 3, 4};
    begin_network(6, 10);
    maker_floats(&graph, "v", four, 1, values);
    maker_node(&node, "Mul", "r v", "m");
    maker_attr_int(&node, "broadcast", 1);
    maker_attr_int(&node, "axis", 1);
    add();
    maker_node(&node, "PRelu", "m v", "y");
    add();
    maker_value(&graph, MAKER_OUTPUT, "y", NULL, 0);
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *loaded = NULL;
    struct rfx_error err = {""};
    if (load(mem, 6, 6, 10, &loaded, &err) != RFX_OK) fail_msg("%s", err.text);
    for (int i = 0; i < loaded->n_nodes; i++)
        assert_true(loaded->nodes[i].out.c == (i == 0 ? 2 : 4));
    assert_false(loaded->halves);
    rfx_graph_free(loaded);
    assert_int_equal(load(mem, 7, 6, 10, &loaded, &err), RFX_STATUS_UNSUPPORTED);
    rfx_memory_free(mem);
}

/* Images of 8 and 16 bits are read; one of int32 is refused by its number. */
static void images_of_integers(void **state) {
    (void)state;
    static const int64_t image[] = {1, 2, 6, 10};
    for (int type = 2; type <= 6; type++) { /* uint8, int8, uint16, int16, int32 */
        graph.size = 0;
        maker_typed_value(&graph, MAKER_INPUT, "image", type, image, 4);
        maker_add_int(&graph, "Cast", "image", "y", "to", 1);
        maker_value(&graph, MAKER_OUTPUT, "y", NULL, 0);
        if (type < 6)
            expect_shape(13, &(struct rfx_shape){4, {1, 2, 6, 10}});
        else
            expect_refusal(13, RFX_STATUS_UNSUPPORTED, "input 'image' has element type 6; only");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(halves),
        cmocka_unit_test(images_of_integers),
        cmocka_unit_test(old_broadcast),
        cmocka_unit_test(weights_stay_in_the_file),
        cmocka_unit_test(shape_arithmetic_folds),
        cmocka_unit_test(channel_shuffle_is_one_select),
        cmocka_unit_test(padded_channels),
        cmocka_unit_test(slice_in_both_forms),
        cmocka_unit_test(refusals_name_the_node),
        cmocka_unit_test(unknown_operators_are_all_named),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
