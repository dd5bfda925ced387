/* See influence.h. */
#include "tests/support/oracle/influence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define INFLUENCE_MARGIN 128 /* positions outside a map that a window may reach */

static void *zeroed(int64_t count, size_t size) {
    void *block = calloc((size_t)(count > 0 ? count : 1), size);
    if (block == NULL) abort();
    return block;
}

static int64_t extent(const struct rfx_node *node, int axis) {
    return axis == 0 ? node->out.h : node->out.w;
}

/* Works on maps pixel by pixel, on other tensors whole. */
static bool searches(const struct rfx_node *node) {
    return node->out.layout == RFX_LAYOUT_NHWC &&
           (node->op == RFX_OP_TOP_K || node->op == RFX_OP_PICK);
}

bool influence_reads_all(const struct rfx_node *node) {
    if (searches(node)) return false;
    return node->op == RFX_OP_GLOBAL_POOL || node->op == RFX_OP_INT_MEAN ||
           node->op == RFX_OP_MOMENTS || node->op >= RFX_OP_CONST_PLAIN;
}

/* A window of k taps, d apart, whose first one is at `start`. */
static int64_t window(int64_t start, int64_t k, int64_t d, int64_t n, int64_t *out) {
    int64_t count = 0;
    for (int64_t t = 0; t < k; t++)
        if (start + t * d >= 0 && start + t * d < n) out[count++] = start + t * d;
    return count;
}

static int64_t conv_taps(const struct rfx_conv_attr *a, int axis, int64_t o, int64_t n,
                         int64_t *out) {
    if (axis == 0) return window(o * a->sh - a->pads.top, a->kh, a->dh, n, out);
    return window(o * a->sw - a->pads.left, a->kw, a->dw, n, out);
}

static int64_t pool_taps(const struct rfx_pool_attr *a, int axis, int64_t o, int64_t n,
                         int64_t *out) {
    if (axis == 0) return window(o * a->sh - a->pads.top, a->kh, a->dh, n, out);
    return window(o * a->sw - a->pads.left, a->kw, a->dw, n, out);
}

/* Scattering read backwards: input i adds to outputs i s - pad + t d. */
static int64_t transposed_taps(const struct rfx_conv_attr *a, int axis, int64_t o, int64_t n,
                               int64_t *out) {
    int64_t k = axis == 0 ? a->kh : a->kw, s = axis == 0 ? a->sh : a->sw;
    int64_t d = axis == 0 ? a->dh : a->dw, pad = axis == 0 ? a->pads.top : a->pads.left;
    int64_t count = 0;
    for (int64_t t = 0; t < k; t++) {
        int64_t from = o + pad - t * d;
        if (from >= 0 && from % s == 0 && from / s < n) out[count++] = from / s;
    }
    return count;
}

static int64_t pad_taps(const struct rfx_node *node, int axis, int64_t o, int64_t n, int64_t *out) {
    const struct rfx_pads *p = &node->attr.pad.pads;
    int64_t at = o - (axis == 0 ? p->top : p->left);
    if (node->attr.pad.mode == RFX_PAD_CONSTANT && (at < 0 || at >= n)) return 0;
    if (node->attr.pad.mode == RFX_PAD_EDGE) at = at < 0 ? 0 : at >= n ? n - 1 : at;
    if (node->attr.pad.mode == RFX_PAD_WRAP) at = (at % n + n) % n;
    while (n > 1 && (at < 0 || at >= n)) at = at < 0 ? -at : 2 * (n - 1) - at;
    out[0] = at;
    return 1;
}

static int64_t adaptive_taps(int64_t o, int64_t n, int64_t size, int64_t *out) {
    int64_t count = 0;
    for (int64_t i = o * n / size; i * size < (o + 1) * n; i++) out[count++] = i;
    return count;
}

/* All positions of the window, cut off at the borders, that o lies in. */
static int64_t block_taps(const struct rfx_window_attention_attr *a, int axis, int64_t o, int64_t n,
                          int64_t *out) {
    int64_t size = axis == 0 ? a->h : a->w, start = (axis == 0 ? a->shift_h : a->shift_w) - size;
    while (start + size <= o) start += size;
    return window(start, size, 1, n, out);
}

