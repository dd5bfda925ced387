/* Transposed convolutions phase by phase, with the kernels of ordinary convolutions: see
 * conv_transpose.h.
 *
 * A unit of the output is computed one part of the channels at a time, row by row, and within a row
 * one phase of the columns at a time. A kernel call computes pixels that lie sw apart and have the
 * same taps inside the map. */
#include "layers/conv/conv_transpose.h"
#include "layers/core/checked.h"
#include "layers/core/floats.h"

#define UNIT_INPUT_BYTES (256 << 10) /* input of a unit: fits a core's second-level cache */
#define UNIT_ROWS 8
#define LEAST_COLS 32 /* least input pixels of a unit's row */

struct transposed;
struct row;

/* Computes outputs [q, q + n) of a phase of the columns. All of them have the taps [taps.lo,
 * taps.hi) of the phase inside the map. */
typedef void make_run(const struct transposed *t, const struct row *r,
                      const struct rfx_transpose_outputs *x, int64_t q, int64_t n,
                      struct rfx_range taps);

struct transposed {
    const struct rfx_conv_job *job;
    struct rfx_transpose_layout layout;
    struct rfx_transpose_axis rows, cols;
    make_run *make;
};

/* What all outputs of one channel part of an output row share, and the thread's table of rows. */
struct row {
    int64_t y, g, o, m; /* output channels o .. o + m of group g */
    struct rfx_transpose_outputs at;
    struct rfx_range taps; /* taps of the row that lie inside the map */
    const float **rows;
};

static void begin_row(const struct transposed *t, struct row *r, int64_t y) {
    const struct rfx_conv_attr *a = t->job->a;
    r->y = y;
    r->at = rfx_transpose_outputs(&t->rows, y, y + 1, (y + a->pads.top) % a->sh);
    r->taps = rfx_transpose_inside(&t->rows, &r->at, 0);
}

static const float *weights_of(const struct transposed *t, const struct row *r,
                               const struct rfx_transpose_outputs *x) {
    int64_t width;
    return t->job->weights + rfx_transpose_weights_at(t->job->a, &t->layout, r->g, r->o,
                                                      &r->at.taps, &x->taps, &width);
}

/* Sets the table of rows to the inputs at `column`, which tap column 0 of the run's first output
 * reads, beginning with `channel`. Rows outside the map become NULL. */
static void point_at_rows(const struct transposed *t, const struct row *r, int64_t column,
                          int64_t channel) {
    const struct rfx_view *in = &t->job->args->in[0];
    for (int64_t j = 0; j < r->at.taps.count; j++)
        r->rows[j] = j >= r->taps.lo && j < r->taps.hi
                         ? rfx_view_f32_at(in, r->at.input - j * t->rows.step, column) + channel
                         : NULL;
}

static void panel_pixels(const struct transposed *t, const struct row *r,
                         const struct rfx_transpose_outputs *x, int64_t q, int64_t n,
                         struct rfx_range taps) {
    const struct rfx_conv_job *job = t->job;
    const struct rfx_view *in = &job->args->in[0], *out = &job->args->out;
    int64_t channel = r->g * t->layout.ocg + r->o;
    point_at_rows(t, r, x->input + q, r->g * t->layout.icg);
    const struct rfx_conv_args run = {
        .rows = r->rows,
        .weights = weights_of(t, r, x),
        .bias = job->epilogue.bias + channel,
        .out = rfx_view_f32_at(out, r->y, x->o + q * job->a->sw) + channel,
        .pixels = n,
        .m = r->m,
        .ic = t->layout.icg,
        .kh = r->at.taps.count,
        .kw = x->taps.count,
        .kx0 = taps.lo,
        .kx1 = taps.hi,
        .x_stride = in->c,
        .tap_stride = -t->cols.step * in->c,
        .out_stride = job->a->sw * out->c,
        .lo = job->lo,
        .hi = job->hi,
    };
    job->kernels->conv(&run);
}

static void depthwise_pixels(const struct transposed *t, const struct row *r,
                             const struct rfx_transpose_outputs *x, int64_t q, int64_t n,
                             struct rfx_range taps) {
    const struct rfx_conv_job *job = t->job;
    const struct rfx_view *in = &job->args->in[0], *out = &job->args->out;
    (void)taps; /* the kernel itself skips taps outside the map */
    point_at_rows(t, r, x->input + q, 0);
    const struct rfx_depthwise_args run = {
        .rows = r->rows,
        .weights = weights_of(t, r, x),
        .bias = job->epilogue.bias,
        .out = rfx_view_f32_at(out, r->y, x->o + q * job->a->sw),
        .pixels = n,
        .c = job->a->oc,
        .in_c = in->c,
        .out_c = job->a->sw * out->c,
        .kh = r->at.taps.count,
        .kw = x->taps.count,
        .sw = 1,
        .dw = -t->cols.step,
        .col0 = -(x->input + q),
        .col1 = t->cols.in - (x->input + q),
        .n_rows = 1,
        .lo = job->lo,
        .hi = job->hi,
    };
    job->kernels->depthwise(&run);
}

