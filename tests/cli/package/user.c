/* A program of someone else, built against the installed package: plans a network that it makes
 * itself, and prints the version. */
#include <stdio.h>

#include "rfexec/rfexec.h"

int main(void) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = NULL;
    struct rfx_plan *plan = NULL;
    struct rfx_error err = {{0}};
    struct rfx_load_options load = {.h = 64, .w = 48};
    int count = 0;
    const struct rfx_builtin *builtins = rfx_builtin_list(&count);
    if (mem == NULL || count == 0) return 1;
    enum rfx_status status = rfx_model_load(mem, builtins[0].name, &load, &graph, &err);
    if (status == RFX_OK) {
        struct rfx_plan_request request = {
            .source = {.h = 64, .w = 48, .c = 3, .random_access = true}, .threads = 1};
        status = rfx_plan_create(graph, &request, &plan, &err);
    }
    if (status != RFX_OK) fprintf(stderr, "%s\n", err.text);
    if (status == RFX_OK) printf("rfexec " RFX_VERSION ": %zu bytes\n", plan->peak_bytes);
    rfx_plan_free(plan);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
    return status == RFX_OK ? 0 : 1;
}
