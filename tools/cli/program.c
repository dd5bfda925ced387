/* Start, messages and end of the programs; see program.h. */
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
    /* After a signal the allocator refuses memory, and some code reports that as out of memory. */
    if (status == RFX_STATUS_OUT_OF_MEMORY && rfx_cli_progress_cancelled())
        status = RFX_STATUS_CANCELLED;
    if (status == RFX_STATUS_CANCELLED) words = "stopped by a signal"; /* nothing else stops it */
    rfx_cli_message("%s", words);
    enum rfx_code code = rfx_code_of_status(status);
    return code == RFX_CODE_CANCELLED ? RFX_EXIT_SYSTEM : (int)code;
}

/* Executes the program again with GOMP_SPINCOUNT set, so that a waiting OpenMP thread spins only
 * shortly before it sleeps. Does nothing when the user has set the variable. The program must start
 * again because the OpenMP runtime reads the variable when it is loaded. The runtime's default spin
 * is too long on a busy machine: a streamed run, which has many short parallel loops, took 52 s
 * instead of 4 s. */
static void wait_calmly(char **argv) {
    if (getenv("GOMP_SPINCOUNT") != NULL || getenv("OMP_WAIT_POLICY") != NULL) return;
    if (setenv("GOMP_SPINCOUNT", "2000", 1) != 0) return;
    (void)execv("/proc/self/exe", argv); /* returns only on failure: then go on without */
}

/* The OpenMP and Fortran runtimes call exit(1) when they have no memory, some of them before main.
 * Exit code 1 of this program means that a difference was found, so such an exit gets the code
 * RFX_EXIT_SYSTEM. */
static bool returned; /* the program itself chose the exit code */

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

/* The dynamic linker calls watch_exit before the initialisers of any library. */
__attribute__((section(".preinit_array"), used)) static void (*const watch)(void) = watch_exit;

void rfx_program_begin(char **argv) {
    wait_calmly(argv);
    rfx_report_watch_memory();
}

int rfx_program_end(int code) {
    /* The run failed if its result could not be written to standard output. */
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
