/* The progress bar and cancelling: a bar on stderr only when that is a terminal; SIGINT and SIGTERM
 * make the next progress call ask the run to stop. */
#ifndef RFX_TOOLS_PROGRESS_H
#define RFX_TOOLS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct rfx_cli_progress {
    const char *what; /* before the bar: "run" */
    bool shown;
    double started, drawn; /* seconds, monotonic */
};

/* Routes SIGINT and SIGTERM to the flag that rfx_cli_progress_step looks at. */
void rfx_cli_progress_catch_signals(void);

/* Whether one of the signals has come. */
bool rfx_cli_progress_cancelled(void);

/* Starts a bar; nothing is drawn before half a second. */
void rfx_cli_progress_start(struct rfx_cli_progress *progress, const char *what);

/* An rfx_progress_fn; user: struct rfx_cli_progress. */
int rfx_cli_progress_step(void *user, int64_t done, int64_t total);

/* Clears the line. */
void rfx_cli_progress_end(struct rfx_cli_progress *progress);

/* Monotonic seconds. */
double rfx_cli_seconds(void);
#endif
