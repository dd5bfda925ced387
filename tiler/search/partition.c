/* Computes the levels of nodes and the targets of the stages of every kind of partition. Also finds
 * where a stream is cut into several: where few bytes go through files, or around a network's
 * waist. */
#include "tiler/search/partition.h"

#include <limits.h>

#include "layers/graph/op.h"
#include "rf_analysis/regions.h"

static bool is_reduction(const struct rfx_graph *graph, int i) {
    return rfx_node_reduction(&graph->nodes[i]) != NULL;
}

/* Chains are tried only if a table of all stages and nodes has at most this many entries. All such
 * tables of the planner together then take up to 64 MiB. */
#define MOST_ENTRIES ((int64_t)1 << 18)

static bool allocate(struct rfx_levels *levels, struct rfx_memory *mem, size_t n) {
    levels->level = rfx_memory_calloc(mem, n, sizeof *levels->level);
    levels->last = rfx_memory_calloc(mem, n, sizeof *levels->last);
    levels->local = rfx_memory_calloc(mem, n, sizeof *levels->local);
    levels->uses = rfx_memory_calloc(mem, n, sizeof *levels->uses);
    levels->feeds = rfx_memory_calloc(mem, n, sizeof *levels->feeds);
    levels->stored = rfx_memory_calloc(mem, n, sizeof *levels->stored);
    return levels->level != NULL && levels->last != NULL && levels->local != NULL &&
           levels->uses != NULL && levels->feeds != NULL && levels->stored != NULL;
}

/* Computes the level of node i from its inputs. */
static void find_level(struct rfx_levels *levels, int i) {
    const struct rfx_graph *graph = levels->graph;
    const struct rfx_node *node = &graph->nodes[i];
    bool local = rfx_node_is_local(node);
    levels->local[i] = local;
    for (int k = 0; k < node->n_in; k++) {
        int in = node->in[k];
        if (rfx_node_is_constant(&graph->nodes[in])) continue;
        bool barrier = local && !levels->local[in];
        int level = levels->level[in] + (barrier ? 1 : 0);
        if (level > levels->level[i]) levels->level[i] = level;
    }
}

/* Adds one level after each cut. A node that is not local has the highest level of its inputs. */
static void add_cuts(struct rfx_levels *levels, const int *cuts, int n_cuts) {
    const struct rfx_graph *graph = levels->graph;
    int passed = 0;
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct rfx_node *node = &graph->nodes[i];
        while (passed < n_cuts && cuts[passed] < i) passed++;
        if (levels->local[i]) {
            levels->level[i] += passed;
            continue;
        }
        levels->level[i] = 0;
        for (int k = 0; k < node->n_in; k++)
            if (!rfx_node_is_constant(&graph->nodes[node->in[k]]) &&
                levels->level[node->in[k]] > levels->level[i])
                levels->level[i] = levels->level[node->in[k]];
    }
}

/* Moves maps of constants to the lowest level of their readers; other levels compute them again. */
static void move_sources(struct rfx_levels *levels) {
    const struct rfx_graph *graph = levels->graph;
    for (int i = graph->n_nodes - 1; i >= 0; i--)
        if (rfx_node_is_source(&graph->nodes[i])) levels->level[i] = INT_MAX;
    for (int i = 0; i < graph->n_nodes; i++)
        for (int k = 0; k < graph->nodes[i].n_in; k++) {
            int in = graph->nodes[i].in[k];
            if (rfx_node_is_source(&graph->nodes[in]) && levels->level[i] < levels->level[in])
                levels->level[in] = levels->level[i];
        }
    for (int i = 0; i < graph->n_nodes; i++)
        if (levels->level[i] == INT_MAX) levels->level[i] = 0;
}

