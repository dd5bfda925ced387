/* Which searches are made, in which order and for how long.
 *
 * A search at the proven bound either ends at the optimum or raises the bound; one halfway to the
 * best answer lowers that answer. The time of a search hangs on the order in which items are tried
 * in a way nobody can foretell, so all orders get a few nodes in turn, and then twice as many. */
#include "tiler/packer/packer.h"

#include <string.h>

#include "tiler/packer/packer_search.h"
#include "tiler/packer/packer_tight.h"
#include "tiler/strategies/placement_many.h"
#include "tiler/strategies/placement_offsets.h"

/* Budgets and widths double from round to round, so what the first ones are costs at most a factor
 * of two; they decide which of several best packings is found, and so the offsets of plans.
 * FIRST_BUDGET_NODES: of one order's search. FIRST_WIDTH, MAX_WIDTH: states of the beam; beyond the
 * largest (a thousand trees per bucket) only the exact search goes on. */
enum { FIRST_BUDGET_NODES = 250, FIRST_WIDTH = 4, MAX_WIDTH = 1024 };

struct packer {
    const struct rfx_place_problem *problem;
    const struct rfx_packer_limits *limits;
    struct rfx_search *search;
    size_t *trial; /* offsets of one try */
    size_t *offsets;
    const struct rfx_place_stop *stop;
    struct rfx_packer_result result;
};

static void keep_trial(struct packer *packer, size_t arena, const char *method) {
    const struct rfx_place_problem *problem = packer->problem;
    memcpy(packer->offsets, packer->trial, (size_t)problem->n * sizeof *packer->trial);
    packer->result.arena_bytes = arena;
    packer->result.method = method;
}

static size_t trial_bytes(const struct packer *packer) {
    const struct rfx_place_problem *problem = packer->problem;
    return rfx_place_arena_bytes(problem->items, problem->n, packer->trial);
}

static bool is_done(const struct packer *packer) {
    const struct rfx_packer_result *result = &packer->result;
    size_t target = packer->limits->target_bytes;
    if (result->arena_bytes <= result->lower_bound_bytes) return true;
    return target != 0 && (result->arena_bytes <= target || result->lower_bound_bytes > target);
}

static bool is_spent(const struct packer *packer) {
    if (packer->limits->nodes != 0 && packer->result.nodes >= packer->limits->nodes) return true;
    return rfx_place_must_stop(packer->problem->mem, packer->stop);
}

/* `may_stop`: the caller's wish to stop is heeded. */
static enum rfx_status try_strategy(struct packer *packer, enum rfx_offset_strategy strategy,
                                    bool may_stop, struct rfx_error *err) {
    size_t arena = 0;
    enum rfx_status status = rfx_offsets_place_until(
        packer->problem, strategy, may_stop ? packer->stop : NULL, packer->trial, &arena, err);
    if (status == RFX_OK && arena < packer->result.arena_bytes)
        keep_trial(packer, arena, rfx_offset_strategy_name(strategy));
    return status;
}

/* As many strip packings as there is time for, at least one. */
static enum rfx_status try_many(struct packer *packer, struct rfx_error *err) {
    const struct rfx_packer_limits *limits = packer->limits;
    struct rfx_many_request request = {.threads = limits->threads > 0 ? limits->threads : 1,
                                       .target_bytes = limits->target_bytes,
                                       .stop = packer->stop};
    size_t arena = 0;
    enum rfx_status status = rfx_many_place(packer->problem, &request, packer->trial, &arena, err);
    if (status == RFX_OK)
        keep_trial(packer, arena, rfx_offset_strategy_name(RFX_OFFSETS_STRIP_PACKING));
    return status;
}

/* All strategies, or the fast one where there is no time for others: there is always an answer. The
 * fast one goes first where it would be long to wait for after a signal. */
static enum rfx_status try_greedy(struct packer *packer, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    packer->result.arena_bytes = SIZE_MAX;
    if (packer->problem->n > RFX_PACKER_MAX_GREEDY_ITEMS) return try_many(packer, err);
    if (packer->limits->stop != NULL && packer->problem->n > RFX_PACKER_MAX_ITEMS)
        status = try_strategy(packer, RFX_OFFSETS_STRIP_PACKING, false, err);
    for (int k = 0; k < RFX_OFFSETS_COUNT && status == RFX_OK; k++) {
        status =
            try_strategy(packer, (enum rfx_offset_strategy)k, packer->limits->stop != NULL, err);
        if (is_done(packer)) break;
    }
    if (status == RFX_STATUS_CANCELLED) status = RFX_OK;
    if (status == RFX_OK && packer->result.arena_bytes == SIZE_MAX)
        status = try_strategy(packer, RFX_OFFSETS_STRIP_PACKING, false, err);
    return status;
}

/* As many nodes of a budget as the limit leaves. */
static uint64_t allowed(const struct packer *packer, uint64_t budget) {
    uint64_t limit = packer->limits->nodes;
    uint64_t left = limit == 0 ? UINT64_MAX : limit - packer->result.nodes;
    return left < budget ? left : budget;
}

