/* Converters of operators with a window: convolutions, pools, Col2Im, and the indices of MaxPool.
 */
#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/onnx/import/onnx_import.h"

/* The window of a node over one, two or three axes of space. Nodes of the graph have two such axes.
 * Therefore of three axes one must have a window of a single tap. The positions along that axis are
 * computed apart: each is a map, and the channels of all these maps are groups of one map. The
 * images of a batch are computed apart in the same way. */
struct window {
    int64_t kernel[2], strides[2], dilations[2], pads[4];
    struct rfx_shape shape; /* of the operand: (n, c, w), (n, c, h, w) or (1, c, d, h, w) */
    size_t weight, bias;    /* inputs of the node; bias 0: it has none */
    int apart;              /* axis whose positions are computed apart; 1: there is none */
    int64_t times;          /* number of these positions */
};

/* Splits `total` rows or columns of padding into pads before and after the operand. With SAME_UPPER
 * an odd one is after it, else before it. */
static void split_pads(struct window *win, int i, int64_t total, const char *mode) {
    win->pads[i] = strcmp(mode, "SAME_UPPER") == 0 ? total / 2 : total - total / 2;
    win->pads[i + 2] = total - win->pads[i];
}

/* Returns whether the window along `axis`, one of three axes of space, has one tap and no padding.
 */
static bool is_apart(struct rfx_onnx_import *ctx, int axis) {
    int64_t kernel[3] = {1, 1, 1}, strides[3] = {1, 1, 1}, pads[6] = {0};
    const struct rfx_onnx_const *weight = rfx_onnx_in(ctx, 1).constant;
    rfx_onnx_attr_ints(ctx, "kernel_shape", 3, kernel);
    rfx_onnx_attr_ints(ctx, "strides", 3, strides);
    rfx_onnx_attr_ints(ctx, "pads", 6, pads);
    if (weight != NULL && weight->shape.rank == 5) kernel[axis - 2] = weight->shape.dims[axis];
    return kernel[axis - 2] == 1 && strides[axis - 2] == 1 && pads[axis - 2] == 0 &&
           pads[axis + 1] == 0;
}

/* Chooses the axis of operand 0 that is computed apart. For rank 3 and 4 it is the batch. For rank
 * 5 it is an axis of space with a window of one tap: the first one with a single position, else the
 * first one. */
static void find_apart(struct rfx_onnx_import *ctx, struct window *win) {
    const int64_t *d = win->shape.dims;
    bool five = win->shape.rank == 5;
    if (!five) win->apart = d[0] > 1 ? 0 : 1;
    for (int axis = 4; five && axis >= 2; axis--)
        if (is_apart(ctx, axis) && (win->apart == 1 || d[axis] == 1 || d[win->apart] != 1))
            win->apart = axis;
    if (five && win->apart == 1)
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                              "a window along all of depth, rows and columns");
    if (five && d[0] != 1)
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                              "an operand with a batch of %lld; only 1 is supported",
                              (long long)d[0]);
    win->times = win->apart == 1 ? 1 : d[win->apart];
}

/* Sets perm[5] to the transpose that moves the axis that is computed apart in front of the
 * channels, and back[5] to its inverse. The batch (axis 0) is there already. */
static void apart_first(int apart, int *perm, int *back) {
    int n = 0;
    perm[n++] = 0;
    if (apart != 0) perm[n++] = apart;
    for (int i = 1; i < 5; i++)
        if (i != apart) perm[n++] = i;
    for (int i = 0; i < 5; i++) back[perm[i]] = i;
}

/* Returns operand 0 as a map. An operand of rank 3 becomes one row. Positions that are computed
 * apart become groups of channels. */
static int window_operand(struct rfx_onnx_import *ctx, struct window *win) {
    struct rfx_onnx_operand x = rfx_onnx_need(ctx, 0);
    win->shape = *rfx_onnx_shape(ctx, x);
    win->apart = 1;
    win->times = 1;
    int rank = win->shape.rank, perm[5], back[5];
    if (x.node < 0 || rank < 3 || rank > 5) return rfx_onnx_map(ctx, x);
    find_apart(ctx, win);
    if (rank == 4 && win->times == 1) return rfx_onnx_map(ctx, x);
    apart_first(win->apart, perm, back);
    if (rank == 5 && win->times > 1) x = rfx_onnx_permute(ctx, x, perm);
    const int64_t *d = win->shape.dims;
    struct rfx_shape four = {4, {1, win->times * d[1], rank == 3 ? 1 : d[2], d[rank - 1]}};
    for (int i = 0; rank == 5 && i < 2; i++) four.dims[2 + i] = d[perm[3 + i]];
    if (rfx_onnx_failed(ctx)) return -1;
    int before = rfx_onnx_shaped_before(ctx, x.node, &four);
    if (before < 0) before = rfx_onnx_plain_as(ctx, x.node, &four);
    return rfx_onnx_map(ctx, rfx_onnx_of(before));
}

