/* POOL_MAX, POOL_PLACE, POOL_AVG, POOL_LP and POOL_ADAPTIVE_AVG (ONNX MaxPool, AveragePool opset
 * 19, LpPool opset 18; PyTorch AdaptiveAvgPool2d).
 *
 * Rules: 1. With ceil_mode a window must start inside the input or in its left or top padding. 2.
 * The padding of a maximum is minus infinity, and a NaN in the window gives NaN. 3. With
 * count_include_pad, an average divides by the number of window positions inside the input and its
 * pads, otherwise by the number inside the input. 4. Sums run over the window's rows, then columns,
 * in float (adaptive: double). 5. LP sums |x|^p of the positions inside the input, in double. For p
 * of 1, 2 and 4 it uses squares and square roots, each of which is exact or rounded once. For other
 * p it sums (|x| / m)^p, where m is the window's largest |x|, so that no power overflows, and
 * multiplies the root by m. 6. PLACE returns the index of the window's largest element among the
 * map's elements in ONNX order (with column_major, columns before rows). Of several largest
 * elements it returns the first; a NaN counts as larger than all numbers. 7. Adaptive output i
 * covers rows floor(i H / O) to ceil((i + 1) H / O). */
#include <math.h>
#include <string.h>

#include "layers/core/checked.h"
#include "layers/core/real_math.h"
#include "layers/graph/infer.h"
#include "layers/kernels/kernels.h"

#define THREADING_ELEMS 16384 /* below this much work one thread is faster */
#define CHANNEL_BLOCK 128

static bool out_extent(int64_t in, int64_t before, int64_t after, int64_t k, int64_t d, int64_t s,
                       bool ceil_mode, int64_t *out) {
    int64_t window, padded;
    if (!rfx_checked_mul_i64(k - 1, d, &window) || !rfx_checked_add_i64(in, before, &padded) ||
        !rfx_checked_add_i64(padded, after, &padded) || window >= padded)
        return false;
    int64_t span = padded - window - 1;
    *out = (ceil_mode ? rfx_ceil_div(span, s) : span / s) + 1;
    if (ceil_mode && (*out - 1) * s >= in + before) (*out)--;
    return true;
}

static enum rfx_status infer_pool(const struct rfx_graph *graph, struct rfx_node *node,
                                  struct rfx_error *err) {
    enum rfx_status status = rfx_infer_inputs(graph, node, 1, RFX_LAYOUT_NHWC, err);
    if (status != RFX_OK) return status;
    const struct rfx_tensor *in = rfx_infer_in(graph, node, 0);
    const struct rfx_pool_attr *a = &node->attr.pool;
    const struct rfx_pads *p = &a->pads;
    if (a->kh < 1 || a->kw < 1 || a->sh < 1 || a->sw < 1 || a->dh < 1 || a->dw < 1)
        return rfx_infer_refuse(node, err,
                                "kernel %lldx%lld, stride %lldx%lld, dilation %lldx%lld must be "
                                "positive",
                                (long long)a->kh, (long long)a->kw, (long long)a->sh,
                                (long long)a->sw, (long long)a->dh, (long long)a->dw);
    if (p->top < 0 || p->left < 0 || p->bottom < 0 || p->right < 0)
        return rfx_infer_refuse(node, err, "negative pads %lld,%lld,%lld,%lld", (long long)p->top,
                                (long long)p->left, (long long)p->bottom, (long long)p->right);
    int64_t oh, ow;
    if (!out_extent(in->h, p->top, p->bottom, a->kh, a->dh, a->sh, a->ceil_mode, &oh) ||
        !out_extent(in->w, p->left, p->right, a->kw, a->dw, a->sw, a->ceil_mode, &ow))
        return rfx_infer_refuse(node, err,
                                "kernel %lldx%lld, dilation %lldx%lld exceeds padded input of "
                                "%lldx%lld",
                                (long long)a->kh, (long long)a->kw, (long long)a->dh,
                                (long long)a->dw, (long long)in->h, (long long)in->w);
    return rfx_infer_set_map(node, in->c, oh, ow, err);
}