/* Records node i as a reader of each of its inputs. */
static void note_uses(struct rfx_levels *levels, int i) {
    const struct rfx_graph *graph = levels->graph;
    const struct rfx_node *node = &graph->nodes[i];
    bool local = levels->local[i], feeds = is_reduction(graph, i);
    levels->last[i] = levels->level[i];
    if (feeds) levels->feeds[levels->n_feeds++] = i;
    for (int k = 0; k < node->n_in; k++) {
        unsigned *uses = &levels->uses[node->in[k]];
        int *last = &levels->last[node->in[k]];
        if (local) *uses |= RFX_USE_LOCAL;
        if (local && levels->level[i] > *last) *last = levels->level[i];
        if (local && levels->level[i] > levels->level[node->in[k]] &&
            !rfx_node_is_source(&graph->nodes[node->in[k]]))
            *uses |= RFX_USE_ONWARD;
        if (!local && !feeds && !rfx_node_is_joined(node)) *uses |= RFX_USE_REST;
    }
}

enum rfx_status rfx_levels_init(struct rfx_levels *levels, const struct rfx_graph *graph,
                                const int *cuts, int n_cuts, struct rfx_error *err) {
    struct rfx_memory *mem = graph->mem;
    size_t n = (size_t)graph->n_nodes;
    *levels = (struct rfx_levels){.graph = graph};
    if (!allocate(levels, mem, n)) {
        rfx_levels_release(levels);
        return rfx_memory_fail(mem, "levels", n * sizeof *levels->level, err);
    }
    for (int i = 0; i < graph->n_nodes; i++) find_level(levels, i);
    if (n_cuts > 0) add_cuts(levels, cuts, n_cuts);
    move_sources(levels);
    for (int i = 0; i < graph->n_nodes; i++) {
        note_uses(levels, i);
        bool made = levels->local[i] && !rfx_node_is_constant(&graph->nodes[i]);
        if (made && levels->level[i] + 1 > levels->n) levels->n = levels->level[i] + 1;
    }
    for (int e = 0; e < graph->n_ends; e++) levels->uses[graph->ends[e].node] |= RFX_USE_OUTPUT;
    int64_t entries = (int64_t)rfx_partition_max_stages(levels) * graph->n_nodes;
    if (entries > MOST_ENTRIES) levels->n = 0;
    return RFX_OK;
}

void rfx_levels_release(struct rfx_levels *levels) {
    if (levels->graph == NULL) return;
    rfx_memory_release(levels->graph->mem, levels->level);
    rfx_memory_release(levels->graph->mem, levels->last);
    rfx_memory_release(levels->graph->mem, levels->local);
    rfx_memory_release(levels->graph->mem, levels->uses);
    rfx_memory_release(levels->graph->mem, levels->feeds);
    rfx_memory_release(levels->graph->mem, levels->stored);
    levels->graph = NULL;
}

int rfx_partition_max_stages(const struct rfx_levels *levels) {
    int chain = 2 * levels->n + 1, cuts = 3;
    return chain > cuts ? chain : cuts;
}

/* Returns whether the node is a reduction with a local input, so that it takes its input tile by
 * tile. */
static bool is_fed(const struct rfx_levels *levels, int i) {
    const struct rfx_graph *graph = levels->graph;
    return is_reduction(graph, i) && levels->local[graph->nodes[i].in[0]];
}

/* Returns whether the chain stores a node's map, so that later stages do not compute it again. */
static bool stores(const struct rfx_levels *levels, const struct rfx_partition *chain, int i) {
    int level = levels->level[i];
    size_t bytes = rfx_node_roi_bytes(&levels->graph->nodes[i]);
    if (chain->until != NULL) return chain->until[i] >= 0;
    if (level < chain->passes) return bytes == 0;
    if (chain->late_to > 0 && level >= chain->late) return bytes <= chain->late_to;
    return chain->store_to == 0 || bytes <= chain->store_to;
}

/* Lists the targets of the local stage of a level: its reductions, and those of its maps that are
 * outputs or are read by nodes that are not local. A map that the chain stores is also a target if
 * local nodes of a higher level read it. */
static int local_targets(const struct rfx_levels *levels, const struct rfx_partition *chain,
                         int level, int *targets) {
    const struct rfx_graph *graph = levels->graph;
    int n = 0;
    for (int i = 0; i < graph->n_nodes; i++) {
        if (levels->level[i] != level || rfx_node_is_constant(&levels->graph->nodes[i])) continue;
        unsigned kept = RFX_USE_OUTPUT | RFX_USE_REST;
        if (stores(levels, chain, i)) kept |= RFX_USE_ONWARD;
        if (levels->local[i] ? (levels->uses[i] & kept) != 0 : is_fed(levels, i)) targets[n++] = i;
    }
    return n;
}

