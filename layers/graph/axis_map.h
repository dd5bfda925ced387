/* How one axis of an output map follows from the same axis of an input map, as numbers.
 *
 * Output position o reads the input positions i that solve, for a tap t in [0, taps),
 *
 *     i * up = o * down - pad + t * dilation
 *
 * Convolutions and pools have up = 1, transposed ones down = 1 (and count taps from the far end,
 * see rfx_axis_map_transposed). What a run needs of a map, what a receptive field sees on an
 * endless one, jumps and periods all follow from these numbers. Rows and columns are independent.
 */
#ifndef RFX_LAYERS_GRAPH_AXIS_MAP_H
#define RFX_LAYERS_GRAPH_AXIS_MAP_H

#include <stdbool.h>

#include "layers/core/checked.h"
#include "layers/core/rect.h"

enum rfx_axis_rule {
    RFX_AXIS_EVEN, /* the equation above: an output moved by `up` asks for input moved by `down` */
    RFX_AXIS_ROUNDED, /* source positions are rounded to pixels; down / up says how fast they move
                       */
    RFX_AXIS_SIZED,   /* windows follow the size of the map: an endless one would be seen whole */
};

struct rfx_axis_map {
    enum rfx_axis_rule rule;
    int64_t taps, dilation; /* >= 1 */
    int64_t down, up;       /* down < 0: mirrored; up >= 1 */
    int64_t pad;            /* how far the first tap of output 0 lies before the map, times up */
    bool broadcast;         /* the input has one position, which all outputs read */
};

/* Each position from the same position. */
static inline struct rfx_axis_map rfx_axis_map_identity(void) {
    struct rfx_axis_map map = {RFX_AXIS_EVEN, 1, 1, 1, 1, 0, false};
    return map;
}

/* A window of taps moved over the padded map. */
static inline struct rfx_axis_map rfx_axis_map_window(int64_t taps, int64_t dilation,
                                                      int64_t stride, int64_t pad) {
    struct rfx_axis_map map = {RFX_AXIS_EVEN, taps, dilation, stride, 1, pad, false};
    return map;
}

/* Input i adds to the outputs i * stride - cut + t * dilation. */
static inline struct rfx_axis_map rfx_axis_map_transposed(int64_t taps, int64_t dilation,
                                                          int64_t stride, int64_t cut) {
    struct rfx_axis_map map = {
        RFX_AXIS_EVEN, taps, dilation, 1, stride, (taps - 1) * dilation - cut, false};
    return map;
}

/* Positions from the first to the last that a window could read, gaps between taps included, as if
 * the map had no border. Empty for an empty `out`. EVEN only. (Inline: planners ask millions of
 * times.) */
static inline struct rfx_range rfx_axis_map_hull(const struct rfx_axis_map *map,
                                                 struct rfx_range out) {
    int64_t first = map->down > 0 ? out.lo : out.hi - 1, last = map->down > 0 ? out.hi - 1 : out.lo;
    if (out.lo >= out.hi) first = last = out.lo;
    int64_t reach = (map->taps - 1) * map->dilation;
    struct rfx_range in = {first * map->down - map->pad, last * map->down - map->pad + reach};
    if (map->up != 1) {
        in.lo = rfx_ceil_div(in.lo, map->up);
        in.hi = rfx_floor_div(in.hi, map->up);
    }
    in.hi = out.lo < out.hi ? in.hi + 1 : in.lo;
    return in;
}

/* A hull without the positions at its ends that no output of `out` reads. O(taps). */
struct rfx_range rfx_axis_map_trim(const struct rfx_axis_map *map, struct rfx_range out,
                                   struct rfx_range in);

/* The smallest range that holds every position that `out` does read; [0, 1) of a broadcast axis.
 * May reach outside the map: that is padding. EVEN only. Pinned by test_axis_map.c. */
static inline struct rfx_range rfx_axis_map_range(const struct rfx_axis_map *map,
                                                  struct rfx_range out) {
    const struct rfx_range one = {0, 1};
    if (map->broadcast && out.lo < out.hi) return one;
    struct rfx_range in = rfx_axis_map_hull(map, out);
    /* with up = 1 the outermost taps of the outermost outputs are its ends */
    return map->up == 1 ? in : rfx_axis_map_trim(map, out, in);
}
#endif
