/* Fusing: which nodes remain, what they are called, and that the network still computes what the
 * unfused one did by the naive reference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/oracle/reference.h"
#include "tests/support/test_util.h"

struct net {
    struct rfx_memory *mem;
    struct rfx_graph *graph;
};

static int put(struct net *net, const char *name, struct rfx_node node, int a, int b) {
    int in[2] = {a, b}, index = -1;
    struct rfx_error err = {{0}};
    node.name = name;
    node.in = in;
    node.n_in = a < 0 ? 0 : b < 0 ? 1 : 2;
    if (rfx_graph_add(net->graph, &node, &index, &err) != RFX_OK) fail_msg("%s", err.text);
    return index;
}

static int vector(struct net *net, int64_t elems) {
    struct rfx_weight w = {.source = RFX_WEIGHT_GENERATED,
                           .seed = (uint64_t)net->graph->n_weights,
                           .lo = 0.3f,
                           .hi = 0.9f,
                           .shape = {1, {elems}},
                           .elems = elems};
    int index;
    assert_int_equal(rfx_graph_add_weight(net->graph, &w, &index, NULL), RFX_OK);
    return index;
}

static struct net begin(void) {
    struct net net = {rfx_memory_create(0), NULL};
    assert_int_equal(rfx_graph_create(net.mem, "fuse", &net.graph, NULL), RFX_OK);
    struct rfx_node node = {.op = RFX_OP_INPUT};
    node.attr.input.c = 2;
    node.attr.input.h = 5;
    node.attr.input.w = 4;
    (void)put(&net, "x", node, -1, -1);
    return net;
}

static int conv(struct net *net, const char *name, int in, bool bias) {
    struct rfx_node node = {.op = RFX_OP_CONV};
    node.attr.conv = (struct rfx_conv_attr){.kh = 3,
                                            .kw = 3,
                                            .sh = 1,
                                            .sw = 1,
                                            .dh = 1,
                                            .dw = 1,
                                            .pads = {1, 1, 1, 1},
                                            .groups = 1,
                                            .oc = 2,
                                            .bias = -1,
                                            .scale = -1};
    node.attr.conv.weight = vector(net, 36);
    net->graph->weights[node.attr.conv.weight].shape = (struct rfx_shape){4, {2, 2, 3, 3}};
    if (bias) node.attr.conv.bias = vector(net, 2);
    return put(net, name, node, in, -1);
}

static int affine(struct net *net, const char *name, int in) {
    struct rfx_node node = {.op = RFX_OP_AFFINE};
    node.attr.affine.scale = vector(net, 2);
    node.attr.affine.shift = vector(net, 2);
    return put(net, name, node, in, -1);
}

static int act(struct net *net, const char *name, int in, enum rfx_act_kind kind) {
    struct rfx_node node = {.op = RFX_OP_ACTIVATION};
    node.act = (struct rfx_act){.kind = kind, .alpha = 0.1f, .beta = 0.8f, .slope = -1};
    return put(net, name, node, in, -1);
}

static int join(struct net *net, const char *name, int a, int b, enum rfx_binary_kind kind) {
    struct rfx_node node = {.op = RFX_OP_BINARY};
    node.attr.binary.kind = kind;
    return put(net, name, node, a, b);
}

static void output(struct net *net, int node, const char *name) {
    assert_int_equal(rfx_graph_add_output(net->graph, node, name, NULL), RFX_OK);
}

/* Finishes, and holds every output to what the reference gave before. */
static void finish(struct net *net, const struct rfx_fuse_options *options) {
    float input[40], *before[32], *after[32];
    struct test_rng rng = test_rng_make(9);
    test_rng_fill(&rng, input, 40, -1.0f, 1.0f);
    struct rfx_error err = {{0}};
    int n_before = net->graph->n_nodes, outputs[4];
    assert_true(n_before <= 32 && net->graph->n_outputs <= 4);
    assert_true(rfx_ref_eval(net->graph, input, before));
    for (int i = 0; i < net->graph->n_outputs; i++) outputs[i] = net->graph->outputs[i].node;
    if (rfx_graph_finish(net->graph, options, &err) != RFX_OK) fail_msg("%s", err.text);
    assert_true(rfx_ref_eval(net->graph, input, after));
    for (int i = 0; i < net->graph->n_outputs; i++) {
        const struct rfx_output *o = &net->graph->outputs[i];
        struct test_diff diff;
        bool same = test_close(after[o->node], before[outputs[i]], 40, 1e-5, 1.0, &diff);
        if (!same) test_print_diff(o->name, after[o->node], before[outputs[i]], 40, &diff);
        assert_true(same);
    }
    rfx_ref_free(net->graph, after);
    for (int i = 0; i < n_before; i++) free(before[i]);
}

static void end(struct net *net) {
    rfx_graph_free(net->graph);
    rfx_memory_free(net->mem);
}

/* conv + batch norm + relu, conv + batch norm, add, relu: two nodes remain. */
static void block(struct net *net) {
    int a = act(net, "r1", affine(net, "bn1", conv(net, "c1", 0, true)), RFX_ACT_RELU);
    int b = affine(net, "bn2", conv(net, "c2", a, false));
    output(net, act(net, "r2", join(net, "sum", b, 0, RFX_BINARY_ADD), RFX_ACT_CLIP), "y");
}

