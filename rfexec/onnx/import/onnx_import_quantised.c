/* Converters of operators on one-byte integers: QuantizeLinear and DequantizeLinear of computed
 * tensors, the QLinear operators, and those that quantise dynamically. Their arithmetic is that of
 * ONNX Runtime on x86 (see docs/exactness.md).
 *
 * A tensor of uint8 or int8 is bytes in the graph where the operator that makes it has a form for
 * bytes. Elsewhere it holds the same numbers as float32. */
#include <math.h>
#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/onnx/import/onnx_import.h"

static bool is_byte(int32_t type) {
    return rfx_type_is_byte(rfx_type_of_onnx(type));
}

/* The scale and zero point of a whole tensor. */
struct step {
    float scale;
    int32_t zero;
};

/* Checks that the zero point in input k, if there is one, has the type of its tensor. */
static void check_zero_type(struct rfx_onnx_import *ctx, size_t k, int32_t type) {
    if (!rfx_onnx_has(ctx, k) || rfx_onnx_in_type(ctx, k) == type) return;
    (void)rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "a zero point of %s for a tensor of %s",
                          rfx_type_name(rfx_type_of_onnx(rfx_onnx_in_type(ctx, k))),
                          rfx_type_name(rfx_type_of_onnx(type)));
}

/* Reads the scale and the zero point of a tensor of this type, one element each, from inputs k and
 * k + 1. */
static struct step read_step(struct rfx_onnx_import *ctx, size_t k, int32_t type) {
    check_zero_type(ctx, k + 1, type);
    struct step s = {(float)rfx_onnx_in_number(ctx, k),
                     (int32_t)rfx_onnx_in_number_or(ctx, k + 1, 0.0)};
    if (!(s.scale > 0.0f) || !isfinite(s.scale) || s.zero < -128 || s.zero > 255)
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "scale %g and zero point %d",
                              (double)s.scale, (int)s.zero);
    return s;
}

/* Returns a node of a tensor of bytes for an operand of element type `type`. */
static int as_bytes(struct rfx_onnx_import *ctx, int node, int32_t type) {
    struct rfx_node convert = {.op = RFX_OP_CONVERT, .attr.convert.to = rfx_type_of_onnx(type)};
    if (!is_byte(type))
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "an operand of %s; only uint8 and int8",
                               rfx_type_name(rfx_type_of_onnx(type)));
    if (rfx_onnx_failed(ctx) || rfx_onnx_tensor_of(ctx, node)->type != RFX_TYPE_FLOAT32)
        return node;
    return rfx_onnx_emit1(ctx, &convert, "/bytes", node);
}

/* Adds the conversion of a node to another type with a scale. */
static int convert_by(struct rfx_onnx_import *ctx, const char *suffix, int in, enum rfx_type to,
                      struct step s) {
    struct rfx_node node = {.op = RFX_OP_CONVERT,
                            .attr.convert = {.to = to, .scale = s.scale, .zero_point = s.zero}};
    return rfx_onnx_emit1(ctx, &node, suffix, in);
}

/* Returns the element type of the zero point in input k; UINT8 if the node has none. */
static int32_t type_of_zero(struct rfx_onnx_import *ctx, size_t k) {
    return rfx_onnx_has(ctx, k) ? rfx_onnx_in_type(ctx, k) : RFX_ONNX_UINT8;
}

/* Binds output 0 to a node of this type. In the graph of constants all tensors are float32. */
static int bind(struct rfx_onnx_import *ctx, int node, int32_t type) {
    if (ctx->is_of_constants && !rfx_onnx_failed(ctx))
        ctx->status = rfx_graph_as_numbers(ctx->graph, node, &node, ctx->err);
    return rfx_onnx_bind_as(ctx, 0, rfx_onnx_of(node), type);
}

/* QuantizeLinear with several scales, or to 16 bits, by arithmetic of float32. Elements of 16 bits
 * are float32 numbers in the graph. */
static int quantise_steps(struct rfx_onnx_import *ctx, int32_t type) {
    enum rfx_type to = rfx_type_of_onnx(type);
    struct rfx_node bytes = {.op = RFX_OP_CONVERT, .attr.convert.to = to};
    float lo, hi;
    check_zero_type(ctx, 2, type);
    int made = rfx_onnx_whole_steps(ctx);
    if (rfx_type_is_byte(to)) return bind(ctx, rfx_onnx_emit1(ctx, &bytes, "", made), type);
    rfx_type_limits(to, &lo, &hi);
    return bind(ctx, rfx_onnx_act(ctx, "", made, RFX_ACT_CLIP, lo, hi), type);
}

