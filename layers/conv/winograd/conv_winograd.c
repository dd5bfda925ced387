/* Convolutions of 3x3 by Winograd's minimal filtering: with stride 1 36 products for 16 output
 * pixels in place of 144, or 16 for 4 in place of 36; with stride 2 49 for 9 in place of 81. Other
 * roundings than a sum of products has.
 *
 * Output pixels are made by tiles of 4x4 or 2x2 on a fixed grid of the full map (whose first row of
 * tiles may begin above it: conv_tile_rows.h), from windows of 6x6 or 4x4 input pixels (zero
 * outside the map). In a tile of 4x4 a pixel is rounded by way of more of the window than its own
 * 3x3: row 0 by way of the window's rows 0 to 4, rows 1 and 2 of 1 to 4, row 3 of 1 to 5, and
 * columns likewise. That is what `widen` asks for; NaN and infinity reach as far. What else of a
 * window is not at hand may be anything and is taken to be zero: it reaches only pixels that are
 * thrown away. In a tile of 2x2 a pixel sees its own 3x3 alone.
 *
 * With stride 2 pixels of even and of odd rows and columns, counted over a window of 7x7, meet taps
 * of their own: the even ones the first and the last, for which a tile of 3x3 output pixels takes
 * 4x4 products in place of 36, the odd ones the middle tap alone; 7 by 7 products in all, with 5 by
 * 5 different factors. Row 0 is rounded by way of the window's rows 0 to 4, row 1 of its own, row 2
 * of 2 to 6.
 *
 * A tile: the window is transformed (fixed sequences, kernels/generic/winograd.c); of every
 * transformed element and output channel one chain of fused multiply-adds over the input channels,
 * ascending, from 0 (of more than RFX_CONV_LONG channels the parts of struct rfx_conv_parts); the
 * transform back; bias; residual; activation. How many tiles share a call, and which channels,
 * touches no bits.
 *
 * Some tiles at a time, so that their transformed windows stay in a core's cache, then a few panels
 * of output channels at a time. Filters are packed as factors; where these are more than a cache
 * holds, four times the weights' bytes, they are made for each unit of tiles from the weights
 * instead, a panel's at a time, of one slice of the input channels after the other
 * (conv_winograd_pack.c has both layouts), unless the plan has room for them. */
#include "layers/conv/winograd/conv_winograd.h"
#include "layers/core/checked.h"
#include "layers/core/floats.h"

#define LEAST_CHANNELS 16              /* below, the transforms cost what the products save; */
#define LEAST_CHANNELS_2 32            /* with stride 2, where these are fewer */
#define LEAST_PIXELS_4 400             /* of a map that is cut into 4x4, */
#define LEAST_PIXELS_2 64              /* and into 2x2 or 3x3 */
#define FEW_WEIGHTS (1 << 20)          /* that a core's cache holds about */
#define MADE_WEIGHTS (2 * FEW_WEIGHTS) /* factors are made where the plan has no room for more */
#define MANY_WEIGHTS (4 * FEW_WEIGHTS)
#define LEAST_TILES 14 /* that are multiplied together */

/* Tiles of edge x edge that cover the map, cut ones included. */
static int64_t tiles_of_map(const struct rfx_tensor *map, int64_t edge) {
    return rfx_ceil_div(map->h, edge) * rfx_ceil_div(map->w, edge);
}

/* Rows and columns of a tile; 0: the map is better off without. Factors are read from memory, four
 * times the weights' bytes for tiles of 4x4 and 16/9 for 2x2: that pays where pixels are many. Of
 * small and of thin maps much of a tile is thrown away. */
static int64_t tile_edge(const struct rfx_node *node) {
    const struct rfx_tensor *map = &node->out;
    int64_t pixels = map->h * map->w;
    if (node->attr.conv.sh == 2) {
        bool pays = 10 * 49 * tiles_of_map(map, 3) <= 7 * 9 * pixels;
        return pixels >= LEAST_PIXELS_2 && pays ? 3 : 0;
    }
    int64_t by_4 = 36 * tiles_of_map(map, 4), by_2 = 16 * tiles_of_map(map, 2);
    if (pixels >= LEAST_PIXELS_4 && by_4 <= by_2) return 4;
    return pixels >= LEAST_PIXELS_2 && 10 * by_2 <= 7 * 9 * pixels ? 2 : 0;
}

static struct rfx_conv_block winograd_block(const struct rfx_graph *graph,
                                            const struct rfx_node *node) {
    (void)graph;
    struct rfx_conv_block block = {tile_edge(node), tile_edge(node), node->attr.conv.tiles_from};
    return block;
}