/* All before o, or behind it, and o itself unless they are exclusive. */
static int64_t running_taps(const struct rfx_node *node, int64_t o, int64_t n, int64_t *out) {
    int64_t own = node->attr.running.exclusive ? 0 : 1;
    if (node->attr.running.reverse) return window(o + 1 - own, n - o - 1 + own, 1, n, out);
    return window(0, o + own, 1, n, out);
}

int64_t influence_taps(const struct rfx_graph *graph, const struct rfx_node *node, int k, int axis,
                       int64_t o, int64_t *out) {
    int64_t n = extent(&graph->nodes[node->in[k]], axis);
    if (influence_reads_all(node)) return window(0, n, 1, n, out);
    switch ((int)node->op) {
        case RFX_OP_CONV:
        case RFX_OP_INT_CONV: /* its first member overlays attr.conv */
            if (k == 0) return conv_taps(&node->attr.conv, axis, o, n, out);
            break;
        case RFX_OP_CONV_TRANSPOSE:
            return transposed_taps(&node->attr.conv, axis, o, n, out);
        case RFX_OP_POOL_MAX:
        case RFX_OP_POOL_PLACE:
        case RFX_OP_POOL_AVG:
        case RFX_OP_POOL_LP:
            return pool_taps(&node->attr.pool, axis, o, n, out);
        case RFX_OP_POOL_ADAPTIVE_AVG:
            return adaptive_taps(o, n, extent(node, axis), out);
        case RFX_OP_PAD:
            return pad_taps(node, axis, o, n, out);
        case RFX_OP_RESIZE:
            return influence_resize_taps(node, axis, o, n, out);
        case RFX_OP_GRID_SAMPLE: /* any pixel, by the values of the grid at its own */
            if (k == 0) return window(0, n, 1, n, out);
            break;
        case RFX_OP_RUNNING_SUM:
            if (axis == 1 && node->attr.running.axis == 3) return running_taps(node, o, n, out);
            break;
        case RFX_OP_WINDOW_ATTENTION:
            return block_taps(&node->attr.window_attention, axis, o, n, out);
        case RFX_OP_CROP:
            out[0] = axis == 0 ? node->attr.crop.y0 + o * node->attr.crop.sy
                               : node->attr.crop.x0 + o * node->attr.crop.sx;
            return 1;
        case RFX_OP_DEPTH_TO_SPACE:
            out[0] = o / node->attr.depth.block;
            return 1;
        case RFX_OP_SPACE_TO_DEPTH:
            return window(o * node->attr.depth.block, node->attr.depth.block, 1, n, out);
        default:
            break;
    }
    out[0] = n == 1 ? 0 : o; /* element by element; a single row or column is broadcast */
    return 1;
}

int64_t influence_max_taps(const struct rfx_graph *graph) {
    int64_t most = 2;
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct rfx_node *node = &graph->nodes[i];
        most = node->out.h > most ? node->out.h : most;
        most = node->out.w > most ? node->out.w : most;
    }
    return most + 2 * INFLUENCE_MARGIN;
}

static void widen(struct rfx_range *r, int64_t lo, int64_t hi) {
    if (lo >= hi) return;
    bool empty = r->lo >= r->hi;
    if (empty || lo < r->lo) r->lo = lo;
    if (empty || hi > r->hi) r->hi = hi;
}

static struct rfx_range position_hull(const struct rfx_graph *graph, const struct rfx_node *node,
                                      int axis, int64_t o, struct rfx_range **hulls,
                                      int64_t *taps) {
    struct rfx_range r = {0, 0};
    for (int k = 0; k < node->n_in; k++) {
        int64_t n = influence_taps(graph, node, k, axis, o, taps);
        for (int64_t t = 0; t < n; t++) {
            struct rfx_range from = hulls[node->in[k]][taps[t]];
            widen(&r, from.lo, from.hi);
        }
    }
    return r;
}

void influence_hulls(const struct rfx_graph *graph, int source, int axis,
                     struct rfx_range **hulls) {
    int64_t *taps = zeroed(influence_max_taps(graph), sizeof *taps);
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct rfx_node *node = &graph->nodes[i];
        int64_t n = extent(node, axis);
        hulls[i] = zeroed(n, sizeof **hulls);
        for (int64_t o = 0; i > source && o < n; o++)
            hulls[i][o] = position_hull(graph, node, axis, o, hulls, taps);
        for (int64_t o = 0; i == source && o < n; o++) hulls[i][o] = (struct rfx_range){o, o + 1};
    }
    free(taps);
}

