/* Exact evaluation of operators on small constants. Exporters leave arithmetic on shapes in a file,
 * which needs exact integers and doubles. Other constants are computed by the operators of a run
 * (onnx_computed.c).
 *
 * Floats are computed as doubles and rounded to their type after every operator. Of a constant
 * whose elements are all equal, one element is computed and stored. */
#include <math.h>
#include <string.h>

#include "layers/core/checked.h"
#include "layers/core/real_math.h"
#include "rfexec/onnx/import/onnx_import.h"

/* --- element by element --- */

static double unary(const struct rfx_onnx_import *ctx, double x) {
    if (rfx_onnx_op_is(ctx, "Floor")) return floor(x);
    if (rfx_onnx_op_is(ctx, "Ceil")) return ceil(x);
    if (rfx_onnx_op_is(ctx, "Round")) return rint(x);
    if (rfx_onnx_op_is(ctx, "Sqrt")) return sqrt(x);
    if (rfx_onnx_op_is(ctx, "Reciprocal")) return 1.0 / x;
    if (rfx_onnx_op_is(ctx, "Neg")) return -x;
    if (rfx_onnx_op_is(ctx, "Abs")) return fabs(x);
    return x == 0.0 ? 1.0 : 0.0; /* Not */
}

int rfx_onnx_fold_unary(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_const *in = rfx_onnx_in_const(ctx, 0);
    if (in == NULL) return -1;
    struct rfx_onnx_const *out = rfx_onnx_const_new_filled(ctx, in->type, &in->shape, in->filled);
    const double *reals = rfx_onnx_const_stored_reals(ctx, in);
    for (int64_t i = 0; reals != NULL && i < rfx_onnx_const_stored(out); i++)
        rfx_onnx_const_put(out, i, unary(ctx, reals[i]));
    return rfx_onnx_set_const(ctx, 0, out);
}

/* Clip. The limits are attributes or inputs 1 and 2; without a limit that side is not clipped. */
int rfx_onnx_fold_clip(struct rfx_onnx_import *ctx) {
    double lo = (double)rfx_onnx_attr_float(ctx, "min", -HUGE_VALF);
    double hi = (double)rfx_onnx_attr_float(ctx, "max", HUGE_VALF);
    struct rfx_onnx_const *in = rfx_onnx_in_const(ctx, 0);
    lo = rfx_onnx_in_number_or(ctx, 1, lo);
    hi = rfx_onnx_in_number_or(ctx, 2, hi);
    if (rfx_onnx_failed(ctx)) return -1;
    struct rfx_onnx_const *out = rfx_onnx_const_new_filled(ctx, in->type, &in->shape, in->filled);
    const double *reals = rfx_onnx_const_stored_reals(ctx, in);
    for (int64_t i = 0; reals != NULL && i < rfx_onnx_const_stored(out); i++) {
        double y = reals[i] < lo ? lo : reals[i];
        y = y > hi ? hi : y;
        if (out->reals != NULL)
            rfx_onnx_const_reals_rw(out)[i] = y;
        else
            rfx_onnx_const_put(out, i, y);
    }
    return rfx_onnx_set_const(ctx, 0, out);
}

bool rfx_onnx_broadcast(const struct rfx_shape *a, const struct rfx_shape *b,
                        struct rfx_shape *out) {
    out->rank = a->rank > b->rank ? a->rank : b->rank;
    for (int i = 0; i < out->rank; i++) {
        int ia = i - (out->rank - a->rank), ib = i - (out->rank - b->rank);
        int64_t da = ia < 0 ? 1 : a->dims[ia], db = ib < 0 ? 1 : b->dims[ib];
        if (da != db && da != 1 && db != 1) return false;
        out->dims[i] = da == 1 ? db : da;
    }
    return true;
}

int64_t rfx_onnx_broadcast_index(const struct rfx_shape *in, const struct rfx_shape *out,
                                 int64_t flat) {
    int64_t index = 0, stride = 1;
    for (int i = out->rank - 1; i >= 0; i--) {
        int64_t at = flat % out->dims[i];
        flat /= out->dims[i];
        int k = i - (out->rank - in->rank);
        if (k < 0) continue;
        if (in->dims[k] != 1) index += at * stride;
        stride *= in->dims[k];
    }
    return index;
}

/* Return the larger and the smaller number, as the kernels do: a NaN wins, and of equal numbers (0
 * and -0) the first is returned. */
static double larger(double a, double b) {
    return a != a || b <= a ? a : b;
}

static double smaller(double a, double b) {
    return a != a || b >= a ? a : b;
}

