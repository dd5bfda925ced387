/* Plans: the independent checker, budgets, refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "rfexec/run/model.h"
#include "tests/support/random/small_nets.h"
#include "tiler/modes/modes.h"
#include "tiler/plan/plan.h"
#include "tiler/plan/plan_check.h"

/* Untiled by hand: MACs a: 144*4*2*9, b: 144*4*4*9, c: 36*3*4*9; the largest sum of live maps is
 * while sum runs: a + b + sum = 3 maps of 12*12*4 floats, or a + b when sum takes a's place. */
static void untiled_by_hand(void **state) {
    (void)state;
    struct small_plan_case f = small_plan_case_begin(12, 12);
    struct rfx_plan *plan = small_plan_case_make(&f);
    assert_int_equal(plan->split, -1);
    assert_int_equal(plan->macs, 144 * 72 + 144 * 144 + 36 * 108);
    assert_int_equal(plan->macs_untiled, plan->macs);
    size_t map = 12 * 12 * 4 * 4 + RFX_RED_ZONE_BYTES;
    assert_int_equal(plan->lower_bound_bytes, 2 * map);
    rfx_plan_free(plan);
    f.request.no_inplace = true;
    plan = small_plan_case_make(&f);
    assert_int_equal(plan->lower_bound_bytes, 3 * map);
    rfx_plan_free(plan);
    small_plan_case_end(&f);
}

/* Split at "sum", 2x1 tiles of 6 rows: sum needs 6 rows of a and of b; b needs rows -1..6 of a, 7
 * of them inside the map, so a is computed at 2 * 7 rows and b at 2 * 6. */
static void two_tiles_by_hand(void **state) {
    (void)state;
    struct small_plan_case f = small_plan_case_begin(12, 12);
    f.request.split = "sum";
    f.request.asked = rfx_ask_tiles(2, 1);
    struct rfx_plan *plan = small_plan_case_make(&f);
    assert_int_equal(plan->macs, 2 * 7 * 12 * 72 + 144 * 144 + 36 * 108);
    assert_int_equal(plan->stages[0].spec.tiles_y, 2);
    rfx_plan_free(plan);
    small_plan_case_end(&f);
}

static void every_grid_is_sound(void **state) {
    (void)state;
    static const char *const splits[] = {"a", "sum", "c"};
    for (int64_t h = 1; h <= 23; h += 11)
        for (int s = 0; s < 3; s++)
            for (int64_t r = 1; r <= 9; r += 2)
                for (int64_t c = 1; c <= 30; c = c * 2 + 1) {
                    struct small_plan_case f = small_plan_case_begin(h, 17);
                    f.request.split = splits[s];
                    f.request.asked = rfx_ask_tiles(r, c);
                    rfx_plan_free(small_plan_case_make(&f));
                    small_plan_case_end(&f);
                }
}

/* Of plans that were compared, smaller budgets take no less time; those whose rows were chosen
 * afterwards may. Every plan keeps to its budget, and below the smallest one the refusal names a
 * figure that then works. */
static void budgets(void **state) {
    (void)state;
    struct small_plan_case f = small_plan_case_begin(200, 160);
    struct rfx_plan *plan = small_plan_case_make(&f);
    size_t untiled = plan->peak_bytes;
    rfx_plan_free(plan);
    uint64_t cost = 0;
    int compared = 0;
    struct rfx_error err;
    struct rfx_plan *smallest = NULL;
    for (size_t budget = untiled;; budget -= 64 << 10) {
        f.request.memory_bytes = budget;
        plan = NULL;
        enum rfx_status status =
            rfx_plan_create_or_smallest(f.graph, &f.request, &plan, &smallest, &err);
        if (status == RFX_STATUS_BUDGET_IMPOSSIBLE) break;
        assert_int_equal(status, RFX_OK);
        assert_true(plan->peak_bytes <= budget);
        if (!small_plan_has_chosen_rows(plan)) {
            assert_true(plan->cost >= cost);
            cost = plan->cost;
            compared++;
        }
        rfx_plan_free(plan);
    }
    assert_true(compared > 10);
    assert_null(plan);
    assert_non_null(strstr(err.text, "needs at least"));
    f.request.memory_bytes = smallest->peak_bytes;
    plan = small_plan_case_make(&f);
    assert_int_equal(plan->peak_bytes, smallest->peak_bytes);
    rfx_plan_free(plan);
    f.request.memory_bytes = smallest->peak_bytes - 1;
    assert_int_equal(rfx_plan_create(f.graph, &f.request, &plan, &err),
                     RFX_STATUS_BUDGET_IMPOSSIBLE);
    rfx_plan_free(smallest);
    small_plan_case_end(&f);
}

/* 18 norms one after the other, in memory that holds none of the large maps: these are made again,
 * or, in less, wait in files at little more than the untiled run's MACs. */
