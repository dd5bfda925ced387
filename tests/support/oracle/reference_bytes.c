/* The naive evaluator: conversions and operators on one-byte integers. Sums are int64. Each
 * operation on float32 is rounded once, as ONNX Runtime rounds it. See reference.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/oracle/reference_call.h"
#include "tests/support/test_util.h"

/* Returns the integer nearest to v (of two, the even one), plus `zero`, within the range of the
 * type. NaN becomes `zero`. */
static double saturate(float v, int32_t zero, enum rfx_type type) {
    double lo = type == RFX_TYPE_UINT8  ? 0
                : type == RFX_TYPE_INT8 ? -128
                                        : -2147483648.0,
           hi = type == RFX_TYPE_UINT8  ? 255
                : type == RFX_TYPE_INT8 ? 127
                                        : 2147483647.0,
           down = floor((double)v), rest = (double)v - down, q = down + (rest > 0.5);
    if (v != v) return zero;
    if (rest == 0.5 && fmod(down, 2) != 0) q = down + 1;
    q += zero;
    return q < lo ? lo : q > hi ? hi : q;
}

bool rfx_ref_convert(const struct rfx_ref_call *k) {
    float scale = k->node->attr.convert.scale;
    int32_t zero = k->node->attr.convert.zero_point;
    if (k->ot->elems != k->it->elems || k->ot->layout != k->it->layout) return false;
    for (int64_t i = 0; i < k->ot->elems; i++) {
        float x = k->in[0][i];
        if (k->ot->type == RFX_TYPE_FLOAT32)
            k->out[i] = scale == 0.0f ? x : (x - (float)zero) * scale;
        else
            k->out[i] = (float)saturate(scale == 0.0f ? x : x / scale, zero, k->ot->type);
    }
    return true;
}

static int64_t int_sum(const struct rfx_ref_call *k, const float *weights, int64_t c, int64_t y,
                       int64_t x) {
    const struct rfx_int_conv_attr *q = &k->node->attr.int_conv;
    const struct rfx_conv_attr *a = &q->conv;
    int64_t per = k->it->c / a->groups, group = c / (a->oc / a->groups), sum = q->channels[3 * c],
            zero = k->node->n_in == 2 ? (int64_t)k->in[1][0] : q->in_zero;
    for (int64_t i = 0; i < per; i++)
        for (int64_t ky = 0; ky < a->kh; ky++)
            for (int64_t kx = 0; kx < a->kw; kx++) {
                int64_t iy = y * a->sh - a->pads.top + ky * a->dh,
                        ix = x * a->sw - a->pads.left + kx * a->dw;
                if (!rfx_ref_inside(k->it, iy, ix)) continue; /* the zero point: no part of it */
                float v = rfx_ref_in_at(k, group * per + i, iy, ix),
                      w = weights[((c * per + i) * a->kh + ky) * a->kw + kx];
                sum += ((int64_t)v - zero) * ((int64_t)w - q->channels[3 * c + 1]);
            }
    return sum;
}

bool rfx_ref_int_conv(const struct rfx_ref_call *k) {
    const struct rfx_int_conv_attr *q = &k->node->attr.int_conv;
    const struct rfx_weight *weight = &k->g->weights[q->conv.weight];
    float *weights = test_floats(weight->elems);
    test_read_weight(weight, 0, weight->elems, weights);
    for (int64_t c = 0; c < k->ot->c; c++) {
        uint32_t bits = (uint32_t)q->channels[3 * c + 2];
        float factor;
        memcpy(&factor, &bits, sizeof factor);
        for (int64_t y = 0; y < k->ot->h; y++)
            for (int64_t x = 0; x < k->ot->w; x++) {
                float sum = (float)int_sum(k, weights, c, y, x);
                k->out[(c * k->ot->h + y) * k->ot->w + x] =
                    q->to == RFX_TYPE_INT32
                        ? sum
                        : (float)saturate(sum * factor, q->out_zero, k->ot->type);
            }
    }
    free(weights);
    return true;
}

/* Returns the element of input 1 that meets element i of input 0, channels first. */
static float meets(const struct rfx_ref_call *k, int64_t i) {
    const struct rfx_tensor *b = &k->g->nodes[k->node->in[1]].out;
    if (b->elems == k->it->elems) return k->in[1][i];
    int64_t w = k->it->w, h = k->it->h, x = i % w, y = i / w % h, c = i / w / h;
    x = b->w == 1 ? 0 : x;
    y = b->h == 1 ? 0 : y;
    c = b->c == 1 ? 0 : c;
    return k->in[1][(c * b->h + y) * b->w + x];
}

bool rfx_ref_int_pair(const struct rfx_ref_call *k) {
    const union rfx_attr *a = &k->node->attr;
    if (k->ot->elems != k->it->elems || k->ot->type != k->it->type) return false;
    for (int64_t i = 0; i < k->ot->elems; i++) {
        float left = k->in[0][i], right = meets(k, i), v;
        if (k->node->op == RFX_OP_INT_ADD) {
            v = fmaf(left, a->int_add.a_scale, fmaf(right, a->int_add.b_scale, a->int_add.shift));
        } else {
            volatile float product =
                (left - (float)a->int_mul.a_zero) * (right - (float)a->int_mul.b_zero);
            volatile float scaled = product * a->int_mul.factor;
            v = scaled + (float)a->int_mul.out_zero;
        }
        k->out[i] = (float)saturate(v, 0, k->ot->type);
    }
    return true;
}

bool rfx_ref_int_mean(const struct rfx_ref_call *k) {
    const union rfx_attr *a = &k->node->attr;
    int64_t n = k->it->h * k->it->w;
    float factor = a->int_mean.in_scale / (a->int_mean.out_scale * (float)n);
    for (int64_t c = 0; c < k->it->c; c++) {
        int64_t sum = 0;
        for (int64_t i = 0; i < n; i++) sum += (int64_t)k->in[0][c * n + i] - a->int_mean.in_zero;
        float mean = (float)sum * factor;
        k->out[c] = (float)saturate(mean, a->int_mean.out_zero, k->ot->type);
    }
    return true;
}
