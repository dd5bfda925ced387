/* Computes ranges from axis maps; see axis_map.h. */
#include "layers/graph/axis_map.h"

/* Whether input position i is read by an output position of `out`. O(taps). */
static bool is_read(const struct rfx_axis_map *map, int64_t i, struct rfx_range out) {
    for (int64_t t = 0; t < map->taps; t++) {
        int64_t at = i * map->up + map->pad - t * map->dilation, o = at / map->down;
        if (o * map->down == at && o >= out.lo && o < out.hi) return true;
    }
    return false;
}

struct rfx_range rfx_axis_map_trim(const struct rfx_axis_map *map, struct rfx_range out,
                                   struct rfx_range in) {
    /* Skip gaps of strides and dilations. */
    while (in.lo < in.hi && !is_read(map, in.lo, out)) in.lo++;
    while (in.lo < in.hi && !is_read(map, in.hi - 1, out)) in.hi--;
    if (in.hi < in.lo) in.hi = in.lo;
    return in;
}
