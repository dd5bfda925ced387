/* Conversion of convolutions, pooling, normalisations and reductions. */
#include <math.h>
#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/onnx/import/onnx_converters.h"
#include "rfexec/onnx/import/onnx_import.h"

#define MAX_ATTR ((int64_t)1 << 24) /* kernels, strides, pads beyond this are no real network's */

struct window {
    int64_t kernel[2], strides[2], dilations[2], pads[4];
    struct rfx_shape shape; /* of the operand: (n, c, w), (n, c, h, w) or (1, c, d, h, w) */
    int apart;              /* axis whose positions are computed apart; 1: there is none */
    int64_t times;          /* their number: as many maps side by side, the axis before channels */
};

static bool op_is(const struct rfx_onnx_import *ctx, const char *op) {
    return strcmp(ctx->node->op, op) == 0;
}

/* Pads of auto_pad for an input of h x w; `transposed` cuts instead of adding. */
static void auto_pads(struct window *win, const char *mode, int64_t h, int64_t w) {
    int64_t size[2] = {h, w};
    for (int i = 0; i < 2; i++) {
        int64_t extent = (win->kernel[i] - 1) * win->dilations[i] + 1;
        int64_t out = rfx_ceil_div(size[i], win->strides[i]);
        int64_t total = rfx_max_i64((out - 1) * win->strides[i] + extent - size[i], 0);
        bool upper = strcmp(mode, "SAME_UPPER") == 0;
        win->pads[i] = upper ? total / 2 : total - total / 2;
        win->pads[i + 2] = total - win->pads[i];
    }
}

/* The window of three axes along `axis`, as the node has it, keeps positions apart: one tap, and
 * nothing added. */
static enum rfx_status is_apart(struct rfx_onnx_import *ctx, int axis, bool *apart) {
    int64_t kernel[3] = {1, 1, 1}, strides[3] = {1, 1, 1}, pads[6] = {0};
    const struct rfx_onnx_const *weight = rfx_onnx_in(ctx, 1).constant;
    enum rfx_status status = rfx_onnx_attr_ints(ctx, "kernel_shape", 3, kernel);
    if (status == RFX_OK) status = rfx_onnx_attr_ints(ctx, "strides", 3, strides);
    if (status == RFX_OK) status = rfx_onnx_attr_ints(ctx, "pads", 6, pads);
    if (weight != NULL && weight->shape.rank == 5) kernel[axis - 2] = weight->shape.dims[axis];
    *apart = kernel[axis - 2] == 1 && strides[axis - 2] == 1 && pads[axis - 2] == 0 &&
             pads[axis + 1] == 0;
    return status;
}

/* Which axis of operand 0 is computed apart: a batch; of rank 5 one of space, the last such one of
 * a single position, else the first. */
static enum rfx_status find_apart(struct rfx_onnx_import *ctx, struct window *win) {
    const int64_t *d = win->shape.dims;
    enum rfx_status status = RFX_OK;
    win->apart = 1;
    if (win->shape.rank != 5) win->apart = d[0] > 1 ? 0 : 1;
    for (int axis = 4; status == RFX_OK && win->shape.rank == 5 && axis >= 2; axis--) {
        bool apart;
        status = is_apart(ctx, axis, &apart);
        bool better = win->apart == 1 || d[axis] == 1 || d[win->apart] != 1;
        if (status == RFX_OK && apart && better) win->apart = axis;
    }
    if (status == RFX_OK && win->shape.rank == 5 && win->apart == 1)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                               "a window along all of depth, rows and columns");
    if (status == RFX_OK && win->shape.rank == 5 && d[0] != 1)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                               "an operand with a batch of %lld; only 1 is supported",
                               (long long)d[0]);
    win->times = win->apart == 1 ? 1 : d[win->apart];
    return status;
}

/* Axes of an operand of rank 5 with that which is computed apart before the channels; and back.
 * The batch (axis 0) is there already. */
static void apart_first(int apart, int *perm, int *back) {
    int n = 0;
    perm[n++] = 0;
    if (apart != 0) perm[n++] = apart;
    for (int i = 1; i < 5; i++)
        if (i != apart) perm[n++] = i;
    for (int i = 0; i < 5; i++) back[perm[i]] = i;
}

