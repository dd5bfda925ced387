/* The four cases, the guidelines and the barrier, on made-up curves and on networks whose answer
 * is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rfexec/run/model.h"
#include "tests/support/random/small_nets.h"
#include "tiler/plan/splits.h"
#include "tools/study/advise.h"

/* Peaks over the points as in figure 8d: at 1, unchanged, up, unchanged, up, down, down. */
static void cases_by_hand(void **state) {
    static const size_t peaks[] = {100, 60, 60, 40, 55, 100, 120, 120};
    static const enum rfx_case expected[] = {RFX_CASE_NONE,  RFX_CASE_RISES, RFX_CASE_SAME,
                                             RFX_CASE_RISES, RFX_CASE_FALLS, RFX_CASE_NONE,
                                             RFX_CASE_FALLS, RFX_CASE_SAME};
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = NULL;
    struct rfx_error err = {{0}};
    struct rfx_load_options load = {.h = 64, .w = 64};
    assert_int_equal(rfx_model_load(mem, "vgg16", &load, &graph, &err), RFX_OK);
    struct rfx_curve_point points[8] = {{0}};
    for (int i = 0; i < 8; i++) {
        points[i].split = i + 1;
        points[i].peak_bytes = peaks[i];
    }
    struct rfx_curve curve = {.mem = mem, .graph = graph, .n_points = 8, .points = points};
    curve.untiled.peak_bytes = 100;
    struct rfx_advice *advice = NULL;
    assert_int_equal(rfx_advice_create(&curve, &advice, &err), RFX_OK);
    for (int i = 0; i < 8; i++) assert_int_equal(advice->cases[i], expected[i]);
    rfx_advice_free(advice);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

struct judged {
    const char *model;
    int64_t size;
    bool late_peak, weights_dominate, long_blocks;
    int block_convs;
};

/* MobileNetV2 and ResNets: blocks of at most three convolutions. At 224 the 3.5 million parameters
 * outweigh 5.7 MiB of activations; at 1024 they do not. VGG: a point after every layer. ResNet-18's
 * parameters are 44.6 MiB, its peak activations 80 MiB at 1024. */
static const struct judged judged[] = {
    {"mobilenet_v2", 1024, false, false, false, 3}, {"mobilenet_v2", 224, false, true, false, 3},
    {"resnet50", 1024, false, false, false, 3},     {"resnet18", 1024, false, false, false, 2},
    {"vgg16", 224, false, true, false, 1},
};

static void guidelines(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof judged / sizeof judged[0]; i++) {
        const struct judged *j = &judged[i];
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_fuse_options fuse = rfx_baseline_fuse(RFX_BASELINE_FUSED);
        struct rfx_load_options load = {.h = j->size, .w = j->size, .fuse = &fuse};
        struct rfx_curve_request request = {RFX_BASELINE_FUSED, 4, 4, false};
        struct rfx_graph *graph = NULL;
        struct rfx_curve *curve = NULL;
        struct rfx_advice *advice = NULL;
        struct rfx_error err = {{0}};
        assert_int_equal(rfx_model_load(mem, j->model, &load, &graph, &err), RFX_OK);
        assert_int_equal(rfx_curve_create(graph, &request, &curve, &err), RFX_OK);
        assert_int_equal(rfx_advice_create(curve, &advice, &err), RFX_OK);
        if (advice->late_peak != j->late_peak || advice->weights_dominate != j->weights_dominate ||
            advice->long_blocks != j->long_blocks || advice->block_convs != j->block_convs)
            fail_msg("%s at %d: late %d, weights %d, long %d with %d", j->model, (int)j->size,
                     advice->late_peak, advice->weights_dominate, advice->long_blocks,
                     advice->block_convs);
        assert_int_equal(advice->barrier, -1); /* only a pool before the classifier */
        rfx_advice_free(advice);
        rfx_curve_free(curve);
        rfx_graph_free(graph);
        assert_int_equal(rfx_memory_current_bytes(mem), 0);
        rfx_memory_free(mem);
    }
}

static int add(struct rfx_graph *graph, struct rfx_node node, const int *in, int n_in) {
    struct rfx_error err = {{0}};
    int index = -1;
    node.in = in;
    node.n_in = n_in;
    if (rfx_graph_add(graph, &node, &index, &err) != RFX_OK) fail_msg("%s", err.text);
    return index;
}

