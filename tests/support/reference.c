/* Ops on feature maps, see reference.h. */
#include "tests/support/reference.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One node while it is evaluated. */
struct call {
    const struct rfx_graph *g;
    const struct rfx_node *node;
    float *const *in;
    float *out;
    const struct rfx_tensor *it; /* of input 0 */
    const struct rfx_tensor *ot;
};

static float in_at(const struct call *k, int64_t c, int64_t y, int64_t x) {
    return k->in[0][(c * k->it->h + y) * k->it->w + x];
}

static bool inside(const struct rfx_tensor *t, int64_t y, int64_t x) {
    return y >= 0 && y < t->h && x >= 0 && x < t->w;
}

double rfx_ref_weight(const struct rfx_graph *graph, int index, int64_t i, double missing) {
    if (index < 0) return missing;
    float value;
    rfx_weight_read(&graph->weights[index], graph->weights[index].elems == 1 ? 0 : i, 1, &value);
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
    }
    return NAN;
}

static bool shape_is(const struct call *k, int64_t c, int64_t h, int64_t w) {
    if (k->ot->c == c && k->ot->h == h && k->ot->w == w && k->ot->elems == c * h * w) return true;
    fprintf(stderr, "'%s': inferred %lld x %lld x %lld, should be %lld x %lld x %lld\n",
            k->node->name, (long long)k->ot->c, (long long)k->ot->h, (long long)k->ot->w,
            (long long)c, (long long)h, (long long)w);
    return false;
}

/* Calls `value` for every output element. */
static void each(const struct call *k,
                 double (*value)(const struct call *, int64_t, int64_t, int64_t)) {
    float *out = k->out;
    for (int64_t c = 0; c < k->ot->c; c++)
        for (int64_t y = 0; y < k->ot->h; y++)
            for (int64_t x = 0; x < k->ot->w; x++) *out++ = (float)value(k, c, y, x);
}

static double conv_at(const struct call *k, int64_t c, int64_t y, int64_t x) {
    const struct rfx_conv_attr *a = &k->node->attr.conv;
    int64_t per = k->it->c / a->groups, group = c / (a->oc / a->groups);
    double sum = 0;
    for (int64_t t = 0; t < per * a->kh * a->kw; t++) {
        int64_t i = t / (a->kh * a->kw), ky = t / a->kw % a->kh, kx = t % a->kw;
        int64_t iy = y * a->sh - a->pads.top + ky * a->dh,
                ix = x * a->sw - a->pads.left + kx * a->dw;
        if (!inside(k->it, iy, ix)) continue;
        sum += (double)in_at(k, group * per + i, iy, ix) *
               rfx_ref_weight(k->g, a->weight, (c * per + i) * a->kh * a->kw + ky * a->kw + kx, 0);
    }
    sum = sum * rfx_ref_weight(k->g, a->scale, c, 1) + rfx_ref_weight(k->g, a->bias, c, 0);
    if (k->node->residual) sum += (double)k->in[1][(c * k->ot->h + y) * k->ot->w + x];
    return rfx_ref_act(k->g, &k->node->act, sum, c);
}

static int64_t window_count(int64_t in, int64_t before, int64_t after, int64_t kernel, int64_t d,
                            int64_t s, bool ceil_mode) {
    int64_t room = in + before + after - ((kernel - 1) * d + 1);
    if (room < 0) return 0;
    int64_t n = (ceil_mode ? (room + s - 1) / s : room / s) + 1;
    /* ONNX: a window that starts past the map and the padding before it is left out. */
    if (ceil_mode && (n - 1) * s >= in + before) n--;
    return n;
}

static bool ref_conv(const struct call *k) {
    const struct rfx_conv_attr *a = &k->node->attr.conv;
    if (!shape_is(k, a->oc,
                  window_count(k->it->h, a->pads.top, a->pads.bottom, a->kh, a->dh, a->sh, false),
                  window_count(k->it->w, a->pads.left, a->pads.right, a->kw, a->dw, a->sw, false)))
        return false;
    each(k, conv_at);
    return true;
}

/* Gathers what the scattering definition puts at (y, x): input row iy puts tap ky at row
 * iy * stride - pad + ky * dilation, columns likewise. */