static struct rfx_range winograd_widen(const struct rfx_node *node, int axis,
                                       struct rfx_range out) {
    int64_t edge = tile_edge(node), from = axis == 0 ? node->attr.conv.tiles_from : 0;
    if (edge == 2) return out;
    /* places in their tiles */
    int64_t lo = out.lo - from - rfx_floor_div(out.lo - from, edge) * edge;
    int64_t hi = out.hi - from - rfx_floor_div(out.hi - from, edge) * edge;
    struct rfx_range wide = {out.lo - (edge == 3 ? lo == 2
                                       : lo == 0 ? 0
                                                 : lo - 1),
                             out.hi + (edge == 3 ? hi == 1
                                       : hi == 0 ? 0
                                                 : 3 - hi)};
    return wide;
}

static int64_t factor_count(const struct rfx_node *node) {
    int64_t n = rfx_winograd_factors(tile_edge(node));
    return n * n;
}

static int64_t weight_elems(const struct rfx_node *node) {
    return factor_count(node) * node->attr.conv.ic * node->attr.conv.oc;
}

/* Whether factors are made while they are used: else they are read from memory, again for each unit
 * of tiles, which takes less time, but four times the bytes. */
static bool makes_factors(const struct rfx_node *node) {
    return weight_elems(node) > MADE_WEIGHTS && !node->attr.conv.keeps_factors;
}

/* Input channels whose windows are transformed at a time: all, or a part of the sums, so that sums
 * go on from slice to slice as they would in one. Slices are transformed again for every few output
 * channels; where factors are made it pays to have those of a slice in a core's cache. */
static int64_t slice_of(const struct rfx_node *node) {
    int64_t ic = node->attr.conv.ic;
    bool in_parts = ic > RFX_CONV_LONG && ic % RFX_CONV_PART == 0;
    return makes_factors(node) && in_parts ? RFX_CONV_PART : ic;
}

/* Tiles of a unit, at most. Weights are read anew for each unit, or factors made: the more there
 * are, the more tiles. Many factors that are kept are read as fast as products take them, so that
 * what tiles take decides: 56, or 28 of a small map, are as fast as 126. */
static int64_t most_tiles(const struct rfx_node *node) {
    int64_t elems = weight_elems(node), all = tiles_of_map(&node->out, tile_edge(node));
    bool kept = elems > MANY_WEIGHTS && !makes_factors(node);
    int64_t most = elems <= FEW_WEIGHTS                            ? 28
                   : elems <= MANY_WEIGHTS && !makes_factors(node) ? 42
                   : kept                                          ? 56
                   : slice_of(node) == node->attr.conv.ic          ? 70
                                                                   : 128;
    if (tile_edge(node) == 3) most = most * 3 / 4; /* which take a third more */
    if (kept) most = rfx_min_i64(most, rfx_max_i64(LEAST_TILES, rfx_ceil_div(all, 2)));
    return rfx_min_i64(most, all);
}

/* Floats from tile to tile: whole vectors, and an odd number of them, so that tiles do not meet in
 * one set of a cache. */
static int64_t tile_step(int64_t channels) {
    return rfx_conv_filled(channels) +
           (rfx_conv_filled(channels) / RFX_CONV_LANES % 2 == 0 ? RFX_CONV_LANES : 0);
}

static size_t space_bytes(int64_t floats) {
    return rfx_align_up(rfx_floats_bytes(floats));
}

/* All that follows from the node. */
static struct rfx_winograd sizes_of(const struct rfx_node *node) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    struct rfx_winograd w = {
        .outputs = tile_edge(node),
        .window = rfx_winograd_window(tile_edge(node)),
        .factors = factor_count(node),
        .makes_factors = makes_factors(node),
        .out_channels = rfx_min_i64(RFX_WINOGRAD_OUT_CHANNELS, rfx_conv_filled(a->oc)),
        .slice = slice_of(node),
        .slices = a->ic / slice_of(node),
    };
    w.products = w.window * w.window;
    w.in_step = tile_step(w.slice);
    w.out_step = tile_step(w.out_channels);
    w.in_plane = most_tiles(node) * w.in_step + RFX_WINOGRAD_PAD;
    w.out_plane = most_tiles(node) * w.out_step + RFX_WINOGRAD_PAD;
    w.outside_bytes = space_bytes(rfx_conv_filled(w.slice));
    w.in_bytes = space_bytes(w.products * w.in_plane);
    w.sums_bytes = space_bytes(w.products * w.out_plane);
    if (w.makes_factors) /* a panel's, and as much again as one product has (multiply_made) */
        w.factors_bytes =
            space_bytes((w.factors + 1) * (w.slice * RFX_CONV_PANEL + RFX_WINOGRAD_PAD));
    return w;
}

static size_t winograd_scratch(const struct rfx_graph *graph, const struct rfx_node *node) {
    struct rfx_winograd w = sizes_of(node);
    (void)graph;
    return w.outside_bytes + w.in_bytes + w.sums_bytes + w.factors_bytes;
}

/* Of slices, windows are transformed for each part of the output channels. */
static struct rfx_conv_tiles winograd_tiles(const struct rfx_node *node) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    struct rfx_winograd w = sizes_of(node);
    int64_t filled = rfx_conv_filled(a->oc);
    int64_t times = w.slices > 1 ? rfx_ceil_div(filled, w.out_channels) : 1;
    struct rfx_conv_tiles tiles = {
        .edge = w.outputs,
        .together = most_tiles(node),
        .products = w.products * a->ic * filled,
        .transformed = w.products * (times * a->ic + filled),
        .made = w.makes_factors ? w.factors * a->ic * filled : 0,
    };
    return tiles;
}

