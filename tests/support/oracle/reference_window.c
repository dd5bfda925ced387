/* The naive evaluator: convolutions and pools, see reference.h. */
#include <math.h>
#include <stdlib.h>

#include "tests/support/oracle/reference_call.h"

static double conv_at(const struct rfx_ref_call *k, int64_t c, int64_t y, int64_t x) {
    const struct rfx_conv_attr *a = &k->node->attr.conv;
    int64_t per = k->it->c / a->groups, group = c / (a->oc / a->groups);
    double sum = 0;
    for (int64_t t = 0; t < per * a->kh * a->kw; t++) {
        int64_t i = t / (a->kh * a->kw), ky = t / a->kw % a->kh, kx = t % a->kw;
        int64_t iy = y * a->sh - a->pads.top + ky * a->dh,
                ix = x * a->sw - a->pads.left + kx * a->dw;
        if (!rfx_ref_inside(k->it, iy, ix)) continue;
        sum += (double)rfx_ref_in_at(k, group * per + i, iy, ix) *
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

bool rfx_ref_conv_shape(const struct rfx_ref_call *k) {
    const struct rfx_conv_attr *a = &k->node->attr.conv;
    return rfx_ref_shape_is(
        k, a->oc, window_count(k->it->h, a->pads.top, a->pads.bottom, a->kh, a->dh, a->sh, false),
        window_count(k->it->w, a->pads.left, a->pads.right, a->kw, a->dw, a->sw, false));
}

bool rfx_ref_conv(const struct rfx_ref_call *k) {
    if (!rfx_ref_conv_shape(k)) return false;
    rfx_ref_each(k, conv_at);
    return true;
}

/* Gathers what the scattering definition puts at (y, x): input row iy puts tap ky at row
 * iy * stride - pad + ky * dilation, columns likewise. */
static double conv_transpose_at(const struct rfx_ref_call *k, int64_t c, int64_t y, int64_t x) {
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
                sum += (double)rfx_ref_in_at(k, i, iy, ix) * rfx_ref_weight(k->g, a->weight, at, 0);
            }
        }
    sum = sum * rfx_ref_weight(k->g, a->scale, c, 1) + rfx_ref_weight(k->g, a->bias, c, 0);
    return rfx_ref_act(k->g, &k->node->act, sum, c);
}

bool rfx_ref_conv_transpose(const struct rfx_ref_call *k) {
    const struct rfx_conv_attr *a = &k->node->attr.conv;
    int64_t h = (k->it->h - 1) * a->sh + a->out_pad_h + (a->kh - 1) * a->dh + 1 - a->pads.top -
                a->pads.bottom;
    int64_t w = (k->it->w - 1) * a->sw + a->out_pad_w + (a->kw - 1) * a->dw + 1 - a->pads.left -
                a->pads.right;
    if (!rfx_ref_shape_is(k, a->oc, h, w)) return false;
    rfx_ref_each(k, conv_transpose_at);
    return true;
}

static double pool_at(const struct rfx_ref_call *k, int64_t c, int64_t y, int64_t x) {
    const struct rfx_pool_attr *a = &k->node->attr.pool;
    double sum = 0, largest = -INFINITY;
    int64_t count = 0;
    for (int64_t t = 0; t < a->kh * a->kw; t++) {
        int64_t iy = y * a->sh - a->pads.top + t / a->kw * a->dh;
        int64_t ix = x * a->sw - a->pads.left + t % a->kw * a->dw;
        bool in_padded = iy < k->it->h + a->pads.bottom && ix < k->it->w + a->pads.right;
        bool in_map = rfx_ref_inside(k->it, iy, ix);
        if (in_map || (a->count_include_pad && in_padded)) count++;
        if (!in_map) continue;
        sum += (double)rfx_ref_in_at(k, c, iy, ix);
        largest = fmax(largest, (double)rfx_ref_in_at(k, c, iy, ix));
    }
    if (k->node->op == RFX_OP_POOL_MAX) return largest;
    return count == 0 ? 0 : sum / (double)count; /* all padding: 0, as ONNX Runtime has it */
}

