/* Element types, casts, and converters for booleans and whole numbers.
 *
 * A computed value is a float32 number, whatever its type is in the file. A boolean result is 0 or
 * 1; as an operand every number except 0 is true. The type determines how casts round and wrap, and
 * the type in which outputs are written. Integers of 8 and 16 bits have the values that ONNX
 * defines: operators whose results could leave the type's range wrap around or are refused.
 * Integers of 32 and 64 bits are exact up to 2^24. */
#include <math.h>
#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/onnx/import/onnx_import.h"

bool rfx_onnx_type_is_real(int32_t type) {
    return type == RFX_ONNX_FLOAT || type == RFX_ONNX_DOUBLE || type == RFX_ONNX_FLOAT16 ||
           type == RFX_ONNX_BFLOAT16;
}

static bool type_is_integer(int32_t type) {
    enum rfx_type known = rfx_type_of_onnx(type);
    return known != RFX_TYPE_COUNT && rfx_type_is_integer(known);
}

int32_t rfx_onnx_in_type(const struct rfx_onnx_import *ctx, size_t k) {
    struct rfx_onnx_operand x = rfx_onnx_in_as_named(ctx, k);
    if (x.constant != NULL) return x.constant->type;
    return x.node >= 0 ? rfx_onnx_names_type(ctx->values, ctx->node->in[k]) : RFX_ONNX_FLOAT;
}

int32_t rfx_onnx_result_type(const struct rfx_onnx_import *ctx, size_t k) {
    static const char *const truths[] = {
        "Greater", "Less", "GreaterOrEqual", "Equal", "LessOrEqual", "And", "Or",
        "Xor",     "Not",  "IsNaN",          "IsInf", NULL};
    static const char *const indices[] = {"ArgMax", "ArgMin", "Shape", "Size", "NonZero", NULL};
    static const char *const second[] = {"TopK", "MaxPool", NULL};
    static const char *const as_1[] = {"CastLike", "Where", NULL};
    if (rfx_onnx_op_is_one_of(ctx, truths)) return RFX_ONNX_BOOL;
    if (rfx_onnx_op_is_one_of(ctx, indices)) return RFX_ONNX_INT64;
    if (k == 1 && rfx_onnx_op_is_one_of(ctx, second)) return RFX_ONNX_INT64;
    if (rfx_onnx_op_is(ctx, "Cast")) return (int32_t)rfx_onnx_attr_int(ctx, "to", RFX_ONNX_FLOAT);
    if (rfx_onnx_op_is_one_of(ctx, as_1)) return rfx_onnx_in_type(ctx, 1);
    if (rfx_onnx_op_is(ctx, "OneHot")) return rfx_onnx_in_type(ctx, 2);
    if (rfx_onnx_op_is(ctx, "QuantizeLinear")) {
        int64_t type = rfx_onnx_attr_int(ctx, "output_dtype", 0);
        if (rfx_onnx_has(ctx, 2)) return rfx_onnx_in_type(ctx, 2);
        return type == 0 ? RFX_ONNX_UINT8 : (int32_t)type;
    }
    return rfx_onnx_op_is(ctx, "DequantizeLinear") ? RFX_ONNX_FLOAT : rfx_onnx_in_type(ctx, 0);
}

/* Returns the node of whole numbers modulo 2^8 or 2^16, the wrap-around of the integer type:
 * x - 2^bits * floor((x - lo) / 2^bits). It is exact for whole numbers up to 2^24. */
static int wrap(struct rfx_onnx_import *ctx, int32_t type, int in) {
    bool wide = type == RFX_ONNX_UINT16 || type == RFX_ONNX_INT16;
    bool is_signed = type == RFX_ONNX_INT8 || type == RFX_ONNX_INT16;
    float count = wide ? 65536.0f : 256.0f;
    int map = rfx_onnx_elements_behind(ctx, in), order = ctx->order;
    if (map >= 0) in = map;
    int turns = rfx_onnx_scale_shift(ctx, "/turns", in, 1.0f / count, is_signed ? 0.5f : 0.0f);
    turns = rfx_onnx_apply(ctx, "/whole_turns", turns, RFX_ACT_FLOOR);
    turns = rfx_onnx_scale_shift(ctx, "/back", turns, -count, 0.0f);
    int out =
        rfx_onnx_combine(ctx, RFX_BINARY_ADD, "/wrapped", rfx_onnx_of(in), rfx_onnx_of(turns));
    ctx->order = order;
    return rfx_onnx_ordered(ctx, out, map >= 0);
}

