/* ONNX files: loaded, planned, checked and run, whole and in pieces, which must give the same bits.
 */
#include "rfexec/run/model.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_run.h"
#include "tiler/modes/modes.h"

#define MEMORY_BYTES ((size_t)24 << 20)
enum { ROWS = 13, COLS = 10 }; /* where the model leaves them open */

/* A plan for what is asked for, and its run; 0: refused. */
static uint64_t plan_and_run(const struct rfx_graph *graph, const struct rfx_plan_request *request,
                             size_t *arena_bytes, size_t *peak_bytes) {
    struct rfx_plan *plan = NULL;
    struct rfx_error err = {""};
    uint64_t sum = 0;
    enum rfx_status status = rfx_plan_create(graph, request, &plan, &err);
    fuzz_check_status(status, &err);
    if (status != RFX_OK) return 0;
    *arena_bytes = plan->bytes.arena;
    *peak_bytes = plan->peak_bytes;
    if (request->memory_bytes != 0 && plan->peak_bytes > request->memory_bytes)
        fuzz_fail("%zu bytes in a budget of %zu", plan->peak_bytes, request->memory_bytes);
    if (fuzz_is_cheap(graph, plan)) {
        status = fuzz_run(graph, plan, &sum, &err);
        fuzz_check_status(status, &err);
    }
    rfx_plan_free(plan);
    return status == RFX_OK ? sum : 0;
}

/* The whole run, then one in pieces: which, is left to the input's length. */
static void run_twice(const struct rfx_graph *graph, size_t size) {
    struct rfx_plan_request request = {
        .source = fuzz_traits(graph), .threads = 1, .asked = rfx_ask_whole()};
    size_t arena = 0, peak = 0;
    uint64_t whole = plan_and_run(graph, &request, &arena, &peak);
    if (whole == 0) return;
    request.asked = (struct rfx_stage_spec){0};
    switch (size % 4) {
        case 0:
            request.asked = rfx_ask_tiles(2, 3);
            break;
        case 1:
            request.asked = rfx_ask_bands(3, 2);
            break;
        default:
            request.memory_bytes = peak - arena / 2;
            request.caches = (struct rfx_caches){1 << 20, 1 << 24};
            break;
    }
    uint64_t pieces = plan_and_run(graph, &request, &arena, &peak);
    if (pieces != 0 && pieces != whole) fuzz_fail("other bits in pieces");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *path = fuzz_file(data, size);
    struct rfx_memory *mem = fuzz_memory(MEMORY_BYTES);
    struct rfx_load_options options = {.conv = size % 8 == 7 ? RFX_CONV_WINOGRAD : RFX_CONV_DIRECT,
                                       .late = true,
                                       .join_heads = size % 2 != 0};
    struct rfx_graph *graph = NULL;
    struct rfx_error err = {""};
    enum rfx_status status = rfx_onnx_load(mem, path, &options, &graph, &err);
    fuzz_check_status(status, &err);
    if (status != RFX_OK) {
        options.h = ROWS;
        options.w = COLS;
        status = rfx_onnx_load(mem, path, &options, &graph, &err);
        fuzz_check_status(status, &err);
    }
    if (status == RFX_OK) run_twice(graph, size);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
    return 0;
}