/* Padding is zero. */
static double lp_at(const struct rfx_ref_call *k, int64_t c, int64_t y, int64_t x) {
    const struct rfx_pool_attr *a = &k->node->attr.pool;
    double sum = 0;
    for (int64_t ky = 0; ky < a->kh; ky++)
        for (int64_t kx = 0; kx < a->kw; kx++) {
            int64_t iy = y * a->sh - a->pads.top + ky * a->dh;
            int64_t ix = x * a->sw - a->pads.left + kx * a->dw;
            if (rfx_ref_inside(k->it, iy, ix))
                sum += pow(fabs((double)rfx_ref_in_at(k, c, iy, ix)), (double)a->p);
        }
    return pow(sum, 1.0 / (double)a->p);
}

/* The first of the largest, from the last one back. */
static double place_at(const struct rfx_ref_call *k, int64_t c, int64_t y, int64_t x) {
    const struct rfx_pool_attr *a = &k->node->attr.pool;
    double largest = -INFINITY, place = -1;
    for (int64_t t = a->kh * a->kw - 1; t >= 0; t--) {
        int64_t iy = y * a->sh - a->pads.top + t / a->kw * a->dh;
        int64_t ix = x * a->sw - a->pads.left + t % a->kw * a->dw;
        if (!rfx_ref_inside(k->it, iy, ix)) continue;
        double v = (double)rfx_ref_in_at(k, c, iy, ix);
        if (!(v >= largest)) continue;
        largest = v;
        place = (double)(a->column_major ? (c * k->it->w + ix) * k->it->h + iy
                                         : (c * k->it->h + iy) * k->it->w + ix);
    }
    return place;
}

bool rfx_ref_pool(const struct rfx_ref_call *k) {
    const struct rfx_pool_attr *a = &k->node->attr.pool;
    if (!rfx_ref_shape_is(
            k, k->it->c,
            window_count(k->it->h, a->pads.top, a->pads.bottom, a->kh, a->dh, a->sh, a->ceil_mode),
            window_count(k->it->w, a->pads.left, a->pads.right, a->kw, a->dw, a->sw, a->ceil_mode)))
        return false;
    rfx_ref_each(k, k->node->op == RFX_OP_POOL_LP      ? lp_at
                    : k->node->op == RFX_OP_POOL_PLACE ? place_at
                                                       : pool_at);
    return true;
}

static double reduce_rect(const struct rfx_ref_call *k, int64_t c, struct rfx_rect r,
                          enum rfx_reduce_kind kind) {
    double *values = malloc((size_t)rfx_rect_area(r) * sizeof *values);
    int64_t n = 0;
    if (values == NULL) abort();
    for (int64_t y = r.y0; y < r.y1; y++)
        for (int64_t x = r.x0; x < r.x1; x++) values[n++] = (double)rfx_ref_in_at(k, c, y, x);
    double result = rfx_ref_reduce(kind, values, n);
    free(values);
    return result;
}

double rfx_ref_adaptive_at(const struct rfx_ref_call *k, int64_t c, int64_t y, int64_t x) {
    int64_t h = k->it->h, w = k->it->w, oh = k->ot->h, ow = k->ot->w;
    struct rfx_rect r = {y * h / oh, ((y + 1) * h + oh - 1) / oh, x * w / ow,
                         ((x + 1) * w + ow - 1) / ow};
    return reduce_rect(k, c, r, RFX_REDUCE_MEAN);
}

double rfx_ref_global_at(const struct rfx_ref_call *k, int64_t c, int64_t y, int64_t x) {
    (void)y;
    (void)x;
    return reduce_rect(k, c, rfx_rect_full(k->it->h, k->it->w), k->node->attr.global_pool.kind);
}
