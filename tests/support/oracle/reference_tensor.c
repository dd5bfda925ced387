/* Ops on whole tensors of any rank, see reference.h. Each output element finds its operands by
 * unravelling its index. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/oracle/reference_call.h"

static void unravel(const struct rfx_shape *s, int64_t at, int64_t *index) {
    for (int d = s->rank - 1; d >= 0; d--) {
        index[d] = at % s->dims[d];
        at /= s->dims[d];
    }
}

/* Offset in `s` of an index of the same or a higher rank, aligned at the end; 1 is broadcast. */
static int64_t ravel(const struct rfx_shape *s, const int64_t *index, int rank) {
    int64_t at = 0;
    for (int d = 0; d < s->rank; d++)
        at = at * s->dims[d] + (s->dims[d] == 1 ? 0 : index[rank - s->rank + d]);
    return at;
}

static bool dims_are(const struct rfx_node *node, int rank, const int64_t *dims) {
    const struct rfx_shape *s = &node->out.shape;
    bool same = s->rank == rank;
    int64_t elems = 1;
    for (int d = 0; d < rank; d++) {
        same = same && s->dims[d] == dims[d];
        elems *= dims[d];
    }
    same = same && node->out.elems == elems;
    if (!same) fprintf(stderr, "'%s': inferred shape is wrong\n", node->name);
    return same;
}

static bool copy(const struct rfx_node *node, const struct rfx_tensor *it, const float *in,
                 float *out) {
    if (node->out.elems != it->elems) return false;
    memcpy(out, in, (size_t)it->elems * sizeof *out);
    return true;
}

/* NHWC bytes <-> plain (1, h, w, c): in ONNX order a transpose. */
static bool same_bytes(const struct rfx_node *node, const struct rfx_tensor *it, const float *in,
                       float *out) {
    bool to_plain = node->op == RFX_OP_NHWC_AS_PLAIN;
    const struct rfx_tensor *map = to_plain ? it : &node->out;
    const struct rfx_shape *plain = to_plain ? &node->out.shape : &it->shape;
    int64_t c = map->c, n = map->h * map->w;
    if (plain->rank != 4 || plain->dims[1] != map->h || plain->dims[2] != map->w ||
        plain->dims[3] != c)
        return false;
    for (int64_t i = 0; i < c * n; i++) {
        int64_t nchw = i % c * n + i / c;
        if (to_plain)
            out[i] = in[nchw];
        else
            out[nchw] = in[i];
    }
    return true;
}

static bool transpose(const struct rfx_node *node, const struct rfx_tensor *it, const float *in,
                      float *out) {
    const int *perm = node->attr.transpose.perm;
    int64_t dims[RFX_MAX_RANK], index[RFX_MAX_RANK], from[RFX_MAX_RANK];
    int rank = it->shape.rank;
    for (int d = 0; d < rank; d++) dims[d] = it->shape.dims[perm[d]];
    if (!dims_are(node, rank, dims)) return false;
    for (int64_t i = 0; i < it->elems; i++) {
        unravel(&node->out.shape, i, index);
        for (int d = 0; d < rank; d++) from[perm[d]] = index[d];
        out[i] = in[ravel(&it->shape, from, rank)];
    }
    return true;
}

static bool concat(const struct rfx_graph *graph, const struct rfx_node *node, float *const *in,
                   float *out) {
    int axis = node->attr.concat.axis, rank = node->out.shape.rank;
    if (axis < 0) axis += rank;
    int64_t index[RFX_MAX_RANK];
    for (int64_t i = 0; i < node->out.elems; i++) {
        unravel(&node->out.shape, i, index);
        int k = 0;
        while (k < node->n_in && index[axis] >= graph->nodes[node->in[k]].out.shape.dims[axis])
            index[axis] -= graph->nodes[node->in[k++]].out.shape.dims[axis];
        if (k == node->n_in) return false;
        out[i] = in[k][ravel(&graph->nodes[node->in[k]].out.shape, index, rank)];
    }
    return true;
}

