/* Convolutions of 3x3, stride 1, by Winograd's minimal filtering: 36 products for 16 output pixels
 * in place of 144, or 16 for 4 in place of 36. Other roundings than a sum of products has.
 *
 * Output pixels are made by tiles of 4x4 or 2x2 on a fixed grid of the full map, from windows of
 * 6x6 or 4x4 input pixels (zero outside the map). In a tile of 4x4 a pixel is rounded by way of
 * more of the window than its own 3x3: row 0 by way of the window's rows 0 to 4, rows 1 and 2 of 1
 * to 4, row 3 of 1 to 5, and columns likewise. That is what `widen` asks for; NaN and infinity
 * reach as far. What else of a window is not at hand may be anything and is taken to be zero: it
 * reaches only pixels that are thrown away. In a tile of 2x2 a pixel sees its own 3x3 alone.
 *
 * A tile: the window is transformed (fixed sequences, kernels/generic/winograd.c); of every
 * transformed element and output channel one chain of fused multiply-adds over the input channels,
 * ascending, from 0 (of more than RFX_CONV_LONG channels the parts of struct rfx_conv_parts); the
 * transform back; bias; residual; activation. How many tiles share a call, and which channels,
 * touches no bits.
 *
 * Some tiles at a time, so that their transformed windows stay in a core's cache, then a few panels
 * of output channels at a time. Packed weights: [product][panel][ic][channel of the panel]. */
#include <math.h>
#include <string.h>

#include "layers/conv/conv_backend.h"
#include "layers/core/checked.h"
#include "layers/core/floats.h"

#define LEAST_CHANNELS 16     /* below, the transforms cost what the products save */
#define LEAST_PIXELS_4 400    /* of a map that is cut into 4x4, */
#define LEAST_PIXELS_2 64     /* and into 2x2 */
#define FEW_WEIGHTS (1 << 20) /* that a core's cache holds about */
#define MOST_WINDOW 36        /* pixels, and products */
#define OUT_CHANNELS 128      /* whose sums wait for the transform back */
#define STEP_PAD 16           /* floats: keeps products apart in the sets of a cache */

struct winograd {
    const struct rfx_conv_job *job;
    int64_t outputs, products; /* 2 or 4, and (outputs + 2)^2 */
    int64_t ty0, tx0, across, tiles;
    int64_t units, panel_parts;  /* work: of tiles, of output channels */
    struct rfx_rect there;       /* of the input */
    int64_t in_step, out_step;   /* floats from tile to tile */
    int64_t in_plane, out_plane; /* and from product to product */
};

/* Of one thread. */
struct space {
    float *outside; /* ic zeros */
    float *in, *sums;
};

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
    int64_t by_4 = 36 * tiles_of_map(map, 4), by_2 = 16 * tiles_of_map(map, 2);
    if (pixels >= LEAST_PIXELS_4 && by_4 <= by_2) return 4;
    return pixels >= LEAST_PIXELS_2 && 10 * by_2 <= 7 * 9 * pixels ? 2 : 0;
}

static struct rfx_conv_block winograd_block(const struct rfx_graph *graph,
                                            const struct rfx_node *node) {
    (void)graph;
    struct rfx_conv_block block = {tile_edge(node), tile_edge(node)};
    return block;
}

static struct rfx_range winograd_widen(const struct rfx_node *node, struct rfx_range out) {
    if (tile_edge(node) != 4) return out;
    struct rfx_range wide = {out.lo % 4 == 0 ? out.lo : out.lo / 4 * 4 + 1,
                             out.hi % 4 == 0 ? out.hi : out.hi / 4 * 4 + 3};
    return wide;
}

static int64_t product_count(const struct rfx_node *node) {
    int64_t n = tile_edge(node) + 2;
    return n * n;
}

static int64_t weight_elems(const struct rfx_node *node) {
    return product_count(node) * node->attr.conv.ic * node->attr.conv.oc;
}

/* Tiles of a unit, at most. Weights are read anew for each unit: the more there are, the more
 * tiles. */
static int64_t most_tiles(const struct rfx_node *node) {
    int64_t elems = weight_elems(node);
    int64_t most = elems <= FEW_WEIGHTS ? 28 : elems <= 4 * FEW_WEIGHTS ? 42 : 70;
    return rfx_min_i64(most, tiles_of_map(&node->out, tile_edge(node)));
}

static int64_t out_channels(const struct rfx_conv_attr *a) {
    return rfx_min_i64(OUT_CHANNELS, rfx_conv_filled(a->oc));
}

/* Floats from tile to tile: whole vectors, and an odd number of them, so that tiles do not meet in
 * one set of a cache. */
static int64_t tile_step(int64_t channels) {
    return rfx_conv_filled(channels) +
           (rfx_conv_filled(channels) / RFX_CONV_LANES % 2 == 0 ? RFX_CONV_LANES : 0);
}