int rfx_onnx_keep_type(struct rfx_onnx_import *ctx, int32_t type, int node) {
    static const char *const keep[] = {
        "Cast",           "CastLike",  "Clip",     "Compress",     "Concat",
        "DepthToSpace",   "Dropout",   "Expand",   "Flatten",      "Gather",
        "GatherElements", "GatherND",  "Identity", "Max",          "MaxPool",
        "MaxUnpool",      "Min",       "Mod",      "OneHot",       "Pad",
        "ReduceMax",      "ReduceMin", "Relu",     "Reshape",      "ScatterElements",
        "ScatterND",      "Sign",      "Slice",    "SpaceToDepth", "Split",
        "Squeeze",        "Tile",      "TopK",     "Transpose",    "Trilu",
        "Unsqueeze",      "Where",     NULL};
    static const char *const leave[] = {"Add", "Sub", "Neg", "Abs", "Div", NULL};
    static const char *const resize[] = {"Resize", "Upsample", NULL};
    bool nearest = strcmp(rfx_onnx_attr_string(ctx, "mode", "nearest"), "nearest") == 0;
    bool bytes = type == RFX_ONNX_UINT8 || type == RFX_ONNX_INT8;
    bool narrow = type >= RFX_ONNX_UINT8 && type <= RFX_ONNX_INT16;
    if (!narrow || ctx->is_of_constants || rfx_onnx_op_is_one_of(ctx, keep) ||
        (nearest && rfx_onnx_op_is_one_of(ctx, resize)))
        return node;
    if (rfx_onnx_op_is_one_of(ctx, leave) || (bytes && rfx_onnx_op_is(ctx, "Mul")))
        return wrap(ctx, type, node);
    return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                           "on computed integers of %d bits; cast them to float or int32 before it",
                           bytes ? 8 : 16);
}

enum rfx_type rfx_onnx_stored_type(int32_t type) {
    enum rfx_type known = rfx_type_of_onnx(type);
    return rfx_type_is_stored(known) ? known : RFX_TYPE_FLOAT32;
}

int64_t rfx_onnx_most_index(const struct rfx_onnx_import *ctx, int node) {
    const struct rfx_node *n = &ctx->graph->nodes[node];
    if (n->op != RFX_OP_CHANNEL_REDUCE || !rfx_reduce_is_arg(n->attr.reduce.kind) ||
        n->act.kind != RFX_ACT_NONE)
        return 0;
    return rfx_max_i64(ctx->graph->nodes[n->in[0]].out.c - 1, 1);
}

/* --- which tensors hold whole numbers --- */

static bool is_binary(const struct rfx_node *node) {
    return node->op == RFX_OP_BINARY || node->op == RFX_OP_PLAIN_BINARY;
}

/* Returns whether the operator of a node gives only 0 and 1. */
static bool is_boolean(const struct rfx_node *node) {
    if (node->op == RFX_OP_ACTIVATION) return node->act.kind == RFX_ACT_NOT;
    enum rfx_binary_kind kind = node->attr.binary.kind;
    return is_binary(node) && kind >= RFX_BINARY_GREATER && kind <= RFX_BINARY_XOR;
}

static bool is_index(const struct rfx_node *node) {
    bool reduces = node->op == RFX_OP_REDUCE || node->op == RFX_OP_CHANNEL_REDUCE;
    return node->op == RFX_OP_TOP_K || node->op == RFX_OP_POOL_PLACE ||
           (reduces && rfx_reduce_is_arg(node->attr.reduce.kind));
}

static bool rounds(const struct rfx_node *node) {
    enum rfx_act_kind kind = node->act.kind;
    return node->op == RFX_OP_ACTIVATION && (kind == RFX_ACT_FLOOR || kind == RFX_ACT_CEIL ||
                                             kind == RFX_ACT_ROUND || kind == RFX_ACT_SIGN);
}

static bool is_whole_constant(const struct rfx_graph *graph, const struct rfx_node *node) {
    enum { MOST = 4096 };
    const struct rfx_weight *weight = &graph->weights[node->attr.constant.weight];
    float values[64];
    struct rfx_error ignored;
    if (weight->elems > MOST) return false;
    for (int64_t i = 0; i < weight->elems; i += 64) {
        int64_t n = rfx_min_i64(64, weight->elems - i);
        if (rfx_weight_read(weight, i, n, values, &ignored) != RFX_OK) return false;
        for (int64_t k = 0; k < n; k++)
            if (values[k] != floorf(values[k])) return false;
    }
    return true;
}

