/* The naive evaluator: its parts common to all ops, and ops on feature maps without a window. See
 * reference.h. */
#include "tests/support/oracle/reference.h"
#include "tests/support/test_util.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/oracle/reference_call.h"

double rfx_ref_weight(const struct rfx_graph *graph, int index, int64_t i, double missing) {
    if (index < 0) return missing;
    float value;
    const struct rfx_weight *weight = &graph->weights[index];
    test_read_weight(weight, weight->elems == 1 ? 0 : i, 1, &value);
    return value;
}

double rfx_ref_act(const struct rfx_graph *graph, const struct rfx_act *act, double x, int64_t c) {
    double a = act->alpha, b = act->beta;
    switch (act->kind) {
        case RFX_ACT_NONE:
            return x;
        case RFX_ACT_RELU:
            return x > 0 ? x : x != x ? x : 0;
        case RFX_ACT_CLIP:
            return x < a ? a : x > b ? b : x;
        case RFX_ACT_LEAKY_RELU:
            return x < 0 ? a * x : x;
        case RFX_ACT_PRELU:
            return x < 0 ? rfx_ref_weight(graph, act->slope, c, 0) * x : x;
        case RFX_ACT_SIGMOID:
            return 1 / (1 + exp(-x));
        case RFX_ACT_HARD_SIGMOID:
            return fmin(fmax(a * x + b, 0), 1);
        case RFX_ACT_HARD_SWISH:
            return x * fmin(fmax(x / 6 + 0.5, 0), 1);
        case RFX_ACT_SILU:
            return x / (1 + exp(-x));
        case RFX_ACT_TANH:
            return tanh(x);
        case RFX_ACT_EXP:
            return exp(x);
        case RFX_ACT_LOG:
            return log(x);
        case RFX_ACT_SQRT:
            return sqrt(x);
        case RFX_ACT_NEG:
            return -x;
        case RFX_ACT_ABS:
            return fabs(x);
        case RFX_ACT_ELU:
            return x < 0 ? a * expm1(x) : x;
        case RFX_ACT_SOFTPLUS:
            return x > 30 ? x + log1p(exp(-x)) : log1p(exp(x));
        case RFX_ACT_ERF:
            return erf(x);
        case RFX_ACT_FLOOR:
            return floor(x);
        case RFX_ACT_CEIL:
            return ceil(x);
        case RFX_ACT_RECIPROCAL:
            return 1 / x;
        case RFX_ACT_POW:
            return pow(x, a);
        case RFX_ACT_SIGN:
            return x != x ? x : (double)(x > 0) - (double)(x < 0);
        case RFX_ACT_ROUND: /* the nearer neighbour; of two, the even one */
            if (x - floor(x) == 0.5) return 2 * floor((floor(x) + 1) / 2);
            return floor(x + 0.5);
        case RFX_ACT_SIN:
            return sin(x);
        case RFX_ACT_COS:
            return cos(x);
        case RFX_ACT_SELU:
            return x < 0 ? a * b * expm1(x) : b * x;
        case RFX_ACT_CELU:
            return x < 0 ? a * expm1(x / a) : x;
        case RFX_ACT_THRESHOLDED_RELU:
            return x > a || x != x ? x : 0;
        case RFX_ACT_SHRINK:
            return x < -a ? x + b : x > a ? x - b : 0 * x;
        case RFX_ACT_SOFTSIGN:
            return x / (1 + fabs(x));
        case RFX_ACT_TAN:
            return tan(x);
        case RFX_ACT_SINH:
            return sinh(x);
        case RFX_ACT_COSH:
            return cosh(x);
        case RFX_ACT_ASIN:
            return asin(x);
        case RFX_ACT_ACOS:
            return acos(x);
        case RFX_ACT_ATAN:
            return atan(x);
        case RFX_ACT_ASINH:
            return asinh(x);
        case RFX_ACT_ACOSH:
            return acosh(x);
        case RFX_ACT_ATANH:
            return atanh(x);
        case RFX_ACT_NOT:
            return x == 0;
        case RFX_ACT_COUNT:
            break;
    }
    return NAN;
}

