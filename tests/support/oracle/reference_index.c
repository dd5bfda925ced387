/* Finding, reading and writing elements by their numbers, see reference.h: each output element
 * looks at all that may concern it. */
#include <math.h>
#include <stdio.h>

#include "tests/support/oracle/reference_call.h"

static void unravel(const struct rfx_shape *s, int64_t at, int64_t *index) {
    for (int d = s->rank - 1; d >= 0; d--) {
        index[d] = at % s->dims[d];
        at /= s->dims[d];
    }
}

static int64_t ravel(const struct rfx_shape *s, const int64_t *index) {
    int64_t at = 0;
    for (int d = 0; d < s->rank; d++) at = at * s->dims[d] + index[d];
    return at;
}

static bool has_shape(const struct rfx_node *node, const struct rfx_shape *want) {
    bool same = node->out.shape.rank == want->rank;
    for (int d = 0; d < want->rank; d++) same = same && node->out.shape.dims[d] == want->dims[d];
    if (!same) fprintf(stderr, "'%s': inferred shape is wrong\n", node->name);
    return same;
}

/* Whether x[a] stands in front of x[b] among the largest (smallest) of a line. */
static bool stands_before(float x, float y, int64_t a, int64_t b, bool largest) {
    if (isnan(x) && isnan(y)) return a < b;
    if (isnan(x)) return largest;
    if (isnan(y)) return !largest;
    if (x == y) return a < b;
    return largest ? x > y : x < y;
}

bool rfx_ref_top_k(const struct rfx_node *node, const struct rfx_tensor *it, const float *in,
                   float *out) {
    int axis = node->attr.top_k.axis;
    struct rfx_shape shape = it->shape;
    int64_t n = shape.dims[axis], index[RFX_MAX_RANK], other[RFX_MAX_RANK];
    shape.dims[axis] = node->attr.top_k.k;
    if (!has_shape(node, &shape)) return false;
    for (int64_t e = 0; e < it->elems; e++) { /* its rank in its line is where its place goes */
        unravel(&it->shape, e, index);
        int64_t before = 0, place = index[axis];
        for (int d = 0; d < shape.rank; d++) other[d] = index[d];
        for (int64_t k = 0; k < n; k++) {
            other[axis] = k;
            before += stands_before(in[ravel(&it->shape, other)], in[e], k, place,
                                    node->attr.top_k.largest);
        }
        index[axis] = before;
        if (before < node->attr.top_k.k) out[ravel(&shape, index)] = (float)place;
    }
    return true;
}

/* An index counted from 0; -1: it is outside. */
static int64_t counted(float v, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (v == (float)i || v == (float)(i - n)) return i;
    return -1;
}

/* Where in the data the element `at` of what is picked (or of the updates) lies; -1: nowhere. */
static int64_t source(const struct rfx_node *node, const struct rfx_shape *data,
                      const struct rfx_shape *indices, const float *where,
                      const struct rfx_shape *picked, int64_t at) {
    int axis = node->attr.index.axis, q = indices->rank;
    int64_t index[RFX_MAX_RANK], from[RFX_MAX_RANK], row[RFX_MAX_RANK];
    unravel(picked, at, index);
    if (node->attr.index.kind == RFX_INDEX_ELEMENTS) {
        for (int d = 0; d < data->rank; d++) from[d] = index[d];
        from[axis] = counted(where[at], data->dims[axis]);
    } else if (node->attr.index.kind == RFX_INDEX_SLICES) {
        for (int d = 0; d < q; d++) row[d] = index[axis + d];
        for (int d = 0; d < axis; d++) from[d] = index[d];
        for (int d = axis + 1; d < data->rank; d++) from[d] = index[d - 1 + q];
        from[axis] = counted(where[ravel(indices, row)], data->dims[axis]);
    } else {
        int width = (int)indices->dims[q - 1];
        for (int d = 0; d < q - 1; d++) row[d] = index[d];
        for (int d = 0; d < axis; d++) from[d] = index[d];
        for (int d = 0; d < width; d++) {
            row[q - 1] = d;
            from[axis + d] = counted(where[ravel(indices, row)], data->dims[axis + d]);
        }
        for (int d = axis + width; d < data->rank; d++) from[d] = index[q - 1 + d - axis - width];
    }
    for (int d = 0; d < data->rank; d++)
        if (from[d] < 0) return -1;
    return ravel(data, from);
}

bool rfx_ref_pick(const struct rfx_graph *graph, const struct rfx_node *node, float *const *in,
                  float *out) {
    const struct rfx_shape *data = &graph->nodes[node->in[0]].out.shape;
    const struct rfx_shape *indices = &graph->nodes[node->in[1]].out.shape;
    int axis = node->attr.index.axis, skipped = 1;
    struct rfx_shape want = {0, {0}};
    if (node->attr.index.kind == RFX_INDEX_TUPLES) {
        for (int d = 0; d < indices->rank - 1; d++) want.dims[want.rank++] = indices->dims[d];
        skipped = (int)indices->dims[indices->rank - 1];
    } else if (node->attr.index.kind == RFX_INDEX_SLICES) {
        for (int d = 0; d < axis; d++) want.dims[want.rank++] = data->dims[d];
        for (int d = 0; d < indices->rank; d++) want.dims[want.rank++] = indices->dims[d];
    }
    for (int d = axis + skipped; d < data->rank; d++) want.dims[want.rank++] = data->dims[d];
    if (node->attr.index.kind == RFX_INDEX_ELEMENTS) want = *indices;
    if (!has_shape(node, &want)) return false;
    for (int64_t e = 0; e < node->out.elems; e++) {
        int64_t from = source(node, data, indices, in[1], &want, e);
        out[e] = from < 0 ? NAN : in[0][from];
    }
    return true;
}

bool rfx_ref_scatter(const struct rfx_graph *graph, const struct rfx_node *node, float *const *in,
                     float *out) {
    const struct rfx_tensor *data = &graph->nodes[node->in[0]].out;
    const struct rfx_shape *indices = &graph->nodes[node->in[1]].out.shape;
    const struct rfx_tensor *updates = &graph->nodes[node->in[2]].out;
    bool outside = false;
    if (!has_shape(node, &data->shape)) return false;
    for (int64_t e = 0; e < data->elems; e++) out[e] = in[0][e];
    for (int64_t u = 0; u < updates->elems; u++) {
        int64_t to = source(node, &data->shape, indices, in[1], &updates->shape, u);
        float v = in[2][u];
        outside = outside || to < 0;
        if (to < 0) continue;
        enum rfx_scatter_kind kind = node->attr.index.scatter;
        if (kind == RFX_SCATTER_ADD) v = out[to] + v;
        if (kind == RFX_SCATTER_MUL) v = out[to] * v;
        if (kind == RFX_SCATTER_MAX && out[to] > v) v = out[to];
        if (kind == RFX_SCATTER_MIN && out[to] < v) v = out[to];
        out[to] = v;
    }
    for (int64_t e = 0; outside && e < data->elems; e++) out[e] = NAN;
    return true;
}
