/* RESIZE in the coordinates of the full map (ONNX Resize opset 19). Float arithmetic is in ONNX
 * Runtime's order, so that the same source pixel is chosen. This file has nearest and linear;
 * resize_filter.c has the modes that sum under a kernel.
 *
 * Coordinates outside the map are clamped. A linear tap of weight 0 is not read. */
#include <math.h>
#include <string.h>

#include "layers/core/checked.h"
#include "layers/graph/infer.h"
#include "layers/ops/resize.h"

#define TIE_TOLERANCE 1e-6f

/* The sources of one output row or column: value = (1 - weight) * in[lo] + weight * in[hi]. */
struct source {
    int64_t lo, hi;
    float weight;
};

static enum rfx_status infer(const struct rfx_graph *graph, struct rfx_node *node,
                             struct rfx_error *err) {
    enum rfx_status status = rfx_infer_inputs(graph, node, 1, RFX_LAYOUT_NHWC, err);
    if (status != RFX_OK) return status;
    const struct rfx_resize_attr *a = &node->attr.resize;
    const struct rfx_tensor *in = rfx_infer_in(graph, node, 0);
    if (!(a->scale_h > 0.0f) || !(a->scale_w > 0.0f) || !isfinite(a->scale_h) ||
        !isfinite(a->scale_w))
        return rfx_infer_refuse(node, err, "scales %g x %g must be positive", (double)a->scale_h,
                                (double)a->scale_w);
    /* a valid scale gives a map of at least one pixel */
    if (rfx_resize_is_filtered(a) &&
        ((float)in->h * a->scale_h < 0.5f || (float)in->w * a->scale_w < 0.5f))
        return rfx_infer_refuse(node, err, "scales %g x %g shrink %lld x %lld to nothing",
                                (double)a->scale_h, (double)a->scale_w, (long long)in->h,
                                (long long)in->w);
    return rfx_infer_set_map(node, in->c, a->oh, a->ow, err);
}

struct rfx_resize_axis rfx_resize_axis(const struct rfx_graph *graph, const struct rfx_node *node,
                                       int axis) {
    const struct rfx_resize_attr *a = &node->attr.resize;
    const struct rfx_tensor *t = rfx_infer_in(graph, node, 0);
    return axis == 0 ? (struct rfx_resize_axis){a, t->h, a->oh, a->scale_h}
                     : (struct rfx_resize_axis){a, t->w, a->ow, a->scale_w};
}

/* Returns the difference between half_pixel_symmetric coordinates, which are symmetric around the
 * map's middle, and half_pixel coordinates. */
static float symmetric_shift(const struct rfx_resize_axis *axis) {
    float adjusted = (float)axis->out / (axis->scale * (float)axis->in);
    return (float)axis->in / 2.0f * (1.0f - adjusted);
}

float rfx_resize_coordinate(const struct rfx_resize_axis *axis, int64_t i) {
    float x = (float)i, scale = axis->scale;
    if (scale == 1.0f) return x;
    switch (axis->attr->coord) {
        case RFX_COORD_HALF_PIXEL:
            return (x + 0.5f) / scale - 0.5f;
        case RFX_COORD_PYTORCH_HALF_PIXEL:
            return axis->out > 1 ? (x + 0.5f) / scale - 0.5f : 0.0f;
        case RFX_COORD_ALIGN_CORNERS:
            return axis->out == 1 ? 0.0f : x * (float)(axis->in - 1) / (float)(axis->out - 1);
        case RFX_COORD_ASYMMETRIC:
            return x / scale;
        case RFX_COORD_HALF_PIXEL_SYMMETRIC:
            return symmetric_shift(axis) + (x + 0.5f) / scale - 0.5f;
    }
    return x;
}

double rfx_resize_position(const struct rfx_resize_axis *axis, int64_t i) {
    const struct rfx_resize_attr *a = axis->attr;
    double step = 1.0 / (double)axis->scale, shift = 0.0;
    if (a->coord == RFX_COORD_ALIGN_CORNERS && axis->out > 1)
        step = (double)(axis->in - 1) / (double)(axis->out - 1);
    if (a->coord == RFX_COORD_HALF_PIXEL || a->coord == RFX_COORD_PYTORCH_HALF_PIXEL ||
        a->coord == RFX_COORD_HALF_PIXEL_SYMMETRIC)
        shift = 0.5 * step - 0.5;
    if (a->coord == RFX_COORD_HALF_PIXEL_SYMMETRIC) shift += (double)symmetric_shift(axis);
    return (double)i * step + shift;
}

/* Rounds a coordinate to a pixel. Both "prefer" modes treat a coordinate within TIE_TOLERANCE of a
 * half as a tie, as ONNX Runtime 1.31 does (found from its results: 14.499999 is a tie, 24.499998
 * is not). */
