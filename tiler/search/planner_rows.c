/* Rows a step of a plan that fits, stage by stage; see planner_search.h.
 *
 * Plans are found with the same number for all stages, which is what the largest of them has room
 * for. Where there are several, each is then given the number that takes least time of those that
 * fit, one stage after the other, until nothing is gained. */
#include "layers/core/checked.h"
#include "tiler/plan/mode.h"
#include "tiler/search/planner_search.h"

enum { ROUNDS = 3, ROWS_BESIDE = 1536, MOST_STEPS = 100 * 1000 * 1000 };

/* The numbers of rows that a mode's trials have; the longest list of them. */
static int list_rows(const struct rfx_mode *mode, const int64_t **rows) {
    int n = 0;
    for (int t = 0; t < mode->n_trials; t++)
        if (mode->trials[t].n_bands > n) {
            n = mode->trials[t].n_bands;
            *rows = mode->trials[t].bands;
        }
    return n;
}

static bool has_rows(const struct rfx_stage_spec *spec) {
    return spec->mode->local && spec->band_rows > 0;
}

/* Whether there are several stages, and no more than can be walked through in a moment. */
static bool is_worth_it(const struct rfx_search *search, const struct rfx_plan *plan) {
    const struct rfx_graph *graph = search->context.graph;
    const struct rfx_plan_request *request = search->context.request;
    int64_t nodes = 0, steps = graph->nodes[graph->input].out.h + ROWS_BESIDE;
    int stages = 0;
    for (int s = 0; s < plan->n_stages; s++) {
        const struct rfx_stage *stage = &plan->stages[s];
        const int64_t *rows = NULL;
        if (!has_rows(&stage->spec)) continue;
        nodes += (int64_t)list_rows(stage->spec.mode, &rows) * (stage->last - stage->first + 1);
        stages++;
    }
    if (stages < 2 || request->memory_bytes == 0 || request->asked.mode != NULL) return false;
    return nodes * ROUNDS <= MOST_STEPS / steps;
}

static enum rfx_status lay_out(struct rfx_search *search, const struct rfx_plan *plan,
                               struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    rfx_search_begin(search, NULL);
    for (int s = 0; status == RFX_OK && s < plan->n_stages; s++) {
        search->specs[s] = plan->stages[s].spec;
        status = rfx_search_measure(search, s, err);
    }
    return status;
}

/* Whether what is laid out fits and takes less time than `cost`, which becomes its own. */
static enum rfx_status is_better(struct rfx_search *search, int n_stages, uint64_t *cost,
                                 bool *better, struct rfx_error *err) {
    size_t budget = search->context.request->memory_bytes, peak = SIZE_MAX;
    uint64_t now = rfx_search_cost(search, n_stages);
    *better = false;
    if (now >= *cost || rfx_plan_bound(&search->context, search->shapes, n_stages) > budget)
        return RFX_OK;
    search->context.quick = true;
    enum rfx_status status = rfx_plan_peak(&search->context, search->shapes, n_stages, &peak, err);
    search->context.quick = false;
    *better = peak <= budget;
    if (*better) *cost = now;
    return status;
}

/* Gives stage s the best number of rows. */
static enum rfx_status choose_rows(struct rfx_search *search, int n_stages, int s, uint64_t *cost,
                                   bool *gained, struct rfx_error *err) {
    const int64_t *rows = NULL;
    int n = list_rows(search->specs[s].mode, &rows);
    int64_t best = search->specs[s].band_rows;
    enum rfx_status status = RFX_OK;
    for (int i = 0; status == RFX_OK && i < n; i++) {
        bool better;
        if (rows[i] == best) continue;
        status = rfx_search_set_rows(search, s, rows[i], err);
        if (status == RFX_OK) status = is_better(search, n_stages, cost, &better, err);
        if (status == RFX_OK && better) {
            best = rows[i];
            *gained = true;
        }
    }
    if (status == RFX_OK) status = rfx_search_set_rows(search, s, best, err);
    return status;
}

enum rfx_status rfx_search_choose_rows(struct rfx_search *search, struct rfx_plan **plan,
                                       struct rfx_error *err) {
    struct rfx_plan *better = NULL;
    int n = (*plan)->n_stages;
    uint64_t cost = (*plan)->cost;
    bool gained = true, ever = false;
    if (!is_worth_it(search, *plan)) return RFX_OK;
    enum rfx_status status = lay_out(search, *plan, err);
    for (int round = 0; status == RFX_OK && gained && round < ROUNDS; round++) {
        gained = false;
        for (int s = 0; status == RFX_OK && s < n; s++)
            if (has_rows(&search->specs[s]))
                status = choose_rows(search, n, s, &cost, &gained, err);
        ever |= gained;
    }
    if (status == RFX_OK && ever)
        status = rfx_plan_build(&search->context, search->shapes, n, cost, &better, err);
    if (status != RFX_OK || better == NULL) return status;
    better->cost_untiled = search->cost_untiled;
    rfx_plan_free(*plan);
    *plan = better;
    return RFX_OK;
}
