/* Constants whose elements repeat: coordinates of rows and columns, grids, masks of sizes.
 *
 * Such a constant stores no elements of its own. It is either a pattern over a stored constant, or
 * several constants side by side along an axis, its parts.
 *
 * In a pattern each axis is cut into factors, the outermost first. They are digits of the axis's
 * index (layers/graph/digit.h), and each digit says how far it moves among the stored elements.
 * Reshapes, transposes and slices change only the pattern. Operators that work element by element
 * compute only the stored elements. Both give the same as for all elements. A mask of windows is a
 * pattern whose factors have cuts: the last row of windows, the last column of windows, and where a
 * window is cut in two. */
#ifndef RFX_RFEXEC_ONNX_IMPORT_ONNX_REPEAT_H
#define RFX_RFEXEC_ONNX_IMPORT_ONNX_REPEAT_H

#include "layers/graph/digit.h"
#include "rfexec/onnx/import/onnx_import.h"

#define RFX_ONNX_STORED_UP_TO 4096  /* elements: smaller constants are stored */
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

/* The functions that return a constant return NULL where the result has no such form, and after an
 * error (ctx->status). */

/* The pattern of a constant without parts; also of one that stores its elements. */
bool rfx_onnx_pattern_of(struct rfx_onnx_const *c, struct rfx_onnx_pattern *out);

struct rfx_onnx_const *rfx_onnx_repeat_new(struct rfx_onnx_import *ctx, int32_t type,
                                           const struct rfx_shape *shape,
                                           const struct rfx_onnx_pattern *pattern);

/* Constants side by side; parts along the same axis are merged. One constant alone is returned. */
struct rfx_onnx_const *rfx_onnx_repeat_join(struct rfx_onnx_import *ctx,
                                            struct rfx_onnx_const *const *parts, int n, int axis);

struct rfx_onnx_const *rfx_onnx_repeat_reshape(struct rfx_onnx_import *ctx,
                                               const struct rfx_onnx_const *c,
                                               const struct rfx_shape *shape);
struct rfx_onnx_const *rfx_onnx_repeat_transpose(struct rfx_onnx_import *ctx,
                                                 struct rfx_onnx_const *c, const int *perm);
struct rfx_onnx_const *rfx_onnx_repeat_slice(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c,
                                             int axis, int64_t start, int64_t step, int64_t size);

/* Broadcast to a shape, as ONNX's Expand. */
struct rfx_onnx_const *rfx_onnx_repeat_expand(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c,
                                              const struct rfx_shape *shape);

/* Gives a pattern a new stored constant, with one element for each combination of the classes of
 * its factors, the innermost side by side. Before, the strides of the factors only say whether a
 * factor moves; after, they are strides in that constant. NULL: there would be too many elements.
 * Then the next combination of classes, in the order of those elements, from all 0 on; false: there
 * is none. */
struct rfx_onnx_const *rfx_onnx_pattern_store(struct rfx_onnx_import *ctx, int32_t type,
                                              struct rfx_onnx_pattern *pattern);
bool rfx_onnx_pattern_next_class(const struct rfx_onnx_pattern *pattern, int64_t *class_of);

/* Copies element `at` of a stored constant to element i of another one of its type. */
void rfx_onnx_copy_stored(struct rfx_onnx_import *ctx, struct rfx_onnx_const *to, int64_t i,
                          struct rfx_onnx_const *from, int64_t at);

/* Which stored element has that index along each axis. */
int64_t rfx_onnx_pattern_at(const struct rfx_onnx_pattern *p, int rank, const int64_t *index);

/* Cuts factors of two lists, outermost first and of equal products, so that both have the same
 * sizes. Returns their number, or -1: it is not possible. A factor with cuts stays whole. */
int rfx_onnx_factors_align(const struct rfx_digit *a, int n_a, const struct rfx_digit *b, int n_b,
                           struct rfx_digit *out_a, struct rfx_digit *out_b);

/* Writes all elements, row-major: integers to `ints`, floats to `reals`. */
void rfx_onnx_repeat_fill(struct rfx_onnx_import *ctx, const struct rfx_onnx_const *c,
                          double *reals, int64_t *ints);

/* A constant that stores the elements of a pattern, in another shape. */
struct rfx_onnx_const *rfx_onnx_repeat_stored(struct rfx_onnx_import *ctx,
                                              const struct rfx_onnx_const *c,
                                              const struct rfx_shape *shape);

/* Whether a large constant can be a weight that is read without storing its elements; that weight,
 * or -1. */
bool rfx_onnx_repeat_has_weight(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c);
int rfx_onnx_repeat_weight(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c);

/* Evaluates the current node, of constants, where its result repeats, and binds its outputs.
 * Returns whether it did; otherwise the operands have to be stored, or computed by operators.
 * `evaluate` evaluates a node of constants that do not repeat (onnx_fold_repeat.c). */
bool rfx_onnx_fold_repeat(struct rfx_onnx_import *ctx, const struct rfx_onnx_op *op,
                          void (*evaluate)(struct rfx_onnx_import *ctx,
                                           const struct rfx_onnx_op *op));

/* The constant as a map (1, c, h, w) whose rows are made when they are read. `like` not NULL: the
 * constant stands beside a tensor that is a map in another order; the map is in the same order. -1:
 * the constant changes along rows and columns at once, or repeats little. */
int rfx_onnx_repeat_map(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c,
                        const struct rfx_pixels *like);

/* The same as a tensor of the constant's shape. */
int rfx_onnx_repeat_plain(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c);

/* Whether nothing changes along an axis; recurses as deep as parts are. */
bool rfx_onnx_repeat_is_same(struct rfx_onnx_const *c, int axis);

/* A constant beside a tensor with which it is broadcast. Axes along which a pattern does not change
 * become 1 long where the tensor has them; another constant is returned as it is. */
struct rfx_onnx_const *rfx_onnx_repeat_shrink(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c,
                                              const struct rfx_shape *beside);
#endif