/* Operand 0 as a map: of rank 3 as one row; what is computed apart as maps side by side. */
static enum rfx_status window_operand(struct rfx_onnx_import *ctx, struct window *win, int *in) {
    struct rfx_onnx_operand x = rfx_onnx_in(ctx, 0);
    if (x.node < 0 && x.constant == NULL)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "an input is missing");
    win->shape = *rfx_onnx_shape(ctx, x);
    win->apart = 1;
    win->times = 1;
    int rank = win->shape.rank, perm[5], back[5];
    if (x.node < 0 || rank < 3 || rank > 5) return rfx_onnx_map(ctx, x, in);
    enum rfx_status status = find_apart(ctx, win);
    if (status != RFX_OK || (rank == 4 && win->times == 1))
        return status == RFX_OK ? rfx_onnx_map(ctx, x, in) : status;
    apart_first(win->apart, perm, back);
    if (rank == 5 && win->times > 1) status = rfx_onnx_permute(ctx, x, perm, &x);
    if (status != RFX_OK) return status;
    const int64_t *d = win->shape.dims;
    struct rfx_shape four = {4, {1, win->times * d[1], rank == 3 ? 1 : d[2], d[rank - 1]}};
    for (int i = 0; rank == 5 && i < 2; i++) four.dims[2 + i] = d[perm[3 + i]];
    int before = rfx_onnx_shaped_before(ctx, x.node, &four);
    if (before >= 0)
        x.node = before;
    else
        status = rfx_onnx_plain(ctx, x, &x.node);
    if (status == RFX_OK && before < 0) status = rfx_onnx_reshape(ctx, x.node, &four, &x.node);
    return status == RFX_OK ? rfx_onnx_map(ctx, x, in) : status;
}

/* Binds output 0 to a map in the rank that the operand had. */
static enum rfx_status finish_window(struct rfx_onnx_import *ctx, const struct window *win,
                                     int map) {
    struct rfx_onnx_operand made = {map, NULL};
    const struct rfx_tensor t = *rfx_onnx_tensor_of(ctx, map);
    int64_t n = win->times, c = t.c / n;
    int rank = win->shape.rank, perm[5], back[5];
    struct rfx_shape shapes[6] = {
        [3] = {3, {n, c, t.w}}, [4] = {4, {n, c, t.h, t.w}}, [5] = {5, {1, n, c, t.h, t.w}}};
    if (rank == 4 && n == 1) return rfx_onnx_set(ctx, 0, made);
    apart_first(win->apart, perm, back);
    if (n == 1) { /* one axis of one position: no order to restore */
        shapes[5].dims[0] = 1;
        shapes[5].dims[1] = c;
        for (int i = 2, k = 3; rank == 5 && i < 5; i++)
            shapes[5].dims[i] = i == win->apart ? 1 : k++ == 3 ? t.h : t.w;
    }
    enum rfx_status status = rfx_onnx_plain(ctx, made, &made.node);
    if (status == RFX_OK) status = rfx_onnx_reshape(ctx, made.node, &shapes[rank], &made.node);
    if (status == RFX_OK && rank == 5 && n > 1) status = rfx_onnx_permute(ctx, made, back, &made);
    return status == RFX_OK ? rfx_onnx_set(ctx, 0, made) : status;
}

/* A list of one integer per axis of space, of which two are kept: where there is one the row is
 * `neutral`, of three that which is computed apart must be. */
static enum rfx_status axis_ints(struct rfx_onnx_import *ctx, const struct window *win,
                                 const char *name, int64_t neutral, int64_t *out) {
    int n = win->shape.rank - 2;
    int64_t all[3] = {neutral, neutral, out[1]};
    if (n == 3) {
        all[2] = neutral;
        all[win->apart == 2 ? 1 : 0] = out[0];
        all[win->apart == 4 ? 1 : 2] = out[1];
    }
    if (n == 2) return rfx_onnx_attr_ints(ctx, name, 2, out);
    enum rfx_status status = rfx_onnx_attr_ints(ctx, name, (size_t)n, n == 1 ? all + 2 : all);
    int apart = n == 1 ? 0 : win->apart - 2;
    if (status == RFX_OK && all[apart] != neutral)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "%s of %lld along axis %d", name,
                               (long long)all[apart], win->apart);
    out[0] = n == 1 ? neutral : all[apart == 0 ? 1 : 0];
    out[1] = all[apart == 2 ? 1 : 2];
    return status;
}

