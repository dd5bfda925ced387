/* Evaluation of operators on constants that make shapes, or put elements elsewhere. */
#include <math.h>
#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/onnx/import/fold/onnx_fold.h"

/* Shape (attributes start, end from opset 15) and Size, of constants and computed tensors. */
enum rfx_status rfx_onnx_fold_shape(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_operand in = rfx_onnx_in(ctx, 0);
    if (in.node < 0 && in.constant == NULL)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "input 0 is missing");
    struct rfx_shape of_batch = *rfx_onnx_shape(ctx, in);
    const struct rfx_shape *shape = &of_batch;
    if (in.constant == NULL && ctx->batch > 1 && shape->rank > 0) of_batch.dims[0] *= ctx->batch;
    bool size = rfx_onnx_op_is(ctx, "Size");
    int64_t rank = shape->rank;
    int64_t lo = rfx_onnx_attr_int(ctx, "start", 0), hi = rfx_onnx_attr_int(ctx, "end", rank);
    lo = rfx_min_i64(rfx_max_i64(lo < 0 ? lo + rank : lo, 0), rank);
    hi = rfx_max_i64(rfx_min_i64(rfx_max_i64(hi < 0 ? hi + rank : hi, 0), rank), lo);
    struct rfx_shape out_shape = {size ? 0 : 1, {hi - lo}};
    struct rfx_onnx_const *out = rfx_onnx_const_new(ctx, RFX_ONNX_INT64, &out_shape);
    if (out == NULL) return rfx_onnx_fold_too_large(ctx);
    int64_t *ints = rfx_onnx_const_ints_rw(out);
    if (size) ints[0] = rfx_onnx_product(shape, 0, shape->rank);
    for (int64_t i = lo; !size && i < hi; i++) ints[i - lo] = shape->dims[i];
    return rfx_onnx_set_const(ctx, 0, out);
}

static struct rfx_onnx_const *const_of_attr(struct rfx_onnx_import *ctx,
                                            const struct rfx_onnx_attr *a) {
    bool list = a->kind == RFX_ONNX_ATTR_INTS || a->kind == RFX_ONNX_ATTR_FLOATS;
    bool real = a->kind == RFX_ONNX_ATTR_FLOAT || a->kind == RFX_ONNX_ATTR_FLOATS;
    struct rfx_shape shape = {list ? 1 : 0, {(int64_t)a->count}};
    struct rfx_onnx_const *c =
        rfx_onnx_const_new(ctx, real ? RFX_ONNX_FLOAT : RFX_ONNX_INT64, &shape);
    if (c == NULL) return NULL;
    for (int64_t i = 0; i < c->elems; i++) {
        if (real)
            rfx_onnx_const_reals_rw(c)[i] = (double)(list ? a->floats[i] : a->f);
        else
            rfx_onnx_const_ints_rw(c)[i] = list ? a->ints[i] : a->i;
    }
    return c;
}

enum rfx_status rfx_onnx_fold_constant(struct rfx_onnx_import *ctx) {
    for (size_t i = 0; i < ctx->node->n_attrs; i++) {
        const struct rfx_onnx_attr *a = &ctx->node->attrs[i];
        if (strncmp(a->name, "value", 5) != 0) continue;
        a = rfx_onnx_attr_find(ctx, a->name); /* counts as read */
        struct rfx_onnx_const *c = NULL;
        if (a->kind == RFX_ONNX_ATTR_TENSOR && !a->t->external) c = rfx_onnx_const_of(ctx, a->t);
        if (a->kind == RFX_ONNX_ATTR_INT || a->kind == RFX_ONNX_ATTR_FLOAT ||
            a->kind == RFX_ONNX_ATTR_INTS || a->kind == RFX_ONNX_ATTR_FLOATS)
            c = const_of_attr(ctx, a);
        if (c != NULL) return rfx_onnx_set_const(ctx, 0, c);
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "attribute %.40s of this kind",
                               a->name);
    }
    return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "no dense value attribute");
}