/* Every pixel of every map in turn. */
static bool join_maps(const struct rfx_graph *graph, const struct rfx_node *node, float *const *in,
                      float *out) {
    bool last = node->attr.concat.axis == 1;
    int64_t cells = 0, c = graph->nodes[node->in[0]].out.shape.dims[1], p = 0;
    if (last && node->attr.concat.channels > 0) c = node->attr.concat.channels;
    for (int k = 0; k < node->n_in; k++) {
        const int64_t *dims = graph->nodes[node->in[k]].out.shape.dims;
        if (dims[1] % c != 0) return false;
        cells += dims[1] / c * dims[2] * dims[3];
    }
    int64_t wanted[3] = {1, last ? cells : c, last ? c : cells};
    if (!dims_are(node, 3, wanted)) return false;
    for (int k = 0; k < node->n_in; k++) {
        const int64_t *dims = graph->nodes[node->in[k]].out.shape.dims;
        int64_t pixels = dims[2] * dims[3], anchors = dims[1] / c;
        for (int64_t i = 0; i < pixels * anchors; i++, p++)
            for (int64_t ch = 0; ch < c; ch++)
                out[last ? p * c + ch : ch * cells + p] =
                    in[k][(i % anchors * c + ch) * pixels + i / anchors];
    }
    return true;
}

static bool slice(const struct rfx_node *node, const struct rfx_tensor *it, const float *in,
                  float *out) {
    const struct rfx_slice_attr *a = &node->attr.slice;
    if (!dims_are(node, it->shape.rank, a->shape.dims)) return false;
    int64_t index[RFX_MAX_RANK];
    for (int64_t i = 0; i < node->out.elems; i++) {
        unravel(&node->out.shape, i, index);
        for (int d = 0; d < it->shape.rank; d++) index[d] = a->starts[d] + index[d] * a->steps[d];
        out[i] = in[ravel(&it->shape, index, it->shape.rank)];
    }
    return true;
}

static bool gather(const struct rfx_node *node, const struct rfx_tensor *it, const float *in,
                   float *out) {
    int axis = node->attr.gather.axis;
    int64_t dims[RFX_MAX_RANK], index[RFX_MAX_RANK];
    memcpy(dims, it->shape.dims, sizeof dims);
    dims[axis] = node->attr.gather.count;
    if (!dims_are(node, it->shape.rank, dims)) return false;
    for (int64_t i = 0; i < node->out.elems; i++) {
        unravel(&node->out.shape, i, index);
        index[axis] = node->attr.gather.map[index[axis]];
        out[i] = in[ravel(&it->shape, index, it->shape.rank)];
    }
    return true;
}

static bool softmax(const struct rfx_node *node, const struct rfx_tensor *it, const float *in,
                    float *out) {
    int axis = node->attr.softmax.axis;
    if (axis < 0) axis += it->shape.rank;
    if (!dims_are(node, it->shape.rank, it->shape.dims)) return false;
    int64_t index[RFX_MAX_RANK], n = it->shape.dims[axis];
    for (int64_t i = 0; i < it->elems; i++) {
        unravel(&it->shape, i, index);
        double largest = -INFINITY, sum = 0;
        for (int64_t j = 0; j < 2 * n; j++) {
            index[axis] = j % n;
            double v = (double)in[ravel(&it->shape, index, it->shape.rank)];
            if (j < n)
                largest = fmax(largest, v);
            else
                sum += exp(v - largest);
        }
        double shifted = (double)in[i] - largest;
        out[i] = (float)(node->attr.softmax.logarithm ? shifted - log(sum) : exp(shifted) / sum);
    }
    return true;
}