/* Returns a result, which is a map, in the rank that the operand had. */
static int finish_window(struct rfx_onnx_import *ctx, const struct window *win, int map) {
    const struct rfx_tensor t = *rfx_onnx_tensor_of(ctx, map);
    int64_t n = win->times, c = t.c / n;
    int rank = win->shape.rank, perm[5], back[5];
    if (rfx_onnx_failed(ctx) || (rank == 4 && n == 1)) return map;
    struct rfx_shape shapes[6] = {
        [3] = {3, {n, c, t.w}}, [4] = {4, {n, c, t.h, t.w}}, [5] = {5, {1, n, c, t.h, t.w}}};
    apart_first(win->apart, perm, back);
    if (n == 1) { /* the axis has one position: no elements move */
        shapes[5].dims[1] = c;
        for (int i = 2, k = 3; rank == 5 && i < 5; i++)
            shapes[5].dims[i] = i == win->apart ? 1 : k++ == 3 ? t.h : t.w;
    }
    int made = rfx_onnx_plain_as(ctx, map, &shapes[rank]);
    return rank == 5 && n > 1 ? rfx_onnx_permute(ctx, rfx_onnx_of(made), back).node : made;
}

/* Reads an attribute with one integer per axis of space and sets out[2] to those of rows and
 * columns. With one axis of space, that of the rows is `neutral`. With three, that of the axis that
 * is computed apart must be `neutral`. */
static void axis_ints(struct rfx_onnx_import *ctx, const struct window *win, const char *name,
                      int64_t neutral, int64_t *out) {
    int n = win->shape.rank - 2, apart = n == 3 ? win->apart - 2 : -1;
    int row = apart == 0 ? 1 : 0, column = apart == 2 ? 1 : 2;
    int64_t all[3] = {neutral, neutral, neutral};
    if (rfx_onnx_failed(ctx)) return;
    if (n == 2) {
        rfx_onnx_attr_ints(ctx, name, 2, out);
        return;
    }
    if (n == 1) {
        rfx_onnx_attr_ints(ctx, name, 1, out + 1);
        out[0] = neutral;
        return;
    }
    all[row] = out[0];
    all[column] = out[1];
    rfx_onnx_attr_ints(ctx, name, 3, all);
    if (all[apart] != neutral)
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "%s of %lld along axis %d", name,
                              (long long)all[apart], win->apart);
    out[0] = all[row];
    out[1] = all[column];
}

/* Reads the attribute pads in the same way. It lists the pads before each axis, then those after.
 */
static void axis_pads(struct rfx_onnx_import *ctx, const struct window *win, int64_t *pads) {
    int n = win->shape.rank - 2, apart = n == 3 ? win->apart - 2 : -1;
    int64_t all[6] = {0};
    if (rfx_onnx_failed(ctx)) return;
    rfx_onnx_attr_ints(ctx, "pads", 2 * (size_t)n, all);
    if (n == 3 && (all[apart] != 0 || all[3 + apart] != 0))
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "pads along axis %d", win->apart);
    for (int i = 0; i < 2; i++) { /* rows, columns */
        int at = n < 3 ? n - 2 + i : i == 0 ? (apart == 0 ? 1 : 0) : (apart == 2 ? 1 : 2);
        pads[i] = at < 0 ? 0 : all[at];
        pads[i + 2] = at < 0 ? 0 : all[n + at];
    }
}

/* Reads kernel_shape (already set for convolutions), strides, dilations and pads of a window on
 * map `in`. */
static void read_window(struct rfx_onnx_import *ctx, int in, bool transposed, struct window *win) {
    static const char *const modes[] = {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID", ""};
    const struct rfx_tensor *t = rfx_onnx_tensor_of(ctx, in);
    for (int i = 0; i < 2; i++) win->strides[i] = win->dilations[i] = 1;
    int64_t stated[2] = {win->kernel[0], win->kernel[1]};
    axis_ints(ctx, win, "kernel_shape", 1, stated);
    axis_ints(ctx, win, "strides", 1, win->strides);
    axis_ints(ctx, win, "dilations", 1, win->dilations);
    axis_pads(ctx, win, win->pads);
    if (win->kernel[0] != 0 && (stated[0] != win->kernel[0] || stated[1] != win->kernel[1]))
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED,
                              "kernel_shape %lldx%lld, but the weights are %lldx%lld",
                              (long long)stated[0], (long long)stated[1], (long long)win->kernel[0],
                              (long long)win->kernel[1]);
    for (int i = 0; i < 4; i++) {
        int64_t all[4] = {stated[i % 2], win->strides[i % 2], win->dilations[i % 2], win->pads[i]};
        for (int k = 0; k < 4; k++)
            if (all[k] < (k < 3 ? 1 : 0) || all[k] > RFX_ONNX_MOST_GIVEN)
                (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                                      "kernel, stride, dilation or pad of %lld", (long long)all[k]);
        win->kernel[i % 2] = stated[i % 2];
    }
    const char *mode = modes[rfx_onnx_attr_choice(ctx, "auto_pad", "NOTSET", modes, 5)];
    if (rfx_onnx_failed(ctx)) return;
    int64_t size[2] = {t->h, t->w};
    for (int i = 0; i < 2 && strncmp(mode, "SAME_", 5) == 0 && !transposed; i++) {
        int64_t extent = (win->kernel[i] - 1) * win->dilations[i] + 1;
        int64_t out = rfx_ceil_div(size[i], win->strides[i]);
        split_pads(win, i, rfx_max_i64((out - 1) * win->strides[i] + extent - size[i], 0), mode);
    }
    if (strcmp(mode, "VALID") == 0) memset(win->pads, 0, sizeof win->pads);
}

static struct rfx_pads pads_of(const int64_t *pads) {
    return (struct rfx_pads){pads[0], pads[1], pads[2], pads[3]};
}