static double conv_transpose_at(const struct call *k, int64_t c, int64_t y, int64_t x) {
    const struct rfx_conv_attr *a = &k->node->attr.conv;
    int64_t per_in = k->it->c / a->groups, per_out = a->oc / a->groups, group = c / per_out;
    double sum = 0;
    for (int64_t ky = 0; ky < a->kh; ky++)
        for (int64_t kx = 0; kx < a->kw; kx++) {
            int64_t dy = y + a->pads.top - ky * a->dh, dx = x + a->pads.left - kx * a->dw;
            if (dy < 0 || dx < 0 || dy % a->sh != 0 || dx % a->sw != 0) continue;
            int64_t iy = dy / a->sh, ix = dx / a->sw;
            if (iy >= k->it->h || ix >= k->it->w) continue;
            for (int64_t i = group * per_in; i < (group + 1) * per_in; i++) {
                int64_t at = ((i * per_out + c % per_out) * a->kh + ky) * a->kw + kx;
                sum += (double)in_at(k, i, iy, ix) * rfx_ref_weight(k->g, a->weight, at, 0);
            }
        }
    sum = sum * rfx_ref_weight(k->g, a->scale, c, 1) + rfx_ref_weight(k->g, a->bias, c, 0);
    return rfx_ref_act(k->g, &k->node->act, sum, c);
}

static bool ref_conv_transpose(const struct call *k) {
    const struct rfx_conv_attr *a = &k->node->attr.conv;
    int64_t h = (k->it->h - 1) * a->sh + a->out_pad_h + (a->kh - 1) * a->dh + 1 - a->pads.top -
                a->pads.bottom;
    int64_t w = (k->it->w - 1) * a->sw + a->out_pad_w + (a->kw - 1) * a->dw + 1 - a->pads.left -
                a->pads.right;
    if (!shape_is(k, a->oc, h, w)) return false;
    each(k, conv_transpose_at);
    return true;
}

static double pool_at(const struct call *k, int64_t c, int64_t y, int64_t x) {
    const struct rfx_pool_attr *a = &k->node->attr.pool;
    double sum = 0, largest = -INFINITY;
    int64_t count = 0;
    for (int64_t t = 0; t < a->kh * a->kw; t++) {
        int64_t iy = y * a->sh - a->pads.top + t / a->kw * a->dh;
        int64_t ix = x * a->sw - a->pads.left + t % a->kw * a->dw;
        bool in_padded = iy < k->it->h + a->pads.bottom && ix < k->it->w + a->pads.right;
        bool in_map = inside(k->it, iy, ix);
        if (in_map || (a->count_include_pad && in_padded)) count++;
        if (!in_map) continue;
        sum += (double)in_at(k, c, iy, ix);
        largest = fmax(largest, (double)in_at(k, c, iy, ix));
    }
    return k->node->op == RFX_OP_POOL_MAX ? largest : sum / (double)count;
}

/* Padding is zero. */
static double lp_at(const struct call *k, int64_t c, int64_t y, int64_t x) {
    const struct rfx_pool_attr *a = &k->node->attr.pool;
    double sum = 0;
    for (int64_t ky = 0; ky < a->kh; ky++)
        for (int64_t kx = 0; kx < a->kw; kx++) {
            int64_t iy = y * a->sh - a->pads.top + ky * a->dh;
            int64_t ix = x * a->sw - a->pads.left + kx * a->dw;
            if (inside(k->it, iy, ix)) sum += pow(fabs((double)in_at(k, c, iy, ix)), (double)a->p);
        }
    return pow(sum, 1.0 / (double)a->p);
}

static bool ref_pool(const struct call *k) {
    const struct rfx_pool_attr *a = &k->node->attr.pool;
    if (!shape_is(
            k, k->it->c,
            window_count(k->it->h, a->pads.top, a->pads.bottom, a->kh, a->dh, a->sh, a->ceil_mode),
            window_count(k->it->w, a->pads.left, a->pads.right, a->kw, a->dw, a->sw, a->ceil_mode)))
        return false;
    each(k, k->node->op == RFX_OP_POOL_LP ? lp_at : pool_at);
    return true;
}