static void norms_in_files(void **state) {
    (void)state;
    enum { H = 512, W = 640, NORMS = 18 };
    struct small_plan_case f = {.mem = rfx_memory_create(0)};
    struct rfx_load_options load = {.h = H, .w = W};
    struct rfx_plan *plan = NULL;
    struct rfx_error err;
    assert_int_equal(rfx_model_load(f.mem, "unet_instance", &load, &f.graph, &err), RFX_OK);
    f.request.source = (struct rfx_source_traits){.h = H, .w = W, .c = 3, .random_access = true};
    f.request.threads = 1;
    f.request.no_groups = true;
    f.request.memory_bytes = (size_t)60 << 20;
    assert_int_equal(rfx_plan_create(f.graph, &f.request, &plan, &err), RFX_OK);
    assert_int_equal(plan->spill.written, 0); /* nobody allowed it */
    /* Maps that fit are stored, large ones made again: from the image alone it is 8.7 times. */
    assert_true(plan->macs > plan->macs_untiled && plan->macs < 2 * plan->macs_untiled);
    rfx_plan_free(plan);
    f.request.memory_bytes = 1;
    struct rfx_plan *smallest = NULL; /* the least that does without files */
    assert_int_equal(rfx_plan_create_or_smallest(f.graph, &f.request, &plan, &smallest, &err),
                     RFX_STATUS_BUDGET_IMPOSSIBLE);
    f.request.memory_bytes = smallest->peak_bytes;
    rfx_plan_free(smallest);
    plan = small_plan_case_make(&f);
    assert_true(plan->macs > 4 * plan->macs_untiled);
    uint64_t cost = plan->cost;
    rfx_plan_free(plan);
    f.request.may_spill = true;
    plan = small_plan_case_make(&f);
    assert_true(plan->macs < plan->macs_untiled + plan->macs_untiled / 10);
    assert_true(plan->cost < cost);
    assert_true(plan->peak_bytes <= f.request.memory_bytes);
    assert_true(plan->spill.written > 0 && plan->spill.read >= plan->spill.written);
    assert_true(plan->spill.most < plan->spill.written / 2); /* files end with their last reader */
    int streams = 0, images = 0;
    for (int s = 0; s < plan->n_stages; s++) {
        streams += plan->stages[s].spec.mode == &rfx_mode_streamed;
        images += plan->stages[s].places[f.graph->input] != RFX_PLACE_NONE;
    }
    assert_true(streams >= NORMS && images <= 3);
    rfx_plan_free(plan);
    f.request.memory_bytes = (size_t)1 << 30; /* room for all: no files */
    plan = small_plan_case_make(&f);
    assert_int_equal(plan->spill.written, 0);
    rfx_plan_free(plan);
    rfx_graph_free(f.graph);
    rfx_memory_free(f.mem);
}

static void refusals(void **state) {
    (void)state;
    struct small_plan_case f = small_plan_case_begin(12, 12);
    struct rfx_plan *plan = NULL;
    struct rfx_error err;
    f.request.threads = 0;
    assert_int_equal(rfx_plan_create(f.graph, &f.request, &plan, &err),
                     RFX_STATUS_INVALID_ARGUMENT);
    f.request.threads = 1;
    f.request.asked = rfx_ask_tiles(2, 0);
    assert_int_equal(rfx_plan_create(f.graph, &f.request, &plan, &err),
                     RFX_STATUS_INVALID_ARGUMENT);
    f.request.asked = rfx_ask_whole();
    f.request.asked.tiles_x = 2;
    assert_int_equal(rfx_plan_create(f.graph, &f.request, &plan, &err),
                     RFX_STATUS_INVALID_ARGUMENT);
    f.request.asked = rfx_ask_whole();
    f.request.split = "sum"; /* nothing is left to cut */
    assert_int_equal(rfx_plan_create(f.graph, &f.request, &plan, &err),
                     RFX_STATUS_INVALID_ARGUMENT);
    f.request.asked = rfx_ask_tiles(2, 2);
    f.request.split = "b";
    assert_int_equal(rfx_plan_create(f.graph, &f.request, &plan, &err),
                     RFX_STATUS_INVALID_ARGUMENT);
    f.request.split = NULL;
    f.request.source.c = 3;
    assert_int_equal(rfx_plan_create(f.graph, &f.request, &plan, &err),
                     RFX_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(err.text, "3 channels"));
    assert_null(plan);
    small_plan_case_end(&f);
}

