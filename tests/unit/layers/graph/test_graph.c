/* Building graphs: copies, refusals with their texts, names, every allocation failing once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "layers/graph/graph.h"
#include "tests/support/test_util.h"

static enum rfx_status add_input(struct rfx_graph *graph, int64_t c, int64_t h, int64_t w,
                                 struct rfx_error *err) {
    struct rfx_node node = {.op = RFX_OP_INPUT, .name = "x"};
    node.attr.input.c = c;
    node.attr.input.h = h;
    node.attr.input.w = w;
    int index;
    return rfx_graph_add(graph, &node, &index, err);
}

static struct rfx_graph *with_input(struct rfx_memory *mem) {
    struct rfx_graph *graph;
    assert_int_equal(rfx_graph_create(mem, "net", &graph, NULL), RFX_OK);
    assert_int_equal(add_input(graph, 3, 5, 7, NULL), RFX_OK);
    return graph;
}

static void test_nodes_are_copied(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = with_input(mem);
    char name[] = "pick", alias[] = "block.1";
    int64_t map[] = {2, 0};
    int in = 0, index = -1;
    struct rfx_node node = {
        .op = RFX_OP_CHANNEL_SELECT, .name = name, .alias = alias, .n_in = 1, .in = &in};
    node.attr.select.count = 2;
    node.attr.select.map = map;
    assert_int_equal(rfx_graph_add(graph, &node, &index, NULL), RFX_OK);
    name[0] = alias[0] = '?';
    map[0] = map[1] = 99;
    in = 55;
    assert_int_equal(index, 1);
    assert_int_equal(graph->nodes[1].in[0], 0);
    assert_int_equal(graph->nodes[1].attr.select.map[0], 2);
    assert_int_equal(graph->nodes[1].out.c, 2);
    assert_int_equal(graph->nodes[1].out.elems, 2 * 5 * 7);
    assert_int_equal(rfx_node_out_bytes(&graph->nodes[1]), 2 * 5 * 7 * 4);
    assert_int_equal(rfx_graph_find(graph, "pick"), 1);
    assert_int_equal(rfx_graph_find(graph, "block.1"), 1);
    assert_int_equal(rfx_graph_find(graph, "x"), 0);
    assert_int_equal(rfx_graph_find(graph, "?ick"), -1);
    assert_int_equal(rfx_graph_set_alias(graph, 1, "stage", NULL), RFX_OK);
    assert_int_equal(rfx_graph_find(graph, "block.1"), -1);
    assert_int_equal(rfx_graph_find(graph, "stage"), 1);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

static void test_refusals(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = with_input(mem);
    size_t before = rfx_memory_current_bytes(mem);
    struct rfx_error err = {{0}};
    int in = 1, index = -7;
    struct rfx_node node = {.op = RFX_OP_SOFTMAX, .name = "late", .n_in = 1, .in = &in};
    assert_int_equal(rfx_graph_add(graph, &node, &index, &err), RFX_STATUS_MALFORMED);
    assert_non_null(strstr(err.text, "'late'"));
    in = -1;
    assert_int_equal(rfx_graph_add(graph, &node, &index, &err), RFX_STATUS_MALFORMED);
    assert_int_equal(add_input(graph, 1, 1, 1, &err), RFX_STATUS_UNSUPPORTED);
    assert_non_null(strstr(err.text, "already"));
    /* A pool larger than the padded map. */
    in = 0;
    struct rfx_node pool = {.op = RFX_OP_POOL_MAX, .name = "big", .n_in = 1, .in = &in};
    pool.attr.pool = (struct rfx_pool_attr){.kh = 9, .kw = 1, .sh = 1, .sw = 1, .dh = 1, .dw = 1};
    enum rfx_status status = rfx_graph_add(graph, &pool, &index, &err);
    assert_true(status == RFX_STATUS_UNSUPPORTED || status == RFX_STATUS_MALFORMED);
    assert_non_null(strstr(err.text, "'big'"));
    assert_int_equal(index, -7);
    assert_int_equal(graph->n_nodes, 1);
    assert_int_equal(rfx_memory_current_bytes(mem), before);
    assert_int_equal(rfx_graph_add_output(graph, 1, "y", &err), RFX_STATUS_MALFORMED);
    rfx_graph_free(graph);
    struct rfx_graph *huge;
    assert_int_equal(rfx_graph_create(mem, "huge", &huge, NULL), RFX_OK);
    assert_int_not_equal(add_input(huge, INT64_MAX / 4, 3, 3, &err), RFX_OK);
    assert_int_not_equal(add_input(huge, 3, 0, 3, &err), RFX_OK);
    rfx_graph_free(huge);
    rfx_memory_free(mem);
}

