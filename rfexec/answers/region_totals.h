/* Area, box and centroid of a region, added up from its rectangles. */
#ifndef RFX_RFEXEC_ANSWERS_REGION_TOTALS_H
#define RFX_RFEXEC_ANSWERS_REGION_TOTALS_H

#include "layers/core/rect.h"

__extension__ typedef unsigned __int128 rfx_region_wide;

struct rfx_region_totals {
    int64_t area;
    rfx_region_wide twice_x, twice_y; /* twice the sums of the pixels' middles: below 2^94 */
    struct rfx_rect box;
};

/* Adds the pixels of a rectangle in rows and columns below 2^31. */
void rfx_region_totals_add(struct rfx_region_totals *totals, struct rfx_rect rect);

/* Returns twice_sum / (2 area), the mean of a coordinate, rounded once to double (to nearest, ties
 * to even). The mean is in [0.5, 2^31), and the area in [1, 2^62]. */
double rfx_region_mean(rfx_region_wide twice_sum, int64_t area);
#endif