/* The shape that a constant of integers states. */
static enum rfx_status shape_of_const(struct rfx_onnx_import *ctx, size_t k,
                                      struct rfx_shape *out) {
    struct rfx_onnx_const *c;
    const int64_t *ints;
    out->rank = 0;
    enum rfx_status status = rfx_onnx_in_const(ctx, k, &c);
    if (status == RFX_OK) status = rfx_onnx_const_ints(ctx, c, &ints);
    if (status != RFX_OK) return status;
    if (c->elems > RFX_MAX_RANK)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "rank %lld", (long long)c->elems);
    out->rank = (int)c->elems;
    for (int64_t i = 0; i < c->elems; i++) out->dims[i] = ints[i];
    return RFX_OK;
}

void rfx_onnx_copy_elem(struct rfx_onnx_const *out, int64_t i, const double *reals,
                        const int64_t *ints, int64_t index) {
    if (out->reals != NULL)
        rfx_onnx_const_reals_rw(out)[i] = reals[index];
    else
        rfx_onnx_const_ints_rw(out)[i] = ints[index];
}

enum rfx_status rfx_onnx_numbers(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c,
                                 const double **reals, const int64_t **ints) {
    return rfx_onnx_type_is_real(c->type) ? rfx_onnx_const_reals(ctx, c, reals)
                                          : rfx_onnx_const_ints(ctx, c, ints);
}

enum rfx_status rfx_onnx_fold_constant_of_shape(struct rfx_onnx_import *ctx) {
    struct rfx_shape shape;
    enum rfx_status status = shape_of_const(ctx, 0, &shape);
    if (status != RFX_OK) return status;
    const struct rfx_onnx_attr *a = rfx_onnx_attr_find(ctx, "value");
    bool given =
        a != NULL && a->kind == RFX_ONNX_ATTR_TENSOR && a->t->elems == 1 && !a->t->external;
    struct rfx_onnx_const *out =
        rfx_onnx_const_new_filled(ctx, given ? a->t->type : RFX_ONNX_FLOAT, &shape);
    if (out == NULL) return rfx_onnx_fold_too_large(ctx);
    if (!given) return rfx_onnx_set_const(ctx, 0, out);
    struct rfx_onnx_const *value = rfx_onnx_const_of(ctx, a->t);
    if (value == NULL) return rfx_onnx_fold_too_large(ctx);
    const double *reals = NULL;
    const int64_t *ints = NULL;
    status = rfx_onnx_numbers(ctx, value, &reals, &ints);
    if (status == RFX_OK && out->elems > 0) rfx_onnx_copy_elem(out, 0, reals, ints, 0);
    return status == RFX_OK ? rfx_onnx_set_const(ctx, 0, out) : status;
}

enum rfx_status rfx_onnx_fold_range(struct rfx_onnx_import *ctx) {
    double lo, hi, step;
    struct rfx_onnx_const *first;
    enum rfx_status status = rfx_onnx_in_const(ctx, 0, &first);
    if (status == RFX_OK) status = rfx_onnx_in_number(ctx, 0, &lo);
    if (status == RFX_OK) status = rfx_onnx_in_number(ctx, 1, &hi);
    if (status == RFX_OK) status = rfx_onnx_in_number(ctx, 2, &step);
    if (status != RFX_OK) return status;
    double count = step == 0.0 ? -1.0 : ceil((hi - lo) / step);
    if (step == 0.0) return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "a step of 0");
    if (!(count <= (double)rfx_onnx_most_stored()))
        return rfx_onnx_refuse_size(ctx, count <= 1e18 ? (int64_t)count : INT64_MAX);
    struct rfx_shape shape = {1, {count > 0.0 ? (int64_t)count : 0}};
    struct rfx_onnx_const *out = rfx_onnx_const_new(ctx, first->type, &shape);
    if (out == NULL) return rfx_onnx_fold_too_large(ctx);
    for (int64_t i = 0; i < out->elems; i++) {
        double v = lo + (double)i * step;
        if (out->reals != NULL)
            rfx_onnx_const_reals_rw(out)[i] = rfx_onnx_round_to(out->type, v);
        else
            rfx_onnx_const_ints_rw(out)[i] = rfx_onnx_to_int(v);
    }
    return rfx_onnx_set_const(ctx, 0, out);
}

