/* Dense integer convolution: the sums of PIXELS x BLOCKS x RFX_INT_LANES elements stay in
 * registers. Each step multiplies some input channels of every pixel by the weights of the output
 * channels: two channels of int16, or four of uint8 if there are dot products of bytes (VNNI). Sums
 * are exact, so their order does not matter, and every instruction set gives the same bytes. */
#include "layers/kernels/generic/blocks.h"
#include "layers/kernels/generic/int_vectors.h"
#include "layers/kernels/generic/variant.h"

#ifdef INT_VECTORS
/* What limits a step of all pixels (full blocks, values in the nearest cache):
 * - avx512vnni (struct turns): 14 dot products, which add by themselves; 7 broadcasts and 2 weights
 *   are loaded. A processor does 1 or 2 dot products and 2 loads per cycle: the dot products limit.
 *   So do they with what ends the sums, if there are few steps: each vector is multiplied once, and
 *   two together have a saturating addition, in the units of the dot products.
 * - avxvnni: 12 dot products, 6 broadcasts, 2 weights. It does 2 dot products and 2 or 3 loads per
 *   cycle: the dot products limit.
 * - avx512: 14 products of pairs, 14 additions; 7 broadcasts, 2 weights.
 * - avx2: 12 products of pairs, 12 additions; 6 broadcasts, 2 weights. Products and additions share
 *   3 or 4 units: they limit. Widening weights takes those units too (wide_blocks). */
#if VECTOR_FLOATS == 16
#define PIXELS 14 /* 28 sums, 2 weights, input values and products in 32 registers; see TURN */
#define BLOCKS 2  /* blocks of channels that are computed together */
#elif VECTOR_FLOATS == 8
#define PIXELS 6 /* 12 sums, 2 weights, input values and products in 16 registers */
#define BLOCKS 1
#elif defined(__aarch64__)
#define PIXELS 6 /* 24 sums, 4 weights and input pairs in 32 registers */
#define BLOCKS 1
#else
#define PIXELS 2 /* 8 sums, 4 weights, 2 input pairs and a product in 16 registers */
#define BLOCKS 1
#endif

#include "layers/kernels/generic/conv_values.h"

#define WAY_BYTES 4096 /* distance of addresses that are in the same set of the cache */
/* Cache lines that stay in one set: a set has 12, and weights pass through it too. */
#define SAME_SET 10
#define QUAD (4 * RFX_INT_LANES) /* weights of a block for four input channels */
#define READ 4                   /* bytes of input values that a step reads from a pixel */

#ifdef VARIANT_INT_BYTES
typedef uint8_t input;
#define STEP QUAD /* weights of a block for a step */

#else
typedef int16_t input;
#define STEP (QUAD / 2)
#endif
#define WIDE_BYTES 32768 /* of the weights that are widened for a run, at most */

/* Loads the weights of a step; wide: int16, which factors_of_block has made. */
INLINE void weights_of_step(const int8_t *w, ints weights[IN_BLOCK], bool wide) {
#ifndef VARIANT_INT_BYTES
    if (!wide) factors_of_block(w, weights);
    if (!wide) return;
#endif
    (void)wide;
    UNROLL for (int v = 0; v < IN_BLOCK; v++) weights[v] = INTS_LOAD(w + 4 * VECTOR_FLOATS * v);
}

/* Adds the products of a step to the sums of n pixels and nb blocks, and goes on to the next step's
 * values. Weights of the second block are `filter` bytes after those of the first. */
INLINE void add_products(ints sum[][BLOCKS][IN_BLOCK], struct values *values, const int8_t *w,
                         int64_t filter, int n, int nb, bool wide) {
    ints weights[BLOCKS][IN_BLOCK];
    UNROLL for (int b = 0; b < nb; b++) weights_of_step(w + b * filter, weights[b], wide);
    UNROLL for (int p = 0; p < n; p++) {
        ints few = pair_at(value_of(values, p));
        UNROLL for (int b = 0; b < nb; b++) UNROLL for (int v = 0; v < IN_BLOCK; v++) sum[p][b][v] =
            add_step(sum[p][b][v], few, weights[b], v);
    }
    next_values(values, READ);
}

#if VECTOR_FLOATS == 16
_Static_assert(BLOCKS <= 2 && IN_BLOCK == 1, "a vector of elements has 1 or 2 blocks of a pixel");

