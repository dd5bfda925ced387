/* Where the values of a map lie over the picture: along one axis, every value in the middle of the
 * pixels that it sees. Kernels of odd sizes with a stride see about their first pixel, not about
 * the middle of a cell, which would be half a stride off; maps made without padding end before the
 * picture does. */
#ifndef RFX_TOOLS_OVERLAY_MAP_PLACE_H
#define RFX_TOOLS_OVERLAY_MAP_PLACE_H

#include "rf_analysis/analysis.h"

struct rfx_map_place {
    double first; /* middle of value 0, in pixels from the picture's edge */
    double step;  /* pixels from one value to the next; negative: mirrored */
    int64_t count;
};

/* Of `count` values with this field; NULL (they see all of the picture): spread over its `pixels`
 * evenly. */
struct rfx_map_place rfx_map_place_of(const struct rfx_axis_field *field, int64_t count,
                                      int64_t pixels);

/* The value nearest to the middle of a pixel; -1: it is a whole step away, the map says nothing of
 * the pixel. */
int64_t rfx_map_place_nearest(const struct rfx_map_place *place, int64_t pixel);
#endif
