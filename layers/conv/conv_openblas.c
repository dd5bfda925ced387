/* Convolution as matrix products on canonical panels: C[n pixels, oc] = X[n, taps * ic] W.
 *
 * The bits that OpenBLAS gives an element depend on the size of the call and on the element's place
 * in the call. So: 1. The map is divided into blocks whose position and size depend only on layer
 * and map. 2. A block is always computed by one call with its n, m, k and its pixels in row-major
 * order, even if few of its pixels are requested. 3. Pixels that are not requested are zero or
 * garbage and are discarded. 4. Threads share the blocks. Pointers and leading dimensions may
 * differ: they change no bits. Packed weights: [group][ky][kx][ic of the group][oc of the
 * group]. */
#include <string.h>

#include "layers/conv/blas.h"
#include "layers/conv/conv_backend.h"
#include "layers/core/checked.h"
#include "layers/core/floats.h"
#include "layers/graph/view_rows.h"

/* Returns the number of pixels per call. A call repacks the weights, so more weights call for more
 * pixels. With few weights a small panel stays in the first-level cache. */
static int64_t panel_pixels(int64_t m, int64_t k) {
    int64_t mk = m * k;
    int64_t n = mk <= 31250 ? 32 : mk <= 262144 ? 64 : 96;
    return rfx_max_i64(8, rfx_min_i64(n, 524288 / k)); /* gathered input: at most 2 MiB */
}

/* Returns the length of the equal parts, about `target` long, into which an extent is cut, so that
 * no small remainder is left over. */
static int64_t even_part(int64_t extent, int64_t target) {
    int64_t parts = rfx_max_i64(1, (extent + target / 2) / target);
    return rfx_ceil_div(extent, parts);
}

static struct rfx_conv_block panel_block(const struct rfx_graph *graph,
                                         const struct rfx_node *node) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    (void)graph;
    int64_t n = panel_pixels(a->oc / a->groups, a->ic / a->groups * a->kh * a->kw);
    struct rfx_conv_block block = {1, even_part(node->out.w, n), 0};
    if (block.w == node->out.w) block.h = even_part(node->out.h, rfx_max_i64(1, n / block.w));
    return block;
}

struct panel {
    const struct rfx_conv_job *job;
    int64_t bh, bw, m, k, icg;
    struct rfx_rect block, need; /* need: the requested part of block */
    float *x, *c;                /* this thread's: [bh * bw, k] and [bh * bw, oc] */
};

/* Returns the bytes of the gathered inputs of n pixels, [n, k]. In the scratch they precede the
 * panel's results. */
static size_t gathered_bytes(const struct rfx_conv_attr *a, int64_t n) {
    return rfx_align_up(rfx_floats_bytes(n * (a->ic / a->groups * a->kh * a->kw)));
}

static size_t panel_scratch(const struct rfx_graph *graph, const struct rfx_node *node) {
    const struct rfx_conv_attr *a = &node->attr.conv;
    struct rfx_conv_block block = panel_block(graph, node);
    int64_t n = block.h * block.w;
    return gathered_bytes(a, n) + rfx_align_up(rfx_floats_bytes(n * a->oc));
}

/* Returns whether the pixels of `r` are contiguous in memory, row after row. */
static bool is_run(const struct rfx_view *v, struct rfx_rect r) {
    if (!rfx_rect_contains(v->rect, r)) return false;
    if (rfx_rect_rows(r) == 1) return true;
    return v->row_stride == rfx_rect_cols(r) * v->c && rfx_view_rows_end(v, r.y0, r.y1) == r.y1;
}

static bool is_pointwise(const struct rfx_conv_job *job) {
    const struct rfx_conv_attr *a = job->a;
    return a->kh == 1 && a->kw == 1 && a->sh == 1 && a->sw == 1 && a->pads.top == 0 &&
           a->pads.left == 0 && a->pads.bottom == 0 && a->pads.right == 0;
}

/* Gathers one kernel row of one pixel into `to`. Taps outside the range `t`, which lie outside the
 * map, become zero. */
