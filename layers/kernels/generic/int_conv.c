/* Dense integer convolution: the sums of PIXELS x BLOCKS x RFX_INT_LANES elements stay in
 * registers. Each step multiplies a pair of input channels of every pixel by the weights of the
 * output channels. Sums are exact, so their order does not matter, and every instruction set gives
 * the same bytes. */
#include "layers/kernels/generic/blocks.h"
#include "layers/kernels/generic/int_vectors.h"
#include "layers/kernels/generic/variant.h"

#ifdef INT_VECTORS
#if VECTOR_FLOATS == 16
#define PIXELS 14 /* 28 sums, 2 weights, an input pair and its products in 32 registers */
#define BLOCKS 2  /* blocks of channels that are computed together */
#elif VECTOR_FLOATS == 8
#define PIXELS 6 /* 12 sums, 2 weights, an input pair and its products in 16 registers */
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
#define STEP (2 * RFX_INT_LANES) /* weights of a block for a pair of channels */

/* Adds the products of `pairs` contiguous pairs to the sums of n pixels and nb blocks. Weights of
 * the second block are `filter` elements after those of the first. */
INLINE void add_products(ints sum[PIXELS][BLOCKS][IN_BLOCK], const int16_t *x, int64_t x_stride,
                         const int16_t *w, int64_t filter, int64_t pairs, int n, int nb) {
    struct values values = values_from(x, x_stride * (int64_t)sizeof *x);
    for (const int16_t *end = w + pairs * STEP; w < end; w += STEP) {
        ints factors[BLOCKS][IN_BLOCK];
        UNROLL for (int b = 0; b < nb; b++) factors_of_block(w + b * filter, factors[b]);
        UNROLL for (int p = 0; p < n; p++) {
            ints pair = pair_at(value_of(&values, p));
            UNROLL for (int b = 0; b < nb; b++) UNROLL for (int v = 0; v < IN_BLOCK; v++)
                sum[p][b][v] = add_pair(sum[p][b][v], pair, factors[b], v);
        }
        next_values(&values, 2 * sizeof *x);
    }
}

/* Computes n pixels from pixel p0 on, of nb blocks from channel c on. n and nb are constants in all
 * calls. */
INLINE void make_block(const struct rfx_int_conv_args *a, int64_t p0, int64_t c, int n, int nb) {
    const int64_t tap = a->pairs * STEP, filter = a->kh * a->kw * tap;
    /* Taps of a kernel row whose values are contiguous. */
    const int64_t taps = a->tap_stride == 2 * a->pairs ? a->kw : 1;
    const int16_t *w = a->weights + c / RFX_INT_LANES * filter;
    struct target to[BLOCKS];
    ints sum[PIXELS][BLOCKS][IN_BLOCK];
    UNROLL for (int b = 0; b < nb; b++) {
        to[b] = target_of(&a->to, c + b * RFX_INT_LANES, false);
        UNROLL for (int p = 0; p < n; p++) UNROLL for (int v = 0; v < IN_BLOCK; v++) sum[p][b][v] =
            to[b].bias[v];
    }
    for (int64_t ky = 0; ky < a->kh; ky++, w += a->kw * tap) {
        if (a->rows[ky] == NULL) continue;
        const int16_t *x = a->rows[ky] + p0 * a->x_stride;
        for (int64_t kx = 0; kx < a->kw; kx += taps)
            add_products(sum, x + kx * a->tap_stride, a->x_stride, w + kx * tap, filter,
                         taps * a->pairs, n, nb);
    }
    if (a->sums != NULL) {
        UNROLL for (int p = 0; p < n; p++) UNROLL for (int b = 0; b < nb; b++)
            store_sums(sum[p][b], a->m - c - b * RFX_INT_LANES,
                       a->sums + (p0 + p) * a->out_stride + c + b * RFX_INT_LANES);
        return;
    }
    /* Blocks that are not full are stored beside `out` first. */
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

#define CASE(n, nb)                      \
    case n:                              \
        make_block(a, p0, c, (n), (nb)); \
        return;

static void one_block(const struct rfx_int_conv_args *a, int64_t p0, int64_t c, int n) {
    switch (n) {
        CASES(PIXELS, CASE, 1)
        default:
            return;
    }
}

#if BLOCKS > 1
static void all_blocks(const struct rfx_int_conv_args *a, int64_t p0, int64_t c, int n) {
    switch (n) {
        CASES(PIXELS, CASE, BLOCKS)
        default:
            return;
    }
}
#else
#define all_blocks one_block
#endif

/* Returns how many pixels share registers: fewer if all of them would be in the same set of the
 * cache. */
static int64_t pixels_at_once(const struct rfx_int_conv_args *a) {
    const bool same_set = a->x_stride * (int64_t)sizeof(int16_t) % WAY_BYTES == 0;
    return same_set && PIXELS > SAME_SET ? SAME_SET : PIXELS;
}

/* The weights of a block stay in the cache for all pixels of the run. */
void VARIANT_NAME(int_conv)(const struct rfx_int_conv_args *a) {
    const struct cut cut = cut_evenly(a->pixels, pixels_at_once(a));
    for (int64_t c = 0; c < a->m;) {
        bool all = a->m - c > (BLOCKS - 1) * RFX_INT_LANES;
        int64_t p0 = 0;
        for (int64_t i = 0; i < cut.blocks; i++) {
            int n = cut_size(&cut, i);
            if (all)
                all_blocks(a, p0, c, n);
            else
                one_block(a, p0, c, n);
            p0 += n;
        }
        c += all ? BLOCKS * RFX_INT_LANES : RFX_INT_LANES;
    }
}
#else
void VARIANT_NAME(int_conv)(const struct rfx_int_conv_args *a) {
    const int64_t tap = a->pairs * RFX_INT_LANES * 2, filter = a->kh * a->kw * tap;
    for (int64_t c = 0; c < a->m; c += RFX_INT_LANES)
        for (int64_t p = 0; p < a->pixels; p++) {
            int32_t sums[RFX_INT_LANES] = {0};
            for (int64_t ky = 0; ky < a->kh; ky++) {
                if (a->rows[ky] == NULL) continue;
                for (int64_t kx = 0; kx < a->kw; kx++) {
                    const int16_t *x = a->rows[ky] + p * a->x_stride + kx * a->tap_stride;
                    const int16_t *w =
                        a->weights + c / RFX_INT_LANES * filter + (ky * a->kw + kx) * tap;
                    for (int64_t k = 0; k < a->pairs; k++, w += 2 * RFX_INT_LANES)
                        for (int i = 0; i < RFX_INT_LANES; i++)
                            sums[i] += x[2 * k] * w[2 * i] + x[2 * k + 1] * w[2 * i + 1];
                }
            }
            finish_sums(a, p, c, sums);
        }
}
#endif
