/* Progress bar and cancelling. The bar is on stderr, and only when stderr is a terminal. After
 * SIGINT, SIGTERM or SIGHUP the next progress call asks the run to stop, and the command's
 * allocator stops all other work.
 *
 *     run [########........]  41 %  3358/8192 rows  12.3 MPix/s  0:42 left  61.2 MiB, peak 63.0 MiB
 *
 * Rows and rate are shown where rows of the image stream through the network. */
#ifndef RFX_TOOLS_CLI_PROGRESS_H
#define RFX_TOOLS_CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rfx_cli_progress {
    const char *what;   /* word before the bar, such as "run" */
    int64_t rows, cols; /* of the image; 0: the image is not streamed row by row */
    int64_t limit_ns;   /* time limit of a search; 0: none */
    bool shown;
    double started, drawn; /* seconds, monotonic */
    double told;           /* when the last line was printed, without a terminal; 0: never */
};

/* What one line shows. */
struct rfx_cli_progress_line {
    const char *what;
    int64_t done, total; /* 0 <= done <= total, total > 0 */
    int64_t rows, cols;
    double seconds;               /* since the start */
    size_t rss_bytes, peak_bytes; /* 0: unknown */
    int columns;                  /* of the terminal */
};

/* Makes SIGINT, SIGTERM and, unless it is ignored, SIGHUP set a flag that rfx_cli_progress_step
 * reads; a second signal ends the process at once. Writing beyond a file size limit becomes an
 * error instead of a signal. */
void rfx_cli_progress_catch_signals(void);

/* Returns whether one of the signals has come. */
bool rfx_cli_progress_cancelled(void);

/* Creates an allocator that refuses memory once a signal has come. The refusal ends the work that
 * uses the allocator. When the system has no memory, prints a message and returns NULL. */
struct rfx_memory *rfx_cli_memory_create(void);

/* Lets signals stop the work that uses `mem` again. Called after a step that must not be stopped.
 */
void rfx_cli_memory_may_stop(struct rfx_memory *mem);

/* Returns whether work that has lasted `seconds` is to print a line on a stderr that is not a
 * terminal: after 10 seconds and then every 30 seconds. *told: time of the last line, 0 at first;
 * updated when the function returns true. */
bool rfx_cli_progress_is_due(double seconds, double *told);

/* Turns progress off for this process, because another process of the MPI job shows it. */
void rfx_cli_progress_silence(void);

/* Starts a bar, which is drawn after half a second. Without a terminal a line is printed after 10
 * seconds and then every 30: what runs, how much is done and how long the rest will take. */
void rfx_cli_progress_start(struct rfx_cli_progress *progress, const char *what);

/* Draws the bar; an rfx_progress_fn. user: struct rfx_cli_progress. Returns whether to stop. */
int rfx_cli_progress_step(void *user, int64_t done, int64_t total);

/* Clears the line. */
void rfx_cli_progress_end(struct rfx_cli_progress *progress);

/* Shows on a terminal how long single-threaded work of unknown length has lasted. The text is
 * redrawn whenever the work checks `mem` for a request to stop. `mem` must come from
 * rfx_cli_memory_create. rfx_cli_progress_unwatch clears the text. */
void rfx_cli_progress_watch(struct rfx_cli_progress *progress, const char *what,
                            struct rfx_memory *mem);
void rfx_cli_progress_unwatch(struct rfx_cli_progress *progress, struct rfx_memory *mem);

/* Writes the line in fewer than `columns` characters. Items that do not fit are left out: first the
 * rate, then rows, memory and the time left. */
void rfx_cli_progress_format(const struct rfx_cli_progress_line *line, char *text, size_t size);
#endif
