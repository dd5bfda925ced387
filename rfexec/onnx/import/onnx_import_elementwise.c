/* Conversion of activations and of arithmetic between tensors and constants. */
#include <math.h>
#include <string.h>

#include "rfexec/onnx/import/fold/onnx_repeat.h"
#include "rfexec/onnx/import/onnx_import.h"

static bool op_is(const struct rfx_onnx_import *ctx, const char *op) {
    return strcmp(ctx->node->op, op) == 0;
}

static enum rfx_status finish(struct rfx_onnx_import *ctx, enum rfx_status status, int out) {
    return status == RFX_OK ? rfx_onnx_set_node(ctx, out) : status;
}

static enum rfx_status finish_as(struct rfx_onnx_import *ctx, enum rfx_status status, int out,
                                 bool last) {
    return status == RFX_OK ? rfx_onnx_set_as(ctx, out, last) : status;
}

/* An operator of the table of activations. */
enum rfx_status rfx_onnx_activation(struct rfx_onnx_import *ctx) {
    enum rfx_act_kind kind = rfx_act_find(ctx->node->op);
    if (kind == RFX_ACT_COUNT)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "no such activation");
    const struct rfx_act_def *def = rfx_act_def(kind);
    float alpha = def->alpha, beta = def->beta;
    int in, out = -1;
    bool last = false;
    if ((def->traits & RFX_ACT_HAS_ALPHA) != 0) alpha = rfx_onnx_attr_float(ctx, "alpha", alpha);
    if ((def->traits & RFX_ACT_HAS_BETA) != 0) beta = rfx_onnx_attr_float(ctx, "beta", beta);
    enum rfx_status status = rfx_onnx_elements(ctx, &in, &last);
    if (status == RFX_OK) status = rfx_onnx_act(ctx, "", in, kind, alpha, beta, &out);
    return finish_as(ctx, status, out, last);
}

/* Activations of two numbers that ONNX calls otherwise than alpha and beta. */
static enum rfx_status named_activation(struct rfx_onnx_import *ctx, enum rfx_act_kind kind,
                                        const char *alpha, const char *beta) {
    const struct rfx_act_def *def = rfx_act_def(kind);
    int in, out = -1;
    bool last = false;
    enum rfx_status status = rfx_onnx_elements(ctx, &in, &last);
    if (status == RFX_OK)
        status = rfx_onnx_act(ctx, "", in, kind, rfx_onnx_attr_float(ctx, alpha, def->alpha),
                              rfx_onnx_attr_float(ctx, beta, def->beta), &out);
    return finish_as(ctx, status, out, last);
}

enum rfx_status rfx_onnx_selu(struct rfx_onnx_import *ctx) {
    return named_activation(ctx, RFX_ACT_SELU, "alpha", "gamma");
}

enum rfx_status rfx_onnx_shrink(struct rfx_onnx_import *ctx) {
    return named_activation(ctx, RFX_ACT_SHRINK, "lambd", "bias");
}

/* Clip: attributes up to opset 10, inputs from 11 on. */
enum rfx_status rfx_onnx_clip(struct rfx_onnx_import *ctx) {
    double lo = -HUGE_VAL, hi = HUGE_VAL;
    int in, out = -1;
    bool last = false;
    enum rfx_status status = rfx_onnx_elements(ctx, &in, &last);
    if (status != RFX_OK) return status;
    if (ctx->opset < 11) {
        lo = (double)rfx_onnx_attr_float(ctx, "min", -HUGE_VALF);
        hi = (double)rfx_onnx_attr_float(ctx, "max", HUGE_VALF);
    } else {
        if (rfx_onnx_has(ctx, 1)) status = rfx_onnx_in_number(ctx, 1, &lo);
        if (status == RFX_OK && rfx_onnx_has(ctx, 2)) status = rfx_onnx_in_number(ctx, 2, &hi);
        if (status != RFX_OK) return status;
    }
    status = rfx_onnx_act(ctx, "", in, RFX_ACT_CLIP, (float)lo, (float)hi, &out);
    return finish_as(ctx, status, out, last);
}

