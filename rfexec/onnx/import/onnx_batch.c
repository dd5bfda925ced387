/* Models that are fixed to a batch of N images, imported as models of one image.
 *
 * Invariant: the first axis of every computed tensor holds all elements of the first image, then
 * all of the second, and so on. The axis is N times as long in the file as in the graph. No image
 * depends on another. A node that may break this is refused. A shape or a constant of N images is
 * replaced by that of one image. The operator Shape returns the shape that the tensor has in the
 * file, so that shapes that the file computes equal shapes that it states (onnx_fold.c). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/onnx/import/onnx_import.h"
#include "rfexec/onnx/import/onnx_repeat.h"

enum rule {
    EACH,      /* works image by image, whatever its attributes are */
    BROADCAST, /* works element by element; a constant must hold the same values for every image */
    AXIS,      /* works along one axis, which must not be the batch axis */
    AXES, /* works along a list of axes without the batch axis. An empty list means all axes and
             is refused, except with noop_with_empty_axes. */
    FLATTEN,
    MATMUL,
    GEMM,
    RESHAPE,
    EXPAND,
    RESIZE,
    SLICE,
    TRANSPOSE,
    TILE,
    GATHER,
    SUM_ALONG,
};

enum { LAST_FROM_13 = RFX_MAX_RANK }; /* a default of 1 before opset 13 */

static const struct rule_row {
    enum rule rule;
    int axis;        /* the default */
    const char *ops; /* names, each with a space on both sides */
} rule_rows[] = {
    /* The converter of Pad refuses pads of the batch axis. */
    {EACH, 0,
     " AveragePool BatchNormalization Cast CastLike Clip Conv ConvTranspose DepthToSpace Dropout "
     "Gelu GlobalAveragePool GlobalLpPool GlobalMaxPool GroupNormalization Identity "
     "InstanceNormalization IsInf IsNaN LRN LpPool MaxPool MaxUnpool Mish Not Pad Selu Shape "
     "Shrink Size SpaceToDepth Swish Upsample "
     "DequantizeLinear QLinearAveragePool QLinearConv QLinearGlobalAveragePool QLinearLeakyRelu "
     "QLinearSigmoid QuantizeLinear "},
    {BROADCAST, 0,
     " Add And Div Equal Greater GreaterOrEqual GridSample Less LessOrEqual Max Mean Min Mod Mul "
     "Or PRelu Pow QLinearAdd QLinearMul Sub Sum Where Xor "},
    {AXIS, 0, " ArgMax ArgMin Split "},
    {AXIS, 1, " Concat "},
    {AXIS, -1, " LayerNormalization LpNormalization RMSNormalization TopK "},
    {AXIS, LAST_FROM_13, " Hardmax LogSoftmax Softmax "},
    {AXES, 0,
     " MeanVarianceNormalization ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax "
     "ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Squeeze Unsqueeze "},
    {EXPAND, 0, " Expand "},
    {FLATTEN, 0, " Flatten "},
    {GATHER, 0, " Gather "},
    {GEMM, 0, " Gemm "},
    {MATMUL, 0, " MatMul "},
    {RESHAPE, 0, " Reshape "},
    {RESIZE, 0, " Resize "},
    {SLICE, 0, " Slice "},
    {SUM_ALONG, 0, " CumSum "},
    {TILE, 0, " Tile "},
    {TRANSPOSE, 0, " Transpose "},
};

static void refuse(struct rfx_onnx_import *ctx, const char *why) {
    (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                          "the model is fixed to a batch of %" PRId64
                          ", and this node does not work image by image (%s): export the model "
                          "with a batch of 1 or of any size (PyTorch: dynamic_axes)",
                          ctx->batch, why);
}

static bool is_computed(const struct rfx_onnx_import *ctx, size_t k) {
    return rfx_onnx_in(ctx, k).node >= 0;
}

static int rank_of(const struct rfx_onnx_import *ctx, size_t k) {
    return rfx_onnx_shape(ctx, rfx_onnx_in(ctx, k))->rank;
}

/* Returns the size of the first axis of computed operand k in the graph. In the file it is N times
 * as large. */
static int64_t rows_of(const struct rfx_onnx_import *ctx, size_t k) {
    const struct rfx_shape *shape = rfx_onnx_shape(ctx, rfx_onnx_in(ctx, k));
    return shape->rank > 0 ? shape->dims[0] : 1;
}

