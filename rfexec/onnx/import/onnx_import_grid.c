/* Conversion of GridSample: a map, sampled where another tensor (1, rows, columns, 2) says. */
#include <string.h>

#include "rfexec/onnx/import/onnx_import.h"

static int index_of(const char *text, const char *const *texts, int count) {
    for (int i = 0; i < count; i++)
        if (strcmp(text, texts[i]) == 0) return i;
    return -1;
}

/* "bilinear" and "bicubic" until opset 19. */
static enum rfx_status read_attributes(struct rfx_onnx_import *ctx, struct rfx_node *node) {
    static const char *const modes[] = {"nearest", "linear",   "cubic",
                                        "nearest", "bilinear", "bicubic"};
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    const char *mode = rfx_onnx_attr_string(ctx, "mode", "linear");
    const char *padding = rfx_onnx_attr_string(ctx, "padding_mode", "zeros");
    int m = index_of(mode, modes, 6), p = index_of(padding, paddings, 3);
    if (m < 0) return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "mode %.40s", mode);
    if (p < 0) return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "padding_mode %.40s", padding);
    node->attr.grid.mode = (enum rfx_resize_mode)(m % 3);
    node->attr.grid.padding = (enum rfx_grid_padding)p;
    node->attr.grid.align_corners = rfx_onnx_attr_int(ctx, "align_corners", 0) != 0;
    return RFX_OK;
}

/* A constant of pixels as a map: its values are read channel by channel. */
static enum rfx_status constant_grid(struct rfx_onnx_import *ctx, const struct rfx_onnx_const *grid,
                                     int *out) {
    int64_t h = grid->shape.dims[1], w = grid->shape.dims[2];
    const struct rfx_shape pixels = {2, {h * w, 2}};
    struct rfx_onnx_const *view = rfx_onnx_const_view(ctx, grid, &pixels);
    struct rfx_node node = {.op = RFX_OP_CONST_MAP};
    if (view == NULL)
        return rfx_onnx_refuse(ctx, RFX_STATUS_OUT_OF_MEMORY, "no memory for a constant");
    node.attr.constant.shape = (struct rfx_shape){4, {1, 2, h, w}};
    enum rfx_status status =
        rfx_onnx_const_weight_transposed(ctx, view, &node.attr.constant.weight);
    return status == RFX_OK ? rfx_onnx_emit(ctx, &node, "/grid", NULL, 0, out) : status;
}

/* A tensor (1, h, w, 2) as a map of two channels. */
static enum rfx_status grid_map(struct rfx_onnx_import *ctx, size_t k, int *out) {
    struct rfx_onnx_operand x = rfx_onnx_in(ctx, k);
    if (x.node < 0 && x.constant == NULL)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "input %zu is missing", k);
    const struct rfx_shape *shape = rfx_onnx_shape(ctx, x);
    if (shape->rank != 4 || shape->dims[0] != 1 || shape->dims[3] != 2)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                               "a grid that is not (1, rows, columns, 2)");
    if (x.constant != NULL) return constant_grid(ctx, x.constant, out);
    *out = rfx_onnx_map_behind(ctx, x.node);
    if (*out >= 0) return RFX_OK;
    struct rfx_node view = {.op = RFX_OP_PLAIN_AS_NHWC};
    int plain;
    enum rfx_status status = rfx_onnx_plain(ctx, x, &plain);
    return status == RFX_OK ? rfx_onnx_emit(ctx, &view, "/grid", &plain, 1, out) : status;
}

enum rfx_status rfx_onnx_grid_sample(struct rfx_onnx_import *ctx) {
    struct rfx_node node = {.op = RFX_OP_GRID_SAMPLE};
    int in[2], out;
    enum rfx_status status = rfx_onnx_map(ctx, rfx_onnx_in(ctx, 0), &in[0]);
    if (status == RFX_OK) status = grid_map(ctx, 1, &in[1]);
    if (status == RFX_OK) status = read_attributes(ctx, &node);
    if (status == RFX_OK) status = rfx_onnx_emit(ctx, &node, "", in, 2, &out);
    return status == RFX_OK ? rfx_onnx_set_node(ctx, out) : status;
}
