/* PICK and SCATTER: read or write elements or slices of a tensor at computed indices.
 *
 * Indices are whole numbers in float32. A negative index counts from the end. A run can no longer
 * be refused, so an index outside its axis gives NaN: PICK returns NaN for this element or slice;
 * SCATTER returns a tensor of NaN only. Updates are applied one by one in the order in which they
 * are stored. So the last of several updates of one place wins, and sums always round in the same
 * way. */
#include <math.h>
#include <string.h>

#include "layers/graph/infer.h"

/* Appends dims [from, to) of a shape. */
static bool append(struct rfx_shape *shape, const struct rfx_shape *in, int from, int to) {
    if (shape->rank + to - from > RFX_MAX_RANK) return false;
    for (int i = from; i < to; i++) shape->dims[shape->rank++] = in->dims[i];
    return true;
}

static bool same_dims(const struct rfx_shape *a, const struct rfx_shape *b, int count) {
    if (count > a->rank || count > b->rank) return false;
    for (int i = 0; i < count; i++)
        if (a->dims[i] != b->dims[i]) return false;
    return true;
}

static enum rfx_status refuse_shapes(const struct rfx_node *node, struct rfx_error *err,
                                     const char *why, const struct rfx_shape *data,
                                     const struct rfx_shape *indices) {
    return rfx_infer_refuse(node, err, "%s: data of rank %d, indices of rank %d, axis %d", why,
                            data->rank, indices->rank, node->attr.index.axis);
}

/* Returns how many axes of the data one index selects. */
static int axes_of(const struct rfx_node *node, const struct rfx_shape *indices) {
    bool tuples = node->attr.index.kind == RFX_INDEX_TUPLES;
    return tuples ? (int)indices->dims[indices->rank - 1] : 1;
}

static enum rfx_status check_axes(const struct rfx_node *node, const struct rfx_shape *data,
                                  const struct rfx_shape *indices, struct rfx_error *err) {
    int axis = node->attr.index.axis;
    bool tuples = node->attr.index.kind == RFX_INDEX_TUPLES;
    if (axis < 0 || axis >= data->rank || (tuples && axis >= indices->rank))
        return refuse_shapes(node, err, "no such axis", data, indices);
    if (tuples && indices->dims[indices->rank - 1] > data->rank - axis)
        return refuse_shapes(node, err, "indices of more axes than there are", data, indices);
    if (tuples && !same_dims(data, indices, axis))
        return refuse_shapes(node, err, "other sizes before the axis", data, indices);
    for (int i = axis; i < axis + axes_of(node, indices); i++)
        if (data->dims[i] > RFX_FLOAT_COUNT_MAX)
            return rfx_infer_refuse(node, err,
                                    "axis %d has %lld elements, more than float32 can count", i,
                                    (long long)data->dims[i]);
    if (node->attr.index.kind != RFX_INDEX_ELEMENTS) return RFX_OK;
    bool within = data->rank == indices->rank;
    for (int i = 0; within && i < data->rank; i++)
        within = i == axis || indices->dims[i] <= data->dims[i];
    return within ? RFX_OK
                  : refuse_shapes(node, err, "indices reach beyond the data", data, indices);
}

/* Computes the shape that the indices select: the output of PICK, and the updates of SCATTER. */
static enum rfx_status picked(const struct rfx_node *node, const struct rfx_shape *data,
                              const struct rfx_shape *indices, struct rfx_shape *out,
                              struct rfx_error *err) {
    enum rfx_status status = check_axes(node, data, indices, err);
    int axis = node->attr.index.axis;
    bool fits = true;
    if (status != RFX_OK) return status;
    out->rank = 0;
    if (node->attr.index.kind == RFX_INDEX_ELEMENTS) {
        *out = *indices;
    } else if (node->attr.index.kind == RFX_INDEX_SLICES) {
        fits = append(out, data, 0, axis) && append(out, indices, 0, indices->rank) &&
               append(out, data, axis + 1, data->rank);
    } else {
        fits = append(out, indices, 0, indices->rank - 1) &&
               append(out, data, axis + axes_of(node, indices), data->rank);
    }
    return fits ? RFX_OK : refuse_shapes(node, err, "a result of too many axes", data, indices);
}

/* Infers PICK on a map: for each pixel, selects the channels that the same pixel of another map
 * lists. */
