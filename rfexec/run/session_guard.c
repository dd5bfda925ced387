/* Tells AddressSanitizer which bytes of the arena a step may touch; see session_state.h. */
#include "rfexec/run/session_state.h"

#ifdef RFX_SANITIZE_ADDRESS
#include <sanitizer/asan_interface.h>

void rfx_session_guard_all(const struct rfx_session *session) {
    __asan_poison_memory_region(session->arena, session->plan->bytes.arena);
}

void rfx_session_guard_nothing(const struct rfx_session *session) {
    __asan_unpoison_memory_region(session->arena, session->plan->bytes.arena);
}

static void unguard(const struct rfx_session *session, const struct rfx_buffer *buffer) {
    __asan_unpoison_memory_region(session->arena + buffer->offset, buffer->bytes);
}

static void unguard_node(const struct rfx_session *session, int stage, int i) {
    if (rfx_node_is_constant(&session->graph->nodes[i])) return;
    unguard(session, rfx_plan_buffer(session->plan, stage, i));
    unguard(session, &session->plan->stages[stage].nodes[i].staging);
}

void rfx_session_guard_step(const struct rfx_session *session, const struct rfx_step *step) {
    const struct rfx_node *node = &session->graph->nodes[step->node];
    const struct rfx_stage_node *how = &session->plan->stages[step->stage].nodes[step->node];
    rfx_session_guard_all(session);
    unguard(session, &how->packed);
    unguard(session, &how->buffer);
    unguard_node(session, step->stage, step->node);
    bool alone = step->kind == RFX_STEP_LOAD || step->kind == RFX_STEP_KEEP ||
                 step->kind == RFX_STEP_SPILL || step->kind == RFX_STEP_FETCH;
    if (alone) return;
    for (int k = 0; k < node->n_in; k++) unguard_node(session, step->stage, node->in[k]);
}
#else
void rfx_session_guard_all(const struct rfx_session *session) {
    (void)session;
}

void rfx_session_guard_nothing(const struct rfx_session *session) {
    (void)session;
}

void rfx_session_guard_step(const struct rfx_session *session, const struct rfx_step *step) {
    (void)session;
    (void)step;
}
#endif