/* The same of pads, all beginnings before all ends. */
static enum rfx_status axis_pads(struct rfx_onnx_import *ctx, const struct window *win,
                                 int64_t *pads) {
    int n = win->shape.rank - 2;
    int64_t all[6] = {0};
    enum rfx_status status = rfx_onnx_attr_ints(ctx, "pads", 2 * (size_t)n, all);
    int apart = n == 3 ? win->apart - 2 : -1;
    if (status == RFX_OK && n == 3 && (all[apart] != 0 || all[3 + apart] != 0))
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "pads along axis %d", win->apart);
    for (int i = 0; i < 2; i++) { /* rows, columns */
        int at = n < 3 ? n - 2 + i : i == 0 ? (apart == 0 ? 1 : 0) : (apart == 2 ? 1 : 2);
        pads[i] = at < 0 ? 0 : all[at];
        pads[i + 2] = at < 0 ? 0 : all[n + at];
    }
    return status;
}

static bool is_auto_pad(const char *mode) {
    static const char *const modes[] = {"", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (strcmp(mode, modes[i]) == 0) return true;
    return false;
}

/* Reads kernel_shape (already set for convolutions), strides, dilations and pads. */
static enum rfx_status read_window(struct rfx_onnx_import *ctx, const struct rfx_tensor *in,
                                   bool transposed, struct window *win) {
    for (int i = 0; i < 2; i++) win->strides[i] = win->dilations[i] = 1;
    memset(win->pads, 0, sizeof win->pads);
    int64_t stated[2] = {win->kernel[0], win->kernel[1]};
    enum rfx_status status = axis_ints(ctx, win, "kernel_shape", 1, stated);
    if (status == RFX_OK) status = axis_ints(ctx, win, "strides", 1, win->strides);
    if (status == RFX_OK) status = axis_ints(ctx, win, "dilations", 1, win->dilations);
    if (status == RFX_OK) status = axis_pads(ctx, win, win->pads);
    if (status != RFX_OK) return status;
    if (win->kernel[0] != 0 && (stated[0] != win->kernel[0] || stated[1] != win->kernel[1]))
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED,
                               "kernel_shape %lldx%lld, but the weights are %lldx%lld",
                               (long long)stated[0], (long long)stated[1],
                               (long long)win->kernel[0], (long long)win->kernel[1]);
    for (int i = 0; i < 4; i++) {
        int64_t all[4] = {stated[i % 2], win->strides[i % 2], win->dilations[i % 2], win->pads[i]};
        for (int k = 0; k < 4; k++)
            if (all[k] < (k < 3 ? 1 : 0) || all[k] > MAX_ATTR)
                return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                                       "kernel, stride, dilation or pad of %lld",
                                       (long long)all[k]);
        win->kernel[i % 2] = stated[i % 2];
    }
    const char *mode = rfx_onnx_attr_string(ctx, "auto_pad", "NOTSET");
    if (!is_auto_pad(mode))
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "auto_pad '%.40s'", mode);
    if (strncmp(mode, "SAME_", 5) == 0 && !transposed) auto_pads(win, mode, in->h, in->w);
    if (strcmp(mode, "VALID") == 0) memset(win->pads, 0, sizeof win->pads);
    return RFX_OK;
}

static struct rfx_pads pads_of(const struct window *win) {
    struct rfx_pads pads = {win->pads[0], win->pads[1], win->pads[2], win->pads[3]};
    return pads;
}

/* A constant `times` times, one after the other along its first axis. */
static enum rfx_status repeat(struct rfx_onnx_import *ctx, int64_t times,
                              struct rfx_onnx_const **c) {
    const double *values;
    struct rfx_shape shape = (*c)->shape;
    int64_t n = (*c)->elems;
    if (times == 1) return RFX_OK;
    if (shape.rank == 0 || !rfx_checked_mul_i64(shape.dims[0], times, &shape.dims[0]))
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "weights of rank 0");
    enum rfx_status status = rfx_onnx_const_reals(ctx, *c, &values);
    if (status != RFX_OK) return status;
    struct rfx_onnx_const *made = rfx_onnx_const_new(ctx, RFX_ONNX_DOUBLE, &shape);
    if (made == NULL)
        return rfx_onnx_refuse(ctx, RFX_STATUS_OUT_OF_MEMORY,
                               "no memory for %lld times the weights", (long long)times);
    for (int64_t i = 0; i < made->elems; i++) rfx_onnx_const_reals_rw(made)[i] = values[i % n];
    *c = made;
    return RFX_OK;
}

