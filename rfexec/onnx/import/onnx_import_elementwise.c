/* Converters that work element by element: activations, arithmetic between tensors and constants
 * with broadcasting, DequantizeLinear; and Trilu and CumSum, which work along axes. */
#include <math.h>
#include <string.h>

#include "rfexec/onnx/import/onnx_import.h"
#include "rfexec/onnx/import/onnx_repeat.h"

/* --- activations --- */

/* Converts an activation. alpha and beta: names of the attributes that hold its two numbers, or
 * NULL.
 */
static int activation(struct rfx_onnx_import *ctx, enum rfx_act_kind kind, const char *alpha,
                      const char *beta) {
    const struct rfx_act_def *def = rfx_act_def(kind);
    float first = alpha != NULL ? rfx_onnx_attr_float(ctx, alpha, def->alpha) : def->alpha;
    float second = beta != NULL ? rfx_onnx_attr_float(ctx, beta, def->beta) : def->beta;
    bool last;
    int in = rfx_onnx_elements(ctx, &last);
    return rfx_onnx_ordered(ctx, rfx_onnx_act(ctx, "", in, kind, first, second), last);
}

/* Operators in the table of activations. */
int rfx_onnx_activation(struct rfx_onnx_import *ctx) {
    enum rfx_act_kind kind = rfx_act_find(ctx->node->op);
    if (kind == RFX_ACT_COUNT)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "no such activation");
    unsigned traits = rfx_act_def(kind)->traits;
    return activation(ctx, kind, (traits & RFX_ACT_HAS_ALPHA) != 0 ? "alpha" : NULL,
                      (traits & RFX_ACT_HAS_BETA) != 0 ? "beta" : NULL);
}

int rfx_onnx_selu(struct rfx_onnx_import *ctx) {
    return activation(ctx, RFX_ACT_SELU, "alpha", "gamma");
}

int rfx_onnx_shrink(struct rfx_onnx_import *ctx) {
    return activation(ctx, RFX_ACT_SHRINK, "lambd", "bias");
}

/* Clip: attributes up to opset 10, inputs from 11 on. */
int rfx_onnx_clip(struct rfx_onnx_import *ctx) {
    double lo = -HUGE_VAL, hi = HUGE_VAL;
    bool last;
    int in = rfx_onnx_elements(ctx, &last);
    if (ctx->opset < 11) {
        lo = (double)rfx_onnx_attr_float(ctx, "min", -HUGE_VALF);
        hi = (double)rfx_onnx_attr_float(ctx, "max", HUGE_VALF);
    } else {
        lo = rfx_onnx_in_number_or(ctx, 1, lo);
        hi = rfx_onnx_in_number_or(ctx, 2, hi);
    }
    int out = rfx_onnx_act(ctx, "", in, RFX_ACT_CLIP, (float)lo, (float)hi);
    return rfx_onnx_ordered(ctx, out, last);
}

int rfx_onnx_prelu(struct rfx_onnx_import *ctx) {
    struct rfx_node node = {.op = RFX_OP_ACTIVATION, .act = {RFX_ACT_PRELU, 0.0f, 0.0f, -1}};
    int in = rfx_onnx_any(ctx, rfx_onnx_in(ctx, 0));
    struct rfx_onnx_const *slope = rfx_onnx_in_const(ctx, 1);
    if (slope == NULL) return -1;
    const struct rfx_tensor *t = rfx_onnx_tensor_of(ctx, in);
    int rank = slope->shape.rank;
    bool old = ctx->opset < 7 && rank == 1; /* such a vector has one slope per channel */
    bool per_channel = t->layout == RFX_LAYOUT_NHWC && slope->elems == t->c &&
                       (old || ((rank == 3 || rank == 4) && slope->shape.dims[rank - 3] == t->c));
    if (slope->elems != 1 && !per_channel)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                               "a slope of %lld values that is neither one nor one per channel",
                               (long long)slope->elems);
    node.act.slope = rfx_onnx_const_weight(ctx, slope);
    return rfx_onnx_emit1(ctx, &node, "", in);
}

int rfx_onnx_binary_of(struct rfx_onnx_import *ctx, enum rfx_binary_kind kind, const char *suffix,
                       int a, int b) {
    struct rfx_node node = {.op = RFX_OP_PLAIN_BINARY, .attr.binary = {kind}};
    if (rfx_onnx_is_map(ctx, a)) node.op = RFX_OP_BINARY;
    return rfx_onnx_emit2(ctx, &node, suffix, a, b);
}

