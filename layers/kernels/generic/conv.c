/* Dense convolution over a run of output pixels: PIXELS x VECTORS sums in registers, input values
 * broadcast, nothing gathered. See struct rfx_conv_run for the order of an element's sum; how many
 * pixels or channels share registers does not touch it. */
#include "layers/kernels/generic/blocks.h"
#include "layers/kernels/generic/conv_finish.h"
#include "layers/kernels/generic/variant.h"
#include "layers/kernels/generic/vector_math.h"

#ifdef VARIANT_HAS_FMA

#define LINE_FLOATS 16  /* of a cache line */
#define LONG_SUM 48     /* input channels x kernel rows: as long as memory takes to answer */
#define WAY_FLOATS 1024 /* addresses so far apart share a set of the first cache */
#define SAME_SET 10     /* lines that stay in one set: it has 12, and weights pass through */
#define INLINE static inline __attribute__((always_inline))
#define SIZE_OF_BLOCK (VECTORS * VECTOR_FLOATS) /* output channels */
#if VECTOR_FLOATS == 16
#define PIXELS 14 /* 28 sums, 2 weights and an input value of 32 registers */
#define VECTORS 2
#elif VECTOR_FLOATS == 8
#define PIXELS 6 /* 12 sums, 2 weights and an input value of 16 registers */
#define VECTORS 2
#define ALONE 12 /* pixels of a single vector of channels: as many sums */
#else
#define PIXELS 6 /* 24 sums, 4 weights and an input value of 32 registers */
#define VECTORS 4
#endif
#ifndef ALONE
#define ALONE PIXELS
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

/* What a block's end reads and writes comes to the nearest cache while its sums are made: pixel
 * after pixel, for all at once are more lines than a core waits for, and the sums wait with them.
 */
struct end {
    const float *out, *residual; /* of the next pixel; residual NULL: none, or what is written */
    int64_t out_stride, residual_stride;
    int pixels; /* still to be asked for */
};

/* Pixels of few channels follow each other, which the processor foresees. */
INLINE bool ends_apart(const struct rfx_conv_run *c) {
    return c->out_stride > 2 * RFX_CONV_PANEL;
}

INLINE struct end expect_end(const struct rfx_conv_run *c, const struct block *b, int n) {
    struct end end = {.out = b->out,
                      .residual = b->residual == b->out ? NULL : b->residual,
                      .out_stride = c->out_stride,
                      .residual_stride = c->residual_stride,
                      .pixels = ends_apart(c) ? n : 0};
    return end;
}

INLINE void expect_pixel(struct end *end) {
    for (int v = 0; v < SIZE_OF_BLOCK; v += LINE_FLOATS) __builtin_prefetch(end->out + v, 1);
    end->out += end->out_stride;
    end->pixels--;
    if (end->residual == NULL) return;
    for (int v = 0; v < SIZE_OF_BLOCK; v += LINE_FLOATS) __builtin_prefetch(end->residual + v);
    end->residual += end->residual_stride;
}

/* Adds `k` products per sum: x floats in a row, weights `width` apart. Half of a sum's time is left
 * for the last lines that are expected. */
INLINE void add_run(vector sum[ALONE][VECTORS], const float *x, int64_t x_stride, const float *w,
                    int64_t width, int64_t k, struct end *end, int n, int nv) {
    const int64_t step = k / (2 * n) + 1;
    for (int64_t i = 0, stop; i < k;) {
        stop = k;
        if (end->pixels > 0) {
            expect_pixel(end);
            stop = k - i < step ? k : i + step;
        }
        for (; i < stop; i++, w += width) {
            vector wv[VECTORS];
            for (int v = 0; v < nv; v++) wv[v] = VECTOR_LOAD(w + v * VECTOR_FLOATS);
            for (int p = 0; p < n; p++) {
                vector xv = VECTOR_ALL(x[p * x_stride + i]);
                for (int v = 0; v < nv; v++) sum[p][v] = VECTOR_FMA(xv, wv[v], sum[p][v]);
            }
        }
    }
}

INLINE void add_residual(const struct rfx_conv_run *c, const struct block *b,
                         vector sum[ALONE][VECTORS], int n, int nv) {
    const float *residual = b->residual;
    for (int p = 0; p < n; p++, residual += c->residual_stride)
        for (int v = 0; v < nv; v++)
            sum[p][v] = sum[p][v] + VECTOR_LOAD(residual + v * VECTOR_FLOATS);
}

/* Whole vectors: what most blocks are. */
INLINE void store_sums(const struct rfx_conv_run *c, const struct block *b,
                       vector sum[ALONE][VECTORS], int n, int nv) {
    const vector lo = VECTOR_ALL(c->lo), hi = VECTOR_ALL(c->hi);
    float *out = b->out;
    for (int p = 0; p < n; p++, out += c->out_stride)
        for (int v = 0; v < nv; v++)
            VECTOR_STORE(out + v * VECTOR_FLOATS, VECTOR_MIN(hi, VECTOR_MAX(lo, sum[p][v])));
}