/* Replaces the current node by a copy that has the constant as input k. */
static void give_input(struct rfx_onnx_import *ctx, size_t k, struct rfx_onnx_const *constant) {
    const struct rfx_onnx_node *node = ctx->node;
    size_t room = strlen(node->in[k]) + 32;
    struct rfx_onnx_node *copy = rfx_onnx_alloc(ctx, 1, sizeof *copy);
    const char **in = rfx_onnx_alloc(ctx, node->n_in, sizeof *in);
    char *name = rfx_onnx_alloc(ctx, room, 1);
    if (constant == NULL) (void)rfx_onnx_out_of_memory(ctx);
    if (rfx_onnx_failed(ctx)) return;
    unsigned number = (unsigned)ctx->graph->n_nodes;
    do snprintf(name, room, "%s#image%u", node->in[k], number++);
    while (rfx_onnx_names_find(ctx->values, name) != NULL);
    memcpy(in, node->in, node->n_in * sizeof *in);
    in[k] = name;
    *copy = *node;
    copy->in = in;
    ctx->node = copy;
    if (!rfx_onnx_names_put(ctx->values, name, rfx_onnx_of_const(constant)))
        (void)rfx_onnx_out_of_memory(ctx);
}

/* Replaces constant input k, a shape, by the shape for one image: the first dimension is divided by
 * N. Does nothing when N does not divide it. */
static void one_in_shape(struct rfx_onnx_import *ctx, size_t k) {
    int64_t count;
    const int64_t *ints = rfx_onnx_in_ints(ctx, k, &count);
    if (count == 0 || ints[0] < 1 || ints[0] % ctx->batch != 0) return;
    struct rfx_onnx_const *c = rfx_onnx_in_const(ctx, k);
    struct rfx_onnx_const *one = rfx_onnx_const_new(ctx, c->type, &c->shape);
    for (int64_t i = 0; one != NULL && i < count; i++)
        rfx_onnx_const_ints_rw(one)[i] = i == 0 ? ints[0] / ctx->batch : ints[i];
    give_input(ctx, k, one);
}

/* Replaces constant input k, which has values for N images, by the values for one image.
 * UNSUPPORTED: the images have different values. */
static void one_image(struct rfx_onnx_import *ctx, size_t k) {
    struct rfx_onnx_const *c = rfx_onnx_in(ctx, k).constant;
    struct rfx_shape shape = c->shape;
    const double *reals;
    const int64_t *ints;
    shape.dims[0] /= ctx->batch;
    if (c->repeat != NULL && rfx_onnx_repeat_is_same(c, 0)) {
        give_input(ctx, k, rfx_onnx_repeat_slice(ctx, c, 0, 0, 1, shape.dims[0]));
        return;
    }
    rfx_onnx_numbers(ctx, c, &reals, &ints);
    int64_t elems = c->elems / ctx->batch;
    for (int64_t i = elems; !rfx_onnx_failed(ctx) && i < c->elems; i++) {
        bool same = reals != NULL ? memcmp(&reals[i], &reals[i % elems], sizeof *reals) == 0
                                  : ints[i] == ints[i % elems];
        if (!same) refuse(ctx, "a constant has other values for each image");
    }
    struct rfx_onnx_const *one =
        rfx_onnx_failed(ctx) ? NULL : rfx_onnx_const_new_filled(ctx, c->type, &shape, c->filled);
    for (int64_t i = 0; one != NULL && i < rfx_onnx_const_stored(one); i++)
        rfx_onnx_copy_elem(one, i, reals, ints, i);
    give_input(ctx, k, one);
}

/* Refuses computed operands of different ranks or first axes, and constants of a higher rank. */
static void check_broadcast(struct rfx_onnx_import *ctx) {
    int rank = -1;
    int64_t rows = 0;
    for (size_t k = 0; k < ctx->node->n_in; k++) {
        if (!is_computed(ctx, k)) continue;
        if (rank >= 0 && (rank != rank_of(ctx, k) || rows != rows_of(ctx, k)))
            refuse(ctx, "operands of two ranks");
        rank = rank_of(ctx, k);
        rows = rows_of(ctx, k);
    }
    for (size_t k = 0; !rfx_onnx_failed(ctx) && k < ctx->node->n_in; k++) {
        const struct rfx_onnx_const *c = rfx_onnx_in(ctx, k).constant;
        if (c == NULL || c->shape.rank < rank) continue;
        if (c->shape.rank > rank)
            refuse(ctx, "a constant of a higher rank");
        else if (rank > 0 && c->shape.dims[0] == rows * ctx->batch && c->shape.dims[0] != 1)
            one_image(ctx, k);
        else if (rank > 0 && c->shape.dims[0] != 1)
            refuse(ctx, "a constant of another batch");
    }
}

