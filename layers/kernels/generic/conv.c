/* Dense convolution over a run of output pixels: PIXELS x VECTORS sums in registers, input values
 * broadcast, no gathering. See struct rfx_conv_args for the order of an element's sum. The order
 * does not depend on how many pixels or channels share registers. */
#include "layers/core/checked.h"
#include "layers/kernels/generic/blocks.h"
#include "layers/kernels/generic/conv_finish.h"
#include "layers/kernels/generic/variant.h"
#include "layers/kernels/generic/vector_math.h"

#ifdef VARIANT_HAS_FMA

#define MOST_PIECES RFX_CONV_LONG /* pieces of a round: enough for a chain of single products */
#define CUTS 8        /* least pieces of a sum; between pieces, later data are prefetched */
#define CUTS_APART 16 /* least pieces if input values are prefetched too */
/* Input channels x kernel rows; such a sum takes as long as an answer of main memory. */
#define LONG_SUM 48
/* Cache lines that stay in one set: a set has 12, and weights pass through it too. */
#define SAME_SET 10
#define INLINE static inline __attribute__((always_inline))
#define SIZE_OF_BLOCK (VECTORS * VECTOR_FLOATS) /* output channels of a block */
#if VECTOR_FLOATS == 16
#define PIXELS 14 /* 28 sums, 2 weights and an input value in 32 registers */
#define VECTORS 2
#elif VECTOR_FLOATS == 8
#define PIXELS 6 /* 12 sums, 2 weights and an input value of 16 registers */
#define VECTORS 2
#define ALONE 12 /* pixels of a block with a single vector of channels: as many sums */
#else
#define PIXELS 6 /* 24 sums, 4 weights and an input value of 32 registers */
#define VECTORS 4
#endif
#ifndef ALONE
#define ALONE PIXELS
#endif
#include "layers/kernels/generic/conv_expect.h"
#include "layers/kernels/generic/conv_values.h"

_Static_assert(RFX_CONV_PANEL % SIZE_OF_BLOCK == 0, "a panel is whole blocks");
_Static_assert(RFX_CONV_LANES % VECTOR_FLOATS == 0, "panels are filled up to whole vectors");

/* The data that a block reads and writes. */
struct block {
    int64_t at;           /* floats from the start of input rows to the first pixel */
    const float *weights; /* weights of the block's first channel */
    int64_t width; /* floats from one input channel's weights to the next: the panel's width */
    const float *bias, *residual;
    float *out;
    int64_t channels; /* channels that are stored */
    bool leads;       /* the next block's input values are prefetched during this block */
    int64_t ahead;    /* floats: distance of prefetched weights from the ones in use */
};

/* Consecutive products of every sum: k contiguous input values, and their weights. */
struct piece {
    const float *x; /* input values of the run's first pixel */
    int64_t first;  /* index of the first product in a panel */
    int64_t k;
    bool ends; /* the last piece of a part of a long sum */
};

/* The pieces of a sum, which are the same for all blocks of a run. A single chain has at most
 * RFX_CONV_LONG pieces. Long sums are computed in rounds of up to MOST_PIECES pieces. */
struct pieces {
    struct piece list[MOST_PIECES];
    int count;
    int ahead;       /* pixels of a block's end to prefetch per piece */
    int64_t longest; /* largest number of products of a piece */
    int64_t made;    /* pieces computed by earlier rounds */
    int64_t skip;    /* pieces of earlier rounds that are still to be skipped */
    bool more;       /* pieces are left for later rounds */
    bool apart;      /* input values are prefetched too */
};

static void add_piece(struct pieces *p, const float *x, int64_t first, int64_t k, bool ends) {
    while (k > 0) {
        int64_t some = k < p->longest ? k : p->longest;
        if (p->skip > 0)
            p->skip--;
        else if (p->count == MOST_PIECES)
            p->more = true;
        else
            p->list[p->count++] = (struct piece){x, first, some, ends && some == k};
        x += some;
        first += some;
        k -= some;
    }
}

/* Lists the pieces of a single chain: all taps. */
static void find_chain(const struct rfx_conv_args *c, struct pieces *p) {
    /* Taps whose values are contiguous. */
    int64_t taps = c->tap_stride == c->ic ? c->kx1 - c->kx0 : 1;
    for (int64_t ky = 0; ky < c->kh; ky++)
        for (int64_t k = c->kx0; k < c->kx1 && c->rows[ky] != NULL; k += taps)
            add_piece(p, c->rows[ky] + k * c->tap_stride, (ky * c->kw + k) * c->ic, taps * c->ic,
                      false);
}

