/* Adds values or squares to sums in fixed point: see struct rfx_exact_args. For a small x and a
 * large power of two, the double x + 1.5 * power is x rounded to the last place of `power`.
 * Subtracting the bits of 1.5 * power from its bits gives this rounded value as an integer. */
#include <math.h>
#include <string.h>

#include "layers/kernels/generic/wide.h"

#define INLINE static inline __attribute__((always_inline))
#define LARGE 0x1.8p14          /* its unit in the last place is the unit of the sums, 2^-38 */
#define SMALL 0x1.8p-34         /* its unit in the last place is the unit of the rests, 2^-86 */
#define PIXELS 16               /* pixels of a block */
#define LIMIT 0x45ffffff        /* the bits of the largest float below 2^13 */
#define SQUARE_LIMIT 0x42b504f3 /* the bits of the largest float whose square is below 2^13 */

/* A block: up to PIXELS pixels, of a vector of channels that is processed in two halves. Missing
 * channels count as 0. Integers wrap around: sums of a block with values that do not fit are
 * discarded. */
struct block {
    const float *x; /* address of the first channel */
    int64_t stride, pixels, channels;
};

INLINE narrow load(const struct block *b, int64_t p, int half, bool all) {
    const float *x = b->x + p * b->stride + half * WIDE_DOUBLES;
    if (all) return NARROW_LOAD(x);
    narrow some = {0};
    for (int64_t i = 0; i < WIDE_DOUBLES && i < b->channels - half * WIDE_DOUBLES; i++)
        some[i] = x[i];
    return some;
}

#define BITS_OF(origin) ((wide_int)((wide){0} + (origin)))
#define HALVES for (int h = 0; h < 2; h++)

/* Returns the limit minus the magnitude's bits: negative for values beyond the limit and for NaN.
 */
INLINE narrow_int to_limit(int32_t limit, narrow x) {
    return limit - ((narrow_int)x & 0x7fffffff);
}

/* Adds the rounded values to sum[]. Returns false and adds nothing if a value is 2^13 or more.
 * *rests: whether rounding lost anything. */
INLINE bool add_rounded(const struct block *b, bool all, wide_int sum[2], bool *rests) {
    wide_int total[2], left[2] = {{0}, {0}};
    narrow_int over[2] = {{0}, {0}};
    HALVES total[h] = sum[h] - (uint64_t)b->pixels * BITS_OF(LARGE);
    for (int64_t p = 0; p < b->pixels; p++) {
        /* Too far apart for the hardware prefetcher. */
        __builtin_prefetch(b->x + (p + PIXELS) * b->stride);
        HALVES {
            narrow x = load(b, p, h, all);
            wide value = WIDEN(x), shifted = value + LARGE;
            total[h] += (wide_int)shifted;
            left[h] |= (wide_int)(value - (shifted - LARGE));
            over[h] |= to_limit(LIMIT, x);
        }
    }
    if (NARROW_ANY_BELOW_0(over[0] | over[1])) return false;
    *rests = WIDE_ANY_BIT(left[0] | left[1]);
    HALVES sum[h] = total[h];
    return true;
}

/* Adds the parts that add_rounded rounded away to rest[]. Returns false and adds nothing if one is
 * not a multiple of the unit of the rests. */
INLINE bool add_rests(const struct block *b, bool all, wide_int rest[2]) {
    wide_int total[2], left[2] = {{0}, {0}};
    HALVES total[h] = rest[h] - (uint64_t)b->pixels * BITS_OF(SMALL);
    for (int64_t p = 0; p < b->pixels; p++) {
        HALVES {
            wide value = WIDEN(load(b, p, h, all)), under = value - ((value + LARGE) - LARGE);
            wide shifted = under + SMALL;
            total[h] += (wide_int)shifted;
            left[h] |= (wide_int)(under - (shifted - SMALL));
        }
    }
    if (WIDE_ANY_BIT(left[0] | left[1])) return false;
    HALVES rest[h] = total[h];
    return true;
}

/* Adds the rounded squares to sum[] and the parts rounded away to rest[]. A square fits 48 bits of
 * a double, so it is exact. Returns false and adds nothing if a square is 2^13 or more, or has bits
 * below the unit of the rests. */
