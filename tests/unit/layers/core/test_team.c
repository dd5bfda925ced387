/* A team's loops: every iteration once, by one thread at a time, seen by the body afterwards; and
 * what waiting costs the rest of the machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <time.h>

#include "layers/core/team.h"

#define MOST_THREADS 8
#define MOST_COUNT 1000

/* What the iterations of a loop write, each its own place, without atomics: a loop's end makes it
 * visible. Nothing is asserted before the team is gone: an assertion leaves by a jump. */
struct tally {
    int threads;
    int64_t count;
    int times[MOST_COUNT];
    atomic_int busy[MOST_THREADS]; /* thread numbers in use */
    atomic_int clashes, strangers;
    int wrong; /* indices that came more or less than once */
};

static void count_index(void *user, int64_t index, int thread) {
    struct tally *t = user;
    if (thread < 0 || thread >= t->threads) {
        atomic_fetch_add(&t->strangers, 1);
        return;
    }
    if (atomic_exchange(&t->busy[thread], 1) != 0) atomic_fetch_add(&t->clashes, 1);
    if (index >= 0 && index < t->count) t->times[index]++;
    atomic_store(&t->busy[thread], 0);
}

static void run_all_counts(struct rfx_team *team, void *user) {
    struct tally *t = user;
    t->threads = rfx_team_threads(team);
    for (int64_t count = 0; count <= MOST_COUNT; count++) {
        memset(t->times, 0, sizeof t->times);
        t->count = count;
        rfx_team_for(team, count, count_index, t);
        for (int64_t i = 0; i < MOST_COUNT; i++) t->wrong += t->times[i] != (i < count);
    }
}

static void assert_all_counts(struct tally *t, int threads) {
    assert_int_equal(t->threads, threads);
    assert_int_equal(t->wrong, 0);
    assert_int_equal(atomic_load(&t->clashes), 0);
    assert_int_equal(atomic_load(&t->strangers), 0);
}

static void every_index_once(void **state) {
    (void)state;
    for (int threads = 1; threads <= MOST_THREADS; threads++) {
        struct tally t = {0};
        rfx_team_run(threads, run_all_counts, &t);
        assert_all_counts(&t, threads);
    }
}

static void no_team_is_a_team_of_one(void **state) {
    (void)state;
    struct tally t = {0};
    run_all_counts(NULL, &t);
    assert_all_counts(&t, 1);
}

static void nap(int64_t ms) {
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&t, &t) != 0) {
    }
}

/* Iterations that meet: the first waits for the second, which only another thread can run. */
#define MEETINGS 5

struct meeting {
    atomic_int arrived;
    int thread[2];
    bool met[2];
    int times; /* that two threads met */
};

static void meet(void *user, int64_t index, int thread) {
    struct meeting *m = user;
    m->thread[index] = thread;
    (void)atomic_fetch_add(&m->arrived, 1);
    for (int ms = 0; ms < 20000 && atomic_load(&m->arrived) < 2; ms++) nap(1);
    m->met[index] = atomic_load(&m->arrived) == 2;
}

static void run_meeting(struct rfx_team *team, void *user) {
    struct meeting *m = user;
    nap(20); /* the other one is asleep by now */
    for (int i = 0; i < MEETINGS; i++) {
        atomic_store(&m->arrived, 0);
        rfx_team_for(team, 2, meet, m);
        m->times += m->met[0] && m->met[1] && m->thread[0] != m->thread[1];
    }
}

static void sleepers_come_when_there_is_work(void **state) {
    (void)state;
    for (int threads = 2; threads <= MOST_THREADS; threads += 3) {
        struct meeting m = {0};
        rfx_team_run(threads, run_meeting, &m);
        assert_int_equal(m.times, MEETINGS);
    }
}

/* A loop whose threads all wait for each other in the first iteration that they run. */
#define SHARE 5 /* iterations a thread */

struct shares {
    int threads;
    atomic_int arrived;
    bool begun[MOST_THREADS];
    int64_t first[MOST_THREADS]; /* iteration of each */
    int thread[SHARE * MOST_THREADS + 1];
    int64_t held_up;      /* this thread runs no more than one of its own; -1: none */
    _Atomic int64_t left; /* iterations that have not begun */
};

static void run_share(void *user, int64_t index, int thread) {
    struct shares *s = user;
    s->thread[index] = thread;
    if (!s->begun[thread]) {
        s->begun[thread] = true;
        s->first[thread] = index;
        (void)atomic_fetch_add(&s->arrived, 1);
        for (int ms = 0; ms < 20000 && atomic_load(&s->arrived) < s->threads; ms++) nap(1);
    }
    (void)atomic_fetch_sub(&s->left, 1);
    for (int ms = 0; ms < 20000 && thread == s->held_up && atomic_load(&s->left) > 0; ms++) nap(1);
}