/* Returns `times` copies of a constant, joined along its first axis. */
static struct rfx_onnx_const *repeat(struct rfx_onnx_import *ctx, int64_t times,
                                     struct rfx_onnx_const *c) {
    if (rfx_onnx_failed(ctx) || times == 1) return c;
    struct rfx_shape shape = c->shape;
    if (shape.rank == 0 || !rfx_checked_mul_i64(shape.dims[0], times, &shape.dims[0]))
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "weights of rank 0");
    const double *values = rfx_onnx_const_reals(ctx, c);
    struct rfx_onnx_const *made = rfx_onnx_const_new(ctx, RFX_ONNX_DOUBLE, &shape);
    for (int64_t i = 0; made != NULL && i < made->elems; i++)
        rfx_onnx_const_reals_rw(made)[i] = values[i % c->elems];
    return made;
}

/* Returns the weights as (oc, ic, kh, kw), and sets the window's kernel. */
static struct rfx_onnx_const *read_weight(struct rfx_onnx_import *ctx, struct window *win) {
    struct rfx_onnx_const *weight = rfx_onnx_in_const(ctx, win->weight);
    if (weight == NULL) return NULL;
    const int64_t *d = weight->shape.dims;
    int rank = weight->shape.rank;
    if (rank != win->shape.rank || rank < 3) {
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                              "weights of rank %d for an operand of rank %d", rank,
                              win->shape.rank);
        return NULL;
    }
    win->kernel[0] = rank == 3 ? 1 : rank == 4 ? d[2] : d[win->apart == 2 ? 3 : 2];
    win->kernel[1] = rank < 5 ? d[rank - 1] : d[win->apart == 4 ? 3 : 4];
    const struct rfx_shape four = {4, {d[0], d[1], win->kernel[0], win->kernel[1]}};
    if (weight->elems == 0)
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "weights without elements");
    return rank == 4 ? weight : rfx_onnx_const_view(ctx, weight, &four);
}

/* Sets groups and channels of a convolution, and checks them against the map's. */
static void set_channels(struct rfx_onnx_import *ctx, const struct rfx_shape *weight,
                         bool transposed, int64_t times, int64_t given, struct rfx_conv_attr *a) {
    int64_t ic = 0;
    if (!rfx_checked_mul_i64(rfx_onnx_attr_int(ctx, "group", 1), times, &a->groups))
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "the number of groups overflows");
    if (a->groups < 1 || a->groups > RFX_ONNX_MOST_GIVEN ||
        !rfx_checked_mul_i64(weight->dims[transposed ? 1 : 0], transposed ? a->groups : 1, &a->oc))
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "%lld groups", (long long)a->groups);
    if (rfx_onnx_failed(ctx)) return;
    bool fits =
        rfx_checked_mul_i64(weight->dims[transposed ? 0 : 1], transposed ? 1 : a->groups, &ic);
    if (!fits || ic != given || a->oc % a->groups != 0 || ic % a->groups != 0)
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED,
                              "weights for %lld channels in %lld groups, %lld channels given",
                              (long long)ic, (long long)a->groups, (long long)given);
}

/* Reads what Conv and ConvTranspose share: weights, bias, window. Returns the operand as a map. */
static int conv_common(struct rfx_onnx_import *ctx, bool transposed, struct rfx_node *node,
                       struct window *win) {
    struct rfx_conv_attr *a = &node->attr.conv;
    int in = window_operand(ctx, win);
    struct rfx_onnx_const *weight = read_weight(ctx, win);
    if (weight == NULL) return -1;
    read_window(ctx, in, transposed, win);
    weight = repeat(ctx, win->times, weight);
    a->weight = rfx_onnx_const_weight(ctx, weight);
    a->bias = a->scale = -1;
    if (rfx_onnx_failed(ctx)) return -1;
    set_channels(ctx, &weight->shape, transposed, win->times, rfx_onnx_tensor_of(ctx, in)->c, a);
    bool has_bias = win->bias > 0 && rfx_onnx_has(ctx, win->bias);
    struct rfx_onnx_const *bias = has_bias ? rfx_onnx_in_const(ctx, win->bias) : NULL;
    if (bias != NULL && bias->elems != a->oc / win->times)
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "bias of %lld for %lld channels",
                              (long long)bias->elems, (long long)(a->oc / win->times));
    if (bias != NULL) a->bias = rfx_onnx_const_weight(ctx, repeat(ctx, win->times, bias));
    a->kh = win->kernel[0];
    a->kw = win->kernel[1];
    a->sh = win->strides[0];
    a->sw = win->strides[1];
    a->dh = win->dilations[0];
    a->dw = win->dilations[1];
    a->pads = pads_of(win->pads);
    return rfx_onnx_failed(ctx) ? -1 : in;
}

int rfx_onnx_conv(struct rfx_onnx_import *ctx) {
    struct rfx_node node = {.op = RFX_OP_CONV};
    struct window win = {.times = 1, .weight = 1, .bias = 2};
    int in = conv_common(ctx, false, &node, &win);
    return finish_window(ctx, &win, rfx_onnx_emit1(ctx, &node, "", in));
}