/* Returns the node of operand 0 times a gate. */
static int gated(struct rfx_onnx_import *ctx, int in, int gate, bool last) {
    return rfx_onnx_ordered(ctx, rfx_onnx_binary_of(ctx, RFX_BINARY_MUL, "", in, gate), last);
}

/* x * sigmoid(alpha * x). */
int rfx_onnx_swish(struct rfx_onnx_import *ctx) {
    float alpha = rfx_onnx_attr_float(ctx, "alpha", 1.0f);
    bool last;
    int in = rfx_onnx_elements(ctx, &last);
    if (alpha == 1.0f)
        return rfx_onnx_ordered(ctx, rfx_onnx_apply(ctx, "", in, RFX_ACT_SILU), last);
    int gate = rfx_onnx_scale_shift(ctx, "/scaled", in, alpha, 0.0f);
    return gated(ctx, in, rfx_onnx_apply(ctx, "/gate", gate, RFX_ACT_SIGMOID), last);
}

/* x * (0.5 + 0.5 * erf(x / sqrt 2)). The approximation x / 2 * (1 + tanh(z)) with z = sqrt(2 / pi)
 * (x + 0.044715 x^3) is computed as x * sigmoid(2 z): nothing cancels where tanh is near -1. */
int rfx_onnx_gelu(struct rfx_onnx_import *ctx) {
    static const char *const forms[] = {"none", "tanh"};
    int form = rfx_onnx_attr_choice(ctx, "approximate", "none", forms, 2), gate;
    bool last;
    int in = rfx_onnx_elements(ctx, &last);
    if (form == 1) {
        gate = rfx_onnx_binary_of(ctx, RFX_BINARY_MUL, "", in, in);
        gate =
            rfx_onnx_scale_shift(ctx, "/slope", gate, 0.071354816272600248f, 1.5957691216057308f);
        gate = rfx_onnx_binary_of(ctx, RFX_BINARY_MUL, "", gate, in);
        return gated(ctx, in, rfx_onnx_apply(ctx, "/gate", gate, RFX_ACT_SIGMOID), last);
    }
    gate = rfx_onnx_scale_shift(ctx, "/scaled", in, 0.70710678118654752f, 0.0f);
    gate = rfx_onnx_apply(ctx, "/erf", gate, RFX_ACT_ERF);
    return gated(ctx, in, rfx_onnx_scale_shift(ctx, "/gate", gate, 0.5f, 0.5f), last);
}

/* x * tanh(softplus(x)). */
int rfx_onnx_mish(struct rfx_onnx_import *ctx) {
    bool last;
    int in = rfx_onnx_elements(ctx, &last);
    int gate = rfx_onnx_apply(ctx, "/softplus", in, RFX_ACT_SOFTPLUS);
    return gated(ctx, in, rfx_onnx_apply(ctx, "/tanh", gate, RFX_ACT_TANH), last);
}

/* --- arithmetic --- */

/* Returns the kind of the current operator. It is ADD for Add, Sum and Mean. */
static enum rfx_binary_kind binary_kind(const struct rfx_onnx_import *ctx) {
    static const char *const ops[] = {
        [RFX_BINARY_SUB] = "Sub",     [RFX_BINARY_MUL] = "Mul",
        [RFX_BINARY_DIV] = "Div",     [RFX_BINARY_MAX] = "Max",
        [RFX_BINARY_MIN] = "Min",     [RFX_BINARY_POW] = "Pow",
        [RFX_BINARY_MOD] = "Mod",     [RFX_BINARY_GREATER] = "Greater",
        [RFX_BINARY_LESS] = "Less",   [RFX_BINARY_GREATER_OR_EQUAL] = "GreaterOrEqual",
        [RFX_BINARY_EQUAL] = "Equal", [RFX_BINARY_LESS_OR_EQUAL] = "LessOrEqual",
        [RFX_BINARY_AND] = "And",     [RFX_BINARY_OR] = "Or",
        [RFX_BINARY_XOR] = "Xor"};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (ops[i] != NULL && rfx_onnx_op_is(ctx, ops[i])) return (enum rfx_binary_kind)i;
    return RFX_BINARY_ADD;
}

/* Returns whether a constant beside a map of `c` channels has one value or one value per channel.
 */
static bool is_per_channel(const struct rfx_onnx_const *k, int64_t c) {
    int rank = k->shape.rank;
    if (rank > 4) return false;
    return k->elems == 1 || (k->elems == c && rank >= 3 && k->shape.dims[rank - 3] == c);
}

/* Returns an AFFINE node for `map kind constant` or, if `reversed`, `constant kind map`. Returns -1
 * when there is none. */
