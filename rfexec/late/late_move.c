/* Late operators that move elements and change shapes. */
#include <string.h>

#include "layers/core/checked.h"
#include "rfexec/late/late_ops.h"

void rfx_late_identity(struct rfx_late_call *call) {
    const struct rfx_late_tensor *x = rfx_late_need(call, 0);
    if (x != NULL) rfx_late_reshape(call, &x->shape);
}

void rfx_late_shape(struct rfx_late_call *call) {
    const struct rfx_late_tensor *x = rfx_late_need(call, 0);
    if (x == NULL) return;
    int64_t limits[2];
    for (int i = 0; i < 2; i++) {
        int64_t at = call->node->ints[i];
        if (at < 0) at += x->shape.rank;
        limits[i] = rfx_min_i64(rfx_max_i64(at, 0), x->shape.rank);
    }
    const struct rfx_shape shape = {1, {rfx_max_i64(limits[1] - limits[0], 0)}};
    int64_t *out = rfx_late_make(call, 0, RFX_TYPE_INT64, &shape);
    for (int64_t i = 0; out != NULL && i < shape.dims[0]; i++)
        out[i] = x->shape.dims[limits[0] + i];
}

void rfx_late_reshape_op(struct rfx_late_call *call) {
    const struct rfx_late_tensor *x = rfx_late_need(call, 0);
    struct rfx_shape shape = {0};
    int64_t product = 1;
    int open = -1;
    shape.rank = rfx_late_ints(call, 1, shape.dims);
    for (int i = 0; i < shape.rank && call->status == RFX_OK; i++) {
        int64_t *dim = &shape.dims[i];
        if (*dim == 0 && call->node->ints[0] == 0) *dim = i < x->shape.rank ? x->shape.dims[i] : 0;
        if (*dim == -1 && open < 0) {
            open = i;
        } else if (*dim < 0 || !rfx_checked_mul_i64(product, *dim, &product)) {
            rfx_late_refuse(call, RFX_STATUS_MALFORMED, "a new dimension of %lld is not possible",
                            (long long)*dim);
        }
    }
    if (call->status != RFX_OK) return;
    if (open >= 0) shape.dims[open] = product > 0 ? x->elems / product : 0;
    rfx_late_reshape(call, &shape);
}

void rfx_late_flatten(struct rfx_late_call *call) {
    const struct rfx_late_tensor *x = rfx_late_need(call, 0);
    if (x == NULL) return;
    const int rank = x->shape.rank;
    int64_t axis = call->node->ints[0];
    if (axis != rank) axis = rfx_late_axis(call, axis, rank);
    const struct rfx_shape shape = {2,
                                    {rfx_shape_product(&x->shape, 0, (int)axis),
                                     rfx_shape_product(&x->shape, (int)axis, rank)}};
    rfx_late_reshape(call, &shape);
}

void rfx_late_squeeze(struct rfx_late_call *call) {
    const struct rfx_late_tensor *x = rfx_late_need(call, 0);
    bool axes[RFX_MAX_RANK];
    struct rfx_shape shape = {0};
    if (x == NULL) return;
    bool given = rfx_late_axes(call, 1, x->shape.rank, axes);
    for (int i = 0; i < x->shape.rank; i++) {
        int64_t dim = x->shape.dims[i];
        if (given && axes[i] && dim != 1)
            rfx_late_refuse(call, RFX_STATUS_MALFORMED, "axis %d has %lld elements, not 1", i,
                            (long long)dim);
        if (given ? !axes[i] : dim != 1) shape.dims[shape.rank++] = dim;
    }
    rfx_late_reshape(call, &shape);
}

void rfx_late_unsqueeze(struct rfx_late_call *call) {
    const struct rfx_late_tensor *x = rfx_late_need(call, 0);
    bool axes[RFX_MAX_RANK];
    struct rfx_shape shape = {0};
    int n = call->node->n_list, next = 0;
    if (x == NULL) return;
    const struct rfx_late_tensor *list = rfx_late_in(call, 1);
    if (call->node->list == NULL && list != NULL)
        n = (int)rfx_min_i64(list->elems, 2 * RFX_MAX_RANK);
    shape.rank = x->shape.rank + n;
    if (shape.rank > RFX_MAX_RANK) {
        rfx_late_refuse(call, RFX_STATUS_UNSUPPORTED,
                        "a result of rank %d: at most %d is supported", shape.rank, RFX_MAX_RANK);
        return;
    }
    if (!rfx_late_axes(call, 1, shape.rank, axes))
        rfx_late_refuse(call, RFX_STATUS_MALFORMED, "it has no axes");
    for (int i = 0; i < shape.rank && call->status == RFX_OK; i++)
        shape.dims[i] = axes[i] ? 1 : x->shape.dims[next++];
    rfx_late_reshape(call, &shape);
}

