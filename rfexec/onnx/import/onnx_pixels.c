/* Follows a tensor back to the map that it comes from and describes the order of its elements. */
#include "rfexec/onnx/import/onnx_pixels.h"

#include <string.h>

#define MOST_STEPS 48 /* nodes between a tensor and its map */

/* One of the two parts of a roll: positions [start, start + size) along one axis of a tensor, or of
 * a map as (1, c, h, w). */
struct cut {
    int source, axis;
    int64_t start, size;
};

static struct rfx_pixels base_of(const struct rfx_graph *graph, int map, bool channels_last) {
    const struct rfx_tensor *t = &graph->nodes[map].out;
    struct rfx_pixels p = {.map = map, .extent = {t->h, t->w, t->c}, .rank = 4};
    static const int order[2][3] = {{RFX_PIXELS_CHANNEL, RFX_PIXELS_ROW, RFX_PIXELS_COL},
                                    {RFX_PIXELS_ROW, RFX_PIXELS_COL, RFX_PIXELS_CHANNEL}};
    for (int i = 0; i < 3; i++) {
        int axis = order[channels_last][i];
        if (p.extent[axis] > 1)
            p.factors[p.count++] = (struct rfx_pixels_factor){axis, p.extent[axis], 1};
        p.end[i + 1] = p.count;
    }
    return p;
}

static int begin_of(const struct rfx_pixels *p, int axis) {
    return axis == 0 ? 0 : p->end[axis - 1];
}

struct rfx_shape rfx_pixels_shape(const struct rfx_pixels *p) {
    struct rfx_shape shape = {.rank = p->rank};
    for (int i = 0; i < p->rank; i++) {
        shape.dims[i] = 1;
        for (int f = begin_of(p, i); f < p->end[i]; f++) shape.dims[i] *= p->factors[f].size;
    }
    return shape;
}

int rfx_pixels_merge(const struct rfx_pixels_factor *in, int count, struct rfx_pixels_factor *out) {
    int n = 0;
    for (int i = 0; i < count; i++) {
        struct rfx_pixels_factor *last = n == 0 ? NULL : &out[n - 1];
        if (last != NULL && last->axis == in[i].axis && last->stride == in[i].size * in[i].stride) {
            last->size *= in[i].size;
            last->stride = in[i].stride;
        } else {
            out[n++] = in[i];
        }
    }
    return n;
}

/* Sets *out to the only factor of an axis. Returns false when the axis has no factor or several. */
static bool one_factor(const struct rfx_pixels *p, int axis, struct rfx_pixels_factor *out) {
    struct rfx_pixels_factor merged[RFX_PIXELS_FACTORS];
    int begin = begin_of(p, axis);
    if (rfx_pixels_merge(p->factors + begin, p->end[axis] - begin, merged) != 1) return false;
    *out = merged[0];
    return true;
}

bool rfx_pixels_reshape(struct rfx_pixels *p, const struct rfx_shape *shape) {
    struct rfx_pixels out = *p;
    struct rfx_pixels_factor rest = {0, 1, 0};
    int next = 0;
    out.count = 0;
    out.rank = shape->rank;
    for (int i = 0; i < shape->rank; i++) {
        for (int64_t left = shape->dims[i]; left > 1;) {
            if (rest.size == 1) {
                if (next == p->count) return false;
                rest = p->factors[next++];
            }
            int64_t taken = rest.size < left ? rest.size : left;
            if (left % taken != 0 || rest.size % taken != 0 || out.count == RFX_PIXELS_FACTORS)
                return false;
            rest.size /= taken;
            out.factors[out.count++] =
                (struct rfx_pixels_factor){rest.axis, taken, rest.stride * rest.size};
            left /= taken;
        }
        out.end[i] = out.count;
    }
    bool all = rest.size == 1 && next == p->count;
    *p = out;
    return all;
}

void rfx_pixels_transpose(struct rfx_pixels *p, const int *perm) {
    struct rfx_pixels out = *p;
    out.count = 0;
    for (int i = 0; i < p->rank; i++) {
        for (int f = begin_of(p, perm[i]); f < p->end[perm[i]]; f++)
            out.factors[out.count++] = p->factors[f];
        out.end[i] = out.count;
    }
    *p = out;
}

