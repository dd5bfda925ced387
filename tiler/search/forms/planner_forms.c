/* Which form of a graph is planned: with groups or without, with factors that are kept or made. */
#include "tiler/search/forms/factors.h"
#include "tiler/search/forms/groups.h"
#include "tiler/search/plan_counts.h"
#include "tiler/search/planner_search.h"

/* Two answers for one request: the one with groups, its graph taken over, and the one without. */
struct answers {
    enum rfx_status status, plain_status;
    struct rfx_plan *plan, *smallest; /* smallest: where the status is BUDGET_IMPOSSIBLE */
    struct rfx_plan *plain, *plain_smallest;
};

static void keep_grouped(struct answers *a) {
    rfx_plan_free(a->plain);
    rfx_plan_free(a->plain_smallest);
    a->plain = a->plain_smallest = NULL;
}

static void keep_plain(struct answers *a) {
    rfx_plan_free(a->plan);
    rfx_plan_free(a->smallest);
    a->plan = a->plain;
    a->smallest = a->plain_smallest;
    a->status = a->plain_status;
    a->plain = a->plain_smallest = NULL;
}

/* Groups are chosen for whole maps: in short bands or narrow parts their edges may take longer than
 * they save. */
static bool may_be_slower(const struct rfx_plan *grouped, const struct rfx_plan_request *request) {
    bool in_parts = grouped->n_stages > 1 || grouped->stages[0].spec.mode->local;
    return in_parts || request->memory_bytes != 0;
}

/* Asks for a plan without groups too, and keeps the better answer. */
static void compare_with_plain(const struct rfx_graph *graph,
                               const struct rfx_plan_request *request, struct answers *a,
                               struct rfx_error *err) {
    struct rfx_error why = {{0}};
    a->plain_status = rfx_search_plan(graph, request, a->plan, &a->plain, &a->plain_smallest, &why);
    bool grouped_is_better;
    if (a->plan != NULL)
        grouped_is_better = a->plain == NULL || a->plan->cost <= a->plain->cost;
    else
        grouped_is_better = a->smallest != NULL && a->plain_smallest != NULL &&
                            a->smallest->peak_bytes < a->plain_smallest->peak_bytes;
    if (grouped_is_better) {
        keep_grouped(a);
        return;
    }
    keep_plain(a);
    if (err != NULL) *err = why;
}

/* The stages of a plan once more, for another form of its graph. */
static enum rfx_status plan_alike(const struct rfx_graph *graph,
                                  const struct rfx_plan_request *request,
                                  const struct rfx_plan *plan, struct rfx_plan **out,
                                  struct rfx_error *err) {
    struct rfx_plan_request alike = *request;
    struct rfx_plan *smallest = NULL;
    size_t bytes = (size_t)plan->n_stages * sizeof(struct rfx_stage_spec);
    struct rfx_stage_spec *stages = rfx_memory_alloc(plan->mem, bytes);
    if (stages == NULL) return rfx_memory_fail(plan->mem, "stages of a plan", bytes, err);
    for (int s = 0; s < plan->n_stages; s++) stages[s] = plan->stages[s].spec;
    alike.stages = stages;
    alike.n_stages = plan->n_stages;
    enum rfx_status status = rfx_search_plan(graph, &alike, NULL, out, &smallest, err);
    rfx_plan_free(smallest);
    rfx_memory_release(plan->mem, stages);
    return status;
}

/* The plan with factors kept in what the budget leaves, where that is predicted to take no longer.
 */
static enum rfx_status keep_factors(const struct rfx_graph *graph,
                                    const struct rfx_plan_request *request, struct rfx_plan **plan,
                                    struct rfx_error *err) {
    size_t budget = request->memory_bytes, peak = (*plan)->peak_bytes;
    struct rfx_graph *keeping = NULL;
    struct rfx_plan *better = NULL;
    if (request->stages != NULL || request->keepers != NULL) return RFX_OK;
    enum rfx_status status =
        rfx_factors_keep(graph, *plan, budget != 0 ? budget - peak : SIZE_MAX, &keeping, err);
    if (status != RFX_OK || keeping == NULL) return status;
    struct rfx_error why = {{0}};
    status = plan_alike(keeping, request, *plan, &better, &why);
    if (better != NULL && better->cost <= (*plan)->cost) {
        rfx_plan_free(*plan);
        *plan = better;
        better->grouped = keeping; /* taken over */
        return RFX_OK;
    }
    rfx_plan_free(better);
    rfx_graph_free(keeping);
    if (status == RFX_STATUS_BUDGET_IMPOSSIBLE) return RFX_OK; /* scratch may be more, too */
    if (status != RFX_OK && err != NULL) *err = why;
    return status;
}

/* The plan of the graph with groups, and perhaps of the one without; `grouped` is taken over. */
static enum rfx_status plan_grouped(const struct rfx_graph *graph,
                                    const struct rfx_plan_request *request,
                                    struct rfx_graph *grouped, struct answers *a,
                                    struct rfx_error *err) {
    a->status = rfx_search_plan(grouped, request, NULL, &a->plan, &a->smallest, err);
    struct rfx_plan *made = a->plan != NULL ? a->plan : a->smallest;
    if (made == NULL) {
        rfx_graph_free(grouped);
        if (a->status == RFX_STATUS_OUT_OF_MEMORY) return a->status;
    } else {
        made->grouped = grouped;
    }
    if (request->groups == NULL && request->n_keepers == 0 &&
        (a->plan == NULL || may_be_slower(a->plan, request)))
        compare_with_plain(graph, request, a, err);
    return rfx_memory_check_stop(graph->mem, err); /* one of two may be missing */
}

enum rfx_status rfx_plan_create_or_smallest(const struct rfx_graph *graph,
                                            const struct rfx_plan_request *request,
                                            struct rfx_plan **out, struct rfx_plan **smallest,
                                            struct rfx_error *err) {
    struct rfx_graph *grouped = NULL;
    struct answers a = {.plan = NULL};
    enum rfx_status status = rfx_groups_apply(graph, request, &grouped, err);
    if (status == RFX_OK) status = rfx_factors_apply(graph, request, &grouped, err);
    if (status != RFX_OK) {
        rfx_graph_free(grouped);
        return status;
    }
    if (grouped != NULL)
        status = plan_grouped(graph, request, grouped, &a, err);
    else
        a.status = rfx_search_plan(graph, request, NULL, &a.plan, &a.smallest, err);
    if (status == RFX_OK && a.status == RFX_OK) status = keep_factors(graph, request, &a.plan, err);
    struct rfx_plan *made = a.plan != NULL ? a.plan : a.smallest;
    if (status == RFX_OK && made != NULL && made->grouped != NULL) /* which hang on the cuts */
        status = rfx_plan_count_step_macs(made, &made->macs, err);
    if (status != RFX_OK) {
        rfx_plan_free(a.plan);
        rfx_plan_free(a.smallest);
        return status;
    }
    if (a.status == RFX_OK) *out = a.plan;
    if (a.status == RFX_STATUS_BUDGET_IMPOSSIBLE) *smallest = a.smallest;
    return a.status;
}

enum rfx_status rfx_plan_create(const struct rfx_graph *graph,
                                const struct rfx_plan_request *request, struct rfx_plan **out,
                                struct rfx_error *err) {
    struct rfx_plan *smallest = NULL;
    enum rfx_status status = rfx_plan_create_or_smallest(graph, request, out, &smallest, err);
    rfx_plan_free(smallest);
    return status;
}