static double binary_real(const struct rfx_onnx_import *ctx, double a, double b) {
    if (rfx_onnx_op_is(ctx, "Add") || rfx_onnx_op_is(ctx, "Sum")) return a + b;
    if (rfx_onnx_op_is(ctx, "Sub")) return a - b;
    if (rfx_onnx_op_is(ctx, "Mul")) return a * b;
    if (rfx_onnx_op_is(ctx, "Div")) return a / b;
    if (rfx_onnx_op_is(ctx, "Pow")) return rfx_pow(a, b);
    if (rfx_onnx_op_is(ctx, "Max")) return larger(a, b);
    if (rfx_onnx_op_is(ctx, "Min")) return smaller(a, b);
    if (rfx_onnx_op_is(ctx, "Equal")) return a == b;
    if (rfx_onnx_op_is(ctx, "Greater")) return a > b;
    if (rfx_onnx_op_is(ctx, "Less")) return a < b;
    if (rfx_onnx_op_is(ctx, "GreaterOrEqual")) return a >= b;
    if (rfx_onnx_op_is(ctx, "LessOrEqual")) return a <= b;
    if (rfx_onnx_op_is(ctx, "And")) return a != 0.0 && b != 0.0;
    if (rfx_onnx_op_is(ctx, "Or")) return a != 0.0 || b != 0.0;
    if (rfx_onnx_op_is(ctx, "Xor")) return (a != 0.0) != (b != 0.0);
    double r = fmod(a, b); /* Mod: the sign of b, or of a with fmod = 1 */
    bool floors = !rfx_onnx_attr_flag(ctx, "fmod", false);
    return floors && r != 0.0 && (r < 0.0) != (b < 0.0) ? r + b : r;
}

/* Applies the current operator to integers, exactly. Unsigned arithmetic makes overflow wrap. */
static int64_t binary_int(const struct rfx_onnx_import *ctx, int64_t a, int64_t b) {
    if (rfx_onnx_op_is(ctx, "Add") || rfx_onnx_op_is(ctx, "Sum"))
        return (int64_t)((uint64_t)a + (uint64_t)b);
    if (rfx_onnx_op_is(ctx, "Sub")) return (int64_t)((uint64_t)a - (uint64_t)b);
    if (rfx_onnx_op_is(ctx, "Mul")) return (int64_t)((uint64_t)a * (uint64_t)b);
    bool safe = b != 0 && !(a == INT64_MIN && b == -1);
    if (rfx_onnx_op_is(ctx, "Div")) return safe ? a / b : 0;
    if (rfx_onnx_op_is(ctx, "Mod")) {
        int64_t r = safe ? a % b : 0;
        bool floors = !rfx_onnx_attr_flag(ctx, "fmod", false);
        return floors && r != 0 && (r < 0) != (b < 0) ? r + b : r;
    }
    if (rfx_onnx_op_is(ctx, "Max")) return a > b ? a : b;
    if (rfx_onnx_op_is(ctx, "Min")) return a < b ? a : b;
    if (rfx_onnx_op_is(ctx, "Equal")) return a == b;
    if (rfx_onnx_op_is(ctx, "Greater")) return a > b;
    if (rfx_onnx_op_is(ctx, "Less")) return a < b;
    if (rfx_onnx_op_is(ctx, "GreaterOrEqual")) return a >= b;
    if (rfx_onnx_op_is(ctx, "LessOrEqual")) return a <= b;
    return rfx_onnx_to_int(binary_real(ctx, (double)a, (double)b));
}

static bool is_single(const struct rfx_onnx_const *c) {
    return c->filled || c->elems == 1;
}

/* Applies the current node's operator to two constants. Returns NULL after an error. */
static struct rfx_onnx_const *fold_two(struct rfx_onnx_import *ctx, struct rfx_onnx_const *a,
                                       struct rfx_onnx_const *b) {
    struct rfx_shape shape;
    if (a == NULL || b == NULL) return NULL;
    if (!rfx_onnx_broadcast(&a->shape, &b->shape, &shape)) {
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "constants that do not broadcast");
        return NULL;
    }
    bool real = rfx_onnx_type_is_real(a->type) || rfx_onnx_type_is_real(b->type);
    bool gives_bool = rfx_onnx_result_type(ctx, 0) == RFX_ONNX_BOOL;
    struct rfx_onnx_const *out = rfx_onnx_const_new_filled(
        ctx, gives_bool ? RFX_ONNX_BOOL : a->type, &shape, is_single(a) && is_single(b));
    const double *ra = NULL, *rb = NULL;
    const int64_t *ia = NULL, *ib = NULL;
    if (real) {
        ra = rfx_onnx_const_stored_reals(ctx, a);
        rb = rfx_onnx_const_stored_reals(ctx, b);
    } else {
        ia = rfx_onnx_const_stored_ints(ctx, a);
        ib = rfx_onnx_const_stored_ints(ctx, b);
    }
    if (rfx_onnx_failed(ctx)) return NULL;
    for (int64_t i = 0; i < rfx_onnx_const_stored(out); i++) {
        int64_t ka = rfx_onnx_const_at(a, rfx_onnx_broadcast_index(&a->shape, &shape, i));
        int64_t kb = rfx_onnx_const_at(b, rfx_onnx_broadcast_index(&b->shape, &shape, i));
        if (real || out->reals != NULL)
            rfx_onnx_const_put(out, i, real ? binary_real(ctx, ra[ka], rb[kb]) : 0.0);
        else
            rfx_onnx_const_ints_rw(out)[i] = binary_int(ctx, ia[ka], ib[kb]);
    }
    return out;
}