/* Computes all outputs of one phase of the columns. One call computes all outputs whose taps all
 * lie inside the map; further calls compute neighbours that have the same taps. */
static void make_phase(const struct transposed *t, const struct row *r,
                       const struct rfx_transpose_outputs *x) {
    for (int64_t q = 0; q < x->count;) {
        struct rfx_range taps = rfx_transpose_inside(&t->cols, x, q);
        int64_t n = 1;
        if (taps.lo == 0 && taps.hi == x->taps.count)
            n = rfx_max_i64(1, rfx_min_i64(x->count, t->cols.in - x->input) - q);
        for (; q + n < x->count; n++) {
            struct rfx_range next = rfx_transpose_inside(&t->cols, x, q + n);
            if (next.lo != taps.lo || next.hi != taps.hi) break;
        }
        t->make(t, r, x, q, n, taps);
        q += n;
    }
}

static void make_unit(const void *user, struct rfx_rect unit, void *scratch) {
    const struct transposed *t = user;
    struct row r = {.rows = scratch};
    for (r.g = 0; r.g < t->layout.groups; r.g++)
        for (r.o = 0; r.o < t->layout.ocg; r.o += t->layout.part) {
            r.m = rfx_min_i64(t->layout.part, t->layout.ocg - r.o);
            for (int64_t y = unit.y0; y < unit.y1; y++) {
                begin_row(t, &r, y);
                for (int64_t phase = 0; phase < t->job->a->sw; phase++) {
                    struct rfx_transpose_outputs x =
                        rfx_transpose_outputs(&t->cols, unit.x0, unit.x1, phase);
                    make_phase(t, &r, &x);
                }
            }
        }
    rfx_conv_activate(t->job, unit, 0, t->job->a->oc);
}

/* Divides the rectangle into units whose input stays in the cache while all parts of the channels
 * are computed. */
static struct rfx_units cut_rect(const struct transposed *t) {
    const struct rfx_run_args *args = t->job->args;
    const struct rfx_conv_attr *a = t->job->a;
    int64_t h = rfx_rect_rows(args->rect), w = rfx_rect_cols(args->rect);
    int64_t rows = UNIT_ROWS / a->sh + rfx_transpose_most_taps(&t->rows) * t->rows.step;
    int64_t cols = UNIT_INPUT_BYTES / (int64_t)rfx_floats_bytes(a->ic * rows);
    return rfx_units_at_least(args, rfx_ceil_div(h, UNIT_ROWS),
                              rfx_ceil_div(w, rfx_max_i64(cols, LEAST_COLS) * a->sw));
}

static void run_units(const struct rfx_conv_job *job, struct rfx_transpose_layout layout,
                      make_run *make) {
    const struct transposed t = {.job = job,
                                 .layout = layout,
                                 .rows = rfx_transpose_rows(job->a, job->rows.in),
                                 .cols = rfx_transpose_cols(job->a, job->cols.in),
                                 .make = make};
    rfx_units_share(job->args, cut_rect(&t), job->scratch_bytes, make_unit, &t);
}

static size_t rows_bytes(const struct rfx_transpose_axis *rows) {
    return rfx_align_up((size_t)rfx_transpose_most_taps(rows) * sizeof(const float *));
}

static size_t runs_scratch(const struct rfx_graph *graph, const struct rfx_node *node) {
    (void)graph;
    struct rfx_transpose_axis rows = rfx_transpose_rows(&node->attr.conv, 1);
    return rows_bytes(&rows);
}

static struct rfx_transpose_layout panels_layout(const struct rfx_conv_attr *a) {
    return (struct rfx_transpose_layout){a->groups, a->ic / a->groups, a->oc / a->groups,
                                         RFX_CONV_PANEL, RFX_CONV_LANES};
}

static void panels_run(const struct rfx_conv_job *job) {
    run_units(job, panels_layout(job->a), panel_pixels);
}

const struct rfx_transpose_way rfx_transpose_panels = {
    .layout = panels_layout, .scratch_bytes = runs_scratch, .run = panels_run};

static struct rfx_transpose_layout depthwise_layout(const struct rfx_conv_attr *a) {
    return (struct rfx_transpose_layout){1, 1, a->oc, a->oc, 1};
}

static void depthwise_run(const struct rfx_conv_job *job) {
    run_units(job, depthwise_layout(job->a), depthwise_pixels);
}

const struct rfx_transpose_way rfx_transpose_depthwise = {
    .layout = depthwise_layout, .scratch_bytes = runs_scratch, .run = depthwise_run};