/* Lists the targets of the stage after a level's local stage: nodes that are not local and that are
 * outputs or are read by local nodes. */
static int rest_targets(const struct rfx_levels *levels, int level, int *targets) {
    const struct rfx_graph *graph = levels->graph;
    int n = 0;
    for (int i = 0; i < graph->n_nodes; i++) {
        if (levels->level[i] != level || levels->local[i] || is_fed(levels, i) ||
            rfx_node_is_constant(&graph->nodes[i]))
            continue;
        if ((levels->uses[i] & (RFX_USE_OUTPUT | RFX_USE_LOCAL)) != 0) targets[n++] = i;
    }
    return n;
}

static struct rfx_stage_spec make_stage(const struct rfx_mode *mode, int n, const int *targets) {
    return (struct rfx_stage_spec){
        .mode = mode, .tiles_y = 1, .tiles_x = 1, .n_targets = n, .targets = targets};
}

/* Lists the stored maps that are forgotten after a level: later levels compute them again if they
 * need them. */
static int forgotten_after(const struct rfx_levels *levels, const struct rfx_partition *chain,
                           int level, int *nodes) {
    int n = 0;
    for (int i = 0; i < levels->graph->n_nodes && chain->until != NULL; i++)
        if (chain->until[i] == level) nodes[n++] = i;
    return n;
}

/* Fills specs with the stages of a partition of kind CHAIN and returns their number. Writes the
 * lists of their targets and forgotten nodes to `targets`, one after the other. *end receives the
 * address after the last list. */
static int chain_stages(const struct rfx_levels *levels, const struct rfx_partition *partition,
                        const struct rfx_mode *rest, struct rfx_stage_spec *specs, int *targets,
                        int **end) {
    int stages = 0;
    for (int level = 0; level < levels->n; level++) {
        int n = local_targets(levels, partition, level, targets);
        if (n > 0) specs[stages++] = make_stage(NULL, n, targets);
        targets += n;
        n = rest_targets(levels, level, targets);
        if (n > 0) specs[stages++] = make_stage(rest, n, targets);
        targets += n;
        n = stages > 0 ? forgotten_after(levels, partition, level, targets) : 0;
        if (n > 0) {
            specs[stages - 1].forgotten = targets;
            specs[stages - 1].n_forgotten = n;
        }
        targets += n;
    }
    *end = targets;
    return stages;
}

static void mark_targets(const struct rfx_levels *levels, const struct rfx_stage_spec *specs,
                         int n_stages, bool marked) {
    for (int s = 0; s < n_stages; s++)
        for (int t = 0; t < specs[s].n_targets; t++) levels->stored[specs[s].targets[t]] = marked;
}

/* Lists the outputs that are not stored yet, as targets of a final stage. */
static int output_targets(const struct rfx_levels *levels, const struct rfx_stage_spec *specs,
                          int n_stages, int *targets) {
    const struct rfx_graph *graph = levels->graph;
    int n = 0;
    mark_targets(levels, specs, n_stages, true);
    for (int e = 0; e < graph->n_ends; e++) {
        int node = graph->ends[e].node;
        if (rfx_node_is_constant(&graph->nodes[node]) || levels->stored[node]) continue;
        levels->stored[node] = true;
        targets[n++] = node;
    }
    mark_targets(levels, specs, n_stages, false);
    for (int t = 0; t < n; t++) levels->stored[targets[t]] = false;
    return n;
}

/* Lists the targets of a stage up to `cut`: the reductions of the map if only reductions read it,
 * otherwise the map itself. */
static int cut_targets(const struct rfx_levels *levels, int cut, int *targets) {
    unsigned others = RFX_USE_OUTPUT | RFX_USE_LOCAL | RFX_USE_REST;
    int n = 0;
    if ((levels->uses[cut] & others) == 0)
        for (int f = 0; f < levels->n_feeds; f++)
            if (levels->graph->nodes[levels->feeds[f]].in[0] == cut)
                targets[n++] = levels->feeds[f];
    if (n > 0) return n;
    targets[0] = cut;
    return 1;
}

