/* A run's memory over its time: what the plan has in use at each step, and the process's resident
 * set beside it, in a fixed number of intervals that join in pairs as the run gets longer.
 *
 * It hands each step on to the counts of layers: a session has one observer. */
#ifndef RFX_TOOLS_PAGE_RUN_TIMELINE_H
#define RFX_TOOLS_PAGE_RUN_TIMELINE_H

#include "rfexec/session/session.h"
#include "tools/page/arena_use.h"

enum { RFX_TIMELINE_INTERVALS = 240 };

struct rfx_run_timeline {
    struct rfx_step_observer observer; /* for the session */
    const struct rfx_step_observer *next;
    struct rfx_arena_use *use;               /* borrowed */
    int statm;                               /* descriptor of /proc/self/statm, or -1 */
    double begin, last_look;                 /* seconds of the clock */
    double interval;                         /* seconds */
    int used;                                /* intervals of the run so far */
    size_t planned[RFX_TIMELINE_INTERVALS];  /* the most bytes of arena in use */
    size_t resident[RFX_TIMELINE_INTERVALS]; /* the most of the process; 0: not looked */
};

/* Begins at the present time. Ended with rfx_run_timeline_end; zeroed ones may be ended too. */
void rfx_run_timeline_start(struct rfx_run_timeline *timeline, struct rfx_arena_use *use,
                            const struct rfx_step_observer *next);

/* Adds a step that was done `at` seconds after the beginning. */
void rfx_run_timeline_add(struct rfx_run_timeline *timeline, double at, size_t planned,
                          size_t resident);

void rfx_run_timeline_end(struct rfx_run_timeline *timeline);
#endif
