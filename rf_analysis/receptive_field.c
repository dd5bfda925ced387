/* Receptive fields by back-propagating single output positions on an endless image.
 *
 * Upsampling makes the field depend on the output's phase; the largest over one period counts.
 * Jumps go forward as rationals: strides multiply, upsampling factors divide. Periods go forward
 * with them and are not the jump's denominator: a jump of 16/2 is 8, but has two phases. */
#include "rf_analysis/receptive_field.h"

#include "layers/checked.h"
#include "layers/op.h"

#define MAX_PHASES 64

static struct rfx_ratio ratio_scale(struct rfx_ratio r, int64_t num, int64_t den) {
    struct rfx_ratio v = {r.num * num, r.den * den};
    int64_t g = rfx_gcd_i64(v.num, v.den);
    v.num /= g;
    v.den /= g;
    return v;
}

/* Kernel extent, stride and padding before of a windowed op along one axis. */
struct window {
    int64_t extent, stride, pad;
};

static struct window conv_window(const struct rfx_conv_attr *a, enum rfx_axis axis) {
    bool rows = axis == RFX_AXIS_ROWS;
    struct window w = {rows ? (a->kh - 1) * a->dh + 1 : (a->kw - 1) * a->dw + 1,
                       rows ? a->sh : a->sw, rows ? a->pads.top : a->pads.left};
    return w;
}

static struct window pool_window(const struct rfx_pool_attr *a, enum rfx_axis axis) {
    bool rows = axis == RFX_AXIS_ROWS;
    struct window w = {rows ? (a->kh - 1) * a->dh + 1 : (a->kw - 1) * a->dw + 1,
                       rows ? a->sh : a->sw, rows ? a->pads.top : a->pads.left};
    return w;
}

static struct rfx_range window_range(struct window w, struct rfx_range out) {
    struct rfx_range r = {out.lo * w.stride - w.pad, (out.hi - 1) * w.stride - w.pad + w.extent};
    return r;
}

static struct rfx_range transpose_range(struct window w, struct rfx_range out) {
    /* input i touches outputs [i * stride - pad, i * stride - pad + extent) */
    struct rfx_range r = {rfx_ceil_div(out.lo + w.pad - w.extent + 1, w.stride),
                          rfx_floor_div(out.hi - 1 + w.pad, w.stride) + 1};
    return r;
}

/* Source coordinate of output position i on an endless map, rounded as the mode reads it. */
static struct rfx_range resize_range(const struct rfx_node *node, const struct rfx_node *in,
                                     enum rfx_axis axis, struct rfx_range out) {
    const struct rfx_resize_attr *a = &node->attr.resize;
    double scale = (double)(axis == RFX_AXIS_ROWS ? a->scale_h : a->scale_w);
    int64_t extent = rfx_node_extent(in, axis);
    int64_t out_extent = rfx_node_extent(node, axis);
    double step = 1.0 / scale;
    double shift = 0.0;
    if (a->coord == RFX_COORD_ALIGN_CORNERS && out_extent > 1)
        step = (double)(extent - 1) / (double)(out_extent - 1);
    if (a->coord == RFX_COORD_HALF_PIXEL || a->coord == RFX_COORD_PYTORCH_HALF_PIXEL)
        shift = 0.5 * step - 0.5;
    double first = (double)out.lo * step + shift;
    double last = (double)(out.hi - 1) * step + shift;
    int64_t lo = (int64_t)__builtin_floor(first + 1e-9);
    int64_t hi = (int64_t)__builtin_floor(last + 1e-9);
    if (a->mode == RFX_RESIZE_LINEAR) {
        bool whole = last - (double)hi < 1e-6;
        struct rfx_range r = {lo, hi + (whole ? 1 : 2)};
        return r;
    }
    if (a->nearest == RFX_NEAREST_ROUND_PREFER_FLOOR ||
        a->nearest == RFX_NEAREST_ROUND_PREFER_CEIL) {
        double half = a->nearest == RFX_NEAREST_ROUND_PREFER_FLOOR ? 0.5 - 1e-9 : 0.5 + 1e-9;
        lo = (int64_t)__builtin_floor(first + half);
        hi = (int64_t)__builtin_floor(last + half);
    } else if (a->nearest == RFX_NEAREST_CEIL) {
        lo = (int64_t)__builtin_ceil(first - 1e-9);
        hi = (int64_t)__builtin_ceil(last - 1e-9);
    }
    struct rfx_range r = {lo, hi + 1};
    return r;
}

