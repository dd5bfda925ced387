/* Which searches are made, in which order and for how long.
 *
 * A search at the proven bound either ends at the optimum or raises the bound; one halfway to the
 * best answer lowers that answer. The time of a search hangs on the order in which items are tried
 * in a way nobody can foretell, so all orders get a few nodes in turn, and then twice as many. */
#include "tiler/packer.h"

#include <assert.h>
#include <string.h>
#include <time.h>

#include "tiler/packer_merge.h"
#include "tiler/packer_search.h"
#include "tiler/placement_offsets.h"

enum { FIRST_BUDGET_NODES = 1000, MERGE_MAX_ITEMS = 1024, MERGE_NODES = 20000 };

struct packer {
    const struct rfx_place_problem *problem;
    const struct rfx_packer_limits *limits;
    struct rfx_search *search;
    size_t *trial; /* offsets of one try */
    size_t *offsets;
    int64_t deadline_ns;
    struct rfx_packer_result result;
};

static int64_t now_ns(void) {
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC, &now) != 0) return 0;
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void keep_trial(struct packer *packer, size_t arena, const char *method) {
    const struct rfx_place_problem *problem = packer->problem;
    assert(rfx_place_answer_is_valid(problem->items, problem->n, packer->trial, arena));
    memcpy(packer->offsets, packer->trial, (size_t)problem->n * sizeof *packer->trial);
    packer->result.arena_bytes = arena;
    packer->result.method = method;
}

static bool is_done(const struct packer *packer) {
    const struct rfx_packer_result *result = &packer->result;
    size_t target = packer->limits->target_bytes;
    if (result->arena_bytes <= result->lower_bound_bytes) return true;
    return target != 0 && (result->arena_bytes <= target || result->lower_bound_bytes > target);
}

static bool is_spent(const struct packer *packer) {
    if (packer->limits->nodes != 0 && packer->result.nodes >= packer->limits->nodes) return true;
    return packer->deadline_ns != 0 && now_ns() > packer->deadline_ns;
}

static enum rfx_status try_greedy(struct packer *packer, struct rfx_error *err) {
    packer->result.arena_bytes = SIZE_MAX;
    for (int k = 0; k < RFX_OFFSETS_COUNT; k++) {
        enum rfx_offset_strategy strategy = (enum rfx_offset_strategy)k;
        size_t arena = 0;
        enum rfx_status status =
            rfx_offsets_place(packer->problem, strategy, packer->trial, &arena, err);
        if (status != RFX_OK) return status;
        if (arena < packer->result.arena_bytes)
            keep_trial(packer, arena, rfx_offset_strategy_name(strategy));
        if (is_done(packer)) break;
    }
    return RFX_OK;
}

static void probe(struct packer *packer, size_t capacity, enum rfx_search_order order,
                  uint64_t budget) {
    struct rfx_packer_result *result = &packer->result;
    struct rfx_search_request request = {.capacity_bytes = capacity,
                                         .order = order,
                                         .seed = budget,
                                         .nodes = budget,
                                         .deadline_ns = packer->deadline_ns};
    uint64_t limit = packer->limits->nodes;
    if (limit != 0 && limit - result->nodes < budget) request.nodes = limit - result->nodes;
    size_t next = 0;
    switch (rfx_search_probe(packer->search, &request, packer->trial, &next, &result->nodes)) {
        case RFX_SEARCH_FOUND: {
            const struct rfx_place_problem *problem = packer->problem;
            keep_trial(packer, rfx_place_arena_bytes(problem->items, problem->n, packer->trial),
                       "exact");
            break;
        }
        case RFX_SEARCH_EXHAUSTED:
            /* No answer is below `next`, and the best known one is an answer. */
            result->lower_bound_bytes = next < result->arena_bytes ? next : result->arena_bytes;
            break;
        case RFX_SEARCH_LIMIT:
            break;
    }
}

/* Halfway between the bound and the best answer, or the caller's target when it lies between. */
static size_t halfway(const struct packer *packer) {
    const struct rfx_packer_result *result = &packer->result;
    size_t target = packer->limits->target_bytes;
    size_t unit = rfx_search_unit_bytes(packer->search);
    size_t middle = (result->arena_bytes - result->lower_bound_bytes) / 2;
    if (target != 0) return target;
    return result->lower_bound_bytes + middle / unit * unit;
}

