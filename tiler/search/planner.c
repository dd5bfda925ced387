/* The planner: among all skeletons, modes, bands, strips and grids, the least predicted time within
 * the budget; among equal times the fewest MACs, then the least memory.
 *
 * Candidates are listed phase by phase (planner_search.h), after a plan that fits only those that
 * take no longer. In a phase they are ordered by time and tried from the best: first against the
 * lower bound of their arena, then by placing their buffers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layers/core/byte_text.h"
#include "layers/graph/op.h"
#include "tiler/plan/mode.h"
#include "tiler/search/planner_search.h"

#define MIB ((size_t)1 << 20)

/* Code, libraries and stacks of a process that runs a network: 4.1 to 5.2 MiB were measured beside
 * what is allocated, and 0.1 to 0.5 more with a second thread. */
#define CODE_BYTES (23 * MIB / 4)
#define THREAD_BYTES (11 * MIB / 32)
/* What OpenBLAS adds where it is loaded: its code, and its buffers of each thread. */
#define BLAS_BYTES (11 * MIB / 4)
#define BLAS_THREAD_BYTES MIB
#define TABLE_BYTES_PER_NODE ((size_t)512) /* of the session; 150 to 550 were measured */
/* The peak of planning beside the graph: the process, and tables of nodes and stages. */
#define PLANNING_BYTES (21 * MIB / 4)
#define PLANNING_BYTES_PER_NODE ((size_t)5120)
/* Rows that were measured are kept for the next candidate: so much a node, and at most so much. */
#define PLANNING_KNOWN_PER_NODE ((size_t)8192)
#define PLANNING_KNOWN_BYTES MIB
#define PLANNING_BYTES_PER_STAGE ((size_t)144) /* of a node */
/* Of a node in each stage of a plan; planning holds up to three plans at a time. */
#define PLAN_BYTES_PER_STAGE ((size_t)104)

size_t rfx_plan_reserve_bytes(int threads) {
    return CODE_BYTES + (size_t)(threads - 1) * THREAD_BYTES;
}

static bool calls_blas(const struct rfx_graph *graph) {
    for (int i = 0; i < graph->n_nodes; i++)
        if (rfx_op_calls_blas(graph, &graph->nodes[i])) return true;
    return false;
}

size_t rfx_plan_process_bytes(const struct rfx_graph *graph,
                              const struct rfx_plan_request *request) {
    size_t threads = (size_t)request->threads, reserve = rfx_plan_reserve_bytes(request->threads);
    if (request->process_bytes > CODE_BYTES) reserve += request->process_bytes - CODE_BYTES;
    if (calls_blas(graph)) reserve += BLAS_BYTES + threads * BLAS_THREAD_BYTES;
    return reserve + graph->model_bytes + graph->held_bytes +
           (size_t)graph->n_nodes * TABLE_BYTES_PER_NODE;
}

size_t rfx_plan_table_bytes(const struct rfx_graph *graph, int n_stages) {
    return (size_t)(n_stages - 1) * (size_t)graph->n_nodes * PLAN_BYTES_PER_STAGE;
}

size_t rfx_plan_prepare_bytes(const struct rfx_graph *graph, int max_stages, int n_stages) {
    size_t load = graph->load_bytes == 0 ? 0 : graph->load_bytes + RFX_LOAD_PROCESS_BYTES;
    size_t node = PLANNING_BYTES_PER_NODE + (size_t)max_stages * PLANNING_BYTES_PER_STAGE;
    size_t known = (size_t)graph->n_nodes * PLANNING_KNOWN_PER_NODE;
    if (known > PLANNING_KNOWN_BYTES) known = PLANNING_KNOWN_BYTES;
    size_t planning = PLANNING_BYTES + known + graph->held_bytes + (size_t)graph->n_nodes * node +
                      3 * rfx_plan_table_bytes(graph, n_stages);
    return graph->model_bytes + (load > planning ? load : planning);
}

/* Whether a candidate fits is decided by the quick placement, so that a budget that is named as
 * possible is; the plan is then placed with all effort, which can only make it smaller. */
static enum rfx_status build_within(struct rfx_search *search, struct rfx_candidate *c,
                                    struct rfx_plan **out, struct rfx_error *err) {
    size_t budget = search->context.request->memory_bytes;
    if (budget != 0) {
        enum rfx_status status = rfx_search_peak(search, c, err);
        if (status != RFX_OK || c->peak > budget) return status;
    }
    return rfx_search_build(search, c, out, err);
}

static bool is_better(const struct rfx_candidate *c, const struct rfx_plan *known) {
    return c->cost < known->cost || (c->cost == known->cost && c->macs < known->macs);
}

/* First candidate of the phase by time whose placed peak fits and that is better than a plan that
 * is known (or NULL); *out stays NULL when there is none. */