enum rfx_status rfx_onnx_fold_where(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_const *in[3];
    const double *reals[3] = {NULL, NULL, NULL};
    const int64_t *ints[3] = {NULL, NULL, NULL};
    enum rfx_status status = RFX_OK;
    for (size_t k = 0; status == RFX_OK && k < 3; k++) {
        status = rfx_onnx_in_const(ctx, k, &in[k]);
        if (status == RFX_OK) status = rfx_onnx_numbers(ctx, in[k], &reals[k], &ints[k]);
    }
    if (status != RFX_OK) return status;
    struct rfx_shape both, shape;
    if (ints[0] == NULL || (reals[1] == NULL) != (reals[2] == NULL) ||
        !rfx_onnx_broadcast(&in[1]->shape, &in[2]->shape, &both) ||
        !rfx_onnx_broadcast(&in[0]->shape, &both, &shape))
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "operands that do not fit");
    struct rfx_onnx_const *out = rfx_onnx_const_new(ctx, in[1]->type, &shape);
    if (out == NULL) return rfx_onnx_fold_too_large(ctx);
    for (int64_t i = 0; i < out->elems; i++) {
        int k = ints[0][rfx_onnx_broadcast_index(&in[0]->shape, &shape, i)] != 0 ? 1 : 2;
        rfx_onnx_copy_elem(out, i, reals[k], ints[k],
                           rfx_onnx_broadcast_index(&in[k]->shape, &shape, i));
    }
    return rfx_onnx_set_const(ctx, 0, out);
}

enum rfx_status rfx_onnx_fold_gather(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_const *in, *index;
    const int64_t *at, *ints = NULL;
    const double *reals = NULL;
    int axis;
    enum rfx_status status = rfx_onnx_in_const(ctx, 0, &in);
    if (status == RFX_OK) status = rfx_onnx_in_const(ctx, 1, &index);
    if (status == RFX_OK) status = rfx_onnx_const_ints(ctx, index, &at);
    if (status == RFX_OK) status = rfx_onnx_numbers(ctx, in, &reals, &ints);
    if (status == RFX_OK)
        status = rfx_onnx_axis(ctx, rfx_onnx_attr_int(ctx, "axis", 0), in->shape.rank, &axis);
    if (status != RFX_OK) return status;
    struct rfx_shape shape = {in->shape.rank - 1 + index->shape.rank, {0}};
    if (shape.rank > RFX_MAX_RANK)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "a result of rank %d", shape.rank);
    int n = 0;
    for (int i = 0; i < axis; i++) shape.dims[n++] = in->shape.dims[i];
    for (int i = 0; i < index->shape.rank; i++) shape.dims[n++] = index->shape.dims[i];
    for (int i = axis + 1; i < in->shape.rank; i++) shape.dims[n++] = in->shape.dims[i];
    struct rfx_onnx_const *out = rfx_onnx_const_new(ctx, in->type, &shape);
    if (out == NULL) return rfx_onnx_fold_too_large(ctx);
    int64_t extent = in->shape.dims[axis];
    int64_t inner = rfx_onnx_product(&in->shape, axis + 1, in->shape.rank);
    for (int64_t i = 0; i < out->elems; i++) {
        int64_t k = at[i / inner % index->elems];
        if (k < -extent || k >= extent)
            return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "index %lld of %lld", (long long)k,
                                   (long long)extent);
        if (k < 0) k += extent;
        int64_t outer = i / inner / index->elems;
        rfx_onnx_copy_elem(out, i, reals, ints, (outer * extent + k) * inner + i % inner);
    }
    return rfx_onnx_set_const(ctx, 0, out);
}