static float round_nearest(enum rfx_resize_nearest mode, float x) {
    bool tie = fabsf(x - floorf(x) - 0.5f) < TIE_TOLERANCE;
    switch (mode) {
        case RFX_NEAREST_ROUND_PREFER_FLOOR:
            return tie ? floorf(x) : roundf(x);
        case RFX_NEAREST_ROUND_PREFER_CEIL:
            return tie ? ceilf(x) : roundf(x);
        case RFX_NEAREST_FLOOR:
            return floorf(x);
        case RFX_NEAREST_CEIL:
            return ceilf(x);
    }
    return x;
}

static struct source source_of(const struct rfx_resize_axis *axis, int64_t i) {
    const struct rfx_resize_attr *a = axis->attr;
    float x = rfx_resize_coordinate(axis, i), last = (float)(axis->in - 1);
    if (a->mode == RFX_RESIZE_NEAREST) x = round_nearest(a->nearest, x);
    x = fminf(fmaxf(x, 0.0f), last);
    struct source s = {(int64_t)x, (int64_t)x, 0.0f};
    s.weight = x - (float)s.lo;
    if (s.weight > 0.0f) s.hi = rfx_min_i64(s.lo + 1, axis->in - 1);
    if (s.hi == s.lo) s.weight = 0.0f;
    return s;
}

static struct rfx_range in_range(const struct rfx_graph *graph, const struct rfx_node *node, int k,
                                 int axis, struct rfx_range out) {
    const struct rfx_resize_axis of = rfx_resize_axis(graph, node, axis);
    (void)k;
    if (rfx_resize_is_filtered(of.attr)) return rfx_resize_filter_range(&of, out);
    struct rfx_range r = {source_of(&of, out.lo).lo, 0};
    r.hi = out.lo < out.hi ? source_of(&of, out.hi - 1).hi + 1 : r.lo;
    return r;
}

/* Returns how many times each pixel is repeated along the axis if the resize only repeats pixels; 0
 * if it does not. */
static int64_t times_repeated(const struct rfx_node *node, int axis, int64_t in, int64_t out) {
    const struct rfx_resize_attr *a = &node->attr.resize;
    float scale = axis == 0 ? a->scale_h : a->scale_w;
    bool repeats = a->mode == RFX_RESIZE_NEAREST && a->coord == RFX_COORD_ASYMMETRIC &&
                   a->nearest == RFX_NEAREST_FLOOR && out < (1 << 24);
    return repeats && out % in == 0 && scale == (float)(out / in) ? out / in : 0;
}

/* Returns the axis map: a transposed one if pixels are only repeated, else one by the rule ROUNDED.
 * Its ratio down / up is that of the map sizes; with aligned corners, that of the distances between
 * the outermost pixels. */
static struct rfx_axis_map axis_map(const struct rfx_graph *graph, const struct rfx_node *node,
                                    int k, int axis) {
    const struct rfx_tensor *t = rfx_infer_in(graph, node, k);
    int64_t in = axis == 0 ? t->h : t->w, out = axis == 0 ? node->out.h : node->out.w;
    int64_t times = times_repeated(node, axis, in, out);
    if (times > 1) return rfx_axis_map_transposed(times, 1, times, 0);
    bool corners = node->attr.resize.coord == RFX_COORD_ALIGN_CORNERS && in > 1 && out > 1;
    struct rfx_axis_map map = rfx_axis_map_identity();
    map.rule = RFX_AXIS_ROUNDED;
    map.down = corners ? in - 1 : in;
    map.up = corners ? out - 1 : out;
    return map;
}

enum { MOST_AVERAGED = 4096 };

/* Returns the average distance of the copied pixels from the outputs' exact positions. */
static double nearest_shift(const struct rfx_graph *graph, const struct rfx_node *node,
                            const struct rfx_resize_axis *of, int axis, double step, double shift) {
    int64_t n = rfx_min_i64(of->out, MOST_AVERAGED);
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++) {
        struct rfx_range one =
            rfx_op_endless_range(graph, node, 0, axis, (struct rfx_range){i, i + 1});
        sum += (double)(one.lo + one.hi - 1) / 2.0 - ((double)i * step + shift);
    }
    return n > 0 ? sum / (double)n : 0.0;
}

/* Returns the place map of the axis. Scales are rounded to float; if the scale is the ratio of the
 * sizes, the sizes give the exact step. */
static struct rfx_axis_place axis_place(const struct rfx_graph *graph, const struct rfx_node *node,
                                        int k, int axis) {
    const struct rfx_resize_axis of = rfx_resize_axis(graph, node, axis);
    struct rfx_axis_map map = axis_map(graph, node, k, axis);
    if (map.rule != RFX_AXIS_ROUNDED) return rfx_axis_map_place(&map);
    struct rfx_axis_place place = {true, 1.0, rfx_resize_position(&of, 0)};
    place.step = rfx_resize_position(&of, 1) - place.shift;
    double exact = (double)of.in / (double)of.out;
    bool corners = of.attr->coord == RFX_COORD_ALIGN_CORNERS && of.out > 1;
    if (!corners && (float)of.out / (float)of.in == of.scale) {
        place.shift = place.shift == 0.0 ? 0.0 : place.shift + (exact - place.step) / 2.0;
        place.step = exact;
    }
    if (of.attr->mode == RFX_RESIZE_NEAREST)
        place.shift += nearest_shift(graph, node, &of, axis, place.step, place.shift);
    return place;
}