static double reduce_rect(const struct call *k, int64_t c, struct rfx_rect r,
                          enum rfx_reduce_kind kind) {
    double sum = 0, largest = -INFINITY, smallest = INFINITY;
    for (int64_t y = r.y0; y < r.y1; y++)
        for (int64_t x = r.x0; x < r.x1; x++) {
            double v = (double)in_at(k, c, y, x);
            sum += v;
            largest = fmax(largest, v);
            smallest = fmin(smallest, v);
        }
    if (kind == RFX_REDUCE_MAX) return largest;
    if (kind == RFX_REDUCE_MIN) return smallest;
    return kind == RFX_REDUCE_SUM ? sum : sum / (double)rfx_rect_area(r);
}

static double adaptive_at(const struct call *k, int64_t c, int64_t y, int64_t x) {
    int64_t h = k->it->h, w = k->it->w, oh = k->ot->h, ow = k->ot->w;
    struct rfx_rect r = {y * h / oh, ((y + 1) * h + oh - 1) / oh, x * w / ow,
                         ((x + 1) * w + ow - 1) / ow};
    return reduce_rect(k, c, r, RFX_REDUCE_MEAN);
}

static double global_at(const struct call *k, int64_t c, int64_t y, int64_t x) {
    (void)y;
    (void)x;
    return reduce_rect(k, c, rfx_rect_full(k->it->h, k->it->w), k->node->attr.global_pool.kind);
}

static double affine_at(const struct call *k, int64_t c, int64_t y, int64_t x) {
    double v = (double)in_at(k, c, y, x) * rfx_ref_weight(k->g, k->node->attr.affine.scale, c, 1) +
               rfx_ref_weight(k->g, k->node->attr.affine.shift, c, 0);
    return rfx_ref_act(k->g, &k->node->act, v, c);
}

static double activation_at(const struct call *k, int64_t c, int64_t y, int64_t x) {
    return rfx_ref_act(k->g, &k->node->act, (double)in_at(k, c, y, x), c);
}

static double broadcast_at(const struct call *k, int i, int64_t c, int64_t y, int64_t x) {
    const struct rfx_tensor *t = &k->g->nodes[k->node->in[i]].out;
    c = t->c == 1 ? 0 : c;
    y = t->h == 1 ? 0 : y;
    x = t->w == 1 ? 0 : x;
    return (double)k->in[i][(c * t->h + y) * t->w + x];
}

static double binary_at(const struct call *k, int64_t c, int64_t y, int64_t x) {
    double v = rfx_ref_binary(k->node->attr.binary.kind, broadcast_at(k, 0, c, y, x),
                              broadcast_at(k, 1, c, y, x));
    return rfx_ref_act(k->g, &k->node->act, v, c);
}

static int64_t longer(int64_t a, int64_t b) {
    return a == 1 ? b : a;
}

static bool ref_binary(const struct call *k) {
    const struct rfx_tensor *b = &k->g->nodes[k->node->in[1]].out;
    if (!shape_is(k, longer(k->it->c, b->c), longer(k->it->h, b->h), longer(k->it->w, b->w)))
        return false;
    each(k, binary_at);
    return true;
}

static bool ref_concat(const struct call *k) {
    int64_t c = 0;
    for (int i = 0; i < k->node->n_in; i++) c += k->g->nodes[k->node->in[i]].out.c;
    if (!shape_is(k, c, k->it->h, k->it->w)) return false;
    float *out = k->out;
    for (int i = 0; i < k->node->n_in; i++) {
        int64_t n = k->g->nodes[k->node->in[i]].out.elems;
        memcpy(out, k->in[i], (size_t)n * sizeof *out);
        out += n;
    }
    return true;
}

static double select_at(const struct call *k, int64_t c, int64_t y, int64_t x) {
    int64_t from = k->node->attr.select.map[c];
    return from < 0 ? 0.0 : (double)in_at(k, from, y, x);
}

/* The source position of a padded one, or -1 for the constant. */
static int64_t pad_source(int64_t at, int64_t n, enum rfx_pad_mode mode) {
    if (mode == RFX_PAD_EDGE) return at < 0 ? 0 : at >= n ? n - 1 : at;
    if (mode == RFX_PAD_CONSTANT) return at < 0 || at >= n ? -1 : at;
    while (n > 1 && (at < 0 || at >= n)) at = at < 0 ? -at : 2 * (n - 1) - at;
    return n > 1 ? at : 0;
}

