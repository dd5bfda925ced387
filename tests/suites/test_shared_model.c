/* One model in eight threads: plans of it at three sizes under three budgets are made and run by
 * all threads at a time, and some runs are stopped. A run that ends well gives the bits of a single
 * run. With ThreadSanitizer (preset tsan) nothing that threads share may be touched without order.
 *
 * RFX_CASES (default 1000) runs are to end well in all, drawn from RFX_SEED. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "rfexec/onnx/export/onnx_export.h"
#include "rfexec/run/model.h"
#include "tests/support/run/network_run.h"
#include "tests/support/test_util.h"

enum { WORKERS = 8, SIZES = 3, BUDGETS = 3, PLANS = SIZES * BUDGETS, RUNS_OF_A_RUNNER = 4 };
static const char model_file[] = "shared_model.onnx";
static const int64_t sizes[SIZES][2] = {{33, 39}, {64, 48}, {41, 97}};

/* What all threads read. */
static struct {
    struct rfx_model *model;
    struct rfx_model_plan *plans[PLANS];
    float *values[SIZES];
    struct network_outputs wanted[SIZES]; /* of an untiled run of a network alone */
} shared;

struct worker {
    struct test_rng rng;
    atomic_llong *left; /* runs of all threads that are still to end well */
    int64_t done, cancelled, wrong;
    bool stops; /* the run that goes on is to be stopped */
    char words[300];
};

static void export_model(void) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = test_builtin(mem, "squeezenet1_1", 64, 64, 5, NULL);
    struct rfx_error err = {{0}};
    if (rfx_onnx_export(graph, model_file, &err) != RFX_OK) fail_msg("%s", err.text);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

/* Size k, alone, without a budget: the wanted bits. Returns the least budget of one thread. */
static size_t run_alone(int k) {
    struct rfx_network *net = network_open_sized(model_file, sizes[k][0], sizes[k][1]);
    const struct rfx_run_options options = network_run_options(0, 1);
    struct rfx_why why;
    shared.values[k] = network_random_image(3, sizes[k][0], sizes[k][1]);
    shared.wanted[k] = network_outputs_for(net);
    network_check(rfx_network_run_values(net, shared.values[k], shared.wanted[k].values,
                                         shared.wanted[k].n, &options, &why),
                  &why);
    size_t least = network_least_bytes(net, NULL, 1);
    rfx_network_free(net);
    return least;
}

static int make_plans(void **state) {
    (void)state;
    struct rfx_why why;
    export_model();
    network_check(rfx_model_open(model_file, NULL, &shared.model, &why), &why);
    for (int k = 0; k < SIZES; k++) {
        size_t least = run_alone(k);
        const size_t budgets[BUDGETS] = {least, least + least / 4, 0};
        for (int b = 0; b < BUDGETS; b++) {
            const struct rfx_run_options options =
                network_run_options(budgets[b], budgets[b] == 0 ? 2 : 1);
            network_check(rfx_model_plan_create(shared.model, sizes[k][0], sizes[k][1], NULL,
                                                &options, &shared.plans[k * BUDGETS + b], &why),
                          &why);
        }
    }
    return 0;
}

static int forget_plans(void **state) {
    (void)state;
    for (int p = 0; p < PLANS; p++) rfx_model_plan_free(shared.plans[p]);
    rfx_model_free(shared.model);
    for (int k = 0; k < SIZES; k++) {
        network_outputs_free(&shared.wanted[k]);
        free(shared.values[k]);
    }
    return unlink(model_file);
}

static int is_stopped(void *user) {
    return ((struct worker *)user)->stops;
}

static void note(struct worker *w, const char *what, int size, const char *why) {
    if (w->wrong++ == 0)
        (void)snprintf(w->words, sizeof w->words, "%s, size %d: %.200s", what, size, why);
}

static void run_once(struct worker *w, struct rfx_runner *runner, int size, float *got) {
    const struct network_outputs *want = &shared.wanted[size];
    size_t bytes = (size_t)want->elems[0] * sizeof *got;
    const struct rfx_source source = {.size = sizeof source, .values = shared.values[size]};
    struct rfx_run_options options = network_run_options(0, 1);
    struct rfx_why why;
    w->stops = test_rng_int(&w->rng, 0, 7) == 0;
    options.stop = is_stopped;
    options.user = w;
    memset(got, 0xff, bytes);
    enum rfx_code code = rfx_runner_run(runner, &source, &got, 1, &options, &why);
    if (w->stops && code == RFX_CODE_CANCELLED)
        w->cancelled++;
    else if (w->stops || code != RFX_CODE_OK)
        note(w, w->stops ? "not stopped" : "a failure", size, why.text);
    else if (memcmp(got, want->values[0], bytes) != 0)
        note(w, "other bits", size, "");
    else
        w->done++;
    if (!w->stops) (void)atomic_fetch_sub(w->left, 1);
}

/* Some runs of one plan: one of those that all share, or now and then a new one of the model. */
static void run_plan(struct worker *w) {
    int size = (int)test_rng_int(&w->rng, 0, SIZES - 1), budget = (int)test_rng_int(&w->rng, 0, 2);
    struct rfx_model_plan *own = NULL, *plan = shared.plans[size * BUDGETS + budget];
    struct rfx_runner *runner = NULL;
    struct rfx_why why = {{0}};
    float *got = test_floats(shared.wanted[size].elems[0]);
    enum rfx_code code = RFX_CODE_OK;
    if (test_rng_int(&w->rng, 0, 15) == 0) {
        const struct rfx_run_options options = network_run_options(0, 1);
        code = rfx_model_plan_create(shared.model, sizes[size][0], sizes[size][1], NULL, &options,
                                     &own, &why);
        plan = own;
    }
    if (code == RFX_CODE_OK) code = rfx_model_plan_runner(plan, &runner, &why);
    if (code != RFX_CODE_OK) note(w, "no runner", size, why.text);
    rfx_model_plan_free(own); /* the runner keeps it */
    for (int i = 0; runner != NULL && i < RUNS_OF_A_RUNNER; i++) run_once(w, runner, size, got);
    rfx_runner_free(runner);
    free(got);
}

static void *work(void *argument) {
    struct worker *w = argument;
    while (atomic_load(w->left) > 0 && w->wrong == 0) run_plan(w);
    return NULL;
}

static void eight_threads_give_the_bits_of_one(void **state) {
    (void)state;
    int64_t seed = test_env_int("RFX_SEED", 1), done = 0, cancelled = 0;
    atomic_llong left;
    struct worker workers[WORKERS];
    pthread_t threads[WORKERS];
    int64_t cases = test_env_int("RFX_CASES", 1000);
    atomic_init(&left, cases);
    for (int i = 0; i < WORKERS; i++) {
        workers[i] =
            (struct worker){.rng = test_rng_make((uint64_t)(seed * WORKERS + i)), .left = &left};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < WORKERS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < WORKERS; i++) {
        if (workers[i].wrong != 0) fail_msg("thread %d: %s", i, workers[i].words);
        done += workers[i].done;
        cancelled += workers[i].cancelled;
    }
    fprintf(stderr, "test_shared_model: %lld runs, %lld stopped, seed %lld\n", (long long)done,
            (long long)cancelled, (long long)seed);
    assert_true(done >= cases);
    assert_true(cancelled > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(eight_threads_give_the_bits_of_one)};
    return cmocka_run_group_tests(tests, make_plans, forget_plans);
}
