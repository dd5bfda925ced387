/* Heads of detectors taken apart into maps: the bits of the whole form, for random heads on maps of
 * random sizes; what is taken apart, and what stays whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "layers/graph/op.h"
#include "tests/support/random/random_heads.h"
#include "tests/support/run/run_whole.h"
#include "tests/support/test_util.h"

static const struct rfx_fuse_options whole = {.activation = true},
                                     apart = {.activation = true, .heads = true};

/* A network of one head, drawn; NULL: the graph refused a part of it. */
static struct rfx_graph *draw(struct rfx_memory *mem, uint64_t seed,
                              const struct rfx_fuse_options *fuse) {
    struct random_graph_options options = random_graph_defaults();
    struct random_maker m = {NULL, test_rng_make(seed), &options};
    struct rfx_node image = {.op = RFX_OP_INPUT};
    struct rfx_error err = {{0}};
    assert_int_equal(rfx_graph_create(mem, "head", &m.graph, &err), RFX_OK);
    image.attr.input.c = random_draw(&m, 1, 4);
    image.attr.input.h = random_draw(&m, 2, 25);
    image.attr.input.w = random_draw(&m, 2, 25);
    int input = random_add(&m, image), head = random_add_head(&m, input);
    if (head < 0) {
        rfx_graph_free(m.graph);
        return NULL;
    }
    assert_int_equal(rfx_graph_add_output(m.graph, head, "head", &err), RFX_OK);
    if (rfx_graph_finish(m.graph, fuse, &err) != RFX_OK) fail_msg("%s", err.text);
    return m.graph;
}

/* Output k, whole, from values of the seed. */
static float *output_of(const struct rfx_graph *graph, int k, uint64_t seed) {
    struct test_rng rng = test_rng_make(seed);
    const struct rfx_tensor *input = &graph->nodes[graph->input].out;
    struct test_prepared prepared;
    float *image = test_floats(input->elems);
    float **outs = calloc((size_t)graph->n_nodes, sizeof *outs);
    int node = graph->outputs[k].node;
    float *values = test_floats(graph->nodes[node].out.elems);
    assert_non_null(outs);
    test_rng_fill(&rng, image, input->elems, -2.0f, 2.0f);
    assert_true(test_prepare(graph, 2, &prepared));
    test_run_whole(&prepared, image, outs);
    memcpy(values, outs[node], (size_t)graph->nodes[node].out.elems * sizeof *values);
    test_quiet_nans(values, graph->nodes[node].out.elems);
    test_run_whole_free(graph, outs);
    test_prepared_free(&prepared);
    free(outs);
    free(image);
    return values;
}

static void compare(const struct rfx_graph *a, const struct rfx_graph *b, int k, uint64_t seed) {
    const struct rfx_tensor *t = &a->nodes[a->outputs[k].node].out;
    const struct rfx_tensor *u = &b->nodes[b->outputs[k].node].out;
    float *wanted = output_of(a, k, seed), *got = output_of(b, k, seed);
    struct test_diff diff;
    assert_int_equal(t->shape.rank, u->shape.rank);
    for (int i = 0; i < t->shape.rank; i++) assert_int_equal(t->shape.dims[i], u->shape.dims[i]);
    if (!test_same_bits(got, wanted, t->elems, &diff)) {
        test_print_diff("head", got, wanted, t->elems, &diff);
        random_graph_print(a, stderr);
        random_graph_print(b, stderr);
        fail_msg("seed %llu", (unsigned long long)seed);
    }
    free(wanted);
    free(got);
}

static bool is_whole(const struct rfx_node *node) {
    return node->out.layout == RFX_LAYOUT_PLAIN && !rfx_node_is_joined(node);
}

