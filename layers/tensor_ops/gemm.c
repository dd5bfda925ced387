/* GEMM, the fully connected layer: (rows, k) x constant weights + bias -> (rows, m).
 *
 * Weights are packed in blocks of 64 outputs, [block][k][outputs]. Threads compute different
 * blocks. An element sums over k in parts (rfx_dense_in_parts), so its bits depend neither on
 * blocks nor on threads. Packing multiplies the weights by alpha and the bias by beta. The time is
 * mostly that of reading the weights once. */
#include <string.h>

#include "layers/graph/infer.h"
#include "layers/kernels/packing.h"

#define BLOCK 64 /* outputs of a block: the most that the dense kernels hold in registers */

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

/* Packs rows j .. j + n, at most RFX_PACKING_TILE, of a source [m][k], one piece of k at a time. */
static enum rfx_status pack_rows(const struct rfx_node *node, struct rfx_packing_reader *reader,
                                 const struct rfx_pack_part *part, int64_t j, int64_t n,
                                 float *weights) {
    int64_t k = node->attr.gemm.k, b = j / BLOCK * BLOCK;
    int64_t width = rfx_min_i64(BLOCK, node->attr.gemm.m - b);
    int64_t piece = rfx_packing_half(part) / RFX_PACKING_TILE;
    float alpha = node->attr.gemm.alpha, tile[RFX_PACKING_TILE][RFX_PACKING_TILE];
    for (int64_t k0 = 0; k0 < k; k0 += piece) {
        int64_t count = rfx_min_i64(piece, k - k0);
        for (int64_t r = 0; r < n; r++) {
            enum rfx_status status =
                rfx_packing_read(reader, (j + r) * k + k0, count, part->temp + r * piece);
            if (status != RFX_OK) return status;
        }
        float *to = weights + b * k + k0 * width + j - b;
        for (int64_t i = 0; i < count; i += RFX_PACKING_TILE) {
            int64_t rows = rfx_min_i64(RFX_PACKING_TILE, count - i);
            rfx_packing_tile(part->temp + i, piece, n, rows, tile);
            for (int64_t r = 0; r < rows; r++, to += width)
                for (int64_t c = 0; c < n; c++) to[c] = alpha * tile[r][c];
        }
    }
    return RFX_OK;
}

static enum rfx_status pack_mk(const struct rfx_node *node, struct rfx_packing_reader *reader,
                               const struct rfx_pack_part *part, float *weights) {
    int64_t m = node->attr.gemm.m;
    struct rfx_range lines = rfx_pack_units(part, rfx_ceil_div(m, RFX_PACKING_TILE));
    enum rfx_status status = RFX_OK;
    for (int64_t l = lines.lo; status == RFX_OK && l < lines.hi; l++) {
        int64_t j = l * RFX_PACKING_TILE;
        status = pack_rows(node, reader, part, j, rfx_min_i64(RFX_PACKING_TILE, m - j), weights);
    }
    return status;
}

/* Packs a source [k][m]: each row in runs of at most BLOCK elements. */
static enum rfx_status pack_km(const struct rfx_node *node, struct rfx_packing_reader *reader,
                               const struct rfx_pack_part *part, float *weights) {
    int64_t k = node->attr.gemm.k, m = node->attr.gemm.m;
    float alpha = node->attr.gemm.alpha;
    struct rfx_range rows = rfx_pack_units(part, k);
    int64_t piece = rfx_packing_half(part);
    for (int64_t e0 = rows.lo * m; e0 < rows.hi * m; e0 += piece) {
        int64_t count = rfx_min_i64(piece, rows.hi * m - e0), n;
        enum rfx_status status = rfx_packing_read(reader, e0, count, part->temp);
        if (status != RFX_OK) return status;
        for (int64_t e = 0; e < count; e += n) {
            int64_t i = (e0 + e) / m, j = (e0 + e) % m, b = j / BLOCK * BLOCK;
            int64_t width = rfx_min_i64(BLOCK, m - b);
            float *to = weights + b * k + i * width + j - b;
            n = rfx_min_i64(b + width - j, count - e);
            for (int64_t r = 0; r < n; r++) to[r] = alpha * part->temp[e + r];
        }
    }
    return RFX_OK;
}

static enum rfx_status gemm_pack(const struct rfx_graph *graph, const struct rfx_node *node,
                                 void *packed, const struct rfx_pack_part *part,
                                 struct rfx_error *err) {
    int64_t m = node->attr.gemm.m;
    float *weights;
    enum rfx_status status =
        rfx_packing_begin(graph, &node->act, m, node->attr.gemm.bias, packed, part, &weights, err);
    if (status != RFX_OK) return status;
    float *bias = packed;
    for (int64_t i = 0; part->index == 0 && i < m; i++) bias[i] *= node->attr.gemm.beta;
    struct rfx_packing_reader reader = {.weight = &graph->weights[node->attr.gemm.weight],
                                        .err = err};
    return node->attr.gemm.weight_is_mk ? pack_mk(node, &reader, part, weights)
                                        : pack_km(node, &reader, part, weights);
}

static void gemm_block(const struct rfx_run_args *args, int64_t b) {
    const struct rfx_node *node = args->node;
    int64_t k = node->attr.gemm.k, m = node->attr.gemm.m, rows = node->out.elems / m;
    const struct rfx_kernels *kernels = rfx_kernels();
    const float *weights = rfx_packed_weights(&node->act, m, args->packed);
    const float *slope = rfx_packed_slope(&node->act, m, args->packed);
    int64_t j = b * BLOCK, width = rfx_min_i64(BLOCK, m - j);
    const struct rfx_dense_args run = {
        .x = rfx_view_f32(&args->in[0]),
        .w = weights + j * k,
        .y = rfx_view_f32(&args->out) + j,
        .x_stride = k,
        .w_stride = width,
        .y_stride = m,
        .rows = rows,
        .k = k,
        .m = width,
    };
    for (int64_t r = 0; r < rows; r++) memset(run.y + r * m, 0, rfx_floats_bytes(width));
    rfx_dense_in_parts(run);
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
