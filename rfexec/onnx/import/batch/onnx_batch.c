/* Models that are fixed to a batch of N images, imported as models of one.
 *
 * Invariant: of every computed tensor the first axis has all of the first image, then all of the
 * second: N times as long in the file as in the graph, and no image sees another. A node that may
 * break it is refused; a shape or a constant that speaks of N images is replaced by that of one.
 * Shape gives the file's, so that shapes that are computed say the same as those that are written
 * out (onnx_fold_shape.c). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/onnx/import/fold/onnx_fold.h"
#include "rfexec/onnx/import/fold/onnx_repeat.h"

enum rule {
    EACH,      /* image by image, whatever its attributes say */
    BROADCAST, /* element by element, or with constants that are as good as one image's */
    AXIS,      /* along one axis, which must not be the batch */
    AXES,      /* likewise, along those of a list; none given: all */
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
    const char *ops; /* with a space on both sides of each */
} rule_rows[] = {
    /* Pad is refused on the batch by its conversion. */
    {EACH, 0,
     " AveragePool BatchNormalization Cast CastLike Clip Conv ConvTranspose DepthToSpace Dropout "
     "Gelu GlobalAveragePool GlobalLpPool GlobalMaxPool GroupNormalization Identity "
     "InstanceNormalization IsInf IsNaN LRN LpPool MaxPool MaxUnpool Mish Not Pad Selu Shape "
     "Shrink "
     "Size SpaceToDepth Swish Upsample "},
    {BROADCAST, 0,
     " Add And Div Equal Greater GreaterOrEqual GridSample Less LessOrEqual Max Mean Min Mod Mul "
     "Or "
     "PRelu Pow Sub Sum Where Xor "},
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

static enum rfx_status refuse(struct rfx_onnx_import *ctx, const char *why) {
    return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                           "the model is fixed to a batch of %" PRId64
                           ", and this node does not work image by image (%s): export the model "
                           "with a batch of 1 or of any size (PyTorch: dynamic_axes)",
                           ctx->batch, why);
}

static bool is_computed(struct rfx_onnx_operand x) {
    return x.constant == NULL && x.node >= 0;
}

static int rank_of(const struct rfx_onnx_import *ctx, size_t k) {
    return rfx_onnx_shape(ctx, rfx_onnx_in(ctx, k))->rank;
}

/* Rows of computed operand k: in the graph, times N in the file. */
static int64_t rows_of(const struct rfx_onnx_import *ctx, size_t k) {
    const struct rfx_shape *shape = rfx_onnx_shape(ctx, rfx_onnx_in(ctx, k));
    return shape->rank > 0 ? shape->dims[0] : 1;
}

/* Input k of the node, of which this makes a copy, becomes another constant. */
static enum rfx_status give_input(struct rfx_onnx_import *ctx, size_t k,
                                  struct rfx_onnx_const *constant) {
    const struct rfx_onnx_node *node = ctx->node;
    struct rfx_onnx_node *copy = rfx_arena_alloc(ctx->arena, 1, sizeof *copy);
    const char **in = rfx_arena_alloc(ctx->arena, node->n_in, sizeof *in);
    size_t room = strlen(node->in[k]) + 32;
    char *name = rfx_arena_alloc(ctx->arena, room, 1);
    if (constant == NULL || copy == NULL || in == NULL || name == NULL)
        return rfx_onnx_refuse(ctx, RFX_STATUS_OUT_OF_MEMORY, "no memory for a constant");
    unsigned number = (unsigned)ctx->graph->n_nodes;
    do snprintf(name, room, "%s#image%u", node->in[k], number++);
    while (rfx_onnx_names_find(ctx->values, name) != NULL);
    memcpy(in, node->in, node->n_in * sizeof *in);
    in[k] = name;
    *copy = *node;
    copy->in = in;
    ctx->node = copy;
    struct rfx_onnx_operand value = {-1, constant};
    if (rfx_onnx_names_put(ctx->values, name, value)) return RFX_OK;
    return rfx_onnx_refuse(ctx, RFX_STATUS_OUT_OF_MEMORY, "no memory for a constant");
}

/* Integers of constant input k, of which the first one is that of all images where N divides it,
 * become those of one. */
static enum rfx_status one_in_shape(struct rfx_onnx_import *ctx, size_t k) {
    struct rfx_onnx_const *c;
    const int64_t *ints = NULL;
    enum rfx_status status = rfx_onnx_in_const(ctx, k, &c);
    if (status == RFX_OK) status = rfx_onnx_const_ints(ctx, c, &ints);
    if (status != RFX_OK || c->elems == 0 || ints[0] < 1 || ints[0] % ctx->batch != 0)
        return status;
    struct rfx_onnx_const *one = rfx_onnx_const_new(ctx, c->type, &c->shape);
    if (one == NULL) return rfx_onnx_fold_too_large(ctx);
    for (int64_t i = 0; i < c->elems; i++)
        rfx_onnx_const_ints_rw(one)[i] = i == 0 ? ints[0] / ctx->batch : ints[i];
    return give_input(ctx, k, one);
}

