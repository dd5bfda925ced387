/* Plan files for one network: what is read makes a sound plan with the bits of any other, and its
 * text is read as the same plan. */
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_models.h"
#include "tests/fuzz/fuzz_run.h"
#include "tiler/modes/modes.h"
#include "tiler/plan/plan_file.h"

enum { MOST_THREADS = 4 }; /* of a run: a team is made for each */

static enum rfx_status read_plan(const struct rfx_graph *graph, const char *text, size_t length,
                                 struct rfx_plan **plan, struct rfx_error *err) {
    struct rfx_plan_request request = {.source = fuzz_traits(graph), .threads = 1};
    struct rfx_plan_file *file = NULL;
    enum rfx_status status = rfx_plan_file_parse(graph, text, length, "plan", &file, err);
    if (status != RFX_OK) return status;
    rfx_plan_file_apply(file, &request);
    status = rfx_plan_create(graph, &request, plan, err);
    rfx_plan_file_free(file);
    return status;
}

static void write_and_read(const struct rfx_graph *graph, const struct rfx_plan *plan) {
    struct rfx_plan *again = NULL;
    struct rfx_error err = {""};
    char *text = NULL;
    enum rfx_status status = rfx_plan_file_text(plan, "fuzz", &text, &err);
    if (status == RFX_OK) status = read_plan(graph, text, strlen(text), &again, &err);
    if (status != RFX_OK) fuzz_fail("the plan's own text: %s\n%s", err.text, text);
    if (again->peak_bytes != plan->peak_bytes || again->macs != plan->macs)
        fuzz_fail("another plan when read again:\n%s", text);
    rfx_memory_release(plan->mem, text);
    rfx_plan_free(again);
}

static uint64_t whole_sum(const struct rfx_graph *graph) {
    struct rfx_plan_request request = {
        .source = fuzz_traits(graph), .threads = 1, .asked = rfx_ask_whole()};
    struct rfx_plan *plan = NULL;
    struct rfx_error err = {""};
    uint64_t sum = 0;
    if (rfx_plan_create(graph, &request, &plan, &err) != RFX_OK ||
        fuzz_run(graph, plan, &sum, &err) != RFX_OK)
        fuzz_fail("%s", err.text);
    rfx_plan_free(plan);
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct rfx_graph *graph;
    static uint64_t whole;
    struct rfx_plan *plan = NULL;
    struct rfx_error err = {""};
    uint64_t sum = 0;
    if (graph == NULL) {
        graph = fuzz_model_graph("skips");
        whole = whole_sum(graph);
    }
    size_t before = rfx_memory_current_bytes(graph->mem);
    enum rfx_status status = read_plan(graph, (const char *)data, size, &plan, &err);
    fuzz_check_status(status, &err);
    if (status == RFX_OK) {
        write_and_read(graph, plan);
        if (plan->threads <= MOST_THREADS && fuzz_is_cheap(graph, plan)) {
            status = fuzz_run(graph, plan, &sum, &err);
            fuzz_check_status(status, &err);
            if (status == RFX_OK && sum != whole) fuzz_fail("other bits by this plan");
        }
        rfx_plan_free(plan);
    }
    if (rfx_memory_current_bytes(graph->mem) != before) fuzz_fail("memory is left");
    return 0;
}
