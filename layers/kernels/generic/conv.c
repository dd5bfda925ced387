/* Dense convolution over a run of output pixels: PIXELS x VECTORS sums in registers, input values
 * broadcast, nothing gathered. See struct rfx_conv_run for the order of an element's sum; how many
 * pixels or channels share registers does not touch it. */
#include <string.h>

#include "layers/kernels/generic/variant.h"
#include "layers/kernels/generic/vector_math.h"

#ifdef VARIANT_HAS_FMA

#define INLINE static inline __attribute__((always_inline))
#define SIZE_OF_BLOCK (VECTORS * VECTOR_FLOATS) /* output channels */
#if VECTOR_FLOATS == 16
#define PIXELS 14 /* 28 sums, 2 weights and an input value of 32 registers */
#define VECTORS 2
#elif VECTOR_FLOATS == 8
#define PIXELS 6 /* 12 sums, 2 weights and an input value of 16 registers */
#define VECTORS 2
#else
#define PIXELS 6 /* 24 sums, 4 weights and an input value of 32 registers */
#define VECTORS 4
#endif
_Static_assert(RFX_CONV_PANEL % SIZE_OF_BLOCK == 0, "a panel is whole blocks");
_Static_assert(RFX_CONV_LANES % VECTOR_FLOATS == 0, "panels are filled up to whole vectors");

/* What a block reads and writes. */
struct block {
    int64_t at;           /* floats from the rows' starts to the first pixel */
    const float *weights; /* of the block's first channel */
    int64_t width;        /* floats from one input channel's weights to the next: of the panel */
    const float *bias, *residual;
    float *out;
    int64_t channels; /* that are stored */
};

/* Adds `k` products per sum: x floats in a row, weights `width` apart. */
INLINE void add_run(vector sum[PIXELS][VECTORS], const float *x, int64_t x_stride, const float *w,
                    int64_t width, int64_t k, int n, int nv) {
    for (int64_t i = 0; i < k; i++, w += width) {
        vector wv[VECTORS];
        for (int v = 0; v < nv; v++) wv[v] = VECTOR_LOAD(w + v * VECTOR_FLOATS);
        for (int p = 0; p < n; p++) {
            vector xv = VECTOR_ALL(x[p * x_stride + i]);
            for (int v = 0; v < nv; v++) sum[p][v] = VECTOR_FMA(xv, wv[v], sum[p][v]);
        }
    }
}

INLINE void finish_vector(const struct rfx_conv_run *c, vector sum, const float *residual,
                          float *out, int64_t channels) {
    const vector lo = VECTOR_ALL(c->lo), hi = VECTOR_ALL(c->hi);
    if (channels >= VECTOR_FLOATS) {
        if (residual != NULL) sum = sum + VECTOR_LOAD(residual);
        VECTOR_STORE(out, VECTOR_MIN(hi, VECTOR_MAX(lo, sum)));
        return;
    }
    float values[VECTOR_FLOATS] = {0};
    size_t bytes = (size_t)channels * sizeof *out;
    if (residual != NULL) {
        memcpy(values, residual, bytes);
        sum = sum + VECTOR_LOAD(values);
    }
    VECTOR_STORE(values, VECTOR_MIN(hi, VECTOR_MAX(lo, sum)));
    memcpy(out, values, bytes);
}

/* Whole vectors, nothing added: what most blocks are. */
INLINE void store_sums(const struct rfx_conv_run *c, const struct block *b,
                       vector sum[PIXELS][VECTORS], int n, int nv) {
    const vector lo = VECTOR_ALL(c->lo), hi = VECTOR_ALL(c->hi);
    float *out = b->out;
    for (int p = 0; p < n; p++, out += c->out_stride)
        for (int v = 0; v < nv; v++)
            VECTOR_STORE(out + v * VECTOR_FLOATS, VECTOR_MIN(hi, VECTOR_MAX(lo, sum[p][v])));
}

INLINE void finish_sums(const struct rfx_conv_run *c, const struct block *b,
                        vector sum[PIXELS][VECTORS], int n, int nv) {
    for (int p = 0; p < n; p++)
        for (int v = 0; v < nv; v++) {
            int64_t ch = (int64_t)v * VECTOR_FLOATS;
            const float *residual =
                b->residual == NULL ? NULL : b->residual + p * c->residual_stride + ch;
            if (ch < b->channels)
                finish_vector(c, sum[p][v], residual, b->out + p * c->out_stride + ch,
                              b->channels - ch);
        }
}

