/* Conversion of Slice, Split and Gather. */
#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/onnx/import/onnx_import.h"

static enum rfx_status finish(struct rfx_onnx_import *ctx, enum rfx_status status, int out) {
    return status == RFX_OK ? rfx_onnx_set_node(ctx, out) : status;
}

static enum rfx_status no_memory(struct rfx_onnx_import *ctx) {
    return rfx_onnx_refuse(ctx, RFX_STATUS_OUT_OF_MEMORY, "no memory for an index table");
}

/* A cut: start, step and extent per axis of a tensor. */
static struct rfx_slice_attr whole_cut(const struct rfx_shape *shape) {
    struct rfx_slice_attr cut = {.shape = *shape};
    for (int i = 0; i < shape->rank; i++) {
        cut.starts[i] = 0;
        cut.steps[i] = 1;
    }
    return cut;
}

static bool axis_is_whole(const struct rfx_slice_attr *cut, const struct rfx_shape *in, int i) {
    return cut->starts[i] == 0 && cut->steps[i] == 1 && cut->shape.dims[i] == in->dims[i];
}

/* ONNX's clamping of start and end for one axis, of which nothing may be left. MALFORMED on step 0.
 */
static enum rfx_status cut_axis(struct rfx_onnx_import *ctx, struct rfx_slice_attr *cut, int axis,
                                int64_t start, int64_t end, int64_t step) {
    int64_t dim = cut->shape.dims[axis];
    if (step == 0 || step == INT64_MIN)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "step %lld", (long long)step);
    if (start < 0) start = start < -dim ? -1 : start + dim;
    if (end < 0) end = end < -dim ? -1 : end + dim;
    bool forward = step > 0;
    start = rfx_min_i64(rfx_max_i64(start, 0), forward ? dim : dim - 1);
    end = rfx_min_i64(rfx_max_i64(end, forward ? 0 : -1), dim);
    int64_t count = forward ? rfx_ceil_div(end - start, step) : rfx_ceil_div(start - end, -step);
    cut->starts[axis] = start;
    cut->steps[axis] = step;
    cut->shape.dims[axis] = rfx_max_i64(count, 0);
    return RFX_OK;
}

static enum rfx_status select_channels(struct rfx_onnx_import *ctx, const char *suffix, int in,
                                       int64_t start, int64_t step, int64_t count, int *out) {
    struct rfx_node node = {.op = RFX_OP_CHANNEL_SELECT};
    int64_t *map = rfx_arena_alloc(ctx->arena, (size_t)count, sizeof *map);
    if (map == NULL) return no_memory(ctx);
    for (int64_t i = 0; i < count; i++) map[i] = start + i * step;
    node.attr.select.count = count;
    node.attr.select.map = map;
    return rfx_onnx_emit(ctx, &node, suffix, &in, 1, out);
}

/* The cut of a computed tensor in its own layout where that has a form. */
static enum rfx_status emit_cut(struct rfx_onnx_import *ctx, const char *suffix,
                                struct rfx_onnx_operand x, const struct rfx_slice_attr *cut,
                                int *out) {
    const struct rfx_tensor t = *rfx_onnx_tensor_of(ctx, x.node);
    enum rfx_status status = RFX_OK;
    bool space = false, channels = false, whole = true;
    for (int i = 0; i < t.shape.rank; i++) whole = whole && axis_is_whole(cut, &t.shape, i);
    *out = x.node;
    if (whole) return RFX_OK;
    if (t.layout == RFX_LAYOUT_NHWC && axis_is_whole(cut, &t.shape, 0)) {
        space = !axis_is_whole(cut, &t.shape, 2) || !axis_is_whole(cut, &t.shape, 3);
        channels = !axis_is_whole(cut, &t.shape, 1);
        if (channels)
            status = select_channels(ctx, space ? "/channels" : suffix, x.node, cut->starts[1],
                                     cut->steps[1], cut->shape.dims[1], out);
        if (status != RFX_OK || !space) return status;
        struct rfx_node crop = {.op = RFX_OP_CROP};
        crop.attr.crop.y0 = cut->starts[2];
        crop.attr.crop.x0 = cut->starts[3];
        crop.attr.crop.sy = cut->steps[2];
        crop.attr.crop.sx = cut->steps[3];
        crop.attr.crop.oh = cut->shape.dims[2];
        crop.attr.crop.ow = cut->shape.dims[3];
        return rfx_onnx_emit(ctx, &crop, suffix, out, 1, out);
    }
    int in;
    status = rfx_onnx_plain(ctx, x, &in);
    struct rfx_node node = {.op = RFX_OP_PLAIN_SLICE, .attr.slice = *cut};
    return status == RFX_OK ? rfx_onnx_emit(ctx, &node, suffix, &in, 1, out) : status;
}

