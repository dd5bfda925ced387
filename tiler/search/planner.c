/* The planner: among all partitions, modes, bands, strips and grids it finds the plan with the
 * least predicted time within the budget; among equal times the fewest MACs, then the least memory.
 *
 * Candidates are listed phase by phase (candidates.h). Once a plan fits, only candidates that are
 * not slower are listed. Within a phase candidates are sorted by time and tried from the fastest
 * on: first their lower bound is compared with the budget, then their buffers are placed.
 *
 * All stages of a candidate have the same number of rows per step, which the stage with the largest
 * memory limits. So if a plan has several stages, each stage is then given the number of rows that
 * takes the least time among those that fit. This is repeated stage after stage, until nothing
 * improves. The search starts from the plan's numbers and, for few stages, also from every uniform
 * number that fits, with and without staging rows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layers/core/byte_text.h"
#include "layers/core/checked.h"
#include "layers/graph/op.h"
#include "tiler/plan/mode.h"
#include "tiler/search/candidates.h"

/* Checks that some stage computes every output. */
static enum rfx_status check_outputs(const struct rfx_search *search, int n_stages,
                                     struct rfx_error *err) {
    const struct rfx_graph *graph = search->context.graph;
    for (int e = 0; e < graph->n_ends; e++) {
        int i = graph->ends[e].node;
        bool made = rfx_node_is_constant(&graph->nodes[i]) || search->stored[i];
        for (int s = 0; s < n_stages; s++) made |= search->shapes[s].places[i] == RFX_PLACE_EMITTED;
        if (!made)
            return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                            "output '%s' ('%s') is no target of any stage",
                            graph->outputs[graph->ends[e].output].name, graph->nodes[i].name);
    }
    return RFX_OK;
}

/* Checks that a forgotten map is not stored again: a plan has one place per map. */
static enum rfx_status check_forgotten(const struct rfx_search *search, int n_stages,
                                       struct rfx_error *err) {
    const struct rfx_node *nodes = search->context.graph->nodes;
    for (int s = 0; s < n_stages; s++)
        for (int f = 0; f < search->specs[s].n_forgotten; f++)
            for (int t = s + 1; t < n_stages; t++) {
                int node = search->specs[s].forgotten[f];
                if (search->shapes[t].places[node] > RFX_PLACE_LOCAL)
                    return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT,
                                    "stages[%d]: target '%s' is stored twice, and forgotten in "
                                    "between by stages[%d]",
                                    t, nodes[node].name, s);
            }
    return RFX_OK;
}

static enum rfx_status build_given(struct rfx_search *search, struct rfx_plan **out,
                                   struct rfx_error *err) {
    const struct rfx_plan_request *request = search->context.request;
    int n = request->n_stages;
    rfx_search_begin(search, NULL);
    for (int s = 0; s < n; s++) {
        search->specs[s] = request->stages[s];
        search->specs[s].weights_by_stage |= request->asked.weights_by_stage;
        enum rfx_status status = rfx_search_measure(search, s, err);
        if (status != RFX_OK) return rfx_fail_within(err, status, "stages[%d]", s);
    }
    enum rfx_status status = check_outputs(search, n, err);
    if (status == RFX_OK) status = check_forgotten(search, n, err);
    if (status != RFX_OK) return status;
    status =
        rfx_plan_build(&search->context, search->shapes, n, rfx_search_cost(search, n), out, err);
    if (status == RFX_OK) (*out)->cost_untiled = search->cost_untiled;
    return status;
}

enum { ROUNDS = 3, FEW_STAGES = 6, ROWS_BESIDE = 1536, MOST_STEPS = 100 * 1000 * 1000 };

/* Returns the longest list of rows per step among a mode's templates. */
static int list_rows(const struct rfx_mode *mode, const int64_t **rows) {
    int n = 0;
    for (int t = 0; t < mode->n_templates; t++)
        if (mode->templates[t].n_bands > n) {
            n = mode->templates[t].n_bands;
            *rows = mode->templates[t].bands;
        }
    return n;
}

static bool has_rows(const struct rfx_stage_spec *spec) {
    return spec->mode->local && spec->band_rows > 0;
}