int rfx_onnx_quantise(struct rfx_onnx_import *ctx) {
    struct rfx_pixels order;
    int64_t given = rfx_onnx_attr_int(ctx, "output_dtype", 0);
    int32_t type = rfx_onnx_has(ctx, 2) || given == 0 ? type_of_zero(ctx, 2) : (int32_t)given;
    if (given != 0 && given != type)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED,
                               "output_dtype %lld and a zero point of %s", (long long)given,
                               rfx_type_name(rfx_type_of_onnx(type)));
    int64_t precision = rfx_onnx_attr_int(ctx, "precision", 0); /* of the division */
    bool wide = type == RFX_ONNX_INT16 || type == RFX_ONNX_UINT16;
    if (precision != 0 && precision != RFX_ONNX_FLOAT)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "precision %lld; only 1, float32",
                               (long long)precision);
    if (!wide && !is_byte(type))
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                               "to %s; only to uint8, int8, uint16 and int16",
                               rfx_type_name(rfx_type_of_onnx(type)));
    const struct rfx_onnx_const *scale = rfx_onnx_in_const(ctx, 1);
    if (rfx_onnx_failed(ctx)) return -1;
    if (wide || scale->elems > 1 || rfx_onnx_attr_int(ctx, "block_size", 0) != 0)
        return quantise_steps(ctx, type);
    struct step s = read_step(ctx, 1, type);
    int in = rfx_onnx_moved_map(ctx, rfx_onnx_in(ctx, 0), &order);
    int made = convert_by(ctx, "", in, rfx_type_of_onnx(type), s);
    return bind(ctx, rfx_onnx_move_back(ctx, made, &order), type);
}

int rfx_onnx_dequantise_bytes(struct rfx_onnx_import *ctx) {
    struct rfx_pixels order;
    struct step s = read_step(ctx, 1, rfx_onnx_in_type(ctx, 0));
    int in = rfx_onnx_moved_map(ctx, rfx_onnx_in(ctx, 0), &order);
    return rfx_onnx_move_back(ctx, convert_by(ctx, "", in, RFX_TYPE_FLOAT32, s), &order);
}

/* Returns the constant of input k, or NULL if the node has no such input. Refuses a constant that
 * has neither `count` elements nor, if `one`, a single one. */
static struct rfx_onnx_const *per_channel(struct rfx_onnx_import *ctx, size_t k, const char *what,
                                          int64_t count, bool one) {
    struct rfx_onnx_const *c = rfx_onnx_has(ctx, k) ? rfx_onnx_in_const(ctx, k) : NULL;
    if (c == NULL || c->elems == count || (one && c->elems == 1)) return c;
    (void)rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "%s of %lld elements for %lld output channels",
                          what, (long long)c->elems, (long long)count);
    return NULL;
}

/* Returns what a sum of 1 stands for in each of oc output channels: alpha times the scale of input
 * 0 times the scale of the weights, which is input k. */
static float *read_units(struct rfx_onnx_import *ctx, float alpha, float scale, size_t k,
                         int64_t oc) {
    float *units = rfx_onnx_alloc(ctx, (size_t)oc, sizeof *units);
    (void)rfx_onnx_in_const(ctx, k);
    struct rfx_onnx_const *scales = per_channel(ctx, k, "scales", oc, true);
    const double *all = scales == NULL ? NULL : rfx_onnx_const_reals(ctx, scales);
    for (int64_t i = 0; units != NULL && all != NULL && i < oc; i++) {
        float step = (float)all[scales->elems == 1 ? 0 : i];
        units[i] = (alpha * scale) * step;
        if (!(units[i] > 0.0f) || !isfinite(units[i]))
            (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "a scale of %g for the weights",
                                  (double)step);
    }
    return units;
}

/* Sets the table of an integer convolution. zero, bias: the inputs with the zero points of the
 * weights (input `weight`) and with the bias, which may be absent; a bias of floats is rounded to
 * multiples of the units. The factors are the units divided by `out`, or 1 if `units` is NULL. */