static void pool_window(const struct rfx_node *node, struct rfx_window *window) {
    const struct rfx_pool_attr *a = &node->attr.pool;
    *window = (struct rfx_window){{a->kh, a->kw}, {a->sh, a->sw}, {a->dh, a->dw}, a->pads};
}

/* The taps [lo, hi) of a window starting at `start` that lie in [first, end). */
static struct rfx_range taps_in(int64_t start, int64_t k, int64_t d, int64_t first, int64_t end) {
    struct rfx_range t = {rfx_max_i64(0, rfx_ceil_div(first - start, d)),
                          rfx_min_i64(k, rfx_ceil_div(end - start, d))};
    if (t.hi < t.lo) t.hi = t.lo;
    return t;
}

#define MOST_ROWS 16 /* rows of a window that the kernel reads at a time */

/* Pools the taps of a window that lie inside the map, MOST_ROWS rows at a time. */
static void pool_taps(const struct rfx_run_args *args, int64_t y, int64_t x, struct rfx_range ty,
                      struct rfx_range tx, struct rfx_pool_args *run) {
    const struct rfx_pool_attr *a = &args->node->attr.pool;
    const float *rows[MOST_ROWS];
    run->rows = rows;
    run->n_cols = rfx_range_size(tx);
    run->col_step = a->dw * args->in[0].c;
    for (int64_t ky = ty.lo; ky < ty.hi || !run->begun; ky += MOST_ROWS, run->begun = true) {
        run->n_rows = run->n_cols == 0 ? 0 : rfx_min_i64(ty.hi - ky, MOST_ROWS);
        run->goes_on = ky + MOST_ROWS < ty.hi;
        for (int64_t i = 0; i < run->n_rows; i++)
            rows[i] = rfx_view_f32_at(&args->in[0], y + (ky + i) * a->dh, x + tx.lo * a->dw);
        rfx_kernels()->pool(run);
    }
}

static void share_rows(const struct rfx_run_args *args,
                       void (*row)(const struct rfx_run_args *args, int64_t y)) {
    const struct rfx_pool_attr *a = &args->node->attr.pool;
    int64_t work = rfx_rect_area(args->rect) * args->node->out.c * a->kh * a->kw;
    rfx_op_share_rows(args, work > THREADING_ELEMS, row);
}

/* What the windows of one row of outputs have in common. */
struct window_row {
    int64_t y;           /* input row of the first tap */
    struct rfx_range ty; /* taps inside the map */
    int64_t counted;     /* rows of taps that an average counts */
};

/* Pools one window that lies at a border or has more than MOST_ROWS rows. */
static void pool_pixel(const struct rfx_run_args *args, const struct window_row *row, int64_t ox,
                       struct rfx_pool_args run) {
    const struct rfx_pool_attr *a = &args->node->attr.pool;
    int64_t x = ox * a->sw - a->pads.left, w = args->graph->nodes[args->node->in[0]].out.w;
    struct rfx_range tx = taps_in(x, a->kw, a->dw, 0, w), counted = tx;
    if (a->count_include_pad) counted = taps_in(x, a->kw, a->dw, -a->pads.left, w + a->pads.right);
    run.count = (float)rfx_max_i64(1, row->counted * rfx_range_size(counted));
    pool_taps(args, row->y, x, row->ty, tx, &run);
}

/* Pools one row of outputs. Windows that lie wholly within the map's columns share the pointers to
 * their rows. */
