/* Conversion of what makes and takes booleans. A boolean that is computed is a number: 0 is false,
 * 1 is true; operands that are other numbers are true. */
#include <math.h>

#include "rfexec/onnx/import/onnx_import.h"

static enum rfx_status finish(struct rfx_onnx_import *ctx, enum rfx_status status, int out) {
    return status == RFX_OK ? rfx_onnx_set_node(ctx, out) : status;
}

static enum rfx_status negate(struct rfx_onnx_import *ctx, const char *suffix, int in, int *out) {
    return rfx_onnx_act(ctx, suffix, in, RFX_ACT_NOT, 0.0f, 0.0f, out);
}

enum rfx_status rfx_onnx_not(struct rfx_onnx_import *ctx) {
    int in, out = -1;
    enum rfx_status status = rfx_onnx_any(ctx, rfx_onnx_in(ctx, 0), &in);
    if (status == RFX_OK) status = negate(ctx, "", in, &out);
    return finish(ctx, status, out);
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
    bool negative = rfx_onnx_attr_int(ctx, "detect_negative", 1) != 0;
    bool positive = rfx_onnx_attr_int(ctx, "detect_positive", 1) != 0;
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
enum rfx_status rfx_onnx_where(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_operand condition = rfx_onnx_in(ctx, 0), a = rfx_onnx_in(ctx, 1),
                            b = rfx_onnx_in(ctx, 2);
    int out = -1;
    enum rfx_status status = rfx_onnx_combine(ctx, RFX_BINARY_IF, "/if", condition, a, &a.node);
    if (status == RFX_OK)
        status = rfx_onnx_combine(ctx, RFX_BINARY_UNLESS, "/unless", condition, b, &b.node);
    a.constant = b.constant = NULL;
    if (status == RFX_OK) status = rfx_onnx_combine(ctx, RFX_BINARY_ADD, "", a, b, &out);
    return finish(ctx, status, out);
}

/* Whether all elements of the node's tensor are 0 or 1 because of what makes it. */
static bool is_boolean(const struct rfx_node *node) {
    if (node->op == RFX_OP_ACTIVATION) return node->act.kind == RFX_ACT_NOT;
    if (node->op != RFX_OP_BINARY && node->op != RFX_OP_PLAIN_BINARY) return false;
    enum rfx_binary_kind kind = node->attr.binary.kind;
    return kind >= RFX_BINARY_GREATER && kind <= RFX_BINARY_XOR;
}

/* Whether all its elements are whole numbers: a cast to integers changes none. */
static bool is_whole(const struct rfx_node *node) {
    bool reduces = node->op == RFX_OP_REDUCE || node->op == RFX_OP_CHANNEL_REDUCE;
    return (reduces && rfx_reduce_is_arg(node->attr.reduce.kind)) || is_boolean(node);
}

/* Numbers are float32 here whatever they are called in the file: a network of half precision is
 * computed with more of it. */
static bool is_number(int64_t type) {
    return type == RFX_ONNX_FLOAT || type == RFX_ONNX_FLOAT16 || type == RFX_ONNX_BFLOAT16 ||
           type == RFX_ONNX_DOUBLE;
}

/* A cast to numbers is nothing, to bool it is not(not(x)). */
static enum rfx_status cast_to(struct rfx_onnx_import *ctx, int64_t to) {
    struct rfx_onnx_operand x = rfx_onnx_in(ctx, 0);
    bool integer = to == RFX_ONNX_INT32 || to == RFX_ONNX_INT64;
    if (is_number(to) || (integer && x.node >= 0 && is_whole(&ctx->graph->nodes[x.node])))
        return rfx_onnx_identity(ctx);
    if (to != RFX_ONNX_BOOL)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                               "cast of a computed tensor to type %lld; only floats, as float32, "
                               "and bool are supported",
                               (long long)to);
    int in, out = -1;
    enum rfx_status status = rfx_onnx_any(ctx, rfx_onnx_in(ctx, 0), &in);
    if (status != RFX_OK || is_boolean(&ctx->graph->nodes[in])) return finish(ctx, status, in);
    status = negate(ctx, "/not", in, &out);
    if (status == RFX_OK) status = negate(ctx, "", out, &out);
    return finish(ctx, status, out);
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
    return cast_to(ctx, like.constant != NULL ? like.constant->type : RFX_ONNX_FLOAT);
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
    bool floors = rfx_onnx_attr_int(ctx, "fmod", 0) == 0;
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
