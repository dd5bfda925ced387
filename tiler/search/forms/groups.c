/* Groups by dynamic programming over runs of nodes; see groups.h. */
#include "tiler/search/forms/groups.h"

#include <string.h>

#include "layers/conv/conv_backend.h"
#include "layers/core/checked.h"
#include "layers/graph/op.h"
#include "tiler/cost/cost.h"

enum { N_STEPS = 4, N_COLS = 9 };
static const int64_t steps[N_STEPS] = {1, 2, 4, 8};
static const int64_t widths[N_COLS] = {512, 384, 256, 192, 128, 96, 64, 48, 32};

struct chooser {
    const struct rfx_graph *graph;
    const struct rfx_caches *caches;
    struct rfx_cost_model cost;
    int threads, kept;
    int *last_reader; /* of each node; an output's is n_nodes */
    int *from;        /* of the best way up to node i: its last group's first node, or i */
    double *best;     /* picoseconds of the best way up to node i, at i + 1 */
    struct rfx_group_attr *how; /* the group that ends at node i */
};

static double time_of(const struct chooser *c, const struct rfx_cost_counts *counts) {
    return (double)rfx_cost_picoseconds(&c->cost, counts);
}

static double node_cost(const struct chooser *c, int i) {
    struct rfx_cost_counts counts = {{0}};
    rfx_cost_count_whole(&c->cost, i, &counts);
    return time_of(c, &counts);
}

/* Whether a node may be computed piece by piece without computing more than it is asked for. */
static bool may_join(const struct chooser *c, int i) {
    const struct rfx_node *node = &c->graph->nodes[i];
    struct rfx_conv_block block = rfx_conv_block_of(c->graph, node);
    return rfx_node_runs_by_rows(node) && !rfx_node_is_constant(node) && node->op != RFX_OP_GROUP &&
           block.h * block.w == 1;
}

/* Cost of a group; < 0: its rings do not fit the cache. */
static double group_cost(const struct chooser *c, const struct rfx_group_attr *g,
                         struct rfx_cost_group *fact) {
    struct rfx_cost_counts counts = {{0}};
    double cache = (double)c->caches->second_bytes, weights = 0.0;
    double rings = fact->ring_bytes = (double)rfx_group_ring_bytes(g);
    for (int i = g->first; i <= g->last; i++) weights += c->cost.nodes[i].packed;
    if (weights + rings > cache * 0.8 && rings > cache * 0.5) return -1.0;
    rfx_cost_count_group(&c->cost, g, fact, &counts);
    return time_of(c, &counts);
}

/* The best shape of a group of these nodes; < 0: none. */
static double shape_group(const struct chooser *c, int first, int last,
                          struct rfx_group_attr *out) {
    double best = -1.0;
    int64_t w = c->graph->nodes[last].out.w;
    struct rfx_group_attr group = {.base = c->graph,
                                   .first = first,
                                   .last = last,
                                   .strips = c->threads > 1 ? 2 * c->threads : 1};
    struct rfx_cost_group fact; /* the same in all shapes */
    rfx_cost_describe_group(&group, &fact);
    for (int s = 0; s < N_STEPS; s++)
        for (int k = 0, found = 0; k < N_COLS && found < 2; k++) {
            if (widths[k] > w && k + 1 < N_COLS && widths[k + 1] >= w) continue;
            group.strip_cols = rfx_min_i64(widths[k], w);
            group.step_rows = steps[s];
            double cost = group_cost(c, &group, &fact);
            if (cost < 0.0) continue;
            found++;
            if (best >= 0.0 && cost >= best) continue;
            best = cost;
            *out = group;
        }
    return best;
}

/* Whether first .. last have no reader behind `last` but of its own tensor; `reach` is the last
 * reader of first .. last - 1. */
static void try_groups(struct chooser *c, int last) {
    int reach = 0;
    for (int first = last; first >= 0 && last - first < RFX_GROUP_MAX_NODES; first--) {
        if (!may_join(c, first) || (first < last && first == c->kept)) return;
        if (first < last) reach = c->last_reader[first] > reach ? c->last_reader[first] : reach;
        if (first == last || reach > last) continue;
        if (rfx_group_refusal(c->graph, first, last) != NULL) continue;
        struct rfx_group_attr g;
        double cost = shape_group(c, first, last, &g);
        if (cost < 0.0 || c->best[first] + cost >= c->best[last + 1]) continue;
        c->best[last + 1] = c->best[first] + cost;
        c->from[last] = first;
        c->how[last] = g;
    }
}

