/* See map_place.h. */
#include "tools/overlay/map_place.h"

#include <math.h>
#include <stddef.h>

struct rfx_map_place rfx_map_place_of(const struct rfx_axis_field *field, int64_t count,
                                      int64_t pixels) {
    struct rfx_map_place place = {.step = (double)pixels / (double)count, .count = count};
    place.first = place.step / 2.0;
    if (field == NULL || field->jump.num == 0 || field->jump.den == 0) return place;
    place.step = (double)field->jump.num / (double)field->jump.den;
    place.first = field->middle_px;
    return place;
}

int64_t rfx_map_place_nearest(const struct rfx_map_place *place, int64_t pixel) {
    double at = ((double)pixel + 0.5 - place->first) / place->step;
    double nearest = fmin(fmax(floor(at + 0.5), 0.0), (double)(place->count - 1));
    return fabs(at - nearest) < 1.0 ? (int64_t)nearest : -1;
}