static void set_channels(struct rfx_onnx_import *ctx, size_t weight, size_t zero, size_t bias,
                         const float *units, float out, struct rfx_int_conv_attr *q) {
    int64_t oc = q->conv.oc;
    struct rfx_onnx_const *zeros = per_channel(ctx, zero, "zero points", oc, true);
    struct rfx_onnx_const *added = per_channel(ctx, bias, "bias", oc, false);
    check_zero_type(ctx, zero, rfx_onnx_in_type(ctx, weight));
    if (!is_byte(rfx_onnx_in_type(ctx, weight)))
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "weights of %s; only uint8 and int8",
                              rfx_type_name(rfx_type_of_onnx(rfx_onnx_in_type(ctx, weight))));
    q->channels = rfx_onnx_alloc(ctx, (size_t)oc, 3 * sizeof *q->channels);
    if (q->channels == NULL || rfx_onnx_failed(ctx)) return;
    const int64_t *shifts = zeros != NULL ? rfx_onnx_const_ints(ctx, zeros) : NULL;
    bool rounds = added != NULL && rfx_onnx_type_is_real(added->type);
    const int64_t *biases = added != NULL && !rounds ? rfx_onnx_const_ints(ctx, added) : NULL;
    const double *reals = rounds ? rfx_onnx_const_reals(ctx, added) : NULL;
    for (int64_t i = 0; i < oc && !rfx_onnx_failed(ctx); i++) {
        float factor = units == NULL ? 1.0f : units[i] / out;
        uint32_t bits;
        if (!(factor > 0.0f) || !isfinite(factor))
            (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                                  "a scale of %g for sums and %g for the result",
                                  units == NULL ? 1.0 : (double)units[i], (double)out);
        memcpy(&bits, &factor, sizeof bits);
        q->channels[3 * i] = biases != NULL ? biases[i] : 0;
        if (reals != NULL) q->channels[3 * i] = llrintf((float)reals[i] / units[i]);
        q->channels[3 * i + 1] = shifts == NULL ? 0 : shifts[zeros->elems == 1 ? 0 : i];
        q->channels[3 * i + 2] = bits;
    }
}

/* Checks that an element type is one of bytes. */
static void check_result(struct rfx_onnx_import *ctx, int32_t type) {
    if (!is_byte(type))
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "a result of %s; only uint8 and int8",
                              rfx_type_name(rfx_type_of_onnx(type)));
}

int rfx_onnx_quantised_conv(struct rfx_onnx_import *ctx) {
    struct rfx_node node = {.op = RFX_OP_INT_CONV};
    struct rfx_int_conv_attr *q = &node.attr.int_conv;
    int in = rfx_onnx_conv_window(ctx, 3, &node.attr.conv);
    int32_t type = type_of_zero(ctx, 7);
    struct step from = read_step(ctx, 1, rfx_onnx_in_type(ctx, 0)), to = read_step(ctx, 6, type);
    check_result(ctx, type);
    if (rfx_onnx_failed(ctx)) return -1;
    set_channels(ctx, 3, 5, 8, read_units(ctx, 1.0f, from.scale, 4, q->conv.oc), to.scale, q);
    q->in_zero = from.zero;
    q->out_zero = to.zero;
    q->to = rfx_type_of_onnx(type);
    in = as_bytes(ctx, in, rfx_onnx_in_type(ctx, 0));
    return bind(ctx, rfx_onnx_emit1(ctx, &node, "", in), type);
}

/* The rows of operand 0, of shape [..., k], as the pixels of a map of k channels. */
struct rows {
    int map;
    struct rfx_shape shape; /* of operand 0 */
    bool tokens;            /* operand 0 is made of this map's tokens, in the order `order` */
    int order;
};

/* Finds the rows of operand 0, for its product with a constant matrix of `wants` rows. */
static struct rows find_rows(struct rfx_onnx_import *ctx, int64_t wants) {
    struct rfx_node as_map = {.op = RFX_OP_PLAIN_AS_NHWC};
    struct rfx_onnx_operand x = rfx_onnx_need_computed(ctx);
    struct rows rows = {.map = -1, .shape = *rfx_onnx_shape(ctx, x)};
    if (rfx_onnx_failed(ctx)) return rows;
    int64_t k = rows.shape.rank > 0 ? rows.shape.dims[rows.shape.rank - 1] : 0;
    if (k != wants) {
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                              "rows of %lld elements times a matrix of %lld rows", (long long)k,
                              (long long)wants);
        return rows;
    }
    int32_t type = rfx_onnx_in_type(ctx, 0);
    rows.map = rfx_onnx_tokens_behind(ctx, x.node);
    rows.tokens = rows.map >= 0;
    rows.order = ctx->order;
    if (rows.tokens) {
        rows.map = as_bytes(ctx, rows.map, type);
        return rows;
    }
    const struct rfx_shape pixels = {
        4, {1, rfx_shape_product(&rows.shape, 0, rows.shape.rank - 1), 1, k}};
    int in = as_bytes(ctx, rfx_onnx_plain(ctx, x), type);
    rows.map = rfx_onnx_emit1(ctx, &as_map, "/pixels", rfx_onnx_reshape(ctx, in, &pixels));
    return rows;
}

