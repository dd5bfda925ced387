/* Which layers of a small network stay in float32 because of the noise of bytes. */
#include "rfexec/quantise/quantiser.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/test_util.h"

enum { TAPS = 100, INPUT = 0, A, RELU, B, C, NODES };

/* Adds a convolution of 10 x 10 taps: one is 1, the others are `rest`. */
static int add_conv(struct rfx_graph *graph, const char *name, int in, float rest) {
    float taps[TAPS];
    for (int i = 0; i < TAPS; i++) taps[i] = i == 0 ? 1.0f : rest;
    const struct rfx_weight weight = {
        .source = RFX_WEIGHT_OWNED, .data = taps, .elems = TAPS, .shape = {4, {1, 1, 10, 10}}};
    struct rfx_node node = {.op = RFX_OP_CONV, .name = name, .n_in = 1, .in = &in};
    node.attr.conv = (struct rfx_conv_attr){.ic = 1,
                                            .oc = 1,
                                            .kh = 10,
                                            .kw = 10,
                                            .sh = 1,
                                            .sw = 1,
                                            .dh = 1,
                                            .dw = 1,
                                            .groups = 1,
                                            .bias = -1,
                                            .scale = -1};
    int index = -1;
    assert_int_equal(rfx_graph_add_weight(graph, &weight, &node.attr.conv.weight, NULL), RFX_OK);
    assert_int_equal(rfx_graph_add(graph, &node, &index, NULL), RFX_OK);
    return index;
}

/* input, a, relu, b, c. The weights of `a` other than 1 are `rest`. */
static struct rfx_graph *make_graph(struct rfx_memory *mem, float rest) {
    struct rfx_graph *graph = NULL;
    assert_int_equal(rfx_graph_create(mem, "net", &graph, NULL), RFX_OK);
    struct rfx_node image = {.op = RFX_OP_INPUT, .name = "input"};
    image.attr.input.c = 1;
    image.attr.input.h = image.attr.input.w = 64;
    int at = -1;
    assert_int_equal(rfx_graph_add(graph, &image, &at, NULL), RFX_OK);
    at = add_conv(graph, "a", at, rest);
    struct rfx_node relu = {.op = RFX_OP_ACTIVATION, .name = "relu", .n_in = 1, .in = &at};
    relu.act.kind = RFX_ACT_RELU;
    int to = -1;
    assert_int_equal(rfx_graph_add(graph, &relu, &to, NULL), RFX_OK);
    at = add_conv(graph, "c", add_conv(graph, "b", to, 0.0f), 0.0f);
    assert_int_equal(rfx_graph_add_output(graph, at, "y", NULL), RFX_OK);
    assert_int_equal(rfx_graph_finish(graph, &rfx_quantiser_fusing, NULL), RFX_OK);
    assert_int_equal(graph->n_nodes, NODES);
    return graph;
}

/* Values from 0 to 255, so that a step is 1. Of a bad tensor nearly all are 0.4: 1000 * 0.4^2 of
 * noise beside 255^2 of signal are 26 dB. */
static void count(struct rfx_value_counts *counts, bool bad) {
    for (int i = 0; i < 1000; i++) {
        float value = bad ? 0.4f : (float)(i % 256);
        assert_true(rfx_value_counts_add(counts, &value, 1));
    }
    const float most = 255.0f;
    assert_true(rfx_value_counts_add(counts, &most, 1));
}

static void test_noisy_layers_are_left(void **state) {
    /* 99 weights of 0.0039, of which a step of 1 / 127 leaves nothing: 28 dB */
    static const struct {
        int bad; /* tensor; -1: none */
        float rest;
        const char *parts[NODES]; /* of the layers that are left */
        bool bytes[NODES];        /* afterwards */
    } cases[] = {
        {-1, 0.0f, {NULL}, {true, false, true, true, true}},
        {-1, 0.0039f, {[A] = "weights"}, {false, false, true, true, true}},
        {INPUT, 0.0f, {[A] = "input"}, {false, false, true, true, true}},
        {RELU, 0.0f, {[A] = "result", [B] = "input"}, {false, false, false, true, true}},
        {RELU, 0.0039f, {[A] = "result", [B] = "input"}, {false, false, false, true, true}},
        {C, 0.0f, {[C] = "result"}, {true, false, true, true, false}},
    };
    (void)state;
    static uint64_t bins[NODES][RFX_VALUE_BINS];
    const struct rfx_quantiser_request request = {
        .range = {.method = RFX_RANGE_MINMAX, .type = RFX_TYPE_UINT8}};
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_graph *graph = make_graph(mem, cases[k].rest);
        struct rfx_value_counts counts[NODES];
        struct rfx_quantiser q;
        memset(bins, 0, sizeof bins);
        for (int i = 0; i < NODES; i++) {
            counts[i] = (struct rfx_value_counts){.bins = bins[i]};
            count(&counts[i], i == cases[k].bad);
        }
        assert_int_equal(rfx_quantiser_choose(&q, graph, &request, NULL), RFX_OK);
        assert_int_equal(q.counted, 4);
        assert_int_equal(rfx_quantiser_find_scales(&q, counts, &request, NULL), RFX_OK);
        assert_int_equal(rfx_quantiser_leave_noisy(&q, counts, &request, 40.0, NULL), RFX_OK);
        for (int i = A; i < NODES; i++) {
            const char *part = cases[k].parts[i];
            assert_int_equal(q.integer[i], i != RELU && part == NULL);
            if (part != NULL) assert_string_equal(q.noise[i].part, part);
            if (part != NULL) assert_true(q.noise[i].db > 25.0 && q.noise[i].db < 29.0);
            assert_int_equal(q.nodes[i].bytes, cases[k].bytes[i]);
        }
        assert_int_equal(q.nodes[INPUT].bytes, cases[k].bytes[INPUT]);
        assert_int_equal(rfx_quantiser_find_scales(&q, counts, &request, NULL), RFX_OK);
        struct rfx_error err = {""};
        assert_int_equal(rfx_quantiser_leave_noisy(&q, counts, &request, 90.0, &err),
                         RFX_STATUS_INVALID_ARGUMENT);
        assert_non_null(strstr(err.text, "no layer that can be computed on bytes"));
        rfx_quantiser_release(&q);
        rfx_graph_free(graph);
        assert_int_equal(rfx_memory_current_bytes(mem), 0);
        rfx_memory_free(mem);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_noisy_layers_are_left)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
