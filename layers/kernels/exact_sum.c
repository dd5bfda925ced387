/* The exact accumulator: two fast fixed-point lanes per channel, and 16-bit digits.
 *
 * Nearly all activations are added to the two lanes, an int64 of sums and an int64 of rests (struct
 * rfx_exact_args). All other values are added to the digits. The lanes are emptied into the digits
 * every FLUSH_PIXELS pixels, long before they can overflow. */
#include "layers/kernels/exact_sum.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "layers/core/checked.h"
#include "layers/kernels/kernels.h"

#define DIGITS 20    /* the unit of digit k is 2^(16 k - 150) */
#define SUM_DIGIT 7  /* 2^(16 * 7 - 150) = 2^-38, the unit of the sums */
#define REST_DIGIT 4 /* 2^(16 * 4 - 150) = 2^-86, the unit of the rests */

/* Pixels between two flushes. Lanes cannot overflow: 2^51 * 2^11 < 2^63. A digit gets at most 2^39
 * * 2^12 between flushes, because a square that does not fit the lanes is added as two values. */
#define FLUSH_PIXELS 2048

enum special { SEEN_NAN = 1, SEEN_PLUS_INF = 2, SEEN_MINUS_INF = 4 };

struct channel {
    int64_t digit[DIGITS];
    int64_t special;
};

struct rfx_exact_sum {
    int64_t c;
    int64_t pixels; /* added since the last flush */
    int64_t fast[]; /* c sums, c rests, then c struct channel */
};

static struct channel *channels_of(struct rfx_exact_sum *sum) {
    return (struct channel *)(void *)(sum->fast + 2 * sum->c);
}

size_t rfx_exact_sum_bytes(int64_t c) {
    size_t each = 2 * sizeof(int64_t) + sizeof(struct channel);
    return rfx_align_up(sizeof(struct rfx_exact_sum) + (size_t)c * each);
}

struct rfx_exact_sum *rfx_exact_sum_reset(void *block, int64_t c) {
    memset(block, 0, rfx_exact_sum_bytes(c));
    struct rfx_exact_sum *sum = block;
    sum->c = c;
    return sum;
}

/* Carries until all digits except the last are in [0, 2^16). Right shifts of negative values are
 * arithmetic (GCC and Clang). */
static void normalise(int64_t *digit) {
    for (int k = 0; k + 1 < DIGITS; k++) {
        digit[k + 1] += digit[k] >> 16;
        digit[k] &= 0xffff;
    }
}

static void flush_lane(int64_t *lane, int64_t *digit) {
    digit[0] += *lane & 0xffffffff;
    digit[2] += *lane >> 32;
    *lane = 0;
}

#define MOST_LANE ((int64_t)1 << 62) /* bound of a lane after FLUSH_PIXELS pixels */
/* Bound of a digit: the values added between flushes, and carries. */
#define MOST_DIGIT ((int64_t)1 << 52)
/* Bound of the last digit, whose unit is 2^154. A sum of 2^40 values below 2^128 is less than half
 * of this bound. Two such sums are less than the 16 bits that round_digits assumes for a digit. */
#define MOST_LAST ((int64_t)1 << 15)

/* Whether the digits, after the lanes are emptied into them, are in the range of a sum. */
static bool is_sound_channel(const struct channel *channel, int64_t sums, int64_t rests) {
    int64_t digit[DIGITS];
    if (channel->special < 0 || channel->special > 7) return false;
    for (int k = 0; k < DIGITS; k++) {
        digit[k] = channel->digit[k];
        if (digit[k] <= -MOST_DIGIT || digit[k] >= MOST_DIGIT) return false;
    }
    if (sums <= -MOST_LANE || sums >= MOST_LANE || rests <= -MOST_LANE || rests >= MOST_LANE)
        return false;
    flush_lane(&sums, digit + SUM_DIGIT);
    flush_lane(&rests, digit + REST_DIGIT);
    normalise(digit);
    return digit[DIGITS - 1] > -MOST_LAST && digit[DIGITS - 1] < MOST_LAST;
}

bool rfx_exact_sum_is_sound(const void *block, int64_t c) {
    const struct rfx_exact_sum *sum = block;
    if (sum->c != c || sum->pixels < 0 || sum->pixels > FLUSH_PIXELS) return false;
    const struct channel *channels = (const struct channel *)(const void *)(sum->fast + 2 * c);
    for (int64_t i = 0; i < c; i++)
        if (!is_sound_channel(&channels[i], sum->fast[i], sum->fast[c + i])) return false;
    return true;
}

static void flush(struct rfx_exact_sum *sum) {
    struct channel *channels = channels_of(sum);
    for (int64_t c = 0; c < sum->c; c++) {
        int64_t *digit = channels[c].digit;
        flush_lane(&sum->fast[c], digit + SUM_DIGIT);
        flush_lane(&sum->fast[sum->c + c], digit + REST_DIGIT);
        normalise(digit);
    }
    sum->pixels = 0;
}

