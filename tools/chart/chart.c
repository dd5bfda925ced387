/* Checks a chart and has gnuplot draw it; see chart.h.
 *
 * gnuplot gets three files as its standard streams: the script (in memory), the temporary file that
 * becomes the chart, and its messages (in memory). There is no pipe to fill up or to break, and no
 * shell: what the chart says cannot become a command. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create */
#endif
#include "tools/chart/chart.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rfexec/output/output_file.h"
#include "tools/chart/chart_script.h"

extern char **environ;

static bool ends_with(const char *path, const char *suffix) {
    size_t n = strlen(path), m = strlen(suffix);
    return n > m && strcasecmp(path + n - m, suffix) == 0;
}

bool rfx_chart_name_ok(const char *path) {
    return strcmp(path, "-") == 0 || ends_with(path, ".svg") || ends_with(path, ".png");
}

/* How many points can be drawn; -1: a value does not fit its logarithmic axis. */
static int64_t drawable_points(const struct rfx_chart *chart) {
    int64_t count = 0;
    for (int k = 0; k < chart->n_series; ++k) {
        const struct rfx_chart_series *series = &chart->series[k];
        for (int i = 0; i < series->n; ++i) {
            double x = series->x != NULL ? series->x[i] : i, y = series->y[i];
            if (!isfinite(x) || !isfinite(y)) continue;
            if ((chart->x.log && x <= 0) || (chart->y.log && y <= 0)) return -1;
            ++count;
        }
    }
    return count;
}

static enum rfx_status check(const struct rfx_chart *panels, int n, const char *path,
                             struct rfx_error *err) {
    if (!rfx_chart_name_ok(path))
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "chart '%s': the name must end in .svg or .png", path);
    for (int i = 0; i < n; ++i) {
        int64_t points = drawable_points(&panels[i]);
        if (points < 0)
            return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                            "chart '%s': a logarithmic axis cannot show values of 0 or less", path);
        if (points == 0)
            return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "chart '%s': nothing to draw", path);
    }
    return RFX_OK;
}

/* The script as an open file at its beginning; -1 with errno set. */
static int script_open(const struct rfx_chart *panels, int n, bool png) {
    int fd = memfd_create("chart script", MFD_CLOEXEC);
    if (fd < 0) return -1;
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    FILE *stream = copy < 0 ? NULL : fdopen(copy, "w");
    bool ok = stream != NULL;
    if (ok) {
        rfx_chart_script(panels, n, png, stream);
        ok = ferror(stream) == 0;
        if (fclose(stream) != 0) ok = false;
        ok = ok && lseek(fd, 0, SEEK_SET) == 0;
    } else if (copy >= 0) {
        (void)close(copy);
    }
    if (ok) return fd;
    (void)close(fd);
    return -1;
}

/* The first line of gnuplot's messages that says something went wrong, into text. */
static void read_reason(int fd, char *text, size_t size) {
    char buffer[1024];
    ssize_t n = pread(fd, buffer, sizeof buffer - 1, 0);
    buffer[n > 0 ? n : 0] = '\0';
    char *save = NULL, *line = strtok_r(buffer, "\n", &save);
    const char *best = line;
    for (; line != NULL; line = strtok_r(NULL, "\n", &save))
        if (strstr(line, "line ") != NULL || strstr(line, "rror") != NULL) best = line;
    (void)snprintf(text, size, "%s", best != NULL ? best : "it said nothing");
}

/* Waits for a child, or ends it when the work is to stop: false then. */
static bool wait_for(pid_t pid, const struct rfx_memory *mem, int *code) {
    const struct timespec moment = {0, 5 * 1000 * 1000};
    for (;;) {
        pid_t ended = waitpid(pid, code, WNOHANG);
        if (ended == pid || (ended < 0 && errno != EINTR)) return true;
        if (rfx_memory_is_stopped(mem)) break;
        (void)nanosleep(&moment, NULL);
    }
    (void)kill(pid, SIGKILL);
    while (waitpid(pid, code, 0) < 0)
        if (errno != EINTR) break;
    return false;
}

/* Runs gnuplot with these standard streams and waits for it. */
static enum rfx_status run_gnuplot(int script, int picture, const struct rfx_memory *mem,
                                   const char *path, struct rfx_error *err) {
    char name[] = "gnuplot", no_settings[] = "-d";
    char *argv[] = {name, no_settings, NULL};
    enum rfx_status status = RFX_OK;
    pid_t pid;
    int code = 0, messages = memfd_create("gnuplot messages", MFD_CLOEXEC);
    posix_spawn_file_actions_t actions;
    if (messages < 0 || posix_spawn_file_actions_init(&actions) != 0) {
        if (messages >= 0) (void)close(messages);
        return rfx_fail(err, RFX_STATUS_IO, "chart '%s': %s", path, strerror(errno));
    }
    int why = posix_spawn_file_actions_adddup2(&actions, script, 0);
    if (why == 0) why = posix_spawn_file_actions_adddup2(&actions, picture, 1);
    if (why == 0) why = posix_spawn_file_actions_adddup2(&actions, messages, 2);
    if (why == 0) why = posix_spawnp(&pid, name, &actions, NULL, argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    if (why == ENOENT) {
        status = rfx_fail(err, RFX_STATUS_IO,
                          "chart '%s': charts are drawn by gnuplot, which is not installed "
                          "(Debian package gnuplot-nox)",
                          path);
    } else if (why != 0) {
        status = rfx_fail(err, RFX_STATUS_IO, "chart '%s': gnuplot cannot be started: %s", path,
                          strerror(why));
    } else {
        if (!wait_for(pid, mem, &code)) status = rfx_memory_check_stop(mem, err);
        char reason[256];
        read_reason(messages, reason, sizeof reason);
        struct stat info;
        bool empty = fstat(picture, &info) != 0 || (S_ISREG(info.st_mode) && info.st_size == 0);
        bool stopped = status != RFX_OK;
        if (!stopped && (!WIFEXITED(code) || WEXITSTATUS(code) != 0 || empty))
            status = rfx_fail(err, RFX_STATUS_IO, "chart '%s': gnuplot failed: %s", path, reason);
    }
    (void)close(messages);
    return status;
}

enum rfx_status rfx_chart_write(const struct rfx_chart *chart, struct rfx_memory *mem,
                                const char *path, struct rfx_error *err) {
    return rfx_chart_write_panels(chart, 1, mem, path, err);
}

enum rfx_status rfx_chart_write_panels(const struct rfx_chart *panels, int n,
                                       struct rfx_memory *mem, const char *path,
                                       struct rfx_error *err) {
    enum rfx_status status = check(panels, n, path, err);
    if (status != RFX_OK) return status;
    struct rfx_output_file *file = NULL;
    status = rfx_output_file_open(mem, path, &file, err);
    if (status != RFX_OK) return rfx_fail_within(err, status, "chart");
    int script = script_open(panels, n, ends_with(path, ".png"));
    if (script < 0)
        status = rfx_fail(err, RFX_STATUS_IO, "chart '%s': %s", path, strerror(errno));
    else
        status = run_gnuplot(script, rfx_output_file_descriptor(file), mem, path, err);
    if (status == RFX_OK) status = rfx_output_file_commit(file, err);
    if (script >= 0) (void)close(script);
    rfx_output_file_free(file);
    return status;
}
