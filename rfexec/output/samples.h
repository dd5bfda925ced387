/* Converts values to integer samples of pictures.
 *
 * The smallest value of a range becomes 0, the largest 2^bits - 1. Values between are rounded to
 * the nearest sample. Values outside are clamped, NaN becomes 0. */
#ifndef RFX_RFEXEC_OUTPUT_SAMPLES_H
#define RFX_RFEXEC_OUTPUT_SAMPLES_H

#include <stdint.h>

#include "layers/core/type.h"

struct rfx_value_range {
    double lo, hi;
};

/* Returns the empty range: lo is above hi. */
struct rfx_value_range rfx_value_range_empty(void);

/* Widens the range to include all finite ones of `count` values, elements of the type. */
void rfx_value_range_add(struct rfx_value_range *range, enum rfx_type type, const void *values,
                         int64_t count);

/* Returns a range with lo < hi: 0 to 1 for the empty range, v to v + 1 for a single value v. */
struct rfx_value_range rfx_value_range_settle(struct rfx_value_range range);

/* Writes `count` values, elements of the type, as samples of `bits` (8: uint8, 16: uint16 of this
 * machine) to `out`, which may not overlap the values. range.lo < range.hi. */
void rfx_samples_of(enum rfx_type type, const void *values, int64_t count,
                    struct rfx_value_range range, int bits, void *out);
#endif