enum rfx_status rfx_onnx_prelu(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_const *slope;
    struct rfx_node node = {.op = RFX_OP_ACTIVATION, .act = {RFX_ACT_PRELU, 0.0f, 0.0f, -1}};
    int in, out = -1;
    enum rfx_status status = rfx_onnx_any(ctx, rfx_onnx_in(ctx, 0), &in);
    if (status == RFX_OK) status = rfx_onnx_in_const(ctx, 1, &slope);
    if (status != RFX_OK) return status;
    const struct rfx_tensor *t = rfx_onnx_tensor_of(ctx, in);
    int rank = slope->shape.rank;
    bool old = ctx->opset < 7 && rank == 1; /* a vector is one per channel */
    bool per_channel = t->layout == RFX_LAYOUT_NHWC && slope->elems == t->c &&
                       (old || ((rank == 3 || rank == 4) && slope->shape.dims[rank - 3] == t->c));
    if (slope->elems != 1 && !per_channel)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                               "a slope of %lld values that is neither one nor one per channel",
                               (long long)slope->elems);
    status = rfx_onnx_const_weight(ctx, slope, &node.act.slope);
    if (status == RFX_OK) status = rfx_onnx_emit(ctx, &node, "", &in, 1, &out);
    return finish(ctx, status, out);
}

/* Two computed tensors of one shape and layout. */
static enum rfx_status product(struct rfx_onnx_import *ctx, int a, int b, int *out) {
    bool plain = rfx_onnx_tensor_of(ctx, a)->layout == RFX_LAYOUT_PLAIN;
    struct rfx_node node = {.op = plain ? RFX_OP_PLAIN_BINARY : RFX_OP_BINARY};
    node.attr.binary.kind = RFX_BINARY_MUL;
    int in[2] = {a, b};
    return rfx_onnx_emit(ctx, &node, "", in, 2, out);
}

/* x * sigmoid(alpha * x). */
enum rfx_status rfx_onnx_swish(struct rfx_onnx_import *ctx) {
    float alpha = rfx_onnx_attr_float(ctx, "alpha", 1.0f);
    int in, gate, out = -1;
    bool last = false;
    enum rfx_status status = rfx_onnx_elements(ctx, &in, &last);
    if (status != RFX_OK) return status;
    if (alpha == 1.0f) {
        status = rfx_onnx_act(ctx, "", in, RFX_ACT_SILU, 0.0f, 0.0f, &out);
        return finish_as(ctx, status, out, last);
    }
    status = rfx_onnx_scale_shift(ctx, "/scaled", in, alpha, 0.0f, &gate);
    if (status == RFX_OK)
        status = rfx_onnx_act(ctx, "/gate", gate, RFX_ACT_SIGMOID, 0.0f, 0.0f, &gate);
    if (status == RFX_OK) status = product(ctx, in, gate, &out);
    return finish_as(ctx, status, out, last);
}

/* x / 2 * (1 + tanh(z)) with z = sqrt(2 / pi) (x + 0.044715 x^3), as x * sigmoid(2 z): nothing
 * cancels where tanh is near -1. */
static enum rfx_status gelu_tanh(struct rfx_onnx_import *ctx) {
    int in, gate, out = -1;
    bool last = false;
    enum rfx_status status = rfx_onnx_elements(ctx, &in, &last);
    if (status == RFX_OK) status = product(ctx, in, in, &gate);
    if (status == RFX_OK)
        status = rfx_onnx_scale_shift(ctx, "/slope", gate, 0.071354816272600248f,
                                      1.5957691216057308f, &gate);
    if (status == RFX_OK) status = product(ctx, gate, in, &gate);
    if (status == RFX_OK)
        status = rfx_onnx_act(ctx, "/gate", gate, RFX_ACT_SIGMOID, 0.0f, 0.0f, &gate);
    if (status == RFX_OK) status = product(ctx, in, gate, &out);
    return finish_as(ctx, status, out, last);
}

