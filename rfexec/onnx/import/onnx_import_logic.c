/* Conversion of what makes and takes booleans. A boolean that is computed is a number: 0 is false,
 * 1 is true; operands that are other numbers are true. */
#include <math.h>

#include "layers/core/checked.h"
#include "rfexec/onnx/import/onnx_import.h"

static enum rfx_status finish(struct rfx_onnx_import *ctx, enum rfx_status status, int out) {
    return status == RFX_OK ? rfx_onnx_set_node(ctx, out) : status;
}

static enum rfx_status negate(struct rfx_onnx_import *ctx, const char *suffix, int in, int *out) {
    return rfx_onnx_act(ctx, suffix, in, RFX_ACT_NOT, 0.0f, 0.0f, out);
}

enum rfx_status rfx_onnx_not(struct rfx_onnx_import *ctx) {
    int in, out = -1;
    bool last = false;
    enum rfx_status status = rfx_onnx_elements(ctx, &in, &last);
    if (status == RFX_OK) status = negate(ctx, "", in, &out);
    return status == RFX_OK ? rfx_onnx_set_as(ctx, out, last) : status;
}

/* A NaN is what does not equal itself. */
enum rfx_status rfx_onnx_is_nan(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_operand x = rfx_onnx_in(ctx, 0);
    int out = -1;
    enum rfx_status status = rfx_onnx_combine(ctx, RFX_BINARY_EQUAL, "/number", x, x, &out);
    if (status == RFX_OK) status = negate(ctx, "", out, &out);
    return finish(ctx, status, out);
}

static enum rfx_status number(struct rfx_onnx_import *ctx, double value,
                              struct rfx_onnx_operand *out) {
    static const struct rfx_shape scalar = {0, {0}};
    *out = (struct rfx_onnx_operand){-1, rfx_onnx_const_new(ctx, RFX_ONNX_FLOAT, &scalar)};
    if (out->constant == NULL)
        return rfx_onnx_refuse(ctx, RFX_STATUS_OUT_OF_MEMORY, "no memory for a constant");
    rfx_onnx_const_reals_rw(out->constant)[0] = value;
    return RFX_OK;
}

/* Equality with an infinity, of |x| where both signs count; x < x where none does. */
enum rfx_status rfx_onnx_is_inf(struct rfx_onnx_import *ctx) {
    bool negative = rfx_onnx_attr_flag(ctx, "detect_negative", true);
    bool positive = rfx_onnx_attr_flag(ctx, "detect_positive", true);
    struct rfx_onnx_operand x = rfx_onnx_in(ctx, 0), to = x;
    int out = -1;
    enum rfx_status status = rfx_onnx_any(ctx, x, &x.node);
    x.constant = NULL;
    if (status == RFX_OK && negative && positive)
        status = rfx_onnx_act(ctx, "/magnitude", x.node, RFX_ACT_ABS, 0.0f, 0.0f, &x.node);
    if (status == RFX_OK && (negative || positive))
        status = number(ctx, positive ? HUGE_VAL : -HUGE_VAL, &to);
    enum rfx_binary_kind kind = negative || positive ? RFX_BINARY_EQUAL : RFX_BINARY_LESS;
    if (status == RFX_OK) status = rfx_onnx_combine(ctx, kind, "", x, to, &out);
    return finish(ctx, status, out);
}

/* (a where the condition holds, else -0) + (b where it does not, else -0): adding -0 changes no
 * number, not even -0. */
enum rfx_status rfx_onnx_choose(struct rfx_onnx_import *ctx, struct rfx_onnx_operand condition,
                                struct rfx_onnx_operand a, struct rfx_onnx_operand b) {
    int out = -1;
    enum rfx_status status = rfx_onnx_combine(ctx, RFX_BINARY_IF, "/if", condition, a, &a.node);
    if (status == RFX_OK)
        status = rfx_onnx_combine(ctx, RFX_BINARY_UNLESS, "/unless", condition, b, &b.node);
    a.constant = b.constant = NULL;
    if (status == RFX_OK) status = rfx_onnx_combine(ctx, RFX_BINARY_ADD, "", a, b, &out);
    return finish(ctx, status, out);
}

