/* PAD: adds rows and columns around the map (ONNX Pad). Modes: constant; reflect without repeating
 * the border; edge; and wrap, where the map starts again after its end. Negative pads crop.
 *
 * Wrap counts modulo the map's size: position i reads position (i - pad) mod n. A negative pad on
 * one side and an equal positive pad on the other roll the map. */
#include <string.h>

#include "layers/core/checked.h"
#include "layers/graph/infer.h"

static bool reflect_fits(int64_t in, int64_t before, int64_t after) {
    int64_t kept = in + rfx_min_i64(before, 0) + rfx_min_i64(after, 0);
    return before < kept && after < kept;
}

static enum rfx_status infer(const struct rfx_graph *graph, struct rfx_node *node,
                             struct rfx_error *err) {
    enum rfx_status status = rfx_infer_inputs(graph, node, 1, RFX_LAYOUT_NHWC, err);
    if (status != RFX_OK) return status;
    const struct rfx_tensor *in = rfx_infer_in(graph, node, 0);
    const struct rfx_pads *p = &node->attr.pad.pads;
    int64_t h, w;
    if (!rfx_checked_add_i64(in->h, p->top, &h) || !rfx_checked_add_i64(h, p->bottom, &h) ||
        !rfx_checked_add_i64(in->w, p->left, &w) || !rfx_checked_add_i64(w, p->right, &w))
        return rfx_infer_refuse(node, err, "the padded size overflows");
    if (node->attr.pad.mode != RFX_PAD_CONSTANT &&
        (p->top <= -in->h || p->bottom <= -in->h || p->left <= -in->w || p->right <= -in->w))
        return rfx_infer_refuse(node, err, "negative pads remove all of %lldx%lld",
                                (long long)in->h, (long long)in->w);
    if (node->attr.pad.mode == RFX_PAD_REFLECT &&
        (!reflect_fits(in->h, p->top, p->bottom) || !reflect_fits(in->w, p->left, p->right)))
        return rfx_infer_refuse(node, err,
                                "reflected pads %lld,%lld,%lld,%lld must be below the size "
                                "%lldx%lld",
                                (long long)p->top, (long long)p->left, (long long)p->bottom,
                                (long long)p->right, (long long)in->h, (long long)in->w);
    return rfx_infer_set_map(node, in->c, h, w, err);
}

static int64_t clamp(int64_t v, int64_t n) {
    return rfx_max_i64(0, rfx_min_i64(v, n - 1));
}

/* Returns the source index of output index i - pad; -1: the constant. */
static int64_t source_index(enum rfx_pad_mode mode, int64_t i, int64_t n) {
    if (i >= 0 && i < n) return i;
    if (mode == RFX_PAD_CONSTANT) return -1;
    if (mode == RFX_PAD_EDGE) return clamp(i, n);
    if (mode == RFX_PAD_WRAP) return i - rfx_floor_div(i, n) * n;
    return i < 0 ? -i : 2 * (n - 1) - i;
}

/* Returns the hull of the source indices of a to b (inclusive), for mode reflect. */
static struct rfx_range reflect_hull(int64_t a, int64_t b, int64_t n) {
    int64_t lo = INT64_MAX, hi = INT64_MIN;
    const int64_t ends[6] = {a, b, -1, 0, n - 1, n}; /* monotone between these */
    for (int i = 0; i < 6; i++) {
        if (ends[i] < a || ends[i] > b) continue;
        int64_t s = clamp(source_index(RFX_PAD_REFLECT, ends[i], n), n);
        lo = rfx_min_i64(lo, s);
        hi = rfx_max_i64(hi, s);
    }
    struct rfx_range r = {lo, hi + 1};
    return r;
}

/* Returns the hull of the source indices of a to b (inclusive), for mode wrap. */
static struct rfx_range wrap_hull(int64_t a, int64_t b, int64_t n) {
    int64_t turn = rfx_floor_div(a, n) * n;
    if (b - turn >= n) return (struct rfx_range){0, n};
    return (struct rfx_range){a - turn, b - turn + 1};
}

static void window(const struct rfx_node *node, struct rfx_window *window) {
    window->pads = node->attr.pad.pads;
}

/* Returns the required input range. For edge, reflect and wrap, positions outside the map read
 * positions inside it. */
static struct rfx_range in_range(const struct rfx_graph *graph, const struct rfx_node *node, int k,
                                 int axis, struct rfx_range out) {
    const struct rfx_tensor *in = rfx_infer_in(graph, node, k);
    int64_t n = axis == 0 ? in->h : in->w;
    int64_t shift = axis == 0 ? node->attr.pad.pads.top : node->attr.pad.pads.left;
    struct rfx_range r = {out.lo - shift, out.hi - shift};
    if (r.lo >= r.hi || node->attr.pad.mode == RFX_PAD_CONSTANT) return r;
    if (node->attr.pad.mode == RFX_PAD_REFLECT) return reflect_hull(r.lo, r.hi - 1, n);
    if (node->attr.pad.mode == RFX_PAD_WRAP) return wrap_hull(r.lo, r.hi - 1, n);
    struct rfx_range edge = {clamp(r.lo, n), clamp(r.hi - 1, n) + 1};
    return edge;
}

static void fill(float *to, float value, int64_t n) {
    for (int64_t i = 0; i < n; i++) to[i] = value;
}

static void pad_row(const struct rfx_run_args *args, int64_t y) {
    const struct rfx_tensor *in = &args->graph->nodes[args->node->in[0]].out;
    const struct rfx_pads *p = &args->node->attr.pad.pads;
    enum rfx_pad_mode mode = args->node->attr.pad.mode;
    float value = args->node->attr.pad.value;
    struct rfx_rect r = args->rect;
    int64_t c = in->c, sy = source_index(mode, y - p->top, in->h);
    float *to = rfx_view_f32_at(&args->out, y, r.x0);
    if (sy < 0) {
        fill(to, value, rfx_rect_cols(r) * c);
        return;
    }
    int64_t inside0 = rfx_min_i64(r.x1, rfx_max_i64(r.x0, p->left));
    int64_t inside1 = rfx_max_i64(inside0, rfx_min_i64(r.x1, p->left + in->w));
    if (inside1 > inside0)
        memcpy(rfx_view_f32_at(&args->out, y, inside0),
               rfx_view_f32_at(&args->in[0], sy, inside0 - p->left),
               rfx_tensor_pixel_bytes(in, inside1 - inside0));
    for (int64_t x = r.x0, run_px; x < r.x1; x += run_px) {
        if (x == inside0) x = inside1;
        if (x >= r.x1) break;
        int64_t sx = source_index(mode, x - p->left, in->w);
        run_px = 1;
        if (mode == RFX_PAD_WRAP)
            run_px = rfx_min_i64((x < inside0 ? inside0 : r.x1) - x, in->w - sx);
        to = rfx_view_f32_at(&args->out, y, x);
        if (sx < 0)
            fill(to, value, c);
        else
            memcpy(to, rfx_view_f32_at(&args->in[0], sy, sx), rfx_tensor_pixel_bytes(in, run_px));
    }
}

static void run(const struct rfx_run_args *args) {
    rfx_op_share_rows(args, rfx_rect_area(args->rect) * args->node->out.c > 65536, pad_row);
}

const struct rfx_op_def rfx_op_pad = {
    .name = "Pad",
    .spatial = true,
    .infer = infer,
    .window = window,
    .axis_map = rfx_op_map_window,
    .in_range = in_range,
    .run = run,
};
