/* Beginning, speaking and ending. */
#include "tools/cli/program.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "layers/core/printable.h"
#include "rfexec/api/api_support.h"
#include "tools/cli/command.h"
#include "tools/cli/progress.h"
#include "tools/cli/report.h"

static void (*listener)(const char *text);

void rfx_program_hear(void (*hear)(const char *text)) {
    listener = hear;
}

void rfx_cli_message(const char *format, ...) {
    static char text[8192], shown[4 * sizeof text];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    rfx_printable(text, shown, sizeof shown);
    if (listener != NULL)
        listener(shown);
    else
        fprintf(stderr, "rfexec: %s\n", shown);
}

int rfx_cli_fail(enum rfx_status status, const struct rfx_error *err) {
    const char *words = err->text[0] != '\0' ? err->text : rfx_status_name(status);
    /* code that knows only that it got no memory: none is given once the work is to stop */
    if (status == RFX_STATUS_OUT_OF_MEMORY && rfx_cli_progress_cancelled())
        status = RFX_STATUS_CANCELLED;
    if (status == RFX_STATUS_CANCELLED) words = "stopped by a signal"; /* nothing else stops it */
    rfx_cli_message("%s", words);
    enum rfx_code code = rfx_code_of_status(status);
    return code == RFX_CODE_CANCELLED ? RFX_EXIT_SYSTEM : (int)code;
}

/* Starts the program again with a short spin before a waiting thread sleeps, unless the user has
 * chosen: the OpenMP runtime reads that when it is loaded. Its own default spins for so long that
 * on a machine with other work a streamed run, with its many short parallel loops, took 52 s, not 4
 * s. */
static void wait_calmly(char **argv) {
    if (getenv("GOMP_SPINCOUNT") != NULL || getenv("OMP_WAIT_POLICY") != NULL) return;
    if (setenv("GOMP_SPINCOUNT", "2000", 1) != 0) return;
    (void)execv("/proc/self/exe", argv); /* returns only when it fails: then as it is */
}

/* Libraries end the process with exit(1) when they have no memory: the OpenMP runtime, Fortran's,
 * some of them before main. That code says that a difference was found, so it is made the right
 * one.
 */
static bool returned; /* from main's work: the code is ours */

void rfx_program_ends_by_itself(void) {
    returned = true;
}

static void end_for_library(void) {
    static const char words[] = "rfexec: a library had to end the program\n";
    if (returned) return;
    ssize_t written = write(STDERR_FILENO, words, sizeof words - 1);
    (void)written;
    _exit(RFX_EXIT_SYSTEM);
}

static void watch_exit(void) {
    (void)atexit(end_for_library);
}

/* Called before any library's own start. */
__attribute__((section(".preinit_array"), used)) static void (*const watch)(void) = watch_exit;

void rfx_program_begin(char **argv) {
    wait_calmly(argv);
    rfx_report_watch_memory();
}

int rfx_program_end(int code) {
    /* A result that did not reach its reader is a failure. */
    if (fflush(stdout) != 0 || ferror(stdout) != 0) {
        rfx_cli_message("cannot write the result to standard output");
        if (code == RFX_EXIT_DONE) code = RFX_EXIT_SYSTEM;
    }
    if (code == RFX_EXIT_DONE && rfx_report_lacks_memory()) {
        rfx_cli_message("out of memory for a part of what is printed");
        code = RFX_EXIT_SYSTEM;
    }
    returned = true;
    return code;
}