/* What Conv and ConvTranspose share: weights, bias, window. */
static enum rfx_status conv_common(struct rfx_onnx_import *ctx, bool transposed, int *in,
                                   struct rfx_node *node, struct window *win) {
    struct rfx_onnx_const *weight, *bias;
    struct rfx_conv_attr *a = &node->attr.conv;
    enum rfx_status status = window_operand(ctx, win, in);
    if (status == RFX_OK) status = rfx_onnx_in_const(ctx, 1, &weight);
    if (status != RFX_OK) return status;
    int rank = weight->shape.rank;
    if (rank != win->shape.rank || rank < 3)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                               "weights of rank %d for an operand of rank %d", rank,
                               win->shape.rank);
    win->kernel[0] = rank == 3 ? 1 : weight->shape.dims[rank - 2];
    win->kernel[1] = weight->shape.dims[rank - 1];
    if (rank == 5) {
        win->kernel[0] = weight->shape.dims[win->apart == 2 ? 3 : 2];
        win->kernel[1] = weight->shape.dims[win->apart == 4 ? 3 : 4];
    }
    const struct rfx_shape four = {
        4, {weight->shape.dims[0], weight->shape.dims[1], win->kernel[0], win->kernel[1]}};
    if (rank != 4) weight = rfx_onnx_const_view(ctx, weight, &four);
    if (weight == NULL)
        return rfx_onnx_refuse(ctx, RFX_STATUS_OUT_OF_MEMORY, "no memory for a constant");
    if (weight->elems == 0)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "weights without elements");
    status = read_window(ctx, rfx_onnx_tensor_of(ctx, *in), transposed, win);
    if (status == RFX_OK) status = repeat(ctx, win->times, &weight);
    if (status == RFX_OK) status = rfx_onnx_const_weight(ctx, weight, &a->weight);
    if (status != RFX_OK) return status;
    if (!rfx_checked_mul_i64(rfx_onnx_attr_int(ctx, "group", 1), win->times, &a->groups))
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "the number of groups overflows");
    a->bias = a->scale = -1;
    if (a->groups < 1 || a->groups > MAX_ATTR ||
        !rfx_checked_mul_i64(weight->shape.dims[transposed ? 1 : 0], transposed ? a->groups : 1,
                             &a->oc))
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "%lld groups", (long long)a->groups);
    int64_t ic = 0, given = rfx_onnx_tensor_of(ctx, *in)->c;
    bool fits = rfx_checked_mul_i64(weight->shape.dims[transposed ? 0 : 1],
                                    transposed ? 1 : a->groups, &ic);
    if (!fits || ic != given || a->oc % a->groups != 0 || ic % a->groups != 0)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED,
                               "weights for %lld channels in %lld groups, %lld channels given",
                               (long long)ic, (long long)a->groups, (long long)given);
    if (rfx_onnx_has(ctx, 2)) {
        status = rfx_onnx_in_const(ctx, 2, &bias);
        if (status == RFX_OK && bias->elems != a->oc / win->times)
            return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "bias of %lld for %lld channels",
                                   (long long)bias->elems, (long long)(a->oc / win->times));
        if (status == RFX_OK) status = repeat(ctx, win->times, &bias);
        if (status == RFX_OK) status = rfx_onnx_const_weight(ctx, bias, &a->bias);
    }
    a->kh = win->kernel[0];
    a->kw = win->kernel[1];
    a->sh = win->strides[0];
    a->sw = win->strides[1];
    a->dh = win->dilations[0];
    a->dw = win->dilations[1];
    a->pads = pads_of(win);
    return status;
}

enum rfx_status rfx_onnx_conv(struct rfx_onnx_import *ctx) {
    struct rfx_node node = {.op = RFX_OP_CONV};
    struct window win = {0};
    int in, out;
    enum rfx_status status = conv_common(ctx, false, &in, &node, &win);
    if (status == RFX_OK) status = rfx_onnx_emit(ctx, &node, "", &in, 1, &out);
    return status == RFX_OK ? finish_window(ctx, &win, out) : status;
}

