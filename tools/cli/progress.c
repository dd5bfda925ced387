/* Progress bar and signals; see progress.h. */
#include "tools/cli/progress.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "layers/core/clock.h"
#include "tools/cli/command.h"
#include "tools/cli/report.h"

enum { MAX_CELLS = 40, MIN_CELLS = 10, TAIL = 160, LINE = 256, DEFAULT_COLUMNS = 80 };

static volatile sig_atomic_t stop_requested;

/* Handles a signal. The first signal asks the run to stop and clean up. A signal that comes more
 * than a second later ends the process at once. A signal within the first second is ignored,
 * because timeout(1) and terminals signal both the process and its group, so that one signal
 * arrives twice. */
static void request_stop(int signal_number) {
    static struct timespec first;
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    if (!stop_requested) first = now;
    stop_requested = 1;
    if (now.tv_sec - first.tv_sec <= 1) return;
    (void)signal(signal_number, SIG_DFL);
    (void)raise(signal_number);
}

void rfx_cli_progress_catch_signals(void) {
    struct sigaction action = {.sa_handler = request_stop}, old;
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    if (sigaction(SIGHUP, NULL, &old) == 0 && old.sa_handler != SIG_IGN) /* nohup */
        (void)sigaction(SIGHUP, &action, NULL);
    (void)signal(SIGXFSZ, SIG_IGN);
}

bool rfx_cli_progress_cancelled(void) {
    return stop_requested != 0;
}

static bool is_stop_wanted(void *user) {
    (void)user;
    return rfx_cli_progress_cancelled();
}

struct rfx_memory *rfx_cli_memory_create(void) {
    struct rfx_memory *mem = rfx_memory_create(0);
    if (mem != NULL)
        rfx_cli_memory_may_stop(mem);
    else
        rfx_cli_message("out of memory at start");
    return mem;
}

void rfx_cli_memory_may_stop(struct rfx_memory *mem) {
    rfx_memory_set_stop(mem, is_stop_wanted, NULL);
}

/* A run shorter than quiet_seconds shows nothing. The line is redrawn every redraw_seconds, just
 * often enough to look smooth. */
static const double quiet_seconds = 0.5, redraw_seconds = 0.1;

static bool silent;

void rfx_cli_progress_silence(void) {
    silent = true;
}

void rfx_cli_progress_start(struct rfx_cli_progress *progress, const char *what) {
    double now = rfx_clock_seconds(CLOCK_MONOTONIC);
    *progress = (struct rfx_cli_progress){.what = what, .started = now, .drawn = now};
}

/* Writes a time such as "0:42" or "1:02:03". */
static void format_time(double seconds, char text[32]) {
    long long s = seconds < 3.6e9 ? (long long)(seconds + 0.5) : 3600000000LL;
    if (s < 3600)
        (void)snprintf(text, 32, "%lld:%02lld", s / 60, s % 60);
    else
        (void)snprintf(text, 32, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
}

enum detail { DETAIL_PERCENT, DETAIL_TIME, DETAIL_MEMORY, DETAIL_ROWS, DETAIL_RATE };

static void append(char text[TAIL], const char *format, ...) RFX_PRINTF(2, 3);

static void append(char text[TAIL], const char *format, ...) {
    size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text + used, TAIL - used, format, args);
    va_end(args);
}

/* Writes the text after the bar. detail: how many items it shows. */
static void format_tail(const struct rfx_cli_progress_line *line, enum detail detail,
                        char text[TAIL]) {
    double share = (double)line->done / (double)line->total;
    text[0] = '\0';
    append(text, "%3.0f %%", 100.0 * share);
    if (detail >= DETAIL_ROWS && line->rows > 0)
        append(text, "  %lld/%lld rows", (long long)(share * (double)line->rows),
               (long long)line->rows);
    if (detail >= DETAIL_RATE && line->rows > 0 && line->seconds > 0)
        append(text, "  %.1f MPix/s",
               1e-6 * share * (double)line->rows * (double)line->cols / line->seconds);
    if (detail >= DETAIL_TIME && line->done > 0) {
        char left[32];
        format_time(line->seconds / share - line->seconds, left);
        append(text, "  %s left", left);
    }
    if (detail >= DETAIL_MEMORY && line->rss_bytes > 0) {
        char now[RFX_HUMAN_CHARS], peak[RFX_HUMAN_CHARS];
        append(text, "  %s, peak %s", rfx_human_bytes(line->rss_bytes, now),
               rfx_human_bytes(line->peak_bytes, peak));
    }
}