/* Copies elements of x to out, of the same type. rows: shape, strides and at are set, [0] of x and
 * [1] of out. */
static void copy_rows(const struct rfx_late_tensor *x, struct rfx_late_rows *rows, void *out) {
    const size_t bytes = rfx_type_bytes(x->type);
    rows->n = 2;
    rfx_late_rows_begin(rows);
    for (int64_t r = 0; r < rows->rows; r++, rfx_late_rows_next(rows))
        for (int64_t i = 0; i < rows->columns; i++) {
            size_t from = (size_t)(rows->at[0] + i * rows->step[0]) * bytes;
            size_t to = (size_t)(rows->at[1] + i * rows->step[1]) * bytes;
            memcpy((unsigned char *)out + to, (const unsigned char *)x->data + from, bytes);
        }
}

/* Makes result k of `shape` from the elements of x with these strides. */
static void make_strided(struct rfx_late_call *call, int k, const struct rfx_late_tensor *x,
                         const struct rfx_shape *shape, const int64_t *strides, int64_t first) {
    struct rfx_late_rows rows = {.shape = *shape, .at = {first}};
    void *out = rfx_late_make(call, k, x->type, shape);
    if (out == NULL) return;
    memcpy(rows.strides[0], strides, sizeof rows.strides[0]);
    rfx_shape_strides(shape, rows.strides[1]);
    copy_rows(x, &rows, out);
}

void rfx_late_transpose(struct rfx_late_call *call) {
    const struct rfx_late_tensor *x = rfx_late_need(call, 0);
    int64_t own[RFX_MAX_RANK], strides[RFX_MAX_RANK] = {0};
    unsigned seen = 0;
    if (x == NULL) return;
    struct rfx_shape shape = {.rank = x->shape.rank};
    const int64_t *perm = call->node->list;
    if (perm != NULL && call->node->n_list != shape.rank)
        rfx_late_refuse(call, RFX_STATUS_MALFORMED, "perm has %d numbers for rank %d",
                        call->node->n_list, shape.rank);
    rfx_shape_strides(&x->shape, own);
    for (int i = 0; i < shape.rank && call->status == RFX_OK; i++) {
        int64_t from = perm != NULL ? perm[i] : shape.rank - 1 - i;
        if (from < 0 || from >= shape.rank || (seen & 1U << from) != 0) {
            rfx_late_refuse(call, RFX_STATUS_MALFORMED, "perm is no permutation");
            return;
        }
        seen |= 1U << from;
        shape.dims[i] = x->shape.dims[from];
        strides[i] = own[from];
    }
    make_strided(call, 0, x, &shape, strides, 0);
}

/* Checks that operand k has the type and, but for `axis`, the shape of operand 0. */
static const struct rfx_late_tensor *need_alike(struct rfx_late_call *call, int k, int axis,
                                                const struct rfx_late_tensor *first) {
    char a[RFX_SHAPE_TEXT], b[RFX_SHAPE_TEXT];
    const struct rfx_late_tensor *x = rfx_late_need(call, k);
    if (x == NULL) return NULL;
    bool alike = x->type == first->type && x->shape.rank == first->shape.rank;
    for (int i = 0; alike && i < x->shape.rank; i++)
        alike = i == axis || x->shape.dims[i] == first->shape.dims[i];
    if (alike) return x;
    rfx_late_refuse(call, RFX_STATUS_MALFORMED, "%s %s and %s %s do not go together",
                    rfx_shape_text(&first->shape, "x", a), rfx_type_name(first->type),
                    rfx_shape_text(&x->shape, "x", b), rfx_type_name(x->type));
    return NULL;
}