static struct rfx_slice_attr channels_first(const struct rfx_slice_attr *cut) {
    static const int from[4] = {0, 3, 1, 2};
    struct rfx_slice_attr out = *cut;
    for (int i = 0; i < 4; i++) {
        out.starts[i] = cut->starts[from[i]];
        out.steps[i] = cut->steps[from[i]];
        out.shape.dims[i] = cut->shape.dims[from[i]];
    }
    return out;
}

static bool only_last_is_cut(const struct rfx_slice_attr *cut, const struct rfx_shape *in) {
    bool others = false;
    for (int i = 0; i < in->rank - 1; i++) others = others || !axis_is_whole(cut, in, i);
    return !others && !axis_is_whole(cut, in, in->rank - 1);
}

/* The cut of a tensor: of a map with its channels last that of the map, of the channels of a map's
 * tokens those of the map, so that rows go on. */
static enum rfx_status cut_tensor(struct rfx_onnx_import *ctx, const char *suffix,
                                  struct rfx_onnx_operand x, const struct rfx_slice_attr *cut,
                                  int *out) {
    const struct rfx_shape shape = *rfx_onnx_shape(ctx, x);
    int map = rfx_onnx_map_behind(ctx, x.node), last = shape.rank - 1;
    enum rfx_status status;
    if (map >= 0) {
        const struct rfx_slice_attr first = channels_first(cut);
        struct rfx_onnx_operand behind = {map, NULL};
        status = emit_cut(ctx, suffix, behind, &first, out);
        if (status == RFX_OK && *out == map) *out = x.node;
        return status != RFX_OK || *out == x.node ? status : rfx_onnx_channels_last(ctx, *out, out);
    }
    map = only_last_is_cut(cut, &shape) ? rfx_onnx_tokens_behind(ctx, x.node) : -1;
    if (map < 0) return emit_cut(ctx, suffix, x, cut, out);
    status = select_channels(ctx, suffix, map, cut->starts[last], cut->steps[last],
                             cut->shape.dims[last], out);
    return status == RFX_OK ? rfx_onnx_channels_last(ctx, *out, out) : status;
}

/* Reads starts, ends, axes, steps: attributes up to opset 9, inputs from 10 on. */
enum rfx_status rfx_onnx_read_cut(struct rfx_onnx_import *ctx, const struct rfx_shape *in,
                                  struct rfx_slice_attr *cut) {
    const int64_t *v[4] = {NULL, NULL, NULL, NULL};
    static const char *const names[4] = {"starts", "ends", "axes", "steps"};
    int64_t count[4];
    bool found[4], seen[RFX_MAX_RANK] = {false};
    enum rfx_status status = RFX_OK;
    for (size_t k = 0; status == RFX_OK && k < 4; k++)
        status = rfx_onnx_list_ints(ctx, names[k], k + 1, &v[k], &count[k], &found[k]);
    if (status != RFX_OK) return status;
    if (!found[0] || !found[1] || count[0] != count[1] || (found[2] && count[2] != count[0]) ||
        (found[3] && count[3] != count[0]) || count[0] > in->rank)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "starts, ends, axes, steps do not match");
    *cut = whole_cut(in);
    for (int64_t i = 0; status == RFX_OK && i < count[0]; i++) {
        int axis = 0;
        status = rfx_onnx_axis(ctx, found[2] ? v[2][i] : i, in->rank, &axis);
        if (status != RFX_OK) return status;
        if (seen[axis]) return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "axis %d twice", axis);
        seen[axis] = true;
        status = cut_axis(ctx, cut, axis, v[0][i], v[1][i], found[3] ? v[3][i] : 1);
    }
    return status;
}

enum rfx_status rfx_onnx_slice(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_operand x = rfx_onnx_in(ctx, 0);
    struct rfx_slice_attr cut;
    int out = -1;
    if (x.node < 0) return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "input 0 is missing");
    enum rfx_status status = rfx_onnx_read_cut(ctx, rfx_onnx_shape(ctx, x), &cut);
    if (status == RFX_OK) status = cut_tensor(ctx, "", x, &cut, &out);
    return finish(ctx, status, out);
}