struct rfx_range rfx_unbounded_range(const struct rfx_graph *graph, const struct rfx_node *node,
                                     int k, enum rfx_axis axis, struct rfx_range out) {
    const union rfx_attr *a = &node->attr;
    bool rows = axis == RFX_AXIS_ROWS;
    struct rfx_range r = out;
    if (node->op == RFX_OP_CONV && k == 0) return window_range(conv_window(&a->conv, axis), out);
    if (node->op == RFX_OP_CONV_TRANSPOSE) return transpose_range(conv_window(&a->conv, axis), out);
    if (node->op == RFX_OP_POOL_MAX || node->op == RFX_OP_POOL_AVG)
        return window_range(pool_window(&a->pool, axis), out);
    if (node->op == RFX_OP_PAD) {
        int64_t pad = rows ? a->pad.pads.top : a->pad.pads.left;
        r.lo -= pad;
        r.hi -= pad;
    } else if (node->op == RFX_OP_CROP) {
        int64_t start = rows ? a->crop.y0 : a->crop.x0;
        int64_t step = rows ? a->crop.sy : a->crop.sx;
        r.lo = start + out.lo * step;
        r.hi = start + (out.hi - 1) * step + 1;
    } else if (node->op == RFX_OP_RESIZE) {
        return resize_range(node, &graph->nodes[node->in[k]], axis, out);
    } else if (node->op == RFX_OP_DEPTH_TO_SPACE) {
        r.lo = rfx_floor_div(out.lo, a->depth.block);
        r.hi = rfx_floor_div(out.hi - 1, a->depth.block) + 1;
    } else if (node->op == RFX_OP_SPACE_TO_DEPTH) {
        r.lo = out.lo * a->depth.block;
        r.hi = out.hi * a->depth.block;
    }
    return r;
}

/* Whether a node's output position depends on the whole image: an op that is not local in space, or
 * such a node before it. */
static bool sees_everything(const struct rfx_node *node, const struct rfx_layer_info *info) {
    if (node->op == RFX_OP_INPUT || rfx_node_is_constant(node)) return false;
    if (!rfx_op_def(node->op)->spatial || node->op == RFX_OP_POOL_ADAPTIVE_AVG) return true;
    for (int k = 0; k < node->n_in; k++)
        if (info[node->in[k]].global) return true;
    return false;
}

static struct rfx_ratio node_jump(const struct rfx_graph *graph, const struct rfx_node *node,
                                  const struct rfx_layer_info *info, enum rfx_axis axis) {
    struct rfx_ratio one = {1, 1};
    int k = 0;
    while (k < node->n_in && rfx_node_is_constant(&graph->nodes[node->in[k]])) k++;
    if (k == node->n_in) return one;
    struct rfx_ratio jump = info[node->in[k]].field[axis].jump;
    bool rows = axis == RFX_AXIS_ROWS;
    const union rfx_attr *a = &node->attr;
    int64_t in = rfx_node_extent(&graph->nodes[node->in[k]], axis);
    int64_t out = rfx_node_extent(node, axis);
    if (node->op == RFX_OP_CONV) return ratio_scale(jump, conv_window(&a->conv, axis).stride, 1);
    if (node->op == RFX_OP_CONV_TRANSPOSE)
        return ratio_scale(jump, 1, conv_window(&a->conv, axis).stride);
    if (node->op == RFX_OP_POOL_MAX || node->op == RFX_OP_POOL_AVG)
        return ratio_scale(jump, pool_window(&a->pool, axis).stride, 1);
    if (node->op == RFX_OP_CROP) return ratio_scale(jump, rows ? a->crop.sy : a->crop.sx, 1);
    if (node->op == RFX_OP_DEPTH_TO_SPACE) return ratio_scale(jump, 1, a->depth.block);
    if (node->op == RFX_OP_SPACE_TO_DEPTH) return ratio_scale(jump, a->depth.block, 1);
    if (node->op == RFX_OP_RESIZE) return ratio_scale(jump, in, out);
    return jump;
}