void rfx_late_concat(struct rfx_late_call *call) {
    const struct rfx_late_tensor *first = rfx_late_need(call, 0);
    if (first == NULL) return;
    const int rank = first->shape.rank, axis = rfx_late_axis(call, call->node->ints[0], rank);
    struct rfx_shape shape = first->shape;
    int64_t sum = 0;
    for (int k = 0; k < call->node->n_in; k++) {
        const struct rfx_late_tensor *x = need_alike(call, k, axis, first);
        if (x == NULL) return;
        if (!rfx_checked_add_i64(sum, x->shape.dims[axis], &sum))
            rfx_late_refuse(call, RFX_STATUS_UNSUPPORTED, "the result is too large");
    }
    shape.dims[axis] = sum;
    unsigned char *out = rfx_late_make(call, 0, first->type, &shape);
    if (out == NULL) return;
    const int64_t outer = rfx_shape_product(&shape, 0, axis);
    const int64_t inner = rfx_shape_product(&shape, axis + 1, rank);
    const size_t bytes = rfx_type_bytes(first->type);
    for (int64_t o = 0; o < outer; o++)
        for (int k = 0; k < call->node->n_in; k++) {
            const struct rfx_late_tensor *x = rfx_late_in(call, k);
            size_t run = (size_t)(x->shape.dims[axis] * inner) * bytes;
            memcpy(out, (const unsigned char *)x->data + (size_t)o * run, run);
            out += run;
        }
}

/* Limits of a slice along an axis, as ONNX clamps them: *begin and the number of elements. */
static int64_t clamp_slice(int64_t dim, int64_t from, int64_t to, int64_t step, int64_t *begin) {
    const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? dim : dim - 1;
    if (from < 0) from = from < -dim ? INT64_MIN : from + dim;
    if (to < 0) to = to < -dim ? INT64_MIN : to + dim;
    from = rfx_min_i64(rfx_max_i64(from, 0), high);
    to = rfx_min_i64(rfx_max_i64(to, low), high);
    *begin = from;
    const int64_t span = step > 0 ? to - from : from - to;
    const uint64_t size = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    return span <= 0 ? 0 : 1 + (int64_t)((uint64_t)(span - 1) / size);
}

void rfx_late_slice(struct rfx_late_call *call) {
    const struct rfx_late_tensor *x = rfx_late_need(call, 0);
    int64_t from[RFX_MAX_RANK], to[RFX_MAX_RANK], axes[RFX_MAX_RANK], steps[RFX_MAX_RANK];
    int64_t strides[RFX_MAX_RANK] = {0}, first = 0;
    int n = rfx_late_ints(call, 1, from), n_to = rfx_late_ints(call, 2, to);
    int n_axes = n, n_steps = n;
    unsigned seen = 0;
    for (int i = 0; i < RFX_MAX_RANK; i++) {
        axes[i] = i;
        steps[i] = 1;
    }
    if (rfx_late_in(call, 3) != NULL) n_axes = rfx_late_ints(call, 3, axes);
    if (rfx_late_in(call, 4) != NULL) n_steps = rfx_late_ints(call, 4, steps);
    if (n != n_to || n != n_axes || n != n_steps)
        rfx_late_refuse(call, RFX_STATUS_MALFORMED, "%d starts, %d ends, %d axes, %d steps", n,
                        n_to, n_axes, n_steps);
    if (call->status != RFX_OK) return;
    struct rfx_shape shape = x->shape;
    rfx_shape_strides(&shape, strides);
    for (int i = 0; i < n; i++) {
        int64_t begin;
        int axis = rfx_late_axis(call, axes[i], shape.rank);
        if (call->status == RFX_OK && (steps[i] == 0 || (seen & 1U << axis) != 0))
            rfx_late_refuse(call, RFX_STATUS_MALFORMED,
                            steps[i] == 0 ? "a step of 0" : "an axis is named twice");
        if (call->status != RFX_OK) return;
        seen |= 1U << axis;
        shape.dims[axis] = clamp_slice(x->shape.dims[axis], from[i], to[i], steps[i], &begin);
        if (shape.dims[axis] == 0) continue;
        first += begin * strides[axis];
        if (shape.dims[axis] > 1) strides[axis] *= steps[i];
    }
    make_strided(call, 0, x, &shape, strides, first);
}

