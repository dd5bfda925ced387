/* 3x3 convolutions by Winograd's minimal filtering. With stride 1 a tile of 4x4 output pixels needs
 * 36 products in place of 144, and a tile of 2x2 needs 16 in place of 36. With stride 2 a tile of
 * 3x3 needs 49 in place of 81. The results are rounded differently from a sum of products.
 *
 * Output pixels are computed in tiles of 4x4 or 2x2 on a fixed grid of the full map. The first row
 * of tiles may begin above the map: conv_tile_rows.h. A tile reads a window of 6x6 or 4x4 input
 * pixels, which are zero outside the map. In a 4x4 tile the rounding of a pixel depends on more of
 * the window than its own 3x3: row 0 depends on rows 0 to 4 of the window, rows 1 and 2 on rows 1
 * to 4, row 3 on rows 1 to 5. The same holds for columns. `widen` requests these input pixels; NaN
 * and infinity spread over them. The other pixels of a window may be missing and are taken to be
 * zero, because they affect only output pixels that are discarded. In a 2x2 tile a pixel depends on
 * its own 3x3 only.
 *
 * With stride 2 a 7x7 window is divided into pixels of even and of odd rows and columns, counted
 * from the window's first. Even ones meet the first and the last tap; for them a tile of 3x3 output
 * pixels takes 4x4 products in place of 36. Odd ones meet the middle tap only. Together these are
 * 7x7 products with 5x5 different transformed weights per filter. Row 0 of a tile depends on rows 0
 * to 4 of the window, row 1 on its own rows, row 2 on rows 2 to 6.
 *
 * The steps for a tile: 1. The window is transformed by a fixed sequence of operations
 * (kernels/generic/winograd.c). 2. For every transformed element and output channel, one chain of
 * fused multiply-adds runs over the input channels, ascending, from 0. With more than RFX_CONV_LONG
 * channels the chain is divided into the parts of struct rfx_conv_parts. 3. The sums are
 * transformed back. 4. Bias, residual and activation follow. The bits do not depend on how many
 * tiles or which channels share a call.
 *
 * A unit transforms several tiles at a time, so that their windows stay in a core's cache, and then
 * computes a few panels of output channels at a time. Filters are packed as transformed weights
 * (called factors in the code), which take four times the bytes of the weights. If they exceed a
 * cache and the plan has no memory for them, the weights are packed untransformed. Then each unit
 * of tiles transforms them again, one panel and one slice of the input channels at a time. Both
 * layouts are in conv_winograd_pack.c. */
#include "layers/conv/winograd/conv_winograd.h"
#include "layers/core/checked.h"
#include "layers/core/floats.h"

#define LEAST_CHANNELS 16     /* with fewer, the transforms cost more than the products save */
#define LEAST_CHANNELS_2 32   /* the same for stride 2, which saves fewer products */
#define LEAST_PIXELS_4 400    /* least pixels of a map for tiles of 4x4 */
#define LEAST_PIXELS_2 64     /* and for tiles of 2x2 or 3x3 */
#define FEW_WEIGHTS (1 << 20) /* floats that about fit in a core's cache */
#define MADE_WEIGHTS (2 * FEW_WEIGHTS) /* above, transformed in the run */
#define MANY_WEIGHTS (4 * FEW_WEIGHTS)
#define LEAST_TILES 14 /* fewest tiles of a unit */

/* Returns the number of tiles of edge x edge that cover the map. Tiles that the border cuts
 * count. */
static int64_t tiles_of_map(const struct rfx_tensor *map, int64_t edge) {
    return rfx_ceil_div(map->h, edge) * rfx_ceil_div(map->w, edge);
}

/* Returns the rows and columns of a tile; 0: Winograd does not pay for this map. Transformed
 * weights are read from memory; they have 4 times the bytes of the weights for 4x4 tiles and 16/9
 * for 2x2. This pays only if the map has many pixels. In small and thin maps, much of each tile is
 * discarded. */
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
    /* positions within their tiles */
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

/* Returns whether weights are transformed during the run. Otherwise they are packed transformed and
 * read from memory again for each unit of tiles, which is faster but takes four times the bytes. */
static bool makes_factors(const struct rfx_node *node) {
    return weight_elems(node) > MADE_WEIGHTS && !node->attr.conv.keeps_factors;
}

/* Returns how many input channels are transformed at a time: all, or one part of the summation
 * order, so that sums continue from slice to slice with the same bits. The windows of a slice are
 * transformed again for each block of output channels. If weights are transformed during the run,
 * it pays to keep those of one slice in a core's cache. */
static int64_t slice_of(const struct rfx_node *node) {
    int64_t ic = node->attr.conv.ic;
    bool in_parts = ic > RFX_CONV_LONG && ic % RFX_CONV_PART == 0;
    return makes_factors(node) && in_parts ? RFX_CONV_PART : ic;
}

/* Returns the most tiles of a unit. Each unit reads or transforms all weights again, so more
 * weights call for more tiles. Large packed transformed weights are read as fast as the products
 * use them. For them the tiles' own memory decides: 56 tiles, or 28 for a small map, are as fast as
 * 126. */
static int64_t most_tiles(const struct rfx_node *node) {
    int64_t elems = weight_elems(node), all = tiles_of_map(&node->out, tile_edge(node));
    bool kept = elems > MANY_WEIGHTS && !makes_factors(node);
    int64_t most = elems <= FEW_WEIGHTS                            ? 28
                   : elems <= MANY_WEIGHTS && !makes_factors(node) ? 42
                   : kept                                          ? 56
                   : slice_of(node) == node->attr.conv.ic          ? 70
                                                                   : 128;
    if (tile_edge(node) == 3) most = most * 3 / 4; /* whose windows take a third more memory */
    if (kept) most = rfx_min_i64(most, rfx_max_i64(LEAST_TILES, rfx_ceil_div(all, 2)));
    return rfx_min_i64(most, all);
}

/* Returns the floats from tile to tile: an odd number of whole vectors, so that tiles do not
 * compete for one set of a cache. */
static int64_t tile_step(int64_t channels) {
    return rfx_conv_filled(channels) +
           (rfx_conv_filled(channels) / RFX_CONV_LANES % 2 == 0 ? RFX_CONV_LANES : 0);
}

static size_t space_bytes(int64_t floats) {
    return rfx_align_up(rfx_floats_bytes(floats));
}

/* Returns the fields that depend on the node alone. */
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
    if (w.makes_factors) /* for one panel, plus the space of one more product (multiply_made) */
        w.factors_bytes =
            space_bytes((w.factors + 1) * (w.slice * RFX_CONV_PANEL + RFX_WINOGRAD_PAD));
    return w;
}

static size_t winograd_scratch(const struct rfx_graph *graph, const struct rfx_node *node) {
    struct rfx_winograd w = sizes_of(node);
    (void)graph;
    return w.outside_bytes + w.in_bytes + w.sums_bytes + w.factors_bytes;
}

/* If there are several slices, the windows are transformed again for each block of output
 * channels. */
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

/* Divides the work among the threads. Each unit of tiles reads all weights. So, with many weights,
 * there are no more units than the scratch size requires; if threads lack work, the output channels
 * are divided, and each part transforms the windows again. With few weights, the units are made
 * small enough for all threads to have some. */
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
    .in_place = true, /* a residual pixel is read just before its sum is written */
    .run = winograd_run,
};
