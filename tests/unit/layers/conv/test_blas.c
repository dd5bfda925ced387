/* Products are computed by one thread each, and the settings of the process are as before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <cblas.h>
#include <dirent.h>
#include <omp.h>
#include <pthread.h>

#include "layers/conv/blas.h"
#include "layers/core/team.h"
#include "tests/support/test_util.h"

#define HOST_THREADS 3 /* what the program around the library has chosen */
#define TEAM 2
#define N 400 /* OpenBLAS shares out products of this size among its threads */

static int count_tasks(void) {
    DIR *dir = opendir("/proc/self/task");
    assert_non_null(dir);
    int count = 0;
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir))
        count += entry->d_name[0] != '.';
    (void)closedir(dir);
    return count;
}

static void set_host(void) {
    omp_set_num_threads(HOST_THREADS);
    openblas_set_num_threads(HOST_THREADS);
}

static void assert_host(void) {
    assert_int_equal(omp_get_max_threads(), HOST_THREADS);
    assert_int_equal(openblas_get_num_threads(), HOST_THREADS);
}

static void nested_scopes_are_undone(void **state) {
    (void)state;
    set_host();
    for (int i = 0; i < 3; i++) {
        struct rfx_blas_scope outer = rfx_blas_begin();
        struct rfx_blas_scope inner = rfx_blas_begin();
        assert_int_equal(omp_get_max_threads(), 1);
        rfx_blas_end(inner);
        assert_int_equal(omp_get_max_threads(), 1);
        rfx_blas_end(outer);
        assert_host();
    }
}

/* One of two threads whose scopes overlap: a begins, b begins, a ends, b ends. */
struct overlap {
    pthread_barrier_t step;
    bool first;
    int tasks_before, tasks_after, threads_after;
};

static void multiply(float *values) {
    rfx_blas_gemm(N, N, N, values, N, values + N * N, N, values + 2 * N * N, N);
}

static struct overlap pair[2];

static void *overlapping(void *argument) {
    struct overlap *self = argument;
    float *values = calloc(3 * N * N, sizeof *values);
    struct rfx_blas_scope scope = {0};
    omp_set_num_threads(HOST_THREADS);
    for (int step = 0; step < 4; step++) {
        (void)pthread_barrier_wait(&pair[0].step);
        if (step == (self->first ? 0 : 1)) {
            self->tasks_before = count_tasks();
            scope = rfx_blas_begin();
        }
        if (step == 1 && values != NULL) multiply(values); /* both have begun, or do so now */
        if (step == (self->first ? 2 : 3)) {
            if (values != NULL) multiply(values);
            self->tasks_after = count_tasks();
            rfx_blas_end(scope);
            self->threads_after = omp_get_max_threads();
        }
    }
    free(values);
    return NULL;
}

/* A thread's own settings count, not those of the thread that began first: neither starts others,
 * which OpenBLAS does for a product that it shares out. */
static void scopes_of_two_threads_overlap(void **state) {
    (void)state;
    set_host();
    pthread_t threads[2];
    assert_int_equal(pthread_barrier_init(&pair[0].step, NULL, 2), 0);
    int tasks = count_tasks();
    for (int i = 0; i < 2; i++) {
        pair[i].first = i == 0;
        assert_int_equal(pthread_create(&threads[i], NULL, overlapping, &pair[i]), 0);
    }
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    (void)pthread_barrier_destroy(&pair[0].step);
    for (int i = 0; i < 2; i++) {
        assert_in_range(pair[i].tasks_after, 1, tasks + 2);
        assert_int_equal(pair[i].threads_after, HOST_THREADS);
    }
    assert_host();
}

/* Iterations of a team's loops: each waits for the others, so that every thread has one. */
struct products {
    pthread_barrier_t step;
    float *values[TEAM];
    int omp_threads[TEAM], host_threads; /* in the loop; in the body after the scope */
    int tasks_before, tasks_after;
};

static void multiply_in_loop(void *user, int64_t index, int thread) {
    struct products *p = user;
    (void)thread;
    (void)pthread_barrier_wait(&p->step);
    p->omp_threads[index] = omp_get_max_threads();
    multiply(p->values[index]);
    (void)pthread_barrier_wait(&p->step);
}

static void run_products(struct rfx_team *team, void *user) {
    struct products *p = user;
    if (rfx_team_threads(team) != TEAM) return;
    p->tasks_before = count_tasks();
    struct rfx_blas_scope scope = rfx_blas_begin();
    rfx_team_for(team, TEAM, multiply_in_loop, p);
    rfx_blas_end(scope);
    p->tasks_after = count_tasks();
    p->host_threads = omp_get_max_threads();
}

/* The scope is the body's, the products are other threads': also where regions may be nested. */
static void products_of_a_team_are_not_shared_out(void **state) {
    (void)state;
    int levels = omp_get_max_active_levels();
    struct products p = {0};
    for (int i = 0; i < TEAM; i++) {
        p.values[i] = calloc(3 * N * N, sizeof *p.values[i]);
        assert_non_null(p.values[i]);
    }
    set_host();
    omp_set_max_active_levels(3);
    assert_int_equal(pthread_barrier_init(&p.step, NULL, TEAM), 0);
    rfx_team_run(TEAM, run_products, &p);
    (void)pthread_barrier_destroy(&p.step);
    omp_set_max_active_levels(levels);
    for (int i = 0; i < TEAM; i++) {
        assert_int_equal(p.omp_threads[i], 1);
        free(p.values[i]);
    }
    assert_int_equal(p.tasks_after, p.tasks_before);
    assert_int_equal(p.host_threads, HOST_THREADS);
    assert_host();
}

/* What the scope prevents does happen without it; else the test above could not fail. */
static void without_a_scope_products_are_shared_out(void **state) {
    (void)state;
    set_host();
    float *values = test_floats(3 * N * N);
    memset(values, 0, 3 * N * N * sizeof *values);
    int before = count_tasks();
    struct rfx_blas_scope scope = rfx_blas_begin();
    multiply(values);
    assert_int_equal(count_tasks(), before);
    rfx_blas_end(scope);
    if (openblas_get_parallel() == OPENBLAS_OPENMP) {
        multiply(values);
        assert_true(count_tasks() > before);
    }
    assert_host();
    free(values);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nested_scopes_are_undone),
        cmocka_unit_test(scopes_of_two_threads_overlap),
        cmocka_unit_test(products_of_a_team_are_not_shared_out),
        cmocka_unit_test(without_a_scope_products_are_shared_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
