/* The table of ONNX operators, from which the table in docs/operators.md is written. A new operator
 * gets a row here. An activation that is not folded has its row in layers/graph/act.h instead. */
#include <stdio.h>
#include <string.h>

#include "rfexec/onnx/import/onnx_import.h"
#include "rfexec/onnx/import/onnx_ops.h"

#define ACT_FOLD(op) \
    { op, rfx_onnx_activation, rfx_onnx_fold_unary, RFX_ONNX_ROWS, "" }
#define BINARY(op) \
    { op, rfx_onnx_binary, rfx_onnx_fold_binary, RFX_ONNX_ROWS, "" }

static const struct rfx_onnx_op op_rows[] = {
    ACT_FOLD("Abs"),
    BINARY("Add"),
    {"AffineGrid", rfx_onnx_affine_grid, rfx_onnx_fold_affine_grid, RFX_ONNX_CONSTANT,
     "constant theta and size; two-dimensional"},
    BINARY("And"),
    {"ArgMax", rfx_onnx_arg, NULL, RFX_ONNX_ROWS,
     "over channels by rows, else whole; the result is a number"},
    {"ArgMin", rfx_onnx_arg, NULL, RFX_ONNX_ROWS, "as ArgMax"},
    {"Attention", rfx_onnx_attention, NULL, RFX_ONNX_WHOLE,
     "a few queries at a time, without the matrix of scores; no cache, causal mask, soft cap or "
     "shared heads"},
    {"AveragePool", rfx_onnx_pool, NULL, RFX_ONNX_ROWS, ""},
    {"BatchNormalization", rfx_onnx_batch_norm, NULL, RFX_ONNX_ROWS,
     "maps and tokens by rows, else whole; training mode works as InstanceNormalization"},
    {"Cast", rfx_onnx_cast, rfx_onnx_fold_cast, RFX_ONNX_ROWS,
     "a computed tensor can be cast to all floats (float32 is used), bool, and integers except "
     "uint32 and uint64"},
    {"CastLike", rfx_onnx_cast_like, rfx_onnx_fold_cast, RFX_ONNX_ROWS, "as Cast"},
    ACT_FOLD("Ceil"),
    {"CenterCropPad", rfx_onnx_center_crop_pad, NULL, RFX_ONNX_ROWS, "constant shape"},
    {"Clip", rfx_onnx_clip, rfx_onnx_fold_clip, RFX_ONNX_ROWS, "constant limits"},
    {"Col2Im", rfx_onnx_col2im, NULL, RFX_ONNX_ROWS,
     "constant shapes; two-dimensional; by rows if the blocks are the pixels of a map, else whole"},
    {"Concat", rfx_onnx_concat, rfx_onnx_fold_concat, RFX_ONNX_ROWS,
     "along channels, and circular padding of one map, by rows; else whole"},
    {"Constant", NULL, rfx_onnx_fold_constant, RFX_ONNX_CONSTANT, ""},
    {"ConstantOfShape", NULL, rfx_onnx_fold_constant_of_shape, RFX_ONNX_CONSTANT, ""},
    {"Conv", rfx_onnx_conv, NULL, RFX_ONNX_ROWS,
     "constant weights; one or two axes of space, or three if the kernel has size 1 along one of "
     "them"},
    {"ConvInteger", rfx_onnx_conv_integer, NULL, RFX_ONNX_ROWS,
     "constant weights of uint8 and int8; two axes of space"},
    {"ConvTranspose", rfx_onnx_conv_transpose, NULL, RFX_ONNX_ROWS, "as Conv"},
    {"CumSum", rfx_onnx_cum_sum, rfx_onnx_fold_cum_sum, RFX_ONNX_ROWS,
     "along channels and columns by rows, else whole"},
    {"DepthToSpace", rfx_onnx_depth, NULL, RFX_ONNX_ROWS, ""},
    {"DequantizeLinear", rfx_onnx_dequantise, rfx_onnx_fold_dequantise, RFX_ONNX_ROWS,
     "of bytes with one scale, as bytes; weights, also of 4 bits, are computed when the model is "
     "loaded; one scale, one per index of "
     "an axis, or one per whole block"},
    {"Div", rfx_onnx_div, rfx_onnx_fold_binary, RFX_ONNX_ROWS, ""},
    {"Dropout", rfx_onnx_dropout, rfx_onnx_dropout, RFX_ONNX_ROWS, "inference: does nothing"},
    {"DynamicQuantizeLinear", rfx_onnx_dynamic_quantise, NULL, RFX_ONNX_SUMS, ""},
    {"EfficientNMS_TRT", NULL, NULL, RFX_ONNX_LATE,
     "of TensorRT; all boxes take part, equal scores in their order"},
    {"Einsum", rfx_onnx_einsum, NULL, RFX_ONNX_ROWS,
     "one or two operands; as MatMul, Mul and ReduceSum; no diagonals"},
    BINARY("Equal"),
    {"Expand", rfx_onnx_expand, rfx_onnx_fold_expand, RFX_ONNX_ROWS, "constant shape"},
    {"Flatten", rfx_onnx_flatten, rfx_onnx_flatten, RFX_ONNX_WHOLE, ""},
    ACT_FOLD("Floor"),
    {"FusedConv", rfx_onnx_fused_conv, NULL, RFX_ONNX_ROWS,
     "of com.microsoft: Conv, addition of another map, activation"},
    {"Gather", rfx_onnx_gather, rfx_onnx_fold_gather, RFX_ONNX_ROWS,
     "constant indices along channels by rows; other axes and computed indices whole"},
    {"GatherElements", rfx_onnx_gather_elements, NULL, RFX_ONNX_WHOLE, ""},
    {"GatherND", rfx_onnx_gather_nd, NULL, RFX_ONNX_WHOLE, ""},
    {"Gelu", rfx_onnx_gelu, NULL, RFX_ONNX_ROWS, ""},
    {"Gemm", rfx_onnx_gemm, NULL, RFX_ONNX_WHOLE, "constant weights, transA = 0"},
    {"GlobalAveragePool", rfx_onnx_global_pool, NULL, RFX_ONNX_SUMS, ""},
    {"GlobalLpPool", rfx_onnx_global_lp_pool, NULL, RFX_ONNX_SUMS, "p = 1 to 64"},
    {"GlobalMaxPool", rfx_onnx_global_pool, NULL, RFX_ONNX_SUMS, ""},
    BINARY("Greater"),
    BINARY("GreaterOrEqual"),
    {"GridSample", rfx_onnx_grid_sample, NULL, RFX_ONNX_ROWS,
     "the grid by rows, the sampled map whole"},
    {"GroupNormalization", rfx_onnx_group_norm, NULL, RFX_ONNX_SUMS, ""},
    {"Hardmax", rfx_onnx_hardmax, NULL, RFX_ONNX_ROWS, "over channels by rows, else whole"},
    {"Identity", rfx_onnx_identity, rfx_onnx_identity, RFX_ONNX_ROWS, "does nothing"},
    {"InstanceNormalization", rfx_onnx_instance_norm, NULL, RFX_ONNX_SUMS, ""},
    {"IsInf", rfx_onnx_is_inf, NULL, RFX_ONNX_ROWS, ""},
    {"IsNaN", rfx_onnx_is_nan, NULL, RFX_ONNX_ROWS, ""},
    {"LRN", rfx_onnx_lrn, NULL, RFX_ONNX_ROWS, ""},
    {"LayerNormalization", rfx_onnx_layer_norm, NULL, RFX_ONNX_ROWS,
     "over channels by rows; over channels and space the map is taken in by rows; else whole"},
    BINARY("Less"),
    BINARY("LessOrEqual"),
    {"LogSoftmax", rfx_onnx_softmax, NULL, RFX_ONNX_ROWS, "over channels by rows, else whole"},
    {"LpNormalization", rfx_onnx_lp_norm, NULL, RFX_ONNX_ROWS, "over channels by rows, else whole"},
    {"LpPool", rfx_onnx_pool, NULL, RFX_ONNX_ROWS, "any p"},
    {"MatMul", rfx_onnx_matmul, NULL, RFX_ONNX_ROWS,
     "tokens, and maps with channels last, times constant weights by rows; else whole"},
    {"MatMulInteger", rfx_onnx_matmul_integer, NULL, RFX_ONNX_ROWS,
     "rows times a constant matrix of uint8 or int8, as MatMul"},
    {"Max", rfx_onnx_variadic, rfx_onnx_fold_variadic, RFX_ONNX_ROWS, ""},
    {"MaxPool", rfx_onnx_pool, NULL, RFX_ONNX_ROWS,
     "indices are numbers, of maps of up to 2^24 elements; MaxUnpool has no such limit"},
    {"MaxUnpool", rfx_onnx_max_unpool, NULL, RFX_ONNX_ROWS,
     "indices of a MaxPool whose strides equal its kernel, 2x2 to 4x4"},
    {"Mean", rfx_onnx_variadic, NULL, RFX_ONNX_ROWS, ""},
    {"MeanVarianceNormalization", rfx_onnx_mean_variance, NULL, RFX_ONNX_SUMS, "over all of space"},
    {"Min", rfx_onnx_variadic, rfx_onnx_fold_variadic, RFX_ONNX_ROWS, ""},
    {"Mish", rfx_onnx_mish, NULL, RFX_ONNX_ROWS, ""},
    {"Mod", rfx_onnx_mod, rfx_onnx_fold_binary, RFX_ONNX_ROWS, ""},
    BINARY("Mul"),
    ACT_FOLD("Neg"),
    {"NonZero", NULL, rfx_onnx_fold_non_zero, RFX_ONNX_CONSTANT, "else a late node"},
    {"Not", rfx_onnx_not, rfx_onnx_fold_unary, RFX_ONNX_ROWS, ""},
    {"OneHot", rfx_onnx_one_hot, NULL, RFX_ONNX_WHOLE, "constant depth"},
    BINARY("Or"),
    {"PRelu", rfx_onnx_prelu, NULL, RFX_ONNX_ROWS, "one slope, or one per channel"},
    {"Pad", rfx_onnx_pad, NULL, RFX_ONNX_ROWS,
     "constant pads; rows and columns of maps, and zeros beside channels, by rows; else whole"},
    BINARY("Pow"),
    {"QGemm", rfx_onnx_quantised_gemm, NULL, RFX_ONNX_WHOLE,
     "of com.microsoft: rows times a constant matrix, uint8 and int8; the result may be float32"},
    {"QLinearAdd", rfx_onnx_quantised_add, NULL, RFX_ONNX_ROWS, "of com.microsoft: uint8 and int8"},
    {"QLinearAveragePool", rfx_onnx_pool, NULL, RFX_ONNX_ROWS,
     "of com.microsoft: uint8 and int8; summed in float32"},
    {"QLinearConcat", rfx_onnx_quantised_concat, NULL, RFX_ONNX_ROWS,
     "of com.microsoft: uint8 and int8, along channels"},
    {"QLinearConv", rfx_onnx_quantised_conv, NULL, RFX_ONNX_ROWS,
     "uint8 and int8, constant weights; two axes of space"},
    {"QLinearGlobalAveragePool", rfx_onnx_quantised_mean, NULL, RFX_ONNX_SUMS,
     "of com.microsoft: uint8 and int8"},
    {"QLinearLeakyRelu", rfx_onnx_quantised_act, NULL, RFX_ONNX_ROWS,
     "of com.microsoft: uint8 and int8; computed in float32"},
    {"QLinearMatMul", rfx_onnx_quantised_matmul, NULL, RFX_ONNX_ROWS,
     "uint8 and int8: rows times a constant matrix, as MatMul"},
    {"QLinearMul", rfx_onnx_quantised_mul, NULL, RFX_ONNX_ROWS, "of com.microsoft: uint8 and int8"},
    {"QLinearSigmoid", rfx_onnx_quantised_act, NULL, RFX_ONNX_ROWS,
     "of com.microsoft: uint8 and int8; computed in float32"},
    {"QLinearSoftmax", rfx_onnx_quantised_softmax, NULL, RFX_ONNX_ROWS,
     "of com.microsoft: uint8 and int8"},
    {"QuantizeLinear", rfx_onnx_quantise, NULL, RFX_ONNX_ROWS,
     "to uint8, int8, uint16 and int16; 16 bits, and several scales, in float32"},
    {"RMSNormalization", rfx_onnx_rms_norm, NULL, RFX_ONNX_ROWS,
     "over channels in the last axis by rows, else whole"},
    {"Range", NULL, rfx_onnx_fold_range, RFX_ONNX_CONSTANT, ""},
    ACT_FOLD("Reciprocal"),
    {"ReduceL1", rfx_onnx_reduce, NULL, RFX_ONNX_SUMS,
     "over channels by rows; over one axis of space or others whole"},
    {"ReduceL2", rfx_onnx_reduce, NULL, RFX_ONNX_SUMS, "as ReduceL1"},
    {"ReduceLogSum", rfx_onnx_reduce_log, NULL, RFX_ONNX_SUMS, "as ReduceL1"},
    {"ReduceLogSumExp", rfx_onnx_reduce_log, NULL, RFX_ONNX_SUMS, "as ReduceL1"},
    {"ReduceMax", rfx_onnx_reduce, rfx_onnx_fold_reduce, RFX_ONNX_SUMS, "as ReduceL1"},
    {"ReduceMean", rfx_onnx_reduce, rfx_onnx_fold_reduce, RFX_ONNX_SUMS, "as ReduceL1"},
    {"ReduceMin", rfx_onnx_reduce, rfx_onnx_fold_reduce, RFX_ONNX_SUMS, "as ReduceL1"},
    {"ReduceProd", rfx_onnx_reduce, rfx_onnx_fold_reduce, RFX_ONNX_ROWS,
     "over channels by rows, else whole"},
    {"ReduceSum", rfx_onnx_reduce, rfx_onnx_fold_reduce, RFX_ONNX_SUMS, "as ReduceL1"},
    {"ReduceSumSquare", rfx_onnx_reduce, NULL, RFX_ONNX_SUMS, "as ReduceL1"},
    {"Reshape", rfx_onnx_reshape_op, rfx_onnx_reshape_op, RFX_ONNX_WHOLE,
     "no cost in channel and pixel shuffles, grouped norms, tokens and windows"},
    {"Resize", rfx_onnx_resize, NULL, RFX_ONNX_ROWS,
     "rows and columns; constant scales or sizes; no tf_crop_and_resize"},
    ACT_FOLD("Round"),
    {"Scatter", rfx_onnx_scatter_elements, NULL, RFX_ONNX_WHOLE, "as ScatterElements"},
    {"ScatterElements", rfx_onnx_scatter_elements, NULL, RFX_ONNX_WHOLE,
     "all reductions; the last of several updates at one place wins"},
    {"ScatterND", rfx_onnx_scatter_nd, rfx_onnx_fold_scatter_nd, RFX_ONNX_WHOLE,
     "as ScatterElements"},
    {"Selu", rfx_onnx_selu, NULL, RFX_ONNX_ROWS, ""},
    {"Shape", rfx_onnx_fold_shape, rfx_onnx_fold_shape, RFX_ONNX_CONSTANT,
     "also of computed tensors, whose sizes are known"},
    {"Shrink", rfx_onnx_shrink, NULL, RFX_ONNX_ROWS, ""},
    {"Size", rfx_onnx_fold_shape, rfx_onnx_fold_shape, RFX_ONNX_CONSTANT, "as Shape"},
    {"Slice", rfx_onnx_slice, rfx_onnx_fold_slice, RFX_ONNX_ROWS,
     "constant limits; a map is stored if its rows are reversed"},
    {"Softmax", rfx_onnx_softmax, NULL, RFX_ONNX_ROWS, "over channels by rows, else whole"},
    {"SpaceToDepth", rfx_onnx_depth, NULL, RFX_ONNX_ROWS, ""},
    {"Split", rfx_onnx_split, NULL, RFX_ONNX_ROWS,
     "along channels, rows and columns by rows, else whole"},
    ACT_FOLD("Sqrt"),
    {"Squeeze", rfx_onnx_squeeze, rfx_onnx_squeeze, RFX_ONNX_WHOLE, ""},
    BINARY("Sub"),
    {"Sum", rfx_onnx_variadic, rfx_onnx_fold_variadic, RFX_ONNX_ROWS, ""},
    {"Swish", rfx_onnx_swish, NULL, RFX_ONNX_ROWS, ""},
    {"Tile", rfx_onnx_tile, NULL, RFX_ONNX_ROWS, "along channels by rows, else whole"},
    {"TopK", rfx_onnx_top_k, NULL, RFX_ONNX_ROWS,
     "constant k; over channels by rows, else whole; of equal elements the first is taken, and a "
     "NaN is larger than all numbers"},
    {"Transpose", rfx_onnx_transpose, rfx_onnx_fold_transpose, RFX_ONNX_WHOLE,
     "no cost to channels last and back"},
    {"Trilu", rfx_onnx_trilu, rfx_onnx_fold_trilu, RFX_ONNX_ROWS, ""},
    {"Unsqueeze", rfx_onnx_unsqueeze, rfx_onnx_unsqueeze, RFX_ONNX_WHOLE, ""},
    {"Upsample", rfx_onnx_upsample, NULL, RFX_ONNX_ROWS, ""},
    {"Where", rfx_onnx_where, rfx_onnx_fold_where, RFX_ONNX_ROWS, ""},
    BINARY("Xor"),
};