static int add(struct rfx_graph *graph, enum rfx_op op, const char *name, int n_in, const int *in) {
    struct rfx_node node = {.op = op, .name = name, .n_in = n_in, .in = in};
    struct rfx_error err = {{0}};
    int index = -1;
    node.act.kind = op == RFX_OP_ACTIVATION ? RFX_ACT_RELU : RFX_ACT_NONE;
    if (op == RFX_OP_POOL_MAX)
        node.attr.pool =
            (struct rfx_pool_attr){.kh = 2, .kw = 2, .sh = 1, .sw = 1, .dh = 1, .dw = 1};
    if (op == RFX_OP_CROP) node.attr.crop.sy = node.attr.crop.sx = 1;
    if (op == RFX_OP_CROP) node.attr.crop.oh = node.attr.crop.ow = 2;
    if (rfx_graph_add(graph, &node, &index, &err) != RFX_OK) fail_msg("%s", err.text);
    return index;
}

static int add_convert(struct rfx_graph *graph, int in, enum rfx_type to) {
    const struct rfx_node node = {
        .op = RFX_OP_CONVERT, .name = "to", .n_in = 1, .in = &in, .attr.convert = {.to = to}};
    int index = -1;
    assert_int_equal(rfx_graph_add(graph, &node, &index, NULL), RFX_OK);
    return index;
}

/* Ops that take uint8 read it without conversion and keep it. Other ops share one conversion. */
static void test_conversions_are_inserted(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = with_input(mem);
    int bytes = add_convert(graph, 0, RFX_TYPE_UINT8), both[2] = {0, bytes};
    assert_int_equal(rfx_node_out_bytes(&graph->nodes[bytes]) * 4,
                     rfx_node_out_bytes(&graph->nodes[0]));
    static const enum rfx_op keep[] = {RFX_OP_POOL_MAX, RFX_OP_CROP, RFX_OP_CONCAT};
    for (size_t i = 0; i < sizeof keep / sizeof keep[0]; i++) {
        int node = add(graph, keep[i], "kept", 1, &bytes);
        assert_int_equal(node, bytes + 1 + (int)i);
        assert_int_equal(graph->nodes[node].in[0], bytes);
        assert_int_equal(graph->nodes[node].out.type, RFX_TYPE_UINT8);
    }
    int before = graph->n_nodes, relu = add(graph, RFX_OP_ACTIVATION, "relu", 1, &bytes);
    assert_int_equal(relu, before + 1);
    assert_int_equal(graph->nodes[before].op, RFX_OP_CONVERT);
    assert_string_equal(graph->nodes[before].name, "to as float32");
    assert_int_equal(graph->nodes[before].in[0], bytes);
    assert_int_equal(graph->nodes[before].out.type, RFX_TYPE_FLOAT32);
    assert_int_equal(graph->nodes[relu].in[0], before);
    assert_int_equal(graph->nodes[relu].out.type, RFX_TYPE_FLOAT32);
    int concat = add(graph, RFX_OP_CONCAT, "both", 2, both);
    assert_int_equal(concat, relu + 1);
    assert_int_equal(graph->nodes[concat].in[0], 0);
    assert_int_equal(graph->nodes[concat].in[1], before);
    assert_int_equal(graph->nodes[concat].out.type, RFX_TYPE_FLOAT32);
    assert_int_equal(add(graph, RFX_OP_TO_PLAIN, "plain", 1, &bytes), concat + 1);
    rfx_graph_free(graph);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

/* rfx_graph_add refuses an input that would need a conversion that does not exist. */
static void test_other_elements_are_refused(void **state) {
    (void)state;
    static const float scale = 0.5f;
    static const int32_t zero = 3;
    static const struct rfx_quant quant = {.count = 1, .scales = &scale, .zero_points = &zero};
    static const struct {
        enum rfx_op op;
        enum rfx_type type;
        const char *text;
    } ops[] = {
        {RFX_OP_ACTIVATION, RFX_TYPE_INT64,
         "Activation 'n': input 0: Convert 'relu as float32': from int64 to float32 is no conv"},
        {RFX_OP_TO_PLAIN, RFX_TYPE_FLOAT16,
         "'n': input 0: Convert 'relu as float32': from float16"},
        {RFX_OP_ACTIVATION, RFX_TYPE_UINT8,
         "'n': input 0: Convert 'relu as float32': input 0 has s"},
    };
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_graph *graph = with_input(mem);
        struct rfx_error err = {{0}};
        int index, image = 0, relu = add(graph, RFX_OP_ACTIVATION, "relu", 1, &image);
        struct rfx_node node = {.op = ops[i].op, .name = "n", .n_in = 1, .in = &relu};
        node.act.kind = ops[i].op == RFX_OP_ACTIVATION ? RFX_ACT_RELU : RFX_ACT_NONE;
        assert_int_equal(rfx_graph_add(graph, &node, &index, &err), RFX_OK);
        graph->nodes[relu].out.type = ops[i].type;
        graph->nodes[relu].out.quant = &quant;
        assert_int_equal(rfx_graph_add(graph, &node, &index, &err), RFX_STATUS_UNSUPPORTED);
        if (strstr(err.text, ops[i].text) == NULL) fail_msg("%s", err.text);
        rfx_graph_free(graph);
        assert_int_equal(rfx_memory_current_bytes(mem), 0);
        rfx_memory_free(mem);
    }
}