static void run_shares(struct rfx_team *team, void *user) {
    struct shares *s = user;
    s->threads = rfx_team_threads(team);
    s->left = (int64_t)SHARE * s->threads + 1;
    rfx_team_for(team, (int64_t)SHARE * s->threads + 1, run_share, s);
}

/* The first share has one more iteration, as they do not come out even. */
static void threads_begin_with_shares_of_neighbours(void **state) {
    (void)state;
    for (int threads = 2; threads <= MOST_THREADS; threads++) {
        struct shares s = {.held_up = -1};
        rfx_team_run(threads, run_shares, &s);
        assert_int_equal(s.threads, threads);
        for (int t = 0; t < threads; t++) assert_int_equal(s.first[t], t * SHARE + (t > 0));
    }
}

static void what_is_left_of_a_share_is_taken(void **state) {
    (void)state;
    for (int threads = 2; threads <= MOST_THREADS; threads += 3) {
        struct shares s = {.held_up = threads - 1};
        rfx_team_run(threads, run_shares, &s);
        int64_t own = (threads - 1) * SHARE + 1;
        assert_int_equal(s.thread[own], threads - 1);
        for (int i = 1; i < SHARE; i++) assert_int_not_equal(s.thread[own + i], threads - 1);
    }
}

#define MANY_THREADS 70

struct many {
    int threads, wrong;
    atomic_int times[3 * MANY_THREADS];
};

static void count_many(void *user, int64_t index, int thread) {
    struct many *m = user;
    (void)thread;
    (void)atomic_fetch_add(&m->times[index], 1);
}

static void run_many(struct rfx_team *team, void *user) {
    static const int64_t counts[] = {2, 63, 64, 65, MANY_THREADS, 3 * MANY_THREADS};
    struct many *m = user;
    m->threads = rfx_team_threads(team);
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        for (int i = 0; i < 3 * MANY_THREADS; i++) atomic_store(&m->times[i], 0);
        rfx_team_for(team, counts[k], count_many, m);
        for (int i = 0; i < 3 * MANY_THREADS; i++)
            m->wrong += atomic_load(&m->times[i]) != (i < counts[k]);
    }
}

/* More threads than shares: some begin with the same one. */
static void many_threads_share_shares(void **state) {
    (void)state;
    struct many many = {0};
    rfx_team_run(MANY_THREADS, run_many, &many);
    assert_int_equal(many.threads, MANY_THREADS);
    assert_int_equal(many.wrong, 0);
}

/* A chain of loops, each reading what all threads wrote in the one before. */
#define CHAIN_LOOPS 100000
#define CHAIN_WIDTH 3

struct chain {
    uint32_t values[2][CHAIN_WIDTH];
    int from;
};

static void link_index(void *user, int64_t index, int thread) {
    struct chain *c = user;
    const uint32_t *old = c->values[c->from];
    (void)thread;
    c->values[1 - c->from][index] = old[index] * 31 + old[(index + 1) % CHAIN_WIDTH];
}

static void run_chain(struct rfx_team *team, void *user) {
    struct chain *c = user;
    for (int i = 0; i < CHAIN_LOOPS; i++, c->from = 1 - c->from)
        rfx_team_for(team, CHAIN_WIDTH, link_index, c);
}

static void tiny_loops_see_each_other(void **state) {
    (void)state;
    struct chain alone = {{{1, 2, 3}}, 0};
    run_chain(NULL, &alone);
    for (int threads = 2; threads <= 4; threads++) {
        struct chain several = {{{1, 2, 3}}, 0};
        rfx_team_run(threads, run_chain, &several);
        assert_memory_equal(&several, &alone, sizeof alone);
    }
}

/* A team within a loop and within a body. */
struct nest {
    int inner_threads[2 * MOST_THREADS];
    int64_t sums[2 * MOST_THREADS];
};

struct inner {
    int threads;
    int64_t sum;
};

static void add_index(void *user, int64_t index, int thread) {
    struct inner *in = user;
    (void)thread;
    in->sum += index; /* one thread, so no other one adds */
}

static void run_inner(struct rfx_team *team, void *user) {
    struct inner *in = user;
    in->threads = rfx_team_threads(team);
    rfx_team_for(in->threads == 1 ? team : NULL, 100, add_index, in);
}

