/* Attention row by row: the bits of product, joins, softmax and product one after the other, for
 * any number of threads and any shapes; which graphs it is found in; what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "layers/graph/op.h"
#include "tests/support/run/run_whole.h"
#include "tests/support/test_util.h"

enum { PIXELS = 70000 }; /* of the image, of which all operands are cuts */

struct join {
    enum rfx_binary_kind kind;
    bool scores_right;
    struct rfx_shape shape;
};

struct attention_case {
    struct rfx_shape q, k, v;
    int n_joins;
    struct join joins[RFX_ATTENTION_MAX_STEPS + 1];
};

static const struct attention_case cases[] = {
    {{2, {1, 1}}, {2, {1, 1}}, {2, {1, 1}}, 0, {{0}}},
    {{3, {2, 7, 5}}, {3, {2, 5, 9}}, {3, {2, 9, 4}}, 1, {{RFX_BINARY_MUL, false, {0, {0}}}}},
    {{4, {1, 3, 130, 16}}, /* heads, with scale, bias per head and a mask for all */
     {4, {1, 3, 16, 70}},
     {4, {1, 3, 70, 33}},
     3,
     {{RFX_BINARY_MUL, true, {1, {1}}},
      {RFX_BINARY_ADD, false, {3, {3, 130, 70}}},
      {RFX_BINARY_ADD, true, {2, {130, 70}}}}},
    {{3, {4, 25, 8}}, /* one matrix of keys for all, a mask per key, one of values */
     {2, {8, 40}},
     {4, {1, 1, 40, 3}},
     2,
     {{RFX_BINARY_DIV, false, {2, {1, 1}}}, {RFX_BINARY_SUB, true, {3, {4, 1, 40}}}}},
    {{3, {3, 100, 2}}, /* a number per query; queries in more than one part */
     {3, {1, 2, 500}},
     {3, {3, 500, 9}},
     4,
     {{RFX_BINARY_MAX, false, {3, {3, 100, 1}}},
      {RFX_BINARY_ADD, false, {3, {1, 100, 1}}},
      {RFX_BINARY_MIN, false, {3, {3, 1, 1}}},
      {RFX_BINARY_MUL, false, {1, {500}}}}},
    {{2, {31, 2}}, {2, {2, 30000}}, {2, {30000, 1}}, 0, {{0}}}, /* more keys than a thread's room */
};
enum { N_CASES = sizeof cases / sizeof *cases };

struct net {
    struct rfx_memory *mem;
    struct rfx_graph *graph;
    int flat; /* the image as one row */
    struct rfx_error err;
};

static int put(struct net *net, struct rfx_node node, int a, int b) {
    char name[32];
    int in[2] = {a, b}, index = -1;
    (void)snprintf(name, sizeof name, "n%d", net->graph->n_nodes);
    node.name = name;
    node.in = in;
    node.n_in = (a >= 0) + (b >= 0);
    if (node.act.kind == RFX_ACT_NONE) node.act.slope = -1;
    if (rfx_graph_add(net->graph, &node, &index, &net->err) != RFX_OK)
        fail_msg("%s", net->err.text);
    return index;
}

static struct net begin(void) {
    struct net net = {.mem = rfx_memory_create(0)};
    assert_int_equal(rfx_graph_create(net.mem, "attention", &net.graph, &net.err), RFX_OK);
    struct rfx_node image = {.op = RFX_OP_INPUT, .attr.input = {1, 1, PIXELS}};
    struct rfx_node row = {.op = RFX_OP_RESHAPE, .attr.reshape.shape = {2, {1, PIXELS}}};
    int plain = put(&net, (struct rfx_node){.op = RFX_OP_TO_PLAIN}, put(&net, image, -1, -1), -1);
    net.flat = put(&net, row, plain, -1);
    return net;
}

/* A tensor of that shape, cut from the image from `start` on. */
static int cut(struct net *net, int64_t start, const struct rfx_shape *shape) {
    int64_t elems = 1;
    for (int i = 0; i < shape->rank; i++) elems *= shape->dims[i];
    assert_true(start + elems <= PIXELS);
    struct rfx_node slice = {.op = RFX_OP_PLAIN_SLICE}, view = {.op = RFX_OP_RESHAPE};
    slice.attr.slice = (struct rfx_slice_attr){{0, start}, {1, 1}, {2, {1, elems}}};
    view.attr.reshape.shape = *shape;
    return put(net, view, put(net, slice, net->flat, -1), -1);
}

