/* Counts the tensors that are in memory at each node, under each baseline. */
#include "tools/study/baseline.h"

#include <string.h>

#include "layers/core/floats.h"
#include "layers/graph/op.h"
#include "rf_analysis/analysis.h"

static const char *const baseline_names[] = {"eager", "fused", "coalesced"};
_Static_assert(sizeof baseline_names / sizeof baseline_names[0] == RFX_BASELINE_COUNT,
               "one name per baseline");

const char *rfx_baseline_name(enum rfx_baseline baseline) {
    return baseline_names[baseline];
}

bool rfx_baseline_parse(const char *text, enum rfx_baseline *out) {
    for (int i = 0; i < RFX_BASELINE_COUNT; i++) {
        if (strcmp(text, baseline_names[i]) != 0) continue;
        *out = (enum rfx_baseline)i;
        return true;
    }
    return false;
}

struct rfx_fuse_options rfx_baseline_fuse(enum rfx_baseline baseline) {
    bool fused = baseline != RFX_BASELINE_EAGER;
    /* The Add stays a separate node in all three baselines: they differ in whether it has a tensor
     * of its own. */
    struct rfx_fuse_options options = {
        .batch_norm = fused, .activation = fused, .residual = false, .heads = fused};
    return options;
}

/* Returns the operand of node i that is not needed after node i and has the size of its result. Of
 * several such operands returns the one that was computed last; -1: there is none. */
static int dying_operand(const struct rfx_liveness *liveness, int i) {
    const struct rfx_graph *graph = liveness->graph;
    const struct rfx_node *node = &graph->nodes[i];
    int found = -1;
    for (int k = 0; k < node->n_in; k++) {
        int in = node->in[k];
        const struct rfx_node *producer = &graph->nodes[in];
        /* The image belongs to the caller and is never overwritten. */
        if (rfx_node_is_input(producer) || rfx_node_is_constant(producer)) continue;
        if (liveness->last_use[in] != i || producer->out.elems != node->out.elems) continue;
        if (in > found) found = in;
    }
    return found;
}

/* Counts the parameters in memory: a fused batch norm has its scale in the weights and its shift in
 * the bias. */
static uint64_t held_params(const struct rfx_graph *graph) {
    uint64_t params = 0;
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct rfx_node *node = &graph->nodes[i];
        params += rfx_node_param_count(graph, node);
        if (rfx_node_is_class(node, RFX_CLASS_CONVOLUTION))
            params -= (uint64_t)rfx_node_weight_elems(graph, node, RFX_WEIGHT_SCALE);
    }
    return params;
}

static void fill(struct rfx_liveness *liveness, enum rfx_baseline baseline) {
    const struct rfx_graph *graph = liveness->graph;
    rfx_last_uses(graph, liveness->last_use);
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct rfx_node *node = &graph->nodes[i];
        bool adds = rfx_node_fuses_as(node, RFX_FUSE_SUM) && baseline == RFX_BASELINE_COALESCED;
        bool view = rfx_op_def(node->op)->view; /* every framework shares the memory of a view */
        liveness->in_place[i] = adds || view ? dying_operand(liveness, i) : -1;
        bool none = rfx_node_is_constant(node) || rfx_node_is_joined(node);
        liveness->whole_bytes[i] = none ? 0 : rfx_node_out_bytes(node);
    }
    liveness->weights_bytes = rfx_floats_bytes((int64_t)held_params(graph));
}

enum rfx_status rfx_liveness_create(const struct rfx_graph *graph, enum rfx_baseline baseline,
                                    struct rfx_liveness **out, struct rfx_error *err) {
    struct rfx_memory *mem = graph->mem;
    size_t n = (size_t)graph->n_nodes;
    struct rfx_liveness *liveness = rfx_memory_calloc(mem, 1, sizeof *liveness);
    if (liveness == NULL) return rfx_memory_fail(mem, "liveness", sizeof *liveness, err);
    liveness->mem = mem;
    liveness->graph = graph;
    liveness->last_use = rfx_memory_calloc(mem, n, sizeof *liveness->last_use);
    liveness->in_place = rfx_memory_calloc(mem, n, sizeof *liveness->in_place);
    liveness->whole_bytes = rfx_memory_calloc(mem, n, sizeof *liveness->whole_bytes);
    if (liveness->last_use == NULL || liveness->in_place == NULL || liveness->whole_bytes == NULL) {
        rfx_liveness_free(liveness);
        return rfx_memory_fail(mem, "liveness", n * sizeof(size_t), err);
    }
    fill(liveness, baseline);
    *out = liveness;
    return RFX_OK;
}

void rfx_liveness_free(struct rfx_liveness *liveness) {
    if (liveness == NULL) return;
    rfx_memory_release(liveness->mem, liveness->last_use);
    rfx_memory_release(liveness->mem, liveness->in_place);
    rfx_memory_release(liveness->mem, liveness->whole_bytes);
    rfx_memory_release(liveness->mem, liveness);
}

static bool is_repeated(const struct rfx_node *node, int k) {
    for (int j = 0; j < k; j++)
        if (node->in[j] == node->in[k]) return true;
    return false;
}

/* Returns the bytes of the tensors that are not needed after node i and were computed at `first` or
 * later. */
static size_t dying_bytes(const struct rfx_liveness *liveness, int first, int i,
                          const size_t *bytes) {
    const struct rfx_node *node = &liveness->graph->nodes[i];
    size_t sum = liveness->last_use[i] == i ? bytes[i] : 0;
    for (int k = 0; k < node->n_in; k++) {
        int in = node->in[k];
        if (in >= first && liveness->last_use[in] == i && !is_repeated(node, k)) sum += bytes[in];
    }
    return sum;
}

size_t rfx_liveness_peak(const struct rfx_liveness *liveness, int first, int end,
                         const size_t *bytes, int *peak, size_t *live) {
    size_t current = 0;
    size_t largest = 0;
    int at = first;
    for (int i = first; i < end; i++) {
        int over = liveness->in_place[i];
        size_t shared = 0;
        if (over >= first) shared = bytes[over] < bytes[i] ? bytes[over] : bytes[i];
        current += bytes[i];
        size_t now = current - shared;
        if (live != NULL) live[i] = now;
        if (now > largest) {
            largest = now;
            at = i;
        }
        current -= dying_bytes(liveness, first, i, bytes);
    }
    if (peak != NULL) *peak = at;
    return largest;
}