/* Random heads: the same bits, and nothing that is held whole but the tensor's name. */
static void random_heads_keep_their_bits(void **state) {
    int64_t cases = test_env_int("RFX_HEADS", 1500), drawn = 0, joined = 0;
    uint64_t first = (uint64_t)test_env_int("RFX_SEED", 1);
    (void)state;
    for (int64_t i = 0; i < cases; i++) {
        uint64_t seed = first * 1000003u + (uint64_t)i;
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_graph *a = draw(mem, seed, &whole), *b = draw(mem, seed, &apart);
        assert_int_equal(a == NULL, b == NULL);
        if (a != NULL) {
            compare(a, b, 0, seed);
            drawn++;
            bool now = rfx_node_is_joined(&b->nodes[b->outputs[0].node]);
            joined += now;
            for (int n = 0; n < b->n_nodes; n++)
                assert_int_equal(rfx_graph_find(b, b->nodes[n].name), n); /* names are unique */
            for (int n = 0; now && n < b->n_nodes; n++)
                if (is_whole(&b->nodes[n]))
                    fail_msg("seed %llu: '%s' is whole", (unsigned long long)seed,
                             b->nodes[n].name);
        }
        rfx_graph_free(a);
        rfx_graph_free(b);
        assert_int_equal(rfx_memory_current_bytes(mem), 0);
        rfx_memory_free(mem);
    }
    fprintf(stderr, "%lld heads, %lld of them taken apart\n", (long long)drawn, (long long)joined);
    /* joins that mix channels and cells stay whole */
    assert_true(drawn * 2 > cases && joined * 10 > drawn * 7);
}

/* --- one head by hand: two levels of two channels, one of which goes through `step` --- */

struct net {
    struct rfx_memory *mem;
    struct rfx_graph *graph;
    int maps[2], levels; /* levels: (1, 2, 6 * 4 + 3 * 2) */
};

static int add(struct net *net, struct rfx_node node, const int *in, int n_in) {
    char name[32];
    struct rfx_error err = {{0}};
    int index = -1;
    (void)snprintf(name, sizeof name, "n%d", net->graph->n_nodes);
    node.name = name;
    node.in = in;
    node.n_in = n_in;
    if (node.act.kind == RFX_ACT_NONE) node.act.slope = -1;
    if (rfx_graph_add(net->graph, &node, &index, &err) != RFX_OK) fail_msg("%s", err.text);
    return index;
}

static struct net begin(int64_t h, int64_t w) {
    struct net net = {.mem = rfx_memory_create(0)};
    struct rfx_node image = {.op = RFX_OP_INPUT, .attr.input = {2, h, w}};
    struct rfx_node act = {.op = RFX_OP_ACTIVATION, .act = {.kind = RFX_ACT_ABS, .slope = -1}};
    struct rfx_node pool = {.op = RFX_OP_POOL_MAX,
                            .attr.pool = {.kh = 2, .kw = 2, .sh = 2, .sw = 2, .dh = 1, .dw = 1}};
    struct rfx_node concat = {.op = RFX_OP_PLAIN_CONCAT, .attr.concat.axis = 2};
    int flat[2];
    assert_int_equal(rfx_graph_create(net.mem, "net", &net.graph, NULL), RFX_OK);
    int input = add(&net, image, NULL, 0);
    net.maps[0] = add(&net, act, &input, 1);
    net.maps[1] = add(&net, pool, &net.maps[0], 1);
    for (int l = 0; l < 2; l++) {
        const struct rfx_tensor *t = &net.graph->nodes[net.maps[l]].out;
        struct rfx_node view = {.op = RFX_OP_RESHAPE};
        view.attr.reshape.shape = (struct rfx_shape){3, {1, 2, t->h * t->w}};
        int plain = add(&net, (struct rfx_node){.op = RFX_OP_TO_PLAIN}, &net.maps[l], 1);
        flat[l] = add(&net, view, &plain, 1);
    }
    net.levels = add(&net, concat, flat, 2);
    return net;
}

static void output(struct net *net, int node, const char *name) {
    assert_int_equal(rfx_graph_add_output(net->graph, node, name, NULL), RFX_OK);
}

