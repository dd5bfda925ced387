/* Notes of planning: plans that are made with what was measured for other plans of a network, with
 * and without groups, for other budgets and threads and for parts of its output, are those made
 * without. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "rf_analysis/part_graph.h"
#include "rfexec/run/model.h"
#include "tests/support/test_util.h"
#include "tiler/plan/plan.h"

static struct rfx_plan *make(const struct rfx_graph *graph,
                             const struct rfx_plan_request *request) {
    struct rfx_plan *plan = NULL, *smallest = NULL;
    struct rfx_error err = {{0}};
    enum rfx_status status = rfx_plan_create_or_smallest(graph, request, &plan, &smallest, &err);
    if (status != RFX_OK && status != RFX_STATUS_BUDGET_IMPOSSIBLE) fail_msg("%s", err.text);
    assert_true((plan == NULL) != (smallest == NULL));
    return plan != NULL ? plan : smallest;
}

static void compare(const struct rfx_graph *graph, struct rfx_plan_request request,
                    struct rfx_plan_cache *notes, const char *what) {
    struct rfx_plan *alone = make(graph, &request);
    request.cache = notes;
    struct rfx_plan *noted = make(graph, &request);
    char text[RFX_PLAN_TEXT], noted_text[RFX_PLAN_TEXT];
    rfx_plan_describe(alone, text, sizeof text);
    rfx_plan_describe(noted, noted_text, sizeof noted_text);
    if (strcmp(text, noted_text) != 0 || alone->peak_bytes != noted->peak_bytes ||
        alone->macs != noted->macs || alone->cost != noted->cost)
        fail_msg("%s, %zu bytes, %d threads: %s, %zu bytes; with notes %s, %zu bytes", what,
                 request.memory_bytes, request.threads, text, alone->peak_bytes, noted_text,
                 noted->peak_bytes);
    rfx_plan_free(alone);
    rfx_plan_free(noted);
}

/* Budgets from an impossible one on, of a graph and then of halves of its output. */
static void compare_all(const char *model, int64_t h, int64_t w) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_load_options load = {.h = h, .w = w};
    struct rfx_graph *graph = NULL, *half;
    struct rfx_plan_cache *notes = NULL;
    struct rfx_error err = {{0}};
    if (rfx_model_load(mem, model, &load, &graph, &err) != RFX_OK) fail_msg("%s", err.text);
    assert_int_equal(rfx_plan_cache_create(mem, &notes, &err), RFX_OK);
    struct rfx_plan_request request = {
        .source = {.h = h, .w = w, .c = 3, .random_access = true},
        .caches = {.second_bytes = (size_t)1 << 20, .shared_bytes = (size_t)4 << 20}};
    for (int round = 0; round < 2; round++)
        for (request.threads = 1; request.threads <= 2; request.threads++)
            for (size_t mib = 1; mib <= 256; mib *= 4) {
                request.memory_bytes = mib << 20;
                compare(graph, request, notes, model);
            }
    struct rfx_tensor *out = &graph->nodes[graph->outputs[0].node].out;
    for (int i = 0; i < 2 && out->layout == RFX_LAYOUT_NHWC; i++) {
        struct rfx_rect part = {i == 0 ? 0 : out->h / 2, i == 0 ? out->h / 2 : out->h, 0, out->w};
        assert_int_equal(rfx_part_graph_create(graph, 0, part, &half, &err), RFX_OK);
        for (size_t mib = 1; mib <= 256; mib *= 4) {
            request.memory_bytes = mib << 20;
            request.threads = 2;
            compare(half, request, notes, "half of the output");
        }
        rfx_graph_free(half);
    }
    rfx_plan_cache_free(notes);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

static void plans_do_not_hang_on_notes(void **state) {
    (void)state;
    compare_all("unet", 320, 288);
    compare_all("fsrcnn", 300, 400);
    compare_all("mobilenet_v2", 512, 512);
    compare_all("unet_instance", 224, 256);
}

/* Whichever allocation fails: plans without notes are made, or none, and nothing is left. */
static void failing_allocations(void **state) {
    (void)state;
    int made = 0, tries = 0;
    for (int k = 0; k < 1400; k += 7, tries++) {
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_load_options load = {.h = 64, .w = 64};
        struct rfx_graph *graph = NULL;
        struct rfx_plan_cache *notes = NULL;
        struct rfx_plan *plan = NULL;
        struct rfx_error err = {{0}};
        assert_int_equal(rfx_model_load(mem, "fsrcnn", &load, &graph, &err), RFX_OK);
        rfx_memory_fail_after(mem, k);
        struct rfx_plan_request request = {
            .source = {.h = 64, .w = 64, .c = 3}, .threads = 1, .memory_bytes = (size_t)64 << 20};
        enum rfx_status status = rfx_plan_cache_create(mem, &notes, &err);
        request.cache = notes;
        if (status == RFX_OK) status = rfx_plan_create(graph, &request, &plan, &err);
        assert_true(status == RFX_OK || status == RFX_STATUS_OUT_OF_MEMORY);
        made += status == RFX_OK;
        rfx_plan_free(plan);
        rfx_plan_cache_free(notes);
        rfx_memory_fail_after(mem, -1);
        rfx_graph_free(graph);
        assert_int_equal(rfx_memory_current_bytes(mem), 0);
        rfx_memory_free(mem);
    }
    assert_true(made > 0 && made < tries);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_do_not_hang_on_notes),
        cmocka_unit_test(failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
