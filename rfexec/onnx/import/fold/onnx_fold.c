/* Evaluation of operators on constants, element by element: the shape arithmetic that exporters
 * leave in a file, which needs exact integers and doubles. Other constants are computed by the
 * operators of a run (onnx_computed.c).
 * Floats are computed as doubles and rounded to their type after every operator. What is one value
 * everywhere is computed and kept once. */
#include <math.h>
#include <string.h>

#include "layers/core/checked.h"
#include "layers/core/real_math.h"
#include "rfexec/onnx/import/fold/onnx_fold.h"

enum rfx_status rfx_onnx_set_const(struct rfx_onnx_import *ctx, size_t k,
                                   struct rfx_onnx_const *c) {
    struct rfx_onnx_operand value = {-1, c};
    return rfx_onnx_set(ctx, k, value);
}

enum rfx_status rfx_onnx_fold_too_large(struct rfx_onnx_import *ctx) {
    if (ctx->out_of_memory)
        return rfx_onnx_refuse(ctx, RFX_STATUS_OUT_OF_MEMORY, "no memory for a constant");
    return rfx_onnx_refuse_size(ctx, ctx->refused_elems);
}

double rfx_onnx_round_to(int32_t type, double value) {
    return type == RFX_ONNX_DOUBLE ? value : (double)(float)value;
}

bool rfx_onnx_op_is(const struct rfx_onnx_import *ctx, const char *op) {
    return strcmp(ctx->node->op, op) == 0;
}

int64_t rfx_onnx_to_int(double value) {
    if (!(value == value)) return 0;
    if (value >= 9223372036854775807.0) return INT64_MAX;
    if (value <= -9223372036854775808.0) return INT64_MIN;
    return (int64_t)value;
}

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

/* Clip as the shape arithmetic of exporters uses it: limits that are there. */
enum rfx_status rfx_onnx_fold_clip(struct rfx_onnx_import *ctx) {
    double limits[2] = {(double)rfx_onnx_attr_float(ctx, "min", -HUGE_VALF),
                        (double)rfx_onnx_attr_float(ctx, "max", HUGE_VALF)};
    struct rfx_onnx_const *in;
    const double *reals;
    enum rfx_status status = rfx_onnx_in_const(ctx, 0, &in);
    for (size_t k = 1; status == RFX_OK && k <= 2; k++)
        if (rfx_onnx_has(ctx, k)) status = rfx_onnx_in_number(ctx, k, &limits[k - 1]);
    if (status != RFX_OK) return status;
    struct rfx_onnx_const *out = rfx_onnx_new_result(ctx, in->type, &in->shape, in->filled);
    if (out == NULL) return rfx_onnx_fold_too_large(ctx);
    status = rfx_onnx_const_stored_reals(ctx, in, &reals);
    for (int64_t i = 0; status == RFX_OK && i < rfx_onnx_const_stored(out); i++) {
        double y = reals[i] < limits[0] ? limits[0] : reals[i];
        y = y > limits[1] ? limits[1] : y;
        if (out->reals != NULL)
            rfx_onnx_const_reals_rw(out)[i] = y;
        else
            rfx_onnx_const_ints_rw(out)[i] = rfx_onnx_to_int(y);
    }
    return status == RFX_OK ? rfx_onnx_set_const(ctx, 0, out) : status;
}

struct rfx_onnx_const *rfx_onnx_new_result(struct rfx_onnx_import *ctx, int32_t type,
                                           const struct rfx_shape *shape, bool filled) {
    return filled ? rfx_onnx_const_new_filled(ctx, type, shape)
                  : rfx_onnx_const_new(ctx, type, shape);
}

bool rfx_onnx_const_is_single(const struct rfx_onnx_const *c) {
    return c->filled || c->elems == 1;
}