static void set_steps(struct winograd *w, const struct rfx_node *node) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    w->outputs = tile_edge(node);
    w->products = product_count(node);
    w->in_step = tile_step(a->ic);
    w->out_step = tile_step(out_channels(a));
    w->in_plane = most_tiles(node) * w->in_step + STEP_PAD;
    w->out_plane = most_tiles(node) * w->out_step + STEP_PAD;
}

static size_t outside_bytes(const struct rfx_conv_attr *a) {
    return rfx_align_up(rfx_floats_bytes(rfx_conv_filled(a->ic)));
}

static size_t winograd_scratch(const struct rfx_graph *graph, const struct rfx_node *node) {
    struct winograd w;
    (void)graph;
    set_steps(&w, node);
    return outside_bytes(&node->attr.conv) +
           rfx_align_up(rfx_floats_bytes(w.products * w.in_plane)) +
           rfx_align_up(rfx_floats_bytes(w.products * w.out_plane));
}

static struct space space_of(const struct winograd *w, int thread) {
    char *at = rfx_conv_thread_scratch(w->job, thread);
    struct space s = {.outside = (float *)(void *)at};
    at += outside_bytes(w->job->a);
    s.in = (float *)(void *)at;
    s.sums = (float *)(void *)(at + rfx_align_up(rfx_floats_bytes(w->products * w->in_plane)));
    return s;
}

/* The pixels of output tile t, counted from the first of the job, cut off where the map ends. */
static struct rfx_rect tile_rect(const struct winograd *w, int64_t t) {
    int64_t y = (w->ty0 + t / w->across) * w->outputs, x = (w->tx0 + t % w->across) * w->outputs;
    return rfx_rect_make(y, y + w->outputs, x, x + w->outputs);
}

/* Those of them that are asked for. */
static struct rfx_rect wanted_of(const struct winograd *w, int64_t t) {
    return rfx_rect_intersect(tile_rect(w, t), w->job->args->rect);
}

static void transform_in(const struct winograd *w, const struct space *s, int64_t t, float *out) {
    const struct rfx_conv_job *job = w->job;
    const struct rfx_view *in = &job->args->in[0];
    const float *pixels[MOST_WINDOW];
    struct rfx_rect tile = tile_rect(w, t);
    int64_t n = w->outputs + 2, ix = tile.x0 - job->a->pads.left;
    for (int64_t y = 0; y < n; y++) {
        int64_t iy = tile.y0 - job->a->pads.top + y;
        bool row = iy >= w->there.y0 && iy < w->there.y1;
        const float *from = row ? rfx_view_at(in, iy, ix) : NULL;
        for (int64_t x = 0; x < n; x++) {
            bool there = row && ix + x >= w->there.x0 && ix + x < w->there.x1;
            pixels[y * n + x] = there ? from + x * in->c : s->outside;
        }
    }
    const struct rfx_winograd_in window = {
        .pixels = pixels,
        .out = out,
        .c = job->a->ic,
        .step = w->in_plane,
        .outputs = w->outputs,
        .ahead = w->outputs * in->c, /* the next tile's */
    };
    job->kernels->winograd_in(&window);
}

/* Channels [first, first + c) of tile t. */
static void transform_out(const struct winograd *w, const float *sums, int64_t t, int64_t first,
                          int64_t c) {
    const struct rfx_run_args *args = w->job->args;
    const float *residual[MOST_WINDOW] = {NULL};
    float *out[MOST_WINDOW] = {NULL};
    struct rfx_rect tile = tile_rect(w, t), wanted = wanted_of(w, t);
    for (int64_t y = wanted.y0; y < wanted.y1; y++)
        for (int64_t x = wanted.x0; x < wanted.x1; x++) {
            int64_t i = (y - tile.y0) * w->outputs + x - tile.x0;
            out[i] = rfx_view_at(&args->out, y, x);
            if (args->node->residual) residual[i] = rfx_view_at(&args->in[1], y, x);
        }
    const struct rfx_winograd_out back = {
        .sums = sums,
        .bias = w->job->epilogue.bias,
        .residual = args->node->residual ? residual : NULL,
        .out = out,
        .first = first,
        .c = c,
        .step = w->out_plane,
        .outputs = w->outputs,
        .lo = w->job->lo,
        .hi = w->job->hi,
    };
    w->job->kernels->winograd_out(&back);
}

/* Product i of `tiles` tiles and the output channels [first, first + filled). */
static void multiply(const struct winograd *w, const struct space *s, int64_t i, int64_t tiles,
                     int64_t first, int64_t filled) {
    static const float zeros[OUT_CHANNELS];
    const struct rfx_conv_attr *a = w->job->a;
    const float *rows[1] = {s->in + i * w->in_plane};
    const struct rfx_conv_run run = {
        .rows = rows,
        .weights = w->job->weights + (i * rfx_conv_filled(a->oc) + first) * a->ic,
        .bias = zeros,
        .out = s->sums + i * w->out_plane,
        .pixels = tiles,
        .m = filled,
        .ic = a->ic,
        .kh = 1,
        .kw = 1,
        .kx1 = 1,
        .x_stride = w->in_step,
        .tap_stride = a->ic,
        .out_stride = w->out_step,
        .lo = -INFINITY,
        .hi = INFINITY,
    };
    w->job->kernels->conv(&run);
}