/* Returns the size of piece k of a Split; -1: an error was recorded. */
static int64_t piece_of(struct rfx_late_call *call, int k, int64_t dim) {
    const struct rfx_late_node *node = call->node;
    const struct rfx_late_tensor *sizes = rfx_late_in(call, 1);
    const int64_t n = node->n_out, most = (dim + n - 1) / n;
    int64_t given = node->list != NULL ? node->n_list : sizes != NULL ? sizes->elems : n;
    if (given != n) {
        rfx_late_refuse(call, RFX_STATUS_MALFORMED, "%lld sizes for %lld outputs", (long long)given,
                        (long long)n);
        return -1;
    }
    if (node->list != NULL) return node->list[k];
    if (sizes != NULL) return rfx_late_int(call, sizes, k);
    return rfx_max_i64(rfx_min_i64(most, dim - k * most), 0);
}

void rfx_late_split(struct rfx_late_call *call) {
    const struct rfx_late_tensor *x = rfx_late_need(call, 0);
    if (x == NULL) return;
    const int axis = rfx_late_axis(call, call->node->ints[0], x->shape.rank);
    int64_t strides[RFX_MAX_RANK] = {0}, at = 0, dim = x->shape.dims[axis];
    rfx_shape_strides(&x->shape, strides);
    for (int k = 0; k < call->node->n_out && call->status == RFX_OK; k++) {
        struct rfx_shape shape = x->shape;
        int64_t size = shape.dims[axis] = piece_of(call, k, dim);
        bool last = k == call->node->n_out - 1;
        if (call->status == RFX_OK && (size < 0 || size > dim - at || (last && size != dim - at)))
            rfx_late_refuse(call, RFX_STATUS_MALFORMED,
                            "piece %d has %lld elements, axis %d has %lld", k, (long long)size,
                            axis, (long long)dim);
        if (call->status != RFX_OK) return;
        if (rfx_late_gives(call, k)) make_strided(call, k, x, &shape, strides, at * strides[axis]);
        at += size;
    }
}

void rfx_late_expand(struct rfx_late_call *call) {
    const struct rfx_late_tensor *x = rfx_late_need(call, 0);
    struct rfx_shape wanted = {0};
    struct rfx_late_rows rows;
    wanted.rank = rfx_late_ints(call, 1, wanted.dims);
    for (int i = 0; i < wanted.rank; i++)
        if (wanted.dims[i] < 0)
            rfx_late_refuse(call, RFX_STATUS_MALFORMED, "a dimension of %lld is not possible",
                            (long long)wanted.dims[i]);
    if (call->status != RFX_OK) return;
    const struct rfx_shape *const shapes[] = {&x->shape, &wanted};
    rfx_late_rows_broadcast(call, shapes, 2, &rows);
    make_strided(call, 0, x, &rows.shape, rows.strides[0], 0);
}

void rfx_late_constant_of_shape(struct rfx_late_call *call) {
    static const float zero = 0.0F;
    struct rfx_shape shape = {0};
    shape.rank = rfx_late_ints(call, 0, shape.dims);
    const struct rfx_late_tensor *value = rfx_late_in(call, 1);
    if (value != NULL && value->elems != 1)
        rfx_late_refuse(call, RFX_STATUS_MALFORMED, "a value of %lld elements: one is needed",
                        (long long)value->elems);
    enum rfx_type type = value != NULL ? value->type : RFX_TYPE_FLOAT32;
    const size_t bytes = rfx_type_bytes(type);
    unsigned char *out = rfx_late_make(call, 0, type, &shape);
    if (out == NULL) return;
    const void *from = value != NULL ? value->data : &zero;
    for (int64_t i = rfx_shape_product(&shape, 0, shape.rank); i > 0; i--, out += bytes)
        memcpy(out, from, bytes);
}

/* Copies the part of x that lies in a tensor of `shape`, in which x begins at `before`. */
static void copy_inside(const struct rfx_late_tensor *x, const struct rfx_shape *shape,
                        const int64_t *before, unsigned char *out) {
    struct rfx_late_rows rows = {.shape = {.rank = shape->rank}};
    rfx_shape_strides(&x->shape, rows.strides[0]);
    rfx_shape_strides(shape, rows.strides[1]);
    for (int axis = 0; axis < shape->rank; axis++) {
        int64_t lo = rfx_max_i64(-before[axis], 0);
        int64_t hi = rfx_min_i64(x->shape.dims[axis], shape->dims[axis] - before[axis]);
        if (hi <= lo) return;
        rows.shape.dims[axis] = hi - lo;
        rows.at[0] += lo * rows.strides[0][axis];
        rows.at[1] += (lo + before[axis]) * rows.strides[1][axis];
    }
    copy_rows(x, &rows, out);
}