static bool binary(const struct rfx_graph *graph, const struct rfx_node *node, float *const *in,
                   float *out) {
    const struct rfx_shape *a = &graph->nodes[node->in[0]].out.shape;
    const struct rfx_shape *b = &graph->nodes[node->in[1]].out.shape;
    int rank = a->rank > b->rank ? a->rank : b->rank;
    int64_t dims[RFX_MAX_RANK], index[RFX_MAX_RANK];
    for (int d = 0; d < rank; d++) {
        int da = d - (rank - a->rank), db = d - (rank - b->rank);
        int64_t na = da < 0 ? 1 : a->dims[da], nb = db < 0 ? 1 : b->dims[db];
        dims[d] = na == 1 ? nb : na;
    }
    if (!dims_are(node, rank, dims)) return false;
    for (int64_t i = 0; i < node->out.elems; i++) {
        unravel(&node->out.shape, i, index);
        double v = rfx_ref_binary(node->attr.binary.kind, (double)in[0][ravel(a, index, rank)],
                                  (double)in[1][ravel(b, index, rank)]);
        out[i] = (float)rfx_ref_act(graph, &node->act, v, 0);
    }
    return true;
}

/* Whether input element `at` belongs to output element `o`. */
static bool reduces_to(const struct rfx_node *node, const struct rfx_tensor *it, int64_t at,
                       int64_t o) {
    int64_t index[RFX_MAX_RANK], where = 0;
    unravel(&it->shape, at, index);
    for (int d = 0; d < it->shape.rank; d++)
        if (!node->attr.reduce.axes[d]) where = where * it->shape.dims[d] + index[d];
    return where == o;
}

static bool reduce(const struct rfx_node *node, const struct rfx_tensor *it, const float *in,
                   float *out) {
    int64_t dims[RFX_MAX_RANK];
    int rank = 0;
    for (int d = 0; d < it->shape.rank; d++) {
        if (!node->attr.reduce.axes[d])
            dims[rank++] = it->shape.dims[d];
        else if (node->attr.reduce.keep_dims)
            dims[rank++] = 1;
    }
    if (!dims_are(node, rank, dims)) return false;
    double *values = malloc((size_t)it->elems * sizeof *values);
    if (values == NULL) return false;
    for (int64_t o = 0; o < node->out.elems; o++) {
        int64_t n = 0;
        for (int64_t i = 0; i < it->elems; i++)
            if (reduces_to(node, it, i, o)) values[n++] = (double)in[i];
        out[o] = (float)rfx_ref_reduce(node->attr.reduce.kind, values, n);
    }
    free(values);
    return true;
}

static bool gemm(const struct rfx_graph *graph, const struct rfx_node *node,
                 const struct rfx_tensor *it, const float *in, float *out) {
    int64_t k = node->attr.gemm.k, m = node->attr.gemm.m, rows = it->elems / k;
    if (node->out.elems != rows * m) return false;
    for (int64_t i = 0; i < rows * m; i++) {
        double sum = 0;
        for (int64_t j = 0; j < k; j++)
            sum += (double)in[i / m * k + j] *
                   rfx_ref_weight(graph, node->attr.gemm.weight,
                                  node->attr.gemm.weight_is_mk ? i % m * k + j : j * m + i % m, 0);
        sum = (double)node->attr.gemm.alpha * sum +
              (double)node->attr.gemm.beta * rfx_ref_weight(graph, node->attr.gemm.bias, i % m, 0);
        out[i] = (float)rfx_ref_act(graph, &node->act, sum, i % m);
    }
    return true;
}

static bool matmul(const struct rfx_graph *graph, const struct rfx_node *node, float *const *in,
                   float *out) {
    struct rfx_shape a = graph->nodes[node->in[0]].out.shape;
    struct rfx_shape b = graph->nodes[node->in[1]].out.shape;
    int rank = node->out.shape.rank;
    if (a.rank < 2 || b.rank < 2 || rank < 2) return false;
    int64_t k = a.dims[a.rank - 1], index[RFX_MAX_RANK], other[RFX_MAX_RANK];
    if (b.dims[b.rank - 2] != k) return false;
    for (int64_t i = 0; i < node->out.elems; i++) {
        unravel(&node->out.shape, i, index);
        memcpy(other, index, sizeof other);
        double sum = 0;
        for (int64_t j = 0; j < k; j++) {
            index[rank - 1] = j;
            other[rank - 2] = j;
            sum += (double)in[0][ravel(&a, index, rank)] * (double)in[1][ravel(&b, other, rank)];
        }
        out[i] = (float)sum;
    }
    return true;
}

