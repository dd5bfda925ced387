/* Conversion of DequantizeLinear: (x - zero point) scale, as a difference and a product. Weights
 * are constants, of which the graph of constants computes them when the model is loaded.
 *
 * Exact: integers of 8 and 16 bits and their differences are floats, and the product is rounded
 * once. Integers of 32 bits are rounded to float first, as in ONNX Runtime; they have no zero
 * point. */
#include "rfexec/onnx/import/fold/onnx_fold.h"

/* How scale and zero point lie along x: one for all, one per index of `axis`, or one for each
 * `block` of them; split: x with the axis in blocks. */
struct steps {
    int axis;
    int64_t block; /* 0: none */
    struct rfx_shape split, scale;
};

static enum rfx_status refuse_scale(struct rfx_onnx_import *ctx, const struct rfx_onnx_const *c,
                                    const struct steps *s) {
    return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                           "scales of rank %d with %lld elements, axis %d, block_size %lld",
                           c->shape.rank, (long long)c->elems, s->axis, (long long)s->block);
}

/* One scale, or one per index of the axis. */
static enum rfx_status along_axis(struct rfx_onnx_import *ctx, const struct rfx_onnx_const *c,
                                  const struct rfx_shape *x, struct steps *s) {
    s->split = *x;
    s->scale = (struct rfx_shape){.rank = x->rank};
    for (int i = 0; i < x->rank; i++) s->scale.dims[i] = 1;
    if (c->elems == 1) return RFX_OK;
    enum rfx_status status = rfx_onnx_axis(ctx, s->axis, x->rank, &s->axis);
    if (status != RFX_OK) return status;
    s->scale.dims[s->axis] = c->elems;
    return c->shape.rank == 1 && c->elems == x->dims[s->axis] ? RFX_OK : refuse_scale(ctx, c, s);
}

/* One scale per block of the axis: x is split into whole blocks. */
static enum rfx_status along_blocks(struct rfx_onnx_import *ctx, const struct rfx_onnx_const *c,
                                    const struct rfx_shape *x, struct steps *s) {
    enum rfx_status status = rfx_onnx_axis(ctx, s->axis, x->rank, &s->axis);
    if (status != RFX_OK) return status;
    bool fits =
        c->shape.rank == x->rank && x->rank < RFX_MAX_RANK && x->dims[s->axis] % s->block == 0;
    for (int i = 0; fits && i < x->rank; i++)
        fits = c->shape.dims[i] == (i == s->axis ? x->dims[i] / s->block : x->dims[i]);
    if (!fits) return refuse_scale(ctx, c, s);
    s->split = s->scale = (struct rfx_shape){.rank = x->rank + 1};
    for (int i = 0, at = 0; i < x->rank; i++) {
        s->split.dims[at] = s->scale.dims[at] = c->shape.dims[i];
        at++;
        if (i != s->axis) continue;
        s->split.dims[at] = s->block;
        s->scale.dims[at++] = 1;
    }
    return RFX_OK;
}

/* Constant input k in the shape of the scales. */
static enum rfx_status step_operand(struct rfx_onnx_import *ctx, size_t k, const struct steps *s,
                                    struct rfx_onnx_operand *out) {
    struct rfx_onnx_const *c;
    enum rfx_status status = rfx_onnx_in_const(ctx, k, &c);
    if (status != RFX_OK) return status;
    if (c->elems != rfx_onnx_product(&s->scale, 0, s->scale.rank))
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED,
                               "input %zu has %lld elements, not as many as the scales", k,
                               (long long)c->elems);
    *out = (struct rfx_onnx_operand){-1, rfx_onnx_const_view(ctx, c, &s->scale)};
    return out->constant != NULL
               ? RFX_OK
               : rfx_onnx_refuse(ctx, RFX_STATUS_OUT_OF_MEMORY, "no memory for a constant");
}