double rfx_ref_binary(enum rfx_binary_kind kind, double a, double b) {
    switch (kind) {
        case RFX_BINARY_ADD:
            return a + b;
        case RFX_BINARY_SUB:
            return a - b;
        case RFX_BINARY_MUL:
            return a * b;
        case RFX_BINARY_DIV:
            return a / b;
        case RFX_BINARY_MAX:
            return a > b ? a : b;
        case RFX_BINARY_MIN:
            return a < b ? a : b;
        case RFX_BINARY_POW:
            return pow(a, b);
        case RFX_BINARY_MOD:
            return fmod(a, b);
        case RFX_BINARY_GREATER:
            return a > b;
        case RFX_BINARY_GREATER_OR_EQUAL:
            return a >= b;
        case RFX_BINARY_LESS:
            return a < b;
        case RFX_BINARY_LESS_OR_EQUAL:
            return a <= b;
        case RFX_BINARY_EQUAL:
            return a == b;
        case RFX_BINARY_AND:
            return a != 0 && b != 0;
        case RFX_BINARY_OR:
            return a != 0 || b != 0;
        case RFX_BINARY_XOR:
            return (a != 0) != (b != 0);
        case RFX_BINARY_IF:
            return a != 0 ? b : -0.0;
        case RFX_BINARY_UNLESS:
            return a == 0 ? b : -0.0;
    }
    return NAN;
}

bool rfx_ref_shape_is(const struct rfx_ref_call *k, int64_t c, int64_t h, int64_t w) {
    if (k->ot->c == c && k->ot->h == h && k->ot->w == w && k->ot->elems == c * h * w) return true;
    fprintf(stderr, "'%s': inferred %lld x %lld x %lld, should be %lld x %lld x %lld\n",
            k->node->name, (long long)k->ot->c, (long long)k->ot->h, (long long)k->ot->w,
            (long long)c, (long long)h, (long long)w);
    return false;
}

void rfx_ref_each(const struct rfx_ref_call *k,
                  double (*value)(const struct rfx_ref_call *, int64_t, int64_t, int64_t)) {
    float *out = k->out;
    for (int64_t c = 0; c < k->ot->c; c++)
        for (int64_t y = 0; y < k->ot->h; y++)
            for (int64_t x = 0; x < k->ot->w; x++) *out++ = (float)value(k, c, y, x);
}

static double affine_at(const struct rfx_ref_call *k, int64_t c, int64_t y, int64_t x) {
    double v =
        (double)rfx_ref_in_at(k, c, y, x) * rfx_ref_weight(k->g, k->node->attr.affine.scale, c, 1) +
        rfx_ref_weight(k->g, k->node->attr.affine.shift, c, 0);
    return rfx_ref_act(k->g, &k->node->act, v, c);
}

static double activation_at(const struct rfx_ref_call *k, int64_t c, int64_t y, int64_t x) {
    return rfx_ref_act(k->g, &k->node->act, (double)rfx_ref_in_at(k, c, y, x), c);
}

static double broadcast_at(const struct rfx_ref_call *k, int i, int64_t c, int64_t y, int64_t x) {
    const struct rfx_tensor *t = &k->g->nodes[k->node->in[i]].out;
    c = t->c == 1 ? 0 : c;
    y = t->h == 1 ? 0 : y;
    x = t->w == 1 ? 0 : x;
    return (double)k->in[i][(c * t->h + y) * t->w + x];
}

static double binary_at(const struct rfx_ref_call *k, int64_t c, int64_t y, int64_t x) {
    double v = rfx_ref_binary(k->node->attr.binary.kind, broadcast_at(k, 0, c, y, x),
                              broadcast_at(k, 1, c, y, x));
    return rfx_ref_act(k->g, &k->node->act, v, c);
}

static int64_t longer(int64_t a, int64_t b) {
    return a == 1 ? b : a;
}

