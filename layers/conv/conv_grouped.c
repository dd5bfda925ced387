/* Convolutions with few channels per group, and depthwise convolutions with a channel multiplier.
 * One group alone would fill only part of a vector, so the output channels of several groups share
 * a vector.
 *
 * Every lane of the vector reads inputs of its own group. So each input row is expanded once: every
 * pixel and every input channel of a group becomes a vector of lanes. The expanded row serves all
 * taps. The sum of an element is one chain of multiply-adds in the order of the `direct` backend,
 * even where `direct` sums in parts (struct rfx_conv_parts). Packed weights: [block of
 * groups][ky][kx][ic of the group][RFX_CONV_LANES], padded with zeros. */
#include <string.h>

#include "layers/conv/conv_backend.h"
#include "layers/core/checked.h"
#include "layers/core/floats.h"

#define MOST_CHANNELS (RFX_CONV_LANES / 2) /* per group, in and out: two groups fit a vector */
#define LANES_TO_FILL \
    (RFX_CONV_LANES / 4)          /* more outputs per group fill half a vector in `direct` */
#define LEAST_USES 4              /* fewest uses of an expanded input that make it worthwhile */
#define EXPANDED_BYTES (64 << 10) /* expanded rows of a unit: fit in a near cache */
#define MOST_BYTES (1 << 20)      /* most for any layer: a large dilation needs many rows */
#define UNIT_INPUT_BYTES (384 << 10)
#define LEAST_COLS 32
#define LEAST_ROWS 8

/* The sizes of a layer's blocks of groups and of its ring buffer of expanded rows. */
struct shape {
    int64_t icg, ocg, per_block, blocks; /* per_block: groups of a block */
    int64_t rows, cols, in_cols;         /* rows of the ring; columns of a unit, out and in */
    int64_t plane_elems, row_elems;
};

struct grouped {
    const struct rfx_conv_job *job;
    struct shape shape;
};

/* One block of groups of a unit, with the thread's scratch. */
struct unit {
    struct rfx_rect rect;
    int64_t block, base, lo, hi; /* input columns: of element 0; [lo, hi) are held */
    int64_t groups;              /* groups in this block */
    int32_t from[RFX_CONV_LANES];
    const float **rows;
    int64_t *held; /* per row of the ring: the input row that it holds, or -1 */
    float *data;
};

static struct shape shape_of(const struct rfx_conv_attr *a, int64_t out_w) {
    struct shape s = {.icg = a->ic / a->groups, .ocg = a->oc / a->groups};
    s.per_block = rfx_min_i64(RFX_CONV_LANES / rfx_max_i64(s.icg, s.ocg), a->groups);
    s.blocks = rfx_ceil_div(a->groups, rfx_max_i64(1, s.per_block));
    s.rows = a->dh * (a->kh - 1) + 1;
    int64_t bytes = (int64_t)rfx_floats_bytes(s.rows * s.icg * RFX_CONV_LANES);
    int64_t reach = a->dw * (a->kw - 1) + 1;
    s.cols = rfx_min_i64(out_w, rfx_max_i64(LEAST_COLS, (EXPANDED_BYTES / bytes - reach) / a->sw));
    s.cols = rfx_ceil_div(out_w, rfx_ceil_div(out_w, s.cols));
    s.in_cols = (s.cols - 1) * a->sw + reach;
    s.plane_elems = s.in_cols * RFX_CONV_LANES;
    s.row_elems = s.icg * s.plane_elems;
    return s;
}

static size_t data_bytes(const struct shape *s) {
    return rfx_align_up(rfx_floats_bytes(s->rows * s->row_elems));
}
static size_t rows_bytes(const struct rfx_conv_attr *a) {
    return rfx_align_up((size_t)a->kh * sizeof(const float *));
}
static size_t held_bytes(const struct shape *s) {
    return rfx_align_up((size_t)s->rows * sizeof(int64_t));
}

static void begin_block(const struct grouped *d, struct unit *u, int64_t block) {
    const struct shape *s = &d->shape;
    u->block = block;
    u->groups = rfx_min_i64(s->per_block, d->job->a->groups - block * s->per_block);
    for (int64_t j = 0; j < RFX_CONV_LANES; j++)
        u->from[j] = j < u->groups * s->ocg ? (int32_t)(j / s->ocg * s->icg) : 0;
    for (int64_t i = 0; i < s->rows; i++) u->held[i] = -1;
}