/* Returns how many of a node's inputs, beginning with the first, must hold whole numbers so that
 * the result does. 0: no inputs guarantee that. */
static int inputs_that_matter(const struct rfx_node *node) {
    enum rfx_binary_kind kind = node->attr.binary.kind;
    if (is_binary(node)) {
        bool keeps = kind == RFX_BINARY_ADD || kind == RFX_BINARY_SUB || kind == RFX_BINARY_MUL ||
                     kind == RFX_BINARY_MAX || kind == RFX_BINARY_MIN || kind == RFX_BINARY_MOD;
        return keeps && node->act.kind == RFX_ACT_NONE ? node->n_in : 0;
    }
    switch ((int)node->op) {
        case RFX_OP_PLAIN_CONCAT:
        case RFX_OP_CONCAT:
            return node->n_in;
        case RFX_OP_TO_PLAIN:
        case RFX_OP_TO_NHWC:
        case RFX_OP_RESHAPE:
        case RFX_OP_TRANSPOSE:
        case RFX_OP_PLAIN_SLICE:
        case RFX_OP_PLAIN_GATHER:
        case RFX_OP_PICK:
            return 1;
        default:
            return 0;
    }
}

/* Returns whether a node's tensor holds only whole numbers because it is computed from indices,
 * constants and, if `any`, results of rounding and comparing. A cast to integers changes no such
 * number. Follows at most `steps` nodes back. */
static bool is_whole(const struct rfx_graph *graph, int at, bool any, int steps) {
    const struct rfx_node *node = &graph->nodes[at];
    if (rfx_node_is_constant(node)) return is_whole_constant(graph, node);
    if (is_index(node) || (any && (is_boolean(node) || rounds(node)))) return true;
    bool chooses = is_binary(node) && (node->attr.binary.kind == RFX_BINARY_IF ||
                                       node->attr.binary.kind == RFX_BINARY_UNLESS);
    if (chooses) /* the result is in[1] or -0 */
        return steps > 0 && is_whole(graph, node->in[1], any, steps - 1);
    int n = inputs_that_matter(node);
    bool whole = n > 0 && steps > 0;
    for (int k = 0; whole && k < n; k++) whole = is_whole(graph, node->in[k], any, steps - 1);
    return whole;
}

enum { MOST_STEPS = 8 };

bool rfx_onnx_is_whole(const struct rfx_onnx_import *ctx, int node) {
    return is_whole(ctx->graph, node, true, MOST_STEPS);
}

/* Numbers below 0 are rounded up, numbers above 0 are rounded down. */
int rfx_onnx_towards_zero(struct rfx_onnx_import *ctx, const char *suffix, int in) {
    int low = rfx_onnx_act(ctx, "/below", in, RFX_ACT_CLIP, -HUGE_VALF, 0.0f);
    low = rfx_onnx_apply(ctx, "/up", low, RFX_ACT_CEIL);
    int high = rfx_onnx_act(ctx, "/above", in, RFX_ACT_CLIP, 0.0f, HUGE_VALF);
    high = rfx_onnx_apply(ctx, "/down", high, RFX_ACT_FLOOR);
    return rfx_onnx_combine(ctx, RFX_BINARY_ADD, suffix, rfx_onnx_of(low), rfx_onnx_of(high));
}

/* --- casts --- */

/* Returns whether the range of type `to` contains all whole numbers of type `from`, or all of this
 * node. */
static bool fits_type(const struct rfx_onnx_import *ctx, int node, int32_t from, int32_t to) {
    float lo, hi, from_lo, from_hi;
    rfx_type_limits(rfx_onnx_stored_type(to), &lo, &hi);
    if (to == RFX_ONNX_INT32 || to == RFX_ONNX_INT64 || from == RFX_ONNX_BOOL) return true;
    int64_t most = rfx_onnx_most_index(ctx, node);
    if (most > 0) return (float)most <= hi;
    if (from == RFX_ONNX_UINT32 || from == RFX_ONNX_UINT64) return false;
    rfx_type_limits(rfx_onnx_stored_type(from), &from_lo, &from_hi);
    return from_lo >= lo && from_hi <= hi;
}