static bool ref_binary(const struct rfx_ref_call *k) {
    const struct rfx_tensor *b = &k->g->nodes[k->node->in[1]].out;
    if (!rfx_ref_shape_is(k, longer(k->it->c, b->c), longer(k->it->h, b->h),
                          longer(k->it->w, b->w)))
        return false;
    rfx_ref_each(k, binary_at);
    return true;
}

static bool ref_concat(const struct rfx_ref_call *k) {
    int64_t c = 0;
    for (int i = 0; i < k->node->n_in; i++) c += k->g->nodes[k->node->in[i]].out.c;
    if (!rfx_ref_shape_is(k, c, k->it->h, k->it->w)) return false;
    float *out = k->out;
    for (int i = 0; i < k->node->n_in; i++) {
        int64_t n = k->g->nodes[k->node->in[i]].out.elems;
        memcpy(out, k->in[i], (size_t)n * sizeof *out);
        out += n;
    }
    return true;
}

static double select_at(const struct rfx_ref_call *k, int64_t c, int64_t y, int64_t x) {
    int64_t from = k->node->attr.select.map[c];
    return from < 0 ? 0.0 : (double)rfx_ref_in_at(k, from, y, x);
}

/* The source position of a padded one, or -1 for the constant. */
static int64_t pad_source(int64_t at, int64_t n, enum rfx_pad_mode mode) {
    if (mode == RFX_PAD_EDGE) return at < 0 ? 0 : at >= n ? n - 1 : at;
    if (mode == RFX_PAD_CONSTANT) return at < 0 || at >= n ? -1 : at;
    if (mode == RFX_PAD_WRAP) return (at % n + n) % n;
    while (n > 1 && (at < 0 || at >= n)) at = at < 0 ? -at : 2 * (n - 1) - at;
    return n > 1 ? at : 0;
}

static double pad_at(const struct rfx_ref_call *k, int64_t c, int64_t y, int64_t x) {
    const struct rfx_pads *p = &k->node->attr.pad.pads;
    int64_t iy = pad_source(y - p->top, k->it->h, k->node->attr.pad.mode);
    int64_t ix = pad_source(x - p->left, k->it->w, k->node->attr.pad.mode);
    return iy < 0 || ix < 0 ? (double)k->node->attr.pad.value : (double)rfx_ref_in_at(k, c, iy, ix);
}

static bool ref_pad(const struct rfx_ref_call *k) {
    const struct rfx_pads *p = &k->node->attr.pad.pads;
    if (!rfx_ref_shape_is(k, k->it->c, k->it->h + p->top + p->bottom,
                          k->it->w + p->left + p->right))
        return false;
    rfx_ref_each(k, pad_at);
    return true;
}

static double crop_at(const struct rfx_ref_call *k, int64_t c, int64_t y, int64_t x) {
    return (double)rfx_ref_in_at(k, c, k->node->attr.crop.y0 + y * k->node->attr.crop.sy,
                                 k->node->attr.crop.x0 + x * k->node->attr.crop.sx);
}

static double depth_to_space_at(const struct rfx_ref_call *k, int64_t c, int64_t y, int64_t x) {
    int64_t b = k->node->attr.depth.block, part = y % b * b + x % b;
    int64_t i = k->node->attr.depth.column_major ? c * b * b + part : part * k->ot->c + c;
    return (double)rfx_ref_in_at(k, i, y / b, x / b);
}

static double space_to_depth_at(const struct rfx_ref_call *k, int64_t c, int64_t y, int64_t x) {
    int64_t b = k->node->attr.depth.block, n = k->it->c;
    int64_t part = k->node->attr.depth.column_major ? c % (b * b) : c / n;
    int64_t i = k->node->attr.depth.column_major ? c / (b * b) : c % n;
    return (double)rfx_ref_in_at(k, i, y * b + part / b, x * b + part % b);
}

static double lrn_at(const struct rfx_ref_call *k, int64_t c, int64_t y, int64_t x) {
    int64_t size = k->node->attr.lrn.size;
    double sum = 0;
    for (int64_t i = c - (size - 1) / 2; i <= c + size / 2; i++)
        if (i >= 0 && i < k->it->c) sum += pow((double)rfx_ref_in_at(k, i, y, x), 2);
    return (double)rfx_ref_in_at(k, c, y, x) /
           pow((double)k->node->attr.lrn.bias +
                   (double)k->node->attr.lrn.alpha / (double)size * sum,
               (double)k->node->attr.lrn.beta);
}

