/* Conversion of attention: each form becomes one node, whatever exporters write around it; what is
 * not done is refused in words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "layers/graph/op.h"
#include "tests/support/makers/onnx_net.h"
#include "tests/support/run/run_whole.h"

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

/* Attention of YOLO12 on a map of 4 x 6: 12 channels, query, key and value of each of two heads,
 * among the pixels of an area, a few rows. "y" is the result plus the map of values. */
static void write_areas(int64_t areas, bool scale_first) {
    static const int64_t one[] = {1};
    static const int64_t last_two[] = {0, 1, 3, 2}, by_head[] = {0, 2, 3, 1};
    static const int64_t by_pixel[] = {0, 3, 1, 2}, tokens[] = {0, 2, 1};
    const int64_t image[] = {1, 12, 4, 6}, flat[] = {1, 12, 24},
                  split[] = {areas, 24 / areas, 2, 6};
    const int64_t all[] = {1, 24, 4}, map[] = {1, 4, 6, 4}, parts[] = {2, 2, 2};
    const float half[1] = {0.5f};
    graph.size = 0;
    maker_value(&graph, MAKER_INPUT, "x", image, 4);
    maker_ints(&graph, "flat", flat, 3);
    maker_ints(&graph, "split", split, 4);
    maker_ints(&graph, "all", all, 3);
    maker_ints(&graph, "map", map, 4);
    maker_floats(&graph, "half", one, 1, half);
    maker_ints(&graph, "parts", parts, 3);
    const struct {
        const char *op, *in, *out, *attribute;
        const int64_t *perm;
        int rank;
    } nodes[] = {
        {"Reshape", "x flat", "f", NULL, NULL, 0},
        {"Transpose", "f", "t", "perm", tokens, 3},
        {"Reshape", "t split", "s", NULL, NULL, 0},
        {"Transpose", "s", "h", "perm", by_head, 4},
        {"Split", "h parts", "q k v", "axis", NULL, 2},
        {"Mul", "q half", "qs", NULL, NULL, 0},
        {"Transpose", scale_first ? "qs" : "q", "qt", "perm", last_two, 4},
        {"MatMul", "qt k", "d", NULL, NULL, 0},
        {"Mul", "d half", "ds", NULL, NULL, 0},
        {"Softmax", scale_first ? "d" : "ds", "p", "axis", NULL, -1},
        {"Transpose", "p", "pt", "perm", last_two, 4},
        {"MatMul", "v pt", "o", NULL, NULL, 0},
        {"Transpose", "o", "o1", "perm", by_pixel, 4},
        {"Reshape", "o1 all", "o2", NULL, NULL, 0},
        {"Reshape", "o2 map", "o3", NULL, NULL, 0},
        {"Transpose", "o3", "o4", "perm", by_pixel, 4},
        {"Transpose", "v", "v1", "perm", by_pixel, 4},
        {"Reshape", "v1 all", "v2", NULL, NULL, 0},
        {"Reshape", "v2 map", "v3", NULL, NULL, 0},
        {"Transpose", "v3", "v4", "perm", by_pixel, 4},
        {"Add", "o4 v4", "y", NULL, NULL, 0},
    };
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        op(nodes[i].op, nodes[i].in, nodes[i].out);
        if (nodes[i].perm != NULL)
            maker_attr_ints(&node, "perm", nodes[i].perm, nodes[i].rank);
        else if (nodes[i].attribute != NULL)
            maker_attr_int(&node, nodes[i].attribute, nodes[i].rank);
        add();
    }
}

/* Areas of whole rows are windows: no tensor is made, and the values are taken from the selection
 * that attention reads. */
static void areas_are_windows(void **state) {
    (void)state;
    for (int64_t areas = 1; areas <= 4; areas++)
        for (int scale_first = 0; scale_first < 2; scale_first++) {
            write_areas(areas, scale_first == 1);
            if (areas == 2) onnx_net_runs_out(&graph, 13);
            struct rfx_graph *net = onnx_net_unfused(&graph, 13);
            const struct rfx_node *n = net->nodes;
            if (areas == 3) { /* an area ends within a row */
                for (int i = 0; i < net->n_nodes; i++)
                    assert_int_not_equal(n[i].op, RFX_OP_WINDOW_ATTENTION);
                onnx_net_discard(net);
                continue;
            }
            assert_int_equal(net->n_nodes, 5);
            assert_int_equal(n[1].op, RFX_OP_CHANNEL_SELECT);
            static const int64_t order[] = {0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11};
            assert_memory_equal(n[1].attr.select.map, order, sizeof order);
            assert_int_equal(n[2].op, RFX_OP_WINDOW_ATTENTION);
            const struct rfx_window_attention_attr *a = &n[2].attr.window_attention;
            assert_int_equal(a->h, 4 / areas);
            assert_int_equal(a->w, 6);
            assert_int_equal(a->heads, 2);
            assert_true(a->scale == 0.5f && a->bias < 0);
            assert_int_equal(n[3].op, RFX_OP_CHANNEL_SELECT);
            assert_int_equal(n[3].in[0], 1);
            assert_int_equal(n[3].attr.select.map[0], 8);
            assert_int_equal(n[4].op, RFX_OP_BINARY);
            onnx_net_discard(net);
        }
}

