/* What a plan file says of spilled maps is read back as it was written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/random/small_nets.h"
#include "tiler/plan/plan_check.h"
#include "tiler/plan/plan_file.h"

#define HEAD "{\"schema\": 1, \"kind\": \"rfexec plan\", "
#define WHOLE "{\"mode\": \"whole\", \"targets\": [\"pool\"]}"

/* sum goes through a file, and does so again when the plan is written and read. */
static void spilled(void **state) {
    static const char text[] = HEAD
        "\"stages\": [{\"mode\": \"streamed\", \"targets\": [\"a\", \"sum\"], "
        "\"band_rows\": 2, \"spilled\": [\"sum\"]}, " WHOLE "]}";
    struct small_plan_case f = small_plan_case_begin(23, 17);
    struct rfx_plan *plan = NULL, *again = NULL;
    struct rfx_error err = {{0}};
    char *written = NULL, words[RFX_PLAN_TEXT];
    (void)state;
    if (small_plan_case_plan(&f, text, strlen(text), &plan, &err) != RFX_OK)
        fail_msg("%s", err.text);
    int a = rfx_graph_find(f.graph, "a"), sum = rfx_graph_find(f.graph, "sum");
    assert_int_equal(rfx_plan_file_text(plan, "net", &written, &err), RFX_OK);
    if (small_plan_case_plan(&f, written, strlen(written), &again, &err) != RFX_OK)
        fail_msg("%s", err.text);
    for (int p = 0; p < 2; p++) {
        const struct rfx_plan *made = p == 0 ? plan : again;
        assert_int_equal(made->stages[0].places[a], RFX_PLACE_STORED);
        assert_int_equal(made->stages[0].places[sum], RFX_PLACE_SPILLED);
        assert_int_equal(made->stages[1].places[sum], RFX_PLACE_FETCHED);
        assert_int_equal(made->spill.written, rfx_tensor_bytes(&f.graph->nodes[sum].out));
        assert_int_equal(made->spill.read, made->spill.written);
        assert_int_equal(rfx_plan_spill_last(made, sum), 1);
        assert_int_equal(rfx_plan_spill_last(made, a), -1);
    }
    rfx_plan_describe(again, words, sizeof words);
    assert_non_null(strstr(words, "2 image rows a step, spilled; rest whole"));
    rfx_memory_release(f.mem, written);
    rfx_plan_free(plan);
    rfx_plan_free(again);
    small_plan_case_end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(spilled)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
