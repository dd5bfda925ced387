/* The front of plans is what the planner answers, budget by budget; where it chooses rows for each
 * stage of its answer afterwards, that takes less time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/random/small_nets.h"
#include "tiler/search/plan_survey.h"

static void front_is_the_planners(void **state) {
    struct small_plan_case f = small_plan_case_begin(400, 160);
    struct rfx_survey_request request = {.kinds = ~0U};
    struct rfx_plan_survey *survey = NULL;
    struct rfx_error err;
    (void)state;
    assert_int_equal(rfx_plan_survey_create(f.graph, &f.request, &request, &survey, &err), RFX_OK);
    assert_true(survey->n_front > 3);
    assert_int_equal(survey->n_rivals, 0);
    int compared = 0;
    for (int i = 0; i < survey->n_front; i++) {
        struct rfx_plan *plan = NULL;
        const struct rfx_plan_summary *p = &survey->front[i];
        f.request.memory_bytes = p->peak_bytes;
        assert_int_equal(rfx_plan_create(f.graph, &f.request, &plan, &err), RFX_OK);
        if (small_plan_has_chosen_rows(plan)) {
            assert_true(plan->cost < p->cost);
        } else {
            assert_int_equal(plan->cost, p->cost);
            assert_int_equal(plan->macs, p->macs);
            compared++;
        }
        assert_true(plan->peak_bytes <= p->peak_bytes);
        rfx_plan_free(plan);
        if (i == 0) continue;
        assert_true(p->peak_bytes < p[-1].peak_bytes);
        assert_true(p->cost > p[-1].cost || (p->cost == p[-1].cost && p->macs >= p[-1].macs));
    }
    assert_true(compared > 3 && compared > survey->n_front / 2);
    f.request.memory_bytes = survey->front[survey->n_front - 1].peak_bytes - 1;
    struct rfx_plan *none = NULL;
    assert_int_equal(rfx_plan_create(f.graph, &f.request, &none, &err),
                     RFX_STATUS_BUDGET_IMPOSSIBLE);
    rfx_plan_free(none);
    rfx_plan_survey_free(survey);
    small_plan_case_end(&f);
}

/* One rival per kind that this network has: no strips of second passes here, one global mean. */
static void rivals(void **state) {
    struct small_plan_case f = small_plan_case_begin(200, 160);
    struct rfx_survey_request request = {.rivals = true};
    struct rfx_plan_survey *survey = NULL;
    struct rfx_error err;
    (void)state;
    assert_int_equal(rfx_plan_survey_create(f.graph, &f.request, &request, &survey, &err), RFX_OK);
    assert_int_equal(survey->n_front, 0);
    assert_int_equal(survey->n_rivals, 5);
    static const enum rfx_plan_kind kinds[] = {
        RFX_PLAN_UNTILED, RFX_PLAN_STREAMED, RFX_PLAN_TWO_STREAMS, RFX_PLAN_STRIPS, RFX_PLAN_TILES};
    for (int i = 0; i < 5; i++) assert_int_equal(survey->rivals[i].kind, kinds[i]);
    assert_int_equal(survey->rivals[0].macs, survey->macs_untiled);
    assert_int_equal(survey->rivals[0].cost, survey->cost_untiled);
    rfx_plan_survey_free(survey);
    small_plan_case_end(&f);
}

/* Of a graph with groups: the rival of the plan's own kind is the plan, its MACs by steps too. */
static void rivals_of_groups(void **state) {
    struct small_plan_case f = small_plan_case_begin(400, 400);
    struct rfx_survey_request request = {.rivals = true};
    struct rfx_plan_survey *survey = NULL;
    struct rfx_plan *plan = NULL;
    struct rfx_error err;
    char text[RFX_PLAN_TEXT];
    (void)state;
    f.request.caches = (struct rfx_caches){64 << 10, 128 << 10};
    assert_int_equal(rfx_plan_create(f.graph, &f.request, &plan, &err), RFX_OK);
    assert_non_null(plan->grouped);
    assert_int_equal(rfx_plan_survey_create(plan->graph, &f.request, &request, &survey, &err),
                     RFX_OK);
    rfx_plan_describe(plan, text, sizeof text);
    assert_int_equal(survey->rivals[0].kind, RFX_PLAN_UNTILED);
    assert_string_equal(survey->rivals[0].text, text);
    assert_int_equal(survey->rivals[0].macs, plan->macs);
    assert_int_equal(survey->rivals[0].cost, plan->cost);
    assert_int_equal(survey->macs_untiled, plan->macs_untiled);
    for (int i = 1; i < survey->n_rivals; i++)
        assert_true(survey->rivals[i].macs >= survey->macs_untiled);
    rfx_plan_survey_free(survey);
    rfx_plan_free(plan);
    small_plan_case_end(&f);
}

static void failing_allocations(void **state) {
    struct small_plan_case f = small_plan_case_begin(40, 40);
    struct rfx_survey_request request = {.kinds = ~0U, .rivals = true};
    (void)state;
    for (int64_t k = 0;; k++) {
        struct rfx_plan_survey *survey = NULL;
        struct rfx_error err = {{0}};
        size_t before = rfx_memory_current_bytes(f.mem);
        rfx_memory_fail_after(f.mem, k);
        enum rfx_status status =
            rfx_plan_survey_create(f.graph, &f.request, &request, &survey, &err);
        rfx_memory_fail_after(f.mem, -1);
        rfx_plan_survey_free(survey);
        assert_int_equal(rfx_memory_current_bytes(f.mem), before);
        if (status == RFX_OK) break;
        assert_int_equal(status, RFX_STATUS_OUT_OF_MEMORY);
        if (k > 60) k += 40; /* one per placement from there on */
    }
    small_plan_case_end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(front_is_the_planners),
                                       cmocka_unit_test(rivals), cmocka_unit_test(rivals_of_groups),
                                       cmocka_unit_test(failing_allocations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
