/* The exporter: a one-node model byte for byte, what it refuses, and that a failed export leaves
 * no file. That whole networks are valid ONNX is held by the scripts that run ONNX's checker. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "layers/graph/op.h"
#include "rfexec/onnx/export/onnx_export.h"
#include "rfexec/run/model.h"

static struct rfx_graph *pool_graph(struct rfx_memory *mem, const struct rfx_node *pool) {
    struct rfx_graph *graph = NULL;
    struct rfx_error err = {""};
    assert_int_equal(rfx_graph_create(mem, "g", &graph, &err), RFX_OK);
    struct rfx_node input = {.op = RFX_OP_INPUT, .name = "image"};
    input.attr.input.c = 3;
    input.attr.input.h = 10;
    input.attr.input.w = 8;
    int index, in = 0;
    assert_int_equal(rfx_graph_add(graph, &input, &in, &err), RFX_OK);
    struct rfx_node node = *pool;
    node.n_in = 1;
    node.in = &in;
    assert_int_equal(rfx_graph_add(graph, &node, &index, &err), RFX_OK);
    assert_int_equal(rfx_graph_add_output(graph, index, "y", &err), RFX_OK);
    assert_int_equal(rfx_graph_finish(graph, NULL, &err), RFX_OK);
    return graph;
}

/* Encoded by hand from onnx.proto: field << 3 | wire type, then the size. */
static void test_bytes(void **state) {
    (void)state;
    static const char expected[] =
        "\x08\x08\x12\x06"
        "rfexec"   /* IR version 8, producer */
        "\x3a\x6a" /* graph: 106 bytes */
        "\x0a\x1c\x0a\x05"
        "input"
        "\x12\x01y\x1a\x01p" /* node: input, output, name */
        "\x22\x0d"
        "GlobalMaxPool" /* its op */
        "\x12\x01g"     /* the graph's name */
        "\x5a\x2a\x0a\x05"
        "input"                            /* input value */
        "\x12\x21\x0a\x1f\x08\x01\x12\x1b" /* type, tensor, float, shape */
        "\x0a\x02\x08\x01\x0a\x02\x08\x03" /* 1, 3, */
        "\x0a\x08\x12\x06"
        "height"
        "\x0a\x07\x12\x05"
        "width"
        "\x62\x1b\x0a\x01y\x12\x16\x0a\x14\x08\x01\x12\x10" /* output value */
        "\x0a\x02\x08\x01\x0a\x02\x08\x03\x0a\x02\x08\x01\x0a\x02\x08\x01"
        "\x42\x04\x0a\x00\x10\x11"; /* opset 17 of the default domain */
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_node pool = {.op = RFX_OP_GLOBAL_POOL, .name = "p"};
    pool.attr.global_pool.kind = RFX_REDUCE_MAX;
    struct rfx_graph *graph = pool_graph(mem, &pool);
    struct rfx_error err = {""};
    const char *path = "test_onnx_export_bytes.onnx";
    assert_int_equal(rfx_onnx_export(graph, path, &err), RFX_OK);
    unsigned char data[512];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t size = fread(data, 1, sizeof data, file);
    (void)fclose(file);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(size, sizeof expected - 1);
    assert_memory_equal(data, expected, size);
    rfx_graph_free(graph);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

/* 10 x 8 does not divide into 3 x 3: refused by name, and no file appears. */
static void test_refuses_uneven_adaptive_pool(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_node pool = {.op = RFX_OP_POOL_ADAPTIVE_AVG, .name = "uneven"};
    pool.attr.adaptive.oh = 3;
    pool.attr.adaptive.ow = 3;
    struct rfx_graph *graph = pool_graph(mem, &pool);
    struct rfx_error err = {""};
    const char *path = "test_onnx_export_refused.onnx";
    assert_int_equal(rfx_onnx_export(graph, path, &err), RFX_STATUS_UNSUPPORTED);
    assert_non_null(strstr(err.text, "'uneven'"));
    assert_int_equal(access(path, F_OK), -1);
    rfx_graph_free(graph);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

/* Zeros around all channels are written as Pad and read back as the same select; zeros between
 * picked channels are refused. */
static void test_padded_channels(void **state) {
    (void)state;
    int64_t around[6] = {-1, 0, 1, 2, -1, -1}, between[3] = {0, -1, 1};
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_node select = {.op = RFX_OP_CHANNEL_SELECT, .name = "zeros"};
    struct rfx_load_options options = {.h = 10, .w = 8};
    struct rfx_graph *loaded = NULL;
    struct rfx_error err = {""};
    const char *path = "test_onnx_export_pad.onnx";
    select.attr.select.count = 6;
    select.attr.select.map = around;
    struct rfx_graph *graph = pool_graph(mem, &select);
    assert_int_equal(rfx_onnx_export(graph, path, &err), RFX_OK);
    assert_int_equal(rfx_onnx_load(mem, path, &options, &loaded, &err), RFX_OK);
    assert_int_equal(loaded->n_nodes, 2);
    assert_int_equal(loaded->nodes[1].op, RFX_OP_CHANNEL_SELECT);
    assert_int_equal(loaded->nodes[1].attr.select.count, 6);
    for (int i = 0; i < 6; i++) assert_int_equal(loaded->nodes[1].attr.select.map[i], around[i]);
    rfx_graph_free(loaded);
    rfx_graph_free(graph);
    select.attr.select.count = 3;
    select.attr.select.map = between;
    graph = pool_graph(mem, &select);
    assert_int_equal(rfx_onnx_export(graph, path, &err), RFX_STATUS_UNSUPPORTED);
    assert_non_null(strstr(err.text, "'zeros'"));
    rfx_graph_free(graph);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

/* Writes the graph, frees it, and reads it back as it is. */
static struct rfx_graph *read_back(struct rfx_graph *graph) {
    const char *path = "test_onnx_export_back.onnx";
    struct rfx_fuse_options nothing = {0};
    struct rfx_load_options options = {.h = 10, .w = 8, .fuse = &nothing};
    struct rfx_memory *mem = graph->mem;
    struct rfx_graph *loaded = NULL;
    struct rfx_error err = {""};
    if (rfx_onnx_export(graph, path, &err) != RFX_OK) fail_msg("%s", err.text);
    rfx_graph_free(graph);
    if (rfx_onnx_load(mem, path, &options, &loaded, &err) != RFX_OK) fail_msg("%s", err.text);
    (void)unlink(path);
    return loaded;
}

/* Indices are integers in the file and numbers in a graph. */
static void test_indices(void **state) {
    (void)state;
    for (int kind = RFX_REDUCE_PROD; kind < RFX_REDUCE_COUNT; kind++) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_node reduce = {.op = RFX_OP_CHANNEL_REDUCE, .name = "r"};
        reduce.attr.reduce.kind = (enum rfx_reduce_kind)kind;
        struct rfx_graph *loaded = read_back(pool_graph(mem, &reduce));
        assert_int_equal(loaded->n_nodes, 2);
        assert_int_equal(loaded->nodes[1].op, RFX_OP_CHANNEL_REDUCE);
        assert_int_equal(loaded->nodes[1].attr.reduce.kind, kind);
        rfx_graph_free(loaded);
        rfx_memory_free(mem);
    }
}

/* A map sampled where two of its channels say, which lie last in the file. */
static void test_grid(void **state) {
    (void)state;
    for (int i = 0; i < 9; i++) {
        int64_t two[2] = {2, 0};
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_node select = {.op = RFX_OP_CHANNEL_SELECT, .name = "places", .n_in = 1};
        struct rfx_node sample = {.op = RFX_OP_GRID_SAMPLE, .name = "sample", .n_in = 2};
        struct rfx_node image = {.op = RFX_OP_INPUT, .name = "image", .attr.input = {3, 10, 8}};
        struct rfx_graph *graph = NULL;
        struct rfx_error err = {""};
        int in[2] = {0, 1}, index;
        select.in = sample.in = in;
        select.attr.select.count = 2;
        select.attr.select.map = two;
        sample.attr.grid.mode = (enum rfx_resize_mode)(i % 3);
        sample.attr.grid.padding = (enum rfx_grid_padding)(i / 3);
        sample.attr.grid.align_corners = i % 2 != 0;
        assert_int_equal(rfx_graph_create(mem, "g", &graph, &err), RFX_OK);
        assert_int_equal(rfx_graph_add(graph, &image, &index, &err), RFX_OK);
        assert_int_equal(rfx_graph_add(graph, &select, &index, &err), RFX_OK);
        assert_int_equal(rfx_graph_add(graph, &sample, &index, &err), RFX_OK);
        assert_int_equal(rfx_graph_add_output(graph, index, "y", &err), RFX_OK);
        assert_int_equal(rfx_graph_finish(graph, NULL, &err), RFX_OK);
        graph = read_back(graph);
        const struct rfx_node *got = &graph->nodes[graph->n_nodes - 1];
        assert_int_equal(got->op, RFX_OP_GRID_SAMPLE);
        assert_int_equal(got->attr.grid.mode, i % 3);
        assert_int_equal(got->attr.grid.padding, i / 3);
        assert_int_equal(got->attr.grid.align_corners, i % 2 != 0);
        assert_int_equal(graph->nodes[got->in[1]].op, RFX_OP_CHANNEL_SELECT);
        rfx_graph_free(graph);
        rfx_memory_free(mem);
    }
}

/* Trilu and CumSum come back as they were. */
static void test_axes(void **state) {
    (void)state;
    for (int i = 0; i < 8; i++) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_node node = {.op = i < 4 ? RFX_OP_TRIANGLE : RFX_OP_RUNNING_SUM, .name = "n"};
        if (i < 4) {
            node.attr.triangle.k = i - 2;
            node.attr.triangle.upper = i % 2 != 0;
        } else {
            node.attr.running.axis = i % 2 != 0 ? 1 : 3;
            node.attr.running.exclusive = i < 6;
            node.attr.running.reverse = i == 5 || i == 6;
        }
        struct rfx_graph *loaded = read_back(pool_graph(mem, &node));
        const struct rfx_node *got = &loaded->nodes[1];
        assert_int_equal(loaded->n_nodes, 2);
        assert_int_equal(got->op, node.op);
        if (i < 4) {
            assert_int_equal(got->attr.triangle.k, node.attr.triangle.k);
            assert_int_equal(got->attr.triangle.upper, node.attr.triangle.upper);
        } else {
            assert_int_equal(got->attr.running.axis, node.attr.running.axis);
            assert_int_equal(got->attr.running.exclusive, node.attr.running.exclusive);
            assert_int_equal(got->attr.running.reverse, node.attr.running.reverse);
        }
        rfx_graph_free(loaded);
        rfx_memory_free(mem);
    }
}

/* Of a map: the places of its largest (smallest) elements, what lies there, and what is put there.
 */
static struct rfx_graph *places_graph(struct rfx_memory *mem, struct rfx_node find,
                                      struct rfx_node pick, struct rfx_node put) {
    struct rfx_node image = {.op = RFX_OP_INPUT, .name = "image", .attr.input = {3, 10, 8}};
    struct rfx_node nodes[4] = {{.op = RFX_OP_TO_PLAIN, .name = "plain"}, find, pick, put};
    static const int in[4][3] = {{0}, {1}, {1, 2}, {1, 2, 3}};
    static const int n_in[4] = {1, 1, 2, 3};
    struct rfx_graph *graph = NULL;
    struct rfx_error err = {""};
    int index;
    assert_int_equal(rfx_graph_create(mem, "g", &graph, &err), RFX_OK);
    assert_int_equal(rfx_graph_add(graph, &image, &index, &err), RFX_OK);
    for (int k = 0; k < 4 && nodes[k].op != RFX_OP_INPUT; k++) {
        nodes[k].in = in[k];
        nodes[k].n_in = n_in[k];
        if (rfx_graph_add(graph, &nodes[k], &index, &err) != RFX_OK) fail_msg("%s", err.text);
    }
    assert_int_equal(rfx_graph_add_output(graph, index, "y", &err), RFX_OK);
    assert_int_equal(rfx_graph_finish(graph, NULL, &err), RFX_OK);
    return graph;
}

static struct rfx_node index_node(enum rfx_op op, enum rfx_index_kind kind, int axis) {
    struct rfx_node node = {.op = op, .name = op == RFX_OP_PICK ? "pick" : "scatter"};
    node.attr.index.kind = kind;
    node.attr.index.axis = axis;
    return node;
}

static void expect_refusal(struct rfx_graph *graph, const char *words) {
    struct rfx_error err = {""};
    assert_int_equal(rfx_onnx_export(graph, "no.onnx", &err), RFX_STATUS_UNSUPPORTED);
    assert_non_null(strstr(err.text, words));
    rfx_graph_free(graph);
}

/* The map that a tensor is, where it is one: of channels TopK and picks are maps. */
static const struct rfx_node *behind(const struct rfx_graph *graph, int node) {
    const struct rfx_node *n = &graph->nodes[node];
    return n->op == RFX_OP_TO_PLAIN ? &graph->nodes[n->in[0]] : n;
}

/* Read back as the same nodes. Maxima of updates are no operator of the opset that is written. */
static void test_places(void **state) {
    (void)state;
    for (int i = 0; i < 5; i++) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_node find = {.op = RFX_OP_TOP_K, .name = "top"};
        struct rfx_node put = index_node(RFX_OP_SCATTER, RFX_INDEX_ELEMENTS, 3 - i % 3);
        find.attr.top_k.axis = 3 - i % 3;
        find.attr.top_k.k = 2;
        find.attr.top_k.largest = i % 2 == 0;
        put.attr.index.scatter = (enum rfx_scatter_kind)i;
        struct rfx_graph *graph =
            places_graph(mem, find, index_node(RFX_OP_PICK, RFX_INDEX_ELEMENTS, 3 - i % 3), put);
        if (i > RFX_SCATTER_MUL) {
            expect_refusal(graph, "before opset 18");
        } else {
            graph = read_back(graph);
            const struct rfx_node *got = &graph->nodes[graph->n_nodes - 1];
            const struct rfx_node *top = behind(graph, got->in[1]);
            const struct rfx_node *picked = behind(graph, got->in[2]);
            assert_int_equal(got->op, RFX_OP_SCATTER);
            assert_int_equal(got->attr.index.axis, 3 - i % 3);
            assert_int_equal(got->attr.index.scatter, i);
            assert_int_equal(picked->op, RFX_OP_PICK);
            assert_int_equal(picked->attr.index.axis, 3 - i % 3);
            assert_int_equal(top->op, RFX_OP_TOP_K);
            assert_int_equal(top->attr.top_k.axis, 3 - i % 3);
            assert_int_equal(top->attr.top_k.largest, i % 2 == 0);
            rfx_graph_free(graph);
        }
        rfx_memory_free(mem);
    }
}

