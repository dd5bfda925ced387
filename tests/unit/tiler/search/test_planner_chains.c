/* Chains of a stage per barrier that store what a budget has room for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/random/small_nets.h"
#include "tests/support/test_net.h"

static struct small_plan_case load_net(const char *name, int64_t h, int64_t w) {
    struct rfx_load_options options = {.h = h, .w = w};
    struct small_plan_case c = small_plan_case_load(name, &options);
    c.request.no_groups = true;
    return c;
}

/* 36 blocks with a pool over the whole map, at four sizes of maps: so many stages that few chains
 * are walked through. */
static struct small_plan_case load(int64_t h, int64_t w) {
    return load_net("nafnet", h, w);
}

static double times_in(struct small_plan_case *u, size_t budget) {
    u->request.memory_bytes = budget;
    struct rfx_plan *plan = small_plan_case_make(u);
    double times = (double)plan->macs / (double)plan->macs_untiled;
    assert_true(plan->peak_bytes <= budget);
    rfx_plan_free(plan);
    return times;
}

/* From the image again for most of the blocks it is ten times the untiled run's MACs. */
static void more_memory_computes_less_again(void **state) {
    (void)state;
    struct small_plan_case u = load(1024, 1280);
    u.request.memory_bytes = 0;
    struct rfx_plan *untiled = small_plan_case_make(&u);
    size_t all = untiled->peak_bytes;
    rfx_plan_free(untiled);
    double few = times_in(&u, all * 3 / 10), half = times_in(&u, all / 2),
           most = times_in(&u, all * 8 / 10);
    print_message("%.2f, %.2f and %.2f times the MACs\n", few, half, most);
    assert_true(few < 1.3);
    assert_true(half < 1.05 && half <= few);
    assert_true(most < 1.01 && most <= half);
    small_plan_case_end(&u);
}

static size_t least_named(struct small_plan_case *u, size_t budget) {
    struct rfx_plan *plan = NULL, *smallest = NULL;
    struct rfx_error err;
    u->request.memory_bytes = budget;
    assert_int_equal(rfx_plan_create_or_smallest(u->graph, &u->request, &plan, &smallest, &err),
                     RFX_STATUS_BUDGET_IMPOSSIBLE);
    size_t least = smallest->peak_bytes;
    rfx_plan_free(smallest);
    return least;
}

/* What is named as the least does not hang on the budget for which it is named. */
static void least_memory_is_enough(void **state) {
    (void)state;
    struct small_plan_case u = load(1024, 1280);
    size_t least = least_named(&u, 1);
    assert_int_equal(least_named(&u, least / 2), least);
    (void)times_in(&u, least);
    small_plan_case_end(&u);
}

/* Neither is anything found in a little less, where a budget has its own choice of maps, with nodes
 * in groups for caches of a usual size or without. */
static void less_than_the_least_is_not_enough(void **state) {
    (void)state;
    static const struct {
        int64_t side;
        struct rfx_caches caches;
    } cases[] = {{512, {0, 0}}, {768, {0, 0}}, {768, {1 << 20, 32 << 20}}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct small_plan_case u = load(cases[i].side, cases[i].side);
        u.request.no_groups = cases[i].caches.second_bytes == 0;
        u.request.caches = cases[i].caches;
        size_t least = least_named(&u, 1);
        print_message("%zu bytes for %dx%d\n", least, (int)cases[i].side, (int)cases[i].side);
        for (int part = 64; part >= 16; part /= 2)
            assert_int_equal(least_named(&u, least - least / (size_t)part), least);
        small_plan_case_end(&u);
    }
}

/* In a U-Net the first half's skips have room at the largest maps' stages, the second half's maps,
 * beside which those are made again, have not: a map is stored where there is room for it. */
static void room_is_found_level_by_level(void **state) {
    (void)state;
    static const struct {
        int64_t h, w;
        double times, most; /* the least memory, and of the untiled MACs then */
    } cases[] = {{512, 640, 2.2, 1.2}, {1024, 1280, 2.15, 1.7}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct small_plan_case u = load_net("unet_instance", cases[i].h, cases[i].w);
        size_t least = least_named(&u, 1);
        double times = times_in(&u, (size_t)(cases[i].times * (double)least));
        print_message("%.3f times the MACs in %.2f times %zu bytes\n", times, cases[i].times,
                      least);
        assert_true(times < cases[i].most);
        small_plan_case_end(&u);
    }
}

/* A map times its own mean, which makes two stages between which a few bytes or none can be stored:
 * the search for the least memory ends. */
static void next_to_nothing_to_store(void **state) {
    (void)state;
    for (int layers = 0; layers < 2; layers++)
        for (int64_t side = 1; side <= 4; side++) {
            struct test_net net = test_net_begin(1, side, side);
            struct rfx_node layer = {.op = RFX_OP_ACTIVATION, .act = {RFX_ACT_SIGMOID, 0, 0, -1}};
            struct rfx_node mean = {.op = RFX_OP_GLOBAL_POOL, .act = {.slope = -1}};
            struct rfx_node product = {.op = RFX_OP_BINARY, .act = {.slope = -1}};
            product.attr.binary.kind = RFX_BINARY_MUL;
            int map = layers > 0 ? test_net_put(&net, layer, 0, -1) : 0;
            int last = test_net_put(&net, product, map, test_net_put(&net, mean, map, -1));
            assert_int_equal(rfx_graph_add_output(net.graph, last, "out", NULL), RFX_OK);
            assert_int_equal(rfx_graph_finish(net.graph, NULL, NULL), RFX_OK);
            struct small_plan_case c = {
                .mem = net.mem,
                .graph = net.graph,
                .request = {.threads = 1,
                            .source = {.h = side, .w = side, .c = 1, .random_access = true}}};
            assert_in_range(least_named(&c, 1), 1 << 20, 1 << 26);
            test_net_end(&net);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_memory_computes_less_again),
        cmocka_unit_test(least_memory_is_enough),
        cmocka_unit_test(less_than_the_least_is_not_enough),
        cmocka_unit_test(room_is_found_level_by_level),
        cmocka_unit_test(next_to_nothing_to_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