static int try_affine(struct rfx_onnx_import *ctx, enum rfx_binary_kind kind, int in,
                      struct rfx_onnx_const *k, bool reversed) {
    struct rfx_node node = {.op = RFX_OP_AFFINE, .attr.affine = {-1, -1}};
    const float minus = -1.0f;
    bool shift = kind == RFX_BINARY_ADD || kind == RFX_BINARY_SUB;
    if (!shift && kind != RFX_BINARY_MUL && (kind != RFX_BINARY_DIV || reversed)) return -1;
    const double *v = rfx_onnx_const_reals(ctx, k);
    int weight = rfx_onnx_own_weight(ctx, NULL, k->elems);
    if (weight < 0) return -1;
    float *values = rfx_graph_owned_weight(ctx->graph, weight);
    for (int64_t i = 0; i < k->elems; i++) {
        values[i] = (float)v[i];
        if (kind == RFX_BINARY_SUB && !reversed) values[i] = -values[i];
        if (kind == RFX_BINARY_DIV) values[i] = (float)(1.0 / v[i]);
    }
    *(shift ? &node.attr.affine.shift : &node.attr.affine.scale) = weight;
    if (kind == RFX_BINARY_SUB && reversed)
        node.attr.affine.scale = rfx_onnx_own_weight(ctx, &minus, 1);
    return rfx_onnx_emit1(ctx, &node, "", in);
}

/* Returns an ACTIVATION node for `x kind number`, in either layout, or -1 when there is none. */
static int try_activation(struct rfx_onnx_import *ctx, enum rfx_binary_kind kind, int in,
                          struct rfx_onnx_const *k, bool reversed) {
    if (k->elems != 1 || k->shape.rank > rfx_onnx_tensor_of(ctx, in)->shape.rank) return -1;
    const double *v = rfx_onnx_const_reals(ctx, k);
    if (v == NULL) return -1;
    float f = (float)v[0];
    if (kind == RFX_BINARY_MAX) return rfx_onnx_act(ctx, "", in, RFX_ACT_CLIP, f, HUGE_VALF);
    if (kind == RFX_BINARY_MIN) return rfx_onnx_act(ctx, "", in, RFX_ACT_CLIP, -HUGE_VALF, f);
    if (kind == RFX_BINARY_POW && !reversed)
        return rfx_onnx_act(ctx, "", in, f == 0.5f ? RFX_ACT_SQRT : RFX_ACT_POW, f, 0.0f);
    return -1;
}

/* Returns the operand as a map. An operand of a rank below 4 gets leading axes of size 1. */
static int as_map(struct rfx_onnx_import *ctx, struct rfx_onnx_operand x) {
    struct rfx_shape shape = *rfx_onnx_shape(ctx, x), four = rfx_onnx_rank_4(&shape);
    if (shape.rank == 4) return rfx_onnx_map(ctx, x);
    if (x.constant != NULL)
        x.constant = rfx_onnx_const_view(ctx, x.constant, &four);
    else
        x.node = rfx_onnx_reshape(ctx, x.node, &four);
    return rfx_onnx_map(ctx, x);
}

/* Returns whether the operand can become an NHWC map for broadcasting. */
static bool fits_map(const struct rfx_onnx_import *ctx, struct rfx_onnx_operand x) {
    const struct rfx_shape *shape = rfx_onnx_shape(ctx, x);
    return shape->rank < 4 || (shape->rank == 4 && shape->dims[0] == 1);
}

/* Returns the constant as (1, elems, 1, 1), for broadcasting with a map. */
static struct rfx_onnx_const *beside_map(struct rfx_onnx_import *ctx, struct rfx_onnx_const *c) {
    struct rfx_shape shape = {4, {1, c->elems, 1, 1}};
    return rfx_onnx_const_view(ctx, c, &shape);
}

/* Converts an operand that is broadcast with tokens `like` to one that is broadcast with their map
 * of c channels. Tokens become their map, a constant becomes a repeated map or a view with one
 * value or one per channel. Returns false for any other operand. */
static bool beside_channels(struct rfx_onnx_import *ctx, struct rfx_onnx_operand *x,
                            const struct rfx_pixels *like, int64_t c) {
    if (x->node >= 0) {
        x->node = rfx_onnx_tokens_behind(ctx, x->node);
        return x->node >= 0;
    }
    const struct rfx_onnx_const *k = x->constant;
    int rank = k->shape.rank,
        most = ctx->order < 0 ? 4 : rfx_onnx_tensor_of(ctx, ctx->order)->shape.rank;
    bool vector = rank > 0 && k->elems == c && k->shape.dims[rank - 1] == c;
    if (k->repeat != NULL) x->node = rfx_onnx_repeat_map(ctx, x->constant, like);
    if (x->node >= 0) {
        x->constant = NULL;
        return true;
    }
    if (rank > most || (k->elems != 1 && !vector)) return false;
    x->constant = beside_map(ctx, x->constant);
    return x->constant != NULL;
}

