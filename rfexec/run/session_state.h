/* What a session holds, for the files that it is made of: session.c (life, outputs), session_run.c
 * (the steps of a run), session_account.c (what they use), session_guard.c (what they may touch).
 */
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
    struct rfx_view *inputs;                  /* of the current step; as many as any node has */
    const struct rfx_output_sink *sink;       /* borrowed; NULL: none */
    const struct rfx_step_observer *observer; /* likewise */
    const struct rfx_state_sink *states;      /* likewise */
    struct rfx_spill_files *spill;            /* of maps that the plan spills */
};

/* Whether a node's packed constants are loaded by stage, into the arena. */
static inline bool rfx_session_loads_by_stage(const struct rfx_session *session, int node) {
    return !session->plan->resident[node];
}

/* The part of a node's tensor that is in memory now. */
struct rfx_view rfx_session_view(const struct rfx_session *session, int node);

/* Whether a node's tensor is there as a whole after a run. */
bool rfx_session_stores(const struct rfx_session *session, int node);

/* Asks the system for huge pages inside a large block: fewer page faults. Never more than the block
 * becomes resident. */
void rfx_session_prefer_huge_pages(void *block, size_t bytes);

/* session_guard.c. In builds with AddressSanitizer a step may touch the buffers that it names and
 * nothing else of the arena; in others these do nothing. A failed run leaves the arena guarded; the
 * next one begins anew. */
void rfx_session_guard_all(const struct rfx_session *session);
void rfx_session_guard_nothing(const struct rfx_session *session);
void rfx_session_guard_step(const struct rfx_session *session, const struct rfx_step *step);

/* session_account.c: adds a step's MACs to the report and raises its high water to the end of what
 * the step uses of the arena. */
void rfx_session_count_step(const struct rfx_session *session, const struct rfx_step *step,
                            struct rfx_run_report *report);
#endif
