/* Dense convolutions computed directly from the input's rows with this library's own kernels. No
 * input is gathered. The summation order of every element is part of the kernels' contract
 * (kernels.h), so its bits depend neither on the rectangle nor on the processor.
 *
 * A rectangle is cut into units whose input fits in a core's second-level cache. A unit processes
 * one slab of output channels after another. For each slab it first computes, row by row, the
 * pixels all of whose taps lie inside the map's columns. Then it computes the pixels at the left
 * and right borders: down the columns, or along the rows if the columns with the same taps
 * outnumber the rows. Taps outside the map are skipped. Packed weights: [group][panel][ky][kx][ic
 * of the group][channel of the panel]. */
#include "layers/conv/conv_backend.h"
#include "layers/core/checked.h"
#include "layers/core/floats.h"
#include "layers/graph/units.h"
#include "layers/graph/view_rows.h"

#define UNIT_INPUT_BYTES (384 << 10) /* input of a unit; the cache also holds a panel's weights */
#define SLAB_BYTES (256 << 10)       /* weights of a slab; at least one panel, even if larger */
#define MOST_PANEL_BYTES (512 << 10) /* above, some taps of a panel at a time */
#define MOST_WEIGHTS_BYTES (4 << 20) /* more weights per unit: threads divide the panels */
#define LEAST_PIXELS 28 /* pixels of a unit, at least: two blocks of the widest kernel */
#define BORDER_ROWS 8   /* rows of a unit if kw > 1: border columns are computed down rows */

/* How the work on a rectangle is divided. Panels are divided only if there are too few pixels for
 * all threads, or if there are many weights and the units do not divide evenly among the
 * threads. */
struct cut {
    struct rfx_units units;
    int64_t panel_parts;
    bool by_panels; /* threads divide the panels rather than the units */
};

struct direct {
    const struct rfx_conv_job *job;
    struct cut cut;
    int64_t icg, ocg, panels; /* panels: total over all groups */
};

/* Panels of one group that are computed together, row by row, so that their weights stay in a
 * cache. */
struct slab {
    int64_t group, channel, channels; /* first channel within the group; number of channels */
    int64_t weights_at;               /* offset in floats */
    struct rfx_range taps;            /* of kh * kw: all, or as many as fit the cache */
};

/* Consecutive pixels along a row or down a column that one kernel call computes. */
struct run {
    int64_t y, x, n;
    bool down;
    struct rfx_range ty, tx; /* taps inside the map, the same for all its pixels */
};

static int64_t panels_of(const struct rfx_conv_attr *a) {
    return rfx_ceil_div(a->oc / a->groups, RFX_CONV_PANEL);
}

/* Returns into how many parts to divide the panels, so that `units` units make at least `least`
 * work items. If possible, every thread gets the same number of items and every part the same
 * number of panels. */
static int64_t cut_panels(int64_t panels, int64_t units, int64_t least, int threads) {
    int64_t fewest = rfx_min_i64(rfx_ceil_div(least, units), panels);
    for (int64_t parts = fewest; parts <= rfx_min_i64(2 * fewest, panels); parts++)
        if (units * parts % threads == 0 && panels % parts == 0) return parts;
    return fewest;
}

/* Returns into how many rows of units to divide `rows` pixel rows: between `least` and twice
 * `least`. Each row of units has `across` units. Chooses the number for which threads that take one
 * unit after another finish together as nearly as possible. */
static int64_t cut_rows(int64_t rows, int64_t least, int64_t across, int threads) {
    int64_t best = least, fewest = INT64_MAX;
    for (int64_t down = least; down <= rfx_min_i64(2 * least, rows); down++) {
        int64_t slowest = rfx_ceil_div(down * across, threads) * rfx_ceil_div(rows, down);
        if (slowest < fewest) {
            best = down;
            fewest = slowest;
        }
    }
    return best;
}

static double weight_bytes(const struct rfx_conv_attr *a) {
    return (double)rfx_floats_bytes(a->kh * a->kw * (a->ic / a->groups) * a->oc);
}

bool rfx_conv_shares_outputs(const struct rfx_conv_attr *a, double input_bytes, int threads) {
    bool beside = weight_bytes(a) > 2.0 * input_bytes;
    if (beside && panels_of(a) * a->groups >= (int64_t)RFX_UNITS_PER_THREAD * threads) return true;
    return weight_bytes(a) > MOST_WEIGHTS_BYTES;
}