int rfx_onnx_conv_window(struct rfx_onnx_import *ctx, size_t weight, struct rfx_conv_attr *a) {
    struct rfx_node node = {.op = RFX_OP_CONV};
    struct window win = {.times = 1, .weight = weight};
    int in = conv_common(ctx, false, &node, &win);
    if (!rfx_onnx_failed(ctx) && win.shape.rank != 4)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "an operand of rank %d; only 4",
                               win.shape.rank);
    if (!rfx_onnx_failed(ctx) && win.times != 1)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                               "an operand with a batch of %lld; only 1 is supported",
                               (long long)win.times);
    *a = node.attr.conv;
    return in;
}

/* Returns the activation of com.microsoft's FusedConv. MALFORMED: the attribute activation_params
 * has a wrong number of numbers. */
static struct rfx_act fused_activation(struct rfx_onnx_import *ctx) {
    static const struct {
        enum rfx_act_kind kind;
        size_t count;
    } rows[] = {{RFX_ACT_NONE, 0},        {RFX_ACT_RELU, 0},       {RFX_ACT_TANH, 0},
                {RFX_ACT_SIGMOID, 0},     {RFX_ACT_LEAKY_RELU, 1}, {RFX_ACT_CLIP, 2},
                {RFX_ACT_HARD_SIGMOID, 2}};
    static const char *const names[] = {"",          "Relu", "Tanh",       "Sigmoid",
                                        "LeakyRelu", "Clip", "HardSigmoid"};
    int row = rfx_onnx_attr_choice(ctx, "activation", "", names, 7);
    const struct rfx_onnx_attr *params = rfx_onnx_attr_find(ctx, "activation_params");
    size_t given = params != NULL && params->kind == RFX_ONNX_ATTR_FLOATS ? params->count : 0;
    if (given != rows[row].count)
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED,
                              "activation '%.40s' with %zu activation_params, %zu expected",
                              names[row], given, rows[row].count);
    return (struct rfx_act){.kind = rows[row].kind,
                            .alpha = given > 0 ? params->floats[0] : 0.0f,
                            .beta = given > 1 ? params->floats[1] : 0.0f,
                            .slope = -1};
}

/* FusedConv: act(conv(X, W, B) + Z), where Z and the activation are optional. */
int rfx_onnx_fused_conv(struct rfx_onnx_import *ctx) {
    struct rfx_node node = {.op = RFX_OP_CONV};
    struct window win = {.times = 1, .weight = 1, .bias = 2};
    struct rfx_act act = fused_activation(ctx);
    int in = conv_common(ctx, false, &node, &win);
    int out = finish_window(ctx, &win, rfx_onnx_emit1(ctx, &node, "/conv", in));
    if (rfx_onnx_has(ctx, 3))
        out = rfx_onnx_combine(ctx, RFX_BINARY_ADD, "/sum", rfx_onnx_of(out), rfx_onnx_in(ctx, 3));
    return act.kind == RFX_ACT_NONE ? out
                                    : rfx_onnx_act(ctx, "", out, act.kind, act.alpha, act.beta);
}

/* Sets the pads of a transposed convolution from output_shape or auto_pad. If the output is larger
 * than the kernels reach, its end gets output padding: rows that hold the bias alone. */
static void transposed_pads(const struct rfx_onnx_import *ctx, const struct rfx_tensor *in,
                            const int64_t *shape, int64_t *out_pad, struct window *win) {
    const char *mode = rfx_onnx_attr_string(ctx, "auto_pad", "NOTSET");
    if (shape[0] == 0 && strncmp(mode, "SAME_", 5) != 0) return;
    int64_t size[2] = {in->h, in->w};
    for (int i = 0; i < 2; i++) {
        int64_t want = shape[i] != 0 ? shape[i] : size[i] * win->strides[i];
        int64_t total = win->strides[i] * (size[i] - 1) + out_pad[i] +
                        (win->kernel[i] - 1) * win->dilations[i] + 1 - want;
        if (total < 0) out_pad[i] -= total;
        split_pads(win, i, rfx_max_i64(total, 0), mode);
    }
}

/* Adds a transposed convolution of floats that were one-byte integers, and its bias behind it. ONNX
 * Runtime adds the bias last too: the bytes of a QuantizeLinear behind it then are the same. */
static int bias_last(struct rfx_onnx_import *ctx, struct rfx_node *node, int in) {
    struct rfx_node bias = {.op = RFX_OP_CONST_MAP};
    bias.attr.constant.weight = node->attr.conv.bias;
    bias.attr.constant.shape = (struct rfx_shape){4, {1, node->attr.conv.oc, 1, 1}};
    node->attr.conv.bias = -1;
    int made = rfx_onnx_emit1(ctx, node, "/products", in);
    return rfx_onnx_binary_of(ctx, RFX_BINARY_ADD, "", made,
                              rfx_onnx_emit(ctx, &bias, "/bias", NULL, 0));
}

