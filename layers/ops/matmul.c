/* Product of two computed tensors, batched with numpy's broadcasting. Whole tensors, so every
 * OpenBLAS call has the same size in every run; threads take whole matrices. */
#include <limits.h>

#include "layers/conv/blas.h"
#include "layers/core/checked.h"
#include "layers/graph/infer.h"

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

struct matmul_loop {
    const struct rfx_run_args *args;
    int64_t n, m, k;
};

static void one_matrix(void *user, int64_t i, int thread) {
    const struct matmul_loop *loop = user;
    const struct rfx_run_args *args = loop->args;
    const struct rfx_shape *out = &args->node->out.shape;
    const struct rfx_shape *a = &rfx_infer_in(args->graph, args->node, 0)->shape;
    const struct rfx_shape *b = &rfx_infer_in(args->graph, args->node, 1)->shape;
    int64_t n = loop->n, m = loop->m, k = loop->k;
    (void)thread;
    rfx_blas_gemm(n, m, k, args->in[0].data + matrix_of(out, a, i) * n * k, k,
                  args->in[1].data + matrix_of(out, b, i) * k * m, m, args->out.data + i * n * m,
                  m);
}

static void matmul_run(const struct rfx_run_args *args) {
    const struct rfx_shape *out = &args->node->out.shape;
    const struct rfx_shape *a = &rfx_infer_in(args->graph, args->node, 0)->shape;
    struct matmul_loop loop = {args, out->dims[out->rank - 2], out->dims[out->rank - 1],
                               a->dims[a->rank - 1]};
    struct rfx_blas_scope scope = rfx_blas_begin();
    rfx_team_for(args->team, args->node->out.elems / (loop.n * loop.m), one_matrix, &loop);
    rfx_blas_end(scope);
}

static bool matmul_calls_blas(const struct rfx_graph *graph, const struct rfx_node *node) {
    (void)graph;
    (void)node;
    return true;
}

const struct rfx_op_def rfx_op_matmul = {
    .name = "MatMul",
    .spatial = false,
    .infer = matmul_infer,
    .macs = matmul_macs,
    .calls_blas = matmul_calls_blas,
    .run = matmul_run,
};