/* If a and b are tokens or constants that can be combined as maps, replaces them by those maps.
 * Returns whether it did. */
static bool channels_first(struct rfx_onnx_import *ctx, struct rfx_onnx_operand *a,
                           struct rfx_onnx_operand *b) {
    struct rfx_onnx_operand first = *a, second = *b;
    int map = a->node >= 0 ? rfx_onnx_tokens_behind(ctx, a->node) : -1;
    if (map < 0 && b->node >= 0) map = rfx_onnx_tokens_behind(ctx, b->node);
    if (map < 0) return false;
    if (a->node >= 0 && b->node >= 0 && !rfx_onnx_same_order(ctx, a->node, b->node)) return false;
    int64_t c = rfx_onnx_tensor_of(ctx, map)->c;
    struct rfx_pixels like;
    if (!rfx_pixels_of(ctx->graph, a->node >= 0 ? a->node : b->node, &like)) return false;
    if (!beside_channels(ctx, &first, &like, c) || !beside_channels(ctx, &second, &like, c))
        return false;
    *a = first;
    *b = second;
    return true;
}

/* Converts an operand that is broadcast with a tensor of this shape, a map in its own order, to one
 * that is broadcast with the map. Returns false for a tensor of another shape, and for a constant
 * with neither one value nor one value per channel. */
static bool beside_shape(struct rfx_onnx_import *ctx, struct rfx_onnx_operand *x,
                         const struct rfx_shape *shape, int64_t c) {
    const struct rfx_shape own = *rfx_onnx_shape(ctx, *x);
    if (x->node >= 0) {
        bool same = rfx_onnx_same_shape(&own, shape);
        x->node = same ? rfx_onnx_elements_behind(ctx, x->node) : -1;
        return x->node >= 0;
    }
    bool channels = own.rank >= 3 && own.dims[own.rank - 3] == c && x->constant->elems == c;
    if (own.rank > shape->rank || (x->constant->elems != 1 && !channels)) return false;
    x->constant = beside_map(ctx, x->constant);
    return x->constant != NULL;
}

/* If a and b are maps with more or fewer axes of size 1, or constants, and can be combined as maps,
 * replaces them by those maps. Returns whether it did. */
static bool without_axes(struct rfx_onnx_import *ctx, struct rfx_onnx_operand *a,
                         struct rfx_onnx_operand *b) {
    struct rfx_onnx_operand first = *a, second = *b;
    int of = a->node >= 0 ? a->node : b->node;
    int map = of >= 0 ? rfx_onnx_elements_behind(ctx, of) : -1;
    if (map < 0) return false;
    const struct rfx_shape shape = rfx_onnx_tensor_of(ctx, of)->shape;
    if (!rfx_shape_is_of_map(&shape, rfx_onnx_tensor_of(ctx, map), false)) return false;
    int64_t c = rfx_onnx_tensor_of(ctx, map)->c;
    if (!beside_shape(ctx, &first, &shape, c) || !beside_shape(ctx, &second, &shape, c))
        return false;
    (void)rfx_onnx_elements_behind(ctx, of); /* the order of the result */
    *a = first;
    *b = second;
    return true;
}

static int combine(struct rfx_onnx_import *ctx, enum rfx_binary_kind kind, const char *suffix,
                   struct rfx_onnx_operand a, struct rfx_onnx_operand b) {
    bool reversed = a.constant != NULL;
    struct rfx_onnx_const *k = reversed ? a.constant : b.constant;
    int x = reversed ? b.node : a.node, out = -1;
    if (k != NULL && x >= 0) {
        const struct rfx_tensor t = *rfx_onnx_tensor_of(ctx, x);
        out = try_activation(ctx, kind, x, k, reversed);
        if (out < 0 && t.layout == RFX_LAYOUT_NHWC && is_per_channel(k, t.c))
            out = try_affine(ctx, kind, x, k, reversed);
    }
    if (out >= 0 || rfx_onnx_failed(ctx)) return out;
    bool maps = (rfx_onnx_is_map(ctx, a.node) || rfx_onnx_is_map(ctx, b.node)) &&
                fits_map(ctx, a) && fits_map(ctx, b);
    int left = maps ? as_map(ctx, a) : rfx_onnx_plain(ctx, a);
    int right = maps ? as_map(ctx, b) : rfx_onnx_plain(ctx, b);
    return rfx_onnx_binary_of(ctx, kind, suffix, left, right);
}

