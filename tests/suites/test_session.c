/* The executor on random networks: planner and session against the untiled oracle, bit by bit.
 *
 * RFX_CASES (default 1200) random graphs x sizes x plans (grids and bands by hand, budgets,
 * untiled) x 1, 2, 3 threads. Every plan also passes the independent checker, and what was executed
 * is held against what was planned: MACs, arena, no allocation in a second run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rfexec/rfexec.h"
#include "tests/support/plan_checker.h"
#include "tests/support/random_graph.h"
#include "tests/support/run_whole.h"
#include "tests/support/test_util.h"

struct one_case {
    uint64_t seed;
    struct rfx_graph *graph;
    const float *image; /* c x h x w */
    float **wanted;     /* per node, as run_whole lays it out */
    struct rfx_plan_request request;
};

static void fail_case(const struct one_case *c, const struct rfx_plan *plan, const char *why) {
    char text[200] = "no plan";
    if (plan != NULL) rfx_plan_describe(plan, text, sizeof text);
    fprintf(stderr, "seed %llu, %s, %d threads: %s\n", (unsigned long long)c->seed, text,
            c->request.threads, why);
    random_graph_print(c->graph, stderr);
    fail();
}

/* Compares output k, which the session gives in ONNX order, with the oracle's tensor. */
static void compare_output(const struct one_case *c, const struct rfx_plan *plan,
                           const struct rfx_session *session, int k) {
    const struct rfx_tensor *t = rfx_session_output_tensor(session, k);
    const float *wanted = c->wanted[c->graph->outputs[k].node];
    float *got = test_floats(t->elems);
    float *ordered = test_floats(t->elems);
    struct test_diff diff;
    rfx_session_output_read(session, k, 0, t->elems, got);
    if (t->layout == RFX_LAYOUT_NHWC)
        test_nhwc_to_nchw(wanted, ordered, t->c, t->h, t->w);
    else
        memcpy(ordered, wanted, (size_t)t->elems * sizeof *ordered);
    test_quiet_nans(ordered, t->elems);
    wanted = ordered;
    if (!test_same_bits(got, wanted, t->elems, &diff)) {
        test_print_diff(rfx_session_output_name(session, k), got, wanted, t->elems, &diff);
        fail_case(c, plan, "output differs from the untiled oracle");
    }
    free(got);
    free(ordered);
}

static void run_plan(const struct one_case *c, const struct rfx_plan *plan) {
    struct rfx_memory *mem = c->graph->mem;
    struct rfx_session *session = NULL;
    struct rfx_image *image = NULL;
    struct rfx_error err = {{0}};
    struct rfx_run_report report;
    char why[300];
    const struct rfx_source_traits *s = &c->request.source;
    if (!rfx_plan_check(plan, why, sizeof why)) fail_case(c, plan, why);
    if (rfx_image_from_array(mem, c->image, s->c, s->h, s->w, &image, &err) != RFX_OK ||
        rfx_session_create(c->graph, plan, &session, &err) != RFX_OK)
        fail_case(c, plan, err.text);
    uint64_t allocations = 0;
    for (int run = 0; run < 2; run++) {
        if (run == 1) allocations = rfx_memory_allocation_count(mem);
        if (rfx_session_run(session, image, NULL, NULL, &report, &err) != RFX_OK)
            fail_case(c, plan, err.text);
    }
    assert_int_equal(rfx_memory_allocation_count(mem), allocations);
    if (report.macs != plan->macs) fail_case(c, plan, "executed MACs are not the planned ones");
    if (report.arena_high_water_bytes != plan->bytes.arena)
        fail_case(c, plan, "the arena's high water is not the planned size");
    for (int k = 0; k < c->graph->n_outputs; k++) compare_output(c, plan, session, k);
    rfx_session_free(session);
    rfx_image_free(image);
}

/* Untiled, a random grid and random bands at a random split, and a budget between smallest and
 * untiled. */