/* Returns a map of m channels, computed from these rows, as a tensor [..., m]. */
static int as_rows(struct rfx_onnx_import *ctx, const struct rows *rows, int map, int64_t m) {
    struct rfx_node as_plain = {.op = RFX_OP_NHWC_AS_PLAIN};
    struct rfx_shape out = rows->shape;
    ctx->order = rows->order;
    if (rows->tokens) return rfx_onnx_channels_last(ctx, map);
    out.dims[out.rank - 1] = m;
    return rfx_onnx_reshape(ctx, rfx_onnx_emit1(ctx, &as_plain, "/rows", map), &out);
}

/* Sets a 1x1 convolution by a constant matrix, input k: (rows, columns), or turned. Returns false
 * after an error. */
static bool read_matrix(struct rfx_onnx_import *ctx, size_t k, bool turned,
                        struct rfx_conv_attr *conv) {
    struct rfx_onnx_const *b = rfx_onnx_in_const(ctx, k);
    if (rfx_onnx_failed(ctx)) return false;
    if (b->shape.rank != 2) {
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "a matrix of rank %d, not 2",
                              b->shape.rank);
        return false;
    }
    const struct rfx_shape filters = {4, {b->shape.dims[0], b->shape.dims[1], 1, 1}};
    *conv = rfx_conv_pointwise(b->shape.dims[turned ? 0 : 1]);
    conv->ic = b->shape.dims[turned ? 1 : 0];
    conv->weight = turned ? rfx_onnx_const_weight(ctx, rfx_onnx_const_view(ctx, b, &filters))
                          : rfx_onnx_const_weight_transposed(ctx, b);
    return !rfx_onnx_failed(ctx);
}

/* Returns the node of rows of bytes times a constant matrix, input 3, as a 1x1 convolution of a
 * map. bias, out_scale: inputs of the node. Without a scale of the result, the result is float32:
 * the sums times their units. */
static int fully_connected(struct rfx_onnx_import *ctx, bool turned, float alpha, size_t bias,
                           size_t out_scale) {
    struct rfx_node node = {.op = RFX_OP_INT_CONV}, numbers = {.op = RFX_OP_CONVERT},
                    scale = {.op = RFX_OP_AFFINE, .attr.affine = {-1, -1}};
    struct rfx_int_conv_attr *q = &node.attr.int_conv;
    if (!read_matrix(ctx, 3, turned, &q->conv)) return -1;
    int64_t m = q->conv.oc;
    bool floats = !rfx_onnx_has(ctx, out_scale);
    int32_t type = floats ? RFX_ONNX_FLOAT : type_of_zero(ctx, out_scale + 1);
    struct step from = read_step(ctx, 1, rfx_onnx_in_type(ctx, 0)), to = {1.0f, 0};
    if (!floats) {
        to = read_step(ctx, out_scale, type);
        check_result(ctx, type);
    }
    const float *units = read_units(ctx, alpha, from.scale, 4, m);
    set_channels(ctx, 3, 5, bias, units, to.scale, q);
    q->in_zero = from.zero;
    q->out_zero = to.zero;
    q->to = floats ? RFX_TYPE_INT32 : rfx_type_of_onnx(type);
    struct rows rows = find_rows(ctx, q->conv.ic);
    int made = rfx_onnx_emit1(ctx, &node, floats ? "/sums" : "", rows.map);
    if (floats) {
        scale.attr.affine.scale = rfx_onnx_own_weight(ctx, units, m);
        made = rfx_onnx_emit1(ctx, &numbers, "/numbers", made);
        made = rfx_onnx_emit1(ctx, &scale, "", made);
    }
    return bind(ctx, as_rows(ctx, &rows, made, m), type);
}

int rfx_onnx_quantised_gemm(struct rfx_onnx_import *ctx) {
    bool turned = rfx_onnx_attr_flag(ctx, "transB", false);
    if (rfx_onnx_attr_flag(ctx, "transA", false))
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "transA 1");
    return fully_connected(ctx, turned, rfx_onnx_attr_float(ctx, "alpha", 1.0f), 6, 7);
}

int rfx_onnx_quantised_matmul(struct rfx_onnx_import *ctx) {
    return fully_connected(ctx, false, 1.0f, 8, 6); /* there is no input 8: no bias */
}

/* --- ConvInteger, MatMulInteger, DynamicQuantizeLinear --- */

/* Refuses sums that are an output of the model and may be above 2^24: outputs are collected as
 * float32. Elsewhere a Cast to float rounds them, as in ONNX Runtime. */