int rfx_onnx_fold_binary(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_const *a = rfx_onnx_in_const(ctx, 0), *b = rfx_onnx_in_const(ctx, 1);
    return rfx_onnx_set_const(ctx, 0, fold_two(ctx, a, b));
}

/* Max, Min and Sum of any number of constants, from left to right. */
int rfx_onnx_fold_variadic(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_const *total = rfx_onnx_in_const(ctx, 0);
    for (size_t k = 1; k < ctx->node->n_in; k++)
        total = fold_two(ctx, total, rfx_onnx_in_const(ctx, k));
    return rfx_onnx_set_const(ctx, 0, total);
}

static int64_t wrap_int(int32_t type, int64_t v) {
    if (type == RFX_ONNX_INT32) return (int32_t)v;
    if (type == RFX_ONNX_INT16) return (int16_t)v;
    if (type == RFX_ONNX_INT8) return (int8_t)v;
    if (type == RFX_ONNX_UINT8) return (uint8_t)v;
    if (type == RFX_ONNX_UINT16) return (uint16_t)v;
    if (type == RFX_ONNX_UINT32) return (uint32_t)v;
    return type == RFX_ONNX_BOOL ? v != 0 : v;
}

int rfx_onnx_fold_cast(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_const *in = rfx_onnx_in_const(ctx, 0);
    if (in == NULL) return -1;
    int64_t type = rfx_onnx_attr_int(ctx, "to", in->type);
    if (rfx_onnx_op_is(ctx, "CastLike")) {
        /* to the type of input 1; a computed tensor counts as float32 */
        const struct rfx_onnx_const *like = rfx_onnx_in(ctx, 1).constant;
        type = like == NULL ? RFX_ONNX_FLOAT : like->type;
    }
    if (type == in->type) return rfx_onnx_set_const(ctx, 0, in);
    if (type < 0 || type > 1000 || rfx_onnx_type_bytes((int32_t)type) == 0)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "cast to type %lld", (long long)type);
    struct rfx_onnx_const *out = rfx_onnx_const_new(ctx, (int32_t)type, &in->shape);
    if (out == NULL) return -1;
    bool reals_in = rfx_onnx_type_is_real(in->type) || out->reals != NULL;
    const double *reals = reals_in ? rfx_onnx_const_reals(ctx, in) : NULL;
    const int64_t *ints = reals_in ? NULL : rfx_onnx_const_ints(ctx, in);
    for (int64_t i = 0; !rfx_onnx_failed(ctx) && i < out->elems; i++) {
        if (out->reals != NULL) {
            rfx_onnx_const_put(out, i, reals[i]);
            continue;
        }
        int64_t v = ints != NULL                 ? ints[i]
                    : out->type == RFX_ONNX_BOOL ? (int64_t)(reals[i] != 0.0)
                                                 : rfx_onnx_to_int(reals[i]);
        rfx_onnx_const_ints_rw(out)[i] = wrap_int(out->type, v);
    }
    return rfx_onnx_set_const(ctx, 0, out);
}

int rfx_onnx_fold_where(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_const *in[3];
    const double *reals[3];
    const int64_t *ints[3];
    struct rfx_shape both, shape;
    for (size_t k = 0; k < 3; k++) {
        in[k] = rfx_onnx_in_const(ctx, k);
        rfx_onnx_numbers(ctx, in[k], &reals[k], &ints[k]);
    }
    if (rfx_onnx_failed(ctx)) return -1;
    if (ints[0] == NULL || (reals[1] == NULL) != (reals[2] == NULL) ||
        !rfx_onnx_broadcast(&in[1]->shape, &in[2]->shape, &both) ||
        !rfx_onnx_broadcast(&in[0]->shape, &both, &shape))
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "operands that do not fit");
    struct rfx_onnx_const *out = rfx_onnx_const_new(ctx, in[1]->type, &shape);
    for (int64_t i = 0; out != NULL && i < out->elems; i++) {
        int k = ints[0][rfx_onnx_broadcast_index(&in[0]->shape, &shape, i)] != 0 ? 1 : 2;
        rfx_onnx_copy_elem(out, i, reals[k], ints[k],
                           rfx_onnx_broadcast_index(&in[k]->shape, &shape, i));
    }
    return rfx_onnx_set_const(ctx, 0, out);
}

