/* The members of a session, shared by session.c (life, outputs), session_run.c (the steps of a
 * run), session_account.c (the counting of MACs and bytes) and session_guard.c (the bytes that a
 * step may touch). */
#ifndef RFX_RFEXEC_RUN_SESSION_STATE_H
#define RFX_RFEXEC_RUN_SESSION_STATE_H

#include "rfexec/run/packed_weights.h"
#include "rfexec/run/session.h"
#include "rfexec/run/spill_files.h"
#include "tiler/plan/schedule.h"

struct rfx_session {
    const struct rfx_graph *graph;
    const struct rfx_plan *plan;
    struct rfx_memory *mem;
    struct rfx_schedule *schedule;
    unsigned char *arena, *scratch;
    const struct rfx_packed_weights *weights; /* own_weights, or the caller's */
    struct rfx_packed_weights *own_weights;   /* NULL: the caller's are used */
    struct rfx_view *inputs; /* inputs of the current step; as many elements as the largest number
                                of inputs of a node */
    const struct rfx_output_sink *sink;       /* borrowed; NULL: none */
    const struct rfx_step_observer *observer; /* borrowed; NULL: none */
    const struct rfx_state_sink *states;      /* borrowed; NULL: none */
    struct rfx_spill_files *spill;            /* files of maps that the plan spills */
};

/* Returns whether a node's packed constants are loaded by stage, into the arena. */
static inline bool rfx_session_loads_by_stage(const struct rfx_session *session, int node) {
    return !session->plan->resident[node];
}

/* Returns a view of the part of a node's tensor that is in memory now. */
struct rfx_view rfx_session_view(const struct rfx_session *session, int node);

/* Returns whether a node's tensor is in memory as a whole after a run. */
bool rfx_session_stores(const struct rfx_session *session, int node);

/* Asks the system for huge pages inside a large block, to have fewer page faults. The resident
 * memory never exceeds the block. */
void rfx_session_prefer_huge_pages(void *block, size_t bytes);

/* session_guard.c. In builds with AddressSanitizer a step may touch only the buffers that it names
 * and nothing else of the arena. In other builds these functions do nothing. A failed run leaves
 * the arena guarded; the next run sets the guards of each of its steps anew. */
void rfx_session_guard_all(const struct rfx_session *session);
void rfx_session_guard_nothing(const struct rfx_session *session);
void rfx_session_guard_step(const struct rfx_session *session, const struct rfx_step *step);

/* session_account.c: adds a step's MACs and spilled bytes to the report, and raises the report's
 * high-water mark to the end of the arena bytes that the step uses. */
void rfx_session_count_step(const struct rfx_session *session, const struct rfx_step *step,
                            struct rfx_run_report *report);
#endif