static enum rfx_status infer_pixels(const struct rfx_graph *graph, struct rfx_node *node,
                                    struct rfx_error *err) {
    enum rfx_status status = rfx_infer_inputs(graph, node, 2, RFX_LAYOUT_NHWC, err);
    if (status != RFX_OK) return status;
    const struct rfx_tensor *data = rfx_infer_in(graph, node, 0);
    const struct rfx_tensor *indices = rfx_infer_in(graph, node, 1);
    if (node->attr.index.kind != RFX_INDEX_ELEMENTS || node->attr.index.axis != 1)
        return refuse_shapes(node, err, "not channels of a map", &data->shape, &indices->shape);
    if (data->h != indices->h || data->w != indices->w)
        return rfx_infer_refuse(node, err, "a map of %lldx%lld by one of %lldx%lld",
                                (long long)data->h, (long long)data->w, (long long)indices->h,
                                (long long)indices->w);
    status = check_axes(node, &data->shape, &indices->shape, err);
    return status == RFX_OK ? rfx_infer_set_map(node, indices->c, data->h, data->w, err) : status;
}

static enum rfx_status infer_pick(const struct rfx_graph *graph, struct rfx_node *node,
                                  struct rfx_error *err) {
    struct rfx_shape shape;
    if (node->n_in == 2 && rfx_infer_in(graph, node, 0)->layout == RFX_LAYOUT_NHWC)
        return infer_pixels(graph, node, err);
    enum rfx_status status = rfx_infer_inputs(graph, node, 2, RFX_LAYOUT_PLAIN, err);
    if (status == RFX_OK)
        status = picked(node, &rfx_infer_in(graph, node, 0)->shape,
                        &rfx_infer_in(graph, node, 1)->shape, &shape, err);
    return status == RFX_OK ? rfx_infer_set_plain(node, &shape, err) : status;
}

static enum rfx_status infer_scatter(const struct rfx_graph *graph, struct rfx_node *node,
                                     struct rfx_error *err) {
    struct rfx_shape shape;
    enum rfx_status status = rfx_infer_inputs(graph, node, 3, RFX_LAYOUT_PLAIN, err);
    if (status != RFX_OK) return status;
    const struct rfx_shape *data = &rfx_infer_in(graph, node, 0)->shape;
    const struct rfx_shape *indices = &rfx_infer_in(graph, node, 1)->shape;
    const struct rfx_shape *updates = &rfx_infer_in(graph, node, 2)->shape;
    if (node->attr.index.kind == RFX_INDEX_SLICES)
        return refuse_shapes(node, err, "slices are not scattered", data, indices);
    status = picked(node, data, indices, &shape, err);
    if (status != RFX_OK) return status;
    if (shape.rank != updates->rank || !same_dims(&shape, updates, shape.rank))
        return refuse_shapes(node, err, "updates of another shape than the indices ask for", data,
                             indices);
    return rfx_infer_set_plain(node, data, err);
}

/* Returns index v of an axis of n elements; -1: v is outside the axis or not a whole number. */
static int64_t index_of(float v, int64_t n) {
    if (!(v >= -(float)n && v < (float)n)) return -1;
    int64_t i = (int64_t)v;
    if ((float)i != v) return -1;
    return i < 0 ? i + n : i;
}

/* How the indices refer to the data: `count` indices, each of which selects `run` contiguous
 * elements. */
struct plan {
    const struct rfx_node *node;
    const struct rfx_shape *data, *indices;
    const float *at;
    int64_t strides[RFX_MAX_RANK];
    int64_t count, run;
};

static struct plan plan_of(const struct rfx_run_args *args) {
    const struct rfx_node *node = args->node;
    struct plan p = {.node = node, .at = rfx_view_f32(&args->in[1])};
    p.data = &args->graph->nodes[node->in[0]].out.shape;
    p.indices = &args->graph->nodes[node->in[1]].out.shape;
    rfx_shape_strides(p.data, p.strides);
    int axis = node->attr.index.axis;
    p.count = rfx_shape_product(p.indices, 0, p.indices->rank);
    p.run = 1;
    if (node->attr.index.kind == RFX_INDEX_TUPLES) {
        p.count = rfx_shape_product(p.indices, 0, p.indices->rank - 1);
        p.run = rfx_shape_product(p.data, axis + axes_of(node, p.indices), p.data->rank);
    } else if (node->attr.index.kind == RFX_INDEX_SLICES) {
        p.count *= rfx_shape_product(p.data, 0, axis);
        p.run = p.strides[axis];
    }
    return p;
}

/* Returns the offset of index number i in the axes before and after `axis`. Its position there is
 * the position of the index in the tensor of indices. */