static void probe(struct packer *packer, size_t capacity, enum rfx_search_order order,
                  uint64_t budget) {
    struct rfx_packer_result *result = &packer->result;
    struct rfx_search_request request = {.capacity_bytes = capacity,
                                         .order = order,
                                         .seed = budget,
                                         .nodes = allowed(packer, budget),
                                         .stop = packer->stop};
    size_t next = 0;
    switch (rfx_search_probe(packer->search, &request, packer->trial, &next, &result->nodes)) {
        case RFX_SEARCH_FOUND:
            keep_trial(packer, trial_bytes(packer), "exact");
            break;
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

/* Looks for a packing without a spare byte (packer_tight.h) at the bound and at the caller's
 * target, forwards and backwards in time. *go_on: a larger width may find what this one did not. */
static enum rfx_status try_tight(struct packer *packer, int width, bool *go_on,
                                 struct rfx_error *err) {
    struct rfx_packer_result *result = &packer->result;
    size_t target = packer->limits->target_bytes;
    bool any_left = false;
    for (int k = 0; k < (target > result->lower_bound_bytes ? 4 : 2); k++) {
        if (is_done(packer) || is_spent(packer)) break;
        struct rfx_tight_request request = {
            .capacity_bytes = k < 2 ? result->lower_bound_bytes : target,
            .width = width,
            .backwards = k % 2 == 1,
            .nodes = allowed(packer, UINT64_MAX),
            .stop = packer->stop};
        enum rfx_tight_outcome outcome = RFX_TIGHT_ALL_TRIED;
        enum rfx_status status = rfx_tight_place(packer->problem, &request, packer->trial, &outcome,
                                                 &result->nodes, err);
        if (status != RFX_OK) return status;
        if (outcome == RFX_TIGHT_FOUND) keep_trial(packer, trial_bytes(packer), "exact");
        if (outcome == RFX_TIGHT_SOME_LEFT) any_left = true;
    }
    *go_on = any_left;
    return RFX_OK;
}

/* All ways in turn, each with twice as much as before. */
static enum rfx_status search_all(struct packer *packer, struct rfx_error *err) {
    uint64_t budget = FIRST_BUDGET_NODES;
    int width = FIRST_WIDTH;
    bool tight = true;
    size_t bound = 0;
    for (;; budget *= 2) {
        if (packer->result.lower_bound_bytes != bound) { /* another capacity: all anew */
            bound = packer->result.lower_bound_bytes;
            width = FIRST_WIDTH;
            tight = true;
        }
        if (tight) {
            enum rfx_status status = try_tight(packer, width, &tight, err);
            if (status != RFX_OK) return status;
            tight = tight && width < MAX_WIDTH;
            width *= 2;
        }
        for (int order = 0; order < RFX_SEARCH_ORDER_COUNT; order++) {
            if (is_done(packer) || is_spent(packer)) return RFX_OK;
            probe(packer, packer->result.lower_bound_bytes, (enum rfx_search_order)order, budget);
            if (is_done(packer) || is_spent(packer)) return RFX_OK;
            if (halfway(packer) > packer->result.lower_bound_bytes)
                probe(packer, halfway(packer), (enum rfx_search_order)order, budget / 2);
        }
    }
}

enum rfx_status rfx_packer_solve(const struct rfx_place_problem *problem,
                                 const struct rfx_packer_limits *limits, size_t *offsets,
                                 struct rfx_packer_result *result, struct rfx_error *err) {
    struct packer packer = {.problem = problem, .limits = limits, .offsets = offsets};
    struct rfx_place_stop stop = {0};
    if (limits->stop != NULL) stop = *limits->stop;
    if (limits->time_ns != 0) stop.deadline_ns = rfx_place_now_ns() + limits->time_ns;
    packer.stop = &stop;
    packer.result.lower_bound_bytes = problem->lower_bound;
    packer.trial = rfx_memory_calloc(problem->mem, (size_t)problem->n, sizeof *packer.trial);
    if (packer.trial == NULL)
        return rfx_memory_fail(problem->mem, "packer", (size_t)problem->n * sizeof(size_t), err);
    enum rfx_status status = try_greedy(&packer, err);
    if (status == RFX_OK && !is_done(&packer) && problem->n <= RFX_PACKER_MAX_ITEMS) {
        status = rfx_search_create(problem, &packer.search, err);
        if (status == RFX_OK) status = search_all(&packer, err);
    }
    if (status == RFX_OK) status = rfx_memory_check_stop(problem->mem, err);
    if (status == RFX_OK &&
        !rfx_place_answer_is_valid(problem->items, problem->n, offsets, packer.result.arena_bytes))
        status = rfx_place_fail_check(packer.result.method, problem->n, err);
    packer.result.optimal = packer.result.arena_bytes <= packer.result.lower_bound_bytes;
    rfx_search_free(packer.search);
    rfx_memory_release(problem->mem, packer.trial);
    if (status == RFX_OK) *result = packer.result;
    return status;
}