/* --- constants from attributes and shapes --- */

/* Shape (from opset 15 with attributes start and end) and Size, of constants and computed tensors.
 */
int rfx_onnx_fold_shape(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_operand in = rfx_onnx_need(ctx, 0);
    struct rfx_shape shape = *rfx_onnx_shape(ctx, in);
    if (in.constant == NULL && ctx->batch > 1 && shape.rank > 0) shape.dims[0] *= ctx->batch;
    bool size = rfx_onnx_op_is(ctx, "Size");
    int64_t rank = shape.rank;
    int64_t lo = rfx_onnx_attr_int(ctx, "start", 0), hi = rfx_onnx_attr_int(ctx, "end", rank);
    lo = rfx_min_i64(rfx_max_i64(lo < 0 ? lo + rank : lo, 0), rank);
    hi = rfx_max_i64(rfx_min_i64(rfx_max_i64(hi < 0 ? hi + rank : hi, 0), rank), lo);
    struct rfx_shape out_shape = {size ? 0 : 1, {hi - lo}};
    struct rfx_onnx_const *out = rfx_onnx_const_new(ctx, RFX_ONNX_INT64, &out_shape);
    if (out == NULL) return -1;
    int64_t *ints = rfx_onnx_const_ints_rw(out);
    if (size) ints[0] = rfx_shape_product(&shape, 0, shape.rank);
    for (int64_t i = lo; !size && i < hi; i++) ints[i - lo] = shape.dims[i];
    return rfx_onnx_set_const(ctx, 0, out);
}

/* Returns the constant that an attribute holds, or NULL when its kind is not supported. */
static struct rfx_onnx_const *const_of_attr(struct rfx_onnx_import *ctx,
                                            const struct rfx_onnx_attr *a) {
    bool list = a->kind == RFX_ONNX_ATTR_INTS || a->kind == RFX_ONNX_ATTR_FLOATS;
    bool real = a->kind == RFX_ONNX_ATTR_FLOAT || a->kind == RFX_ONNX_ATTR_FLOATS;
    struct rfx_shape shape = {list ? 1 : 0, {(int64_t)a->count}};
    if (a->kind == RFX_ONNX_ATTR_TENSOR && !a->t->external) return rfx_onnx_const_of(ctx, a->t);
    if (!list && !real && a->kind != RFX_ONNX_ATTR_INT) return NULL;
    struct rfx_onnx_const *c =
        rfx_onnx_const_new(ctx, real ? RFX_ONNX_FLOAT : RFX_ONNX_INT64, &shape);
    for (int64_t i = 0; c != NULL && i < c->elems; i++) {
        if (real)
            rfx_onnx_const_reals_rw(c)[i] = (double)(list ? a->floats[i] : a->f);
        else
            rfx_onnx_const_ints_rw(c)[i] = list ? a->ints[i] : a->i;
    }
    return c;
}

int rfx_onnx_fold_constant(struct rfx_onnx_import *ctx) {
    for (size_t i = 0; i < ctx->node->n_attrs; i++) {
        const struct rfx_onnx_attr *a = &ctx->node->attrs[i];
        if (strncmp(a->name, "value", 5) != 0) continue;
        a = rfx_onnx_attr_find(ctx, a->name); /* counts as read */
        struct rfx_onnx_const *c = const_of_attr(ctx, a);
        if (c != NULL) return rfx_onnx_set_const(ctx, 0, c);
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "attribute %.40s of this kind",
                               a->name);
    }
    return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "no dense value attribute");
}

/* Returns the shape that constant input k holds; a shape of rank 0 after an error. */
static struct rfx_shape shape_of_const(struct rfx_onnx_import *ctx, size_t k) {
    struct rfx_shape shape = {0, {0}};
    int64_t count;
    const int64_t *ints = rfx_onnx_in_ints(ctx, k, &count);
    if (count > RFX_MAX_RANK) {
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "rank %lld", (long long)count);
        return shape;
    }
    shape.rank = (int)count;
    for (int64_t i = 0; i < count; i++) shape.dims[i] = ints[i];
    return shape;
}

int rfx_onnx_fold_constant_of_shape(struct rfx_onnx_import *ctx) {
    struct rfx_shape shape = shape_of_const(ctx, 0);
    const struct rfx_onnx_attr *a = rfx_onnx_attr_find(ctx, "value");
    bool given =
        a != NULL && a->kind == RFX_ONNX_ATTR_TENSOR && a->t->elems == 1 && !a->t->external;
    struct rfx_onnx_const *out =
        rfx_onnx_const_new_filled(ctx, given ? a->t->type : RFX_ONNX_FLOAT, &shape, true);
    if (!given || out == NULL) return rfx_onnx_set_const(ctx, 0, out);
    struct rfx_onnx_const *value = rfx_onnx_const_of(ctx, a->t);
    const double *reals;
    const int64_t *ints;
    rfx_onnx_numbers(ctx, value, &reals, &ints);
    if (!rfx_onnx_failed(ctx) && out->elems > 0) rfx_onnx_copy_elem(out, 0, reals, ints, 0);
    return rfx_onnx_set_const(ctx, 0, out);
}

