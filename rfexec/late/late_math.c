/* Late operators that compute element by element, and reductions; see late_ops.h for their
 * arithmetic. */
#include <math.h>
#include <string.h>

#include "layers/core/real_math.h"
#include "rfexec/late/late_ops.h"

/* --- two operands --- */

static float larger(float a, float b) {
    return isnan(a) || a > b ? a : b; /* a NaN in b fails the comparison and is returned */
}

static float smaller(float a, float b) {
    return isnan(a) || a < b ? a : b;
}

/* Sets out[i] to an expression of x = a[i * sa] and y = b[i * sb]. */
#define EACH(result, type, expression)           \
    for (int64_t i = 0; i < n; i++) {            \
        const type x = a[i * sa], y = b[i * sb]; \
        out[i] = (result)(expression);           \
    }                                            \
    break

/* Every default of a switch over kinds is a kind that the table of operators does not combine with
 * the function. */
static void float_row(enum rfx_late_kind kind, const float *a, int64_t sa, const float *b,
                      int64_t sb, float *out, int64_t n) {
    switch ((int)kind) {
        case RFX_LATE_ADD:
            EACH(float, float, x + y);
        case RFX_LATE_SUB:
            EACH(float, float, x - y);
        case RFX_LATE_MUL:
            EACH(float, float, x *y);
        case RFX_LATE_DIV:
            EACH(float, float, x / y);
        case RFX_LATE_MAX:
            EACH(float, float, larger(x, y));
        case RFX_LATE_MIN:
            EACH(float, float, smaller(x, y));
        default:
            break;
    }
}

/* Div and Mod: of the smallest number by -1 the quotient wraps around. y is not 0. */
static int64_t quotient(int64_t x, int64_t y) {
    return y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y;
}