/* Stores `nb` blocks of RFX_INT_LANES elements, from block `from` of `bytes` on, those that are
 * `there` if not all of them are. */
INLINE void store_part(__m512i bytes, int from, int nb, bool full, __mmask32 there, uint8_t *out) {
    __m256i part = from < 2 ? _mm512_castsi512_si256(bytes) : _mm512_extracti64x4_epi64(bytes, 1);
    if (from % 2 == 1) part = _mm256_castsi128_si256(_mm256_extracti128_si256(part, 1));
    if (!full)
        _mm256_mask_storeu_epi8(out, there, part);
    else if (nb == 2)
        _mm256_storeu_si256((__m256i *)(void *)out, part);
    else
        _mm_storeu_si128((__m128i *)(void *)out, _mm256_castsi256_si128(part));
}

/* Where elements of a block are stored: in pixel `out` and those after it. */
struct place {
    struct ends ends;
    uint8_t *out;
    int64_t stride;
    bool full;       /* all channels of the block are there */
    __mmask32 there; /* otherwise those that are */
};

INLINE struct place place_of(const struct rfx_int_conv_args *a, int64_t p0, int64_t c, int nb) {
    const int64_t left = a->m - c;
    const bool full = left >= nb * RFX_INT_LANES;
    return (struct place){ends_of(&a->to), a->out + p0 * a->out_stride + c, a->out_stride, full,
                          full ? 0 : (__mmask32)((1U << left) - 1)};
}

/* Scales, rounds and stores four vectors of the sums of n pixels, from pixel p on. */
INLINE void store_four(const struct place *to, const vector scales[BLOCKS],
                       ints sum[][BLOCKS][IN_BLOCK], int p, int n, int nb) {
    vector scaled[4] = {0};
    const int pixels = nb == 2 ? 2 : 4; /* without divisions, which sanitizers would check */
    UNROLL for (int i = 0; i < 4; i++) {
        const int pixel = p + (nb == 2 ? i / 2 : i), block = nb == 2 ? i % 2 : 0;
        if (pixel >= n) continue;
        scaled[i] = floats_of(sum[pixel][block][0]) * scales[block];
    }
    const __m512i bytes = elements_of_four(&to->ends, scaled);
    UNROLL for (int i = 0; i < pixels; i++) {
        if (p + i >= n) continue;
        store_part(bytes, i * nb, nb, to->full, to->there, to->out + (p + i) * to->stride);
    }
}
#elif VECTOR_FLOATS == 8
/* Scales, rounds and stores the sums of n pixels and a block, two pixels at a time. A block that is
 * not full is stored beside `out` first. */
INLINE void store_block(const struct rfx_int_conv_args *a, const struct target to[BLOCKS],
                        ints sum[PIXELS][BLOCKS][IN_BLOCK], int64_t p0, int64_t c, int n, int nb) {
    uint8_t made[PIXELS * RFX_INT_LANES], *out = a->out + p0 * a->out_stride + c;
    const struct ends ends = ends_of(&a->to);
    const bool full = a->m - c >= RFX_INT_LANES;
    const int64_t step = full ? a->out_stride : RFX_INT_LANES;
    uint8_t *at = full ? out : made;
    (void)nb;
    UNROLL for (int p = 0; p < n; p += 2, at += 2 * step) {
        const bool two = p + 1 < n;
        const __m256i bytes = elements_of_two(&ends, to, sum[p][0], sum[two ? p + 1 : p][0]);
        _mm_storeu_si128((__m128i *)(void *)at, _mm256_castsi256_si128(bytes));
        if (two)
            _mm_storeu_si128((__m128i *)(void *)(at + step), _mm256_extracti128_si256(bytes, 1));
    }
    if (!full) copy_elements(made, step, n, a->m - c, out, a->out_stride);
}
#else
/* Scales, rounds and stores the sums of n pixels and nb blocks. Blocks that are not full are stored
 * beside `out` first. */