static struct cut make_cut(const struct rfx_conv_attr *a, struct rfx_rect rect, int threads) {
    int64_t h = rfx_rect_rows(rect), w = rfx_rect_cols(rect);
    int64_t pixels = UNIT_INPUT_BYTES / (int64_t)rfx_floats_bytes(a->ic * a->sh * a->sw);
    double input = (double)rfx_floats_bytes(a->ic * h * a->sh * w * a->sw);
    struct cut cut = {.panel_parts = 1, .by_panels = rfx_conv_shares_outputs(a, input, threads)};
    int64_t least = (int64_t)RFX_UNITS_PER_THREAD * threads;
    if (threads > 1 && !cut.by_panels) pixels = rfx_min_i64(pixels, rfx_ceil_div(h * w, least));
    pixels = rfx_max_i64(pixels, LEAST_PIXELS);
    int64_t rows = rfx_min_i64(h, a->kw > 1 ? BORDER_ROWS : 1);
    int64_t across = rfx_ceil_div(w, rfx_max_i64(rfx_ceil_div(pixels, rows), LEAST_PIXELS));
    int64_t beside = cut.by_panels ? 1 : rfx_units_beside(w, threads);
    across = rfx_ceil_div(across, beside) * beside;
    int64_t down = rfx_ceil_div(h, rfx_max_i64(1, pixels / rfx_ceil_div(w, across)));
    if (threads > 1 && down * across >= least && !cut.by_panels)
        down = cut_rows(h, down, across, threads);
    else if (threads > 1)
        cut.panel_parts = cut_panels(panels_of(a) * a->groups, down * across, least, threads);
    cut.units = (struct rfx_units){down, across};
    return cut;
}

/* Returns the kernel's arguments for one run of pixels and all channels of group g. Fills
 * `rows`. */
static struct rfx_conv_args begin_run(const struct direct *d, int64_t g, const struct run *r,
                                      const float **rows) {
    const struct rfx_conv_job *job = d->job;
    const struct rfx_conv_attr *a = job->a;
    const struct rfx_view *in = &job->args->in[0], *out = &job->args->out;
    int64_t iy = r->y * a->sh - a->pads.top, ix = r->x * a->sw - a->pads.left;
    for (int64_t ky = 0; ky < a->kh; ky++)
        rows[ky] = ky >= r->ty.lo && ky < r->ty.hi
                       ? rfx_view_f32_at(in, iy + ky * a->dh, ix) + g * d->icg
                       : NULL;
    struct rfx_conv_args run = {
        .rows = rows,
        .weights = job->weights,
        .bias = job->epilogue.bias + g * d->ocg,
        .out = rfx_view_f32_at(out, r->y, r->x) + g * d->ocg,
        .pixels = r->n,
        .m = d->ocg,
        .ic = d->icg,
        .kh = a->kh,
        .kw = a->kw,
        .kx0 = r->tx.lo,
        .kx1 = r->tx.hi,
        .x_stride = r->down ? a->sh * in->row_stride : a->sw * in->c,
        .tap_stride = a->dw * in->c,
        .out_stride = r->down ? out->row_stride : out->c,
        .lo = job->lo,
        .hi = job->hi,
    };
    if (!job->args->node->residual) return run;
    const struct rfx_view *residual = &job->args->in[1];
    run.residual = rfx_view_f32_at(residual, r->y, r->x) + g * d->ocg;
    run.residual_stride = r->down ? residual->row_stride : residual->c;
    return run;
}

/* Computes the channels of a slab for one run of pixels. */
static void make_run(const struct direct *d, const struct slab *slab, const struct run *r,
                     const float **rows) {
    if (r->n <= 0) return;
    struct rfx_conv_args run = begin_run(d, slab->group, r, rows);
    run.weights += slab->weights_at;
    run.bias += slab->channel;
    run.out += slab->channel;
    run.m = slab->channels;
    run.taps_before = slab->taps.lo;
    run.taps_after = run.kh * run.kw - slab->taps.hi;
    if (run.residual != NULL) run.residual += slab->channel;
    d->job->kernels->conv(&run);
}

/* Returns whether row y + step of a view lies step * row_stride floats after row y. */
static bool goes_on(const struct rfx_view *v, int64_t y, int64_t step) {
    int64_t x = v->rect.x0;
    return rfx_view_f32_at(v, y + step, x) - rfx_view_f32_at(v, y, x) == step * v->row_stride;
}

/* Returns how many rows, from y on and below y1, one call may compute down a column. All these rows
 * have the same taps, and no ring buffer wraps around among them. */