static void find_readers(struct chooser *c) {
    const struct rfx_graph *graph = c->graph;
    for (int i = 0; i < graph->n_nodes; i++) {
        c->last_reader[i] = i;
        for (int k = 0; k < graph->nodes[i].n_in; k++) c->last_reader[graph->nodes[i].in[k]] = i;
    }
    for (int e = 0; e < graph->n_ends; e++) c->last_reader[graph->ends[e].node] = graph->n_nodes;
}

static int collect(const struct chooser *c, struct rfx_group_attr *groups) {
    int n = 0;
    for (int i = c->graph->n_nodes - 1; i >= 0; i = c->from[i] - 1)
        if (c->from[i] < i) groups[n++] = c->how[i];
    for (int i = 0; i < n / 2; i++) {
        struct rfx_group_attr other = groups[i];
        groups[i] = groups[n - 1 - i];
        groups[n - 1 - i] = other;
    }
    return n;
}

enum rfx_status rfx_groups_choose(const struct rfx_graph *graph, const struct rfx_caches *caches,
                                  int threads, int kept, struct rfx_group_attr *groups,
                                  int *n_groups, struct rfx_error *err) {
    struct rfx_memory *mem = graph->mem;
    size_t n = (size_t)graph->n_nodes;
    struct chooser c = {.graph = graph, .caches = caches, .threads = threads, .kept = kept};
    enum rfx_status status = RFX_OK;
    c.last_reader = rfx_memory_calloc(mem, n, sizeof *c.last_reader);
    c.from = rfx_memory_calloc(mem, n, sizeof *c.from);
    c.best = rfx_memory_calloc(mem, n + 1, sizeof *c.best);
    c.how = rfx_memory_calloc(mem, n, sizeof *c.how);
    if (c.last_reader == NULL || c.from == NULL || c.best == NULL || c.how == NULL) {
        status = rfx_memory_fail(mem, "groups of nodes", n * sizeof *c.how, err);
        goto done;
    }
    status = rfx_cost_init(&c.cost, graph, caches, threads, err);
    if (status != RFX_OK) goto done;
    find_readers(&c);
    for (int i = 0; i < graph->n_nodes; i++) {
        status = rfx_memory_check_stop(mem, err);
        if (status != RFX_OK) goto done;
        c.best[i + 1] = c.best[i] + node_cost(&c, i);
        c.from[i] = i;
        try_groups(&c, i);
    }
    *n_groups = collect(&c, groups);
done:
    rfx_cost_release(&c.cost);
    rfx_memory_release(mem, c.last_reader);
    rfx_memory_release(mem, c.from);
    rfx_memory_release(mem, c.best);
    rfx_memory_release(mem, c.how);
    return status;
}

/* Whether groups given by hand are some that can be: by rising nodes, none overlapping. */
static enum rfx_status check_given(const struct rfx_graph *graph,
                                   const struct rfx_plan_request *request, struct rfx_error *err) {
    for (int g = 0; g < request->n_groups; g++) {
        const struct rfx_group_attr *group = &request->groups[g];
        const char *why = rfx_group_refusal(graph, group->first, group->last);
        if (why == NULL && g > 0 && group->first <= group[-1].last)
            why = "it overlaps the group before it or comes before it";
        if (why == NULL && (group->strip_cols < 1 || group->strips < 1 || group->step_rows < 1))
            why = "strip_cols, strips and step_rows are 1 or more";
        if (why != NULL)
            return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "groups[%d]: %s", g, why);
    }
    return RFX_OK;
}

enum rfx_status rfx_groups_apply(const struct rfx_graph *graph,
                                 const struct rfx_plan_request *request, struct rfx_graph **out,
                                 struct rfx_error *err) {
    if (request->groups != NULL) {
        enum rfx_status status = check_given(graph, request, err);
        if (status != RFX_OK || request->n_groups == 0) return status;
        return rfx_graph_group(graph, request->groups, request->n_groups, out, err);
    }
    if (request->caches.second_bytes == 0 || request->no_groups || request->stages != NULL)
        return RFX_OK;
    size_t bytes = (size_t)graph->n_nodes * sizeof(struct rfx_group_attr);
    struct rfx_group_attr *groups = rfx_memory_alloc(graph->mem, bytes);
    if (groups == NULL) return rfx_memory_fail(graph->mem, "groups of nodes", bytes, err);
    int n = 0, kept = request->split == NULL ? -1 : rfx_graph_find(graph, request->split);
    enum rfx_status status =
        rfx_groups_choose(graph, &request->caches, request->threads, kept, groups, &n, err);
    if (status == RFX_OK && n > 0) status = rfx_graph_group(graph, groups, n, out, err);
    rfx_memory_release(graph->mem, groups);
    return status;
}