static void not_the_batch(struct rfx_onnx_import *ctx, int64_t axis, int rank) {
    if (rfx_onnx_axis(ctx, axis, rank) == 0) refuse(ctx, "it works along the batch axis");
}

static void check_axis(struct rfx_onnx_import *ctx, int otherwise) {
    bool concat = rfx_onnx_op_is(ctx, "Concat");
    if (otherwise == LAST_FROM_13) otherwise = ctx->opset < 13 ? 1 : -1;
    if (!concat && !is_computed(ctx, 0)) refuse(ctx, "its operand is a constant");
    if (rfx_onnx_failed(ctx)) return;
    not_the_batch(ctx, rfx_onnx_attr_int(ctx, "axis", otherwise), rank_of(ctx, 0));
    for (size_t k = 0; concat && !rfx_onnx_failed(ctx) && k < ctx->node->n_in; k++) {
        const struct rfx_onnx_const *c = rfx_onnx_in(ctx, k).constant;
        if (c != NULL && c->shape.rank > 0 && c->shape.dims[0] % ctx->batch == 0) one_image(ctx, k);
    }
}

static void check_axes(struct rfx_onnx_import *ctx) {
    const int64_t *axes;
    int64_t count;
    bool adds = rfx_onnx_op_is(ctx, "Unsqueeze");
    (void)rfx_onnx_list_ints(ctx, "axes", 1, &axes, &count);
    if (count == 0 && !rfx_onnx_attr_flag(ctx, "noop_with_empty_axes", false))
        refuse(ctx, "its axes are all");
    int rank = rank_of(ctx, 0) + (adds ? (int)rfx_min_i64(count, RFX_MAX_RANK) : 0);
    for (int64_t i = 0; i < count; i++) not_the_batch(ctx, axes[i], rank);
}

/* Allows a product of rows with a constant matrix, and products of matrices whose batch axes pass
 * check_broadcast. */
static void check_matmul(struct rfx_onnx_import *ctx) {
    bool a = is_computed(ctx, 0), b = is_computed(ctx, 1);
    if ((b && rank_of(ctx, 1) < 3) || (a && rank_of(ctx, 0) < 2))
        refuse(ctx, "it sums over the batch");
    else if (!a || b || rank_of(ctx, 0) != 2 || rank_of(ctx, 1) != 2)
        check_broadcast(ctx);
}

static void check_gemm(struct rfx_onnx_import *ctx) {
    const struct rfx_onnx_const *c = rfx_onnx_in(ctx, 2).constant;
    if (!is_computed(ctx, 0) || is_computed(ctx, 1) || rfx_onnx_attr_flag(ctx, "transA", false)) {
        refuse(ctx, "it sums over the batch");
    } else if (c != NULL && c->shape.rank >= 2 && c->shape.dims[0] != 1) {
        if (c->shape.dims[0] == rows_of(ctx, 0) * ctx->batch)
            one_image(ctx, 2);
        else
            refuse(ctx, "a constant of another batch");
    }
}

/* Refuses a shape whose first dimension does not hold whole images. Allowed are a multiple of N, 0,
 * and a -1 that stands for a multiple of N. */
static void check_reshape(struct rfx_onnx_import *ctx) {
    const int64_t *target;
    int64_t count, others = 1;
    (void)rfx_onnx_list_ints(ctx, "shape", 1, &target, &count);
    const struct rfx_shape *in = rfx_onnx_shape(ctx, rfx_onnx_in(ctx, 0));
    bool keeps = count > 0 && target[0] == 0 && !rfx_onnx_attr_flag(ctx, "allowzero", false);
    if (count > 0 && target[0] > 0 && target[0] % ctx->batch == 0) {
        if (rfx_onnx_attr_find(ctx, "shape") != NULL)
            refuse(ctx, "its shape is an attribute");
        else
            one_in_shape(ctx, 1);
        return;
    }
    for (int64_t i = 1; i < count && i < RFX_MAX_RANK; i++)
        if (__builtin_mul_overflow(others, target[i] == 0 && i < in->rank ? in->dims[i] : target[i],
                                   &others))
            others = -1;
    bool whole = count > 0 && target[0] == -1 && others > 0 &&
                 rfx_shape_product(in, 0, in->rank) % others == 0;
    if (!keeps && !whole) refuse(ctx, "its shape mixes the batch with other axes");
}

static void check_expand(struct rfx_onnx_import *ctx) {
    const struct rfx_onnx_const *c = rfx_onnx_in_const(ctx, 1);
    if (c == NULL || c->elems < rank_of(ctx, 0)) return;
    if (c->elems > rank_of(ctx, 0))
        refuse(ctx, "its shape has a higher rank");
    else
        one_in_shape(ctx, 1);
}

