/* RESIZE with a kernel: cubic, and linear and cubic with antialias (ONNX Resize opset 18).
 *
 * An output pixel is a sum over rows of sums over the taps of a row. Taps are added from left to
 * right, rows from top to bottom; each weighted product is added with two roundings. Weights are
 * the kernel's values at the taps' distances, divided by their sum. A tap outside the map reads the
 * border pixel, whose weight grows by the tap's weight; with exclude_outside the tap is left out
 * instead. If the map shrinks, antialias stretches the kernel by 1 / scale. Taps of weight 0 at
 * either end are not read. */
#include <math.h>

#include "layers/core/checked.h"
#include "layers/graph/units.h"
#include "layers/ops/resize.h"

#define BLOCK_COLS 32 /* columns whose weights are computed before their rows */

/* The coordinate, kernel and taps of one output position. */
struct window {
    float at, shrink; /* shrink scales distances; 1: the kernel is not stretched */
    bool cubic;
    float a;
    int64_t lo, hi; /* taps, on a map without borders */
};

bool rfx_resize_is_filtered(const struct rfx_resize_attr *attr) {
    return attr->mode == RFX_RESIZE_CUBIC || (attr->mode == RFX_RESIZE_LINEAR && attr->antialias);
}

static float shrink_of(const struct rfx_resize_axis *axis) {
    return axis->attr->antialias && axis->scale < 1.0f ? axis->scale : 1.0f;
}

/* Returns the kernel's radius in pixels. */
static float reach_of(const struct rfx_resize_axis *axis) {
    return (axis->attr->mode == RFX_RESIZE_CUBIC ? 2.0f : 1.0f) / shrink_of(axis);
}

static float weight_at(const struct window *w, int64_t i) {
    float d = fabsf(((float)i - w->at) * w->shrink), a = w->a;
    if (!w->cubic) return d < 1.0f ? 1.0f - d : 0.0f;
    if (d < 1.0f) return ((a + 2.0f) * d - (a + 3.0f)) * d * d + 1.0f;
    if (d < 2.0f) return ((a * d - 5.0f * a) * d + 8.0f * a) * d - 4.0f * a;
    return 0.0f;
}

static struct window window_of(const struct rfx_resize_axis *axis, int64_t i) {
    float at = rfx_resize_coordinate(axis, i), reach = reach_of(axis);
    struct window w = {at,
                       shrink_of(axis),
                       axis->attr->mode == RFX_RESIZE_CUBIC,
                       axis->attr->cubic_a,
                       (int64_t)floorf(at + 1.0f - reach),
                       (int64_t)floorf(at + 1.0f + reach)};
    while (w.lo + 1 < w.hi && weight_at(&w, w.lo) == 0.0f) w.lo++;
    while (w.lo + 1 < w.hi && weight_at(&w, w.hi - 1) == 0.0f) w.hi--;
    return w;
}

/* Returns the pixels of the map that a window reads: at least one. */
static struct rfx_range on_map(const struct rfx_resize_axis *axis, const struct window *w) {
    int64_t last = axis->in - 1;
    struct rfx_range r = {rfx_min_i64(rfx_max_i64(w->lo, 0), last),
                          rfx_min_i64(rfx_max_i64(w->hi - 1, 0), last) + 1};
    return r;
}

/* Returns the pixels of the map that the window of position i reads, and computes their weights. */
static struct rfx_range fill_weights(const struct rfx_resize_axis *axis, int64_t i,
                                     float *weights) {
    const struct window w = window_of(axis, i);
    const struct rfx_range r = on_map(axis, &w);
    float total = 0.0f;
    for (int64_t k = r.lo; k < r.hi; k++) weights[k - r.lo] = 0.0f;
    for (int64_t k = w.lo; k < w.hi; k++) {
        int64_t pixel = rfx_min_i64(rfx_max_i64(k, r.lo), r.hi - 1);
        if (pixel != k && axis->attr->exclude_outside) continue;
        float weight = weight_at(&w, k);
        weights[pixel - r.lo] += weight;
        total += weight;
    }
    if (total == 0.0f) weights[0] = total = 1.0f; /* no tap inside the map: the border pixel */
    for (int64_t k = r.lo; k < r.hi; k++) weights[k - r.lo] /= total;
    return r;
}

/* Returns the pixels that a range of outputs reads. A window at a whole coordinate is narrower than
 * others, so an outermost window may reach less far than its neighbour. Of two neighbours either at
 * least one lies at a fractional coordinate, or both move by whole pixels. So the two outermost
 * positions at each end determine the range. */
struct rfx_range rfx_resize_filter_range(const struct rfx_resize_axis *axis, struct rfx_range out) {
    const struct window first = window_of(axis, out.lo);
    struct rfx_range r = on_map(axis, &first);
    if (out.lo >= out.hi) r.hi = r.lo;
    for (int64_t i = out.lo; i < out.hi; i++) {
        const struct window w = window_of(axis, i);
        const struct rfx_range one = on_map(axis, &w);
        r.lo = rfx_min_i64(r.lo, one.lo);
        r.hi = rfx_max_i64(r.hi, one.hi);
        if (i == out.lo + 1) i = rfx_max_i64(i, out.hi - 3);
    }
    return r;
}

