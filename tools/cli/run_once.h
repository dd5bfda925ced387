/* One run of a plan that is needed once: the session is made, run with a bar and freed. */
#ifndef RFX_TOOLS_CLI_RUN_ONCE_H
#define RFX_TOOLS_CLI_RUN_ONCE_H

#include "rfexec/session/session.h"
#include "tools/cli/progress.h"

struct rfx_cli_run {
    const struct rfx_graph *graph;
    const struct rfx_plan *plan;
    struct rfx_image *image;
    struct rfx_row_sums *sums;           /* of the image's rows that are read; NULL: none */
    const struct rfx_output_sink *sink;  /* NULL: none */
    const struct rfx_state_sink *states; /* NULL: none */
    const char *spill;                   /* folder; NULL: none */
    const char *what;                    /* that the bar shows */
    struct rfx_cli_progress *bar;        /* of several runs, which goes on; NULL: one of its own */
};

/* Runs it; what the session held is free when the function returns. Statuses of rfx_session_create
 * and rfx_session_run; CANCELLED also where a signal came after the last step. */
RFX_NODISCARD enum rfx_status rfx_cli_run_once(const struct rfx_cli_run *run,
                                               struct rfx_run_report *report,
                                               struct rfx_error *err);
#endif