/* The activation of com.microsoft's FusedConv, and how many numbers it takes. */
static enum rfx_status fused_activation(struct rfx_onnx_import *ctx, struct rfx_act *act) {
    static const struct {
        const char *name;
        enum rfx_act_kind kind;
        size_t count;
    } rows[] = {{"", RFX_ACT_NONE, 0},
                {"Relu", RFX_ACT_RELU, 0},
                {"Tanh", RFX_ACT_TANH, 0},
                {"Sigmoid", RFX_ACT_SIGMOID, 0},
                {"LeakyRelu", RFX_ACT_LEAKY_RELU, 1},
                {"Clip", RFX_ACT_CLIP, 2},
                {"HardSigmoid", RFX_ACT_HARD_SIGMOID, 2}};
    const char *name = rfx_onnx_attr_string(ctx, "activation", "");
    const struct rfx_onnx_attr *params = rfx_onnx_attr_find(ctx, "activation_params");
    size_t given = params != NULL && params->kind == RFX_ONNX_ATTR_FLOATS ? params->count : 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i].name, name) != 0) continue;
        if (given != rows[i].count)
            return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED,
                                   "activation '%.40s' with %zu activation_params, %zu expected",
                                   name, given, rows[i].count);
        *act = (struct rfx_act){.kind = rows[i].kind, .slope = -1};
        if (given > 0) act->alpha = params->floats[0];
        if (given > 1) act->beta = params->floats[1];
        return RFX_OK;
    }
    return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "activation '%.40s'", name);
}

/* act(conv(X, W, B) + Z), where Z and the activation may be left out. */
enum rfx_status rfx_onnx_fused_conv(struct rfx_onnx_import *ctx) {
    struct rfx_node node = {.op = RFX_OP_CONV};
    struct window win = {0};
    struct rfx_act act = {.kind = RFX_ACT_NONE, .slope = -1};
    int in, out = -1;
    enum rfx_status status = fused_activation(ctx, &act);
    if (status == RFX_OK) status = conv_common(ctx, false, &in, &node, &win);
    if (status == RFX_OK && win.shape.rank != 4)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "an operand of rank %d; only 4",
                               win.shape.rank);
    if (status == RFX_OK) status = rfx_onnx_emit(ctx, &node, "/conv", &in, 1, &out);
    struct rfx_onnx_operand sum = {out, NULL};
    if (status == RFX_OK && rfx_onnx_has(ctx, 3))
        status = rfx_onnx_combine(ctx, RFX_BINARY_ADD, "/sum", sum, rfx_onnx_in(ctx, 3), &out);
    if (status == RFX_OK && act.kind != RFX_ACT_NONE)
        status = rfx_onnx_act(ctx, "", out, act.kind, act.alpha, act.beta, &out);
    return status == RFX_OK ? rfx_onnx_set_node(ctx, out) : status;
}

/* Pads of a transposed convolution from output_shape or auto_pad; an output beyond the kernels'
 * reach gets rows of mere bias at its end, which is output padding. */
static void transposed_pads(const struct rfx_onnx_import *ctx, const struct rfx_tensor *in,
                            const int64_t *shape, int64_t *out_pad, struct window *win) {
    const char *mode = rfx_onnx_attr_string(ctx, "auto_pad", "NOTSET");
    bool same = strncmp(mode, "SAME_", 5) == 0;
    if (shape[0] == 0 && !same) return;
    int64_t size[2] = {in->h, in->w};
    for (int i = 0; i < 2; i++) {
        int64_t want = shape[i] != 0 ? shape[i] : size[i] * win->strides[i];
        int64_t total = win->strides[i] * (size[i] - 1) + out_pad[i] +
                        (win->kernel[i] - 1) * win->dilations[i] + 1 - want;
        if (total < 0) out_pad[i] -= total;
        total = rfx_max_i64(total, 0);
        bool upper = strcmp(mode, "SAME_UPPER") == 0;
        win->pads[i] = upper ? total / 2 : total - total / 2;
        win->pads[i + 2] = total - win->pads[i];
    }
}

/* Zeros where none is given. */
static enum rfx_status output_shape(struct rfx_onnx_import *ctx, const struct window *win,
                                    int64_t *shape) {
    if (rfx_onnx_attr_find(ctx, "output_shape") == NULL) return RFX_OK;
    return axis_ints(ctx, win, "output_shape", 1, shape);
}

enum rfx_status rfx_onnx_conv_transpose(struct rfx_onnx_import *ctx) {
    struct rfx_node node = {.op = RFX_OP_CONV_TRANSPOSE};
    struct window win = {0};
    int64_t out_pad[2] = {0, 0}, shape[2] = {0, 0};
    int in, out;
    enum rfx_status status = conv_common(ctx, true, &in, &node, &win);
    if (status == RFX_OK) status = axis_ints(ctx, &win, "output_padding", 0, out_pad);
    if (status == RFX_OK) status = output_shape(ctx, &win, shape);
    if (status != RFX_OK) return status;
    for (int i = 0; i < 2; i++)
        if (out_pad[i] < 0 || out_pad[i] > MAX_ATTR || shape[i] < 0 || shape[i] > MAX_ATTR)
            return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "output_padding or output_shape");
    transposed_pads(ctx, rfx_onnx_tensor_of(ctx, in), shape, out_pad, &win);
    node.attr.conv.pads = pads_of(&win);
    node.attr.conv.out_pad_h = out_pad[0];
    node.attr.conv.out_pad_w = out_pad[1];
    status = rfx_onnx_emit(ctx, &node, "", &in, 1, &out);
    return status == RFX_OK ? finish_window(ctx, &win, out) : status;
}