static enum rfx_status find_cheapest(struct rfx_search *search, const struct rfx_plan *known,
                                     struct rfx_plan **out, struct rfx_error *err) {
    size_t budget = search->context.request->memory_bytes;
    size_t n = search->n_candidates - search->first;
    if (n == 0) return RFX_OK;
    struct rfx_candidate *candidates = search->candidates + search->first;
    qsort(candidates, n, sizeof *candidates, rfx_candidate_compare_cost);
    for (size_t i = 0; i < n && *out == NULL; i++) {
        struct rfx_candidate *c = &candidates[i];
        if (known != NULL && !is_better(c, known)) continue;
        if (budget != 0 && c->bound > budget) continue;
        enum rfx_status status = build_within(search, c, out, err);
        if (status != RFX_OK) return status;
    }
    return RFX_OK;
}

/* Nothing has fitted yet: whatever is sure to need more than a plan of this size is not the
 * smallest either, and need not be kept. */
static enum rfx_status limit_bound(struct rfx_search *search, struct rfx_error *err) {
    struct rfx_candidate *least = NULL;
    for (size_t i = 0; i < search->n_candidates; i++)
        if (least == NULL || search->candidates[i].bound < least->bound)
            least = &search->candidates[i];
    if (least == NULL) return RFX_OK;
    enum rfx_status status = rfx_search_peak(search, least, err);
    if (status != RFX_OK) return status;
    if (least->peak < search->bound_limit) search->bound_limit = least->peak;
    size_t kept = 0;
    for (size_t i = 0; i < search->n_candidates; i++)
        if (search->candidates[i].bound <= search->bound_limit)
            search->candidates[kept++] = search->candidates[i];
    search->n_candidates = kept;
    return RFX_OK;
}

/* The candidate of all phases with the smallest peak in the quick placement (as small in less
 * time). */
static enum rfx_status find_smallest(struct rfx_search *search, struct rfx_plan **out,
                                     struct rfx_error *err) {
    size_t best_bytes = SIZE_MAX;
    struct rfx_candidate best = {.cost = UINT64_MAX};
    if (search->n_candidates == 0)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "nothing is left to try: the request and the modes exclude every plan");
    enum rfx_status status = RFX_OK;
    if (search->context.request->memory_bytes != 0) status = limit_bound(search, err);
    for (size_t i = 0; status == RFX_OK && i < search->n_candidates; i++)
        status = rfx_search_complete(search, &search->candidates[i], err);
    if (status != RFX_OK) return status;
    qsort(search->candidates, search->n_candidates, sizeof *search->candidates,
          rfx_candidate_compare_bound);
    for (size_t i = 0; i < search->n_candidates; i++) {
        struct rfx_candidate *c = &search->candidates[i];
        if (c->bound > best_bytes) break;
        if (c->bound == best_bytes && c->cost >= best.cost) continue; /* no better if it is met */
        status = rfx_search_peak(search, c, err);
        if (status != RFX_OK) return status;
        if (c->peak > best_bytes || (c->peak == best_bytes && c->cost >= best.cost)) continue;
        best = *c;
        best_bytes = c->peak;
    }
    search->context.quick = search->context.request->memory_bytes != 0;
    return rfx_search_build(search, &best, out, err);
}

static enum rfx_status fail_budget(const struct rfx_plan_request *request,
                                   const struct rfx_plan *smallest, struct rfx_error *err) {
    const struct rfx_plan_bytes *b = &smallest->bytes;
    double mib = (double)MIB;
    size_t least = smallest->peak_bytes;
    char needs[RFX_BYTE_TEXT], budget[RFX_BYTE_TEXT];
    rfx_byte_texts(least, request->memory_bytes, needs, budget);
    return rfx_fail(err, RFX_STATUS_BUDGET_IMPOSSIBLE,
                    "needs at least %zu bytes (%s, --memory %zu), the budget is %s: "
                    "activations %.1f, weights %.1f, scratch %.1f, image %.1f, process %.1f MiB",
                    least, needs, least, budget, (double)b->arena / mib, (double)b->weights / mib,
                    (double)b->scratch / mib, (double)b->source / mib, (double)b->reserve / mib);
}

static enum rfx_status check_request(const struct rfx_graph *graph,
                                     const struct rfx_plan_request *request,
                                     struct rfx_error *err) {
    if (request->threads < 1)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "threads is %d, at least 1 is needed",
                        request->threads);
    const struct rfx_stage_spec *asked = &request->asked;
    if (asked->mode != NULL && request->stages == NULL) {
        enum rfx_status status =
            rfx_stage_check(&(struct rfx_stage_spec){.mode = asked->mode,
                                                     .parts_y = asked->parts_y,
                                                     .parts_x = asked->parts_x,
                                                     .band_rows = asked->band_rows},
                            err);
        if (status != RFX_OK) return status;
        if (!asked->mode->local && request->split != NULL)
            return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                            "%s contradicts a split: it makes all that is left",
                            asked->mode->a_mode);
    }
    const struct rfx_tensor *input = &graph->nodes[graph->input].out;
    const struct rfx_source_traits *s = &request->source;
    if (s->h != input->h || s->w != input->w || s->c != input->c)
        return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                        "the image is %lldx%lld with %lld channels, the network's input "
                        "%lldx%lld with %lld",
                        (long long)s->h, (long long)s->w, (long long)s->c, (long long)input->h,
                        (long long)input->w, (long long)input->c);
    return RFX_OK;
}

