/* GRID_SAMPLE (ONNX GridSample opset 16 to 22, on maps). Output pixel (y, x) is sampled from the
 * map in[0] at a place that pixel (y, x) of in[1] gives. Channel 0 of in[1] is the place across,
 * channel 1 the place down, from -1 at one border to 1 at the other. With align_corners the borders
 * are the centres of the outer pixels, without it their outer edges.
 *
 * An output may read any place of the map, so in[0] is required whole; in[1] is read pixel by
 * pixel. Rules: 1. Arithmetic is in float, in the order of the code. 2. With `reflection` a place
 * outside the map is first mirrored into the map. 3. A tap outside the map reads the border pixel,
 * a mirrored pixel, or nothing, depending on the padding. 4. A tap of weight 0 is not read. Taps
 * are added row by row, each row from left to right. 5. A NaN coordinate counts as far outside. */
#include <math.h>
#include <string.h>

#include "layers/core/checked.h"
#include "layers/graph/infer.h"
#include "layers/graph/units.h"

#define CUBIC_A (-0.75f)
#define FAR 1e9f /* farther than any map is wide */
#define MOST_TAPS 4

static enum rfx_status grid_infer(const struct rfx_graph *graph, struct rfx_node *node,
                                  struct rfx_error *err) {
    enum rfx_status status = rfx_infer_inputs(graph, node, 2, RFX_LAYOUT_NHWC, err);
    if (status != RFX_OK) return status;
    const struct rfx_tensor *in = rfx_infer_in(graph, node, 0),
                            *grid = rfx_infer_in(graph, node, 1);
    if (grid->c != 2)
        return rfx_infer_refuse(node, err, "a grid of %lld values a pixel, not 2",
                                (long long)grid->c);
    return rfx_infer_set_map(node, in->c, grid->h, grid->w, err);
}

static struct rfx_axis_map grid_axis_map(const struct rfx_graph *graph, const struct rfx_node *node,
                                         int k, int axis) {
    struct rfx_axis_map map = rfx_axis_map_identity();
    (void)graph;
    (void)node;
    (void)axis;
    if (k == 0) map.rule = RFX_AXIS_SIZED;
    return map;
}

static struct rfx_range grid_in_range(const struct rfx_graph *graph, const struct rfx_node *node,
                                      int k, int axis, struct rfx_range out) {
    const struct rfx_tensor *in = rfx_infer_in(graph, node, 0);
    if (k == 1) return out;
    return (struct rfx_range){0, out.lo >= out.hi ? 0 : axis == 0 ? in->h : in->w};
}

/* The taps of one axis: positions on the map (-1: no pixel) and their weights. */
struct taps {
    int n;
    int64_t at[MOST_TAPS];
    float weight[MOST_TAPS];
};

/* Returns x mirrored at lo and hi until it lies between them. */
static float mirrored(float x, float lo, float hi) {
    float range = hi - lo;
    if (!(range > 0.0f)) return lo;
    float beyond = x < lo ? lo - x : x > hi ? x - hi : 0.0f;
    if (beyond == 0.0f) return x;
    float turns = floorf(beyond / range), rest = beyond - turns * range;
    bool back = fmodf(turns, 2.0f) != 0.0f;
    return (x < lo) != back ? lo + rest : hi - rest;
}

static float border_lo(const struct rfx_node *node) {
    return node->attr.grid.align_corners ? 0.0f : -0.5f;
}

static float border_hi(const struct rfx_node *node, int64_t extent) {
    return (float)(extent - 1) + (node->attr.grid.align_corners ? 0.0f : 0.5f);
}

/* Returns the coordinate of grid value g on an axis of `extent` pixels. With reflection padding,
 * mirrors it into the map. */
static float place(const struct rfx_node *node, float g, int64_t extent) {
    float last = (float)(extent - 1), lo = border_lo(node), hi = border_hi(node, extent);
    float x = node->attr.grid.align_corners ? (g + 1.0f) / 2.0f * last
                                            : ((g + 1.0f) * (float)extent - 1.0f) / 2.0f;
    x = fminf(fmaxf(x, -FAR), FAR); /* fmaxf: a NaN becomes -FAR */
    return node->attr.grid.padding == RFX_GRID_REFLECTION ? mirrored(x, lo, hi) : x;
}