static void finish_as(struct net *net, const struct rfx_fuse_options *fuse) {
    struct rfx_error err = {{0}};
    if (rfx_graph_finish(net->graph, fuse, &err) != RFX_OK) fail_msg("%s", err.text);
}

static void finish(struct net *net) {
    finish_as(net, NULL);
}

static void end(struct net *net) {
    rfx_graph_free(net->graph);
    assert_int_equal(rfx_memory_current_bytes(net->mem), 0);
    rfx_memory_free(net->mem);
}

static bool joined(const struct net *net, int k) {
    return rfx_node_is_joined(&net->graph->nodes[net->graph->outputs[k].node]);
}

static int act_on(struct net *net, int in) {
    struct rfx_node act = {.op = RFX_OP_ACTIVATION, .act = {.kind = RFX_ACT_SIN, .slope = -1}};
    return add(net, act, &in, 1);
}

static int slice_of(struct net *net, int in, int64_t c0, int64_t c, int64_t n0, int64_t n) {
    struct rfx_node node = {.op = RFX_OP_PLAIN_SLICE};
    node.attr.slice =
        (struct rfx_slice_attr){.starts = {0, c0, n0}, .steps = {1, 1, 1}, .shape = {3, {1, c, n}}};
    return add(net, node, &in, 1);
}

/* The ends of a joined output say where each map's elements lie. */
static void ends_say_where_maps_lie(void **state) {
    struct net net = begin(6, 4);
    (void)state;
    output(&net, act_on(&net, net.levels), "out");
    output(&net, net.maps[1], "map");
    finish(&net);
    assert_true(joined(&net, 0));
    assert_int_equal(net.graph->n_ends, 3);
    static const struct rfx_spread wanted[3] = {{0, 4, 1, 30}, {24, 2, 1, 30}, {0, 2, 1, 6}};
    static const int outputs[3] = {0, 0, 1};
    for (int e = 0; e < 3; e++) {
        const struct rfx_end *got = &net.graph->ends[e];
        assert_int_equal(got->output, outputs[e]);
        assert_int_equal(got->channels, 2);
        assert_memory_equal(&got->at, &wanted[e], sizeof wanted[e]);
    }
    assert_string_equal(net.graph->nodes[net.graph->outputs[0].node].name, "n8");
    end(&net);
}

/* Anchors in front of cells, as YOLOv5 has them: a map each. */
static void anchors_are_levels(void **state) {
    static const struct rfx_spread wanted[2] = {{0, 4, 1, 1}, {24, 4, 1, 1}};
    struct net net = begin(6, 4);
    struct rfx_node split = {.op = RFX_OP_RESHAPE, .attr.reshape.shape = {5, {1, 2, 1, 6, 4}}};
    struct rfx_node turn = {.op = RFX_OP_TRANSPOSE, .attr.transpose.perm = {0, 1, 3, 4, 2}};
    struct rfx_node flat = {.op = RFX_OP_RESHAPE, .attr.reshape.shape = {3, {1, 48, 1}}};
    (void)state;
    int x = add(&net, (struct rfx_node){.op = RFX_OP_TO_PLAIN}, &net.maps[0], 1);
    x = add(&net, split, &x, 1);
    x = add(&net, turn, &x, 1);
    output(&net, act_on(&net, add(&net, flat, &x, 1)), "out");
    finish(&net);
    assert_true(joined(&net, 0));
    assert_int_equal(net.graph->n_ends, 2);
    for (int e = 0; e < 2; e++)
        assert_memory_equal(&net.graph->ends[e].at, &wanted[e], sizeof wanted[e]);
    end(&net);
}

