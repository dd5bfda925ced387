/* ONNX forms of operations that move, join or normalise pixels and channels, and of constants. */
#include "layers/core/checked.h"
#include "rfexec/onnx/export/onnx_export.h"

typedef struct rfx_onnx_node onnx_node;

#define MOST_PIECES 16 /* that one axis of a wrapped map is written as */

/* Positions [lo, hi) of an axis of n, [0, n) being all of it. Limits are written so that they hold
 * for other sizes of the map where they can: the end as counted from the end. */
static const char *wrap_piece(struct rfx_exporter *x, const char *in, int64_t axis, int64_t n,
                              struct rfx_range piece, bool before, const char *name) {
    struct rfx_onnx_writer *w = &x->writer;
    if (piece.lo == 0 && piece.hi == n) return in;
    int64_t start = before && piece.hi == n ? piece.lo - n : piece.lo;
    int64_t end = piece.hi == n ? INT64_MAX : piece.hi;
    const char *limits[4] = {in, rfx_onnx_int64(w, rfx_onnx_text(w, "%s#start", name), &start, 1),
                             rfx_onnx_int64(w, rfx_onnx_text(w, "%s#end", name), &end, 1),
                             rfx_onnx_int64(w, rfx_onnx_text(w, "%s#axis", name), &axis, 1)};
    (void)rfx_onnx_node(w, "Slice", name, name, limits, 4);
    return name;
}

/* One axis that begins again behind its end, in pieces one behind the other. */
static const char *wrap_axis(struct rfx_exporter *x, const struct rfx_node *node, const char *in,
                             int64_t axis, const char *output) {
    struct rfx_onnx_writer *w = &x->writer;
    const struct rfx_tensor *t = &x->graph->nodes[node->in[0]].out;
    int64_t n = axis == 2 ? t->h : t->w;
    int64_t at = axis == 2 ? -node->attr.pad.pads.top : -node->attr.pad.pads.left;
    int64_t end = at + (axis == 2 ? node->out.h : node->out.w);
    const char *pieces[MOST_PIECES];
    size_t count = 0;
    for (int64_t turn; at < end; at = rfx_min_i64(turn + n, end)) {
        turn = rfx_floor_div(at, n) * n;
        if (count == MOST_PIECES) {
            rfx_export_refuse(x, node, "a map that is wrapped around more than 14 times");
            return in;
        }
        struct rfx_range piece = {at - turn, rfx_min_i64(n, end - turn)};
        const char *name = rfx_onnx_text(w, "%s#%c%zu", node->name, axis == 2 ? 'r' : 'c', count);
        pieces[count++] = wrap_piece(x, in, axis, n, piece, turn < 0, name);
    }
    rfx_onnx_int(rfx_onnx_node(w, "Concat", output, output, pieces, (int)count), "axis", axis);
    return output;
}

/* Pad has no mode wrap before opset 19. */
static void export_wrap(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    const char *rows = rfx_onnx_text(&x->writer, "%s#rows", node->name);
    (void)wrap_axis(x, node, wrap_axis(x, node, rfx_export_in(x, node, 0), 2, rows), 3, output);
}

void rfx_export_pad(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    static const char *const modes[] = {"constant", "reflect", "edge", "wrap"};
    const struct rfx_pads p = node->attr.pad.pads;
    if (node->attr.pad.mode == RFX_PAD_WRAP) {
        export_wrap(x, node, output);
        return;
    }
    const int64_t pads[8] = {0, 0, p.top, p.left, 0, 0, p.bottom, p.right};
    struct rfx_onnx_writer *w = &x->writer;
    const char *in[3] = {rfx_export_in(x, node, 0),
                         rfx_onnx_int64(w, rfx_onnx_text(w, "%s#pads", node->name), pads, 8), NULL};
    if (node->attr.pad.mode == RFX_PAD_CONSTANT)
        in[2] = rfx_export_scalar(x, node->name, "value", node->attr.pad.value);
    rfx_onnx_string(rfx_onnx_node(w, "Pad", node->name, output, in, 3), "mode",
                    modes[node->attr.pad.mode]);
}

