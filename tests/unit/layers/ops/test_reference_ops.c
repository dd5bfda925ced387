/* Every op's run against the naive reference: maps through the nodes of random graphs (odd sizes,
 * all pads, strides, dilations, groups), whole tensors through a hand-made table. Each node gets
 * the exact inputs that the op got, so errors do not add up. Sub-rectangles on exactly sized
 * buffers must give the bits of the whole map. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/oracle/reference.h"
#include "tests/support/oracle/rounding.h"
#include "tests/support/random/random_graph.h"
#include "tests/support/run/run_whole.h"
#include "tests/support/test_net.h"
#include "tests/support/test_util.h"

/* Of the channel's largest magnitude. OpenBLAS may miss it by its roundings where products cancel
 * each other, or a ReLU leaves little. */
#define TOLERANCE 2e-5

static int seen[RFX_OP_COUNT];

/* Returns a tensor's elements as float32. */
static float *to_onnx_order(const struct rfx_tensor *t, const void *stored) {
    float *values = test_floats(t->elems), *out = test_floats(t->elems);
    rfx_type_load(t->type, stored, t->elems, values);
    if (t->layout == RFX_LAYOUT_NHWC)
        test_nhwc_to_nchw(values, out, t->c, t->h, t->w);
    else
        memcpy(out, values, (size_t)t->elems * sizeof *out);
    free(values);
    return out;
}

/* One node against the reference, inputs taken from `outs` (stored order). */
static bool check_node(const struct rfx_graph *graph, int index, float *const *outs) {
    const struct rfx_node *node = &graph->nodes[index];
    float *in[64];
    for (int k = 0; k < node->n_in; k++)
        in[k] = to_onnx_order(&graph->nodes[node->in[k]].out, outs[node->in[k]]);
    float *want = test_floats(node->out.elems);
    float *got = to_onnx_order(&node->out, outs[index]);
    bool ok = rfx_ref_node(graph, node, in, want);
    /* channel by channel: a small one beside a large one must be right too */
    bool is_map = node->out.layout == RFX_LAYOUT_NHWC;
    int64_t part = is_map ? node->out.h * node->out.w : node->out.elems;
    for (int64_t at = 0; ok && at < node->out.elems; at += part) {
        struct test_diff diff;
        double scale = test_largest(want + at, part);
        /* numbers of bytes: large products that cancel each other leave a small sum */
        bool large = node->op == RFX_OP_CONV &&
                     test_largest(in[0], graph->nodes[node->in[0]].out.elems) > 16.0;
        if (is_map && (large || rfx_op_calls_blas(graph, node)))
            scale = fmax(scale, test_rounding(graph, node, in, at / part) / TOLERANCE);
        ok = test_close(got + at, want + at, part, TOLERANCE, scale, &diff);
        if (!ok) test_print_diff(rfx_op_def(node->op)->name, got + at, want + at, part, &diff);
    }
    seen[node->op]++;
    for (int k = 0; k < node->n_in; k++) free(in[k]);
    free(want);
    free(got);
    return ok;
}

/* A random rectangle of the node on its own, with 1 to 3 threads. */
static bool check_rect(const struct rfx_graph *graph, int index, float *const *outs,
                       struct test_rng *rng) {
    const struct rfx_node *node = &graph->nodes[index];
    if (!rfx_op_def(node->op)->spatial) return true;
    int64_t y0 = test_rng_int(rng, 0, node->out.h - 1), x0 = test_rng_int(rng, 0, node->out.w - 1);
    struct rfx_rect rect = {y0, test_rng_int(rng, y0 + 1, node->out.h), x0,
                            test_rng_int(rng, x0 + 1, node->out.w)};
    float *in[64];
    for (int k = 0; k < node->n_in; k++) in[k] = outs[node->in[k]];
    float *got = test_floats(node->out.elems);
    memcpy(got, outs[index], rfx_tensor_bytes(&node->out));
    struct rfx_view view = rfx_view_of(&node->out, got, rfx_node_full_rect(node));
    for (int64_t y = rect.y0; y < rect.y1; y++)
        memset(rfx_view_at(&view, y, rect.x0), 0xff,
               rfx_tensor_pixel_bytes(&node->out, rfx_rect_cols(rect)));
    bool ok = test_run_node(graph, node, in, got, rect, (int)test_rng_int(rng, 1, 3));
    if (ok) {
        ok = test_same_tensors(node->name, &node->out, got, outs[index]);
        if (!ok)
            fprintf(stderr, "rect [%lld, %lld) x [%lld, %lld)\n", (long long)rect.y0,
                    (long long)rect.y1, (long long)rect.x0, (long long)rect.x1);
    }
    free(got);
    return ok;
}