static void check_sums(struct rfx_onnx_import *ctx, const struct rfx_conv_attr *a) {
    const struct rfx_onnx_model *model = ctx->model;
    double most = (double)(a->ic / a->groups) * (double)(a->kh * a->kw) * 255.0 * 255.0;
    for (size_t i = 0; i < model->n_outputs && most > 16777216.0; i++)
        if (ctx->node->n_out > 0 && strcmp(model->outputs[i].name, ctx->node->out[0]) == 0)
            (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                                  "output '%s' has sums of up to %.0f; as int32 only outputs of up "
                                  "to 2^24 are supported: add a Cast to float",
                                  model->outputs[i].name, most);
}

/* Returns the node of an integer convolution of a map of bytes to sums of int32. Its zero point is
 * input 2 of the ONNX node: a constant, or computed by a DynamicQuantizeLinear. */
static int emit_sums(struct rfx_onnx_import *ctx, struct rfx_node *node, int map) {
    struct rfx_int_conv_attr *q = &node->attr.int_conv;
    const struct rfx_shape one = {4, {1, 1, 1, 1}};
    struct rfx_onnx_operand zero = rfx_onnx_in(ctx, 2);
    int32_t type = rfx_onnx_in_type(ctx, 0);
    q->to = RFX_TYPE_INT32;
    set_channels(ctx, 1, 3, SIZE_MAX, NULL, 1.0f, q);
    q->conv.ic = rfx_onnx_tensor_of(ctx, map)->c;
    check_sums(ctx, &q->conv);
    check_zero_type(ctx, 2, type);
    if (zero.node < 0) {
        q->in_zero = (int32_t)rfx_onnx_in_number_or(ctx, 2, 0.0);
        return rfx_onnx_emit1(ctx, node, "", map);
    }
    if (rfx_onnx_tensor_of(ctx, zero.node)->elems != 1)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "computed zero points per row");
    int at = rfx_onnx_map(ctx, rfx_onnx_of(rfx_onnx_plain_as(ctx, zero.node, &one)));
    return rfx_onnx_emit2(ctx, node, "", map, as_bytes(ctx, at, type));
}

int rfx_onnx_conv_integer(struct rfx_onnx_import *ctx) {
    struct rfx_node node = {.op = RFX_OP_INT_CONV};
    int in = rfx_onnx_conv_window(ctx, 1, &node.attr.conv);
    in = as_bytes(ctx, in, rfx_onnx_in_type(ctx, 0));
    if (rfx_onnx_failed(ctx)) return -1;
    return bind(ctx, emit_sums(ctx, &node, in), RFX_ONNX_INT32);
}

int rfx_onnx_matmul_integer(struct rfx_onnx_import *ctx) {
    struct rfx_node node = {.op = RFX_OP_INT_CONV};
    struct rfx_conv_attr *conv = &node.attr.conv;
    if (!read_matrix(ctx, 1, false, conv)) return -1;
    struct rows rows = find_rows(ctx, conv->ic);
    if (rfx_onnx_failed(ctx)) return -1;
    int made = as_rows(ctx, &rows, emit_sums(ctx, &node, rows.map), conv->oc);
    return bind(ctx, made, RFX_ONNX_INT32);
}

/* Returns the node of `a kind number`, in a's layout. A division stays a division. */
static int by_number(struct rfx_onnx_import *ctx, enum rfx_binary_kind kind, const char *suffix,
                     int a, double number) {
    struct rfx_onnx_const *c = rfx_onnx_const_number(ctx, number);
    struct rfx_shape ones = {rfx_onnx_tensor_of(ctx, a)->shape.rank, {1, 1, 1, 1, 1, 1, 1, 1}};
    if (rfx_onnx_failed(ctx)) return -1;
    struct rfx_onnx_operand x = rfx_onnx_of_const(rfx_onnx_const_view(ctx, c, &ones));
    int b = rfx_onnx_is_map(ctx, a) ? rfx_onnx_map(ctx, x) : rfx_onnx_plain(ctx, x);
    return rfx_onnx_binary_of(ctx, kind, suffix, a, b);
}

/* Binds output k to a tensor of one element, as a scalar. */
static void bind_scalar(struct rfx_onnx_import *ctx, size_t k, int node, int32_t type) {
    const struct rfx_shape scalar = {0, {0}};
    if (!rfx_onnx_gives(ctx, k)) return;
    (void)rfx_onnx_bind_as(ctx, k, rfx_onnx_of(rfx_onnx_plain_as(ctx, node, &scalar)), type);
}