static double softmax_at(const struct rfx_ref_call *k, int64_t c, int64_t y, int64_t x) {
    double largest = -INFINITY, sum = 0;
    int64_t group = k->node->attr.softmax.group, n = group > 0 ? group : k->it->c, lo = c / n * n;
    for (int64_t i = lo; i < lo + n; i++)
        largest = fmax(largest, (double)rfx_ref_in_at(k, i, y, x));
    for (int64_t i = lo; i < lo + n; i++) sum += exp((double)rfx_ref_in_at(k, i, y, x) - largest);
    double shifted = (double)rfx_ref_in_at(k, c, y, x) - largest;
    return k->node->attr.softmax.logarithm ? shifted - log(sum) : exp(shifted) / sum;
}

static bool same_size(const struct rfx_ref_call *k,
                      double (*value)(const struct rfx_ref_call *, int64_t, int64_t, int64_t)) {
    if (!rfx_ref_shape_is(k, k->it->c, k->it->h, k->it->w)) return false;
    rfx_ref_each(k, value);
    return true;
}

static bool of_size(const struct rfx_ref_call *k, int64_t c, int64_t h, int64_t w,
                    double (*value)(const struct rfx_ref_call *, int64_t, int64_t, int64_t)) {
    if (!rfx_ref_shape_is(k, c, h, w)) return false;
    rfx_ref_each(k, value);
    return true;
}

static bool ref_constant(const struct rfx_ref_call *k) {
    test_read_weight(&k->g->weights[k->node->attr.constant.weight], 0, k->ot->elems, k->out);
    return true;
}

/* Channel by channel: a value per column, or per row. */
static bool ref_repeat(const struct rfx_ref_call *k) {
    const union rfx_attr *a = &k->node->attr;
    const struct rfx_weight *weights = k->g->weights;
    int64_t h = a->repeat.h, w = a->repeat.w,
            across = a->repeat.across < 0 ? 0 : weights[a->repeat.across].elems / w;
    if (!rfx_ref_shape_is(k, a->repeat.count, h, w)) return false;
    for (int64_t c = 0; c < a->repeat.count; c++) {
        bool down = a->repeat.map[c] >= across;
        int64_t line = a->repeat.map[c] - (down ? across : 0);
        for (int64_t y = 0; y < h; y++)
            for (int64_t x = 0; x < w; x++)
                test_read_weight(&weights[down ? a->repeat.down : a->repeat.across],
                                 line * (down ? h : w) + (down ? y : x), 1,
                                 &k->out[(c * h + y) * w + x]);
    }
    return true;
}

/* Ops whose output's size is given by the attributes. */
static bool ref_sized(const struct rfx_ref_call *k) {
    const union rfx_attr *a = &k->node->attr;
    const struct rfx_tensor *t = k->it;
    int64_t b = a->depth.block;
    switch ((int)k->node->op) {
        case RFX_OP_POOL_ADAPTIVE_AVG:
            return of_size(k, t->c, a->adaptive.oh, a->adaptive.ow, rfx_ref_adaptive_at);
        case RFX_OP_GLOBAL_POOL:
            return of_size(k, t->c, 1, 1, rfx_ref_global_at);
        case RFX_OP_MOMENTS:
            return of_size(k, 2 * t->c, 1, 1, rfx_ref_moments_at);
        case RFX_OP_CHANNEL_REDUCE:
            return of_size(k, 1, t->h, t->w, rfx_ref_channel_reduce_at);
        case RFX_OP_CHANNEL_SELECT:
            return of_size(k, a->select.count, t->h, t->w, select_at);
        case RFX_OP_CROP:
            return of_size(k, t->c, a->crop.oh, a->crop.ow, crop_at);
        case RFX_OP_RESIZE:
            return of_size(k, t->c, a->resize.oh, a->resize.ow, rfx_ref_resize_at);
        case RFX_OP_GRID_SAMPLE: {
            const struct rfx_tensor *grid = &k->g->nodes[k->node->in[1]].out;
            return of_size(k, t->c, grid->h, grid->w, rfx_ref_grid_sample_at);
        }
        case RFX_OP_WINDOW_ATTENTION:
            return of_size(k, rfx_ref_window_values(k), t->h, t->w, rfx_ref_window_attention_at);
        case RFX_OP_DEPTH_TO_SPACE:
            return of_size(k, t->c / (b * b), t->h * b, t->w * b, depth_to_space_at);
        case RFX_OP_SPACE_TO_DEPTH:
            return of_size(k, t->c * b * b, t->h / b, t->w / b, space_to_depth_at);
        default:
            return rfx_ref_tensor(k->g, k->node, k->in, k->out);
    }
}

