/* Runs under a hard limit of the address space: a budget is enough on top of what libraries take.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "tests/cli/measured_run.h"

enum { THREADS = 2 };
static const char *const choices[] = {"direct", "openblas"};

/* Arguments of a command about a run of 2 threads; budget 0: untiled, without one. `text` holds the
 * budget. */
static void command(const char **args, const char *name, const char *model, const char *input,
                    const char *conv, int64_t budget, char text[24]) {
    const char *const all[] = {name,     model, input,      "--threads", "2", "--json",
                               "--conv", conv,  "--memory", text,        NULL};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) args[i] = all[i];
    (void)snprintf(text, 24, "%lld", (long long)budget);
    if (budget > 0) return;
    args[8] = "--untiled";
    args[9] = NULL;
}

static int run_limited(const char *model, const char *input, const char *conv, int64_t budget,
                       struct measured_limits limits) {
    char text[24];
    const char *args[MAX_ARGS];
    command(args, "run", model, input, conv, budget, text);
    struct measured_end ended = measured_run(args, NULL, limits);
    json_decref(ended.document);
    return ended.code;
}

/* The address space of a small run while it goes on (VmPeak), without what its plan says that it
 * takes: libraries, stacks, OpenBLAS's buffers and what else is never resident. */
static int64_t library_address_space(const char *model, const char *input, const char *conv,
                                     int64_t budget) {
    char text[24], path[64], line[256];
    const char *args[MAX_ARGS];
    long long kib = 0, largest = 0;
    command(args, "plan", model, input, conv, budget, text);
    int64_t planned = measured_ask(args, NULL, 0, "plan", "peak_bytes");
    command(args, "run", model, input, conv, budget, text);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) measured_become(args, NULL, &measured_no_limits);
    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)child);
    while (waitpid(child, NULL, WNOHANG) == 0) {
        FILE *file = fopen(path, "rb");
        while (file != NULL && fgets(line, sizeof line, file) != NULL)
            if (sscanf(line, "VmPeak: %lld", &kib) == 1 && kib > largest) largest = kib;
        if (file != NULL) (void)fclose(file);
        (void)usleep(1000);
    }
    assert_true(largest > 0);
    return largest * 1024 - planned;
}

/* The most of three: two threads that multiply at the same moment take two buffers of OpenBLAS,
 * 128 MiB of address space each; large layers make sure of that. */
static int64_t measured_libraries(const char *conv) {
    int64_t libraries = 0;
    for (int i = 0; i < 3; i++) {
        int64_t found = library_address_space("resnet18", "synthetic:320x200", conv, 64 * MIB);
        if (found > libraries) libraries = found;
    }
    fprintf(stderr, "test_address_space: %s, %.1f MiB of address space beside the plan's\n", conv,
            (double)libraries / (double)MIB);
    return libraries;
}

static int64_t smallest_budget(const char *model, const char *input, const char *conv) {
    char text[24];
    const char *args[MAX_ARGS];
    command(args, "plan", model, input, conv, MIB, text);
    return measured_ask(args, NULL, EXIT_BUDGET, NULL, "smallest_bytes");
}

/* A budget of B is enough where the system gives the process no more than B on top of the address
 * space of its libraries. Far less is an error, not a crash. */
static void hold_limits(const char *conv) {
    static const struct {
        const char *model, *input;
        int64_t mib;
    } runs[] = {
        {"mobilenet_v2", "synthetic:777x640", 0},  {"mobilenet_v2", "synthetic:777x640", 32},
        {"mobilenet_v2", "synthetic:777x640", 64}, {"squeezenet1_1", "synthetic:1024x1024", 48},
        {"resnet18", "synthetic:320x200", 64},     {"deeplab_v3", "synthetic:400x400", 40},
    };
    /* A little more, for runs that use more of their budget than the measured one. */
    int64_t libraries = measured_libraries(conv) + 4 * MIB;
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        const char *model = runs[i].model, *input = runs[i].input;
        int64_t budget = runs[i].mib * MIB;
        if (budget == 0) budget = smallest_budget(model, input, conv);
        struct measured_limits limits = {libraries + budget, 20};
        int code = run_limited(model, input, conv, budget, limits);
        if (code != 0)
            fail_msg("%s %s %s: exit code %d with %.2f MiB and the libraries", model, input, conv,
                     code, (double)budget / (double)MIB);
    }
    struct measured_limits less = {libraries + 64 * MIB, 20};
    assert_int_equal(run_limited("mobilenet_v2", "synthetic:2048x2048", conv, 0, less),
                     EXIT_SYSTEM);
    assert_true(measured_said("without --memory this needs") &&
                measured_said("the smallest possible"));
}

static void hard_limits_hold(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) hold_limits(choices[i]);
}

/* Whether convolutions have kernels of our own on this processor: else both choices are one. */
static bool has_own_kernels(void) {
    char text[24];
    const char *args[MAX_ARGS];
    command(args, "plan", "resnet18", "synthetic:64x64", "direct", 0, text);
    struct measured_end ended = measured_run(args, NULL, measured_no_limits);
    const char *conv = json_string_value(json_object_get(ended.document, "conv"));
    assert_non_null(conv);
    bool own = strcmp(conv, "direct") == 0;
    json_decref(ended.document);
    return own;
}

/* A run that calls OpenBLAS nowhere takes none of its buffers, which are reserved for each thread
 * where it does. */
static void own_kernels_reserve_nothing(void **state) {
    (void)state;
    if (!has_own_kernels()) skip();
    int64_t direct = measured_libraries("direct"), openblas = measured_libraries("openblas");
    assert_true(openblas - direct >= (int64_t)THREADS * 120 * MIB); /* of 128 and some each */
}

/* OpenBLAS asks for ever for the address space that it starts with. It is loaded when it is chosen
 * alone, and only where there is that much: a limit ends in a result or in words, never in a run
 * that hangs. */
static void small_limits_end_in_words(void **state) {
    const char *const model = "squeezenet1_1", *const input = "synthetic:64x64";
    bool own = has_own_kernels();
    (void)state;
    for (size_t c = 0; c < sizeof choices / sizeof *choices; c++)
        for (int64_t mib = 120; mib <= 1000; mib += 40) {
            struct measured_limits limits = {mib * MIB, 5};
            int code = run_limited(model, input, choices[c], 0, limits);
            bool must_run = own && strcmp(choices[c], "direct") == 0;
            if (code != 0 && (must_run || code != EXIT_SYSTEM || !measured_said("OpenBLAS")))
                fail_msg("%s, %lld MiB: exit code %d", choices[c], (long long)mib, code);
            if (code == 0 && !must_run && mib < 300)
                fail_msg("%lld MiB are enough", (long long)mib);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(hard_limits_hold),
                                       cmocka_unit_test(small_limits_end_in_words),
                                       cmocka_unit_test(own_kernels_reserve_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