static const struct rfx_onnx_op *find_row(const char *name) {
    for (size_t i = 0; i < sizeof op_rows / sizeof op_rows[0]; i++)
        if (strcmp(op_rows[i].name, name) == 0) return &op_rows[i];
    return NULL;
}

const struct rfx_onnx_op *rfx_onnx_op_find(const char *name) {
    static const struct rfx_onnx_op activation = {"", rfx_onnx_activation, NULL, RFX_ONNX_ROWS, ""};
    const struct rfx_onnx_op *row = find_row(name);
    return row != NULL || rfx_act_find(name) == RFX_ACT_COUNT ? row : &activation;
}

bool rfx_onnx_op_is_of(const char *name, const char *domain) {
    static const char *const names[] = {"FusedConv",        "QGemm",
                                        "QLinearAdd",       "QLinearAveragePool",
                                        "QLinearConcat",    "QLinearGlobalAveragePool",
                                        "QLinearLeakyRelu", "QLinearMul",
                                        "QLinearSigmoid",   "QLinearSoftmax"};
    bool plugin = strcmp(name, "EfficientNMS_TRT") == 0;
    if (plugin && (strcmp(domain, "TRT") == 0 || strcmp(domain, "TensorRT") == 0)) return true;
    return rfx_onnx_index_of(name, names, 10) >= 0 ? strcmp(domain, "com.microsoft") == 0
                                                   : rfx_onnx_is_own_domain(domain);
}