/* Channels picked by Gather, or zeros before and after all channels by Pad. */
void rfx_export_select(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    struct rfx_onnx_writer *w = &x->writer;
    const int64_t *map = node->attr.select.map, count = node->attr.select.count;
    int64_t c = x->graph->nodes[node->in[0]].out.c, before = 0, zeros = 0;
    for (int64_t i = 0; i < count; i++) zeros += map[i] < 0;
    if (zeros == 0) {
        const char *chosen =
            rfx_onnx_int64(w, rfx_onnx_text(w, "%s#channels", node->name), map, count);
        onnx_node *gather =
            rfx_export_emit2(x, "Gather", node->name, output, rfx_export_in(x, node, 0), chosen);
        rfx_onnx_int(gather, "axis", 1);
        return;
    }
    while (before < count && map[before] < 0) before++;
    bool pads = count - zeros == c && before + c <= count;
    for (int64_t i = 0; i < c && pads; i++) pads = map[before + i] == i;
    if (!pads) {
        rfx_export_refuse(x, node, "zeros among picked channels have no ONNX form");
        return;
    }
    const int64_t sides[8] = {0, before, 0, 0, 0, count - c - before, 0, 0};
    const char *in[3] = {rfx_export_in(x, node, 0),
                         rfx_onnx_int64(w, rfx_onnx_text(w, "%s#pads", node->name), sides, 8),
                         rfx_export_scalar(x, node->name, "value", 0.0f)};
    rfx_onnx_string(rfx_onnx_node(w, "Pad", node->name, output, in, 3), "mode", "constant");
}

/* Cast cuts integers and says nothing of numbers outside of their range: Round and Clip do first
 * what CONVERT does. */
void rfx_export_convert(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    struct rfx_onnx_writer *w = &x->writer;
    enum rfx_type to = node->attr.convert.to;
    const char *in = rfx_export_in(x, node, 0);
    if (to != RFX_TYPE_FLOAT32) {
        const char *whole = rfx_onnx_text(w, "%s#whole", node->name);
        const char *held = rfx_onnx_text(w, "%s#held", node->name);
        float lo, hi;
        rfx_type_limits(to, &lo, &hi);
        if (to == RFX_TYPE_INT32) hi = 0x1.fffffep30f; /* the largest float that is an int32 */
        (void)rfx_export_emit1(x, "Round", whole, whole, in);
        const char *bounds[3] = {whole, rfx_export_scalar(x, node->name, "lo", lo),
                                 rfx_export_scalar(x, node->name, "hi", hi)};
        (void)rfx_onnx_node(w, "Clip", held, held, bounds, 3);
        in = held;
    }
    rfx_onnx_int(rfx_export_emit1(x, "Cast", node->name, output, in), "to", rfx_type_onnx(to));
}

void rfx_export_crop(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    static const int64_t axes[2] = {2, 3};
    int64_t starts[2] = {node->attr.crop.y0, node->attr.crop.x0};
    int64_t steps[2] = {node->attr.crop.sy, node->attr.crop.sx};
    int64_t sizes[2] = {node->attr.crop.oh, node->attr.crop.ow}, ends[2];
    for (int i = 0; i < 2; i++) {
        int64_t last = starts[i] + (sizes[i] - 1) * steps[i];
        ends[i] = steps[i] > 0 ? last + 1 : last > 0 ? last - 1 : INT64_MIN + 1;
    }
    struct rfx_onnx_writer *w = &x->writer;
    const char *in[5] = {rfx_export_in(x, node, 0),
                         rfx_onnx_int64(w, rfx_onnx_text(w, "%s#starts", node->name), starts, 2),
                         rfx_onnx_int64(w, rfx_onnx_text(w, "%s#ends", node->name), ends, 2),
                         rfx_onnx_int64(w, "#space", axes, 2),
                         rfx_onnx_int64(w, rfx_onnx_text(w, "%s#steps", node->name), steps, 2)};
    (void)rfx_onnx_node(w, "Slice", node->name, output, in, 5);
}

/* The grid is a map here, with its two channels last in ONNX. */
void rfx_export_grid_sample(struct rfx_exporter *x, const struct rfx_node *node,
                            const char *output) {
    static const char *const modes[] = {"nearest", "bilinear", "bicubic"};
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    static const int64_t to_last[4] = {0, 2, 3, 1};
    const char *grid = rfx_onnx_text(&x->writer, "%s#grid", node->name);
    rfx_onnx_ints(rfx_export_emit1(x, "Transpose", grid, grid, rfx_export_in(x, node, 1)), "perm",
                  to_last, 4);
    onnx_node *sample =
        rfx_export_emit2(x, "GridSample", node->name, output, rfx_export_in(x, node, 0), grid);
    rfx_onnx_string(sample, "mode", modes[node->attr.grid.mode]);
    rfx_onnx_string(sample, "padding_mode", paddings[node->attr.grid.padding]);
    rfx_onnx_int(sample, "align_corners", node->attr.grid.align_corners ? 1 : 0);
}