/* Attention of YOLO11 and YOLOv10 on a map of 4 x 6, with heads of `keys` channels of queries, as
 * many of keys, and 3 of values. "y" is the result plus the map of values. `shared`: all heads have
 * the keys of the first. */
static void write_wide(int64_t keys, bool shared) {
    static const int64_t one[] = {1}, last_two[] = {0, 1, 3, 2}, map[] = {1, 6, 4, 6};
    const int64_t of_head = 2 * keys + 3, image[] = {1, 2 * of_head, 4, 6};
    const int64_t split[] = {1, 2, of_head, 24}, parts[] = {keys, keys, 3}, zero[] = {0};
    const float half[1] = {0.5f};
    graph.size = 0;
    maker_value(&graph, MAKER_INPUT, "x", image, 4);
    maker_ints(&graph, "split", split, 4);
    maker_ints(&graph, "map", map, 4);
    maker_floats(&graph, "half", one, 1, half);
    maker_ints(&graph, "parts", parts, 3);
    maker_ints(&graph, "zero", zero, 1);
    const struct {
        const char *op, *in, *out, *attribute;
        int64_t value;
    } nodes[] = {
        {"Reshape", "x split", "s", NULL, 0},  {"Split", "s parts", "q k v", "axis", 2},
        {"Mul", "q half", "qs", NULL, 0},      {"Transpose", "qs", "qt", "perm", 0},
        {"Gather", "k zero", "k0", "axis", 1}, {"MatMul", shared ? "qt k0" : "qt k", "d", NULL, 0},
        {"Softmax", "d", "p", "axis", -1},     {"Transpose", "p", "pt", "perm", 0},
        {"MatMul", "v pt", "o", NULL, 0},      {"Reshape", "o map", "o1", NULL, 0},
        {"Reshape", "v map", "v1", NULL, 0},   {"Add", "o1 v1", "y", NULL, 0},
    };
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        op(nodes[i].op, nodes[i].in, nodes[i].out);
        if (nodes[i].attribute != NULL && nodes[i].attribute[0] == 'p')
            maker_attr_ints(&node, "perm", last_two, 4);
        else if (nodes[i].attribute != NULL)
            maker_attr_int(&node, nodes[i].attribute, nodes[i].value);
        add();
    }
}

/* Values may have another size than keys. Heads that share keys are computed with whole tensors. */
static void values_of_another_size(void **state) {
    (void)state;
    static const int64_t order[3][18] = {
        {0, 5, 1, 6, 2, 3, 4, 7, 8, 9},
        {0, 1, 7, 8, 2, 3, 9, 10, 4, 5, 6, 11, 12, 13},
        {0, 1, 2, 9, 10, 11, 3, 4, 5, 12, 13, 14, 6, 7, 8, 15, 16, 17}};
    for (int64_t keys = 1; keys <= 3; keys++) {
        write_wide(keys, false);
        if (keys == 2) onnx_net_runs_out(&graph, 13);
        struct rfx_graph *net = onnx_net_unfused(&graph, 13);
        const struct rfx_node *n = net->nodes;
        assert_int_equal(net->n_nodes, 5);
        assert_int_equal(n[1].op, RFX_OP_CHANNEL_SELECT);
        assert_int_equal(n[1].attr.select.count, 4 * keys + 6);
        assert_memory_equal(n[1].attr.select.map, order[keys - 1],
                            (size_t)(4 * keys + 6) * sizeof **order);
        assert_int_equal(n[2].op, RFX_OP_WINDOW_ATTENTION);
        const struct rfx_window_attention_attr *a = &n[2].attr.window_attention;
        assert_true(a->h == 4 && a->w == 6 && a->heads == 2 && a->scale == 0.5f && a->bias < 0);
        assert_int_equal(a->value_size, keys == 3 ? 0 : 3);
        assert_int_equal(n[2].out.c, 6);
        assert_int_equal(n[3].op, RFX_OP_CHANNEL_SELECT);
        assert_int_equal(n[3].in[0], 1);
        assert_int_equal(n[3].attr.select.map[0], 4 * keys);
        assert_int_equal(n[4].op, RFX_OP_BINARY);
        onnx_net_discard(net);
    }
    write_wide(2, true);
    struct rfx_graph *net = onnx_net_unfused(&graph, 13);
    for (int i = 0; i < net->n_nodes; i++)
        assert_int_not_equal(net->nodes[i].op, RFX_OP_WINDOW_ATTENTION);
    onnx_net_discard(net);
}