int rfx_onnx_conv_transpose(struct rfx_onnx_import *ctx) {
    struct rfx_node node = {.op = RFX_OP_CONV_TRANSPOSE};
    struct window win = {.times = 1, .weight = 1, .bias = 2};
    int64_t out_pad[2] = {0, 0}, shape[2] = {0, 0};
    int in = conv_common(ctx, true, &node, &win);
    axis_ints(ctx, &win, "output_padding", 0, out_pad);
    if (rfx_onnx_attr_find(ctx, "output_shape") != NULL)
        axis_ints(ctx, &win, "output_shape", 1, shape);
    for (int i = 0; i < 2; i++)
        if (out_pad[i] < 0 || out_pad[i] > RFX_ONNX_MOST_GIVEN || shape[i] < 0 ||
            shape[i] > RFX_ONNX_MOST_GIVEN)
            (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "output_padding or output_shape");
    if (rfx_onnx_failed(ctx)) return -1;
    transposed_pads(ctx, rfx_onnx_tensor_of(ctx, in), shape, out_pad, &win);
    node.attr.conv.pads = pads_of(win.pads);
    node.attr.conv.out_pad_h = out_pad[0];
    node.attr.conv.out_pad_w = out_pad[1];
    if (node.attr.conv.bias >= 0 && rfx_onnx_is_of_bytes(ctx, in))
        return finish_window(ctx, &win, bias_last(ctx, &node, in));
    return finish_window(ctx, &win, rfx_onnx_emit1(ctx, &node, "", in));
}

/* --- Col2Im ---
 *
 * It becomes a transposed convolution of each channel by itself. Its weights put value (ky, kx) of
 * a block at row ky and column kx of the block. Values at the same place are added. */

struct blocks {
    int64_t image[2], block[2], strides[2], dilations[2], pads[4];
    int64_t count[2]; /* blocks along rows and columns */
    int64_t rest[2];  /* rows and columns of the image after the last block */
};

/* Copies the two integers of constant input k to out[2]. */
static void read_pair(struct rfx_onnx_import *ctx, size_t k, int64_t *out) {
    int64_t count;
    const int64_t *values = rfx_onnx_in_ints(ctx, k, &count);
    if (count != 2)
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                              "input %zu has %lld elements; only images of rows and columns are "
                              "supported",
                              k, (long long)count);
    if (!rfx_onnx_failed(ctx)) memcpy(out, values, 2 * sizeof *out);
}

static void read_blocks(struct rfx_onnx_import *ctx, struct blocks *b) {
    enum { MOST = 1 << 20 }; /* rows or columns of an image, or of a block */
    read_pair(ctx, 1, b->image);
    read_pair(ctx, 2, b->block);
    rfx_onnx_attr_ints(ctx, "strides", 2, b->strides);
    rfx_onnx_attr_ints(ctx, "dilations", 2, b->dilations);
    rfx_onnx_attr_ints(ctx, "pads", 4, b->pads);
    for (int i = 0; !rfx_onnx_failed(ctx) && i < 2; i++) {
        const int64_t values[6] = {b->image[i],     b->block[i],    b->strides[i],
                                   b->dilations[i], b->pads[i] + 1, b->pads[i + 2] + 1};
        for (int k = 0; k < 6; k++)
            if (values[k] < 1 || values[k] > MOST)
                (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                                      "a size, stride, dilation or pad out of range");
        if (rfx_onnx_failed(ctx)) return;
        int64_t room =
            b->image[i] + b->pads[i] + b->pads[i + 2] - (b->dilations[i] * (b->block[i] - 1) + 1);
        if (room < 0)
            (void)rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "a block larger than its image");
        b->count[i] = room / b->strides[i] + 1;
        b->rest[i] = room - (b->count[i] - 1) * b->strides[i];
    }
}

/* Returns weights [channels * block][1][kh][kw] that are 1 at the value's own place, else 0. */
static int places(struct rfx_onnx_import *ctx, int64_t channels, const int64_t *block) {
    int64_t area = block[0] * block[1];
    const struct rfx_shape shape = {4, {channels * area, 1, block[0], block[1]}};
    struct rfx_onnx_const *c = rfx_onnx_const_new(ctx, RFX_ONNX_FLOAT, &shape);
    for (int64_t i = 0; c != NULL && i < c->elems; i++)
        rfx_onnx_const_put(c, i, i % area == i / area % area ? 1.0 : 0.0);
    return rfx_onnx_const_weight(ctx, c);
}

int rfx_onnx_col2im(struct rfx_onnx_import *ctx) {
    struct blocks b = {.strides = {1, 1}, .dilations = {1, 1}};
    struct rfx_node node = {.op = RFX_OP_CONV_TRANSPOSE};
    int in = rfx_onnx_plain(ctx, rfx_onnx_in(ctx, 0));
    read_blocks(ctx, &b);
    if (rfx_onnx_failed(ctx)) return -1;
    const struct rfx_shape shape = rfx_onnx_tensor_of(ctx, in)->shape;
    int64_t area = b.block[0] * b.block[1];
    if (shape.rank != 3 || shape.dims[0] != 1 || shape.dims[1] % area != 0 ||
        shape.dims[2] != b.count[0] * b.count[1])
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                               "input 0 is not (1, channels * %lld, %lld * %lld)", (long long)area,
                               (long long)b.count[0], (long long)b.count[1]);
    const struct rfx_shape four = {4, {1, shape.dims[1], b.count[0], b.count[1]}};
    in = rfx_onnx_map(ctx, rfx_onnx_of(rfx_onnx_reshape(ctx, in, &four)));
    int64_t channels = shape.dims[1] / area;
    node.attr.conv = (struct rfx_conv_attr){.weight = places(ctx, channels, b.block),
                                            .bias = -1,
                                            .scale = -1,
                                            .groups = channels,
                                            .oc = channels,
                                            .kh = b.block[0],
                                            .kw = b.block[1],
                                            .sh = b.strides[0],
                                            .sw = b.strides[1],
                                            .dh = b.dilations[0],
                                            .dw = b.dilations[1],
                                            .pads = pads_of(b.pads),
                                            .out_pad_h = b.rest[0],
                                            .out_pad_w = b.rest[1]};
    return rfx_onnx_emit1(ctx, &node, "", in);
}