/* Element of `in` that lies at `flat` of the cut. */
static int64_t cut_index(const struct rfx_slice_attr *cut, const struct rfx_shape *in,
                         int64_t flat) {
    int64_t index = 0, stride = 1;
    for (int i = in->rank - 1; i >= 0; i--) {
        index += (cut->starts[i] + flat % cut->shape.dims[i] * cut->steps[i]) * stride;
        flat /= cut->shape.dims[i];
        stride *= in->dims[i];
    }
    return index;
}

enum rfx_status rfx_onnx_fold_slice(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_const *in;
    struct rfx_slice_attr cut;
    const double *reals = NULL;
    const int64_t *ints = NULL;
    enum rfx_status status = rfx_onnx_in_const(ctx, 0, &in);
    if (status == RFX_OK) status = rfx_onnx_read_cut(ctx, &in->shape, &cut);
    if (status != RFX_OK) return status;
    bool real = rfx_onnx_type_is_real(in->type);
    status = real ? rfx_onnx_const_reals(ctx, in, &reals) : rfx_onnx_const_ints(ctx, in, &ints);
    if (status != RFX_OK) return status;
    struct rfx_onnx_const *c = rfx_onnx_const_new(ctx, in->type, &cut.shape);
    if (c == NULL) return no_memory(ctx);
    for (int64_t i = 0; i < c->elems; i++) {
        int64_t from = cut_index(&cut, &in->shape, i);
        if (real)
            rfx_onnx_const_reals_rw(c)[i] = reals[from];
        else
            rfx_onnx_const_ints_rw(c)[i] = ints[from];
    }
    struct rfx_onnx_operand value = {-1, c};
    return rfx_onnx_set(ctx, 0, value);
}

enum rfx_status rfx_onnx_split(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_operand x = rfx_onnx_in(ctx, 0);
    const int64_t *sizes = NULL;
    int64_t count, at = 0;
    bool found;
    int axis;
    if (x.node < 0) return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "a constant input");
    const struct rfx_shape shape = *rfx_onnx_shape(ctx, x);
    size_t n = ctx->node->n_out;
    enum rfx_status status =
        rfx_onnx_axis(ctx, rfx_onnx_attr_int(ctx, "axis", 0), shape.rank, &axis);
    if (status == RFX_OK) status = rfx_onnx_list_ints(ctx, "split", 1, &sizes, &count, &found);
    if (status != RFX_OK) return status;
    if (n == 0 || (found && count != (int64_t)n))
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "%lld parts for %zu outputs",
                               (long long)count, n);
    if (rfx_onnx_attr_int(ctx, "num_outputs", (int64_t)n) != (int64_t)n)
        return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "num_outputs is not %zu", n);
    int64_t even = rfx_ceil_div(shape.dims[axis], (int64_t)n);
    for (size_t k = 0; k < n; k++) {
        struct rfx_slice_attr cut = whole_cut(&shape);
        struct rfx_onnx_operand part = {-1, NULL};
        int64_t left = shape.dims[axis] - at;
        int64_t size = found ? sizes[k] : rfx_min_i64(even, left);
        if (size < 1 || size > left || (k + 1 == n && size != left))
            return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "part %zu of %lld, %lld are left",
                                   k, (long long)size, (long long)left);
        cut.starts[axis] = at;
        cut.shape.dims[axis] = size;
        at += size;
        status = cut_tensor(ctx, "", x, &cut, &part.node);
        if (status == RFX_OK) status = rfx_onnx_set(ctx, k, part);
        if (status != RFX_OK) return status;
    }
    return RFX_OK;
}

/* Takes indices[0..count) along `axis`. */
static enum rfx_status emit_gather(struct rfx_onnx_import *ctx, struct rfx_onnx_operand x, int axis,
                                   int64_t *indices, int64_t count, int *out) {
    const struct rfx_tensor *t = rfx_onnx_tensor_of(ctx, x.node);
    struct rfx_node node = {.op = RFX_OP_PLAIN_GATHER};
    int in = x.node;
    if (t->layout == RFX_LAYOUT_NHWC && axis == 1) {
        node.op = RFX_OP_CHANNEL_SELECT;
        node.attr.select.count = count;
        node.attr.select.map = indices;
        return rfx_onnx_emit(ctx, &node, "", &in, 1, out);
    }
    node.attr.gather.axis = axis;
    node.attr.gather.count = count;
    node.attr.gather.map = indices;
    enum rfx_status status = rfx_onnx_plain(ctx, x, &in);
    return status == RFX_OK ? rfx_onnx_emit(ctx, &node, "", &in, 1, out) : status;
}

