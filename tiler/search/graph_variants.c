/* Chooses groups by dynamic programming over runs of nodes, and chooses the convolutions that store
 * their transformed weights. Plans the variants of a graph and keeps the best plan. */
#include "tiler/search/graph_variants.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "layers/conv/conv_backend.h"
#include "layers/core/checked.h"
#include "layers/graph/group.h"
#include "layers/graph/op.h"
#include "rf_analysis/analysis.h"
#include "tiler/cost/cost.h"
#include "tiler/search/candidates.h"
#include "tiler/search/plan_counts.h"

enum { N_STEPS = 4, N_COLS = 9 };
static const int64_t steps[N_STEPS] = {1, 2, 4, 8};
static const int64_t widths[N_COLS] = {512, 384, 256, 192, 128, 96, 64, 48, 32};

struct chooser {
    const struct rfx_graph *graph;
    const struct rfx_caches *caches;
    struct rfx_cost_model cost;
    int threads, kept;
    int *last_reader; /* per node; n_nodes for outputs */
    int *from;        /* first node of the last group in the best grouping up to node i; i: none */
    double *best;     /* predicted picoseconds of the best grouping up to node i, at index i + 1 */
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

/* Returns whether a node may be computed piece by piece without computing anything twice. */
static bool may_join(const struct chooser *c, int i) {
    const struct rfx_node *node = &c->graph->nodes[i];
    struct rfx_conv_block block = rfx_conv_block_of(c->graph, node);
    return rfx_node_runs_by_rows(node) && !rfx_node_is_constant(node) && node->op != RFX_OP_GROUP &&
           block.h * block.w == 1;
}

/* Returns the predicted time of a group in picoseconds; < 0: its ring buffers do not fit the
 * cache. */
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

/* Finds the fastest shape of a group of these nodes. Returns its predicted time; < 0: none fits. */
static double shape_group(const struct chooser *c, int first, int last,
                          struct rfx_group_attr *out) {
    double best = -1.0;
    int64_t w = c->graph->nodes[last].out.w;
    struct rfx_group_attr group = {.base = c->graph,
                                   .first = first,
                                   .last = last,
                                   .strips = c->threads > 1 ? 2 * c->threads : 1};
    struct rfx_cost_group fact; /* the same for all shapes */
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

/* Tries all groups that end at node `last`. Nodes after the group may read only the tensor of
 * `last`. */
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
    rfx_last_uses(graph, c.last_reader);
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

/* Checks the groups that the request gives: each is valid, they are in the order of their nodes,
 * and they do not overlap. */
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

/* Returns by how many bytes the packed weights grow if transformed weights are stored; 0: they are
 * stored already, or the node has none. */
static size_t bytes_more(const struct rfx_graph *graph, const struct rfx_node *node) {
    struct rfx_node keeper = *node;
    if (node->op != RFX_OP_CONV) return 0;
    keeper.attr.conv.keeps_factors = true;
    return rfx_op_packed_bytes(graph, &keeper) - rfx_op_packed_bytes(graph, node);
}

/* Makes a variant of `base` with the same groups as `like`. */
static enum rfx_status group_alike(const struct rfx_graph *base, const struct rfx_graph *like,
                                   struct rfx_graph **out, struct rfx_error *err) {
    size_t bytes = (size_t)like->n_nodes * sizeof(struct rfx_group_attr);
    struct rfx_group_attr *groups = rfx_memory_alloc(base->mem, bytes);
    if (groups == NULL) return rfx_memory_fail(base->mem, "groups of nodes", bytes, err);
    int n = 0;
    for (int i = 0; i < like->n_nodes; i++)
        if (like->nodes[i].op == RFX_OP_GROUP) groups[n++] = like->nodes[i].attr.group;
    enum rfx_status status = rfx_graph_group(base, groups, n, out, err);
    rfx_memory_release(base->mem, groups);
    return status;
}

struct keeper {
    int node;
    int64_t pixels;
    size_t bytes;
};

static int by_pixels(const void *a, const void *b) {
    const struct keeper *x = a, *y = b;
    if (x->pixels != y->pixels) return x->pixels > y->pixels ? -1 : 1;
    return x->node - y->node;
}

/* Makes a variant of the plan's graph that stores the transformed weights of as many convolutions
 * as fit `room` bytes, those with the most pixels first. Leaves *out unchanged if none fits. */
static enum rfx_status keep_factors(const struct rfx_graph *graph, const struct rfx_plan *plan,
                                    size_t room, struct rfx_graph **out, struct rfx_error *err) {
    const struct rfx_graph *from = plan->graph;
    size_t bytes = (size_t)from->n_nodes * sizeof(struct keeper);
    struct keeper *keepers = rfx_memory_alloc(graph->mem, bytes);
    struct rfx_graph *made = NULL;
    enum rfx_status status = RFX_OK;
    int n = 0;
    if (keepers == NULL) return rfx_memory_fail(graph->mem, "transformed weights", bytes, err);
    for (int i = 0; i < from->n_nodes; i++) {
        const struct rfx_node *node = &from->nodes[i];
        size_t more = bytes_more(from, node);
        if (more > 0) keepers[n++] = (struct keeper){i, node->out.h * node->out.w, more};
    }
    qsort(keepers, (size_t)n, sizeof *keepers, by_pixels);
    for (int k = 0; status == RFX_OK && k < n; k++) {
        if (keepers[k].bytes > room) continue;
        room -= keepers[k].bytes;
        if (made == NULL) status = group_alike(graph, from, &made, err);
        if (status == RFX_OK) made->nodes[keepers[k].node].attr.conv.keeps_factors = true;
    }
    rfx_memory_release(graph->mem, keepers);
    if (made != NULL) *out = made;
    return status;
}

/* Marks the convolutions whose transformed weights the request stores, in *made; makes that graph
 * if it does not exist yet. */
static enum rfx_status apply_factors(const struct rfx_graph *graph,
                                     const struct rfx_plan_request *request,
                                     struct rfx_graph **made, struct rfx_error *err) {
    for (int k = 0; k < request->n_keepers; k++) {
        int node = request->keepers[k];
        if (node < 0 || node >= graph->n_nodes || graph->nodes[node].op != RFX_OP_CONV)
            return rfx_fail(err, RFX_STATUS_INVALID_ARGUMENT, "keepers[%d] is no convolution", k);
    }
    if (request->n_keepers == 0) return RFX_OK;
    if (*made == NULL) {
        enum rfx_status status = rfx_graph_group(graph, NULL, 0, made, err);
        if (status != RFX_OK) return status;
    }
    for (int k = 0; k < request->n_keepers; k++) {
        struct rfx_node *node = &(*made)->nodes[request->keepers[k]];
        if (node->op == RFX_OP_CONV)
            node->attr.conv.keeps_factors = true; /* else the node lies inside a group */
    }
    return RFX_OK;
}

int rfx_factors_count(const struct rfx_plan *plan) {
    int n = 0;
    for (int i = 0; i < plan->graph->n_nodes; i++) {
        const struct rfx_node *node = &plan->graph->nodes[i];
        struct rfx_node maker = *node;
        if (node->op != RFX_OP_CONV || !node->attr.conv.keeps_factors) continue;
        maker.attr.conv.keeps_factors = false;
        if (bytes_more(plan->graph, &maker) > 0) n++;
    }
    return n;
}

/* The plans of two variants: with groups (that plan owns its graph), and plain. */
struct answers {
    enum rfx_status status, plain_status;
    struct rfx_plan *plan, *smallest; /* smallest: set if the status is BUDGET_IMPOSSIBLE */
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

/* Returns whether the grouped plan may be slower than a plan of the plain graph. Groups are chosen
 * for whole maps; in short bands or narrow tiles their edges may cost more time than they save. */
static bool may_be_slower(const struct rfx_plan *grouped, const struct rfx_plan_request *request) {
    bool in_parts = grouped->n_stages > 1 || grouped->stages[0].spec.mode->local;
    return in_parts || request->memory_bytes != 0;
}

/* Plans the graph without groups as well, and keeps the better of the two plans. OUT_OF_MEMORY: the
 * choice must not depend on the memory that is left. */
static enum rfx_status compare_with_plain(const struct rfx_graph *graph,
                                          const struct rfx_plan_request *request,
                                          const struct rfx_known_time *known, struct answers *a,
                                          struct rfx_error *err) {
    struct rfx_error why = {{0}};
    a->plain_status = rfx_search_plan(graph, request, known, &a->plain, &a->plain_smallest, &why);
    bool grouped_is_better;
    if (a->plain_status == RFX_STATUS_OUT_OF_MEMORY) {
        keep_grouped(a);
        if (err != NULL) *err = why;
        return a->plain_status;
    }
    if (a->plan != NULL)
        grouped_is_better = a->plain == NULL || a->plan->cost <= a->plain->cost;
    else
        grouped_is_better = a->smallest != NULL && a->plain_smallest != NULL &&
                            a->smallest->peak_bytes < a->plain_smallest->peak_bytes;
    if (grouped_is_better) {
        keep_grouped(a);
        return RFX_OK;
    }
    keep_plain(a);
    if (err != NULL) *err = why;
    return RFX_OK;
}

/* Makes a plan with the same stages for another variant of the graph. */
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

/* Plans a variant of the graph with the plan's stages, and replaces the plan by that plan if it
 * fits and is predicted to take no longer. Takes ownership of the variant. *taken: whether it
 * replaced the plan. */
static enum rfx_status try_variant(const struct rfx_plan_request *request,
                                   struct rfx_graph *variant, struct rfx_plan **plan, bool *taken,
                                   struct rfx_error *err) {
    struct rfx_plan *made = NULL;
    struct rfx_error why = {{0}};
    enum rfx_status status = plan_alike(variant, request, *plan, &made, &why);
    *taken = made != NULL && made->cost <= (*plan)->cost;
    if (*taken) {
        rfx_plan_free(*plan);
        *plan = made;
        made->grouped = variant; /* the plan owns the graph now */
        return RFX_OK;
    }
    rfx_plan_free(made);
    rfx_graph_free(variant);
    if (status == RFX_STATUS_BUDGET_IMPOSSIBLE) return RFX_OK;
    if (status != RFX_OK && err != NULL) *err = why;
    return status;
}

/* Replaces the plan by one that stores transformed weights in the memory that the budget leaves, if
 * that plan is predicted to take no longer. */
static enum rfx_status keep_factors_in_plan(const struct rfx_graph *graph,
                                            const struct rfx_plan_request *request,
                                            struct rfx_plan **plan, struct rfx_error *err) {
    size_t budget = request->memory_bytes, peak = (*plan)->peak_bytes;
    struct rfx_graph *keeping = NULL;
    bool taken; /* if not, the workspace may have grown as well */
    if (request->stages != NULL || request->keepers != NULL) return RFX_OK;
    enum rfx_status status =
        keep_factors(graph, *plan, budget != 0 ? budget - peak : SIZE_MAX, &keeping, err);
    if (status != RFX_OK || keeping == NULL) return status;
    return try_variant(request, keeping, plan, &taken, err);
}

#define MAY_LOSE 0.05   /* share of a group's time that predictions do not tell for certain */
#define LEAST_LOSS 5e-3 /* share of a plan's time; if its groups lose less, it is left as it is */
#define FEW_MACS 1.05   /* MACs of a plan that are few, in those of an untiled run */

/* The groups of a plan, judged by their times in its steps. */
struct judged {
    double *gains; /* per node; >= 0: picoseconds saved per MAC that a group computes again; < 0:
                      picoseconds that a group loses; HUGE_VAL: no group */
    double *again; /* per node: MACs that a group computes again */
    double macs;   /* of the plan */
    double lost;   /* picoseconds that groups lose in total, where they do */
    double worst;  /* least gain; 0: no group loses */
};

/* Returns the MACs of a group's nodes if they compute each position once. */
static double macs_once(const struct rfx_group_attr *group) {
    double macs = 0.0;
    for (int i = group->first; i <= group->last; i++) {
        const struct rfx_node *node = &group->base->nodes[i];
        macs += (double)rfx_op_macs(group->base, node, node->wanted);
    }
    return macs;
}

static void judge(const struct rfx_graph *graph, const struct rfx_cost_times *times,
                  const struct rfx_node_counts *counts, struct judged *j) {
    for (int i = 0; i < graph->n_nodes; i++) {
        j->macs += (double)counts[i].macs;
        j->gains[i] = HUGE_VAL;
        if (graph->nodes[i].op != RFX_OP_GROUP) continue;
        double spare = (1.0 + MAY_LOSE) * times[i].apart - times[i].grouped;
        j->again[i] = (double)counts[i].macs - macs_once(&graph->nodes[i].attr.group);
        j->gains[i] = spare / fmax(1.0, j->again[i]);
        if (spare >= 0.0) continue;
        j->gains[i] = times[i].apart - times[i].grouped;
        j->lost -= j->gains[i];
        j->worst = fmin(j->worst, j->gains[i]);
    }
}

double rfx_groups_least_gain(const double *gains, const double *again, int n, double macs,
                             double few) {
    double least = 0.0;
    for (;;) {
        double left = macs, next = HUGE_VAL;
        for (int i = 0; i < n; i++) {
            if (gains[i] <= least)
                left -= again[i];
            else
                next = fmin(next, gains[i]);
        }
        if (left <= few) return least;
        if (next == HUGE_VAL) return 0.0;
        least = next;
    }
}

/* Shortens a group to its last nodes that compute nothing again: no position of a map between them
 * is needed by two pieces. Returns false if fewer than two such nodes are left, or if the group
 * computes nothing again as it is. */
static bool shorten(struct rfx_group_attr *group) {
    int64_t one[RFX_GROUP_MAX_NODES], two[RFX_GROUP_MAX_NODES];
    int first = group->first;
    for (int axis = 0; axis < 2; axis++) {
        rfx_group_extents(group, axis, 1, one);
        rfx_group_extents(group, axis, 2, two);
        for (int i = group->first; i < group->last; i++)
            if (two[i - group->first] < 2 * one[i - group->first] && i >= first) first = i + 1;
    }
    if (first == group->first || rfx_group_refusal(group->base, first, group->last) != NULL)
        return false;
    group->first = first;
    return true;
}

/* Makes a variant of the plan's graph without the groups that gain `least` or less; their last
 * nodes stay in groups where these compute nothing again. */
static enum rfx_status group_less(const struct rfx_graph *graph, const struct rfx_plan *plan,
                                  const double *gains, double least, struct rfx_graph **out,
                                  struct rfx_error *err) {
    size_t bytes = (size_t)graph->n_nodes * sizeof(struct rfx_group_attr);
    struct rfx_group_attr *groups = rfx_memory_alloc(graph->mem, bytes);
    if (groups == NULL) return rfx_memory_fail(graph->mem, "groups of nodes", bytes, err);
    int n = 0;
    for (int i = 0; i < graph->n_nodes; i++) {
        if (plan->graph->nodes[i].op != RFX_OP_GROUP) continue;
        groups[n] = plan->graph->nodes[i].attr.group;
        if (gains[i] > least || shorten(&groups[n])) n++;
    }
    enum rfx_status status = rfx_graph_group(graph, groups, n, out, err);
    rfx_memory_release(graph->mem, groups);
    return status;
}

/* Shortens or takes apart the groups that lose time and, if that leaves many MACs, those that save
 * the least time per MAC computed again, as long as the plan is predicted to take no longer than
 * with all groups. The maps inside these groups then take memory. If it does not suffice, only the
 * groups that lose most are changed. */
static enum rfx_status drop_groups(const struct rfx_graph *graph,
                                   const struct rfx_plan_request *request, struct rfx_plan **plan,
                                   const struct judged *j, struct rfx_error *err) {
    const double few = FEW_MACS * (double)(*plan)->macs_untiled;
    const double least[] = {rfx_groups_least_gain(j->gains, j->again, graph->n_nodes, j->macs, few),
                            0.0, j->worst / 4.0, j->worst / 2.0};
    enum rfx_status status = RFX_OK;
    bool done = j->lost < LEAST_LOSS * (double)(*plan)->cost;
    for (size_t k = least[0] > 0.0 ? 0 : 1;
         status == RFX_OK && !done && k < sizeof least / sizeof least[0]; k++) {
        struct rfx_graph *fewer = NULL;
        status = group_less(graph, *plan, j->gains, least[k], &fewer, err);
        if (status == RFX_OK) status = try_variant(request, fewer, plan, &done, err);
    }
    return status;
}

/* Replaces the plan by one with fewer groups, if that is predicted to take no longer. Groups are
 * chosen for whole maps. In a plan of steps with few rows, each step computes their halos again,
 * which may take longer than what they save. */
static enum rfx_status drop_groups_of_plan(const struct rfx_graph *graph,
                                           const struct rfx_plan_request *request,
                                           struct rfx_plan **plan, struct rfx_error *err) {
    struct rfx_memory *mem = graph->mem;
    size_t n = (size_t)graph->n_nodes;
    struct judged j = {.gains = rfx_memory_calloc(mem, n, sizeof *j.gains),
                       .again = rfx_memory_calloc(mem, n, sizeof *j.again)};
    struct rfx_cost_times *times = rfx_memory_alloc(mem, n * sizeof *times);
    struct rfx_node_counts *counts = rfx_memory_alloc(mem, n * sizeof *counts);
    enum rfx_status status = RFX_OK;
    if (j.gains == NULL || j.again == NULL || times == NULL || counts == NULL)
        status = rfx_memory_fail(mem, "times of groups", n * sizeof *counts, err);
    if (status == RFX_OK) status = rfx_cost_time_groups(*plan, &request->caches, times, err);
    if (status == RFX_OK) status = rfx_plan_count_nodes(*plan, counts, err);
    if (status == RFX_OK) judge((*plan)->graph, times, counts, &j);
    if (status == RFX_OK) status = drop_groups(graph, request, plan, &j, err);
    rfx_memory_release(mem, j.gains);
    rfx_memory_release(mem, j.again);
    rfx_memory_release(mem, times);
    rfx_memory_release(mem, counts);
    return status;
}

/* Plans the graph with groups and, if that may be faster, also the plain graph. Takes ownership of
 * `grouped`. */
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
    if (request->groups != NULL || request->n_keepers != 0)
        return rfx_memory_check_stop(graph->mem, err);
    enum rfx_status status = RFX_OK;
    if (a->plan == NULL) {
        status = compare_with_plain(graph, request, NULL, a, err);
    } else if (may_be_slower(a->plan, request)) {
        /* the time with all groups: rows per stage are still to be chosen for the plain graph */
        struct rfx_known_time known = {a->plan->cost, a->plan->cost_untiled};
        if (request->memory_bytes != 0) status = drop_groups_of_plan(graph, request, &a->plan, err);
        if (status == RFX_OK) status = compare_with_plain(graph, request, &known, a, err);
    }
    if (status != RFX_OK) return status;
    return rfx_memory_check_stop(graph->mem, err); /* one of the two plans may be missing */
}

enum rfx_status rfx_plan_create_or_smallest(const struct rfx_graph *graph,
                                            const struct rfx_plan_request *request,
                                            struct rfx_plan **out, struct rfx_plan **smallest,
                                            struct rfx_error *err) {
    struct rfx_graph *grouped = NULL;
    struct answers a = {.plan = NULL};
    enum rfx_status status = rfx_groups_apply(graph, request, &grouped, err);
    if (status == RFX_OK) status = apply_factors(graph, request, &grouped, err);
    if (status != RFX_OK) {
        rfx_graph_free(grouped);
        return status;
    }
    if (grouped != NULL)
        status = plan_grouped(graph, request, grouped, &a, err);
    else
        a.status = rfx_search_plan(graph, request, NULL, &a.plan, &a.smallest, err);
    if (status == RFX_OK && a.status == RFX_OK)
        status = keep_factors_in_plan(graph, request, &a.plan, err);
    struct rfx_plan *made = a.plan != NULL ? a.plan : a.smallest;
    if (status == RFX_OK && made != NULL &&
        made->grouped != NULL) /* the MACs of groups depend on how maps are cut */
        status = rfx_plan_count_step_macs(made, &made->macs, NULL, err);
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