/* --- pools --- */

/* Returns the only axis along which the window of an AveragePool has more than one tap, and sets
 * *taps to its size. Returns -1 when there are several such axes, or when the window has strides,
 * dilations or pads. */
static int only_axis(const struct rfx_onnx_import *ctx, int rank, int64_t *taps) {
    static const char *const lists[] = {"strides", "dilations", "pads"};
    const struct rfx_onnx_attr *kernel = rfx_onnx_attr_find(ctx, "kernel_shape");
    int axis = -1;
    if (kernel == NULL || kernel->kind != RFX_ONNX_ATTR_INTS || (int)kernel->count != rank - 2)
        return -1;
    for (size_t k = 0; k < 3; k++) {
        const struct rfx_onnx_attr *a = rfx_onnx_attr_find(ctx, lists[k]);
        for (size_t i = 0; a != NULL && a->kind == RFX_ONNX_ATTR_INTS && i < a->count; i++)
            if (a->ints[i] != (k < 2 ? 1 : 0)) return -1;
    }
    if (strncmp(rfx_onnx_attr_string(ctx, "auto_pad", "NOTSET"), "SAME", 4) == 0) return -1;
    for (int i = 0; i < rank - 2; i++) {
        if (kernel->ints[i] == 1) continue;
        if (axis >= 0) return -1;
        axis = i + 2;
        *taps = kernel->ints[i];
    }
    return axis;
}

/* Converts an AveragePool along an axis that holds a map's channels to a 1x1 convolution. Exporters
 * write local response norms with such pools. Returns -1 when the pool is another one. */
static int pool_channels(struct rfx_onnx_import *ctx) {
    enum { MOST_POOLED_CHANNELS = 4096 };
    struct rfx_onnx_operand x = rfx_onnx_in(ctx, 0);
    struct rfx_pixels p;
    int64_t taps = 0;
    if (!rfx_onnx_op_is(ctx, "AveragePool") || x.node < 0 || !rfx_pixels_of(ctx->graph, x.node, &p))
        return -1;
    int axis = only_axis(ctx, p.rank, &taps);
    int64_t c = p.extent[RFX_PIXELS_CHANNEL], made = c - taps + 1;
    if (axis < 0 || !rfx_pixels_axis_is_channels(&p, axis) || taps < 1 || made < 1 ||
        c > MOST_POOLED_CHANNELS)
        return -1;
    /* without strides and pads these two attributes change nothing */
    (void)rfx_onnx_attr_find(ctx, "ceil_mode");
    (void)rfx_onnx_attr_find(ctx, "count_include_pad");
    struct rfx_node node = {.op = RFX_OP_CONV, .attr.conv = rfx_conv_pointwise(made)};
    struct rfx_shape shape = {4, {made, c, 1, 1}};
    struct rfx_onnx_const *band = rfx_onnx_const_new(ctx, RFX_ONNX_DOUBLE, &shape);
    for (int64_t i = 0; band != NULL && i < band->elems; i++) {
        bool inside = i % c >= i / c && i % c < i / c + taps;
        rfx_onnx_const_put(band, i, inside ? 1.0 / (double)taps : 0.0);
    }
    node.attr.conv.weight = rfx_onnx_const_weight(ctx, band);
    int out = rfx_onnx_emit1(ctx, &node, "", p.map);
    if (out < 0) return -1;
    p = rfx_pixels_with_channels(&p, axis, out, made);
    return rfx_onnx_emit_pixels(ctx, &p);
}

/* Records the indices of the current MaxPool from map `in` to map `out`. */
static void keep_indices(struct rfx_onnx_import *ctx, int in, int out,
                         const struct rfx_pool_attr *attr) {
    struct rfx_onnx_indices *kept = rfx_onnx_alloc(ctx, 1, sizeof *kept);
    if (kept == NULL) return;
    *kept = (struct rfx_onnx_indices){.name = ctx->node->out[1],
                                      .pool = ctx->node_name,
                                      .in = in,
                                      .out = out,
                                      .rank = rfx_onnx_shape(ctx, rfx_onnx_in(ctx, 0))->rank,
                                      .attr = *attr,
                                      .next = ctx->indices};
    kept->attr.column_major = rfx_onnx_attr_flag(ctx, "storage_order", false);
    ctx->indices = kept;
}

int rfx_onnx_pool(struct rfx_onnx_import *ctx) {
    bool max = rfx_onnx_op_is(ctx, "MaxPool"), lp = rfx_onnx_op_is(ctx, "LpPool");
    struct rfx_node node = {.op = max ? RFX_OP_POOL_MAX : lp ? RFX_OP_POOL_LP : RFX_OP_POOL_AVG};
    struct window win = {.times = 1, .weight = 1, .bias = 2};
    int out = pool_channels(ctx);
    if (out >= 0) return out;
    int in = window_operand(ctx, &win);
    read_window(ctx, in, false, &win);
    struct rfx_pool_attr *a = &node.attr.pool;
    a->kh = win.kernel[0];
    a->kw = win.kernel[1];
    a->sh = win.strides[0];
    a->sw = win.strides[1];
    a->dh = win.dilations[0];
    a->dw = win.dilations[1];
    a->pads = pads_of(win.pads);
    a->ceil_mode = rfx_onnx_attr_flag(ctx, "ceil_mode", false);
    if (lp) a->p = rfx_onnx_power(ctx);
    a->count_include_pad = rfx_onnx_attr_flag(ctx, "count_include_pad", false);
    if (rfx_onnx_op_is(ctx, "QLinearAveragePool")) {
        if (win.shape.rank == 4 && win.times == 1 &&
            !rfx_onnx_attr_flag(ctx, "channels_last", false))
            return rfx_onnx_quantised_average(ctx, &node);
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "rank %d or channels_last",
                               win.shape.rank);
    }
    out = rfx_onnx_emit1(ctx, &node, "", in);
    if (rfx_onnx_gives(ctx, 1)) keep_indices(ctx, in, out, a);
    return finish_window(ctx, &win, out);
}