#define MOST_TAPS 32 /* of windows along one axis that are taken apart */

/* Windows along rows or columns, as unfolding is written: index [tap][window], where windows lie
 * evenly. */
struct windows {
    int axis; /* of the map */
    int64_t taps, count, step;
    const int64_t *indices;
};

/* Whether axis `axis` of a described tensor is all rows or all columns of its map, and the indices
 * are such windows of it. */
static bool find_axis_windows(const struct rfx_pixels *p, int axis, const struct rfx_shape *shape,
                              const int64_t *indices, struct windows *w) {
    int begin = axis == 0 ? 0 : p->end[axis - 1];
    if (shape->rank != 2 || p->end[axis] != begin + 1 || p->rank == RFX_MAX_RANK) return false;
    const struct rfx_pixels_factor *f = &p->factors[begin];
    *w = (struct windows){f->axis, shape->dims[0], shape->dims[1], 0, indices};
    if (f->axis == RFX_PIXELS_CHANNEL || f->stride != 1 || f->size != p->extent[f->axis] ||
        p->roll[f->axis] != 0 || w->taps < 2 || w->taps > MOST_TAPS || w->count < 2)
        return false;
    w->step = indices[1] - indices[0];
    for (int64_t t = 0; t < w->taps; t++)
        for (int64_t i = 0; i < w->count; i++)
            if (indices[t * w->count + i] != indices[t * w->count] + i * w->step) return false;
    int64_t channels = 1;
    for (int i = 0; i < p->count; i++)
        if (p->factors[i].axis == RFX_PIXELS_CHANNEL) channels *= p->factors[i].size;
    return w->step > 0 && p->first == 0 && channels == p->extent[RFX_PIXELS_CHANNEL] &&
           p->count < RFX_PIXELS_FACTORS;
}

/* The map of the windows: for each channel its taps one after the other. */
static enum rfx_status emit_windows(struct rfx_onnx_import *ctx, int map, const struct windows *w,
                                    int *out) {
    const struct rfx_tensor t = *rfx_onnx_tensor_of(ctx, map);
    struct rfx_node concat = {.op = RFX_OP_CONCAT, .attr.concat.axis = 1};
    struct rfx_node select = {.op = RFX_OP_CHANNEL_SELECT};
    int parts[MOST_TAPS], joined;
    bool rows = w->axis == RFX_PIXELS_ROW;
    enum rfx_status status = RFX_OK;
    for (int64_t k = 0; status == RFX_OK && k < w->taps; k++) {
        struct rfx_node crop = {.op = RFX_OP_CROP, .attr.crop = {0, 0, 1, 1, t.h, t.w}};
        *(rows ? &crop.attr.crop.y0 : &crop.attr.crop.x0) = w->indices[k * w->count];
        *(rows ? &crop.attr.crop.sy : &crop.attr.crop.sx) = w->step;
        *(rows ? &crop.attr.crop.oh : &crop.attr.crop.ow) = w->count;
        status = rfx_onnx_emit(ctx, &crop, "/tap", &map, 1, &parts[k]);
    }
    if (status == RFX_OK)
        status = rfx_onnx_emit(ctx, &concat, "/taps", parts, (int)w->taps, &joined);
    if (status != RFX_OK) return status;
    select.attr.select.count = t.c * w->taps;
    select.attr.select.map =
        rfx_arena_alloc(ctx->arena, (size_t)select.attr.select.count, sizeof(int64_t));
    if (select.attr.select.map == NULL) return no_memory(ctx);
    for (int64_t i = 0; i < select.attr.select.count; i++)
        select.attr.select.map[i] = i % w->taps * t.c + i / w->taps;
    return rfx_onnx_emit(ctx, &select, "", &joined, 1, out);
}

/* Gather of windows along one axis of a map, in whatever order its pixels are: rows go on. *done
 * says whether it is that. */
