/* One run of a plan, prepared, run with a progress bar and released. */
#ifndef RFX_TOOLS_CLI_RUN_ONCE_H
#define RFX_TOOLS_CLI_RUN_ONCE_H

#include "rfexec/run/run.h"
#include "tools/cli/progress.h"

struct rfx_cli_run {
    const struct rfx_plan *plan;
    struct rfx_image *image;
    struct rfx_row_sums *sums;           /* checksums of the image rows that are read; NULL: none */
    const struct rfx_output_sink *sink;  /* NULL: none */
    const struct rfx_state_sink *states; /* NULL: none */
    const char *spill;                   /* folder; NULL: none */
    const char *what;                    /* word before the bar */
    struct rfx_cli_progress *bar;        /* one bar for several runs; NULL: a bar for this run */
};

/* Runs the plan. All memory of the run is freed before the function returns. Statuses: those of
 * rfx_run_prepare and rfx_run_image; CANCELLED also when a signal came after the last step. */
RFX_NODISCARD enum rfx_status rfx_cli_run_once(const struct rfx_cli_run *run,
                                               struct rfx_run_report *report,
                                               struct rfx_error *err);
#endif