/* n pixels x nv vectors; n and nv are constants in all calls. */
INLINE void make_block(const struct rfx_conv_run *c, const struct block *b, int n, int nv) {
    vector sum[PIXELS][VECTORS];
    for (int v = 0; v < nv; v++) {
        vector bias = VECTOR_LOAD(b->bias + v * VECTOR_FLOATS);
        for (int p = 0; p < n; p++) sum[p][v] = bias;
    }
    int64_t taps = c->kx1 - c->kx0, x0 = b->at + c->kx0 * c->tap_stride;
    bool one_run = c->tap_stride == c->ic || taps == 1;
    int64_t k = one_run ? taps * c->ic : c->ic;
    for (int64_t ky = 0; ky < c->kh; ky++) {
        if (c->rows[ky] == NULL) continue;
        const float *x = c->rows[ky] + x0;
        const float *w = b->weights + (ky * c->kw + c->kx0) * c->ic * b->width;
        for (int64_t done = 0; done < taps * c->ic; done += k, x += c->tap_stride)
            add_run(sum, x, c->x_stride, w + done * b->width, b->width, k, n, nv);
    }
    if (b->residual == NULL && b->channels >= nv * VECTOR_FLOATS)
        store_sums(c, b, sum, n, nv);
    else
        finish_sums(c, b, sum, n, nv);
}

#define CASE(n)                    \
    case n:                        \
        make_block(c, b, (n), nv); \
        return;

INLINE void make_pixels(const struct rfx_conv_run *c, const struct block *b, int n, int nv) {
    switch (n) {
        CASE(1)
        CASE(2)
        CASE(3)
        CASE(4)
        CASE(5)
        CASE(6)
#if PIXELS > 6
        CASE(7)
        CASE(8)
        CASE(9)
        CASE(10)
        CASE(11)
        CASE(12)
        CASE(13)
        CASE(14)
#endif
        default:
            return;
    }
}

static void pixels_of_full_block(const struct rfx_conv_run *c, const struct block *b, int n) {
    make_pixels(c, b, n, VECTORS);
}

/* Fewer vectors than a block has: the narrow last panel. */
static void pixels_of_vector(const struct rfx_conv_run *c, const struct block *b, int n) {
    make_pixels(c, b, n, 1);
}

/* Pixels in blocks of nearly equal size: `least` in each, and one more in the first `larger`. */
struct cut {
    int64_t blocks, larger;
    int least;
};

/* All pixels of a block's, or (not full) a vector's, channels from `ch` on. */
static void make_channels(const struct rfx_conv_run *c, const struct cut *cut, int64_t ch,
                          bool full) {
    int64_t panel = ch / RFX_CONV_PANEL * RFX_CONV_PANEL;
    struct block b = {
        .width = rfx_conv_panel_width(c->m - panel),
        .bias = c->bias + ch,
        .channels = c->m - ch,
    };
    b.weights = c->weights + panel * c->kh * c->kw * c->ic + ch - panel;
    for (int64_t i = 0, p = 0; i < cut->blocks; i++) {
        int n = cut->least + (i < cut->larger);
        b.at = p * c->x_stride;
        b.out = c->out + p * c->out_stride + ch;
        b.residual = c->residual == NULL ? NULL : c->residual + p * c->residual_stride + ch;
        if (full)
            pixels_of_full_block(c, &b, n);
        else
            pixels_of_vector(c, &b, n);
        p += n;
    }
}

void VARIANT_NAME(conv)(const struct rfx_conv_run *c) {
    int64_t filled = rfx_conv_filled(c->m), blocks = (c->pixels + PIXELS - 1) / PIXELS;
    if (blocks <= 0) return;
    struct cut cut = {blocks, c->pixels % blocks, (int)(c->pixels / blocks)};
    for (int64_t ch = 0; ch < c->m;) {
        bool full = filled - ch >= SIZE_OF_BLOCK;
        make_channels(c, &cut, ch, full);
        ch += full ? SIZE_OF_BLOCK : VECTOR_FLOATS;
    }
}
#endif