INLINE void store_block(const struct rfx_int_conv_args *a, const struct target to[BLOCKS],
                        ints sum[PIXELS][BLOCKS][IN_BLOCK], int64_t p0, int64_t c, int n, int nb) {
    uint8_t made[PIXELS * BLOCKS * RFX_INT_LANES], *out = a->out + p0 * a->out_stride + c;
    const bool full = a->m - c >= nb * RFX_INT_LANES;
    const int64_t step = full ? a->out_stride : BLOCKS * RFX_INT_LANES;
    uint8_t *at = full ? out : made;
    UNROLL for (int p = 0; p < n; p++, at += step) UNROLL for (int b = 0; b < nb; b++) {
        ints whole[IN_BLOCK];
        round_sums(&to[b], sum[p][b], whole);
        store_elements(&to[b], whole, false, at + b * RFX_INT_LANES);
    }
    if (!full) copy_elements(made, step, n, a->m - c, out, a->out_stride);
}
#endif

/* Ends n pixels of nb blocks. With vectors of 16 sums, turns are faster wherever sums need neither
 * be kept nor limited. */
INLINE void end_block(const struct rfx_int_conv_args *a, const struct target to[BLOCKS],
                      ints sum[PIXELS][BLOCKS][IN_BLOCK], int64_t p0, int64_t c, int n, int nb) {
    int32_t kept[PIXELS][BLOCKS][RFX_INT_LANES];
    (void)to;
#if VECTOR_FLOATS == 8
    if (a->sums == NULL && a->to.small_scales) {
        store_block(a, to, sum, p0, c, n, nb);
        return;
    }
#elif VECTOR_FLOATS == 4
    if (a->sums == NULL) {
        store_block(a, to, sum, p0, c, n, nb);
        return;
    }
#endif
    UNROLL for (int p = 0; p < n; p++) UNROLL for (int b = 0; b < nb; b++)
        keep_sums(sum[p][b], kept[p][b]);
    for (int p = 0; p < n; p++)
        for (int b = 0; b < nb; b++) finish_sums(a, p0 + p, c + b * RFX_INT_LANES, kept[p][b]);
}

/* Computes `count` times n pixels from pixel p0 on, of nb blocks from channel c on, whose weights
 * are at `weights`. n, nb and wide are constants in all calls. */
INLINE void make_blocks(const struct rfx_int_conv_args *run, const int8_t *weights, int64_t p0,
                        int64_t c, int64_t count, int n, int nb, bool wide) {
    const struct rfx_int_conv_args own = *run, *a = &own; /* stores cannot change it */
    const int64_t step = wide ? 2 * STEP : STEP;
    const int64_t tap = a->quads * (QUAD / STEP) * step, filter = a->kh * a->kw * tap;
    /* Taps of a kernel row whose values are contiguous. */
    const int64_t taps = a->tap_stride == 4 * a->quads ? a->kw : 1;
    struct target to[BLOCKS];
    UNROLL for (int b = 0; b < nb; b++) to[b] = target_of(&a->to, c + b * RFX_INT_LANES, false);
    for (; count > 0; count--, p0 += n) {
        ints sum[PIXELS][BLOCKS][IN_BLOCK];
        const int8_t *w = weights;
        UNROLL for (int p = 0; p < n; p++) UNROLL for (int b = 0; b < nb; b++)
            UNROLL for (int v = 0; v < IN_BLOCK; v++) sum[p][b][v] = to[b].bias[v];
        for (int64_t ky = 0; ky < a->kh; ky++, w += a->kw * tap) {
            if (a->rows[ky] == NULL) continue;
            const input *x = (const input *)a->rows[ky] + p0 * a->x_stride;
            for (int64_t kx = 0; kx < a->kw; kx += taps) {
                struct values values =
                    values_from(x + kx * a->tap_stride, a->x_stride * (int64_t)sizeof *x);
                const int8_t *at = w + kx * tap, *end = at + taps * tap;
                for (; at < end; at += step) add_products(sum, &values, at, filter, n, nb, wide);
            }
        }
        end_block(a, to, sum, p0, c, n, nb);
    }
}

#define CASE(n, nb)                                        \
    case n:                                                \
        make_blocks(a, w, p0, c, count, (n), (nb), false); \
        return;

static void one_block(const struct rfx_int_conv_args *a, const int8_t *w, int64_t p0, int64_t c,
                      int64_t count, int n) {
    switch (n) {
        CASES(PIXELS, CASE, 1)
        default:
            return;
    }
}

#if BLOCKS > 1
static void all_blocks(const struct rfx_int_conv_args *a, const int8_t *w, int64_t p0, int64_t c,
                       int64_t count, int n) {
    switch (n) {
        CASES(PIXELS, CASE, BLOCKS)
        default:
            return;
    }
}
#else
#define all_blocks one_block
#endif