/* All nodes of a finished graph on a random input in [-1, 1]. */
static bool check_graph(const struct rfx_graph *graph, uint64_t seed) {
    struct test_rng rng = test_rng_make(seed ^ 0xabcdef);
    struct test_prepared prepared;
    if (graph->input < 0) return true;
    if (!test_prepare(graph, 2, &prepared)) return false;
    int64_t elems = graph->nodes[graph->input].out.elems;
    float *input = test_floats(elems);
    test_rng_fill(&rng, input, elems, -1.0f, 1.0f);
    float **outs = calloc((size_t)graph->n_nodes, sizeof *outs);
    bool ok = outs != NULL;
    if (ok) {
        test_run_whole(&prepared, input, outs);
        for (int i = 0; ok && i < graph->n_nodes; i++) {
            if (graph->nodes[i].op == RFX_OP_INPUT) continue;
            ok = check_node(graph, i, outs) && check_rect(graph, i, outs, &rng);
            if (!ok) fprintf(stderr, "seed %llu, node %d\n", (unsigned long long)seed, i);
        }
        test_run_whole_free(graph, outs);
    }
    if (!ok) random_graph_print(graph, stderr);
    free(outs);
    free(input);
    test_prepared_free(&prepared);
    return ok;
}

static void test_maps(void **state) {
    (void)state;
    int64_t cases = test_env_int("RFX_OP_CASES", 500), first = test_env_int("RFX_SEED", 1);
    int failed = 0;
    memset(seen, 0, sizeof seen);
    for (int64_t i = 0; i < cases && failed < 5; i++) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct random_graph_options options = random_graph_defaults();
        options.max_size = 19;
        options.max_nodes = 10;
        options.quantised = 20;
        struct rfx_graph *graph = random_graph_make(mem, (uint64_t)(first + i), &options);
        if (!check_graph(graph, (uint64_t)(first + i))) failed++;
        rfx_graph_free(graph);
        rfx_memory_free(mem);
    }
    assert_int_equal(failed, 0);
    static const enum rfx_op wanted[] = {
        RFX_OP_CONV,         RFX_OP_CONV_TRANSPOSE, RFX_OP_POOL_MAX,       RFX_OP_POOL_AVG,
        RFX_OP_AFFINE,       RFX_OP_ACTIVATION,     RFX_OP_BINARY,         RFX_OP_CONCAT,
        RFX_OP_PAD,          RFX_OP_CROP,           RFX_OP_CHANNEL_SELECT, RFX_OP_RESIZE,
        RFX_OP_LRN,          RFX_OP_SOFTMAX,        RFX_OP_DEPTH_TO_SPACE, RFX_OP_SPACE_TO_DEPTH,
        RFX_OP_CONST_MAP,    RFX_OP_GLOBAL_POOL,    RFX_OP_POOL_LP,        RFX_OP_CHANNEL_REDUCE,
        RFX_OP_CHANNEL_NORM, RFX_OP_MOMENTS,        RFX_OP_NORMALISE,      RFX_OP_POOL_PLACE,
        RFX_OP_REPEAT,       RFX_OP_CONVERT,        RFX_OP_INT_CONV,       RFX_OP_INT_ADD,
        RFX_OP_INT_MEAN};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        if (seen[wanted[i]] < 5)
            fprintf(stderr, "op %d was tested only %d times\n", (int)wanted[i], seen[wanted[i]]);
        if (cases >= 400) assert_true(seen[wanted[i]] >= 5);
    }
}

static int values(struct test_net *b, int64_t elems) {
    struct rfx_weight w = {.source = RFX_WEIGHT_GENERATED,
                           .seed = (uint64_t)b->graph->n_weights,
                           .lo = -1,
                           .hi = 1,
                           .shape = {1, {elems}},
                           .elems = elems};
    int index;
    assert_int_equal(rfx_graph_add_weight(b->graph, &w, &index, NULL), RFX_OK);
    return index;
}

static void end(struct test_net *b, uint64_t seed) {
    static const struct rfx_fuse_options nothing = {0};
    struct rfx_error err = {{0}};
    /* Every node an output, so that none is dropped. */
    for (int i = 0; i < b->graph->n_nodes; i++)
        assert_int_equal(rfx_graph_add_output(b->graph, i, b->graph->nodes[i].name, &err), RFX_OK);
    if (rfx_graph_finish(b->graph, &nothing, &err) != RFX_OK) fail_msg("%s", err.text);
    assert_true(check_graph(b->graph, seed));
    test_net_end(b);
}

static struct rfx_node op_node(enum rfx_op op) {
    return (struct rfx_node){.op = op};
}

