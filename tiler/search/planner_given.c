/* Plans whose stages are given by hand; see planner_search.h. */
#include "tiler/search/planner_search.h"

/* Every output must be made by some stage. */
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

/* What a stage forgets is not stored again: a plan has one place for it. */
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

enum rfx_status rfx_search_build_given(struct rfx_search *search, struct rfx_plan **out,
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
