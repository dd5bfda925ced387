/* Tensors that depend on constants alone, computed without a plan: the bits of every node run on
 * its own, nothing else computed, and nothing left when memory runs out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rfexec/run/evaluate.h"
#include "tests/support/run/run_whole.h"
#include "tests/support/test_util.h"

enum { TABLE, SMOOTH, WAVES, SUM, NOBODY, NODES };

static int add_weight(struct rfx_graph *graph, int rank, const int64_t *dims) {
    struct rfx_weight w = {.source = RFX_WEIGHT_GENERATED, .seed = 7, .lo = -1.0f, .hi = 1.0f};
    int index;
    w.shape.rank = rank;
    w.elems = 1;
    for (int i = 0; i < rank; i++) {
        w.shape.dims[i] = dims[i];
        w.elems *= dims[i];
    }
    assert_int_equal(rfx_graph_add_weight(graph, &w, &index, NULL), RFX_OK);
    return index;
}

static int add(struct rfx_graph *graph, struct rfx_node node, const char *name, int a, int b) {
    int in[2] = {a, b}, index;
    struct rfx_error err = {""};
    node.name = name;
    node.in = in;
    node.n_in = (a >= 0) + (b >= 0);
    if (rfx_graph_add(graph, &node, &index, &err) != RFX_OK) fail_msg("%s", err.text);
    return index;
}

/* A table, convolved; its sines; their sum; and what nobody asks for. */
static struct rfx_graph *make(struct rfx_memory *mem) {
    static const int64_t table[] = {1, 3, 9, 11}, filters[] = {3, 3, 3, 3};
    struct rfx_graph *graph = NULL;
    assert_int_equal(rfx_graph_create(mem, "constants", &graph, NULL), RFX_OK);
    struct rfx_node constant = {.op = RFX_OP_CONST_MAP};
    constant.attr.constant.weight = add_weight(graph, 4, table);
    constant.attr.constant.shape = (struct rfx_shape){4, {1, 3, 9, 11}};
    assert_int_equal(add(graph, constant, "table", -1, -1), TABLE);
    struct rfx_node conv = {.op = RFX_OP_CONV, .attr.conv = rfx_conv_pointwise(3)};
    conv.attr.conv.kh = conv.attr.conv.kw = 3;
    conv.attr.conv.pads = (struct rfx_pads){1, 1, 1, 1};
    conv.attr.conv.weight = add_weight(graph, 4, filters);
    assert_int_equal(add(graph, conv, "smooth", TABLE, -1), SMOOTH);
    struct rfx_node sine = {.op = RFX_OP_ACTIVATION, .act = {RFX_ACT_SIN, 0.0f, 0.0f, -1}};
    assert_int_equal(add(graph, sine, "waves", SMOOTH, -1), WAVES);
    struct rfx_node sum = {.op = RFX_OP_BINARY, .attr.binary = {RFX_BINARY_ADD}};
    assert_int_equal(add(graph, sum, "sum", WAVES, SMOOTH), SUM);
    assert_int_equal(add(graph, sum, "nobody", SUM, SUM), NOBODY);
    return graph;
}

static void discard(struct rfx_graph *graph) {
    struct rfx_memory *mem = graph->mem;
    rfx_graph_free(graph);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

static void bits_of_a_run(void **state) {
    (void)state;
    struct rfx_graph *graph = make(rfx_memory_create(0));
    struct test_prepared prepared;
    float *want[NODES], got[3 * 9 * 11];
    assert_true(test_prepare(graph, 2, &prepared));
    test_run_whole(&prepared, NULL, want);
    for (int i = 0; i < NODES; i++) {
        struct test_diff diff;
        assert_int_equal(rfx_graph_evaluate(graph, i, got, NULL), RFX_OK);
        assert_true(test_same_bits(got, want[i], 297, &diff));
    }
    test_run_whole_free(graph, want);
    test_prepared_free(&prepared);
    discard(graph);
}

static void what_is_needed(void **state) {
    (void)state;
    struct rfx_graph *graph = make(rfx_memory_create(0));
    bool needed[NODES] = {false};
    assert_int_equal(rfx_graph_mark_needed(graph, SUM, needed), 297);
    for (int i = 0; i <= SUM; i++) assert_true(needed[i]);
    discard(graph);
}

static void memory_runs_out(void **state) {
    (void)state;
    struct rfx_graph *graph = make(rfx_memory_create(0));
    size_t before = rfx_memory_current_bytes(graph->mem);
    enum rfx_status status = RFX_STATUS_OUT_OF_MEMORY;
    int k = 0;
    for (; status != RFX_OK && k < 100; k++) {
        struct rfx_error err = {""};
        float got[297];
        rfx_memory_fail_after(graph->mem, k);
        status = rfx_graph_evaluate(graph, NOBODY, got, &err);
        if (status != RFX_OK && (status != RFX_STATUS_OUT_OF_MEMORY || err.text[0] == '\0'))
            fail_msg("allocation %d: '%s'", k, err.text);
        assert_int_equal(rfx_memory_current_bytes(graph->mem), before);
    }
    assert_int_equal(status, RFX_OK);
    assert_true(k > 10);
    discard(graph);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_of_a_run),
        cmocka_unit_test(what_is_needed),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
