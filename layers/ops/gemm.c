/* Fully connected layer: (rows, k) x constant weights + bias -> (rows, m).
 *
 * Weights are packed in blocks of 64 outputs, [block][k][outputs]; threads take blocks. An element
 * sums over k in pieces of CHAIN, so neither blocks nor threads touch its bits. alpha goes into the
 * weights and beta into the bias when packing. Mostly bound by reading the weights once. */
#include <string.h>

#include "layers/graph/infer.h"
#include "layers/kernels/packing.h"

#define BLOCK 64  /* outputs of a block: the widest the dense kernels keep in registers */
#define CHAIN 512 /* products summed before they join the result: keeps rounding small */

static enum rfx_status gemm_infer(const struct rfx_graph *graph, struct rfx_node *node,
                                  struct rfx_error *err) {
    enum rfx_status status = rfx_infer_inputs(graph, node, 1, RFX_LAYOUT_PLAIN, err);
    if (status != RFX_OK) return status;
    struct rfx_shape shape = rfx_infer_in(graph, node, 0)->shape;
    int64_t k = node->attr.gemm.k, m = node->attr.gemm.m, elems;
    if (shape.rank < 1 || shape.dims[shape.rank - 1] != k)
        return rfx_infer_refuse(node, err, "the input's last dimension is %lld, the weight's %lld",
                                (long long)(shape.rank < 1 ? 0 : shape.dims[shape.rank - 1]),
                                (long long)k);
    const struct rfx_weight *w = &graph->weights[node->attr.gemm.weight];
    if (k < 1 || m < 1 || !rfx_checked_mul_i64(k, m, &elems) || elems != w->elems)
        return rfx_infer_refuse(node, err, "the weight has %lld elements, not %lld x %lld",
                                (long long)w->elems, (long long)k, (long long)m);
    int bias = node->attr.gemm.bias;
    if (bias >= 0 && graph->weights[bias].elems != m)
        return rfx_infer_refuse(node, err, "bias has %lld elements for %lld outputs",
                                (long long)graph->weights[bias].elems, (long long)m);
    shape.dims[shape.rank - 1] = m;
    return rfx_infer_set_plain(node, &shape, err);
}

static uint64_t gemm_macs(const struct rfx_graph *graph, const struct rfx_node *node,
                          uint64_t area) {
    (void)graph;
    (void)area;
    return (uint64_t)node->out.elems * (uint64_t)node->attr.gemm.k;
}

static size_t gemm_packed_bytes(const struct rfx_graph *graph, const struct rfx_node *node) {
    size_t weights = rfx_floats_bytes(graph->weights[node->attr.gemm.weight].elems);
    return rfx_packing_parts(&node->act, node->attr.gemm.m).weights_bytes_at +
           rfx_align_up(weights);
}

/* Source [m][k]: BLOCK rows at a time, a piece of k at a time. */
static enum rfx_status pack_mk(const struct rfx_node *node, struct rfx_packing_reader *reader,
                               float *temp, float *weights) {
    int64_t k = node->attr.gemm.k, m = node->attr.gemm.m, piece = RFX_PACKING_CHUNK_ELEMS / BLOCK;
    float alpha = node->attr.gemm.alpha;
    for (int64_t b = 0; b < m; b += BLOCK) {
        int64_t width = rfx_min_i64(BLOCK, m - b);
        for (int64_t k0 = 0; k0 < k; k0 += piece) {
            int64_t n = rfx_min_i64(piece, k - k0);
            for (int64_t j = 0; j < width; j++) {
                enum rfx_status status =
                    rfx_packing_read(reader, (b + j) * k + k0, n, temp + j * piece);
                if (status != RFX_OK) return status;
            }
            float *to = weights + b * k + k0 * width;
            for (int64_t i = 0; i < n; i++)
                for (int64_t j = 0; j < width; j++) to[i * width + j] = alpha * temp[j * piece + i];
        }
    }
    return RFX_OK;
}