/* Of maps too: in ONNX order they are tensors of rank 4. */
static bool triangle(const struct rfx_node *node, const struct rfx_tensor *it, const float *in,
                     float *out) {
    int64_t index[RFX_MAX_RANK];
    int rank = it->shape.rank;
    if (!dims_are(node, rank, it->shape.dims)) return false;
    for (int64_t i = 0; i < it->elems; i++) {
        unravel(&it->shape, i, index);
        int64_t above = index[rank - 1] - index[rank - 2] - node->attr.triangle.k;
        out[i] = (node->attr.triangle.upper ? above >= 0 : above <= 0) ? in[i] : 0;
    }
    return true;
}

static bool running_sum(const struct rfx_node *node, const struct rfx_tensor *it, const float *in,
                        float *out) {
    int64_t index[RFX_MAX_RANK];
    int rank = it->shape.rank, axis = node->attr.running.axis;
    if (!dims_are(node, rank, it->shape.dims)) return false;
    for (int64_t i = 0; i < it->elems; i++) {
        double sum = 0;
        unravel(&it->shape, i, index);
        int64_t at = index[axis];
        for (index[axis] = 0; index[axis] < it->shape.dims[axis]; index[axis]++) {
            int64_t ahead = node->attr.running.reverse ? index[axis] - at : at - index[axis];
            if (ahead > 0 || (ahead == 0 && !node->attr.running.exclusive))
                sum += (double)in[ravel(&it->shape, index, rank)];
        }
        out[i] = (float)sum;
    }
    return true;
}

bool rfx_ref_tensor(const struct rfx_graph *graph, const struct rfx_node *node, float *const *in,
                    float *out) {
    const struct rfx_tensor *it = &graph->nodes[node->in[0]].out;
    switch ((int)node->op) {
        case RFX_OP_TO_PLAIN:
        case RFX_OP_TO_NHWC:
            return dims_are(node, it->shape.rank, it->shape.dims) && copy(node, it, in[0], out);
        case RFX_OP_RESHAPE:
            return copy(node, it, in[0], out);
        case RFX_OP_NHWC_AS_PLAIN:
        case RFX_OP_PLAIN_AS_NHWC:
            return same_bytes(node, it, in[0], out);
        case RFX_OP_TRANSPOSE:
            return transpose(node, it, in[0], out);
        case RFX_OP_PLAIN_CONCAT:
            return concat(graph, node, in, out);
        case RFX_OP_JOIN_MAPS:
            return join_maps(graph, node, in, out);
        case RFX_OP_PLAIN_SLICE:
            return slice(node, it, in[0], out);
        case RFX_OP_PLAIN_GATHER:
            return gather(node, it, in[0], out);
        case RFX_OP_TOP_K:
            return rfx_ref_top_k(node, it, in[0], out);
        case RFX_OP_PICK:
            return rfx_ref_pick(graph, node, in, out);
        case RFX_OP_SCATTER:
            return rfx_ref_scatter(graph, node, in, out);
        case RFX_OP_PLAIN_SOFTMAX:
            return softmax(node, it, in[0], out);
        case RFX_OP_PLAIN_BINARY:
            return binary(graph, node, in, out);
        case RFX_OP_TRIANGLE:
            return triangle(node, it, in[0], out);
        case RFX_OP_RUNNING_SUM:
            return running_sum(node, it, in[0], out);
        case RFX_OP_REDUCE:
            return reduce(node, it, in[0], out);
        case RFX_OP_GEMM:
            return gemm(graph, node, it, in[0], out);
        case RFX_OP_MATMUL:
            return matmul(graph, node, in, out);
        default:
            fprintf(stderr, "the reference does not know op %d of '%s'\n", (int)node->op,
                    node->name);
            return false;
    }
}