INLINE void finish_sums(const struct rfx_conv_run *c, const struct block *b,
                        vector sum[ALONE][VECTORS], int n, int nv) {
    for (int p = 0; p < n; p++)
        for (int v = 0; v < nv; v++) {
            int64_t ch = (int64_t)v * VECTOR_FLOATS;
            const float *residual =
                b->residual == NULL ? NULL : b->residual + p * c->residual_stride + ch;
            if (ch < b->channels)
                conv_finish(sum[p][v], c->lo, c->hi, residual, b->out + p * c->out_stride + ch,
                            b->channels - ch);
        }
}

/* Adds taps [k0, k1) of kernel row ky, input channels [i0, i1). */
INLINE void add_taps(const struct rfx_conv_run *c, const struct block *b,
                     vector sum[ALONE][VECTORS], int64_t ky, int64_t k0, int64_t k1, int64_t i0,
                     int64_t i1, struct end *end, int n, int nv) {
    const float *x = c->rows[ky] + b->at + k0 * c->tap_stride + i0;
    const float *w = b->weights + ((ky * c->kw + k0) * c->ic + i0) * b->width;
    bool one_run = i1 - i0 == c->tap_stride;
    int64_t k = one_run ? (k1 - k0) * c->ic : i1 - i0;
    for (int64_t t = one_run ? k1 - 1 : k0; t < k1; t++) {
        add_run(sum, x, c->x_stride, w, b->width, k, end, n, nv);
        x += c->tap_stride;
        w += c->ic * b->width;
    }
}

/* As add_taps, for a part of a long sum: a chain of its own, which is added. */
INLINE void add_part(const struct rfx_conv_run *c, const struct block *b,
                     vector sum[ALONE][VECTORS], int64_t ky, int64_t k0, int64_t k1, int64_t i0,
                     int64_t i1, struct end *end, int n, int nv) {
    vector total[ALONE][VECTORS];
    for (int p = 0; p < n; p++)
        for (int v = 0; v < nv; v++) {
            total[p][v] = sum[p][v];
            sum[p][v] = VECTOR_ALL(0.0f);
        }
    add_taps(c, b, sum, ky, k0, k1, i0, i1, end, n, nv);
    for (int p = 0; p < n; p++)
        for (int v = 0; v < nv; v++) sum[p][v] = total[p][v] + sum[p][v];
}

/* All taps of one chain. */
INLINE void add_all(const struct rfx_conv_run *c, const struct block *b, vector sum[ALONE][VECTORS],
                    struct end *end, int n, int nv) {
    int64_t taps = c->kx1 - c->kx0, x0 = b->at + c->kx0 * c->tap_stride;
    bool one_run = c->tap_stride == c->ic || taps == 1;
    int64_t k = one_run ? taps * c->ic : c->ic;
    for (int64_t ky = 0; ky < c->kh; ky++) {
        if (c->rows[ky] == NULL) continue;
        const float *x = c->rows[ky] + x0;
        const float *w = b->weights + (ky * c->kw + c->kx0) * c->ic * b->width;
        for (int64_t done = 0; done < taps * c->ic; done += k, x += c->tap_stride)
            add_run(sum, x, c->x_stride, w + done * b->width, b->width, k, end, n, nv);
    }
}

/* All parts of a long sum. */
INLINE void add_parts(const struct rfx_conv_run *c, const struct block *b,
                      vector sum[ALONE][VECTORS], struct end *end, int n, int nv) {
    const struct rfx_conv_parts parts = rfx_conv_parts(c->ic, c->kh, c->kw);
    for (int64_t ky = 0; ky < c->kh; ky++) {
        if (c->rows[ky] == NULL) continue;
        for (int64_t k = c->kx0 / parts.taps * parts.taps; k < c->kx1; k += parts.taps)
            for (int64_t i = 0; i < c->ic; i += parts.channels)
                add_part(c, b, sum, ky, k > c->kx0 ? k : c->kx0,
                         k + parts.taps < c->kx1 ? k + parts.taps : c->kx1, i,
                         i + parts.channels < c->ic ? i + parts.channels : c->ic, end, n, nv);
    }
}

enum sums {
    SUMS_SHORT, /* one chain; nothing is expected: it is over before memory answers */
    SUMS_CHAIN,
    SUMS_PARTS,
};

/* n pixels x nv vectors; n, nv and sums are constants in all calls, and a function has calls of
 * one kind only, lest the compiler keeps sums in memory. */
