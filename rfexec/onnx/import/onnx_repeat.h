/* Constants whose elements repeat: coordinates of rows and columns, grids, masks of sizes.
 *
 * Such a constant does not store its elements. It is either a pattern over a smaller stored
 * constant, or several constants (its parts) concatenated along an axis.
 *
 * In a pattern each axis is split into factors, the outermost first. The factors are the digits of
 * the index along the axis (layers/graph/digit.h). Each digit has a stride in the stored constant.
 * Reshapes, transposes and slices change only the pattern. Operators that work element by element
 * compute only the stored elements. In both cases the result is the same as with all elements. A
 * mask of windows is a pattern whose factors have cuts: at the last row of windows, at the last
 * column of windows, and where a window is divided in two. */
#ifndef RFX_RFEXEC_ONNX_IMPORT_ONNX_REPEAT_H
#define RFX_RFEXEC_ONNX_IMPORT_ONNX_REPEAT_H

#include "layers/graph/digit.h"
#include "rfexec/onnx/import/onnx_import.h"

#define RFX_ONNX_STORED_UP_TO 4096  /* elements: smaller constants are stored */
#define RFX_ONNX_MOST_DEPTH 8       /* nesting depth of parts */
#define RFX_ONNX_MOST_CHANNELS 4096 /* of an axis that may be the channels of a map */

struct rfx_onnx_pattern {
    struct rfx_onnx_const *stored; /* the smaller constant; it is not a pattern itself */
    int64_t first;                 /* stored element of index 0 */
    int count, end[RFX_MAX_RANK];  /* axis i has the factors [end[i - 1], end[i]); end[-1] is 0 */
    struct rfx_digit factors[RFX_DIGITS]; /* of size 2 and more */
};

struct rfx_onnx_repeat {
    struct rfx_onnx_pattern pattern; /* used when n_parts is 0 */
    struct rfx_onnx_const **parts;   /* n_parts >= 2, all of the same rank and type */
    int n_parts, axis, depth;
};

/* The functions that return a constant return NULL when the result cannot be expressed as a pattern
 * or parts, and after an error (ctx->status). */

/* Sets *out to the pattern of a constant. A constant that stores its elements has a pattern too.
 * Returns false for a constant with parts. */
bool rfx_onnx_pattern_of(struct rfx_onnx_const *c, struct rfx_onnx_pattern *out);

struct rfx_onnx_const *rfx_onnx_repeat_new(struct rfx_onnx_import *ctx, int32_t type,
                                           const struct rfx_shape *shape,
                                           const struct rfx_onnx_pattern *pattern);

/* Returns n constants concatenated along an axis. Operands with parts along the same axis are
 * merged. With n 1 returns the constant itself. */
struct rfx_onnx_const *rfx_onnx_repeat_join(struct rfx_onnx_import *ctx,
                                            struct rfx_onnx_const *const *parts, int n, int axis);

struct rfx_onnx_const *rfx_onnx_repeat_reshape(struct rfx_onnx_import *ctx,
                                               const struct rfx_onnx_const *c,
                                               const struct rfx_shape *shape);
struct rfx_onnx_const *rfx_onnx_repeat_transpose(struct rfx_onnx_import *ctx,
                                                 struct rfx_onnx_const *c, const int *perm);
struct rfx_onnx_const *rfx_onnx_repeat_slice(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c,
                                             int axis, int64_t start, int64_t step, int64_t size);

/* Returns the constant broadcast to a shape, as ONNX's Expand does. */
struct rfx_onnx_const *rfx_onnx_repeat_expand(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c,
                                              const struct rfx_shape *shape);

/* rfx_onnx_pattern_store gives a pattern a new stored constant and returns it. The constant has one
 * element for each combination of the factors' classes; the innermost factor varies fastest. On
 * entry the strides of the factors only tell (0 or not 0) whether the element depends on a factor;
 * on return they are strides in the new constant. NULL: there would be too many elements.
 * rfx_onnx_pattern_next_class sets class_of[] to the next combination in the order of the stored
 * elements, beginning from all 0. It returns false after the last combination. */
struct rfx_onnx_const *rfx_onnx_pattern_store(struct rfx_onnx_import *ctx, int32_t type,
                                              struct rfx_onnx_pattern *pattern);
bool rfx_onnx_pattern_next_class(const struct rfx_onnx_pattern *pattern, int64_t *class_of);

/* Copies element `at` of a stored constant to element i of another one of its type. */
void rfx_onnx_copy_stored(struct rfx_onnx_import *ctx, struct rfx_onnx_const *to, int64_t i,
                          struct rfx_onnx_const *from, int64_t at);

/* Returns the stored element for the index[rank] along the axes. */
int64_t rfx_onnx_pattern_at(const struct rfx_onnx_pattern *p, int rank, const int64_t *index);

/* Splits the factors of two lists so that both lists have the same sizes. Both lists have the
 * outermost factor first and the same product. A factor with cuts is never split. Returns the
 * number of factors in out_a and out_b, or -1 when that is not possible. */
int rfx_onnx_factors_align(const struct rfx_digit *a, int n_a, const struct rfx_digit *b, int n_b,
                           struct rfx_digit *out_a, struct rfx_digit *out_b);

/* Writes all elements, row-major: integers to `ints`, floats to `reals`. */
void rfx_onnx_repeat_fill(struct rfx_onnx_import *ctx, const struct rfx_onnx_const *c,
                          double *reals, int64_t *ints);

/* Returns a constant that stores all elements of a pattern, with another shape. */
struct rfx_onnx_const *rfx_onnx_repeat_stored(struct rfx_onnx_import *ctx,
                                              const struct rfx_onnx_const *c,
                                              const struct rfx_shape *shape);

/* Adds a large constant as a weight whose elements are computed when they are read, not stored.
 * Returns the weight's index, or -1 when the constant has no such form. */
int rfx_onnx_repeat_weight(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c);

/* Evaluates the current node, whose operands are constants, and binds its outputs, if the result
 * repeats. Returns whether it did. Otherwise the caller must store the operands or compute the
 * result by operators. `evaluate` evaluates a node of constants that do not repeat
 * (onnx_fold_repeat.c). */
bool rfx_onnx_fold_repeat(struct rfx_onnx_import *ctx, const struct rfx_onnx_op *op,
                          void (*evaluate)(struct rfx_onnx_import *ctx,
                                           const struct rfx_onnx_op *op));

/* Returns a node for the constant as a map (1, c, h, w) whose rows are computed when they are read.
 * like (may be NULL): the constant is combined with a tensor that is a reordered map; the result is
 * a map that becomes this constant by the same reordering. Returns -1 when the constant depends on
 * row and column at once, or repeats little. */
int rfx_onnx_repeat_map(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c,
                        const struct rfx_pixels *like);

/* Returns a node for the constant as a PLAIN tensor of the constant's shape, made from such maps;
 * -1 when it has no such form. */
int rfx_onnx_repeat_plain(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c);

/* Returns whether the constant has the same elements at all positions of an axis. Recurses to the
 * depth of the parts. */
bool rfx_onnx_repeat_is_same(struct rfx_onnx_const *c, int axis);

/* Returns a smaller constant that broadcasts to `c` when combined with a tensor of shape `beside`.
 * An axis along which the pattern does not change gets the size 1 if the tensor has that axis. A
 * constant that is not a pattern is returned unchanged. */
struct rfx_onnx_const *rfx_onnx_repeat_shrink(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c,
                                              const struct rfx_shape *beside);
#endif
