/* See value_sketch.h. */
#include "tools/page/value_sketch.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* The bin, counted from 0.0, in which a value lies. Exact: a float divided by a power of two. */
static int64_t index_of(float value, int exponent) {
    return (int64_t)floor(ldexp((double)value, -exponent));
}

/* Of 24 bits at most are a value's digits: finer bins would not tell more values apart. */
static int finest_exponent(float min, float max) {
    int exponent;
    float most = fmaxf(fabsf(min), fabsf(max));
    if (most == 0.0F) return -149;
    (void)frexpf(most, &exponent);
    return exponent - 24;
}

static int fit_exponent(float min, float max) {
    int exponent = finest_exponent(min, max);
    while (index_of(max, exponent) - index_of(min, exponent) >= RFX_SKETCH_BINS) ++exponent;
    return exponent;
}

/* floor(index / 2^shift) */
static int64_t shifted(int64_t index, int shift) {
    if (shift > 62) return index < 0 ? -1 : 0;
    int64_t divisor = (int64_t)1 << shift;
    int64_t quotient = index / divisor;
    return index % divisor < 0 ? quotient - 1 : quotient;
}

/* Lets the range grow to hold a value. */
static void widen(struct rfx_value_sketch *s, float value) {
    bool none = s->finite == 0;
    s->min = none || value < s->min ? value : s->min;
    s->max = none || value > s->max ? value : s->max;
    int exponent = fit_exponent(s->min, s->max);
    int64_t first = index_of(s->min, exponent);
    uint64_t bins[RFX_SKETCH_BINS] = {0};
    for (int i = 0; i < RFX_SKETCH_BINS && !none; ++i)
        if (s->bins[i] > 0)
            bins[shifted(s->first + i, exponent - s->exponent) - first] += s->bins[i];
    memcpy(s->bins, bins, sizeof bins);
    s->exponent = exponent;
    s->first = first;
}

static void add_special(struct rfx_value_sketch *s, float value) {
    if (isnan(value))
        ++s->nan;
    else if (value > 0)
        ++s->plus_inf;
    else
        ++s->minus_inf;
}

void rfx_value_sketch_add(struct rfx_value_sketch *s, const float *values, int64_t n) {
    double scale = ldexp(1.0, -s->exponent);
    for (int64_t i = 0; i < n; ++i) {
        float value = values[i];
        if (!isfinite(value)) {
            add_special(s, value);
            continue;
        }
        if (s->finite == 0 || value < s->min || value > s->max) {
            widen(s, value);
            scale = ldexp(1.0, -s->exponent);
        }
        ++s->finite;
        s->sum += (double)value;
        ++s->bins[(int64_t)floor((double)value * scale) - s->first];
    }
}

double rfx_value_sketch_edge(const struct rfx_value_sketch *s, int i) {
    return ldexp((double)(s->first + i), s->exponent);
}

int rfx_value_sketch_used(const struct rfx_value_sketch *s) {
    return s->finite == 0 ? 0 : (int)(index_of(s->max, s->exponent) - s->first) + 1;
}