/* Two levels, the first with two anchors behind its pixels: 1 x (6 * 4 * 2 + 3 * 2) x 1. */
static int anchored_levels(struct net *net) {
    static int64_t second = 1;
    struct rfx_node select = {.op = RFX_OP_CHANNEL_SELECT};
    struct rfx_node concat = {.op = RFX_OP_PLAIN_CONCAT, .attr.concat.axis = 1};
    int map[2] = {net->maps[0], 0}, flat[2];
    select.attr.select.count = 1;
    select.attr.select.map = &second;
    map[1] = add(net, select, &net->maps[1], 1);
    for (int l = 0; l < 2; l++) {
        struct rfx_node view = {.op = RFX_OP_RESHAPE};
        view.attr.reshape.shape = (struct rfx_shape){3, {1, l == 0 ? 48 : 6, 1}};
        int plain = add(net, (struct rfx_node){.op = RFX_OP_NHWC_AS_PLAIN}, &map[l], 1);
        flat[l] = add(net, view, &plain, 1);
    }
    return add(net, concat, flat, 2);
}

/* The levels plus a constant of every cell. */
static struct net anchors_and_constant(const struct rfx_fuse_options *fuse) {
    struct net net = begin(6, 4);
    struct rfx_node constant = {.op = RFX_OP_CONST_PLAIN}, join = {.op = RFX_OP_PLAIN_BINARY};
    float values[54];
    for (int p = 0; p < 54; p++) values[p] = (float)(p * p);
    struct rfx_weight weight = {
        .source = RFX_WEIGHT_OWNED, .data = values, .shape = {3, {1, 54, 1}}, .elems = 54};
    constant.attr.constant.shape = weight.shape;
    assert_int_equal(rfx_graph_add_weight(net.graph, &weight, &constant.attr.constant.weight, NULL),
                     RFX_OK);
    int in[2] = {anchored_levels(&net), add(&net, constant, NULL, 0)};
    output(&net, add(&net, join, in, 2), "out");
    finish_as(&net, fuse);
    return net;
}

/* Anchors behind cells, as SSD has them: all anchors of a level in one map. */
static void anchors_follow_their_cells(void **state) {
    static const struct rfx_spread wanted[2] = {{0, 8, 2, 1}, {48, 2, 1, 1}};
    struct net a = anchors_and_constant(&whole), b = anchors_and_constant(&apart);
    (void)state;
    assert_true(joined(&b, 0));
    assert_int_equal(b.graph->n_ends, 2);
    for (int e = 0; e < 2; e++) {
        assert_memory_equal(&b.graph->ends[e].at, &wanted[e], sizeof wanted[e]);
        assert_int_equal(b.graph->ends[e].channels, 2 - e);
    }
    compare(a.graph, b.graph, 0, 5);
    end(&a);
    end(&b);
    struct net net = begin(6, 4); /* channel by channel, their cells have no rows */
    struct rfx_node turn = {.op = RFX_OP_TRANSPOSE, .attr.transpose.perm = {0, 2, 1}};
    int levels = anchored_levels(&net);
    output(&net, add(&net, turn, &levels, 1), "out");
    finish(&net);
    assert_false(joined(&net, 0));
    end(&net);
}

static void cuts_through_cells_stay_whole(void **state) {
    (void)state;
    for (int which = 0; which < 2; which++) {
        struct net net = begin(6, 4);
        output(&net, slice_of(&net, net.levels, 0, 1, which == 0 ? 1 : 0, 29), "out");
        finish(&net);
        assert_false(joined(&net, 0));
        end(&net);
    }
}

/* A cut between levels keeps the maps of one. */
static void cuts_between_levels_keep_maps(void **state) {
    static const struct rfx_spread wanted = {0, 2, 1, 6};
    struct net a = begin(6, 4), b = begin(6, 4);
    (void)state;
    output(&a, act_on(&a, slice_of(&a, a.levels, 0, 2, 24, 6)), "out");
    output(&b, act_on(&b, slice_of(&b, b.levels, 0, 2, 24, 6)), "out");
    finish_as(&a, &whole);
    finish_as(&b, &apart);
    assert_true(joined(&b, 0));
    assert_int_equal(b.graph->n_ends, 1);
    assert_memory_equal(&b.graph->ends[0].at, &wanted, sizeof wanted);
    compare(a.graph, b.graph, 0, 7);
    end(&a);
    end(&b);
}