/* Keeps positions [start, start + size) of an axis of channels. Returns false for other axes. */
static bool cut_channels(struct rfx_pixels *p, int axis, int64_t start, int64_t size) {
    struct rfx_pixels_factor factor;
    if (!one_factor(p, axis, &factor) || factor.axis != RFX_PIXELS_CHANNEL) return false;
    int begin = begin_of(p, axis), old = p->end[axis] - begin, kept = size > 1 ? 1 : 0;
    p->first += start * factor.stride;
    factor.size = size;
    memmove(p->factors + begin + kept, p->factors + begin + old,
            (size_t)(p->count - begin - old) * sizeof *p->factors);
    if (kept == 1) p->factors[begin] = factor;
    for (int i = axis; i < p->rank; i++) p->end[i] += kept - old;
    p->count += kept - old;
    return true;
}

static bool slice(struct rfx_pixels *p, const struct rfx_slice_attr *cut) {
    struct rfx_shape shape = rfx_pixels_shape(p);
    for (int i = 0; i < shape.rank; i++) {
        if (cut->starts[i] == 0 && cut->shape.dims[i] == shape.dims[i] && cut->steps[i] == 1)
            continue;
        if (cut->steps[i] != 1 && cut->shape.dims[i] != 1) return false;
        if (!cut_channels(p, i, cut->starts[i], cut->shape.dims[i])) return false;
    }
    return true;
}

/* Rolls an axis: position i gets the element of position i + shift, modulo the size. Returns false
 * unless the axis consists of all rows or all columns. */
static bool roll(struct rfx_pixels *p, int axis, int64_t shift) {
    struct rfx_pixels_factor factor;
    if (!one_factor(p, axis, &factor) || factor.axis == RFX_PIXELS_CHANNEL || factor.stride != 1 ||
        factor.size != p->extent[factor.axis])
        return false;
    p->roll[factor.axis] = (p->roll[factor.axis] + shift) % factor.size;
    return true;
}

/* Returns whether a node is a PAD of mode wrap that rolls a map, and sets shift[2] to the shifts of
 * rows and columns. */
static bool is_rolled_map(const struct rfx_node *node, int64_t *shift) {
    if (node->op != RFX_OP_PAD || node->attr.pad.mode != RFX_PAD_WRAP) return false;
    const struct rfx_pads *p = &node->attr.pad.pads;
    shift[0] = -p->top;
    shift[1] = -p->left;
    return p->top <= 0 && p->left <= 0 && p->top + p->bottom == 0 && p->left + p->right == 0;
}

/* Returns whether a node is consecutive channels of a rolled map. */
static bool is_cut_of_rolled(const struct rfx_graph *graph, const struct rfx_node *node) {
    int64_t shift[2];
    if (node->op != RFX_OP_CHANNEL_SELECT || !is_rolled_map(&graph->nodes[node->in[0]], shift))
        return false;
    const int64_t *from = node->attr.select.map;
    for (int64_t i = 0; i < node->attr.select.count; i++)
        if (from[0] < 0 || from[i] != from[0] + i) return false;
    return true;
}

/* Returns whether a description begins at this node: a map that is neither a roll of another map
 * nor channels of a roll. */
static bool is_map(const struct rfx_graph *graph, int node) {
    int64_t shift[2];
    const struct rfx_node *n = &graph->nodes[node];
    return n->out.layout == RFX_LAYOUT_NHWC && !is_rolled_map(n, shift) &&
           !is_cut_of_rolled(graph, n);
}

static bool is_cut(const struct rfx_graph *graph, int node, struct cut *cut) {
    const struct rfx_node *n = &graph->nodes[node];
    int64_t starts[RFX_MAX_RANK] = {0}, steps[RFX_MAX_RANK];
    for (int i = 0; i < RFX_MAX_RANK; i++) steps[i] = 1;
    if (n->op == RFX_OP_TO_PLAIN && graph->nodes[n->in[0]].op == RFX_OP_CROP) {
        n = &graph->nodes[n->in[0]];
        starts[2] = n->attr.crop.y0;
        starts[3] = n->attr.crop.x0;
        steps[2] = n->attr.crop.sy;
        steps[3] = n->attr.crop.sx;
    } else if (n->op == RFX_OP_PLAIN_SLICE) {
        memcpy(starts, n->attr.slice.starts, sizeof starts);
        memcpy(steps, n->attr.slice.steps, sizeof steps);
    } else {
        return false;
    }
    const struct rfx_shape *from = &graph->nodes[n->in[0]].out.shape, *to = &n->out.shape;
    *cut = (struct cut){.source = n->in[0], .axis = -1};
    for (int i = 0; i < from->rank; i++) {
        if (starts[i] == 0 && steps[i] == 1 && from->dims[i] == to->dims[i]) continue;
        if (cut->axis >= 0 || (steps[i] != 1 && to->dims[i] != 1)) return false;
        cut->axis = i;
        cut->start = starts[i];
        cut->size = to->dims[i];
    }
    return cut->axis >= 0;
}

