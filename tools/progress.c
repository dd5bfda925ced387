/* Progress bar and signals; see progress.h. */
#include "progress.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { BAR_CELLS = 40 };

static volatile sig_atomic_t stop_requested;

static void request_stop(int signal_number) {
    (void)signal_number;
    stop_requested = 1;
}

void rfx_cli_progress_catch_signals(void) {
    struct sigaction action = {.sa_handler = request_stop, .sa_flags = (int)SA_RESETHAND};
    (void)sigemptyset(&action.sa_mask);
    /* SA_RESETHAND: a second signal ends the process at once */
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

bool rfx_cli_progress_cancelled(void) {
    return stop_requested != 0;
}

double rfx_cli_seconds(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void rfx_cli_progress_start(struct rfx_cli_progress *progress, const char *what) {
    double now = rfx_cli_seconds();
    *progress = (struct rfx_cli_progress){.what = what, .started = now, .drawn = now};
}

int rfx_cli_progress_step(void *user, int64_t done, int64_t total) {
    struct rfx_cli_progress *progress = user;
    if (rfx_cli_progress_cancelled()) return 1;
    if (total <= 0 || isatty(STDERR_FILENO) == 0) return 0;
    double now = rfx_cli_seconds();
    if (now - progress->started < 0.5 || now - progress->drawn < 0.1) return 0;
    progress->drawn = now;
    progress->shown = true;
    char bar[BAR_CELLS + 1];
    int64_t full = (int64_t)((double)done / (double)total * BAR_CELLS);
    for (int i = 0; i < BAR_CELLS; ++i) bar[i] = i < full ? '#' : '.';
    bar[BAR_CELLS] = '\0';
    fprintf(stderr, "\r%s [%s] %3.0f%%  %.0f s", progress->what, bar,
            100.0 * (double)done / (double)total, now - progress->started);
    (void)fflush(stderr);
    return 0;
}

void rfx_cli_progress_end(struct rfx_cli_progress *progress) {
    if (progress->shown) fputs("\r\033[K", stderr);
    progress->shown = false;
}
