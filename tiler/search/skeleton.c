/* Targets of the stages of every kind of skeleton. */
#include "tiler/search/skeleton.h"

#include "layers/graph/op.h"

static bool is_reduction(const struct rfx_graph *graph, int i) {
    return rfx_node_reduction(&graph->nodes[i]) != NULL;
}

enum rfx_status rfx_levels_init(struct rfx_levels *levels, const struct rfx_graph *graph,
                                struct rfx_error *err) {
    struct rfx_memory *mem = graph->mem;
    size_t n = (size_t)graph->n_nodes;
    *levels = (struct rfx_levels){.graph = graph};
    levels->level = rfx_memory_calloc(mem, n, sizeof *levels->level);
    levels->local = rfx_memory_calloc(mem, n, sizeof *levels->local);
    if (levels->level == NULL || levels->local == NULL) {
        rfx_levels_release(levels);
        return rfx_memory_fail(mem, "levels", n * sizeof *levels->level, err);
    }
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct rfx_node *node = &graph->nodes[i];
        levels->local[i] = rfx_node_is_local(node);
        for (int k = 0; k < node->n_in; k++) {
            int in = node->in[k];
            if (rfx_node_is_constant(&graph->nodes[in])) continue;
            bool barrier = levels->local[i] && !levels->local[in];
            int level = levels->level[in] + (barrier ? 1 : 0);
            if (level > levels->level[i]) levels->level[i] = level;
        }
        if (levels->local[i] && !rfx_node_is_constant(node) && levels->level[i] + 1 > levels->n)
            levels->n = levels->level[i] + 1;
    }
    return RFX_OK;
}

void rfx_levels_release(struct rfx_levels *levels) {
    if (levels->graph == NULL) return;
    rfx_memory_release(levels->graph->mem, levels->level);
    rfx_memory_release(levels->graph->mem, levels->local);
    levels->graph = NULL;
}

int rfx_skeleton_max_stages(const struct rfx_levels *levels) {
    int chain = 2 * levels->n + 1, cuts = 3;
    return chain > cuts ? chain : cuts;
}

/* How a local map of this level is used after its stage. */
struct use {
    bool kept;   /* by an op that is not local and no pool, or as an output: must be stored */
    bool onward; /* by a local node of a higher level: stored, or computed again */
};

static struct use use_of(const struct rfx_levels *levels, int node) {
    const struct rfx_graph *graph = levels->graph;
    struct use use = {rfx_graph_count_outputs(graph, node) > 0, false};
    for (int i = node + 1; i < graph->n_nodes; i++)
        for (int k = 0; k < graph->nodes[i].n_in; k++) {
            if (graph->nodes[i].in[k] != node) continue;
            if (!levels->local[i] && !is_reduction(graph, i)) use.kept = true;
            if (levels->local[i] && levels->level[i] > levels->level[node]) use.onward = true;
        }
    return use;
}

/* Targets of the local stage of a level: its reductions, and the maps that are read later. */
static int local_targets(const struct rfx_levels *levels, int level, bool store, int *targets) {
    const struct rfx_graph *graph = levels->graph;
    int n = 0;
    for (int i = 0; i < graph->n_nodes; i++) {
        if (rfx_node_is_constant(&graph->nodes[i])) continue;
        bool fed = is_reduction(graph, i) && levels->local[graph->nodes[i].in[0]];
        if (fed && levels->level[i] == level) targets[n++] = i;
        if (!levels->local[i] || levels->level[i] != level) continue;
        struct use use = use_of(levels, i);
        if (use.kept || (store && use.onward)) targets[n++] = i;
    }
    return n;
}

/* Targets of the stage after it: what is not local and read by the next level. */
static int rest_targets(const struct rfx_levels *levels, int level, int *targets) {
    const struct rfx_graph *graph = levels->graph;
    int n = 0;
    for (int i = 0; i < graph->n_nodes; i++) {
        bool fed = is_reduction(graph, i) && levels->local[graph->nodes[i].in[0]];
        if (levels->local[i] || fed || rfx_node_is_constant(&graph->nodes[i])) continue;
        bool wanted = rfx_graph_count_outputs(graph, i) > 0;
        for (int j = i + 1; j < graph->n_nodes; j++)
            for (int k = 0; k < graph->nodes[j].n_in; k++)
                if (graph->nodes[j].in[k] == i && levels->local[j]) wanted = true;
        if (wanted && levels->level[i] == level) targets[n++] = i;
    }
    return n;
}