/* Returns whether a node joins an axis's first part after its rest. *rest is set to the rest. */
static bool is_roll(const struct rfx_graph *graph, const struct rfx_node *n, struct cut *rest) {
    struct cut first;
    if (n->op != RFX_OP_PLAIN_CONCAT || n->n_in != 2 || !is_cut(graph, n->in[0], rest) ||
        !is_cut(graph, n->in[1], &first))
        return false;
    int64_t extent = graph->nodes[rest->source].out.shape.dims[rest->axis];
    return first.source == rest->source && first.axis == rest->axis &&
           n->attr.concat.axis == rest->axis && first.start == 0 && first.size == rest->start &&
           rest->start + rest->size == extent;
}

/* Returns the input from which a node makes a tensor or map by moving elements only, or -1. */
static int step_back(const struct rfx_graph *graph, int node) {
    const struct rfx_node *n = &graph->nodes[node];
    struct cut cut;
    switch ((int)n->op) {
        case RFX_OP_NHWC_AS_PLAIN:
        case RFX_OP_TO_PLAIN:
        case RFX_OP_RESHAPE:
        case RFX_OP_TRANSPOSE:
        case RFX_OP_PLAIN_SLICE:
        case RFX_OP_PAD: /* a roll, or channels of a roll: a description begins at any other one */
        case RFX_OP_CHANNEL_SELECT:
            return n->in[0];
        case RFX_OP_PLAIN_GATHER:
            return n->attr.gather.count == 1 ? n->in[0] : -1;
        case RFX_OP_PLAIN_CONCAT:
            return is_roll(graph, n, &cut) ? cut.source : -1;
        default:
            return -1;
    }
}

/* Changes a description as a node changes its tensor. `begins`: the node is the first one after the
 * map. Returns false when factors cannot describe the result. */
static bool apply(const struct rfx_graph *graph, int node, bool begins, struct rfx_pixels *p) {
    static const int to_last[4] = {0, 2, 3, 1};
    const struct rfx_node *n = &graph->nodes[node];
    int64_t shift[2];
    struct cut cut;
    switch ((int)n->op) {
        case RFX_OP_RESHAPE:
            return rfx_pixels_reshape(p, &n->out.shape);
        case RFX_OP_TRANSPOSE:
            rfx_pixels_transpose(p, n->attr.transpose.perm);
            return true;
        case RFX_OP_PLAIN_SLICE:
            return slice(p, &n->attr.slice);
        case RFX_OP_PLAIN_GATHER:
            return cut_channels(p, n->attr.gather.axis, n->attr.gather.map[0], 1);
        case RFX_OP_PLAIN_CONCAT:
            return is_roll(graph, n, &cut) && roll(p, cut.axis, cut.start);
        case RFX_OP_CHANNEL_SELECT: /* channels of a rolled map, which is (1, c, h, w) */
            return cut_channels(p, 1, n->attr.select.map[0], n->attr.select.count);
        case RFX_OP_PAD:
            if (!is_rolled_map(n, shift)) return false;
            return (shift[0] == 0 || roll(p, 2, shift[0])) &&
                   (shift[1] == 0 || roll(p, 3, shift[1]));
        case RFX_OP_NHWC_AS_PLAIN: /* base_of has set this order if no roll came before */
            if (!begins) rfx_pixels_transpose(p, to_last);
            return true;
        default:
            return true; /* a map becomes a tensor in the same order */
    }
}

bool rfx_pixels_of(const struct rfx_graph *graph, int node, struct rfx_pixels *out) {
    int path[MOST_STEPS], steps = 0;
    while (!is_map(graph, node)) {
        if (steps == MOST_STEPS) return false;
        path[steps++] = node;
        node = step_back(graph, node);
        if (node < 0) return false;
    }
    if (steps == 0) return false;
    *out = base_of(graph, node, graph->nodes[path[steps - 1]].op == RFX_OP_NHWC_AS_PLAIN);
    for (int i = steps - 1; i >= 0; i--)
        if (!apply(graph, path[i], i == steps - 1, out)) return false;
    return true;
}

bool rfx_pixels_move(const struct rfx_graph *graph, int node, struct rfx_pixels *p) {
    enum rfx_op op = graph->nodes[node].op;
    return (op == RFX_OP_RESHAPE || op == RFX_OP_TRANSPOSE) && apply(graph, node, false, p);
}