static int add_conv(struct rfx_graph *graph, const char *name, int in) {
    struct rfx_error err = {{0}};
    struct rfx_weight weight = {.source = RFX_WEIGHT_GENERATED,
                                .lo = 0.1f,
                                .hi = 1.0f,
                                .shape = {4, {2, 2, 1, 1}},
                                .elems = 4};
    int index = -1;
    assert_int_equal(rfx_graph_add_weight(graph, &weight, &index, &err), RFX_OK);
    struct rfx_node node = {.op = RFX_OP_CONV, .name = name};
    node.attr.conv = rfx_conv_pointwise(2);
    node.attr.conv.weight = index;
    return add(graph, node, &in, 1);
}

/* a -> pool -> gate = a * pool -> b, and beside them a -> c: two outputs. Only b lies behind the
 * pool, though c comes after it in the graph. */
static void barrier(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = NULL;
    struct rfx_error err = {{0}};
    assert_int_equal(rfx_graph_create(mem, "gate", &graph, &err), RFX_OK);
    struct rfx_node input = {.op = RFX_OP_INPUT, .name = "input"};
    input.attr.input.c = 2;
    input.attr.input.h = input.attr.input.w = 8;
    int a = add_conv(graph, "a", add(graph, input, NULL, 0));
    struct rfx_node pool = {.op = RFX_OP_GLOBAL_POOL, .name = "pool"};
    pool.attr.global_pool.kind = RFX_REDUCE_MEAN;
    int operands[2] = {a, add(graph, pool, &a, 1)};
    struct rfx_node gate = {.op = RFX_OP_BINARY, .name = "gate"};
    gate.attr.binary.kind = RFX_BINARY_MUL;
    int b = add_conv(graph, "b", add(graph, gate, operands, 2));
    int c = add_conv(graph, "c", a);
    assert_int_equal(rfx_graph_add_output(graph, b, "b", &err), RFX_OK);
    assert_int_equal(rfx_graph_add_output(graph, c, "c", &err), RFX_OK);
    struct rfx_fuse_options fuse = rfx_baseline_fuse(RFX_BASELINE_FUSED);
    assert_int_equal(rfx_graph_finish(graph, &fuse, &err), RFX_OK);
    struct rfx_curve_request request = {RFX_BASELINE_FUSED, 2, 2, false};
    struct rfx_curve *curve = NULL;
    struct rfx_advice *advice = NULL;
    assert_int_equal(rfx_curve_create(graph, &request, &curve, &err), RFX_OK);
    assert_int_equal(rfx_advice_create(curve, &advice, &err), RFX_OK);
    assert_string_equal(rfx_split_label(graph, advice->barrier), "pool");
    assert_int_equal(advice->barrier_convs, 1);
    rfx_advice_free(advice);
    rfx_curve_free(curve);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

/* With a budget the front gives its cheapest point that fits; untiled where that fits. */
static void within(void **state) {
    (void)state;
    struct rfx_curve_point front[3] = {{.macs = 10, .peak_bytes = 90},
                                       {.macs = 12, .peak_bytes = 50},
                                       {.macs = 20, .peak_bytes = 30}};
    struct rfx_curve curve = {.n_pareto = 3, .pareto = front};
    assert_ptr_equal(rfx_advice_within(&curve, 1000), &front[0]);
    assert_ptr_equal(rfx_advice_within(&curve, 89), &front[1]);
    assert_ptr_equal(rfx_advice_within(&curve, 50), &front[1]);
    assert_ptr_equal(rfx_advice_within(&curve, 49), &front[2]);
    assert_null(rfx_advice_within(&curve, 29));
}

static void failing_allocations(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = small_net_residual(mem, 12, 12);
    struct rfx_curve_request request = {RFX_BASELINE_FUSED, 2, 2, false};
    struct rfx_curve *curve = NULL;
    struct rfx_error err = {{0}};
    assert_int_equal(rfx_curve_create(graph, &request, &curve, &err), RFX_OK);
    enum rfx_status status = RFX_STATUS_OUT_OF_MEMORY;
    for (int64_t k = 0; status != RFX_OK; k++) {
        struct rfx_advice *advice = NULL;
        size_t before = rfx_memory_current_bytes(mem);
        rfx_memory_fail_after(mem, k);
        status = rfx_advice_create(curve, &advice, &err);
        rfx_memory_fail_after(mem, -1);
        rfx_advice_free(advice);
        assert_int_equal(rfx_memory_current_bytes(mem), before);
        assert_true(k < 10);
    }
    rfx_curve_free(curve);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cases_by_hand),
        cmocka_unit_test(guidelines),
        cmocka_unit_test(barrier),
        cmocka_unit_test(within),
        cmocka_unit_test(failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