int rfx_onnx_fold_range(struct rfx_onnx_import *ctx) {
    const struct rfx_onnx_const *first = rfx_onnx_in_const(ctx, 0);
    double lo = rfx_onnx_in_number(ctx, 0), hi = rfx_onnx_in_number(ctx, 1);
    double step = rfx_onnx_in_number(ctx, 2);
    if (step == 0.0) return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "a step of 0");
    if (rfx_onnx_failed(ctx)) return -1;
    double count = ceil((hi - lo) / step);
    if (!(count <= (double)rfx_onnx_most_stored()))
        return rfx_onnx_refuse_size(ctx, count <= 1e18 ? (int64_t)count : INT64_MAX);
    struct rfx_shape shape = {1, {count > 0.0 ? (int64_t)count : 0}};
    struct rfx_onnx_const *out = rfx_onnx_const_new(ctx, first->type, &shape);
    for (int64_t i = 0; out != NULL && i < out->elems; i++)
        rfx_onnx_const_put(out, i, lo + (double)i * step);
    return rfx_onnx_set_const(ctx, 0, out);
}

/* --- moving elements --- */

/* Binds output 0 to a constant of shape `shape` made of elements of `in`. The element with indices
 * i[0], i[1], ... is element start + sum of i[k] * strides[k] of `in`. */
static int move_elements(struct rfx_onnx_import *ctx, struct rfx_onnx_const *in,
                         const struct rfx_shape *shape, int64_t start, const int64_t *strides) {
    const double *reals;
    const int64_t *ints;
    rfx_onnx_numbers(ctx, in, &reals, &ints);
    struct rfx_onnx_const *out =
        rfx_onnx_failed(ctx) ? NULL : rfx_onnx_const_new(ctx, in->type, shape);
    for (int64_t i = 0; out != NULL && i < out->elems; i++) {
        int64_t rest = i, index = start;
        for (int k = shape->rank - 1; k >= 0; k--) {
            index += rest % shape->dims[k] * strides[k];
            rest /= shape->dims[k];
        }
        rfx_onnx_copy_elem(out, i, reals, ints, index);
    }
    return rfx_onnx_set_const(ctx, 0, out);
}

int rfx_onnx_fold_slice(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_const *in = rfx_onnx_in_const(ctx, 0);
    int64_t strides[RFX_MAX_RANK], start = 0;
    if (in == NULL) return -1;
    struct rfx_slice_attr cut = rfx_onnx_read_cut(ctx, &in->shape);
    for (int i = 0; i < in->shape.rank; i++) {
        int64_t stride = rfx_shape_product(&in->shape, i + 1, in->shape.rank);
        strides[i] = cut.steps[i] * stride;
        start += cut.starts[i] * stride;
    }
    return move_elements(ctx, in, &cut.shape, start, strides);
}

int rfx_onnx_fold_transpose(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_const *in = rfx_onnx_in_const(ctx, 0);
    int64_t strides[RFX_MAX_RANK];
    int perm[RFX_MAX_RANK];
    if (in == NULL) return -1;
    struct rfx_shape shape = in->shape;
    rfx_onnx_perm(ctx, shape.rank, perm);
    for (int i = 0; i < shape.rank; i++) {
        shape.dims[i] = in->shape.dims[perm[i]];
        strides[i] = rfx_shape_product(&in->shape, perm[i] + 1, shape.rank);
    }
    return move_elements(ctx, in, &shape, 0, strides);
}

int rfx_onnx_fold_expand(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_const *in = rfx_onnx_in_const(ctx, 0);
    struct rfx_shape target = shape_of_const(ctx, 1), shape;
    const double *reals;
    const int64_t *ints;
    rfx_onnx_stored_numbers(ctx, in, &reals, &ints);
    if (rfx_onnx_failed(ctx)) return -1;
    if (!rfx_onnx_broadcast(&in->shape, &target, &shape))
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "shapes that do not broadcast");
    struct rfx_onnx_const *out = rfx_onnx_const_new_filled(ctx, in->type, &shape, is_single(in));
    for (int64_t i = 0; out != NULL && i < rfx_onnx_const_stored(out); i++)
        rfx_onnx_copy_elem(out, i, reals, ints,
                           rfx_onnx_const_at(in, rfx_onnx_broadcast_index(&in->shape, &shape, i)));
    return rfx_onnx_set_const(ctx, 0, out);
}