static int64_t rows_down(const struct direct *d, int64_t y, int64_t y1, struct rfx_range ty) {
    const struct rfx_run_args *args = d->job->args;
    const struct rfx_conv_attr *a = d->job->a;
    int64_t n = 1;
    for (; y + n < y1; n++) {
        struct rfx_range next = rfx_conv_taps(&d->job->rows, y + n);
        if (next.lo != ty.lo || next.hi != ty.hi) break;
        bool on = goes_on(&args->out, y + n - 1, 1) &&
                  (!args->node->residual || goes_on(&args->in[1], y + n - 1, 1));
        int64_t iy = (y + n - 1) * a->sh - a->pads.top;
        for (int64_t ky = ty.lo; on && ky < ty.hi; ky++)
            on = goes_on(&args->in[0], iy + ky * a->dh, a->sh);
        if (!on) break;
    }
    return n;
}

/* Computes column x of a unit, down its rows. */
static void make_column(const struct direct *d, const struct slab *slab, struct rfx_rect unit,
                        int64_t x, struct rfx_range tx, const float **rows) {
    struct run run = {.x = x, .down = true, .tx = tx};
    for (run.y = unit.y0; run.y < unit.y1; run.y += run.n) {
        run.ty = rfx_conv_taps(&d->job->rows, run.y);
        run.n = rows_down(d, run.y, unit.y1, run.ty);
        make_run(d, slab, &run, rows);
    }
}

/* Computes the columns [x0, x1) of a unit, for which some taps lie outside the map. With a large
 * dilation many neighbouring columns have the same taps; such columns are computed along the rows,
 * like the pixels inside the map. */
static void make_border(const struct direct *d, const struct slab *slab, struct rfx_rect unit,
                        int64_t x0, int64_t x1, const float **rows) {
    for (int64_t x = x0, end; x < x1; x = end) {
        struct rfx_range tx = rfx_conv_taps(&d->job->cols, x);
        for (end = x + 1; end < x1; end++) {
            struct rfx_range next = rfx_conv_taps(&d->job->cols, end);
            if (next.lo != tx.lo || next.hi != tx.hi) break;
        }
        if (end - x < rfx_rect_rows(unit)) {
            for (; x < end; x++) make_column(d, slab, unit, x, tx, rows);
            continue;
        }
        struct run run = {.x = x, .n = end - x, .tx = tx};
        for (run.y = unit.y0; run.y < unit.y1; run.y++) {
            run.ty = rfx_conv_taps(&d->job->rows, run.y);
            make_run(d, slab, &run, rows);
        }
    }
}

static void make_slab(const struct direct *d, const struct slab *slab, struct rfx_rect unit,
                      const float **rows) {
    const struct rfx_conv_attr *a = d->job->a;
    struct rfx_range inner = rfx_conv_interior(&d->job->cols, unit.x0, unit.x1);
    struct rfx_range whole = rfx_conv_interior(&d->job->rows, unit.y0, unit.y1);
    struct run run = {.x = inner.lo, .n = inner.hi - inner.lo, .tx = {0, a->kw}};
    for (run.y = unit.y0; run.y < unit.y1; run.y++) {
        bool all = run.y >= whole.lo && run.y < whole.hi;
        run.ty = all ? (struct rfx_range){0, a->kh} : rfx_conv_taps(&d->job->rows, run.y);
        make_run(d, slab, &run, rows);
    }
    make_border(d, slab, unit, unit.x0, inner.lo, rows);
    make_border(d, slab, unit, inner.hi, unit.x1, rows);
}

/* Returns whether unfinished sums may be stored in the output until the next call adds further
 * taps: the sums are split into parts of one tap each, and the residual does not lie in the
 * output's memory. */
static bool may_wait(const struct direct *d, const struct slab *slab) {
    const struct rfx_run_args *args = d->job->args;
    const struct rfx_conv_attr *a = d->job->a;
    const struct rfx_conv_parts parts = rfx_conv_parts(d->icg, a->kh, a->kw);
    if (!parts.split || parts.taps > 1 || slab->channels % RFX_CONV_PANEL != 0) return false;
    if (!args->node->residual) return true;
    return !rfx_views_meet(&args->in[1], &args->out, args->rect);
}

/* Computes a slab of a unit. A panel with more weights than the cache holds is computed some taps
 * at a time. */
