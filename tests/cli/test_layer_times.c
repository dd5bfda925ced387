/* Times of layers from steps told by hand: what is counted where, and medians. The machine's peak:
 * figures that any machine has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/support/random/small_nets.h"
#include "tiler/modes/modes.h"
#include "tools/study/layer_times.h"
#include "tools/study/machine_speed.h"

/* small_net_residual: input, a, b, sum, c, pool. */
enum { INPUT, A, B, SUM, C, POOL, SIZE = 8, RUNS = 4 };

static const struct rfx_rect whole = {0, SIZE, 0, SIZE}, half = {0, SIZE / 2, 0, SIZE};

static struct rfx_plan *make_plan(struct small_plan_case *c) {
    struct rfx_plan *plan = NULL;
    c->request.asked = rfx_ask_whole();
    assert_int_equal(rfx_plan_create(c->graph, &c->request, &plan, NULL), RFX_OK);
    return plan;
}

static void tell(struct rfx_layer_times *times, enum rfx_step_kind kind, int node,
                 struct rfx_rect rect, double seconds) {
    const struct rfx_step step = {.kind = kind, .node = node, .rect = rect};
    times->observer.step(times->observer.user, &step, seconds);
}

static void test_rows(void **state) {
    static const double of_a[RUNS] = {4.0, 1.0, 2.0, 8.0}; /* median 3 */
    struct small_plan_case c = small_plan_case_begin(SIZE, SIZE);
    struct rfx_plan *plan = make_plan(&c);
    struct rfx_layer_times *times = NULL;
    (void)state;
    assert_int_equal(rfx_layer_times_create(c.mem, plan, RUNS, &times, NULL), RFX_OK);
    for (int run = 0; run < RUNS; ++run) {
        tell(times, RFX_STEP_LOAD, A, whole, 0.5);
        tell(times, RFX_STEP_RUN, INPUT, whole, 0.25);
        tell(times, RFX_STEP_RUN, B, whole, 1.0); /* rows are in the plan's order all the same */
        tell(times, RFX_STEP_RUN, A, half, of_a[run] - 0.5);
        tell(times, RFX_STEP_RUN, A, whole, 0.5);
        tell(times, RFX_STEP_KEEP, A, half, 0.125);
        tell(times, RFX_STEP_EMIT, B, half, 0.0625);
        tell(times, RFX_STEP_REDUCE_BEGIN, POOL, whole, 0.5);
        tell(times, RFX_STEP_REDUCE_ADD, POOL, (struct rfx_rect){0, 2, 0, 4}, 1.5);
        tell(times, RFX_STEP_REDUCE_FINISH, POOL, (struct rfx_rect){0, 4, 0, 4}, 2.0);
        rfx_layer_times_end_run(times, of_a[run] + 10.0);
    }
    rfx_layer_times_finish(times);
    assert_int_equal(times->n_rows, 3);
    const struct rfx_layer_row *a = &times->rows[0], *b = &times->rows[1], *pool = &times->rows[2];
    assert_int_equal(a->node, A);
    assert_int_equal(b->node, B);
    assert_int_equal(pool->node, POOL);
    assert_int_equal(a->steps, 2);
    assert_int_equal(b->steps, 1);
    assert_int_equal(pool->steps, 3);
    assert_true(a->seconds == 3.0 && b->seconds == 1.0 && pool->seconds == 4.0);
    /* 3x3 from 2 to 4 channels, 8 columns, 4 and 8 rows: halos count as often as they are made */
    assert_int_equal(a->macs, 9 * 2 * 4 * 8 * (4 + 8));
    assert_int_equal(b->macs, 9 * 4 * 4 * 8 * 8);
    assert_int_equal(pool->macs, 0);
    assert_int_equal(pool->bytes, 4 * (2 * 4 * 3 + 3)); /* of c, 3 channels; the result */
    assert_true(times->rest[RFX_REST_READ] == 0.25 && times->rest[RFX_REST_LOAD] == 0.5);
    assert_true(times->rest[RFX_REST_KEEP] == 0.125 && times->rest[RFX_REST_EMIT] == 0.0625);
    assert_true(times->rest[RFX_REST_BETWEEN] == 10.0 - 5.9375);
    assert_true(times->run_seconds == 13.0);
    struct rfx_layer_row total = rfx_layer_times_total(times);
    assert_int_equal(total.steps, 6);
    assert_int_equal(total.macs, a->macs + b->macs);
    assert_int_equal(total.int_macs, 0);
    assert_int_equal(total.bytes, a->bytes + b->bytes + pool->bytes);
    assert_true(total.seconds == 8.0);
    rfx_layer_times_free(times);
    rfx_plan_free(plan);
    small_plan_case_end(&c);
}

