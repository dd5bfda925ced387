/* Product of two computed tensors, batched with numpy's broadcasting. With own kernels every
 * element is one chain of fused multiply-adds in the order of k, and threads take groups of rows;
 * as convolutions, products are OpenBLAS's where that is asked for or there are no such kernels:
 * whole tensors, so every call has the same size in every run, and threads take whole matrices. */
#include <limits.h>
#include <string.h>

#include "layers/conv/blas.h"
#include "layers/conv/conv_backend.h"
#include "layers/core/checked.h"
#include "layers/core/floats.h"
#include "layers/graph/infer.h"

#define ROWS 48 /* of a thread's piece: a multiple of what the kernel takes at a time */

static enum rfx_status matmul_infer(const struct rfx_graph *graph, struct rfx_node *node,
                                    struct rfx_error *err) {
    enum rfx_status status = rfx_infer_inputs(graph, node, 2, RFX_LAYOUT_PLAIN, err);
    if (status != RFX_OK) return status;
    const struct rfx_shape *a = &rfx_infer_in(graph, node, 0)->shape;
    const struct rfx_shape *b = &rfx_infer_in(graph, node, 1)->shape;
    if (a->rank < 2 || b->rank < 2)
        return rfx_infer_refuse(node, err, "operands of rank %d and %d: at least 2 is needed",
                                a->rank, b->rank);
    int64_t n = a->dims[a->rank - 2], k = a->dims[a->rank - 1], m = b->dims[b->rank - 1];
    if (b->dims[b->rank - 2] != k || n > INT_MAX || k > INT_MAX || m > INT_MAX)
        return rfx_infer_refuse(node, err, "%lld x %lld times %lld x %lld", (long long)n,
                                (long long)k, (long long)b->dims[b->rank - 2], (long long)m);
    struct rfx_shape out = {.rank = a->rank > b->rank ? a->rank : b->rank};
    for (int i = 0; i < out.rank - 2; i++) {
        int ia = i - (out.rank - a->rank), ib = i - (out.rank - b->rank);
        int64_t da = ia < 0 ? 1 : a->dims[ia], db = ib < 0 ? 1 : b->dims[ib];
        if (da != db && da != 1 && db != 1)
            return rfx_infer_refuse(node, err, "batch dimensions %lld and %lld do not broadcast",
                                    (long long)da, (long long)db);
        out.dims[i] = da == 1 ? db : da;
    }
    out.dims[out.rank - 2] = n;
    out.dims[out.rank - 1] = m;
    return rfx_infer_set_plain(node, &out, err);
}

static uint64_t matmul_macs(const struct rfx_graph *graph, const struct rfx_node *node,
                            uint64_t area) {
    (void)area;
    const struct rfx_shape *a = &rfx_infer_in(graph, node, 0)->shape;
    return (uint64_t)node->out.elems * (uint64_t)a->dims[a->rank - 1];
}

/* Which matrix of operand `s` output matrix `index` takes. */
static int64_t matrix_of(const struct rfx_shape *out, const struct rfx_shape *s, int64_t index) {
    int64_t result = 0, step = 1;
    for (int i = out->rank - 3; i >= 0; i--) {
        int64_t at = index % out->dims[i];
        index /= out->dims[i];
        int j = i - (out->rank - s->rank);
        if (j < 0) continue;
        if (s->dims[j] != 1) result += at * step;
        step *= s->dims[j];
    }
    return result;
}

/* n x k times k x m; the operands' matrices by number. */
struct product {
    const struct rfx_run_args *args;
    const struct rfx_shape *out, *a, *b;
    int64_t n, m, k;
};

static const float *left_of(const struct product *p, int64_t i) {
    return p->args->in[0].data + matrix_of(p->out, p->a, i) * p->n * p->k;
}

static const float *right_of(const struct product *p, int64_t i) {
    return p->args->in[1].data + matrix_of(p->out, p->b, i) * p->k * p->m;
}

static void one_matrix(void *user, int64_t i, int thread) {
    const struct product *p = user;
    (void)thread;
    rfx_blas_gemm(p->n, p->m, p->k, left_of(p, i), p->k, right_of(p, i), p->m,
                  p->args->out.data + i * p->n * p->m, p->m);
}

/* Rows of a matrix, with own kernels. */
static void one_piece(void *user, int64_t piece, int thread) {
    const struct product *p = user;
    int64_t parts = rfx_ceil_div(p->n, ROWS), i = piece / parts, row = piece % parts * ROWS;
    struct rfx_dense_run run = {
        .x = left_of(p, i) + row * p->k,
        .w = right_of(p, i),
        .y = p->args->out.data + (i * p->n + row) * p->m,
        .x_stride = p->k,
        .w_stride = p->m,
        .y_stride = p->m,
        .rows = rfx_min_i64(ROWS, p->n - row),
        .k = p->k,
        .m = p->m,
    };
    (void)thread;
    memset(run.y, 0, rfx_floats_bytes(run.rows * p->m));
    rfx_kernels()->dense(&run);
}

static bool matmul_calls_blas(const struct rfx_graph *graph, const struct rfx_node *node) {
    (void)node;
    return rfx_conv_choice_of(graph) == RFX_CONV_OPENBLAS;
}

static void matmul_run(const struct rfx_run_args *args) {
    struct product p = {.args = args,
                        .out = &args->node->out.shape,
                        .a = &rfx_infer_in(args->graph, args->node, 0)->shape,
                        .b = &rfx_infer_in(args->graph, args->node, 1)->shape};
    p.n = p.out->dims[p.out->rank - 2];
    p.m = p.out->dims[p.out->rank - 1];
    p.k = p.a->dims[p.a->rank - 1];
    int64_t count = args->node->out.elems / (p.n * p.m);
    if (!matmul_calls_blas(args->graph, args->node)) {
        rfx_team_for(args->team, count * rfx_ceil_div(p.n, ROWS), one_piece, &p);
        return;
    }
    struct rfx_blas_scope scope = rfx_blas_begin();
    rfx_team_for(args->team, count, one_matrix, &p);
    rfx_blas_end(scope);
}

const struct rfx_op_def rfx_op_matmul = {
    .name = "MatMul",
    .spatial = false,
    .infer = matmul_infer,
    .macs = matmul_macs,
    .calls_blas = matmul_calls_blas,
    .run = matmul_run,
};
