#include "tests/cli/measured_run.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

const struct measured_limits measured_no_limits = {0, 0};

void measured_become(const char *const *args, const char *core,
                     const struct measured_limits *limits) {
    struct rlimit space = {(rlim_t)limits->address_bytes, (rlim_t)limits->address_bytes};
    struct rlimit cpu = {(rlim_t)limits->cpu_seconds, (rlim_t)limits->cpu_seconds};
    if (freopen("measured_out.txt", "wb", stdout) == NULL ||
        freopen("measured_err.txt", "wb", stderr) == NULL)
        _exit(125);
    if (core != NULL && setenv("OPENBLAS_CORETYPE", core, 1) != 0) _exit(125);
    /* glibc asks for 128 MiB at once for every thread's heap, and does without. */
    if (setenv("MALLOC_ARENA_MAX", "1", 1) != 0) _exit(125);
    if (limits->address_bytes > 0 &&
        (setrlimit(RLIMIT_AS, &space) != 0 || setrlimit(RLIMIT_CPU, &cpu) != 0))
        _exit(125);
    char *argv[MAX_ARGS + 2] = {strdup(RFX_PROGRAM)};
    for (int i = 0; args[i] != NULL && i < MAX_ARGS; i++) argv[i + 1] = strdup(args[i]);
    (void)execv(RFX_PROGRAM, argv);
    _exit(126);
}

struct measured_end measured_run(const char *const *args, const char *core,
                                 struct measured_limits limits) {
    struct measured_end ended = {0};
    struct rusage usage;
    int status = 0;
    (void)fflush(stdout);
    (void)fflush(stderr);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) measured_become(args, core, &limits);
    while (wait4(child, &status, 0, &usage) < 0) assert_int_equal(errno, EINTR);
    ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    ended.peak_bytes = (int64_t)usage.ru_maxrss * 1024;
    ended.document = json_load_file("measured_out.txt", 0, NULL);
    return ended;
}

bool measured_said(const char *words) {
    FILE *file = fopen("measured_err.txt", "rb");
    char line[512];
    bool found = false;
    if (file == NULL) return false;
    while (!found && fgets(line, sizeof line, file) != NULL) found = strstr(line, words) != NULL;
    (void)fclose(file);
    return found;
}

void measured_print(const char *const *args, const char *core) {
    fprintf(stderr, "  %s%s rfexec", core != NULL ? "OPENBLAS_CORETYPE=" : "",
            core != NULL ? core : "");
    for (int i = 0; args[i] != NULL; i++) fprintf(stderr, " %s", args[i]);
    fputc('\n', stderr);
    FILE *file = fopen("measured_err.txt", "rb");
    if (file == NULL) return;
    for (int c = fgetc(file); c != EOF; c = fgetc(file)) fputc(c, stderr);
    (void)fclose(file);
}

/* The integer at "a.b" of a document, -1 when there is none. */
static int64_t integer_at(const json_t *document, const char *object, const char *key) {
    const json_t *at = object == NULL ? document : json_object_get(document, object);
    const json_t *value = json_object_get(at, key);
    return json_is_integer(value) ? json_integer_value(value) : -1;
}

int64_t measured_ask(const char *const *args, const char *core, int code, const char *object,
                     const char *key) {
    struct measured_end ended = measured_run(args, core, measured_no_limits);
    int64_t value = integer_at(ended.document, object, key);
    json_decref(ended.document);
    if (ended.code == code && value >= 0) return value;
    measured_print(args, core);
    fail_msg("exit code %d, expected %d with %s", ended.code, code, key);
    return -1;
}

int64_t measured_own_peak(void) {
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return (int64_t)usage.ru_maxrss * 1024;
}

int64_t measured_within(const char *const *args, const char *core, int64_t bound) {
    struct measured_end ended = measured_run(args, core, measured_no_limits);
    int64_t measured = integer_at(ended.document, "measured", "peak_rss_bytes");
    json_decref(ended.document);
    if (ended.code != 0 || measured <= 0 || measured > bound || ended.peak_bytes > bound) {
        measured_print(args, core);
        fail_msg("exit code %d; peak %.2f MiB by the program, %.2f MiB by the kernel, budget %.2f",
                 ended.code, (double)measured / (double)MIB, (double)ended.peak_bytes / (double)MIB,
                 (double)bound / (double)MIB);
    }
    /* They are the same account: far apart would mean that one of them is not what it says. */
    assert_true(llabs(measured - ended.peak_bytes) <= MIB);
    return measured > ended.peak_bytes ? measured : ended.peak_bytes;
}
