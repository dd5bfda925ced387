/* Rows a step of a plan that fits, stage by stage; see planner_search.h.
 *
 * Plans are found with the same number for all stages, which is what the largest of them has room
 * for. Where there are several, each is then given the number that takes least time of those that
 * fit, one stage after the other, until nothing is gained: from the plan's numbers on and, of few
 * stages, from every number for all that fits, with tight rings or without. */
#include "layers/core/checked.h"
#include "tiler/plan/mode.h"
#include "tiler/search/planner_search.h"

enum { ROUNDS = 3, FEW_STAGES = 6, ROWS_BESIDE = 1536, MOST_STEPS = 100 * 1000 * 1000 };

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

/* What a walk through a stage looks at: each input of each node, or the node. */
static int64_t looks_of(const struct rfx_graph *graph, const struct rfx_stage *stage) {
    int64_t n = 0;
    for (int i = stage->first; i <= stage->last; i++) n += rfx_max_i64(1, graph->nodes[i].n_in);
    return n;
}

/* Whether there are several stages, and no more than can be walked through in a moment. */
static bool is_worth_it(const struct rfx_search *search, const struct rfx_plan *plan) {
    const struct rfx_graph *graph = search->context.graph;
    const struct rfx_plan_request *request = search->context.request;
    int64_t looks = 0, steps = graph->nodes[graph->input].out.h + ROWS_BESIDE;
    int stages = 0;
    for (int s = 0; s < plan->n_stages; s++) {
        const struct rfx_stage *stage = &plan->stages[s];
        const int64_t *rows = NULL;
        if (!has_rows(&stage->spec)) continue;
        looks += list_rows(stage->spec.mode, &rows) * looks_of(graph, stage);
        stages++;
    }
    if (stages < 2 || request->memory_bytes == 0 || request->asked.mode != NULL) return false;
    return looks * ROUNDS <= MOST_STEPS / steps;
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

/* The stages laid out. */
struct chooser {
    struct rfx_search *search;
    int n_stages;
    uint64_t cost;
    int64_t *best; /* rows of each, of the best so far, and whether its rings are tight */
    bool best_tight;
    uint64_t best_cost;
};

/* Whether what is laid out fits and takes less time than `cost`, which becomes its own. */
static enum rfx_status is_better(struct chooser *c, bool *better, struct rfx_error *err) {
    struct rfx_plan_context *context = &c->search->context;
    size_t budget = context->request->memory_bytes, peak = SIZE_MAX;
    uint64_t cost = rfx_search_cost(c->search, c->n_stages);
    *better = false;
    if (cost >= c->cost || rfx_plan_bound(context, c->search->shapes, c->n_stages) > budget)
        return RFX_OK;
    context->quick = true;
    enum rfx_status status = rfx_plan_peak(context, c->search->shapes, c->n_stages, &peak, err);
    context->quick = false;
    *better = status == RFX_OK && peak <= budget;
    if (*better) c->cost = cost;
    return status;
}

/* Gives stage s the best number of rows. */
static enum rfx_status choose_rows(struct chooser *c, int s, bool *gained, struct rfx_error *err) {
    const int64_t *rows = NULL;
    int n = list_rows(c->search->specs[s].mode, &rows);
    int64_t best = c->search->specs[s].band_rows;
    enum rfx_status status = RFX_OK;
    for (int i = 0; status == RFX_OK && i < n; i++) {
        bool better = false;
        if (rows[i] == best) continue;
        status = rfx_search_set_rows(c->search, s, rows[i], err);
        if (status == RFX_OK) status = is_better(c, &better, err);
        if (better) best = rows[i];
        *gained |= better;
    }
    if (status == RFX_OK) status = rfx_search_set_rows(c->search, s, best, err);
    return status;
}

/* One stage after the other, from what is laid out and takes `cost`. */
static enum rfx_status descend(struct chooser *c, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    bool gained = true;
    for (int round = 0; status == RFX_OK && gained && round < ROUNDS; round++) {
        gained = false;
        for (int s = 0; status == RFX_OK && s < c->n_stages; s++)
            if (has_rows(&c->search->specs[s])) status = choose_rows(c, s, &gained, err);
    }
    if (status != RFX_OK || c->cost >= c->best_cost) return status;
    c->best_cost = c->cost;
    for (int s = 0; s < c->n_stages; s++)
        if (has_rows(&c->search->specs[s])) c->best_tight = c->search->specs[s].tight;
    for (int s = 0; s < c->n_stages; s++) c->best[s] = c->search->specs[s].band_rows;
    return status;
}

/* The same number for all stages, or (0) the best known for each. */
static enum rfx_status set_all(struct chooser *c, int64_t rows, bool tight, struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int s = 0; status == RFX_OK && s < c->n_stages; s++) {
        struct rfx_stage_spec *spec = &c->search->specs[s];
        if (!has_rows(spec)) continue;
        spec->tight = c->search->shapes[s].spec.tight = tight;
        status = rfx_search_set_rows(c->search, s, rows > 0 ? rows : c->best[s], err);
    }
    return status;
}

