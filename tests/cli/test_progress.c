/* The progress line by hand at fixed times, and the bar as a terminal and a pipe get it. */
#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tools/cli/command.h"
#include "tools/cli/progress.h"

#define MIB ((size_t)1 << 20)

void rfx_cli_message(const char *format, ...) {
    (void)format;
}

static void lines_show_what_fits(void **state) {
    (void)state;
    static const struct {
        struct rfx_cli_progress_line line;
        const char *text;
    } cases[] = {
        /* 3000 of 8000 rows of 8192 pixels in 10 s: 2.4576 MPix/s, 16.67 s to come */
        {{"run", 3000, 8000, 8000, 8192, 10.0, 61 * MIB + 200 * 1024, 63 * MIB, 200},
         "run [###############.........................]  38 %  3000/8000 rows  2.5 MPix/s"
         "  0:17 left  61.2 MiB, peak 63.0 MiB"},
        {{"run", 3000, 8000, 8000, 8192, 10.0, 61 * MIB, 63 * MIB, 100},
         "run [########...............]  38 %  3000/8000 rows  2.5 MPix/s  0:17 left  61.0 MiB, "
         "peak 63.0 "
         "MiB"},
        /* the rate goes first */
        {{"run", 3000, 8000, 8000, 8192, 10.0, 61 * MIB, 63 * MIB, 86},
         "run [#######..............]  38 %  3000/8000 rows  0:17 left  61.0 MiB, peak 63.0 "
         "MiB"},
        {{"run", 3000, 8000, 8000, 8192, 10.0, 61 * MIB, 63 * MIB, 70},
         "run [#######..............]  38 %  0:17 left  61.0 MiB, peak 63.0 MiB"},
        {{"run", 3000, 8000, 8000, 8192, 10.0, 61 * MIB, 63 * MIB, 40},
         "run [######..........]  38 %  0:17 left"},
        {{"run", 3000, 8000, 8000, 8192, 10.0, 61 * MIB, 63 * MIB, 25}, "run [####........]  38 %"},
        {{"run", 3000, 8000, 8000, 8192, 10.0, 61 * MIB, 63 * MIB, 10}, "run  38 %"},
        /* no rows, no memory known, an hour to come */
        {{"tiled", 1, 100, 0, 0, 37.0, 0, 0, 60},
         "tiled [...............................]   1 %  1:01:03 left"},
        /* nothing done yet: no time can be told */
        {{"run", 0, 100, 0, 0, 1.0, 0, 0, 30}, "run [.................]   0 %"},
        {{"run", 100, 100, 0, 0, 1.0, 0, 0, 40}, "run [################] 100 %  0:00 left"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[256];
        rfx_cli_progress_format(&cases[i].line, text, sizeof text);
        assert_string_equal(text, cases[i].text);
        if (cases[i].line.columns > 10) assert_true((int)strlen(text) < cases[i].line.columns);
    }
}

static void short_runs_draw_nothing(void **state) {
    (void)state;
    struct rfx_cli_progress progress;
    rfx_cli_progress_start(&progress, "run");
    for (int i = 0; i < 100; i++) assert_int_equal(rfx_cli_progress_step(&progress, i, 100), 0);
    assert_false(progress.shown);
    rfx_cli_progress_end(&progress);
}

static void a_signal_asks_to_stop(void **state) {
    (void)state;
    struct rfx_cli_progress progress;
    rfx_cli_progress_catch_signals();
    rfx_cli_progress_start(&progress, "run");
    assert_false(rfx_cli_progress_cancelled());
    assert_int_equal(rfx_cli_progress_step(&progress, 0, 0), 0);
    assert_int_equal(raise(SIGTERM), 0);
    assert_true(rfx_cli_progress_cancelled());
    assert_int_equal(rfx_cli_progress_step(&progress, 0, 0), 1);
}

/* Reads all that the child writes to fd and waits for it. */
static int collect(pid_t child, int fd, char *text, size_t size) {
    size_t used = 0;
    for (;;) {
        char spare[512];
        bool room = used + 1 < size;
        ssize_t n = read(fd, room ? text + used : spare, room ? size - 1 - used : sizeof spare);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break; /* a terminal whose other side is closed gives EIO */
        if (room) used += (size_t)n;
    }
    text[used] = '\0';
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void run_child(void) {
    int null = open("/dev/null", O_WRONLY);
    (void)dup2(null, STDOUT_FILENO);
    (void)execl(RFX_PROGRAM, RFX_PROGRAM, "run", "mobilenet_v2", "synthetic:6144x2048", "--bands",
                "8", "--threads", "1", (char *)NULL);
    _exit(127);
}

/* Forks a child on a terminal of so many columns: as fork. Skips where there are none. */
static pid_t fork_on_terminal(unsigned short columns, int *fd) {
    const struct winsize window = {.ws_row = 24, .ws_col = columns};
    pid_t child = forkpty(fd, NULL, NULL, &window);
    if (child < 0 && access("/dev/pts/ptmx", F_OK) != 0) {
        fprintf(stderr, "test_progress: no pseudo terminals here: /dev/pts is not mounted\n");
        skip();
    }
    assert_true(child >= 0);
    return child;
}

static void a_terminal_gets_the_bar(void **state) {
    (void)state;
    static char text[1 << 16];
    int fd;
    pid_t child = fork_on_terminal(120, &fd);
    if (child == 0) run_child();
    assert_int_equal(collect(child, fd, text, sizeof text), 0);
    (void)close(fd);
    assert_non_null(strstr(text, "\rrun [#"));
    assert_non_null(strstr(text, "/6144 rows  "));
    assert_non_null(strstr(text, " MPix/s  0:"));
    assert_non_null(strstr(text, " left  "));
    assert_non_null(strstr(text, " MiB, peak "));
    assert_string_equal(text + strlen(text) - 4, "\r\033[K"); /* and cleared at the end */
}

/* Runs the program on a terminal of 80 columns, which gets both its streams. */
static int on_terminal(const char *const args[], char *text, size_t size) {
    int fd;
    pid_t child = fork_on_terminal(80, &fd);
    if (child == 0) {
        (void)execv(RFX_PROGRAM, (char *const *)(uintptr_t)args);
        _exit(127);
    }
    int status = collect(child, fd, text, size);
    (void)close(fd);
    return status;
}

/* Work that lasts until its line has been drawn, however fast the machine is. */
static void work_until_shown(void) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_cli_progress progress;
    if (mem == NULL) _exit(EXIT_FAILURE);
    rfx_cli_progress_watch(&progress, "looking at all plans", mem);
    const struct timespec moment = {.tv_nsec = 1000000};
    while (!progress.shown && !rfx_memory_is_stopped(mem)) (void)nanosleep(&moment, NULL);
    rfx_cli_progress_unwatch(&progress, mem);
    rfx_memory_free(mem);
    fputs("done", stderr);
    _exit(EXIT_SUCCESS);
}

/* Work whose end is not known says how long it has lasted. */
static void a_terminal_sees_that_work_goes_on(void **state) {
    (void)state;
    static char text[1 << 16];
    int fd;
    pid_t child = fork_on_terminal(80, &fd);
    if (child == 0) work_until_shown();
    assert_int_equal(collect(child, fd, text, sizeof text), 0);
    (void)close(fd);
    assert_non_null(strstr(text, "\rlooking at all plans, 0:0"));
    assert_non_null(strstr(text, " so far\033[K\r\033[Kdone")); /* and cleared at the end */
}

/* A command that plans for seconds says so, and is stopped here as soon as it has. */
static void a_command_says_that_it_plans(void **state) {
    static const char said[] = "\rlooking at all plans, 0:0";
    (void)state;
    char text[4096];
    size_t used = 0;
    int fd, status = -1;
    pid_t child = fork_on_terminal(80, &fd);
    if (child == 0) {
        (void)execl(RFX_PROGRAM, RFX_PROGRAM, "curve", "real_esrgan", "--size", "1024x1024",
                    "--pareto", (char *)NULL);
        _exit(127);
    }
    for (text[0] = '\0'; used + 1 < sizeof text && strstr(text, said) == NULL;) {
        ssize_t n = read(fd, text + used, sizeof text - 1 - used);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        text[used += (size_t)n] = '\0';
    }
    (void)kill(child, SIGTERM);
    (void)close(fd);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (strstr(text, said) == NULL) fail_msg("it said: %s", text);
}

/* No row of a table is wider than the terminal. */
static void tables_fit_a_terminal(void **state) {
    static const char *const args[] = {RFX_PROGRAM, "plan",     "unet_instance", "--size",
                                       "512x512",   "--memory", "100MiB",        NULL};
    static char text[1 << 16];
    (void)state;
    assert_int_equal(on_terminal(args, text, sizeof text), 0);
    char *row = strstr(text, "runners-up");
    assert_non_null(row);
    assert_non_null(strstr(row, "..\r\n"));
    for (char *end; (end = strstr(row, "\r\n")) != NULL; row = end + 2)
        if (end - row > 80) fail_msg("%ld columns: %.100s", (long)(end - row), row);
}

static void a_pipe_stays_quiet(void **state) {
    (void)state;
    char text[4096];
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)dup2(fds[1], STDERR_FILENO);
        (void)close(fds[0]);
        (void)close(fds[1]);
        run_child();
    }
    (void)close(fds[1]);
    assert_int_equal(collect(child, fds[0], text, sizeof text), 0);
    (void)close(fds[0]);
    assert_string_equal(text, "");
}

/* Where there is no terminal: a line after 10 seconds, then one every 30. */
static void long_work_tells_of_itself(void **state) {
    double told = 0.0;
    int lines = 0;
    (void)state;
    for (int tenths = 0; tenths < 1000; tenths++)
        lines += rfx_cli_progress_is_due(0.1 * tenths, &told);
    assert_int_equal(lines, 3); /* after 10, 40 and 70 s */
    assert_true(told > 69.9 && told < 70.3);
    told = 0.0;
    assert_false(rfx_cli_progress_is_due(9.9, &told));
    assert_true(rfx_cli_progress_is_due(100.0, &told)); /* a step that took long counts once */
    assert_false(rfx_cli_progress_is_due(129.0, &told));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_show_what_fits),
        cmocka_unit_test(short_runs_draw_nothing),
        cmocka_unit_test(a_terminal_gets_the_bar),
        cmocka_unit_test(a_pipe_stays_quiet),
        cmocka_unit_test(long_work_tells_of_itself),
        cmocka_unit_test(a_terminal_sees_that_work_goes_on),
        cmocka_unit_test(a_command_says_that_it_plans),
        cmocka_unit_test(tables_fit_a_terminal),
        cmocka_unit_test(a_signal_asks_to_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