/* x * (0.5 + 0.5 * erf(x / sqrt 2)), or its approximation. */
enum rfx_status rfx_onnx_gelu(struct rfx_onnx_import *ctx) {
    int in, gate, out = -1;
    bool last = false;
    const char *form = rfx_onnx_attr_string(ctx, "approximate", "none");
    if (strcmp(form, "tanh") == 0) return gelu_tanh(ctx);
    if (strcmp(form, "none") != 0)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "approximate = %.40s", form);
    enum rfx_status status = rfx_onnx_elements(ctx, &in, &last);
    if (status == RFX_OK)
        status = rfx_onnx_scale_shift(ctx, "/scaled", in, 0.70710678118654752f, 0.0f, &gate);
    if (status == RFX_OK) status = rfx_onnx_act(ctx, "/erf", gate, RFX_ACT_ERF, 0.0f, 0.0f, &gate);
    if (status == RFX_OK) status = rfx_onnx_scale_shift(ctx, "/gate", gate, 0.5f, 0.5f, &gate);
    if (status == RFX_OK) status = product(ctx, in, gate, &out);
    return finish_as(ctx, status, out, last);
}

/* x * tanh(softplus(x)). */
enum rfx_status rfx_onnx_mish(struct rfx_onnx_import *ctx) {
    int in, gate, out = -1;
    bool last = false;
    enum rfx_status status = rfx_onnx_elements(ctx, &in, &last);
    if (status == RFX_OK)
        status = rfx_onnx_act(ctx, "/softplus", in, RFX_ACT_SOFTPLUS, 0.0f, 0.0f, &gate);
    if (status == RFX_OK)
        status = rfx_onnx_act(ctx, "/tanh", gate, RFX_ACT_TANH, 0.0f, 0.0f, &gate);
    if (status == RFX_OK) status = product(ctx, in, gate, &out);
    return finish_as(ctx, status, out, last);
}