static void test_layouts(void **state) {
    (void)state;
    struct test_net b = test_net_begin(3, 5, 7);
    int plain = test_net_put(&b, op_node(RFX_OP_TO_PLAIN), 0, -1);
    (void)test_net_put(&b, op_node(RFX_OP_TO_NHWC), plain, -1);
    int same = test_net_put(&b, op_node(RFX_OP_NHWC_AS_PLAIN), 0, -1);
    (void)test_net_put(&b, op_node(RFX_OP_PLAIN_AS_NHWC), same, -1);
    struct rfx_node reshape = op_node(RFX_OP_RESHAPE);
    reshape.attr.reshape.shape = (struct rfx_shape){3, {5, 3, 7}};
    int cube = test_net_put(&b, reshape, plain, -1);
    struct rfx_node pool = op_node(RFX_OP_POOL_MAX), join = op_node(RFX_OP_JOIN_MAPS);
    pool.attr.pool = (struct rfx_pool_attr){.kh = 2, .kw = 3, .sh = 2, .sw = 1, .dh = 1, .dw = 1};
    int small = test_net_put(&b, pool, 0, -1);
    for (int axis = 1; axis < 3; axis++) {
        join.attr.concat.axis = axis;
        (void)test_net_put(&b, join, 0, small);
    }
    static const int perms[][3] = {{0, 2, 1}, {2, 1, 0}, {1, 2, 0}};
    for (int i = 0; i < 3; i++) {
        struct rfx_node transpose = op_node(RFX_OP_TRANSPOSE);
        memcpy(transpose.attr.transpose.perm, perms[i], sizeof perms[i]);
        (void)test_net_put(&b, transpose, cube, -1);
    }
    for (int axis = 0; axis < 3; axis++) {
        struct rfx_node concat = op_node(RFX_OP_PLAIN_CONCAT), soft = op_node(RFX_OP_PLAIN_SOFTMAX);
        concat.attr.concat.axis = axis;
        soft.attr.softmax.axis = axis;
        soft.attr.softmax.logarithm = axis == 1;
        (void)test_net_put(&b, concat, cube, cube);
        (void)test_net_put(&b, soft, cube, -1);
        int64_t map[] = {2, 0, 2, 1};
        struct rfx_node gather = op_node(RFX_OP_PLAIN_GATHER);
        gather.attr.gather.axis = axis;
        gather.attr.gather.count = 4;
        gather.attr.gather.map = map;
        (void)test_net_put(&b, gather, cube, -1);
    }
    struct rfx_node slice = op_node(RFX_OP_PLAIN_SLICE);
    slice.attr.slice = (struct rfx_slice_attr){{4, 0, 1}, {-2, 1, 3}, {3, {3, 2, 2}}};
    (void)test_net_put(&b, slice, cube, -1);
    end(&b, 1);
}

static void test_plain_math(void **state) {
    (void)state;
    struct test_net b = test_net_begin(4, 3, 5);
    int plain = test_net_put(&b, op_node(RFX_OP_TO_PLAIN), 0, -1);
    static const struct rfx_shape shapes[] = {{4, {1, 4, 3, 5}}, {1, {5}},       {2, {3, 1}},
                                              {4, {1, 4, 1, 1}}, {3, {4, 1, 5}}, {1, {1}}};
    for (int i = 0; i < 6; i++) {
        struct rfx_node constant = op_node(RFX_OP_CONST_PLAIN), join = op_node(RFX_OP_PLAIN_BINARY);
        constant.attr.constant.shape = shapes[i];
        int64_t elems = 1;
        for (int d = 0; d < shapes[i].rank; d++) elems *= shapes[i].dims[d];
        constant.attr.constant.weight = values(&b, elems);
        int other = test_net_put(&b, constant, -1, -1);
        join.attr.binary.kind = (enum rfx_binary_kind)i;
        if (i % 2 == 1) join.act.kind = RFX_ACT_RELU;
        (void)test_net_put(&b, join, i % 2 == 0 ? plain : other, i % 2 == 0 ? other : plain);
    }
    for (int axes = 1; axes < 16; axes++) {
        struct rfx_node reduce = op_node(RFX_OP_REDUCE);
        reduce.attr.reduce.kind = (enum rfx_reduce_kind)(axes % RFX_REDUCE_COUNT);
        reduce.attr.reduce.keep_dims = axes % 3 == 0;
        for (int d = 0; d < 4; d++) reduce.attr.reduce.axes[d] = (axes >> d & 1) != 0;
        (void)test_net_put(&b, reduce, plain, -1);
    }
    end(&b, 2);
}

