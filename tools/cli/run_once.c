/* See run_once.h. */
#include "tools/cli/run_once.h"

enum rfx_status rfx_cli_run_once(const struct rfx_cli_run *run, struct rfx_run_report *report,
                                 struct rfx_error *err) {
    struct rfx_cli_progress own, *bar = run->bar != NULL ? run->bar : &own;
    struct rfx_run once = {.plan = run->plan,
                           .sink = run->sink,
                           .states = run->states,
                           .sums = run->sums,
                           .spill_folder = run->spill,
                           .progress = rfx_cli_progress_step,
                           .user = bar};
    enum rfx_status status = rfx_run_prepare(&once, err);
    if (status != RFX_OK) return status;
    if (run->bar == NULL) rfx_cli_progress_start(bar, run->what);
    status = rfx_run_image(&once, run->image, report, err);
    if (run->bar == NULL) rfx_cli_progress_end(bar);
    if (status == RFX_OK && rfx_cli_progress_cancelled())
        status = rfx_fail(err, RFX_STATUS_CANCELLED, "stopped by a signal");
    rfx_run_release(&once);
    return status;
}