static void run_all_plans(struct one_case *c, struct test_rng *rng) {
    struct rfx_error err = {{0}};
    struct rfx_plan *plan = NULL;
    if (rfx_plan_create(c->graph, &c->request, &plan, &err) != RFX_OK) fail_case(c, NULL, err.text);
    run_plan(c, plan);
    size_t untiled = plan->peak_bytes;
    rfx_plan_free(plan);
    int *splits = malloc((size_t)c->graph->n_nodes * sizeof *splits);
    int n = rfx_splits_list(c->graph, splits);
    if (n > 0) {
        struct rfx_plan_request plain = c->request;
        int split = splits[test_rng_int(rng, 0, n - 1)];
        c->request.split = c->graph->nodes[split].name;
        c->request.tiles_y = test_rng_int(rng, 1, 9);
        c->request.tiles_x = test_rng_int(rng, 1, 9);
        if (rfx_plan_create(c->graph, &c->request, &plan, &err) != RFX_OK)
            fail_case(c, NULL, err.text);
        run_plan(c, plan);
        rfx_plan_free(plan);
        c->request = plain;
        c->request.split = c->graph->nodes[split].name;
        c->request.band_rows = test_rng_int(rng, 1, 12);
        if (rfx_plan_create(c->graph, &c->request, &plan, &err) != RFX_OK)
            fail_case(c, NULL, err.text);
        run_plan(c, plan);
        rfx_plan_free(plan);
        c->request = plain;
        c->request.memory_bytes = untiled - (size_t)test_rng_int(rng, 1, 64) * 1024;
        struct rfx_plan *smallest = NULL;
        plan = NULL;
        (void)!rfx_plan_create_or_smallest(c->graph, &c->request, &plan, &smallest, &err);
        run_plan(c, plan != NULL ? plan : smallest);
        rfx_plan_free(plan);
        rfx_plan_free(smallest);
    }
    free(splits);
}

static void run_case(uint64_t seed) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct test_rng rng = test_rng_make(seed);
    struct random_graph_options options = random_graph_defaults();
    options.spatial_only = test_rng_chance(&rng, 50);
    options.rough = true;
    struct one_case c = {.seed = seed, .graph = random_graph_make(mem, seed, &options)};
    const struct rfx_tensor *input = &c.graph->nodes[c.graph->input].out;
    float *nchw = test_floats(input->elems);
    float *nhwc = test_floats(input->elems);
    test_rng_fill(&rng, nchw, input->elems, -2.0f, 2.0f);
    if (test_rng_chance(&rng, 25)) test_rng_specials(&rng, nchw, input->elems);
    test_nchw_to_nhwc(nchw, nhwc, input->c, input->h, input->w);
    c.image = nchw;
    c.wanted = calloc((size_t)c.graph->n_nodes, sizeof *c.wanted);
    assert_non_null(c.wanted);
    struct test_prepared prepared;
    assert_true(test_prepare(c.graph, 1, &prepared));
    test_run_whole(&prepared, nhwc, c.wanted);
    test_prepared_free(&prepared);
    c.request.source = (struct rfx_source_traits){
        .h = input->h, .w = input->w, .c = input->c, .random_access = true};
    c.request.threads = (int)test_rng_int(&rng, 1, 3);
    run_all_plans(&c, &rng);
    test_run_whole_free(c.graph, c.wanted);
    free(c.wanted);
    free(nchw);
    free(nhwc);
    rfx_graph_free(c.graph);
    assert_int_equal(rfx_memory_current_bytes(mem), 0);
    rfx_memory_free(mem);
}

static void random_networks(void **state) {
    (void)state;
    int64_t cases = test_env_int("RFX_CASES", 1200);
    uint64_t seed = (uint64_t)test_env_int("RFX_SEED", 1);
    fprintf(stderr, "test_session: %lld cases from seed %llu (RFX_CASES, RFX_SEED)\n",
            (long long)cases, (unsigned long long)seed);
    for (int64_t i = 0; i < cases; i++) run_case(seed + (uint64_t)i);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_networks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