void influence_hulls_free(const struct rfx_graph *graph, struct rfx_range **hulls) {
    for (int i = 0; i < graph->n_nodes; i++) free(hulls[i]);
}

/* Adds what position o of a window reads with the map's border taken away: taps outside count. */
static bool widen_by_window(const struct rfx_node *node, int axis, int64_t o, int64_t n,
                            struct rfx_range *r, int64_t *taps) {
    struct rfx_node shifted = *node; /* on a map with `margin` more positions on both sides */
    struct rfx_conv_attr *c = &shifted.attr.conv;
    struct rfx_pool_attr *p = &shifted.attr.pool;
    int64_t margin = INFLUENCE_MARGIN, count;
    if (node->op == RFX_OP_CONV || node->op == RFX_OP_INT_CONV) {
        c->pads.top -= margin;
        c->pads.left -= margin;
        count = conv_taps(c, axis, o, n + 2 * margin, taps);
    } else if (node->op == RFX_OP_CONV_TRANSPOSE) {
        c->pads.top += margin * c->sh;
        c->pads.left += margin * c->sw;
        count = transposed_taps(c, axis, o, n + 2 * margin, taps);
    } else if (node->op == RFX_OP_POOL_MAX || node->op == RFX_OP_POOL_PLACE ||
               node->op == RFX_OP_POOL_AVG || node->op == RFX_OP_POOL_LP) {
        p->pads.top -= margin;
        p->pads.left -= margin;
        count = pool_taps(p, axis, o, n + 2 * margin, taps);
    } else {
        return false;
    }
    for (int64_t t = 0; t < count; t++) widen(r, taps[t] - margin, taps[t] - margin + 1);
    return true;
}

/* Marks the positions of input k that the marked positions of the node read. boxes: first and last
 * of the range. */
static void mark_input(const struct rfx_graph *graph, const struct rfx_node *node, int k, int axis,
                       bool boxes, const bool *mine, bool *marked, int64_t *taps) {
    int64_t size = extent(&graph->nodes[node->in[k]], axis);
    struct rfx_range range = {0, 0};
    for (int64_t o = 0; o < extent(node, axis); o++) {
        if (!mine[o]) continue;
        if (boxes && k == 0 && widen_by_window(node, axis, o, size, &range, taps)) continue;
        int64_t n = influence_taps(graph, node, k, axis, o, taps);
        for (int64_t t = 0; t < n; t++) marked[taps[t]] = true;
    }
    range.lo = range.lo < 0 ? 0 : range.lo;
    range.hi = range.hi > size ? size : range.hi;
    if (range.lo < range.hi) marked[range.lo] = marked[range.hi - 1] = true;
}

void influence_need(const struct rfx_graph *graph, int target, int axis, struct rfx_range out,
                    bool boxes, struct rfx_range *need) {
    int64_t *taps = zeroed(influence_max_taps(graph), sizeof *taps);
    bool **marked = zeroed(graph->n_nodes, sizeof *marked);
    for (int i = 0; i < graph->n_nodes; i++) {
        need[i] = (struct rfx_range){0, 0};
        marked[i] = zeroed(extent(&graph->nodes[i], axis), sizeof **marked);
    }
    for (int64_t o = out.lo; o < out.hi; o++) marked[target][o] = true;
    for (int i = target; i >= 0; i--) {
        const struct rfx_node *node = &graph->nodes[i];
        for (int64_t o = 0; o < extent(node, axis); o++)
            if (marked[i][o]) widen(&need[i], o, o + 1);
        for (int64_t o = need[i].lo; boxes && o < need[i].hi; o++) marked[i][o] = true;
        for (int k = 0; k < node->n_in; k++)
            mark_input(graph, node, k, axis, boxes, marked[i], marked[node->in[k]], taps);
    }
    for (int i = 0; i < graph->n_nodes; i++) free(marked[i]);
    free(marked);
    free(taps);
}

