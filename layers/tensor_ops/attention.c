/* ATTENTION: softmax(steps(in[0] x in[1])) x in[2], without storing the matrix of all scores.
 *
 * A unit of work is a few rows of one matrix of scores. A thread computes these scores in its
 * scratch memory, combines them with the further inputs (the steps), applies the softmax to each
 * row, and multiplies the rows by in[2], which gives rows of the output. Each row takes exactly the
 * operations of the nodes MATMUL, PLAIN_BINARY, PLAIN_SOFTMAX and MATMUL with this library's own
 * kernels, in the same order. So its bits are the same as theirs, however the rows are divided into
 * units. */
#include <string.h>

#include "layers/core/checked.h"
#include "layers/core/floats.h"
#include "layers/graph/infer.h"
#include "layers/graph/units.h"
#include "layers/kernels/kernels.h"
#include "layers/ops/softmax.h"
#include "layers/tensor_ops/matmul.h"

static enum rfx_status infer(const struct rfx_graph *graph, struct rfx_node *node,
                             struct rfx_error *err) {
    const struct rfx_attention_attr *attr = &node->attr.attention;
    if (attr->n_steps < 0 || attr->n_steps > RFX_ATTENTION_MAX_STEPS)
        return rfx_infer_refuse(node, err, "%d steps", attr->n_steps);
    enum rfx_status status =
        rfx_infer_inputs(graph, node, 3 + attr->n_steps, RFX_LAYOUT_PLAIN, err);
    if (status != RFX_OK) return status;
    struct rfx_shape scores, out;
    status = rfx_matmul_shape(node, &rfx_infer_in(graph, node, 0)->shape,
                              &rfx_infer_in(graph, node, 1)->shape, &scores, err);
    if (status != RFX_OK) return status;
    for (int s = 0; s < attr->n_steps; s++) {
        const struct rfx_shape *in = &rfx_infer_in(graph, node, 3 + s)->shape;
        if (in->rank > scores.rank)
            return rfx_infer_refuse(node, err, "step %d: rank %d joins scores of rank %d", s,
                                    in->rank, scores.rank);
        for (int i = 0; i < in->rank; i++) {
            int64_t whole = scores.dims[i + scores.rank - in->rank];
            if (in->dims[i] != 1 && in->dims[i] != whole)
                return rfx_infer_refuse(node, err, "step %d: dimension %lld joins scores of %lld",
                                        s, (long long)in->dims[i], (long long)whole);
        }
    }
    status = rfx_matmul_shape(node, &scores, &rfx_infer_in(graph, node, 2)->shape, &out, err);
    if (status != RFX_OK) return status;
    if (rfx_shape_matrices(&out) != rfx_shape_matrices(&scores))
        return rfx_infer_refuse(node, err, "%lld matrices of scores for %lld of values",
                                (long long)rfx_shape_matrices(&scores),
                                (long long)rfx_shape_matrices(&out));
    return rfx_infer_set_plain(node, &out, err);
}

struct attention {
    const struct rfx_run_args *args;
    struct rfx_shape scores;       /* shape of all scores, which are never stored together */
    int64_t n, k, m, width;        /* in[0] is n x k, in[1] is k x m, in[2] is m x width */
    int64_t matrices;              /* number of matrices of the output */
    int64_t rows, units_of_matrix; /* rows of a unit; units per matrix */
};

static const struct rfx_shape *shape_of(const struct rfx_graph *graph, const struct rfx_node *node,
                                        int k) {
    return &graph->nodes[node->in[k]].out.shape;
}

static struct attention attention_of(const struct rfx_graph *graph, const struct rfx_node *node) {
    const struct rfx_shape *a = shape_of(graph, node, 0), *b = shape_of(graph, node, 1);
    struct attention t = {.n = a->dims[a->rank - 2],
                          .k = a->dims[a->rank - 1],
                          .m = b->dims[b->rank - 1],
                          .width = node->out.shape.dims[node->out.shape.rank - 1]};
    /* Inference has already checked the shapes, so this cannot fail. */
    enum rfx_status status = rfx_matmul_shape(node, a, b, &t.scores, NULL);
    (void)status;
    t.matrices = rfx_shape_matrices(&node->out.shape);
    t.rows = rfx_softmax_rows_at_a_time(t.n, t.m);
    t.units_of_matrix = rfx_ceil_div(t.n, t.rows);
    return t;
}

