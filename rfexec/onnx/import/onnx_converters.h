/* What converts the current node, operator by operator, as the table of operators calls it
 * (onnx_ops.c). Part of onnx_import.h. */
#ifndef RFX_RFEXEC_ONNX_IMPORT_ONNX_CONVERTERS_H
#define RFX_RFEXEC_ONNX_IMPORT_ONNX_CONVERTERS_H

#include "layers/core/status.h"

struct rfx_onnx_import;

#define RFX_ONNX_CONVERT(name) enum rfx_status name(struct rfx_onnx_import *ctx)
RFX_ONNX_CONVERT(rfx_onnx_fold_cast);
RFX_ONNX_CONVERT(rfx_onnx_fold_slice);
RFX_ONNX_CONVERT(rfx_onnx_conv);
RFX_ONNX_CONVERT(rfx_onnx_fused_conv);
RFX_ONNX_CONVERT(rfx_onnx_conv_transpose);
RFX_ONNX_CONVERT(rfx_onnx_pool);
RFX_ONNX_CONVERT(rfx_onnx_global_pool);
RFX_ONNX_CONVERT(rfx_onnx_global_lp_pool);
RFX_ONNX_CONVERT(rfx_onnx_batch_norm);
RFX_ONNX_CONVERT(rfx_onnx_gemm);
RFX_ONNX_CONVERT(rfx_onnx_matmul);
RFX_ONNX_CONVERT(rfx_onnx_attention);
RFX_ONNX_CONVERT(rfx_onnx_einsum);
RFX_ONNX_CONVERT(rfx_onnx_lrn);
RFX_ONNX_CONVERT(rfx_onnx_layer_norm);
RFX_ONNX_CONVERT(rfx_onnx_rms_norm);
RFX_ONNX_CONVERT(rfx_onnx_lp_norm);
RFX_ONNX_CONVERT(rfx_onnx_instance_norm);
RFX_ONNX_CONVERT(rfx_onnx_group_norm);
RFX_ONNX_CONVERT(rfx_onnx_mean_variance);
RFX_ONNX_CONVERT(rfx_onnx_reduce);
RFX_ONNX_CONVERT(rfx_onnx_reduce_log);
RFX_ONNX_CONVERT(rfx_onnx_arg);
RFX_ONNX_CONVERT(rfx_onnx_grid_sample);
RFX_ONNX_CONVERT(rfx_onnx_mod);
RFX_ONNX_CONVERT(rfx_onnx_cast_like);
RFX_ONNX_CONVERT(rfx_onnx_softmax);
RFX_ONNX_CONVERT(rfx_onnx_hardmax);
RFX_ONNX_CONVERT(rfx_onnx_activation);
RFX_ONNX_CONVERT(rfx_onnx_clip);
RFX_ONNX_CONVERT(rfx_onnx_prelu);
RFX_ONNX_CONVERT(rfx_onnx_swish);
RFX_ONNX_CONVERT(rfx_onnx_gelu);
RFX_ONNX_CONVERT(rfx_onnx_selu);
RFX_ONNX_CONVERT(rfx_onnx_shrink);
RFX_ONNX_CONVERT(rfx_onnx_not);
RFX_ONNX_CONVERT(rfx_onnx_is_nan);
RFX_ONNX_CONVERT(rfx_onnx_is_inf);
RFX_ONNX_CONVERT(rfx_onnx_where);
RFX_ONNX_CONVERT(rfx_onnx_tile);
RFX_ONNX_CONVERT(rfx_onnx_trilu);
RFX_ONNX_CONVERT(rfx_onnx_max_unpool);
RFX_ONNX_CONVERT(rfx_onnx_cum_sum);
RFX_ONNX_CONVERT(rfx_onnx_dropout);
RFX_ONNX_CONVERT(rfx_onnx_mish);
RFX_ONNX_CONVERT(rfx_onnx_binary);
RFX_ONNX_CONVERT(rfx_onnx_variadic);
RFX_ONNX_CONVERT(rfx_onnx_identity);
RFX_ONNX_CONVERT(rfx_onnx_cast);
RFX_ONNX_CONVERT(rfx_onnx_concat);
RFX_ONNX_CONVERT(rfx_onnx_flatten);
RFX_ONNX_CONVERT(rfx_onnx_reshape_op);
RFX_ONNX_CONVERT(rfx_onnx_squeeze);
RFX_ONNX_CONVERT(rfx_onnx_unsqueeze);
RFX_ONNX_CONVERT(rfx_onnx_transpose);
RFX_ONNX_CONVERT(rfx_onnx_slice);
RFX_ONNX_CONVERT(rfx_onnx_split);
RFX_ONNX_CONVERT(rfx_onnx_gather);
RFX_ONNX_CONVERT(rfx_onnx_gather_computed); /* Gather where computed indices say */
RFX_ONNX_CONVERT(rfx_onnx_gather_elements);
RFX_ONNX_CONVERT(rfx_onnx_gather_nd);
RFX_ONNX_CONVERT(rfx_onnx_scatter_elements);
RFX_ONNX_CONVERT(rfx_onnx_scatter_nd);
RFX_ONNX_CONVERT(rfx_onnx_one_hot);
RFX_ONNX_CONVERT(rfx_onnx_top_k);
RFX_ONNX_CONVERT(rfx_onnx_div);
RFX_ONNX_CONVERT(rfx_onnx_dropout);
RFX_ONNX_CONVERT(rfx_onnx_expand);
RFX_ONNX_CONVERT(rfx_onnx_pad);
RFX_ONNX_CONVERT(rfx_onnx_center_crop_pad);
RFX_ONNX_CONVERT(rfx_onnx_resize);
RFX_ONNX_CONVERT(rfx_onnx_affine_grid);
RFX_ONNX_CONVERT(rfx_onnx_fold_affine_grid);
RFX_ONNX_CONVERT(rfx_onnx_col2im);
RFX_ONNX_CONVERT(rfx_onnx_dequantise);
RFX_ONNX_CONVERT(rfx_onnx_fold_dequantise);
RFX_ONNX_CONVERT(rfx_onnx_upsample);
RFX_ONNX_CONVERT(rfx_onnx_depth);
#endif