/* Returns the node of a cast to integers. Floats are rounded towards zero and clipped to the range
 * of the type; integers lose their upper bits. */
static int to_integers(struct rfx_onnx_import *ctx, int32_t to, int in) {
    int32_t from = rfx_onnx_in_type(ctx, 0);
    bool whole = type_is_integer(from) || from == RFX_ONNX_BOOL;
    float lo, hi;
    if (in < 0 || (whole && fits_type(ctx, in, from, to))) return in;
    if (whole) return wrap(ctx, to, in);
    rfx_type_limits(rfx_onnx_stored_type(to), &lo, &hi);
    bool rounded = rfx_onnx_is_whole(ctx, in);
    if (rounded && (to == RFX_ONNX_INT32 || to == RFX_ONNX_INT64)) return in;
    int out = rfx_onnx_act(ctx, "/range", in, RFX_ACT_CLIP, lo, hi);
    return rounded ? out : rfx_onnx_towards_zero(ctx, "", out);
}

/* Returns the node of a cast. A cast to floats does nothing: networks of half precision are
 * computed in float32. A cast to bool is not(not(x)). */
static int cast_to(struct rfx_onnx_import *ctx, int64_t to) {
    bool last;
    if (to == (int32_t)to && rfx_onnx_type_is_real((int32_t)to)) return rfx_onnx_identity(ctx);
    if (to != RFX_ONNX_BOOL && (to < RFX_ONNX_UINT8 || to > RFX_ONNX_INT64))
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                               "cast of a computed tensor to type %lld; floats, as float32, bool "
                               "and integers but uint32 and uint64 are supported",
                               (long long)to);
    int in = rfx_onnx_elements(ctx, &last), order = ctx->order, out = in;
    if (in < 0) return -1;
    if (to != RFX_ONNX_BOOL)
        out = to_integers(ctx, (int32_t)to, in);
    else if (!is_boolean(&ctx->graph->nodes[in]))
        out = rfx_onnx_apply(ctx, "", rfx_onnx_apply(ctx, "/not", in, RFX_ACT_NOT), RFX_ACT_NOT);
    if (out == in) return rfx_onnx_identity(ctx);
    ctx->order = order;
    return rfx_onnx_ordered(ctx, out, last);
}

int rfx_onnx_cast(struct rfx_onnx_import *ctx) {
    return cast_to(ctx, rfx_onnx_attr_int(ctx, "to", RFX_ONNX_FLOAT));
}

/* CastLike: a cast to the type of input 1. */
int rfx_onnx_cast_like(struct rfx_onnx_import *ctx) {
    (void)rfx_onnx_need(ctx, 1);
    if (rfx_onnx_in(ctx, 0).constant != NULL) return rfx_onnx_fold_cast(ctx);
    return cast_to(ctx, rfx_onnx_in_type(ctx, 1));
}

/* --- logic and whole numbers --- */

int rfx_onnx_not(struct rfx_onnx_import *ctx) {
    bool last;
    int in = rfx_onnx_elements(ctx, &last);
    return rfx_onnx_ordered(ctx, rfx_onnx_apply(ctx, "", in, RFX_ACT_NOT), last);
}

/* IsNaN: not(x == x), as a NaN does not equal itself. */
int rfx_onnx_is_nan(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_operand x = rfx_onnx_in(ctx, 0);
    int same = rfx_onnx_combine(ctx, RFX_BINARY_EQUAL, "/number", x, x);
    return rfx_onnx_apply(ctx, "", same, RFX_ACT_NOT);
}

/* IsInf: x equals an infinity. If both signs count, |x| is compared. If neither counts, x < x is
 * false everywhere. */
int rfx_onnx_is_inf(struct rfx_onnx_import *ctx) {
    bool negative = rfx_onnx_attr_flag(ctx, "detect_negative", true);
    bool positive = rfx_onnx_attr_flag(ctx, "detect_positive", true);
    struct rfx_onnx_operand x = rfx_onnx_in(ctx, 0), to = x;
    x = rfx_onnx_of(rfx_onnx_any(ctx, x));
    if (negative && positive) x.node = rfx_onnx_apply(ctx, "/magnitude", x.node, RFX_ACT_ABS);
    if (!negative && !positive) return rfx_onnx_combine(ctx, RFX_BINARY_LESS, "", x, to);
    to = rfx_onnx_of_const(rfx_onnx_const_number(ctx, positive ? HUGE_VAL : -HUGE_VAL));
    return rfx_onnx_combine(ctx, RFX_BINARY_EQUAL, "", x, to);
}