static void pool_row(const struct rfx_run_args *args, int64_t oy) {
    const struct rfx_pool_attr *a = &args->node->attr.pool;
    const struct rfx_tensor *in = &args->graph->nodes[args->node->in[0]].out;
    const struct rfx_view *view = &args->in[0];
    int64_t y = oy * a->sh - a->pads.top, reach = (a->kw - 1) * a->dw;
    struct rfx_range ty = taps_in(y, a->kh, a->dh, 0, in->h), counted = ty;
    if (a->count_include_pad)
        counted = taps_in(y, a->kh, a->dh, -a->pads.top, in->h + a->pads.bottom);
    const struct window_row row = {y, ty, rfx_range_size(counted)};
    const float *first[MOST_ROWS], *rows[MOST_ROWS];
    int64_t n_rows = rfx_range_size(ty);
    for (int64_t i = 0; i < n_rows && n_rows <= MOST_ROWS; i++)
        first[i] = rfx_view_f32_at(view, y + (ty.lo + i) * a->dh, view->rect.x0);
    struct rfx_pool_args run = {.c = in->c, .maximum = args->node->op == RFX_OP_POOL_MAX};
    for (int64_t ox = args->rect.x0; ox < args->rect.x1; ox++) {
        int64_t x = ox * a->sw - a->pads.left;
        run.out = rfx_view_f32_at(&args->out, oy, ox);
        if (n_rows > MOST_ROWS || x < 0 || x + reach >= in->w) {
            pool_pixel(args, &row, ox, run);
            continue;
        }
        for (int64_t i = 0; i < n_rows; i++) rows[i] = first[i] + (x - view->rect.x0) * view->c;
        run.rows = rows;
        run.n_rows = n_rows;
        run.n_cols = a->kw;
        run.col_step = a->dw * view->c;
        run.count = (float)rfx_max_i64(1, row.counted * a->kw);
        rfx_kernels()->pool(&run);
    }
}

static enum rfx_status infer_place(const struct rfx_graph *graph, struct rfx_node *node,
                                   struct rfx_error *err) {
    enum rfx_status status = infer_pool(graph, node, err);
    if (status != RFX_OK) return status;
    const struct rfx_tensor *in = rfx_infer_in(graph, node, 0);
    if (in->elems <= RFX_FLOAT_COUNT_MAX) return RFX_OK;
    return rfx_infer_refuse(node, err,
                            "indices of a map of %lldx%lldx%lld (channels, rows, columns) count "
                            "%lld elements; float32, as which they are given out, is exact up to "
                            "%lld: run parts of the image, or the network without this output",
                            (long long)in->c, (long long)in->h, (long long)in->w,
                            (long long)in->elems, (long long)RFX_FLOAT_COUNT_MAX);
}

static void place_pixel(const struct rfx_run_args *args, int64_t oy, int64_t ox) {
    const struct rfx_pool_attr *a = &args->node->attr.pool;
    const struct rfx_tensor *in = &args->graph->nodes[args->node->in[0]].out;
    int64_t y = oy * a->sh - a->pads.top, x = ox * a->sw - a->pads.left;
    struct rfx_range ty = taps_in(y, a->kh, a->dh, 0, in->h);
    struct rfx_range tx = taps_in(x, a->kw, a->dw, 0, in->w);
    int64_t row_step = a->column_major ? 1 : in->w, column_step = a->column_major ? in->h : 1;
    float *out = rfx_view_f32_at(&args->out, oy, ox);
    for (int64_t c = 0; c < in->c; c++) {
        float largest = -INFINITY;
        int64_t place = -1;
        for (int64_t ky = ty.lo; ky < ty.hi; ky++)
            for (int64_t kx = tx.lo; kx < tx.hi; kx++) {
                int64_t iy = y + ky * a->dh, ix = x + kx * a->dw;
                float v = rfx_view_f32_at(&args->in[0], iy, ix)[c];
                bool larger = v > largest || (isnan(v) && !isnan(largest));
                if (!larger && place >= 0) continue;
                largest = v;
                place = c * in->h * in->w + iy * row_step + ix * column_step;
            }
        out[c] = (float)place;
    }
}

static void place_row(const struct rfx_run_args *args, int64_t y) {
    for (int64_t x = args->rect.x0; x < args->rect.x1; x++) place_pixel(args, y, x);
}