static void test_products(void **state) {
    (void)state;
    struct test_net b = test_net_begin(4, 3, 5);
    int plain = test_net_put(&b, op_node(RFX_OP_TO_PLAIN), 0, -1);
    struct rfx_node reshape = op_node(RFX_OP_RESHAPE);
    static const int64_t rows[] = {1, 3, 12};
    for (int i = 0; i < 3; i++) {
        int64_t k = 60 / rows[i], m = 7 + i;
        reshape.attr.reshape.shape = (struct rfx_shape){2, {rows[i], k}};
        int in = test_net_put(&b, reshape, plain, -1);
        for (int transposed = 0; transposed < 2; transposed++) {
            struct rfx_node gemm = op_node(RFX_OP_GEMM);
            gemm.attr.gemm.k = k;
            gemm.attr.gemm.m = m;
            gemm.attr.gemm.weight = values(&b, k * m);
            b.graph->weights[gemm.attr.gemm.weight].shape =
                transposed ? (struct rfx_shape){2, {m, k}} : (struct rfx_shape){2, {k, m}};
            gemm.attr.gemm.bias = i == 1 ? -1 : values(&b, m);
            gemm.attr.gemm.weight_is_mk = transposed != 0;
            gemm.attr.gemm.alpha = i == 2 ? 0.5f : 1.0f;
            gemm.attr.gemm.beta = i == 2 ? -2.0f : 1.0f;
            if (transposed) gemm.act.kind = RFX_ACT_RELU;
            (void)test_net_put(&b, gemm, in, -1);
        }
    }
    reshape.attr.reshape.shape = (struct rfx_shape){3, {4, 3, 5}};
    int left = test_net_put(&b, reshape, plain, -1);
    reshape.attr.reshape.shape = (struct rfx_shape){3, {4, 5, 3}};
    int right = test_net_put(&b, reshape, plain, -1);
    reshape.attr.reshape.shape = (struct rfx_shape){2, {5, 12}};
    int flat = test_net_put(&b, reshape, plain, -1);
    (void)test_net_put(&b, op_node(RFX_OP_MATMUL), left, right);
    (void)test_net_put(&b, op_node(RFX_OP_MATMUL), right, left);
    (void)test_net_put(&b, op_node(RFX_OP_MATMUL), left, flat);
    end(&b, 3);
}

static void test_pools_over_space(void **state) {
    (void)state;
    static const int64_t sizes[][4] = {{7, 11, 3, 4}, {5, 5, 1, 1}, {3, 4, 6, 7}, {9, 1, 4, 1}};
    for (int i = 0; i < 4; i++) {
        struct test_net b = test_net_begin(3, sizes[i][0], sizes[i][1]);
        struct rfx_node adaptive = op_node(RFX_OP_POOL_ADAPTIVE_AVG);
        adaptive.attr.adaptive.oh = sizes[i][2];
        adaptive.attr.adaptive.ow = sizes[i][3];
        (void)test_net_put(&b, adaptive, 0, -1);
        for (int kind = RFX_REDUCE_MEAN; kind < RFX_REDUCE_COUNT; kind++) {
            bool pooled = kind <= RFX_REDUCE_MIN || kind == RFX_REDUCE_SUM_SQUARE;
            if (!pooled) continue; /* no pool of ours */
            struct rfx_node global = op_node(RFX_OP_GLOBAL_POOL);
            global.attr.global_pool.kind = (enum rfx_reduce_kind)kind;
            (void)test_net_put(&b, global, 0, -1);
        }
        end(&b, 4);
    }
}

/* All activations on maps, at values around their corners. */
static void test_activations(void **state) {
    (void)state;
    struct test_net b = test_net_begin(3, 5, 7);
    struct rfx_node wide = op_node(RFX_OP_AFFINE);
    wide.attr.affine.scale = values(&b, 3);
    wide.attr.affine.shift = -1;
    int x = test_net_put(&b, wide, 0, -1);
    for (int kind = RFX_ACT_RELU; kind < RFX_ACT_COUNT; kind++) {
        struct rfx_node act = op_node(RFX_OP_ACTIVATION), positive = op_node(RFX_OP_ACTIVATION);
        act.act = (struct rfx_act){(enum rfx_act_kind)kind, 0.25f, 0.6f, -1};
        if (kind == RFX_ACT_PRELU) act.act.slope = values(&b, 3);
        positive.act = (struct rfx_act){RFX_ACT_EXP, 0, 0, -1};
        bool domain = kind == RFX_ACT_LOG || kind == RFX_ACT_SQRT || kind == RFX_ACT_POW ||
                      kind == RFX_ACT_RECIPROCAL;
        (void)test_net_put(&b, act, domain ? test_net_put(&b, positive, x, -1) : x, -1);
    }
    end(&b, 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_maps),
        cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_plain_math),
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_pools_over_space),
        cmocka_unit_test(test_activations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