void rfx_late_pad(struct rfx_late_call *call) {
    const struct rfx_late_tensor *x = rfx_late_need(call, 0), *pads = rfx_late_need(call, 1);
    const struct rfx_late_tensor *value = rfx_late_in(call, 2);
    int64_t before[RFX_MAX_RANK];
    if (x == NULL || pads == NULL) return;
    struct rfx_shape shape = x->shape;
    if (pads->elems != 2 * (int64_t)shape.rank)
        rfx_late_refuse(call, RFX_STATUS_MALFORMED,
                        "%lld pads for rank %d: two for each axis are needed",
                        (long long)pads->elems, shape.rank);
    if (value != NULL && (value->type != x->type || value->elems != 1))
        rfx_late_refuse(
            call, RFX_STATUS_MALFORMED, "a padding of %lld elements of %s: one of %s is needed",
            (long long)value->elems, rfx_type_name(value->type), rfx_type_name(x->type));
    for (int i = 0; i < shape.rank && call->status == RFX_OK; i++) {
        before[i] = rfx_late_int(call, pads, i);
        if (!rfx_checked_add_i64(shape.dims[i], before[i], &shape.dims[i]) ||
            !rfx_checked_add_i64(shape.dims[i], rfx_late_int(call, pads, shape.rank + i),
                                 &shape.dims[i]) ||
            shape.dims[i] < 0 || before[i] < -x->shape.dims[i])
            rfx_late_refuse(call, RFX_STATUS_MALFORMED, "axis %d of %lld is padded by %lld", i,
                            (long long)x->shape.dims[i], (long long)before[i]);
    }
    unsigned char *out = rfx_late_make(call, 0, x->type, &shape);
    if (out == NULL) return;
    const size_t bytes = rfx_type_bytes(x->type);
    const int64_t n = rfx_shape_product(&shape, 0, shape.rank);
    memset(out, 0, (size_t)n * bytes);
    for (int64_t i = 0; value != NULL && i < n; i++)
        memcpy(out + (size_t)i * bytes, value->data, bytes);
    copy_inside(x, &shape, before, out);
}

/* Returns an index of an axis of `dim` elements, counted from the end if it is negative. */
static int64_t index_at(struct rfx_late_call *call, const struct rfx_late_tensor *indices,
                        int64_t i, int64_t dim) {
    int64_t index = rfx_late_int(call, indices, i);
    if (index < 0) index += dim;
    if (index >= 0 && index < dim) return index;
    rfx_late_refuse(call, RFX_STATUS_MALFORMED, "index %lld of an axis of %lld elements",
                    (long long)(index < 0 ? index - dim : index), (long long)dim);
    return 0;
}

void rfx_late_gather(struct rfx_late_call *call) {
    const struct rfx_late_tensor *x = rfx_late_need(call, 0), *indices = rfx_late_need(call, 1);
    if (x == NULL || indices == NULL) return;
    const int rank = x->shape.rank, axis = rfx_late_axis(call, call->node->ints[0], rank);
    struct rfx_shape shape = {.rank = rank - 1 + indices->shape.rank};
    if (call->status == RFX_OK && shape.rank > RFX_MAX_RANK)
        rfx_late_refuse(call, RFX_STATUS_UNSUPPORTED,
                        "a result of rank %d: at most %d is supported", shape.rank, RFX_MAX_RANK);
    if (call->status != RFX_OK) return;
    int n = 0;
    for (int i = 0; i < axis; i++) shape.dims[n++] = x->shape.dims[i];
    for (int i = 0; i < indices->shape.rank; i++) shape.dims[n++] = indices->shape.dims[i];
    for (int i = axis + 1; i < rank; i++) shape.dims[n++] = x->shape.dims[i];
    unsigned char *out = rfx_late_make(call, 0, x->type, &shape);
    if (out == NULL) return;
    const int64_t outer = rfx_shape_product(&x->shape, 0, axis), dim = x->shape.dims[axis];
    const size_t run =
        (size_t)rfx_shape_product(&x->shape, axis + 1, rank) * rfx_type_bytes(x->type);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < indices->elems && call->status == RFX_OK; i++, out += run) {
            int64_t at = o * dim + index_at(call, indices, i, dim);
            if (call->status == RFX_OK)
                memcpy(out, (const unsigned char *)x->data + (size_t)at * run, run);
        }
}