static void run_place(const struct rfx_run_args *args) {
    share_rows(args, place_row);
}

static enum rfx_status infer_lp(const struct rfx_graph *graph, struct rfx_node *node,
                                struct rfx_error *err) {
    int64_t p = node->attr.pool.p;
    if (p < 1) return rfx_infer_refuse(node, err, "p = %lld: 1 or more", (long long)p);
    return infer_pool(graph, node, err);
}

/* Adds |x|^p of n channels to `sum`; p is 1, 2 or 4. */
static void add_squares(double *restrict sum, const float *restrict x, int64_t n, int64_t p) {
    for (int64_t i = 0; i < n; i++) {
        double v = fabs((double)x[i]), square = v * v;
        sum[i] += p == 1 ? v : p == 2 ? square : square * square;
    }
}

/* A window: the input pixel of its first tap, and the taps inside the map. */
struct window_taps {
    const struct rfx_pool_attr *a;
    const struct rfx_view *view;
    int64_t y, x;
    struct rfx_range ty, tx;
};

static const float *tap_at(const struct window_taps *w, int64_t ky, int64_t kx) {
    return rfx_view_f32_at(w->view, w->y + ky * w->a->dh, w->x + kx * w->a->dw);
}

static void lp_by_squares(const struct window_taps *w, int64_t first, int64_t n, float *out) {
    double sum[CHANNEL_BLOCK] = {0};
    for (int64_t ky = w->ty.lo; ky < w->ty.hi; ky++)
        for (int64_t kx = w->tx.lo; kx < w->tx.hi; kx++)
            add_squares(sum, tap_at(w, ky, kx) + first, n, w->a->p);
    for (int64_t i = 0; i < n; i++) {
        double root = w->a->p == 1 ? sum[i] : sqrt(sum[i]);
        out[first + i] = (float)(w->a->p == 4 ? sqrt(root) : root);
    }
}

/* Returns the LP pooling of one channel for any p. A NaN in the window makes the result NaN. */
static float lp_by_powers(const struct window_taps *w, int64_t channel) {
    const double p = (double)w->a->p;
    double largest = 0.0, sum = 0.0;
    for (int64_t ky = w->ty.lo; ky < w->ty.hi; ky++)
        for (int64_t kx = w->tx.lo; kx < w->tx.hi; kx++) {
            double v = fabs((double)tap_at(w, ky, kx)[channel]);
            if (!(v <= largest)) largest = isnan(largest) ? largest : v;
        }
    if (!(largest > 0.0) || isinf(largest)) return (float)largest;
    for (int64_t ky = w->ty.lo; ky < w->ty.hi; ky++)
        for (int64_t kx = w->tx.lo; kx < w->tx.hi; kx++)
            sum += rfx_pow(fabs((double)tap_at(w, ky, kx)[channel]) / largest, p);
    return (float)(largest * rfx_pow(sum, 1.0 / p));
}

static void lp_pixel(const struct rfx_run_args *args, int64_t oy, int64_t ox) {
    const struct rfx_pool_attr *a = &args->node->attr.pool;
    const struct rfx_tensor *in = &args->graph->nodes[args->node->in[0]].out;
    struct window_taps w = {
        a, &args->in[0], oy * a->sh - a->pads.top, ox * a->sw - a->pads.left, {0, 0}, {0, 0}};
    w.ty = taps_in(w.y, a->kh, a->dh, 0, in->h);
    w.tx = taps_in(w.x, a->kw, a->dw, 0, in->w);
    float *out = rfx_view_f32_at(&args->out, oy, ox);
    bool squares = a->p == 1 || a->p == 2 || a->p == 4;
    for (int64_t first = 0; squares && first < in->c; first += CHANNEL_BLOCK)
        lp_by_squares(&w, first, rfx_min_i64(CHANNEL_BLOCK, in->c - first), out);
    for (int64_t c = 0; !squares && c < in->c; c++) out[c] = lp_by_powers(&w, c);
}

