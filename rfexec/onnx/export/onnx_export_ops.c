/* The table of operators for the exporter. Adding one means adding its row here. */
#include "rfexec/onnx/export/onnx_export.h"

static bool always(const struct rfx_node *node) {
    (void)node;
    return true;
}

/* One output pixel is the mean of all, whatever the size. */
static bool unless_global(const struct rfx_node *node) {
    return node->attr.adaptive.oh != 1 || node->attr.adaptive.ow != 1;
}

/* Groups of channels are an axis of their own, beside sizes. */
static bool in_groups(const struct rfx_node *node) {
    return node->attr.softmax.group > 0;
}

static const struct rfx_export_row rows[] = {
    [RFX_OP_INPUT] = {NULL, NULL, false},
    [RFX_OP_CONST_MAP] = {rfx_export_constant, NULL, false},
    [RFX_OP_REPEAT] = {rfx_export_repeat, always, true},
    [RFX_OP_CONV] = {rfx_export_conv, NULL, false},
    [RFX_OP_CONV_TRANSPOSE] = {rfx_export_conv_transpose, NULL, false},
    [RFX_OP_POOL_MAX] = {rfx_export_pool_max, NULL, false},
    [RFX_OP_POOL_PLACE] = {rfx_export_pool_place, NULL, false},
    [RFX_OP_POOL_AVG] = {rfx_export_pool_avg, NULL, false},
    [RFX_OP_POOL_LP] = {rfx_export_pool_lp, NULL, false},
    [RFX_OP_POOL_ADAPTIVE_AVG] = {rfx_export_adaptive, unless_global, true},
    [RFX_OP_GLOBAL_POOL] = {rfx_export_global, NULL, true},
    [RFX_OP_MOMENTS] = {rfx_export_moments, NULL, true},
    [RFX_OP_NORMALISE] = {rfx_export_normalise, NULL, false},
    [RFX_OP_AFFINE] = {rfx_export_affine, NULL, false},
    [RFX_OP_ACTIVATION] = {rfx_export_activation, NULL, false},
    [RFX_OP_BINARY] = {rfx_export_binary, NULL, false},
    [RFX_OP_CONCAT] = {rfx_export_concat, NULL, false},
    [RFX_OP_CONVERT] = {rfx_export_convert, NULL, false},
    [RFX_OP_CHANNEL_SELECT] = {rfx_export_select, NULL, false},
    [RFX_OP_PAD] = {rfx_export_pad, NULL, false},
    [RFX_OP_CROP] = {rfx_export_crop, always, false},
    [RFX_OP_RESIZE] = {rfx_export_resize, always, false},
    [RFX_OP_GRID_SAMPLE] = {rfx_export_grid_sample, NULL, false},
    [RFX_OP_DEPTH_TO_SPACE] = {rfx_export_to_space, NULL, false},
    [RFX_OP_SPACE_TO_DEPTH] = {rfx_export_to_depth, NULL, false},
    [RFX_OP_LRN] = {rfx_export_lrn, NULL, false},
    [RFX_OP_SOFTMAX] = {rfx_export_softmax, in_groups, false},
    [RFX_OP_CHANNEL_REDUCE] = {rfx_export_channel_reduce, NULL, false},
    [RFX_OP_CHANNEL_NORM] = {rfx_export_channel_norm, NULL, false},
    [RFX_OP_TRIANGLE] = {rfx_export_triangle, NULL, false},
    [RFX_OP_RUNNING_SUM] = {rfx_export_running_sum, NULL, false},
    [RFX_OP_WINDOW_ATTENTION] = {rfx_export_window_attention, always, false},
    [RFX_OP_CONST_PLAIN] = {rfx_export_constant, NULL, false},
    [RFX_OP_TO_PLAIN] = {rfx_export_same, NULL, false},
    [RFX_OP_TO_NHWC] = {rfx_export_same, NULL, false},
    [RFX_OP_NHWC_AS_PLAIN] = {rfx_export_nhwc_as_plain, NULL, false},
    [RFX_OP_PLAIN_AS_NHWC] = {rfx_export_plain_as_nhwc, NULL, false},
    [RFX_OP_RESHAPE] = {rfx_export_reshape, always, false},
    [RFX_OP_TRANSPOSE] = {rfx_export_transpose, NULL, false},
    [RFX_OP_PLAIN_CONCAT] = {rfx_export_plain_concat, NULL, false},
    [RFX_OP_JOIN_MAPS] = {rfx_export_join_maps, always, false},
    [RFX_OP_PLAIN_SLICE] = {rfx_export_slice, always, false},
    [RFX_OP_PLAIN_GATHER] = {rfx_export_gather, always, false},
    [RFX_OP_TOP_K] = {rfx_export_top_k, NULL, true},
    [RFX_OP_PICK] = {rfx_export_pick, NULL, false},
    [RFX_OP_SCATTER] = {rfx_export_scatter, NULL, false},
    [RFX_OP_PLAIN_SOFTMAX] = {rfx_export_plain_softmax, NULL, false},
    [RFX_OP_PLAIN_BINARY] = {rfx_export_binary, NULL, false},
    [RFX_OP_REDUCE] = {rfx_export_reduce, NULL, false},
    [RFX_OP_GEMM] = {rfx_export_gemm, always, false},
    [RFX_OP_MATMUL] = {rfx_export_matmul, NULL, false},
    [RFX_OP_ATTENTION] = {rfx_export_attention, NULL, false},
};
_Static_assert(sizeof rows / sizeof rows[0] == RFX_OP_COUNT, "one row per op");

const struct rfx_export_row *rfx_export_row(enum rfx_op op) {
    return &rows[op];
}