static uint64_t macs(const struct rfx_graph *graph, const struct rfx_node *node, uint64_t area) {
    const struct attention t = attention_of(graph, node);
    (void)area;
    return (uint64_t)(t.matrices * t.n) * (uint64_t)t.m * (uint64_t)(t.k + t.width);
}

static size_t scratch_bytes(const struct rfx_graph *graph, const struct rfx_node *node,
                            int threads) {
    const struct attention t = attention_of(graph, node);
    return (size_t)threads * rfx_floats_bytes(t.rows * t.m);
}

/* Returns a pointer to element (matrix, row, 0) of input k, as if it were broadcast to the shape of
 * the scores. *step receives the distance between the elements of the row. */
static const float *joined_row(const struct attention *t, int k, int64_t matrix, int64_t row,
                               int64_t *step) {
    const struct rfx_shape *s = shape_of(t->args->graph, t->args->node, k);
    int64_t strides[RFX_MAX_RANK], at = 0;
    rfx_shape_strides(s, strides);
    for (int i = t->scores.rank - 3; i >= 0; i--) {
        int own = i - (t->scores.rank - s->rank);
        if (own >= 0 && s->dims[own] != 1) at += matrix % t->scores.dims[i] * strides[own];
        matrix /= t->scores.dims[i];
    }
    if (s->rank >= 2 && s->dims[s->rank - 2] != 1) at += row * strides[s->rank - 2];
    *step = s->rank >= 1 && s->dims[s->rank - 1] == t->m ? 1 : 0;
    return rfx_view_f32(&t->args->in[k]) + at;
}

/* Applies the steps before the softmax (rfx_attention_attr) to one row of scores, in place. */
static void join(const struct attention *t, int64_t matrix, int64_t row, float *scores) {
    const struct rfx_attention_attr *attr = &t->args->node->attr.attention;
    for (int s = 0; s < attr->n_steps; s++) {
        int64_t step;
        const float *other = joined_row(t, 3 + s, matrix, row, &step);
        if (attr->steps[s].scores_right)
            rfx_kernels()->binary(attr->steps[s].kind, other, step, scores, 1, scores, t->m);
        else
            rfx_kernels()->binary(attr->steps[s].kind, scores, 1, other, step, scores, t->m);
    }
}

static void make_unit(void *user, int64_t index, int thread) {
    const struct attention *t = user;
    const struct rfx_run_args *args = t->args;
    const struct rfx_shape *out = &args->node->out.shape;
    int64_t matrix = index / t->units_of_matrix, row = index % t->units_of_matrix * t->rows;
    int64_t rows = rfx_min_i64(t->rows, t->n - row);
    int64_t a = rfx_matmul_matrix(out, shape_of(args->graph, args->node, 0), matrix);
    int64_t b = rfx_matmul_matrix(out, shape_of(args->graph, args->node, 1), matrix);
    int64_t c = rfx_matmul_matrix(out, shape_of(args->graph, args->node, 2), matrix);
    float *scores = (float *)args->scratch + thread * t->rows * t->m;
    rfx_dense_product(rfx_view_f32(&args->in[0]) + (a * t->n + row) * t->k,
                      rfx_view_f32(&args->in[1]) + b * t->k * t->m, scores, rows, t->k, t->m);
    for (int64_t i = 0; i < rows; i++) {
        join(t, matrix, row + i, scores + i * t->m);
        rfx_softmax_values(scores + i * t->m, scores + i * t->m, t->m, false);
    }
    rfx_dense_product(scores, rfx_view_f32(&args->in[2]) + c * t->m * t->width,
                      rfx_view_f32(&args->out) + (matrix * t->n + row) * t->width, rows, t->m,
                      t->width);
}

static void run(const struct rfx_run_args *args) {
    struct attention t = attention_of(args->graph, args->node);
    t.args = args;
    rfx_team_for(args->team, t.matrices * t.units_of_matrix, make_unit, &t);
}

const struct rfx_op_def rfx_op_attention = {
    .name = "Attention",
    .spatial = false,
    .infer = infer,
    .macs = macs,
    .scratch_bytes = scratch_bytes,
    .run = run,
};