/* Who needs a tensor as a whole needs what it is made of, and then nothing is made twice. */
static void what_another_output_needs_whole_stays_whole(void **state) {
    (void)state;
    for (int shared = 0; shared < 2; shared++) {
        struct net net = begin(6, 4);
        struct rfx_node sum = {.op = RFX_OP_REDUCE};
        sum.attr.reduce.axes[2] = true;
        int first = slice_of(&net, net.levels, 0, 1, 0, 30);
        int act = act_on(&net, first), from = shared ? first : net.maps[0];
        if (!shared) from = add(&net, (struct rfx_node){.op = RFX_OP_TO_PLAIN}, &from, 1);
        output(&net, act, "cells");
        output(&net, add(&net, sum, &from, 1), "sum");
        finish(&net);
        assert_int_equal(joined(&net, 0), !shared);
        assert_false(joined(&net, 1));
        end(&net);
    }
}

/* The second level has one row, one column or one pixel. */
static void small_levels_are_maps(void **state) {
    static const int64_t sizes[][2] = {{2, 9}, {8, 3}, {2, 2}};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct net a = begin(sizes[i][0], sizes[i][1]), b = begin(sizes[i][0], sizes[i][1]);
        output(&a, act_on(&a, a.levels), "out");
        output(&b, act_on(&b, b.levels), "out");
        finish_as(&a, &whole);
        finish_as(&b, &apart);
        assert_true(joined(&b, 0));
        assert_int_equal(b.graph->n_ends, 2);
        compare(a.graph, b.graph, 0, 9);
        end(&a);
        end(&b);
    }
}

/* OpenBLAS has its own bits for every size of call; a head needs a map with rows and columns. */
static void others_stay_whole(void **state) {
    (void)state;
    struct net net = begin(2, 2);
    output(&net, slice_of(&net, net.levels, 0, 2, 4, 1), "out"); /* the level of one pixel */
    finish(&net);
    assert_false(joined(&net, 0));
    end(&net);
    net = begin(6, 4);
    net.graph->conv = RFX_CONV_OPENBLAS;
    output(&net, net.levels, "out");
    finish(&net);
    assert_false(joined(&net, 0));
    end(&net);
    net = begin(6, 4);
    struct rfx_node sum = {.op = RFX_OP_REDUCE};
    sum.attr.reduce.axes[1] = sum.attr.reduce.keep_dims = true;
    output(&net, add(&net, sum, &net.levels, 1), "out");
    finish(&net);
    assert_false(joined(&net, 0));
    end(&net);
}

/* Negative zeros and ones, joined with a constant whose first channel changes along rows, the
 * second along columns: zeros of both signs among others. */
static struct net zeros_and_constants(enum rfx_binary_kind kind, bool left,
                                      const struct rfx_fuse_options *fuse) {
    static const float few[6] = {-0.0f, 0.0f, 1.0f, -2.0f, -0.0f, 0.5f};
    static const enum rfx_act_kind acts[2] = {RFX_ACT_FLOOR, RFX_ACT_NEG};
    struct net net = begin(6, 4);
    float values[60];
    for (int c = 0; c < 2; c++)
        for (int p = 0; p < 30; p++) {
            int w = p < 24 ? 4 : 2, at = p < 24 ? p : p - 24;
            values[30 * c + p] = few[c == 0 ? at % w : at / w];
        }
    struct rfx_weight weight = {
        .source = RFX_WEIGHT_OWNED, .data = values, .shape = {3, {1, 2, 30}}, .elems = 60};
    struct rfx_node constant = {.op = RFX_OP_CONST_PLAIN}, join = {.op = RFX_OP_PLAIN_BINARY};
    int x = net.levels, in[2];
    for (int i = 0; i < 2; i++) {
        struct rfx_node act = {.op = RFX_OP_ACTIVATION, .act = {.kind = acts[i], .slope = -1}};
        x = add(&net, act, &x, 1);
    }
    constant.attr.constant.shape = weight.shape;
    assert_int_equal(rfx_graph_add_weight(net.graph, &weight, &constant.attr.constant.weight, NULL),
                     RFX_OK);
    join.attr.binary.kind = kind;
    in[left ? 1 : 0] = x;
    in[left ? 0 : 1] = add(&net, constant, NULL, 0);
    output(&net, add(&net, join, in, 2), "out");
    finish_as(&net, fuse);
    return net;
}