/* Add, Sum and Mean add. */
static enum rfx_binary_kind binary_kind(const struct rfx_onnx_import *ctx) {
    static const struct {
        const char *op;
        enum rfx_binary_kind kind;
    } kinds[] = {
        {"Sub", RFX_BINARY_SUB},     {"Mul", RFX_BINARY_MUL},
        {"Div", RFX_BINARY_DIV},     {"Max", RFX_BINARY_MAX},
        {"Min", RFX_BINARY_MIN},     {"Pow", RFX_BINARY_POW},
        {"Mod", RFX_BINARY_MOD},     {"Greater", RFX_BINARY_GREATER},
        {"Less", RFX_BINARY_LESS},   {"GreaterOrEqual", RFX_BINARY_GREATER_OR_EQUAL},
        {"Equal", RFX_BINARY_EQUAL}, {"LessOrEqual", RFX_BINARY_LESS_OR_EQUAL},
        {"And", RFX_BINARY_AND},     {"Or", RFX_BINARY_OR},
        {"Xor", RFX_BINARY_XOR},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (op_is(ctx, kinds[i].op)) return kinds[i].kind;
    return RFX_BINARY_ADD;
}

/* Whether a constant next to a map of `c` channels is one value or one value per channel. */
static bool is_per_channel(const struct rfx_onnx_const *k, int64_t c) {
    int rank = k->shape.rank;
    if (rank > 4) return false;
    if (k->elems == 1) return true;
    return k->elems == c && rank >= 3 && k->shape.dims[rank - 3] == c;
}

/* map OP constant as AFFINE; `reversed`: constant OP map. False in *done when it has no such form.
 */
static enum rfx_status try_affine(struct rfx_onnx_import *ctx, enum rfx_binary_kind kind, int in,
                                  struct rfx_onnx_const *k, bool reversed, int *out, bool *done) {
    struct rfx_node node = {.op = RFX_OP_AFFINE, .attr.affine = {-1, -1}};
    const double *v;
    *done = kind == RFX_BINARY_ADD || kind == RFX_BINARY_SUB || kind == RFX_BINARY_MUL ||
            (kind == RFX_BINARY_DIV && !reversed);
    if (!*done) return RFX_OK;
    enum rfx_status status = rfx_onnx_const_reals(ctx, k, &v);
    bool shift = kind == RFX_BINARY_ADD || kind == RFX_BINARY_SUB;
    int *target = shift ? &node.attr.affine.shift : &node.attr.affine.scale;
    if (status == RFX_OK) status = rfx_onnx_own_weight(ctx, NULL, k->elems, target);
    if (status != RFX_OK) return status;
    float *values = rfx_graph_owned_weight(ctx->graph, *target);
    for (int64_t i = 0; i < k->elems; i++) {
        values[i] = (float)v[i];
        if (kind == RFX_BINARY_SUB && !reversed) values[i] = -values[i];
        if (kind == RFX_BINARY_DIV) values[i] = (float)(1.0 / v[i]);
    }
    float minus = -1.0f;
    if (kind == RFX_BINARY_SUB && reversed)
        status = rfx_onnx_own_weight(ctx, &minus, 1, &node.attr.affine.scale);
    return status == RFX_OK ? rfx_onnx_emit(ctx, &node, "", &in, 1, out) : status;
}

/* The forms of x OP number that are activations, in either layout. */
static enum rfx_status try_activation(struct rfx_onnx_import *ctx, enum rfx_binary_kind kind,
                                      int in, struct rfx_onnx_const *k, bool reversed, int *out,
                                      bool *done) {
    const double *v;
    *done = false;
    if (k->elems != 1) return RFX_OK;
    if (k->shape.rank > rfx_onnx_tensor_of(ctx, in)->shape.rank) return RFX_OK;
    enum rfx_status status = rfx_onnx_const_reals(ctx, k, &v);
    if (status != RFX_OK) return status;
    *done = true;
    float f = (float)v[0];
    if (kind == RFX_BINARY_MAX) return rfx_onnx_act(ctx, "", in, RFX_ACT_CLIP, f, HUGE_VALF, out);
    if (kind == RFX_BINARY_MIN) return rfx_onnx_act(ctx, "", in, RFX_ACT_CLIP, -HUGE_VALF, f, out);
    if (kind == RFX_BINARY_POW && !reversed)
        return rfx_onnx_act(ctx, "", in, f == 0.5f ? RFX_ACT_SQRT : RFX_ACT_POW, f, 0.0f, out);
    *done = false;
    return RFX_OK;
}

/* Gives the operand rank 4 with leading ones, as a map. */
static enum rfx_status as_map(struct rfx_onnx_import *ctx, struct rfx_onnx_operand x, int *out) {
    struct rfx_shape shape = *rfx_onnx_shape(ctx, x);
    struct rfx_shape four = {4, {1, 1, 1, 1}};
    if (shape.rank == 4) return rfx_onnx_map(ctx, x, out);
    for (int i = 0; i < shape.rank; i++) four.dims[4 - shape.rank + i] = shape.dims[i];
    if (x.constant != NULL) {
        x.constant = rfx_onnx_const_view(ctx, x.constant, &four);
        if (x.constant == NULL)
            return rfx_onnx_refuse(ctx, RFX_STATUS_OUT_OF_MEMORY, "no memory for a constant");
    } else {
        enum rfx_status status = rfx_onnx_reshape(ctx, x.node, &four, &x.node);
        if (status != RFX_OK) return status;
    }
    return rfx_onnx_map(ctx, x, out);
}

static bool is_map(const struct rfx_onnx_import *ctx, struct rfx_onnx_operand x) {
    return x.node >= 0 && rfx_onnx_tensor_of(ctx, x.node)->layout == RFX_LAYOUT_NHWC;
}

/* Whether the operand can become an NHWC broadcast operand. */
static bool fits_map(const struct rfx_onnx_import *ctx, struct rfx_onnx_operand x) {
    const struct rfx_shape *shape = rfx_onnx_shape(ctx, x);
    return shape->rank < 4 || (shape->rank == 4 && shape->dims[0] == 1);
}

/* The operand beside a map of c channels whose channels come last, as one beside the map itself:
 * the map behind it, or the view of a constant of one value or one per channel. False: neither. */
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
    if (k->repeat != NULL && rfx_onnx_repeat_map(ctx, x->constant, like, &x->node) == RFX_OK &&
        x->node >= 0) {
        x->constant = NULL;
        return true;
    }
    if (rank > most || (k->elems != 1 && !vector)) return false;
    struct rfx_shape shape = {4, {1, k->elems, 1, 1}};
    x->constant = rfx_onnx_const_view(ctx, k, &shape);
    return x->constant != NULL;
}

