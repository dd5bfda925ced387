/* Between librfexec and Python: what the library asks often, from any thread, answered without the
 * interpreter's lock, and the way to functions that are written in Python.
 *
 * Signals: their handlers run in Python's main thread only, and what they raise, KeyboardInterrupt
 * above all, must end the call and be raised after it. So a call of that thread looks for signals
 * here every RFXPY_PERIOD_NS, and before each Python function, and keeps what was raised. A handler
 * that runs within a Python function can raise before its first line, where nothing catches it:
 * ctypes then returns 0. That is why 1 means success here.
 *
 * No Python header is needed: the four functions of its stable ABI come as addresses. */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "rfexec/rfexec.h"

#define RFXPY_API __attribute__((visibility("default")))
#define RFXPY_PERIOD_NS INT64_C(50000000)

/* The `user` of one call; rfexec/_c.py has the same struct. Python's functions return 1 when all
 * went well. */
struct rfxpy_call {
    int (*progress)(int64_t done, int64_t total);
    int (*read)(const struct rfx_area *area, float *values);
    int (*write)(int output, const struct rfx_area *area, const float *values);
    int (*observe)(const struct rfx_step_report *step);
    pthread_t caller;
    int64_t next_look, next_progress; /* ns of the monotonic clock */
    void *raised[3];                  /* by a signal's handler: type, value, traceback; owned */
    int looks;                        /* for signals: the caller is Python's main thread */
    int lost;                         /* a handler raised where it could not be kept */
    atomic_int wanted;                /* to stop */
};

RFXPY_API void rfxpy_set_python(int (*ensure)(void), void (*release)(int),
                                int (*check_signals)(void),
                                void (*fetch)(void **, void **, void **));
RFXPY_API void rfxpy_begin(struct rfxpy_call *call);
RFXPY_API void rfxpy_stop_call(struct rfxpy_call *call);
RFXPY_API int rfxpy_stop(void *user);
RFXPY_API int rfxpy_progress(void *user, int64_t done, int64_t total);
RFXPY_API int rfxpy_read(void *user, const struct rfx_area *area, float *values);
RFXPY_API int rfxpy_write(void *user, int output, const struct rfx_area *area, const float *values);
RFXPY_API int rfxpy_observe(void *user, const struct rfx_step_report *step);
RFXPY_API uint64_t rfxpy_call_bytes(void);

static struct {
    int (*ensure)(void); /* PyGILState_Ensure */
    void (*release)(int);
    int (*check_signals)(void);
    void (*fetch)(void **, void **, void **);
} python;

static int64_t now_ns(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

uint64_t rfxpy_call_bytes(void) {
    return sizeof(struct rfxpy_call);
}

void rfxpy_set_python(int (*ensure)(void), void (*release)(int), int (*check_signals)(void),
                      void (*fetch)(void **, void **, void **)) {
    python.ensure = ensure;
    python.release = release;
    python.check_signals = check_signals;
    python.fetch = fetch;
}

/* In the thread that is going to call the library. */
void rfxpy_begin(struct rfxpy_call *call) {
    call->caller = pthread_self();
    call->next_look = now_ns() + RFXPY_PERIOD_NS;
    call->next_progress = 0;
    call->lost = 0;
}

/* From any thread. */
void rfxpy_stop_call(struct rfxpy_call *call) {
    atomic_store(&call->wanted, 1);
}

/* Has Python handle signals that have arrived; not 0: stop. */
static int look_for_signals(struct rfxpy_call *call) {
    if (!call->looks || !pthread_equal(pthread_self(), call->caller)) return 0;
    int state = python.ensure();
    if (python.check_signals() != 0) {
        if (call->raised[0] == NULL)
            python.fetch(&call->raised[0], &call->raised[1], &call->raised[2]);
        rfxpy_stop_call(call);
    }
    python.release(state);
    call->next_look = now_ns() + RFXPY_PERIOD_NS;
    return atomic_load(&call->wanted);
}

/* What a Python function returned, as the library wants it. */
static int result_of(struct rfxpy_call *call, int returned) {
    if (returned == 1) return 0;
    if (returned == 0) call->lost = 1;
    rfxpy_stop_call(call);
    return 1;
}

int rfxpy_stop(void *user) {
    struct rfxpy_call *call = user;
    if (atomic_load_explicit(&call->wanted, memory_order_relaxed) != 0) return 1;
    if (!call->looks || !pthread_equal(pthread_self(), call->caller)) return 0;
    return now_ns() < call->next_look ? 0 : look_for_signals(call);
}

int rfxpy_progress(void *user, int64_t done, int64_t total) {
    struct rfxpy_call *call = user;
    int64_t now = now_ns();
    if (now < call->next_progress && done != total) return 0;
    if (look_for_signals(call) != 0) return 1;
    call->next_progress = now + RFXPY_PERIOD_NS;
    return result_of(call, call->progress(done, total));
}

int rfxpy_read(void *user, const struct rfx_area *area, float *values) {
    struct rfxpy_call *call = user;
    return look_for_signals(call) != 0 || result_of(call, call->read(area, values)) != 0;
}

int rfxpy_write(void *user, int output, const struct rfx_area *area, const float *values) {
    struct rfxpy_call *call = user;
    return look_for_signals(call) != 0 || result_of(call, call->write(output, area, values)) != 0;
}

int rfxpy_observe(void *user, const struct rfx_step_report *step) {
    struct rfxpy_call *call = user;
    return look_for_signals(call) != 0 || result_of(call, call->observe(step)) != 0;
}