static void gather_taps(const struct panel *p, const float *row, int64_t ix, struct rfx_range t,
                        float *to) {
    const struct rfx_conv_attr *a = p->job->a;
    int64_t in_c = p->job->args->in[0].c;
    size_t bytes = rfx_floats_bytes(p->icg);
    if (t.lo > 0) memset(to, 0, (size_t)t.lo * bytes);
    if (t.hi < a->kw) memset(to + t.hi * p->icg, 0, (size_t)(a->kw - t.hi) * bytes);
    if (a->dw == 1 && in_c == p->icg) {
        memcpy(to + t.lo * p->icg, row + (ix + t.lo) * in_c, (size_t)(t.hi - t.lo) * bytes);
        return;
    }
    for (int64_t kx = t.lo; kx < t.hi; kx++)
        memcpy(to + kx * p->icg, row + (ix + kx * a->dw) * in_c, bytes);
}

/* Gathers the inputs of pixels [x0, x1) of output row y, for group g, into rows of k floats at
 * `to`. */
static void gather_row(const struct panel *p, int64_t g, int64_t y, int64_t x0, int64_t x1,
                       float *to) {
    const struct rfx_conv_job *job = p->job;
    const struct rfx_conv_attr *a = job->a;
    const struct rfx_view *in = &job->args->in[0];
    struct rfx_range ty = rfx_conv_taps(&job->rows, y);
    struct rfx_range inner = rfx_conv_interior(&job->cols, x0, x1);
    const struct rfx_range all = {0, a->kw};
    for (int64_t ky = 0; ky < a->kh; ky++) {
        float *at = to + ky * a->kw * p->icg;
        if (ky < ty.lo || ky >= ty.hi) {
            for (int64_t x = x0; x < x1; x++, at += p->k)
                memset(at, 0, rfx_floats_bytes(a->kw * p->icg));
            continue;
        }
        int64_t iy = y * a->sh - a->pads.top + ky * a->dh;
        const float *row = rfx_view_f32_at(in, iy, 0) + g * p->icg; /* of the map's column 0 */
        for (int64_t x = x0; x < x1; x++, at += p->k) {
            bool inside = x >= inner.lo && x < inner.hi;
            gather_taps(p, row, x * a->sw - a->pads.left,
                        inside ? all : rfx_conv_taps(&job->cols, x), at);
        }
    }
}

static void gather(const struct panel *p, int64_t g) {
    int64_t cols = rfx_rect_cols(p->block);
    bool partial = !rfx_rect_equal(p->need, p->block);
    for (int64_t y = p->block.y0; y < p->block.y1; y++) {
        float *to = p->x + (y - p->block.y0) * cols * p->k;
        if (partial) memset(to, 0, rfx_floats_bytes(cols * p->k));
        if (y < p->need.y0 || y >= p->need.y1) continue;
        gather_row(p, g, y, p->need.x0, p->need.x1, to + (p->need.x0 - p->block.x0) * p->k);
    }
}

/* Applies bias, residual and activation to the requested pixels. Copies them to the output unless
 * the product wrote them there (in_place). */
static void finish(const struct panel *p, bool in_place) {
    const struct rfx_view *out = &p->job->args->out;
    int64_t cols = rfx_rect_cols(p->block), oc = p->job->a->oc;
    for (int64_t y = p->need.y0; y < p->need.y1; y++) {
        float *to = rfx_view_f32_at(out, y, p->need.x0);
        if (in_place) {
            rfx_conv_finish(p->job, y, p->need.x0, p->need.x1, to, out->c);
            continue;
        }
        int64_t slot = (y - p->block.y0) * cols + p->need.x0 - p->block.x0;
        float *from = p->c + slot * oc;
        rfx_conv_finish(p->job, y, p->need.x0, p->need.x1, from, oc);
        for (int64_t x = 0; x < rfx_rect_cols(p->need); x++)
            memcpy(to + x * out->c, from + x * oc, rfx_floats_bytes(oc));
    }
}