/* Constant input k, of all images: that of one where all have the same. */
static enum rfx_status one_image(struct rfx_onnx_import *ctx, size_t k) {
    struct rfx_onnx_const *c = rfx_onnx_in(ctx, k).constant;
    struct rfx_shape shape = c->shape;
    const double *reals = NULL;
    const int64_t *ints = NULL;
    if (c->repeat != NULL && rfx_onnx_repeat_is_same(c, 0)) {
        int64_t rows = shape.dims[0] / ctx->batch;
        return give_input(ctx, k, rfx_onnx_repeat_slice(ctx, c, 0, 0, 1, rows));
    }
    enum rfx_status status = rfx_onnx_numbers(ctx, c, &reals, &ints);
    if (status != RFX_OK) return status;
    int64_t elems = c->elems / ctx->batch;
    for (int64_t i = elems; i < c->elems; i++) {
        bool same = reals != NULL ? memcmp(&reals[i], &reals[i % elems], sizeof *reals) == 0
                                  : ints[i] == ints[i % elems];
        if (!same) return refuse(ctx, "a constant has other values for each image");
    }
    shape.dims[0] /= ctx->batch;
    struct rfx_onnx_const *one = rfx_onnx_new_result(ctx, c->type, &shape, c->filled);
    if (one == NULL) return rfx_onnx_fold_too_large(ctx);
    for (int64_t i = 0; i < rfx_onnx_const_stored(one); i++)
        rfx_onnx_copy_elem(one, i, reals, ints, i);
    return give_input(ctx, k, one);
}

/* All computed operands have one rank and as many rows, and constants do not shift it. */
static enum rfx_status check_broadcast(struct rfx_onnx_import *ctx) {
    int rank = -1;
    int64_t rows = 0;
    for (size_t k = 0; k < ctx->node->n_in; k++) {
        if (!is_computed(rfx_onnx_in(ctx, k))) continue;
        if (rank >= 0 && (rank != rank_of(ctx, k) || rows != rows_of(ctx, k)))
            return refuse(ctx, "operands of two ranks");
        rank = rank_of(ctx, k);
        rows = rows_of(ctx, k);
    }
    for (size_t k = 0; k < ctx->node->n_in; k++) {
        const struct rfx_onnx_const *c = rfx_onnx_in(ctx, k).constant;
        if (c == NULL || c->shape.rank < rank) continue;
        if (c->shape.rank > rank) return refuse(ctx, "a constant of a higher rank");
        if (rank == 0 || c->shape.dims[0] == 1) continue;
        enum rfx_status status = c->shape.dims[0] == rows * ctx->batch
                                     ? one_image(ctx, k)
                                     : refuse(ctx, "a constant of another batch");
        if (status != RFX_OK) return status;
    }
    return RFX_OK;
}

static enum rfx_status not_the_batch(struct rfx_onnx_import *ctx, int64_t axis, int rank) {
    int found;
    enum rfx_status status = rfx_onnx_axis(ctx, axis, rank, &found);
    if (status != RFX_OK || found != 0) return status;
    return refuse(ctx, "it works along the batch axis");
}

static enum rfx_status check_axis(struct rfx_onnx_import *ctx, int otherwise) {
    bool concat = strcmp(ctx->node->op, "Concat") == 0;
    if (otherwise == LAST_FROM_13) otherwise = ctx->opset < 13 ? 1 : -1;
    if (!concat && !is_computed(rfx_onnx_in(ctx, 0)))
        return refuse(ctx, "its operand is a constant");
    enum rfx_status status =
        not_the_batch(ctx, rfx_onnx_attr_int(ctx, "axis", otherwise), rank_of(ctx, 0));
    for (size_t k = 0; concat && status == RFX_OK && k < ctx->node->n_in; k++) {
        const struct rfx_onnx_const *c = rfx_onnx_in(ctx, k).constant;
        if (c != NULL && c->shape.rank > 0 && c->shape.dims[0] % ctx->batch == 0)
            status = one_image(ctx, k);
    }
    return status;
}

