/* Classifies the points of a trade-off curve and checks the guidelines of paper 003, section 3.3.
 */
#include "tools/study/advise.h"

#include "layers/graph/op.h"

const char *rfx_case_text(enum rfx_case kind) {
    switch (kind) {
        case RFX_CASE_NONE:
            return "before the peak, nothing saved";
        case RFX_CASE_SAME:
            return "peak unchanged, only MACs added";
        case RFX_CASE_RISES:
            return "ratio rises, memory saved";
        case RFX_CASE_FALLS:
            return "ratio falls, tiles outgrow the tail";
    }
    return "";
}

static enum rfx_case point_case(size_t untiled, size_t before, size_t peak) {
    if (peak == untiled) return RFX_CASE_NONE;
    if (peak == before) return RFX_CASE_SAME;
    return peak < before ? RFX_CASE_RISES : RFX_CASE_FALLS;
}

static void fill_cases(struct rfx_advice *advice) {
    const struct rfx_curve *curve = advice->curve;
    size_t before = curve->untiled.peak_bytes;
    for (int i = 0; i < curve->n_points; i++) {
        size_t peak = curve->points[i].peak_bytes;
        advice->cases[i] = point_case(curve->untiled.peak_bytes, before, peak);
        before = peak;
    }
}

/* Guideline 1: "the maximum memory consumption tends to occur at the relatively low layers". */
static void judge_peak(struct rfx_advice *advice) {
    const struct rfx_curve *curve = advice->curve;
    const struct rfx_graph *graph = curve->graph;
    uint64_t macs = 0;
    for (int i = 0; i <= curve->untiled.peak_node; i++)
        macs += rfx_op_macs(graph, &graph->nodes[i], rfx_node_full_rect(&graph->nodes[i]));
    advice->macs_share =
        curve->untiled.macs == 0 ? 0.0 : (double)macs / (double)curve->untiled.macs;
    advice->crossing = -1;
    for (int i = curve->n_points - 1; i >= 0; i--)
        if (curve->points[i].split >= curve->untiled.peak_node) advice->crossing = i;
    advice->late_peak =
        advice->crossing < 0 ||
        rfx_curve_macs_ratio(curve, &curve->points[advice->crossing]) > RFX_ADVICE_EARLY_MACS_RATIO;
}

/* Guideline 2: "activations should be higher than the memory used by the parameters". */
static void judge_weights(struct rfx_advice *advice) {
    const struct rfx_curve *curve = advice->curve;
    advice->activation_bytes = curve->untiled.peak_bytes - curve->weights_bytes;
    advice->weights_dominate = advice->activation_bytes < curve->weights_bytes;
}

/* Returns the largest number of convolutions on a path that begins after node `first` and ends at
 * node `last`. depth[n_nodes]: scratch. */
static int longest_path(const struct rfx_graph *graph, int first, int last, int *depth) {
    for (int i = first + 1; i <= last; i++) {
        const struct rfx_node *node = &graph->nodes[i];
        depth[i] = 0;
        for (int k = 0; k < node->n_in; k++) {
            int in = node->in[k];
            if (in > first && depth[in] > depth[i]) depth[i] = depth[in];
        }
        depth[i] += rfx_node_is_class(node, RFX_CLASS_CONVOLUTION) ? 1 : 0;
    }
    return last > first ? depth[last] : 0;
}

/* Guideline 3: "the number of convolutions in a residual block should be reduced". */
static void judge_blocks(struct rfx_advice *advice, int *depth) {
    const struct rfx_curve *curve = advice->curve;
    int first = -1;
    advice->block_first = advice->block_last = -1;
    for (int i = 0; i < curve->n_points; i++) {
        int last = curve->points[i].split;
        int convs = longest_path(curve->graph, first, last, depth);
        if (convs > advice->block_convs) {
            advice->block_convs = convs;
            advice->block_first = first;
            advice->block_last = last;
        }
        first = last;
    }
    advice->long_blocks = advice->block_convs > RFX_ADVICE_BLOCK_CONVS;
}

/* Finds the first operator that needs its whole input while convolutions on maps larger than one
 * pixel depend on its result, for example the pooling of squeeze-and-excitation. above[n_nodes]:
 * scratch. */
static void find_barrier(struct rfx_advice *advice, int *above) {
    const struct rfx_graph *graph = advice->curve->graph;
    advice->barrier = -1;
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct rfx_node *node = &graph->nodes[i];
        bool local = rfx_op_def(node->op)->spatial || rfx_node_is_constant(node);
        above[i] = local ? -1 : i;
        for (int k = 0; k < node->n_in; k++) {
            int before = above[node->in[k]];
            if (before >= 0 && (above[i] < 0 || before < above[i])) above[i] = before;
        }
        if (above[i] < 0 || !rfx_node_is_class(node, RFX_CLASS_CONVOLUTION) ||
            node->out.h * node->out.w <= 1)
            continue;
        if (advice->barrier < 0) advice->barrier = above[i];
        advice->barrier_convs++;
    }
}

enum rfx_status rfx_advice_create(const struct rfx_curve *curve, struct rfx_advice **out,
                                  struct rfx_error *err) {
    struct rfx_memory *mem = curve->mem;
    size_t n = (size_t)curve->graph->n_nodes;
    struct rfx_advice *advice = rfx_memory_calloc(mem, 1, sizeof *advice);
    enum rfx_case *cases = rfx_memory_calloc(mem, n, sizeof *cases);
    int *depth = rfx_memory_calloc(mem, n, sizeof *depth);
    if (advice == NULL || cases == NULL || depth == NULL) {
        rfx_memory_release(mem, advice);
        rfx_memory_release(mem, cases);
        rfx_memory_release(mem, depth);
        return rfx_memory_fail(mem, "advice", n * sizeof *cases, err);
    }
    advice->mem = mem;
    advice->curve = curve;
    advice->cases = cases;
    fill_cases(advice);
    judge_peak(advice);
    judge_weights(advice);
    judge_blocks(advice, depth);
    find_barrier(advice, depth);
    rfx_memory_release(mem, depth);
    *out = advice;
    return RFX_OK;
}

void rfx_advice_free(struct rfx_advice *advice) {
    if (advice == NULL) return;
    rfx_memory_release(advice->mem, advice->cases);
    rfx_memory_release(advice->mem, advice);
}

const struct rfx_curve_point *rfx_advice_within(const struct rfx_curve *curve, size_t bytes) {
    for (int i = 0; i < curve->n_pareto; i++)
        if (curve->pareto[i].peak_bytes <= bytes) return &curve->pareto[i];
    return NULL;
}