bool rfx_ref_node(const struct rfx_graph *graph, const struct rfx_node *node, float *const *in,
                  float *out) {
    const struct rfx_tensor *it = node->n_in > 0 ? &graph->nodes[node->in[0]].out : NULL;
    struct rfx_ref_call k = {graph, node, in, out, it, &node->out};
    switch ((int)node->op) {
        case RFX_OP_CONST_MAP:
        case RFX_OP_CONST_PLAIN:
            return ref_constant(&k);
        case RFX_OP_REPEAT:
            return ref_repeat(&k);
        case RFX_OP_CONV:
            return rfx_ref_conv(&k);
        case RFX_OP_CONVERT:
            return rfx_ref_convert(&k);
        case RFX_OP_INT_CONV:
            return rfx_ref_conv_shape(&k) && rfx_ref_int_conv(&k);
        case RFX_OP_INT_ADD:
        case RFX_OP_INT_MUL:
            return rfx_ref_int_pair(&k);
        case RFX_OP_INT_MEAN:
            return rfx_ref_shape_is(&k, it->c, 1, 1) && rfx_ref_int_mean(&k);
        case RFX_OP_CONV_TRANSPOSE:
            return rfx_ref_conv_transpose(&k);
        case RFX_OP_POOL_MAX:
        case RFX_OP_POOL_PLACE:
        case RFX_OP_POOL_AVG:
        case RFX_OP_POOL_LP:
            return rfx_ref_pool(&k);
        case RFX_OP_AFFINE:
            return same_size(&k, affine_at);
        case RFX_OP_ACTIVATION:
            return same_size(&k, activation_at);
        case RFX_OP_BINARY:
            return ref_binary(&k);
        case RFX_OP_CONCAT:
            return ref_concat(&k);
        case RFX_OP_PAD:
            return ref_pad(&k);
        case RFX_OP_LRN:
            return same_size(&k, lrn_at);
        case RFX_OP_SOFTMAX:
            return same_size(&k, softmax_at);
        case RFX_OP_NORMALISE:
            return same_size(&k, rfx_ref_normalise_at);
        case RFX_OP_CHANNEL_NORM:
            return same_size(&k, rfx_ref_channel_norm_at);
        default:
            return ref_sized(&k);
    }
}

bool rfx_ref_eval(const struct rfx_graph *graph, const float *input_nchw, float **outs) {
    for (int i = 0; i < graph->n_nodes; i++) outs[i] = NULL;
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct rfx_node *node = &graph->nodes[i];
        float *in[64];
        size_t bytes = (size_t)node->out.elems * sizeof(float);
        outs[i] = malloc(bytes);
        if (outs[i] == NULL || node->n_in > 64) return false;
        for (int j = 0; j < node->n_in; j++) in[j] = outs[node->in[j]];
        if (node->op == RFX_OP_INPUT)
            memcpy(outs[i], input_nchw, bytes);
        else if (!rfx_ref_node(graph, node, in, outs[i]))
            return false;
    }
    return true;
}

void rfx_ref_free(const struct rfx_graph *graph, float **outs) {
    for (int i = 0; i < graph->n_nodes; i++) free(outs[i]);
}
