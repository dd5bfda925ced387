/* Converters of operators on one-byte integers: QuantizeLinear and DequantizeLinear of computed
 * tensors, and the QLinear operators. Their arithmetic is that of ONNX Runtime on x86 (see
 * docs/exactness.md).
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

int rfx_onnx_quantise(struct rfx_onnx_import *ctx) {
    bool last;
    int64_t given = rfx_onnx_attr_int(ctx, "output_dtype", 0);
    int32_t type = rfx_onnx_has(ctx, 2) || given == 0 ? type_of_zero(ctx, 2) : (int32_t)given;
    if (given != 0 && given != type)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED,
                               "output_dtype %lld and a zero point of %s", (long long)given,
                               rfx_type_name(rfx_type_of_onnx(type)));
    if (rfx_onnx_attr_int(ctx, "block_size", 0) != 0 || !is_byte(type))
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                               "to %s; only to uint8 and int8, with one scale",
                               rfx_type_name(rfx_type_of_onnx(type)));
    struct step s = read_step(ctx, 1, type);
    int in = rfx_onnx_elements(ctx, &last), order = ctx->order;
    int made = convert_by(ctx, "", in, rfx_type_of_onnx(type), s);
    ctx->order = order;
    return bind(ctx, rfx_onnx_ordered(ctx, made, last), type);
}

int rfx_onnx_dequantise_bytes(struct rfx_onnx_import *ctx) {
    bool last;
    struct step s = read_step(ctx, 1, rfx_onnx_in_type(ctx, 0));
    int in = rfx_onnx_elements(ctx, &last), order = ctx->order;
    int made = convert_by(ctx, "", in, RFX_TYPE_FLOAT32, s);
    ctx->order = order;
    return rfx_onnx_ordered(ctx, made, last);
}

/* Sets the table and the zero points of an integer convolution. weight_scale and bias are inputs of
 * the node: the scales of the weights, with the zero points behind them, and the bias, which may be
 * absent. A bias of floats is rounded to multiples of input scale times weight scale. */
static void set_channels(struct rfx_onnx_import *ctx, struct step in, struct step out, float alpha,
                         size_t weight_scale, size_t bias, struct rfx_int_conv_attr *q) {
    int64_t oc = q->conv.oc;
    struct rfx_onnx_const *scale = rfx_onnx_in_const(ctx, weight_scale);
    struct rfx_onnx_const *zero =
        rfx_onnx_has(ctx, weight_scale + 1) ? rfx_onnx_in_const(ctx, weight_scale + 1) : NULL;
    struct rfx_onnx_const *added = rfx_onnx_has(ctx, bias) ? rfx_onnx_in_const(ctx, bias) : NULL;
    struct rfx_onnx_const *all[3] = {scale, zero, added};
    for (int i = 0; i < 3 && !rfx_onnx_failed(ctx); i++)
        if (all[i] != NULL && all[i]->elems != oc && (i == 2 || all[i]->elems != 1))
            (void)rfx_onnx_refuse(
                ctx, RFX_STATUS_MALFORMED, "%s of %lld elements for %lld output channels",
                i == 2 ? "bias" : "scales", (long long)all[i]->elems, (long long)oc);
    check_zero_type(ctx, weight_scale + 1, rfx_onnx_in_type(ctx, 3));
    q->channels = rfx_onnx_alloc(ctx, (size_t)oc, 3 * sizeof *q->channels);
    if (q->channels == NULL || rfx_onnx_failed(ctx)) return;
    const double *scales = rfx_onnx_const_reals(ctx, scale);
    const int64_t *zeros = zero != NULL ? rfx_onnx_const_ints(ctx, zero) : NULL;
    bool rounds = added != NULL && rfx_onnx_type_is_real(added->type);
    const int64_t *biases = added != NULL && !rounds ? rfx_onnx_const_ints(ctx, added) : NULL;
    const double *reals = rounds ? rfx_onnx_const_reals(ctx, added) : NULL;
    for (int64_t i = 0; i < oc && !rfx_onnx_failed(ctx); i++) {
        float step = (float)scales[scale->elems == 1 ? 0 : i];
        float factor = ((alpha * in.scale) * step) / out.scale;
        uint32_t bits;
        if (!(factor > 0.0f) || !isfinite(factor))
            (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "a scale of %g for the weights",
                                  (double)step);
        if (rfx_onnx_failed(ctx)) return;
        memcpy(&bits, &factor, sizeof bits);
        q->channels[3 * i] = biases != NULL ? biases[i] : 0;
        if (reals != NULL) q->channels[3 * i] = llrintf((float)reals[i] / (in.scale * step));
        q->channels[3 * i + 1] = zeros == NULL ? 0 : zeros[zero->elems == 1 ? 0 : i];
        q->channels[3 * i + 2] = bits;
    }
    q->in_zero = in.zero;
    q->out_zero = out.zero;
}

