/* What the evaluation of operators on constants shares (onnx_fold.c; onnx_fold_shape.c uses it). */
#ifndef RFX_RFEXEC_ONNX_IMPORT_ONNX_FOLD_H
#define RFX_RFEXEC_ONNX_IMPORT_ONNX_FOLD_H

#include "rfexec/onnx/import/onnx_import.h"

/* Binds output k of the current node. */
RFX_NODISCARD enum rfx_status rfx_onnx_set_const(struct rfx_onnx_import *ctx, size_t k,
                                                 struct rfx_onnx_const *c);

/* Why there is no new constant: OUT_OF_MEMORY, or UNSUPPORTED for an impossible size. */
enum rfx_status rfx_onnx_fold_too_large(struct rfx_onnx_import *ctx);

/* Whether the current node's operator has that name. */
bool rfx_onnx_op_is(const struct rfx_onnx_import *ctx, const char *op);

/* A float of that element type. */
double rfx_onnx_round_to(int32_t type, double value);

/* A double as int64, saturating; NaN is 0. */
int64_t rfx_onnx_to_int(double value);

/* Room for a result, or (filled) for its one value; NULL: see rfx_onnx_fold_too_large. */
struct rfx_onnx_const *rfx_onnx_new_result(struct rfx_onnx_import *ctx, int32_t type,
                                           const struct rfx_shape *shape, bool filled);

/* Whether all elements are the same because one is all that there is. */
bool rfx_onnx_const_is_single(const struct rfx_onnx_const *c);

/* Broadcast shape of two; false when they do not fit. */
bool rfx_onnx_broadcast(const struct rfx_shape *a, const struct rfx_shape *b,
                        struct rfx_shape *out);

/* Index into a tensor of shape `in` of element `flat` of the broadcast shape `out`. */
int64_t rfx_onnx_broadcast_index(const struct rfx_shape *in, const struct rfx_shape *out,
                                 int64_t flat);
#endif
