/* Creates and frees a session, and sets its receivers. session_run.c holds the steps of a run. */
#include "rfexec/run/session.h"

#include <assert.h>
#include <math.h>
#include <sys/mman.h>
#include <unistd.h>

#include "layers/conv/blas.h"
#include "layers/core/checked.h"
#include "layers/core/threads.h"
#include "layers/graph/pack.h"
#include "rfexec/run/session_state.h"

#define HUGE_PAGE_BYTES ((size_t)2 << 20)

void rfx_session_free(struct rfx_session *session) {
    if (session == NULL) return;
    struct rfx_memory *mem = session->mem;
    if (session->arena != NULL) rfx_session_guard_nothing(session);
    rfx_schedule_free(session->schedule);
    rfx_spill_free(session->spill);
    rfx_memory_release(mem, session->arena);
    rfx_memory_release(mem, session->scratch);
    rfx_packed_weights_free(session->own_weights);
    rfx_memory_release(mem, session->inputs);
    rfx_memory_release(mem, session);
}

void rfx_session_prefer_huge_pages(void *block, size_t bytes) {
    uintptr_t lo = ((uintptr_t)block + HUGE_PAGE_BYTES - 1) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    uintptr_t hi = ((uintptr_t)block + bytes) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    if (hi > lo) (void)madvise((void *)lo, hi - lo, MADV_HUGEPAGE);
}

static enum rfx_status allocate(struct rfx_session *session, struct rfx_error *err) {
    const struct rfx_plan *plan = session->plan;
    struct rfx_memory *mem = session->mem;
    int n = session->graph->n_nodes;
    size_t max_in = 1;
    for (int i = 0; i < n; i++)
        if ((size_t)session->graph->nodes[i].n_in > max_in)
            max_in = (size_t)session->graph->nodes[i].n_in;
    session->inputs = rfx_memory_calloc(mem, max_in, sizeof *session->inputs);
    if (session->inputs == NULL)
        return rfx_memory_fail(mem, "session tables", max_in * sizeof *session->inputs, err);
    session->arena = rfx_memory_alloc(mem, plan->bytes.arena);
    if (session->arena == NULL) return rfx_memory_fail(mem, "arena", plan->bytes.arena, err);
    session->scratch = rfx_memory_alloc(mem, plan->bytes.scratch);
    if (session->scratch == NULL) return rfx_memory_fail(mem, "scratch", plan->bytes.scratch, err);
    rfx_session_prefer_huge_pages(session->arena, plan->bytes.arena);
    return RFX_OK;
}

/* Reserves the work buffers of OpenBLAS, 128 MiB of address space each, but only if a node of the
 * graph calls OpenBLAS. */
static enum rfx_status reserve_blas(const struct rfx_session *session, struct rfx_error *err) {
    const struct rfx_graph *graph = session->graph;
    for (int i = 0; i < graph->n_nodes; i++)
        if (rfx_op_calls_blas(graph, &graph->nodes[i]))
            return rfx_blas_reserve(session->plan->threads, err);
    return RFX_OK;
}

static enum rfx_status use_weights(struct rfx_session *session,
                                   const struct rfx_packed_weights *weights,
                                   struct rfx_error *err) {
    session->weights = weights;
    if (weights != NULL) return RFX_OK;
    enum rfx_status status =
        rfx_packed_weights_create(session->plan, session->mem, &session->own_weights, err);
    session->weights = session->own_weights;
    return status;
}

enum rfx_status rfx_session_create(const struct rfx_plan *plan,
                                   const struct rfx_packed_weights *weights, struct rfx_memory *mem,
                                   struct rfx_session **out, struct rfx_error *err) {
    struct rfx_session *session = rfx_memory_calloc(mem, 1, sizeof *session);
    if (session == NULL) return rfx_memory_fail(mem, "session", sizeof *session, err);
    session->graph =
        plan->graph; /* the plan's graph, which may have other groups than the caller's */
    session->plan = plan;
    session->mem = mem;
    rfx_memory_trim(mem); /* planning freed memory that the allocator still holds; the budget does
                             not include it */
    enum rfx_status status = allocate(session, err);
    if (status == RFX_OK) status = rfx_threads_try(plan->threads, err);
    if (status == RFX_OK) status = reserve_blas(session, err);
    if (status == RFX_OK) status = rfx_schedule_create(plan, &session->schedule, err);
    if (status == RFX_OK) status = rfx_spill_create(plan, &session->spill, err);
    if (status == RFX_OK) status = use_weights(session, weights, err);
    if (status != RFX_OK) {
        rfx_session_free(session);
        return status;
    }
    *out = session;
    return RFX_OK;
}

struct rfx_view rfx_session_view(const struct rfx_session *session, int i) {
    const struct rfx_node *node = &session->graph->nodes[i];
    struct rfx_resident_region region = rfx_schedule_resident_region(session->schedule, i);
    unsigned char *base = rfx_node_is_constant(node) ? rfx_packed_weights_of(session->weights, i)
                                                     : session->arena + region.offset;
    struct rfx_view view = rfx_view_of(&node->out, base, region.rect);
    view.ring_rows = region.ring_rows;
    if (region.has_staging) {
        view.staging = session->arena + region.staging_offset;
        view.staging_y0 = region.staging_y0;
    }
    return view;
}

void rfx_session_set_sink(struct rfx_session *session, const struct rfx_output_sink *sink) {
    session->sink = sink;
}

void rfx_session_set_state_sink(struct rfx_session *session, const struct rfx_state_sink *sink) {
    session->states = sink;
}

void rfx_session_set_spill_folder(struct rfx_session *session, const char *folder) {
    rfx_spill_set_folder(session->spill, folder);
}

void rfx_session_set_observer(struct rfx_session *session,
                              const struct rfx_step_observer *observer) {
    session->observer = observer;
}

bool rfx_session_stores(const struct rfx_session *session, int node) {
    return rfx_node_is_constant(&session->graph->nodes[node]) ||
           session->plan->stored[node].bytes != 0;
}

void rfx_session_give_back(struct rfx_session *session) {
    unsigned char *blocks[2] = {session->arena, session->scratch};
    size_t bytes[2] = {session->plan->bytes.arena, session->plan->bytes.scratch};
    for (int b = 0; b < 2; b++) {
        uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
        uintptr_t lo = ((uintptr_t)blocks[b] + page - 1) / page * page;
        uintptr_t hi = ((uintptr_t)blocks[b] + bytes[b]) / page * page;
        if (hi > lo) (void)madvise((void *)lo, hi - lo, MADV_DONTNEED);
    }
}
