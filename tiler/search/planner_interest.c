/* What candidates are worth looking at; see planner_search.h.
 *
 * A candidate is given up as soon as what is sure of it says that it is out: its cost and its bound
 * are looked at last, as they take longest to find. What is sure is never more than what will be
 * found, so that the same candidates are kept as if all were looked at to the end. */
#include "tiler/search/planner_search.h"

bool rfx_search_wants_all(const struct rfx_search *search) {
    size_t budget = search->context.request->memory_bytes;
    return budget == 0 || budget == SIZE_MAX;
}

bool rfx_search_is_out(const struct rfx_search *search, enum rfx_plan_kind kind, size_t bound,
                       uint64_t cost) {
    const struct rfx_search_rivals *rivals = search->rivals;
    bool fits = bound <= search->context.request->memory_bytes;
    if (!fits && bound > search->bound_limit) return true;
    if (rivals == NULL) return cost > search->cost_limit;
    if (fits) {
        int n = rivals->n[kind];
        return n == RFX_SEARCH_RIVAL_TRIES && cost > rivals->costs[kind][n - 1];
    }
    if (bound == rivals->least_bound[kind]) return cost > rivals->least_cost[kind];
    return bound > rivals->least_bound[kind];
}

/* Sums of other order than the cost's need some room. */
uint64_t rfx_search_least_cost(const struct rfx_search *search, enum rfx_plan_kind kind,
                               int n_stages) {
    const struct rfx_search_rivals *rivals = search->rivals;
    double least = 0.0;
    bool limited = search->cost_limit != UINT64_MAX;
    if (rivals != NULL) limited = rivals->least_bound[kind] != SIZE_MAX;
    if (!limited) return 0; /* nothing is known that takes less */
    for (int s = 0; s < n_stages; s++) least += rfx_cost_least(&search->cost, &search->shapes[s]);
    least = least * (1.0 - 2e-9) - 2.0;
    return least < 0.0 ? 0 : (uint64_t)least;
}

void rfx_search_note_behind(struct rfx_search *search, int way, int n_stages) {
    struct rfx_search_behind *behind = &search->behind[way];
    struct rfx_plan_context *c = &search->context;
    if (n_stages < 2 || search->shapes[n_stages - 1].spec.mode != search->rest) return;
    size_t window = c->request->source.window_row_bytes *
                    (size_t)rfx_plan_window_rows(c, search->shapes, n_stages);
    behind->arena = c->rest_bytes;
    behind->fixed = rfx_plan_fixed_bytes(c, search->shapes, n_stages) - window;
}

size_t rfx_search_least_bound(const struct rfx_search *search, int way) {
    const struct rfx_search_behind *behind = &search->behind[way];
    const struct rfx_search_behind *plain = &search->behind[0];
    if (behind->fixed != 0) return behind->arena + behind->fixed;
    if (plain->fixed == 0) return 0;
    return plain->arena / 2 + plain->fixed - search->context.weights_bytes;
}

bool rfx_search_is_hopeless(const struct rfx_search *search, const struct rfx_candidate *c) {
    for (int w = 0; w < RFX_SEARCH_WAYS; w++)
        if (rfx_search_is_open_way(search, c, w) &&
            !rfx_search_is_out(search, c->kind, rfx_search_least_bound(search, w), 0))
            return false;
    return true;
}

void rfx_search_note_rival(struct rfx_search *search, const struct rfx_candidate *c) {
    struct rfx_search_rivals *rivals = search->rivals;
    if (rivals == NULL) return;
    if (c->bound < rivals->least_bound[c->kind]) {
        rivals->least_bound[c->kind] = c->bound;
        rivals->least_cost[c->kind] = c->cost;
    } else if (c->bound == rivals->least_bound[c->kind] && c->cost < rivals->least_cost[c->kind]) {
        rivals->least_cost[c->kind] = c->cost;
    }
    if (c->bound > search->context.request->memory_bytes) return;
    uint64_t *costs = rivals->costs[c->kind];
    int *n = &rivals->n[c->kind];
    int at = *n < RFX_SEARCH_RIVAL_TRIES ? (*n)++ : RFX_SEARCH_RIVAL_TRIES - 1;
    for (; at > 0 && costs[at - 1] > c->cost; at--) costs[at] = costs[at - 1];
    costs[at] = c->cost;
}