static double pad_at(const struct call *k, int64_t c, int64_t y, int64_t x) {
    const struct rfx_pads *p = &k->node->attr.pad.pads;
    int64_t iy = pad_source(y - p->top, k->it->h, k->node->attr.pad.mode);
    int64_t ix = pad_source(x - p->left, k->it->w, k->node->attr.pad.mode);
    return iy < 0 || ix < 0 ? (double)k->node->attr.pad.value : (double)in_at(k, c, iy, ix);
}

static bool ref_pad(const struct call *k) {
    const struct rfx_pads *p = &k->node->attr.pad.pads;
    if (!shape_is(k, k->it->c, k->it->h + p->top + p->bottom, k->it->w + p->left + p->right))
        return false;
    each(k, pad_at);
    return true;
}

static double crop_at(const struct call *k, int64_t c, int64_t y, int64_t x) {
    return (double)in_at(k, c, k->node->attr.crop.y0 + y * k->node->attr.crop.sy,
                         k->node->attr.crop.x0 + x * k->node->attr.crop.sx);
}

static double resize_coord(const struct rfx_resize_attr *a, int64_t o, double scale, int64_t in,
                           int64_t out) {
    switch (a->coord) {
        case RFX_COORD_HALF_PIXEL:
            return ((double)o + 0.5) / scale - 0.5;
        case RFX_COORD_PYTORCH_HALF_PIXEL:
            return out > 1 ? ((double)o + 0.5) / scale - 0.5 : 0.0;
        case RFX_COORD_ALIGN_CORNERS:
            return out == 1 ? 0.0 : (double)o * (double)(in - 1) / (double)(out - 1);
        case RFX_COORD_ASYMMETRIC:
            return (double)o / scale;
    }
    return NAN;
}

static int64_t clamp_to(int64_t at, int64_t n) {
    return at < 0 ? 0 : at >= n ? n - 1 : at;
}

static int64_t nearest_index(enum rfx_resize_nearest mode, double at, int64_t n) {
    double r = 0;
    switch (mode) {
        case RFX_NEAREST_ROUND_PREFER_FLOOR:
            r = ceil(at - 0.5);
            break;
        case RFX_NEAREST_ROUND_PREFER_CEIL:
            r = floor(at + 0.5);
            break;
        case RFX_NEAREST_FLOOR:
            r = floor(at);
            break;
        case RFX_NEAREST_CEIL:
            r = ceil(at);
            break;
    }
    return clamp_to((int64_t)r, n);
}

static double resize_at(const struct call *k, int64_t c, int64_t y, int64_t x) {
    const struct rfx_resize_attr *a = &k->node->attr.resize;
    double fy = resize_coord(a, y, (double)a->scale_h, k->it->h, a->oh);
    double fx = resize_coord(a, x, (double)a->scale_w, k->it->w, a->ow);
    if (a->mode == RFX_RESIZE_NEAREST)
        return (double)in_at(k, c, nearest_index(a->nearest, fy, k->it->h),
                             nearest_index(a->nearest, fx, k->it->w));
    double by = floor(fy), bx = floor(fx), ty = fy - by, tx = fx - bx;
    int64_t y0 = clamp_to((int64_t)by, k->it->h), y1 = clamp_to((int64_t)by + 1, k->it->h);
    int64_t x0 = clamp_to((int64_t)bx, k->it->w), x1 = clamp_to((int64_t)bx + 1, k->it->w);
    double top = (1 - tx) * (double)in_at(k, c, y0, x0) + tx * (double)in_at(k, c, y0, x1);
    double low = (1 - tx) * (double)in_at(k, c, y1, x0) + tx * (double)in_at(k, c, y1, x1);
    return (1 - ty) * top + ty * low;
}

static double depth_to_space_at(const struct call *k, int64_t c, int64_t y, int64_t x) {
    int64_t b = k->node->attr.depth.block, part = y % b * b + x % b;
    int64_t i = k->node->attr.depth.column_major ? c * b * b + part : part * k->ot->c + c;
    return (double)in_at(k, i, y / b, x / b);
}

