/* GLOBAL_POOL: mean, sum, maximum or minimum over all pixels, per channel.
 *
 * The bits do not depend on the order of pixels: means and sums are exact until the last rounding
 * (exact_sum.h); of maxima and minima a NaN among the values gives the one quiet NaN, and a zero
 * result is +0. Each thread takes rows of its own and the parts are merged. */
#include <math.h>
#include <string.h>

#include "layers/checked.h"
#include "layers/exact_sum.h"
#include "layers/infer.h"

static bool is_sum(const struct rfx_node *node) {
    enum rfx_reduce_kind kind = node->attr.global_pool.kind;
    return kind == RFX_REDUCE_MEAN || kind == RFX_REDUCE_SUM;
}

static enum rfx_status infer(const struct rfx_graph *graph, struct rfx_node *node,
                             struct rfx_error *err) {
    enum rfx_status status = rfx_infer_inputs(graph, node, 1, RFX_LAYOUT_NHWC, err);
    if (status != RFX_OK) return status;
    return rfx_infer_set_map(node, rfx_infer_in(graph, node, 0)->c, 1, 1, err);
}

static size_t part_bytes(const struct rfx_node *node) {
    if (is_sum(node)) return rfx_exact_sum_bytes(node->out.c);
    return rfx_align_up((size_t)node->out.c * sizeof(float));
}

static size_t scratch_bytes(const struct rfx_graph *graph, const struct rfx_node *node,
                            int threads) {
    (void)graph;
    return part_bytes(node) * (size_t)threads;
}

static void extreme_into(float *restrict out, const float *restrict x, int64_t c, bool maximum) {
    if (maximum) {
        for (int64_t i = 0; i < c; i++) out[i] = ((x[i] > out[i]) | (x[i] != x[i])) ? x[i] : out[i];
    } else {
        for (int64_t i = 0; i < c; i++) out[i] = ((x[i] < out[i]) | (x[i] != x[i])) ? x[i] : out[i];
    }
}

static void run_part(const struct rfx_run_args *args, int part, int parts) {
    const struct rfx_tensor *in = &args->graph->nodes[args->node->in[0]].out;
    void *block = (char *)args->scratch + (size_t)part * part_bytes(args->node);
    bool sum = is_sum(args->node);
    bool maximum = args->node->attr.global_pool.kind == RFX_REDUCE_MAX;
    float *best = block;
    struct rfx_exact_sum *exact = sum ? rfx_exact_sum_reset(block, in->c) : NULL;
    for (int64_t i = 0; !sum && i < in->c; i++) best[i] = maximum ? -INFINITY : INFINITY;
    for (int64_t y = part; y < in->h; y += parts) {
        const float *row = rfx_view_at(&args->in[0], y, 0);
        if (sum) {
            rfx_exact_sum_add(exact, row, in->w);
            continue;
        }
        for (int64_t x = 0; x < in->w; x++) extreme_into(best, row + x * in->c, in->c, maximum);
    }
}

static void finish_extreme(const struct rfx_run_args *args, int parts, float *out) {
    bool maximum = args->node->attr.global_pool.kind == RFX_REDUCE_MAX;
    int64_t c = args->node->out.c;
    memcpy(out, args->scratch, (size_t)c * sizeof(float));
    for (int p = 1; p < parts; p++) {
        const void *part = (const char *)args->scratch + (size_t)p * part_bytes(args->node);
        extreme_into(out, part, c, maximum);
    }
    for (int64_t i = 0; i < c; i++) out[i] = out[i] != out[i] ? NAN : out[i] + 0.0f;
}

static void run(const struct rfx_run_args *args) {
    const struct rfx_tensor *in = &args->graph->nodes[args->node->in[0]].out;
    int parts = (int)rfx_max_i64(1, rfx_min_i64(args->threads, in->h));
    if (in->elems < 32768) parts = 1;
#pragma omp parallel for num_threads(parts) schedule(static, 1)
    for (int p = 0; p < parts; p++) run_part(args, p, parts);
    float *out = rfx_view_at(&args->out, 0, 0);
    if (!is_sum(args->node)) {
        finish_extreme(args, parts, out);
        return;
    }
    struct rfx_exact_sum *total = args->scratch;
    for (int p = 1; p < parts; p++) {
        void *part = (char *)args->scratch + (size_t)p * part_bytes(args->node);
        rfx_exact_sum_merge(total, part);
    }
    bool mean = args->node->attr.global_pool.kind == RFX_REDUCE_MEAN;
    rfx_exact_sum_finish(total, mean ? (double)(in->h * in->w) : 1.0, out);
}

const struct rfx_op_def rfx_op_global_pool = {.name = "GlobalPool",
                                              .spatial = false,
                                              .infer = infer,
                                              .scratch_bytes = scratch_bytes,
                                              .run = run};
