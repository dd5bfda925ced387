/* MATMUL: the product of two computed tensors, batched with numpy's broadcasting.
 *
 * With this library's own kernels an element is a sum of chains of up to RFX_CONV_PART fused
 * multiply-adds, each from 0, k ascending. The bits are the same on every processor, and threads
 * divide the rows of matrices. If OpenBLAS computes the network's convolutions (conv_backend.h), it
 * also computes these products. Then tensors are computed whole, so that every call has the same
 * size in every run, and threads take whole matrices. */
#include <limits.h>
#include <string.h>

#include "layers/conv/blas.h"
#include "layers/conv/conv_backend.h"
#include "layers/core/checked.h"
#include "layers/core/floats.h"
#include "layers/graph/infer.h"
#include "layers/graph/units.h"
#include "layers/tensor_ops/matmul.h"

enum rfx_status rfx_matmul_shape(const struct rfx_node *node, const struct rfx_shape *a,
                                 const struct rfx_shape *b, struct rfx_shape *out,
                                 struct rfx_error *err) {
    if (a->rank < 2 || b->rank < 2)
        return rfx_infer_refuse(node, err, "operands of rank %d and %d: at least 2 is needed",
                                a->rank, b->rank);
    int64_t n = a->dims[a->rank - 2], k = a->dims[a->rank - 1], m = b->dims[b->rank - 1];
    if (b->dims[b->rank - 2] != k || n > INT_MAX || k > INT_MAX || m > INT_MAX)
        return rfx_infer_refuse(node, err, "%lld x %lld times %lld x %lld", (long long)n,
                                (long long)k, (long long)b->dims[b->rank - 2], (long long)m);
    *out = (struct rfx_shape){.rank = a->rank > b->rank ? a->rank : b->rank};
    for (int i = 0; i < out->rank - 2; i++) {
        int ia = i - (out->rank - a->rank), ib = i - (out->rank - b->rank);
        int64_t da = ia < 0 ? 1 : a->dims[ia], db = ib < 0 ? 1 : b->dims[ib];
        if (da != db && da != 1 && db != 1)
            return rfx_infer_refuse(node, err, "batch dimensions %lld and %lld do not broadcast",
                                    (long long)da, (long long)db);
        out->dims[i] = da == 1 ? db : da;
    }
    out->dims[out->rank - 2] = n;
    out->dims[out->rank - 1] = m;
    return RFX_OK;
}

static enum rfx_status matmul_infer(const struct rfx_graph *graph, struct rfx_node *node,
                                    struct rfx_error *err) {
    struct rfx_shape out;
    enum rfx_status status = rfx_infer_inputs(graph, node, 2, RFX_LAYOUT_PLAIN, err);
    if (status == RFX_OK)
        status = rfx_matmul_shape(node, &rfx_infer_in(graph, node, 0)->shape,
                                  &rfx_infer_in(graph, node, 1)->shape, &out, err);
    return status == RFX_OK ? rfx_infer_set_plain(node, &out, err) : status;
}

static uint64_t matmul_macs(const struct rfx_graph *graph, const struct rfx_node *node,
                            uint64_t area) {
    (void)area;
    const struct rfx_shape *a = &rfx_infer_in(graph, node, 0)->shape;
    return (uint64_t)node->out.elems * (uint64_t)a->dims[a->rank - 1];
}

int64_t rfx_matmul_matrix(const struct rfx_shape *out, const struct rfx_shape *s, int64_t index) {
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

#define LEAST_ROWS 24 /* rows of a unit: four blocks of the dense kernel */

struct product {
    const struct rfx_run_args *args;
    const struct rfx_shape *out, *a, *b;
    int64_t n, m, k, matrices;
    int64_t parts; /* parts of a matrix's rows; own kernels only */
};

static struct product product_of(const struct rfx_run_args *args) {
    struct product p = {.args = args,
                        .out = &args->node->out.shape,
                        .a = &rfx_infer_in(args->graph, args->node, 0)->shape,
                        .b = &rfx_infer_in(args->graph, args->node, 1)->shape};
    p.n = p.out->dims[p.out->rank - 2];
    p.m = p.out->dims[p.out->rank - 1];
    p.k = p.a->dims[p.a->rank - 1];
    p.matrices = args->node->out.elems / (p.n * p.m);
    int64_t units = rfx_ceil_div((int64_t)RFX_UNITS_PER_THREAD * args->threads, p.matrices);
    p.parts =
        args->threads == 1 ? 1 : rfx_max_i64(1, rfx_min_i64(units, rfx_ceil_div(p.n, LEAST_ROWS)));
    return p;
}

static void make_unit(void *user, int64_t index, int thread) {
    const struct product *p = user;
    (void)thread;
    int64_t i = index / p->parts, part = index % p->parts;
    struct rfx_range all = {0, p->n}, rows = rfx_range_part(all, part, p->parts);
    float *y = rfx_view_f32(&p->args->out) + (i * p->n + rows.lo) * p->m;
    const struct rfx_dense_args run = {
        .x = rfx_view_f32(&p->args->in[0]) +
             (rfx_matmul_matrix(p->out, p->a, i) * p->n + rows.lo) * p->k,
        .w = rfx_view_f32(&p->args->in[1]) + rfx_matmul_matrix(p->out, p->b, i) * p->k * p->m,
        .y = y,
        .x_stride = p->k,
        .w_stride = p->m,
        .y_stride = p->m,
        .rows = rfx_range_size(rows),
        .k = p->k,
        .m = p->m,
    };
    memset(y, 0, rfx_floats_bytes(rfx_range_size(rows) * p->m));
    rfx_dense_in_parts(run);
}

static void multiply_blas(void *user, int64_t i, int thread) {
    const struct product *p = user;
    (void)thread;
    rfx_blas_gemm(p->n, p->m, p->k,
                  rfx_view_f32(&p->args->in[0]) + rfx_matmul_matrix(p->out, p->a, i) * p->n * p->k,
                  p->k,
                  rfx_view_f32(&p->args->in[1]) + rfx_matmul_matrix(p->out, p->b, i) * p->k * p->m,
                  p->m, rfx_view_f32(&p->args->out) + i * p->n * p->m, p->m);
}

static void matmul_run(const struct rfx_run_args *args) {
    struct product p = product_of(args);
    if (rfx_conv_choice_of(args->graph) != RFX_CONV_OPENBLAS) {
        rfx_team_for(args->team, p.matrices * p.parts, make_unit, &p);
        return;
    }
    struct rfx_blas_scope scope = rfx_blas_begin();
    rfx_team_for(args->team, p.matrices, multiply_blas, &p);
    rfx_blas_end(scope);
}

static bool matmul_calls_blas(const struct rfx_graph *graph, const struct rfx_node *node) {
    (void)node;
    return rfx_conv_choice_of(graph) == RFX_CONV_OPENBLAS;
}

const struct rfx_op_def rfx_op_matmul = {
    .name = "MatMul",
    .spatial = false,
    .infer = matmul_infer,
    .macs = matmul_macs,
    .calls_blas = matmul_calls_blas,
    .run = matmul_run,
};
