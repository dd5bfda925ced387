/* GLOBAL_POOL: the mean, sum, sum of squares, maximum or minimum over all pixels, per channel.
 *
 * The bits do not depend on the order of pixels. Means and sums are exact until the last rounding
 * (exact_sum.h). If a NaN is among the values, the maximum or minimum is always the same quiet NaN.
 * A maximum or minimum of zero is +0. */
#include <math.h>

#include "layers/core/checked.h"
#include "layers/core/floats.h"
#include "layers/graph/infer.h"
#include "layers/graph/op.h"
#include "layers/graph/reduction.h"
#include "layers/kernels/exact_sum.h"

static bool is_sum(const struct rfx_node *node) {
    enum rfx_reduce_kind kind = node->attr.global_pool.kind;
    return kind == RFX_REDUCE_MEAN || kind == RFX_REDUCE_SUM || kind == RFX_REDUCE_SUM_SQUARE;
}

static enum rfx_status infer(const struct rfx_graph *graph, struct rfx_node *node,
                             struct rfx_error *err) {
    enum rfx_status status = rfx_infer_inputs(graph, node, 1, RFX_LAYOUT_NHWC, err);
    if (status != RFX_OK) return status;
    bool extreme = node->attr.global_pool.kind == RFX_REDUCE_MAX ||
                   node->attr.global_pool.kind == RFX_REDUCE_MIN;
    if (!extreme && !is_sum(node))
        return rfx_infer_refuse(node, err,
                                "no sum or extreme; it is made of sums and functions of them");
    return rfx_infer_set_map(node, rfx_infer_in(graph, node, 0)->c, 1, 1, err);
}

static size_t state_bytes(const struct rfx_node *node) {
    if (is_sum(node)) return rfx_exact_sum_bytes(node->out.c);
    return rfx_align_up(rfx_floats_bytes(node->out.c));
}

static void extreme_into(float *restrict out, const float *restrict x, int64_t c, bool maximum) {
    if (maximum) {
        for (int64_t i = 0; i < c; i++) out[i] = ((x[i] > out[i]) | (x[i] != x[i])) ? x[i] : out[i];
    } else {
        for (int64_t i = 0; i < c; i++) out[i] = ((x[i] < out[i]) | (x[i] != x[i])) ? x[i] : out[i];
    }
}

static void begin(const struct rfx_node *node, void *state) {
    if (is_sum(node)) {
        (void)rfx_exact_sum_reset(state, node->out.c);
        return;
    }
    float *best = state;
    float worst = node->attr.global_pool.kind == RFX_REDUCE_MAX ? -INFINITY : INFINITY;
    for (int64_t i = 0; i < node->out.c; i++) best[i] = worst;
}

/* Adds one row of w pixels to the state. */
static void add_row(const struct rfx_node *node, void *state, const float *row, int64_t w) {
    if (node->attr.global_pool.kind == RFX_REDUCE_SUM_SQUARE) {
        rfx_exact_sum_add_squares(state, row, w);
        return;
    }
    if (is_sum(node)) {
        rfx_exact_sum_add(state, row, w);
        return;
    }
    bool maximum = node->attr.global_pool.kind == RFX_REDUCE_MAX;
    for (int64_t x = 0; x < w; x++)
        extreme_into(state, row + x * node->out.c, node->out.c, maximum);
}

static void add(const struct rfx_node *node, void *state, const struct rfx_view *in,
                struct rfx_rect rect) {
    for (int64_t y = rect.y0; y < rect.y1; y++)
        add_row(node, state, rfx_view_f32_at(in, y, rect.x0), rfx_rect_cols(rect));
}

static void merge(const struct rfx_node *node, void *state, void *other) {
    if (is_sum(node))
        rfx_exact_sum_merge(state, other);
    else
        extreme_into(state, other, node->out.c, node->attr.global_pool.kind == RFX_REDUCE_MAX);
}

static void finish(const struct rfx_node *node, void *state, int64_t h, int64_t w,
                   const struct rfx_view *out) {
    float *pixel = rfx_view_f32_at(out, 0, 0);
    if (is_sum(node)) {
        bool mean = node->attr.global_pool.kind == RFX_REDUCE_MEAN;
        rfx_exact_sum_finish(state, mean ? (double)(h * w) : 1.0, pixel);
        return;
    }
    const float *best = state;
    for (int64_t i = 0; i < node->out.c; i++) pixel[i] = best[i] != best[i] ? NAN : best[i] + 0.0f;
}

/* Returns whether a state is valid. For maxima and minima any float is valid. */
static bool is_sound(const struct rfx_node *node, const void *state) {
    return !is_sum(node) || rfx_exact_sum_is_sound(state, node->out.c);
}

static const struct rfx_reduction reduction = {state_bytes, begin, add, merge, finish, is_sound};

const struct rfx_op_def rfx_op_global_pool = {.name = "GlobalPool",
                                              .spatial = false,
                                              .kind = RFX_CLASS_POOLING,
                                              .infer = infer,
                                              .reduction = &reduction,
                                              .scratch_bytes = rfx_reduction_scratch_bytes,
                                              .run = rfx_reduction_run};