static void nest_index(void *user, int64_t index, int thread) {
    struct nest *n = user;
    struct inner in = {0};
    (void)thread;
    rfx_team_run(4, run_inner, &in);
    n->inner_threads[index] = in.threads;
    n->sums[index] = in.sum;
}

static void run_nest(struct rfx_team *team, void *user) {
    rfx_team_for(team, 2 * MOST_THREADS - 1, nest_index, user);
    nest_index(user, 2 * MOST_THREADS - 1, 0);
}

static void teams_within_teams_are_alone(void **state) {
    (void)state;
    int levels = omp_get_max_active_levels();
    for (int allowed = 1; allowed <= 3; allowed++) {
        struct nest n = {{0}, {0}};
        omp_set_max_active_levels(allowed);
        rfx_team_run(3, run_nest, &n);
        for (int i = 0; i < 2 * MOST_THREADS; i++) {
            assert_int_equal(n.inner_threads[i], 1);
            assert_int_equal(n.sums[i], 4950);
        }
    }
    omp_set_max_active_levels(levels);
    struct inner after = {0};
    rfx_team_run(1, run_inner, &after);
    assert_int_equal(after.threads, 1);
    struct tally t = {0};
    rfx_team_run(3, run_all_counts, &t); /* and the next team is a whole one */
    assert_all_counts(&t, 3);
}

/* The runtime gives as many threads as it sees fit. */
static void some_of_the_threads_asked_for(void **state) {
    (void)state;
    int dynamic = omp_get_dynamic();
    struct tally t = {0};
    omp_set_dynamic(1);
    rfx_team_run(MOST_THREADS, run_all_counts, &t);
    omp_set_dynamic(dynamic);
    assert_in_range(t.threads, 1, MOST_THREADS);
    assert_all_counts(&t, t.threads);
}

/* And one in a region of the program's own, where regions may not be nested. */
static void one_of_the_threads_asked_for(void **state) {
    (void)state;
    struct tally tallies[2];
    memset(tallies, 0, sizeof tallies);
    int levels = omp_get_max_active_levels();
    omp_set_max_active_levels(1);
#pragma omp parallel num_threads(2)
    {
        struct inner in = {0};
        rfx_team_run(4, run_inner, &in);
        tallies[omp_get_thread_num()].threads = in.threads;
        tallies[omp_get_thread_num()].count = in.sum;
    }
    omp_set_max_active_levels(levels);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tallies[i].threads, 1);
        assert_int_equal(tallies[i].count, 4950);
    }
}