static void test_residual_block(void **state) {
    (void)state;
    struct net net = begin();
    block(&net);
    finish(&net, NULL);
    const struct rfx_graph *g = net.graph;
    assert_int_equal(g->n_nodes, 3);
    assert_string_equal(g->nodes[1].name, "c1");
    assert_string_equal(g->nodes[1].alias, "r1");
    assert_int_equal(g->nodes[1].act.kind, RFX_ACT_RELU);
    assert_true(g->nodes[2].residual);
    assert_int_equal(g->nodes[2].in[0], 1);
    assert_int_equal(g->nodes[2].in[1], 0);
    assert_int_equal(g->nodes[2].act.kind, RFX_ACT_CLIP);
    assert_int_equal(rfx_graph_find(g, "r2"), 2);
    assert_int_equal(g->n_consumers[0], 2);
    assert_int_equal(g->n_consumers[1], 1);
    assert_int_equal(g->n_consumers[2], 1);
    /* Two kernels of 36, one bias of 2, two batch norms of 2 + 2. */
    assert_int_equal(rfx_graph_param_count(g), 36 + 2 + 36 + 4 + 4);
    end(&net);
}

static void test_each_option_alone(void **state) {
    (void)state;
    static const struct {
        struct rfx_fuse_options options;
        int nodes;
    } rows[] = {
        {{0}, 8},                              /* x c1 bn1 r1 c2 bn2 sum r2 */
        {{true, false, false, true, true}, 6}, /* x c1 r1 c2 sum r2 */
        {{false, true, false, true, true}, 6}, /* r1 into bn1, r2 into sum */
        {{false, false, true, true, true}, 8}, /* the sum's operand is bn2, no convolution */
        {{true, false, true, true, true}, 5},
        {{true, true, false, true, true}, 4},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct net net = begin();
        block(&net);
        finish(&net, &rows[i].options);
        assert_int_equal(net.graph->n_nodes, rows[i].nodes);
        end(&net);
    }
}

static void test_what_others_see_stays(void **state) {
    (void)state;
    struct net net = begin();
    int c = conv(&net, "c", 0, true);
    output(&net, c, "seen");
    output(&net, act(&net, "r", c, RFX_ACT_RELU), "y");
    finish(&net, NULL);
    assert_int_equal(net.graph->n_nodes, 3);
    assert_int_equal(net.graph->nodes[1].act.kind, RFX_ACT_NONE);
    end(&net);
    net = begin();
    c = conv(&net, "c", 0, true); /* two consumers */
    int bn = affine(&net, "bn", c), r = act(&net, "r", c, RFX_ACT_TANH);
    output(&net, join(&net, "prod", bn, r, RFX_BINARY_MUL), "y");
    finish(&net, NULL);
    assert_int_equal(net.graph->n_nodes, 5);
    end(&net);
}

static void test_order_is_kept(void **state) {
    (void)state;
    /* relu before batch norm is not conv + batch norm; x + x is no residual of another node. */
    struct net net = begin();
    int r = act(&net, "r", conv(&net, "c", 0, false), RFX_ACT_RELU);
    int bn = affine(&net, "bn", r);
    output(&net, join(&net, "twice", bn, bn, RFX_BINARY_ADD), "y");
    finish(&net, NULL);
    assert_int_equal(net.graph->n_nodes, 4);
    end(&net);
    /* conv - x is not an addition. */
    net = begin();
    output(&net, join(&net, "minus", conv(&net, "c", 0, false), 0, RFX_BINARY_SUB), "y");
    finish(&net, NULL);
    assert_int_equal(net.graph->n_nodes, 3);
    end(&net);
}

static void test_gates(void **state) {
    (void)state;
    struct net net = begin();
    int c = conv(&net, "c", 0, true);
    output(&net, join(&net, "swish", c, act(&net, "s", c, RFX_ACT_SIGMOID), RFX_BINARY_MUL), "y");
    finish(&net, NULL);
    assert_int_equal(net.graph->n_nodes, 2);
    assert_int_equal(net.graph->nodes[1].act.kind, RFX_ACT_SILU);
    end(&net);
}

static void test_unused_nodes_go(void **state) {
    (void)state;
    struct net net = begin();
    int c = conv(&net, "c", 0, true);
    (void)act(&net, "dead", conv(&net, "dead_conv", c, true), RFX_ACT_RELU);
    output(&net, c, "y");
    finish(&net, NULL);
    assert_int_equal(net.graph->n_nodes, 2);
    assert_int_equal(rfx_graph_find(net.graph, "dead"), -1);
    assert_int_equal(net.graph->n_consumers[1], 1);
    end(&net);
}

static void test_refusals(void **state) {
    (void)state;
    struct net net = begin();
    struct rfx_error err = {{0}};
    assert_int_equal(rfx_graph_finish(net.graph, NULL, &err), RFX_STATUS_MALFORMED);
    assert_non_null(strstr(err.text, "no outputs"));
    output(&net, 0, "y");
    output(&net, 0, "y");
    assert_int_equal(rfx_graph_finish(net.graph, NULL, &err), RFX_STATUS_MALFORMED);
    assert_non_null(strstr(err.text, "'y'"));
    end(&net);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_residual_block),
                                       cmocka_unit_test(test_each_option_alone),
                                       cmocka_unit_test(test_what_others_see_stays),
                                       cmocka_unit_test(test_order_is_kept),
                                       cmocka_unit_test(test_gates),
                                       cmocka_unit_test(test_unused_nodes_go),
                                       cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