/* What is changed in a network of write_bytes. */
enum changed { NOTHING, TIMES_ONE, TURNED_LATER, OTHER_SCALE, HALF_IN_BYTES };

/* Makes `out` of `in` by way of bytes by scale `s`, whose zero point is `s`z. */
static void to_bytes(const char *in, const char *s, const char *out) {
    char all[40];
    (void)snprintf(all, sizeof all, "%s %s %sz", in, s, s);
    maker_add(&graph, "QuantizeLinear", all, out);
}

static void to_floats(const char *in, const char *s, const char *out) {
    char all[40];
    (void)snprintf(all, sizeof all, "%s %s %sz", in, s, s);
    maker_add(&graph, "DequantizeLinear", all, out);
}

/* Makes `out` of `in` by way of bytes. */
static void round_to_bytes(const char *in, const char *s, const char *out) {
    char bytes[16];
    (void)snprintf(bytes, sizeof bytes, "%s8", out);
    to_bytes(in, s, bytes);
    to_floats(bytes, s, out);
}

/* Attention as in YOLO11, on a map of 4 x 6, as ONNX Runtime quantises it: two heads of two
 * channels of queries, as many of keys, and 3 of values. */
static void write_bytes(enum changed changed) {
    enum { UINT8 = 2 };
    static const int64_t one[] = {1}, last_two[] = {0, 1, 3, 2}, map[] = {1, 6, 4, 6};
    static const int64_t image[] = {1, 14, 4, 6}, split[] = {1, 2, 7, 24}, parts[] = {2, 2, 3};
    static const struct {
        const char *name, *number, *zero;
        float values[2];
    } steps[] = {{"x", "xn", "xsz", {0.01f, 120}},  {"q", "qn", "qsz", {0.013f, 3}},
                 {"h", "hn", "hsz", {0.002f, 0}},   {"k", "kn", "ksz", {0.007f, 130}},
                 {"v", "vn", "vsz", {0.02f, 99}},   {"d", "dn", "dsz", {0.011f, 100}},
                 {"e", "en", "esz", {0.012f, 100}}, {"p", "pn", "psz", {1.0f / 255, 0}}};
    static const float half[1] = {0.5f}, number[1] = {1.0f};
    bool later = changed == TURNED_LATER;
    graph.size = 0;
    maker_value(&graph, MAKER_INPUT, "x", image, 4);
    maker_ints(&graph, "split", split, 4);
    maker_ints(&graph, "map", map, 4);
    maker_floats(&graph, "half", one, 1, half);
    maker_floats(&graph, "one", one, 1, number);
    maker_ints(&graph, "parts", parts, 3);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        char scale[8];
        (void)snprintf(scale, sizeof scale, "%ss", steps[i].name);
        maker_floats(&graph, scale, one, 1, &steps[i].values[0]);
        maker_floats(&graph, steps[i].number, one, 1, &steps[i].values[1]);
        maker_add_int(&graph, "Cast", steps[i].number, steps[i].zero, "to", UINT8);
    }
    round_to_bytes("x", "xs", "x1");
    maker_add(&graph, "Reshape", "x1 split", "s");
    maker_add_int(&graph, "Split", "s parts", "q k v", "axis", 2);
    round_to_bytes("q", "qs", "q1");
    round_to_bytes("k", "ks", "k1");
    round_to_bytes("v", "vs", "v1");
    if (changed == HALF_IN_BYTES) round_to_bytes("half", "es", "half1");
    maker_add(&graph, "Mul", changed == HALF_IN_BYTES ? "q1 half1" : "q1 half", "h");
    round_to_bytes("h", "hs", "h1");
    maker_add_ints(&graph, "Transpose", "h1", "qt", "perm", last_two, 4);
    maker_add(&graph, "MatMul", "qt k1", "d");
    to_bytes("d", "ds", "d8");
    to_floats("d8", changed == OTHER_SCALE ? "es" : "ds", "d1");
    maker_add_int(&graph, "Softmax", "d1", "p", "axis", -1);
    to_bytes("p", "ps", "p8");
    if (later) to_floats("p8", "ps", "p1");
    maker_add_ints(&graph, "Transpose", later ? "p1" : "p8", later ? "pt" : "t8", "perm", last_two,
                   4);
    if (!later) to_floats("t8", "ps", "pt");
    maker_add(&graph, "Mul", "pt one", "pt1");
    maker_add(&graph, "MatMul", changed == TIMES_ONE ? "v1 pt1" : "v1 pt", "o");
    maker_add(&graph, "Reshape", "o map", "o1");
    maker_add(&graph, "Reshape", "v1 map", "v2");
    maker_add(&graph, "Add", "o1 v2", "y");
}

