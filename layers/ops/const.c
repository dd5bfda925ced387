/* Nodes that compute nothing. INPUT is the image: the executor fills its view. CONST_MAP and
 * CONST_PLAIN are constant tensors. Their values are packed once, for a map from NCHW into NHWC,
 * and are copied when a step requests them. */
#include <string.h>

#include "layers/core/checked.h"
#include "layers/graph/infer.h"

#define CHUNK_ELEMS ((int64_t)1 << 14)

static enum rfx_status infer_input(const struct rfx_graph *graph, struct rfx_node *node,
                                   struct rfx_error *err) {
    enum rfx_status status = rfx_infer_inputs(graph, node, 0, RFX_LAYOUT_NHWC, err);
    if (status != RFX_OK) return status;
    return rfx_infer_set_map(node, node->attr.input.c, node->attr.input.h, node->attr.input.w, err);
}

static enum rfx_status check_weight(const struct rfx_graph *graph, const struct rfx_node *node,
                                    struct rfx_error *err) {
    int weight = node->attr.constant.weight;
    if (weight < 0 || weight >= graph->n_weights)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "Constant '%s': weight %d of %d does not exist",
                        node->name, weight, graph->n_weights);
    if (graph->weights[weight].elems != node->out.elems)
        return rfx_fail(err, RFX_STATUS_MALFORMED,
                        "Constant '%s': %lld values for a shape of %lld elements", node->name,
                        (long long)graph->weights[weight].elems, (long long)node->out.elems);
    return RFX_OK;
}

static enum rfx_status infer_map(const struct rfx_graph *graph, struct rfx_node *node,
                                 struct rfx_error *err) {
    enum rfx_status status = rfx_infer_inputs(graph, node, 0, RFX_LAYOUT_NHWC, err);
    if (status != RFX_OK) return status;
    const struct rfx_shape *shape = &node->attr.constant.shape;
    if (shape->rank != 4 || shape->dims[0] != 1)
        return rfx_infer_refuse(node, err, "a map has rank 4 and n = 1, not rank %d, n = %lld",
                                shape->rank, shape->rank > 0 ? (long long)shape->dims[0] : 0LL);
    status = rfx_infer_set_map(node, shape->dims[1], shape->dims[2], shape->dims[3], err);
    return status == RFX_OK ? check_weight(graph, node, err) : status;
}

static enum rfx_status infer_plain(const struct rfx_graph *graph, struct rfx_node *node,
                                   struct rfx_error *err) {
    enum rfx_status status = rfx_infer_inputs(graph, node, 0, RFX_LAYOUT_PLAIN, err);
    if (status == RFX_OK) status = rfx_infer_set_plain(node, &node->attr.constant.shape, err);
    return status == RFX_OK ? check_weight(graph, node, err) : status;
}

static size_t packed_bytes(const struct rfx_graph *graph, const struct rfx_node *node) {
    (void)graph;
    return rfx_tensor_bytes(&node->out);
}

static enum rfx_status pack_plain(const struct rfx_graph *graph, const struct rfx_node *node,
                                  void *packed, const struct rfx_pack_part *part,
                                  struct rfx_error *err) {
    if (part->index > 0) return RFX_OK;
    const struct rfx_weight *weight = &graph->weights[node->attr.constant.weight];
    return rfx_weight_read(weight, 0, node->out.elems, packed, err);
}

static enum rfx_status pack_map(const struct rfx_graph *graph, const struct rfx_node *node,
                                void *packed, const struct rfx_pack_part *part,
                                struct rfx_error *err) {
    const struct rfx_weight *weight = &graph->weights[node->attr.constant.weight];
    int64_t c = node->out.c, area = node->out.h * node->out.w;
    if (area == 1 || c == 1) return pack_plain(graph, node, packed, part, err);
    if (part->index > 0) return RFX_OK;
    float *out = packed;
    for (int64_t ch = 0; ch < c; ch++) {
        for (int64_t first = 0; first < area; first += CHUNK_ELEMS) {
            int64_t count = rfx_min_i64(CHUNK_ELEMS, area - first);
            enum rfx_status status =
                rfx_weight_read(weight, ch * area + first, count, part->temp, err);
            if (status != RFX_OK) return status;
            for (int64_t i = 0; i < count; i++) out[(first + i) * c + ch] = part->temp[i];
        }
    }
    return RFX_OK;
}

static void run(const struct rfx_run_args *args) {
    const struct rfx_tensor *t = &args->node->out;
    bool map = t->layout == RFX_LAYOUT_NHWC;
    struct rfx_rect r = map ? args->rect : rfx_rect_full(1, 1);
    const float *values = args->packed;
    size_t bytes = rfx_tensor_pixel_bytes(t, rfx_rect_cols(r));
    for (int64_t y = r.y0; y < r.y1; y++)
        memcpy(rfx_view_f32_at(&args->out, y, r.x0), values + (y * t->w + r.x0) * t->c, bytes);
}

const struct rfx_op_def rfx_op_input = {.name = "Input", .spatial = true, .infer = infer_input};
const struct rfx_op_def rfx_op_const_map = {.name = "Constant",
                                            .spatial = true,
                                            .infer = infer_map,
                                            .packed_bytes = packed_bytes,
                                            .pack = pack_map,
                                            .run = run};
const struct rfx_op_def rfx_op_const_plain = {.name = "Constant",
                                              .spatial = false,
                                              .infer = infer_plain,
                                              .packed_bytes = packed_bytes,
                                              .pack = pack_plain,
                                              .run = run};