/* The axis along which alone the window of an AveragePool has more than one tap, all beside each
 * other and within the operand: *taps of them; -1: it is another window. */
static int only_axis(const struct rfx_onnx_import *ctx, int rank, int64_t *taps) {
    static const char *const ones[] = {"strides", "dilations"};
    const struct rfx_onnx_attr *kernel = rfx_onnx_attr_find(ctx, "kernel_shape");
    const struct rfx_onnx_attr *pads = rfx_onnx_attr_find(ctx, "pads");
    int axis = -1;
    if (kernel == NULL || kernel->kind != RFX_ONNX_ATTR_INTS || (int)kernel->count != rank - 2)
        return -1;
    for (size_t k = 0; k < 2; k++) {
        const struct rfx_onnx_attr *a = rfx_onnx_attr_find(ctx, ones[k]);
        for (size_t i = 0; a != NULL && a->kind == RFX_ONNX_ATTR_INTS && i < a->count; i++)
            if (a->ints[i] != 1) return -1;
    }
    for (size_t i = 0; pads != NULL && pads->kind == RFX_ONNX_ATTR_INTS && i < pads->count; i++)
        if (pads->ints[i] != 0) return -1;
    if (strncmp(rfx_onnx_attr_string(ctx, "auto_pad", "NOTSET"), "SAME", 4) == 0) return -1;
    for (int i = 0; i < rank - 2; i++) {
        if (kernel->ints[i] == 1) continue;
        if (axis >= 0) return -1;
        axis = i + 2;
        *taps = kernel->ints[i];
    }
    return axis;
}

#define MOST_POOLED_CHANNELS 4096

/* Means of channels beside each other, where the pooled axis is a map's channels (local response
 * norms are written so): a convolution of 1 x 1. *done says whether it is that. */
static enum rfx_status pool_channels(struct rfx_onnx_import *ctx, bool *done) {
    struct rfx_onnx_operand x = rfx_onnx_in(ctx, 0);
    struct rfx_pixels p;
    int64_t taps = 0;
    *done = false;
    if (!op_is(ctx, "AveragePool") || x.node < 0 || !rfx_pixels_of(ctx->graph, x.node, &p))
        return RFX_OK;
    int axis = only_axis(ctx, p.rank, &taps), out;
    int64_t c = p.extent[RFX_PIXELS_CHANNEL], made = c - taps + 1;
    if (axis < 0 || !rfx_pixels_axis_is_channels(&p, axis) || taps < 1 || made < 1 ||
        c > MOST_POOLED_CHANNELS)
        return RFX_OK;
    *done = true;
    /* without strides and pads neither makes a difference */
    (void)rfx_onnx_attr_find(ctx, "ceil_mode");
    (void)rfx_onnx_attr_find(ctx, "count_include_pad");
    struct rfx_node node = {.op = RFX_OP_CONV};
    struct rfx_shape shape = {4, {made, c, 1, 1}};
    node.attr.conv = rfx_conv_pointwise(made);
    struct rfx_onnx_const *band = rfx_onnx_const_new(ctx, RFX_ONNX_DOUBLE, &shape);
    if (band == NULL)
        return rfx_onnx_refuse(ctx, RFX_STATUS_OUT_OF_MEMORY, "no memory for a window of channels");
    for (int64_t i = 0; i < band->elems; i++) {
        bool inside = i % c >= i / c && i % c < i / c + taps;
        rfx_onnx_const_reals_rw(band)[i] = inside ? 1.0 / (double)taps : 0.0;
    }
    enum rfx_status status = rfx_onnx_const_weight(ctx, band, &node.attr.conv.weight);
    if (status == RFX_OK) status = rfx_onnx_emit(ctx, &node, "", &p.map, 1, &out);
    if (status != RFX_OK) return status;
    p = rfx_pixels_with_channels(&p, axis, out, made);
    status = rfx_onnx_emit_pixels(ctx, &p, &out);
    return status == RFX_OK ? rfx_onnx_set_node(ctx, out) : status;
}

