/* Quantising; in double, so that no range of floats overflows. */
#include "rfexec/output/samples.h"

#include <assert.h>
#include <math.h>

struct rfx_value_range rfx_value_range_empty(void) {
    struct rfx_value_range range = {INFINITY, -INFINITY};
    return range;
}

void rfx_value_range_add(struct rfx_value_range *range, const float *values, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(values[i])) continue;
        if ((double)values[i] < range->lo) range->lo = (double)values[i];
        if ((double)values[i] > range->hi) range->hi = (double)values[i];
    }
}

struct rfx_value_range rfx_value_range_settle(struct rfx_value_range range) {
    if (range.lo < range.hi) return range;
    range.lo = isfinite(range.lo) ? range.lo : 0.0;
    /* beyond 2^53 the next 1 is the same number */
    range.hi = fmax(range.lo + 1.0, nextafter(range.lo, INFINITY));
    return range;
}

static inline double sample_of(float value, struct rfx_value_range range, double scale,
                               double top) {
    double v = ((double)value - range.lo) * scale;
    v = v > 0.0 ? v : 0.0; /* NaN too */
    v = v < top ? v : top;
    return v + 0.5;
}

void rfx_samples_from_floats(const float *values, int64_t count, struct rfx_value_range range,
                             int bits, void *out) {
    assert(bits == 8 || bits == 16);
    double top = bits == 8 ? 255.0 : 65535.0, scale = top / (range.hi - range.lo);
    if (bits == 8) {
        uint8_t *samples = out;
        for (int64_t i = 0; i < count; i++)
            samples[i] = (uint8_t)sample_of(values[i], range, scale, top);
        return;
    }
    uint16_t *samples = out;
    for (int64_t i = 0; i < count; i++)
        samples[i] = (uint16_t)sample_of(values[i], range, scale, top);
}