static void add_slow(struct channel *channel, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    int exponent = (int)(bits >> 23 & 0xff);
    int64_t mantissa = (int64_t)(bits & 0x7fffff);
    bool negative = bits >> 31 != 0;
    if (exponent == 0xff) {
        int seen = mantissa != 0 ? SEEN_NAN : negative ? SEEN_MINUS_INF : SEEN_PLUS_INF;
        channel->special |= seen;
        return;
    }
    if (exponent == 0)
        exponent = 1;
    else
        mantissa |= 0x800000;
    int64_t part = mantissa << (exponent & 15);
    channel->digit[exponent >> 4] += negative ? -part : part;
}

static void add_misfit(void *user, int64_t channel, float value) {
    add_slow((struct channel *)user + channel, value);
}

/* Adds the square as two floats; the second is the part that rounding the first loses. */
static void add_misfit_square(void *user, int64_t channel, float value) {
    double square = (double)value * (double)value;
    float rounded = (float)square;
    add_misfit(user, channel, rounded);
    if (rounded <= FLT_MAX) add_misfit(user, channel, (float)(square - (double)rounded));
}

static void add(struct rfx_exact_sum *sum, const float *row, int64_t pixels, bool squares) {
    struct rfx_exact_args run = {.c = sum->c,
                                 .squares = squares,
                                 .sums = sum->fast,
                                 .rests = sum->fast + sum->c,
                                 .misfit = squares ? add_misfit_square : add_misfit,
                                 .user = channels_of(sum)};
    for (int64_t p = 0; p < pixels; p += run.pixels) {
        run.x = row + p * sum->c;
        run.pixels = rfx_min_i64(pixels - p, FLUSH_PIXELS - sum->pixels);
        rfx_kernels()->exact(&run);
        sum->pixels += run.pixels;
        if (sum->pixels == FLUSH_PIXELS) flush(sum);
    }
}

void rfx_exact_sum_add(struct rfx_exact_sum *sum, const float *row, int64_t pixels) {
    add(sum, row, pixels, false);
}

void rfx_exact_sum_add_squares(struct rfx_exact_sum *sum, const float *row, int64_t pixels) {
    add(sum, row, pixels, true);
}

void rfx_exact_sum_merge(struct rfx_exact_sum *sum, struct rfx_exact_sum *other) {
    assert(sum->c == other->c);
    flush(sum);
    flush(other);
    struct channel *to = channels_of(sum);
    const struct channel *from = channels_of(other);
    for (int64_t c = 0; c < sum->c; c++) {
        for (int k = 0; k < DIGITS; k++) to[c].digit[k] += from[c].digit[k];
        to[c].special |= from[c].special;
        normalise(to[c].digit);
    }
}

/* Returns the exact value of normalised digits, rounded once (to nearest, ties to even). */
static double round_digits(const int64_t *digit) {
    int64_t magnitude[DIGITS];
    bool negative = digit[DIGITS - 1] < 0;
    for (int k = 0; k < DIGITS; k++) magnitude[k] = negative ? -digit[k] : digit[k];
    normalise(magnitude);
    int high = DIGITS - 1;
    while (high >= 0 && magnitude[high] == 0) high--;
    if (high < 0) return 0.0;
    uint64_t top = 0; /* digits high .. high - 3, then shifted left until the first bit is 1 */
    for (int k = high; k > high - 4; k--) top = top << 16 | (uint64_t)(k >= 0 ? magnitude[k] : 0);
    int shift = __builtin_clzll(top);
    uint64_t next = high >= 4 ? (uint64_t)magnitude[high - 4] : 0;
    top = top << shift | next >> (16 - shift);
    uint64_t sticky = next & ((1u << (16 - shift)) - 1);
    for (int k = high - 5; k >= 0; k--) sticky |= (uint64_t)magnitude[k];
    if (sticky != 0) top |= 1;
    double value = ldexp((double)top, 16 * (high - 3) - 150 - shift);
    return negative ? -value : value;
}

static double special_value(int64_t special) {
    if ((special & SEEN_NAN) != 0) return (double)NAN;
    if (special == SEEN_PLUS_INF) return (double)INFINITY;
    return special == SEEN_MINUS_INF ? -(double)INFINITY : (double)NAN;
}

double rfx_exact_sum_total(struct rfx_exact_sum *sum, int64_t channel) {
    if (sum->pixels > 0) flush(sum);
    const struct channel *at = &channels_of(sum)[channel];
    return at->special != 0 ? special_value(at->special) : round_digits(at->digit);
}

void rfx_exact_sum_finish(struct rfx_exact_sum *sum, double divisor, float *out) {
    for (int64_t c = 0; c < sum->c; c++) out[c] = (float)(rfx_exact_sum_total(sum, c) / divisor);
}