/* Returns whether a chain may spill a target: a map that only later stages read. */
static bool may_spill(const struct rfx_levels *levels, int i) {
    const struct rfx_node *node = &levels->graph->nodes[i];
    unsigned later = RFX_USE_ONWARD | RFX_USE_REST;
    return levels->local[i] && !rfx_node_is_constant(node) && !rfx_node_is_input(node) &&
           node->out.layout == RFX_LAYOUT_NHWC && (levels->uses[i] & later) != 0 &&
           (levels->uses[i] & RFX_USE_OUTPUT) == 0;
}

/* Returns the size of the largest map that may be spilled and is smaller than `limit`; 0: there is
 * none. */
static size_t next_size(const struct rfx_levels *levels, size_t limit) {
    size_t most = 0;
    for (int i = 0; i < levels->graph->n_nodes; i++) {
        size_t bytes = rfx_node_roi_bytes(&levels->graph->nodes[i]);
        if (bytes < limit && bytes > most && may_spill(levels, i)) most = bytes;
    }
    return most;
}

int rfx_partition_spills(const struct rfx_levels *levels, size_t *sizes) {
    int all = 0, n = 0, at = 0;
    for (size_t s = next_size(levels, SIZE_MAX); s != 0; s = next_size(levels, s)) all++;
    int wanted = all < RFX_PARTITION_MAX_SPILLS ? all : RFX_PARTITION_MAX_SPILLS;
    for (size_t s = next_size(levels, SIZE_MAX); s != 0; s = next_size(levels, s), at++)
        if ((int64_t)(at + 1) * wanted >= (int64_t)(n + 1) * all) sizes[n++] = s;
    return n;
}

/* Marks the spilled targets of a chain's local stages. */
static void mark_spilled(const struct rfx_levels *levels, const struct rfx_partition *partition,
                         int stages, struct rfx_stage_spec *specs, const int *targets,
                         bool *spilled) {
    for (int s = 0; s < stages; s++) {
        bool *marks = spilled + (specs[s].targets - targets);
        if (specs[s].mode != NULL) continue; /* the stage runs in the mode of the tail */
        specs[s].spilled = marks;
        for (int t = 0; t < specs[s].n_targets; t++) {
            int i = specs[s].targets[t];
            size_t bytes = rfx_node_roi_bytes(&levels->graph->nodes[i]);
            marks[t] = may_spill(levels, i) && bytes >= partition->spill_from;
        }
    }
}

int rfx_partition_stages(const struct rfx_levels *levels, const struct rfx_partition *partition,
                         const struct rfx_mode *rest, struct rfx_stage_spec *specs, int *targets,
                         bool *spilled) {
    int *first_target = targets;
    int stages = 0;
    int n = 0;
    switch (partition->kind) {
        case RFX_PARTITION_REST:
            break;
        case RFX_PARTITION_MAP:
            targets[0] = partition->cut;
            specs[stages++] = make_stage(NULL, 1, targets++);
            break;
        case RFX_PARTITION_CUT:
            n = cut_targets(levels, partition->cut, targets);
            specs[stages++] = make_stage(NULL, n, targets);
            targets += n;
            break;
        case RFX_PARTITION_CUTS:
            targets[0] = partition->cut;
            specs[stages++] = make_stage(NULL, 1, targets++);
            n = cut_targets(levels, partition->second, targets);
            specs[stages++] = make_stage(NULL, n, targets);
            targets += n;
            break;
        case RFX_PARTITION_CHAIN:
            stages = chain_stages(levels, partition, rest, specs, targets, &targets);
            if (partition->spill_from != 0)
                mark_spilled(levels, partition, stages, specs, first_target, spilled);
            break;
    }
    n = output_targets(levels, specs, stages, targets);
    if (n > 0) specs[stages++] = make_stage(rest, n, targets);
    return stages;
}