/* The scores with all that is joined to them. */
static int scores_of(struct net *net, const struct attention_case *c) {
    int at =
        put(net, (struct rfx_node){.op = RFX_OP_MATMUL}, cut(net, 0, &c->q), cut(net, 100, &c->k));
    for (int j = 0; j < c->n_joins; j++) {
        struct rfx_node join = {.op = RFX_OP_PLAIN_BINARY};
        join.attr.binary.kind = c->joins[j].kind;
        int other = cut(net, 200 + 10 * j, &c->joins[j].shape);
        bool right = c->joins[j].scores_right;
        at = put(net, join, right ? other : at, right ? at : other);
    }
    return at;
}

static int softmax_of(struct net *net, int scores, int axis_from_end, bool logarithm) {
    struct rfx_node softmax = {.op = RFX_OP_PLAIN_SOFTMAX};
    softmax.attr.softmax.axis = net->graph->nodes[scores].out.shape.rank - axis_from_end;
    softmax.attr.softmax.logarithm = logarithm;
    return put(net, softmax, scores, -1);
}

static int product_of(struct net *net, int weights, const struct attention_case *c) {
    return put(net, (struct rfx_node){.op = RFX_OP_MATMUL}, weights, cut(net, 300, &c->v));
}

static void output(struct net *net, int node) {
    const char *name = net->graph->nodes[node].name;
    assert_int_equal(rfx_graph_add_output(net->graph, node, name, &net->err), RFX_OK);
}

static void finish(struct net *net, bool fused) {
    const struct rfx_fuse_options options = {.attention = fused};
    if (rfx_graph_finish(net->graph, &options, &net->err) != RFX_OK) fail_msg("%s", net->err.text);
}

static void end(struct net *net) {
    rfx_graph_free(net->graph);
    rfx_memory_free(net->mem);
}

static struct net whole(const struct attention_case *c, bool fused) {
    struct net net = begin();
    output(&net, product_of(&net, softmax_of(&net, scores_of(&net, c), 1, false), c));
    finish(&net, fused);
    return net;
}

static int count(const struct net *net, enum rfx_op op) {
    int n = 0;
    for (int i = 0; i < net->graph->n_nodes; i++) n += net->graph->nodes[i].op == op;
    return n;
}

static float *run(const struct net *net, int threads, int64_t *elems) {
    const struct rfx_graph *graph = net->graph;
    struct test_prepared prepared;
    struct test_rng rng = test_rng_make(5);
    float **outs = calloc((size_t)graph->n_nodes, sizeof *outs), *image = test_floats(PIXELS);
    assert_non_null(outs);
    test_rng_fill(&rng, image, PIXELS, -2.0f, 2.0f);
    assert_true(test_prepare(graph, threads, &prepared));
    test_run_whole(&prepared, image, outs);
    int node = graph->outputs[0].node;
    *elems = graph->nodes[node].out.elems;
    float *copy = test_floats(*elems);
    memcpy(copy, outs[node], (size_t)*elems * sizeof *copy);
    test_run_whole_free(graph, outs);
    test_prepared_free(&prepared);
    free(image);
    free(outs);
    return copy;
}

static void same_bits(void **state) {
    (void)state;
    for (int i = 0; i < N_CASES; i++) {
        struct net apart = whole(&cases[i], false), fused = whole(&cases[i], true);
        assert_int_equal(count(&apart, RFX_OP_ATTENTION), 0);
        assert_int_equal(count(&fused, RFX_OP_ATTENTION), 1);
        assert_int_equal(count(&fused, RFX_OP_MATMUL) + count(&fused, RFX_OP_PLAIN_SOFTMAX) +
                             count(&fused, RFX_OP_PLAIN_BINARY),
                         0);
        int64_t n, m;
        float *want = run(&apart, 1, &n);
        for (int threads = 1; threads <= 3; threads++) {
            float *got = run(&fused, threads, &m);
            assert_int_equal(m, n);
            for (int64_t e = 0; e < n; e++)
                if (memcmp(&got[e], &want[e], sizeof *got) != 0)
                    fail_msg("case %d, %d threads: element %lld is %.9g, not %.9g", i, threads,
                             (long long)e, (double)got[e], (double)want[e]);
            free(got);
        }
        free(want);
        end(&apart);
        end(&fused);
    }
}