int rfx_onnx_quantised_conv(struct rfx_onnx_import *ctx) {
    struct rfx_node node = {.op = RFX_OP_INT_CONV};
    int in = rfx_onnx_conv_window(ctx, 3, &node.attr.conv);
    int32_t type = type_of_zero(ctx, 7);
    struct step from = read_step(ctx, 1, rfx_onnx_in_type(ctx, 0)), to = read_step(ctx, 6, type);
    if (!is_byte(rfx_onnx_in_type(ctx, 3)) || !is_byte(type))
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                              "weights or results of other types than "
                              "uint8 and int8");
    if (rfx_onnx_failed(ctx)) return -1;
    set_channels(ctx, from, to, 1.0f, 4, 8, &node.attr.int_conv);
    node.attr.int_conv.to = rfx_type_of_onnx(type);
    in = as_bytes(ctx, in, rfx_onnx_in_type(ctx, 0));
    return bind(ctx, rfx_onnx_emit1(ctx, &node, "", in), type);
}

/* Returns the node of a fully connected layer of one row: a 1x1 convolution of a map of one pixel.
 * The weights are input 3: (k, m), or (m, k) if `turned`. bias, out_scale: inputs of the node. */
static int fully_connected(struct rfx_onnx_import *ctx, bool turned, float alpha, size_t bias,
                           size_t out_scale) {
    struct rfx_node node = {.op = RFX_OP_INT_CONV}, as_map = {.op = RFX_OP_PLAIN_AS_NHWC},
                    as_plain = {.op = RFX_OP_NHWC_AS_PLAIN};
    struct rfx_onnx_const *b = rfx_onnx_in_const(ctx, 3);
    const struct rfx_shape shape = *rfx_onnx_shape(ctx, rfx_onnx_need_computed(ctx));
    if (rfx_onnx_failed(ctx)) return -1;
    int64_t k = shape.rank > 0 ? shape.dims[shape.rank - 1] : 0;
    if (b->shape.rank != 2 || rfx_onnx_product(&shape, 0, shape.rank - 1) != 1 ||
        b->shape.dims[turned ? 1 : 0] != k)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                               "only one row times a constant matrix of as many rows as it has "
                               "columns");
    if (!rfx_onnx_has(ctx, out_scale))
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "a result of float32");
    int32_t type = type_of_zero(ctx, out_scale + 1);
    int64_t m = b->shape.dims[turned ? 0 : 1];
    const struct rfx_shape filters = {4, {m, k, 1, 1}}, pixel = {4, {1, 1, 1, k}};
    struct rfx_shape out = shape;
    out.dims[shape.rank - 1] = m;
    node.attr.conv = rfx_conv_pointwise(m);
    node.attr.conv.weight = turned
                                ? rfx_onnx_const_weight(ctx, rfx_onnx_const_view(ctx, b, &filters))
                                : rfx_onnx_const_weight_transposed(ctx, b);
    set_channels(ctx, read_step(ctx, 1, rfx_onnx_in_type(ctx, 0)), read_step(ctx, out_scale, type),
                 alpha, 4, bias, &node.attr.int_conv);
    node.attr.int_conv.to = rfx_type_of_onnx(type);
    if (!is_byte(type) || !is_byte(rfx_onnx_in_type(ctx, 3)))
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                               "weights or results of other types than uint8 and int8");
    int in = as_bytes(ctx, rfx_onnx_plain(ctx, rfx_onnx_in(ctx, 0)), rfx_onnx_in_type(ctx, 0));
    in = rfx_onnx_emit1(ctx, &as_map, "/pixel", rfx_onnx_reshape(ctx, in, &pixel));
    int made = rfx_onnx_emit1(ctx, &node, "", in);
    made = rfx_onnx_reshape(ctx, rfx_onnx_emit1(ctx, &as_plain, "/row", made), &out);
    return bind(ctx, made, type);
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
    return bind(ctx, rfx_onnx_emit2(ctx, &node, "", in[0], in[1]), type);
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

/* Inputs: scale and zero point of the output, then three for each map. Maps of another scale are
 * converted before they are joined. */
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