static enum rfx_status start_from(struct chooser *c, int64_t rows, bool tight,
                                  struct rfx_error *err) {
    bool fits = false;
    c->cost = UINT64_MAX;
    enum rfx_status status = set_all(c, rows, tight, err);
    if (status == RFX_OK) status = is_better(c, &fits, err);
    return fits ? descend(c, err) : status;
}

static enum rfx_status choose_all(struct chooser *c, const struct rfx_plan *plan,
                                  struct rfx_error *err) {
    const int64_t *rows = NULL;
    int n = 0, ways = 1;
    enum rfx_status status = lay_out(c->search, plan, err);
    for (int s = 0; status == RFX_OK && s < c->n_stages; s++) {
        const struct rfx_stage_spec *spec = &plan->stages[s].spec;
        c->best[s] = spec->band_rows;
        if (!has_rows(spec)) continue;
        if (c->n_stages <= FEW_STAGES) n = list_rows(spec->mode, &rows);
        ways = !spec->tight && (spec->mode->knows & RFX_KNOWS_TIGHT) != 0 ? 2 : 1;
        c->best_tight = spec->tight;
    }
    if (status == RFX_OK) status = descend(c, err);
    bool first = c->best_tight;
    for (int i = 0; status == RFX_OK && i < ways * n; i++)
        status = start_from(c, rows[i % n], first || i >= n, err);
    return status == RFX_OK ? set_all(c, 0, c->best_tight, err) : status;
}

enum rfx_status rfx_search_choose_rows(struct rfx_search *search, struct rfx_plan **plan,
                                       struct rfx_error *err) {
    if (!is_worth_it(search, *plan)) return RFX_OK;
    struct rfx_memory *mem = search->context.graph->mem;
    struct rfx_plan *better = NULL;
    struct chooser c = {.search = search,
                        .n_stages = (*plan)->n_stages,
                        .cost = (*plan)->cost,
                        .best_cost = (*plan)->cost};
    c.best = rfx_memory_calloc(mem, (size_t)c.n_stages, sizeof *c.best);
    if (c.best == NULL)
        return rfx_memory_fail(mem, "rows of stages", (size_t)c.n_stages * sizeof *c.best, err);
    search->by_rows = true;
    enum rfx_status status = choose_all(&c, *plan, err);
    search->by_rows = false;
    rfx_memory_release(mem, c.best);
    if (status == RFX_OK && c.best_cost < (*plan)->cost)
        status =
            rfx_plan_build(&search->context, search->shapes, c.n_stages, c.best_cost, &better, err);
    if (status != RFX_OK || better == NULL) return status;
    better->cost_untiled = search->cost_untiled;
    rfx_plan_free(*plan);
    *plan = better;
    return RFX_OK;
}