/* Constants taken apart change no sign of zero, and are kept by rows and by columns only. */
static void coordinates_keep_the_signs_of_zeros(void **state) {
    static const enum rfx_binary_kind kinds[] = {RFX_BINARY_ADD, RFX_BINARY_SUB, RFX_BINARY_MUL,
                                                 RFX_BINARY_DIV, RFX_BINARY_MAX};
    (void)state;
    for (int i = 0; i < 10; i++) {
        enum rfx_binary_kind kind = kinds[i / 2];
        bool left = i % 2 == 1, apart_too = kind != RFX_BINARY_MAX && !(i == 7);
        struct net a = zeros_and_constants(kind, left, &whole);
        struct net b = zeros_and_constants(kind, left, &apart);
        assert_true(joined(&b, 0));
        compare(a.graph, b.graph, 0, 11);
        for (int n = 0; n < b.graph->n_nodes; n++) {
            const struct rfx_tensor *t = &b.graph->nodes[n].out;
            if (b.graph->nodes[n].op == RFX_OP_CONST_MAP && apart_too)
                assert_true(t->h == 1 || t->w == 1);
        }
        end(&a);
        end(&b);
    }
}

/* Two outputs of one head, and one twice: each has its maps. */
static void outputs_share_a_head(void **state) {
    struct net net = begin(6, 4);
    int first = slice_of(&net, net.levels, 0, 1, 0, 30);
    int second = act_on(&net, slice_of(&net, net.levels, 1, 1, 0, 30));
    (void)state;
    output(&net, first, "first");
    output(&net, second, "second");
    output(&net, second, "again");
    finish(&net);
    for (int k = 0; k < 3; k++) assert_true(joined(&net, k));
    assert_int_equal(net.graph->n_ends, 6);
    float *a = output_of(net.graph, 1, 3), *b = output_of(net.graph, 2, 3);
    assert_memory_equal(a, b, 30 * sizeof *a);
    free(a);
    free(b);
    end(&net);
}

/* Each allocation in turn fails: an error, nothing left behind. */
static void out_of_memory_is_reported(void **state) {
    (void)state;
    bool built = false;
    for (int64_t k = 0; !built; k++) {
        struct net net = begin(6, 4);
        struct rfx_error err = {{0}};
        output(&net, act_on(&net, slice_of(&net, net.levels, 1, 1, 0, 30)), "out");
        output(&net, act_on(&net, anchored_levels(&net)), "anchors");
        rfx_memory_fail_after(net.mem, k);
        enum rfx_status status = rfx_graph_finish(net.graph, NULL, &err);
        rfx_memory_fail_after(net.mem, -1);
        built = status == RFX_OK;
        if (!built) assert_int_equal(status, RFX_STATUS_OUT_OF_MEMORY);
        end(&net);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_heads_keep_their_bits),
        cmocka_unit_test(ends_say_where_maps_lie),
        cmocka_unit_test(anchors_are_levels),
        cmocka_unit_test(anchors_follow_their_cells),
        cmocka_unit_test(cuts_through_cells_stay_whole),
        cmocka_unit_test(cuts_between_levels_keep_maps),
        cmocka_unit_test(what_another_output_needs_whole_stays_whole),
        cmocka_unit_test(small_levels_are_maps),
        cmocka_unit_test(others_stay_whole),
        cmocka_unit_test(coordinates_keep_the_signs_of_zeros),
        cmocka_unit_test(outputs_share_a_head),
        cmocka_unit_test(out_of_memory_is_reported)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