/* Slices and tuples, behind axes that both have too: there ONNX picks, but does not scatter. */
static void test_slices_and_tuples(void **state) {
    (void)state;
    struct rfx_node find = {.op = RFX_OP_TOP_K, .name = "top", .attr.top_k = {.k = 2, .axis = 3}};
    static const struct {
        enum rfx_index_kind kind;
        int axis;
        bool scatters, refused;
    } cases[] = {{RFX_INDEX_SLICES, 2, false, false},
                 {RFX_INDEX_TUPLES, 0, false, false},
                 {RFX_INDEX_TUPLES, 1, false, false},
                 {RFX_INDEX_TUPLES, 0, true, false},
                 {RFX_INDEX_TUPLES, 1, true, true}};
    for (int i = 0; i < 5; i++) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_node pick = index_node(RFX_OP_PICK, cases[i].kind, cases[i].axis);
        struct rfx_node put = {.op = RFX_OP_INPUT}; /* none */
        if (cases[i].scatters) put = index_node(RFX_OP_SCATTER, cases[i].kind, cases[i].axis);
        struct rfx_graph *graph = places_graph(mem, find, pick, put);
        if (cases[i].refused) {
            expect_refusal(graph, "ONNX scatters no tuples behind other axes");
        } else {
            graph = read_back(graph);
            const struct rfx_node *got = &graph->nodes[graph->n_nodes - 1];
            assert_int_equal(got->op, cases[i].scatters ? RFX_OP_SCATTER : RFX_OP_PICK);
            assert_int_equal(got->attr.index.kind, cases[i].kind);
            assert_int_equal(got->attr.index.axis, cases[i].axis);
            rfx_graph_free(graph);
        }
        rfx_memory_free(mem);
    }
}