/* Returns the product of a constant and one number that was made from a map of one element, such as
 * the scale of a DynamicQuantizeLinear; -1: the operands are others. It is computed as a map: a
 * node that multiplies a map by the product then reads a map, and shards compute it by rows. */
static int scaled_number(struct rfx_onnx_import *ctx, const char *suffix, struct rfx_onnx_operand a,
                         struct rfx_onnx_operand b) {
    struct rfx_onnx_operand x = a.node >= 0 ? a : b, k = a.node >= 0 ? b : a;
    struct rfx_pixels p;
    struct rfx_shape out;
    if (x.node < 0 || k.constant == NULL || rfx_onnx_is_map(ctx, x.node) || !fits_map(ctx, k))
        return -1;
    if (rfx_onnx_tensor_of(ctx, x.node)->elems != 1 || !rfx_pixels_of(ctx->graph, x.node, &p) ||
        ctx->graph->nodes[p.map].out.elems != 1 ||
        !rfx_onnx_broadcast(rfx_onnx_shape(ctx, a), rfx_onnx_shape(ctx, b), &out))
        return -1;
    const struct rfx_shape four = rfx_onnx_rank_4(rfx_onnx_shape(ctx, k));
    k.constant = rfx_onnx_const_view(ctx, k.constant, &four);
    int made = combine(ctx, RFX_BINARY_MUL, suffix, rfx_onnx_of(p.map), k);
    return rfx_onnx_plain_as(ctx, made, &out);
}

/* Returns the combination of one number with floats that were made from a map of bytes and moved,
 * such as the queries of attention; -1: the operands are others. It is computed as a map. */
static int moved_bytes(struct rfx_onnx_import *ctx, enum rfx_binary_kind kind, const char *suffix,
                       struct rfx_onnx_operand a, struct rfx_onnx_operand b) {
    struct rfx_onnx_operand *x = a.node >= 0 ? &a : &b, *k = a.node >= 0 ? &b : &a;
    const struct rfx_shape one = {4, {1, 1, 1, 1}};
    struct rfx_pixels p, order;
    if (x->node < 0 || k->constant == NULL || k->constant->elems != 1 ||
        k->constant->shape.rank > rfx_onnx_tensor_of(ctx, x->node)->shape.rank ||
        rfx_onnx_is_map(ctx, x->node) || !rfx_pixels_of(ctx->graph, x->node, &p) ||
        ctx->graph->nodes[p.map].op != RFX_OP_CONVERT)
        return -1;
    x->node = rfx_onnx_moved_map(ctx, *x, &order);
    if (order.map < 0) return -1;
    k->constant = rfx_onnx_const_view(ctx, k->constant, &one);
    return rfx_onnx_move_back(ctx, combine(ctx, kind, suffix, a, b), &order);
}

int rfx_onnx_combine(struct rfx_onnx_import *ctx, enum rfx_binary_kind kind, const char *suffix,
                     struct rfx_onnx_operand a, struct rfx_onnx_operand b) {
    if (!rfx_onnx_is_there(a) || !rfx_onnx_is_there(b))
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "an input is missing");
    if (rfx_onnx_failed(ctx)) return -1;
    if (a.constant != NULL && b.node >= 0)
        a.constant = rfx_onnx_repeat_shrink(ctx, a.constant, rfx_onnx_shape(ctx, b));
    if (b.constant != NULL && a.node >= 0)
        b.constant = rfx_onnx_repeat_shrink(ctx, b.constant, rfx_onnx_shape(ctx, a));
    if (!rfx_onnx_is_there(a) || !rfx_onnx_is_there(b)) return rfx_onnx_out_of_memory(ctx);
    int number = kind == RFX_BINARY_MUL ? scaled_number(ctx, suffix, a, b) : -1;
    if (number < 0 && !rfx_onnx_failed(ctx)) number = moved_bytes(ctx, kind, suffix, a, b);
    if (number >= 0 || rfx_onnx_failed(ctx)) return number;
    bool last = channels_first(ctx, &a, &b) || without_axes(ctx, &a, &b);
    return rfx_onnx_ordered(ctx, combine(ctx, kind, suffix, a, b), last);
}

/* Broadcasting before opset 7. With broadcast = 1 the shape of b equals consecutive axes of a,
 * which begin with the attribute axis; without that attribute they are the last ones. b gets axes
 * of size 1 for the later axes of a. */