enum rfx_status rfx_onnx_fold_unary(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_const *in;
    enum rfx_status status = rfx_onnx_in_const(ctx, 0, &in);
    if (status != RFX_OK) return status;
    struct rfx_onnx_const *out = rfx_onnx_new_result(ctx, in->type, &in->shape, in->filled);
    if (out == NULL) return rfx_onnx_fold_too_large(ctx);
    const double *reals;
    status = rfx_onnx_const_stored_reals(ctx, in, &reals);
    if (status != RFX_OK) return status;
    for (int64_t i = 0; i < rfx_onnx_const_stored(out); i++) {
        double y = unary(ctx, reals[i]);
        if (out->reals != NULL)
            rfx_onnx_const_reals_rw(out)[i] = rfx_onnx_round_to(out->type, y);
        else
            rfx_onnx_const_ints_rw(out)[i] = rfx_onnx_to_int(y);
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

/* As the kernels: a NaN wins, and of equal values (zeros) the first stays. */
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

/* The same on integers, exact; unsigned arithmetic so that overflow wraps. */
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

bool rfx_onnx_gives_bool(const struct rfx_onnx_import *ctx) {
    static const char *const ops[] = {"Equal", "Greater",        "Less",        "And", "Xor",
                                      "Or",    "GreaterOrEqual", "LessOrEqual", "Not"};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (rfx_onnx_op_is(ctx, ops[i])) return true;
    return false;
}

/* The current node's operator on two constants. */
static enum rfx_status fold_two(struct rfx_onnx_import *ctx, struct rfx_onnx_const *a,
                                struct rfx_onnx_const *b, struct rfx_onnx_const **result) {
    struct rfx_shape shape;
    enum rfx_status status = RFX_OK;
    if (!rfx_onnx_broadcast(&a->shape, &b->shape, &shape))
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "constants that do not broadcast");
    bool real = rfx_onnx_type_is_real(a->type);
    struct rfx_onnx_const *out =
        rfx_onnx_new_result(ctx, rfx_onnx_gives_bool(ctx) ? RFX_ONNX_BOOL : a->type, &shape,
                            rfx_onnx_const_is_single(a) && rfx_onnx_const_is_single(b));
    if (out == NULL) return rfx_onnx_fold_too_large(ctx);
    const double *ra = NULL, *rb = NULL;
    const int64_t *ia = NULL, *ib = NULL;
    if (real || rfx_onnx_type_is_real(b->type)) {
        status = rfx_onnx_const_stored_reals(ctx, a, &ra);
        if (status == RFX_OK) status = rfx_onnx_const_stored_reals(ctx, b, &rb);
    } else {
        status = rfx_onnx_const_stored_ints(ctx, a, &ia);
        if (status == RFX_OK) status = rfx_onnx_const_stored_ints(ctx, b, &ib);
    }
    if (status != RFX_OK) return status;
    for (int64_t i = 0; i < rfx_onnx_const_stored(out); i++) {
        int64_t ka = rfx_onnx_const_at(a, rfx_onnx_broadcast_index(&a->shape, &shape, i));
        int64_t kb = rfx_onnx_const_at(b, rfx_onnx_broadcast_index(&b->shape, &shape, i));
        double r = ra != NULL ? binary_real(ctx, ra[ka], rb[kb]) : 0.0;
        if (out->reals != NULL)
            rfx_onnx_const_reals_rw(out)[i] = rfx_onnx_round_to(out->type, r);
        else
            rfx_onnx_const_ints_rw(out)[i] =
                ra != NULL ? rfx_onnx_to_int(r) : binary_int(ctx, ia[ka], ib[kb]);
    }
    *result = out;
    return RFX_OK;
}

enum rfx_status rfx_onnx_fold_binary(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_const *a, *b, *out;
    enum rfx_status status = rfx_onnx_in_const(ctx, 0, &a);
    if (status == RFX_OK) status = rfx_onnx_in_const(ctx, 1, &b);
    if (status == RFX_OK) status = fold_two(ctx, a, b, &out);
    return status == RFX_OK ? rfx_onnx_set_const(ctx, 0, out) : status;
}

/* Max, Min and Sum of any number of constants, from left to right. */
enum rfx_status rfx_onnx_fold_variadic(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_const *total, *next;
    enum rfx_status status = rfx_onnx_in_const(ctx, 0, &total);
    for (size_t k = 1; status == RFX_OK && k < ctx->node->n_in; k++) {
        status = rfx_onnx_in_const(ctx, k, &next);
        if (status == RFX_OK) status = fold_two(ctx, total, next, &total);
    }
    return status == RFX_OK ? rfx_onnx_set_const(ctx, 0, total) : status;
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

enum rfx_status rfx_onnx_fold_cast(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_const *in;
    enum rfx_status status = rfx_onnx_in_const(ctx, 0, &in);
    if (status != RFX_OK) return status;
    int64_t type = rfx_onnx_attr_int(ctx, "to", in->type);
    if (rfx_onnx_op_is(ctx, "CastLike")) { /* to the type of input 1; what is computed is float32 */
        const struct rfx_onnx_const *like = rfx_onnx_in(ctx, 1).constant;
        type = like == NULL ? RFX_ONNX_FLOAT : like->type;
    }
    if (type == in->type) return rfx_onnx_set_const(ctx, 0, in);
    if (type < 0 || type > 1000 || rfx_onnx_type_bytes((int32_t)type) == 0)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "cast to type %lld", (long long)type);
    struct rfx_onnx_const *out = rfx_onnx_const_new(ctx, (int32_t)type, &in->shape);
    if (out == NULL) return rfx_onnx_fold_too_large(ctx);
    const double *reals = NULL;
    const int64_t *ints = NULL;
    if (rfx_onnx_type_is_real(in->type) || out->reals != NULL)
        status = rfx_onnx_const_reals(ctx, in, &reals);
    else
        status = rfx_onnx_const_ints(ctx, in, &ints);
    if (status != RFX_OK) return status;
    for (int64_t i = 0; i < out->elems; i++) {
        if (out->reals != NULL) {
            rfx_onnx_const_reals_rw(out)[i] = rfx_onnx_round_to(out->type, reals[i]);
            continue;
        }
        int64_t v = ints != NULL                 ? ints[i]
                    : out->type == RFX_ONNX_BOOL ? (int64_t)(reals[i] != 0.0)
                                                 : rfx_onnx_to_int(reals[i]);
        rfx_onnx_const_ints_rw(out)[i] = wrap_int(out->type, v);
    }
    return rfx_onnx_set_const(ctx, 0, out);
}

static double reduced(const struct rfx_onnx_import *ctx, double total, double x) {
    if (rfx_onnx_op_is(ctx, "ReduceProd")) return total * x;
    if (rfx_onnx_op_is(ctx, "ReduceMax")) return larger(total, x);
    if (rfx_onnx_op_is(ctx, "ReduceMin")) return smaller(total, x);
    return total + x;
}

/* The axes to reduce, none given: all; and the shape with ones in their places. */
static enum rfx_status fold_axes(struct rfx_onnx_import *ctx, const struct rfx_shape *in,
                                 bool *axes, struct rfx_shape *ones) {
    const int64_t *given = NULL;
    int64_t count = 0;
    bool found;
    enum rfx_status status = rfx_onnx_list_ints(ctx, "axes", 1, &given, &count, &found);
    bool all = !rfx_onnx_attr_flag(ctx, "noop_with_empty_axes", false) && count == 0;
    for (int i = 0; i < in->rank; i++) axes[i] = all;
    for (int64_t i = 0; status == RFX_OK && i < count; i++) {
        int axis = 0;
        status = rfx_onnx_axis(ctx, given[i], in->rank, &axis);
        if (status == RFX_OK) axes[axis] = true;
    }
    *ones = *in;
    for (int i = 0; i < in->rank; i++)
        if (axes[i]) ones->dims[i] = 1;
    return status;
}

/* ReduceProd, ReduceSum, ReduceMean, ReduceMax, ReduceMin of a constant, in double. */
enum rfx_status rfx_onnx_fold_reduce(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_const *in;
    struct rfx_shape ones, kept = {0, {0}};
    bool axes[RFX_MAX_RANK] = {false}, keep = rfx_onnx_attr_flag(ctx, "keepdims", true);
    const double *reals;
    enum rfx_status status = rfx_onnx_in_const(ctx, 0, &in);
    if (status == RFX_OK) status = fold_axes(ctx, &in->shape, axes, &ones);
    if (status == RFX_OK) status = rfx_onnx_const_reals(ctx, in, &reals);
    if (status != RFX_OK) return status;
    bool sum = rfx_onnx_op_is(ctx, "ReduceSum"), product = rfx_onnx_op_is(ctx, "ReduceProd");
    if (in->elems == 0 && !sum && !product) /* of nothing: 0 and 1 */
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "on a constant without elements");
    for (int i = 0; i < ones.rank; i++)
        if (keep || !axes[i]) kept.dims[kept.rank++] = ones.dims[i];
    struct rfx_onnx_const *sums = rfx_onnx_const_new(ctx, RFX_ONNX_DOUBLE, &kept);
    struct rfx_onnx_const *out = sums == NULL ? NULL : rfx_onnx_const_new(ctx, in->type, &kept);
    if (out == NULL) return rfx_onnx_fold_too_large(ctx);
    double *totals = rfx_onnx_const_reals_rw(sums);
    bool extreme = rfx_onnx_op_is(ctx, "ReduceMax") || rfx_onnx_op_is(ctx, "ReduceMin");
    for (int64_t i = 0; i < out->elems; i++)
        totals[i] = product                            ? 1.0
                    : rfx_onnx_op_is(ctx, "ReduceMax") ? -HUGE_VAL
                    : extreme                          ? HUGE_VAL
                                                       : 0.0;
    for (int64_t i = 0; i < in->elems; i++) {
        double *total = &totals[rfx_onnx_broadcast_index(&ones, &in->shape, i)];
        *total = reduced(ctx, *total, reals[i]);
    }
    for (int64_t i = 0; i < out->elems; i++) {
        if (rfx_onnx_op_is(ctx, "ReduceMean")) totals[i] /= (double)(in->elems / out->elems);
        if (out->reals != NULL)
            rfx_onnx_const_reals_rw(out)[i] = rfx_onnx_round_to(out->type, totals[i]);
        else
            rfx_onnx_const_ints_rw(out)[i] = rfx_onnx_to_int(totals[i]);
    }
    return rfx_onnx_set_const(ctx, 0, out);
}