/* Facts about a cut after a node. */
struct point {
    int last;       /* last reader of the node's tensor; the node itself: no reader */
    bool may_cross; /* the tensor may go through a file */
    uint64_t rows;  /* row bytes of all maps up to here */
    uint64_t over;  /* bytes of whole maps that are read across the cut */
    int blocked;    /* tensors that are read across the cut and may not go through files */
    uint64_t ending;
    int blocked_ending; /* parts of `over` and `blocked` that end here: this node is their last
                           reader */
};

static bool is_map(const struct rfx_node *node) {
    return rfx_node_is_local(node) && !rfx_node_is_input(node) &&
           node->out.layout == RFX_LAYOUT_NHWC;
}

/* Finds the last reader of each tensor, and whether the tensor may go through a file. These may
 * not: the image, tensors that are not maps, inputs of nodes that are not local, and outputs. */
static void find_readers(const struct rfx_graph *graph, struct point *points) {
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct rfx_node *node = &graph->nodes[i];
        points[i] = (struct point){.last = i, .may_cross = is_map(node)};
        for (int k = 0; k < node->n_in; k++) {
            points[node->in[k]].last = i;
            if (!rfx_node_is_local(node)) points[node->in[k]].may_cross = false;
        }
    }
    for (int e = 0; e < graph->n_ends; e++) points[graph->ends[e].node].may_cross = false;
}

static void find_sums(const struct rfx_graph *graph, struct point *points) {
    uint64_t rows = 0, over = 0;
    int blocked = 0;
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct rfx_node *node = &graph->nodes[i];
        struct point *p = &points[i];
        bool constant = rfx_node_is_constant(node);
        if (rfx_node_is_local(node) && !constant && node->op != RFX_OP_INNER)
            rows += rfx_tensor_pixel_bytes(&node->out, node->out.w);
        if (p->last > i && !constant) {
            uint64_t bytes = p->may_cross ? rfx_tensor_bytes(&node->out) : 0;
            over += bytes;
            blocked += !p->may_cross;
            points[p->last].ending += bytes;
            points[p->last].blocked_ending += !p->may_cross;
        }
        over -= p->ending;
        blocked -= p->blocked_ending;
        p->rows = rows;
        p->over = over;
        p->blocked = blocked;
    }
}

/* Returns the node, from index `from` on, after which the fewest bytes cross a cut. Considers only
 * nodes for which the row bytes of all maps up to the node differ from `share` by at most `slack`.
 * Returns -1 if there is none. */
static int find_cut(const struct point *points, int n, int from, uint64_t share, uint64_t slack) {
    int best = -1;
    for (int i = from; i < n - 1; i++) {
        const struct point *p = &points[i];
        if (p->rows + slack < share || p->rows > share + slack || p->blocked > 0) continue;
        if (best < 0 || p->over < points[best].over) best = i;
    }
    return best;
}

/* Makes the facts of all cuts. The caller releases them. */
static enum rfx_status make_points(const struct rfx_graph *graph, struct point **points,
                                   struct rfx_error *err) {
    size_t bytes = (size_t)graph->n_nodes * sizeof **points;
    *points = rfx_memory_alloc(graph->mem, bytes);
    if (*points == NULL) return rfx_memory_fail(graph->mem, "cuts of a stream", bytes, err);
    find_readers(graph, *points);
    find_sums(graph, *points);
    return RFX_OK;
}

enum rfx_status rfx_partition_find_cuts(const struct rfx_graph *graph, int more, int *cuts,
                                        bool *are_there, struct rfx_error *err) {
    int n = graph->n_nodes, found = 0;
    struct point *points;
    enum rfx_status status = make_points(graph, &points, err);
    if (status != RFX_OK) return status;
    uint64_t share = points[n - 1].rows / (uint64_t)(more + 1);
    for (int from = 0; found < more; found++) {
        cuts[found] = find_cut(points, n, from, share * (uint64_t)(found + 1), share / 3);
        if (cuts[found] < 0) break;
        from = cuts[found] + 1;
    }
    rfx_memory_release(graph->mem, points);
    *are_there = found == more;
    return RFX_OK;
}