int rfx_onnx_fold_gather(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_const *in = rfx_onnx_in_const(ctx, 0), *index = rfx_onnx_in_const(ctx, 1);
    const int64_t *at = index == NULL ? NULL : rfx_onnx_const_ints(ctx, index), *ints;
    const double *reals;
    rfx_onnx_numbers(ctx, in, &reals, &ints);
    if (rfx_onnx_failed(ctx)) return -1;
    int axis = rfx_onnx_axis_attr(ctx, 0, in->shape.rank), n = 0;
    struct rfx_shape shape = {in->shape.rank - 1 + index->shape.rank, {0}};
    if (shape.rank > RFX_MAX_RANK)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "a result of rank %d", shape.rank);
    for (int i = 0; i < axis; i++) shape.dims[n++] = in->shape.dims[i];
    for (int i = 0; i < index->shape.rank; i++) shape.dims[n++] = index->shape.dims[i];
    for (int i = axis + 1; i < in->shape.rank; i++) shape.dims[n++] = in->shape.dims[i];
    struct rfx_onnx_const *out =
        rfx_onnx_failed(ctx) ? NULL : rfx_onnx_const_new(ctx, in->type, &shape);
    int64_t extent = in->shape.dims[axis];
    int64_t inner = rfx_shape_product(&in->shape, axis + 1, in->shape.rank);
    for (int64_t i = 0; out != NULL && i < out->elems; i++) {
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

int rfx_onnx_fold_concat(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_const *first = rfx_onnx_in_const(ctx, 0), *part;
    if (first == NULL) return -1;
    int axis = rfx_onnx_axis_attr(ctx, 0, first->shape.rank);
    struct rfx_shape shape = first->shape;
    shape.dims[axis] = 0;
    for (size_t k = 0; !rfx_onnx_failed(ctx) && k < ctx->node->n_in; k++) {
        part = rfx_onnx_in_const(ctx, k);
        if (part == NULL) return -1;
        bool fits = part->shape.rank == shape.rank && part->type == first->type;
        for (int i = 0; fits && i < shape.rank; i++)
            fits = i == axis || part->shape.dims[i] == shape.dims[i];
        if (!fits) return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "input %zu does not fit", k);
        if (!rfx_checked_add_i64(shape.dims[axis], part->shape.dims[axis], &shape.dims[axis]))
            return rfx_onnx_refuse_size(ctx, INT64_MAX);
    }
    struct rfx_onnx_const *out =
        rfx_onnx_failed(ctx) ? NULL : rfx_onnx_const_new(ctx, first->type, &shape);
    int64_t inner = rfx_shape_product(&shape, axis + 1, shape.rank), base = 0;
    for (size_t k = 0; !rfx_onnx_failed(ctx) && k < ctx->node->n_in; k++) {
        const double *reals;
        const int64_t *ints;
        part = rfx_onnx_in_const(ctx, k);
        rfx_onnx_numbers(ctx, part, &reals, &ints);
        if (rfx_onnx_failed(ctx)) return -1;
        int64_t run = part->shape.dims[axis] * inner;
        for (int64_t i = 0; i < part->elems; i++)
            rfx_onnx_copy_elem(out, i / run * shape.dims[axis] * inner + base + i % run, reals,
                               ints, i);
        base += run;
    }
    return rfx_onnx_set_const(ctx, 0, out);
}

/* --- reductions --- */

static double reduced(const struct rfx_onnx_import *ctx, double total, double x) {
    if (rfx_onnx_op_is(ctx, "ReduceProd")) return total * x;
    if (rfx_onnx_op_is(ctx, "ReduceMax")) return larger(total, x);
    if (rfx_onnx_op_is(ctx, "ReduceMin")) return smaller(total, x);
    return total + x;
}

/* Marks the axes to reduce; all axes when the node lists none. Returns the shape of `in` with size
 * 1 for each of these axes. */
static struct rfx_shape fold_axes(struct rfx_onnx_import *ctx, const struct rfx_shape *in,
                                  bool *axes) {
    const int64_t *given;
    int64_t count;
    struct rfx_shape ones = *in;
    (void)rfx_onnx_list_ints(ctx, "axes", 1, &given, &count);
    bool all = !rfx_onnx_attr_flag(ctx, "noop_with_empty_axes", false) && count == 0;
    for (int i = 0; i < in->rank; i++) axes[i] = all;
    for (int64_t i = 0; i < count; i++) axes[rfx_onnx_axis(ctx, given[i], in->rank)] = true;
    for (int i = 0; i < in->rank; i++)
        if (axes[i]) ones.dims[i] = 1;
    return ones;
}