static void lp_row(const struct rfx_run_args *args, int64_t y) {
    for (int64_t x = args->rect.x0; x < args->rect.x1; x++) lp_pixel(args, y, x);
}

static void run_lp(const struct rfx_run_args *args) {
    share_rows(args, lp_row);
}

static void run_pool(const struct rfx_run_args *args) {
    share_rows(args, pool_row);
}

/* Computes the maximum of each window for one-byte integers. An empty window gives the type's
 * smallest value. Windows that lie wholly within the map's columns are computed together. */
static void bytes_row(const struct rfx_run_args *args, int64_t oy) {
    const struct rfx_pool_attr *a = &args->node->attr.pool;
    const struct rfx_tensor *in = &args->graph->nodes[args->node->in[0]].out;
    const struct rfx_view *view = &args->in[0];
    int64_t y = oy * a->sh - a->pads.top;
    struct rfx_range ty = taps_in(y, a->kh, a->dh, 0, in->h);
    const int64_t reach = (a->kw - 1) * a->dw, shared = in->w - reach + a->pads.left;
    const int64_t inside = shared > 0 ? rfx_ceil_div(shared, a->sw) : 0;
    struct rfx_byte_pool_args run = {.c = in->c,
                                     .col_step = a->dw * view->c,
                                     .x_step = a->sw * view->c,
                                     .out_step = args->out.c};
    for (int64_t ox = args->rect.x0; ox < args->rect.x1; ox += run.pixels) {
        int64_t x = ox * a->sw - a->pads.left;
        struct rfx_range tx = taps_in(x, a->kw, a->dw, 0, in->w);
        run.out = rfx_view_at(&args->out, oy, ox);
        run.begun = false;
        run.n_cols = rfx_range_size(tx);
        run.pixels = x < 0 ? 1 : rfx_max_i64(1, rfx_min_i64(inside, args->rect.x1) - ox);
        for (int64_t ky = ty.lo; ky < ty.hi && run.n_cols > 0; ky++, run.begun = true) {
            run.row = rfx_view_at(view, y + ky * a->dh, x + tx.lo * a->dw);
            rfx_kernels_of_bytes(view->type)->pool_max(&run);
        }
        run.n_cols = 0;
        if (!run.begun) rfx_kernels_of_bytes(view->type)->pool_max(&run);
    }
}

static void run_pool_max(const struct rfx_run_args *args) {
    share_rows(args, args->out.type == RFX_TYPE_FLOAT32 ? pool_row : bytes_row);
}

static enum rfx_status infer_adaptive(const struct rfx_graph *graph, struct rfx_node *node,
                                      struct rfx_error *err) {
    enum rfx_status status = rfx_infer_inputs(graph, node, 1, RFX_LAYOUT_NHWC, err);
    if (status != RFX_OK) return status;
    int64_t c = rfx_infer_in(graph, node, 0)->c;
    return rfx_infer_set_map(node, c, node->attr.adaptive.oh, node->attr.adaptive.ow, err);
}

static struct rfx_range adaptive_window(int64_t lo, int64_t hi, int64_t in, int64_t out) {
    struct rfx_range r = {rfx_floor_div(lo * in, out), rfx_ceil_div(hi * in, out)};
    if (lo >= hi) r.hi = r.lo;
    return r;
}

static struct rfx_range adaptive_range(const struct rfx_graph *graph, const struct rfx_node *node,
                                       int k, int axis, struct rfx_range out) {
    const struct rfx_tensor *in = rfx_infer_in(graph, node, k);
    return adaptive_window(out.lo, out.hi, axis == 0 ? in->h : in->w,
                           axis == 0 ? node->out.h : node->out.w);
}

static struct rfx_axis_map adaptive_map(const struct rfx_graph *graph, const struct rfx_node *node,
                                        int k, int axis) {
    (void)graph;
    (void)node;
    (void)k;
    (void)axis;
    struct rfx_axis_map map = rfx_axis_map_identity();
    map.rule = RFX_AXIS_SIZED;
    return map;
}