/* Returns the source range of `out` on a map without borders, rounded as the mode rounds
 * coordinates. */
static struct rfx_range endless_range(const struct rfx_graph *graph, const struct rfx_node *node,
                                      int k, int axis, struct rfx_range out) {
    const struct rfx_resize_attr *a = &node->attr.resize;
    const struct rfx_resize_axis of = rfx_resize_axis(graph, node, axis);
    (void)k;
    if (rfx_resize_is_filtered(a)) return rfx_resize_filter_endless(&of, out);
    double first = rfx_resize_position(&of, out.lo), last = rfx_resize_position(&of, out.hi - 1);
    int64_t lo = (int64_t)floor(first + 1e-9), hi = (int64_t)floor(last + 1e-9);
    if (a->mode == RFX_RESIZE_LINEAR) {
        bool whole = last - (double)hi < 1e-6;
        struct rfx_range r = {lo, hi + (whole ? 1 : 2)};
        return r;
    }
    if (a->nearest == RFX_NEAREST_ROUND_PREFER_FLOOR ||
        a->nearest == RFX_NEAREST_ROUND_PREFER_CEIL) {
        double half = a->nearest == RFX_NEAREST_ROUND_PREFER_FLOOR ? 0.5 - 1e-9 : 0.5 + 1e-9;
        lo = (int64_t)floor(first + half);
        hi = (int64_t)floor(last + half);
    } else if (a->nearest == RFX_NEAREST_CEIL) {
        lo = (int64_t)ceil(first - 1e-9);
        hi = (int64_t)ceil(last - 1e-9);
    }
    struct rfx_range r = {lo, hi + 1};
    return r;
}

static void mix(const float *restrict a, const float *restrict b, float weight, float *restrict out,
                int64_t c) {
    float rest = 1.0f - weight;
    for (int64_t i = 0; i < c; i++) out[i] = rest * a[i] + weight * b[i];
}

/* Interpolates four taps: first between columns, then between rows. */
static void mix4(const float *const *p, float wx, float wy, float *restrict out, int64_t c) {
    const float *a = p[0], *b = p[1], *d = p[2], *e = p[3];
    float rx = 1.0f - wx, ry = 1.0f - wy;
    for (int64_t i = 0; i < c; i++)
        out[i] = ry * (rx * a[i] + wx * b[i]) + wy * (rx * d[i] + wx * e[i]);
}

static void resize_row(const struct rfx_run_args *args, int64_t y) {
    int64_t c = args->node->out.c;
    const struct rfx_view *in = &args->in[0];
    const struct rfx_resize_axis rows = rfx_resize_axis(args->graph, args->node, 0);
    const struct rfx_resize_axis cols = rfx_resize_axis(args->graph, args->node, 1);
    struct source sy = source_of(&rows, y);
    for (int64_t x = args->rect.x0; x < args->rect.x1; x++) {
        struct source sx = source_of(&cols, x);
        float *out = rfx_view_f32_at(&args->out, y, x);
        const float *p[4] = {rfx_view_f32_at(in, sy.lo, sx.lo), rfx_view_f32_at(in, sy.lo, sx.hi),
                             rfx_view_f32_at(in, sy.hi, sx.lo), rfx_view_f32_at(in, sy.hi, sx.hi)};
        if (sy.hi == sy.lo && sx.hi == sx.lo)
            memcpy(out, p[0], (size_t)c * sizeof *out);
        else if (sy.hi == sy.lo)
            mix(p[0], p[1], sx.weight, out, c);
        else if (sx.hi == sx.lo)
            mix(p[0], p[2], sy.weight, out, c);
        else
            mix4(p, sx.weight, sy.weight, out, c);
    }
}

static size_t scratch_bytes(const struct rfx_graph *graph, const struct rfx_node *node,
                            int threads) {
    if (!rfx_resize_is_filtered(&node->attr.resize)) return 0;
    return (size_t)threads * rfx_resize_filter_scratch_bytes(graph, node);
}

static void run(const struct rfx_run_args *args) {
    if (rfx_resize_is_filtered(&args->node->attr.resize)) {
        rfx_resize_filter_run(args);
        return;
    }
    rfx_op_share_rows(args, rfx_rect_area(args->rect) * args->node->out.c > 16384, resize_row);
}

const struct rfx_op_def rfx_op_resize = {
    .name = "Resize",
    .spatial = true,
    .infer = infer,
    .axis_map = axis_map,
    .axis_place = axis_place,
    .in_range = in_range,
    .endless_range = endless_range,
    .scratch_bytes = scratch_bytes,
    .run = run,
};