static void add_set(struct influence_set *to, const struct influence_set *from) {
    for (int i = 0; i < INFLUENCE_MAX_PIXELS / 64; i++) to->words[i] |= from->words[i];
}

/* Adds what the pixels of row y read of input k. A region map is a product of rows and columns. */
static void add_row(const struct rfx_graph *graph, const struct rfx_node *node, int k, int64_t y,
                    struct influence_set **sets, int64_t *rows, int64_t *cols) {
    const struct influence_set *from = sets[node->in[k]];
    int64_t w = graph->nodes[node->in[k]].out.w;
    int64_t ny = influence_taps(graph, node, k, 0, y, rows);
    for (int64_t x = 0; x < node->out.w; x++) {
        struct influence_set *to = &sets[node - graph->nodes][y * node->out.w + x];
        int64_t nx = influence_taps(graph, node, k, 1, x, cols);
        for (int64_t t = 0; t < ny * nx; t++) add_set(to, &from[rows[t / nx] * w + cols[t % nx]]);
    }
}

bool influence_sets(const struct rfx_graph *graph, int source, struct influence_set **sets) {
    const struct rfx_tensor *s = &graph->nodes[source].out;
    if (s->h * s->w > INFLUENCE_MAX_PIXELS) return false;
    int64_t most = influence_max_taps(graph);
    int64_t *taps = zeroed(2 * most, sizeof *taps);
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct rfx_node *node = &graph->nodes[i];
        int64_t n = node->out.h * node->out.w;
        sets[i] = zeroed(n, sizeof **sets);
        for (int64_t p = 0; i == source && p < n; p++)
            sets[i][p].words[p / 64] |= (uint64_t)1 << (p % 64);
        for (int64_t t = 0; i > source && t < node->n_in * node->out.h; t++)
            add_row(graph, node, (int)(t / node->out.h), t % node->out.h, sets, taps, taps + most);
    }
    free(taps);
    return true;
}

void influence_sets_free(const struct rfx_graph *graph, struct influence_set **sets) {
    for (int i = 0; i < graph->n_nodes; i++) free(sets[i]);
}

void influence_is_exact(const struct rfx_graph *graph, bool *exact) {
    bool *mixed = zeroed(graph->n_nodes, sizeof *mixed);
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct rfx_node *node = &graph->nodes[i];
        exact[i] = true;
        mixed[i] = node->op == RFX_OP_CONCAT || node->op == RFX_OP_SPACE_TO_DEPTH;
        for (int k = 0; k < node->n_in; k++) {
            mixed[i] = mixed[i] || mixed[node->in[k]];
            exact[i] = exact[i] && exact[node->in[k]];
        }
        bool picks = node->op == RFX_OP_CHANNEL_SELECT || node->op == RFX_OP_DEPTH_TO_SPACE ||
                     node->op == RFX_OP_WINDOW_ATTENTION; /* queries, keys and values */
        if (picks && mixed[i]) exact[i] = false;
        bool finds = node->op == RFX_OP_CHANNEL_REDUCE &&
                     rfx_reduce_is_arg(node->attr.reduce.kind); /* a number also among NaN */
        bool leaves = node->op == RFX_OP_TRIANGLE || node->op == RFX_OP_RUNNING_SUM; /* some out */
        if (finds || leaves || searches(node) || node->op == RFX_OP_GRID_SAMPLE) exact[i] = false;
    }
    free(mixed);
}

static uint64_t count_conv(const struct rfx_conv_attr *a, struct rfx_rect rect) {
    uint64_t count = 0;
    int64_t icg = a->ic / a->groups, pixels = rfx_rect_area(rect);
    for (int64_t p = 0; p < pixels; p++)
        for (int64_t oc = 0; oc < a->oc; oc++)
            for (int64_t ky = 0; ky < a->kh; ky++)
                for (int64_t kx = 0; kx < a->kw; kx++)
                    for (int64_t ic = 0; ic < icg; ic++) count++;
    return count;
}