static void old_broadcast(struct rfx_onnx_import *ctx, struct rfx_onnx_operand a,
                          struct rfx_onnx_operand *b) {
    const struct rfx_onnx_attr *given = rfx_onnx_attr_find(ctx, "axis");
    int rank = rfx_onnx_shape(ctx, a)->rank;
    if (rfx_onnx_failed(ctx) || !rfx_onnx_attr_flag(ctx, "broadcast", false) || given == NULL)
        return;
    int axis = rfx_onnx_axis(ctx, given->i, rank);
    struct rfx_shape shape = *rfx_onnx_shape(ctx, *b);
    if (axis + shape.rank > rank)
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "rank %d broadcast from axis %d of %d",
                              shape.rank, axis, rank);
    while (axis + shape.rank < rank) shape.dims[shape.rank++] = 1;
    if (b->constant != NULL)
        b->constant = rfx_onnx_const_view(ctx, b->constant, &shape);
    else
        b->node = rfx_onnx_plain_as(ctx, b->node, &shape);
}

int rfx_onnx_binary(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_operand a = rfx_onnx_need(ctx, 0), b = rfx_onnx_need(ctx, 1);
    if (ctx->opset < 7) old_broadcast(ctx, a, &b);
    return rfx_onnx_combine(ctx, binary_kind(ctx), "", a, b);
}

/* Sum, Max, Min and Mean of any number of operands, combined from left to right. */
int rfx_onnx_variadic(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_operand total = rfx_onnx_need(ctx, 0);
    size_t n = ctx->node->n_in;
    for (size_t k = 1; k < n; k++)
        total = rfx_onnx_of(rfx_onnx_combine(ctx, binary_kind(ctx), k + 1 < n ? "/partial" : "",
                                             total, rfx_onnx_in(ctx, k)));
    if (rfx_onnx_op_is(ctx, "Mean") && n > 1)
        total.node = rfx_onnx_scale_shift(ctx, "/mean", total.node, 1.0f / (float)n, 0.0f);
    return rfx_onnx_set(ctx, 0, total);
}

int rfx_onnx_identity(struct rfx_onnx_import *ctx) {
    return rfx_onnx_set(ctx, 0, rfx_onnx_need(ctx, 0));
}

/* --- along axes --- */

int64_t rfx_onnx_diagonal(struct rfx_onnx_import *ctx) {
    int64_t count = 0;
    if (!rfx_onnx_has(ctx, 1)) return 0;
    const int64_t *k = rfx_onnx_in_ints(ctx, 1, &count);
    if (count == 1) return k[0];
    (void)rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "input 1 has %lld elements, not 1",
                          (long long)count);
    return 0;
}

/* Trilu. A map is computed row by row. */
int rfx_onnx_trilu(struct rfx_onnx_import *ctx) {
    struct rfx_node node = {.op = RFX_OP_TRIANGLE};
    node.attr.triangle.upper = rfx_onnx_attr_flag(ctx, "upper", true);
    node.attr.triangle.k = rfx_onnx_diagonal(ctx);
    return rfx_onnx_emit1(ctx, &node, "", rfx_onnx_any(ctx, rfx_onnx_in(ctx, 0)));
}

int rfx_onnx_sum_axis(struct rfx_onnx_import *ctx, int rank) {
    if (rfx_onnx_has(ctx, 1)) return rfx_onnx_axis(ctx, rfx_onnx_diagonal(ctx), rank);
    (void)rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "input 1 is missing");
    return 0;
}

/* CumSum. Along channels or columns a map is computed row by row; otherwise the whole tensor is
 * needed. Along the last axis of tokens it runs along the channels of their map. */
int rfx_onnx_cum_sum(struct rfx_onnx_import *ctx) {
    struct rfx_node node = {.op = RFX_OP_RUNNING_SUM};
    node.attr.running.exclusive = rfx_onnx_attr_flag(ctx, "exclusive", false);
    node.attr.running.reverse = rfx_onnx_attr_flag(ctx, "reverse", false);
    int in = rfx_onnx_any(ctx, rfx_onnx_in(ctx, 0));
    const int rank = rfx_onnx_tensor_of(ctx, in)->shape.rank;
    int axis = rfx_onnx_sum_axis(ctx, rank);
    int map = axis == rank - 1 ? rfx_onnx_tokens_behind(ctx, in) : -1;
    bool by_rows = rfx_onnx_is_map(ctx, in) && (axis == 1 || axis == 3);
    node.attr.running.axis = map >= 0 ? 1 : axis;
    if (map >= 0)
        in = map;
    else if (!by_rows)
        in = rfx_onnx_plain(ctx, rfx_onnx_of(in));
    return rfx_onnx_ordered(ctx, rfx_onnx_emit1(ctx, &node, "", in), map >= 0);
}