void rfx_export_resize(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    static const char *const coords[] = {"half_pixel", "pytorch_half_pixel", "align_corners",
                                         "asymmetric", "half_pixel_symmetric"};
    static const char *const nearest[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                          "ceil"};
    const struct rfx_resize_attr *a = &node->attr.resize;
    const struct rfx_tensor *map = &x->graph->nodes[node->in[0]].out;
    struct rfx_onnx_writer *w = &x->writer;
    const char *in[4] = {rfx_export_in(x, node, 0), "", "", NULL};
    int64_t sizes[4] = {1, map->c, a->oh, a->ow};
    in[3] = rfx_onnx_int64(w, rfx_onnx_text(w, "%s#sizes", node->name), sizes, 4);
    onnx_node *resize = rfx_onnx_node(w, "Resize", node->name, output, in, 4);
    rfx_onnx_string(resize, "mode", modes[a->mode]);
    rfx_onnx_string(resize, "coordinate_transformation_mode", coords[a->coord]);
    if (a->mode == RFX_RESIZE_NEAREST) rfx_onnx_string(resize, "nearest_mode", nearest[a->nearest]);
    if (a->mode == RFX_RESIZE_CUBIC) {
        rfx_onnx_float(resize, "cubic_coeff_a", a->cubic_a);
        rfx_onnx_int(resize, "exclude_outside", a->exclude_outside ? 1 : 0);
    } /* linear without antialias: a tap outside counts as its neighbour at the border */
    if (a->antialias || a->coord == RFX_COORD_HALF_PIXEL_SYMMETRIC)
        rfx_export_refuse(x, node,
                          "Resize has no antialias before opset 18 and no symmetric half "
                          "pixels before opset 19");
    /* Sizes imply the scale out / in, which must be the one that the graph uses. */
    if (a->coord != RFX_COORD_ALIGN_CORNERS &&
        (a->scale_h != (float)a->oh / (float)map->h || a->scale_w != (float)a->ow / (float)map->w))
        rfx_export_refuse(x, node, "its scale is not the ratio of its output and input sizes");
}

void rfx_export_to_space(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    onnx_node *n =
        rfx_export_emit1(x, "DepthToSpace", node->name, output, rfx_export_in(x, node, 0));
    rfx_onnx_int(n, "blocksize", node->attr.depth.block);
    rfx_onnx_string(n, "mode", node->attr.depth.column_major ? "CRD" : "DCR");
}

void rfx_export_to_depth(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    if (node->attr.depth.column_major) {
        rfx_export_refuse(x, node, "SpaceToDepth has only the depth-first order");
        return;
    }
    onnx_node *n =
        rfx_export_emit1(x, "SpaceToDepth", node->name, output, rfx_export_in(x, node, 0));
    rfx_onnx_int(n, "blocksize", node->attr.depth.block);
}

void rfx_export_lrn(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    onnx_node *lrn = rfx_export_emit1(x, "LRN", node->name, output, rfx_export_in(x, node, 0));
    rfx_onnx_int(lrn, "size", node->attr.lrn.size);
    rfx_onnx_float(lrn, "alpha", node->attr.lrn.alpha);
    rfx_onnx_float(lrn, "beta", node->attr.lrn.beta);
    rfx_onnx_float(lrn, "bias", node->attr.lrn.bias);
}

static void export_concat(struct rfx_exporter *x, const struct rfx_node *node, const char *output,
                          int axis) {
    const char **in = rfx_memory_calloc(x->graph->mem, (size_t)node->n_in + 1, sizeof *in);
    if (in == NULL) {
        rfx_export_refuse(x, node, "out of memory");
        return;
    }
    for (int k = 0; k < node->n_in; k++) in[k] = rfx_export_in(x, node, k);
    rfx_onnx_int(rfx_onnx_node(&x->writer, "Concat", node->name, output, in, node->n_in), "axis",
                 axis);
    rfx_memory_release(x->graph->mem, in);
}

void rfx_export_concat(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    export_concat(x, node, output, 1);
}

void rfx_export_plain_concat(struct rfx_exporter *x, const struct rfx_node *node,
                             const char *output) {
    export_concat(x, node, output, node->attr.concat.axis);
}

static void export_softmax(struct rfx_exporter *x, const struct rfx_node *node, const char *output,
                           int axis) {
    const char *op = node->attr.softmax.logarithm ? "LogSoftmax" : "Softmax";
    rfx_onnx_int(rfx_export_emit1(x, op, node->name, output, rfx_export_in(x, node, 0)), "axis",
                 axis);
}

static const char *reshaped(struct rfx_exporter *x, const char *in, const char *name,
                            const char *output, const int64_t *dims, int rank) {
    const char *shape = rfx_onnx_text(&x->writer, "%s#shape", name);
    const char *both[2] = {in, rfx_onnx_int64(&x->writer, shape, dims, rank)};
    (void)rfx_onnx_node(&x->writer, "Reshape", name, output, both, 2);
    return output;
}

