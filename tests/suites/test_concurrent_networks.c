/* Two networks of the public header run at the same time in two threads, on one model file or on
 * its bytes in memory, by single calls and by runners, with budgets, threads and sources at random,
 * while a third thread stops one of them again and again: a call either ends with the bits that it
 * gives alone, or is CANCELLED. With ThreadSanitizer (preset tsan) nothing that threads share may
 * be touched without order.
 *
 * RFX_CASES (default 40) runs are to end well in each thread, drawn from RFX_SEED. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "rfexec/run/model.h"
#include "tests/support/makers/png_maker.h"
#include "tests/support/run/network_run.h"
#include "tests/support/test_util.h"

enum { WORKERS = 2, SOURCES = 3, BUDGETS = 3, MOST_THREADS = 3, ROWS = 33, COLUMNS = 39 };
static const char model_file[] = "concurrent_networks.onnx";

/* What may be run, and what it must give: made by one thread, then only read. */
static struct {
    float *values;
    const char *files[SOURCES];             /* NULL: the values */
    struct network_outputs wanted[SOURCES]; /* of an untiled run alone */
    size_t budgets[MOST_THREADS][BUDGETS];  /* the least, some, none */
    void *bytes;                            /* of the model file */
    size_t n_bytes;
} cases = {.files = {NULL, "concurrent_networks.npy", "concurrent_networks.png"}};

struct worker {
    struct test_rng rng;
    int64_t runs;               /* that are to end well */
    atomic_bool stop_wanted;    /* set by the third thread, taken back by this one */
    atomic_bool busy;           /* in a call */
    struct network_outputs got; /* room */
    int64_t done, cancelled, wrong;
    char words[300]; /* of the first mistake */
};

static void nap_us(int64_t us) {
    struct timespec t = {us / 1000000, us % 1000000 * 1000};
    while (nanosleep(&t, &t) != 0) {
    }
}

static void export_model(void) {
    struct rfx_memory *mem = rfx_memory_create(0);
    struct rfx_graph *graph = test_builtin(mem, "squeezenet1_1", ROWS, COLUMNS, 5, NULL);
    struct rfx_error err = {{0}};
    if (rfx_onnx_export(graph, model_file, &err) != RFX_OK) fail_msg("%s", err.text);
    rfx_graph_free(graph);
    rfx_memory_free(mem);
}

static enum rfx_code run_source(struct rfx_network *net, int source, struct network_outputs *got,
                                const struct rfx_run_options *options, struct rfx_why *why) {
    if (cases.files[source] == NULL)
        return rfx_network_run_values(net, cases.values, got->values, got->n, options, why);
    return rfx_network_run_file(net, cases.files[source], got->values, got->n, options, why);
}

/* Plans and packs once for two runs; what the first one gave is written over. */
static enum rfx_code run_by_runner(struct rfx_network *net, struct network_outputs *got,
                                   const struct rfx_run_options *options, struct rfx_why *why) {
    const struct rfx_source source = {.size = sizeof source, .values = cases.values};
    struct rfx_runner *runner = NULL;
    enum rfx_code code = rfx_runner_create(net, options, &runner, why);
    for (int run = 0; run < 2 && code == RFX_CODE_OK; run++) {
        memset(got->values[0], 0xff, (size_t)got->elems[0] * sizeof(float));
        code = rfx_runner_run(runner, &source, got->values, got->n, options, why);
    }
    rfx_runner_free(runner);
    return code;
}