/* --- DequantizeLinear: (x - zero point) * scale, as a difference and a product ---
 *
 * Quantised weights are constants: the graph of constants computes them when the model is loaded.
 * Integers of 8 and 16 bits and their differences are exact in float32, and the product is rounded
 * once. Integers of 32 bits are rounded to float first, as in ONNX Runtime; they have no zero
 * point. */

/* How scales and zero points belong to x: one for all elements, one for each index of `axis`, or
 * one for each `block` indices. split: the shape of x with `axis` split into blocks; scale: the
 * shape of the scales, which is broadcast with split. */
struct steps {
    int axis;
    int64_t block; /* 0: none */
    struct rfx_shape split, scale;
};

static void refuse_scale(struct rfx_onnx_import *ctx, const struct rfx_onnx_const *c,
                         const struct steps *s) {
    (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                          "scales of rank %d with %lld elements, axis %d, block_size %lld",
                          c->shape.rank, (long long)c->elems, s->axis, (long long)s->block);
}

/* Sets the shapes for one scale, or one per index of the axis. */
static void along_axis(struct rfx_onnx_import *ctx, const struct rfx_onnx_const *c,
                       const struct rfx_shape *x, struct steps *s) {
    s->split = *x;
    s->scale = (struct rfx_shape){x->rank, {1, 1, 1, 1, 1, 1, 1, 1}};
    if (c->elems == 1) return;
    s->axis = rfx_onnx_axis(ctx, s->axis, x->rank);
    s->scale.dims[s->axis] = c->elems;
    if (c->shape.rank != 1 || c->elems != x->dims[s->axis]) refuse_scale(ctx, c, s);
}

/* Sets the shapes for one scale per block of the axis. */
static void along_blocks(struct rfx_onnx_import *ctx, const struct rfx_onnx_const *c,
                         const struct rfx_shape *x, struct steps *s) {
    s->axis = rfx_onnx_axis(ctx, s->axis, x->rank);
    bool fits =
        c->shape.rank == x->rank && x->rank < RFX_MAX_RANK && x->dims[s->axis] % s->block == 0;
    for (int i = 0; fits && i < x->rank; i++)
        fits = c->shape.dims[i] == (i == s->axis ? x->dims[i] / s->block : x->dims[i]);
    s->split = s->scale = (struct rfx_shape){.rank = x->rank + 1};
    if (!fits) refuse_scale(ctx, c, s);
    for (int i = 0, at = 0; fits && i < x->rank; i++) {
        s->split.dims[at] = s->scale.dims[at] = c->shape.dims[i];
        at++;
        if (i != s->axis) continue;
        s->split.dims[at] = s->block;
        s->scale.dims[at++] = 1;
    }
}

/* Returns constant input k in the shape of the scales, or NULL when the node does not have it. */
static struct rfx_onnx_const *step_operand(struct rfx_onnx_import *ctx, size_t k,
                                           const struct steps *s) {
    struct rfx_onnx_const *c = rfx_onnx_has(ctx, k) ? rfx_onnx_in_const(ctx, k) : NULL;
    if (c != NULL && c->elems != rfx_shape_product(&s->scale, 0, s->scale.rank))
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED,
                              "input %zu has %lld elements, not as many as the scales", k,
                              (long long)c->elems);
    return c == NULL ? NULL : rfx_onnx_const_view(ctx, c, &s->scale);
}

static void read_steps(struct rfx_onnx_import *ctx, const struct rfx_shape *x, struct steps *s) {
    s->axis = (int)rfx_onnx_attr_int(ctx, "axis", 1);
    s->block = rfx_onnx_attr_int(ctx, "block_size", 0);
    if (s->block < 0)
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "block_size %lld", (long long)s->block);
    const struct rfx_onnx_const *scale = rfx_onnx_in_const(ctx, 1);
    if (scale == NULL) return;
    (s->block > 0 ? along_blocks : along_axis)(ctx, scale, x, s);
}

int rfx_onnx_whole_steps(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_operand x = rfx_onnx_need_computed(ctx);
    struct steps s;
    const struct rfx_shape shape = *rfx_onnx_shape(ctx, x);
    read_steps(ctx, &shape, &s);
    if (rfx_onnx_failed(ctx)) return -1;
    if (s.block > 0) x.node = rfx_onnx_plain_as(ctx, x.node, &s.split);
    struct rfx_onnx_operand scale = rfx_onnx_of_const(step_operand(ctx, 1, &s));
    struct rfx_onnx_const *zero = step_operand(ctx, 2, &s);
    const double *scales = rfx_onnx_failed(ctx) ? NULL : rfx_onnx_const_reals(ctx, scale.constant);
    for (int64_t i = 0; scales != NULL && i < scale.constant->elems; i++)
        if (!(scales[i] > 0.0) || isinf(scales[i]))
            return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "scale %g", scales[i]);
    if (rfx_onnx_failed(ctx)) return -1;
    /* combine would multiply by reciprocals */
    int by = rfx_onnx_is_map(ctx, x.node) ? rfx_onnx_map(ctx, scale) : rfx_onnx_plain(ctx, scale);
    x.node = rfx_onnx_binary_of(ctx, RFX_BINARY_DIV, "/steps", x.node, by);
    x.node = rfx_onnx_apply(ctx, "/whole", x.node, RFX_ACT_ROUND);
    if (zero != NULL)
        x.node = rfx_onnx_combine(ctx, RFX_BINARY_ADD, "/shifted", x, rfx_onnx_of_const(zero));
    return s.block > 0 ? rfx_onnx_reshape(ctx, x.node, &shape) : x.node;
}

