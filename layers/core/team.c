/* Threads are started once per team (team_start.h). Thread 0 runs the body; the other threads wait
 * for loops.
 *
 * Each thread begins with its own share of neighbouring iterations and then takes iterations that
 * are left in other shares. So from loop to loop, the same parts of feature maps fall to the same
 * thread, whose cache holds them. A thread that is held up holds up only the iteration that it has
 * begun.
 *
 * The `door` is one atomic word. It contains whether a loop is open, the number of the loop, and
 * how many threads have joined it. A thread joins only an open loop, takes iterations until none
 * are left, and leaves. The body takes iterations too, closes the door when all iterations have
 * been handed out, and waits for the threads that are still inside. Hence: 1. the description of a
 * loop is written only while the door is closed and no thread is inside; 2. the body does not wait
 * for a thread that comes late or not at all.
 *
 * Waiting threads spin for SPIN_NS and then sleep on a `bell` (a futex). A thread increments the
 * count of sleepers before it looks at the door for the last time. A thread that rings changes the
 * door before it reads the count of sleepers. All four operations are sequentially consistent, so
 * at least one of the two threads sees the other's change. */
#include "layers/core/team.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "layers/core/float_env.h"
#include "layers/core/team_start.h"

#define SPIN_NS 30000  /* a few times as long as falling asleep and waking up */
#define MOST_SHARES 64 /* shares of a loop; with more threads, some begin with the same share */
#define LINE_BYTES 64  /* variables that threads write often have cache lines of their own */

#define INSIDE UINT64_C(0x3fffffff) /* number of threads that have joined */
#define OPEN (UINT64_C(1) << 30)
#define OVER (UINT64_C(1) << 31) /* there will be no more loops */
#define LOOP_SHIFT 32 /* the bits from here on are the loop's number, which may wrap around */

struct bell {
    _Atomic uint32_t rings; /* the word of the kernel's futex; incremented at each ring */
    atomic_int sleepers;
};

/* A share of a loop. Iterations from `next` to `end` - 1 are still to be handed out. */
struct share {
    alignas(LINE_BYTES) _Atomic int64_t next;
    int64_t end;
};

struct rfx_team {
    int threads, n_shares;
    int64_t spin_ns;
    void (*work)(void *user, int64_t index, int thread);
    void *user;
    bool (*stop_wanted)(void *user); /* NULL: no stop callback */
    void *stop_user;
    atomic_bool stopped;
    struct share shares[MOST_SHARES];
    alignas(LINE_BYTES) _Atomic uint64_t door;
    alignas(LINE_BYTES) struct bell loops; /* rung when a loop opens */
    struct bell leaving;                   /* rung when the last thread leaves a closed loop */
};

static _Thread_local bool in_team; /* whether this thread is in a team of several threads */

