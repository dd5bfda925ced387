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

/* Exit code of a run of 2 threads with the budget (0: untiled, without one) under the limits. */
static int run_limited(const char *model, const char *input, int64_t budget,
                       struct measured_limits limits) {
    char text[24];
    const char *args[MAX_ARGS] = {"run", model, input, "--threads", "2", "--json", "--untiled"};
    (void)snprintf(text, sizeof text, "%lld", (long long)budget);
    if (budget > 0) {
        args[6] = "--memory";
        args[7] = text;
    }
    struct measured_end ended = measured_run(args, NULL, limits);
    json_decref(ended.document);
    return ended.code;
}

/* The address space of a small run while it goes on (VmPeak), without its own budget: libraries,
 * stacks, OpenBLAS's buffers and what else is never resident. */
static int64_t library_address_space(const char *model, const char *input, int64_t budget) {
    char text[24], path[64], line[256];
    const char *args[] = {"run", model, input, "--memory", text, "--threads", "2", NULL};
    long long kib = 0, largest = 0;
    (void)snprintf(text, sizeof text, "%lld", (long long)budget);
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
    return largest * 1024 - budget;
}

static int64_t smallest_budget(const char *model, const char *input) {
    const char *args[] = {"plan",      model, input,    "--memory", "1MiB",
                          "--threads", "2",   "--json", NULL};
    return measured_ask(args, NULL, EXIT_BUDGET, NULL, "smallest_bytes");
}

/* A budget of B is enough where the system gives the process no more than B on top of the address
 * space of its libraries. Far less is an error, not a crash. */
static void hard_limits_hold(void **state) {
    static const struct {
        const char *model, *input;
        int64_t mib;
    } runs[] = {
        {"mobilenet_v2", "synthetic:777x640", 0},  {"mobilenet_v2", "synthetic:777x640", 32},
        {"mobilenet_v2", "synthetic:777x640", 64}, {"squeezenet1_1", "synthetic:1024x1024", 48},
        {"resnet18", "synthetic:320x200", 64},     {"deeplab_v3", "synthetic:400x400", 40},
    };
    (void)state;
    /* Two threads that multiply at the same moment take two buffers of OpenBLAS, 128 MiB of address
     * space each; large layers make sure of that. The rest is for runs that use more of their
     * budget than this one. */
    int64_t libraries = 0;
    for (int i = 0; i < 3; i++) {
        int64_t found = library_address_space("resnet18", "synthetic:320x200", 64 * MIB) + 4 * MIB;
        if (found > libraries) libraries = found;
    }
    fprintf(stderr, "test_address_space: %.1f MiB of address space beside the budget\n",
            (double)libraries / (double)MIB);
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        const char *model = runs[i].model, *input = runs[i].input;
        int64_t budget = runs[i].mib * MIB;
        if (budget == 0) budget = smallest_budget(model, input);
        struct measured_limits limits = {libraries + budget, 20};
        int code = run_limited(model, input, budget, limits);
        if (code != 0)
            fail_msg("%s %s: exit code %d with %.2f MiB and the libraries", model, input, code,
                     (double)budget / (double)MIB);
    }
    struct measured_limits less = {libraries + 64 * MIB, 20};
    assert_int_equal(run_limited("mobilenet_v2", "synthetic:2048x2048", 0, less), EXIT_SYSTEM);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(hard_limits_hold)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