/* With lo = min(0, min(x)) and hi = max(0, max(x)) over the whole tensor: scale = (hi - lo) / 255,
 * or 1 if hi = lo; zero point = saturate(round(-lo / scale)); the result is saturate(round(x /
 * scale) + zero point). Every operation is rounded to float32 once, as in ONNX Runtime. */
int rfx_onnx_dynamic_quantise(struct rfx_onnx_import *ctx) {
    struct rfx_node bytes = {.op = RFX_OP_CONVERT, .attr.convert.to = RFX_TYPE_UINT8};
    struct rfx_node floats = {.op = RFX_OP_CONVERT};
    bool last;
    (void)rfx_onnx_need_computed(ctx);
    int in = rfx_onnx_elements(ctx, &last), order = ctx->order;
    int lo = rfx_onnx_reduce_all(ctx, "/min", RFX_REDUCE_MIN, in);
    int hi = rfx_onnx_reduce_all(ctx, "/max", RFX_REDUCE_MAX, in);
    lo = rfx_onnx_act(ctx, "/lo", lo, RFX_ACT_CLIP, -HUGE_VALF, 0.0f);
    hi = rfx_onnx_act(ctx, "/hi", hi, RFX_ACT_CLIP, 0.0f, HUGE_VALF);
    int range = rfx_onnx_binary_of(ctx, RFX_BINARY_SUB, "/range", hi, lo);
    int step = by_number(ctx, RFX_BINARY_DIV, "/step", range, 255.0);
    int none = by_number(ctx, RFX_BINARY_EQUAL, "/none", range, 0.0);
    int scale = rfx_onnx_binary_of(ctx, RFX_BINARY_ADD, "/scale", step, none);
    int zero = rfx_onnx_binary_of(ctx, RFX_BINARY_DIV, "/below", lo, scale);
    zero = rfx_onnx_apply(ctx, "/above", zero, RFX_ACT_NEG);
    zero = rfx_onnx_emit1(ctx, &bytes, "/zero", zero);
    int shift = rfx_onnx_emit1(ctx, &floats, "/shift", zero);
    int made = rfx_onnx_binary_of(ctx, RFX_BINARY_DIV, "/steps", in, scale);
    made = rfx_onnx_apply(ctx, "/whole", made, RFX_ACT_ROUND);
    made = rfx_onnx_binary_of(ctx, RFX_BINARY_ADD, "/shifted", made, shift);
    made = rfx_onnx_emit1(ctx, &bytes, "", made);
    bind_scalar(ctx, 1, scale, RFX_ONNX_FLOAT);
    bind_scalar(ctx, 2, zero, RFX_ONNX_UINT8);
    ctx->order = order;
    return bind(ctx, rfx_onnx_ordered(ctx, made, last), RFX_ONNX_UINT8);
}

/* Returns the node of operand k as float32, by the scale in input k + 1. */
static int dequantised(struct rfx_onnx_import *ctx, size_t k) {
    int in = as_bytes(ctx, rfx_onnx_any(ctx, rfx_onnx_need(ctx, k)), rfx_onnx_in_type(ctx, k));
    return convert_by(ctx, "/numbers", in, RFX_TYPE_FLOAT32,
                      read_step(ctx, k + 1, rfx_onnx_in_type(ctx, k)));
}

/* Returns whether every axis of `b` is 1 or as long as that of `a`. */
static bool is_broadcast_to(const struct rfx_shape *b, const struct rfx_shape *a) {
    bool fits = a->rank == b->rank;
    for (int i = 0; i < a->rank && fits; i++) fits = b->dims[i] == a->dims[i] || b->dims[i] == 1;
    return fits;
}

/* Adds the node of QLinearAdd or QLinearMul. Its input 0 is the larger operand, as in ONNX Runtime;
 * the first, if they have one shape. If neither has the shape of the result, the result is computed
 * in float32. */
