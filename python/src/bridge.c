/* Between librfexec and Python: what the library asks often, from any thread, answered without the
 * interpreter's lock.
 *
 * stop is asked many times a step. Only the thread that made the call goes to Python for it, and
 * only every RFXPY_PERIOD_NS: there signals are looked for, which Python handles in its main thread
 * alone. Progress goes there as seldom. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#define RFXPY_API __attribute__((visibility("default")))
#define RFXPY_PERIOD_NS INT64_C(50000000)

/* The `user` of one call; rfexec/_c.py has the same struct. */
struct rfxpy_call {
    int (*poll)(void);                            /* not 0: stop; NULL: nobody is asked */
    int (*progress)(int64_t done, int64_t total); /* not 0: stop; NULL: none */
    atomic_int wanted;                            /* to stop */
    pthread_t caller;
    int64_t next_poll, next_progress; /* ns of the monotonic clock */
};

RFXPY_API void rfxpy_begin(struct rfxpy_call *call);
RFXPY_API void rfxpy_stop_call(struct rfxpy_call *call);
RFXPY_API int rfxpy_stop(void *user);
RFXPY_API int rfxpy_progress(void *user, int64_t done, int64_t total);
RFXPY_API uint64_t rfxpy_call_bytes(void);

static int64_t now_ns(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

uint64_t rfxpy_call_bytes(void) {
    return sizeof(struct rfxpy_call);
}

/* In the thread that is going to call the library. */
void rfxpy_begin(struct rfxpy_call *call) {
    call->caller = pthread_self();
    call->next_poll = now_ns() + RFXPY_PERIOD_NS;
    call->next_progress = 0;
}

/* From any thread. */
void rfxpy_stop_call(struct rfxpy_call *call) {
    atomic_store(&call->wanted, 1);
}

int rfxpy_stop(void *user) {
    struct rfxpy_call *call = user;
    if (atomic_load_explicit(&call->wanted, memory_order_relaxed) != 0) return 1;
    if (call->poll == NULL || !pthread_equal(pthread_self(), call->caller)) return 0;
    int64_t now = now_ns();
    if (now < call->next_poll) return 0;
    int stop = call->poll();
    call->next_poll = now_ns() + RFXPY_PERIOD_NS;
    if (stop != 0) rfxpy_stop_call(call);
    return stop != 0;
}

int rfxpy_progress(void *user, int64_t done, int64_t total) {
    struct rfxpy_call *call = user;
    if (call->progress == NULL) return 0;
    int64_t now = now_ns();
    if (now < call->next_progress && done != total) return 0;
    call->next_progress = now + RFXPY_PERIOD_NS;
    return call->progress(done, total);
}
