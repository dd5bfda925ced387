/* How one axis of an output map depends on the same axis of an input map, as numbers.
 *
 * For a tap t in [0, taps), output position o reads the input position i that solves
 *
 *     i * up = o * down - pad + t * dilation
 *
 * Convolutions and pools have up = 1. Transposed convolutions have down = 1 and count taps from the
 * far end, see rfx_axis_map_transposed. From these numbers follow the rows that a run needs of a
 * map, receptive fields on an endless map, jumps and periods. Rows and columns are independent. */
#ifndef RFX_LAYERS_GRAPH_AXIS_MAP_H
#define RFX_LAYERS_GRAPH_AXIS_MAP_H

#include <stdbool.h>

#include "layers/core/checked.h"
#include "layers/core/rect.h"

enum rfx_axis_rule {
    RFX_AXIS_EVEN, /* the equation above: if the output range moves by `up`, the input range moves
                      by `down` */
    RFX_AXIS_ROUNDED, /* source positions are rounded to pixels; down / up is their distance per
                         output position */
    RFX_AXIS_SIZED,   /* window sizes depend on the map's size: an output position reads all of an
                         endless map */
    RFX_AXIS_BLOCKS,  /* positions lie in blocks of `taps`, one of which begins at -pad; each output
                         reads its whole block. down = up = 1 */
};

struct rfx_axis_map {
    enum rfx_axis_rule rule;
    int64_t taps, dilation; /* >= 1 */
    int64_t down, up;       /* down < 0: mirrored; up >= 1 */
    int64_t pad; /* distance from the first tap of output 0 to the start of the map, times `up` */
    bool broadcast; /* the input has one position, and all outputs read it */
};

/* Positions of an axis's pixels in the coordinates of another axis. The centre of pixel o is at o *
 * step + shift; the centre of the other axis's pixel 0 is at 0. */
struct rfx_axis_place {
    /* False: positions are unknown, as for a map that is read at computed coordinates. */
    bool known;
    double step, shift;
};

/* Whether moving an output range far enough moves the input range by a proportional distance. */
static inline bool rfx_axis_map_shifts(enum rfx_axis_rule rule) {
    return rule == RFX_AXIS_EVEN || rule == RFX_AXIS_BLOCKS;
}

/* Returns the map of an operator whose output position o reads input position o. */
static inline struct rfx_axis_map rfx_axis_map_identity(void) {
    struct rfx_axis_map map = {RFX_AXIS_EVEN, 1, 1, 1, 1, 0, false};
    return map;
}

/* Returns the map of a window of `taps` that moves over the padded input. */
static inline struct rfx_axis_map rfx_axis_map_window(int64_t taps, int64_t dilation,
                                                      int64_t stride, int64_t pad) {
    struct rfx_axis_map map = {RFX_AXIS_EVEN, taps, dilation, stride, 1, pad, false};
    return map;
}

/* Returns the map of a transposed convolution: input i adds to the outputs i * stride - cut + t *
 * dilation. */
static inline struct rfx_axis_map rfx_axis_map_transposed(int64_t taps, int64_t dilation,
                                                          int64_t stride, int64_t cut) {
    struct rfx_axis_map map = {
        RFX_AXIS_EVEN, taps, dilation, 1, stride, (taps - 1) * dilation - cut, false};
    return map;
}

/* Returns the map of an operator whose output position reads all of its block; one block begins at
 * -pad. */
static inline struct rfx_axis_map rfx_axis_map_blocks(int64_t size, int64_t pad) {
    struct rfx_axis_map map = {RFX_AXIS_BLOCKS, size, 1, 1, 1, pad, false};
    return map;
}

/* Returns the centres of the windows. They are unknown if window sizes depend on the map's size, if
 * positions are rounded, or if all outputs read one position. */
static inline struct rfx_axis_place rfx_axis_map_place(const struct rfx_axis_map *map) {
    struct rfx_axis_place place = {false, 1.0, 0.0};
    if (map->broadcast || map->rule == RFX_AXIS_SIZED || map->rule == RFX_AXIS_ROUNDED)
        return place;
    place.known = true;
    /* Reads its whole block; the centre is the position itself. */
    if (map->rule == RFX_AXIS_BLOCKS) return place;
    double reach = (double)((map->taps - 1) * map->dilation);
    place.step = (double)map->down / (double)map->up;
    place.shift = (reach / 2.0 - (double)map->pad) / (double)map->up;
    return place;
}

/* Returns `r` extended to whole blocks. An empty range stays empty. */
static inline struct rfx_range rfx_axis_map_whole_blocks(const struct rfx_axis_map *map,
                                                         struct rfx_range r) {
    if (r.lo >= r.hi) return r;
    r.lo = rfx_floor_div(r.lo + map->pad, map->taps) * map->taps - map->pad;
    r.hi = rfx_ceil_div(r.hi + map->pad, map->taps) * map->taps - map->pad;
    return r;
}

/* Returns the range from the first to the last input position that the windows of `out` cover,
 * including gaps between taps, as if the map had no border. Empty if `out` is empty. EVEN and
 * BLOCKS only. (Inline: planners call it millions of times.) */
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

/* Returns the hull `in` without the positions at its ends that no output of `out` reads. O(taps).
 */
struct rfx_range rfx_axis_map_trim(const struct rfx_axis_map *map, struct rfx_range out,
                                   struct rfx_range in);

/* Returns the smallest range that contains every input position that `out` reads; [0, 1) for a
 * broadcast axis. The range may reach outside the map: that part is padding. EVEN and BLOCKS only.
 * Pinned by test_axis_map.c. */
static inline struct rfx_range rfx_axis_map_range(const struct rfx_axis_map *map,
                                                  struct rfx_range out) {
    const struct rfx_range one = {0, 1};
    if (map->broadcast && out.lo < out.hi) return one;
    struct rfx_range in = rfx_axis_map_hull(map, out);
    /* with up = 1, the outermost taps of the outermost outputs are the hull's ends */
    return map->up == 1 ? in : rfx_axis_map_trim(map, out, in);
}
#endif