#ifdef VARIANT_INT_BYTES
static bool wide_blocks(const struct rfx_int_conv_args *a, const int8_t *w, int64_t c,
                        const struct cut *cut) {
    (void)a, (void)w, (void)c, (void)cut;
    return false;
}
#else
#define WIDE_CASE(n, nb)                                  \
    case n:                                               \
        make_blocks(a, w, p0, c, count, (n), (nb), true); \
        return;

static void wide_block(const struct rfx_int_conv_args *a, const int8_t *w, int64_t p0, int64_t c,
                       int64_t count, int n) {
    switch (n) {
        CASES(PIXELS, WIDE_CASE, BLOCKS)
        default:
            return;
    }
}

/* Computes all pixels of the blocks from channel c on with weights that are widened once, not for
 * every pixel. Returns false if these are too many, or the pixels too few. */
static bool wide_blocks(const struct rfx_int_conv_args *a, const int8_t *w, int64_t c,
                        const struct cut *cut) {
    ints wide[WIDE_BYTES / sizeof(ints)], *to = wide;
    const int64_t bytes = BLOCKS * a->kh * a->kw * a->quads * QUAD;
    if (bytes > WIDE_BYTES / 2 || cut->blocks < 3) return false;
    for (const int8_t *end = w + bytes; w < end; w += STEP, to += IN_BLOCK) factors_of_block(w, to);
    const int8_t *made = (const int8_t *)wide;
    wide_block(a, made, 0, c, cut->larger, cut->least + 1);
    wide_block(a, made, cut_smaller(cut), c, cut->blocks - cut->larger, cut->least);
    return true;
}
#endif

#if VECTOR_FLOATS == 16
/* While the products of some pixels are added, the sums of the turn before become elements:
 * products take other units of a processor than most of that does. Turns go from block to block of
 * channels, as far as their weights stay in the nearest cache, then on to the next pixels. */
#define TURN 7           /* pixels: 14 sums, 2 weights, an input value, and what makes elements */
#define TURN_STEPS 2     /* steps after each of which up to eight vectors become elements */
#define TURN_BYTES 16384 /* of the weights of neighbouring turns, unless one has more */
#define LANES (BLOCKS * RFX_INT_LANES)
_Static_assert(TURN *BLOCKS <= 8 * TURN_STEPS, "all sums are stored");

/* What the turns of a run share. */
struct turns {
    const struct rfx_int_conv_args *a;
    int64_t filter;     /* bytes of a block's weights */
    int64_t taps, step; /* neighbouring taps whose values are contiguous, bytes of their weights */
    int64_t p, c;       /* of this turn: its first pixel and channel */
    struct place to;    /* of the turn before */
    vector scales[BLOCKS];
};

/* Returns the blocks of which `lanes` channels are computed. */
INLINE int blocks_of(int lanes) {
    return lanes > RFX_INT_LANES ? 2 : 1;
}

/* As add_products, for `lanes` channels: if they are half a block more than whole ones, the last
 * vector is half as long. */
INLINE void add_lanes(ints sum[TURN][BLOCKS][IN_BLOCK], struct values *values, const int8_t *w,
                      int64_t filter, int n, int lanes) {
    const int nb = blocks_of(lanes);
    ints weights[BLOCKS][IN_BLOCK];
    UNROLL for (int b = 0; b < nb; b++) weights_of_step(w + b * filter, weights[b], false);
    UNROLL for (int p = 0; p < n; p++) {
        ints few = pair_at(value_of(values, p));
        UNROLL for (int b = 0; b < nb; b++) sum[p][b][0] =
            lanes < (b + 1) * RFX_INT_LANES ? add_half_step(sum[p][b][0], few, weights[b][0])
                                            : add_step(sum[p][b][0], few, weights[b], 0);
    }
    next_values(values, READ);
}

/* Stores the elements of the vectors of `sum` that belong to step i of TURN_STEPS. */
INLINE void store_turn(const struct turns *t, ints sum[TURN][BLOCKS][IN_BLOCK], int i, int n,
                       int nb) {
    UNROLL for (int p = 0; p < n; p += 4 / nb) {
        if (p * nb / 8 == i) store_four(&t->to, t->scales, sum, p, n, nb);
    }
}