void rfx_export_softmax(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    int64_t k = node->attr.softmax.group;
    const struct rfx_tensor *t = &node->out;
    if (k == 0 || k == t->c) {
        export_softmax(x, node, output, 1);
        return;
    }
    int64_t apart[5] = {1, t->c / k, k, t->h, t->w};
    const char *groups = rfx_onnx_text(&x->writer, "%s#groups", node->name);
    const char *made = rfx_onnx_text(&x->writer, "%s#softmax", node->name);
    const char *op = node->attr.softmax.logarithm ? "LogSoftmax" : "Softmax";
    (void)reshaped(x, rfx_export_in(x, node, 0), groups, groups, apart, 5);
    rfx_onnx_int(rfx_export_emit1(x, op, made, made, groups), "axis", 2);
    (void)reshaped(x, made, node->name, output, t->shape.dims, 4);
}

void rfx_export_join_maps(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    static const int64_t to_last[4] = {0, 2, 3, 1};
    const char *flat[RFX_ONNX_MAX_INPUTS];
    bool last = node->attr.concat.axis == 1;
    if (node->n_in > RFX_ONNX_MAX_INPUTS) {
        rfx_export_refuse(x, node, "too many levels");
        return;
    }
    for (int i = 0; i < node->n_in; i++) {
        const struct rfx_tensor *t = &x->graph->nodes[node->in[i]].out;
        int64_t cells = t->h * t->w, dims[3] = {1, last ? cells : t->c, last ? t->c : cells};
        const char *in = rfx_export_in(x, node, i);
        const char *turned = rfx_onnx_text(&x->writer, "%s#turned%d", node->name, i);
        const char *name = rfx_onnx_text(&x->writer, "%s#flat%d", node->name, i);
        if (last)
            rfx_onnx_ints(rfx_export_emit1(x, "Transpose", turned, turned, in), "perm", to_last, 4);
        flat[i] = reshaped(x, last ? turned : in, name, name, dims, 3);
    }
    rfx_onnx_int(rfx_onnx_node(&x->writer, "Concat", node->name, output, flat, node->n_in), "axis",
                 node->attr.concat.axis);
}

void rfx_export_plain_softmax(struct rfx_exporter *x, const struct rfx_node *node,
                              const char *output) {
    export_softmax(x, node, output, node->attr.softmax.axis);
}

void rfx_export_constant(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    (void)rfx_onnx_weight(&x->writer, output, node->attr.constant.weight,
                          node->attr.constant.shape);
}

/* The lines of a weight, (1, c, 1, w) or (1, c, h, 1), as maps; NULL: there are none. */
static const char *expanded(struct rfx_exporter *x, const struct rfx_node *node, int axis) {
    struct rfx_onnx_writer *w = &x->writer;
    int64_t dims[4] = {1, 1, node->attr.repeat.h, node->attr.repeat.w};
    int weight = axis == 2 ? node->attr.repeat.down : node->attr.repeat.across;
    const char *lines = rfx_onnx_text(w, "%s#%s", node->name, axis == 2 ? "down" : "across");
    const char *maps = rfx_onnx_text(w, "%s#expanded", lines);
    if (weight < 0) return NULL;
    dims[1] = x->graph->weights[weight].elems / dims[axis];
    struct rfx_shape shape = {4, {1, dims[1], axis == 2 ? dims[2] : 1, axis == 3 ? dims[3] : 1}};
    const char *in[2] = {rfx_onnx_weight(w, lines, weight, shape),
                         rfx_onnx_int64(w, rfx_onnx_text(w, "%s#shape", lines), dims, 4)};
    (void)rfx_onnx_node(w, "Expand", maps, maps, in, 2);
    return maps;
}

void rfx_export_repeat(struct rfx_exporter *x, const struct rfx_node *node, const char *output) {
    struct rfx_onnx_writer *w = &x->writer;
    const char *across = expanded(x, node, 3), *down = expanded(x, node, 2), *all = across;
    if (across != NULL && down != NULL) {
        all = rfx_onnx_text(w, "%s#joined", node->name);
        rfx_onnx_int(rfx_export_emit2(x, "Concat", all, all, across, down), "axis", 1);
    } else if (down != NULL) {
        all = down;
    }
    const char *map = rfx_onnx_int64(w, rfx_onnx_text(w, "%s#map", node->name),
                                     node->attr.repeat.map, node->attr.repeat.count);
    rfx_onnx_int(rfx_export_emit2(x, "Gather", node->name, output, all, map), "axis", 1);
}