static void check_resize(struct rfx_onnx_import *ctx) {
    const struct rfx_onnx_const *sizes = rfx_onnx_in(ctx, 3).constant;
    if (ctx->opset < 11 || sizes == NULL) return;
    int64_t axis = 0;
    const struct rfx_onnx_attr *axes = rfx_onnx_attr_find(ctx, "axes");
    if (axes != NULL && axes->kind == RFX_ONNX_ATTR_INTS && axes->count > 0) axis = axes->ints[0];
    if (axis == 0 && sizes->elems > 0) one_in_shape(ctx, 3);
}

/* Refuses a slice that does not take the whole batch axis. */
static void check_slice(struct rfx_onnx_import *ctx) {
    static const char *const names[4] = {"starts", "ends", "axes", "steps"};
    const int64_t *v[4];
    int64_t n[4];
    bool found[4];
    for (size_t k = 0; k < 4; k++)
        found[k] = rfx_onnx_list_ints(ctx, names[k], k + 1, &v[k], &n[k]);
    for (int64_t i = 0; !rfx_onnx_failed(ctx) && i < n[0]; i++) {
        if (found[2] && i >= n[2]) break; /* the converter of Slice refuses this */
        if (rfx_onnx_axis(ctx, found[2] ? v[2][i] : i, rank_of(ctx, 0)) != 0) continue;
        bool whole = v[0][i] == 0 && i < n[1] && v[1][i] >= rows_of(ctx, 0) * ctx->batch &&
                     (!found[3] || i >= n[3] || v[3][i] == 1);
        if (!whole) refuse(ctx, "it takes some images of the batch");
    }
}

static void check_transpose(struct rfx_onnx_import *ctx) {
    int perm[RFX_MAX_RANK], rank = rank_of(ctx, 0);
    rfx_onnx_perm(ctx, rank, perm);
    if (rank > 0 && perm[0] != 0) refuse(ctx, "it moves the batch axis");
}

static void check_tile(struct rfx_onnx_import *ctx) {
    int64_t count;
    const int64_t *repeats = rfx_onnx_in_ints(ctx, 1, &count);
    if (count != rank_of(ctx, 0) || count == 0 || repeats[0] != 1)
        refuse(ctx, "it repeats the batch");
}

static void check_gather(struct rfx_onnx_import *ctx) {
    if (!is_computed(ctx, 0) || is_computed(ctx, 1))
        refuse(ctx, "its indices are computed");
    else
        not_the_batch(ctx, rfx_onnx_attr_int(ctx, "axis", 0), rank_of(ctx, 0));
}

static const struct rule_row *row_of(const char *op) {
    char word[64];
    int n = snprintf(word, sizeof word, " %s ", op);
    for (size_t i = 0; n < (int)sizeof word && i < sizeof rule_rows / sizeof rule_rows[0]; i++)
        if (strstr(rule_rows[i].ops, word) != NULL) return &rule_rows[i];
    return rfx_act_find(op) != RFX_ACT_COUNT ? &rule_rows[0] : NULL;
}

void rfx_onnx_batch_node(struct rfx_onnx_import *ctx) {
    static void (*const checks[])(struct rfx_onnx_import *) = {
        [BROADCAST] = check_broadcast, [AXES] = check_axes,       [MATMUL] = check_matmul,
        [GEMM] = check_gemm,           [RESHAPE] = check_reshape, [EXPAND] = check_expand,
        [RESIZE] = check_resize,       [SLICE] = check_slice,     [TRANSPOSE] = check_transpose,
        [TILE] = check_tile,           [GATHER] = check_gather,   [SUM_ALONG] = NULL};
    const struct rule_row *row = row_of(ctx->node->op);
    bool any = false;
    for (size_t k = 0; k < ctx->node->n_in; k++) any = any || is_computed(ctx, k);
    if (row == NULL) refuse(ctx, "as far as is known");
    if (!any) refuse(ctx, "its operands are constants");
    if (rfx_onnx_failed(ctx)) return;
    if (row->rule == AXIS) check_axis(ctx, row->axis);
    if (row->rule == FLATTEN)
        not_the_batch(ctx, rfx_onnx_attr_int(ctx, "axis", 1), rank_of(ctx, 0));
    if (row->rule == SUM_ALONG)
        not_the_batch(ctx, rfx_onnx_sum_axis(ctx, rank_of(ctx, 0)), rank_of(ctx, 0));
    if (checks[row->rule] != NULL) checks[row->rule](ctx);
}
