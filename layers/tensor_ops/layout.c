/* Changes of layout and shape: TO_PLAIN, TO_NHWC, NHWC_AS_PLAIN, PLAIN_AS_NHWC, RESHAPE. */
#include <string.h>

#include "layers/core/checked.h"
#include "layers/graph/infer.h"

#define PIXEL_BLOCK 16

static enum rfx_status infer_to_plain(const struct rfx_graph *graph, struct rfx_node *node,
                                      struct rfx_error *err) {
    enum rfx_status status = rfx_infer_inputs(graph, node, 1, RFX_LAYOUT_NHWC, err);
    if (status != RFX_OK) return status;
    return rfx_infer_set_plain(node, &rfx_infer_in(graph, node, 0)->shape, err);
}

static enum rfx_status infer_as_plain(const struct rfx_graph *graph, struct rfx_node *node,
                                      struct rfx_error *err) {
    enum rfx_status status = rfx_infer_inputs(graph, node, 1, RFX_LAYOUT_NHWC, err);
    if (status != RFX_OK) return status;
    const struct rfx_tensor *in = rfx_infer_in(graph, node, 0);
    const struct rfx_shape shape = {4, {1, in->h, in->w, in->c}};
    return rfx_infer_set_plain(node, &shape, err);
}

static enum rfx_status plain_rank4(const struct rfx_graph *graph, const struct rfx_node *node,
                                   struct rfx_error *err) {
    enum rfx_status status = rfx_infer_inputs(graph, node, 1, RFX_LAYOUT_PLAIN, err);
    if (status != RFX_OK) return status;
    const struct rfx_shape *in = &rfx_infer_in(graph, node, 0)->shape;
    if (in->rank != 4 || in->dims[0] != 1)
        return rfx_infer_refuse(node, err, "a map has rank 4 and n = 1, not rank %d, n = %lld",
                                in->rank, in->rank > 0 ? (long long)in->dims[0] : 0LL);
    return RFX_OK;
}

static enum rfx_status infer_to_nhwc(const struct rfx_graph *graph, struct rfx_node *node,
                                     struct rfx_error *err) {
    enum rfx_status status = plain_rank4(graph, node, err);
    if (status != RFX_OK) return status;
    const int64_t *dims = rfx_infer_in(graph, node, 0)->shape.dims;
    return rfx_infer_set_map(node, dims[1], dims[2], dims[3], err);
}

static enum rfx_status infer_as_nhwc(const struct rfx_graph *graph, struct rfx_node *node,
                                     struct rfx_error *err) {
    enum rfx_status status = plain_rank4(graph, node, err);
    if (status != RFX_OK) return status;
    const int64_t *dims = rfx_infer_in(graph, node, 0)->shape.dims;
    return rfx_infer_set_map(node, dims[3], dims[1], dims[2], err);
}

static enum rfx_status infer_reshape(const struct rfx_graph *graph, struct rfx_node *node,
                                     struct rfx_error *err) {
    enum rfx_status status = rfx_infer_inputs(graph, node, 1, RFX_LAYOUT_PLAIN, err);
    if (status == RFX_OK) status = rfx_infer_set_plain(node, &node->attr.reshape.shape, err);
    if (status != RFX_OK) return status;
    int64_t elems = rfx_infer_in(graph, node, 0)->elems;
    if (elems != node->out.elems)
        return rfx_fail(err, RFX_STATUS_MALFORMED,
                        "Reshape '%s': %lld elements into a shape of %lld", node->name,
                        (long long)elems, (long long)node->out.elems);
    return RFX_OK;
}

/* Defines functions that copy one row of a map to or from the planes of an NCHW tensor; `plane`
 * points at the row in plane 0. */
#define COPY_ROW(suffix, element)                                                                \
    static void row_to_planes_##suffix(const element *row, element *plane, int64_t w, int64_t c, \
                                       int64_t area) {                                           \
        for (int64_t x = 0; x < w; x += PIXEL_BLOCK) {                                           \
            int64_t end = rfx_min_i64(x + PIXEL_BLOCK, w);                                       \
            for (int64_t ch = 0; ch < c; ch++)                                                   \
                for (int64_t i = x; i < end; i++) plane[ch * area + i] = row[i * c + ch];        \
        }                                                                                        \
    }                                                                                            \
    static void planes_to_row_##suffix(const element *plane, element *row, int64_t w, int64_t c, \
                                       int64_t area) {                                           \
        for (int64_t x = 0; x < w; x += PIXEL_BLOCK) {                                           \
            int64_t end = rfx_min_i64(x + PIXEL_BLOCK, w);                                       \
            for (int64_t ch = 0; ch < c; ch++)                                                   \
                for (int64_t i = x; i < end; i++) row[i * c + ch] = plane[ch * area + i];        \
        }                                                                                        \
    }
