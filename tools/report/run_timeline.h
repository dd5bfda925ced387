/* A run's memory over time: the bytes of the arena in use by the plan, and the resident set of the
 * process. The time is divided into a fixed number of intervals, which are joined in pairs as the
 * run gets longer. The timeline passes each step on to the counts of layers, because a session has
 * one observer.
 *
 * The use of the arena is computed from a finished plan, stage by stage, as boxes of steps x bytes.
 * A stage has one step for each node and one at its end. A map is in use from the stage that
 * computes it to its last reader. Buffers of a streaming stage that share no bytes are in use for
 * the whole stage. */
#ifndef RFX_TOOLS_REPORT_RUN_TIMELINE_H
#define RFX_TOOLS_REPORT_RUN_TIMELINE_H

#include "rfexec/run/session.h"
#include "tiler/plan/plan.h"

enum rfx_arena_kind {
    RFX_ARENA_STORED, /* whole maps that later stages or the user read */
    RFX_ARENA_LOCAL,  /* rows of a map that only its stage uses */
    RFX_ARENA_FRESH,  /* rows that one step of a tight stream computes */
    RFX_ARENA_PACKED, /* weights loaded by stage */
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
    int stage;                   /* that boxes and live describe; -1: none yet */
    int n_boxes, n_steps;
    struct rfx_arena_box *boxes; /* sorted by offset */
    size_t *live;                /* [n_steps] bytes in some box */
    int *last_reader;            /* [n_steps] of each node, in the stage */
    int *last_stage; /* [n_steps] of each node: the last stage that reads its stored map */
};

/* Returns the bytes of memory that struct rfx_arena_use takes for a graph. */
size_t rfx_arena_use_bytes(const struct rfx_graph *graph);

/* Creates the description of a plan's arena. The caller frees it with rfx_arena_use_free, which
 * accepts NULL. Status: OUT_OF_MEMORY. */
RFX_NODISCARD enum rfx_status rfx_arena_use_create(struct rfx_memory *mem,
                                                   const struct rfx_plan *plan,
                                                   struct rfx_arena_use **out,
                                                   struct rfx_error *err);
void rfx_arena_use_free(struct rfx_arena_use *use);

/* Fills use->boxes and use->live for a stage, unless they describe it already. Cost: O(nodes *
 * boxes). Allocates nothing. */
void rfx_arena_use_stage(struct rfx_arena_use *use, int stage);

enum { RFX_TIMELINE_INTERVALS = 240 };

struct rfx_run_timeline {
    struct rfx_step_observer observer; /* for the session */
    const struct rfx_step_observer *next;
    struct rfx_arena_use *use;               /* borrowed */
    int statm;                               /* descriptor of /proc/self/statm, or -1 */
    double begin, last_look;                 /* of the clock, in seconds */
    double interval;                         /* seconds */
    int used;                                /* number of intervals so far */
    size_t planned[RFX_TIMELINE_INTERVALS];  /* most bytes of the arena in use */
    size_t resident[RFX_TIMELINE_INTERVALS]; /* most bytes of the process; 0: not known */
};

/* Starts a timeline now. The caller ends it with rfx_run_timeline_end, which accepts a timeline of
 * zeros. */
void rfx_run_timeline_start(struct rfx_run_timeline *timeline, struct rfx_arena_use *use,
                            const struct rfx_step_observer *next);

/* Adds a step that ended `at` seconds after the beginning. */
void rfx_run_timeline_add(struct rfx_run_timeline *timeline, double at, size_t planned,
                          size_t resident);

void rfx_run_timeline_end(struct rfx_run_timeline *timeline);
#endif
