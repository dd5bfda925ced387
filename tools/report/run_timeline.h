/* What of a plan's arena is whose, stage by stage: the boxes of its picture, and the bytes in use.
 *
 * Time within a stage has a step per node and one at its end, as the planner's (plan_records.c). It
 * is read off a finished plan: a map is there from the stage that makes it to its last reader; of a
 * stage's own buffers those of a stream last for the stage where nobody shares their bytes. */
/* A run's memory over its time: what the plan has in use at each step, and the process's resident
 * set beside it, in a fixed number of intervals that join in pairs as the run gets longer.
 *
 * It hands each step on to the counts of layers: a session has one observer. */
#ifndef RFX_TOOLS_REPORT_RUN_TIMELINE_H
#define RFX_TOOLS_REPORT_RUN_TIMELINE_H

#include "rfexec/session/session.h"
#include "tiler/plan/plan.h"

enum rfx_arena_kind {
    RFX_ARENA_STORED, /* whole maps that later stages or the user read */
    RFX_ARENA_LOCAL,  /* what a stage has at hand of a node */
    RFX_ARENA_FRESH,  /* rows that a step of a tight stream makes */
    RFX_ARENA_PACKED, /* weights that are loaded by stage */
    RFX_ARENA_COUNT
};

struct rfx_arena_box {
    enum rfx_arena_kind kind;
    int node;
    int first, last; /* steps of the stage, both included */
    size_t offset, bytes;
};

struct rfx_arena_use {
    struct rfx_memory *mem;
    const struct rfx_plan *plan; /* borrowed */
    int stage;                   /* of what follows; -1: none yet */
    int n_boxes, n_steps;
    struct rfx_arena_box *boxes; /* by rising offset */
    size_t *live;                /* [n_steps] bytes that some box has */
    int *last_reader;            /* [n_steps] per node, in the stage */
    int *last_stage;             /* [n_steps] per node: the last stage that reads its stored map */
};

/* Bytes that it takes for a graph. */
size_t rfx_arena_use_bytes(const struct rfx_graph *graph);

/* OUT_OF_MEMORY. Freed with rfx_arena_use_free, of which NULL is none. */
RFX_NODISCARD enum rfx_status rfx_arena_use_create(struct rfx_memory *mem,
                                                   const struct rfx_plan *plan,
                                                   struct rfx_arena_use **out,
                                                   struct rfx_error *err);
void rfx_arena_use_free(struct rfx_arena_use *use);

/* Fills boxes and live for a stage, unless they are there. O(nodes * boxes); allocates nothing. */
void rfx_arena_use_stage(struct rfx_arena_use *use, int stage);

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
