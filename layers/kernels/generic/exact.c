/* Adds values or squares to sums in fixed point: see struct rfx_exact_run. For a small x and a
 * large power of two, x + 1.5 * power in double is x rounded to the power's last place, and its
 * bits less those of 1.5 * power are that as an integer. */
#include <math.h>
#include <string.h>

#include "layers/kernels/generic/variant.h"

#define INLINE static inline __attribute__((always_inline))
#define LARGE 0x1.8p14          /* its unit in the last place is that of the sums, 2^-38 */
#define SMALL 0x1.8p-34         /* likewise of the rests, 2^-86 */
#define PIXELS 16               /* that are looked at together */
#define LIMIT 0x45ffffff        /* the bits of the largest float below 2^13 */
#define SQUARE_LIMIT 0x42b504f3 /* of the largest whose square is */

/* Integers wrap: sums of values that do not fit are thrown away. */
typedef double wide __attribute__((vector_size(VECTOR_FLOATS * 8)));
typedef uint64_t wide_int __attribute__((vector_size(VECTOR_FLOATS * 8)));

/* Pixels of one vector of channels; other channels count as 0. */
struct block {
    const float *x; /* of the first channel */
    int64_t stride, pixels;
    vector_test channels;
    bool all;
};

INLINE vector load(const struct block *b, int64_t p) {
    const float *x = b->x + p * b->stride;
    return b->all ? VECTOR_LOAD(x) : VECTOR_LOAD_WHERE(b->channels, x);
}

/* Macros, as functions of vectors wider than registers have no calling convention. */
#define WIDEN(x) __builtin_convertvector((x), wide)
#define BITS_OF(origin) ((wide_int)((wide){0} + (origin)))

/* Whether a value is beyond the limit, of any lane: LIMIT - magnitude was negative, as for NaN. */
INLINE bool any_over(vector_mask over) {
    int32_t signs = 0;
    for (int i = 0; i < VECTOR_FLOATS; i++) signs |= over[i];
    return signs < 0;
}

/* Whether a double is not zero, of any lane: bits beside the sign's. */
INLINE bool any(const wide_int *bits) {
    uint64_t some = 0;
    for (int i = 0; i < VECTOR_FLOATS; i++) some |= (*bits)[i] << 1;
    return some != 0;
}

/* Adds the values, rounded, unless there is one of 2^13 or more: false. *rests: whether rounding
 * left something. No comparisons of vectors: compilers take those of doubles apart. */
INLINE bool add_rounded(const struct block *b, wide_int *sum, bool *rests) {
    wide_int total = *sum - (uint64_t)b->pixels * BITS_OF(LARGE), left = {0};
    vector_mask over = {0};
    for (int64_t p = 0; p < b->pixels; p++) {
        vector x = load(b, p);
        wide value = WIDEN(x), shifted = value + LARGE;
        total += (wide_int)shifted;
        left |= (wide_int)(value - (shifted - LARGE));
        over |= LIMIT - ((vector_mask)x & 0x7fffffff);
    }
    if (any_over(over)) return false;
    *rests = any(&left);
    *sum = total;
    return true;
}

/* Adds what add_rounded rounded away, unless some reaches below the unit of the rests: false. */
INLINE bool add_rests(const struct block *b, wide_int *rest) {
    wide_int total = *rest - (uint64_t)b->pixels * BITS_OF(SMALL), left = {0};
    for (int64_t p = 0; p < b->pixels; p++) {
        wide value = WIDEN(load(b, p)), under = value - ((value + LARGE) - LARGE);
        wide shifted = under + SMALL;
        total += (wide_int)shifted;
        left |= (wide_int)(under - (shifted - SMALL));
    }
    if (any(&left)) return false;
    *rest = total;
    return true;
}

/* Adds the squares, which 48 bits of a double hold, rounded, and what that rounds away, unless one
 * is of 2^13 or more or reaches below the unit of the rests: false. */
INLINE bool add_squares(const struct block *b, wide_int *sum, wide_int *rest) {
    wide_int total = *sum - (uint64_t)b->pixels * BITS_OF(LARGE);
    wide_int rests = *rest - (uint64_t)b->pixels * BITS_OF(SMALL), left = {0};
    vector_mask over = {0};
    for (int64_t p = 0; p < b->pixels; p++) {
        vector x = load(b, p);
        wide value = WIDEN(x), square = value * value, shifted = square + LARGE;
        wide under = square - (shifted - LARGE), small = under + SMALL;
        total += (wide_int)shifted;
        rests += (wide_int)small;
        left |= (wide_int)(under - (small - SMALL));
        over |= SQUARE_LIMIT - ((vector_mask)x & 0x7fffffff);
    }
    if (any_over(over) || any(&left)) return false;
    *sum = total;
    *rest = rests;
    return true;
}

/* Value by value: what does not fit is handed out. */
static void add_each(const struct rfx_exact_run *r, const struct block *b, int64_t channel,
                     int64_t channels) {
    for (int64_t p = 0; p < b->pixels; p++)
        for (int64_t i = 0; i < channels; i++) {
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

INLINE void add_block(const struct rfx_exact_run *r, const struct block *b, int64_t channel,
                      int64_t channels) {
    size_t bytes = (size_t)channels * sizeof(int64_t);
    wide_int sum = {0}, rest = {0};
    bool rests = false;
    memcpy(&sum, r->sums + channel, bytes);
    if (add_rounded(b, &sum, &rests)) {
        if (rests) memcpy(&rest, r->rests + channel, bytes);
        if (!rests || add_rests(b, &rest)) {
            memcpy(r->sums + channel, &sum, bytes);
            if (rests) memcpy(r->rests + channel, &rest, bytes);
            return;
        }
    }
    add_each(r, b, channel, channels);
}

INLINE void add_square_block(const struct rfx_exact_run *r, const struct block *b, int64_t channel,
                             int64_t channels) {
    size_t bytes = (size_t)channels * sizeof(int64_t);
    wide_int sum = {0}, rest = {0};
    memcpy(&sum, r->sums + channel, bytes);
    memcpy(&rest, r->rests + channel, bytes);
    if (!add_squares(b, &sum, &rest)) {
        add_each(r, b, channel, channels);
        return;
    }
    memcpy(r->sums + channel, &sum, bytes);
    memcpy(r->rests + channel, &rest, bytes);
}

INLINE void add_blocks(const struct rfx_exact_run *r, bool squares) {
    for (int64_t p = 0; p < r->pixels; p += PIXELS)
        for (int64_t ch = 0; ch < r->c; ch += VECTOR_FLOATS) {
            struct block b = {.x = r->x + p * r->c + ch,
                              .stride = r->c,
                              .pixels = r->pixels - p < PIXELS ? r->pixels - p : PIXELS,
                              .all = r->c - ch >= VECTOR_FLOATS};
            b.channels = vector_test_range(0, r->c - ch);
            int64_t channels = b.all ? VECTOR_FLOATS : r->c - ch;
            if (squares)
                add_square_block(r, &b, ch, channels);
            else
                add_block(r, &b, ch, channels);
        }
}

void VARIANT_NAME(exact)(const struct rfx_exact_run *r) {
    if (r->squares)
        add_blocks(r, true);
    else
        add_blocks(r, false);
}