/* Returns the number of the slice of `x` that the tuple of k indices beginning at element `first`
 * names. */
static int64_t slice_at(struct rfx_late_call *call, const struct rfx_late_tensor *x,
                        const struct rfx_late_tensor *indices, int64_t first, int k) {
    int64_t at = 0;
    for (int i = 0; i < k; i++)
        at = at * x->shape.dims[i] + index_at(call, indices, first + i, x->shape.dims[i]);
    return at;
}

/* Sets *shape to dims of the tuples in `indices` and the axes of x that they do not name, and
 * returns the length of a tuple. -1: an error was recorded. */
static int tuples_of(struct rfx_late_call *call, const struct rfx_late_tensor *x,
                     const struct rfx_late_tensor *indices, struct rfx_shape *shape) {
    const int rank = indices->shape.rank;
    const int64_t k = rank > 0 ? indices->shape.dims[rank - 1] : 0;
    *shape = (struct rfx_shape){0};
    if (k < 1 || k > x->shape.rank || rank - 1 + x->shape.rank - k > RFX_MAX_RANK) {
        rfx_late_refuse(call, RFX_STATUS_MALFORMED,
                        "tuples of %lld indices for a tensor of rank %d", (long long)k,
                        x->shape.rank);
        return -1;
    }
    for (int i = 0; i < rank - 1; i++) shape->dims[shape->rank++] = indices->shape.dims[i];
    for (int i = (int)k; i < x->shape.rank; i++) shape->dims[shape->rank++] = x->shape.dims[i];
    return (int)k;
}

void rfx_late_gather_nd(struct rfx_late_call *call) {
    const struct rfx_late_tensor *x = rfx_late_need(call, 0), *indices = rfx_late_need(call, 1);
    struct rfx_shape shape;
    if (x == NULL || indices == NULL) return;
    if (call->node->ints[0] != 0)
        rfx_late_refuse(call, RFX_STATUS_UNSUPPORTED, "batch_dims %lld is not supported",
                        (long long)call->node->ints[0]);
    const int k = tuples_of(call, x, indices, &shape);
    unsigned char *out = rfx_late_make(call, 0, x->type, &shape);
    if (out == NULL) return;
    const size_t run =
        (size_t)rfx_shape_product(&x->shape, k, x->shape.rank) * rfx_type_bytes(x->type);
    for (int64_t i = 0; i < indices->elems && call->status == RFX_OK; i += k, out += run) {
        int64_t at = slice_at(call, x, indices, i, k);
        if (call->status == RFX_OK)
            memcpy(out, (const unsigned char *)x->data + (size_t)at * run, run);
    }
}

/* Of several updates at one place the last one stays. */
void rfx_late_scatter_nd(struct rfx_late_call *call) {
    const struct rfx_late_tensor *x = rfx_late_need(call, 0), *indices = rfx_late_need(call, 1);
    const struct rfx_late_tensor *updates = rfx_late_need(call, 2);
    struct rfx_shape shape;
    char a[RFX_SHAPE_TEXT], b[RFX_SHAPE_TEXT];
    if (updates == NULL || x == NULL || indices == NULL) return;
    const int k = tuples_of(call, x, indices, &shape);
    if (call->status == RFX_OK &&
        (updates->type != x->type || !rfx_shape_equal(&updates->shape, &shape)))
        rfx_late_refuse(call, RFX_STATUS_MALFORMED,
                        "updates of shape %s of %s: shape %s of %s is needed",
                        rfx_shape_text(&updates->shape, "x", a), rfx_type_name(updates->type),
                        rfx_shape_text(&shape, "x", b), rfx_type_name(x->type));
    unsigned char *out = rfx_late_make(call, 0, x->type, &x->shape);
    if (out == NULL) return;
    const size_t run =
        (size_t)rfx_shape_product(&x->shape, k, x->shape.rank) * rfx_type_bytes(x->type);
    memcpy(out, x->data, (size_t)x->elems * rfx_type_bytes(x->type));
    for (int64_t i = 0; i < indices->elems && call->status == RFX_OK; i += k) {
        int64_t at = slice_at(call, x, indices, i, k);
        if (call->status == RFX_OK)
            memcpy(out + (size_t)at * run,
                   (const unsigned char *)updates->data + (size_t)(i / k) * run, run);
    }
}