/* Whether a and b can be combined as maps although their channels come last; they become those. */
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

/* The operand beside a map in its own order, whose tensor has this shape, as one beside the map
 * itself. False: it is another tensor, or a constant of more than one value or one per channel. */
static bool beside_shape(struct rfx_onnx_import *ctx, struct rfx_onnx_operand *x,
                         const struct rfx_shape *shape, int64_t c) {
    const struct rfx_shape own = *rfx_onnx_shape(ctx, *x);
    bool same = own.rank == shape->rank;
    for (int i = 0; same && i < own.rank; i++) same = own.dims[i] == shape->dims[i];
    if (x->node >= 0) {
        x->node = same ? rfx_onnx_elements_behind(ctx, x->node) : -1;
        return x->node >= 0;
    }
    bool channels = own.rank >= 3 && own.dims[own.rank - 3] == c && x->constant->elems == c;
    if (own.rank > shape->rank || (x->constant->elems != 1 && !channels)) return false;
    const struct rfx_shape four = {4, {1, x->constant->elems, 1, 1}};
    x->constant = rfx_onnx_const_view(ctx, x->constant, &four);
    return x->constant != NULL;
}

/* Whether a and b can be combined as maps although they have other axes of 1 in front of their rows
 * and columns; they become those. */
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

static enum rfx_status combine(struct rfx_onnx_import *ctx, enum rfx_binary_kind kind,
                               const char *suffix, struct rfx_onnx_operand a,
                               struct rfx_onnx_operand b, int *out) {
    bool reversed = a.constant != NULL, done = false;
    struct rfx_onnx_const *k = reversed ? a.constant : b.constant;
    int x = reversed ? b.node : a.node, in[2];
    enum rfx_status status = RFX_OK;
    if (k != NULL && x >= 0) {
        const struct rfx_tensor t = *rfx_onnx_tensor_of(ctx, x);
        status = try_activation(ctx, kind, x, k, reversed, out, &done);
        if (status != RFX_OK || done) return status;
        if (t.layout == RFX_LAYOUT_NHWC && is_per_channel(k, t.c))
            status = try_affine(ctx, kind, x, k, reversed, out, &done);
        if (status != RFX_OK || done) return status;
    }
    bool maps = (is_map(ctx, a) || is_map(ctx, b)) && fits_map(ctx, a) && fits_map(ctx, b);
    status = maps ? as_map(ctx, a, &in[0]) : rfx_onnx_plain(ctx, a, &in[0]);
    if (status == RFX_OK) status = maps ? as_map(ctx, b, &in[1]) : rfx_onnx_plain(ctx, b, &in[1]);
    if (status != RFX_OK) return status;
    struct rfx_node node = {.op = maps ? RFX_OP_BINARY : RFX_OP_PLAIN_BINARY};
    node.attr.binary.kind = kind;
    return rfx_onnx_emit(ctx, &node, suffix, in, 2, out);
}

enum rfx_status rfx_onnx_combine(struct rfx_onnx_import *ctx, enum rfx_binary_kind kind,
                                 const char *suffix, struct rfx_onnx_operand a,
                                 struct rfx_onnx_operand b, int *out) {
    if ((a.node < 0 && a.constant == NULL) || (b.node < 0 && b.constant == NULL))
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "an input is missing");
    if (a.constant != NULL && a.constant->repeat != NULL && b.node >= 0)
        a.constant = rfx_onnx_repeat_shrink(ctx, a.constant, rfx_onnx_shape(ctx, b));
    if (b.constant != NULL && b.constant->repeat != NULL && a.node >= 0)
        b.constant = rfx_onnx_repeat_shrink(ctx, b.constant, rfx_onnx_shape(ctx, a));
    if ((a.node < 0 && a.constant == NULL) || (b.node < 0 && b.constant == NULL))
        return rfx_onnx_refuse(ctx, RFX_STATUS_OUT_OF_MEMORY, "no memory for a constant");
    bool last = channels_first(ctx, &a, &b) || without_axes(ctx, &a, &b);
    enum rfx_status status = combine(ctx, kind, suffix, a, b, out);
    return status == RFX_OK && last ? rfx_onnx_channels_last(ctx, *out, out) : status;
}