static void read_bytes(void) {
    FILE *file = fopen(model_file, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    cases.n_bytes = (size_t)ftell(file);
    rewind(file);
    cases.bytes = malloc(cases.n_bytes);
    assert_non_null(cases.bytes);
    assert_int_equal(fread(cases.bytes, 1, cases.n_bytes, file), cases.n_bytes);
    (void)fclose(file);
}

/* The budgets hold for every source: the largest of the least. */
static void find_budgets(struct rfx_network *net, int threads) {
    size_t least = 0, *budgets = cases.budgets[threads - 1];
    for (int s = 0; s < SOURCES; s++) {
        size_t bytes = network_least_bytes(net, cases.files[s], threads);
        if (bytes > least) least = bytes;
    }
    least += cases.n_bytes; /* for networks from memory */
    budgets[0] = least;
    budgets[1] = least + least / 8;
    budgets[2] = 0;
}

static int make_cases(void **state) {
    (void)state;
    const struct png_maker png = {.h = ROWS, .w = COLUMNS, .bit_depth = 8, .color_type = 2};
    export_model();
    read_bytes();
    cases.values = network_random_image(3, ROWS, COLUMNS);
    network_write_npy(cases.files[1], cases.values, 3, ROWS, COLUMNS);
    if (!png_maker_write(&png, cases.files[2])) return -1;
    struct rfx_network *net = network_open_sized(model_file, ROWS, COLUMNS);
    const struct rfx_run_options alone = network_run_options(0, 1);
    for (int s = 0; s < SOURCES; s++) {
        struct rfx_why why;
        cases.wanted[s] = network_outputs_for(net);
        network_check(run_source(net, s, &cases.wanted[s], &alone, &why), &why);
    }
    for (int threads = 1; threads <= MOST_THREADS; threads++) find_budgets(net, threads);
    rfx_network_free(net);
    return 0;
}

static int forget_cases(void **state) {
    (void)state;
    for (int s = 0; s < SOURCES; s++) {
        network_outputs_free(&cases.wanted[s]);
        if (cases.files[s] != NULL) (void)unlink(cases.files[s]);
    }
    free(cases.values);
    free(cases.bytes);
    return unlink(model_file);
}

static int is_stopped(void *user) {
    struct worker *w = user;
    return atomic_load(&w->stop_wanted);
}

static void note(struct worker *w, const char *what, int source, const char *why) {
    if (w->wrong++ == 0)
        (void)snprintf(w->words, sizeof w->words, "%s, source %d: %.200s", what, source, why);
}

/* One call, drawn at random. */
static void run_once(struct worker *w, struct rfx_network *net) {
    int source = (int)test_rng_int(&w->rng, 0, SOURCES - 1);
    int threads = (int)test_rng_int(&w->rng, 1, MOST_THREADS);
    size_t budget = cases.budgets[threads - 1][test_rng_int(&w->rng, 0, BUDGETS - 1)];
    const struct network_outputs *want = &cases.wanted[source];
    size_t bytes = (size_t)want->elems[0] * sizeof(float);
    struct rfx_run_options options = network_run_options(budget, threads);
    struct rfx_why why;
    options.stop = is_stopped;
    options.user = w;
    memset(w->got.values[0], 0xff, bytes);
    atomic_store(&w->busy, true);
    bool by_runner = source == 0 && test_rng_int(&w->rng, 0, 1) == 1;
    enum rfx_code code = by_runner ? run_by_runner(net, &w->got, &options, &why)
                                   : run_source(net, source, &w->got, &options, &why);
    atomic_store(&w->busy, false);
    bool stopped = atomic_exchange(&w->stop_wanted, false);
    if (code == RFX_CODE_OK && memcmp(w->got.values[0], want->values[0], bytes) == 0)
        w->done++;
    else if (code == RFX_CODE_CANCELLED && stopped)
        w->cancelled++;
    else
        note(w, code == RFX_CODE_OK ? "other bits" : "a failure", source, why.text);
}

/* Opens the model anew after some runs, as a program with several pictures does. */
static void *work(void *argument) {
    struct worker *w = argument;
    while (w->done < w->runs && w->wrong == 0) {
        struct rfx_open_options open;
        struct rfx_network *net = NULL;
        struct rfx_why why;
        rfx_open_options_init(&open, sizeof open);
        open.rows = ROWS;
        open.columns = COLUMNS;
        enum rfx_code code =
            test_rng_int(&w->rng, 0, 1) == 0
                ? rfx_network_open(model_file, &open, &net, &why)
                : rfx_network_open_memory(cases.bytes, cases.n_bytes, &open, &net, &why);
        if (code != RFX_CODE_OK) note(w, "not opened", 0, why.text);
        int64_t runs = test_rng_int(&w->rng, 1, 6);
        for (int64_t i = 0; net != NULL && i < runs; i++) run_once(w, net);
        rfx_network_free(net);
    }
    return NULL;
}

struct canceller {
    struct test_rng rng;
    struct worker *workers;
    int64_t longest_us; /* between two stops */
    atomic_bool over;
};

/* Stops a worker that is in a call, at a random moment. */
static void *cancel(void *argument) {
    struct canceller *c = argument;
    while (!atomic_load(&c->over)) {
        nap_us(test_rng_int(&c->rng, 0, c->longest_us));
        struct worker *w = &c->workers[test_rng_int(&c->rng, 0, WORKERS - 1)];
        if (atomic_load(&w->busy)) atomic_store(&w->stop_wanted, true);
    }
    return NULL;
}

static int64_t now_us(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void start_worker(struct worker *w, uint64_t seed, int64_t runs) {
    *w = (struct worker){.rng = test_rng_make(seed), .runs = runs};
    w->got.n = cases.wanted[0].n;
    for (int k = 0; k < w->got.n; k++) {
        w->got.elems[k] = cases.wanted[0].elems[k];
        w->got.values[k] = test_floats(w->got.elems[k]);
    }
}

/* Runs both workers to their end; returns how long that took. */
static int64_t run_workers(struct worker workers[WORKERS]) {
    pthread_t threads[WORKERS];
    int64_t begun = now_us();
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    for (int i = 0; i < WORKERS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    return now_us() - begun;
}

static void finish_workers(struct worker workers[WORKERS], int64_t *cancelled) {
    for (int i = 0; i < WORKERS; i++) {
        struct worker *w = &workers[i];
        if (w->wrong != 0) fail_msg("thread %d: %s", i, w->words);
        assert_true(w->done >= w->runs);
        *cancelled += w->cancelled;
        network_outputs_free(&w->got);
    }
}

static void two_threads_and_one_that_stops_them(void **state) {
    (void)state;
    int64_t runs = test_env_int("RFX_CASES", 40), seed = test_env_int("RFX_SEED", 1);
    int64_t cancelled = 0;
    struct worker workers[WORKERS];
    /* First without a third thread, which then knows how long a call takes here. */
    for (int i = 0; i < WORKERS; i++) start_worker(&workers[i], (uint64_t)(seed + i), 8);
    int64_t us = run_workers(workers) / 8;
    finish_workers(workers, &cancelled);
    assert_int_equal(cancelled, 0);

    struct canceller canceller = {
        .rng = test_rng_make((uint64_t)seed + 100), .workers = workers, .longest_us = us};
    pthread_t third;
    for (int i = 0; i < WORKERS; i++) start_worker(&workers[i], (uint64_t)(seed + 10 + i), runs);
    assert_int_equal(pthread_create(&third, NULL, cancel, &canceller), 0);
    (void)run_workers(workers);
    atomic_store(&canceller.over, true);
    assert_int_equal(pthread_join(third, NULL), 0);
    finish_workers(workers, &cancelled);
    fprintf(stderr, "test_concurrent_networks: %lld runs, %lld cancelled, seed %lld\n",
            (long long)(WORKERS * runs), (long long)cancelled, (long long)seed);
    assert_true(cancelled >= runs / 8);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(two_threads_and_one_that_stops_them)};
    return cmocka_run_group_tests(tests, make_cases, forget_cases);
}