static void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static int64_t now_ns(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Returns how long a waiting thread spins. If there are fewer processors than threads, it returns
 * 0: a spinning thread would keep the awaited threads from running. */
static int64_t spin_for(int threads) {
    cpu_set_t usable;
    if (sched_getaffinity(0, sizeof usable, &usable) != 0) return SPIN_NS;
    return CPU_COUNT(&usable) < threads ? 0 : SPIN_NS;
}

typedef bool ready_fn(uint64_t door, uint64_t loop);

static bool is_loop_after(uint64_t door, uint64_t loop) {
    return (door & OVER) != 0 || ((door & OPEN) != 0 && door >> LOOP_SHIFT != loop);
}

static bool is_empty(uint64_t door, uint64_t loop) {
    (void)loop;
    return (door & INSIDE) == 0;
}

/* Waits until ready(door, loop) holds for the door's state and returns this state. */
static uint64_t wait_at(struct rfx_team *team, struct bell *bell, ready_fn *ready, uint64_t loop) {
    uint64_t door = atomic_load_explicit(&team->door, memory_order_acquire);
    if (ready(door, loop)) return door;
    for (int64_t end = team->spin_ns > 0 ? now_ns() + team->spin_ns : INT64_MIN; now_ns() < end;) {
        for (int i = 0; i < 8; i++) {
            relax();
            door = atomic_load_explicit(&team->door, memory_order_acquire);
            if (ready(door, loop)) return door;
        }
    }
    (void)atomic_fetch_add(&bell->sleepers, 1);
    for (;;) {
        uint32_t rings = atomic_load(&bell->rings); /* read before the door: a later ring changes
                                                       it, and the futex call returns at once */
        door = atomic_load(&team->door);
        if (ready(door, loop)) break;
        (void)syscall(SYS_futex, &bell->rings, FUTEX_WAIT_PRIVATE, rings, NULL, NULL, 0);
    }
    (void)atomic_fetch_sub(&bell->sleepers, 1);
    return door;
}

/* Wakes up to `wanted` threads that sleep on the bell. To be called after the door was changed. */
static void ring(struct bell *bell, int64_t wanted) {
    if (atomic_load(&bell->sleepers) == 0) return;
    (void)atomic_fetch_add(&bell->rings, 1);
    int most = wanted < INT_MAX ? (int)wanted : INT_MAX;
    (void)syscall(SYS_futex, &bell->rings, FUTEX_WAKE_PRIVATE, most, NULL, NULL, 0);
}

static void make_shares(struct rfx_team *team, int64_t count) {
    int64_t n = team->n_shares, each = count / n, more = count % n, next = 0;
    for (int64_t s = 0; s < n; s++) {
        atomic_store_explicit(&team->shares[s].next, next, memory_order_relaxed);
        next += each + (s < more ? 1 : 0);
        team->shares[s].end = next;
    }
}

bool rfx_team_must_stop(struct rfx_team *team) {
    if (team == NULL || team->stop_wanted == NULL) return false;
    if (rfx_team_is_stopped(team)) return true;
    if (!team->stop_wanted(team->stop_user)) return false;
    atomic_store_explicit(&team->stopped, true, memory_order_relaxed);
    return true;
}

static void take_iterations(struct rfx_team *team, int thread) {
    for (int s = 0; s < team->n_shares; s++) {
        struct share *share = &team->shares[(thread + s) % team->n_shares];
        int64_t end = share->end, i;
        while ((i = atomic_fetch_add_explicit(&share->next, 1, memory_order_relaxed)) < end)
            if (!rfx_team_must_stop(team)) team->work(team->user, i, thread);
    }
}

/* Joins the loop if it is open and returns whether it was. *door is the last state that was read;
 * it is updated. */
static bool join_loop(struct rfx_team *team, uint64_t *door) {
    while ((*door & OPEN) != 0)
        if (atomic_compare_exchange_weak_explicit(&team->door, door, *door + 1,
                                                  memory_order_acquire, memory_order_acquire))
            return true;
    return false;
}

static void leave_loop(struct rfx_team *team) {
    uint64_t before = atomic_fetch_sub(&team->door, 1);
    if ((before & OPEN) == 0 && (before & INSIDE) == 1) ring(&team->leaving, 1);
}

static void serve(struct rfx_team *team, int thread) {
    uint64_t door, loop = 0;
    for (;;) {
        door = wait_at(team, &team->loops, is_loop_after, loop);
        if ((door & OVER) != 0) return;
        if (!join_loop(team, &door)) continue;
        loop = door >> LOOP_SHIFT;
        take_iterations(team, thread);
        leave_loop(team);
    }
}

int rfx_team_threads(const struct rfx_team *team) {
    return team == NULL ? 1 : team->threads;
}

void rfx_team_for(struct rfx_team *team, int64_t count,
                  void (*work)(void *user, int64_t index, int thread), void *user) {
    if (rfx_team_threads(team) == 1 || count <= 1) {
        for (int64_t i = 0; i < count && !rfx_team_must_stop(team); i++) work(user, i, 0);
        return;
    }
    team->work = work;
    team->user = user;
    make_shares(team, count);
    uint64_t loop = atomic_load_explicit(&team->door, memory_order_relaxed) >> LOOP_SHIFT;
    atomic_store(&team->door, (loop + 1) << LOOP_SHIFT | OPEN);
    ring(&team->loops, count - 1);
    take_iterations(team, 0);
    if (is_empty(atomic_fetch_and(&team->door, ~OPEN), 0)) return;
    (void)wait_at(team, &team->leaving, is_empty, 0);
}

void rfx_team_set_stop(struct rfx_team *team, bool (*wanted)(void *user), void *user) {
    team->stop_wanted = wanted;
    team->stop_user = user;
}

bool rfx_team_is_stopped(const struct rfx_team *team) {
    return atomic_load_explicit(&team->stopped, memory_order_relaxed);
}

/* A team and its body, passed to the threads that are started. */
struct starting {
    struct rfx_team team;
    void (*body)(struct rfx_team *team, void *user);
    void *user;
};

static void lead(void *user, int threads) {
    struct starting *s = user;
    RFX_DEFAULT_FLOAT_ENV;
    in_team = threads > 1;
    s->team.threads = threads;
    s->team.n_shares = threads < MOST_SHARES ? threads : MOST_SHARES;
    s->body(&s->team, s->user);
    (void)atomic_fetch_or(&s->team.door, OVER);
    ring(&s->team.loops, threads);
    in_team = false;
}

static void serve_loops(void *user, int thread) {
    RFX_DEFAULT_FLOAT_ENV; /* a runtime's threads keep the environment in which they were started */
    in_team = true;
    serve(&((struct starting *)user)->team, thread);
    in_team = false;
}

static void run_several(int threads, void (*body)(struct rfx_team *team, void *user), void *user) {
    struct starting s = {.team.spin_ns = spin_for(threads), .body = body, .user = user};
    rfx_team_start(threads, lead, serve_loops, &s);
}

void rfx_team_run(int threads, void (*body)(struct rfx_team *team, void *user), void *user) {
    struct rfx_team alone = {.threads = 1};
    if (threads > 1 && !in_team)
        run_several(threads, body, user);
    else
        body(&alone, user);
}