/* Source [k][m]. */
static enum rfx_status pack_km(const struct rfx_node *node, struct rfx_packing_reader *reader,
                               float *temp, float *weights) {
    int64_t k = node->attr.gemm.k, m = node->attr.gemm.m;
    float alpha = node->attr.gemm.alpha;
    for (int64_t e0 = 0; e0 < k * m; e0 += RFX_PACKING_CHUNK_ELEMS) {
        int64_t n = rfx_min_i64(RFX_PACKING_CHUNK_ELEMS, k * m - e0);
        enum rfx_status status = rfx_packing_read(reader, e0, n, temp);
        if (status != RFX_OK) return status;
        for (int64_t e = 0; e < n; e++) {
            int64_t i = (e0 + e) / m, j = (e0 + e) % m, b = j / BLOCK * BLOCK;
            weights[b * k + i * rfx_min_i64(BLOCK, m - b) + j - b] = alpha * temp[e];
        }
    }
    return RFX_OK;
}

static enum rfx_status gemm_pack(const struct rfx_graph *graph, const struct rfx_node *node,
                                 void *packed, void *temp, struct rfx_error *err) {
    int64_t m = node->attr.gemm.m;
    float *weights;
    enum rfx_status status =
        rfx_packing_begin(graph, &node->act, m, node->attr.gemm.bias, packed, &weights, err);
    if (status != RFX_OK) return status;
    float *bias = packed;
    for (int64_t i = 0; i < m; i++) bias[i] *= node->attr.gemm.beta;
    struct rfx_packing_reader reader = {.weight = &graph->weights[node->attr.gemm.weight],
                                        .err = err};
    return node->attr.gemm.weight_is_mk ? pack_mk(node, &reader, temp, weights)
                                        : pack_km(node, &reader, temp, weights);
}

static void gemm_block(const struct rfx_run_args *args, int64_t b) {
    const struct rfx_node *node = args->node;
    int64_t k = node->attr.gemm.k, m = node->attr.gemm.m, rows = node->out.elems / m;
    const struct rfx_kernels *kernels = rfx_kernels();
    const float *weights = rfx_packed_weights(&node->act, m, args->packed);
    const float *slope = rfx_packed_slope(&node->act, m, args->packed);
    int64_t j = b * BLOCK, width = rfx_min_i64(BLOCK, m - j);
    struct rfx_dense_run run = {
        .x = args->in[0].data,
        .w = weights + j * k,
        .y = args->out.data + j,
        .x_stride = k,
        .w_stride = width,
        .y_stride = m,
        .rows = rows,
        .m = width,
    };
    for (int64_t r = 0; r < rows; r++) memset(run.y + r * m, 0, rfx_floats_bytes(width));
    for (int64_t k0 = 0; k0 < k; k0 += CHAIN, run.x += CHAIN, run.w += CHAIN * width) {
        run.k = rfx_min_i64(CHAIN, k - k0);
        kernels->dense(&run);
    }
    struct rfx_epilogue epilogue = {(const float *)args->packed + j,
                                    slope == NULL ? NULL : slope + j, &node->act, width};
    kernels->epilogue(&epilogue, run.y, m, NULL, 0, rows);
}

static void gemm_run(const struct rfx_run_args *args) {
    rfx_op_share(args, rfx_ceil_div(args->node->attr.gemm.m, BLOCK), gemm_block);
}

static const struct rfx_weight_slot weights[] = {
    {"weight", RFX_WEIGHT_FACTOR, offsetof(struct rfx_node, attr.gemm.weight)},
    {"bias", RFX_WEIGHT_BIAS, offsetof(struct rfx_node, attr.gemm.bias)},
    {NULL, RFX_WEIGHT_FACTOR, 0},
};

const struct rfx_op_def rfx_op_gemm = {
    .name = "Gemm",
    .spatial = false,
    .takes_in = RFX_FUSE_ACTIVATION,
    .weights = weights,
    .infer = gemm_infer,
    .macs = gemm_macs,
    .packed_bytes = gemm_packed_bytes,
    .pack = gemm_pack,
    .run = gemm_run,
};
