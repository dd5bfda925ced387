/* Constants whose elements repeat: coordinates of rows and columns, grids, masks of sizes.
 *
 * Such a constant stores no elements of its own. It is either a pattern over a stored constant, or
 * several constants side by side along an axis, its parts.
 *
 * Pattern: each axis is cut into factors, the outermost first, which are digits of its index
 * (layers/graph/digit.h): they say how far an index lies among the stored elements. Reshapes,
 * transposes and slices change the pattern alone; what works element by element computes the stored
 * elements alone. Both give what they would give for each element. A mask of windows is a pattern
 * whose factors have cuts: the last row of windows, the last column of windows, and where a window
 * is cut in two. */
#ifndef RFX_RFEXEC_ONNX_IMPORT_FOLD_ONNX_REPEAT_H
#define RFX_RFEXEC_ONNX_IMPORT_FOLD_ONNX_REPEAT_H

#include "layers/graph/digit.h"
#include "rfexec/onnx/import/onnx_import.h"

#define RFX_ONNX_STORED_UP_TO 4096  /* elements: such constants are stored where they are read */
#define RFX_ONNX_MOST_DEPTH 8       /* of parts that have parts */
#define RFX_ONNX_MOST_CHANNELS 4096 /* of an axis that may be the channels of a map */

struct rfx_onnx_pattern {
    struct rfx_onnx_const *stored; /* without a pattern of its own */
    int64_t first;                 /* stored element of index 0 */
    int count, end[RFX_MAX_RANK];  /* axis i has the factors from end[i - 1] on, up to end[i] */
    struct rfx_digit factors[RFX_DIGITS]; /* of size 2 and more */
};

struct rfx_onnx_repeat {
    struct rfx_onnx_pattern pattern; /* where there are no parts */
    struct rfx_onnx_const **parts;   /* n_parts >= 2, of one rank and type */
    int n_parts, axis, depth;
};

/* All that return a constant return NULL where it has no such form, or for want of memory
 * (ctx->out_of_memory). */

/* The pattern of a constant without parts; also of one that stores its elements. */
bool rfx_onnx_pattern_of(struct rfx_onnx_const *c, struct rfx_onnx_pattern *out);

struct rfx_onnx_const *rfx_onnx_repeat_new(struct rfx_onnx_import *ctx, int32_t type,
                                           const struct rfx_shape *shape,
                                           const struct rfx_onnx_pattern *pattern);

/* Constants side by side; parts of the same axis are put together. One alone is itself. */
struct rfx_onnx_const *rfx_onnx_repeat_join(struct rfx_onnx_import *ctx,
                                            struct rfx_onnx_const *const *parts, int n, int axis);

struct rfx_onnx_const *rfx_onnx_repeat_reshape(struct rfx_onnx_import *ctx,
                                               const struct rfx_onnx_const *c,
                                               const struct rfx_shape *shape);
struct rfx_onnx_const *rfx_onnx_repeat_transpose(struct rfx_onnx_import *ctx,
                                                 struct rfx_onnx_const *c, const int *perm);
struct rfx_onnx_const *rfx_onnx_repeat_slice(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c,
                                             int axis, int64_t start, int64_t step, int64_t size);

/* Gives the factors of a pattern, whose strides say only whether they move, strides in a new stored
 * constant that has an element for each of their classes, the innermost side by side; NULL: that
 * would be too many. Then the classes of the factors in turn, in the order of those elements, from
 * all 0 on; false: all were there. */
struct rfx_onnx_const *rfx_onnx_pattern_store(struct rfx_onnx_import *ctx, int32_t type,
                                              struct rfx_onnx_pattern *pattern);
bool rfx_onnx_pattern_next_class(const struct rfx_onnx_pattern *pattern, int64_t *class_of);

/* Element `at` of a stored constant, as element i of another one of its type. */
RFX_NODISCARD enum rfx_status rfx_onnx_copy_stored(struct rfx_onnx_import *ctx,
                                                   struct rfx_onnx_const *to, int64_t i,
                                                   struct rfx_onnx_const *from, int64_t at);

/* Where the element lies that has that index along each axis, among the stored ones. */
int64_t rfx_onnx_pattern_at(const struct rfx_onnx_pattern *p, int rank, const int64_t *index);

/* The current ScatterND or ScatterElements of constants, where the updates fill a box of `data`
 * (onnx_repeat_put.c). */
struct rfx_onnx_const *rfx_onnx_repeat_put(struct rfx_onnx_import *ctx, struct rfx_onnx_const *data,
                                           enum rfx_status *status);

/* Broadcast to a shape, as ONNX's Expand. */
struct rfx_onnx_const *rfx_onnx_repeat_expand(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c,
                                              const struct rfx_shape *shape);

/* Cuts factors of two lists, outermost first and of one product, into such of equal sizes; how many
 * there are, or -1. A factor with cuts stays whole. */
int rfx_onnx_factors_align(const struct rfx_digit *a, int n_a, const struct rfx_digit *b, int n_b,
                           struct rfx_digit *out_a, struct rfx_digit *out_b);

/* Writes all elements, row-major: of integers to `ints`, of floats to `reals`. */
RFX_NODISCARD enum rfx_status rfx_onnx_repeat_fill(struct rfx_onnx_import *ctx,
                                                   const struct rfx_onnx_const *c, double *reals,
                                                   int64_t *ints);

/* A constant that stores the elements of one that repeats, in another shape. */
struct rfx_onnx_const *rfx_onnx_repeat_stored(struct rfx_onnx_import *ctx,
                                              const struct rfx_onnx_const *c,
                                              const struct rfx_shape *shape);

/* The constant as a weight that is read without storing its elements, where it is large and has
 * one; *weight is left as it is where not. (onnx_repeat_weight.c) */
bool rfx_onnx_repeat_has_weight(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c);
RFX_NODISCARD enum rfx_status rfx_onnx_repeat_weight(struct rfx_onnx_import *ctx,
                                                     struct rfx_onnx_const *c, int *weight);

/* Evaluates the current node, of constants, where constants may repeat. *done: whether its outputs
 * are bound; otherwise its operands have to be stored, or computed by operators. `evaluate` is what
 * is done to constants that do not repeat. (onnx_fold_repeat.c) */
RFX_NODISCARD enum rfx_status rfx_onnx_fold_repeat(
    struct rfx_onnx_import *ctx, const struct rfx_onnx_op *op,
    enum rfx_status (*evaluate)(struct rfx_onnx_import *ctx, const struct rfx_onnx_op *op),
    bool *done);

/* A map (1, c, h, w) that is made where it is read; of a constant beside a tensor that is `like` a
 * map in another order, the map that stands in the same order. *out: -1: the constant changes along
 * rows and columns, or repeats little. (onnx_repeat_map.c) */
RFX_NODISCARD enum rfx_status rfx_onnx_repeat_map(struct rfx_onnx_import *ctx,
                                                  struct rfx_onnx_const *c,
                                                  const struct rfx_pixels *like, int *out);

/* Whether nothing changes along an axis; as deep as parts are. */
bool rfx_onnx_repeat_is_same(struct rfx_onnx_const *c, int axis);

/* A constant beside a tensor with which it is broadcast: axes along which it does not change are 1
 * long where the tensor has them. Of others the constant itself. */
struct rfx_onnx_const *rfx_onnx_repeat_shrink(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c,
                                              const struct rfx_shape *beside);

/* The same as a tensor of the constant's shape. */
RFX_NODISCARD enum rfx_status rfx_onnx_repeat_plain(struct rfx_onnx_import *ctx,
                                                    struct rfx_onnx_const *c, int *out);
#endif