int rfx_onnx_global_pool(struct rfx_onnx_import *ctx) {
    struct rfx_node node = {.op = RFX_OP_GLOBAL_POOL};
    bool max = rfx_onnx_op_is(ctx, "GlobalMaxPool");
    node.attr.global_pool.kind = max ? RFX_REDUCE_MAX : RFX_REDUCE_MEAN;
    return rfx_onnx_emit1(ctx, &node, "", rfx_onnx_map(ctx, rfx_onnx_in(ctx, 0)));
}

/* --- indices of MaxPool ---
 *
 * A MaxUnpool compares the input of the MaxPool with the maxima again, and reads no indices. All
 * other readers get the indices as numbers. */

const struct rfx_onnx_indices *rfx_onnx_indices_of(const struct rfx_onnx_import *ctx,
                                                   const char *name) {
    const struct rfx_onnx_indices *i = ctx->indices;
    while (i != NULL && strcmp(i->name, name) != 0) i = i->next;
    return i;
}

void rfx_onnx_make_indices(struct rfx_onnx_import *ctx, const struct rfx_onnx_indices *indices) {
    static const struct rfx_onnx_node pool = {.op = "MaxPool"};
    const struct rfx_onnx_node *node = ctx->node;
    const char *node_name = ctx->node_name;
    struct rfx_node place = {.op = RFX_OP_POOL_PLACE, .attr.pool = indices->attr};
    if (rfx_onnx_names_find(ctx->values, indices->name) != NULL) return;
    ctx->node = &pool;
    ctx->node_name = indices->pool;
    if (indices->rank != 4 || ctx->batch > 1)
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                              "its indices '%.60s' are supported for images (1, c, h, w) and "
                              "for MaxUnpool only",
                              indices->name);
    int made = rfx_onnx_emit1(ctx, &place, "/indices", indices->in);
    if (made >= 0 && !rfx_onnx_names_put(ctx->values, indices->name, rfx_onnx_of(made)))
        (void)rfx_onnx_out_of_memory(ctx);
    if (rfx_onnx_failed(ctx)) return;
    ctx->node = node;
    ctx->node_name = node_name;
}

/* Sets size[2] to the rows and columns of the output of a MaxUnpool of h x w pixels. */
static void unpooled_size(struct rfx_onnx_import *ctx, int64_t h, int64_t w, int64_t *size) {
    int64_t kernel[2] = {0, 0}, strides[2] = {1, 1}, pads[4] = {0}, count;
    const int64_t *told;
    rfx_onnx_attr_ints(ctx, "kernel_shape", 2, kernel);
    rfx_onnx_attr_ints(ctx, "strides", 2, strides);
    rfx_onnx_attr_ints(ctx, "pads", 4, pads);
    bool found = rfx_onnx_list_ints(ctx, "", 2, &told, &count);
    if (found && count != 4)
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "an output shape of rank %lld, not 4",
                              (long long)count);
    for (int i = 0; !rfx_onnx_failed(ctx) && i < 2; i++) {
        const int64_t given[4] = {kernel[i], strides[i], pads[i], pads[i + 2]};
        for (int k = 0; k < 4; k++)
            if (given[k] < 0 || given[k] > RFX_ONNX_MOST_GIVEN)
                (void)rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED,
                                      "a kernel, stride or pad of %lld is not in 0 to %lld",
                                      (long long)given[k], (long long)RFX_ONNX_MOST_GIVEN);
        if (rfx_onnx_failed(ctx)) return;
        int64_t end = ((i == 0 ? h : w) - 1) * given[1] + given[0] - given[2] - given[3];
        size[i] = found ? told[i + 2] : end;
    }
}

/* Returns the node of the values for position t of each window: the value if the window's first
 * largest element is at position t, else -0. The comparison is `less`, because a NaN equals
 * nothing; a window whose largest element is NaN thus puts its value at its first position. *less
 * is the node that tells whether all earlier positions are less than the largest element, or -1 for
 * t = 0. */
static int placed_at(struct rfx_onnx_import *ctx, const struct rfx_onnx_indices *pool, int deep,
                     int64_t t, int values, int *less) {
    int64_t c = rfx_onnx_tensor_of(ctx, values)->c;
    struct rfx_onnx_operand x = rfx_onnx_of(values), before = rfx_onnx_of(*less);
    int64_t *map = rfx_onnx_alloc(ctx, (size_t)c, sizeof *map);
    for (int64_t i = 0; map != NULL && i < c; i++) map[i] = t * c + i;
    struct rfx_onnx_operand at = rfx_onnx_of(rfx_onnx_select(ctx, "/position", deep, map, c));
    at.node = rfx_onnx_combine(ctx, RFX_BINARY_LESS, "/less", at, rfx_onnx_of(pool->out));
    *less = at.node;
    if (t > 0) x.node = rfx_onnx_combine(ctx, RFX_BINARY_IF, "/left", before, x);
    int out = rfx_onnx_combine(ctx, RFX_BINARY_UNLESS, "/placed", at, x);
    if (t > 0) *less = rfx_onnx_combine(ctx, RFX_BINARY_AND, "/all_less", before, at);
    return out;
}