static int64_t beside(const struct plan *p, int64_t i) {
    int64_t offset = 0;
    for (int d = p->indices->rank - 1; d >= 0; d--) {
        if (d != p->node->attr.index.axis) offset += i % p->indices->dims[d] * p->strides[d];
        i /= p->indices->dims[d];
    }
    return offset;
}

/* Returns the offset of the i-th run in the data, or -1 if its index is invalid. */
static int64_t offset_of(const struct plan *p, int64_t i) {
    int axis = p->node->attr.index.axis;
    enum rfx_index_kind kind = p->node->attr.index.kind;
    if (kind == RFX_INDEX_TUPLES) {
        int width = axes_of(p->node, p->indices);
        int64_t per_batch = rfx_shape_product(p->indices, axis, p->indices->rank - 1);
        int64_t offset = axis == 0 ? 0 : i / per_batch * p->strides[axis - 1];
        for (int d = 0; d < width; d++) {
            int64_t index = index_of(p->at[i * width + d], p->data->dims[axis + d]);
            if (index < 0) return -1;
            offset += index * p->strides[axis + d];
        }
        return offset;
    }
    int64_t n = rfx_shape_product(p->indices, 0, p->indices->rank);
    int64_t index = index_of(p->at[i % n], p->data->dims[axis]);
    if (index < 0) return -1;
    if (kind == RFX_INDEX_SLICES) return (i / n * p->data->dims[axis] + index) * p->strides[axis];
    return index * p->strides[axis] + beside(p, i);
}

static void pick_row(const struct rfx_run_args *args, int64_t y) {
    int64_t c = args->graph->nodes[args->node->in[0]].out.c, n = args->node->out.c;
    for (int64_t x = args->rect.x0; x < args->rect.x1; x++) {
        const float *from = rfx_view_f32_at(&args->in[0], y, x),
                    *at = rfx_view_f32_at(&args->in[1], y, x);
        float *out = rfx_view_f32_at(&args->out, y, x);
        for (int64_t i = 0; i < n; i++) {
            int64_t index = index_of(at[i], c);
            out[i] = index < 0 ? NAN : from[index];
        }
    }
}

static void run_pick(const struct rfx_run_args *args) {
    if (args->node->out.layout == RFX_LAYOUT_NHWC) {
        rfx_op_share_rows(args, true, pick_row);
        return;
    }
    struct plan p = plan_of(args);
    float *out = rfx_view_f32(&args->out);
    for (int64_t i = 0; i < p.count; i++, out += p.run) {
        int64_t from = offset_of(&p, i);
        if (from >= 0)
            memcpy(out, rfx_view_f32(&args->in[0]) + from, (size_t)p.run * sizeof *out);
        else
            for (int64_t e = 0; e < p.run; e++) out[e] = NAN;
    }
}

/* Returns the updated value. Maxima and minima are as in ONNX Runtime: the old value is replaced
 * unless it is larger (smaller). */
static float updated(enum rfx_scatter_kind kind, float old, float update) {
    switch (kind) {
        case RFX_SCATTER_ADD:
            return old + update;
        case RFX_SCATTER_MUL:
            return old * update;
        case RFX_SCATTER_MAX:
            return old > update ? old : update;
        case RFX_SCATTER_MIN:
            return old < update ? old : update;
        case RFX_SCATTER_SET:
            break;
    }
    return update;
}

static void run_scatter(const struct rfx_run_args *args) {
    struct plan p = plan_of(args);
    float *out = rfx_view_f32(&args->out);
    const float *update = rfx_view_f32(&args->in[2]);
    int64_t elems = args->node->out.elems;
    bool outside = false;
    memcpy(out, rfx_view_f32(&args->in[0]), (size_t)elems * sizeof *out);
    for (int64_t i = 0; i < p.count && !outside; i++, update += p.run) {
        int64_t to = offset_of(&p, i);
        outside = to < 0;
        for (int64_t e = 0; !outside && e < p.run; e++)
            out[to + e] = updated(args->node->attr.index.scatter, out[to + e], update[e]);
    }
    for (int64_t e = 0; outside && e < elems; e++) out[e] = NAN;
}

const struct rfx_op_def rfx_op_pick = {.name = "Pick",
                                       .spatial = true,
                                       .infer = infer_pick,
                                       .axis_map = rfx_op_map_identity,
                                       .run = run_pick};
const struct rfx_op_def rfx_op_scatter = {
    .name = "Scatter", .spatial = false, .infer = infer_scatter, .run = run_scatter};