void rfx_cli_progress_format(const struct rfx_cli_progress_line *line, char *text, size_t size) {
    char tail[TAIL], bar[MAX_CELLS + 1];
    int cells = 0;
    for (int detail = DETAIL_RATE; detail >= DETAIL_PERCENT && cells < MIN_CELLS; --detail) {
        format_tail(line, (enum detail)detail, tail);
        cells = line->columns - 1 - (int)(strlen(line->what) + strlen(" [] ") + strlen(tail));
    }
    if (cells < MIN_CELLS) {
        (void)snprintf(text, size, "%s %s", line->what, tail);
        return;
    }
    if (cells > MAX_CELLS) cells = MAX_CELLS;
    int full = (int)((double)line->done / (double)line->total * cells);
    for (int i = 0; i < cells; ++i) bar[i] = i < full ? '#' : '.';
    bar[cells] = '\0';
    (void)snprintf(text, size, "%s [%s] %s", line->what, bar, tail);
}

/* Returns the current resident set in bytes; 0: unknown. */
static size_t resident_bytes(void) {
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long size = 0, pages = 0;
    if (file == NULL) return 0;
    if (fscanf(file, "%lu %lu", &size, &pages) != 2) pages = 0;
    (void)fclose(file);
    return (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
}

static int terminal_columns(void) {
    struct winsize window;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0)
        return DEFAULT_COLUMNS;
    return window.ws_col;
}

bool rfx_cli_progress_is_due(double seconds, double *told) {
    const double first = 10.0, next = 30.0;
    if (seconds < (*told > 0.0 ? *told + next : first)) return false;
    *told = seconds;
    return true;
}

/* Prints a line such as "tiled: 12 %, 1:20 left" if one is due. */
static void tell(struct rfx_cli_progress *progress, double seconds, int64_t done, int64_t total) {
    char left[32];
    double share = (double)done / (double)total;
    if (done <= 0 || !rfx_cli_progress_is_due(seconds, &progress->told)) return;
    format_time(seconds / share - seconds, left);
    rfx_cli_message("%s: %.0f %%, %s left", progress->what, 100.0 * share, left);
}

int rfx_cli_progress_step(void *user, int64_t done, int64_t total) {
    struct rfx_cli_progress *progress = user;
    if (rfx_cli_progress_cancelled()) return 1;
    if (total <= 0 || silent) return 0;
    double now = rfx_clock_seconds(CLOCK_MONOTONIC);
    if (now - progress->started < quiet_seconds || now - progress->drawn < redraw_seconds) return 0;
    progress->drawn = now;
    if (done > total) done = total;
    if (isatty(STDERR_FILENO) == 0) {
        tell(progress, now - progress->started, done, total);
        return 0;
    }
    struct rfx_cli_progress_line line = {
        .what = progress->what,
        .done = done,
        .total = total,
        .rows = progress->rows,
        .cols = progress->cols,
        .seconds = now - progress->started,
        .rss_bytes = resident_bytes(),
        .peak_bytes = rfx_peak_rss_bytes(),
        .columns = terminal_columns(),
    };
    char text[LINE];
    rfx_cli_progress_format(&line, text, sizeof text);
    fprintf(stderr, "\r%s\033[K", text);
    (void)fflush(stderr);
    progress->shown = true;
    return 0;
}

/* Returns whether a signal has come, as is_stop_wanted does. Also redraws the time that the work
 * has lasted. */
static bool is_stop_wanted_here(void *user) {
    struct rfx_cli_progress *progress = user;
    double now = rfx_clock_seconds(CLOCK_MONOTONIC);
    bool soon = now - progress->started < quiet_seconds || now - progress->drawn < redraw_seconds;
    if (silent || soon) return rfx_cli_progress_cancelled();
    progress->drawn = now;
    if (isatty(STDERR_FILENO) == 0) return rfx_cli_progress_cancelled();
    char time[32];
    format_time(now - progress->started, time);
    fprintf(stderr, "\r%.60s, %s so far\033[K", progress->what, time);
    (void)fflush(stderr);
    progress->shown = true;
    return rfx_cli_progress_cancelled();
}

void rfx_cli_progress_watch(struct rfx_cli_progress *progress, const char *what,
                            struct rfx_memory *mem) {
    rfx_cli_progress_start(progress, what);
    rfx_memory_set_stop(mem, is_stop_wanted_here, progress);
}

void rfx_cli_progress_unwatch(struct rfx_cli_progress *progress, struct rfx_memory *mem) {
    rfx_memory_set_stop(mem, is_stop_wanted, NULL);
    rfx_cli_progress_end(progress);
}

void rfx_cli_progress_end(struct rfx_cli_progress *progress) {
    if (progress->shown) fputs("\r\033[K", stderr);
    progress->shown = false;
}