/* Returns how many inputs one pass over a stage's nodes examines (at least one per node). */
static int64_t looks_of(const struct rfx_graph *graph, const struct rfx_stage *stage) {
    int64_t n = 0;
    for (int i = stage->first; i <= stage->last; i++) n += rfx_max_i64(1, graph->nodes[i].n_in);
    return n;
}

/* Returns whether choosing rows per stage is worth its time: the plan has several stages, and few
 * enough rows and nodes that walking through them takes only a moment. */
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

/* The measured stages, and the best choice so far. */
struct chooser {
    struct rfx_search *search;
    int n_stages;
    uint64_t cost;
    int64_t *best; /* rows per step of each stage, and whether they have staging rows */
    bool best_staging;
    uint64_t best_cost;
};

/* Sets *better if the measured stages fit the budget and take less time than c->cost, which then
 * becomes their time. */
static enum rfx_status fits_and_is_better(struct chooser *c, bool *better, struct rfx_error *err) {
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

/* Finds the best rows per step for stage s. Sets *gained if they improve the plan. */
static enum rfx_status choose_rows(struct chooser *c, int s, bool *gained, struct rfx_error *err) {
    const int64_t *rows = NULL;
    int n = list_rows(c->search->specs[s].mode, &rows);
    int64_t best = c->search->specs[s].band_rows;
    enum rfx_status status = RFX_OK;
    for (int i = 0; status == RFX_OK && i < n; i++) {
        bool better = false;
        if (rows[i] == best) continue;
        status = rfx_search_set_rows(c->search, s, rows[i], err);
        if (status == RFX_OK) status = fits_and_is_better(c, &better, err);
        if (better) best = rows[i];
        *gained |= better;
    }
    if (status == RFX_OK) status = rfx_search_set_rows(c->search, s, best, err);
    return status;
}

/* Improves one stage after another, starting from the measured stages, whose cost is c->cost.
 * Records the result if it is the best so far. */
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
        if (has_rows(&c->search->specs[s])) c->best_staging = c->search->specs[s].staging;
    for (int s = 0; s < c->n_stages; s++) c->best[s] = c->search->specs[s].band_rows;
    return status;
}

/* Sets the same rows per step for all stages; rows = 0: the best known rows of each stage. */
static enum rfx_status set_all(struct chooser *c, int64_t rows, bool staging,
                               struct rfx_error *err) {
    enum rfx_status status = RFX_OK;
    for (int s = 0; status == RFX_OK && s < c->n_stages; s++) {
        struct rfx_stage_spec *spec = &c->search->specs[s];
        if (!has_rows(spec)) continue;
        spec->staging = c->search->shapes[s].spec.staging = staging;
        status = rfx_search_set_rows(c->search, s, rows > 0 ? rows : c->best[s], err);
    }
    return status;
}

static enum rfx_status start_from(struct chooser *c, int64_t rows, bool staging,
                                  struct rfx_error *err) {
    bool fits = false;
    c->cost = UINT64_MAX;
    enum rfx_status status = set_all(c, rows, staging, err);
    if (status == RFX_OK) status = fits_and_is_better(c, &fits, err);
    return fits ? descend(c, err) : status;
}

static enum rfx_status choose_all(struct chooser *c, const struct rfx_plan *plan,
                                  struct rfx_error *err) {
    const int64_t *rows = NULL;
    int n = 0, memory_modes = 1;
    enum rfx_status status = lay_out(c->search, plan, err);
    for (int s = 0; status == RFX_OK && s < c->n_stages; s++) {
        const struct rfx_stage_spec *spec = &plan->stages[s].spec;
        c->best[s] = spec->band_rows;
        if (!has_rows(spec)) continue;
        if (c->n_stages <= FEW_STAGES) n = list_rows(spec->mode, &rows);
        memory_modes = !spec->staging && (spec->mode->knows & RFX_KNOWS_STAGING) != 0 ? 2 : 1;
        c->best_staging = spec->staging;
    }
    if (status == RFX_OK) status = descend(c, err);
    bool first = c->best_staging;
    for (int i = 0; status == RFX_OK && i < memory_modes * n; i++)
        status = start_from(c, rows[i % n], first || i >= n, err);
    return status == RFX_OK ? set_all(c, 0, c->best_staging, err) : status;
}