static uint64_t all_macs(const struct net *net) {
    uint64_t macs = 0;
    for (int i = 0; i < net->graph->n_nodes; i++)
        macs += rfx_op_macs(net->graph, &net->graph->nodes[i], (struct rfx_rect){0, 1, 0, 1});
    return macs;
}

/* As many products, and no tensor of all scores. */
static void counted_the_same(void **state) {
    (void)state;
    for (int i = 0; i < N_CASES; i++) {
        struct net apart = whole(&cases[i], false), fused = whole(&cases[i], true);
        assert_int_equal(all_macs(&fused), all_macs(&apart));
        end(&apart);
        end(&fused);
    }
    struct net many = whole(&cases[5], true);
    const struct rfx_node *node = &many.graph->nodes[many.graph->outputs[0].node];
    assert_int_equal(node->op, RFX_OP_ATTENTION);
    assert_int_equal(rfx_op_scratch_bytes(many.graph, node, 2), 2u * 24 * 30000 * 4);
    end(&many);
}

/* Somebody else sees what is between the products, or they are other operations. */
static void left_apart(void **state) {
    (void)state;
    const struct attention_case *c = &cases[1];
    for (int way = 0; way < 8; way++) {
        struct net net = begin();
        struct attention_case other = *c;
        if (way == 0) { /* one join more than there is room for */
            other = cases[4];
            other.joins[other.n_joins++] = (struct join){RFX_BINARY_ADD, false, {1, {1}}};
        }
        if (way == 1) net.graph->conv = RFX_CONV_OPENBLAS;
        if (way == 2) { /* scores that a join makes larger */
            other.joins[0].shape = (struct rfx_shape){4, {2, 1, 1, 1}};
            other.v = (struct rfx_shape){4, {2, 2, 9, 4}};
        }
        int scores = scores_of(&net, &other);
        if (way == 7) other.v = (struct rfx_shape){4, {2, 1, 9, 4}}; /* all scores twice */
        int softmax = softmax_of(&net, scores, way == 3 ? 2 : 1, way == 4);
        output(&net, product_of(&net, softmax, &other));
        if (way == 5) output(&net, scores);
        if (way == 6) output(&net, softmax);
        finish(&net, true);
        if (count(&net, RFX_OP_ATTENTION) != 0) fail_msg("way %d", way);
        end(&net);
    }
}

static void refusals(void **state) {
    (void)state;
    static const struct {
        struct rfx_shape q, k, v, join;
        int n_steps;
        const char *words;
    } bad[] = {
        {{2, {3, 4}}, {2, {5, 6}}, {2, {6, 1}}, {1, {1}}, 1, "3 x 4 times 5 x 6"},
        {{2, {3, 4}}, {2, {4, 6}}, {2, {5, 1}}, {1, {1}}, 1, "3 x 6 times 5 x 1"},
        {{2, {3, 4}}, {2, {4, 6}}, {2, {6, 1}}, {3, {1, 1, 1}}, 1, "rank 3 joins scores of rank 2"},
        {{2, {3, 4}}, {2, {4, 6}}, {2, {6, 1}}, {2, {2, 6}}, 1, "dimension 2 joins scores of 3"},
        {{2, {3, 4}}, {2, {4, 6}}, {2, {6, 1}}, {1, {1}}, 5, "5 steps"},
        {{2, {3, 4}}, {2, {4, 6}}, {3, {2, 6, 1}}, {1, {1}}, 1, "1 matrices of scores for 2"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct net net = begin();
        int in[4] = {cut(&net, 0, &bad[i].q), cut(&net, 0, &bad[i].k), cut(&net, 0, &bad[i].v),
                     cut(&net, 0, &bad[i].join)};
        struct rfx_node node = {
            .op = RFX_OP_ATTENTION, .name = "a", .in = in, .n_in = 4, .act = {.slope = -1}};
        node.attr.attention.n_steps = bad[i].n_steps;
        int index;
        assert_true(rfx_graph_add(net.graph, &node, &index, &net.err) != RFX_OK);
        if (strstr(net.err.text, bad[i].words) == NULL) fail_msg("%s", net.err.text);
        end(&net);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits),
        cmocka_unit_test(counted_the_same),
        cmocka_unit_test(left_apart),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