INLINE void make_block(const struct rfx_conv_run *c, const struct block *b, int n, int nv,
                       enum sums sums) {
    vector sum[ALONE][VECTORS];
    struct end end = {.pixels = 0};
    if (sums != SUMS_SHORT) end = expect_end(c, b, n);
    for (int v = 0; v < nv; v++) {
        vector bias = VECTOR_LOAD(b->bias + v * VECTOR_FLOATS);
        for (int p = 0; p < n; p++) sum[p][v] = bias;
    }
    if (sums == SUMS_PARTS)
        add_parts(c, b, sum, &end, n, nv);
    else
        add_all(c, b, sum, &end, n, nv);
    if (b->channels < nv * VECTOR_FLOATS) {
        finish_sums(c, b, sum, n, nv);
        return;
    }
    if (b->residual != NULL) add_residual(c, b, sum, n, nv);
    store_sums(c, b, sum, n, nv);
}

#define CASE(n, nv)                                                        \
    case n:                                                                \
        if ((n) <= PIXELS || (nv) == 1) make_block(c, b, (n), (nv), sums); \
        return;

INLINE void make_pixels(const struct rfx_conv_run *c, const struct block *b, int n, int nv,
                        enum sums sums) {
    switch (n) {
        CASES(ALONE, CASE, nv)
        default:
            return;
    }
}

typedef void pixels_fn(const struct rfx_conv_run *c, const struct block *b, int n);

static void full_short(const struct rfx_conv_run *c, const struct block *b, int n) {
    make_pixels(c, b, n, VECTORS, SUMS_SHORT);
}

static void full_chain(const struct rfx_conv_run *c, const struct block *b, int n) {
    make_pixels(c, b, n, VECTORS, SUMS_CHAIN);
}

static void full_parts(const struct rfx_conv_run *c, const struct block *b, int n) {
    make_pixels(c, b, n, VECTORS, SUMS_PARTS);
}

/* Fewer vectors than a block has: the last channels of a narrow panel. */
static void vector_chain(const struct rfx_conv_run *c, const struct block *b, int n) {
    make_pixels(c, b, n, 1, SUMS_SHORT);
}

static void vector_parts(const struct rfx_conv_run *c, const struct block *b, int n) {
    make_pixels(c, b, n, 1, SUMS_PARTS);
}

/* Channels [from, to) of all pixels, `step` at a time: a block's or a vector's. Pixels are the
 * outer loop: their values and outputs are in few lines and pages, and weights stream as well from
 * the second cache as from the first. */
static void make_channels(const struct rfx_conv_run *c, pixels_fn *make, const struct cut cut,
                          int64_t from, int64_t to, int64_t step) {
    const int64_t k = c->kh * c->kw * c->ic;
    int64_t p = 0;
    for (int64_t i = 0; i < cut.blocks; i++) {
        int n = cut_size(&cut, i);
        struct block b = {.at = p * c->x_stride};
        for (int64_t ch = from; ch < to; ch += step) {
            int64_t in_panel = ch % RFX_CONV_PANEL;
            b.width = rfx_conv_panel_width(c->m - ch + in_panel);
            b.weights = c->weights + (ch - in_panel) * k + in_panel;
            b.bias = c->bias + ch;
            b.channels = c->m - ch;
            b.out = c->out + p * c->out_stride + ch;
            b.residual = c->residual == NULL ? NULL : c->residual + p * c->residual_stride + ch;
            make(c, &b, n);
        }
        p += n;
    }
}

/* How many pixels share registers: fewer where all of them would be in one set of the cache, those
 * read or those written. */
static int64_t pixels_at_once(const struct rfx_conv_run *c, int64_t most) {
    bool same_set = c->x_stride % WAY_FLOATS == 0 || c->out_stride % WAY_FLOATS == 0;
    return same_set && most > SAME_SET ? SAME_SET : most;
}

void VARIANT_NAME(conv)(const struct rfx_conv_run *c) {
    bool split = rfx_conv_parts(c->ic, c->kh, c->kw).split;
    bool expect = c->ic * c->kh >= LONG_SUM && ends_apart(c);
    pixels_fn *full = split ? full_parts : expect ? full_chain : full_short;
    int64_t whole = (c->m + VECTOR_FLOATS - 1) / SIZE_OF_BLOCK * SIZE_OF_BLOCK;
    if (whole > 0)
        make_channels(c, full, cut_evenly(c->pixels, pixels_at_once(c, PIXELS)), 0, whole,
                      SIZE_OF_BLOCK);
    if (whole < c->m)
        make_channels(c, split ? vector_parts : vector_chain,
                      cut_evenly(c->pixels, pixels_at_once(c, ALONE)), whole, c->m, VECTOR_FLOATS);
}
#endif