enum rfx_status rfx_onnx_pool(struct rfx_onnx_import *ctx) {
    bool max = op_is(ctx, "MaxPool"), lp = op_is(ctx, "LpPool");
    struct rfx_node node = {.op = max ? RFX_OP_POOL_MAX : lp ? RFX_OP_POOL_LP : RFX_OP_POOL_AVG};
    struct window win = {0};
    int in, out;
    bool done;
    enum rfx_status status = pool_channels(ctx, &done);
    if (status != RFX_OK || done) return status;
    status = window_operand(ctx, &win, &in);
    if (status == RFX_OK) status = read_window(ctx, rfx_onnx_tensor_of(ctx, in), false, &win);
    if (status != RFX_OK) return status;
    struct rfx_pool_attr *a = &node.attr.pool;
    a->kh = win.kernel[0];
    a->kw = win.kernel[1];
    a->sh = win.strides[0];
    a->sw = win.strides[1];
    a->dh = win.dilations[0];
    a->dw = win.dilations[1];
    a->pads = pads_of(&win);
    a->ceil_mode = rfx_onnx_attr_flag(ctx, "ceil_mode", false);
    if (lp) status = rfx_onnx_power(ctx, &a->p);
    if (status != RFX_OK) return status;
    a->count_include_pad = rfx_onnx_attr_flag(ctx, "count_include_pad", false);
    status = rfx_onnx_emit(ctx, &node, "", &in, 1, &out);
    if (status == RFX_OK && ctx->node->n_out > 1 && ctx->node->out[1][0] != '\0')
        status = rfx_onnx_keep_indices(ctx, in, out, a);
    return status == RFX_OK ? finish_window(ctx, &win, out) : status;
}

enum rfx_status rfx_onnx_global_pool(struct rfx_onnx_import *ctx) {
    struct rfx_node node = {.op = RFX_OP_GLOBAL_POOL};
    int in, out;
    node.attr.global_pool.kind = op_is(ctx, "GlobalMaxPool") ? RFX_REDUCE_MAX : RFX_REDUCE_MEAN;
    enum rfx_status status = rfx_onnx_map(ctx, rfx_onnx_in(ctx, 0), &in);
    if (status == RFX_OK) status = rfx_onnx_emit(ctx, &node, "", &in, 1, &out);
    return status == RFX_OK ? rfx_onnx_set_node(ctx, out) : status;
}

/* A batch norm as in training normalises by the statistics of its input, not by inputs 3 and 4: of
 * one image, or of a constant, an instance norm. So exporters write weights that are standardised.
 */
static enum rfx_status norm_as_in_training(struct rfx_onnx_import *ctx) {
    if (ctx->opset < 14 || ctx->batch > 1)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                               "training mode%s: export the model for inference",
                               ctx->batch > 1 ? ", over all images of a batch" : "");
    return rfx_onnx_instance_norm(ctx);
}

/* scale = gamma / sqrt(var + eps), shift = beta - mean * scale, of `channels` each. */
static enum rfx_status norm_weights(struct rfx_onnx_import *ctx, int64_t channels, int *scale_at,
                                    int *shift_at) {
    const double *v[4];
    struct rfx_onnx_const *c[4];
    enum rfx_status status = RFX_OK;
    for (size_t k = 0; k < 4; k++) {
        status = rfx_onnx_in_const(ctx, k + 1, &c[k]);
        if (status == RFX_OK) status = rfx_onnx_const_reals(ctx, c[k], &v[k]);
        if (status != RFX_OK) return status;
        if (c[k]->elems != channels)
            return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "input %zu has %lld of %lld values",
                                   k + 1, (long long)c[k]->elems, (long long)channels);
    }
    status = rfx_onnx_own_weight(ctx, NULL, channels, scale_at);
    if (status == RFX_OK) status = rfx_onnx_own_weight(ctx, NULL, channels, shift_at);
    if (status != RFX_OK) return status;
    float *scale = rfx_graph_owned_weight(ctx->graph, *scale_at);
    float *shift = rfx_graph_owned_weight(ctx->graph, *shift_at);
    double eps = (double)rfx_onnx_attr_float(ctx, "epsilon", 1e-5f);
    for (int64_t i = 0; i < channels; i++) {
        double s = v[0][i] / sqrt(v[3][i] + eps);
        scale[i] = (float)s;
        shift[i] = (float)(v[1][i] - v[2][i] * s);
    }
    return RFX_OK;
}

