/* TRANSPOSE, PLAIN_SLICE, PLAIN_GATHER, PLAIN_CONCAT: copy elements of PLAIN tensors unchanged, the
 * first two of bytes as well. */
#include <string.h>

#include "layers/core/checked.h"
#include "layers/graph/infer.h"

static void copy_floats(const float *in, int64_t step, int64_t n, float *out) {
    for (int64_t i = 0; i < n; i++) out[i] = in[i * step];
}

static void copy_bytes(const char *in, int64_t step, int64_t n, char *out) {
    for (int64_t i = 0; i < n; i++) out[i] = in[i * step];
}

/* Copies out[i0, i1, ...] = in[first + i0 * step[0] + i1 * step[1] + ...], float32 or bytes. */
static void strided_copy(const struct rfx_view *in, int64_t first, const int64_t *step,
                         const struct rfx_shape *shape, const struct rfx_view *out) {
    int64_t index[RFX_MAX_RANK] = {0};
    int last = shape->rank - 1;
    int64_t n = last >= 0 ? shape->dims[last] : 1, inner = last >= 0 ? step[last] : 1;
    bool bytes = rfx_type_is_byte(in->type);
    for (int64_t at = 0;; at += n) {
        if (bytes)
            copy_bytes((const char *)in->data + first, inner, n, (char *)out->data + at);
        else
            copy_floats((const float *)in->data + first, inner, n, (float *)out->data + at);
        int axis = last - 1;
        while (axis >= 0 && ++index[axis] == shape->dims[axis]) {
            first -= (shape->dims[axis] - 1) * step[axis];
            index[axis--] = 0;
        }
        if (axis < 0) return;
        first += step[axis];
    }
}

static enum rfx_status infer_transpose(const struct rfx_graph *graph, struct rfx_node *node,
                                       struct rfx_error *err) {
    enum rfx_status status = rfx_infer_inputs(graph, node, 1, RFX_LAYOUT_PLAIN, err);
    if (status != RFX_OK) return status;
    const struct rfx_shape *in = &rfx_infer_in(graph, node, 0)->shape;
    struct rfx_shape shape = {in->rank, {0}};
    bool seen[RFX_MAX_RANK] = {false};
    for (int i = 0; i < in->rank; i++) {
        int from = node->attr.transpose.perm[i];
        if (from < 0 || from >= in->rank || seen[from])
            return rfx_fail(err, RFX_STATUS_MALFORMED,
                            "Transpose '%s': entry %d, axis %d, is no permutation of rank %d",
                            node->name, i, from, in->rank);
        seen[from] = true;
        shape.dims[i] = in->dims[from];
    }
    return rfx_infer_set_plain(node, &shape, err);
}

static void run_transpose(const struct rfx_run_args *args) {
    const struct rfx_tensor *in = &args->graph->nodes[args->node->in[0]].out;
    int64_t strides[RFX_MAX_RANK], step[RFX_MAX_RANK];
    rfx_shape_strides(&in->shape, strides);
    for (int i = 0; i < in->shape.rank; i++) step[i] = strides[args->node->attr.transpose.perm[i]];
    strided_copy(&args->in[0], 0, step, &args->node->out.shape, &args->out);
}

static enum rfx_status infer_slice(const struct rfx_graph *graph, struct rfx_node *node,
                                   struct rfx_error *err) {
    enum rfx_status status = rfx_infer_inputs(graph, node, 1, RFX_LAYOUT_PLAIN, err);
    if (status != RFX_OK) return status;
    const struct rfx_shape *in = &rfx_infer_in(graph, node, 0)->shape;
    const struct rfx_slice_attr *a = &node->attr.slice;
    if (a->shape.rank != in->rank)
        return rfx_infer_refuse(node, err, "rank %d of an input of rank %d", a->shape.rank,
                                in->rank);
    for (int i = 0; i < in->rank; i++) {
        int64_t end;
        bool fits = rfx_checked_mul_i64(a->shape.dims[i] - 1, a->steps[i], &end) &&
                    rfx_checked_add_i64(end, a->starts[i], &end);
        if (!fits || a->steps[i] == 0 || a->starts[i] < 0 || a->starts[i] >= in->dims[i] ||
            end < 0 || end >= in->dims[i])
            return rfx_infer_refuse(node, err,
                                    "axis %d: start %lld, step %lld, %lld elements leave the "
                                    "input's %lld",
                                    i, (long long)a->starts[i], (long long)a->steps[i],
                                    (long long)a->shape.dims[i], (long long)in->dims[i]);
    }
    return rfx_infer_set_plain(node, &a->shape, err);
}

static void run_slice(const struct rfx_run_args *args) {
    const struct rfx_tensor *in = &args->graph->nodes[args->node->in[0]].out;
    const struct rfx_slice_attr *a = &args->node->attr.slice;
    int64_t strides[RFX_MAX_RANK], step[RFX_MAX_RANK], first = 0;
    rfx_shape_strides(&in->shape, strides);
    for (int i = 0; i < in->shape.rank; i++) {
        first += a->starts[i] * strides[i];
        step[i] = a->steps[i] * strides[i];
    }
    strided_copy(&args->in[0], first, step, &args->node->out.shape, &args->out);
}