static void make_all_taps(const struct direct *d, struct slab *slab, struct rfx_rect unit,
                          const float **rows) {
    const struct rfx_conv_attr *a = d->job->a;
    int64_t taps = a->kh * a->kw, at_once = taps;
    int64_t tap_bytes = (int64_t)rfx_floats_bytes(slab->channels * d->icg);
    if (tap_bytes * taps > MOST_PANEL_BYTES && may_wait(d, slab))
        at_once = rfx_max_i64(1, SLAB_BYTES / tap_bytes);
    for (int64_t t = 0; t < taps; t += at_once) {
        slab->taps = (struct rfx_range){t, rfx_min_i64(t + at_once, taps)};
        make_slab(d, slab, unit, rows);
    }
}

/* Computes the given panels of a unit. Panels are numbered over all groups. */
static void make_panels(const struct direct *d, struct rfx_range panels, struct rfx_rect unit,
                        const float **rows) {
    const struct rfx_conv_attr *a = d->job->a;
    int64_t per_group = panels_of(a), k = a->kh * a->kw * d->icg;
    int64_t at_once = SLAB_BYTES / (int64_t)rfx_floats_bytes(k * RFX_CONV_PANEL);
    for (int64_t p = panels.lo; p < panels.hi;) {
        struct slab slab = {.group = p / per_group, .channel = p % per_group * RFX_CONV_PANEL};
        int64_t end = rfx_min_i64(p + rfx_max_i64(at_once, 1), (slab.group + 1) * per_group);
        end = rfx_min_i64(end, panels.hi);
        slab.channels = rfx_min_i64((end - p) * RFX_CONV_PANEL, d->ocg - slab.channel);
        slab.weights_at = (slab.group * rfx_conv_filled(d->ocg) + slab.channel) * k;
        make_all_taps(d, &slab, unit, rows);
        p = end;
    }
}

/* Returns the first output channel of a panel. Panels are numbered over all groups. */
static int64_t channel_of(const struct direct *d, int64_t panel) {
    int64_t per_group = panels_of(d->job->a);
    return panel / per_group * d->ocg + panel % per_group * RFX_CONV_PANEL;
}

/* Computes work item `index`. If the work is divided by panels, consecutive items are the same
 * panels of all units, so that a thread reads the weights of its own panels only. */
static void make_unit(const struct direct *d, int64_t index, const float **rows) {
    const struct cut *cut = &d->cut;
    int64_t units = cut->units.down * cut->units.across;
    int64_t part = cut->by_panels ? index / units : index % cut->panel_parts;
    int64_t at = cut->by_panels ? index % units : index / cut->panel_parts;
    struct rfx_rect unit = rfx_units_part(d->job->args->rect, cut->units, at);
    struct rfx_range all = {0, d->panels};
    struct rfx_range panels = rfx_range_part(all, part, cut->panel_parts);
    make_panels(d, panels, unit, rows);
    rfx_conv_activate(d->job, unit, channel_of(d, panels.lo), channel_of(d, panels.hi));
}

static bool direct_accepts(const struct rfx_graph *graph, const struct rfx_node *node, char *why,
                           size_t size) {
    (void)node;
    return rfx_conv_own_kernels(graph, why, size);
}

/* Space for the pointers to the input rows of a kernel call. */
static size_t direct_scratch(const struct rfx_graph *graph, const struct rfx_node *node) {
    (void)graph;
    return rfx_align_up((size_t)node->attr.conv.kh * sizeof(const float *));
}

static void run_unit(void *user, int64_t index, int thread) {
    const struct direct *d = user;
    make_unit(d, index, (const float **)rfx_conv_thread_scratch(d->job, thread));
}

static void direct_run(const struct rfx_conv_job *job) {
    const struct rfx_run_args *args = job->args;
    const struct rfx_conv_attr *a = job->a;
    struct direct d = {
        .job = job,
        .cut = make_cut(a, args->rect, args->threads),
        .icg = a->ic / a->groups,
        .ocg = a->oc / a->groups,
        .panels = panels_of(a) * a->groups,
    };
    int64_t units = d.cut.units.down * d.cut.units.across;
    rfx_team_for(args->team, units * d.cut.panel_parts, run_unit, &d);
}

const struct rfx_conv_backend rfx_conv_direct = {
    .name = "direct",
    .accepts = direct_accepts,
    .packed_bytes = rfx_conv_panels_packed_bytes,
    .pack = rfx_conv_panels_pack,
    .scratch_bytes = direct_scratch,
    .in_place = true, /* a residual pixel is read just before its sum is written */
    .run = direct_run,
};