/* A tensor that is no map: its axis 1 times the scale, plus the shift. */
static enum rfx_status norm_tensor(struct rfx_onnx_import *ctx, struct rfx_onnx_operand x) {
    static const enum rfx_binary_kind kinds[2] = {RFX_BINARY_MUL, RFX_BINARY_ADD};
    int weights[2], in;
    enum rfx_status status = rfx_onnx_plain(ctx, x, &in);
    if (status != RFX_OK) return status;
    struct rfx_shape shape = rfx_onnx_tensor_of(ctx, in)->shape;
    status = norm_weights(ctx, shape.dims[1], &weights[0], &weights[1]);
    shape.dims[0] = 1;
    for (int i = 2; i < shape.rank; i++) shape.dims[i] = 1;
    for (int k = 0; status == RFX_OK && k < 2; k++) {
        struct rfx_node constant = {.op = RFX_OP_CONST_PLAIN};
        struct rfx_node join = {.op = RFX_OP_PLAIN_BINARY, .attr.binary = {kinds[k]}};
        int operands[2] = {in, -1};
        constant.attr.constant.weight = weights[k];
        constant.attr.constant.shape = shape;
        status = rfx_onnx_emit(ctx, &constant, "/weights", NULL, 0, &operands[1]);
        if (status == RFX_OK)
            status = rfx_onnx_emit(ctx, &join, k == 0 ? "/scaled" : "", operands, 2, &in);
    }
    return status == RFX_OK ? rfx_onnx_set_node(ctx, in) : status;
}

/* As an AFFINE for the fuser: of a map, or of the map whose channels axis 1 of a tensor holds, in
 * whatever order its pixels are. */
enum rfx_status rfx_onnx_batch_norm(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_operand x = rfx_onnx_in(ctx, 0);
    struct rfx_node node = {.op = RFX_OP_AFFINE};
    struct rfx_pixels p;
    int in, out;
    if (x.node < 0) return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "a constant input");
    bool trains = ctx->opset < 7 && !rfx_onnx_attr_flag(ctx, "is_test", false);
    const struct rfx_shape shape = *rfx_onnx_shape(ctx, x);
    if (trains || rfx_onnx_attr_flag(ctx, "training_mode", false)) return norm_as_in_training(ctx);
    if (shape.rank < 2) return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "rank %d", shape.rank);
    bool map = shape.rank == 4 && shape.dims[0] == 1;
    bool pixels =
        !map && rfx_pixels_of(ctx->graph, x.node, &p) && rfx_pixels_axis_is_channels(&p, 1);
    if (!map && !pixels) return norm_tensor(ctx, x);
    enum rfx_status status = RFX_OK;
    if (pixels)
        in = p.map;
    else
        status = rfx_onnx_map(ctx, x, &in);
    if (status == RFX_OK)
        status = norm_weights(ctx, rfx_onnx_tensor_of(ctx, in)->c, &node.attr.affine.scale,
                              &node.attr.affine.shift);
    if (status == RFX_OK) status = rfx_onnx_emit(ctx, &node, "", &in, 1, &out);
    if (status == RFX_OK && pixels) {
        p = rfx_pixels_with_channels(&p, 1, out, rfx_onnx_tensor_of(ctx, out)->c);
        status = rfx_onnx_emit_pixels(ctx, &p, &out);
    }
    return status == RFX_OK ? rfx_onnx_set_node(ctx, out) : status;
}

enum rfx_status rfx_onnx_lrn(struct rfx_onnx_import *ctx) {
    struct rfx_node node = {.op = RFX_OP_LRN};
    int in, out;
    enum rfx_status status = rfx_onnx_map(ctx, rfx_onnx_in(ctx, 0), &in);
    if (status != RFX_OK) return status;
    node.attr.lrn.size = rfx_onnx_attr_int(ctx, "size", 0);
    if (node.attr.lrn.size < 1 || node.attr.lrn.size > MAX_ATTR)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "size %lld",
                               (long long)node.attr.lrn.size);
    node.attr.lrn.alpha = rfx_onnx_attr_float(ctx, "alpha", 0.0001f);
    node.attr.lrn.beta = rfx_onnx_attr_float(ctx, "beta", 0.75f);
    node.attr.lrn.bias = rfx_onnx_attr_float(ctx, "bias", 1.0f);
    status = rfx_onnx_emit(ctx, &node, "", &in, 1, &out);
    return status == RFX_OK ? rfx_onnx_set_node(ctx, out) : status;
}