static double space_to_depth_at(const struct call *k, int64_t c, int64_t y, int64_t x) {
    int64_t b = k->node->attr.depth.block, n = k->it->c;
    int64_t part = k->node->attr.depth.column_major ? c % (b * b) : c / n;
    int64_t i = k->node->attr.depth.column_major ? c / (b * b) : c % n;
    return (double)in_at(k, i, y * b + part / b, x * b + part % b);
}

static double lrn_at(const struct call *k, int64_t c, int64_t y, int64_t x) {
    int64_t size = k->node->attr.lrn.size;
    double sum = 0;
    for (int64_t i = c - (size - 1) / 2; i <= c + size / 2; i++)
        if (i >= 0 && i < k->it->c) sum += pow((double)in_at(k, i, y, x), 2);
    return (double)in_at(k, c, y, x) / pow((double)k->node->attr.lrn.bias +
                                               (double)k->node->attr.lrn.alpha / (double)size * sum,
                                           (double)k->node->attr.lrn.beta);
}

static double softmax_at(const struct call *k, int64_t c, int64_t y, int64_t x) {
    double largest = -INFINITY, sum = 0;
    for (int64_t i = 0; i < k->it->c; i++) largest = fmax(largest, (double)in_at(k, i, y, x));
    for (int64_t i = 0; i < k->it->c; i++) sum += exp((double)in_at(k, i, y, x) - largest);
    double shifted = (double)in_at(k, c, y, x) - largest;
    return k->node->attr.softmax.logarithm ? shifted - log(sum) : exp(shifted) / sum;
}

static bool same_size(const struct call *k,
                      double (*value)(const struct call *, int64_t, int64_t, int64_t)) {
    if (!shape_is(k, k->it->c, k->it->h, k->it->w)) return false;
    each(k, value);
    return true;
}

static bool of_size(const struct call *k, int64_t c, int64_t h, int64_t w,
                    double (*value)(const struct call *, int64_t, int64_t, int64_t)) {
    if (!shape_is(k, c, h, w)) return false;
    each(k, value);
    return true;
}

static bool ref_constant(const struct call *k) {
    rfx_weight_read(&k->g->weights[k->node->attr.constant.weight], 0, k->ot->elems, k->out);
    return true;
}

/* Ops whose output's size is given by the attributes. */
static bool ref_sized(const struct call *k) {
    const union rfx_attr *a = &k->node->attr;
    const struct rfx_tensor *t = k->it;
    int64_t b = a->depth.block;
    switch ((int)k->node->op) {
        case RFX_OP_POOL_ADAPTIVE_AVG:
            return of_size(k, t->c, a->adaptive.oh, a->adaptive.ow, adaptive_at);
        case RFX_OP_GLOBAL_POOL:
            return of_size(k, t->c, 1, 1, global_at);
        case RFX_OP_CHANNEL_SELECT:
            return of_size(k, a->select.count, t->h, t->w, select_at);
        case RFX_OP_CROP:
            return of_size(k, t->c, a->crop.oh, a->crop.ow, crop_at);
        case RFX_OP_RESIZE:
            return of_size(k, t->c, a->resize.oh, a->resize.ow, resize_at);
        case RFX_OP_DEPTH_TO_SPACE:
            return of_size(k, t->c / (b * b), t->h * b, t->w * b, depth_to_space_at);
        case RFX_OP_SPACE_TO_DEPTH:
            return of_size(k, t->c * b * b, t->h / b, t->w / b, space_to_depth_at);
        default:
            return rfx_ref_plain(k->g, k->node, k->in, k->out);
    }
}

bool rfx_ref_node(const struct rfx_graph *graph, const struct rfx_node *node, float *const *in,
                  float *out) {
    const struct rfx_tensor *it = node->n_in > 0 ? &graph->nodes[node->in[0]].out : NULL;
    struct call k = {graph, node, in, out, it, &node->out};
    switch ((int)node->op) {
        case RFX_OP_CONST_MAP:
        case RFX_OP_CONST_PLAIN:
            return ref_constant(&k);
        case RFX_OP_CONV:
            return ref_conv(&k);
        case RFX_OP_CONV_TRANSPOSE:
            return ref_conv_transpose(&k);
        case RFX_OP_POOL_MAX:
        case RFX_OP_POOL_AVG:
        case RFX_OP_POOL_LP:
            return ref_pool(&k);
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