static enum rfx_status gather_windows(struct rfx_onnx_import *ctx, int node, int axis,
                                      const struct rfx_shape *shape, const int64_t *indices,
                                      bool *done) {
    struct rfx_pixels p;
    struct windows w;
    bool map = rfx_onnx_tensor_of(ctx, node)->layout == RFX_LAYOUT_NHWC;
    *done = false;
    if (map) { /* (1, c, h, w), described by its own tensor */
        struct rfx_onnx_operand x = {node, NULL};
        enum rfx_status status = rfx_onnx_plain(ctx, x, &node);
        if (status != RFX_OK) return status;
    }
    if (!rfx_pixels_of(ctx->graph, node, &p) || !find_axis_windows(&p, axis, shape, indices, &w))
        return RFX_OK;
    *done = true;
    int out, at = p.end[axis] - 1;
    enum rfx_status status = emit_windows(ctx, p.map, &w, &out);
    if (status != RFX_OK) return status;
    for (int i = 0; i < p.count; i++)
        if (p.factors[i].axis == RFX_PIXELS_CHANNEL) p.factors[i].stride *= w.taps;
    p.factors[at].size = w.count;
    memmove(p.factors + at + 1, p.factors + at, (size_t)(p.count - at) * sizeof *p.factors);
    p.factors[at] = (struct rfx_pixels_factor){RFX_PIXELS_CHANNEL, w.taps, 1};
    for (int i = p.rank; i > axis; i--) p.end[i] = p.end[i - 1] + 1;
    p.end[axis] = at + 1;
    p.count++;
    p.rank++;
    p.map = out;
    p.extent[w.axis] = w.count;
    p.extent[RFX_PIXELS_CHANNEL] *= w.taps;
    status = rfx_onnx_emit_pixels(ctx, &p, &out);
    return finish(ctx, status, out);
}

enum rfx_status rfx_onnx_gather(struct rfx_onnx_import *ctx) {
    struct rfx_onnx_operand x = rfx_onnx_in(ctx, 0);
    struct rfx_onnx_const *index;
    const int64_t *given;
    int axis, out = -1;
    if (rfx_onnx_in(ctx, 1).node >= 0) return rfx_onnx_gather_computed(ctx);
    if (x.node < 0) return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED, "a constant table");
    const struct rfx_shape shape = *rfx_onnx_shape(ctx, x);
    enum rfx_status status = rfx_onnx_in_const(ctx, 1, &index);
    if (status == RFX_OK) status = rfx_onnx_const_ints(ctx, index, &given);
    if (status == RFX_OK)
        status = rfx_onnx_axis(ctx, rfx_onnx_attr_int(ctx, "axis", 0), shape.rank, &axis);
    if (status != RFX_OK) return status;
    int64_t *indices = rfx_arena_alloc(ctx->arena, (size_t)index->elems + 1, sizeof *indices);
    if (indices == NULL) return no_memory(ctx);
    for (int64_t i = 0; i < index->elems; i++) {
        indices[i] = given[i] < 0 ? given[i] + shape.dims[axis] : given[i];
        if (indices[i] < 0 || indices[i] >= shape.dims[axis])
            return rfx_onnx_refuse(ctx, RFX_STATUS_MALFORMED, "index %lld of %lld",
                                   (long long)given[i], (long long)shape.dims[axis]);
    }
    bool done = false;
    status = gather_windows(ctx, x.node, axis, &index->shape, indices, &done);
    if (status != RFX_OK || done) return status;
    struct rfx_shape result = {0, {0}};
    if (shape.rank - 1 + index->shape.rank > RFX_MAX_RANK || index->elems == 0)
        return rfx_onnx_refuse(ctx, RFX_STATUS_UNSUPPORTED,
                               "a result without elements or of rank %d",
                               shape.rank - 1 + index->shape.rank);
    for (int i = 0; i < axis; i++) result.dims[result.rank++] = shape.dims[i];
    for (int i = 0; i < index->shape.rank; i++) result.dims[result.rank++] = index->shape.dims[i];
    for (int i = axis + 1; i < shape.rank; i++) result.dims[result.rank++] = shape.dims[i];
    status = emit_gather(ctx, x, axis, indices, index->elems, &out);
    if (status == RFX_OK && index->shape.rank != 1) {
        struct rfx_onnx_operand made = {out, NULL};
        status = rfx_onnx_plain(ctx, made, &out);
        if (status == RFX_OK) status = rfx_onnx_reshape(ctx, out, &result, &out);
    }
    return finish(ctx, status, out);
}