bool rfx_onnx_op_is_sized_by_values(const char *name) {
    static const char *const names[] = {"Compress", "EfficientNMS_TRT", "NonMaxSuppression",
                                        "NonZero", "Unique"};
    return rfx_onnx_index_of(name, names, 5) >= 0;
}

static void write_row(FILE *out, const char *name, const struct rfx_onnx_op *op) {
    static const char *const ways[] = {[RFX_ONNX_ROWS] = "by rows",
                                       [RFX_ONNX_SUMS] = "taken in by rows",
                                       [RFX_ONNX_WHOLE] = "whole",
                                       [RFX_ONNX_CONSTANT] = "",
                                       [RFX_ONNX_LATE] = "late"};
    fprintf(out, "| %s | %s | %s | %s |\n", name, ways[op->way], op->fold != NULL ? "yes" : "",
            op->note);
}

/* Writes the rows sorted by name. op_rows is sorted; the table of activations is not. */
void rfx_onnx_write_operators(FILE *out) {
    const size_t n = sizeof op_rows / sizeof op_rows[0];
    size_t next = 0;
    fputs("| operator | maps | constants | |\n|---|---|---|---|\n", out);
    for (const char *last = "";;) {
        const char *name = next < n ? op_rows[next].name : NULL;
        for (int kind = 0; kind < RFX_ACT_COUNT; kind++) { /* the next name after `last` */
            const struct rfx_act_def *act = rfx_act_def((enum rfx_act_kind)kind);
            bool listed = (act->traits & RFX_ACT_HAS_OWN_FORM) == 0 && find_row(act->onnx) == NULL;
            bool before = name == NULL || strcmp(act->onnx, name) < 0;
            if (listed && before && strcmp(act->onnx, last) > 0) name = act->onnx;
        }
        if (name == NULL) return;
        write_row(out, name, rfx_onnx_op_find(name));
        if (next < n && strcmp(name, op_rows[next].name) == 0) next++;
        last = name;
    }
}
