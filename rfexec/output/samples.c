/* Quantises values, in double so that no range of floats overflows. */
#include "rfexec/output/samples.h"

#include <assert.h>
#include <math.h>

#include "layers/core/checked.h"

struct rfx_value_range rfx_value_range_empty(void) {
    struct rfx_value_range range = {INFINITY, -INFINITY};
    return range;
}

enum { PIECE = 256 }; /* elements of another type than float32 that are converted at a time */

static void add_floats(struct rfx_value_range *range, const float *values, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(values[i])) continue;
        if ((double)values[i] < range->lo) range->lo = (double)values[i];
        if ((double)values[i] > range->hi) range->hi = (double)values[i];
    }
}

void rfx_value_range_add(struct rfx_value_range *range, enum rfx_type type, const void *values,
                         int64_t count) {
    float floats[PIECE];
    if (type == RFX_TYPE_FLOAT32) {
        add_floats(range, values, count);
        return;
    }
    for (int64_t i = 0; i < count; i += PIECE) {
        int64_t n = rfx_min_i64(PIECE, count - i);
        rfx_type_load(type, (const char *)values + (size_t)i * rfx_type_bytes(type), n, floats);
        add_floats(range, floats, n);
    }
}

struct rfx_value_range rfx_value_range_settle(struct rfx_value_range range) {
    if (range.lo < range.hi) return range;
    range.lo = isfinite(range.lo) ? range.lo : 0.0;
    /* above 2^53, lo + 1 equals lo */
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

static void samples_of_floats(const float *values, int64_t count, struct rfx_value_range range,
                              int bits, void *out) {
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

void rfx_samples_of(enum rfx_type type, const void *values, int64_t count,
                    struct rfx_value_range range, int bits, void *out) {
    float floats[PIECE];
    assert(bits == 8 || bits == 16);
    if (type == RFX_TYPE_FLOAT32) {
        samples_of_floats(values, count, range, bits, out);
        return;
    }
    for (int64_t i = 0; i < count; i += PIECE) {
        int64_t n = rfx_min_i64(PIECE, count - i);
        rfx_type_load(type, (const char *)values + (size_t)i * rfx_type_bytes(type), n, floats);
        samples_of_floats(floats, n, range, bits, (char *)out + i * (bits / 8));
    }
}
