/* Computes one work item of a Winograd convolution: a unit of tiles and a part of the output
 * channels. */
#include <math.h>
#include <string.h>

#include "layers/conv/winograd/conv_winograd.h"

/* The areas of one thread's scratch. */
struct space {
    float *outside; /* zeros, as many as a slice has channels: a pixel outside the map */
    float *in, *sums;
    float *factors; /* transformed weights of a panel */
};

static struct space space_of(const struct rfx_winograd *w, int thread) {
    char *outside = rfx_conv_thread_scratch(w->job, thread), *in = outside + w->outside_bytes,
         *sums = in + w->in_bytes, *factors = sums + w->sums_bytes;
    struct space s = {(float *)(void *)outside, (float *)(void *)in, (float *)(void *)sums,
                      (float *)(void *)factors};
    return s;
}

/* Returns the output pixels of tile t. Tiles are numbered from the first tile of the job. The
 * rectangle may extend beyond the map. */
static struct rfx_rect tile_rect(const struct rfx_winograd *w, int64_t t) {
    int64_t y = (w->ty0 + t / w->across) * w->outputs + w->from,
            x = (w->tx0 + t % w->across) * w->outputs;
    return rfx_rect_make(y, y + w->outputs, x, x + w->outputs);
}

/* Returns the pixels of tile t that the job requests. */
static struct rfx_rect wanted_of(const struct rfx_winograd *w, int64_t t) {
    return rfx_rect_intersect(tile_rect(w, t), w->job->args->rect);
}

/* Transforms one slice of the input channels of the window of tile t into `out`. */
static void transform_in(const struct rfx_winograd *w, const struct space *s, int64_t t,
                         int64_t slice, float *out) {
    const struct rfx_conv_job *job = w->job;
    const struct rfx_view *in = &job->args->in[0];
    const float *pixels[RFX_WINOGRAD_MOST_WINDOW];
    struct rfx_rect tile = tile_rect(w, t);
    int64_t n = w->window, ix = tile.x0 * job->a->sw - job->a->pads.left;
    for (int64_t y = 0; y < n; y++) {
        int64_t iy = tile.y0 * job->a->sh - job->a->pads.top + y;
        bool row = iy >= w->there.y0 && iy < w->there.y1;
        const float *from = row ? rfx_view_f32_at(in, iy, ix) + slice * w->slice : NULL;
        for (int64_t x = 0; x < n; x++) {
            bool there = row && ix + x >= w->there.x0 && ix + x < w->there.x1;
            pixels[y * n + x] = there ? from + x * in->c : s->outside;
        }
    }
    const struct rfx_winograd_in window = {
        .pixels = pixels,
        .out = out,
        .c = w->slice,
        .step = w->in_plane,
        .outputs = w->outputs,
        .ahead = w->outputs * job->a->sw * in->c, /* to the next tile's pixels */
    };
    job->kernels->winograd_in(&window);
}

/* Transforms the sums of channels [first, first + c) of tile t back and writes the requested
 * pixels. */
static void transform_out(const struct rfx_winograd *w, const float *sums, int64_t t, int64_t first,
                          int64_t c) {
    const struct rfx_run_args *args = w->job->args;
    const float *residual[RFX_WINOGRAD_MOST_WINDOW] = {NULL};
    float *out[RFX_WINOGRAD_MOST_WINDOW] = {NULL};
    struct rfx_rect tile = tile_rect(w, t), wanted = wanted_of(w, t);
    for (int64_t y = wanted.y0; y < wanted.y1; y++)
        for (int64_t x = wanted.x0; x < wanted.x1; x++) {
            int64_t i = (y - tile.y0) * w->outputs + x - tile.x0;
            out[i] = rfx_view_f32_at(&args->out, y, x);
            if (args->node->residual) residual[i] = rfx_view_f32_at(&args->in[1], y, x);
        }
    const struct rfx_winograd_out back = {
        .sums = sums,
        .bias = w->job->epilogue.bias,
        .residual = args->node->residual ? residual : NULL,
        .out = out,
        .first = first,
        .c = c,
        .step = w->out_plane,
        .ahead = w->outputs * args->out.c,
        .outputs = w->outputs,
        .lo = w->job->lo,
        .hi = w->job->hi,
    };
    w->job->kernels->winograd_out(&back);
}

/* One call's products: output channels [first, first + filled) of `tiles` tiles and one slice of
 * their windows. */
struct products {
    int64_t tiles, slice, first, filled;
};

/* Returns the number, 0 or 1, of the tap that stands for a slice in the kernel call. The kernel
 * treats slices as taps: a later slice continues the sums so far. The kernel sums two taps in parts
 * of one slice each, in the same order as all the channels in one call. */
_Static_assert(2 * RFX_CONV_PART > RFX_CONV_LONG, "two slices are summed in parts");
static int64_t tap_of(const struct products *p) {
    return p->slice > 0 ? 1 : 0;
}

/* Computes product i of the tiles with the given transformed weights. `at` is the first output
 * channel within the sums. */
static void multiply(const struct rfx_winograd *w, const struct space *s, const struct products *p,
                     int64_t i, const float *factors, int64_t at, int64_t filled) {
    static const float zeros[RFX_WINOGRAD_OUT_CHANNELS];
    const float *rows[1] = {s->in + i * w->in_plane};
    int64_t taps = w->slices > 1 ? 2 : 1;
    const struct rfx_conv_args run = {
        .rows = rows,
        .weights = factors,
        .bias = zeros,
        .out = s->sums + i * w->out_plane + at,
        .pixels = p->tiles,
        .m = filled,
        .ic = w->slice,
        .kh = 1,
        .kw = taps,
        .kx1 = taps,
        .taps_before = tap_of(p),
        .taps_after = taps - tap_of(p) - 1,
        .x_stride = w->in_step,
        .out_stride = w->out_step,
        .lo = -INFINITY,
        .hi = INFINITY,
    };
    w->job->kernels->conv(&run);
}

