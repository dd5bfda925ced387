/* See run_timeline.h. */
#include "tools/page/run_timeline.h"

#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* The first length of an interval, and how often the resident set is looked at: a look takes some
 * microseconds. */
static const double FIRST_INTERVAL = 1e-3, LOOK_EVERY = 2e-3;

static double now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The resident set in bytes; 0: unknown. */
static size_t look(const struct rfx_run_timeline *t) {
    char text[128];
    unsigned long pages = 0;
    ssize_t n = t->statm >= 0 ? pread(t->statm, text, sizeof text - 1, 0) : -1;
    if (n <= 0) return 0;
    text[n] = '\0';
    if (sscanf(text, "%*u %lu", &pages) != 1) return 0;
    return (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
}

static size_t larger(size_t a, size_t b) {
    return a > b ? a : b;
}

static void join_pairs(struct rfx_run_timeline *t) {
    for (int i = 0; i < RFX_TIMELINE_INTERVALS; ++i) {
        bool half = i < RFX_TIMELINE_INTERVALS / 2;
        t->planned[i] = half ? larger(t->planned[2 * i], t->planned[2 * i + 1]) : 0;
        t->resident[i] = half ? larger(t->resident[2 * i], t->resident[2 * i + 1]) : 0;
    }
    t->interval *= 2;
    t->used = (t->used + 1) / 2;
}

void rfx_run_timeline_add(struct rfx_run_timeline *t, double at, size_t planned, size_t resident) {
    while (at >= t->interval * RFX_TIMELINE_INTERVALS) join_pairs(t);
    int i = at > 0 ? (int)(at / t->interval) : 0;
    if (i >= RFX_TIMELINE_INTERVALS) i = RFX_TIMELINE_INTERVALS - 1;
    for (; t->used <= i; ++t->used) /* a step longer than an interval fills those before it */
        t->planned[t->used] = larger(t->planned[t->used], planned);
    t->planned[i] = larger(t->planned[i], planned);
    t->resident[i] = larger(t->resident[i], resident);
}

static void take_step(void *user, const struct rfx_step *step, double seconds) {
    struct rfx_run_timeline *t = user;
    double at = now();
    bool due = at - t->last_look >= LOOK_EVERY;
    if (due) t->last_look = at;
    rfx_arena_use_stage(t->use, step->stage);
    rfx_run_timeline_add(t, at - t->begin, t->use->live[step->node], due ? look(t) : 0);
    if (t->next != NULL) t->next->step(t->next->user, step, seconds);
}

void rfx_run_timeline_start(struct rfx_run_timeline *t, struct rfx_arena_use *use,
                            const struct rfx_step_observer *next) {
    *t = (struct rfx_run_timeline){.next = next, .use = use, .interval = FIRST_INTERVAL};
    t->observer = (struct rfx_step_observer){.step = take_step, .user = t};
    t->statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    t->begin = now();
}

void rfx_run_timeline_end(struct rfx_run_timeline *t) {
    if (t->observer.user != NULL && t->statm >= 0) (void)close(t->statm);
    t->observer = (struct rfx_step_observer){0};
}