/* How many outputs (num) lie over how many inputs (den), in lowest terms, along one axis. */
static struct rfx_ratio node_rate(const struct rfx_graph *graph, const struct rfx_node *node,
                                  enum rfx_axis axis) {
    const union rfx_attr *a = &node->attr;
    const struct rfx_ratio one = {1, 1};
    if (node->op == RFX_OP_CONV) return ratio_scale(one, 1, conv_window(&a->conv, axis).stride);
    if (node->op == RFX_OP_CONV_TRANSPOSE)
        return ratio_scale(one, conv_window(&a->conv, axis).stride, 1);
    if (node->op == RFX_OP_POOL_MAX || node->op == RFX_OP_POOL_AVG)
        return ratio_scale(one, 1, pool_window(&a->pool, axis).stride);
    if (node->op == RFX_OP_CROP)
        return ratio_scale(one, 1, axis == RFX_AXIS_ROWS ? a->crop.sy : a->crop.sx);
    if (node->op == RFX_OP_DEPTH_TO_SPACE) return ratio_scale(one, a->depth.block, 1);
    if (node->op == RFX_OP_SPACE_TO_DEPTH) return ratio_scale(one, 1, a->depth.block);
    if (node->op != RFX_OP_RESIZE) return one;
    int64_t in = rfx_node_extent(&graph->nodes[node->in[0]], axis);
    int64_t out = rfx_node_extent(node, axis);
    bool corners = a->resize.coord == RFX_COORD_ALIGN_CORNERS && in > 1 && out > 1;
    return ratio_scale(one, corners ? out - 1 : out, corners ? in - 1 : in);
}

/* Outputs after which the phases of all inputs come round together; at most MAX_PHASES. */
static int64_t node_period(const struct rfx_graph *graph, const struct rfx_node *node,
                           const struct rfx_layer_info *info, enum rfx_axis axis) {
    int64_t period = 1;
    for (int k = 0; k < node->n_in; k++) {
        if (rfx_node_is_constant(&graph->nodes[node->in[k]])) continue;
        bool skip = node->op == RFX_OP_CONV && k > 0; /* a residual is read one to one */
        struct rfx_ratio rate = {1, 1};
        if (!skip) rate = node_rate(graph, node, axis);
        int64_t in = info[node->in[k]].field[axis].period;
        int64_t mine = rfx_min_i64(in / rfx_gcd_i64(in, rate.den), MAX_PHASES) * rate.num;
        mine = rfx_min_i64(mine, MAX_PHASES);
        period = rfx_min_i64(period / rfx_gcd_i64(period, mine) * mine, MAX_PHASES);
    }
    return period;
}

/* Range of the image that output positions [lo, hi) of node `target` see. */
static struct rfx_range image_range(const struct rfx_graph *graph, int target, enum rfx_axis axis,
                                    struct rfx_range out, struct rfx_range *ranges) {
    struct rfx_range none = {0, 0};
    for (int i = 0; i < target; i++) ranges[i] = none;
    ranges[target] = out;
    for (int i = target; i >= 0; i--) {
        const struct rfx_node *node = &graph->nodes[i];
        if (ranges[i].lo >= ranges[i].hi) continue;
        for (int k = 0; k < node->n_in; k++) {
            struct rfx_range r = rfx_unbounded_range(graph, node, k, axis, ranges[i]);
            struct rfx_range *in = &ranges[node->in[k]];
            if (in->lo >= in->hi) {
                *in = r;
            } else {
                in->lo = rfx_min_i64(in->lo, r.lo);
                in->hi = rfx_max_i64(in->hi, r.hi);
            }
        }
    }
    return ranges[graph->input];
}

static void fill_field(const struct rfx_graph *graph, int node, enum rfx_axis axis,
                       struct rfx_axis_field *field, struct rfx_range *scratch) {
    int64_t phases = field->period;
    field->size_px = 0;
    for (int64_t p = 0; p < phases; p++) {
        struct rfx_range out = {p, p + 1};
        struct rfx_range r = image_range(graph, node, axis, out, scratch);
        field->size_px = rfx_max_i64(field->size_px, r.hi - r.lo);
        if (p == 0) field->padding_px = -r.lo;
    }
}

void rfx_receptive_fields(const struct rfx_graph *graph, struct rfx_layer_info *info,
                          struct rfx_range *scratch) {
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct rfx_node *node = &graph->nodes[i];
        info[i].global = sees_everything(node, info);
        for (int axis = 0; axis < 2; axis++) {
            struct rfx_axis_field *field = &info[i].field[axis];
            field->jump = node_jump(graph, node, info, (enum rfx_axis)axis);
            field->period = node_period(graph, node, info, (enum rfx_axis)axis);
            field->size_px = 0;
            field->padding_px = 0;
            if (!info[i].global && !rfx_node_is_constant(node))
                fill_field(graph, i, (enum rfx_axis)axis, field, scratch);
        }
    }
}
