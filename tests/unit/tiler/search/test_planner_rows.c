/* Chains around a network's waist, and rows a step for each of their stages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/random/small_nets.h"
#include "tiler/modes/modes.h"

enum { SIDE = 256, MAX_STAGES = 8 };
#define SLACK ((size_t)512 << 10) /* what plans by hand are placed better by */

static struct small_plan_case load(const char *model) {
    struct rfx_load_options options = {.h = SIDE, .w = SIDE};
    struct small_plan_case c = small_plan_case_load(model, &options);
    c.request.no_groups = true;
    return c;
}

static size_t least_of(struct small_plan_case *u) {
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
static uint64_t cost_with(const struct small_plan_case *u, const struct rfx_plan *plan, int stage,
                          int64_t rows) {
    struct small_plan_case other = *u;
    struct rfx_stage_spec specs[MAX_STAGES];
    for (int s = 0; s < plan->n_stages; s++) {
        specs[s] = plan->stages[s].spec;
        if (stage < 0 || s == stage) specs[s].band_rows = rows;
    }
    other.request.stages = specs;
    other.request.n_stages = plan->n_stages;
    other.request.memory_bytes = 0;
    struct rfx_plan *p = small_plan_case_make(&other);
    uint64_t cost = p->peak_bytes + SLACK <= u->request.memory_bytes ? p->cost : UINT64_MAX;
    rfx_plan_free(p);
    return cost;
}

/* Weights dominate so small a U-Net: in stages they need not be there at once, and its skips of
 * full size are made again where they do not fit. */
static void least_memory_is_a_chain(void **state) {
    (void)state;
    struct small_plan_case u = load("unet");
    u.request.memory_bytes = least_of(&u);
    struct rfx_plan *plan = small_plan_case_make(&u);
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
    small_plan_case_end(&u);
}

/* No other number, for a stage or for all, takes less time and fits; where there is room they
 * differ. */
static void rows_by_stage(void **state) {
    static const int64_t rows[] = {2, 4, 8, 16, 32, 64, 128, 256};
    (void)state;
    struct small_plan_case u = load("unet");
    size_t least = least_of(&u);
    int chains = 0, differ = 0;
    for (int k = 0; k < 12; k++) {
        u.request.memory_bytes = least + (size_t)k * least / 100;
        struct rfx_plan *plan = small_plan_case_make(&u);
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
    small_plan_case_end(&u);
}

/* In some budgets there is a stream for each norm. */
static void rows_that_were_asked_for_stay(void **state) {
    (void)state;
    struct small_plan_case u = load("unet_instance");
    int streams = 0;
    u.request.asked = rfx_ask_bands(16, 1);
    size_t least = least_of(&u);
    for (int k = 0; k < 12; k++) {
        u.request.memory_bytes = least + (size_t)k * least / 12;
        struct rfx_plan *plan = small_plan_case_make(&u);
        for (int s = 0; s < plan->n_stages; s++) {
            int64_t rows = plan->stages[s].spec.band_rows;
            assert_true(rows == 16 || rows == 0);
            streams += s > 0 && rows == 16;
        }
        rfx_plan_free(plan);
    }
    assert_true(streams > 10);
    small_plan_case_end(&u);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(least_memory_is_a_chain),
        cmocka_unit_test(rows_by_stage),
        cmocka_unit_test(rows_that_were_asked_for_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