enum { MOST_UNPOOLED = 4 }; /* rows and columns of a window */

/* Refuses a MaxUnpool whose MaxPool has other windows than supported here. size: rows and columns
 * of the output. */
static void check_unpool(struct rfx_onnx_import *ctx, const struct rfx_onnx_indices *pool,
                         int values, const int64_t *size) {
    const struct rfx_pool_attr *a = &pool->attr;
    const struct rfx_tensor *in = rfx_onnx_tensor_of(ctx, pool->in);
    const struct rfx_tensor *largest = rfx_onnx_tensor_of(ctx, pool->out);
    const struct rfx_tensor *x = rfx_onnx_tensor_of(ctx, values);
    bool tiles = a->kh == a->kw && a->sh == a->kh && a->sw == a->kw && a->dh == 1 && a->dw == 1 &&
                 a->kh >= 1 && a->kh <= MOST_UNPOOLED;
    bool pads = a->pads.top != 0 || a->pads.left != 0 || a->pads.bottom != 0 || a->pads.right != 0;
    if (a->column_major) /* MaxUnpool reads all indices as counted by rows */
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                              "MaxPool '%.80s' has storage_order = 1: its indices count by columns",
                              pool->pool);
    if (!tiles || pads || largest->h * a->kh > in->h || largest->w * a->kw > in->w)
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                              "MaxPool '%.80s' is %lldx%lld, stride %lldx%lld: only windows side "
                              "by side, square, of 1 to %d, without pads are supported",
                              pool->pool, (long long)a->kh, (long long)a->kw, (long long)a->sh,
                              (long long)a->sw, MOST_UNPOOLED);
    if (x->c != largest->c || x->h != largest->h || x->w != largest->w)
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED,
                              "%lldx%lldx%lld values for %lldx%lldx%lld indices", (long long)x->c,
                              (long long)x->h, (long long)x->w, (long long)largest->c,
                              (long long)largest->h, (long long)largest->w);
    if (size[0] != in->h || size[1] != in->w)
        (void)rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                              "%lldx%lld pixels, but the indices count over the %lldx%lld of "
                              "MaxPool '%.80s'",
                              (long long)size[0], (long long)size[1], (long long)in->h,
                              (long long)in->w, pool->pool);
}

/* MaxUnpool. Space to depth makes each position of the windows a block of channels. Each block is
 * replaced by the values for that position, and depth to space makes pixels again. Rows and columns
 * that no window covers are 0. */
int rfx_onnx_max_unpool(struct rfx_onnx_import *ctx) {
    const struct rfx_onnx_indices *pool =
        ctx->node->n_in > 1 ? rfx_onnx_indices_of(ctx, ctx->node->in[1]) : NULL;
    int less = -1, placed[MOST_UNPOOLED * MOST_UNPOOLED];
    int64_t size[2] = {0, 0};
    if (pool == NULL)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "indices that are no MaxPool's");
    int values = rfx_onnx_map(ctx, rfx_onnx_in(ctx, 0));
    const struct rfx_tensor in = *rfx_onnx_tensor_of(ctx, pool->in);
    const struct rfx_tensor largest = *rfx_onnx_tensor_of(ctx, pool->out);
    unpooled_size(ctx, largest.h, largest.w, size);
    check_unpool(ctx, pool, values, size);
    if (rfx_onnx_failed(ctx)) return -1;
    int64_t k = pool->attr.kh, h = largest.h * k, w = largest.w * k;
    struct rfx_node crop = {.op = RFX_OP_CROP, .attr.crop = {0, 0, 1, 1, h, w}};
    struct rfx_node apart = {.op = RFX_OP_SPACE_TO_DEPTH, .attr.depth.block = k};
    struct rfx_node join = {.op = RFX_OP_CONCAT};
    struct rfx_node together = {.op = RFX_OP_DEPTH_TO_SPACE, .attr.depth.block = k};
    struct rfx_node pad = {.op = RFX_OP_PAD};
    bool rest = h != in.h || w != in.w;
    pad.attr.pad.pads = (struct rfx_pads){0, 0, in.h - h, in.w - w};
    int deep = rest ? rfx_onnx_emit1(ctx, &crop, "/windows", pool->in) : pool->in;
    deep = rfx_onnx_emit1(ctx, &apart, "/positions", deep);
    for (int64_t t = 0; t < k * k; t++) placed[t] = placed_at(ctx, pool, deep, t, values, &less);
    int out = rfx_onnx_emit(ctx, &join, "/joined", placed, (int)(k * k));
    out = rfx_onnx_emit1(ctx, &together, "/pixels", out);
    /* values that were not chosen are -0; adding 0 makes them 0 */
    out = rfx_onnx_scale_shift(ctx, rest ? "/zeros" : "", out, 1.0f, 0.0f);
    return rest ? rfx_onnx_emit1(ctx, &pad, "", out) : out;
}