/* Refuses an output_dtype that is not of floats, and a zero point of another type than input 0. */
static void check_dequantise(struct rfx_onnx_import *ctx) {
    int64_t type = rfx_onnx_attr_int(ctx, "output_dtype", 0);
    if (type != 0 && !rfx_onnx_type_is_real((int32_t)type))
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "output_dtype %lld", (long long)type);
    const struct rfx_onnx_const *x = rfx_onnx_in_as_named(ctx, 0).constant;
    const struct rfx_onnx_const *zero = rfx_onnx_in_as_named(ctx, 2).constant;
    if (x != NULL && zero != NULL && x->type != zero->type)
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "a zero point of %s for a tensor of %s",
                              rfx_type_name(rfx_type_of_onnx(zero->type)),
                              rfx_type_name(rfx_type_of_onnx(x->type)));
}

int rfx_onnx_dequantise(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_operand x = rfx_onnx_need_computed(ctx);
    struct steps s;
    const struct rfx_shape shape = *rfx_onnx_shape(ctx, x);
    check_dequantise(ctx);
    read_steps(ctx, &shape, &s);
    if (rfx_onnx_failed(ctx)) return -1;
    bool bytes = rfx_onnx_tensor_of(ctx, x.node)->type != RFX_TYPE_FLOAT32;
    if (bytes && rfx_shape_product(&s.scale, 0, s.scale.rank) == 1)
        return rfx_onnx_dequantise_bytes(ctx);
    if (s.block > 0) x.node = rfx_onnx_plain_as(ctx, x.node, &s.split);
    struct rfx_onnx_const *zero = step_operand(ctx, 2, &s);
    if (zero != NULL)
        x.node = rfx_onnx_combine(ctx, RFX_BINARY_SUB, "/from_zero", x, rfx_onnx_of_const(zero));
    struct rfx_onnx_const *scale = step_operand(ctx, 1, &s);
    x.node = rfx_onnx_combine(ctx, RFX_BINARY_MUL, "", x, rfx_onnx_of_const(scale));
    return s.block > 0 ? rfx_onnx_reshape(ctx, x.node, &shape) : x.node;
}

/* Integers of 32 bits, such as biases, are not exact in float32. They are folded here: float(x -
 * zero point) * scale. */
int rfx_onnx_fold_dequantise(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_const *x = rfx_onnx_in_as_named(ctx, 0).constant;
    struct rfx_onnx_const *given = rfx_onnx_in_as_named(ctx, 1).constant;
    struct steps s;
    if (x == NULL || given == NULL || x->type != RFX_ONNX_INT32)
        return rfx_onnx_compute(ctx, rfx_onnx_dequantise);
    check_dequantise(ctx);
    read_steps(ctx, &x->shape, &s);
    if (rfx_onnx_failed(ctx)) return -1;
    struct rfx_onnx_const *out = rfx_onnx_const_new(ctx, given->type, &x->shape);
    struct rfx_onnx_const *scale = step_operand(ctx, 1, &s), *zero = step_operand(ctx, 2, &s);
    const int64_t *ints = rfx_onnx_const_ints(ctx, x);
    const double *scales = rfx_onnx_failed(ctx) ? NULL : rfx_onnx_const_reals(ctx, scale);
    const int64_t *zeros =
        zero == NULL || rfx_onnx_failed(ctx) ? NULL : rfx_onnx_const_ints(ctx, zero);
    for (int64_t i = 0; !rfx_onnx_failed(ctx) && i < x->elems; i++) {
        int64_t at = rfx_onnx_broadcast_index(&s.scale, &s.split, i);
        float value = (float)(ints[i] - (zeros != NULL ? zeros[at] : 0)) * (float)scales[at];
        rfx_onnx_const_put(out, i, (double)value);
    }
    return rfx_onnx_set_const(ctx, 0, out);
}
