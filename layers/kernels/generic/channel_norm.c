/* Normalises pixels by the statistics of their channels: see struct rfx_channel_norm_args. The
 * channels of a pixel are summed one after the other. SIDE pixels are summed at the same time, one
 * per vector lane, which requires their values transposed. */
#include <math.h>
#include <string.h>

#include "layers/kernels/generic/wide.h"

#define INLINE static inline __attribute__((always_inline))
#define SIDE 16  /* pixels that are summed at the same time */
#define KEPT 128 /* channels that are transposed at a time */
#define VECTORS (SIDE / WIDE_DOUBLES)

/* The term of each channel in a sum. */
enum term { VALUES, MAGNITUDES, SQUARES, DEVIATIONS };

/* Up to SIDE pixels. If they have at most KEPT channels, `kept` is true and all channels are in
 * `planes`. */
struct pixels {
    const float *x;
    int64_t n;
    bool kept;
    float planes[KEPT * SIDE] __attribute__((aligned(64)));
};

/* Transposes: planes[i * SIDE + p] = channel i of pixel p; missing pixels are 0. */
INLINE void transpose(const float *x, int64_t stride, int64_t n, int64_t channels, float *planes) {
#ifdef VARIANT_HAS_FMA
    if (n == SIDE) {
        VARIANT_NAME(planes)(x, stride, SIDE, channels, planes, SIDE);
        return;
    }
#endif
    memset(planes, 0, (size_t)(channels * SIDE) * sizeof *planes);
    for (int64_t p = 0; p < n; p++)
        for (int64_t i = 0; i < channels; i++) planes[i * SIDE + p] = x[p * stride + i];
}

INLINE void take_pixels(const struct rfx_channel_norm_args *r, const float *x, int64_t n,
                        struct pixels *pixels) {
    pixels->x = x;
    pixels->n = n;
    pixels->kept = r->c <= KEPT;
    if (pixels->kept) transpose(x, r->x_stride, n, r->c, pixels->planes);
}

/* Adds the terms of transposed channels to sum[]. */
INLINE void add_channels(const float *planes, int64_t channels, enum term term, const wide *mean,
                         wide *sum) {
    for (int64_t i = 0; i < channels; i++) {
        UNROLL
        for (int v = 0; v < VECTORS; v++) {
            wide value = WIDEN(NARROW_LOAD(planes + i * SIDE + v * WIDE_DOUBLES));
            if (term == MAGNITUDES) value = (wide)((wide_int)value & INT64_MAX);
            if (term == DEVIATIONS) value -= mean[v];
            sum[v] += term == SQUARES || term == DEVIATIONS ? value * value : value;
        }
    }
}

/* Sets sum[p] to the sum of the terms of pixel p's channels, in ascending order from 0; mean: for
 * DEVIATIONS. */
INLINE void add_terms(const struct rfx_channel_norm_args *r, struct pixels *pixels, enum term term,
                      const wide *mean, wide *sum) {
    UNROLL
    for (int v = 0; v < VECTORS; v++) sum[v] = (wide){0};
    if (pixels->kept) {
        add_channels(pixels->planes, r->c, term, mean, sum);
        return;
    }
    for (int64_t i = 0; i < r->c; i += KEPT) {
        int64_t channels = r->c - i < KEPT ? r->c - i : KEPT;
        transpose(pixels->x + i, r->x_stride, pixels->n, channels, pixels->planes);
        add_channels(pixels->planes, channels, term, mean, sum);
    }
}

/* Computes for each pixel the mean that is subtracted from every channel, and the factor that the
 * difference is multiplied by. */
INLINE void statistics(const struct rfx_channel_norm_args *r, struct pixels *pixels, double *mean,
                       double *factor) {
    const double c = (double)r->c;
    const enum rfx_channel_norm kind = r->kind;
    wide centre[VECTORS] = {{0}}, sum[VECTORS];
    if (kind == RFX_NORM_LAYER) {
        add_terms(r, pixels, VALUES, NULL, sum);
        for (int v = 0; v < VECTORS; v++) centre[v] = sum[v] / c;
        add_terms(r, pixels, DEVIATIONS, centre, sum);
    } else {
        add_terms(r, pixels, kind == RFX_NORM_L1 ? MAGNITUDES : SQUARES, NULL, sum);
    }
    memcpy(mean, centre, sizeof centre);
    memcpy(factor, sum, sizeof sum);
    if (kind == RFX_NORM_LAYER || kind == RFX_NORM_RMS) {
        for (int p = 0; p < SIDE; p++) factor[p] = 1.0 / sqrt(factor[p] / c + r->eps);
        return;
    }
    for (int p = 0; p < SIDE; p++)
        if (factor[p] != 0.0) factor[p] = 1.0 / (kind == RFX_NORM_L2 ? sqrt(factor[p]) : factor[p]);
}

INLINE void make_values(const struct rfx_channel_norm_args *r, const struct pixels *pixels,
                        const double *mean, const double *factor, float *out) {
    const int64_t n = pixels->n, c = r->c, x_stride = r->x_stride, y_stride = r->y_stride;
    int64_t i = 0;
    for (; i + WIDE_DOUBLES <= c; i += WIDE_DOUBLES) {
        const wide scale = WIDEN(NARROW_LOAD(r->scale + i)),
                   shift = WIDEN(NARROW_LOAD(r->shift + i));
        const float *x = pixels->x + i;
        float *y = out + i;
        for (int64_t p = 0; p < n; p++, x += x_stride, y += y_stride) {
            wide value = (WIDEN(NARROW_LOAD(x)) - mean[p]) * factor[p] * scale + shift;
            NARROW_STORE(y, NARROW(value));
        }
    }
    for (; i < c; i++) {
        const double scale = (double)r->scale[i], shift = (double)r->shift[i];
        for (int64_t p = 0; p < n; p++) {
            double x = (double)pixels->x[p * x_stride + i];
            out[p * y_stride + i] = (float)((x - mean[p]) * factor[p] * scale + shift);
        }
    }
}

void VARIANT_NAME(channel_norm)(const struct rfx_channel_norm_args *r) {
    double mean[SIDE], factor[SIDE];
    struct pixels pixels;
    for (int64_t p = 0; p < r->pixels; p += SIDE) {
        int64_t n = r->pixels - p < SIDE ? r->pixels - p : SIDE;
        take_pixels(r, r->x + p * r->x_stride, n, &pixels);
        statistics(r, &pixels, mean, factor);
        make_values(r, &pixels, mean, factor, r->y + p * r->y_stride);
    }
}