/* Returns input row iy, expanded for the block. Expands the row if the ring does not hold it
 * yet. */
static const float *expanded_row(const struct grouped *d, struct unit *u, int64_t iy) {
    const struct shape *s = &d->shape;
    const struct rfx_view *in = &d->job->args->in[0];
    int64_t slot = iy % s->rows;
    float *data = u->data + slot * s->row_elems;
    if (u->held[slot] == iy || u->lo >= u->hi) return data;
    u->held[slot] = iy;
    d->job->kernels->expand(rfx_view_f32_at(in, iy, u->lo) + u->block * s->per_block * s->icg,
                            in->c, u->hi - u->lo, u->from, u->groups * s->icg, s->icg,
                            data + (u->lo - u->base) * RFX_CONV_LANES, s->plane_elems);
    return data;
}

/* Computes groups of one input channel whose outputs fill a vector. Once expanded, they are an
 * ordinary depthwise convolution. */
static void run_as_depthwise(const struct rfx_kernels *kernels, const struct rfx_lanes_args *r) {
    const struct rfx_depthwise_args run = {
        .rows = r->rows,
        .weights = r->weights,
        .bias = r->bias,
        .out = r->out,
        .pixels = r->pixels,
        .c = RFX_CONV_LANES,
        .in_c = RFX_CONV_LANES,
        .out_c = r->out_stride,
        .n_rows = 1,
        .kh = r->kh,
        .kw = r->kw,
        .sw = r->sw,
        .dw = r->dw,
        .col0 = r->col0,
        .col1 = r->col1,
        .lo = r->lo,
        .hi = r->hi,
    };
    kernels->depthwise(&run);
}

static void make_row(const struct grouped *d, struct unit *u, int64_t y) {
    const struct rfx_conv_job *job = d->job;
    const struct rfx_conv_attr *a = job->a;
    const struct rfx_view *out = &job->args->out, *residual = &job->args->in[1];
    struct rfx_range ty = rfx_conv_taps(&job->rows, y);
    int64_t iy = y * a->sh - a->pads.top, x0 = u->rect.x0;
    for (int64_t ky = 0; ky < a->kh; ky++)
        u->rows[ky] = ky < ty.lo || ky >= ty.hi ? NULL : expanded_row(d, u, iy + ky * a->dh);
    int64_t channel = u->block * d->shape.per_block * d->shape.ocg;
    struct rfx_lanes_args run = {
        .rows = u->rows,
        .weights = job->weights + u->block * a->kh * a->kw * d->shape.icg * RFX_CONV_LANES,
        .bias = job->epilogue.bias + channel,
        .out = rfx_view_f32_at(out, y, x0) + channel,
        .pixels = u->rect.x1 - x0,
        .m = u->groups * d->shape.ocg,
        .ic = d->shape.icg,
        .kh = a->kh,
        .kw = a->kw,
        .sw = a->sw,
        .dw = a->dw,
        .col0 = -u->base,
        .col1 = job->cols.in - u->base,
        .plane = d->shape.plane_elems,
        .out_stride = out->c,
        .lo = job->lo,
        .hi = job->hi,
    };
    if (job->args->node->residual) {
        run.residual = rfx_view_f32_at(residual, y, x0) + channel;
        run.residual_stride = residual->c;
    }
    if (run.ic == 1 && run.m == RFX_CONV_LANES && run.residual == NULL)
        run_as_depthwise(job->kernels, &run);
    else
        job->kernels->lanes(&run);
}

static void make_unit(const void *user, struct rfx_rect unit, void *scratch) {
    const struct grouped *d = user;
    const struct rfx_conv_attr *a = d->job->a;
    const struct rfx_view *in = &d->job->args->in[0];
    struct unit u = {.rect = unit, .rows = scratch};
    char *at = (char *)scratch + rows_bytes(a);
    u.held = (int64_t *)(void *)at;
    u.data = (float *)(void *)(at + held_bytes(&d->shape));
    u.base = unit.x0 * a->sw - a->pads.left;
    u.lo = rfx_max_i64(u.base, in->rect.x0);
    u.hi = rfx_min_i64((unit.x1 - 1) * a->sw - a->pads.left + a->dw * (a->kw - 1) + 1, in->rect.x1);
    for (int64_t block = 0; block < d->shape.blocks; block++) {
        begin_block(d, &u, block);
        for (int64_t y = unit.y0; y < unit.y1; y++) make_row(d, &u, y);
    }
    rfx_conv_activate(d->job, unit, 0, a->oc);
}