/* Ops that keep their input's type keep its scales, and refuse inputs of different scales. */
static void test_scales_are_kept(void **state) {
    (void)state;
    static const float scales[2] = {0.5f, 0.25f};
    static const int32_t zero = 3;
    static const struct rfx_quant quants[2] = {
        {.count = 1, .scales = &scales[0], .zero_points = &zero},
        {.count = 1, .scales = &scales[1], .zero_points = &zero}};
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = with_input(mem);
    struct rfx_error err = {{0}};
    int index, both[2];
    both[0] = add_convert(graph, 0, RFX_TYPE_UINT8);
    both[1] = add_convert(graph, 0, RFX_TYPE_UINT8);
    assert_int_not_equal(both[0], both[1]);
    for (int i = 0; i < 2; i++) graph->nodes[both[i]].out.quant = &quants[0];
    int pool = add(graph, RFX_OP_POOL_MAX, "pool", 1, both);
    int concat = add(graph, RFX_OP_CONCAT, "concat", 2, both);
    assert_ptr_equal(graph->nodes[pool].out.quant, &quants[0]);
    assert_ptr_equal(graph->nodes[concat].out.quant, &quants[0]);
    graph->nodes[both[1]].out.quant = &quants[1];
    const struct rfx_node node = {.op = RFX_OP_CONCAT, .name = "n", .n_in = 2, .in = both};
    assert_int_equal(rfx_graph_add(graph, &node, &index, &err), RFX_STATUS_UNSUPPORTED);
    assert_non_null(strstr(err.text, "'n': input 1 has not the scale of input 0"));
    rfx_graph_free(graph);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

static void test_weights_are_owned(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = with_input(mem);
    float values[] = {1, 2, 3}, out[3];
    struct rfx_weight w = {
        .source = RFX_WEIGHT_OWNED, .data = values, .shape = {1, {3}}, .elems = 3};
    int a = -1, b = -1;
    assert_int_equal(rfx_graph_add_weight(graph, &w, &a, NULL), RFX_OK);
    w.data = NULL;
    assert_int_equal(rfx_graph_add_weight(graph, &w, &b, NULL), RFX_OK);
    values[1] = 9;
    test_read_weight(&graph->weights[a], 0, 3, out);
    assert_true(out[0] == 1 && out[1] == 2 && out[2] == 3);
    rfx_graph_owned_weight(graph, b)[2] = 4;
    test_read_weight(&graph->weights[b], 1, 2, out);
    assert_true(out[0] == 0 && out[1] == 4);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

/* Input, 20 affines (tables grow), a channel map, an alias, outputs, finish. */
static enum rfx_status build(struct rfx_memory *mem, void *context, struct rfx_error *err) {
    (void)context;
    struct rfx_graph *graph = NULL;
    enum rfx_status status = rfx_graph_create(mem, "net", &graph, err);
    if (status != RFX_OK) return status;
    status = add_input(graph, 3, 5, 7, err);
    for (int i = 0; status == RFX_OK && i < 20; i++) {
        float ones[] = {1, 1, 1};
        int in = i, index;
        struct rfx_weight w = {
            .source = RFX_WEIGHT_OWNED, .data = ones, .shape = {1, {3}}, .elems = 3};
        char name[16];
        (void)snprintf(name, sizeof name, "a%d", i);
        struct rfx_node node = {
            .op = RFX_OP_AFFINE, .name = name, .alias = "twin", .n_in = 1, .in = &in};
        node.attr.affine.shift = -1;
        status = rfx_graph_add_weight(graph, &w, &node.attr.affine.scale, err);
        if (status == RFX_OK) status = rfx_graph_add(graph, &node, &index, err);
    }
    int64_t map[] = {0, 2};
    int in = 20, index = 0;
    struct rfx_node node = {.op = RFX_OP_CHANNEL_SELECT, .name = "pick", .n_in = 1, .in = &in};
    node.attr.select.count = 2;
    node.attr.select.map = map;
    if (status == RFX_OK) status = rfx_graph_add(graph, &node, &index, err);
    if (status == RFX_OK) status = rfx_graph_set_alias(graph, index, "last", err);
    if (status == RFX_OK) status = rfx_graph_add_output(graph, index, "y", err);
    if (status == RFX_OK) status = rfx_graph_finish(graph, NULL, err);
    rfx_graph_free(graph);
    return status;
}

static void test_every_allocation_may_fail(void **state) {
    (void)state;
    assert_true(test_fail_each_allocation(build, NULL) > 60);
}

/* What shapes a map of 3 x 4 x 5 has in either order, and where its elements lie then. */
static void test_declared_shapes(void **state) {
    (void)state;
    static const struct {
        struct rfx_shape shape;
        bool first, last;
    } cases[] = {
        {{4, {1, 3, 4, 5}}, true, false},    {{3, {3, 4, 5}}, true, false},
        {{5, {1, 1, 3, 4, 5}}, true, false}, {{5, {1, 3, 1, 4, 5}}, true, false},
        {{4, {1, 4, 5, 3}}, false, true},    {{3, {4, 5, 3}}, false, true},
        {{2, {4, 5}}, false, false},         {{3, {3, 5, 4}}, false, false},
        {{3, {1, 3, 20}}, false, false},     {{4, {3, 1, 5, 4}}, false, false},
        {{4, {3, 3, 4, 5}}, false, false},   {{1, {60}}, false, false},
    };
    const struct rfx_tensor map = rfx_tensor_nhwc(3, 4, 5);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(rfx_shape_is_of_map(&cases[i].shape, &map, false), cases[i].first);
        assert_int_equal(rfx_shape_is_of_map(&cases[i].shape, &map, true), cases[i].last);
    }
    const struct rfx_rect part = rfx_rect_make(1, 3, 2, 5); /* 2 x 3 */
    const struct rfx_stored planes = {.last = false}, pixels = {.last = true};
    struct rfx_spread at = rfx_stored_spread(&planes, part, 3);
    assert_int_equal(at.first + 2 * at.row_step + 3 * at.column_step + 1 * at.channel_step,
                     6 + 3 + 1); /* row 1 of 2, column 1 of 3, in plane 1 */
    at = rfx_stored_spread(&pixels, part, 3);
    assert_int_equal(at.first + 2 * at.row_step + 3 * at.column_step + 1 * at.channel_step,
                     (3 + 1) * 3 + 1);
}

/* An output of a part has its rows and columns, wherever those are in the shape. */
static void test_shape_of_an_output(void **state) {
    (void)state;
    static const struct rfx_shape last = {3, {5, 7, 3}}, other = {3, {7, 5, 3}};
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = with_input(mem);
    struct rfx_error err;
    const struct rfx_tensor *t = &graph->nodes[0].out;
    assert_int_equal(rfx_graph_add_output(graph, 0, "y", &err), RFX_OK);
    assert_int_equal(t->c * 10000 + t->h * 100 + t->w, 30507);
    assert_false(rfx_graph_reshape_output(graph, 0, &other, true));
    assert_int_equal(rfx_output_shape(graph, 0).rank, 4);
    assert_true(rfx_graph_reshape_output(graph, 0, &last, true));
    graph->outputs[0].part = rfx_rect_make(1, 3, 0, 6);
    const struct rfx_shape shape = rfx_output_shape(graph, 0);
    assert_int_equal(shape.rank, 3);
    assert_int_equal(shape.dims[0] * 100 + shape.dims[1] * 10 + shape.dims[2], 263);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

static void count_call(void *files) {
    ++*(int *)files;
}

static void test_files_are_closed_once(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = with_input(mem);
    int calls = 0;
    graph->files = &calls;
    graph->files_free = count_call;
    rfx_graph_free(graph);
    assert_int_equal(calls, 1);
    rfx_graph_free(NULL);
    rfx_memory_free(mem);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_nodes_are_copied),
                                       cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_conversions_are_inserted),
                                       cmocka_unit_test(test_other_elements_are_refused),
                                       cmocka_unit_test(test_scales_are_kept),
                                       cmocka_unit_test(test_weights_are_owned),
                                       cmocka_unit_test(test_every_allocation_may_fail),
                                       cmocka_unit_test(test_declared_shapes),
                                       cmocka_unit_test(test_shape_of_an_output),
                                       cmocka_unit_test(test_files_are_closed_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