uint64_t influence_count_macs(const struct rfx_graph *graph, const struct rfx_node *node,
                              struct rfx_rect rect) {
    uint64_t count = 0;
    if (node->op == RFX_OP_CONV || node->op == RFX_OP_INT_CONV)
        return count_conv(&node->attr.conv, rect);
    if (node->op == RFX_OP_WINDOW_ATTENTION) { /* a whole window's scores, and its values */
        const struct rfx_window_attention_attr *a = &node->attr.window_attention;
        int64_t ic = graph->nodes[node->in[0]].out.c;
        for (int64_t p = 0; p < rfx_rect_area(rect) * a->h * a->w; p++)
            for (int64_t c = 0; c < ic; c++) count += c < (ic - node->out.c) / 2 ? 0 : 1; /* no q */
    } else if (node->op == RFX_OP_GEMM) {
        for (int64_t e = 0; e < node->out.elems; e++)
            for (int64_t k = 0; k < node->attr.gemm.k; k++) count++;
    } else if (node->op == RFX_OP_MATMUL) {
        const struct rfx_shape *a = &graph->nodes[node->in[0]].out.shape;
        for (int64_t e = 0; e < node->out.elems; e++)
            for (int64_t k = 0; k < a->dims[a->rank - 1]; k++) count++;
    } else if (node->op ==
               RFX_OP_ATTENTION) { /* a score for each query and key, each weighs a value */
        const struct rfx_shape *a = &graph->nodes[node->in[0]].out.shape;
        const struct rfx_shape *b = &graph->nodes[node->in[1]].out.shape;
        const struct rfx_shape *out = &node->out.shape;
        int64_t queries = node->out.elems / out->dims[out->rank - 1];
        for (int64_t q = 0; q < queries; q++)
            for (int64_t key = 0; key < b->dims[b->rank - 1]; key++)
                count += (uint64_t)(a->dims[a->rank - 1] + out->dims[out->rank - 1]);
    }
    return count;
}

static uint64_t count_rect(const struct rfx_graph *graph, int i, struct rfx_rect rect) {
    return rfx_rect_is_empty(rect) ? 0 : influence_count_macs(graph, &graph->nodes[i], rect);
}

/* Tile t of n over an extent: equal sizes, the first ones one longer. */
static struct rfx_range part(int64_t extent, int64_t n, int64_t t) {
    int64_t size = extent / n, longer = extent % n;
    int64_t lo = t * size + (t < longer ? t : longer);
    return (struct rfx_range){lo, lo + size + (t < longer ? 1 : 0)};
}

uint64_t influence_count_tiled(const struct rfx_graph *graph, int split, int64_t rows,
                               int64_t cols) {
    struct rfx_range *need[2];
    uint64_t count = 0;
    for (int axis = 0; axis < 2; axis++) need[axis] = zeroed(graph->n_nodes, sizeof **need);
    for (int64_t t = 0; split >= 0 && t < rows * cols; t++) {
        const struct rfx_node *last = &graph->nodes[split];
        influence_need(graph, split, 0, part(last->out.h, rows, t / cols), true, need[0]);
        influence_need(graph, split, 1, part(last->out.w, cols, t % cols), true, need[1]);
        for (int i = 0; i <= split; i++)
            count += count_rect(graph, i, rfx_rect_from_ranges(need[0][i], need[1][i]));
    }
    for (int i = split + 1; i < graph->n_nodes; i++)
        count += count_rect(graph, i, rfx_rect_full(graph->nodes[i].out.h, graph->nodes[i].out.w));
    free(need[0]);
    free(need[1]);
    return count;
}

void influence_spread(const struct rfx_graph *graph, int source, int axis, int64_t position,
                      bool **reached) {
    int64_t *taps = zeroed(influence_max_taps(graph), sizeof *taps);
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct rfx_node *node = &graph->nodes[i];
        reached[i] = zeroed(extent(node, axis), sizeof **reached);
        for (int64_t o = 0; i == source && o < extent(node, axis); o++)
            reached[i][o] = o == position;
        for (int k = 0; i > source && k < node->n_in; k++) {
            for (int64_t o = 0; o < extent(node, axis); o++) {
                int64_t n = influence_taps(graph, node, k, axis, o, taps);
                for (int64_t t = 0; t < n; t++)
                    reached[i][o] = reached[i][o] || reached[node->in[k]][taps[t]];
            }
        }
    }
    free(taps);
}

void influence_spread_free(const struct rfx_graph *graph, bool **reached) {
    for (int i = 0; i < graph->n_nodes; i++) free(reached[i]);
}
