/* Chooses the rivals and the front of a survey from the planner's own candidates. */
#include "tiler/search/plan_survey.h"

#include <stdlib.h>
#include <string.h>

#include "tiler/search/candidates.h"
#include "tiler/search/plan_counts.h"

const char *rfx_plan_kind_name(enum rfx_plan_kind kind) {
    static const char *const names[] = {"untiled", "streamed", "two streams", "strips",
                                        "passes",  "spilled",  "tiles"};
    _Static_assert(sizeof names / sizeof names[0] == RFX_PLAN_KIND_COUNT, "a name per kind");
    return names[kind];
}

static bool has_groups(const struct rfx_graph *graph) {
    for (int i = 0; i < graph->n_nodes; i++)
        if (graph->nodes[i].op == RFX_OP_GROUP) return true;
    return false;
}

/* Places the candidate's buffers and summarises its plan. If the plan needs more than `most` bytes,
 * does not count the MACs of groups, which takes a walk through all steps. */
static enum rfx_status summarise(struct rfx_search *search, const struct rfx_candidate *c,
                                 size_t most, struct rfx_plan_summary *summary,
                                 struct rfx_error *err) {
    struct rfx_plan *plan = NULL;
    search->context.quick = true;
    enum rfx_status status = rfx_search_build(search, c, &plan, err);
    if (status != RFX_OK) return status;
    uint64_t macs = plan->macs;
    if (has_groups(plan->graph) && plan->peak_bytes <= most)
        status = rfx_plan_count_step_macs(plan, &macs, NULL, err);
    *summary = (struct rfx_plan_summary){.kind = c->kind, .peak_bytes = plan->peak_bytes};
    summary->macs = macs;
    summary->cost = plan->cost;
    rfx_plan_describe(plan, summary->text, sizeof summary->text);
    rfx_plan_free(plan);
    return status;
}

/* Adds the best plan of a kind to the survey: the first candidate, in the planner's order, that
 * fits the budget, otherwise the one with the smallest bound. */
static enum rfx_status find_rival(struct rfx_search *search, enum rfx_plan_kind kind, size_t budget,
                                  struct rfx_plan_survey *survey, struct rfx_error *err) {
    struct rfx_plan_summary best;
    struct rfx_candidate *least = NULL;
    int tries = 0;
    for (size_t i = 0; i < search->n_candidates && tries < RFX_SEARCH_RIVAL_TRIES; i++) {
        struct rfx_candidate *c = &search->candidates[i];
        if (c->kind != kind) continue;
        if (least == NULL || c->bound < least->bound) least = c;
        if (c->bound > budget) continue;
        enum rfx_status status = rfx_search_peak(search, c, err);
        if (status != RFX_OK) return status;
        tries++;
        if (c->peak > budget) continue;
        status = summarise(search, c, budget, &best, err);
        if (status != RFX_OK) return status;
        survey->rivals[survey->n_rivals++] = best;
        return RFX_OK;
    }
    if (least == NULL) return RFX_OK; /* no candidate of this kind */
    enum rfx_status status = summarise(search, least, SIZE_MAX, &best, err);
    if (status == RFX_OK) survey->rivals[survey->n_rivals++] = best;
    return status;
}

/* Adds to the front every candidate that needs less memory than all candidates before it in the
 * planner's order. */
static enum rfx_status find_front(struct rfx_search *search, unsigned kinds,
                                  struct rfx_plan_survey *survey, struct rfx_error *err) {
    size_t best_bytes = SIZE_MAX;
    size_t capacity = 0;
    for (size_t i = 0; i < search->n_candidates; i++) {
        const struct rfx_candidate *c = &search->candidates[i];
        struct rfx_plan_summary summary;
        if (c->bound >= best_bytes || (kinds >> c->kind & 1U) == 0) continue;
        enum rfx_status status = summarise(search, c, best_bytes - 1, &summary, err);
        if (status != RFX_OK) return status;
        if (summary.peak_bytes >= best_bytes) continue;
        best_bytes = summary.peak_bytes;
        size_t wanted = (size_t)survey->n_front + 1;
        struct rfx_plan_summary *front = rfx_memory_reserve(survey->mem, survey->front, &capacity,
                                                            wanted, sizeof *survey->front);
        if (front == NULL)
            return rfx_memory_fail(survey->mem, "front of plans", wanted * sizeof *front, err);
        survey->front = front;
        survey->front[survey->n_front++] = summary;
    }
    return RFX_OK;
}

enum rfx_status rfx_plan_survey_create(const struct rfx_graph *graph,
                                       const struct rfx_plan_request *plan,
                                       const struct rfx_survey_request *request,
                                       struct rfx_plan_survey **out, struct rfx_error *err) {
    struct rfx_plan_request open = *plan;
    size_t budget = plan->memory_bytes != 0 ? plan->memory_bytes : SIZE_MAX;
    struct rfx_search search;
    struct rfx_search_rivals rivals = {.n = {0}};
    for (int k = 0; k < RFX_PLAN_KIND_COUNT; k++) rivals.least_bound[k] = SIZE_MAX;
    open.memory_bytes = budget;
    open.stages = NULL;
    open.n_stages = 0;
    struct rfx_plan_survey *survey = rfx_memory_calloc(graph->mem, 1, sizeof *survey);
    if (survey == NULL) return rfx_memory_fail(graph->mem, "survey", sizeof *survey, err);
    survey->mem = graph->mem;
    enum rfx_status status = rfx_search_init(&search, graph, &open, err);
    if (request->kinds == 0) search.rivals = &rivals; /* a front needs all candidates */
    for (int phase = 0; status == RFX_OK && phase < RFX_PHASES; phase++)
        status = rfx_search_list(&search, phase, err);
    if (status == RFX_OK && search.n_candidates > 0)
        qsort(search.candidates, search.n_candidates, sizeof *search.candidates,
              rfx_candidate_compare_cost);
    for (int kind = 0; status == RFX_OK && request->rivals && kind < RFX_PLAN_KIND_COUNT; kind++)
        status = find_rival(&search, (enum rfx_plan_kind)kind, budget, survey, err);
    if (status == RFX_OK) status = find_front(&search, request->kinds, survey, err);
    survey->macs_untiled = status == RFX_OK ? search.context.macs_untiled : 0;
    survey->cost_untiled = status == RFX_OK ? search.cost_untiled : 0;
    rfx_search_release(&search);
    if (status == RFX_OK)
        *out = survey;
    else
        rfx_plan_survey_free(survey);
    return status;
}

void rfx_plan_survey_free(struct rfx_plan_survey *survey) {
    if (survey == NULL) return;
    rfx_memory_release(survey->mem, survey->front);
    rfx_memory_release(survey->mem, survey);
}
