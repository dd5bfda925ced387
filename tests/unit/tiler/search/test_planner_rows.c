/* Chains around a network's waist, and rows a step for each of their stages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rfexec/session/model.h"
#include "tests/support/test_util.h"
#include "tiler/modes/modes.h"
#include "tiler/plan/plan.h"
#include "tiler/plan/plan_check.h"

enum { SIDE = 256, MAX_STAGES = 8 };
#define SLACK ((size_t)512 << 10) /* what plans by hand are placed better by */

struct unet {
    struct rfx_memory *mem;
    struct rfx_graph *graph;
    struct rfx_plan_request request;
};

static struct unet unet_begin(void) {
    struct unet u = {.mem = rfx_memory_create(0)};
    struct rfx_load_options load = {.h = SIDE, .w = SIDE};
    struct rfx_error err;
    assert_int_equal(rfx_model_load(u.mem, "unet", &load, &u.graph, &err), RFX_OK);
    u.request.source =
        (struct rfx_source_traits){.h = SIDE, .w = SIDE, .c = 3, .random_access = true};
    u.request.threads = 1;
    u.request.no_groups = true;
    return u;
}

static void unet_end(struct unet *u) {
    rfx_graph_free(u->graph);
    rfx_memory_free(u->mem);
}

static struct rfx_plan *plan_of(const struct unet *u) {
    struct rfx_plan *plan = NULL;
    struct rfx_error err = {{0}};
    char why[300];
    if (rfx_plan_create(u->graph, &u->request, &plan, &err) != RFX_OK) fail_msg("%s", err.text);
    if (!rfx_plan_check(plan, why, sizeof why)) fail_msg("%s", why);
    return plan;
}

static size_t least_of(struct unet *u) {
    struct rfx_plan *plan = NULL, *smallest = NULL;
    struct rfx_error err;
    u->request.memory_bytes = 1;
    assert_int_equal(rfx_plan_create_or_smallest(u->graph, &u->request, &plan, &smallest, &err),
                     RFX_STATUS_BUDGET_IMPOSSIBLE);
    size_t bytes = smallest->peak_bytes;
    rfx_plan_free(smallest);
    return bytes;
}

/* The plan's time with another number of rows for one stage, or for all (-1); UINT64_MAX where it
 * takes more than the budget. */
static uint64_t cost_with(const struct unet *u, const struct rfx_plan *plan, int stage,
                          int64_t rows) {
    struct unet other = *u;
    struct rfx_stage_spec specs[MAX_STAGES];
    for (int s = 0; s < plan->n_stages; s++) {
        specs[s] = plan->stages[s].spec;
        if (stage < 0 || s == stage) specs[s].band_rows = rows;
    }
    other.request.stages = specs;
    other.request.n_stages = plan->n_stages;
    other.request.memory_bytes = 0;
    struct rfx_plan *p = plan_of(&other);
    uint64_t cost = p->peak_bytes + SLACK <= u->request.memory_bytes ? p->cost : UINT64_MAX;
    rfx_plan_free(p);
    return cost;
}

/* Weights dominate so small a U-Net: in stages they need not be there at once, and its skips of
 * full size are made again where they do not fit. */
static void least_memory_is_a_chain(void **state) {
    (void)state;
    struct unet u = unet_begin();
    u.request.memory_bytes = least_of(&u);
    struct rfx_plan *plan = plan_of(&u);
    assert_int_equal(plan->n_stages, 3);
    assert_true(plan->peak_bytes <= u.request.memory_bytes);
    int images = 0;
    for (int s = 0; s < 3; s++) {
        assert_true(plan->stages[s].spec.mode == &rfx_mode_streamed);
        images += plan->stages[s].places[u.graph->input] != RFX_PLACE_NONE;
    }
    assert_int_equal(images, 2); /* all but the middle begins with it */
    assert_true(plan->macs > plan->macs_untiled && plan->macs < 2 * plan->macs_untiled);
    size_t stored = 0;
    for (int i = 0; i < u.graph->n_nodes; i++) stored += plan->stored[i].bytes;
    assert_true(stored < (size_t)SIDE * SIDE * 64 * sizeof(float)); /* one skip's */
    rfx_plan_free(plan);
    unet_end(&u);
}

/* No other number, for a stage or for all, takes less time and fits; where there is room they
 * differ. */
static void rows_by_stage(void **state) {
    static const int64_t rows[] = {2, 4, 8, 16, 32, 64, 128, 256};
    (void)state;
    struct unet u = unet_begin();
    size_t least = least_of(&u);
    int chains = 0, differ = 0;
    for (int k = 0; k < 12; k++) {
        u.request.memory_bytes = least + (size_t)k * least / 100;
        struct rfx_plan *plan = plan_of(&u);
        assert_true(plan->peak_bytes <= u.request.memory_bytes);
        bool chain = plan->n_stages == 3 && plan->stages[0].spec.band_rows > 0;
        for (size_t r = 0; chain && r < sizeof rows / sizeof rows[0]; r++)
            for (int s = -1; s < plan->n_stages; s++)
                assert_true(plan->cost <= cost_with(&u, plan, s, rows[r]));
        chains += chain;
        for (int s = 1; chain && s < 3; s++)
            differ += plan->stages[s].spec.band_rows != plan->stages[0].spec.band_rows;
        rfx_plan_free(plan);
    }
    assert_true(chains > 3);
    assert_true(differ > 3);
    unet_end(&u);
}

static void rows_that_were_asked_for_stay(void **state) {
    (void)state;
    struct unet u = unet_begin();
    u.request.memory_bytes = (size_t)1 << 30;
    u.request.asked = rfx_ask_bands(16, 1);
    struct rfx_plan *plan = plan_of(&u);
    for (int s = 0; s < plan->n_stages; s++)
        assert_true(plan->stages[s].spec.band_rows == 16 || plan->stages[s].spec.band_rows == 0);
    rfx_plan_free(plan);
    unet_end(&u);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(least_memory_is_a_chain),
        cmocka_unit_test(rows_by_stage),
        cmocka_unit_test(rows_that_were_asked_for_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