enum rfx_status rfx_onnx_fold_concat(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_const *first, *part;
    enum rfx_status status = rfx_onnx_in_const(ctx, 0, &first);
    int axis;
    if (status == RFX_OK)
        status = rfx_onnx_axis(ctx, rfx_onnx_attr_int(ctx, "axis", 0), first->shape.rank, &axis);
    if (status != RFX_OK) return status;
    struct rfx_shape shape = first->shape;
    shape.dims[axis] = 0;
    for (size_t k = 0; k < ctx->node->n_in; k++) {
        status = rfx_onnx_in_const(ctx, k, &part);
        if (status != RFX_OK) return status;
        bool fits = part->shape.rank == shape.rank && part->type == first->type;
        for (int i = 0; fits && i < shape.rank; i++)
            fits = i == axis || part->shape.dims[i] == shape.dims[i];
        if (!fits) return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "input %zu does not fit", k);
        if (!rfx_checked_add_i64(shape.dims[axis], part->shape.dims[axis], &shape.dims[axis]))
            return rfx_onnx_fold_too_large(ctx);
    }
    struct rfx_onnx_const *out = rfx_onnx_const_new(ctx, first->type, &shape);
    if (out == NULL) return rfx_onnx_fold_too_large(ctx);
    int64_t inner = rfx_onnx_product(&shape, axis + 1, shape.rank);
    int64_t base = 0;
    for (size_t k = 0; k < ctx->node->n_in; k++) {
        const double *reals = NULL;
        const int64_t *ints = NULL;
        part = rfx_onnx_in(ctx, k).constant;
        status = rfx_onnx_numbers(ctx, part, &reals, &ints);
        if (status != RFX_OK) return status;
        int64_t run = part->shape.dims[axis] * inner;
        for (int64_t i = 0; i < part->elems; i++)
            rfx_onnx_copy_elem(out, i / run * shape.dims[axis] * inner + base + i % run, reals,
                               ints, i);
        base += run;
    }
    return rfx_onnx_set_const(ctx, 0, out);
}

static enum rfx_status stored_numbers(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c,
                                      const double **reals, const int64_t **ints) {
    return rfx_onnx_type_is_real(c->type) ? rfx_onnx_const_stored_reals(ctx, c, reals)
                                          : rfx_onnx_const_stored_ints(ctx, c, ints);
}

enum rfx_status rfx_onnx_fold_expand(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_const *in;
    struct rfx_shape target, shape;
    const double *reals = NULL;
    const int64_t *ints = NULL;
    enum rfx_status status = rfx_onnx_in_const(ctx, 0, &in);
    if (status == RFX_OK) status = shape_of_const(ctx, 1, &target);
    if (status == RFX_OK) status = stored_numbers(ctx, in, &reals, &ints);
    if (status != RFX_OK) return status;
    if (!rfx_onnx_broadcast(&in->shape, &target, &shape))
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "shapes that do not broadcast");
    struct rfx_onnx_const *out =
        rfx_onnx_new_result(ctx, in->type, &shape, rfx_onnx_const_is_single(in));
    if (out == NULL) return rfx_onnx_fold_too_large(ctx);
    for (int64_t i = 0; i < rfx_onnx_const_stored(out); i++)
        rfx_onnx_copy_elem(out, i, reals, ints,
                           rfx_onnx_const_at(in, rfx_onnx_broadcast_index(&in->shape, &shape, i)));
    return rfx_onnx_set_const(ctx, 0, out);
}

enum rfx_status rfx_onnx_fold_transpose(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_const *in;
    const double *reals = NULL;
    const int64_t *ints = NULL;
    enum rfx_status status = rfx_onnx_in_const(ctx, 0, &in);
    if (status != RFX_OK) return status;
    int rank = in->shape.rank;
    int64_t perm[RFX_MAX_RANK], strides[RFX_MAX_RANK];
    for (int i = 0; i < rank; i++) perm[i] = rank - 1 - i;
    status = rfx_onnx_attr_ints(ctx, "perm", (size_t)rank, perm);
    if (status == RFX_OK) status = rfx_onnx_numbers(ctx, in, &reals, &ints);
    if (status != RFX_OK) return status;
    struct rfx_shape shape = {rank, {0}};
    unsigned seen = 0;
    for (int i = 0; i < rank; i++) {
        if (perm[i] < 0 || perm[i] >= rank || (seen & (1u << perm[i])) != 0)
            return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "perm is no permutation");
        seen |= 1u << perm[i];
        shape.dims[i] = in->shape.dims[perm[i]];
        strides[i] = rfx_onnx_product(&in->shape, (int)perm[i] + 1, rank);
    }
    struct rfx_onnx_const *out = rfx_onnx_const_new(ctx, in->type, &shape);
    if (out == NULL) return rfx_onnx_fold_too_large(ctx);
    for (int64_t i = 0; i < out->elems; i++) {
        int64_t rest = i, index = 0;
        for (int k = rank - 1; k >= 0; k--) {
            index += rest % shape.dims[k] * strides[k];
            rest /= shape.dims[k];
        }
        rfx_onnx_copy_elem(out, i, reals, ints, index);
    }
    return rfx_onnx_set_const(ctx, 0, out);
}
