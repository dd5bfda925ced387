/* What products of batches of matrices share: shapes, and which matrices belong together. */
#ifndef RFX_LAYERS_OPS_MATMUL_H
#define RFX_LAYERS_OPS_MATMUL_H

#include "layers/graph/op.h"

/* The shape of a x b, with numpy's broadcasting; refuses with the node's name. */
RFX_NODISCARD enum rfx_status rfx_matmul_shape(const struct rfx_node *node,
                                               const struct rfx_shape *a, const struct rfx_shape *b,
                                               struct rfx_shape *out, struct rfx_error *err);

/* Number of matrices of a shape of at least two dimensions. */
static inline int64_t rfx_shape_matrices(const struct rfx_shape *shape) {
    int64_t n = 1;
    for (int i = 0; i < shape->rank - 2; i++) n *= shape->dims[i];
    return n;
}

/* Which matrix of operand `s` output matrix `index` takes. */
int64_t rfx_matmul_matrix(const struct rfx_shape *out, const struct rfx_shape *s, int64_t index);

#endif
