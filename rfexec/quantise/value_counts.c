/* Counts of values in bins, and ranges taken from them. */
#include "rfexec/quantise/value_counts.h"

#include <math.h>
#include <string.h>

#include "layers/core/real_math.h"

enum { SHIFT = 32 - (9 + RFX_BIN_MANTISSA) };

/* Maps the bits of a float to a number that rises with the float, and back. */
static uint32_t rising(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
}

static float value_of(uint32_t key) {
    uint32_t bits = key >> 31 != 0 ? key & 0x7fffffffu : ~key;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

float rfx_value_bin_lo(int bin) {
    return value_of((uint32_t)bin << SHIFT);
}

float rfx_value_bin_hi(int bin) {
    return value_of(((uint32_t)bin << SHIFT) | ((1u << SHIFT) - 1));
}

bool rfx_value_counts_add(struct rfx_value_counts *counts, const float *values, int64_t n) {
    float lo = counts->lo, hi = counts->hi;
    if (n <= 0) return true;
    if (counts->n == 0) lo = hi = values[0];
    bool finite = true;
    for (int64_t i = 0; i < n; i++) finite &= isfinite(values[i]) != 0;
    if (!finite) return false;
    for (int64_t i = 0; i < n; i++) {
        float value = values[i] + 0.0f; /* -0 becomes 0 */
        lo = value < lo ? value : lo;
        hi = value > hi ? value : hi;
        counts->bins[rising(value) >> SHIFT]++;
    }
    counts->lo = lo;
    counts->hi = hi;
    counts->n += (uint64_t)n;
    return true;
}

/* --- ranges --- */

/* Completes a range from its limits, as ONNX's QuantizeLinear needs it. */
static struct rfx_value_range range_between(float lo, float hi,
                                            const struct rfx_range_request *request) {
    bool is_signed = request->type == RFX_TYPE_INT8;
    struct rfx_value_range r = {.lo = fminf(lo, 0.0f), .hi = fmaxf(hi, 0.0f)};
    double least = is_signed ? -128.0 : 0.0, most = is_signed ? 127.0 : 255.0;
    if (request->symmetric) {
        r.hi = fmaxf(-r.lo, r.hi);
        r.lo = -r.hi;
        least = is_signed ? -127.0 : 1.0; /* as many integers below the zero point as above */
    }
    double scale = ((double)r.hi - (double)r.lo) / (most - least);
    if (!(scale >= 0x1p-126)) scale = 1.0; /* zeros, or numbers too small for a scale */
    r.scale = (float)scale;
    r.zero_point = (int32_t)fmin(fmax(nearbyint(least - (double)r.lo / scale), least), most);
    return r;
}

/* Returns the middle of the bin's values. */
static double middle(int bin) {
    return 0.5 * ((double)rfx_value_bin_lo(bin) + (double)rfx_value_bin_hi(bin));
}

/* Returns the limits that leave out at most (100 - percent) / 2 percent of the values at each end,
 * to the width of a bin. */
static struct rfx_value_range percentile(const struct rfx_value_counts *counts,
                                         const struct rfx_range_request *request) {
    double left_out = (double)counts->n * (100.0 - request->percentile) / 200.0, below = 0.0;
    int first = 0, last = RFX_VALUE_BINS - 1;
    while (below + (double)counts->bins[first] <= left_out && first < RFX_VALUE_BINS - 1)
        below += (double)counts->bins[first++];
    for (below = 0.0; below + (double)counts->bins[last] <= left_out && last > first; last--)
        below += (double)counts->bins[last];
    return range_between(fmaxf(rfx_value_bin_lo(first), counts->lo),
                         fminf(rfx_value_bin_hi(last), counts->hi), request);
}

/* Returns the integer, counted from the smallest, that a value gets in a range. */
static int level(const struct rfx_value_range *r, double value, int levels) {
    double at = nearbyint((value - (double)r->lo) / ((double)r->hi - (double)r->lo) * (levels - 1));
    return at < 0.0 ? 0 : at > levels - 1 ? levels - 1 : (int)at;
}

/* The bins of a tensor that hold values. */
struct filled {
    int first, last;
};

/* Largest share of the values that the range of RFX_RANGE_ENTROPY leaves out. Where a tensor has
 * few values, most bins hold one of them, and the divergence alone would prefer much too small
 * ranges. */
#define MOST_OUTSIDE 0.003

/* Returns the Kullback-Leibler divergence between the values, with those outside of the range moved
 * to its ends, and the values as the range's integers describe them: equally dense among the bins
 * of an integer. */
static double divergence(const struct rfx_value_counts *counts, struct filled filled,
                         const struct rfx_value_range *r) {
    enum { LEVELS = 256 };
    double mass[LEVELS] = {0.0}, width[LEVELS] = {0.0}, below = 0.0, above = 0.0, sum = 0.0;
    int first = -1, last = -1;
    for (int b = filled.first; b <= filled.last; b++) {
        double n = (double)counts->bins[b], at = middle(b);
        if (n == 0.0) continue;
        if (at < (double)r->lo) {
            below += n;
        } else if (at > (double)r->hi) {
            above += n;
        } else {
            int l = level(r, at, LEVELS);
            mass[l] += n;
            width[l] += (double)rfx_value_bin_hi(b) - (double)rfx_value_bin_lo(b);
            if (first < 0) first = b;
            last = b;
        }
    }
    double inside = (double)counts->n - below - above;
    if (first < 0 || below + above > MOST_OUTSIDE * (double)counts->n) return INFINITY;
    for (int b = first; b <= last; b++) {
        double p = (double)counts->bins[b];
        if (p == 0.0) continue;
        int l = level(r, middle(b), LEVELS);
        double share = ((double)rfx_value_bin_hi(b) - (double)rfx_value_bin_lo(b)) / width[l];
        double q = mass[l] * share / inside;
        if (b == first) p += below;
        if (b == last) p += above;
        p /= (double)counts->n;
        sum += p * rfx_log(p / q);
    }
    return sum;
}

/* Tries ranges that end at every bin, from the widest to one of an eighth of its width. */
static struct rfx_value_range entropy(const struct rfx_value_counts *counts,
                                      const struct rfx_range_request *request) {
    struct filled filled = {0, RFX_VALUE_BINS - 1};
    while (counts->bins[filled.first] == 0) filled.first++;
    while (counts->bins[filled.last] == 0) filled.last--;
    struct rfx_value_range best = range_between(counts->lo, counts->hi, request);
    float most = fmaxf(-counts->lo, counts->hi);
    if (most == 0.0f) return best;
    double least = divergence(counts, filled, &best);
    for (int b = (int)(rising(most) >> SHIFT) - 1; rfx_value_bin_hi(b) >= most / 8.0f; b--) {
        float limit = rfx_value_bin_hi(b);
        struct rfx_value_range tried =
            range_between(fmaxf(counts->lo, -limit), fminf(counts->hi, limit), request);
        double loss = divergence(counts, filled, &tried);
        if (loss >= least) continue;
        least = loss;
        best = tried;
    }
    return best;
}

struct rfx_value_range rfx_range_of(const struct rfx_value_counts *counts,
                                    const struct rfx_range_request *request) {
    if (request->method == RFX_RANGE_PERCENTILE) return percentile(counts, request);
    if (request->method == RFX_RANGE_ENTROPY) return entropy(counts, request);
    return range_between(counts->lo, counts->hi, request);
}

/* --- noise --- */

struct rfx_noise rfx_range_noise(const struct rfx_value_counts *counts,
                                 const struct rfx_value_range *range, enum rfx_type type) {
    enum { PLACES = 16 }; /* in a bin, which may be as wide as four integers */
    double zero = (double)range->zero_point, scale = (double)range->scale;
    double least = type == RFX_TYPE_INT8 ? -128.0 : 0.0;
    struct rfx_noise sum = {0.0, 0.0};
    for (int b = 0; b < RFX_VALUE_BINS; b++) {
        if (counts->bins[b] == 0) continue;
        double lo = (double)fmaxf(rfx_value_bin_lo(b), counts->lo);
        double hi = (double)fminf(rfx_value_bin_hi(b), counts->hi);
        double signal = 0.0, noise = 0.0;
        for (int k = 0; k < PLACES; k++) {
            double value = lo + (hi - lo) * ((double)k + 0.5) / PLACES;
            double integer = nearbyint(value / scale) + zero;
            integer = fmin(fmax(integer, least), least + 255.0);
            double error = (integer - zero) * scale - value;
            signal += value * value;
            noise += error * error;
        }
        sum.signal += signal / PLACES * (double)counts->bins[b];
        sum.noise += noise / PLACES * (double)counts->bins[b];
    }
    return sum;
}

double rfx_noise_db(const struct rfx_noise *noise) {
    if (!(noise->noise > 0.0)) return INFINITY;
    if (!(noise->signal > 0.0)) return -INFINITY;
    return 4.342944819032518 * rfx_log(noise->signal / noise->noise); /* 10 / ln 10 */
}
