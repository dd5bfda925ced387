/* What is alive under each baseline, worked out by hand, and the three ways of loading a graph. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rfexec/run/model.h"
#include "tests/support/random/small_nets.h"
#include "tools/study/baseline.h"

struct fixture {
    struct rfx_memory *mem;
    struct rfx_graph *graph;
    struct rfx_liveness *liveness;
};

static struct fixture begin(enum rfx_baseline baseline) {
    struct fixture f = {.mem = rfx_memory_create(0)};
    struct rfx_error err = {{0}};
    f.graph = small_net_residual(f.mem, 12, 12);
    if (rfx_liveness_create(f.graph, baseline, &f.liveness, &err) != RFX_OK)
        fail_msg("%s", err.text);
    return f;
}

static void end(struct fixture *f) {
    rfx_liveness_free(f->liveness);
    rfx_graph_free(f->graph);
    assert_int_equal(rfx_memory_current_bytes(f->mem), 0);
    rfx_memory_free(f->mem);
}

/* Elements: input 288, a, b, sum 576 each, c 108, pool 3. */
static void live_by_hand(void **state) {
    static const size_t out_of_place[] = {288, 864, 1152, 1728, 684, 111};
    /* sum writes over b, its later operand; a dies with it */
    static const size_t in_place[] = {288, 864, 1152, 1152, 684, 111};
    (void)state;
    for (int baseline = 0; baseline < RFX_BASELINE_COUNT; baseline++) {
        struct fixture f = begin((enum rfx_baseline)baseline);
        bool coalesced = baseline == RFX_BASELINE_COALESCED;
        const size_t *expected = coalesced ? in_place : out_of_place;
        size_t live[6];
        int peak = -1;
        size_t largest = rfx_liveness_peak(f.liveness, 0, 6, f.liveness->whole_bytes, &peak, live);
        for (int i = 0; i < 6; i++) assert_int_equal(live[i], 4 * expected[i]);
        assert_int_equal(largest, 4 * (coalesced ? 1152 : 1728));
        assert_int_equal(peak, coalesced ? 2 : 3);
        assert_int_equal(f.liveness->weights_bytes, 4 * 9 * (2 * 4 + 4 * 4 + 4 * 3));
        end(&f);
    }
}

/* From `sum` on, nothing before it counts; sizes are the caller's. */
static void part_by_hand(void **state) {
    static const size_t bytes[] = {0, 0, 0, 10, 7, 2};
    (void)state;
    struct fixture f = begin(RFX_BASELINE_FUSED);
    size_t live[6] = {0};
    int peak = -1;
    assert_int_equal(rfx_liveness_peak(f.liveness, 3, 6, bytes, &peak, live), 17);
    assert_int_equal(peak, 4);
    assert_int_equal(live[3], 10);
    assert_int_equal(live[5], 9);
    end(&f);
}

/* MobileNetV2 has 52 convolutions with a batch norm each, 35 ReLU6 and 10 Adds: all are tensors in
 * an eager run; fused, the Adds alone stay beside the convolutions. */
static void tensors_of_a_network(void **state) {
    static const int expected[] = {52 + 52 + 35 + 10, 52 + 10, 52 + 10};
    (void)state;
    for (int baseline = 0; baseline < RFX_BASELINE_COUNT; baseline++) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_fuse_options fuse = rfx_baseline_fuse((enum rfx_baseline)baseline);
        struct rfx_load_options load = {.fuse = &fuse};
        struct rfx_graph *graph = NULL;
        struct rfx_error err = {{0}};
        assert_int_equal(rfx_model_load(mem, "mobilenet_v2", &load, &graph, &err), RFX_OK);
        int found = 0;
        for (int i = 0; i < graph->n_nodes; i++) {
            enum rfx_op op = graph->nodes[i].op;
            found += op == RFX_OP_CONV || op == RFX_OP_AFFINE || op == RFX_OP_ACTIVATION ||
                     op == RFX_OP_BINARY;
        }
        assert_int_equal(found, expected[baseline]);
        rfx_graph_free(graph);
        rfx_memory_free(mem);
    }
}

static void names(void **state) {
    (void)state;
    enum rfx_baseline baseline = RFX_BASELINE_FUSED;
    assert_true(rfx_baseline_parse("coalesced", &baseline));
    assert_int_equal(baseline, RFX_BASELINE_COALESCED);
    assert_true(rfx_baseline_parse("eager", &baseline));
    assert_int_equal(baseline, RFX_BASELINE_EAGER);
    assert_false(rfx_baseline_parse("Eager", &baseline));
    assert_string_equal(rfx_baseline_name(RFX_BASELINE_FUSED), "fused");
}

static void failing_allocations(void **state) {
    (void)state;
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = small_net_residual(mem, 12, 12);
    enum rfx_status status = RFX_STATUS_OUT_OF_MEMORY;
    for (int64_t k = 0; status != RFX_OK; k++) {
        struct rfx_liveness *liveness = NULL;
        struct rfx_error err;
        size_t before = rfx_memory_current_bytes(mem);
        rfx_memory_fail_after(mem, k);
        status = rfx_liveness_create(graph, RFX_BASELINE_EAGER, &liveness, &err);
        rfx_memory_fail_after(mem, -1);
        rfx_liveness_free(liveness);
        assert_int_equal(rfx_memory_current_bytes(mem), before);
        assert_true(status == RFX_OK || status == RFX_STATUS_OUT_OF_MEMORY);
        assert_true(k < 10);
    }
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(live_by_hand),         cmocka_unit_test(part_by_hand),
        cmocka_unit_test(tensors_of_a_network), cmocka_unit_test(names),
        cmocka_unit_test(failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