/* Before opset 7 operands have one shape, or b, with broadcast = 1, has that of some axes of a that
 * follow each other, from `axis` on (else the last ones): it gets the missing ones behind them. */
static enum rfx_status old_broadcast(struct rfx_onnx_import *ctx, struct rfx_onnx_operand a,
                                     struct rfx_onnx_operand *b) {
    const struct rfx_onnx_attr *given = rfx_onnx_attr_find(ctx, "axis");
    if ((a.node < 0 && a.constant == NULL) || (b->node < 0 && b->constant == NULL))
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "an input is missing");
    int rank = rfx_onnx_shape(ctx, a)->rank, axis;
    if (!rfx_onnx_attr_flag(ctx, "broadcast", false) || given == NULL) return RFX_OK;
    enum rfx_status status = rfx_onnx_axis(ctx, given->i, rank, &axis);
    if (status != RFX_OK) return status;
    struct rfx_shape shape = *rfx_onnx_shape(ctx, *b);
    if (axis + shape.rank > rank)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "rank %d broadcast from axis %d of %d",
                               shape.rank, axis, rank);
    while (axis + shape.rank < rank) shape.dims[shape.rank++] = 1;
    if (b->constant == NULL) {
        status = rfx_onnx_plain(ctx, *b, &b->node);
        return status == RFX_OK ? rfx_onnx_reshape(ctx, b->node, &shape, &b->node) : status;
    }
    b->constant = rfx_onnx_const_view(ctx, b->constant, &shape);
    return b->constant != NULL
               ? RFX_OK
               : rfx_onnx_refuse(ctx, RFX_STATUS_OUT_OF_MEMORY, "no memory for a constant");
}

enum rfx_status rfx_onnx_binary(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_operand a = rfx_onnx_in(ctx, 0), b = rfx_onnx_in(ctx, 1);
    int out = -1;
    enum rfx_status status = RFX_OK;
    if (ctx->opset < 7) status = old_broadcast(ctx, a, &b);
    if (status == RFX_OK) status = rfx_onnx_combine(ctx, binary_kind(ctx), "", a, b, &out);
    return finish(ctx, status, out);
}

/* Sum, Max, Min, Mean of any number of operands, from left to right. */
enum rfx_status rfx_onnx_variadic(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_operand total = rfx_onnx_in(ctx, 0);
    enum rfx_status status = RFX_OK;
    size_t n = ctx->node->n_in;
    if (n == 0 || (total.node < 0 && total.constant == NULL))
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "no inputs");
    for (size_t k = 1; status == RFX_OK && k < n; k++) {
        int out = -1;
        status = rfx_onnx_combine(ctx, binary_kind(ctx), k + 1 < n ? "/partial" : "", total,
                                  rfx_onnx_in(ctx, k), &out);
        total.node = out;
        total.constant = NULL;
    }
    if (status == RFX_OK && op_is(ctx, "Mean") && n > 1)
        status = rfx_onnx_scale_shift(ctx, "/mean", total.node, 1.0f / (float)n, 0.0f, &total.node);
    return status == RFX_OK ? rfx_onnx_set(ctx, 0, total) : status;
}

/* Identity and Dropout at inference. */
enum rfx_status rfx_onnx_identity(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_operand x = rfx_onnx_in(ctx, 0);
    if (x.node < 0 && x.constant == NULL)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "input 0 is missing");
    return rfx_onnx_set(ctx, 0, x);
}