/* The conversions of queries, keys and values are those of maps of their channels. */
static void expect_parts(const struct rfx_graph *net) {
    static const int64_t parts[3][6] = {{0, 1, 7, 8}, {2, 3, 9, 10}, {4, 5, 6, 11, 12, 13}};
    int n = 0;
    for (int i = 0; i < net->n_nodes; i++) {
        const struct rfx_node *select = &net->nodes[i];
        if (select->op != RFX_OP_CHANNEL_SELECT) continue;
        assert_in_range(n, 0, 2);
        assert_int_equal(select->attr.select.count, n == 2 ? 6 : 4);
        assert_memory_equal(select->attr.select.map, parts[n],
                            (size_t)select->attr.select.count * sizeof **parts);
        n++;
    }
    assert_int_equal(n, 3);
}

/* The last node of an op, or NULL. */
static const struct rfx_node *node_of(const struct rfx_graph *net, enum rfx_op op) {
    const struct rfx_node *found = NULL;
    for (int i = 0; i < net->n_nodes; i++)
        if (net->nodes[i].op == op) found = &net->nodes[i];
    return found;
}

/* Rounding to bytes and back becomes part of the node, and its bits are those of whole tensors,
 * which a product with 1 in between, or another scale, asks for. */
static void bytes_in_between(void **state) {
    (void)state;
    enum { SAME = TURNED_LATER + 1 }; /* networks of the same values */
    float image[14 * 24], *made[SAME];
    for (int i = 0; i < 14 * 24; i++) image[i] = (float)(i * 37 % 101 - 50) / 40;
    for (int changed = NOTHING; changed <= HALF_IN_BYTES; changed++) {
        bool whole = changed == TIMES_ONE || changed == OTHER_SCALE;
        write_bytes((enum changed)changed);
        if (changed == NOTHING) onnx_net_runs_out(&graph, 13);
        struct rfx_graph *net = onnx_net_unfused(&graph, 13);
        const struct rfx_node *found = node_of(net, RFX_OP_WINDOW_ATTENTION);
        expect_parts(net);
        assert_true((found == NULL) == whole);
        assert_true((node_of(net, RFX_OP_PLAIN_SOFTMAX) != NULL) == whole);
        assert_true((node_of(net, RFX_OP_INT_MUL) != NULL) == (changed == HALF_IN_BYTES));
        if (found != NULL) {
            const struct rfx_window_attention_attr *a = &found->attr.window_attention;
            assert_true(a->round_scores.to == RFX_TYPE_UINT8 && a->round_scores.scale == 0.011f);
            assert_int_equal(a->round_scores.zero_point, 100);
            assert_true(a->round_weights.to == RFX_TYPE_UINT8);
            assert_true(a->round_weights.scale == 1.0f / 255 && a->round_weights.zero_point == 0);
            assert_true(a->steps.in_scale == 0.011f && a->steps.out_scale == 1.0f / 255);
        }
        if (changed < SAME) made[changed] = test_run_output(net, image, 0);
        onnx_net_discard(net);
    }
    for (int i = 1; i < SAME; i++) assert_memory_equal(made[0], made[i], 6 * 24 * sizeof *made[0]);
    for (int i = 0; i < SAME; i++) free(made[i]);
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
        cmocka_unit_test(areas_are_windows),
        cmocka_unit_test(values_of_another_size),
        cmocka_unit_test(bytes_in_between),
        cmocka_unit_test(not_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