static int64_t cpu_ms(void) {
    struct rusage u = {0};
    (void)getrusage(RUSAGE_SELF, &u);
    return ((int64_t)u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000 +
           (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1000;
}

#define WAIT_MS 200
#define SHORT_MS 2
#define SHORT_WAITS 100

/* The first iteration naps for as many ms as `user` says; the others have nothing to do. */
static void nap_first(void *user, int64_t index, int thread) {
    const int *ms = user;
    (void)thread;
    if (index == 0) nap(*ms);
}

struct waits {
    int64_t between, at_end, often; /* ms of processor time while threads wait */
};

static void run_waits(struct rfx_team *team, void *user) {
    struct waits *w = user;
    int ms = WAIT_MS;
    rfx_team_for(team, 1000, nap_first, &ms);
    int64_t before = cpu_ms();
    nap(WAIT_MS); /* the others wait for a loop */
    w->between = cpu_ms() - before;
    before = cpu_ms();
    rfx_team_for(team, 2, nap_first, &ms); /* whoever gets index 1 waits for the other */
    w->at_end = cpu_ms() - before;
    before = cpu_ms();
    ms = SHORT_MS;
    for (int i = 0; i < SHORT_WAITS; i++) rfx_team_for(team, 2, nap_first, &ms);
    w->often = cpu_ms() - before;
}

/* Spinning would take WAIT_MS of processor time per thread, or a thread's share of it. */
static void waiting_takes_no_processor_time(void **state) {
    (void)state;
    for (int threads = 2; threads <= 4; threads++) {
        struct waits w = {0};
        rfx_team_run(threads, run_waits, &w);
        assert_in_range(w.between, 0, WAIT_MS / 10);
        assert_in_range(w.at_end, 0, WAIT_MS / 10);
        assert_in_range(w.often, 0, SHORT_WAITS * SHORT_MS / 3);
    }
}

/* Other work on the machine: threads that never rest. */
static atomic_bool rest;

static void *spin(void *argument) {
    while (!atomic_load_explicit(&rest, memory_order_relaxed)) {
    }
    return argument;
}

static int64_t thread_cpu_us(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

#define MOST_OTHERS 64
#define BESIDE_LOOPS 100

struct beside {
    int64_t cpu_us[MOST_THREADS]; /* of iterations, per thread */
    int64_t body_cpu_us;          /* of the body's thread as a whole */
    uint32_t sink[MOST_THREADS];
};

static void some_work(void *user, int64_t index, int thread) {
    struct beside *b = user;
    int64_t start = thread_cpu_us();
    uint32_t x = (uint32_t)index;
    for (int i = 0; i < 500000; i++) x = x * 1664525 + 1013904223; /* about 1 ms */
    b->sink[thread] += x;
    b->cpu_us[thread] += thread_cpu_us() - start;
}

static void run_beside(struct rfx_team *team, void *user) {
    struct beside *b = user;
    int64_t start = thread_cpu_us();
    for (int i = 0; i < BESIDE_LOOPS; i++) rfx_team_for(team, 4, some_work, b);
    b->body_cpu_us = thread_cpu_us() - start;
}

/* Beside other work a loop's end is waited for asleep: the body's processor time is that of its
 * iterations, and a little per loop. Where it spun for the other's turn, that would be a turn of
 * the scheduler (some ms) per loop. */
static void a_busy_machine_is_not_spun_on(void **state) {
    (void)state;
    pthread_t others[MOST_OTHERS];
    struct beside b = {{0}, 0, {0}};
    int n = omp_get_num_procs() < MOST_OTHERS ? omp_get_num_procs() : MOST_OTHERS;
    atomic_store(&rest, false);
    for (int i = 0; i < n; i++) assert_int_equal(pthread_create(&others[i], NULL, spin, NULL), 0);
    rfx_team_run(2, run_beside, &b);
    atomic_store(&rest, true);
    for (int i = 0; i < n; i++) assert_int_equal(pthread_join(others[i], NULL), 0);
    assert_in_range(b.body_cpu_us - b.cpu_us[0], 0, 200 * BESIDE_LOOPS); /* us */
}

/* A loop that is told to stop runs no iteration after that, and later loops none at all. */
struct stopping {
    atomic_llong asked, run;
    int64_t from; /* the question that is answered by "stop" */
    int64_t after_first, after_second;
    bool stopped;
};

static bool says_stop(void *user) {
    struct stopping *s = user;
    return atomic_fetch_add(&s->asked, 1) + 1 >= s->from;
}

static void count_run(void *user, int64_t index, int thread) {
    struct stopping *s = user;
    (void)index;
    (void)thread;
    (void)atomic_fetch_add(&s->run, 1);
}

static void run_stopping(struct rfx_team *team, void *user) {
    struct stopping *s = user;
    rfx_team_set_stop(team, says_stop, s);
    rfx_team_for(team, 100, count_run, s);
    s->after_first = atomic_load(&s->run);
    rfx_team_for(team, 100, count_run, s);
    s->after_second = atomic_load(&s->run);
    s->stopped = rfx_team_is_stopped(team);
}

static void loops_end_when_told_to_stop(void **state) {
    (void)state;
    for (int threads = 1; threads <= MOST_THREADS; threads += 3) {
        struct stopping early = {.from = 10}, never = {.from = 1000};
        rfx_team_run(threads, run_stopping, &early);
        assert_true(early.stopped);
        assert_in_range(early.after_first, 9, 9 + threads);
        assert_int_equal(early.after_second, early.after_first);
        rfx_team_run(threads, run_stopping, &never);
        assert_false(never.stopped);
        assert_int_equal(never.after_second, 200);
        assert_int_equal(atomic_load(&never.asked), 200);
    }
    assert_false(rfx_team_must_stop(NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loops_end_when_told_to_stop),
        cmocka_unit_test(every_index_once),
        cmocka_unit_test(no_team_is_a_team_of_one),
        cmocka_unit_test(sleepers_come_when_there_is_work),
        cmocka_unit_test(threads_begin_with_shares_of_neighbours),
        cmocka_unit_test(what_is_left_of_a_share_is_taken),
        cmocka_unit_test(many_threads_share_shares),
        cmocka_unit_test(tiny_loops_see_each_other),
        cmocka_unit_test(teams_within_teams_are_alone),
        cmocka_unit_test(some_of_the_threads_asked_for),
        cmocka_unit_test(one_of_the_threads_asked_for),
        cmocka_unit_test(waiting_takes_no_processor_time),
        cmocka_unit_test(a_busy_machine_is_not_spun_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