/* Lists the pieces of one part of a long sum: taps [k0, k1) of kernel row ky, input channels [i0,
 * i1). */
static void find_part(const struct rfx_conv_args *c, struct pieces *p, int64_t ky, int64_t k0,
                      int64_t k1, int64_t i0, int64_t i1) {
    int64_t taps = i1 - i0 == c->tap_stride ? k1 - k0 : 1;
    for (int64_t k = k0; k < k1; k += taps)
        add_piece(p, c->rows[ky] + k * c->tap_stride + i0, (ky * c->kw + k) * c->ic + i0,
                  taps * (i1 - i0), k + taps == k1);
}

/* Lists the pieces of all parts of a long sum in this call's taps, except pieces of earlier rounds.
 */
static void find_parts(const struct rfx_conv_args *c, struct pieces *p) {
    const struct rfx_conv_parts parts = rfx_conv_parts(c->ic, c->kh, c->kw);
    const int64_t end = c->kh * c->kw - c->taps_after;
    for (int64_t ky = 0; ky < c->kh; ky++) {
        if (c->rows[ky] == NULL) continue;
        int64_t k0 = rfx_max_i64(c->kx0, c->taps_before - ky * c->kw);
        int64_t k1 = rfx_min_i64(c->kx1, end - ky * c->kw);
        for (int64_t k = k0 / parts.taps * parts.taps; k < k1; k += parts.taps)
            for (int64_t i = 0; i < c->ic; i += parts.channels)
                find_part(c, p, ky, rfx_max_i64(k, k0), rfx_min_i64(k + parts.taps, k1), i,
                          rfx_min_i64(i + parts.channels, c->ic));
    }
}

/* Lists the pieces of a long sum from number `made` on. */
static __attribute__((noinline)) void begin_round(const struct rfx_conv_args *c, struct pieces *p,
                                                  int64_t made) {
    p->made = p->skip = made;
    p->count = 0;
    p->more = false;
    find_parts(c, p);
}

/* Divides a sum into pieces. `split`: by the parts of a long sum. `expect`: data are prefetched
 * between pieces, so pieces are short: about 1 / CUTS of the sum, rounded up to whole cache lines.
 */
static void find_pieces(const struct rfx_conv_args *c, struct pieces *p, bool split, bool expect) {
    p->longest = INT64_MAX;
    p->ahead = 0;
    p->made = p->skip = 0;
    p->count = 0;
    p->more = false;
    p->apart = expect && values_apart(c);
    int64_t cuts = p->apart ? CUTS_APART : CUTS;
    int64_t lines = rfx_ceil_div(c->kh * (c->kx1 - c->kx0) * c->ic, cuts * RFX_LINE_FLOATS);
    if (expect) p->longest = lines * RFX_LINE_FLOATS;
    if (split)
        find_parts(c, p);
    else
        find_chain(c, p);
    if (expect) p->ahead = 2 * PIXELS / (p->count + 1) + 1;
}

/* Adds `k` products to each sum: contiguous x floats; weights `width` floats apart. */
INLINE void add_products(vector sum[ALONE][VECTORS], const float *x, int64_t x_stride,
                         const float *w, int64_t width, int64_t ahead, int64_t k, int n, int nv) {
    struct values values = values_from(x, x_stride * (int64_t)sizeof *x);
    for (const float *end = w + k * width; w < end; w += width) {
        vector wv[VECTORS];
        if (nv == VECTORS) expect_weights(w + ahead);
        UNROLL for (int v = 0; v < nv; v++) wv[v] = VECTOR_LOAD(w + v * VECTOR_FLOATS);
        UNROLL for (int p = 0; p < n; p++) {
            vector xv = VECTOR_ALL(*(const float *)value_of(&values, p));
            UNROLL for (int v = 0; v < nv; v++) sum[p][v] = VECTOR_FMA(xv, wv[v], sum[p][v]);
        }
        next_values(&values, sizeof *x);
    }
}

INLINE void add_residual(const struct rfx_conv_args *c, const struct block *b,
                         vector sum[ALONE][VECTORS], int n, int nv) {
    const float *residual = b->residual;
    UNROLL for (int p = 0; p < n; p++, residual += c->residual_stride)
        UNROLL for (int v = 0; v < nv; v++) sum[p][v] =
            sum[p][v] + VECTOR_LOAD(residual + v * VECTOR_FLOATS);
}