/* Returns the node in [from, end) after which the fewest bytes cross a cut, or -1. Maps before node
 * `first` do not count: a later stage may make them again from the image. */
static int find_narrowest(const struct rfx_graph *graph, const struct point *points, int first,
                          int from, int end) {
    uint64_t fewest = UINT64_MAX;
    int best = -1;
    for (int i = from; i < end; i++) {
        uint64_t over = 0;
        for (int k = first; k <= i; k++)
            if (points[k].last > i && !rfx_node_is_constant(&graph->nodes[k]))
                over += rfx_tensor_bytes(&graph->nodes[k].out);
        if (points[i].blocked > 0 || over >= fewest) continue;
        fewest = over;
        best = i;
    }
    return best;
}

/* Returns whether a stream would hold many rows for a node: those of a large window, or all. */
static bool holds_many_rows(const struct rfx_node *node) {
    return rfx_node_has_large_windows(node) ||
           (node->op == RFX_OP_WINDOW_ATTENTION && node->attr.window_attention.h == node->out.h);
}

/* Returns the first node from index `from` on that is an output, or the last node. Nothing crosses
 * a cut behind all outputs of a shard, but it leaves all work in one stage. */
static int first_end(const struct rfx_graph *graph, int from) {
    int end = graph->n_nodes - 1;
    for (int e = 0; e < graph->n_ends; e++) {
        int node = graph->ends[e].node;
        if (node >= from && node < end) end = node;
    }
    return end;
}

enum rfx_status rfx_partition_window_cuts(const struct rfx_graph *graph, int *cuts, int *n_cuts,
                                          struct rfx_error *err) {
    int windows[RFX_PARTITION_MAX_WINDOWS + 1], count = 0;
    struct point *points;
    for (int i = 0; i < graph->n_nodes && count < RFX_PARTITION_MAX_WINDOWS; i++)
        if (holds_many_rows(&graph->nodes[i])) windows[count++] = i;
    *n_cuts = 0;
    if (count == 0) return RFX_OK;
    windows[count] = first_end(graph, windows[count - 1]);
    enum rfx_status status = make_points(graph, &points, err);
    if (status != RFX_OK) return status;
    for (int k = 0; k < count; k++) {
        int cut = find_narrowest(graph, points, windows[0], windows[k], windows[k + 1]);
        if (cut >= 0) cuts[(*n_cuts)++] = cut;
    }
    rfx_memory_release(graph->mem, points);
    return RFX_OK;
}

/* Returns the number of pixels of a map that a stream computes; 0: the node has no such map. */
static int64_t pixels_of(const struct rfx_graph *graph, int i) {
    const struct rfx_node *node = &graph->nodes[i];
    bool made = is_map(node) && !rfx_node_is_constant(node) && node->op != RFX_OP_INNER;
    return made ? node->out.h * node->out.w : 0;
}

bool rfx_partition_find_waist(const struct rfx_graph *graph, int64_t below,
                              struct rfx_waist *waist) {
    int n = graph->n_nodes, before = -1, after = -1;
    *waist = (struct rfx_waist){.pixels = 0, .cuts = {-1, -1}};
    for (int i = 0; i < n; i++) {
        int64_t pixels = pixels_of(graph, i);
        if (pixels < below && pixels > waist->pixels) waist->pixels = pixels;
    }
    for (int i = 0; i < n; i++) {
        int64_t pixels = pixels_of(graph, i);
        if (pixels == 0) continue;
        if (pixels <= waist->pixels) {
            if (waist->cuts[0] < 0) waist->cuts[0] = i;
            waist->cuts[1] = i;
        } else if (waist->cuts[0] < 0) {
            before = i;
        } else {
            after = i;
        }
    }
    waist->is_one = before >= 0 && after > waist->cuts[1] && waist->cuts[1] > waist->cuts[0];
    for (int k = 0; k < 2 && waist->is_one; k++) {
        size_t bytes = rfx_node_roi_bytes(&graph->nodes[waist->cuts[k]]);
        if (bytes > waist->cut_bytes) waist->cut_bytes = bytes;
    }
    return waist->pixels > 0;
}
