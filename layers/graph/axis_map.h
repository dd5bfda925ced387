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
    RFX_AXIS_BLOCKS,  /* positions lie in blocks of `taps`, one of which begins at -pad; each
                         output reads all of its own block. down = up = 1 */
};

struct rfx_axis_map {
    enum rfx_axis_rule rule;
    int64_t taps, dilation; /* >= 1 */
    int64_t down, up;       /* down < 0: mirrored; up >= 1 */
    int64_t pad;            /* how far the first tap of output 0 lies before the map, times up */
    bool broadcast;         /* the input has one position, which all outputs read */
};

/* Where the pixels of an axis lie among those of another: the middle of pixel o at o * step +
 * shift, the middle of pixel 0 being at 0. */
struct rfx_axis_place {
    bool known; /* false: nothing can be said, as of a map that is read wherever another one says */
    double step, shift;
};

/* Whether outputs that are moved far enough ask for inputs that are moved evenly. */
static inline bool rfx_axis_map_shifts(enum rfx_axis_rule rule) {
    return rule == RFX_AXIS_EVEN || rule == RFX_AXIS_BLOCKS;
}

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

/* Each position from all of its block; one block begins at -pad. */
static inline struct rfx_axis_map rfx_axis_map_blocks(int64_t size, int64_t pad) {
    struct rfx_axis_map map = {RFX_AXIS_BLOCKS, size, 1, 1, 1, pad, false};
    return map;
}

/* The middles of windows. Unknown where windows follow the map's size, or all read one position. */
static inline struct rfx_axis_place rfx_axis_map_place(const struct rfx_axis_map *map) {
    struct rfx_axis_place place = {false, 1.0, 0.0};
    if (map->broadcast || map->rule == RFX_AXIS_SIZED || map->rule == RFX_AXIS_ROUNDED)
        return place;
    place.known = true;
    if (map->rule == RFX_AXIS_BLOCKS) return place; /* all of its block, from where it lies */
    double reach = (double)((map->taps - 1) * map->dilation);
    place.step = (double)map->down / (double)map->up;
    place.shift = (reach / 2.0 - (double)map->pad) / (double)map->up;
    return place;
}

/* `r` made wider until it begins and ends where blocks do. Empty stays empty. */
static inline struct rfx_range rfx_axis_map_whole_blocks(const struct rfx_axis_map *map,
                                                         struct rfx_range r) {
    if (r.lo >= r.hi) return r;
    r.lo = rfx_floor_div(r.lo + map->pad, map->taps) * map->taps - map->pad;
    r.hi = rfx_ceil_div(r.hi + map->pad, map->taps) * map->taps - map->pad;
    return r;
}

/* Positions from the first to the last that a window could read, gaps between taps included, as if
 * the map had no border. Empty for an empty `out`. EVEN and BLOCKS only. (Inline: planners ask
 * millions of times.) */
static inline struct rfx_range rfx_axis_map_hull(const struct rfx_axis_map *map,
                                                 struct rfx_range out) {
    if (map->rule == RFX_AXIS_BLOCKS) return rfx_axis_map_whole_blocks(map, out);
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
 * May reach outside the map: that is padding. EVEN and BLOCKS only. Pinned by test_axis_map.c. */
static inline struct rfx_range rfx_axis_map_range(const struct rfx_axis_map *map,
                                                  struct rfx_range out) {
    const struct rfx_range one = {0, 1};
    if (map->broadcast && out.lo < out.hi) return one;
    struct rfx_range in = rfx_axis_map_hull(map, out);
    /* with up = 1 the outermost taps of the outermost outputs are its ends */
    return map->up == 1 ? in : rfx_axis_map_trim(map, out, in);
}
#endif