bool rfx_pixels_are_tokens(const struct rfx_pixels *p) {
    if (p->rank < 2 || p->first != 0 || p->extent[0] * p->extent[1] == 1) return false;
    for (int f = 0; f < begin_of(p, p->rank - 1); f++)
        if (p->factors[f].axis == RFX_PIXELS_CHANNEL) return false;
    struct rfx_pixels_factor last = {RFX_PIXELS_CHANNEL, 1, 1}, merged[RFX_PIXELS_FACTORS];
    if (rfx_pixels_merge(p->factors, p->count, merged) > RFX_MAX_RANK) return false;
    bool none = p->end[p->rank - 1] == begin_of(p, p->rank - 1);
    if (!none && !one_factor(p, p->rank - 1, &last)) return false;
    return last.axis == RFX_PIXELS_CHANNEL && last.size == p->extent[RFX_PIXELS_CHANNEL];
}

struct rfx_pixels rfx_pixels_of_map(const struct rfx_pixels *p, int map, int64_t c) {
    struct rfx_pixels out = *p;
    out.map = map;
    if (c == p->extent[RFX_PIXELS_CHANNEL]) return out;
    out.extent[RFX_PIXELS_CHANNEL] = c;
    out.count = begin_of(p, p->rank - 1);
    if (c > 1) out.factors[out.count++] = (struct rfx_pixels_factor){RFX_PIXELS_CHANNEL, c, 1};
    out.end[p->rank - 1] = out.count;
    return out;
}

bool rfx_pixels_axis_is_channels(const struct rfx_pixels *p, int axis) {
    struct rfx_pixels_factor factor;
    return p->first == 0 && one_factor(p, axis, &factor) && factor.axis == RFX_PIXELS_CHANNEL &&
           factor.stride == 1 && factor.size == p->extent[RFX_PIXELS_CHANNEL];
}

struct rfx_pixels rfx_pixels_with_channels(const struct rfx_pixels *p, int axis, int map,
                                           int64_t c) {
    struct rfx_pixels out = *p;
    int begin = begin_of(p, axis), end = p->end[axis], kept = c > 1 ? 1 : 0;
    memmove(out.factors + begin + kept, p->factors + end,
            (size_t)(p->count - end) * sizeof *p->factors);
    if (kept == 1) out.factors[begin] = (struct rfx_pixels_factor){RFX_PIXELS_CHANNEL, c, 1};
    for (int i = axis; i < p->rank; i++) out.end[i] += kept - (end - begin);
    out.count += kept - (end - begin);
    out.map = map;
    out.extent[RFX_PIXELS_CHANNEL] = c;
    return out;
}

bool rfx_pixels_same_order(const struct rfx_pixels *a, const struct rfx_pixels *b) {
    struct rfx_pixels_factor of_a[RFX_PIXELS_FACTORS], of_b[RFX_PIXELS_FACTORS];
    if (a->rank != b->rank || a->roll[0] != b->roll[0] || a->roll[1] != b->roll[1] ||
        a->extent[0] != b->extent[0] || a->extent[1] != b->extent[1])
        return false;
    struct rfx_shape dims_a = rfx_pixels_shape(a), dims_b = rfx_pixels_shape(b);
    for (int i = 0; i < a->rank - 1; i++)
        if (dims_a.dims[i] != dims_b.dims[i]) return false;
    int n = rfx_pixels_merge(a->factors, begin_of(a, a->rank - 1), of_a);
    if (n != rfx_pixels_merge(b->factors, begin_of(b, b->rank - 1), of_b)) return false;
    for (int i = 0; i < n; i++)
        if (of_a[i].axis != of_b[i].axis || of_a[i].size != of_b[i].size ||
            of_a[i].stride != of_b[i].stride)
            return false;
    return true;
}

/* Returns whether axis i of the tensor is this whole axis of the map. */
static bool is_whole_axis(const struct rfx_pixels *p, int i, int axis) {
    struct rfx_pixels_factor factor = {axis, 1, 1};
    if (p->end[i] > p->end[i - 1] && !one_factor(p, i, &factor)) return false;
    return factor.axis == axis && factor.size == p->extent[axis] && factor.stride == 1;
}

/* Returns whether the tensor is a map of rank 4 that is not rolled. */
static bool is_of_rank_4(const struct rfx_pixels *p) {
    return p->rank == 4 && p->end[0] == 0 && p->roll[0] == 0 && p->roll[1] == 0;
}