static enum rfx_status infer_gather(const struct rfx_graph *graph, struct rfx_node *node,
                                    struct rfx_error *err) {
    enum rfx_status status = rfx_infer_inputs(graph, node, 1, RFX_LAYOUT_PLAIN, err);
    if (status != RFX_OK) return status;
    struct rfx_shape shape = rfx_infer_in(graph, node, 0)->shape;
    int axis = node->attr.gather.axis;
    if (axis < 0 || axis >= shape.rank)
        return rfx_infer_refuse(node, err, "axis %d of rank %d", axis, shape.rank);
    for (int64_t i = 0; i < node->attr.gather.count; i++) {
        int64_t from = node->attr.gather.map[i];
        if (from < 0 || from >= shape.dims[axis])
            return rfx_infer_refuse(node, err, "index %lld of %lld", (long long)from,
                                    (long long)shape.dims[axis]);
    }
    shape.dims[axis] = node->attr.gather.count;
    return rfx_infer_set_plain(node, &shape, err);
}

/* Returns the product of the dimensions [from, to). */
static int64_t extent(const struct rfx_shape *shape, int from, int to) {
    int64_t product = 1;
    for (int i = from; i < to; i++) product *= shape->dims[i];
    return product;
}

static void run_gather(const struct rfx_run_args *args) {
    const struct rfx_shape *in = &args->graph->nodes[args->node->in[0]].out.shape;
    int axis = args->node->attr.gather.axis;
    int64_t outer = extent(in, 0, axis), inner = extent(in, axis + 1, in->rank);
    float *out = rfx_view_f32(&args->out);
    for (int64_t o = 0; o < outer; o++) {
        const float *block = rfx_view_f32(&args->in[0]) + o * in->dims[axis] * inner;
        for (int64_t i = 0; i < args->node->attr.gather.count; i++, out += inner)
            memcpy(out, block + args->node->attr.gather.map[i] * inner,
                   (size_t)inner * sizeof *out);
    }
}

static enum rfx_status infer_concat(const struct rfx_graph *graph, struct rfx_node *node,
                                    struct rfx_error *err) {
    if (node->n_in < 1)
        return rfx_fail(err, RFX_STATUS_MALFORMED, "Concat '%s': has no input", node->name);
    enum rfx_status status = rfx_infer_inputs(graph, node, node->n_in, RFX_LAYOUT_PLAIN, err);
    if (status != RFX_OK) return status;
    struct rfx_shape shape = rfx_infer_in(graph, node, 0)->shape;
    int axis = node->attr.concat.axis;
    if (axis < 0 || axis >= shape.rank)
        return rfx_infer_refuse(node, err, "axis %d of rank %d", axis, shape.rank);
    for (int k = 1; k < node->n_in; k++) {
        const struct rfx_shape *in = &rfx_infer_in(graph, node, k)->shape;
        bool equal = in->rank == shape.rank;
        for (int i = 0; equal && i < shape.rank; i++)
            equal = i == axis || in->dims[i] == shape.dims[i];
        if (!equal || !rfx_checked_add_i64(shape.dims[axis], in->dims[axis], &shape.dims[axis]))
            return rfx_infer_refuse(node, err, "input %d does not match input 0 beside axis %d", k,
                                    axis);
    }
    return rfx_infer_set_plain(node, &shape, err);
}

static void run_concat(const struct rfx_run_args *args) {
    int axis = args->node->attr.concat.axis;
    int64_t outer = extent(&args->node->out.shape, 0, axis);
    float *out = rfx_view_f32(&args->out);
    for (int64_t o = 0; o < outer; o++) {
        for (int k = 0; k < args->node->n_in; k++) {
            int64_t n = args->graph->nodes[args->node->in[k]].out.elems / outer;
            memcpy(out, rfx_view_f32(&args->in[k]) + o * n, (size_t)n * sizeof *out);
            out += n;
        }
    }
}

static int64_t **gather_table(struct rfx_node *node, int64_t *count) {
    *count = node->attr.gather.count;
    return &node->attr.gather.map;
}

const struct rfx_op_def rfx_op_transpose = {.name = "Transpose",
                                            .spatial = false,
                                            .types = RFX_TYPES_FLOATS_AND_BYTES,
                                            .keeps_type = true,
                                            .infer = infer_transpose,
                                            .run = run_transpose};
const struct rfx_op_def rfx_op_plain_slice = {.name = "Slice",
                                              .spatial = false,
                                              .types = RFX_TYPES_FLOATS_AND_BYTES,
                                              .keeps_type = true,
                                              .infer = infer_slice,
                                              .run = run_slice};
const struct rfx_op_def rfx_op_plain_gather = {
    .name = "Gather",
    .spatial = false,
    .index_table = gather_table,
    .infer = infer_gather,
    .run = run_gather,
};
const struct rfx_op_def rfx_op_plain_concat = {
    .name = "Concat",
    .spatial = false,
    .kind = RFX_CLASS_JOIN,
    .infer = infer_concat,
    .run = run_concat,
};
