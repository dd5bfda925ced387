/* The progress bar and cancelling: a bar on stderr only when that is a terminal; SIGINT, SIGTERM
 * and SIGHUP make the next progress call ask the run to stop, and end all other work of a command
 * through its allocator.
 *
 *     run [########........]  41 %  3358/8192 rows  12.3 MPix/s  0:42 left  61.2 MiB, peak 63.0 MiB
 *
 * Rows and rate are shown where the picture goes through the network by rows. */
#ifndef RFX_TOOLS_CLI_PROGRESS_H
#define RFX_TOOLS_CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rfx_cli_progress {
    const char *what;   /* before the bar: "run" */
    int64_t rows, cols; /* of the picture; 0: it does not go through by rows */
    int64_t limit_ns;   /* of a search that ends by its time; 0: it is none */
    bool shown;
    double started, drawn; /* seconds, monotonic */
    double told;           /* of the last line where there is no terminal; 0: none yet */
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

/* Routes SIGINT, SIGTERM and, unless it is ignored, SIGHUP to the flag that rfx_cli_progress_step
 * looks at; a second one ends the process at once. A file size limit becomes an error of writing.
 */
void rfx_cli_progress_catch_signals(void);

/* Whether one of the signals has come. */
bool rfx_cli_progress_cancelled(void);

/* An allocator whose work stops when a signal asks for it. NULL when the system has no memory. */
struct rfx_memory *rfx_cli_memory_create(void);

/* Work with `mem` may be stopped by a signal again, after a part of it that must not be. */
void rfx_cli_memory_may_stop(struct rfx_memory *mem);

/* Whether work that has lasted so many seconds tells of itself where there is no terminal: after 10
 * seconds, and from then on every 30; *told, which begins at 0, is when it has done so last. */
bool rfx_cli_progress_is_due(double seconds, double *told);

/* From here on this process shows no progress: another one of the same job does. */
void rfx_cli_progress_silence(void);

/* Starts a bar; nothing is drawn before half a second. Without a terminal a line tells after 10
 * seconds, and then every 30, what runs, how far it is and how long it will take. */
void rfx_cli_progress_start(struct rfx_cli_progress *progress, const char *what);

/* An rfx_progress_fn; user: struct rfx_cli_progress. */
int rfx_cli_progress_step(void *user, int64_t done, int64_t total);

/* Clears the line. */
void rfx_cli_progress_end(struct rfx_cli_progress *progress);

/* For work of one thread whose end is not known: shows how long it has lasted, on a terminal,
 * whenever the work asks `mem` whether it is to stop. `mem` was made by rfx_cli_memory_create. */
void rfx_cli_progress_watch(struct rfx_cli_progress *progress, const char *what,
                            struct rfx_memory *mem);
void rfx_cli_progress_unwatch(struct rfx_cli_progress *progress, struct rfx_memory *mem);

/* Writes the line, shorter than `columns` characters as far as its first words allow: what does not
 * fit is left out, the rate first, then rows, memory and the time left. */
void rfx_cli_progress_format(const struct rfx_cli_progress_line *line, char *text, size_t size);
#endif