static enum rfx_status read_steps(struct rfx_onnx_import *ctx, const struct rfx_shape *x,
                                  struct steps *s) {
    struct rfx_onnx_const *scale;
    int64_t type = rfx_onnx_attr_int(ctx, "output_dtype", 0);
    s->axis = (int)rfx_onnx_attr_int(ctx, "axis", 1);
    s->block = rfx_onnx_attr_int(ctx, "block_size", 0);
    if (type != 0 && !rfx_onnx_type_is_real((int32_t)type))
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "output_dtype %lld", (long long)type);
    if (s->block < 0)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "block_size %lld", (long long)s->block);
    enum rfx_status status = rfx_onnx_in_const(ctx, 1, &scale);
    if (status != RFX_OK) return status;
    return s->block > 0 ? along_blocks(ctx, scale, x, s) : along_axis(ctx, scale, x, s);
}

enum rfx_status rfx_onnx_dequantise(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_operand x = rfx_onnx_in(ctx, 0), by = {-1, NULL};
    struct steps s;
    if (x.node < 0) return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "input 0 is missing");
    const struct rfx_shape shape = *rfx_onnx_shape(ctx, x);
    enum rfx_status status = read_steps(ctx, &shape, &s);
    if (status == RFX_OK && s.block > 0) {
        status = rfx_onnx_plain(ctx, x, &x.node);
        if (status == RFX_OK) status = rfx_onnx_reshape(ctx, x.node, &s.split, &x.node);
    }
    if (status == RFX_OK && rfx_onnx_has(ctx, 2)) {
        status = step_operand(ctx, 2, &s, &by);
        if (status == RFX_OK)
            status = rfx_onnx_combine(ctx, RFX_BINARY_SUB, "/from_zero", x, by, &x.node);
    }
    if (status == RFX_OK) status = step_operand(ctx, 1, &s, &by);
    if (status == RFX_OK) status = rfx_onnx_combine(ctx, RFX_BINARY_MUL, "", x, by, &x.node);
    if (status == RFX_OK && s.block > 0) status = rfx_onnx_reshape(ctx, x.node, &shape, &x.node);
    return status == RFX_OK ? rfx_onnx_set_node(ctx, x.node) : status;
}

/* float(x - zero) scale of each element of an int32 constant. */
static enum rfx_status fill_products(struct rfx_onnx_import *ctx, struct rfx_onnx_const *x,
                                     const struct steps *s, struct rfx_onnx_const *out) {
    struct rfx_onnx_operand scale, zero = {-1, NULL};
    const int64_t *ints, *zeros = NULL;
    const double *scales;
    enum rfx_status status = step_operand(ctx, 1, s, &scale);
    if (status == RFX_OK && rfx_onnx_has(ctx, 2)) status = step_operand(ctx, 2, s, &zero);
    if (status == RFX_OK) status = rfx_onnx_const_ints(ctx, x, &ints);
    if (status == RFX_OK) status = rfx_onnx_const_reals(ctx, scale.constant, &scales);
    if (status == RFX_OK && zero.constant != NULL)
        status = rfx_onnx_const_ints(ctx, zero.constant, &zeros);
    if (status != RFX_OK) return status;
    for (int64_t i = 0; i < x->elems; i++) {
        int64_t at = rfx_onnx_broadcast_index(&s->scale, &s->split, i);
        float value = (float)(ints[i] - (zeros != NULL ? zeros[at] : 0)) * (float)scales[at];
        rfx_onnx_const_reals_rw(out)[i] = rfx_onnx_round_to(out->type, (double)value);
    }
    return RFX_OK;
}

/* Integers of 32 bits, such as biases, are more than floats hold: they are folded here. */
enum rfx_status rfx_onnx_fold_dequantise(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_const *x = rfx_onnx_in_as_named(ctx, 0).constant;
    struct rfx_onnx_const *scale = rfx_onnx_in_as_named(ctx, 1).constant;
    struct steps s;
    if (x == NULL || scale == NULL || x->type != RFX_ONNX_INT32)
        return rfx_onnx_compute(ctx, rfx_onnx_dequantise);
    enum rfx_status status = read_steps(ctx, &x->shape, &s);
    if (status != RFX_OK) return status;
    struct rfx_onnx_const *out = rfx_onnx_const_new(ctx, scale->type, &x->shape);
    if (out == NULL) return rfx_onnx_fold_too_large(ctx);
    status = fill_products(ctx, x, &s, out);
    return status == RFX_OK ? rfx_onnx_set_const(ctx, 0, out) : status;
}