/* Stages written by hand that no mode knows. */
static void stages_refused(void **state) {
    (void)state;
    int pool = 5;
    const struct rfx_stage_spec wrong[] = {
        {.mode = &rfx_mode_streamed, .tiles_y = 1, .tiles_x = 1, .n_targets = 1, .targets = &pool},
        {.mode = &rfx_mode_streamed,
         .tiles_y = 2,
         .tiles_x = 1,
         .band_rows = 4,
         .n_targets = 1,
         .targets = &pool},
        {.mode = &rfx_mode_tiled,
         .tiles_y = 1,
         .tiles_x = 1,
         .row_by_row = true,
         .n_targets = 1,
         .targets = &pool},
        {.mode = &rfx_mode_tiled, .tiles_y = 0, .tiles_x = 1, .n_targets = 1, .targets = &pool},
        {.mode = &rfx_mode_whole, .tiles_y = 1, .tiles_x = 2, .n_targets = 1, .targets = &pool},
        {.mode = &rfx_mode_whole,
         .tiles_y = 1,
         .tiles_x = 1,
         .band_rows = 3,
         .n_targets = 1,
         .targets = &pool},
        {.mode = &rfx_mode_whole, .tiles_y = 1, .tiles_x = 1, .n_targets = 0, .targets = &pool},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct small_plan_case f = small_plan_case_begin(12, 12);
        struct rfx_plan *plan = NULL;
        struct rfx_error err = {{0}};
        pool = rfx_graph_find(f.graph, "pool");
        f.request.stages = &wrong[i];
        f.request.n_stages = 1;
        enum rfx_status status = rfx_plan_create(f.graph, &f.request, &plan, &err);
        assert_int_equal(status, RFX_STATUS_INVALID_ARGUMENT);
        small_plan_case_end(&f);
    }
}

static void failing_allocations(void **state) {
    (void)state;
    struct small_plan_case f = small_plan_case_begin(40, 40);
    f.request.memory_bytes = 0;
    f.request.split = "sum";
    for (int64_t k = 0;; k++) {
        struct rfx_plan *plan = NULL;
        struct rfx_error err = {{0}};
        size_t before = rfx_memory_current_bytes(f.mem);
        rfx_memory_fail_after(f.mem, k);
        enum rfx_status status = rfx_plan_create(f.graph, &f.request, &plan, &err);
        rfx_memory_fail_after(f.mem, -1);
        rfx_plan_free(plan);
        assert_int_equal(rfx_memory_current_bytes(f.mem), before);
        if (status == RFX_OK) break;
        assert_int_equal(status, RFX_STATUS_OUT_OF_MEMORY);
        assert_true(k < 100);
    }
    small_plan_case_end(&f);
}

/* In a budget an early phase may have a plan that fits when a later one fails: it is not left
 * behind. */
static void failing_allocations_in_budgets(void **state) {
    (void)state;
    struct small_plan_case f = small_plan_case_begin(200, 200);
    struct rfx_plan *plan = small_plan_case_make(&f);
    size_t budget = plan->peak_bytes, failed = 0;
    rfx_plan_free(plan);
    size_t before = rfx_memory_current_bytes(f.mem);
    for (enum rfx_status last = RFX_OK; last == RFX_OK; budget -= 128 << 10) {
        f.request.memory_bytes = budget;
        last = RFX_STATUS_OUT_OF_MEMORY;
        for (int64_t k = 0; last == RFX_STATUS_OUT_OF_MEMORY; k++) {
            struct rfx_error err = {{0}};
            plan = NULL;
            rfx_memory_fail_after(f.mem, k);
            last = rfx_plan_create(f.graph, &f.request, &plan, &err);
            rfx_memory_fail_after(f.mem, -1);
            rfx_plan_free(plan);
            assert_int_equal(rfx_memory_current_bytes(f.mem), before);
            failed += last == RFX_STATUS_OUT_OF_MEMORY;
        }
    }
    assert_true(failed > 100);
    small_plan_case_end(&f);
}

/* With groups, two plans and two graphs are on the way: none is left behind. */
static void failing_allocations_with_groups(void **state) {
    static const size_t budgets[] = {0, 1};
    (void)state;
    for (int b = 0; b < 2; b++) {
        struct small_plan_case f = small_plan_case_begin(200, 200);
        enum rfx_status last = budgets[b] == 0 ? RFX_OK : RFX_STATUS_BUDGET_IMPOSSIBLE;
        f.request.caches = (struct rfx_caches){16 << 10, 24 << 10};
        f.request.memory_bytes = budgets[b];
        size_t before = rfx_memory_current_bytes(f.mem);
        int64_t k = 0;
        for (enum rfx_status status = RFX_STATUS_OUT_OF_MEMORY; status != last;) {
            struct rfx_plan *plan = NULL, *smallest = NULL;
            struct rfx_error err = {{0}};
            rfx_memory_fail_after(f.mem, k);
            status = rfx_plan_create_or_smallest(f.graph, &f.request, &plan, &smallest, &err);
            rfx_memory_fail_after(f.mem, -1);
            assert_true(status == last || status == RFX_STATUS_OUT_OF_MEMORY);
            rfx_plan_free(plan);
            rfx_plan_free(smallest);
            assert_int_equal(rfx_memory_current_bytes(f.mem), before);
            k += k > 120 ? 37 : 1; /* one per placement from there on */
        }
        assert_true(k > 30);
        small_plan_case_end(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(untiled_by_hand),
        cmocka_unit_test(two_tiles_by_hand),
        cmocka_unit_test(every_grid_is_sound),
        cmocka_unit_test(budgets),
        cmocka_unit_test(norms_in_files),
        cmocka_unit_test(refusals),
        cmocka_unit_test(stages_refused),
        cmocka_unit_test(failing_allocations),
        cmocka_unit_test(failing_allocations_in_budgets),
        cmocka_unit_test(failing_allocations_with_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
