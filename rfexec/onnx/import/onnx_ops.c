/* The table of ONNX operators. Adding one means adding its row here; functions of one element that
 * are not evaluated on constants have theirs in layers/graph/act.h. */
#include <string.h>

#include "rfexec/onnx/import/onnx_import.h"

#define ACT_FOLD(op) \
    { op, rfx_onnx_activation, rfx_onnx_fold_unary }
#define BINARY(op) \
    { op, rfx_onnx_binary, rfx_onnx_fold_binary }
#define REDUCE(op) \
    { op, rfx_onnx_reduce, rfx_onnx_fold_reduce }

static const struct rfx_onnx_op op_rows[] = {
    ACT_FOLD("Abs"),
    BINARY("Add"),
    BINARY("And"),
    {"Attention", rfx_onnx_attention, NULL},
    {"AveragePool", rfx_onnx_pool, NULL},
    {"BatchNormalization", rfx_onnx_batch_norm, NULL},
    {"Cast", rfx_onnx_cast, rfx_onnx_fold_cast},
    ACT_FOLD("Ceil"),
    {"Clip", rfx_onnx_clip, NULL},
    {"Concat", rfx_onnx_concat, rfx_onnx_fold_concat},
    {"Constant", NULL, rfx_onnx_fold_constant},
    {"ConstantOfShape", NULL, rfx_onnx_fold_constant_of_shape},
    {"Conv", rfx_onnx_conv, NULL},
    {"ConvTranspose", rfx_onnx_conv_transpose, NULL},
    {"DepthToSpace", rfx_onnx_depth, NULL},
    BINARY("Div"),
    {"Dropout", rfx_onnx_identity, rfx_onnx_identity},
    BINARY("Equal"),
    ACT_FOLD("Exp"),
    {"Expand", rfx_onnx_expand, rfx_onnx_fold_expand},
    {"Flatten", rfx_onnx_flatten, rfx_onnx_flatten},
    ACT_FOLD("Floor"),
    {"Gather", rfx_onnx_gather, rfx_onnx_fold_gather},
    {"Gelu", rfx_onnx_gelu, NULL},
    {"Gemm", rfx_onnx_gemm, NULL},
    {"GlobalAveragePool", rfx_onnx_global_pool, NULL},
    {"GlobalMaxPool", rfx_onnx_global_pool, NULL},
    BINARY("Greater"),
    BINARY("GreaterOrEqual"),
    {"GroupNormalization", rfx_onnx_group_norm, NULL},
    {"Identity", rfx_onnx_identity, rfx_onnx_identity},
    {"InstanceNormalization", rfx_onnx_instance_norm, NULL},
    {"IsInf", rfx_onnx_is_inf, NULL},
    {"IsNaN", rfx_onnx_is_nan, NULL},
    {"LRN", rfx_onnx_lrn, NULL},
    {"LayerNormalization", rfx_onnx_layer_norm, NULL},
    BINARY("Less"),
    BINARY("LessOrEqual"),
    ACT_FOLD("Log"),
    {"LogSoftmax", rfx_onnx_softmax, NULL},
    {"LpNormalization", rfx_onnx_lp_norm, NULL},
    {"LpPool", rfx_onnx_pool, NULL},
    {"MatMul", rfx_onnx_matmul, NULL},
    {"Max", rfx_onnx_variadic, rfx_onnx_fold_binary},
    {"MaxPool", rfx_onnx_pool, NULL},
    {"Mean", rfx_onnx_variadic, NULL},
    {"MeanVarianceNormalization", rfx_onnx_mean_variance, NULL},
    {"Min", rfx_onnx_variadic, rfx_onnx_fold_binary},
    {"Mish", rfx_onnx_mish, NULL},
    BINARY("Mod"),
    BINARY("Mul"),
    ACT_FOLD("Neg"),
    {"Not", rfx_onnx_not, rfx_onnx_fold_unary},
    BINARY("Or"),
    {"PRelu", rfx_onnx_prelu, NULL},
    {"Pad", rfx_onnx_pad, NULL},
    BINARY("Pow"),
    {"RMSNormalization", rfx_onnx_rms_norm, NULL},
    {"Range", NULL, rfx_onnx_fold_range},
    ACT_FOLD("Reciprocal"),
    {"ReduceL1", rfx_onnx_reduce, NULL},
    {"ReduceL2", rfx_onnx_reduce, NULL},
    REDUCE("ReduceMax"),
    REDUCE("ReduceMean"),
    REDUCE("ReduceMin"),
    {"ReduceProd", NULL, rfx_onnx_fold_reduce},
    REDUCE("ReduceSum"),
    {"ReduceSumSquare", rfx_onnx_reduce, NULL},
    {"Reshape", rfx_onnx_reshape_op, rfx_onnx_reshape_op},
    {"Resize", rfx_onnx_resize, NULL},
    ACT_FOLD("Round"),
    {"Selu", rfx_onnx_selu, NULL},
    {"Shape", rfx_onnx_fold_shape, rfx_onnx_fold_shape},
    {"Shrink", rfx_onnx_shrink, NULL},
    {"Size", rfx_onnx_fold_shape, rfx_onnx_fold_shape},
    {"Slice", rfx_onnx_slice, rfx_onnx_fold_slice},
    {"Softmax", rfx_onnx_softmax, NULL},
    {"SpaceToDepth", rfx_onnx_depth, NULL},
    {"Split", rfx_onnx_split, NULL},
    ACT_FOLD("Sqrt"),
    {"Squeeze", rfx_onnx_squeeze, rfx_onnx_squeeze},
    BINARY("Sub"),
    {"Sum", rfx_onnx_variadic, NULL},
    {"Swish", rfx_onnx_swish, NULL},
    {"Tile", rfx_onnx_tile, NULL},
    {"Transpose", rfx_onnx_transpose, rfx_onnx_fold_transpose},
    {"Unsqueeze", rfx_onnx_unsqueeze, rfx_onnx_unsqueeze},
    {"Upsample", rfx_onnx_upsample, NULL},
    {"Where", rfx_onnx_where, rfx_onnx_fold_where},
    BINARY("Xor"),
};

const struct rfx_onnx_op *rfx_onnx_op_find(const char *name) {
    for (size_t i = 0; i < sizeof op_rows / sizeof op_rows[0]; i++)
        if (strcmp(op_rows[i].name, name) == 0) return &op_rows[i];
    static const struct rfx_onnx_op activation = {"", rfx_onnx_activation, NULL};
    return rfx_act_find(name) != RFX_ACT_COUNT ? &activation : NULL;
}