/* The request with a default way where a split was named without one and without a budget. */
static struct rfx_plan_request complete_request(const struct rfx_plan_request *request) {
    struct rfx_plan_request r = *request;
    struct rfx_stage_spec cut = rfx_ask_cut();
    if (r.split == NULL || r.asked.mode != NULL || r.memory_bytes != 0) return r;
    r.asked.mode = cut.mode;
    r.asked.parts_y = cut.parts_y;
    r.asked.parts_x = cut.parts_x;
    r.asked.band_rows = cut.band_rows;
    return r;
}

/* A plan that fits is known: what does not is of no interest, however small it is. */
static void take_only_fitting(struct rfx_search *search) {
    if (search->context.request->memory_bytes != 0) search->bound_limit = 0;
}

/* The plan that fits, or (by size, or when none fits) the smallest; where nothing but a plan that
 * fits is of interest, none. */
static enum rfx_status run_search(struct rfx_search *search, bool by_size,
                                  struct rfx_plan **fitting, struct rfx_plan **smallest,
                                  struct rfx_error *err) {
    for (int phase = 0; phase < search->phases; phase++) {
        struct rfx_plan *better = NULL;
        enum rfx_status status = rfx_search_list(search, phase, err);
        if (status == RFX_OK && !by_size) status = find_cheapest(search, *fitting, &better, err);
        if (status != RFX_OK) return status;
        bool goes_on = *fitting == NULL && !by_size && phase + 1 < RFX_PHASES;
        if (better == NULL && goes_on && search->bound_limit != 0)
            status = limit_bound(search, err);
        if (status != RFX_OK) return status;
        bool wanting = better == NULL && *fitting == NULL && search->bound_limit != 0;
        if (wanting && search->left_out && !search->patient) {
            search->patient = true;
            phase--; /* once more, with what was left out */
            continue;
        }
        if (better == NULL) continue;
        rfx_plan_free(*fitting);
        *fitting = better;
        search->cost_limit = better->cost;
        take_only_fitting(search);
    }
    if (*fitting != NULL) return rfx_search_choose_rows(search, fitting, err);
    if (search->bound_limit == 0)
        return rfx_fail(err, RFX_STATUS_BUDGET_IMPOSSIBLE, "nothing takes less and fits");
    return find_smallest(search, smallest, err);
}

/* Of what takes no longer than a plan that fits, or so little that the rows a step of each of its
 * stages, which that one has chosen, may make up for it. Beside one that takes little longer than
 * an untiled run, what computes anything twice would hardly be better. */
static void limit_to_better(struct rfx_search *search, const struct rfx_plan *known) {
    enum { LITTLE = 8 };
    bool exact = known->cost / 23 <= known->cost_untiled / 20;
    search->cost_limit = known->cost + known->cost / LITTLE;
    if (exact && search->context.request->asked.mode == NULL) search->phases = RFX_PHASE_RECOMPUTE;
    take_only_fitting(search);
}

enum rfx_status rfx_search_plan(const struct rfx_graph *graph, const struct rfx_plan_request *asked,
                                const struct rfx_plan *known, struct rfx_plan **out,
                                struct rfx_plan **smallest, struct rfx_error *err) {
    struct rfx_plan_request request = complete_request(asked);
    struct rfx_search search;
    struct rfx_plan *fitting = NULL;
    struct rfx_plan *least = NULL;
    enum rfx_status status = check_request(graph, &request, err);
    if (status != RFX_OK) return status;
    status = rfx_search_init(&search, graph, &request, err);
    if (status == RFX_OK && known != NULL) limit_to_better(&search, known);
    bool by_size = request.memory_bytes == 0 && request.split == NULL &&
                   request.asked.mode != NULL && request.asked.mode->local;
    if (status == RFX_OK && request.stages != NULL)
        status = rfx_search_build_given(&search, &least, err);
    else if (status == RFX_OK)
        status = run_search(&search, by_size, &fitting, &least, err);
    size_t budget = request.memory_bytes;
    if (status == RFX_OK && fitting == NULL && (budget == 0 || least->peak_bytes <= budget)) {
        fitting = least;
        least = NULL;
    }
    if (status == RFX_OK && fitting == NULL) status = fail_budget(&request, least, err);
    if (status == RFX_OK)
        *out = fitting;
    else
        rfx_plan_free(fitting); /* the search for a better one failed or was stopped */
    if (status == RFX_STATUS_BUDGET_IMPOSSIBLE)
        *smallest = least;
    else
        rfx_plan_free(least);
    rfx_search_release(&search);
    return status;
}
