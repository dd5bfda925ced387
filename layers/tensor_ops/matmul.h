/* Code that batched matrix products share: shapes, and which matrices are multiplied. */
#ifndef RFX_LAYERS_OPS_MATMUL_H
#define RFX_LAYERS_OPS_MATMUL_H

#include "layers/graph/op.h"

/* Computes the shape of a x b into *out, with numpy's broadcasting. UNSUPPORTED, naming the node,
 * if the shapes do not fit. */
RFX_NODISCARD enum rfx_status rfx_matmul_shape(const struct rfx_node *node,
                                               const struct rfx_shape *a, const struct rfx_shape *b,
                                               struct rfx_shape *out, struct rfx_error *err);

/* Returns the number of matrices in a shape of at least two dimensions. */
static inline int64_t rfx_shape_matrices(const struct rfx_shape *shape) {
    int64_t n = 1;
    for (int i = 0; i < shape->rank - 2; i++) n *= shape->dims[i];
    return n;
}

/* Returns the index of the matrix of operand `s` that output matrix `index` is computed from. */
int64_t rfx_matmul_matrix(const struct rfx_shape *out, const struct rfx_shape *s, int64_t index);

#endif