static void test_unwritable_place(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_node pool = {.op = RFX_OP_GLOBAL_POOL, .name = "p"};
    struct rfx_graph *graph = pool_graph(mem, &pool);
    struct rfx_error err = {""};
    assert_int_equal(rfx_onnx_export(graph, "no/such/folder/x.onnx", &err), RFX_STATUS_IO);
    assert_non_null(strstr(err.text, "no/such/folder/x.onnx"));
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

/* Everything but the image has an ONNX form, or says itself why not. Groups belong to plans: the
 * network that is exported has none. */
static void test_every_op_has_a_row(void **state) {
    (void)state;
    for (int op = 0; op < RFX_OP_COUNT; op++) {
        bool none = op == RFX_OP_INPUT || op == RFX_OP_GROUP || op == RFX_OP_INNER;
        if (rfx_onnx_export_has((enum rfx_op)op) == none)
            fail_msg("%s has no row", rfx_op_def((enum rfx_op)op)->name);
    }
}

/* An activation of every kind is written: those with a form of their own have a function. */
static void test_every_activation_has_a_form(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    for (int kind = 0; kind < RFX_ACT_COUNT; kind++) {
        struct rfx_node act = {.op = RFX_OP_ACTIVATION, .name = "a"};
        bool slope = (rfx_act_def((enum rfx_act_kind)kind)->traits & RFX_ACT_HAS_SLOPE) != 0;
        if (slope) continue; /* it needs a weight: random graphs export those */
        act.act = (struct rfx_act){(enum rfx_act_kind)kind, 0.625f, 0.75f, -1};
        struct rfx_graph *graph = pool_graph(mem, &act);
        struct rfx_error err = {""};
        if (rfx_onnx_export(graph, "acts.onnx", &err) != RFX_OK) fail_msg("%s", err.text);
        struct rfx_load_options options = {.h = 10, .w = 8};
        struct rfx_graph *back = NULL;
        if (rfx_onnx_load(mem, "acts.onnx", &options, &back, &err) != RFX_OK)
            fail_msg("%s", err.text);
        const struct rfx_act *got = &back->nodes[back->n_nodes - 1].act;
        assert_int_equal(got->kind, kind);
        unsigned traits = rfx_act_def((enum rfx_act_kind)kind)->traits;
        assert_true((traits & RFX_ACT_HAS_ALPHA) == 0 || got->alpha == 0.625f);
        assert_true((traits & RFX_ACT_HAS_BETA) == 0 || got->beta == 0.75f);
        rfx_graph_free(back);
        rfx_graph_free(graph);
    }
    (void)remove("acts.onnx");
    rfx_memory_free(mem);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_activation_has_a_form),
                                       cmocka_unit_test(test_every_op_has_a_row),
                                       cmocka_unit_test(test_bytes),
                                       cmocka_unit_test(test_refuses_uneven_adaptive_pool),
                                       cmocka_unit_test(test_padded_channels),
                                       cmocka_unit_test(test_indices),
                                       cmocka_unit_test(test_grid),
                                       cmocka_unit_test(test_axes),
                                       cmocka_unit_test(test_places),
                                       cmocka_unit_test(test_slices_and_tuples),
                                       cmocka_unit_test(test_unwritable_place)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
