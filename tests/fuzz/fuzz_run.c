/* See fuzz_run.h. */
#include "tests/fuzz/fuzz_run.h"

#include <string.h>

#include "rfexec/image/image_source.h"
#include "rfexec/late/late_run.h"
#include "rfexec/output/fingerprint.h"
#include "rfexec/run/session.h"
#include "tests/fuzz/fuzz.h"
#include "tiler/plan/plan_check.h"

#define MOST_PICOSECONDS UINT64_C(1000000000)
#define MOST_LATE_BYTES ((size_t)1 << 20)
enum { MOST_INPUT = 1 << 14, MOST_NODES = 200 };

struct rfx_source_traits fuzz_traits(const struct rfx_graph *graph) {
    const struct rfx_tensor *input = &graph->nodes[graph->input].out;
    return (struct rfx_source_traits){
        .h = input->h, .w = input->w, .c = input->c, .random_access = true};
}

bool fuzz_is_cheap(const struct rfx_graph *graph, const struct rfx_plan *plan) {
    return graph->nodes[graph->input].out.elems <= MOST_INPUT && graph->n_nodes <= MOST_NODES &&
           plan->cost <= MOST_PICOSECONDS && plan->cost_untiled <= MOST_PICOSECONDS;
}

struct outputs {
    struct rfx_fingerprint fingerprint;
    struct rfx_late_run *late; /* NULL: the graph has no late nodes */
};

/* Adds the outputs up, in any order. */
static enum rfx_status add_piece(void *user, const struct rfx_end *end, struct rfx_rect rect,
                                 const struct rfx_view *view, struct rfx_error *err) {
    struct outputs *outputs = user;
    (void)err;
    rfx_fingerprint_add_end(&outputs->fingerprint, end, rect, view);
    if (outputs->late != NULL) rfx_late_run_take(outputs->late, end, rect, view);
    return RFX_OK;
}

/* Runs late nodes and adds their results. */
static enum rfx_status run_late(const struct rfx_graph *graph, struct rfx_late_run *run,
                                uint64_t *sum, struct rfx_error *err) {
    enum rfx_status status = rfx_late_run_nodes(run, err);
    if (rfx_late_run_high_water_bytes(run) > MOST_LATE_BYTES)
        fuzz_fail("%zu bytes of late nodes", rfx_late_run_high_water_bytes(run));
    for (size_t k = 0; status == RFX_OK && k < graph->late->n_outputs; k++) {
        const struct rfx_late_tensor *t = rfx_late_run_output(run, k);
        *sum = fuzz_sum(*sum, t->data, (size_t)t->elems * rfx_type_bytes(t->type));
    }
    return status;
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
    if (status == RFX_OK) status = rfx_session_create(plan, NULL, graph->mem, &session, err);
    struct outputs outputs = {.late = NULL};
    const struct rfx_output_sink sink = {.write = add_piece, .user = &outputs};
    if (status == RFX_OK && graph->late != NULL)
        status = rfx_late_run_create(graph, graph->mem, MOST_LATE_BYTES, &outputs.late, err);
    if (status == RFX_OK) rfx_session_set_sink(session, &sink);
    if (status == RFX_OK) status = rfx_session_run(session, image, NULL, NULL, NULL, err);
    if (status == RFX_OK) *sum = outputs.fingerprint.low;
    if (status == RFX_OK && outputs.late != NULL) status = run_late(graph, outputs.late, sum, err);
    rfx_late_run_free(outputs.late);
    rfx_session_free(session);
    rfx_image_free(image);
    return status;
}