/* Returns the index of the transformed weight of a filter that product i uses. */
static int64_t factor_of(const struct rfx_winograd *w, int64_t i) {
    int64_t n = rfx_winograd_factors(w->outputs), y = i / w->window, x = i % w->window;
    return rfx_min_i64(y, n - 1) * n + rfx_min_i64(x, n - 1);
}

/* Computes all products with packed transformed weights. */
static void multiply_kept(const struct rfx_winograd *w, const struct space *s,
                          const struct products *p) {
    const struct rfx_conv_attr *a = w->job->a;
    for (int64_t i = 0; i < w->products; i++)
        multiply(w, s, p, i,
                 w->job->weights + (factor_of(w, i) * rfx_conv_filled(a->oc) + p->first) * a->ic, 0,
                 p->filled);
}

/* Returns the weights that will be transformed next, after the panel at `at`; NULL: none. */
static const float *next_taps(const struct rfx_winograd *w, const struct products *p, int64_t at) {
    const struct rfx_conv_attr *a = w->job->a;
    int64_t slice = p->slice, first = p->first;
    at += RFX_CONV_PANEL;
    if (at >= p->filled) {
        at = 0;
        slice = (slice + 1) % w->slices;
        if (slice == 0) first += p->filled;
    }
    if (first + at >= a->oc) return NULL;
    int64_t width = rfx_conv_panel_width(a->oc - first - at);
    return w->job->weights + ((first + at) * a->ic + slice * w->slice * width) * RFX_WINOGRAD_TAPS;
}

/* Prefetches part i of `elems` weights. They are divided into as many parts as there are products,
 * because the products take longer than the reads from memory. */
static void expect_taps(const struct rfx_winograd *w, const float *taps, int64_t elems, int64_t i) {
    int64_t part = elems / w->products;
    for (int64_t e = 0; e < part; e += RFX_LINE_FLOATS)
        __builtin_prefetch(taps + i * part + e, 0, 2);
}

/* Computes all products with weights that are transformed here, one panel at a time. A panel's
 * transformed weights are stored where the kernel expects the tap of this slice. */
static void multiply_made(const struct rfx_winograd *w, const struct space *s,
                          const struct products *p) {
    const struct rfx_conv_attr *a = w->job->a;
    for (int64_t at = 0; at < p->filled; at += RFX_CONV_PANEL) {
        int64_t width = rfx_conv_panel_width(p->filled - at), tap_elems = w->slice * width;
        const struct rfx_winograd_filters filters = {
            .taps = w->job->weights +
                    ((p->first + at) * a->ic + p->slice * w->slice * width) * RFX_WINOGRAD_TAPS,
            .out = s->factors + tap_of(p) * tap_elems,
            .c = w->slice,
            .width = width,
            .step = tap_elems + RFX_WINOGRAD_PAD,
            .outputs = w->outputs,
        };
        const float *next = next_taps(w, p, at);
        w->job->kernels->winograd_filters(&filters);
        for (int64_t i = 0; i < w->products; i++) {
            if (next != NULL) expect_taps(w, next, tap_elems * RFX_WINOGRAD_TAPS, i);
            multiply(w, s, p, i, s->factors + factor_of(w, i) * filters.step, at, width);
        }
    }
}

/* Computes the output channels in `of` for the given tiles. */
static void make_channels(const struct rfx_winograd *w, const struct space *s,
                          struct rfx_range tiles, struct rfx_range of) {
    struct products p = {.tiles = rfx_range_size(tiles)};
    for (p.first = of.lo; p.first < of.hi; p.first += w->out_channels) {
        int64_t c = rfx_min_i64(w->out_channels, of.hi - p.first);
        p.filled = rfx_conv_filled(c);
        for (p.slice = 0; p.slice < w->slices; p.slice++) {
            for (int64_t t = tiles.lo; t < tiles.hi && (w->slices > 1 || p.first == of.lo); t++)
                transform_in(w, s, t, p.slice, s->in + (t - tiles.lo) * w->in_step);
            if (w->makes_factors)
                multiply_made(w, s, &p);
            else
                multiply_kept(w, s, &p);
        }
        for (int64_t t = tiles.lo; t < tiles.hi; t++)
            transform_out(w, s->sums + (t - tiles.lo) * w->out_step, t, p.first, c);
    }
}

void rfx_winograd_make_unit(void *user, int64_t index, int thread) {
    const struct rfx_winograd *w = user;
    struct space s = space_of(w, thread);
    int64_t oc = w->job->a->oc;
    struct rfx_range all = {0, w->tiles}, panels = {0, rfx_ceil_div(oc, RFX_CONV_PANEL)};
    struct rfx_range tiles = rfx_range_part(all, index / w->panel_parts, w->units);
    panels = rfx_range_part(panels, index % w->panel_parts, w->panel_parts);
    struct rfx_range of = {panels.lo * RFX_CONV_PANEL, rfx_min_i64(panels.hi * RFX_CONV_PANEL, oc)};
    memset(s.outside, 0, w->outside_bytes);
    make_channels(w, &s, tiles, of);
    for (int64_t t = tiles.lo; t < tiles.hi; t++)
        rfx_conv_activate(w->job, wanted_of(w, t), of.lo, of.hi);
}
