/* See run_once.h. */
#include "tools/cli/run_once.h"

enum rfx_status rfx_cli_run_once(const struct rfx_cli_run *run, struct rfx_run_report *report,
                                 struct rfx_error *err) {
    struct rfx_cli_progress own, *bar = run->bar != NULL ? run->bar : &own;
    struct rfx_session *session = NULL;
    enum rfx_status status = rfx_session_create(run->graph, run->plan, &session, err);
    if (status != RFX_OK) return status;
    rfx_session_set_sink(session, run->sink);
    rfx_session_set_state_sink(session, run->states);
    rfx_session_set_spill_folder(session, run->spill);
    if (run->sums != NULL) rfx_image_set_row_sums(run->image, run->sums);
    if (run->bar == NULL) rfx_cli_progress_start(bar, run->what);
    status = rfx_session_run(session, run->image, rfx_cli_progress_step, bar, report, err);
    if (run->bar == NULL) rfx_cli_progress_end(bar);
    if (run->sums != NULL) rfx_image_set_row_sums(run->image, NULL);
    if (status == RFX_OK && rfx_cli_progress_cancelled())
        status = rfx_fail(err, RFX_STATUS_CANCELLED, "stopped by a signal");
    rfx_session_free(session);
    return status;
}
