/* The executor: runs a plan on images.
 *
 * Invariants: 1. rfx_session_create allocates everything; rfx_session_run allocates nothing, except
 * the row window of an image that it reads for the first time; 2. a session runs the steps of the
 * plan's schedule and nothing else; 3. it never plans again.
 *
 * Threads: graph, plan and the graph's rfx_memory may be shared by any number of sessions at a
 * time. A session and an image may be used in any thread, but only in one at a time. A run starts
 * plan->threads - 1 threads of the OpenMP runtime, which keeps them for the calling thread's next
 * run. A run restores every setting of the process that it changes: docs/host_process.md. progress
 * and sink are called in the thread that runs. */
#ifndef RFX_RFEXEC_RUN_SESSION_H
#define RFX_RFEXEC_RUN_SESSION_H

#include "rfexec/image/image_source.h"
#include "rfexec/output/output_sink.h"
#include "rfexec/run/packed_weights.h"
#include "tiler/plan/plan.h"
#include "tiler/plan/schedule.h"

struct rfx_session;

/* Called between steps. `done` grows monotonically to `total`. A result other than 0 cancels the
 * run. */
typedef int rfx_progress_fn(void *user, int64_t done, int64_t total);

/* Receives every step when it is done, with the seconds that it took. Called in the thread that
 * runs. */
struct rfx_step_observer {
    void (*step)(void *user, const struct rfx_step *step, double seconds);
    void *user;
};

struct rfx_run_report {
    double seconds;
    uint64_t macs;                 /* counted by the executor, step by step */
    size_t arena_high_water_bytes; /* highest arena byte that a step used */
    /* bytes written to and read from files, counted step by step */
    uint64_t spill_written, spill_read;
};

/* Allocates arena and workspace from `mem`. The stop function of `mem` (rfx_memory_set_stop) ends
 * the session's runs. `weights` are packed weights that sessions of the plan share; NULL: the
 * session packs its own. Plan, weights and mem must outlive the session. A session may run any
 * number of times; every run gives the same bits and allocates nothing new. OUT_OF_MEMORY;
 * CANCELLED; IO: the model's file can no longer be read. */
RFX_NODISCARD enum rfx_status rfx_session_create(const struct rfx_plan *plan,
                                                 const struct rfx_packed_weights *weights,
                                                 struct rfx_memory *mem, struct rfx_session **out,
                                                 struct rfx_error *err);

void rfx_session_free(struct rfx_session *session);

/* Rewinds the image and runs the network on it. progress and report may be NULL. */
RFX_NODISCARD enum rfx_status rfx_session_run(struct rfx_session *session, struct rfx_image *image,
                                              rfx_progress_fn *progress, void *user,
                                              struct rfx_run_report *report, struct rfx_error *err);

/* Sets the receiver of all outputs (output_sink.h). Borrowed. NULL: none; plans that pass outputs
 * during the run then fail. */
void rfx_session_set_sink(struct rfx_session *session, const struct rfx_output_sink *sink);

/* Receives the state of a reduction whose input comes in parts. Called once all parts of the plan's
 * graph have been added, before the result is computed from the state, in the thread that runs. */
struct rfx_state_sink {
    void (*take)(void *user, int node, const void *state, size_t bytes);
    void *user;
};

/* Sets the receiver of reduction states. Borrowed; NULL: none. */
void rfx_session_set_state_sink(struct rfx_session *session, const struct rfx_state_sink *sink);

/* Sets the folder for the files of spilled maps, which have no names. Borrowed; NULL: none. */
void rfx_session_set_spill_folder(struct rfx_session *session, const char *folder);

/* Sets an observer of the session's steps. Borrowed; NULL: none, and no step is timed. */
void rfx_session_set_observer(struct rfx_session *session,
                              const struct rfx_step_observer *observer);

/* Returns the pages of arena and workspace to the system between two runs. The next run takes them
 * again. */
void rfx_session_give_back(struct rfx_session *session);

#endif