static void run_block(struct panel *p, int64_t index_y, int64_t index_x) {
    const struct rfx_conv_job *job = p->job;
    const struct rfx_run_args *args = job->args;
    const struct rfx_conv_attr *a = job->a;
    p->block = rfx_rect_intersect(rfx_rect_make(index_y * p->bh, (index_y + 1) * p->bh,
                                                index_x * p->bw, (index_x + 1) * p->bw),
                                  rfx_node_full_rect(args->node));
    p->need = rfx_rect_intersect(p->block, args->rect);
    bool whole = rfx_rect_equal(p->need, p->block);
    bool x_in_view = is_pointwise(job) && is_run(&args->in[0], p->block);
    bool over_residual =
        args->node->residual && rfx_views_meet(&args->in[1], &args->out, args->rect);
    bool c_in_view = whole && !over_residual && is_run(&args->out, p->block);
    int64_t n = rfx_rect_area(p->block), ldc = c_in_view ? args->out.c : a->oc;
    float *c = c_in_view ? rfx_view_f32_at(&args->out, p->block.y0, p->block.x0) : p->c;
    for (int64_t g = 0; g < a->groups; g++) {
        const float *x = p->x;
        int64_t ldx = p->k;
        if (x_in_view) {
            x = rfx_view_f32_at(&args->in[0], p->block.y0, p->block.x0) + g * p->icg;
            ldx = args->in[0].c;
        } else {
            gather(p, g);
        }
        rfx_blas_gemm(n, p->m, p->k, x, ldx, job->weights + g * p->m * p->k, p->m, c + g * p->m,
                      ldc);
    }
    finish(p, c_in_view);
}

/* Accepts every layer: inference has already refused sizes that do not fit OpenBLAS's ints. */
static bool panel_accepts(const struct rfx_graph *graph, const struct rfx_node *node, char *why,
                          size_t size) {
    (void)graph;
    (void)node;
    (void)why;
    (void)size;
    return true;
}

static enum rfx_status panel_pack(const struct rfx_conv_pack_job *job, struct rfx_error *err) {
    return rfx_conv_taps_pack(job, job->node->attr.conv.groups, err);
}

struct panel_loop {
    struct panel shared; /* fields common to all panels; x and c unset */
    size_t x_bytes;
    int64_t y0, x0, across; /* first block and blocks per row of the grid */
};

static void panel_index(void *user, int64_t index, int thread) {
    const struct panel_loop *loop = user;
    struct panel mine = loop->shared;
    char *scratch = rfx_conv_thread_scratch(mine.job, thread);
    mine.x = (float *)(void *)scratch;
    mine.c = (float *)(void *)(scratch + loop->x_bytes);
    run_block(&mine, loop->y0 + index / loop->across, loop->x0 + index % loop->across);
}

static void panel_run(const struct rfx_conv_job *job) {
    const struct rfx_run_args *args = job->args;
    const struct rfx_conv_attr *a = job->a;
    struct rfx_conv_block block = panel_block(args->graph, args->node);
    int64_t icg = a->ic / a->groups;
    struct panel_loop loop = {.shared = {.job = job,
                                         .bh = block.h,
                                         .bw = block.w,
                                         .m = a->oc / a->groups,
                                         .k = icg * a->kh * a->kw,
                                         .icg = icg},
                              .x_bytes = gathered_bytes(a, block.h * block.w),
                              .y0 = args->rect.y0 / block.h,
                              .x0 = args->rect.x0 / block.w};
    int64_t down = rfx_ceil_div(args->rect.y1, block.h) - loop.y0;
    loop.across = rfx_ceil_div(args->rect.x1, block.w) - loop.x0;
    struct rfx_blas_scope scope = rfx_blas_begin();
    rfx_team_for(args->team, down * loop.across, panel_index, &loop);
    rfx_blas_end(scope);
}

const struct rfx_conv_backend rfx_conv_openblas = {
    .name = "openblas",
    .accepts = panel_accepts,
    .block = panel_block,
    .packed_bytes = rfx_conv_taps_packed_bytes,
    .pack = panel_pack,
    .scratch_bytes = panel_scratch,
    .calls_blas = true,
    .in_place = true, /* the product goes to scratch, and the residual is added pixel by pixel */
    .run = panel_run,
};
