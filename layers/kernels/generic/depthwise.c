/* Depthwise convolution over a run of pixels, vectorised over channels. An element's chain is
 * always: bias, then the taps in (ky, kx) order, then the clamp. */
#include "layers/kernels/generic/variant.h"
#include "layers/kernels/generic/vector_math.h"

#define INLINE static inline __attribute__((always_inline))
#define PIXELS 4

/* `n` pixels from pixel p0, VECTOR_FLOATS channels from channel ch. kh, kw, n are constants in the
 * calls that matter. */
INLINE void vector_block(const struct rfx_depthwise_run *r, int64_t p0, int n, int64_t ch,
                         int64_t kh, int64_t kw, int64_t kx0, int64_t kx1, int64_t sw, int64_t dw,
                         bool all_rows) {
    vector sum[PIXELS];
    vector bias = VECTOR_LOAD(r->bias + ch);
    for (int p = 0; p < n; p++) sum[p] = bias;
    for (int64_t ky = 0; ky < kh; ky++) {
        if (!all_rows && r->rows[ky] == NULL) continue;
        const float *row = r->rows[ky] + p0 * sw * r->in_c + ch;
        for (int64_t kx = kx0; kx < kx1; kx++) {
            vector w = VECTOR_LOAD(r->weights + (ky * kw + kx) * r->c + ch);
            for (int p = 0; p < n; p++)
                sum[p] = VECTOR_FMA(VECTOR_LOAD(row + (p * sw + kx * dw) * r->in_c), w, sum[p]);
        }
    }
    vector lo = VECTOR_ALL(r->lo), hi = VECTOR_ALL(r->hi);
    for (int p = 0; p < n; p++) {
        vector v = VECTOR_MIN(hi, VECTOR_MAX(lo, sum[p]));
        VECTOR_STORE(r->out + (p0 + p) * r->out_c + ch, v);
    }
}

INLINE void vector_pixels(const struct rfx_depthwise_run *r, int64_t p0, int n, bool three) {
    int64_t last = r->c - VECTOR_FLOATS;
    for (int64_t ch = 0; ch < r->c; ch += VECTOR_FLOATS) {
        int64_t at = ch < last ? ch : last; /* the last vector may overlap its neighbour */
        if (three) {
            vector_block(r, p0, n, at, 3, 3, 0, 3, r->sw, 1, true);
        } else {
            vector_block(r, p0, n, at, r->kh, r->kw, r->kx0, r->kx1, r->sw, r->dw, false);
        }
    }
}

/* Fewer channels than a vector has: the same chain, element by element. */
static void narrow_pixel(const struct rfx_depthwise_run *r, int64_t p) {
    float sum[VECTOR_FLOATS];
    for (int64_t i = 0; i < r->c; i++) sum[i] = r->bias[i];
    for (int64_t ky = 0; ky < r->kh; ky++) {
        if (r->rows[ky] == NULL) continue;
        for (int64_t kx = r->kx0; kx < r->kx1; kx++) {
            const float *x = r->rows[ky] + (p * r->sw + kx * r->dw) * r->in_c;
            const float *w = r->weights + (ky * r->kw + kx) * r->c;
            for (int64_t i = 0; i < r->c; i++) sum[i] = MATH_FMA(x[i], w[i], sum[i]);
        }
    }
    for (int64_t i = 0; i < r->c; i++) r->out[p * r->out_c + i] = math_clamp(sum[i], r->lo, r->hi);
}

static bool is_three(const struct rfx_depthwise_run *r) {
    return r->kh == 3 && r->kw == 3 && r->kx0 == 0 && r->kx1 == 3 && r->dw == 1 &&
           r->rows[0] != NULL && r->rows[1] != NULL && r->rows[2] != NULL;
}

void VARIANT_NAME(depthwise)(const struct rfx_depthwise_run *r) {
    int64_t p = 0;
    if (r->c < VECTOR_FLOATS) {
        for (; p < r->pixels; p++) narrow_pixel(r, p);
        return;
    }
    if (is_three(r)) {
        for (; p + PIXELS <= r->pixels; p += PIXELS) vector_pixels(r, p, PIXELS, true);
        for (; p < r->pixels; p++) vector_pixels(r, p, 1, true);
        return;
    }
    for (; p + PIXELS <= r->pixels; p += PIXELS) vector_pixels(r, p, PIXELS, false);
    for (; p < r->pixels; p++) vector_pixels(r, p, 1, false);
}