enum rfx_status rfx_onnx_where(struct rfx_onnx_import *ctx) {
    return rfx_onnx_choose(ctx, rfx_onnx_in(ctx, 0), rfx_onnx_in(ctx, 1), rfx_onnx_in(ctx, 2));
}

/* Whether all elements of the node's tensor are 0 or 1 because of what makes it. */
static bool is_boolean(const struct rfx_node *node) {
    if (node->op == RFX_OP_ACTIVATION) return node->act.kind == RFX_ACT_NOT;
    if (node->op != RFX_OP_BINARY && node->op != RFX_OP_PLAIN_BINARY) return false;
    enum rfx_binary_kind kind = node->attr.binary.kind;
    return kind >= RFX_BINARY_GREATER && kind <= RFX_BINARY_XOR;
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

/* Of how many inputs a node is made without that whole numbers become others: 0, 1 or all. */
static int inputs_that_matter(const struct rfx_node *node) {
    bool binary = node->op == RFX_OP_BINARY || node->op == RFX_OP_PLAIN_BINARY;
    enum rfx_binary_kind kind = node->attr.binary.kind;
    if (binary) {
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

/* Whether all elements of a node's tensor are whole numbers because of what it is made of: indices,
 * constants, and (`any`) what was rounded or compared. A cast to integers changes none of them. A
 * way of more than `steps` nodes counts as none. */
static bool is_whole(const struct rfx_graph *graph, int at, bool any, int steps) {
    const struct rfx_node *node = &graph->nodes[at];
    if (rfx_node_is_constant(node)) return is_whole_constant(graph, node);
    if (is_index(node) || (any && (is_boolean(node) || rounds(node)))) return true;
    bool chooses = (node->op == RFX_OP_BINARY || node->op == RFX_OP_PLAIN_BINARY) &&
                   (node->attr.binary.kind == RFX_BINARY_IF ||
                    node->attr.binary.kind == RFX_BINARY_UNLESS); /* in[1] or -0 */
    if (chooses) return steps > 0 && is_whole(graph, node->in[1], any, steps - 1);
    int n = inputs_that_matter(node);
    bool whole = n > 0 && steps > 0;
    for (int k = 0; whole && k < n; k++) whole = is_whole(graph, node->in[k], any, steps - 1);
    return whole;
}

enum { MOST_STEPS = 8 };

bool rfx_onnx_is_whole(const struct rfx_onnx_import *ctx, int node) {
    return is_whole(ctx->graph, node, true, MOST_STEPS);
}

/* Numbers are float32 here whatever they are called in the file: a network of half precision is
 * computed with more of it. */
static bool is_number(int64_t type) {
    return type == RFX_ONNX_FLOAT || type == RFX_ONNX_FLOAT16 || type == RFX_ONNX_BFLOAT16 ||
           type == RFX_ONNX_DOUBLE;
}

static bool is_cast_to(int64_t type) {
    return type >= RFX_ONNX_UINT8 && type <= RFX_ONNX_INT64;
}

/* Whether whole numbers of a type, or these because of what makes them, are elements of another. */
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

/* Floats are cut towards zero and held to the range of the type; integers lose their upper bits. */
static enum rfx_status to_integers(struct rfx_onnx_import *ctx, int32_t to, int in, int *out) {
    int32_t from = rfx_onnx_in_type(ctx, 0);
    bool whole = rfx_onnx_type_is_integer(from) || from == RFX_ONNX_BOOL;
    float lo, hi;
    *out = in;
    if (whole && fits_type(ctx, in, from, to)) return RFX_OK;
    if (whole) return rfx_onnx_wrap(ctx, to, in, out);
    rfx_type_limits(rfx_onnx_stored_type(to), &lo, &hi);
    bool is_cut = rfx_onnx_is_whole(ctx, in); /* what was rounded, say */
    if (is_cut && (to == RFX_ONNX_INT32 || to == RFX_ONNX_INT64)) return RFX_OK;
    enum rfx_status status = rfx_onnx_act(ctx, "/range", in, RFX_ACT_CLIP, lo, hi, out);
    return status == RFX_OK && !is_cut ? rfx_onnx_towards_zero(ctx, "", *out, out) : status;
}

/* A cast to floats is nothing, to bool it is not(not(x)). */
static enum rfx_status cast_to(struct rfx_onnx_import *ctx, int64_t to) {
    if (is_number(to)) return rfx_onnx_identity(ctx);
    if (to != RFX_ONNX_BOOL && !is_cast_to(to))
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                               "cast of a computed tensor to type %lld; floats, as float32, bool "
                               "and integers but uint32 and uint64 are supported",
                               (long long)to);
    int in, out = -1;
    bool last = false;
    enum rfx_status status = rfx_onnx_elements(ctx, &in, &last);
    int order = ctx->order;
    if (status == RFX_OK && to != RFX_ONNX_BOOL)
        status = to_integers(ctx, (int32_t)to, in, &out);
    else if (status == RFX_OK && is_boolean(&ctx->graph->nodes[in]))
        out = in;
    else if (status == RFX_OK)
        status = negate(ctx, "/not", in, &out);
    if (status == RFX_OK && to == RFX_ONNX_BOOL && out != in) status = negate(ctx, "", out, &out);
    if (status == RFX_OK && out == in) return rfx_onnx_identity(ctx);
    ctx->order = order;
    return status == RFX_OK ? rfx_onnx_set_as(ctx, out, last) : status;
}

enum rfx_status rfx_onnx_cast(struct rfx_onnx_import *ctx) {
    return cast_to(ctx, rfx_onnx_attr_int(ctx, "to", RFX_ONNX_FLOAT));
}

/* To the type of input 1; what is computed is float32. */
enum rfx_status rfx_onnx_cast_like(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_operand like = rfx_onnx_in(ctx, 1);
    if (like.node < 0 && like.constant == NULL)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "input 1 is missing");
    if (rfx_onnx_in(ctx, 0).constant != NULL) return rfx_onnx_fold_cast(ctx);
    return cast_to(ctx, rfx_onnx_in_type(ctx, 1));
}

/* 1 where the signs of r and b differ, which neither may be zero for, else 0 or -1. */
static enum rfx_status signs_differ(struct rfx_onnx_import *ctx, struct rfx_onnx_operand r,
                                    struct rfx_onnx_operand b, struct rfx_onnx_operand *out) {
    struct rfx_onnx_operand sign[2] = {r, b};
    enum rfx_status status = RFX_OK;
    for (int k = 0; status == RFX_OK && k < 2; k++) {
        status = rfx_onnx_any(ctx, sign[k], &sign[k].node);
        sign[k].constant = NULL;
        if (status == RFX_OK)
            status =
                rfx_onnx_act(ctx, "/sign", sign[k].node, RFX_ACT_SIGN, 0.0f, 0.0f, &sign[k].node);
    }
    *out = (struct rfx_onnx_operand){-1, NULL};
    if (status == RFX_OK)
        status = rfx_onnx_combine(ctx, RFX_BINARY_MUL, "/signs", sign[0], sign[1], &out->node);
    return status == RFX_OK
               ? rfx_onnx_act(ctx, "/differ", out->node, RFX_ACT_CLIP, -1.0f, 0.0f, &out->node)
               : status;
}

/* The remainder with the sign of a (fmod = 1), or that of b: then b is added where they differ. */
enum rfx_status rfx_onnx_mod(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_operand a = rfx_onnx_in(ctx, 0), b = rfx_onnx_in(ctx, 1);
    struct rfx_onnx_operand r = {-1, NULL}, differ, addend = {-1, NULL};
    bool floors = !rfx_onnx_attr_flag(ctx, "fmod", false);
    int out = -1;
    enum rfx_status status =
        rfx_onnx_combine(ctx, RFX_BINARY_MOD, floors ? "/remainder" : "", a, b, &r.node);
    if (status != RFX_OK || !floors) return finish(ctx, status, r.node);
    status = signs_differ(ctx, r, b, &differ);
    if (status == RFX_OK)
        status = rfx_onnx_combine(ctx, RFX_BINARY_IF, "/addend", differ, b, &addend.node);
    if (status == RFX_OK) status = rfx_onnx_combine(ctx, RFX_BINARY_ADD, "", r, addend, &out);
    return finish(ctx, status, out);
}

/* What is below 0 goes up, what is above goes down. */
enum rfx_status rfx_onnx_towards_zero(struct rfx_onnx_import *ctx, const char *suffix, int in,
                                      int *out) {
    struct rfx_onnx_operand half[2] = {{-1, NULL}, {-1, NULL}};
    enum rfx_status status =
        rfx_onnx_act(ctx, "/below", in, RFX_ACT_CLIP, -HUGE_VALF, 0.0f, &half[0].node);
    if (status == RFX_OK)
        status = rfx_onnx_act(ctx, "/up", half[0].node, RFX_ACT_CEIL, 0.0f, 0.0f, &half[0].node);
    if (status == RFX_OK)
        status = rfx_onnx_act(ctx, "/above", in, RFX_ACT_CLIP, 0.0f, HUGE_VALF, &half[1].node);
    if (status == RFX_OK)
        status = rfx_onnx_act(ctx, "/down", half[1].node, RFX_ACT_FLOOR, 0.0f, 0.0f, &half[1].node);
    return status == RFX_OK ? rfx_onnx_combine(ctx, RFX_BINARY_ADD, suffix, half[0], half[1], out)
                            : status;
}

/* Both operands of a division are of one type: where one is a constant of integers, so is the
 * other. Quotients of whole numbers up to 2^24 are never rounded up to the next one; a product with
 * the reciprocal would be. */
enum rfx_status rfx_onnx_div(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_operand x[2] = {rfx_onnx_in(ctx, 0), rfx_onnx_in(ctx, 1)};
    bool integers = false, indices = true;
    int out = -1;
    for (int k = 0; k < 2; k++) {
        bool computed = x[k].node >= 0;
        integers = integers || rfx_onnx_type_is_integer(rfx_onnx_in_type(ctx, (size_t)k));
        indices = indices && computed && is_whole(ctx->graph, x[k].node, false, MOST_STEPS);
    }
    if (indices && !integers)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                               "a quotient of two computed indices, which may be one of integers "
                               "or of floats");
    if (!integers) return rfx_onnx_binary(ctx);
    enum rfx_status status = RFX_OK;
    for (int k = 0; status == RFX_OK && k < 2; k++) {
        status = rfx_onnx_any(ctx, x[k], &x[k].node);
        x[k].constant = NULL;
    }
    if (status == RFX_OK)
        status = rfx_onnx_combine(ctx, RFX_BINARY_DIV, "/quotient", x[0], x[1], &out);
    if (status == RFX_OK) status = rfx_onnx_towards_zero(ctx, "", out, &out);
    return finish(ctx, status, out);
}

/* Nothing, unless it is to be as in training: then its result is one of chance. */
enum rfx_status rfx_onnx_dropout(struct rfx_onnx_import *ctx) {
    double ratio = 0.5, trains = 0.0;
    enum rfx_status status = RFX_OK;
    if (rfx_onnx_has(ctx, 1)) status = rfx_onnx_in_number(ctx, 1, &ratio);
    if (status == RFX_OK && rfx_onnx_has(ctx, 2)) status = rfx_onnx_in_number(ctx, 2, &trains);
    if (status != RFX_OK) return status;
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