static size_t grouped_scratch(const struct rfx_graph *graph, const struct rfx_node *node) {
    (void)graph;
    struct shape s = shape_of(&node->attr.conv, node->out.w);
    return rows_bytes(&node->attr.conv) + held_bytes(&s) + data_bytes(&s);
}

static bool grouped_accepts(const struct rfx_graph *graph, const struct rfx_node *node, char *why,
                            size_t size) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    if (!rfx_conv_own_kernels(graph, why, size)) return false;
    if (a->groups == 1) return rfx_conv_refuse(why, size, "1 group");
    if (a->ic / a->groups > MOST_CHANNELS || a->oc / a->groups > MOST_CHANNELS)
        return rfx_conv_refuse(
            why, size, "groups of %lld input and %lld output channels, more than %d",
            (long long)(a->ic / a->groups), (long long)(a->oc / a->groups), MOST_CHANNELS);
    if (a->oc / a->groups > LANES_TO_FILL && a->kh * a->kw < LEAST_USES * a->sh * a->sw)
        return rfx_conv_refuse(why, size,
                               "an expanded input of %lld channels has too few uses: a kernel of "
                               "%lldx%lld, strides %lld and %lld",
                               (long long)(a->ic / a->groups), (long long)a->kh, (long long)a->kw,
                               (long long)a->sh, (long long)a->sw);
    if (grouped_scratch(graph, node) > MOST_BYTES)
        return rfx_conv_refuse(why, size, "%lld rows at a time take more than %d bytes",
                               (long long)(a->dh * (a->kh - 1) + 1), MOST_BYTES);
    return true;
}

static size_t grouped_packed_bytes(const struct rfx_graph *graph, const struct rfx_node *node) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    (void)graph;
    struct shape s = shape_of(a, node->out.w);
    return rfx_align_up(rfx_floats_bytes(s.blocks * a->kh * a->kw * s.icg * RFX_CONV_LANES));
}

static enum rfx_status grouped_pack(const struct rfx_conv_pack_job *job, struct rfx_error *err) {
    const struct rfx_conv_attr *a = &job->node->attr.conv;
    struct shape s = shape_of(a, job->node->out.w);
    int64_t outputs = s.per_block * s.ocg, k = a->kh * a->kw * s.icg;
    struct rfx_packing_reader reader = {.weight = &job->graph->weights[a->weight], .err = err};
    enum rfx_status status = RFX_OK;
    if (job->part->index > 0) return RFX_OK;
    memset(job->weights, 0, grouped_packed_bytes(job->graph, job->node));
    for (int64_t b = 0; status == RFX_OK && b < s.blocks; b++) {
        int64_t n = rfx_min_i64(outputs, a->oc - b * outputs);
        status = rfx_conv_filters_pack(job, &reader, b * outputs, n,
                                       job->weights + b * k * RFX_CONV_LANES, RFX_CONV_LANES);
    }
    return status;
}

static void grouped_run(const struct rfx_conv_job *job) {
    const struct rfx_run_args *args = job->args;
    struct grouped d = {.job = job, .shape = shape_of(job->a, args->node->out.w)};
    int64_t h = rfx_rect_rows(args->rect), w = rfx_rect_cols(args->rect);
    /* a unit serves all blocks, so its input should fit in a core's second-level cache */
    int64_t row = (int64_t)rfx_floats_bytes(rfx_min_i64(w, d.shape.cols) * job->a->sw * job->a->ic);
    int64_t rows = rfx_max_i64(LEAST_ROWS, UNIT_INPUT_BYTES / (row * job->a->sh));
    struct rfx_units grid =
        rfx_units_at_least(args, rfx_ceil_div(h, rows), rfx_ceil_div(w, d.shape.cols));
    rfx_units_share(args, grid, job->scratch_bytes, make_unit, &d);
}

const struct rfx_conv_backend rfx_conv_grouped = {
    .name = "grouped",
    .accepts = grouped_accepts,
    .packed_bytes = grouped_packed_bytes,
    .pack = grouped_pack,
    .scratch_bytes = grouped_scratch,
    .in_place = true, /* a residual pixel is read just before its sum is written */
    .run = grouped_run,
};
