/* See fuzz_run.h. */
#include "tests/fuzz/fuzz_run.h"

#include <string.h>

#include "rfexec/image/image_source.h"
#include "rfexec/session/session.h"
#include "tests/fuzz/fuzz.h"
#include "tiler/plan/plan_check.h"

#define MOST_PICOSECONDS UINT64_C(1000000000)
enum { MOST_INPUT = 1 << 14, MOST_NODES = 200, CHUNK = 1024 };

struct rfx_source_traits fuzz_traits(const struct rfx_graph *graph) {
    const struct rfx_tensor *input = &graph->nodes[graph->input].out;
    return (struct rfx_source_traits){
        .h = input->h, .w = input->w, .c = input->c, .random_access = true};
}

bool fuzz_is_cheap(const struct rfx_graph *graph, const struct rfx_plan *plan) {
    return graph->nodes[graph->input].out.elems <= MOST_INPUT && graph->n_nodes <= MOST_NODES &&
           plan->cost <= MOST_PICOSECONDS && plan->cost_untiled <= MOST_PICOSECONDS;
}

static uint64_t sum_outputs(const struct rfx_session *session) {
    float values[CHUNK];
    uint64_t sum = 0;
    for (int k = 0; k < rfx_session_output_count(session); k++) {
        int64_t elems = rfx_session_output_tensor(session, k)->elems;
        for (int64_t i = 0; i < elems; i += CHUNK) {
            int64_t count = elems - i < CHUNK ? elems - i : CHUNK;
            rfx_session_output_read(session, k, i, count, values);
            sum = fuzz_sum(sum, values, (size_t)count * sizeof *values);
        }
    }
    return sum;
}

static enum rfx_status open_input(const struct rfx_graph *graph, float *values,
                                  struct rfx_image **image, struct rfx_error *err) {
    const struct rfx_tensor *input = &graph->nodes[graph->input].out;
    fuzz_values(values, input->elems);
    return rfx_image_from_array(graph->mem, values, input->c, input->h, input->w, image, err);
}

enum rfx_status fuzz_run(const struct rfx_graph *graph, const struct rfx_plan *plan, uint64_t *sum,
                         struct rfx_error *err) {
    static float values[MOST_INPUT];
    struct rfx_image *image = NULL;
    struct rfx_session *session = NULL;
    char why[200] = "";
    if (!rfx_plan_check(plan, why, sizeof why) && !rfx_memory_is_stopped(plan->mem) &&
        strstr(why, "no memory") == NULL)
        fuzz_fail("the plan is wrong: %s", why);
    enum rfx_status status = open_input(graph, values, &image, err);
    if (status == RFX_OK) status = rfx_session_create(graph, plan, &session, err);
    if (status == RFX_OK) status = rfx_session_run(session, image, NULL, NULL, NULL, err);
    if (status == RFX_OK) *sum = sum_outputs(session);
    rfx_session_free(session);
    rfx_image_free(image);
    return status;
}