static int pair(struct rfx_onnx_import *ctx, bool sum) {
    struct rfx_node node = {.op = sum ? RFX_OP_INT_ADD : RFX_OP_INT_MUL};
    int32_t type = rfx_onnx_in_type(ctx, 0);
    struct step s[3] = {read_step(ctx, 1, type), read_step(ctx, 4, type), read_step(ctx, 6, type)};
    struct rfx_onnx_operand x[2] = {rfx_onnx_need(ctx, 0), rfx_onnx_need(ctx, 3)};
    enum rfx_type to = rfx_type_of_onnx(type);
    if (rfx_onnx_failed(ctx)) return -1;
    struct rfx_pixels order = {.map = -1};
    for (int i = 0; i < 2; i++) /* times or plus one number */
        if (x[i].node >= 0 && x[1 - i].constant != NULL && x[1 - i].constant->elems == 1)
            x[i].node = rfx_onnx_moved_map(ctx, x[i], &order);
    if (rfx_onnx_failed(ctx)) return -1;
    struct rfx_shape shapes[2] = {*rfx_onnx_shape(ctx, x[0]), *rfx_onnx_shape(ctx, x[1])};
    bool maps = rfx_onnx_is_map(ctx, x[0].node) || rfx_onnx_is_map(ctx, x[1].node);
    for (int i = 0; i < 2 && maps; i++) shapes[i] = rfx_onnx_rank_4(&shapes[i]);
    int large = is_broadcast_to(&shapes[1], &shapes[0]) ? 0 : 1, in[2];
    bool fits = maps ? is_broadcast_to(&shapes[1 - large], &shapes[large])
                     : rfx_onnx_same_shape(&shapes[0], &shapes[1]);
    if (!fits) {
        struct rfx_onnx_operand a = rfx_onnx_of(dequantised(ctx, 0));
        struct rfx_onnx_operand b = rfx_onnx_of(dequantised(ctx, 3));
        int made = rfx_onnx_combine(ctx, sum ? RFX_BINARY_ADD : RFX_BINARY_MUL, "/combined", a, b);
        return bind(ctx, convert_by(ctx, "", made, to, s[2]), type);
    }
    for (int i = 0; i < 2; i++) {
        int k = i == 0 ? large : 1 - large;
        if (maps && x[k].constant != NULL)
            x[k].constant = rfx_onnx_const_view(ctx, x[k].constant, &shapes[k]);
        in[i] = as_bytes(ctx, maps ? rfx_onnx_map(ctx, x[k]) : rfx_onnx_plain(ctx, x[k]), type);
    }
    const struct step *a = &s[large], *b = &s[1 - large];
    if (sum) {
        node.attr.int_add.to = to;
        node.attr.int_add.a_scale = a->scale / s[2].scale;
        node.attr.int_add.b_scale = b->scale / s[2].scale;
        node.attr.int_add.shift =
            (float)s[2].zero - fmaf((float)a->zero, node.attr.int_add.a_scale,
                                    (float)b->zero * node.attr.int_add.b_scale);
    } else {
        node.attr.int_mul.to = to;
        node.attr.int_mul.factor = a->scale * b->scale / s[2].scale;
        node.attr.int_mul.a_zero = a->zero;
        node.attr.int_mul.b_zero = b->zero;
        node.attr.int_mul.out_zero = s[2].zero;
    }
    int made = rfx_onnx_emit2(ctx, &node, "", in[0], in[1]);
    return bind(ctx, rfx_onnx_move_back(ctx, made, &order), type);
}

int rfx_onnx_quantised_add(struct rfx_onnx_import *ctx) {
    return pair(ctx, true);
}

int rfx_onnx_quantised_mul(struct rfx_onnx_import *ctx) {
    return pair(ctx, false);
}

/* Sigmoid and LeakyRelu: float32 between two conversions. */
int rfx_onnx_quantised_act(struct rfx_onnx_import *ctx) {
    bool leaky = rfx_onnx_op_is(ctx, "QLinearLeakyRelu");
    float alpha = leaky ? rfx_onnx_attr_float(ctx, "alpha", 0.01f) : 0.0f;
    int32_t type = rfx_onnx_in_type(ctx, 0);
    int made = rfx_onnx_act(ctx, "/function", dequantised(ctx, 0),
                            leaky ? RFX_ACT_LEAKY_RELU : RFX_ACT_SIGMOID, alpha, 0.0f);
    return bind(ctx, convert_by(ctx, "", made, rfx_type_of_onnx(type), read_step(ctx, 3, type)),
                type);
}

/* Softmax by a table, between two conversions. Attribute "opset": the meaning of the axis, as in
 * rfx_onnx_softmax_of; a node of the form DequantizeLinear, Softmax, QuantizeLinear has that of the
 * model. */
int rfx_onnx_quantised_softmax(struct rfx_onnx_import *ctx) {
    int32_t type = rfx_onnx_in_type(ctx, 0);
    bool old = rfx_onnx_attr_int(ctx, "opset", ctx->opset) < 13;
    struct step from = read_step(ctx, 1, type), to = read_step(ctx, 3, type);
    const struct rfx_softmax_steps steps = {from.scale, to.scale};
    int made = rfx_onnx_softmax_of(ctx, "/function", dequantised(ctx, 0), old, steps);
    return bind(ctx, convert_by(ctx, "", made, rfx_type_of_onnx(type), to), type);
}