INLINE bool add_squares(const struct block *b, bool all, wide_int sum[2], wide_int rest[2]) {
    wide_int total[2], rests[2], left[2] = {{0}, {0}};
    narrow_int over[2] = {{0}, {0}};
    HALVES total[h] = sum[h] - (uint64_t)b->pixels * BITS_OF(LARGE);
    HALVES rests[h] = rest[h] - (uint64_t)b->pixels * BITS_OF(SMALL);
    for (int64_t p = 0; p < b->pixels; p++) {
        HALVES {
            narrow x = load(b, p, h, all);
            wide value = WIDEN(x), square = value * value, shifted = square + LARGE;
            wide under = square - (shifted - LARGE), small = under + SMALL;
            total[h] += (wide_int)shifted;
            rests[h] += (wide_int)small;
            left[h] |= (wide_int)(under - (small - SMALL));
            over[h] |= to_limit(SQUARE_LIMIT, x);
        }
    }
    if (NARROW_ANY_BELOW_0(over[0] | over[1]) || WIDE_ANY_BIT(left[0] | left[1])) return false;
    HALVES sum[h] = total[h];
    HALVES rest[h] = rests[h];
    return true;
}

/* Adds value by value; values that do not fit are passed to misfit. */
static void add_each(const struct rfx_exact_args *r, const struct block *b, int64_t channel) {
    for (int64_t p = 0; p < b->pixels; p++)
        for (int64_t i = 0; i < b->channels; i++) {
            double x = (double)b->x[p * b->stride + i], value = r->squares ? x * x : x;
            double sum = (value + LARGE) - LARGE, under = value - sum;
            if (!(fabs(value) < 0x1p13) || (under + SMALL) - SMALL != under) {
                r->misfit(r->user, channel + i, b->x[p * b->stride + i]);
                continue;
            }
            r->sums[channel + i] += (int64_t)(sum * 0x1p38);
            r->rests[channel + i] += (int64_t)(under * 0x1p86);
        }
}

INLINE void add_block(const struct rfx_exact_args *r, const struct block *b, int64_t channel,
                      bool all) {
    size_t bytes = (size_t)b->channels * sizeof(int64_t);
    wide_int sum[2] = {{0}, {0}}, rest[2] = {{0}, {0}};
    bool rests = false;
    memcpy(sum, r->sums + channel, all ? sizeof sum : bytes);
    if (add_rounded(b, all, sum, &rests)) {
        if (rests) memcpy(rest, r->rests + channel, bytes);
        if (!rests || add_rests(b, all, rest)) {
            memcpy(r->sums + channel, sum, all ? sizeof sum : bytes);
            if (rests) memcpy(r->rests + channel, rest, bytes);
            return;
        }
    }
    add_each(r, b, channel);
}

INLINE void add_square_block(const struct rfx_exact_args *r, const struct block *b, int64_t channel,
                             bool all) {
    wide_int sum[2] = {{0}, {0}}, rest[2] = {{0}, {0}};
    size_t bytes = all ? sizeof sum : (size_t)b->channels * sizeof(int64_t);
    memcpy(sum, r->sums + channel, bytes);
    memcpy(rest, r->rests + channel, bytes);
    if (!add_squares(b, all, sum, rest)) {
        add_each(r, b, channel);
        return;
    }
    memcpy(r->sums + channel, sum, bytes);
    memcpy(r->rests + channel, rest, bytes);
}

INLINE void add_blocks(const struct rfx_exact_args *r, bool squares) {
    for (int64_t p = 0; p < r->pixels; p += PIXELS)
        for (int64_t ch = 0; ch < r->c; ch += VECTOR_FLOATS) {
            bool all = r->c - ch >= VECTOR_FLOATS;
            const struct block b = {.x = r->x + p * r->c + ch,
                                    .stride = r->c,
                                    .pixels = r->pixels - p < PIXELS ? r->pixels - p : PIXELS,
                                    .channels = all ? VECTOR_FLOATS : r->c - ch};
            if (squares && all)
                add_square_block(r, &b, ch, true);
            else if (squares)
                add_square_block(r, &b, ch, false);
            else if (all)
                add_block(r, &b, ch, true);
            else
                add_block(r, &b, ch, false);
        }
}

void VARIANT_NAME(exact)(const struct rfx_exact_args *r) {
    if (r->squares)
        add_blocks(r, true);
    else
        add_blocks(r, false);
}