static struct rfx_stage_spec make_stage(const struct rfx_mode *mode, int n, const int *targets) {
    return (struct rfx_stage_spec){
        .mode = mode, .parts_y = 1, .parts_x = 1, .n_targets = n, .targets = targets};
}

static int chain_stages(const struct rfx_levels *levels, int passes, const struct rfx_mode *rest,
                        struct rfx_stage_spec *specs, int *targets) {
    int stages = 0;
    for (int level = 0; level < levels->n; level++) {
        int n = local_targets(levels, level, level >= passes, targets);
        if (n > 0) specs[stages++] = make_stage(NULL, n, targets);
        targets += n;
        n = rest_targets(levels, level, targets);
        if (n > 0) specs[stages++] = make_stage(rest, n, targets);
        targets += n;
    }
    return stages;
}

/* The outputs that are not stored yet, as the targets of a last stage. */
static int output_targets(const struct rfx_graph *graph, const struct rfx_stage_spec *specs,
                          int n_stages, int *targets) {
    int n = 0;
    for (int k = 0; k < graph->n_outputs; k++) {
        int node = graph->outputs[k].node;
        bool wanted = !rfx_node_is_constant(&graph->nodes[node]);
        for (int s = 0; s < n_stages; s++)
            for (int t = 0; t < specs[s].n_targets; t++)
                if (specs[s].targets[t] == node) wanted = false;
        for (int t = 0; t < n; t++)
            if (targets[t] == node) wanted = false;
        if (wanted) targets[n++] = node;
    }
    return n;
}

/* Targets of a stage up to `cut`: reductions when nothing else reads it, else the map. */
static int cut_targets(const struct rfx_levels *levels, int cut, int *targets) {
    const struct rfx_graph *graph = levels->graph;
    int n = 0;
    bool only_reductions = rfx_graph_count_outputs(graph, cut) == 0;
    for (int i = cut + 1; i < graph->n_nodes; i++)
        for (int k = 0; k < graph->nodes[i].n_in; k++) {
            if (graph->nodes[i].in[k] != cut) continue;
            if (is_reduction(graph, i))
                targets[n++] = i;
            else
                only_reductions = false;
        }
    if (only_reductions && n > 0) return n;
    targets[0] = cut;
    return 1;
}

int rfx_skeleton_stages(const struct rfx_levels *levels, const struct rfx_skeleton *skeleton,
                        const struct rfx_mode *rest, struct rfx_stage_spec *specs, int *targets) {
    int stages = 0;
    int n = 0;
    switch (skeleton->kind) {
        case RFX_SKELETON_REST:
            break;
        case RFX_SKELETON_MAP:
            targets[0] = skeleton->cut;
            specs[stages++] = make_stage(NULL, 1, targets++);
            break;
        case RFX_SKELETON_CUT:
            n = cut_targets(levels, skeleton->cut, targets);
            specs[stages++] = make_stage(NULL, n, targets);
            targets += n;
            break;
        case RFX_SKELETON_CUTS:
            targets[0] = skeleton->cut;
            specs[stages++] = make_stage(NULL, 1, targets++);
            n = cut_targets(levels, skeleton->second, targets);
            specs[stages++] = make_stage(NULL, n, targets);
            targets += n;
            break;
        case RFX_SKELETON_CHAIN:
            stages = chain_stages(levels, skeleton->passes, rest, specs, targets);
            for (int s = 0; s < stages; s++) targets += specs[s].n_targets;
            break;
    }
    n = output_targets(levels->graph, specs, stages, targets);
    if (n > 0) specs[stages++] = make_stage(rest, n, targets);
    return stages;
}