/* Clamps and stores sums of whole vectors, which most blocks have. */
INLINE void store_sums(const struct rfx_conv_args *c, const struct block *b,
                       vector sum[ALONE][VECTORS], int n, int nv) {
    const vector lo = VECTOR_ALL(c->lo), hi = VECTOR_ALL(c->hi);
    float *out = b->out;
    UNROLL for (int p = 0; p < n; p++, out += c->out_stride) UNROLL for (int v = 0; v < nv; v++)
        VECTOR_STORE(out + v * VECTOR_FLOATS, VECTOR_MIN(hi, VECTOR_MAX(lo, sum[p][v])));
}

INLINE void finish_sums(const struct rfx_conv_args *c, const struct block *b,
                        vector sum[ALONE][VECTORS], int n, int nv) {
    UNROLL for (int p = 0; p < n; p++) UNROLL for (int v = 0; v < nv; v++) {
        int64_t ch = (int64_t)v * VECTOR_FLOATS;
        const float *residual =
            b->residual == NULL ? NULL : b->residual + p * c->residual_stride + ch;
        if (ch < b->channels)
            conv_finish(sum[p][v], c->lo, c->hi, residual, b->out + p * c->out_stride + ch,
                        b->channels - ch);
    }
}

enum sums {
    SUMS_SHORT, /* one chain without prefetching: it ends before memory answers */
    SUMS_CHAIN,
    SUMS_PARTS,
};

/* Adds the pieces of a round to `sum`; the sums of finished parts are added to `total`. */
INLINE void add_pieces(const struct rfx_conv_args *c, const struct block *b, const struct pieces *p,
                       vector sum[ALONE][VECTORS], vector total[ALONE][VECTORS], int n, int nv,
                       enum sums sums) {
    struct end end = {.pixels = 0};
    if (sums != SUMS_SHORT) end = expect_end(c, b->out, b->residual, n);
    for (const struct piece *at = p->list; at < p->list + p->count; at++) {
        for (int i = p->ahead; sums != SUMS_SHORT && i > 0 && end.pixels > 0; i--)
            expect_pixel(&end);
        if (sums != SUMS_SHORT && b->leads) expect_next(c, at->x + b->at, at->k, n);
        add_products(sum, at->x + b->at, c->x_stride, b->weights + at->first * b->width, b->width,
                     b->ahead, at->k, n, nv);
        if (sums != SUMS_PARTS || !at->ends) continue;
        UNROLL for (int i = 0; i < n; i++) UNROLL for (int v = 0; v < nv; v++) {
            total[i][v] = total[i][v] + sum[i][v];
            sum[i][v] = VECTOR_ALL(0.0f);
        }
    }
}

INLINE void set_sums(vector sum[ALONE][VECTORS], const float *from, int64_t step, int n, int nv) {
    UNROLL for (int p = 0; p < n; p++, from += step) UNROLL for (int v = 0; v < nv; v++) sum[p][v] =
        VECTOR_LOAD(from + v * VECTOR_FLOATS);
}

/* Stores only the sums, for a call that another call continues. */
INLINE void leave_sums(const struct rfx_conv_args *c, const struct block *b,
                       vector sum[ALONE][VECTORS], int n, int nv) {
    float *out = b->out;
    UNROLL for (int p = 0; p < n; p++, out += c->out_stride) UNROLL for (int v = 0; v < nv; v++)
        VECTOR_STORE(out + v * VECTOR_FLOATS, sum[p][v]);
}

INLINE void end_sums(const struct rfx_conv_args *c, const struct block *b,
                     vector sum[ALONE][VECTORS], int n, int nv) {
    if (b->channels < nv * VECTOR_FLOATS) {
        finish_sums(c, b, sum, n, nv);
        return;
    }
    if (b->residual != NULL) add_residual(c, b, sum, n, nv);
    store_sums(c, b, sum, n, nv);
}

/* Computes n pixels x nv vectors. n, nv and `sums` are constants in all calls. Each calling
 * function uses one kind of sums only; otherwise the compiler would keep sums in memory. */