COPY_ROW(float, float)
COPY_ROW(byte, uint8_t)

static void run_to_plain(const struct rfx_run_args *args) {
    const struct rfx_tensor *in = &args->graph->nodes[args->node->in[0]].out;
    bool bytes = in->type != RFX_TYPE_FLOAT32;
    for (int64_t y = 0; y < in->h; y++) {
        const void *row = rfx_view_at(&args->in[0], y, 0);
        if (bytes)
            row_to_planes_byte(row, (uint8_t *)args->out.data + y * in->w, in->w, in->c,
                               in->h * in->w);
        else
            row_to_planes_float(row, (float *)args->out.data + y * in->w, in->w, in->c,
                                in->h * in->w);
    }
}

static void run_to_nhwc(const struct rfx_run_args *args) {
    const struct rfx_tensor *out = &args->node->out;
    bool bytes = out->type != RFX_TYPE_FLOAT32;
    for (int64_t y = 0; y < out->h; y++) {
        void *row = rfx_view_at(&args->out, y, 0);
        if (bytes)
            planes_to_row_byte((const uint8_t *)args->in[0].data + y * out->w, row, out->w, out->c,
                               out->h * out->w);
        else
            planes_to_row_float((const float *)args->in[0].data + y * out->w, row, out->w, out->c,
                                out->h * out->w);
    }
}

static void run_as_plain(const struct rfx_run_args *args) {
    const struct rfx_tensor *in = &args->graph->nodes[args->node->in[0]].out;
    size_t row_bytes = rfx_tensor_pixel_bytes(in, in->w);
    for (int64_t y = 0; y < in->h; y++)
        memmove((char *)args->out.data + (size_t)y * row_bytes, rfx_view_at(&args->in[0], y, 0),
                row_bytes);
}

static void run_as_nhwc(const struct rfx_run_args *args) {
    const struct rfx_tensor *out = &args->node->out;
    size_t row_bytes = rfx_tensor_pixel_bytes(out, out->w);
    for (int64_t y = 0; y < out->h; y++)
        memmove(rfx_view_at(&args->out, y, 0), (char *)args->in[0].data + (size_t)y * row_bytes,
                row_bytes);
}

static void run_reshape(const struct rfx_run_args *args) {
    memmove(args->out.data, args->in[0].data, rfx_tensor_bytes(&args->node->out));
}

/* Returns true for input 0: the output has the same bytes with another shape. */
static bool same_bytes(const struct rfx_graph *graph, const struct rfx_node *node, int k) {
    (void)graph;
    (void)node;
    return k == 0;
}

const struct rfx_op_def rfx_op_to_plain = {.name = "ToPlain",
                                           .spatial = false,
                                           .types = RFX_TYPES_FLOATS_AND_BYTES,
                                           .keeps_type = true,
                                           .infer = infer_to_plain,
                                           .run = run_to_plain};
const struct rfx_op_def rfx_op_to_nhwc = {.name = "ToMap",
                                          .spatial = false,
                                          .types = RFX_TYPES_FLOATS_AND_BYTES,
                                          .keeps_type = true,
                                          .infer = infer_to_nhwc,
                                          .run = run_to_nhwc};
const struct rfx_op_def rfx_op_nhwc_as_plain = {
    .name = "MapAsPlain",
    .view = true,
    .types = RFX_TYPES_FLOATS_AND_BYTES,
    .keeps_type = true,
    .infer = infer_as_plain,
    .in_place = same_bytes,
    .run = run_as_plain,
};
const struct rfx_op_def rfx_op_plain_as_nhwc = {
    .name = "PlainAsMap",
    .view = true,
    .types = RFX_TYPES_FLOATS_AND_BYTES,
    .keeps_type = true,
    .infer = infer_as_nhwc,
    .in_place = same_bytes,
    .run = run_as_nhwc,
};
const struct rfx_op_def rfx_op_reshape = {
    .name = "Reshape",
    .view = true,
    .types = RFX_TYPES_FLOATS_AND_BYTES,
    .keeps_type = true,
    .infer = infer_reshape,
    .in_place = same_bytes,
    .run = run_reshape,
};