/* Returns the values of tap (ky, kx) of the turn's pixels. */
INLINE struct values values_of_tap(const struct turns *t, int64_t ky, int64_t kx) {
    const struct rfx_int_conv_args *a = t->a;
    const input *x = (const input *)a->rows[ky] + t->p * a->x_stride + kx * a->tap_stride;
    return values_from(x, a->x_stride * (int64_t)sizeof *x);
}

/* Adds the products of n pixels to `sum`, and stores the elements of `before` meanwhile. */
INLINE void make_turn(const struct turns *t, ints before[TURN][BLOCKS][IN_BLOCK],
                      ints sum[TURN][BLOCKS][IN_BLOCK], int n, int lanes, bool stores) {
    const struct rfx_int_conv_args *a = t->a;
    const int nb = blocks_of(lanes);
    const int8_t *w = (const int8_t *)a->weights + t->c / RFX_INT_LANES * t->filter;
    const int8_t *end = w + t->step;
    UNROLL for (int b = 0; b < nb; b++) {
        const ints bias = INTS_LOAD(a->to.bias + t->c + b * RFX_INT_LANES);
        UNROLL for (int p = 0; p < n; p++) sum[p][b][0] = bias;
    }
    struct values values = values_of_tap(t, 0, 0);
    UNROLL for (int i = 0; i < TURN_STEPS; i++) {
        if (i == 0 || w < end) {
            add_lanes(sum, &values, w, t->filter, n, lanes);
            w += STEP;
        }
        if (stores) store_turn(t, before, i, n, nb);
    }
    for (; w < end; w += STEP) add_lanes(sum, &values, w, t->filter, n, lanes);
    for (int64_t ky = 0, kx = t->taps;; kx += t->taps) {
        if (kx == a->kw) {
            kx = 0;
            if (++ky == a->kh) break;
        }
        values = values_of_tap(t, ky, kx);
        for (end = w + t->step; w < end; w += STEP) add_lanes(sum, &values, w, t->filter, n, lanes);
    }
}

/* Makes the turn that was computed the one before. */
INLINE void keep_turn(struct turns *t, ints before[TURN][BLOCKS][IN_BLOCK],
                      ints sum[TURN][BLOCKS][IN_BLOCK], int n, int nb) {
    t->to.out = t->a->out + t->p * t->a->out_stride + t->c;
    UNROLL for (int b = 0; b < nb; b++) {
        t->scales[b] = (vector)INTS_LOAD(t->a->to.scales + t->c + b * RFX_INT_LANES);
        UNROLL for (int p = 0; p < n; p++) before[p][b][0] = sum[p][b][0];
    }
}

/* Computes `count` times n pixels from pixel p0 on, of channels [c, end), `lanes` at a time. */
INLINE void make_turns(const struct rfx_int_conv_args *a, int64_t p0, int64_t c, int64_t end,
                       int64_t count, int n, int lanes) {
    const int64_t taps = a->tap_stride == 4 * a->quads ? a->kw : 1, tap = a->quads * QUAD;
    const int nb = blocks_of(lanes);
    ints sum[TURN][BLOCKS][IN_BLOCK], before[TURN][BLOCKS][IN_BLOCK];
    struct turns t = {.a = a,
                      .filter = a->kh * a->kw * tap,
                      .taps = taps,
                      .step = taps * tap,
                      .p = p0,
                      .c = c,
                      .to = place_of(a, p0, c, nb)};
    make_turn(&t, before, sum, n, lanes, false);
    for (;;) {
        keep_turn(&t, before, sum, n, nb);
        t.c += lanes;
        if (t.c >= end) {
            t.c = c;
            t.p += n;
            if (--count == 0) break;
        }
        make_turn(&t, before, sum, n, lanes, true);
    }
    UNROLL for (int i = 0; i < TURN_STEPS; i++) store_turn(&t, before, i, n, nb);
}

#define TURN_CASE(n, lanes)                             \
    case n:                                             \
        make_turns(a, p0, c, end, count, (n), (lanes)); \
        return;
#define TURNS_OF(lanes)                                                                    \
    static void turns_of_##lanes(const struct rfx_int_conv_args *a, int64_t p0, int64_t c, \
                                 int64_t end, int64_t count, int n) {                      \
        switch (count > 0 ? n : 0) {                                                       \
            CASES(TURN, TURN_CASE, lanes)                                                  \
            default:                                                                       \
                return;                                                                    \
        }                                                                                  \
    }