/* The sum of two terms: a where the condition holds, else -0; and b where it does not hold, else
 * -0. Adding -0 changes no number, not even -0. */
int rfx_onnx_choose(struct rfx_onnx_import *ctx, struct rfx_onnx_operand condition,
                    struct rfx_onnx_operand a, struct rfx_onnx_operand b) {
    int chosen = rfx_onnx_combine(ctx, RFX_BINARY_IF, "/if", condition, a);
    int other = rfx_onnx_combine(ctx, RFX_BINARY_UNLESS, "/unless", condition, b);
    return rfx_onnx_combine(ctx, RFX_BINARY_ADD, "", rfx_onnx_of(chosen), rfx_onnx_of(other));
}

int rfx_onnx_where(struct rfx_onnx_import *ctx) {
    return rfx_onnx_choose(ctx, rfx_onnx_in(ctx, 0), rfx_onnx_in(ctx, 1), rfx_onnx_in(ctx, 2));
}

/* Mod. With fmod = 1 the remainder has the sign of a. Otherwise it has the sign of b: b is added
 * where the signs of the remainder and of b differ. */
int rfx_onnx_mod(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_operand a = rfx_onnx_in(ctx, 0), b = rfx_onnx_in(ctx, 1), sign[2];
    bool floors = !rfx_onnx_attr_flag(ctx, "fmod", false);
    struct rfx_onnx_operand r =
        rfx_onnx_of(rfx_onnx_combine(ctx, RFX_BINARY_MOD, floors ? "/remainder" : "", a, b));
    if (!floors) return r.node;
    for (int k = 0; k < 2; k++) {
        int x = rfx_onnx_any(ctx, k == 0 ? r : b);
        sign[k] = rfx_onnx_of(rfx_onnx_apply(ctx, "/sign", x, RFX_ACT_SIGN));
    }
    int differ = rfx_onnx_combine(ctx, RFX_BINARY_MUL, "/signs", sign[0], sign[1]);
    differ = rfx_onnx_act(ctx, "/differ", differ, RFX_ACT_CLIP, -1.0f, 0.0f);
    int addend = rfx_onnx_combine(ctx, RFX_BINARY_IF, "/addend", rfx_onnx_of(differ), b);
    return rfx_onnx_combine(ctx, RFX_BINARY_ADD, "", r, rfx_onnx_of(addend));
}

/* Div. Both operands have the same type, so if one is known to be integers, the other is too. The
 * quotient of integers is rounded towards zero. A float32 division of whole numbers up to 2^24
 * never rounds up to the next whole number; a product with the reciprocal could. */
int rfx_onnx_div(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_operand x[2] = {rfx_onnx_in(ctx, 0), rfx_onnx_in(ctx, 1)};
    bool integers = false, indices = true;
    for (int k = 0; k < 2; k++) {
        integers = integers || type_is_integer(rfx_onnx_in_type(ctx, (size_t)k));
        indices = indices && x[k].node >= 0 && is_whole(ctx->graph, x[k].node, false, MOST_STEPS);
    }
    if (indices && !integers)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                               "a quotient of two computed indices, whose type may be integer or "
                               "float");
    if (!integers) return rfx_onnx_binary(ctx);
    for (int k = 0; k < 2; k++) x[k] = rfx_onnx_of(rfx_onnx_any(ctx, x[k]));
    int quotient = rfx_onnx_combine(ctx, RFX_BINARY_DIV, "/quotient", x[0], x[1]);
    return rfx_onnx_towards_zero(ctx, "", quotient);
}

/* Dropout does nothing at inference. In training mode its result is random, and it is refused. */
int rfx_onnx_dropout(struct rfx_onnx_import *ctx) {
    double ratio = rfx_onnx_in_number_or(ctx, 1, 0.5), trains = rfx_onnx_in_number_or(ctx, 2, 0.0);
    if (ctx->opset < 7) {
        trains = rfx_onnx_attr_flag(ctx, "is_test", false) ? 0.0 : 1.0;
        ratio = (double)rfx_onnx_attr_float(ctx, "ratio", 0.5f);
    }
    if (trains != 0.0 && ratio != 0.0)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                               "training_mode with a ratio of %g: export the model for inference",
                               ratio);
    return rfx_onnx_identity(ctx);
}
