/* Exact sums over the pixels of a region; see region_totals.h. */
#include "rfexec/answers/region_totals.h"

#include <math.h>

void rfx_region_totals_add(struct rfx_region_totals *totals, struct rfx_rect rect) {
    int64_t area = rfx_rect_area(rect);
    totals->area += area;
    totals->twice_x += (rfx_region_wide)area * (uint64_t)(rect.x0 + rect.x1);
    totals->twice_y += (rfx_region_wide)area * (uint64_t)(rect.y0 + rect.y1);
    totals->box = rfx_rect_union(totals->box, rect);
}

/* With 62 bits behind the point, the quotient has at least 8 bits more than a double. The last bit
 * is set if more bits follow, so that they decide ties. */
double rfx_region_mean(rfx_region_wide twice_sum, int64_t area) {
    rfx_region_wide divisor = 2 * (rfx_region_wide)area;
    if (twice_sum <= UINT32_MAX) return (double)(uint64_t)twice_sum / (double)(uint64_t)divisor;
    rfx_region_wide rest = (twice_sum % divisor) << 62;
    rfx_region_wide fixed = ((twice_sum / divisor) << 62) | (rest / divisor);
    if (rest % divisor != 0) fixed |= 1;
    return ldexp((double)fixed, -62);
}