static void test_classes(void **state) {
    static const struct {
        int64_t kh, kw, ic, groups;
        enum rfx_layer_class want;
    } cases[] = {
        {1, 1, 8, 1, RFX_LAYER_POINTWISE}, {1, 3, 8, 1, RFX_LAYER_DENSE},
        {3, 3, 8, 8, RFX_LAYER_DEPTHWISE}, {1, 1, 8, 8, RFX_LAYER_DEPTHWISE},
        {3, 3, 8, 2, RFX_LAYER_DENSE},     {3, 3, 1, 1, RFX_LAYER_DENSE},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        struct rfx_node node = {.op = RFX_OP_CONV};
        node.attr.conv.kh = cases[i].kh;
        node.attr.conv.kw = cases[i].kw;
        node.attr.conv.ic = cases[i].ic;
        node.attr.conv.groups = cases[i].groups;
        assert_int_equal(rfx_layer_class_of(&node), cases[i].want);
    }
    const struct rfx_node pool = {.op = RFX_OP_POOL_MAX};
    assert_int_equal(rfx_layer_class_of(&pool), RFX_LAYER_OTHER);
}

/* Each multiply-accumulate is two operations, and has the peak of its kind. */
static void test_peak_share(void **state) {
    const struct rfx_machine_peak peak = {.flops_per_second = 100, .int_ops_per_second = 400};
    const struct rfx_machine_peak no_ints = {.flops_per_second = 100};
    struct rfx_layer_row row = {.seconds = 8, .macs = 200};
    (void)state;
    assert_true(rfx_layer_peak_share(&row, &peak) == 0.5); /* 4 of 8 seconds */
    assert_true(rfx_layer_peak_share(&row, &no_ints) == 0.5);
    row.int_macs = 200;
    assert_true(rfx_layer_peak_share(&row, &peak) == 0.125); /* 1 of 8 */
    assert_true(rfx_layer_peak_share(&row, &no_ints) == 0);
    row.int_macs = 100;
    assert_true(rfx_layer_peak_share(&row, &peak) == 0.3125); /* 2 and 1/2 of 8 */
    row.seconds = 0;
    assert_true(rfx_layer_peak_share(&row, &peak) == 0);
}

static void test_no_memory(void **state) {
    struct small_plan_case c = small_plan_case_begin(SIZE, SIZE);
    struct rfx_plan *plan = make_plan(&c);
    struct rfx_layer_times *times = NULL;
    struct rfx_error err = {{0}};
    double rate;
    (void)state;
    for (size_t limit = 1; times == NULL; limit += 64) {
        struct rfx_memory *mem = rfx_memory_create(limit);
        enum rfx_status status = rfx_layer_times_create(mem, plan, RUNS, &times, &err);
        if (status == RFX_OK) {
            assert_true(limit > 64);
            rfx_layer_times_free(times);
        } else {
            assert_int_equal(status, RFX_STATUS_OUT_OF_MEMORY);
            assert_null(times);
        }
        assert_int_equal(rfx_memory_current_bytes(mem), 0);
        rfx_memory_free(mem);
    }
    struct rfx_memory *mem = rfx_memory_create(1 << 20);
    assert_int_equal(rfx_machine_bytes_per_second(mem, 1, &rate, &err), RFX_STATUS_OUT_OF_MEMORY);
    rfx_memory_free(mem);
    rfx_plan_free(plan);
    small_plan_case_end(&c);
}

/* Slower than the slowest machine that this could be built for, faster than any. */
static void test_machine(void **state) {
    struct rfx_memory *mem = rfx_memory_create(RFX_MACHINE_PEAK_BYTES + (1 << 16));
    (void)state;
    for (int threads = 1; threads <= 3; ++threads) {
        double flops = rfx_machine_flops_per_second(threads), bytes = 0;
        double ints = rfx_machine_int_ops_per_second(threads);
        assert_int_equal(rfx_machine_bytes_per_second(mem, threads, &bytes, NULL), RFX_OK);
        if (!(flops > 1e7 && flops < threads * 2e12)) fail_msg("%g FLOP/s", flops);
        if (!(ints > 1e7 && ints < threads * 8e12)) fail_msg("%g operations/s", ints);
        if (!(bytes > 1e7 && bytes < 1e13)) fail_msg("%g B/s", bytes);
        assert_int_equal(rfx_memory_current_bytes(mem), 0);
    }
    rfx_memory_free(mem);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),       cmocka_unit_test(test_classes),
        cmocka_unit_test(test_peak_share), cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