/* ReduceProd, ReduceSum, ReduceMean, ReduceMax and ReduceMin of a constant, computed in double. */
int rfx_onnx_fold_reduce(struct rfx_onnx_import *ctx) {
    bool axes[RFX_MAX_RANK] = {false}, keep = rfx_onnx_attr_flag(ctx, "keepdims", true);
    bool sum = rfx_onnx_op_is(ctx, "ReduceSum"), product = rfx_onnx_op_is(ctx, "ReduceProd");
    bool max = rfx_onnx_op_is(ctx, "ReduceMax"), min = rfx_onnx_op_is(ctx, "ReduceMin");
    struct rfx_onnx_const *in = rfx_onnx_in_const(ctx, 0);
    if (in == NULL) return -1;
    struct rfx_shape ones = fold_axes(ctx, &in->shape, axes), kept = {0, {0}};
    const double *reals = rfx_onnx_const_reals(ctx, in);
    if (in->elems == 0 && !sum && !product) /* an empty sum is 0, an empty product 1 */
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "on a constant without elements");
    for (int i = 0; i < ones.rank; i++)
        if (keep || !axes[i]) kept.dims[kept.rank++] = ones.dims[i];
    struct rfx_onnx_const *sums = rfx_onnx_const_new(ctx, RFX_ONNX_DOUBLE, &kept);
    struct rfx_onnx_const *out = rfx_onnx_const_new(ctx, in->type, &kept);
    if (rfx_onnx_failed(ctx)) return -1;
    double *totals = rfx_onnx_const_reals_rw(sums);
    for (int64_t i = 0; i < out->elems; i++)
        totals[i] = product ? 1.0 : max ? -HUGE_VAL : min ? HUGE_VAL : 0.0;
    for (int64_t i = 0; i < in->elems; i++) {
        double *total = &totals[rfx_onnx_broadcast_index(&ones, &in->shape, i)];
        *total = reduced(ctx, *total, reals[i]);
    }
    for (int64_t i = 0; i < out->elems; i++) {
        if (rfx_onnx_op_is(ctx, "ReduceMean")) totals[i] /= (double)(in->elems / out->elems);
        rfx_onnx_const_put(out, i, totals[i]);
    }
    return rfx_onnx_set_const(ctx, 0, out);
}

/* --- by position --- */

int rfx_onnx_fold_trilu(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_const *in = rfx_onnx_in_const(ctx, 0);
    const double *reals;
    const int64_t *ints;
    int64_t k = rfx_onnx_diagonal(ctx);
    bool upper = rfx_onnx_attr_flag(ctx, "upper", true);
    rfx_onnx_numbers(ctx, in, &reals, &ints);
    if (rfx_onnx_failed(ctx)) return -1;
    int rank = in->shape.rank;
    if (rank < 2)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "rank %d: at least 2 is needed", rank);
    struct rfx_onnx_const *out = rfx_onnx_const_new(ctx, in->type, &in->shape);
    int64_t rows = in->shape.dims[rank - 2], cols = in->shape.dims[rank - 1];
    for (int64_t i = 0; out != NULL && i < out->elems; i++) {
        int64_t right = i % cols - i / cols % rows;
        if (upper ? right >= k : right <= k)
            rfx_onnx_copy_elem(out, i, reals, ints, i);
        else
            rfx_onnx_const_put(out, i, 0.0);
    }
    return rfx_onnx_set_const(ctx, 0, out);
}

int rfx_onnx_fold_cum_sum(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_const *in = rfx_onnx_in_const(ctx, 0);
    const double *reals;
    const int64_t *ints;
    bool exclusive = rfx_onnx_attr_flag(ctx, "exclusive", false);
    bool reverse = rfx_onnx_attr_flag(ctx, "reverse", false);
    rfx_onnx_numbers(ctx, in, &reals, &ints);
    if (rfx_onnx_failed(ctx)) return -1;
    int axis = rfx_onnx_sum_axis(ctx, in->shape.rank);
    struct rfx_onnx_const *out =
        rfx_onnx_failed(ctx) ? NULL : rfx_onnx_const_new(ctx, in->type, &in->shape);
    int64_t n = in->shape.dims[axis],
            inner = rfx_shape_product(&in->shape, axis + 1, in->shape.rank);
    for (int64_t line = 0; out != NULL && n > 0 && line < out->elems / n; line++) {
        int64_t first = line / inner * n * inner + line % inner;
        double sum = 0.0;
        uint64_t count = 0; /* sum of integers; overflow wraps */
        for (int64_t i = 0; i < n; i++) {
            int64_t at = first + (reverse ? n - 1 - i : i) * inner;
            double sum_before = sum;
            uint64_t count_before = count;
            sum += reals != NULL ? reals[at] : 0.0;
            count += ints != NULL ? (uint64_t)ints[at] : 0;
            if (out->reals != NULL)
                rfx_onnx_const_put(out, at, exclusive ? sum_before : sum);
            else
                rfx_onnx_const_ints_rw(out)[at] = (int64_t)(exclusive ? count_before : count);
        }
    }
    return rfx_onnx_set_const(ctx, 0, out);
}