/* Adds the mean over space of a map of bytes. */
static int mean_of(struct rfx_onnx_import *ctx, int in, struct step from, int32_t type,
                   struct step to) {
    struct rfx_node node = {.op = RFX_OP_INT_MEAN,
                            .attr.int_mean = {.to = rfx_type_of_onnx(type),
                                              .in_scale = from.scale,
                                              .out_scale = to.scale,
                                              .in_zero = from.zero,
                                              .out_zero = to.zero}};
    return bind(ctx, rfx_onnx_emit1(ctx, &node, "", in), type);
}

/* Returns whether a window without pads is the whole map. */
static bool is_whole_map(const struct rfx_pool_attr *window, const struct rfx_tensor *map) {
    return window->kh == map->h && window->kw == map->w && window->pads.top == 0 &&
           window->pads.left == 0 && window->pads.bottom == 0 && window->pads.right == 0;
}

/* AveragePool, whose window is `node`, of operand 0: in float32 between two conversions, the second
 * of which adds the zero point before it rounds. ONNX Runtime computes a window of the whole map as
 * GlobalAveragePool, with another rounding. */
int rfx_onnx_quantised_average(struct rfx_onnx_import *ctx, struct rfx_node *node) {
    int32_t type = rfx_onnx_in_type(ctx, 0);
    struct step from = read_step(ctx, 1, type), to = read_step(ctx, 3, type);
    int in = as_bytes(ctx, rfx_onnx_map(ctx, rfx_onnx_need_computed(ctx)), type);
    if (rfx_onnx_failed(ctx)) return -1;
    if (is_whole_map(&node->attr.pool, rfx_onnx_tensor_of(ctx, in)))
        return mean_of(ctx, in, from, type, to);
    in = convert_by(ctx, "/numbers", in, RFX_TYPE_FLOAT32, from);
    struct rfx_node convert = {.op = RFX_OP_CONVERT,
                               .attr.convert = {rfx_type_of_onnx(type), to.scale, to.zero, true}};
    in = rfx_onnx_emit1(ctx, node, "/average", in);
    return bind(ctx, rfx_onnx_emit1(ctx, &convert, "", in), type);
}

/* QLinearConcat. Inputs: scale and zero point of the output, then map, scale and zero point for
 * each map. Maps of another scale or type are converted before they are joined. */
int rfx_onnx_quantised_concat(struct rfx_onnx_import *ctx) {
    int32_t type = type_of_zero(ctx, 1);
    struct step to = read_step(ctx, 0, type);
    int64_t axis = rfx_onnx_attr_int(ctx, "axis", 1);
    size_t n = ctx->node->n_in < 5 ? 0 : (ctx->node->n_in - 2) / 3;
    int *in = rfx_onnx_alloc(ctx, n + 1, sizeof *in);
    struct rfx_node node = {.op = RFX_OP_CONCAT};
    if (n == 0 || in == NULL || (axis != 1 && axis != -3))
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "%zu inputs, axis %lld; only channels",
                               ctx->node->n_in, (long long)axis);
    for (size_t i = 0; i < n; i++) {
        size_t k = 2 + 3 * i;
        struct step s = read_step(ctx, k + 1, rfx_onnx_in_type(ctx, k));
        in[i] = as_bytes(ctx, rfx_onnx_map(ctx, rfx_onnx_need(ctx, k)), rfx_onnx_in_type(ctx, k));
        if (s.scale == to.scale && s.zero == to.zero && rfx_onnx_in_type(ctx, k) == type) continue;
        in[i] = convert_by(ctx, "/numbers", in[i], RFX_TYPE_FLOAT32, s);
        in[i] = convert_by(ctx, "/scaled", in[i], rfx_type_of_onnx(type), to);
    }
    return bind(ctx, rfx_onnx_emit(ctx, &node, "", in, (int)n), type);
}

int rfx_onnx_quantised_mean(struct rfx_onnx_import *ctx) {
    int32_t type = type_of_zero(ctx, 4);
    struct step from = read_step(ctx, 1, rfx_onnx_in_type(ctx, 0)), to = read_step(ctx, 3, type);
    if (rfx_onnx_attr_flag(ctx, "channels_last", false))
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "channels_last 1");
    int in =
        as_bytes(ctx, rfx_onnx_map(ctx, rfx_onnx_need_computed(ctx)), rfx_onnx_in_type(ctx, 0));
    return mean_of(ctx, in, from, type, to);
}