/* Weights are read for each unit of tiles: no more units than scratch asks for where weights are
 * many, and what threads lack of work comes from cutting the output channels, for each part of
 * which windows are transformed again. Else units are small enough for all threads to have some. */
static void cut_work(struct rfx_winograd *w, const struct rfx_node *node, int threads) {
    int64_t most = most_tiles(node), panels = rfx_ceil_div(node->out.c, RFX_CONV_PANEL);
    w->units = rfx_ceil_div(w->tiles, most);
    w->panel_parts = 1;
    if (threads == 1) return;
    if (weight_elems(node) > FEW_WEIGHTS && w->units < threads) {
        while (w->units * w->panel_parts % threads != 0 && w->panel_parts < panels)
            w->panel_parts++;
        return;
    }
    int64_t more = rfx_min_i64((int64_t)RFX_UNITS_PER_THREAD * threads, w->tiles / (most / 2));
    int64_t units = rfx_ceil_div(rfx_max_i64(w->units, more), threads) * threads;
    w->units = rfx_min_i64(w->tiles, units);
}

static void winograd_run(const struct rfx_conv_job *job) {
    const struct rfx_run_args *args = job->args;
    struct rfx_winograd w = sizes_of(args->node);
    w.job = job;
    w.from = args->node->attr.conv.tiles_from;
    w.ty0 = rfx_floor_div(args->rect.y0 - w.from, w.outputs);
    w.tx0 = args->rect.x0 / w.outputs;
    w.across = rfx_ceil_div(args->rect.x1, w.outputs) - w.tx0;
    w.tiles = (rfx_ceil_div(args->rect.y1 - w.from, w.outputs) - w.ty0) * w.across;
    w.there = rfx_rect_intersect(rfx_op_in_rect(args->graph, args->node, 0, args->rect),
                                 rfx_rect_full(job->rows.in, job->cols.in));
    cut_work(&w, args->node, args->threads);
    rfx_team_for(args->team, w.units * w.panel_parts, rfx_winograd_make_unit, &w);
}

static bool winograd_accepts(const struct rfx_graph *graph, const struct rfx_node *node, char *why,
                             size_t size) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    if (graph->conv != RFX_CONV_WINOGRAD)
        return rfx_conv_refuse(why, size, "winograd is not asked for");
    if (!rfx_conv_own_kernels(graph, why, size)) return false;
    if (a->groups != 1)
        return rfx_conv_refuse(why, size, "%lld groups, not 1", (long long)a->groups);
    if (a->kh != 3 || a->kw != 3)
        return rfx_conv_refuse(why, size, "a kernel of %lldx%lld, not 3x3", (long long)a->kh,
                               (long long)a->kw);
    if (a->sh != a->sw || a->sh > 2)
        return rfx_conv_refuse(why, size, "stride %lldx%lld, not 1x1 or 2x2", (long long)a->sh,
                               (long long)a->sw);
    if (a->dh != 1 || a->dw != 1)
        return rfx_conv_refuse(why, size, "dilation %lldx%lld, not 1x1", (long long)a->dh,
                               (long long)a->dw);
    int least = a->sh == 2 ? LEAST_CHANNELS_2 : LEAST_CHANNELS;
    if (a->ic < least || a->oc < least)
        return rfx_conv_refuse(why, size, "%lld input and %lld output channels: not %d of each",
                               (long long)a->ic, (long long)a->oc, least);
    if (tile_edge(node) == 0)
        return rfx_conv_refuse(why, size, "a map of %lldx%lld has too few whole tiles",
                               (long long)node->out.h, (long long)node->out.w);
    return true;
}

static size_t winograd_packed_bytes(const struct rfx_graph *graph, const struct rfx_node *node) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    int64_t filled = rfx_conv_filled(a->oc);
    (void)graph;
    if (makes_factors(node))
        return rfx_align_up(rfx_floats_bytes(filled * a->ic * RFX_WINOGRAD_TAPS));
    return rfx_align_up(rfx_floats_bytes(factor_count(node) * filled * a->ic));
}

static enum rfx_status winograd_pack(const struct rfx_conv_pack_job *job, struct rfx_error *err) {
    return rfx_winograd_pack(job, tile_edge(job->node), makes_factors(job->node), err);
}

const struct rfx_conv_backend rfx_conv_winograd = {
    .name = "winograd",
    .accepts = winograd_accepts,
    .block = winograd_block,
    .widen = winograd_widen,
    .packed_bytes = winograd_packed_bytes,
    .pack = winograd_pack,
    .scratch_bytes = winograd_scratch,
    .tiles = winograd_tiles,
    .in_place = true, /* a residual is read where the sum is written */
    .run = winograd_run,
};