/* Output channels `of` tiles, whose windows have been transformed. */
static void make_channels(const struct winograd *w, const struct space *s, struct rfx_range tiles,
                          struct rfx_range of) {
    for (int64_t first = of.lo; first < of.hi; first += out_channels(w->job->a)) {
        int64_t c = rfx_min_i64(out_channels(w->job->a), of.hi - first);
        for (int64_t i = 0; i < w->products; i++)
            multiply(w, s, i, rfx_range_size(tiles), first, rfx_conv_filled(c));
        for (int64_t t = tiles.lo; t < tiles.hi; t++)
            transform_out(w, s->sums + (t - tiles.lo) * w->out_step, t, first, c);
    }
}

static void make_unit(void *user, int64_t index, int thread) {
    const struct winograd *w = user;
    struct space s = space_of(w, thread);
    int64_t oc = w->job->a->oc;
    struct rfx_range all = {0, w->tiles}, panels = {0, rfx_ceil_div(oc, RFX_CONV_PANEL)};
    struct rfx_range tiles = rfx_range_part(all, index / w->panel_parts, w->units);
    panels = rfx_range_part(panels, index % w->panel_parts, w->panel_parts);
    struct rfx_range of = {panels.lo * RFX_CONV_PANEL, rfx_min_i64(panels.hi * RFX_CONV_PANEL, oc)};
    memset(s.outside, 0, outside_bytes(w->job->a));
    for (int64_t t = tiles.lo; t < tiles.hi; t++)
        transform_in(w, &s, t, s.in + (t - tiles.lo) * w->in_step);
    make_channels(w, &s, tiles, of);
    for (int64_t t = tiles.lo; t < tiles.hi; t++)
        rfx_conv_activate(w->job, wanted_of(w, t), of.lo, of.hi);
}

/* Weights are read for each unit of tiles: no more units than scratch asks for where weights are
 * many, and what threads lack of work comes from cutting the output channels, for each part of
 * which windows are transformed again. Else units are small enough for all threads to have some. */
static void cut_work(struct winograd *w, const struct rfx_node *node, int threads) {
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
    struct winograd w = {.job = job};
    set_steps(&w, args->node);
    w.ty0 = args->rect.y0 / w.outputs;
    w.tx0 = args->rect.x0 / w.outputs;
    w.across = rfx_ceil_div(args->rect.x1, w.outputs) - w.tx0;
    w.tiles = (rfx_ceil_div(args->rect.y1, w.outputs) - w.ty0) * w.across;
    w.there = rfx_rect_intersect(rfx_op_in_rect(args->graph, args->node, 0, args->rect),
                                 rfx_rect_full(job->rows.in, job->cols.in));
    cut_work(&w, args->node, args->threads);
    rfx_team_for(args->team, w.units * w.panel_parts, make_unit, &w);
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
    if (a->sh != 1 || a->sw != 1)
        return rfx_conv_refuse(why, size, "stride %lldx%lld, not 1x1", (long long)a->sh,
                               (long long)a->sw);
    if (a->dh != 1 || a->dw != 1)
        return rfx_conv_refuse(why, size, "dilation %lldx%lld, not 1x1", (long long)a->dh,
                               (long long)a->dw);
    if (a->ic < LEAST_CHANNELS || a->oc < LEAST_CHANNELS)
        return rfx_conv_refuse(why, size, "%lld input and %lld output channels: not %d of each",
                               (long long)a->ic, (long long)a->oc, LEAST_CHANNELS);
    if (tile_edge(node) == 0)
        return rfx_conv_refuse(why, size, "a map of %lldx%lld has too few whole tiles",
                               (long long)node->out.h, (long long)node->out.w);
    return true;
}

static size_t winograd_packed_bytes(const struct rfx_graph *graph, const struct rfx_node *node) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    (void)graph;
    return rfx_align_up(rfx_floats_bytes(product_count(node) * rfx_conv_filled(a->oc) * a->ic));
}

static enum rfx_status winograd_pack(const struct rfx_conv_pack_job *job, struct rfx_error *err) {
    return rfx_conv_winograd_pack(job, tile_edge(job->node), err);
}

const struct rfx_conv_backend rfx_conv_winograd = {
    .name = "winograd",
    .accepts = winograd_accepts,
    .block = winograd_block,
    .widen = winograd_widen,
    .packed_bytes = winograd_packed_bytes,
    .pack = winograd_pack,
    .scratch_bytes = winograd_scratch,
    .in_place = true, /* a residual is read where the sum is written */
    .run = winograd_run,
};