static int64_t remainder_of(int64_t x, int64_t y) {
    if (y == -1) return 0;
    int64_t r = x % y;
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

/* Integers are computed in 64 bits and cut to the type. */
#define DEFINE_INT_ROW(name, type)                                                      \
    static void name(enum rfx_late_kind kind, const type *a, int64_t sa, const type *b, \
                     int64_t sb, type *out, int64_t n) {                                \
        switch ((int)kind) {                                                            \
            case RFX_LATE_ADD:                                                          \
                EACH(type, int64_t, (int64_t)((uint64_t)x + (uint64_t)y));              \
            case RFX_LATE_SUB:                                                          \
                EACH(type, int64_t, (int64_t)((uint64_t)x - (uint64_t)y));              \
            case RFX_LATE_MUL:                                                          \
                EACH(type, int64_t, (int64_t)((uint64_t)x * (uint64_t)y));              \
            case RFX_LATE_DIV:                                                          \
                EACH(type, int64_t, quotient(x, y));                                    \
            case RFX_LATE_MOD:                                                          \
                EACH(type, int64_t, remainder_of(x, y));                                \
            case RFX_LATE_MAX:                                                          \
                EACH(type, int64_t, x > y ? x : y);                                     \
            case RFX_LATE_MIN:                                                          \
                EACH(type, int64_t, x < y ? x : y);                                     \
            default:                                                                    \
                break;                                                                  \
        }                                                                               \
    }
DEFINE_INT_ROW(int64_row, int64_t)
DEFINE_INT_ROW(int32_row, int32_t)

#define DEFINE_COMPARE_ROW(name, type)                                                  \
    static void name(enum rfx_late_kind kind, const type *a, int64_t sa, const type *b, \
                     int64_t sb, unsigned char *out, int64_t n) {                       \
        switch ((int)kind) {                                                            \
            case RFX_LATE_EQUAL:                                                        \
                EACH(unsigned char, type, x == y);                                      \
            case RFX_LATE_LESS:                                                         \
                EACH(unsigned char, type, x < y);                                       \
            case RFX_LATE_LESS_OR_EQUAL:                                                \
                EACH(unsigned char, type, x <= y);                                      \
            case RFX_LATE_GREATER:                                                      \
                EACH(unsigned char, type, x > y);                                       \
            case RFX_LATE_GREATER_OR_EQUAL:                                             \
                EACH(unsigned char, type, x >= y);                                      \
            default:                                                                    \
                break;                                                                  \
        }                                                                               \
    }
DEFINE_COMPARE_ROW(compare_floats, float)
DEFINE_COMPARE_ROW(compare_int64, int64_t)
DEFINE_COMPARE_ROW(compare_int32, int32_t)
DEFINE_COMPARE_ROW(compare_bools, unsigned char)

static void logic_row(enum rfx_late_kind kind, const unsigned char *a, int64_t sa,
                      const unsigned char *b, int64_t sb, unsigned char *out, int64_t n) {
    switch ((int)kind) {
        case RFX_LATE_AND:
            EACH(unsigned char, unsigned char, x &y);
        case RFX_LATE_OR:
            EACH(unsigned char, unsigned char, x | y);
        case RFX_LATE_XOR:
            EACH(unsigned char, unsigned char, x ^ y);
        default:
            break;
    }
}

/* Sets a and b to two operands of one type, and makes the result of the type `made`
 * (RFX_TYPE_COUNT: that of the operands). Returns the result's elements, or NULL. */
static unsigned char *begin_pair(struct rfx_late_call *call, enum rfx_type made,
                                 const struct rfx_late_tensor **a, const struct rfx_late_tensor **b,
                                 struct rfx_late_rows *rows) {
    *a = rfx_late_need(call, 0);
    *b = rfx_late_need(call, 1);
    if (*a == NULL || *b == NULL) return NULL;
    if ((*a)->type != (*b)->type)
        rfx_late_refuse(call, RFX_STATUS_MALFORMED, "operands of %s and %s: one type is needed",
                        rfx_type_name((*a)->type), rfx_type_name((*b)->type));
    const struct rfx_shape *const shapes[] = {&(*a)->shape, &(*b)->shape};
    rfx_late_rows_broadcast(call, shapes, 2, rows);
    return rfx_late_make(call, 0, made == RFX_TYPE_COUNT ? (*a)->type : made, &rows->shape);
}

static void refuse_type(struct rfx_late_call *call, enum rfx_type type) {
    rfx_late_refuse(call, RFX_STATUS_UNSUPPORTED, "elements of %s are not supported",
                    rfx_type_name(type));
}

/* Whether the kind can compute with b, the divisor of Div and Mod. */
static bool takes(struct rfx_late_call *call, enum rfx_late_kind kind,
                  const struct rfx_late_tensor *b) {
    const bool floats = b->type == RFX_TYPE_FLOAT32,
               divides = kind == RFX_LATE_DIV || kind == RFX_LATE_MOD;
    if (b->type == RFX_TYPE_BOOL || (kind == RFX_LATE_MOD && floats)) refuse_type(call, b->type);
    if (kind == RFX_LATE_MOD && call->node->ints[0] != 0)
        rfx_late_refuse(call, RFX_STATUS_UNSUPPORTED, "fmod %lld is not supported",
                        (long long)call->node->ints[0]);
    for (int64_t i = 0; divides && !floats && i < b->elems && call->status == RFX_OK; i++)
        if (rfx_late_int(call, b, i) == 0)
            rfx_late_refuse(call, RFX_STATUS_MALFORMED, "a divisor is 0");
    return call->status == RFX_OK;
}

#define AT(type, tensor, element) ((const type *)(tensor)->data + (element))

void rfx_late_binary(struct rfx_late_call *call) {
    const enum rfx_late_kind kind = (enum rfx_late_kind)call->node->op->kind;
    const struct rfx_late_tensor *a, *b;
    struct rfx_late_rows rows;
    unsigned char *out = begin_pair(call, RFX_TYPE_COUNT, &a, &b, &rows);
    if (out == NULL || !takes(call, kind, b)) return;
    const size_t bytes = (size_t)rows.columns * rfx_type_bytes(a->type);
    for (int64_t r = 0; r < rows.rows; r++, out += bytes, rfx_late_rows_next(&rows)) {
        if (a->type == RFX_TYPE_FLOAT32)
            float_row(kind, AT(float, a, rows.at[0]), rows.step[0], AT(float, b, rows.at[1]),
                      rows.step[1], (float *)(void *)out, rows.columns);
        else if (a->type == RFX_TYPE_INT64)
            int64_row(kind, AT(int64_t, a, rows.at[0]), rows.step[0], AT(int64_t, b, rows.at[1]),
                      rows.step[1], (int64_t *)(void *)out, rows.columns);
        else
            int32_row(kind, AT(int32_t, a, rows.at[0]), rows.step[0], AT(int32_t, b, rows.at[1]),
                      rows.step[1], (int32_t *)(void *)out, rows.columns);
    }
}

void rfx_late_compare(struct rfx_late_call *call) {
    const enum rfx_late_kind kind = (enum rfx_late_kind)call->node->op->kind;
    const struct rfx_late_tensor *a, *b;
    struct rfx_late_rows rows;
    unsigned char *out = begin_pair(call, RFX_TYPE_BOOL, &a, &b, &rows);
    for (int64_t r = 0; out != NULL && r < rows.rows; r++) {
        const int64_t *at = rows.at, *step = rows.step, n = rows.columns;
        if (a->type == RFX_TYPE_FLOAT32)
            compare_floats(kind, AT(float, a, at[0]), step[0], AT(float, b, at[1]), step[1], out,
                           n);
        else if (a->type == RFX_TYPE_INT64)
            compare_int64(kind, AT(int64_t, a, at[0]), step[0], AT(int64_t, b, at[1]), step[1], out,
                          n);
        else if (a->type == RFX_TYPE_INT32)
            compare_int32(kind, AT(int32_t, a, at[0]), step[0], AT(int32_t, b, at[1]), step[1], out,
                          n);
        else
            compare_bools(kind, AT(unsigned char, a, at[0]), step[0], AT(unsigned char, b, at[1]),
                          step[1], out, n);
        out += rows.columns;
        rfx_late_rows_next(&rows);
    }
}

void rfx_late_logic(struct rfx_late_call *call) {
    const struct rfx_late_tensor *a, *b;
    struct rfx_late_rows rows;
    unsigned char *out = begin_pair(call, RFX_TYPE_BOOL, &a, &b, &rows);
    if (out != NULL && a->type != RFX_TYPE_BOOL) refuse_type(call, a->type);
    for (int64_t r = 0; call->status == RFX_OK && r < rows.rows; r++) {
        logic_row((enum rfx_late_kind)call->node->op->kind, AT(unsigned char, a, rows.at[0]),
                  rows.step[0], AT(unsigned char, b, rows.at[1]), rows.step[1], out, rows.columns);
        out += rows.columns;
        rfx_late_rows_next(&rows);
    }
}

/* --- one operand --- */

void rfx_late_not(struct rfx_late_call *call) {
    const struct rfx_late_tensor *x = rfx_late_need(call, 0);
    if (x != NULL && x->type != RFX_TYPE_BOOL) refuse_type(call, x->type);
    unsigned char *out = x != NULL ? rfx_late_make(call, 0, RFX_TYPE_BOOL, &x->shape) : NULL;
    for (int64_t i = 0; out != NULL && i < x->elems; i++) out[i] = !AT(unsigned char, x, 0)[i];
}

void rfx_late_unary(struct rfx_late_call *call) {
    const struct rfx_late_tensor *x = rfx_late_need(call, 0);
    if (x != NULL && x->type != RFX_TYPE_FLOAT32) refuse_type(call, x->type);
    float *out = x != NULL ? rfx_late_make(call, 0, x->type, &x->shape) : NULL;
    for (int64_t i = 0; out != NULL && i < x->elems; i++) {
        float value = AT(float, x, 0)[i];
        out[i] =
            call->node->op->kind == RFX_LATE_EXP ? (float)rfx_exp((double)value) : sqrtf(value);
    }
}

/* Sets *limit to the only element of operand k; without the operand leaves it as it is. */
static void read_limit(struct rfx_late_call *call, int k, enum rfx_type type, void *limit) {
    const struct rfx_late_tensor *given = rfx_late_in(call, k);
    if (given == NULL) return;
    if (given->elems != 1 || given->type != type)
        rfx_late_refuse(call, RFX_STATUS_MALFORMED,
                        "a limit of %lld elements of %s: one of %s is needed",
                        (long long)given->elems, rfx_type_name(given->type), rfx_type_name(type));
    else
        memcpy(limit, given->data, rfx_type_bytes(type));
}

/* NaN stays NaN. */
void rfx_late_clip(struct rfx_late_call *call) {
    const struct rfx_late_tensor *x = rfx_late_need(call, 0);
    if (x == NULL) return;
    float low = -INFINITY, high = INFINITY;
    int64_t least = INT64_MIN, most = INT64_MAX;
    const bool floats = x->type == RFX_TYPE_FLOAT32;
    if (!floats && x->type != RFX_TYPE_INT64) refuse_type(call, x->type);
    read_limit(call, 1, x->type, floats ? (void *)&low : (void *)&least);
    read_limit(call, 2, x->type, floats ? (void *)&high : (void *)&most);
    void *out = rfx_late_make(call, 0, x->type, &x->shape);
    for (int64_t i = 0; out != NULL && i < x->elems; i++) {
        if (floats) {
            float value = AT(float, x, 0)[i];
            value = value < low ? low : value;
            ((float *)out)[i] = value > high ? high : value;
        } else {
            int64_t value = AT(int64_t, x, 0)[i];
            value = value < least ? least : value;
            ((int64_t *)out)[i] = value > most ? most : value;
        }
    }
}

/* Converts element i. Integers do not go through float32, which cannot hold all of them. */
static void cast_one(const struct rfx_late_tensor *x, int64_t i, enum rfx_type to, void *out) {
    int64_t whole = 0;
    if (x->type == RFX_TYPE_FLOAT32) {
        rfx_type_gather(x->type, AT(float, x, i), 1, 1, to,
                        (unsigned char *)out + (size_t)i * rfx_type_bytes(to));
        return;
    }
    if (x->type == RFX_TYPE_INT64) whole = AT(int64_t, x, 0)[i];
    if (x->type == RFX_TYPE_INT32) whole = AT(int32_t, x, 0)[i];
    if (x->type == RFX_TYPE_BOOL) whole = AT(unsigned char, x, 0)[i] != 0;
    if (to == RFX_TYPE_FLOAT32) ((float *)out)[i] = (float)whole;
    if (to == RFX_TYPE_INT64) ((int64_t *)out)[i] = whole;
    if (to == RFX_TYPE_INT32) ((int32_t *)out)[i] = (int32_t)(uint32_t)(uint64_t)whole;
    if (to == RFX_TYPE_BOOL) ((unsigned char *)out)[i] = whole != 0;
}

void rfx_late_cast(struct rfx_late_call *call) {
    const struct rfx_late_tensor *x = rfx_late_need(call, 0);
    if (x == NULL) return;
    enum rfx_type to = rfx_type_of_onnx((int32_t)call->node->ints[0]);
    if (to == RFX_TYPE_FLOAT16 || to == RFX_TYPE_BFLOAT16 || to == RFX_TYPE_FLOAT64)
        to = RFX_TYPE_FLOAT32;
    if (!rfx_late_has_type(to)) {
        rfx_late_refuse(call, RFX_STATUS_UNSUPPORTED,
                        "a cast to element type %lld is not supported",
                        (long long)call->node->ints[0]);
        return;
    }
    if (to == x->type) {
        rfx_late_identity(call);
        return;
    }
    void *out = rfx_late_make(call, 0, to, &x->shape);
    for (int64_t i = 0; out != NULL && i < x->elems; i++) cast_one(x, i, to, out);
}

void rfx_late_where(struct rfx_late_call *call) {
    const struct rfx_late_tensor *in[3];
    struct rfx_late_rows rows;
    for (int k = 0; k < 3; k++) in[k] = rfx_late_need(call, k);
    if (in[2] == NULL || in[1] == NULL || in[0] == NULL) return;
    if (in[0]->type != RFX_TYPE_BOOL || in[1]->type != in[2]->type)
        rfx_late_refuse(call, RFX_STATUS_MALFORMED,
                        "a condition of %s, and %s or %s: bool and one type are needed",
                        rfx_type_name(in[0]->type), rfx_type_name(in[1]->type),
                        rfx_type_name(in[2]->type));
    const struct rfx_shape *const shapes[] = {&in[0]->shape, &in[1]->shape, &in[2]->shape};
    rfx_late_rows_broadcast(call, shapes, 3, &rows);
    unsigned char *out = rfx_late_make(call, 0, in[1]->type, &rows.shape);
    const size_t bytes = rfx_type_bytes(in[1]->type);
    for (int64_t r = 0; out != NULL && r < rows.rows; r++, rfx_late_rows_next(&rows))
        for (int64_t i = 0; i < rows.columns; i++, out += bytes) {
            int k = AT(unsigned char, in[0], 0)[rows.at[0] + i * rows.step[0]] != 0 ? 1 : 2;
            int64_t at = rows.at[k] + i * rows.step[k];
            memcpy(out, AT(unsigned char, in[k], (size_t)at *bytes), bytes);
        }
}

/* --- reductions --- */

/* Returns the result x of a reduction with one more value y. */
static float reduce_float(enum rfx_late_kind kind, float x, float y) {
    return kind == RFX_LATE_MAX ? larger(x, y) : kind == RFX_LATE_MIN ? smaller(x, y) : x * y;
}

static int64_t reduce_int(enum rfx_late_kind kind, int64_t x, int64_t y) {
    if (kind == RFX_LATE_PROD) return (int64_t)((uint64_t)x * (uint64_t)y);
    return (kind == RFX_LATE_MAX) == (x > y) ? x : y;
}

/* Results of no elements. */
static const float no_floats[] = {
    [RFX_LATE_MAX] = -INFINITY, [RFX_LATE_MIN] = INFINITY, [RFX_LATE_PROD] = 1.0F};
static const int64_t no_ints[] = {
    [RFX_LATE_MAX] = INT64_MIN, [RFX_LATE_MIN] = INT64_MAX, [RFX_LATE_PROD] = 1};

void rfx_late_reduce(struct rfx_late_call *call) {
    const enum rfx_late_kind kind = (enum rfx_late_kind)call->node->op->kind;
    const struct rfx_late_tensor *x = rfx_late_need(call, 0);
    bool axes[RFX_MAX_RANK];
    int64_t n = 1;
    struct rfx_shape shape = {0};
    if (x == NULL) return;
    const bool floats = x->type == RFX_TYPE_FLOAT32;
    bool given = rfx_late_axes(call, 1, x->shape.rank, axes), any = false;
    if (!floats && x->type != RFX_TYPE_INT64) refuse_type(call, x->type);
    if (call->status != RFX_OK) return;
    for (int i = 0; i < x->shape.rank; i++) any = any || axes[i];
    if (!(given && any) && call->node->ints[1] != 0) {
        rfx_late_identity(call);
        return;
    }
    for (int i = 0; i < x->shape.rank; i++) {
        bool gone = axes[i] || !any;
        if (!gone || call->node->ints[0] != 0)
            shape.dims[shape.rank++] = gone ? 1 : x->shape.dims[i];
    }
    struct rfx_late_rows rows = {.shape = x->shape, .n = 1}; /* strides: of the result */
    for (int i = x->shape.rank - 1; i >= 0; i--) {
        if (axes[i] || !any) continue;
        rows.strides[0][i] = n;
        n *= x->shape.dims[i];
    }
    void *out = rfx_late_make(call, 0, x->type, &shape);
    if (out == NULL) return;
    for (int64_t i = 0; i < n; i++) {
        if (floats) ((float *)out)[i] = no_floats[kind];
        if (!floats) ((int64_t *)out)[i] = no_ints[kind];
    }
    rfx_late_rows_begin(&rows);
    for (int64_t from = 0; from < x->elems; from += rows.columns, rfx_late_rows_next(&rows))
        for (int64_t i = 0; i < rows.columns; i++) {
            const int64_t at = rows.at[0] + i * rows.step[0];
            if (floats)
                ((float *)out)[at] =
                    reduce_float(kind, ((float *)out)[at], AT(float, x, 0)[from + i]);
            else
                ((int64_t *)out)[at] =
                    reduce_int(kind, ((int64_t *)out)[at], AT(int64_t, x, 0)[from + i]);
        }
}