/* NonZero: the positions of the elements that are not 0, one column for each. Exporters write
 * ranges as NonZero of ones. */
int rfx_onnx_fold_non_zero(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_const *in = rfx_onnx_in_const(ctx, 0);
    const double *reals = in == NULL ? NULL : rfx_onnx_const_reals(ctx, in);
    if (rfx_onnx_failed(ctx)) return -1;
    struct rfx_shape shape = {2, {in->shape.rank, 0}};
    for (int64_t i = 0; i < in->elems; i++) shape.dims[1] += reals[i] != 0.0;
    struct rfx_onnx_const *out = rfx_onnx_const_new(ctx, RFX_ONNX_INT64, &shape);
    if (out == NULL) return -1;
    int64_t *places = rfx_onnx_const_ints_rw(out), column = 0;
    for (int64_t i = 0; i < in->elems; i++) {
        if (reals[i] == 0.0) continue;
        int64_t rest = i;
        for (int d = in->shape.rank - 1; d >= 0; d--) {
            places[d * shape.dims[1] + column] = rest % in->shape.dims[d];
            rest /= in->shape.dims[d];
        }
        column++;
    }
    return rfx_onnx_set_const(ctx, 0, out);
}

/* Returns the index of the first element that the tuple `index` selects, or -1 when the tuple is
 * outside of the tensor. */
static int64_t place_of(const struct rfx_shape *shape, const int64_t *index, int64_t width) {
    int64_t at = 0;
    for (int d = 0; d < shape->rank; d++) {
        int64_t n = shape->dims[d], i = d < width ? index[d] : 0;
        if (i < -n || i >= n) return -1;
        at = at * n + (i < 0 ? i + n : i);
    }
    return at;
}

/* Returns whether `updates` has the shape that ScatterND demands: the axes of `indices` except the
 * last one, then the axes of `data` after the first `width` axes. */
static bool updates_fit(const struct rfx_shape *data, const struct rfx_shape *indices,
                        const struct rfx_shape *updates) {
    int q = indices->rank - 1;
    int64_t width = q < 0 ? 0 : indices->dims[q];
    if (width < 1 || width > data->rank || updates->rank != q + data->rank - (int)width)
        return false;
    for (int d = 0; d < updates->rank; d++) {
        int64_t n = d < q ? indices->dims[d] : data->dims[d - q + (int)width];
        if (updates->dims[d] != n) return false;
    }
    return true;
}

/* ScatterND. Exporters write masks of shifted windows with it. With a reduction, or on a large
 * constant, it is computed as in a run. */
int rfx_onnx_fold_scatter_nd(struct rfx_onnx_import *ctx) {
    enum { MOST = 1 << 20 };
    struct rfx_onnx_const *in[3];
    const double *reals[3];
    const int64_t *ints[3];
    for (size_t k = 0; k < 3; k++) in[k] = rfx_onnx_in_const(ctx, k);
    if (rfx_onnx_failed(ctx)) return -1;
    if (in[0]->elems > MOST || strcmp(rfx_onnx_attr_string(ctx, "reduction", "none"), "none") != 0)
        return rfx_onnx_scatter_nd(ctx);
    for (size_t k = 0; k < 3; k++) rfx_onnx_numbers(ctx, in[k], &reals[k], &ints[k]);
    if (rfx_onnx_failed(ctx)) return -1;
    const struct rfx_shape *shape = &in[0]->shape, *indices = &in[1]->shape;
    if (ints[1] == NULL || (reals[0] == NULL) != (reals[2] == NULL) ||
        !updates_fit(shape, indices, &in[2]->shape))
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "operands that do not fit");
    struct rfx_onnx_const *out = rfx_onnx_const_new(ctx, in[0]->type, shape);
    if (out == NULL) return -1;
    int64_t width = indices->dims[indices->rank - 1];
    int64_t run = rfx_shape_product(shape, (int)width, shape->rank);
    for (int64_t i = 0; i < out->elems; i++) rfx_onnx_copy_elem(out, i, reals[0], ints[0], i);
    for (int64_t i = 0; i * run < in[2]->elems; i++) {
        int64_t at = place_of(shape, ints[1] + i * width, width);
        if (at < 0)
            return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "update %lld lies outside",
                                   (long long)i);
        for (int64_t e = 0; e < run; e++)
            rfx_onnx_copy_elem(out, at + e, reals[2], ints[2], i * run + e);
    }
    return rfx_onnx_set_const(ctx, 0, out);
}