/* Returns the pixel that position i reads; -1: none. */
static int64_t pixel(const struct rfx_node *node, int64_t i, int64_t extent) {
    if (i >= 0 && i < extent) return i;
    if (node->attr.grid.padding == RFX_GRID_ZEROS) return -1;
    if (node->attr.grid.padding == RFX_GRID_BORDER) return i < 0 ? 0 : extent - 1;
    float x = mirrored((float)i, border_lo(node), border_hi(node, extent));
    return rfx_min_i64(rfx_max_i64((int64_t)x, 0), extent - 1);
}

static float cubic_weight(float d) {
    d = fabsf(d);
    if (d < 1.0f) return ((CUBIC_A + 2.0f) * d - (CUBIC_A + 3.0f)) * d * d + 1.0f;
    return ((CUBIC_A * d - 5.0f * CUBIC_A) * d + 8.0f * CUBIC_A) * d - 4.0f * CUBIC_A;
}

static struct taps taps_of(const struct rfx_node *node, float g, int64_t extent) {
    float x = place(node, g, extent), whole = floorf(x), rest = x - whole;
    int64_t first = (int64_t)whole;
    struct taps t = {1, {first, 0, 0, 0}, {1.0f, 0.0f, 0.0f, 0.0f}};
    if (node->attr.grid.mode == RFX_RESIZE_NEAREST) {
        t.at[0] = (int64_t)rintf(x);
    } else if (node->attr.grid.mode == RFX_RESIZE_LINEAR) {
        t = (struct taps){2, {first, first + 1, 0, 0}, {1.0f - rest, rest, 0.0f, 0.0f}};
    } else {
        t.n = 4;
        for (int i = 0; i < 4; i++) {
            t.at[i] = first - 1 + i;
            t.weight[i] = cubic_weight(rest + 1.0f - (float)i);
        }
    }
    for (int i = 0; i < t.n; i++) t.at[i] = pixel(node, t.at[i], extent);
    return t;
}

static void add_tap(const float *restrict from, float weight, float *restrict to, int64_t c) {
    for (int64_t i = 0; i < c; i++) to[i] += weight * from[i];
}

static void grid_pixel(const struct rfx_run_args *args, int64_t y, int64_t x) {
    const struct rfx_node *node = args->node;
    const struct rfx_tensor *in = rfx_infer_in(args->graph, node, 0);
    const float *grid = rfx_view_f32_at(&args->in[1], y, x);
    const struct taps cols = taps_of(node, grid[0], in->w), rows = taps_of(node, grid[1], in->h);
    float *out = rfx_view_f32_at(&args->out, y, x);
    for (int64_t i = 0; i < in->c; i++) out[i] = 0.0f;
    for (int r = 0; r < rows.n; r++)
        for (int k = 0; k < cols.n; k++) {
            float weight = rows.weight[r] * cols.weight[k];
            if (rows.at[r] < 0 || cols.at[k] < 0 || weight == 0.0f) continue;
            add_tap(rfx_view_f32_at(&args->in[0], rows.at[r], cols.at[k]), weight, out, in->c);
        }
}

static void grid_unit(const void *user, struct rfx_rect u, void *scratch) {
    (void)scratch;
    for (int64_t y = u.y0; y < u.y1; y++)
        for (int64_t x = u.x0; x < u.x1; x++) grid_pixel(user, y, x);
}

static void grid_run(const struct rfx_run_args *args) {
    rfx_units_share(args, rfx_units_of_rows(args), 0, grid_unit, args);
}

const struct rfx_op_def rfx_op_grid_sample = {
    .name = "GridSample",
    .spatial = true,
    .infer = grid_infer,
    .axis_map = grid_axis_map,
    .in_range = grid_in_range,
    .run = grid_run,
};