INLINE void make_block(const struct rfx_conv_args *c, const struct block *b, struct pieces *p,
                       int n, int nv, enum sums sums) {
    vector sum[ALONE][VECTORS], total[ALONE][VECTORS];
    if (sums != SUMS_PARTS) {
        set_sums(sum, b->bias, 0, n, nv);
        add_pieces(c, b, p, sum, NULL, n, nv, sums);
        end_sums(c, b, sum, n, nv);
        return;
    }
    if (c->taps_before > 0)
        set_sums(total, b->out, c->out_stride, n, nv);
    else
        set_sums(total, b->bias, 0, n, nv);
    UNROLL for (int i = 0; i < n; i++) UNROLL for (int v = 0; v < nv; v++) sum[i][v] =
        VECTOR_ALL(0.0f);
    if (p->made > 0) begin_round(c, p, 0);
    add_pieces(c, b, p, sum, total, n, nv, sums);
    while (__builtin_expect(p->more, 0)) {
        begin_round(c, p, p->made + p->count);
        add_pieces(c, b, p, sum, total, n, nv, sums);
    }
    if (c->taps_after > 0)
        leave_sums(c, b, total, n, nv);
    else
        end_sums(c, b, total, n, nv);
}

#define CASE(n, nv)                                                           \
    case n:                                                                   \
        if ((n) <= PIXELS || (nv) == 1) make_block(c, b, p, (n), (nv), sums); \
        return;

INLINE void make_pixels(const struct rfx_conv_args *c, const struct block *b, struct pieces *p,
                        int n, int nv, enum sums sums) {
    switch (n) {
        CASES(ALONE, CASE, nv)
        default:
            return;
    }
}

typedef void pixels_fn(const struct rfx_conv_args *c, const struct block *b, struct pieces *p,
                       int n);

static void full_short(const struct rfx_conv_args *c, const struct block *b, struct pieces *p,
                       int n) {
    make_pixels(c, b, p, n, VECTORS, SUMS_SHORT);
}

static void full_chain(const struct rfx_conv_args *c, const struct block *b, struct pieces *p,
                       int n) {
    make_pixels(c, b, p, n, VECTORS, SUMS_CHAIN);
}

static void full_parts(const struct rfx_conv_args *c, const struct block *b, struct pieces *p,
                       int n) {
    make_pixels(c, b, p, n, VECTORS, SUMS_PARTS);
}

/* One vector instead of VECTORS: the last channels of a narrow panel. */
static void vector_chain(const struct rfx_conv_args *c, const struct block *b, struct pieces *p,
                         int n) {
    make_pixels(c, b, p, n, 1, SUMS_SHORT);
}

static void vector_parts(const struct rfx_conv_args *c, const struct block *b, struct pieces *p,
                         int n) {
    make_pixels(c, b, p, n, 1, SUMS_PARTS);
}

/* Computes channels [from, to) of all pixels, `step` channels at a time: those of a block or of a
 * vector. Pixels are the outer loop, so that their values and outputs are in few cache lines and
 * pages. Weights stream as well from the second-level cache as from the first. */
static void make_channels(const struct rfx_conv_args *c, pixels_fn *make, struct pieces *pieces,
                          const struct cut cut, int64_t from, int64_t to, int64_t step) {
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
            b.ahead = i == 0 ? WEIGHTS_AHEAD : WEIGHTS_SOON;
            b.leads = ch == 0 && i + 1 < cut.blocks && pieces->apart;
            b.out = c->out + p * c->out_stride + ch;
            b.residual = c->residual == NULL ? NULL : c->residual + p * c->residual_stride + ch;
            make(c, &b, pieces, n);
        }
        p += n;
    }
}

/* Returns how many pixels share registers. The number is smaller if all input or all output pixels
 * would be in the same set of the cache. */
static int64_t pixels_at_once(const struct rfx_conv_args *c, int64_t most) {
    bool same_set = c->x_stride % WAY_FLOATS == 0 || c->out_stride % WAY_FLOATS == 0;
    return same_set && most > SAME_SET ? SAME_SET : most;
}

void VARIANT_NAME(conv)(const struct rfx_conv_args *c) {
    bool split = rfx_conv_parts(c->ic, c->kh, c->kw).split;
    bool expect = c->ic * c->kh >= LONG_SUM && (ends_apart(c) || values_apart(c));
    pixels_fn *full = split ? full_parts : expect ? full_chain : full_short;
    int64_t whole = (c->m + VECTOR_FLOATS - 1) / SIZE_OF_BLOCK * SIZE_OF_BLOCK;
    struct pieces p;
    find_pieces(c, &p, split, expect);
    if (whole > 0)
        make_channels(c, full, &p, cut_evenly(c->pixels, pixels_at_once(c, PIXELS)), 0, whole,
                      SIZE_OF_BLOCK);
    if (whole < c->m)
        make_channels(c, split ? vector_parts : vector_chain, &p,
                      cut_evenly(c->pixels, pixels_at_once(c, ALONE)), whole, c->m, VECTOR_FLOATS);
}
#endif