/* Searches the problem of joined items (packer_merge.h) at the bound; an answer is kept. */
static enum rfx_status probe_merged(struct packer *packer, uint64_t budget, struct rfx_error *err) {
    const struct rfx_place_problem *problem = packer->problem;
    struct rfx_memory *mem = problem->mem;
    size_t n = (size_t)problem->n;
    struct rfx_place_problem *merged = NULL;
    struct rfx_search *search = NULL;
    int *owner = rfx_memory_calloc(mem, n, sizeof *owner);
    size_t *relative = rfx_memory_calloc(mem, 2 * n, sizeof *relative);
    enum rfx_status status = RFX_OK;
    if (owner == NULL || relative == NULL)
        status = rfx_memory_fail(mem, "packer", 2 * n * sizeof *relative, err);
    if (status == RFX_OK) status = rfx_packer_merge(problem, owner, relative, &merged, err);
    if (status == RFX_OK && merged->n < problem->n)
        status = rfx_search_create(merged, &search, err);
    for (int order = 0; order < RFX_SEARCH_ORDER_COUNT && search != NULL; order++) {
        struct rfx_search_request request = {.capacity_bytes = packer->result.lower_bound_bytes,
                                             .order = (enum rfx_search_order)order,
                                             .seed = budget,
                                             .nodes = budget,
                                             .deadline_ns = packer->deadline_ns};
        size_t *offsets = relative + n;
        size_t next = 0;
        if (is_done(packer) || is_spent(packer)) break;
        uint64_t limit = packer->limits->nodes;
        if (limit != 0 && limit - packer->result.nodes < budget)
            request.nodes = limit - packer->result.nodes;
        if (rfx_search_probe(search, &request, offsets, &next, &packer->result.nodes) !=
            RFX_SEARCH_FOUND)
            continue;
        for (size_t i = 0; i < n; i++) packer->trial[i] = offsets[owner[i]] + relative[i];
        keep_trial(packer, rfx_place_arena_bytes(problem->items, problem->n, packer->trial),
                   "exact");
    }
    rfx_search_free(search);
    rfx_place_problem_free(merged);
    rfx_memory_release(mem, owner);
    rfx_memory_release(mem, relative);
    return status;
}

static void search_all(struct packer *packer) {
    for (uint64_t budget = FIRST_BUDGET_NODES;; budget *= 2) {
        for (int order = 0; order < RFX_SEARCH_ORDER_COUNT; order++) {
            if (is_done(packer) || is_spent(packer)) return;
            probe(packer, packer->result.lower_bound_bytes, (enum rfx_search_order)order, budget);
            if (is_done(packer) || is_spent(packer)) return;
            if (halfway(packer) > packer->result.lower_bound_bytes)
                probe(packer, halfway(packer), (enum rfx_search_order)order, budget / 2);
        }
    }
}

enum rfx_status rfx_packer_solve(const struct rfx_place_problem *problem,
                                 const struct rfx_packer_limits *limits, size_t *offsets,
                                 struct rfx_packer_result *result, struct rfx_error *err) {
    struct packer packer = {.problem = problem, .limits = limits, .offsets = offsets};
    if (limits->time_ns != 0) packer.deadline_ns = now_ns() + limits->time_ns;
    packer.result.lower_bound_bytes = problem->lower_bound;
    packer.trial = rfx_memory_calloc(problem->mem, (size_t)problem->n, sizeof *packer.trial);
    if (packer.trial == NULL)
        return rfx_memory_fail(problem->mem, "packer", (size_t)problem->n * sizeof(size_t), err);
    enum rfx_status status = try_greedy(&packer, err);
    if (status == RFX_OK && !is_done(&packer) && problem->n <= RFX_PACKER_MAX_ITEMS) {
        if (problem->n <= MERGE_MAX_ITEMS) status = probe_merged(&packer, MERGE_NODES, err);
        if (status == RFX_OK && !is_done(&packer))
            status = rfx_search_create(problem, &packer.search, err);
        if (status == RFX_OK && packer.search != NULL) search_all(&packer);
    }
    packer.result.optimal = packer.result.arena_bytes <= packer.result.lower_bound_bytes;
    rfx_search_free(packer.search);
    rfx_memory_release(problem->mem, packer.trial);
    if (status == RFX_OK) *result = packer.result;
    return status;
}