static enum rfx_status check_axes(struct rfx_onnx_import *ctx) {
    const int64_t *axes = NULL;
    int64_t count = 0;
    bool found;
    bool adds = strcmp(ctx->node->op, "Unsqueeze") == 0;
    enum rfx_status status = rfx_onnx_list_ints(ctx, "axes", 1, &axes, &count, &found);
    if (status != RFX_OK) return status;
    if (count == 0 && !rfx_onnx_attr_flag(ctx, "noop_with_empty_axes", false))
        return refuse(ctx, "its axes are all");
    int rank = rank_of(ctx, 0) + (adds ? (int)rfx_min_i64(count, RFX_MAX_RANK) : 0);
    for (int64_t i = 0; i < count && status == RFX_OK; i++)
        status = not_the_batch(ctx, axes[i], rank);
    return status;
}

/* (N, ...) x (..., M): rows, or matrices of which the batch counts; with a constant that has none
 * of its own. */
static enum rfx_status check_matmul(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_operand a = rfx_onnx_in(ctx, 0), b = rfx_onnx_in(ctx, 1);
    int ra = rank_of(ctx, 0), rb = rank_of(ctx, 1);
    if (is_computed(b) && rb < 3) return refuse(ctx, "it sums over the batch");
    if (is_computed(a) && ra < 2) return refuse(ctx, "it sums over the batch");
    if (is_computed(a) && !is_computed(b) && ra == 2 && rb == 2) return RFX_OK;
    return check_broadcast(ctx);
}

static enum rfx_status check_gemm(struct rfx_onnx_import *ctx) {
    const struct rfx_onnx_const *c = rfx_onnx_in(ctx, 2).constant;
    if (!is_computed(rfx_onnx_in(ctx, 0)) || is_computed(rfx_onnx_in(ctx, 1)) ||
        rfx_onnx_attr_flag(ctx, "transA", false))
        return refuse(ctx, "it sums over the batch");
    if (c == NULL || c->shape.rank < 2 || c->shape.dims[0] == 1) return RFX_OK;
    return c->shape.dims[0] == rows_of(ctx, 0) * ctx->batch
               ? one_image(ctx, 2)
               : refuse(ctx, "a constant of another batch");
}

/* The first axis keeps whole images: a multiple of N, 0, or a -1 that comes to one. */
static enum rfx_status check_reshape(struct rfx_onnx_import *ctx) {
    const int64_t *target = NULL;
    int64_t count = 0, others = 1;
    bool found;
    enum rfx_status status = rfx_onnx_list_ints(ctx, "shape", 1, &target, &count, &found);
    if (status != RFX_OK) return status;
    const struct rfx_shape *in = rfx_onnx_shape(ctx, rfx_onnx_in(ctx, 0));
    bool keeps = count > 0 && target[0] == 0 && !rfx_onnx_attr_flag(ctx, "allowzero", false);
    if (count > 0 && target[0] > 0 && target[0] % ctx->batch == 0) {
        if (rfx_onnx_attr_find(ctx, "shape") != NULL)
            return refuse(ctx, "its shape is an attribute");
        return one_in_shape(ctx, 1);
    }
    for (int64_t i = 1; i < count && i < RFX_MAX_RANK; i++)
        if (__builtin_mul_overflow(others, target[i] == 0 && i < in->rank ? in->dims[i] : target[i],
                                   &others))
            others = -1;
    if (keeps || (count > 0 && target[0] == -1 && others > 0 &&
                  rfx_onnx_product(in, 0, in->rank) % others == 0))
        return RFX_OK;
    return refuse(ctx, "its shape mixes the batch with other axes");
}

static enum rfx_status check_expand(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_const *c;
    enum rfx_status status = rfx_onnx_in_const(ctx, 1, &c);
    if (status != RFX_OK || c->elems < rank_of(ctx, 0)) return status;
    if (c->elems > rank_of(ctx, 0)) return refuse(ctx, "its shape has a higher rank");
    return one_in_shape(ctx, 1);
}

static enum rfx_status check_resize(struct rfx_onnx_import *ctx) {
    if (ctx->opset < 11 || !rfx_onnx_has(ctx, 3) || rfx_onnx_in(ctx, 3).constant == NULL)
        return RFX_OK;
    int64_t axis = 0;
    const struct rfx_onnx_attr *axes = rfx_onnx_attr_find(ctx, "axes");
    if (axes != NULL && axes->kind == RFX_ONNX_ATTR_INTS && axes->count > 0) axis = axes->ints[0];
    return axis == 0 && rfx_onnx_in(ctx, 3).constant->elems > 0 ? one_in_shape(ctx, 3) : RFX_OK;
}

