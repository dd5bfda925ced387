/* Processes that fork with networks of the public header open: the child runs what the parent
 * opened, before and after the parent ran it, with the same bits, and so does the parent after it.
 * Where the parent's thread has OpenMP threads, the child runs with one, or in a thread of its own.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/run/network_run.h"

enum { ROWS = 65, COLUMNS = 71, SECONDS = 60 };
static const char model[] = "squeezenet1_1";
static const char file_model[] = RFX_SOURCE_DIR "/data/defect_net.onnx";

/* One run and what it must give; in a child no assertion may be made. */
struct job {
    struct rfx_network *net;
    const float *values;
    const struct network_outputs *want;
    size_t memory_bytes;
    int threads;
    int (*stop)(void *user);
    enum rfx_code wanted_code, code;
    struct rfx_why why;
    bool same;
};

static void *run(void *argument) {
    struct job *job = argument;
    struct rfx_run_options options = network_run_options(job->memory_bytes, job->threads);
    size_t bytes = (size_t)job->want->elems[0] * sizeof(float);
    float *got = malloc(bytes);
    options.stop = job->stop;
    job->code = RFX_CODE_SYSTEM;
    if (got == NULL) return NULL;
    memset(got, 0xff, bytes);
    job->code = rfx_network_run_values(job->net, job->values, &got, 1, &options, &job->why);
    job->same = job->code == RFX_CODE_OK && memcmp(got, job->want->values[0], bytes) == 0;
    free(got);
    return NULL;
}

static bool went_well(const struct job *job) {
    return job->code == job->wanted_code && (job->code != RFX_CODE_OK || job->same);
}

/* In this thread, or in one that it starts. */
static void run_in(struct job *job, bool own_thread) {
    pthread_t thread;
    if (!own_thread) {
        (void)run(job);
        return;
    }
    if (pthread_create(&thread, NULL, run, job) != 0 || pthread_join(thread, NULL) != 0)
        job->code = RFX_CODE_SYSTEM;
}

/* A child that hangs is ended by its alarm. */
static void check_in_child(const struct job *of, int threads, bool own_thread, const char *what) {
    struct job job = *of;
    int status = 0;
    job.threads = threads;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)alarm(SECONDS);
        run_in(&job, own_thread);
        if (!went_well(&job)) fprintf(stderr, "%s: code %d %s\n", what, job.code, job.why.text);
        rfx_network_free(job.net);
        _exit(went_well(&job) ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("%s: the child ended with %#x", what, (unsigned)status);
}

static void check_here(const struct job *of, int threads, const char *what) {
    struct job job = *of;
    job.threads = threads;
    (void)run(&job);
    if (!went_well(&job)) fail_msg("%s: code %d, %s", what, (int)job.code, job.why.text);
}

static int always(void *user) {
    (void)user;
    return 1;
}

static void check_network(const char *name, const struct network_outputs *want,
                          const float *values) {
    struct job job = {
        .net = network_open_sized(name, ROWS, COLUMNS), .values = values, .want = want};
    size_t least = network_least_bytes(job.net, NULL, 3);
    for (int budget = 0; budget < 2; budget++) {
        job.memory_bytes = budget == 0 ? 0 : least;
        check_in_child(&job, 1, false, "after a run with one thread or none");
        check_here(&job, 1, "the parent");
        check_in_child(&job, 1, false, "after a run with one thread");
        check_in_child(&job, 3, true, "with threads, in a thread of its own");
        check_here(&job, 3, "the parent with threads");
        check_in_child(&job, 1, false, "after a run with threads");
        check_in_child(&job, 3, true, "after a run with threads, in a thread of its own");
        check_here(&job, 2, "the parent after its children");
    }
    struct job stopped = job;
    stopped.stop = always;
    stopped.wanted_code = RFX_CODE_CANCELLED;
    check_in_child(&stopped, 1, false, "stopped");
    check_here(&job, 2, "the parent after a stopped child");
    rfx_network_free(job.net);
}

static void children_run_what_parents_opened(void **state) {
    static const char *const names[] = {model, file_model};
    float *values = network_random_image(3, ROWS, COLUMNS);
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        /* What is wanted is made by a child: this process has run nothing when it forks first. */
        struct rfx_network *net = network_open_sized(names[i], ROWS, COLUMNS);
        struct network_outputs want = network_outputs_for(net);
        size_t bytes = (size_t)want.elems[0] * sizeof(float);
        int ends[2], status = 0;
        assert_int_equal(pipe(ends), 0);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            const struct rfx_run_options options = network_run_options(0, i == 0 ? 3 : 1);
            (void)alarm(SECONDS);
            bool done = rfx_network_run_values(net, values, want.values, want.n, &options, NULL) ==
                        RFX_CODE_OK;
            for (size_t at = 0; done && at < bytes;) {
                ssize_t n = write(ends[1], (char *)want.values[0] + at, bytes - at);
                done = n > 0;
                at += done ? (size_t)n : 0;
            }
            _exit(done ? 0 : 1);
        }
        (void)close(ends[1]);
        for (size_t at = 0; at < bytes;) {
            ssize_t n = read(ends[0], (char *)want.values[0] + at, bytes - at);
            assert_true(n > 0);
            at += (size_t)n;
        }
        (void)close(ends[0]);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        rfx_network_free(net);
        check_network(names[i], &want, values);
        network_outputs_free(&want);
    }
    free(values);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(children_run_what_parents_opened)};
    return cmocka_run_group_tests_name("forks", tests, NULL, NULL);
}