TURNS_OF(8)
TURNS_OF(16)
TURNS_OF(24)
TURNS_OF(32)

typedef void turns_of(const struct rfx_int_conv_args *a, int64_t p0, int64_t c, int64_t end,
                      int64_t count, int n);

/* Computes all channels by turns. Returns false if it cannot. */
static bool all_turns(const struct rfx_int_conv_args *run) {
    static turns_of *const last[] = {turns_of_8, turns_of_16, turns_of_24, turns_of_32};
    const struct rfx_int_conv_args own = *run, *a = &own;
    const struct cut cut = cut_evenly(a->pixels, TURN);
    const int64_t bytes = BLOCKS * a->kh * a->kw * a->quads * QUAD;
    const int64_t whole = a->m / LANES * LANES;
    const int64_t most = bytes < TURN_BYTES ? TURN_BYTES / bytes * LANES : LANES;
    if (a->sums != NULL || !a->to.small_scales || !has_all_rows(a)) return false;
    for (int64_t c = 0; c < a->m;) {
        const int64_t end = c + most < whole ? c + most : c < whole ? whole : a->m;
        turns_of *const turns = c < whole ? turns_of_32 : last[(end - c - 1) / 8];
        turns(a, 0, c, end, cut.larger, cut.least + 1);
        turns(a, cut_smaller(&cut), c, end, cut.blocks - cut.larger, cut.least);
        c = end;
    }
    return true;
}
#endif

/* Returns how many pixels share registers: fewer if all of them would be in the same set of the
 * cache. */
static int64_t pixels_at_once(const struct rfx_int_conv_args *a) {
    const bool same_set = a->x_stride * (int64_t)sizeof(input) % WAY_BYTES == 0;
    return same_set && PIXELS > SAME_SET ? SAME_SET : PIXELS;
}

/* The weights of a block stay in the cache for all pixels of the run. */
void SET_NAME(int_conv)(const struct rfx_int_conv_args *a) {
    const struct cut cut = cut_evenly(a->pixels, pixels_at_once(a));
#if VECTOR_FLOATS == 16
    if (all_turns(a)) return;
#endif
    for (int64_t c = 0; c < a->m;) {
        const int8_t *w = (const int8_t *)a->weights + c * a->kh * a->kw * a->quads * 4;
        bool all = a->m - c > (BLOCKS - 1) * RFX_INT_LANES;
        const bool made = all && wide_blocks(a, w, c, &cut);
        for (int part = made ? 2 : 0; part < 2; part++) {
            const int64_t p0 = part == 0 ? 0 : cut_smaller(&cut);
            const int64_t count = part == 0 ? cut.larger : cut.blocks - cut.larger;
            const int n = cut.least + (part == 0);
            if (all)
                all_blocks(a, w, p0, c, count, n);
            else
                one_block(a, w, p0, c, count, n);
        }
        c += all ? BLOCKS * RFX_INT_LANES : RFX_INT_LANES;
    }
}
#else
void SET_NAME(int_conv)(const struct rfx_int_conv_args *a) {
    const int64_t tap = a->quads * RFX_INT_LANES * 4, filter = a->kh * a->kw * tap;
    for (int64_t c = 0; c < a->m; c += RFX_INT_LANES)
        for (int64_t p = 0; p < a->pixels; p++) {
            int32_t sums[RFX_INT_LANES];
            memcpy(sums, a->to.bias + c, sizeof sums);
            for (int64_t ky = 0; ky < a->kh; ky++) {
                if (a->rows[ky] == NULL) continue;
                for (int64_t kx = 0; kx < a->kw; kx++) {
                    const int16_t *x =
                        (const int16_t *)a->rows[ky] + p * a->x_stride + kx * a->tap_stride;
                    const int8_t *w = (const int8_t *)a->weights + c / RFX_INT_LANES * filter +
                                      (ky * a->kw + kx) * tap;
                    for (int64_t k = 0; k < 2 * a->quads; k++, w += 2 * RFX_INT_LANES)
                        for (int i = 0; i < RFX_INT_LANES; i++)
                            sums[i] += x[2 * k] * w[2 * i] + x[2 * k + 1] * w[2 * i + 1];
                }
            }
            finish_sums(a, p, c, sums);
        }
}
#endif
