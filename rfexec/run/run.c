/* See run.h. */
#include "rfexec/run/run.h"

enum rfx_status rfx_run_prepare(struct rfx_run *run, struct rfx_error *err) {
    struct rfx_memory *mem = run->mem != NULL ? run->mem : run->plan->graph->mem;
    enum rfx_status status = rfx_session_create(run->plan, run->weights, mem, &run->session, err);
    return rfx_memory_settle(mem, status, err);
}

enum rfx_status rfx_run_image(struct rfx_run *run, struct rfx_image *image,
                              struct rfx_run_report *report, struct rfx_error *err) {
    const struct rfx_output_sink *sink = run->sink;
    enum rfx_status status = RFX_OK;
    if (sink != NULL && sink->begin != NULL) status = sink->begin(sink->user, err);
    if (status != RFX_OK) return status;
    rfx_session_set_sink(run->session, sink);
    rfx_session_set_state_sink(run->session, run->states);
    rfx_session_set_spill_folder(run->session, run->spill_folder);
    rfx_session_set_observer(run->session, run->observer);
    if (run->sums != NULL) rfx_image_set_row_sums(image, run->sums);
    status = rfx_session_run(run->session, image, run->progress, run->user, report, err);
    if (run->sums != NULL) rfx_image_set_row_sums(image, NULL);
    if (status == RFX_OK && sink != NULL && sink->end != NULL) status = sink->end(sink->user, err);
    return status;
}

void rfx_run_release(struct rfx_run *run) {
    rfx_session_free(run->session);
    run->session = NULL;
}