static enum rfx_status choose_rows_of_plan(struct rfx_search *search, struct rfx_plan **plan,
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

#define MIB ((size_t)1 << 20)

/* Code, libraries and stacks of a process that runs a network. Measured besides allocated memory:
 * 3.9 to 5.2 MiB, and 0.1 to 0.5 MiB more with a second thread. */
#define CODE_BYTES (11 * MIB / 2)
#define THREAD_BYTES (11 * MIB / 32)
/* Bytes that loading OpenBLAS adds: its code, and buffers for each thread. */
#define BLAS_BYTES (11 * MIB / 4)
#define BLAS_THREAD_BYTES MIB
#define TABLE_BYTES_PER_NODE ((size_t)512) /* tables of the session; measured: 150 to 550 */
/* Peak memory of planning in addition to the graph: the process, and tables of nodes and stages. */
#define PLANNING_BYTES (21 * MIB / 4)
#define PLANNING_BYTES_PER_NODE ((size_t)5120)
/* Bytes of the measurement cache: per node, and at most in total. */
#define PLANNING_CACHE_PER_NODE ((size_t)8192)
#define PLANNING_CACHE_BYTES MIB
#define PLANNING_BYTES_PER_STAGE ((size_t)144) /* per node */
/* Bytes per node and stage of a plan. Planning holds up to three plans at a time. */
#define PLAN_BYTES_PER_STAGE ((size_t)104)

size_t rfx_plan_reserve_bytes(int threads) {
    return CODE_BYTES + (size_t)(threads - 1) * THREAD_BYTES;
}

static bool calls_blas(const struct rfx_graph *graph) {
    for (int i = 0; i < graph->n_nodes; i++)
        if (rfx_op_calls_blas(graph, &graph->nodes[i])) return true;
    return false;
}

/* Returns the bytes that the caller's process takes in addition to a usual one. */
static size_t unusual_bytes(const struct rfx_plan_request *request) {
    return request->process_bytes > CODE_BYTES ? request->process_bytes - CODE_BYTES : 0;
}

size_t rfx_plan_process_bytes(const struct rfx_graph *graph,
                              const struct rfx_plan_request *request) {
    size_t threads = (size_t)request->threads, reserve = rfx_plan_reserve_bytes(request->threads);
    reserve += unusual_bytes(request);
    if (calls_blas(graph)) reserve += BLAS_BYTES + threads * BLAS_THREAD_BYTES;
    return reserve + graph->model_bytes + graph->held_bytes +
           (size_t)graph->n_nodes * TABLE_BYTES_PER_NODE;
}

size_t rfx_plan_table_bytes(const struct rfx_graph *graph, int n_stages) {
    return (size_t)(n_stages - 1) * (size_t)graph->n_nodes * PLAN_BYTES_PER_STAGE;
}

size_t rfx_plan_prepare_bytes(const struct rfx_graph *graph, const struct rfx_plan_request *request,
                              int max_stages, int n_stages) {
    size_t load = graph->load_bytes == 0 ? 0 : graph->load_bytes + RFX_LOAD_PROCESS_BYTES;
    size_t node = PLANNING_BYTES_PER_NODE + (size_t)max_stages * PLANNING_BYTES_PER_STAGE;
    size_t cache = (size_t)graph->n_nodes * PLANNING_CACHE_PER_NODE;
    if (cache > PLANNING_CACHE_BYTES) cache = PLANNING_CACHE_BYTES;
    size_t planning = PLANNING_BYTES + unusual_bytes(request) + cache + graph->held_bytes +
                      (size_t)graph->n_nodes * node + 3 * rfx_plan_table_bytes(graph, n_stages);
    return graph->model_bytes + (load > planning ? load : planning);
}

/* Builds the candidate's plan if it fits the budget; *out stays unchanged if it does not. The quick
 * placement decides whether it fits, so that a budget reported as possible is possible. The plan is
 * then placed with full effort, which can only make it smaller. */
static enum rfx_status build_within(struct rfx_search *search, struct rfx_candidate *c,
                                    struct rfx_plan **out, struct rfx_error *err) {
    size_t budget = search->context.request->memory_bytes;
    if (budget != 0) {
        enum rfx_status status = rfx_search_peak(search, c, err);
        if (status != RFX_OK || c->peak > budget) return status;
    }
    return rfx_search_build(search, c, out, err);
}

static bool is_better(const struct rfx_candidate *c, const struct rfx_plan *fitting) {
    return c->cost < fitting->cost || (c->cost == fitting->cost && c->macs < fitting->macs);
}

/* Takes the fastest candidate of the phase whose placed peak fits and that is better than the known
 * plan `fitting` (NULL: none). *out stays NULL if there is none. */
static enum rfx_status find_cheapest(struct rfx_search *search, const struct rfx_plan *fitting,
                                     struct rfx_plan **out, struct rfx_error *err) {
    size_t budget = search->context.request->memory_bytes;
    size_t n = search->n_candidates - search->first;
    if (n == 0) return RFX_OK;
    struct rfx_candidate *candidates = search->candidates + search->first;
    qsort(candidates, n, sizeof *candidates, rfx_candidate_compare_cost);
    for (size_t i = 0; i < n && *out == NULL; i++) {
        struct rfx_candidate *c = &candidates[i];
        if (fitting != NULL && !is_better(c, fitting)) continue;
        if (budget != 0 && c->bound > budget) continue;
        enum rfx_status status = build_within(search, c, out, err);
        if (status != RFX_OK) return status;
    }
    return RFX_OK;
}

/* Called while no candidate has fitted. Drops candidates whose bound exceeds the peak of the
 * candidate with the smallest bound, since they cannot be the smallest plan either. */
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

/* Makes the plan with the smallest peak in the quick placement, over all phases; of equal peaks the
 * faster one. */
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
        if (c->bound == best_bytes && c->cost >= best.cost)
            continue; /* no better even if its peak equals its bound */
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
                                                     .tiles_y = asked->tiles_y,
                                                     .tiles_x = asked->tiles_x,
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

/* Returns the request. If it names a split but neither a mode nor a budget, adds a default mode. */
static struct rfx_plan_request complete_request(const struct rfx_plan_request *request) {
    struct rfx_plan_request r = *request;
    struct rfx_stage_spec cut = rfx_ask_cut();
    if (r.split == NULL || r.asked.mode != NULL || r.memory_bytes != 0) return r;
    r.asked.mode = cut.mode;
    r.asked.tiles_y = cut.tiles_y;
    r.asked.tiles_x = cut.tiles_x;
    r.asked.band_rows = cut.band_rows;
    return r;
}

/* Called when a plan that fits is known: drops candidates that do not fit from now on. */
static void take_only_fitting(struct rfx_search *search) {
    if (search->context.request->memory_bytes != 0) search->bound_limit = 0;
}

/* Finds the best plan that fits. With by_size, or if none fits, finds the smallest plan instead. If
 * only a plan that fits is of interest and there is none, fails with BUDGET_IMPOSSIBLE. */
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
            phase--; /* repeat the phase with the candidates left out */
            continue;
        }
        if (better == NULL) continue;
        rfx_plan_free(*fitting);
        *fitting = better;
        search->cost_limit = better->cost;
        take_only_fitting(search);
    }
    if (*fitting != NULL) return choose_rows_of_plan(search, fitting, err);
    if (search->bound_limit == 0)
        return rfx_fail(err, RFX_STATUS_BUDGET_IMPOSSIBLE, "nothing takes less and fits");
    return find_smallest(search, smallest, err);
}

/* Limits the search to candidates that are not slower than a known plan, or only so little slower
 * that choosing rows per stage may compensate (the known plan has had its rows chosen). If the
 * known plan takes little longer than an untiled run, phases that compute anything twice are
 * skipped, since they would hardly give a better plan. */
static void limit_to_better(struct rfx_search *search, const struct rfx_known_time *known) {
    enum { LITTLE = 8 };
    bool exact = known->cost / 23 <= known->cost_untiled / 20;
    search->cost_limit = known->cost + known->cost / LITTLE;
    if (exact && search->context.request->asked.mode == NULL) search->phases = RFX_PHASE_RECOMPUTE;
    take_only_fitting(search);
}

enum rfx_status rfx_search_plan(const struct rfx_graph *graph, const struct rfx_plan_request *asked,
                                const struct rfx_known_time *known, struct rfx_plan **out,
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
        status = build_given(&search, &least, err);
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
        rfx_plan_free(fitting); /* the search for a better plan failed or stopped */
    if (status == RFX_STATUS_BUDGET_IMPOSSIBLE)
        *smallest = least;
    else
        rfx_plan_free(least);
    rfx_search_release(&search);
    return status;
}