/* Returns the positions strictly within the kernel's reach. If the kernel is not stretched, an
 * output at a whole coordinate reads only one position, because the kernel is 0 at all others. */
static struct rfx_range endless_window(const struct rfx_resize_axis *axis, int64_t i) {
    double at = rfx_resize_position(axis, i), reach = (double)reach_of(axis);
    double whole = floor(at + 0.5);
    if (shrink_of(axis) == 1.0f && fabs(at - whole) < 1e-6)
        return (struct rfx_range){(int64_t)whole, (int64_t)whole + 1};
    return (struct rfx_range){(int64_t)floor(at - reach + 1e-6) + 1,
                              (int64_t)ceil(at + reach - 1e-6)};
}

struct rfx_range rfx_resize_filter_endless(const struct rfx_resize_axis *axis,
                                           struct rfx_range out) {
    struct rfx_range r = endless_window(axis, out.lo);
    for (int64_t i = out.lo; i < out.hi; i++) {
        const struct rfx_range one = endless_window(axis, i);
        r.lo = rfx_min_i64(r.lo, one.lo);
        r.hi = rfx_max_i64(r.hi, one.hi);
        if (i == out.lo + 1) i = rfx_max_i64(i, out.hi - 3);
    }
    return r;
}

/* Returns the most pixels of the map that lie under a kernel. */
static int64_t most_taps(const struct rfx_resize_axis *axis) {
    return rfx_min_i64(axis->in, (int64_t)ceilf(2.0f * reach_of(axis)) + 2);
}

size_t rfx_resize_filter_scratch_bytes(const struct rfx_graph *graph, const struct rfx_node *node) {
    const struct rfx_resize_axis rows = rfx_resize_axis(graph, node, 0);
    const struct rfx_resize_axis cols = rfx_resize_axis(graph, node, 1);
    int64_t floats = most_taps(&rows) + BLOCK_COLS * most_taps(&cols) + node->out.c;
    return rfx_align_up((size_t)floats * sizeof(float));
}

/* The weights of a block of columns and of the current row, and the sum over one row of taps. */
struct block {
    const struct rfx_run_args *args;
    struct rfx_range rows, cols[BLOCK_COLS];
    const float *row_weights, *col_weights;
    int64_t col_taps; /* floats from column to column of weights */
    float *sum;
};

static void sum_row(const struct block *b, int64_t y, int64_t col, float *restrict sum, int64_t c) {
    const float *weights = b->col_weights + col * b->col_taps;
    const struct rfx_range taps = b->cols[col];
    for (int64_t k = taps.lo; k < taps.hi; k++) {
        const float *x = rfx_view_f32_at(&b->args->in[0], y, k), w = weights[k - taps.lo];
        for (int64_t i = 0; i < c; i++) sum[i] = k == taps.lo ? w * x[i] : sum[i] + w * x[i];
    }
}

static void make_pixel(const struct block *b, int64_t col, float *restrict out, int64_t c) {
    const float *restrict sum = b->sum;
    for (int64_t y = b->rows.lo; y < b->rows.hi; y++) {
        float w = b->row_weights[y - b->rows.lo];
        sum_row(b, y, col, b->sum, c);
        for (int64_t i = 0; i < c; i++) out[i] = y == b->rows.lo ? w * sum[i] : out[i] + w * sum[i];
    }
}

static void make_unit(const void *user, struct rfx_rect u, void *scratch) {
    const struct rfx_run_args *args = user;
    const struct rfx_resize_axis rows = rfx_resize_axis(args->graph, args->node, 0);
    const struct rfx_resize_axis cols = rfx_resize_axis(args->graph, args->node, 1);
    float *row_weights = scratch, *col_weights = row_weights + most_taps(&rows);
    struct block b = {.args = args,
                      .row_weights = row_weights,
                      .col_weights = col_weights,
                      .col_taps = most_taps(&cols)};
    b.sum = col_weights + BLOCK_COLS * b.col_taps;
    for (int64_t x0 = u.x0; x0 < u.x1; x0 += BLOCK_COLS) {
        int64_t n = rfx_min_i64(BLOCK_COLS, u.x1 - x0);
        for (int64_t col = 0; col < n; col++)
            b.cols[col] = fill_weights(&cols, x0 + col, col_weights + col * b.col_taps);
        for (int64_t y = u.y0; y < u.y1; y++) {
            b.rows = fill_weights(&rows, y, row_weights);
            for (int64_t col = 0; col < n; col++)
                make_pixel(&b, col, rfx_view_f32_at(&args->out, y, x0 + col), args->node->out.c);
        }
    }
}

void rfx_resize_filter_run(const struct rfx_run_args *args) {
    rfx_units_share(args, rfx_units_of_rows(args),
                    rfx_resize_filter_scratch_bytes(args->graph, args->node), make_unit, args);
}