/* Returns whether the tensor is a whole map of rank 4 with these axes as axes 1 to 3. */
static bool is_in_order(const struct rfx_pixels *p, const int *axes) {
    if (!is_of_rank_4(p) || p->first != 0) return false;
    for (int i = 0; i < 3; i++)
        if (!is_whole_axis(p, i + 1, axes[i])) return false;
    return true;
}

int64_t rfx_pixels_channels(const struct rfx_pixels *p) {
    int64_t count = 1;
    if (!is_of_rank_4(p) || !is_whole_axis(p, 2, RFX_PIXELS_ROW) ||
        !is_whole_axis(p, 3, RFX_PIXELS_COL))
        return 0;
    for (int f = 0; f < p->end[1]; f++) {
        if (p->factors[f].axis != RFX_PIXELS_CHANNEL) return 0;
        count *= p->factors[f].size;
    }
    return count;
}

int64_t rfx_pixels_channel(const struct rfx_pixels *p, int64_t index) {
    int64_t channel = p->first;
    for (int f = p->end[1] - 1; f >= 0; f--) {
        channel += index % p->factors[f].size * p->factors[f].stride;
        index /= p->factors[f].size;
    }
    return channel;
}

bool rfx_pixels_is_nchw(const struct rfx_pixels *p) {
    static const int axes[3] = {RFX_PIXELS_CHANNEL, RFX_PIXELS_ROW, RFX_PIXELS_COL};
    return is_in_order(p, axes);
}

bool rfx_pixels_is_nhwc(const struct rfx_pixels *p) {
    static const int axes[3] = {RFX_PIXELS_ROW, RFX_PIXELS_COL, RFX_PIXELS_CHANNEL};
    return is_in_order(p, axes);
}

/* Returns the channel factor with the smallest stride above `stride`, or NULL. */
static struct rfx_pixels_factor *next_factor(struct rfx_pixels *p, int64_t stride) {
    struct rfx_pixels_factor *next = NULL;
    for (int f = 0; f < p->count; f++) {
        struct rfx_pixels_factor *it = &p->factors[f];
        if (it->axis == RFX_PIXELS_CHANNEL && it->stride > stride &&
            (next == NULL || it->stride < next->stride))
            next = it;
    }
    return next;
}

int64_t rfx_pixels_pick(struct rfx_pixels *p, int64_t *channels) {
    int64_t count = 1, end = 1,
            product = 1; /* end: of the channels that the factors so far reach */
    struct rfx_pixels_factor *factors[RFX_PIXELS_FACTORS], *next = next_factor(p, 0);
    int n = 0;
    for (; next != NULL && next->stride >= end; next = next_factor(p, next->stride)) {
        factors[n++] = next;
        count *= next->size;
        end += (next->size - 1) * next->stride;
    }
    for (int f = 0; f < p->count; f++)
        if (p->factors[f].axis == RFX_PIXELS_CHANNEL) product *= p->factors[f].size;
    if (count != product) return 0; /* some element would be there twice */
    if (channels == NULL) return count;
    for (int64_t i = 0; i < count; i++) {
        int64_t rest = i;
        channels[i] = p->first;
        for (int f = 0; f < n; f++) {
            channels[i] += rest % factors[f]->size * factors[f]->stride;
            rest /= factors[f]->size;
        }
    }
    for (int64_t f = 0, stride = 1; f < n; stride *= factors[f++]->size)
        factors[f]->stride = stride;
    p->first = 0;
    p->extent[RFX_PIXELS_CHANNEL] = count;
    return count;
}

bool rfx_pixels_are_in_order(const struct rfx_pixels *p, bool last) {
    static const int orders[2][3] = {{RFX_PIXELS_CHANNEL, RFX_PIXELS_ROW, RFX_PIXELS_COL},
                                     {RFX_PIXELS_ROW, RFX_PIXELS_COL, RFX_PIXELS_CHANNEL}};
    struct rfx_pixels_factor merged[RFX_PIXELS_FACTORS];
    int n = rfx_pixels_merge(p->factors, p->count, merged), at = 0;
    if (p->first != 0 || p->roll[0] != 0 || p->roll[1] != 0) return false;
    for (int i = 0; i < 3; i++) {
        int axis = orders[last][i];
        if (p->extent[axis] == 1) continue;
        if (at == n || merged[at].axis != axis || merged[at].size != p->extent[axis] ||
            merged[at].stride != 1)
            return false;
        at++;
    }
    return at == n;
}