/* Treats the windows as equally large, which they are on average. */
static struct rfx_axis_place adaptive_place(const struct rfx_graph *graph,
                                            const struct rfx_node *node, int k, int axis) {
    const struct rfx_tensor *in = rfx_infer_in(graph, node, k), *out = &node->out;
    double step = axis == 0 ? (double)in->h / (double)out->h : (double)in->w / (double)out->w;
    return (struct rfx_axis_place){true, step, step / 2.0 - 0.5};
}

static void adaptive_pixel(const struct rfx_run_args *args, int64_t oy, int64_t ox) {
    const struct rfx_tensor *in = &args->graph->nodes[args->node->in[0]].out;
    const struct rfx_tensor *to = &args->node->out;
    struct rfx_range ry = adaptive_window(oy, oy + 1, in->h, to->h);
    struct rfx_range rx = adaptive_window(ox, ox + 1, in->w, to->w);
    double count = (double)((ry.hi - ry.lo) * (rx.hi - rx.lo));
    float *out = rfx_view_f32_at(&args->out, oy, ox);
    for (int64_t first = 0; first < in->c; first += CHANNEL_BLOCK) {
        double sum[CHANNEL_BLOCK] = {0};
        int64_t n = rfx_min_i64(CHANNEL_BLOCK, in->c - first);
        for (int64_t y = ry.lo; y < ry.hi; y++) {
            const float *row = rfx_view_f32_at(&args->in[0], y, rx.lo) + first;
            for (int64_t x = rx.lo; x < rx.hi; x++, row += in->c)
                for (int64_t i = 0; i < n; i++) sum[i] += (double)row[i];
        }
        for (int64_t i = 0; i < n; i++) out[first + i] = (float)(sum[i] / count);
    }
}

static void adaptive_index(const struct rfx_run_args *args, int64_t index) {
    int64_t cols = rfx_rect_cols(args->rect);
    adaptive_pixel(args, args->rect.y0 + index / cols, args->rect.x0 + index % cols);
}

static void run_adaptive(const struct rfx_run_args *args) {
    rfx_op_share(args, rfx_rect_area(args->rect), adaptive_index);
}

const struct rfx_op_def rfx_op_pool_max = {
    .name = "MaxPool",
    .spatial = true,
    .kind = RFX_CLASS_POOLING,
    .types = RFX_TYPES_FLOATS_AND_BYTES,
    .keeps_type = true,
    .infer = infer_pool,
    .window = pool_window,
    .axis_map = rfx_op_map_window,
    .run = run_pool_max,
};
const struct rfx_op_def rfx_op_pool_place = {
    .name = "MaxPoolIndices",
    .spatial = true,
    .kind = RFX_CLASS_POOLING,
    .infer = infer_place,
    .window = pool_window,
    .axis_map = rfx_op_map_window,
    .run = run_place,
};
const struct rfx_op_def rfx_op_pool_avg = {
    .name = "AveragePool",
    .spatial = true,
    .kind = RFX_CLASS_POOLING,
    .infer = infer_pool,
    .window = pool_window,
    .axis_map = rfx_op_map_window,
    .run = run_pool,
};
const struct rfx_op_def rfx_op_pool_lp = {
    .name = "LpPool",
    .spatial = true,
    .kind = RFX_CLASS_POOLING,
    .infer = infer_lp,
    .window = pool_window,
    .axis_map = rfx_op_map_window,
    .run = run_lp,
};
const struct rfx_op_def rfx_op_pool_adaptive_avg = {
    .name = "AdaptiveAveragePool",
    .spatial = true,
    .kind = RFX_CLASS_POOLING,
    .infer = infer_adaptive,
    .axis_map = adaptive_map,
    .axis_place = adaptive_place,
    .in_range = adaptive_range,
    .run = run_adaptive,
};
