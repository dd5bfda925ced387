/* Ranges from the numbers of an axis map; see axis_map.h. */
#include "layers/axis_map.h"

#include "layers/checked.h"

struct rfx_range rfx_axis_map_hull(const struct rfx_axis_map *map, struct rfx_range out) {
    int64_t first = map->down > 0 ? out.lo : out.hi - 1, last = map->down > 0 ? out.hi - 1 : out.lo;
    if (out.lo >= out.hi) first = last = out.lo;
    int64_t reach = (map->taps - 1) * map->dilation;
    struct rfx_range in = {rfx_ceil_div(first * map->down - map->pad, map->up),
                           rfx_floor_div(last * map->down - map->pad + reach, map->up) + 1};
    if (out.lo >= out.hi) in.hi = in.lo;
    return in;
}

/* Whether input position i is read by an output position of `out`. O(taps). */
static bool is_read(const struct rfx_axis_map *map, int64_t i, struct rfx_range out) {
    for (int64_t t = 0; t < map->taps; t++) {
        int64_t at = i * map->up + map->pad - t * map->dilation, o = at / map->down;
        if (o * map->down == at && o >= out.lo && o < out.hi) return true;
    }
    return false;
}

struct rfx_range rfx_axis_map_range(const struct rfx_axis_map *map, struct rfx_range out) {
    const struct rfx_range one = {0, 1};
    if (map->broadcast && out.lo < out.hi) return one;
    struct rfx_range in = rfx_axis_map_hull(map, out);
    if (map->up == 1) return in; /* the outermost taps of the outermost outputs are its ends */
    while (in.lo < in.hi && !is_read(map, in.lo, out)) in.lo++; /* gaps of strides, dilations */
    while (in.lo < in.hi && !is_read(map, in.hi - 1, out)) in.hi--;
    if (in.hi < in.lo) in.hi = in.lo;
    return in;
}
