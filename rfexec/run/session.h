/* The executor: runs a plan on images.
 *
 * Invariants: 1. everything is allocated by rfx_session_create; rfx_session_run allocates nothing
 * but the row window of an image that it meets for the first time;
 * 2. it runs the steps of the plan's schedule and nothing else; 3. it never re-plans.
 *
 * Threads: graph and plan are const, and any number of sessions may share them at a time; so may
 * they the graph's rfx_memory. A session and an image belong to one thread at a time, whichever. A
 * run starts threads of the OpenMP runtime (plan->threads less the caller's own, which the runtime
 * keeps for the calling thread's next run) and changes no setting of the process that it does not
 * set back: docs/host_process.md. progress and sink are called in the thread that runs. */
#ifndef RFX_RFEXEC_RUN_SESSION_H
#define RFX_RFEXEC_RUN_SESSION_H

#include "rfexec/image/image_source.h"
#include "rfexec/output/output_sink.h"
#include "rfexec/run/packed_weights.h"
#include "tiler/plan/plan.h"
#include "tiler/plan/schedule.h"

struct rfx_session;

/* Called between steps; done/total grow monotonically to total. Non-zero return cancels. */
typedef int rfx_progress_fn(void *user, int64_t done, int64_t total);

/* Told of every step when it is done, in the thread that runs, with the seconds that it took. */
struct rfx_step_observer {
    void (*step)(void *user, const struct rfx_step *step, double seconds);
    void *user;
};

struct rfx_run_report {
    double seconds;
    uint64_t macs;                      /* counted by the executor, step by step */
    size_t arena_high_water_bytes;      /* highest arena byte that a step used */
    uint64_t spill_written, spill_read; /* bytes of files, likewise counted */
};

/* Allocates arena and workspace from `mem`, whose stop function (rfx_memory_set_stop) ends the
 * session's runs. weights: packed weights that sessions of the plan share; NULL: the session packs
 * its own. Plan, weights and mem must outlive the session. A session may run any number of times;
 * every run gives the same bits and allocates nothing new. OUT_OF_MEMORY; CANCELLED; IO: the
 * model's file cannot be read any more. */
RFX_NODISCARD enum rfx_status rfx_session_create(const struct rfx_plan *plan,
                                                 const struct rfx_packed_weights *weights,
                                                 struct rfx_memory *mem, struct rfx_session **out,
                                                 struct rfx_error *err);

void rfx_session_free(struct rfx_session *session);

/* Runs the network on the image (rewound first). progress may be NULL. */
RFX_NODISCARD enum rfx_status rfx_session_run(struct rfx_session *session, struct rfx_image *image,
                                              rfx_progress_fn *progress, void *user,
                                              struct rfx_run_report *report, struct rfx_error *err);

/* Gives the session the receiver of all outputs (output_sink.h). Borrowed; NULL: none, which suits
 * plans that hand out nothing while they run. */
void rfx_session_set_sink(struct rfx_session *session, const struct rfx_output_sink *sink);

/* Told the state of a reduction that was fed part by part when all that the plan's graph takes is
 * added, before the result is made of it; in the thread that runs. */
struct rfx_state_sink {
    void (*take)(void *user, int node, const void *state, size_t bytes);
    void *user;
};

/* Borrowed; NULL: none. */
void rfx_session_set_state_sink(struct rfx_session *session, const struct rfx_state_sink *sink);

/* Names the folder in which the maps that its plan spills get files without names. Borrowed; NULL:
 * none. */
void rfx_session_set_spill_folder(struct rfx_session *session, const char *folder);

/* Gives the session an observer of its steps. Borrowed; NULL: none, and no step is timed. */
void rfx_session_set_observer(struct rfx_session *session,
                              const struct rfx_step_observer *observer);

/* Between two runs: gives the pages of arena and scratch back to the system. The next run takes
 * them again. */
void rfx_session_give_back(struct rfx_session *session);

#endif