/* Along the batch only what takes all of it. */
static enum rfx_status check_slice(struct rfx_onnx_import *ctx) {
    static const char *const names[4] = {"starts", "ends", "axes", "steps"};
    const int64_t *v[4] = {NULL, NULL, NULL, NULL};
    int64_t n[4] = {0};
    bool found[4] = {false};
    enum rfx_status status = RFX_OK;
    for (size_t k = 0; k < 4 && status == RFX_OK; k++)
        status = rfx_onnx_list_ints(ctx, names[k], k + 1, &v[k], &n[k], &found[k]);
    for (int64_t i = 0; status == RFX_OK && i < n[0]; i++) {
        int axis = 0;
        if (found[2] && i >= n[2]) break; /* which its conversion refuses */
        status = rfx_onnx_axis(ctx, found[2] ? v[2][i] : i, rank_of(ctx, 0), &axis);
        if (status != RFX_OK || axis != 0) continue;
        bool whole = v[0][i] == 0 && i < n[1] && v[1][i] >= rows_of(ctx, 0) * ctx->batch &&
                     (!found[3] || i >= n[3] || v[3][i] == 1);
        if (!whole) status = refuse(ctx, "it takes some images of the batch");
    }
    return status;
}

static enum rfx_status check_transpose(struct rfx_onnx_import *ctx) {
    int64_t perm[RFX_MAX_RANK];
    int rank = rank_of(ctx, 0);
    for (int i = 0; i < rank; i++) perm[i] = rank - 1 - i;
    enum rfx_status status = rfx_onnx_attr_ints(ctx, "perm", (size_t)rank, perm);
    if (status != RFX_OK || rank == 0 || perm[0] == 0) return status;
    return refuse(ctx, "it moves the batch axis");
}

static enum rfx_status check_tile(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_const *c;
    const int64_t *repeats = NULL;
    enum rfx_status status = rfx_onnx_in_const(ctx, 1, &c);
    if (status == RFX_OK) status = rfx_onnx_const_ints(ctx, c, &repeats);
    if (status != RFX_OK || (c->elems == rank_of(ctx, 0) && c->elems > 0 && repeats[0] == 1))
        return status;
    return refuse(ctx, "it repeats the batch");
}

static enum rfx_status check_gather(struct rfx_onnx_import *ctx) {
    if (!is_computed(rfx_onnx_in(ctx, 0)) || is_computed(rfx_onnx_in(ctx, 1)))
        return refuse(ctx, "its indices are computed");
    return not_the_batch(ctx, rfx_onnx_attr_int(ctx, "axis", 0), rank_of(ctx, 0));
}

static enum rfx_status check_sum_along(struct rfx_onnx_import *ctx) {
    int axis;
    enum rfx_status status = rfx_onnx_sum_axis(ctx, rank_of(ctx, 0), &axis);
    return status == RFX_OK ? not_the_batch(ctx, axis, rank_of(ctx, 0)) : status;
}

static const struct rule_row *row_of(const char *op) {
    char word[64];
    int n = snprintf(word, sizeof word, " %s ", op);
    for (size_t i = 0; n < (int)sizeof word && i < sizeof rule_rows / sizeof rule_rows[0]; i++)
        if (strstr(rule_rows[i].ops, word) != NULL) return &rule_rows[i];
    return rfx_act_find(op) != RFX_ACT_COUNT ? &rule_rows[0] : NULL;
}

enum rfx_status rfx_onnx_batch_node(struct rfx_onnx_import *ctx) {
    const struct rule_row *row = row_of(ctx->node->op);
    bool any = false;
    for (size_t k = 0; k < ctx->node->n_in; k++) any = any || is_computed(rfx_onnx_in(ctx, k));
    if (row == NULL) return refuse(ctx, "as far as is known");
    if (!any) return refuse(ctx, "its operands are constants");
    switch (row->rule) {
        case EACH:
            return RFX_OK;
        case BROADCAST:
            return check_broadcast(ctx);
        case AXIS:
            return check_axis(ctx, row->axis);
        case AXES:
            return check_axes(ctx);
        case FLATTEN:
            return not_the_batch(ctx, rfx_onnx_attr_int(ctx, "axis", 1), rank_of(ctx, 0));
        case MATMUL:
            return check_matmul(ctx);
        case GEMM:
            return check_gemm(ctx);
        case RESHAPE:
            return check_reshape(ctx);
        case EXPAND:
            return check_expand(ctx);
        case RESIZE:
            return check_resize(ctx);
        case SLICE:
            return check_slice(ctx);
        case TRANSPOSE:
            return check_transpose(ctx);
        case TILE:
            return check_tile(ctx);
        case GATHER:
            return check_gather(ctx);
        case SUM_ALONG:
            return check_sum_along(ctx);
    }
    return RFX_OK;
}
