/* What the evaluation of operators on constants shares. */
#ifndef RFX_RFEXEC_ONNX_IMPORT_ONNX_FOLD_H
#define RFX_RFEXEC_ONNX_IMPORT_ONNX_FOLD_H

#include "rfexec/onnx/import/onnx_import.h"

/* Binds output k of the current node. */
RFX_NODISCARD enum rfx_status rfx_onnx_set_const(struct rfx_onnx_import *ctx, size_t k,
                                                 struct rfx_onnx_const *c);

/* Why there is no new constant: OUT_OF_MEMORY, or UNSUPPORTED for one that is too large. */
enum rfx_status rfx_onnx_fold_too_large(struct rfx_onnx_import *ctx);

/* Whether the current node's operator has that name. */
bool rfx_onnx_op_is(const struct rfx_onnx_import *ctx, const char *op);

/* Whether the current node's results are booleans: a comparison, or logic. */
bool rfx_onnx_gives_bool(const struct rfx_onnx_import *ctx);

/* A float of that element type. */
double rfx_onnx_round_to(int32_t type, double value);

/* A double as int64, saturating; NaN is 0. */
int64_t rfx_onnx_to_int(double value);

/* Room for a result, or (filled) for its one value; NULL: see rfx_onnx_fold_too_large. */
struct rfx_onnx_const *rfx_onnx_new_result(struct rfx_onnx_import *ctx, int32_t type,
                                           const struct rfx_shape *shape, bool filled);

/* A constant's numbers, as reals or as integers; out[i] = in[index], for either
 * (onnx_fold_shape.c). */
RFX_NODISCARD enum rfx_status rfx_onnx_numbers(struct rfx_onnx_import *ctx,
                                               struct rfx_onnx_const *c, const double **reals,
                                               const int64_t **ints);
void rfx_onnx_copy_elem(struct rfx_onnx_const *out, int64_t i, const double *reals,
                        const int64_t *ints, int64_t index);

/* Whether all elements are the same because one is all that there is. */
bool rfx_onnx_const_is_single(const struct rfx_onnx_const *c);

/* Broadcast shape of two; false when they do not fit. */
bool rfx_onnx_broadcast(const struct rfx_shape *a, const struct rfx_shape *b,
                        struct rfx_shape *out);

/* Index into a tensor of shape `in` of element `flat` of the broadcast shape `out`. */
int64_t rfx_onnx_broadcast_index(const struct rfx_shape *in, const struct rfx_shape *out,
                                 int64_t flat);

/* The k of the current Trilu, and the axis of the current CumSum of a tensor of that rank
 * (onnx_import_axes.c). */
RFX_NODISCARD enum rfx_status rfx_onnx_diagonal(struct rfx_onnx_import *ctx, int64_t *k);
RFX_NODISCARD enum rfx_status rfx_onnx_sum_axis(struct rfx_onnx_import *ctx, int rank, int *axis);

RFX_ONNX_CONVERT(rfx_onnx_fold_unary);
RFX_ONNX_CONVERT(rfx_onnx_fold_binary);
RFX_ONNX_CONVERT(rfx_onnx_fold_variadic);
RFX_ONNX_CONVERT(rfx_onnx_fold_clip);
RFX_ONNX_CONVERT(rfx_onnx_fold_shape);
RFX_ONNX_CONVERT(rfx_onnx_fold_constant);
RFX_ONNX_CONVERT(rfx_onnx_fold_constant_of_shape);
RFX_ONNX_CONVERT(rfx_onnx_fold_range);
RFX_ONNX_CONVERT(rfx_onnx_fold_where);
RFX_ONNX_CONVERT(rfx_onnx_fold_scatter_nd);
RFX_ONNX_CONVERT(rfx_onnx_fold_gather);
RFX_ONNX_CONVERT(rfx_onnx_fold_concat);
RFX_ONNX_CONVERT(rfx_onnx_fold_expand);
RFX_ONNX_CONVERT(rfx_onnx_fold_transpose);
RFX_ONNX_CONVERT(rfx_onnx_fold_reduce);
RFX_ONNX_CONVERT(rfx_onnx_fold_trilu);
RFX_ONNX_CONVERT(rfx_onnx_fold_cum_sum);
RFX_ONNX_CONVERT(rfx_onnx_fold_non_zero);
#endif
